"""Gravity alone, from poses that were held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.core.errors import ComputationError, InputError
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.estimators.least_squares import wls
from dynident.regression.problem import Problem


def static(problem: Problem, bars: ErrorBars = ErrorBars()) -> Estimate:
    """Moments of gravity, offsets and holding friction: `wls` on the averages over rests.

    ``tau = G(q) beta_g + offset + s h`` with the sign s of each joint's approach: h stands where
    the friction model has its Coulomb friction.

    Raises
    ------
    InputError
        When a log was not prepared with `rests`, or friction is not a matter of signs alone.
    ComputationError
        When a joint came from one side only, or the poses do not tell all moments apart.
    """
    moved = [log.name for log in problem.samples if log.rests is None]
    if moved:
        raise InputError(
            f"{', '.join(moved)}: static takes poses that were held; set rests in [prepare], the "
            "seconds that a rest lasts at least"
        )
    if problem.idim.nonlinear or problem.idim.has_states:
        raise InputError(
            f"friction {problem.idim.friction!r} has shapes, a load or memory, which held poses "
            "do not determine: static needs coulomb-viscous, whose fc is the holding friction"
        )
    sides = np.concatenate([np.where(log.moving, log.dq, 0.0) for log in problem.samples])
    pairs = zip(problem.robot.joint_names, sides.T, strict=True)
    single = [name for name, own in pairs if not (own.max() > 0.0 > own.min())]
    if single:
        raise ComputationError(
            f"{', '.join(single)}: all poses were approached from one side, which does not "
            "separate friction from offset; approach them from both"
        )
    found = wls(problem, bars=bars)
    return replace(found, message=f"{len(sides)} poses by side of approach; {found.message}")
