"""Data frames as tables, as files are: of pandas, polars or Arrow, none of which is imported.

What they are is known by their shape: a frame has ``columns``, an Arrow table ``column_names``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.text import format_one_line
from dynident.readers.table import TIME, Lazy, Table


def is_frame(given: Any) -> bool:
    """Whether something is a data frame or an Arrow table."""
    return hasattr(given, "column_names") or (
        hasattr(given, "columns") and hasattr(given, "__getitem__")
    )


def list_frame_columns(given: Any) -> tuple[Any, ...]:
    """Names of a frame's columns."""
    return tuple(given.column_names if hasattr(given, "column_names") else given.columns)


def take_frame_columns(given: Any, names: Sequence[Any]) -> Any:
    """Some of a frame's columns, by name, as what holds numbers."""
    if hasattr(given, "column_names"):
        return np.column_stack([convert_to_floats(given[name]) for name in names])
    own = list(dict.fromkeys(names))
    return given if tuple(own) == list_frame_columns(given) else given[own]


def select_frame_columns(given: Any, names: Sequence[str]) -> Any:
    """Some of a frame's columns, by name, as a frame of its kind."""
    own = list(dict.fromkeys(names))
    return given.select(own) if hasattr(given, "column_names") else given[own]


def read_frame(given: Any, name: str) -> Table:
    """A frame as the table of a file; dates are seconds since the first, and words are skipped.

    An index that plainly is the time, of pandas, is a column of it.
    """
    path = Path(name)
    try:
        names = list_frame_columns(given)
        every: list[tuple[Any, Any]] = [(each, given[each]) for each in dict.fromkeys(names)]
        index = read_index_time(given)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{name}: is no table ({format_one_line(error)})") from error
    if len({*names}) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise InputError(f"{name}: has column {twice!r} twice; rename one")
    if index is not None and not {*names} & {*TIME}:
        every.insert(0, (TIME[0], index))
    columns: dict[str, Array] = {}
    skipped: list[tuple[str, str]] = []
    for key, held in every:
        try:
            columns[str(key)] = convert_column(held)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            skipped.append((str(key), f"holds no numbers ({format_one_line(error)})"))
    values = list(columns.values())
    samples = len(values[0]) if values else 0
    if not samples:
        reasons = "".join(f"; {key!r} {reason}" for key, reason in skipped[:3])
        raise InputError(f"{name}: holds no samples{reasons}")

    def take(wanted: Sequence[int]) -> Array:
        return (
            np.column_stack([values[k] for k in wanted]) if len(wanted) else np.empty((samples, 0))
        )

    return Table(path, tuple(columns), Lazy((samples, len(values)), take), tuple(skipped))


def convert_column(held: Any) -> Array:
    """A column as numbers, shape (samples,); dates as seconds since the first."""
    values = convert_to_numpy(held) if hasattr(held, "to_numpy") else np.asarray(held)
    if values.dtype.kind in "mM":
        known = values[~np.isnat(values)]
        first = known[0] if len(known) and values.dtype.kind == "M" else np.timedelta64(0, "s")
        return np.asarray((values - first) / np.timedelta64(1, "s"), dtype=float)
    found = convert_to_floats(held)
    if found.ndim != 1:
        raise TypeError(f"it has shape {found.shape}")
    return found


def read_index_time(given: Any) -> Any:
    """The index of a frame or series, where it plainly is the time."""
    index = getattr(given, "index", None)
    if index is None or callable(index):  # a list's finds things
        return None
    return keep_if_time(getattr(index, "name", None), convert_to_numpy(index))


def keep_if_time(called: Any, values: Any) -> Any:
    """Time stamps, where they are called so or are dates."""
    return values if called in TIME or values.dtype.kind in "mM" else None


def convert_to_numpy(given: Any) -> Any:
    """An array of NumPy of what another library holds."""
    values = np.asarray(given.to_numpy())
    if values.dtype == object and str(getattr(given, "dtype", "")).startswith("datetime64"):
        values = given.to_numpy(dtype="datetime64[ns]")  # of a time zone
    return values


def convert_to_floats(given: Any) -> Array:
    """Numbers, what is missing as NaN; a view where nothing has to be changed."""
    if hasattr(given, "iloc"):  # of pandas, whose missing values have types of their own
        given = given.to_numpy(dtype=float, na_value=np.nan)
    elif hasattr(given, "to_numpy"):
        given = given.to_numpy()
    if isinstance(given, np.ma.MaskedArray):
        given = np.ma.filled(given.astype(float), np.nan)
    values = np.asarray(given)
    if values.dtype.kind not in "fiubO":
        raise TypeError(f"it is of type {values.dtype}")
    return values.astype(float, copy=False).view()
