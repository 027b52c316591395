"""``dynident repair``: the consistent inertials nearest to a robot file's, or to a table's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynident.cli.options import FrictionOption, JsonFlag, add_flags, check_positive
from dynident.cli.output import print_json, say, say_written
from dynident.consistency.knowledge import Knowledge
from dynident.core.options import collect_options

if TYPE_CHECKING:
    from dynident.robot.model import Robot


NEAREST = {"metric": collect_options([Knowledge])["metric"]}
"""What says which inertials are the nearest."""


@add_flags(NEAREST)
def repair(
    robot: Annotated[Path, typer.Argument(metavar="ROBOT", help="URDF, MJCF or robot TOML.")],
    urdf: Annotated[
        Path | None,
        typer.Option("--urdf", help="The URDF to write; only a report without."),
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
    from dynident.consistency.constraints import TotalMass
    from dynident.core.errors import InputError
    from dynident.core.files import refuse_outputs, write_files
    from dynident.robot import load_robot
    from dynident.robot.mjcf import list_model_files

    if friction is not None and table is None:
        raise InputError("--friction is of --table")
    model = load_robot(robot)
    if urdf is not None:
        refuse_outputs([urdf], (robot, *list_model_files(model), table or robot))
    knowledge = Knowledge(constraints=() if mass is None else (TotalMass(mass),), **options)
    if table is None:
        document, notes, data, text = repair_robot_file(model, knowledge)
    else:
        document, notes, data, text = repair_base_table(model, table, friction, knowledge)
    if urdf is not None:
        write_files({urdf: document})
    if json:
        print_json(data)
    else:
        typer.echo(text)
    if urdf is not None:
        say("note", notes)
        say_written(urdf)


Answer = tuple[bytes, tuple[str, ...], dict[str, Any], str]
"""A URDF with notes on it, and what to print, as data and as text."""


def repair_robot_file(model: Robot, knowledge: Knowledge) -> Answer:
    """A robot file with the consistent inertials nearest to its own."""
    from dynident.consistency.nearest import nearest_consistent
    from dynident.export.urdf import render_urdf
    from dynident.report.repair import format_repair, serialise_repair

    found = nearest_consistent(
        model,
        metric=knowledge.chosen_metric,
        constraints=knowledge.constraints,
        gyrations=knowledge.gyrations(model),
    )
    return (
        *render_urdf(model, found.phi),
        serialise_repair(model, found),
        format_repair(model, found),
    )


def repair_base_table(
    model: Robot, table: Path, friction: str | None, knowledge: Knowledge
) -> Answer:
    """A robot file with the consistent parameters nearest to a table of base parameters."""
    from dynident.consistency.nearest import nearest_to_base
    from dynident.dynamics.base import base_parameters
    from dynident.dynamics.base_table import read_base_table
    from dynident.dynamics.idim import FRICTION, build_idim
    from dynident.export.urdf import render_standard_urdf
    from dynident.report.repair import format_base_repair, serialise_base_repair

    base = base_parameters(build_idim(model, friction or FRICTION))
    beta, std = read_base_table(table, base)
    point = nearest_to_base(base, beta, std, knowledge)
    assert point.theta is not None
    return (
        *render_standard_urdf(base.idim, point.theta),
        serialise_base_repair(base, beta, std, point),
        format_base_repair(base, beta, std, point),
    )
