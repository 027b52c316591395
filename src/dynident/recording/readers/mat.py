"""MATLAB files."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from dynident.core.errors import InputError
from dynident.recording.readers.table import Table, assemble, one_line


def read_mat(path: Path) -> Table:
    """Read a MATLAB file up to version 7; see `assemble` for what becomes a column.

    Raises
    ------
    InputError
        For version 7.3 and for files that are no MAT files.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(path)
    except NotImplementedError as error:
        raise InputError(f"{path}: is MAT version 7.3; save it with '-v7' or as CSV") from error
    except (ValueError, TypeError, MatReadError, zlib.error) as error:
        raise InputError(f"{path}: is not a MAT file ({one_line(error)})") from error
    arrays = {key: np.asarray(value) for key, value in content.items() if key[:2] != "__"}
    # MATLAB has no 1-D arrays
    vectors = {key: a.ravel() if a.ndim == 2 and 1 in a.shape else a for key, a in arrays.items()}
    return assemble(path, vectors)
