"""``dynident select``: the blocks of logs that tell the most, and a study that fits these alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.flags import SELECT_FLAGS
from dynident.cli.options import JsonFlag, add_flags, app, refuse_fix
from dynident.core.errors import name_study_in_errors


@app.command(
    short_help="Choose what tells the most of logs from ordinary work.",
    epilog="Example: dynident select work.toml --fix selected.toml",
)
@add_flags(SELECT_FLAGS)
def select(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml")],
    fix: Annotated[
        Path | None,
        typer.Option("--fix", help="Write a copy of the study that fits the chosen rows alone."),
    ] = None,
    json: JsonFlag = False,
    options: dict[str, Any] | None = None,
) -> None:
    """Choose what tells the most of logs from ordinary work, and say what motion is missing."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import write_files
    from dynident.core.schema import validate_data
    from dynident.results.json import replace_nonfinite, to_json
    from dynident.study import select as selecting
    from dynident.study.study import SelectSection, list_input_files, read_study

    chosen = read_study(study)
    if options:
        told = {**chosen.select.model_dump(exclude_none=True), **options}
        section = validate_data(SelectSection, told, "command line")
        chosen = chosen.model_copy(update={"select": section})
    if fix is not None:
        refuse_fix(fix, study, list_input_files(chosen))
    with show_progress() as progress, name_study_in_errors(study):
        found = selecting.select_study(chosen, progress)
    if json:
        typer.echo(to_json(replace_nonfinite(selecting.serialise_selection(found))), nl=False)
    else:
        typer.echo(selecting.format_selection(found))
    if fix is not None:
        write_files({fix: selecting.render_selected_study(study, chosen, found).encode()})
        typer.echo(f"written to {fix}", err=True)
