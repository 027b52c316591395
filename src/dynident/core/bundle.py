"""Structures of arrays that compiled functions are given as one pointer.

Numba passes a named tuple of arrays field by field, each array as nine numbers or so: a kernel's
scratch of sixty arrays is five hundred arguments of every call, and most of what the compiler
works on. A `Bundle` lays the arrays' descriptors out in one block of words, whose address is
passed; ``s.q`` in a kernel reads the descriptor of `q` there. Kernels are written as for named
tuples. All arrays are taken as C-contiguous and writable, so that a kernel knows one type.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
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
"""Words before an array's shape and strides: two owners, items, size of an item, data."""


class BundleType(types.Type):  # type: ignore[misc]
    """Numba's type of a `Bundle`: which fields it has, of which types."""

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
        return f"{self.short}{crc32(self.name.encode()):x}", ()


def count_words(kind: Any) -> int:
    """How many words a field takes."""
    if isinstance(kind, types.Array):
        return HEADER + 2 * int(kind.ndim)
    return 0 if kind is types.none else 1


class Bundle:
    """A named tuple of arrays, numbers, None and more such tuples, ready for kernels.

    Arrays are kept, not copied: what a kernel writes is seen in the tuple.

    Raises
    ------
    TypeError
        For an array that is not C-contiguous.
    """

    __slots__ = ("_numba_type_", "address", "kept", "words")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        words: list[int] = []
        kept: list[Any] = []
        kinds: list[Any] = [type(parts)]
        for value in parts:
            if isinstance(value, np.ndarray):
                if not value.flags.c_contiguous:
                    raise TypeError(f"{type(parts).__name__} has an array that is not contiguous")
                data = value.__array_interface__["data"][0]
                words += (0, 0, value.size, value.itemsize, data, *value.shape, *value.strides)
                kinds.append((value.dtype, value.ndim))
                kept.append(value)
            elif isinstance(value, tuple):
                inside = Bundle(value)
                words.append(inside.address)
                kinds.append(inside._numba_type_)
                kept.append(inside)
            elif value is None:
                kinds.append(None)
            else:
                whole = isinstance(value, int | np.integer)
                words.append(int(value) if whole else int(np.float64(value).view(np.int64)))
                kinds.append(int if whole else float)
        self.kept = kept
        self.words = np.array(words, dtype=np.int64)
        self.address: int = self.words.__array_interface__["data"][0]
        self._numba_type_: BundleType = describe_bundle(*kinds)


MOST_KEPT = 64
KEPT: dict[int, tuple[Any, Bundle]] = {}


def keep_bundle(parts: tuple[Any, ...]) -> Bundle:
    """The bundle of a tuple that nobody changes, made once: making one costs 3 us an array."""
    found = KEPT.get(id(parts))
    if found is None or found[0] is not parts:
        if len(KEPT) >= MOST_KEPT:
            KEPT.clear()
        found = KEPT[id(parts)] = parts, Bundle(parts)
    return found[1]


@cache
def describe_bundle(tuple_type: Any, *kinds: Any) -> BundleType:
    """Numba's type of a bundle whose fields are of these kinds."""
    plain = {None: types.none, int: types.int64, float: types.float64}
    found = [
        types.Array(from_dtype(kind[0]), kind[1], "C")  # type: ignore[no-untyped-call]
        if isinstance(kind, tuple)
        else kind if isinstance(kind, BundleType) else plain[kind]
        for kind in kinds
    ]  # fmt: skip
    return BundleType(tuple_type.__name__, tuple(zip(tuple_type._fields, found, strict=True)))


@typeof_impl.register(Bundle)
def _find_type(value: Bundle, context: object) -> BundleType:
    return value._numba_type_


register_model(BundleType)(models.OpaqueModel)


@infer_getattr
class BundleFields(AttributeTemplate):  # type: ignore[misc]
    """Types of a bundle's fields."""

    key = BundleType

    def generic_resolve(self, value: Any, attr: str) -> Any:  # type: ignore[override]
        """The type of a field, None where there is none."""
        return value.places.get(attr, (0, None))[1]


@lower_getattr_generic(BundleType)
def _read_field(context: Any, builder: Any, bundle: Any, value: Any, field: str) -> Any:
    place, kind = bundle.places[field]
    word = ir.IntType(64)
    constant = builder.module.add_metadata([])
    base = builder.bitcast(value, word.as_pointer())

    def read(at: int, kind: Any = word) -> Any:
        where = cgutils.gep_inbounds(builder, base, place + at)
        found = builder.load(builder.bitcast(where, kind.as_pointer()))
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
        array.data = read(4, array.data.type)
        array.shape = cgutils.pack_array(builder, [read(HEADER + k) for k in range(n)])
        array.strides = cgutils.pack_array(builder, [read(HEADER + n + k) for k in range(n)])
        return array._getvalue()
    if isinstance(kind, BundleType):
        return read(0, context.get_value_type(kind))
    if kind == types.float64:
        return read(0, ir.DoubleType())
    return read(0)


@unbox(BundleType)
def _unbox(kind: Any, value: Any, c: Any) -> Any:
    held = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_ulonglong(held)
    c.pyapi.decref(held)
    return NativeValue(c.builder.inttoptr(address, c.context.get_value_type(kind)))
