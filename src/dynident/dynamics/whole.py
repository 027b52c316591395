"""Dynamics of bodies, rotors and friction together: what a controller asks of an identified model.

Of arrays of one state or of many: all but the last axis is the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.errors import InputError
from dynident.dynamics.forward import compute_mass_matrix, solve_forward_dynamics
from dynident.dynamics.idim import Idim
from dynident.dynamics.inverse import evaluate_inverse_dynamics
from dynident.friction.model import SIGNALS


@dataclass(frozen=True, eq=False)
class Model:
    """A model with the values of its parameters, at work.

    Attributes
    ----------
    idim : Idim
    theta : ndarray, shape (standard parameters,)
        Sets that give the same torques serve alike, be they base parameters in the places of those
        they keep.

    Raises
    ------
    InputError
        When there are not as many values.
    """

    idim: Idim
    theta: Array

    def __post_init__(self) -> None:
        idim, theta = self.idim.settled(np.asarray(self.theta, dtype=float))
        if theta.shape == (len(idim.parameters),):  # of the robot alone
            idim, theta = idim.without_sensors(theta)
        count = len(idim.parameters)
        if theta.shape != (count,) or not np.all(np.isfinite(theta)):
            raise InputError(f"{idim.robot.name}: needs {count} finite parameter values")
        object.__setattr__(self, "idim", idim)
        object.__setattr__(self, "theta", theta)

    @cached_property
    def phi(self) -> Array:
        """Inertial parameters of the bodies, shape (bodies, 10)."""
        return self.idim.split(self.theta)[0]

    @cached_property
    def rotors(self) -> Array:
        """Rotor inertias as the joints see them, those of coupled drives too, shape (dof, dof)."""
        return self.idim.rotors(self.theta)

    def inverse_dynamics(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        ddq: npt.ArrayLike,
        width: npt.ArrayLike | None = None,
    ) -> Array:
        """Torque for a motion: bodies with gravity, rotors, friction and offsets.

        Parameters
        ----------
        q, dq, ddq : array_like, shapes (..., nq), (..., dof) and (..., dof)
            [rad or m], [rad/s or m/s], [rad/s^2 or m/s^2]. A floating base comes first, as in
            Pinocchio.
        width : array_like, shape () or (n,), optional
            Speed over which Coulomb friction changes its sign, ``tanh(dq / width)``: a law that
            follows measured speeds does not chatter then. The exact sign without, zero at rest.

        Returns
        -------
        ndarray, shape (..., dof)
            ``M(q) ddq + N(q, dq) + f(q, dq)`` [Nm or N] (ardiani2024, eq. 1).

        Raises
        ------
        InputError
            For other shapes, and for friction that depends on more than the motion: on a
            temperature, on time or on torques of the log.

        Notes
        -----
        Friction with a memory is as it settles where an instant's speed lasts.
        """
        self.refuse_more_than_motion("inverse dynamics", ("load",))
        shape, states = self.stacked(q, dq, ddq)
        at, speed, rate = states
        smooth = self.widths(width)
        known = self.idim.settle(at, speed, smooth)
        tau = self.idim.torque(self.theta, at, speed, rate, smooth, known)
        return tau.reshape(shape)

    def forward_dynamics(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        tau: npt.ArrayLike,
        width: npt.ArrayLike | None = None,
    ) -> Array:
        """Acceleration under torques of the drives, the inverse of `inverse_dynamics`.

        Parameters
        ----------
        q, dq, tau : array_like, shapes (..., nq), (..., dof) and (..., dof)
        width
            See `inverse_dynamics`. With the exact sign a robot at rest has no Coulomb friction.

        Returns
        -------
        ndarray, shape (..., dof)
            [rad/s^2 or m/s^2]

        Raises
        ------
        InputError
            As `inverse_dynamics`; for friction that depends on the load, too, since that depends
            on the acceleration.
        ComputationError
            When a mass matrix is not positive definite.
        """
        self.refuse_more_than_motion("forward dynamics")
        shape, states = self.stacked(q, dq, tau)
        at, speed, drive = states
        still = np.zeros_like(speed)
        smooth = self.widths(width)
        known = self.idim.settle(at, speed, smooth)
        friction = self.idim.drive_torque(self.theta, at, speed, still, smooth, known)
        ddq = solve_forward_dynamics(
            self.idim.tree, self.phi, at, speed, drive - friction, self.rotors
        )
        return ddq.reshape(shape)

    def gravity(self, q: npt.ArrayLike) -> Array:
        """Torque that holds the bodies against gravity, without friction and offsets.

        Parameters
        ----------
        q : array_like, shape (..., nq)

        Returns
        -------
        ndarray, shape (..., dof)
            [Nm or N]
        """
        shape, (at, still) = self.stacked(q)
        return evaluate_inverse_dynamics(self.idim.tree, self.phi, at, still, still).reshape(shape)

    def mass_matrix(self, q: npt.ArrayLike) -> Array:
        """The mass matrix of bodies and rotors (armature), coupled ones included.

        Parameters
        ----------
        q : array_like, shape (..., nq)

        Returns
        -------
        ndarray, shape (..., dof, dof)
            [kg m^2, kg m or kg]
        """
        shape, (at, _) = self.stacked(q)
        found = compute_mass_matrix(self.idim.tree, self.phi, at) + self.rotors
        return np.asarray(found.reshape(*shape, shape[-1]))

    def stacked(
        self, q: npt.ArrayLike, *others: npt.ArrayLike
    ) -> tuple[tuple[int, ...], tuple[Array, ...]]:
        """The shape of the answer, and all states one after another; zeros where q is alone."""
        robot = self.idim.robot
        nq, dof = robot.dof + robot.floating, robot.dof
        configuration = np.asarray(q, dtype=float)
        ahead = configuration.shape[:-1]
        if not others:
            others = (np.zeros((*ahead, dof)),)
        arrays = [configuration, *(np.asarray(other, dtype=float) for other in others)]
        for array, size in zip(arrays, (nq, dof, dof), strict=False):
            if array.shape != (*ahead, size):
                raise InputError(
                    f"{robot.name}: states have shapes {', '.join(str(a.shape) for a in arrays)}; "
                    f"their last axes have to be {nq} (q) and {dof}, all others alike"
                )
            if not np.all(np.isfinite(array)):
                raise InputError(f"{robot.name}: a state holds a value that is not finite")
        flat = to_kernel_arrays(*(array.reshape(-1, array.shape[-1]) for array in arrays))
        return (*ahead, dof), flat

    def widths(self, width: npt.ArrayLike | None) -> Array | None:
        """Smoothing widths of the sign, one a joint; None for the exact sign."""
        if width is None:
            return None
        n = self.idim.robot.n
        given = np.asarray(width, dtype=float)
        if given.shape not in ((), (1,), (n,)) or not np.all((given > 0.0) & np.isfinite(given)):
            raise InputError(f"width needs one positive value, or {n}")
        return np.full(n, given)

    def refuse_more_than_motion(self, what: str, allowed: tuple[str, ...] = ()) -> None:
        """Refuse friction that depends on more than the motion and what is allowed beside."""
        more = sorted(self.idim.needs - {*allowed})
        if more:
            needs = " and the ".join(SIGNALS[need] for need in more)
            raise InputError(
                f"{self.idim.robot.name}: its friction depends on the {needs}, which is more than "
                f"{what} of one instant can know"
            )


def average_inertia(idim: Idim, theta: Array, q: Array) -> Array:
    """Mean diagonal of the joint-space mass matrix, rotors included, shape (dof,) [kg m^2 or kg].

    Over configurations, shape (samples, nq).
    """
    bodies, _ = idim.split(theta)
    rotors = idim.rotors(theta)
    M = compute_mass_matrix(idim.tree, bodies, q)
    return np.asarray(np.mean(np.diagonal(M, axis1=1, axis2=2), axis=0) + np.diag(rotors))
