"""A trajectory to look at: a page that plays it."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.text import format_count
from dynident.excitation.excite import Excitation
from dynident.fit.json import replace_nonfinite
from dynident.report.html import load_page_templates
from dynident.report.scene import (
    Nearest,
    Piece,
    Scene,
    build_scene,
    compute_corner_normals,
    find_nearest_pairs,
    place_bodies,
    trace_points,
)
from dynident.report.trajectory import describe_distances, list_distances

FRAMES_PER_SECOND = 50.0
MOST_FRAMES = 2000
"""Longer motions have fewer frames a second; the page goes straight between two."""
FINE = 4
"""Points of the hands' paths in the time of a frame."""
STEPS = 32767
"""Of the integers in which poses are written."""
AZIMUTHS = 12
"""From which the first view is chosen."""


# ------------------------------------------------------------------------------ the page


def render_replay_page(excitation: Excitation) -> str:
    """A page that shows the robot moving along the trajectory.

    Returns
    -------
    str
        HTML with a script of its own, and without references to other files.
    """
    robot = excitation.robot
    drawn = build_scene(robot, excitation.obstacles)
    times = choose_frame_times(excitation)
    step = (times[-1] - times[0]) / (len(times) - 1)
    trajectory, limits = excitation.trajectory, excitation.design.task.limits
    q, dq = trajectory.at(times), trajectory.at(times, 1)
    placed = place_bodies(robot, q)
    fine = np.linspace(times[0], times[-1], FINE * (len(times) - 1) + 1)
    traced = trace_points(place_bodies(robot, trajectory.at(fine)), drawn.hands)
    clearance = excitation.design.task.clearance
    found = None if clearance is None else find_nearest_pairs(clearance, q)
    middle, radius = bound_motion(drawn, placed, traced)
    revolute = [joint.kind == "revolute" for joint in robot.joints]
    factor = np.where(revolute, np.degrees(1.0), 1000.0)
    scale = max(float(np.abs(placed[..., 3]).max()), 1e-3)
    units = placed / np.array([1.0, 1.0, 1.0, scale])
    data = {
        "start": float(times[0]),
        "step": float(step),
        "count": len(times),
        "bodies": robot.n,
        "scale": scale / STEPS,
        "unit": 1.0 / STEPS,
        "poses": encode_array(np.round(STEPS * units), "<i2"),
        "pieces": [serialise_piece(piece) for piece in drawn.pieces],
        "fine": FINE,
        "traces": [encode_array(each, "<f4") for each in traced],
        "grid": {"spacing": drawn.spacing, "extent": drawn.extent},
        "view": {
            "middle": middle.tolist(),
            "radius": radius,
            "azimuth": choose_azimuth(traced, placed),
        },
        "joints": [
            {
                "name": joint.name,
                "unit": "°" if joint.kind == "revolute" else "mm",
                "lower": replace_nonfinite(factor[j] * limits.lower[j]),
                "upper": replace_nonfinite(factor[j] * limits.upper[j]),
            }
            for j, joint in enumerate(robot.joints)
        ],
        "q": encode_array(q * factor, "<f4"),
        "dq": encode_array(dq * factor, "<f4"),
        "nearest": None if found is None else serialise_nearest_pairs(found, limits.clearance),
    }
    return (
        load_page_templates()
        .get_template("replay.html.j2")
        .render(
            title=robot.name,
            kind=trajectory.family.kind,
            duration=float(times[-1] - times[0]),
            hands=[robot.links[body] for body, _ in drawn.hands],
            said=(*drawn.said, *excitation.warnings),
            spacing=drawn.spacing,
            steady="" if found is None else describe_steady_pairs(found),
            proved=describe_proved_distance(excitation),
            planes=any(piece.kind == "wall" for piece in drawn.pieces),
            surrounded=bool(excitation.obstacles),
            data=data,
        )
    )


def choose_frame_times(excitation: Excitation) -> Array:
    """Instants of the frames: of one period, its ramps included [s]."""
    family = excitation.trajectory.family
    count = int(np.ceil((family.stop - family.start) * FRAMES_PER_SECOND)) + 1
    return np.linspace(family.start, family.stop, min(max(count, 2), MOST_FRAMES))


def serialise_piece(piece: Piece) -> dict[str, Any]:
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


def serialise_nearest_pairs(found: Nearest, least: float) -> dict[str, Any]:
    """The nearest pairs as the page reads them, and the distance that is asked for."""
    return {
        "names": [list(names) for names in found.names],
        "pair": encode_array(found.pair, "<u2"),
        "distance": encode_array(found.distance, "<f4"),
        "ends": encode_array(found.ends, "<f4"),
        "least": least,
    }


def describe_steady_pairs(found: Nearest) -> str:
    """What is said of the pairs that are always about as near."""
    if not found.steady:
        return ""
    (a, b), low, high = found.steady[0]
    text = f"Always about as near, and not counted here: {a} and {b}, "
    text += f"{1000.0 * low:.1f} to {1000.0 * high:.1f} mm"
    more = len(found.steady) - 1
    return f"{text}; and {format_count(more, 'farther pair')}" if more else text


def describe_proved_distance(excitation: Excitation) -> str:
    """What the certificate says of distances, at every instant and not only in the frames."""
    kept = list_distances(excitation)
    if not kept:
        return ""
    clear = "" if all(each.ok for each in kept) else "not proved to keep clear; "
    text = f"{clear}{describe_distances(kept)}"
    return f"{text[0].upper()}{text[1:]}; {1000.0 * kept[0].limit:g} mm are asked for."


def encode_array(array: npt.ArrayLike, kind: str) -> str:
    """An array's numbers in base64."""
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode("ascii")


# ------------------------------------------------------------------------------ views


def bound_motion(drawn: Scene, placed: Array, traced: Array) -> tuple[Array, float]:
    """Middle and radius of where joints, hands and obstacles within reach are [m]."""
    around = [piece.points for piece in drawn.pieces if piece.kind == "obstacle"]
    near = [np.clip(points, -drawn.extent, drawn.extent) for points in around]
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
