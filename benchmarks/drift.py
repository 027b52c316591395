"""Lines of friction over sessions by Monte-Carlo: false alarms, what is found and told apart.

Writes docs/figures/drift.md. Run from the top of the project:
python benchmarks/drift.py [--robots 1000] [--print]

Drawn are levels of six joints as `dynident fleet` measures them: scatter of sessions, errors of
short and long ones, and in one joint a change. Everything is in units of the scatter, which is
estimated from all robots as always.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from common import FIGURES, markdown

from dynident.collection.drift import KINDS, Followed, Series, follow_sessions, list_series
from dynident.core.arrays import Array
from dynident.core.threads import limit_to_one_thread
from dynident.report.fleet import Course

JOINTS = tuple(f"joint_{k + 1}" for k in range(6))
NAMES = tuple(f"s{k}" for k in range(200))
SCATTER = 0.015
"""From session to session, as in docs/figures/fleet.md."""
SESSIONS = (6, 12, 26)
FLEET = 20
"""Robots that tell the scatter."""
ROUNDS = 0.2
"""Changes of each kind and size, over robots."""


def draw_robot(rng: np.random.Generator, sessions: int, change: Array | None = None) -> Followed:
    """One robot whose first joint may change; offsets are not told."""
    errors = np.zeros((sessions, 12))
    errors[:, :6] = SCATTER * rng.uniform(0.1, 0.6, (sessions, 6))
    values = np.zeros((sessions, 12))
    values[:, :6] = 1.0 + np.hypot(SCATTER, errors[:, :6]) * rng.normal(size=(sessions, 6))
    if change is not None:
        values[:, 0] += change
    return Followed(np.arange(1.0, sessions + 1.0), values, errors, None)


def draw_change(rng: np.random.Generator, kind: str, size: float, sessions: int) -> Array:
    """Of a size from first to last session, or in its standard deviation."""
    since = np.arange(sessions)
    steps = np.append(0.0, rng.normal(size=sessions - 1))
    shapes = {
        "shift": since >= rng.integers(2, sessions - 1),
        "outlier": since == rng.integers(sessions),
        "slope": since / (sessions - 1.0),
        "walk": np.cumsum(steps) / np.sqrt(sessions - 1.0),
    }
    return np.asarray(size * shapes[kind], dtype=np.float64)


def learn_series(rng: np.random.Generator, sessions: int) -> Series:
    """The first of six joints, its scatter as a fleet of sound robots tells it."""
    first = np.arange(12) == 0
    robots = [draw_robot(rng, sessions) for _ in range(FLEET)]
    (told,) = list_series([each._replace(errors=each.errors * first) for each in robots], JOINTS)
    return replace(told, level=told.level / len(JOINTS))


def is_covered(course: Course, change: Array) -> Array:
    """Whether the band of 95 % holds the truth, session by session."""
    return np.asarray(np.abs(np.array(course.line) - 1.0 - change) < 1.96 * np.array(course.band))


@limit_to_one_thread
def count_false(robots: int) -> list[str]:
    """Sound robots of which something is told, fleet by fleet, each with its own scatter."""
    rows = []
    for sessions in SESSIONS:
        rng = np.random.default_rng((1, sessions))
        named = told = 0
        covered: list[Array] = []
        for _ in range(max(1, robots // FLEET)):
            fleet = [draw_robot(rng, sessions) for _ in range(FLEET)]
            series = list_series(fleet, JOINTS)
            for robot in fleet:
                courses = [follow_sessions(robot, each, NAMES) for each in series]
                named += any(course.kind for course in courses)
                told += 1
                covered += [is_covered(course, np.zeros(sessions)) for course in courses]
        rows.append([str(sessions), f"{named} of {told}", f"{100.0 * np.mean(covered):.1f} %"])
    words = (
        f"Sound robots, {FLEET} a fleet, six joints each, of which anything is told (stated is 1 % "
        "a robot), and how often the band of 95 % of a line holds it:"
    )
    return [words, "", *markdown(["sessions", "falsely named", "covered"], rows)]


@limit_to_one_thread
def count_found(sizes: Sequence[float], rounds: int) -> list[str]:
    """Changes that are found, as what, and how often the line's band covers."""
    rows, every = [], []
    for sessions in SESSIONS:
        rng = np.random.default_rng((2, sessions))
        for kind in ("shift", "slope", "walk", "outlier"):
            for size in sizes:
                kinds = dict.fromkeys(("", *KINDS), 0)
                covered, within = [], []
                for k in range(rounds):
                    if k % 10 == 0:
                        first = learn_series(rng, sessions)
                    change = draw_change(rng, kind, size, sessions)
                    course = follow_sessions(draw_robot(rng, sessions, change), first, NAMES)
                    kinds[course.kind] += 1
                    covered.append(
                        is_covered(course, 0.0 * change if kind == "outlier" else change)
                    )
                    if course.kind == kind:
                        within.append(abs(course.size - size) < 1.96 * course.error)
                found = rounds - kinds.pop("")
                shares = [f"{kinds[each]}" for each in KINDS]
                sure = f"{100.0 * np.mean(within):.0f} %" if len(within) >= rounds / 2 else "-"
                share = 100.0 * np.mean(covered)
                every.append(share)
                row = [str(sessions), kind, f"{100.0 * size:g} %", f"{100 * found // rounds} %"]
                rows.append([*row, *shares, sure, f"{share:.1f} %"])
    head = ["sessions", "change", "size", "found", "as a drift", "as a shift", "as an outlier"]
    return [
        f"Changes of one of six joints, {rounds} of each; a scatter of sessions of "
        f"{100.0 * SCATTER:g} %. A walk's size is its standard deviation from first to last. Sizes "
        "are those of shifts and outliers that are told as such; the line's band leaves an outlier "
        "out.",
        "",
        *markdown([*head, "size covered", "line covered"], rows),
        "",
        f"Over all of these lines are covered by {np.mean(every):.1f} %.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", type=int, default=1000)
    parser.add_argument("--print", action="store_true", help="write no page")
    chosen = parser.parse_args()
    begin = time.process_time()
    lines = [
        "# Friction over sessions, by Monte-Carlo",
        "",
        f"`python benchmarks/drift.py --robots {chosen.robots}`; levels are drawn, no logs.",
        "",
        "## False alarms",
        "",
        *count_false(chosen.robots),
        "",
        "## What is found",
        "",
        *count_found((0.05, 0.1), max(10, round(chosen.robots * ROUNDS))),
    ]
    sys.stderr.write(f"{time.process_time() - begin:.0f} s\n")
    text = "\n".join(lines) + "\n"
    if not chosen.print:
        (FIGURES / "drift.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
