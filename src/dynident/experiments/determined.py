"""What each kind of equations determines, side by side: what a missing sensor costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.text import suggest_nearest
from dynident.core.words import format_entry, format_table
from dynident.dynamics.base import SAME, BaseParameters, base_parameters
from dynident.dynamics.equations import Observability
from dynident.dynamics.idim import Idim
from dynident.robot.model import EQUATIONS, Equations, Robot


@dataclass(frozen=True)
class DeterminedCombinations:
    """Combinations that all equations determine, and which of them some equations do."""

    base: BaseParameters
    """Of all equations."""
    kinds: tuple[str, ...]
    counts: tuple[int, ...]
    """Base parameters of each kind."""
    known: Array
    """Whether a kind determines a combination alone, shape (base parameters, kinds), of bool."""


def find_determined_parameters(idim: Idim, kinds: Sequence[str]) -> DeterminedCombinations:
    """What kinds of equations determine of a robot.

    Contacts bear unmeasured in the null space: all of them, and all but each one. `kinds`: of
    `EQUATIONS`.
    """
    robot = idim.robot
    every = base_parameters(idim)
    counts, known = [], []
    for kind in kinds:
        if kind not in EQUATIONS:
            raise InputError(f"rows {kind!r} are not known{suggest_nearest(kind, EQUATIONS)}")
        if kind == "base" and not robot.floating and not robot.sensed:
            raise InputError(
                "rows 'base' need a floating base, or a sensor; add --floating, or --sensor"
            )
        if kind == "null-space" and not robot.contacts:
            raise InputError("rows 'null-space' take --contact LINK, where the world acts")
        own = base_parameters(idim, observed=(build_observed_log(robot, kind),))
        counts.append(own.count)
        rows, space = every.matrix, np.linalg.qr(own.matrix.T)[0]
        missed = np.linalg.norm(rows - rows @ space @ space.T, axis=1)
        known.append(missed < SAME * np.linalg.norm(rows, axis=1))
    return DeterminedCombinations(every, tuple(kinds), tuple(counts), np.array(known).T)


def build_observed_log(robot: Robot, kind: Equations) -> Observability:
    """A log of one kind of equations that shows all that these can."""
    if kind != "null-space":
        return Observability(kind)
    names = tuple(contact.name for contact in robot.contacts)
    sets = {names, *combinations(names, max(1, len(names) - 1))}
    return Observability(kind, free=tuple(sorted(sets)))


def format_determined_table(found: DeterminedCombinations) -> str:
    """The combinations that a kind misses, with the kinds that determine them, and the counts."""
    names, regroupings = found.base.names, found.base.regroupings
    lost = np.flatnonzero(~found.known.all(axis=1)).tolist()
    columns = [
        (kind, ["yes" if found.known[i, k] else "-" for i in lost])
        for k, kind in enumerate(found.kinds)
    ]
    lines = [*format_table("missed by some", [names[i] for i in lost], columns), ""] if lost else []
    counted = ", ".join(f"{kind} {n}" for kind, n in zip(found.kinds, found.counts, strict=True))
    lines += format_entry("base parameters", counted)
    lines += format_entry(
        "by each kind", ", ".join(names[i] for i in range(len(names)) if i not in lost)
    )
    for i in lost:
        if regroupings[i] != names[i]:
            lines += format_entry(names[i], regroupings[i])
    return "\n".join(lines)


def serialise_determined(found: DeterminedCombinations) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "schema": "dynident.determined/1",
        "robot": {"name": found.base.idim.robot.name, "dof": found.base.idim.robot.dof},
        "counts": dict(zip(found.kinds, found.counts, strict=True)),
        "parameters": [
            {
                "name": name,
                "regrouping": text,
                **{kind: bool(own) for kind, own in zip(found.kinds, row, strict=True)},
            }
            for name, text, row in zip(
                found.base.names, found.base.regroupings, found.known, strict=True
            )
        ],
    }
