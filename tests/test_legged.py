"""The logs that other tests take for the truth: they satisfy the equations of motion."""

from __future__ import annotations

from functools import partial

import numpy as np
import pinocchio as pin
import pytest
from robots import relative
from thin import first

from dynident.core.arrays import Array
from dynident.core.inertia import is_consistent
from dynident.dynamics.idim import build_idim
from dynident.robot import load_robot

mujoco = pytest.importorskip("mujoco")

import legged  # noqa: E402
from legged import (  # noqa: E402
    GRAVITY,
    MACHINES,
    LeggedLog,
    mujoco_robot,
    noisy,
    pin_state,
    residual,
    true_robot,
    wrench,
    write_csv,
    wxyz,
)

make = partial(legged.make, knots=125.0, lead=0.5)
CASES = [
    ("solo12", "sway"), ("solo12", "walk"), ("solo12", "trot"), ("anymal", "squat"),
    ("talos", "sway"), ("ur5", "swing"), ("ur5", "carried"),
]  # fmt: skip


@pytest.mark.parametrize("case", first(CASES), ids="-".join)
def test_logs_satisfy_the_equations_of_motion(case):
    log = make(*case, 1.0, seed=1, rate=500)
    assert residual(log) < 1e-9


@pytest.mark.long
def test_the_gripper_of_a_sensor_and_all_that_it_holds():
    log = make("talos", "sway", 0.3, seed=3)
    model = pin.buildModelFromUrdf(str(log.urdf), pin.JointModelFreeFlyer())
    for j in range(1, model.njoints):
        model.inertias[j] = pin.Inertia.FromDynamicParameters(log.phi[j - 1])
    model.armature = np.zeros(model.nv)
    data = model.createData()
    for row in (0, 150, 299):
        q, v, a = pin_state(log, row)
        feet = [pin.Force.Zero() for _ in range(model.njoints)]
        for contact in log.contacts:
            frame = model.frames[model.getFrameId(contact.frame)]
            feet[frame.parentJoint] += frame.placement.act(
                pin.Force(wrench(log, contact.columns, row))
            )
        pin.rnea(model, data, q, v, a, feet)
        pin.forwardKinematics(model, data, q, v, a)
        pin.updateFramePlacements(model, data)
        for cut in log.cuts:
            index = model.getFrameId(cut.frame)
            frame = model.frames[index]
            # Newton and Euler for the body that the sensor holds, and the joints beyond it
            motion = pin.getFrameVelocity(model, data, index, pin.LOCAL)
            rise = pin.getFrameAcceleration(model, data, index, pin.LOCAL)
            rise.linear -= data.oMf[index].rotation.T @ GRAVITY
            body = pin.Inertia.FromDynamicParameters(cut.phi)
            force = body * rise + motion.cross(body * motion)
            for j in range(1, model.njoints):
                if model.parents[j] == frame.parentJoint and model.names[j] in cut.joints:
                    force += data.oMf[index].actInv(data.oMi[j].act(data.f[j]))
            if cut.frame == "leg_left_6_link":
                force -= frame.placement.actInv(feet[frame.parentJoint])
            measured = wrench(log, cut.columns, row)
            assert np.abs(force.vector - measured).max() < 1e-9 * np.abs(measured).max()


@pytest.mark.parametrize("name", MACHINES)
def test_both_programs_have_the_same_robot(name):
    truth = true_robot(name)
    built = mujoco_robot(truth, {})
    data = mujoco.MjData(built.model)
    model = truth.model.copy()
    for j in range(1, model.njoints):
        model.inertias[j] = pin.Inertia.FromDynamicParameters(truth.phi[j - 1])
    model.armature = np.concatenate([np.zeros(6), truth.Ia])
    theirs = model.createData()
    rng = np.random.default_rng(5)
    q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
    q[2] += 10.0
    v = rng.normal(size=model.nv)
    R = pin.Quaternion(q[3:7]).matrix()
    # MuJoCo's base moves linearly in world axes
    order = np.concatenate([np.arange(6), built.order])
    turn = np.eye(model.nv)
    turn[:3, :3] = R
    data.qpos[:3], data.qpos[3:7], data.qpos[1 + built.order] = q[:3], wxyz(R), q[7:]
    data.qvel[order] = turn @ v
    mujoco.mj_forward(built.model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(built.model, data, M)
    expected = pin.crba(model, theirs, q)
    expected = np.triu(expected) + np.triu(expected, 1).T
    assert relative(turn.T @ M[np.ix_(order, order)] @ turn, expected) < 1e-9
    # no acceleration of the origin is one of -w x v in moving axes
    still = np.concatenate([-np.cross(v[3:6], v[:3]), np.zeros(model.nv - 3)])
    expected = pin.rnea(model, theirs, q, v, still)
    assert relative(turn.T @ data.qfrc_bias[order], expected) < 1e-9


def test_the_true_robot_is_consistent_and_not_that_of_its_urdf():
    for name in MACHINES:
        truth = true_robot(name)
        nominal = np.array([i.toDynamicParameters() for i in list(truth.model.inertias)[1:]])
        assert all(is_consistent(body) for body in truth.phi)
        assert all(is_consistent(cut.phi) for cut in truth.cuts)
        share = truth.phi[:, 0] / nominal[:, 0]
        assert np.all((share > 0.7) & (share < 1.3))
        assert np.std(share) > 0.05
        assert np.abs(true_robot(name, 1).phi - truth.phi).max() > 0.0


def test_parameters_stand_in_the_order_of_the_library():
    log = make("solo12", "sway", 0.02)
    robot = load_robot(log.urdf, floating=True)
    idim = build_idim(robot, "viscous")
    assert (robot.links, robot.joint_names) == (log.bodies, log.joints)
    theta = dict(zip(idim.names, log.theta, strict=True))
    assert theta["m0"] == log.phi[0, 0]
    assert (theta["Ia3"], theta["fv12"]) == (log.Ia[2], log.fv[11])
    motion = [np.array(parts) for parts in zip(*(pin_state(log, k) for k in (3, 9)), strict=True)]
    assert relative(idim.torque(log.theta, *motion)[:, 6:], drive_torques(log, (3, 9))) < 1e-9


def drive_torques(log: LeggedLog, rows: tuple[int, ...]) -> Array:
    """Motor torques and what the feet do to the joints."""
    model = pin.buildModelFromUrdf(str(log.urdf), pin.JointModelFreeFlyer())
    data = model.createData()
    out = log.of_joints("tau")[list(rows)]
    for k, row in enumerate(rows):
        q = pin_state(log, row)[0]
        for contact in log.contacts:
            frame = model.getFrameId(contact.frame)
            J = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL)
            out[k] += (J.T @ wrench(log, contact.columns, row))[6:]
    return out


def test_the_imu_is_that_of_mujoco():
    log = make("anymal", "walk", 1.2, seed=2, rate=500)
    built = mujoco_robot(true_robot("anymal"), {})
    data = mujoco.MjData(built.model)
    for row in (5, 350, 599):
        x, y, z, w = quaternion = log.of_base("q")[row]
        R = pin.Quaternion(quaternion).matrix()
        data.qpos[:3], data.qpos[3:7] = log.of_base("p")[row], [w, x, y, z]
        data.qpos[1 + built.order] = log.of_joints("q")[row]
        data.qvel[:3], data.qvel[3:6] = R @ log.of_base("v")[row], log.of_base("w")[row]
        data.qvel[built.order] = log.of_joints("dq")[row]
        mujoco.mj_forward(built.model, data)
        data.qacc[:3], data.qacc[3:6] = R @ log.of_base("a")[row], log.of_base("dw")[row]
        data.qacc[built.order] = log.of_joints("ddq")[row]
        mujoco.mj_rnePostConstraint(built.model, data)
        mujoco.mj_sensorVel(built.model, data)
        mujoco.mj_sensorAcc(built.model, data)
        ours = np.concatenate([log.of_base("imu_w")[row], log.of_base("imu_a")[row]])
        assert np.abs(ours - data.sensordata).max() < 1e-9 * np.abs(ours).max()


def test_derivatives_are_those_of_the_motion():
    log = make("solo12", "sway", 0.6, seed=4)
    h, inner = 1.0 / log.rate, slice(1, -1)

    def slope(values: Array) -> Array:
        return (values[2:] - values[:-2]) / (2.0 * h)

    R = np.array([pin.Quaternion(each).matrix() for each in log.of_base("q")])
    velocity = np.einsum("tij,tj->ti", R, log.of_base("v"))
    rise = np.einsum("tij,tj->ti", R, log.of_base("a"))
    assert relative(slope(log.of_base("p")), velocity[inner]) < 1e-3
    assert relative(slope(velocity), rise[inner]) < 1e-3
    assert relative(slope(log.of_base("w")), log.of_base("dw")[inner]) < 1e-3
    spin = np.array([pin.log3(a.T @ b) for a, b in zip(R[:-2], R[2:], strict=True)]) / (2.0 * h)
    assert relative(spin, log.of_base("w")[inner]) < 1e-3
    assert relative(slope(log.of_joints("q")), log.of_joints("dq")[inner]) < 1e-3


@pytest.mark.long
def test_weight_is_carried_by_the_feet():
    for name, motion in (("solo12", "walk"), ("ur5", "swing")):
        log = make(name, motion, 2.0, seed=1, rate=500)
        upward = np.zeros(log.samples)
        model = pin.buildModelFromUrdf(str(log.urdf), pin.JointModelFreeFlyer())
        data = model.createData()
        for row in range(0, log.samples, 50):
            pin.framesForwardKinematics(model, data, pin_state(log, row)[0])
            for contact in log.contacts:
                R = data.oMf[model.getFrameId(contact.frame)].rotation
                upward[row] += (R @ wrench(log, contact.columns, row)[:3])[2]
        weight = 9.81 * log.phi[:, 0].sum()
        assert abs(upward[::50].mean() / weight - 1.0) < 0.1


def test_locked_joints_have_no_columns_and_carry_what_they_carry():
    log = make("ur5", "swing", 0.5, seed=1, locked={"wrist_1_joint": 0.4})
    assert "q_wrist_1_joint" not in log.columns
    assert len(log.moving) == len(log.joints) - 1
    assert residual(log) < 1e-9


@pytest.mark.long
def test_noise_has_the_size_that_is_asked_for():
    log = make("ur5", "carried", 1.5)
    seen = noisy(log, 3)
    assert not [name for name in seen.columns if name.startswith(("dq_", "ddq_", "base_a"))]
    count = 2.0 * np.pi / 2**16
    steps = seen.of_joints("q") / count
    assert np.allclose(steps, np.round(steps), atol=1e-6)
    off = seen.of_joints("tau") - log.of_joints("tau")
    share = np.sqrt(np.mean(off**2, axis=0) / np.mean(log.of_joints("tau") ** 2, axis=0))
    assert np.all(np.abs(share / 0.02 - 1.0) < 0.1)
    force = seen.stack(log.contacts[0].columns) - log.stack(log.contacts[0].columns)
    assert np.allclose(force.std(axis=0), [1.0] * 3 + [0.05] * 3, rtol=0.1)
    turned = [
        pin.log3(pin.Quaternion(a).matrix().T @ pin.Quaternion(b).matrix())
        for a, b in zip(log.of_base("q"), seen.of_base("q"), strict=True)
    ]
    assert abs(np.std(turned) / 2e-4 - 1.0) < 0.1
    assert np.array_equal(noisy(log, 3).of_joints("tau"), seen.of_joints("tau"))


def test_a_log_is_written_to_the_last_digit(tmp_path):
    log = make("solo12", "sway", 0.05)
    names = ["time", "q_FL_HFE", "fz_HR_FOOT"]
    write_csv(log, tmp_path / "log.csv", names)
    head, *_ = (tmp_path / "log.csv").read_text().splitlines()
    assert head == ",".join(names)
    assert np.array_equal(
        np.loadtxt(tmp_path / "log.csv", delimiter=",", skiprows=1), log.stack(names)
    )
