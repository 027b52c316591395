"""Options of `dynident.prepare`: made by docs/make_options.py from the fields of the options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

import numpy.typing as npt


class PrepareOptions(TypedDict, total=False):
    """Options of `dynident.prepare`."""

    decimation: int | None
    derivatives: Literal["differences", "measured"] | None
    drop_below: float | Sequence[float] | npt.NDArray[Any] | None
    median: int | None
    period: Literal["found", "none"] | float | None
    position_hz: float | Sequence[float] | npt.NDArray[Any] | None
    rests: float | None
    torque_hz: float | Sequence[float] | npt.NDArray[Any] | None
    torque_median: int | None
    warmup: int | None
