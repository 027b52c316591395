"""What of a fit to positions a model file has no place for, and what that costs in simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.errors import ComputationError
from dynident.core.words import format_number
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import Idim
from dynident.dynamics.whole import Model
from dynident.estimators.closed_loop import Simulation, measure_free_errors
from dynident.export.formats import Format
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem


def describe_export_cost(
    logs: Sequence[Samples],
    loop: Simulation,
    whole: Model,
    near: Model,
    form: Format,
    servos: bool = False,
) -> tuple[str, ...]:
    """The note on errors of free simulations of the whole model, and of what a file has of it.

    Parameters
    ----------
    logs : sequence of Samples
        Without torque, that were fitted.
    loop : Simulation
        As it was fitted.
    near : Model
        As simulators are given it.
    form : Format
        One that holds links.
    servos : bool
        Whether it has the law's, which bear offsets.

    Returns
    -------
    tuple of str
        None where all of the model is in the file.
    """
    theta, held = near.theta.copy(), (*(form.holds or ()), *(["off"] if servos else []))
    for k, parameter in enumerate(near.idim.parameters):
        if k >= near.idim.inertial and parameter.symbol not in held:
            theta[k] = 0.0
    if near is whole and np.array_equal(theta, whole.theta):
        return ()
    ours = simulate_overall_error(logs, loop, whole)
    words = (
        f"what the {form.name} cannot hold changes the error of free simulations of the fitted "
        "logs by"
    )
    try:
        theirs = simulate_overall_error(logs, loop, Model(near.idim, theta))
    except ComputationError as error:
        return (f"{words} more than can be computed: {error}",)
    return (
        f"{words} {theirs - ours:+.2g} mrad: {format_number(theirs, 3)} instead of "
        f"{format_number(ours, 3)}",
    )


def describe_loop_omissions(
    idim: Idim, names: Sequence[str], kind: str, servos: bool = False
) -> tuple[str, ...]:
    """The note on what was fitted of the law and the stand, which no file of a robot has.

    Parameters
    ----------
    names : sequence of str
        Of all that was fitted to positions.
    kind : str
        The format.
    servos : bool
        Whether it has the law's, with gains and biases.
    """
    own = {*idim.names, *(shape.name for shape in idim.shape_parameters)}
    there = ("gain", "bias") if servos else ()
    found = [n for n in names if n not in own and n.rstrip("0123456789") not in there]
    if not found:
        return ()
    return (
        f"not in the {kind}, but in result.json and in draws as npz or yaml, because it is of the "
        f"loop: {', '.join(found)}",
    )


def simulate_overall_error(logs: Sequence[Samples], loop: Simulation, model: Model) -> float:
    """Of all joints' positions in all logs, simulated freely from the first samples [mrad]."""
    problem = Problem.of(base_parameters(model.idim), tuple(logs))
    errors = measure_free_errors(problem, loop, model.theta, (None,))
    counts = [sum(stop - start for start, stop in log.runs) for log in logs]
    squares = [own.rms**2 for (own,) in errors]
    return 1e3 * float(np.sqrt(np.mean(np.average(squares, axis=0, weights=counts))))
