"""The bodies of a result to look at: ellipsoids that move as a log did, beside the file's."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.inertia import is_consistent
from dynident.fit.result import Result
from dynident.regression.generalised import GeneralisedSamples
from dynident.scenes.ellipsoids import list_ellipsoids
from dynident.scenes.page import FINE, PageWords, PlayedMotion, render_scene_page
from dynident.scenes.scene import build_scene

FRAMES_PER_SECOND = 25.0
LONGEST = 40.0
"""Of a log that are played [s]."""
POSES = 4000
"""Bodies times frames that are played at most: the page holds its result, too."""
TRIANGLES = 6000
"""Of the robot, about; likewise."""


def render_bodies(result: Result, log: GeneralisedSamples | None) -> str:
    """A page of a result's links as ellipsoids in motion; empty where no links can exist or move.

    `log`: whose motion is played: of its longest run without a gap the first seconds. The robot
    stands at zero without one.
    """
    robot = result.robot.bare  # a part that a sensor holds is within its body
    if result.phi is None or not is_consistent(result.phi) or not robot.n:
        return ""
    drawn = build_scene(robot, most=TRIANGLES)
    motion, kind = rest(result), "at zero positions"
    if log is not None:
        motion, kind = cut_motion(log, robot.bodies), f"motion of {log.name}"
    found = list_ellipsoids(robot, result.phi[: robot.bodies], "identified")
    file = list_ellipsoids(robot, robot.nominal, "file")
    known = {each.link for each in file}
    missing = [link for link in robot.links if link not in known]
    said = (
        "Each ellipsoid, of one density, has its link's mass, centre of mass and inertia.",
        *([f"The file has no body that can exist of {', '.join(missing)}."] if missing else []),
        *drawn.said,
    )
    lower = np.array([joint.lower for joint in robot.joints])
    upper = np.array([joint.upper for joint in robot.joints])
    words = PageWords(kind, said)
    return render_scene_page(robot, drawn, motion, words, (lower, upper), (*found, *file))


def cut_motion(log: GeneralisedSamples, bodies: int) -> PlayedMotion:
    """The first seconds of a log's longest run, at about so many frames a second as are played.

    At most `LONGEST`, and so many that a page has room for the poses of all bodies.
    """
    start, stop = max(log.runs, key=lambda run: run[1] - run[0])
    fine = FINE if log.rate >= FINE * FRAMES_PER_SECOND else 1
    stride = fine * max(1, round(log.rate / (fine * FRAMES_PER_SECOND)))
    longest = min(round(LONGEST * log.rate), POSES // bodies * stride)
    frames = max(1, (min(stop, start + longest + 1) - start - 1) // stride)
    stop = min(stop, start + frames * stride + 1)
    q, dq = log.q[start:stop], log.dq[start:stop]
    first = dq.shape[1] - log.measured.shape[1]
    joints = q[:, q.shape[1] - log.measured.shape[1] :]
    step = stride / log.rate
    return PlayedMotion(0.0, step, joints[::stride], dq[::stride, first:], q[:: stride // fine])


def rest(result: Result) -> PlayedMotion:
    """A second at zero."""
    n = result.robot.n
    base: Array = np.eye(7)[6] if result.robot.floating else np.zeros(0)
    path = np.tile(np.concatenate([base, np.zeros(n)]), (2, 1))
    return PlayedMotion(0.0, 1.0, np.zeros((2, n)), np.zeros((2, n)), path)
