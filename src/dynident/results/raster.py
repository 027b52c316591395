"""Triangles as points of a picture, the nearest to the eye in front."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.jit import inner

Picture = npt.NDArray[np.floating[Any]]


@inner
def fill_triangles(
    picture: Picture, depth: Array, corners: Array, colours: Array, lit: Array
) -> None:
    """Fill triangles into a picture.

    Parameters
    ----------
    picture : ndarray, shape (rows, columns, 4)
        Red, green, blue and opacity; changed in place, as is `depth`.
    depth : ndarray, shape (rows, columns)
        Towards the eye; minus infinity where there is nothing yet.
    corners : ndarray, shape (triangles, 3, 3)
        Column, row, and towards the eye.
    colours : ndarray, shape (triangles, 3)
    lit : ndarray, shape (triangles, 3)
        How bright each corner is; linear between them (Gouraud 1971).
    """
    rows, columns = depth.shape
    for k in range(len(corners)):
        ax, ay, az = corners[k, 0]
        bx, by, bz = corners[k, 1]
        cx, cy, cz = corners[k, 2]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if abs(area) < 1e-9:  # seen from its edge
            continue
        left, right = max(min(ax, bx, cx), 0.0), min(max(ax, bx, cx), columns - 1.0)
        low, high = max(min(ay, by, cy), 0.0), min(max(ay, by, cy), rows - 1.0)
        if right < left or high < low:
            continue
        for y in range(int(low), int(high) + 1):
            for x in range(int(left), int(right) + 1):
                # barycentric coordinates; rounding leaves no gap where two triangles meet
                u = ((bx - x) * (cy - y) - (by - y) * (cx - x)) / area
                v = ((cx - x) * (ay - y) - (cy - y) * (ax - x)) / area
                w = 1.0 - u - v
                if min(u, v, w) < -1e-9:
                    continue
                z = u * az + v * bz + w * cz
                if z <= depth[y, x]:
                    continue
                depth[y, x] = z
                light = u * lit[k, 0] + v * lit[k, 1] + w * lit[k, 2]
                for i in range(3):
                    picture[y, x, i] = min(light * colours[k, i], 1.0)
                picture[y, x, 3] = 1.0
