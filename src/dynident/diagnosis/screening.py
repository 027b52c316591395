"""Which readings of a log are promising: what least squares leaves, at few instants first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.scene import Scene
from dynident.diagnosis.suspicion import Reading, Suspicion
from dynident.instants.squares import NO_ERROR, LeastSquares, average_errors


def screen_suspects(
    scene: Scene,
    suspects: Sequence[Suspicion],
    before: Array,
    allowed: Array,
    apart: float | None,
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
        See `examine.find_best_explanation`.
    """
    brief, loud = scene.brief, scene.clear_groups
    moved = [each for each in suspects if each.reading.change and not each.reading.slowness]
    fewer = average_errors(brief.problem.free_errors()) / max(
        average_errors(scene.problem.free_errors()), NO_ERROR
    )
    rough = before * min(1.0, fewer) / limit.ROUGH  # at few instants least squares leaves less
    reads = (each.reading.of(brief) for each in moved)
    hopeful = [
        (average_errors(errors), suspicion)
        for suspicion, errors in zip(moved, evaluate_free_errors(reads, brief), strict=True)
        if errors is not None
        and is_clearly_better(errors, rough, suspicion, apart, suspicion.measure is not None, loud)
        and np.all(errors <= allowed)
    ]
    hopeful.sort(key=lambda each: each[0])
    left: list[tuple[Array | None, Suspicion]] = []
    for suspicion in suspects:
        if suspicion not in moved:
            read = build_problem(scene, suspicion.reading)
            left.append((suspicion.reading.errors(scene, read, read.free_beta), suspicion))
    close = [suspicion for _, suspicion in hopeful[:most]]
    reads = (suspicion.reading.of(scene) for suspicion in close)
    left += zip(evaluate_free_errors(reads, scene), close, strict=True)
    found = [
        (errors, suspicion)
        for errors, suspicion in left
        if errors is not None
        and np.all(errors <= allowed)
        and is_clearly_better(errors, before, suspicion, apart, suspicion.measure is not None, loud)
        and settles_contradictions(errors, before, apart, suspicion.freedom)
    ]
    return keep_best_suspects(found)


def evaluate_free_errors(reads: Iterable[Scene], now: Scene) -> list[Array | None]:
    """Errors of least squares under readings of a scene; None where one loses too many rows."""
    problems = (s.problem for s in reads)
    return [each.free_errors() if each.as_many_as(now.problem) else None for each in problems]


def build_problem(scene: Scene, reading: Reading) -> LeastSquares:
    """The least-squares problem of a log, and of those beside it, under a reading."""
    if scene.plain and reading.combines:
        return scene.columns.read(reading.torque)
    return reading.of(scene).problem


MOST_OF_AN_EFFECT = 2
"""Numbers that one thing has: a size, and its place or its order."""


def choose_worth(suspicion: Suspicion, apart: float | None, sure: bool) -> float:
    """Share of the error that is clear enough, of a suspicion that is sure of its one number.

    What has more numbers fitted for it explains something of any log, beside others, too.
    """
    if suspicion.freedom > MOST_OF_AN_EFFECT:
        return limit.WORTH_MANY if apart is None else limit.WORTH
    if (sure and suspicion.freedom == 1) or (apart is not None and suspicion.rate is not None):
        return limit.WORTH_SURE
    return limit.WORTH if apart is None else limit.WORTH_AGAINST


def is_clearly_better(
    errors: Array,
    before: Array,
    suspicion: Suspicion,
    apart: float | None,
    sure: bool,
    loud: Booleans | slice = slice(None),
) -> bool:
    """Whether errors are clearly smaller: on the whole, or of some without loss to the others.

    These are the `loud` groups, in which there is much to explain, unless more numbers were fitted
    than one thing has; or one joint, but not for a clock, which is that of all.
    """
    worth = choose_worth(suspicion, apart, sure)
    if average_errors(errors) <= worth * average_errors(before):
        return True
    few = suspicion.freedom <= MOST_OF_AN_EFFECT
    if not few or not np.all(errors <= 1.1 * before + limit.SOUND):
        return False
    if average_errors(errors[loud]) < worth * average_errors(before[loud]):
        return True
    if suspicion.freedom > 1 or suspicion.rate is not None:
        return False
    share = limit.CLEAR_SIGN if suspicion.reading.turns_torques else limit.CLEAR
    return bool(np.any((errors <= share * before) & (before > limit.SOUND)))


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
    """The best of each diagnosis, the most promising first.

    What has all joints the other way round leaves what the log does, unless bodies have to be
    consistent, and so is a kind of its own.
    """
    found: dict[tuple[str, bool], list[tuple[Array, Suspicion]]] = {}
    for each in sorted(suspects, key=lambda s: average_errors(s[0])):
        own = found.setdefault((each[1].diagnosis, each[1].turns_all), [])
        if len(own) < limit.MOST_OF_A_KIND:
            own.append(each)
    return sorted(
        (each for own in found.values() for each in own), key=lambda s: average_errors(s[0])
    )
