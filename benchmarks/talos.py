"""TALOS with its arms, torso and head held: its courses on two soles, for `walking.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

FILE = Path(pin.__file__).parents[4] / (
    "share/example-robot-data/robots/talos_data/robots/talos_reduced.urdf"
)
SOLES = {"left": "left_sole_link", "right": "right_sole_link"}
SOLE = (0.1, 0.06, 0.005)
"""Half of its length, width and height [m]."""
KP, KD = 6000.0, 80.0
DRIVES = {"Ia": 0.6, "fv": 6.0, "fc": 5.0}
LOAD = pin.Inertia(5.0, np.array([-0.15, 0.02, 0.25]), np.diag([0.06, 0.05, 0.05]))
"""On the trunk, which the URDF does not know."""


def load_models() -> tuple[pin.Model, pin.Model, dict[str, float]]:
    """The robot of the URDF, the one that moves, and the joints that are held."""
    whole = pin.buildModelFromUrdf(str(FILE), pin.JointModelFreeFlyer())
    held = [k for k, name in enumerate(whole.names) if k > 1 and not name.startswith("leg")]
    told = pin.buildReducedModel(whole, held, pin.neutral(whole))
    real, rng = told.copy(), np.random.default_rng(7)
    for joint in range(1, real.njoints):
        own, scale = real.inertias[joint], rng.uniform(0.9, 1.1)
        lever = own.lever * rng.uniform(0.95, 1.05, 3)
        real.inertias[joint] = pin.Inertia(scale * own.mass, lever, scale * own.inertia)
    real.inertias[1] += LOAD
    return told, real, {whole.names[k]: 0.0 for k in held}


def solve_legs(model: pin.Model, base: list[pin.SE3], soles: list[list[pin.SE3]]) -> np.ndarray:
    """Configurations by Newton's method, each from the one before."""
    data, frames = model.createData(), [model.getFrameId(name) for name in SOLES.values()]
    q = pin.neutral(model)
    q[7:] = np.tile([0.0, 0.0, -0.4, 0.8, -0.4, 0.0], 2)
    found = np.empty((len(base), model.nq))
    for t, (place, wanted) in enumerate(zip(base, soles, strict=True)):
        q[:7] = pin.SE3ToXYZQUAT(place)
        for _ in range(30):
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            off = [
                pin.log6(data.oMf[f].actInv(goal)).vector
                for f, goal in zip(frames, wanted, strict=True)
            ]
            J = [pin.getFrameJacobian(model, data, f, pin.LOCAL)[:, 6:] for f in frames]
            q[7:] += np.linalg.solve(np.vstack(J), np.concatenate(off))
            if np.max(np.abs(off)) < 1e-12:
                break
        found[t] = q
    return found


def follow_course(model, waves, rise, rng, t, steps):  # type: ignore[no-untyped-def]
    """Base and targets: weight shifts and squats, with `steps` each foot lifted and put ahead.

    Targets are ahead of the joints by the torque of the URDF's weight over the drives' stiffness.
    """
    seat = np.array([0.0, 0.0, 0.99 if steps else 0.97])
    size = np.array([0.009, 0.015, 0.009]) if steps else np.array([0.015, 0.03, 0.03])
    position = seat + waves(rng, t, size, 0.8 if steps else 0.7)
    rpy = waves(rng, t, np.array([0.06, 0.08, 0.12]) * (0.4 if steps else 1.0), 0.8)
    feet = np.array([[-0.02, 0.085, 0.0], [-0.02, -0.085, 0.0]])
    courses = np.repeat(feet[None], len(t), axis=0)
    share = np.ones((len(t), 2))
    for k, a in enumerate((0.8, 5.4) if steps else ()):
        away = rise((t - a) / 1.0) * rise((a + 4.4 - t) / 1.0)
        position[:, 1] -= away * feet[k, 1]
        lifted = rise((t - a - 1.2) / 0.5) * rise((a + 3.2 - t) / 0.5)
        swing = np.array([0.06, 0.03, 0.03]) * [1.0, np.sign(feet[k, 1]), 1.0]
        courses[:, k] += lifted[:, None] * (
            np.array([0.03, 0.02 * np.sign(feet[k, 1]), 0.08])
            + np.abs(waves(rng, t - a - 1.0, swing, 1.5)) * np.sign(swing)
        )
        share[:, k] = 1.0 - rise((t - a - 0.2) / 0.9) * rise((a + 4.2 - t) / 0.9)
    base = [pin.SE3(pin.rpy.rpyToMatrix(r), p) for r, p in zip(rpy, position, strict=True)]
    soles = [[pin.SE3(np.eye(3), each) for each in pair] for pair in courses]
    q = solve_legs(model, base, soles)
    data, frames = model.createData(), [model.getFrameId(name) for name in SOLES.values()]
    for own, bears in zip(q, share, strict=True):
        weight = pin.computeGeneralizedGravity(model, data, own)
        pin.computeJointJacobians(model, data, own)
        pin.updateFramePlacements(model, data)
        J = [pin.getFrameJacobian(model, data, f, pin.LOCAL) for f in frames]
        A = np.hstack([each[:, :6].T for each in J])
        # forces cost more than moments, in Nm that a sole can bear
        W = np.repeat(bears + 1e-9, 6) * np.tile([1.0, 1.0, 1.0, 0.01, 0.01, 0.01], 2)
        f = W * (A.T @ np.linalg.solve((A * W) @ A.T, weight[:6]))
        torque = weight[6:] - sum(each[:, 6:].T @ f[6 * k : 6 * k + 6] for k, each in enumerate(J))
        own[7:] += torque / KP
    q[:, :3] = position
    return q
