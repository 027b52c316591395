"""Damaged logs of encoders alone: what the doctor names, and what the verdict makes of them.

The log that is fitted, its law or the robot's file is damaged; the held-out part is as it was
measured. Each is told beside the held-out part, and by the fitted part alone. Writes
docs/figures/doctor_encoders.md:

    python benchmarks/doctor_encoders.py [--robots WORD …] [--kinds WORD …] [--print]

Words are parts of the names of robots and kinds of damage; with them, or `--print`, nothing is
written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import FIGURES, markdown
from encoder import CASES, SHARED

import dynident as di
from dynident.control.controller import Controller, pd
from dynident.core.arrays import Array
from dynident.core.errors import DynidentError
from dynident.diagnosis.encoders import examine_encoders
from dynident.diagnosis.examine import Finding
from dynident.estimators.closed_loop import Simulation
from dynident.fit.verdict import REFUTED, TRUSTED

SO101 = SHARED.parent / "so101"
SO101_LOGS = ("friction_gravity", "random_waypoints", "sinusoidal_sweep", "triangle_wave")
BANDWIDTH = 10.0
"""[Hz]"""
FAILED = "no fit"
SCALES = ("torque scale", "torque scale of a joint")
OFFSET = np.radians(10.0)
LATE = 0.05
"""[s]"""


@dataclass(frozen=True, eq=False)
class Case:
    """A robot, its law, the part of its log that is fitted and damaged, and the one held out."""

    name: str
    robot: di.Robot
    law: Controller
    log: di.Recording
    held: di.Recording

    @property
    def joint(self) -> int:
        """The one that is damaged: the second, which bears."""
        return 1


@dataclass(frozen=True)
class Damage:
    """A kind of damage."""

    names: tuple[str, ...]
    """Diagnoses that are right."""
    make: Callable[[Case], Case]


def read_encoders(change: Callable[[Array, Case], None]) -> Callable[[Case], Case]:
    """Damage to the positions alone."""

    def make(case: Case) -> Case:
        q = np.array(case.log.q)
        change(q, case)
        return replace(case, log=replace(case.log, q=q, dq=None, ddq=None))

    return make


def turn(q: Array, case: Case) -> None:
    """The encoder the other way round."""
    q[:, case.joint] *= -1.0


def shift(q: Array, case: Case) -> None:
    """Its zero elsewhere."""
    q[:, case.joint] += OFFSET


def hold(q: Array, case: Case) -> None:
    """It stands still for a sixth of the log."""
    first, last = len(q) // 3, len(q) // 2
    q[first:last, case.joint] = q[first, case.joint]


def swap(q: Array, case: Case) -> None:
    """With the next."""
    j = case.joint
    q[:, [j, j + 1]] = q[:, [j + 1, j]]


def push(q: Array, case: Case) -> None:
    """A joint is moved by half of its spread, for a second, and comes back."""
    rate, spread = case.log.rate, np.std(q[:, case.joint])
    first, count = len(q) // 2, round(rate)
    q[first : first + count, case.joint] += (
        0.7 * spread * np.sin(np.pi * np.arange(count) / rate) ** 2
    )


def delay(q: Array, case: Case) -> None:
    """All positions come later."""
    late = round(LATE * case.log.rate)
    q[late:] = q[:-late].copy()
    q[:late] = q[late]


def delay_one(q: Array, case: Case) -> None:
    """Those of one joint come later."""
    own = q[:, [case.joint]].copy()
    delay(own, case)
    q[:, [case.joint]] = own


def both(change: Callable[[Array, Case], None]) -> Callable[[Case], Case]:
    """Damage to positions and targets alike: the file has the joint otherwise."""

    def make(case: Case) -> Case:
        damaged = read_encoders(change)(case)
        targets = np.array(case.log.qref)
        change(targets, case)
        return replace(damaged, log=replace(damaged.log, qref=targets))

    return make


def gain(times: float, alone: bool = False) -> Callable[[Case], Case]:
    """The study's gains are so many times the robot's."""

    def make(case: Case) -> Case:
        factor = np.full(case.robot.n, times)
        if alone:
            factor[np.arange(case.robot.n) != case.joint] = 1.0
        return replace(case, law=case.law.scaled(factor))

    return make


def masses(case: Case) -> Case:
    """All bodies three times as heavy."""
    return replace(case, robot=replace(case.robot, nominal=3.0 * case.robot.nominal))


def hang(case: Case) -> Case:
    """From the ceiling."""
    return replace(case, robot=replace(case.robot, gravity=-np.asarray(case.robot.gravity)))


def lean(case: Case) -> Case:
    """On a wall."""
    return replace(case, robot=replace(case.robot, gravity=np.roll(case.robot.gravity, 1)))


KINDS: dict[str, Damage] = {
    "encoder of a joint turned round": Damage(("position sign",), read_encoders(turn)),
    "encoder and target turned round": Damage(("position sign",), both(turn)),
    "zero of an encoder, 10 deg": Damage(("encoder offset",), read_encoders(shift)),
    "zero of encoder and target, 10 deg": Damage(("encoder offset",), both(shift)),
    "encoder stuck for a sixth": Damage(("stuck",), read_encoders(hold)),
    "positions of two joints swapped": Damage(("position order",), read_encoders(swap)),
    "positions and targets swapped": Damage(("joint order",), both(swap)),
    "positions 50 ms late": Damage(("delay",), read_encoders(delay)),
    "position of a joint 50 ms late": Damage(("position delay",), read_encoders(delay_one)),
    "gains half": Damage(SCALES, gain(0.5)),
    "gains twice": Damage(SCALES, gain(2.0)),
    "gain of a joint half": Damage(SCALES, gain(0.5, alone=True)),
    "gain of a joint twice": Damage(SCALES, gain(2.0, alone=True)),
    "masses three times": Damage(SCALES, masses),
    "upside down": Damage(("mounting",), hang),
    "on a wall": Damage(("mounting",), lean),
    "a push of a second": Damage(("push",), read_encoders(push)),
}


def list_cases() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Measured logs, either part fitted."""
    for known in CASES:
        name, law = known.name.partition(",")[0], pd(known.kp, known.kd)
        if known.log.is_file():
            yield name, partial(cut, known.robot, known.log, law, False)
            yield f"{name}, last third", partial(cut, known.robot, known.log, law, True)
    for name in SO101_LOGS if SO101.is_dir() else ():
        law = pd((17.8,) * 6, (0.6,) * 6)
        robot = SO101 / "so101_new_calib.urdf"
        yield f"SO-101, {name}", partial(cut, robot, SO101 / f"{name}.csv", law, False)


def cut(robot_file: Path, path: Path, law: Controller, turned: bool) -> Case:
    """Two thirds and the last third of a log; turned, the other way round."""
    robot = di.load_robot(str(robot_file))
    log = di.read_log(path, robot, torque=False)
    at = 2 * len(log.q) // 3
    parts = log.rows(0, at), log.rows(at, len(log.q))
    return Case("", robot, law, *(parts[::-1] if turned else parts))


@dataclass(frozen=True)
class Outcome:
    """What was said of one log; errors of free simulations in mrad."""

    robot: str
    kind: str
    alone: bool
    findings: tuple[Finding, ...]
    state: str
    fitted: float
    held: float
    words: str

    @property
    def found(self) -> tuple[str, ...]:
        """Diagnoses."""
        return tuple(f.diagnosis for f in self.findings)

    @property
    def first(self) -> bool:
        """Whether the first finding is right."""
        return bool(set(self.found[:1]) & set(KINDS[self.kind].names))

    @property
    def named(self) -> bool:
        """Whether any is."""
        return bool(set(self.found) & set(KINDS[self.kind].names))


def tell(name: str, kind: str, case: Case, fits: bool) -> Iterator[Outcome]:
    """With the held-out part, and without; where it is not to be fitted the doctor alone."""
    log, held = (di.prepare(each, bandwidth=bandwidth(each)) for each in (case.log, case.held))
    problem = di.Problem(case.robot, log)
    for beside in ((held,), ()):
        state, fitted, other, words = FAILED, np.nan, np.nan, ""
        found: tuple[Finding, ...] = ()
        if fits:
            try:
                fit = di.identify(
                    problem, "cloe", validation=beside, simulation=Simulation(case.law)
                )
            except DynidentError as refusal:
                words = str(refusal)
            else:
                state, found = fit.verdict.state, fit.findings
                fitted = fit.simulated[0].free[-1].overall_milli
                other = fit.validation[0].free[-1].overall_milli if beside else np.nan
                words = "; ".join(reason.words for reason in fit.verdict.reasons)
        if state == FAILED:
            found = examine_encoders(problem.idim, case.law, [log], beside)[0]
        yield Outcome(name, kind, not beside, found, state, fitted, other, words)


def bandwidth(log: di.Recording) -> float:
    """What its rate admits [Hz]."""
    return min(BANDWIDTH, 0.1 * log.rate)


def line(o: Outcome) -> str:
    """In one line."""
    beside = "alone" if o.alone else "held "
    said = o.findings[0].words if o.findings else "nothing"
    return (
        f"{o.robot:18.18s} {o.kind:36s} {beside} {o.fitted:7.1f} {o.held:7.1f} {o.state:9s} {said}"
    )


def page(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    damaged = [o for o in outcomes if o.kind in KINDS]
    sound = [o for o in outcomes if o.kind not in KINDS]
    lines = [
        "# Damaged logs of encoders alone",
        "",
        "Made by `benchmarks/doctor_encoders.py`: the log that is fitted, its law's gains or the "
        "robot's file is damaged at the second joint (or the second and third), or as a whole; "
        "the other part of the log is held out as it was measured. `cloe` with default options. "
        "Each is told with the held-out part beside it, and alone. Of the SO-101, whose law nobody "
        "knows (kp is that of a published servo model), the doctor alone is asked.",
        "",
    ]
    for alone in (False, True):
        own = [o for o in damaged if o.alone == alone]
        lines.append(
            f"- {'alone' if alone else 'with the held-out part'}: of {len(own)} damaged logs named "
            f"first {sum(o.first for o in own)}, named {sum(o.named for o in own)}, another name "
            f"first {sum(bool(o.found) and not o.first for o in own)}, "
            f"trusted {sum(o.state == TRUSTED for o in own)}, "
            f"refuted {sum(o.state == REFUTED for o in own)}"
        )
    lines += [
        f"- undamaged: {sum(bool(o.found) for o in sound)} of {len(sound)} with a finding",
        "",
    ]
    rows = []
    for kind in KINDS:
        cells = []
        for alone in (False, True):
            own = [o for o in damaged if o.kind == kind and o.alone == alone]
            cells += [
                str(sum(o.first for o in own)), str(sum(o.named for o in own)),
                str(sum(o.state == TRUSTED for o in own)),
                str(sum(o.state == REFUTED for o in own)),
            ]  # fmt: skip
        rows.append([kind, str(sum(o.kind == kind for o in damaged) // 2), *cells])
    header = ["damage", "logs", "named first", "named", "trusted", "refuted",
              "alone: first", "named", "trusted", "refuted"]  # fmt: skip
    lines += markdown(header, rows)
    lines += ["", "## What was named wrongly or not at all", ""]
    lines += markdown(
        ["log", "damage", "held-out part", "fitted mrad", "held out mrad", "said", "verdict"],
        [
            [o.robot, o.kind, "no" if o.alone else "yes", number(o.fitted), number(o.held),
             o.findings[0].found if o.findings else "nothing", o.state]
            for o in damaged if not o.first
        ],
    )  # fmt: skip
    lines += ["", "## Undamaged", ""]
    lines += markdown(
        ["log", "held-out part", "fitted mrad", "held out mrad", "verdict", "said"],
        [
            [o.robot, "no" if o.alone else "yes", number(o.fitted), number(o.held), o.state,
             "; ".join([*(f.found for f in o.findings), o.words]).strip("; ")]
            for o in sound
        ],
    )  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def number(x: float) -> str:
    """Of three digits, or none."""
    return f"{x:.3g}" if np.isfinite(x) else ""


def main() -> None:
    """Measure, and write the page where all was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--robots", nargs="+", default=[])
    parser.add_argument("--kinds", nargs="+", default=[])
    parser.add_argument("--print", action="store_true")
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    for name, make in list_cases():
        if given.robots and not any(word in name for word in given.robots):
            continue
        case = make()
        measured = not name.startswith("SO-101")  # whose law nobody knows
        kinds = ["undamaged", *(KINDS if measured and "last third" not in name else ())]
        for kind in kinds:
            if given.kinds and not any(word in kind for word in given.kinds):
                continue
            damaged = KINDS[kind].make(case) if kind in KINDS else case
            for outcome in tell(name, kind, damaged, measured):
                outcomes.append(outcome)
                print(line(outcome), flush=True)
    found = page(outcomes)
    if given.robots or given.kinds or given.print:
        sys.stdout.write(found)
    else:
        (FIGURES / "doctor_encoders.md").write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
