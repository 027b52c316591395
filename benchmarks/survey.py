"""Other routes beside least squares: energy, joint by joint, instruments for curved friction.

The TX40's log in halves, and its twin with noise of torques and encoders. Writes
docs/figures/survey.md.

Run from the top of the project: python benchmarks/survey.py [RUNS]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from common import FIGURES, ROOT, markdown
from logs import tx40_halves

sys.path.insert(0, str(ROOT / "tests"))

import toy
from loops import stribeck_loop, stribeck_truth

import dynident as di
from dynident.control.reference import fourier
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.dynamics.idim import Idim, build_idim
from dynident.estimators.closed_loop import Simulation
from dynident.estimators.estimate import Estimate
from dynident.methods.options import estimate
from dynident.recording.recording import Recording
from dynident.regression.energy import build_energy_rows
from dynident_papers.twin import FRICTION, load_twin

OUT = FIGURES / "survey.md"
METHODS = ("wls", "energy", "sequential")
CURVED: dict[str, dict[str, Any]] = {
    "wls": {},
    "idim-iv": {},
    'idim-iv, curves = "simulated"': {"curves": "simulated"},
}
NOISES = ((0.05, 0.0), (0.05, 1e-4), (0.05, 1e-3), (0.01, 1e-3))
"""Noise of the torque, as a share of it, and of the encoders [rad]."""


def measure_ratio(one: Array, other: Array) -> float:
    """Geometric mean of the ratios."""
    return float(np.exp(np.mean(np.log(one / other))))


def measured() -> list[str]:
    """Errors of torques on both halves of the TX40's log, and error bars."""
    study, robot, first, second = tx40_halves()
    problem = di.Problem(robot, first, study.robot.friction or "coulomb-viscous")
    test, found, lines = problem.on(second), dict[str, Estimate](), []
    for method in METHODS:
        one = found[method] = estimate(problem, method)
        least = found["wls"]
        shares = [
            100.0 * np.sqrt(np.sum(f.squared_residuals(one.beta)) / np.sum(f.squared_torques))
            for f in (problem.factors, test.factors)
        ]
        away = np.abs(one.beta - least.beta) / np.hypot(one.covariance.std, least.covariance.std)
        lines.append([
            method,
            *(f"{share:.2f}" for share in shares),
            f"{measure_ratio(one.covariance.std, least.covariance.std):.1f}",
            f"{np.max(away):.1f}",
            one.message,
        ])  # fmt: skip
    return markdown(
        ["method", "fitted [%]", "held out [%]", "std / wls", "farthest from wls [std of both]",
         "its message"], lines,
    )  # fmt: skip


def simulated(name: str, idim: Idim, theta: Array, runs: int) -> list[list[str]]:
    """Errors and coverage of a simulated robot, by the noise of torques and encoders."""
    n, lines = idim.robot.n, []
    sine, cosine = np.random.default_rng(0).uniform(-0.5, 0.5, (2, n, 10))
    motion = fourier(500.0, 20.0, 0.1, np.zeros(n), sine, cosine)
    clean = idim.torque(theta, motion.q, motion.dq, motion.ddq)
    for share, encoder in NOISES:
        errors: dict[str, list[Array]] = {method: [] for method in METHODS}
        stds: dict[str, list[Array]] = {method: [] for method in METHODS}
        for run in range(runs):
            rng = np.random.default_rng(run)
            q = motion.q + encoder * rng.normal(size=motion.q.shape)
            tau = clean + share * clean.std(axis=0) * rng.normal(size=clean.shape)
            samples = di.prepare(Recording("twin", 500.0, q, tau), 5.0)
            problem = di.Problem(idim.robot, samples, FRICTION)
            truth = problem.base.matrix @ theta
            for method in METHODS:
                one = estimate(problem, method)
                errors[method].append(one.beta - truth)
                stds[method].append(one.covariance.std)
        rms = {m: np.sqrt(np.mean(np.square(each), axis=0)) for m, each in errors.items()}
        work = build_energy_rows(problem).factors
        for method in METHODS:
            inside = np.abs(errors[method]) < 1.96 * np.array(stds[method])
            bias = np.abs(np.mean(errors[method], axis=0)) / np.std(errors[method], axis=0)
            factors = work if method == "energy" else problem.factors
            lines.append([
                f"{name}, {100.0 * share:g} %, {encoder:g} rad",
                method,
                str(factors.rows),
                f"{factors.weighted(factors.ones).condition()[0]:.0f}",
                f"{measure_ratio(rms[method], rms['wls']):.2f}",
                f"{100.0 * np.mean(inside):.1f}",
                f"{np.median(bias):.2f}",
            ])  # fmt: skip
    return lines


def curved(runs: int) -> list[str]:
    """Errors of Stribeck friction under noisy positions: mean and standard deviation."""
    model, theta = stribeck_truth()
    names, lines = ("fv1", "fc1", "fs1", "vs1"), []
    for noise in (0.0, 2e-4, 5e-4, 1e-3):
        errors: dict[str, list[Array]] = {name: [] for name in CURVED}
        for run in range(runs):
            problem, control, width = stribeck_loop(run, noise)
            own = {"simulation": Simulation(control, width=width)}
            truth = [*(problem.base.matrix @ theta), *model.shape]
            known = (*problem.base.names, *(each.name for each in model.shape_parameters))
            places = [known.index(name) for name in names]
            for name, options in CURVED.items():
                method, *_ = name.split(",")
                given = own | options if method != "wls" else {}
                try:
                    found = di.identify(problem, method, doctor=False, **given).estimate
                except ComputationError:
                    continue
                assert found.shape is not None
                values = np.array([*found.beta, *found.shape.values])
                errors[name].append((values - truth)[places])
        for name, each in errors.items():
            pairs = zip(np.mean(each, axis=0), np.std(each, axis=0), strict=True)
            cells = [f"{mean:.3f} ± {std:.3f}" for mean, std in pairs]
            lines.append([f"{noise:g} rad", name, *cells, f"{len(each)} of {runs}"])
    return markdown(["noise", "method", *names, "settled"], lines)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 36
    small, twin = build_idim(toy.arm(2), FRICTION), load_twin()
    lines = [
        "Made by `python benchmarks/survey.py`.",
        "",
        "The TX40's log: errors of torques in per cent of them, on the half that was fitted and on "
        "the other; std / wls is a geometric mean over the base parameters.",
        "",
        *measured(),
        "",
        "Simulated robots, 20 s of a Fourier motion of ten harmonics at 500 Hz, bandwidth 5 Hz, "
        f"{runs} runs: noise of the torque as a share of it and of the encoders; condition is that "
        "of the scaled regressor.",
        "",
        *markdown(
            [
                "robot, noise",
                "method",
                "rows",
                "condition",
                "rms error / wls",
                "inside 95 % [%]",
                "median bias / sd",
            ],
            [
                *simulated(
                    "two joints", small, toy.true_parameters(small, small.robot.nominal), runs
                ),
                *simulated("TX40's twin", twin.idim, twin.theta, runs),
            ],
        ),
        "",
        "A pendulum with Stribeck friction (fv 2, fc 3, fs 4, vs 0.3 rad/s) under control, 16 s: "
        f"mean error and its standard deviation over {runs // 3} runs, of those that settled.",
        "",
        *curved(runs // 3),
    ]
    OUT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
