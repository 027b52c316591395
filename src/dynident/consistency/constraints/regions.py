"""Where links have their mass: regions of space as constraints.

With J the pseudo-inertia of a link, a quadratic function of a point,
``xt^T W xt`` with ``xt = (x, 1)``, has the moment ``tr(J W)`` over its mass. A function
that is never negative in the region has a moment that is not negative either, which is
linear in the parameters. Such conditions are necessary: they never refuse a body whose
mass is inside. With J positive semidefinite they are also sufficient for an ellipsoid, and
for a tetrahedron (a 4x4 matrix that is semidefinite and has no negative entry is a sum of
squares of such vectors); other polytopes admit some bodies that reach beyond them.

Coordinates are in the link's joint frame [m].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field, Strict

from dynident.conic.cones import Cone, NonnegativeCone, SemidefiniteCone
from dynident.consistency.constraints.checks import (
    Names,
    check_name_list,
    check_number,
    check_numbers,
    check_word,
    format_vector,
    set_frozen_fields,
)
from dynident.consistency.constraints.convex import (
    find_hull_corners,
    find_hull_facets,
    fit_enclosing_ellipsoid,
)
from dynident.consistency.space import ParameterSpace, list_body_indices
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import PSEUDO_INERTIA_BASIS
from dynident.core.makers import ReadAs
from dynident.core.schema import make_choice_validator
from dynident.robot.geometry import load_link_points

Point = tuple[float, float, float]

OF = ("mass", "com")
"""What lies inside: the whole distribution of mass, or its centre."""
PAIRED = 12
"""Facets up to which each pair of them is a condition."""


def make_side_validator(open_at: float) -> AfterValidator:
    """A validator of a box's side: a number, or open; null in a result's JSON is open too."""

    def check(value: float | None) -> float:
        if value is None:
            return open_at
        if math.isnan(value):
            raise ValueError("has to be a number, or inf for an open side")
        return value

    return AfterValidator(check)


Low = Annotated[float | None, Strict(), make_side_validator(-math.inf)]
High = Annotated[float | None, Strict(), make_side_validator(math.inf)]


@dataclass(frozen=True)
class Box:
    """Mass, or its centre, inside a box along the axes of the joint frame.

    A bound may be infinite: the side is open. All of the mass: every product of two sides'
    distances has a moment that is not negative (see `constrain_mass_to_polytope`).

    Attributes
    ----------
    links : tuple of str, or "all"
    lower, upper : tuple of 3 floats
        Opposite corners [m].
    of : {"mass", "com"}
    """

    links: Names
    lower: Annotated[Point, ReadAs(tuple[Low, Low, Low])]
    upper: Annotated[Point, ReadAs(tuple[High, High, High])]
    of: Annotated[str, make_choice_validator(OF)] = "mass"

    def __post_init__(self) -> None:
        lower = check_numbers("box", "lower", self.lower, bounded=False)
        upper = check_numbers("box", "upper", self.upper, bounded=False)
        if not np.all(np.less(lower, upper)):
            raise InputError(
                f"constraint 'box': lower {format_vector(lower)} has to be below upper "
                f"{format_vector(upper)}"
            )
        if not np.any(np.isfinite([lower, upper])):
            raise InputError("constraint 'box': all its sides are open; bound one of them")
        set_frozen_fields(
            self, **check_region_links("box", self.links, self.of), lower=lower, upper=upper
        )

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """A row a side for the centre, a row a pair of sides for the mass."""
        sides, names = [], []
        for axis, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            for bound, sign, relation in ((low, 1.0, ">="), (high, -1.0, "<=")):
                if np.isfinite(bound):
                    sides.append([*(sign * np.eye(3)[axis]), -sign * bound])
                    names.append(f"{'xyz'[axis]} {relation} {bound:g}")
        closed = bool(np.any(np.isfinite(self.lower) & np.isfinite(self.upper)))
        cones: list[Cone] = []
        for k in list_body_indices(space, self.links):
            link = space.links[k]
            if self.of == "com" or not closed:
                titles = [f"box {link}: {name}" for name in names]
                cones.append(constrain_centre_to_polytope(space, k, np.array(sides), titles))
            if self.of == "mass" and len(sides) > 1:
                cones.append(
                    constrain_mass_to_polytope(
                        space, k, np.array(sides), f"mass in box of {link}:", names
                    )
                )
        return cones


@dataclass(frozen=True)
class Sphere:
    """Mass, or its centre, inside a sphere; see `Ellipsoid`.

    Attributes
    ----------
    links : tuple of str, or "all"
    centre : tuple of 3 floats
        [m]
    radius : float
        [m]
    of : {"mass", "com"}
    """

    links: Names
    centre: Point
    radius: Annotated[float, Field(gt=0.0)]
    of: Annotated[str, make_choice_validator(OF)] = "mass"

    def __post_init__(self) -> None:
        centre = check_numbers("sphere", "centre", self.centre)
        radius = check_number("sphere", "radius", self.radius, positive=True)
        set_frozen_fields(
            self, **check_region_links("sphere", self.links, self.of), centre=centre, radius=radius
        )

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """A row a link for its mass, a matrix for the centre."""
        return constrain_to_ellipsoid(
            space, self.links, self.of, "sphere", np.array(self.centre), np.eye(3) / self.radius
        )


@dataclass(frozen=True)
class Ellipsoid:
    """Mass, or its centre, inside an ellipsoid.

    The centre c of mass m: ``|A (c - centre)| <= 1`` with A the inverse of the half
    lengths in the ellipsoid's axes, as ``[[m 1, u], [u^T, m]] >= 0`` with
    ``u = A (m c - m centre)``. All of the mass: ``tr(J W) >= 0`` for
    ``xt^T W xt = 1 - |A (x - centre)|^2``, necessary and sufficient for a body of positive
    density (Wensing, Kim and Slotine 2018). Where J is positive semidefinite the
    centre is then inside by itself, since ``|A (c - centre)|^2`` is at most the mean of
    ``|A (x - centre)|^2``, and no condition of its own is added. Consistency 'inertia'
    does not make J so.

    Attributes
    ----------
    links : tuple of str, or "all"
    centre : tuple of 3 floats
        [m]
    axes : tuple of 3 floats
        Half lengths [m].
    rotation : tuple of 3 floats
        Roll, pitch and yaw of the ellipsoid's axes, as in a URDF [rad].
    of : {"mass", "com"}
    """

    links: Names
    centre: Point
    axes: Point
    rotation: Point = (0.0, 0.0, 0.0)
    of: Annotated[str, make_choice_validator(OF)] = "mass"

    def __post_init__(self) -> None:
        set_frozen_fields(
            self,
            **check_region_links("ellipsoid", self.links, self.of),
            centre=check_numbers("ellipsoid", "centre", self.centre),
            axes=check_numbers("ellipsoid", "axes", self.axes, positive=True),
            rotation=check_numbers("ellipsoid", "rotation", self.rotation),
        )

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """A row a link for its mass, a matrix for the centre."""
        from scipy.spatial.transform import Rotation  # a tenth of a second that few runs need

        turn = Rotation.from_euler("xyz", self.rotation).as_matrix()
        root = turn.T / np.array(self.axes)[:, None]
        return constrain_to_ellipsoid(
            space, self.links, self.of, "ellipsoid", np.array(self.centre), root
        )


@dataclass(frozen=True)
class Hull:
    """Mass, or its centre, inside the convex hull of points.

    The centre of mass is on the inner side of every facet. All of the mass: with up to
    `PAIRED` facets, every product of two facets' distances has a moment that is not
    negative (see `constrain_mass_to_polytope`). With more, the centre is inside, and the mass in
    the smallest ellipsoid around the corners as far as `Ellipsoid` tells, the weaker condition.

    Attributes
    ----------
    links : tuple of str, or "all"
    points : tuple of tuples of 3 floats, optional
        At least four that are not in a plane [m]; the link's own geometry in the robot's
        URDF when left out (see `dynident.robot.geometry`).
    margin : float
        How far the facets are moved outward [m].
    of : {"mass", "com"}
    """

    links: Names
    points: Annotated[tuple[Point, ...], Field(min_length=4)] | None = None
    margin: float = 0.0
    of: Annotated[str, make_choice_validator(OF)] = "mass"

    def __post_init__(self) -> None:
        margin = check_number("hull", "margin", self.margin)
        if margin < 0.0:
            raise InputError(f"constraint 'hull': margin is {margin:g} but cannot be negative")
        if self.points is not None:
            rows = self.points if np.iterable(self.points) else (self.points,)
            points = tuple(check_numbers("hull", "points", row) for row in rows)
            find_hull_corners(np.array(points).reshape(-1, 3), "constraint 'hull'")
            set_frozen_fields(self, points=points)
        set_frozen_fields(self, **check_region_links("hull", self.links, self.of), margin=margin)

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """A row a facet for the centre; for the mass a row a pair, or the ellipsoid's too."""
        cones: list[Cone] = []
        for k in list_body_indices(space, self.links):
            link = space.links[k]
            if self.points is None:
                points = load_link_points(space.idim.robot, link)
            else:
                points = np.array(self.points)
            sides, corners = find_hull_facets(points, self.margin, f"constraint 'hull' of {link}")
            ways = [format_vector(-side[:3], 2) for side in sides]
            names = [f"facet {i} towards {way}" for i, way in enumerate(ways, 1)]
            if self.of == "mass" and len(sides) <= PAIRED:
                cones.append(
                    constrain_mass_to_polytope(space, k, sides, f"mass in hull of {link}:", names)
                )
                continue
            titles = [f"hull {link}: {name}" for name in names]
            cones.append(constrain_centre_to_polytope(space, k, sides, titles))
            if self.of == "mass":
                cones.append(
                    constrain_mass_to_ellipsoid(
                        space, k, f"mass in hull of {link}", *fit_enclosing_ellipsoid(corners)
                    )
                )
        return cones


def constrain_centre_to_polytope(
    space: ParameterSpace, link: int, sides: Array, names: Sequence[str]
) -> NonnegativeCone:
    """The centre of mass inside a polytope: ``d m - n . h >= 0`` for each facet.

    Facets are rows ``(-n, d)`` of ``n . x <= d``.
    """
    return constrain_moments(space, link, np.einsum("fi,j->fij", sides, np.eye(4)[3]), names)


def constrain_mass_to_polytope(
    space: ParameterSpace, link: int, sides: Array, title: str, facets: Sequence[str]
) -> NonnegativeCone:
    """Mass inside a polytope of facets ``(-n, d)``, as far as its second moments tell.

    ``E[s_i s_j] >= 0`` for every two facets, with ``s_i = d_i - n_i . x``. Where the
    polytope is bounded, and J positive semidefinite so that ``E[s_i^2] >= 0``, the centre
    is then inside by itself: a sum of all s_j with positive weights is a constant, and its
    product with s_i has the moment of s_i. A box that is closed along one axis is enough.
    Rows for the centre would be redundant, and they have been seen to stop the solver at
    corners.
    """
    first, second = np.triu_indices(len(sides), 1)
    names = [
        f"{title} {facets[i]} and {facets[j]}"
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]
    return constrain_moments(
        space, link, np.einsum("fi,fj->fij", sides[first], sides[second]), names
    )


def constrain_mass_to_ellipsoid(
    space: ParameterSpace, link: int, name: str, centre: Array, root: Array
) -> NonnegativeCone:
    """Mass inside an ellipsoid ``|root (x - centre)| <= 1``: one row."""
    lifted = np.column_stack([root, -root @ centre])
    return constrain_moments(
        space, link, (np.diag([0.0, 0.0, 0.0, 1.0]) - lifted.T @ lifted)[None], [name]
    )


def constrain_moments(
    space: ParameterSpace, link: int, forms: Array, names: Sequence[str]
) -> NonnegativeCone:
    """Moments ``tr(J W)`` of quadratic forms that are not to be negative, in their rows' units."""
    rows = np.einsum("rij,pij->rp", forms, PSEUDO_INERTIA_BASIS) @ space.body(link)
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return NonnegativeCone(tuple(names), rows / size, np.zeros(len(rows)))


def constrain_to_ellipsoid(
    space: ParameterSpace,
    links: tuple[str, ...] | str,
    of: str,
    word: str,
    centre: Array,
    root: Array,
) -> list[Cone]:
    """One cone a link for ``|root (x - centre)| <= 1``, of its mass or its centre."""
    cones: list[Cone] = []
    for k in list_body_indices(space, links):
        if of == "mass":
            title = f"mass in {word} of {space.links[k]}"
            cones.append(constrain_mass_to_ellipsoid(space, k, title, centre, root))
            continue
        body = space.body(k)
        m, u = body[0], root @ (body[1:4] - np.outer(centre, body[0]))
        basis = np.einsum("k,ij->kij", m, np.eye(4))
        basis[:, :3, 3] = basis[:, 3, :3] = u.T
        title = f"centre of mass in {word} of {space.links[k]}"
        cones.append(SemidefiniteCone(title, basis / space.mass(k), np.zeros((4, 4))))
    return cones


def check_region_links(
    kind: str, links: tuple[str, ...] | str, of: str
) -> dict[str, tuple[str, ...] | str]:
    """Links and what of them lies inside, checked."""
    return {"links": check_name_list(kind, "links", links), "of": check_word(kind, "of", of, OF)}
