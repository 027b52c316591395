"""``dynident track``: parameters while the robot moves, from a log, a growing file or a pipe."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynident.cli.options import (
    FrictionOption,
    LogFlags,
    PageOption,
    RobotOption,
    add_flags,
    add_log_flags,
    override_section,
)
from dynident.cli.output import print_json, write_page
from dynident.cli.studies import BandwidthOption, override_study
from dynident.core.errors import InputError, name_study_in_errors
from dynident.study.study import TRACKING

if TYPE_CHECKING:
    from dynident.report.fit import Fit
    from dynident.study.study import Study
    from dynident.study.track import Noticed, Row

PIPE = "-"


@add_flags(TRACKING, "track")
@add_log_flags
def track(
    source: Annotated[
        str,
        typer.Argument(metavar="STUDY|LOG|-", help="A study, a log, or - for standard input."),
    ],
    study: Annotated[
        Path | None, typer.Option("--study", help="Whose robot and settings a log or stream has.")
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
        typer.Option("--state", help="Go on from this file, where it exists; written at the end."),
    ] = None,
    page: PageOption = None,
    json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV.")] = False,
    *,
    told: LogFlags,
    options: dict[str, Any],
) -> None:
    """Follow a robot's parameters and load; estimates go to stdout as they come."""
    from dynident.core.files import refuse_outputs
    from dynident.report.text import format_trust
    from dynident.study.fits import list_fit_inputs
    from dynident.study.study import list_input_files
    from dynident.study.track import Noticed, build_track_setting
    from dynident.study.track import track_log as run

    own = source.endswith(".toml")
    chosen, result, place = choose_settings(Path(source) if own else study, start, robot, own)
    if own:
        told.refuse_beside(f"{source} has logs of its own")
    chosen = override_study(told.prepared(chosen), friction, bandwidth)
    chosen = override_section(chosen, "track", options)
    section = chosen.log[0] if chosen.log else None
    if source != PIPE and not own:
        section = told.locate_log(chosen, source.split(","))
    elif told.keys:  # a stream has no files, but columns and units
        section = told.locate_log(chosen, [PIPE] if section is None else section.files)
    if state is not None or page is not None:
        inputs = [each for each in (place, start) if each is not None]
        log = [] if own or source == PIPE else source.split(",")
        known = list_input_files(chosen) if result is None else list_fit_inputs(result)
        outputs = [each for each in (state, page) if each is not None]
        refuse_outputs(outputs, [*inputs, *log, *known])
    with name_study_in_errors(place):
        tracked = build_track_setting(chosen, section, result)
    write = make_writer(json)
    head = [] if result is None else [format_trust(result)]
    kept: list[Row | Noticed] = []

    def tell(each: Row | Noticed) -> None:
        while head:
            typer.echo(head.pop(), err=True)
        write(each)
        sys.stdout.flush()
        if page is not None:
            kept.append(each)
        if isinstance(each, Noticed) and not json:
            typer.echo(f"note: {describe_event(each)}", err=True)

    with catch_stop_signals() as stopped, name_study_in_errors(place):
        follower = run(
            tracked,
            None,
            tell,
            stream=sys.stdin.buffer if source == PIPE else None,
            follow=follow,
            rate=told.keys.get("rate"),
            state=state,
            stopped=stopped,
        )
    write_page(page, lambda: render_track(source, kept))
    if stopped():
        typer.echo(f"stopped after {follower.taken} samples", err=True)
        if state is None:
            raise typer.Exit(130)
    if state is not None:
        typer.echo(f"state written to {state}", err=True)


def render_track(log: str, kept: Sequence[Row | Noticed]) -> str:
    """Estimates over time as a page."""
    from dynident.core.errors import ComputationError
    from dynident.report.pages import render_track_page
    from dynident.study.track import Noticed, Row
    from dynident.study.tracked import Followed

    rows = [each for each in kept if isinstance(each, Row)]
    if not rows:
        raise ComputationError(f"{log}: there is no estimate to draw")
    found = Followed(log, rows[0].base, tuple(rows), ())
    events = [(each.time, describe_event(each)) for each in kept if isinstance(each, Noticed)]
    return render_track_page(
        found.base.idim.robot.name,
        log,
        found.base.names,
        found.time,
        found.beta,
        found.std,
        found.load,
        events,
    )


def choose_settings(
    study: Path | None, start: Path | None, robot: Path | None, own: bool
) -> tuple[Study, Fit | None, Path | None]:
    """The study whose settings count, the result to start from, and the study's place."""
    from dynident.core.schema import validate_data
    from dynident.study.fits import find_study, read_result
    from dynident.study.study import RobotSection, Study, read_study

    if sum(each is not None for each in (study, robot)) > 1 or (robot is not None and start):
        raise InputError("give one of a study, --start and --robot")
    result = None if start is None else read_result(start)
    if study is not None:
        return read_study(study, use="identify" if own else None), result, study
    if result is not None:
        known = find_study(result) or Study(robot=RobotSection(file=result.robot.name))
        return known, result, None
    if robot is None:
        raise InputError(
            "give a study, or with a log --study, --start or --robot; see dynident track --help"
        )
    plain = validate_data(Study, {"robot": {"file": str(robot)}}, "command line")
    return plain, None, None


def make_writer(json: bool) -> Callable[[Row | Noticed], None]:
    """Writes estimates to stdout."""
    from dynident.study.track import Noticed, Row

    begun = False

    def table(each: Row | Noticed) -> None:
        nonlocal begun
        if isinstance(each, Noticed):
            return
        if not begun:
            names = each.base.names
            head = [*names, *(f"std_{name}" for name in names)]
            theta = () if each.theta is None else each.base.idim.names
            head += [*(f"consistent_{name}" for name in theta), "load", "std_load"]
            sys.stdout.write(",".join(["time", "samples", *head]) + "\n")
            begun = True
        load = ("", "") if each.load is None else each.load
        cells = [each.time, each.samples, *each.beta, *each.std]
        cells += [*(() if each.theta is None else each.theta), *load]
        shown = (c if isinstance(c, str) else f"{c:.9g}" for c in cells)
        sys.stdout.write(",".join(shown) + "\n")

    def lines(each: Row | Noticed) -> None:
        if isinstance(each, Noticed):
            found: dict[str, object] = {
                "time": each.time,
                "event": each.event.kind,
                "statistic": each.event.statistic,
                "threshold": each.event.threshold,
            }
        else:
            assert isinstance(each, Row)
            names = each.base.names
            found = {
                "time": each.time,
                "samples": each.samples,
                "beta": dict(zip(names, each.beta.tolist(), strict=True)),
                "std": dict(zip(names, each.std.tolist(), strict=True)),
                "load": None
                if each.load is None
                else dict(zip(("mass", "std"), each.load, strict=True)),
            }
            if each.theta is not None:
                found["consistent"] = dict(
                    zip(each.base.idim.names, each.theta.tolist(), strict=True)
                )
        print_json(found, indent=None)

    return lines if json else table


def describe_event(noticed: Noticed) -> str:
    """An event as a note."""
    event = noticed.event
    what = {
        "load": "another load than before",
        "released": "no load besides the model's any more",
    }[event.kind]
    return (
        f"{noticed.time:.3f} s: {what} (squared innovations {event.statistic:.0f}, "
        f"expected below {event.threshold:.0f})"
    )


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
