"""Options of `dynident.payload`: made by docs/make_options.py from the fields of the options."""

from __future__ import annotations

from typing import Literal, TypedDict


class PayloadOptions(TypedDict, total=False):
    """Options of `dynident.payload`."""

    frame: str | None
    gain_error: float | None
    gains: Literal["all", "joint"] | None
    mass: float | None
    seed: int | None
