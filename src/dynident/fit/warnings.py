"""What a result is told with: rows that are not fitted, poor fits, little excitation, disbelief."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.arrays import Array
from dynident.core.factors import UNEXCITED, System
from dynident.core.inertia import INERTIAL
from dynident.estimators.estimate import Estimate, compute_intervals
from dynident.filters.blocks import cut_into_blocks
from dynident.fit.copies import NEAR, ROUNDED, is_marked
from dynident.fit.facts import LogFacts
from dynident.fit.figures import FitFigure
from dynident.fit.result import Result
from dynident.recording.prepare import Samples
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.regression.scatter import LackOfFit
from dynident.regression.weighted import describe_weak_combination
from dynident.robot.rotations import convert_rotation_vector, convert_rpy, to_rpy

POOR_CONDITION = 1000.0
POOR_FIT_PERCENT = 50.0
SLOW_SAMPLING = 40.0
"""Rate below which a log says little of accelerations [Hz]."""
GRAVITY, INERTIA, DRIVE = "masses and first moments", "inertias", "drives"
"""Kinds of parameters, in words."""
REMAINING = 4.0
"""Standard errors from zero of what is known to a quarter."""
COMPARED = 20000
"""Most samples that are compared."""
LINEAR = 0.03
"""Turn of a sensor whose square is no longer left out [rad]."""


def warn_of_poor_fit(fitted: FitFigure) -> list[str]:
    """A model that leaves most of the torque unexplained, in words."""
    if fitted.overall_percent <= POOR_FIT_PERCENT:
        return []
    return [
        f"the model leaves {fitted.overall_percent:.0f} % of the torque unexplained; check the "
        "signs, units and order of the joints' columns"
    ]


def find_repeated_logs(logs: Sequence[Samples]) -> list[tuple[Samples, Samples]]:
    """Logs that have the samples of an earlier one, or of a stretch of it, and that one."""
    found = []
    for k, log in enumerate(logs):
        for one in logs[:k]:
            if is_within(log, one):
                found.append((log, one))
                break
    return found


def warn_of_fitted_log(result: Result, log: GeneralisedSamples) -> list[str]:
    """That a log has the samples of one that was fitted, or of a stretch of it, in words."""
    return [
        f"{log.name} has the samples of {own.name}, which was fitted: it tests nothing"
        for own in result.log_words
        if own.use == "identify" and own.marks is not None and is_marked(log, own.marks)
    ]


def is_within(log: Samples, one: Samples) -> bool:
    """Whether a log is another or a stretch of it, up to rounding as of other units or formats."""
    if len(log.tau) > len(one.tau) or log.tau.shape[1] != one.tau.shape[1]:
        return False
    pairs = ((log.tau, one.tau), (log.measured, one.measured))
    starts = find_likely_starts(*pairs[int(not np.any(log.tau))])
    return any(all(is_same(*each, k) for each in pairs) for k in starts)


def find_likely_starts(log: Array, one: Array) -> list[int]:
    """Where in another signal a shorter one may begin: where its farthest value is the other's."""
    some = np.arange(0, len(log), -(-len(log) // COMPARED))
    there = log[some] - np.mean(log[some], axis=0)
    place = int(some[np.argmax(np.linalg.norm(there, axis=1))])
    near = NEAR * ROUNDED * np.linalg.norm(there) / np.sqrt(len(some))
    found = list[int]()
    for own, _, _ in cut_into_blocks([(place, place + len(one) - len(log) + 1)], 0):
        off = np.max(np.abs(one[own] - log[place]), axis=1)
        found += (own.start - place + np.flatnonzero(off <= near)).tolist()
    return found


def is_same(log: Array, one: Array, start: int) -> bool:
    """Whether a signal is another's stretch from `start` on, by some samples."""
    some = np.arange(0, len(log), -(-len(log) // COMPARED))
    there = one[some + start]
    moved = np.linalg.norm(there - np.mean(there, axis=0))
    return bool(np.linalg.norm(there - log[some]) <= ROUNDED * moved)


def warn_of_repeated_logs(
    twins: Sequence[tuple[Samples, Samples]], held_out: Sequence[Samples]
) -> list[str]:
    """Logs that are given twice, as `find_repeated_logs` has them, in words."""
    words = []
    for log, first in twins:
        tests = any(log is each for each in held_out)
        role, harm = (
            ("is held out, but has", "it tests nothing")
            if tests
            else ("has", "fitted twice, it makes error bars too small")
        )
        words.append(f"{log.name} {role} the samples of {first.name}: {harm}")
    return words


def warn_of_unfitted_joints(problem: Problem, logs: Sequence[LogFacts]) -> list[str]:
    """Joints of which no row is fitted, but those whose equations no log states."""
    stated = np.any([log.stated for log in logs], axis=0)
    return [
        f"no row of {group.name} is fitted: drop_below is above its speed"
        for group, possible in zip(problem.factors.groups, stated, strict=False)
        if possible and not group.rows
    ]


def warn_of_lack_of_fit(fit: LackOfFit, names: Sequence[str]) -> list[str]:
    """Joints whose errors are more than the noise that the periods show, in words."""
    sizes = [f"{name} {fit.ratio[names.index(name)]:.2g} times" for name in fit.rejected]
    if not sizes:
        return []
    return [
        f"the errors exceed the noise between periods ({', '.join(sizes)}): the model, and not "
        "noise, limits the fit there"
    ]


def warn_of_weak_excitation(
    problem: Problem, system: System, found: Estimate, logs: Sequence[LogFacts]
) -> list[str]:
    """What the logs do not determine well, in words."""
    condition, _, _ = system.condition()
    notes = warn_of_slow_sampling(problem, found, min(log.settings["rate_hz"] for log in logs))
    if POOR_CONDITION < condition <= UNEXCITED:
        own = problem if found.essential is None else problem.only(found.essential.kept)
        weakest = describe_weak_combination(own, system)
        notes.append(f"condition number {condition:.0f}: the log hardly excites {weakest}")
    _, low, high = compute_intervals(found, problem.base.names)
    weak = int(np.sum((low <= 0.0) & (high >= 0.0)))
    if found.essential is None and weak:
        notes.append(
            f"the 95 % interval of {weak} of {len(low)} base parameters contains zero: small "
            "values, or poor excitation"
        )
    return notes


def warn_of_slow_sampling(problem: Problem, found: Estimate, rate: float) -> list[str]:
    """What logs at a low rate determine nevertheless, in words.

    Accelerations are lost first: they rest on three neighbouring samples.
    """
    if rate >= SLOW_SAMPLING:
        return []
    base, standard = problem.base, problem.idim.parameters
    kept = range(base.count) if found.essential is None else found.essential.kept
    own = [standard[base.kept[k]] for k in kept]
    sure = np.abs(found.beta) > REMAINING * found.covariance.std
    said = []
    for kind in (GRAVITY, INERTIA, DRIVE):
        some = [k for k, each in enumerate(own) if classify_symbol(each.symbol) == kind]
        left = [own[k].name for k in some if sure[k]]
        if some:
            names = f" ({', '.join(left)})" if left and len(left) < len(some) else ""
            said.append(f"{len(left)} of {len(some)} of {kind}{names}")
    return [
        f"sampled at {rate:.3g} Hz: determined to 25 % or better, each with its regrouped "
        f"parameters: {', '.join(said)}; log at 100 Hz or more for the rest"
    ]


def classify_symbol(symbol: str) -> str:
    """What a parameter is known by: a robot at rest, its accelerations, or its drives."""
    if symbol in INERTIAL[:4]:
        return GRAVITY
    return INERTIA if symbol in INERTIAL or symbol.startswith("Ia") else DRIVE


def warn_of_disbelief(problem: Problem, found: Estimate) -> list[str]:
    """Links about which the log takes the estimate far from the robot file, prior or not."""
    robot, links = problem.robot, []
    for own in found.disbelieved:
        nominal = robot.nominal[own.body, 0]
        words = f"{own.mass * nominal:.3g} kg, in the file {nominal:.3g} kg"
        if not own.heavy_or_light:
            words += f"; of its moments up to {own.most:.2g} times"
        links.append(f"{robot.links[own.body]} ({words})")
    return [f"the log disagrees with the robot file about {', '.join(links)}"] if links else []


def warn_of_sensor_errors(problem: Problem, theta: Array) -> list[str]:
    """Errors of force sensors that nothing tells from the bodies, or that are large."""
    idim, notes = problem.idim, []
    if idim.structure.stated:
        notes.append(
            f"{', '.join(idim.structure.stated)}: no motion of these logs can separate them from "
            "other parameters, so they are held at the values in [[contact]]; let the base turn"
        )
    angles: dict[str, Array] = {}
    for value, column in zip(idim.sensor_values(theta), idim.structure.sensor_columns, strict=True):
        if column.tilted:
            angles.setdefault(column.sensor.contact, np.zeros(3))[column.axis] = value
    for name, turned in angles.items():
        contact = next(each for each in idim.robot.contacts if each.name == name)
        if np.linalg.norm(turned) > LINEAR:
            rpy = to_rpy(convert_rpy(contact.rpy) @ convert_rotation_vector(turned))
            notes.append(
                f"{name}: its sensor is turned by {np.degrees(np.linalg.norm(turned)):.2g} "
                "degrees, beyond the small-angle approximation; identify again with rpy = "
                f"[{', '.join(f'{angle:.5g}' for angle in rpy)}] in [[contact]]"
            )
    return notes
