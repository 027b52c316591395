"""``dynident base``: what the motion of a robot can identify."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynident.cli.options import (
    ContactOption,
    FloatingOption,
    FrictionOption,
    JsonFlag,
    LockedOption,
    parse_locked_joints,
)
from dynident.cli.output import print_json, say

if TYPE_CHECKING:
    from dynident.dynamics.base import BaseParameters
    from dynident.robot.model import Robot


def base(
    robot: Annotated[Path, typer.Argument(metavar="ROBOT", help="URDF, MJCF or robot TOML.")],
    friction: FrictionOption = None,
    rotor: Annotated[
        bool | None,
        typer.Option("--rotor/--no-rotor", help="Rotor inertias; on unless friction is none."),
    ] = None,
    floating: FloatingOption = False,
    locked: LockedOption = None,
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="KIND[,KIND...]",
            help="Which equations: full, joints, base, null-space; several side by side.",
        ),
    ] = None,
    beyond: Annotated[
        str | None,
        typer.Option("--beyond", metavar="LINK", help="The limb that a sensor there holds."),
    ] = None,
    contact: ContactOption = None,
    symmetries: Annotated[
        bool,
        typer.Option(
            "--symmetries", help="Constraints on links that mirror each other by the file, instead."
        ),
    ] = False,
    symbols: Annotated[
        bool, typer.Option("--symbols", help="Lengths of a DH table as symbols: d3^2 m3.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Print the identifiable combinations of a robot's parameters and their count."""
    from dynident.dynamics.base import base_parameters
    from dynident.dynamics.idim import FRICTION, build_idim
    from dynident.fit.determined import (
        find_determined_parameters,
        format_determined_table,
        serialise_determined,
    )
    from dynident.fit.parameters import serialise_robot
    from dynident.robot import load_robot
    from dynident.robot.contacts import add_contacts, parse_contacts
    from dynident.robot.cut import cut_off_limb

    model = load_robot(robot, floating=floating, locked=parse_locked_joints(locked))
    model = add_contacts(model, parse_contacts(contact or ()))
    if beyond is not None:
        model = cut_off_limb(model, beyond)
    if symmetries:
        print_symmetries(model, json)
        return
    idim = build_idim(model, friction or FRICTION, rotor)
    if rows is not None:
        side_by_side = find_determined_parameters(idim, [kind.strip() for kind in rows.split(",")])
        if json:
            print_json(serialise_determined(side_by_side))
        else:
            typer.echo(format_determined_table(side_by_side))
        return
    found = base_parameters(idim)
    texts = write_with_symbols(found) if symbols else found.regroupings
    if json:
        parameters = [
            {"name": name, "regrouping": text}
            for name, text in zip(found.names, texts, strict=True)
        ]
        document = {
            "schema": "dynident.base/1",
            "robot": serialise_robot(model),
            "friction": found.idim.friction,
            "base_count": found.count,
            "rigid_body_count": found.rigid_body_count,
            "standard_count": len(found.idim.parameters),
            "parameters": parameters,
            "unidentifiable": list(found.unidentifiable),
        }
        print_json(document)
        return
    from dynident.report.text import format_regroupings

    say("warning", model.warnings)
    typer.echo(format_regroupings(found, texts))


def write_with_symbols(found: BaseParameters) -> tuple[str, ...]:
    """Regroupings with the lengths of the robot's DH table as symbols."""
    from dynident.core.errors import InputError
    from dynident.dynamics.symbols import find_symbolic_regroupings
    from dynident.robot.load import read_table_lengths

    lengths = read_table_lengths(found.idim.robot)
    if not lengths:
        raise InputError(
            f"{found.idim.robot.name}: symbols are of a DH table with lengths and no locked "
            "joints, in a robot TOML; leave --symbols out"
        )
    return find_symbolic_regroupings(found, lengths)


def print_symmetries(model: Robot, json: bool) -> None:
    """Links that mirror each other, as a study states it."""
    from dynident.consistency.constraints import serialise_constraint
    from dynident.consistency.symmetries import find_symmetries

    found = [serialise_constraint(each) for each in find_symmetries(model)]
    if json:
        print_json({"schema": "dynident.symmetries/1", "constraints": found})
        return
    say("warning", model.warnings)
    if not found:
        typer.echo(f"{model.name}: no links mirror each other by the file's inertials")
    for each in found:
        keys = "".join(f"{key} = {dumps(value)}\n" for key, value in each.items())
        typer.echo(f"[[constraint]]\n{keys}")
