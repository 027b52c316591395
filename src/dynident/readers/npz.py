"""NumPy archives."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dynident.core.errors import InputError
from dynident.readers.table import ArrayEntry, Table, assemble_table, refuse_bomb, refuse_damage

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""What reads an array's header, by the version of its format."""
PICKLED = "holds Python objects; save it as an array of float64"
AGAIN = "save it again with np.savez"


def read_npz(path: Path) -> Table:
    """Read a NumPy archive; see `assemble_table` for what becomes a column.

    Arrays of Python objects are skipped: to read them would be to run what they say.
    """
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: is not an NPZ archive, or was cut off; save it with np.savez")
    with (
        refuse_damage(path, "is a damaged NPZ archive", AGAIN),
        path.open("rb") as file,
        zipfile.ZipFile(file) as archive,
    ):
        entries = {
            member.filename[:-4]: _read_member_header(path, archive, member)
            for member in archive.infolist()
            if member.filename[-4:] == ".npy"
        }
    return assemble_table(path, entries)


def _read_member_header(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> ArrayEntry | str:
    """What an array's header says of it, or why it is not read."""
    place = f"{path}, array {member.filename[:-4]!r}"

    @contextmanager
    def reopen() -> Iterator[IO[bytes]]:
        refuse_bomb(place, member.compress_size, member.file_size)
        with (
            refuse_damage(place, "is damaged", AGAIN),
            zipfile.ZipFile(path) as again,
            again.open(member) as file,
        ):
            yield file

    def read(index: Any) -> npt.NDArray[Any]:
        with reopen() as file:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False)[index])

    def read_pieces(count: int) -> Iterator[npt.NDArray[Any]]:
        with reopen() as file:
            _read_header(file)
            size = dtype.itemsize * math.prod(shape[1:])
            for first in range(0, shape[0], count):
                rows = min(count, shape[0] - first)
                yield np.frombuffer(file.read(rows * size), dtype).reshape(rows, *shape[1:])

    with refuse_damage(place, "is damaged", AGAIN), archive.open(member) as file:
        shape, by_columns, dtype = _read_header(file)
        if dtype.hasobject:
            return PICKLED
        if file.tell() + math.prod(shape) * dtype.itemsize > member.file_size:
            raise ValueError(f"its header speaks of {shape}, its data are shorter")
    in_order = len(shape) == 1 or (bool(shape) and not by_columns)
    return ArrayEntry(shape, dtype.kind, read, read_pieces if in_order else None)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns stand one behind another, and type of an array."""
    version = np.lib.format.read_magic(file)
    reader = HEADERS.get(version)
    if reader is None:
        raise ValueError(f"its format is {version[0]}.{version[1]}")
    return reader(file)
