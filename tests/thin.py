"""Parameters of which the first run always, and the others with the longer tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(values: Iterable[Any], count: int = 1) -> list[Any]:
    """The first few as they are, the others marked as long."""
    values = list(values)
    return [*values[:count], *(pytest.param(v, marks=pytest.mark.long) for v in values[count:])]
