"""``dynident repair``: the consistent inertials nearest to a robot file's, or to a table's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.options import ROBOT, FrictionOption, JsonFlag, add_flags, check_positive
from dynident.cli.output import print_answer, say, say_written
from dynident.export.repair import NEAREST


@add_flags(NEAREST)
def repair(
    robot: Annotated[Path, ROBOT],
    urdf: Annotated[
        Path | None,
        typer.Option("--urdf", help="The URDF to write; without it only a report is printed."),
    ] = None,
    mass: Annotated[
        float | None,
        typer.Option(
            "--mass", callback=check_positive, help="Total mass of the moving links [kg]."
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--table", help="CSV name,value[,std] of base parameters to repair instead."),
    ] = None,
    friction: FrictionOption = None,
    json: JsonFlag = False,
    *,
    options: dict[str, Any],
) -> None:
    """Find the physically consistent inertials nearest to a robot file's, or a table's."""
    from dynident import load_robot
    from dynident.core.errors import InputError
    from dynident.core.files import refuse_outputs, write_files
    from dynident.export.repair import (
        refuse_model_files,
        repair_base_table,
        repair_robot_file,
    )

    if friction is not None and table is None:
        raise InputError("--friction needs --table")
    model = load_robot(robot)
    if urdf is not None:
        refuse_outputs([urdf], (robot, table or robot))
        refuse_model_files([urdf], model)
    if table is None:
        document, notes, data, text = repair_robot_file(model, mass, **options)
    else:
        document, notes, data, text = repair_base_table(model, table, friction, mass, **options)
    if urdf is not None:
        write_files({urdf: document})
    print_answer(json, lambda: data, lambda: text)
    if urdf is not None:
        say("note", notes)
        say_written(urdf)
