"""What is known of a robot beside its log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from dynident.consistency.constraints import CONSISTENCY, ON_BASE, Constraint
from dynident.consistency.gyration import Gyration, list_gyrations, list_radii
from dynident.consistency.prior import METRICS, NO_PRIOR, Prior, build_belief
from dynident.core.errors import InputError
from dynident.core.options import InPython, NotNegatives, Of, Options, broadcast_to_joints
from dynident.core.schema import Name, Number, make_choice_validator
from dynident.robot.model import Robot

CENTRES = ("nominal", "none")
"""Of priors: the robot file's inertials, or nothing."""
METRIC, WEIGHT = "pullback", 1.0
"""Of a prior that is not told otherwise."""
FROM_FILE: Literal["file"] = "file"
"""Of least radii of gyration: as the robot's file shows them."""
HELD_OUT = "held-out"
"""The weight of a prior that blocks of the log choose."""
HEAVIEST = 1e12
"""Largest weight of a prior: a link within a millionth of its size."""

Centre = Annotated[Name, make_choice_validator(CENTRES)]
MetricName = Annotated[Name, make_choice_validator(METRICS)]
Weight = Annotated[Number, Field(ge=0.0, le=HEAVIEST)] | Literal["held-out"]
ConsistencyName = Annotated[Name, make_choice_validator(CONSISTENCY)]


@dataclass(frozen=True)
class Knowledge(Options):
    """All that is known of a robot beside its log: options of constrained methods."""

    prior: Annotated[
        Centre | None,
        "centre of the prior: the robot file's inertials (`nominal`, where it has any) or `none`",
    ] = None
    metric: Annotated[
        MetricName | None,
        "metric of the links' distances from the centre; `pullback` by default",
    ] = None
    prior_weight: Annotated[
        Weight | None,
        "weight of the squared distance from the centre: 1, the default, trusts each link's "
        "inertia to within its own size; `held-out` chooses it by cross-validation",
    ] = None
    consistency: Annotated[ConsistencyName, "what consistency means"] = "pseudo-inertia"
    gyration: Annotated[
        NotNegatives | Literal["file"],
        "smallest radius of gyration of a link [m], one for all or one per link; `file` takes "
        "half of the value of the robot file, less where the log contradicts it; 0 requires only "
        "a positive definite pseudo-inertia",
        Of("consistency", "pseudo-inertia"),
    ] = FROM_FILE
    constraints: Annotated[
        tuple[Constraint, ...], InPython(), "more of what is known; `[[constraint]]` of a study"
    ] = ()

    @property
    def chosen_metric(self) -> str:
        """By name, the usual one where none is given."""
        return METRIC if self.metric is None else self.metric

    def gyrations(self, robot: Robot) -> tuple[Gyration, ...]:
        """The least radius of gyration of each link; none where consistency is another.

        Raises
        ------
        InputError
            For as many numbers as there are no links.
        """
        if self.consistency != "pseudo-inertia":
            return ()
        if isinstance(self.gyration, str):
            return list_gyrations(robot)
        return list_gyrations(
            robot, broadcast_to_joints(self.gyration, len(robot.links), "gyration", "links")
        )

    def state_gyrations(self, found: tuple[Gyration, ...]) -> Knowledge:
        """The same with least radii of gyration as a log has left them."""
        return replace(self, gyration=list_radii(found)) if found else self

    def of(self, robot: Robot) -> Prior:
        """The prior of a robot.

        Raises
        ------
        InputError
            For a file without inertials, and a metric or a weight of no prior.
        """
        metric = self.chosen_metric
        weight = WEIGHT if self.prior_weight is None else self.prior_weight
        if isinstance(weight, str):
            raise InputError(f"prior_weight {weight!r} needs a log to choose it; give a number")
        on_base = self.consistency in ON_BASE
        name = self.prior
        if name is None:
            name = "nominal" if robot.has_nominal and not on_base else "none"
        if name == "none":
            self._check_no_prior(robot)
            return NO_PRIOR
        if not robot.has_nominal:
            raise InputError(f"{robot.name}: prior 'nominal', but its file has no inertials")
        if on_base:
            raise InputError(
                f"consistency {self.consistency!r} is defined on base parameters, without "
                "a prior; leave the prior out"
            )
        return Prior(build_belief(robot.nominal, robot.links), metric, weight)

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
        raise InputError(f"{given[0]} belongs to a prior, but {reason}; leave it out")
