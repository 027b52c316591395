"""``dynident excite``: a trajectory that excites a robot within its limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynident.cli.engines import add_engine_flags
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
from dynident.cli.studies import couple, override_study
from dynident.core.errors import InputError, name_study_in_errors
from dynident.core.side_by_side import Engine
from dynident.study.excite import EXCITING

if TYPE_CHECKING:
    from dynident.study.study import Study


@add_flags(EXCITING, "excitation")
@add_engine_flags()
def excite(
    robot: Annotated[Path | None, ROBOT] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            help="Study with the robot, [excitation], [[obstacle]] and logs already recorded.",
        ),
    ] = None,
    friction: FrictionOption = None,
    locked: LockedOption = None,
    after: Annotated[
        list[Path] | None,
        typer.Option("--after", help="A trajectory.json that this one complements; repeat."),
    ] = None,
    task: Annotated[
        Path | None,
        typer.Option(
            "--task",
            help="For the criterion torque: the motion whose torques are to be predicted, a log "
            "or a trajectory.json.",
        ),
    ] = None,
    output: Annotated[
        Path | None, declare_directory("Directory of the trajectory, report and replay.")
    ] = None,
    script: Annotated[
        bool,
        typer.Option(
            "--script",
            help="Write trajectory.script, too: URScript, for six turning joints.",
        ),
    ] = False,
    json: JsonFlag = False,
    *,
    engine: Engine,
    options: dict[str, Any] | None = None,
) -> None:
    """Design a trajectory that excites a robot, and prove that it keeps its limits."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.experiments.page import OUTPUTS, refuse_script, render_excitation_files
    from dynident.experiments.trajectory import serialise_trajectory, summarise_excitation
    from dynident.study.excite import excite_study
    from dynident.study.study import list_input_files, load_study_robot

    chosen, said = choose_study(robot, study, friction, parse_locked_joints(locked))
    if script:
        if output is None:
            raise InputError("--script: give the directory of the files (-o)")
        with name_study_in_errors(study):
            refuse_script(load_study_robot(chosen))
    if output is not None:
        more = [each for each in (study, task) if each is not None]
        inputs = [*list_input_files(chosen), *(after or ()), *more]
        refuse_outputs([output / name for name in OUTPUTS], inputs)
    with show_progress() as progress:
        with name_study_in_errors(study):
            found = excite_study(chosen, options or {}, after or (), task, progress, engine)
        if output is not None:
            progress("drawing", 0.0)
            contents = render_excitation_files(found, script)
            written = {output / name: text.encode() for name, text in contents.items()}
            write_files(written, OUTPUTS.__contains__)
    say("note", said)
    print_answer(json, lambda: serialise_trajectory(found), lambda: summarise_excitation(found))
    say_written(output)


def choose_study(
    robot: Path | None, study: Path | None, friction: str | None, locked: dict[str, float] | None
) -> tuple[Study, list[str]]:
    """The study, or one of a robot alone; and what is noted of it."""
    from dynident.core.schema import validate_data
    from dynident.study.study import Study, read_study

    if (robot is None) == (study is None):
        raise InputError("give either a robot's file or --study; see dynident excite --help")
    if study is None:
        known = {"file": str(robot), "locked": locked, "friction": friction}
        given = {key: value for key, value in known.items() if value is not None}
        made: Study = validate_data(Study, {"robot": given}, Path(str(robot)))
        return couple(made)
    return override_study(read_study(study, use=None), friction, None, locked), []
