"""The excitation of zhang2018: the smallest condition number (26) of a Fourier series (27).

The survey searched with a genetic algorithm and reached 4.6 with linear and 5.7 with Stribeck
friction, on an arm whose kinematics are not published. Here, on the arm that stands in for it, are
side by side: the best of random series; `excite`, by its own steps and then by CMA-ES, within
limits and from rest to rest; and CMA-ES over series whose joints each reach their largest speed,
which torques with noise need and a condition number does not see. Writes
docs/figures/zhang2018_excitation.md, and the last series with linear friction into the package:
`reproduce zhang2018` moves along it.

Run from the top of the project: python benchmarks/zhang_excitation.py [--keep]
With --keep the series of the package stays, and its number stands in the table.
"""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import dataclass, replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import cma
import numpy as np
from common import FIGURES, ROOT, markdown

from dynident.cli.progress import show_progress
from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.excitation.excite import Excitation, excite
from dynident_papers.zhang2018.simulated import (
    FRICTION,
    HARMONICS,
    LARGEST_SPEED,
    PERIOD,
    RATE,
    STRIBECK,
    TRAJECTORY,
    Arm,
    compute_condition_number,
    load_arm,
    make_fourier_series,
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
PACKAGE = ROOT / "src/dynident_papers/zhang2018"
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
        return make_fourier_series(*tables)

    def scaled(self) -> Coefficients:
        """Every joint at its largest speed."""
        scale = (LARGEST_SPEED / np.abs(self.make_series().dq).max(axis=0))[:, None]
        return replace(self, sine=scale * self.sine, cosine=scale * self.cosine)

    def rounded(self) -> Coefficients:
        """As the package keeps them."""
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


def read_series() -> Coefficients:
    """That of the package."""
    told = tomllib.loads((PACKAGE / TRAJECTORY).read_text())
    return Coefficients(*(np.array(told[name]) for name in ("offset", "sine", "cosine")))


def write_series(found: Coefficients, value: float) -> None:
    """Into the package."""
    tables = [
        f"{name} = [\n"
        + "".join(f"    [{', '.join(f'{x:.4f}' for x in row)}],\n" for row in rows)
        + "]\n"
        for name, rows in (("sine", found.sine), ("cosine", found.cosine))
    ]
    text = (
        "# Coefficients of (27), a row a joint: offset [rad], sine and cosine as amplitudes of\n"
        f"# velocity [rad/s]. Condition number {value:.2f}, found and written by\n"
        "# benchmarks/zhang_excitation.py.\n"
        f"offset = [{', '.join(f'{x:.4f}' for x in found.offset)}]\n" + "".join(tables)
    )
    (PACKAGE / TRAJECTORY).write_text(text)


def main() -> None:
    rows = []
    for friction, published in PUBLISHED.items():
        arm, rng = load_arm(friction), np.random.default_rng(0)
        goal = Conditioned(arm, base_parameters(arm.idim).linearised(arm.theta))
        drawn = min((draw_series(arm.robot.n, rng) for _ in range(DRAWS)), key=goal.judge)
        if friction == FRICTION and "--keep" in sys.argv[1:]:
            found = read_series()
        else:
            found = search_at_full_speed(goal, drawn).rounded()
        if friction == FRICTION:
            used = compute_condition_number(arm, found.make_series())
            write_series(found, used)
            farthest = np.abs(found.make_series().q).max()
        history = search(arm, friction).design.history
        values = [published, goal.judge(drawn), *np.exp([history[-2][1], history[-1][1]])]
        rows.append([friction, *(f"{x:.2f}" for x in (*values, goal.judge(found)))])
    head = ["friction", "survey (GA)", f"best of {DRAWS} draws", "excite", "excite, CMA-ES"]
    words = (
        f"Condition numbers of base parameters, columns at unit length. `excite` has {STARTS} "
        f"starts and {SECONDS:g} s, within {FARTHEST:g} rad and from rest to rest, and may "
        "leave joints slow, which the criterion does not mind and noise of torques does. CMA-ES "
        f"at full speed has {EVALUATIONS} evaluations. The arm is of the survey's class, with "
        "kinematics of ours: figures compare in kind. `reproduce zhang2018` moves along the last "
        f"series of the first row: {used:.2f} with all samples, {farthest:.1f} rad at most."
    )
    text = "\n".join([*markdown([*head, "CMA-ES, full speed"], rows), "", words, ""])
    (FIGURES / "zhang2018_excitation.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
