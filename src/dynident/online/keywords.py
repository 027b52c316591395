"""Options of `dynident.track`: made by docs/make_options.py from the fields of the options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

import numpy.typing as npt


class TrackOptions(TypedDict, total=False):
    """Options of `dynident.track`."""

    consistent: bool | None
    cutoff: float | None
    directional: bool | None
    every: float | None
    false_alarms: float | None
    instruments: Literal["none", "reference"] | None
    link: str | None
    memory: float | None
    memory_friction: float | None
    settle: float | None
    sigma: float | Sequence[float] | npt.NDArray[Any] | None
    walk: float | None
    walk_friction: float | None
    window: float | None
