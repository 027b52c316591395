"""result.json: an identification as plain data, and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import InputError
from dynident.identification import Identification
from dynident.idim import Idim
from dynident.inertia import Array, from_com, to_com
from dynident.statistics import confidence_interval, whiteness
from dynident.validation import FitFigure

SCHEMA = "dynident.result/1"


def result_dict(result: Identification) -> dict[str, Any]:
    """The object of result.json (schema ``dynident.result/1``).

    Numbers that are not finite become null, as JSON has no word for them.
    """
    estimate = result.estimate
    certificate = estimate.certificate
    document = {
        "schema": SCHEMA,
        "method": result.method,
        "settings": result.settings,
        "warnings": list(result.warnings),
        "covariance": estimate.covariance.name,
        "base_count": result.base.count,
        "rigid_body_count": result.base.rigid_body_count,
        "essential_count": None if result.essential is None else len(result.essential),
        "robot": {
            "name": result.robot.name,
            "joints": list(result.robot.joint_names),
            "dof": result.robot.dof,
        },
        "parameters": parameter_rows(result),
        "standard": standard_rows(result),
        "joints": [
            joint_row(name, result.drive_parameters(j))
            for j, name in enumerate(result.robot.joint_names)
        ],
        "fit": {
            "identification": [figure_dict(f) for f in result.identification],
            "nominal": [figure_dict(f) for f in result.nominal],
            "validation": [
                {
                    "log": held.log,
                    "entries": [figure_dict(f) for f in held.entries],
                    "nominal": [figure_dict(f) for f in held.nominal],
                }
                for held in result.validation
            ],
        },
        "whiteness": [
            {"name": name, "p_value": whiteness(error).p_value}
            for name, error in zip(result.robot.joint_names, estimate.residuals.error, strict=True)
        ],
        "consistent": result.consistent,
        "min_pseudo_inertia_eigenvalue": result.smallest_eigenvalue,
        "certificate": None
        if certificate is None
        else {"primal": certificate.primal, "dual": certificate.dual, "gap": certificate.gap},
        "active_constraints": list(estimate.active),
        "iterations": estimate.iterations,
        "converged": estimate.converged,
        "message": estimate.message,
        "rank": result.rank,
        "condition_number": result.condition_number,
        "timings": result.timings,
    }
    cleaned: dict[str, Any] = finite(document)
    return cleaned


def parameter_rows(result: Identification) -> list[dict[str, Any]]:
    """The base parameters with their errors; eliminated ones are zero without error."""
    base, estimate = result.base, result.estimate
    std = estimate.covariance.std
    low, high = confidence_interval(estimate.beta, std)
    kept = range(base.count) if result.essential is None else result.essential
    return [
        {
            "name": base.names[k],
            "value": float(estimate.beta[k]),
            "std": float(std[k]),
            "relative_std_percent": 100.0 * float(std[k]) / abs(float(estimate.beta[k]))
            if estimate.beta[k]
            else None,
            "interval_95": [float(low[k]), float(high[k])],
            "std_of_the_literature": float(estimate.covariance.seed[k]),
            "regrouping": base.regroupings[k],
            "eliminated": k not in kept,
        }
        for k in range(base.count)
    ]


def standard_rows(result: Identification) -> list[dict[str, Any]] | None:
    """Each link's mass, centre of mass and inertia about it, in its joint frame."""
    if result.phi is None:
        return None
    rows = []
    for link, phi in zip(result.robot.links, result.phi, strict=True):
        mass, com, i = to_com(phi)
        entries = [i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2]]
        rows.append(
            {
                "link": link,
                "mass": mass,
                "com": [float(c) for c in com],
                "inertia_com": [float(e) for e in entries],
            }
        )
    return rows


def joint_row(name: str, drive: dict[str, float | None]) -> dict[str, Any]:
    """A joint's rotor inertia and friction; a coupled drive's own carry an m."""
    friction = {symbol: value for symbol, value in drive.items() if symbol not in ("Ia", "Iam")}
    row: dict[str, Any] = {"name": name, "Ia": drive.get("Ia"), "friction": friction}
    if "Iam" in drive:
        row["Iam"] = drive["Iam"]
    return row


def figure_dict(figure: FitFigure) -> dict[str, Any]:
    """One set of torque errors."""
    return {
        "rows": figure.rows,
        "lowpass_hz": figure.lowpass_hz,
        "joints": [
            {"name": j.name, "relative_error_percent": j.relative_percent, "rmse": j.rmse}
            for j in figure.joints
        ],
        "overall_relative_error_percent": figure.overall_percent,
    }


def finite(value: Any) -> Any:
    """Plain data without NaN or infinity."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if isinstance(value, np.floating | float):
        return float(value) if math.isfinite(value) else None
    return value


def to_json(document: dict[str, Any]) -> str:
    """Text of a JSON document, ending in a newline."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


@dataclass(frozen=True)
class StoredResult:
    """What other commands need of a result.json.

    Attributes
    ----------
    path : Path
    document : dict
    """

    path: Path
    document: dict[str, Any]

    def part(self, *keys: str) -> Any:
        """An entry of the document.

        Raises
        ------
        InputError
            When it is missing.
        """
        value: Any = self.document
        for depth, key in enumerate(keys):
            if not isinstance(value, dict) or key not in value:
                raise InputError(
                    f"{self.path}: {'.'.join(keys[: depth + 1])} is missing; "
                    "is this a result of dynident identify?"
                )
            value = value[key]
        return value

    def theta(self, idim: Idim, kept: np.ndarray) -> Array:
        """Standard parameters with the stored model's torques.

        Parameters
        ----------
        idim : Idim
            The model, rebuilt from the stored settings.
        kept : ndarray of int
            Standard parameters that its base parameters keep.

        Raises
        ------
        InputError
            When the stored parameters do not fit the model.
        """
        theta = np.zeros(len(idim.parameters))
        standard = self.part("standard")
        if standard is None:
            values = {
                row["name"].removesuffix("R"): row["value"] for row in self.part("parameters")
            }
            names = [idim.names[k] for k in kept]
            if sorted(values) != sorted(names):
                raise InputError(f"{self.path}: its parameters do not fit the robot's model")
            theta[kept] = [values[name] for name in names]
            return theta
        phi = self.phi()
        if len(phi) * 10 != idim.inertial:
            raise InputError(f"{self.path}: has {len(phi)} links, the robot has other ones")
        theta[: idim.inertial] = phi.ravel()
        joints = self.part("joints")
        for index, parameter in enumerate(idim.parameters[idim.inertial :], start=idim.inertial):
            row = joints[parameter.number - 1]
            stored = {"Ia": row["Ia"], "Iam": row.get("Iam"), **row["friction"]}
            if stored.get(parameter.symbol) is None:
                raise InputError(f"{self.path}: has no {parameter.name}")
            theta[index] = stored[parameter.symbol]
        return theta

    def phi(self) -> Array:
        """Inertial parameters of the stored links, shape (bodies, 10).

        Raises
        ------
        InputError
            When the result has base parameters only.
        """
        standard = self.part("standard")
        if standard is None:
            raise InputError(
                f"{self.path}: holds base parameters only ({self.part('method')}), which no model "
                "file can hold; identify with pc-idim-ls"
            )
        return np.array([from_row(row) for row in standard])


def from_row(row: dict[str, Any]) -> Array:
    """10-vector of a stored link."""
    xx, xy, yy, xz, yz, zz = row["inertia_com"]
    return from_com(row["mass"], row["com"], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def read_result(path: Path) -> StoredResult:
    """Read a result.json.

    Raises
    ------
    InputError
        When it is missing, not JSON, or of another schema.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: is not JSON ({error})") from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        raise InputError(f"{path}: its schema is {found!r}, expected {SCHEMA!r}")
    return StoredResult(path, document)
