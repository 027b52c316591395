"""The closed loop that is simulated: all but the values of the robot's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.control.controller import MOST_LATE, Controller
from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.words import format_number
from dynident.dynamics.idim import Idim
from dynident.friction.model import Element
from dynident.simulation.integrators import INTEGRATORS
from dynident.simulation.mount import Mount

WIDTH_SHARE = 0.01
"""Default smoothing width of the sign, as a share of the largest reference speed."""

REST_BLOCK, LONG_REST = 0.5, 1.0
"""Rests are measured in blocks of so long; longer ones are held by friction [s]."""
LEAST_WIDTH, LEAST_READING = 1e-5, 1e-4
"""The smallest width that a rest asks for [rad/s or m/s], and the smallest change of a reading
that counts [rad or m]."""

MOST_STEPS = 10_000
"""Integration steps a sample, and a period of the controller."""


TOLERANCE, TOLERANCES = 1e-8, (1e-12, 1e-2)
"""Of a step's error where steps are chosen by it, and within which bounds."""


@dataclass(frozen=True)
class Loop:
    """A robot's model under control, without its parameter values.

    >>> loop = di.Loop(model, pd([900.0, 600.0], [60.0, 40.0]), reference)
    >>> motion = di.rollout(loop, theta)

    Attributes
    ----------
    idim : Idim
    controller : Controller
    reference : Reference
        Its rate is that of the log.
    integrator : str
        Name in `INTEGRATORS`.
    substeps : int
        Integration steps a sample.
    width : ndarray, shape (n,), optional
        Speed over which Coulomb friction changes sign, ``sign(v) ~ tanh(v / width)``; by
        default one per cent of the largest reference speed [rad/s or m/s].
    external : ndarray, shape (samples, dof), optional
        Torques from outside [Nm or N].
    noise : ndarray, shape (samples, n), optional
        Of the positions that the controllers see [rad or m].
    count : ndarray, shape (n,), optional
        Encoder resolution; zero for none [rad or m].
    elements : tuple of Element
        What acts on the drives beside the model's friction.
    model : ndarray, shape (standard parameters,), optional
        Of the controller's model compensation.
    q0, dq0 : ndarray, shapes (nq,) and (dof,), optional
        Initial state; on the reference by default (a free-flying base at rest at
        the origin).
    held : bool
        Whether targets are held from sample to sample; else they move smoothly between.
    bias : ndarray, shape (n,), optional
        Readings of the encoders when the robot's positions are zero [rad or m].
    lead : int
        Rows of the reference before the start, for delayed targets.
    mount : Mount, optional
        Compliant stand of the base.
    base : ndarray, shape (samples, 19), optional
        Prescribed pose (7), twist and acceleration of a floating robot's base; by default it
        moves freely.
    tolerance : float
        Of a step's error over ``1 + |value|`` of each position and speed, for integrators that
        choose their steps.
    reads : tuple of int, optional
        The joint whose encoder each controller reads; its own by default.
    """

    idim: Idim
    controller: Controller
    reference: Reference
    integrator: str = "ode3"
    substeps: int = 1
    width: Array | None = None
    external: Array | None = None
    noise: Array | None = None
    count: Array | None = None
    elements: tuple[Element, ...] = ()
    model: Array | None = None
    q0: Array | None = None
    dq0: Array | None = None
    held: bool = False
    bias: Array | None = None
    lead: int = 0
    mount: Mount | None = None
    base: Array | None = None
    tolerance: float = TOLERANCE
    reads: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        idim, n = self.idim, self.idim.robot.n
        name = idim.robot.name
        self._check_integrator()
        if self.controller.n != n:
            raise InputError(f"the controller has {self.controller.n} joints, {name} has {n}")
        if self.reference.q.shape[1] != n:
            raise InputError(
                f"the reference has {self.reference.q.shape[1]} joints, {name} has {n}"
            )
        object.__setattr__(self, "reference", close_reference(idim, self.reference, self.q0))
        if self.width is None:
            object.__setattr__(self, "width", choose_share_of_speed(self.reference.dq, WIDTH_SHARE))
        self._check_signals()
        self._check_compensation()
        if self.base is not None and not idim.robot.floating:
            raise InputError(f"{name}: a motion of the base needs a floating robot")
        _ = self.steps  # which refuses clocks that do not fit

    def _check_integrator(self) -> None:
        """Whether the integrator can follow this robot under this controller."""
        idim = self.idim
        refuse_unknown(self.integrator, INTEGRATORS, f"integrator {self.integrator!r} is not known")
        if INTEGRATORS[self.integrator].error is not None and (
            idim.has_states or any(each.model.state for each in self.elements)
        ):
            raise InputError(
                f"integrator {self.integrator!r} chooses its steps, but friction that remembers is "
                "followed in equal ones: take ode3"
            )
        if not TOLERANCES[0] <= self.tolerance <= TOLERANCES[1]:
            least, most = TOLERANCES
            raise InputError(f"tolerance has to be from {least:g} to {most:g}")
        if not 1 <= self.substeps <= MOST_STEPS:
            raise InputError(f"substeps must be from 1 to {MOST_STEPS}, got {self.substeps}")
        sampled = self.controller.rate is not None
        if INTEGRATORS[self.integrator].implicit and (
            idim.robot.floating or idim.robot.loops or not (sampled or self.controller.integrates)
        ):
            raise InputError(
                f"integrator {self.integrator!r} needs a tree on a fixed base, and a sampled "
                "controller (give it a rate) or one without states but integrals; ode1 to ode5 do "
                "not"
            )

    def _check_signals(self) -> None:
        """Whether encoders, delays and limits go with the controller."""
        n, sampled = self.idim.robot.n, self.controller.rate is not None
        if np.any(np.isfinite(self.controller.speed_limit)) and not self.held:
            raise InputError("a speed_limit needs targets that are held (targets = 'held')")
        if self.count is not None:
            count = np.asarray(self.count, dtype=float)
            if count.shape != (n,) or not np.all((count >= 0.0) & np.isfinite(count)):
                raise InputError(f"an encoder's counts need {n} finite values, positive or zero")
        if self.count is not None and np.any(self.count) and not sampled:
            raise InputError("an encoder's counts need a sampled controller: give it a rate")
        if self.controller.delay > 0.0 and not sampled and not self.held:
            raise InputError(
                "a delay needs a sampled controller (give it a rate), or targets that are held"
            )
        if not 0 <= self.lead < len(self.reference.q) or (self.lead and sampled):
            raise InputError("rows before the start need a continuous controller and its reference")
        if self.bias is not None and np.shape(self.bias) != (n,):
            raise InputError(f"encoder biases need {n} values, got {np.size(self.bias)}")

    def _check_compensation(self) -> None:
        """Whether there is a model to compensate with, and nothing that it does not know."""
        idim = self.idim
        if self.controller.compensation != "none":
            if self.model is None:
                raise InputError(
                    f"compensation {self.controller.compensation!r} needs a model; the robot's "
                    "file has no inertials"
                )
            if idim.robot.floating:
                raise InputError("model compensation needs a fixed base")
        if self.mount is not None:
            idim.robot.refuse_loops("a compliant mount")
        if self.mount is not None and self.controller.compensation != "none":
            raise InputError("a compliant mount needs a controller without compensation")

    @property
    def rate(self) -> float:
        """Samples per second [Hz]."""
        return self.reference.rate

    @property
    def samples(self) -> int:
        """Length of the reference."""
        return len(self.reference.q)

    @property
    def gain(self) -> Array:
        """Of the controllers: none of joints without a drive, shape (n,)."""
        return np.where(self.idim.robot.passive, 0.0, self.controller.gain)

    @property
    def steps(self) -> tuple[int, int]:
        """Integration steps that a sampled output is held, and that it comes late.

        Raises
        ------
        InputError
            When the clocks do not fit.
        """
        if self.controller.rate is None:
            return 0, 0
        fast = self.rate * self.substeps
        hold, delay = fast / self.controller.rate, fast * self.controller.delay
        if hold < 1.0 - 1e-6:
            raise InputError(
                f"the controller's rate of {self.controller.rate:g} Hz is above that of the "
                f"integration, {fast:g} Hz; give more substeps"
            )
        if hold > MOST_STEPS:
            raise InputError(
                f"the controller's period at {self.controller.rate:g} Hz is more than {MOST_STEPS} "
                f"integration steps of {1 / fast:g} s; give its rate in Hz"
            )
        if delay > MOST_LATE * hold:
            raise InputError(
                f"the controller's delay of {self.controller.delay:g} s is more than {MOST_LATE} "
                "of its periods; give it in seconds"
            )
        for value, name in ((hold, "period"), (delay, "delay")):
            if abs(value - round(value)) > 1e-6 * max(1.0, value):
                raise InputError(
                    f"the controller's {name} is {value:.4g} integration steps of {1 / fast:g} s, "
                    "which is not a whole number; change substeps or the controller's clock"
                )
        return round(hold), round(delay)

    def describe(self) -> str:
        """What of it the law leaves open."""
        assert self.width is not None
        kinds = [joint.kind for joint in self.idim.robot.joints]
        pairs = zip(np.full(len(kinds), self.width).tolist(), kinds, strict=True)
        told = dict.fromkeys(
            f"{format_number(width, 2)} {'rad/s' if kind == 'revolute' else 'm/s'}"
            for width, kind in pairs
        )
        return (
            f"by {self.integrator}, targets {'held' if self.held else 'smooth'} between samples, "
            f"the sign of friction turning over {', '.join(told)}"
        )

    def scaled(self, factor: Array) -> Loop:
        """The same loop with all gains multiplied joint by joint."""
        return replace(self, controller=self.controller.scaled(factor))


@dataclass(frozen=True)
class LoopColumn:
    """A parameter of the loop itself to differentiate by."""

    kind: str
    """``"gain"``: the drive's torque per unit of output; ``"bias"``: what the encoder reads at zero
    [rad or m]; ``"delay"``: by how much all held targets come late [s]; ``"speed"``: the joint's
    speed at the start [rad/s or m/s], and ``"place"``: what its encoder reads there [rad or m];
    ``"limit"``, ``"damping"``, ``"integral"``, ``"deadband"``, ``"punch"`` and ``"speed_limit"``:
    see `Controller`; ``"ks_pitch"`` and such are of the loop's mount."""
    joint: int = 0
    """Index of the joint; of a delay and of a mount any."""


def close_reference(idim: Idim, reference: Reference, near: Array | None = None) -> Reference:
    """A reference whose passive joints are where their loops have them; of a tree the same.

    Assembled as a robot that is `near` its beginning, shape (n,).
    """
    closure = idim.structure.closure
    if closure is None:
        return reference
    q = np.array(reference.q)
    if near is not None:
        q[0, closure.passive] = near[closure.passive]
    name, motion = "the reference", (q, reference.dq, reference.ddq)
    return Reference(reference.rate, *closure.follow(*motion, name, reference.rate))


def choose_share_of_speed(dq: Array, share: float) -> Array:
    """Smoothing width of the sign: a share of the largest speed, one a joint [rad/s or m/s]."""
    return np.asarray(share * np.maximum(np.max(np.abs(dq), axis=0), 1e-3))


def find_holding_width(readings: Array, runs: Sequence[tuple[int, int]], rate: float) -> Array:
    """The width of the sign under which joints stay where friction holds them, shape (n,).

    A joint that Coulomb friction holds off its target creeps under ``fc tanh(v / width)``, by
    nearly the width where much of the friction is needed. Over its longest rest that has to be less
    than its encoder shows, by readings [rad or m] in runs without gaps. Infinite of joints that do
    not rest.
    """
    block = max(2, round(REST_BLOCK * rate))
    found = np.full(readings.shape[1], np.inf)
    for j, reading in enumerate(readings.T):
        steps = np.abs(np.diff(reading))
        shown = max(LEAST_READING, float(np.min(steps[steps > 0.0], initial=1.0)))
        longest = 0
        for start, stop in runs:
            blocks = reading[start : start + (stop - start) // block * block].reshape(-1, block)
            low, high, count = np.inf, -np.inf, 0
            for least, most in zip(blocks.min(axis=1), blocks.max(axis=1), strict=True):
                low, high, count = min(low, least), max(high, most), count + 1
                if high - low > 2.0 * shown:
                    low, high, count = least, most, int(most - least <= 2.0 * shown)
                longest = max(longest, count)
        if longest * REST_BLOCK > LONG_REST:
            found[j] = max(LEAST_WIDTH, shown / (longest * REST_BLOCK))
    return found
