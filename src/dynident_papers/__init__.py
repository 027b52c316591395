"""Experiments of papers repeated on simulated robots, their tables beside ours."""

from __future__ import annotations

from collections.abc import Callable

from dynident_papers import ardiani2024, brunot2019
from dynident_papers.tables import Reproduction

REPRODUCTIONS: dict[str, Callable[..., Reproduction]] = {
    "ardiani2024": ardiani2024.run,
    "brunot2019": brunot2019.run,
}
"""Experiments by name; each takes ``progress`` and ``reduced``."""
