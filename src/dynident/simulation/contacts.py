"""Feet on a compliant ground: where they touch it, and what it does to them.

The ground is a plane that gives way. At a depth ``d`` and a rate ``d'`` of it, its normal force
is that of Hunt and Crossley, without pull:

    N = k d^e (1 + c d'),   N >= 0,

which begins at zero however fast a foot comes down. Friction is Coulomb's, regularised:

    F = -mu N v / sqrt(v^2 + s^2)

of the sliding velocity v, always inside the cone: what sticks creeps, at a small share of s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers, freeze_array
from dynident.core.errors import InputError
from dynident.core.jit import inner
from dynident.core.makers import ReadAs, Row
from dynident.robot.contacts import ContactSpec, add_contacts
from dynident.robot.model import Contact, Robot

Direction = Annotated[Array, ReadAs(Row)]


@dataclass(frozen=True)
class Ground:
    """A plane that gives way.

    Attributes
    ----------
    stiffness : float
        k, of each point of contact [N/m^e].
    exponent : float
        e, 1 or more: 1 is a spring, 1.5 a sphere on a plane (Hertz).
    damping : float
        c, zero for an elastic ground [s/m].
    friction : float
        mu.
    slip : float
        s, the sliding speed at which friction is 0.7 of its bound [m/s].
    normal : ndarray, shape (3,)
        Out of the ground, in the world; its length does not matter.
    height : float
        Distance of the plane from the world's origin along the normal [m].

    Raises
    ------
    InputError
        For values that are not ground's.
    """

    stiffness: float = 2e4
    exponent: float = 1.0
    damping: float = 2.0
    friction: float = 0.8
    slip: float = 0.002
    normal: Direction = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    height: float = 0.0

    def __post_init__(self) -> None:
        for label in ("stiffness", "slip"):
            if not 0.0 < getattr(self, label) < np.inf:
                raise InputError(f"ground: {label} has to be above 0, got {getattr(self, label):g}")
        for label, least in (("exponent", 1.0), ("damping", 0.0), ("friction", 0.0)):
            if not least <= getattr(self, label) < np.inf:
                raise InputError(
                    f"ground: {label} has to be {least:g} or more, got {getattr(self, label):g}"
                )
        normal = np.asarray(self.normal, dtype=float)
        length = float(np.linalg.norm(normal)) if normal.shape == (3,) else 0.0
        if not (0.0 < length < np.inf and np.isfinite(self.height)):
            raise InputError("ground: normal needs 3 finite numbers, not all zero, and height one")
        object.__setattr__(self, "normal", freeze_array(normal / length))

    @property
    def law(self) -> GroundLaw:
        """The ground as the kernel reads it."""
        numbers = (self.stiffness, self.exponent, self.damping, self.friction, self.slip)
        return GroundLaw(np.array(self.normal), float(self.height), *map(float, numbers))


@dataclass(frozen=True)
class Foot:
    """A frame of the robot with points that may touch the ground.

    Attributes
    ----------
    name : str
        As the columns of a log have it: ``fx_<name>``.
    body : int
        Number of the joint that moves it; 0 is the base.
    rotation, translation : ndarray, shapes (3, 3) and (3,)
        Placement of the frame in the body's [m].
    points : ndarray, shape (points, 3)
        In the frame: its origin of a point foot, corners of a flat one [m].
    """

    name: str
    body: int
    rotation: Array
    translation: Array
    points: Array = field(default_factory=lambda: np.zeros((1, 3)))

    @property
    def components(self) -> int:
        """Of its wrench: 3 where it can only push at its frame's origin, or 6."""
        return 6 if np.any(self.points) else 3


def foot(robot: Robot, link: str, sole: tuple[float, float] | None = None) -> Foot:
    """A foot at the frame of one of the URDF's links.

    Parameters
    ----------
    robot : Robot
    link : str
    sole : tuple of float, optional
        Half length (along x) and half width (along y) of a flat foot, whose sole lies in the
        frame's xy plane and touches at its corners; a point foot without [m].

    Raises
    ------
    InputError
        When its base is fixed, when it has no URDF, or that no such link.
    """
    if not robot.floating:
        raise InputError(f"{robot.name}: its base is fixed; read it with floating = true")
    if sole is not None and not (len(sole) == 2 and min(sole) > 0.0):
        raise InputError(f"foot {link}: a sole needs its half length and half width, positive")
    placed = add_contacts(robot, [ContactSpec(name=link)]).contacts[0]
    return place_foot(placed, sole)


def place_foot(contact: Contact, sole: tuple[float, float] | None) -> Foot:
    """A foot where a contact is: a point, or the corners of a sole."""
    corners = [(0, 0)] if sole is None else [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    points = [[*(np.array(sole or (0.0, 0.0)) * corner), 0.0] for corner in corners]
    frame = contact.rotation, contact.translation
    return Foot(contact.name, contact.body, *frame, freeze_array(points))


class GroundLaw(NamedTuple):
    """A `Ground` as the kernel reads it."""

    normal: Array
    height: float
    stiffness: float
    exponent: float
    damping: float
    friction: float
    slip: float


class FootPoints(NamedTuple):
    """Feet as the kernel reads them."""

    body: Integers
    foot: Integers
    """`body`, `foot`: of the tree's bodies, and of the feet, shape (points,)."""
    place: Array
    """In the body's frame, shape (points, 3)."""
    carrier: Integers
    """Shape (feet,)."""
    rotation: Array
    translation: Array
    """`rotation`, `translation`: shapes (feet, 3, 3) and (feet, 3)."""


def build_points(robot: Robot, feet: Sequence[Foot]) -> FootPoints:
    """Sort feet into what the kernel reads."""
    names = [each.name for each in feet]
    for each in feet:
        if names.count(each.name) > 1:
            raise InputError(f"foot {each.name!r} is there twice")
        if not 0 <= each.body <= robot.n:
            raise InputError(f"foot {each.name!r} is on body {each.body} of {robot.n}")
    found = [(f, each, point) for f, each in enumerate(feet) for point in each.points]
    placed = [each.rotation @ point + each.translation for _, each, point in found]
    return FootPoints(
        body=np.array([each.body for _, each, _ in found], dtype=np.int64),
        foot=np.array([f for f, _, _ in found], dtype=np.int64),
        place=np.array(placed, dtype=float).reshape(-1, 3),
        carrier=np.array([each.body for each in feet], dtype=np.int64),
        rotation=np.array([each.rotation for each in feet], dtype=float).reshape(-1, 3, 3),
        translation=np.array([each.translation for each in feet], dtype=float).reshape(-1, 3),
    )


class GroundReaction(NamedTuple):
    """What the ground does at each point; its room is used anew at each state."""

    lever: Array
    force: Array
    """`lever`, `force`: from the base's origin, and the force on the robot, in world axes [m, N],
    shape (points, 3)."""
    stiff: Array
    damp: Array
    drag: Array
    """`stiff`, `damp`, `drag`: shape (points,). Slopes of the normal force by depth and its rate,
    and of friction by the sliding velocity across it; all zero where nothing touches."""
    slide: Array
    """``v / sqrt(v^2 + s^2)``, shape (points, 3)."""
    J: Array
    """Velocity of a point by those that move it, shape (longest path, 3)."""


def build_touch(points: int, longest: int) -> GroundReaction:
    """Room for that many points, on paths of that length."""
    wide, narrow = (points, 3), (points,)
    shapes = (wide, wide, narrow, narrow, narrow, wide, (longest, 3))
    return GroundReaction(*(np.zeros(shape) for shape in shapes))


@inner
def apply_ground_forces(tree, ground, points, q, w, c, tau):  # type: ignore[no-untyped-def]
    """Forces of the ground at one state, and their slopes, into c; taken from the torques."""
    path, lengths, R, p, S, V = tree.path, tree.path_length, w.R, w.p, w.S, w.V
    n0, n1, n2 = ground.normal[0], ground.normal[1], ground.normal[2]
    for i in range(len(points.body)):
        b = points.body[i]
        x, y, z = points.place[i, 0], points.place[i, 1], points.place[i, 2]
        r0 = p[b, 0] + R[b, 0, 0] * x + R[b, 0, 1] * y + R[b, 0, 2] * z
        r1 = p[b, 1] + R[b, 1, 0] * x + R[b, 1, 1] * y + R[b, 1, 2] * z
        r2 = p[b, 2] + R[b, 2, 0] * x + R[b, 2, 1] * y + R[b, 2, 2] * z
        c.lever[i, 0], c.lever[i, 1], c.lever[i, 2] = r0, r1, r2
        c.stiff[i], c.damp[i], c.drag[i] = 0.0, 0.0, 0.0
        c.force[i, 0], c.force[i, 1], c.force[i, 2] = 0.0, 0.0, 0.0
        depth = ground.height - (n0 * (r0 + q[0]) + n1 * (r1 + q[1]) + n2 * (r2 + q[2]))
        if not depth > 0.0:
            continue
        v0 = V[b, 0] + V[b, 4] * r2 - V[b, 5] * r1
        v1 = V[b, 1] + V[b, 5] * r0 - V[b, 3] * r2
        v2 = V[b, 2] + V[b, 3] * r1 - V[b, 4] * r0
        rate = -(n0 * v0 + n1 * v1 + n2 * v2)
        spring = ground.stiffness * depth**ground.exponent
        grip = 1.0 + ground.damping * rate
        load = spring * grip
        if not load > 0.0:
            continue
        # what is left without the part along the normal slides
        v0, v1, v2 = v0 + rate * n0, v1 + rate * n1, v2 + rate * n2
        rho = np.sqrt(v0 * v0 + v1 * v1 + v2 * v2 + ground.slip * ground.slip)
        drag = ground.friction * load / rho
        f0, f1, f2 = load * n0 - drag * v0, load * n1 - drag * v1, load * n2 - drag * v2
        c.force[i, 0], c.force[i, 1], c.force[i, 2] = f0, f1, f2
        c.stiff[i] = ground.exponent * spring / depth * grip
        c.damp[i], c.drag[i] = spring * ground.damping, drag
        c.slide[i, 0], c.slide[i, 1], c.slide[i, 2] = v0 / rho, v1 / rho, v2 / rho
        m0, m1, m2 = r1 * f2 - r2 * f1, r2 * f0 - r0 * f2, r0 * f1 - r1 * f0
        for j in range(lengths[b]):
            k = path[b, j]
            tau[k] -= (
                S[k, 0] * f0
                + S[k, 1] * f1
                + S[k, 2] * f2
                + S[k, 3] * m0
                + S[k, 4] * m1
                + S[k, 5] * m2
            )


@inner
def add_ground_slopes(tree, ground, points, w, c, K, D):  # type: ignore[no-untyped-def]
    """Add the slopes of the ground's forces to K and D, by positions and velocities.

    What is not symmetric is left out: how friction grows with the depth.
    """
    n0, n1, n2 = ground.normal[0], ground.normal[1], ground.normal[2]
    path, lengths, S, J = tree.path, tree.path_length, w.S, c.J
    for i in range(len(points.body)):
        if c.stiff[i] == 0.0:
            continue
        b = points.body[i]
        r0, r1, r2 = c.lever[i, 0], c.lever[i, 1], c.lever[i, 2]
        for j in range(lengths[b]):
            k = path[b, j]
            J[j, 0] = S[k, 0] + S[k, 4] * r2 - S[k, 5] * r1
            J[j, 1] = S[k, 1] + S[k, 5] * r0 - S[k, 3] * r2
            J[j, 2] = S[k, 2] + S[k, 3] * r1 - S[k, 4] * r0
        for j in range(lengths[b]):
            a = path[b, j]
            up = n0 * J[j, 0] + n1 * J[j, 1] + n2 * J[j, 2]
            along = c.slide[i, 0] * J[j, 0] + c.slide[i, 1] * J[j, 1] + c.slide[i, 2] * J[j, 2]
            for m in range(lengths[b]):
                k = path[b, m]
                rise = up * (n0 * J[m, 0] + n1 * J[m, 1] + n2 * J[m, 2])
                slid = along * (
                    c.slide[i, 0] * J[m, 0] + c.slide[i, 1] * J[m, 1] + c.slide[i, 2] * J[m, 2]
                )
                both = J[j, 0] * J[m, 0] + J[j, 1] * J[m, 1] + J[j, 2] * J[m, 2]
                K[a, k] += c.stiff[i] * rise
                # of friction: drag (1 - n n^T - s s^T), s the velocity over its root with the slip
                D[a, k] += c.damp[i] * rise + c.drag[i] * (both - rise - slid)


@inner
def sum_foot_wrenches(points, w, c, wrench, touching):  # type: ignore[no-untyped-def]
    """Each foot's wrench, summed over its points, in its frame about the frame's origin."""
    R, p = w.R, w.p
    for f in range(len(points.carrier)):
        touching[f] = False
        for i in range(6):
            wrench[f, i] = 0.0
    for i in range(len(points.body)):
        if c.stiff[i] == 0.0:
            continue
        f = points.foot[i]
        b = points.carrier[f]
        touching[f] = True
        x, y, z = points.translation[f, 0], points.translation[f, 1], points.translation[f, 2]
        r0 = c.lever[i, 0] - p[b, 0] - R[b, 0, 0] * x - R[b, 0, 1] * y - R[b, 0, 2] * z
        r1 = c.lever[i, 1] - p[b, 1] - R[b, 1, 0] * x - R[b, 1, 1] * y - R[b, 1, 2] * z
        r2 = c.lever[i, 2] - p[b, 2] - R[b, 2, 0] * x - R[b, 2, 1] * y - R[b, 2, 2] * z
        f0, f1, f2 = c.force[i, 0], c.force[i, 1], c.force[i, 2]
        m0, m1, m2 = r1 * f2 - r2 * f1, r2 * f0 - r0 * f2, r0 * f1 - r1 * f0
        for a in range(3):
            # axis a of the foot's frame, in the world
            x, y, z = points.rotation[f, 0, a], points.rotation[f, 1, a], points.rotation[f, 2, a]
            e0 = R[b, 0, 0] * x + R[b, 0, 1] * y + R[b, 0, 2] * z
            e1 = R[b, 1, 0] * x + R[b, 1, 1] * y + R[b, 1, 2] * z
            e2 = R[b, 2, 0] * x + R[b, 2, 1] * y + R[b, 2, 2] * z
            wrench[f, a] += e0 * f0 + e1 * f1 + e2 * f2
            wrench[f, 3 + a] += e0 * m0 + e1 * m1 + e2 * m2
