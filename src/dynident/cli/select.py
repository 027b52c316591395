"""``dynident select``: the blocks of logs that tell the most, and a study that fits these alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.options import (
    JsonFlag,
    LogFlags,
    add_flags,
    add_log_flags,
    override_section,
    refuse_study_output,
)
from dynident.cli.output import print_answer, say_written
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError, name_study_in_errors
from dynident.study.study import SELECTING


@add_flags(SELECTING, "select")
@add_study_flags("validate")
@add_log_flags
def select(
    given: StudyFlags,
    fix: Annotated[
        Path | None,
        typer.Option("--fix", help="Write a copy of the study that fits the chosen rows alone."),
    ] = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Choose the most informative parts of logs from ordinary work, and say what is missing."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import write_files
    from dynident.study import select as selecting

    chosen, study = override_section(given.read(told), "select", options), given.study
    if study is None and fix is not None:
        raise InputError("--fix copies a study; give one instead of --robot and --log")
    if study is not None and fix is not None:
        refuse_study_output(fix, "--fix", study, given.list_inputs(chosen))
    with show_progress() as progress, name_study_in_errors(study):
        found = selecting.select_study(chosen, progress)
    print_answer(
        json,
        lambda: selecting.serialise_selection(found),
        lambda: selecting.format_selection(found),
    )
    if study is not None and fix is not None:
        write_files({fix: selecting.render_selected_study(study, chosen, found).encode()})
        say_written(fix)
