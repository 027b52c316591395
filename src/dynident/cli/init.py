"""``dynident init``: a first study of a robot and its logs."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.doctor import format_reports
from dynident.cli.options import LogFlags, add_log_flags, refuse_study_output
from dynident.cli.output import say_written
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError, name_study_in_errors


@add_study_flags("study")
@add_log_flags
def init(
    given: StudyFlags,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ROBOT LOG...",
            show_default=False,
            help="The robot's file and its logs, in place of --robot and --log.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The study that is written.")
    ] = Path("study.toml"),
    *,
    told: LogFlags,
) -> None:
    """Write a first study: overview of the logs, the doctor's findings, a part held out."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import write_files
    from dynident.core.words import format_entry
    from dynident.study.doctor import doctor
    from dynident.study.first_study import (
        fit_positions,
        hold_some_out,
        read_recognised_logs,
        render_first_study,
    )
    from dynident.study.recognise import list_targets, list_unclear_torques, recognise
    from dynident.study.study import load_study_robot, recognise_layouts

    if files:
        if given.robot is not None or given.log:
            raise InputError("give either ROBOT and LOG, or --robot and --log")
        robot_file, *logs_there = files
        given = replace(given, robot=Path(robot_file), log=logs_there)
    if given.robot is None or not given.log:
        raise InputError("give the robot's file and a log: dynident init ROBOT LOG")
    chosen = given.parse(told)
    refuse_study_output(output, "-o", None, given.list_inputs(chosen))
    with name_study_in_errors(None):
        chosen, layouts = recognise_layouts(chosen)
        chosen, recognised = recognise(chosen)
        robot = load_study_robot(chosen)
        chosen, logs, of_units = read_recognised_logs(chosen, robot)
    measured = all(log.torque == "measured" for log in logs)
    blind = not (measured or robot.floating)
    said = [*(line for layout in layouts for line in layout.words), *recognised, *of_units]
    said += list_unclear_torques(chosen, robot.joint_names) if blind and not layouts else ()
    for key, words in said:
        typer.echo("\n".join(format_entry(key, words)))
    for log in logs:
        typer.echo(f"{log.overview(robot)}\n")
    reports = None
    if measured and robot.carrier is None:
        with show_progress() as progress, name_study_in_errors(None):
            reports = doctor(chosen, progress)
        typer.echo(format_reports(reports))
    study = hold_some_out(fit_positions(chosen, robot) if blind else chosen, logs)
    write_files({output: render_first_study(study, output.parent, reports, said).encode()})
    say_written(output)
    if blind and study.controller is None:
        without = ""
        if any(log.qref is None for log in logs):
            targets = list_targets(chosen, robot.joint_names)
            without = ", and log its targets (qref)"
            if len(targets) == 1:
                without = f", and its targets in columns (--columns 'qref={targets[0]}')"
        words = f"next: fill in [controller] in {output}, because a log has no torque{without}"
        typer.echo(words, err=True)
    typer.echo(f"next: dynident identify {shlex.quote(str(output))} -o out", err=True)
