"""How often 95 % intervals contain the truth: Monte-Carlo on a simulated arm.

Run from the top of the project: python benchmarks/intervals.py [RUNS] [--constraints | --methods]
Writes docs/figures/intervals.md, with `--constraints` intervals_constraints.md, with `--methods`
intervals_methods.md.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np
from common import FIGURES, ROOT, coloured, markdown

sys.path.insert(0, str(ROOT / "tests"))

import toy

from dynident.core.inertia import from_com, to_com
from dynident.dynamics.idim import Idim, build_idim
from dynident.estimators.estimate import compute_intervals
from dynident.methods.options import estimate as estimate_by_name
from dynident.regression.problem import Problem

SMALL, LARGE = np.array([0.1, 1.0]), np.array([0.5, 5.0])
"""Noise of the joints' torques [Nm]."""
Truth = Callable[[Idim, np.ndarray], np.ndarray]
"""Other values of the parameters."""
Fits = tuple[tuple[str, str, dict[str, object]], ...]
"""Labels, methods and their options."""


def on_the_boundary(idim: Idim, theta: np.ndarray) -> np.ndarray:
    """The same arm of thin rods, one joint almost without friction, one almost without rotor."""
    theta = theta.copy()
    for k in range(idim.tree.bodies):
        span = slice(10 * k, 10 * k + 10)
        mass, com, inertia = to_com(theta[span])
        values, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
        second = (axes * values * [1e-4, 1e-4, 1.0]) @ axes.T
        theta[span] = from_com(mass, com, np.trace(second) * np.eye(3) - second)
    for k, parameter in enumerate(idim.parameters):
        if parameter.name in ("fv1", "Ia2"):
            theta[k] = 1e-4
    return theta


def with_little_friction(times: float) -> Truth:
    """The same arm with all friction so many standard deviations of `wls` from zero."""

    def change(idim: Idim, theta: np.ndarray) -> np.ndarray:
        recording, _ = toy.log(toy.arm(2), seconds=20.0)
        rng = np.random.default_rng(0)
        tau = recording.tau + coloured(rng, recording.tau.shape, 0.0) * LARGE
        problem = Problem(toy.arm(2), toy.on_its_motion(replace(recording, tau=tau), 10.0))
        std = dict(
            zip(problem.base.names, estimate_by_name(problem, "wls").covariance.std, strict=True)
        )
        names = [parameter.name for parameter in idim.parameters]
        found = theta.copy()
        for name in ("fv1", "fv2", "fc1", "fc2"):
            found[names.index(name)] = times * std[name]
        return found

    return change


@dataclass(frozen=True)
class Coverage:
    """Per cent of true parameters inside their intervals, and runs with active constraints."""

    ours: np.ndarray
    matrix: np.ndarray
    """By the deviations of the covariance matrix alone."""
    literature: np.ndarray
    """Each of a parameter."""
    active: int


def measure_coverage(
    method: str,
    options: dict,
    runs: int,
    noise: np.ndarray,
    rho: float,
    truth: Truth | None,
    seconds: float = 20.0,
) -> Coverage:
    """Of one method on one arm."""
    robot = toy.arm(2)
    recording, theta = toy.log(robot, seconds=seconds)
    torque = recording.tau
    if truth is not None:
        idim, motion = build_idim(robot), toy.on_its_motion(recording)
        theta = truth(idim, theta)
        torque = idim.torque(theta, motion.q, motion.dq, motion.ddq)
    ours, matrix, literature, active = [], [], [], 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        tau = torque + coloured(rng, torque.shape, rho) * noise
        problem = Problem(robot, toy.on_its_motion(replace(recording, tau=tau), 10.0))
        estimate = estimate_by_name(problem, method, **options)
        wanted = problem.base.matrix @ theta
        _, low, high = compute_intervals(estimate, problem.base.names)
        ours.append((low <= wanted) & (wanted <= high))
        error = np.abs(estimate.beta - wanted)
        matrix.append(error < 1.96 * estimate.covariance.std)
        literature.append(error < 1.96 * estimate.covariance.literature)
        active += bool(estimate.active)
    inside = (100.0 * np.mean(own, axis=0) for own in (ours, matrix, literature))
    return Coverage(next(inside), next(inside), next(inside), active)


def main() -> None:
    """Write one of the pages."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    runs = numbers[0] if numbers else 300
    if "--constraints" in sys.argv[1:]:
        write_constraints(runs)
    elif "--methods" in sys.argv[1:]:
        write_other_methods(runs)
    else:
        write_methods(runs)


def write_methods(runs: int) -> None:
    """Of all least squares, under white and correlated noise."""
    usual: Fits = (
        ("ols", "ols", {}),
        ("wls", "wls", {}),
        ("irls", "irls", {}),
        ("pc-idim-ls, prior none", "pc-idim-ls", {"prior": "none"}),
        ("pc-idim-ls, prior nominal", "pc-idim-ls", {"prior": "nominal"}),
    )
    chosen: Fits = (
        *usual,
        ("wls, covariance robust", "wls", {"covariance": "robust"}),
        ("wls, covariance bartlett", "wls", {"covariance": "bartlett"}),
        ("wls, covariance hac", "wls", {"covariance": "hac"}),
        ("wls, covariance clustered", "wls", {"covariance": "clustered"}),
    )
    rows = []
    for label, noise, seconds, fits in (
        ("white, 0.1 and 1 Nm", SMALL, 0.0, chosen),
        ("autocorrelated over 0.05 s, 0.1 and 1 Nm", SMALL, 0.05, chosen),
        ("autocorrelated over 0.2 s, 0.1 and 1 Nm", SMALL, 0.2, chosen),
        ("white, 0.5 and 5 Nm", LARGE, 0.0, usual),
    ):
        rho = 1.0 - 1.0 / (toy.RATE * seconds) if seconds else 0.0
        for name, method, options in fits:
            found = measure_coverage(method, options, runs, noise, rho, None)
            shares = np.mean(found.ours), np.min(found.ours), np.mean(found.literature)
            rows.append([label, name, *(f"{share:.1f}" for share in shares), f"{found.active}"])
            print(*rows[-1], flush=True)
    header = ["noise", "method", "ours [%]", "worst [%]", "eq. (9) [%]",
              "runs with active constraints"]  # fmt: skip
    lines = [
        f"Two joints, 20 s of motion, torque noise of unequal size on the joints, {runs} "
        "runs; per cent of the true parameters inside their 95 % interval, pooled, and of the "
        "parameter that is covered least. *Ours* is the interval that the result has; "
        "*eq. (9)* is the formula of the literature on the same estimates.",
        "",
        *markdown(header, rows),
    ]
    (FIGURES / "intervals.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


FREE: dict[str, object] = {"prior": "none", "gyration": 0.0}
"""No body of the file is as thin as the rods are."""
WAYS: dict[str, dict[str, object]] = {"faces": {**FREE, "bootstrap": 0}, "bootstrap": FREE}
NEAR: dict[str, tuple[np.ndarray, Truth]] = {
    "all friction at half its standard deviation": (LARGE, with_little_friction(0.5)),
    "at its standard deviation": (LARGE, with_little_friction(1.0)),
    "at half again as much": (LARGE, with_little_friction(1.5)),
    "links are thin rods, a joint without viscous friction": (LARGE, on_the_boundary),
    "the same with a tenth of the noise": (0.1 * LARGE, on_the_boundary),
}


def measure_near(case: tuple[str, str, int]) -> Coverage:
    """Of values near their bounds, a way to the covariance matrix, and runs."""
    label, way, runs = case
    noise, truth = NEAR[label]
    return measure_coverage("pc-idim-ls", WAYS[way], runs, noise, 0.0, truth)


def write_constraints(runs: int) -> None:
    """Of parameters at their bounds and beside them."""
    cases = list(itertools.product(NEAR, WAYS, (runs,)))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = dict(zip([case[:2] for case in cases], pool.map(measure_near, cases), strict=True))
    rows = []
    for label in NEAR:
        faces, drawn = (found[label, way] for way in WAYS)
        shares = faces.ours, faces.matrix, drawn.matrix
        cells = [f"{np.min(own):.1f} to {np.max(own):.1f}" for own in shares]
        rows.append([label, *cells, f"{faces.active}"])
    lines = [
        "Made by `benchmarks/intervals.py --constraints`.",
        "",
        *markdown(["true values", "ours [%]", "matrix on the faces [%]",
                   "matrix of the bootstrap [%]", "runs with active constraints"], rows),
        "",
        f"Two joints, 20 s of motion, {runs} runs, white noise of 0.5 and 5 Nm, `pc-idim-ls` "
        "without a prior: per cent of the runs in which the 95 % interval holds the true value, "
        "of the base parameters that are covered least and most; by the intervals of the "
        "result, and by 1.96 deviations of the covariance matrix alone.",
    ]  # fmt: skip
    page = FIGURES / "intervals_constraints.md"
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


OTHER: dict[str, tuple[str, dict[str, object]]] = {
    "wls": ("wls", {}),
    "energy": ("energy", {}),
    "sequential": ("sequential", {}),
    "ml": ("ml", {}),
    "rls": ("rls", {}),
    "rls, memory 5 s": ("rls", {"memory": 5.0}),
    "kf": ("kf", {}),
    "kf, walk 0.01": ("kf", {"walk": 0.01}),
    "ekf": ("ekf", {}),
    "nls": ("nls", {}),
    "gradient, 300 iterations": ("gradient", {"iterations": 300}),
    "ga, 30 generations": ("ga", {"generations": 30}),
    "pf, 30 steps": ("pf", {"steps": 30}),
}
"""`wls`, and what intervals.md does not have and needs no loop; searches that end early."""
LENGTHS, CORRELATED = (20.0, 8.0), (0.0, 0.05)
"""Of logs, and of the noise's correlation [s]."""


def measure_other(case: tuple[str, float, float, int]) -> Coverage:
    """Of a fit, the length of the log, the correlation of its noise, and runs."""
    label, length, seconds, runs = case
    rho = 1.0 - 1.0 / (toy.RATE * seconds) if seconds else 0.0
    method, options = OTHER[label]
    return measure_coverage(method, options, runs, SMALL, rho, None, length)


def write_other_methods(runs: int) -> None:
    """Of methods beside least squares, on a log and on a short one."""
    cases = list(itertools.product(OTHER, LENGTHS, CORRELATED, (runs,)))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = dict(zip([case[:3] for case in cases], pool.map(measure_other, cases), strict=True))
    rows = []
    for label in OTHER:
        cells = [found[label, *each].ours for each in itertools.product(LENGTHS, CORRELATED)]
        rows.append([label, *(f"{np.mean(own):.1f} ({np.min(own):.1f})" for own in cells)])
    noise = [f"correlated over {each:g} s" if each else "white" for each in CORRELATED]
    header = [f"{length:g} s, {each} [%]" for length in LENGTHS for each in noise]
    lines = [
        "Made by `benchmarks/intervals.py --methods`.",
        "",
        *markdown(["method", *header], rows),
        "",
        f"Two joints, noise of 0.1 and 1 Nm, {runs} runs: per cent of the base parameters inside "
        "their 95 % interval, pooled, and in brackets of the one that is covered least. The true "
        "parameters are constant: forgetting and random walks expect them to drift, and their "
        "intervals are longer.",
    ]
    (FIGURES / "intervals_methods.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
