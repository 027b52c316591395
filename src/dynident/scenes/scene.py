"""What is drawn of a robot: triangles of its bodies and of what stands around it, and its poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.excitation.clearance import Clearance
from dynident.excitation.obstacles import Obstacle
from dynident.robot.geometry import load_urdf_model, surround_shape
from dynident.robot.model import HUGE, Robot
from dynident.robot.rotations import convert_quaternions

TRIANGLES = 24_000
"""Of a whole robot, about, by default."""
FEWEST = 400
"""To which no mesh is thinned."""
CELLS = (160, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4)
"""Into which the longest side of a mesh is divided to thin it, one after another."""
CREASE = np.cos(np.radians(35.0))
"""Faces that meet at a sharper angle are not shaded into each other."""
SIDES = 24
"""Of what is drawn for a circle."""
STEADY = 0.1
"""Of its least value: a pair whose distance changes by less is always about as near."""
FARTHEST = 4.0
"""Times the extent of a scene: no wall is drawn farther out to where it meets another."""
SPACINGS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Between the lines of a grid [m]."""

Shape = Any
"""A geometry of coal, which has no types."""


@dataclass(frozen=True)
class ScenePiece:
    """Triangles that move with one body."""

    name: str
    """Of the link or of the obstacle."""
    kind: Literal["link", "obstacle", "wall"]
    """A wall is a part of a plane."""
    body: int
    """Index of the body; -1 is the base frame."""
    points: Array
    """In the body's joint frame [m], shape (points, 3)."""
    faces: Integers
    """Corners of the triangles, counter-clockwise seen from outside where the file has them so,
    shape (faces, 3)."""
    lines: Array = field(default_factory=lambda: np.zeros((0, 2, 3)))
    """Drawn on a wall [m], shape (lines, 2, 3)."""


@dataclass(frozen=True)
class DrawnScene:
    """All that is drawn, at rest."""

    pieces: tuple[ScenePiece, ...]
    hands: tuple[tuple[int, Array], ...]
    """Bodies that carry no other, and a point of each in its joint frame: the middle of its
    drawing, or the origin where it has none [m]."""
    spacing: float
    """Between the lines of grids [m]."""
    extent: float
    """Half the side of planes, about as far as the robot reaches [m]."""
    said: tuple[str, ...]
    """What the drawing is not."""


def build_scene(
    robot: Robot, obstacles: Sequence[Obstacle] = (), most: int = TRIANGLES
) -> DrawnScene:
    """Triangles of a robot and of what stands around it.

    Links are drawn by their collision geometry, or by the visual one where they have no other. A
    robot without geometry (no URDF, or one whose meshes are missing) is a stick figure, and
    `DrawnScene.said` says why. `most`: triangles of the whole robot, about: its meshes share them,
    and those that have more are thinned.
    """
    extent = max(1.2 * robot.reach, 0.1)
    spacing = max(each for each in SPACINGS if each <= max(extent / 4.0, SPACINGS[0]))
    said: tuple[str, ...] = ()
    try:
        links = draw_links(robot, most)
    except InputError as error:
        links = []
        reason = str(error)
    else:
        reason = f"{robot.name}: no link has any geometry"
    if not links:
        links = draw_stick_figure(robot)
        said = (f"A stick figure: lines between the joints, their axes as drums. {reason}",)
    around_it = [piece for each in obstacles for piece in draw_obstacle(each, extent, spacing)]
    return DrawnScene((*links, *around_it), find_hands(robot, links), spacing, extent, said)


def find_hands(robot: Robot, links: Sequence[ScenePiece]) -> tuple[tuple[int, Array], ...]:
    """Bodies that carry no other, and the middles of their drawings."""
    carrying = {joint.parent - 1 for joint in robot.joints}
    found = []
    for body in range(robot.n):
        if body not in carrying:
            own = [piece.points for piece in links if piece.body == body]
            points = np.vstack(own) if own else np.zeros((1, 3))
            found.append((body, 0.5 * (points.min(axis=0) + points.max(axis=0))))
    return tuple(found)


# ------------------------------------------------------------------------------ links


def draw_links(robot: Robot, most: int) -> list[ScenePiece]:
    """Triangles of a URDF's links, in their bodies' joint frames."""
    urdf = load_urdf_model(robot, "so its shape is not known")
    drawn = urdf.read_shapes(urdf.links)
    share = max(FEWEST, most // max(1, len(drawn)))
    found = []
    for each in drawn:
        joint, offset = urdf.carriers[each.parentJoint], urdf.place(each)
        points, faces = triangulate_shape(each.geometry, each.name, share)
        if not np.all(np.abs(points) < HUGE):
            raise InputError(
                f"{urdf.path}: the geometry {each.name} has corners that are not numbers"
            )
        if len(faces):
            points = points @ offset.rotation.T + offset.translation
            name = urdf.model.frames[each.parentFrame].name
            body = urdf.moving.index(joint) if joint else -1
            found.append(ScenePiece(name, "link", body, points, faces))
    return found


def draw_stick_figure(robot: Robot) -> list[ScenePiece]:
    """Lines between the joints of a robot, drums around their axes and a bar for a hand."""
    radius = 0.025 * max(robot.reach, 0.1)
    names = (robot.base_link, *robot.links)
    found = []

    def add(body: int, rings: Array) -> None:
        corners, faces = triangulate_rings(rings)
        found.append(ScenePiece(names[body + 1], "link", body, corners, faces))

    carrying = {joint.parent - 1 for joint in robot.joints}
    origin = np.zeros(3)
    for k, joint in enumerate(robot.joints):
        if np.linalg.norm(joint.translation) > radius:
            add(joint.parent - 1, build_capsule_rings(origin, joint.translation, radius))
        up = joint.axis
        add(k, build_cylinder_rings(-1.6 * radius * up, 1.6 * radius * up, 1.5 * radius))
        if k not in carrying:
            tip = 4.5 * radius * up
            across = 2.2 * radius * find_perpendicular(up)
            add(k, build_capsule_rings(origin, tip, 0.7 * radius))
            add(k, build_capsule_rings(tip - across, tip + across, 0.5 * radius))
    return found


def find_perpendicular(axis: Array) -> Array:
    """A unit vector at right angles to another, along an axis of the frame where it can be."""
    e = np.eye(3)[int(np.argmin(np.abs(axis)))]
    found = e - (e @ axis) * axis
    return np.asarray(found / np.linalg.norm(found))


def build_capsule_rings(a: Array, b: Array, radius: float) -> Array:
    """Circles around a capsule between two places, shape (rings, SIDES, 3)."""
    circle, up = sample_circle_about(b - a)
    latitude = np.deg2rad(np.arange(-90.0, 1.0, 15.0))[:, None, None]
    around, along = radius * np.cos(latitude) * circle, radius * np.sin(latitude) * up
    return np.concatenate([a + around + along, (b + around - along)[::-1]])


def build_cylinder_rings(a: Array, b: Array, radius: float) -> Array:
    """The two circles at the ends of a cylinder, shape (2, SIDES, 3)."""
    circle, _ = sample_circle_about(b - a)
    return np.stack([radius * circle + a, radius * circle + b])


def sample_circle_about(axis: Array) -> tuple[Array, Array]:
    """A circle of radius 1 about an axis, counter-clockwise, shape (SIDES, 3), and its direction.

    About z where the axis has no length.
    """
    size = float(np.linalg.norm(axis))
    up = axis / size if size > 0.0 else np.array([0.0, 0.0, 1.0])
    u = find_perpendicular(up)
    angle = 2.0 * np.pi / SIDES * np.arange(SIDES)
    return np.outer(np.cos(angle), u) + np.outer(np.sin(angle), np.cross(up, u)), up


# ------------------------------------------------------------------------------ shapes


def triangulate_shape(shape: Shape, name: str, most: int) -> tuple[Array, Integers]:
    """Triangles of a shape, in its own frame.

    Parameters
    ----------
    shape : geometry of coal
    name : str
        For messages.
    most : int
        Triangles, about; a mesh that has more is thinned.

    Returns
    -------
    points : ndarray, shape (points, 3)
    faces : ndarray of int, shape (faces, 3)
        None of a shape without a volume.
    """
    kind = type(shape).__name__
    if kind.startswith("BVHModel"):
        corners = [shape.tri_indices(k) for k in range(shape.num_tris)]
        faces = np.array([[c[0], c[1], c[2]] for c in corners], dtype=int).reshape(-1, 3)
        return thin_mesh(np.array(shape.vertices()), faces, most)
    if kind == "Cylinder":
        tip = np.array([0.0, 0.0, shape.halfLength])
        return triangulate_rings(build_cylinder_rings(-tip, tip, shape.radius))
    if kind in ("Sphere", "Capsule"):
        tip = np.array([0.0, 0.0, shape.halfLength if kind == "Capsule" else 0.0])
        return triangulate_rings(build_capsule_rings(-tip, tip, shape.radius))
    return triangulate_hull(surround_shape(shape, name))


NO_AREA = 1e-9
"""Of a triangle, as a share of the largest."""


def triangulate_rings(rings: Array) -> tuple[Array, Integers]:
    """Triangles of a surface around circles, one above another; counter-clockwise from outside.

    None where a circle is a point, or the one below.
    """
    count, sides, _ = rings.shape
    here = np.arange(sides)
    after = (here + 1) % sides
    low = sides * np.arange(count - 1)[:, None]
    a, b, c, d = low + here, low + after, low + sides + after, low + sides + here
    walls = np.stack([np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)])
    fan = np.column_stack([0 * here[2:], here[1:-1], here[2:]])
    ends = [fan[:, ::-1], fan + sides * (count - 1)]
    points, faces = rings.reshape(-1, 3), np.vstack([walls.reshape(-1, 3), *ends])
    p, q, r = (points[faces[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(q - p, r - p), axis=1)
    return points, faces[area > NO_AREA * area.max()]


def triangulate_hull(points: Array) -> tuple[Array, Integers]:
    """Triangles of a convex hull, counter-clockwise from outside; none of flat points."""
    from scipy.spatial import ConvexHull, QhullError

    if not np.all(np.isfinite(points)):
        return points, np.zeros((0, 3), dtype=int)
    try:
        found = ConvexHull(points)
    except QhullError:  # it has no volume, and nothing of it would be seen
        return points, np.zeros((0, 3), dtype=int)
    faces = found.simplices.astype(int)
    a, b, c = (points[faces[:, k]] for k in range(3))
    inward = np.sum(np.cross(b - a, c - a) * found.equations[:, :3], axis=1) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    kept, inverse = np.unique(faces, return_inverse=True)
    return points[kept], inverse.reshape(faces.shape)


def thin_mesh(points: Array, faces: Integers, most: int) -> tuple[Array, Integers]:
    """A mesh with its equal corners joined and, where it has too many triangles, near ones too.

    Corners in one cell of a grid become their mean, coarser grids being tried until the
    triangles are few enough (Rossignac and Borrel 1993).
    """
    extent = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    if not 0.0 < extent < HUGE:
        return points, np.zeros((0, 3), dtype=int)
    for cells in (100_000, *CELLS):
        corners, own = cluster_corners(points, faces, extent / cells)
        if len(own) <= most:
            break
    return corners, own


def cluster_corners(points: Array, faces: Integers, cell: float) -> tuple[Array, Integers]:
    """Corners of one cell as their mean, without the triangles that vanish or come twice."""
    keys = np.floor((points - points.min(axis=0)) / cell + 0.5).astype(np.int64)
    _, inverse, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.ravel()
    corners = np.zeros((len(counts), 3))
    np.add.at(corners, inverse, points)
    corners /= counts[:, None]
    own = inverse[faces]
    a, b, c = own.T
    own = own[(a != b) & (b != c) & (c != a)]
    _, first = np.unique(np.sort(own, axis=1), axis=0, return_index=True)
    own = own[np.sort(first)]
    kept, inverse = np.unique(own, return_inverse=True)
    return corners[kept], inverse.reshape(own.shape)


def compute_corner_normals(points: Array, faces: Integers) -> Array:
    """Normals at the corners of triangles: of the faces around that turn by less than `CREASE`.

    Returns
    -------
    ndarray, shape (faces, 3, 3)
        Unit vectors: means over faces (Gouraud 1971), here weighted by the faces' areas.
    """
    a, b, c = (points[faces[:, k]] for k in range(3))
    area = np.cross(b - a, c - a)
    normal = area / np.maximum(np.linalg.norm(area, axis=1, keepdims=True), 1e-300)
    # all faces around each corner, corner after corner
    corner = faces.ravel()
    order = np.argsort(corner, kind="stable")
    count = np.bincount(corner, minlength=len(points))
    start = np.cumsum(count) - count
    mine = np.repeat(np.arange(len(corner)), count[corner])
    step = np.arange(len(mine)) - np.repeat(np.cumsum(count[corner]) - count[corner], count[corner])
    other = order[start[corner[mine]] + step] // 3
    smooth = np.sum(normal[mine // 3] * normal[other], axis=1) > CREASE
    found = np.zeros((len(corner), 3))
    np.add.at(found, mine[smooth], area[other[smooth]])
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)
    return found.reshape(-1, 3, 3)


# ------------------------------------------------------------------------------ obstacles


def draw_obstacle(obstacle: Obstacle, extent: float, spacing: float) -> list[ScenePiece]:
    """Triangles of an obstacle, its planes as walls cut off where another one begins."""
    found = []
    planes = [
        place_halfspace(shape, where)
        for shape, where in obstacle.shapes
        if type(shape).__name__ == "Halfspace"
    ]
    if len(planes) > 1:  # so that walls of a room meet
        extent = max(extent, *(min(abs(offset), FARTHEST * extent) for _, offset in planes))
    for k, (normal, offset) in enumerate(planes):
        others = [other for j, other in enumerate(planes) if j != k]
        corners, lines = build_wall(normal, offset, others, extent, spacing)
        if len(corners) >= 3:
            fan = [(0, i, i + 1) for i in range(1, len(corners) - 1)]
            found.append(
                ScenePiece(obstacle.name, "wall", -1, corners, np.array(fan, dtype=int), lines)
            )
    for shape, where in obstacle.shapes:
        if type(shape).__name__ != "Halfspace":
            points, faces = triangulate_shape(shape, obstacle.name, FEWEST)
            points = points @ where.rotation.T + where.translation
            found.append(ScenePiece(obstacle.name, "obstacle", -1, points, faces))
    return found


def place_halfspace(halfspace: Shape, where: Any) -> tuple[Array, float]:
    """Normal and offset of a half space ``normal . x < offset`` in the base frame."""
    normal = np.asarray(where.rotation @ np.asarray(halfspace.n))
    return normal, float(halfspace.d + normal @ where.translation)


def build_wall(
    normal: Array,
    offset: float,
    others: Sequence[tuple[Array, float]],
    extent: float,
    spacing: float,
) -> tuple[Array, Array]:
    """The part of a plane around the base that no other half space covers.

    Returns `corners`, shape (corners, 3): of a convex polygon, counter-clockwise seen from where
    the normal points. `lines`, shape (lines, 2, 3): its edge and a grid.
    """
    u = find_perpendicular(normal)
    v = np.cross(normal, u)
    middle = offset * normal
    count = int(np.ceil(extent / spacing))
    side = count * spacing
    square = [middle + side * (a * u + b * v) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    polygon = square
    for other, least in others:
        polygon = clip_polygon(polygon, other, least)
    if len(polygon) < 3:
        return np.zeros((0, 3)), np.zeros((0, 2, 3))
    lines = [(a, b) for a, b in zip(polygon, [*polygon[1:], polygon[0]], strict=True)]
    for along, across in ((u, v), (v, u)):
        for k in range(1 - count, count):
            ends = [middle + k * spacing * across + s * side * along for s in (-1.0, 1.0)]
            for other, least in others:
                ends = clip_polygon(ends, other, least)
            if len(ends) >= 2:
                lines.append((ends[0], ends[1]))
    return np.array(polygon), np.array(lines)


def clip_polygon(polygon: Sequence[Array], normal: Array, least: float) -> list[Array]:
    """What is left of a convex polygon where ``normal . x >= least`` (Sutherland and Hodgman 1974).

    Two points are a segment.
    """
    found: list[Array] = []
    height = [float(normal @ p) - least for p in polygon]
    for k, p in enumerate(polygon):
        q, h, g = polygon[k - 1], height[k], height[k - 1]
        if (h < 0.0) != (g < 0.0) and (len(polygon) > 2 or k > 0):
            found.append(q + (g / (g - h)) * (p - q))
        if h >= 0.0:
            found.append(p)
    return found


# ------------------------------------------------------------------------------ poses


def place_bodies(robot: Robot, q: Array) -> Array:
    """Placements of the bodies' joint frames in the base frame, or the world of a floating one.

    Parameters
    ----------
    q : ndarray, shape (samples, n), of a floating robot (samples, 7 + n)
        Configurations [rad or m].

    Returns
    -------
    ndarray, shape (samples, n or n + 1, 3, 4)
        Rotation and translation [m], side by side; of a floating base after the links.
    """
    samples, joints = len(q), q[:, q.shape[1] - robot.n :]
    turns = [np.broadcast_to(np.eye(3), (samples, 3, 3))]
    origins = [np.zeros((samples, 3))]
    if robot.floating:
        turns, origins = [convert_quaternions(q[:, 3:7])], [q[:, :3]]
    for joint, own in zip(robot.joints, joints.T, strict=True):
        turn = turns[joint.parent] @ joint.rotation
        origin = origins[joint.parent] + turns[joint.parent] @ joint.translation
        if joint.kind == "prismatic":
            origin = origin + (turn @ joint.axis) * own[:, None]
        else:
            across = np.cross(np.eye(3), joint.axis)  # times a vector: the axis x the vector
            sin, cos = np.sin(own)[:, None, None], np.cos(own)[:, None, None]
            turn = turn @ (np.eye(3) + sin * across + (1.0 - cos) * across @ across)
        turns.append(turn)
        origins.append(origin)
    placed = np.concatenate([turns, np.array(origins)[..., None]], axis=3)
    order = (*range(1, robot.n + 1), *([0] if robot.floating else []))
    return np.moveaxis(placed[list(order)], 0, 1)


@dataclass(frozen=True)
class NearestShapes:
    """The two shapes that are nearest to each other, sample by sample."""

    names: tuple[tuple[str, str], ...]
    """Pairs that are the nearest at some sample."""
    pair: Integers
    """Which of them, shape (samples,)."""
    distance: Array
    """Shape (samples,). [m]"""
    ends: Array
    """Their nearest points, in the base frame [m], shape (samples, 2, 3)."""
    steady: tuple[tuple[tuple[str, str], float, float], ...]
    """Pairs left out of all this because their distance hardly changes, which are sometimes nearer:
    with their least and largest distance [m], the nearest first."""


def find_nearest_pairs(clearance: Clearance, q: Array) -> NearestShapes:
    """The nearest of the pairs that are checked, at each of some positions.

    Pairs whose distance hardly changes, links with a short one between them, would hide what
    comes near and goes: they are named once, unless there are no others.

    Parameters
    ----------
    q : ndarray, shape (samples, n)
        [rad or m]
    """
    d = clearance.distances(q)
    low, high = d.min(axis=0), d.max(axis=0)
    still = high - low < STEADY * np.abs(low)
    if np.all(still):
        still[:] = False
    which = np.argmin(np.where(still, np.inf, d), axis=1)
    distance = np.take_along_axis(d, which[:, None], axis=1)[:, 0]
    ends = np.empty((len(q), 2, 3))
    model, data = clearance.model, clearance.data
    geometry, found = clearance.geometry, clearance.geometry_data
    for t, k in enumerate(which.tolist()):
        pin.updateGeometryPlacements(model, data, geometry, found, clearance.configuration(q[t]))
        pin.computeDistance(geometry, found, k)
        result = found.distanceResults[k]
        ends[t] = result.getNearestPoint1(), result.getNearestPoint2()
    names = [clearance.pairs[k].names for k in which]
    known = tuple(dict.fromkeys(names))
    nearer = still & np.any(d < distance[:, None], axis=0)
    return NearestShapes(
        known,
        np.array([known.index(each) for each in names]),
        distance,
        ends,
        tuple(
            (clearance.pairs[k].names, float(low[k]), float(high[k]))
            for k in np.argsort(low, kind="stable")
            if nearer[k]
        ),
    )
