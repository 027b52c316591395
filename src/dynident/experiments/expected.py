"""What runs will tell: the information of all of them about all that is unknown, and intervals.

Every run adds ``X' W X`` of its rows, over one vector of unknowns: the base parameters, and beside
them what a question asks for more (a load, friction under load, delays, gains of a controller).
Standard deviations are those of weighted least squares; they are infinite where no row says
anything of an unknown, or nothing that could not be another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.inertia import PER_BODY
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.following import fold_torques
from dynident.excitation.excite import Excitation
from dynident.excitation.information import build_quadrature
from dynident.excitation.prediction import join_nominal_parameters

FINE = 0.015
"""Of the shortest time in which a motion changes by its size: stretches of a run."""
SETTLED = 0.8
"""Share of a rest that is averaged; a tenth at both ends is left out."""
UNTOLD = 1e-11
"""Eigenvalue of the information, scaled to ones, below which a combination is unknown."""
ROUNDING = 1e-10
"""Norm of a column over the largest one's, below which it is rounding."""


class ExpectedRows(NamedTuple):
    """Rows of some instants: blocks of columns, and the inverse variances of the rows.

    A block is None where the rows do not depend on its unknowns.
    """

    blocks: tuple[Array | None, ...]
    """Shapes (instants, n, width)."""
    weights: Array
    """Shape (instants, n)."""


def sum_information(widths: Sequence[int], runs: Sequence[ExpectedRows]) -> Array:
    """``X' W X`` of runs, shape (sum of widths,) * 2."""
    total = np.zeros((sum(widths),) * 2)
    for blocks, weights in runs:
        whole = [
            np.zeros((*weights.shape, width)) if block is None else block
            for block, width in zip(blocks, widths, strict=True)
        ]
        X = (np.concatenate(whole, axis=2) * np.sqrt(weights)[:, :, None]).reshape(-1, len(total))
        total += X.T @ X
    return total


def predict_std(M: Array) -> Array:
    """Standard deviations of all unknowns; infinite where the rows leave one open."""
    size = np.sqrt(np.diag(M))
    unit = np.where(size > ROUNDING * size.max(), size, np.inf)
    values, vectors = np.linalg.eigh(M / np.outer(unit, unit))
    told = values > UNTOLD
    open_ = np.sum(vectors[:, ~told] ** 2, axis=1) > 1e-6
    variances = vectors[:, told] ** 2 @ (1.0 / values[told])
    return np.where(open_, np.inf, np.sqrt(variances) / unit)  # infinite units are open


@dataclass(frozen=True)
class FutureLog:
    """A run as it will be recorded."""

    base: BaseParameters
    """Of the robot without the mass."""
    excitation: Excitation
    sigma: Array
    """Of the torques' noise [Nm or N], shape (n,)."""
    body: Array
    """What the last link carries, which is known, shape (10,)."""

    @cached_property
    def times(self) -> Array:
        """Instants at which something moves, in the middle of equal stretches [s]."""
        return self.grid[0][self.moves]

    @cached_property
    def grid(self) -> tuple[Array, Array]:
        """Middles of equal stretches, and how long these are [s]."""
        family = self.excitation.trajectory.family
        return build_quadrature(family, FINE * family.quickest)

    @cached_property
    def moves(self) -> Booleans:
        """Whether something moves, of all stretches."""
        return np.asarray(np.any(self.excitation.trajectory.at(self.grid[0], 1) != 0.0, axis=1))

    def at(self, times: Array) -> tuple[Array, Array, Array]:
        """Positions, speeds and accelerations, shapes (times, n)."""
        return self.excitation.trajectory.follow(times)

    @cached_property
    def weights(self) -> Array:
        """Samples that an instant stands for, over their variance, shape (instants, n)."""
        seconds = self.grid[1][self.moves] * self.excitation.periods * self.excitation.rate
        return np.asarray(seconds[:, None] / self.sigma**2)

    @cached_property
    def columns(self) -> Array:
        """Of all standard parameters, shape (instants, n, parameters)."""
        return self.base.idim.regressor(*self.at(self.times))

    @property
    def known(self) -> Array:
        """Columns of the base parameters."""
        return self.columns[:, :, self.base.kept]

    @property
    def carried(self) -> Array:
        """Columns of ten parameters more on the last link."""
        return self.columns[:, :, self.last]

    @property
    def last(self) -> slice:
        """Where those of the last link are."""
        first = PER_BODY * (self.base.idim.robot.n - 1)
        return slice(first, first + PER_BODY)

    @property
    def turns(self) -> Array:
        """How drives turn with joints."""
        return self.base.idim.robot.drives.turns

    @cached_property
    def loads(self) -> Array:
        """Torque of the bodies at each drive, that of the mass included, shape (instants, n)."""
        idim = self.base.idim
        phi, _ = idim.split(idim.nominal)
        phi = phi + np.eye(len(phi))[:, -1:] * self.body
        motion = self.at(self.times)
        tau = fold_torques(idim, motion[0], evaluate_inverse_dynamics(idim.tree, phi, *motion))
        return np.asarray(np.linalg.solve(self.turns.T, tau.T).T)

    @property
    def loaded(self) -> Array:
        """Columns of friction that grows with the load, one a drive, shape (instants, n, n)."""
        signed = np.sign(self.at(self.times)[1] @ self.turns.T) * np.abs(self.loads)
        return np.asarray(self.turns.T * signed[:, None])

    @cached_property
    def slope(self) -> Array:
        """Time derivative of the bodies' and dampers' torque, shape (instants, n) [Nm/s or N/s]."""
        idim = self.base.idim
        theta = join_nominal_parameters(idim)
        for k, parameter in enumerate(idim.drives, idim.inertial):
            theta[k] *= parameter.symbol != "fc"  # whose steps have no derivative
        h = 1e-3 * self.excitation.trajectory.family.quickest
        before, after = (idim.torque(theta, *self.at(self.times + d)) for d in (-h, h))
        return np.asarray((after - before) / (2.0 * h))


def compare_loads(runs: Sequence[FutureLog]) -> Array:
    """Information of friction under load in runs along one motion, shape (n, n).

    Of what they differ by alone: all else of friction may be whatever it is at each instant, as
    long as it is that again. Bodies repeat as well, and the mass is known.
    """
    columns = np.array([run.loaded for run in runs])
    apart = columns - columns.mean(axis=0)
    n = apart.shape[-1]
    return sum_information([n], [ExpectedRows((each,), runs[0].weights) for each in apart])


def stand(run: FutureLog) -> ExpectedRows:
    """Rows of the poses that a run holds: base parameters, ten of a load, holding friction.

    Each rest has the sign of the speed by which the joint came; what holds it there is unknown
    beside Coulomb friction, as in the method ``static``.
    """
    grid, duration = run.grid
    dq = run.at(grid)[1]
    before = np.maximum.accumulate(np.where(run.moves, np.arange(len(grid)), 0))
    came = np.sign(dq[before] @ run.turns.T)[~run.moves]
    q = run.at(grid[~run.moves])[0]
    columns = run.base.idim.regressor(q, 0.0 * q, 0.0 * q)
    weights = SETTLED * duration[~run.moves, None] * run.excitation.rate / run.sigma**2
    held = run.turns.T[None] * came[:, None, :]
    return ExpectedRows((columns[:, :, run.base.kept], columns[:, :, run.last], held), weights)


def control(run: FutureLog, damping: float) -> ExpectedRows:
    """Rows of a controller along a periodic run: relative kp and kd of each joint, its delay.

    What it gives is what the motion takes, ``kp (e + damping de/dt)`` of the error e. `damping`: kd
    over kp [s].
    """
    slope, n = run.slope, run.base.idim.robot.n
    period = run.excitation.trajectory.family.period
    assert period is not None
    omega = 2.0 * np.pi * np.fft.rfftfreq(len(slope), period / len(slope))[:, None]
    # by the harmonics of its derivative, steady torque left out: an offset is not a gain
    waves = np.fft.rfft(slope, axis=0) / np.where(omega > 0.0, 1j * omega, np.inf)
    sprung = np.fft.irfft(waves / (1.0 + 1j * omega * damping), len(slope), axis=0)
    damped = np.fft.irfft(waves, len(slope), axis=0) - sprung
    blocks = [each[:, :, None] * np.eye(n) for each in (sprung, damped, -slope)]
    return ExpectedRows(tuple(blocks), run.weights)
