"""Progress and timings of work that takes more than a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Progress = Callable[[str, float], None]
"""Called with a stage's name and the share of it that is done, 0 to 1."""


def ignore_progress(stage: str, share: float) -> None:
    """Report progress to nobody."""


def report_part(progress: Progress, stage: str, begin: float, end: float) -> Progress:
    """Progress of a part of a stage, which is its share from `begin` to `end`."""
    return lambda _, share: progress(stage, begin + (end - begin) * share)


@dataclass
class Stopwatch:
    """Seconds per stage."""

    laps: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    last: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        """Book the time since the last call under a stage."""
        now = time.perf_counter()
        self.laps[stage] = self.laps.get(stage, 0.0) + now - self.last
        self.last = now

    def total(self) -> dict[str, float]:
        """All laps and their total."""
        return {**self.laps, "total": time.perf_counter() - self.started}


def estimate_progress(taken: int) -> float:
    """Share of an iteration that is done, of which nobody knows the steps: half after eight."""
    return 1.0 - float(0.5 ** (taken / 8.0))
