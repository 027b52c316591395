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

from dynident.core.errors import ComputationError
from dynident.core.threads import one_thread
from dynident.diagnosis.afloat_scene import Reading, Scene, take_scene
from dynident.diagnosis.afloat_suspects import DIAGNOSES, Suspicion
from dynident.diagnosis.examine import (
    DOUBTFUL,
    TIED,
    USUAL,
    WORTH,
    Finding,
)
from dynident.diagnosis.moments import Normal
from dynident.diagnosis.screening import SOUND, better, mean
from dynident.diagnosis.snapshot import FEW, MOST
from dynident.diagnosis.suspicion import consistent
from dynident.dynamics.base import BaseParameters, observed_base
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


@one_thread
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
    base = of_an_instant(base)
    stated = [stating(log) for log in logs]
    sets = tuple(dict.fromkeys(names for log in stated for names in log.sets if names))
    scenes = [take_scene(base, log, sets, MOST if thorough else FEW) for log in stated]
    found: list[list[Finding]] = [[] for _ in scenes]
    for _ in range(ROUNDS if thorough else 1):
        explained = [
            own for k in range(len(scenes)) if (own := explanation(scenes, k, thorough)) is not None
        ]
        if not explained:
            break
        place, finding, reading = min(explained, key=lambda own: own[1].share)
        found[place].append(finding)
        scenes[place] = scenes[place].as_read(reading)
    return tuple(tuple(own) for own in found)


def stating(log: Samples) -> GeneralisedSamples:
    """A log with what its equations are, where they are the torques of a fixed robot's joints."""
    if isinstance(log, GeneralisedSamples):
        return log
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__}
    return GeneralisedSamples(**fields, sets=((),) * len(log.segments))


def of_an_instant(base: BaseParameters) -> BaseParameters:
    """The model with friction that depends on the motion of an instant alone."""
    idim = base.idim
    if not any(f.model.state or f.model.needs for f in idim.frictions):
        return base
    plain = [each for each in idim.elements if not (each.model.state or each.model.needs)]
    return observed_base(build_idim(idim.robot, USUAL, idim.rotor, elements=plain), base.observed)


def all_but(scenes: Sequence[Scene], place: int) -> Normal | None:
    """Other logs than one, as they stand; None where it is alone."""
    others = [scene.normal for k, scene in enumerate(scenes) if k != place]
    return reduce(Normal.and_those_of, others) if others else None


def explanation(
    scenes: Sequence[Scene], place: int, thorough: bool
) -> tuple[int, Finding, Reading] | None:
    """The reading of one log that explains all best, where it is clearly better than none."""
    scene = scenes[place]
    beside = all_but(scenes, place)
    normal = scene.normal if beside is None else scene.normal.and_those_of(beside)

    def together(own: Normal) -> Normal:
        if beside is None:
            return own
        # most readings leave the regressor as it is
        return own.and_those_of(beside, normal.XX if own.XX is scene.normal.XX else None)

    beta = consistent(normal)
    errors = normal.errors(beta)
    before = mean(errors)
    if before < SOUND:
        return None
    bad = frozenset(range(scene.robot.n))
    if not thorough:
        first, dof = scene.robot.dof - scene.robot.n, scene.robot.dof
        poor = frozenset(np.flatnonzero(errors[first:dof] > DOUBTFUL).tolist())
        if not np.any(errors[dof : dof + len(scene.sets)] > ASTRAY):
            if not poor and (not first or mean(errors[:first]) < POOR):
                return None
            bad = poor
    hopeful: list[tuple[float, int, Suspicion, Normal]] = []
    for diagnosis in DIAGNOSES.values():
        for suspicion in diagnosis(scene, bad):
            read = together(scene.read(suspicion.reading(scene.signals)))
            free = read.free_errors()
            if read.as_many_as(normal) and better(free, errors, WORTH):
                hopeful.append((mean(free), len(hopeful), suspicion, read))
    explained = []
    for _, number, suspicion, read in sorted(hopeful, key=lambda own: own[:2])[:CLOSE]:
        try:
            left = read.errors(read.consistent())
        except ComputationError:
            continue
        if better(left, errors, WORTH):
            explained.append((left, number, suspicion))
    if not explained:
        return None
    least = min(mean(left) for left, *_ in explained)
    explained.sort(key=lambda own: (mean(own[0]) > TIED * least, own[2].freedom, mean(own[0])))
    (left, _, best), *others = explained
    other = f"{others[0][2].what} ({100.0 * mean(others[0][0]):.3g} %)" if others else ""
    finding = Finding(
        scene.log.name, best.diagnosis, best.what, best.mend, 100.0 * before, 100.0 * mean(left),
        other, best.mending,
    )  # fmt: skip
    return place, finding, best.reading
