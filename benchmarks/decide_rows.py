"""Outliers and averaging over periods: what leaving rows out says, and what is held out.

Run from the top of the project: python benchmarks/decide_rows.py
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from common import EMPS, FIGURES, ROOT, markdown
from decide import list_studies
from logs import LWR4, LWR4_MISSING, lwr4_logs

import dynident as di
from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.decide.outliers import KEPT, choose_outliers
from dynident.estimators.constrained import build_constrained_setting
from dynident.estimators.covariance import ErrorBars
from dynident.recording.prepare import Samples
from dynident.study.study import load_study_robot, read_study_logs

FRICTION = "cube-root"
PUSHES, SECONDS, SIZE = 4, 0.3, 2.0
"""On each joint; each of them so long, and so many standard deviations of its torque."""
DRAWS = 20


def push(log: Samples, rng: np.random.Generator) -> Samples:
    """A log in which something pushes every joint now and then."""
    tau, sizes = log.tau.copy(), SIZE * log.tau.std(axis=0)
    length = int(SECONDS * log.rate)
    for j, size in enumerate(sizes):
        for _ in range(PUSHES):
            at = int(rng.integers(0, len(tau) - length))
            tau[at : at + length, j] += size * rng.choice([-1.0, 1.0])
    return log.driven(tau)


def outliers() -> list[list[str]]:
    """Held-out errors with all rows, and without those that a decision leaves out."""
    rng, found = np.random.default_rng(0), []
    for name, (own, lowpass) in list_studies().items():
        robot = load_study_robot(own)
        pairs = list(zip(own.log, read_study_logs(own, robot), strict=True))
        fitted = [log for section, log in pairs if section.use == "identify"]
        held_out = [log for section, log in pairs if section.use == "validate"]
        for label, logs in (("as measured", fitted), ("pushed", [push(k, rng) for k in fitted])):
            problem = di.Problem(robot, logs, FRICTION)
            given = build_constrained_setting(problem, Knowledge(), Bootstrap(0), ErrorBars())
            decision = choose_outliers(problem, given.admitted, given.sigma, [0] * len(logs))
            kept, left = logs, 0.0
            if decision.value != KEPT:
                ranges = json.loads(decision.value)
                kept = [log.only(own) for log, own in zip(logs, ranges, strict=True)]
                left = 1.0 - sum(b - a for each in ranges for a, b in each) / sum(
                    len(log.q) for log in logs
                )
            errors = []
            for some in (logs, kept):
                fit = di.identify(
                    di.Problem(robot, some, FRICTION), validation=held_out, lowpass_hz=lowpass,
                    bootstrap=0, doctor=False,
                )  # fmt: skip
                errors.append(fit.validation[0].entries[1].overall_percent)
            found.append([
                name, label, f"{100.0 * left:.1f}", f"{decision.gain_percent:.1f}",
                f"{errors[0]:.2f}", f"{errors[1]:.2f}",
            ])  # fmt: skip
            print(*found[-1], flush=True)
    return found


def predict(fit: Any, samples: Samples) -> float:
    """Error on the filtered and decimated rows of a log [%]."""
    return float(di.validate(fit, samples)[0].overall_percent)


def simulated() -> list[list[str]]:
    """Periods of a simulated log fitted as a mean or as they are; the last two are left out."""
    sys.path.insert(0, str(ROOT / "tests"))
    tests: Any = importlib.import_module("test_periods")
    friction = "viscous-offset"
    clean, robot, theta = tests.clean(friction=friction)
    cut = int(6.0 * tests.PERIOD * tests.RATE)
    found = []
    for position in (1e-4, 2e-3, 5e-3):
        errors: dict[str, list[tuple[float, float, Array]]] = {"mean": [], "filtered": []}
        for seed in range(DRAWS):
            log = tests.noisy(clean, np.random.default_rng(seed), False, position)
            left = di.prepare(log.rows(cut, len(log.q)), 5.0, position_hz=20.0)
            true = di.prepare(clean.rows(cut, len(log.q)), 5.0, position_hz=20.0)
            for label, options in (("mean", {"period": tests.PERIOD}), ("filtered", {})):
                samples = di.prepare(log.rows(0, cut), 5.0, position_hz=20.0, **options)
                problem = di.Problem(robot, samples, friction)
                fit = di.identify(problem, "wls", doctor=False)
                error = fit.estimate.beta - problem.base.matrix @ theta
                errors[label].append((predict(fit, left), predict(fit, true), error))
        for label, rows in errors.items():
            seen, clear = (float(np.mean([row[k] for row in rows])) for k in (0, 1))
            rms = np.sqrt(np.mean(np.array([row[2] for row in rows]) ** 2, axis=0))
            size = np.abs(problem.base.matrix @ theta)
            found.append([
                f"{position:g}", label, f"{seen:.3f}", f"{clear:.3f}",
                f"{100.0 * float(np.median(rms / size)):.2f}",
            ])  # fmt: skip
    return found


def measured() -> list[list[str]]:
    """The two measured motions that repeat: a mean and the same periods as they are."""
    found = []
    study = di.read_study(EMPS / "study.toml")
    robot = load_study_robot(study)
    section = study.log[0].model_dump(exclude_none=True)
    parts = [
        {**section, "rows": rows, "name": name}
        for name, rows in (("fitted", (0, 18720)), ("left", (18720, 24841)))
    ]
    own = study.model_copy(
        update={"log": tuple(type(study.log[0]).model_validate(part) for part in parts)}
    )
    for label, period in (("mean", "found"), ("filtered", "none")):
        logs = tuple(
            replace_period(each, period if each.name == "fitted" else "none") for each in own.log
        )
        fitted, left = read_study_logs(own.model_copy(update={"log": logs}), robot)
        fit = di.identify(di.Problem(robot, fitted), bootstrap=0, doctor=False)
        found.append(["EMPS, on its last period", label, f"{predict(fit, left):.3f}"])
    if not LWR4.is_dir():
        return found
    robot, others = lwr4_logs()
    columns = {"time": "times", "q": "positions_*", "tau": "torques_*"}
    log = di.read_log(LWR4 / "measurements_3.npz", robot, columns=columns)
    mean = di.prepare(log, 10.0, period="found", warmup=1)
    assert mean.averaging is not None
    length = mean.averaging.period * log.rate
    same = di.prepare(log.rows(int(length), int(3 * length)), 10.0)
    for label, samples in (("mean", mean), ("filtered", same)):
        fit = di.identify(di.Problem(robot, samples), bootstrap=0, doctor=False)
        errors = [predict(fit, other) for other in (others[1], others[2])]
        found.append(["LWR4+ 3, on 1 and 2", label, ", ".join(f"{error:.2f}" for error in errors)])
    return found


def replace_period(section: Any, period: str) -> Any:
    """A log with its period."""
    return section.model_copy(update={"period": period})


def write(name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table among the figures."""
    lines = markdown(list(head), [list(row) for row in rows])
    if not LWR4.is_dir():
        lines += ["", LWR4_MISSING]
    (FIGURES / name).write_text("\n".join(lines) + "\n")


def main() -> None:
    head = ["log", "", "left out %", "gain %", "held out, all rows %", "held out, decided %"]
    write("decide_outliers.md", head, outliers())
    head = ["position noise [rad]", "rows", "left out %", "without noise %", "rms of base %"]
    write("decide_averaging.md", head, simulated())
    write("decide_averaging_measured.md", ["log", "rows", "held out %"], measured())


if __name__ == "__main__":
    main()
