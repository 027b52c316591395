"""The base parameters of a fit with their intervals, beside the robot file's values."""

from __future__ import annotations

from dynident.core.words import format_with_error
from dynident.fit.parameters import list_base_parameters, list_file_parameters
from dynident.fit.result import Result
from dynident.plots.charts import Panel
from dynident.plots.parameters import build_forest


def show_parameters(fit: Result) -> Panel:
    """A forest of all base parameters but those that were eliminated."""
    both = zip(list_base_parameters(fit), list_file_parameters(fit), strict=True)
    kept = [(row, file) for row, file in both if row.essential]
    labels = [
        f"{row.name}  {format_with_error(row.value, row.std)} {raise_powers(file.unit)}"
        for row, file in kept
    ]
    return build_forest([row for row, _ in kept], [file.value for _, file in kept], labels)


def raise_powers(unit: str) -> str:
    """``kg m²`` for ``kg m^2``."""
    return unit.replace("^2", "²").replace("^3", "³")
