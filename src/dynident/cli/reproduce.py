"""``dynident reproduce``: papers' experiments, and other routes on a study's logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.engines import add_engine_flags
from dynident.cli.output import say_written
from dynident.core.errors import InputError, name_study_in_errors, refuse_unknown
from dynident.core.side_by_side import Engine


@add_engine_flags()
def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="brunot2019, ardiani2024, zhang2018, or routes.")
    ],
    study: Annotated[
        Path | None, typer.Argument(metavar="STUDY.toml", help="Study whose logs routes uses.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A shorter, coarser version, in seconds.")
    ] = False,
    times: Annotated[
        bool, typer.Option("--times", help="Computing times as well, the paper's beside ours.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the paper's figures: a PNG file.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Standard parameters by each of the routes (CSV)."),
    ] = None,
    *,
    engine: Engine,
) -> None:
    """Repeat a paper's experiment, simulated and on a measured log, or routes on a study's logs."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident_papers import REPRODUCTIONS
    from dynident_papers.picture import draw_panels

    if name == "routes":
        if study is None or quick or times or picture is not None:
            raise InputError("routes takes a study and --output: reproduce routes study.toml")
        compare_study_routes(study, output)
        return
    if study is not None or output is not None:
        raise InputError(f"paper {name!r} takes no study and writes no file; routes does")
    refuse_unknown(name, (*REPRODUCTIONS, "routes"), f"paper {name!r} is not known")
    if picture is not None:
        refuse_outputs([picture])
        if picture.suffix.lower() != ".png":
            raise InputError(f"{picture}: pictures are PNG; name it {picture.with_suffix('.png')}")
    with show_progress() as progress:
        found = REPRODUCTIONS[name](progress=progress, reduced=quick, timed=times, engine=engine)
    if picture is not None:
        write_files({picture: draw_panels(found.panels)})
    typer.echo(found.text())


def compare_study_routes(study: Path, output: Path | None) -> None:
    """Print what other routes make of a study's logs, and write their standard parameters."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.study.study import (
        list_input_files,
        read_study,
        read_study_problem,
    )
    from dynident_papers.routes import follow_routes, format_routes, render_routes

    chosen = read_study(study)
    if output is not None:
        refuse_outputs([output], [*list_input_files(chosen), study])
    with show_progress() as progress, name_study_in_errors(study):
        problem = read_study_problem(chosen, progress)
        found = follow_routes(problem)
    typer.echo(format_routes(problem.idim, found))
    if output is not None:
        write_files({output: render_routes(problem.idim, found).encode()})
        say_written(output)
