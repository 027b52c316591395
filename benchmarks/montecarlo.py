"""Bias and intervals of the estimators under noise in the loop: Monte-Carlo on known robots.

A planar arm and the TX40 twin follow a reference under sampled controllers that see the noisy
positions; runs differ by their noise only. Run from the top of the project:
python benchmarks/montecarlo.py [RUNS] (writes docs/figures/montecarlo.md and .png; with the
500 runs of the page it takes half an hour on one core; runs go over all cores)
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

# thousands of small factorisations: threads cost more than they bring
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import FIGURES
from scipy import special

from dynident.control.controller import CONTROLLERS, Controller
from dynident.control.reference import Reference, quintic
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.inertia import from_com
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import Idim, build_idim
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.estimators.instrumental import compute_iv_literature_std as instruments_std
from dynident.estimators.iteration import (
    CONVERGED,
    ITERATIONS,
    MethodStep,
    Stepped,
    has_converged,
    make_gain_scale,
    simulate_and_step,
)
from dynident.methods import ESTIMATORS, Estimate
from dynident.recording.prepare import Samples, prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem, Regression
from dynident.regression.statistics import Residuals
from dynident.regression.weighted import compute_literature_std as least_squares_std
from dynident.robot.drives import Drives
from dynident.robot.model import Joint, Robot
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout
from dynident_papers.twin import load_twin

RATE = 1000.0
"""Of the log and of the controllers [Hz]."""
SECONDS = 8.0
POSITION = 2e-5
"""White noise of all positions, seen by the controllers and logged [rad]."""
WIDTH = 5e-3
"""Speed over which simulated Coulomb friction changes sign [rad/s]."""
VISCOUS, COULOMB = "viscous", "coulomb-viscous-symmetric"
SIMULATES = ("idim-iv", "didim")


@dataclass(frozen=True)
class Arm:
    """A robot in its loop."""

    name: str
    idim: Idim
    theta: Array
    """True standard parameters."""
    controller: Controller
    reference: Reference
    position: Array
    torque: Array
    """`position`, `torque`: shape (n,). Standard deviations of white noise: of the positions that
    the controllers see [rad], of the logged torque [Nm]."""

    @property
    def truth(self) -> Array:
        """True base parameters."""
        return base_parameters(self.idim).matrix @ self.theta

    @property
    def simulation(self) -> Simulation:
        """The loop as the estimators simulate it: the robot's own law and gains."""
        return Simulation(self.controller, self.integrator, width=WIDTH)

    @property
    def integrator(self) -> str:
        """An implicit one for Coulomb friction, which is stiff where it changes sign."""
        return "sdirk2" if self.idim.friction == COULOMB else "ode3"

    @cached_property
    def quiet(self) -> Recording:
        """The log of a run without any noise."""
        return self.log(None)

    def log(self, run: int | None, command: bool = False) -> Recording:
        """One run; None is the run without noise.

        The drive holds a torque from one sample to the next, so that it steps where the
        position is sampled: the log has the mean of both sides, as a current has that is
        averaged over the sampling period about the instant. `command` logs the new
        torque instead, which is half a sample early.
        """
        shape = self.reference.q.shape
        noise = np.zeros((2, *shape))
        if run is not None:
            noise = np.random.default_rng([2019, run]).standard_normal((2, *shape))
        seen = noise[0] * self.position
        width = np.full(shape[1], WIDTH)
        loop = Loop(
            self.idim, self.controller, self.reference, self.integrator, width=width, noise=seen
        )
        motion = rollout(loop, self.theta)
        tau = motion.tau.copy()
        if not command:
            tau[1:] = 0.5 * (motion.tau[1:] + motion.tau[:-1])
        return Recording(
            "run",
            self.reference.rate,
            motion.measured,
            tau + noise[1] * self.torque,
            qref=self.reference.q.copy(),
            dqref=self.reference.dq.copy(),
            drives=self.idim.robot.drives,
        )


@dataclass(frozen=True)
class Method:
    """An estimator on rows prepared in one way."""

    name: str
    rows: str
    options: dict = field(default_factory=dict, hash=False)

    @property
    def label(self) -> str:
        return f"{self.name} {self.rows}"


DROPPED = 0.1
"""Rows of slower joints and drives are left out where the page says so [rad/s]."""
WEAK = partial(prepare, bandwidth=10.0, position_hz=200.0, torque_hz=50.0)
ROWS: dict[str, Callable[[Recording], Samples]] = {
    # both keep the velocities and accelerations of a motion below 10 Hz
    "weak": WEAK,
    "default": partial(prepare, bandwidth=10.0),  # 50 Hz and 20 Hz (ardiani2024, II-C)
    "weak, moving": partial(WEAK, drop_below=DROPPED),
}
METHODS = (
    Method("wls", "weak"),
    Method("wls", "default"),
    Method("idim-iv", "weak"),
    Method("idim-iv", "default"),
    Method("didim", "default"),
)


MOVING = Method("idim-iv", "weak, moving")
NOISES = (4e-6, 2e-5, 1e-4)
"""Of the positions, where the page turns it up [rad]."""


def problem_of(arm: Arm, recording: Recording, method: Method) -> Problem:
    """A log as the rows that a method fits."""
    samples = ROWS[method.rows](recording)
    return Problem(arm.idim.robot, samples, arm.idim.friction)


def estimate(arm: Arm, recording: Recording, method: Method) -> Estimate:
    """One fit, through the same door as a user's."""
    arguments = (arm.simulation,) if method.name in SIMULATES else ()
    problem = problem_of(arm, recording, method)
    return ESTIMATORS[method.name](problem, *arguments, **method.options)


def noise_free_value(arm: Arm, method: Method, sigma: Array) -> tuple[Array, bool]:
    """What the estimator gives without noise, and whether its iteration settled there.

    The same pipeline on the run without noise, with its start and its rule for stopping,
    but with the joints' weights of the noisy runs, their mean sigmas. Without noise an
    estimator would weigh the joints by the errors of sampling and filtering instead; these
    errors, small as they are, would come out differently.
    """
    problem = problem_of(arm, arm.quiet, method)
    beta = problem.factors.weighted(sigma).solve()
    if method.name not in SIMULATES:
        found = estimate(arm, arm.quiet, method)
        # a constrained estimate is the weighted one unless a constraint holds it back
        return (found.beta if found.active else beta), True
    auxiliary = build_auxiliary_model(problem, arm.simulation)

    def along(rows: Regression, _: Array) -> Stepped:
        fitted = rows.factors.weighted(sigma)
        return Stepped(rows, fitted.solve(), sigma, least_squares_std(fitted))

    def across(rows: Regression, _: Array) -> Stepped:
        system = rows.instrument_factors.weighted(sigma)
        return Stepped(rows, system.projected.solve(), sigma, instruments_std(system))

    step = (
        MethodStep(along)
        if method.name == "didim"
        else MethodStep(across, problem.with_instruments)
    )
    for moved in islice(
        simulate_and_step(auxiliary, beta, make_gain_scale(auxiliary, False), step), ITERATIONS
    ):
        new = moved.stepped
        if moved.whole and has_converged(new.beta, moved.old, new.std, CONVERGED):
            return new.beta, True
    return new.beta, False


@dataclass(frozen=True)
class Outcome:
    """All runs of one method."""

    method: Method
    names: tuple[str, ...]
    beta: Array
    std: Array
    """`beta`, `std`: estimates and the standard deviations that they claim, shape (runs, p)."""
    free: Array
    truth: Array
    """`free`, `truth`: shape (p,). The estimator's own noise-free value; the true parameters."""
    failures: int
    """Runs in which the estimator refused."""
    settled: bool
    """Whether the noise-free iteration came to rest."""

    @property
    def sigma(self) -> Array:
        """Standard deviations over the runs."""
        return np.std(self.beta, axis=0, ddof=1)

    @property
    def bias(self) -> Array:
        """Mean error against the noise-free value, in sigmas of one run."""
        return (np.mean(self.beta, axis=0) - self.free) / self.sigma

    @property
    def t(self) -> Array:
        """The same in standard errors of the mean."""
        return self.bias * np.sqrt(len(self.beta))

    @property
    def hotelling(self) -> float:
        """p-value of the joint test that the mean error is zero (Hotelling 1931).

        ``T^2 = N d' S^-1 d``; ``T^2 (N - p) / (p (N - 1))`` is F(p, N - p).
        """
        runs, p = self.beta.shape
        if runs <= p:
            return np.nan
        scaled = (self.beta - self.free) / self.sigma
        mean = np.mean(scaled, axis=0)
        statistic = runs * mean @ np.linalg.solve(np.atleast_2d(np.cov(scaled, rowvar=False)), mean)
        return float(special.fdtrc(p, runs - p, statistic * (runs - p) / (p * (runs - 1))))

    @property
    def offset(self) -> Array:
        """Noise-free value minus truth, in sigmas of one run."""
        return (self.free - self.truth) / self.sigma

    @property
    def honesty(self) -> Array:
        """Claimed standard deviation over that of the runs."""
        return np.mean(self.std, axis=0) / self.sigma

    def coverage(self, value: Array) -> float:
        """Share of 95 % intervals that contain a value, pooled over parameters [%]."""
        return 100.0 * float(np.mean(np.abs(self.beta - value) < 1.96 * self.std))


PROCESSES = [1]
"""How many; `main` takes all cores."""
shared: list[tuple[Arm, tuple[Method, ...]]] = []
"""What the forked processes work on: friction models hold functions, which no pipe takes."""


def one_run(run: int) -> list[Estimate | None]:
    """All methods on one run, without what only a single fit is asked for."""
    arm, methods = shared[-1]
    recording = arm.log(run)
    estimates: list[Estimate | None] = []
    for method in methods:
        try:
            found = estimate(arm, recording, method)
        except ComputationError:
            estimates.append(None)
        else:
            estimates.append(replace(found, residuals=Residuals((), (), (), ()), history=None))
    return estimates


def study(arm: Arm, runs: int, methods: tuple[Method, ...] = METHODS) -> list[Outcome]:
    """All methods on the same runs."""
    sys.stderr.write(f"{arm.name}, {arm.idim.friction}: {runs} runs\n")
    shared.append((arm, methods))
    if PROCESSES[0] == 1:
        of_runs = [one_run(run) for run in range(runs)]
    else:
        with multiprocessing.get_context("fork").Pool(PROCESSES[0]) as pool:
            of_runs = pool.map(one_run, range(runs), chunksize=4)
    # refused ones are None; how often is told
    found = [[e for e in estimates if e is not None] for estimates in zip(*of_runs, strict=True)]
    outcomes = []
    for method, estimates in zip(methods, found, strict=True):
        weights = np.mean([e.sigma for e in estimates], axis=0)
        free, quiet = noise_free_value(arm, method, weights)
        outcomes.append(
            Outcome(
                method,
                base_parameters(arm.idim).names,
                np.array([e.beta for e in estimates]),
                np.array([e.covariance.std for e in estimates]),
                free,
                arm.truth,
                runs - len(estimates),
                quiet,
            )
        )
    return outcomes


def points(n: int, reach: float, seed: int, seconds: float = SECONDS) -> Reference:
    """A motion from rest through random points, two a second."""
    rng = np.random.default_rng(seed)
    times = np.arange(0.0, seconds + 1e-9, 0.5)
    q = rng.uniform(-reach, reach, (len(times), n))
    dq = rng.uniform(-reach, reach, (len(times), n))
    q[0], dq[0] = 0.0, 0.0
    return quintic(RATE, q, times, dq)


def planar_arm(friction: str) -> Arm:
    """Two links that swing in a vertical plane, under PD on differenced positions."""
    joints = tuple(
        Joint(
            name=f"joint_{k + 1}",
            link=f"link_{k + 1}",
            kind="revolute",
            parent=k,
            rotation=np.eye(3),
            translation=np.array([0.4 * k, 0.0, 0.0]),
            axis=np.array([0.0, 1.0, 0.0]),
        )
        for k in range(2)
    )
    bodies = np.array(
        [
            from_com(6.0, [0.2, 0.01, 0.02], np.diag([0.02, 0.1, 0.1])),
            from_com(3.0, [0.15, 0.0, -0.01], np.diag([0.01, 0.04, 0.04])),
        ]
    )
    robot = Robot(name="2R", joints=joints, nominal=bodies, drives=Drives.direct(2))
    idim = build_idim(robot, friction)
    values = {"Ia": (0.2, 0.1), "fv": (2.0, 1.0), "fc": (3.0, 1.5)}
    drives = [values[p.symbol][p.number - 1] for p in idim.parameters[idim.inertial :]]
    controller = CONTROLLERS["pd"](
        [2500.0, 600.0], [100.0, 25.0], rate=RATE, velocity="differences"
    )
    return Arm(
        "2R arm",
        idim,
        np.concatenate([bodies.ravel(), drives]),
        controller,
        points(2, 1.2, seed=3),
        np.full(2, POSITION),
        np.array([0.5, 0.25]),
    )


def twin_arm(friction: str) -> Arm:
    """The TX40 twin under its own gains, on differenced positions."""
    twin = load_twin()
    idim = build_idim(twin.robot, friction)
    controller = CONTROLLERS["pd"](
        twin.kp, twin.kd, gain=twin.gain, rate=RATE, velocity="differences"
    )
    return Arm(
        "TX40 twin",
        idim,
        twin.values(idim.names),
        controller,
        points(6, 1.0, seed=5),
        np.full(6, POSITION),
        np.array([1.0, 1.0, 0.5, 0.2, 0.2, 0.1]),
    )


ARMS = {"2R arm": planar_arm, "TX40 twin": twin_arm}


def in_loop(arm: Arm) -> Arm:
    """The same arm with noise of its positions only: all noise comes through the loop."""
    return replace(arm, torque=np.zeros_like(arm.torque))


def outside(arm: Arm) -> Arm:
    """The same arm with white noise of the logged torque only."""
    return replace(arm, position=np.zeros_like(arm.position))


def louder(arm: Arm, noise: float) -> Arm:
    """The same arm with other noise of its positions, and no other."""
    return replace(in_loop(arm), position=np.full_like(arm.position, noise))


# ---- the page


def spread(values: Array) -> str:
    """Median and largest."""
    return f"{np.median(values):.2f}, {np.max(values):.2f}"


HEAD = (
    "| robot | noise | method and rows | runs | joint test p | max abs t | max abs bias/sigma | "
    "95 % holds own value | holds truth | claimed/true sigma: median, max | "
    "max abs offset/sigma |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)


def line(arm: Arm, noise: str, outcome: Outcome) -> str:
    """A row of the summary."""
    runs = f"{len(outcome.beta)}" + f" ({outcome.failures} refused)" * (outcome.failures > 0)
    own = f"{np.max(np.abs(outcome.bias)):.2f}" + " (own value unsettled)" * (not outcome.settled)
    cells = (
        arm.name,
        noise,
        outcome.method.label,
        runs,
        f"{outcome.hotelling:.2g}",
        f"{np.max(np.abs(outcome.t)):.1f}",
        own,
        f"{outcome.coverage(outcome.free):.1f}",
        f"{outcome.coverage(outcome.truth):.1f}",
        spread(outcome.honesty),
        f"{np.max(np.abs(outcome.offset)):.2f}",
    )
    return "| " + " | ".join(cells) + " |"


def said(holds: bool, what: str) -> str:
    """A finding with its figures."""
    return f"{'yes' if holds else '**no**'} ({what})"


def zero_mean(outcome: Outcome) -> bool:
    """Whether the mean error passes for zero: jointly at 1 %, singly within 4 sigmas of it."""
    return outcome.hotelling > 0.01 and float(np.max(np.abs(outcome.t))) < 4.0


def clearly_biased(outcome: Outcome) -> bool:
    """Whether it fails both."""
    return outcome.hotelling < 0.01 and float(np.max(np.abs(outcome.t))) > 4.0


def covers(outcome: Outcome) -> bool:
    """Whether 93 to 97 % of the intervals hold the estimator's own value."""
    return 93.0 < outcome.coverage(outcome.free) < 97.0


VERDICTS = (
    "| robot | noise | `idim-iv`, weak rows: mean error zero | `wls`, weak rows: fails both | "
    "`idim-iv`: 93-97 % covered (weak, default rows) |\n|---|---|---|---|---|"
)


def verdict(arm: Arm, noise: str, outcomes: list[Outcome]) -> str:
    """What the runs say of unbiasedness and of the intervals."""
    ls, iv, default = outcomes[0], outcomes[2], outcomes[3]
    figures = [f"p = {o.hotelling:.2g}, max abs t = {np.max(np.abs(o.t)):.1f}" for o in (iv, ls)]
    covered = ", ".join(f"{o.coverage(o.free):.1f} %" for o in (iv, default))
    cells = (
        said(zero_mean(iv), figures[0]),
        said(clearly_biased(ls), figures[1]),
        said(covers(iv) and covers(default), covered),
    )
    return f"| {arm.name} | {noise} | " + " | ".join(cells) + " |"


def parameters(outcomes: list[Outcome]) -> str:
    """Bias over sigma of every parameter and method."""
    labels = [outcome.method.label for outcome in outcomes]
    rows = [f"| parameter | {' | '.join(labels)} |", "|---" * (len(labels) + 1) + "|"]
    for k, name in enumerate(outcomes[0].names):
        rows.append(f"| {name} | {' | '.join(f'{o.bias[k]:+.2f}' for o in outcomes)} |")
    return "\n".join(rows)


def stated(arm: Arm) -> str:
    """The noise in numbers, and what the loop makes of that of the positions."""
    quiet = arm.quiet.tau
    through = np.std(in_loop(arm).log(0).tau - quiet, axis=0)
    rms = np.sqrt(np.mean(quiet**2, axis=0))
    return (
        f"- {arm.name}: positions {arm.position[0]:g} rad on every joint, which the loop turns "
        f"into torques of {numbers(through)} Nm (standard deviation before any filter); torque "
        f"sensor {numbers(arm.torque)} Nm; the torques themselves are {numbers(rms)} Nm rms."
    )


def numbers(values: Array) -> str:
    """Comma-separated, two digits."""
    return ", ".join(f"{value:.2g}" for value in values)


def half_sample(arm: Arm, outcomes: list[Outcome]) -> list[str]:
    """Noise-free errors under both ways to log the torque, in sigmas of the runs."""
    rows = []
    command = arm.log(None, command=True)
    for outcome in outcomes:
        beta = estimate(arm, command, outcome.method).beta
        offset = np.max(np.abs((beta - outcome.truth) / outcome.sigma))
        mean = np.max(np.abs(outcome.offset))
        rows.append(f"| {arm.name} | {outcome.method.label} | {mean:.2f} | {offset:.2f} |")
    return rows


def picture(shown: list[tuple[str, list[Outcome]]], path: Path) -> None:
    """Bias over sigma of LS and IV on the same weakly filtered rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(shown), 1, figsize=(10, 2.4 * len(shown)))
    for axis, (title, outcomes) in zip(axes, shown, strict=True):
        band = 4.0 / np.sqrt(len(outcomes[0].beta))
        axis.axhspan(-band, band, color="0.88", label="4 standard errors")
        for outcome, mark in zip(outcomes, ("x", "o", "."), strict=False):
            axis.plot(outcome.bias, mark, label=outcome.method.label)
        axis.set_title(title, fontsize=9)
        axis.set_ylabel("bias / sigma")
        axis.set_xticks(range(len(outcomes[0].names)), outcomes[0].names, rotation=90, fontsize=6)
        axis.legend(fontsize=7, ncols=4)
    figure.tight_layout()
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)


INTRODUCTION = """\
{runs} runs of {seconds:g} s at {rate:g} Hz that differ by their noise only. A planar 2R arm
(gravity, viscous friction, rotors) and the TX40 twin follow motions from rest through random
points under PD laws that are sampled at the log's rate and see nothing but the noisy
positions, differenced for the velocity; the log holds these positions and the mean of the
torques before and after the instant. Every method knows the law, the gains and the reference.

- *weak* rows: positions below 200 Hz, torques and regressors below 50 Hz; *default* rows: 50 and
  20 Hz, what a bandwidth of 10 Hz asks for. `idim-iv` and `didim` start from least squares.
- A method's *own value* is its estimate on the log without noise, by the same pipeline, with
  its start and its rule for stopping; its joints are weighed by the mean sigmas of the noisy
  runs (without noise it would weigh them by the errors of sampling and filtering). *Offset* is
  own value minus truth. *bias* is the mean estimate minus the own value, *sigma* the standard
  deviation over the runs, *t* = bias / (sigma / sqrt(runs)).
- *Joint test*: Hotelling's T^2 of the mean error, which times (N - p) / (p (N - 1)) is
  F(p, N - p) where it is zero.
- *95 %*: share of the intervals beta +- 1.96 std, pooled over runs and parameters.

Noise:
"""


def main() -> None:
    PROCESSES[0] = os.cpu_count() or 1
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    head = INTRODUCTION.format(runs=runs, seconds=SECONDS, rate=RATE)
    viscous, white, coulomb, tables, logged, shown, noise = [], [], [], [], [], [], []
    verdicts = []
    for make in ARMS.values():
        arm = make(VISCOUS)
        head += stated(arm) + "\n"
        for label, noisy in (("positions and torque", arm), ("positions only", in_loop(arm))):
            outcomes = study(noisy, runs)
            verdicts.append(verdict(noisy, label, outcomes))
            viscous += [line(noisy, label, o) for o in outcomes]
            tables += [f"#### {arm.name}, {label}", parameters(outcomes)]
            if noisy is arm:
                shown.append((f"{arm.name}, no Coulomb friction", [outcomes[0], outcomes[2]]))
                logged += half_sample(arm, outcomes)
        white += [line(arm, "torque, white", o) for o in study(outside(arm), runs, METHODS[:2])]
        rough = make(COULOMB)
        outcomes = study(rough, runs, (*METHODS, MOVING))
        coulomb += [line(rough, "positions and torque", o) for o in outcomes]
        tables += [f"#### {arm.name}, Coulomb friction, positions and torque", parameters(outcomes)]
        chosen = [outcomes[0], outcomes[2], outcomes[-1]]
        shown.append((f"{arm.name}, Coulomb friction", chosen))
    for level in NOISES:
        arm = louder(planar_arm(VISCOUS), level)
        noise += [line(arm, f"positions, {level:g} rad", o) for o in study(arm, runs, METHODS[:4])]
    picture(shown, FIGURES / "montecarlo.png")
    parts = [
        head,
        "![bias over sigma of every parameter](figures/montecarlo.png)",
        "### In short, without Coulomb friction",
        "\n".join([VERDICTS, *verdicts]),
        "### Without Coulomb friction",
        "\n".join([HEAD, *viscous]),
        "### White noise of the torque alone",
        "\n".join([HEAD, *white]),
        "### Louder positions",
        "The variance of a noisy velocity enters the centrifugal torques: an error of second "
        "order whose mean is not zero, and that no instrument removes.",
        "\n".join([HEAD, *noise]),
        "### With Coulomb friction",
        "The sign of a noisy velocity has a mean error, too. *Moving*: rows are left out whose "
        f"joint is slower than {DROPPED:g} rad/s or, on joints 5 and 6 of the TX40, whose drive 6 "
        "is, which turns with the sum of the two.",
        "\n".join([HEAD, *coulomb]),
        "### Half a sample",
        "Largest offset in sigmas where the log holds the mean torque about the instant of the "
        "position, as above, and where it holds the new command. Differences of the position are "
        "symmetric about the instant; the simulated acceleration behind `didim` is that just "
        "after it.",
        "| robot | method and rows | mean | command |\n|---|---|---|---|\n" + "\n".join(logged),
        "### Bias over sigma, parameter by parameter",
        *tables,
    ]
    text = "\n\n".join(parts) + "\n"
    (FIGURES / "montecarlo.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
