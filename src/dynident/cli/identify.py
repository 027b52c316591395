"""``dynident identify``: a study or its flags, the result, the files of the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.help import METHOD, METHODS, show_method_flags
from dynident.cli.options import AnywayFlag, JsonFlag, LogFlags, add_flags, add_log_flags
from dynident.cli.output import paint_verdict, print_json, say, say_written
from dynident.cli.studies import StudyFlags, add_study_flags
from dynident.core.errors import name_study_in_errors
from dynident.core.options import Option
from dynident.study.study import IDENTIFYING, MethodSection, Study

DEFAULT = MethodSection.model_fields["method"].default


def choose_group(option: Option) -> str:
    """Flags of some methods have a group of their own."""
    return METHOD if option.words.startswith("of every method") else METHODS


@add_flags(IDENTIFYING, choose_group=choose_group)
@add_study_flags()
@add_log_flags
def identify(
    given: StudyFlags,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help=f"{DEFAULT} (default), pc-idim-iv, pc-ref-iv, pc-didim, pc-clie, or "
            "without constraints ols, wls, irls, static, ml, rls, kf, ekf, idim-iv, 2sls, ref-iv, "
            "didim, cloe, clie, nls, ga, pf.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Directory of result.json, model.urdf or model.xml, report.html.",
        ),
    ] = None,
    write_study: Annotated[
        Path | None,
        typer.Option("--write-study", help="Write what was given, flags and all, as a study."),
    ] = None,
    report: Annotated[
        bool,
        typer.Option("--report/--no-report", help="Write report.html."),
    ] = True,
    as_given: Annotated[
        bool,
        typer.Option("--as-given", help="Decide nothing from the logs: --decide nothing."),
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Print all that is known: parameters, tests, proofs."),
    ] = False,
    json: JsonFlag = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with 1 where the verdict is refuted."),
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
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Identify a robot from logs and measure the result on held-out ones."""
    from dynident.cli.progress import show_progress
    from dynident.core.files import refuse_outputs, write_files
    from dynident.fit.json import serialise_result
    from dynident.report.fit import OUTPUTS
    from dynident.study.run import run_study

    if as_given:
        options["decide"] = "nothing"
    chosen = given.read(told, {"method": method, **options})
    outputs = [] if output is None else [output / name for name in OUTPUTS]
    outputs += [] if write_study is None else [write_study]
    if outputs:
        refuse_outputs(outputs, given.list_inputs(chosen))
    with show_progress() as progress:
        with name_study_in_errors(given.study):
            result = run_study(chosen, progress)
        contents, notes = (
            ({}, ()) if output is None else result.render_files(output, report, anyway)
        )
        own = frozenset(OUTPUTS if output is not None else ())
        if write_study is not None:
            from dynident.study.written import render_study

            assert isinstance(result.study, Study)
            contents[write_study] = render_study(result.study, write_study.parent).encode()
        gone = write_files(contents, own.__contains__) if contents else ()
    if json:
        print_json(serialise_result(result, output))
    else:
        typer.echo(paint_verdict(result.summary(full=full)))
    say("note", (*notes, *(f"removed {path} of an earlier result" for path in gone)))
    say_written(output, write_study)
    if strict and result.verdict.state == "refuted":
        raise typer.Exit(1)
