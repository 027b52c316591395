"""Poses that are held: rests are found, averaged by side of approach, and tell gravity alone."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
import toy
from commands import ask, tell
from robots import EXAMPLES
from tables import write_joints

import dynident as di
from dynident.cli import run
from dynident.control.controller import pd
from dynident.core.errors import ComputationError, InputError
from dynident.dynamics.base import base_parameters
from dynident.dynamics.equations import Observability
from dynident.dynamics.idim import build_idim
from dynident.estimators.closed_loop import Simulation
from dynident.export.urdf import render_urdf
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.rests import average_rests
from dynident.robot import load_robot

RATE, HOLD, MOVE, STEP = 200.0, 1.0, 0.6, 0.15
POSES = 12
STATIC = (Observability(static=True),)


def follow(points):
    """Quintic moves from point to point with rests between them."""
    s = np.arange(int(MOVE * RATE)) / (MOVE * RATE)
    shape = 10 * s**3 - 15 * s**4 + 6 * s**5
    speed = (30 * s**2 - 60 * s**3 + 30 * s**4) / MOVE
    slope = (60 * s - 180 * s**2 + 120 * s**3) / MOVE**2
    parts = []
    for a, b in pairwise(points):
        way = b - a
        parts += [(a + shape[:, None] * way, speed[:, None] * way, slope[:, None] * way)]
        still = np.zeros((int(HOLD * RATE), len(a)))
        parts += [(still + b, still, still)]
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def held(n=3, seed=0, noise=0.2, both=True, times=1):
    """A log of poses approached from below and from above, and the parameters behind it."""
    robot = toy.arm(n)
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    rng = np.random.default_rng(seed)
    points = [np.zeros(n)]
    for _ in range(POSES):
        pose, side = rng.uniform(-1.5, 1.5, n), STEP * rng.choice([-1.0, 1.0], n)
        points += [pose - side, pose, pose + side, pose] if both else [points[-1] + 0.1]
    q, dq, ddq = follow(np.array(points[:1] + times * points[1:]))
    tau = idim.torque(theta, q, dq, ddq)
    # what holds a joint has the sign of its last speed
    last, friction = np.zeros(n), [idim.names.index(f"fc{k + 1}") for k in range(n)]
    for t in range(len(q)):
        last = np.where(dq[t] != 0.0, np.sign(dq[t]), last)
        tau[t] += np.where(dq[t] == 0.0, theta[friction] * last, 0.0)
    tau = tau + noise * rng.normal(size=tau.shape)
    q = q + 1e-5 * rng.normal(size=q.shape)
    return Recording("held poses", RATE, q, tau), theta


def prepared(rests=0.5, **options):
    recording, theta = held(**options)
    return prepare(recording, 8.0, rests=rests), theta


def test_the_truth_lies_within_the_intervals():
    samples, theta = prepared()
    problem = Problem(toy.arm(3), samples)
    found = di.identify(problem, "static")
    truth = found.base.matrix @ theta
    z = (found.estimate.beta - truth) / found.estimate.covariance.std
    assert np.abs(z).max() < 4.0
    assert np.sum(np.abs(z) < 2.0) >= 0.8 * len(z)
    assert np.all(found.estimate.covariance.std < 0.05)
    assert {"fc1", "fc2", "fc3", "off2", "off3"} <= set(found.base.names)
    assert not {"Ia1", "fv1"} & set(found.base.names)
    assert "equations   full, poses held: " in found.summary()
    assert "poses held, by side of approach)" in found.summary()


@pytest.mark.long
def test_rests_are_averaged_by_pose_and_side():
    recording, _ = held(noise=0.0)
    samples = prepare(recording, 8.0, rests=0.5)
    found = average_rests(samples)
    # of each pose two approaches, and the points beside it, one of them after the last pose
    assert len(found.q) == 4 * POSES
    np.testing.assert_array_equal(found.dq[1::4], -found.dq[3::4])
    np.testing.assert_allclose(found.q[1::4], found.q[3::4], atol=2e-5)
    # a log that is made twice has the same rests: each is their mean
    again = average_rests(prepare(held(noise=0.0, times=2)[0], 8.0, rests=0.5))
    assert 4 * POSES <= len(again.q) <= 4 * POSES + 1  # the first point is come to from another


def test_without_friction_nothing_hangs_on_the_side():
    samples, theta = prepared(noise=0.0)
    own = average_rests(samples)
    idim = build_idim(toy.arm(3))
    there, zero = own.q[1::4], np.zeros((POSES, 3))
    mean = 0.5 * (own.tau[1::4] + own.tau[3::4])
    np.testing.assert_allclose(mean, idim.torque(theta, there, zero, zero), atol=1e-3)
    half = 0.5 * (own.tau[1::4] - own.tau[3::4]) * np.sign(own.dq[1::4])
    friction = [idim.names.index(f"fc{k + 1}") for k in range(3)]
    np.testing.assert_allclose(half, np.tile(theta[friction], (POSES, 1)), atol=1e-3)


def test_gravity_is_that_of_pinocchio():
    path = EXAMPLES / "tx40" / "tx40_mdh_modified.urdf"
    robot, model = load_robot(path), pin.buildModelFromUrdf(str(path))
    data, rng = model.createData(), np.random.default_rng(1)
    idim = build_idim(robot, "none")
    base = base_parameters(idim, observed=STATIC)
    poses, rows, torques = rng.uniform(-2.0, 2.0, (30, 6)), [], []
    zero = np.zeros(6)
    for q in poses:
        rows.append(pin.computeJointTorqueRegressor(model, data, q, zero, zero).copy())
        torques.append(pin.computeGeneralizedGravity(model, data, q).copy())
    W = np.vstack(rows)
    norms = np.linalg.norm(W, axis=0)
    assert base.count == np.linalg.matrix_rank(W[:, norms > 1e-9] / norms[norms > 1e-9], tol=1e-7)
    # the same space, and the same torques from the base parameters alone
    Q = np.linalg.qr(base.matrix.T)[0]
    np.testing.assert_allclose(W @ Q @ Q.T, W, atol=1e-8 * np.abs(W).max())
    own = idim.regressor(poses, 0.0 * poses, 0.0 * poses)[:, :, base.kept]
    beta = base.matrix @ np.concatenate([robot.nominal.ravel()])
    np.testing.assert_allclose(own @ beta, np.array(torques), atol=1e-8)


def test_rests_beside_motion_add_nothing_to_its_base_parameters():
    samples, theta = prepared()
    moved = toy.on_its_motion(toy.log(toy.arm(3), seconds=6.0, noise=0.1)[0])
    joined = Problem(toy.arm(3), [moved, samples])
    assert joined.base.names == Problem(toy.arm(3), moved).base.names
    found = di.identify(joined, "wls", doctor=False)
    truth = joined.base.matrix @ theta
    z = (found.estimate.beta - truth) / found.estimate.covariance.std
    assert np.abs(z).max() < 5.0


def test_a_constrained_method_gives_consistent_links():
    found = di.identify(Problem(toy.arm(3), prepared()[0]), "pc-idim-ls")
    assert found.consistent


def test_a_fit_of_rests_is_kept_and_measured_on_other_rests(tmp_path):
    fit = di.identify(Problem(toy.arm(3), prepared()[0]), "static")
    other, _ = held(seed=7)
    fitted, every = di.validate(fit, other)
    assert fitted.rows == "fitted"
    assert every.overall_percent < 2.0
    assert fit.settings["logs"][0]["rests"] == 0.5


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("static", {"rests": None}, "set rests in \\[prepare\\]"),
        ("static", {"rests": 5.0}, "for 5 s; hold poses longer"),
        ("ml", {}, "ml does not propagate noise through averages over rests"),
        ("idim-iv", {}, "rests are not simulated"),
    ],
)
def test_what_is_refused(method, options, words):
    simulation = {"simulation": Simulation(pd(900.0, 60.0, n=3))} if method == "idim-iv" else {}
    with pytest.raises(InputError, match=words):
        di.identify(Problem(toy.arm(3), prepared(**options)[0]), method, **simulation)


@pytest.mark.long
@pytest.mark.parametrize("friction", ["stribeck", "load", "dahl"])
def test_friction_that_rests_say_nothing_of_is_refused(friction):
    with pytest.raises(InputError, match="static needs coulomb-viscous"):
        di.identify(Problem(toy.arm(2), prepared(n=2)[0], friction), "static")


def test_one_side_alone_is_refused():
    with pytest.raises(ComputationError, match="joint_1, joint_2, joint_3: all poses"):
        di.identify(Problem(toy.arm(3), prepared(both=False)[0]), "static")


def test_rests_are_of_fixed_robots_alone():
    samples, _ = prepared()
    with pytest.raises(InputError, match="rests need a fixed robot"):
        average_rests(replace(samples, locked={"joint_1": 0.0}))
    with pytest.raises(InputError, match="no torque"):
        average_rests(replace(samples, torque="none"))


@pytest.mark.long
def test_a_study_of_rests_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    robot = toy.arm(3)
    (tmp_path / "arm.urdf").write_bytes(render_urdf(robot, robot.nominal)[0])
    for name, seed in (("a.csv", 0), ("b.csv", 7)):
        recording, _ = held(seed=seed)
        signals = {"q": recording.q, "tau": recording.tau}
        write_joints(tmp_path / name, robot.joint_names, RATE, **signals)
    (tmp_path / "s.toml").write_text(STUDY)
    assert "trusted" in tell(capsys, ["identify", "s.toml", "-o", "out"]).out
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    assert told["base_count"] == 10
    assert "decided" not in told["settings"] or not told["settings"]["decided"]
    (other,) = ask(capsys, ["validate", "out/result.json", "b.csv"])["validation"]
    assert other["entries"][0]["overall_relative_error_percent"] < 2.0
    assert run(["report", "out/result.json", "-o", "again.html"]) == 0


STUDY = """[robot]
file = "arm.urdf"
[[log]]
files = "a.csv"
[[log]]
files = "b.csv"
use = "validate"
[prepare]
bandwidth = 8.0
rests = 0.5
[identify]
method = "static"
"""
