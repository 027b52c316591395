"""MATLAB files, those up to version 7 with every length checked before it is believed.

The layout is that of MathWorks' "MAT-File Format" and of MATLAB 4's files; only arrays of
real numbers are read, also those in structs. Version 7.3 is HDF5.
"""

from __future__ import annotations

import math
import mmap
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.readers.hdf5 import flatten_matlab_shape, read_hdf5
from dynident.readers.table import (
    NO_NUMBERS,
    ArrayEntry,
    Table,
    assemble_table,
    describe_object,
    refuse_bomb,
    refuse_damage,
)

Named = tuple[str, ArrayEntry | str]
"""The name of an array with the array, or the reason why it is not read."""
HDF5 = b"\x89HDF\r\n\x1a\n"
"""How HDF5 begins: in MATLAB's files behind their header, in Octave's at once."""
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
STRUCT, OBJECT = 2, 17
NESTED = 16
"""Structs within structs."""
HEAD = 1 << 12
"""Bytes that an array's head has at most: its class, dimensions and name."""
COMPLEX = 0x0800
BLOCK = 1 << 20
"""Bytes that are unpacked at a time."""
HEADER = 128
DAMAGED = "is not a MAT file, or was cut off", "save it with '-v7'"
DEEPEST = 32
"""Dimensions of an array in NumPy."""


def read_mat(path: Path) -> Table:
    """Read a MATLAB file; see `assemble_table` for what becomes a column.

    Arrays in a struct are called ``struct.array``.
    """
    with path.open("rb") as file:
        head = file.read(HEADER)
        order = {b"IM": "<", b"MI": ">"}.get(head[126:128], "")
        version = int.from_bytes(head[124:126], "little" if order == "<" else "big") >> 8
        if head[: len(HDF5)] == HDF5 or (order and version == 2):
            return read_hdf5(path)
        with refuse_damage(path, *DAMAGED):
            # what is not wanted stays on the disk
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            entries = dict(_read_arrays(path, data, order) if order else _read_old_arrays(data))
    entries.pop("", None)  # what MATLAB keeps for itself: all that its objects hold
    return assemble_table(path, entries)


def _take_bytes(data: memoryview, start: int, size: int) -> memoryview:
    """Bytes that are there."""
    if size < 0 or start + size > len(data):
        raise ValueError(f"{size} bytes are announced at byte {start} of {len(data)}")
    return data[start : start + size]


# version 5 to 7


def _read_arrays(path: Path, data: memoryview, order: str) -> Iterator[Named]:
    """Named arrays of a file."""
    at = HEADER
    if at >= len(data):
        raise ValueError("it holds nothing")
    while at < len(data):
        kind, size, body = _read_tag(data, at, order)
        content = _take_bytes(data, body, size)
        # only what is packed stands without padding
        at = body + size + (0 if kind == COMPRESSED else -size % 8)
        if kind == COMPRESSED:
            yield from _read_packed_array(path, content, order)
        elif kind != MATRIX:
            raise ValueError(f"an element has type {kind} and is not an array")
        elif content:
            yield from _read_array(content, order)


def _read_packed_array(path: Path, packed: memoryview, order: str) -> Iterator[Named]:
    """An array that was compressed: numbers are unpacked when they are wanted."""
    stream = zlib.decompressobj()
    head = memoryview(stream.decompress(packed, HEAD))
    kind, size, body = _read_tag(head, 0, order)
    if kind != MATRIX:
        raise ValueError(f"an element has type {kind} and is not an array")

    def unpacked() -> memoryview:
        refuse_bomb(str(path), len(packed), size)
        return _take_bytes(memoryview(_unpack_element(packed, body + size)), body, size)

    flags, shape, name, _ = _read_array_header(head[body:], order)
    if flags & 0xFF in (STRUCT, OBJECT):
        yield from _read_array(unpacked(), order)
        return
    if flags & 0xFF not in NUMERIC or flags & COMPLEX:
        yield name, NO_NUMBERS
        return

    def read(index: Any) -> npt.NDArray[Any]:
        with refuse_damage(path, *DAMAGED):
            ((_, entry),) = _read_array(unpacked(), order)
            assert isinstance(entry, ArrayEntry)
            return entry.read(index)

    yield name, ArrayEntry(flatten_matlab_shape(shape), "f", read)


def _unpack_element(packed: memoryview, size: int) -> bytes:
    """An element that was compressed, of a size that is known."""
    stream = zlib.decompressobj()
    parts = [stream.decompress(packed, BLOCK)]
    left = size - len(parts[0])
    while left > 0 and stream.unconsumed_tail:
        parts.append(stream.decompress(stream.unconsumed_tail, min(left, BLOCK)))
        left -= len(parts[-1])
    return b"".join(parts)


def _read_tag(data: memoryview, at: int, order: str) -> tuple[int, int, int]:
    """Type and size of an element, and where its content begins."""
    first, second = np.frombuffer(_take_bytes(data, at, 8), order + "u4").tolist()
    if first >> 16:  # up to four bytes stand in the tag itself
        if first >> 16 > 4:
            raise ValueError(f"an element at byte {at} is none")
        return first & 0xFFFF, first >> 16, at + 4
    return first, second, at + 8


def _read_part(data: memoryview, at: int, order: str) -> tuple[int, memoryview, int]:
    """Type and content of a part of an array, and where the next one begins."""
    kind, size, body = _read_tag(data, at, order)
    return (
        kind,
        _take_bytes(data, body, size),
        (at + 8 if body == at + 4 else body + size + -size % 8),
    )


def _decode_numbers(kind: int, content: memoryview, order: str) -> npt.NDArray[Any]:
    if kind not in NUMBERS:
        raise ValueError(f"numbers of type {kind} are not known")
    return np.frombuffer(content, order + NUMBERS[kind])


def _read_array_header(data: memoryview, order: str) -> tuple[int, tuple[int, ...], str, int]:
    """Flags, dimensions and name of an array, and where its content begins."""
    kind, content, at = _read_part(data, 0, order)
    flags = int(_decode_numbers(kind, content, order)[0])
    if flags & 0xFF not in NUMERIC and flags & 0xFF > 5:  # functions and the like
        named = flags & 0xFF == OBJECT
        return flags, (), *(_read_text(data, at, order) if named else ("", at))
    kind, content, at = _read_part(data, at, order)
    shape = tuple(_decode_numbers(kind, content, order).tolist())
    if not 2 <= len(shape) <= DEEPEST or min(shape) < 0:
        raise ValueError(f"an array has the dimensions {shape[:8]}")
    return flags, shape, *_read_text(data, at, order)


def _read_text(data: memoryview, at: int, order: str) -> tuple[str, int]:
    """A name, and where the next part begins."""
    _, content, after = _read_part(data, at, order)
    return bytes(content).decode("latin-1"), after


def _read_array(data: memoryview, order: str, prefix: str = "", depth: int = 0) -> Iterator[Named]:
    """Name and content of an array, or of all that are in a struct."""
    flags, shape, name, at = _read_array_header(data, order)
    name = prefix + name
    if flags & 0xFF == STRUCT and shape and math.prod(shape) == 1:
        yield from _read_struct(data, at, order, name, depth + 1)
    elif flags & 0xFF == OBJECT:
        _, at = _read_text(data, at, order)  # the system of classes
        yield name, describe_object(_read_text(data, at, order)[0])
    elif flags & 0xFF not in NUMERIC or flags & COMPLEX:
        yield name, NO_NUMBERS
    else:
        kind, content, _ = _read_part(data, at, order)
        values = _decode_numbers(kind, content, order)
        yield name, _build_entry(name, values, shape)


def _read_struct(data: memoryview, at: int, order: str, name: str, depth: int) -> Iterator[Named]:
    """The arrays of a struct."""
    if depth > NESTED:
        raise ValueError(f"structs stand more than {NESTED} deep in each other")
    kind, content, at = _read_part(data, at, order)
    length = int(_decode_numbers(kind, content, order)[0])
    _, content, at = _read_part(data, at, order)
    if length <= 0 or len(content) % length:
        raise ValueError(f"the names of the fields of {name} have {length} characters")
    for start in range(0, len(content), length):
        key = bytes(content[start : start + length]).partition(b"\0")[0].decode("latin-1")
        kind, part, at = _read_part(data, at, order)
        if kind != MATRIX:
            raise ValueError(f"{name}.{key} has type {kind} and is not an array")
        if part:
            yield from _read_array(part, order, f"{name}.{key}", depth)


def _build_entry(name: str, values: npt.NDArray[Any], shape: tuple[int, ...]) -> ArrayEntry:
    if len(values) != math.prod(shape):
        raise ValueError(f"{name} has {len(values)} numbers for the dimensions {shape}")
    vector = flatten_matlab_shape(shape)
    return ArrayEntry(vector, values.dtype.kind, lambda i: values.reshape(vector, order="F")[i])


# version 4


def _read_old_arrays(data: memoryview) -> Iterator[Named]:
    """Named arrays of a file without a header."""
    at = 0
    order = "<" if int.from_bytes(data[:4], "little") < 5000 else ">"
    while at < len(data):
        kind, rows, columns, imaginary, length = np.frombuffer(
            _take_bytes(data, at, 20), order + "i4"
        ).tolist()
        thousands, zero, number, form = (kind // 10**k % 10 for k in (3, 2, 1, 0))
        if not 0 <= kind < 5000 or thousands > 1 or zero or number not in OLD_NUMBERS or form > 2:
            raise ValueError(f"an array's type is {kind}")
        if min(rows, columns) < 0 or imaginary not in (0, 1) or not 1 <= length <= 4096:
            raise ValueError(f"an array at byte {at} has the dimensions {rows} x {columns}")
        name = bytes(_take_bytes(data, at + 20, length)).rstrip(b"\0").decode("latin-1")
        dtype = np.dtype(order + OLD_NUMBERS[number])
        size = rows * columns * dtype.itemsize
        values = np.frombuffer(_take_bytes(data, at + 20 + length, size), dtype)
        at += 20 + length + size * (1 + imaginary)
        if at > len(data):
            raise ValueError(f"{name} ends too early")
        if imaginary or form:
            yield name, NO_NUMBERS
        else:
            yield name, _build_entry(name, values, (rows, columns))
