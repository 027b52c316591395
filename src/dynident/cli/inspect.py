"""``dynident base``, ``validate``, ``export`` and ``repair``: robots and stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.options import (
    FrictionOption,
    JsonFlag,
    LowpassOption,
    MetricOption,
    app,
    positive,
)


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
    from dynident.admissible import Knowledge
    from dynident.errors import InputError
    from dynident.files import refuse_overwriting, write_files
    from dynident.stored import read_result, stored_urdf

    if metric is not None and not repair:
        raise InputError("--metric is of --repair")

    stored = read_result(result)
    source = stored.idim.robot.source
    refuse_overwriting([urdf], (result, stored.study.robot.file, source or result))
    knowledge = Knowledge(metric=metric or "pullback") if repair else None
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
    json: JsonFlag = False,
) -> None:
    """Find the physically consistent inertials nearest to a robot file's own."""
    from dynident.constraints import TotalMass
    from dynident.export.result import finite, to_json
    from dynident.export.urdf import model_urdf
    from dynident.files import refuse_overwriting, write_files
    from dynident.nearest import nearest_consistent
    from dynident.report.repair import repair_dict, repair_table
    from dynident.robot import load_robot

    model = load_robot(robot)
    constraints = () if mass is None else (TotalMass(mass),)
    found = nearest_consistent(model, metric=metric or "pullback", constraints=constraints)
    notes: tuple[str, ...] = ()
    if urdf is not None:
        refuse_overwriting([urdf], (robot, model.source or robot))
        document, notes = model_urdf(model, found.phi)
        write_files({urdf: document})
    if json:
        typer.echo(to_json(finite(repair_dict(model, found))), nl=False)
    else:
        typer.echo(repair_table(model, found))
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if urdf is not None:
        typer.echo(f"written to {urdf}", err=True)
