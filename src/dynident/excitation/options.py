"""What can be asked of `excite`: options that stand once, for studies and the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.makers import list_arguments
from dynident.core.options import (
    NotNegatives,
    Options,
    PerJoint,
    Positives,
    list_options,
    refuse_extreme,
    refuse_negative,
    refuse_nonpositive,
)
from dynident.core.schema import File, Flag, Name, Number, make_choice_validator
from dynident.excitation.criteria import CRITERIA
from dynident.excitation.obstacles import FARTHEST
from dynident.excitation.trajectories import TRAJECTORIES, TrajectoryFamily

Usual = AfterValidator(refuse_extreme)
Positive = Annotated[Number, Usual, AfterValidator(refuse_nonpositive)]
NotNegative = Annotated[Number, Usual, AfterValidator(refuse_negative)]
Share = Annotated[Number, Field(gt=0.0, le=1.0), Usual]
Count = Annotated[int, Field(strict=True, ge=1, le=10_000)]
Size = Annotated[int, Field(strict=True, ge=1, le=1000)]
Pair = tuple[Name, Name]


def read_truth(value: object) -> object:
    """Truth as the command line writes it; other values as they are."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


Height = Annotated[
    Flag | Annotated[Number, Field(ge=-FARTHEST, le=FARTHEST)], BeforeValidator(read_truth)
]


@dataclass(frozen=True)
class TrajectoryShape(Options):
    """Which family a trajectory is of."""

    trajectory: Annotated[
        Annotated[Name, make_choice_validator(TRAJECTORIES)],
        "periodic Fourier series, quintic B-splines, smoothed bang-bang moves, quintic "
        "polynomials through points, random motions of the hand along curves in space, sweeps at "
        "constant speeds, or poses that are held",
    ] = "fourier"
    duration: Annotated[
        Positive | None,
        "duration of one period, or of a motion that is executed once; 10, for sweeps 30, for "
        "rests 40 [s]",
    ] = None
    harmonics: Annotated[Size | None, "number of harmonics of a Fourier series; 5"] = None
    avoid: Annotated[
        Annotated[tuple[tuple[Number, Number], ...], Usual] | None,
        "bands around resonances that no harmonic enters [Hz]",
    ] = None
    ramp: Annotated[
        NotNegative | None,
        "quintic ramps from rest and to rest around the periods, instead of rest at the ends of "
        "each [s]",
    ] = None
    intervals: Annotated[Size | None, "number of intervals between the knots of a spline; 12"] = (
        None
    )
    knots: Annotated[
        Annotated[tuple[Number, ...], Usual] | None,
        "knots of a spline, instead of equidistant ones [s]",
    ] = None
    free_knots: Annotated[
        bool | None, "search the knots of a spline too: each start but the first draws its own"
    ] = None
    points: Annotated[
        Size | None,
        "number of points through which motions other than fourier and spline pass; 8, for "
        "sweeps 13, for rests 11",
    ] = None
    smoothing: Annotated[Share | None, "share of bang-bang's ramps of acceleration; 0.5"] = None

    def family(self) -> TrajectoryFamily:
        """The family."""
        maker = TRAJECTORIES[self.trajectory]
        known = list_arguments(maker)
        given = {
            option.name: getattr(self, option.name)
            for option in list_options(TrajectoryShape)
            if option.name != "trajectory" and getattr(self, option.name) is not None
        }
        if self.trajectory == "spline":
            given.pop("free_knots", None)
        for name in given:
            if name not in known:
                raise InputError(
                    f"trajectory {self.trajectory!r} has no {name!r}; it takes {', '.join(known)}"
                )
        found: TrajectoryFamily = maker(**given)
        return found

    def redrawn(self, rng: np.random.Generator) -> TrajectoryShape:
        """With other knots: equidistant ones, each moved by up to a third of their distance."""
        knots = self.family().parts[0].knots
        moved = knots[1:-1] + rng.uniform(-1.0, 1.0, len(knots) - 2) * np.diff(knots)[0] / 3.0
        return self.at_knots(moved)

    def at_knots(self, inner: Array) -> TrajectoryShape:
        """The spline with such knots between its ends."""
        return replace(self, knots=tuple(inner.tolist()), intervals=None)


@dataclass(frozen=True)
class TrajectoryLimits(Options):
    """What the trajectory has to keep."""

    speed: Annotated[Positives | None, "largest speeds, instead of the file's [rad/s or m/s]"] = (
        None
    )
    acceleration: Annotated[
        Positives | None, "largest accelerations; limited by the torques alone unless given"
    ] = None
    jerk: Annotated[Positives | None, "largest jerks; not limited unless given"] = None
    torque: Annotated[Positives | None, "largest torques, instead of the file's [Nm or N]"] = None
    base_wrench: Annotated[
        Annotated[tuple[Number, Number, Number, Number, Number, Number], Usual] | None,
        "three forces and three moments that the base, a table or a vehicle, can carry [N, Nm]",
    ] = None
    lower: Annotated[PerJoint | None, "lowest positions, instead of the file's [rad or m]"] = None
    upper: Annotated[PerJoint | None, "highest positions, instead of the file's [rad or m]"] = None
    margin: Annotated[
        Annotated[Number, Field(ge=0.0, lt=1.0)],
        "share of the torques kept in reserve for errors of the nominal model",
    ] = 0.2
    share: Annotated[Share, "share of the file's speeds and ranges that is used"] = 1.0
    clearance: Annotated[
        NotNegative, "least distance between links, and between links and obstacles [m]"
    ] = 0.01
    collision: Annotated[bool, "check distances of the robot's own links, drawn in its URDF"] = True
    floor: Annotated[
        Height,
        "height in the base frame of the plane under the robot, which no link passes [m]; true: "
        "where the base stands, false: there is none",
    ] = True
    ignore: Annotated[
        tuple[Pair, ...], "pairs of links, or of a link and an obstacle, that may touch"
    ] = ()
    srdf: Annotated[
        File | None, "SRDF whose <disable_collisions> pairs of links are not checked either"
    ] = None
    initial: Annotated[
        PerJoint | None, "position at which the trajectory begins; free unless given [rad or m]"
    ] = None
    load: Annotated[
        NotNegative, "mass at the last link, in the nominal model and what is predicted [kg]"
    ] = 0.0
    load_centre: Annotated[
        Annotated[tuple[Number, Number, Number], Usual],
        "its centre of mass, in the last link's joint frame [m]",
    ] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class AimOptions(Options):
    """What the trajectory is to be good for."""

    criterion: Annotated[
        Annotated[Name, make_choice_validator(CRITERIA)],
        f"what is minimised: {', '.join(f'{k} ({each.words})' for k, each in CRITERIA.items())}",
    ] = "d"
    wanted: Annotated[
        tuple[Name, ...] | None, "base parameters whose standard deviations the criterion std takes"
    ] = None
    sigma: Annotated[
        Positives | None,
        "standard deviation of the torques' noise per sample; 1 % of the largest torques unless "
        "given [Nm or N]",
    ] = None
    sensor: Annotated[
        Name | None,
        "link that a force/torque sensor holds, at the hand or in the chain, whose rows count too: "
        "of what is beyond it, as [robot] beyond identifies it",
    ] = None
    sensor_sigma: Annotated[
        tuple[Positive, Positive] | None,
        "standard deviations of the noise of the sensor's forces and of its moments, per sample "
        "[N, Nm]",
    ] = None
    rate: Annotated[Positive, "samples a second, of the trajectory and of the log [Hz]"] = 1000.0
    periods: Annotated[Count, "number of periods that are executed"] = 1
    drop_below: Annotated[
        NotNegatives, "rows will not be fitted whose joint is slower [rad/s or m/s]"
    ] = 0.0


@dataclass(frozen=True)
class SearchBudget(Options):
    """How long it is searched."""

    starts: Annotated[Count, "random motions from which the search begins"] = 4
    time: Annotated[
        Positive,
        "time after which no further step is started; a proof under way may then take half as "
        "long again, at least 5 s [s]",
    ] = 60.0
    iterations: Annotated[Count, "most iterations from each start"] = 300
    seed: Annotated[Annotated[int, Field(strict=True, ge=0)], "seed of the random starts"] = 0
    polish: Annotated[
        bool, "polish by CMA-ES afterwards, for criteria with kinks (needs the package cma)"
    ] = False


FAMILIES: tuple[type[Options], ...] = (TrajectoryShape, TrajectoryLimits, AimOptions, SearchBudget)
"""All that `excite` can be told."""
