"""``dynident sweep``: a study with every combination of some values."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import dynident
from dynident.cli.engines import add_engine_flags
from dynident.cli.options import JsonFlag, LogFlags, add_log_flags, declare_directory
from dynident.cli.output import print_answer, say_written
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError, name_study_in_errors
from dynident.core.side_by_side import Engine


@add_study_flags()
@add_log_flags
@add_engine_flags()
def sweep(
    given: StudyFlags,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SECTION.KEY=V,V",
            help="Values of a key of the study: prepare.bandwidth=1,2,5; repeatable.",
        ),
    ] = None,
    blocks: Annotated[
        int, typer.Option("--blocks", help="Blocks in time of the held-out logs.")
    ] = 5,
    output: Annotated[Path, declare_directory("Folder of the results and the page.")] = Path(
        "sweep"
    ),
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first combination without an answer.")
    ] = False,
    json: JsonFlag = False,
    *,
    engine: Engine,
    told: LogFlags,
) -> None:
    """Identify with every combination of some values, and recommend one."""
    from dynident.cli.progress import show_progress

    chosen, axes = given.read(told), parse_axes(values or ())
    with show_progress() as progress, name_study_in_errors(given.study):
        found = dynident.sweep(
            chosen,
            axes,
            output,
            blocks=blocks,
            engine=engine,
            strict=strict,
            progress=progress,
        )
    print_answer(json, found.to_dict, found.summary)
    say_written(output)


def parse_axes(texts: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """``prepare.bandwidth=1,2,5``: values as TOML has them, or words."""
    found: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        key, given, values = (part.strip() for part in text.partition("="))
        if not (given and key and values):
            raise InputError(f"--set {text!r}: write SECTION.KEY=VALUE,VALUE,...")
        if key in found:
            raise InputError(f"--set {key} is given twice; put commas between its values")
        found[key] = parse_values(values)
    return found


def parse_values(text: str) -> tuple[Any, ...]:
    """Values between commas; words need no quotes, and lists have brackets."""
    try:
        return tuple(tomllib.loads(f"values = [{text}]")["values"])
    except tomllib.TOMLDecodeError:
        return tuple(parse_value(part.strip()) for part in text.split(","))


def parse_value(text: str) -> Any:
    """A number or a truth as TOML has it, else a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
