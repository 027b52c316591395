"""The command line: parse, call, print. Results go to stdout, all else to stderr."""

from __future__ import annotations

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

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
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
        float | None, typer.Option("--bandwidth", help="Joint bandwidth [Hz]; 10 if not given.")
    ] = None,
    lowpass: Annotated[
        float | None, typer.Option("--lowpass", help="Low-pass of the all-samples errors [Hz].")
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Sample rate of logs without time [Hz].")
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
        if robot or log or validate or rate:
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


def write_output(result: Identification, directory: Path, report: bool) -> tuple[str, ...]:
    """Write result.json, model.urdf and report.html; returns notes on the URDF."""
    from dynident.export.result import result_dict, to_json
    from dynident.files import write_files

    contents = {directory / "result.json": to_json(result_dict(result)).encode()}
    notes: tuple[str, ...] = ()
    if result.phi is None:
        notes = (f"{result.method} gives base parameters only, so there is no model.urdf",)
    else:
        contents[directory / "model.urdf"], notes = result.model_urdf()
    if report:
        from dynident.report.html import html_report

        contents[directory / "report.html"] = html_report(result, result.series()).encode()
    write_files(contents)
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
    lowpass: Annotated[
        float | None, typer.Option("--lowpass", help="Low-pass of the all-samples errors [Hz].")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Measure a stored result on other logs, laid out as those it was made from."""
    from dynident.export.result import figure_dict, finite, to_json
    from dynident.report.summary import figures_table
    from dynident.stored import stored_figures

    found = [(text, *stored_figures(result, text.split(","), lowpass)) for text in logs]
    if json:
        document = {
            "schema": "dynident.validation/1",
            "validation": [
                {
                    "log": name,
                    "entries": [figure_dict(f) for f in entries],
                    "nominal": [figure_dict(f) for f in nominal],
                }
                for name, entries, nominal in found
            ],
        }
        typer.echo(to_json(finite(document)), nl=False)
        return
    for name, entries, nominal in found:
        typer.echo(f"{name}\n{figures_table(entries, nominal)}\n")


@app.command(epilog="Example: dynident export out/result.json --urdf arm_identified.urdf")
def export(
    result: Annotated[Path, typer.Argument(metavar="RESULT.json")],
    urdf: Annotated[Path, typer.Option("--urdf", help="The URDF to write.")],
) -> None:
    """Write a stored result as a robot model."""
    from dynident.files import write_files
    from dynident.stored import stored_urdf

    document, notes = stored_urdf(result)
    write_files({urdf: document})
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"written to {urdf}", err=True)


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 bad input or usage, 1 failed or refused."""
    sys.exit(run(argv))


def run(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : list of str, optional
        Arguments after the program's name; those of the process by default.
    """
    try:
        code = app(args=argv, prog_name="dynident", standalone_mode=False)
    except InputError as error:
        return complain(error, 2)
    except ComputationError as error:
        return complain(error, 1)
    except typer.TyperException as error:
        return complain(error.format_message(), 2)
    except (typer.Abort, KeyboardInterrupt):
        return complain("interrupted", 130)
    return code if isinstance(code, int) else 0


def complain(reason: object, code: int) -> int:
    """One line on stderr."""
    text = " ".join(str(reason).split())
    typer.echo(f"error: {text}", err=True)
    return code
