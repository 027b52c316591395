"""Joint controllers: linear, one for each joint, continuous or sampled, with limits.

Each is the pair ``dz/dt = A z + B w`` (sampled: ``z+ = A z + B w``) and ``u = C z + D w`` of
`INPUTS` w; the torque is ``gain * sat(u)``. A new kind is one function and one line in
`CONTROLLERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from dynident.errors import InputError
from dynident.inertia import Array
from dynident.text import nearest

INPUTS = ("qref", "dqref", "ddqref", "q", "dq")
"""What a controller sees of its joint, in the order of the last axis of B and D."""
QREF, DQREF, DDQREF, Q, DQ = range(5)
COMPENSATIONS = ("none", "gravity", "feed-forward", "computed-torque")
"""Model torques that may be added: see `Controller`."""
VELOCITIES = ("measured", "differences")
"""Where a controller has its velocity from: see `Common`."""

Numbers = float | Sequence[float] | Array
"""One value for all joints, or one for each."""


@dataclass(frozen=True)
class Controller:
    """Controllers of n joints with m states each (padded with zeros to a common m).

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

    def __post_init__(self) -> None:
        for label in ("A", "B", "C", "D", "antiwindup", "gain", "limit"):
            value = np.array(getattr(self, label), dtype=float, order="C")
            value.setflags(write=False)
            object.__setattr__(self, label, value)
        if self.C.ndim != 2 or not len(self.C):
            raise InputError(f"controller: C has shape {self.C.shape}, it has to be (joints, m)")
        n, m, inputs = self.n, self.states, len(INPUTS)
        shapes = {"A": (n, m, m), "B": (n, m, inputs), "D": (n, inputs), "antiwindup": (n, m)}
        for label, shape in {**shapes, "C": (n, m), "gain": (n,), "limit": (n,)}.items():
            value = getattr(self, label)
            if value.shape != shape:
                raise InputError(
                    f"controller: {label} has shape {value.shape}, it has to be {shape}"
                )
            if label != "limit" and not np.all(np.isfinite(value)):
                raise InputError(f"controller: {label} has a value that is not a finite number")
        if not np.all(self.limit > 0.0):
            raise InputError("controller: limit has to be positive; leave it out for none")
        if self.rate is not None and not 0.0 < self.rate < np.inf:
            raise InputError(
                f"controller: rate has to be positive, got {self.rate:g} Hz; "
                "leave it out for a continuous controller"
            )
        if not 0.0 <= self.delay < np.inf:
            raise InputError(f"controller: delay has to be zero or more, got {self.delay:g} s")
        if self.compensation not in COMPENSATIONS:
            known = nearest(self.compensation, COMPENSATIONS)
            raise InputError(f"controller: compensation {self.compensation!r} is not known{known}")

    @property
    def n(self) -> int:
        """Joints."""
        return len(self.C)

    @property
    def states(self) -> int:
        """States of each joint's controller."""
        return int(self.C.shape[1])

    def scaled(self, factor: npt.ArrayLike) -> Controller:
        """The same controllers with gains multiplied by `factor`, a number or shape (n,)."""
        (each,) = _each(self.n, factor=np.asarray(factor, dtype=float))
        return replace(self, gain=self.gain * each)


def output(controller: Controller, z: Array, w: Array) -> Array:
    """Limited output ``sat(C z + D w)``, shape (n,); torque is ``gain`` times it.

    Parameters
    ----------
    controller : Controller
    z : ndarray, shape (n, m)
        States.
    w : ndarray, shape (n, 5)
        `INPUTS`.
    """
    return np.clip(_linear(controller, z, w), -controller.limit, controller.limit)


def next_state(controller: Controller, z: Array, w: Array) -> Array:
    """``A z + B w + antiwindup (sat(u) - u)``, shape (n, m).

    The next state of a sampled controller, the rate of change of a continuous one's.
    Parameters are those of `output`.
    """
    excess = output(controller, z, w) - _linear(controller, z, w)
    free = np.einsum("jik,jk->ji", controller.A, z) + np.einsum("jik,jk->ji", controller.B, w)
    return np.asarray(free + controller.antiwindup * excess[:, None])


def _linear(controller: Controller, z: Array, w: Array) -> Array:
    return np.sum(controller.C * z, axis=1) + np.sum(controller.D * w, axis=1)


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
    rate: float | None
    delay: float
    compensation: str
    velocity: str
    lag: int | Sequence[int]


def p(kp: Numbers, **common: Unpack[Common]) -> Controller:
    """Proportional: ``u = kp (qref - q)``."""
    (kp,) = _gains(common, kp=kp)
    return _build(_row(QREF, kp, Q, -kp), common)


def pd(
    kp: Numbers, kd: Numbers, *, velocity_reference: bool = True, **common: Unpack[Common]
) -> Controller:
    """PD: ``u = kp (qref - q) + kd (dqref - dq)``, or without dqref."""
    kp, kd = _gains(common, kp=kp, kd=kd)
    return _build(_row(QREF, kp, Q, -kp, DQREF, kd * velocity_reference, DQ, -kd), common)


def pid(
    kp: Numbers,
    ki: Numbers,
    kd: Numbers = 0.0,
    *,
    tracking_time: Numbers | None = None,
    velocity_reference: bool = True,
    **common: Unpack[Common],
) -> Controller:
    """PID: that of `pd` plus ``ki`` times the integral of ``qref - q``.

    `tracking_time` [s] is that of the back-calculation while the output is limited: by
    default ``sqrt(kd / ki)``, or ``kp / ki`` where kd is 0; infinite for none. A sampled
    integral goes by forward Euler.
    """
    kp, ki, kd = _gains(common, kp=kp, ki=ki, kd=kd)
    D = _row(QREF, kp, Q, -kp, DQREF, kd * velocity_reference, DQ, -kd)
    with np.errstate(divide="ignore", invalid="ignore"):
        usual = np.where(kd != 0.0, np.sqrt(np.abs(kd / ki)), np.abs(kp / ki))
    return _build(D, common, _integral(_row(QREF, ki, Q, -ki), usual, tracking_time, common))


def p_p(
    kp: Numbers, kv: Numbers, velocity_feedforward: Numbers = 0.0, **common: Unpack[Common]
) -> Controller:
    """Position loop around velocity loop: ``u = kv (kp (qref - q) + ff dqref - dq)``."""
    kp, kv, ff = _gains(common, kp=kp, kv=kv, velocity_feedforward=velocity_feedforward)
    return _build(_row(QREF, kv * kp, Q, -kv * kp, DQREF, kv * ff, DQ, -kv), common)


def p_pi(
    kp: Numbers,
    kv: Numbers,
    ki: Numbers,
    velocity_feedforward: Numbers = 0.0,
    *,
    tracking_time: Numbers | None = None,
    **common: Unpack[Common],
) -> Controller:
    """P position loop around a PI velocity loop.

    ``u = kv e + ki * integral of e`` with ``e = kp (qref - q) + ff dqref - dq``.
    `tracking_time` as in `pid`, by default ``kv / ki``.
    """
    kp, kv, ki, ff = _gains(common, kp=kp, kv=kv, ki=ki, velocity_feedforward=velocity_feedforward)
    error = _row(QREF, kp, Q, -kp, DQREF, ff, DQ, -np.ones(len(kp)))
    with np.errstate(divide="ignore", invalid="ignore"):
        usual = np.abs(kv / ki)
    inner = _integral(error * ki[:, None], usual, tracking_time, common)
    return _build(error * kv[:, None], common, inner)


def transfer_function(
    num: Sequence[float] | Sequence[Sequence[float]],
    den: Sequence[float] | Sequence[Sequence[float]],
    **common: Unpack[Common],
) -> Controller:
    """``u = C(s) (qref - q)``, in controllable canonical form.

    `num` and `den` are coefficients of falling powers of s: one list for all joints, or one
    list a joint. With a rate C is sampled by Tustin's rule, which keeps the frequency
    response well below the Nyquist frequency without a zero-order hold's half sample of lag.
    There is no anti-windup.
    """
    above, below = _polynomials("num", num), _polynomials("den", den)
    sizes = {"num": np.ones(len(above)), "den": np.ones(len(below))}
    n = len(_gains(common, **sizes)[0])
    above, below = (list(s) * (n if len(s) == 1 else 1) for s in (above, below))
    m = max(len(d) for d in below) - 1
    A, B, C, D = np.zeros((n, m, m)), np.zeros((n, m, 5)), np.zeros((n, m)), np.zeros((n, 5))
    for j, (top, bottom) in enumerate(zip(above, below, strict=True)):
        k = len(bottom) - 1
        if len(top) > k + 1:
            raise InputError(
                f"transfer function of joint {j + 1}: degree {len(top) - 1} over {k} is not "
                "proper; add a fast pole to den"
            )
        a = bottom[1:] / bottom[0]
        b = np.concatenate([np.zeros(k + 1 - len(top)), top]) / bottom[0]
        own, drive = np.eye(k, k=-1), np.eye(k, 1)[:, 0]
        own[:1] = -a
        read, direct = b[1:] - b[0] * a, b[0]
        if (rate := common.get("rate")) is not None and k:
            own, drive, read, direct = _tustin(own, drive, read, direct, rate, j)
        A[j, :k, :k], C[j, :k] = own, read
        B[j, :k, QREF], B[j, :k, Q] = drive, -drive
        D[j, QREF], D[j, Q] = direct, -direct
    return _build(D, common, (A, B, C, np.zeros((n, m))))


def state_space(
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    C: npt.ArrayLike,
    D: npt.ArrayLike,
    *,
    antiwindup: npt.ArrayLike = 0.0,
    **common: Unpack[Common],
) -> Controller:
    """Any linear controller, matrices as in `Controller` (of z+ where there is a rate).

    Shapes (m, m), (m, 5), (m,) and (5,) serve all joints; a joint axis may come first.
    """
    given = {"A": (A, 2), "B": (B, 2), "C": (C, 1), "D": (D, 1)}
    arrays = {k: np.asarray(v, dtype=float) for k, (v, _) in given.items()}
    for label, (_, axes) in given.items():
        if arrays[label].ndim not in (axes, axes + 1):
            shape = arrays[label].shape
            raise InputError(f"controller: {label} has {len(shape)} axes, {axes} are needed")
    own = {k: np.ones(len(v)) for k, v in arrays.items() if v.ndim > given[k][1]}
    n = len(_gains(common, joints=1.0, **own)[0])
    full = {
        k: v if v.ndim > given[k][1] and len(v) == n else np.broadcast_to(v, (n, *v.shape[-given[k][1] :]))
        for k, v in arrays.items()
    }
    back = np.broadcast_to(np.asarray(antiwindup, dtype=float), full["C"].shape)
    return _build(full["D"], common, (full["A"], full["B"], full["C"], back), exact=True)


CONTROLLERS: dict[str, Callable[..., Controller]] = {
    "p": p,
    "pd": pd,
    "pid": pid,
    "p-p": p_p,
    "p-pi": p_pi,
    "transfer-function": transfer_function,
    "state-space": state_space,
}
"""Makers by name."""
