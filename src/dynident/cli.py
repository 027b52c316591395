"""The command line: parse, call, print. Results go to stdout, all else to stderr."""

from __future__ import annotations

import io
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynident import __version__
from dynident.errors import ComputationError, InputError

if TYPE_CHECKING:
    from dynident.identification import Identification
    from dynident.study import Study

app = typer.Typer(
    name="dynident",
    help="From a robot model and a motion log to a physically consistent dynamic model.",
    epilog="Example: dynident identify examples/tx40/study.toml -o out/tx40",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
)


def positive(value: float | None) -> float | None:
    """Refuse a number that is not finite or not positive."""
    if value is not None and not 0.0 < value < math.inf:
        raise typer.BadParameter(f"{value:g} is not a positive number.")
    return value


JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
LowpassOption = Annotated[
    float | None,
    typer.Option("--lowpass", callback=positive, help="Low-pass of the all-samples errors [Hz]."),
]
FrictionOption = Annotated[
    str | None,
    typer.Option(
        "--friction",
        help="none, viscous, viscous-offset, coulomb-viscous (default), "
        "coulomb-viscous-symmetric or coulomb-viscous-asymmetric.",
    ),
]


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"dynident {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="And leave.")
    ] = False,
) -> None:
    """From a robot model and a motion log to a physically consistent dynamic model."""


@app.command(
    epilog="Example: dynident identify --robot arm.urdf --log run1.csv --validate run2.csv "
    "--bandwidth 5 -o out"
)
def identify(
    study: Annotated[
        Path | None, typer.Argument(metavar="[STUDY.toml]", show_default=False)
    ] = None,
    robot: Annotated[
        Path | None, typer.Option("--robot", help="URDF or robot TOML, instead of a study.")
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option("--log", help="A log to fit; repeat for several, a,b for side by side."),
    ] = None,
    validate: Annotated[
        list[str] | None, typer.Option("--validate", help="A log held out; repeatable.")
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", help="pc-idim-ls (default), ols, wls or irls.")
    ] = None,
    friction: FrictionOption = None,
    prior: Annotated[
        str | None,
        typer.Option("--prior", help="nominal (default where the file has inertials) or none."),
    ] = None,
    essential: Annotated[
        str | None,
        typer.Option("--essential", help="ols, wls: eliminate by ratio, f-test or torque-range."),
    ] = None,
    bandwidth: Annotated[
        float | None,
        typer.Option(
            "--bandwidth", callback=positive, help="Joint bandwidth [Hz]; 10 if not given."
        ),
    ] = None,
    lowpass: LowpassOption = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", callback=positive, help="Sample rate of logs without time [Hz]."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Directory of result.json, model.urdf, report.html."),
    ] = None,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html.")] = True,
    full: Annotated[bool, typer.Option("--full", help="Print all base parameters.")] = False,
    json: JsonFlag = False,
) -> None:
    """Identify a robot from logs and measure the result on held-out ones."""
    from dynident.facade import run_study
    from dynident.study import read_study

    if study is not None:
        if robot is not None or log or validate or rate is not None:
            raise InputError("give either a study, or --robot and --log (and --validate, --rate)")
        chosen = read_study(study)
    else:
        if robot is None or not log:
            raise InputError("give a study, or --robot FILE and --log FILE; see identify --help")
        chosen = flag_study(robot, log, validate or [], rate)
    chosen = overridden(
        chosen,
        method=method,
        friction=friction,
        prior=prior,
        essential=essential,
        bandwidth=bandwidth,
        lowpass=lowpass,
    )
    from dynident.progress import progress_on_stderr

    if output is not None:
        refuse_output(output, chosen, study)
    with progress_on_stderr() as progress:
        result = run_study(chosen, progress)
        notes = write_output(result, output, report) if output is not None else ()
    from dynident.export.result import result_dict, to_json

    if json:
        typer.echo(to_json(result_dict(result)), nl=False)
    else:
        typer.echo(result.summary(full=full))
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if output is not None:
        typer.echo(f"written to {output}", err=True)


def flag_study(robot: Path, logs: list[str], held_out: list[str], rate: float | None) -> Study:
    """A study from --robot, --log and --validate."""
    from dynident.robot.spec import validated
    from dynident.study import Study

    sections = [
        {"files": text.split(","), "use": use, **({} if rate is None else {"rate": rate})}
        for texts, use in ((logs, "identify"), (held_out, "validate"))
        for text in texts
    ]
    return validated(Study, {"robot": {"file": str(robot)}, "log": sections}, "command line")


def overridden(
    study: Study,
    *,
    method: str | None,
    friction: str | None,
    prior: str | None,
    essential: str | None,
    bandwidth: float | None,
    lowpass: float | None,
) -> Study:
    """The study with what the command line says instead."""
    from dynident.robot.spec import validated
    from dynident.study import IdentifySection, PrepareSection, RobotSection

    def section(kind: type[Any], now: Any, **changes: Any) -> Any:
        given = {key: value for key, value in changes.items() if value is not None}
        return validated(kind, {**now.model_dump(), **given}, "command line") if given else now

    return study.model_copy(
        update={
            "robot": section(RobotSection, study.robot, friction=friction),
            "prepare": section(PrepareSection, study.prepare, bandwidth=bandwidth),
            "identify": section(
                IdentifySection,
                study.identify,
                method=method,
                prior=prior,
                essential=essential,
                lowpass_hz=lowpass,
            ),
        }
    )


INTERRUPTED = 130
OUTPUTS = ("result.json", "model.urdf", "report.html")
"""All that ``-o DIR`` may receive."""


def refuse_output(directory: Path, chosen: Study, study: Path | None) -> None:
    """Refuse a directory that cannot be written, or where inputs would be written over."""
    from dynident.files import refuse_overwriting, refuse_unwritable
    from dynident.study import listed

    refuse_unwritable(directory)
    inputs = [chosen.robot.file, *(file for log in chosen.log for file in listed(log.files))]
    refuse_overwriting(
        [directory / name for name in OUTPUTS], inputs if study is None else [*inputs, study]
    )


def write_output(result: Identification, directory: Path, report: bool) -> tuple[str, ...]:
    """Write result.json, model.urdf and report.html; returns notes on them.

    What an earlier result left there and this one has not is removed: a directory never
    holds the model of one result beside the numbers of another.
    """
    from dynident.export.result import result_dict, to_json
    from dynident.files import refuse_overwriting, write_files

    paths = [directory / name for name in OUTPUTS]
    source = result.robot.source
    refuse_overwriting(paths, () if source is None else (source,))
    earlier = paths[0].is_file()
    contents = {paths[0]: to_json(result_dict(result)).encode()}
    notes: tuple[str, ...] = ()
    if result.phi is None:
        notes = (f"{result.method} gives base parameters only, so there is no model.urdf",)
    else:
        contents[directory / "model.urdf"], notes = result.model_urdf()
    if report:
        from dynident.report.html import html_report

        page = html_report(result, result.series())
        contents[directory / "report.html"] = page.encode(errors="backslashreplace")
    write_files(contents)
    for path in paths if earlier else ():
        if path not in contents and path.is_file():
            path.unlink()
            notes = (*notes, f"removed {path} of an earlier result")
    return notes


@app.command(epilog="Example: dynident base arm.urdf --friction viscous")
def base(
    robot: Annotated[Path, typer.Argument(metavar="ROBOT", help="URDF or robot TOML.")],
    friction: FrictionOption = None,
    rotor: Annotated[
        bool | None,
        typer.Option("--rotor/--no-rotor", help="Rotor inertias; on unless friction is none."),
    ] = None,
    floating: Annotated[bool, typer.Option("--floating", help="Free-flying base.")] = False,
    json: JsonFlag = False,
) -> None:
    """Print the identifiable combinations of a robot's parameters and their count."""
    from dynident.base import base_parameters
    from dynident.export.result import to_json
    from dynident.idim import build_idim
    from dynident.robot import load_robot

    model = load_robot(robot, floating=floating)
    found = base_parameters(build_idim(model, friction or "coulomb-viscous", rotor))
    if json:
        rows = [
            {"name": name, "regrouping": text}
            for name, text in zip(found.names, found.regroupings, strict=True)
        ]
        document = {
            "schema": "dynident.base/1",
            "robot": {"name": model.name, "joints": list(model.joint_names), "dof": model.dof},
            "friction": found.idim.friction,
            "base_count": found.count,
            "rigid_body_count": found.rigid_body_count,
            "standard_count": len(found.idim.parameters),
            "parameters": rows,
            "unidentifiable": list(found.unidentifiable),
        }
        typer.echo(to_json(document), nl=False)
        return
    from dynident.report.summary import base_table

    for warning in model.warnings:
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(base_table(found))


@app.command(epilog="Example: dynident validate out/result.json run3.csv")
def validate(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="a,b for side by side.")],
    lowpass: LowpassOption = None,
    json: JsonFlag = False,
) -> None:
    """Measure a stored result on other logs, laid out as those it was made from."""
    from dynident.export.result import finite, to_json, validation_dict
    from dynident.report.summary import figures_table
    from dynident.stored import read_result, stored_figures

    stored = read_result(result)
    found = [stored_figures(stored, text.split(","), lowpass) for text in logs]
    for warning in dict.fromkeys(note for one in found for note in one.warnings):
        typer.echo(f"warning: {warning}", err=True)
    if json:
        document = {
            "schema": "dynident.validation/1",
            "validation": [validation_dict(one.figures) for one in found],
            "warnings": list(dict.fromkeys(note for one in found for note in one.warnings)),
        }
        typer.echo(to_json(finite(document)), nl=False)
        return
    for one in found:
        table = figures_table(one.figures.entries, one.figures.nominal)
        typer.echo(f"{one.figures.log}\n{table}\n")


@app.command(epilog="Example: dynident export out/result.json --urdf arm_identified.urdf")
def export(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    urdf: Annotated[Path, typer.Option("--urdf", help="The URDF to write.")],
) -> None:
    """Write a stored result as a robot model."""
    from dynident.files import refuse_overwriting, write_files
    from dynident.stored import read_result, stored_urdf

    stored = read_result(result)
    source = stored.idim.robot.source
    refuse_overwriting([urdf], (result, stored.study.robot.file, source or result))
    document, notes = stored_urdf(stored)
    write_files({urdf: document})
    for warning in stored.warnings:
        typer.echo(f"warning: {warning}", err=True)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"written to {urdf}", err=True)


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 bad input or usage, 1 failed or refused."""
    for stream in (sys.stdout, sys.stderr):
        # a name that the terminal's encoding lacks must not end a run
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # all matrices are small: threads would only wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(run(argv))


def run(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : list of str, optional
        Arguments after the program's name; those of the process by default.
    """
    given = sys.argv[1:] if argv is None else argv
    for argument in given:
        if argument.encode(errors="ignore").decode() != argument:
            return complain(f"argument {argument!r} is not UTF-8; rename the file", 2)
    try:
        code = app(args=given, prog_name="dynident", standalone_mode=False)
    except InputError as error:
        return complain(error, 2)
    except ComputationError as error:
        return complain(error, 1)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "dynident"
        return complain(f"{error.format_message().rstrip('.')}; see {command} --help", 2)
    except OSError as error:
        return complain(f"{error.filename or 'output'}: {error.strerror}", 2)
    except MemoryError:
        return complain("out of memory; use a shorter log or a larger decimation", 1)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    if code == INTERRUPTED:
        return complain("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def complain(reason: object, code: int) -> int:
    """One line on stderr."""
    text = " ".join(str(reason).split())
    typer.echo(f"error: {text}", err=True)
    return code
