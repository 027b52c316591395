"""``dynident select``: the blocks of logs that tell the most, and a study that fits these alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.identify import BandwidthOption, choose_study, override_study
from dynident.cli.options import (
    ContactOption,
    FloatingOption,
    FrictionOption,
    JsonFlag,
    LockedOption,
    LogFlags,
    LogOption,
    RobotOption,
    StudyArgument,
    add_flags,
    add_log_flags,
    parse_locked_joints,
    refuse_fix,
)
from dynident.core.errors import InputError, name_study_in_errors
from dynident.study.study import SELECTING


@add_flags(SELECTING, "select")
@add_log_flags
def select(
    study: StudyArgument = None,
    robot: RobotOption = None,
    log: LogOption = None,
    friction: FrictionOption = None,
    bandwidth: BandwidthOption = None,
    locked: LockedOption = None,
    floating: FloatingOption = False,
    contact: ContactOption = None,
    fix: Annotated[
        Path | None,
        typer.Option("--fix", help="Write a copy of the study that fits the chosen rows alone."),
    ] = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Choose what tells the most of logs from ordinary work, and say what motion is missing."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import write_files
    from dynident.core.schema import validate_data
    from dynident.fit.json import replace_nonfinite, to_json
    from dynident.study import select as selecting
    from dynident.study.study import SelectSection, list_input_files

    chosen = choose_study(study, robot, log, told, floating=floating, contact=contact)
    if study is None and fix is not None:
        raise InputError("--fix copies a study; give one instead of --robot and --log")
    chosen = override_study(
        chosen,
        friction=friction,
        bandwidth=bandwidth,
        locked=parse_locked_joints(locked),
        identify={},
    )
    if options:
        given = {**chosen.select.model_dump(exclude_none=True), **options}
        section = validate_data(SelectSection, given, "command line")
        chosen = chosen.model_copy(update={"select": section})
    if study is not None and fix is not None:
        refuse_fix(fix, study, list_input_files(chosen))
    with show_progress() as progress, name_study_in_errors(study):
        found = selecting.select_study(chosen, progress)
    if json:
        typer.echo(to_json(replace_nonfinite(selecting.serialise_selection(found))), nl=False)
    else:
        typer.echo(selecting.format_selection(found))
    if study is not None and fix is not None:
        write_files({fix: selecting.render_selected_study(study, chosen, found).encode()})
        typer.echo(f"written to {fix}", err=True)
