"""What bears a floating robot over a log: forces against its weight, and where its feet stood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.contacts import follow_contact, map_wrench_to_joints
from dynident.dynamics.idim import Idim
from dynident.filters.filters import filter_zero_phase
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.rows import collect_conditions
from dynident.robot.model import Contact
from dynident.robot.rotations import convert_quaternions

BRIEF = 0.05
"""A stance that is shorter is none [s]."""


@dataclass(frozen=True)
class Stance:
    """A contact that bears for a while.

    Attributes
    ----------
    track : ndarray, shape (samples, 2)
        Where its frame was meanwhile, from above [m].
    """

    contact: str
    track: Array


@dataclass(frozen=True)
class Ground:
    """What bears a floating robot over a log.

    Attributes
    ----------
    name : str
        Of the log.
    contacts : tuple of str
        All of the robot.
    time : ndarray, shape (samples,)
        [s]
    forces : mapping of str to ndarray, shapes (samples,)
        Of each measured contact, upwards on the robot [N]; low-passed.
    total, asked : ndarray, shape (samples,)
        Upwards on the base's rows: what sensors measured together, and what the model takes for
        its motion [N].
    weight : float
        Of the model [N].
    path : ndarray, shape (samples, 2)
        Of the base from above [m]; empty where nobody knows it.
    stances : tuple of Stance
    """

    name: str
    contacts: tuple[str, ...]
    time: Array
    forces: Mapping[str, Array]
    total: Array
    asked: Array
    weight: float
    path: Array
    stances: tuple[Stance, ...]


def find_ground_support(
    idim: Idim, theta: Array, log: GeneralisedSamples, lowpass_hz: float, points: int
) -> Ground | None:
    """What bears the robot over a log; None where nothing of it is known.

    Parameters
    ----------
    theta : ndarray, shape (parameters,)
    points : int
        About so many samples are kept.
    """
    robot = idim.robot
    level = np.allclose(robot.gravity[:2], 0.0) and robot.gravity[2] < 0.0
    if not idim.robot.floating or log.base is None or not level:
        return None
    if not robot.contacts or not log.base.oriented or log.base.still:
        return None
    step = max(1, len(log.q) // points)
    measured = [contact for contact in robot.contacts if contact.name in log.wrenches]
    whole = len(measured) == len(robot.contacts)
    up: dict[str, list[Array]] = {contact.name: [] for contact in measured}
    total, asked = [np.empty(0)], [np.empty(0)]
    phi, _ = idim.split(theta)
    for start, stop in log.runs:
        run = slice(start, stop)
        vertical = convert_quaternions(log.q[run, 3:7])[:, 2]
        around = collect_conditions(idim, log, run)
        sensors = np.zeros_like(theta)
        idim.sensor_values(sensors)[:] = idim.sensor_values(theta)
        motion = log.q[run], log.dq[run], log.ddq[run]
        wrong = idim.drive_torque(sensors, *motion, conditions=around)[:, :3]

        def upwards(force: Array, vertical: Array = vertical) -> Array:
            found = np.einsum("ti,ti->t", vertical, force)
            return filter_zero_phase(found[:, None], lowpass_hz, log.rate)[::step, 0]

        for contact in measured:
            force = map_wrench_to_joints(
                idim.tree, robot, contact, motion[0], log.wrenches[contact.name][run]
            )
            up[contact.name].append(upwards(force[:, :3]))
        if whole:
            total.append(upwards(log.tau[run, :3] - wrong))
            asked.append(upwards(evaluate_inverse_dynamics(idim.tree, phi, *motion)[:, :3]))
    time = np.concatenate([np.arange(a, b)[::step] / log.rate for a, b in log.runs])
    return Ground(
        log.name,
        tuple(contact.name for contact in robot.contacts),
        time,
        {name: np.concatenate(parts) for name, parts in up.items()},
        np.concatenate(total),
        np.concatenate(asked),
        float(np.sum(phi[:, 0]) * np.linalg.norm(robot.gravity)),
        np.vstack([log.q[a:b:step, :2] for a, b in log.runs])
        if log.base.placed
        else np.empty((0, 2)),
        find_stances(idim, log, step) if log.base.placed else (),
    )


def find_stances(idim: Idim, log: GeneralisedSamples, step: int) -> tuple[Stance, ...]:
    """Where each contact stood, as long as it bore."""
    found = []
    for contact in idim.robot.contacts:
        bears = find_bearing_samples(log, contact)
        for start, stop in log.runs:
            edges = np.flatnonzero(np.diff(np.r_[False, bears[start:stop], False].astype(int)))
            for a, b in zip(start + edges[::2], start + edges[1::2], strict=True):
                if b - a >= BRIEF * log.rate:
                    q = log.q[a : b : min(step, max(1, (b - a) // 4))]
                    origin = follow_contact(idim.tree, idim.robot, contact, q).origin
                    found.append(Stance(contact.name, origin[:, :2]))
    return tuple(found)


def find_bearing_samples(log: GeneralisedSamples, contact: Contact) -> Booleans:
    """Samples in which a contact bears, by the log or by how it was fitted."""
    if contact.name in log.touching:
        return np.asarray(log.touching[contact.name], dtype=bool)
    bears = np.zeros(len(log.q), dtype=bool)
    for (start, stop), names in zip(log.segments, log.sets, strict=True):
        bears[start:stop] = contact.name in names
    return bears
