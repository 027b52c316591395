"""Commands that simulate: a log of a robot's loop, and the papers' experiments."""

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


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="brunot2019, ardiani2024 or zhang2018.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A shorter, coarser version, in seconds.")
    ] = False,
    times: Annotated[
        bool, typer.Option("--times", help="Computing times as well, the paper's beside ours.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the paper's figures: a PNG file.")
    ] = None,
) -> None:
    """Repeat a paper's experiment, its tables beside ours: simulated, and on a measured log."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.core.text import suggest_nearest
    from dynident_papers import REPRODUCTIONS
    from dynident_papers.picture import draw_panels

    if name not in REPRODUCTIONS:
        raise InputError(f"paper {name!r} is not known{suggest_nearest(name, REPRODUCTIONS)}")
    refuse_outputs([] if picture is None else [picture])
    if picture is not None and picture.suffix.lower() != ".png":
        raise InputError(f"{picture}: pictures are PNG; name it {picture.with_suffix('.png')}")
    with show_progress() as progress:
        found = REPRODUCTIONS[name](progress=progress, reduced=quick, timed=times)
    if picture is not None:
        write_files({picture: draw_panels(found.panels)})
    typer.echo(found.text())
