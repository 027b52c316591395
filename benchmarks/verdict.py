"""Whether verdicts mean something: made robots that no model has, judged by their truth.

Each robot has bodies that are not its file's, and friction, ripple, warm-up and noise that leave
what measured robots leave of their torques. Some logs are sound, some are damaged, poor or
from other conditions. `identify` decides and judges as on the command line; then a fresh motion of
the robot and its true inertial parameters say whether torques err by no more than the result
says, and intervals cover. Writes `docs/figures/verdict.md`:

    python benchmarks/verdict.py [COUNT [SEED]] [--print]

SEED is that of the first robot; each one behind has the next.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import FIGURES, coloured, markdown
from decide import described
from doctor import FASTEST, TOP, late, root

from dynident.core.arrays import Array
from dynident.core.errors import DynidentError
from dynident.dynamics.idim import Idim, build_idim
from dynident.filters.filters import count_filter_edge, filter_zero_phase
from dynident.fit.verdict import STATES, TRUSTED
from dynident.report.fit import Fit
from dynident.robot.model import Robot
from dynident.study.run import run_study
from dynident.study.study import Study, load_study_robot

RATE = 500.0
SAID = 1.5
"""Error on a fresh motion over that which a result says, at most."""
COVERED = 0.8
"""Share of a result's 95 % intervals, of parameters that are not independent, at least."""
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
ROBOTS: dict[str, dict[str, Any]] = {
    "UR10": {"file": described("ur_description/urdf/ur10_robot.urdf")},
    "Panda": {"file": described("panda_description/urdf/panda.urdf"), "locked": FINGERS},
    "UR3": {"file": described("ur_description/urdf/ur3_robot.urdf")},
}
REFUSED = "refused"
COLUMNS = {"q": "q*", "tau": "tau*"}
COUNT, SEED = 120, 5000
"""Robots, and the seed of the first."""
Signals = tuple[Array, Array]
"""Positions and torques."""
Motion = tuple[Array, Array, Array]
"""Positions, speeds and accelerations."""


@dataclass(frozen=True, eq=False)
class Course:
    """Sums of sinusoids that differ by their phases: where a robot moves, and how fast."""

    middle: Array
    """Shape (n,). [rad]"""
    frequency: Array
    size: Array
    """`frequency`, `size`: shape (n, 6). [Hz], [rad]"""

    def move(self, rng: np.random.Generator, seconds: float, pace: float) -> Motion:
        """A motion, all of it at another pace."""
        t = pace * np.arange(round(seconds * RATE))[:, None] / RATE
        q, dq, ddq = (np.zeros((len(t), len(self.middle))) for _ in range(3))
        for j, (middle, f, size) in enumerate(
            zip(self.middle, self.frequency, self.size, strict=True)
        ):
            w = 2.0 * np.pi * f
            at = w * t + rng.uniform(0.0, 2.0 * np.pi, 6)
            q[:, j] = middle + np.sin(at) @ size
            dq[:, j] = pace * np.cos(at) @ (size * w)
            ddq[:, j] = -(pace**2) * np.sin(at) @ (size * w**2)
        return q, dq, ddq


def make_course(robot: Robot, rng: np.random.Generator) -> Course:
    """Below 2 Hz and within the limits of speed."""
    n = robot.n
    f, size = rng.uniform(0.1, TOP, (n, 6)), rng.uniform(0.1, 0.5, (n, 6))
    fastest = FASTEST * np.array([joint.velocity for joint in robot.joints])
    share = np.minimum(1.0, fastest / np.sum(2.0 * np.pi * f * size, axis=1))
    return Course(rng.uniform(-0.5, 0.5, n), f, share[:, None] * size)


@dataclass(frozen=True, eq=False)
class World:
    """A robot as it is."""

    robot: Robot
    """As its file has it."""
    idim: Idim
    theta: Array
    """Its bodies and rotors; friction is made by `rub`."""
    fc: Array
    fv: Array
    asymmetry: Array
    stribeck: Array
    load: Array
    ripple: Array
    warm: Array
    """`fc`, `fv`, `asymmetry`, `stribeck`, `load`, `ripple`, `warm`: shape (n,). Friction: Coulomb
    [Nm], of the cube root of the speed, shares by which directions differ, by which it is larger at
    rest, by which it grows as the torque does, by which it changes along a turn, and by which it
    falls within a minute."""
    noise: float
    """Of torques, as a share of their rms; correlated."""
    course: Course
    """What its logs and the motions that it is asked about have in common."""

    def torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Without noise."""
        rigid = self.idim.torque(self.theta, q, dq, ddq)
        turn = np.tanh(dq / 0.01)
        level = self.fc * (1.0 + self.stribeck * np.exp(-np.abs(dq) / 0.1))
        level = level * (1.0 + self.ripple * np.sin(7.0 * q)) * (1.0 + self.asymmetry * turn)
        level = level * (1.0 - self.warm * np.arange(len(q))[:, None] / RATE / 60.0)
        level = level + self.load * np.abs(rigid)
        return np.asarray(rigid + level * turn + self.fv * np.cbrt(dq))


def make_world(robot: Robot, rng: np.random.Generator) -> World:
    """Friction of a fifth of each joint's torque, and its departures as large as measured ones."""
    idim, n = build_idim(robot), robot.n
    bodies = robot.nominal * rng.uniform(0.85, 1.15, (n, 1))
    theta = idim.join(bodies)
    course = make_course(robot, rng)
    q, dq, ddq = course.move(rng, 11.0, 1.0)
    size = np.maximum(root(idim.torque(theta, q, dq, ddq)), 1.0)
    for k, parameter in enumerate(idim.parameters[idim.inertial :], idim.inertial):
        if parameter.symbol == "Ia":
            joint = parameter.number - 1
            theta[k] = 0.2 * size[joint] / root(ddq)[joint]
    amount = rng.uniform(0.2, 1.0)

    def share(most: float) -> Array:
        return amount * most * rng.uniform(0.0, 1.0, n)

    return World(
        robot, idim, theta, rng.uniform(0.1, 0.3, n) * size,
        rng.uniform(0.05, 0.2, n) * size / np.cbrt(root(dq)),
        share(0.2), share(0.5), share(0.04), share(0.15), share(0.5),
        float(amount * rng.uniform(0.005, 0.03)), course,
    )  # fmt: skip


# ---- what is done with a robot


@dataclass(frozen=True)
class Log:
    """How a log comes about."""

    seconds: float = 11.0
    pace: float = 1.0
    """`seconds`, `pace`: length, and how fast everything moves, 1 as usual."""
    spoil: Callable[[World, Array, Array, float], Signals] = lambda w, q, tau, u: (q, tau)
    """What is done to its positions and torques."""


def gains(w: World, q: Array, tau: Array, u: float) -> Signals:
    """All torques by 0.75 to 1.25 of what they are."""
    return q, (0.75 + 0.5 * u) * tau


def one_gain(w: World, q: Array, tau: Array, u: float) -> Signals:
    """The torque of a joint by half, or by twice."""
    tau = tau.copy()
    tau[:, int(u * tau.shape[1])] *= 2.0 if u > 0.5 else 0.5
    return q, tau


def delayed(w: World, q: Array, tau: Array, u: float) -> Signals:
    """Torques 5 to 40 ms late."""
    return q, late(tau, round((0.005 + 0.035 * u) * RATE))


def zeroed(w: World, q: Array, tau: Array, u: float) -> Signals:
    """The zero of a joint 2 to 12 degrees off."""
    q = q.copy()
    q[:, int(u * q.shape[1])] += np.radians(2.0 + 10.0 * u)
    return q, tau


def smoothed(w: World, q: Array, tau: Array, u: float) -> Signals:
    """Torques by their mean of 50 to 200 ms."""
    count = round((0.05 + 0.15 * u) * RATE)
    mean = np.ones(count) / count
    return q, np.column_stack([np.convolve(own, mean, "same") for own in tau.T])


def signless(w: World, q: Array, tau: Array, u: float) -> Signals:
    """The torque of a joint without its sign."""
    tau, j = tau.copy(), int(u * tau.shape[1])
    tau[:, j] = np.abs(tau[:, j])
    return q, tau


CASES: dict[str, tuple[Log, Log]] = {
    "sound": (Log(), Log()),
    "sound, 60 s": (Log(60.0), Log(20.0)),
    "short: 1.5 s": (Log(1.5), Log(3.0)),
    "slow: a tenth of the speed": (Log(pace=0.1), Log(pace=0.1)),
    "slow, held out fast": (Log(pace=0.1), Log()),
    "torques late, both logs": (Log(spoil=delayed), Log(spoil=delayed)),
    "a joint's gain, both logs": (Log(spoil=one_gain), Log(spoil=one_gain)),
    "a joint's zero, both logs": (Log(spoil=zeroed), Log(spoil=zeroed)),
    "torques smoothed, both logs": (Log(spoil=smoothed), Log(spoil=smoothed)),
    "a joint's torque without sign": (Log(spoil=signless), Log()),
    "all gains, both logs": (Log(spoil=gains), Log(spoil=gains)),
}
"""Of the logs that are fitted and held out; the last is what no log can show."""
UNSEEN = "all gains, both logs"
ZERO = "a joint's zero, both logs"


def make_log(w: World, kind: Log, rng: np.random.Generator, u: float) -> Signals:
    """Positions and torques as they are logged."""
    q, dq, ddq = w.course.move(rng, kind.seconds, kind.pace)
    tau = w.torque(q, dq, ddq)
    tau = tau + w.noise * root(tau) * coloured(rng, tau.shape, 0.9)
    q, tau = kind.spoil(w, q, tau, u)
    return q + 1e-5 * rng.normal(size=q.shape), tau


# ---- what comes of it


@dataclass(frozen=True)
class Outcome:
    """A result, by its own words and by the truth."""

    robot: str
    kind: str
    held: bool
    state: str
    """The verdict, or ``refused``."""
    said: float = np.nan
    error: float = np.nan
    elsewhere: float = np.nan
    """`said`, `error`, `elsewhere`: what the result says of its torques, and what it leaves on a
    fresh motion of the log's kind and on one of other places and speeds, below the same frequency
    [%]."""
    covered: float = np.nan
    """Share of the intervals of inertial parameters that have the truth."""
    why: str = ""
    """The first reason."""

    @property
    def holds(self) -> bool:
        """Whether the result is as good as it says."""
        return self.error <= SAID * self.said and self.covered >= COVERED


def judge(name: str, robot: dict[str, Any], kind: str, held: bool, seed: int) -> Outcome:
    """A robot with its logs, identified as the command does, and the truth beside."""
    rng = np.random.default_rng([seed, *name.encode()])
    study = {"robot": robot}
    w = make_world(
        load_study_robot(Study.model_validate({**study, "log": [{"files": ["-"]}]})), rng
    )
    u, kinds = rng.uniform(), dict(zip(("identify", "validate"), CASES[kind], strict=True))
    with tempfile.TemporaryDirectory() as place:
        logs = []
        for use, own in [*kinds.items()][: 1 + held]:
            path = Path(place) / f"{use}.csv"
            columns = np.hstack(make_log(w, own, rng, u))
            header = ",".join(f"{x}{j + 1}" for x in ("q", "tau") for j in range(w.robot.n))
            np.savetxt(path, columns, "%.9g", ",", header=header, comments="")
            logs.append({"files": [str(path)], "rate": RATE, "use": use, "columns": COLUMNS})
        try:
            fit = run_study(Study.model_validate({**study, "log": logs}))
        except DynidentError as refusal:
            return Outcome(name, kind, held, REFUSED, why=str(refusal))
    pace = kinds["identify"].pace
    asked = [course.move(rng, 11.0, pace) for course in (w.course, make_course(w.robot, rng))]
    error, elsewhere = (measure_error(w, fit, motion) for motion in asked)
    figures = [fit.identification, *(each.entries for each in fit.validation)]
    expected = re.findall(r"may err by (\S+) %", fit.verdict.reserve)
    said = max(*map(float, expected), *(each[-1].overall_percent for each in figures))
    reasons = fit.verdict.reasons
    why = reasons[0].words if reasons else ""
    covered = share_covered(w, fit)
    return Outcome(name, kind, held, fit.verdict.state, said, error, elsewhere, covered, why)


def measure_error(w: World, fit: Fit, motion: Motion) -> float:
    """What a fit leaves of the true torques along a motion, below the frequency it states [%]."""
    tau, (lowpass,) = w.torque(*motion), {each.lowpass_hz for each in fit.identification[1:]}
    assert lowpass is not None  # of all samples
    edge = slice(count_filter_edge(lowpass, RATE), -count_filter_edge(lowpass, RATE))
    left, whole = (
        np.linalg.norm(filter_zero_phase(each, lowpass, RATE)[edge])
        for each in (tau - fit.inverse_dynamics(*motion), tau)
    )
    return 100.0 * float(left / whole)


def share_covered(w: World, fit: Fit) -> float:
    """Share of the intervals of combinations of bodies and rotors that have the truth."""
    base, idim = fit.base, fit.base.idim
    truth = np.zeros(len(idim.parameters))
    truth[: idim.inertial] = w.theta[: idim.inertial]
    for k, parameter in enumerate(w.idim.parameters):
        if parameter.symbol == "Ia":
            truth[[each.name for each in idim.parameters].index(parameter.name)] = w.theta[k]
    rigid = np.array([k < idim.inertial or idim.parameters[k].symbol == "Ia" for k in base.kept])
    off = np.abs(fit.estimate.beta - base.matrix @ truth)
    return float(np.mean((off <= 1.96 * fit.estimate.covariance.std)[rigid]))


def main() -> None:
    words = [int(each) for each in sys.argv[1:] if not each.startswith("-")]
    count, seed = (*words, *(COUNT, SEED)[len(words) :])
    found: list[Outcome] = []
    for k in range(count):
        # every second robot is sound; the others take turns
        kind = "sound" if k % 2 else [*CASES][1 + k // 2 % (len(CASES) - 1)]
        name = [*ROBOTS][k % len(ROBOTS)]
        held = bool(k // (2 * len(CASES) - 2) % 2) if kind != "sound" else bool(k // 2 % 2)
        found.append(judge(name, ROBOTS[name], kind, held, seed + k))
        if "--print" in sys.argv:
            o = found[-1]
            print(f"{o.robot:6} {o.kind:32} {o.held:1} {o.state:9} said {o.said:6.2f} is "
                  f"{o.error:6.2f} there {o.elsewhere:6.2f} covers {o.covered:.2f} {o.why[:80]}",
                  flush=True)  # fmt: skip
    text = "\n".join(render(found, seed)) + "\n"
    if "--print" not in sys.argv:
        (FIGURES / "verdict.md").write_text(text)
    sys.stdout.write(text)


def render(found: list[Outcome], seed: int) -> list[str]:
    """The page."""
    told = [each for each in found if each.kind != UNSEEN]
    every = (*STATES, REFUSED)
    rows = [
        [
            words, str(len(own)),
            share(o.error <= SAID * o.said for o in own),
            share(o.covered >= COVERED for o in own),
            share(o.holds for o in own),
            share(np.array([o.covered for o in own])),
            share(o.elsewhere <= SAID * o.said for o in own),
        ]
        for words, state, left in (
            (TRUSTED, TRUSTED, ""),
            (f"{TRUSTED}, without “{ZERO}”", TRUSTED, ZERO),
            *((each, each, "") for each in STATES[1:]),
        )
        for own in [[o for o in told if o.state == state and o.kind != left]]
    ]  # fmt: skip
    kinds = [
        [
            kind,
            *(str(sum(o.kind == kind and o.state == s for o in found)) for s in (*STATES, REFUSED)),
        ]
        for kind in CASES
    ]
    return [
        f"{len(found)} made robots ({', '.join(ROBOTS)}; seeds from {seed} on), half of them with "
        "sound logs. A result "
        "holds if its torques err on a fresh motion of the same kind (places, frequencies and "
        f"amplitudes, with other phases) by at most {SAID:g} times the largest of its fitted, "
        f"held-out and expected errors, and {100 * COVERED:.0f} % of its 95 % intervals of bodies "
        "and rotors have the truth; errors are below the frequency that the result states. "
        "“elsewhere”: the same of a motion in other places, at other speeds. "
        f"“{UNSEEN}” is left out of the first table: no log shows it, and every verdict says so. "
        f"“{ZERO}” is in it, and left out in a row of its own: verdicts say that no log shows this "
        "either, and the file's bodies only show one that is large.",
        "",
        *markdown(["verdict", "results", "torques as said %", "intervals cover %", "both %",
                   "intervals with the truth %", "elsewhere %"], rows),
        "",
        *markdown(["logs", *every], kinds),
    ]  # fmt: skip


def share(values: Iterable[float] | Array) -> str:
    """Per cent in the mean, or a dash."""
    each = [*values]
    return f"{100.0 * float(np.mean(each)):.0f}" if each else "-"


if __name__ == "__main__":
    main()
