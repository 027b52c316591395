"""What the log of a floating robot would hold: its motion on a ground, seen by its sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.progress import Progress, ignore_progress
from dynident.dynamics.contacts import follow_contact
from dynident.dynamics.tree import Tree, build_tree
from dynident.recording.floating import LoggedBase
from dynident.recording.recording import Recording
from dynident.robot.model import Contact, Robot
from dynident.robot.rotations import convert_quaternions
from dynident.simulation.contacts import Foot, Ground, place_foot
from dynident.simulation.floating import FloatingMotion, simulate_floating
from dynident.simulation.loop import Loop
from dynident.simulation.sensors import Sensors, logged, position_noise, quantise_positions

Spread = Annotated[float, Field(ge=0.0)]
STREAM = 100
"""Of the random numbers of what only floating robots have."""
TOLERANCE = 1e-5
"""Of the motion's steps: between accelerations, with the forces of feet that stick, and derivatives
of velocities are then hundredths of them."""


@dataclass(frozen=True)
class BaseSensors:
    """White noise of what a floating robot's log has beside its joints."""

    gyro: Spread = 0.0
    accelerometer: Spread = 0.0
    """`gyro`, `accelerometer`: standard deviations of an inertial unit at the base's origin, along
    its axes [rad/s, m/s^2]."""
    place: Spread = 0.0
    attitude: Spread = 0.0
    """`place`, `attitude`: of the base's position, and of its orientation about each axis [m,
    rad]."""
    force: Spread = 0.0
    moment: Spread = 0.0
    """`force`, `moment`: of each component of the contacts' wrenches [N, Nm]."""


def build_feet(robot: Robot, sole: tuple[float, float] | None) -> tuple[Foot, ...]:
    """The contacts of a robot as feet: a point each, or the corners of a sole.

    The sole is half the length and half the width of contacts that bear moments [m].
    """
    for contact in robot.contacts:
        if contact.surface and sole is None:
            raise InputError(
                f"contact {contact.name!r} transmits moments: give [ground] sole, its half length "
                'and half width, or kind = "point"'
            )
    return tuple(place_foot(each, sole if each.surface else None) for each in robot.contacts)


def record_floating(
    loop: Loop,
    theta: Array,
    ground: Ground,
    sole: tuple[float, float] | None,
    sensors: Sensors,
    beside: BaseSensors,
    progress: Progress = ignore_progress,
) -> Recording:
    """Have a robot move on its contacts, and log it.

    The loop is as `simulate_floating` takes it, the sole of contacts that bear moments, half length
    and half width [m]. What the joints' sensors see is added to the motion, and no controller sees
    it. `progress` is called with "simulation" and the share that is done.
    """
    robot, reference = loop.idim.robot, loop.reference
    if sensors.jitter > 0.0:
        raise InputError("[noise] jitter is not simulated for floating robots; leave it out")
    feet = build_feet(robot, sole)
    motion = simulate_floating(loop, theta, feet, ground, tolerance=TOLERANCE, progress=progress)
    q = motion.q[:, 7:]
    measured = quantise_positions(q + position_noise(sensors, len(q)), sensors.count)
    measured, tau = logged(sensors, motion.rate, measured, motion.tau, q)
    streams = np.random.SeedSequence([sensors.seed, STREAM]).spawn(5)
    noise = [np.random.default_rng(stream) for stream in streams]
    samples = len(q)
    R = convert_quaternions(motion.q[:, 3:7])
    w = motion.dq[:, 3:6]
    # classical = spatial + omega x v (Featherstone 2008, section 2.11)
    rise = motion.ddq[:, :3] + np.cross(w, motion.dq[:, :3])
    felt = rise - np.einsum("tji,j->ti", R, robot.gravity)
    base = LoggedBase(
        position=motion.q[:, :3] + beside.place * noise[0].standard_normal((samples, 3)),
        orientation=turn_quaternions(
            motion.q[:, 3:7], beside.attitude * noise[1].standard_normal((samples, 3))
        ),
        gyro=w + beside.gyro * noise[2].standard_normal((samples, 3)),
        force=felt + beside.accelerometer * noise[3].standard_normal((samples, 3)),
        mount=np.zeros(3),
        turn=np.eye(3),
    )
    tree = build_tree(robot)
    wrenches = {}
    for contact in robot.contacts:
        wrench = measure_contact_wrench(tree, robot, contact, motion)
        spread = np.repeat([beside.force, beside.moment], 3)[: wrench.shape[1]]
        wrenches[contact.name] = wrench + spread * noise[4].standard_normal(wrench.shape)
    return Recording(
        "simulation", motion.rate, measured, tau, qref=reference.q, dqref=reference.dq,
        drives=robot.drives, joints=robot.joint_names, base=base, wrenches=wrenches,
        touching=motion.touching,
    )  # fmt: skip


def measure_contact_wrench(
    tree: Tree, robot: Robot, contact: Contact, motion: FloatingMotion
) -> Array:
    """What a contact's sensor reads: in its axes, with its sign and its bias."""
    wrench = motion.wrenches[contact.name]
    if contact.axes == "world":
        turn = follow_contact(tree, robot, contact, motion.q).turn
        parts = wrench.reshape(len(wrench), -1, 3)
        wrench = np.einsum("tij,tkj->tki", turn, parts).reshape(wrench.shape)
    return np.asarray(contact.sign * wrench + contact.bias[: contact.components])


def turn_quaternions(quaternion: Array, angles: Array) -> Array:
    """Quaternions x y z w, turned by small angles about the base's axes."""
    half = np.hstack([0.5 * angles, np.ones((len(angles), 1))])
    v, w, u, s = quaternion[:, :3], quaternion[:, 3:], half[:, :3], half[:, 3:]
    product = np.hstack(
        [w * u + s * v + np.cross(v, u), w * s - np.sum(v * u, axis=1, keepdims=True)]
    )
    return np.asarray(product / np.linalg.norm(product, axis=1, keepdims=True))


def collect_floating_signals(log: Recording, contacts: Sequence[Contact]) -> dict[str, Array]:
    """The columns of a recording beside its joints', by the names that logs have."""
    found: dict[str, Array] = {}
    base = log.base
    if base is not None:
        for stem, axes, values in (
            ("base_p", "xyz", base.position),
            ("base_q", "xyzw", base.orientation),
            ("imu_w", "xyz", base.gyro),
            ("imu_a", "xyz", base.force),
        ):
            if values is not None:
                found |= {f"{stem}{axis}": values[:, k] for k, axis in enumerate(axes)}
    for contact in contacts:
        wrench = log.wrenches[contact.name]
        parts = ("fx", "fy", "fz", "mx", "my", "mz")[: wrench.shape[1]]
        found |= {f"{part}_{contact.name}": wrench[:, k] for k, part in enumerate(parts)}
        found[f"contact_{contact.name}"] = log.touching[contact.name].astype(float)
    return found
