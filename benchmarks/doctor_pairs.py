"""Two kinds of damage at once: whether the doctor repairs both, and whether such logs are trusted.

Run from the top of the project: python benchmarks/doctor_pairs.py [--jobs COUNT]

Robots and damage are those of `doctor.py`, of the kinds that a study can repair, each with each
other, done to the log that is fitted beside a sound held-out one. Writes
docs/figures/doctor_pairs.md.
"""

from __future__ import annotations

import argparse
import itertools
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np
from common import FIGURES, markdown
from doctor import DAMAGES, HURT, Outcome, Scene, outcome, scene

from dynident.fit.verdict import TRUSTED

SIZES = {
    "torque sign of a joint": 1.0,
    "torque sign of all joints": 1.0,
    "torques of two joints swapped": 1.0,
    "position sign of a joint": 1.0,
    "positions of two joints swapped": 1.0,
    "two joints swapped": 1.0,
    "degrees taken for radians": 1.0,
    "degrees of one joint": 1.0,
    "delay of all torques [ms]": 20.0,
    "encoder offset [deg]": 10.0,
    "rate times": 2.0,
    "on a wall": 1.0,
    "on the ceiling": 1.0,
}
"""Kinds of damage and how large each is."""
ROBOTS = ("UR10", "Panda")
REPAIRED = 1.1
"""Held-out error over that of the sound log to which both are repaired."""


def list_pairs() -> list[tuple[str, str]]:
    """Both kinds; a robot has one mounting."""
    mountings = {"on a wall", "on the ceiling"}
    return [pair for pair in itertools.combinations(SIZES, 2) if {*pair} != mountings]


def damage(s: Scene, kinds: tuple[str, str]) -> Outcome:
    """What is said of a log that is damaged twice."""
    robot, log = s.robot, s.fit
    for kind in kinds:
        state = np.random.default_rng([int(1000 * SIZES[kind]), *kind.encode()])
        robot, log = DAMAGES[kind].make(replace(s, robot=robot, fit=log), SIZES[kind], state)
    return outcome(s, " and ".join(kinds), 0.0, robot, log)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    lines, left = [], []
    pairs = list_pairs()
    with ProcessPoolExecutor(parser.parse_args().jobs, get_context("spawn")) as pool:
        for name in ROBOTS:
            s = scene(name, True, HURT)
            sound = outcome(s, "undamaged", 0.0, s.robot, s.fit)
            found = list(pool.map(partial(damage, s), pairs))
            repaired = [each.repaired <= REPAIRED * sound.held for each in found]
            trusted = sum(each.state == TRUSTED for each in found)
            lines.append([name, str(len(pairs)), str(sum(repaired)), str(trusted)])
            left += [
                [name, each.kind, ", ".join(each.found) or "nothing", each.state]
                for each, done in zip(found, repaired, strict=True)
                if not done
            ]
    text = [
        "# Two kinds of damage at once",
        "",
        "Made by `benchmarks/doctor_pairs.py`, with the robots, logs and damage of "
        "[doctor.md](doctor.md). A pair is repaired where what `dynident doctor --fix` writes "
        f"brings the held-out error to {REPAIRED:g} times that of the sound log.",
        "",
        *markdown(["robot", "pairs", "repaired", "trusted"], lines),
        "",
        "Not repaired:",
        "",
        *markdown(["robot", "damage", "found by `identify`", "verdict"], left),
        "",
    ]
    (FIGURES / "doctor_pairs.md").write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main()
