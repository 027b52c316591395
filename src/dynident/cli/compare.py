"""``dynident compare``: methods and friction models on one study, and which to take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynident.cli.identify import BandwidthOption, choose_study, override_study
from dynident.cli.options import (
    ContactOption,
    FloatingOption,
    JsonFlag,
    LockedOption,
    LogFlags,
    LogOption,
    RobotOption,
    StudyArgument,
    add_log_flags,
    parse_locked_joints,
)
from dynident.core.errors import name_study_in_errors
from dynident.study.compare import METHODS

if TYPE_CHECKING:
    from dynident.report.comparison import Comparison

OUTPUTS = ("comparison.json", "comparison.html")
"""All that ``-o DIR`` receives; the first is the head of the set."""


@add_log_flags
def compare(
    study: StudyArgument = None,
    robot: RobotOption = None,
    log: LogOption = None,
    validate: Annotated[
        list[str] | None, typer.Option("--validate", help="A log held out; repeatable.")
    ] = None,
    bandwidth: BandwidthOption = None,
    locked: LockedOption = None,
    floating: FloatingOption = False,
    contact: ContactOption = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help=f"Names with commas: {','.join(METHODS)} if not given."),
    ] = None,
    frictions: Annotated[
        str | None,
        typer.Option("--frictions", help="Friction models, names with commas; seven by default."),
    ] = None,
    blocks: Annotated[
        int, typer.Option("--blocks", help="Blocks in time, each held out in turn.")
    ] = 5,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Directory of comparison.json, comparison.html."),
    ] = None,
    json: JsonFlag = False,
    *,
    told: LogFlags,
) -> None:
    """Compare methods and friction models by their held-out errors, and recommend."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs
    from dynident.fit.json import replace_nonfinite, to_json
    from dynident.report.comparison import serialise_comparison
    from dynident.study import compare as comparing
    from dynident.study.study import list_input_files

    chosen = choose_study(study, robot, log, told, validate, floating, contact)
    chosen = override_study(
        chosen,
        friction=None,
        bandwidth=bandwidth,
        locked=parse_locked_joints(locked),
        identify={},
    )
    if output is not None:
        inputs = [*list_input_files(chosen), *([] if study is None else [study])]
        refuse_outputs([output / name for name in OUTPUTS], inputs)
    with show_progress() as progress:
        with name_study_in_errors(study):
            found = comparing.compare(
                chosen,
                comparing.METHODS if methods is None else split_names(methods),
                comparing.MODELS if frictions is None else split_names(frictions),
                blocks,
                progress,
            )
        if output is not None:
            write_output(found, output)
    typer.echo(
        to_json(replace_nonfinite(serialise_comparison(found))) if json else found.summary() + "\n",
        nl=False,
    )
    if output is not None:
        typer.echo(f"written to {output}", err=True)


def split_names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(","))


def write_output(found: Comparison, directory: Path) -> None:
    """Write comparison.json and comparison.html."""
    from dynident.core.files import write_files
    from dynident.fit.json import replace_nonfinite, to_json
    from dynident.report.comparison import serialise_comparison
    from dynident.report.html import render_comparison_page

    contents = (
        to_json(replace_nonfinite(serialise_comparison(found))),
        render_comparison_page(found),
    )
    paths = (directory / name for name in OUTPUTS)
    write_files(
        {
            path: text.encode(errors="backslashreplace")
            for path, text in zip(paths, contents, strict=True)
        }
    )
