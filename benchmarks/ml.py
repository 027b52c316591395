"""Maximum likelihood with noisy encoders beside least squares: coverage, bias, held-out errors.

Run from the top of the project: python benchmarks/ml.py [RUNS]
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from common import FIGURES, ROOT, markdown
from logs import LWR4, LWR4_MISSING, lwr4_logs, tx40_halves

sys.path.insert(0, str(ROOT / "tests"))

import toy

import dynident as di
from dynident.core.arrays import Array
from dynident.methods.options import estimate
from dynident.recording.prepare import Samples
from dynident.robot.model import Robot
from dynident.smoothing.propagation import estimate_encoder_noise

METHODS = ("wls", "ml")
COMPARED = ("wls", "ml", "pc-idim-ls")


def scalar(runs: int, rows: int = 400) -> list[str]:
    """``y = 2 x`` with noise of 1 in y and of 0.5 in x, by three criteria."""
    rng = np.random.default_rng(0)
    grid = np.linspace(0.5, 3.5, 3001)
    found: list[list[float]] = [[], [], []]
    for _ in range(runs):
        x = np.sin(np.arange(rows))
        y, x = 2.0 * x + rng.normal(size=rows), x + 0.5 * rng.normal(size=rows)
        squares = y @ y - 2.0 * grid * (x @ y) + grid**2 * (x @ x)
        s2 = 1.0 + 0.25 * grid**2
        for k, criterion in enumerate((squares, squares / s2 + rows * np.log(s2), squares / s2)):
            found[k].append(float(grid[np.argmin(criterion)]))
    labels = ("sum e^2", "sum e^2 / s^2 + log s^2", "sum e^2 / s^2")
    return markdown(
        ["criterion", "mean", "standard deviation"],
        [
            [name, f"{np.mean(each):.3f}", f"{np.std(each):.3f}"]
            for name, each in zip(labels, found, strict=True)
        ],
    )


def simulated(runs: int) -> list[str]:
    """Coverage of 95 % intervals, worst bias and errors, by the noise of the encoders."""
    robot, lines = toy.arm(2), []
    for encoder, torque, friction in (
        (1e-5, 0.5, "viscous"),
        (3e-4, 0.5, "viscous"),
        (1e-3, 0.5, "viscous"),
        (1e-3, 2.0, "viscous"),
        (1e-3, 0.5, "coulomb-viscous"),
    ):
        clean, theta = toy.log(robot, seconds=20.0, friction=friction)
        errors: dict[str, list[Array]] = {method: [] for method in METHODS}
        stds: dict[str, list[Array]] = {method: [] for method in METHODS}
        for run in range(runs):
            rng = np.random.default_rng(run)
            q = clean.q + encoder * rng.normal(size=clean.q.shape)
            tau = clean.tau + torque * rng.normal(size=q.shape)
            logged = replace(clean, q=q, tau=tau, dq=None, ddq=None)
            problem = di.Problem(robot, di.prepare(logged, 10.0), friction)
            truth = problem.base.matrix @ theta
            for method in METHODS:
                one = estimate(problem, method)
                errors[method].append(one.beta - truth)
                stds[method].append(one.covariance.std)
        least = np.sqrt(np.mean(np.square(errors["wls"]), axis=0))
        for method in METHODS:
            error, std = np.array(errors[method]), np.array(stds[method])
            inside = np.abs(error) < 1.96 * std
            rms = np.sqrt(np.mean(error**2, axis=0))
            lines.append([
                f"{encoder:g} rad, {torque:g} Nm, {friction}",
                method,
                f"{100.0 * np.mean(inside):.1f}",
                f"{100.0 * np.min(np.mean(inside, axis=0)):.1f}",
                f"{np.max(np.abs(error.mean(axis=0)) / error.std(axis=0)):.2f}",
                f"{np.exp(np.mean(np.log(rms / least))):.2f}",
                f"{np.exp(np.mean(np.log(std.mean(axis=0) / error.std(axis=0)))):.2f}",
            ])  # fmt: skip
    return markdown(
        ["noise, friction", "method", "inside 95 % [%]", "worst [%]", "worst bias / sd",
         "rms error / wls", "std / sd"], lines,
    )  # fmt: skip


def held_out(
    name: str, robot: Robot, fitted: list[Samples], other: Samples, friction: str
) -> list[list[str]]:
    """Errors on rows of a log that was not fitted, of each method."""
    problem = di.Problem(robot, fitted, friction)
    test = problem.on(other)
    encoders = np.sqrt(np.mean([estimate_encoder_noise(log) ** 2 for log in fitted], axis=0))
    lines, first = [], None
    for method in COMPARED:
        one = estimate(problem, method)
        first = one if first is None else first
        shares = [
            100.0
            * np.sqrt(np.sum(factors.squared_residuals(one.beta) / factors.squared_torques.sum()))
            for factors in (problem.factors, test.factors)
        ]
        away = np.max(np.abs(one.beta - first.beta) / first.covariance.std)
        lines.append([
            name,
            f"{encoders.min():.1e} to {encoders.max():.1e}",
            method,
            *(f"{share:.2f}" for share in shares),
            f"{away:.1f}" if method == "ml" else "",
            "; ".join(one.warnings) if method == "ml" else "",
        ])  # fmt: skip
    return lines


def measured() -> list[str]:
    """The TX40's log in halves, and the LWR4+'s three logs."""
    study, robot, first, second = tx40_halves()
    lines = held_out("TX40", robot, [first], second, study.robot.friction or "coulomb-viscous")
    if LWR4.exists():
        lwr4, logs = lwr4_logs()
        for k in (1, 2, 3):
            others = [log for j, log in logs.items() if j != k]
            lines += held_out(f"LWR4+, without log {k}", lwr4, others, logs[k], "coulomb-viscous")
    table = markdown(
        ["log", "noise of the positions [rad]", "method", "fitted [%]", "held out [%]",
         "farthest from wls [std]", "warnings"], lines,
    )  # fmt: skip
    return table if LWR4.exists() else [*table, "", LWR4_MISSING]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    lines = [
        "Made by `python benchmarks/ml.py`.",
        "",
        "One parameter, `y = 2 x`, 400 rows, noise of 1 in y and of 0.5 in x: where three criteria "
        "have their minimum, over 400 runs.",
        "",
        *scalar(400),
        "",
        f"Two joints, 20 s at 1 kHz, bandwidth 10 Hz, {runs} runs: true parameters inside their "
        "95 % interval, pooled and of the parameter that is covered least; the largest bias; root "
        "mean square error beside that of `wls`, and stated over actual standard deviation, "
        "geometric means over the parameters. `ml` is told no noise.",
        "",
        *simulated(runs),
        "",
        "Measured logs: relative error on the fitted rows and on those of another half or log.",
        "",
        *measured(),
    ]
    text = "\n".join(lines) + "\n"
    (FIGURES / "ml.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
