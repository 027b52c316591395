"""What a trajectory has to respect, and the torque that the nominal model asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import from_com
from dynident.dynamics import derivatives, inverse_dynamics, mass_matrix
from dynident.dynamics.idim import Idim
from dynident.robot.model import Robot

ALL_ROUND = np.pi
"""Range of a joint without limits, to both sides of the middle [rad]."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a motion, joint by joint; infinite where there is none.

    Attributes
    ----------
    lower, upper : ndarray, shape (n,)
        Positions [rad or m].
    speed, acceleration, jerk : ndarray, shape (n,)
        Magnitudes [rad/s, rad/s^2, rad/s^3, or m for rad].
    torque : ndarray, shape (n,)
        Of the nominal model: what the margin leaves of the drives' [Nm or N].
    clearance : float
        Between shapes [m].
    """

    lower: Array
    upper: Array
    speed: Array
    acceleration: Array
    jerk: Array
    torque: Array
    clearance: float = 0.01

    def of_order(self, order: int) -> tuple[Array, Array]:
        """Bounds of a derivative of the positions."""
        if order == 0:
            return self.lower, self.upper
        most = (self.speed, self.acceleration, self.jerk)[order - 1]
        return -most, most

    def within(self, shares: Array) -> Limits:
        """Narrower ones.

        Parameters
        ----------
        shares : ndarray, shape (5, n)
            Of ranges, speeds, accelerations, jerks and torques.
        """
        middle, half = 0.5 * (self.lower + self.upper), 0.5 * (self.upper - self.lower)
        return replace(
            self,
            lower=middle - shares[0] * half,
            upper=middle + shares[0] * half,
            speed=self.speed * shares[1],
            acceleration=self.acceleration * shares[2],
            jerk=self.jerk * shares[3],
            torque=self.torque * shares[4],
        )


def limits_of(
    robot: Robot,
    *,
    speed: Array | None = None,
    acceleration: Array | None = None,
    jerk: Array | None = None,
    torque: Array | None = None,
    lower: Array | None = None,
    upper: Array | None = None,
    margin: float = 0.2,
    share: float = 1.0,
    clearance: float = 0.01,
) -> Limits:
    """The limits of a robot's file, or those given instead.

    Parameters
    ----------
    robot : Robot
    speed, acceleration, jerk, torque, lower, upper : ndarray, shape (n,), optional
        Instead of the file's.
    margin : float
        Share of the torques that is kept for what the nominal model does not know: bodies
        heavier by ``margin / (1 - margin)`` are still within the drives' limits.
    share : float
        Of the file's speeds and ranges that is used.
    clearance : float
        Between shapes [m].

    Raises
    ------
    InputError
        For a joint without range, and where neither accelerations nor torques are limited.
    """
    joints = robot.joints

    def known(given: Array | None, values: list[float]) -> Array:
        return np.array(values) if given is None else np.asarray(given, dtype=float)

    low = known(lower, [joint.lower for joint in joints])
    high = known(upper, [joint.upper for joint in joints])
    for j, joint in enumerate(joints):
        if joint.kind == "prismatic" and not np.isfinite(high[j] - low[j]):
            raise InputError(
                f"{robot.name}: joint {joint.name} slides without limits; give lower and upper"
            )
        if not high[j] - low[j] > 1e-6:
            raise InputError(
                f"{robot.name}: joint {joint.name} has no range ({low[j]:g} to {high[j]:g}); lock "
                f"it (--locked {joint.name})"
            )
    endless = ~np.isfinite(high - low)
    middle = np.where(
        np.isfinite(low), low + ALL_ROUND, np.where(np.isfinite(high), high - ALL_ROUND, 0.0)
    )
    low = np.where(endless, middle - ALL_ROUND, low)
    high = np.where(endless, middle + ALL_ROUND, high)
    middle, half = 0.5 * (low + high), 0.5 * share * (high - low)
    fast = known(speed, [share * joint.velocity for joint in joints])
    steep = known(acceleration, [np.inf] * robot.n)
    strong = known(torque, [joint.effort for joint in joints]) * (1.0 - margin)
    for j, joint in enumerate(joints):
        if not fast[j] > 0.0:
            raise InputError(
                f"{robot.name}: joint {joint.name} may not move (speed {fast[j]:g}); lock it"
            )
        if not np.isfinite(steep[j]) and not (np.isfinite(strong[j]) and robot.has_nominal):
            lacks = "inertials" if np.isfinite(strong[j]) else "effort"
            raise InputError(
                f"{robot.name}: nothing limits the acceleration of joint {joint.name}: the file "
                f"has no {lacks} for it; give accelerations (--acceleration)"
            )
    return Limits(
        middle - half,
        middle + half,
        fast,
        steep,
        known(jerk, [np.inf] * robot.n),
        strong,
        clearance,
    )


def loaded(robot: Robot, mass: float, centre: Array, link: str | None = None) -> Robot:
    """The robot with a point mass on a link, its last by default.

    Parameters
    ----------
    robot : Robot
    mass : float
        [kg]
    centre : ndarray, shape (3,)
        In the link's joint frame [m].
    link : str, optional
    """
    if link is not None and link not in robot.links:
        raise InputError(f"{robot.name}: there is no link {link!r} that could carry the load")
    index = robot.links.index(link) if link is not None else len(robot.links) - 1
    nominal = robot.nominal.copy()
    nominal[index] += from_com(mass, centre, np.zeros((3, 3)))
    return replace(robot, nominal=nominal)


@dataclass(frozen=True)
class Nominal:
    """Torques of the nominal model, smooth, with derivatives.

    Attributes
    ----------
    idim : Idim
    theta : ndarray
        A full set: the file's bodies, and friction and rotors as far as they are known.
    """

    idim: Idim
    theta: Array

    @property
    def steady(self) -> Array:
        """Torque of friction that does not depend on the speed, shape (n,) [Nm or N]."""
        return np.array([joint.friction for joint in self.idim.robot.joints])

    @property
    def viscous(self) -> Array:
        """Of the robot's file, shape (n,)."""
        return np.array([joint.damping for joint in self.idim.robot.joints])

    @property
    def rotors(self) -> Array:
        """Mass matrix of the rotors, shape (n, n)."""
        found = np.zeros((self.idim.robot.n,) * 2)
        for value, column in zip(
            self.idim.split(self.theta)[1], self.idim.linear_columns, strict=False
        ):
            if column.friction is None:
                found += value * np.outer(column.turns, column.turns)
        return found

    def torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """All but the friction that does not depend on the speed, shape (samples, n)."""
        phi, _ = self.idim.split(self.theta)
        tau = inverse_dynamics(self.idim.tree, phi, q, dq, ddq)
        return np.asarray(tau + dq * self.viscous + ddq @ self.rotors)

    def slopes(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
        """Its derivatives by position, speed and acceleration, shapes (samples, n, n)."""
        phi, _ = self.idim.split(self.theta)
        by_q, by_dq = derivatives(self.idim.tree, phi, q, dq, ddq)
        by_ddq = mass_matrix(self.idim.tree, phi, q) + self.rotors
        return by_q, by_dq + np.diag(self.viscous), by_ddq
