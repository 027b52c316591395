"""A trajectory to look at: a page that plays it, and a picture of some of its poses."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.text import format_count
from dynident.excitation.excite import Excitation
from dynident.excitation.obstacles import Obstacle
from dynident.results.html import load_page_templates
from dynident.results.json import replace_nonfinite
from dynident.results.plots import GREEN, PNG_DPI, STYLE
from dynident.results.raster import Picture, fill_triangles
from dynident.results.scene import (
    SPACINGS,
    Nearest,
    Piece,
    Scene,
    build_scene,
    compute_corner_normals,
    find_nearest_pairs,
    place_bodies,
    trace_points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAMES_PER_SECOND = 50.0
MOST_FRAMES = 2000
"""Longer motions have fewer frames a second; the page goes straight between two."""
FINE = 4
"""Points of the hands' paths in the time of a frame."""
STEPS = 32767
"""Of the integers in which poses are written."""
AZIMUTHS = 12
"""From which the picture and the page's first view are chosen."""
ELEVATION = np.radians(22.0)
POSES = 4
"""Superposed in the picture."""
HEIGHT, NARROWEST, WIDEST = 5.4, 3.6, 9.6
"""Of the picture [inch]."""
FINER = 2
"""Points a side of a pixel, over which is averaged."""
BEFORE = 0.003
"""Of the robot's reach: so much a later pose is before an earlier one that fills its space."""
WORD = np.array([30.0, 12.0])
"""Width and height of an instant's words [pt]."""
PLACES = ((6.0, 5.0), (6.0, -13.0), (-32.0, 5.0), (-32.0, -13.0))
"""Where they begin, from the point that they name [pt]."""
BASE, AROUND = "#8A929B", "#D8CBB4"
FIRST, LAST = "#D3E3F1", "#1F6FA8"
"""Colours of what stands still, and of the first and the last pose."""


# ------------------------------------------------------------------------------ the page


def render_replay_page(excitation: Excitation, obstacles: Sequence[Obstacle] = ()) -> str:
    """A page that shows the robot moving along the trajectory.

    Parameters
    ----------
    excitation : Excitation
    obstacles : sequence of Obstacle
        What stands around the robot: those that the trajectory was designed with.

    Returns
    -------
    str
        HTML with a script of its own, and without references to other files.
    """
    robot = excitation.robot
    drawn = build_scene(robot, obstacles)
    times = choose_frame_times(excitation)
    step = (times[-1] - times[0]) / (len(times) - 1)
    trajectory, limits = excitation.trajectory, excitation.design.task.limits
    q, dq = trajectory.at(times), trajectory.at(times, 1)
    placed = place_bodies(robot, q)
    traced = trace_hand_paths(excitation, drawn, times)
    found = find_pairs_by_frame(excitation, q)
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
            surrounded=bool(obstacles),
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


def trace_hand_paths(excitation: Excitation, drawn: Scene, times: Array) -> Array:
    """Where the hands are between the first and the last frame, shape (hands, samples, 3) [m]."""
    fine = np.linspace(times[0], times[-1], FINE * (len(times) - 1) + 1)
    return trace_points(place_bodies(excitation.robot, excitation.trajectory.at(fine)), drawn.hands)


def find_pairs_by_frame(excitation: Excitation, q: Array) -> Nearest | None:
    """What is nearest to each other at each frame, where distances are watched."""
    clearance = excitation.design.task.clearance
    return None if clearance is None else find_nearest_pairs(clearance, q)


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
    kept = [each for each in excitation.design.certificate.kept if each.what == "clearance"]
    if not kept:
        return ""
    closest = min(kept, key=lambda each: each.reached)
    text = f"{1000.0 * closest.reached:.1f} mm, {closest.where}, about {closest.time:.2f} s"
    asked = f"{1000.0 * closest.limit:g} mm asked for"
    if all(each.ok for each in kept):
        return f"Proved: at no instant is any pair nearer than {text} ({asked})."
    return f"Not proved to keep clear: {text} ({asked})."


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


# ------------------------------------------------------------------------------ the picture


def render_still_picture(excitation: Excitation, obstacles: Sequence[Obstacle] = ()) -> bytes:
    """Some poses of the trajectory in one picture, with the paths of the robot's hands.

    Parameters
    ----------
    excitation : Excitation
    obstacles : sequence of Obstacle
        Drawn too.

    Returns
    -------
    bytes
        A PNG on white. The poses are those that differ most, from the palest, the earliest, to
        the darkest; paths are thin where the robot hides them.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    drawn = build_scene(excitation.robot, obstacles)
    times = choose_frame_times(excitation)
    placed = place_bodies(excitation.robot, excitation.trajectory.at(times))
    traced = trace_hand_paths(excitation, drawn, times)
    chosen = choose_distinct_poses(placed, POSES)
    view = build_view_axes(choose_azimuth(traced, placed))
    corners, colours, lit = project_triangles(drawn, placed[chosen], view)
    low, high = bound_picture(drawn, corners, traced @ view.T)
    width, height = high - low
    inches = float(np.clip(HEIGHT * width / height, NARROWEST, WIDEST))
    # what is clipped is given back as margin on the other side
    per_metre = min(inches / width, HEIGHT / height)
    middle, half = 0.5 * (low + high), 0.5 * np.array([inches, HEIGHT]) / per_metre
    low, high = middle - half, middle + half
    dots = per_metre * PNG_DPI * FINER
    shape = tuple(int(FINER * round(PNG_DPI * side)) for side in (HEIGHT, inches))
    # more than a screen can show, and half as much to go through as of doubles
    picture = np.ones((*shape, 4), dtype=np.float32)
    picture[..., 3] = 0.0
    depth = np.full(shape, -np.inf)
    fill_triangles(picture, depth, (corners - [*low, 0.0]) * [dots, dots, 1.0], colours, lit)
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(inches, HEIGHT))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        draw_ground(axes, drawn, view)
        coarse = picture.reshape(shape[0] // FINER, FINER, shape[1] // FINER, FINER, 4)
        axes.imshow(
            average_blocks(coarse),
            extent=(low[0], high[0], low[1], high[1]),
            origin="lower",
            interpolation="none",
            aspect="auto",
            zorder=2,
        )
        draw_paths(axes, traced @ view.T, depth, low, dots)
        ways = np.linalg.norm(np.diff(traced, axis=1), axis=2).sum(axis=1)
        hand = (traced @ view.T)[int(np.argmax(ways)), ::FINE, :2]
        draw_instants(axes, hand, chosen, times, 72.0 * per_metre)
        draw_scale(axes, low, high)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return buffer.getvalue()


def choose_distinct_poses(placed: Array, count: int) -> list[int]:
    """Samples whose poses differ most, the first among them, in time's order.

    Each in turn is the farthest from those already chosen (Gonzalez 1985), by where the
    bodies' frames are and where they point.
    """
    points = placed.reshape(len(placed), -1)
    chosen = [0]
    far = np.full(len(points), np.inf)
    for _ in range(count - 1):
        far = np.minimum(far, np.linalg.norm(points - points[chosen[-1]], axis=1))
        if far.max() <= 1e-9:
            break
        chosen.append(int(np.argmax(far)))
    return sorted(chosen)


def build_view_axes(azimuth: float) -> Array:
    """Axes of the view: to the right, up, and towards the eye, shape (3, 3)."""
    c, s = np.cos(azimuth), np.sin(azimuth)
    toward = np.array([np.cos(ELEVATION) * c, np.cos(ELEVATION) * s, np.sin(ELEVATION)])
    right = np.array([-s, c, 0.0])
    return np.array([right, np.cross(toward, right), toward])


def project_triangles(drawn: Scene, chosen: Array, view: Array) -> tuple[Array, Array, Array]:
    """Triangles of all poses in the axes of the view.

    Returns
    -------
    corners : ndarray, shape (triangles, 3, 3)
        To the right, up, and towards the eye [m].
    colours : ndarray, shape (triangles, 3)
    lit : ndarray, shape (triangles, 3)
        How bright each corner is.
    """
    from matplotlib.colors import to_rgb

    ramp = np.linspace(to_rgb(FIRST), to_rgb(LAST), len(chosen))
    rest = np.eye(3, 4)
    found, colours, normals = [], [], []
    for piece in drawn.pieces:
        if piece.kind == "wall":
            continue
        if piece.body < 0:
            own = [(rest, np.array(to_rgb(BASE if piece.kind == "link" else AROUND)), 0.0)]
        else:
            shift = BEFORE * drawn.extent
            own = [(chosen[k, piece.body], ramp[k], k * shift) for k in range(len(chosen))]
        normal = compute_corner_normals(piece.points, piece.faces)
        for pose, colour, before in own:
            points = (piece.points @ pose[:, :3].T + pose[:, 3]) @ view.T + [0.0, 0.0, before]
            found.append(points[piece.faces])
            normals.append(normal @ (view @ pose[:, :3]).T)
            colours.append(np.broadcast_to(colour, (len(piece.faces), 3)))
    facing = np.vstack(normals)
    facing *= np.where(facing[:, :, 2:] < 0.0, -1.0, 1.0)
    lamp = np.array([-0.35, 0.6, 0.72])
    lit = 0.62 + 0.42 * np.maximum(facing @ (lamp / np.linalg.norm(lamp)), 0.0)
    return np.vstack(found), np.vstack(colours), lit


def bound_picture(drawn: Scene, corners: Array, paths: Array) -> tuple[Array, Array]:
    """Lower left and upper right of what the picture shows [m]."""
    points = np.vstack([corners.reshape(-1, 3)[:, :2], paths.reshape(-1, 3)[:, :2]])
    # an obstacle is shown as far as the robot reaches
    points = np.clip(points, -1.6 * drawn.extent, 1.6 * drawn.extent)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.05 * float(np.max(high - low))
    return low - margin, high + margin


def average_blocks(blocks: Picture) -> Array:
    """Means of blocks of points, their colours weighted by their opacity."""
    weighted = blocks * blocks[..., 3:]
    weighted[..., 3] = blocks[..., 3]
    mean = weighted.mean(axis=1).mean(axis=2)  # one side after the other: both take twice as long
    mean[..., :3] /= np.maximum(mean[..., 3:], 1e-9)
    return np.asarray(np.clip(mean, 0.0, 1.0))


def draw_ground(axes: Axes, drawn: Scene, view: Array) -> None:
    """Walls that face the eye; without any, a grid in the plane of the base."""
    from matplotlib.collections import LineCollection

    walls = [piece for piece in drawn.pieces if piece.kind == "wall"]
    shown = []
    for piece in walls:
        a, b, c = piece.points[piece.faces[0]]
        if np.cross(b - a, c - a) @ view[2] > 0.0:
            shown.append(piece.lines)
    if not walls:
        count = int(np.ceil(drawn.extent / drawn.spacing))
        at = drawn.spacing * np.arange(-count, count + 1)
        end = np.full(len(at), at[-1])
        zero = np.zeros(len(at))
        shown = [
            np.column_stack(sides).reshape(-1, 2, 3)
            for sides in ((at, -end, zero, at, end, zero), (-end, at, zero, end, at, zero))
        ]
    if shown:
        segments = np.concatenate(shown) @ view.T
        axes.add_collection(
            LineCollection(list(segments[:, :, :2]), colors="#DDE2E7", linewidths=0.6, zorder=1),
            autolim=False,
        )


def draw_paths(axes: Axes, seen: Array, depth: Array, low: Array, dots: float) -> None:
    """Paths of the hands, thin where something hides them.

    Parameters
    ----------
    axes : Axes
    seen : ndarray, shape (hands, samples, 3)
        In the axes of the view [m].
    depth : ndarray, shape (rows, columns)
        Of the picture [m].
    low : ndarray, shape (2,)
        Its lower left corner [m].
    dots : float
        Its columns in a metre.
    """
    from matplotlib.collections import LineCollection

    for path in seen:
        column, row = np.floor((path[:, :2] - low) * dots).astype(int).T
        inside = (row >= 0) & (row < depth.shape[0]) & (column >= 0) & (column < depth.shape[1])
        front = np.full(len(path), -np.inf)
        front[inside] = depth[row[inside], column[inside]]
        hidden = front > path[:, 2] + 1e-3
        ends = [0, *(np.flatnonzero(np.diff(hidden)) + 1).tolist(), len(path) - 1]
        runs = [path[a : b + 1, :2] for a, b in pairwise(ends)]
        covered = [bool(hidden[a]) for a in ends[:-1]]
        axes.add_collection(
            LineCollection(
                runs,
                colors=GREEN,
                linewidths=[0.8 if each else 1.6 for each in covered],
                alpha=[0.55 if each else 1.0 for each in covered],
                zorder=3,
            ),
            autolim=False,
        )


def draw_instants(
    axes: Axes, path: Array, chosen: Sequence[int], times: Array, points: float
) -> None:
    """The instants of the poses on the path of the hand that moves most.

    Parameters
    ----------
    axes : Axes
    path : ndarray, shape (samples, 2)
        [m]
    chosen : sequence of int
    times : ndarray, shape (samples,)
        [s]
    points : float
        Of the picture in a metre, 72 to the inch.
    """
    from matplotlib.patheffects import withStroke

    axes.plot(*path[chosen].T, "o", ms=4.5, mfc="white", mec=GREEN, mew=1.4, zorder=4)
    taken: list[Array] = []
    for k in chosen:
        # where it is farthest from the others' words, to the upper right if it may
        room = [
            min((np.abs((points * path[k] + at - o) / WORD).max() for o in taken), default=1.0)
            for at in PLACES
        ]
        at = PLACES[int(np.argmax(np.minimum(room, 1.0)))]
        taken.append(points * path[k] + at)
        axes.annotate(
            f"{times[k]:.1f} s",
            path[k],
            xytext=at,
            textcoords="offset points",
            zorder=5,
            fontsize=9.0,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )


def draw_scale(axes: Axes, low: Array, high: Array) -> None:
    """A bar of a round length in the lower right corner."""
    width = float(high[0] - low[0])
    length = max(each for each in SPACINGS if each <= max(0.25 * width, SPACINGS[0]))
    right, y = high[0] - 0.03 * width, low[1] + 0.03 * width
    axes.plot([right - length, right], [y, y], "-", color="#333333", lw=1.6, zorder=5)
    axes.annotate(
        f"{length:g} m",
        (right - 0.5 * length, y),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        fontsize=8.5,
        zorder=5,
    )
