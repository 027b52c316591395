"""What logs tell of a spring: its compliance against none, its link against that of a stiff joint.

The deflection as measured is regressed on the load of the link and the errors of its encoder,
``delta = c (Y_j theta) + o + T dq + s q``: a stiff joint is c = 0, which a stiffness cannot say.
Where no encoder sees the link, c is the fit's own ``1 / K``, with its error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from dynident.core.arrays import Array
from dynident.dynamics.elastic import Motion, evaluate_links
from dynident.dynamics.idim import Idim
from dynident.dynamics.springs import TERMS, TORQUE
from dynident.filters.filters import filter_zero_phase
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.regression.springs import find_deflection
from dynident.robot.model import Gauge

BLOCKS = 10
"""Equal runs of time of each log, whose errors are taken to be independent."""
LEVEL, NORMAL = 0.95, 1.96
"""Of intervals, and what it is of a normal error."""
Moved = tuple[GeneralisedSamples, Motion]
"""A log, and a motion that bodies are taken to make along it."""


@dataclass(frozen=True)
class HeldLink:
    """Errors of a link's positions on a held-out log, root mean squares [rad or m].

    Attributes
    ----------
    spring, stiff, plain : float
        Of the spring; of a stiff joint with the offset, lag and scale of the encoder; of a stiff
        joint as it stands, whose link is where the motor is.
    better : bool
        Whether the spring's squared errors are less than the stiff joint's by a standard error.
    """

    log: str
    spring: float
    stiff: float
    plain: float
    better: bool


@dataclass(frozen=True)
class SpringEvidence:
    """What logs tell of a spring.

    Attributes
    ----------
    stiffness : float
        That was identified [Nm/rad or N/m].
    compliance, std : float
        By regression of the deflection on the load [rad/Nm or m/N].
    interval : (float, float)
        Of the compliance, 95 %.
    held_out : tuple of HeldLink
    """

    joint: str
    stiffness: float
    compliance: float
    std: float
    interval: tuple[float, float]
    held_out: tuple[HeldLink, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether the logs tell the spring from a stiff joint."""
        return self.interval[0] > 0.0 and all(log.better for log in self.held_out)


def judge_springs(
    problem: Problem,
    theta: Array,
    errors: Mapping[str, float],
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
                compliance, std = (2.0 - own / about) / about, errors[symbol] / about**2
                low, high = (compliance + side * NORMAL * std for side in (-1.0, 1.0))
                found.append(SpringEvidence(name, own, compliance, std, (low, high)))
            continue
        tables = [tabulate_deflection(idim, theta, gauge, *log) for log in seen]
        X, y = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        compliance, std = regress_by_blocks(X, y, BLOCKS * len(seen))
        t = float(special.stdtrit(BLOCKS * len(seen) - 1, 0.5 + 0.5 * LEVEL))
        stiff = np.linalg.lstsq(X[:, 1:], y, rcond=None)[0]
        bent = np.linalg.lstsq(X, y, rcond=None)[0]
        held = tuple(
            compare_positions(
                log[0].name, *tabulate_deflection(idim, theta, gauge, *log), bent, stiff
            )
            for log in held_out
            if gauge.name in log[0].wrenches
        )
        interval = compliance - t * std, compliance + t * std
        found.append(SpringEvidence(name, own, compliance, std, interval, held))
    return tuple(found)


def tabulate_deflection(
    idim: Idim, theta: Array, gauge: Gauge, log: GeneralisedSamples, motion: Motion
) -> tuple[Array, Array]:
    """The load of a link and the terms of its encoder, and the deflection as measured.

    Low-passed as torques are, at every row of the fit.
    """
    j, step = gauge.place, log.filters[-1].step
    deflection = find_deflection(idim, log, {})
    assert deflection is not None
    q, dq = (each[:, each.shape[1] - idim.robot.n + j] for each in motion[:2])
    row = next(rows.start for own, rows in idim.robot.sensed if own.name == gauge.name)
    load = evaluate_links(idim, log.known, theta, motion, None)[:, row]
    bent = deflection[:, :, j]
    terms = [TERMS[t].column(bent, q, dq) for t in gauge.terms if t in ("offs", "KT", "KS")]
    every = np.column_stack([load, *terms, bent[0]])
    kept = []
    for start, stop in log.segments:
        run = next((a, b) for a, b in log.runs if a <= start and stop <= b)
        smooth = filter_zero_phase(every[slice(*run)], log.filters[-1].cutoff, log.rate)
        kept.append(smooth[start - run[0] : stop - run[0] : step])
    table = np.concatenate(kept)
    return table[:, :-1], table[:, -1]


def regress_by_blocks(X: Array, y: Array, blocks: int) -> tuple[float, float]:
    """The first coefficient and its standard error, whose errors are alike within blocks alone."""
    size = np.sqrt(np.mean(X**2, axis=0)) + np.finfo(float).tiny
    Q, R = np.linalg.qr(X / size)
    rest = y - Q @ (Q.T @ y)
    scores = [part.T @ e for part, e in zip(*(np.array_split(z, blocks) for z in (Q, rest)))]
    inverse = np.linalg.inv(R)
    own = np.array(scores) @ inverse.T
    variance = blocks / (blocks - 1.0) * np.sum(own[:, 0] ** 2)
    return float((inverse @ (Q.T @ y))[0] / size[0]), float(np.sqrt(variance) / size[0])


def compare_positions(name: str, X: Array, y: Array, bent: Array, stiff: Array) -> HeldLink:
    """Errors of a held-out log's link positions, with a spring and of a stiff joint."""
    own, other, plain = (y - X @ bent) ** 2, (y - X[:, 1:] @ stiff) ** 2, y**2
    gains = np.array([np.mean(part) for part in np.array_split(other - own, BLOCKS)])
    error = float(np.std(gains, ddof=1) / np.sqrt(BLOCKS))
    spring, stiff_joint, as_it_stands = (
        float(np.sqrt(np.mean(each))) for each in (own, other, plain)
    )
    better = bool(np.mean(gains) > error)
    return HeldLink(name, spring, stiff_joint, as_it_stands, better)
