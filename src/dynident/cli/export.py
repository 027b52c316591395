"""``dynident export``: a stored result as files of others."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.help import OUTPUT
from dynident.cli.options import AnywayFlag, Command, add_flags, replace_parameter
from dynident.cli.output import refuse_over_inputs, say, say_written
from dynident.export.formats import EXPORTS, list_model_formats
from dynident.export.repair import NEAREST


def add_format_flags(command: Command) -> Command:
    """Add a flag for every format; the files that are given arrive as `files`, by format."""
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                Path | None, typer.Option(f"--{name}", rich_help_panel=OUTPUT, help=form.help)
            ],
        )
        for name, form in EXPORTS.items()
    ]

    def call(arguments: dict[str, Any]) -> None:
        told = {p.name: arguments.pop(p.name) for p in added}
        command(**arguments, files={k: path for k, path in told.items() if path is not None})

    return replace_parameter(command, "files", added, call)


@add_flags(NEAREST)
@add_format_flags
def export(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    files: dict[str, Path],
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Export the nearest consistent links if the result has none."
        ),
    ] = False,
    anyway: AnywayFlag = False,
    *,
    options: dict[str, Any],
) -> None:
    """Write a stored result as a robot model, or as code."""
    from dynident.core.errors import InputError
    from dynident.core.files import write_files
    from dynident.report.text import format_trust
    from dynident.study.fits import read_result, repair_fit

    models = list_model_formats()
    if options and not repair:
        raise InputError("--metric needs --repair")
    if not files:
        flags = " or ".join(f"--{name} FILE" for name in EXPORTS)
        raise InputError(f"nothing to write; give {flags}")
    if repair and not files.keys() & models.keys():
        flags = " and ".join(f"--{name}" for name in models)
        raise InputError(f"--repair applies to {flags} only: torques do not need consistent links")

    refuse_over_inputs(files.values(), [result])
    fit = read_result(result)
    refuse_over_inputs(files.values(), [], [fit])
    fit.require_trust("a model file", anyway)
    repaired, notes = fit, tuple[str, ...]()
    if repair:
        repaired, words = repair_fit(fit, **options)
        notes = (words,)
    documents: dict[Path, bytes] = {}
    for name, path in files.items():
        source = repaired if name in models else fit
        documents[path], more = source.render_file(name, path.parent)
        notes = (*notes, *more)
    write_files(documents)
    typer.echo(format_trust(fit), err=True)
    say("warning", repaired.robot.warnings)
    say("note", notes)
    say_written(*documents)
