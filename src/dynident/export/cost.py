"""What of a fit to positions a model file has no place for, and what that costs in simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.words import format_number
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import Idim
from dynident.dynamics.whole import WholeModel
from dynident.estimators.closed_loop import Simulation, measure_free_errors
from dynident.export.formats import Format
from dynident.export.stand_in import follow_log
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem


def describe_export_cost(
    logs: Sequence[GeneralisedSamples],
    loop: Simulation,
    whole: WholeModel,
    near: WholeModel,
    form: Format,
    law: Sequence[str] = (),
) -> tuple[str, ...]:
    """The note on errors of free simulations of the whole model, and of what a file has of it.

    Parameters
    ----------
    logs : sequence of Samples
        Without torque, that were fitted.
    loop : Simulation
        As it was fitted.
    near : WholeModel
        As simulators are given it.
    form : Format
        One that holds links.
    law : sequence of str
        What it has of the law, which may bear offsets.

    Returns
    -------
    tuple of str
        None where all of the model is in the file.
    """
    theta = keep_held(near, form, law)
    if near is whole and np.array_equal(theta, whole.theta):
        return ()
    ours = simulate_overall_error(logs, loop, whole)
    words = (
        f"what the {form.name} cannot hold changes the error of free simulations of the fitted "
        "logs by"
    )
    try:
        theirs = simulate_overall_error(logs, loop, WholeModel(near.idim, theta))
    except ComputationError as error:
        return (f"{words} more than can be computed: {error}",)
    return (
        f"{words} {theirs - ours:+.2g} mrad: {format_number(theirs, 3)} instead of "
        f"{format_number(ours, 3)}",
    )


def keep_held(near: WholeModel, form: Format, law: Sequence[str] = ()) -> Array:
    """Parameters with zeros for those of the drives that a format has no place for."""
    theta, held = near.theta.copy(), (*(form.holds or ()), *law)
    for k, parameter in enumerate(near.idim.parameters):
        if k >= near.idim.inertial and parameter.symbol not in held:
            theta[k] = 0.0
    return theta


def describe_torque_cost(
    logs: Callable[[], Sequence[GeneralisedSamples]],
    whole: WholeModel,
    near: WholeModel,
    form: Format,
) -> tuple[str, ...]:
    """The note on the torques of the fitted motion that are not in a file.

    Parameters
    ----------
    logs : callable
        Gives the logs, which are not read where nothing is left out.
    near : WholeModel
        As simulators are given it.
    form : Format
        One that holds links.

    Returns
    -------
    tuple of str
        None where all of the model is in the file, or where its friction asks for more than a
        motion.
    """
    idim, theta = whole.idim, keep_held(near, form)
    same = near is whole and np.array_equal(theta, whole.theta)
    if same or idim.needs - {"load"}:
        return ()
    held = WholeModel(near.idim, theta)
    left, all_of_it, count = np.zeros(idim.robot.n), 0.0, 0
    first = idim.tree.dof - idim.robot.n
    stretches = (follow_log(whole, log) for log in logs())
    for q, dq, ddq, met in chain.from_iterable(stretches):
        tau = idim.torque(whole.theta, q, dq, ddq, conditions=met)[:, first:]
        left += np.sum((tau - held.inverse_dynamics(q, dq, ddq)[:, first:]) ** 2, axis=0)
        all_of_it, count = all_of_it + float(np.sum(tau**2)), count + len(tau)
    rms, worst = np.sqrt(left / count), int(np.argmax(left))
    unit = "Nm" if idim.robot.joints[worst].kind == "revolute" else "N"
    most = f"most at {idim.robot.joint_names[worst]}: {format_number(rms[worst], 2)} {unit} rms"
    words = f"what the {form.name} cannot hold of the torques along the fitted motion is"
    if idim.robot.floating:  # what its contacts bear is not in the model's torques
        return (f"{words} {most}",)
    share = 100.0 * np.sqrt(np.sum(left) / all_of_it)
    return (f"{words} {format_number(share, 2)} % of them, {most}",)


def describe_loop_omissions(
    idim: Idim, names: Sequence[str], kind: str, law: Sequence[str] = ()
) -> tuple[str, ...]:
    """The note on what was fitted of the law and the stand, which no file of a robot has.

    Parameters
    ----------
    names : sequence of str
        Of all that was fitted to positions.
    kind : str
        The format.
    law : sequence of str
        What it has of the law.
    """
    own = {*idim.names, *(shape.name for shape in idim.shape_parameters)}
    found = [n for n in names if n not in own and n.rstrip("0123456789") not in law]
    if not found:
        return ()
    return (
        f"parameters of the loop are in result.json and in draws as npz or yaml, not in the "
        f"{kind}: {', '.join(found)}",
    )


def simulate_overall_error(
    logs: Sequence[GeneralisedSamples], loop: Simulation, model: WholeModel
) -> float:
    """Of all joints' positions in all logs, simulated freely from the first samples [mrad]."""
    problem = Problem.of(base_parameters(model.idim), tuple(logs))
    errors = measure_free_errors(problem, loop, model.theta, (None,))
    counts = [sum(stop - start for start, stop in log.runs) for log in logs]
    squares = [own.rms**2 for (own,) in errors]
    return 1e3 * float(np.sqrt(np.mean(np.average(squares, axis=0, weights=counts))))
