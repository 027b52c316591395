"""NumPy archives."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.errors import InputError
from dynident.recording.readers.table import DAMAGE, Table, assemble, one_line

PICKLED = "holds Python objects; save it as an array of float64"


def read_npz(path: Path) -> Table:
    """Read a NumPy archive; see `assemble` for what becomes a column.

    Arrays of Python objects are skipped: to read them would be to run what they say.

    Raises
    ------
    InputError
        For files that are no archives, or damaged ones.
    """
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: is no NPZ archive, or was cut off; save it with np.savez")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            read = {key: _array(path, archive, key) for key in archive.files}
    except DAMAGE as error:
        raise InputError(
            f"{path}: is a damaged NPZ archive ({one_line(error)}); save it again with np.savez"
        ) from error
    pickled = tuple((key, PICKLED) for key, array in read.items() if array is None)
    arrays = {key: array for key, array in read.items() if array is not None}
    return assemble(path, arrays, pickled)


def _array(path: Path, archive: Mapping[str, Any], key: str) -> npt.NDArray[Any] | None:
    """An array of the archive, None for one of Python objects."""
    try:
        return np.asarray(archive[key])
    except DAMAGE as error:
        if "allow_pickle" in str(error):
            return None
        raise InputError(
            f"{path}, array {key!r}: is damaged ({one_line(error)}); save it again with np.savez"
        ) from error
