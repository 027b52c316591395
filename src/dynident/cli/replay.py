"""``dynident replay``: an identified model in another engine, under the law of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.options import JsonFlag, LogFlags, add_log_flags
from dynident.cli.output import print_json, say


@add_log_flags
def replay(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOG...]",
            help="a,b for side by side; those that the result's study holds out, or else fits, if "
            "not given.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="dynident, mujoco or pinocchio.")
    ] = "dynident",
    json: JsonFlag = False,
    *,
    told: LogFlags,
) -> None:
    """Simulate a stored result under a log's law, in an engine, in ours, and as the file was."""
    from dynident.core.errors import name_study_in_errors
    from dynident.report.text import format_trust
    from dynident.study.fits import read_result
    from dynident.study.replay import SCHEMA, replay, replay_own_logs

    told.refuse_without(logs, "a log")
    fit = read_result(result)
    if logs:
        with name_study_in_errors(None):
            found = [replay(fit, text.split(","), engine, told.layout) for text in logs]
    else:
        found = replay_own_logs(fit, engine)
    say("warning", (words for each in found for words in each.warnings))
    if json:
        every = [each.document() for each in found]
        document = every[0] if len(every) == 1 else {"schema": SCHEMA, "logs": every}
        print_json({**document, "verdict": fit.verdict.state})
    else:
        typer.echo("\n\n".join([format_trust(fit), *(each.text() for each in found)]))
