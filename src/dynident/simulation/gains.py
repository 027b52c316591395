"""Gains of a PD or cascaded loop from its log: reference, position and controller output.

The output is linear in products of the gains, whatever the robot does. Two things stand in
the way of plain least squares. How the controller differentiates its position is not known,
so every candidate is tried. And where the logged position is not bit by bit what the
controller saw (rounding, another encoder, another clock), differences of a few samples
carry its noise: that shrinks the velocity gain (errors in variables), and, which is worse,
makes the candidate of the longest difference look best long before the shrinking shows.
So the gains come from instrumental variables, functions of the reference alone, which no
noise of the position reaches; and candidates are ranked by the part of their residual that
the reference explains, less what noise alone would leave there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from dynident.core.arrays import Array
from dynident.core.errors import InputError, refuse_unknown
from dynident.regression.statistics import choose_bartlett_lag

KINDS = ("p-p", "pd")
"""Control laws whose gains can be identified: see `identify_gains`."""
SHIFTS = (0, 1, -1)
STRONG = 10.0
"""Least first-stage F statistic of instruments that are used (Staiger and Stock 1997)."""
MEMORY = 0.125
"""The instruments remember this much of the reference [s]."""
FEWEST = 50
"""Samples that a joint needs."""


@dataclass(frozen=True)
class GainCandidate:
    """One way the controller may compute its output, with the gains that fit it."""

    velocity: str
    """"backward": ``(q_k - q_(k - lag)) rate / lag``; "central": of the samples before and after;
    "measured": the logged velocity."""
    lag: int
    """Samples between the differenced positions; 0 where none are differenced."""
    shift: int
    """The output is logged this many samples after the position it answers."""
    reference: str
    """Velocity reference: "none", "given" (dqref) or "differences" (of qref, taken as those of the
    position are)."""
    kp: float
    kv: float
    feedforward: float
    """`kp`, `kv`, `feedforward`: gains, as in `ControllerGains`."""
    relative_error: float
    """``100 |u - reproduced u| / |u|`` over the samples used [%]."""
    misfit: float
    """The part of `relative_error` that the reference explains, less the share of noise in it (not
    below zero), plus one standard deviation of that share [%]."""
    strength: float
    """First-stage F statistic of the instruments (Cragg and Donald 1993)."""
    least_squares: tuple[float, float]
    """kp and kv by plain least squares, for comparison."""


@dataclass(frozen=True)
class ControllerGains:
    """Gains identified for each of n joints.

    Attributes
    ----------
    kind : str
        "p-p": ``u = kv (kp (qref - q) + feedforward dqref - dq)``; "pd":
        ``u = kp (qref - q) + kv (feedforward dqref - dq)``, feedforward being 0 or 1.
    kp, kv, feedforward : ndarray, shape (n,)
        [1/s and output per rad/s or m/s], of "pd" [output per rad or m, and the same].
    kp_std, kv_std : ndarray, shape (n,)
        Standard errors, robust to autocorrelated residuals (Newey-West; two or three times
        too wide where position noise is all there is). They hold for the candidate chosen:
        not knowing the lag is not in them.
    lag, shift : ndarray, shape (n,)
        Of the candidate chosen.
    relative_error : ndarray, shape (n,)
        Of the reproduced output [%].
    samples : ndarray, shape (n,)
        Samples used: saturated ones and their neighbours are left out.
    estimator : tuple of str
        "instrumental variables", or "least squares" where the reference moves too little
        to be an instrument.
    candidates : tuple of tuple of GainCandidate
        All that were tried for each joint, best first.
    """

    kind: str
    kp: Array
    kv: Array
    feedforward: Array
    kp_std: Array
    kv_std: Array
    lag: npt.NDArray[np.int64]
    shift: npt.NDArray[np.int64]
    relative_error: Array
    samples: npt.NDArray[np.int64]
    estimator: tuple[str, ...]
    candidates: tuple[tuple[GainCandidate, ...], ...]

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def kd(self) -> Array:
        """Another name of `kv`, usual for a PD controller, shape (n,)."""
        return self.kv


def identify_gains(
    qref: Array,
    q: Array,
    output: Array,
    rate: float,
    kind: str = "p-p",
    limit: float | Sequence[float] | Array | None = None,
    lags: Sequence[int] = (1, 2, 4),
    dqref: Array | None = None,
    dq: Array | None = None,
) -> ControllerGains:
    """Identify the gains of independent joint controllers from a closed-loop log.

    Parameters
    ----------
    qref, q : ndarray, shape (samples, n) or (samples,)
        Reference and measured positions [rad or m], as the controller had them.
    output : ndarray, same shape
        Controller output, or torque: kv (of "pd" kp too) then holds the drive's gain.
    rate : float
        Samples per second of the log, which should be the controller's [Hz].
    kind : str
        One of `KINDS`.
    limit : float or sequence of n, optional
        Where the output saturates [its units].
    lags : sequence of int
        Differences to try; give the one that is known.
    dqref, dq : ndarray, same shape, optional
        Velocity reference and measured velocity, where the controller has them. Without
        dqref a "p-p" has no feed-forward, a "pd" none or the differenced reference.

    Raises
    ------
    InputError
        For signals that do not fit together, and joints whose gains they do not show.
    """
    refuse_unknown(kind, KINDS, f"kind {kind!r} is not known")
    if not 0.0 < rate < np.inf:
        raise InputError(f"rate has to be positive, got {rate:g} Hz")
    if not lags or any(lag != int(lag) or lag < 1 for lag in lags):
        raise InputError(f"lags have to be whole numbers of samples from 1, got {list(lags)}")
    named = {"q": q, "qref": qref, "output": output, "dqref": dqref, "dq": dq}
    signals = {k: _check_columns(k, v, np.shape(q)) for k, v in named.items() if v is not None}
    n = signals["q"].shape[1]
    bound = np.asarray(np.inf if limit is None else limit, dtype=float)
    if bound.shape not in ((), (n,)) or not np.all(bound > 0.0):
        raise InputError(f"limit has to be positive: a number, or {n} of them")
    bound = np.broadcast_to(bound, (n,))
    joints = []
    for j in range(n):
        log = {k: v[:, j] for k, v in signals.items()}
        joints.append(_identify_joint(j, log, rate, kind, float(bound[j]), sorted(set(lags))))
    candidates, std, samples, estimator = zip(*joints, strict=True)
    labels = ("kp", "kv", "feedforward", "lag", "shift", "relative_error")
    return ControllerGains(
        kind=kind,
        kp_std=np.array(std)[:, 0],
        kv_std=np.array(std)[:, 1],
        samples=np.array(samples),
        estimator=estimator,
        candidates=candidates,
        **{k: np.array([getattr(c[0], k) for c in candidates]) for k in labels},
    )


def _check_columns(label: str, signal: Array, shape: tuple[int, ...]) -> Array:
    array = np.asarray(signal, dtype=float)
    if array.shape != shape or array.ndim not in (1, 2):
        raise InputError(f"{label} has shape {array.shape}, q has {shape}: (samples, joints) each")
    if not np.all(np.isfinite(array)):
        raise InputError(f"{label} has a value that is not a finite number")
    return array.reshape(len(array), -1)


_Law = tuple[str, int, str, Array]
"""Velocity, lag and reference of a `GainCandidate`; columns that it weighs, (samples, 2 or 3)."""


def _generate_laws(
    log: dict[str, Array], rate: float, kind: str, lags: list[int]
) -> Iterator[_Law]:
    """All ways to take velocity and its reference."""
    qref, q, dqref = log["qref"], log["q"], log.get("dqref")
    rules = [("backward", lag) for lag in lags] + [("central", 2)]
    if "dq" in log:
        rules.append(("measured", 0))
    for rule, lag in rules:
        speed = log["dq"] if rule == "measured" else _difference_signal(q, rule, lag, rate)
        error = qref - q
        if kind == "p-p" and dqref is not None:
            yield rule, lag, "given", np.column_stack([error, -speed, dqref])
            continue
        yield rule, lag, "none", np.column_stack([error, -speed])
        if dqref is not None:
            yield rule, lag, "given", np.column_stack([error, dqref - speed])
        elif kind == "pd" and rule != "measured":
            slope = _difference_signal(qref, rule, lag, rate)
            yield rule, lag, "differences", np.column_stack([error, slope - speed])


def _difference_signal(signal: Array, rule: str, lag: int, rate: float) -> Array:
    """Differentiated signal, zero at the ends where there is nothing to difference."""
    slope = np.zeros_like(signal)
    if rule == "central":
        slope[1:-1] = (signal[2:] - signal[:-2]) * (rate / 2.0)
    else:
        slope[lag:] = (signal[lag:] - signal[:-lag]) * (rate / lag)
    return slope


def _build_instruments(log: dict[str, Array], rate: float, depth: list[int]) -> Array:
    """What position error and velocity follow: level of the reference, its sine and cosine
    (gravity); its slope (tracking) and that one's sign (friction), at all delays.
    """
    qref = log["qref"]
    slope = _difference_signal(qref, "backward", 1, rate)
    columns = [np.ones_like(qref), qref, np.sin(qref), np.cos(qref)]
    for delay in depth:
        late = np.concatenate([np.zeros(delay), slope[: len(slope) - delay]])
        columns += [late, np.sign(late)]
    if "dqref" in log:
        columns.append(log["dqref"])
    return np.column_stack(columns)


def _identify_joint(
    j: int, log: dict[str, Array], rate: float, kind: str, limit: float, lags: list[int]
) -> tuple[tuple[GainCandidate, ...], Array, int, str]:
    """Candidates, best first; standard errors of the best; samples; name of the estimator."""
    output, samples = log["output"], len(log["q"])
    longest = int(min(MEMORY * rate, samples / 10))
    delays = [0, *(2**k for k in range(longest.bit_length()))]
    keep = np.ones(samples, dtype=bool)
    keep[: max(*delays, *lags) + 1] = keep[-1:] = False
    # one sample either way, so that every alignment is judged on the same rows
    saturated = np.abs(output) >= limit * (1.0 - 1e-6)
    keep &= ~(saturated | np.roll(saturated, 1) | np.roll(saturated, -1))
    used = int(np.count_nonzero(keep))
    if used < FEWEST:
        raise InputError(
            f"joint {j + 1}: {used} unsaturated samples, {FEWEST} are needed; use a longer log"
        )
    basis = _orthonormalise_columns(_build_instruments(log, rate, delays) * keep[:, None])
    trials = []
    for law in _generate_laws(log, rate, kind, lags):
        for shift in SHIFTS:
            X, y = law[3] * keep[:, None], np.roll(output, -shift) * keep
            fit = _fit_law(X, y, basis, used, max(lags) + 2)
            if fit is not None:
                trials.append((fit, law, shift))
    if not trials:
        raise InputError(
            f"joint {j + 1}: its gains do not show in this log (output, position error or "
            "velocity stay at zero, or move alike); use a log with more motion"
        )
    strong = any(fit.strength >= STRONG for fit, _, _ in trials)
    order = "misfit" if strong else "least_squares_error"
    trials.sort(key=lambda t: (t[0].strength < STRONG, getattr(t[0], order)))
    fit, law, shift = trials[0]
    X, y = law[3] * keep[:, None], np.roll(output, -shift) * keep
    std = _estimate_standard_errors(X, y, fit, basis if strong else None, kind)
    name = "instrumental variables" if strong else "least squares"
    return tuple(_build_candidate(*trial, kind, strong) for trial in trials), std, used, name


@dataclass(frozen=True)
class _Fit:
    """Coefficients of a candidate's columns both ways; the errors are in per cent."""

    coefficients: Array
    least_squares: Array
    error: float
    least_squares_error: float
    misfit: float
    strength: float


def _orthonormalise_columns(Z: Array) -> Array:
    """Orthonormal basis of the span of columns that may depend on each other."""
    scale = np.linalg.norm(Z, axis=0)
    Q, R = np.linalg.qr(Z[:, scale > 0.0] / scale[scale > 0.0])
    U, size, _ = np.linalg.svd(R)
    return np.asarray(Q @ U[:, : np.count_nonzero(size > 1e-9 * size[0])])


def _fit_law(X: Array, y: Array, basis: Array, used: int, memory: int) -> _Fit | None:
    """Fit by instruments and by least squares; None where the columns are dependent."""
    size, scale = float(np.linalg.norm(y)), np.linalg.norm(X, axis=0)
    if size == 0.0 or not np.all(scale > 0.0):
        return None
    X = X / scale
    plain, _, rank, _ = np.linalg.lstsq(X, y, rcond=1e-9)
    if rank < X.shape[1]:
        return None
    seen, answer = basis.T @ X, basis.T @ y
    Q, R = np.linalg.qr(seen, mode="complete")
    columns, free = X.shape[1], Q.shape[1] - X.shape[1]
    sigma = np.linalg.svd(R[:columns], compute_uv=False)
    error = 100.0 * float(np.linalg.norm(y - X @ plain)) / size
    if free < 1 or sigma[-1] <= 1e-9 * sigma[0]:
        return _Fit(plain / scale, plain / scale, error, error, np.inf, 0.0)
    beta = linalg.solve_triangular(R[:columns], Q[:, :columns].T @ answer)
    residual = y - X @ beta
    # what noise leaves in the instruments' directions that the gains do not reach; summed
    # without a taper, as differenced noise has negative correlations, up to `memory` only
    noise = (basis @ Q[:, columns:]) * residual[:, None]
    share = float(np.sum(noise * noise))
    share += 2.0 * sum(float(np.sum(noise[k:] * noise[:-k])) for k in range(1, memory + 1))
    explained = float(np.sum((Q[:, columns:].T @ answer) ** 2))
    excess = max(explained - share, 0.0) + np.sqrt(2.0 / free) * abs(share)
    unseen = X - basis @ seen
    weakest = float(linalg.eigh(unseen.T @ unseen, seen.T @ seen, eigvals_only=True)[-1])
    return _Fit(
        coefficients=beta / scale,
        least_squares=plain / scale,
        error=100.0 * float(np.linalg.norm(residual)) / size,
        least_squares_error=error,
        misfit=100.0 * float(np.sqrt(excess)) / size,
        strength=max(1, used - Q.shape[1]) / (Q.shape[1] * max(weakest, 1e-300)),
    )


def _extract_gains(coefficients: Array, kind: str) -> tuple[float, float]:
    """Position and velocity gain from the coefficients of a law's columns."""
    # u = kv (kp (qref - q) - dq) of p-p: the error's coefficient is a product
    first, second = float(coefficients[0]), float(coefficients[1])
    return (first / second if kind == "p-p" else first), second


def _build_candidate(fit: _Fit, law: _Law, shift: int, kind: str, strong: bool) -> GainCandidate:
    chosen = fit.coefficients if strong else fit.least_squares
    kp, kv = _extract_gains(chosen, kind)
    velocity, lag, reference, _ = law
    feedforward = float(reference != "none")
    if kind == "p-p" and len(chosen) == 3:
        feedforward = float(chosen[2]) / kv
    return GainCandidate(
        *(velocity, lag, shift, reference, kp, kv, feedforward),
        relative_error=fit.error if strong else fit.least_squares_error,
        misfit=fit.misfit,
        strength=fit.strength,
        least_squares=_extract_gains(fit.least_squares, kind),
    )


def _estimate_standard_errors(
    X: Array, y: Array, fit: _Fit, basis: Array | None, kind: str
) -> Array:
    """Of kp and kv: Newey-West sandwich, by the delta method where kp is a quotient."""
    beta = fit.least_squares if basis is None else fit.coefficients
    residual = y - X @ beta
    W = X if basis is None else basis @ (basis.T @ X)
    score = W * residual[:, None]
    S = score.T @ score
    # long: a taper shows little of the negative correlations of differenced noise
    memory = max(choose_bartlett_lag((residual,)), int(np.sqrt(len(y))))
    for k in range(1, memory + 1):
        product = (1.0 - k / (memory + 1.0)) * (score[k:].T @ score[:-k])
        S += product + product.T
    bread = np.linalg.inv(W.T @ W)
    covariance = bread @ S @ bread
    slope = np.zeros((2, len(beta)))
    slope[0, 0] = slope[1, 1] = 1.0
    if kind == "p-p":
        slope[0, :2] = 1.0 / beta[1], -beta[0] / beta[1] ** 2
    return np.sqrt(np.maximum(np.diag(slope @ covariance @ slope.T), 0.0))
