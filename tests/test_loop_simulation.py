"""Methods that simulate the loop on closed chains, on logs that MuJoCo made under the same law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linkage_logs import (
    build_loop,
    follow_in_mujoco,
    make_log,
    plan_motion,
    roll_out_in_python,
    state_truth,
)
from linkages import load_linkage
from test_init import GRIPPER

import dynident as di
from dynident.control.controller import pd, pid
from dynident.control.reference import Reference, fourier
from dynident.core.errors import InputError, RolloutError
from dynident.diagnosis.by_law import find_by_law
from dynident.diagnosis.scene import take_scene
from dynident.dynamics.base import base_parameters
from dynident.dynamics.whole import WholeModel
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model, fill_missing_torque
from dynident.export.controller import ControllerModel
from dynident.robot.closure import Closure
from dynident.robot.spec import LoopSpec
from dynident.simulation.record import record_rollout, warn_of_limits
from dynident.simulation.rollout import sensitive_rollout
from dynident.simulation.sensors import Sensors
from dynident.simulation.stability import check_integration, check_loop

RATE, STEPS = 200.0, 5
KP, KD = 4000.0, 60.0
"""Those of `follow_in_mujoco`."""


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return load_linkage("palletiser.xml", tmp_path_factory.mktemp("palletiser"))


def make_problem(robot, seconds, noise=0.05, blur=0.0):
    """A log with its targets, of driven joints alone, and the values it was made with.

    Torques have some noise, and positions the `blur`.
    """
    _, motion = plan_motion(robot, seconds, RATE, 1, base=0.5)
    values = np.where(robot.passive, 0.02, 0.3), np.where(robot.passive, 0.0, 0.05)
    q, tau = follow_in_mujoco(robot.source, robot, motion, RATE, STEPS, values)
    log = make_log(robot, q, tau, RATE, noise, 1, "made")
    told = np.where(robot.passive, 0.0, motion[0]), np.where(robot.passive, 0.0, motion[1])
    blurred = log.q + blur * np.random.default_rng(3).normal(size=log.q.shape)
    q = np.where(robot.passive, 0.0, blurred) if blur else log.q
    log = replace(log, q=q, qref=told[0], dqref=told[1])
    problem = di.Problem(robot, di.prepare(log, bandwidth=8.0), "viscous")
    return problem, state_truth(problem.idim, values)


def build_simulation(robot, substeps=STEPS):
    law = pd(kp=[KP] * robot.n, kd=[KD] * robot.n)
    return Simulation(law, integrator="ode4", substeps=substeps)


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


LAWS = {
    "plain": lambda n: pd([400.0] * n, [20.0] * n, rate=RATE),
    "states and delay": lambda n: pid(
        [400.0] * n, [900.0] * n, [20.0] * n, rate=RATE, delay=1.0 / RATE, limit=30.0
    ),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "name",
    [
        "five_bar.xml",
        *(pytest.param(e, marks=pytest.mark.long) for e in ("leg.urdf", "delta.urdf")),
    ],
)
def test_compiled_rollouts_are_those_of_plain_python(name, law, tmp_path):
    n = load_linkage(name, tmp_path).n
    loop, theta = build_loop(name, tmp_path, law=LAWS[law](n))
    motion = di.rollout(loop, theta)
    for ours, theirs in zip(
        (motion.q, motion.dq, motion.ddq, motion.tau), roll_out_in_python(loop, theta), strict=True
    ):
        assert np.abs(ours - theirs).max() < 1e-9 * max(1.0, np.abs(theirs).max())
    assert not motion.tau[:, loop.idim.robot.passive].any()


def test_orders_of_integrators_are_those_of_trees(tmp_path):
    errors = {}
    for name, order in (("ode2", 2), ("ode3", 3), ("ode4", 4)):
        law = pd([400.0] * 4, [20.0] * 4)
        ends = []
        for substeps in (2, 4, 32):
            loop, theta = build_loop(
                "five_bar.xml", tmp_path, law=law, substeps=substeps, integrator=name
            )
            ends.append(di.rollout(replace(loop, width=np.full(4, 1.0)), theta).q[-1])
        errors[name] = np.log2(np.abs(ends[0] - ends[2]).max() / np.abs(ends[1] - ends[2]).max())
        assert errors[name] > order - 0.5, errors
    paced, theta = build_loop("five_bar.xml", tmp_path, law=law, integrator="ode45")
    same = di.rollout(replace(paced, width=np.full(4, 1.0)), theta).q[-1]
    np.testing.assert_allclose(same, ends[2], atol=1e-7)


def test_compensated_chains_follow_their_targets(tmp_path):
    """With the model that moves them: what is left is the width of the sign and the clock."""
    for kind, most in (("computed-torque", 2e-4), ("feed-forward", 2e-4), ("none", np.inf)):
        law = pd([100.0] * 4, [10.0] * 4)
        loop, theta = build_loop("five_bar.xml", tmp_path, law=law, friction="none", substeps=8)
        law = pd([100.0] * 4, [10.0] * 4, compensation=kind)
        loop = replace(loop, model=theta, controller=law)
        motion = di.rollout(loop, theta)
        error = np.abs(motion.q - loop.reference.q).max()
        assert error < most
    assert error > 1e-2  # of the last, without


def test_torques_from_outside_and_elements_work_through_the_loops(tmp_path):
    """What acts on a passive joint is what drives feel of it: as much as drives that act so."""
    loop, theta = build_loop("five_bar.xml", tmp_path)
    closure, model = Closure(loop.idim.robot), WholeModel(loop.idim, theta)
    push = np.zeros((loop.samples, 4))
    push[:, 1] = 0.7
    motion = di.rollout(replace(loop, external=push), theta)
    G = closure.find_null_space(motion.q)
    felt = motion.tau + np.einsum("tji,tj->ti", G, push)
    for k in (0, 20, 59):
        ddq = model.forward_dynamics(motion.q[k], motion.dq[k], felt[k], loop.width)
        np.testing.assert_allclose(motion.ddq[k], ddq, rtol=1e-9, atol=1e-9)
    assert np.abs(motion.q - di.rollout(loop, theta).q).max() > 1e-3


@pytest.mark.parametrize("push", [7.0, 10.0, 15.0])
def test_a_rollout_into_a_singularity_ends_in_words(push, tmp_path):
    robot = load_linkage("five_bar.xml", tmp_path)
    idim = di.build_idim(robot, "none")
    q = np.repeat(np.array(robot.assembled)[None], 600, axis=0)
    outside = np.zeros((600, 4))
    outside[:, [0, 2]] = [-push, push]  # until rods are stretched
    still = np.zeros_like(q)
    loop = di.Loop(
        idim, pd([0.0] * 4, [15.0] * 4), Reference(RATE, q, still, still), external=outside
    )
    with pytest.raises(
        RolloutError, match=r"a loop cannot be closed, or is singular, at t = [01]\.\d+ s"
    ):
        di.rollout(loop, idim.join(robot.nominal, [0.05] * len(idim.drives)))


def test_what_is_not_simulated_on_chains_is_refused(tmp_path):
    with pytest.raises(InputError, match="sdirk2' needs a tree on a fixed base"):
        build_loop("five_bar.xml", tmp_path, integrator="sdirk2")
    loop, theta = build_loop("five_bar.xml", tmp_path, law=pd([4.0] * 4, [1.0] * 4))
    with pytest.raises(InputError, match="a derivative of the simulated motion needs a tree"):
        next(sensitive_rollout(loop, theta, [0]))


def test_a_controllers_model_of_a_chain_is_the_model(tmp_path):
    loop, theta = build_loop("five_bar.xml", tmp_path)
    model, closure = WholeModel(loop.idim, theta), Closure(loop.idim.robot)
    one, rng = ControllerModel(model), np.random.default_rng(0)
    for q in closure.draw(6, rng):
        dq, other = rng.normal(size=(2, 4))
        tau = model.inverse_dynamics(q, dq, other)
        np.testing.assert_allclose(one.inverse_dynamics(q, dq, other), tau, atol=1e-10)
        np.testing.assert_allclose(one.gravity(q), model.gravity(q), atol=1e-10)
        np.testing.assert_allclose(one.mass_matrix(q), model.mass_matrix(q), atol=1e-10)
        found = one.forward_dynamics(q, dq, other)
        np.testing.assert_allclose(found, model.forward_dynamics(q, dq, other), atol=1e-9)


@pytest.mark.parametrize(
    "method",
    [
        pytest.param("idim-iv", marks=pytest.mark.long),
        pytest.param("didim", marks=pytest.mark.slow),
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("pc-idim-iv", "pc-didim")),
        *(pytest.param(each, marks=pytest.mark.long) for each in ("clie", "cloe")),
        pytest.param("pc-clie", marks=pytest.mark.slow),
    ],
)
def test_methods_that_simulate_find_what_mujoco_was_made_with(method, robot):
    # two simulators differ by more than clean positions, and by less than torques
    steps, blur = (STEPS, 1e-3) if method == "cloe" else (2, 0.0)
    problem, truth = make_problem(robot, 2.5, blur=blur)
    fit = di.identify(problem, method, simulation=build_simulation(robot, steps), doctor=False)
    z = (fit.estimate.beta - problem.base.matrix @ truth) / fit.estimate.covariance.std
    assert np.mean(np.abs(z) < 1.96) > 0.8
    assert np.max(np.abs(z)) < 4.5
    plain = di.identify(problem, "wls", doctor=False)
    difference = (fit.estimate.beta - plain.estimate.beta) / plain.estimate.covariance.std
    assert np.max(np.abs(difference)) > 1e-6  # another estimate, of other rows


def test_derivatives_of_the_motion_are_refused(robot):
    problem, _ = make_problem(robot, 0.6)
    simulation = build_simulation(robot)
    with pytest.raises(InputError, match="method gradient needs a tree"):
        di.identify(problem, "gradient")
    with pytest.raises(InputError, match="a derivative of the simulated motion needs a tree"):
        di.identify(problem, "clie", simulation=simulation, sensitivities="exact")
    with pytest.raises(InputError, match="a fit of drives to positions needs a tree"):
        di.identify(problem, "cloe", simulation=simulation, links="fixed")


def test_a_law_asks_nothing_of_joints_without_a_drive(tmp_path):
    """Neither where it tells the scale of torques, nor where it stands for them."""
    path = tmp_path / "gripper.urdf"
    path.write_text(GRIPPER)
    coupling = LoopSpec(kind="joint", joints=("two", "one"), polynomial=(0.01, -2.0))
    robot = di.load_robot(path, loops=[coupling])
    law, base = pd([400.0] * 2, [60.0] * 2), base_parameters(di.build_idim(robot, "viscous"))
    sine, cosine = [[0.2, -0.3], [0.0, 0.0]], [[0.1, 0.2], [0.0, 0.0]]
    swing = fourier(500.0, 2.0, 0.5, [0.0, 0.0], sine, cosine)
    theta = base.idim.join(robot.nominal, [5.0 * (p.symbol == "fv") for p in base.idim.drives])
    none = Sensors(*np.zeros((4, 2)), np.ones(2), 0.0, 0)
    log = record_rollout(di.Loop(base.idim, law, swing), theta, none).recording
    samples = di.prepare(log, 20.0)
    assert find_by_law(take_scene(base, samples), law) is None
    found = find_by_law(take_scene(base, replace(samples, tau=2.0 * samples.tau)), law)
    assert "2 times what the controller commands" in found.suspicion.what
    untold = replace(samples, tau=np.zeros_like(log.q), torque="none")
    told = fill_missing_torque(untold, Simulation(law), robot.passive)
    assert not told.tau[:, 1].any()
    assert np.corrcoef(told.tau[:, 0], log.tau[:, 0])[0, 1] > 0.99


def test_a_motion_beyond_the_limits_of_the_file_is_said(tmp_path):
    """Simulations have no stops, and no limit of the torque but the law's."""
    path = tmp_path / "gripper.urdf"
    path.write_text(GRIPPER)
    robot = di.load_robot(path)
    rest = np.zeros((3, 2))
    assert warn_of_limits(robot, rest, rest, rest) == ()
    q, tau = np.array([[0.0, 0.0], [0.5, 1.25], [0.0, -1.0]]), np.tile([95.0, -20.0], (3, 1))
    assert warn_of_limits(robot, q, rest, tau) == (
        "the simulated one reaches 95 N (limit 90): limits of a robot's file stop no simulation",
        "the simulated two reaches 1.25 m (limit 1): limits of a robot's file stop no simulation",
    )
