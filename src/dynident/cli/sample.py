"""``dynident sample``: consistent draws of a stored result, for simulators that are to vary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.engines import add_engine_flags
from dynident.cli.options import (
    AnywayFlag,
    JsonFlag,
    LogFlags,
    PageOption,
    add_flags,
    add_log_flags,
    declare_directory,
)
from dynident.cli.output import (
    paint_verdict,
    print_json,
    refuse_over_inputs,
    say,
    say_written,
    write_page,
)
from dynident.core.options import collect_options
from dynident.core.side_by_side import Engine
from dynident.study.sample import DrawOptions


@add_flags(collect_options([DrawOptions]))
@add_log_flags
@add_engine_flags()
def sample(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    output: Annotated[
        Path | None, declare_directory("Directory for the draws and draws.yaml, their ranges.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="A format of export, npz or yaml; the robot file's own by default."
        ),
    ] = None,
    logs: Annotated[
        list[str] | None,
        typer.Option(
            "--log", help="Report the share of this log inside the draws' 95 % band; repeatable."
        ),
    ] = None,
    anyway: AnywayFlag = False,
    page: PageOption = None,
    json: JsonFlag = False,
    *,
    engine: Engine,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Draw physically consistent models within a stored result's uncertainty."""
    from dynident.core.errors import InputError, name_study_in_errors, refuse_unknown
    from dynident.core.files import refuse_outputs
    from dynident.report.draws import (
        HEAD,
        format_draws,
        is_draw_file,
        list_draw_formats,
        serialise_draws,
    )
    from dynident.report.pages import render_draws_page
    from dynident.report.text import format_trust
    from dynident.study.fits import list_fit_inputs, read_result
    from dynident.study.sample import DrawOptions, measure_calibration, sample

    known = list_draw_formats()
    if form is not None:
        refuse_unknown(form, known, f"--format {form!r} is not known")
    if form is not None and output is None:
        raise InputError("--format needs -o")
    told.refuse_without(logs)
    wanted = DrawOptions(**options)
    if output is not None:
        refuse_outputs([output / HEAD])
    fit = read_result(result)
    given = [result, *(logs or ())]
    if output is not None:
        inputs = [Path(each) for each in (*given, *list_fit_inputs(fit))]
        own = {each.name for each in inputs if is_draw_file(each.name)}
        refuse_over_inputs([output / name for name in (HEAD, *own)], given, [fit])
    refuse_over_inputs([page], given, [fit])
    draws = sample(fit, wanted.n, wanted.seed, anyway, engine=engine)
    with name_study_in_errors(None, stored=True):
        found = [measure_calibration(fit, draws, text, told.layout) for text in logs or ()]
    notes = () if output is None else draws.write(output, form)
    if json:
        print_json({**serialise_draws(draws, found), "verdict": fit.verdict.state})
    else:
        typer.echo(f"{paint_verdict(format_trust(fit))}\n{format_draws(draws, found)}")
    write_page(page, lambda: render_draws_page(fit, draws, found))
    say("warning", (*fit.robot.warnings, *(words for each in found for words in each.warnings)))
    say("note", notes)
    say_written(output)
