"""How often the intervals of encoder fits hold the truth: Monte-Carlo on twins of two robots.

Each twin is the robot of `encoder.py` with known drives, delay and biases, simulated under the
measured log's law and targets, and read by encoders that count. Writes
docs/figures/encoder_twins.md.

Run from the top of the project: python benchmarks/encoder_twins.py [RUNS]
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import FIGURES, markdown
from encoder import CASES, Case

import dynident as di
from dynident.consistency.constraints import Fixed
from dynident.control.controller import pd
from dynident.core.arrays import Array
from dynident.encoders.drives import DriveFitOptions, choose_loop_kinds
from dynident.encoders.errors import linearise_encoder_errors
from dynident.encoders.servo import list_columns
from dynident.encoders.unknowns import Unknowns
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.estimators.estimate import DrivesEstimate
from dynident.simulation.rollout import rollout

COUNT = 2.0 * np.pi / 2**15
"""Of an encoder of 15 bits [rad]."""
NOISE = 1e-4
"""Beside the counts [rad]."""
DELAY = 0.0083
"""Of the targets: no whole number of samples [s]."""
SAMPLES = 1600


def truth_of(case: Case, n: int, zeros: bool) -> tuple[Array, Array]:
    """Drives ``Ia fv fc off`` and biases: offset torques or encoders' zeros.

    One hides the other. A zero that is off by b turns the law's torque by kp b, and gravity's
    direction by b: where both are fitted, the second alone tells them apart.
    """
    rng = np.random.default_rng(7)
    drives = np.column_stack([
        rng.uniform(0.03, 0.2, n), rng.uniform(0.5, 4.0, n), rng.uniform(0.2, 2.0, n),
        rng.uniform(-0.5, 0.5, n),
    ])  # fmt: skip
    if case.scored > 6:  # the drives of a light leg
        drives *= [0.3, 0.2, 0.2, 0.5]
    bias = rng.uniform(-0.02, 0.02, n)
    drives[:, 3] *= not zeros
    return drives, bias * zeros


def twins(case: Case, runs: int, zeros: bool) -> tuple[Array, Array, list[DrivesEstimate]]:
    """True values in the names' order, the bound of their errors, and the estimate of each run."""
    robot = di.load_robot(str(case.robot))
    log = di.read_log(case.log, robot, torque=False)
    log = log.rows(0, min(SAMPLES, len(log.q)))
    n = robot.n
    drives, bias = truth_of(case, n, zeros)
    blind = [j for j in range(n) if vertical(robot, j)]
    bias[blind] = 0.0
    problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
    simulation = Simulation(pd(case.kp, case.kd), width=0.05)
    true = {"delay": DELAY, **{f"bias{j + 1}": float(bias[j]) for j in range(n)}}
    tuned = simulation.of_encoders().with_values(true)
    theta = np.concatenate([robot.nominal.ravel(), drives.ravel()])
    motion = rollout(build_auxiliary_model(problem, tuned).loops[0][0][2], theta)
    known = [Fixed("off", 0.0), *(Fixed(f"bias{j + 1}", 0.0) for j in blind)] if zeros else []
    loop = "delay,bias" if zeros else "delay"
    found: list[DrivesEstimate] = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        q = motion.measured + NOISE * rng.normal(size=motion.q.shape)
        q = COUNT * np.round(q / COUNT)
        twin = di.Recording("twin", log.rate, q, np.zeros_like(q), qref=log.qref, torque="none")
        own = di.Problem(robot, di.prepare(twin, bandwidth=10.0))
        fit = di.identify(own, "cloe", simulation=simulation, loop=loop, constraints=known)
        assert fit.estimate.fitted is not None
        found.append(fit.estimate.fitted)
    for j in range(n):
        for k, symbol in enumerate(("Ia", "fv", "fc", "off")):
            true[f"{symbol}{j + 1}"] = float(drives[j, k])
    values = np.array([true[name] for name in found[0].names])
    exact = di.Recording("exact", log.rate, motion.measured, np.zeros_like(motion.q),
                         qref=log.qref, torque="none")  # fmt: skip
    problem = di.Problem(robot, di.prepare(exact, bandwidth=10.0))
    start = np.concatenate([motion.measured[0], motion.dq[0]])
    fitting = DriveFitOptions(loop=loop, constraints=tuple(known))
    return values, bound(problem, simulation, fitting, np.concatenate([values, start])), found


def bound(problem: di.Problem, simulation: Simulation, fitting: DriveFitOptions, x: Array) -> Array:
    """Standard deviations that no unbiased estimate is below (Cramer and Rao), in names' order.

    Of the noise-free log's information at the true values and starts, for white errors of the
    encoders; what is known is no unknown.
    """
    simulation, idim = simulation.of_encoders(), problem.idim
    own = list_columns(choose_loop_kinds(fitting, simulation), problem.robot.n)
    unknowns = Unknowns(idim, own, np.ones(len(x)), idim.inertial, 1)
    known = [
        name
        for one in fitting.constraints
        if isinstance(one, Fixed)
        for name in unknowns.expanded(one.parameters)
    ]
    free = np.array([name not in known for name in unknowns.names])
    white = np.hypot(NOISE, COUNT / np.sqrt(12.0))
    factors = linearise_encoder_errors(problem, simulation, unknowns, x).factors
    A = np.vstack([group.factor[:, :-1] for group in factors])[:, free] / white
    scale = np.linalg.norm(A, axis=0)
    R = np.linalg.qr(A / scale, mode="r")
    least = np.zeros(len(x))
    least[free] = np.linalg.norm(np.linalg.inv(R), axis=1) / scale
    return least[: unknowns.asked]


def vertical(robot: di.Robot, joint: int) -> bool:
    """Whether nothing tells a joint's zero: the first one, about gravity's direction."""
    own = robot.joints[joint]
    along = float(own.rotation @ own.axis @ robot.gravity)
    return own.parent == 0 and abs(along) > 0.999 * float(np.linalg.norm(robot.gravity))


def table(true: Array, least: Array, found: list[DrivesEstimate]) -> list[str]:
    """One row a symbol: worst error, worst in sigmas, coverage, and the bound of all errors."""
    names = found[0].names
    errors = np.array([one.values for one in found]) - true
    std = np.array([one.std for one in found])
    rows = []
    inside = np.abs(errors) <= 1.96 * std
    places: dict[str, list[int]] = {}
    for k in np.flatnonzero(np.any(std > 0.0, axis=0)):
        places.setdefault(names[k].rstrip("0123456789"), []).append(int(k))
    for symbol, own in places.items():
        each = errors[:, own]
        middle = np.sqrt(np.mean(each**2, axis=0))
        share = std[:, own].mean(axis=0) / each.std(axis=0, ddof=1)
        shift = each.mean(axis=0) / each.std(axis=0, ddof=1)
        rows.append([
            f"`{symbol}`", str(len(own)), f"{middle.min():.2g} to {middle.max():.2g}",
            f"{least[own].min():.2g} to {least[own].max():.2g}",
            f"{np.sqrt(np.mean((middle / least[own]) ** 2)):.2f}",
            f"{np.abs(each).max():.2g}",
            f"{100.0 * inside[:, own].mean():.1f}",
            f"{100.0 * inside[:, own].mean(axis=0).min():.0f}",
            f"{np.abs(each / std[:, own]).max():.1f}",
            f"{share.min():.2f} to {share.max():.2f}", f"{np.abs(shift).max():.2f}",
        ])  # fmt: skip
    every = np.any(std > 0.0, axis=0)
    ratio = np.sqrt(np.mean((errors[:, every] / least[every]) ** 2))
    share, worst = inside[:, every].mean(), inside[:, every].mean(axis=0).min()
    rows.append([
        "all", str(int(every.sum())), "", "", f"{ratio:.2f}", "", f"{100.0 * share:.1f}",
        f"{100.0 * worst:.0f}", "", "", "",
    ])  # fmt: skip
    header = ["of", "number", "rms errors", "least possible", "rms error / least", "worst error",
              "inside 95 % [%]", "worst one's [%]", "worst error / std", "std told / std seen",
              "mean error / std seen"]  # fmt: skip
    lines = markdown(header, rows)
    if places.get("bias"):
        zeros = ", ".join(f"{names[k]} {1e3 * least[k]:.2g}" for k in places["bias"])
        lines += ["", f"Least possible of the zeros [mrad]: {zeros}."]
    return lines


def main() -> None:
    """Measure and write the page."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    lines = ["# Twins on encoders", "", "Made by `benchmarks/encoder_twins.py`."]
    for case in CASES:
        if not case.log.is_file():
            continue
        for zeros, what in ((True, "the encoders' zeros"), (False, "offset torques")):
            page = table(*twins(case, runs, zeros))
            title = f"## {case.name.split(',')[0]}, {what} fitted, {runs} runs"
            lines += ["", title, "", *page]
            print("\n".join([title, *page]), flush=True)
    lines += [
        "",
        "SI units; 8 s of the measured log's targets, drives, delay and biases known, encoders of "
        "15 bits that err by 0.1 mrad beside. Asked for: a zero within 0.2 mrad, the delay within "
        "0.00025 s, `Ia` and `fv` within 3 standard deviations, 92 to 97 % inside. A zero is told "
        "by gravity alone: of joints that carry much it is within 0.2 mrad, of wrists and "
        "grippers no estimate from such a log can be, which their standard deviations say.",
        "",
        "Least possible: the bound of Cramer and Rao, square roots of the diagonal of the inverse "
        "of the noise-free log's information at the true values, starts unknown, encoders' errors "
        "white. No unbiased estimate is below; a ratio of one is all that there is to have.",
    ]
    (FIGURES / "encoder_twins.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
