"""What commands say: the answer on stdout, all else on stderr."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from dynident.report.fit import Fit


def print_json(document: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """An answer as JSON; numbers that are not finite become null."""
    from dynident.core.plain import replace_nonfinite, to_json

    typer.echo(to_json(replace_nonfinite(document)), nl=False)


def print_answer(
    as_json: bool,
    document: Callable[[], Mapping[str, Any] | Sequence[Mapping[str, Any]]],
    text: Callable[[], str],
) -> None:
    """What was found, as JSON or in words; what is asked for alone is made."""
    if as_json:
        print_json(document())
    else:
        typer.echo(text().removesuffix("\n"))


COLOURS = {
    "trusted": typer.colors.GREEN,
    "doubtful": typer.colors.YELLOW,
    "refuted": typer.colors.RED,
}


def paint_verdict(summary: str) -> str:
    """A summary with its verdict in colour, where a terminal shows it and `NO_COLOR` is not set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return summary
    state = re.compile(rf"^(verdict +)({'|'.join(COLOURS)})\b", re.MULTILINE)
    return state.sub(lambda m: m[1] + typer.style(m[2], fg=COLOURS[m[2]], bold=True), summary)


def say(kind: str, lines: Iterable[str]) -> None:
    """Warnings or notes, each of them once."""
    for line in dict.fromkeys(lines):
        typer.echo(f"{kind}: {line}", err=True)


def say_written(*places: Path | None) -> None:
    """What was written, where anything was."""
    for place in places:
        if place is not None:
            typer.echo(f"written to {place}", err=True)


def refuse_over_inputs(
    outputs: Iterable[Path | None], given: Iterable[str | Path], fits: Iterable[Fit] = ()
) -> None:
    """Refuse outputs that are files which a command was given, or which its results are made of.

    Logs are given as text, a,b for side by side.
    """
    from dynident.core.files import refuse_outputs
    from dynident.study.fits import list_fit_inputs

    read = [
        file for text in given for file in ([text] if isinstance(text, Path) else text.split(","))
    ]
    made = [file for fit in fits for file in list_fit_inputs(fit)]
    refuse_outputs([output for output in outputs if output is not None], [*read, *made])


def write_page(page: Path | None, render: Callable[[], str]) -> None:
    """Write what was found as a page, where one is asked for."""
    from dynident.core.files import write_files

    if page is not None:
        write_files({page: render().encode(errors="backslashreplace")})
        say_written(page)
