"""Options of `dynident.excite`: made by docs/make_options.py from the fields of the options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

import numpy.typing as npt


class ExciteOptions(TypedDict, total=False):
    """Options of `dynident.excite`."""

    acceleration: float | Sequence[float] | npt.NDArray[Any] | None
    avoid: Sequence[Sequence[float]] | None
    base_wrench: Sequence[float] | npt.NDArray[Any] | None
    clearance: float | None
    collision: bool | None
    criterion: (
        Literal[
            "d",
            "a",
            "e",
            "condition",
            "column-condition",
            "presse-gautier",
            "std",
            "torque",
            "unknown",
        ]
        | None
    )
    drop_below: float | Sequence[float] | npt.NDArray[Any] | None
    duration: float | None
    floor: bool | float | None
    free_knots: bool | None
    harmonics: int | None
    ignore: Sequence[Sequence[str]] | None
    initial: float | Sequence[float] | npt.NDArray[Any] | None
    intervals: int | None
    iterations: int | None
    jerk: float | Sequence[float] | npt.NDArray[Any] | None
    knots: Sequence[float] | npt.NDArray[Any] | None
    load: float | None
    load_centre: Sequence[float] | npt.NDArray[Any] | None
    lower: float | Sequence[float] | npt.NDArray[Any] | None
    margin: float | None
    periods: int | None
    points: int | None
    polish: bool | None
    ramp: float | None
    rate: float | None
    seed: int | None
    sensor: str | None
    sensor_sigma: Sequence[float] | npt.NDArray[Any] | None
    share: float | None
    sigma: float | Sequence[float] | npt.NDArray[Any] | None
    smoothing: float | None
    speed: float | Sequence[float] | npt.NDArray[Any] | None
    srdf: str | None
    starts: int | None
    time: float | None
    torque: float | Sequence[float] | npt.NDArray[Any] | None
    trajectory: (
        Literal["fourier", "spline", "bang-bang", "quintic", "cartesian", "sweeps", "rests"] | None
    )
    upper: float | Sequence[float] | npt.NDArray[Any] | None
    wanted: Sequence[str] | None
