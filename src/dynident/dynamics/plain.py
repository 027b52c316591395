"""Models and base parameters as plain data: what files hold of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynident.core.errors import InputError
from dynident.core.plain import PlainForm, from_plain, to_plain
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.equations import Observability
from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import JointElements, attach
from dynident.friction.elements import ELEMENTS


def put_element(element: JointElements) -> dict[str, Any]:
    """An element as what it was made of."""
    if element.origin is None:
        raise InputError(
            f"the element of joint {element.joint + 1} cannot be stored, because it was not made "
            "by dynident.dynamics.parameters.attach, nor by an [[element]] of a study"
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


def make_element(data: dict[str, Any]) -> JointElements:
    """An element of what it was made of."""
    if data["kind"] not in ELEMENTS:
        raise InputError(f"element {data['kind']!r} is not known")
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in data["given"].items()}
    return attach(data["joint"], data["kind"], given, data["over"], data["ratio"], data["before"])


INNER: dict[Any, PlainForm] = {JointElements: PlainForm(put_element, make_element)}


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
        "observed": to_plain(tuple[Observability, ...], base.observed),
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
    observed = from_plain(tuple[Observability, ...], data["observed"], "observed")
    return BaseParameters(
        idim, np.array(kept, dtype=np.int64), np.array(dropped, dtype=np.int64), K, observed
    )
