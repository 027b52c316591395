"""Floating bases: coverage and held-out errors under every kind of equations, time on a humanoid.

MuJoCo makes the logs (tests/legged.py), with sensors' noise; the truth is known. Run from the top
of the project: python benchmarks/floating.py [--runs 200] [--part coverage|held-out|time]
[--equations full|joints|base|null-space], of coverage: the other rows of its table stay.
"""

from __future__ import annotations

import argparse
import importlib
import re
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import FIGURES, ROOT, markdown

import dynident as di
from dynident.core.arrays import Array
from dynident.fit.figures import score_model
from dynident.recording.floating import FloatingOptions, find_logged_robot, list_floating_columns
from dynident.recording.recording import Recording
from dynident.robot.contacts import ContactSpec, add_contacts
from dynident.robot.cut import cut_off_limb
from dynident.robot.model import EQUATIONS, Equations, Robot
from dynident.robot.rotations import to_rpy

sys.path.insert(0, str(ROOT / "tests"))
# by name: tests are not typed
legged: Any = importlib.import_module("legged")

HEAD = """# Floating bases

Made by `benchmarks/floating.py`: logs of MuJoCo whose truth is known (`tests/legged.py`), with
encoder counts, noise of gyroscope, accelerometer and pose, torque noise of 2 % and force noise of
1 N; robot files wrong by up to 30 %.
"""
BANDWIDTH = 10.0
FRICTION = "viscous"


def robot_of(log: Any) -> Robot:
    """The robot as its user has it, with the log's contacts."""
    robot = di.load_robot(log.urdf, floating=True)
    return add_contacts(
        robot,
        [
            ContactSpec(name=c.name, frame=c.frame, kind="point" if c.point else "surface")
            for c in log.contacts
        ],
    )


def recorded(log: Any, robot: Robot, equations: Equations) -> Recording:
    """A log as arrays; without the sensors that the equations do not need."""
    whole = robot.carrier or robot
    columns = log.columns

    def stacked(names: tuple[str, ...]) -> Array:
        return np.column_stack([columns[name] for name in names])

    joints = whole.joint_names
    body = {
        key: stacked(names)
        for key, names in list_floating_columns(find_logged_robot(robot)).items()
        if {*names} <= columns.keys() and not (equations == "null-space" and key[0] == "w")
    }
    position, turn = log.mount
    return di.read_arrays(
        stacked(tuple(f"q_{joint}" for joint in joints)),
        stacked(tuple(f"tau_{joint}" for joint in joints)),
        rate=log.rate,
        robot=robot,
        name=log.name,
        body=body,
        floating=FloatingOptions(
            equations=equations,
            imu_position=tuple(position.tolist()),
            imu_rpy=to_rpy(turn),
        ),
    )


@dataclass(frozen=True)
class Case:
    """A motion of a robot, and which of its equations are fitted."""

    robot: str
    motion: str
    seconds: float
    equations: Equations
    sensor: str | None = None
    """Beyond which a limb is fitted, instead of the robot."""
    most: int | None = None
    """Copies that are enough: of a robot that takes long and has many parameters."""
    bandwidth: float = BANDWIDTH
    """[Hz]"""

    @property
    def name(self) -> str:
        """For a table."""
        words = f"{self.equations}, beyond {self.sensor}" if self.sensor else self.equations
        return words if self.bandwidth == BANDWIDTH else f"{words}, {self.bandwidth:g} Hz"


def truth_of(log: Any, case: Case) -> Array:
    """Standard parameters of the robot, or of the limb."""
    if case.sensor is None:
        theta: Array = log.theta
        return theta
    beyond: Array = log.theta_beyond(next(e for e in log.cuts if e.frame == case.sensor))
    return beyond


def prepared(log: Any, case: Case, robot: Robot) -> di.Samples:
    """Samples of a log of the case."""
    return di.prepare(recorded(log, robot, case.equations), case.bandwidth)


def robot_for(log: Any, case: Case) -> Robot:
    """The robot, or the limb beyond the sensor."""
    whole = robot_of(log)
    return whole if case.sensor is None else cut_off_limb(whole, case.sensor)


COVERAGE = (
    *(Case("solo12", "trot", 10.0, kind) for kind in EQUATIONS if kind != "null-space"),
    Case("solo12", "walk", 10.0, "null-space"),
    Case("talos", "sway", 10.0, "base", "wrist_left_ft_link"),
    Case("talos", "sway", 10.0, "full", "wrist_left_ft_link"),
    Case("talos", "sway", 10.0, "full", most=8),
    Case("talos", "sway", 10.0, "full", most=8, bandwidth=5.0),
)


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    runs: int
    equations: str | None
    """Of which coverage is made anew, of all where it is None."""
    old: str
    """What the page has of the part."""


def coverage(asked: Asked) -> list[str]:
    """Shares of 95 % intervals that contain the truth, over noisy copies of a log."""
    made: dict[tuple[str, str, str], list[str]] = {}
    for line in re.findall(r"^\|.+$", asked.old, re.M)[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        made[cells[0], cells[1], cells[2]] = cells
    for case in COVERAGE:
        if asked.equations in (None, case.equations):
            for row in covered(case, min(asked.runs, case.most or asked.runs)):
                made[row[0], row[1], row[2]] = row
    methods = ("wls", "pc-idim-ls")
    order = [(case.robot, case.name, method) for case in COVERAGE for method in methods]
    header = [
        "robot", "equations", "method", "copies", "base parameters", "covered %", "spread / sigma",
        "median bias / sigma", "consistent",
    ]  # fmt: skip
    words = f"Bandwidth {BANDWIDTH:g} Hz unless the table says otherwise."
    return [words, "", *markdown(header, [made[key] for key in order if key in made])]


def covered(case: Case, runs: int) -> list[list[str]]:
    """One case's rows of the table, a method each."""
    log = legged.make(case.robot, case.motion, case.seconds)
    robot = robot_for(log, case)
    found: dict[str, list[Array]] = {"wls": [], "pc-idim-ls": []}
    certified = 0
    for seed in range(runs):
        noisy = legged.noisy(log, 1000 + seed)
        problem = di.Problem(robot, prepared(noisy, case, robot), FRICTION)
        truth = problem.base.matrix @ truth_of(log, case)
        for method, misses in found.items():
            fit = di.identify(problem, method, doctor=False)
            misses.append((fit.estimate.beta - truth) / fit.estimate.covariance.std)
            certified += method == "pc-idim-ls" and fit.consistent
    rows = []
    for method, misses in found.items():
        inside = 100.0 * np.mean(np.abs(misses) < 1.96)
        # of the middle, as a parameter at its bound has next to no sigma
        spread = float(np.sqrt(np.median(np.square(misses)) / 0.4549))
        bias = float(np.median(np.abs(np.mean(misses, axis=0))))
        rows.append([
            case.robot, case.name, method, f"{runs}", f"{len(misses[0])}", f"{inside:.1f}",
            f"{spread:.2f}", f"{bias:.2f}",
            f"{certified} of {runs}" if method == "pc-idim-ls" else "",
        ])  # fmt: skip
        print(" | ".join(rows[-1]), flush=True)
    return rows


def held_out() -> list[str]:
    """Errors on another motion, and the total mass, by the kind of equations that were fitted."""
    rows = []
    for robot_name, motion, other in (
        ("solo12", "walk", "trot"),
        ("anymal", "walk", "trot"),
        ("talos", "sway", "squat"),
    ):
        fitted = legged.noisy(legged.make(robot_name, motion, 20.0, 1), 1)
        judge = legged.noisy(legged.make(robot_name, other, 10.0, 2), 2)
        robot = robot_of(fitted)
        full = Case(robot_name, other, 10.0, "full")
        judged = prepared(judge, full, robot)
        mass = float(np.sum(fitted.phi[:, 0]))
        for kind in EQUATIONS:
            case = Case(robot_name, motion, 20.0, kind)
            problem = di.Problem(robot, prepared(fitted, case, robot), FRICTION)
            fit = di.identify(problem, doctor=False)
            figures = di.validate(fit, judged) if kind == "full" else across(fit, judged)
            every = figures[1]
            base = np.array([joint.rmse for joint in every.joints[:6]])
            torque = np.array([joint.rmse for joint in every.joints[6:]])
            found = float(np.sum(fit.phi[:, 0])) if fit.phi is not None else np.nan
            rows.append([
                robot_name, kind, f"{every.overall_percent:.2f}",
                f"{np.sqrt(np.mean(base[:3] ** 2)):.2f}", f"{np.sqrt(np.mean(base[3:] ** 2)):.3f}",
                f"{np.sqrt(np.mean(torque**2)):.3f}",
                f"{100.0 * (found / mass - 1.0):+.2f}" if weighs(problem) else "not determined",
            ])  # fmt: skip
            print(" | ".join(rows[-1]), flush=True)
    header = [
        "robot", "fitted", "held-out %", "base force [N]", "base moment [Nm]", "torque [Nm]",
        "total mass %",
    ]  # fmt: skip
    return markdown(header, rows)


def weighs(problem: di.Problem) -> bool:
    """Whether the rows determine the robot's total mass."""
    total = np.zeros(problem.base.matrix.shape[1])
    total[: problem.idim.inertial : 10] = 1.0
    space = np.linalg.qr(problem.base.matrix.T)[0]
    return bool(np.linalg.norm(total - space @ (space.T @ total)) < 1e-6 * np.linalg.norm(total))


def across(fit: Any, judged: di.Samples) -> Any:
    """Errors of a fit on all equations, whichever it was made from."""
    whole = di.Problem(fit.robot, judged, FRICTION)
    return score_model(whole, fit.theta, fit.lowpass_hz)[0]


def times() -> list[str]:
    """A humanoid's minute at 1 kHz."""
    log = legged.noisy(legged.make("talos", "sway", 60.0, 1), 1)
    robot = robot_of(log)
    recording = recorded(log, robot, "full")
    di.identify(di.Problem(robot, di.prepare(recording.rows(0, 8000), BANDWIDTH), FRICTION), "wls")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.perf_counter()
    samples = di.prepare(recording, BANDWIDTH)
    laps = [("filters", time.perf_counter() - started)]
    started = time.perf_counter()
    problem = di.Problem(robot, samples, FRICTION)
    _ = problem.factors
    laps.append(("base parameters, rows and factors", time.perf_counter() - started))
    for method in ("wls", "pc-idim-ls"):
        started = time.perf_counter()
        fit = di.identify(problem, method, doctor=False)
        laps.append((method, time.perf_counter() - started))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = [[name, f"{seconds:.2f}"] for name, seconds in laps]
    words = (
        f"TALOS, {robot.n} joints, {problem.base.count} base parameters of which "
        f"{problem.base.rigid_body_count} keep a link's, {len(samples.q)} samples; "
        f"peak memory {peak:.0f} MB, {before:.0f} MB before; {fit.estimate.message}"
    )
    return [words, "", *markdown(["stage", "s"], rows)]


PARTS: dict[str, tuple[str, Callable[[Asked], list[str]]]] = {
    "coverage": ("95 % intervals over noisy copies of a 10 s log", coverage),
    "held-out": ("Held out: all equations of another motion", lambda _: held_out()),
    "time": ("A minute of a humanoid at 1 kHz", lambda _: times()),
}
PAGE = FIGURES / "floating.md"


def main() -> None:
    """Make the parts that are asked for anew, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--equations", choices=EQUATIONS)
    given = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    bodies = dict(re.findall(r"^## (.+?)\n\n(.*?)(?=^## |\Z)", old, re.M | re.S))
    for name in [given.part] if given.part else PARTS:
        title, part = PARTS[name]
        asked = Asked(given.runs, given.equations, bodies.get(title, "").strip())
        bodies[title] = "\n".join(part(asked)) + "\n\n"
        print(bodies[title], flush=True)
        pages = [f"## {title}\n\n{bodies[title]}" for title, _ in PARTS.values() if title in bodies]
        PAGE.write_text(f"{HEAD}\n{''.join(pages)}".rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
