"""Which of a robot's equations of motion a log can state, and what these equations determine.

``Y x = S^T tau + sum_l J_l^T f_l`` has 6 + n rows on a floating base. Without joint torques its
first six are left (Ayusawa et al. 2008), without contact wrenches its projection on the
null space of ``J^T`` (the notes on FloBaRoID, "Missing torque or force sensors").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.dynamics.contacts import follow_touch
from dynident.dynamics.tree import Tree
from dynident.robot.model import Equations, Robot

SINGULAR = 1e-6
"""Singular value of a contact Jacobian, over its largest, below which it is none."""
CREEPING = 1e-12
"""Speed of a joint that is held: nothing but friction, by its sign, feels it [rad/s or m/s]."""
FAR = 0.05
"""Smallest squared cosine between a null space and the basis that it is described by."""


class EstimatedSensor(NamedTuple):
    """A sensor of forces of which something is estimated."""

    contact: str
    log: str = ""
    """Whose own it is, as the sensor was tared before; empty of all others."""


@dataclass(frozen=True)
class Observability:
    """What a log can show, whatever its motion."""

    equations: Equations = "full"
    """A fixed robot has those of its joints, which all but "base" mean there."""
    still: bool = False
    """Whether the base stands."""
    locked: tuple[tuple[int, float], ...] = ()
    """Joints that stay at a value, and whose torque says nothing: index [rad or m]."""
    free: tuple[tuple[str, ...], ...] = ()
    """Sets of contacts that bear and that nothing measures."""
    sensors: tuple[EstimatedSensor, ...] = ()
    """Measured contacts of whose sensors something is estimated."""
    static: bool = False
    """Whether it is of poses that were held, each joint approached from some side."""
    missing: tuple[str, ...] = ()
    """Sensors in the chain without a signal."""

    def rows(self, robot: Robot) -> Booleans:
        """Which of the rows hold without any projection, shape (equations,)."""
        found = np.ones(robot.equations, dtype=bool)
        first = robot.dof - robot.n
        if self.equations == "joints":
            found[:first] = found[robot.dof :] = False
        if self.equations == "base":
            found[first : robot.dof] = False
        for joint, _ in self.locked:
            found[first + joint] = False
        found[first : robot.dof][robot.passive] = False
        for gauge, rows in robot.sensed:
            if gauge.name in self.missing:
                found[rows] = False
        return found


PLAIN = Observability()
"""Of a log that has all."""


def stack_contact_jacobians(tree: Tree, robot: Robot, names: Sequence[str], q: Array) -> Array:
    """Jacobian of contacts by name, one below another, shape (samples, components, dof)."""
    chosen = [contact for contact in robot.contacts if contact.name in names]
    parts = [
        follow_touch(tree, robot, contact, q).jacobian[:, : contact.components]
        for contact in chosen
    ]
    return np.concatenate(parts, axis=1)


def mark_touched_equations(tree: Tree, robot: Robot, names: Sequence[str]) -> Booleans:
    """Rows in which wrenches of contacts act, shape (equations,)."""
    found = np.zeros(robot.equations, dtype=bool)
    for contact in robot.contacts:
        if contact.name in names:
            body = robot.body_index(contact.body)
            found[tree.path[body, : tree.path_length[body]]] = True
    return found


@dataclass(frozen=True)
class NullSpace:
    """Combinations of equations that no wrench of some contacts acts on."""

    acting: Integers
    """The equations in which the wrenches act."""
    scale: Array
    """Shape (m,). Standard deviation of each of their errors: divided by it they are all alike, and
    so are orthonormal combinations of them."""
    basis: Array
    """Of the null space at one instant, for the equations divided by `scale`, shape (m, m -
    rank)."""

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return int(self.basis.shape[1])

    def at(self, J: Array, out: Booleans | None = None) -> tuple[Array, Booleans]:
        """The combinations along a motion, smooth: `basis` projected, orthonormal symmetrically.

        Parameters
        ----------
        J : ndarray, shape (samples, components, dof)
            Of the contacts.
        out : ndarray of bool, shape (samples, m), optional
            Which of the equations do not hold: see `leave_equations_out`.

        Returns
        -------
        N : ndarray, shape (samples, m, m - rank)
            For the equations as they are.
        regular : ndarray of bool, shape (samples,)
            Whether the contacts act as usual, the basis reaches so far, and something is left.
        """
        U, _, ranks = decompose_scaled_jacobian(J[:, :, self.acting], self.scale)
        rank = len(self.scale) - self.count
        taken = U[:, :, :rank]
        bent = self.basis - taken @ (np.swapaxes(taken, 1, 2) @ self.basis)
        values, turns = np.linalg.eigh(np.swapaxes(bent, 1, 2) @ bent)
        regular = ranks == rank
        if self.count:
            regular &= values[:, 0] > FAR
        # bent (bent^T bent)^-1/2: of all orthonormal bases the nearest to `bent` (its polar
        # factor), which is as smooth as the motion; signs and pivots of a QR would jump
        root = np.sqrt(np.maximum(values, FAR))[:, None, :]
        N = bent @ ((turns / root) @ np.swapaxes(turns, 1, 2))
        if out is not None:
            N, left = leave_equations_out(N, out)
            regular &= left
        return N / self.scale[:, None], regular


def leave_equations_out(N: Array, out: Booleans) -> tuple[Array, Booleans]:
    """Orthonormal combinations without those in which some equations are, and where some are left.

    What does not hold is an unknown force on its equation: ``N - N V V^T``, V the combinations that
    feel it. As many combinations are then others' sums; what is left of all is as exact as before.

    Parameters
    ----------
    N : ndarray, shape (samples, m, combinations)
    out : ndarray of bool, shape (samples, m)
        Which of the m equations do not hold, sample by sample.
    """
    found, left = N.copy(), np.ones(len(N), dtype=bool)
    some = out.any(axis=1)
    _, s, V = np.linalg.svd(np.where(out[some, :, None], N[some], 0.0), full_matrices=False)
    felt = s > SINGULAR
    V *= felt[:, :, None]
    found[some] -= (N[some] @ np.swapaxes(V, 1, 2)) @ V
    left[some] = np.sum(felt, axis=1) < N.shape[2]
    return found, left


def decompose_scaled_jacobian(J: Array, scale: Array) -> tuple[Array, Array, Integers]:
    """Left singular vectors, values and ranks of ``J^T`` divided by the scale, row by row."""
    U, s, _ = np.linalg.svd(np.swapaxes(J, 1, 2) / scale[:, None], full_matrices=False)
    return U, s, np.sum(s > SINGULAR * s[:, :1], axis=1)


def build_null_space(J: Array, acting: Integers, scale: Array) -> NullSpace:
    """The combinations of equations on which contacts do not act, about one instant.

    J is of the contacts then, shape (components, dof), `acting` says on which equations they act,
    and `scale` is of these, shape (m,).
    """
    U, _, ranks = decompose_scaled_jacobian(J[None][:, :, acting], scale)
    taken = U[0, :, : ranks[0]]
    _, vectors = np.linalg.eigh(np.eye(len(scale)) - taken @ taken.T)
    return NullSpace(acting, scale, vectors[:, ranks[0] :])


def reduce_to_observed_rows(
    tree: Tree, robot: Robot, observed: Observability, q: Array, W: Array
) -> Array:
    """What a log can show of a regressor W (samples, dof, columns) at q, shape (rows, columns)."""
    kept = observed.rows(robot)
    if observed.equations != "null-space":
        return W[:, kept].reshape(-1, W.shape[2])
    found = []
    for names in observed.free:
        acting = mark_touched_equations(tree, robot, names) & kept
        found.append(W[:, kept & ~acting].reshape(-1, W.shape[2]))
        if not acting.any():
            continue
        places = np.flatnonzero(acting)
        for J, rows in zip(
            stack_contact_jacobians(tree, robot, names, q), W[:, acting], strict=True
        ):
            # the states are far apart: a basis each
            found.append(build_null_space(J, places, np.ones(len(places))).basis.T @ rows)
    return np.vstack(found)
