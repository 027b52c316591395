"""The cone problem under constrained estimators: ours beside cvxpy, side by side in one run.

    python benchmarks/cones.py [--runs 9] [--only xarm7]

Arms and a humanoid in noise as large as their torque, so that many links end on the boundary
of consistency. All solvers get the same triangular rows and the same cones, in the same
scaled unknowns. Medians; one BLAS thread. Writes docs/figures/cones.md.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import platform
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import clarabel
import cvxpy
import numpy as np
import pinocchio as pin
import scipy.linalg
from common import FIGURES, timed

from dynident.conic.active_set import certify_answer, polish_answer
from dynident.conic.cones import Cone, SemidefiniteCone, ZeroCone, list_constraint_names
from dynident.conic.interior import ClarabelForm
from dynident.conic.solve import (
    ConeSolution,
    compress_to_triangle,
    finish_solution,
    solve_cone_problem,
)
from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.core.factors import System
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import base_parameters, draw_random_states
from dynident.dynamics.idim import build_idim
from dynident.robot import load_robot

OUT = FIGURES / "cones.md"
FINGERS = tuple(
    f"gripper_{side}_{joint}"
    for side in ("left", "right")
    for joint in (
        "inner_double_joint", "inner_single_joint", "motor_single_joint",
        "fingertip_1_joint", "fingertip_2_joint", "fingertip_3_joint",
    )
)  # fmt: skip
SCS_ITERATIONS = 5000
NEAR = 1e-7
"""Eigenvalue or slack below which an answer lies on the boundary."""
WARM_STEP = 1e-2
"""Change of the right-hand side that a warm start bridges, in standard deviations."""


@dataclass(frozen=True)
class Robot:
    """A robot of example-robot-data and its friction model.

    Attributes
    ----------
    file : str
    friction : str
    floating : bool
    locked : tuple of str
        Joints that stay at zero.
    asked : float
        What the time should not exceed [ms].
    """

    file: str
    friction: str
    floating: bool = False
    locked: tuple[str, ...] = ()
    asked: float = 10.0


ROBOTS = {
    "xarm7": Robot("xarm_description/urdf/xarm7.urdf", "coulomb-viscous-symmetric"),
    "panda": Robot(
        "panda_description/urdf/panda.urdf",
        "coulomb-viscous-symmetric",
        locked=("panda_finger_joint1", "panda_finger_joint2"),
    ),
    "talos": Robot(
        "talos_data/robots/talos_full_v2.urdf",
        "coulomb-viscous",
        floating=True,
        locked=(*FINGERS, "gripper_right_joint"),
        asked=150.0,
    ),
}


@dataclass(frozen=True)
class Case:
    """One problem as all solvers get it: ``min ||R x - c||^2`` subject to cones."""

    name: str
    R: np.ndarray
    c: np.ndarray
    cones: tuple[Cone, ...]
    asked: float
    free: int


@dataclass(frozen=True)
class Outcome:
    """A solver's times and answer; multipliers None where it gave none."""

    milliseconds: float
    x: np.ndarray | None
    multipliers: Sequence[np.ndarray] | None
    words: str


def found(relative: str) -> Path:
    """A file of example-robot-data, where the test extra has put it."""
    for folder in Path(pin.__file__).parents:
        path = folder / "share" / "example-robot-data" / "robots" / relative
        if path.is_file():
            return path
    raise SystemExit(f"{relative}: install the test extra, it brings example-robot-data")


def build(name: str, prior: str, level: float, seed: int = 0) -> Case:
    """Rows of a robot at random states, each joint's noise `level` times its torque."""
    given = ROBOTS[name]
    locked = dict.fromkeys(given.locked, 0.0)
    robot = load_robot(found(given.file), floating=given.floating, locked=locked)
    idim = build_idim(robot, given.friction)
    base = base_parameters(idim)
    rng = np.random.default_rng(seed)
    drives = rng.uniform(0.02, 0.2, len(idim.parameters) - idim.inertial)
    theta = np.concatenate([robot.nominal.ravel(), drives])
    samples = int(np.ceil(6.0 * base.count / idim.tree.dof))
    X = idim.regressor(*draw_random_states(idim, samples, seed))
    y = X @ theta
    sigma = level * np.sqrt(np.mean(y**2, axis=0))
    y = y + sigma * rng.normal(size=y.shape)
    A = (X[:, :, base.kept] / sigma[:, None]).reshape(-1, base.count)
    R, c = compress_to_triangle(A, (y / sigma).ravel())
    system = System(R, c, 0.0)
    admitted = build_feasible_set(base, system, Knowledge(prior=prior))
    rows, target, _ = admitted.rows(system)
    R, c = compress_to_triangle(rows, target)
    free = np.linalg.lstsq(R, c, rcond=None)[0]
    outside = within(admitted.cones, free, 0.0)
    words = "no prior" if prior == "none" else "prior: the file's bodies"
    return Case(f"{name}, {words}", R, c, admitted.cones, given.asked, outside)


def within(cones: Sequence[Cone], x: np.ndarray, reach: float) -> int:
    """Matrices and rows whose smallest eigenvalue or slack is below `reach`."""
    count = 0
    for cone in cones:
        if isinstance(cone, SemidefiniteCone):
            count += int(np.linalg.eigvalsh(cone.matrix(x))[0] < reach)
        else:
            count += int(np.sum(cone.G @ x - cone.h < reach))
    return count


def milliseconds(work: Callable[[], object], runs: int, before: bool = True) -> float:
    """Median of several runs."""
    return 1e3 * timed(work, runs, before)


def ours(case: Case, runs: int) -> dict[str, Outcome]:
    """Cold, and warm from the answer to a right-hand side nearby."""
    cold = solve_cone_problem(case.R, case.c, case.cones)
    nearby = case.c + WARM_STEP * np.random.default_rng(1).normal(size=len(case.c))
    start = solve_cone_problem(case.R, nearby, case.cones)
    warm = solve_cone_problem(case.R, case.c, case.cones, start)

    def outcome(solution: ConeSolution, took: float) -> Outcome:
        words = f"{solution.iterations} iterations"
        return Outcome(took, solution.x, solution.multipliers, words)

    return {
        "cold": outcome(
            cold, milliseconds(lambda: solve_cone_problem(case.R, case.c, case.cones), runs)
        ),
        "warm": outcome(
            warm, milliseconds(lambda: solve_cone_problem(case.R, case.c, case.cones, start), runs)
        ),
    }


class Modelled:
    """A case as a user writes it in cvxpy, once, with what changes as parameters.

    That is the right-hand side, and the rows too where `rows` asks for it.
    """

    def __init__(self, case: Case, rows: bool = False) -> None:
        self.case = case
        self.x = cvxpy.Variable(len(case.c))
        self.right = cvxpy.Parameter(len(case.c), value=case.c)
        self.constraints = []
        for cone in case.cones:
            if isinstance(cone, SemidefiniteCone):
                d = len(cone.floor)
                flat = cone.basis[cone.support].reshape(-1, d * d).T @ self.x[cone.support]
                self.constraints.append(cvxpy.reshape(flat, (d, d), "F") - cone.floor >> 0)
            elif isinstance(cone, ZeroCone):
                self.constraints.append(cone.G @ self.x == cone.h)
            else:
                self.constraints.append(cone.G @ self.x >= cone.h)
        self.rows = cvxpy.Parameter(case.R.shape, value=case.R) if rows else case.R
        criterion = cvxpy.sum_squares(self.rows @ self.x - self.right)
        self.program = cvxpy.Problem(cvxpy.Minimize(criterion), self.constraints)
        self.count = 0

    def solve(self, **options: object) -> None:
        """Solve for new values of the parameters, which are the same but for rounding."""
        self.count += 1
        self.right.value = self.case.c * (1.0 + 1e-13 * self.count)
        if isinstance(self.rows, cvxpy.Parameter):
            self.rows.value = self.case.R * (1.0 + 1e-13 * self.count)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that an answer may be inaccurate; it is measured
            self.program.solve(**options)

    def outcome(self, took: float) -> Outcome:
        """The answer and its multipliers, those of an equality with our sign."""
        if self.x.value is None:
            return Outcome(took, None, None, str(self.program.status))
        multipliers = []
        for cone, constraint in zip(self.case.cones, self.constraints, strict=True):
            dual = np.asarray(constraint.dual_value, dtype=float)
            if isinstance(cone, SemidefiniteCone):
                dual = 0.5 * (dual + dual.T)
            multipliers.append(-dual if isinstance(cone, ZeroCone) else dual)
        stats = self.program.solver_stats
        words = f"{self.program.status}, {stats.num_iters} iterations"
        if stats.solve_time is not None:
            words += f", {1e3 * stats.solve_time:.1f} ms of it in the solver"
        return Outcome(took, np.asarray(self.x.value), multipliers, words)


def theirs(case: Case, runs: int) -> dict[str, Outcome]:
    """Clarabel and SCS through cvxpy; a problem built once is solved again and again."""
    first_order = {"solver": cvxpy.SCS, "eps": 1e-6, "max_iters": SCS_ITERATIONS}
    interior = {"solver": cvxpy.CLARABEL, "max_threads": 1}
    plain, whole = Modelled(case), Modelled(case, rows=True)
    few = max(3, runs // 3)
    return {
        "new b": plain.outcome(milliseconds(lambda: plain.solve(**interior), runs)),
        "new A and b": whole.outcome(milliseconds(lambda: whole.solve(**interior), few)),
        "built": plain.outcome(
            milliseconds(lambda: Modelled(case).solve(**interior), few, before=False)
        ),
        "scs": plain.outcome(
            milliseconds(lambda: plain.solve(warm_start=False, **first_order), few)
        ),
    }


def quality(case: Case, outcome: Outcome, reference: float) -> str:
    """Criterion above a reference, residuals of the answer and its smallest eigenvalue."""
    if outcome.x is None:
        return f"| | | | | | {outcome.words} |"
    value = float(np.sum((case.R @ outcome.x - case.c) ** 2))
    lowest = min(
        float(np.linalg.eigvalsh(cone.matrix(outcome.x) + cone.floor)[0])
        for cone in case.cones
        if isinstance(cone, SemidefiniteCone)
    )
    proof = certify_answer(case.R, case.c, outcome.x, case.cones, outcome.multipliers or ())
    return (
        f"| {value - reference:+.1e} | {proof.primal:.0e} | {proof.dual:.0e} | {proof.gap:.0e} "
        f"| {lowest:.1e} | {outcome.words} |"
    )


PARTS: dict[str, Callable[..., object]] = {
    "triangular factor": compress_to_triangle,
    "the problem as Clarabel has it": ClarabelForm.__init__,
    "Clarabel": ClarabelForm.solve,
    "Newton's method on the face": polish_answer,
    "certificate": finish_solution,
}
"""Functions whose cumulative time is shown."""


def profile(case: Case, runs: int) -> list[str]:
    """Shares of the time of a cold solution, by cProfile."""
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(runs):
        solve_cone_problem(case.R, case.c, case.cones)
    profiler.disable()
    spent = {entry.code: entry.totaltime for entry in profiler.getstats()}

    def seconds(function: Callable[..., object]) -> float:
        return spent.get(function.__code__, 0.0)

    whole, lines, left = seconds(solve_cone_problem), [], 1.0
    for words, function in PARTS.items():
        share = seconds(function) / whole
        lines.append(f"| {words} | {100.0 * share:.0f} % |")
        left -= share
    return [*lines, f"| the rest | {100.0 * left:.0f} % |"]


@limit_to_one_thread
def measure(only: str | None, runs: int) -> list[str]:
    """All cases, as the lines of the page."""
    times, answers, profiled = [], [], []
    for name, given in ROBOTS.items():
        if only is not None and name != only:
            continue
        for prior in ("none", "nominal"):
            case = build(name, prior, level=1.0)
            count = runs if given.asked < 100.0 else max(3, runs // 2)
            mine, others = ours(case, count), theirs(case, count)
            cold, warm = mine["cold"], mine["warm"]
            assert cold.x is not None
            beside = " | ".join(
                f"{outcome.milliseconds:.1f} ({outcome.milliseconds / cold.milliseconds:.1f})"
                for outcome in others.values()
            )
            times.append(
                f"| {case.name} | {len(case.c)} | {len(list_constraint_names(case.cones))} "
                f"| {case.free} | {within(case.cones, cold.x, NEAR)} | {given.asked:.0f} "
                f"| **{cold.milliseconds:.1f}** | {warm.milliseconds:.1f} | {beside} |"
            )
            reference = float(np.sum((case.R @ cold.x - case.c) ** 2))
            for words, outcome in (
                ("dynident, cold", cold), ("dynident, warm", warm),
                ("cvxpy + Clarabel", others["new b"]), ("cvxpy + SCS", others["scs"]),
            ):  # fmt: skip
                answers.append(f"| {case.name} | {words} {quality(case, outcome, reference)}")
            if name == "talos" or only is not None:
                profiled += [
                    "",
                    f"### {case.name}",
                    "",
                    "| part | share |",
                    "|---|---|",
                    *profile(case, 3),
                ]
    return [
        "## Times",
        "",
        "Milliseconds; in brackets over ours, cold. Outside: matrices and rows that the answer",
        "without constraints violates; active: those on whose boundary the answer lies. Warm: from",
        f"the answer to a right-hand side {WARM_STEP:g} standard deviations away. New b: of a",
        "problem whose rows are constants; new A and b: whose rows are parameters too, as the",
        "weights of an estimator change them.",
        "",
        "| problem | unknowns | cones | outside | active | asked | ours, cold | ours, warm "
        "| cvxpy + Clarabel, new b | new A and b | built and solved | cvxpy + SCS, new b |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *times,
        "",
        "## Answers",
        "",
        "The criterion above ours, in chi-squared; violation, stationarity over `||A^T b||` and",
        "duality gap over the criterion, from each solver's own multipliers; the smallest",
        "eigenvalue of the scaled pseudo-inertias, which should not be below 1e-6.",
        "",
        "| problem | solver | criterion | primal | dual | gap | smallest eigenvalue | |",
        "|---|---|---|---|---|---|---|---|",
        *answers,
        "",
        "## Where our time goes",
        "",
        "Shares of cold solutions under a profiler.",
        *profiled,
        "",
    ]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--only", choices=ROBOTS, help="one robot; the page is not written")
    arguments = parser.parse_args()
    lines = [
        "# The cone problem",
        "",
        "Written by `benchmarks/cones.py`: random states, white noise as large as the torque of",
        "each joint, every link consistent and every drive positive. xarm7 and panda have 13",
        "parameters a joint (`Ia`, `fv`, `fc`), the humanoid (TALOS on a floating base, fingers",
        "and the right gripper locked) 14 with offsets. cvxpy is given the same triangular rows;",
        "Clarabel in it has its default tolerances, SCS 1e-6 and at most",
        f"{SCS_ITERATIONS} iterations. One thread; medians of {arguments.runs} runs;",
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"NumPy {np.__version__},",
        f"SciPy {scipy.__version__}, Clarabel {clarabel.__version__}, cvxpy {cvxpy.__version__}.",
        "",
        *measure(arguments.only, arguments.runs),
    ]
    text = "\n".join(lines)
    if arguments.only is None:
        OUT.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
