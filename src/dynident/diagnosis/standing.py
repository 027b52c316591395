"""What gravity says of a floating robot's log: signs, frames and units of what bears it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.errors import InputError
from dynident.dynamics.contacts import contact_motion
from dynident.dynamics.idim import Idim
from dynident.recording.filters import zero_phase_lowpass
from dynident.recording.floating import TURNS, turning
from dynident.regression.generalised import GeneralisedSamples
from dynident.robot.model import Contact

CALM = 0.05
"""Acceleration of the base, over gravity's, below which the robot stands or moves gently."""
SMOOTH = 3.0
"""Cutoff below which that is asked [Hz]."""
TILTED = 12.0
"""Angle between what bears the robot and its weight from which a frame is wrong [deg]."""
HEAVY = 2.0
"""Weight over the robot file's from which, or one over which, it is named."""
ENOUGH = 0.2
"""Seconds for which a robot stands before gravity is asked."""
SLIPS = 10.0
"""Speed of a contact that is said to bear, over `contact_speed`, from which it flies."""


def check_bearing(idim: Idim, log: GeneralisedSamples) -> tuple[str, ...]:
    """Refuse wrenches that cannot bear the robot, and contacts that fly; warn of what is odd.

    Parameters
    ----------
    idim : Idim
    log : GeneralisedSamples

    Returns
    -------
    tuple of str
        Warnings.

    Raises
    ------
    InputError
    """
    robot = idim.robot
    if not robot.floating or log.base is None:
        return ()
    refuse_flying(idim, log)
    notes = []
    turned = turning(log.base, log.runs)
    if not log.base.still and turned < TURNS:
        notes.append(
            f"{log.name}: the base turns by {np.degrees(turned):.2g} degrees; moments of inertia "
            "of the base link take more: let it roll, pitch and yaw, or say base = 'fixed'"
        )
    measured = [c for c in robot.contacts if c.name in log.wrenches]
    calm = standing(log)
    if not measured or len(measured) < len(robot.contacts) or not log.base.oriented:
        return tuple(notes)
    if np.sum(calm) < ENOUGH * log.rate:
        return tuple(notes)
    forces = [world_force(idim, log, contact, calm) for contact in measured]
    total = np.sum(forces, axis=0)
    up = -robot.gravity / np.linalg.norm(robot.gravity)
    size = float(np.linalg.norm(total))
    angle = angle_between(total, up)
    words = f"{log.name}: while the robot stands, its contacts together"
    if angle > 180.0 - TILTED:
        raise InputError(
            f"{words} pull it down by {size:.4g} N: the log has what acts on the ground; set "
            "sign = -1 in [[contact]]"
        )
    if angle > TILTED:
        raise InputError(
            f"{words} push {angle:.0f} degrees off against its weight; "
            f"{what_to_try(idim, log, measured, forces, calm, up)}"
        )
    mass, known = size / float(np.linalg.norm(robot.gravity)), float(np.sum(robot.nominal[:, 0]))
    if robot.has_nominal and not 1.0 / HEAVY < mass / known < HEAVY:
        notes.append(
            f"{words} bear {mass:.4g} kg, in the robot file it has {known:.4g}; check the unit of "
            "forces, and whether something else bears it"
        )
    return tuple(notes)


def standing(log: GeneralisedSamples) -> Booleans:
    """Samples at which the base hardly accelerates."""
    assert log.base is not None
    found = np.zeros(len(log.q), dtype=bool)
    for start, stop in log.runs:
        # the base's equations have the spatial acceleration; at rest it is the classical one
        smooth = zero_phase_lowpass(log.ddq[start:stop, :3], SMOOTH, log.rate)
        found[start:stop] = np.linalg.norm(smooth, axis=1) < CALM * 9.81
    return found


def world_force(idim: Idim, log: GeneralisedSamples, contact: Contact, some: Booleans) -> Array:
    """Mean force of a contact on the robot over some samples, in the world's axes [N]."""
    force = contact.sign * (log.wrenches[contact.name][some, :3] - contact.bias[:3])
    if contact.axes == "frame":
        turn = contact_motion(idim.tree, idim.robot, contact, log.q[some]).turn
        force = np.einsum("tij,tj->ti", turn, force)
    return np.asarray(np.mean(force, axis=0))


def angle_between(a: Array, b: Array) -> float:
    """[deg]"""
    cosine = a @ b / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-300)
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def what_to_try(
    idim: Idim,
    log: GeneralisedSamples,
    measured: list[Contact],
    forces: list[Array],
    calm: Booleans,
    up: Array,
) -> str:
    """Other axes under which what bears the robot points upwards; else the contact farthest off."""
    for axes in ("world", "frame"):
        others = [world_force(idim, log, replace(contact, axes=axes), calm) for contact in measured]
        if angle_between(np.sum(others, axis=0), up) < TILTED:
            return f'with axes = "{axes}" in [[contact]] they would fit'
    off = [angle_between(force, up) for force in forces]
    worst = measured[int(np.argmax(off))]
    return (
        f"check the frame of {worst.name} ({worst.frame}), whose force is {max(off):.0f} degrees "
        "off, and the signs of its columns"
    )


def refuse_flying(idim: Idim, log: GeneralisedSamples) -> None:
    """Refuse contacts that are said to bear and move.

    Raises
    ------
    InputError
    """
    assert log.base is not None
    if log.base.still or not np.any(log.base.twist[:, :3]):
        return
    for contact in idim.robot.contacts:
        bears = log.touching.get(contact.name)
        if bears is None or contact.name in log.wrenches:
            continue
        inside = np.zeros(len(log.q), dtype=bool)
        for start, stop in log.segments:
            inside[start:stop] = True
        some = np.flatnonzero(bears & inside)[:: max(1, int(np.sum(bears)) // 2000)]
        if not some.size:
            continue
        J = contact_motion(idim.tree, idim.robot, contact, log.q[some]).jacobian[:, :3]
        speed = np.linalg.norm(np.einsum("tij,tj->ti", J, log.dq[some]), axis=1)
        if np.median(speed) > SLIPS * log.contact_speed:
            raise InputError(
                f"{log.name}: {contact.name} is said to bear (contact_{contact.name}) while its "
                f"frame moves at {np.median(speed):.2g} m/s; check the column, or the frame of the "
                "contact; where it does slide, raise contact_speed"
            )
