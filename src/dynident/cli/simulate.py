"""``dynident simulate``: a log of a robot's loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.output import say
from dynident.core.errors import InputError, name_study_in_errors


def simulate(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The log to write (CSV).")],
) -> None:
    """Simulate a study's robot under its controller and write the log it would give."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.study.simulate import simulate_study
    from dynident.study.study import list_input_files, read_study

    chosen = read_study(study, use=None)
    refuse_outputs([output], [*list_input_files(chosen), study])
    if output.suffix.lower() not in ("", ".csv", ".txt"):
        named = output.with_suffix(".csv")
        raise InputError(f"{output}: logs are written as text; name it {named}")
    with show_progress() as progress:
        with name_study_in_errors(study):
            log = simulate_study(chosen, progress)
        write_files({output: log.to_csv()})
    say("warning", log.warnings)
    samples, rate = len(log.recording.q), log.recording.rate
    typer.echo(f"{samples} samples at {rate:g} Hz written to {output}", err=True)
