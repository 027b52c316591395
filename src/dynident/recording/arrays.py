"""Arrays in memory to a `Recording`, by the same checks as files.

What other libraries hand over is known by its shape: a frame has ``columns``, an array with
coordinates ``dims`` and ``coords``, a series an ``index``. None of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, check_type
from dynident.core.text import format_one_line, suggest_nearest
from dynident.filters.clock import ClockOptions
from dynident.readers.frames import (
    convert_to_floats,
    convert_to_numpy,
    is_frame,
    keep_if_time,
    list_frame_columns,
    read_index_time,
    select_frame_columns,
    take_frame_columns,
)
from dynident.readers.table import TIME, Table
from dynident.recording import checks
from dynident.recording.checks import Spot
from dynident.recording.floating import (
    FloatingOptions,
    choose_floating,
    find_logged_robot,
    list_floating_columns,
)
from dynident.recording.recording import SIGNALS, Recording
from dynident.recording.signals import (
    LogRequest,
    Side,
    SignalPlaces,
    Units,
    build_recording,
    sample_signals,
)
from dynident.robot.model import Robot


def read_arrays(
    q: Any,
    tau: Any = None,
    *,
    time: Any = None,
    rate: float | None = None,
    dq: Any = None,
    ddq: Any = None,
    qref: Any = None,
    dqref: Any = None,
    temp: Any = None,
    known: Any = None,
    robot: Robot | None = None,
    joints: Sequence[str] | None = None,
    units: Units | None = None,
    side: Side = "joint",
    name: str = "recording",
    clock: Literal["auto", "stamps", "uniform", "rate"] = "auto",
    bridge: float | None = None,
    bad_rows: Literal["refuse", "cut"] = "refuse",
    body: Mapping[str, Any] | None = None,
    floating: FloatingOptions | None = None,
) -> Recording:
    """Make a recording from arrays, with the same checks as for logs in files.

    Signals are lists, NumPy arrays, DataFrames (pandas, polars), Arrow tables, Series or DataArrays
    (xarray), with one row per sample and one column per joint; they are copied. Labels of columns
    are joint names, plain (``elbow``) or as in files (``q_elbow``), by which columns are matched.
    A time index, column or coordinate is used if `time` is not given.

    >>> log = di.read_arrays(log.q, log.tau, rate=200.0)

    Parameters
    ----------
    q, tau : array_like, shape (samples, n), or (samples,) of one joint
        Positions and torques; the latter may be missing if the wrench on a floating base is fitted.
        A frame or Dataset with the columns of a file (``q_elbow``, ``tau_elbow``) may be given
        once, as `q`: all signals that are not given are then taken from it.
    time : array_like, shape (samples,), optional
        Time stamps: numbers, dates or differences of dates.
    rate : float, optional
        Samples per second [Hz]; needed where there is no time.
    dq, ddq, qref, dqref : array_like, optional
        Measured velocities and accelerations; references.
    temp, known : array_like, optional
        Temperatures of the drives [deg C]; known torques on the joints [Nm or N].
    robot : Robot, optional
        Gives the joints' names and order, types and limits.
    joints : sequence of str, optional
        Names of columns without labels; selection and order of columns
        with labels. The robot's if it is given. Without names the order is as given.
    units : mapping, optional
        As of `read_log`: for ``q dq ddq qref dqref`` one of ``rad deg rev m mm``, or one a joint;
        for ``time`` one of ``s ms us ns``, for ``temp`` ``degC`` or ``K``.
    side : {"joint", "motor"}, a sequence of them, or a mapping
        As of `read_log`; motors need the `robot`.
    name : str
        What messages call it.
    clock, bridge, bad_rows
        As of `read_log`.
    body : mapping of str to array_like, optional
        For a floating base or contacts: ``base_position``, ``base_orientation``
        (or ``base_matrix``, ``base_rpy``), ``base_twist``, ``base_acceleration``, ``imu``,
        ``wrench_<contact>``, ``contact_<contact>`` with the columns that files have: arrays in
        their order, frames by their names.
    floating : FloatingOptions, optional
        Their interpretation.

    Returns
    -------
    Recording
        SI units, joint side, uniform clock. With names of joints, a `Problem` takes the columns
        of its robot's joints by name, or refuses.

    Raises
    ------
    InputError
        For shapes that do not match, missing joints, values that are not finite or implausibly
        large, time that goes backward, and everything else that `read_log` rejects.
    """
    try:
        clocking = ClockOptions(clock, bridge, bad_rows)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if robot is not None:
        check_type("read_arrays", robot, Robot, "dynident.load_robot(file) makes one")
        robot = find_logged_robot(robot)
    all_given = (q, tau, dq, ddq, qref, dqref, temp, known)
    given = dict(zip(SIGNALS, all_given, strict=False))
    if tau is None and is_frame(q):
        given, body = _spread_frame(given), {**_spread_body(q, robot), **(body or {})}
    signals = {
        key: _read_signal(name, key, value) for key, value in given.items() if value is not None
    }
    needed = {"q"} if robot is not None and robot.floating else {"q", "tau"}
    if not needed <= signals.keys():
        raise InputError(f"{name}: {'tau' if 'q' in signals else 'q'} is None; it is needed")
    samples = len(signals["q"].values)
    for key, signal in signals.items():
        if len(signal.values) != samples:
            raise InputError(
                f"{name}: {key} has shape {signal.values.shape}, q has {signals['q'].values.shape}"
            )
    if isinstance(joints, str):
        joints = (joints,)
    names = _list_joints(signals, robot, joints)
    n = signals["q"].values.shape[1] if names is None else len(names)
    called = tuple(f"joint {k + 1}" for k in range(n)) if names is None else names
    request = LogRequest(
        name, called, robot, rate, units or {}, side, clocking, names is not None,
        choose_floating(floating),
    )  # fmt: skip
    spots = {
        key: _locate_joint_columns(key, one, signals, joints, request)
        for key, one in signals.items()
    }
    spots |= _locate_body_columns(body or {}, robot, samples, name)
    times = _tabulate_times(signals, time, samples, request)
    if not times and rate is None:
        raise InputError(f"{name}: has no time; give time, or rate")
    return build_recording([sample_signals(SignalPlaces(times, spots), request)], request)


def _locate_body_columns(
    body: Mapping[str, Any], robot: Robot | None, samples: int, name: str
) -> dict[str, list[Spot]]:
    """Columns of a base and of contacts."""
    known = {} if robot is None else list_floating_columns(robot)
    found = {}
    for key, given in body.items():
        if key not in known:
            raise InputError(
                f"{name}: body: {key!r} is none of the robot's{suggest_nearest(key, known)}; there "
                f"are {', '.join(known) or 'none, as it neither floats nor has contacts'}"
            )
        signal = _read_signal(name, key, given)
        values = signal.values
        if signal.labels is not None:
            values = values[:, [_find_label(name, key, signal.labels, x) for x in known[key]]]
        if values.shape != (samples, len(known[key])):
            raise InputError(
                f"{name}: {key} has shape {values.shape}; it needs {samples} rows of "
                f"{', '.join(known[key])}"
            )
        table = Table(Path(f"{name}: {key}"), known[key], values)
        found[key] = [(table, k) for k in range(values.shape[1])]
    return found


def _find_label(name: str, key: str, labels: Sequence[str], wanted: str) -> int:
    """The column of a frame that has this name."""
    if wanted not in labels:
        there = ", ".join(map(repr, labels))
        raise InputError(
            f"{name}: {key} has no column {wanted!r}; there are {there}: rename them, or give "
            "an array"
        )
    return labels.index(wanted)


@dataclass(frozen=True)
class _Signal:
    """What was handed over: numbers, the joints' labels and the time where it has them."""

    values: Array
    labels: tuple[str, ...] | None
    time: np.ndarray[Any, Any] | None


def _read_signal(name: str, key: str, given: Any) -> _Signal:
    try:
        numbers, labels, time = _split_labels_and_time(given)
        values = convert_to_floats(numbers)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{name}: {key} is not an array of numbers ({format_one_line(error)})"
        ) from error
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.size:
        raise InputError(
            f"{name}: {key} has shape {values.shape}; it needs a row a sample and a column a joint"
        )
    if labels is not None and not all(isinstance(label, str) for label in labels):
        labels = None  # counted, not named
    if labels is not None and len({*labels}) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"{name}: {key} has column {twice!r} twice; rename one")
    return _Signal(values, labels, time)


def _split_labels_and_time(given: Any) -> tuple[Any, tuple[Any, ...] | None, Any]:
    """What holds the numbers, the columns' labels and the time."""
    if hasattr(given, "dims") and hasattr(given, "coords"):
        return _split_coordinates(given)
    if not is_frame(given):
        return given, None, read_index_time(given)
    labels = list_frame_columns(given)
    stamps = [label for label in labels if label in TIME]
    time = convert_to_numpy(given[stamps[0]]) if stamps else read_index_time(given)
    rest = tuple(label for label in labels if label not in stamps)
    return take_frame_columns(given, rest), rest, time


def _spread_frame(given: dict[str, Any]) -> dict[str, Any]:
    """The signals of a frame with the columns of a file that was given once, in the place of q."""
    frame = given["q"]
    names = [name for name in list_frame_columns(frame) if isinstance(name, str)]
    own = {key: [name for name in names if name.startswith(f"{key}_")] for key in given}
    if not own["q"] or not own["tau"]:
        return given
    time = [name for name in names if name in TIME]
    found = {
        key: select_frame_columns(frame, [*time, *columns])
        for key, columns in own.items()
        if columns and (key == "q" or given[key] is None)
    }
    return {**given, **found}


def _spread_body(frame: Any, robot: Robot | None) -> dict[str, Any]:
    """What a frame with the columns of a file has of a base and of contacts."""
    known, names = {} if robot is None else list_floating_columns(robot), list_frame_columns(frame)
    return {
        key: select_frame_columns(frame, columns)
        for key, columns in known.items()
        if {*columns} <= {*names}
    }


def _split_coordinates(given: Any) -> tuple[Any, tuple[Any, ...] | None, Any]:
    """The same of an array with named dimensions."""
    dims = tuple(given.dims)
    words = [
        convert_to_numpy(given.coords[dim]).dtype.kind in "UO" if dim in given.coords else False
        for dim in dims
    ]
    rows = next((k for k, dim in enumerate(dims) if dim in TIME), int(words == [True, False]))
    values, labels, time = convert_to_numpy(given), None, None
    if dims and dims[rows] in given.coords:
        time = keep_if_time(dims[rows], convert_to_numpy(given.coords[dims[rows]]))
    if len(dims) == 2:
        values = values if rows == 0 else values.T
        if dims[1 - rows] in given.coords:
            labels = tuple(convert_to_numpy(given.coords[dims[1 - rows]]).tolist())
    return values, labels, time


# joints


def _map_joints_to_columns(key: str, labels: Sequence[str]) -> dict[str, int]:
    """Columns by the joints' names: those that are called as in files, where there are any."""
    own = {x[len(key) + 1 :]: k for k, x in enumerate(labels) if x.startswith(f"{key}_")}
    return own or {label: k for k, label in enumerate(labels)}


def _list_joints(
    signals: dict[str, _Signal], robot: Robot | None, joints: Sequence[str] | None
) -> tuple[str, ...] | None:
    """Names of the joints in the order of the recording, where there are any."""
    if robot is not None:
        return robot.joint_names
    if joints is not None:
        return tuple(joints)
    found = (
        _map_joints_to_columns(key, one.labels)
        for key, one in signals.items()
        if one.labels is not None
    )
    return next((tuple(names) for names in found), None)


def _locate_joint_columns(
    key: str,
    signal: _Signal,
    signals: dict[str, _Signal],
    joints: Sequence[str] | None,
    request: LogRequest,
) -> list[Spot]:
    """Each joint's column of a signal, by name where it has names."""
    wanted, width = request.joints, signal.values.shape[1]
    labels = signal.labels
    if labels is None and joints is not None:
        labels = tuple(joints)
        if len(labels) != width:
            raise InputError(
                f"{request.name}: {key} has {width} columns, joints names {len(labels)}"
            )
    names = wanted if labels is None and width == len(wanted) else labels
    table = Table(Path(f"{request.name}: {key}"), names, signal.values)
    if labels is not None:
        places = {label: k for k, label in enumerate(labels)}
        if not {*wanted} <= places.keys():
            places = _map_joints_to_columns(key, labels)
        missing = [joint for joint in wanted if joint not in places]
        if missing:
            partly = missing if len(missing) < len(wanted) and request.robot else ()
            raise InputError(
                f"{request.name}: {key} has no column of joint {missing[0]!r}; there are "
                f"{', '.join(map(repr, labels))}{checks.suggest_locking(partly)}"
            )
        return [(table, places[joint]) for joint in wanted]
    if width != len(wanted):
        other = signals["q"].values.shape
        if request.robot is None:
            reason = f"has shape {signal.values.shape}, q has {other}"
        else:
            reason = (
                f"has {width} columns, the robot has {len(wanted)} joints ({', '.join(wanted)})"
            )
        raise InputError(f"{request.name}: {key} {reason}")
    for label, one in signals.items():
        if (
            one.labels is not None
            and tuple(_map_joints_to_columns(label, one.labels)) != wanted != one.labels
        ):
            raise InputError(
                f"{request.name}: the columns of {label} are named and in another order than the "
                f"joints, those of {key} are not named; give joints, their names"
            )
    return [(table, column) for column in range(width)]


# time


def _tabulate_times(
    signals: dict[str, _Signal], time: Any, samples: int, request: LogRequest
) -> list[Spot]:
    """Time stamps: those given, or those that the signals have."""
    found = {f"time of {k}": one.time for k, one in signals.items() if one.time is not None}
    if time is not None:
        found = {"time": time}
    spots: list[Spot] = []
    origin: Any = None
    for key, given in found.items():
        try:
            stamps = convert_to_numpy(given) if hasattr(given, "to_numpy") else np.asarray(given)
            if stamps.dtype.kind in "mM":
                if "time" in request.units:
                    raise TypeError("units.time is for numbers, but it has dates")
                if origin is None:
                    origin = stamps[~np.isnat(stamps)].ravel()[:1]
                stamps = (stamps - origin) / np.timedelta64(1, "s")
            column = convert_to_floats(stamps)
        except (AttributeError, TypeError, ValueError) as error:
            reason = f"{key} is not an array of numbers ({format_one_line(error)})"
            raise InputError(f"{request.name}: {reason}") from error
        if column.shape not in ((samples,), (samples, 1)):
            raise InputError(
                f"{request.name}: {key} has shape {column.shape}, q has {signals['q'].values.shape}"
            )
        table = Table(Path(f"{request.name}: {key}"), ("time",), column.reshape(samples, 1).view())
        spots.append((table, 0))
    return spots
