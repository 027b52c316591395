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
from scipy.special import stdtrit

from dynident.collection.drift import (
    APART,
    KINDS,
    WALKS,
    FollowedSessions,
    QuantitySeries,
    follow_sessions,
    list_series,
    list_shapes,
)
from dynident.core.arrays import Array
from dynident.core.threads import limit_to_one_thread
from dynident.regression.statistics import NORMAL

JOINTS = tuple(f"joint_{k + 1}" for k in range(6))
NAMES = tuple(f"s{k}" for k in range(200))
SCATTER = 0.015
"""From session to session, as in docs/figures/fleet.md."""
SESSIONS = (6, 12, 26)
FLEET = 20
"""Robots that tell the scatter."""
ROUNDS = 0.2
"""Changes of each kind and size, over robots."""
LINES, LEARNED, ANY = 2.0, 50, 0.15
"""Lines of each kind and size, over robots; of so many a scatter is learned; largest size."""


def draw_robot(
    rng: np.random.Generator, sessions: int, change: Array | None = None
) -> FollowedSessions:
    """One robot whose first joint may change; offsets are not told."""
    errors = np.zeros((sessions, 12))
    errors[:, :6] = SCATTER * rng.uniform(0.1, 0.6, (sessions, 6))
    values = np.zeros((sessions, 12))
    values[:, :6] = 1.0 + np.hypot(SCATTER, errors[:, :6]) * rng.normal(size=(sessions, 6))
    if change is not None:
        values[:, 0] += change
    return FollowedSessions(np.arange(1.0, sessions + 1.0), values, errors, None)


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


def learn_series(rng: np.random.Generator, sessions: int) -> QuantitySeries:
    """The first of six joints, its scatter as a fleet of sound robots tells it."""
    first = np.arange(12) == 0
    robots = [draw_robot(rng, sessions) for _ in range(FLEET)]
    (told,) = list_series([each._replace(errors=each.errors * first) for each in robots], JOINTS)
    return replace(told, level=told.level / len(JOINTS))


@limit_to_one_thread
def count_false(robots: int) -> list[str]:
    """Sound robots of which something is told, fleet by fleet, each with its own scatter."""
    rows = []
    for sessions in SESSIONS:
        rng = np.random.default_rng((1, sessions))
        named = told = 0
        for _ in range(max(1, robots // FLEET)):
            fleet = [draw_robot(rng, sessions) for _ in range(FLEET)]
            series = list_series(fleet, JOINTS)
            for robot in fleet:
                courses = [follow_sessions(robot, each, NAMES) for each in series]
                named += any(course.kind for course in courses)
                told += 1
        rows.append([str(sessions), f"{named} of {told}"])
    words = (
        f"Sound robots, {FLEET} a fleet, six joints each, of which anything is told (stated is 1 % "
        "a robot):"
    )
    return [words, "", *markdown(["sessions", "falsely named"], rows)]


@limit_to_one_thread
def count_found(sizes: Sequence[float], rounds: int) -> list[str]:
    """Changes that are found, and as what."""
    rows = []
    for sessions in SESSIONS:
        rng = np.random.default_rng((2, sessions))
        for kind in ("shift", "slope", "walk", "outlier"):
            for size in sizes:
                kinds = dict.fromkeys(("", *KINDS), 0)
                within = []
                for k in range(rounds):
                    if k % 10 == 0:
                        first = learn_series(rng, sessions)
                    change = draw_change(rng, kind, size, sessions)
                    course = follow_sessions(draw_robot(rng, sessions, change), first, NAMES)
                    kinds[course.kind] += 1
                    if course.kind == kind:
                        within.append(abs(course.size - size) < 1.96 * course.error)
                found = rounds - kinds.pop("")
                shares = [f"{kinds[each]}" for each in KINDS]
                sure = f"{100.0 * np.mean(within):.0f} %" if len(within) >= rounds / 2 else "-"
                row = [str(sessions), kind, f"{100.0 * size:g} %", f"{100 * found // rounds} %"]
                rows.append([*row, *shares, sure])
    head = ["sessions", "change", "size", "found", "as a drift", "as a shift", "as an outlier"]
    return [
        f"Changes of one of six joints, {rounds} of each; a scatter of sessions of "
        f"{100.0 * SCATTER:g} %. A walk's size is its standard deviation from first to last. Sizes "
        "are those of shifts and outliers that are told as such.",
        "",
        *markdown([*head, "size covered"], rows),
    ]


def draw_any(rng: np.random.Generator, sessions: int) -> tuple[Array, Array]:
    """A line of any size as it is thought of beforehand, and an outlier beside it, if any."""
    kind = "walk" if rng.uniform() < WALKS else "shift"
    line, alone = (
        draw_change(rng, each, ANY * rng.uniform(), sessions) for each in (kind, "outlier")
    )
    return line, alone * (rng.uniform() < APART)


@limit_to_one_thread
def count_covered(sizes: Sequence[float], rounds: int) -> list[str]:
    """How often bands of lines cover, over all sessions."""
    cases = [("any", ANY), ("none", 0.0)]
    cases += [(k, size) for k in ("shift", "slope", "walk", "outlier") for size in sizes]
    rows = []
    for kind, size in cases:
        row = [kind, f"{100.0 * size:g} %"]
        for sessions in SESSIONS:
            rng = np.random.default_rng((3, sessions))
            hits, widths = [], []
            for k in range(rounds):
                if k % LEARNED == 0:
                    first = learn_series(rng, sessions)
                    wider = stdtrit(first.freedom, 0.975)
                line, alone = np.zeros((2, sessions))
                if kind == "any":
                    line, alone = draw_any(rng, sessions)
                elif kind == "outlier":
                    alone = draw_change(rng, kind, size, sessions)
                elif kind != "none":
                    line = draw_change(rng, kind, size, sessions)
                robot = draw_robot(rng, sessions, line + alone)
                one = robot.compare(0, first.scatter, list_shapes(robot.times))
                found, band = one.draw_line(robot.values[:, 0], np.eye(sessions))
                hits.append(np.mean(np.abs(found - 1.0 - line) < wider * band))
                widths.append(wider * np.mean(band))
            unsure = 100.0 * NORMAL * np.std(hits) / np.sqrt(rounds)
            row.append(f"{100.0 * np.mean(hits):.1f} ± {unsure:.1f}")
            row.append(f"{100.0 * np.mean(widths):.1f}")
        rows.append(row)
    head = [f"{n} sessions: {w}" for n in SESSIONS for w in ("covered [%]", "band [%]")]
    constant = [f"{100.0 * NORMAL * SCATTER / np.sqrt(n):.1f}" for n in SESSIONS]
    return [
        f"How often the band of 95 % of a line holds it, over all sessions of {rounds} lines of a "
        "kind, and half the width of the band. The line is that of all other sessions where one is "
        f"an outlier. Any are lines as they are thought of beforehand: a walk in {100 * WALKS:g} "
        f"of 100, else a shift, of a size up to {100 * ANY:g} %, and with an outlier of such a "
        f"size in {100 * APART:g} of 100.",
        "",
        *markdown(["change", "size", *head], rows),
        "",
        f"Were it known that nothing changes, the band would be {constant[0]}, {constant[1]} and "
        f"{constant[2]} %. It is wider, for sessions cannot distinguish nothing from a small walk "
        "or shift: "
        "a band that holds those in 95 of 100 cases has to be wide enough for them where there is "
        "none, too, and then holds more. No band does both (Low 1997); only levels that are not "
        f"smoothed at all, with {100 * NORMAL * SCATTER:.1f} % and more on both sides, would be "
        "covered alike whatever changes.",
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
        "",
        "## Lines",
        "",
        *count_covered((0.05, 0.1), max(10, round(chosen.robots * LINES))),
    ]
    sys.stderr.write(f"{time.process_time() - begin:.0f} s\n")
    text = "\n".join(lines) + "\n"
    if not chosen.print:
        (FIGURES / "drift.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
