"""Damaged logs of measured robots: what the doctor names, with a held-out log and without.

The log that is fitted (or the robot's file) is damaged, the held-out one is as it was measured; and
each undamaged log, about which nothing should be said. Writes `docs/figures/doctor_measured.md`:

    python benchmarks/doctor_measured.py [--robots WORD …] [--kinds WORD …] [--alone] [--print]
        [--jobs COUNT] [--page FILE]

Words are parts of the names of robots and kinds of damage; with them, or `--print`, nothing is
written unless `--page` says where. `--alone` leaves out the runs with a held-out log.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context

import numpy as np
from common import EMPS, FIGURES, markdown
from decide import kr300, list_studies, lwr4
from doctor import (
    DAMAGES,
    REFUSED,
    Damage,
    Made,
    Make,
    Scene,
    any_joint,
    late,
    offset,
    one_scaled,
    repair,
    signals,
)
from logs import LWR4
from scipy import signal

import dynident as di
from dynident.core.arrays import Array
from dynident.core.errors import DynidentError, InputError
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.examine import Finding, examine, simplify_friction
from dynident.diagnosis.scene import take_scene
from dynident.diagnosis.sized import build_delay_family, build_offset_family, measure_size
from dynident.dynamics.idim import build_idim
from dynident.fit.verdict import TRUSTED
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.regression.generalised import generalise_samples
from dynident.regression.problem import Problem
from dynident.report.fit import Fit
from dynident.robot.model import Robot
from dynident.study.study import (
    LogSection,
    Study,
    build_study_law,
    build_study_problem,
    load_study_robot,
    prepare_study_recording,
    read_study_recordings,
)

HARMFUL = 1.1
"""Held-out error over that of the undamaged log."""
INPUT = "refused as input"
NEAR = 3.0
"""Standard errors within which a size is right."""

# ---- the logs


@dataclass(frozen=True, eq=False)
class Case:
    """A study with its logs as they were measured: the first is fitted and damaged."""

    study: Study
    scene: Scene
    beside: tuple[Recording, ...]

    def identify(self, robot: Robot, log: Recording, alone: bool = False) -> Fit:
        """By the default method; nothing is decided."""
        problem, held = self.prepare(robot, log, alone)
        law = build_study_law(self.study, robot, problem.samples)
        return di.identify(problem, validation=held, bootstrap=0, law=law)

    def examine(self, robot: Robot, log: Recording, alone: bool = False) -> tuple[Finding, ...]:
        """What the doctor finds in the first log where no model comes out."""
        problem, held = self.prepare(robot, log, alone)
        law = build_study_law(self.study, robot, problem.samples)
        controller = None if law is None else law.controller
        return examine(problem.base, problem.samples, held, law=controller)[0]

    def prepare(self, robot: Robot, log: Recording, alone: bool) -> tuple[Problem, list[Samples]]:
        """The problem with a damaged log, and the held-out logs."""
        ready = [
            (own.use, prepare_study_recording(own, rec, self.study.prepare))
            for own, rec in self.pairs(log)
        ]
        fitted = [samples for use, samples in ready if use == "identify"]
        held = [samples for use, samples in ready if use != "identify" and not alone]
        return build_study_problem(self.study, robot, fitted), held

    def pairs(self, log: Recording) -> Iterator[tuple[LogSection, Recording]]:
        """The study's tables of logs, and the logs with a damaged one."""
        return zip(self.study.log, (log, *self.beside), strict=True)


def emps() -> Study:
    """The EMPS, and its pulses held out."""
    given = di.read_study(EMPS / "study.toml")
    own = given.log[0].model_dump(exclude_none=True)
    logs = [
        {**own, "files": [str(EMPS / name)], "use": use}
        for name, use in (("DATA_EMPS.mat", "identify"), ("DATA_EMPS_PULSES.mat", "validate"))
    ]
    assert given.controller is not None
    return Study.model_validate(
        {
            "robot": {"file": str(given.robot.file)},
            "log": logs,
            "controller": given.controller.model_dump(exclude_none=True),
            "prepare": given.prepare.model_dump(exclude_none=True),
        }
    )


def list_cases() -> dict[str, Callable[[], Study]]:
    """All measured logs."""
    found: dict[str, Callable[[], Study]] = {
        name: partial(lambda study: study, study) for name, (study, _) in list_studies().items()
    }
    found["EMPS → pulses"] = emps
    if LWR4.is_dir():
        found["LWR4+ 3 → 2"] = partial(lwr4, (3,), 2)
        found["KR300 B → A"] = turned(kr300)
    return found


def turned(study: Callable[[], Study]) -> Callable[[], Study]:
    """Fitted to the held-out log."""

    def make() -> Study:
        own = study()
        uses = {"identify": "validate", "validate": "identify"}
        logs = tuple(each.model_copy(update={"use": uses[each.use]}) for each in own.log[::-1])
        return own.model_copy(update={"log": logs})

    return make


def take(name: str, study: Study) -> Case:
    """Read the logs."""
    robot = load_study_robot(study)
    first, *beside = read_study_recordings(study, robot)
    none = np.zeros(0)
    scene = Scene(name, robot, first, beside[-1], first, "coulomb-viscous", none)
    return Case(study, scene, tuple(beside))


# ---- damage


def timed_signals(change: Callable[..., tuple[Array, Array]]) -> Make:
    """Damage to the arrays that depends on the log's rate."""

    def make(s: Scene, size: float, rng: np.random.Generator) -> Made:
        q, tau = change(s.fit.q.copy(), s.fit.tau.copy(), size, rng, s.fit.rate)
        return s.robot, replace(s.fit, q=q, tau=tau)

    return make


def all_late(
    q: Array, tau: Array, ms: float, _: np.random.Generator, rate: float
) -> tuple[Array, Array]:
    """All torques."""
    return q, late(tau, round(ms * 1e-3 * rate))


def one_late(
    q: Array, tau: Array, ms: float, rng: np.random.Generator, rate: float
) -> tuple[Array, Array]:
    """The torque of one joint."""
    j = any_joint(q, rng)
    tau[:, j] = late(tau[:, j], round(ms * 1e-3 * rate))
    return q, tau


def both_slow(
    q: Array, tau: Array, hz: float, _: np.random.Generator, rate: float
) -> tuple[Array, Array]:
    """Positions and torques behind the same filter of second order."""
    b, a = signal.butter(2, hz, fs=rate)
    zi = signal.lfilter_zi(b, a)
    slow = [
        np.column_stack([signal.lfilter(b, a, x, zi=zi * x[0])[0] for x in y.T]) for y in (q, tau)
    ]
    return slow[0], slow[1]


def step(q: Array, tau: Array, by: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Another gain in the second half."""
    tau[len(tau) // 2 :] *= by
    return q, tau


def rows_lost(s: Scene, share: float, rng: np.random.Generator) -> Made:
    """Rows are lost here and there, and time is numbered anew."""
    kept = rng.uniform(size=len(s.fit.q)) >= share
    optional = {
        key: own[kept]
        for key in ("dq", "ddq", "qref", "dqref", "temp", "known")
        if (own := getattr(s.fit, key)) is not None
    }
    count = int(np.sum(kept))
    log = replace(s.fit, q=s.fit.q[kept], tau=s.fit.tau[kept], segments=((0, count),), **optional)
    return s.robot, log


def upside_down(s: Scene, _: float, rng: np.random.Generator) -> Made:
    """Gravity of the robot's file is another."""
    return replace(s.robot, gravity=-np.asarray(s.robot.gravity)), s.fit


def aside(s: Scene, _: float, rng: np.random.Generator) -> Made:
    """On a wall."""
    return replace(s.robot, gravity=np.roll(s.robot.gravity, 1)), s.fit


def weightless(s: Scene, _: float, rng: np.random.Generator) -> Made:
    """A controller adds the gravity of the file itself, and logs the rest."""
    idim = build_idim(s.robot, "coulomb-viscous")
    still = np.zeros_like(s.fit.q)
    return s.robot, replace(s.fit, tau=s.fit.tau - idim.torque(idim.nominal, s.fit.q, still, still))


def external(s: Scene, share: float, rng: np.random.Generator) -> Made:
    """What a model leaves whose parameters are off by up to some share, each its own."""
    samples = di.prepare(s.fit)
    fit = di.identify(di.Problem(s.robot, samples), bootstrap=0, doctor=False)
    motion = samples.q, samples.dq, samples.ddq
    theta = fit.theta * rng.uniform(1.0 - share, 1.0 + share, len(fit.theta))
    return s.robot, replace(s.fit, tau=s.fit.tau - fit.idim.torque(theta, *motion))


def of_motors(s: Scene, _: float, rng: np.random.Generator) -> Made:
    """Torques of the motors, by reductions that the robot's file has."""
    robot = s.robot
    if np.array_equal(robot.drives.reduction, np.eye(robot.n)):
        reduction = np.diag(rng.uniform(50.0, 160.0, robot.n))
        robot = replace(robot, drives=replace(robot.drives, reduction=reduction))
    return robot, replace(s.fit, tau=s.fit.tau @ np.linalg.inv(robot.drives.reduction))


def in_counts(q: Array, tau: Array, bits: float, _: np.random.Generator) -> tuple[Array, Array]:
    """Counts of converters whose range is half as much again as the torques."""
    return q, np.round(tau * 2.0 ** (bits - 1.0) / (1.5 * np.max(np.abs(tau), axis=0)))


def torques_slow(
    q: Array, tau: Array, hz: float, _: np.random.Generator, rate: float
) -> tuple[Array, Array]:
    """Torques behind a filter of first order."""
    b, a = signal.butter(1, hz, fs=rate)
    zi = signal.lfilter_zi(b, a)
    slow = [signal.lfilter(b, a, x, zi=zi * x[0])[0] for x in tau.T]
    return q, np.column_stack(slow)


MIRRORED = ("torque sign", "position sign", "sign")
"""Of all joints: a chain of joints along two axes has a mirror image, whose signs are the other."""
KINDS: dict[str, Damage] = {
    "torque sign of a joint": replace(
        DAMAGES["torque sign of a joint"], sizes=(1, 2), joints=2
    ),
    "torque sign of all joints": replace(DAMAGES["torque sign of all joints"], names=MIRRORED),
    "torques of two joints swapped": replace(
        DAMAGES["torques of two joints swapped"], sizes=(1, 2)
    ),
    "position sign of a joint": replace(
        DAMAGES["position sign of a joint"], sizes=(1, 2), joints=2
    ),
    "position sign of all joints": replace(
        DAMAGES["position sign of all joints"], names=MIRRORED
    ),
    "degrees taken for radians": DAMAGES["degrees taken for radians"],
    "degrees of one joint": replace(DAMAGES["degrees of one joint"], joints=2),
    "delay of all torques [ms]": Damage(
        ("delay",), timed_signals(all_late), (10, 20, 50), measured="delay"
    ),
    "delay of one torque [ms]": Damage(
        ("delay",), timed_signals(one_late), (10, 20, 50), joints=2
    ),
    "encoder offset [deg]": Damage(
        ("encoder offset",), signals(offset), (10,), joints=2, measured="offset"
    ),
    "all torques times": Damage(
        ("torque scale",), DAMAGES["all torques times"].make, (0.01, 0.1, 2, 10, 1000)
    ),
    "torque of a joint times": Damage(
        ("torque scale", "torque scale of a joint"), signals(one_scaled), (2,), joints=2
    ),
    "torque without sign": DAMAGES["torque without sign"],
    "rate times": Damage(("rate", "speed"), DAMAGES["rate times"].make, (2, 0.5)),
    "upside down": Damage(("mounting",), upside_down),
    "on a wall": Damage(("mounting",), aside),
    "both low-passed [Hz]": Damage((), timed_signals(both_slow), (5,)),
    "gain steps in the middle": Damage(("gain step",), signals(step), (1.5,)),
    "gravity taken out": Damage(("gravity",), weightless, joints=2),
    "external torques, model off by": Damage(("external torque",), external, (0.1,), joints=2),
    "torques of the motors": Damage(("torque side",), of_motors, joints=2),
    "torques in counts [bits]": Damage(("counts", "torque scale"), signals(in_counts), (12,)),
    "torque low-passed [Hz]": Damage(
        ("slow torque", "delay"), timed_signals(torques_slow), (2,)
    ),
    "rows lost, share": Damage(("rows lost",), rows_lost, (0.05,)),
}  # fmt: skip


# ---- what comes of it


@dataclass(frozen=True)
class Outcome:
    """What was said of one log."""

    robot: str
    kind: str
    size: float
    alone: bool
    state: str
    held: float
    sound: float
    found: tuple[str, ...]
    shown: tuple[str, ...]
    """`found`, `shown`: diagnoses of the damaged log's findings, and kinds of signs in the
    verdict's words that the undamaged log has not."""
    words: tuple[str, ...]
    sigmas: float = np.nan
    """By how many standard errors a size is off, of that of the damage and what the same measure
    finds of the undamaged log; nan where none was measured."""
    plainly: float = np.nan
    """The same of the size of the damage alone."""
    repaired: float = np.nan
    """Held-out error after the findings about the log were repaired; nan where none can be."""

    @property
    def harmful(self) -> bool:
        """Whether the held-out error is a tenth larger than that of the undamaged log."""
        return bool(self.state == REFUSED or self.held >= HARMFUL * self.sound)

    @property
    def right(self) -> bool:
        """Whether the first finding is right, or a sign is, or what is refused says why."""
        return bool({*self.found[:1], *self.shown[:1]} & {INPUT, *KINDS[self.kind].names})

    @property
    def wrong(self) -> bool:
        """Whether the first finding is another."""
        return bool(self.found) and not self.right

    @property
    def said(self) -> str:
        """In a table."""
        return ", ".join(dict.fromkeys((*self.found, *self.shown))) or "nothing"


ALIKE = {"torque scale of a joint": "torque scale"}
"""What is the same of a robot of one joint."""
SIGNS = {
    "never changes its sign": "unsigned",
    "no torque is ever negative": "unsigned",
    "were rows lost": "rows lost",
    "the robot file allows": "speed",
    "comes in steps": "coarse",
    "jumps by about": "wrapped",
    "is clipped": "clipped",
    "stands still": "stuck",
    "the rate is": "rate",
    "whole numbers": "counts",
    "by its targets": "commanded",
}
"""Words of signs in a verdict, by which they are told."""


def measure_own_size(case: Case, robot: Robot, measured: str, alone: bool) -> float:
    """What is measured of the undamaged log in the same way [s or rad]."""
    problem, held = case.prepare(robot, case.scene.fit, alone)
    base = simplify_friction(problem.base)
    logs = (generalise_samples(base.idim, each) for each in (*problem.samples, *held))
    s, *others = (take_scene(base, log, most=limit.FEW) for log in logs)
    together = s.among(others)
    families = {
        "delay": build_delay_family(np.ones((s.n, 1))),
        "offset": build_offset_family(s.n, 0 if s.n == 2 else 2),
    }
    family = families[measured]
    size = family.next(together, np.zeros(1), limit.TURNS)
    return float(measure_size(together, family, size)[0][0])


def measure_sigmas(
    kind: Damage, size: float, findings: Sequence[Finding], rate: float, own: float = 0.0
) -> float:
    """By how many of its standard errors the first finding's size is off, `own` beside."""
    truth = {"delay": round(1e-3 * size * rate) / rate + own, "offset": np.radians(size) + own}
    for each in findings[:1]:
        if kind.measured and each.repair is not None and each.error > 0.0:
            values = np.atleast_1d(getattr(each.repair, kind.measured))
            value = float(values[np.argmax(np.abs(values))])
            return float(abs(value - truth[kind.measured]) / each.error)
    return np.nan


def held_out_error(fit: Fit) -> float:
    """Of all samples, of the last held-out log [%]."""
    return fit.validation[-1].entries[1].overall_percent


def list_outcomes(case: Case, kinds: dict[str, Damage], alone: bool) -> Iterator[Outcome]:
    """Of the undamaged log, and of each damage to it."""
    s = case.scene
    sound = case.identify(s.robot, s.fit)
    error = held_out_error(sound)
    known = frozenset(list_signs(sound, ""))
    for without, fit in ((False, sound), (True, case.identify(s.robot, s.fit, alone=True))):
        yield tell(s, "undamaged", 0.0, fit, fit.findings, error, error, without)
    for kind, damage in kinds.items():
        for size in damage.sizes if fits(kind, s.robot) else ():
            state = [int(1000 * abs(size)), *kind.encode(), *s.name.encode()]
            robot, log = damage.make(s, size, np.random.default_rng(state))
            held = np.nan
            for without in (True,) if alone else (False, True):
                try:
                    fit = case.identify(robot, log, alone=without)
                except InputError as refusal:
                    yield Outcome(
                        s.name, kind, size, without, REFUSED, np.nan, error, (INPUT,), (),
                        (str(refusal),),
                    )  # fmt: skip
                    continue
                except DynidentError as refusal:
                    found = tuple(f.diagnosis for f in case.examine(robot, log, without))
                    yield Outcome(
                        s.name, kind, size, without, REFUSED, np.nan, error, found,
                        tuple(name for words, name in SIGNS.items() if words in str(refusal)),
                        (str(refusal),),
                    )  # fmt: skip
                    continue
                if not without:
                    held = held_out_error(fit)
                said = fit.findings
                own, repaired = 0.0, np.nan
                if damage.measured:
                    own = measure_own_size(case, robot, damage.measured, without)
                if not without:
                    repaired = measure_repaired(case, robot, log, said)
                yield tell(s, kind, size, fit, said, held, error, without, known, own, repaired)


def measure_repaired(case: Case, robot: Robot, log: Recording, said: Sequence[Finding]) -> float:
    """Held-out error after the findings about a log were repaired; nan where none can be."""
    repaired = repair(robot, log, said)
    if repaired is None:
        return np.nan
    try:
        problem, held = case.prepare(*repaired, False)
        fit = di.identify(problem, validation=held, bootstrap=0, doctor=False)
    except DynidentError:
        return np.inf
    return held_out_error(fit)


def fits(kind: str, robot: Robot) -> bool:
    """Whether a robot can have a kind of damage."""
    turns = any(joint.kind == "revolute" for joint in robot.joints)
    return KINDS[kind].joints <= robot.n and (turns or "degrees" not in kind)


def list_signs(fit: Fit, log: str) -> list[str]:
    """Kinds of the signs that a verdict names of a log."""
    return [
        name
        for reason in fit.verdict.reasons
        for words, name in SIGNS.items()
        if words in reason.words and reason.words.startswith(log)
    ]


def tell(
    s: Scene,
    kind: str,
    size: float,
    fit: Fit,
    findings: Sequence[Finding],
    held: float,
    sound: float,
    alone: bool,
    known: frozenset[str] = frozenset(),
    own: float = 0.0,
    repaired: float = np.nan,
) -> Outcome:
    """What was said; `known` are signs that the undamaged log shows."""
    damaged = kind != "undamaged"
    ours = [f for f in findings if not damaged or f.log == s.fit.name]
    shown = [name for name in list_signs(fit, s.fit.name if damaged else "") if name not in known]
    found = tuple(dict.fromkeys(f.diagnosis for f in ours))
    if s.robot.n == 1:
        found = tuple(ALIKE.get(name, name) for name in found)
    return Outcome(
        s.name,
        kind,
        size,
        alone,
        fit.verdict.state,
        held,
        sound,
        found,
        tuple(dict.fromkeys(shown)),
        (
            *(f.words for f in findings),
            *(f"{r.state}: {r.words}" for r in fit.verdict.reasons),
        ),
        measure_sigmas(KINDS[kind], size, findings, s.fit.rate, own) if damaged else np.nan,
        measure_sigmas(KINDS[kind], size, findings, s.fit.rate) if damaged else np.nan,
        repaired,
    )


def line(o: Outcome) -> str:
    """In one line."""
    what = "no harm" if not o.harmful else "right" if o.right else "WRONG" if o.wrong else "none"
    beside = "alone" if o.alone else "held "
    return (
        f"{o.robot:14.14s} {o.kind} {o.size:g} | {beside} | {o.held:.4g} ({o.sound:.3g}) % "
        f"| {what} | {o.said} | {o.state} | {o.sigmas:.2g} | {o.repaired:.4g} "
        f"| {o.words[0] if o.words else ''}"
    )


# ---- the page


def page(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    lines = [
        "# Damaged logs of measured robots",
        "",
        "Made by `benchmarks/doctor_measured.py`: the log that is fitted, or the robot's file, is "
        "damaged, the held-out log is as it was measured. A damage is *harmful* if it raises the "
        f"held-out error by {100 * (HARMFUL - 1):.0f} % or more over that of the undamaged log, or "
        "is refused; *right* if the first finding, or a sign of the signals, is right about it; "
        "*wrong* if another is first. The default method, without decisions and the bootstrap. "
        "Each is told with the held-out log at hand, and without. Torque and position signs of "
        "all joints count as one: mirror images of a robot tell them apart as badly; a finding of "
        "one joint that names both is right about either. Sizes are "
        "held against the damage alone; then against the damage and what the same measure finds "
        "of the undamaged log (the TX40's torques lead by 1.7 to 1.9 ms, those of both of the "
        "EMPS's logs by 0.7 ms), which models err by alike. "
        "After repair: what findings say of the log was undone, and the log fitted again. Of the "
        "EMPS the controller is known, as it is in a study with a `[controller]`.",
        "",
    ]
    for alone, title in ((False, "with a held-out log"), (True, "by one log alone")):
        own = [o for o in outcomes if o.alone == alone and o.kind != "undamaged"]
        harm = [o for o in own if o.harmful and KINDS[o.kind].names]
        every = [o for o in own if o.harmful]
        sized = [o for o in harm if o.right and np.isfinite(o.sigmas)]
        near = [
            sum(off <= NEAR for off in own)
            for own in ([o.sigmas for o in sized], [o.plainly for o in sized])
        ]
        named, trusted = sum(o.right for o in harm), sum(o.state == TRUSTED for o in every)
        lines += [
            f"- {title}: of {len(own)} damaged logs {len(every)} harmful, {len(harm)} of them of "
            f"kinds that are looked for: named first {named} "
            f"({100 * named / max(1, len(harm)):.0f} %), a wrong name "
            f"{sum(o.wrong for o in every)}, trusted {trusted}; sizes within {NEAR:g} standard "
            f"errors: {near[1]} of {len(sized)}, {near[0]} beside what the undamaged log shows"
        ]
    sound = [o for o in outcomes if o.kind == "undamaged"]
    repaired = [o for o in outcomes if o.harmful and o.right and np.isfinite(o.held + o.repaired)]
    worst = [o for o in repaired if o.repaired > HARMFUL * o.sound]
    lines += [
        f"- after repair: {len(repaired) - len(worst)} of {len(repaired)} within {HARMFUL:g} times "
        "the error of the undamaged log; the others: "
        + (
            "; ".join(f"{o.robot}, {o.kind} {o.size:g}: {o.repaired / o.sound:.3g}" for o in worst)
            or "none"
        ),
    ]
    lines += [
        f"- undamaged: {sum(bool(o.found) for o in sound)} of {len(sound)} with a finding",
        "",
    ]
    rows = []
    for kind in KINDS:
        own = [o for o in outcomes if o.kind == kind]
        cells = []
        for alone in (False, True):
            harm = [o for o in own if o.harmful and o.alone == alone]
            cells += [
                str(len(harm)), str(sum(o.right for o in harm)), str(sum(o.wrong for o in harm)),
                str(sum(o.state == TRUSTED for o in harm)),
            ]  # fmt: skip
        rows.append([kind, str(sum(not o.alone for o in own)), *cells])
    header = ["damage", "logs", "harmful", "right", "wrong", "trusted", "alone: harmful", "right",
              "wrong", "trusted"]  # fmt: skip
    lines += markdown(header, rows)
    lines += ["", "## What was named wrongly or not at all, or trusted", ""]
    rows = [
        [
            o.robot, f"{o.kind} {o.size:g}", "no" if o.alone else "yes", f"{o.sound:.3g}",
            f"{o.held:.3g}", o.said, o.state,
        ]
        for o in outcomes
        if o.kind != "undamaged" and o.harmful and (not o.right or o.state == TRUSTED)
    ]  # fmt: skip
    header = ["log", "damage", "held-out log", "undamaged %", "held out %", "said", "verdict"]
    lines += markdown(header, rows)
    lines += ["", "## Undamaged", ""]
    lines += markdown(
        ["log", "held-out log", "error %", "verdict", "said"],
        [
            [o.robot, "no" if o.alone else "yes", f"{o.sound:.3g}", o.state, "; ".join(o.words)]
            for o in sound
        ],
    )
    return "\n".join(lines).rstrip() + "\n"


PARTS = 3
"""Of the kinds of a log, looked at by processes of their own."""


def look_at_case(unit: tuple[str, Sequence[str]], alone: bool) -> list[Outcome]:
    """All outcomes of some kinds of damage to a log."""
    name, kinds = unit
    found = []
    case = take(name, list_cases()[name]())
    for outcome in list_outcomes(case, {kind: KINDS[kind] for kind in kinds}, alone):
        found.append(outcome)
        print(line(outcome), flush=True)
    return found


def main() -> None:
    """Measure, and write the page where all was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--robots", nargs="+", default=[])
    parser.add_argument("--kinds", nargs="+", default=[])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", default="", help="file of docs/figures to write")
    given = parser.parse_args()
    kinds = {k: d for k, d in KINDS.items() if not given.kinds or any(w in k for w in given.kinds)}
    names = [n for n in list_cases() if not given.robots or any(w in n for w in given.robots)]
    outcomes: list[Outcome] = []
    count = min(PARTS, given.jobs)  # each part looks at the undamaged log, too
    parts = [part for k in range(count) if (part := [*kinds][k::count])]
    units = [*itertools.product(names, parts)]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        for (_, part), own in zip(
            units, pool.map(partial(look_at_case, alone=given.alone), units), strict=True
        ):
            outcomes += [o for o in own if o.kind != "undamaged" or part is parts[0]]
    order = [*kinds]
    outcomes.sort(key=lambda o: (names.index(o.robot), [*order, o.kind].index(o.kind)))
    found = page(outcomes)
    partly = given.robots or given.kinds or given.alone or given.print
    name = given.page or ("" if partly else "doctor_measured.md")
    if name:
        (FIGURES / name).write_text(found, encoding="utf-8")
    else:
        sys.stdout.write(found)


if __name__ == "__main__":
    main()
