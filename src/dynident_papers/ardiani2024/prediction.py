"""A constrained estimate predicted from the unconstrained one (ardiani2024, III-F).

The parameters C lie on bounds d, the others U are free.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.factors import InstrumentSystem, System


def predict_constrained_estimate(system: System, fixed: Sequence[int], values: Array) -> Array:
    """The estimate with some base parameters fixed, from the free one, exactly.

    ``beta_U = beta_free,U + Q_UU^-1 Q_UC (beta_free,C - d)`` with ``Q = A^T A``: for IV,
    A is R_ZX. Eq. (44) and (45) of ardiani2024 agree with it where Pi = I.

    Parameters
    ----------
    system : System
        ``||A beta - b||^2``.
    fixed : sequence of int
        C, the parameters at their bounds.
    values : ndarray, shape (len(fixed),)
        d, the bounds.
    """
    free = system.solve()
    at, rest = split_indices(len(free), fixed)
    # Q_UU^-1 A_U^T is the pseudo-inverse of A_U
    response = np.linalg.lstsq(system.A[:, rest], system.A[:, at], rcond=None)[0]
    return fix_at_bounds(free, at, rest, values, np.asarray(response, dtype=np.float64))


def predict_by_instruments(system: InstrumentSystem, fixed: Sequence[int], values: Array) -> Array:
    """Eq. (45) of ardiani2024: ``beta_IV,U + (Z_U^T X_U)^-1 Z_U^T X_C (beta_IV,C - d)``.

    Its orthogonality is that of eq. (40), ``Z_U^T e = 0``, and not that of the criterion
    (28) that is minimised; the two agree where Pi = I.

    Parameters
    ----------
    system : InstrumentSystem
        As many instruments as parameters.
    fixed, values
        See `predict_constrained_estimate`.
    """
    z, free = system.instruments, system.projected.solve()
    at, rest = split_indices(len(free), fixed)
    cross = system.R[:z, :z].T @ system.R[:z, z:-1]
    response = np.linalg.solve(cross[np.ix_(rest, rest)], cross[np.ix_(rest, at)])
    return fix_at_bounds(free, at, rest, values, np.asarray(response, dtype=np.float64))


def split_indices(count: int, fixed: Sequence[int]) -> tuple[Integers, Integers]:
    """C and U as indices."""
    at = np.asarray(fixed, dtype=np.int64)
    return at, np.setdiff1d(np.arange(count), at)


def fix_at_bounds(
    free: Array, at: Integers, rest: Integers, values: Array, response: Array
) -> Array:
    """The free estimate with C at the bounds, and U moved by its response to that."""
    beta = free.copy()
    beta[at] = values
    beta[rest] += response @ (free[at] - values)
    return np.asarray(beta)
