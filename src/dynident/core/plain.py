"""Frozen types as plain data and back: what JSON can hold, by the declared types of fields.

Numbers come back to the last bit. What is not finite, which JSON has no word for, is text.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from dynident.core.errors import InputError

NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
SHAPE = "shape"
"""Of an array without entries."""
KIND = "type"
"""Key that tells apart the types of a union."""

ADDED = {"added": True}
"""Metadata of a field that files of earlier versions do not have: it is as by default there."""

ODD = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError)
"""What makers raise of data that are not for them."""


class PlainForm(NamedTuple):
    """How values of a type that has a form of its own become plain data, and are made of it."""

    to_plain: Callable[[Any], Any]
    from_plain: Callable[[Any], Any]


Forms = Mapping[Any, PlainForm]


class TypeMismatch(Exception):  # noqa: N818  # raised and caught here alone
    """Data that are not of their type; the place comes first to last."""

    def __init__(self, what: str, *place: str) -> None:
        super().__init__(what)
        self.what, self.place = what, place


def to_plain(kind: Any, value: Any, forms: Forms | None = None) -> Any:
    """A value as dictionaries, lists, texts, numbers, truth values and None.

    Its kind is a frozen dataclass, a named tuple, an array, or a tuple, a mapping or a union of
    such, but for types that have forms of their own.
    """
    forms = {} if forms is None else forms
    if value is None and accepts_none(strip_annotation(kind)):
        return None
    options = list_union_members(strip_annotation(kind))
    if len(options) == 1 and options[0] in forms:
        return forms[options[0]].to_plain(value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.ndarray) and not value.size and value.ndim > 1:
        return {SHAPE: list(value.shape)}  # lists would not tell
    if isinstance(value, np.ndarray | np.generic):
        return replace_not_finite(value.tolist())
    if isinstance(value, int | float):
        return replace_not_finite(value)
    if isinstance(value, Path):
        return str(value)
    if len(options) > 1:
        own = next((each for each in options if each is type(value)), None)
        if own is not None:
            return {KIND: own.__name__, **to_plain(own, value, forms)}
        same = (each for each in options if has_shape_of(each, value))
        return to_plain(next(same, type(value)), value, forms)
    (kind,) = options
    if isinstance(value, Mapping):
        inner = get_args(kind)[1] if get_args(kind) else Any
        return {str(key): to_plain(inner, each, forms) for key, each in value.items()}
    own_type: Any = type(value)
    hints = list_hints(own_type)
    if hints is not None:
        return {key: to_plain(each, getattr(value, key), forms) for key, each in hints.items()}
    if isinstance(value, tuple | list):
        return [
            to_plain(each, one, forms)
            for each, one in zip(list_item_kinds(kind, len(value)), value, strict=True)
        ]
    raise TypeError(f"{type(value).__name__} has no plain form")


def from_plain(kind: Any, data: Any, place: str, forms: Forms | None = None) -> Any:
    """A value of its plain data; the place is the file and a key of it, for the message."""
    try:
        return read_plain(kind, data, {} if forms is None else forms)
    except TypeMismatch as error:
        raise InputError(f"{'.'.join((place, *error.place))}: {error.what}") from error


def read_plain(kind: Any, data: Any, forms: Forms) -> Any:
    """A value of its plain data; raises `TypeMismatch`."""
    kind = strip_annotation(kind)
    if data is None and accepts_none(kind):
        return None
    options = list_union_members(kind)
    if len(options) > 1:
        return read_union(options, data, forms)
    (kind,) = options
    if kind in forms:
        return make(forms[kind].from_plain, data)
    origin = get_origin(kind) or kind
    if kind is Any:
        return data
    if origin is Literal:
        return expect(data, data in get_args(kind), f"one of {get_args(kind)}")
    if origin is np.ndarray:
        return read_array(kind, data)
    if kind is float:
        if isinstance(data, str) and data in NOT_FINITE:
            return NOT_FINITE[data]
        number = isinstance(data, int | float) and not isinstance(data, bool)
        return float(expect(data, number, "a number"))
    if kind is int:
        return expect(data, isinstance(data, int) and not isinstance(data, bool), "a whole number")
    if kind in (bool, str):
        return expect(data, isinstance(data, kind), {bool: "true or false", str: "a text"}[kind])
    if kind is Path:
        return Path(expect(data, isinstance(data, str), "a file's name"))
    hints = list_hints(origin)
    if hints is not None:
        expect(data, isinstance(data, dict), "an object")
        own = fields(origin) if is_dataclass(origin) else ()
        added = {each.name for each in own if "added" in each.metadata}
        missing = [key for key in hints if key not in data and key not in added]
        if missing:
            raise TypeMismatch(
                "is missing; make it again with this version of dynident", missing[0]
            )
        here = {key: each for key, each in hints.items() if key in data}
        found = {key: within(key, each, data[key], forms) for key, each in here.items()}
        return make(lambda given: origin(**given), found)
    if issubclass(origin, Mapping):
        expect(data, isinstance(data, dict), "an object")
        inner = get_args(kind)[1]
        return {key: within(key, inner, each, forms) for key, each in data.items()}
    expect(data, isinstance(data, list), "a list")
    kinds = list_item_kinds(kind, len(data))
    if len(kinds) != len(data):
        raise TypeMismatch(f"has {len(data)} entries instead of {len(kinds)}")
    return tuple(
        within(str(k), each, one, forms)
        for k, (each, one) in enumerate(zip(kinds, data, strict=True), 1)
    )


def read_union(options: tuple[Any, ...], data: Any, forms: Forms) -> Any:
    """A value of one of several types: of the named one, or of the first that the data fit."""
    if isinstance(data, dict) and KIND in data:
        named = [each for each in options if getattr(each, "__name__", "") == data[KIND]]
        options = tuple(named) or options
    problem = TypeMismatch("has none of its permitted types")
    for each in options:
        try:
            return read_plain(each, data, forms)
        except TypeMismatch as error:
            problem = error
    raise problem


def read_array(kind: Any, data: Any) -> np.ndarray:
    """An array of nested lists, read-only."""
    if isinstance(data, dict):
        empty: np.ndarray = make(lambda given: np.zeros(given[SHAPE]), data)
        return empty
    expect(data, isinstance(data, list), "a list of numbers")
    dtype = get_args(get_args(kind)[1])[0] if len(get_args(kind)) > 1 else float
    array: np.ndarray = make(lambda given: np.array(given, dtype=dtype), data)
    array.setflags(write=False)
    return array


def within(key: str, kind: Any, data: Any, forms: Forms) -> Any:
    """`read_plain`, with its key in what it raises."""
    try:
        return read_plain(kind, data, forms)
    except TypeMismatch as error:
        raise TypeMismatch(error.what, key, *error.place) from error


def make(maker: Callable[[Any], Any], data: Any) -> Any:
    """What a maker makes; its complaints are a misfit."""
    try:
        return maker(data)
    except TypeMismatch:
        raise
    except (InputError, *ODD) as error:
        raise TypeMismatch(f"cannot be read ({error})") from error


def expect(data: Any, fits: bool, what: str) -> Any:
    """The data, where they fit."""
    if not fits:
        raise TypeMismatch(f"is {str(data)[:60]!r} but should be {what}")
    return data


def replace_not_finite(value: Any) -> Any:
    """Numbers, or nested lists of them, with text for those that are not finite."""
    if isinstance(value, list):
        return [replace_not_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def strip_annotation(kind: Any) -> Any:
    """A type without the notes beside it."""
    while hasattr(kind, "__metadata__"):
        kind = kind.__origin__
    return kind


def list_union_members(kind: Any) -> tuple[Any, ...]:
    """The types of a union but None, or the type itself."""
    if get_origin(kind) not in (Union, types.UnionType):
        return (kind,)
    inner = (strip_annotation(each) for each in get_args(kind) if each is not type(None))
    return tuple(member for each in inner for member in list_union_members(each))


def accepts_none(kind: Any) -> bool:
    """Whether None is of a type."""
    return kind in (None, Any, type(None)) or type(None) in get_args(kind)


def has_shape_of(kind: Any, value: Any) -> bool:
    """Whether a type is a container like the value."""
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and isinstance(value, origin)


def list_item_kinds(kind: Any, count: int) -> tuple[Any, ...]:
    """The types of the entries of a tuple."""
    given = get_args(kind)
    if not given:
        return (Any,) * count
    return (given[0],) * count if len(given) == 1 or given[1] is Ellipsis else given


@cache
def list_hints(kind: Any) -> dict[str, Any] | None:
    """The fields of a dataclass or of a named tuple with their types; None of others."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return {each.name: hints[each.name] for each in fields(kind) if each.init}
    return get_type_hints(kind) if hasattr(kind, "_fields") else None


def replace_nonfinite(value: Any) -> Any:
    """Plain data without NaN or infinity."""
    if isinstance(value, dict):
        return {key: replace_nonfinite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nonfinite(entry) for entry in value]
    if isinstance(value, np.floating | float):
        return float(value) if math.isfinite(value) else None
    return value


def to_json(document: Mapping[str, Any] | Sequence[Any], indent: int | None = 2) -> str:
    """Text of a JSON document, ending in a newline; what is a fit's state, in one line.

    All of it is in one line where indent is None.
    """
    if indent is None or not isinstance(document, Mapping) or "state" not in document:
        return json.dumps(document, indent=indent, allow_nan=False) + "\n"
    told = {key: value for key, value in document.items() if key != "state"}
    text = json.dumps(told, indent=indent, allow_nan=False)
    state = json.dumps(document["state"], allow_nan=False, separators=(",", ":"))
    return f'{text[:-2]},\n  "state": {state}\n}}\n'
