"""``dynident payload``: a load, from a log with it and a stored result without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.flags import PAYLOAD_FLAGS
from dynident.cli.options import JsonFlag, LogFlags, add_flags, add_log_flags, app


@app.command(
    short_help="Identify a load from a log with it and a stored result.",
    epilog="Example: dynident payload out/result.json --log loaded.csv --frame tool0",
)
@add_flags(PAYLOAD_FLAGS)
@add_log_flags
def payload(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    log: Annotated[str, typer.Option("--log", help="With the load; a,b for side by side.")],
    json: JsonFlag = False,
    *,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Identify a load from a log with it and a stored result without it."""
    from dynident.results.json import replace_nonfinite, to_json
    from dynident.study.payload import identify_payload_from_stored
    from dynident.study.stored import read_result

    stored = told.beside(read_result(result))
    found, warnings = identify_payload_from_stored(stored, log, **options)
    typer.echo(
        to_json(replace_nonfinite(found.to_dict())) if json else found.summary(), nl=not json
    )
    for warning in dict.fromkeys(warnings):
        typer.echo(f"warning: {warning}", err=True)
