"""What a study leaves open, decided from its logs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import ComputationError
from dynident.core.progress import Progress
from dynident.core.text import format_one_line
from dynident.decide.bandwidth import choose_bandwidth
from dynident.decide.blocks import lack_rows, last_long_enough
from dynident.decide.decision import (
    BANDWIDTH,
    DERIVATIVES,
    ELEMENTS,
    FRICTION,
    NOTHING,
    OUTLIERS,
    PRIOR_WEIGHT,
    STANDSTILL,
    Decision,
)
from dynident.decide.derivatives import choose_derivatives
from dynident.decide.friction import choose_drives
from dynident.decide.laws import simplify_friction
from dynident.decide.outliers import KEPT, choose_outliers
from dynident.decide.prior import choose_weight, confirm_weight
from dynident.decide.springs import NONE
from dynident.decide.standstill import choose_standstill
from dynident.estimators.closed_loop import lacks_torque
from dynident.estimators.constrained import ConstrainedSetting, build_constrained_setting
from dynident.estimators.covariance import ErrorBars
from dynident.friction.names import split_friction_names
from dynident.methods.options import list_option_names
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.regression.elements import ElementSection, build_elements
from dynident.regression.problem import Problem, require_torque
from dynident.robot.model import Robot
from dynident.study.study import (
    Study,
    build_study_problem,
    list_logs_of,
    prepare_study_recording,
    update_section,
)

CUTOFFS = ("bandwidth", "position_hz", "torque_hz")
"""Of which none may be given for the bandwidth to be open."""
OF_DRIVES = (ELEMENTS, FRICTION)
"""What is decided at once, of columns of one factor."""
OF_MOTION = (DERIVATIVES, BANDWIDTH)
"""Likewise, by other motions of the same rows; their names are the keys that state them."""
OF_PRIOR = ("prior", "metric", "prior_weight", "consistency")
"""Likewise, for the weight of the prior."""
ROBUST = "irls"
"""A method that weighs outliers down by itself."""
OF_POSITIONS = "ml"
"""A method that takes speeds from positions alone, with their noise."""
ABOUT_DRIVES = ("bounds", "fixed", "tied", "belief", "equal", "symmetric")
"""Kinds of constraints that name parameters of drives, or say that drives are alike."""


def list_open_decisions(study: Study, asked: Sequence[str], simulates: bool) -> tuple[str, ...]:
    """What of all that may be decided the study does not state.

    Friction and gates are those of torques that are fitted: methods that simulate the loop keep
    the usual ones.
    """
    given = study.prepare.model_dump(exclude_none=True)
    simulates |= "rests" in given  # of averages over them there is nothing to decide but the prior
    told = study.identify.model_dump(exclude_none=True).keys()
    has_prior = PRIOR_WEIGHT in list_option_names(study.identify.method)
    open_ = {
        DERIVATIVES: not simulates
        and "derivatives" not in given
        and study.identify.method != OF_POSITIONS,
        BANDWIDTH: not given.keys() & {*CUTOFFS, "rests"},
        FRICTION: not simulates
        and "friction" not in study.robot.model_fields_set
        and not any(section.kind in ABOUT_DRIVES for section in study.constraint),
        ELEMENTS: not simulates and not study.element,
        STANDSTILL: not simulates and "drop_below" not in given,
        PRIOR_WEIGHT: has_prior and not told & set(OF_PRIOR),
        OUTLIERS: not simulates
        and study.identify.method != ROBUST
        and all(section.keep is None for section in list_logs_of(study, "identify")),
    }
    return tuple(name for name in asked if open_[name])


class DecidedStudy(NamedTuple):
    """A study that states all that was decided."""

    study: Study
    decisions: tuple[Decision, ...]
    problem: Problem | None = None
    """That of the study, where its rows are those of the last decision."""
    warnings: tuple[str, ...] = ()
    """What could not be decided."""


def decide_study(
    study: Study,
    robot: Robot,
    recordings: Sequence[Recording],
    asked: Sequence[str],
    progress: Progress,
    loads: bool = True,
) -> DecidedStudy:
    """A study in which what it left open is decided by the logs that it fits.

    Parameters
    ----------
    recordings : sequence of Recording
        Of all of its logs.
    asked : sequence of str
        What is open, in the order in which it is decided.
    loads : bool
        Whether friction may grow with the load of its drive.
    """
    decisions: dict[str, Decision] = {}
    problem, setting, decided = None, None, True
    for k, name in enumerate(asked):
        progress("deciding", k / len(asked))
        if decided:
            problem = build_problem(simplify_study(study), robot, recordings, problem)
            setting, decided = None, False
        assert problem is not None
        if not tells_enough(problem):
            return DecidedStudy(study, tuple(decisions.values()))
        if name in decisions:
            continue
        try:
            if setting is None:
                setting = build_setting(problem)
            found = decide(name, study, problem, setting, recordings, asked, loads)
        except ComputationError as error:
            words = f"{name} and what comes after were not decided from the logs: "
            words += format_one_line(error)
            return DecidedStudy(study, tuple(decisions.values()), None, (words,))
        for each in found:
            study = apply_decision(study, each)
            decisions[each.what] = each
            if each.what != PRIOR_WEIGHT and each.gain_percent > 0.0:
                decided = True
                problem = problem if each.what in OF_DRIVES else None  # of other rows
            elif each.what == BANDWIDTH and (
                problem is None or float(each.value) not in problem.samples[0].bandwidth
            ):
                decided, problem = True, None  # as it is stated, to so many digits
    if problem is not None and (decided or simplify_study(study) is not study):
        problem = build_problem(study, robot, recordings, problem)
    return DecidedStudy(study, tuple(decisions.values()), problem)


def decide(
    name: str,
    study: Study,
    problem: Problem,
    setting: ConstrainedSetting,
    recordings: Sequence[Recording],
    asked: Sequence[str],
    loads: bool,
) -> tuple[Decision, ...]:
    """One decision, and what had to be decided with it; none where there is nothing to decide."""
    scale = setting.admitted, setting.sigma
    if name in OF_MOTION:

        def prepare(value: str | float) -> list[Samples]:
            return prepare_logs(update_section(study, "prepare", **{name: value}), recordings)

        if name == BANDWIDTH:
            return (choose_bandwidth(problem, prepare, *scale),)
        if any(log.dq is None or log.base is not None for log in recordings):
            return ()
        return (choose_derivatives(problem, prepare, *scale),)
    weighed = PRIOR_WEIGHT in asked and not setting.admitted.prior.empty
    if name in (*OF_DRIVES, STANDSTILL) and not problem.robot.joints:
        return ()  # a tool has no drives
    if name in OF_DRIVES:
        stated = (ELEMENTS,) if study.element else ()
        what = [each for each in OF_DRIVES if each in asked and each not in stated]
        confirm = partial(confirm_by_all_rows, study, problem) if weighed else None
        return choose_drives(problem, *scale, what, confirm, loads)
    if name == STANDSTILL:
        return (choose_standstill(problem, *scale),)
    if name == OUTLIERS:
        if any(log.averaging is not None for log in problem.samples):
            return ()
        firsts = [0 if log.rows is None else log.rows[0] for log in list_logs_of(study, "identify")]
        return (choose_outliers(problem, *scale, firsts),)
    if not weighed:
        return ()
    weight = choose_weight(problem, *scale)
    return (confirm_weight(weight, setting.admitted, problem.factors.weighted(setting.sigma)),)


def confirm_by_all_rows(
    study: Study, problem: Problem, weight: Decision, drives: Sequence[Decision]
) -> Decision:
    """A weight of the prior that was decided with drives, or the usual one: `confirm_weight`."""
    for each in drives:
        study = apply_decision(study, each)
    own = with_drives_of(simplify_study(study), problem)
    setting = build_setting(own)
    return confirm_weight(weight, setting.admitted, own.factors.weighted(setting.sigma))


def build_setting(problem: Problem) -> ConstrainedSetting:
    """What the usual method weighs rows and the prior by.

    What was left out is predicted without cones: they need not be argued about.
    """
    known = Knowledge(gyration=0.0)
    return build_constrained_setting(problem, known, Bootstrap(0), ErrorBars())


def apply_decision(study: Study, found: Decision) -> Study:
    """A study that states what was decided."""
    if found.what == FRICTION:
        return update_section(study, "robot", friction=found.value)
    if found.what == OUTLIERS:
        return keep_samples(study, found.value)
    if found.what == ELEMENTS:
        told = [] if found.value == NONE else json.loads(found.value)
        return study.model_copy(update={"element": tuple(ElementSection(**each) for each in told)})
    if found.what == DERIVATIVES:
        return update_section(study, "prepare", derivatives=found.value)
    values = [float(value) for value in found.value.strip("[]").split(",")]
    value = values[0] if len(values) == 1 else tuple(values)
    section, key = PLACES[found.what]
    return update_section(study, section, **{key: value})


def keep_samples(study: Study, value: str) -> Study:
    """A study that states which samples of the logs that it fits are kept, or that all are.

    What leaves nothing out is not a range. As all else was decided before, such a study says that
    nothing is left to decide.
    """
    if value == KEPT:
        return update_section(study, "identify", decide=NOTHING)
    ranges = iter(json.loads(value))
    logs = tuple(
        section.model_copy(update={"keep": tuple(tuple(each) for each in next(ranges))})
        if section.use == "identify"
        else section
        for section in study.log
    )
    return study.model_copy(update={"log": logs})


PLACES = {
    BANDWIDTH: ("prepare", "bandwidth"),
    STANDSTILL: ("prepare", "drop_below"),
    PRIOR_WEIGHT: ("identify", "prior_weight"),
}
"""Sections and keys that state decisions."""


def prepare_logs(
    study: Study, recordings: Sequence[Recording], use: str = "identify"
) -> list[Samples]:
    """The logs that a study fits, or holds out, of the recordings of all."""
    pairs = zip(study.log, recordings, strict=True)
    return [
        prepare_study_recording(section, recording, study.prepare)
        for section, recording in pairs
        if section.use == use
    ]


def build_problem(
    study: Study, robot: Robot, recordings: Sequence[Recording], near: Problem | None
) -> Problem:
    """The problem of a study, given one with the same rows and other drives where there is one."""
    if near is None:
        return build_study_problem(study, robot, prepare_logs(study, recordings))
    return with_drives_of(study, near)


def with_drives_of(study: Study, problem: Problem) -> Problem:
    """A problem of the same rows with the drives of a study."""
    elements = build_elements(study.element, problem.robot)
    return problem.with_drives(study.robot.friction, study.robot.rotor, elements)


def simplify_study(study: Study) -> Study:
    """A study whose friction is linear in all parameters; itself where it is.

    Of friction that depends on loads, or has shapes that are not known, the usual one is taken.
    """
    names = split_friction_names(study.robot.friction)
    plain = [simplify_friction(name) for name in names]
    return study if plain == names else update_section(study, "robot", friction=", ".join(plain))


def tells_enough(problem: Problem) -> bool:
    """Whether logs can decide anything: measured torques of equations that nothing combines.

    They have to excite the usual model, so that all that differs is what is decided, and to be long
    enough for blocks.
    """
    if not last_long_enough(problem.samples):
        return False
    if any(lacks_torque(log) for log in problem.samples):
        return False
    if len(problem.groups) > problem.robot.equations or problem.idim.nonlinear:
        return False
    require_torque(problem)
    return not lack_rows(problem, [problem.factors])
