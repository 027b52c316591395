"""MATLAB files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynident.core.errors import InputError
from dynident.recording.readers.table import DAMAGE, Table, assemble, one_line

HDF5 = b"\x89HDF\r\n\x1a\n"
"""How HDF5 files begin, which MATLAB does not write and Octave does."""


def read_mat(path: Path) -> Table:
    """Read a MATLAB file up to version 7; see `assemble` for what becomes a column.

    Raises
    ------
    InputError
        For version 7.3, HDF5, and files that are no MAT files, or damaged ones.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(path)
    except NotImplementedError as error:
        raise InputError(f"{path}: is MAT version 7.3; save it with '-v7' or as CSV") from error
    except (*DAMAGE, MatReadError) as error:
        with path.open("rb") as file:
            if file.read(len(HDF5)) == HDF5:
                raise InputError(f"{path}: is HDF5; save it with '-v7' or as CSV") from error
        raise InputError(
            f"{path}: is not a MAT file, or was cut off ({one_line(error)}); save it with '-v7'"
        ) from error
    arrays = {key: np.asarray(value) for key, value in content.items() if key[:2] != "__"}
    # MATLAB has no 1-D arrays
    vectors = {key: a.ravel() if a.ndim == 2 and 1 in a.shape else a for key, a in arrays.items()}
    return assemble(path, vectors)
