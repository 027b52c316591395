"""``dynident base``: what the motion of a robot can identify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    idim = build_idim(model, friction or FRICTION, rotor)
    if rows is not None:
        side_by_side = find_determined_parameters(idim, [kind.strip() for kind in rows.split(",")])
        if json:
            print_json(serialise_determined(side_by_side))
        else:
            typer.echo(format_determined_table(side_by_side))
        return
    found = base_parameters(idim)
    if json:
        parameters = [
            {"name": name, "regrouping": text}
            for name, text in zip(found.names, found.regroupings, strict=True)
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
    typer.echo(format_regroupings(found))
