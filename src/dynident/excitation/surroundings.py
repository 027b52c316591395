"""What stands around a robot, the floor among it, and how near to that it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynident.core.errors import InputError
from dynident.excitation.clearance import Clearance, add_obstacle, build_clearance, watch_pairs
from dynident.excitation.obstacles import FLOOR, Obstacle, build_floor
from dynident.excitation.options import TrajectoryLimits
from dynident.excitation.trajectories import Trajectory
from dynident.robot.drawing import RobotDrawing, build_drawing
from dynident.robot.model import Robot


@dataclass(frozen=True)
class LowestPoint:
    """The lowest point that moves: how high in the base frame [m], of which link, and when [s]."""

    height: float
    link: str
    time: float


def find_lowest_point(
    robot: Robot, drawing: RobotDrawing, trajectory: Trajectory, step: float
) -> LowestPoint | None:
    """The lowest point that moves, on a grid; None where nothing moves that is drawn."""
    whole = replace(drawing, geometry=drawing.geometry.copy())
    pairs = add_obstacle(robot, whole, build_floor(0.0), ())
    if not pairs:
        return None
    times = trajectory.family.grid(step)
    heights = watch_pairs(robot, whole, pairs).distances(trajectory.at(times))
    sample, k = np.unravel_index(int(np.argmin(heights)), heights.shape)
    return LowestPoint(float(heights[sample, k]), pairs[k].names[0], float(times[sample]))


@dataclass(frozen=True)
class Surroundings:
    """What stands around a robot, and its shapes."""

    obstacles: tuple[Obstacle, ...] = ()
    drawing: RobotDrawing | None = None
    """None where nothing is known of the robot's shape."""
    clearance: Clearance | None = None
    """None where it keeps clear of nothing."""


def choose_surroundings(
    robot: Robot, bounds: TrajectoryLimits, obstacles: Sequence[Obstacle], warnings: list[str]
) -> Surroundings:
    """What stands around the robot, what it keeps clear of, and what has to be said of it.

    The plane on which the base stands is an obstacle, unless there is to be none: z = 0 of the
    base frame, or the lowest point of what is fixed to the base. One that is called so is it.
    """
    srdf = None if bounds.srdf is None else Path(bounds.srdf)
    if srdf is not None and not bounds.collision:
        raise InputError(f"{srdf}: excludes pairs of links, but collision is false")
    own = any(obstacle.name == FLOOR for obstacle in obstacles)
    if own and not isinstance(bounds.floor, bool):
        raise InputError(f"floor is {bounds.floor:g}, and an obstacle is called {FLOOR}: give one")
    try:
        drawing = build_drawing(robot)
    except InputError as error:
        if bounds.collision or obstacles or not isinstance(bounds.floor, bool):
            raise
        if bounds.floor:
            warnings.append(f"the floor is not checked: {str(error).partition('; ')[0]}")
        return Surroundings()
    around = tuple(obstacles)
    if bounds.floor is not False and not own:
        around = (*around, build_floor(drawing.bottom if bounds.floor is True else bounds.floor))
    clearance = build_clearance(
        robot, around, bounds.ignore, bounds.collision, srdf, bounds.clearance, drawing
    )
    if clearance is not None and clearance.touching:
        pairs = ", ".join(pair.name for pair in clearance.touching)
        warnings.append(f"these touch wherever the robot is, and are not checked: {pairs}")
    watched = clearance is not None and len(clearance.pairs) > 0
    return Surroundings(around, drawing, clearance if watched else None)
