"""Log-Cholesky parameters: consistent bodies and drives without constraints.

``J = U U^T`` with U upper triangular and its diagonal exponentials (Rucker and Wensing
2022): every real eta is a consistent body and the other way round; positive parameters of
drives are exponentials too. For methods that search freely. The boundary of consistency is
at infinity there, so that an estimate which constraints hold back is only approached.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import to_inertial_parameters, to_pseudo_inertia
from dynident.dynamics.idim import Idim

UPPER = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
"""Places of s12, s23, s13, t1, t2, t3 in U."""


def build_cholesky_factor(eta: Array) -> Array:
    """``U = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]``.

    Parameters
    ----------
    eta : ndarray, shape (10,)
        alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 (the order of Pinocchio).
    """
    U = np.diag([*np.exp(eta[1:4]), 1.0])
    for place, value in zip(UPPER, eta[4:], strict=True):
        U[place] = value
    return np.asarray(np.exp(eta[0]) * U)


def decode_body(eta: Array) -> Array:
    """Inertial parameters of log-Cholesky parameters, shape (10,)."""
    U = build_cholesky_factor(eta)
    return to_inertial_parameters(U @ U.T)


def encode_body(phi: Array) -> Array:
    """Log-Cholesky parameters of a consistent body, shape (10,).

    Raises
    ------
    InputError
        When the body is not consistent.
    """
    flipped = to_pseudo_inertia(phi)[::-1, ::-1]
    try:
        U = np.linalg.cholesky(flipped)[::-1, ::-1]
    except np.linalg.LinAlgError as error:
        raise InputError(
            "a body that is not consistent has no log-Cholesky parameters; repair it first"
        ) from error
    scale = U[3, 3]
    inner = [U[place] / scale for place in UPPER]
    return np.array([np.log(scale), *np.log(np.diag(U)[:3] / scale), *inner])


def differentiate_body(eta: Array) -> Array:
    """``d phi / d eta``, shape (10, 10)."""
    U = build_cholesky_factor(eta)
    scale = np.exp(eta[0])
    slopes = np.zeros((10, 4, 4))
    slopes[0] = U
    for i in range(3):
        slopes[1 + i, i, i] = U[i, i]
    for k, place in enumerate(UPPER):
        slopes[(4 + k, *place)] = scale
    turned = slopes @ U.T
    return np.column_stack([to_inertial_parameters(d + d.T) for d in turned])


def encode(idim: Idim, theta: Array) -> Array:
    """Free parameters of a consistent standard set.

    Parameters
    ----------
    idim : Idim
    theta : ndarray, shape (standard parameters,)

    Raises
    ------
    InputError
        When a body or a drive is not consistent.
    """
    eta = np.array(theta, dtype=float)
    for k in range(idim.tree.bodies):
        span = slice(10 * k, 10 * k + 10)
        eta[span] = encode_body(theta[span])
    for k, parameter in enumerate(idim.parameters):
        if parameter.positive:
            if theta[k] <= 0.0:
                raise InputError(f"{parameter.name} = {theta[k]:.3g} is not positive")
            eta[k] = np.log(theta[k])
    return eta


def decode(idim: Idim, eta: Array) -> Array:
    """Standard parameters of free ones; consistent whatever they are."""
    theta = np.array(eta, dtype=float)
    for k in range(idim.tree.bodies):
        span = slice(10 * k, 10 * k + 10)
        theta[span] = decode_body(eta[span])
    positive = [k for k, p in enumerate(idim.parameters) if p.positive]
    theta[positive] = np.exp(eta[positive])
    return theta


def jacobian(idim: Idim, eta: Array) -> Array:
    """``d theta / d eta``, shape (standard parameters, standard parameters)."""
    slope = np.eye(len(eta))
    for k in range(idim.tree.bodies):
        span = slice(10 * k, 10 * k + 10)
        slope[span, span] = differentiate_body(eta[span])
    positive = [k for k, p in enumerate(idim.parameters) if p.positive]
    slope[positive, positive] = np.exp(eta[positive])
    return slope


def find_log_parameters(idim: Idim) -> np.ndarray:
    """Free parameters that are logarithms."""
    bodies = [10 * k + i for k in range(idim.tree.bodies) for i in range(4)]
    return np.array([*bodies, *(k for k, p in enumerate(idim.parameters) if p.positive)])
