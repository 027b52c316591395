"""HDF5 files, MATLAB's of version 7.3 among them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.errors import name_missing_package
from dynident.readers.table import (
    NO_NUMBERS,
    ArrayEntry,
    Table,
    assemble_table,
    describe_object,
    refuse_bomb,
    refuse_damage,
)

MOST_OBJECTS = 10_000
"""Groups and arrays that are looked at."""
ELSEWHERE = "stands elsewhere, behind a link; save it in the file itself"


def read_hdf5(path: Path) -> Table:
    """Read an HDF5 file; see `assemble_table` for what becomes a column.

    Arrays in groups are called ``group.array``. What stands in other files is skipped.
    """
    with name_missing_package(f"{path}: needs h5py; pip install dynident[hdf5]"):
        import h5py
    with (
        refuse_damage(path, "is not an HDF5 file, or was cut off", "write it again"),
        h5py.File(path, "r") as file,
    ):
        return assemble_table(path, dict(_list_entries(path, file)))


def _list_entries(path: Path, file: Any) -> Iterator[tuple[str, ArrayEntry | str]]:
    """All arrays by name, or why they are not read."""
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
                yield f"{prefix}{key}", ELSEWHERE
                continue
            found = group[key]
            if isinstance(found, h5py.Dataset):
                yield f"{prefix}{key}", _build_entry(path, found)
            elif isinstance(found, h5py.Group) and hash(found.id) not in seen:
                seen.add(hash(found.id))  # for a group may hold itself
                left.append((f"{prefix}{key}.", found))


def _build_entry(path: Path, dataset: Any) -> ArrayEntry | str:
    """What is known of an array before it is read."""
    if dataset.external or dataset.is_virtual:
        return ELSEWHERE
    if not dataset.shape or dataset.dtype.kind not in {*"fiub"}:
        return NO_NUMBERS
    kind = dataset.attrs.get("MATLAB_class")
    if kind is not None and "MATLAB_object_decode" in dataset.attrs:
        return describe_object(kind.decode())
    if kind == b"char" or "MATLAB_empty" in dataset.attrs:
        return NO_NUMBERS
    matlab = kind is not None
    stored = tuple(reversed(dataset.shape)) if matlab else dataset.shape
    shape = flatten_matlab_shape(stored) if matlab else stored
    read = partial(_read_dataset, path, dataset.name, matlab, len(shape) < len(stored))

    def read_pieces(count: int) -> Iterator[npt.NDArray[Any]]:
        return (read(slice(first, first + count)) for first in range(0, shape[0], count))

    return ArrayEntry(shape, dataset.dtype.kind, read, None if matlab else read_pieces)


def flatten_matlab_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """MATLAB has no 1-D arrays."""
    return (math.prod(shape),) if len(shape) == 2 and 1 in shape else shape


def _read_dataset(
    path: Path, name: str, matlab: bool, vector: bool, index: Any
) -> npt.NDArray[Any]:
    """An array or a part of it; MATLAB's stand the other way round."""
    import h5py

    place = f"{path}, array {name.lstrip('/').replace('/', '.')!r}"
    with refuse_damage(place, "is damaged", "write it again"), h5py.File(path, "r") as file:
        dataset = file[name]
        stored, size = dataset.id.get_storage_size(), dataset.dtype.itemsize
        refuse_bomb(place, stored, dataset.size * size)
        refuse_bomb(place, stored, math.prod(dataset.chunks or ()) * size)
        if vector:
            return np.asarray(np.ravel(dataset[()])[index])
        part = dataset[index[::-1] if matlab else index]
        return np.asarray(part.T if matlab else part)
