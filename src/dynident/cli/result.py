"""``dynident validate`` and ``export``: stored results at work."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.flags import NEAREST_FLAGS
from dynident.cli.options import JsonFlag, LogFlags, LowpassOption, add_flags, add_log_flags, app


@app.command(
    short_help="Measure a stored result on other logs.",
    epilog="Example: dynident validate out/result.json run3.csv",
)
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
    from dynident.results.json import replace_nonfinite, serialise_validation, to_json
    from dynident.results.text import format_fit_figures, format_free_errors
    from dynident.study.stored import read_result, validate_stored_model

    stored = told.beside(read_result(result))
    names = stored.idim.robot.joint_names
    found = [validate_stored_model(stored, text.split(","), lowpass) for text in logs]
    for warning in dict.fromkeys(note for one in found for note in one.warnings):
        typer.echo(f"warning: {warning}", err=True)
    if json:
        document = {
            "schema": "dynident.validation/1",
            "validation": [serialise_validation(one.figures, names) for one in found],
            "warnings": list(dict.fromkeys(note for one in found for note in one.warnings)),
        }
        typer.echo(to_json(replace_nonfinite(document)), nl=False)
        return
    for one in found:
        lines = format_free_errors(names, [(one.figures.log, one.figures.free)])
        table = format_fit_figures(one.figures.entries, one.figures.nominal)
        typer.echo("\n".join([one.figures.log, *lines, table, ""]))


@app.command(
    epilog="Example: dynident export out/result.json --urdf arm.urdf --mjcf arm_identified.xml"
)
@add_flags(NEAREST_FLAGS)
def export(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    urdf: Annotated[Path | None, typer.Option("--urdf", help="The URDF to write.")] = None,
    mjcf: Annotated[Path | None, typer.Option("--mjcf", help="The MJCF to write.")] = None,
    c: Annotated[
        Path | None, typer.Option("--c", help="Inverse dynamics in C99, the file to write.")
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="The nearest consistent links, of a result without them."),
    ] = False,
    *,
    options: dict[str, Any],
) -> None:
    """Write a stored result as a robot model, or as code."""
    from dynident.consistency.knowledge import Knowledge
    from dynident.core.errors import InputError
    from dynident.core.files import refuse_overwriting, write_files
    from dynident.results.c_code import c_code
    from dynident.results.mjcf import list_model_files
    from dynident.study.stored import read_result, render_stored_mjcf, render_stored_urdf

    if options and not repair:
        raise InputError("--metric is of --repair")
    outputs = [path for path in (urdf, mjcf, c) if path is not None]
    if not outputs:
        raise InputError("nothing to write; give --urdf FILE or --mjcf FILE or --c FILE")
    flags = {"--urdf": urdf, "--mjcf": mjcf, "--c": c}
    for one, other in combinations([flag for flag, path in flags.items() if path], 2):
        if flags[one] == flags[other]:
            raise InputError(f"{flags[one]}: is given for both {one} and {other}")
    if repair and urdf is None and mjcf is None:
        raise InputError("--repair is of --urdf and --mjcf: torques need no links that can exist")

    stored = read_result(result)
    refuse_overwriting(
        outputs, (result, stored.study.robot.file, *list_model_files(stored.idim.robot))
    )
    knowledge = Knowledge(**options) if repair else None
    notes: tuple[str, ...] = ()
    documents: dict[Path, bytes] = {}
    if urdf is not None:
        documents[urdf], notes = render_stored_urdf(stored, knowledge)
    if mjcf is not None:
        documents[mjcf], more = render_stored_mjcf(stored, knowledge, mjcf.parent)
        notes = (*notes, *more)
    if c is not None:
        documents[c] = c_code(stored.model).encode()
    for path, document in documents.items():
        write_files({path: document})
    for warning in stored.warnings:
        typer.echo(f"warning: {warning}", err=True)
    for note in dict.fromkeys(notes):
        typer.echo(f"note: {note}", err=True)
    for path in documents:
        typer.echo(f"written to {path}", err=True)
