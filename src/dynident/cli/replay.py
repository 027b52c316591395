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
    log: Annotated[str, typer.Argument(metavar="LOG", help="a,b for side by side.")],
    engine: Annotated[
        str, typer.Option("--engine", help="dynident, mujoco or pinocchio.")
    ] = "dynident",
    json: JsonFlag = False,
    *,
    told: LogFlags,
) -> None:
    """Simulate a stored result under a log's law, in an engine, in ours, and as the file was."""
    from dynident.report.text import format_trust
    from dynident.study.fits import read_result
    from dynident.study.replay import replay

    fit = read_result(result)
    found = replay(fit, log.split(","), engine, told.layout)
    say("warning", found.warnings)
    if json:
        print_json({**found.document(), "verdict": fit.verdict.state})
    else:
        typer.echo(f"{format_trust(fit)}\n{found.text()}")
