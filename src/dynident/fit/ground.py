"""What bears a floating robot over a log: forces against its weight, and where its feet stood."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.series import GroundSeries, Stance
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.contacts import follow_contact, map_wrench_to_joints
from dynident.dynamics.idim import Idim
from dynident.filters.filters import filter_zero_phase
from dynident.fit.figures import choose_drawn_samples, find_breaks
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.rows import collect_conditions
from dynident.robot.model import Contact
from dynident.robot.rotations import convert_quaternions

BRIEF = 0.05
"""A stance that is shorter is none [s]."""


def find_ground_support(
    idim: Idim, theta: Array, log: GeneralisedSamples, lowpass_hz: float, points: int
) -> GroundSeries | None:
    """What bears the robot over a log; None where nothing of it is known.

    Parameters
    ----------
    theta : ndarray, shape (parameters,)
    points : int
        About so many samples are kept, and extremes between them.
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
    columns, kept = [], []
    phi, _ = idim.split(theta)
    for start, stop in log.runs:
        run = slice(start, stop)
        vertical = convert_quaternions(log.q[run, 3:7])[:, 2]
        around = collect_conditions(idim, log, run)
        sensors = np.zeros_like(theta)
        idim.sensor_values(sensors)[:] = idim.sensor_values(theta)
        motion = log.q[run], log.dq[run], log.ddq[run]
        wrong = idim.drive_torque(sensors, *motion, conditions=around)[:, :3]
        forces = [
            map_wrench_to_joints(
                idim.tree, robot, contact, motion[0], log.wrenches[contact.name][run]
            )[:, :3]
            for contact in measured
        ]
        if whole:
            asked = evaluate_inverse_dynamics(idim.tree, phi, *motion)[:, :3]
            forces += [log.tau[run, :3] - wrong, asked]
        upwards = [np.einsum("ti,ti->t", vertical, each) for each in forces]
        shown = np.empty((stop - start, 0))
        if upwards:
            shown = filter_zero_phase(np.stack(upwards, axis=1), lowpass_hz, log.rate)
        few = choose_drawn_samples(shown, points, step, len(log.q))
        columns.append(shown[few])
        kept.append(start + few)
    found, place, count = np.concatenate(columns), np.concatenate(kept), len(measured)
    return GroundSeries(
        log.name,
        tuple(contact.name for contact in robot.contacts),
        place / log.rate,
        find_breaks([len(each) for each in kept]),
        {contact.name: found[:, k] for k, contact in enumerate(measured)},
        found[:, count] if whole else np.empty(0),
        found[:, count + 1] if whole else np.empty(0),
        float(np.sum(phi[: robot.bodies, 0]) * np.linalg.norm(robot.gravity)),
        log.q[place, :2] if log.base.placed else np.empty((0, 2)),
        find_stances(idim, log, step),
    )


def find_stances(idim: Idim, log: GeneralisedSamples, step: int) -> tuple[Stance, ...]:
    """When each contact bore, and where it stood then."""
    found, placed = [], log.base is not None and log.base.placed
    for contact in idim.robot.contacts:
        bears = find_bearing_samples(log, contact)
        for start, stop in log.runs:
            edges = np.flatnonzero(np.diff(np.r_[False, bears[start:stop], False].astype(int)))
            for a, b in zip(start + edges[::2], start + edges[1::2], strict=True):
                if b - a >= BRIEF * log.rate:
                    track = np.empty((0, 2))
                    if placed:
                        q = log.q[a : b : min(step, max(1, (b - a) // 4))]
                        track = follow_contact(idim.tree, idim.robot, contact, q).origin[:, :2]
                    found.append(Stance(contact.name, a / log.rate, b / log.rate, track))
    return tuple(found)


def find_bearing_samples(log: GeneralisedSamples, contact: Contact) -> Booleans:
    """Samples in which a contact bears, by the log or by how it was fitted."""
    if contact.name in log.touching:
        return np.asarray(log.touching[contact.name], dtype=bool)
    bears = np.zeros(len(log.q), dtype=bool)
    for (start, stop), names in zip(log.segments, log.sets, strict=True):
        bears[start:stop] = contact.name in names
    return bears
