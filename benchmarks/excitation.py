"""Designed trajectories: condition numbers, searches side by side, predictions, the whole loop.

Writes docs/figures/excitation.md. Run from the top of the project:
python benchmarks/excitation.py [--quick] [--long] [PART ...]
Parts: six tx40 seven ur10 talos montecarlo sensor filters loop, and long (an hour; Ctrl-C ends its
starts, then its polish), which runs when it is named or with --long. Parts that do not run keep
their place on the page as it is; --quick prints a short form of each and writes nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import FIGURES, ROOT, TX40, markdown

import dynident as di
from dynident.core.arrays import Array
from dynident.core.inertia import to_inertial_parameters, to_pseudo_inertia
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import build_idim
from dynident.excitation.certificate import FINER
from dynident.excitation.criteria import CRITERIA
from dynident.excitation.design import (
    DesignTask,
    build_program,
    design_trajectory,
    draw_random_start,
    fit_standstill,
    polish_trajectory,
    shrink_into_constraints,
)
from dynident.excitation.excite import Excitation, excite, sample_fine_motion
from dynident.excitation.information import WeightedMotion, build_quadrature
from dynident.excitation.interior import Program, minimise_program
from dynident.excitation.trajectories import Trajectory
from dynident.methods.options import estimate
from dynident.recording.prepare import Preparation, Samples, prepare, prepare_by_options
from dynident.recording.recording import Recording
from dynident.regression.factors import Factors
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import take_every_sample
from dynident.robot import load_robot
from dynident.robot.cut import cut_off_limb
from dynident.robot.model import Robot
from dynident.study.excite import compute_information_matrix
from dynident.study.study import load_study_robot, read_study_samples
from dynident_papers.zhang2018 import simulated

PAGE = FIGURES / "excitation.md"
LWR4 = ROOT.parent / "shared" / "data" / "lwr4" / "kuka_lwr4.urdf"
ENDLESS = 1e5
"""A budget that does not run out: these runs are counted in starts, and timed [s]."""
DEG = np.pi / 180.0


def public(relative: str) -> Path:
    """A robot of example-robot-data (the test extra installs it)."""
    import pinocchio

    for folder in Path(pinocchio.__file__).parents:
        path = folder / "share/example-robot-data/robots" / relative
        if path.is_file():
            return path
    raise SystemExit("example-robot-data is not installed: pip install 'dynident[test]'")


def designed(robot: Robot, friction: str, **options: Any) -> tuple[Excitation, float]:
    """A design, and the processor's seconds that it took."""
    begun = time.process_time()
    # the searches that it is compared with know no floor
    found = excite(robot, friction, time=ENDLESS, floor=False, **options)
    return found, time.process_time() - begun


def kept(found: Excitation) -> str:
    """What the certificate says."""
    worst = found.design.certificate.worst
    assert worst is not None
    answer = "proved" if found.design.certificate.ok else "NOT KEPT"
    return f"{answer}; most used: {worst.what} of {worst.where}, {100.0 * worst.share:.1f} %"


def numbers(found: Excitation) -> list[str]:
    """Unscaled, column-scaled and physically scaled condition numbers."""
    p = found.prediction
    return [f"{value:.3g}" for value in (p.unscaled, p.columns, p.physical)]


FRICTION, STRIBECK = simulated.FRICTION, simulated.STRIBECK
SCALINGS = ("condition", "column-condition", "presse-gautier")


# --- the arm of the literature's class ---------------------------------------------------------


def six(quick: bool) -> list[str]:
    """Condition numbers of the ER20's stand-in."""
    arm = simulated.load_arm()
    speed = simulated.LARGEST_SPEED
    range_ = np.array([160.0, 70.0, 70.0, 170.0, 110.0, 180.0]) * DEG
    joints = tuple(
        replace(joint, friction=c, damping=v)
        for joint, c, v in zip(arm.robot.joints, simulated.COULOMB, simulated.VISCOUS, strict=True)
    )
    robot = replace(arm.robot, joints=joints)
    limits: dict[str, tuple[Array, Array]] = {
        "ours": (range_, speed),
        "three times as fast": (range_, 3.0 * speed),
        "and a turn each": (np.full(6, np.pi), 3.0 * speed),
    }
    cases = [("ours", criterion) for criterion in SCALINGS]
    cases += [(words, "column-condition") for words in limits if words != "ours"]
    rows = []
    for friction_words, friction in (("linear", FRICTION), ("Stribeck", STRIBECK)):
        for words, criterion in cases:
            far, fast = limits[words]
            found, spent = designed(
                robot,
                friction,
                rotor=False,
                ramp=1.0,
                criterion=criterion,
                collision=False,
                lower=tuple(-far),
                upper=tuple(far),
                speed=tuple(fast),
                acceleration=tuple(4.0 * fast),
                sigma=(1.0,) * 6,
                rate=100.0,
                starts=1 if quick else 4,
                iterations=60 if quick else 200,
            )
            cells = [*numbers(found), f"{spent:.0f}", kept(found)]
            rows.append([friction_words, words, criterion, *cells])
    head = ["friction", "limits", "minimised", "unscaled", "columns", "physical", "seconds"]
    return [
        *markdown([*head, "certificate"], rows),
        "",
        "The six-joint stand-in for the ER20-C10 (`dynident_papers.zhang2018`): five harmonics of "
        "0.1 Hz between ramps from rest and to rest, as eq. (27) is not at rest either; all "
        "joints' torques weigh alike; 48 columns, 60 with Stribeck's term and offsets. The robot "
        "has no shapes, hence no collisions, and no efforts. *Ours*: speeds of the stand-in's "
        f"own trajectories ({', '.join(f'{v:g}' for v in speed)} rad/s), ranges of "
        f"{', '.join(f'{v / DEG:.0f}' for v in range_)} degrees to both sides; accelerations up "
        "to four times the speeds, a second. *Columns*: each over its norm; *physical*: each "
        "times the size of its parameter by the file.",
        "",
        "zhang2018 reaches 4.6 (linear) and 5.7 (Stribeck) with a genetic algorithm, and states "
        "neither how K is scaled nor which limits hold. Only with columns over their norms are "
        "numbers of that size found here, and they depend on the limits as much: unscaled, and "
        "scaled by the parameters' sizes, the smallest is more than ten times larger.",
    ]


def column_condition(M: Array) -> float:
    """Of rows with the normal matrix M, each column over its norm."""
    size = np.sqrt(np.diag(M))
    return float(np.sqrt(np.linalg.cond(M / np.outer(size, size))))


# --- the TX40 and its log ----------------------------------------------------------------------


def shipped() -> tuple[Robot, Samples, str]:
    """The robot and the prepared log beside it."""
    study = di.read_study(TX40 / "study.toml")
    robot = load_study_robot(study)
    (log,) = (each for each in study.log if each.use == "identify")
    return robot, read_study_samples(log, robot, study.prepare), study.robot.friction


def both(factors: Factors) -> tuple[float, float]:
    """Unscaled and column-scaled condition number of the rows that are fitted."""
    system = factors.weighted(np.ones(len(factors.groups)))
    return float(np.linalg.cond(system.A)), system.condition()[0]


def tx40(quick: bool) -> list[str]:
    """The shipped log beside designs of its length."""
    robot, samples, friction = shipped()
    problem = Problem(robot, samples, friction)
    old = both(problem.factors)
    duration = len(samples.q) / samples.rate
    # the URDF states the ranges of joints 2 and 3 about the controller's zero
    zero = np.array([0.0, -0.5 * np.pi, 0.5 * np.pi, 0.0, 0.0, 0.0])
    low = zero + np.array([joint.lower for joint in robot.joints])
    high = zero + np.array([joint.upper for joint in robot.joints])
    rows = [["the shipped log", f"{duration:g}", f"{old[0]:.0f}", f"{old[1]:.1f}", "", ""]]
    for criterion in ("condition", "column-condition", "d"):
        found, spent = designed(
            robot,
            friction,
            criterion=criterion,
            collision=False,
            lower=tuple(low),
            upper=tuple(high),
            duration=duration,
            sigma=(1.0,) * 6,
            rate=samples.rate,
            drop_below=samples.drop_below,
            starts=1 if quick else 4,
            iterations=60 if quick else 300,
        )
        new = both(Problem(robot, followed(found, robot, samples.preparation), friction).factors)
        gain = f"{old[0] / new[0]:.1f}x, {old[1] / new[1]:.1f}x"
        cells = [f"{duration:g}", f"{new[0]:.0f}", f"{new[1]:.2f}", gain]
        rows.append([f"designed: {criterion}", *cells, f"{spent:.0f}"])
    return [
        *markdown(
            ["motion", "seconds", "unscaled", "columns scaled", "lower by", "seconds of search"],
            rows,
        ),
        "",
        f"{problem.base.count} columns (`{friction}`), the study's preparation and slow rows "
        "dropped alike, joints weighing alike. Limits: speeds, efforts (less a margin of a fifth) "
        "and ranges of the URDF, the ranges of joints 2 and 3 about the controller's zero, where "
        "they are stated. Five harmonics of a period as long as the log. No meshes ship with the "
        "example: its collisions are not watched. Asked: four times lower.",
    ]


def followed(found: Excitation, robot: Robot, wanted: Preparation, tau: Array | None = None) -> Any:
    """Samples along a designed trajectory, prepared as a log is."""
    reference = found.trajectory.reference(found.rate, found.periods)
    torque = np.zeros_like(reference.q) if tau is None else tau
    return prepare_by_options(
        Recording("designed", found.rate, reference.q, torque, drives=robot.drives), wanted
    )


# --- seven joints, side by side ----------------------------------------------------------------


def panda() -> Robot:
    fingers = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
    return load_robot(public("panda_description/urdf/panda.urdf"), locked=fingers)


KEPT = 1e-4
"""Share of a limit's size by which it may be broken on the search's own grid."""


class OutOfTimeError(Exception):
    """The budget of a search that cannot be stopped otherwise."""


class Watch:
    """A program that keeps its last point and the best one inside, and a clock."""

    def __init__(self, program: Program, seconds: float) -> None:
        self.program, self.stop = program, time.process_time() + seconds
        self.z: Array | None = None
        self.last: Any = None
        self.best: tuple[float, Array] | None = None
        self.nearest: tuple[float, Array] | None = None
        self.calls = 0

    @property
    def over(self) -> bool:
        return time.process_time() > self.stop

    def at(self, z: Array) -> Any:
        """f, gradient, c, Jacobian, each once."""
        if self.z is None or not np.array_equal(z, self.z):
            self.z, self.last = np.array(z), self.program.evaluate(np.array(z))
            self.calls += 1
            self.noted()
        return self.last

    def excess(self) -> Array:
        """By how much each constraint is broken, over its unit."""
        p, c = self.program, self.last[2]
        return np.asarray(np.maximum(p.low - c, c - p.high) / p.unit)

    def noted(self) -> None:
        assert self.z is not None
        if not np.isfinite(self.last[0]):
            return
        worst = float(self.excess().max())
        if worst <= KEPT and (self.best is None or self.last[0] < self.best[0]):
            self.best = float(self.last[0]), self.z
        if self.nearest is None or worst < self.nearest[0]:
            self.nearest = worst, self.z

    def answer(self) -> Array:
        """The best inside, or what was nearest to it."""
        found = self.best or self.nearest
        assert found is not None
        return found[1]


def ipopt(watch: Watch, z: Array) -> None:
    """Ipopt with the same exact first derivatives, its Hessian by L-BFGS."""
    ca = importlib.import_module("casadi")
    N, m, unit = len(z), len(watch.program.low), watch.program.unit

    class Slopes(ca.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            ca.Callback.__init__(self)
            self.construct("slopes", {})

        def get_n_in(self) -> int:
            return 3

        def get_n_out(self) -> int:
            return 2

        def get_sparsity_in(self, i: int) -> Any:
            return ca.Sparsity.dense((N, 1, m)[i], 1)

        def get_sparsity_out(self, i: int) -> Any:
            return ca.Sparsity.dense((1, m)[i], N)

        def eval(self, given: Any) -> Any:
            _, gradient, _, J = watch.at(np.array(given[0]).ravel())
            return [gradient[None], J / unit[:, None]]

    class Values(ca.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            ca.Callback.__init__(self)
            self.slopes = Slopes()
            self.construct("values", {})

        def get_n_in(self) -> int:
            return 1

        def get_n_out(self) -> int:
            return 2

        def get_sparsity_in(self, i: int) -> Any:
            return ca.Sparsity.dense(N, 1)

        def get_sparsity_out(self, i: int) -> Any:
            return ca.Sparsity.dense((1, m)[i], 1)

        def eval(self, given: Any) -> Any:
            f, _, c, _ = watch.at(np.array(given[0]).ravel())
            return [f, c / unit]

        def has_jacobian(self) -> bool:
            return True

        def get_jacobian(self, *_: Any) -> Any:
            return self.slopes

    values = Values()
    x = ca.MX.sym("x", N)
    f, g = values(x)
    settings = {
        "ipopt": {
            "hessian_approximation": "limited-memory",
            "limited_memory_max_history": 30,
            "max_cpu_time": max(watch.stop - time.process_time(), 0.1),
            "max_iter": 3000,
            "tol": 1e-4,
            "print_level": 0,
            "sb": "yes",
        },
        "print_time": False,
    }
    solver = ca.nlpsol("solver", "ipopt", {"x": x, "f": f, "g": g}, settings)
    low, high = watch.program.low / unit, watch.program.high / unit
    solver(x0=z, lbg=low, ubg=high)


def evolution(watch: Watch, z: Array, task: DesignTask) -> None:
    """CMA-ES, sums of what is broken as penalties."""
    cma = importlib.import_module("cma")
    found = cma.CMAEvolutionStrategy(z, 0.1, {"verbose": -9, "seed": 1, "maxiter": 10**9})
    while not watch.over and not found.stop():
        proposed = found.ask()
        found.tell(proposed, [penalised(watch, task, np.asarray(each)) for each in proposed])


def penalised(watch: Watch, task: DesignTask, z: Array) -> float:
    """The objective with sums of what is broken as penalties."""
    if watch.over:
        raise OutOfTimeError
    watch.z, watch.last = np.array(z), plain(task, watch.program, z)
    watch.calls += 1
    watch.noted()
    if not np.isfinite(watch.last[0]):
        return 1e6
    broken = np.maximum(watch.excess(), 0.0)
    return float(watch.last[0] + 10.0 * broken.sum() + 10.0 * broken.max())


SWARM = 40
"""Random motions that a population begins with."""


def differential(watch: Watch, z: Array, task: DesignTask) -> None:
    """scipy's differential evolution of a population of random motions, with penalties."""
    solver: Any = importlib.import_module("scipy.optimize").differential_evolution
    rng = np.random.default_rng(2)
    first = [draw_random_start(task, watch.program, rng).ravel() for _ in range(SWARM - 1)]
    population = np.array([z, *first])
    most = 2.0 * np.abs(population).max(axis=0)
    with suppress(OutOfTimeError):
        solver(
            lambda z: penalised(watch, task, z),
            list(zip(-most, most, strict=True)),
            init=population,
            maxiter=10**6,
            tol=0.0,
            seed=1,
            polish=False,
        )


def annealing(watch: Watch, z: Array, task: DesignTask) -> None:
    """scipy's dual annealing without a local search, with penalties."""
    solver: Any = importlib.import_module("scipy.optimize").dual_annealing
    most = 4.0 * np.maximum(np.abs(z), np.abs(z).mean())
    with suppress(OutOfTimeError):
        solver(
            lambda z: penalised(watch, task, z),
            list(zip(-most, most, strict=True)),
            x0=z,
            maxiter=10**6,
            seed=1,
            no_local_search=True,
        )


def begun_globally(watch: Watch, z: Array, task: DesignTask) -> None:
    """Differential evolution for half of the time, then our search from the best it has met."""
    stop = watch.stop
    watch.stop = 0.5 * (time.process_time() + stop)
    differential(watch, z, task)
    watch.stop = stop
    p = watch.program
    C = watch.answer().reshape(task.family.count, -1)
    inside = shrink_into_constraints(p, C, fit_standstill(task, C))
    if inside is not None:
        seen = Program(watch.at, p.low, p.high, p.unit)
        minimise_program(seen, inside.ravel(), 300, stop - time.process_time())


def plain(task: DesignTask, program: Program, z: Array) -> Any:
    """The program without its derivatives: f and c."""
    family, limits, n = task.family, task.limits, len(task.names)
    C = z.reshape(family.count, n)
    trajectory = Trajectory(family, C)
    times = family.grid(task.step)
    middles, duration = build_quadrature(trajectory.family, task.step)
    q, dq, ddq = (trajectory.at(middles, k) for k in range(3))
    motion = WeightedMotion(q, dq, ddq, duration)
    f, _ = CRITERIA[task.criterion].evaluate(task.experiment.information(motion), task.asked)
    at = [trajectory.at(times, k) for k in range(4)]
    c = [
        at[order][:, j]
        for order in range(4)
        for j in range(n)
        if np.isfinite(limits.of_order(order)[1][j])
    ]
    if task.nominal is not None:
        c.append(task.nominal.torque(*at[:3])[:, np.isfinite(limits.torque)].ravel())
    if task.clearance is not None:
        c.append(task.clearance.smooth(at[0], task.clearance.unseen(len(times)))[0])
    return f, z, np.concatenate(c), None


def slsqp(watch: Watch, z: Array) -> None:
    """scipy's, with the same exact derivatives."""
    solver: Any = importlib.import_module("scipy.optimize").minimize
    p = watch.program
    up, down = np.isfinite(p.low), np.isfinite(p.high)

    def at(z: Array) -> Any:
        if watch.over:
            raise OutOfTimeError
        return watch.at(z)

    def slack(z: Array) -> Array:
        c = at(z)[2]
        return np.concatenate([((c - p.low) / p.unit)[up], ((p.high - c) / p.unit)[down]])

    def slopes(z: Array) -> Array:
        J = at(z)[3] / p.unit[:, None]
        return np.vstack([J[up], -J[down]])

    with suppress(OutOfTimeError):
        solver(
            lambda z: float(at(z)[0]),
            z,
            jac=lambda z: np.ravel(at(z)[1]),
            method="SLSQP",
            constraints={"type": "ineq", "fun": slack, "jac": slopes},
            options={"maxiter": 1000, "ftol": 1e-6},
        )


def violations(task: DesignTask, trajectory: Trajectory) -> tuple[float, float]:
    """Worst share over a limit of joints and torques [%], and lack of clearance [mm]."""
    times = task.family.grid(task.step / FINER)
    at = [trajectory.at(times, order) for order in range(4)]
    worst = -np.inf
    for order in range(4):
        low, high = task.limits.of_order(order)
        if np.any(np.isfinite(high)):
            half = 0.5 * (high - low)
            over = np.maximum(at[order] - high, low - at[order]) / half
            worst = max(worst, float(over.max()))
    if task.nominal is not None:
        tau = np.abs(task.nominal.torque(*at[:3])) + task.nominal.steady
        worst = max(worst, float((tau / task.limits.torque).max()) - 1.0)
    lack = 0.0
    if task.clearance is not None:
        lack = task.limits.clearance - float(task.clearance.distances(at[0]).min())
    return 100.0 * max(worst, 0.0), 1e3 * max(lack, 0.0)


def compared(
    robot: Robot, quick: bool, chosen: Sequence[str], **options: Any
) -> tuple[list[str], list[list[str]]]:
    """Our search, then those chosen from the same start, in the same time."""
    found, spent = designed(robot, "coulomb-viscous", iterations=40 if quick else 300, **options)
    task = found.design.task
    n = len(task.names)
    program = build_program(task, task.limits, task.family.grid(task.step))
    information = replace(task.experiment, width=None)

    def line(name: str, C: Array, how: str, seconds: float) -> list[str]:
        trajectory = Trajectory(task.family, C.reshape(-1, n))
        M = information.information(sample_fine_motion(trajectory))
        over, lack = violations(task, trajectory)
        logdet = float(np.linalg.slogdet(M)[1])
        value = task.value(trajectory)
        columns = column_condition(M)
        broken = "none" if over == 0.0 and lack == 0.0 else f"{over:.2g} %, {lack:.2g} mm"
        cells = [f"{value:.3f}", f"{logdet:.2f}", f"{columns:.3g}", broken, f"{seconds:.0f}"]
        return [name, *cells, how]

    certificate = kept(found)
    ours = f"{len(found.design.history)} starts; {certificate}"
    rows = [line("dynident", found.trajectory.C, ours, spent)]
    others: dict[str, tuple[str | None, Callable[[Watch, Array], object]]] = {
        "Ipopt (casadi)": ("casadi", ipopt),
        "CMA-ES, penalties": ("cma", lambda watch, z: evolution(watch, z, task)),
        "differential evolution": (None, lambda watch, z: differential(watch, z, task)),
        "dual annealing": (None, lambda watch, z: annealing(watch, z, task)),
        "half of it, then ours": (None, lambda watch, z: begun_globally(watch, z, task)),
        "scipy SLSQP": (None, slsqp),
        "random search": (None, Watch.at),
    }
    for name in chosen:
        package, search = others[name]
        if package is not None and importlib.util.find_spec(package) is None:
            rows.append([name, "", "", "", "", "", f"{package} is not installed"])
            continue
        begun = time.process_time()
        watch, rng, count = Watch(program, spent), np.random.default_rng(0), 0
        while not watch.over:
            with suppress(OutOfTimeError):
                search(watch, draw_random_start(task, program, rng).ravel())
            count += 1
        seconds = time.process_time() - begun
        how = f"{count} starts, {watch.calls} evaluations"
        rows.append(line(name, watch.answer(), how, seconds))
    words = (
        f"**{robot.name}**: {n} joints, {found.prediction.base.count} base parameters, "
        f"{found.trajectory.C.size} coefficients, {len(program.low)} constraints"
    )
    if task.clearance is not None:
        words += (
            f", {len(task.clearance.pairs)} pairs of shapes ({task.clearance.near} of them guide "
            "the search)"
        )
    return [words + "."], rows


ACCELERATION = 10.0
"""Where a file limits no accelerations [rad/s^2]."""


def seven(quick: bool) -> list[str]:
    """Arms of seven joints, ours beside others' searches."""
    return [
        *tabulate_searches(
            quick, ("Ipopt (casadi)", "CMA-ES, penalties", "scipy SLSQP", "random search")
        ),
        "Five harmonics of 0.1 Hz, `coulomb-viscous`, the criterion `d` (minus log-determinant of "
        "the information over the number of parameters, in the units of a motion that is usual "
        "for the robot), limits of the file less a margin of a fifth of the torques, "
        f"accelerations up to {ACCELERATION:g} rad/s². All have the same smoothed objective, "
        "variables, limits and instants at which these are asked for, the first four with "
        "the same exact derivatives or values, and the processor's time that ours took, its proof "
        "included; all begin at the same random motions within the limits, and start again at the "
        "next one while there is time. The answer of the others is the best evaluation that broke "
        f"no limit at these instants by more than {KEPT:g} of its size. "
        "*Broken*: on a grid ten times finer, the most of any limit, and of the clearance of "
        "10 mm. *Log det M* is that of the information in SI units, *columns* the column-scaled "
        "condition number, both with the exact sign of friction. One thread.",
    ]


def swarm(quick: bool) -> list[str]:
    """The same arms, ours beside a swarm and annealing, alone and as a start of ours."""
    return [
        *tabulate_searches(
            quick, ("differential evolution", "dual annealing", "half of it, then ours")
        ),
        f"As above. *Differential evolution* begins with {SWARM} random motions, *dual annealing* "
        "with one, both with the penalties of CMA-ES. *Half of it, then ours* is a global start: "
        "differential evolution for half of the time, then our search from the best that it has "
        "met.",
    ]


def tabulate_searches(quick: bool, chosen: Sequence[str]) -> list[str]:
    """Arms of seven joints, ours beside other searches."""
    lines: list[str] = []
    arms = [panda()]
    if LWR4.is_file() and not quick:
        arms.append(load_robot(LWR4))
    head = ["search", "value", "log det M", "columns", "broken", "seconds", "how it ended"]
    for robot in arms:
        drawn = has_shapes(robot)
        starts = 1 if quick else 2 if drawn else 8  # without shapes a start takes a second
        words, rows = compared(
            robot, quick, chosen, starts=starts, acceleration=ACCELERATION, collision=drawn
        )
        if not drawn:
            words[0] += " Its meshes are not here: without collisions."
        lines += [*words, "", *markdown(head, rows), ""]
    return lines


def has_shapes(robot: Robot) -> bool:
    """Whether the meshes of a robot's file are there."""
    try:
        build = importlib.import_module("dynident.excitation.clearance").build_clearance
        return build(robot) is not None
    except di.InputError:
        return False


HOUR = 3600.0
"""The processor's seconds of the long search."""
RANDOM = 0.7
"""Share of it for random starts; then CMA-ES goes on from the best of them."""
KEEP, SLICE = 5, 200.0
"""Of the best starts, each polished in turn for so long, until the time is over [s]."""


def long(quick: bool) -> list[str]:
    """How much a long search of many starts finds beyond half a minute's."""
    robot = panda()
    short, spent = designed(
        robot,
        "coulomb-viscous",
        starts=1 if quick else 3,
        iterations=20 if quick else 300,
        acceleration=ACCELERATION,
    )
    task = short.design.task
    found, starts, seconds = searched_long(task, 60.0 if quick else HOUR, 20 if quick else 500)
    exact = replace(task.experiment, width=None)
    each = [(short.design.value, short.trajectory), *((d[0], d[1]) for d in found)]
    dets = [
        float(np.linalg.slogdet(exact.information(sample_fine_motion(motion)))[1])
        for _, motion in each
    ]
    words = (
        "3 starts, 300 iterations each",
        f"{starts} other starts, 500 iterations each",
        f"and CMA-ES from the {KEEP} best",
    )
    rows = [
        [which, f"{value:.4f}", f"{det:.2f}", f"{time_:.0f}"]
        for which, (value, _), det, time_ in zip(words, each, dets, (spent, *seconds), strict=True)
    ]
    gap = 100.0 * (1.0 - dets[0] / max(dets))
    ratio = np.exp(0.5 * (short.design.value - min(value for value, _ in each)))
    return [
        *markdown(["Panda, as above", "value", "log det M", "seconds"], rows),
        "",
        f"The log-determinant of the short search is {gap:.2f} % below the best of all, its "
        f"standard deviations {100.0 * (ratio - 1.0):.1f} % larger (geometric mean). Asked: 1 %, "
        f"of an hour's search; this one had {seconds[1] / 60.0:.0f} minutes of the processor. "
        "Log det M depends on units, the ratio of standard deviations does not.",
    ]


def searched_long(
    task: DesignTask, budget: float, iterations: int
) -> tuple[list[tuple[float, Trajectory, Any]], int, list[float]]:
    """The best of random starts, and what CMA-ES makes of the best; stopped by hand, too.

    Returns
    -------
    found : list
        The best before the polish, and after it.
    starts : int
    seconds : list of float
        Of the processor, for the one and for both.
    """
    begun = time.process_time()
    pool: list[tuple[float, Trajectory, Any]] = []
    starts, before, until = 0, 0.0, 0.0

    def told(what: str, value: float) -> None:
        print(f"{time.process_time() - begun:7.0f} s  {what}: {value:.5f}", flush=True)

    with suppress(KeyboardInterrupt):
        while time.process_time() - begun < RANDOM * budget:
            with suppress(di.ComputationError):
                each = design_trajectory(task, 1, 1000 + starts, ENDLESS, iterations)
                pool.append((each.value, each.trajectory, each.certificate))
                pool = sorted(pool, key=lambda one: one[0])[:KEEP]
            starts += 1
            if pool:
                told(f"after {starts} starts", pool[0][0])
    before = time.process_time() - begun
    first, turn = pool[0], 0
    with suppress(KeyboardInterrupt):
        while time.process_time() - begun < budget:
            one = turn % len(pool)
            better = polish_trajectory(task, pool[one], turn, min(SLICE, budget))
            pool[one] = min(pool[one], better, key=lambda each: each[0])
            turn += 1
            told(f"after polishing the one of rank {one + 1}", min(each[0] for each in pool))
    until = time.process_time() - begun
    return [first, min(pool, key=lambda each: each[0])], starts, [before, until]


# --- other robots ------------------------------------------------------------------------------


def ur10(quick: bool) -> list[str]:
    """Condition numbers for later comparison with published trajectories."""
    robot = load_robot(public("ur_description/urdf/ur10_robot.urdf"))
    sheet: dict[str, Any] = {
        "lower": (-2.0 * np.pi,) * 6,
        "upper": (2.0 * np.pi,) * 6,
        "speed": tuple(np.array([120.0, 120.0, 180.0, 180.0, 180.0, 180.0]) * DEG),
        "torque": (330.0, 330.0, 150.0, 56.0, 56.0, 56.0),
        "acceleration": ACCELERATION,
    }
    rows = []
    cases = [(20.0, "column-condition", True), (20.0, "column-condition", False)]
    cases += [(50.0, "column-condition", True), (20.0, "d", True), (20.0, "condition", True)]
    for duration, criterion, collision in cases[: 1 if quick else None]:
        found, spent = designed(
            robot,
            "coulomb-viscous",
            rotor=False,
            duration=duration,
            criterion=criterion,
            collision=collision,
            sigma=(1.0,) * 6,
            starts=1 if quick else 3,
            iterations=40 if quick else 300,
            **sheet,
        )
        watched = "watched" if collision else "not watched"
        rows.append(
            [f"{duration:g}", criterion, watched, *numbers(found), f"{spent:.0f}", kept(found)]
        )
    head = ["period [s]", "minimised", "collisions", "unscaled", "columns", "physical", "seconds"]
    return [
        *markdown([*head, "certificate"], rows),
        "",
        f"{found.prediction.base.count} columns (`coulomb-viscous`, no rotors), five harmonics, "
        "three starts; ranges, speeds and torques of the UR10e's data sheet (torques less a "
        f"fifth), accelerations up to {ACCELERATION:g} rad/s², bodies and shapes of the UR10 of "
        "example-robot-data. All joints' torques weigh alike.",
    ]


def talos(quick: bool) -> list[str]:
    """Both arms of a humanoid at once."""
    path = public("talos_data/robots/talos_reduced.urdf")
    movable = [
        str(joint.get("name"))
        for joint in ET.parse(path).getroot().findall("joint")
        if joint.get("type") != "fixed"
    ]
    robot = load_robot(path, locked={j: 0.0 for j in movable if not j.startswith("arm_")})
    found, spent = designed(
        robot,
        "coulomb-viscous",
        acceleration=ACCELERATION,
        starts=1 if quick else 3,
        iterations=15 if quick else 300,
    )
    clearance = found.design.task.clearance
    assert clearance is not None
    rows = [
        ["base parameters", str(found.prediction.base.count)],
        ["coefficients", str(found.trajectory.C.size)],
        ["pairs of shapes", str(len(clearance.pairs))],
        ["value of `d`", f"{found.design.value:.3f}"],
        ["column-scaled condition number", f"{found.prediction.columns:.3g}"],
        ["certificate", kept(found)],
        ["seconds", f"{spent:.0f}"],
    ]
    return [
        *markdown(["both arms, 14 joints", ""], rows),
        "",
        "Three starts, five harmonics of 0.1 Hz, collisions of the arms with each other and with "
        "the rest of the robot, which stands still. Asked: three minutes.",
    ]


# --- do the predictions hold -------------------------------------------------------------------


def simulated_log(
    found: Excitation,
    theta: Array,
    base: BaseParameters,
    rng: np.random.Generator,
    sigma: Array,
    encoder: float = 0.0,
    options: dict[str, Any] | None = None,
) -> Samples:
    """The log of a designed trajectory that is followed exactly."""
    reference = found.trajectory.reference(found.rate, found.periods)
    tau = base.idim.torque(theta, reference.q, reference.dq, reference.ddq)
    tau = tau + sigma * rng.normal(size=tau.shape)
    q = reference.q + encoder * rng.normal(size=reference.q.shape)
    return prepare(Recording("designed", found.rate, q, tau), **(options or {"bandwidth": 10.0}))


def truth_of(base: BaseParameters, robot: Robot) -> Array:
    """Bodies of a robot, rotors, friction of a few per cent of the efforts."""
    idim = base.idim
    theta = np.array(build_idim(robot, "coulomb-viscous").nominal)
    for k, parameter in enumerate(idim.drives):
        joint = robot.joints[parameter.number - 1]
        values = {
            "Ia": 0.002 * joint.effort,
            "fv": 0.02 * joint.effort / joint.velocity,
            "fc": 0.02 * joint.effort,
            "off": 0.002 * joint.effort,
        }
        theta[idim.inertial + k] = values[parameter.symbol]
    return theta


def montecarlo(quick: bool) -> list[str]:
    """Simulated logs of a design, identified again and again."""
    runs = 15 if quick else 150
    robot = panda()
    found, _ = designed(
        robot,
        "coulomb-viscous",
        collision=False,
        acceleration=ACCELERATION,
        starts=1,
        iterations=40 if quick else 80,
        rate=500.0,
        drop_below=0.02,
    )
    base, sigma = found.prediction.base, found.design.task.experiment.sigma
    theta = truth_of(base, robot)
    truth = base.matrix @ theta
    rows = []
    for words, encoder, options, whole in MEASURED:
        beta, told = [], []
        for seed in range(runs):
            rng = np.random.default_rng([seed, 7])
            given = {"bandwidth": 10.0, "drop_below": 0.02, **options}
            samples = simulated_log(found, theta, base, rng, sigma, encoder, given)
            problem = Problem(robot, samples, "coulomb-viscous")
            fit = estimate(take_every_sample(problem) if whole else problem, "wls")
            beta.append(fit.beta)
            told.append(fit.covariance.std)
        spread = np.std(beta, axis=0, ddof=1)
        ratio = spread / found.prediction.std
        own = spread / np.mean(told, axis=0)
        error = np.sqrt(np.mean((np.array(beta) - truth) ** 2, axis=0)) / found.prediction.std
        rows.append([words, *(ranged(each) for each in (ratio, own, error))])
    head = ["measured", "std over predicted", "std over the fit's own", "error over predicted"]
    return [
        *markdown(head, rows),
        "",
        f"Median, smallest and largest of {base.count} parameters of the Panda over {runs} logs "
        f"of one period at {found.rate:g} Hz, each identified by `wls`; torque noise of 1 % of the "
        f"efforts. The spread of {runs} logs itself is uncertain by "
        f"{100.0 / np.sqrt(2.0 * (runs - 1)):.0f} % (one sigma). *Error* has the bias in it. "
        "Asked of the first column: 20 %.",
    ]


def filters(quick: bool) -> list[str]:
    """Standard deviations of the rows that are fitted, beside those of the plain information."""
    robot = panda()
    rows, worst = [], []
    for duration, harmonics in ((10.0, 5), (5.0, 5), (4.0, 8)):
        found, _ = designed(
            robot,
            "coulomb-viscous",
            collision=False,
            acceleration=ACCELERATION,
            duration=duration,
            harmonics=harmonics,
            starts=1,
            iterations=15 if quick else 80,
            rate=500.0,
            drop_below=0.02,
        )
        fastest = harmonics / duration
        for bandwidth in (20.0, 10.0, 5.0, 2.5):
            samples = followed(found, robot, Preparation(bandwidth=bandwidth, drop_below=0.02))
            share = fitted_std(found, samples) / found.prediction.std
            cells = [f"{value:g}" for value in (duration, fastest, bandwidth, bandwidth / fastest)]
            rows.append([*cells, f"{np.exp(np.mean(np.log(share))):.3f}", ranged(share)])
            worst.append((bandwidth / fastest, float(np.mean(np.log(share))), share.max()))
    rows.sort(key=lambda row: -float(row[3]))
    said = []
    for ratio in (20.0, 10.0, 5.0):
        mean, most = (max(each[k] for each in worst if each[0] >= ratio) for k in (1, 2))
        percent = 100.0 * np.expm1(mean), 100.0 * (most - 1.0)
        said.append(f"{ratio:g} times, by {percent[0]:.1f} % and {percent[1]:.0f} %")
    head = ["period [s]", "fastest harmonic [Hz]", "bandwidth [Hz]", "their ratio", "mean"]
    return [
        *markdown([*head, "std over predicted"], rows),
        "",
        "The preparation filters and decimates the rows; the information of a design has them as "
        "they are. Here the standard deviations of what is then fitted follow from the filters' "
        "own coefficients, without simulation: each estimate is a sum over the noise of all "
        "torque samples, whose variances are added. Geometric mean; median, smallest and largest "
        f"of {found.prediction.base.count} parameters of the Panda; 500 Hz, rows below 0.02 rad/s "
        "dropped; the ends of a log that its filters take are in it. While the bandwidth "
        "is so many times the fastest harmonic, what is fitted is less certain than predicted in "
        f"the mean, and of the worst parameter, by at most: {'; '.join(said)}. A trajectory of "
        "five harmonics of 0.1 Hz that is prepared with 10 Hz is among the first.",
    ]


def fitted_std(found: Excitation, samples: Samples) -> Array:
    """What white noise of each torque sample does to weighted least squares on prepared rows."""
    base, sigma = found.prediction.base, found.design.task.experiment.sigma
    X = base.idim.regressor(samples.q, samples.dq, samples.ddq)[:, :, base.kept]
    M = np.zeros((base.count,) * 2)
    pulls = []
    for j, f in enumerate(samples.filters):
        taken = []
        for start, stop in samples.segments:
            for k in range(f.outputs(stop - start)):
                first = start + k * f.step
                if samples.moving[first + f.half, j]:
                    row = np.zeros(len(samples.q))
                    row[first : first + len(f.taps)] = f.taps
                    taken.append(row)
        F = np.array(taken)
        rows = F @ X[:, j]
        M += rows.T @ rows / sigma[j] ** 2
        pulls.append(rows.T @ F / sigma[j])
    influence = np.linalg.solve(M, np.hstack(pulls))
    return np.asarray(np.sqrt(np.sum(influence**2, axis=1)))


MEASURED: tuple[tuple[str, float, dict[str, Any], bool], ...] = (
    ("torque noise, every sample", 0.0, {}, True),
    ("torque noise, prepared (10 Hz)", 0.0, {}, False),
    ("and encoders, 1e-5 rad", 1e-5, {}, False),
    ("and encoders, 1e-4 rad", 1e-4, {}, False),
)
"""What is measured, noise of encoders [rad], how it is prepared, if all samples are rows."""


def sensor(quick: bool) -> list[str]:
    """What a force/torque sensor's rows tell: predicted, fitted again and again, and bought."""
    runs, robot, noise = 12 if quick else 100, panda(), (0.5, 0.02)
    options: dict[str, Any] = {
        "collision": False,
        "acceleration": ACCELERATION,
        "starts": 1,
        "iterations": 15 if quick else 80,
        "rate": 250.0,
        "drop_below": 0.02,
    }
    alone, _ = designed(robot, "coulomb-viscous", **options)
    rows = []
    for link in ("panda_link5", "panda_hand"):
        both, _ = designed(robot, "coulomb-viscous", sensor=link, sensor_sigma=noise, **options)
        exact = replace(both.design.task.experiment, width=None, drop_below=np.full(robot.n, 0.02))
        M = [exact.information(sample_fine_motion(each.trajectory)) for each in (both, alone)]
        std = [np.sqrt(np.diag(np.linalg.inv(each))) for each in M]
        own = exact.base.count
        gain = [
            np.exp(np.mean(np.log(std[1][part] / std[0][part])))
            for part in (slice(own), slice(own, None))
        ]
        spread = ranged(sensed_spread(both, link, noise, runs)) if link == "panda_link5" else ""
        count = len(exact.names) - own
        rows.append([link, str(count), spread, f"{gain[1]:.2f}x", f"{gain[0]:.2f}x"])
    head = ["sensor holds", "parameters beyond", "std over predicted", "beyond: by the other"]
    return [
        *markdown([*head, "robot: by the other"], rows),
        "",
        f"A sensor in a Panda, noise of {noise[0]:g} N and {noise[1]:g} Nm a sample at 250 Hz, of "
        "the torques 1 % of the efforts. *Std over predicted*: median, smallest and largest over "
        f"{runs} logs of the design, each identified by `wls` as a limb (`[robot] beyond`); "
        f"{runs} logs are uncertain by {100.0 / np.sqrt(2.0 * (runs - 1)):.0f} % (one sigma). The "
        "hand by itself is not fitted here. *By the other*: standard deviations "
        "(geometric mean) of a design that knows nothing of the sensor, over those of one that "
        "counts its rows; both criterion `d`, one start each, without collisions.",
    ]


def sensed_spread(found: Excitation, link: str, noise: tuple[float, float], runs: int) -> Array:
    """Spread of the limb's parameters over simulated logs of a design, over the predicted one."""
    robot, known = found.robot, found.design.task.experiment.sensor
    assert known is not None
    assert found.sensed is not None
    limb, base = cut_off_limb(robot, link), found.prediction.base
    reference = found.trajectory.reference(found.rate)
    motion = reference.q, reference.dq, reference.ddq
    tau = base.idim.torque(truth_of(base, robot), *motion)
    held = known.base.idim
    first = held.robot.n - 6 - limb.n
    phi = held.split(held.nominal)[0]
    wrench = evaluate_inverse_dynamics(held.tree, phi, *map(known.spread, motion))[
        :, first : first + 6
    ]
    beta = []
    for seed in range(runs):
        rng = np.random.default_rng([seed, 5])
        log = Recording(
            "designed",
            found.rate,
            reference.q,
            tau + found.design.task.experiment.sigma * rng.normal(size=tau.shape),
            joints=robot.joint_names,
            wrenches={link: wrench + np.repeat(noise, 3) * rng.normal(size=wrench.shape)},
        )
        samples = prepare(log, bandwidth=10.0, drop_below=0.02)
        beta.append(estimate(Problem(limb, samples, "coulomb-viscous"), "wls").beta)
    return np.asarray(np.std(beta, axis=0, ddof=1) / found.sensed.std)


def ranged(values: Array) -> str:
    """Median, least and largest."""
    return f"{np.median(values):.2f} ({values.min():.2f} to {values.max():.2f})"


# --- the whole loop ----------------------------------------------------------------------------


def wrong(robot: Robot, by: float, seed: int) -> Robot:
    """Another robot, whose bodies are as possible, each stretched, their moments off by so much."""
    rng = np.random.default_rng(seed)
    bodies = []
    for phi in robot.nominal:
        stretch = np.diag(1.0 + 0.5 * by * rng.choice([-1.0, 1.0], 4))
        bodies.append(to_inertial_parameters(stretch @ to_pseudo_inertia(phi) @ stretch))
    return replace(robot, nominal=np.array(bodies))


def loop(quick: bool) -> list[str]:
    """Excite, simulate, identify, excite again, beside one long random experiment."""
    nominal = panda()
    rows = [
        [str(seed + 1), *round_trip(nominal, wrong(nominal, 0.3, seed), seed, quick)]
        for seed in range(1 if quick else 3)
    ]
    head = ["robot", "the file", "after one", "after two", "random, as long", "two over random"]
    return [
        *markdown([*head, "std two over random", "largest torque of the robot"], rows),
        "",
        "The robot is a Panda whose links are stretched so that their moments are 30 % from the "
        "file's, which the designs take for true; friction and rotors are not in the file. Two "
        "designed periods of 10 s, the second designed after what the first told (`known`), "
        "beside one of 20 s of random harmonics, shrunk into the same limits; white noise of 1 % "
        "of the efforts. Relative errors [%] of the torques without noise on three other random "
        "motions, all joints stacked. *Largest torque*: of its drives' efforts, along the first "
        "design; the margin of a fifth is for that. Collisions are not watched here.",
    ]


def round_trip(nominal: Robot, real: Robot, seed: int, quick: bool) -> list[str]:
    """Both ways with one robot."""
    friction = "coulomb-viscous"
    base = base_parameters(build_idim(nominal, friction))
    theta = truth_of(base, real)
    rng = np.random.default_rng([seed, 3])
    options: dict[str, Any] = {
        "acceleration": ACCELERATION,
        "collision": False,
        "starts": 1,
        "iterations": 20 if quick else 80,
        "rate": 500.0,
        "seed": seed,
    }
    logs: list[Samples] = []
    fits: list[Array] = []
    first, known = None, None
    for _ in range(2):
        found, _ = designed(nominal, friction, known=known, **options)
        first = first or found
        sigma = found.design.task.experiment.sigma
        logs.append(simulated_log(found, theta, base, rng, sigma))
        problem = Problem(nominal, logs, friction)
        fits.append(estimate(problem, "wls").beta)
        known = compute_information_matrix(problem)
    assert first is not None
    assert known is not None
    task = first.design.task
    peak = first.trajectory.reference(500.0)
    tau = np.abs(base.idim.torque(theta, peak.q, peak.dq, peak.ddq))
    used = 100.0 * float((tau / [joint.effort for joint in nominal.joints]).max())
    # one random experiment of both lengths together
    long_family = excite_family(20.0, 10)
    slow = replace(task, family=long_family)
    program = build_program(slow, slow.limits, long_family.grid(slow.step))
    motion = Trajectory(long_family, draw_random_start(slow, program, rng))
    at_random = replace(first, design=replace(first.design, trajectory=motion))
    samples = simulated_log(at_random, theta, base, rng, sigma)
    problem = Problem(nominal, samples, friction)
    fits.append(estimate(problem, "wls").beta)
    randomly = compute_information_matrix(problem)
    errors = [held_out(task, base, theta, beta, seed) for beta in (nominal_beta(base), *fits)]
    ratio = np.sqrt(np.diag(np.linalg.inv(known)) / np.diag(np.linalg.inv(randomly)))
    cells = [f"{error:.2f}" for error in errors]
    return [*cells, f"{errors[2] / errors[3]:.2f}", ranged(ratio), f"{used:.0f} %"]


def excite_family(duration: float, harmonics: int) -> Any:
    """Random motions of the same frequencies."""
    from dynident.excitation.trajectories import fourier

    return fourier(duration, harmonics)


def nominal_beta(base: BaseParameters) -> Array:
    """What the file says."""
    return np.asarray(base.matrix @ base.idim.nominal)


def held_out(task: DesignTask, base: BaseParameters, theta: Array, beta: Array, seed: int) -> float:
    """Relative error of the torques along other motions [%]."""
    rng = np.random.default_rng([seed, 11])
    program = build_program(task, task.limits, task.family.grid(task.step))
    wrongs, torques = [], []
    for _ in range(3):
        motion = Trajectory(task.family, draw_random_start(task, program, rng)).reference(200.0)
        y = base.idim.torque(theta, motion.q, motion.dq, motion.ddq)
        X = base.idim.regressor(motion.q, motion.dq, motion.ddq)[:, :, base.kept]
        wrongs.append(y - X @ beta)
        torques.append(y)
    return 100.0 * float(np.linalg.norm(wrongs) / np.linalg.norm(torques))


# --- the page ----------------------------------------------------------------------------------

PARTS: dict[str, tuple[str, Callable[[bool], list[str]]]] = {
    "six": ("A six-joint arm of the ER20's class", six),
    "tx40": ("TX40", tx40),
    "seven": ("Seven joints, beside other searches", seven),
    "swarm": ("Seven joints, a swarm and annealing", swarm),
    "long": ("Seven joints, a long search", long),
    "ur10": ("UR10e", ur10),
    "talos": ("Talos' arms", talos),
    "montecarlo": ("Do the predictions hold?", montecarlo),
    "sensor": ("A force sensor in the chain", sensor),
    "filters": ("Filters and the information", filters),
    "loop": ("The whole loop", loop),
}


def main(arguments: list[str]) -> None:
    """Make the parts that are asked for anew, and write the page."""
    quick, far = "--quick" in arguments, "--long" in arguments
    chosen = [each for each in arguments if not each.startswith("--")]
    for each in chosen:
        if each not in PARTS:
            raise SystemExit(f"there is no part {each!r}; there are {', '.join(PARTS)}")
    if not chosen:
        chosen = [part for part in PARTS if part != "long"]
    if far and "long" not in chosen:
        chosen.append("long")
    old = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    bodies = dict(re.findall(r"^## (.+?)\n\n(.*?)(?=^## |\Z)", old, re.M | re.S))
    for name in chosen:
        title, part = PARTS[name]
        begun = time.process_time()
        bodies[title] = "\n".join(part(quick)) + "\n\n"
        spent = time.process_time() - begun
        print(f"## {title} ({spent:.0f} s)\n\n{bodies[title]}", flush=True)
        if not quick:
            write(bodies)


def write(bodies: dict[str, str]) -> None:
    """The page, its parts in their order."""
    lines = ["# Excitation", "", "Made by `benchmarks/excitation.py`. Seconds are the processor's."]
    text = "\n".join([*lines, "", ""])
    for title, _ in PARTS.values():
        if title in bodies:
            text += f"## {title}\n\n{bodies[title]}"
    PAGE.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
