"""Which rows are fitted: those of joints on which nothing rubs that is slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy

from dynident.core.errors import InputError
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.recording.prepare import prepare
from dynident.recording.read import read_log
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.robot.drives import Drives, find_moving_joints

SLOW = (0.3, 0.2, 0.1)
FRICTION = "coulomb-viscous-symmetric"


def drives(*turns: tuple[float, ...]) -> Drives:
    return replace(Drives.direct(len(turns)), turns=np.array(turns))


def speeds(samples: int = 500) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(samples, 3)) * 0.3


@pytest.mark.parametrize(
    "known",
    [None, Drives.direct(3), drives((2.0, 0, 0), (0, 1, 0), (0, 0, 3.0))],
    ids=["unknown", "direct", "geared"],
)
def test_without_coupling_a_row_is_its_joints(known):
    dq = speeds()
    np.testing.assert_array_equal(find_moving_joints(dq, SLOW, known), np.abs(dq) >= SLOW)


def test_a_coupled_drive_that_stands_rubs_on_all_its_joints():
    dq = speeds()
    own = np.abs(dq) >= SLOW
    coupled = drives((1, 0, 0), (0, 1, 0), (0, 1, 1))
    fast = np.abs(dq[:, 1] + dq[:, 2]) >= SLOW[2]
    found = find_moving_joints(dq, SLOW, coupled)
    np.testing.assert_array_equal(found[:, 0], own[:, 0])
    np.testing.assert_array_equal(found[:, 1], own[:, 1] & fast)
    np.testing.assert_array_equal(found[:, 2], own[:, 2] & fast)
    assert np.any(own[:, 1] & ~fast)
    # counted at its own joint
    geared = drives((1, 0, 0), (0, 1, 0), (0, -4, -4))
    np.testing.assert_array_equal(find_moving_joints(dq, SLOW, geared), found)


def test_a_drive_without_a_threshold_drops_nothing():
    dq = speeds()
    coupled = drives((1, 0, 0), (0, 1, 0), (0, 1, 1))
    slow = (0.3, 0.2, 0.0)
    np.testing.assert_array_equal(find_moving_joints(dq, slow, coupled), np.abs(dq) >= slow)
    assert find_moving_joints(0.0 * dq, (0.0, 0.0, 0.0), coupled).all()


def against(motion: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The first joint's motion, against which the second turns: their sum hardly moves."""
    t = np.arange(len(motion[0])) / toy.RATE
    w = 2 * np.pi * 0.3
    sums = 0.01 * np.array([np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)])
    return tuple(np.column_stack([x[:, 0], s - x[:, 0]]) for x, s in zip(motion, sums, strict=True))


def test_the_sign_of_a_drive_that_stands_biases_no_row_that_is_left():
    robot = toy.arm(2, coupled=True)
    idim = build_idim(robot, FRICTION)
    theta = toy.true_parameters(idim, robot.nominal)
    base = base_parameters(idim)
    coulomb = base.names.index("fcm2")
    truth = float(base.matrix[coulomb] @ theta)
    free = toy.motion(2, 8.0)
    motions = (free, against(free))
    errors: dict[str, list[float]] = {"joints": [], "drives": []}
    rows: dict[str, list[int]] = {}
    for seed in range(4):
        noise = 1e-4 * np.random.default_rng(seed).normal(size=(2, *free[0].shape))
        for label, known in (("joints", None), ("drives", robot.drives)):
            logs = [
                Recording("log", toy.RATE, q + e, idim.torque(theta, q, dq, ddq), drives=known)
                for (q, dq, ddq), e in zip(motions, noise, strict=True)
            ]
            weak = {"position_hz": 200.0, "torque_hz": 50.0, "drop_below": 0.2}
            problem = Problem(robot, [prepare(log, 10.0, **weak) for log in logs], FRICTION)
            rows[label] = [group.rows for group in problem.factors.groups]
            found = problem.factors.weighted(np.ones(2)).solve()[coulomb]
            errors[label].append(found - truth)
    # one of the two motions is left, and with it a truth that nothing biases
    assert max(rows["drives"]) < 0.55 * min(rows["joints"])
    assert np.mean(errors["joints"]) > 0.1 * truth
    assert abs(np.mean(errors["drives"])) < 0.01 * truth


def test_a_log_that_is_read_knows_its_robots_drives(tmp_path):
    robot = toy.arm(3, coupled=True)
    q, dq, _ = toy.motion(3, 4.0)
    path = tmp_path / "log.npz"
    np.savez(path, q=q, tau=q)
    log = read_log(path, robot, rate=toy.RATE, columns={"q": "q_*", "tau": "tau_*"})
    assert log.drives is robot.drives
    assert log.rows(100, 3900).drives is robot.drives
    samples = prepare(log, 10.0, drop_below=0.2)
    run = slice(*samples.segments[0])
    expected = find_moving_joints(dq[run], (0.2,) * 3, robot.drives)
    assert np.mean(samples.moving[run] == expected) > 0.99
    assert not np.array_equal(expected, find_moving_joints(dq[run], (0.2,) * 3, None))


def test_rows_are_chosen_by_the_measured_motion():
    log, _ = toy.log(toy.arm(2), 4.0)
    samples = prepare(log, 10.0, drop_below=0.2)
    still = samples.along(samples.q, 0.0 * samples.dq, samples.ddq)
    assert still.moving is samples.moving
    with pytest.raises(ValueError, match="read-only"):
        samples.moving[0] = False
    mine = samples.moving.copy()
    other = replace(samples, moving=mine)
    mine[:] = False
    np.testing.assert_array_equal(other.moving, samples.moving)


def test_drives_of_another_robot_are_refused():
    with pytest.raises(
        InputError, match="log: has 3 joints, but its drives belong to a robot with 2"
    ):
        Recording("log", 100.0, speeds(), speeds(), drives=Drives.direct(2))
