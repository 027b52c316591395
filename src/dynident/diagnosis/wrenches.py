"""What can be wrong with the wrenches of contacts, and with the inertial unit of a base."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np

from dynident.core.arrays import Array
from dynident.diagnosis.scene import Scene
from dynident.diagnosis.suspicion import LogCase, Reading, Suspicion
from dynident.dynamics.contacts import follow_contact
from dynident.instants.motion import WRENCHES
from dynident.robot.rotations import compute_lever_acceleration, to_rpy

SCALES = {"in kN": 1000.0, "in kgf": 9.81, "1000 times too large": 1e-3}
"""Units that wrenches may have been logged in: what they are in N, or Nm."""


def suspect_wrench_signs(case: LogCase) -> Iterator[Suspicion]:
    """Wrenches of the world on the robot that were logged as the robot's on the world."""
    measured = case.scene.wrenches
    groups: list[tuple[str, ...]] = [(name,) for name in measured]
    if len(groups) > 1:
        groups.append(measured)
    stated = {c.name: c.sign for c in case.robot.contacts}
    for names in groups:

        def change(s: Scene, names: tuple[str, ...] = names) -> Scene:
            return s.saying({WRENCHES + name: -s.signals[WRENCHES + name] for name in names})

        yield Suspicion(
            "wrench sign",
            f"the wrench{'es' * (len(names) > 1)} of {', '.join(names)} "
            f"{'has' if len(names) == 1 else 'have'} the opposite sign",
            Reading.plain(case.n, change),
            advice=f"set sign = {-stated[names[0]]:.0f} in [[contact]] {', '.join(names)}",
        )


def suspect_wrench_orders(case: LogCase) -> Iterator[Suspicion]:
    """Two contacts' wrenches in each other's columns."""
    for one, other in combinations(case.scene.wrenches, 2):
        a, b = WRENCHES + one, WRENCHES + other
        if case.scene.signals[a].shape != case.scene.signals[b].shape:
            continue

        def change(s: Scene, a: str = a, b: str = b) -> Scene:
            return s.saying({a: s.signals[b], b: s.signals[a]})

        yield Suspicion(
            "wrench order",
            f"the wrenches of {one} and {other} are in each other's columns",
            Reading.plain(case.n, change),
            advice=f"name them in columns: wrench_{one} as those of {other}, wrench_{other} as "
            f"those of {one}",
        )


def suspect_wrench_axes(case: LogCase) -> Iterator[Suspicion]:
    """Wrenches in the world's axes that were taken for the frame's, or the other way round."""
    scene, base = case.scene, case.scene.log.base
    if base is None or not base.oriented or scene.course is None:
        return
    contacts = [c for c in scene.robot.contacts if c.name in scene.wrenches]
    q = np.hstack([scene.signals["pose"], scene.course[0]])
    turned = {}
    for contact in contacts:
        turn = follow_contact(scene.base.idim.tree, scene.robot, contact, q).turn
        if contact.axes == "frame":
            turn = np.swapaxes(turn, 1, 2)
        turned[WRENCHES + contact.name] = turn

    def change(s: Scene) -> Scene:
        parts = {name: s.signals[name].reshape(len(q), -1, 3) for name in turned}
        found = {k: np.einsum("tij,tkj->tki", turned[k], own) for k, own in parts.items()}
        return s.saying({name: own.reshape(len(q), -1) for name, own in found.items()})

    right = "world" if contacts[0].axes == "frame" else "frame"
    yield Suspicion(
        "wrench axes",
        f"the wrenches are in the axes of the {'world' if right == 'world' else 'frames'}",
        Reading.plain(case.n, change),
        advice=f'set axes = "{right}" in [[contact]]',
    )


def suspect_wrench_units(case: LogCase) -> Iterator[Suspicion]:
    """Wrenches that were logged in another unit."""
    for unit, size in SCALES.items():

        def change(s: Scene, size: float = size) -> Scene:
            return s.saying({k: size * x for k, x in s.signals.items() if k.startswith(WRENCHES)})

        yield Suspicion(
            "wrench unit",
            f"the wrenches are {unit}",
            Reading.plain(case.n, change),
            advice="write them into the log in N and Nm",
        )


def suspect_unit_mountings(case: LogCase) -> Iterator[Suspicion]:
    """An inertial unit with its axes along others of the base; an orientation would tell."""
    base = case.scene.log.base
    assert base is not None
    place, turn = base.mount, base.turn
    assert place is not None
    assert turn is not None
    for R in list_right_angled_turns():

        def change(s: Scene, R: Array = R) -> Scene:
            (speed, rate), (felt, spin) = (
                np.hsplit(s.signals[label], 2) for label in ("twist", "acceleration")
            )
            felt = (felt + compute_lever_acceleration(rate, spin, place)) @ R.T
            rate, spin = rate @ R.T, spin @ R.T
            felt -= compute_lever_acceleration(rate, spin, place)
            return s.saying(
                {"twist": np.hstack([speed, rate]), "acceleration": np.hstack([felt, spin])}
            )

        rpy = tuple(round(angle, 6) + 0.0 for angle in to_rpy(R @ turn))
        yield Suspicion(
            "unit mounting",
            "the inertial unit is oriented differently in the base",
            Reading.plain(case.n, change),
            keys=(("imu_rpy", rpy),),
        )


def list_right_angled_turns() -> Iterator[Array]:
    """All right-angled turns but none."""
    axes = (*np.eye(3), *-np.eye(3))
    for first, second in permutations(axes, 2):
        R = np.column_stack([first, second, np.cross(first, second)])
        if not first @ second and not np.array_equal(R, np.eye(3)):
            yield R
