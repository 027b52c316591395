"""A study from its files to the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from dynident.api import EVERY_METHOD, identify
from dynident.consistency.constraints.sections import build_constraints
from dynident.core.compiled import tells_compilations
from dynident.core.errors import UnsettledError, check_type
from dynident.core.options import collect_options, read_options
from dynident.core.progress import Progress, Stopwatch, ignore_progress
from dynident.core.side_by_side import Runner, choose_engine
from dynident.core.threads import limit_to_one_thread
from dynident.decide.decision import BANDWIDTH, FRICTION, Decision, DecisionOptions
from dynident.methods import TORQUE_FREE
from dynident.methods.options import (
    SIMULATION,
    check_options,
    list_option_names,
    refuse_idle_engine,
)
from dynident.recording.prepare import describe_assumed_bandwidth
from dynident.regression.problem import Problem
from dynident.regression.rehearsal import prepare_rows
from dynident.report.fit import Fit
from dynident.robot.model import Robot
from dynident.simulation.rollout import prepare_rollouts
from dynident.study.decide import DecidedStudy, decide_study, list_open_decisions, prepare_logs
from dynident.study.study import (
    Study,
    build_study_law,
    build_study_problem,
    build_study_simulation,
    load_study_robot,
    read_study_recordings,
    update_section,
)
from dynident.study.target_delay import find_law_delay, tell_law_delay

WITHOUT_LOADS = (
    "friction was decided without a part that grows with the load: the fit with it did not settle"
)


@tells_compilations
@limit_to_one_thread
def run_study(study: Study, progress: Progress = ignore_progress, *, engine: Runner = None) -> Fit:
    """Run a study from its files to the result.

    If drives are fitted to encoders and the study does not state friction, friction that varies
    with the joint angle is chosen where it helps, and the result says so. The engine is that of
    `identify`.

    >>> fit = di.run_study(di.read_study("study.toml"))

    Raises
    ------
    InputError, ComputationError
    """
    check_type("run_study", study, Study, "dynident.read_study(path) makes one")
    watch = Stopwatch()
    chosen = study.identify
    asked = read_options(DecisionOptions, chosen).asked
    simulates = check_study_method(study, engine)
    if simulates:
        prepare_rollouts(implicit=chosen.method in TORQUE_FREE)
    progress("reading", 0.0)
    robot = load_study_robot(study)
    if not simulates:
        prepare_rows(robot)
    watch.lap("robot")
    torque = chosen.method not in TORQUE_FREE
    recordings = read_study_recordings(study, robot, torque, progress, late=True)
    watch.lap("logs")
    open_ = list_open_decisions(study, asked, simulates)
    study, recordings = find_law_delay(study, robot, recordings, progress)

    def fit(loads: bool) -> tuple[DecidedStudy, Problem, Fit]:
        """What is open decided, with friction that grows with the load or without, and the fit."""
        decided = decide_study(study, robot, recordings, open_, progress, loads)
        own, problem = decided.study, decided.problem
        watch.lap("decisions")
        held_out = prepare_logs(own, recordings, "validate")
        if problem is None:
            fitted = prepare_logs(own, recordings)
            watch.lap("preparation")
            problem = build_study_problem(own, robot, fitted, progress)
        watch.lap("base parameters")
        build = build_study_simulation if simulates else build_study_law
        options = collect_study_options(own)
        options[SIMULATION if simulates else "law"] = build(own, robot, problem.samples)
        result = identify(
            problem,
            chosen.method,
            **options,
            validation=held_out,
            decided=[each.what for each in decided.decisions],
            progress=progress,
            engine=engine,
        )
        return decided, problem, result

    try:
        decided, problem, result = fit(loads=True)
    except UnsettledError:
        if FRICTION not in open_:
            raise
        decided, problem, result = fit(loads=False)
        decided = decided._replace(warnings=(*decided.warnings, WITHOUT_LOADS))
    study, decisions, _, warnings = decided
    stages = {k: v for k, v in result.timings.items() if k != "total"}
    timings = {**watch.laps, **stages, "total": watch.total()["total"]}
    uneven = () if result.estimate.fitted is None else result.estimate.fitted.uneven
    if uneven and "friction" not in study.robot.model_fields_set:
        again, words = make_uneven(study, robot, uneven)
        found = run_study(again, progress, engine=engine)
        return replace(found, warnings=(words, *found.warnings))
    settings = {**result.settings, "decided": [asdict(decision) for decision in decisions]}
    settled = list_settled_notes(problem, decisions)
    told = (words for words in result.warnings if words not in settled)
    warnings = (*tell_law_delay(study, result), *warnings, *told)
    return replace(result, timings=timings, study=study, settings=settings, warnings=warnings)


def check_study_method(study: Study, engine: Runner) -> bool:
    """Whether the study's method simulates its controller; refuses options that it has not."""
    method = study.identify.method
    simulates = study.controller is not None and SIMULATION in list_option_names(method)
    every = collect_options(EVERY_METHOD)
    own = {key: value for key, value in collect_study_options(study).items() if key not in every}
    check_options(method, {**own, SIMULATION: simulates or None})
    refuse_idle_engine(method, choose_engine(1, engine))
    return simulates


def make_uneven(study: Study, robot: Robot, uneven: Sequence[str]) -> tuple[Study, str]:
    """A study with friction that changes along a turn of these joints, and what is said of it."""
    kinds = ["uneven" if name in uneven else study.robot.friction for name in robot.joint_names]
    words = (
        f"friction of {', '.join(uneven)} is 'uneven', as the errors of {study.robot.friction!r} "
        "were those of friction that changes along a turn; give [robot] friction for another"
    )
    return update_section(study, "robot", friction=",".join(kinds)), words


def list_settled_notes(problem: Problem, decisions: Sequence[Decision]) -> list[str]:
    """What preparation says of a bandwidth that is assumed, where the logs decided for it since."""
    if all(each.what != BANDWIDTH for each in decisions):
        return []
    return [describe_assumed_bandwidth(log.name, max(log.bandwidth)) for log in problem.samples]


def collect_study_options(study: Study) -> dict[str, Any]:
    """What a study says of the identification beside its method."""
    options = study.identify.options()
    options.pop("decide", None)  # of what is done before
    if study.constraint:
        options["constraints"] = build_constraints(study.constraint)
    return options
