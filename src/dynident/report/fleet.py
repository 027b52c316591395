"""A fleet: the type, how its robots differ, which to inspect first; as text, page and data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dynident.core.text import format_count
from dynident.core.words import WIDTH, format_entry, format_number, format_percent, format_table
from dynident.plots.charts import BLUE, PALE, RED, Chart, Curve, Panel
from dynident.plots.page import load_page_templates, render_chart
from dynident.report.fit import Fit
from dynident.report.html import Row, Statement, Table

SCHEMA = "dynident.fleet/1"
LEGEND = (
    "own %: torque error of the fitted rows under the robot's own parameters; type %: under the "
    "type's."
)


@dataclass(frozen=True)
class Change:
    """A joint whose friction is another from some session on.

    Attributes
    ----------
    joint, session : str
        The first session after it.
    share : float
        By which friction grew.
    error : float
        Standard error of the share.
    chance : float
        Of as much in a robot without any.
    """

    joint: str
    session: str
    share: float
    error: float
    chance: float


@dataclass(frozen=True)
class FleetRobot:
    """What is said of one robot.

    Attributes
    ----------
    own_percent, type_percent : float
        Torque error of its rows under its own parameters and under the type's [%].
    odd : str
        In what it differs from the others; empty for a robot that belongs.
    changes : tuple of Change
        Joints whose friction changed from some session on.
    findings : tuple of str
        What the doctor found in its logs.
    deviations, errors : tuple of float
        Of its drives' parameters from the type's, and their standard errors.
    levels : tuple of tuple of float
        Friction of each joint in each session, over that of all its sessions.
    """

    name: str
    sessions: int
    rows: int
    own_percent: float
    type_percent: float
    odd: str
    changes: tuple[Change, ...]
    findings: tuple[str, ...]
    deviations: tuple[float, ...]
    errors: tuple[float, ...]
    levels: tuple[tuple[float, ...], ...]

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
    spread : float
        Standard deviation of theirs.
    """

    name: str
    mean: float | None
    spread: float


@dataclass(frozen=True)
class Fleet:
    """Robots of one type.

    Attributes
    ----------
    fit : Fit
        The type: links that all share, and the mean of the drives.
    robots : tuple of FleetRobot
    drives : tuple of DriveSpread
    joints : tuple of str
    scatter : tuple of float
        Of each joint's friction from session to session, as a share.
    left : tuple of str
        Logs that do not count, with the reasons.
    """

    fit: Fit
    robots: tuple[FleetRobot, ...]
    drives: tuple[DriveSpread, ...]
    joints: tuple[str, ...]
    scatter: tuple[float, ...]
    left: tuple[str, ...]

    @property
    def inspected(self) -> tuple[FleetRobot, ...]:
        """Robots of which there is something to say, those that do not belong first."""
        named = [robot for robot in self.robots if robot.words]
        return tuple(sorted(named, key=lambda robot: (not robot.odd, not robot.changes)))

    def summary(self) -> str:
        """Plain text of at most 80 columns."""
        return "\n".join(list_summary_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, schema ``dynident.fleet/1``; the type is a result of its own."""
        return {
            "schema": SCHEMA,
            "robots": [asdict(robot) for robot in self.robots],
            "drives": [asdict(drive) for drive in self.drives],
            "joints": list(self.joints),
            "scatter": list(self.scatter),
            "left_out": list(self.left),
            "verdict": self.fit.verdict.state,
        }

    def render(self) -> str:
        """A page that needs nothing else."""
        return render_fleet_page(self)


def describe_change(change: Change) -> str:
    """A change in words."""
    return (
        f"friction of {change.joint} {100.0 * change.share:+.1f} ± {196.0 * change.error:.1f} % "
        f"from {change.session} on"
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
    for each in fleet.left:
        yield from format_entry("left out", each)
    for robot in fleet.inspected:
        yield from format_entry("inspect", f"{robot.name}: {robot.words}")
    if not fleet.inspected:
        yield from format_entry("inspect", "no robot: all belong, and none changes")
    verdict = fleet.fit.verdict
    yield from format_entry("verdict", f"of the type: {verdict.words}")


def list_drive_columns(fleet: Fleet) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Names, and columns that the text and the page share."""
    drives = fleet.drives
    return [drive.name for drive in drives], [
        ("mean", ["-" if d.mean is None else format_number(d.mean, 3) for d in drives]),
        ("spread", [format_number(drive.spread, 2) for drive in drives]),
        ("%", [format_share(drive) for drive in drives]),
    ]


def format_share(drive: DriveSpread) -> str:
    """The spread in per cent of the mean, where that is larger."""
    size = abs(drive.mean or 0.0)
    return f"{100.0 * drive.spread / size:.0f}" if drive.spread < size else "-"


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
    verdict = fleet.fit.verdict
    return (
        load_page_templates("dynident.report")
        .get_template("fleet.html.j2")
        .render(
            title=fleet.fit.robot.name,
            subtitle=f"a fleet of {format_count(len(fleet.robots), 'robot')}",
            statements=[
                Statement("bad" if robot.odd else "note", robot.name, robot.words)
                for robot in fleet.inspected
            ]
            or [Statement("good", "No robot", "is to be inspected: all belong, and none changes")],
            verdict=f"Verdict of the type: {verdict.words}.",
            robots=build_fleet_table("robot", *robots),
            drives=build_fleet_table("drive", *drives),
            legend=LEGEND,
            left=fleet.left,
            plot=render_chart(chart_levels(fleet), "Friction of each joint, session by session"),
        )
    )


def build_fleet_table(stub: str, names: list[str], columns: list[tuple[str, list[str]]]) -> Table:
    """Columns as a table of the page."""
    rows = zip(names, *(cells for _, cells in columns), strict=True)
    return Table(
        (stub, *(name for name, _ in columns)), tuple(Row(cells) for cells in rows), ("inspect",)
    )


def chart_levels(fleet: Fleet) -> Chart:
    """A panel a joint, a line a robot: those that change are coloured."""
    panels = []
    for j, joint in enumerate(fleet.joints):
        curves = []
        for robot in sorted(fleet.robots, key=lambda each: bool(each.changes)):
            changed = any(change.joint == joint for change in robot.changes)
            curves.append(
                Curve(
                    np.arange(1.0, robot.sessions + 1.0),
                    100.0 * np.array([level[j] for level in robot.levels]),
                    RED if changed else BLUE if robot.odd else PALE,
                    2.0 if changed else 1.0,
                    label=robot.name if changed else "",
                )
            )
        panels.append(Panel(tuple(curves), joint, "session", "friction [%]", flush=True))
    return Chart(tuple(panels), columns=2, shared=True)
