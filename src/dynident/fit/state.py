"""Forms of what plain data cannot hold as it is: models, constraints, loops, logs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynident.consistency.constraints import CONSTRAINTS, Constraint, serialise_constraint
from dynident.core.arrays import freeze_array
from dynident.core.errors import InputError
from dynident.core.plain import NOT_FINITE, Form, Forms, from_plain, to_plain
from dynident.core.schema import Spec
from dynident.core.text import suggest_nearest
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.equations import Observed
from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import Attached, attach
from dynident.estimators.closed_loop import Simulation
from dynident.fit.logs import Logs, LogsGone
from dynident.friction.elements import ELEMENTS
from dynident.regression.covariance import Covariance
from dynident.regression.statistics import NO_RESIDUALS, Residuals

GONE = "the logs of this fit are not at hand; read it where they are"


def put_element(element: Attached) -> dict[str, Any]:
    """An element as what it was made of."""
    if element.origin is None:
        raise InputError(
            f"the element of joint {element.joint + 1} cannot be stored, because it was not made "
            "by "
            "dynident.dynamics.parameters.attach, nor by an [[element]] of a study"
        )
    kind, given, before = element.origin
    return {
        "kind": kind,
        "joint": element.joint,
        "over": element.over,
        "ratio": element.ratio,
        "given": dict(given),
        "before": before,
    }


def make_element(data: dict[str, Any]) -> Attached:
    """An element of what it was made of."""
    if data["kind"] not in ELEMENTS:
        raise InputError(f"element {data['kind']!r} is not known")
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in data["given"].items()}
    return attach(data["joint"], data["kind"], given, data["over"], data["ratio"], data["before"])


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
    if kind not in CONSTRAINTS:
        raise InputError(f"constraint {kind!r} is not known{suggest_nearest(kind, CONSTRAINTS)}")
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
        raise ValueError("it is no lower triangle")
    full = np.zeros((len(rows), len(rows)))
    for k, row in enumerate(rows):
        full[k, : k + 1] = full[: k + 1, k] = np.array(row, dtype=float)
    literature = np.array(data["literature"], dtype=float)
    if literature.shape != (len(rows),):
        raise ValueError(f"literature has {literature.size} entries, its matrix {len(rows)}")
    return Covariance(data["name"], freeze_array(full), freeze_array(literature))


INNER: dict[Any, Form] = {Attached: Form(put_element, make_element)}


def put_model(idim: Idim) -> Any:
    """A model as plain data."""
    return to_plain(Idim, idim, INNER)


def make_model(data: Any) -> Idim:
    """A model of `put_model`."""
    found: Idim = from_plain(Idim, data, "model", INNER)
    return found


def put_base(base: BaseParameters) -> dict[str, Any]:
    """Base parameters with their model: what is kept, and each regrouping by name."""
    names = base.idim.names
    dropped = [names[k] for k in base.dropped]
    return {
        "model": put_model(base.idim),
        "kept": [names[k] for k in base.kept],
        "dropped": dropped,
        "K": [
            {dropped[j]: float(row[j]) for j in np.flatnonzero(row)} for row in np.asarray(base.K)
        ],
        "observed": to_plain(tuple[Observed, ...], base.observed),
    }


def make_base(data: dict[str, Any]) -> BaseParameters:
    """Base parameters of `put_base`."""
    idim = make_model(data["model"])
    place = {name: k for k, name in enumerate(idim.names)}
    kept, dropped = ([place[name] for name in data[key]] for key in ("kept", "dropped"))
    if sorted(kept + dropped) != list(range(len(idim.names))) or len(data["K"]) != len(kept):
        raise ValueError("what is kept and what is dropped are not the parameters of its model")
    column = {name: j for j, name in enumerate(data["dropped"])}
    K = np.zeros((len(kept), len(dropped)))
    for row, factors in zip(K, data["K"], strict=True):
        for name, factor in factors.items():
            row[column[name]] = factor
    observed = from_plain(tuple[Observed, ...], data["observed"], "observed")
    return BaseParameters(
        idim, np.array(kept, dtype=np.int64), np.array(dropped, dtype=np.int64), K, observed
    )


def put_simulation(simulation: Simulation) -> Any:
    """A loop without what is of one log: its references, and torques from outside."""
    return to_plain(Simulation, replace(simulation, references=None, external=None))


def make_simulation(data: Any) -> Simulation:
    """A loop of `put_simulation`."""
    found: Simulation = from_plain(Simulation, data, "simulation")
    return found


FORMS: Forms = {
    BaseParameters: Form(put_base, make_base),
    Covariance: Form(put_covariance, make_covariance),
    Constraint: Form(put_constraint, make_constraint),
    Simulation: Form(put_simulation, make_simulation),
    Residuals: Form(lambda _: None, lambda _: NO_RESIDUALS),
    Logs: Form(lambda _: None, lambda _: LogsGone(GONE)),
    Spec: Form(lambda _: None, lambda _: None),
}
"""Residuals, logs and the study are not of the state: the study is among the settings."""
