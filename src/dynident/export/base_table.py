"""Base parameters from a table: a paper's, or another program's."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.text import suggest_nearest
from dynident.dynamics.base import BaseParameters

COLUMNS = ("name", "value", "std")
LARGEST = 1e9
"""No base parameter is larger, in SI units."""
LEAST_STD = 1e-12
"""No standard deviation is smaller and not zero, in SI units."""


def read_base_table(path: str | Path, base: BaseParameters) -> tuple[Array, Array]:
    """Values and standard deviations of base parameters from a CSV file, shape (base parameters,).

    Its header is ``name,value`` or ``name,value,std``; names are those of `dynident base`, with or
    without the R of a regrouped one, values in SI units. Base parameters that are not in the table
    have an infinite standard deviation, those without one in the table zero.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: cannot be read ({reason})") from error
    header = [cell.strip() for cell in rows[0]] if rows else []
    if tuple(header) not in (COLUMNS, COLUMNS[:2]):
        raise InputError(f"{path}: its first line has to be 'name,value' or 'name,value,std'")
    beta, std = np.zeros(base.count), np.full(base.count, np.inf)
    names = {name: k for k, name in enumerate(base.names)}
    names |= {name.removesuffix("R"): k for name, k in names.items()}
    for line, cells in enumerate(rows[1:], start=2):
        if not cells:
            continue
        if len(cells) != len(header):
            raise InputError(f"{path}: line {line} has {len(cells)} cells, not {len(header)}")
        name = cells[0].strip()
        if name not in names:
            raise InputError(
                f"{path}: line {line}: {name!r} is not a base "
                f"parameter{suggest_nearest(name, base.names)}"
            )
        k = names[name]
        if np.isfinite(std[k]):
            raise InputError(f"{path}: line {line}: {name} is there twice")
        beta[k], std[k] = (parse_number(path, line, cell) for cell in (*cells[1:], "0")[:2])
        if std[k] < 0.0:
            raise InputError(f"{path}: line {line}: the std of {name} is negative")
        if 0.0 < std[k] < LEAST_STD:
            raise InputError(
                f"{path}: line {line}: the std of {name}, {std[k]:g}, is below {LEAST_STD:g}; "
                "check its unit, or give 0 where it is not known"
            )
    if not np.any(np.isfinite(std)):
        raise InputError(f"{path}: holds no base parameter")
    return beta, std


def parse_number(path: str | Path, line: int, cell: str) -> float:
    """A number of a cell, finite and at most `LARGEST`."""
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{path}: line {line}: {cell.strip()!r} is not a number")
    if abs(value) > LARGEST:
        raise InputError(
            f"{path}: line {line}: {cell.strip()} is more than {LARGEST:g}; check its unit"
        )
    return value
