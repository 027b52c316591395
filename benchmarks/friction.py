"""Every friction model on the measured logs: what it fits, and what it leaves held out.

Each log is fitted by the default method without the bootstrap; held out are both halves of the
TX40's log in turn, the second half of the EMPS', another log of the KR300 and the LWR4+. Writes
`docs/figures/friction.md`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from common import EMPS, FIGURES, ROOT, markdown
from logs import LWR4, lwr4_logs, tx40_halves

import dynident as di
from dynident.core.errors import DynidentError
from dynident.dynamics.parameters import JointElements
from dynident.friction.elements import gas_spring
from dynident.friction.models import FRICTIONS
from dynident.recording.prepare import Samples
from dynident.robot.model import Robot
from dynident.study.study import load_study_robot, read_study_samples

KR300 = ROOT / ".." / "shared" / "data" / "kr300"
MOVING = (450, 2051)
"""Rows of the KR300's logs in which it moves; its makers fit and score them alone."""
LEFT_OUT = ("none", "temperature")


@dataclass(frozen=True, eq=False)
class Task:
    """A robot with pairs of a log to fit and a log to test on."""

    name: str
    robot: Robot
    pairs: tuple[tuple[Samples, Samples], ...]
    rotor: bool | None = None
    elements: tuple[JointElements, ...] = ()


def tx40() -> Task:
    """Both halves, in turn."""
    _, robot, first, second = tx40_halves()
    return Task("TX40", robot, ((first, second), (second, first)))


def emps() -> Task:
    """Both halves, in turn."""
    study = di.read_study(EMPS / "study.toml")
    robot = load_study_robot(study)
    (log,) = (log for log in study.log if log.use == "identify")
    halves = [
        read_study_samples(log.model_copy(update={"rows": rows}), robot, study.prepare)
        for rows in ((0, 12000), (12840, 24841))
    ]
    return Task("EMPS", robot, ((halves[0], halves[1]), (halves[1], halves[0])))


def kr300(spring: bool) -> Task:
    """Log A, then B."""
    robot = di.load_robot(KR300 / "kr300.toml")
    A, B = (
        di.prepare(di.read_log(KR300 / f"kr300_{log}.csv", robot).rows(*MOVING), bandwidth=5.0)
        for log in "AB"
    )
    element = JointElements(1, gas_spring(0.8, 0.2, float(np.deg2rad(5.0)), 0.575))
    name = "KR300 with its gas spring" if spring else "KR300 without its gas spring"
    return Task(name, robot, ((A, B),), elements=(element,) if spring else ())


def lwr4() -> Task:
    """Log 1, then the faster 3; torques of the links' side."""
    robot, logs = lwr4_logs()
    return Task("LWR4+", robot, ((logs[1], logs[3]),), rotor=False)


def row(task: Task, friction: str) -> list[str]:
    """Errors of a model, and how many of its shapes were held."""
    fitted, held_out, seconds, weak = [], [], [], 0
    for fit_on, test_on in task.pairs:
        problem = di.Problem(task.robot, fit_on, friction, task.rotor, elements=task.elements)
        started = time.perf_counter()
        try:
            fit = di.identify(problem, validation=[test_on], bootstrap=0, doctor=False)
        except DynidentError as error:
            return [friction, str(len(problem.base.names)), str(error).split(";")[0], "", "", ""]
        seconds.append(time.perf_counter() - started)
        fitted.append(fit.identification[0].overall_percent)
        held_out.append(fit.validation[0].entries[1].overall_percent)
        shape = fit.estimate.shape
        if shape is not None:
            free = [s.bounds.lower < s.bounds.upper for s in fit.idim.shape_parameters]
            weak = max(weak, int(np.sum(np.isnan(shape.std) & free)))
    count = len(problem.base.names) + sum(
        s.bounds.lower < s.bounds.upper for s in problem.idim.shape_parameters
    )
    return [
        friction, str(count), f"{np.mean(fitted):.2f}", f"{np.mean(held_out):.2f}",
        f"{np.median(seconds):.2f}", str(weak) if weak else "",
    ]  # fmt: skip


def tasks() -> list[Callable[[], Task]]:
    """Those whose logs are there."""
    found: list[Callable[[], Task]] = [tx40, emps]
    if KR300.is_dir():
        found += [lambda: kr300(spring=True), lambda: kr300(spring=False)]
    if LWR4.is_dir():
        found.append(lwr4)
    return found


def page(sections: Sequence[tuple[str, list[list[str]]]]) -> str:
    """The figures in Markdown."""
    head = ["friction", "parameters", "fitted [%]", "held out [%]", "time [s]", "shapes held"]
    lines = [
        "# Friction models on measured logs",
        "",
        "Made by `benchmarks/friction.py`: the default method (pc-idim-ls with the robot file's",
        "prior) with every friction model. Fitted: decimated rows of the fitted log; held out: all",
        "samples of another. TX40 and EMPS: both halves of the log in turn, means. KR300: log A,",
        "then B, both while the arm moves. LWR4+: log 1, then the faster log 3. Shapes held: those",
        "that a log does not determine, or that rest at a bound.",
        "",
    ]
    for name, rows in sections:
        best = min((r for r in rows if r[3]), key=lambda r: float(r[3]))
        lines += [f"## {name}", "", *markdown(head, rows), "", f"Least held out: `{best[0]}`.", ""]
    return "\n".join(lines)


def main() -> None:
    sections = []
    for make in tasks():
        task = make()
        rows = []
        for friction in FRICTIONS:
            if friction not in LEFT_OUT:
                rows.append(row(task, friction))
                print(task.name, *rows[-1], flush=True)
        sections.append((task.name, rows))
    (FIGURES / "friction.md").write_text(page(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
