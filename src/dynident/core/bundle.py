"""Structures of arrays that compiled functions are given as one pointer.

Numba passes a named tuple of arrays field by field, each array as nine numbers or so: a kernel's
scratch of sixty arrays is five hundred arguments of every call, and most of what the compiler
works on. A `Bundle` lays the arrays' descriptors out in one block of words, whose address is
passed; ``s.q`` in a kernel reads the descriptor of `q` there. Kernels are written as for named
tuples. All arrays are taken as C-contiguous and writable, so that a kernel knows one type.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    register_model,
    typeof_impl,
    unbox,
)

HEADER = 5
"""Words of an array's descriptor before its shape and strides: two owners, items, item size, data."""


class BundleType(types.Type):  # type: ignore[misc]
    """Numba's type of a `Bundle`: whose fields have which types, None for fields that are None."""

    def __init__(self, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = fields
        self.places: dict[str, tuple[int, Any]] = {}
        at = 0
        for field, kind in fields:
            self.places[field] = at, kind
            at += count_words(kind)
        self.words = at
        parts = ", ".join(f"{field}: {kind}" for field, kind in fields)
        super().__init__(name=f"{name}({parts})")  # type: ignore[no-untyped-call]
        self.short = name

    @property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        """A short name in symbols, with a number for the fields' types."""
        return f"{self.short}{abs(hash_text(self.name)):x}", ()


def hash_text(text: str) -> int:
    """A number of a text that is the same in every process."""
    from zlib import crc32

    return crc32(text.encode())


def count_words(kind: Any) -> int:
    """How many words a field takes."""
    if isinstance(kind, types.Array):
        return HEADER + 2 * int(kind.ndim)
    return 0 if kind is types.none else 1


class Bundle:
    """A named tuple of arrays, numbers, None and more such tuples, ready for kernels.

    Arrays are kept, not copied: what a kernel writes is seen in the tuple.
    """

    __slots__ = ("_numba_type_", "address", "kept", "words")

    def __init__(self, parts: NamedTuple) -> None:
        words: list[int] = []
        kept: list[Any] = []
        fields = []
        for name, value in zip(parts._fields, parts, strict=True):
            if isinstance(value, np.ndarray):
                if not value.flags.c_contiguous:
                    raise TypeError(f"{type(parts).__name__}.{name} is not contiguous")
                kind = describe_array(value.dtype, value.ndim)
                words += (0, 0, value.size, value.itemsize, value.ctypes.data)
                words += (*value.shape, *value.strides)
                kept.append(value)
            elif value is None:
                kind = types.none
            elif isinstance(value, tuple):
                inside = Bundle(value)
                kind = inside._numba_type_
                words.append(inside.address)
                kept.append(inside)
            elif isinstance(value, int | np.integer):
                kind = types.int64
                words.append(int(value))
            else:
                kind = types.float64
                words.append(int(np.float64(value).view(np.int64)))
            fields.append((name, kind))
        self.kept = kept
        self.words = np.array(words, dtype=np.int64)
        self.address = int(self.words.ctypes.data)
        self._numba_type_ = describe_bundle(type(parts).__name__, tuple(fields))


@cache
def describe_array(dtype: Any, ndim: int) -> Any:
    """Numba's type of an array of numbers."""
    from numba import from_dtype

    return types.Array(from_dtype(dtype), ndim, "C")


@cache
def describe_bundle(name: str, fields: tuple[tuple[str, Any], ...]) -> BundleType:
    """The type of a bundle."""
    return BundleType(name, fields)


@typeof_impl.register(Bundle)
def _find_type(value: Bundle, context: object) -> BundleType:
    return value._numba_type_


register_model(BundleType)(models.OpaqueModel)


@infer_getattr
class BundleFields(AttributeTemplate):  # type: ignore[misc]
    """Types of a bundle's fields."""

    key = BundleType

    def generic_resolve(self, bundle: BundleType, field: str) -> Any:
        """The type of a field, None where there is none."""
        return bundle.places.get(field, (0, None))[1]


@lower_getattr_generic(BundleType)
def _read_field(context: Any, builder: Any, bundle: Any, value: Any, field: str) -> Any:
    place, kind = bundle.places[field]
    word = ir.IntType(64)
    constant = builder.module.add_metadata([])
    base = builder.bitcast(value, word.as_pointer())

    def read(at: int) -> Any:
        found = builder.load(cgutils.gep_inbounds(builder, base, place + at))
        found.set_metadata("invariant.load", constant)
        return found

    if kind is types.none:
        return context.get_dummy_value()
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder)
        n = kind.ndim
        null = ir.Constant(ir.IntType(8).as_pointer(), None)
        array.meminfo, array.parent = null, null
        array.nitems = read(2)
        array.itemsize = read(3)
        array.data = builder.inttoptr(read(4), array.data.type)
        array.shape = cgutils.pack_array(builder, [read(HEADER + k) for k in range(n)])
        array.strides = cgutils.pack_array(builder, [read(HEADER + n + k) for k in range(n)])
        return array._getvalue()
    if isinstance(kind, BundleType):
        return builder.inttoptr(read(0), context.get_value_type(kind))
    if kind == types.float64:
        return builder.bitcast(read(0), ir.DoubleType())
    return read(0)


@unbox(BundleType)
def _unbox(kind: Any, value: Any, c: Any) -> Any:
    held = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_ulonglong(held)
    c.pyapi.decref(held)
    return NativeValue(c.builder.inttoptr(address, c.context.get_value_type(kind)))
