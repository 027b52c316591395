"""How often 95 % intervals contain the truth: Monte-Carlo on a simulated arm.

Run from the top of the project: python benchmarks/intervals.py [RUNS]
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from common import FIGURES, ROOT, coloured

sys.path.insert(0, str(ROOT / "tests"))

import toy

from dynident.core.inertia import from_com, to_com
from dynident.dynamics.idim import Idim, build_idim
from dynident.methods.options import estimate as estimate_by_name
from dynident.regression.problem import Problem

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


def shares(
    method: str, options: dict, runs: int, noise: np.ndarray, rho: float, boundary: bool
) -> tuple[float, float, float, int]:
    """Coverage of our intervals, of the worst parameter's, of the literature's, active runs."""
    robot = toy.arm(2)
    recording, theta = toy.log(robot, seconds=20.0)
    torque = recording.tau
    if boundary:
        idim, motion = build_idim(robot), toy.on_its_motion(recording)
        theta = on_the_boundary(idim, theta)
        torque = idim.torque(theta, motion.q, motion.dq, motion.ddq)
    ours, literature, active = [], [], 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        tau = torque + coloured(rng, torque.shape, rho) * noise
        problem = Problem(robot, toy.on_its_motion(replace(recording, tau=tau), 10.0))
        estimate = estimate_by_name(problem, method, **options)
        error = np.abs(estimate.beta - problem.base.matrix @ theta)
        ours.append(error < 1.96 * estimate.covariance.std)
        literature.append(error < 1.96 * estimate.covariance.literature)
        active += bool(estimate.active)
    worst = 100.0 * float(np.min(np.mean(ours, axis=0)))
    return 100.0 * float(np.mean(ours)), worst, 100.0 * float(np.mean(literature)), active


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    lines = [
        f"Two joints, 20 s of motion, torque noise of unequal size on the joints, {runs} "
        "runs; per cent of the true parameters inside their 95 % interval, pooled, and of the "
        "parameter that is covered least. *Ours* is the covariance that the result names; "
        "*eq. (9)* is the formula of the literature on the same estimates. On the boundary: the "
        "links are thin rods, fv1 and Ia2 almost zero.\n",
        "| robot and noise | method | ours [%] | worst [%] | eq. (9) [%] "
        "| runs with active constraints |",
        "|---|---|---|---|---|---|",
    ]
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
    bound: Fits = (
        ("wls", "wls", {}),
        (
            "pc-idim-ls, prior none, faces",
            "pc-idim-ls",
            {"prior": "none", "gyration": 0.0, "bootstrap": 0},
        ),
        (
            "pc-idim-ls, prior none, bootstrap",
            "pc-idim-ls",
            {"prior": "none", "gyration": 0.0},  # no body of the file is as thin as these rods
        ),
    )
    small, large = np.array([0.1, 1.0]), np.array([0.5, 5.0])
    for label, noise, seconds, fits in (
        ("white, 0.1 and 1 Nm", small, 0.0, chosen),
        ("autocorrelated over 0.05 s, 0.1 and 1 Nm", small, 0.05, chosen),
        ("autocorrelated over 0.2 s, 0.1 and 1 Nm", small, 0.2, chosen),
        ("white, 0.5 and 5 Nm", large, 0.0, usual),
        ("on the boundary, white, 0.05 and 0.5 Nm", 0.1 * large, 0.0, bound),
        ("on the boundary, white, 0.5 and 5 Nm", large, 0.0, bound),
    ):
        rho = 1.0 - 1.0 / (toy.RATE * seconds) if seconds else 0.0
        for name, method, options in fits:
            found = shares(method, options, runs, noise, rho, fits is bound)
            cells = [f"{share:.1f}" for share in found[:3]]
            lines.append(f"| {label} | {name} | {' | '.join(cells)} | {found[3]} |")
    text = "\n".join(lines) + "\n"
    (FIGURES / "intervals.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
