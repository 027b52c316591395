"""Parameters of which some run always, and the others with the longer tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(values: Iterable[Any], count: int = 1) -> list[Any]:
    """The first few as they are, the others marked as long."""
    values = list(values)
    return [*values[:count], *(long(value) for value in values[count:])]


def long(*values: Any) -> Any:
    """One case that runs with the longer tests."""
    return pytest.param(*values, marks=pytest.mark.long)
