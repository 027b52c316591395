"""The doctor on logs of floating robots.

As of robots on fixed bases each suspicion is another reading of the log, which has to explain it
clearly better. Here a reading changes signals: of the joints, of the contacts, of the base. The
equations that the log states are written anew with them, at some instants: those of the base's
wrench and of the joints, and the projection of all those on which contacts act that nothing
measures. Each equation, and each set of contacts, is a group of its own, counted in its own size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.threads import limit_to_one_thread
from dynident.diagnosis.afloat_scene import Reading, Scene, Signals, take_scene
from dynident.diagnosis.afloat_suspects import DIAGNOSES, Suspicion
from dynident.diagnosis.examine import (
    DOUBTFUL,
    TIED,
    USUAL,
    WORTH,
    Finding,
)
from dynident.diagnosis.moments import Normal
from dynident.diagnosis.screening import (
    NO_ERROR,
    ROUGH,
    SOUND,
    average_errors,
    is_clearly_better,
)
from dynident.diagnosis.snapshot import FEW, MOST
from dynident.diagnosis.suspicion import fit_consistent_model
from dynident.dynamics.base import BaseParameters, find_observed_base
from dynident.dynamics.idim import build_idim
from dynident.recording.prepare import Samples
from dynident.regression.generalised import GeneralisedSamples

ROUNDS = 3
"""Findings of all logs together at most."""
CLOSE = 6
"""Suspects that are fitted with consistent bodies."""
ASTRAY = 0.05
"""Error of combinations from which joints that are in them may be others, or turned round."""
POOR = 0.25
"""Error of the base's wrench from which something is looked for in passing."""


@limit_to_one_thread
def examine_floating(
    base: BaseParameters, logs: Sequence[Samples], thorough: bool = False
) -> tuple[tuple[Finding, ...], ...]:
    """Find what is wrong with some logs of one robot, each beside the others.

    Parameters
    ----------
    base : BaseParameters
        Of what all of them show.
    logs : sequence of Samples
        As a problem has them.
    thorough : bool
        Look at more instants, for everything, even where all is explained well, and for more than
        one thing.

    Returns
    -------
    tuple of tuple of Finding
        One each of the logs, the first found first; each is of the logs after those before it
        were mended.
    """
    base = simplify_friction(base)
    stated = [state_joint_equations(log) for log in logs]
    sets = tuple(dict.fromkeys(names for log in stated for names in log.sets if names))
    scenes = [take_scene(base, log, sets, MOST if thorough else FEW) for log in stated]
    found: list[list[Finding]] = [[] for _ in scenes]
    for _ in range(ROUNDS if thorough else 1):
        first, *others = (scene.normal for scene in scenes)
        beta = fit_consistent_model(combine_normals(first, others))
        explained = [
            own
            for k in range(len(scenes))
            if (own := find_explanation(scenes, k, beta, thorough)) is not None
        ]
        if not explained:
            break
        place, finding, reading = min(explained, key=lambda own: own[1].share)
        found[place].append(finding)
        scenes[place] = scenes[place].as_read(reading)
    return tuple(tuple(own) for own in found)


def state_joint_equations(log: Samples) -> GeneralisedSamples:
    """A log with what its equations are, where they are the torques of a fixed robot's joints."""
    if isinstance(log, GeneralisedSamples):
        return log
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__}
    return GeneralisedSamples(**fields, sets=((),) * len(log.segments))


def simplify_friction(base: BaseParameters) -> BaseParameters:
    """The model with friction that depends on the motion of an instant alone."""
    idim = base.idim
    if not any(f.model.state or f.model.needs for f in idim.frictions):
        return base
    plain = [each for each in idim.elements if not (each.model.state or each.model.needs)]
    return find_observed_base(
        build_idim(idim.robot, USUAL, idim.rotor, elements=plain), base.observed
    )


def combine_normals(own: Normal, others: Sequence[Normal]) -> Normal:
    """One log beside others."""
    return reduce(Normal.and_those_of, others, own)


def find_explanation(
    scenes: Sequence[Scene], place: int, beta: Array, thorough: bool
) -> tuple[int, Finding, Reading] | None:
    """The reading of one log that explains all best, where it is clearly better than none.

    Parameters
    ----------
    place : int
        Of the log among them.
    beta : ndarray, shape (p,)
        The best consistent model of all as they stand.
    """
    scene, others = scenes[place], [own for k, own in enumerate(scenes) if k != place]
    beside = [other.normal for other in others]
    normal = combine_normals(scene.normal, beside)
    errors = normal.errors(beta)
    before = average_errors(errors)
    if before < SOUND:
        return None
    bad = frozenset(range(scene.robot.n))
    if not thorough:
        first, dof = scene.robot.dof - scene.robot.n, scene.robot.dof
        poor = frozenset(np.flatnonzero(errors[first:dof] > DOUBTFUL).tolist())
        if not np.any(errors[dof : dof + len(scene.sets)] > ASTRAY):
            if not poor and (not first or average_errors(errors[:first]) < POOR):
                return None
            bad = poor
    suspects = [each for diagnosis in DIAGNOSES.values() for each in diagnosis(scene, bad)]
    hopeful: list[tuple[float, int, Suspicion, Normal]] = []
    for number, signals in choose_suspects(suspects, scene, others, errors):
        read = combine_normals(scene.read(signals), beside)
        free = read.free_errors()
        if read.as_many_as(normal) and is_clearly_better(free, errors, WORTH):
            hopeful.append((average_errors(free), number, suspects[number], read))
    explained: list[tuple[float, Suspicion]] = []
    for free_error, _, suspicion, read in sorted(hopeful, key=lambda own: own[:2])[:CLOSE]:
        if is_behind(explained, free_error, suspicion):
            continue
        try:
            left = read.errors(read.consistent())
        except ComputationError:
            continue
        if is_clearly_better(left, errors, WORTH):
            explained.append((average_errors(left), suspicion))
    if not explained:
        return None
    (after, best), *rest = rank_explanations(explained)
    other = f"{rest[0][1].what} ({100.0 * rest[0][0]:.3g} %)" if rest else ""
    finding = Finding(
        scene.log.name, best.diagnosis, best.what, best.mend, 100.0 * before, 100.0 * after, other,
        best.mending,
    )  # fmt: skip
    return place, finding, best.reading


def choose_suspects(
    suspects: Sequence[Suspicion], scene: Scene, others: Sequence[Scene], errors: Array
) -> list[tuple[int, Signals]]:
    """Signals of the suspects that are worth reading, with their places.

    What asks for another regressor is read at few instants first: of that, the most promising.
    """
    moved: list[tuple[float, int, Signals]] = []
    found: list[tuple[int, Signals]] = []
    beside, full = [other.brief.normal for other in others], [other.normal for other in others]
    # at few instants least squares leaves less
    fewer = average_errors(combine_normals(scene.brief.normal, beside).free_errors())
    fewer /= max(average_errors(combine_normals(scene.normal, full).free_errors()), NO_ERROR)
    rough = errors * min(1.0, fewer) / ROUGH
    for number, suspicion in enumerate(suspects):
        signals = suspicion.reading(scene.signals)
        if not scene.moves(signals):
            found.append((number, signals))
            continue
        free = combine_normals(scene.brief.read(signals), beside).free_errors()
        if is_clearly_better(free, rough, WORTH):
            moved.append((average_errors(free), number, signals))
    moved.sort(key=lambda own: own[:2])
    return found + [(number, signals) for _, number, signals in moved[:CLOSE]]


def rank_explanations(
    explained: Sequence[tuple[float, Suspicion]],
) -> list[tuple[float, Suspicion]]:
    """The best first: of those that leave about as little, the one with the fewest fitted numbers.

    Parameters
    ----------
    explained : sequence of (float, Suspicion)
        What consistent models leave, and under which reading.
    """
    least = min(left for left, _ in explained)
    return sorted(explained, key=lambda own: (own[0] > TIED * least, own[1].freedom, own[0]))


def is_behind(
    explained: Sequence[tuple[float, Suspicion]], free_error: float, suspicion: Suspicion
) -> bool:
    """Whether a suspicion can be neither first nor second: consistent models leave no less."""
    if len(explained) < 2 or free_error <= TIED * min(left for left, _ in explained):
        return False
    return rank_explanations([*explained, (free_error, suspicion)])[1][1] is not suspicion
