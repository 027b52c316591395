"""A robot with parameter values, as the rollout's kernel reads it.

Sensitivities are asked for by columns: the base parameters (or any other standard ones)
whose share in the torque the kernel has to differentiate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.dynamics.idim import Idim
from dynident.dynamics.inverse import mass_matrix


class Plant(NamedTuple):
    """Parameter values and the columns to differentiate by.

    Attributes
    ----------
    phi : ndarray, shape (bodies, 10)
    rotors : ndarray, shape (dof, dof)
        ``sum_i Ia_i g_i g_i^T`` over the drives' gears g_i.
    gears : ndarray, shape (drives, n)
        How each drive turns with the joints: one's own first, then the coupled ones.
    friction : ndarray, shape (drives, 5)
        ``f(v) = a + b v + (c + d exp(-(v / e)^2)) s(v)``, s the smoothed sign; d and e are
        the excess and the speed of a Stribeck effect.
    width : ndarray, shape (drives,)
        ``s(v) = tanh(v / width)`` [rad/s or m/s].
    slot : ndarray of int, shape (bodies, 10)
        Column of each inertial parameter among those differentiated, or -1.
    gear, column : ndarray of int, shape (c,)
        Drive of each drive parameter that is differentiated, and its column.
    share : ndarray, shape (c, 4)
        Its torque: ``share . (1, v, s(v), dv/dt)``.
    """

    phi: Array
    rotors: Array
    gears: Array
    friction: Array
    width: Array
    slot: Integers
    gear: Integers
    column: Integers
    share: Array


def build_plant(
    idim: Idim,
    theta: Array,
    width: Array,
    columns: Sequence[int] | Integers = (),
    stribeck: tuple[Array, Array] | None = None,
) -> Plant:
    """Sort a model's standard parameters into what the kernel reads.

    Parameters
    ----------
    idim : Idim
    theta : ndarray, shape (standard parameters,)
        Only the joint-space mass matrix has to be positive definite, so that base
        parameters in their kept places will do.
    width : ndarray, shape (n,)
        Speed over which each drive's Coulomb friction changes sign [rad/s or m/s].
    columns : sequence of int
        Standard parameters to differentiate by, in the order of the sensitivities.
    stribeck : (excess, speed), each ndarray of shape (n,), optional
        Friction above fc at standstill [Nm or N], and the speed at which it has fallen to
        1/e of that: a plant that the linear model does not have.

    Raises
    ------
    InputError
        When a width is not positive, a friction term has no smooth form, or values or columns
        do not fit the model.
    """
    count = len(idim.parameters)
    if np.shape(theta) != (count,) or not np.all(np.isfinite(theta)):
        raise InputError(f"{idim.robot.name}: parameter values have to be {count} finite numbers")
    chosen = [int(c) for c in columns]
    whole = all(c == k for c, k in zip(columns, chosen, strict=True))
    if not whole or len(set(chosen)) < len(chosen) or any(not 0 <= c < count for c in chosen):
        raise InputError(
            f"columns to differentiate by have to be different numbers from 0 to {count - 1}"
        )
    if stribeck is not None and (
        len(stribeck) != 2
        or any(np.shape(part) != (idim.robot.n,) for part in stribeck)
        or not np.all(np.isfinite(stribeck))
        or not np.all(np.asarray(stribeck[1]) > 0.0)
    ):
        raise InputError(f"a Stribeck effect needs {idim.robot.n} excesses and positive speeds")
    n, first = idim.robot.n, idim.tree.dof - idim.robot.n
    if np.shape(width) != (n,) or not np.all(np.asarray(width) > 0.0):
        raise InputError(f"the smoothing width of the sign needs {n} positive values")
    rows = [(j, np.eye(n)[j]) for j in range(n)]
    rows += [(j, idim.robot.drives.turns[j]) for j in range(n) if idim.robot.drives.coupled(j)]
    gears = np.array([turns for _, turns in rows])
    friction = np.zeros((len(rows), 5))
    friction[:, 4] = 1.0
    rotors = np.zeros((idim.tree.dof, idim.tree.dof))
    gear, column, share = [], [], []
    position = {c: k for k, c in enumerate(chosen)}
    for d, drive in enumerate(idim.drive_columns):
        index = idim.inertial + d
        joint = drive.parameter.number - 1
        own = bool(np.array_equal(drive.turns, gears[joint]))
        at = joint if own else next(i for i in range(n, len(rows)) if rows[i][0] == joint)
        if drive.term is None:
            weights = np.array([0.0, 0.0, 0.0, 1.0])
            turns = np.concatenate([np.zeros(first), drive.turns])
            rotors += theta[index] * np.outer(turns, turns)
        else:
            if drive.term.smooth is None:
                raise InputError(
                    f"friction {idim.friction!r} cannot be simulated: its term "
                    f"{drive.term.symbol} has no smooth form"
                )
            weights = np.array([*drive.term.smooth, 0.0])
            friction[at, :3] += theta[index] * weights[:3]
        if index in position:
            gear.append(at)
            column.append(position[index])
            share.append(weights)
    if stribeck is not None:
        friction[:n, 3], friction[:n, 4] = stribeck
    slot = np.full((idim.tree.bodies, 10), -1)
    for index, k in position.items():
        if index < idim.inertial:
            slot[index // 10, index % 10] = k
    return Plant(
        phi=np.array(theta[: idim.inertial], dtype=float).reshape(-1, 10),
        rotors=rotors,
        gears=np.ascontiguousarray(gears),
        friction=friction,
        width=np.array([width[joint] for joint, _ in rows], dtype=float),
        slot=slot,
        gear=np.array(gear, dtype=np.int64),
        column=np.array(column, dtype=np.int64),
        share=np.array(share, dtype=float).reshape(-1, 4),
    )


def mean_inertia(idim: Idim, theta: Array, q: Array) -> Array:
    """Mean diagonal of the joint-space mass matrix, rotors included.

    Parameters
    ----------
    idim : Idim
    theta : ndarray, shape (standard parameters,)
    q : ndarray, shape (samples, nq)
        Configurations to average over.

    Returns
    -------
    ndarray, shape (dof,)
        [kg m^2 or kg]
    """
    bodies = theta[: idim.inertial].reshape(-1, 10)
    rotors = build_plant(idim, theta, np.ones(idim.robot.n)).rotors
    M = mass_matrix(idim.tree, bodies, np.ascontiguousarray(q))
    return np.asarray(np.mean(np.diagonal(M, axis1=1, axis2=2), axis=0) + np.diag(rotors))
