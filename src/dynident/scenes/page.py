"""A page that plays the motion of a robot, and what its script reads."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.templates import load_templates
from dynident.robot.model import Joint, Robot
from dynident.scenes.ellipsoids import MovingEllipsoid
from dynident.scenes.scene import (
    DrawnScene,
    NearestShapes,
    ScenePiece,
    compute_corner_normals,
    place_bodies,
)

FINE = 4
"""Points of the hands' paths in the time of a frame."""
STEPS = 32767
"""Of the integers in which poses are written."""
AZIMUTHS = 12
"""From which the first view is chosen."""


@dataclass(frozen=True)
class PlayedMotion:
    """What is played."""

    start: float
    step: float
    """`start`, `step`: time of the first frame, and between two [s]."""
    q: Array
    dq: Array
    """`q`, `dq`: of the joints [rad or m], [rad/s or m/s], shape (frames, n)."""
    path: Array
    """Configurations along which the hands leave a trace, `fine` of them in the time of a frame,
    shape (fine (frames - 1) + 1, coordinates)."""

    @property
    def fine(self) -> int:
        """Points of `path` in the time of a frame."""
        return (len(self.path) - 1) // (len(self.q) - 1)


@dataclass(frozen=True)
class PageWords:
    """What the page says."""

    kind: str
    """Of the motion."""
    said: tuple[str, ...] = ()
    """Beside the drawing."""
    notes: tuple[str, ...] = ()
    """Below the distances, where these are watched."""


def render_scene_page(
    robot: Robot,
    drawn: DrawnScene,
    motion: PlayedMotion,
    words: PageWords,
    limits: tuple[Array, Array],
    ellipsoids: Sequence[MovingEllipsoid] = (),
    nearest: NearestShapes | None = None,
    least: float = 0.0,
) -> str:
    """A page that shows a robot in motion.

    Parameters
    ----------
    limits : (ndarray, ndarray), shape (n,)
        Of the positions, infinite where there is none [rad or m].
    ellipsoids : sequence of MovingEllipsoid
        That move with the bodies.
    nearest : NearestShapes, optional
        The nearest pair in each frame.
    least : float
        The distance that is asked for [m].

    Returns
    -------
    str
        HTML with a script of its own, and without references to other files.
    """
    path = place_bodies(robot, motion.path)
    # of the hands, shape (hands, samples, 3) [m]
    traced = np.array([path[:, b, :, :3] @ at + path[:, b, :, 3] for b, at in drawn.hands])
    placed = place_bodies(robot, motion.path[:: motion.fine])
    middle, radius = bound_motion(drawn, placed, traced, ellipsoids)
    factor = np.where([j.kind == "revolute" for j in robot.joints], np.degrees(1.0), 1000.0)
    scale = max(float(np.abs(placed[..., 3]).max()), 1e-3)
    units = placed / np.array([1.0, 1.0, 1.0, scale])
    data = {
        "start": motion.start,
        "step": motion.step,
        "count": len(motion.q),
        "bodies": placed.shape[1],
        "floating": robot.floating,
        "scale": scale / STEPS,
        "unit": 1.0 / STEPS,
        "poses": encode_array(np.round(STEPS * units), "<i2"),
        "pieces": [serialise_piece(piece) for piece in drawn.pieces],
        "ellipsoids": [serialise_ellipsoid(each) for each in ellipsoids],
        "fine": motion.fine,
        "traces": [encode_array(each, "<f4") for each in traced],
        "grid": {"spacing": drawn.spacing, "extent": drawn.extent},
        "view": {
            "middle": middle.tolist(),
            "radius": radius,
            "azimuth": choose_azimuth(traced, placed),
        },
        "joints": [
            serialise_joint(joint, *(float(factor[j] * own[j]) for own in limits))
            for j, joint in enumerate(robot.joints)
        ],
        "q": encode_array(motion.q * factor, "<f4"),
        "dq": encode_array(motion.dq * factor, "<f4"),
        "nearest": None if nearest is None else serialise_nearest_pairs(nearest, least),
    }
    return (
        load_templates("dynident.scenes")
        .get_template("replay.html.j2")
        .render(
            title=robot.name,
            duration=motion.step * (len(motion.q) - 1),
            words=words,
            hands=[
                (robot.base_link, *robot.links[-robot.n :])[body + 1] for body, _ in drawn.hands
            ],
            spacing=drawn.spacing,
            planes=any(piece.kind == "wall" for piece in drawn.pieces),
            surrounded=any(piece.kind != "link" for piece in drawn.pieces),
            sorts=[
                sort for sort in ("identified", "file") if any(e.sort == sort for e in ellipsoids)
            ],
            data=data,
        )
    )


def serialise_joint(joint: Joint, lower: float, upper: float) -> dict[str, Any]:
    """A joint and its limits in the units of the page; None where there is none."""
    return {
        "name": joint.name,
        "unit": "°" if joint.kind == "revolute" else "mm",
        "lower": lower if math.isfinite(lower) else None,
        "upper": upper if math.isfinite(upper) else None,
    }


# ------------------------------------------------------------------------------ plain data


def serialise_piece(piece: ScenePiece) -> dict[str, Any]:
    """A piece as the page reads it."""
    found: dict[str, Any] = {
        "name": piece.name,
        "kind": piece.kind,
        "body": piece.body,
        "points": encode_array(piece.points, "<f4"),
        "faces": encode_array(piece.faces, "<u2"),
        "normals": encode_array(
            np.round(127.0 * compute_corner_normals(piece.points, piece.faces)), "i1"
        ),
    }
    if len(piece.lines):
        found["lines"] = encode_array(piece.lines, "<f4")
    return found


def serialise_ellipsoid(ellipsoid: MovingEllipsoid) -> dict[str, Any]:
    """An ellipsoid as the page reads it: its axes one after the other."""
    return {
        "sort": ellipsoid.sort,
        "body": ellipsoid.body,
        "centre": ellipsoid.centre.tolist(),
        "axes": ellipsoid.axes.T.tolist(),
    }


def serialise_nearest_pairs(found: NearestShapes, least: float) -> dict[str, Any]:
    """The nearest pairs as the page reads them, and the distance that is asked for."""
    return {
        "names": [list(names) for names in found.names],
        "pair": encode_array(found.pair, "<u2"),
        "distance": encode_array(found.distance, "<f4"),
        "ends": encode_array(found.ends, "<f4"),
        "least": least,
    }


def encode_array(array: npt.ArrayLike, kind: str) -> str:
    """An array's numbers in base64."""
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode("ascii")


# ------------------------------------------------------------------------------ views


def bound_motion(
    drawn: DrawnScene, placed: Array, traced: Array, ellipsoids: Sequence[MovingEllipsoid]
) -> tuple[Array, float]:
    """Middle and radius of where joints, hands and what is within reach around them are [m]."""
    around = [piece.points for piece in drawn.pieces if piece.kind == "obstacle"]
    near = [np.clip(points, -drawn.extent, drawn.extent) for points in around]
    for each in ellipsoids:
        ends = each.centre[:, None] + np.hstack([each.axes, -each.axes])
        moved = placed[:, each.body, :, :3] @ ends + placed[:, each.body, :, 3:]
        points = moved.transpose(0, 2, 1).reshape(-1, 3)
        near.append(np.clip(points, -2.0 * drawn.extent, 2.0 * drawn.extent))
    moving = placed[..., 3].reshape(-1, 3), traced.reshape(-1, 3)
    points = np.vstack([np.zeros((1, 3)), *moving, *near])
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    return middle, float(max(np.linalg.norm(points - middle, axis=1).max(), 0.05))


def choose_azimuth(traced: Array, placed: Array) -> float:
    """From where the hands' traces are seen best: where they are widest across the view.

    Of both sides the one that the hands are on, in the mean.
    """
    paths = traced.reshape(-1, 3)[:, :2]
    every = np.vstack([paths, placed[..., :2, 3].reshape(-1, 2)])
    turns = np.pi * (np.arange(AZIMUTHS) + 0.5) / AZIMUTHS
    across = np.column_stack([-np.sin(turns), np.cos(turns)])
    k = int(np.argmax(np.std(every @ across.T, axis=0)))
    toward = np.array([np.cos(turns[k]), np.sin(turns[k])])
    return float(turns[k] if paths.mean(axis=0) @ toward >= 0.0 else turns[k] - np.pi)
