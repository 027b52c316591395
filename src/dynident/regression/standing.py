"""What gravity says of a floating robot's log: signs, frames and units of what bears it.

In the mean over a log a robot hardly accelerates: what bears it is its weight, upwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.contacts import follow_contact, map_wrench_to_joints
from dynident.dynamics.idim import Idim
from dynident.filters.filters import differentiate_twice, filter_zero_phase
from dynident.recording.floating import TURNS, BaseMotion, measure_base_turn
from dynident.regression.generalised import CHUNK, GeneralisedSamples
from dynident.robot.model import Contact
from dynident.robot.rotations import (
    compute_lever_acceleration,
    convert_quaternions,
    multiply_by_conjugate,
    to_rpy,
)

CALM = 0.05
"""Acceleration of the base, over gravity's, below which the robot stands or moves gently."""
SMOOTH, BRISK = 3.0, 10.0
"""Cutoffs below which that is asked, and how the base turns [Hz]."""
TILTED = 12.0
"""Angle between what bears the robot and its weight from which a frame is wrong [deg]."""
HEAVY = 2.0
"""Weight over the robot file's from which, or one over which, it is named."""
FLOATS = 0.5
"""Proper acceleration over gravity's, and share of the weight, below which nothing bears."""
ODD, ODDS = 0.1, 0.5
"""Share of a base's wrench that contacts leave from which other axes are tried, and how much less
these have to leave."""
WRONG = 0.2
"""Share that they leave from which that is said."""
ENOUGH = 0.2
"""Seconds for which a robot stands before gravity is asked."""
LONG = 2.0
"""Seconds of motion over which a robot accelerates little in the mean."""
SLIPS = 10.0
"""Speed of a contact that is said to bear, over `contact_speed`, from which it flies."""
TURNED = 0.05
"""Angular velocity of a base from which it is compared [rad/s]."""
AGREES, OTHERWISE = 0.02, 0.5
"""Shares of an angular velocity by which two ways to know it differ, as they do, and by far."""
BETTER = 0.2
"""Share that is left of a difference under another reading, from which that is the right one."""
SHIFTED, WORSE = 0.03, 1.2
"""How far from its place an accelerometer has to be to be refused [m], and how much worse it fits
there."""
MOST = 4000
"""Samples at which contacts are looked at."""


class MountError(InputError):
    """What a base's sensors say does not fit together; with other keys of the log's table it may.

    These are named with what is right, if any is.
    """

    def __init__(self, words: str, *keys: tuple[str, Any]) -> None:
        super().__init__(f"{words} (dynident doctor --fix writes that)" if keys else words)
        self.keys = keys


def check_bearing(idim: Idim, log: GeneralisedSamples) -> tuple[str, ...]:
    """Refuse bases and wrenches that gravity contradicts, contacts that fly; warn of what is odd.

    Nothing is said of robots that do not float.
    """
    robot = idim.robot
    if not robot.floating or log.base is None:
        return ()
    base = log.base
    notes = list(check_moving_contacts(idim, log))
    if not base.still:
        notes += check_angular_velocity(log, base)
        refuse_unit_elsewhere(log, base, robot.gravity)
        turned = measure_base_turn(base, log.runs)
        if turned < TURNS:
            notes.append(
                f"{log.name}: the base turns by {np.degrees(turned):.2g} degrees; moments of "
                "inertia of the base link take more: let it roll, pitch and yaw, or say "
                "base = 'fixed'"
            )
    if not np.any(robot.gravity):
        return tuple(notes)
    refuse_gravity_elsewhere(log, base, robot.gravity)
    return (*notes, *check_weight(idim, log, base))


def list_inner_samples(log: GeneralisedSamples, free: bool = False) -> Integers:
    """Samples beyond filters' edges, or of these those in which nothing unmeasured bears."""
    found = [
        np.arange(a, b)
        for (a, b), names in zip(log.segments, log.sets, strict=True)
        if not (free and names)
    ]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def choose_calm_samples(log: GeneralisedSamples, some: Integers) -> tuple[Integers, str]:
    """Samples in whose mean the robot hardly accelerates, in words; none where there are few."""
    speeding = np.zeros(len(log.q))
    for start, stop in log.runs:
        # the base's equations have the spatial acceleration; at rest it is the classical one
        own = log.ddq[start:stop, :3]
        if log.base is not None and log.base.proper and not log.base.oriented:
            own = own - np.mean(own, axis=0)
        smooth = filter_zero_phase(own, SMOOTH, log.rate)
        speeding[start:stop] = np.linalg.norm(smooth, axis=1)
    gentle = some[speeding[some] < CALM * 9.81]
    if len(gentle) >= ENOUGH * log.rate:
        chosen, words = gentle, "while the robot stands"
    elif len(some) >= LONG * log.rate:
        chosen, words = some, "in the mean"
    else:
        return some[:0], ""
    return chosen[:: max(1, len(chosen) // MOST)], words


def average_specific_force(base: BaseMotion, gravity: Array, some: Integers) -> Array:
    """Mean acceleration of the base minus gravity [m/s^2].

    In the world's axes, or in its own where nobody knows these.
    """
    R = convert_quaternions(base.pose[some, 3:])
    found = np.einsum("tij,tj->ti", R, base.acceleration[some, :3])
    return np.asarray(np.mean(found, axis=0)) - (0.0 if base.proper else gravity)


def check_angular_velocity(log: GeneralisedSamples, base: BaseMotion) -> tuple[str, ...]:
    """Refuse an orientation and an angular velocity that are not of one motion.

    A note is of a unit that is mounted a little otherwise than it is said to be.
    """
    if not base.oriented:
        return ()
    shown, given, turns = [], [], []
    for start, stop in log.runs:
        quaternion = filter_zero_phase(base.pose[start:stop, 3:], BRISK, log.rate)
        quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
        turns.append(quaternion)
        shown.append(differentiate_quaternions(quaternion, log.rate))
        given.append(filter_zero_phase(base.twist[start:stop, 3:], BRISK, log.rate))
    ends = np.concatenate([np.arange(a, b) for a, b in log.runs])
    kept = np.isin(ends, list_inner_samples(log))
    omega, logged = np.concatenate(shown)[kept], np.concatenate(given)[kept]
    R = convert_quaternions(np.concatenate(turns)[kept])
    size = max(compute_vector_rms(omega), compute_vector_rms(logged))
    apart = compute_vector_rms(omega - logged)
    if size < TURNED or apart < AGREES * size:
        return ()

    def ordered(places: list[int]) -> Array:
        return np.concatenate([differentiate_quaternions(q[:, places], log.rate) for q in turns])[
            kept
        ]

    others: tuple[tuple[str, Array, Array], ...] = (
        ("the other order of quaternion", ordered([1, 2, 3, 0]), logged),
        ("the other order of quaternion", ordered([3, 0, 1, 2]), logged),
        ('base_axes = "world"', omega, np.einsum("tji,tj->ti", R, logged)),
        ('base_axes = "base"', omega, np.einsum("tij,tj->ti", R, logged)),
        ("the inverse of the orientation", -np.einsum("tij,tj->ti", R, omega), logged),
        ("angular velocities in rad/s", omega, np.radians(logged)),
    )
    begun = (
        f"{log.name}: the base's angular velocity is not that of its orientation "
        f"({100.0 * apart / size:.2g} % apart)"
    )
    fits = [
        words
        for words, a, b in others
        if compute_vector_rms(a - b) < BETTER * apart / size * compute_vector_rms(a)
    ]
    if fits:
        key, _, value = fits[0].partition(" = ")
        raise MountError(
            f"{begun}; with {fits[0]} they would agree", *([(key, value[1:-1])] if value else [])
        )
    turn, told = fit_nearest_rotation(logged, omega)
    fits_turned = (
        base.proper and told and compute_vector_rms(omega - logged @ turn.T) < BETTER * apart
    )
    mounted = turn if base.turn is None else turn @ base.turn
    angles = to_rpy(mounted)
    listed = ", ".join(f"{angle:.3g}" for angle in angles)
    words = f"{begun}; with imu_rpy = [{listed}] it would be"
    if apart > OTHERWISE * size:
        if fits_turned:
            raise MountError(words, ("imu_rpy", tuple(round(each, 5) + 0.0 for each in angles)))
        raise InputError(f"{begun}; check quaternion, base_axes and imu_rpy")
    return (words,) if fits_turned else ()


def refuse_unit_elsewhere(log: GeneralisedSamples, base: BaseMotion, gravity: Array) -> None:
    """Refuse an accelerometer that is elsewhere in the base than it is said to be.

    What it says of the origin's proper acceleration lacks ``dw x d + w x (w x d)`` where it is
    d away, which the logged position tells.
    """
    if not (base.proper and base.oriented and base.placed) or base.mount is None:
        return
    blocks, rest = [], []
    for start, stop in log.runs:
        pose = filter_zero_phase(base.pose[start:stop], BRISK, log.rate)
        twist = filter_zero_phase(base.twist[start:stop, 3:], BRISK, log.rate)
        said = filter_zero_phase(base.acceleration[start:stop, :3], BRISK, log.rate)
        R = convert_quaternions(pose[:, 3:] / np.linalg.norm(pose[:, 3:], axis=1, keepdims=True))
        moved = differentiate_twice(pose[:, :3], log.rate)[1] - gravity
        spin = differentiate_twice(twist, log.rate)[0]
        lever = [compute_lever_acceleration(twist, spin, e) for e in np.eye(3)]
        kept = np.isin(np.arange(start, stop), list_inner_samples(log))
        blocks.append(np.stack(lever, axis=2)[kept].reshape(-1, 3))
        rest.append((said - np.einsum("tji,tj->ti", R, moved))[kept].reshape(-1))
    A, y = np.vstack(blocks), np.concatenate(rest)
    shift, *_ = np.linalg.lstsq(A, y, rcond=None)
    left = np.linalg.norm(y - A @ shift)
    if np.linalg.norm(shift) < SHIFTED or np.linalg.norm(y) < WORSE * left:
        return
    found = base.mount + shift
    place = ", ".join(f"{x:.3g}" for x in found)
    raise MountError(
        f"{log.name}: the accelerometer does not match its place in the base; with "
        f"imu_position = [{place}] it would",
        ("imu_position", tuple(round(float(x), 5) + 0.0 for x in found)),
    )


def differentiate_quaternions(quaternion: Array, rate: float) -> Array:
    """Angular velocity of quaternions, in the base's axes [rad/s]."""
    return 2.0 * multiply_by_conjugate(quaternion, differentiate_twice(quaternion, rate)[0])


def compute_vector_rms(signal: Array) -> float:
    """Root mean square of a vector's length."""
    return float(np.sqrt(np.mean(np.sum(signal**2, axis=1))))


def fit_nearest_rotation(a: Array, b: Array) -> tuple[Array, bool]:
    """The rotation R for which ``R a`` is nearest to b (Kabsch 1976), and whether it is told."""
    U, s, Vt = np.linalg.svd(b.T @ a)
    R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
    return R, bool(s[1] > AGREES * s[0])  # not about an axis about which alone it turned


def refuse_gravity_elsewhere(log: GeneralisedSamples, base: BaseMotion, gravity: Array) -> None:
    """Refuse accelerations of a base that do not have gravity where its orientation has it."""
    some = list_inner_samples(log)
    if base.still or not base.oriented or len(some) < LONG * log.rate:
        return
    found = average_specific_force(base, gravity, some)
    angle, size = measure_angle(found, -gravity), float(np.linalg.norm(found))
    pull = float(np.linalg.norm(gravity))
    if angle < TILTED and abs(size / pull - 1.0) < FLOATS:
        return
    if base.proper:
        hint = (
            f"imu_a is the specific force, which points upwards at rest ({pull:.3g} m/s^2); check "
            "its sign and unit, imu_rpy and quaternion"
        )
    else:
        hint = (
            "base_a is without gravity; check base_axes, or name it as imu_a if it is what an "
            "accelerometer gives"
        )
    raise InputError(
        f"{log.name}: on average the base's acceleration minus gravity is {size:.3g} m/s^2 and "
        f"{angle:.0f} degrees off the vertical; {hint}"
    )


def check_weight(idim: Idim, log: GeneralisedSamples, base: BaseMotion) -> tuple[str, ...]:
    """Compare measured contact forces with the robot's weight, while nothing else bears it."""
    robot = idim.robot
    some, words = choose_calm_samples(log, list_inner_samples(log, free=True))
    if not len(some):
        return ()
    lift = average_specific_force(base, robot.gravity, some)
    pull = float(np.linalg.norm(robot.gravity))
    if np.linalg.norm(lift) < FLOATS * pull:
        return ()  # it falls
    measured = [c for c in robot.contacts if c.name in log.wrenches]
    forces = [average_world_force(idim, log, contact, some) for contact in measured]
    total = np.sum(forces, axis=0) if forces else np.zeros(3)
    size, known = float(np.linalg.norm(total)), float(np.sum(robot.nominal[: robot.bodies, 0]))
    least = 0.1 * known * pull if robot.has_nominal else 0.0
    if size <= least and not any(contact.estimate for contact in measured):
        raise InputError(f"{log.name}: {words} {describe_missing_support(idim, log, measured)}")
    angle = measure_angle(total, lift)
    begun = f"{log.name}: {words} its contacts together"
    if angle > 180.0 - TILTED:
        if base.oriented and is_upside_down(idim, log, some):
            raise InputError(
                f"{begun} are above it and pull it down: by its orientation the robot is "
                "upside down; check quaternion"
            )
        also = "" if base.oriented else ", or check imu_a, which points upwards at rest"
        raise InputError(
            f"{begun} pull it down by {size:.4g} N: the log has what acts on the ground; set "
            f"sign = -1 in [[contact]]{also}"
        )
    if any(contact.estimate for contact in measured):
        return ()  # what they bear is not known to a sensor's error
    if angle > TILTED:
        raise InputError(
            f"{begun} push {angle:.0f} degrees off against its weight; "
            f"{describe_remedy(idim, log, measured, forces, some, lift)}"
        )
    left = measure_unborne_share(idim, log, some) if robot.has_nominal else 0.0
    axes = find_better_axes(idim, log, some, left)
    if axes is not None:
        raise InputError(
            f'{begun} do not carry it as the robot file predicts; with axes = "{axes}" in '
            "[[contact]] they would"
        )
    mass = size / float(np.linalg.norm(lift))
    if robot.has_nominal and not 1.0 / HEAVY < mass / known < HEAVY:
        return (
            f"{begun} carry {mass:.4g} kg, in the robot file it has {known:.4g}; check the unit of "
            "forces, and whether something else supports it",
        )
    if left > WRONG:
        return (
            f"{begun} differ by {100.0 * left:.0f} % from the wrench that the robot file predicts; "
            "unless it is that wrong, check their frames and signs, and whether one is missing",
        )
    return ()


def measure_borne_weight(idim: Idim, log: GeneralisedSamples) -> float | None:
    """What the contacts bear while the robot stands [kg]; None where they or that are unknown."""
    robot = idim.robot
    measured = [c for c in robot.contacts if c.name in log.wrenches]
    if not robot.floating or log.base is None or not log.base.oriented or not measured:
        return None
    some, _ = choose_calm_samples(log, list_inner_samples(log))
    if len(measured) < len(robot.contacts) or not len(some):
        return None
    if any(contact.estimate for contact in measured):
        return None
    lift = average_specific_force(log.base, robot.gravity, some)
    force = np.sum([average_world_force(idim, log, contact, some) for contact in measured], axis=0)
    return float(force @ lift / (lift @ lift))


def describe_missing_support(
    idim: Idim, log: GeneralisedSamples, measured: Sequence[Contact]
) -> str:
    """What is to be said of a robot that does not fall although nothing bears it."""
    contacts = [contact.name for contact in idim.robot.contacts]
    if not contacts:
        return "nothing supports the robot, which does not fall; name in [[contact]] what does"
    others = [name for name in contacts if name not in log.wrenches]
    if not others:
        return f"{', '.join(contacts)} carry none of the robot, which does not fall; check fx ..."
    hint = f"check contact_{others[0]}" if others[0] in log.touching else "raise contact_speed"
    rest = " and what is measured carries nothing" if measured else ""
    return (
        f"none of {', '.join(others)} is in contact by the log{rest}, but the robot does not fall; "
        f"{hint}, and name in [[contact]] whatever else supports it"
    )


def is_upside_down(idim: Idim, log: GeneralisedSamples, some: Integers) -> bool:
    """Whether the contacts are above the base."""
    assert log.base is not None
    up = -idim.robot.gravity
    heights = [
        (follow_contact(idim.tree, idim.robot, contact, log.q[some]).origin - log.q[some, :3]) @ up
        for contact in idim.robot.contacts
    ]
    return bool(np.mean(heights) > 0.0)


def average_world_force(
    idim: Idim, log: GeneralisedSamples, contact: Contact, some: Integers
) -> Array:
    """Mean force of a contact on the robot over some samples, in the world's axes [N]."""
    force = contact.sign * (log.wrenches[contact.name][some, :3] - contact.bias[:3])
    if contact.axes == "frame":
        turn = follow_contact(idim.tree, idim.robot, contact, log.q[some]).turn
        force = np.einsum("tij,tj->ti", turn, force)
    return np.asarray(np.mean(force, axis=0))


def measure_angle(a: Array, b: Array) -> float:
    """[deg]"""
    cosine = a @ b / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-300)
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def describe_remedy(
    idim: Idim,
    log: GeneralisedSamples,
    measured: Sequence[Contact],
    forces: Sequence[Array],
    some: Integers,
    up: Array,
) -> str:
    """Other axes under which the robot is borne; else the contact that is farthest off."""
    given = measure_unborne_share(idim, log, some) if idim.robot.has_nominal else 0.0
    axes = find_better_axes(idim, log, some, given)
    if axes is not None:
        return f'with axes = "{axes}" in [[contact]] they would fit'
    off = [measure_angle(force, up) for force in forces]
    worst = measured[int(np.argmax(off))]
    assert log.base is not None
    also = "" if log.base.oriented else "; or check imu_rpy"
    return (
        f"check the frame of {worst.name} ({worst.frame}), whose force is {max(off):.0f} degrees "
        f"off, and the signs of its columns{also}"
    )


def find_better_axes(
    idim: Idim, log: GeneralisedSamples, some: Integers, given: float
) -> str | None:
    """Axes of the contacts under which they bear the robot of the file far better, if any.

    `given` is the share that they do not bear as they are.
    """
    if log.base is None or not log.base.oriented:
        return None
    for axes in ("world", "frame"):
        if given > ODD and measure_unborne_share(idim, log, some, axes) < ODDS * given:
            return axes
    return None


def measure_unborne_share(
    idim: Idim, log: GeneralisedSamples, some: Integers, axes: str | None = None
) -> float:
    """Share of the base's wrench, by the robot file, that the contacts do not bear.

    Below `SMOOTH`, where accelerations are known; moments count by the length of the longest limb.
    """
    robot = idim.robot
    wanted, found = np.zeros((2, len(log.q), 6))
    for start, stop in log.runs:
        for a in range(start, stop, CHUNK):
            s = slice(a, min(a + CHUNK, stop))
            motion = log.q[s], log.dq[s], log.ddq[s]
            wanted[s] = evaluate_inverse_dynamics(idim.tree, robot.nominal, *motion)[:, :6]
            if axes is None:
                found[s] = log.tau[s, :6]
            for contact in robot.contacts if axes is not None else ():
                if contact.name in log.wrenches:
                    own = replace(contact, axes=axes)  # type: ignore[arg-type]
                    wrench = log.wrenches[contact.name][s]
                    found[s] += map_wrench_to_joints(idim.tree, robot, own, log.q[s], wrench)[:, :6]
        run = slice(start, stop)
        wanted[run] = filter_zero_phase(wanted[run], SMOOTH, log.rate)
        found[run] = filter_zero_phase(found[run], SMOOTH, log.rate)
    scale = np.repeat([1.0, 1.0 / max(robot.reach, 1e-3)], 3)
    left, whole = ((found - wanted)[some] * scale, wanted[some] * scale)
    return float(np.linalg.norm(left) / np.linalg.norm(whole))


def check_moving_contacts(idim: Idim, log: GeneralisedSamples) -> tuple[str, ...]:
    """Refuse contacts that are said to bear and move; note measured ones that bear and move."""
    assert log.base is not None
    if log.base.still or not np.any(log.base.twist[:, :3]):
        return ()
    some, sliding = list_inner_samples(log), {}
    for contact in idim.robot.contacts:
        bears = log.touching.get(contact.name)
        if bears is None:
            continue
        own = some[bears[some]]
        if not own.size:
            continue
        own = own[:: max(1, len(own) // MOST)]
        J = follow_contact(idim.tree, idim.robot, contact, log.q[own]).jacobian[:, :3]
        speed = float(np.median(np.linalg.norm(np.einsum("tij,tj->ti", J, log.dq[own]), axis=1)))
        if speed <= SLIPS * log.contact_speed:
            continue
        if contact.name not in log.wrenches:
            raise InputError(
                f"{log.name}: {contact.name} is marked as in contact (contact_{contact.name}) "
                f"while its frame moves at {speed:.2g} m/s; check the column, the frame of the "
                "contact and the base's motion; where it does slide, raise contact_speed"
            )
        sliding[contact.name] = speed
    if not sliding:
        return ()
    return (
        f"{log.name}: {', '.join(sliding)} {'slides' if len(sliding) == 1 else 'slide'} under load "
        f"at up to {max(sliding.values()):.2g} m/s; unless contacts do slide, check the base's "
        "motion (quaternion, position) and their frames",
    )
