"""Bootstrap of a constrained estimate: what its error bars are on a boundary.

Where constraints are active the estimate is not a smooth function of the data and its
distribution no normal one. Each replicate redraws the sum of the rows' scores, in blocks as
long as their correlation lasts or from a normal distribution where they have none, and solves
the cone problem again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from dynident.conic.solve import RepeatedSolver
from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.factors import System
from dynident.core.options import Options
from dynident.core.side_by_side import HERE, Engine

REPLICATES = 60
"""The default of an estimate: a standard deviation within 9 %."""
FEWEST = 20
"""Replicates that give a standard deviation within 16 %."""


def refuse_few_replicates(count: int) -> int:
    """Refuse replicates that are too few to say anything."""
    if count and count < FEWEST:
        raise ValueError(f"is {count}: at least {FEWEST} replicates, or 0 for none")
    return count


Count = Annotated[int, Field(strict=True, ge=0, le=10**9)]
Seed = Annotated[Count, "seed of the random numbers of the bootstrap and of searches"]


@dataclass(frozen=True)
class Bootstrap(Options):
    """Error bars where constraints are active: options of constrained methods."""

    bootstrap: Annotated[
        Annotated[Count, AfterValidator(refuse_few_replicates)],
        "bootstrap replicates for the error bars where constraints are active; 0 for the "
        "first-order covariance on the active faces",
    ] = REPLICATES
    seed: Seed = 0


Redraw = Callable[[np.random.Generator], Array]
"""An error of ``A^T b``, shape (base parameters,), anew at each call."""


def make_normal_redraw(root: Array) -> Redraw:
    """Sums of scores whose covariance is ``root^T root``, shape (any, base parameters)."""
    return lambda generator: np.asarray(generator.normal(size=len(root)) @ root)


def make_block_redraw(series: tuple[Array, ...], rows: int, length: int) -> Redraw:
    """Sums of blocks of scores about their mean (moving blocks: Künsch 1989).

    Scores of each log's rows, shape (instants, base parameters); how many rows are fitted, of all
    groups; and the length of a block, in instants.
    """
    # residuals are smaller than errors, and windows share their mean
    instants = sum(len(scores) for scores in series)
    share = series[0].shape[1] / rows
    shrunk = np.sqrt((1.0 - share) * (1.0 - min(0.5, length / instants)))
    windows = []
    for scores in series:
        span = min(length, len(scores))
        sums = np.vstack([np.zeros(scores.shape[1]), np.cumsum(scores, axis=0)])
        sums = sums[span:] - sums[:-span]
        windows.append((sums - np.mean(sums, axis=0), round(len(scores) / span)))

    def redraw(generator: np.random.Generator) -> Array:
        drawn = sum(
            np.bincount(generator.integers(len(sums), size=count), minlength=len(sums)) @ sums
            for sums, count in windows
        )
        return np.asarray(drawn / shrunk)

    return redraw


def bootstrap_covariance(
    admitted: FeasibleSet,
    point: FeasiblePoint,
    system: System,
    redraw: Redraw,
    rows: int,
    options: Bootstrap,
    engine: Engine = HERE,
) -> Array:
    """Covariance of the scaled unknowns over replicates.

    ``A^T b* = A^T b + a sum of scores that is redrawn``: the rows' regressor stays, their errors
    are others. The prior's targets move by their own standard deviation. All is drawn here, the
    engine solves.
    """
    if rows <= len(point.beta):
        raise ComputationError(
            f"{rows} rows for {len(point.beta)} base parameters leave no residuals to resample; "
            "raise the bandwidth, fit longer logs, or set bootstrap = 0"
        )
    generator = np.random.default_rng(options.seed)
    inverse = system.inverse()
    changes = np.zeros((options.bootstrap, len(point.b)))
    # the pull along open directions is not a measurement, and has no error
    prior = slice(point.data, len(point.b) - len(admitted.open))
    for change in changes:
        # A^T of this is the redrawn sum, for the inverse's transpose is a right inverse of A^T
        change[: point.data] = inverse.T @ redraw(generator)
        change[prior] = admitted.kappa * generator.normal(size=len(change[prior]))
    found = RepeatedSolver(point.A, point.b, admitted.cones, point.x).minimisers(changes, engine)
    return np.asarray(np.cov(found, rowvar=False))
