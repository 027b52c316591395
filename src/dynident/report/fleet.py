"""A fleet: the type, how its robots differ, which to inspect first; as text, page and data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dynident.core.text import format_count
from dynident.core.words import WIDTH, format_entry, format_number, format_percent, format_table
from dynident.plots.charts import BLUE, PALE, RED, Chart, Curve, Dots, Panel
from dynident.plots.document import (
    PagePart,
    PageRow,
    PageTable,
    VerdictSentence,
    render_caption,
    render_document,
    render_table,
)
from dynident.plots.page import render_chart
from dynident.report.fit import Fit

SCHEMA = "dynident.fleet/1"
LEGEND = (
    "own %: torque error of the fitted rows under the robot's own parameters; type %: under the "
    "type's."
)


@dataclass(frozen=True)
class FrictionCourse:
    """Friction of a joint, as a share of that of all sessions, or its offset, over the sessions.

    Attributes
    ----------
    what : str
    unit : {"%", "Nm"}
        In which it is told; shares are of one all the same.
    kind : {"", "drift", "shift", "outlier"}
        Whether it drifts, is another from a session on, or in one session alone; empty for none.
    session : str
        From which on, or which.
    share : float
        Probability of this kind, given that there is any.
    size, error : float
        Of a shift or an outlier; else from the first to the last session; with its standard error.
    chance : float
        Of as much in a robot without any.
    walk : float
        Standard deviation of a random walk from the first to the last session, by restricted
        maximum likelihood; 0 for none.
    scatter : float
        Of a session about the line, a standard deviation.
    values, errors : tuple of float
        Of each session, and what its log leaves open: a standard error.
    line, band : tuple of float
        What it is without the scatter of sessions, and standard errors of that.
    """

    what: str
    unit: str
    kind: str
    session: str
    share: float
    size: float
    error: float
    chance: float
    walk: float
    scatter: float
    values: tuple[float, ...]
    errors: tuple[float, ...]
    line: tuple[float, ...]
    band: tuple[float, ...]


@dataclass(frozen=True)
class FleetRobot:
    """What is said of one robot.

    Attributes
    ----------
    own_percent, type_percent : float
        Torque error of its rows under its own parameters and under the type's [%].
    odd : str
        In what it differs from the others; empty for a robot that belongs.
    courses : tuple of FrictionCourse
        Friction of each joint and its offset over the sessions.
    findings : tuple of str
        What the doctor found in its logs.
    deviations, errors : tuple of float
        Of its drives' parameters from the type's, and their standard errors.
    times : tuple of float
        Of its sessions.
    """

    name: str
    sessions: int
    rows: int
    own_percent: float
    type_percent: float
    odd: str
    courses: tuple[FrictionCourse, ...]
    findings: tuple[str, ...]
    deviations: tuple[float, ...]
    errors: tuple[float, ...]
    times: tuple[float, ...]

    @property
    def changes(self) -> tuple[FrictionCourse, ...]:
        """What drifts or changed, the clearest first."""
        changed = [course for course in self.courses if course.kind]
        return tuple(sorted(changed, key=lambda each: -abs(each.size) / each.error))

    @property
    def words(self) -> str:
        """What is to be inspected; empty for nothing."""
        return "; ".join(
            filter(None, (self.odd, *map(describe_change, self.changes), *self.findings))
        )


@dataclass(frozen=True)
class DriveSpread:
    """A drive's parameter over the fleet.

    Attributes
    ----------
    mean : float or None
        Of the robots that belong; None where it is regrouped with a link's.
    spread, session : float
        Standard deviation of theirs, and from session to session of one; 0 where nothing tells it.
    """

    name: str
    mean: float | None
    spread: float
    session: float


@dataclass(frozen=True)
class Fleet:
    """Robots of one type.

    Attributes
    ----------
    fit : Fit
        The type: links that all share, and the mean of the drives.
    robots : tuple of FleetRobot
    drives : tuple of DriveSpread
    clock : {"week", "session"}
        In what times of sessions are.
    left, tools : tuple of str
        Logs that do not count, with the reasons; by what the tools of sites differ.
    """

    fit: Fit
    robots: tuple[FleetRobot, ...]
    drives: tuple[DriveSpread, ...]
    clock: str
    left: tuple[str, ...]
    tools: tuple[str, ...] = ()

    @property
    def inspected(self) -> tuple[FleetRobot, ...]:
        """Robots of which there is something to say: those that do not belong, clearest changes."""
        named = [robot for robot in self.robots if robot.words]
        return tuple(sorted(named, key=order_inspected))

    def summary(self) -> str:
        """Plain text of at most 80 columns."""
        return "\n".join(list_summary_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, schema ``dynident.fleet/1``; the type is a result of its own."""
        return {
            "schema": SCHEMA,
            "robots": [asdict(robot) for robot in self.robots],
            "drives": [asdict(drive) for drive in self.drives],
            "clock": self.clock,
            "left_out": list(self.left),
            "tools": list(self.tools),
            "verdict": self.fit.verdict.state,
        }

    def render(self) -> str:
        """A page that needs nothing else."""
        return render_fleet_page(self)


def order_inspected(robot: FleetRobot) -> tuple[bool, float]:
    """What is to be looked at first."""
    clearest = max((abs(each.size) / each.error for each in robot.changes), default=0.0)
    return not robot.odd, -clearest


def describe_change(course: FrictionCourse) -> str:
    """A change in words."""
    scale = 100.0 if course.unit == "%" else 1.0
    digits = 1 if course.unit == "%" else 3
    ends = {"drift": "from first to last", "shift": "from {} on", "outlier": "in {} alone"}
    size = f"{scale * course.size:+.{digits}f} ± {1.96 * scale * course.error:.{digits}f}"
    return (
        f"{course.what} {size} {course.unit} {ends[course.kind].format(course.session)}"
        f" ({course.kind})"
    )


def list_summary_lines(fleet: Fleet) -> Iterator[str]:
    """The text, line by line: what to inspect last, above the verdict."""
    belonging = sum(not robot.odd for robot in fleet.robots)
    sessions = sum(robot.sessions for robot in fleet.robots)
    words = (
        f"{format_count(len(fleet.robots), 'robot')} of type {fleet.fit.robot.name}, "
        f"{format_count(sessions, 'log')}; {belonging} belong to it"
    )
    yield from format_entry("fleet", words)
    yield ""
    yield from format_table("drive", *list_drive_columns(fleet))
    yield ""
    yield from format_table("robot", *list_robot_columns(fleet))
    yield from textwrap.wrap(LEGEND, WIDTH)
    yield ""
    inspected = [f"{robot.name}: {robot.words}" for robot in fleet.inspected]
    inspected = inspected or ["no robot: all belong, and none changes"]
    for label, told in (("left out", fleet.left), ("site", fleet.tools), ("inspect", inspected)):
        for each in told:
            yield from format_entry(label, each)
    yield from format_entry("verdict", f"of the type: {fleet.fit.verdict.words}")


def list_drive_columns(fleet: Fleet) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Names, and columns that the text and the page share."""
    drives = fleet.drives
    return [drive.name for drive in drives], [
        ("mean", ["-" if d.mean is None else format_number(d.mean, 3) for d in drives]),
        ("spread", [format_number(drive.spread, 2) for drive in drives]),
        ("%", [format_share(drive.spread, drive.mean) for drive in drives]),
        ("session %", [format_share(drive.session, drive.mean) for drive in drives]),
    ]


def format_share(spread: float, mean: float | None) -> str:
    """A spread in per cent of the mean, where that is larger."""
    return f"{100.0 * spread / abs(mean):.2g}" if mean and 0.0 < spread < abs(mean) else "-"


def list_robot_columns(fleet: Fleet) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Names, and columns that the text and the page share."""
    robots = fleet.robots
    return [robot.name for robot in robots], [
        ("logs", [str(robot.sessions) for robot in robots]),
        ("rows", [str(robot.rows) for robot in robots]),
        ("own %", [format_percent(robot.own_percent) for robot in robots]),
        ("type %", [format_percent(robot.type_percent) for robot in robots]),
        ("inspect", [mark(robot) for robot in robots]),
    ]


def mark(robot: FleetRobot) -> str:
    """Why a robot is to be inspected, in a word."""
    return "odd" if robot.odd else "changed" if robot.changes else "log" if robot.findings else ""


def render_fleet_page(fleet: Fleet) -> str:
    """The fleet as a self-contained page."""
    drives, robots = list_drive_columns(fleet), list_robot_columns(fleet)
    own = render_table(build_fleet_table("robot", *robots), LEGEND)
    inspected = [
        VerdictSentence("bad" if robot.odd else "note", robot.name, robot.words)
        for robot in fleet.inspected
    ]
    none = VerdictSentence("good", "No robot", "is to be inspected: all belong, and none changes")
    said = [*(f"Left out: {words}" for words in fleet.left), *fleet.tools]
    left = "".join(map(render_caption, said))
    friction = (
        "Lines, a robot each, by the sessions without their scatter, beside what all sessions of "
        "the robot tell. Red: a change, its sessions as dots and its band of 95 % dashed; blue: a "
        "robot that does not belong."
    )
    spread = (
        "Mean and spread, a standard deviation, of the robots that belong; and the spread of one "
        "robot from session to session."
    )
    return render_document(
        fleet.fit.robot.name,
        f"a fleet of {format_count(len(fleet.robots), 'robot')}",
        inspected or [none],
        [
            PagePart("robots", "Robots", own + left),
            *(
                PagePart(name, title, render_caption(friction) + render_chart(chart, title))
                for name, title, chart in list_courses(fleet)
            ),
            PagePart("drives", "Drives", render_table(build_fleet_table("drive", *drives), spread)),
        ],
        f"Verdict of the type: {fleet.fit.verdict.words}.",
    )


def build_fleet_table(
    stub: str, names: list[str], columns: list[tuple[str, list[str]]]
) -> PageTable:
    """Columns as a table of the page."""
    rows = zip(names, *(cells for _, cells in columns), strict=True)
    return PageTable(
        (stub, *(name for name, _ in columns)),
        tuple(PageRow(cells) for cells in rows),
        ("inspect",),
    )


def list_courses(fleet: Fleet) -> Iterator[tuple[str, str, Chart]]:
    """Friction and offsets over the sessions: name, title, and a panel a joint."""
    robots = [robot for robot in fleet.robots if robot.courses]
    robots.sort(key=lambda each: bool(each.changes))
    for name, title, unit, scale in (
        ("sessions", "Friction over the sessions", "%", 100.0),
        ("offsets", "Offsets over the sessions", "Nm", 1.0),
    ):
        panels = []
        for k, course in enumerate(robots[0].courses if robots else ()):
            if course.unit == unit:
                each = [mark for robot in robots for mark in draw_course(robot, k, scale)]
                panels.append(Panel((*each,), course.what, fleet.clock, f"[{unit}]", flush=True))
        if panels:
            yield name, title, Chart(tuple(panels), columns=2, shared=True)


def draw_course(robot: FleetRobot, number: int, scale: float) -> Iterator[Curve | Dots]:
    """The line of one robot; with its band and sessions where it changes."""
    course, times = robot.courses[number], np.array(robot.times)
    line, band = scale * np.array(course.line), scale * 1.96 * np.array(course.band)
    if not course.kind:
        yield Curve(times, line, BLUE if robot.odd else PALE)
        return
    for edge in (line - band, line + band):
        yield Curve(times, edge, RED, dashed=True)
    yield Curve(times, line, RED, 2.0, label=robot.name)
    yield Dots(times, scale * np.array(course.values), RED)
