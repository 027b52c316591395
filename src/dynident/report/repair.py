"""What a repair changed, as plain text and as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynident.inertia import to_com
from dynident.nearest import Repaired
from dynident.report.words import counted, entry, number, table
from dynident.robot.model import Robot


def repair_table(robot: Robot, found: Repaired) -> str:
    """Every link before and after, in lines of at most 80 columns."""
    masses = [phi[0] for phi in found.phi]
    columns = [
        ("mass before", [number(float(phi[0]), 4) for phi in robot.nominal]),
        ("after", [number(float(m), 4) for m in masses]),
        ("com moved mm", [number(1e3 * moved(a, b), 3) for a, b in zip(robot.nominal, found.phi)]),
        ("eigenvalue before", [number(float(v), 2) for v in found.before]),
        ("after", [number(float(v), 2) for v in found.after]),
        ("distance", [number(float(d), 2) for d in found.distance]),
    ]
    lines = table("link", robot.links, columns)
    changed = ", ".join(robot.links[k] for k in found.changed) or "none: all are consistent"
    proof = found.certificate
    lines += ["", *entry("changed", changed)]
    lines += entry(
        "certificate", f"primal {proof.primal:.1e}, dual {proof.dual:.1e}, gap {proof.gap:.1e}"
    )
    lines += entry(
        "distance", "in the metric; 1 is a link changed by its own size. "
        f"{counted(len(found.changed), 'link')} of {len(robot.links)} changed"
    )  # fmt: skip
    return "\n".join(lines)


def moved(before: np.ndarray, after: np.ndarray) -> float:
    """How far the centre of mass moved [m]; NaN of a body without mass."""
    if before[0] <= 0.0 or after[0] <= 0.0:
        return float("nan")
    return float(np.linalg.norm(after[1:4] / after[0] - before[1:4] / before[0]))


def repair_dict(robot: Robot, found: Repaired) -> dict[str, Any]:
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
            mass, com, i = to_com(found.phi[k])
            entries = [i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2]]
            row |= {
                "mass": mass,
                "com": [float(c) for c in com],
                "inertia_com": [float(e) for e in entries],
            }
        rows.append(row)
    proof = found.certificate
    return {
        "schema": "dynident.repair/1",
        "robot": {"name": robot.name, "joints": list(robot.joint_names), "dof": robot.dof},
        "changed": [robot.links[k] for k in found.changed],
        "standard": rows,
        "certificate": {"primal": proof.primal, "dual": proof.dual, "gap": proof.gap},
    }
