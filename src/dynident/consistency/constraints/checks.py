"""What a constraint is told, checked where it is made: numbers, names and words.

Values come back as plain floats, tuples and strings, so that a constraint built from numpy
arrays is the same as one of a study, and is written as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array
from dynident.core.errors import InputError, SectionError

LARGEST = 1e9
"""No mass, length, inertia or friction of a robot is larger, in SI units."""


Names = Annotated[tuple[str, ...], Field(min_length=1)] | str
"""A name, or several."""


def check_numbers(
    kind: str,
    key: str,
    values: Sequence[float],
    count: int = 3,
    positive: bool = False,
    bounded: bool = True,
) -> tuple[float, ...]:
    """Values as so many plain numbers, each positive where asked, infinite ones refused if bounded.

    Kind and key of the constraint are for the message.
    """
    try:
        array = np.array(values)
    except ValueError:  # rows of different lengths
        array = np.array([])
    fits = array.shape == (count,) and array.dtype.kind in "iuf" and not np.any(np.isnan(array))
    if not fits or (bounded and not np.all(np.isfinite(array))) or (positive and array.min() <= 0):
        given = values if count > 1 else values[0]
        word = "positive " if positive else "finite " if bounded else ""
        wanted = f"{count} {word}number{'s' if count > 1 else ''}"
        raise InputError(
            f"constraint {kind!r}: {key} is {abbreviate_value(given)} but has to be {wanted}"
        )
    if np.any(np.isfinite(array) & (np.abs(array.astype(float)) > LARGEST)):
        raise InputError(
            f"constraint {kind!r}: {key} has {np.max(np.abs(array)):g}, more than {LARGEST:g}; "
            "check its unit, or leave it out"
        )
    return tuple(float(value) for value in array)


def check_number(kind: str, key: str, value: float, positive: bool = False) -> float:
    """One finite value as a plain number; see `check_numbers`."""
    return check_numbers(kind, key, (value,), count=1, positive=positive)[0]


def check_interval(
    kind: str, lower: float | None, upper: float | None
) -> tuple[float | None, float | None]:
    """Two bounds, one of which may be left out."""
    if lower is None and upper is None:
        raise InputError(f"constraint {kind!r} has neither lower nor upper")
    low = None if lower is None else check_number(kind, "lower", lower)
    high = None if upper is None else check_number(kind, "upper", upper)
    if low is not None and high is not None and low > high:
        raise InputError(f"constraint {kind!r} has lower {low:g} above upper {high:g}")
    return low, high


def check_name_list(kind: str, key: str, values: Iterable[str] | str) -> tuple[str, ...] | str:
    """A name, or several that differ."""
    if isinstance(values, str):
        return check_name(kind, key, values)
    if not isinstance(values, Iterable):
        raise InputError(
            f"constraint {kind!r}: {key} is {abbreviate_value(values)} but has to be names"
        )
    given = tuple(check_name(kind, key, value) for value in values)
    if not given:
        raise InputError(f"constraint {kind!r}: {key} is empty but has to be names")
    for k, one in enumerate(given):
        if one in given[:k]:
            raise InputError(f"constraint {kind!r}: {key} has {one!r} twice")
    return given


def check_name(kind: str, key: str, value: str) -> str:
    """A name that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputError(
            f"constraint {kind!r}: {key} is {abbreviate_value(value)} but has to be a name"
        )
    return str(value)


def check_word(kind: str, key: str, value: str, choices: Iterable[str]) -> str:
    """One of some words."""
    known = tuple(choices)
    if not isinstance(value, str) or value not in known:
        raise InputError(
            f"constraint {kind!r}: {key} is {abbreviate_value(value)}; use one of "
            f"{', '.join(known)}"
        )
    return str(value)


def check_flag(kind: str, key: str, value: bool) -> bool:
    """A truth value."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(
            f"constraint {kind!r}: {key} is {abbreviate_value(value)} but has to be True or False"
        )
    return bool(value)


def set_frozen_fields(constraint: object, **values: Any) -> None:
    """Put checked values in the place of those that a frozen constraint was given."""
    for key, value in values.items():
        object.__setattr__(constraint, key, value)


def abbreviate_value(value: object) -> str:
    """What was given, in one line of some words."""
    plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    text = " ".join(repr(plain).split())
    return text if len(text) <= 60 else text[:57] + "..."


def format_vector(values: Array | Sequence[float], digits: int = 6) -> str:
    """A point or a direction in words."""
    return "(" + " ".join(f"{round(float(v), digits) + 0.0:g}" for v in values) + ")"


@contextmanager
def name_constraint_in_errors(number: int) -> Iterator[None]:
    """Name a constraint by its place among all, from 1, in what is refused inside.

    As the key of a study is named: ``constraint[2] 'box': ...``.
    """
    try:
        yield
    except InputError as error:
        message = str(error)
        rest = message.removeprefix("constraint")
        told = rest if rest != message else f": {message}"
        raise SectionError(f"constraint[{number}]{told}") from error
