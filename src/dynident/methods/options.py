"""What each method can be told, read off its signature, and the call with it.

An estimator's parameters after the problem are families of options; a field of a family is an
option of the method. The simulation is one option as a whole. Searches are given the progress, and
what repeats the engine that it runs on.
Which base parameters are estimated is decided here, for all methods alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, get_type_hints

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import (
    ComputationError,
    InputError,
    OptionError,
    check_type,
    refuse_unknown,
)
from dynident.core.options import HUGE, Option, build_options, collect_options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.side_by_side import HERE, Engine
from dynident.core.text import suggest_nearest
from dynident.core.threads import limit_to_one_thread
from dynident.encoders.drives import DriveFitOptions, fits_drives
from dynident.estimators.closed_loop import Simulation
from dynident.estimators.essential import Elimination, choose_base_parameters
from dynident.estimators.estimate import Estimate, RoughEstimate, embed_estimate
from dynident.methods import ESTIMATORS, OWN_SHAPES, REDUCIBLE, ROUGHLY
from dynident.regression.problem import Problem

SIMULATION = "simulation"
"""The option that holds a whole `Simulation`."""
PROGRESS, ENGINE = "progress", "engine"
"""Parameters of estimators that are not options: they shape no result."""
LEAVING_OUT = tuple(collect_options([Elimination]))
"""Options by which base parameters are left out."""


@cache
def list_option_families(method: str) -> Mapping[str, type]:
    """Families of a method's options, by the parameters that take them."""
    estimator = ESTIMATORS[method]
    hints = get_type_hints(estimator)
    names = list(inspect.signature(estimator).parameters)[1:]
    return MappingProxyType({name: hints[name] for name in names if name not in (PROGRESS, ENGINE)})


@cache
def list_method_options(method: str) -> dict[str, Option]:
    """Options of a method that are plain values, by name."""
    own = [family for family in list_option_families(method).values() if family is not Simulation]
    return collect_options([*((Elimination,) if method in REDUCIBLE else ()), *own])


@cache
def list_option_names(method: str) -> tuple[str, ...]:
    """Names of all options of a method."""
    looped = Simulation in list_option_families(method).values()
    return (*((SIMULATION,) if looped else ()), *list_method_options(method))


def list_all_options() -> dict[str, Option]:
    """Options of all methods, by name."""
    return {
        name: option
        for method in ESTIMATORS
        for name, option in list_method_options(method).items()
    }


def list_methods_with_option(name: str) -> tuple[str, ...]:
    """Methods that have an option."""
    return tuple(method for method in ESTIMATORS if name in list_option_names(method))


def name_methods_with_option(name: str) -> str:
    """The same in words."""
    return name_methods(list_methods_with_option(name))


def name_methods(having: Sequence[str]) -> str:
    """Methods in words, constrained ones as one where all of them are among them."""
    if len(having) in (0, len(ESTIMATORS)):
        return "every method"
    constrained = [method for method in ESTIMATORS if method.startswith("pc-")]
    if not set(constrained) <= set(having):
        return ", ".join(having)
    return ", ".join([*(method for method in having if method not in constrained), "pc-*"])


PLAIN = {"bootstrap": 0, "covariance": "sandwich"}
"""Error bars that cost least."""


def switch_bootstrap_off(method: str) -> dict[str, Any]:
    """Options that spare a method its bootstrap, where its error bars need not be the best."""
    return {"bootstrap": 0} if "bootstrap" in list_option_names(method) else {}


def switch_error_bars_off(method: str) -> dict[str, Any]:
    """Options that spare a method its error bars, where only its estimate is asked for."""
    return {name: value for name, value in PLAIN.items() if name in list_option_names(method)}


def check_options(method: str, given: Mapping[str, object]) -> None:
    """Refuse unknown methods, options that a method does not have, and missing controllers.

    `given`: options; None is not given.
    """
    check_type("a method", method, str, "its name, as 'wls'")
    refuse_unknown(method, ESTIMATORS, f"method {method!r} is not known")
    for name, value in given.items():
        if value is None or name in list_option_names(method):
            continue
        having = list_methods_with_option(name)
        if not having:
            raise InputError(
                f"no method has an option {name!r}{suggest_nearest(name, list_all_options())}"
            )
        verb = "have" if len(having) > 1 else "has"
        words = f"method {method} has no option {name!r}; {', '.join(having)} {verb}"
        raise OptionError(name, words)
    if SIMULATION in list_option_names(method) and given.get(SIMULATION) is None:
        raise InputError(
            f"method {method} simulates the closed loop and needs its controller: add a "
            "[controller] section to the study (simulation=Simulation(controller) in Python)"
        )


def refuse_idle_engine(method: str, engine: Engine) -> None:
    """Refuse an engine, an `InputError`, for a method that has nothing to run on one."""
    if engine != HERE and not takes_engine(method):
        having = name_methods([each for each in ESTIMATORS if takes_engine(each)])
        raise InputError(
            f"method {method} has no repetitions for an engine; {having} have: leave out "
            "engine, workers and scheduler"
        )


def takes_engine(method: str) -> bool:
    """Whether a method has something to run on an engine."""
    return ENGINE in inspect.signature(ESTIMATORS[method]).parameters


UNLOOPED = ("static", "ml", "smooth", "gradient")
"""Methods that do not take robots with loops: most differentiate the motion."""


def fits_positions(problem: Problem, method: str, given: Mapping[str, Any]) -> bool:
    """Whether a method fits drives and loop to positions, the links as the robot file has them."""
    return method == "cloe" and fits_drives(problem, build_options(DriveFitOptions, given))


def refuse_loads(problem: Problem, method: str, given: Mapping[str, Any]) -> None:
    """Refuse friction under load, an `InputError`, with methods that simulate or follow shapes."""
    if not problem.idim.loaded or fits_positions(problem, method, given):
        return
    # a rotor that is regrouped into a link would count as its load; a tangent is of shapes alone
    if SIMULATION in list_option_names(method) or method in OWN_SHAPES:
        raise InputError(
            f"friction {problem.idim.friction!r} depends on the load of its drive, which follows "
            f"from the bodies: method {method} does not follow it; take wls or pc-idim-ls"
        )


def resolve_options(method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a method that are plain values, as they are unless given otherwise."""
    return {
        name: given.get(name, option.default)
        for name, option in list_method_options(method).items()
        if not option.in_python and given.get(name, option.default) is not None
    }


@limit_to_one_thread
def estimate(
    problem: Problem,
    method: str,
    progress: Progress = ignore_progress,
    engine: Engine = HERE,
    /,
    **options: Any,
) -> Estimate:
    """The estimate of a method, its options as plain keywords.

    Parameters
    ----------
    problem : Problem
    method : str
        Name in `dynident.methods.ESTIMATORS`.
    progress : callable
        See `Progress`; of methods that report any.
    engine : Engine
        What runs the bootstrap of a constrained method and the evaluations of ga and pf.
    **options
        See `list_option_names`; None is not given.

    Raises
    ------
    InputError
        For options that the method does not have or admit, an engine that it has nothing for, and
        friction that it does not follow.
    ComputationError
        When no trustworthy answer came out.
    """
    check_options(method, options)
    refuse_idle_engine(method, engine)
    refuse_loads(problem, method, options)
    if method in UNLOOPED:
        problem.robot.refuse_loops(f"method {method}")
    given = {name: value for name, value in options.items() if value is not None}
    elimination = build_options(Elimination, given)
    if elimination.acts:
        if fits_positions(problem, method, given):
            raise InputError(
                "only and essential choose base parameters, and cloe with links that are not free "
                "fits the drives: leave them out"
            )
        chosen = choose_base_parameters(problem, elimination)
        rest = {name: value for name, value in given.items() if name not in LEAVING_OUT}
        found = estimate(problem.only(chosen.kept), method, progress, engine, **rest)
        return embed_estimate(found, chosen, problem.base.count)
    arguments = {
        parameter: given[SIMULATION] if family is Simulation else build_options(family, given)
        for parameter, family in list_option_families(method).items()
    }
    lent = {PROGRESS: progress, ENGINE: engine}
    for name in lent.keys() & inspect.signature(ESTIMATORS[method]).parameters:
        arguments[name] = lent[name]
    return ESTIMATORS[method](problem, **arguments)


def refuse_absurd_estimate(found: Estimate) -> None:
    """Refuse what no log can have said: an estimate that diverged without a word."""
    values = np.concatenate([found.beta, found.sigma])
    if not np.all(np.isfinite(values)) or np.max(found.sigma) > HUGE:
        raise ComputationError(
            f"the fit diverged: its errors are {np.max(found.sigma):.3g} Nm or N; try another "
            "friction, start or method"
        )


@limit_to_one_thread
def estimate_roughly(
    problem: Problem, method: str, start: Array, /, **options: Any
) -> RoughEstimate:
    """The estimate of a method without error bars, its options as plain keywords.

    `start`: sigmas to begin with, for methods that iterate them, shape (groups,).
    """
    if method not in ROUGHLY or any(options.get(name) is not None for name in LEAVING_OUT):
        found = estimate(problem, method, **{**options, **switch_error_bars_off(method)})
        return RoughEstimate(found.beta, found.theta, found.sigma)
    check_options(method, options)
    given = {name: value for name, value in options.items() if value is not None}
    families = list_option_families(method)
    taken = list(inspect.signature(ROUGHLY[method]).parameters)[2:]
    arguments: dict[str, Any] = {name: build_options(families[name], given) for name in taken}
    return ROUGHLY[method](problem, start, **arguments)
