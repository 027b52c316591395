"""Joint controllers: linear, one for each joint, continuous or sampled, with limits.

Each is the pair ``dz/dt = A z + B w`` (sampled: ``z+ = A z + B w``) and ``u = C z + D w`` of
`INPUTS` w; torque is ``gain * sat(u)``. A new kind: a function and a line in `CONTROLLERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dynident.core.arrays import Array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.makers import Numbers, ReadAs, Row, Rows
from dynident.core.schema import Number, make_choice_validator
from dynident.core.text import suggest_nearest

INPUTS = ("qref", "dqref", "ddqref", "q", "dq")
"""What a controller sees of its joint, in the order of the last axis of B and D."""
MOST_LATE = 200
"""Samples that velocities are differenced over, and periods that outputs come late, at most."""
QREF, DQREF, DDQREF, Q, DQ = range(5)
EDGE = 5e-4
"""Over which a dead band of position servos ends [rad or m]."""
OF_SERVOS = ("deadband", "punch", "speed_limit", "backlash")
"""Fields of a `Controller` that position servos have, one value a joint."""
OF_JOINTS = ("A", "B", "C", "D", "antiwindup", "band", "gain", "limit", *OF_SERVOS)
"""Fields of a `Controller` whose first axis are the joints."""
UNLIMITED = ("limit", "speed_limit")
"""Fields that may be infinite."""
COMPENSATIONS = ("none", "gravity", "feed-forward", "computed-torque")
VELOCITIES = ("measured", "differences")
Polynomials = Annotated[Sequence[float] | Sequence[Sequence[float]], ReadAs(Row | Rows)]
Matrices = Annotated[npt.ArrayLike, ReadAs(Rows | tuple[Rows, ...])]  # one, or one of each joint
Vectors = Annotated[npt.ArrayLike, ReadAs(Row | Rows)]
States = tuple[Array, ...]  # A, B, C and antiwindup
Late = Annotated[int, Field(strict=True, ge=1)]


@dataclass(frozen=True)
class Controller:
    """Controllers of n joints with m states each (padded with zeros to a common m).

    >>> from dynident.control.controller import pd
    >>> pd(kp=[900.0, 600.0], kd=[60.0, 40.0], rate=1000.0).rate
    1000.0

    Attributes
    ----------
    A, B, C, D : ndarray, shapes (n, m, m), (n, m, 5), (n, m), (n, 5)
        ``dz/dt = A z + B w`` or, sampled, ``z+ = A z + B w``; ``u = C z + D w``.
    antiwindup : ndarray, shape (n, m)
        ``antiwindup * (sat(u) - u)`` is added to the state equation (back-calculation).
    gain : ndarray, shape (n,)
        Torque per unit of output (brunot2019, eq. 5) [Nm or N per unit].
    limit : ndarray, shape (n,)
        ``|u|`` is held to it; infinite for none [units of u].
    rate : float or None
        Of a sampled controller, whose output is held between samples; None: continuous [Hz].
    delay : float
        From measurement to torque [s].
    compensation : str
        "gravity" adds g(q); "feed-forward" the inverse dynamics along the reference; with
        "computed-torque" ``gain * sat(u)`` is an acceleration that a model makes a torque.
    band : ndarray, shape (n, m)
        Position error within which a state is held; beyond twice the band its whole input is
        integrated, in between a share that grows linearly, so that motions are
        differentiable. None by default [rad or m].
    edge : float
        Of position servos, whose error ``e = qref - q`` counts as ``s(e - b) - s(-e - b)``, b the
        dead band and ``s(x) = edge log(1 + exp(x / edge))``, and which add ``punch (s'(e - b) -
        s'(-e - b))``: without b the first is e, and the second ``tanh(e / (2 edge))``. Zero for all
        other laws [rad or m].
    deadband, punch, speed_limit, backlash : ndarray, shape (n,)
        Of position servos: error without reaction [rad or m], least output beyond it [units of
        u], largest speed of targets [rad/s or m/s], and relative motion of motor and joint
        without a torque between them, from stop to stop [rad or m]. The encoder is at
        the joint.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    antiwindup: Array
    gain: Array
    limit: Array
    rate: float | None = None
    delay: float = 0.0
    compensation: str = "none"
    band: Array = field(default_factory=lambda: np.zeros((0, 0)))
    edge: float = 0.0
    deadband: Array = field(default_factory=lambda: np.zeros(0))
    punch: Array = field(default_factory=lambda: np.zeros(0))
    speed_limit: Array = field(default_factory=lambda: np.zeros(0))
    backlash: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if np.ndim(self.C) != 2 or not len(self.C):
            raise InputError(f"controller: C has shape {np.shape(self.C)}, needs (joints, m)")
        n, m, w = *np.shape(self.C), len(INPUTS)
        shapes = {"A": (n, m, m), "B": (n, m, w), "C": (n, m), "D": (n, w), "antiwindup": (n, m)}
        if not np.size(self.band):
            object.__setattr__(self, "band", np.zeros((n, m)))
        for label in OF_SERVOS:
            if not np.size(getattr(self, label)):
                object.__setattr__(self, label, np.full(n, np.inf if label in UNLIMITED else 0.0))
        shapes["band"] = (n, m)
        every = ("gain", "limit", *OF_SERVOS)
        for label, shape in {**shapes, **dict.fromkeys(every, (n,))}.items():
            value = np.array(getattr(self, label), dtype=float, order="C")
            if value.shape != shape:
                raise InputError(f"controller: {label} has shape {value.shape}, needs {shape}")
            if label not in UNLIMITED and not np.all(np.isfinite(value)):
                raise InputError(f"controller: {label} has a value that is not a finite number")
            value.setflags(write=False)
            object.__setattr__(self, label, value)
        if not np.all(self.limit > 0.0):
            raise InputError("controller: limit has to be positive; leave it out for none")
        if np.any(self.band < 0.0):
            raise InputError("controller: band must not be negative; 0 for none")
        if not np.all(self.speed_limit > 0.0):
            raise InputError("controller: speed_limit has to be positive; leave it out for none")
        for label in ("deadband", "punch", "backlash"):
            if np.any(getattr(self, label) < 0.0):
                raise InputError(f"controller: {label} must not be negative; 0 for none")
        _check_rate(self.rate)
        if not 0.0 <= self.delay < np.inf:
            raise InputError(f"controller: delay has to be zero or more, got {self.delay:g} s")
        refuse_unknown(
            self.compensation,
            COMPENSATIONS,
            f"controller: compensation {self.compensation!r} is not known",
        )

    @property
    def n(self) -> int:
        """Joints."""
        return len(self.C)

    @property
    def states(self) -> int:
        """States of each joint's controller."""
        return int(self.C.shape[1])

    @property
    def follows(self) -> npt.NDArray[np.bool_]:
        """Which joints' outputs move with their targets, at once or by a state, shape (n,)."""
        return np.asarray((self.D[:, QREF] != 0.0) | (self.states > 0))

    @property
    def integrates(self) -> bool:
        """Whether all states are integrals of errors, which implicit steps hold."""
        return self.compensation == "none" and not np.any(self.A)

    def integrating(self) -> Controller:
        """The same position servos with an integral of their error, weighed by zero so far."""
        if self.states:
            return self
        A, B, C, back = _build_servo_integral(self.D[:, QREF], 0.0 * self.gain, self.rate)
        return replace(self, A=A, B=B, C=C, antiwindup=back, band=np.zeros((self.n, 1)))

    def answer(self, w: Array) -> Array:
        """Outputs without limits and states by `INPUTS` w (..., n, 5), shape (..., n)."""
        u = np.sum(self.D * w, axis=-1)
        if self.edge:
            e = w[..., QREF] - w[..., Q]
            up, down = (e - self.deadband) / self.edge, (-e - self.deadband) / self.edge
            bent = self.edge * (np.logaddexp(0.0, up) - np.logaddexp(0.0, down))
            u = u + self.D[:, QREF] * (bent - e)
            u = u + 0.5 * self.punch * (np.tanh(0.5 * up) - np.tanh(0.5 * down))
        return np.asarray(u)

    @property
    def parts(self) -> tuple[str, ...]:
        """Kinds of what a position servo has beside stiffness, damping and limit."""
        if not self.edge:
            return ()
        none = {"speed_limit": np.inf}
        kinds = ("integral", *OF_SERVOS)
        return tuple(k for k in kinds if np.any(self.parameter(k) != none.get(k, 0.0)))

    def parameter(self, kind: str) -> Array:
        """Values by a kind of parameter, shape (n,): of `PARAMETERS`."""
        if kind == "damping":
            return -self.D[:, DQ]
        if kind == "integral":
            return self.C[:, 0] if self.states else np.zeros(self.n)
        return np.asarray(getattr(self, kind))

    def parameters(self) -> dict[str, Array]:
        """Values of all `PARAMETERS` by kind."""
        return {kind: self.parameter(kind) for kind in PARAMETERS}

    def with_values(self, values: Mapping[str, float]) -> Controller:
        """The same with other values of parameters by name (``gain1``); the rest as it is."""
        found = self
        for kind in PARAMETERS:
            names = [f"{kind}{j + 1}" for j in range(self.n)]
            if not any(name in values for name in names):
                continue
            now = self.parameter(kind)
            new = np.array([values.get(name, v) for name, v in zip(names, now, strict=True)])
            if kind == "damping":
                D = found.D.copy()
                D[:, DQ] = -new
                found = replace(found, D=D)
            elif kind == "integral":
                found = replace(found.integrating(), C=new[:, None])
            else:
                # the solver's last digits may lie beyond a bound of zero
                found = replace(found, **{kind: np.maximum(new, 0.0)})
        return found

    @property
    def servo(self) -> tuple[Array, Array] | None:
        """Stiffness and damping of a law that is ``kp (qref - q) - kd dq``, shapes (n,).

        What targets' speeds add is left out, and what else `OF_SERVOS` are; None of laws with
        states that are not servos', a rate, compensation or accelerations.
        """
        D = self.D
        other = (self.states and not self.edge) or self.rate is not None
        other = other or self.compensation != "none"
        if other or np.any(D[:, DDQREF]) or np.any(D[:, Q] != -D[:, QREF]):
            return None
        return self.gain * D[:, QREF], -self.gain * D[:, DQ]

    @property
    def of_an_instant(self) -> Controller | None:
        """The law of slow motions, by positions and speeds alone; None of states that last.

        Sampled states that forget, as those of differenced positions, make it
        ``H(z) = D + C (z I - A)^-1 B``; about z = 1 a signal counts ``H(1)``, its speed
        ``H'(1) / rate``.
        """
        n, m = self.C.shape
        if not m:
            return self
        if self.rate is None or np.any(np.linalg.matrix_power(self.A, m)):
            return None
        once = np.linalg.solve(np.eye(m) - self.A, self.B)
        twice = np.linalg.solve(np.eye(m) - self.A, once)
        D = self.D + np.einsum("jm,jmw->jw", self.C, once)
        slope = np.einsum("jm,jmw->jw", self.C, twice) / -self.rate
        for signal, speed in ((QREF, DQREF), (Q, DQ), (DQREF, DDQREF)):
            D[:, speed] += slope[:, signal]
        none, w = np.zeros((n, 0)), len(INPUTS)
        return replace(
            self, A=np.zeros((n, 0, 0)), B=np.zeros((n, 0, w)), C=none, D=D, antiwindup=none,
            band=none,
        )  # fmt: skip

    def scaled(self, factor: npt.ArrayLike) -> Controller:
        """The same controllers with gains multiplied by `factor`, a number or shape (n,)."""
        return replace(self, gain=self.gain * _spread_over_joints("factor", factor, self.n))


class Common(TypedDict, total=False):
    """Keywords that every maker in `CONTROLLERS` takes.

    Attributes
    ----------
    n : int
        Joints of the robot; by default as many as the longest setting has values.
    gain, limit : float or sequence
        See `Controller`; 1 and infinite by default.
    rate, delay, compensation
        See `Controller`; continuous, 0 and "none" by default. With "computed-torque" the
        reference acceleration is added to the output (not by `state_space`).
    velocity : str
        "measured" (default): the input dq. "differences", for sampled controllers:
        ``(q_k - q_(k - lag)) rate / lag``, by states that remember past positions.
    lag : int or sequence
        Samples between differenced positions; 1 by default.
    """

    n: int
    gain: Numbers
    limit: Numbers
    rate: Annotated[float, Field(gt=0.0)] | None
    delay: Annotated[float, Field(ge=0.0)]
    compensation: Annotated[str, make_choice_validator(COMPENSATIONS)]
    velocity: Annotated[str, make_choice_validator(VELOCITIES)]
    lag: Annotated[int | Sequence[int], ReadAs(Late | tuple[Late, ...])]


def p(kp: Numbers, **common: Unpack[Common]) -> Controller:
    """Proportional: ``u = kp (qref - q)``."""
    (kp,) = _check_gains(common, kp=kp)
    return _build_controller(_stack_coefficients({QREF: kp, Q: -kp}), common)


def pd(
    kp: Numbers, kd: Numbers, *, velocity_reference: bool = True, **common: Unpack[Common]
) -> Controller:
    """PD: ``u = kp (qref - q) + kd (dqref - dq)``, or without its dqref."""
    kp, kd = _check_gains(common, kp=kp, kd=kd)
    return _build_controller(
        _stack_coefficients({QREF: kp, Q: -kp, DQREF: kd * velocity_reference, DQ: -kd}), common
    )


def pid(
    kp: Numbers,
    ki: Numbers,
    kd: Numbers = 0.0,
    *,
    tracking_time: Numbers | None = None,
    integral_band: Numbers = 0.0,
    velocity_reference: bool = True,
    **common: Unpack[Common],
) -> Controller:
    """PID: that of `pd` plus ``ki`` times the integral of ``qref - q``.

    `tracking_time` [s] is that of the back-calculation while the output is limited: by
    default ``sqrt(kd / ki)``, or ``kp / ki`` if kd is 0; infinite for none. A sampled
    integral uses forward Euler. Within `integral_band` of the target [rad or m] the integral
    is held, to avoid hunting due to friction (brunot2019, section 2.2).
    """
    kp, ki, kd = _check_gains(common, kp=kp, ki=ki, kd=kd)
    D = _stack_coefficients({QREF: kp, Q: -kp, DQREF: kd * velocity_reference, DQ: -kd})
    error = _stack_coefficients({QREF: np.ones_like(kp), Q: -np.ones_like(kp)})
    usual = np.where(
        kd != 0.0, np.sqrt(np.abs(_divide_safely(kd, ki))), np.abs(_divide_safely(kp, ki))
    )
    states = _build_integral(error, ki, usual, tracking_time, common)
    return _build_controller(D, common, states, band=integral_band)


def servo(
    kp: Numbers,
    kd: Numbers = 0.0,
    ki: Numbers = 0.0,
    *,
    deadband: Numbers = 0.0,
    punch: Numbers = 0.0,
    speed_limit: Numbers | None = None,
    backlash: Numbers = 0.0,
    **common: Unpack[Common],
) -> Controller:
    """Position servo: ``u = kp f(e) + punch h(e) - kd dq + ki * integral of f(e)``.

    ``e = qref - q``; f leaves out a dead band b, ``f(e) = e - b`` above it, and h is the sign of
    f: both are smooth over `EDGE`. Targets move with `speed_limit` at most. Between the motor and
    the joint, where the encoder is, a motion of the width `backlash` is lost. `Controller` has the
    units.

    >>> from dynident.control.controller import servo
    >>> servo(17.8, deadband=2e-3, punch=0.1, limit=3.0, n=6).deadband[0]
    0.002
    """
    given = {"deadband": deadband, "punch": punch, "backlash": backlash}
    if speed_limit is not None:
        given["speed_limit"] = speed_limit
    names = ("kp", "kd", "ki")
    first, *_ = values = _check_gains(
        common, **dict(zip(names, (kp, kd, ki), strict=True)), **given
    )
    own = dict(zip((*names, *given), values, strict=True))
    if np.any(first <= 0.0) or np.any(own["kd"] < 0.0) or np.any(own["ki"] < 0.0):
        raise InputError("servo: kp has to be positive, kd and ki zero or more")
    D = _stack_coefficients({QREF: first, Q: -first, DQ: -own["kd"]})
    rate = _check_rate(common.get("rate"))
    states = _build_servo_integral(first, own["ki"], rate) if np.any(own["ki"]) else ()
    plain = _build_controller(D, common, states)
    return replace(
        plain,
        edge=EDGE,
        deadband=own["deadband"],
        punch=own["punch"],
        backlash=own["backlash"],
        speed_limit=own.get("speed_limit", plain.speed_limit),
    )


def p_p(
    kp: Numbers, kv: Numbers, velocity_feedforward: Numbers = 0.0, **common: Unpack[Common]
) -> Controller:
    """Position loop around velocity loop: ``u = kv (kp (qref - q) + ff dqref - dq)``."""
    kp, kv, ff = _check_gains(common, kp=kp, kv=kv, velocity_feedforward=velocity_feedforward)
    return _build_controller(
        _stack_coefficients({QREF: kv * kp, Q: -kv * kp, DQREF: kv * ff, DQ: -kv}), common
    )


def p_pi(
    kp: Numbers,
    kv: Numbers,
    ki: Numbers,
    velocity_feedforward: Numbers = 0.0,
    *,
    tracking_time: Numbers | None = None,
    integral_band: Numbers = 0.0,
    **common: Unpack[Common],
) -> Controller:
    """P position loop around a PI velocity loop.

    ``u = kv e + ki * integral of e`` with ``e = kp (qref - q) + ff dqref - dq``.
    `tracking_time` as in `pid`, by default ``kv / ki``; `integral_band` likewise, of ``qref - q``.
    """
    kp, kv, ki, ff = _check_gains(
        common, kp=kp, kv=kv, ki=ki, velocity_feedforward=velocity_feedforward
    )
    error = _stack_coefficients({QREF: kp, Q: -kp, DQREF: ff, DQ: -np.ones_like(kp)})
    inner = _build_integral(error, ki, np.abs(_divide_safely(kv, ki)), tracking_time, common)
    return _build_controller(error * kv[:, None], common, inner, band=integral_band)


def transfer_function(num: Polynomials, den: Polynomials, **common: Unpack[Common]) -> Controller:
    """``u = C(s) (qref - q)``, in controllable canonical form.

    `num` and `den` are coefficients of falling powers of s: one list for all joints, or one
    list a joint. With a rate C is sampled by Tustin's rule, which keeps the frequency
    response well below the Nyquist frequency without a zero-order hold's half sample of lag.
    There is no anti-windup.

    Raises
    ------
    InputError
        For a numerator of higher degree than its denominator, a denominator of zero, coefficients
        that are not finite, lists of different lengths, and a rate that is not positive.
    """
    tops, bottoms = _trim_polynomials("num", num), _trim_polynomials("den", den)
    n = _count_joints(
        common, {k: len(v) for k, v in (("num", tops), ("den", bottoms)) if len(v) > 1}
    )
    m = max(len(bottom) for bottom in bottoms) - 1
    A, B, C, direct = np.zeros((n, m, m)), np.zeros((n, m, 5)), np.zeros((n, m)), np.zeros(n)
    rate = _check_rate(common.get("rate"))
    for j in range(n):
        top, bottom = tops[j % len(tops)], bottoms[j % len(bottoms)]
        k, above = len(bottom) - 1, len(top) - 1
        if above > k:
            raise InputError(
                f"joint {j + 1}: degree {above} over {k} is improper: add a fast pole to den"
            )
        a, b = bottom / bottom[0], np.pad(top, (k - above, 0)) / bottom[0]
        own, drive, read, direct[j] = np.eye(k, k=-1), np.eye(1, k)[0], b[1:] - b[0] * a[1:], b[0]
        own[:1] = -a[1:]
        if rate is not None:
            own, drive, read, direct[j] = _discretise_by_tustin(own, drive, read, direct[j], rate)
        A[j, :k, :k], C[j, :k], B[j, :k, QREF], B[j, :k, Q] = own, read, drive, -drive
    return _build_controller(
        _stack_coefficients({QREF: direct, Q: -direct}), common, (A, B, C, np.zeros((n, m)))
    )


def state_space(
    A: Matrices,
    B: Matrices,
    C: Vectors,
    D: Vectors,
    *,
    antiwindup: Annotated[npt.ArrayLike, ReadAs(Number | Row | Rows)] = 0.0,
    **common: Unpack[Common],
) -> Controller:
    """Any linear controller, matrices as in `Controller` (those of z+ where there is a rate).

    Shapes (m, m), (m, 5), (m,) and (5,) serve all joints; an axis of joints may come first.
    """
    axes = {"A": 2, "B": 2, "C": 1, "antiwindup": 1, "D": 1}
    back = np.broadcast_to(antiwindup, np.shape(C)) if np.ndim(antiwindup) == 0 else antiwindup
    given = {k: np.asarray(v, float) for k, v in zip(axes, (A, B, C, back, D), strict=True)}
    # whatever else is wrong with a shape, the Controller says
    n = _count_joints(common, {k: len(v) for k, v in given.items() if v.ndim == axes[k] + 1})
    *states, direct = (
        np.broadcast_to(v, (n, *v.shape)) if v.ndim == axes[k] else v for k, v in given.items()
    )
    return _build_controller(direct, common, tuple(states), exact=True)


CONTROLLERS: dict[str, Callable[..., Controller]] = {
    "p": p,
    "pd": pd,
    "pid": pid,
    "servo": servo,
    "p-p": p_p,
    "p-pi": p_pi,
    "transfer-function": transfer_function,
    "state-space": state_space,
}
"""Makers by name."""
PARAMETERS = ("gain", "limit", "damping", "integral", *OF_SERVOS)
"""Parameters of each joint's law that can be fitted; all but `gain` and `limit` of servos."""


def _check_rate(rate: float | None) -> float | None:
    if rate is not None and not 0.0 < rate < np.inf:
        raise InputError(f"controller: rate has to be positive, got {rate:g} Hz; or leave it out")
    return rate


def _divide_safely(above: Array, below: Array) -> Array:
    # infinite where `below` is zero
    return np.divide(above, below, out=np.full_like(above, np.inf), where=below != 0.0)


def _count_joints(common: Common, lengths: dict[str, int]) -> int:
    """Number of joints, on which all settings with one value a joint have to agree."""
    for label, setting in common.items():
        if label in ("gain", "limit", "lag") and np.ndim(setting):  # type: ignore[arg-type]
            lengths[label] = len(setting)  # type: ignore[arg-type]
    longest = max(lengths, key=lambda label: lengths[label], default="")
    n = common.get("n", lengths.get(longest, 1))
    for label, length in lengths.items():
        if length != n:
            other = f"the robot has {n} joints" if "n" in common else f"{longest} has {n}"
            raise InputError(f"{label} has {length} value{'s' * (length != 1)}, {other}")
    return n


def _spread_over_joints(label: str, value: npt.ArrayLike, n: int) -> Array:
    """A setting as one value for each joint, shape (n,)."""
    array = np.asarray(value, dtype=float)
    if array.shape not in ((), (n,)):
        raise InputError(f"{label} has to be a number, or {n} numbers: one for each joint")
    return np.broadcast_to(array, (n,))


def _check_gains(common: Common, **values: Numbers) -> list[Array]:
    """Finite settings, each of shape (n,)."""
    n = _count_joints(common, {k: np.shape(v)[0] for k, v in values.items() if np.ndim(v)})
    for label, value in values.items():
        if not np.all(np.isfinite(value)):
            raise InputError(f"{label} has a value that is not a finite number")
    return [_spread_over_joints(label, value, n) for label, value in values.items()]


def _stack_coefficients(entries: dict[int, Array]) -> Array:
    """Coefficients of the inputs, shape (n, 5)."""
    return np.stack([entries.get(k, 0.0 * entries[min(entries)]) for k in range(len(INPUTS))], 1)


def _trim_polynomials(label: str, given: Polynomials) -> list[Array]:
    """Coefficients of one polynomial or of each joint's, leading zeros cut."""
    lists = [given] if all(np.ndim(c) == 0 for c in given) else given
    cut = [np.trim_zeros(np.atleast_1d(np.asarray(c, dtype=float)), "f") for c in lists]
    for j, polynomial in enumerate(cut):
        if not np.all(np.isfinite(polynomial)) or (label == "den" and not len(polynomial)):
            raise InputError(f"{label} of joint {j + 1} has to be finite numbers, not all zero")
    return cut


def _discretise_by_tustin(A: Array, B: Array, C: Array, d: Array, rate: float) -> States:
    """One joint's continuous system with ``s = 2 rate (z - 1) / (z + 1)``."""
    half, unit = A / (2.0 * rate), np.eye(len(A))
    back = np.linalg.inv(unit - half)
    drive = back @ B / rate
    return back @ (unit + half), drive, C @ back, d + 0.5 * (C @ drive)


def _build_integral(
    e: Array, ki: Array, usual: Array, time: Numbers | None, common: Common
) -> States:
    """One state a joint, ki times the integral of ``e @ w``, with back-calculation."""
    n, rate = len(ki), _check_rate(common.get("rate"))
    # a back-calculation that is faster than the clock would overshoot
    period, shortest = (1.0, 0.0) if rate is None else (1.0 / rate, 1.0 / rate)
    limited = np.isfinite(_spread_over_joints("limit", common.get("limit", np.inf), n))
    time = (
        np.maximum(usual, shortest)
        if time is None
        else _spread_over_joints("tracking_time", time, n)
    )
    on = (ki != 0.0).astype(float)
    if not np.all((time > 0.0) & (time >= shortest * (1.0 - 1e-9)) | (on * limited == 0.0)):
        raise InputError(
            "tracking_time has to be positive, and a sampled controller's no shorter than a period"
        )
    back = on * period / np.where(time > 0.0, time, np.inf)
    A = np.zeros((n, 1, 1)) if rate is None else on[:, None, None]
    return A, (e * ki[:, None] * period)[:, None], on[:, None], back[:, None]


def _build_servo_integral(kp: Array, ki: Array, rate: float | None) -> States:
    """The integral of a servo's error as a state that ki weighs; it goes back by ``1 / kp``."""
    n, period = len(kp), 1.0 if rate is None else 1.0 / rate
    error = np.zeros((n, 1, len(INPUTS)))
    error[:, 0, QREF], error[:, 0, Q] = period, -period
    back = np.divide(period, kp, out=np.zeros(n), where=kp > 0.0)
    return np.full((n, 1, 1), float(rate is not None)), error, ki[:, None], back[:, None]


def _difference_positions(
    states: States, D: Array, lag: Array, rate: float
) -> tuple[States, Array]:
    """The same controller with dq replaced by differences of remembered positions."""
    A, B, C, back = states
    n, m = C.shape
    size = m + int(np.max(lag))
    a, b, c = np.zeros((n, size, size)), np.zeros((n, size, 5)), np.zeros((n, size))
    a[:, :m, :m], b[:, :m], c[:, :m], d = A, B, C, D.copy()
    for j, k in enumerate(lag.astype(int)):
        oldest, factor = m + k - 1, rate / k
        c[j, oldest], a[j, :m, oldest] = -factor * D[j, DQ], -factor * B[j, :, DQ]
        d[j, Q] += factor * D[j, DQ]
        b[j, :m, Q] += factor * B[j, :, DQ]
        b[j, m, Q] = 1.0
        a[j, range(m + 1, m + k), range(m, m + k - 1)] = 1.0
    d[:, DQ], b[:, :, DQ] = 0.0, 0.0
    return (a, b, c, np.pad(back, ((0, 0), (0, size - m)))), d


def _build_controller(
    D: Array, common: Common, states: States = (), exact: bool = False, band: Numbers = 0.0
) -> Controller:
    """The controller of a direct term and states, with the common settings.

    `exact` ones lack the reference's acceleration that "computed-torque" adds; the band is of the
    states that are given, one a joint.
    """
    known = Common.__annotations__
    for key in (k for k in common if k not in known):
        raise InputError(f"unknown controller setting {key!r}{suggest_nearest(key, known)}")
    n, rate = len(D), _check_rate(common.get("rate"))
    if not states:
        states = np.zeros((n, 0, 0)), np.zeros((n, 0, 5)), np.zeros((n, 0)), np.zeros((n, 0))
    own = states[2].shape[1]
    velocity, compensation = common.get("velocity", "measured"), common.get("compensation", "none")
    refuse_unknown(velocity, VELOCITIES, f"velocity {velocity!r} is not known")
    if compensation == "computed-torque" and not exact:
        D = D + _stack_coefficients({DDQREF: np.ones(n)})
    if velocity == "differences":
        if rate is None:
            raise InputError("velocity 'differences' needs a sampled controller: give a rate")
        lag = _spread_over_joints("lag", common.get("lag", 1), n)
        if not np.all((lag >= 1) & (lag <= MOST_LATE) & (lag == np.round(lag))):
            raise InputError(f"lag has to be a whole number of samples from 1 to {MOST_LATE}")
        states, D = _difference_positions(states, D, lag, rate)
    elif "lag" in common:
        raise InputError("lag is for velocity = 'differences'")
    gain = _spread_over_joints("gain", common.get("gain", 1.0), n)
    limit = _spread_over_joints("limit", common.get("limit", np.inf), n)
    A, B, C, back = states
    late, within = common.get("delay", 0.0), np.zeros(C.shape)
    within[:, :own] = _spread_over_joints("integral_band", band, n)[:, None]
    return Controller(A, B, C, D, back, gain, limit, rate, late, compensation, within)
