"""Logs of floating robots made from the equations of motion alone: smooth, exact, quick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from robots import urdf

from dynident.core.arrays import Array
from dynident.dynamics.contacts import follow_contact
from dynident.dynamics.idim import Idim, build_idim
from dynident.recording.floating import LoggedBase
from dynident.recording.recording import Recording
from dynident.robot.contacts import ContactSpec, add_contacts
from dynident.robot.load import load_robot
from dynident.robot.model import Robot

FEET = {
    "solo12": [("FL", "FL_FOOT"), ("FR", "FR_FOOT"), ("HL", "HL_FOOT"), ("HR", "HR_FOOT")],
}


@dataclass(frozen=True)
class Made:
    """A log and what it was made from."""

    robot: Robot
    idim: Idim
    theta: Array
    recording: Recording


def waves(rng, samples: int, columns: int, rate: float, size: float) -> tuple[Array, Array, Array]:
    """Sums of sines and their derivatives."""
    t = np.arange(samples) / rate
    x = np.zeros((3, samples, columns))
    for _ in range(4):
        w, phase = rng.uniform(2.0, 12.0, columns), rng.uniform(0.0, 6.3, columns)
        a = size * rng.uniform(0.3, 1.0, columns)
        x[0] += a * np.sin(t[:, None] * w + phase)
        x[1] += a * w * np.cos(t[:, None] * w + phase)
        x[2] -= a * w**2 * np.sin(t[:, None] * w + phase)
    return x[0], x[1], x[2]


def drive_truth(idim: Idim, rng) -> Array:
    """The file's bodies, somewhat changed, with rotors and friction."""
    theta = idim.nominal.copy()
    phi = theta[: idim.inertial].reshape(-1, 10)
    for body in phi:
        grown = pin.Inertia.FromDynamicParameters(body)
        scale = rng.uniform(0.8, 1.2)
        mass = scale * grown.mass
        lever = grown.lever * rng.uniform(0.9, 1.1)
        body[:] = pin.Inertia(mass, lever, scale * grown.inertia).toDynamicParameters()
    theta[idim.inertial :] = rng.uniform(0.02, 0.1, len(theta) - idim.inertial)
    return theta


def solo(
    seconds: float = 6.0,
    rate: float = 500.0,
    seed: int = 0,
    friction: str = "viscous",
    change: Callable[[Idim, Array], Array] = lambda _, theta: theta,
) -> Made:
    """Solo12 shaken in the air by forces on its feet: exact base motion, torques and forces."""
    rng = np.random.default_rng(seed)
    robot = load_robot(urdf("solo12"), floating=True)
    feet = [ContactSpec(name=name, frame=frame, kind="point") for name, frame in FEET["solo12"]]
    robot = add_contacts(robot, feet)
    idim = build_idim(robot, friction)
    theta = change(idim, drive_truth(idim, rng))
    samples, n = round(seconds * rate), robot.n
    q, dq, ddq = waves(rng, samples, n, rate, 0.15)
    q += np.tile([0.0, 0.7, -1.4], 4)
    p, dp, ddp = waves(rng, samples, 3, rate, 0.02)
    r, dr, ddr = waves(rng, samples, 3, rate, 0.08)
    quaternion, twist, acceleration = (
        np.empty((samples, 4)),
        np.empty((samples, 6)),
        np.empty((samples, 6)),
    )
    for t in range(samples):
        quaternion[t], R, w, dw = turned(r[t], dr[t], ddr[t])
        twist[t], acceleration[t] = np.r_[R.T @ dp[t], w], np.r_[R.T @ ddp[t], dw]
    spatial = acceleration.copy()
    spatial[:, :3] -= np.cross(twist[:, 3:], twist[:, :3])
    motion = np.hstack([p, quaternion, q]), np.hstack([twist, dq]), np.hstack([spatial, ddq])
    tau = idim.torque(theta, *motion)
    J = np.concatenate(
        [follow_contact(idim.tree, robot, c, motion[0]).jacobian[:, :3] for c in robot.contacts],
        axis=1,
    )
    # the feet share the base's wrench, and push against each other
    inner = waves(rng, samples, J.shape[1], rate, 3.0)[0]
    base = np.swapaxes(J[:, :, :6], 1, 2)
    missing = tau[:, :6, None] - base @ inner[:, :, None]
    forces = (np.linalg.pinv(base) @ missing)[:, :, 0] + inner
    tau -= np.einsum("tij,ti->tj", J, forces)
    wrenches = {c.name: forces[:, 3 * k : 3 * k + 3] for k, c in enumerate(robot.contacts)}
    base = LoggedBase(p, quaternion, twist, acceleration)
    recording = Recording(
        "solo", rate, q, tau[:, 6:], dq, ddq, base=base, wrenches=wrenches, joints=robot.joint_names
    )
    return Made(robot, idim, theta, recording)


def turned(r: Array, dr: Array, ddr: Array) -> tuple[Array, Array, Array, Array]:
    """Quaternion, rotation, angular velocity and acceleration of roll, pitch and yaw over time."""
    R = pin.rpy.rpyToMatrix(r)
    w = pin.rpy.computeRpyJacobian(r, pin.LOCAL) @ dr
    dw = (
        pin.rpy.computeRpyJacobian(r, pin.LOCAL) @ ddr
        + pin.rpy.computeRpyJacobianTimeDerivative(r, dr, pin.LOCAL) @ dr
    )
    return pin.Quaternion(R).coeffs(), R, w, dw
