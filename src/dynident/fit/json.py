"""result.json: what people and programs read of a fit, and behind it its whole state."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.files import DAMAGE, read_file
from dynident.core.inertia import find_smallest_eigenvalue, serialise_body
from dynident.core.plain import replace_nonfinite, to_plain
from dynident.core.schema import replace_file_names
from dynident.diagnosis.examine import Finding
from dynident.estimators.closed_loop import FreeError, SimulatedFigure
from dynident.estimators.estimate import DrivesEstimate, Estimate, ShapeEstimate
from dynident.fit.figures import FitFigure, compute_effort_percent, list_efforts
from dynident.fit.floor import Floor
from dynident.fit.parameters import (
    find_body_errors,
    list_base_parameters,
    list_drive_errors,
    list_sensor_parameters,
    serialise_body_errors,
)
from dynident.fit.result import Result, ValidationFigures
from dynident.fit.state import FORMS
from dynident.robot.model import Robot

SCHEMA = "dynident.result/1"
PACKED = ".xz"
"""Ending of a result that is packed, as those that the package carries."""


def serialise_result(result: Result, folder: Path | None = None) -> dict[str, Any]:
    """The object of result.json (schema ``dynident.result/1``).

    Parameters
    ----------
    folder : Path, optional
        Where it will stand: its names of files are as seen from there; the current directory.
    Numbers that are not finite become null, as JSON has no word for them.
    """
    folder = Path() if folder is None else folder
    document = {"schema": SCHEMA, **{key: tell(result) for key, tell in DOCUMENT.items()}}
    document["settings"] = serialise_settings(result, folder)
    cleaned: dict[str, Any] = replace_nonfinite(document)
    return {**cleaned, "state": serialise_state(result, folder)}


def serialise_settings(result: Result, folder: Path) -> dict[str, Any]:
    """All that shaped a result; the study's files as seen from a folder."""
    if result.study is None:
        return result.settings
    seen = replace_file_names(result.study, lambda name: relate_path(name, folder))
    return {**result.settings, "study": seen.model_dump(mode="json", exclude_none=True)}


def serialise_state(result: Result, folder: Path) -> dict[str, Any]:
    """All of a fit that comes back to the last bit when it is read.

    What differs between two runs of the same is beside it: the date, and seconds.
    """
    files = result.robot_files
    place = relate_path(files.folder, folder) if files.files else ""
    source = Path(files.files[0].name) if files.files else None
    idim = result.idim.of(replace(result.robot, source=source))
    told = replace(
        result,
        base=replace(result.base, idim=idim),
        robot_files=replace(files, folder=place),
        provenance=replace(result.provenance, date=""),
        timings={},
    )
    found: dict[str, Any] = to_plain(Result, told, FORMS)
    return found


def relate_path(path: str, folder: Path) -> str:
    """A file's name as seen from a folder."""
    return Path(os.path.relpath(path, folder)).as_posix()


def list_lower_triangle(matrix: Array) -> list[list[float]]:
    """The lower triangle of a symmetric matrix, row by row."""
    return [row[: k + 1] for k, row in enumerate(matrix.tolist())]


def serialise_finding(found: Finding) -> dict[str, Any]:
    """What is wrong with a log, and what repairs it."""
    return {
        "diagnosis": found.diagnosis,
        "log": found.log,
        "what": found.what,
        "against": found.against,
        "repair": found.remedy,
        "error_percent": found.before,
        "error_repaired_percent": found.after,
        "next_best": found.other,
    }


def serialise_restriction(estimate: Estimate) -> dict[str, Any] | None:
    """What the active constraints do, and whether the data contradict them."""
    found = estimate.restriction
    if found is None:
        return None
    multipliers = [{"name": name, "value": value} for name, value in found.multipliers]
    return {**asdict(found), "multipliers": multipliers}


def serialise_simulation(figure: SimulatedFigure) -> dict[str, Any]:
    """How well the simulated closed loop reproduces one log."""
    return {
        "log": figure.log,
        "position_rms": figure.position_rms.tolist(),
        "position_percent": figure.position_percent.tolist(),
        "torque_percent": figure.torque_percent.tolist(),
        "torque": figure.torque,
    }


def serialise_parameters(result: Result) -> list[dict[str, Any]]:
    """The base parameters with their errors; eliminated ones are zero without error."""
    return [
        {
            "name": row.name,
            "value": row.value,
            "std": row.std,
            "relative_std_percent": row.relative_percent,
            "interval_95": [row.low, row.high],
            "std_of_the_literature": row.literature_std,
            "regrouping": row.regrouping,
            "eliminated": not row.essential,
            "from_data": row.from_data,
        }
        for row in list_base_parameters(result)
    ]


def serialise_links(result: Result) -> list[dict[str, Any]] | None:
    """Each link's mass, centre of mass and inertia about it, in its joint frame."""
    if result.phi is None:
        return None
    gyrations = result.estimate.gyrations
    return [
        {
            "link": link,
            **serialise_body(phi),
            "min_eigenvalue": float(find_smallest_eigenvalue(phi)),
            "std": serialise_body_errors(std),
            "from_data": serialise_data_shares(result, k),
            "gyration": None if k >= len(gyrations) else asdict(gyrations[k]),
        }
        for k, (link, phi, std) in enumerate(
            zip(result.robot.links, result.phi, find_body_errors(result), strict=True)
        )
    ]


def serialise_data_shares(result: Result, body: int) -> dict[str, float] | None:
    """Shares of a link's inertials that the logs tell, and not the prior."""
    shares = result.estimate.informed
    if shares is None or not np.all(np.isfinite(shares[body])):
        return None
    mass, centre, inertia = shares[body].tolist()
    return {"mass": mass, "first_moment": centre, "inertia": inertia}


def serialise_shapes(found: ShapeEstimate | None) -> list[dict[str, Any]]:
    """Parameters that the torque is not linear in."""
    if found is None:
        return []
    rows = zip(found.names, found.values, found.std, strict=True)
    return [
        {"name": name, "value": float(v), "std": None if np.isnan(s) else float(s)}
        for name, v, s in rows
    ]


def serialise_fitted(found: DrivesEstimate | None) -> list[dict[str, Any]]:
    """Drives and loop that were fitted with the links fixed."""
    if found is None:
        return []
    rows = zip(found.names, found.units, found.values, found.std, strict=True)
    return [
        {"name": name, "unit": unit or None, "value": float(v), "std": float(s)}
        for name, unit, v, s in rows
    ]


def serialise_free_simulations(result: Result) -> list[dict[str, Any]]:
    """Errors of free simulations, held-out logs first."""
    names = result.robot.joint_names
    held_out = [(each.log, "validate", each.free) for each in result.validation]
    fitted = [(each.log, "identify", each.free) for each in result.simulated]
    return [
        {**serialise_free_error(names, error), "log": log, "use": use}
        for log, use, errors in (*held_out, *fitted)
        for error in errors
    ]


def serialise_free_error(names: Sequence[str], error: FreeError) -> dict[str, Any]:
    """Error of a free simulation [mrad or mm]."""
    return {
        "horizon_s": error.horizon,
        "rms_mrad": {n: 1e3 * float(e) for n, e in zip(names, error.rms, strict=True)},
        "overall_rms_mrad": error.overall_milli,
        "without": [
            {
                "rows": [own.start, own.stop],
                "seconds": [own.start / own.rate, own.stop / own.rate],
                "joints": list(own.joints),
            }
            for own in error.without
        ],
    }


def serialise_drive(drive: dict[str, float | None]) -> dict[str, Any]:
    """A joint's rotor inertia and friction; a coupled drive's own carry an m."""
    friction = {symbol: value for symbol, value in drive.items() if symbol not in ("Ia", "Iam")}
    row: dict[str, Any] = {"Ia": drive.get("Ia"), "friction": friction}
    if "Iam" in drive:
        row["Iam"] = drive["Iam"]
    return row


def serialise_figure(figure: FitFigure, robot: Robot) -> dict[str, Any]:
    """One set of torque errors."""
    efforts = list_efforts(robot)
    return {
        "rows": figure.rows,
        "lowpass_hz": figure.lowpass_hz,
        "joints": [
            {
                "name": j.name,
                "relative_error_percent": j.relative_percent,
                "rmse": j.rmse,
                "effort_percent": compute_effort_percent(j, efforts),
            }
            for j in figure.joints
        ],
        "overall_relative_error_percent": figure.overall_percent,
    }


def serialise_floor(found: Floor) -> dict[str, Any]:
    """What of a log's torque does not repeat."""
    return {
        "log": found.log,
        "against": found.against,
        "what": found.what,
        "lag_s": found.lag_s,
        "joints": [
            {"name": j.name, "percent": j.relative_percent, "rms": j.rmse} for j in found.joints
        ],
        "overall_percent": found.overall_percent,
        "repeating_percent": found.repeating_percent,
    }


def serialise_validation(figures: ValidationFigures, robot: Robot) -> dict[str, Any]:
    """Errors on one held-out log: of free simulations, where there are any, and of torque."""
    return {
        "free_simulation": [
            serialise_free_error(robot.joint_names, error) for error in figures.free
        ],
        "log": figures.log,
        "torque": figures.torque,
        "entries": [serialise_figure(f, robot) for f in figures.entries],
        "nominal": [serialise_figure(f, robot) for f in figures.nominal],
    }


DOCUMENT: dict[str, Callable[[Result], Any]] = {
    "free_simulation": serialise_free_simulations,
    "method": lambda r: r.method,
    "provenance": lambda r: {
        **asdict(r.provenance),
        "robot": {file.name: file.sha256 for file in r.robot_files.files},
        "robot_bytes": {file.name: len(file.content) for file in r.robot_files.files},
    },
    "verdict": lambda r: asdict(r.verdict),
    "findings": lambda r: [serialise_finding(found) for found in r.findings],
    "warnings": lambda r: list(r.warnings),
    "covariance": lambda r: r.estimate.covariance.name,
    "covariance_matrix": lambda r: list_lower_triangle(r.estimate.covariance.matrix),
    "fitted_covariance": lambda r: (
        None if r.estimate.fitted is None else list_lower_triangle(r.estimate.fitted.matrix)
    ),
    "prior_weight": lambda r: r.estimate.prior_weight,
    "base_count": lambda r: r.base.count,
    "rigid_body_count": lambda r: r.base.rigid_body_count,
    "essential_count": lambda r: None if r.essential is None else len(r.essential),
    "robot": lambda r: r.robot.identity,
    "equations": lambda r: [
        {**asdict(each), "base_count": count}
        for each, count in zip(r.base.observed, r.base.counts, strict=True)
    ],
    "borne_kg": lambda r: dict(r.contact_loads),
    "parameters": serialise_parameters,
    "shape": lambda r: serialise_shapes(r.estimate.shape),
    "springs": lambda r: [
        {**asdict(own), "supported": own.supported, "hysteresis": own.hysteresis}
        for own in r.springs
    ],
    "sensors": lambda r: [row._asdict() for row in list_sensor_parameters(r)],
    "fitted": lambda r: serialise_fitted(r.estimate.fitted),
    "track": lambda r: (
        None
        if (found := r.estimate.track) is None
        else {key: getattr(found, key).tolist() for key in ("time", "beta", "std")}
    ),
    "standard": serialise_links,
    "joints": lambda r: [
        {
            "name": name,
            **serialise_drive(r.drive_parameters(j)),
            "std": serialise_drive(dict(std)),
        }
        for j, (name, std) in enumerate(zip(r.robot.joint_names, list_drive_errors(r), strict=True))
    ],
    "fit": lambda r: {
        "torque": r.torque_source,
        "identification": [serialise_figure(f, r.robot) for f in r.identification],
        "nominal": [serialise_figure(f, r.robot) for f in r.nominal],
        "validation": [serialise_validation(figures, r.robot) for figures in r.validation],
    },
    "floor": lambda r: [serialise_floor(found) for found in r.floor],
    "whiteness": lambda r: [
        {"name": group.name, "p_value": group.whiteness.p_value} for group in r.residuals
    ],
    "consistent": lambda r: r.consistent,
    "min_pseudo_inertia_eigenvalue": lambda r: r.smallest_eigenvalue,
    "certificate": lambda r: (
        None if r.estimate.certificate is None else asdict(r.estimate.certificate)
    ),
    "active_constraints": lambda r: list(r.estimate.active),
    "restriction": lambda r: serialise_restriction(r.estimate),
    "tests": lambda r: [asdict(test) for test in r.estimate.tests],
    "singular_values": lambda r: (
        None if r.estimate.singular_values is None else r.estimate.singular_values.tolist()
    ),
    "simulation": lambda r: [serialise_simulation(figure) for figure in r.simulated],
    "iterations": lambda r: r.estimate.iterations,
    "converged": lambda r: True,  # an estimate that is none is an error
    "message": lambda r: r.estimate.message,
    "rank": lambda r: r.rank,
    "condition_number": lambda r: r.condition_number,
    "timings": lambda r: r.timings,
}
"""What result.json tells of a result beside its settings and its state, key by key."""


def read_document(path: Path) -> dict[str, Any]:
    """The object of a result.json, its state not looked at yet; a file may be packed by xz."""
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give the result.json in it")
    try:
        content = read_file(path)
        if path.suffix == PACKED:
            from lzma import decompress

            content = decompress(content)
        found = json.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except DAMAGE as error:
        raise InputError(f"{path}: is not JSON ({error})") from error
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        raise InputError(
            f"{path}: its schema is {schema!r}, expected {SCHEMA!r}; give the result.json of "
            "dynident identify"
        )
    if not isinstance(found.get("state"), dict):
        raise InputError(
            f"{path}: has no 'state', as results of earlier versions; make it again with "
            "dynident identify"
        )
    document: dict[str, Any] = found
    return document
