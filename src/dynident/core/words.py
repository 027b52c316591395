"""Numbers, names and tables as plain text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 80
LABEL = 12
"""Columns of the header's keywords."""
LONGEST_NAME = 25
"""Columns that a joint's name may take in a table."""
ROUNDED = 1e-9
"""Standard deviation over the value that is none, but what rounding leaves to what is held."""


def format_number(value: float | None, digits: int = 4) -> str:
    """A value to some significant digits; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:#.{digits}g}".rstrip(".") if value else "0"


def format_with_error(value: float | None, std: float) -> str:
    """A value with its standard deviation in units of the last digits, ``0.646(21)``.

    A dash in the place of the standard deviation where there is none, or of both.
    """
    if value is None or not math.isfinite(value):
        return "-"
    if not (math.isfinite(std) and std > ROUNDED * abs(value)):
        return f"{format_number(value)}(-)"
    largest = max(abs(value), std)
    power = math.floor(math.log10(largest))
    power = 0 if -4 <= power < 6 else power
    scaled, error = value / 10.0**power, std / 10.0**power
    # two digits of the error, or all of them where it is large
    decimals = max(0, 1 - math.floor(math.log10(float(f"{error:.1e}"))))
    tail = f"e{power:+03d}" if power else ""
    digits = f"{error * 10.0**decimals:.0f}"
    return f"{scaled:z.{decimals}f}({digits}){tail}"


def format_one_sided(low: float, high: float) -> str:
    """An interval from a bound on, ``< 0.12``; with both ends where the bound is not zero."""
    if low == 0.0:
        return f"< {format_number(high, 2)}"
    return f"> {format_number(low, 2)}" if high == 0.0 else f"{low:.3g} to {high:.3g}"


def format_percent(value: float | None) -> str:
    """A percentage with as many digits as its size asks for; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "-"
    if 0.0 < abs(value) < 0.01 or abs(value) >= 1e5:
        return f"{value:.2g}"
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.2f}"


def format_rough(percent: float) -> str:
    """A percentage in a sentence: two digits, or all before the point."""
    return f"{percent:.2g}" if abs(percent) < 99.5 else f"{percent:.0f}"


def shorten_line(text: str, width: int) -> str:
    """One line of at most `width` characters, the last an ellipsis where it was longer."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def format_common_values(values: Iterable[float]) -> str:
    """A list in words: one value where all agree."""
    texts = [f"{v:g}" for v in values]
    return texts[0] if len(set(texts)) == 1 else " ".join(texts)


def format_entry(key: str, text: str) -> list[str]:
    """A keyword with its text beside it, wrapped."""
    indent = max(LABEL, len(key) + 2)
    return textwrap.wrap(
        " ".join(text.split()) or "-",
        WIDTH,
        initial_indent=f"{key:<{indent}}",
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )


def format_table(
    stub: str, labels: Sequence[str], columns: Sequence[tuple[str, Sequence[str]]]
) -> list[str]:
    """A text table; columns beyond the 80th character follow in a block of their own."""
    names = [shorten_line(label, LONGEST_NAME) for label in labels]
    first = max(len(name) for name in (stub, *names))
    blocks: list[list[list[str]]] = []
    room = 0
    for title, cells in columns:
        width = max(len(cell) for cell in (title, *cells))
        if not blocks or room < width + 2:
            blocks.append([])
            room = WIDTH - first
        room -= width + 2
        blocks[-1].append([f"{cell:>{width}}" for cell in (title, *cells)])
    lines = []
    for block in blocks:
        for row, name in enumerate((stub, *names)):
            line = "  ".join([f"{name:<{first}}", *(column[row] for column in block)])
            lines.append(line.rstrip())
    return lines


def raise_powers(unit: str) -> str:
    """``kg m²`` for ``kg m^2``."""
    return unit.replace("^2", "²").replace("^3", "³")
