"""Jacobians of frames on the robot's bodies: how wrenches of the world act on its equations.

``Y x = S^T tau + sum_l J_l^T f_l`` (the notes on FloBaRoID, "Identification").
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers, to_kernel_arrays
from dynident.core.bundle import keep_bundle
from dynident.core.jit import jit
from dynident.dynamics.kinematics import (
    evaluate_joint_functions,
    write_base_motion,
    write_base_rotation,
    write_body_motion,
    write_joint_placement,
)
from dynident.dynamics.tree import Tree
from dynident.robot.model import Contact, Robot


class FrameMotion(NamedTuple):
    """A frame along a motion of the robot.

    Attributes
    ----------
    jacobian : ndarray, shape (samples, 6, dof)
        Velocity of its origin, then angular velocity, both in the frame's axes.
    turn : ndarray, shape (samples, 3, 3)
        From the frame's axes to the world's (a fixed robot's base).
    origin : ndarray, shape (samples, 3)
        In the world [m].
    """

    jacobian: Array
    turn: Array
    origin: Array


@jit
def fill_frame_motion(  # type: ignore[no-untyped-def]
    tree, quaternion, place, position, trigonometry, chain, F, d, J, turn, origin
):
    """Jacobian of the frame (F, d) on the last body of a chain: see `follow_frame`."""
    kind, row, axis, rotation, translation = (
        tree.kind,
        tree.row,
        tree.axis,
        tree.rotation,
        tree.translation,
    )
    bodies = len(kind)
    floating = quaternion.shape[1] == 4
    R = np.empty((bodies, 3, 3))
    p = np.empty((bodies, 3))
    columns = J.shape[2]
    sl = np.zeros((columns, 3))
    sa = np.zeros((columns, 3))
    W = np.empty((3, 3))
    T = np.empty((3, 3))
    o = np.empty(3)
    for t in range(len(position)):
        for k in range(columns):
            for i in range(3):
                sl[k, i] = 0.0
                sa[k, i] = 0.0
        for i in range(3):
            o[i] = 0.0
            for j in range(3):
                W[i, j] = 1.0 if i == j else 0.0
        for c in range(len(chain)):
            b = chain[c]
            if kind[b] == 2:
                write_base_rotation(quaternion, t, R)
                for i in range(3):
                    o[i] = place[t, i]
                    sl[i, i] = 1.0
                    sa[3 + i, i] = 1.0
                    for j in range(3):
                        W[i, j] = R[0, i, j]
                continue
            j = b - 1 if floating else b
            s, v = trigonometry[t, 0, j], trigonometry[t, 1, j]
            write_joint_placement(
                b, kind[b], rotation, translation, axis, s, v, position[t, j], R, p
            )
            for i in range(3):
                for k in range(3):
                    o[i] += W[i, k] * p[b, k]
                    T[i, k] = W[i, 0] * R[b, 0, k] + W[i, 1] * R[b, 1, k] + W[i, 2] * R[b, 2, k]
            for i in range(3):
                for k in range(3):
                    W[i, k] = T[i, k]
            for k in range(columns):
                x, y, z = sa[k, 0], sa[k, 1], sa[k, 2]
                u = sl[k, 0] + y * p[b, 2] - z * p[b, 1]
                v = sl[k, 1] + z * p[b, 0] - x * p[b, 2]
                w = sl[k, 2] + x * p[b, 1] - y * p[b, 0]
                for i in range(3):
                    sa[k, i] = R[b, 0, i] * x + R[b, 1, i] * y + R[b, 2, i] * z
                    sl[k, i] = R[b, 0, i] * u + R[b, 1, i] * v + R[b, 2, i] * w
            for i in range(3):
                if kind[b] == 0:
                    sa[row[b], i] = axis[b, i]
                else:
                    sl[row[b], i] = axis[b, i]
        for k in range(columns):
            x, y, z = sa[k, 0], sa[k, 1], sa[k, 2]
            u = sl[k, 0] + y * d[2] - z * d[1]
            v = sl[k, 1] + z * d[0] - x * d[2]
            w = sl[k, 2] + x * d[1] - y * d[0]
            for i in range(3):
                J[t, i, k] = F[0, i] * u + F[1, i] * v + F[2, i] * w
                J[t, 3 + i, k] = F[0, i] * x + F[1, i] * y + F[2, i] * z
        for i in range(3):
            origin[t, i] = o[i] + W[i, 0] * d[0] + W[i, 1] * d[1] + W[i, 2] * d[2]
            for k in range(3):
                turn[t, i, k] = W[i, 0] * F[0, k] + W[i, 1] * F[1, k] + W[i, 2] * F[2, k]


def list_chain_bodies(tree: Tree, body: int) -> Integers:
    """Bodies from the root to one, in this order."""
    found = []
    while body >= 0:
        found.append(body)
        body = int(tree.parent[body])
    return np.array(found[::-1])


def follow_frame(
    tree: Tree, body: int, rotation: Array, translation: Array, q: Array
) -> FrameMotion:
    """A frame on a body of the tree along a motion q, shape (samples, nq).

    Rotation (3, 3) and translation (3,) place it in the body's [m].
    """
    samples, floating = len(q), bool(tree.kind[0] == 2)
    found = FrameMotion(
        np.empty((samples, 6, tree.dof)), np.empty((samples, 3, 3)), np.empty((samples, 3))
    )
    quaternion, position, trigonometry = evaluate_joint_functions(q, floating)
    (place,) = to_kernel_arrays(q[:, :3] if floating else q[:, :0])
    chain, seat = list_chain_bodies(tree, body), to_kernel_arrays(rotation, translation)
    fill_frame_motion(
        keep_bundle(tree), quaternion, place, position, trigonometry, chain, *seat, *found
    )
    return found


def follow_contact(tree: Tree, robot: Robot, contact: Contact, q: Array) -> FrameMotion:
    """The frame of a contact along a motion."""
    body = robot.body_index(contact.body)
    return follow_frame(tree, body, contact.rotation, contact.translation, q)


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


@jit
def fill_chain_motion(tree, quaternion, position, trigonometry, dq, ddq, chain, out):  # type: ignore[no-untyped-def]
    """Motion of the last body of a chain: see `evaluate_seat_motion`."""
    kind, parent, row, axis, g = tree.kind, tree.parent, tree.row, tree.axis, tree.gravity
    rotation, translation = tree.rotation, tree.translation
    bodies = len(kind)
    floating = quaternion.shape[1] == 4
    R = np.empty((bodies, 3, 3))
    p = np.empty((bodies, 3))
    w = np.empty((bodies, 3))
    al = np.empty((bodies, 3))
    a = np.empty((bodies, 3))
    last = chain[-1]
    for t in range(len(position)):
        for c in range(len(chain)):
            b = chain[c]
            if kind[b] == 2:
                write_base_rotation(quaternion, t, R)
                write_base_motion(t, g, dq, ddq, R, w, al, a)
                continue
            j = b - 1 if floating else b
            s, v = trigonometry[t, 0, j], trigonometry[t, 1, j]
            write_joint_placement(
                b, kind[b], rotation, translation, axis, s, v, position[t, j], R, p
            )
            rate, acceleration = dq[t, row[b]], ddq[t, row[b]]
            write_body_motion(b, parent[b], kind[b], axis, g, R, p, rate, acceleration, w, al, a)
        for i in range(3):
            out[t, i], out[t, 3 + i], out[t, 6 + i] = w[last, i], al[last, i], a[last, i]


def evaluate_seat_motion(
    tree: Tree, robot: Robot, seat: Contact, motion: tuple[Array, Array, Array]
) -> Array:
    """Motion of a frame, the seat, on a robot, in the frame's axes, shape (samples, 9).

    Angular velocity, angular acceleration, and the proper acceleration of its origin (minus
    gravity) [rad/s, rad/s^2, m/s^2].
    """
    q, dq, ddq = motion
    floating = bool(tree.kind[0] == 2)
    body = robot.body_index(seat.body)
    found = np.zeros((len(q), 9))
    if body < 0:  # on a fixed base
        found[:, 6:] = -robot.gravity
    else:
        functions = evaluate_joint_functions(q, floating)
        fill_chain_motion(
            keep_bundle(tree),
            *functions,
            *to_kernel_arrays(dq, ddq),
            list_chain_bodies(tree, body),
            found,
        )
    w, al, a = found[:, :3], found[:, 3:6], found[:, 6:]
    lever = np.broadcast_to(seat.translation, w.shape)
    a += np.cross(al, lever) + np.cross(w, np.cross(w, lever))
    return np.asarray(np.hstack([x @ seat.rotation for x in (w, al, a)]))
