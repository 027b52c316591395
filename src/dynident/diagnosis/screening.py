"""Which readings of a log are promising: what least squares leaves, at few instants first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from dynident.core.arrays import Array
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.moments import RIDGE, Normal
from dynident.diagnosis.scene import Scene, stack_motion_rows
from dynident.diagnosis.suspicion import Reading, Suspicion

TOGETHER = 8
"""Readings of which rows are made at once: as many as stay in the cache."""


def screen_suspects(
    scene: Scene,
    suspects: Sequence[Suspicion],
    before: Array,
    allowed: Array,
    apart: float | None,
    worth: float,
    most: int,
) -> list[tuple[Array, Suspicion]]:
    """Suspects under which least squares leaves clearly less, the best first, few of a kind.

    What has to be read along another motion is read at fewer instants first; of that, `most`
    are looked at closely.

    Parameters
    ----------
    before, allowed : ndarray, shape (groups,)
        Errors of the log as it is, and those that may be left at most.
    apart : float or None
        See `examine.best_explanation`.
    worth : float
        See `is_clearly_better`.
    """
    brief = scene.brief
    moved = [each for each in suspects if each.reading.change and not each.reading.slowness]
    fewer = average_errors(brief.normal.free_errors()) / max(
        average_errors(scene.normal.free_errors()), limit.NO_ERROR
    )
    rough = before * min(1.0, fewer) / limit.ROUGH  # at few instants least squares leaves less
    reads = [each.reading.of(brief) for each in moved]
    hopeful = [
        (average_errors(errors), suspicion)
        for suspicion, errors in zip(moved, evaluate_free_errors(reads, brief), strict=True)
        if errors is not None
        and is_clearly_better(errors, rough, worth)
        and np.all(errors <= allowed)
    ]
    hopeful.sort(key=lambda each: each[0])
    left: list[tuple[Array | None, Suspicion]] = []
    for suspicion in suspects:
        if suspicion not in moved:
            read = build_normal(scene, suspicion.reading)
            left.append((suspicion.reading.errors(scene, read, read.free_beta), suspicion))
    close = [suspicion for _, suspicion in hopeful[:most]]
    reads = [suspicion.reading.of(scene) for suspicion in close]
    left += zip(evaluate_free_errors(reads, scene), close, strict=True)
    found = [
        (errors, suspicion)
        for errors, suspicion in left
        if errors is not None
        and np.all(errors <= allowed)
        and is_clearly_better(errors, before, worth)
        and settles_contradictions(errors, before, apart, suspicion.freedom)
    ]
    return keep_best_suspects(found)


def evaluate_free_errors(reads: Sequence[Scene], now: Scene) -> list[Array | None]:
    """`Normal.free_errors` of readings of a scene, where few rows are lost.

    Rows along motions of one robot are made at once, and of each reading only one matrix is kept:
    with weights known before, its normal equations are summed over the joints as they are made.

    Returns
    -------
    list of ndarray, shape (groups,), or None
        None where a reading loses too many rows.
    """
    if not now.plain:
        normals = [s.normal for s in reads]
        return [each.free_errors() if each.as_many_as(now.normal) else None for each in normals]
    found: list[Array | None] = []
    for _, alike in groupby(reads, lambda s: (id(s.base), id(s.motion.packing), id(s.motion.at))):
        some = list(alike)
        for k in range(0, len(some), TOGETHER):
            found += evaluate_stacked_errors(some[k : k + TOGETHER], now)
    return found


def evaluate_stacked_errors(reads: Sequence[Scene], now: Scene) -> list[Array | None]:
    """The same of readings along motions of one robot at the same instants."""
    base, moving = reads[0].base, reads[0].moving
    tau = np.array([s.tau for s in reads])
    rows = stack_motion_rows([s.motion for s in reads])
    squares: Array = np.sum(tau**2 * moving, axis=1)
    weights = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0.0)
    G = np.zeros((len(reads), base.count, base.count))
    g = np.zeros((len(reads), base.count, 1))
    parts = []
    for j, (columns, X) in enumerate(rows):
        y, w = tau[:, moving[:, j], j, None], weights[:, j, None, None]
        Xt = X.transpose(0, 2, 1)
        G[:, columns[:, None], columns] += w * (Xt @ X)
        g[:, columns] += w * (Xt @ y)
        parts.append((columns, X, y))
    others = [s.normal_of_others for s in reads]
    for k, other in enumerate(others):
        if other is not None:
            G[k] += other.weighted(other.scale)
            g[k, :, 0] += other.scale @ other.Xy
    scale = np.sqrt(np.maximum(np.diagonal(G, axis1=1, axis2=2), np.finfo(float).tiny))
    scaled = G / (scale[:, :, None] * scale[:, None, :]) + RIDGE * np.eye(base.count)
    beta = np.linalg.solve(scaled, g / scale[:, :, None]) / scale[:, :, None]
    left = [np.sum((y - X @ beta[:, columns]) ** 2, axis=(1, 2)) for columns, X, y in parts]
    own, kept = np.sqrt(weights * np.array(left).T), int(np.sum(moving))
    found: list[Array | None] = []
    for k, other in enumerate(others):
        errors, known, count = own[k], squares[k], kept
        if other is not None:
            errors = np.concatenate([errors, other.errors(beta[k, :, 0])])
            known, count = np.concatenate([known, other.squares]), kept + other.rows
        found.append(errors if now.normal.is_matched_by(count, known) else None)
    return found


def build_normal(scene: Scene, reading: Reading) -> Normal:
    """The least-squares problem of a log, and of those beside it, under a reading."""
    if scene.plain and reading.combines:
        return scene.moments.read(reading.torque)
    return reading.of(scene).normal


def average_errors(errors: Array) -> float:
    """Root mean square over the joints."""
    return float(np.sqrt(np.mean(errors**2)))


def is_clearly_better(errors: Array, before: Array, worth: float) -> bool:
    """Whether errors are clearly smaller: on the whole, or of a joint without loss to others.

    Parameters
    ----------
    errors, before : ndarray, shape (groups,)
    worth : float
        Share that is clear enough.
    """
    if average_errors(errors) <= worth * average_errors(before):
        return True
    clear = np.any((errors <= limit.CLEAR * before) & (before > limit.SOUND))
    return bool(clear and np.all(errors <= 1.1 * before + limit.SOUND))


def settles_contradictions(errors: Array, before: Array, apart: float | None, freedom: int) -> bool:
    """Whether errors leave nothing, or little, of what logs contradict each other.

    What has numbers fitted for it explains something of any contradiction, and has to explain
    more of it.
    """
    if apart is None or average_errors(errors) <= limit.CONTRADICTED * apart:
        return True
    share = limit.UNSETTLED_FITTED if freedom else limit.UNSETTLED
    return average_errors(errors) ** 2 - apart**2 <= share * (
        average_errors(before) ** 2 - apart**2
    )


def keep_best_suspects(suspects: list[tuple[Array, Suspicion]]) -> list[tuple[Array, Suspicion]]:
    """The best of each diagnosis, the most promising first."""
    found: dict[str, list[tuple[Array, Suspicion]]] = {}
    for each in sorted(suspects, key=lambda s: average_errors(s[0])):
        own = found.setdefault(each[1].diagnosis, [])
        if len(own) < limit.MOST_OF_A_KIND:
            own.append(each)
    return sorted(
        (each for own in found.values() for each in own), key=lambda s: average_errors(s[0])
    )
