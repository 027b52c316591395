"""How often 95 % intervals contain the truth: Monte-Carlo on a simulated arm.

Run from the top of the project: python benchmarks/coverage.py [RUNS]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import toy  # noqa: E402

from dynident.admissible import Knowledge  # noqa: E402
from dynident.estimators import ESTIMATORS  # noqa: E402
from dynident.problem import Problem  # noqa: E402
from dynident.recording.prepare import prepare  # noqa: E402
from dynident.recording.recording import Recording  # noqa: E402

REPLICATES = 60
"""Of the block bootstrap."""


def coloured(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> np.ndarray:
    """First-order autoregressive noise of unit variance."""
    white = rng.normal(size=shape) * np.sqrt(1.0 - rho**2)
    out = np.empty(shape)
    out[0] = rng.normal(size=shape[1])
    for k in range(1, shape[0]):
        out[k] = rho * out[k - 1] + white[k]
    return out


def shares(
    method: str, options: dict, runs: int, noise: np.ndarray, rho: float
) -> tuple[float, float, int]:
    """Coverage of our intervals, of the literature's formula, and runs with active cones."""
    robot = toy.arm(2)
    recording, theta = toy.log(robot, seconds=20.0)
    ours = seeds = total = active = 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        tau = recording.tau + coloured(rng, recording.tau.shape, rho) * noise
        samples = prepare(Recording("mc", toy.RATE, recording.q, tau), 10.0)
        exact = {"q": recording.q, "dq": recording.dq, "ddq": recording.ddq}
        problem = Problem(robot, type(samples)(**{**vars(samples), **exact}))
        estimate = ESTIMATORS[method](problem, **options)
        error = np.abs(estimate.beta - problem.base.matrix @ theta)
        ours += int(np.sum(error < 1.96 * estimate.covariance.std))
        seeds += int(np.sum(error < 1.96 * estimate.covariance.seed))
        total += len(error)
        active += bool(estimate.active)
    return 100.0 * ours / total, 100.0 * seeds / total, active


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    lines = [
        f"Two joints, 20 s of motion, torque noise of unequal size on the joints, {runs} "
        "runs; per cent of the true parameters inside their 95 % interval, pooled. *Ours* is the "
        "covariance that the result names; *eq. (9)* is the formula of the literature on the same "
        "estimates.\n",
        "| noise | method | ours [%] | eq. (9) [%] | runs with active constraints |",
        "|---|---|---|---|---|",
    ]
    for label, noise, rho in (
        ("white, 0.1 and 1 Nm", np.array([0.1, 1.0]), 0.0),
        ("autocorrelated over 0.2 s, 0.1 and 1 Nm", np.array([0.1, 1.0]), 0.995),
        ("white, 0.5 and 5 Nm", np.array([0.5, 5.0]), 0.0),
    ):
        for method, options in (
            ("ols", {}),
            ("wls", {}),
            ("irls", {}),
            ("pc-idim-ls", {"knowledge": Knowledge(prior="none")}),
            ("pc-idim-ls", {"knowledge": Knowledge(prior="none"), "bootstrap": REPLICATES}),
            ("pc-idim-ls", {"knowledge": Knowledge(prior="nominal")}),
            ("pc-idim-ls", {"knowledge": Knowledge(prior="nominal"), "bootstrap": REPLICATES}),
        ):
            ours, seed, active = shares(method, options, runs, noise, rho)
            name = method
            if options:
                name += f", prior {options['knowledge'].prior}"
                name += ", bootstrap" if "bootstrap" in options else ""
            lines.append(f"| {label} | {name} | {ours:.1f} | {seed:.1f} | {active} |")
    text = "\n".join(lines) + "\n"
    (ROOT / "docs" / "figures" / "coverage.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
