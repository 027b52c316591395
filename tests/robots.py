"""Robots to test on: where their files are, and random states and parameters for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array
from dynident.core.inertia import to_inertial_parameters
from dynident.robot.model import Robot

EXAMPLES = Path(__file__).parents[1] / "examples"

URDFS = {
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "ur10": "ur_description/urdf/ur10_robot.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "tiago": "tiago_description/robots/tiago.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
}


def urdf(name: str) -> Path:
    """A URDF by name: of example-robot-data (the test extra installs it), or tx40."""
    if name == "tx40":
        return EXAMPLES / "tx40" / "tx40_mdh_modified.urdf"
    relative = Path("share/example-robot-data/robots") / URDFS[name]
    for folder in Path(pin.__file__).parents:
        if (folder / relative).is_file():
            return folder / relative
    raise FileNotFoundError(f"{relative}: install the test group, it brings example-robot-data")


def pin_model(path: Path, floating: bool = False) -> pin.Model:
    """Pinocchio's model, without the rotor inertias that a URDF does not have."""
    if floating:
        model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    else:
        model = pin.buildModelFromUrdf(str(path))
    model.armature = np.zeros(model.nv)
    return model


def states(robot: Robot, samples: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Random q, dq, ddq, in the library's layout; angles within a turn, slides within 1 m."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.0, 1.0, (samples, robot.n))
    q = q * [np.pi if joint.kind == "revolute" else 1.0 for joint in robot.joints]
    if robot.floating:
        quaternion = rng.normal(size=(samples, 4))
        quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
        q = np.hstack([rng.normal(size=(samples, 3)), quaternion, q])
    return q, rng.normal(size=(samples, robot.dof)), rng.normal(size=(samples, robot.dof))


def pin_q(model: pin.Model, q: Array) -> Array:
    """One configuration as Pinocchio has it: continuous joints are (cos, sin)."""
    out = pin.neutral(model)
    position = 0
    for joint in list(model.joints)[1:]:
        at = joint.idx_q
        if joint.nq == joint.nv:
            out[at] = q[position]
            position += 1
        elif joint.nv == 6:
            out[at : at + 7] = q[:7]
            position = 7
        else:
            out[at : at + 2] = np.cos(q[position]), np.sin(q[position])
            position += 1
    return out


def bodies(count: int, seed: int = 0) -> Array:
    """Physically consistent random 10-vectors, shape (count, 10)."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        half = rng.normal(size=(4, 4)) * [[0.2], [0.2], [0.2], [1.0]]
        out.append(half @ half.T + np.diag([0.01, 0.01, 0.01, 0.5]))
    return to_inertial_parameters(np.array(out))


def relative(ours: Array, theirs: Array) -> float:
    """Largest difference over the largest value."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def fall(path: Path, seconds: float = 10.0, step: float = 1e-3) -> tuple[float, float, float]:
    """A URDF let go under gravity with its own damping and friction, by Pinocchio.

    Friction is implicit in the velocity, as simulators have it: ``(M + h D) dv = h f`` with
    ``D = fv + fc / sqrt(v^2 + w^2)``, so that stiff friction on light links is not a failure of
    the step.

    Returns
    -------
    gained, fastest, last : float
        Largest mechanical energy above the first one [J], largest and last speed [rad/s].
    """
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    q, v = pin.neutral(model), np.zeros(model.nv)
    q = pin.integrate(model, q, np.linspace(0.3, 0.9, model.nv))
    start = pin.computeMechanicalEnergy(model, data, q, v)
    gained, fastest = 0.0, 0.0
    below, still = np.tril_indices(model.nv, -1), np.zeros(model.nv)
    for _ in range(round(seconds / step)):
        slope = model.damping + model.friction / np.sqrt(v**2 + 1e-3**2)
        M = pin.crba(model, data, q)
        M[below] = M.T[below]  # of which Pinocchio fills the other half
        force = -pin.rnea(model, data, q, v, still) - slope * v
        v = v + np.linalg.solve(M + step * np.diag(slope), step * force)
        q = pin.integrate(model, q, step * v)
        gained = max(gained, pin.computeMechanicalEnergy(model, data, q, v) - start)
        fastest = max(fastest, float(np.max(np.abs(v))))
    return gained, fastest, float(np.max(np.abs(v)))
