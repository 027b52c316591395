"""MuJoCo beside the library: the same file, mass matrix and bias of both."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import mujoco
import numpy as np
from lxml import etree
from robots import relative, states

from dynident.core.arrays import Array
from dynident.dynamics import build_tree, compute_mass_matrix, evaluate_inverse_dynamics
from dynident.robot import Robot


def without_meshes(path: Path, folder: Path, held: bool = False) -> Path:
    """A copy without meshes, whose files may be missing; without a free joint where it is held."""
    tree = etree.parse(str(path))
    gone = "//geom[@mesh]|//asset/mesh|//keyframe" + ("|//freejoint" if held else "")
    for element in tree.xpath(gone):
        element.getparent().remove(element)
    copy = folder / f"bare_{path.name}"
    tree.write(str(copy))
    return copy


def engine(path: Path) -> mujoco.MjModel:
    """MuJoCo's model of a file; what it logs stays beside the file."""
    with chdir(path.parent):
        return mujoco.MjModel.from_xml_path(str(path))


def engine_terms(
    model: mujoco.MjModel, robot: Robot, q: Array, dq: Array
) -> tuple[Array, Array, Array]:
    """Mass matrices, bias and armature of MuJoCo in the robot's order and velocities."""
    data = mujoco.MjData(model)
    of = [j for j in range(model.njnt) if model.jnt_type[j] != mujoco.mjtJoint.mjJNT_FREE]
    for j, name in zip(of, robot.joint_names, strict=True):
        assert model.joint(j).name in (name, "")
    free = 7 * robot.floating
    places = [model.jnt_qposadr[j] for j in of]
    dofs = [*range(6 * robot.floating), *(model.jnt_dofadr[j] for j in of)]
    matrices, biases = [], []
    for position, rate in zip(q, dq, strict=True):
        turn = np.eye(robot.dof)
        if robot.floating:
            x, y, z, w = position[3:7]
            data.qpos[:7] = [*position[:3], w, x, y, z]
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, np.array([w, x, y, z]))
            turn[:3, :3] = R.reshape(3, 3)  # MuJoCo has the world's axes for the base's velocity
        data.qpos[places] = position[free:]
        data.qvel[dofs] = turn @ rate
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        own = turn.T @ M[np.ix_(dofs, dofs)] @ turn
        force = turn.T @ data.qfrc_bias[dofs]
        if robot.floating:
            # the world's axes do not turn with the base: its velocity in them changes by w x v
            drift = np.zeros(robot.dof)
            drift[:3] = np.cross(rate[3:6], rate[:3])
            force = force + own @ drift
        matrices.append(own)
        biases.append(force)
    return np.array(matrices), np.array(biases), model.dof_armature[dofs]


def agree(path: Path, robot: Robot, phi: Array | None = None, samples: int = 6) -> float:
    """Largest relative difference of mass matrix and bias between MuJoCo's file and a robot."""
    model = engine(path)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    assert model.nv == robot.dof
    phi = robot.nominal if phi is None else phi
    q, dq, _ = states(robot, samples)
    M, b, armature = engine_terms(model, robot, q, dq)
    tree = build_tree(robot)
    ours = compute_mass_matrix(tree, phi, q) + np.diag(armature)
    bias = evaluate_inverse_dynamics(tree, phi, q, dq, 0.0 * dq)
    return max(relative(ours, M), relative(bias, b))
