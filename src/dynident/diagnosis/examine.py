"""The doctor: which other reading of a log explains it, and by how much better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from dynident.control.controller import Controller
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.threads import limit_to_one_thread
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.by_file import (
    BY_FILE,
    find_by_file,
    find_missing_bodies,
    is_near_one,
    measure_file_scale,
)
from dynident.diagnosis.by_law import find_by_law
from dynident.diagnosis.diagnoses import COMPUTED, DIAGNOSES
from dynident.diagnosis.scene import Scene, estimate_blur, take_scene
from dynident.diagnosis.screening import (
    build_problem,
    is_clearly_better,
    screen_suspects,
    settles_contradictions,
)
from dynident.diagnosis.signs import Sign, find_lost_rows, find_unsigned_log
from dynident.diagnosis.springs import find_sure_spring
from dynident.diagnosis.suspicion import (
    LogCase,
    Reading,
    Suspected,
    Suspicion,
    compute_column_rms,
    fit_consistent_model,
)
from dynident.dynamics.base import BaseParameters, find_observed_base
from dynident.dynamics.idim import build_idim
from dynident.instants.squares import NO_ERROR, LeastSquares, average_errors
from dynident.recording.prepare import Samples
from dynident.recording.repairs import LogRepair
from dynident.regression.generalised import generalise_samples


@dataclass(frozen=True)
class Finding:
    """What is wrong with a log.

    Attributes
    ----------
    what : str
        In words, with the size.
    remedy : str
        What to write into the log's table, or to do.
    before, after : float
        Mean relative error of the joints with and without it [%].
    other : str
        The next best explanation with its error; empty for none.
    repair : LogRepair or None
        What repairs the log.
    unit : str, tuple of str, or None
        Of its positions, all or each, where that was wrong.
    rate : float or None
        Of the log, where that was wrong [Hz].
    keys : tuple of (str, value)
        Keys of a base's sensors in the log's table, with what is right.
    gravity : tuple of float, or None
        Of the robot, where that was wrong [m/s^2].
    error : float
        Standard error of a delay or an offset [s, rad or m]; 0 for none.
    against : str
        Names of the logs without which it would not show; empty for none. The errors are then of
        all together, and what is wrong may be wrong with those.
    quiet : bool
        Whether it explains better only torques that are next to nothing for their drives, and
        leaves nothing but noise of them.
    """

    log: str
    diagnosis: str
    what: str
    remedy: str
    before: float
    after: float
    other: str = ""
    repair: LogRepair | None = None
    unit: str | tuple[str, ...] | None = None
    error: float = 0.0
    rate: float | None = None
    keys: tuple[tuple[str, Any], ...] = ()
    gravity: tuple[float, ...] | None = None
    against: str = ""
    quiet: bool = False

    @property
    def share(self) -> float:
        """Share of the error that it leaves."""
        return self.after / self.before if self.before > 0.0 else 1.0

    @property
    def found(self) -> str:
        """What is wrong, and with which other log it might be instead."""
        return f"{self.what}, or else {self.against} is wrong" if self.against else self.what

    @property
    def gain(self) -> str:
        """What is gained, with what makes that worth little; nothing without another reading."""
        if self.before == self.after:
            return ""
        errors = f"error {self.before:.3g} -> {self.after:.3g} % a joint"
        limits = f", of what is below {100.0 * limit.QUIET:g} % of the drives' limits"
        return f"{errors}{limits}" if self.quiet else errors

    @property
    def words(self) -> str:
        """One line."""
        gain = f" ({self.gain})" if self.gain else ""
        return f"{self.log}: {self.found}{gain}: {self.remedy}"


@dataclass(frozen=True, eq=False)
class Explanation:
    """A suspect with the error that it leaves."""

    suspicion: Suspicion
    errors: Array
    problem: LeastSquares

    @property
    def cost(self) -> float:
        """The error, larger with each number that was fitted."""
        return average_errors(self.errors) * limit.TIED**self.suspicion.freedom


RECORD = {
    "rows lost": "log each row with its own time: after each gap the clock is off",
    "unsigned": "log the torques with their signs",
    "external torque": "log the full joint torque: this is what remains after subtracting a model, "
    "as by an estimate of external torques or by a controller that adds its model's torque itself",
    "free swing": "drive the joints against their swing, which tells little of the bodies; "
    "or log the full joint torque, if this is what remains after subtracting a model",
    "gravity": "log the full torque of the drives, or set gravity = [0, 0, 0] in [robot]",
}
"""How to log what no reading gives back."""
USUAL = "coulomb-viscous"
"""Friction in the place of what depends on more than an instant."""


@limit_to_one_thread
def examine(
    base: BaseParameters,
    logs: Sequence[Samples],
    held_out: Sequence[Samples] = (),
    thorough: bool = False,
    law: Controller | None = None,
) -> tuple[tuple[Finding, ...], ...]:
    """Find what is wrong with some logs of one robot, each beside the others.

    Parameters
    ----------
    base : BaseParameters
        Of what all of them show.
    held_out : sequence of Samples
        Logs that stand beside the others, and are looked at themselves where nothing is wrong
        with those though they disagree.
    thorough : bool
        Look at more of the logs, for everything, even where they are explained well, and for more
        than one thing.
    law : Controller, optional
        Of the drives, by the targets of logs that have them.

    Returns
    -------
    tuple of tuple of Finding
        One each of the logs, and of held-out ones that were looked at. The most telling first;
        each is of the log after those before it were repaired.
    """
    base = simplify_friction(base)
    every = [generalise_samples(base.idim, log) for log in (*logs, *held_out)]
    sets = tuple(dict.fromkeys(names for log in every for names in log.sets if names))
    scenes = [take_scene(base, log, sets, limit.MOST if thorough else limit.FEW) for log in every]
    found = examine_scenes(list(scenes), range(len(logs)), thorough, law)
    if any(found) or not held_out or not disagrees(scenes[0], scenes[0].among(scenes[1:])):
        return found
    # what shows only against the fitted logs was looked for with those
    rest = [(s, look_at_log(s, (), thorough).findings) for s in scenes[len(logs) :]]
    fitted = tuple(scenes[: len(logs)])
    return *found, *(look_at_log(s, fitted, thorough).findings if own else () for s, own in rest)


def examine_scenes(
    scenes: list[Scene], places: Sequence[int], thorough: bool, law: Controller | None
) -> tuple[tuple[Finding, ...], ...]:
    """What is wrong with some of the logs.

    What two logs say against each other is said of one of them: first comes what a log shows by
    itself, then what explains most, and the others are held against the repaired log.
    """
    found: dict[int, tuple[Finding, ...]] = dict.fromkeys(places, ())
    pending = list(places)
    while pending:
        looks = {
            k: look_at_log(scenes[k], (*scenes[:k], *scenes[k + 1 :]), thorough, law)
            for k in pending
        }
        telling = [k for k in pending if looks[k].findings]
        if not telling:
            break
        alone = [k for k in telling if not looks[k].against]
        robots = [k for k in alone if looks[k].log.base is not scenes[k].base][:1]  # of all logs
        taken = robots or alone or [min(telling, key=lambda k: round(looks[k].share, 6))]
        for k in taken:
            found[k], scenes[k] = (*found[k], *looks[k].findings), looks[k].log
            others = (i for i in range(len(scenes)) if i != k)
            for i, other in zip(others, looks[k].others, strict=True):
                if i not in taken:  # what is wrong with the robot is wrong in all logs
                    scenes[i] = other
        again = {k for k in taken if looks[k].deferred and len(found[k]) < limit.ROUNDS}
        pending = [k for k in telling if k not in taken or k in again]
    return tuple(found[k] for k in places)


def disagrees(scene: Scene, together: Scene) -> bool:
    """Whether one model is clearly worse for a log and those beside it than their own are."""
    problems = [scene.problem, *(other.problem for other in together.beside)]
    apart = np.concatenate([each.free_errors() for each in problems])
    errors = together.problem.free_errors()
    joint = np.any(errors >= limit.JOINT_APART * np.maximum(apart, limit.SOUND))
    worse = average_errors(errors) >= limit.APART * max(average_errors(apart), NO_ERROR)
    return bool(worse or joint)


def simplify_friction(base: BaseParameters) -> BaseParameters:
    """The model with friction that depends on the motion of an instant alone.

    Loads and states are those of one reading of a log; other readings are told apart without.
    """
    idim = base.idim
    if not (idim.has_states or idim.needs):
        return base
    plain = [each for each in idim.elements if not (each.model.state or each.model.needs)]
    return find_observed_base(
        build_idim(idim.robot, USUAL, idim.rotor, elements=plain), base.observed
    )


@dataclass(frozen=True, eq=False)
class Examination:
    """What is wrong with a log, and how it and the others read without that."""

    findings: tuple[Finding, ...]
    """Of readings, before and after them what none explains."""
    log: Scene
    others: tuple[Scene, ...]
    against: bool
    """Whether the first reading shows against the others alone."""
    share: float
    """Of the error that it leaves; 1 without one."""
    deferred: bool = False
    """Whether others speak against it, too, of which it is not known what is wrong with them."""


def look_at_log(
    scene: Scene, others: tuple[Scene, ...], thorough: bool, law: Controller | None = None
) -> Examination:
    """What is wrong with a log: with it alone, or with how it stands to the others."""
    nothing = Examination((), scene, others, False, 1.0)
    if scene.plain and np.ptp(scene.q, axis=0).max() < limit.LEAST_MOTION:
        return nothing  # a pose fits one reading as well as another
    if is_creeping(scene):
        found = find_fault(scene, others, thorough)
        if found is None or found[0].rate is None:  # along such a clock nothing else tells anything
            return replace(nothing, findings=(state_clock(scene),))
    findings: list[Finding] = []
    read_before: list[Scene] = []
    deferred = False
    lost = next(chain(find_lost_rows(scene.log), find_unsigned_log(scene.log)), None)
    if lost is None and scene.plain and scene.robot.has_nominal:
        lost = find_missing_bodies(scene)
    if lost is not None and lost.kind != "gravity":  # of which other mountings have little, too
        return replace(nothing, findings=(state_loss(scene, lost),))
    for k in range(limit.ROUNDS if thorough else 1):
        by_law = None if law is None or k or not scene.plain else find_by_law(scene, law)
        found = (
            find_fault(scene, others, thorough)
            if by_law is None
            else conclude(scene, by_law, ", if the law of the controller is right")
        )
        if found is None or (lost is not None and found[0].share > limit.WORTH):
            break
        finding, reading = found
        if deferred := bool(findings and finding.against and not findings[0].against):
            break  # the others may have been repaired by then
        read = reading.of(scene.among(others))  # a robot is that of all logs
        read_before.append(scene)
        undone = next((i for i, each in enumerate(read_before) if is_read_alike(each, read)), None)
        if undone is not None:  # the log speaks for it and the file against it: neither is sure
            findings, scene = findings[:undone], read_before[undone]
            break
        findings.append(finding)
        scene, others = read.among(()), read.beside
        if finding.quiet or finding.diagnosis == COMPUTED:
            break  # what is next to nothing, or no measurement, tells nothing of the rest
    if not findings:
        return Examination(find_unexplained(scene, lost), scene, others, False, 1.0)
    against = bool(findings[0].against) or not scene.plain
    return Examination(tuple(findings), scene, others, against, findings[0].share, deferred)


def is_creeping(s: Scene) -> bool:
    """Whether a log's clock makes of its motion one that no robot makes, at such a rate."""
    return s.plain and s.log.rate < limit.SLOWEST_RATE and np.max(np.abs(s.dq)) < limit.CREEPING


def state_clock(s: Scene) -> Finding:
    """That a log's clock is wrong, where no other one explains it."""
    rate, most = s.log.rate, np.max(np.abs(s.dq))
    what = f"the rate is {rate:.3g} Hz, and the fastest joint moves at {most:.2g} rad/s or m/s"
    quick = f"if time is in ms ({1e3 * rate:.6g} Hz)"
    remedy = f"{quick}, set units = {{ time = 'ms' }} in [[log]]"
    return state_finding(s, "rate", what, remedy)


def is_read_alike(one: Scene, other: Scene) -> bool:
    """Whether two readings of a log come to the same; not asked where bases and contacts count."""
    if not one.plain or one.base.idim.parameters != other.base.idim.parameters:
        return False
    signals = ((each.q, each.dq, each.ddq, each.tau, each.robot.gravity) for each in (one, other))
    return all(np.array_equal(*pair) for pair in zip(*signals, strict=True))


def find_fault(
    scene: Scene, others: tuple[Scene, ...], thorough: bool
) -> tuple[Finding, Reading] | None:
    """What is wrong with a log most, if anything is.

    A log of fewer equations than the robot has is looked at beside the others at once.
    """
    together = scene.among(others)
    if not scene.plain:
        return find_best_explanation(together, thorough)
    of_log = find_best_explanation(scene, thorough)
    reconciled = reconcile_logs(scene, together, thorough)
    # others that have the same fault speak against its repair
    if of_log is None or (
        reconciled
        and measure_left(scene, of_log) > limit.SAME_FAULT * measure_left(scene, reconciled)
    ):
        of_log = reconciled or of_log
    told = find_by_file(scene)
    of_file = None if told is None else conclude(scene, told, BY_FILE)
    vague = of_file is None or of_file[0].diagnosis == "encoder offset"
    # torques in another unit contradict the file as much as any spring does
    if (
        of_log is None
        and vague
        and (not scene.robot.has_nominal or is_near_one(measure_file_scale(scene).every))
    ):
        # what leaves noise alone is surer than a zero that other bodies than the file's could be
        return find_unnoticed_spring(together) or of_file
    if of_log is None or of_file is None:
        return of_log or of_file
    said = [(f.diagnosis, f.unit, f.rate, f.gravity) for f, _ in (of_log, of_file)]
    return of_log if said[0] == said[1] or of_log[0].share <= of_file[0].share else of_file


def measure_left(scene: Scene, found: tuple[Finding, Reading]) -> float:
    """The mean error of a log alone as it is read then."""
    return average_errors(found[1].of(scene).problem.free_errors())


def reconcile_logs(scene: Scene, together: Scene, thorough: bool) -> tuple[Finding, Reading] | None:
    """The reading under which a log and those beside it have the same model, if they have none."""
    others = together.beside
    if not others or not disagrees(scene, together):
        return None
    problems = [each.problem for each in (scene, *others)]
    own = [each.errors(fit_consistent_model(each)) for each in problems]
    found = find_best_explanation(together, thorough, average_errors(np.concatenate(own)))
    if found is None:
        return None
    finding, reading = found
    alone = average_errors(scene.problem.free_errors())
    if measure_left(scene, found) > limit.WORTH * alone:
        names = " and ".join(other.log.name for other in others)
        finding = replace(finding, against=names)
    return finding, reading


def conclude(scene: Scene, found: Suspected, proviso: str) -> tuple[Finding, Reading]:
    """The finding of a reading that something other than the log speaks for."""
    told = replace(found.suspicion, what=found.suspicion.what + proviso)
    return state_reading(scene.log.name, told, found.before, found.after), told.reading


def state_reading(
    log: str, s: Suspicion, before: float, after: float, other: str = "", quiet: bool = False
) -> Finding:
    """The finding of a suspicion that leaves some mean error, `after`."""
    return Finding(
        log, s.diagnosis, s.what, s.remedy, 100.0 * before, 100.0 * after, other, s.repair, s.unit,
        s.error, s.rate, s.keys, s.gravity, quiet=quiet,
    )  # fmt: skip


def find_unnoticed_spring(scene: Scene) -> tuple[Finding, Reading] | None:
    """A spring that is sure and worth it, where what is left with it is noise."""
    spring = find_sure_spring(scene)
    if spring is None:
        return None
    told = spring.suspicion(scene)
    read = told.reading.of(scene)
    after = read.problem.system.solve()
    if np.any(correlate_residuals(read, after) > limit.WHITE):
        return None
    errors = scene.problem.errors(spring.beta), read.problem.errors(after)
    before, left = (average_errors(each) for each in errors)
    if left > limit.WORTH_SURE * before:
        return None
    return state_reading(scene.log.name, told, before, left), told.reading


def find_unexplained(scene: Scene, lost: Sign | None) -> tuple[Finding, ...]:
    """Torque of a log with which no reading goes: of another run, or far from the file's bodies."""
    error = average_errors(scene.problem.free_errors())
    if scene.plain and error > limit.UNRELATED:
        what = f"no hypothesis explains the torque (error {100.0 * error:.0f} % a joint)"
        return (state_finding(scene, "unrelated", what, "is it that of another run?"),)
    if lost is not None:
        return (state_loss(scene, lost),)
    if scene.plain and scene.robot.has_nominal:
        told = measure_file_scale(scene).suspicion(scene)
        if told is not None:
            return (state_finding(scene, told.diagnosis, told.what + BY_FILE, told.advice),)
    return ()


def state_loss(scene: Scene, lost: Sign) -> Finding:
    """What the log lacks."""
    return state_finding(scene, lost.kind, lost.what, RECORD[lost.kind])


def state_finding(scene: Scene, diagnosis: str, what: str, advice: str) -> Finding:
    """What is wrong where no other reading leaves less."""
    error = 100.0 * average_errors(scene.problem.free_errors())
    return Finding(scene.log.name, diagnosis, what, advice, error, error)


def find_best_explanation(
    scene: Scene, thorough: bool, apart: float | None = None
) -> tuple[Finding, Reading] | None:
    """The reading that explains a scene best, where it is clearly better than the log's own.

    `apart` is the error of this log and those beside it with bodies of their own: most of what is
    between that and the error with one model has to be explained.
    """
    beta = fit_consistent_model(scene.problem)
    errors = scene.problem.errors(beta)
    before = average_errors(errors)
    bad, told = find_bad_joints(scene, beta, errors, thorough)
    if apart is None and (before < limit.SOUND or not told):
        return None
    found = fit_suspects(LogCase(scene, beta, errors, bad), thorough, apart)
    explained = rank_explanations(scene, found)
    if explained and (denies_file(scene, explained[0]) or is_of_noise(scene, explained[0], before)):
        explained = []  # nor do the others explain more than what that one does
    best = next(iter(explained), None)
    if apart is None and (
        best is None or np.any(best.errors - best.problem.blurred >= limit.UNRELATED)
    ):
        foreign = find_unrelated_joint(scene, errors)
        if foreign is not None:
            return foreign
    if best is None:
        return None
    s, quiet = best.suspicion, has_only_quiet_gains(scene, errors, best.errors)
    if s.sure <= limit.SURE_QUIETLY and is_vague(scene, errors, best.errors, s.reading):
        return None  # so little torque has much in it that no model has
    after, others = (
        average_errors(best.errors),
        (e for e in explained if e.suspicion.what != s.what),
    )
    second = next(
        (f"{e.suspicion.what} ({100.0 * average_errors(e.errors):.3g} %)" for e in others), ""
    )
    finding = state_reading(scene.log.name, s, before, after, second, quiet)
    other = find_other_sign(explained, apart)
    if other is not None:
        what, remedy = f"{s.what}, or else {other.what}", f"{s.remedy}, or {other.lines[0]}"
        finding = replace(finding, diagnosis="sign", what=what, remedy=remedy)
    return finding, s.reading


def is_of_noise(scene: Scene, found: Explanation, error: float) -> bool:
    """Whether a reading leaves no less of a log than the log itself does below a lower cutoff.

    What is wrong with a log is wrong there, too. Noise in fast motion, which is most of the torque
    of a slow log, is explained by readings that have nothing to do with it; but most of it by none
    that goes with the position.
    """
    low, s = scene.lowered, found.suspicion
    most = average_errors(found.errors) < limit.OF_NOISE * error
    if low is None or (most and s.fast):
        return False
    read = build_problem(low, s.reading)
    before = low.problem.errors(fit_consistent_model(low.problem))
    left = s.reading.errors(low, read, fit_consistent_model(read))
    return average_errors(left) > limit.LASTING * average_errors(before)


def fit_suspects(case: LogCase, thorough: bool, apart: float | None) -> list[Explanation]:
    """Readings under which consistent bodies leave clearly less; see `find_best_explanation`."""
    scene, errors, problem = case.scene, case.errors, case.scene.problem
    unsettled, allowed = errors, np.full_like(errors, np.inf)
    if has_only_quiet_gains(scene, errors, np.zeros_like(errors)):
        # nothing but noise has to be left
        free = problem.system.solve()
        rho = correlate_residuals(scene, free)
        if np.any(rho > limit.WHITE):
            unsettled = np.minimum(errors, problem.errors(free))
            allowed[: scene.n] = bound_noise_errors(rho, unsettled[: scene.n])
    suspects = [
        suspicion
        for diagnosis in DIAGNOSES.values()
        if diagnosis.applies(scene)
        for suspicion in diagnosis.suspect(case)
    ]
    contradicted = average_errors(errors) > limit.CONTRADICTED * average_errors(
        problem.free_errors()
    )
    most = limit.CONTRADICTORY if scene.plain and contradicted else limit.FITTED
    most = len(suspects) if thorough and scene.plain else most
    hopeless = limit.HOPELESS if thorough or contradicted else limit.TIED
    found: list[Explanation] = []
    for free, raw in screen_suspects(
        scene, suspects, unsettled, allowed, apart, limit.SCREENED * most
    )[:most]:
        if found and average_errors(free) > hopeless * min(each.cost for each in found):
            break  # consistent bodies leave no less than any
        vague = is_vague(scene, errors, free, raw.reading)
        if vague and raw.measure is None:
            continue
        suspicion = raw if raw.measure is None else raw.measure(scene)
        if suspicion is None or (vague and suspicion.sure <= limit.SURE_QUIETLY):
            continue
        read = build_problem(scene, suspicion.reading)
        if not read.as_many_as(problem):
            continue
        try:
            left = suspicion.reading.errors(scene, read, read.consistent())
        except ComputationError:
            continue
        if (
            average_errors(left[: scene.groups]) < limit.UNRELATED
            and is_clearly_better(
                left, errors, suspicion, apart, suspicion.sure > limit.SURE, scene.clear_groups
            )
            and settles_contradictions(left, errors, apart, suspicion.freedom)
            and not (scene.plain and has_unrelated_joints(scene, left, suspicion))
        ):
            found.append(Explanation(suspicion, left, read))
    return found


def denies_file(scene: Scene, explained: Explanation) -> bool:
    """Whether the robot file's bodies explain a log, and no more under a reading of it.

    Of what they explain as well as bodies are ever known, a fault has to leave clearly less. And
    an element with far more torque than is logged and they need only balances what else is wrong.
    """
    if not scene.robot.has_nominal:
        return False
    if explained.suspicion.diagnosis in ("spring", "ripple"):
        idim, taken = scene.base.idim, scene.tau - explained.suspicion.reading.of(scene).tau
        asked = idim.torque(idim.nominal, scene.q, scene.dq, scene.ddq)
        there = compute_column_rms(asked) + compute_column_rms(scene.tau)
        if np.any(np.std(taken, axis=0) > limit.OUTWEIGHED * there):
            return True
    told, read = (
        average_errors(problem.errors(problem.fit_drives()))
        for problem in (scene.problem, explained.problem)
    )
    most = limit.DENIED if told > limit.AS_FILED else limit.WORTH_AGAINST
    return told < limit.BY_BODIES and read > most * told


def rank_explanations(scene: Scene, explained: list[Explanation]) -> list[Explanation]:
    """The best first: of those about as good the one of fewest numbers, then by the file.

    Where neither tells, what any bodies leave counts as much: signs of a torque and a position
    differ by little else.
    """
    known = scene.robot.has_nominal
    files = [each.problem.file_error() if known else 0.0 for each in explained]
    least = min((each.cost for each in explained), default=0.0)

    def order(k: int) -> tuple[bool, int, bool, float]:
        cost = explained[k].cost
        far = files[k] > limit.TIED**2 * min(files)
        both = cost * average_errors(explained[k].problem.free_errors())
        return cost > limit.TIED * least, explained[k].suspicion.freedom, far, both

    return [explained[k] for k in sorted(range(len(explained)), key=order)]


def find_other_sign(explained: list[Explanation], apart: float | None) -> Suspicion | None:
    """Of the best reading, the sign of a torque or a position, the other one if it may be that.

    That friction takes energy tells their product. What tells them apart are the other joints, of
    which a reading has to explain as much as any that is a finding, and the file's bodies.
    """
    best, *others = explained
    sign = (best.suspicion.repair or LogRepair()).sign or {}
    for each in others:
        turned = (each.suspicion.repair or LogRepair()).sign or {}
        alike = {*sign.values()} == {*turned.values()} and sign.keys() != turned.keys()
        known = best.problem.base.idim.robot.has_nominal
        if not alike or is_clearly_better(best.errors, each.errors, best.suspicion, apart, False):
            continue
        if not known or each.problem.file_error() <= limit.TIED**2 * best.problem.file_error():
            return each.suspicion
    return None


def find_bad_joints(
    scene: Scene, beta: Array, errors: Array, thorough: bool
) -> tuple[frozenset[int], bool]:
    """Joints that may be others, or turned round, and whether anything is left to explain.

    `errors` are those of the best consistent model, `beta`.
    """
    n, dof = scene.n, scene.robot.dof
    if thorough:
        return frozenset(scene.robot.driven), True
    first = dof - n
    poor = frozenset(np.flatnonzero(errors[first:dof] > limit.DOUBTFUL).tolist())
    if scene.plain:
        free = average_errors(scene.problem.free_errors())
        told = np.any(correlate_residuals(scene, beta) > limit.WHITE)
        told |= np.any(errors[:n] > limit.DOUBTFUL + scene.blur)  # white at few instants
        return poor, bool(told or average_errors(errors) > limit.CONTRADICTED * free)
    if np.any(errors[dof : scene.groups] > limit.ASTRAY):
        return frozenset(range(n)), True
    return poor, bool(poor) or bool(first and average_errors(errors[:first]) >= limit.POOR)


def has_unrelated_joints(scene: Scene, left: Array, suspicion: Suspicion) -> bool:
    """Whether a reading leaves a torque unexplained that it changes, or that other logs explain.

    What has one number for all joints, or none, is of no joint by itself.
    """
    own, *others = left.reshape(-1, scene.n)
    most = limit.UNRELATED + estimate_blur(suspicion.reading.of(scene))
    known = np.min(others, axis=0) < limit.UNRELATED if others else np.zeros(scene.n, dtype=bool)
    touched = suspicion.reading.touched
    if suspicion.freedom <= 1 and np.all(touched):
        touched = np.zeros_like(touched)
    return bool(np.any((own >= most) & (touched | known)))


def find_unrelated_joint(scene: Scene, errors: Array) -> tuple[Finding, Reading] | None:
    """A joint whose torque nothing explains, and without which the others' is explained."""
    if not scene.plain or scene.n == 1:
        return None
    over = errors[: scene.n] - scene.blur
    joint = int(np.argmax(over))
    if over[joint] <= limit.UNRELATED:
        return None
    reading = Reading(np.diag(np.arange(scene.n) != joint).astype(float), np.zeros(scene.n))
    problem = scene.columns.read(reading.torque)
    if is_vague(scene, errors, problem.free_errors(), reading):
        return None
    left, others = problem.errors(fit_consistent_model(problem)), np.arange(len(errors)) != joint
    if average_errors(left[others]) > limit.RELIEVED * average_errors(errors[others]):
        return None
    name = scene.robot.joint_names[joint]
    what = f"no hypothesis explains the torque of {name}; without it the others are explained"
    told = Suspicion("unrelated", what, reading, advice="is it that of another run?")
    before, after = average_errors(errors[others]), average_errors(left[others])
    quiet = has_only_quiet_gains(scene, errors, left)
    return state_reading(scene.log.name, told, before, after, quiet=quiet), reading


def has_only_quiet_gains(scene: Scene, before: Array, after: Array) -> bool:
    """Whether no joint gains but those of next to no torque for their drives, and these little."""
    if not scene.plain:
        return False
    least = np.where(scene.clear_groups, limit.WORTH_AGAINST, limit.LOUDLY)
    return not np.any(after < least * before)


def is_vague(scene: Scene, before: Array, after: Array, reading: Reading) -> bool:
    """Whether a reading gains only quietly, and least squares leaves more than noise of it."""
    if not has_only_quiet_gains(scene, before, after):
        return False
    read = reading.of(scene)
    return not np.all(correlate_residuals(read, read.problem.system.solve()) <= limit.WHITE)


def correlate_residuals(s: Scene, beta: Array) -> Array:
    """Correlation of each joint's residuals with the next ones, shape (n,); noise has none."""
    rest: Array = np.where(s.moving, s.tau - s.motion.predict(beta), 0.0)
    square = np.maximum(np.sum(rest**2, axis=0), np.finfo(float).tiny)
    return np.asarray(np.sum(rest[1:] * rest[:-1], axis=0) / square)


def bound_noise_errors(correlation: Array, errors: Array) -> Array:
    """Errors above which what is left is more than noise, whatever explains the rest of it.

    Of residuals with the correlation rho at most the share 1 - rho of the square is noise; with
    what else is left their correlation may be `WHITE` again.
    """
    noise = np.sqrt(np.clip(1.0 - correlation, 0.0, 1.0) / (1.0 - limit.WHITE))
    return np.where(correlation > limit.WHITE, limit.UNSURE * noise * errors, np.inf)
