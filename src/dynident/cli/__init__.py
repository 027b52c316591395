"""The command line: parse, call, print. Results go to stdout, all else to stderr."""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from dynident import __version__
from dynident.cli.help import GroupedCommand
from dynident.core.errors import ComputationError, InputError
from dynident.core.text import format_one_line


class Command(NamedTuple):
    """A command: its function has its name, and its module is imported when it is called."""

    module: str
    help: str
    example: str


COMMANDS = {
    "identify": Command(
        "dynident.cli.identify",
        "Identify a robot from logs, and test it on held-out ones.",
        "dynident identify --robot arm.urdf --log run1.csv --validate run2.csv --bandwidth 5 "
        "-o out",
    ),
    "collect": Command(
        "dynident.cli.collect",
        "Reduce logs to small files, which identify merges.",
        "dynident collect study.toml 'runs/*.csv' -o factors --workers 2",
    ),
    "fleet": Command(
        "dynident.cli.fleet",
        "Identify robots of one type together; find outliers.",
        "dynident fleet --study study.toml robot-*/ -o out/fleet",
    ),
    "compare": Command(
        "dynident.cli.compare",
        "Compare methods and friction models, and recommend.",
        "dynident compare examples/tx40/study.toml -o out/tx40-compared",
    ),
    "sweep": Command(
        "dynident.cli.sweep",
        "Identify with every combination of some values.",
        "dynident sweep study.toml --set prepare.bandwidth=1,2,5 --set identify.method=wls,irls "
        "-o swept",
    ),
    "doctor": Command(
        "dynident.cli.doctor",
        "Find what is wrong with logs: signs, units, delays.",
        "dynident doctor study.toml --fix repaired.toml",
    ),
    "init": Command(
        "dynident.cli.init",
        "Write a first study for a robot and its logs, with repairs.",
        "dynident init arm.urdf run1.csv -o study.toml",
    ),
    "select": Command(
        "dynident.cli.select",
        "Choose the most informative parts of logs from ordinary work.",
        "dynident select work.toml --fix selected.toml",
    ),
    "excite": Command(
        "dynident.cli.excite",
        "Design a trajectory that excites a robot, within limits.",
        "dynident excite panda.urdf --acceleration 10 --time 30 -o out/panda",
    ),
    "resonance": Command(
        "dynident.cli.resonance",
        "Identify a joint's stiffness by resonance, from its motor.",
        "dynident resonance study.toml --joint 2 --band 2 50 --period 2",
    ),
    "protocol": Command(
        "dynident.cli.protocol",
        "Plan what to record for each question, with predicted errors.",
        "dynident protocol arm.urdf --questions drives,payload --mass 0.5 -o out/plan",
    ),
    "base": Command(
        "dynident.cli.base",
        "Print the identifiable combinations of parameters.",
        "dynident base arm.urdf --friction viscous",
    ),
    "validate": Command(
        "dynident.cli.result",
        "Evaluate a stored result on other logs.",
        "dynident validate out/result.json run3.csv",
    ),
    "diff": Command(
        "dynident.cli.diff",
        "Compare stored results, or one with its robot file.",
        "dynident diff monday/result.json friday/result.json --log run3.csv",
    ),
    "report": Command(
        "dynident.cli.result",
        "Write the HTML report of a stored result.",
        "dynident report out/result.json -o report.html",
    ),
    "export": Command(
        "dynident.cli.export",
        "Write a stored result as a robot model, or as code.",
        "dynident export out/result.json --urdf arm.urdf --mjcf arm_identified.xml",
    ),
    "payload": Command(
        "dynident.cli.payload",
        "Identify a payload from a loaded log and a stored result.",
        "dynident payload out/result.json --log loaded.csv --frame tool0",
    ),
    "repair": Command(
        "dynident.cli.repair",
        "Find consistent inertials nearest to a robot file's.",
        "dynident repair arm.urdf --urdf arm_consistent.urdf",
    ),
    "replay": Command(
        "dynident.cli.replay",
        "Simulate a result or a robot file under a log's control law.",
        "dynident replay out/result.json run3.csv --engine mujoco",
    ),
    "sample": Command(
        "dynident.cli.sample",
        "Draw consistent models within a result's uncertainty.",
        "dynident sample out/result.json -n 256 -o draws --log run3.csv",
    ),
    "simulate": Command(
        "dynident.cli.simulate",
        "Simulate a study's robot and write the log.",
        "dynident simulate twin.toml -o run.csv",
    ),
    "zoo": Command(
        "dynident.cli.zoo",
        "List identified robots; write the model of one.",
        "dynident zoo kr300 -o out/kr300",
    ),
    "reproduce": Command(
        "dynident.cli.reproduce",
        "Repeat a paper's experiment, simulated and on a measured log.",
        "dynident reproduce brunot2019",
    ),
    "track": Command(
        "dynident.cli.track",
        "Follow a robot's parameters and load while it moves.",
        "dynident track - --start out/result.json --every 5 < stream.csv",
    ),
}
"""In the order of ``--help``."""

INTERRUPTED, UNREAD = 130, 141
"""Exit codes: of an interrupt, and, as a shell has it, where nobody reads the output any more."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit.

    0 done, 2 bad input or usage, 1 failed or refused, 130 interrupted, 141 nobody read on.
    """
    fill_streams()
    for stream in (sys.stdout, sys.stderr):
        # a name that the terminal's encoding lacks must not end a run
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # all matrices are small: threads would only wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # pydantic would search all that is installed for plug-ins
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    notes = logging.getLogger("dynident")
    notes.setLevel(logging.INFO)
    notes.addHandler(NoteHandler())
    # where matplotlib keeps its fonts is of no interest, and without a home it says so at length
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    code = run(argv)
    if code == UNREAD:  # what is left in the buffer has nowhere to go either
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


class NoteHandler(logging.Handler):
    """What the library logs, as notes on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line, in a terminal over that of the progress."""
        wipe = "\r\x1b[K" if sys.stderr.isatty() else ""
        typer.echo(f"{wipe}note: {format_one_line(record.getMessage())}", err=True)


def fill_streams() -> None:
    """Let standard streams that were closed lead nowhere.

    Not only would there be nothing to write to: the next file that is opened would get the
    stream's number, and what a library writes on stderr would end up in it.
    """
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(spare)
    # Python gives None for a stream that was closed when it started
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


class Commands(TyperGroup):
    """Knows its commands by name and line of help, and imports the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the first argument, and the arguments after it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_command(name, COMMANDS[name]), rest


def make_app(**about: Any) -> typer.Typer:
    """An application that speaks in plain text."""
    return typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **about,
    )


@cache
def load_command(name: str, command: Command) -> object:
    """What parses and calls a command."""
    alone = make_app(add_completion=False)
    function = getattr(import_module(command.module), name)
    if not gc.isenabled():
        gc.freeze()  # what was loaded stays
        gc.enable()
    alone.command(name, cls=GroupedCommand, epilog=f"Example: {command.example}")(function)
    return get_command(alone)


def show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        typer.echo(f"dynident {__version__}")
        raise typer.Exit


def accept_root_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=show_version,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """From a robot model and a motion log to a physically consistent dynamic model."""


@cache
def build_parser(commands: tuple[tuple[str, Command], ...]) -> Callable[..., object]:
    """What parses and calls; it is made once for the commands that there are."""
    app = make_app(
        name="dynident",
        cls=Commands,
        help="From a robot model and a motion log to a physically consistent dynamic model.",
        epilog="Example: dynident identify examples/tx40/study.toml -o out/tx40",
    )
    app.callback()(accept_root_options)
    for name, command in commands:
        app.command(name, short_help=command.help)(accept_root_options)
    return get_command(app)


def run(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : list of str, optional
        Arguments after the program's name; those of the process by default.
    """
    given = (sys.argv[1:] if argv is None else argv) or ["--help"]
    for argument in given:
        if argument.encode(errors="ignore").decode() != argument:
            return complain(f"argument {argument!r} is not UTF-8; rename the file", 2)
    try:
        parse = build_parser(tuple(COMMANDS.items()))
        code = parse(args=given, prog_name="dynident", standalone_mode=False)
    except InputError as error:
        from dynident.cli.options import name_flag

        return complain(name_flag(str(error)), 2)
    except ComputationError as error:
        return complain(error, 1)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "dynident"
        return complain(f"{describe_parser_error(error)}; see {command} --help", 2)
    except SystemExit as error:  # the parser's answer to a closed pipe
        if isinstance(error.__context__, BrokenPipeError):
            return UNREAD
        raise
    except BrokenPipeError:
        return UNREAD
    except OSError as error:
        return complain(f"{error.filename or 'output'}: {error.strerror}", 2)
    except MemoryError:
        return complain("out of memory; use a shorter log or a larger decimation", 1)
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    if code == INTERRUPTED:
        return complain("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def describe_parser_error(error: typer.TyperException) -> str:
    """What the parser says, with the value that it could not read."""
    said = error.format_message().rstrip(".?")
    if said.startswith("Got unexpected extra argument"):
        return said + tell_log_flags(error)
    if not isinstance(error, typer.BadParameter) or error.__cause__ is None:
        return said
    from pydantic import ValidationError  # a tenth of a second that --help does not need

    from dynident.core.schema import describe_value_errors

    if error.param is None or not isinstance(error.__cause__, ValidationError):
        return said
    return f"{error.param.opts[-1]} {describe_value_errors(error.__cause__.errors())}"


def tell_log_flags(error: typer.TyperException) -> str:
    """How a command is told of logs that stand without a flag, if it takes them at all."""
    context = getattr(error, "ctx", None)
    params = [] if context is None else context.command.params
    flags = {flag for param in params for flag in param.opts}
    if "--log" not in flags:
        return ""
    robot = " --robot FILE" if "--robot" in flags else ""
    return f"; logs are given by{robot} --log FILE"


def complain(reason: object, code: int) -> int:
    """One line on stderr; where that cannot be written, the exit code has to do."""
    with contextlib.suppress(OSError):
        typer.echo(f"error: {format_one_line(reason)}", err=True)
    return code
