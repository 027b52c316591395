"""What is known of a robot beside its log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.consistency.constraints import CONSISTENCY, ON_BASE, Constraint
from dynident.consistency.constraints.checks import keep, short
from dynident.consistency.prior import METRICS, NO_PRIOR, Prior, believed, check_metric
from dynident.core.errors import InputError
from dynident.core.text import nearest
from dynident.robot.model import Robot

CENTRES = ("nominal", "none")
"""Of priors: the robot file's inertials, or nothing."""
PARAMETRISATIONS = ("cones", "log-cholesky")
"""How the consistent set is searched: under its cones, or by parameters that cannot leave it."""
METRIC, WEIGHT = "pullback", 1.0
"""Of a prior that is not told otherwise."""
HELD_OUT = "held-out"
"""The weight of a prior that blocks of the log choose."""
HEAVIEST = 1e12
"""Largest weight of a prior: a link within a millionth of its size."""


@dataclass(frozen=True)
class Knowledge:
    """All that is known of a robot beside its log.

    Attributes
    ----------
    prior : {"nominal", "none"}, optional
        Centre; the robot file's inertials where it has any, by default.
    metric : str, optional
        Of the prior: a name in `dynident.consistency.prior.METRICS`, "pullback" by default.
    prior_weight : float or "held-out", optional
        Of the squared distance from the centre: 1, the default, believes each link within
        its own size, "held-out" lets blocks of the log choose.
    consistency : str
        Name in `dynident.consistency.constraints.CONSISTENCY`.
    constraints : tuple of Constraint
    parametrisation : str
        Name in `PARAMETRISATIONS`: how the consistent set is searched.
    """

    prior: str | None = None
    metric: str | None = None
    prior_weight: float | str | None = None
    consistency: str = "pseudo-inertia"
    constraints: tuple[Constraint, ...] = ()
    parametrisation: str = "cones"

    def __post_init__(self) -> None:
        weight = self.prior_weight
        if weight is not None and not (isinstance(weight, str) and weight == HELD_OUT):
            keep(self, prior_weight=checked_weight(weight))

    def of(self, robot: Robot) -> Prior:
        """The prior of a robot.

        Raises
        ------
        InputError
            For unknown names, a file without inertials, and a metric or a weight of no prior.
        """
        if self.consistency not in CONSISTENCY:
            raise InputError(
                f"consistency {self.consistency!r} is not known"
                f"{nearest(self.consistency, CONSISTENCY)}"
            )
        metric = METRIC if self.metric is None else check_metric(self.metric)
        self._check_parametrisation(metric)
        weight = WEIGHT if self.prior_weight is None else self.prior_weight
        if isinstance(weight, str):
            raise InputError(f"prior_weight {weight!r} needs a log to choose it; give a number")
        on_base = self.consistency in ON_BASE
        name = self.prior
        if name is None:
            name = "nominal" if robot.has_nominal and not on_base else "none"
        if name not in CENTRES:
            raise InputError(f"prior {name!r} is not known{nearest(name, CENTRES)}")
        if name == "none":
            self._check_no_prior(robot)
            return NO_PRIOR
        if not robot.has_nominal:
            raise InputError(f"{robot.name}: prior 'nominal', but its file has no inertials")
        if on_base:
            raise InputError(
                f"consistency {self.consistency!r} is said on base parameters, which have no "
                "prior; leave the prior out"
            )
        return Prior(believed(robot.nominal, robot.links), metric, weight)

    def _check_no_prior(self, robot: Robot) -> None:
        """Refuse what only a prior has."""
        given = [key for key in ("metric", "prior_weight") if getattr(self, key) is not None]
        if not given:
            return
        reason = f"{robot.name} has no inertials in its file"
        if self.prior == "none":
            reason = "prior is 'none'"
        elif self.consistency in ON_BASE:
            reason = f"consistency is {self.consistency!r}"
        raise InputError(f"{given[0]} is of the prior, and {reason}; leave it out")

    def _check_parametrisation(self, metric: str) -> None:
        if self.parametrisation not in PARAMETRISATIONS:
            raise InputError(
                f"parametrisation {self.parametrisation!r} is not known"
                f"{nearest(self.parametrisation, PARAMETRISATIONS)}"
            )
        if self.parametrisation == "cones":
            return
        if self.constraints or self.consistency != "pseudo-inertia":
            raise InputError(
                "parametrisation 'log-cholesky' knows consistency 'pseudo-inertia' and no other "
                "constraints; use 'cones'"
            )
        if not METRICS[metric].fixed:
            raise InputError(
                f"parametrisation 'log-cholesky' has no metric {metric!r}; use 'pullback'"
            )


def checked_weight(weight: object) -> float:
    """A prior's weight as a plain number.

    Raises
    ------
    InputError
    """
    number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
    if not number or not 0.0 <= float(weight) <= HEAVIEST:  # type: ignore[arg-type]
        raise InputError(
            f"prior_weight {short(weight)} is neither {HELD_OUT!r} nor from 0 to {HEAVIEST:g}"
        )
    return float(weight)  # type: ignore[arg-type]
