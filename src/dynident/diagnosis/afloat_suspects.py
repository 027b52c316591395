"""What may be wrong with a log of a floating robot: with torques, wrenches, and the base."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.diagnosis.afloat_scene import BASE, JOINTS, WRENCHES, Reading, Scene, Signals
from dynident.diagnosis.suspicion import Suspected
from dynident.dynamics.contacts import follow_contact
from dynident.recording.floating import to_rpy
from dynident.recording.mend import Mending
from dynident.robot.model import Robot

LATE, ASKEW = 0.02, 0.05
"""Delays and offsets that are tried first [s, rad or m]."""
FINE, MANY = 20.0, 20
"""How much finer these are found, and by how many readings at most."""
REACH = 2.0
"""How far the first look reaches, in these sizes."""
CLOSE = 10.0
"""How much finer they are measured at all instants, about what was found at few."""
LIKELY = 4
"""Joints whose zeros are measured."""
LONGEST, WIDEST = 0.25, 0.6
"""Delays and offsets that are believed at most [s, rad or m]."""
SCALES = {"in kN": 1000.0, "in kgf": 9.81, "1000 times too large": 1e-3}
"""Units that wrenches may have been logged in: what they are in N, or Nm."""


Suspicion = Suspected[Reading]
"""What may be wrong with a scene's signals."""


def suspect_torque_signs(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Torques of the other sign: one joint's, or all."""
    names, n = scene.robot.joint_names, scene.robot.n
    if scene.log.torque == "none":
        return
    each = [(f" of {names[j]} has", np.where(np.arange(n) == j, -1.0, 1.0)) for j in sorted(bad)]
    for which, sign in [*each, ("s of all joints have", -np.ones(n))]:
        mending = Mending(sign={"tau": -1.0 if np.all(sign < 0.0) else tuple(sign.tolist())})
        yield Suspicion(
            "torque sign",
            f"the torque{which} the other sign",
            make_scaled_reading("tau", sign),
            mending,
        )


def suspect_torque_orders(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Torque columns in another order: two joints', two limbs', or sorted by another rule."""
    if scene.log.torque == "none":
        return
    for what, order in list_column_orders(scene.robot, bad):
        places = np.array(order) - 1

        def reading(s: Signals, places: Integers = places) -> Signals:
            return {**s, "tau": s["tau"][:, places]}

        yield Suspicion(
            "torque order", f"the torques {what}", reading, Mending(order={"tau": order})
        )


def list_column_orders(robot: Robot, bad: frozenset[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Orders that columns of joints may have been written in, in words."""
    names, n = robot.joint_names, robot.n
    seen = {tuple(range(1, n + 1))}

    def new(order: list[int]) -> bool:
        fresh = tuple(order) not in seen
        seen.add(tuple(order))
        return fresh

    for i, j in combinations(sorted(bad), 2):
        order = list(range(1, n + 1))
        order[i], order[j] = order[j], order[i]
        if new(order):
            yield f"of {names[i]} and {names[j]} are in each other's columns", tuple(order)
    limbs = find_equal_limbs(robot)
    for one, other in combinations(limbs, 2):
        order = list(range(1, n + 1))
        for i, j in zip(one, other, strict=True):
            order[i], order[j] = order[j], order[i]
        if new(order):
            ends = f"{names[one[0]]} ... {names[one[-1]]} and {names[other[0]]} ... "
            yield f"of {ends}{names[other[-1]]} are in each other's columns", tuple(order)
    if len(limbs) > 1 and sorted(j for limb in limbs for j in limb) == list(range(n)):
        # all first joints, then all second ones
        column = {j: k for k, j in enumerate(j for own in zip(*limbs, strict=True) for j in own)}
        order = [column[j] + 1 for j in range(n)]
        if new(order):
            yield "are sorted by joints, not by limbs", tuple(order)
    order = sorted(range(n), key=names.__getitem__)
    order = [order.index(j) + 1 for j in range(n)]
    if new(order):
        yield "are sorted by name", tuple(order)
    if new(list(range(n, 0, -1))):
        yield "are in the opposite order", tuple(range(n, 0, -1))


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


def suspect_position_signs(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """A joint's position of the other sign."""
    names, n = scene.robot.joint_names, scene.robot.n
    for j in sorted(bad):
        sign = np.where(np.arange(n) == j, -1.0, 1.0)

        def reading(s: Signals, sign: Array = sign) -> Signals:
            return {**s, **{label: sign * s[label] for label in JOINTS}}

        given = tuple(sign.tolist())
        yield Suspicion(
            "position sign",
            f"the position of {names[j]} has the other sign",
            reading,
            Mending(sign={"q": given, "qref": given}),
        )


def suspect_encoder_offsets(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """A joint's encoder whose zero is elsewhere: by how much, is fitted."""
    names, n = scene.robot.joint_names, scene.robot.n

    def shifted(j: int) -> Callable[[float], Reading]:
        return lambda size: lambda s: {**s, "q": s["q"] + size * (np.arange(n) == j)}

    rough = [
        (*found, j)
        for j in sorted(bad)
        if (found := find_rough_size(scene, shifted(j), ASKEW, WIDEST)) is not None
    ]
    for _, about, j in sorted(rough)[:LIKELY]:
        size = measure_size(scene, shifted(j), about, ASKEW, WIDEST)
        if size is None:
            continue
        unit = "m" if scene.robot.joints[j].kind == "prismatic" else "rad"
        offset = tuple(round(size, 6) if k == j else 0.0 for k in range(n))
        yield Suspicion(
            "encoder offset",
            f"the zero of {names[j]} is {-size:.3g} {unit} off",
            shifted(j)(size),
            Mending(offset=offset),
            freedom=1,
        )


def suspect_delays(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Torques, wrenches or the base that stand later in the log than the joints' motion."""
    wrenches = tuple(WRENCHES + name for name in scene.wrenches)
    groups: list[tuple[str, str, tuple[str, ...]]] = []
    if scene.log.torque != "none":
        groups.append(("torque delay", "the torques stand", ("tau",)))
    if wrenches:
        groups.append(("wrench delay", "the contacts' wrenches stand", wrenches))
    if scene.log.base is not None and not scene.log.base.still:
        groups.append(("base delay", "the base's motion stands", BASE))
    for diagnosis, what, labels in groups:

        def later(size: float, labels: tuple[str, ...] = labels) -> Reading:
            return lambda s: {
                **s,
                **{label: shift_columns(s[label], size * scene.rate) for label in labels},
            }

        found = find_rough_size(scene, later, LATE, LONGEST)
        size = None if found is None else measure_size(scene, later, found[1], LATE, LONGEST)
        if size is None:
            continue
        word = "later" if size > 0.0 else "earlier"
        milliseconds = f"{1000.0 * abs(size):.3g} ms"
        own = diagnosis == "torque delay"
        yield Suspicion(
            diagnosis,
            f"{what} {milliseconds} {word} in the log than the joints' positions",
            later(size),
            Mending(delay=round(size, 6)) if own else None,
            f"shift these columns by {milliseconds}, or set one clock for all sensors",
            freedom=1,
        )


def suspect_wrench_signs(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Wrenches of the world on the robot that were logged as the robot's on the world."""
    groups: list[tuple[str, ...]] = [(name,) for name in scene.wrenches]
    if len(groups) > 1:
        groups.append(scene.wrenches)
    for names in groups:

        def reading(s: Signals, names: tuple[str, ...] = names) -> Signals:
            return {**s, **{WRENCHES + name: -s[WRENCHES + name] for name in names}}

        stated = {c.name: c.sign for c in scene.robot.contacts}
        yield Suspicion(
            "wrench sign",
            f"the wrench{'es' * (len(names) > 1)} of {', '.join(names)} "
            f"{'has' if len(names) == 1 else 'have'} the other sign",
            reading,
            advice=f"set sign = {-stated[names[0]]:.0f} in [[contact]] {', '.join(names)}",
        )


def suspect_wrench_orders(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Two contacts' wrenches in each other's columns."""
    for one, other in combinations(scene.wrenches, 2):
        a, b = WRENCHES + one, WRENCHES + other
        if scene.signals[a].shape != scene.signals[b].shape:
            continue

        def reading(s: Signals, a: str = a, b: str = b) -> Signals:
            return {**s, a: s[b], b: s[a]}

        yield Suspicion(
            "wrench order",
            f"the wrenches of {one} and {other} are in each other's columns",
            reading,
            advice=f"name them in columns: wrench_{one} as those of {other}, wrench_{other} as "
            f"those of {one}",
        )


def suspect_wrench_axes(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Wrenches in the world's axes that were taken for the frame's, or the other way round."""
    base = scene.log.base
    if base is None or not base.oriented or not scene.wrenches:
        return
    contacts = [c for c in scene.robot.contacts if c.name in scene.wrenches]
    axes = contacts[0].axes

    def reading(s: Signals) -> Signals:
        found = dict(s)
        q = np.hstack([s["pose"], s["q"]])
        for contact in contacts:
            turn = follow_contact(scene.base.idim.tree, scene.robot, contact, q).turn
            if contact.axes == "frame":
                turn = np.swapaxes(turn, 1, 2)
            parts = s[WRENCHES + contact.name].reshape(len(q), -1, 3)
            found[WRENCHES + contact.name] = np.einsum("tij,tkj->tki", turn, parts).reshape(
                len(q), -1
            )
        return found

    right = "world" if axes == "frame" else "frame"
    yield Suspicion(
        "wrench axes",
        f"the wrenches are in the axes of the {'world' if right == 'world' else 'frames'}",
        reading,
        advice=f'set axes = "{right}" in [[contact]]',
    )


def suspect_wrench_units(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Wrenches that were logged in another unit."""
    for unit, size in SCALES.items() if scene.wrenches else ():

        def reading(s: Signals, size: float = size) -> Signals:
            return {k: size * x if k.startswith(WRENCHES) else x for k, x in s.items()}

        yield Suspicion(
            "wrench unit",
            f"the wrenches are {unit}",
            reading,
            advice="write them into the log in N and Nm",
        )


def suspect_mountings(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """An inertial unit with its axes along others of the base; an orientation would tell."""
    base = scene.log.base
    if base is None or not base.proper or base.oriented or base.turn is None or base.mount is None:
        return
    mount = base.mount
    for R in list_right_angled_turns():

        def reading(s: Signals, R: Array = R) -> Signals:
            rate, spin = s["twist"][:, 3:], s["acceleration"][:, 3:]
            felt = (s["acceleration"][:, :3] + compute_lever_acceleration(rate, spin, mount)) @ R.T
            rate, spin = rate @ R.T, spin @ R.T
            return {
                **s,
                "twist": np.hstack([s["twist"][:, :3], rate]),
                "acceleration": np.hstack(
                    [felt - compute_lever_acceleration(rate, spin, mount), spin]
                ),
            }

        rpy = ", ".join(f"{round(angle, 6) + 0.0:g}" for angle in to_rpy(R @ base.turn))
        yield Suspicion(
            "unit mounting",
            "the inertial unit is turned otherwise in the base",
            reading,
            advice=f"set imu_rpy = [{rpy}] in [[log]]",
        )


def list_right_angled_turns() -> Iterator[Array]:
    """All right-angled turns but none."""
    axes = (*np.eye(3), *-np.eye(3))
    for first, second in permutations(axes, 2):
        R = np.column_stack([first, second, np.cross(first, second)])
        if not first @ second and not np.array_equal(R, np.eye(3)):
            yield R


def compute_lever_acceleration(rate: Array, spin: Array, place: Array) -> Array:
    """Acceleration of a place in a body beyond that of its origin."""
    return np.asarray(np.cross(spin, place) + np.cross(rate, np.cross(rate, place)))


def make_scaled_reading(label: str, factor: Array) -> Reading:
    """One signal times something."""
    return lambda s: {**s, label: factor * s[label]}


def shift_columns(signal: Array, samples: float) -> Array:
    """Columns as they stand so many samples later, between samples linearly."""
    place = np.arange(len(signal), dtype=float)
    return np.column_stack([np.interp(place + samples, place, column) for column in signal.T])


def find_rough_size(
    scene: Scene, reading: Callable[[float], Reading], size: float, limit: float
) -> tuple[float, float] | None:
    """What least squares leaves at few instants at the best size, and that size; None for no less.

    Parameters
    ----------
    reading : callable
        Of a size.
    size : float
        That is tried first.
    limit : float
        On sizes.
    """
    from scipy.optimize import minimize_scalar  # a quarter of a second that few runs need

    brief = scene.brief

    def left(x: float) -> float:
        return float(brief.read(reading(x)(brief.signals)).free())

    before, below, above = brief.normal.free(), left(-size), left(size)
    steps, least = minimise_parabola(below, before, above)
    # without rows that could tell, nothing is left at any size
    if before == 0.0 or not np.min([least, below, above]) <= HOPEFUL * before:
        return None
    centre = size * steps
    if abs(steps) == REACH:  # on, as long as it falls
        onwards, here, last = float(np.sign(steps)) * size, left(centre), np.inf
        while here < last and abs(centre) <= limit:
            centre, last, here = centre + onwards, here, left(centre + onwards)
        centre -= onwards
        if abs(centre) > limit:
            return None
    found = minimize_scalar(
        left, bounds=(centre - size, centre + size), method="bounded",
        options={"xatol": size / FINE, "maxiter": MANY},
    )  # fmt: skip
    return float(found.fun), float(found.x)


def measure_size(
    scene: Scene, reading: Callable[[float], Reading], about: float, size: float, limit: float
) -> float | None:
    """The size by all instants, by a parabola about a rough one; None where it leaves no less."""
    step = size / CLOSE
    below, here, above = (
        float(scene.read(reading(x)(scene.signals)).free())
        for x in (about - step, about, about + step)
    )
    found = about + step * minimise_parabola(below, here, above)[0]
    return found if abs(found) <= limit and here <= HOPEFUL * scene.normal.free() else None


def minimise_parabola(below: float, here: float, above: float) -> tuple[float, float]:
    """Where a parabola through three values, a step apart, is least, and its value there.

    In steps from the middle, at most `REACH`; where it bends down, as far as that.
    """
    slope, bend = 0.5 * (above - below), below - 2.0 * here + above
    at = -slope / bend if bend > 0.0 else -np.sign(slope) * np.inf
    at = float(np.clip(at, -REACH, REACH))
    return at, here + slope * at + 0.5 * bend * at**2


HOPEFUL = 0.9
"""Share of the squared error that a size has to leave at most to be looked at closely."""

DIAGNOSES: dict[str, Callable[[Scene, frozenset[int]], Iterator[Suspicion]]] = {
    "torque sign": suspect_torque_signs,
    "torque order": suspect_torque_orders,
    "position sign": suspect_position_signs,
    "encoder offset": suspect_encoder_offsets,
    "delay": suspect_delays,
    "wrench sign": suspect_wrench_signs,
    "wrench order": suspect_wrench_orders,
    "wrench axes": suspect_wrench_axes,
    "wrench unit": suspect_wrench_units,
    "unit mounting": suspect_mountings,
}
"""Suspicions of a log by name, joints that are not explained well given."""
