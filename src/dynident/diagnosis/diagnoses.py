"""What can be wrong with a log: each a way to read its columns otherwise.

A diagnosis proposes suspicions: what may be wrong, how to repair it, and a `Reading` of a scene
as it would be then. Whether one of them explains the log, `examine` finds out. To add a
diagnosis: a function and a line in `DIAGNOSES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.inertia import PER_BODY
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.scene import Scene
from dynident.diagnosis.sized import (
    measure_gain,
    suspect_delays,
    suspect_drifts,
    suspect_encoder_offsets,
    suspect_gain_steps,
    suspect_late_signals,
    suspect_position_lags,
    suspect_ripples,
    suspect_slow_loggers,
)
from dynident.diagnosis.springs import suspect_springs
from dynident.diagnosis.suspicion import (
    LogCase,
    Reading,
    Suspicion,
    compute_column_rms,
    fit_consistent_model,
    make_repairable_suspicion,
    suspect_gravities,
    suspect_scaled_joint,
)
from dynident.diagnosis.targets import (
    BOTH,
    TARGETS,
    OtherReading,
    TrackingCase,
    suspect_common_zeros,
    suspect_mounted_targets,
    suspect_pushes,
    suspect_scales,
    suspect_target_delays,
    suspect_target_orders,
    suspect_target_signs,
    suspect_target_zeros,
)
from dynident.diagnosis.wrenches import (
    suspect_unit_mountings,
    suspect_wrench_axes,
    suspect_wrench_orders,
    suspect_wrench_signs,
    suspect_wrench_units,
)
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import Packing
from dynident.filters.blocks import low_pass_signals
from dynident.filters.filters import differentiate_twice, filter_by_cutoff
from dynident.instants.squares import FAINT
from dynident.recording.repairs import LogRepair, Signal
from dynident.robot.model import Robot


def replace_base(scene: Scene, base: BaseParameters, packing: Packing) -> Scene:
    """A scene of another robot, and those beside it; `packing` is of its base parameters."""
    return scene.of(base, packing).among(other.of(base, packing) for other in scene.beside)


def list_sign_flips(case: LogCase) -> Iterator[tuple[str, tuple[float, ...] | float]]:
    """One joint of the other sign, or all."""
    names = case.names
    for j, name in enumerate(names):
        if j not in case.bad:
            continue
        yield f" of {name} has", tuple(-1.0 if k == j else 1.0 for k in range(len(names)))
    if len(names) > 1 and (case.bad or not case.scene.plain):
        yield "s of all joints have", -1.0


def list_column_orders(
    robot: Robot, bad: frozenset[int], turned: bool = False
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Orders that columns of joints may have been written in, in words.

    Two joints in each other's place, three in each other's, two limbs, or sorted by another rule.
    Joints that loops move have no columns, and keep their places.
    """
    names, n, own = robot.joint_names, robot.n, robot.driven
    seen = {tuple(range(n))}

    def new(order: Sequence[int], what: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        if tuple(order) not in seen and {*own} == {order[j] for j in own}:
            seen.add(tuple(order))
            yield what, tuple(j + 1 for j in order)

    def swap(one: Sequence[int], other: Sequence[int]) -> list[int]:
        order = list(range(n))
        for i, j in zip(one, other, strict=True):
            order[i], order[j] = j, i
        return order

    for i, j in combinations(sorted(bad), 2):
        yield from new(swap([i], [j]), f"of {names[i]} and {names[j]} are in each other's columns")
    for chosen in combinations(sorted(bad), 3) if turned else ():
        for i, j, k in (chosen, chosen[::-1]):
            order = list(range(n))
            order[i], order[j], order[k] = j, k, i
            listed = ", ".join(names[joint] for joint in chosen)
            yield from new(order, f"of {listed} are in each other's columns")
    limbs = find_equal_limbs(robot)
    for one, other in combinations(limbs, 2):
        ends = " and ".join(f"{names[limb[0]]} ... {names[limb[-1]]}" for limb in (one, other))
        yield from new(swap(one, other), f"of {ends} are in each other's columns")
    if len(limbs) > 1 and sorted(j for limb in limbs for j in limb) == list(range(n)):
        first = [j for joints in zip(*limbs, strict=True) for j in joints]
        yield from new(np.argsort(first).tolist(), "are sorted by joints, not by limbs")
    by_name = sorted(own, key=names.__getitem__)
    for rule, what in ((by_name, "are sorted by name"), (own[::-1], "are in the opposite order")):
        place = dict(zip(rule, own, strict=True))
        yield from new([place.get(j, j) for j in range(n)], what)


def find_equal_limbs(robot: Robot) -> list[tuple[int, ...]]:
    """Chains of as many joints from the base on, of the commonest length."""
    limbs = []
    for j, joint in enumerate(robot.joints):
        if joint.parent == 0:
            limb = [j]
            while after := [k for k, o in enumerate(robot.joints) if o.parent == limb[-1] + 1]:
                limb.append(after[0])
            limbs.append(tuple(limb))
    lengths = [len(limb) for limb in limbs]
    usual = max(set(lengths), key=lambda length: (lengths.count(length), length))
    return [limb for limb in limbs if len(limb) == usual]


def suspect_signs(
    diagnosis: str, what: str, signals: Sequence[Signal], case: LogCase
) -> Iterator[Suspicion]:
    """Signals of the other sign."""
    for which, sign in list_sign_flips(case):
        repair = LogRepair(sign=dict.fromkeys(signals, sign))
        told = f"the {what}{which} the opposite sign"
        yield make_repairable_suspicion(diagnosis, told, repair, case.n)


def suspect_orders(
    diagnosis: str, what: str, signals: Sequence[Signal], case: LogCase, turned: bool = False
) -> Iterator[Suspicion]:
    """Columns of signals in another order."""
    for which, order in list_column_orders(case.robot, case.bad, turned):
        repair = LogRepair(order=dict.fromkeys(signals, order))
        yield make_repairable_suspicion(diagnosis, f"{what} {which}", repair, case.n)


def suspect_tracked_orders(case: TrackingCase) -> Iterator[OtherReading]:
    """Columns of positions or targets in another order, of logs of encoders alone."""
    robot = case.log.idim.robot
    if case.bad:
        yield from suspect_target_orders(
            case, list_column_orders(robot, case.bad), (*TARGETS, BOTH)
        )
    for j in range(case.n - 1):  # that both are, errors may not show
        pair = frozenset((j, j + 1)) - (case.bad if len(case.bad) > 1 else frozenset())
        first = list(list_column_orders(robot, pair))[:1] if len(pair) > 1 else []
        yield from suspect_target_orders(case, first, (BOTH,))


def suspect_tracked_zeros(case: TrackingCase) -> Iterator[OtherReading]:
    """Zeros of encoders: against their targets, or with these."""
    yield from suspect_target_zeros(case)
    yield from suspect_common_zeros(case)


def suspect_torque_orders(case: LogCase) -> Iterator[Suspicion]:
    """Torque columns in another order; what only combines them is cheap to read."""
    return suspect_orders("torque order", "the torques", ("tau",), case, case.scene.plain)


UNITS = {"deg": np.pi / 180.0, "rev": 2.0 * np.pi}
"""Units of angle that logs have, in rad."""


def suspect_position_units(case: LogCase) -> Iterator[Suspicion]:
    """Positions in degrees or revolutions that were taken for radians, or the other way."""
    revolute = np.array([joint.kind == "revolute" for joint in case.robot.joints])
    n = len(revolute)
    groups = [("the positions are", revolute)] if np.any(revolute) and case.bad else []
    if np.sum(revolute) > 1:
        groups += [
            (f"the position of {case.names[j]} is", np.arange(n) == j)
            for j in sorted(case.bad)
            if revolute[j]
        ]
    for (whose, where), (unit, size) in product(groups, UNITS.items()):
        for factor, what, right in (
            (size, f"{whose} in {unit}", unit),
            (1.0 / size, f"{whose} in rad, not in {unit}", "rad"),
        ):
            scale = np.where(where, factor, 1.0)

            def motion(s: Scene, scale: Array = scale) -> Scene:
                return s.along(scale * s.q, scale * s.dq, scale * s.ddq)

            others = unit if right == "rad" else "rad"
            units = tuple(right if own else others for own in where)
            yield Suspicion(
                "position unit",
                what,
                Reading.plain(n, motion),
                unit=right if np.all(where == revolute) else units,
            )


def suspect_absolute_encoders(case: LogCase) -> Iterator[Suspicion]:
    """A joint's position counted from the base, ``q_(j-1) + q_j``, or the other way round."""
    names = case.names
    for i, j in pairwise(case.robot.driven):
        for share, word in ((-1.0, "has"), (1.0, "lacks")) if j in case.bad else ():
            turn = np.eye(len(names))
            turn[j, i] = share

            def motion(s: Scene, turn: Array = turn) -> Scene:
                return s.along(s.q @ turn.T, s.dq @ turn.T, s.ddq @ turn.T)

            yield Suspicion(
                "absolute encoder",
                f"the position of {names[j]} {word} that of {names[i]} in it",
                Reading.plain(len(names), motion),
                advice=f"write the position of {names[j]} relative to its parent into the log",
            )


def suspect_reversed_time(case: LogCase) -> Iterator[Suspicion]:
    """A log that runs backwards."""
    yield Suspicion(
        "reversed time",
        "time runs backwards",
        Reading.plain(case.n, lambda s: s.along(s.q, -s.dq, s.ddq)),
        advice="turn the log's rows round",
    )


COMPUTED = "computed torque"
"""Diagnosis of a log without a measured torque."""


def suspect_computed_torques(case: LogCase) -> Iterator[Suspicion]:
    """Torques that a model asks for along the targets: exactly those of bodies, as no sensor's."""
    s, log = case.scene, case.scene.log
    if log.qref is None or s.course is None or log.torque != "measured":
        return
    cutoffs = tuple(each.cutoff for each in log.filters)
    (target,) = low_pass_signals((log.qref,), log.runs, log.rate, (cutoffs,), s.thin)
    course = np.array([target, *differentiate_twice(target, s.rate)])
    left = s.following(course).problem.free_errors()[s.clear_groups]
    if not len(left) or np.max(left) > limit.LITERAL:
        return
    apart = (course[2] - s.course[2])[s.instant[0] : s.instant[-1]]
    low = filter_by_cutoff(apart, tuple(0.5 * hz for hz in cutoffs), s.rate)
    if np.linalg.norm(low) > limit.OF_MOTION * np.linalg.norm(apart):
        yield Suspicion(
            COMPUTED,
            "the torques are those of bodies along the targets, not along the positions: a model "
            "computed them, no sensor measured them",
            Reading.plain(case.n, lambda s: s.following(course)),
            advice="take what sensors or the motors' currents say as torques",
            fast=True,
        )


def suspect_missing_gravity(case: LogCase) -> Iterator[Suspicion]:
    """Torques from which the controller's gravity compensation was taken out.

    A controller's idea of gravity need not be that of the robot. It may be the robot file's, whose
    weight is given back then; where another log tells what gravity asks for, what is missing of it
    is found by least squares.
    """
    robot = case.robot
    if not np.any(robot.gravity):
        return
    s, base = case.scene, case.scene.base

    def give_back(s: Scene, theta: Array = base.idim.nominal) -> Scene:
        q = s.logged[0]
        still = np.zeros_like(q)
        return s.relieved(-theta, q, still, still)

    told = Suspicion(
        "gravity", "gravity is not in the torques", Reading.plain(case.n, give_back),
        advice="log the full torque of the drives, or set gravity = [0, 0, 0] in [robot]",
    )  # fmt: skip
    if robot.has_nominal:
        what = "the weight of the robot file's bodies is not in the torques"
        yield replace(told, what=what, advice="log the full torque of the drives")
    if not s.beside:
        floating = replace(base, idim=base.idim.of(replace(robot, gravity=np.zeros(3))))
        reading = Reading.plain(case.n, lambda s: s.of(floating, s.motion.packing))
        yield replace(told, reading=reading)
        return
    bodies, still = np.flatnonzero(base.kept < base.idim.inertial), np.zeros_like(s.q)
    missing = find_missing(case, bodies, s.q, still, still)
    if missing is not None:
        reading = Reading.plain(case.n, lambda s: give_back(s, -missing[0]))
        yield replace(told, reading=reading, freedom=missing[1])


def find_missing(
    case: LogCase, places: Integers, q: Array, dq: Array, ddq: Array
) -> tuple[Array, int] | None:
    """What torques have of some base parameters beyond a model of other logs, along a motion.

    With the count of what tells; None where they hold most of what these parameters ask for.
    """
    s, base, beta = case.scene, case.scene.base, case.of_others
    if not len(places):
        return None
    columns = base.idim.regressor(q, dq, ddq)[:, :, base.kept[places]]
    size, rows = fit_difference(s, beta, columns)
    there, asked = (np.linalg.norm(rows @ x) for x in (beta[places] + size, beta[places]))
    if there > limit.MISSING * asked:
        return None
    theta = np.zeros(len(base.idim.parameters))
    theta[base.kept[places]] = size
    return theta, int(np.linalg.matrix_rank(rows, rtol=limit.DEPENDENT))


def fit_difference(s: Scene, beta: Array, columns: Array) -> tuple[Array, Array]:
    """What of some columns stands in a scene's torques beyond a model, and their rows.

    The columns have the shape (instants, n, k); of the rows, (instants n, k), each joint is counted
    in its torque.
    """
    known, size = s.motion.predict(beta), compute_column_rms(s.tau)
    # next to no torque would count for all
    told = size > limit.DEPENDENT * compute_column_rms(known)
    scale: Array = np.where(s.moving & told, 1.0 / size, 0.0)
    rows = (scale[:, :, None] * columns).reshape(-1, columns.shape[2])
    rest = np.ravel(scale * (s.tau - known))
    return np.asarray(np.linalg.lstsq(rows, rest, rcond=limit.DEPENDENT)[0]), rows


def suspect_loads(case: LogCase) -> Iterator[Suspicion]:
    """Something at the last link that is not there in the other logs."""
    s = case.scene
    if not s.beside:
        return
    idim = s.base.idim
    last = slice(idim.inertial - PER_BODY, idim.inertial)
    columns = idim.regressor(s.q, s.dq, s.ddq)[:, :, last]
    size, rows = fit_difference(s, case.of_others, columns)
    theta = np.zeros(len(idim.parameters))
    theta[last] = size

    word = "more" if size[0] > 0.0 else "less"
    yield Suspicion(
        "load",
        f"the last link carries {abs(size[0]):.2g} kg {word} than in the other log",
        Reading.plain(case.n, lambda s: s.relieved(theta, *s.logged)),
        advice="identify from logs with one load",
        freedom=int(np.linalg.matrix_rank(rows, rtol=limit.DEPENDENT)),
    )


STANDARD = 9.81
"""Gravity of a robot whose file has none [m/s^2]."""


def suspect_missing_friction(case: LogCase) -> Iterator[Suspicion]:
    """Torques from which a controller's friction compensation was taken out.

    Where another log tells what friction asks for: what is missing of it is found by least
    squares and given back.
    """
    s = case.scene
    idim, kept = s.base.idim, np.array(s.base.kept)
    own = [k for k, c in enumerate(idim.drive_columns, idim.inertial) if c.friction is not None]
    places = np.flatnonzero(np.isin(kept, own))
    if not s.beside:
        return
    missing = find_missing(case, places, s.q, s.dq, s.ddq)
    if missing is None:
        return
    yield Suspicion(
        "friction", "friction is not in the torques",
        Reading.plain(case.n, lambda s: s.relieved(missing[0], *s.logged)), freedom=missing[1],
        advice="log the full torque of the drives, or set friction = 'none' in [robot]",
    )  # fmt: skip


def suspect_lost_signs(case: LogCase) -> Iterator[Suspicion]:
    """A torque that lost its sign: that of the friction first, then that of a model's torque."""
    s, n = case.scene, case.n
    log, idim = s.log, s.base.idim
    cutoffs = tuple(f.cutoff for f in log.filters)
    for j, name in enumerate(case.names):
        tau = np.concatenate([log.tau[a:b, j] for a, b in log.runs])
        one_way = np.min(tau) >= 0.0 or np.max(tau) <= 0.0
        if j not in case.bad or not (one_way and has_corner(np.abs(tau))):
            continue
        sign = np.sign(s.logged[1][:, j])
        for _ in range(limit.SIGNED):
            signed = np.repeat(sign, s.thin)[: len(log.tau)] * np.abs(log.tau[:, j])
            parts = [signed[:, None]], log.runs, log.rate, [cutoffs[j : j + 1]]
            own = low_pass_signals(*parts, s.thin)[0]
            torque = s.torque.copy()
            torque[:, j] = own[:, 0]
            theta = s.base.standard(s.driven(torque).problem.system.solve())
            before, sign = sign, np.sign(idim.torque(theta, *s.logged)[:, j])
            if np.array_equal(before, sign):
                break

        def change(s: Scene, j: int = j, own: Array = own[:, 0]) -> Scene:
            torque = s.torque.copy()
            torque[:, j] = own
            return s.driven(torque)

        yield Suspicion(
            "unsigned", f"the torque of {name} lost its sign", Reading.plain(n, change),
            advice=f"log the torque of {name} with its sign", freedom=1,
        )  # fmt: skip


def has_corner(size: Array) -> bool:
    """Whether a magnitude falls to zero within a sample, as that of what changes its sign does.

    What only comes near zero turns there slowly.
    """
    least = int(np.argmin(size))
    return bool(size[least] <= np.max(np.abs(np.diff(size[max(0, least - 1) : least + 2]))))


def suspect_mountings(case: LogCase) -> Iterator[Suspicion]:
    """Gravity along another axis: on a wall, on the ceiling; or there at all."""
    size = float(np.linalg.norm(case.robot.gravity)) or STANDARD
    idim = case.scene.base.idim
    skew = replace(case.robot, gravity=np.array([0.31, -0.47, 0.83]) * size)

    @cache
    def skewed() -> tuple[BaseParameters, Packing]:
        base = base_parameters(idim.of(skew))
        return base, idim.packing(base.kept)

    for robot, told in suspect_gravities(case.robot, size):

        def change(s: Scene, robot: Robot = robot) -> Scene:
            base, packing = skewed()
            return replace_base(s, replace(base, idim=base.idim.of(robot)), packing)

        yield replace(told, reading=Reading.plain(case.n, change))


def suspect_coupled_drives(case: LogCase) -> Iterator[Suspicion]:
    """A drive that turns with the joint before, too, and the file does not say so; or does."""
    names, turns = case.names, case.robot.drives.turns
    worst = set(np.argsort(-case.errors[: case.n])[: limit.WORST].tolist())
    for i, j in pairwise(case.robot.driven):
        if not {i, j} <= worst and case.n > limit.WORST:
            continue
        for share in (0.0,) if turns[j, i] != 0.0 else (1.0, -1.0):
            other = turns.copy()
            other[j, i] = share
            robot = replace(case.robot, drives=replace(case.robot.drives, turns=other))

            @cache
            def coupled(robot: Robot = robot) -> tuple[BaseParameters, Packing]:
                known = case.scene.base.idim
                other = build_idim(robot, known.friction, known.rotor, elements=known.elements)
                base = base_parameters(other)
                return base, other.packing(base.kept)

            def change(s: Scene, of: Callable[[], Any] = coupled) -> Scene:
                return replace_base(s, *of())

            row = f"{{ {names[i]} = {share:g}, {names[j]} = 1 }}"
            word = f"turns with {names[i]}, too" if share else "turns alone"
            yield Suspicion(
                "coupled drive",
                f"the drive of {names[j]} {word}",
                Reading.plain(case.n, change),
                advice=f"write row = {row} of [[drive]] {names[j]} in the robot file",
            )


RATES = (2.0, 3.0, 4.0, 5.0, 8.0, 10.0, 60.0, 1000.0, 1e6)
"""By how many times a rate may be wrong: rows left out, minutes, milliseconds."""


def suspect_rates(case: LogCase) -> Iterator[Suspicion]:
    """A time axis that is another: inertia and gravity do not go together.

    Of positions that no filter smooths none that is slower: it would only make their noise less.
    """
    log = case.scene.log
    for factor in (*RATES, *(1.0 / rate for rate in RATES)):
        right = factor * log.rate
        if not limit.SLOWEST_RATE <= right <= limit.FASTEST_RATE or (log.rough and factor < 1.0):
            continue

        def change(s: Scene, factor: float = factor) -> Scene:
            return s.quicker(factor)

        yield Suspicion(
            "rate",
            f"time runs {factor:.4g} times as fast as the log says",
            Reading.plain(case.n, change),
            rate=right,
            advice=f"set rate = {right:.6g} and clock = 'rate' in [[log]], or the unit of its time",
        )


SCALES, FINER = np.geomspace(1.0 / 300.0, 300.0, 201), np.geomspace(1.0 / 1.06, 1.06, 21)
"""Factors of a joint's torque that are tried, and those about the best of them."""


def suspect_torque_scales(case: LogCase) -> Iterator[Suspicion]:
    """The torque of one joint in another unit, or on the other side of its gear.

    The joint's rows lose weight as its torque grows. Of orthonormal factors of all rows that
    joint's have singular values, and along these the error is a sum for each factor of the torque.
    """
    problem = case.scene.problem
    weights, system = problem.scale, problem.system
    for j in range(case.n):
        if weights[j] == 0.0 or case.scene.blur[j] >= limit.DROWNED:
            continue
        weight = np.sqrt(weights[j])
        root = problem.project(j, weight * np.eye(len(problem.sides[j])))
        basis, values, _ = np.linalg.svd(root, full_matrices=False)
        told = values > FAINT
        shares, basis = values[told] ** 2, basis[:, told]
        part = basis.T @ (root @ (weight * problem.sides[j]))
        rest = basis.T @ system.b - part

        factor = 1.0
        for factors in (SCALES, FINER):
            size = factor * factors
            left = 1.0 + shares * (size[:, None] ** -2.0 - 1.0)
            explained = (rest + part / size[:, None]) ** 2 / np.maximum(left, FAINT**2)
            factor = float(size[int(np.argmax(np.sum(explained, axis=1)))])
        yield suspect_scaled_joint(case.robot, j, 1.0 / factor, "what the others predict")


def suspect_torque_sides(case: LogCase) -> Iterator[Suspicion]:
    """Torques on the other side of the gears that the robot's file has."""
    to_joint = case.robot.drives.reduction.T
    for torque, there, here in (
        (to_joint, "motors", "joints"),
        (np.asarray(np.linalg.inv(to_joint)), "joints", "motors"),
    ):
        yield Suspicion(
            "torque side",
            f"the torques are those of the {there}, not of the {here}",
            replace(Reading.plain(case.n), torque=torque),
            advice=f"check side in [[log]]: positions and torques are taken to be of the {here}",
        )


def suspect_foreign_scales(case: LogCase) -> Iterator[Suspicion]:
    """Torques in another unit than those of the other logs, or on the other side of gears.

    Each joint's factor is that on the torque which the other logs' model asks for; then on that
    which all logs' model asks for, once this log is read so.
    """
    s = case.scene
    if not s.beside:
        return
    factor = measure_scales(case)
    if factor is None:
        return
    off = np.abs(np.abs(factor) - 1.0) > limit.OTHER
    joint = np.flatnonzero(off)
    if len(joint) == 1 and s.blur[joint[0]] < limit.DROWNED:
        j = int(joint[0])
        yield suspect_scaled_joint(case.robot, j, float(factor[j]), "that of the other log")
    for given, freedom in ((np.full(case.n, measure_common_scale(s)), 1), (factor, case.n)):
        if np.any(np.abs(np.abs(given) - 1.0) > limit.OTHER):
            times = ", ".join(f"{f:.3g}" for f in given[: 1 if freedom == 1 else None])
            yield Suspicion(
                "torque scale",
                f"the torques are {times} times those of the other log",
                replace(Reading.plain(case.n), torque=np.diag(1.0 / given)),
                freedom=freedom,
                advice="check their unit, gains and the side of the reduction in both logs",
            )


def measure_scales(case: LogCase) -> Array | None:
    """How many times each torque is that which the other logs' model asks for, shape (n,).

    Then that which all logs' model asks for, once this log is read so. None where a torque is
    nothing of that.
    """
    s, beta = case.scene, case.of_others
    for _ in range(limit.SCALE_ROUNDS):
        asked = np.where(s.moving, s.motion.predict(beta), 0.0)
        there, square = np.sum(asked * s.tau, axis=0), np.sum(asked**2, axis=0)
        factor: Array = there / (square + np.finfo(float).tiny)
        if not np.all(np.abs(factor) > 0.0):
            return None
        beta = fit_consistent_model(s.columns.read(np.diag(1.0 / factor)))
    return factor


def measure_common_scale(s: Scene) -> float:
    """How many times all torques are those of the other logs."""
    times = 1.0
    for _ in range(limit.SCALE_ROUNDS):  # the log's weight changes with it
        times /= measure_gain(s.driven(s.torque / times))[1]
    return times


def suspect_nothing(_: Any) -> Iterator[Any]:
    """What is not asked of a kind of logs."""
    return iter(())


def is_any(scene: Scene) -> bool:
    """All logs."""
    return True


def is_plain(scene: Scene) -> bool:
    """Logs of torques of a fixed robot's joints."""
    return scene.plain


def is_general(scene: Scene) -> bool:
    """Logs of robots that float, touch something, or have locked joints."""
    return not scene.plain


def has_reductions(scene: Scene) -> bool:
    """Logs of a robot with gears between its motors and joints, as far as its file tells."""
    return scene.plain and not np.array_equal(scene.robot.drives.reduction, np.eye(scene.n))


def has_torques(scene: Scene) -> bool:
    """Logs of torques."""
    return scene.log.torque != "none"


def has_wrenches(scene: Scene) -> bool:
    """Logs of contacts' wrenches."""
    return bool(scene.wrenches)


def has_unit(scene: Scene) -> bool:
    """Logs of an inertial unit on the base, without an orientation, which would tell its own."""
    base = scene.log.base
    return base is not None and base.proper and not base.oriented and base.mount is not None


@dataclass(frozen=True)
class Diagnosis:
    """What a log may be suspected of."""

    suspect: Callable[[LogCase], Iterator[Suspicion]]
    """The suspicions, with their sizes, of a log of torques that is looked at."""
    applies: Callable[[Scene], bool] = is_plain
    """Of which of these logs they are."""
    follow: Callable[[TrackingCase], Iterator[OtherReading]] = suspect_nothing
    """The same of a log of encoders alone, by its targets and their law."""


DIAGNOSES: dict[str, Diagnosis] = {
    "torque sign": Diagnosis(
        partial(suspect_signs, "torque sign", "torque", ("tau",)), has_torques
    ),
    "torque order": Diagnosis(suspect_torque_orders, has_torques),
    "torque side": Diagnosis(suspect_torque_sides, has_reductions),
    "delay": Diagnosis(suspect_delays, follow=suspect_target_delays),
    "position delay": Diagnosis(suspect_position_lags),
    "encoder offset": Diagnosis(suspect_encoder_offsets, is_any, suspect_tracked_zeros),
    "drift": Diagnosis(suspect_drifts),
    "gain step": Diagnosis(suspect_gain_steps),
    "position sign": Diagnosis(
        partial(suspect_signs, "position sign", "position", ("q", "qref")),
        is_any,
        suspect_target_signs,
    ),
    "position order": Diagnosis(
        partial(suspect_orders, "position order", "the positions", ("q",)),
        follow=suspect_tracked_orders,
    ),
    "joint order": Diagnosis(
        partial(suspect_orders, "joint order", "positions and torques", ("q", "tau", "qref")),
    ),
    "position unit": Diagnosis(suspect_position_units),
    "absolute encoder": Diagnosis(suspect_absolute_encoders),
    "reversed time": Diagnosis(suspect_reversed_time),
    COMPUTED: Diagnosis(suspect_computed_torques),
    "gravity": Diagnosis(suspect_missing_gravity),
    "mounting": Diagnosis(suspect_mountings, follow=suspect_mounted_targets),
    "coupled drive": Diagnosis(suspect_coupled_drives),
    "rate": Diagnosis(suspect_rates),
    "torque scale of a joint": Diagnosis(suspect_torque_scales),
    "load": Diagnosis(suspect_loads),
    "friction": Diagnosis(suspect_missing_friction),
    "spring": Diagnosis(suspect_springs),
    "ripple": Diagnosis(suspect_ripples),
    "unsigned": Diagnosis(suspect_lost_signs),
    "torque scale": Diagnosis(suspect_foreign_scales, follow=suspect_scales),
    "push": Diagnosis(suspect_nothing, follow=suspect_pushes),
    "slow logger": Diagnosis(suspect_slow_loggers),
    "late signal": Diagnosis(suspect_late_signals, is_general),
    "wrench sign": Diagnosis(suspect_wrench_signs, has_wrenches),
    "wrench order": Diagnosis(suspect_wrench_orders, has_wrenches),
    "wrench axes": Diagnosis(suspect_wrench_axes, has_wrenches),
    "wrench unit": Diagnosis(suspect_wrench_units, has_wrenches),
    "unit mounting": Diagnosis(suspect_unit_mountings, has_unit),
}
"""What is looked for, and in which logs."""
