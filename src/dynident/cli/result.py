"""``dynident validate`` and ``report``: stored results at work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.options import JsonFlag, LogFlags, LowpassOption, PageOption, add_log_flags
from dynident.cli.output import (
    paint_verdict,
    print_json,
    refuse_over_inputs,
    say,
    say_written,
    write_page,
)


@add_log_flags
def validate(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    logs: Annotated[list[str], typer.Argument(metavar="LOG", help="a,b for side by side.")],
    lowpass: LowpassOption = None,
    page: PageOption = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
) -> None:
    """Measure a stored result on other logs, laid out as those it was made from."""
    from dynident.core.errors import name_study_in_errors
    from dynident.fit.json import serialise_validation
    from dynident.report.pages import render_validation_page
    from dynident.report.text import format_fit_figures, format_free_errors, format_trust
    from dynident.study.fits import measure_log, read_result

    fit = read_result(result)
    refuse_over_inputs([page], [result, *logs], [fit])
    names = fit.robot.joint_names
    with name_study_in_errors(None, stored=True):
        found = [measure_log(fit, text.split(","), lowpass, told.layout) for text in logs]
    warnings = list(dict.fromkeys(note for one in found for note in one.warnings))
    say("warning", warnings)
    if json:
        document = {
            "schema": "dynident.validation/1",
            "verdict": fit.verdict.state,
            "validation": [serialise_validation(one.figures, fit.robot) for one in found],
            "warnings": warnings,
        }
        print_json(document)
    else:
        typer.echo(paint_verdict(format_trust(fit)))
        for own in (one.figures for one in found):
            lines = format_free_errors(names, [(own.log, own.free)])
            if own.torque == "measured" or not own.free:
                lines.append(format_fit_figures(own.entries, own.nominal, own.torque))
            typer.echo("\n".join([own.log, *lines, ""]))
    measured = [(one.figures, one.samples) for one in found]
    write_page(page, lambda: render_validation_page(fit, measured, warnings))


def report(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The page; report.html beside the result by default."),
    ] = None,
) -> None:
    """Write the page of a stored result; of logs that are gone nothing is drawn."""
    from dynident.report.text import format_trust
    from dynident.study.fits import read_result

    page = result.parent / "report.html" if output is None else output
    refuse_over_inputs([page], [result])
    fit = read_result(result)
    refuse_over_inputs([page], [], [fit])
    fit.report(page)
    typer.echo(format_trust(fit), err=True)
    say_written(page)
