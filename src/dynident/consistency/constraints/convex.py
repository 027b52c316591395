"""Convex sets around points: their hull, and the smallest ellipsoid."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.jit import jit

COPLANAR = 1e-4
"""Angle below which two facets are one [rad]."""
FLAT = 1e-9
"""Thickness over size below which points lie in a plane."""
ENCLOSED = 1e-4
"""Relative accuracy of the smallest enclosing ellipsoid."""
ROUNDS, STEPS = 1000, 100
"""More rounds than any set of points takes, and steps in each: then rounding is made up for."""


def find_hull_facets(
    points: Array, margin: float = 0.0, place: str = "hull"
) -> tuple[Array, Array]:
    """Facets of a convex hull, moved outward by a margin, and corners of the polytope they bound.

    Facets that lie in one plane, as those of a mesh do, count once. Each is ``n . x <= d`` with a
    unit normal n, and ``(-n, d)`` a row of shape (facets, 4); corners have (corners, 3) [m]. The
    place is what messages begin with.
    """
    corners, facets = find_hull_corners(points, place)
    apart: list[int] = []
    for k, normal in enumerate(facets):
        if not apart or np.linalg.norm(facets[apart] - normal, axis=1).min() > COPLANAR:
            apart.append(k)
    normals = facets[apart]
    # from the corners themselves, so that all are inside whatever Qhull rounds
    offsets = np.max(corners @ normals.T, axis=0) + margin
    if margin > 0.0:
        from scipy.spatial import HalfspaceIntersection  # a tenth of a second that few runs need

        half_spaces = np.column_stack([normals, -offsets])
        corners = HalfspaceIntersection(half_spaces, corners.mean(axis=0)).intersections
    return np.column_stack([-normals, offsets]), np.asarray(corners)


def find_hull_corners(points: Array, place: str) -> tuple[Array, Array]:
    """Corners of a convex hull and the unit normals of its facets, triangle by triangle."""
    from scipy.spatial import ConvexHull, QhullError  # a tenth of a second that few runs need

    refused = InputError(f"{place}: the points lie in a plane; give at least four that do not")
    if len(points) < 4:
        raise refused
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    if spread[-1] <= FLAT * spread[0]:
        raise refused
    try:
        found = ConvexHull(points)
    except QhullError as error:
        raise refused from error
    return points[found.vertices], np.asarray(found.equations[:, :3])


def measure_solid_moments(points: Array) -> Array:
    """Second central moments over the mass of a solid that fills the hull of points [m^2].

    Tetrahedra between the facets and a point inside: of one with corners ``x_i`` and the mean c,
    the moments about the origin are ``V / 20 (sum_i x_i x_i^T + 16 c c^T)``. Points that lie in a
    plane are refused.
    """
    from scipy.spatial import ConvexHull  # a tenth of a second that few runs need

    corners, _ = find_hull_corners(points, "hull")
    apart = corners - corners.mean(axis=0)
    triangles = apart[ConvexHull(apart).simplices]
    volume = np.abs(np.linalg.det(triangles)) / 6.0
    mean = triangles.sum(axis=1) / 4.0  # the fourth corner is the origin
    whole = float(volume.sum())
    centre = volume @ mean / whole
    own = np.einsum("t,tki,tkj->ij", volume, triangles, triangles)
    own += 16.0 * np.einsum("t,ti,tj->ij", volume, mean, mean)
    return np.asarray(own / (20.0 * whole) - np.outer(centre, centre))


def fit_enclosing_ellipsoid(points: Array, tolerance: float = ENCLOSED) -> tuple[Array, Array]:
    """The smallest ellipsoid ``|root (x - centre)| <= 1`` around points (Khachiyan 1996).

    Weights on the points are raised where the ellipsoid of their moments is left, and
    lowered where it is not reached (Todd and Yıldırım 2007), until both are within the
    tolerance; what is left of it is made up for, so that all points are inside. These have the
    shape (points, 3), not all in a plane; centre and root (3,) and (3, 3).
    """
    middle, size = points.mean(axis=0), np.ptp(points, axis=0)
    scaled = (points - middle) / size
    lifted = np.column_stack([scaled, np.ones(len(points))])
    weights = np.full(len(points), 1.0 / len(points))
    for _ in range(ROUNDS):
        inverse = np.linalg.inv((lifted.T * weights) @ lifted)
        reach = np.einsum("ij,ij->i", lifted @ inverse, lifted)
        if update_ellipsoid_weights(lifted, weights, inverse, reach, tolerance) == 0:
            break
    centre = weights @ scaled
    apart = scaled - centre
    root = np.linalg.cholesky(np.linalg.inv((apart.T * weights) @ apart)).T
    root /= np.linalg.norm(apart @ root.T, axis=1).max()
    return middle + size * centre, root / size


@jit
def update_ellipsoid_weights(lifted, weights, inverse, reach, tolerance):  # type: ignore[no-untyped-def]
    """Steps towards the weights of the smallest ellipsoid, which are made in place; their count.

    `reach` is ``x' M^-1 x`` of each point, M the weighted sum of all ``x x'``: its weighted mean
    is 4 at every step, and no value is above 4 at the optimum. A step t to a point makes of M
    ``(1 - t) M + t x x'``, and of its inverse what Sherman and Morrison (1950) say.
    """
    count, size = lifted.shape
    g = np.empty(size)
    for step in range(STEPS):
        ahead, behind = 0, -1
        for k in range(count):
            if reach[k] > reach[ahead]:
                ahead = k
            if weights[k] > 0.0 and (behind < 0 or reach[k] < reach[behind]):
                behind = k
        above, below = reach[ahead] / 4.0 - 1.0, 1.0 - reach[behind] / 4.0
        if max(above, below) <= tolerance:
            return step
        if above >= below:
            chosen, r = ahead, reach[ahead]
            # raises det M most, points being lifted to 4 numbers (Khachiyan 1996)
            t = (r - 4.0) / (4.0 * (r - 1.0))
        else:
            chosen, r = behind, reach[behind]
            t = weights[behind] / (1.0 - weights[behind])  # takes all of it
            if r > 1.0:
                t = min(t, (4.0 - r) / (4.0 * (r - 1.0)))
            t = -t
        for i in range(size):
            g[i] = 0.0
            for j in range(size):
                g[i] += inverse[i, j] * lifted[chosen, j]
        less = t / (1.0 - t + t * r)
        for i in range(size):
            for j in range(size):
                inverse[i, j] = (inverse[i, j] - less * g[i] * g[j]) / (1.0 - t)
        for k in range(count):
            along = 0.0
            for i in range(size):
                along += lifted[k, i] * g[i]
            reach[k] = (reach[k] - less * along * along) / (1.0 - t)
            weights[k] *= 1.0 - t
        weights[chosen] = max(weights[chosen] + t, 0.0)
    return STEPS
