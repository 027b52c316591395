"""``dynident fleet``: robots of one type together, and which of them to inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.engines import add_engine_flags
from dynident.cli.options import JsonFlag, declare_directory
from dynident.cli.output import print_answer, say, say_written
from dynident.core.errors import InputError, name_study_in_errors
from dynident.core.side_by_side import Engine

OUTPUTS = ("fleet.json", "fleet.html")
"""All that ``-o DIR`` receives beside the type's result; the first is the head of the set."""


@add_engine_flags()
def fleet(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="ROBOT|FLEET",
            help="One folder per robot: factors, or logs with --study; or one file of all robots.",
        ),
    ],
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            metavar="STUDY|ROBOT",
            help="Model and preparation for folders of logs, collected into -o DIR first.",
        ),
    ] = None,
    robot: Annotated[
        str | None,
        typer.Option(
            "--robot", metavar="NAME", help="Identify this one, with the others as prior."
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", help="For factors; that of the study by default.")
    ] = None,
    output: Annotated[
        Path | None,
        declare_directory(
            "Directory of fleet.json, fleet.html, and the type's or the robot's result."
        ),
    ] = None,
    json: JsonFlag = False,
    *,
    engine: Engine,
) -> None:
    """Identify robots of one type together: what they share, and which are odd or change."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.core.plain import to_json
    from dynident.fit.json import serialise_result
    from dynident.report.fit import OUTPUTS as RESULT
    from dynident.study import fleet as fleets
    from dynident.study.collect import read_model_study

    study, folders, sites = fleets.read_given(study, folders)
    if study is not None and output is None:
        raise InputError("--study collects factors: say where with -o DIR")
    left: list[str] = []
    if output is not None:
        refuse_outputs([output / name for name in (*RESULT, *OUTPUTS)])
    with show_progress() as progress, name_study_in_errors(study):
        if study is not None and output is not None:
            folders, left = fleets.collect_robots(
                read_model_study(study), folders, output / "factors", engine, progress
            )
        if robot is None:
            found = fleets.identify_fleet(folders, method, sites=sites, progress=progress)
            fit, text, plain = found.fit, found.summary(), found.to_dict()
            pages = {OUTPUTS[0]: to_json(plain), OUTPUTS[1]: found.render()}
        else:
            fit = fleets.identify_robot(folders, robot, method, sites=sites, progress=progress)
            text, plain, pages = fit.summary(), serialise_result(fit, output), {}
    contents, notes = ({}, ()) if output is None else fit.render_files(output)
    if output is not None:
        contents |= {output / name: page.encode() for name, page in pages.items()}
        write_files(contents, frozenset(RESULT).__contains__)
    print_answer(json, lambda: plain, lambda: text)
    say("left out", left)
    say("note", notes)
    say_written(output)
