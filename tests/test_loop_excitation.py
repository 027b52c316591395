"""Motions of closed chains: their slopes and bounds, the search, and what is proved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differences import assert_slope
from linkages import EACH, LINKAGES, load_linkage, write_leg

import dynident as di
from dynident.core.errors import InputError
from dynident.dynamics.base import base_parameters
from dynident.excitation.certificate import certify_trajectory
from dynident.excitation.design import build_program, draw_random_start
from dynident.excitation.information import Experiment, WeightedMotion, sample_motion
from dynident.excitation.limits import NominalTorques
from dynident.excitation.obstacles import build_floor
from dynident.excitation.prediction import join_nominal_parameters
from dynident.excitation.trajectories import TRAJECTORIES, Trajectory
from dynident.robot.closure import Closure
from dynident.robot.load import load_robot

QUICK = {"duration": 4.0, "starts": 1, "iterations": 8, "time": 60.0, "floor": False}
BOUNDS = {"speed": 2.0, "acceleration": 10.0, "torque": 60.0, "collision": False}


@pytest.fixture(scope="module", params=EACH)
def robot(request, tmp_path_factory):
    return load_linkage(request.param, tmp_path_factory.mktemp("linkage"))


@pytest.fixture(scope="module")
def five_bar(tmp_path_factory):
    return load_linkage("five_bar.xml", tmp_path_factory.mktemp("five_bar"))


@pytest.fixture(scope="module")
def plan(five_bar):
    limits = {**BOUNDS, "torque": 16.0}
    return di.excite(five_bar, "viscous", **QUICK, **limits)


def follow_driven(closure, states, order, along, t):
    """All joints' motion where one order of the driven joints' is moved."""
    q, dq, ddq = (each.copy() for each in states)
    (q, dq, ddq)[order][:, closure.driven] += t * along
    q, _ = closure.correct(q)
    return q, *closure.move(q, dq, ddq)


def draw_motion(robot, samples=4):
    closure, rng = Closure(robot), np.random.default_rng(0)
    q, _, _ = wander(robot).follow(np.linspace(0.5, 3.5, samples))
    states = (q, *closure.move(q, rng.normal(size=q.shape), rng.normal(size=q.shape)))
    return closure, states, rng.normal(size=(samples, len(closure.driven)))


def wander(robot, seed=0, size=0.12):
    """A random motion about where the chain is assembled."""
    closure, family = Closure(robot), TRAJECTORIES["fourier"](duration=4.0)
    rng, times = np.random.default_rng(seed), family.grid(0.02)
    C = size * rng.normal(size=(family.count, robot.n)) * family.scale[:, None]
    ones = np.linalg.lstsq(family.values(times), np.ones(len(times)), rcond=None)[0]
    return Trajectory(family, C + np.outer(ones, closure.start), closure)


def test_motions_vary_as_differences_say(robot):
    closure, states, along = draw_motion(robot)
    G, D, E, B, _, _, lean = closure.vary(*states)
    nothing, a = np.zeros_like(G), closure.driven
    for order, by in enumerate(((G, D, E), (nothing, G, B), (nothing, nothing, G))):
        for k, slope in enumerate(by):
            claimed = np.einsum("tij,tj->ti", slope[:, :, a], along)
            assert_slope(
                lambda t, order=order, k=k: follow_driven(closure, states, order, along, t)[k],
                claimed,
                1e-4,
                scale=1.0,
            )
    assert_slope(
        lambda t: closure.measure_distance(follow_driven(closure, states, 0, along, t)[0]),
        np.einsum("tj,tj->t", lean[:, a], along),
        1e-4,
        scale=1.0,
    )


def test_torques_and_information_vary_as_differences_say(robot):
    closure, states, along = draw_motion(robot)
    idim = di.build_idim(robot, "coulomb-viscous")
    nominal = NominalTorques(idim, join_nominal_parameters(idim), wrench=True)
    base = base_parameters(idim)
    experiment = Experiment(base, np.ones(robot.n), 100.0, width=np.full(robot.n, 0.3))
    weight = np.random.default_rng(1).normal(size=(base.count,) * 2)
    weight, seconds = weight + weight.T, np.full(len(states[0]), 0.1)
    pulls = experiment.pull(WeightedMotion(*states, seconds), weight)
    for order in range(3):
        slope = nominal.slopes(*states)[order][:, :, closure.driven]
        assert_slope(
            lambda t, order=order: nominal.torque(*follow_driven(closure, states, order, along, t)),
            np.einsum("tij,tj->ti", slope, along),
            1e-4,
            scale=1.0,
        )

        def value(t, order=order):
            moved = WeightedMotion(*follow_driven(closure, states, order, along, t), seconds)
            return np.sum(weight * experiment.information(moved))

        assert_slope(value, np.sum(pulls[order][:, closure.driven] * along), 1e-4)
        assert not pulls[order][:, closure.passive].any()


def test_no_instant_exceeds_the_bounds_of_passive_joints(robot):
    trajectory = wander(robot)
    closure, family = trajectory.closure, trajectory.family
    times = np.linspace(family.start, family.stop, 8001)[1:-1]
    q, dq, ddq = trajectory.follow(times)
    assert np.abs(closure.measure(q)).max() < 1e-11
    h = times[1] - times[0]
    jerk = trajectory.at(times, 3)
    shown = [dq, ddq, jerk, np.diff(jerk, axis=0) / h]
    assert np.abs(np.gradient(ddq, h, axis=0) - jerk)[1:-1].max() < 1e-4 * np.abs(jerk).max()
    for order, values in enumerate(shown, 1):
        most, bound = np.abs(values).max(axis=0), trajectory.bound(order)
        assert np.all(most[closure.passive] <= bound[closure.passive] * (1.0 + 1e-9))
        assert np.all(bound < 1e8)  # something is proved
    # of speeds and accelerations bounds are close, which later ones are not
    for order in (1, 2, 3):
        most, bound = np.abs(shown[order - 1]).max(axis=0), trajectory.bound(order)
        assert np.all(bound[closure.passive] < 3.0 * most[closure.passive].max())


@pytest.mark.long
def test_torques_between_samples_are_within_what_is_proved(five_bar, plan):
    task, trajectory = plan.design.task, plan.trajectory
    proof = certify_trajectory(trajectory, task.limits, task.nominal, None, task.names, task.step)
    times = np.linspace(trajectory.family.start, trajectory.family.stop, 40_001)
    tau = np.abs(task.nominal.torque(*trajectory.follow(times))).max(axis=0)
    reached = {each.where: each.reached for each in proof.kept if each.what == "torque"}
    assert set(reached) == {"crank_l", "crank_r"}
    for k, name in enumerate(five_bar.joint_names):
        if name in reached:
            assert tau[k] <= reached[name] <= 16.0


def test_a_designed_motion_tells_what_it_says(five_bar, plan):
    assert plan.design.certificate.ok
    closure = Closure(five_bar)
    reference = plan.trajectory.reference(200.0)
    assert np.abs(closure.measure(reference.q)).max() < 1e-10
    limits = plan.design.task.limits
    for order, values in enumerate((reference.q, reference.dq, reference.ddq)):
        low, high = limits.of_order(order)
        assert np.all((values >= low) & (values <= high))
    base = plan.prediction.base
    idim = base.idim
    motion = sample_motion(plan.trajectory, 0.01)
    X = idim.regressor(motion.q, motion.dq, motion.ddq)[:, closure.driven][:, :, base.kept]
    sigma = plan.design.task.experiment.sigma[closure.driven]
    weight = motion.duration[:, None] * plan.rate / sigma**2
    M = np.einsum("tjp,tj,tjq->pq", X, weight, X)
    std = np.sqrt(np.diag(np.linalg.inv(M)))
    np.testing.assert_allclose(plan.prediction.std, std, rtol=0.02)
    # random motions within the same limits tell less
    wandering = [
        plan.design.task.value(Trajectory(plan.trajectory.family, C, closure))
        for C in (wander(five_bar, seed).C for seed in range(3))
        if len(C) == plan.trajectory.family.count
    ]
    assert len(wandering) == 3
    assert plan.design.value < min(wandering)


@pytest.mark.long
def test_limits_of_passive_joints_are_kept(five_bar, plan):
    """Their speeds, which were free in the plan, are half as large: there and in the proof."""
    free = np.abs(plan.trajectory.at(plan.trajectory.family.grid(0.01), 1)).max(axis=0)
    speed = np.where(five_bar.passive, 0.5 * free, 2.0)
    options = {**BOUNDS, "torque": 16.0, "speed": tuple(speed.tolist())}
    bound = di.excite(five_bar, "viscous", **QUICK, **options)
    found = {each.where: each for each in bound.design.certificate.kept if each.what == "speed"}
    for k in np.flatnonzero(five_bar.passive):
        assert found[five_bar.joint_names[k]].ok
        times = bound.trajectory.family.grid(0.001)
        assert np.abs(bound.trajectory.at(times, 1)[:, k]).max() <= speed[k]


@pytest.mark.long
def test_a_search_has_the_slopes_of_its_rows(tmp_path):
    """With torques, shapes over a floor, passive joints, and how far from singular the chain is."""
    text = write_leg()
    for link in ("shank", "rod"):
        shape = (
            '<collision><origin xyz="0 0 -0.2"/><geometry><sphere radius="0.02"/></geometry>'
            "</collision>"
        )
        text = text.replace(f'<link name="{link}">', f'<link name="{link}">{shape}')
    path = tmp_path / "leg.urdf"
    path.write_text(text)
    robot = load_robot(path, loops=LINKAGES["leg.urdf"][1])
    plan = di.excite(
        robot, "viscous", obstacles=[build_floor(-0.5)], **QUICK, **{**BOUNDS, "collision": True}
    )
    assert plan.design.certificate.ok
    assert any(each.what == "clearance" for each in plan.design.certificate.kept)
    # both links of the loop are neighbours
    assert not any("shank and rod" in each.where for each in plan.design.certificate.kept)
    task = plan.design.task
    program = build_program(task, task.limits, task.family.grid(0.2))
    rng = np.random.default_rng(3)
    z = draw_random_start(task, program, rng).ravel()
    along = rng.normal(size=z.shape)
    jacobian = program.evaluate(z)[3]
    count = len(task.family.grid(0.2))  # of distances, which coal finds to some 1e-6 m
    for rows, step, within in (
        (slice(None, -count), 1e-5, 1e-4),
        (slice(-count, None), 1e-3, 0.02),
    ):
        assert_slope(
            lambda t, rows=rows: program.evaluate(z + t * along)[2][rows],
            (jacobian @ along)[rows],
            step,
            within,
        )


def test_a_search_has_the_slope_of_its_criterion(plan, monkeypatch):
    monkeypatch.setattr("dynident.excitation.criteria.RIDGE", 0.0)  # whose slope is left out
    task, rng = plan.design.task, np.random.default_rng(3)
    program = build_program(task, task.limits, task.family.grid(0.2))
    z = plan.trajectory.C.ravel()  # where hardly a parameter is known by the ridge alone
    along = rng.normal(size=z.shape)
    gradient = program.evaluate(z)[1]
    assert_slope(lambda t: program.evaluate(z + t * along)[0], gradient @ along, 1e-5, 1e-4)


def test_friction_that_no_torque_has_is_said(five_bar):
    joints = tuple(replace(j, friction=0.1 * k) for j, k in zip(five_bar.joints, five_bar.passive))
    rubbing = replace(five_bar, joints=joints)
    plan = di.excite(rubbing, "viscous", **{**QUICK, "iterations": 1}, **BOUNDS)
    assert any("Coulomb friction of rod_l, rod_r" in each for each in plan.warnings)


def test_what_no_chain_is_designed_for_is_refused(five_bar):
    with pytest.raises(InputError, match="a trajectory of the hand needs a tree"):
        di.excite(five_bar, "viscous", trajectory="cartesian", **QUICK, **BOUNDS)
    far = wander(five_bar, size=3.0)
    with pytest.raises(InputError, match=r"the trajectory: .* the loop tip"):
        far.follow(far.family.grid(0.02))
