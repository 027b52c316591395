"""Averaging over periods: what it gives beside filtering all of them, simulated and measured.

Run from the top of the project: python benchmarks/periods.py
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
from common import FIGURES, ROOT, markdown
from logs import LWR4, LWR4_MISSING, lwr4_logs

import dynident as di

DRAWS = 100
FRICTION = "viscous-offset"
NOISES = ((1e-4, False), (1e-4, True), (2e-3, False), (2e-2, False))
"""Of the positions [rad], and whether that of the torque is coloured."""


def simulated() -> list[list[str]]:
    """Bias, spread and coverage over noisy copies of a log of eight periods."""
    sys.path.insert(0, str(ROOT / "tests"))
    # by name: tests are not typed
    tests: Any = importlib.import_module("test_periods")
    recording, robot, theta = tests.clean(friction=FRICTION)
    found = []
    for position, coloured in NOISES:
        for label, options in (("mean", {"period": tests.PERIOD}), ("filtered", {})):
            beta, std, rejected = [], [], []
            for seed in range(DRAWS):
                log = tests.noisy(recording, np.random.default_rng(seed), coloured, position)
                samples = di.prepare(log, 5.0, position_hz=20.0, **options)
                problem = di.Problem(robot, samples, FRICTION)
                fit = di.identify(problem, "wls", doctor=False)
                beta.append(fit.estimate.beta)
                std.append(fit.estimate.covariance.std)
                rejected += [test.p_value < 0.05 for test in fit.estimate.tests]
            truth = problem.base.matrix @ theta
            error = np.array(beta) - truth
            size = np.abs(truth)
            bias = 100 * np.median(np.abs(error.mean(axis=0)) / size)
            rms = 100 * np.median(np.sqrt(np.mean(error**2, axis=0)) / size)
            covered = 100 * np.mean(np.abs(error) < 1.96 * np.array(std))
            refused = f"{100 * np.mean(rejected):.0f}" if rejected else ""
            found.append([
                f"{position:g}", "coloured" if coloured else "white", label, f"{bias:.3f}",
                f"{rms:.2f}", f"{covered:.1f}", refused,
            ])  # fmt: skip
    return found


def measured() -> list[list[str]]:
    """Log 3 of the LWR4+, whose motion repeats, tested on the others."""
    robot, logs = lwr4_logs()
    columns = {"time": "times", "q": "positions_*", "tau": "torques_*"}
    log = di.read_log(LWR4 / "measurements_3.npz", robot, columns=columns)
    mean = di.prepare(log, 10.0, period="found", warmup=1)
    assert mean.averaging is not None
    length = mean.averaging.period * log.rate
    same = di.prepare(log.rows(int(length), int(3 * length)), 10.0)
    found = []
    for label, samples in ((mean.averaging.words, mean), ("the same periods, filtered", same)):
        problem = di.Problem(robot, samples, rotor=False)
        for method in ("wls", "pc-idim-ls"):
            options: dict[str, Any] = {"bootstrap": 0} if method.startswith("pc-") else {}
            fit = di.identify(problem, method, doctor=False, **options)
            errors = [f"{di.validate(fit, logs[k])[0].overall_percent:.2f}" for k in (1, 2)]
            tests = [f"{np.sqrt(test.statistic):.1f}" for test in fit.estimate.tests]
            found.append([label, str(problem.factors.rows), method, *errors, "".join(tests)])
    return found


def main() -> None:
    lines = [
        "# Averaging over periods",
        "",
        "Written by `benchmarks/periods.py`.",
        "",
        "## Simulated",
        "",
        f"Two joints, 8.4 periods of 503.425 samples, {DRAWS} draws of noise, `wls` with viscous",
        "friction. Medians over the base parameters of the bias of the mean and of the rms error,",
        "in % of the values; coverage of 95 % intervals; how often the test of the fit (mean",
        "alone) has p < 0.05, where the model is right but for the noise of the positions.",
        "",
        *markdown(
            ["position noise [rad]", "torque noise", "rows", "bias", "rms", "coverage", "p < 0.05"],
            simulated(),
        ),
        "",
        "## LWR4+, log 3",
        "",
    ]
    if LWR4.is_dir():
        lines += [
            "Its motion repeats, after a start that is none of it. Held-out errors [%] of filtered",
            "and decimated rows on logs 1 and 2, another motion. The last column: the errors of",
            "the worst joint over the noise that the periods show.",
            "",
            *markdown(["rows", "count", "method", "log 1", "log 2", "over the noise"], measured()),
            "",
        ]
    else:
        lines += [LWR4_MISSING, ""]
    text = "\n".join(lines).rstrip() + "\n"
    (FIGURES / "periods.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
