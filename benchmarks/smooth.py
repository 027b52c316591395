"""Motion and parameters at once beside constrained least squares: held-out errors, coverage, cost.

Run from the top of the project: python benchmarks/smooth.py [RUNS] [PART ...]
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import decide
import numpy as np
from common import FIGURES, ROOT, markdown

sys.path.insert(0, str(ROOT / "tests"))

import slow_log

from dynident.core.errors import DynidentError
from dynident.decide.decision import NOTHING
from dynident.methods.options import estimate
from dynident.study.run import run_study
from dynident.study.study import Study, load_study_robot, read_study_samples

METHODS = ("pc-idim-ls", "smooth")
SLOW = 25.0
"""Rate of the copies [Hz]."""
LOGS = ("TIAGo, split", "Panda, split", "UR10, split", "LWR4+ 1 → 3", "TX40, halves")
"""As `decide` names them."""
COPIED = ("LWR4+ 1 → 3", "TX40, halves")
"""Of which slow copies are fitted."""
LONG = ("TIAGo, split",)
"""Logs on which what the logs decide is not tried: shapes of friction take many fits each."""
AT_ONCE = 3
"""Logs that are fitted beside each other, where no time is measured."""


def slow_copy(study: Study, folder: Path) -> Study:
    """A study with every so many-th sample of what it fits; what is held out stays as it is."""
    robot, logs = load_study_robot(study), []
    for k, log in enumerate(study.log):
        given: dict[str, Any] = log.model_dump(exclude_none=True)
        if log.use == "identify":
            samples = read_study_samples(log, robot, study.prepare)
            step = round(samples.rate / SLOW)
            path = folder / f"slow{k}.csv"
            names = [f"{s}_{joint.name}" for s in ("q", "tau") for joint in robot.joints]
            rows = np.column_stack([
                np.arange(len(samples.q))[::step] / samples.rate,
                np.asarray(samples.measured)[::step],
                np.asarray(samples.tau)[::step],
            ])  # fmt: skip
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([["time", *names], *rows.tolist()])
            given = {"files": [str(path)], "use": "identify"}
        logs.append(given)
    robot_given = study.robot.model_dump(exclude_none=True, exclude_unset=True)
    return Study.model_validate({"robot": robot_given, "log": logs})


def find_study(name: str, folder: Path) -> tuple[Study, float]:
    """A study, of a slow copy where the log is fast, and the low-pass of its figures [Hz]."""
    study, lowpass = decide.list_studies()[name]
    return (slow_copy(study, folder) if name in COPIED else study), lowpass


def label(name: str) -> str:
    """A log in words."""
    return f"{name}, fitted at {SLOW:g} Hz" if name in COPIED else name


def measure(name: str, keys: dict[str, Any]) -> list[str]:
    """Held-out error of each method, and what smooth says of the log."""
    found, words = [], ""
    with tempfile.TemporaryDirectory() as folder:
        study, lowpass = find_study(name, Path(folder))
        for method in METHODS:
            try:
                fit = run_study(decide.with_given(study, lowpass, method=method, **keys))
            except DynidentError as error:
                found.append("-")
                words = str(error)
                continue
            found.append(f"{decide.held_out(fit):.2f}")
            words = fit.estimate.message
    if "-" not in found and float(found[1]) < float(found[0]):
        found[1] = f"**{found[1]}**"
    line = [label(name), "as given" if keys else "decided", *found, words]
    print(*line, flush=True)
    return line


def fit_beside_each_other(function: Callable[..., Any], jobs: list[Any]) -> list[Any]:
    """What a function makes of each job, in their order."""
    with ProcessPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(function, *zip(*jobs, strict=True)))


def measured() -> list[str]:
    """Logs as they are, and copies of faster ones."""
    ways: tuple[dict[str, Any], ...] = ({"decide": NOTHING}, {})
    jobs = [(name, keys) for name in LOGS for keys in ways if keys or name not in LONG]
    lines = fit_beside_each_other(measure, jobs)
    return markdown(["log", "friction, bandwidth", *(f"{m} %" for m in METHODS), "smooth"], lines)


def fit_slow_log(seed: int, options: dict[str, Any]) -> dict[str, tuple[Any, Any]] | None:
    """Errors and standard deviations of each method, or None without an answer."""
    problem, truth = slow_log.problem(seed, **options)
    try:
        found = {m: estimate(problem, m, prior="none", bootstrap=0) for m in METHODS}
    except DynidentError:
        return None
    return {m: (one.beta - truth, one.covariance.std) for m, one in found.items()}


def coverage(runs: int) -> list[str]:
    """Share of 95 % intervals that hold the truth, and errors, on simulated slow logs."""
    lines = []
    for what, options in slow_log.KINDS.items():
        every = fit_beside_each_other(fit_slow_log, [(seed, options) for seed in range(runs)])
        answered = [one for one in every if one is not None]
        least = np.sqrt(np.mean(np.square([one[METHODS[0]][0] for one in answered]), axis=0))
        for method in METHODS:
            error, std = np.moveaxis(np.array([one[method] for one in answered]), 1, 0)
            inside = np.abs(error) < 1.96 * std
            rms = np.sqrt(np.mean(error**2, axis=0))
            lines.append([
                what,
                method,
                f"{100.0 * np.mean(inside):.1f}",
                f"{100.0 * np.min(np.mean(inside, axis=0)):.1f}",
                f"{np.exp(np.mean(np.log(rms / least))):.2f}",
                str(len(every) - len(answered)),
            ])  # fmt: skip
            print(*lines[-1], flush=True)
    header = ["log", "method", "inside 95 % [%]", "worst parameter [%]", "rms error / pc-idim-ls",
              "no answer"]  # fmt: skip
    return markdown(header, lines)


def cost() -> list[str]:
    """Processor time of a round at T, 2 T and 4 T."""
    lines = []
    for seconds in (20.0, 40.0, 80.0):
        problem, _ = slow_log.problem(0, seconds=seconds)
        started = time.process_time()
        rounds = estimate(problem, "smooth", bootstrap=0).iterations
        spent = time.process_time() - started
        (log,) = problem.samples
        lines.append([f"{seconds:g}", str(len(log.q)), str(rounds), f"{spent:.2f}"])
    return markdown(["log [s]", "samples", "rounds", "processor time [s]"], lines)


HELD_OUT = (
    "Held-out errors of all samples of the other part or log, at its full rate and low-passed "
    "(5 Hz; LWR4+ 6 Hz, TX40 10 Hz), along the motion that `validate` filters: the same for both "
    "methods. As given: coulomb-viscous friction and the assumed bandwidth; decided: what "
    "`pc-idim-ls` decides from the fitted rows."
)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    parts = {
        "held-out": (HELD_OUT, measured),
        "coverage": (
            f"Simulated logs of two joints at 25 Hz, 20 s, {runs} runs of each kind, without a "
            "prior: true base parameters inside their 95 % interval, pooled and of the parameter "
            "that is covered least; root mean square error beside that of `pc-idim-ls`, a "
            "geometric mean.",
            lambda: coverage(runs),
        ),
        "cost": ("Processor time on such logs, on a busy machine.", cost),
    }
    estimate(slow_log.problem(0)[0], "smooth", bootstrap=0)  # compiled
    for name in sys.argv[2:] or parts:
        words, table = parts[name]
        lines = [f"Made by `python benchmarks/smooth.py {runs} {name}`.", "", words, "", *table()]
        (FIGURES / f"smooth-{name}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
