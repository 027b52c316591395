"""Branches of a fixed base, differentiated one by one, against the whole robot at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import robots
import toy
from test_sensitivities import LOOPS, MODELLED, RATE
from test_simulation import effect, wave

from dynident.control.controller import CONTROLLERS
from dynident.core.arrays import Array, Integers
from dynident.core.errors import RolloutError
from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import JointElements
from dynident.dynamics.structure import Structure
from dynident.friction.elements import spring
from dynident.robot.drives import Drives
from dynident.robot.model import Robot
from dynident.simulation import rollout as rollouts
from dynident.simulation.branches import find_branches, group_joints
from dynident.simulation.loop import Loop, LoopColumn
from dynident.simulation.rollout import SENSITIVITIES, SIGNALS, sensitive_rollout

FRICTION = "coulomb-viscous,stribeck,viscous-offset,coulomb-viscous,tanh-sech,load,lugre"
SAMPLES = 60


def two_arms() -> Robot:
    """An arm of four joints whose last drives are coupled, and one of three, joint by joint."""
    right, left = toy.arm(4, coupled=True), toy.arm(3)
    places, arms = ((0, 2, 4, 6), (1, 3, 5)), (right, left)
    joints, turns = {}, np.eye(7)
    for places_of, arm, side in zip(places, arms, ("right", "left"), strict=True):
        turns[np.ix_(places_of, places_of)] = arm.drives.turns
        for place, joint in zip(places_of, arm.joints, strict=True):
            parent = places_of[joint.parent - 1] + 1 if joint.parent else 0
            name, link = f"{side}_{joint.name}", f"{side}_{joint.link}"
            joints[place] = replace(joint, name=name, link=link, parent=parent)
    chain = tuple(joints[k] for k in range(7))
    drives = Drives(turns, np.eye(7), np.zeros(7), np.ones(7))
    return Robot("two arms", chain, robots.bodies(7), drives, gravity=np.array([1.0, 2.0, -9.0]))


def build_loop(kind: str, **options: object) -> tuple[Loop, Array]:
    """Two arms with friction of all kinds, and springs on one joint and over two of an arm."""
    springs = (JointElements(5, spring()), JointElements(1, spring(), over=3, ratio=-0.5))
    idim = Idim(Structure(two_arms(), FRICTION, True, springs))
    name, settings = LOOPS[kind]
    values = np.linspace(0.5, 1.5, len(idim.parameters) - idim.inertial)
    values[[p.symbol == "fl" for p in idim.drives]] = 0.05
    theta = np.concatenate([idim.robot.nominal.ravel(), values])
    control = CONTROLLERS[name](n=7, **settings)
    model = None if control.compensation == "none" else 0.8 * theta
    along = wave(7, SAMPLES / RATE, RATE)
    options = {"width": np.linspace(0.2, 0.3, 7), **options}
    return Loop(idim, control, along, model=model, **options), theta  # type: ignore[arg-type]


def mix_columns(loop: Loop) -> Integers:
    """All parameters and shapes in a mixed order."""
    return np.random.default_rng(1).permutation(len(loop.idim.parameters) + len(loop.idim.shape))


def assert_as_the_whole(
    monkeypatch: pytest.MonkeyPatch,
    loop: Loop,
    theta: Array,
    own: tuple[LoopColumn, ...] = (),
    begun: Array | None = None,
) -> None:
    """Motions and sensitivities by all parameters and shapes, and the loop's."""
    assert [branch.joints.tolist() for branch in find_branches(loop)] == [[0, 2, 4, 6], [1, 3, 5]]
    given = (loop, theta, mix_columns(loop), SENSITIVITIES, own, begun)
    apart = [*sensitive_rollout(*given)]
    monkeypatch.setattr(rollouts, "find_branches", lambda loop: ())
    whole = [*sensitive_rollout(*given)]
    for one, other in zip(apart, whole, strict=True):
        for name in SIGNALS:
            ours, theirs = getattr(one.motion, name), getattr(other.motion, name)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())
        for name in SENSITIVITIES:
            ours, theirs = getattr(one, f"by_{name}"), getattr(other, f"by_{name}")
            size = np.abs(theirs).max(axis=(0, 1))
            assert np.count_nonzero(size) > 0.8 * len(size)  # some bodies turn about one axis
            off = np.abs(ours - theirs).max(axis=(0, 1))
            assert np.all(off <= 1e-8 * np.maximum(size, 1e-3 * np.median(size)))


@pytest.mark.parametrize("kind", ["pd", "sampled pid", "delay", "state space", *MODELLED])
def test_of_every_parameter_under_a_controller(monkeypatch, kind):
    assert_as_the_whole(monkeypatch, *build_loop(kind))


def test_of_a_start_elsewhere_that_parameters_move_and_signals_from_outside(monkeypatch):
    rng = np.random.default_rng(3)
    signals = {name: 0.1 * rng.normal(size=(SAMPLES, 7)) for name in ("external", "noise")}
    starts = {name: 0.3 * rng.normal(size=7) for name in ("q0", "dq0", "bias")}
    loop, theta = build_loop("pd", **signals, **starts, elements=effect([1.0] * 7, [0.1] * 7))
    columns = mix_columns(loop)
    begun = np.zeros((7, len(columns)))
    for branch in find_branches(loop):
        moved, _, _ = branch.list_columns(loop.idim, columns, ())
        begun[np.ix_(branch.joints, moved)] = rng.normal(size=(len(branch.joints), len(moved)))
    assert_as_the_whole(monkeypatch, loop, theta, begun=begun)


def test_of_what_is_fitted_of_a_loop(monkeypatch):
    kinds = ("gain", "bias", "speed", "place")
    own = [LoopColumn(kind, j) for kind in kinds for j in (6, 0, 3)]
    own.insert(4, LoopColumn("delay"))
    loop, theta = build_loop("pd", held=True, integrator="sdirk2", width=None)
    loop = replace(loop, controller=replace(loop.controller, delay=1.4 / RATE))
    assert_as_the_whole(monkeypatch, loop, theta, tuple(own))


def test_what_couples_arms_makes_one_robot_of_them():
    loop, _ = build_loop("pd")
    belt = JointElements(6, spring(), over=5)
    structure = loop.idim.structure
    assert len(group_joints(replace(structure, elements=(belt,)))) == 1
    assert not find_branches(replace(loop, reads=(0, 0, 2, 3, 4, 5, 6)))
    assert find_branches(replace(loop, reads=(2, 1, 2, 3, 4, 5, 6)))


def test_a_branch_that_fails_says_which_joint_it_was():
    loop, theta = build_loop("pd")
    wild = replace(loop.controller, gain=np.array([1.0, 1, 1, 1, 1, -1e4, 1]))
    with pytest.raises(RolloutError, match="at left_joint"):
        [*sensitive_rollout(replace(loop, controller=wild), theta, [0])]
