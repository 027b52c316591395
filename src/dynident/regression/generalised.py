"""Logs as all equations of motion of their robot: what every `Problem` has.

``Y x = S^T tau + sum_l J_l^T f_l``: a generalised log has the base, where the robot floats,
before the joints in its motion, and on the right-hand side what torques and measured wrenches do;
behind these are the wrenches that sensors in the chain feel.
Rows that a log cannot state are not fitted: those of the base on a robot with joint torques alone,
those of torques where there are none, those of a locked joint, and where contacts bear that nothing
measures all in which they act but for the combinations on which they do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.errors import InputError
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.contacts import follow_touch, map_wrench_to_joints
from dynident.dynamics.equations import (
    EstimatedSensor,
    NullSpace,
    Observability,
    build_null_space,
    mark_touched_equations,
    stack_contact_jacobians,
)
from dynident.dynamics.idim import Idim
from dynident.dynamics.limbs import carry_base
from dynident.dynamics.springs import LINK
from dynident.dynamics.tree import Tree, build_tree
from dynident.filters.filters import filter_zero_phase
from dynident.friction.hysteresis import SpringCompliance
from dynident.recording.floating import BaseMotion
from dynident.recording.prepare import Preparation, Samples
from dynident.recording.recording import COMMANDED, Recording
from dynident.regression.rests import average_rests, mark_standing
from dynident.regression.springs import (
    SpringPoint,
    add_deflection,
    begin_springs,
    bend_by_load,
    find_deflection,
    find_sway,
    mark_remembering_rows,
    put_spring_torques,
    stay_below_resonance,
    step_springs,
)
from dynident.robot.closure import Closure
from dynident.robot.drives import Drives, find_moving_joints
from dynident.robot.model import LAW, Contact, Equations, Robot

CHUNK = 4096
LOST = 0.1
"""Share of a log that contacts which change too soon may take unsaid."""
STEADY = 10.0
"""Cutoff of the speed by which a contact bears [Hz]."""
SHARE = 1e-3
"""Of a robot's own noise that no equation's is below, so that none is taken for exact."""


@dataclass(frozen=True, repr=False, kw_only=True)
class GeneralisedSamples(Samples):
    """A log with the motion and torques of all rows: base, joints, then sensors' wrenches."""

    observed: Observability
    """What it can show."""
    sets: tuple[tuple[str, ...], ...]
    """Contacts that bear unmeasured, of each of the `segments`."""
    scale: Array | None
    """Shape (dof,). Standard deviation of each equation's error, so far as the log's noise shows
    it: by it equations are combined where contacts bear unmeasured, None elsewhere [Nm or N]."""
    stated: Booleans
    """Which rows hold without any combination, shape (samples, rows)."""
    applied: Array | None
    """Torques of the joints as measured, where `tau` has what measured wrenches do in it, too,
    shape (samples, n)."""
    standing: Array | None = None
    """Shape (samples, coordinates). Configuration in which equations are combined; `q` itself where
    it is None."""
    deflection: Array | None = None
    """Shape (4, samples, n). Of joints whose links have an encoder of their own, by how much motors
    are ahead of them, its derivatives, and what is expected of it: `q` is of the links [rad or
    m]."""
    sprung_rows: tuple[tuple[int, int], ...] = ()
    """Rows of such encoders, and those of their joints."""
    springs: tuple[tuple[int, SpringPoint], ...] = ()
    """About which the former are linearised, by joint."""
    sway: Array | None = None
    """Shape (samples, rows, k). See `find_sway`; `tau` has `swayed`, shape (samples, rows), beside
    what was measured."""
    swayed: Array | None = None
    yielding: tuple[tuple[int, SpringCompliance], ...] = ()
    """How springs with hysteresis give way, by the row of their link's encoder."""
    prepared: Preparation | None = None
    """See `preparation`."""

    @property
    def preparation(self) -> Preparation:
        """What made the log that was read, of which a limb has some joints, or none."""
        return self.prepared or super().preparation

    def cut(self, start: int, stop: int) -> Self | None:
        """As of `Samples`; no contacts bear."""
        found = super().cut(start, stop)
        return None if found is None else replace(found, sets=((),) * len(found.segments))

    def within(self, segments: tuple[tuple[int, int], ...]) -> Self:
        """As of `Samples`."""
        starts = [start for start, _ in self.segments]
        places = np.searchsorted(starts, [start for start, _ in segments], "right") - 1
        return replace(super().within(segments), sets=tuple(self.sets[k] for k in places))

    def without_limbs(self, robot: Robot) -> GeneralisedSamples:
        """The same log without the rows of sensors in the chain, of their robot."""
        contacts = [contact.name for contact in robot.contacts]
        sensors = tuple(each for each in self.observed.sensors if each.contact in contacts)
        own = slice(self.dq.shape[1])
        q, dq, ddq = self.motors
        return replace(
            self,
            q=q,
            dq=dq,
            ddq=ddq,
            deflection=None,
            sway=None,
            swayed=None,
            yielding=(),
            wrenches={name: own for name, own in self.wrenches.items() if name in contacts},
            tau=self.plain[:, own],
            moving=self.moving[:, own],
            stated=self.stated[:, own],
            filters=self.filters[own],
            left_out=None if self.left_out is None else self.left_out[:, own],
            observed=replace(self.observed, missing=(), sensors=sensors),
        )

    @property
    def plain(self) -> Array:
        """The right-hand side without what springs behind torque sensors are linearised about."""
        return self.tau if self.swayed is None else self.tau - self.swayed

    @property
    def motors(self) -> tuple[Array, Array, Array]:
        """The motion of the motors, as the joints see it: of the links where none is elastic."""
        motion = self.q, self.dq, self.ddq
        return motion if self.deflection is None else add_deflection(motion, self.deflection)

    @property
    def configuration(self) -> Array:
        """Where contacts are, shape (samples, coordinates)."""
        return self.q if self.standing is None else self.standing

    @property
    def whole_period(self) -> bool:
        """As of `Samples`; never of combined equations, whose errors no period has of its own."""
        return super().whole_period and not any(self.sets)

    @property
    def first(self) -> int:
        """Equations of the base, before those of the joints."""
        return int(self.dq.shape[1] - self.measured.shape[1])

    @property
    def joint_rows(self) -> slice:
        """Where the joints' torques are among all equations."""
        return slice(self.first, self.dq.shape[1])

    def find_moving_joints(self, slow: tuple[float, ...], drives: Drives | None) -> Booleans:
        """Joints on which all that rubs turns faster than `slow`, shape (samples, n)."""
        return find_moving_joints(self.dq[:, self.joint_rows], slow, drives)

    @property
    def base_motion(self) -> Array | None:
        """Pose, twist and spatial acceleration of a base that floats, shape (samples, 19)."""
        if not self.first:
            return None
        return np.hstack([self.q[:, :7], self.dq[:, :6], self.ddq[:, :6]])

    @property
    def external(self) -> Array | None:
        """What measured wrenches do to the joints; of the base, which is led, zero."""
        if self.applied is None:
            return None
        return put_base_before(self.tau[:, self.joint_rows] - self.applied, self.first)

    def along(self, q: Array, dq: Array, ddq: Array) -> Self:
        """The same log on another motion, its equations combined as they were.

        The torques are those of the measured motion, and free of contacts there alone.
        """
        moved = super().along(q, dq, ddq)
        return replace(moved, standing=self.configuration if any(self.sets) else None)

    @property
    def reference(self) -> Array:
        """What errors are relative to, shape (samples, dof) [N, Nm].

        The motors' own torques, of which what contacts do may take away nearly all; of the base
        the wrench of the contacts; of links' encoders the torques of their joints.
        """
        if self.applied is None and self.deflection is None:
            return self.tau
        found = np.array(self.plain)
        if self.applied is not None:
            found[:, self.joint_rows] = self.applied
        for row, joint in self.sprung_rows:
            found[:, row] = found[:, joint]
        return found

    def expecting(self, idim: Idim, theta: Array, begin: bool = False, step: bool = False) -> Self:
        """The same log, its springs linearised about a full set of parameters.

        Of which only bodies are known to `begin` with; with `step` about what is nearer to the
        best than that set, which these rows gave.
        """
        if self.deflection is None:
            return self
        motors, tau = self.motors, self.plain.copy()
        if begin:
            deflection = find_deflection(idim, self, {})
            assert deflection is not None
            springs, theta = begin_springs(idim, self, motors, deflection, tau, theta)
        else:
            springs = step_springs(idim, self, theta, dict(self.springs), step)
        springs = stay_below_resonance(idim, self, theta, motors, springs)
        deflection = find_deflection(idim, self, springs)
        assert deflection is not None
        bend_by_load(idim, self, theta, motors, deflection, springs)
        motion = add_deflection(motors, -deflection)
        yielding = put_spring_torques(idim, self, theta, motion, deflection, springs, tau)
        sway, swayed = find_sway(idim, self, theta, motion, deflection, springs)
        q, dq, ddq = motion
        return replace(
            self, q=q, dq=dq, ddq=ddq, deflection=deflection, springs=tuple(springs.items()),
            tau=tau + swayed, sway=sway, swayed=swayed, yielding=yielding,
        )  # fmt: skip

    @property
    def joint_torque(self) -> Array:
        """Torques of the joints as measured, shape (samples, n) [Nm or N]."""
        if self.applied is not None:
            return self.applied
        only = self.tau.shape[1] == self.measured.shape[1]  # of a long log none is read for that
        return self.tau if only else self.plain[:, self.joint_rows]


def has_only_joint_torques(robot: Robot, log: Samples | Recording) -> bool:
    """Whether the log's rows are the torques of a fixed robot's joints."""
    return not (robot.floating or robot.contacts or robot.sensed or log.locked)


def generalise_samples(idim: Idim, log: Samples) -> GeneralisedSamples:
    """A log as all equations of motion of a robot; as it is where it is that already."""
    if isinstance(log, GeneralisedSamples):
        return log
    robot = idim.robot
    prepared, of_base = log.preparation, log.filters[0]
    log = cut_log_to_limb(idim, log).of_joints(robot.joint_names)
    if log.rests is not None:
        log = average_rests(log)
    q, dq, ddq = put_base_motion_before(robot, log)
    kind = choose_equations(robot, log)
    log = warn_of_unlogged_torques(idim, warn_of_missing_torques(robot, log))
    if idim.structure.closure is not None:
        q, dq, ddq = close_motion(idim.structure.closure, log)
    measured = [contact for contact in robot.contacts if contact.name in log.wrenches]
    tau = fill_right_hand_sides(idim, log, measured, q)
    deflection = find_deflection(idim, log, {})
    if deflection is not None:
        # encoders of joints are on the motors; from here on the motion is that of the links
        q, dq, ddq = add_deflection((q, dq, ddq), -deflection)
    missing = put_felt_signals(idim, log, (q, dq, ddq), tau)
    numbers = {name: j for j, name in enumerate(robot.joint_names)}
    held = tuple((numbers[name], value) for name, value in log.locked.items())
    observed = Observability(
        kind,
        robot.floating and log.base is not None and log.base.still,
        held,
        sensors=list_estimated_sensors(idim, log),
        static=log.rests is not None,
        missing=missing,
    )
    segments = log.segments
    sets: tuple[tuple[str, ...], ...] = ((),) * len(log.segments)
    rows = observed.rows(robot)
    stated = np.broadcast_to(rows, (len(q), len(rows)))
    scale = None
    if kind == "null-space":
        segments, sets = split_by_contacts(idim, log, q, dq)
        log = replace(log, warnings=(*log.warnings, *warn_of_brief_contacts(log, segments)))
        observed = replace(observed, free=tuple(dict.fromkeys(sets)))
        stated = mark_untouched_equations(idim, rows, segments, sets, len(q))
        scale = estimate_equation_noise(idim, log, (q, dq, ddq))
    moving, left_out = mark_moving_rows(idim, log, deflection)
    before, behind = robot.dof - robot.n, robot.equations - robot.dof
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__} | {
        "q": q, "dq": dq, "ddq": ddq, "tau": tau, "segments": segments,
        # rows without a joint of their own pass the filter of the first joint
        "filters": (of_base,) * before + log.filters + (of_base,) * behind,
        "left_out": left_out,
        "moving": moving if rows.all() and kind != "null-space" else moving & stated,
    }  # fmt: skip
    found = GeneralisedSamples(
        **fields,
        observed=observed,
        sets=sets,
        scale=scale,
        stated=stated,
        applied=log.tau if measured else None,
        deflection=deflection,
        sprung_rows=idim.robot.sprung_rows,
        prepared=prepared,
    )
    if deflection is None:
        return found
    return found.expecting(idim, idim.nominal, begin=True)


def mark_untouched_equations(
    idim: Idim,
    rows: Booleans,
    segments: Sequence[tuple[int, int]],
    sets: Sequence[tuple[str, ...]],
    samples: int,
) -> Booleans:
    """Which equations the contacts of a segment do not act on, shape (samples, equations)."""
    stated = np.zeros((samples, len(rows)), dtype=bool)
    for (start, stop), names in zip(segments, sets, strict=True):
        stated[start:stop] = rows & ~mark_touched_equations(idim.tree, idim.robot, names)
    return stated


def put_base_motion_before(robot: Robot, log: Samples) -> tuple[Array, Array, Array]:
    """The motion of all of a robot's rows: that of its base, where it floats, and its joints."""
    joints = log.q, log.dq, log.ddq
    if not robot.floating:
        return joints
    if log.base is None:
        raise InputError(
            f"{log.name}: {robot.name} floats, but the log does not have its base: no "
            "base_px ... base_qw, no imu_wx ... imu_az; state base = 'fixed' for a base at rest"
        )
    base = log.base.motion(robot.gravity)
    q, dq, ddq = (np.hstack(pair) for pair in zip(base, joints, strict=True))
    return q, dq, ddq


def warn_of_missing_torques(robot: Robot, log: Samples) -> Samples:
    """A log that says so where torques are missing, and the wrench of its base alone is fitted."""
    if not (robot.floating and robot.n and log.torque == "none" and log.equations is None):
        return log
    words = (
        f"{log.name}: has no torques (tau_{robot.joint_names[0]}); the base's wrench alone is "
        "fitted (equations = 'base')"
    )
    return replace(log, warnings=(*log.warnings, words))


def warn_of_unlogged_torques(idim: Idim, log: Samples) -> Samples:
    """A log that says so where an element takes a known torque that it does not have.

    Its columns may be of driven joints alone; what is known of passive ones then counts as zero.
    """
    passive, joints = idim.robot.passive, idim.robot.joint_names
    taken = [e.joint for e in idim.elements if "known" in e.model.needs and passive[e.joint]]
    names = [joints[j] for j in taken if log.known is not None and not np.any(log.known[:, j])]
    if not names:
        return log
    words = (
        f"{log.name}: has no known_{names[0]}, or zeros there: what an element takes for known of "
        f"{', '.join(dict.fromkeys(names))} counts as zero"
    )
    return replace(log, warnings=(*log.warnings, words))


def fill_right_hand_sides(idim: Idim, log: Samples, measured: Sequence[Contact], q: Array) -> Array:
    """Torques of the joints in the rows of all equations, with what measured contacts add."""
    robot, tau = idim.robot, log.tau
    if robot.equations > robot.n or log.wrenches:
        tau = np.zeros((len(q), robot.equations))
        tau[:, robot.dof - robot.n : robot.dof] = log.tau
    if measured:
        tau[:, : robot.dof] += add_wrenches(idim.tree, robot, log, measured, q)
    return tau


def list_estimated_sensors(idim: Idim, log: Samples) -> tuple[EstimatedSensor, ...]:
    """Sensors in the log of which something is estimated, and the law where it acts."""
    own = {name: contact for name, contact, _ in idim.structure.gauged}.values()
    found = [
        EstimatedSensor(contact.name, log.name if log.tared else "")
        for contact in own
        if contact.estimate and contact.name in log.wrenches
    ]
    return (*found, *(EstimatedSensor(LAW),) * (LAW in log.wrenches))


def mark_moving_rows(
    idim: Idim, log: Samples, deflection: Array | None
) -> tuple[Booleans, Booleans | None]:
    """Which rows of all equations move, and at which samples equations are left out.

    Outliers; where no torque is measured joints that stand, whose friction holds what it has to,
    which nothing says; and springs whose bristles remember what was before the log.
    """
    robot = idim.robot
    if log.torque == COMMANDED and log.rests is None:
        standing = mark_standing(log, robot.drives)
        out = standing if log.left_out is None else standing | log.left_out
        log = replace(log, moving=log.moving & ~standing, left_out=out)
    moving, left_out = log.moving, log.left_out
    joints = slice(robot.dof - robot.n, robot.dof)
    if robot.equations > robot.n:
        everywhere = np.ones(len(moving), dtype=bool) if log.kept is None else log.kept
        moving = np.repeat(everywhere[:, None], robot.equations, axis=1)
        moving[:, joints] = log.moving
    if idim.structure.closure is not None:  # what rubs in passive joints acts on their drives
        every = [list(rows) or [k] for k, rows in enumerate(idim.structure.closure.acting)]
        moving = np.column_stack([log.moving[:, rows].all(axis=1) for rows in every])
    if left_out is not None:
        left_out = np.zeros(moving.shape, dtype=bool)
        left_out[:, joints] = log.left_out
    if deflection is not None:
        remembering = mark_remembering_rows(idim, log, deflection)
        moving = moving & ~remembering
        if remembering.any():
            left_out = remembering if left_out is None else left_out | remembering
    return moving, left_out


def close_motion(closure: Closure, log: Samples) -> tuple[Array, Array, Array]:
    """The motion of a log of driven joints, with that of passive ones which closes the loops.

    The chain is assembled as the log's first sample has it.
    """
    if log.locked:
        raise InputError(f"{log.name}: a robot with loops has its joints locked in [robot]")
    name = closure.robot.joint_names
    for k in closure.passive:
        peak = float(np.max(np.abs(log.tau[:, k])))
        if peak > 0.0:
            raise InputError(
                f"{log.name}: tau of {name[k]} reaches {peak:.4g}, but it is passive: a loop gives "
                "its position; take it out of passive, or its torque out of the log"
            )
    q, dq, ddq = (np.array(each) for each in (log.q, log.dq, log.ddq))
    for start, stop in log.runs:
        s = slice(start, stop)
        q[s], dq[s], ddq[s] = closure.follow(q[s], dq[s], ddq[s], log.name, log.rate)
    return q, dq, ddq


def put_base_before(tau: Array, first: int) -> Array:
    """Torques of joints as right-hand sides of all equations: zeros of the base before them."""
    return np.hstack([np.zeros((len(tau), first)), tau]) if first else tau


def put_felt_signals(
    idim: Idim, log: Samples, motion: tuple[Array, Array, Array], tau: Array
) -> tuple[str, ...]:
    """Put what sensors in the chain say into their rows; the names of those without a signal."""
    missing = []
    for felt in idim.structure.sensed_motions:
        name = felt.gauge.name
        if name not in log.wrenches:
            missing.append(name)
            continue
        for contact in felt.contacts[1:]:
            if contact.name not in log.wrenches:
                raise InputError(
                    f"{log.name}: no wrench of {contact.name} (fx_{contact.name} ...), which acts "
                    f"beyond sensor {name}; leave that out of robot.sensor"
                )
        if not felt.contacts:
            if log.wrenches[name].shape[1] != len(felt.taken):
                raise InputError(
                    f"{log.name}: sensor {name} has {log.wrenches[name].shape[1]} columns, but "
                    f"{len(felt.taken)} rows"
                )
            if felt.gauge.kind != LINK:  # the right-hand side of an encoder's row is zero
                tau[:, felt.rows] = log.wrenches[name]
            continue
        q, _, _ = felt.carried(motion)
        found = add_wrenches(felt.tree, felt.robot, log, felt.contacts, q, oriented=False)
        tau[:, felt.rows] = found[:, felt.taken]
    return tuple(missing)


def add_wrenches(
    tree: Tree, robot: Robot, log: Samples, measured: Sequence[Contact], q: Array,
    oriented: bool = True,
) -> Array:  # fmt: skip
    """What measured wrenches do to each equation along a log, ``sum_l J_l^T f_l``."""
    found = np.zeros((len(q), tree.dof))
    for contact in measured:
        oriented = oriented and (log.base is None or log.base.oriented)
        refuse_unoriented_wrench(log.name, contact, oriented)
        wrench = log.wrenches[contact.name]
        for a in range(0, len(q), CHUNK):
            s = slice(a, a + CHUNK)
            found[s] += map_wrench_to_joints(tree, robot, contact, q[s], wrench[s])
    return found


def cut_log_to_limb(idim: Idim, log: Samples) -> Samples:
    """A log of the whole robot as one of the limb that was cut off it.

    The limb's base moves as its seat on the carrier does.
    """
    robot = idim.robot
    carrier, seat = robot.carrier, robot.seat
    if carrier is None or seat is None:
        return log
    whole = log.of_joints(carrier.joint_names)
    motion = whole.q, whole.dq, whole.ddq
    if carrier.floating:
        if whole.base is None:
            raise InputError(
                f"{log.name}: {carrier.name} floats, but the log does not have its base, which "
                f"carries {robot.base_link}"
            )
        moved = whole.base.motion(carrier.gravity)
        motion = tuple(np.hstack(pair) for pair in zip(moved, motion, strict=True))  # type: ignore[assignment]
    moved = carry_base(build_tree(carrier), carrier, seat, motion)
    base = BaseMotion(*moved, proper=True, oriented=False, still=False)
    own = {name: log.locked[name] for name in robot.joint_names if name in log.locked}
    names = [contact.name for contact in robot.contacts]
    wrenches = {name: own for name, own in log.wrenches.items() if name in names}
    touching = {name: own for name, own in log.touching.items() if name in names}
    limb = whole.of_joints(robot.joint_names)
    return replace(
        limb, base=base, asked=None, locked=own, wrenches=wrenches, touching=touching,
        # a tool has no joint of its own
        bandwidth=limb.bandwidth or whole.bandwidth,
        position_hz=limb.position_hz or whole.position_hz,
    )  # fmt: skip


def choose_equations(robot: Robot, log: Samples | Recording) -> Equations:
    """Which equations a log states: those that were asked for, else all that it can."""
    unmeasured = [c.name for c in robot.contacts if c.name not in log.wrenches]
    kind = log.equations
    if has_only_joint_torques(robot, log):
        return "full"
    if kind is None:
        kind = "base" if log.torque == "none" else "null-space" if unmeasured else "full"
        if not (robot.floating or robot.sensed) and kind == "base":
            kind = "joints"
    if kind == "base" and not (robot.floating or robot.sensed):
        raise InputError(
            f"{log.name}: equations = 'base' needs a robot that is read as floating, or has a "
            "sensor in its chain"
        )
    if kind != "base" and log.torque == "none":
        raise InputError(
            f"{log.name}: has no torques, which equations = {kind!r} take; name them in "
            "columns.tau, or set equations = 'base'"
        )
    if kind != "null-space" and unmeasured:
        raise InputError(
            f"{log.name}: no wrench of {', '.join(unmeasured)} (fx_{unmeasured[0]} ...), which "
            f"equations = {kind!r} take; set equations = 'null-space'"
        )
    return kind


def refuse_unoriented_wrench(name: str, contact: Contact, oriented: bool) -> None:
    """Refuse wrenches in the world's axes where nobody knows how the base is turned."""
    if contact.axes == "world" and not oriented:
        raise InputError(
            f"{name}: wrenches in the world's axes take the orientation of the base, which "
            "the log does not have"
        )


def split_by_contacts(
    idim: Idim, log: Samples, q: Array, dq: Array
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[str, ...], ...]]:
    """Stretches of a log between which contacts change, and the unmeasured ones of each.

    A contact of which nothing says whether it bears does where its frame is slower than
    `contact_speed`.
    """
    robot, tree = idim.robot, idim.tree
    free = [c for c in robot.contacts if c.name not in log.wrenches]
    if log.base is not None and not log.base.oriented and any(c.radius for c in free):
        raise InputError(
            f"{log.name}: radius of a contact needs the orientation of the base (base_qx ...), "
            "which the log does not have; leave radius out"
        )
    flags = np.zeros((len(q), len(free)), dtype=bool)
    for k, contact in enumerate(free):
        if contact.name in log.touching:
            flags[:, k] = log.touching[contact.name]
            continue
        if log.base is not None and not np.any(log.base.twist[:, :3]) and not log.base.still:
            raise InputError(
                f"{log.name}: the contact state of {contact.name} is unknown: no "
                f"contact_{contact.name}, "
                "and without the base's position and orientation its speed is not known"
            )
        velocity = np.empty((len(q), 3))
        for a in range(0, len(q), CHUNK):
            s = slice(a, a + CHUNK)
            J = follow_touch(tree, robot, contact, q[s])
            own = np.einsum("tij,tj->ti", J.jacobian[:, :3], dq[s])
            velocity[s] = np.einsum("tij,tj->ti", J.turn, own)
        from scipy import ndimage  # a tenth of a second that few runs need

        for start, stop in log.runs:
            # noise of derivatives is faster; an instant more of bearing loses rows and no truth
            steady = filter_zero_phase(velocity[start:stop], STEADY, log.rate)
            slow = np.linalg.norm(steady, axis=1) < log.contact_speed
            around = 2 * round(0.5 * log.rate / STEADY) + 1
            flags[start:stop, k] = ndimage.binary_dilation(slow, np.ones(around, dtype=bool))
    segments, sets = [], []
    # the window of each filter has to fit between two changes
    shortest = max(2 * f.half + 1 for f in log.filters)
    for start, stop in log.segments:
        changes = np.flatnonzero(np.any(flags[start + 1 : stop] != flags[start : stop - 1], axis=1))
        edges = [start, *(start + 1 + changes).tolist(), stop]
        for a, b in pairwise(edges):
            if b - a >= shortest:
                segments.append((a, b))
                sets.append(tuple(c.name for c, on in zip(free, flags[a], strict=True) if on))
    if not segments:
        raise InputError(
            f"{log.name}: no set of contacts lasts for {shortest / log.rate:.2g} s, which the "
            "torque filter needs; check the contact columns, or raise contact_speed or bandwidth"
        )
    return tuple(segments), tuple(sets)


def warn_of_brief_contacts(log: Samples, segments: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """A warning where contacts change too often for the filters."""
    lost = 1.0 - sum(b - a for a, b in segments) / sum(b - a for a, b in log.segments)
    if lost < LOST:
        return ()
    return (
        f"{log.name}: {100.0 * lost:.0f} % of the samples are between contacts that change sooner "
        "than the torque filter takes, and are not fitted; a larger bandwidth keeps more",
    )


def estimate_equation_noise(idim: Idim, log: Samples, motion: tuple[Array, Array, Array]) -> Array:
    """Standard deviation of each equation's error, as far as noise above the motion shows it.

    Of torques that of what the torque filter would take away; of the base's wrench, which
    nobody measures, that of the robot file's weight and inertia along the measured motion.
    """
    robot, runs = idim.robot, log.runs
    first = robot.dof - robot.n
    signal = put_base_before(log.tau, first).copy()
    if first and robot.has_nominal:
        signal[:, :first] = evaluate_inverse_dynamics(idim.tree, robot.nominal, *motion)[:, :first]
    cutoff = max(f.cutoff for f in log.filters)
    squares = np.zeros(robot.dof)
    for start, stop in runs:
        rough = signal[start:stop] - filter_zero_phase(signal[start:stop], cutoff, log.rate)
        squares += np.sum(rough**2, axis=0)
    found = np.sqrt(squares / sum(stop - start for start, stop in runs))
    typical = float(np.max(found))
    return np.maximum(found, SHARE * typical) if typical > 0.0 else np.ones(robot.dof)


def find_segment_null_space(idim: Idim, log: GeneralisedSamples, segment: int) -> NullSpace | None:
    """The combinations that are free of what bears unmeasured over a segment; None of nothing.

    About the middle of the segment.
    """
    names, (start, stop) = log.sets[segment], log.segments[segment]
    acting = mark_touched_equations(idim.tree, idim.robot, names) & log.observed.rows(idim.robot)
    if not acting.any():
        return None
    assert log.scale is not None
    middle = log.configuration[(start + stop) // 2][None]
    places = np.flatnonzero(acting)
    J = stack_contact_jacobians(idim.tree, idim.robot, names, middle)[0]
    return build_null_space(J, places, log.scale[places])


@dataclass(frozen=True)
class FreeGroups:
    """Groups of rows that are free of one set of unmeasured contacts."""

    names: tuple[str, ...]
    acting: Integers
    """Equations that are combined."""
    count: int


def list_free_groups(idim: Idim, logs: Sequence[GeneralisedSamples]) -> tuple[FreeGroups, ...]:
    """Groups that are free of contacts, of each set that some log has."""
    found: dict[tuple[str, ...], FreeGroups] = {}
    for log in logs:
        for segment, names in enumerate(log.sets):
            if names and names not in found:
                space = find_segment_null_space(idim, log, segment)
                if space is not None:
                    found[names] = FreeGroups(names, space.acting, space.count)
    return tuple(found.values())
