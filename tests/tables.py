"""Logs as CSV files, written quickly and to the last digit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from dynident.core.arrays import Array


def write_table(path: Path | str, names: Sequence[str], *columns: Array) -> None:
    """Columns, one beside another, under their names; the shortest digits that give each back."""
    table = np.column_stack(columns)
    pl.DataFrame(table, schema=list(names), orient="row").write_csv(path)


def write_columns(path: Path | str, columns: Mapping[str, Array]) -> None:
    """Columns by name."""
    write_table(path, list(columns), *columns.values())


def write_joints(path: Path | str, joints: Sequence[str], rate: float, **signals: Array) -> None:
    """Time, and signals of joints: ``q_NAME`` and what else there is."""
    columns = {"time": np.arange(len(next(iter(signals.values())))) / rate}
    for signal, values in signals.items():
        columns |= {f"{signal}_{name}": own for name, own in zip(joints, values.T, strict=True)}
    write_columns(path, columns)
