"""The command line: parse, call, print. Results go to stdout, all else to stderr."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Callable
from functools import cache

import typer
from typer.main import get_command
from typer.models import CommandInfo

# the order of these imports is the order of the commands in --help
from dynident.cli import identify, compare, doctor, select, excite, base, result  # isort: skip
from dynident.cli import payload, repair, replay, sample, simulate, track  # isort: skip
from dynident.cli.options import app, name_flag
from dynident.core.errors import ComputationError, InputError
from dynident.core.text import format_one_line

__all__ = [
    "Notes",
    "base",
    "compare",
    "complain",
    "doctor",
    "excite",
    "fill_streams",
    "identify",
    "main",
    "payload",
    "repair",
    "replay",
    "result",
    "run",
    "sample",
    "select",
    "simulate",
    "track",
]

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
    logging.getLogger("dynident").addHandler(Notes(logging.WARNING))
    # where matplotlib keeps its fonts is of no interest, and without a home it says so at length
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    code = run(argv)
    if code == UNREAD:  # what is left in the buffer has nowhere to go either
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


class Notes(logging.Handler):
    """What the library logs, as notes on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        typer.echo(f"note: {format_one_line(record.getMessage())}", err=True)


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


@cache
def build_parser(commands: tuple[CommandInfo, ...]) -> Callable[..., object]:
    """What parses and calls; it is made once for the commands that there are."""
    return get_command(app)


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
        parse = build_parser(tuple(app.registered_commands))
        code = parse(args=given, prog_name="dynident", standalone_mode=False)
    except InputError as error:
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
    said = error.format_message().rstrip(".")
    if not isinstance(error, typer.BadParameter) or error.__cause__ is None:
        return said
    from pydantic import ValidationError  # a tenth of a second that --help does not need

    from dynident.core.schema import describe_value_errors

    if error.param is None or not isinstance(error.__cause__, ValidationError):
        return said
    return f"{error.param.opts[-1]} {describe_value_errors(error.__cause__.errors())}"


def complain(reason: object, code: int) -> int:
    """One line on stderr; where that cannot be written, the exit code has to do."""
    with contextlib.suppress(OSError):
        typer.echo(f"error: {format_one_line(reason)}", err=True)
    return code
