"""The inverse dynamic identification model: torques linear in the standard parameters.

``tau = IDM_f(q, dq, ddq) beta_f`` (ardiani2024, eq. 3): ten inertial parameters a body,
then the drives' rotor inertia and friction. Packed rows hold only the entries of
``IDM_f`` that can differ from zero, grouped by joint, for the parameters asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.core.inertia import INERTIAL, is_consistent
from dynident.core.text import nearest
from dynident.dynamics import build_tree, inverse_dynamics
from dynident.dynamics.regressor import fill_regressor
from dynident.dynamics.tree import Tree
from dynident.friction.models import FRICTIONS, Term
from dynident.robot.model import Robot

ROTOR = "Ia"
STRETCH = 4096
"""Samples whose torque is computed at a time."""


@dataclass(frozen=True)
class Parameter:
    """One standard parameter: a symbol and the number of its joint or link."""

    symbol: str
    number: int
    positive: bool = False

    @property
    def name(self) -> str:
        """``Izz1``, ``fv4``, ``Iam6``."""
        return f"{self.symbol}{self.number}"


@dataclass(frozen=True)
class DriveColumn:
    """A drive's parameter and how it acts: ``turns * f(turns @ dq)`` on the joints.

    ``term`` is None for the rotor inertia, which acts through ``turns @ ddq``.
    """

    parameter: Parameter
    turns: Array
    term: Term | None

    def values(self, dq: Array, ddq: Array, width: Array | None = None) -> Array:
        """``f`` at each sample, shape (samples,); `width` smooths the sign, joint by joint."""
        if self.term is None:
            return np.asarray(ddq @ self.turns)
        own = None if width is None else float(width[self.parameter.number - 1])
        return self.term.values(dq @ self.turns, own)


@dataclass(frozen=True)
class Packing:
    """Where the entries of the chosen columns stand in packed rows.

    Attributes
    ----------
    slot : ndarray of int, shape (bodies, longest path, 10)
        For the regressor kernel.
    drive : tuple of (column, joint row, slot)
        For the drive columns.
    joints : tuple of (slice, ndarray)
        Per torque row: its slots, and which of the chosen columns they are.
    width : int
        Entries a sample.
    """

    slot: Integers
    drive: tuple[tuple[DriveColumn, int, int], ...]
    joints: tuple[tuple[slice, Integers], ...]
    width: int


@dataclass(frozen=True)
class Idim:
    """A robot with a friction model, as the linear model that is identified.

    Attributes
    ----------
    robot : Robot
    friction : str
        Name in `FRICTIONS`.
    rotor : bool
        Whether the drives' rotor inertias ``Ia`` are parameters.
    """

    robot: Robot
    friction: str
    rotor: bool

    @cached_property
    def tree(self) -> Tree:
        """The robot as the kernels read it."""
        return build_tree(self.robot)

    @cached_property
    def drive_columns(self) -> tuple[DriveColumn, ...]:
        """Rotor inertia and friction, joint by joint; a coupled drive's own after them."""
        columns = []
        drives = self.robot.drives
        for j in range(self.robot.n):
            own = np.eye(self.robot.n)[j]
            terms = FRICTIONS[self.friction]
            coupled = drives.coupled(j)
            if self.rotor and not coupled:
                columns.append(DriveColumn(Parameter(ROTOR, j + 1, True), own, None))
            columns += [DriveColumn(Parameter(t.symbol, j + 1, t.positive), own, t) for t in terms]
            if coupled:
                turns = drives.turns[j]
                if self.rotor:
                    rotor = Parameter(f"{ROTOR}m", j + 1, True)
                    columns.append(DriveColumn(rotor, turns, None))
                for term in terms:
                    if term.positive:  # an offset of the drive is one of the joints'
                        own_term = Parameter(f"{term.symbol}m", j + 1, True)
                        columns.append(DriveColumn(own_term, turns, term))
        return tuple(columns)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All standard parameters: bodies first (10 each), then the drives'."""
        bodies = [Parameter(s, k) for k in self.robot.numbers for s in INERTIAL]
        return (*bodies, *(column.parameter for column in self.drive_columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the standard parameters."""
        return tuple(p.name for p in self.parameters)

    @property
    def inertial(self) -> int:
        """Number of inertial parameters, the first of all: 10 bodies."""
        return 10 * self.tree.bodies

    @property
    def drives(self) -> tuple[Parameter, ...]:
        """The drives' parameters, those after the bodies'."""
        return self.parameters[self.inertial :]

    @cached_property
    def positive(self) -> npt.NDArray[np.bool_]:
        """Whether physical consistency asks for a positive value, parameter by parameter."""
        return np.array([p.positive for p in self.parameters])

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Bodies, shape (bodies, 10), and drive parameters of a full set; views of it."""
        return theta[: self.inertial].reshape(-1, 10), theta[self.inertial :]

    def join(self, phi: Array, drives: Array | None = None) -> Array:
        """A full set of bodies, shape (bodies, 10), and drive parameters, zero by default."""
        theta = np.zeros(len(self.parameters))
        theta[: self.inertial] = np.ravel(phi)
        if drives is not None:
            theta[self.inertial :] = drives
        return theta

    @property
    def nominal(self) -> Array:
        """The robot file's inertials as a full set, without rotors and friction."""
        return self.join(self.robot.nominal)

    def is_consistent(self, theta: Array) -> bool:
        """Whether every body, rotor and friction parameter of a full set can exist."""
        return is_consistent(self.split(theta)[0]) and bool(np.all(theta[self.positive] > 0.0))

    def packing(self, columns: Sequence[int] | Integers) -> Packing:
        """Layout of packed rows for some of the standard parameters.

        Parameters
        ----------
        columns : sequence of int
            Indices into `parameters`, in the order that the caller counts them.
        """
        tree = self.tree
        position = {int(c): k for k, c in enumerate(columns)}
        entries: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(tree.dof)]
        for b in range(tree.bodies):
            for k in range(tree.path_length[b]):
                for i in range(10):
                    if 10 * b + i in position:
                        entries[tree.path[b, k]].append((position[10 * b + i], (b, k, i)))
        first = tree.dof - self.robot.n
        for d, column in enumerate(self.drive_columns):
            if self.inertial + d in position:
                for j in np.flatnonzero(column.turns):
                    entries[first + int(j)].append((position[self.inertial + d], (d, int(j))))
        slot = np.full((tree.bodies, tree.path.shape[1], 10), -1)
        drive, joints, width = [], [], 0
        for row in entries:
            row.sort()
            start = width
            for _, where in row:
                if len(where) == 3:
                    slot[where] = width
                else:
                    drive.append((self.drive_columns[where[0]], where[1], width))
                width += 1
            joints.append((slice(start, width), np.array([c for c, _ in row], dtype=np.int64)))
        return Packing(slot, tuple(drive), tuple(joints), width)

    def fill(
        self,
        packing: Packing,
        q: Array,
        dq: Array,
        ddq: Array,
        out: Array,
        width: Array | None = None,
    ) -> None:
        """Packed regressor rows into `out`, shape (samples, packing.width).

        Parameters
        ----------
        width : ndarray, shape (n,), optional
            Smooths the sign of Coulomb friction as a simulation does [rad/s or m/s].
        """
        fill_regressor(self.tree, packing.slot, q, dq, ddq, out)
        first = self.tree.dof - self.robot.n
        dq, ddq = dq[:, first:], ddq[:, first:]
        computed: dict[str, Array] = {}
        for column, joint, slot in packing.drive:
            name = column.parameter.name
            if name not in computed:
                computed[name] = column.values(dq, ddq, width)
            np.multiply(computed[name], column.turns[joint], out=out[:, slot])

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """The full regressor ``IDM_f``, shape (samples, dof, parameters)."""
        packing = self.packing(range(len(self.parameters)))
        packed = np.empty((len(q), packing.width))
        self.fill(packing, q, dq, ddq, packed)
        dense = np.zeros((len(q), self.tree.dof, len(self.parameters)))
        for row, (entries, columns) in enumerate(packing.joints):
            dense[:, row, columns] = packed[:, entries]
        return dense

    def torque(self, theta: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """Torques of standard parameters ``theta``, shape (samples, dof)."""
        phi, _ = self.split(theta)
        tau = np.empty((len(q), self.tree.dof))
        for a in range(0, len(q), STRETCH):  # what lies between stays in the cache
            s = slice(a, a + STRETCH)
            tau[s] = inverse_dynamics(self.tree, phi, q[s], dq[s], ddq[s])
            tau[s] += self.drive_torque(theta, dq[s], ddq[s])
        return tau

    def drive_torque(self, theta: Array, dq: Array, ddq: Array) -> Array:
        """The drives' share of the torque: rotors and friction, shape (samples, dof)."""
        first = self.tree.dof - self.robot.n
        tau = np.zeros((len(dq), self.tree.dof))
        for value, column in zip(theta[self.inertial :], self.drive_columns, strict=True):
            if value != 0.0:
                signal = value * column.values(dq[:, first:], ddq[:, first:])
                for j in np.flatnonzero(column.turns):
                    tau[:, first + j] += column.turns[j] * signal
        return tau


def build_idim(robot: Robot, friction: str = "coulomb-viscous", rotor: bool | None = None) -> Idim:
    """The identification model of a robot.

    Parameters
    ----------
    robot : Robot
    friction : str
        Name in `FRICTIONS`. ``"none"`` is the bare rigid body.
    rotor : bool, optional
        Whether each drive has a rotor inertia; by default unless friction is "none".

    Raises
    ------
    InputError
        When the friction model is not known.
    """
    if friction not in FRICTIONS:
        raise InputError(f"friction {friction!r} is not known{nearest(friction, FRICTIONS)}")
    return Idim(robot, friction, friction != "none" if rotor is None else rotor)
