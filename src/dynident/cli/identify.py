"""``dynident identify``: a study or its flags, the result, the files of the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dynident.cli.options import (
    AnywayFlag,
    ContactOption,
    FloatingOption,
    FrictionOption,
    JsonFlag,
    LockedOption,
    LogFlags,
    LogOption,
    RobotOption,
    StudyArgument,
    add_flags,
    add_log_flags,
    check_positive,
    parse_locked_joints,
)
from dynident.core.errors import InputError, name_study_in_errors
from dynident.study.study import IDENTIFYING, PREPARING, MethodSection, Study

METHOD = MethodSection.model_fields["method"].default
BandwidthOption = Annotated[
    float | None,
    typer.Option(
        "--bandwidth",
        callback=check_positive,
        help=f"Bandwidth {PREPARING['bandwidth'].words}.",
    ),
]


@add_flags(IDENTIFYING)
@add_log_flags
def identify(
    study: StudyArgument = None,
    robot: RobotOption = None,
    log: LogOption = None,
    validate: Annotated[
        list[str] | None, typer.Option("--validate", help="A log held out; repeatable.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help=f"{METHOD} (default), pc-idim-iv, pc-ref-iv, pc-didim, pc-clie, or "
            "without constraints ols, wls, irls, ml, rls, kf, ekf, idim-iv, 2sls, ref-iv, didim, "
            "cloe, clie, nls, ga, pf.",
        ),
    ] = None,
    friction: FrictionOption = None,
    bandwidth: BandwidthOption = None,
    locked: LockedOption = None,
    floating: FloatingOption = False,
    contact: ContactOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Directory of result.json, model.urdf or model.xml, report.html."
        ),
    ] = None,
    write_study: Annotated[
        Path | None,
        typer.Option("--write-study", help="Write what was given, flags and all, as a study."),
    ] = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html.")] = True,
    full: Annotated[bool, typer.Option("--full", help="Print all base parameters.")] = False,
    json: JsonFlag = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where the verdict is refuted.")
    ] = False,
    anyway: AnywayFlag = False,
    *,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Identify a robot from logs and measure the result on held-out ones."""
    from dynident.core.files import refuse_outputs, write_files
    from dynident.report.fit import OUTPUTS
    from dynident.study.run import run_study
    from dynident.study.study import list_input_files
    from dynident.study.written import render_study

    chosen = choose_study(study, robot, log, told, validate, floating, contact)
    chosen = override_study(
        chosen,
        friction=friction,
        bandwidth=bandwidth,
        locked=parse_locked_joints(locked),
        identify={"method": method, **options},
    )
    from dynident.cli.progress import show_progress

    outputs = [] if output is None else [output / name for name in OUTPUTS]
    outputs += [] if write_study is None else [write_study]
    if outputs:
        refuse_outputs(outputs, [*list_input_files(chosen), *([] if study is None else [study])])
    with show_progress() as progress:
        with name_study_in_errors(study):
            result = run_study(chosen, progress)
        contents, notes = (
            ({}, ()) if output is None else result.render_files(output, report, anyway)
        )
        own = frozenset(OUTPUTS if output is not None else ())
        if write_study is not None:
            contents[write_study] = render_study(chosen, write_study.parent).encode()
        gone = write_files(contents, own.__contains__) if contents else ()
    from dynident.fit.json import serialise_result, to_json

    if json:
        typer.echo(to_json(serialise_result(result, output)), nl=False)
    else:
        typer.echo(result.summary(full=full))
    for note in (*notes, *(f"removed {path} of an earlier result" for path in gone)):
        typer.echo(f"note: {note}", err=True)
    for place in (output, write_study):
        if place is not None:
            typer.echo(f"written to {place}", err=True)
    if strict and result.verdict.state == "refuted":
        raise typer.Exit(1)


def choose_study(
    study: Path | None,
    robot: Path | None,
    log: list[str] | None,
    told: LogFlags,
    validate: list[str] | None = None,
    floating: bool = False,
    contact: Sequence[str] | None = None,
) -> Study:
    """The study, or that of --robot and --log."""
    from dynident.study.study import read_study

    if study is not None:
        if robot is not None or log or validate or floating or contact:
            raise InputError(
                "give either a study, or --robot and --log (and --validate, --floating, --contact)"
            )
        told.refuse_beside(f"{study} has logs of its own")
        return told.prepared(read_study(study))
    if robot is None or not log:
        raise InputError("give a study, or --robot FILE and --log FILE; see --help")
    held_out = validate or []
    built = build_study_from_flags(robot, log, held_out, told.keys, floating, contact or ())
    return told.prepared(built)


def build_study_from_flags(
    robot: Path,
    logs: list[str],
    held_out: list[str],
    keys: dict[str, object],
    floating: bool = False,
    contacts: Sequence[str] = (),
) -> Study:
    """A study from --robot, --log, --validate and their like."""
    from dynident.core.schema import validate_data
    from dynident.robot.contacts import parse_contacts

    sections = [
        {"files": text.split(","), "use": use, **keys}
        for texts, use in ((logs, "identify"), (held_out, "validate"))
        for text in texts
    ]
    given = {
        "robot": {"file": str(robot), "floating": floating},
        "log": sections,
        "contact": [each.model_dump() for each in parse_contacts(contacts)],
    }
    return validate_data(Study, given, "command line")


def override_study(
    study: Study,
    *,
    friction: str | None,
    bandwidth: float | None,
    locked: dict[str, float] | None,
    identify: dict[str, object],
) -> Study:
    """The study with what the command line says instead."""
    from dynident.core.schema import validate_data
    from dynident.study.study import IdentifySection, PrepareSection, RobotSection

    def section(kind: type[Any], now: Any, changes: dict[str, object]) -> Any:
        given = {key: value for key, value in changes.items() if value is not None}
        return validate_data(kind, {**now.model_dump(), **given}, "command line") if given else now

    joints = None if locked is None else {**study.robot.locked, **locked}
    return study.model_copy(
        update={
            "robot": section(RobotSection, study.robot, {"friction": friction, "locked": joints}),
            "prepare": section(PrepareSection, study.prepare, {"bandwidth": bandwidth}),
            "identify": section(IdentifySection, study.identify, identify),
        }
    )
