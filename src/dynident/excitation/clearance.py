"""How far a robot is from itself and from what stands around it, with derivatives and bounds.

Meshes are replaced by their convex hulls, which are no smaller: what is far enough from
the hull is far enough from the mesh. Distances are those of coal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.core.makers import Vector
from dynident.core.text import nearest
from dynident.robot.geometry import (
    disabled_pairs,
    joint_placements,
    keep_geometry,
    locked_configuration,
    moving_joints,
    placed,
    shapes,
    urdf_model,
)
from dynident.robot.model import Robot

SHARPNESS = 400.0
"""Of the smooth minimum: of k pairs equally far it is log(k) / SHARPNESS too small [1/m]."""
BLIND = 15.0 / SHARPNESS
"""A pair that is so much further apart than the nearest has no share in the minimum [m]."""
POSES = 300
NEAR = 0.05
"""Pairs that stay further apart in all random poses do not guide the search [m]."""
ALWAYS = 0.9
"""Shapes that touch in a larger share of random poses do so by their drawing."""

Shape = Any
"""A geometry of coal, which has no types."""


def box(size: Vector, at: Vector, rpy: Vector = (0.0, 0.0, 0.0)) -> list[tuple[Shape, Any]]:
    """A box of three lengths [m] with its centre at a place of the base frame, turned [rad]."""
    import coal

    return [(coal.Box(*three("size", size)), placement(at, rpy))]


def sphere(radius: float, at: Vector) -> list[tuple[Shape, Any]]:
    """A ball [m]."""
    import coal

    return [(coal.Sphere(radius), placement(at))]


def plane(normal: Vector, offset: float = 0.0) -> list[tuple[Shape, Any]]:
    """All of space where ``normal . x < offset``: a floor, a wall [m]."""
    import coal

    up = three("normal", normal)
    length = float(np.linalg.norm(up))
    if length <= 0.0:
        raise InputError("obstacle: the normal of a plane is zero")
    return [(coal.Halfspace(up / length, offset / length), placement((0.0, 0.0, 0.0)))]


def room(lower: Vector, upper: Vector) -> list[tuple[Shape, Any]]:
    """All of space but a box between two corners [m]: what is in it stays in it."""
    low, high = three("lower", lower), three("upper", upper)
    if not np.all(low < high):
        raise InputError("obstacle: a room needs lower below upper")
    walls = []
    for k in range(3):
        e = np.eye(3)[k]
        walls += plane(e, float(low[k])) + plane(-e, float(-high[k]))
    return walls


def mesh(file: str, at: Vector = (0.0, 0.0, 0.0), rpy: Vector = (0.0, 0.0, 0.0)) -> list[Any]:
    """The convex hull of a mesh file."""
    import coal

    if not Path(file).is_file():
        raise InputError(f"obstacle: there is no mesh {file}")
    try:
        hull = coal.MeshLoader().load(str(file), np.ones(3))
    except (ValueError, RuntimeError) as error:
        raise InputError(f"obstacle: {file}: {str(error).splitlines()[0]}") from error
    return [(convex(hull), placement(at, rpy))]


OBSTACLES: dict[str, Callable[..., list[tuple[Shape, Any]]]] = {
    "box": box,
    "sphere": sphere,
    "plane": plane,
    "room": room,
    "mesh": mesh,
}
"""Makers of shapes with their placements in the base frame, by kind."""


@dataclass(frozen=True)
class Obstacle:
    """Something that stands around the robot.

    Attributes
    ----------
    name : str
    shapes : list of (geometry, placement)
        Made by one of `OBSTACLES`.
    links : tuple of str
        That keep clear of it; all that move by default.
    """

    name: str
    shapes: list[tuple[Shape, Any]]
    links: tuple[str, ...] = ()


def three(label: str, values: Any) -> Array:
    """Three finite numbers."""
    found = np.asarray(values, dtype=float)
    if found.shape != (3,) or not np.all(np.isfinite(found)):
        raise InputError(f"obstacle: {label} takes three numbers")
    return found


def placement(at: Any, rpy: Any = (0.0, 0.0, 0.0)) -> Any:
    """A frame at a place, turned by roll, pitch and yaw."""
    import pinocchio as pin

    return pin.SE3(pin.rpy.rpyToMatrix(three("rpy", rpy)), three("at", at))


def convex(shape: Shape) -> Shape:
    """The convex hull of a mesh; other shapes as they are."""
    if type(shape).__name__.startswith("BVHModel"):
        shape.buildConvexHull(True, "Qt")
        return shape.convex
    return shape


@dataclass(frozen=True)
class Pair:
    """Two shapes that have to keep apart.

    Attributes
    ----------
    names : (str, str)
        Of their links, or of an obstacle.
    reach : ndarray, shape (n,)
        Their distance changes by at most ``reach @ |dq|`` in a second.
    """

    names: tuple[str, str]
    reach: Array

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.names[0]} and {self.names[1]}"


@dataclass(frozen=True)
class Seen:
    """Distances of the near pairs as they were last measured, sample by sample.

    Attributes
    ----------
    q : ndarray, shape (samples, near, n)
        Where the robot was then.
    distance : ndarray, shape (samples, near)
    """

    q: Array
    distance: Array


@dataclass(frozen=True)
class Clearance:
    """Distances between the shapes of a robot and around it.

    Attributes
    ----------
    model, data, geometry, geometry_data : objects of Pinocchio
    places : tuple of (int, int)
        Index and length of each joint's configuration in the model's.
    columns : ndarray of int, shape (n,)
        Of the joints in the model's Jacobians.
    rest : ndarray
        The model's configuration with all joints at zero, the locked ones at their values.
    pairs : tuple of Pair
    touching : tuple of Pair
        Left out because they touch wherever the robot is.
    near : int
        How many of the pairs, the first, came near each other in random poses.
    """

    model: Any
    data: Any
    geometry: Any
    geometry_data: Any
    places: tuple[tuple[int, int], ...]
    columns: Integers
    rest: Array
    pairs: tuple[Pair, ...]
    touching: tuple[Pair, ...] = ()
    near: int = 0

    def unseen(self, samples: int) -> Seen:
        """Nothing measured yet."""
        n = len(self.columns)
        return Seen(np.zeros((samples, self.near, n)), np.full((samples, self.near), -np.inf))

    def configuration(self, q: Array) -> Array:
        """The model's configuration at positions of the joints, shape (n,)."""
        full = self.rest.copy()
        for value, (index, length) in zip(q, self.places, strict=True):
            full[index : index + length] = value if length == 1 else (np.cos(value), np.sin(value))
        return full

    def distances(self, q: Array) -> Array:
        """Distances of all pairs, negative where they overlap, shape (samples, pairs) [m]."""
        import pinocchio as pin

        found = np.empty((len(q), len(self.pairs)))
        for t, each in enumerate(q):
            pin.computeDistances(
                self.model, self.data, self.geometry, self.geometry_data, self.configuration(each)
            )
            found[t] = [result.min_distance for result in self.geometry_data.distanceResults]
        return found

    def smooth(self, q: Array, seen: Seen) -> tuple[Array, Array]:
        """A smooth minimum of the near pairs' distances, and its gradient.

        Never larger than the smallest of them:
        ``-log sum exp(-s d) / s`` (Kreisselmeier and Steinhauser 1979). Pairs that cannot
        have come near since they were measured are not measured again: their share is
        below rounding.

        Parameters
        ----------
        q : ndarray, shape (samples, n)
        seen : Seen
            What was measured of these samples before; brought up to date.

        Returns
        -------
        least : ndarray, shape (samples,)
        slope : ndarray, shape (samples, n)
        """
        import pinocchio as pin

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
        import pinocchio as pin

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
) -> Clearance | None:
    """What a robot has to keep clear of.

    Parameters
    ----------
    robot : Robot
        From a URDF with geometry.
    obstacles : sequence of Obstacle
    ignore : sequence of (str, str)
        Pairs of links, or of a link and an obstacle, that are not watched.
    self_collision : bool
    srdf : Path, optional
        Whose disabled pairs of links are not watched either; those of other robots' links, or
        without shapes, say nothing.

    Returns
    -------
    Clearance or None
        None where there is nothing to keep clear of.

    Raises
    ------
    InputError
        When the robot draws no shapes, or a link is not known, or the SRDF knows none.
    """
    import pinocchio as pin

    if not self_collision and not obstacles:
        return None
    advice = "so nothing is known of its shape; go without collisions (--no-collision)"
    path, root, model, carriers = urdf_model(robot, advice)
    links = {f.name for f in model.frames if f.type == pin.FrameType.BODY}
    try:
        keep_geometry(root, links, path)
        drawn = shapes(model, root, path)
    except InputError as error:
        raise InputError(f"{error}; or go without collisions (--no-collision)") from error
    if not drawn:
        raise InputError(f"{path}: no link has any geometry, {advice}")
    placements = joint_placements(model, robot)
    geometry = pin.GeometryModel()
    owner: list[int] = []  # index of the body, -1 the base
    names: list[str] = []
    moving = moving_joints(carriers)
    first = int(robot.floating)
    radius: list[float] = []
    for each in drawn:
        joint = carriers[each.parentJoint]
        body = moving.index(joint) - first if joint else -1
        offset = placements[joint].actInv(placements[each.parentJoint] * each.placement)
        points = placed(offset, each)
        each.geometry = convex(each.geometry)
        geometry.addGeometryObject(each)
        owner.append(body)
        names.append(model.frames[each.parentFrame].name)
        radius.append(float(np.max(np.linalg.norm(points, axis=1))))
    refuse_unknown(path, names, obstacles, ignore)
    ignored = {frozenset(pair) for pair in ignore}
    if srdf is not None:
        disabled = {frozenset(pair) for pair in disabled_pairs(srdf)}
        if not any(pair <= links for pair in disabled):
            raise InputError(f"{srdf}: none of the links that it names are those of {path}")
        ignored |= disabled
    parents = [joint.parent - 1 for joint in robot.joints]
    pairs: list[tuple[int, int, Pair]] = []
    if self_collision:
        for i in range(len(drawn)):
            for k in range(i):
                a, b = owner[i], owner[k]
                neighbours = a == b or (a >= 0 and parents[a] == b) or (b >= 0 and parents[b] == a)
                if not neighbours and frozenset((names[i], names[k])) not in ignored:
                    reach = reaches(robot, a, radius[i]), reaches(robot, b, radius[k])
                    pairs.append((k, i, Pair((names[k], names[i]), difference(*reach))))
    for obstacle in obstacles:
        for shape, where in obstacle.shapes:
            index = geometry.addGeometryObject(
                pin.GeometryObject(
                    f"{obstacle.name}_{len(geometry.geometryObjects)}", 0, where, shape
                )
            )
            for i in range(len(drawn)):
                chosen = names[i] in obstacle.links if obstacle.links else owner[i] >= 0
                if chosen and frozenset((names[i], obstacle.name)) not in ignored:
                    alone, _ = reaches(robot, owner[i], radius[i])
                    pairs.append((i, index, Pair((names[i], obstacle.name), alone)))
    rest = locked_configuration(model, robot)
    joints = [model.joints[j] for j in moving[first:]]
    places = tuple((joint.idx_q, joint.nq) for joint in joints)
    columns = np.array([joint.idx_v for joint in joints])

    def watching(
        chosen: list[tuple[int, int, Pair]], touching: tuple[Pair, ...], near: int
    ) -> Clearance:
        geometry.removeAllCollisionPairs()
        for i, k, _ in chosen:
            geometry.addCollisionPair(pin.CollisionPair(i, k))
        return Clearance(
            model,
            model.createData(),
            geometry,
            geometry.createData(),
            places,
            columns,
            rest,
            tuple(pair for _, _, pair in chosen),
            touching,
            near,
        )

    everything = watching(pairs, (), 0)
    low = np.array([max(joint.lower, -np.pi) for joint in robot.joints])
    high = np.array([min(joint.upper, np.pi) for joint in robot.joints])
    poses = np.random.default_rng(0).uniform(low, high, (POSES, robot.n))
    distances = everything.distances(poses)
    always = np.mean(distances <= 0.0, axis=0) > ALWAYS
    free = [pair for pair, each in zip(pairs, always, strict=True) if not each]
    stuck = tuple(pair[2] for pair, each in zip(pairs, always, strict=True) if each)
    # the nearest first: a search looks at those that came near, the proof at all
    order = np.argsort(distances[:, ~always].min(axis=0), kind="stable")
    near = int(np.sum(distances[:, ~always].min(axis=0) < NEAR))
    return watching([free[k] for k in order], stuck, near) if free else None


def refuse_unknown(
    path: Path,
    names: Sequence[str],
    obstacles: Sequence[Obstacle],
    ignore: Sequence[tuple[str, str]],
) -> None:
    """Refuse names that no link and no obstacle has.

    Raises
    ------
    InputError
    """
    known = [*dict.fromkeys(names), *(obstacle.name for obstacle in obstacles)]
    for name in (name for pair in ignore for name in pair):
        if name not in known:
            raise InputError(
                f"{path}: nothing is called {name!r} that could collide{nearest(name, known)}"
            )
    for obstacle in obstacles:
        for link in obstacle.links:
            if link not in names:
                raise InputError(
                    f"obstacle {obstacle.name}: no link with a shape is called {link!r}"
                    f"{nearest(link, names)}"
                )


def reaches(robot: Robot, body: int, radius: float) -> tuple[Array, frozenset[int]]:
    """How fast points of a body can be per joint's speed, and the joints that move it."""
    found = np.zeros(robot.n)
    path = []
    far = radius
    while body >= 0:
        joint = robot.joints[body]
        path.append(body)
        found[body] = far if joint.kind == "revolute" else 1.0
        far += float(np.linalg.norm(joint.translation))
        if joint.kind == "prismatic":
            far += float(np.max(np.abs(np.clip([joint.lower, joint.upper], -10.0, 10.0))))
        body = joint.parent - 1
    return found, frozenset(path)


def difference(a: tuple[Array, frozenset[int]], b: tuple[Array, frozenset[int]]) -> Array:
    """Reach of two bodies against each other: what moves both changes no distance."""
    found = a[0] + b[0]
    found[list(a[1] & b[1])] = 0.0
    return found
