"""What a study leaves open, decided from its logs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dynident.api import require_torque
from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.knowledge import Knowledge
from dynident.core.progress import Progress
from dynident.decide.bandwidth import choose_bandwidth
from dynident.decide.decision import BANDWIDTH, FRICTION, PRIOR_WEIGHT, STANDSTILL, Decision
from dynident.decide.friction import choose_friction
from dynident.decide.laws import drop_load
from dynident.decide.prior import choose_weight
from dynident.decide.standstill import choose_standstill
from dynident.estimators.closed_loop import lacks_torque
from dynident.estimators.constrained import build_constrained_setting
from dynident.estimators.covariance import ErrorBars
from dynident.friction.names import split_friction_names
from dynident.methods.options import list_option_names
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.robot.model import Robot
from dynident.study.study import (
    Study,
    build_study_problem,
    prepare_study_recording,
)

CUTOFFS = ("bandwidth", "position_hz", "torque_hz")
"""Of which none may be given for the bandwidth to be open."""
OF_PRIOR = ("prior", "metric", "prior_weight", "consistency")
"""Likewise, for the weight of the prior."""


def list_open_decisions(study: Study, asked: Sequence[str], simulates: bool) -> tuple[str, ...]:
    """What of all that may be decided the study does not state.

    Friction and gates are those of torques that are fitted: methods that simulate the loop keep
    the usual ones.
    """
    given = study.prepare.model_dump(exclude_none=True)
    told = study.identify.model_dump(exclude_none=True).keys()
    has_prior = PRIOR_WEIGHT in list_option_names(study.identify.method)
    open_ = {
        BANDWIDTH: not given.keys() & set(CUTOFFS),
        FRICTION: not simulates and "friction" not in study.robot.model_fields_set,
        STANDSTILL: not simulates and "drop_below" not in given,
        PRIOR_WEIGHT: has_prior and not told & set(OF_PRIOR),
    }
    return tuple(name for name in asked if open_[name])


class Decided(NamedTuple):
    """A study that states all that was decided.

    Attributes
    ----------
    problem : Problem or None
        That of the study, where the last decision was made with it.
    """

    study: Study
    decisions: tuple[Decision, ...]
    problem: Problem | None = None


def decide_study(
    study: Study,
    robot: Robot,
    recordings: Sequence[Recording],
    asked: Sequence[str],
    progress: Progress,
) -> Decided:
    """A study in which what it left open is decided by the logs that it fits.

    Parameters
    ----------
    recordings : sequence of Recording
        Of all of its logs.
    asked : sequence of str
        What is open, in the order in which it is decided.
    """
    decisions: list[Decision] = []
    problem = None
    for k, name in enumerate(asked):
        progress("deciding", k / len(asked))
        if problem is None:
            problem = build_problem(study, robot, recordings)
        if not tells_enough(problem):
            return Decided(study, ())
        given = build_constrained_setting(problem, Knowledge(), Bootstrap(0), ErrorBars())
        if name == PRIOR_WEIGHT and given.admitted.prior.empty:
            continue
        if name == BANDWIDTH:
            found = choose_bandwidth(
                problem,
                partial(prepare_by_bandwidth, study, recordings),
                given.admitted,
                given.sigma,
            )
            study = with_bandwidth(study, float(found.value))
        elif name == FRICTION:
            found = choose_friction(problem, given.admitted, given.sigma)
            study = update_section(study, "robot", friction=found.value)
        elif name == PRIOR_WEIGHT:
            found = choose_weight(problem, given.admitted, given.sigma)
            study = update_section(study, "identify", prior_weight=float(found.value))
        else:
            found = choose_standstill(problem, given.admitted, given.sigma)
            speeds = [float(speed) for speed in found.value.strip("[]").split(",")]
            value = speeds[0] if len(speeds) == 1 else tuple(speeds)
            study = update_section(study, "prepare", drop_below=value)
        decisions.append(found)
        if name != PRIOR_WEIGHT:
            problem = None  # of other columns or rows
    if problem is not None and drop_loads(study) is not study:
        problem = None
    return Decided(study, tuple(decisions), problem)


def update_section(study: Study, section: str, **values: Any) -> Study:
    """A study with other values in one of its sections."""
    own = getattr(study, section).model_copy(update=values)
    return study.model_copy(update={section: own})


def with_bandwidth(study: Study, hz: float) -> Study:
    """A study whose joints have this bandwidth [Hz]."""
    return update_section(study, "prepare", bandwidth=hz)


def prepare_by_bandwidth(study: Study, recordings: Sequence[Recording], hz: float) -> list[Samples]:
    """The logs that a study fits, prepared by a bandwidth."""
    return prepare_fitted(with_bandwidth(study, hz), recordings)


def prepare_fitted(study: Study, recordings: Sequence[Recording]) -> list[Samples]:
    """The logs that a study fits, of the recordings of all."""
    pairs = zip(study.log, recordings, strict=True)
    return [
        prepare_study_recording(section, recording, study.prepare)
        for section, recording in pairs
        if section.use == "identify"
    ]


def build_problem(study: Study, robot: Robot, recordings: Sequence[Recording]) -> Problem:
    """The problem of a study, its friction without what depends on loads.

    Those are of the bodies that are found, and so no columns yet.
    """
    return build_study_problem(drop_loads(study), robot, prepare_fitted(study, recordings))


def drop_loads(study: Study) -> Study:
    """A study whose friction does not depend on loads; itself where it does not."""
    names = split_friction_names(study.robot.friction)
    plain = [drop_load(name) for name in names]
    return study if plain == names else update_section(study, "robot", friction=", ".join(plain))


def tells_enough(problem: Problem) -> bool:
    """Whether logs can decide anything: measured torques of equations that nothing combines.

    They have to excite the usual model, so that all that differs is what is decided.
    """
    if any(lacks_torque(log) for log in problem.samples):
        return False
    if len(problem.groups) > problem.robot.dof or problem.idim.nonlinear:
        return False
    require_torque(problem)
    return bool(np.min(problem.factors.counts) > 0)
