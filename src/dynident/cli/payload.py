"""``dynident payload``: a load, from a log with it and a stored result without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.options import JsonFlag, app, positive


@app.command(
    short_help="Identify a load from a log with it and a stored result.",
    epilog="Example: dynident payload out/result.json --log loaded.csv --frame tool0",
)
def payload(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    log: Annotated[str, typer.Option("--log", help="With the load; a,b for side by side.")],
    link: Annotated[
        str | None,
        typer.Option("--link", help="What carries it; the last moving link if not given."),
    ] = None,
    frame: Annotated[
        str | None, typer.Option("--frame", help="Of the robot file, to tell it in: the flange.")
    ] = None,
    mass: Annotated[
        float | None,
        typer.Option("--mass", callback=positive, help="Its mass, to tell the drives' gains [kg]."),
    ] = None,
    gains: Annotated[
        str | None,
        typer.Option("--gains", help="Of --mass: one in all (all) or one a joint (joint)."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the random numbers.")] = 0,
    json: JsonFlag = False,
) -> None:
    """Identify a load from a log with it and a stored result without it."""
    from dynident.core.errors import InputError
    from dynident.results.json import finite, to_json
    from dynident.study.payload import stored_payload
    from dynident.study.stored import read_result

    if gains not in (None, "all", "joint"):
        raise InputError(f"--gains {gains!r} is not known; give all or joint")
    found, warnings = stored_payload(
        read_result(result), log, link,
        mass=mass, gains="joint" if gains == "joint" else "all", frame=frame, seed=seed,
    )  # fmt: skip
    typer.echo(to_json(finite(found.to_dict())) if json else found.summary(), nl=not json)
    for warning in dict.fromkeys(warnings):
        typer.echo(f"warning: {warning}", err=True)
