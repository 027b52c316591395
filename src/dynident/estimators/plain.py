"""What an estimate has that plain data cannot hold as it is: constraints, covariances, loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynident.consistency.constraints import CONSTRAINTS, Constraint, serialise_constraint
from dynident.core.arrays import freeze_array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.plain import NOT_FINITE, Forms, PlainForm, from_plain, to_plain
from dynident.estimators.closed_loop import Simulation
from dynident.regression.covariance import Covariance
from dynident.regression.statistics import NO_RESIDUALS, Residuals


def put_constraint(constraint: Constraint) -> dict[str, Any]:
    """A constraint as a study has it."""
    found = serialise_constraint(constraint)
    if found["kind"] not in CONSTRAINTS:
        raise InputError(f"the constraint {type(constraint).__name__} has no form in a file")
    return {key: to_plain(Any, value) for key, value in found.items()}


def make_constraint(data: dict[str, Any]) -> Constraint:
    """A constraint of the form that a study has."""
    given = {key: to_tuples(value) for key, value in data.items() if key != "kind"}
    kind = data["kind"]
    refuse_unknown(kind, CONSTRAINTS, f"constraint {kind!r} is not known")
    return CONSTRAINTS[kind](**given)


def to_tuples(value: Any) -> Any:
    """Nested lists as tuples, with the numbers that JSON has no word for."""
    if isinstance(value, list):
        return tuple(to_tuples(each) for each in value)
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


def put_covariance(found: Covariance) -> dict[str, Any]:
    """A covariance with its matrix' lower triangle."""
    rows = found.matrix.tolist()
    return {
        "name": found.name,
        "matrix": [to_plain(Any, row[: k + 1]) for k, row in enumerate(rows)],
        "literature": to_plain(Any, found.literature),
    }


def make_covariance(data: dict[str, Any]) -> Covariance:
    """A covariance of its lower triangle."""
    rows = data["matrix"]
    if [len(row) for row in rows] != list(range(1, len(rows) + 1)):
        raise ValueError("it is not a lower triangle")
    full = np.zeros((len(rows), len(rows)))
    for k, row in enumerate(rows):
        full[k, : k + 1] = full[: k + 1, k] = np.array(row, dtype=float)
    literature = np.array(data["literature"], dtype=float)
    if literature.shape != (len(rows),):
        raise ValueError(f"literature has {literature.size} entries, its matrix {len(rows)}")
    return Covariance(data["name"], freeze_array(full), freeze_array(literature))


def put_simulation(simulation: Simulation) -> Any:
    """A loop without what is of one log: its references, and torques from outside."""
    return to_plain(Simulation, replace(simulation, references=None, external=None))


def make_simulation(data: Any) -> Simulation:
    """A loop of `put_simulation`."""
    found: Simulation = from_plain(Simulation, data, "simulation")
    return found


FORMS: Forms = {
    Covariance: PlainForm(put_covariance, make_covariance),
    Constraint: PlainForm(put_constraint, make_constraint),
    Simulation: PlainForm(put_simulation, make_simulation),
    Residuals: PlainForm(lambda _: None, lambda _: NO_RESIDUALS),
}
"""Residuals, row by row, are not kept."""
