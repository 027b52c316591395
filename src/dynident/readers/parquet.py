"""Parquet files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.text import format_one_line
from dynident.readers.table import Lazy, Table

CHUNK = 1 << 16
"""Rows read at a time, so that a long file never stands in memory twice."""


def read_parquet(path: Path) -> Table:
    """Read a Parquet file through pyarrow; columns that are no numbers are skipped."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(f"{path}: needs pyarrow; pip install dynident[parquet]") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            types = {field.name: str(field.type) for field in schema}
            numeric = re.compile(r"(double|float|halffloat|u?int)\d*")
            names = tuple(name for name, kind in types.items() if numeric.fullmatch(kind))
            twice = [name for name in names if schema.names.count(name) > 1]
            if twice:
                raise InputError(f"{path}: has column {twice[0]!r} twice; rename one")
            rows = file.metadata.num_rows
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _make_damage_error(path, error) from error
    others = (name for name in types if name not in names)
    skipped = tuple((name, f"holds {types[name]}, not numbers") for name in others)

    def take(wanted: Sequence[int]) -> Array:
        chosen = sorted(set(wanted))
        values = np.empty((rows, len(wanted)))
        stop = 0
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                own = [names[column] for column in chosen]
                for batch in file.iter_batches(batch_size=CHUNK, columns=own):
                    start, stop = stop, stop + batch.num_rows
                    for place, column in enumerate(wanted):
                        cells = batch.column(names[column]).cast(pyarrow.float64(), safe=False)
                        values[start:stop, place] = cells.to_numpy(zero_copy_only=False)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise _make_damage_error(path, error) from error
        if stop < rows:
            raise _make_damage_error(
                path, ValueError(f"{rows} rows are announced, {stop} are there")
            )
        return values

    return Table(path, names, Lazy((rows, len(names)), take), skipped=skipped)


def _make_damage_error(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path}: is not a Parquet file, or was cut off ({format_one_line(error)}); write it again"
    )
