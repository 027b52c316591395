"""What a stream brings of a robot, sample by sample, and how equations of motion follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.errors import InputError
from dynident.dynamics.contacts import map_wrench_to_joints
from dynident.dynamics.equations import Observability
from dynident.dynamics.tree import Tree, build_tree
from dynident.online.causal import SETTLED
from dynident.recording.floating import (
    SAMPLED,
    LoggedBase,
    compose_base_motion,
    describe_base_motion,
    sort_base_signals,
)
from dynident.recording.recording import Recording
from dynident.regression.generalised import choose_equations, refuse_unoriented_wrench
from dynident.robot.model import Contact, Robot

Signals = dict[str, Array]
"""Of one sample or of many, shapes (samples, columns)."""


class StreamInstant(NamedTuple):
    """A sample as equations of motion have it: see `Tracker.update`."""

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    bearing: tuple[str, ...]
    reference: tuple[Array, Array, Array] | None


def collect_signals(
    joints: Mapping[str, Array | None],
    base: LoggedBase | None,
    wrenches: Mapping[str, Array],
    touching: Mapping[str, Booleans],
) -> Signals:
    """All that a log has, by names of their own."""
    found = {name: own for name, own in joints.items() if own is not None}
    for label in SAMPLED:
        signal = None if base is None else getattr(base, label)
        if signal is not None:
            found[f"base {label}"] = signal
    found |= {f"wrench {name}": own for name, own in wrenches.items()}
    found |= {f"contact {name}": own[:, None].astype(float) for name, own in touching.items()}
    return found


def collect_recorded_signals(log: Recording) -> Signals:
    """All signals of a log that was read as a whole."""
    tau = None if log.torque == "none" else log.tau
    joints = {"q": log.q, "dq": log.dq, "ddq": log.ddq, "tau": tau, "qref": log.qref}
    return collect_signals(joints, log.base, log.wrenches, log.touching)


@dataclass(frozen=True, eq=False)
class Channels:
    """Which signals a stream's samples hold in a row, and what of them is differentiated."""

    name: str
    robot: Robot
    base: LoggedBase | None
    """Of a floating robot, for what its signals do not say: where a sensor is, whether it
    stands."""
    observed: Observability
    """Which equations are stated."""
    followed: tuple[tuple[str, int], ...]
    others: tuple[tuple[str, int], ...]
    """`followed`, `others`: names and widths of signals that the causal filter differentiates, and
    of those that it filters alone, in the order of a sample."""

    @property
    def widths(self) -> tuple[int, int]:
        """Columns that are differentiated, and others."""
        first, second = (sum(width for _, width in own) for own in (self.followed, self.others))
        return first, second

    @cached_property
    def tree(self) -> Tree:
        """The robot's."""
        return build_tree(self.robot)

    @property
    def unmeasured(self) -> tuple[Contact, ...]:
        """Contacts whose wrenches are not among the signals."""
        here = {name for name, _ in self.others}
        return tuple(each for each in self.robot.contacts if f"wrench {each.name}" not in here)

    def pack(self, signals: Mapping[str, Array]) -> Array:
        """Samples as rows, shape (samples, columns)."""
        return np.hstack([signals[name] for name, _ in (*self.followed, *self.others)])

    def compose(self, out: Array) -> StreamInstant:
        """What the causal filter gives of a sample, as equations of motion have it."""
        signals = self._split(out)
        joints = signals["q"]
        if len(joints) == 1:
            joints = (signals["q"][0], signals["dq"][0], signals["ddq"][0])
        n, first = self.robot.n, self.robot.dof - self.robot.n
        tau = np.zeros((1, first + n))
        if "tau" in signals:
            tau[:, first:] = signals["tau"][0]
        q, dq, ddq = joints
        if self.robot.floating:
            moved = self._move_base(signals)
            q, dq, ddq = (np.hstack(pair) for pair in zip(moved, joints, strict=True))
        for contact in self.robot.contacts:
            wrench = signals.get(f"wrench {contact.name}")
            if wrench is not None:
                tau += map_wrench_to_joints(self.tree, self.robot, contact, q, wrench[0])
        reference = None
        if "qref" in signals:
            along = signals["qref"]
            reference = along[0][0], along[1][0], along[2][0]
        return StreamInstant(q[0], dq[0], ddq[0], tau[0], self._list_bearing(signals), reference)

    def _split(self, out: Array) -> dict[str, tuple[Array, ...]]:
        """By name, signals with their derivatives where they are differentiated."""
        found: dict[str, tuple[Array, ...]] = {}
        total, _ = self.widths
        at = 0
        for name, width in self.followed:
            places = (at + order * total for order in range(3))
            found[name] = tuple(out[None, place : place + width] for place in places)
            at += width
        at = 3 * total
        for name, width in self.others:
            found[name] = (out[None, at : at + width],)
            at += width
        return found

    def _move_base(self, signals: Mapping[str, tuple[Array, ...]]) -> tuple[Array, Array, Array]:
        """Configuration, twist and spatial acceleration of the base."""
        assert self.base is not None
        if self.base.fixed:
            return np.array([[0.0] * 6 + [1.0]]), np.zeros((1, 6)), np.zeros((1, 6))
        own = {
            name.removeprefix("base "): signal
            for name, signal in signals.items()
            if name.startswith("base ")
        }
        motion = compose_base_motion(own, self.base.mount)
        return describe_base_motion(self.base, "force" in own, *motion).motion(self.robot.gravity)

    def _list_bearing(self, signals: Mapping[str, tuple[Array, ...]]) -> tuple[str, ...]:
        """Contacts that bear unmeasured, as long as the filter feels that they did.

        Those of which nothing says whether they bear do at all times: rows are lost, and no truth.
        """
        if self.observed.equations != "null-space":
            return ()
        flags = {c.name: signals.get(f"contact {c.name}") for c in self.unmeasured}
        return tuple(
            name for name, flag in flags.items() if flag is None or abs(flag[0][0, 0]) > SETTLED
        )


def find_channels(
    robot: Robot, log: Recording, measured: bool, whole: bool, instruments: bool = False
) -> Channels:
    """Which signals are taken of a log, or of a stream whose first sample it is.

    Parameters
    ----------
    measured : bool
        Whether derivatives are the log's own.
    whole : bool
        Whether it has all sets of contacts that there will be.
    instruments : bool
        Whether the reference is followed, too.

    Raises
    ------
    InputError
        When the log does not tell what its equations take.
    """
    if robot.carrier is not None:
        raise InputError(
            f"{log.name}: a limb beyond a sensor moves as its carrier does, whose logs are read as "
            "a whole: identify it, or track the whole robot"
        )
    kind = choose_equations(robot, log)
    signals = collect_recorded_signals(log)
    followed, others = ["q"], []
    if measured:
        if log.dq is None or log.ddq is None:
            raise InputError(
                f"{log.name}: derivatives = 'measured' of a stream needs both dq and ddq"
            )
        followed, others = [], ["q", "dq", "ddq"]
    if instruments:
        if "qref" not in signals:
            raise InputError(
                f"{log.name}: instruments = 'reference' needs the reference of each joint; name "
                "its columns with qref"
            )
        followed.append("qref")
    if robot.floating:
        if log.base is None:
            raise InputError(
                f"{log.name}: {robot.name} floats, but the log does not have its base: no "
                "base_px ... base_qw, no imu_wx ... imu_az; state base = 'fixed' for a base at rest"
            )
        if not log.base.fixed:
            parts = sort_base_signals(log.base, measured, log.name)
            for own, labels in zip((followed, others), parts, strict=True):
                own += [f"base {label}" for label in labels]
    if kind != "base" and "tau" in signals:
        others.append("tau")
    oriented = log.base is None or log.base.fixed or log.base.orientation is not None
    for contact in robot.contacts:
        if contact.name in log.wrenches:
            refuse_unoriented_wrench(log.name, contact, oriented)
            others.append(f"wrench {contact.name}")
        elif kind == "null-space" and contact.name in log.touching:
            others.append(f"contact {contact.name}")
    numbers = {name: j for j, name in enumerate(robot.joint_names)}
    observed = Observability(
        kind,
        log.base is not None and log.base.fixed,
        tuple((numbers[name], value) for name, value in log.locked.items()),
        list_contact_sets(robot, log, whole) if kind == "null-space" else (),
    )
    return Channels(
        log.name,
        robot,
        log.base,
        observed,
        tuple((name, signals[name].shape[1]) for name in followed),
        tuple((name, signals[name].shape[1]) for name in others),
    )


def list_contact_sets(robot: Robot, log: Recording, whole: bool) -> tuple[tuple[str, ...], ...]:
    """Sets of contacts that bear unmeasured in a log; in a stream any, also none."""
    free = [each.name for each in robot.contacts if each.name not in log.wrenches]
    if not whole:
        return ((),)
    everywhere = np.ones(len(log.q), dtype=bool)
    flags = np.column_stack([log.touching.get(name, everywhere) for name in free])
    sets = np.unique(flags, axis=0)
    return tuple(tuple(n for n, on in zip(free, row, strict=True) if on) for row in sets)
