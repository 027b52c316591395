"""Methods that simulate the loop on closed chains, on logs that MuJoCo made under the same law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linkage_logs import follow_in_mujoco, make_log, plan_motion, state_truth
from linkages import load_linkage

import dynident as di
from dynident.control.controller import pd
from dynident.control.reference import Reference
from dynident.core.errors import InputError
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.robot.closure import Closure
from dynident.simulation.stability import check_integration, check_loop

RATE, STEPS = 200.0, 5
KP, KD = 4000.0, 60.0
"""Those of `follow_in_mujoco`."""


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return load_linkage("palletiser.xml", tmp_path_factory.mktemp("palletiser"))


def make_problem(robot, seconds, noise=0.05):
    """A log with its targets, of driven joints alone, and the values it was made with."""
    _, motion = plan_motion(robot, seconds, RATE, 1, base=0.5)
    values = np.where(robot.passive, 0.02, 0.3), np.where(robot.passive, 0.0, 0.05)
    q, tau = follow_in_mujoco(robot.source, robot, motion, RATE, STEPS, values)
    log = make_log(robot, q, tau, RATE, noise, 1, "made")
    told = np.where(robot.passive, 0.0, motion[0]), np.where(robot.passive, 0.0, motion[1])
    log = replace(log, qref=told[0], dqref=told[1])
    problem = di.Problem(robot, di.prepare(log, bandwidth=8.0), "viscous")
    return problem, state_truth(problem.idim, values)


def build_simulation(robot, substeps=STEPS):
    return Simulation(pd(kp=[KP] * robot.n, kd=[KD] * robot.n), substeps=substeps)


@pytest.mark.long
def test_a_chain_under_its_law_moves_as_mujoco_says(robot):
    problem, truth = make_problem(robot, 0.6)
    auxiliary = build_auxiliary_model(problem, build_simulation(robot))
    (motion,) = auxiliary.motions(truth)
    passive = robot.passive
    assert np.abs(Closure(robot).measure(motion.q)).max() < 1e-9
    inner = slice(*problem.samples[0].segments[0])
    error = (motion.q - problem.samples[0].measured)[inner, ~passive]
    follows = (motion.q - auxiliary.loops[0][0][2].reference.q)[inner, ~passive]
    # what the law lags by is some hundred times what both simulations differ by
    assert np.abs(follows).max() > 20.0 * np.abs(error).max()
    assert not motion.tau[:, passive].any()


def test_targets_of_passive_joints_are_where_loops_have_them(robot):
    problem, _ = make_problem(robot, 0.6)
    ((_, _, loop),) = build_auxiliary_model(problem, build_simulation(robot)).loops[0]
    assert np.abs(Closure(robot).measure(loop.reference.q)).max() < 1e-9
    assert np.ptp(loop.reference.q[:, robot.passive], axis=0).min() > 0.01
    assert np.all(loop.gain[robot.passive] == 0.0)


def test_too_long_steps_and_wrong_gains_are_told_of_chains_too(robot):
    idim = di.build_idim(robot, "viscous")
    _, motion = plan_motion(robot, 0.3, RATE, 1)
    theta = idim.nominal
    law = pd(kp=[KP] * robot.n, kd=[KD] * robot.n)
    loop = di.Loop(idim, law, Reference(RATE, *motion), substeps=STEPS)
    check_integration(loop, theta)
    check_loop(loop, theta)
    with pytest.raises(InputError, match="is too stiff for ode3"):
        check_integration(replace(loop, substeps=1, controller=law.scaled(np.full(5, 50.0))), theta)
    with pytest.raises(InputError, match="is unstable"):
        check_loop(replace(loop, controller=law.scaled(np.full(5, -1.0))), theta)


@pytest.mark.parametrize(
    "method",
    [
        pytest.param("idim-iv", marks=pytest.mark.long),
        pytest.param("didim", marks=pytest.mark.slow),
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("pc-idim-iv", "pc-didim")),
    ],
)
def test_methods_that_simulate_find_what_mujoco_was_made_with(method, robot):
    problem, truth = make_problem(robot, 2.5)
    fit = di.identify(problem, method, simulation=build_simulation(robot, 2), doctor=False)
    z = (fit.estimate.beta - problem.base.matrix @ truth) / fit.estimate.covariance.std
    assert np.mean(np.abs(z) < 1.96) > 0.8
    assert np.max(np.abs(z)) < 4.5
    plain = di.identify(problem, "wls", doctor=False)
    difference = (fit.estimate.beta - plain.estimate.beta) / plain.estimate.covariance.std
    assert np.max(np.abs(difference)) > 1e-6  # another estimate, of other rows


def test_derivatives_of_the_motion_are_refused(robot):
    problem, _ = make_problem(robot, 0.6)
    with pytest.raises(InputError, match="method cloe takes trees alone"):
        di.identify(problem, "cloe", simulation=build_simulation(robot))
