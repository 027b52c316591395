"""``dynident base``: what the motion of a robot can identify."""

from __future__ import annotations

from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynident.cli.options import ROBOT, JsonFlag, LogFlags, PresetOption
from dynident.cli.output import print_answer, print_json, say
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError

if TYPE_CHECKING:
    from dynident import Robot
    from dynident.study.study import Study


@add_study_flags("study", "robot", "validate")
def base(
    robot: Annotated[Path, ROBOT],
    given: StudyFlags,
    rotor: Annotated[
        bool | None,
        typer.Option("--rotor/--no-rotor", help="Rotor inertias; on unless friction is none."),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="KIND[,KIND...]",
            help="Equations used: full, joints, base, null-space; or several of them.",
        ),
    ] = None,
    symmetries: Annotated[
        bool,
        typer.Option(
            "--symmetries", help="Print constraints on mirror-image links of the file instead."
        ),
    ] = False,
    symbols: Annotated[
        bool, typer.Option("--symbols", help="Keep lengths of a DH table as symbols: d3^2 m3.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="ALGORITHM",
            help="Algorithm that chooses the combinations: svd, qr or rref.",
        ),
    ] = None,
    preset: PresetOption = None,
    study: Annotated[
        Path | None,
        typer.Option("--study", help="Also analyse the logs of this study of the robot."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Print the identifiable combinations of a robot's parameters and their count."""
    from dynident import base_parameters, build_idim
    from dynident.experiments.determined import (
        find_determined_parameters,
        format_determined_table,
        serialise_determined,
    )
    from dynident.export.symbols import write_with_symbols
    from dynident.report.base import (
        describe_basis,
        format_regroupings,
        serialise_base,
    )

    model = given.load_robot(robot)
    logs = given.log
    ways = {
        "--by": by, "--study": study, "--log": logs, "--rows": rows, "--symbols": symbols,
        "--symmetries": symmetries,
    }  # fmt: skip
    asked = [flag for flag, value in ways.items() if value]
    if len(asked) > 1:
        raise InputError(f"{asked[0]} does not go with {asked[1]}; leave one of them out")
    flags = LogFlags({} if preset is None else {"preset": preset}, {})
    of_logs = {"--bandwidth": given.bandwidth, "--preset": preset}
    for flag in (flag for flag, value in of_logs.items() if value is not None):
        if not (study or logs):
            raise InputError(f"{flag} needs --log")
    if symmetries:
        print_symmetries(model, json)
        return
    if study is not None or logs:
        own = replace(given, study=study, robot=None if study else robot)
        print_told(robot, own.read(flags), study, rotor, json)
        return
    law = given.friction
    idim = build_idim(model, law, rotor) if law else build_idim(model, rotor=rotor)
    if by is not None:
        data, text = describe_basis(idim, by)
        print_answer(json, lambda: data, lambda: text)
        return
    if rows is not None:
        told = find_determined_parameters(idim, [kind.strip() for kind in rows.split(",")])
        print_answer(
            json, lambda: serialise_determined(told), lambda: format_determined_table(told)
        )
        return
    found = base_parameters(idim)
    texts = write_with_symbols(found) if symbols else found.regroupings
    if json:
        print_json(serialise_base(found, texts))
        return
    say("warning", model.warnings)
    typer.echo(format_regroupings(found, texts))


def print_told(
    file: Path, chosen: Study, place: Path | None, rotor: bool | None, json: bool
) -> None:
    """The structural base parameters of a robot, and what the motion of logs tells of them."""
    from dynident.cli.progress import show_progress
    from dynident.core.errors import name_study_in_errors
    from dynident.fit.determined import (
        find_told_parameters,
        format_told_parameters,
        serialise_told_parameters,
    )
    from dynident.report.base import format_regroupings
    from dynident.study.study import read_study_problem, update_section

    if Path(chosen.robot.file).resolve() != file.resolve():
        raise InputError(f"{place}: describes {chosen.robot.file}, not {file}")
    if rotor is not None:
        chosen = update_section(chosen, "robot", rotor=rotor)
    with show_progress() as progress, name_study_in_errors(place):
        problem = read_study_problem(chosen, progress)
        found = find_told_parameters(problem)
    if json:
        document = {"schema": "dynident.told/1", "base_count": found.base.count}
        print_json({**document, **serialise_told_parameters(found)})
        return
    say("warning", problem.warnings)
    typer.echo(format_regroupings(found.base, found.base.regroupings))
    typer.echo("")
    typer.echo(format_told_parameters(found, ", ".join(own.name for own in problem.samples)))


def print_symmetries(model: Robot, json: bool) -> None:
    """Links that mirror each other, as a study states it."""
    from dynident.study.study_text import list_symmetries

    found = list_symmetries(model)
    if json:
        print_json({"schema": "dynident.symmetries/1", "constraints": found})
        return
    say("warning", model.warnings)
    if not found:
        typer.echo(f"{model.name}: no links mirror each other by the file's inertials")
    for each in found:
        keys = "".join(f"{key} = {dumps(value)}\n" for key, value in each.items())
        typer.echo(f"[[constraint]]\n{keys}")
