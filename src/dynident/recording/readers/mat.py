"""MATLAB files up to version 7, read with every length checked before it is believed.

The layout is that of MathWorks' "MAT-File Format" and of MATLAB 4's files; only arrays of
real numbers are read.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dynident.core.errors import InputError
from dynident.recording.readers.table import DAMAGE, Entry, Table, assemble, nothing, one_line

HDF5 = b"\x89HDF\r\n\x1a\n"
"""How HDF5 files begin, which MATLAB does not write and Octave does."""
NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
"""Types of numbers in a file of version 5 or later."""
OLD_NUMBERS = {0: "f8", 1: "f4", 2: "i4", 3: "i2", 4: "u2", 5: "u1"}
"""The same in a file of version 4."""
MATRIX, COMPRESSED = 14, 15
NUMERIC = range(6, 16)
"""Classes of arrays: double to uint64. Before them stand cells, structs, objects, text, sparse."""
COMPLEX = 0x0800
BLOCK = 1 << 20
"""Bytes that are unpacked at a time."""
HEADER = 128
DEEPEST = 32
"""Dimensions of an array in NumPy."""


def read_mat(path: Path) -> Table:
    """Read a MATLAB file up to version 7; see `assemble` for what becomes a column.

    Raises
    ------
    InputError
        For version 7.3, HDF5, and files that are no MAT files, or damaged ones.
    """
    data = path.read_bytes()
    if data[: len(HDF5)] == HDF5:
        raise InputError(f"{path}: is HDF5; save it with '-v7' or as CSV")
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128], "")
    if order and int.from_bytes(data[124:126], "little" if order == "<" else "big") >> 8 == 2:
        raise InputError(f"{path}: is MAT version 7.3; save it with '-v7' or as CSV")
    try:
        return assemble(path, dict(_arrays(data, order) if order else _old_arrays(data)))
    except DAMAGE as error:
        raise InputError(
            f"{path}: is not a MAT file, or was cut off ({one_line(error)}); save it with '-v7'"
        ) from error


def _vector(shape: tuple[int, ...]) -> tuple[int, ...]:
    """MATLAB has no 1-D arrays."""
    return (math.prod(shape),) if len(shape) == 2 and 1 in shape else shape


def _take(data: bytes, start: int, size: int) -> bytes:
    """Bytes that are there."""
    if size < 0 or start + size > len(data):
        raise ValueError(f"{size} bytes are announced at byte {start} of {len(data)}")
    return data[start : start + size]


# version 5 to 7


def _arrays(data: bytes, order: str) -> Iterator[tuple[str, Entry]]:
    """Named arrays of a file."""
    at = HEADER
    if at >= len(data):
        raise ValueError("it holds nothing")
    while at < len(data):
        kind, size, body = _tag(data, at, order)
        content = _take(data, body, size)
        # only what is packed stands without padding
        at = body + size + (0 if kind == COMPRESSED else -size % 8)
        if kind == COMPRESSED:
            content = _unpacked(content, "little" if order == "<" else "big")
            kind, size, body = _tag(content, 0, order)
            content = _take(content, body, size)
        if kind != MATRIX:
            raise ValueError(f"an element is of type {kind}, no array")
        if content:
            yield _array(content, order)


def _unpacked(packed: bytes, order: Literal["little", "big"]) -> bytes:
    """An element that was compressed; it says itself how long it is."""
    stream = zlib.decompressobj()
    parts = [stream.decompress(packed, BLOCK)]
    left = 8 + int.from_bytes(parts[0][4:8], order) - len(parts[0])
    while left > 0 and stream.unconsumed_tail:
        parts.append(stream.decompress(stream.unconsumed_tail, min(left, BLOCK)))
        left -= len(parts[-1])
    return b"".join(parts)


def _tag(data: bytes, at: int, order: str) -> tuple[int, int, int]:
    """Type and size of an element, and where its content begins."""
    first, second = np.frombuffer(_take(data, at, 8), order + "u4").tolist()
    if first >> 16:  # up to four bytes stand in the tag itself
        if first >> 16 > 4:
            raise ValueError(f"an element at byte {at} is none")
        return first & 0xFFFF, first >> 16, at + 4
    return first, second, at + 8


def _part(data: bytes, at: int, order: str) -> tuple[int, bytes, int]:
    """Type and content of a part of an array, and where the next one begins."""
    kind, size, body = _tag(data, at, order)
    return kind, _take(data, body, size), (at + 8 if body == at + 4 else body + size + -size % 8)


def _numbers(kind: int, content: bytes, order: str) -> npt.NDArray[Any]:
    if kind not in NUMBERS:
        raise ValueError(f"numbers of type {kind} are not known")
    return np.frombuffer(content, order + NUMBERS[kind])


def _array(data: bytes, order: str) -> tuple[str, Entry]:
    """Name and content of an array."""
    kind, content, at = _part(data, 0, order)
    flags = int(_numbers(kind, content, order)[0])
    if flags & 0xFF not in NUMERIC and flags & 0xFF > 5:
        return "", Entry((), "", nothing)  # functions and the like, without a name
    kind, content, at = _part(data, at, order)
    shape = tuple(_numbers(kind, content, order).tolist())
    if not 2 <= len(shape) <= DEEPEST or min(shape) < 0:
        raise ValueError(f"an array has the dimensions {shape[:8]}")
    _, content, at = _part(data, at, order)
    name = content.decode("latin-1")
    if flags & 0xFF not in NUMERIC or flags & COMPLEX:
        return name, Entry(shape, "", nothing)
    kind, content, _ = _part(data, at, order)
    values = _numbers(kind, content, order)
    return name, _entry(name, values, shape)


def _entry(name: str, values: npt.NDArray[Any], shape: tuple[int, ...]) -> Entry:
    if len(values) != math.prod(shape):
        raise ValueError(f"{name} has {len(values)} numbers for the dimensions {shape}")
    vector = _vector(shape)
    return Entry(vector, values.dtype.kind, lambda i: values.reshape(vector, order="F")[i])


# version 4


def _old_arrays(data: bytes) -> Iterator[tuple[str, Entry]]:
    """Named arrays of a file without a header."""
    at = 0
    order = "<" if data[:4] and int.from_bytes(data[:4], "little") < 5000 else ">"
    if not data:
        raise ValueError("it is empty")
    while at < len(data):
        kind, rows, columns, imaginary, length = np.frombuffer(
            _take(data, at, 20), order + "i4"
        ).tolist()
        thousands, zero, number, form = (kind // 10**k % 10 for k in (3, 2, 1, 0))
        if not 0 <= kind < 5000 or thousands > 1 or zero or number not in OLD_NUMBERS or form > 2:
            raise ValueError(f"an array's type is {kind}")
        if min(rows, columns) < 0 or imaginary not in (0, 1) or not 1 <= length <= 4096:
            raise ValueError(f"an array at byte {at} has the dimensions {rows} x {columns}")
        name = _take(data, at + 20, length).rstrip(b"\0").decode("latin-1")
        dtype = np.dtype(order + OLD_NUMBERS[number])
        size = rows * columns * dtype.itemsize
        values = np.frombuffer(_take(data, at + 20 + length, size), dtype)
        at += 20 + length + size * (1 + imaginary)
        if at > len(data):
            raise ValueError(f"{name} ends too early")
        if imaginary or form:
            yield name, Entry((rows, columns), "", nothing)
        else:
            yield name, _entry(name, values, (rows, columns))
