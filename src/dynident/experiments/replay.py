"""A trajectory to look at: a page that plays it."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.text import format_count
from dynident.excitation.excite import Excitation
from dynident.experiments.trajectory import describe_distances, list_distances
from dynident.scenes.page import FINE, PageWords, PlayedMotion, render_scene_page
from dynident.scenes.scene import NearestShapes, build_scene, find_nearest_pairs

FRAMES_PER_SECOND = 50.0
MOST_FRAMES = 2000
"""Longer motions have fewer frames a second; the page goes straight between two."""


def render_replay_page(excitation: Excitation) -> str:
    """A page that shows the robot moving along the trajectory.

    Returns
    -------
    str
        HTML with a script of its own, and without references to other files.
    """
    robot, trajectory = excitation.robot, excitation.trajectory
    task = excitation.design.task
    drawn = build_scene(robot, excitation.obstacles)
    times = choose_frame_times(excitation)
    fine = np.linspace(times[0], times[-1], FINE * (len(times) - 1) + 1)
    step = float(times[-1] - times[0]) / (len(times) - 1)
    q, dq = trajectory.at(times), trajectory.at(times, 1)
    found = None if task.clearance is None else find_nearest_pairs(task.clearance, q)
    notes = "Distances are not checked." if found is None else describe_steady_pairs(found)
    proved = describe_proved_distance(excitation)
    return render_scene_page(
        robot,
        drawn,
        PlayedMotion(float(times[0]), step, q, dq, trajectory.at(fine)),
        PageWords(
            trajectory.family.kind,
            (*drawn.said, *excitation.warnings),
            tuple(filter(None, (notes, proved))),
        ),
        (task.limits.lower, task.limits.upper),
        nearest=found,
        least=task.limits.clearance,
    )


def choose_frame_times(excitation: Excitation) -> Array:
    """Instants of the frames: of one period, its ramps included [s]."""
    family = excitation.trajectory.family
    count = int(np.ceil(family.length * FRAMES_PER_SECOND)) + 1
    return np.linspace(family.start, family.stop, min(max(count, 2), MOST_FRAMES))


def describe_steady_pairs(found: NearestShapes) -> str:
    """What is said of the pairs that are always about as near."""
    if not found.steady:
        return ""
    (a, b), low, high = found.steady[0]
    text = f"Always about as near, and not counted here: {a} and {b}, "
    text += f"{1000.0 * low:.1f} to {1000.0 * high:.1f} mm"
    more = len(found.steady) - 1
    return f"{text}; and {format_count(more, 'farther pair')}." if more else f"{text}."


def describe_proved_distance(excitation: Excitation) -> str:
    """What the certificate says of distances, at every instant and not only in the frames."""
    kept = list_distances(excitation)
    if not kept:
        return ""
    clear = "" if all(each.ok for each in kept) else "not proved to keep clear; "
    text = f"{clear}{describe_distances(kept)}"
    return f"{text[0].upper()}{text[1:]}; {1000.0 * kept[0].limit:g} mm are asked for."
