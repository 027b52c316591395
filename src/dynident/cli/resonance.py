"""``dynident resonance``: a joint's spring from its motor alone, and motions that show it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import dynident
from dynident.cli.engines import add_engine_flags
from dynident.cli.excite import choose_study
from dynident.cli.options import (
    JsonFlag,
    LogFlags,
    add_log_flags,
    check_positive,
    parse_locked_joints,
)
from dynident.cli.output import print_answer, say, say_written
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError, name_study_in_errors
from dynident.core.side_by_side import Engine
from dynident.core.text import suggest_nearest

if TYPE_CHECKING:
    from dynident import Robot


@add_study_flags("validate", "friction", "bandwidth", "floating", "contact", "beyond", "sensor")
@add_log_flags
@add_engine_flags()
def resonance(
    given: StudyFlags,
    joint: Annotated[
        str, typer.Option("--joint", metavar="JOINT", help="Joint name, or its number from 1.")
    ],
    band: Annotated[
        tuple[float, float],
        typer.Option(
            "--band", metavar="LO HI", help="Frequency band of the motor's excitation [Hz]."
        ),
    ],
    period: Annotated[
        float | None,
        typer.Option(
            "--period",
            metavar="S",
            callback=check_positive,
            help="Period of the motion [s]; found in the logs if not given.",
        ),
    ] = None,
    shake: Annotated[
        Path | None,
        typer.Option(
            "--shake",
            metavar="DIR",
            help="Design the motion by [excitation] of the study instead of reading logs; output "
            "directory.",
        ),
    ] = None,
    json: JsonFlag = False,
    *,
    engine: Engine,
    told: LogFlags,
) -> None:
    """Tell a joint's spring by its resonance, from its motor alone, or design the motion for it."""
    if shake is not None:
        design_motion(given, joint, band, shake, json, engine)
        return
    from dynident.cli.progress import show_progress
    from dynident.study.study import load_study_robot, read_study_recordings

    chosen = given.read(told)
    with show_progress() as progress, name_study_in_errors(given.study):
        robot = load_study_robot(chosen)
        robot.refuse_loops("resonance")
        place = find_joint(robot, joint)
        logs = read_study_recordings(chosen, robot, progress=progress)
        found = [dynident.find_resonance(log, place, band, period or "found") for log in logs]
    print_answer(
        json,
        lambda: {"schema": "dynident.resonance/1", "logs": [own.to_dict() for own in found]},
        lambda: "\n\n".join(own.summary for own in found),
    )


def find_joint(robot: Robot, joint: str) -> int:
    """Where a joint is by its name, or its number from 1."""
    names = robot.joint_names
    if joint in names:
        return names.index(joint)
    if joint.isdecimal() and 1 <= int(joint) <= len(names):
        return int(joint) - 1
    raise InputError(f"--joint: {joint!r} is not known{suggest_nearest(joint, names)}")


def design_motion(
    given: StudyFlags,
    joint: str,
    band: tuple[float, float],
    output: Path,
    json: bool,
    engine: Engine,
) -> None:
    """Write a motion that reaches the resonance."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.experiments.trajectory import (
        FORMATS,
        SHAKEN,
        serialise_motion,
        summarise_motion,
    )
    from dynident.study.excite import excite_study
    from dynident.study.study import load_study_robot

    if given.log:
        raise InputError("--shake designs a motion before there are logs; leave out --log")
    chosen, said = choose_study(given.robot, given.study, None, parse_locked_joints(given.locked))
    refuse_outputs([output / name for name in SHAKEN], given.list_inputs(chosen))
    with show_progress() as progress, name_study_in_errors(given.study):
        place = find_joint(load_study_robot(chosen), joint)
        plan = excite_study(chosen, {}, progress=progress, engine=engine)
        found = replace(plan, design=dynident.shake(plan, place, band), lowest=None)
    write_files({output / name: FORMATS[name](found).encode() for name in SHAKEN})
    say("note", said)
    print_answer(json, lambda: serialise_motion(found), lambda: summarise_motion(found))
    say_written(output)
