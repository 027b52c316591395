"""Maximum likelihood with noise of positions, torques and wrenches (Swevers et al. 1997).

The motion is eliminated to first order, which leaves the errors of the rows over their own
variance: torque noise and the encoders' noise as the model at hand carries it to the torque. The
derivation is in docs/theory/maximum-likelihood.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.factors import Factors, System, compress_groups
from dynident.core.options import (
    NotNegatives,
    Options,
    Positives,
    broadcast_to_joints,
    refuse_negative,
)
from dynident.core.schema import Number
from dynident.estimators.covariance import (
    ErrorBars,
    EstimateScores,
    estimate_covariance,
    name_covariance,
)
from dynident.estimators.estimate import Estimate
from dynident.recording.prepare import Samples
from dynident.recording.recording import COMMANDED
from dynident.regression.problem import Problem, Regression, refuse_combinations, refuse_sensors
from dynident.regression.rows import RowGroup, Rows
from dynident.regression.statistics import compute_residuals
from dynident.regression.weighted import (
    Reweighting,
    compute_literature_std,
    find_smallest_sigma,
    require_excitation,
    solve_wls,
)
from dynident.smoothing.propagation import (
    NoiseLevels,
    NoisyRows,
    Propagation,
    estimate_encoder_noise,
)

STEP = 1e-6
"""Of beta, in standard deviations, below which it has settled."""
HALVINGS = 30
HIDDEN = 0.9
"""Share of a combination's information that noise of the motion may account for."""
UNLIKE = 1.5
"""Errors over what given noise explains, above which it is said."""

Pair = Annotated[tuple[Number, Number], AfterValidator(refuse_negative)]


@dataclass(frozen=True)
class JointNoise(Options):
    """What is known of the noise of joints' signals."""

    position_std: Annotated[
        NotNegatives | None,
        "standard deviation of the encoders' white noise; by default estimated, for ml from what "
        "the position filter removes, for smooth from the residual of the smoothed motion [rad "
        "or m]",
    ] = None
    torque_std: Annotated[
        Positives | None,
        "standard deviation of white noise of the joints' torques, as logged; estimated by "
        "default [Nm or N]",
    ] = None


@dataclass(frozen=True)
class Noise(JointNoise):
    """What is known of a log's noise: an option of ml."""

    wrench_std: Annotated[
        Pair | None,
        "standard deviations of the forces and of the moments of measured wrenches, as logged; "
        "by default part of the estimated noise of the equations [N, Nm]",
    ] = None


def ml(
    problem: Problem,
    noise: Noise = Noise(),
    bars: ErrorBars = ErrorBars(),
    reweighting: Reweighting = Reweighting(),
) -> Estimate:
    """Maximum likelihood with the motion's noise propagated, and noise known or estimated.

    ``min_beta sum e^2 / s^2(beta)`` with ``e = y - X beta`` and ``s^2 = sigma_g^2 + (encoders'
    noise through the model)``, which is the likelihood of torques and positions together with
    the motion eliminated to first order; sigma_g by the likelihood of these errors, ``min_sigma
    sum e^2 / s^2 + log s^2``, with the degrees of freedom that beta has taken. Its score is a
    sum over rows of ``z e / s`` with ``z = (x + e g / s^2) / s``, ``g = (1/2) d s^2 / d beta``,
    whose mean is zero at the truth where that of ``x e / s^2`` is not. Rows are not independent:
    encoders act on several joints at once, and through filters on several instants. The weights
    do not count that, which costs some precision and no consistency; the covariance does, by the
    scores themselves (`estimate_covariance`): White's where residuals are white, else prewhitened
    ones.

    Raises
    ------
    InputError
        When the noise of the motion cannot be propagated: of logs that were averaged over periods,
        of measured speeds, behind a median filter, with friction that remembers, of contacts that
        nothing measures.
    ComputationError
        When the log does not excite all base parameters, noise hides the motion, or the estimate
        does not settle.
    """
    refuse_unpropagated_noise(problem)
    require_excitation(problem, problem.factors.weighted(problem.factors.ones))
    propagation = Propagation(problem, choose_noise_levels(problem, noise))
    fixed = collect_given_sigma(problem, noise)
    start, sigma, _ = solve_wls(problem.factors, reweighting=reweighting)
    begun = RowLikelihood(RowErrors(propagation, start), np.where(np.isnan(fixed), sigma, fixed))
    found = maximise_likelihood(begun, fixed, reweighting)
    return finish_ml_estimate(found, fixed, bars)


def refuse_unpropagated_noise(problem: Problem) -> None:
    """Refuse logs and models through which noise of positions is not propagated."""
    idim = problem.idim
    if idim.has_states or (idim.free and idim.loaded):
        raise InputError(
            f"ml does not propagate noise of the motion through friction {idim.friction!r}; take "
            "another friction, or wls"
        )
    for log in problem.samples:
        cause = name_what_hides_noise(log)
        if cause is None and not problem.robot.joints:
            cause = "the joints that carry a tool"
        elif cause is None and log.left_out is not None:
            cause = "samples that are left out; leave torque_median out"
        if cause is not None:
            raise InputError(
                f"{log.name}: ml does not propagate noise through {cause}, or take wls"
            )
    refuse_sensors(problem.robot, "ml propagates")
    refuse_combinations(problem, "ml does not propagate noise through")


def name_what_hides_noise(log: Samples) -> str | None:
    """What of a log's preparation hides the noise of its positions, and how to do without."""
    if log.averaging is not None:
        return "logs that are averaged over periods; leave period out"
    if log.derivatives == "measured":
        return "measured speeds; set derivatives = 'differences'"
    if log.median is not None:
        return "a median filter; leave median out"
    if log.rests is not None:
        return "averages over rests; leave rests out"
    if log.torque == COMMANDED:  # whose errors are those of the positions
        return "torque that a law makes of positions; leave law_kp out"
    return None


def describe_noise(position: Sequence[Array]) -> str:
    """Standard deviations of the encoders of some logs in words."""
    rms = np.sqrt(np.mean(np.square(position), axis=0))
    least, most = f"{np.min(rms):.2g}", f"{np.max(rms):.2g}"
    return least if least == most else f"{least} to {most}"


def choose_noise_levels(problem: Problem, noise: Noise) -> tuple[NoiseLevels, ...]:
    """Noise of each log's positions and wrenches, as given or as the log shows it."""
    wrench = noise.wrench_std
    if wrench is not None and not any(log.wrenches for log in problem.samples):
        raise InputError("wrench_std, but no log has a measured wrench")
    if noise.position_std is None:
        return tuple(NoiseLevels(estimate_encoder_noise(log), wrench) for log in problem.samples)
    given = np.array(broadcast_to_joints(noise.position_std, problem.robot.n, "position_std"))
    return (NoiseLevels(given, wrench),) * len(problem.samples)


def collect_given_sigma(problem: Problem, noise: Noise) -> Array:
    """Standard deviation of each group's rows where it is given, not a number elsewhere."""
    fixed = np.full(len(problem.groups), np.nan)
    if noise.torque_std is not None:
        n = problem.robot.n
        given = broadcast_to_joints(noise.torque_std, n, "torque_std")
        gains = {tuple(float(f.taps @ f.taps) for f in log.filters) for log in problem.samples}
        if len(gains) > 1:
            raise InputError("torque_std takes logs of one rate and one torque_hz; leave it out")
        fixed[-n:] = np.array(given) * np.sqrt(gains.pop())[-n:]
    return fixed


Reached = tuple[NoisyRows, Array, Array]
"""Rows of a group, their errors and their reach."""


@dataclass(frozen=True, eq=False)
class RowErrors:
    """The rows at some parameters."""

    propagation: Propagation
    beta: Array

    def passes(self) -> Iterator[Iterator[tuple[Reached, ...]]]:
        """Each log's groups, stretch by stretch; kept where its rows are."""
        return self._made() if self._kept is None else map(iter, self._kept)

    @cached_property
    def _kept(self) -> tuple[tuple[tuple[Reached, ...], ...], ...] | None:
        return tuple(map(tuple, self._made())) if self.propagation.keeps else None

    def _made(self) -> Iterator[Iterator[tuple[Reached, ...]]]:
        for log in self.propagation.passes():
            yield (
                tuple(
                    (rows, rows.error(self.beta[columns]), rows.reach(self.beta[columns]))
                    for rows, columns in zip(groups, self.propagation.problem.columns, strict=True)
                )
                for groups in log
            )


@dataclass(frozen=True, eq=False)
class RowLikelihood:
    """The rows at an estimate."""

    errors: RowErrors
    sigma: Array
    """Standard deviation of each group's own noise, behind its filter, shape (groups,)."""
    rounds: int = 0

    @property
    def propagation(self) -> Propagation:
        """The rows, whatever the parameters are."""
        return self.errors.propagation

    @property
    def beta(self) -> Array:
        """The base parameters."""
        return self.errors.beta

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.propagation.problem

    def variance(self, g: int, rows: NoisyRows, reach: Array) -> Array:
        """``s^2`` of rows of a group."""
        return np.asarray(self.sigma[g] ** 2 + rows.known + np.sum(reach**2, axis=1))

    def parts(self) -> Iterator[tuple[int, NoisyRows, Array, Array, Array]]:
        """Group, rows, errors, reach and ``s^2`` of all rows, stretch by stretch."""
        for log in self.errors.passes():
            for groups in log:
                for g, (rows, error, reach) in enumerate(groups):
                    yield g, rows, error, reach, self.variance(g, rows, reach)

    @cached_property
    def rows(self) -> Regression:
        """Rows ``[z | e / s + z beta]``: their scores are those of the likelihood."""
        p = len(self.beta)
        logs: list[list[Rows]] = []
        for log in self.errors.passes():
            logs.append([])
            for groups in log:
                X, y, sample = [], [], []
                for g, (rows, error, reach) in enumerate(groups):
                    s2 = self.variance(g, rows, reach)
                    own = rows.X + rows.spread(reach) * (error / s2)[:, None]
                    z = np.zeros((len(error), p))
                    z[:, self.problem.columns[g]] = own / np.sqrt(s2)[:, None]
                    X.append(z)
                    y.append(error / np.sqrt(s2) + z @ self.beta)
                    sample.append(rows.sample)
                logs[-1].append(Rows(tuple(X), tuple(y), tuple(sample)))
        return self.problem.given(self.problem.groups, logs)

    def scores(self, fixed: Array) -> Regression:
        """The same rows, with groups beside them by which errors of sigma reach beta.

        A sigma that is too large takes ``(sum g / s^4) d sigma^2`` from the score, and errs by
        ``sum (e^2 - s^2) / s^4 / sum 1 / s^4``: rows ``-m / s^2`` with errors ``e^2 / s^2 - 1``,
        m the mean of g weighted by 1 / s^4.
        """
        groups, free = self.problem.groups, np.flatnonzero(np.isnan(fixed))
        mean = np.zeros((len(groups), len(self.beta)))
        for g, rows, _, reach, s2 in self.parts():
            mean[g, self.problem.columns[g]] += s2**-2.0 @ rows.spread(reach)
        mean /= np.maximum(self.information, np.finfo(float).tiny)[:, None]
        logs: list[list[Rows]] = []
        for log, whole in zip(self.errors.passes(), self.rows.passes(), strict=True):
            logs.append([])
            for parts, rows_of in zip(log, whole, strict=True):
                X, y, sample = list(rows_of.X), list(rows_of.y), list(rows_of.sample)
                for g in free.tolist():
                    rows, error, reach = parts[g]
                    s2 = self.variance(g, rows, reach)
                    X.append(-mean[g] / s2[:, None])
                    y.append(error**2 / s2 - 1.0 + X[-1] @ self.beta)
                    sample.append(rows.sample)
                logs[-1].append(Rows(tuple(X), tuple(y), tuple(sample)))
        more = tuple(RowGroup(f"noise of {groups[g].name}", "1") for g in free)
        return self.problem.given((*groups, *more), logs)

    @cached_property
    def squares(self) -> Array:
        """``sum e^2 / s^2`` of each group."""
        return self._summed(lambda error, s2: error**2 / s2)

    @cached_property
    def spread(self) -> Array:
        """Standard deviation of each group's errors, their root mean square ``s``."""
        found = self._summed(lambda error, s2: s2) / np.maximum(1.0, self.problem.factors.counts)
        return np.where(found > 0.0, np.sqrt(found), self.sigma)

    @cached_property
    def information(self) -> Array:
        """``sum 1 / s^4`` of each group."""
        return self._summed(lambda error, s2: s2**-2.0)

    def _summed(self, of: Callable[[Array, Array], Array]) -> Array:
        total = np.zeros(len(self.sigma))
        for g, _, error, _, s2 in self.parts():
            total[g] += np.sum(of(error, s2))
        return total

    @cached_property
    def system(self) -> System:
        """All groups in one: ``sum z z^T = A^T A``."""
        blocks = ((np.vstack(rows.blocks),) for rows in self.rows.rows())
        whole = Factors(compress_groups(blocks, ["all"], [len(self.beta) + 1]))
        return whole.weighted(whole.ones)

    @cached_property
    def half(self) -> Array:
        """``A^-1``."""
        return self.system.inverse()

    @cached_property
    def excess(self) -> Array:
        """``sum (Q - g g^T / s^2) / s^2`` in units of ``sum z z^T``: what noise has in its share.

        Q is the covariance of the noise in x; positive semidefinite.
        """
        total = np.zeros((len(self.beta), len(self.beta)))
        for g, rows, _, reach, s2 in self.parts():
            B = rows.B @ self.half[self.problem.columns[g]]
            along = np.einsum("rm,rmk->rk", reach, B) / s2[:, None]
            B = (B / np.sqrt(s2)[:, None, None]).reshape(B.shape[0] * B.shape[1], B.shape[2])
            total += B.T @ B - along.T @ along
        return total

    @cached_property
    def inverse(self) -> Array:
        """Inverse of the information, ``(sum (x x^T - Q) / s^2)^-1``.

        ``E sum z z^T`` is the information and the `excess`, so that no normal matrix is formed.
        """
        require_motion(self.excess)
        share, vectors = np.linalg.eigh(self.excess)
        gain = self.half @ (vectors / np.sqrt(1.0 - np.maximum(share, 0.0)))
        return np.asarray(gain @ gain.T)

    @property
    def step(self) -> Array:
        """Of Gauss and Newton, towards the minimum of ``sum e^2 / s^2`` over beta."""
        return np.asarray(self.half @ (self.half.T @ self.slope))

    @cached_property
    def slope(self) -> Array:
        """Minus half the gradient of the criterion: ``sum z e / s``."""
        return np.asarray(self.system.A.T @ (self.system.b - self.system.A @ self.beta))

    @property
    def length(self) -> float:
        """Of the step, in standard deviations."""
        return float(np.linalg.norm(self.half.T @ self.slope))

    def advanced(self) -> RowLikelihood:
        """A step of beta, halved until the criterion decreases."""
        now, step = float(self.squares.sum()), self.step
        for halvings in range(HALVINGS):
            beta = self.beta + 0.5**halvings * step
            ahead = replace(self, errors=RowErrors(self.propagation, beta))
            if float(ahead.squares.sum()) <= now * (1.0 + 1e-12):
                return ahead
        raise ComputationError("no step of ml lowers the errors; check position_std, or take wls")

    @property
    def leverage(self) -> Array:
        """Of each group's rows: the share of the parameters spent on them."""
        found = np.zeros(len(self.sigma))
        for part in self.rows.rows():
            for g, columns in enumerate(self.problem.columns):
                found[g] += np.sum((part.X[g][:, columns] @ self.half[columns]) ** 2)
        return found

    def scaled(self, fixed: Array, leverage: Array) -> RowLikelihood:
        """Sigma of the groups that have none given, by a step of Fisher's scoring.

        ``sum (f e^2 - s^2) / s^4 = 0`` with ``f = r / (r - h)``, h the leverage of the group's
        rows, of the step before: sigma of `wls` where nothing else is noisy.
        """
        r = self.problem.factors.counts
        freedom = np.maximum(np.maximum(r - leverage, 0.1 * r), 1.0)
        upper, lower = np.zeros(len(r)), np.zeros(len(r))
        for g, _, error, _, s2 in self.parts():
            own = error**2 * (r[g] / freedom[g]) - (s2 - self.sigma[g] ** 2)
            upper[g] += np.sum(own / s2**2)
            lower[g] += np.sum(1.0 / s2**2)
        found = np.sqrt(np.maximum(upper / np.maximum(lower, np.finfo(float).tiny), 0.0))
        found = np.maximum(np.where(lower > 0.0, found, self.sigma), self.floor)
        return replace(self, sigma=np.where(np.isnan(fixed), found, fixed), rounds=self.rounds + 1)

    @cached_property
    def floor(self) -> float:
        """Smallest sigma that is believed."""
        return find_smallest_sigma(self.problem.factors)


def require_motion(excess: Array) -> None:
    """Refuse rows in which noise of the positions is most of what they show."""
    share = float(np.linalg.eigvalsh(excess)[-1])
    if share > HIDDEN:
        raise ComputationError(
            f"noise of the positions is {100.0 * min(share, 1.0):.0f} % of what the log shows of "
            "some combination of parameters; lower position_hz and torque_hz, move faster, or "
            "check position_std"
        )


def maximise_likelihood(
    here: RowLikelihood, fixed: Array, reweighting: Reweighting
) -> RowLikelihood:
    """Steps of beta and of sigma until neither moves."""
    for _ in range(reweighting.round_limit):
        moved = here.advanced().scaled(fixed, here.leverage)
        change = np.abs(moved.sigma - here.sigma)
        still = np.all(change <= reweighting.sigma_tolerance * moved.sigma)
        length = here.length
        here = moved
        if still and length < STEP:
            return here
    require_motion(here.excess)
    raise ComputationError(
        f"ml did not settle in {reweighting.round_limit} rounds; check position_std, or take wls"
    )


def finish_ml_estimate(found: RowLikelihood, fixed: Array, bars: ErrorBars) -> Estimate:
    """The estimate with its covariance, its residuals and what is odd about its noise."""
    problem, beta = found.problem, found.beta
    rows = found.scores(fixed)
    ones = rows.factors.ones
    scores = EstimateScores(rows, beta, ones, ones, compute_residuals(rows, beta))
    spread = estimate_covariance(scores, found.inverse, bars, white="robust", coloured="hac")
    literature = compute_literature_std(problem.factors.weighted(found.spread))
    words = describe_noise([own.position for own in found.propagation.levels])
    return Estimate(
        beta,
        None,
        found.spread,
        name_covariance("maximum likelihood", spread, literature),
        compute_residuals(problem, beta),
        found.rounds,
        f"settled in {found.rounds} rounds; noise of the positions {words}",
        warnings=tuple(warn_of_odd_noise(found, fixed)),
    )


def warn_of_odd_noise(found: RowLikelihood, fixed: Array) -> Iterator[str]:
    """Groups whose noise is not what was given or found."""
    counts = found.problem.factors.counts
    for g, group in enumerate(found.problem.groups):
        if counts[g] == 0.0:
            continue
        if np.isnan(fixed[g]):
            ratio = float(np.sqrt(counts[g] / found.squares[g])) if found.squares[g] else 0.0
            if ratio > UNLIKE and found.sigma[g] <= found.floor < 0.1 * found.spread[g]:
                yield (
                    f"the positions' noise alone explains {ratio:.1f} times the errors of "
                    f"{group.name}; check position_std"
                )
        elif (ratio := float(np.sqrt(found.squares[g] / counts[g]))) > UNLIKE:
            yield f"the errors of {group.name} are {ratio:.1f} times what the given noise explains"
