"""What the benchmarks share: where things are, a clock, a table. Loads nothing of the library."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

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
