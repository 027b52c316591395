"""The law of a log as engines apply it, and what they make of a model under it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.control.controller import DQ, INPUTS, QREF, Controller, Q
from dynident.control.reference import average_held_signals
from dynident.core.arrays import Array
from dynident.core.errors import InputError, RolloutError
from dynident.dynamics.whole import WholeModel
from dynident.export.resistance import Resistance, make_resistance
from dynident.export.terms import sort_joint_terms
from dynident.simulation.loop import Loop
from dynident.simulation.servo import slow_targets

LONGEST_STEP = 2.5e-4
"""Of the engines' integration, which is of first order [s]."""
PLUGGED = "with all friction as torques that are applied at each step (a plugin)"
HUGE = 1e6
"""Speeds beyond it are those of a simulation that has failed [rad/s or m/s]."""


@dataclass(frozen=True, eq=False)
class EngineMotion:
    """What an engine makes of a model under a law."""

    q: Array
    """Positions of the robot [rad or m], shape (samples, n)."""
    notes: tuple[str, ...]
    """What of the model is not in the engine."""
    otherwise: tuple[tuple[str, Array], ...] = ()
    """Positions with what an engine does by default, and what that is."""


@dataclass(frozen=True, eq=False)
class EngineDrive:
    """A law on the clock of an engine: ``sat(push + kq q + kd dq)``, or that of position servos."""

    step: float
    """Of the integration [s]."""
    substeps: int
    """Steps a sample."""
    push: Array
    """What targets and the encoders' biases give, means over the steps [Nm or N], shape (samples *
    substeps, n)."""
    kq: Array
    kd: Array
    """`kq`, `kd`: shape (n,)."""
    limit: Array
    """Shape (n,). Of the torque; infinite for none."""
    q: Array
    dq: Array
    """`q`, `dq`: where the robot starts, shape (n,)."""
    width: Array
    """Of the friction's smoothed sign, shape (n,)."""
    servo: Controller | None
    """Whose error is bent, and which answers in the place of push, kq and kd."""
    aim: Array
    """Targets of such servos [rad or m], shape (samples * substeps, n)."""
    bias: Array
    """What their encoders read at zero [rad or m], shape (n,)."""

    @property
    def samples(self) -> int:
        """Of the log."""
        return len(self.push) // self.substeps

    def torque(self, k: int, q: Array, dq: Array) -> Array:
        """Of step k."""
        if self.servo is None:
            u = self.push[k] + self.kq * q + self.kd * dq
        else:
            w = np.zeros((len(q), len(INPUTS)))
            w[:, QREF], w[:, Q], w[:, DQ] = self.aim[k], q + self.bias, dq
            u = self.servo.gain * self.servo.answer(w)
        return np.asarray(np.maximum(np.minimum(u, self.limit), -self.limit))


def build_drive(loop: Loop) -> EngineDrive:
    """The law of a loop as other engines can have it."""
    control, robot = loop.controller, loop.idim.robot
    beyond = control.states or control.rate is not None or np.any(control.backlash)
    if beyond or control.compensation != "none":
        raise InputError(
            "[controller] other engines replay p, pd, p-p and servo, without a rate, states, "
            "integral, backlash and compensation; take --engine dynident"
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
    targets = slow_targets(loop)[0]
    for column, signal in enumerate((targets, loop.reference.dq, loop.reference.ddq)):
        push += control.D[:, column] * average_held_signals(signal, at, 1.0 / substeps)
    bias = np.zeros(robot.n) if loop.bias is None else loop.bias
    push += control.D[:, Q] * bias
    assert loop.q0 is not None
    assert loop.dq0 is not None
    assert loop.width is not None
    return EngineDrive(
        1.0 / (loop.rate * substeps),
        substeps,
        control.gain * push,
        control.gain * control.D[:, Q],
        control.gain * control.D[:, DQ],
        np.abs(control.gain) * control.limit,
        loop.q0 - bias,
        np.array(loop.dq0),
        loop.width,
        control if control.edge else None,
        average_held_signals(targets, at, 1.0 / substeps),
        bias,
    )


def refuse_diverged_motion(drive: EngineDrive, k: int, dq: Array, names: tuple[str, ...]) -> None:
    """Refuse a simulation that has diverged."""
    if not np.all(np.abs(dq) < HUGE):
        joint = names[int(np.argmax(~(np.abs(dq) < HUGE)))]
        raise RolloutError(
            f"the simulated motion diverges at t = {k * drive.step:.4f} s at {joint}"
        )


def make_plugged_resistance(whole: WholeModel, drive: EngineDrive) -> Resistance | None:
    """All friction of a model where engines have no place for some of it, or None."""
    left = sort_joint_terms(whole).left
    if not left or whole.idim.has_states or whole.idim.needs:
        return None
    return make_resistance(whole.idim, whole.theta, drive.width)
