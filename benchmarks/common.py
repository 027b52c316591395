"""What the benchmarks share: where things are, a clock, a table. Loads nothing of the library."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
TX40 = ROOT / "examples" / "tx40"
EMPS = ROOT / "examples" / "emps"


def timed(action: Callable[[], object], runs: int, before: bool = True) -> float:
    """Median seconds of an action, after one run that does not count."""
    if before:
        action()
    laps = []
    for _ in range(runs):
        started = time.perf_counter()
        action()
        laps.append(time.perf_counter() - started)
    return statistics.median(laps)


def markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    """A table as lines of Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def coloured(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> np.ndarray:
    """First-order autoregressive noise of unit variance."""
    white = rng.normal(size=shape) * np.sqrt(1.0 - rho**2)
    out = np.empty(shape)
    out[0] = rng.normal(size=shape[1])
    for k in range(1, shape[0]):
        out[k] = rho * out[k - 1] + white[k]
    return out
