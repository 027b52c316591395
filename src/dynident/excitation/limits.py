"""What a trajectory has to respect, and the torque that the nominal model asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import from_com
from dynident.core.options import broadcast_to_joints
from dynident.dynamics import Tree, build_tree, differentiate_dynamics, evaluate_inverse_dynamics
from dynident.dynamics.following import fold_torques
from dynident.dynamics.idim import Idim
from dynident.excitation.options import TrajectoryLimits
from dynident.robot.model import Robot

WRENCH = tuple(f"base {what} {axis}" for what in ("force", "moment") for axis in "xyz")
ALL_ROUND = np.pi
"""Range of a joint without limits, to both sides of the middle [rad]."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a motion, joint by joint; infinite where there is none."""

    lower: Array
    upper: Array
    """`lower`, `upper`: positions [rad or m], shape (n,)."""
    speed: Array
    acceleration: Array
    jerk: Array
    """`speed`, `acceleration`, `jerk`: magnitudes [rad/s, rad/s^2, rad/s^3, or m for rad], shape
    (n,)."""
    torque: Array
    """Shape (n,) or (n + 6,). Of the nominal model: what the margin leaves of the drives' [Nm or
    N]; then those of the wrench on the base, where it is limited."""
    clearance: float = 0.01
    """Between shapes [m]."""

    def of_order(self, order: int) -> tuple[Array, Array]:
        """Bounds of a derivative of the positions."""
        if order == 0:
            return self.lower, self.upper
        most = (self.speed, self.acceleration, self.jerk)[order - 1]
        return -most, most

    def within(self, shares: Array) -> Limits:
        """Narrower ones, by shares of ranges, speeds, accelerations and jerks, shape (4, n)."""
        room = self.upper - self.lower
        trim = np.where(np.isfinite(room), 0.5 * (1.0 - shares[0]), 0.0)
        trim *= np.where(np.isfinite(room), room, 0.0)
        return replace(
            self,
            lower=self.lower + trim,
            upper=self.upper - trim,
            speed=self.speed * shares[1],
            acceleration=self.acceleration * shares[2],
            jerk=self.jerk * shares[3],
        )


def build_limits(robot: Robot, bounds: TrajectoryLimits) -> Limits:
    """The limits of a robot's file, or those given instead.

    What the margin of the torques leaves bears bodies heavier by ``margin / (1 - margin)``.
    """
    joints = robot.joints

    def known(name: str, values: list[float]) -> Array:
        given = getattr(bounds, name)
        found = np.array(values if given is None else broadcast_to_joints(given, robot.n, name))
        # what is given for all joints alike is of the drives
        return np.where(passive & (np.size(given) < 2), values, found) if robot.loops else found

    passive = robot.passive
    low = known("lower", [joint.lower for joint in joints])
    high = known("upper", [joint.upper for joint in joints])
    _refuse_ranges(robot, low, high)
    endless, free = ~np.isfinite(high - low) & ~passive, passive & ~np.isfinite(high - low)
    zero = np.array(robot.assembled) if robot.loops else np.zeros(robot.n)
    middle = np.where(
        np.isfinite(low), low + ALL_ROUND, np.where(np.isfinite(high), high - ALL_ROUND, zero)
    )
    low = np.where(endless, middle - ALL_ROUND, low)
    high = np.where(endless, middle + ALL_ROUND, high)
    with np.errstate(invalid="ignore"):  # passive joints may have no limits
        middle, half = 0.5 * (low + high), 0.5 * bounds.share * (high - low)
    middle[free], half[free] = 0.0, np.inf
    fast = known("speed", [bounds.share * joint.velocity for joint in joints])
    steep = known("acceleration", [np.inf] * robot.n)
    strong = known("torque", [joint.effort for joint in joints]) * (1.0 - bounds.margin)
    strong[passive] = np.inf  # which they have none of
    _refuse_unlimited(robot, fast, steep, strong)
    if bounds.base_wrench is not None:
        if not robot.has_nominal:
            raise InputError(
                f"{robot.name}: the file has no inertials to predict the wrench on its base"
            )
        strong = np.concatenate([strong, (1.0 - bounds.margin) * np.array(bounds.base_wrench)])
    return Limits(
        middle - half,
        middle + half,
        fast,
        steep,
        known("jerk", [np.inf] * robot.n),
        strong,
        bounds.clearance,
    )


def _refuse_ranges(robot: Robot, low: Array, high: Array) -> None:
    """Refuse joints that cannot move, and sliding ones that could move for ever."""
    for j, joint in enumerate(robot.joints):
        if joint.kind == "prismatic" and not (robot.passive[j] or np.isfinite(high[j] - low[j])):
            raise InputError(
                f"{robot.name}: joint {joint.name} slides without limits; give lower and upper"
            )
        if not high[j] - low[j] > 1e-6:
            raise InputError(
                f"{robot.name}: joint {joint.name} has no range ({low[j]:g} to {high[j]:g}); lock "
                f"it (--locked {joint.name})"
            )


def _refuse_unlimited(robot: Robot, fast: Array, steep: Array, strong: Array) -> None:
    """Refuse driven joints whose acceleration neither a limit nor a known torque bounds."""
    for j, joint in enumerate(robot.joints):
        if not fast[j] > 0.0:
            raise InputError(
                f"{robot.name}: joint {joint.name} may not move (speed {fast[j]:g}); lock it"
            )
        if robot.passive[j] or np.isfinite(steep[j]):
            continue
        if not (np.isfinite(strong[j]) and robot.has_nominal):
            lacks = "inertials" if np.isfinite(strong[j]) else "effort"
            raise InputError(
                f"{robot.name}: nothing limits the acceleration of joint {joint.name}: the file "
                f"has no {lacks} for it; give acceleration, of [excitation] or --acceleration"
            )


def add_point_mass(robot: Robot, mass: float, centre: Array) -> Robot:
    """The robot with a point mass [kg] on its last link, in that one's joint frame [m]."""
    nominal = robot.nominal.copy()
    nominal[-1] += from_com(mass, centre, np.zeros((3, 3)))
    return replace(robot, nominal=nominal)


@dataclass(frozen=True)
class NominalTorques:
    """Torques of the nominal model, smooth, with derivatives."""

    idim: Idim
    theta: Array
    """A full set: the file's bodies, and friction and rotors as far as they are known."""
    wrench: bool = False
    """Whether the wrench on the base follows the joints' torques."""

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of what is computed: the joints, and the axes of the wrench."""
        return (*self.idim.robot.joint_names, *(WRENCH if self.wrench else ()))

    @property
    def phi(self) -> Array:
        """The bodies, shape (n, 10)."""
        return self.idim.split(self.theta)[0]

    @property
    def steady(self) -> Array:
        """Torque of friction that does not depend on the speed, shape (rows,) [Nm or N]."""
        return self._padded(np.array([joint.friction for joint in self.idim.robot.joints]))

    @property
    def viscous(self) -> Array:
        """Of the robot's file, shape (n,)."""
        return np.array([joint.damping for joint in self.idim.robot.joints])

    @property
    def rotors(self) -> Array:
        """Mass matrix of the rotors, shape (n, n)."""
        found = np.zeros((self.idim.robot.n,) * 2)
        for value, column in zip(
            self.idim.split(self.theta)[1], self.idim.structure.linear_columns, strict=False
        ):
            if column.friction is None:
                found += value * np.outer(column.turns, column.turns)
        return found

    def _padded(self, values: Array) -> Array:
        """Zeros for the wrench behind what the joints have, along the first axis."""
        more = np.zeros((6 * self.wrench, *values.shape[1:]))
        return np.concatenate([values, more])

    @cached_property
    def _free(self) -> tuple[Tree, Array]:
        """The robot with its base as a body without mass, which is whole still."""
        tree = build_tree(replace(self.idim.robot, floating=True))
        return tree, np.vstack([np.zeros(10), self.phi])

    def _at_rest(self, *motion: Array) -> list[Array]:
        """A motion of the joints with a base at rest."""
        still = [np.zeros((len(motion[0]), 7)), *[np.zeros((len(motion[0]), 6))] * 2]
        still[0][:, 6] = 1.0
        return [np.hstack(pair) for pair in zip(still, motion, strict=True)]

    def torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """All but the friction that does not depend on the speed, shape (samples, rows)."""
        tau = self._pull_apart(q, dq, ddq)
        n = q.shape[1]
        return np.hstack([fold_torques(self.idim, q, tau[:, :n]), tau[:, n:]])

    def _pull_apart(self, q: Array, dq: Array, ddq: Array) -> Array:
        """The same of the tree: what its joints would have to give where no loop held them."""
        drives = dq * self.viscous + ddq @ self.rotors
        if not self.wrench:
            return np.asarray(
                evaluate_inverse_dynamics(self.idim.tree, self.phi, q, dq, ddq) + drives
            )
        tree, phi = self._free
        tau = evaluate_inverse_dynamics(tree, phi, *self._at_rest(q, dq, ddq))
        return np.hstack([tau[:, 6:] + drives, tau[:, :6]])

    def slopes(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
        """Its derivatives by position, speed and acceleration, shapes (samples, rows, n).

        Of closed chains by those of the driven joints.
        """
        if not self.wrench:
            found = differentiate_dynamics(self.idim.tree, self.phi, q, dq, ddq)
        else:
            tree, phi = self._free
            whole = self._at_rest(q, dq, ddq)
            order = np.r_[6 : 6 + q.shape[1], 0:6]
            every = differentiate_dynamics(tree, phi, *whole)
            found = every[0][:, order, 6:], every[1][:, order, 6:], every[2][:, order, 6:]
        by_q, by_dq, by_ddq = found
        by_dq = by_dq + self._padded(np.diag(self.viscous))
        by_ddq = by_ddq + self._padded(self.rotors)
        closure = self.idim.structure.closure
        if closure is None:
            return by_q, by_dq, by_ddq
        G, D, E, B, bent, _, _ = closure.vary(q, dq, ddq)
        every = by_q @ G + by_dq @ D + by_ddq @ E, by_dq @ G + by_ddq @ B, by_ddq @ G
        n, turn = q.shape[1], np.swapaxes(G, 1, 2)
        pulled = [np.concatenate([turn @ each[:, :n], each[:, n:]], axis=1) for each in every]
        pulled[0][:, :n] += np.einsum(
            "tjik,ti->tjk", bent, self._pull_apart(q, dq, ddq)[:, :n], optimize=True
        )
        return pulled[0], pulled[1], pulled[2]
