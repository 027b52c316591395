"""``dynident payload``: a load, from a log with it and a stored result without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.help import OUTPUT
from dynident.cli.options import (
    AnywayFlag,
    JsonFlag,
    LogFlags,
    PageOption,
    add_flags,
    add_log_flags,
)
from dynident.cli.output import (
    paint_verdict,
    print_answer,
    refuse_over_inputs,
    say,
    say_written,
    write_page,
)
from dynident.core.options import collect_options
from dynident.loads.identify import FAMILIES


@add_flags(collect_options(FAMILIES))
@add_log_flags
def payload(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    log: Annotated[
        str, typer.Option("--log", help="Log recorded with the load; a,b for side by side.")
    ],
    franka: Annotated[
        Path | None,
        typer.Option(
            "--franka",
            rich_help_panel=OUTPUT,
            help="The load as endeffector-config.json of Franka's Desk; --frame is the flange.",
        ),
    ] = None,
    rests: Annotated[
        float | None,
        typer.Option(
            "--rests", metavar="S", help="Use the poses that the log holds for S seconds or more."
        ),
    ] = None,
    anyway: AnywayFlag = False,
    page: PageOption = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Identify a load from a log with it and a stored result without it."""
    from dynident.core.errors import name_study_in_errors
    from dynident.core.files import write_files
    from dynident.export.end_effector import render_end_effector
    from dynident.loads.identify import payload
    from dynident.loads.page import render_payload_page
    from dynident.report.text import format_trust
    from dynident.study.fits import read_fit_log, read_result

    outputs = [] if franka is None else [franka]
    refuse_over_inputs([franka, page], [result, log])
    fit = read_result(result)
    refuse_over_inputs([franka, page], [], [fit])
    layout = told.layout
    if rests is not None:
        layout = replace(layout, prepare={**layout.prepare, "rests": rests})
    with name_study_in_errors(None, stored=True):
        samples = read_fit_log(fit, log.split(","), layout)
    found = payload(fit, samples, anyway=anyway, **options)
    if franka is not None:
        name = f"dynident {fit.robot.name}"
        effector = render_end_effector(name, found.mass, found.com, found.inertia)
        write_files({franka: effector})
    print_answer(
        json,
        lambda: {**found.to_dict(), "verdict": fit.verdict.state},
        lambda: f"{paint_verdict(format_trust(fit))}\n{found.summary()}",
    )
    write_page(page, lambda: render_payload_page(fit, found))
    say("warning", (*fit.robot.warnings, *samples.warnings))
    say_written(*outputs)
