"""``dynident validate``, ``report`` and ``export``: stored results at work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.options import (
    AnywayFlag,
    JsonFlag,
    LogFlags,
    LowpassOption,
    add_flags,
    add_log_flags,
)
from dynident.cli.output import print_json, say, say_written
from dynident.cli.repair import NEAREST


@add_log_flags
def validate(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="a,b for side by side.")],
    lowpass: LowpassOption = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
) -> None:
    """Measure a stored result on other logs, laid out as those it was made from."""
    from dynident.core.errors import name_study_in_errors
    from dynident.fit.json import serialise_validation
    from dynident.report.text import format_fit_figures, format_free_errors, format_trust
    from dynident.study.fits import measure_log, read_result

    fit = read_result(result)
    names = fit.robot.joint_names
    with name_study_in_errors(None):
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
        return
    typer.echo(format_trust(fit))
    for one in found:
        lines = format_free_errors(names, [(one.figures.log, one.figures.free)])
        own = one.figures
        if own.torque == "measured" or not own.free:
            lines.append(format_fit_figures(own.entries, own.nominal, own.torque))
        typer.echo("\n".join([own.log, *lines, ""]))


def report(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The page; report.html beside the result by default."),
    ] = None,
) -> None:
    """Write the page of a stored result; of logs that are gone nothing is drawn."""
    from dynident.core.files import refuse_outputs
    from dynident.report.text import format_trust
    from dynident.study.fits import list_fit_inputs, read_result

    page = result.parent / "report.html" if output is None else output
    refuse_outputs([page], [result])
    fit = read_result(result)
    refuse_outputs([page], list_fit_inputs(fit))
    fit.report(page)
    typer.echo(format_trust(fit), err=True)
    say_written(page)


@add_flags(NEAREST)
def export(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    urdf: Annotated[Path | None, typer.Option("--urdf", help="The URDF to write.")] = None,
    mjcf: Annotated[Path | None, typer.Option("--mjcf", help="The MJCF to write.")] = None,
    c: Annotated[
        Path | None,
        typer.Option("--c", help="Inverse dynamics in C99, the file to write."),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="The nearest consistent links, of a result without them."),
    ] = False,
    anyway: AnywayFlag = False,
    *,
    options: dict[str, Any],
) -> None:
    """Write a stored result as a robot model, or as code."""
    from dynident.consistency.knowledge import Knowledge
    from dynident.core.errors import InputError
    from dynident.core.files import refuse_outputs, write_files
    from dynident.export.c_code import c_code
    from dynident.report.text import format_trust
    from dynident.study.fits import list_fit_inputs, read_result, repair_fit

    if options and not repair:
        raise InputError("--metric is of --repair")
    outputs = [path for path in (urdf, mjcf, c) if path is not None]
    if not outputs:
        raise InputError("nothing to write; give --urdf FILE or --mjcf FILE or --c FILE")
    if repair and urdf is None and mjcf is None:
        raise InputError("--repair is of --urdf and --mjcf: torques need no links that can exist")

    refuse_outputs(outputs)
    fit = read_result(result)
    refuse_outputs(outputs, [result, *list_fit_inputs(fit)])
    fit.require_trust("a model file", anyway)
    trust = format_trust(fit)
    notes: tuple[str, ...] = ()
    documents: dict[Path, bytes] = {}
    if c is not None:
        documents[c] = c_code(fit.model).encode()
    if repair:
        fit, words = repair_fit(fit, Knowledge(**options))
        notes = (words,)
    if urdf is not None:
        documents[urdf], more = fit.model_urdf()
        notes = (*notes, *more)
    if mjcf is not None:
        documents[mjcf], more = fit.model_mjcf(mjcf.parent)
        notes = (*notes, *more)
    write_files(documents)
    typer.echo(trust, err=True)
    say("warning", fit.robot.warnings)
    say("note", notes)
    say_written(*documents)
