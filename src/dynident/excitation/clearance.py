"""How far a robot is from itself and from what stands around it, with derivatives and bounds.

Meshes are replaced by their convex hulls, which are no smaller: what is far enough from
the hull is far enough from the mesh. Distances are those of coal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError, refuse_unknown
from dynident.excitation.obstacles import FLOOR, Obstacle
from dynident.excitation.reach import bound_reach, bound_relative_reach, bound_tilts
from dynident.robot.closure import Closure
from dynident.robot.drawing import RobotDrawing, build_drawing, find_unwatched_pairs
from dynident.robot.geometry import build_locked_configuration
from dynident.robot.model import Robot

SHARPNESS = 400.0
"""Of the smooth minimum: of k pairs equally far it is log(k) / SHARPNESS too small [1/m]."""
BLIND = 15.0 / SHARPNESS
"""A pair that is so much further apart than the nearest has no share in the minimum [m]."""
POSES = 300
NEAR = 0.05
"""Pairs that stay further apart in all random poses do not guide the search [m]."""
ALWAYS = 0.9
"""Own shapes that touch in a larger share of random poses do so by their drawing."""
SKIM = 0.01
"""What is in an obstacle by less in all random poses, a wheel on a floor, rests on it [m]."""
STILL = 1e-4
"""A distance that changes by less over the whole range does not depend on the motion [m]."""


@dataclass(frozen=True)
class Pair:
    """Two shapes that have to keep apart."""

    names: tuple[str, str]
    """Of their links, or of an obstacle."""
    reach: Array
    """Their distance changes by at most ``reach @ |dq|`` in a second, shape (n,)."""
    shapes: tuple[int, int]
    """Their indices in the geometry."""

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.names[0]} and {self.names[1]}"


@dataclass(frozen=True)
class NearDistances:
    """Distances of the near pairs as they were last measured, shape (samples, near).

    And where the robot was then, shape (samples, near, n).
    """

    q: Array
    distance: Array


@dataclass(frozen=True)
class Clearance:
    """Distances between the shapes of a robot and around it."""

    model: Any
    geometry: Any
    places: tuple[tuple[int, int], ...]
    """Index and length of each joint's configuration in the model's."""
    columns: Integers
    """Of the joints in the model's Jacobians, shape (n,)."""
    rest: Array
    """The model's configuration with all joints at zero, the locked ones at their values."""
    pairs: tuple[Pair, ...]
    touching: tuple[Pair, ...] = ()
    """Left out because they touch wherever the robot is."""
    near: int = 0
    """How many of the pairs, the first, came near each other in random poses; at least one."""
    data: Any = field(init=False)
    geometry_data: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", self.model.createData())
        object.__setattr__(self, "geometry_data", self.geometry.createData())

    def __reduce__(self) -> tuple[object, ...]:
        """Without Pinocchio's workspaces, which cannot go to other processes."""
        return Clearance, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    def unseen(self, samples: int) -> NearDistances:
        """Nothing measured yet."""
        n = len(self.columns)
        return NearDistances(
            np.zeros((samples, self.near, n)), np.full((samples, self.near), -np.inf)
        )

    def configuration(self, q: Array) -> Array:
        """The model's configuration at positions of the joints, shape (n,)."""
        full = self.rest.copy()
        for value, (index, length) in zip(q, self.places, strict=True):
            full[index : index + length] = value if length == 1 else (np.cos(value), np.sin(value))
        return full

    def distances(self, q: Array) -> Array:
        """Distances of all pairs, negative where they overlap, shape (samples, pairs) [m]."""
        found = np.empty((len(q), len(self.pairs)))
        for t, each in enumerate(q):
            pin.computeDistances(
                self.model, self.data, self.geometry, self.geometry_data, self.configuration(each)
            )
            found[t] = [result.min_distance for result in self.geometry_data.distanceResults]
        return found

    def smooth(self, q: Array, seen: NearDistances) -> tuple[Array, Array]:
        """A smooth minimum of the near pairs' distances, and its gradient.

        Never larger than the smallest of them:
        ``-log sum exp(-s d) / s`` (Kreisselmeier and Steinhauser 1979). Pairs that cannot
        have come near since they were measured are not measured again: their share is
        below rounding. What was measured of these samples, `seen`, is brought up to date.
        """
        least, slope = np.empty(len(q)), np.zeros((len(q), len(self.columns)))
        objects, pairs = self.geometry.geometryObjects, self.geometry.collisionPairs
        chosen = [pairs[k] for k in range(self.near)]
        joints = [(objects[p.first].parentJoint, objects[p.second].parentJoint) for p in chosen]
        reach = np.array([pair.reach for pair in self.pairs[: self.near]])
        results = self.geometry_data.distanceResults
        # no distance has changed by more since it was measured
        bound = seen.distance - np.sum(reach * np.abs(q[:, None] - seen.q), axis=2)
        order = np.argsort(bound, axis=1, kind="stable").tolist()
        for t, each in enumerate(q):
            full = self.configuration(each)
            pin.computeJointJacobians(self.model, self.data, full)
            pin.updateGeometryPlacements(self.model, self.data, self.geometry, self.geometry_data)
            fresh, d, nearest_one = [], [], np.inf
            for k in order[t]:
                if bound[t, k] >= nearest_one + BLIND:
                    break  # nor have those after it come near
                pin.computeDistance(self.geometry, self.geometry_data, k)
                fresh.append(k)
                d.append(results[k].min_distance)
                nearest_one = min(nearest_one, d[-1])
            seen.distance[t, fresh], seen.q[t, fresh] = d, each
            weight = np.exp(-SHARPNESS * (np.array(d) - nearest_one))
            total = weight.sum()
            least[t] = nearest_one - np.log(total) / SHARPNESS
            for k, share in zip(fresh, (weight / total).tolist(), strict=True):
                if share < 1e-4:
                    continue
                result = results[k]
                normal = np.asarray(result.normal)
                first, second = joints[k]
                if first:
                    slope[t] -= share * self._rate(first, result.getNearestPoint1(), normal)
                if second:
                    slope[t] += share * self._rate(second, result.getNearestPoint2(), normal)
        return least, slope

    def _rate(self, joint: int, point: Array, normal: Array) -> Array:
        """Speed of a joint's point along a normal per speed of the robot's joints, shape (n,)."""
        J = pin.getJointJacobian(self.model, self.data, joint, pin.ReferenceFrame.WORLD)
        x, y, z = point
        a, b, c = normal
        moment = (y * c - z * b, z * a - x * c, x * b - y * a)
        return np.asarray(np.array([a, b, c, *moment]) @ J[:, self.columns])


def build_clearance(
    robot: Robot,
    obstacles: Sequence[Obstacle] = (),
    ignore: Sequence[tuple[str, str]] = (),
    self_collision: bool = True,
    srdf: Path | None = None,
    least: float = 0.0,
    drawing: RobotDrawing | None = None,
) -> Clearance | None:
    """What a robot has to keep clear of; None where that is nothing.

    Parameters
    ----------
    ignore : sequence of (str, str)
        Pairs of links, or of a link and an obstacle, that are not watched.
    srdf : Path, optional
        Whose disabled pairs of links are not checked either; those of other robots' links, or
        without shapes, say nothing.
    least : float
        That will be asked for: a shape that is nearer to an obstacle whatever the motion is
        left out [m].
    """
    if not self_collision and not obstacles:
        return None
    drawing = build_drawing(robot) if drawing is None else drawing
    refuse_unknown_shapes(drawing.path, drawing.names, obstacles, ignore)
    ignored = {frozenset(pair) for pair in ignore}
    if srdf is not None:
        ignored |= find_unwatched_pairs(srdf, drawing)
    pairs = find_own_pairs(robot, drawing, ignored) if self_collision else []
    for obstacle in obstacles:
        pairs += add_obstacle(robot, drawing, obstacle, ignored)
    low = np.array([max(joint.lower, -np.pi) for joint in robot.joints])
    high = np.array([min(joint.upper, np.pi) for joint in robot.joints])
    rng = np.random.default_rng(0)
    poses = (
        Closure(robot).draw(POSES, rng) if robot.loops else rng.uniform(low, high, (POSES, robot.n))
    )
    distances = watch_pairs(robot, drawing, pairs).distances(poses)
    own = np.array([pair.shapes[1] < len(drawing.names) for pair in pairs], dtype=bool)
    reach = np.array([pair.reach for pair in pairs]).reshape(len(pairs), robot.n)
    resting = ~own & (reach @ (high - low) < STILL) & (distances.min(axis=0) < least + STILL)
    resting |= ~own & np.all((distances <= 0.0) & (distances > -SKIM), axis=0)
    inside = ~own & ~resting & np.all(distances <= 0.0, axis=0)
    if np.any(inside):
        raise InputError(describe_inside(*pairs[int(np.argmax(inside))].names))
    always = resting | (own & (np.mean(distances <= 0.0, axis=0) > ALWAYS))
    free = [pair for pair, each in zip(pairs, always, strict=True) if not each]
    stuck = tuple(pair for pair, each in zip(pairs, always, strict=True) if each)
    if not free:
        return watch_pairs(robot, drawing, (), stuck)
    # the nearest first: a search looks at those that came near, the proof at all
    nearest = distances[:, ~always].min(axis=0)
    order = np.argsort(nearest, kind="stable")
    near = max(1, int(np.sum(nearest < NEAR)))
    return watch_pairs(robot, drawing, [free[k] for k in order], stuck, near)


def describe_inside(link: str, obstacle: str) -> str:
    """Why an obstacle leaves a link no room, and what to do, in a line."""
    if obstacle == FLOOR:
        return (
            f"{FLOOR}: {link} is below it wherever the robot is; give the height of the floor in "
            "the base frame (floor), or floor = false"
        )
    return (
        f"obstacle {obstacle}: {link} is inside of it wherever the robot is; move it, or leave "
        f'the pair out (ignore = [["{link}", "{obstacle}"]])'
    )


def find_own_pairs(
    robot: Robot, drawing: RobotDrawing, ignored: Collection[frozenset[str]]
) -> list[Pair]:
    """Shapes of a robot that may meet each other: not those of neighbours."""
    names, owner = drawing.names, drawing.owner
    parents = [joint.parent - 1 for joint in robot.joints]
    meeting = {
        frozenset(b - 1 for b in loop.bodies) for loop in robot.loops if loop.rotations.any()
    }
    far = [bound_reach(robot, *each) for each in zip(owner, drawing.radius, strict=True)]
    found = []
    for i in range(len(names)):
        for k in range(i):
            a, b = owner[i], owner[k]
            neighbours = a == b or (a >= 0 and parents[a] == b) or (b >= 0 and parents[b] == a)
            neighbours = neighbours or frozenset((a, b)) in meeting
            if not neighbours and frozenset((names[i], names[k])) not in ignored:
                reach = bound_relative_reach(far[i], far[k])
                found.append(Pair((names[k], names[i]), reach, (k, i)))
    return found


def add_obstacle(
    robot: Robot, drawing: RobotDrawing, obstacle: Obstacle, ignored: Collection[frozenset[str]]
) -> list[Pair]:
    """Shapes of a robot that may meet an obstacle, which is added to the geometry."""
    names, geometry, found = drawing.names, drawing.geometry, []
    for shape, where in obstacle.shapes:
        normal = where.rotation @ shape.n if type(shape).__name__ == "Halfspace" else None
        called = f"{obstacle.name}_{len(geometry.geometryObjects)}"
        index = geometry.addGeometryObject(pin.GeometryObject(called, 0, where, shape))
        for i, (name, body) in enumerate(zip(names, drawing.owner, strict=True)):
            chosen = name in obstacle.links if obstacle.links else body >= 0
            if chosen and frozenset((name, obstacle.name)) not in ignored:
                alone, _ = bound_reach(robot, body, drawing.radius[i])
                if normal is not None:
                    alone = alone * bound_tilts(robot, body, normal)
                found.append(Pair((name, obstacle.name), alone, (i, index)))
    return found


def watch_pairs(
    robot: Robot,
    drawing: RobotDrawing,
    pairs: Sequence[Pair],
    touching: tuple[Pair, ...] = (),
    near: int = 0,
) -> Clearance:
    """The distances of some pairs."""
    model, geometry = drawing.model, drawing.geometry.copy()
    geometry.removeAllCollisionPairs()
    for each in pairs:
        geometry.addCollisionPair(pin.CollisionPair(*each.shapes))
    joints = [model.joints[j] for j in drawing.moving[int(robot.floating) :]]
    return Clearance(
        model,
        geometry,
        tuple((joint.idx_q, joint.nq) for joint in joints),
        np.array([joint.idx_v for joint in joints]),
        build_locked_configuration(model, robot),
        tuple(pairs),
        touching,
        near,
    )


def refuse_unknown_shapes(
    path: Path,
    names: Sequence[str],
    obstacles: Sequence[Obstacle],
    ignore: Sequence[tuple[str, str]],
) -> None:
    """Refuse names that no link and no obstacle has."""
    known = [*dict.fromkeys(names), *(obstacle.name for obstacle in obstacles)]
    for name in (name for pair in ignore for name in pair):
        refuse_unknown(name, known, f"{path}: nothing is called {name!r} that could collide")
    for obstacle in obstacles:
        for link in obstacle.links:
            refuse_unknown(
                link, names, f"obstacle {obstacle.name}: no link with a shape is called {link!r}"
            )
