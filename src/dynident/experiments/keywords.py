"""Options of `dynident.protocol`: made by docs/make_options.py from the fields of the options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy.typing as npt


class ProtocolOptions(TypedDict, total=False):
    """Options of `dynident.protocol`."""

    acceleration: float | Sequence[float] | npt.NDArray[Any] | None
    base_wrench: Sequence[float] | npt.NDArray[Any] | None
    clearance: float | None
    collision: bool | None
    damping: float | None
    floor: bool | float | None
    ignore: Sequence[Sequence[str]] | None
    iterations: int | None
    jerk: float | Sequence[float] | npt.NDArray[Any] | None
    lengths: Sequence[float] | npt.NDArray[Any] | None
    lower: float | Sequence[float] | npt.NDArray[Any] | None
    margin: float | None
    mass: float | None
    period: float | None
    periods: int | None
    questions: Sequence[str] | None
    rate: float | None
    seed: int | None
    share: float | None
    sigma: float | Sequence[float] | npt.NDArray[Any] | None
    speed: float | Sequence[float] | npt.NDArray[Any] | None
    srdf: str | None
    starts: int | None
    sweeping: float | None
    time: float | None
    torque: float | Sequence[float] | npt.NDArray[Any] | None
    upper: float | Sequence[float] | npt.NDArray[Any] | None
