"""Fleets that are made: what is named, what is not, intervals, and a new robot with few logs.

Writes docs/figures/fleet.md. Run from the top of the project:
python benchmarks/fleet.py [--fleets 20] [--quick]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from common import FIGURES, ROOT, markdown

from dynident.collection.drift import (
    follow_sessions,
    list_series,
    list_times,
    measure_sessions,
)
from dynident.collection.fleet import OpenedFleet, find_own_parameters, identify_type
from dynident.collection.folder import FolderStatement
from dynident.collection.member import EqualWeights, weigh_members
from dynident.collection.outliers import FleetFit, fit_fleet
from dynident.collection.reduce import reduce_problem
from dynident.collection.source import Source
from dynident.core.arrays import Array
from dynident.dynamics.base import base_parameters
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.statistics import NORMAL
from dynident.report.fleet import FrictionCourse

ROBOTS, SESSIONS, SECONDS = 12, 6, 20.0
CULPRITS = {1: "gain", 3: "tool", 6: "slipped", 8: "drifting", 9: "worn", 11: "changed"}
LARGE = 100
RIGHT = {
    "gain": "torque constant or gear of joint_2",
    "tool": "link_6 differs",
    "slipped": "nor does one link",
    "worn": "friction of joint_4",
}
"""What the words of a culprit hold."""
COVERED = {6: 1.5, 30: 0.5}
"""Robots of a fleet whose intervals are counted alone, and of how many fleets as a share."""
NEW = {"one log of 20 s": 20.0, "one log of 2 s": 2.0}
"""What a new robot has [s]."""


def load_maker() -> ModuleType:
    """``examples/fleet/make.py``."""
    spec = importlib.util.spec_from_file_location("make", ROOT / "examples" / "fleet" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make"] = module
    spec.loader.exec_module(module)
    return module


make = load_maker()
KIND = make.load_type()
BASE = base_parameters(KIND.model)


def reduce_robot(made: Any, sessions: int | None = None) -> list[Source]:
    """Factors of a robot's logs, as `dynident collect` makes them."""
    found = []
    for k, (q, tau) in enumerate(made.sessions[:sessions]):
        log = prepare(Recording(f"session-{k:02d}", make.RATE, q, tau), 5.0, drop_below=0.05)
        found.append(reduce_problem(Problem(KIND.robot, log), f"{k:064d}", {}, None))
    return found


def draw_robots(
    seed: int, robots: int, culprits: dict[int, str], loss: float, sessions: int = SESSIONS
) -> tuple[list[Any], list[tuple[str, list[Source]]]]:
    """Robots with their truth, and by name the factors of their logs."""
    made = []
    for k in range(robots):
        rng, culprit = np.random.default_rng((seed, k)), culprits.get(k % ROBOTS, "")
        made.append(make.make_robot(KIND, rng, sessions, SECONDS, culprit, loss))
    return made, [(f"robot-{k:03d}", reduce_robot(each)) for k, each in enumerate(made)]


def draw_fleet(
    seed: int, robots: int, culprits: dict[int, str], loss: float, sessions: int = SESSIONS
) -> tuple[list[Any], EqualWeights]:
    """Robots with their truth, and as members of a fleet."""
    made, sources = draw_robots(seed, robots, culprits, loss, sessions)
    return made, weigh_members(KIND.model, sources)


def open_fleet(team: EqualWeights) -> OpenedFleet:
    """Robots as if they were read from folders."""
    return OpenedFleet(ROOT, FolderStatement("", {}, KIND.model), team, fit_fleet(team), ())


def list_true_parameters(made: Any) -> Array:
    """Base parameters of a robot."""
    drives = [made.drives[p.symbol][p.number - 1] for p in KIND.model.parameters[60:]]
    return np.asarray(BASE.matrix @ np.concatenate([made.bodies.ravel(), drives]))


CHANGES = {"changed": "friction of joint_3", "drifting": "friction of joint_5"}
"""What changes in a robot that belongs."""


def list_changes(team: EqualWeights, fitted: FleetFit) -> list[list[FrictionCourse]]:
    """What changes in each robot."""
    times, _ = list_times(team.members)
    followed = [
        measure_sessions(each, find_own_parameters(team, fitted, k), own)
        for k, (each, own) in enumerate(zip(team.members, times, strict=True))
    ]
    series = list_series(followed, KIND.robot.joint_names)
    names = [f"session-{k:02d}" for k in range(64)]
    found = [[follow_sessions(robot, one, names) for one in series] for robot in followed]
    return [[course for course in own if course.kind] for own in found]


def find_change(culprit: str, changes: Sequence[FrictionCourse]) -> list[FrictionCourse]:
    """The change that was made, if it is told."""
    return [course for course in changes if course.what == CHANGES[culprit]]


def count_named(fleets: int) -> list[str]:
    """How often culprits are named, and sound robots."""
    named = dict.fromkeys(CULPRITS.values(), 0)
    masses, sizes, places = [], [], 0
    odd = changed = sound = belonging = apart = 0
    for seed in range(fleets):
        made, team = draw_fleet(seed, ROBOTS, CULPRITS, 0.10)
        fitted = fit_fleet(team)
        changes = list_changes(team, fitted)
        for each, words, steps in zip(made, fitted.odd, changes, strict=True):
            if each.culprit in CHANGES:
                hits = find_change(each.culprit, steps)
                named[each.culprit] += bool(hits)
                kind = "shift" if each.culprit == "changed" else "drift"
                apart += bool(hits) and hits[0].kind == kind
                places += bool(hits) and hits[0].session == f"session-{SESSIONS // 2:02d}"
                true = -0.1 if each.culprit == "changed" else make.DRIFT
                # a level is over that of all sessions
                true /= 1.0 + true * (0.5 if SESSIONS % 2 == 0 else 0.0)
                sizes += [(hit.size - true) / hit.error for hit in hits]
                odd += bool(words)
                belonging += 1
            elif each.culprit:
                hit = RIGHT[each.culprit] in words
                named[each.culprit] += hit
                if each.culprit == "tool" and "kg" in words:
                    mass, _, error = words.split(" by ")[1].split(" kg")[0].split()
                    masses.append((float(mass) - make.TOOL) / (float(error) / 1.96))
            else:
                sound += 1
                odd += bool(words)
                changed += bool(steps)
    return [
        f"{fleets} fleets of {ROBOTS} robots with {SESSIONS} logs of {SECONDS:g} s. Four are odd: "
        "the torque of joint 2 is logged 3 % too large, a tool of 0.5 kg, a zero that slipped by "
        "3 degrees, twice the friction in joint 4. One loses 10 % of joint 3's friction after half "
        "of its sessions, and in one that of joint 5 grows by 15 % from first to last (scatter "
        "from session to session 1.5 %):",
        "",
        *markdown(
            ["robot", "named"],
            [[kind, f"{count} of {fleets}"] for kind, count in named.items()],
        ),
        "",
        f"Of {sound + belonging} robots that belong {odd} are called odd (1 % a robot for links, "
        f"1 % for drives, is stated), of {sound} sound ones {changed} to have changed (1 % for "
        "friction, 1 % for offsets). Of the changes that are named, drift and shift are told apart "
        f"in {apart} of {named['changed'] + named['drifting']}, the session of the shift is the "
        f"right one in {places} of {named['changed']}; intervals of 95 % cover the change in "
        f"{np.sum(np.abs(sizes) < 1.96)} of {len(sizes)}, the tool's mass in "
        f"{np.sum(np.abs(masses) < 1.96)} of {len(masses)}.",
    ]


def count_small_changes(fleets: int) -> list[str]:
    """Changes of 5 % with 6 and 12 sessions, and false alarms."""
    rows = []
    for sessions in (6, 12):
        found = false = sound = 0
        number = max(2, fleets // 4)
        for seed in range(number):
            made, team = draw_fleet(
                1000 + seed, ROBOTS, {2: "changed", 5: "changed", 8: "changed"}, 0.05, sessions
            )
            changes = list_changes(team, fit_fleet(team))
            for each, steps in zip(made, changes, strict=True):
                found += each.culprit == "changed" and bool(find_change("changed", steps))
                sound += each.culprit != "changed"
                false += bool(steps) and each.culprit != "changed"
        rows.append([str(sessions), f"{found} of {3 * number}", f"{false} of {sound}"])
    words = "A drop of 5 % of joint 3's friction in three robots of each fleet:"
    return [words, "", *markdown(["sessions", "found", "false alarms"], rows)]


def describe_cover(hits: dict[int, list[list[Array]]]) -> list[str]:
    """Intervals of the type's and of each robot's parameters, of sound robots, by the fleet."""
    every = [each for own in hits.values() for each in own]
    rows = [[f"{len(own)}", f"{robots}", *describe_shares(own)] for robots, own in hits.items()]
    rows.append([f"{len(every)}", "all", *describe_shares(every)])
    head = ["fleets", "robots", "type", "deviations of drives", "each robot"]
    words = (
        "Intervals of 95 % cover the truth, counted over base parameters of the type, deviations "
        "of all drives of all robots, and base parameters of all robots, with the interval of 95 % "
        "of that, for those of a fleet rest on the same means of the type and miss together:"
    )
    return [words, "", *markdown(head, rows)]


def describe_shares(hits: Sequence[Sequence[Array]]) -> list[str]:
    """Of each kind of interval the share that covers, over fleets, and how sure that is [%]."""
    shares = np.array([[100.0 * np.mean(own) for own in fleet] for fleet in hits])
    unsure = NORMAL * np.std(shares, axis=0, ddof=1) / np.sqrt(len(shares))
    return [f"{m:.1f} ± {u:.1f} %" for m, u in zip(shares.mean(axis=0), unsure, strict=True)]


def count_covered(seed: int, robots: int, culprits: dict[int, str] | None = None) -> list[Array]:
    """Whether intervals cover: of the type, of deviations, of robots that belong."""
    made, team = draw_fleet(seed, robots, culprits or {}, 0.10)
    return judge_intervals(made, team, fit_fleet(team))


def judge_intervals(made: Sequence[Any], team: EqualWeights, fitted: FleetFit) -> list[Array]:
    """Whether intervals cover: of the type, of deviations, of robots that belong."""
    population = fitted.population
    # drives of the type are the mean of those from which all robots are drawn
    usual = {"fv": make.VISCOUS, "fc": make.COULOMB, "Ia": make.ROTOR, "off": np.zeros(6)}
    usual |= {symbol: np.full(6, value) for symbol, value in make.COUPLED.items()}
    drives = [usual[p.symbol][p.number - 1] for p in KIND.model.parameters[60:]]
    truth = BASE.matrix @ np.concatenate([KIND.bodies.ravel(), drives])
    beta, root = population.know_type(np.eye(BASE.count))
    kind = np.abs(beta - truth) < 1.96 * np.linalg.norm(root, axis=1)
    deviations, own = [], []
    for place, k in enumerate(fitted.kept):
        if made[k].culprit in CHANGES:
            continue
        true = list_true_parameters(made[k])
        deviation, error = population.know_deviation(place)
        away = np.linalg.pinv(team.drives.M) @ (true - truth)
        deviations.append(np.abs(deviation - away) < 1.96 * error)
        beta, root = population.know_robot(place, np.eye(BASE.count))
        own.append(np.abs(beta - true) < 1.96 * np.linalg.norm(root, axis=1))
    return [kind, np.concatenate(deviations), np.concatenate(own)]


Short = dict[str, list[float]]
"""Torque errors [%] of a new robot by what it has: alone, with the fleet, of the type, true."""


def try_new_robot(seed: int) -> tuple[Short, list[Array]]:
    """A new robot with one short log, judged by its other logs; and intervals of its fleet."""
    made, sources = draw_robots(seed, ROBOTS, {}, 0.0)
    team = weigh_members(KIND.model, sources)
    hits = judge_intervals(made, team, fit_fleet(team))
    held = [source.factors for source in sources[0][1][1:]]
    torque = sum(part.squared_torques.sum() for part in held)
    errors: Short = {}
    for label, seconds in NEW.items():
        q, tau = (signal[: round(seconds * make.RATE)] for signal in made[0].sessions[0])
        small = replace(made[0], sessions=((q, tau),))
        team = weigh_members(KIND.model, [("robot-000", reduce_robot(small)), *sources[1:]])
        fitted = fit_fleet(team)
        own = team.members[0]
        betas = (
            own.problem.factors.weighted(own.sigma).solve(),
            find_own_parameters(team, fitted, 0),
            fitted.population.found.beta,
            list_true_parameters(made[0]),
        )
        left = [sum(part.squared_residuals(beta).sum() for part in held) for beta in betas]
        errors[label] = [100.0 * float(np.sqrt(each / torque)) for each in left]
    return errors, hits


def describe_new_robots(errors: Sequence[Short]) -> list[str]:
    """What a new robot's short logs are worth with the fleet."""
    rows = [
        [
            label,
            *(f"{middle:.2f}" for middle in np.median([each[label] for each in errors], axis=0)),
        ]
        for label in NEW
    ]
    words = (
        "A new robot of a fleet of twelve, judged by its five other logs, torque error %, medians; "
        "the last column is of its true parameters:"
    )
    head = ["its logs", "alone", "with the fleet", "the type alone", "true"]
    return [words, "", *markdown(head, rows)]


def measure_large(robots: int) -> list[str]:
    """Processor time of a large fleet, and of its logs."""
    made = make.make_robot(KIND, np.random.default_rng(0), 1, 3600.0)
    begin = time.process_time()
    reduce_robot(made)
    hour = time.process_time() - begin
    robot, sources = draw_robots(5, robots, CULPRITS, 0.10)
    begin = time.process_time()
    again = weigh_members(KIND.model, sources)
    opened = open_fleet(again)
    identify_type(opened, "pc-idim-ls", {})
    changes = list_changes(again, opened.fitted)
    merged = time.process_time() - begin
    sixteen = (robots * hour / 16.0 + merged) / 60.0
    named = dict.fromkeys(CULPRITS.values(), 0)
    false = 0
    for each, words, steps in zip(robot, opened.fitted.odd, changes, strict=True):
        if each.culprit in CHANGES:
            named[each.culprit] += bool(find_change(each.culprit, steps))
        elif each.culprit:
            named[each.culprit] += RIGHT[each.culprit] in words
        else:
            false += bool(words) or bool(steps)
    drawn = [each.culprit for each in robot]
    kinds = ", ".join(f"{kind} {count} of {drawn.count(kind)}" for kind, count in named.items())
    hits = judge_intervals(robot, again, opened.fitted)
    shares = [f"{100.0 * np.mean(each):.1f} %" for each in hits]
    return [
        f"An hour at {make.RATE:g} Hz is reduced in {hour:.1f} s of processor time (the "
        f"reading of its file not counted); {robots} robots with {SESSIONS} logs each are then "
        f"weighed and identified, the odd ones and changes found, and the type made consistent in "
        f"{merged:.1f} s: {robots} robots of one hour in {sixteen:.1f} minutes on 16 cores.",
        "",
        f"Of these robots, with logs of {SECONDS:g} s, are named: {kinds}; of "
        f"{drawn.count('')} sound ones {false} falsely. Intervals of 95 % cover {shares[0]} of the "
        f"type's parameters, {shares[1]} of deviations, {shares[2]} of robots' own.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fleets", type=int, default=20)
    parser.add_argument("--workers", type=int, default=3, help="parts at a time")
    parser.add_argument("--quick", action="store_true", help="two fleets, printed only")
    chosen = parser.parse_args()
    fleets = 2 if chosen.quick else chosen.fleets
    seeds = [
        (2000 * robots + seed, robots)
        for robots, share in COVERED.items()
        for seed in range(max(3, round(share * fleets)))
    ]
    sections = [
        ("Large fleets", measure_large, 12 if chosen.quick else LARGE),
        ("Small changes", count_small_changes, fleets),
        ("What is named", count_named, fleets),
    ]
    with ProcessPoolExecutor(chosen.workers) as pool:  # the longest first
        running = [(title, pool.submit(make_part, size)) for title, make_part, size in sections]
        fresh = [pool.submit(try_new_robot, 3000 + seed) for seed in range(fleets)]
        covered = [(robots, pool.submit(count_covered, seed, robots)) for seed, robots in seeds]
        errors, twelve = zip(*(each.result() for each in fresh), strict=True)
        hits: dict[int, list[list[Array]]] = {6: [], ROBOTS: list(twelve), 30: []}
        for robots, each in covered:
            hits[robots].append(each.result())
        parts = [(title, each.result()) for title, each in reversed(running)]
    parts.insert(2, ("A new robot", describe_new_robots(errors)))
    parts.append(("Intervals", describe_cover(hits)))
    lines = [
        "# Fleets that are made",
        "",
        f"`python benchmarks/fleet.py --fleets {fleets}`, in one run; robots as of "
        "`examples/fleet/make.py`.",
    ]
    for title, body in parts:
        lines += ["", f"## {title}", "", *body]
    text = "\n".join(lines) + "\n"
    if not chosen.quick:
        (FIGURES / "fleet.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
