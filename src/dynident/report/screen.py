"""A fit on a screen: a line a joint, and a line a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynident.core.text import format_count
from dynident.core.words import (
    LONGEST_NAME,
    WIDTH,
    format_entry,
    format_percent,
    format_table,
    shorten_line,
)
from dynident.fit.figures import FitFigure
from dynident.fit.result import Result
from dynident.report.text import (
    FEW,
    MORE,
    Column,
    choose_headline,
    describe_rows,
    find_drive_units,
    format_free_error,
    tabulate_bodies,
    tabulate_drives,
)

if TYPE_CHECKING:
    from dynident.estimators.closed_loop import FreeError

FIRST = 3
"""Columns of the drives that come before the errors of a second log."""


@dataclass(frozen=True)
class Headline:
    """The error of a model on some logs."""

    key: str
    unit: str
    errors: Mapping[str, str]
    """By joint, as text."""
    words: str
    """Of all joints, and what it is of."""


def list_headlines(result: Result) -> list[Headline]:
    """Errors of the fitted logs and of each held-out one: of torques, or of free simulations."""
    held = [*zip(number_titles("held out", len(result.validation)), result.validation, strict=True)]
    if result.encoder_only:
        keys = number_titles("fitted", len(result.simulated))
        own = zip(keys, result.simulated, strict=True)
        free = [(key, each.log, each.free) for key, each in own]
        free += [(key, each.log, each.free) for key, each in held]
        names = result.robot.joint_names
        return [head_free_errors(key, log, errors, names) for key, log, errors in free if errors]
    logs = [("fitted", "", result.identification, result.nominal)]
    logs += [(key, each.log, each.entries, each.nominal) for key, each in held]
    return [head_torque_errors(*each, result.torque_source) for each in logs if each[2]]


def number_titles(title: str, count: int) -> list[str]:
    """A title a log, numbered where there are several."""
    return [f"{title} {k}" if count > 1 else title for k in range(1, count + 1)]


def head_free_errors(
    key: str, log: str, free: Sequence[FreeError], names: Sequence[str]
) -> Headline:
    """Of the longest simulation, joint by joint, and of all horizons."""
    *others, (_, (*own, overall)) = [format_free_error(each) for each in free]
    told = ", ".join(f"{horizon}: {errors[-1]}" for horizon, errors in reversed(others))
    words = f"{overall} mrad free" + (f" ({told})" if told else "")
    return Headline(key, "mrad", dict(zip(names, own, strict=True)), f"{words}, {log}")


def head_torque_errors(
    key: str, log: str, figures: Sequence[FitFigure], nominal: Sequence[FitFigure], torque: str
) -> Headline:
    """Of all samples, where they show any torque, beside the robot file's."""
    best, file = choose_headline(figures), choose_headline(nominal)
    assert best is not None
    of = "torques" if torque == "measured" else "law's torques"
    words = f"{format_percent(best.overall_percent)} % of the {of}"
    if file is not None:
        words += f" (robot file {format_percent(file.overall_percent)} %)"
    words += f", {log}" * bool(log) + f", {describe_rows(best)}"
    errors = {joint.name: format_percent(joint.relative_percent) for joint in best.joints}
    return Headline(key, "%", errors, words)


def format_headlines(result: Result) -> list[str]:
    """A line a log, of many the first and the last."""
    found = list_headlines(result)
    shown = found if len(found) <= FEW else [found[0], *found[1 - FEW :]]
    lines = [line for each in shown for line in format_entry(each.key, each.words)]
    if len(shown) < len(found):
        rest = format_count(len(found) - len(shown), "more log")
        lines += format_entry("", f"{rest} with {MORE}")
    return lines


def format_joints(result: Result) -> list[str]:
    """A line a joint: its drive, the mass that it moves, its errors, as 80 columns have room.

    Behind the joints are the bodies that none of them moves.
    """
    robot, headlines = result.robot, list_headlines(result)
    every = (
        tabulate_drives(result),
        tabulate_bodies(result)[:2],
        [(each.key, [each.errors.get(j, "") for j in robot.joint_names]) for each in headlines],
    )
    moved = [robot.links.index(joint.link) for joint in robot.joints]
    others = [k for k in range(len(robot.links)) if k not in moved] if every[1] else []
    labels = [*robot.joint_names, *(robot.links[k] for k in others)]
    drives = [(title, [*cells, *[""] * len(others)]) for title, cells in every[0]]
    masses = [(title, [cells[k] for k in (*moved, *others)]) for title, cells in every[1]]
    errors = [(title, [*cells, *[""] * len(others)]) for title, cells in every[2]]
    room = WIDTH - max(len(shorten_line(name, LONGEST_NAME)) for name in ("joint", *labels))
    wanted = [*masses, *errors[-1:], *drives[:FIRST], *errors[-2::-1], *drives[FIRST:]]
    shown = set[str]()
    for title, cells in wanted:
        width = 2 + max(len(cell) for cell in (title, *cells))
        if width <= room:
            shown.add(title)
            room -= width
    columns = [column for column in (*drives, *masses, *errors) if column[0] in shown]
    if not columns:
        return []
    units = {**find_drive_units(result), "mass": "kg", "file": "kg"}
    units |= {each.key: each.unit for each in headlines}
    table = format_table("joint", labels, columns)
    return [*table, *describe_columns(result, units, columns, drives)]


def describe_columns(
    result: Result,
    known: Mapping[str, str],
    columns: Sequence[Column],
    drives: Sequence[Column],
) -> list[str]:
    """Units of the columns, and what there was no room for."""
    titles, units = [title for title, _ in columns], dict[str, list[str]]()
    for title in (each for each in titles if each in known):
        units.setdefault(known[title], []).append(title)
    told = [f"{', '.join(symbols)} [{unit}]" for unit, symbols in units.items()]
    cells = [cell for _, column in columns for cell in column]
    told += ["(12): standard deviation of the last digits"] * any("(" in cell for cell in cells)
    sums = any("-" in column for title, column in columns if title in find_drive_units(result))
    told += ["a dash: identifiable only in a sum"] * sums
    left = [title for title, _ in drives if title not in titles]
    left += ["centres of mass", "inertias"] * ("mass" in titles)
    lines = format_entry("  units", "; ".join(told)) if told else []
    return lines + (format_entry("  and", f"{', '.join(left)} with {MORE}") if left else [])
