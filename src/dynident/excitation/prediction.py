"""What to expect of a trajectory: predicted standard deviations, and what stays unknown and why.

The torques' noise alone is in them. Noise of the encoders is left out: behind the
preparation's filters it hardly widens the spread, but from some 1e-4 rad on it shifts small
parameters by as much as the torques' noise does (`docs/figures/excitation.md`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import Idim
from dynident.excitation.information import Experiment, WeightedMotion

WEAK = 0.5
"""A parameter is weak whose standard deviation is a larger share of its value."""


@dataclass(frozen=True)
class Prediction:
    """What weighted least squares will know of the base parameters.

    Attributes
    ----------
    base : BaseParameters
    names : tuple of str
        Of the parameters.
    nominal : ndarray, shape (count,)
        Values by the robot's file; friction and rotors that it does not state are zero.
    std : ndarray, shape (count,)
        Standard deviations; infinite where the motion tells nothing.
    unscaled, columns, physical : float
        Condition numbers of the weighted regressor: in SI units, with each column over its
        norm, and with each column times the parameter's nominal value, or what is typical of it.
    """

    base: BaseParameters
    names: tuple[str, ...]
    nominal: Array
    std: Array
    unscaled: float
    columns: float
    physical: float

    @property
    def relative(self) -> Array:
        """Standard deviations over the nominal values; infinite where these are zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.std / np.abs(self.nominal))

    @property
    def weak(self) -> tuple[int, ...]:
        """Parameters with a nominal value that stay uncertain by more than `WEAK` of it."""
        known = np.abs(self.nominal) > 0.0
        return tuple(np.flatnonzero(known & (self.relative > WEAK)).tolist())

    def why(self, index: int) -> str:
        """Why a parameter stays weak, in words."""
        name = self.names[index]
        value, std = self.nominal[index], self.std[index]
        if not np.isfinite(std):
            return f"{name}: no joint's torque depends on it along this motion"
        return (
            f"{name}: {value:.3g} by the file, {std:.2g} uncertain: its torques are as small as "
            "the noise; move its joint and those before it faster, measure longer, or let the "
            "prior decide"
        )


def predict_precision(
    experiment: Experiment, motion: WeightedMotion, typical: Array, names: tuple[str, ...]
) -> Prediction:
    """What an experiment will know.

    It has the exact sign of Coulomb friction (no width), and the rows that will be fitted. Typical
    sizes are those of parameters that have no nominal value.
    """
    base = experiment.base
    M = experiment.information(motion)
    size = np.sqrt(np.diag(M))
    seen = size > 0.0
    std = np.full(base.count, np.inf)
    unit = np.where(seen, size, 1.0)
    scaled = M / np.outer(unit, unit)
    values, vectors = np.linalg.eigh(scaled[np.ix_(seen, seen)])
    enough = values > 1e-13 * values.max(initial=0.0)  # the rest is rounding of X^T X
    variances = (vectors**2 / np.where(enough, values, np.nan)).sum(axis=1)
    std[seen] = np.where(np.isnan(variances), np.inf, np.sqrt(np.abs(variances)) / unit[seen])
    nominal = base.matrix @ join_nominal_parameters(base.idim)
    physical = np.where(np.abs(nominal) > 0.0, np.abs(nominal), typical)
    return Prediction(
        base,
        names,
        nominal,
        std,
        compute_condition_number(M),
        compute_condition_number(scaled),
        compute_condition_number(M * np.outer(physical, physical)),
    )


def join_nominal_parameters(idim: Idim) -> Array:
    """A full set with the file's inertials, armature, damping and friction, else zeros."""
    theta = np.array(idim.nominal)
    for k, parameter in enumerate(idim.drives, idim.inertial):
        joint = idim.robot.joints[parameter.number - 1]
        known = {"Ia": joint.armature, "fv": joint.damping, "fc": joint.friction}
        theta[k] = known.get(parameter.symbol, 0.0)
    return theta


def compute_condition_number(M: Array) -> float:
    """That of rows with the normal matrix M."""
    if not np.all(np.isfinite(M)):
        return np.inf
    values = np.linalg.eigvalsh(M)
    return float(np.sqrt(values[-1] / values[0])) if values[0] > 0.0 else np.inf
