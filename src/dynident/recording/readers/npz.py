"""NumPy archives."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.errors import InputError
from dynident.recording.readers.table import Table, assemble, one_line


def read_npz(path: Path) -> Table:
    """Read a NumPy archive; see `assemble` for what becomes a column.

    Raises
    ------
    InputError
        For files that are no archives, and for pickled objects.
    """
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: is no NPZ archive, or was cut off; save it with np.savez")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: _unpickled(path, archive, key) for key in archive.files}
    except (zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: is a damaged NPZ archive ({one_line(error)})") from error
    return assemble(path, arrays)


def _unpickled(path: Path, archive: Mapping[str, Any], key: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(archive[key])
    except ValueError as error:
        raise InputError(
            f"{path}, array {key!r}: holds Python objects; save it as an array of float64"
        ) from error
