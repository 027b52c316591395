"""Parquet files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, name_missing_package
from dynident.core.store import ROWS
from dynident.readers.table import MOST_COLUMNS, LazyColumns, Table, refuse_damage

NUMERIC = re.compile(r"(double|float|halffloat|u?int)\d*")
LIST = re.compile(r"(?:fixed_size_)?list<\w+: (\w+)(?: not null)?>(?:\[\d+\])?")


def read_parquet(path: Path) -> Table:
    """Read a Parquet file through pyarrow; columns that are not numbers are skipped.

    A column ``key`` of lists of n numbers becomes ``key_1 ... key_n``.
    """
    with name_missing_package(f"{path}: needs pyarrow; pip install dynident[parquet]"):
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
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
    spots = _list_spots(types, widths)
    names = tuple(called for called, _, _ in spots)
    twice = [name for name in names if names.count(name) > 1 or schema.names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: has column {twice[0]!r} twice; rename one")
    read = {name for _, name, _ in spots}
    others = (name for name in types if name not in read)
    skipped = tuple((name, f"holds {types[name]}, not numbers") for name in others)

    def read_pieces(wanted: Sequence[int]) -> Iterator[Array]:
        own = list(dict.fromkeys(spots[column][1] for column in sorted(set(wanted))))
        count = 0
        # what is read ahead would be the whole file
        with damage(), pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=ROWS, columns=own):
                values = np.empty((batch.num_rows, len(wanted)))
                for place, column in enumerate(wanted):
                    _, name, entry = spots[column]
                    cells = batch.column(name)
                    if entry is not None:
                        cells = pyarrow.compute.list_element(cells, entry)
                    cells = cells.cast(pyarrow.float64(), safe=False)
                    values[:, place] = cells.to_numpy(zero_copy_only=False)
                count += batch.num_rows
                if count <= rows:
                    yield values
            if count != rows:
                raise ValueError(f"{rows} rows are announced, {count} are there")

    def take(wanted: Sequence[int]) -> Array:
        values = np.empty((rows, len(wanted)))
        start = 0
        for piece in read_pieces(wanted):
            values[start : start + len(piece)] = piece
            start += len(piece)
        return values

    lazy = LazyColumns((rows, len(names)), take, read_pieces)
    return Table(path, names, lazy, skipped=skipped)


def _list_spots(types: dict[str, str], widths: dict[str, int]) -> list[tuple[str, str, int | None]]:
    """What each column of ours is called, the file's column, and the entry of its lists."""
    spots: list[tuple[str, str, int | None]] = []
    for name, kind in types.items():
        if NUMERIC.fullmatch(kind):
            spots.append((name, name, None))
        spots += [(f"{name}_{k + 1}", name, k) for k in range(widths.get(name, 0))]
    return spots


def _holds_lists(kind: str) -> bool:
    """Whether a column of that type holds lists of numbers."""
    found = LIST.fullmatch(kind)
    return found is not None and NUMERIC.fullmatch(found[1]) is not None
