"""Links, drives and base parameters of a result as data frames of pandas, all in SI units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.core.errors import InputError, name_missing_package
from dynident.core.inertia import find_smallest_eigenvalue, measure_least_gyration, serialise_body
from dynident.fit.parameters import (
    find_body_errors,
    list_base_parameters,
    list_drive_errors,
    list_file_parameters,
)
from dynident.fit.result import Result

if TYPE_CHECKING:
    from pandas import DataFrame

BODY = ("mass", "com_x", "com_y", "com_z", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Entries of a link: mass, centre of mass, and inertia about it in the joint frame's axes."""
DATA = ("mass_from_data", "com_from_data", "inertia_from_data")


def tabulate_links(result: Result) -> dict[str, list[float]]:
    """Columns of `Fit.links`, a value a link."""
    if result.phi is None:
        raise InputError(
            f"{result.bare} gives base parameters only, so there are no links; identify with "
            "pc-idim-ls, or take to_frame() for the base parameters"
        )
    std, file = find_body_errors(result), result.robot.nominal
    found = list_body_entries(result.phi)
    nominal = list_body_entries([phi if phi[0] > 0.0 else None for phi in file])
    columns: dict[str, list[float]] = {}
    for k, entry in enumerate(BODY):
        columns[entry] = found[k]
        columns[f"{entry}_std"] = std[:, k].tolist()
        columns[f"{entry}_file"] = nominal[k]
    shares = result.estimate.informed
    for k, name in enumerate(DATA):
        columns[name] = [math.nan] * len(std) if shares is None else shares[:, k].tolist()
    radii = [measure_least_gyration(phi) for phi in result.phi]
    least = [each.radius for each in result.estimate.gyrations] or [math.nan] * len(std)
    columns["gyration"] = [math.nan if radius is None else radius for radius in radii]
    columns["least_gyration"] = least
    columns["min_eigenvalue"] = find_smallest_eigenvalue(result.phi).tolist()
    return columns


def list_body_entries(bodies: Sequence[Any] | np.ndarray) -> list[list[float]]:
    """The entries of `BODY`, each of all bodies; NaN of what is None."""
    rows = []
    for phi in bodies:
        if phi is None:
            rows.append([math.nan] * len(BODY))
            continue
        told = serialise_body(phi)
        rows.append([told["mass"], *told["com"], *told["inertia_com"]])
    return [list(column) for column in zip(*rows, strict=True)]


def tabulate_drive_values(result: Result) -> dict[str, list[float]]:
    """Columns of `Fit.drives`, a value a joint."""
    n, idim, found = result.robot.n, result.idim, result.estimate.shape
    values = [dict(result.drive_parameters(j)) for j in range(n)]
    errors = [dict(own) for own in list_drive_errors(result)]
    known = {} if found is None else dict(zip(found.names, found.std, strict=True))
    for each, value in zip(idim.shape_parameters, idim.shape, strict=True):
        joint, symbol = each.parameter.number - 1, each.parameter.symbol
        values[joint][symbol] = float(value)
        errors[joint][symbol] = float(known.get(each.name, math.nan))
    columns: dict[str, list[float]] = {}
    for symbol in dict.fromkeys(symbol for own in values for symbol in own):
        told = [own.get(symbol) for own in values]
        columns[symbol] = [math.nan if value is None else value for value in told]
        columns[f"{symbol}_std"] = [own.get(symbol, math.nan) for own in errors]
    return columns


def tabulate_base_parameters(result: Result) -> dict[str, list[Any]]:
    """Columns of `Fit.to_frame`, a value a base parameter."""
    rows, file = list_base_parameters(result), list_file_parameters(result)
    return {
        "value": [row.value for row in rows],
        "std": [row.std for row in rows],
        "low": [row.low for row in rows],
        "high": [row.high for row in rows],
        "file": [row.value for row in file],
        "from_data": [row.from_data for row in rows],
        "unit": [row.unit for row in file],
        "combination": [row.regrouping for row in rows],
        "essential": [row.essential for row in rows],
    }


def build_frame(columns: Mapping[str, Sequence[Any]], index: Sequence[str], name: str) -> DataFrame:
    """A data frame of columns, its rows by names."""
    with name_missing_package("a data frame needs pandas; pip install pandas"):
        from pandas import DataFrame, Index
    return DataFrame(dict(columns), index=Index(index, name=name))
