"""What the logs of made robots decide, against the truth on motions that no log has.

Run from the top of the project: python benchmarks/decide_twins.py [ROBOTS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from common import FIGURES, markdown
from verdict import COLUMNS, RATE, ROBOTS, Log, make_course, make_log, make_world, measure_error

from dynident.decide.decision import ALL, NOTHING
from dynident.study.run import run_study
from dynident.study.study import Study, load_study_robot

KINDS = {
    "11 s": Log(),
    "11 s, a tenth of the speed": Log(pace=0.1),
    "5 s": Log(5.0),
    "30 s, two fifths of the speed": Log(30.0, pace=0.4),
}
COUNT = 48
"""Robots."""


def judge(number: int, kind: Log) -> np.ndarray:
    """Errors as given and decided, on a fresh motion of the log's kind and on one elsewhere [%]."""
    robot = ROBOTS[[*ROBOTS][number % len(ROBOTS)]]
    nothing = Study.model_validate({"robot": robot, "log": [{"files": ["-"]}]})
    rng = np.random.default_rng([number, len(KINDS)])
    w = make_world(load_study_robot(nothing), rng)
    courses = w.course, make_course(w.robot, rng)
    motions = [course.move(rng, 11.0, kind.pace) for course in courses]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "log.csv"
        header = ",".join(f"{x}{j + 1}" for x in ("q", "tau") for j in range(w.robot.n))
        table = np.hstack(make_log(w, kind, rng, 0.0))
        np.savetxt(path, table, "%.9g", ",", header=header, comments="")
        log = {"files": [str(path)], "rate": RATE, "columns": COLUMNS}
        options = {"bootstrap": 0, "doctor": False, "lowpass_hz": 10.0}
        fits = [
            run_study(
                Study.model_validate(
                    {"robot": robot, "log": [log], "identify": {**options, "decide": decide}}
                )
            )
            for decide in (NOTHING, ALL)
        ]
    return np.array([[measure_error(w, fit, motion) for motion in motions] for fit in fits])


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    found = np.array([judge(k, [*KINDS.values()][k % len(KINDS)]) for k in range(count)])
    rows = []
    for k, name in enumerate(KINDS):
        own = found[k :: len(KINDS)]
        means = np.exp(np.mean(np.log(own), axis=0))
        better = np.sum(own[:, 1] < own[:, 0], axis=0)
        rows.append([name, str(len(own)), *(f"{means[i, j]:.2f}" for j in (0, 1) for i in (0, 1))])
        rows[-1] += [f"{n} of {len(own)}" for n in better]
        print(*rows[-1], flush=True)
    header = ["log", "robots", "as given %", "decided %", "elsewhere, as given %",
              "elsewhere, decided %", "decided is better", "elsewhere"]  # fmt: skip
    lines = [
        f"{count} made robots ({', '.join(ROBOTS)}) with friction that no law of the menu has "
        "whole, from one log each: what is left of the true torques on a fresh motion of the same "
        "places and frequencies, and on one elsewhere; geometric means.",
        "",
        *markdown(header, rows),
    ]
    (FIGURES / "decide_twins.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
