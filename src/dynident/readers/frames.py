"""Data frames as tables, as files are: of pandas, polars, Arrow or xarray, none of them imported.

What they are is known by their shape: a frame has ``columns``, an Arrow table ``column_names``, a
dataset of xarray ``data_vars``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.text import format_one_line
from dynident.readers.table import TIME, LazyColumns, Table


@dataclass(frozen=True)
class Dataset:
    """A dataset of xarray as a frame: columns of numbers by name."""

    held: Mapping[str, Array]

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.held)

    def __getitem__(self, wanted: Any) -> Any:
        """A column, or some of them as a frame."""
        if isinstance(wanted, str):
            return self.held[wanted]
        return Dataset({name: self.held[name] for name in wanted})

    def to_numpy(self) -> Any:
        """All of it, a column a column."""
        return np.column_stack([*self.held.values()])


def spread_dataset(given: Any) -> Any:
    """A dataset of xarray as a frame; what else there is as it is.

    Variables along its samples are columns; one that has another dimension beside, as joints, gives
    a column each, ``q_elbow``, by the labels of that dimension, or else by numbers from 1. The
    first dimension that has the time as its coordinate, or of all, is that of the samples.
    """
    if not hasattr(given, "data_vars"):
        return given
    timed = (str(d) for d in given.sizes if d in TIME and d in given.coords)
    along = next(timed, next(iter(given.sizes), None))
    held: dict[str, Array] = {}
    if along in given.coords:
        held[TIME[0] if along in TIME else str(along)] = given.coords[along].to_numpy()
    for name, variable in given.data_vars.items():
        others = [dim for dim in variable.dims if dim != along]
        if len(others) == len(variable.dims) or len(others) > 1:
            continue
        if not others:
            held[str(name)] = variable.to_numpy()
            continue
        values = variable.transpose(along, *others).to_numpy()
        count = values.shape[1]
        labels = given.coords[others[0]].to_numpy() if others[0] in given.coords else None
        for k, label in enumerate(range(1, count + 1) if labels is None else labels):
            held[f"{name}_{label}"] = values[:, k]
    return Dataset(held)


def is_frame(given: Any) -> bool:
    """Whether something is a data frame, an Arrow table or a dataset."""
    return hasattr(given, "column_names") or (
        (hasattr(given, "columns") or hasattr(given, "data_vars")) and hasattr(given, "__getitem__")
    )


def take_path(given: Any) -> Path:
    """The path of a file; `InputError` for what is neither a file nor a frame."""
    if isinstance(given, (str, PathLike)):
        return Path(given)
    name = type(given).__name__
    raise InputError(
        f"read_log takes files and data frames, not {name}: dynident.read_arrays(q, tau, rate=...) "
        "takes arrays"
    )


def list_frame_columns(given: Any) -> tuple[Any, ...]:
    """Names of a frame's columns."""
    given = spread_dataset(given)
    return tuple(given.column_names if hasattr(given, "column_names") else given.columns)


def take_frame_columns(given: Any, names: Sequence[Any]) -> Any:
    """Some of a frame's columns, by name, as what holds numbers."""
    given = spread_dataset(given)
    if hasattr(given, "column_names"):
        return np.column_stack([convert_to_floats(given[name]) for name in names])
    own = list(dict.fromkeys(names))
    return given if tuple(own) == list_frame_columns(given) else given[own]


def select_frame_columns(given: Any, names: Sequence[str]) -> Any:
    """Some of a frame's columns, by name, as a frame of its kind."""
    given = spread_dataset(given)
    own = list(dict.fromkeys(names))
    return given.select(own) if hasattr(given, "column_names") else given[own]


def read_frame(given: Any, name: str) -> Table:
    """A frame as the table of a file; dates are seconds since the first, and words are skipped.

    An index that plainly is the time, of pandas, is a column of it.
    """
    path, given = Path(name), spread_dataset(given)
    try:
        names = list_frame_columns(given)
        every: list[tuple[Any, Any]] = [(each, given[each]) for each in dict.fromkeys(names)]
        index = read_index_time(given)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{name}: is not a table ({format_one_line(error)})") from error
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

    return Table(path, tuple(columns), LazyColumns((samples, len(values)), take), tuple(skipped))


def convert_column(held: Any) -> Array:
    """A column as numbers, shape (samples,); dates as seconds since the first."""
    values = convert_to_numpy(held)
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
    values = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)
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
        raise TypeError(f"its type is {values.dtype}")
    return values.astype(float, copy=False).view()
