"""Log files into tables of numbers: one reader a format, all in `READERS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dynident.core.errors import InputError
from dynident.core.text import format_one_line
from dynident.readers import column_names
from dynident.readers.bags import METADATA, read_bag
from dynident.readers.hdf5 import read_hdf5
from dynident.readers.mat import read_mat
from dynident.readers.npz import read_npz
from dynident.readers.parquet import read_parquet
from dynident.readers.table import Table, assemble_table
from dynident.readers.text import read_header, read_text

__all__ = [
    "READERS",
    "Reader",
    "Table",
    "assemble_table",
    "list_unborne_joints",
    "measure_log",
    "read_tables",
]

Reader = Callable[[Path], Table | tuple[Table, ...]]

READERS: dict[str, Reader] = {
    ".csv": read_text,
    ".txt": read_text,
    ".tsv": read_text,
    ".dat": read_text,
    ".csv.gz": read_text,
    ".txt.gz": read_text,
    ".tsv.gz": read_text,
    ".dat.gz": read_text,
    ".parquet": read_parquet,
    ".npz": read_npz,
    ".mat": read_mat,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
    ".bag": read_bag,
    ".db3": read_bag,
    ".mcap": read_bag,
    METADATA: read_bag,
}
"""Readers by how the name of the file ends, in small letters."""


def measure_log(path: Path) -> int:
    """Bytes of a log file; of a bag in a folder, of all that is in there."""
    place = path.parent if path.name.lower() == METADATA else path
    every = place.rglob("*") if place.is_dir() else (place,)
    return sum(own.stat().st_size for own in every if own.is_file())


def find_suffix(path: Path) -> str | None:
    """By which end of its name a file's reader is found; of a bag's folder, by what is in it."""
    called = METADATA if (path / METADATA).is_file() else path.name.lower()
    return max((suffix for suffix in READERS if called.endswith(suffix)), key=len, default=None)


def list_titles(path: Path) -> tuple[str, ...]:
    """Names of a log file's columns, without its numbers where that is faster.

    None of bags, which have topics, and of files that cannot be read: who reads their numbers says
    why.
    """
    reader = READERS.get(find_suffix(path) or "", read_bag)
    try:
        if reader is read_text:
            return read_header(path)
        return () if reader is read_bag else read_tables(path)[0].titles
    except (InputError, OSError):
        return ()


def list_unborne_joints(
    files: Sequence[Path], joints: Sequence[str], counted: bool = True
) -> list[str]:
    """Joints of which no column of some files, by its name, has a torque other than zero."""
    tables = [table for file in files for table in read_tables(file, whole=False)]
    borne = set[str]()
    for joint in joints:
        for table in tables:
            column = column_names.find_torque_column(table.titles, joints, joint, counted)
            if column and table.take([table.titles.index(column)]).any():
                borne.add(joint)
    return [joint for joint in joints if joint not in borne]


def read_tables(path: Path, whole: bool = True) -> tuple[Table, ...]:
    """Read a log file of any known format: one table, or one a topic.

    One that has to be `whole` is refused where it ends in the middle of a row.
    """
    suffix, folder = find_suffix(path), path.is_dir()
    if suffix is None:
        known = f"known are {', '.join(READERS)}"
        raise InputError(f"{path}: unknown log format; {known}; numpy.savez writes .npz")
    if not path.is_file() and not (folder and suffix == METADATA):
        several = [Path(part) for part in str(path).split("+")]
        beside = ""
        if len(several) > 1 and all(find_suffix(each) is not None for each in several):
            beside = f"; of files side by side: {','.join(map(str, several))}"
        raise InputError(f"{path}: {'is not a file' if path.exists() else 'no such file'}{beside}")
    try:
        # what readers say of damage is not about permissions
        (path / METADATA if folder else path).open("rb").close()
        found = READERS[suffix](path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({format_one_line(error)})") from error
    tables = found if isinstance(found, tuple) else (found,)
    if whole and tables[0].cut_off:
        reason = f"{path}, {tables[0].cut_off}"
        raise InputError(f"{reason}; delete this last row, or set bad_rows = 'cut'")
    if not any(table.samples and table.width for table in tables):
        left = [entry for table in tables for entry in table.skipped]
        reasons = "".join(f"; {name!r} {reason}" for name, reason in left[:3])
        raise InputError(f"{path}: holds no samples{reasons}")
    return tables
