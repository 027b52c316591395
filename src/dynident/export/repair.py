"""Consistent inertials nearest to a robot file's or a table's, and what that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dynident.consistency.constraints import TotalMass
from dynident.consistency.feasible_set import FeasiblePoint
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.nearest import (
    RepairedBodies,
    build_measured_system,
    describe_base_shift,
    nearest_consistent,
    nearest_to_base,
)
from dynident.core.arrays import Array
from dynident.core.files import refuse_outputs
from dynident.core.inertia import find_smallest_eigenvalue, serialise_body
from dynident.core.options import collect_options
from dynident.core.text import format_count
from dynident.core.words import format_entry, format_number, format_table
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import FRICTION, build_idim
from dynident.export.base_table import read_base_table
from dynident.export.urdf import render_standard_urdf, render_urdf
from dynident.robot.mjcf import list_model_files
from dynident.robot.model import Robot

NEAREST = {"metric": collect_options([Knowledge])["metric"]}
"""What says which inertials are the nearest."""
Answer = tuple[bytes, tuple[str, ...], dict[str, Any], str]
"""A URDF with notes on it, and what to print, as data and as text."""


def build_knowledge(mass: float | None, **options: Any) -> Knowledge:
    """What is known of the inertials: the moving links' total mass [kg], and the metric."""
    return Knowledge(constraints=() if mass is None else (TotalMass(mass),), **options)


def repair_robot_file(model: Robot, mass: float | None = None, **options: Any) -> Answer:
    """A robot file with the consistent inertials nearest to its own."""
    knowledge = build_knowledge(mass, **options)
    found = nearest_consistent(
        model,
        metric=knowledge.chosen_metric,
        constraints=knowledge.constraints,
        gyrations=knowledge.gyrations(model),
    )
    return (
        *render_urdf(model, found.phi),
        serialise_repair(model, found),
        format_repair(model, found),
    )


def repair_base_table(
    model: Robot, table: Path, friction: str | None, mass: float | None = None, **options: Any
) -> Answer:
    """A robot file with the consistent parameters nearest to a table of base parameters."""
    base = base_parameters(build_idim(model, friction or FRICTION))
    beta, std = read_base_table(table, base)
    point = nearest_to_base(base, beta, std, build_knowledge(mass, **options))
    assert point.theta is not None
    return (
        *render_standard_urdf(base.idim, point.theta),
        serialise_base_repair(base, beta, std, point),
        format_base_repair(base, beta, std, point),
    )


def refuse_model_files(outputs: Sequence[Path], model: Robot) -> None:
    """Refuse to write over files that a robot came from."""
    refuse_outputs(outputs, list_model_files(model))


def format_repair(robot: Robot, found: RepairedBodies) -> str:
    """Every link before and after, in lines of at most 80 columns."""
    masses = [phi[0] for phi in found.phi]
    columns = [
        ("mass before", [format_number(float(phi[0]), 4) for phi in robot.nominal]),
        ("after", [format_number(float(m), 4) for m in masses]),
        (
            "com moved mm",
            [
                format_number(1e3 * measure_com_shift(a, b), 3)
                for a, b in zip(robot.nominal, found.phi)
            ],
        ),
        ("eigenvalue before", [format_number(float(v), 2) for v in found.before]),
        ("after", [format_number(float(v), 2) for v in found.after]),
        ("distance", [format_number(float(d), 2) for d in found.distance]),
    ]
    lines = format_table("link", robot.links, columns)
    changed = ", ".join(robot.links[k] for k in found.changed) or "none: all are consistent"
    lines += ["", *format_entry("changed", changed)]
    lines += format_entry("certificate", found.certificate.words)
    lines += format_entry(
        "distance", "in the metric; 1 is a link changed by its own size. "
        f"{format_count(len(found.changed), 'link')} of {len(robot.links)} changed"
    )  # fmt: skip
    return "\n".join(lines)


def format_base_repair(base: BaseParameters, given: Array, std: Array, point: FeasiblePoint) -> str:
    """Base parameters of a table and of the consistent links nearest to them."""
    weight = np.diag(build_measured_system(given, std).A)
    known = np.isfinite(std)
    columns = [
        ("given", [format_number(float(v)) if k else "" for v, k in zip(given, known)]),
        ("std", [format_number(1.0 / float(w), 3) if k else "" for w, k in zip(weight, known)]),
        ("consistent", [format_number(float(v)) for v in point.beta]),
        ("moved sigma", [f"{abs(b - g) * w:.2f}" if k else ""
                         for b, g, w, k in zip(point.beta, given, weight, known)]),
    ]  # fmt: skip
    lines = [*format_table("base parameter", base.names, columns), ""]
    lines += format_entry("repaired", describe_base_shift(base, given, std, point.beta))
    lines += format_entry("certificate", point.solution.certificate.words)
    return "\n".join(lines)


def serialise_base_repair(
    base: BaseParameters, given: Array, std: Array, point: FeasiblePoint
) -> dict[str, Any]:
    """The same as the object that ``--json`` prints."""
    assert point.theta is not None
    robot, idim = base.idim.robot, base.idim
    phis, drives = idim.split(point.theta)
    return {
        "schema": "dynident.repair/1",
        "robot": robot.identity,
        "parameters": [
            {"name": name, "given": float(g) if np.isfinite(s) else None, "value": float(b)}
            for name, g, s, b in zip(base.names, given, std, point.beta, strict=True)
        ],
        "standard": [
            {
                "link": link,
                "min_eigenvalue": float(find_smallest_eigenvalue(phi)),
                **serialise_body(phi),
            }
            for link, phi in zip(robot.links, phis, strict=True)
        ],
        "drives": {p.name: float(value) for p, value in zip(idim.drives, drives, strict=True)},
        "certificate": asdict(point.solution.certificate),
    }


def measure_com_shift(before: np.ndarray, after: np.ndarray) -> float:
    """How far the centre of mass moved [m]; NaN of a body without mass."""
    if before[0] <= 0.0 or after[0] <= 0.0:
        return float("nan")
    return float(np.linalg.norm(after[1:4] / after[0] - before[1:4] / before[0]))


def serialise_repair(robot: Robot, found: RepairedBodies) -> dict[str, Any]:
    """The same as the object that ``--json`` prints."""
    rows = []
    for k, link in enumerate(robot.links):
        row: dict[str, Any] = {
            "link": link,
            "distance": float(found.distance[k]),
            "min_eigenvalue_before": float(found.before[k]),
            "min_eigenvalue": float(found.after[k]),
        }
        if found.phi[k][0] > 0.0:
            row |= serialise_body(found.phi[k])
        rows.append(row)
    return {
        "schema": "dynident.repair/1",
        "robot": robot.identity,
        "changed": [robot.links[k] for k in found.changed],
        "standard": rows,
        "certificate": asdict(found.certificate),
    }
