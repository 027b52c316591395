"""The result of an identification as its users hold it."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.results.result import Result
from dynident.results.text import summary


@dataclass(frozen=True)
class Identification(Result):
    """A model with its certificate, its error bars and its errors; see `Result`."""

    def summary(self, full: bool = False) -> str:
        """The result as plain text of at most 80 columns; `full` adds all base parameters."""
        return summary(self, full)
