"""DH tables against independent models of them, and against the TX40's URDF."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from differences import assert_slope, take_quotient
from robots import EXAMPLES, bodies, relative, states

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import to_com, to_inertia_matrix, transform_body
from dynident.dynamics import build_tree, evaluate_inverse_dynamics
from dynident.dynamics.idim import build_idim
from dynident.robot import Robot, load_robot
from dynident.robot.dh import build_dh_joints, read_dh_inertials
from dynident.robot.drives import Drives
from dynident.robot.spec import BaseSpec, DHJointSpec

TABLE: list[dict[str, Any]] = [
    {"name": "a", "alpha": 10.0, "a": 0.1, "d": 0.2, "theta0": 30.0},
    {"name": "b", "alpha": -90.0, "a": 0.3, "d": -0.1, "type": "prismatic", "theta0": 40.0},
    {"name": "c", "alpha": 75.0, "a": 0.0, "d": 0.4, "theta0": -100.0},
    {"name": "side", "alpha": 90.0, "a": 0.25, "d": 0.1, "parent": "a"},
    {"name": "tip", "alpha": 20.0, "a": -0.2, "d": 0.15, "theta0": 5.0},
    {"name": "second", "a": 0.5, "parent": "base"},
]
BASE = BaseSpec(xyz=(0.1, -0.2, 0.3), rpy=(10.0, 20.0, 30.0))


def table(rows: list[dict[str, Any]] = TABLE) -> list[DHJointSpec]:
    return [DHJointSpec.model_validate(row) for row in rows]


def robot_of(convention: Any) -> Robot:
    joints = build_dh_joints(table(), convention, base=BASE)
    return Robot("dh", joints, read_dh_inertials(table(), False), Drives.direct(len(joints)))


def homogeneous(row: dict[str, Any], q: float, convention: str) -> Array:
    """T_i as textbooks print it, written out by element."""
    slides = row.get("type") == "prismatic"
    theta = np.radians(row.get("theta0", 0.0)) + (0.0 if slides else q)
    d = row.get("d", 0.0) + (q if slides else 0.0)
    alpha, a = np.radians(row.get("alpha", 0.0)), row.get("a", 0.0)
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    if convention == "modified":  # Craig 1989, eq. 3.6
        rows = [
            [ct, -st, 0, a],
            [st * ca, ct * ca, -sa, -sa * d],
            [st * sa, ct * sa, ca, ca * d],
            [0, 0, 0, 1],
        ]
    else:  # Spong 2006, eq. 3.10
        rows = [
            [ct, -st * ca, st * sa, a * ct],
            [st, ct * ca, -ct * sa, a * st],
            [0, sa, ca, d],
            [0, 0, 0, 1],
        ]
    return np.array(rows)


def frames(q: Array, convention: str) -> list[Array]:
    """DH frames in the world, from the base on."""
    world = np.eye(4)
    world[:3, :3] = pin.rpy.rpyToMatrix(*np.radians(BASE.rpy))
    world[:3, 3] = BASE.xyz
    out = [world]
    names = ["base", *(row["name"] for row in TABLE)]
    for number, row in enumerate(TABLE):
        parent = names.index(row["parent"]) if "parent" in row else number
        out.append(out[parent] @ homogeneous(row, q[number], convention))
    return out


def placements(robot: Robot, q: Array) -> list[Array]:
    """Body frames in the world, from the joints."""
    out = [np.eye(4)]
    for joint, value in zip(robot.joints, q, strict=True):
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = joint.rotation, joint.translation
        moved = np.eye(4)
        if joint.kind == "revolute":
            moved[:3, :3] = pin.exp3(joint.axis * value)
        else:
            moved[:3, 3] = joint.axis * value
        out.append(out[joint.parent] @ step @ moved)
    return out


def test_modified_body_frames_are_the_dh_frames() -> None:
    robot = robot_of("modified")
    for q in states(robot, 5)[0]:
        for ours, theirs in zip(placements(robot, q)[1:], frames(q, "modified")[1:], strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-13)


def test_standard_body_frames_are_at_the_joint_axes() -> None:
    robot = robot_of("standard")
    for q in states(robot, 5)[0]:
        ours, theirs = placements(robot, q), frames(q, "standard")
        for number, row in enumerate(TABLE, start=1):
            rest = homogeneous(row | {"theta0": 0.0, "type": "revolute"}, 0.0, "standard")
            np.testing.assert_allclose(ours[number] @ rest, theirs[number], atol=1e-13)


@pytest.mark.parametrize("convention", ["modified", "standard"])
def test_torques_are_those_of_the_lagrangian(convention: str) -> None:
    """d/dt dL/d(dq) - dL/dq by differences of energies on the textbook's frames."""
    robot = robot_of(convention)
    phi = bodies(robot.n)
    q, dq, ddq = (x[0] for x in states(robot, 1))

    def body_frames(q: Array) -> list[Array]:
        world = frames(q, convention)[1:]
        if convention == "modified":
            return world
        rests = [
            homogeneous(row | {"theta0": 0.0, "type": "revolute"}, 0.0, convention) for row in TABLE
        ]
        return [t @ np.linalg.inv(rest) for t, rest in zip(world, rests, strict=True)]

    def lagrangian(q: Array, dq: Array) -> float:
        rates, _ = take_quotient(lambda t: body_frames(q + t * dq), 1e-3)
        energy = 0.0
        for body, here, rate in zip(phi, body_frames(q), rates, strict=True):
            spin = here[:3, :3].T @ rate[:3, :3]
            omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
            v = here[:3, :3].T @ rate[:3, 3]
            energy += 0.5 * body[0] * v @ v + v @ np.cross(omega, body[1:4])
            energy += 0.5 * omega @ to_inertia_matrix(body) @ omega
            energy += robot.gravity @ (body[0] * here[:3, 3] + here[:3, :3] @ body[1:4])
        return float(energy)

    def gradient(function: Any, x: Array) -> Array:
        own = np.eye(len(x))
        return np.array([take_quotient(lambda t, e=e: function(x + t * e), 1e-2)[0] for e in own])

    def momentum(time: float) -> Array:
        now = q + time * dq + 0.5 * time**2 * ddq
        return gradient(lambda rate: lagrangian(now, rate), dq + time * ddq)

    ours = evaluate_inverse_dynamics(build_tree(robot), phi, q[None], dq[None], ddq[None])[0]
    assert_slope(momentum, ours + gradient(lambda x: lagrangian(x, dq), q), 1e-3, within=1e-4)


@pytest.mark.parametrize("convention", ["modified", "standard"])
def test_torques_are_those_of_a_pinocchio_model_of_the_table(convention: str) -> None:
    robot = robot_of(convention)
    phi = bodies(robot.n)
    model = pin.Model()
    home = frames(np.zeros(robot.n), convention)
    names = ["base", *(row["name"] for row in TABLE)]
    at = [np.eye(4)]
    for number, row in enumerate(TABLE, start=1):
        parent = names.index(row["parent"]) if "parent" in row else number - 1
        if convention == "modified":
            here = home[number]
        else:
            turn = homogeneous({"theta0": row.get("theta0", 0.0)}, 0.0, "standard")
            here = home[parent] @ turn
        kind = pin.JointModelPZ() if row.get("type") == "prismatic" else pin.JointModelRZ()
        placement = pin.SE3(np.linalg.inv(at[parent]) @ here)
        added = model.addJoint(parent, kind, placement, row["name"])
        body = pin.Inertia.FromDynamicParameters(phi[number - 1])
        model.appendBodyToJoint(added, body, pin.SE3.Identity())
        at.append(here)
    assert list(model.names)[1:] == list(robot.joint_names)
    q, dq, ddq = states(robot, 10)
    data = model.createData()
    theirs = np.array([pin.rnea(model, data, q[k], dq[k], ddq[k]) for k in range(10)])
    ours = evaluate_inverse_dynamics(build_tree(robot), phi, q, dq, ddq)
    assert relative(ours, theirs) < 1e-10


def test_tx40_table_is_its_urdf() -> None:
    """Same log, same torques; the URDF's link 6 frame is DH frame 6 turned half about z."""
    urdf = load_robot(EXAMPLES / "tx40" / "tx40.toml")
    dh = load_robot(EXAMPLES / "tx40" / "tx40_dh.toml")
    motor, rate, acceleration = np.random.default_rng(1).normal(size=(3, 40, 6)) * 50.0
    phi = bodies(6)
    turned = np.diag([-1.0, -1.0, 1.0])
    phi_dh = np.vstack([phi[:5], transform_body(phi[5], turned, np.zeros(3))])
    torques, spaces = [], []
    for robot, values in ((urdf, phi), (dh, phi_dh)):
        q = robot.drives.position_to_joint(motor)
        dq, ddq = robot.drives.rate_to_joint(rate), robot.drives.rate_to_joint(acceleration)
        tree = build_tree(robot)
        torques.append(evaluate_inverse_dynamics(tree, values, q, dq, ddq))
        spaces.append(build_idim(robot, "none").regressor(q, dq, ddq).reshape(-1, 60))
    assert relative(torques[1], torques[0]) < 1e-9
    ranks = [np.linalg.matrix_rank(w, tol=1e-8 * np.linalg.norm(w, 2)) for w in spaces]
    both = np.hstack(spaces)
    assert ranks[0] == ranks[1] == np.linalg.matrix_rank(both, tol=1e-8 * np.linalg.norm(both, 2))


def test_tx40_has_36_inertial_base_parameters() -> None:
    robot = load_robot(EXAMPLES / "tx40" / "tx40_dh.toml")
    q, dq, ddq = states(robot, 200)
    matrix = build_idim(robot, "none").regressor(q, dq, ddq).reshape(-1, 60)
    assert np.linalg.matrix_rank(matrix) == 36


def test_limits_and_inertials() -> None:
    rows = [
        {"name": "a", "lower": -90.0, "upper": 180.0, "velocity": 360.0, "effort": 5.0},
        {"name": "b", "type": "prismatic", "lower": -0.5, "link": "carriage"},
    ]
    rows[0]["inertial"] = {"mass": 2.0, "com": [0.1, 0, 0], "inertia": [1, 2, 3, 0.1, 0.2, 4]}
    first, second = build_dh_joints(table(rows), "modified")
    assert (first.lower, first.upper) == pytest.approx((-np.pi / 2, np.pi))
    assert first.velocity == pytest.approx(2 * np.pi)
    assert (first.effort, second.lower, second.upper) == (5.0, -0.5, np.inf)
    assert (first.link, second.link) == ("link_1", "carriage")
    nominal = read_dh_inertials(table(rows), floating=False)
    mass, com, inertia = to_com(nominal[0])
    assert mass == 2.0
    np.testing.assert_allclose(com, [0.1, 0.0, 0.0])
    np.testing.assert_allclose(inertia, [[1, 2, 0.1], [2, 3, 0.2], [0.1, 0.2, 4]])
    assert not nominal[1].any()
    assert read_dh_inertials(table(rows), floating=True).shape == (3, 10)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"name": "a", "link": "base"}], r"'joint\[1\].link' repeats 'base'"),
        (
            [{"name": "elbow"}, {"name": "b", "parent": "elbwo"}],
            r"'joint\[2\].parent' is 'elbwo'.* did you mean 'elbow'",
        ),
    ],
)
def test_refusals(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_dh_joints(table(rows), "modified", place="r.toml")
