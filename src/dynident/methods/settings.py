"""All that shaped an estimate, as result.json has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynident.consistency.constraints import serialise_constraint
from dynident.core.plain import to_plain
from dynident.estimators.closed_loop import Simulation
from dynident.estimators.estimate import Estimate
from dynident.methods.options import SIMULATION, resolve_options
from dynident.regression.problem import Problem

CONSTRAINTS = "constraints"


def collect_model_settings(
    problem: Problem,
    method: str,
    common: Mapping[str, Any],
    given: Mapping[str, Any],
    found: Estimate,
) -> dict[str, Any]:
    """All that shaped an estimate, the logs aside."""
    settings: dict[str, Any] = {
        "friction": problem.idim.friction,
        "rotor": problem.idim.rotor,
        "method": method,
        **common,
        **resolve_options(method, given),
        "prior": "none" if found.prior in (None, "none") else "nominal",  # as a study has it
        "prior_in_words": found.prior or "none",
        "sigma": [float(s) for s in found.sigma],
        "gravity": [float(g) for g in problem.robot.gravity],
        "robot_file": problem.robot.source.name if problem.robot.source else None,
    }
    if not problem.base.all_stated:
        settings["observed"] = [to_plain(type(each), each) for each in problem.base.observed]
    if given.get(CONSTRAINTS):
        settings[CONSTRAINTS] = [serialise_constraint(c) for c in given[CONSTRAINTS]]
    if SIMULATION in given:
        simulation: Simulation = given[SIMULATION]
        if found.fitted is not None:
            simulation = simulation.of_log(problem.samples[0])
        settings[SIMULATION] = simulation.settings()
    if found.essential is not None:
        names, test = problem.base.names, found.essential.test
        settings["eliminated"] = [names[k] for k in found.essential.eliminated]
        settings["essential_f_test"] = {
            "distribution": test.distribution,
            "statistic": test.statistic,
            "p_value": test.p_value,
        }
    return settings
