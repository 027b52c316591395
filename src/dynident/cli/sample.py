"""``dynident sample``: consistent draws of a stored result, for simulators that are to vary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.flags import SAMPLE_FLAGS
from dynident.cli.options import JsonFlag, LogFlags, add_flags, add_log_flags, app


@app.command(
    short_help="Draw consistent models from what a result leaves open.",
    epilog="Example: dynident sample out/result.json -n 256 -o draws --log run3.csv",
)
@add_flags(SAMPLE_FLAGS)
@add_log_flags
def sample(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write them and draws.yaml, their ranges, there."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="urdf, mjcf, npz or yaml; the robot's own if not given."),
    ] = None,
    logs: Annotated[
        list[str] | None,
        typer.Option("--log", help="Share of this log inside the draws' 95 % band; repeatable."),
    ] = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Draw physically consistent models from what a stored result leaves open."""
    from dynident.core.errors import InputError
    from dynident.core.files import refuse_unwritable
    from dynident.core.text import suggest_nearest
    from dynident.results.draws import FORMATS, format_draws, serialise_draws
    from dynident.results.json import replace_nonfinite, to_json
    from dynident.study.sample import Drawing, measure_calibration, sample_stored
    from dynident.study.stored import read_result

    if form is not None and form not in FORMATS:
        raise InputError(f"--format {form!r} is not known{suggest_nearest(form, FORMATS)}")
    if form is not None and output is None:
        raise InputError("--format is of -o")
    if told.given and not logs:
        raise InputError(
            "--columns, --units, --rate, --rows, --bad-rows, --drop-below are of --log"
        )
    wanted = Drawing(**options)
    if output is not None:
        refuse_unwritable(output)
    stored = told.beside(read_result(result))
    draws = sample_stored(stored, wanted)
    found = [measure_calibration(stored, draws, text) for text in logs or ()]
    notes: tuple[str, ...] = ()
    if output is not None:
        notes = draws.write(output, form)
    typer.echo(
        to_json(replace_nonfinite(serialise_draws(draws, found))) if json
        else format_draws(draws, found), nl=not json,
    )  # fmt: skip
    for warning in stored.warnings:
        typer.echo(f"warning: {warning}", err=True)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if output is not None:
        typer.echo(f"written to {output}", err=True)
