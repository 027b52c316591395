"""HDF5 files, MATLAB's of version 7.3 among them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.errors import InputError
from dynident.core.files import DAMAGE
from dynident.core.text import format_one_line
from dynident.readers.table import (
    Entry,
    Table,
    assemble_table,
    read_nothing,
    refuse_bomb,
)

MOST_OBJECTS = 10_000
"""Groups and arrays that are looked at."""
ELSEWHERE = "stands elsewhere, behind a link; save it in the file itself"


def read_hdf5(path: Path) -> Table:
    """Read an HDF5 file; see `assemble_table` for what becomes a column.

    Arrays in groups are called ``group.array``. What stands in other files is skipped.
    """
    try:
        import h5py
    except ImportError as error:
        raise InputError(f"{path}: needs h5py; pip install dynident[hdf5]") from error
    try:
        with h5py.File(path, "r") as file:
            entries = dict(_list_entries(path, file))
    except DAMAGE as error:
        raise _make_damage_error(path, error) from error
    skipped = tuple((key, ELSEWHERE) for key, entry in entries.items() if entry is None)
    return assemble_table(path, {key: e for key, e in entries.items() if e is not None}, skipped)


def _list_entries(path: Path, file: Any) -> Iterator[tuple[str, Entry | None]]:
    """All arrays by name, None for those that stand elsewhere."""
    import h5py

    seen = {hash(file["/"].id)}
    left: list[tuple[str, Any]] = [("", file)]
    count = 0
    while left:
        prefix, group = left.pop()
        for key in group:
            count += 1
            if count > MOST_OBJECTS:
                raise ValueError(f"it has more than {MOST_OBJECTS} objects")
            if not prefix and key.startswith("#"):
                continue  # what MATLAB keeps for itself
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                yield f"{prefix}{key}", None
                continue
            found = group[key]
            if isinstance(found, h5py.Dataset):
                yield f"{prefix}{key}", _build_entry(path, found)
            elif isinstance(found, h5py.Group) and hash(found.id) not in seen:
                seen.add(hash(found.id))  # for a group may hold itself
                left.append((f"{prefix}{key}.", found))


def _build_entry(path: Path, dataset: Any) -> Entry | None:
    """What is known of an array before it is read."""
    if dataset.external or dataset.is_virtual:
        return None
    shape = dataset.shape
    if not shape or dataset.dtype.kind not in {*"fiub"}:
        return Entry((), "", read_nothing)
    kind = dataset.attrs.get("MATLAB_class")
    matlab = kind is not None
    if kind == b"char" or "MATLAB_empty" in dataset.attrs:
        return Entry((), "", read_nothing)
    shape = tuple(reversed(shape)) if matlab else shape
    vector = matlab and len(shape) == 2 and 1 in shape
    read = partial(_read_dataset, path, dataset.name, matlab, vector)
    return Entry((math.prod(shape),) if vector else shape, dataset.dtype.kind, read)


def _read_dataset(
    path: Path, name: str, matlab: bool, vector: bool, index: Any
) -> npt.NDArray[Any]:
    """An array or a part of it; MATLAB's stand the other way round."""
    import h5py

    place = f"{path}, array {name.lstrip('/').replace('/', '.')!r}"
    try:
        with h5py.File(path, "r") as file:
            dataset = file[name]
            stored, size = dataset.id.get_storage_size(), dataset.dtype.itemsize
            refuse_bomb(place, stored, dataset.size * size)
            refuse_bomb(place, stored, math.prod(dataset.chunks or ()) * size)
            if vector:
                return np.asarray(np.ravel(dataset[()])[index])
            part = dataset[index[::-1] if matlab else index]
            return np.asarray(part.T if matlab else part)
    except DAMAGE as error:
        raise InputError(
            f"{place}: is damaged ({format_one_line(error)}); write it again"
        ) from error


def _make_damage_error(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path}: is not an HDF5 file, or was cut off ({format_one_line(error)}); write it again"
    )
