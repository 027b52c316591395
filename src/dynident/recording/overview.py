"""A log at a glance, before anything is fitted: ranges, rates, gaps, steps of its sensors."""

from __future__ import annotations

import math

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.plots.data import PlottedLog
from dynident.plots.overview import JointOverview, Overview, Range, find_range, find_step
from dynident.recording.floating import find_logged_robot
from dynident.robot.model import Robot

OVER = 0.02
"""Seconds over which positions are differentiated where no speed was measured."""
REST = 0.01
"""Share of a joint's largest speed below which it rests."""
HELD = ("dq", "ddq", "qref", "dqref", "temp", "known")
"""What a log may have beside positions and torques."""
NOWHERE: Range = (math.nan, math.nan)


def build_overview(log: PlottedLog, robot: Robot | None = None) -> Overview:
    """A log at a glance; see `Recording.overview`."""
    runs = tuple(slice(start, stop) for start, stop in log.segments)
    robot = None if robot is None else find_logged_robot(robot)
    names, places = match_joints(log, robot)
    speeds = measure_speeds(log)
    joints = []
    for k, name in enumerate(names):
        joint = None if places is None or robot is None else robot.joints[places[k]]
        q, dq = (np.concatenate([signal[run, k] for run in runs]) for signal in (log.q, speeds))
        tau = np.concatenate([log.tau[run, k] for run in runs])
        known = log.torque != "none"
        fastest = float(np.max(np.abs(dq)))
        joints.append(
            JointOverview(
                name=name,
                unit="rad or m" if joint is None else "m" if joint.kind == "prismatic" else "rad",
                position=find_range(q),
                limits=NOWHERE if joint is None else (float(joint.lower), float(joint.upper)),
                speed=find_range(dq),
                speed_limit=math.nan if joint is None else float(joint.velocity),
                torque=find_range(tau) if known else NOWHERE,
                torque_limit=math.nan if joint is None else float(joint.effort),
                torque_rms=float(np.sqrt(np.mean(tau**2))) if known else math.nan,
                resting=float(np.mean(np.abs(dq) <= REST * fastest)),
                position_step=find_step(q),
                torque_step=find_step(tau) if known else math.nan,
            )
        )
    floating = [*(["base"] if log.base is not None else []), *{**log.wrenches, **log.touching}]
    return Overview(
        name=log.name,
        rate=log.rate,
        samples=sum(stop - start for start, stop in log.segments),
        duration=sum(stop - start for start, stop in log.segments) / log.rate,
        segments=len(log.segments),
        longest=max(stop - start for start, stop in log.segments) / log.rate,
        torque=log.torque,
        signals=(*(each for each in HELD if getattr(log, each) is not None), *floating),
        joints=tuple(joints),
        warnings=log.warnings,
    )


def match_joints(
    log: PlottedLog, robot: Robot | None
) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Names of a log's joints, and which of a robot's they are."""
    n = log.q.shape[1]
    names = log.joints
    if robot is None:
        return names or tuple(f"joint {k + 1}" for k in range(n)), None
    if names is None and n == robot.n:
        names = robot.joint_names
    missing = [name for name in names or () if name not in robot.joint_names]
    if names is None or missing:
        told = f"no joint {missing[0]!r}" if missing else f"{robot.n} joints, the log has {n}"
        raise InputError(f"{log.name}: {robot.name} has {told}; give the robot of the log")
    return names, tuple(robot.joint_names.index(name) for name in names)


def measure_speeds(log: PlottedLog) -> Array:
    """Speeds as measured, else differences of the positions over `OVER`, shape (samples, n)."""
    if log.dq is not None:
        return log.dq
    found = np.zeros_like(log.q)
    half = max(1, round(0.5 * OVER * log.rate))
    for start, stop in log.segments:
        q, count = log.q[start:stop], stop - start
        if count < 2:
            continue
        first = np.maximum(np.arange(count) - half, 0)
        last = np.minimum(np.arange(count) + half, count - 1)
        found[start:stop] = (q[last] - q[first]) / ((last - first) / log.rate)[:, None]
    return found
