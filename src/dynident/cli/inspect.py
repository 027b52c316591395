"""``dynident base``, ``validate``, ``export`` and ``repair``: robots and stored results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynident.cli.options import (
    FrictionOption,
    JsonFlag,
    LowpassOption,
    MetricOption,
    app,
    positive,
)

if TYPE_CHECKING:
    from dynident.constraints import Constraint
    from dynident.robot.model import Robot


@app.command(epilog="Example: dynident base arm.urdf --friction viscous")
def base(
    robot: Annotated[Path, typer.Argument(metavar="ROBOT", help="URDF or robot TOML.")],
    friction: FrictionOption = None,
    rotor: Annotated[
        bool | None,
        typer.Option("--rotor/--no-rotor", help="Rotor inertias; on unless friction is none."),
    ] = None,
    floating: Annotated[bool, typer.Option("--floating", help="Free-flying base.")] = False,
    json: JsonFlag = False,
) -> None:
    """Print the identifiable combinations of a robot's parameters and their count."""
    from dynident.base import base_parameters
    from dynident.export.result import to_json
    from dynident.idim import build_idim
    from dynident.robot import load_robot

    model = load_robot(robot, floating=floating)
    found = base_parameters(build_idim(model, friction or "coulomb-viscous", rotor))
    if json:
        rows = [
            {"name": name, "regrouping": text}
            for name, text in zip(found.names, found.regroupings, strict=True)
        ]
        document = {
            "schema": "dynident.base/1",
            "robot": {"name": model.name, "joints": list(model.joint_names), "dof": model.dof},
            "friction": found.idim.friction,
            "base_count": found.count,
            "rigid_body_count": found.rigid_body_count,
            "standard_count": len(found.idim.parameters),
            "parameters": rows,
            "unidentifiable": list(found.unidentifiable),
        }
        typer.echo(to_json(document), nl=False)
        return
    from dynident.report.summary import base_table

    for warning in model.warnings:
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(base_table(found))


@app.command(epilog="Example: dynident validate out/result.json run3.csv")
def validate(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="a,b for side by side.")],
    lowpass: LowpassOption = None,
    json: JsonFlag = False,
) -> None:
    """Measure a stored result on other logs, laid out as those it was made from."""
    from dynident.export.result import finite, to_json, validation_dict
    from dynident.report.summary import figures_table
    from dynident.stored import read_result, stored_figures

    stored = read_result(result)
    found = [stored_figures(stored, text.split(","), lowpass) for text in logs]
    for warning in dict.fromkeys(note for one in found for note in one.warnings):
        typer.echo(f"warning: {warning}", err=True)
    if json:
        document = {
            "schema": "dynident.validation/1",
            "validation": [validation_dict(one.figures) for one in found],
            "warnings": list(dict.fromkeys(note for one in found for note in one.warnings)),
        }
        typer.echo(to_json(finite(document)), nl=False)
        return
    for one in found:
        table = figures_table(one.figures.entries, one.figures.nominal)
        typer.echo(f"{one.figures.log}\n{table}\n")


@app.command(epilog="Example: dynident export out/result.json --urdf arm_identified.urdf")
def export(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    urdf: Annotated[Path, typer.Option("--urdf", help="The URDF to write.")],
    repair: Annotated[
        bool,
        typer.Option("--repair", help="The nearest consistent links, of a result without them."),
    ] = False,
    metric: MetricOption = None,
) -> None:
    """Write a stored result as a robot model."""
    from dynident.errors import InputError
    from dynident.files import refuse_overwriting, write_files
    from dynident.knowledge import Knowledge
    from dynident.stored import read_result, stored_urdf

    if metric is not None and not repair:
        raise InputError("--metric is of --repair")

    stored = read_result(result)
    source = stored.idim.robot.source
    refuse_overwriting([urdf], (result, stored.study.robot.file, source or result))
    knowledge = Knowledge(metric=metric) if repair else None
    document, notes = stored_urdf(stored, knowledge)
    write_files({urdf: document})
    for warning in stored.warnings:
        typer.echo(f"warning: {warning}", err=True)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"written to {urdf}", err=True)


@app.command(epilog="Example: dynident repair arm.urdf --urdf arm_consistent.urdf")
def repair(
    robot: Annotated[Path, typer.Argument(metavar="ROBOT", help="URDF or robot TOML.")],
    urdf: Annotated[
        Path | None, typer.Option("--urdf", help="The URDF to write; only a report without.")
    ] = None,
    metric: MetricOption = None,
    mass: Annotated[
        float | None,
        typer.Option("--mass", callback=positive, help="Total mass of the moving links [kg]."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--table", help="CSV name,value[,std] of base parameters to repair instead."),
    ] = None,
    friction: FrictionOption = None,
    json: JsonFlag = False,
) -> None:
    """Find the physically consistent inertials nearest to a robot file's, or a table's."""
    from dynident.constraints import TotalMass
    from dynident.errors import InputError
    from dynident.export.result import finite, to_json
    from dynident.files import refuse_overwriting, write_files
    from dynident.robot import load_robot

    if friction is not None and table is None:
        raise InputError("--friction is of --table")
    model = load_robot(robot)
    if urdf is not None:
        refuse_overwriting([urdf], (robot, model.source or robot, table or robot))
    constraints = () if mass is None else (TotalMass(mass),)
    if table is None:
        document, notes, data, text = repaired_file(model, metric, constraints)
    else:
        document, notes, data, text = repaired_table(model, table, friction, metric, constraints)
    if urdf is not None:
        write_files({urdf: document})
    typer.echo(to_json(finite(data)) if json else text, nl=not json)
    for note in notes if urdf is not None else ():
        typer.echo(f"note: {note}", err=True)
    if urdf is not None:
        typer.echo(f"written to {urdf}", err=True)


Answer = tuple[bytes, tuple[str, ...], dict[str, Any], str]
"""A URDF with notes on it, and what to print, as data and as text."""


def repaired_file(model: Robot, metric: str | None, constraints: tuple[Constraint, ...]) -> Answer:
    """A robot file with the consistent inertials nearest to its own."""
    from dynident.export.urdf import model_urdf
    from dynident.knowledge import METRIC
    from dynident.nearest import nearest_consistent
    from dynident.report.repair import repair_dict, repair_table

    chosen = METRIC if metric is None else metric
    found = nearest_consistent(model, metric=chosen, constraints=constraints)
    return (*model_urdf(model, found.phi), repair_dict(model, found), repair_table(model, found))


def repaired_table(
    model: Robot,
    table: Path,
    friction: str | None,
    metric: str | None,
    constraints: tuple[Constraint, ...],
) -> Answer:
    """A robot file with the consistent parameters nearest to a table of base parameters."""
    from dynident.base import base_parameters
    from dynident.export.standard import standard_urdf
    from dynident.idim import build_idim
    from dynident.knowledge import Knowledge
    from dynident.nearest import nearest_to_base
    from dynident.published import read_base_table
    from dynident.report.repair import base_repair_dict, base_repair_table

    base = base_parameters(build_idim(model, friction or "coulomb-viscous"))
    beta, std = read_base_table(table, base)
    held = nearest_to_base(base, beta, std, Knowledge(metric=metric, constraints=constraints))
    assert held.theta is not None
    return (
        *standard_urdf(base.idim, held.theta),
        base_repair_dict(base, beta, std, held),
        base_repair_table(base, beta, std, held),
    )
