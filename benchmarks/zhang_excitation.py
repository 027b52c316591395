"""The excitation of zhang2018: the smallest condition number (26) of a Fourier series (27).

The survey searched with a genetic algorithm and reached 4.6 with linear and 5.7 with Stribeck
friction, on an arm whose kinematics are not published. Here, on the arm that stands in for it, are
side by side: the best of random series; `excite`, by its own steps and then by CMA-ES, within
limits and from rest to rest; and CMA-ES over series whose joints each reach their largest speed,
which torques with noise need and a condition number does not see. Then methods along the last
series beside the random one that `reproduce zhang2018` moves along. Writes
docs/figures/zhang2018_excitation.md.

Run from the top of the project: python benchmarks/zhang_excitation.py
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import cma
import numpy as np
from common import FIGURES, markdown

from dynident.cli.progress import show_progress
from dynident.control.reference import Reference, fourier
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.excitation.excite import Excitation, excite
from dynident_papers.zhang2018.estimated import (
    make_instrument_solver,
    make_loop_solver,
    make_method_solver,
    measure_estimate_errors,
)
from dynident_papers.zhang2018.simulated import (
    FRICTION,
    HARMONICS,
    LARGEST_SPEED,
    PERIOD,
    RATE,
    STRIBECK,
    Arm,
    build_undecimated_problem,
    choose_trajectory,
    compute_condition_number,
    load_arm,
    simulate_measured_log,
)

PUBLISHED = {FRICTION: 4.6, STRIBECK: 5.7}
FARTHEST = 3.1
"""Of every joint from zero [rad]; the survey's limits are not published."""
STRONGEST = 5000.0
"""Torque of every drive [Nm]: none limits the motion."""
RAMP = 1.0
"""From rest and to rest, before and after the series [s]."""
STARTS, SECONDS = 4, 120.0
DRAWS, EVALUATIONS = 40, 12_000
PENALTY = 10.0
"""A radian beyond the range, in units of the condition number."""


@dataclass(frozen=True)
class Coefficients:
    """Of (27): offset, shape (n,) [rad]; sine and cosine, shape (n, L), of speed [rad/s]."""

    offset: Array
    sine: Array
    cosine: Array

    def make_series(self) -> Reference:
        """One period."""
        tables = (self.offset.tolist(), self.sine.tolist(), self.cosine.tolist())
        return fourier(RATE, PERIOD, 1.0 / PERIOD, *tables)

    def scaled(self) -> Coefficients:
        """Every joint at its largest speed."""
        scale = (LARGEST_SPEED / np.abs(self.make_series().dq).max(axis=0))[:, None]
        return replace(self, sine=scale * self.sine, cosine=scale * self.cosine)

    def rounded(self) -> Coefficients:
        """To four places."""
        return Coefficients(*(each.round(4) for each in (self.offset, self.sine, self.cosine)))


@dataclass(frozen=True)
class Conditioned:
    """The condition number (26) of an arm's base parameters, shapes of friction among them."""

    arm: Arm
    base: BaseParameters

    def judge(self, found: Coefficients) -> float:
        """Columns of unit length, along a quarter of the samples."""
        series = found.make_series()
        columns = self.base.idim.regressor(series.q[::4], series.dq[::4], series.ddq[::4])
        columns = columns.reshape(-1, columns.shape[-1])[:, self.base.kept]
        value = np.linalg.cond(columns / np.linalg.norm(columns, axis=0))
        beyond = np.maximum(np.abs(series.q).max(axis=0) - FARTHEST, 0.0)
        return float(value + PENALTY * beyond.sum())


def draw_series(n: int, rng: np.random.Generator) -> Coefficients:
    """A random series about zero at full speed."""
    sine, cosine = rng.normal(size=(2, n, HARMONICS))
    return Coefficients(np.zeros(n), sine, cosine).scaled()


def search_at_full_speed(goal: Conditioned, start: Coefficients) -> Coefficients:
    """CMA-ES (Hansen 2016) over series whose joints each reach their largest speed."""
    n = goal.arm.robot.n

    def read(x: Array) -> Coefficients:
        sine, cosine = x[n:].reshape(2, n, HARMONICS)
        return Coefficients(x[:n], sine, cosine).scaled()

    x = np.concatenate([start.offset, start.sine.ravel(), start.cosine.ravel()])
    options = {"seed": 1, "maxfevals": EVALUATIONS, "verbose": -9}
    climb = cma.CMAEvolutionStrategy(x, 0.3, options)
    while not climb.stop():
        asked = climb.ask()
        climb.tell(asked, [goal.judge(read(each)) for each in asked])
    return read(np.asarray(climb.best.x))


def search(arm: Arm, friction: str) -> Excitation:
    """What `excite` finds, with CMA-ES after its own steps."""
    each = tuple([FARTHEST] * arm.robot.n)
    with show_progress() as progress:
        return excite(
            arm.robot,
            friction,
            rotor=False,
            duration=PERIOD,
            harmonics=HARMONICS,
            ramp=RAMP,
            criterion="column-condition",
            speed=tuple(LARGEST_SPEED.tolist()),
            torque=tuple([STRONGEST] * arm.robot.n),
            lower=tuple(-at for at in each),
            upper=each,
            collision=False,
            floor=False,
            rate=RATE,
            starts=STARTS,
            polish=True,
            time=SECONDS,
            progress=progress,
        )


def judge_methods(arm: Arm, reference: Reference) -> list[str]:
    """J_e of some methods along a motion, whose positions and torques are noisy."""
    log = simulate_measured_log(arm, reference, 1, filtered=True)
    own = build_undecimated_problem(arm.robot, log)
    believed = build_undecimated_problem(arm.believed, log)
    solvers = {
        "ols": make_method_solver(own, "ols"),
        "iv": make_instrument_solver(own, reference),
        "pc-idim-ls": make_method_solver(believed, "pc-idim-ls"),
        "pc-idim-iv": make_loop_solver(believed, "pc-idim-iv", arm, reference),
    }
    cells = []
    for solve in solvers.values():
        try:
            found = measure_estimate_errors(arm, reference, own, solve, False)
            cells.append(f"{found.friction:.4f}")
        except ComputationError:
            cells.append("none")
    return [f"{compute_condition_number(arm, reference):.2f}", *cells]


def main() -> None:
    rows, along = [], []
    for friction, published in PUBLISHED.items():
        arm, rng = load_arm(friction), np.random.default_rng(0)
        goal = Conditioned(arm, base_parameters(arm.idim).linearised(arm.theta))
        drawn = min((draw_series(arm.robot.n, rng) for _ in range(DRAWS)), key=goal.judge)
        found = search_at_full_speed(goal, drawn).rounded()
        if friction == FRICTION:
            for name, series in (
                ("random", choose_trajectory(arm, DRAWS)),
                ("searched", found.make_series()),
            ):
                along.append([name, *judge_methods(arm, series)])
        history = search(arm, friction).design.history
        values = [published, goal.judge(drawn), *np.exp([history[-2][1], history[-1][1]])]
        rows.append([friction, *(f"{x:.2f}" for x in (*values, goal.judge(found)))])
    head = ["friction", "survey (GA)", f"best of {DRAWS} draws", "excite", "excite, CMA-ES"]
    words = (
        f"Condition numbers of base parameters, columns at unit length. `excite` has {STARTS} "
        f"starts and {SECONDS:g} s, within {FARTHEST:g} rad and from rest to rest, and may "
        "leave joints slow, which the criterion does not mind and noise of torques does. CMA-ES "
        f"at full speed has {EVALUATIONS} evaluations. The arm is of the survey's class, with "
        "kinematics of ours: figures compare in kind."
    )
    beside = (
        "Errors e_f of friction by logs with noisy torques and positions (low-passed), along the "
        "best of random series, as `reproduce zhang2018` moves, and along the series that was "
        "searched; none where a method has no answer:"
    )
    titles = ["series", "condition number", "ols", "iv", "pc-idim-ls", "pc-idim-iv"]
    text = "\n".join([
        *markdown([*head, "CMA-ES, full speed"], rows), "", words, "", beside, "",
        *markdown(titles, along), "",
    ])  # fmt: skip
    (FIGURES / "zhang2018_excitation.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
