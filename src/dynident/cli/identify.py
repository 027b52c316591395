"""``dynident identify``: a study or its flags, the result, the files of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dynident.cli.engines import add_engine_flags
from dynident.cli.help import METHOD, METHODS, show_method_flags
from dynident.cli.options import (
    EVERY,
    AnywayFlag,
    JsonFlag,
    LogFlags,
    add_flags,
    add_log_flags,
    complete_by,
    declare_directory,
)
from dynident.cli.output import paint_verdict, print_answer, say, say_written
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import InputError, name_study_in_errors
from dynident.core.options import Option
from dynident.core.side_by_side import Engine
from dynident.study.study import IDENTIFYING, MethodSection, Study

if TYPE_CHECKING:
    from dynident.core.progress import Progress
    from dynident.report.fit import Fit

DEFAULT = MethodSection.model_fields["method"].default


def choose_group(option: Option) -> str:
    """Flags of some methods have a group of their own."""
    return METHOD if option.words.startswith(EVERY) else METHODS


@add_flags(IDENTIFYING, choose_group=choose_group)
@add_study_flags()
@add_log_flags
@add_engine_flags("memory")  # which is what online methods remember
def identify(
    given: StudyFlags,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            autocompletion=complete_by("method"),
            help=f"{DEFAULT} (default), pc-idim-iv, pc-ref-iv, pc-didim, pc-clie, smooth, or "
            "without constraints ols, wls, irls, static, ml, energy, sequential, rls, kf, ekf, "
            "idim-iv, 2sls, ref-iv, didim, cloe, clie, nls, gradient, ga, pf.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        declare_directory("Directory of result.json, model.urdf or model.xml, report.html."),
    ] = None,
    write_study: Annotated[
        Path | None,
        typer.Option("--write-study", help="Write all settings, flags included, as a study."),
    ] = None,
    report: Annotated[
        bool,
        typer.Option("--report/--no-report", help="Write report.html."),
    ] = True,
    as_given: Annotated[
        bool,
        typer.Option("--as-given", help="Keep all defaults: the same as --decide nothing."),
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Print everything: parameters, tests, certificates."),
    ] = False,
    json: JsonFlag = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with 1 if the verdict is refuted."),
    ] = False,
    anyway: AnywayFlag = False,
    help_methods: Annotated[
        bool,
        typer.Option(
            "--help-methods",
            is_eager=True,
            callback=show_method_flags,
            help="Show this message with the options of methods and exit.",
        ),
    ] = False,
    *,
    engine: Engine,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Identify a robot from logs and measure the result on held-out ones.

    In the place of a study may stand a folder of factors that dynident collect made.
    """
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.fit.json import serialise_result
    from dynident.report.fit import OUTPUTS

    if as_given:
        options["decide"] = "nothing"
    job = choose_job(given, told, {"method": method, **options})
    outputs = [] if output is None else [output / name for name in OUTPUTS]
    outputs += [] if write_study is None else [write_study]
    if outputs:
        refuse_outputs(outputs, job.list_inputs())
    with show_progress() as progress:
        with name_study_in_errors(given.study):
            result = job.run(progress, engine)
        contents, notes = (
            ({}, ()) if output is None else result.render_files(output, report, anyway)
        )
        own = frozenset(OUTPUTS if output is not None else ())
        if write_study is not None:
            from dynident.study.study_text import render_study

            assert isinstance(result.study, Study)
            contents[write_study] = render_study(result.study, write_study.parent).encode()
        gone = write_files(contents, own.__contains__) if contents else ()
    print_answer(
        json,
        lambda: serialise_result(result, output),
        lambda: paint_verdict(result.summary(full=full)),
    )
    say("note", (*notes, *(f"removed {path} of an earlier result" for path in gone)))
    say_written(output, write_study)
    if strict and result.verdict.state == "refuted":
        raise typer.Exit(1)


class IdentifyJob(NamedTuple):
    """An identification to be run, with a progress and an engine, and the files that it reads."""

    run: Callable[[Progress, Engine], Fit]
    list_inputs: Callable[[], Sequence[str | Path]]


def choose_job(given: StudyFlags, told: LogFlags, keys: Mapping[str, Any]) -> IdentifyJob:
    """The identification of a study and its logs, or of a folder of factors."""
    from dynident.study.run import run_study

    if given.study is None or not given.study.is_dir():
        chosen = given.read(told, keys)
        return IdentifyJob(
            lambda progress, engine: run_study(chosen, progress, engine=engine),
            partial(given.list_inputs, chosen),
        )
    head = given.study / "collection.json"
    return IdentifyJob(choose_factors(given, told, keys), lambda: [head])


def choose_factors(
    given: StudyFlags, told: LogFlags, keys: Mapping[str, Any]
) -> Callable[[Progress, Engine], Fit]:
    """The identification of a folder of factors, whose flags are those of methods alone."""
    from dynident.core.schema import validate_data
    from dynident.study.collect import identify_factors
    from dynident.study.study import IdentifySection

    folder = given.study
    assert folder is not None
    if replace(given, study=None) != StudyFlags() or told.given:
        raise InputError(
            f"{folder}: factors fix the robot, friction, logs and preparation: drop those flags, "
            "or collect again"
        )
    stated = {key: value for key, value in keys.items() if value is not None}
    if stated.pop("decide", "nothing") != "nothing":
        raise InputError(f"{folder}: --decide needs rows, which factors do not keep; leave it out")
    section = validate_data(IdentifySection, stated, "command line")
    options = section.model_dump(exclude_unset=True, exclude_none=True)
    return lambda progress, engine: identify_factors(
        folder, progress=progress, engine=engine, **options
    )
