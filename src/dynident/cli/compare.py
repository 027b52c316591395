"""``dynident compare``: methods and friction models on one study, or two results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.options import JsonFlag, LogFlags, add_log_flags
from dynident.cli.output import print_json, say, say_written
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError, name_study_in_errors
from dynident.study.compare import METHODS

OUTPUTS = ("comparison.json", "comparison.html")
"""All that ``-o DIR`` receives; the first is the head of the set."""


@add_study_flags("friction")
@add_log_flags
def compare(
    given: StudyFlags,
    result: Annotated[
        Path | None,
        typer.Argument(metavar="[RESULT.json]", help="Compare two results, and not a study's."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help=f"Names with commas: {','.join(METHODS)} if not given."),
    ] = None,
    frictions: Annotated[
        str | None,
        typer.Option("--frictions", help="Friction models, names with commas; seven by default."),
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option("--blocks", help="Blocks in time, each held out in turn: 5 if not given."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Directory of comparison.json, comparison.html.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="All parameters of two results, in their order.")
    ] = False,
    json: JsonFlag = False,
    *,
    told: LogFlags,
) -> None:
    """Compare methods and friction models by their held-out errors, and recommend.

    Of two results, A/result.json B/result.json: print what they say differently; --log measures
    both on a log.
    """
    if is_result(given.study):
        own = {"--methods": methods, "--frictions": frictions, "--blocks": blocks, "-o": output}
        compare_two(given, result, told, own, full, json)
        return
    if result is not None or full:
        flag = "--full" if result is None else str(result)
        raise InputError(f"{flag}: is of two results: dynident compare A/result.json B/result.json")
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.fit.json import replace_nonfinite, to_json
    from dynident.report.comparison import serialise_comparison
    from dynident.report.html import render_comparison_page
    from dynident.study import compare as comparing

    chosen = given.read(told)
    if output is not None:
        refuse_outputs([output / name for name in OUTPUTS], given.list_inputs(chosen))
    with show_progress() as progress:
        with name_study_in_errors(given.study):
            found = comparing.compare(
                chosen,
                comparing.METHODS if methods is None else split_names(methods),
                comparing.MODELS if frictions is None else comparing.split_frictions(frictions),
                comparing.BLOCKS if blocks is None else blocks,
                progress,
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
    if json:
        print_json(document)
    else:
        typer.echo(found.summary())
    say_written(output)


def is_result(path: Path | None) -> bool:
    """Whether a file is to be read as a result: studies are TOML."""
    return path is not None and path.suffix.lower() == ".json"


def compare_two(
    given: StudyFlags,
    result: Path | None,
    told: LogFlags,
    own: Mapping[str, object],
    full: bool,
    json: bool,
) -> None:
    """Print two results side by side; flags that are of a study are refused.

    Parameters
    ----------
    own : mapping of str to object
        Flags of the command that are of studies, None where they are not given.
    """
    from dynident.study.fits import compare_on_logs, read_result

    first = given.study
    assert first is not None  # is_result says so
    if result is None:
        raise InputError(f"{first}: give a second result.json to compare it with")
    beside = {
        "--robot": given.robot,
        "--validate": given.held_out or None,
        "--bandwidth": given.bandwidth,
        "--locked": given.locked,
        "--floating": given.floating or None,
        "--contact": given.contacts or None,
        **own,
    }
    for flag, value in beside.items():
        if value is not None:
            raise InputError(f"{flag}: is of a study; two results are compared as they are")
    told.refuse_without(given.logs)
    one, other = read_result(first), read_result(result)
    logs = [text.split(",") for text in given.logs]
    with name_study_in_errors(None):
        found, warnings = compare_on_logs(one, other, logs, told.layout)
    say("warning", warnings)
    if json:
        print_json(found.to_dict())
    else:
        typer.echo(found.summary(full))


def split_names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(","))
