"""Levenberg-Marquardt over simulations: the iteration of all that fit a simulated output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, RolloutError
from dynident.core.factors import System
from dynident.core.progress import Progress, estimate_progress, ignore_progress
from dynident.estimators.inner import InnerSolver

LEAST_DAMPING = 1e-9

T = TypeVar("T")
"""A simulated output, linearised about the unknowns that gave it."""


@dataclass(frozen=True)
class LocalProblem(Generic[T]):
    """The problem of one step: errors with the weights that they have where it begins."""

    system: System
    """``[Psi | e + Psi x]``, weighted."""
    errors: Callable[[T, Array], float]
    """``sum_j ||e_j||^2 / sigma_j^2`` of another output, at the unknowns that gave it."""
    near: Callable[[Array], bool]
    """Whether unknowns are so near that a step to them is the last."""


@dataclass(frozen=True)
class StepPace:
    """How an iteration begins and ends."""

    damping: float
    largest: float
    """`damping`, `largest`: of the first step, and beyond which none lowers the criterion."""
    stalled: float
    """Relative decrease of the criterion below which a step is the last."""
    stuck: str
    unsettled: str
    """`stuck`, `unsettled`: what is said where no step lowers it, and of iterations without an
    end."""
    unseen: float = 0.0
    """Decrease below which a step is the last, too."""
    limit: int = 60
    """Steps after which it is given up."""
    stays: bool = False
    """Whether it may end where no step lowers it: rounding and kinks of a motion may be all that is
    left, if there has been a step or `earlier` ones."""


@dataclass(frozen=True)
class IterationEnd(Generic[T]):
    """Where an iteration ended."""

    x: Array
    here: T
    history: Array
    """Shape (steps + 1, unknowns)."""
    rollouts: int


def run_levenberg_marquardt(
    linearised: Callable[[Array], T],
    local: Callable[[T, Array], LocalProblem[T]],
    inner: InnerSolver,
    x: Array,
    here: T,
    pace: StepPace,
    *,
    penalty: float | None = None,
    progress: Progress = ignore_progress,
    earlier: int = 0,
) -> IterationEnd[T]:
    """The minimum of an output error with weights that are renewed each step.

    Parameters
    ----------
    linearised : callable
        The output about unknowns; raises `RolloutError` where they cannot be simulated.
    local : callable
        The problem of a step from an output and its unknowns.
    penalty : float, optional
        Of x beside its errors; that of the first answer where it is not known.
    earlier : int
        Rollouts that have led to x.
    """
    damping, rollouts, history = pace.damping, 1, [x]
    for _ in range(pace.limit):
        step = local(here, x)
        errors, tried = step.errors(here, x), rollouts + 1
        while True:
            new = inner(damp_system(step.system, x, damping))
            penalty = inner.penalty if penalty is None else penalty
            cost, rollouts = errors + penalty, rollouts + 1
            progress("estimate", estimate_progress(earlier + rollouts))
            try:
                trial = linearised(new)
            except RolloutError:
                decrease = -np.inf
            else:
                decrease = cost - step.errors(trial, new) - inner.penalty
            last, least = step.near(new), max(pace.stalled * cost, pace.unseen)
            if decrease > 0.0 or (last and decrease > -least):
                break
            # so short a step is along the gradient: where that changes nothing, nothing does
            rests = pace.stays and damping > 1.0 and abs(decrease) < least
            damping = max(10.0 * damping, pace.damping)
            rests = rests or (pace.stays and damping > pace.largest and earlier + len(history) > 1)
            if rests:
                new, trial, last = x, here, True
                break
            if damping > pace.largest:
                raise ComputationError(pace.stuck)
        # tenfold up and down (Marquardt 1963), but not down at once to what was just refused;
        # more damping than one shortens steps, and would end them early
        if rollouts == tried or damping >= 1.0:
            damping = max(0.1 * damping, LEAST_DAMPING)
        x, here, penalty = new, trial, inner.penalty
        history.append(x)
        if last or decrease < least:
            return IterationEnd(x, here, np.array(history), rollouts)
    raise ComputationError(
        f"the output error did not settle in {pace.limit} steps; {pace.unsettled}"
    )


def damp_system(system: System, x: Array, damping: float) -> System:
    """A system with rows ``sqrt(damping) diag(A^T A)^(1/2) (new - x)`` added.

    Marquardt's (1963) scaling by the columns' norms: steps do not depend on parameters' units.
    """
    norms = np.linalg.norm(system.A, axis=0)
    # a column next to zero is damped, too: nothing else bounds the step along it
    rows = np.sqrt(damping) * np.maximum(norms, 1e-9 * max(float(norms.max()), 1e-300))
    return System(
        np.vstack([system.A, np.diag(rows)]), np.concatenate([system.b, rows * x]), system.rest
    )
