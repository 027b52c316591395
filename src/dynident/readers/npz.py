"""NumPy archives."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.errors import InputError
from dynident.core.files import DAMAGE
from dynident.core.text import format_one_line
from dynident.readers.table import Entry, Table, assemble_table, refuse_bomb

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""What reads an array's header, by the version of its format."""
PICKLED = "holds Python objects; save it as an array of float64"


def read_npz(path: Path) -> Table:
    """Read a NumPy archive; see `assemble_table` for what becomes a column.

    Arrays of Python objects are skipped: to read them would be to run what they say.
    """
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: is no NPZ archive, or was cut off; save it with np.savez")
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = [member for member in archive.infolist() if member.filename[-4:] == ".npy"]
            heads = {
                member.filename[:-4]: _read_member_header(path, archive, member)
                for member in members
            }
            pickled = tuple((key, PICKLED) for key, head in heads.items() if head is None)
            return assemble_table(path, {k: head for k, head in heads.items() if head}, pickled)
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(
            f"{path}: is a damaged NPZ archive ({format_one_line(error)}); save it again with "
            "np.savez"
        ) from error


def _read_member_header(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> Entry | None:
    """What an array's header says of it, None for one of Python objects."""

    def read(index: Any) -> npt.NDArray[Any]:
        refuse_bomb(
            f"{path}, array {member.filename[:-4]!r}", member.compress_size, member.file_size
        )
        try:
            with zipfile.ZipFile(path) as again, again.open(member) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
            return np.asarray(array[index])
        except DAMAGE as error:
            raise _make_damage_error(path, member, format_one_line(error)) from error

    try:
        with archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            reader = HEADERS.get(version)
            if reader is None:
                raise ValueError(f"its format is {version[0]}.{version[1]}")
            shape, _, dtype = reader(file)
            start = file.tell()
    except DAMAGE as error:
        raise _make_damage_error(path, member, format_one_line(error)) from error
    if dtype.hasobject:
        return None
    if start + math.prod(shape) * dtype.itemsize > member.file_size:
        raise _make_damage_error(
            path, member, f"its header speaks of {shape}, its data are shorter"
        )
    return Entry(shape, dtype.kind, read)


def _make_damage_error(path: Path, member: zipfile.ZipInfo, reason: str) -> InputError:
    key = member.filename[:-4]
    return InputError(f"{path}, array {key!r}: is damaged ({reason}); save it again with np.savez")
