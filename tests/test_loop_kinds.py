"""A belt whose ratio changes, and a differential wrist, beside equations written out by hand."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from linkages import write_urdf

import dynident as di
from dynident.robot.closure import Closure
from dynident.robot.load import load_robot

WRIST = [
    (
        "pitch",
        "ground",
        "fork",
        'xyz="0 0 0.1"',
        "0 1 0",
        "0.7",
        "0.05 0.01 0.02",
        "2e-3 3e-3 3e-3",
    ),
    ("roll", "fork", "hand", 'xyz="0.1 0 0"', "1 0 0", "0.4", "0.06 0.02 -0.01", "1e-3 8e-4 9e-4"),
]
MOTION = np.random.default_rng(0).normal(size=(3, 12, 2))


def evaluate_rnea(path, q, dq, ddq):
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    rows = zip(q, dq, ddq, strict=True)
    return np.array([pin.rnea(model, data, *row) for row in rows])


def test_a_belt_whose_ratio_changes_does_virtual_work(tmp_path):
    """``tau = tau_l + p'(q_l) tau_f`` with the tree's torques along ``q_f = p(q_l)``."""
    (tmp_path / "belt.urdf").write_text(write_urdf("belt", WRIST))
    (tmp_path / "belt.toml").write_text(
        'urdf = "belt.urdf"\n[[loop]]\nkind = "joint"\njoints = ["roll", "pitch"]\n'
        "polynomial = [0.1, 1.5, 0.2]\n"
    )
    robot = load_robot(tmp_path / "belt.toml")
    assert robot.driven == [0]
    q, dq, ddq = MOTION * [1.0, 0.0]
    at, v, a = q[:, 0], dq[:, 0], ddq[:, 0]
    ratio = 1.5 + 0.4 * at
    follows = (0.1 + 1.5 * at + 0.2 * at**2, ratio * v, ratio * a + 0.4 * v**2)
    moved = Closure(robot).follow(q, dq, ddq)
    for own, expected in zip(moved, follows, strict=True):
        np.testing.assert_allclose(own[:, 1], expected, atol=1e-10)
    idim = di.build_idim(robot, "none")
    tau = evaluate_rnea(tmp_path / "belt.urdf", *moved)
    found = idim.torque(idim.nominal, *moved)
    np.testing.assert_allclose(found[:, 0], tau[:, 0] + ratio * tau[:, 1], atol=1e-10)


@pytest.mark.parametrize("coupled", [True, False])
def test_motors_of_a_differential_wrist_turn_with_sum_and_difference(coupled, tmp_path):
    """No loop is needed: rotors and friction act through ``w_1 = p + r``, ``w_2 = r - p``."""
    (tmp_path / "wrist.urdf").write_text(write_urdf("wrist", WRIST))
    rows = "{ pitch = 1.0, roll = 1.0 }", "{ roll = 1.0, pitch = -1.0 }"
    drives = "".join(
        f'[[drive]]\njoint = "{joint}"\nrow = {row}\n'
        for joint, row in zip(("pitch", "roll"), rows, strict=True)
    )
    (tmp_path / "wrist.toml").write_text('urdf = "wrist.urdf"\n' + drives * coupled)
    robot = load_robot(tmp_path / "wrist.toml")
    idim = di.build_idim(robot, "viscous")
    q, dq, ddq = MOTION
    rotors, rubs = np.array([0.03, 0.05]), np.array([0.4, 0.7])
    theta = idim.nominal
    values = {f"Iam{k + 1}": x for k, x in enumerate(rotors)}
    values |= {f"fvm{k + 1}": x for k, x in enumerate(rubs)}
    for k, name in enumerate(idim.names):
        theta[k] = values.get(name, theta[k])
    turns = np.array([[1.0, 1.0], [-1.0, 1.0]])
    motors = rotors * (ddq @ turns.T) + rubs * (dq @ turns.T)
    expected = evaluate_rnea(tmp_path / "wrist.urdf", q, dq, ddq) + motors @ turns
    same = np.allclose(idim.torque(theta, q, dq, ddq), expected, atol=1e-10)
    assert same == coupled
