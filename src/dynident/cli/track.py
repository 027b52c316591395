"""``dynident track``: parameters while the robot moves, from a log, a growing file or a pipe."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynident.cli.help import PORT
from dynident.cli.options import (
    FrictionOption,
    LogFlags,
    PageOption,
    RobotOption,
    add_flags,
    add_log_flags,
    override_section,
)
from dynident.cli.output import say, write_page
from dynident.cli.studies import BandwidthOption, couple, override_study
from dynident.core.errors import InputError, name_study_in_errors
from dynident.study.study import TRACKING

if TYPE_CHECKING:
    from dynident.report.fit import Fit
    from dynident.study.study import LogSection, Study

PIPE = "-"
WAIT = 0.1
"""Between two looks whether a page that stays was asked to go [s]."""


@add_flags(TRACKING, "track")
@add_log_flags
def track(
    source: Annotated[
        str,
        typer.Argument(metavar="STUDY|LOG|-", help="A study, a log, or - for standard input."),
    ],
    study: Annotated[
        Path | None,
        typer.Option("--study", help="Study that gives the robot and settings of a log or stream."),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option("--start", help="A result.json to start from, with its robot and settings."),
    ] = None,
    robot: RobotOption = None,
    friction: FrictionOption = None,
    bandwidth: BandwidthOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for more at the end of the log.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", help="Resume from this state file if it exists; written at the end."
        ),
    ] = None,
    page: PageOption = None,
    json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV.")] = False,
    signals: Annotated[
        bool,
        typer.Option("--signals", help="With --json, one line per sample: torques, load, drift."),
    ] = False,
    mcap: Annotated[
        Path | None,
        typer.Option("--mcap", help="MCAP file of all estimates, written while it runs."),
    ] = None,
    rrd: Annotated[
        Path | None,
        typer.Option("--rrd", help="Recording of all estimates for rerun, complete when it ends."),
    ] = None,
    live: Annotated[
        int | None,
        typer.Option(
            "--live",
            metavar="[PORT]",
            min=0,
            max=65535,
            help=f"Serve a page on localhost; port {PORT} by default, 0 for any.",
        ),
    ] = None,
    *,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Follow a robot's parameters and load; estimates go to stdout as they come."""
    from dynident.core.files import refuse_outputs
    from dynident.report.text import format_trust
    from dynident.study.fits import list_fit_inputs
    from dynident.study.recognise import recognise
    from dynident.study.study import list_input_files
    from dynident.study.track import build_track_setting
    from dynident.study.track import track_log as run
    from dynident.study.tracked import render_messages

    if signals and not json:
        raise InputError("--signals are lines of JSON: give --json, too")
    own = source.endswith(".toml")
    if start is not None and friction is not None:
        raise InputError("--start already sets the friction model; leave --friction out")
    chosen, result, place = choose_settings(Path(source) if own else study, start, robot, own)
    if own:
        told.refuse_beside(f"{source} has logs of its own")
    chosen = override_study(told.prepared(chosen), friction, bandwidth)
    chosen = override_section(chosen, "track", options)
    log = [] if own or source == PIPE else source.split(",")
    section = choose_log_section(chosen, log, told)
    if robot is not None and log and section is not None:
        chosen, recognised = recognise(chosen.model_copy(update={"log": (section,)}))
        section = chosen.log[0]
        say("note", map(": ".join, recognised))
    elif robot is not None:
        if "preset" in told.keys:
            raise InputError(
                "--preset: what a stream's recorder measures is not known before it comes; give "
                "--study or --start instead of --robot"
            )
        chosen, coupled = couple(chosen)
        say("note", coupled)
    if outputs := [each for each in (state, mcap, rrd, page) if each is not None]:
        inputs = [each for each in (place, start) if each is not None]
        known = list_input_files(chosen) if result is None else list_fit_inputs(result)
        refuse_outputs(outputs, [*inputs, *log, *known])
    with name_study_in_errors(place):
        tracked = build_track_setting(chosen, section, result)
    head = "" if result is None else format_trust(result)
    kept: list[Any] | None = None if page is None else []
    with (
        catch_stop_signals() as stopped,
        name_study_in_errors(place),
        tracked.open_outlets(
            sys.stdout, lambda words: say("note", [words]), json, signals, mcap, rrd, live
        ) as outlets,
    ):
        if outlets.address:
            typer.echo(f"page at {outlets.address}", err=True)
        follower = run(
            tracked,
            make_teller(outlets.write, head, kept),
            stream=sys.stdin.buffer if source == PIPE else None,
            follow=follow,
            rate=told.keys.get("rate"),
            state=state,
            signals=outlets.signals,
            stopped=stopped,
            warn=lambda words: say("warning", words),
        )
        early = stopped()
        write_page(page, lambda: render_messages(source, kept or ()))
        outlets.end()
        if outlets.address and not early:
            keep_page_until(stopped)
    say_end(follower.taken if early else None, state)


def make_teller(
    write: Callable[[Any], None], head: str, kept: list[Any] | None
) -> Callable[[Any], None]:
    """Writes messages, after the head where there is one, and keeps them where there is a list."""
    first = True

    def tell(message: Any) -> None:
        nonlocal first
        if first and head:
            typer.echo(head, err=True)
        first = False
        write(message)
        if kept is not None:
            kept.append(message)

    return tell


def say_end(stopped: int | None, state: Path | None) -> None:
    """After how many samples it was stopped, if it was, and where the state is; exits with 130.

    A stop is an interruption only where no state was asked for from which to go on.
    """
    if stopped is not None:
        typer.echo(f"stopped after {stopped} samples", err=True)
        if state is None:
            raise typer.Exit(130)
    if state is not None:
        typer.echo(f"state written to {state}", err=True)


def choose_log_section(chosen: Study, log: Sequence[str], told: LogFlags) -> LogSection | None:
    """The table of a log: of its files, or of what a study has, under what flags say of it."""
    section = chosen.log[0] if chosen.log else None
    if log:
        return told.locate_log(chosen, log)
    if told.keys:  # a stream has no files, but columns and units
        return told.locate_log(chosen, [PIPE] if section is None else section.files)
    return section


def keep_page_until(stopped: Callable[[], bool]) -> None:
    """Wait, after the stream has ended, until the page is asked to go."""
    typer.echo("the stream has ended; the page stays until Ctrl-C", err=True)
    while not stopped():
        time.sleep(WAIT)


def choose_settings(
    study: Path | None, start: Path | None, robot: Path | None, own: bool
) -> tuple[Study, Fit | None, Path | None]:
    """The study whose settings count, the result to start from, and the study's place."""
    from dynident.core.schema import validate_data
    from dynident.study.fits import read_result
    from dynident.study.study import Study, read_study
    from dynident.study.tracked import find_followed_study

    if sum(each is not None for each in (study, robot)) > 1 or (robot is not None and start):
        raise InputError("give one of a study, --start and --robot")
    result = None if start is None else read_result(start)
    if study is not None:
        return read_study(study, use="identify" if own else None), result, study
    if result is not None:
        return find_followed_study(result), result, None
    if robot is None:
        raise InputError(
            "give a study, or with a log --study, --start or --robot; see dynident track --help"
        )
    plain = validate_data(Study, {"robot": {"file": str(robot)}}, "command line")
    return plain, None, None


@contextmanager
def catch_stop_signals() -> Iterator[Callable[[], bool]]:
    """Whether SIGINT or SIGTERM came; they end nothing in between."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    kept = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for each, before in kept.items():
            signal.signal(each, before)
