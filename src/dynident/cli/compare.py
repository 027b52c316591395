"""``dynident compare``: methods and friction models on one study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.engines import add_engine_flags
from dynident.cli.options import JsonFlag, LogFlags, add_log_flags, declare_directory
from dynident.cli.output import print_answer, say_written
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError, name_study_in_errors
from dynident.core.side_by_side import Engine
from dynident.study.compare import METHODS

OUTPUTS = ("comparison.json", "comparison.html")
"""All that ``-o DIR`` receives; the first is the head of the set."""


@add_study_flags("friction")
@add_log_flags
@add_engine_flags()
def compare(
    given: StudyFlags,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="NAME[,NAME...]",
            help=f"Names with commas: {','.join(METHODS)} if not given.",
        ),
    ] = None,
    frictions: Annotated[
        str | None,
        typer.Option(
            "--frictions",
            metavar="NAME[,NAME...]",
            help="Friction models, names with commas; seven by default.",
        ),
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option("--blocks", help="Blocks in time, each held out in turn: 5 if not given."),
    ] = None,
    output: Annotated[
        Path | None, declare_directory("Directory of comparison.json, comparison.html.")
    ] = None,
    json: JsonFlag = False,
    *,
    engine: Engine,
    told: LogFlags,
) -> None:
    """Compare methods and friction models by their held-out errors, and recommend."""
    if given.study is not None and given.study.suffix.lower() == ".json":
        raise InputError(f"{given.study}: is not a study; dynident diff compares stored results")
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.core.plain import replace_nonfinite, to_json
    from dynident.fit.comparison import serialise_comparison
    from dynident.report.html import render_comparison_page
    from dynident.study import compare as comparing

    chosen = given.read(told)
    if output is not None:
        refuse_outputs([output / name for name in OUTPUTS], given.list_inputs(chosen))
    with show_progress() as progress:
        with name_study_in_errors(given.study):
            found = comparing.compare(
                chosen,
                METHODS if methods is None else [name.strip() for name in methods.split(",")],
                comparing.MODELS if frictions is None else comparing.split_frictions(frictions),
                comparing.BLOCKS if blocks is None else blocks,
                progress,
                engine=engine,
            )
        document = serialise_comparison(found)
        if output is not None:
            contents = (to_json(replace_nonfinite(document)), render_comparison_page(found))
            write_files(
                {
                    output / name: text.encode(errors="backslashreplace")
                    for name, text in zip(OUTPUTS, contents, strict=True)
                }
            )
    print_answer(json, lambda: document, found.summary)
    say_written(output)
