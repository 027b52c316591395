"""Data selection: held-out errors of chosen blocks, beside all rows and blocks taken at random.

Run from the top of the project: python benchmarks/selection.py
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import FIGURES, ROOT, markdown
from logs import LWR4, LWR4_MISSING, lwr4_logs, tx40_halves

import dynident as di
from dynident.core.errors import ComputationError
from dynident.decide.selection import Selection, SelectionOptions
from dynident.dynamics.parameters import JointElements
from dynident.friction.elements import gas_spring
from dynident.recording.prepare import Samples
from dynident.regression.weighted import solve_wls
from dynident.robot.model import Robot

KR300 = ROOT / ".." / "shared" / "data" / "kr300"
MOVING = (450, 2051)
"""Rows of the KR300's logs in which it moves; its makers fit and score them alone."""
DRAWS = 10
GAINS = (0.01, 0.02, 0.04)


@dataclass(frozen=True, eq=False)
class Case:
    """Logs to choose from, and one to test on."""

    name: str
    robot: Robot
    fitted: tuple[Samples, ...]
    held_out: Samples
    block: float
    rotor: bool | None = None
    elements: tuple[JointElements, ...] = ()

    @property
    def problem(self) -> di.Problem:
        return di.Problem(self.robot, self.fitted, rotor=self.rotor, elements=self.elements)


def tx40() -> list[Case]:
    _, robot, first, second = tx40_halves()
    return [
        Case("TX40, first half, tested on the second", robot, (first,), second, 0.25),
        Case("TX40, second half, tested on the first", robot, (second,), first, 0.25),
    ]


def kr300() -> list[Case]:
    robot = di.load_robot(KR300 / "kr300.toml")
    A, B = (di.read_log(KR300 / f"kr300_{log}.csv", robot) for log in "AB")
    element = JointElements(1, gas_spring(0.8, 0.2, float(np.deg2rad(5.0)), 0.575))
    test = di.prepare(B.rows(*MOVING), bandwidth=5.0)
    name = "KR300, log A, standing at both ends, tested on the moving part of B"
    whole = di.prepare(A, bandwidth=5.0)
    return [Case(name, robot, (whole,), test, 0.25, elements=(element,))]


def lwr4() -> list[Case]:
    robot, logs = lwr4_logs()
    return [
        Case("LWR4+, logs 1 and 2 (one motion twice), tested on 3", robot, (logs[1], logs[2]),
             logs[3], 0.5, False),
        Case("LWR4+, all three logs but the last 8 s of 3, tested on these", robot,
             (logs[1], logs[2], logs[3].only([(0, 3400)])), logs[3].only([(3450, 5000)]), 0.5,
             False),
    ]  # fmt: skip


def work() -> list[Case]:
    """Four minutes of two tasks, idling and a rare third, simulated; tested on all joints."""
    sys.path.insert(0, str(ROOT / "tests"))
    # by name: tests are not typed
    simulated: Any = importlib.import_module("test_selection")
    toy: Any = importlib.import_module("toy")
    problem = simulated.work()
    recording, _ = toy.log(problem.robot, 12.0, 0.3, seed=20)
    test = di.prepare(recording, bandwidth=5.0)
    name = "four joints, four minutes of ordinary work (simulated), tested on motion of all joints"
    return [Case(name, problem.robot, problem.samples, test, 1.0)]


def held_out(problem: di.Problem, test: Samples, method: str) -> float:
    """Error of a fit on the fitted rows of another log [%]; infinite where there is no answer."""
    options: dict[str, Any] = {"bootstrap": 0} if method.startswith("pc-") else {}
    try:
        fit = di.identify(problem, method, doctor=False, **options)
    except ComputationError:
        return np.inf
    return di.validate(fit, test)[0].overall_percent


def at_random(case: Case, found: Selection, rng: np.random.Generator) -> di.Problem:
    """Blocks of the same logs, until they have as many rows."""
    places = []
    for k, log in enumerate(case.fitted):
        length = round(case.block * log.rate)
        places += [(k, a, min(a + length, len(log.q))) for a in range(0, len(log.q), length)]
    taken: list[list[tuple[int, int]]] = [[] for _ in case.fitted]
    rows = 0
    for place in rng.permutation(len(places)):
        k, start, stop = places[place]
        step = min(f.step for f in case.fitted[k].filters)
        own = case.fitted[k].moving[start:stop:step].sum()
        taken[k].append((start, stop))
        rows += int(own)
        if rows >= found.rows:
            break
    return case.problem.on(
        [log.only(own) for log, own in zip(case.fitted, taken, strict=True) if own]
    )


def spread(values: Sequence[float]) -> str:
    """Median, smallest and largest."""
    shown = [f"{v:.2f}" if np.isfinite(v) else "none" for v in (np.median(values), min(values),
             max(values))]  # fmt: skip
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def table(case: Case) -> list[str]:
    """All rows, choices by gain, and random blocks of as many rows."""
    problem = case.problem
    methods = ("wls", "pc-idim-ls")
    every = [f"{held_out(problem, case.held_out, method):.2f}" for method in methods]
    _, sigma, _ = solve_wls(problem.factors)
    condition = problem.factors.weighted(sigma).condition()[0]
    rows = [["all rows", "100", f"{condition:.1f}", "", *every]]
    for gain in GAINS:
        found = di.select_blocks(problem, SelectionOptions(block=case.block, gain=gain))
        own = found.of(problem)
        share = f"{100 * found.rows / found.rows_all:.0f}"
        ratio = np.median(found.after / found.before)
        errors = [held_out(own, case.held_out, method) for method in methods]
        rows.append([
            f"chosen, gain {gain:g}", share, f"{found.chains[0].condition:.1f}", f"{ratio:.2f}",
            *(f"{error:.2f}" if np.isfinite(error) else "none" for error in errors),
        ])  # fmt: skip
        rng = np.random.default_rng(0)
        draws = [at_random(case, found, rng) for _ in range(DRAWS)]
        conditions = [draw.factors.weighted(sigma).condition()[0] for draw in draws]
        chance = [spread([held_out(d, case.held_out, method) for d in draws]) for method in methods]
        rows.append(["at random, as many", share, spread(conditions), "", *chance])
    header = ["rows", "% of all", "condition", "std, times", *methods]
    return [f"## {case.name[0].upper()}{case.name[1:]}", "", *markdown(header, rows), ""]


def main() -> None:
    found: list[Callable[[], list[Case]]] = [work, tx40]
    if KR300.is_dir():
        found.append(kr300)
    if LWR4.is_dir():
        found.append(lwr4)
    lines = [
        "# Data selection",
        "",
        "Written by `benchmarks/selection.py`: held-out errors [%] of the filtered, decimated",
        "rows, all joints, of models fitted to all rows, to the blocks that `select_blocks`",
        "chooses, and to blocks taken at random until they have as many rows (median of",
        f"{DRAWS} draws, smallest to largest). `condition`: of all base parameters, weighted,",
        "columns of unit length. `std, times`: median growth of the predicted standard deviations",
        "over those of all rows. `wls` has no prior; `pc-idim-ls` believes the robot file weakly.",
        "",
    ]
    for case in (case for make in found for case in make()):
        lines += table(case)
        print(case.name, file=sys.stderr)
    if not LWR4.is_dir():
        lines += [LWR4_MISSING, ""]
    (FIGURES / "selection.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
