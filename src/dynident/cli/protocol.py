"""``dynident protocol``: what to record for what question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.excite import choose_study
from dynident.cli.options import (
    ROBOT,
    FrictionOption,
    JsonFlag,
    LockedOption,
    add_flags,
    declare_directory,
    parse_locked_joints,
)
from dynident.cli.output import print_answer, say, say_written
from dynident.core.errors import name_study_in_errors
from dynident.experiments.planning import PLANNING, SHARED


@add_flags(PLANNING, "excitation")
def protocol(
    robot: Annotated[Path | None, ROBOT] = None,
    study: Annotated[
        Path | None,
        typer.Option("--study", help="Study that gives the robot, [excitation] and [[obstacle]]."),
    ] = None,
    friction: FrictionOption = None,
    locked: LockedOption = None,
    output: Annotated[
        Path | None, declare_directory("Directory of the page, motions and studies.")
    ] = None,
    json: JsonFlag = False,
    options: dict[str, Any] | None = None,
) -> None:
    """Plan what to record for each question, design the motions, predict error bars."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.experiments.plan import HEAD, PAGE, render_protocol_files
    from dynident.experiments.protocol import protocol as plan
    from dynident.study.excite import describe_experiment
    from dynident.study.study import list_input_files
    from dynident.study.study_text import render_run_studies

    chosen, said = choose_study(robot, study, friction, parse_locked_joints(locked))
    if output is not None:
        inputs = [*list_input_files(chosen), *([] if study is None else [study])]
        refuse_outputs([output / HEAD, output / PAGE], inputs)
    with show_progress() as progress:
        with name_study_in_errors(study):
            stated = chosen.excitation.model_dump(include=SHARED, exclude_none=True)
            given = {**stated, **(options or {})}
            found = plan(**describe_experiment(chosen), progress=progress, **given)
        if output is not None:
            progress("drawing", 0.0)
            files = render_protocol_files(found)
            prepare = {found.folders[run.name]: run.step.prepare for run in found.runs}
            files |= render_run_studies(chosen, output, prepare)
            written = {output / name: text.encode() for name, text in files.items()}
            refuse_outputs(list(written), inputs)
            write_files(written)
    say("note", said)
    print_answer(json, found.to_dict, found.summary)
    say_written(output)
