"""The result of an identification as its users hold it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from dynident.results.result import Result
from dynident.results.text import summarise_result


@dataclass(frozen=True)
class Identification(Result):
    """A model with its certificate, its error bars and its errors; see `Result`."""

    def __repr__(self) -> str:
        """One line, for a prompt."""
        error = f"error {self.identification[0].overall_percent:.3g} % on fitted rows"
        if self.encoder_only:
            error = f"free simulation {self.simulated[0].free[-1].overall_milli:.3g} mrad"
        return (
            f"<Identification of {self.base.idim.robot.name} by {self.method}: "
            f"{self.verdict.state}, {error}; print(fit.summary())>"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    def summary(self, full: bool = False) -> str:
        """The result as plain text of at most 80 columns; `full` adds all base parameters."""
        return summarise_result(self, full)
