"""Identified models in other engines, under the law of a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from dynident.control.controller import DQ, Q
from dynident.control.reference import average_held_signals
from dynident.core.arrays import Array
from dynident.core.errors import InputError, RolloutError
from dynident.dynamics.whole import Model
from dynident.export.exported import describe_omissions
from dynident.export.mujoco import find_velocity_rows, import_mujoco, mujoco_model, soften_friction
from dynident.export.pinocchio import build_pinocchio_model
from dynident.export.resistance import Resistance, make_resistance
from dynident.export.terms import sort_joint_terms
from dynident.simulation.loop import Loop

LONGEST_STEP = 2.5e-4
"""Of the engines' integration, which is of first order [s]."""
OWN_SOFTNESS = "with MuJoCo's own softness of friction loss (no solreffriction, solimpfriction)"
PLUGGED = "with all friction as torques that are applied at each step (a plugin)"
IMMOVABLE = 1e12
"""Armature that holds what is no joint of the robot: a free joint, or one that is locked."""
HUGE = 1e6
"""Speeds beyond it are those of a simulation that has failed [rad/s or m/s]."""


@dataclass(frozen=True, eq=False)
class EngineMotion:
    """What an engine makes of a model under a law.

    Attributes
    ----------
    q : ndarray, shape (samples, n)
        Positions of the robot [rad or m].
    notes : tuple of str
        What of the model is not in the engine.
    otherwise : tuple of (str, ndarray)
        Positions with what an engine does by default, and what that is.
    """

    q: Array
    notes: tuple[str, ...]
    otherwise: tuple[tuple[str, Array], ...] = ()


@dataclass(frozen=True, eq=False)
class Drive:
    """A law on the clock of an engine: ``sat(push + kq q + kd dq)``.

    Attributes
    ----------
    step : float
        Of the integration [s].
    substeps : int
        Steps a sample.
    push : ndarray, shape (samples * substeps, n)
        What targets and the encoders' biases give, means over the steps [Nm or N].
    kq, kd : ndarray, shape (n,)
    limit : ndarray, shape (n,)
        Of the torque; infinite for none.
    q, dq : ndarray, shape (n,)
        Where the robot starts.
    width : ndarray, shape (n,)
        Of the friction's smoothed sign.
    """

    step: float
    substeps: int
    push: Array
    kq: Array
    kd: Array
    limit: Array
    q: Array
    dq: Array
    width: Array

    @property
    def samples(self) -> int:
        """Of the log."""
        return len(self.push) // self.substeps

    def torque(self, k: int, q: Array, dq: Array) -> Array:
        """Of step k."""
        u = self.push[k] + self.kq * q + self.kd * dq
        return np.asarray(np.maximum(np.minimum(u, self.limit), -self.limit))


def build_drive(loop: Loop) -> Drive:
    """The law of a loop as other engines can have it."""
    control, robot = loop.controller, loop.idim.robot
    if control.states or control.rate is not None or control.compensation != "none":
        raise InputError(
            "[controller] other engines replay p, pd and p-p, without a rate, states and "
            "compensation; take --engine dynident"
        )
    if not loop.held or robot.floating or loop.external is not None:
        raise InputError(
            '[simulation] other engines replay a fixed base under held targets (targets = "held") '
            "alone; take --engine dynident"
        )
    substeps = max(loop.substeps, int(np.ceil(1.0 / (loop.rate * LONGEST_STEP) - 1e-9)))
    count = (len(loop.reference.q) - loop.lead) * substeps
    at = loop.lead + np.arange(count) / substeps - control.delay * loop.rate
    push = np.zeros((count, robot.n))
    for column, signal in enumerate((loop.reference.q, loop.reference.dq, loop.reference.ddq)):
        push += control.D[:, column] * average_held_signals(signal, at, 1.0 / substeps)
    bias = np.zeros(robot.n) if loop.bias is None else loop.bias
    push += control.D[:, Q] * bias
    assert loop.q0 is not None
    assert loop.dq0 is not None
    assert loop.width is not None
    return Drive(
        1.0 / (loop.rate * substeps),
        substeps,
        control.gain * push,
        control.gain * control.D[:, Q],
        control.gain * control.D[:, DQ],
        np.abs(control.gain) * control.limit,
        loop.q0 - bias,
        np.array(loop.dq0),
        loop.width,
    )


def simulate_in_pinocchio(model: Model, drive: Drive, whole: Model) -> EngineMotion:
    """The motion of a model under a law by ``pin.aba``.

    Semi-implicit Euler steps whose damping and friction are linearly implicit: their slopes times
    the step stand beside the armature. Coulomb friction is ``fc tanh(v / width)``.

    Parameters
    ----------
    model : Model
        As engines are given it.
    whole : Model
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


def make_plugged_resistance(whole: Model, drive: Drive) -> Resistance | None:
    """All friction of a model where engines have no place for some of it, or None."""
    left = sort_joint_terms(whole).left
    if not left or whole.idim.has_states or whole.idim.needs:
        return None
    return make_resistance(whole.idim, whole.theta, drive.width)


def remove_friction(model: Model) -> Model:
    """Bodies and rotors alone."""
    theta = model.theta.copy()
    for k, parameter in enumerate(model.idim.parameters):
        if k >= model.idim.inertial and parameter.symbol not in ("Ia", "Iam"):
            theta[k] = 0.0
    return Model(model.idim, theta)


def simulate_in_mujoco(model: Model, drive: Drive, whole: Model) -> EngineMotion:
    """The motion of a model under a law by MuJoCo's ``implicitfast`` steps.

    Contacts, limits of joints, equalities and actuators of the file are off, for the identified
    robot has none; what was held stays where it is.

    Parameters
    ----------
    model : Model
        As engines are given it.
    whole : Model
        As it was identified: friction that MuJoCo has no place for is applied as a torque.
    """
    mujoco = import_mujoco()
    names = model.idim.robot.joint_names
    taken = np.where(np.isinf(drive.limit), drive.kd, 0.0)  # implicit there

    def made(model: Model) -> Any:
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


def refuse_diverged_motion(drive: Drive, k: int, dq: Array, names: tuple[str, ...]) -> None:
    """Refuse a simulation that has diverged."""
    if not np.all(np.abs(dq) < HUGE):
        joint = names[int(np.argmax(~(np.abs(dq) < HUGE)))]
        raise RolloutError(
            f"the simulated motion diverges at t = {k * drive.step:.4f} s at {joint}"
        )


ENGINES: dict[str, Callable[[Model, Drive, Model], EngineMotion]] = {
    "mujoco": simulate_in_mujoco,
    "pinocchio": simulate_in_pinocchio,
}
"""Simulations by engine, beside our own."""
