"""``dynident payload``: a load, from a log with it and a stored result without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.options import (
    AnywayFlag,
    JsonFlag,
    LogFlags,
    PageOption,
    add_flags,
    add_log_flags,
)
from dynident.cli.output import print_json, say, write_page
from dynident.core.options import collect_options
from dynident.study.payload import FAMILIES


@add_flags(collect_options(FAMILIES))
@add_log_flags
def payload(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    log: Annotated[str, typer.Option("--log", help="With the load; a,b for side by side.")],
    anyway: AnywayFlag = False,
    page: PageOption = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Identify a load from a log with it and a stored result without it."""
    from dynident.core.errors import name_study_in_errors
    from dynident.core.files import refuse_outputs
    from dynident.report.pages import render_payload_page
    from dynident.report.text import format_trust
    from dynident.study.fits import list_fit_inputs, read_fit_log, read_result
    from dynident.study.payload import payload

    fit = read_result(result)
    if page is not None:
        refuse_outputs([page], [result, *list_fit_inputs(fit)])
    with name_study_in_errors(None):
        samples = read_fit_log(fit, log.split(","), told.layout)
    found = payload(fit, samples, anyway=anyway, **options)
    if json:
        print_json({**found.to_dict(), "verdict": fit.verdict.state})
    else:
        typer.echo(f"{format_trust(fit)}\n{found.summary()}")
    write_page(page, lambda: render_payload_page(fit, found))
    say("warning", (*fit.robot.warnings, *samples.warnings))
