"""Dynamics of bodies, rotors and friction together: what a controller asks of an identified model.

Of arrays of one state or of many: all but the last axis is the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array, check_states, to_kernel_arrays
from dynident.core.errors import InputError
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.following import fold_torques, settle_friction
from dynident.dynamics.forward import solve_forward_dynamics
from dynident.dynamics.idim import Idim
from dynident.dynamics.inverse import evaluate_inverse_dynamics
from dynident.dynamics.mass import compute_mass_matrix
from dynident.dynamics.torques import evaluate_drive_torques
from dynident.friction.model import name_signals

OPEN = 1e-6
"""Gap of a loop that is open, over the robot's length."""


@dataclass(frozen=True, eq=False)
class WholeModel:
    """A model with the values of its parameters, at work.

    Of a robot with loops all joints have to be in states of closed chains; the speeds of passive
    joints are those that the driven ones give, their torques and rows zero.

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
        if self.idim.structure.closure is not None:
            speed, rate = self.idim.structure.closure.move(at, speed, rate)
        smooth = self.widths(width)
        known = settle_friction(self.idim, at, speed, smooth)
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
        known = settle_friction(self.idim, at, speed, smooth)
        if self.idim.structure.closure is not None:
            return self._accelerate(at, speed, drive, smooth, known).reshape(shape)
        friction = evaluate_drive_torques(self.idim, self.theta, at, speed, still, smooth, known)
        ddq = solve_forward_dynamics(
            self.idim.tree, self.phi, at, speed, drive - friction, self.rotors
        )
        return ddq.reshape(shape)

    def _accelerate(
        self, q: Array, dq: Array, tau: Array, width: Array | None, known: Conditions
    ) -> Array:
        """Of closed chains: ``G^T M G ddq_a = tau_a - G^T (bias + M gamma)``, ``dq = G dq_a``."""
        closure = self.idim.structure.closure
        assert closure is not None
        a, gamma = closure.driven, closure.find_drift(q, dq)
        rest = tau - self.idim.torque(self.theta, q, dq, gamma, width, known)
        M = self.mass_matrix(q)[:, a[:, None], a]
        ddq = np.zeros_like(q)
        ddq[:, a] = np.linalg.solve(M, rest[:, a, None])[:, :, 0]
        return closure.move(q, dq, ddq)[1]

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
        tau = evaluate_inverse_dynamics(self.idim.tree, self.phi, at, still, still)
        return fold_torques(self.idim, at, tau).reshape(shape)

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
        if self.idim.structure.closure is not None:
            G = self.idim.structure.closure.find_null_space(at)
            found = np.swapaxes(G, 1, 2) @ found @ G
        return np.asarray(found.reshape(*shape, shape[-1]))

    def stacked(
        self, q: npt.ArrayLike, *others: npt.ArrayLike
    ) -> tuple[tuple[int, ...], tuple[Array, ...]]:
        """The shape of the answer, and all states one after another; zeros where q is alone."""
        robot = self.idim.robot
        nq, dof = robot.dof + robot.floating, robot.dof
        arrays = [np.asarray(each, dtype=float) for each in (q, *others)]
        ahead = arrays[0].shape[:-1]
        arrays += [] if others else [np.zeros((*ahead, dof))]
        check_states(robot.name, arrays, (nq, dof, dof))
        if not all(np.all(np.isfinite(array)) for array in arrays):
            raise InputError(f"{robot.name}: a state holds a value that is not finite")
        flat = to_kernel_arrays(*(array.reshape(-1, array.shape[-1]) for array in arrays))
        closure = self.idim.structure.closure
        if closure is not None:
            gap = float(np.max(np.abs(closure.measure(flat[0])), initial=0.0))
            if gap > OPEN * closure.length:
                raise InputError(f"{robot.name}: a loop is open by {gap:.3g} m; close q first")
            G = closure.find_null_space(flat[0])
            speed = np.einsum("tij,tj->ti", G, flat[1])
            flat = to_kernel_arrays(flat[0], speed, *flat[2:])
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
        more = self.idim.needs - {*allowed}
        if more:
            raise InputError(
                f"{self.idim.robot.name}: its friction depends on the {name_signals(more)}, which "
                f"{what} of one instant does not include"
            )


def average_inertia(idim: Idim, theta: Array, q: Array) -> Array:
    """Mean diagonal of the joint-space mass matrix, rotors included, shape (dof,) [kg m^2 or kg].

    Over configurations, shape (samples, nq).
    """
    bodies, _ = idim.split(theta)
    rotors = idim.rotors(theta)
    M = compute_mass_matrix(idim.tree, bodies, q)
    return np.asarray(np.mean(np.diagonal(M, axis1=1, axis2=2), axis=0) + np.diag(rotors))
