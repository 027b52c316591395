"""Identified models under a log's law in MuJoCo."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.whole import WholeModel
from dynident.engines.drive import (
    PLUGGED,
    EngineDrive,
    EngineMotion,
    make_plugged_resistance,
    refuse_diverged_motion,
)
from dynident.export.exported import describe_omissions
from dynident.export.mujoco import find_velocity_rows, import_mujoco, mujoco_model, soften_friction
from dynident.export.resistance import Resistance
from dynident.export.terms import sort_joint_terms

OWN_SOFTNESS = "with MuJoCo's own softness of friction loss (no solreffriction, solimpfriction)"
IMMOVABLE = 1e12
"""Armature that holds what is not a joint of the robot: a free joint, or one that is locked."""


def simulate_in_mujoco(model: WholeModel, drive: EngineDrive, whole: WholeModel) -> EngineMotion:
    """The motion of a model under a law by MuJoCo's ``implicitfast`` steps.

    Contacts, limits of joints, equalities and actuators of the file are off, for the identified
    robot has none; what was held stays where it is.

    Parameters
    ----------
    model : WholeModel
        As engines are given it.
    whole : WholeModel
        As it was identified: friction that MuJoCo has no place for is applied as a torque.
    """
    mujoco = import_mujoco()
    names = model.idim.robot.joint_names
    taken = np.where(np.isinf(drive.limit), drive.kd, 0.0)  # implicit there

    def made(model: WholeModel) -> Any:
        other = mujoco_model(model, meshes=False)
        for name in ("CONTACT", "LIMIT", "EQUALITY", "ACTUATION", "AUTORESET"):
            other.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))
        other.opt.timestep = drive.step
        other.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        rows = find_velocity_rows(other, names)
        other.dof_armature[np.setdiff1d(np.arange(other.nv), rows)] = IMMOVABLE
        other.dof_damping[rows] -= taken
        return other

    def moved(other: Any, resist: Resistance | None = None) -> Array:
        rows = find_velocity_rows(other, names)
        places = np.array([int(other.joint(name).qposadr[0]) for name in names])
        data = mujoco.MjData(other)
        there_too = {other.joint(k).name for k in range(other.njnt)}
        for name, value in model.idim.robot.locked.items():
            if name in there_too:
                data.qpos[other.joint(name).qposadr[0]] = value
        qpos, qvel, applied = data.qpos, data.qvel, data.qfrc_applied
        qpos[places], qvel[rows] = drive.q, drive.dq
        found = np.empty((drive.samples, len(rows)))
        for k in range(len(drive.push)):
            q, dq = qpos[places], qvel[rows]
            if k % drive.substeps == 0:
                found[k // drive.substeps] = q
                refuse_diverged_motion(drive, k, dq, names)
            u = drive.torque(k, q, dq) - taken * dq
            if resist is not None:
                torque, slope = resist(q, dq)
                other.dof_damping[rows] = slope - taken  # its slope is implicit, too
                u += slope * dq - torque
            applied[rows] = u
            mujoco.mj_step(other, data)
        return found

    resist = make_plugged_resistance(whole, drive)
    warned = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)  # else it writes a file where one happens to be
    try:
        other = made(model)
        otherwise = [(OWN_SOFTNESS, moved(other))]
        soften_friction(other, model, drive.width)
        soft = moved(other)
        if resist is not None:
            otherwise.append((PLUGGED, moved(made(remove_friction(model)), resist)))
    finally:
        mujoco.set_mju_user_warning(warned)
    terms = sort_joint_terms(model)
    notes = describe_omissions(terms.left, "model of MuJoCo")
    if np.any(terms.offset):
        notes += ("offsets have no place in an MJCF: here springs that are far away give them",)
    return EngineMotion(soft, notes, tuple(otherwise))


def remove_friction(model: WholeModel) -> WholeModel:
    """Bodies and rotors alone."""
    theta = model.theta.copy()
    for k, parameter in enumerate(model.idim.parameters):
        if k >= model.idim.inertial and parameter.symbol not in ("Ia", "Iam"):
            theta[k] = 0.0
    return WholeModel(model.idim, theta)
