"""Trajectories, criteria, limits and their proof, against differences and other programs."""

from __future__ import annotations

import json
import pickle
import re
import time
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from commands import ask, tell
from differences import assert_slope, take_quotient
from robots import states, urdf
from scipy.interpolate import make_interp_spline
from scipy.optimize import minimize
from tables import write_joints
from thin import first
from toy import arm

import dynident as di
from dynident.core.errors import ComputationError, InputError
from dynident.core.plain import replace_nonfinite, to_json
from dynident.dynamics.base import base_parameters
from dynident.dynamics.contacts import evaluate_seat_motion
from dynident.dynamics.idim import build_idim
from dynident.dynamics.tree import build_tree
from dynident.excitation.certificate import certify_trajectory
from dynident.excitation.clearance import build_clearance
from dynident.excitation.contraction import differentiate_regressor_sum
from dynident.excitation.criteria import CRITERIA, CriterionNeeds, compute_prior_information
from dynident.excitation.design import build_program, draw_random_start
from dynident.excitation.excite import excite
from dynident.excitation.information import Experiment, WeightedMotion, sample_motion
from dynident.excitation.interior import Program, minimise_program
from dynident.excitation.limits import Limits, NominalTorques, add_point_mass, build_limits
from dynident.excitation.majorants import bound_torques
from dynident.excitation.obstacles import OBSTACLES, Obstacle, build_floor
from dynident.excitation.options import TrajectoryLimits, TrajectoryShape
from dynident.excitation.sensor import build_sensor
from dynident.excitation.surroundings import choose_surroundings
from dynident.excitation.trajectories import TRAJECTORIES, Trajectory
from dynident.experiments.trajectory import serialise_trajectory, summarise_excitation
from dynident.recording.floating import BaseMotion
from dynident.robot import load_robot
from dynident.robot.cut import cut_off_limb
from dynident.robot.geometry import locate_frame, read_disabled_pairs
from dynident.robot.model import Robot
from dynident.scenes.scene import build_scene, place_bodies
from dynident.study.excite import read_task
from dynident.study.study import PrepareSection, read_study

KINDS = [
    ("fourier", {}),
    ("fourier", {"ramp": 1.0, "duration": 6.0}),
    ("fourier", {"avoid": ((0.25, 0.35),), "harmonics": 7}),
    ("spline", {"intervals": 7}),
    ("spline", {"knots": (1.0, 2.5, 6.0, 9.0)}),
    ("bang-bang", {"points": 4}),
    ("bang-bang", {"smoothing": 1.0}),
    ("quintic", {"points": 5}),
    ("cartesian", {"points": 3}),
    ("sweeps", {"points": 5}),
    ("rests", {"points": 4}),
]


def named(kind):
    return "-".join([kind[0], *kind[1]])


def random_trajectory(kind, n=3, seed=0, size=0.3):
    family = TRAJECTORIES[kind[0]](**kind[1])
    rng = np.random.default_rng(seed)
    return Trajectory(family, size * rng.normal(size=(family.count, n)) * family.scale[:, None])


def limited(robot: Robot, **more) -> Robot:
    """The same robot with limits."""
    some = {"lower": -2.0, "upper": 2.0, "velocity": 2.0, "effort": 60.0, **more}
    return replace(robot, joints=tuple(replace(joint, **some) for joint in robot.joints))


PANDA_FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}


@pytest.fixture(scope="module")
def panda():
    return load_robot(urdf("panda"), locked=PANDA_FINGERS)


# ------------------------------------------------------------------------ trajectories


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_derivatives_are_those_of_differences_and_no_bound_is_exceeded(kind):
    trajectory = random_trajectory(kind)
    family = trajectory.family
    knots = np.concatenate([part.knots for part in family.parts])
    times = np.random.default_rng(1).uniform(family.start, family.stop, 200)
    times = times[np.abs(times[:, None] - knots).min(axis=1) > 1e-3]
    for order in range(3):
        exact = trajectory.at(times, order + 1)
        assert_slope(lambda t, order=order: trajectory.at(times + t, order), exact, 1e-4)
    for order in range(6):
        shown = np.abs(trajectory.at(family.grid(1e-3), order)).max(axis=0)
        assert np.all(shown <= trajectory.bound(order) * (1.0 + 1e-9))
    assert np.all(trajectory.bound(1) < 4.0 * np.abs(trajectory.at(family.grid(1e-3), 1)).max())


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_trajectories_start_and_end_at_rest_and_are_smooth(kind):
    trajectory = random_trajectory(kind)
    family = trajectory.family
    ends = np.array([family.start, family.stop])
    assert np.abs(trajectory.at(ends, 1)).max() < 1e-9
    assert np.abs(trajectory.at(ends, 2)).max() < 1e-8
    knots = np.unique(np.concatenate([part.knots for part in family.parts]))[1:-1]
    for order in range(3):  # accelerations are continuous
        jump = trajectory.at(knots + 1e-9, order) - trajectory.at(knots - 1e-9, order)
        assert np.abs(jump).max(initial=0.0) < 1e-6


def test_periods_repeat_between_their_ramps():
    trajectory = random_trajectory(("fourier", {"ramp": 1.0, "duration": 6.0}))
    reference = trajectory.reference(50.0, periods=3)
    assert len(reference.q) == round((2 * 1.0 + 3 * 6.0) * 50.0) + 1
    np.testing.assert_allclose(reference.q[60:340], reference.q[360:640], atol=1e-12)
    np.testing.assert_allclose(reference.dq[[0, -1]], 0.0, atol=1e-12)
    slope = np.gradient(reference.q, 1.0 / 50.0, axis=0)
    assert np.abs(slope - reference.dq)[2:-2].max() < 0.02


def test_no_harmonic_enters_a_band_to_avoid():
    family = TRAJECTORIES["fourier"](duration=10.0, harmonics=10, avoid=((0.25, 0.55),))
    hz = family.parts[0].omega / (2.0 * np.pi)
    np.testing.assert_allclose(hz, [0.1, 0.2, 0.6, 0.7, 0.8, 0.9, 1.0])
    with pytest.raises(InputError, match="outside the bands to avoid"):
        TRAJECTORIES["fourier"](harmonics=3, avoid=((0.0, 1.0),))


def test_a_smoothed_bang_bang_is_that_of_the_simulator():
    # one move by 1 rad in 2 s, against the reference of the same profile
    family = TRAJECTORIES["bang-bang"](duration=2.0, points=2, smoothing=0.5)
    trajectory = Trajectory(family, np.array([[0.0], [1.0]]))
    fastest = float(np.abs(trajectory.at(family.grid(1e-3), 1)).max())
    steepest = float(np.abs(trajectory.at(family.grid(1e-3), 2)).max())
    from dynident.control.reference import bang_bang

    other = bang_bang(1000.0, [[0.0], [1.0]], fastest, steepest, smoothing=0.5)
    ours = trajectory.reference(1000.0)
    count = min(len(ours.q), len(other.q))
    np.testing.assert_allclose(ours.q[:count], other.q[:count], atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("spline", {"harmonics": 3}, "has no 'harmonics'"),
        ("spline", {"knots": (3.0, 2.0)}, "increase"),
        ("spline", {"intervals": 1}, "two or more intervals"),
        ("quintic", {"points": 1}, "two or more points"),
        ("bang-bang", {"points": 1}, "two or more points"),
        ("fourier", {"harmonics": 1}, "1 of 1 harmonics"),
    ],
)
def test_shapes_that_cannot_be_are_refused(kind, options, message):
    with pytest.raises(InputError, match=message):
        TrajectoryShape(trajectory=kind, **options).family()


# ------------------------------------------------------------------------ gradients


def moved_along(function, signals, k, along):
    """A function of positions, speeds and accelerations along a change of one of them."""
    return lambda t: function(*(each + t * along * (i == k) for i, each in enumerate(signals)))


@pytest.mark.parametrize("name", ["panda", "tiago"])
def test_a_contraction_of_the_regressor_has_the_slopes_of_differences(name):
    robot = load_robot(urdf(name))
    idim = build_idim(robot, "none")
    tree = idim.tree
    q, dq, ddq = states(robot, 3)
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(3, tree.dof, tree.bodies, 10))

    def value(q, dq, ddq):
        W = idim.regressor(q, dq, ddq).reshape(weights.shape)
        return float(np.sum(W * weights))

    slopes = differentiate_regressor_sum(tree, weights, q, dq, ddq)
    for k, slope in enumerate(slopes):
        along = rng.normal(size=q.shape)
        assert_slope(moved_along(value, (q, dq, ddq), k, along), np.sum(slope * along), 1e-4)


@pytest.mark.parametrize("friction", ["coulomb-viscous", "stribeck", "cube-root"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_criteria_have_the_slopes_of_differences(criterion, friction):
    robot = arm(3, coupled=True)
    base = base_parameters(build_idim(robot, friction))
    experiment = Experiment(base, np.full(3, 0.5), 100.0, width=np.full(3, 0.1))
    trajectory = random_trajectory(("fourier", {}), seed=3)
    rng = np.random.default_rng(4)
    scale = 1.0 / np.sqrt(np.diag(experiment.information(sample_motion(trajectory, 0.1))))
    asked = CriterionNeeds(scale, rng.normal(size=(4, base.count)) / scale, np.diag(0.1 / scale**2))

    def value(C):
        M = experiment.information(sample_motion(replace(trajectory, C=C), 0.1))
        return CRITERIA[criterion].evaluate(M, asked)

    motion = sample_motion(trajectory, 0.1)
    _, by_M = value(trajectory.C)
    pulls = experiment.pull(motion, by_M)
    times = motion_times(trajectory)
    gradient = sum(
        trajectory.family.values(times, order).T @ pull for order, pull in enumerate(pulls)
    )
    # along every coefficient, and uphill, where the slope stands above the rounding
    along = rng.normal(size=trajectory.C.shape) + gradient / np.sqrt(np.mean(gradient**2))
    claimed = np.sum(gradient * along)
    assert_slope(lambda t: value(trajectory.C + t * along)[0], claimed, 1e-5, within=1e-4)


def motion_times(trajectory):
    from dynident.excitation.information import build_quadrature

    return build_quadrature(trajectory.family, 0.1)[0]


def test_the_information_is_that_of_weighted_rows():
    robot = arm(2)
    base = base_parameters(build_idim(robot))
    sigma = np.array([0.5, 2.0])
    motion = sample_motion(random_trajectory(("fourier", {}), n=2), 0.05)
    known = np.eye(base.count)
    experiment = Experiment(base, sigma, 100.0, repeats=2.0, known=known)
    X = base.idim.regressor(motion.q, motion.dq, motion.ddq)[:, :, base.kept]
    rows = X / sigma[None, :, None] * np.sqrt(200.0 * motion.duration)[:, None, None]
    rows = rows.reshape(-1, base.count)
    np.testing.assert_allclose(experiment.information(motion), known + rows.T @ rows, atol=1e-6)


# ------------------------------------------------------------------------ limits


@pytest.mark.parametrize("name", ["panda", "tiago"])
def test_no_torque_changes_faster_than_its_majorants(name):
    robot = load_robot(urdf(name))
    idim = build_idim(robot)
    trajectory = random_trajectory(("fourier", {"harmonics": 3}), n=robot.n, size=0.2)
    times = np.linspace(0.0, 10.0, 4001)
    h = times[1]
    q, dq, ddq = (trajectory.at(times, order) for order in range(3))
    tau = NominalTorques(idim, idim.nominal, wrench=True).torque(q, dq, ddq)
    speeds = np.array([trajectory.bound(order) for order in range(1, 6)])
    bound = bound_torques(idim, robot.nominal, speeds, np.abs(q).max(axis=0))
    damped = np.append([joint.damping for joint in robot.joints], np.zeros(6))
    found = [tau, np.gradient(tau, h, axis=0), np.diff(tau, 2, axis=0) / h**2]
    for order, each in enumerate(found):
        most = bound[:, order] + damped * np.append(trajectory.bound(order + 1), np.zeros(6))
        assert np.all(np.abs(each).max(axis=0) <= most * (1.0 + 1e-6))


def test_the_nominal_torque_has_the_slopes_of_differences(panda):
    idim = build_idim(panda)
    nominal = NominalTorques(idim, idim.nominal)
    motion = states(panda, 4)
    rng = np.random.default_rng(5)
    for k, slope in enumerate(nominal.slopes(*motion)):
        along = rng.normal(size=(4, panda.n))
        pushed = np.einsum("tij,tj->ti", slope, along)
        assert_slope(moved_along(nominal.torque, motion, k, along), pushed, 1e-4)


def test_the_wrench_on_the_base_is_that_of_another_program_and_is_kept(panda):
    import pinocchio as pin

    idim = build_idim(panda)
    nominal = NominalTorques(idim, idim.nominal, wrench=True)
    q, dq, ddq = states(panda, 5)
    full = pin.buildModelFromUrdf(str(urdf("panda")))
    fingers = [full.getJointId(name) for name in PANDA_FINGERS]
    model = pin.buildReducedModel(full, fingers, pin.neutral(full))
    data = model.createData()
    tau = nominal.torque(q, dq, ddq)
    for t in range(5):
        pin.rnea(model, data, q[t], dq[t], ddq[t])
        wrench = data.liMi[1].act(data.f[1])
        np.testing.assert_allclose(tau[t, 7:], wrench.vector, atol=1e-9)
    rng = np.random.default_rng(12)
    for k, slope in enumerate(nominal.slopes(q, dq, ddq)):
        along = rng.normal(size=q.shape)
        pushed = np.einsum("tij,tj->ti", slope, along)
        assert_slope(moved_along(nominal.torque, (q, dq, ddq), k, along), pushed, 1e-4)


@pytest.mark.long
def test_a_base_that_bears_little_is_spared():
    free = excite(ROBOT, **QUICK)
    wrench = (2.5, 4.0, 90.0, 4.0, 9.0, 1.2)
    found = excite(ROBOT, base_wrench=wrench, **QUICK)
    kept = {each.where: each for each in found.design.certificate.kept if "base" in each.where}
    assert len(kept) == 6
    assert all(each.ok for each in kept.values())
    nominal = replace(free.design.task.nominal, wrench=True)
    reference = free.trajectory.reference(1000.0)
    without = np.abs(nominal.torque(reference.q, reference.dq, reference.ddq))[:, 2:].max(axis=0)
    assert np.any(without > wrench)
    with pytest.raises(InputError, match="base_wrench"):
        excite(ROBOT, base_wrench=(1.0, 2.0), **QUICK)


@pytest.mark.long
def test_a_random_motion_leads_the_hand_along_a_smooth_curve_within_the_limits(panda):
    given = {"trajectory": "cartesian", "points": 4, "duration": 4.0, "acceleration": 10.0}
    import pinocchio as pin

    found = excite(panda, starts=2, collision=False, seed=1, **given)
    assert found.design.certificate.ok
    trajectory, model = found.trajectory, pin.buildModelFromUrdf(str(urdf("panda")))
    data, last = model.createData(), model.getJointId("panda_joint7")

    def hand(q):
        pin.forwardKinematics(model, data, np.append(q, np.zeros(2)))
        return data.oMi[last].translation.copy()

    def spline(values):  # at rest at its ends
        rest = [(1, np.zeros(values.shape[1])), (2, np.zeros(values.shape[1]))]
        return make_interp_spline(at, values, k=5, bc_type=(rest, rest))(times)

    at, times = np.linspace(0.0, 4.0, 4), np.linspace(0.0, 4.0, 41)
    points, q = trajectory.at(at), trajectory.at(times)
    curve = spline(np.array([hand(each) for each in points]))
    joined = np.array([hand(each) for each in spline(points)])
    way = np.array([hand(each) for each in q])
    assert np.abs(way - curve).max() < 3e-3  # what it may miss at the points counts twice
    assert np.abs(joined - curve).max() > 2e-2
    assert np.linalg.norm(np.ptp(curve, axis=0)) > 0.1
    speed, limit = np.abs(trajectory.at(times, 1)), [joint.velocity for joint in panda.joints]
    assert np.all(speed <= limit)
    assert np.abs(trajectory.at(times, 2)).max() <= 10.0
    with pytest.raises(InputError, match="'cartesian' is random"):
        excite(panda, polish=True, **given)


def test_a_hand_that_can_only_turn_about_an_axis_is_where_the_curve_is_nearest():
    found = excite(ROBOT, trajectory="cartesian", duration=4.0, points=3, starts=1, collision=False)
    assert found.design.certificate.ok
    at, times = np.linspace(0.0, 4.0, 3), np.linspace(0.0, 4.0, 81)

    def hand(q):
        return place_bodies(ROBOT, q)[:, -1, :, 3]

    rest = [(1, np.zeros(3)), (2, np.zeros(3))]
    points = hand(found.trajectory.at(at))
    curve = make_interp_spline(at, points, k=5, bc_type=(rest, rest))(times)
    turns = np.zeros((2001, 2))
    turns[:, 0] = np.linspace(-2.0, 2.0, 2001)
    nearest = np.linalg.norm(curve[:, None] - hand(turns), axis=2).min(axis=1)
    off = np.linalg.norm(curve - hand(found.trajectory.at(times)), axis=1)
    assert np.all(off < nearest + 3e-3)
    assert nearest.max() > 5e-3  # the curve itself is out of its reach


def test_a_limit_that_is_broken_between_the_points_is_found():
    # a fast harmonic whose peaks fall between the points of the search's grid
    robot = limited(arm(1))
    trajectory = random_trajectory(("fourier", {"harmonics": 5}), n=1, size=0.5)
    peak = float(np.abs(trajectory.at(np.linspace(0.0, 10.0, 100_001), 1)).max())
    limits = build_limits(
        robot, TrajectoryLimits(acceleration=np.array([100.0]), speed=np.array([peak * 0.9999]))
    )
    grid = trajectory.family.grid(2.0)
    assert np.abs(trajectory.at(grid, 1)).max() < 0.99 * peak
    broken = certify_trajectory(trajectory, limits, None, None, robot.joint_names, 0.1)
    assert not broken.ok
    assert broken.worst.what == "speed"
    wider = replace(limits, speed=np.array([peak * 1.001]))
    assert certify_trajectory(trajectory, wider, None, None, robot.joint_names, 0.1).ok


@pytest.mark.long
def test_torques_and_distances_are_proved_at_instants_that_no_grid_has(panda):
    idim = build_idim(panda)
    nominal = NominalTorques(idim, idim.nominal)
    middle = np.array([0.0, -0.3, 0.0, -1.8, 0.0, 1.6, 0.0])
    trajectory = random_trajectory(("fourier", {}), n=7, size=0.15)
    C = trajectory.C.copy()
    C[0] = middle - (trajectory.at(np.array([0.0]))[0] - C[0])
    trajectory = replace(trajectory, C=C)
    clearance = build_clearance(panda)
    limits = replace(
        build_limits(panda, TrajectoryLimits(acceleration=np.full(7, 50.0))), clearance=0.0
    )
    found = certify_trajectory(trajectory, limits, nominal, clearance, panda.joint_names, 0.3)
    times = np.random.default_rng(6).uniform(0.0, 10.0, 400)
    q, dq, ddq = (trajectory.at(times, order) for order in range(3))
    tau = np.abs(nominal.torque(q, dq, ddq)).max(axis=0)
    reached = {each.where: each.reached for each in found.kept if each.what == "torque"}
    assert all(tau[j] <= reached[name] for j, name in enumerate(panda.joint_names))
    near = [each for each in found.kept if each.what == "clearance"]
    proved, seen = (np.array([getattr(e, label) for e in near]) for label in ("reached", "seen"))
    assert np.all(clearance.distances(q).min(axis=0) >= proved - 1e-9)
    # what was measured is where it was, and no bound
    assert np.all(seen >= proved)
    grid = clearance.distances(trajectory.at(trajectory.family.grid(found.step)))
    assert np.all(seen <= grid.min(axis=0) + 1e-12)
    assert np.max(seen - proved) > 0.01
    assert all(each.seen <= each.reached for each in found.kept if each.what == "torque")


def test_limits_come_from_the_file_or_from_what_is_given():
    robot = limited(arm(2))
    limits = build_limits(
        robot, TrajectoryLimits(acceleration=np.array([3.0, 4.0]), margin=0.5, share=0.5)
    )
    np.testing.assert_allclose(limits.upper, 1.0)
    np.testing.assert_allclose(limits.speed, 1.0)
    np.testing.assert_allclose(limits.torque, 30.0)
    np.testing.assert_allclose(limits.acceleration, [3.0, 4.0])
    endless = build_limits(arm(2), TrajectoryLimits(acceleration=np.full(2, 3.0)))
    np.testing.assert_allclose(endless.upper - endless.lower, 2.0 * np.pi)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lower": 0.5, "upper": 0.5}, "no range"),
        ({"velocity": 0.0}, "may not move"),
        ({"effort": np.inf}, "no effort"),
        ({"kind": "prismatic", "lower": -np.inf}, "slides without limits"),
    ],
)
def test_robots_without_what_is_needed_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        build_limits(limited(arm(2), **change), TrajectoryLimits())


def test_a_load_is_added_to_the_last_link():
    robot = add_point_mass(arm(2), 2.0, np.array([0.1, 0.0, 0.2]))
    added = robot.nominal - arm(2).nominal
    np.testing.assert_allclose(added[0], 0.0)
    np.testing.assert_allclose(added[1, :4], [2.0, 0.2, 0.0, 0.4])


# ------------------------------------------------------------------------ distances


def test_distances_have_slopes_and_no_hull_is_faster_than_its_reach(panda):
    clearance = build_clearance(
        panda,
        [
            Obstacle("floor", OBSTACLES["plane"]((0.0, 0.0, 1.0), -0.001)),
            Obstacle("post", OBSTACLES["box"]((0.1, 0.1, 1.0), (0.6, 0.5, 0.5))),
            Obstacle("ball", OBSTACLES["sphere"](0.1, (-0.5, 0.5, 0.5))),
            Obstacle("cell", OBSTACLES["room"]((-1.2,) * 3, (1.2, 1.2, 1.5)), ("panda_hand",)),
        ],
    )
    rng = np.random.default_rng(7)
    low = np.array([joint.lower for joint in panda.joints])
    high = np.array([joint.upper for joint in panda.joints])
    q = rng.uniform(low, high, (60, 7))
    along = rng.normal(size=7)
    value, slope = clearance.smooth(q, clearance.unseen(len(q)))
    apart = value > 1e-3
    assert apart.sum() > 10

    def gap(t):
        return clearance.smooth(q + t * along, clearance.unseen(len(q)))[0][apart]

    found, off = take_quotient(gap, 1e-6)
    assert off < 1e-5
    assert np.abs(found - (slope @ along)[apart]).max() < 1e-3  # directions come of an iteration
    distance = clearance.distances(q)
    assert np.all(value <= distance[:, : clearance.near].min(axis=1) + 1e-9)
    moved = clearance.distances(q + 1e-3 * along)
    reach = np.array([pair.reach for pair in clearance.pairs]) @ np.abs(along)
    free = (distance > 1e-4) & (moved > 1e-4)
    assert np.all((np.abs(moved - distance) <= 1e-3 * reach + 1e-12)[free])


def test_distances_are_the_same_in_another_process(panda):
    post = Obstacle("post", OBSTACLES["box"]((0.1, 0.1, 1.0), (0.6, 0.5, 0.5)))
    clearance = build_clearance(panda, [post])
    there = pickle.loads(pickle.dumps(clearance))
    assert [each.name for each in there.pairs] == [each.name for each in clearance.pairs]
    q = np.array([0.0, -0.3, 0.0, -1.8, 0.0, 1.6, 0.0]) * np.linspace(0.5, 1.5, 5)[:, None]
    assert np.array_equal(there.distances(q), clearance.distances(q))
    for one, other in zip(
        there.smooth(q, there.unseen(5)), clearance.smooth(q, clearance.unseen(5)), strict=True
    ):
        assert np.array_equal(one, other)


def test_what_was_measured_before_changes_no_minimum(panda):
    clearance = build_clearance(panda)
    rng = np.random.default_rng(8)
    q = np.array([0.0, -0.3, 0.0, -1.8, 0.0, 1.6, 0.0]) + 0.3 * rng.normal(size=(20, 7))
    seen = clearance.unseen(len(q))
    for _ in range(4):
        q = q + 0.05 * rng.normal(size=q.shape)
        kept, slope = clearance.smooth(q, seen)
        fresh, other = clearance.smooth(q, clearance.unseen(len(q)))
        np.testing.assert_allclose(kept, fresh, atol=1e-7)
        np.testing.assert_allclose(slope, other, atol=1e-4)


def test_pairs_that_may_touch_and_unknown_names(panda):
    every = build_clearance(panda)
    fewer = build_clearance(panda, ignore=[("panda_link5", "panda_link7")])
    names = {frozenset(pair.names) for pair in fewer.pairs}
    assert frozenset(("panda_link5", "panda_link7")) not in names
    assert len(fewer.pairs) < len(every.pairs)
    with pytest.raises(InputError, match="nothing is called 'panda_link55'"):
        build_clearance(panda, ignore=[("panda_link55", "panda_link7")])
    wall = Obstacle("wall", OBSTACLES["plane"]((1.0, 0.0, 0.0), -1.0), ("hand",))
    with pytest.raises(InputError, match="obstacle wall: no link with a shape is called 'hand'"):
        build_clearance(panda, [wall])
    assert build_clearance(panda, self_collision=False) is None


def test_pairs_that_an_srdf_disables_are_not_watched(panda, tmp_path):
    srdf = urdf("panda").parent.parent / "srdf" / "panda.srdf"
    every = {pair.names for pair in build_clearance(panda).pairs}
    fewer = {pair.names for pair in build_clearance(panda, srdf=srdf).pairs}
    disabled = {frozenset(pair) for pair in read_disabled_pairs(srdf)}
    assert fewer == {pair for pair in every if frozenset(pair) not in disabled}
    assert len(fewer) < len(every)
    for text, message in (
        ("<sdf/>", "is not SRDF, its root is <sdf>"),
        ("<robot/>", "has no <disable_collisions>"),
        ("<robot>\n<disable_collisions link1='a'/></robot>", "line 2: .* takes link1 and link2"),
        ("<robot><disable_collisions link1='a' link2='b'/></robot>", "none of the links"),
        ("<robot>", "line 1"),
    ):
        path = tmp_path / "other.srdf"
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            build_clearance(panda, srdf=path)
    with pytest.raises(InputError, match="but collision is false"):
        excite(ROBOT, srdf=str(srdf), **QUICK)
    study = tmp_path / "study.toml"
    study.write_text('[robot]\nfile = "a.urdf"\n[excitation]\nsrdf = "b.srdf"\ntask = "c.csv"\n')
    read = read_study(study, use=None).excitation
    assert (read.srdf, read.task) == (str(tmp_path / "b.srdf"), str(tmp_path / "c.csv"))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("box", {"size": (1, 1), "at": (0, 0, 0)}, "size takes three numbers"),
        ("plane", {"normal": (0, 0, 0)}, "normal of a plane is zero"),
        ("room", {"lower": (0, 0, 0), "upper": (1, 1, -1)}, "lower below upper"),
        ("mesh", {"file": "nowhere.stl"}, "there is no mesh nowhere.stl"),
        (
            "sphere",
            {"radius": 1e160, "at": (0, 0, 0)},
            r"radius is 1e\+160, but has to be from 1e-06 to 10000",
        ),
        ("sphere", {"radius": -1.0, "at": (0, 0, 0)}, "radius is -1, but has"),
        ("sphere", {"radius": 1.0, "at": (0, 0, -1e200)}, r"at is -1e\+200"),
        ("box", {"size": (1, 1e9, 1), "at": (0, 0, 0)}, r"size is 1e\+09"),
        ("box", {"size": (1, 0, 1), "at": (0, 0, 0)}, "size is 0, but has"),
        ("plane", {"normal": (0, 0, 1e-100), "offset": 1.0}, "offset is "),
        ("plane", {"normal": (0, 0, 1), "offset": 1e300}, "offset is "),
    ],
)
def test_obstacles_that_cannot_be_are_refused(kind, options, message):
    with pytest.raises(InputError, match=message):
        OBSTACLES[kind](**options)


def test_obstacles_far_away_flat_or_around_the_robot(panda, tmp_path):
    flat = tmp_path / "flat.stl"
    corners = "".join(f"vertex {a} {b} 0\n" for a, b in ((0, 0), (1, 0), (0, 1)))
    flat.write_text(f"solid a\nfacet normal 0 0 1\nouter loop\n{corners}endloop\nendfacet\n"
                    "endsolid a\n")  # fmt: skip
    with pytest.raises(InputError, match=r"flat.stl: its corners lie in a plane"):
        OBSTACLES["mesh"](str(flat))
    far = Obstacle("moon", OBSTACLES["sphere"](1.0, (50.0, 0.0, 0.0)))
    clearance = build_clearance(panda, [far], self_collision=False)
    least, _ = clearance.smooth(np.zeros((2, panda.n)), clearance.unseen(2))
    assert np.all(least > 40.0)
    around = Obstacle("shell", OBSTACLES["sphere"](5.0, (0.0, 0.0, 0.0)))
    with pytest.raises(InputError, match="obstacle shell: panda_link1 is inside of it wherever"):
        build_clearance(panda, [around])


# ------------------------------------------------------------------------ the floor


@pytest.mark.long
def test_no_robot_goes_through_the_plane_of_its_base():
    robot = load_robot(urdf("ur5"))
    given = {**QUICK, "harmonics": 3, "iterations": 12, "starts": 1, "duration": 3.0}
    # where it begins it points at what is beneath it
    low = {"initial": (0.0, 0.5, 0.3, 0.0, 0.0, 0.0)}
    with pytest.raises(ComputationError, match="and floor are -"):
        excite(robot, **given, **low)
    under = excite(robot, floor=False, **given, **low)
    assert under.lowest.height < -0.1
    assert "floor       not checked; lowest point" in summarise_excitation(under)
    found = excite(robot, floor=-0.6, **given, **low)
    kept = {each.where: each for each in found.design.certificate.kept if each.what == "clearance"}
    assert {where.split(" and ")[1] for where in kept} == {"floor"}
    assert "base_link and floor" not in kept
    assert all(each.ok for each in kept.values())
    assert -0.6 + 0.01 <= found.lowest.height < 0.1
    clearance = build_clearance(robot, [build_floor(0.0)], self_collision=False)
    times = found.trajectory.family.grid(found.design.certificate.step)
    heights = clearance.distances(found.trajectory.at(times))
    assert found.lowest.height == pytest.approx(heights.min())
    # the lowest point of all vertices of a link, which its hull has too
    scene = build_scene(robot, most=1_000_000)
    placed = place_bodies(robot, found.trajectory.at(np.array([found.lowest.time])))[0]
    (points,) = (each for each in scene.pieces if each.name == found.lowest.link)
    z = points.points @ placed[points.body, 2, :3] + placed[points.body, 2, 3]
    assert z.min() == pytest.approx(found.lowest.height, abs=1e-4)
    document = serialise_trajectory(found)
    assert document["floor"] == -0.6
    assert document["lowest"]["height"] == found.lowest.height
    assert f"z = {found.lowest.height:.4g} m" in " ".join(summarise_excitation(found).split())


def test_a_turn_about_the_normal_changes_no_height(panda):
    robot = panda
    clearance = build_clearance(robot, [build_floor(-0.5)], self_collision=False)
    for pair in clearance.pairs:
        assert pair.reach[0] == pytest.approx(0.0, abs=1e-9)
    rng = np.random.default_rng(31)
    q, along = rng.uniform(-1.5, 1.5, (40, robot.n)), rng.normal(size=robot.n)
    moved = clearance.distances(q + 1e-4 * along) - clearance.distances(q)
    reach = np.array([pair.reach for pair in clearance.pairs]) @ np.abs(along)
    assert np.all(np.abs(moved) <= 1e-4 * reach + 1e-9)
    # what turns on the floor whatever the motion is let be, what is beneath it is refused
    grounded = build_clearance(robot, [build_floor(0.2)], self_collision=False, least=0.01)
    assert [pair.names for pair in grounded.touching] == [("panda_link1", "floor")]
    with pytest.raises(InputError, match=r"floor: panda_link\d is below it .* floor = false"):
        build_clearance(robot, [build_floor(0.9)], self_collision=False)


@pytest.mark.long
def test_a_floor_is_named_once_and_a_robot_without_shapes_is_told():
    drawn = Obstacle("floor", OBSTACLES["plane"]((0.0, 0.0, 1.0), -0.3))
    robot = load_robot(urdf("ur5"))
    few = {**QUICK, "harmonics": 2, "iterations": 1, "starts": 1}
    assert serialise_trajectory(excite(robot, obstacles=[drawn], **few))["floor"] == -0.3
    with pytest.raises(InputError, match="an obstacle is called floor"):
        excite(robot, obstacles=[drawn], floor=-0.1, **few)
    (said,) = (each for each in plain().warnings if "floor" in each)
    assert said.startswith("the floor is not checked: ")
    assert plain().lowest is None
    assert not any("floor" in each for each in excite(ROBOT, floor=False, **QUICK).warnings)
    with pytest.raises(InputError, match="robot has no URDF"):
        excite(ROBOT, floor=-0.5, **QUICK)


@pytest.mark.parametrize(
    ("name", "height", "said"),
    [
        ("wheel", 0.0, "wheel and floor"),  # on the floor wherever it turns
        ("wheel", 0.3, "floor: wheel is below it"),
        ("slab", 0.0, "no convex hull can be made of slab"),
    ],
)
def test_wheels_rest_on_the_floor_and_flat_links_are_told(tmp_path, name, height, said):
    corners = "".join(f"vertex {a} {b} 0\n" for a, b in ((0, 0), (1, 0), (0, 1)))
    (tmp_path / "flat.stl").write_text(
        f"solid a\nfacet normal 0 0 1\nouter loop\n{corners}endloop\nendfacet\nendsolid a\n"
    )
    shape = (
        '<cylinder radius="0.1" length="0.05"/>'
        if name == "wheel"
        else '<mesh filename="flat.stl"/>'
    )
    path = tmp_path / "cart.urdf"
    path.write_text(
        f"""<robot name="cart"><link name="base"/><link name="{name}"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><geometry>{shape}</geometry></collision></link>
        <joint name="axle" type="continuous"><parent link="base"/><child link="{name}"/>
        <origin xyz="0 0 0.099" rpy="1.5707963 0 0"/><axis xyz="0 0 1"/></joint></robot>"""
    )
    robot, warnings = load_robot(path), []
    try:
        choose_surroundings(robot, TrajectoryLimits(collision=False, floor=height), (), warnings)
    except InputError as error:
        warnings.append(str(error))
    assert len(warnings) == 1
    assert said in warnings[0]


# ------------------------------------------------------------------------ the search


def test_the_barrier_method_ends_where_another_does():
    rng = np.random.default_rng(9)
    target, A = rng.normal(size=6) * 2.0, rng.normal(size=(40, 6))

    def evaluate(z):
        f = float(np.sum((z - target) ** 2) + 0.1 * np.sum(z**4))
        gradient = 2.0 * (z - target) + 0.4 * z**3
        c = np.concatenate([A @ z, [z @ z]])
        return f, gradient, c, np.vstack([A, 2.0 * z])

    high = np.concatenate([np.ones(40), [2.0]])
    program = Program(evaluate, np.concatenate([-np.ones(40), [-np.inf]]), high, np.ones(41))
    found = minimise_program(program, np.zeros(6), iterations=300, tolerance=1e-7)
    other = minimize(
        lambda z: evaluate(z)[0],
        np.zeros(6),
        jac=lambda z: evaluate(z)[1],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
        constraints=[
            {"type": "ineq", "fun": lambda z: 1.0 - A @ z, "jac": lambda z: -A},
            {"type": "ineq", "fun": lambda z: 1.0 + A @ z, "jac": lambda z: A},
            {"type": "ineq", "fun": lambda z: 2.0 - z @ z, "jac": lambda z: -2.0 * z},
        ],
    )
    assert evaluate(found)[0] == pytest.approx(other.fun, rel=1e-5)
    np.testing.assert_allclose(found, other.x, atol=2e-3)
    assert np.all(np.abs(A @ found) < 1.0)
    with pytest.raises(ComputationError, match="begin within"):
        minimise_program(program, np.full(6, 10.0))


ROBOT = limited(arm(2))
QUICK = {
    "duration": 4.0,
    "starts": 2,
    "iterations": 40,
    "rate": 100.0,
    "acceleration": 20.0,
    "collision": False,
}


@cache
def plain(seed=0):
    """The trajectory that is designed where nothing else is asked."""
    return excite(ROBOT, **{**QUICK, "seed": seed})


@pytest.mark.parametrize("kind", first(TRAJECTORIES, 3))
def test_every_family_leads_to_a_trajectory_that_is_proved_to_keep_its_limits(kind):
    found = excite(ROBOT, trajectory=kind, **QUICK)
    design = found.design
    assert design.certificate.ok
    reference = design.trajectory.reference(2000.0)
    limits = design.task.limits
    assert np.all(np.abs(reference.dq) <= limits.speed)
    assert np.all(np.abs(reference.ddq) <= limits.acceleration)
    tau = design.task.nominal.torque(reference.q, reference.dq, reference.ddq)
    assert np.all(np.abs(tau) <= limits.torque)
    assert np.all(np.isfinite(found.prediction.std))
    task = design.task
    if task.drawn is not None:
        return  # random it stays
    # far better than the random motion from which it began
    program = build_program(task, limits, task.family.grid(task.step))
    start = draw_random_start(task, program, np.random.default_rng(QUICK.get("seed", 0)))
    assert design.value < task.value(Trajectory(task.family, start)) - 1.0


@pytest.mark.long
def test_a_start_that_finds_no_place_costs_nothing(monkeypatch, panda):
    calls = []

    def once(*args):
        calls.append(args)
        if len(calls) > 1:
            raise ComputationError("standing still already breaks the limits")
        return draw_random_start(*args)

    monkeypatch.setattr("dynident.excitation.design.draw_random_start", once)
    few = QUICK | {"iterations": 8}
    several = excite(panda, **few | {"starts": 3})
    assert len(calls) == 3
    calls.clear()
    alone = excite(panda, **few | {"starts": 1})
    assert several.design.value == pytest.approx(alone.design.value, rel=1e-9)


@pytest.mark.long
def test_the_answer_depends_on_the_seed_alone():
    first, second = plain(), excite(ROBOT, **QUICK)
    np.testing.assert_array_equal(first.trajectory.C, second.trajectory.C)
    assert np.abs(plain(1).trajectory.C - first.trajectory.C).max() > 1e-3


def searched(task, trajectory):
    """Where the barrier method leads from a trajectory inside of all limits."""
    program = build_program(task, task.limits, task.family.grid(task.step))
    z = minimise_program(program, trajectory.C.ravel(), 60)
    return Trajectory(task.family, z.reshape(trajectory.C.shape))


@pytest.mark.long
def test_every_criterion_is_searched_by_its_own_measure():
    """Which valley a search ends in is chance; that it goes down by its own measure is not."""
    task = plain().design.task
    program = build_program(task, task.limits, task.family.grid(task.step))
    begun = Trajectory(task.family, draw_random_start(task, program, np.random.default_rng(0)))
    for kind in ("d", "a", "e", "column-condition"):
        own = replace(task, criterion=kind)
        assert own.value(searched(own, begun)) < own.value(begun) - 1.0, kind
        # and by no other: it is what the program's values are, but for a constant
        other = Trajectory(task.family, 0.9 * begun.C)
        here, there = (
            build_program(own, own.limits, own.family.grid(own.step)).evaluate(each.C.ravel())[0]
            for each in (begun, other)
        )
        assert there - here == pytest.approx(own.value(other) - own.value(begun), abs=0.006), kind


@pytest.mark.long
def test_wanted_parameters_become_better_known():
    name = plain().prediction.names[0]
    own = excite(ROBOT, criterion="std", wanted=(name,), **QUICK)
    assert own.prediction.std[0] < plain().prediction.std[0]


@pytest.mark.long
def test_a_task_is_predicted_best_by_its_own_criterion():
    reference = random_trajectory(("quintic", {"points": 4}), n=2, seed=11, size=0.5).reference(
        50.0
    )
    own = excite(ROBOT, criterion="torque", task=reference, **QUICK)
    assert own.design.value < own.design.task.value(plain().trajectory)
    # the value is that of torques by rows of their own
    task = own.design.task
    X = task.experiment.base.idim.regressor(reference.q, reference.dq, reference.ddq)
    X = X[:, :, task.experiment.base.kept]
    exact = replace(task.experiment, width=None)
    P = np.linalg.inv(exact.information(sample_motion(own.trajectory, 0.25 * task.step)))
    std = np.sqrt(np.einsum("tji,ik,tjk->tj", X, P, X))
    assert np.sqrt(np.mean(std**2)) == pytest.approx(np.exp(0.5 * own.design.value), rel=1e-3)
    with pytest.raises(InputError, match="needs the task"):
        excite(ROBOT, criterion="torque", **QUICK)
    with pytest.raises(InputError, match="task needs the criterion 'torque', not 'd'"):
        excite(ROBOT, task=reference, **QUICK)
    with pytest.raises(InputError, match="the task moves 2 joints, the robot has 3"):
        excite(limited(arm(3)), criterion="torque", task=reference, **QUICK)


@pytest.mark.long
def test_a_task_is_read_from_a_log_or_a_trajectory(tmp_path, capfd):

    urdf_ = str(urdf("ur5"))
    arguments = ["excite", urdf_, "--no-collision", "--acceleration", "10", "--harmonics", "2"]
    arguments += ["--starts", "1", "--iterations", "4", "--rate", "100"]
    arguments += ["--duration", "4"]
    names = load_robot(urdf_).joint_names
    time = np.arange(800) / 100.0
    q = 0.4 * np.sin(2.0 * np.pi * 0.4 * time[:, None] + np.arange(6))
    log = tmp_path / "task.csv"
    write_joints(log, names, 100.0, q=q)
    (tmp_path / "study.toml").write_text(
        f'[robot]\nfile = "{urdf_}"\n[excitation]\ntask = "task.csv"\ncriterion = "torque"\n'
    )
    study = [*arguments[:1], "--study", str(tmp_path / "study.toml"), *arguments[2:]]
    flags = [*arguments, "--criterion", "torque", "--task", str(log)]
    assert ask(capfd, study)["criterion"]["value"] == ask(capfd, flags)["criterion"]["value"]
    # the motion of the log, but for its filter and the ends that it takes
    robot = load_robot(urdf_)
    task = read_task(log, robot, PrepareSection())
    exact = 0.8 * np.pi * 0.4 * np.sqrt(0.5)
    assert np.sqrt(np.mean(task.dq**2)) == pytest.approx(exact, rel=0.05)
    designed = tmp_path / "trajectory.json"
    designed.write_text(to_json(replace_nonfinite(serialise_trajectory(plain()))))
    task = read_task(designed, ROBOT, PrepareSection())
    np.testing.assert_array_equal(task.q, plain().trajectory.reference(QUICK["rate"]).q)
    with pytest.raises(InputError, match="moves 2 joints, the robot has 6"):
        read_task(designed, robot, PrepareSection())
    for more, message in (
        (["--task", str(log)], "a task needs the criterion 'torque'"),
        (["--criterion", "torque"], "needs the task"),
        (["--criterion", "torque", "--task", str(tmp_path / "none.csv")], "none.csv"),
        (["--criterion", "torque", "--task", urdf_], "ur5"),
    ):
        err = tell(capfd, [*arguments, *more], code=2).err
        assert err.count("\n") == 1
        assert message in err


@pytest.mark.long
def test_what_is_known_already_is_not_asked_again():
    base = base_parameters(build_idim(ROBOT))
    first = plain()
    motion = sample_motion(first.trajectory, 0.01)
    known = replace(first.design.task.experiment, width=None).information(motion)
    again = excite(ROBOT, known=known, **{**QUICK, "seed": 1})
    apart = plain(1)
    both = again.design.task.value(again.trajectory)
    assert both <= again.design.task.value(apart.trajectory)
    belief = compute_prior_information(base, np.ones(base.count))
    assert np.all(np.linalg.eigvalsh(belief) > 0.0)
    unknown = excite(ROBOT, criterion="unknown", **QUICK)
    assert unknown.design.value < 0.0


@pytest.mark.long
def test_a_second_trajectory_complements_the_first():
    first = plain()
    second = excite(ROBOT, after=(first.trajectory,), **{**QUICK, "seed": 1})
    apart = plain(1)
    value = second.design.task.value
    assert value(second.trajectory) <= value(apart.trajectory) + 1e-6
    assert np.all(second.prediction.std < first.prediction.std)


@pytest.mark.long
def test_polishing_makes_no_worse_and_is_proved_likewise():
    rough = excite(ROBOT, criterion="e", **{**QUICK, "starts": 1})
    polished = excite(ROBOT, criterion="e", polish=True, time=3.0, **{**QUICK, "starts": 1})
    assert polished.design.value <= rough.design.value
    assert polished.design.certificate.ok


def test_what_is_best_so_far_is_kept_when_it_is_stopped(monkeypatch):
    from dynident.excitation import design

    once = design.search_trajectory

    def twice(*arguments):
        monkeypatch.setattr(design, "search_trajectory", interrupted)
        return once(*arguments)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(design, "search_trajectory", twice)
    found = excite(ROBOT, **{**QUICK, "starts": 5})
    assert found.design.stopped == "stopped by hand after 1 of 5 starts"
    assert found.design.certificate.ok
    monkeypatch.setattr(design, "search_trajectory", interrupted)
    with pytest.raises(KeyboardInterrupt):
        excite(ROBOT, **QUICK)


@pytest.mark.long
def test_the_time_ends_searches_and_proofs(monkeypatch):
    from dynident.excitation import design

    calls = []

    def never(*arguments):
        calls.append(arguments)
        return replace(plain().design.certificate, kept=(replace(worst, share=1.5),))

    worst = plain().design.certificate.worst
    monkeypatch.setattr(design, "certify_trajectory", never)
    begun = time.monotonic()
    monkeypatch.setattr(
        "time.monotonic", lambda: begun + 3.0 * len(calls)
    )  # each proof takes three seconds
    with pytest.raises(ComputationError, match="in 2 s; allow more time, or choose fewer"):
        excite(ROBOT, time=2.0, **{**QUICK, "starts": 9})
    assert len(calls) <= 4
    monkeypatch.undo()
    for options in ({"harmonics": 1000}, {"trajectory": "spline", "intervals": 500}):
        with pytest.raises(InputError, match="too many to search; choose fewer harmonics"):
            excite(ROBOT, **QUICK, **options)
    with pytest.raises(InputError, match="samples; choose a smaller rate"):
        excite(ROBOT, **{**QUICK, "rate": 1e9})
    proof = certify_trajectory(
        plain().trajectory, plain().design.task.limits, plain().design.task.nominal, None,
        ROBOT.joint_names, 3.0, end=-np.inf,
    )  # fmt: skip
    assert not proof.ok


def test_a_trajectory_begins_where_it_is_asked_to():
    found = excite(ROBOT, initial=(0.5, -0.5), **QUICK)
    np.testing.assert_allclose(found.trajectory.at(np.array([0.0]))[0], [0.5, -0.5], atol=2e-4)


@pytest.mark.long
def test_knots_of_splines_may_be_searched():
    fixed = excite(ROBOT, trajectory="spline", **{**QUICK, "starts": 1})
    free = excite(ROBOT, trajectory="spline", free_knots=True, **{**QUICK, "starts": 3})
    assert free.design.value <= fixed.design.value
    assert free.design.certificate.ok
    again = replace(free.trajectory, family=free.shape.family())
    np.testing.assert_allclose(again.reference(100.0).q, free.trajectory.reference(100.0).q)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"free_knots": True}, "has no 'free_knots'"),
        ({"criterium": "d"}, "no option 'criterium'.*'criterion'"),
        ({"wanted": ("m9",), "criterion": "std"}, "no base parameter is called 'm9'"),
        ({"criterion": "std"}, "needs the base parameters that are wanted"),
        ({"trajectory": "spline", "periods": 2}, "periods need a fourier series"),
        ({"speed": (1.0, 2.0, 3.0)}, "speed has 3 values"),
        ({"margin": 1.5}, "margin"),
        ({"sigma": 1e300}, r"sigma has to be 0, or from 1e-09 to 1e\+09 in magnitude, got 1e\+300"),
        ({"speed": 1e-300}, "speed has to be"),
        ({"ramp": 1e9}, "too many to search"),
        ({"floor": 1e300}, "floor"),
        ({"load": 1.0, "load_centre": (1e300, 0.0, 0.0)}, "load_centre has to be"),
        ({"rate": 1e9}, "samples; choose a smaller rate"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        excite(ROBOT, **{**QUICK, **options})


@pytest.mark.long
def test_robots_that_cannot_be_excited_are_refused(panda):
    with pytest.raises(InputError, match="fixed base"):
        excite(load_robot(urdf("solo12"), floating=True), acceleration=1.0)
    with pytest.raises(InputError, match="depends on more"):
        excite(ROBOT, friction="dahl", **QUICK)
    folded = (0.0, 1.7, 0.0, -3.0, 0.0, 0.0, 0.0)
    with pytest.raises(ComputationError, match=r"at the initial pose: .* mm apart"):
        excite(panda, initial=folded, acceleration=10.0)
    weak = limited(arm(2), effort=1e-3)
    with pytest.raises(ComputationError, match=r"standing still already breaks .* Nm"):
        excite(weak, **QUICK)


def test_warnings_say_what_is_not_watched():
    found = excite(replace(ROBOT, nominal=np.zeros((2, 10))), **QUICK)
    assert any("torques are not limited" in each for each in found.warnings)
    slow = excite(ROBOT, **{**QUICK, "acceleration": 1e-9, "iterations": 1, "starts": 1})
    assert slow.design.certificate.ok
    count = slow.prediction.base.count
    assert re.search(rf"does not excite \d+ of {count} parameters", " ".join(slow.warnings))
    assert not any("motion" in each for each in plain().warnings)
    short = excite(ROBOT, sigma=30.0, **{**QUICK, "duration": 1.0, "iterations": 10, "starts": 1})
    known = np.count_nonzero(short.prediction.nominal)
    (word,) = (each for each in short.warnings if "uncertain" in each)
    assert word.startswith(f"of {known} parameters that the robot file has, the motion leaves ")
    assert "(duration, periods)" in word
    with pytest.raises(InputError, match=r"nothing is known of its shape.*--no-collision"):
        excite(ROBOT, **{**QUICK, "collision": True})


# ------------------------------------------------------------------------ a force sensor


def sensed(robot, link, rng, instants=40):
    """A motion, and an experiment with a sensor."""
    sigma = np.linspace(0.1, 0.7, robot.n)
    sensor = build_sensor(robot, link, (0.5, 0.02), sigma)
    experiment = Experiment(base_parameters(build_idim(robot)), sigma, 100.0, sensor=sensor)
    q, dq, ddq = rng.normal(size=(3, instants, robot.n))
    return experiment, WeightedMotion(q, dq, ddq, np.full(instants, 0.01))


def test_a_sensor_tells_what_the_equations_of_the_limb_beyond_it_do(panda):
    experiment, motion = sensed(panda, "panda_link5", np.random.default_rng(20))
    limb = cut_off_limb(panda, "panda_link5")
    base = base_parameters(build_idim(limb))
    own, count = experiment.base.count, len(motion.q)
    assert experiment.names[own:] == base.names
    # the sensor is carried as it is by the arm; the limb floats on it
    felt = evaluate_seat_motion(
        build_tree(panda), panda, limb.seat, (motion.q, motion.dq, motion.ddq)
    )
    pose = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (count, 1))
    twist = np.hstack([np.zeros((count, 3)), felt[:, :3]])
    acceleration = np.hstack([felt[:, 6:], felt[:, 3:6]])
    moved = BaseMotion(pose, twist, acceleration, proper=True, oriented=False, still=False)
    floating = [
        np.hstack(pair)
        for pair in zip(
            moved.motion(panda.gravity),
            (motion.q[:, 5:], motion.dq[:, 5:], motion.ddq[:, 5:]),
            strict=True,
        )
    ]
    X = base.idim.regressor(*floating)[:, :, base.kept]
    weights = np.concatenate([np.repeat([0.5, 0.02], 3), experiment.sigma[5:]]) ** -2.0
    expected = np.einsum("tri,r,trj->ij", X, weights, X)
    found = experiment.information(motion)
    np.testing.assert_allclose(found[own:, own:], expected, atol=1e-9 * np.abs(expected).max())
    plain = replace(experiment, sensor=None).information(motion)
    np.testing.assert_array_equal(found[:own, :own], plain)
    assert not np.any(found[:own, own:])
    sensor = experiment.sensor.base
    np.testing.assert_allclose(
        sensor.matrix @ sensor.idim.nominal, base.matrix @ base.idim.nominal, atol=1e-12
    )


@pytest.mark.parametrize("link", ["panda_link5", "panda_hand"])
def test_the_information_of_a_sensor_has_the_slopes_of_differences(panda, link):
    rng = np.random.default_rng(21)
    experiment, motion = sensed(panda, link, rng, 12)
    smooth = replace(experiment, width=np.full(panda.n, 0.1))
    G = rng.normal(size=(len(smooth.names),) * 2)
    G += G.T
    pulls = smooth.pull(motion, G)
    signals = motion.q, motion.dq, motion.ddq
    for order, pull in enumerate(pulls):
        along = rng.normal(size=pull.shape)

        def value(*moved):
            return np.sum(G * smooth.information(WeightedMotion(*moved, motion.duration)))

        assert_slope(moved_along(value, signals, order, along), np.sum(pull * along), 1e-5)


def test_a_load_on_a_sensor_is_what_it_holds(panda):
    centre = np.array([0.01, 0.02, 0.2])
    found = []
    for load in ((0.0, centre), (2.0, centre)):
        sensor = build_sensor(panda, "panda_hand", (1.0, 0.1), np.ones(7), load=load)
        values = sensor.base.matrix @ sensor.base.idim.nominal
        own = dict(zip(sensor.names, values, strict=True))
        found.append(np.array([own[name] for name in ("m0", "mx0", "my0", "mz0")]))
    link, rotation, translation = locate_frame(panda, "panda_hand")
    assert link == panda.links[-1]
    assert found[0][0] == pytest.approx(0.76)  # the hand and its fingers
    mass, *first = found[1] - found[0]
    assert mass == pytest.approx(2.0)
    np.testing.assert_allclose(first, 2.0 * rotation.T @ (centre - translation), atol=1e-12)


@pytest.mark.long
def test_a_motion_for_a_sensor_tells_more_of_what_it_holds():
    robot = load_robot(urdf("ur5"))
    options = {**QUICK, "harmonics": 3, "iterations": 25, "starts": 1}
    sensor = {"sensor": "tool0", "sensor_sigma": (1.0, 0.1)}
    both = excite(robot, load=1.0, load_centre=(0.0, 0.1, 0.0), **sensor, **options)
    assert both.design.certificate.ok
    assert len(both.sensed.std) == 10
    assert dict(zip(both.sensed.names, both.sensed.nominal, strict=True))["m0"] >= 1.0
    # by the same rows, a motion for the robot alone can be bettered
    alone = excite(robot, load=1.0, load_centre=(0.0, 0.1, 0.0), **options).trajectory
    task = both.design.task
    assert task.value(searched(task, alone)) < task.value(alone) - 0.02
    text = summarise_excitation(both)
    assert "beyond tool0" in text
    assert serialise_trajectory(both)["sensor"]["parameters"][-1]["name"] == "m0"
    wanted = excite(
        robot, criterion="std", wanted=("m0",), **sensor, **{**options, "iterations": 5}
    )
    assert wanted.design.task.asked.wanted.shape == (1, len(both.design.task.experiment.names))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensor": "tool0"}, "sensor tool0: give its noise"),
        ({"sensor_sigma": (1.0, 0.1)}, "name the link behind it"),
        ({"sensor": "tool9", "sensor_sigma": (1.0, 0.1)}, "there is no link 'tool9'"),
        ({"sensor": "base_link", "sensor_sigma": (1.0, 0.1)}, "base_link does not move"),
    ],
)
def test_sensors_that_cannot_be_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        excite(load_robot(urdf("ur5")), **QUICK, **options)
    with pytest.raises(InputError, match="robot has no URDF"):
        excite(ROBOT, sensor="tool0", sensor_sigma=(1.0, 0.1), **QUICK)


def test_a_limb_is_excited_by_the_whole_robot(panda):
    with pytest.raises(InputError, match="design for the whole robot, with sensor = 'panda_link5'"):
        excite(cut_off_limb(panda, "panda_link5"), **QUICK)


# ------------------------------------------------------------------------ command and files


def test_the_command_writes_its_files_and_they_are_read_back(tmp_path, capfd, panda):
    from dynident.cli import run
    from dynident.excitation.sections import trajectory
    from dynident.experiments.page import OUTPUTS

    (tmp_path / "study.toml").write_text(
        f"""
[robot]
file = "{urdf("ur5")}"
[excitation]
acceleration = 10.0
duration = 2.0
harmonics = 3
starts = 1
iterations = 6
rate = 100.0
[[obstacle]]
kind = "plane"
name = "floor"
normal = [0.0, 0.0, 1.0]
offset = -0.2
"""
    )
    out = tmp_path / "out"
    arguments = ["excite", "--study", str(tmp_path / "study.toml"), "-o", str(out)]
    document = ask(capfd, [*arguments, "--periods", "2"])
    assert {each.name for each in out.iterdir()} == {*OUTPUTS} - {"trajectory.script"}
    assert document == json.loads((out / "trajectory.json").read_text())
    assert document["kept"] is True
    assert any(each["where"].endswith("and floor") for each in document["limits"])
    table = np.genfromtxt(out / "trajectory.csv", delimiter=",", names=True)
    reference = trajectory(str(out / "trajectory.json"))
    assert len(table) == len(reference.q) == 401
    np.testing.assert_allclose(table["qref_elbow_joint"], reference.q[:, 2], atol=1e-7)
    # the series of the papers, as the simulator has it
    series = document["fourier"]
    from dynident.control.reference import fourier

    other = fourier(100.0, 4.0, 0.5, series["offset"], series["sine"], series["cosine"])
    np.testing.assert_allclose(other.q, reference.q[:400], atol=1e-9)
    message = (out / "trajectory.ros2.yaml").read_text()
    assert "joint_names: ['shoulder_pan_joint'" in message
    assert run([*arguments, "--periods", "2", "--script"]) == 0
    assert "the base frame; only what is fixed to" in " ".join(capfd.readouterr().out.split())
    assert (out / "trajectory.script").read_text().count("servoj") == 501
    assert {each.name for each in out.iterdir()} == {*OUTPUTS}
    assert document["floor"] == -0.2
    assert -0.2 < document["lowest"]["height"] < 0.2
    page = (out / "report.html").read_text()
    assert "Limits kept" in page
    assert "lowest point reached: z = " in page
    assert "<iframe" in page
    assert not re.search("https?:", page.replace("http://www.w3.org", ""))


def test_a_program_of_an_earlier_trajectory_does_not_stay(tmp_path, monkeypatch):
    """There is one for robots of six joints alone."""
    from dynident.cli import run
    from dynident.experiments import page, trajectory
    from dynident.study import excite as exciting

    monkeypatch.setattr(exciting, "excite_study", lambda *_: None)
    monkeypatch.setattr(trajectory, "summarise_excitation", lambda _: "")
    files = ["notes.txt", "trajectory.json", "trajectory.script"]
    for wanted in (files, files[1:2]):
        texts = dict.fromkeys(sorted(wanted, key=lambda name: name != "trajectory.json"), "x")
        monkeypatch.setattr(page, "render_excitation_files", lambda *_, given=texts: given)
        assert run(["excite", str(urdf("panda")), "-o", str(tmp_path / "o")]) == 0
    assert sorted(each.name for each in (tmp_path / "o").iterdir()) == files[:2]


def test_the_command_refuses_in_one_line(tmp_path, capfd):

    robot = str(urdf("panda"))
    cases = [
        (["excite"], "give either a robot's file or --study"),
        (["excite", robot, "--harmonics", "0"], "harmonics"),
        (["excite", robot, "--speed", "fast"], "numbers with commas"),
        (["excite", robot, "--criterion", "f"], "criterion"),
        (["excite", robot, "--base-wrench", "1,2"], "base_wrench"),
        (["excite", str(tmp_path / "no.urdf")], "no.urdf"),
        (["excite", robot, "--trajectory", "spline", "--ramp", "1"], "has no 'ramp'"),
        (["excite", str(urdf("tx40"))], "there is no mesh .* go without collisions"),
        (["excite", robot, "--script"], "give the directory"),
        (["excite", robot, "--script", "-o", str(tmp_path)], "six|6 turning joints.* slides"),
        (["excite", robot, "--floor", "low"], "floor"),
    ]
    for arguments, message in cases:
        err = tell(capfd, arguments, code=2).err
        assert err.count("\n") == 1
        assert re.search(message, err)


def test_designed_trajectories_are_simulated_and_damaged_files_refused(tmp_path):
    found = plain()
    from dynident.core.errors import InputError
    from dynident.excitation.sections import trajectory

    path = tmp_path / "trajectory.json"
    text = to_json(replace_nonfinite(serialise_trajectory(found)))
    path.write_text(text)
    reference = trajectory(str(path), rate=50.0)
    np.testing.assert_allclose(reference.q, found.trajectory.reference(50.0).q, atol=1e-12)
    assert all(len(line) <= 80 for line in summarise_excitation(found).splitlines())
    for damage, message in [
        ("{", "is not JSON"),
        ("[]", "is not a dynident.trajectory/1"),
        (text.replace('"coefficients"', '"coefficient"'), "is not whole"),
        (
            text.replace('"duration":4.0', '"harmonics":2').replace(
                '"duration": 4.0', '"harmonics": 2'
            ),
            "finite rows",
        ),
    ]:
        path.write_text(damage)
        with pytest.raises(InputError, match=message):
            trajectory(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        trajectory(str(tmp_path / "none.json"))


def test_the_front_door_has_it():
    assert di.excite is excite
    assert isinstance(build_limits(ROBOT, TrajectoryLimits()), Limits)
