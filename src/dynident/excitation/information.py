"""What a motion tells of the base parameters: the information of its rows, and its gradient.

``M = M_0 + sum_t X_t' W X_t`` over the instants of a motion, X the regressor of the base
parameters with the chosen friction and W the inverse variances of the torques' noise. Its
inverse is the covariance that weighted least squares will have. The preparation's filters
are left out on purpose: what a trajectory asks for lies far below their cutoffs, and where
they leave one sample in d they leave as much information as noise. What that costs is measured
(`docs/figures/excitation.md`): 0.3 % of the standard deviations in the mean while the bandwidth
is twenty times the fastest harmonic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from scipy.linalg import block_diag

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.columns import fill_rows
from dynident.dynamics.following import view_friction
from dynident.dynamics.parameters import Packing
from dynident.excitation.contraction import differentiate_regressor_sum
from dynident.excitation.sensor import SensorRows
from dynident.excitation.trajectories import Trajectory, TrajectoryFamily
from dynident.friction.kernel import BY_POSITION, BY_SPEED
from dynident.friction.model import DriveSignals


@dataclass(frozen=True)
class WeightedMotion:
    """Instants of a motion, shape (instants, n), each for a stretch of time [s]."""

    q: Array
    dq: Array
    ddq: Array
    duration: Array


def sample_motion(trajectory: Trajectory, step: float) -> WeightedMotion:
    """The instants of a trajectory's main part, no further apart than a step [s].

    Those at which nothing moves are left out: friction holds there, and no model says how much.
    """
    times, duration = build_quadrature(trajectory.family, step)
    q, dq, ddq = trajectory.follow(times)
    return WeightedMotion(q, dq, ddq, duration * np.any(dq != 0.0, axis=1))


def build_quadrature(family: TrajectoryFamily, step: float) -> tuple[Array, Array]:
    """Middles of equal stretches of the main part, and how long these are [s]."""
    part = family.parts[family.main]
    length = part.stop - part.start
    count = int(np.ceil(length / step))
    times = np.asarray(part.start + (np.arange(count) + 0.5) * (length / count))
    return times, np.full(count, length / count)


@dataclass(frozen=True)
class Experiment:
    """What is measured of a robot while it moves."""

    base: BaseParameters
    """With the friction that will be identified, at the usual values of its shapes."""
    sigma: Array
    """Standard deviation of each torque sample's noise, which is white [Nm or N], shape (n,)."""
    rate: float
    """Torque samples a second [Hz]."""
    repeats: float = 1.0
    """How often the motion is made."""
    width: Array | None = None
    """Shape (n,). Smooths the sign of Coulomb friction, so that the information has a gradient
    [rad/s or m/s]; exact without."""
    drop_below: Array | None = None
    """Speeds below which a joint's rows are not fitted [rad/s or m/s], shape (n,)."""
    known: Array | None = None
    """Shape (count, count). Information there is beforehand: of logs already taken, and of what is
    believed."""
    sensor: SensorRows | None = None
    """Whose wrench is measured, too. What it holds has parameters of its own behind the robot's:
    they are identified by themselves, as ``[robot] beyond`` does."""

    def __post_init__(self) -> None:
        idim = self.base.idim
        if idim.robot.floating:
            raise InputError(
                f"{idim.robot.name}: excitation is designed for robots on a fixed base"
            )
        if idim.has_states or idim.needs:
            raise InputError(
                f"{idim.robot.name}: friction {idim.friction!r} depends on more than the motion "
                "at an instant; design for coulomb-viscous and identify with it"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the robot's base parameters, and of those of what the sensor holds."""
        return (*self.base.names, *(() if self.sensor is None else self.sensor.names))

    @cached_property
    def own(self) -> Experiment:
        """What the joints' torques tell of the robot, without the sensor."""
        if self.sensor is None:
            return self
        p = self.base.count
        known = None if self.known is None else self.known[:p, :p]
        return replace(self, sensor=None, known=known)

    @cached_property
    def beyond(self) -> Experiment | None:
        """What the sensor's rows tell of what it holds, along its `SensorRows.spread` motions."""
        sensor = self.sensor
        if sensor is None:
            return None
        p = self.base.count
        return Experiment(
            sensor.base,
            sensor.sigma,
            self.rate,
            self.repeats,
            None if self.width is None else sensor.spread(self.width),
            None if self.drop_below is None else sensor.spread(self.drop_below),
            None if self.known is None else self.known[p:, p:],
        )

    def spread(self, motion: WeightedMotion) -> WeightedMotion:
        """A motion as the model of the sensor has it."""
        assert self.sensor is not None
        q, dq, ddq = (self.sensor.spread(each) for each in (motion.q, motion.dq, motion.ddq))
        return WeightedMotion(q, dq, ddq, motion.duration)

    @cached_property
    def packing(self) -> Packing:
        """Layout of the rows of the base parameters."""
        return self.base.idim.packing(self.base.kept)

    def rows(self, motion: WeightedMotion) -> tuple[Array, list[Array]]:
        """Packed rows, and their weights joint by joint, shape (instants,) each."""
        idim = self.base.idim
        packed = np.zeros((len(motion.q), self.packing.width))
        fill_rows(idim, self.packing, motion.q, motion.dq, motion.ddq, packed, self.width)
        weights = []
        for j, sigma in enumerate(self.sigma):
            weight = motion.duration * (self.rate * self.repeats / sigma**2)
            if self.drop_below is not None:
                weight = weight * (np.abs(motion.dq[:, j]) >= self.drop_below[j])
            weights.append(weight)
        return packed, weights

    def information(self, motion: WeightedMotion) -> Array:
        """``M``, shape (count, count)."""
        if self.beyond is None:
            M = np.zeros((self.base.count,) * 2) if self.known is None else self.known.copy()
            packed, weights = self.rows(motion)
            for (entries, columns), weight in zip(self.packing.joints, weights, strict=True):
                X = packed[:, entries]
                M[np.ix_(columns, columns)] += (X * weight[:, None]).T @ X
            return M
        parts = self.own.information(motion), self.beyond.information(self.spread(motion))
        return np.asarray(block_diag(*parts))

    def pull(self, motion: WeightedMotion, slope: Array) -> tuple[Array, Array, Array]:
        """Gradient of a function of M by q, dq and ddq, from its symmetric gradient by M.

        Of closed chains by those of the driven joints.
        """
        if self.sensor is not None and self.beyond is not None:
            p = self.base.count
            own = self.own.pull(motion, slope[:p, :p])
            more = self.beyond.pull(self.spread(motion), slope[p:, p:])
            place = self.sensor.place
            by = [a + b[:, place] for a, b in zip(own, more, strict=True)]
            return by[0], by[1], by[2]
        packed, weights = self.rows(motion)
        V = np.zeros_like(packed)
        for (entries, columns), weight in zip(self.packing.joints, weights, strict=True):
            V[:, entries] = packed[:, entries] @ slope[np.ix_(columns, columns)]
            V[:, entries] *= 2.0 * weight[:, None]
        closure, tree = self.base.idim.structure.closure, self.packing.tree
        if closure is None or tree is None:
            return self._pull_rows(motion, self.packing, V)
        G, D, E, B, bent, _, _ = closure.vary(motion.q, motion.dq, motion.ddq)
        (inner, whole), by_G = np.zeros((2, len(V), tree.width)), np.zeros(G.shape)
        fill_rows(self.base.idim, tree, motion.q, motion.dq, motion.ddq, whole, self.width)
        for to, of, here, there in chain(*self.packing.mixed):
            inner[:, there] += G[:, of, to, None] * V[:, here]
            by_G[:, to, of] += np.sum(V[:, here] * whole[:, there], axis=1)
        x, v, a = (each[:, None] for each in self._pull_rows(motion, tree, inner))
        along = (x @ G + v @ D + a @ E)[:, 0] + np.einsum("tji,tjik->tk", by_G, bent, optimize=True)
        return along, (v @ G + a @ B)[:, 0], (a @ G)[:, 0]

    def _pull_rows(
        self, motion: WeightedMotion, packing: Packing, V: Array
    ) -> tuple[Array, Array, Array]:
        """Gradient of ``sum V X`` of the packed rows X of a tree."""
        idim = self.base.idim
        bodies = np.zeros((len(motion.q), idim.tree.dof, idim.inertial))
        for j, (entries, columns) in enumerate(packing.joints):
            kept = self.base.kept[columns]
            inertial = kept < idim.inertial
            bodies[:, j, kept[inertial]] = V[:, entries][:, inertial]
        shape = (len(motion.q), idim.tree.dof, idim.tree.bodies, 10)
        by_q, by_dq, by_ddq = differentiate_regressor_sum(
            idim.tree, bodies.reshape(shape), motion.q, motion.dq, motion.ddq
        )
        self._pull_drives(motion, packing, V, by_q, by_dq, by_ddq)
        return by_q, by_dq, by_ddq

    def _pull_drives(
        self,
        motion: WeightedMotion,
        packing: Packing,
        V: Array,
        by_q: Array,
        by_dq: Array,
        by_ddq: Array,
    ) -> None:
        """Add the share of rotors and friction."""
        idim = self.base.idim
        seen: dict[int, DriveSignals] = {}
        tables: dict[int, Array] = {}
        for column, joint, slot in packing.drive:
            turns = column.turns
            each = V[:, slot] * turns[joint]
            k = column.friction
            if k is None:
                by_ddq += np.outer(each, turns)
                continue
            model = idim.frictions[k].model
            if k not in seen:
                seen[k] = view_friction(idim, motion.q, motion.dq, self.width)(k)
            term = column.term
            assert term is not None
            weights = model.parameters[term].weights
            if weights is not None:
                by_dq += np.outer(each * (weights[1] + weights[2] * seen[k].slope), turns)
                continue
            if k not in tables:
                assert model.law is not None
                shape = np.array(idim.shape[idim.frictions[k].shape])
                tables[k] = model.table(model.law, seen[k], shape)
            row = tables[k][:, model.rows.index(term)]
            by_dq += np.outer(each * row[:, BY_SPEED], turns)
            by_q += np.outer(each * row[:, BY_POSITION], turns)
