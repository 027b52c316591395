"""Friction under load, simulated: torques, energies, exact tangents, drives that lock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy
from frictions import values
from test_sensitivities import PD, RATE, SAMPLES, assert_differences_agree, one_of_each
from test_simulation import ROBOTS, wave

from dynident.control.controller import CONTROLLERS
from dynident.core.errors import InputError, RolloutError
from dynident.dynamics.idim import build_idim
from dynident.dynamics.inverse import evaluate_inverse_dynamics
from dynident.estimators.closed_loop import Simulation
from dynident.friction.model import Element, FrictionModel, LinearTerm
from dynident.friction.models import FRICTIONS
from dynident.methods.options import estimate
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout

GAINS = ("fl", "fls", "fld", "fle", "fl2", "flg")
LOADED = [name for name, model in FRICTIONS.items() if "load" in model.needs]


def valued(idim, **own):
    """Standard parameters, some symbols of friction as given."""
    theta = values(idim)
    for k, parameter in enumerate(idim.parameters):
        theta[k] = own.get(parameter.symbol.removesuffix("m"), theta[k])
    return theta


def under(robot, friction, integrator="ode3", settings=PD, **own):
    robot = ROBOTS[robot]
    idim = build_idim(robot, friction)
    control = CONTROLLERS["pd"](n=robot.n, **settings)
    reference = wave(robot.n, SAMPLES / RATE, RATE)
    loop = Loop(idim, control, reference, width=np.full(robot.n, 0.2), integrator=integrator)
    return loop, valued(idim, **own)


@pytest.mark.parametrize("integrator", ["ode3", "sdirk2"])
@pytest.mark.parametrize("robot", ["coupled", "tree"])
@pytest.mark.parametrize("friction", LOADED)
def test_torques_are_those_of_the_columns_along_the_motion(friction, robot, integrator):
    # 0.9 of the load where it is driven: all but locked
    loop, theta = under(robot, friction, integrator, fl=0.6, fls=0.3, fld=0.7, fle=0.9)
    motion = rollout(loop, theta)
    tau = loop.idim.torque(theta, motion.q, motion.dq, motion.ddq, loop.width)
    np.testing.assert_allclose(motion.tau, tau, rtol=0.0, atol=1e-12 * np.abs(tau).max())
    bare, zeros = under(robot, friction, integrator, **dict.fromkeys(GAINS, 0.0))
    assert np.max(np.abs(rollout(bare, zeros).q - motion.q)) > 1e-3


@pytest.mark.parametrize("robot", ["coupled", "tree"])
@pytest.mark.parametrize("clock", [{}, {"rate": RATE}], ids=["continuous", "sampled"])
@pytest.mark.parametrize("integrator", ["ode3", "sdirk2"])
def test_tangents_are_exact(integrator, clock, robot):
    # a law without a bend: differences across one are those of neither side
    settings = {**PD, **clock}
    loop, theta = under(robot, "load-square", integrator, settings, fl=0.0, fl2=0.003)
    every = [*one_of_each(loop.idim), loop.idim.names.index("fl21")]
    columns = [k for k in dict.fromkeys(every) if theta[k] != 0.0]
    assert_differences_agree(loop, theta, columns, 1e-6)


@pytest.mark.parametrize("friction", [name for name in LOADED if name != "load-gain"])
def test_an_arm_that_falls_loses_energy(friction):
    robot = toy.arm(2)
    idim = build_idim(robot, friction)
    theta = valued(idim, fv=0.05, fc=0.1, fs=0.0, off=0.0, fl=0.3, fld=0.3, fle=0.3)
    control = CONTROLLERS["pd"](n=2, kp=1e-12, kd=0.0)
    reference = wave(2, 2.0, 1000.0)
    loop = Loop(idim, control, reference, width=np.full(2, 0.05), q0=np.array([0.5, -0.4]))
    loop = replace(loop, dq0=np.zeros(2))
    motion = rollout(loop, theta)
    phi, _ = idim.split(theta)
    rotors = idim.rotors(theta)
    rigid = evaluate_inverse_dynamics(idim.tree, phi, motion.q, motion.dq, motion.ddq)
    power = np.sum(motion.dq * (motion.tau - rigid - motion.ddq @ rotors), axis=1)
    assert np.max(np.abs(motion.dq)) > 0.5
    # what the drives give less what bodies and rotors take is friction's
    assert np.min(power) >= -1e-9
    assert np.max(power) > 0.1


def test_drives_of_their_own_stand_beside_the_model():
    """An element under load is the same as a model's friction."""
    loop, theta = under("tree", "load", fl=0.2)
    n = loop.idim.robot.n
    plain = build_idim(loop.idim.robot, "coulomb-viscous")
    share = FrictionModel((LinearTerm("fl", "", True),), (), FRICTIONS["load"].law, needs=("load",))
    elements = tuple(Element(j, share, (0.2,)) for j in range(n))
    kept = [loop.idim.names.index(name) for name in plain.names]
    other = rollout(replace(loop, idim=plain, elements=elements), theta[kept])
    np.testing.assert_allclose(other.q, rollout(loop, theta).q, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("integrator", ["ode3", "sdirk2"])
@pytest.mark.parametrize(
    ("friction", "own"),
    [("load", {"fl": 1.2}), ("directional-load", {"fle": 1.2}), ("load-square", {"fl2": 0.5})],
)
def test_drives_that_lock_themselves_are_named(friction, own, integrator):
    loop, theta = under("tree", friction, integrator, **own)
    with pytest.raises(RolloutError, match=r"friction of .* takes up as much as its load .* locks"):
        rollout(loop, theta)


def test_a_motor_that_drives_may_lose_more_than_its_load():
    loop, theta = under("tree", "directional-load", fld=1.5, fle=0.5)
    assert np.isfinite(rollout(loop, theta).q).all()


def test_methods_that_simulate_refuse_it():
    recording, _ = toy.log(toy.arm(1), seconds=4.0, noise=0.1)
    problem = Problem(toy.arm(1), prepare(recording, 5.0), "load")
    simulation = Simulation(CONTROLLERS["pd"](n=1, kp=50.0, kd=5.0))
    for method in ("idim-iv", "cloe", "pc-didim"):
        with pytest.raises(InputError, match=r"method .* does not follow it; take wls"):
            estimate(problem, method, simulation=simulation)
