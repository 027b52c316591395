"""Parquet files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.readers.table import Lazy, Table, refuse_damage

NUMERIC = re.compile(r"(double|float|halffloat|u?int)\d*")
CHUNK = 1 << 16
"""Rows read at a time, so that a long file never stands in memory twice."""


def read_parquet(path: Path) -> Table:
    """Read a Parquet file through pyarrow; columns that are no numbers are skipped."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(f"{path}: needs pyarrow; pip install dynident[parquet]") from error
    damage = partial(
        refuse_damage, path, "is not a Parquet file, or was cut off", "write it again",
        (pyarrow.ArrowException, OSError, ValueError),
    )  # fmt: skip
    with damage(), pyarrow.parquet.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    types = {field.name: str(field.type) for field in schema}
    names = tuple(name for name, kind in types.items() if NUMERIC.fullmatch(kind))
    twice = [name for name in names if schema.names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: has column {twice[0]!r} twice; rename one")
    others = (name for name in types if name not in names)
    skipped = tuple((name, f"holds {types[name]}, not numbers") for name in others)

    def take(wanted: Sequence[int]) -> Array:
        own = [names[column] for column in sorted(set(wanted))]
        values = np.empty((rows, len(wanted)))
        stop = 0
        with damage(), pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=CHUNK, columns=own):
                start, stop = stop, stop + batch.num_rows
                for place, column in enumerate(wanted):
                    cells = batch.column(names[column]).cast(pyarrow.float64(), safe=False)
                    values[start:stop, place] = cells.to_numpy(zero_copy_only=False)
            if stop < rows:
                raise ValueError(f"{rows} rows are announced, {stop} are there")
        return values

    return Table(path, names, Lazy((rows, len(names)), take), skipped=skipped)
