"""Jacobians of frames on the robot's bodies: how wrenches of the world act on its equations.

``Y x = S^T tau + sum_l J_l^T f_l`` (the notes on FloBaRoID, "Identification").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.bundle import keep_bundle
from dynident.core.jit import entry
from dynident.dynamics.forward import bundle_states
from dynident.dynamics.inverse import evaluate_body_motion
from dynident.dynamics.spatial import find_room, place_bodies
from dynident.dynamics.tree import FREE_FLYER, Tree
from dynident.robot.model import Contact, Robot
from dynident.robot.rotations import compute_lever_acceleration


class FrameMotion(NamedTuple):
    """A frame along a motion of the robot."""

    jacobian: Array
    """Velocity of its origin, then angular velocity, both in the frame's axes, shape (samples, 6,
    dof)."""
    turn: Array
    """From the frame's axes to the world's (a fixed robot's base), shape (samples, 3, 3)."""
    origin: Array
    """In the world [m], shape (samples, 3)."""


@entry
def _fill_frame_motion(tree, motion, body, F, d, w, J, turn, origin):  # type: ignore[no-untyped-def]
    """Motion of the frame (F, d) on a body, about the common point: see `follow_frame`."""
    R, p, S, path = w.R, w.p, w.S, tree.path
    for t in range(len(motion.q)):
        place_bodies(tree, motion.q[t], motion.dq[t], w)
        for i in range(3):
            r0, r1, r2 = R[body, i, 0], R[body, i, 1], R[body, i, 2]
            origin[t, i] = p[body, i] + r0 * d[0] + r1 * d[1] + r2 * d[2]
            for k in range(3):
                turn[t, i, k] = r0 * F[0, k] + r1 * F[1, k] + r2 * F[2, k]
        o0, o1, o2 = origin[t, 0], origin[t, 1], origin[t, 2]
        for n in range(tree.path_length[body]):
            k = path[body, n]
            s0, s1, s2 = S[k, 3], S[k, 4], S[k, 5]
            l0 = S[k, 0] + s1 * o2 - s2 * o1
            l1 = S[k, 1] + s2 * o0 - s0 * o2
            l2 = S[k, 2] + s0 * o1 - s1 * o0
            for i in range(3):
                x, y, z = turn[t, 0, i], turn[t, 1, i], turn[t, 2, i]
                J[t, i, k] = x * l0 + y * l1 + z * l2
                J[t, 3 + i, k] = x * s0 + y * s1 + z * s2


def follow_frame(
    tree: Tree, body: int, rotation: Array, translation: Array, q: Array
) -> FrameMotion:
    """A frame on a body of the tree along a motion q, shape (samples, nq).

    Rotation (3, 3) and translation (3,) place it in the body's [m].
    """
    still = np.zeros((len(q), tree.dof))
    found = FrameMotion(
        np.zeros((len(q), 6, tree.dof)), np.empty((len(q), 3, 3)), np.empty((len(q), 3))
    )
    _fill_frame_motion(
        keep_bundle(tree), bundle_states(q, still, still), body,
        *to_kernel_arrays(rotation, translation), find_room(tree), *found,
    )  # fmt: skip
    if tree.kind[0] == FREE_FLYER:  # about which all is, wherever it is
        found.origin[:] += q[:, :3]
    return found


def follow_contact(tree: Tree, robot: Robot, contact: Contact, q: Array) -> FrameMotion:
    """The frame of a contact along a motion."""
    body = robot.body_index(contact.body)
    return follow_frame(tree, body, contact.rotation, contact.translation, q)


def follow_touch(tree: Tree, robot: Robot, contact: Contact, q: Array) -> FrameMotion:
    """Where a contact touches along a motion: its frame, or the lowest point of its ball.

    The ball rolls: the point is always another one of the body, ``v = v_o + omega x r``.
    """
    motion, weight = follow_contact(tree, robot, contact, q), float(np.linalg.norm(robot.gravity))
    if contact.radius == 0.0 or weight == 0.0:
        return motion
    down = contact.radius / weight * robot.gravity
    arm = np.einsum("tji,j->ti", motion.turn, down)[:, :, None]
    linear, angular = np.split(motion.jacobian, 2, axis=1)
    moved = np.concatenate([linear + np.cross(angular, arm, axis=1), angular], axis=1)
    return FrameMotion(moved, motion.turn, motion.origin + down)


def map_wrench_to_joints(
    tree: Tree, robot: Robot, contact: Contact, q: Array, wrench: Array
) -> Array:
    """``J^T f`` of a contact's wrench as it was logged, shape (samples, dof).

    The wrench is in the contact's `axes`, shape (samples, 3 or 6) [N, Nm].
    """
    return apply_levers(evaluate_levers(tree, robot, contact, q), contact, wrench)


def apply_levers(J: Array, contact: Contact, wrench: Array) -> Array:
    """The same where the contact's `evaluate_levers` are at hand, (samples, components, dof)."""
    return np.asarray(np.einsum("tij,ti->tj", J, wrench - contact.bias[: contact.components]))


def evaluate_levers(tree: Tree, robot: Robot, contact: Contact, q: Array) -> Array:
    """What units of a contact's components, as they are logged, do, (samples, components, dof)."""
    motion = follow_contact(tree, robot, contact, q)
    J = contact.sign * motion.jacobian[:, : contact.components]
    if contact.axes == "world":
        parts = J.reshape(len(q), -1, 3, tree.dof)
        J = (motion.turn[:, None] @ parts).reshape(J.shape)
    return np.asarray(J)


def build_tilt_columns(J: Array, contact: Contact, wrench: Array) -> Array:
    """What a sensor that is turned by a small angle misses, per axis, shape (samples, 3, dof).

    The wrench in the stated axes is ``f + r x f``, force and moment alike: ``J^T [f]_x`` per angle
    on the side of the parameters [Nm/rad, N/rad]. J is of `evaluate_levers`, the wrench as it was
    logged, shape (samples, components) [N, Nm].
    """
    parts = (wrench - contact.bias[: contact.components]).reshape(len(wrench), 1, -1, 3)
    turned = np.cross(np.eye(3)[None, :, None], parts).reshape(len(wrench), 3, -1)
    return np.asarray(-turned @ J)


def evaluate_seat_motion(
    tree: Tree, robot: Robot, seat: Contact, motion: tuple[Array, Array, Array]
) -> Array:
    """Motion of a frame, the seat, on a robot, in the frame's axes, shape (samples, 9).

    Angular velocity, angular acceleration, and the proper acceleration of its origin (minus
    gravity) [rad/s, rad/s^2, m/s^2].
    """
    body = robot.body_index(seat.body)
    if body < 0:  # on a fixed base
        found = np.zeros((len(motion[0]), 9))
        found[:, 6:] = -robot.gravity
    else:
        found = evaluate_body_motion(tree, body, *motion)
    w, al, a = found[:, :3], found[:, 3:6], found[:, 6:]
    a += compute_lever_acceleration(w, al, np.broadcast_to(seat.translation, w.shape))
    return np.asarray(np.hstack([x @ seat.rotation for x in (w, al, a)]))
