"""Logs of a quadruped with a load on its back that its URDF does not know, made by Pinocchio.

Base and feet follow smooth courses, the joints follow from them by inverse kinematics, torques
and contact forces from Newton and Euler: exact but for the noise that is added at the end.

    python examples/quadruped/make_logs.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.interpolate import make_interp_spline

HERE = Path(__file__).parent
RATE = 100.0  # Hz
SECONDS = 10.0
LEGS = ("FL", "FR", "HL", "HR")
STANCE = np.array([0.0, 0.0, 0.32])
"""Of the base over the middle of the feet [m]."""
LOAD = pin.Inertia(1.6, np.array([-0.09, 0.02, 0.11]), np.diag([0.008, 0.012, 0.011]))
"""Fixed to the base: 1.6 kg."""
IA, FV, FC = 0.006, 0.08, 0.15
"""Rotor inertia, viscous and Coulomb friction of each drive [kg m^2, Nm s/rad, Nm]."""
MOUNT = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, np.pi / 2), np.array([0.08, 0.0, 0.03]))
"""Of the inertial measurement unit in the base."""
NOISE = {"q": 2e-5, "tau": 0.03, "gyro": 2e-3, "specific": 2e-2, "turn": 2e-4, "force": 0.5}


def model_and_truth() -> tuple[pin.Model, pin.Model]:
    """The robot of the URDF, and the one that moves."""
    told = pin.buildModelFromUrdf(str(HERE / "quadruped.urdf"), pin.JointModelFreeFlyer())
    real = told.copy()
    rng = np.random.default_rng(7)
    for joint in range(1, real.njoints):
        own = real.inertias[joint]
        scale = rng.uniform(0.9, 1.1)
        real.inertias[joint] = pin.Inertia(
            scale * own.mass, own.lever * rng.uniform(0.95, 1.05, 3), scale * own.inertia
        )
    real.inertias[1] += LOAD
    return told, real


def waves(rng: np.random.Generator, t: np.ndarray, size: np.ndarray, fastest: float) -> np.ndarray:
    """Sums of sines that begin at rest."""
    x = np.zeros((len(t), len(size)))
    for _ in range(4):
        w = 2.0 * np.pi * rng.uniform(0.3, fastest, len(size))
        x += 0.35 * size * np.sin(w * t[:, None] + rng.uniform(0.0, 6.3, len(size)))
    return x * rise(t / 1.0)[:, None]


def rise(x: np.ndarray) -> np.ndarray:
    """From 0 to 1, smooth up to the third derivative."""
    x = np.clip(x, 0.0, 1.0)
    return x**4 * (35.0 - 84.0 * x + 70.0 * x**2 - 20.0 * x**3)


def courses(rng: np.random.Generator, t: np.ndarray, steps: bool):
    """Base position and roll, pitch, yaw; feet; how much each foot may bear."""
    feet0 = np.array([[0.2, 0.16, 0], [0.2, -0.16, 0], [-0.2, 0.16, 0], [-0.2, -0.16, 0]])
    position = STANCE + waves(rng, t, np.array([0.03, 0.03, 0.03]), 1.2)
    rpy = waves(rng, t, np.array([0.15, 0.15, 0.2]), 1.2)
    feet = np.repeat(feet0[None], len(t), axis=0)
    share = np.ones((len(t), 4))
    if steps:
        position[:, :2] *= 0.3
        for k, leg in enumerate((0, 3, 1, 2)):
            a = 0.8 + 2.3 * k
            # the weight goes to the other feet, then the foot leaves the ground and waves
            away = rise((t - a) / 0.6) * rise((a + 2.3 - t) / 0.6)
            bears = 1.0 - rise((t - a - 0.3) / 0.35) * rise((a + 2.0 - t) / 0.35)
            up = rise((t - a - 0.65) / 0.3) * rise((a + 1.65 - t) / 0.3)
            share[:, leg] = np.where(bears > 1e-9, bears, 0.0)
            position[:, :2] -= 0.26 * away[:, None] * feet0[leg, :2]
            feet[:, leg] += up[:, None] * (
                np.array([0.0, 0.0, 0.09]) + waves(rng, t - a, np.array([0.09, 0.06, 0.05]), 2.0)
            )
    return position, rpy, feet, share


def joints(model: pin.Model, position, rpy, feet) -> np.ndarray:
    """Configurations by Newton's method, each from the one before."""
    data = model.createData()
    frames = [model.getFrameId(f"{leg}_foot") for leg in LEGS]
    q = pin.neutral(model)
    q[7:] = np.tile([0.0, 0.8, -1.6], 4)
    found = np.empty((len(position), model.nq))
    for t in range(len(position)):
        q[:3] = position[t]
        q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(rpy[t])).coeffs()
        for _ in range(30):
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            off = np.concatenate(
                [feet[t, k] - data.oMf[f].translation for k, f in enumerate(frames)]
            )
            J = np.vstack(
                [
                    pin.getFrameJacobian(model, data, f, pin.LOCAL_WORLD_ALIGNED)[:3, 6:]
                    for f in frames
                ]
            )
            q[7:] += np.linalg.solve(J, off)
            if np.max(np.abs(off)) < 1e-13:
                break
        found[t] = q
    return found


def log(name: str, seed: int, steps: bool) -> None:
    """Write one log."""
    rng = np.random.default_rng(seed)
    told, real = model_and_truth()
    t = np.arange(round(SECONDS * RATE)) / RATE
    position, rpy, feet, share = courses(rng, t, steps)
    q = joints(told, position, rpy, feet)
    spline = [make_interp_spline(t, x, k=7) for x in (position, rpy, q[:, 7:])]
    (p1, p2), (r1, r2), (j1, j2) = ([s(t, 1), s(t, 2)] for s in spline)
    data = real.createData()
    frames = [real.getFrameId(f"{leg}_foot") for leg in LEGS]
    n = len(t)
    tau, forces = np.empty((n, 12)), np.zeros((n, 4, 3))
    gyro, specific, turn = np.empty((n, 3)), np.empty((n, 3)), q[:, 3:7].copy()
    for k in range(n):
        R = pin.rpy.rpyToMatrix(rpy[k])
        E = pin.rpy.computeRpyJacobian(rpy[k], pin.LOCAL)
        dE = pin.rpy.computeRpyJacobianTimeDerivative(rpy[k], r1[k], pin.LOCAL)
        w, dw = E @ r1[k], E @ r2[k] + dE @ r1[k]
        linear = R.T @ p1[k]
        v = np.concatenate([linear, w, j1[k]])
        a = np.concatenate([R.T @ p2[k] - np.cross(w, linear), dw, j2[k]])
        torque = pin.rnea(real, data, q[k], v, a)
        pin.computeJointJacobians(real, data, q[k])
        pin.updateFramePlacements(real, data)
        J = [pin.getFrameJacobian(real, data, f, pin.LOCAL)[:3] for f in frames]
        # the feet share what the base takes, so that the sum of squares over shares is least
        A = np.hstack([own[:, :6].T for own in J])
        W = np.diag(np.repeat(share[k], 3))
        f = W @ A.T @ np.linalg.solve(A @ W @ A.T, torque[:6])
        forces[k] = f.reshape(4, 3)
        up = np.array(
            [(data.oMf[each].rotation @ forces[k, i])[2] for i, each in enumerate(frames)]
        )
        if np.any(up < -1e-9):
            raise RuntimeError(f"{name}: a foot pulls at {t[k]:.2f} s by {-up.min():.2g} N")
        tau[k] = torque[6:] - sum(own[:, 6:].T @ forces[k, i] for i, own in enumerate(J))
        tau[k] += IA * j2[k] + FV * j1[k] + FC * np.sign(j1[k])
        r = MOUNT.translation
        lever = np.cross(dw, r) + np.cross(w, np.cross(w, r))
        gyro[k] = MOUNT.rotation.T @ w
        specific[k] = MOUNT.rotation.T @ (R.T @ (p2[k] + [0.0, 0.0, 9.81]) + lever)
    names = list(told.names[2:])
    table = {"time": t}

    def put(called: list[str], values: np.ndarray, noise: str) -> None:
        values = values + NOISE[noise] * rng.normal(size=values.shape)
        table.update(zip(called, values.T, strict=True))

    put([f"q_{each}" for each in names], q[:, 7:], "q")
    put([f"tau_{each}" for each in names], tau, "tau")
    put([f"imu_w{k}" for k in "xyz"], gyro, "gyro")
    put([f"imu_a{k}" for k in "xyz"], specific, "specific")
    put([f"base_q{k}" for k in "xyzw"], turn, "turn")
    for i, leg in enumerate(LEGS):
        if steps:
            table[f"contact_{leg}"] = (share[:, i] > 0.0).astype(float)
        else:
            put([f"f{k}_{leg}" for k in "xyz"], forces[:, i], "force")
    rows = np.column_stack(list(table.values()))
    np.savetxt(
        HERE / f"{name}.csv", rows, fmt="%.6g", delimiter=",", header=",".join(table), comments=""
    )
    print(name, f"{sum(i.mass for i in real.inertias[1:]):.3f} kg, base {real.inertias[1]}")


if __name__ == "__main__":
    log("sway", 1, steps=False)
    log("steps", 2, steps=True)
