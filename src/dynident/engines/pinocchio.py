"""Identified models under a log's law in Pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array
from dynident.dynamics.whole import WholeModel
from dynident.engines.drive import (
    PLUGGED,
    EngineDrive,
    EngineMotion,
    make_plugged_resistance,
    refuse_diverged_motion,
)
from dynident.export.pinocchio import build_pinocchio_model
from dynident.export.resistance import Resistance


def simulate_in_pinocchio(model: WholeModel, drive: EngineDrive, whole: WholeModel) -> EngineMotion:
    """The motion of a model under a law by ``pin.aba``.

    Semi-implicit Euler steps whose damping and friction are linearly implicit: their slopes times
    the step stand beside the armature. Coulomb friction is ``fc tanh(v / width)``.

    Parameters
    ----------
    model : WholeModel
        As engines are given it.
    whole : WholeModel
        As it was identified.
    """
    there = build_pinocchio_model(model)
    other, h = there.model, drive.step
    data = other.createData()
    names = model.idim.robot.joint_names
    rows = np.array([int(other.joints[other.getJointId(name)].idx_v) for name in names])
    armature, offset = other.armature[rows], there.offset[rows]
    damping, friction = other.damping[rows], other.upperDryFrictionLimit[rows]

    def usual(q: Array, dq: Array) -> tuple[Array, Array]:
        sign = np.tanh(dq / drive.width)
        torque = damping * dq + friction * sign + offset
        return torque, damping + friction * (1.0 - sign**2) / drive.width

    def moved(resist: Resistance) -> Array:
        turned = np.zeros(other.nv)
        turned[rows] = drive.q
        at = pin.integrate(other, pin.neutral(other), turned)
        q, dq = drive.q.copy(), drive.dq.copy()
        found = np.empty((drive.samples, len(q)))
        v, tau, beside = np.zeros(other.nv), np.zeros(other.nv), np.zeros(other.nv)
        for k in range(len(drive.push)):
            if k % drive.substeps == 0:
                found[k // drive.substeps] = q
                refuse_diverged_motion(drive, k, dq, names)
            u = drive.torque(k, q, dq)
            free = np.abs(u) < drive.limit
            torque, slope = resist(q, dq)
            tau[rows] = u - torque
            beside[rows] = armature + h * (slope - drive.kd * free)
            other.armature = beside
            v[rows] = dq
            dq = dq + h * pin.aba(other, data, at, v, tau)[rows]
            v[rows] = dq
            at = pin.integrate(other, at, h * v)
            q = q + h * dq
        return found

    resist = make_plugged_resistance(whole, drive)
    otherwise = () if resist is None else ((PLUGGED, moved(resist)),)
    return EngineMotion(moved(usual), there.notes, otherwise)
