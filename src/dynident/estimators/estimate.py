"""What every estimator returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynident.conic.active_set import Certificate
from dynident.conic.cones import Cone
from dynident.consistency.active import Restriction
from dynident.consistency.constraints.consistency import GYRATION
from dynident.consistency.disbelief import Disbelief
from dynident.consistency.gyration import Gyration, describe_gyrations
from dynident.consistency.intervals import Interval
from dynident.consistency.knowledge import WEIGHT, Knowledge
from dynident.consistency.standard_errors import StandardErrors
from dynident.core.arrays import Array
from dynident.core.plain import ADDED
from dynident.estimators.closed_loop import HinderedStretch, Simulation
from dynident.estimators.essential import Essential
from dynident.estimators.hindered import WindowScatter
from dynident.regression.covariance import Covariance
from dynident.regression.statistics import Residuals, TestResult, compute_confidence_interval


@dataclass(frozen=True)
class ShapeEstimate:
    """Parameters that the torque is not linear in.

    Attributes
    ----------
    names : tuple of str
        ``vs3``.
    values, std : ndarray, shape (k,)
    """

    names: tuple[str, ...]
    values: Array
    std: Array


@dataclass(frozen=True)
class Track:
    """An estimate over time.

    Attributes
    ----------
    time : ndarray, shape (instants,)
        From the log's first sample [s].
    beta, std : ndarray, shape (instants, base parameters)
    """

    time: Array
    beta: Array
    std: Array


@dataclass(frozen=True)
class DrivesEstimate:
    """What was fitted of drives and loop where the links are fixed."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    """`names`, `units`: ``fv3``, ``bias2``, ``delay``."""
    values: Array
    std: Array
    """`values`, `std`: shape (k,)."""
    loop: Simulation
    """As it was fitted, or told."""
    matrix: Array
    """Covariance of the values, shape (k, k)."""
    cones: tuple[Cone, ...]
    """What they may be, in SI units."""
    uneven: tuple[str, ...] = ()
    """Joints whose errors friction that changes along a turn would take away."""
    doubts: tuple[str, ...] = ()
    """What speaks against the mount, and what was left out."""
    scatter: WindowScatter | None = None
    """Of free simulations' errors, where stretches that are far beyond were looked for."""
    hindered: tuple[tuple[HinderedStretch, ...], ...] = ()
    """These, which were left out, of each log."""


@dataclass(frozen=True)
class Instruments:
    """How strong instruments are, and how far other estimates are from theirs."""

    first_stage_f: float
    """Of the combination of parameters that they tell least of (Kleibergen and Paap 2006); infinite
    where the regressor is its own instrument."""
    least_squares: Array
    """Least squares on the same rows less the estimate by instruments, neither constrained, shape
    (base parameters,)."""
    simulated: Array | None
    """The same of least squares along the simulated motion (didim's), shape (base parameters,)."""
    overidentified: bool
    """Whether there are more instruments than parameters: only then do weak ones lean towards least
    squares (Angrist and Kolesar 2024)."""


@dataclass(frozen=True, eq=False)
class RoughEstimate:
    """An estimate without anything that can be said of its quality."""

    beta: Array
    theta: Array | None
    sigma: Array
    """`beta`, `theta`, `sigma`: as of an `Estimate`."""


@dataclass(frozen=True)
class Estimate:
    """An estimate with what can be said of its quality.

    Attributes
    ----------
    beta : ndarray, shape (base parameters,)
    theta : ndarray, shape (standard parameters,), or None
        The full set, where the method determines one.
    sigma : ndarray, shape (groups,)
        Standard deviation of each group's torque [Nm or N].
    covariance : Covariance
    residuals : Residuals
        Row by row; empty of a fit that was read from a file.
    iterations : int
    message : str
    certificate : Certificate or None
    active : tuple of str
        Names of the active constraints.
    prior : str or None
        The prior that acted, in words.
    restriction : Restriction or None
        What the active constraints do.
    warnings : tuple of str
    tests : tuple of TestResult
        Those that belong to the method, beside the whiteness of the residuals.
    history : ndarray, shape (iterations + 1, base parameters), or None
        The estimates of an iterative method, from its start; of a search by populations its start
        and its end, before the repair.
    singular_values : ndarray or None
        Of the unweighted rows that carry the method: the simulated regressor Z (of 2sls with
        all its instruments), or the Jacobian; largest first.
    essential : Essential or None
        Which base parameters survived elimination, where it was asked for.
    informed : ndarray, shape (bodies, 3), or None
        Shares of each body's mass, first moment and inertia that the log tells, and not the
        prior; None without one.
    informed_base : ndarray, shape (base parameters,), or None
        The same shares of the base parameters.
    disbelieved : tuple of Disbelief
        Bodies that by the log are far from those of the prior.
    gyrations : tuple of Gyration
        The least radius of gyration of each link, of constrained methods.
    standard_errors : StandardErrors or None
        Error bars of links and drives, of constrained methods.
    intervals : tuple of Interval
        Of constrained methods, where bounds and active constraints make them other than normal: the
        covariance says how little these let a parameter move, and not where it may be.
    shape : ShapeEstimate or None
        Parameters that the torque is not linear in, where the method estimates any.
    track : Track or None
        The estimate over time, of methods that follow it.
    fitted : DrivesEstimate or None
        Drives and loop, where the links are fixed.
    instruments : Instruments or None
        Of methods that have any.
    knowledge : Knowledge or None
        What was known beside the log, of constrained methods; a prior's weight as it was chosen.
    """

    beta: Array
    theta: Array | None
    sigma: Array
    covariance: Covariance
    residuals: Residuals
    iterations: int
    message: str
    certificate: Certificate | None = None
    active: tuple[str, ...] = ()
    prior: str | None = None
    restriction: Restriction | None = None
    warnings: tuple[str, ...] = ()
    tests: tuple[TestResult, ...] = ()
    history: Array | None = None
    singular_values: Array | None = None
    essential: Essential | None = None
    informed: Array | None = None
    informed_base: Array | None = None
    disbelieved: tuple[Disbelief, ...] = ()
    gyrations: tuple[Gyration, ...] = ()
    standard_errors: StandardErrors | None = None
    intervals: tuple[Interval, ...] = field(default=(), metadata=ADDED)
    shape: ShapeEstimate | None = None
    track: Track | None = None
    fitted: DrivesEstimate | None = None
    instruments: Instruments | None = None
    knowledge: Knowledge | None = None

    def __repr__(self) -> str:
        """One line, for a prompt."""
        return f"<Estimate of {len(self.beta)} base parameters: {self.message}>"

    @property
    def bounded(self) -> tuple[Interval, ...]:
        """The intervals of parameters at bounds of their own."""
        return tuple(own for own in self.intervals if own.at_bound)

    @property
    def prior_weight(self) -> float | None:
        """Of the prior that acted, as it was given or chosen."""
        known = self.knowledge
        if known is None or self.prior in (None, "none"):
            return None
        return WEIGHT if known.prior_weight is None else float(known.prior_weight)

    @property
    def limits(self) -> tuple[str, ...]:
        """The active constraints but for least radii of gyration.

        A link as thin as its file allows is what a log that hardly sees it looks like.
        """
        return tuple(name for name in self.active if not name.startswith(GYRATION))

    def describe_gyrations(self) -> list[str]:
        """Where least radii of gyration come from, and what the log has lowered."""
        return describe_gyrations(self.gyrations)


def compute_intervals(found: Estimate, names: Sequence[str]) -> tuple[Array, Array, Array]:
    """Standard deviations and both ends of the 95 % intervals of the base parameters of such names.

    Symmetric and normal, but where constraints are active.
    """
    std = found.covariance.std
    low, high = compute_confidence_interval(found.beta, std)
    for own in found.intervals:
        if own.name in names:
            k = names.index(own.name)
            std[k], low[k], high[k] = own.std, own.low, own.high
    return std, low, high


def embed_estimate(found: Estimate, essential: Essential, count: int) -> Estimate:
    """The estimate of some base parameters among all `count`; others are zero, without error."""
    kept = list(essential.kept)

    def spread(values: Array) -> Array:
        whole = np.zeros((*values.shape[:-1], count))
        whole[..., kept] = values
        return whole

    track, history, tested = found.track, found.history, found.instruments
    if tested is not None:
        simulated = None if tested.simulated is None else spread(tested.simulated)
        tested = replace(tested, least_squares=spread(tested.least_squares), simulated=simulated)
    covariance = replace(
        found.covariance,
        matrix=spread(spread(found.covariance.matrix).T),
        literature=spread(found.covariance.literature),
    )
    return replace(
        found,
        beta=spread(found.beta),
        covariance=covariance,
        message=f"{len(kept)} of {count} base parameters estimated; {found.message}",
        history=None if history is None else spread(history),
        track=None if track is None else Track(track.time, spread(track.beta), spread(track.std)),
        essential=essential,
        instruments=tested,
    )
