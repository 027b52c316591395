"""What logs tell of a spring: its compliance against none, its link against that of a stiff joint.

The deflection as measured is regressed on the load of the link and the errors of its encoder,
``delta = c (Y_j theta) + o + T dq + s q``: a stiff joint is c = 0, which a stiffness cannot say.
Where no encoder sees the link, c is the fit's own ``1 / K``, with its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from dynident.core.arrays import Array
from dynident.core.plain import ADDED
from dynident.dynamics.elastic import Motion, evaluate_links
from dynident.dynamics.idim import Idim
from dynident.dynamics.springs import TERMS, TORQUE
from dynident.filters.filters import filter_zero_phase
from dynident.regression.covariance import Covariance
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.regression.springs import bend_log, find_deflection, step_springs
from dynident.regression.statistics import is_clearly_positive
from dynident.robot.model import HYSTERESIS, Gauge

BLOCKS = 10
"""Equal runs of time of each log, whose errors are taken to be independent."""
LEVEL, NORMAL = 0.95, 1.96
"""Of intervals, and what it is of a normal error."""
ALIKE = 0.95
"""Correlation of two estimates from which on a log does not tell their parameters apart."""
Moved = tuple[GeneralisedSamples, Motion]
"""A log, and a motion that bodies are taken to make along it."""


@dataclass(frozen=True)
class HeldLink:
    """Errors of a link's positions on a held-out log, root mean squares [rad or m]."""

    log: str
    spring: float
    stiff: float
    plain: float
    """`spring`, `stiff`, `plain`: of the spring; of a stiff joint with the offset, lag and scale of
    the encoder; of a stiff joint as it stands, whose link is where the motor is."""
    better: bool
    """Whether the spring's squared errors are less than the stiff joint's by a standard error."""
    linear: float | None = field(default=None, metadata=ADDED)
    """Of a spring without hysteresis, where it has such."""
    told: bool = field(default=True, metadata=ADDED)
    """Whether the errors are less than those of that, likewise."""


@dataclass(frozen=True)
class SpringEvidence:
    """What logs tell of a spring."""

    joint: str
    stiffness: float
    """That was identified [Nm/rad or N/m]."""
    compliance: float
    std: float
    """`compliance`, `std`: by regression of the deflection on the load [rad/Nm or m/N]."""
    interval: tuple[float, float]
    """Of the compliance, 95 %."""
    held_out: tuple[HeldLink, ...] = ()
    width: float = field(default=0.0, metadata=ADDED)
    """Of hysteresis: by how much the spring is bent less or more where all bristles slip one way
    and the other, ``2 sum_k Kh_k / K`` [rad or m]."""
    width_interval: tuple[float, float] | None = field(default=None, metadata=ADDED)
    """Of it, 95 %, by the standard errors of the fit."""
    alike: tuple[str, ...] = field(default=(), metadata=ADDED)
    """Parameters of stiffness and bristles that the logs do not tell from each other."""

    @property
    def hysteresis(self) -> bool:
        """Whether the logs tell the spring from one without hysteresis."""
        own = self.width_interval
        return own is not None and own[0] > 0.0 and all(log.told for log in self.held_out)

    @property
    def supported(self) -> bool:
        """Whether the logs tell the spring from a stiff joint."""
        return self.interval[0] > 0.0 and all(log.better for log in self.held_out)


def judge_springs(
    problem: Problem,
    theta: Array,
    covariance: Covariance,
    others: Sequence[GeneralisedSamples],
) -> tuple[SpringEvidence, ...]:
    """What a problem's logs and held-out ones tell of each spring of a full set of parameters.

    A spring is supported where the interval of its compliance, by `LEVEL` and Student's t over
    blocks of time, is above zero, and on every held-out log the square of the error of the link's
    position is less than that of a stiff joint by one standard error over blocks. Both have the
    encoder's offset, lag and scale from the fitted logs; neither sees the held-out encoder. Of one
    without a link's encoder, the interval is by the standard errors of the base parameters.

    Bodies move as their links were measured, on held-out logs as the motors.
    """
    idim, found = problem.idim, []
    errors = dict(zip(problem.base.names, covariance.std.tolist(), strict=False))
    fitted = [(log, (log.q, log.dq, log.ddq)) for log in problem.samples]
    held_out = [(log, log.motors) for log in others]
    for gauge, _ in idim.robot.sensed:
        if "K" not in gauge.terms:
            continue
        seen = [log for log in fitted if gauge.name in log[0].wrenches]
        if not seen:
            continue
        name = idim.robot.joint_names[gauge.place]
        symbol = f"K{gauge.place + 1}"
        own = float(theta[idim.names.index(symbol)])
        if gauge.kind == TORQUE:
            if symbol in errors:
                about = dict(seen[0][0].springs)[gauge.place].stiffness
                # 1 / K to first order about the stiffness of the rows: see `step_springs`
                compliance, std = (2.0 - own / about) / about, errors[symbol] / about**2
                low, high = (compliance + side * NORMAL * std for side in (-1.0, 1.0))
                found.append(SpringEvidence(name, own, compliance, std, (low, high)))
            continue
        tables = [tabulate_deflection(idim, theta, gauge, *log) for log in seen]
        X, taken, y = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        compliance, std = regress_by_blocks(X, y, BLOCKS * len(seen))
        t = float(special.stdtrit(BLOCKS * len(seen) - 1, 0.5 + 0.5 * LEVEL))
        fits = DeflectionFits.of(X, taken, y)
        held = tuple(
            compare_positions(log[0].name, *tabulate_deflection(idim, theta, gauge, *log), fits)
            for log in held_out
            if gauge.name in log[0].wrenches
        )
        if gauge.slips:  # what bristles take is known no better than they are
            std = float(np.hypot(std, errors.get(symbol, np.inf) / own**2))
        interval = compliance - t * std, compliance + t * std
        evidence = SpringEvidence(name, own, compliance, std, interval, held)
        if gauge.slips:
            symbols = [
                f"{term}{gauge.place + 1}" for term in ("K", *HYSTERESIS) if term in gauge.terms
            ]
            values = {each: float(theta[idim.names.index(each)]) for each in symbols}
            evidence = weigh_bristles(evidence, values, problem, covariance.matrix)
        found.append(evidence)
    return tuple(found)


def weigh_bristles(
    found: SpringEvidence, values: dict[str, float], problem: Problem, covariance: Array
) -> SpringEvidence:
    """What a fit says of a spring's bristles, by values of K and of their torques, in this order.

    Whether they are alike is told by the rows, whatever a method makes of them.
    """
    (symbol, stiffness), *bristles = values.items()
    width = 2.0 * sum(value for _, value in bristles) / stiffness
    # of the width, by K and by each bristle's torque
    slopes = {symbol: -width / stiffness} | {each: 2.0 / stiffness for each, _ in bristles}
    names, system = problem.base.names, problem.factors.weighted(problem.factors.ones)
    places = {name: names.index(name) for name in values if name in names}
    some, slope = [*places.values()], np.array([slopes[name] for name in places])
    far = NORMAL * float(np.sqrt(slope @ covariance[np.ix_(some, some)] @ slope))
    own = system.inverse()[some]
    unit = own / (np.linalg.norm(own, axis=1, keepdims=True) + np.finfo(float).tiny)
    near = np.max(np.abs(unit @ unit.T) - np.eye(len(some)), axis=0).tolist()
    alike = tuple(name for name, share in zip(places, near, strict=True) if share > ALIKE)
    return replace(found, width=width, width_interval=(width - far, width + far), alike=alike)


def tabulate_deflection(
    idim: Idim, theta: Array, gauge: Gauge, log: GeneralisedSamples, motion: Motion
) -> tuple[Array, Array, Array]:
    """The load of a spring and the terms of its encoder; what bristles take; the deflection.

    The latter as measured, what bristles take by the load alone, along which they bend. Low-passed
    as torques are, at every row of the fit.
    """
    j, step = gauge.place, log.filters[-1].step
    deflection = find_deflection(idim, log, {})
    assert deflection is not None
    q, dq = (each[:, each.shape[1] - idim.robot.n + j] for each in motion[:2])
    row = next(rows.start for own, rows in idim.robot.sensed if own.name == gauge.name)
    load = evaluate_links(idim, log.known, theta, motion, None)[:, row]
    bent = deflection[:, :, j]
    terms = [TERMS[t].column(bent, q, dq) for t in gauge.terms if t in ("offs", "KT", "KS")]
    taken = np.zeros(len(load))
    if gauge.slips:
        spring = step_springs(idim, log, theta, dict(log.springs), step=False)[j]
        taken = spring.bristles @ bend_log(log, load, spring, gauge.slips)[1]
    every = np.column_stack([load - taken, *terms, taken, bent[0]])
    kept = []
    for start, stop in log.segments:
        run = next((a, b) for a, b in log.runs if a <= start and stop <= b)
        smooth = filter_zero_phase(every[slice(*run)], log.filters[-1].cutoff, log.rate)
        rows = smooth[start - run[0] : stop - run[0] : step]
        kept.append(rows[log.moving[start:stop:step, row]] if gauge.slips else rows)
    table = np.concatenate(kept)
    return table[:, :-2], table[:, -2], table[:, -1]


def regress_by_blocks(X: Array, y: Array, blocks: int) -> tuple[float, float]:
    """The first coefficient and its standard error, whose errors are alike within blocks alone."""
    size = np.sqrt(np.mean(X**2, axis=0)) + np.finfo(float).tiny
    Q, R = np.linalg.qr(X / size)
    rest = y - Q @ (Q.T @ y)
    # sums over blocks in the place of rows: errors within one may be correlated as they like
    scores = [part.T @ e for part, e in zip(*(np.array_split(z, blocks) for z in (Q, rest)))]
    inverse = np.linalg.inv(R)
    own = np.array(scores) @ inverse.T
    variance = blocks / (blocks - 1.0) * np.sum(own[:, 0] ** 2)
    return float((inverse @ (Q.T @ y))[0] / size[0]), float(np.sqrt(variance) / size[0])


class DeflectionFits(NamedTuple):
    """Coefficients of deflections: of a spring, of one without its bristles, of a stiff joint."""

    spring: Array
    linear: Array
    stiff: Array

    @classmethod
    def of(cls, X: Array, taken: Array, y: Array) -> DeflectionFits:
        """By least squares, of a table of `tabulate_deflection`."""
        spring, linear, stiff = (
            np.asarray(np.linalg.lstsq(each, y, rcond=None)[0], dtype=np.float64)
            for each in (X, add_taken(X, taken), X[:, 1:])
        )
        return cls(spring, linear, stiff)


def add_taken(X: Array, taken: Array) -> Array:
    """A table whose load has what bristles take, too."""
    return np.column_stack([X[:, 0] + taken, X[:, 1:]])


def compare_positions(
    name: str, X: Array, taken: Array, y: Array, fits: DeflectionFits
) -> HeldLink:
    """Errors of a held-out log's link positions, with a spring and of a stiff joint."""
    spring, linear, stiff = (
        (y - each @ fit) ** 2
        for each, fit in zip((X, add_taken(X, taken), X[:, 1:]), fits, strict=True)
    )
    own, other, plain = (float(np.sqrt(np.mean(each))) for each in (spring, stiff, y**2))
    found = HeldLink(name, own, other, plain, is_less(spring, stiff))
    if not np.any(taken):
        return found
    error = float(np.sqrt(np.mean(linear)))
    return replace(found, linear=error, told=is_less(spring, linear))


def is_less(own: Array, other: Array) -> bool:
    """Whether squared errors are less than others by one standard error over blocks of time."""
    parts = np.array_split(other - own, BLOCKS)
    return is_clearly_positive(np.array([np.mean(part) for part in parts]))
