"""Datasets of LeRobot: many episodes a Parquet file, each with a clock of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynident.core.errors import InputError, name_missing_package
from dynident.core.text import format_one_line

HEAD = Path("meta", "info.json")
"""What a dataset has, of version 2 and 3 alike."""
EPISODE = "episode_index"


class Episode(NamedTuple):
    """Rows of a file, the first and the one after the last; None where nobody can tell."""

    file: Path
    name: str
    rows: tuple[int, int] | None


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a dataset."""
    return (folder / HEAD).is_file()


def list_episodes(folder: Path) -> list[Episode]:
    """All episodes of a dataset, in their order; a file that cannot be read stands for its own."""
    found: list[Episode] = []
    for file in sorted(folder.glob("data/**/*.parquet")):
        try:
            with open_parquet(file) as (_, parquet):
                numbers = parquet.read(columns=[EPISODE]).column(0).to_numpy()
        except InputError:
            found.append(Episode(file, f"{folder.name} {file.name}", None))
            continue
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        found += [
            Episode(file, f"{folder.name} {numbers[a]}", (a, b))
            for a, b in pairwise(edges)
            if a < b
        ]
    return found


@contextmanager
def open_parquet(file: Path) -> Iterator[tuple[Any, Any]]:
    """The package, and a file of a dataset; what is wrong with it in a block is said."""
    with name_missing_package(f"{file}: needs pyarrow; pip install dynident[parquet]"):
        import pyarrow
        import pyarrow.parquet
    try:
        with pyarrow.parquet.ParquetFile(file) as parquet:
            yield pyarrow, parquet
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read ({format_one_line(error)})") from error


def holds_episodes(file: str) -> bool:
    """Whether a file is one of a dataset."""
    if not file.lower().endswith(".parquet") or not Path(file).is_file():
        return False
    with open_parquet(Path(file)) as (_, parquet):
        return EPISODE in parquet.schema_arrow.names


@contextmanager
def cut_episode(
    files: Sequence[str], rows: tuple[int, int] | None
) -> Iterator[tuple[Sequence[str], tuple[int, int] | None]]:
    """Rows of a file of episodes as a file of its own, which goes with the block.

    All else is left to whoever reads it.
    """
    if rows is None or len(files) != 1 or not holds_episodes(files[0]):
        yield files, rows
        return
    file, (first, stop) = Path(files[0]), rows
    with tempfile.TemporaryDirectory(prefix="dynident-") as folder:
        with open_parquet(file) as (arrow, parquet):
            sizes = [parquet.metadata.row_group(k).num_rows for k in range(parquet.num_row_groups)]
            ends = np.cumsum([0, *sizes])
            own = np.flatnonzero((ends[:-1] < stop) & (ends[1:] > first))
            table = parquet.read_row_groups(own.tolist())
            start = first - int(ends[own[0]]) if len(own) else 0
            arrow.parquet.write_table(table.slice(start, stop - first), Path(folder, file.name))
        yield (str(Path(folder, file.name)),), None
