"""``dynident collect``: logs to small files of factors, from which identify answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynident.cli.engines import add_engine_flags
from dynident.cli.options import JsonFlag, LogFlags, add_log_flags, declare_directory
from dynident.cli.output import print_answer, say, say_written
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError, name_study_in_errors
from dynident.core.side_by_side import Engine


@add_study_flags("study", "robot", "log", "validate")
@add_log_flags
@add_engine_flags()
def collect(
    model: Annotated[
        Path,
        typer.Argument(metavar="STUDY|ROBOT", help="A study, or a URDF, MJCF or robot TOML."),
    ],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG",
            help="Log files (a,b side by side), patterns, folders, s3://, https://; those of the "
            "study by default.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, declare_directory("Folder of the factors.")] = Path("factors"),
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first log that cannot be used.")
    ] = False,
    withdraw: Annotated[
        list[str] | None,
        typer.Option("--withdraw", metavar="NAME", help="Remove this source; repeatable."),
    ] = None,
    json: JsonFlag = False,
    *,
    engine: Engine,
    given: StudyFlags,
    told: LogFlags,
) -> None:
    """Reduce logs to factors, a small file each; what is there already is not read again."""
    from dynident.cli.progress import show_progress
    from dynident.study import collect as collecting
    from dynident.study.recognise import Words

    study = collecting.read_model_study(model)
    if study.log and given.describes_robot:
        raise InputError(
            f"{model}: already describes its robot; --floating, --contact, --beyond and --sensor "
            "go with a robot file"
        )
    if study.log and not sources:
        told.refuse_beside(f"{model} has logs of its own")
    study, said = given.override(study, told), tuple[Words, ...]()
    if sources and not study.log:
        study, said = collecting.recognise_sources(study, sources, told.keys)
    say("note", map(": ".join, said))
    with show_progress() as progress, name_study_in_errors(model if study.log else None):
        found = collecting.collect(
            study,
            sources or (),
            output,
            engine=engine,
            strict=strict,
            withdraw=withdraw or (),
            layout=told.keys,
            progress=progress,
        )
    print_answer(json, found.to_dict, found.summary)
    say("warning", (own for each in found.entries if each.state == "read" for own in each.warnings))
    say("note", found.notes)
    if len(found.left_out) == len(found.entries) > 0:
        raise InputError(f"{output}: no log can be used; the reasons are given above")
    say_written(output)
