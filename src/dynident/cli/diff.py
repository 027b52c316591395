"""``dynident diff``: stored results side by side, or one beside its robot file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated

import typer

from dynident.cli.options import JsonFlag, LogFlags, PageOption, add_log_flags
from dynident.cli.output import print_json, refuse_over_inputs, say, write_page
from dynident.core.errors import InputError, name_study_in_errors

if TYPE_CHECKING:
    from dynident.report.fit import Fit

SCHEMA = "dynident.differences/1"
"""Of more than one difference."""


@add_log_flags
def diff(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT.json",
            help="The first is compared with each of the others; alone with its robot file.",
        ),
    ],
    logs: Annotated[
        list[str] | None,
        typer.Option(
            "--log", help="Evaluate all on this log, too; repeat for several, a,b for side by side."
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="List all parameters, in their order.")
    ] = False,
    page: PageOption = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
) -> None:
    """Print what stored results of one kind of robot say differently, and how surely."""
    from dynident.core.words import format_entry
    from dynident.report.pages import render_difference_page
    from dynident.study.fits import compare_on_logs, read_result

    told.refuse_without(logs)
    if len(results) > len(ascii_uppercase):
        raise InputError(f"{len(results)} results; at most {len(ascii_uppercase)} can be compared")
    one, *read = (read_result(path) for path in results)
    others: list[Fit | None] = [*read] or [None]
    files = [text.split(",") for text in logs or ()]
    refuse_over_inputs([page], [*results, *(logs or ())], [one, *read])
    found = []
    for letter, other in zip(ascii_uppercase[1:], others):
        with name_study_in_errors(None, stored=True):
            own, warnings = compare_on_logs(one, other, files, told.layout)
        say("warning", warnings)
        found.append(replace(own, names=("A", letter)))
    if json:
        every = [each.to_dict() for each in found]
        print_json(every[0] if len(every) == 1 else {"schema": SCHEMA, "differences": every})
    else:
        letters = zip(ascii_uppercase, results if len(found) > 1 else ())
        heads = ["\n".join(format_entry(letter, str(path))) for letter, path in letters]
        listed = ["\n".join(heads)] if heads else []
        typer.echo("\n\n".join([*listed, *(each.summary(full) for each in found)]))
    write_page(page, lambda: render_difference_page(found))
