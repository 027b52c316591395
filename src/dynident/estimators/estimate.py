"""What every estimator returns."""

from __future__ import annotations

from dataclasses import dataclass

from dynident.conic.active_set import Certificate
from dynident.consistency.active import Restriction
from dynident.core.arrays import Array
from dynident.regression.statistics import Covariance, Residuals, TestResult


@dataclass(frozen=True)
class Estimate:
    """An estimate with what can be said of its quality.

    Attributes
    ----------
    beta : ndarray, shape (base parameters,)
    theta : ndarray, shape (standard parameters,), or None
        The full set, where the method determines one.
    sigma : ndarray, shape (n,)
        Standard deviation of each joint's rows [Nm or N].
    covariance : Covariance
    residuals : Residuals
    iterations : int
    converged : bool
    message : str
    certificate : Certificate or None
    active : tuple of str
        Names of the constraints that hold the estimate back.
    prior : str or None
        The prior that acted, in words.
    restriction : Restriction or None
        What the active constraints do.
    warnings : tuple of str
    tests : tuple of TestResult
        Those that belong to the method, beside the whiteness of the residuals.
    history : ndarray, shape (iterations + 1, base parameters), or None
        The estimates of an iterative method, from its start.
    singular_values : ndarray or None
        Of the unweighted rows that carry the method: the simulated regressor Z (of 2sls with
        all its instruments), or the Jacobian; largest first.
    """

    beta: Array
    theta: Array | None
    sigma: Array
    covariance: Covariance
    residuals: Residuals
    iterations: int
    converged: bool
    message: str
    certificate: Certificate | None = None
    active: tuple[str, ...] = ()
    prior: str | None = None
    restriction: Restriction | None = None
    warnings: tuple[str, ...] = ()
    tests: tuple[TestResult, ...] = ()
    history: Array | None = None
    singular_values: Array | None = None
