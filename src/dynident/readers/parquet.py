"""Parquet files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.readers.table import MOST_COLUMNS, Lazy, Table, refuse_damage

NUMERIC = re.compile(r"(double|float|halffloat|u?int)\d*")
LIST = re.compile(r"(?:fixed_size_)?list<\w+: (\w+)(?: not null)?>(?:\[\d+\])?")
CHUNK = 1 << 16
"""Rows read at a time, so that a long file never stands in memory twice."""


def read_parquet(path: Path) -> Table:
    """Read a Parquet file through pyarrow; columns that are no numbers are skipped.

    A column ``key`` of lists of n numbers becomes ``key_1 ... key_n``.
    """
    try:
        import pyarrow
        import pyarrow.compute
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
        lists = [name for name, kind in types.items() if _holds_lists(kind)]
        first = next(file.iter_batches(batch_size=1, columns=lists), None) if lists else None
        widths = {name: len(first[name][0] or ()) for name in lists} if first is not None else {}
    widths = {name: width for name, width in widths.items() if 0 < width <= MOST_COLUMNS}
    spots: list[tuple[str, str, int | None]] = []  # what a column is called, and where it stands
    for name, kind in types.items():
        if NUMERIC.fullmatch(kind):
            spots.append((name, name, None))
        spots += [(f"{name}_{k + 1}", name, k) for k in range(widths.get(name, 0))]
    names = tuple(called for called, _, _ in spots)
    twice = [name for name in names if names.count(name) > 1 or schema.names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: has column {twice[0]!r} twice; rename one")
    read = {name for _, name, _ in spots}
    others = (name for name in types if name not in read)
    skipped = tuple((name, f"holds {types[name]}, not numbers") for name in others)

    def take(wanted: Sequence[int]) -> Array:
        own = list(dict.fromkeys(spots[column][1] for column in sorted(set(wanted))))
        values = np.empty((rows, len(wanted)))
        stop = 0
        with damage(), pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=CHUNK, columns=own):
                start, stop = stop, stop + batch.num_rows
                for place, column in enumerate(wanted):
                    _, name, entry = spots[column]
                    cells = batch.column(name)
                    if entry is not None:
                        cells = pyarrow.compute.list_element(cells, entry)
                    cells = cells.cast(pyarrow.float64(), safe=False)
                    values[start:stop, place] = cells.to_numpy(zero_copy_only=False)
            if stop < rows:
                raise ValueError(f"{rows} rows are announced, {stop} are there")
        return values

    return Table(path, names, Lazy((rows, len(names)), take), skipped=skipped)


def _holds_lists(kind: str) -> bool:
    """Whether a column of that type holds lists of numbers."""
    found = LIST.fullmatch(kind)
    return found is not None and NUMERIC.fullmatch(found[1]) is not None
