"""Dynamics of one state in world axes: the steps that a rollout repeats.

Motions are ``[v, w]`` and forces ``[f, n]`` about one point that stands still: the world's
origin, or where a free-flying base is at that instant. No transformation is then needed
between bodies: composite inertias and forces are plain sums over subtrees (Featherstone
2008, chapters 5 and 6). Arrays belong to the caller: nothing is allocated here.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array
from dynident.core.bundle import Bundle
from dynident.core.jit import entry, inner, spliced
from dynident.dynamics.kinematics import write_rotation
from dynident.dynamics.tree import Tree


class BodyWorkspace(NamedTuple):
    """Room for the dynamics of one state, about the common point and in world axes."""

    R: Array
    p: Array
    """`R`, `p`: placements, shapes (bodies, 3, 3) and (bodies, 3)."""
    S: Array
    """Screw of each velocity, shape (dof, 6)."""
    V: Array
    A: Array
    F: Array
    """`V`, `A`, `F`: velocity, acceleration and force, shape (bodies, 6)."""
    own: Array
    C: Array
    """`own`, `C`: parameters of each body alone, and of all that it carries (composite), shape
    (bodies, 10)."""
    extra: Array
    """What the joints' accelerations add to A, shape (bodies, 6)."""
    B: Array
    T: Array
    """`B`, `T`: of `linearise_dynamics`, shapes (bodies, 12) and (3, dof, 6)."""
    f: Array
    motion: Array
    e: Array
    """`f`, `motion`, `e`: a force, a motion and a row of the regressor, shapes (6,), (9,) and (10,
    1)."""


def build_bodies(bodies: int, dof: int) -> BodyWorkspace:
    """Room for a tree of that size."""
    shapes = (
        (bodies, 3, 3), (bodies, 3), (dof, 6), (bodies, 6), (bodies, 6), (bodies, 6), (bodies, 10),
        (bodies, 10), (bodies, 6), (bodies, 12), (3, dof, 6), (6,), (9,), (10, 1),
    )  # fmt: skip
    return BodyWorkspace(*(np.zeros(shape) for shape in shapes))


class Workspaces(threading.local):
    """Rooms of one thread, by their size: a batch of one sample should not wait for them."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], Bundle] = {}


ROOMS = Workspaces()


def find_room(tree: Tree) -> Bundle:
    """Room for the bodies of a tree, for the kernel that this thread calls next."""
    size = tree.bodies, tree.dof
    if size not in ROOMS.made:
        ROOMS.made[size] = Bundle(build_bodies(*size))
    return ROOMS.made[size]


@inner
def move_free_base(gravity, q, dq, b, w):  # type: ignore[no-untyped-def]
    """Placement, screws, velocity and bias acceleration of a free-flying base, body b."""
    R, p, S, V, A = w.R, w.p, w.S, w.V, w.A
    write_rotation(q[3], q[4], q[5], q[6], b, R)
    for i in range(3):
        p[b, i] = 0.0
        V[b, i] = R[b, i, 0] * dq[0] + R[b, i, 1] * dq[1] + R[b, i, 2] * dq[2]
        V[b, 3 + i] = R[b, i, 0] * dq[3] + R[b, i, 1] * dq[4] + R[b, i, 2] * dq[5]
        A[b, i] = -gravity[i]
        A[b, 3 + i] = 0.0
        for k in range(3):
            S[k, i] = R[b, i, k]
            S[k, 3 + i] = 0.0
            S[3 + k, i] = 0.0
            S[3 + k, 3 + i] = R[b, i, k]


@spliced
def place_body(tree, b, value, R, p):  # type: ignore[no-untyped-def]
    """Placement of body b on its parent, its joint at `value`."""
    up, rotation = tree.parent[b], tree.rotation[b]
    t0, t1, t2 = tree.translation[b, 0], tree.translation[b, 1], tree.translation[b, 2]
    sine, versine = 0.0, 0.0
    if tree.kind[b] == 0:
        sine, versine = np.sin(value), 1.0 - np.cos(value)
    else:
        x0, x1, x2 = tree.axis[b, 0], tree.axis[b, 1], tree.axis[b, 2]
        t0 += value * (rotation[0, 0, 0] * x0 + rotation[0, 0, 1] * x1 + rotation[0, 0, 2] * x2)
        t1 += value * (rotation[0, 1, 0] * x0 + rotation[0, 1, 1] * x1 + rotation[0, 1, 2] * x2)
        t2 += value * (rotation[0, 2, 0] * x0 + rotation[0, 2, 1] * x1 + rotation[0, 2, 2] * x2)
    if up < 0:
        p[b, 0], p[b, 1], p[b, 2] = t0, t1, t2
    else:
        for i in range(3):
            p[b, i] = p[up, i] + R[up, i, 0] * t0 + R[up, i, 1] * t1 + R[up, i, 2] * t2
    for j in range(3):
        r0 = rotation[0, 0, j] + sine * rotation[1, 0, j] + versine * rotation[2, 0, j]
        r1 = rotation[0, 1, j] + sine * rotation[1, 1, j] + versine * rotation[2, 1, j]
        r2 = rotation[0, 2, j] + sine * rotation[1, 2, j] + versine * rotation[2, 2, j]
        if up < 0:
            R[b, 0, j], R[b, 1, j], R[b, 2, j] = r0, r1, r2
        else:
            for i in range(3):
                R[b, i, j] = R[up, i, 0] * r0 + R[up, i, 1] * r1 + R[up, i, 2] * r2


@spliced
def write_screw(tree, b, R, p, S):  # type: ignore[no-untyped-def]
    """Screw of the joint of body b, which is placed."""
    c, x0, x1, x2 = tree.row[b], tree.axis[b, 0], tree.axis[b, 1], tree.axis[b, 2]
    z0 = R[b, 0, 0] * x0 + R[b, 0, 1] * x1 + R[b, 0, 2] * x2
    z1 = R[b, 1, 0] * x0 + R[b, 1, 1] * x1 + R[b, 1, 2] * x2
    z2 = R[b, 2, 0] * x0 + R[b, 2, 1] * x1 + R[b, 2, 2] * x2
    if tree.kind[b] == 0:
        S[c, 0] = p[b, 1] * z2 - p[b, 2] * z1
        S[c, 1] = p[b, 2] * z0 - p[b, 0] * z2
        S[c, 2] = p[b, 0] * z1 - p[b, 1] * z0
        S[c, 3], S[c, 4], S[c, 5] = z0, z1, z2
    else:
        S[c, 0], S[c, 1], S[c, 2] = z0, z1, z2
        S[c, 3], S[c, 4], S[c, 5] = 0.0, 0.0, 0.0


@inner
def place_bodies(tree, q, still, w):  # type: ignore[no-untyped-def]
    """Placements and screws of all bodies, where nothing else is asked for."""
    floating = 0
    for b in range(len(tree.kind)):
        if tree.kind[b] == 2:
            move_free_base(tree.gravity, q, still, b, w)
            floating = 6
        else:
            place_body(tree, b, q[b + floating], w.R, w.p)
            write_screw(tree, b, w.R, w.p, w.S)


@entry
def move_bodies(tree, phi, q, dq, w):  # type: ignore[no-untyped-def]
    """Placements, screws, velocities, bias accelerations, forces and inertias of all bodies.

    Fills R, p, S, V, A (with ddq = 0; minus gravity in it), F (on each body alone) and own.
    """
    kind, parent, gravity = tree.kind, tree.parent, tree.gravity
    R, p, S, V, A = w.R, w.p, w.S, w.V, w.A
    joint = 0
    for b in range(len(kind)):
        up = parent[b]
        if kind[b] == 2:
            move_free_base(gravity, q, dq, b, w)
            joint = 7
        else:
            place_body(tree, b, q[joint], R, p)
            write_screw(tree, b, R, p, S)
            joint += 1
            c = tree.row[b]
            rate = dq[c]
            l0, l1, l2 = S[c, 0] * rate, S[c, 1] * rate, S[c, 2] * rate
            z0, z1, z2 = S[c, 3] * rate, S[c, 4] * rate, S[c, 5] * rate
            if up < 0:
                V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5] = l0, l1, l2, z0, z1, z2
                for i in range(3):
                    A[b, i], A[b, 3 + i] = -gravity[i], 0.0
            else:
                v0, v1, v2 = V[up, 0], V[up, 1], V[up, 2]
                w0, w1, w2 = V[up, 3], V[up, 4], V[up, 5]
                # V x S dq: the motion of the parent turns the screw
                A[b, 0] = A[up, 0] + w1 * l2 - w2 * l1 + v1 * z2 - v2 * z1
                A[b, 1] = A[up, 1] + w2 * l0 - w0 * l2 + v2 * z0 - v0 * z2
                A[b, 2] = A[up, 2] + w0 * l1 - w1 * l0 + v0 * z1 - v1 * z0
                A[b, 3] = A[up, 3] + w1 * z2 - w2 * z1
                A[b, 4] = A[up, 4] + w2 * z0 - w0 * z2
                A[b, 5] = A[up, 5] + w0 * z1 - w1 * z0
                V[b, 0], V[b, 1], V[b, 2] = v0 + l0, v1 + l1, v2 + l2
                V[b, 3], V[b, 4], V[b, 5] = w0 + z0, w1 + z1, w2 + z2
        write_inertia_in_world(phi, R, p, b, w.own)
        write_body_force(w.own, V, A, b, w.F)


@inner
def write_inertia_in_world(phi, R, p, b, own):  # type: ignore[no-untyped-def]
    """Body b's ten parameters about the common point, in world axes."""
    m = phi[b, 0]
    r0, r1, r2 = p[b, 0], p[b, 1], p[b, 2]
    h0 = R[b, 0, 0] * phi[b, 1] + R[b, 0, 1] * phi[b, 2] + R[b, 0, 2] * phi[b, 3]
    h1 = R[b, 1, 0] * phi[b, 1] + R[b, 1, 1] * phi[b, 2] + R[b, 1, 2] * phi[b, 3]
    h2 = R[b, 2, 0] * phi[b, 1] + R[b, 2, 1] * phi[b, 2] + R[b, 2, 2] * phi[b, 3]
    hr = 2.0 * (h0 * r0 + h1 * r1 + h2 * r2) + m * (r0 * r0 + r1 * r1 + r2 * r2)
    index = 4
    for i in range(3):
        x = R[b, i, 0] * phi[b, 4] + R[b, i, 1] * phi[b, 5] + R[b, i, 2] * phi[b, 7]
        y = R[b, i, 0] * phi[b, 5] + R[b, i, 1] * phi[b, 6] + R[b, i, 2] * phi[b, 8]
        z = R[b, i, 0] * phi[b, 7] + R[b, i, 1] * phi[b, 8] + R[b, i, 2] * phi[b, 9]
        hi = h0 if i == 0 else (h1 if i == 1 else h2)
        for j in range(i + 1):
            hj = h0 if j == 0 else (h1 if j == 1 else h2)
            own[b, index] = (
                x * R[b, j, 0]
                + y * R[b, j, 1]
                + z * R[b, j, 2]
                - hi * p[b, j]
                - hj * p[b, i]
                - m * p[b, i] * p[b, j]
            )
            index += 1
    # order xx, xy, yy, xz, yz, zz: the diagonal takes 2 h.r + m r.r besides
    own[b, 4] += hr
    own[b, 6] += hr
    own[b, 9] += hr
    own[b, 0] = m
    own[b, 1] = h0 + m * r0
    own[b, 2] = h1 + m * r1
    own[b, 3] = h2 + m * r2


@inner
def write_body_force(own, V, A, b, F):  # type: ignore[no-untyped-def]
    """``I A + V x* (I V)`` of one body, into F[b]."""
    m, h0, h1, h2 = own[b, 0], own[b, 1], own[b, 2], own[b, 3]
    xx, xy, yy, xz, yz, zz = own[b, 4], own[b, 5], own[b, 6], own[b, 7], own[b, 8], own[b, 9]
    v0, v1, v2, w0, w1, w2 = V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5]
    f0 = m * v0 + w1 * h2 - w2 * h1
    f1 = m * v1 + w2 * h0 - w0 * h2
    f2 = m * v2 + w0 * h1 - w1 * h0
    n0 = xx * w0 + xy * w1 + xz * w2 + h1 * v2 - h2 * v1
    n1 = xy * w0 + yy * w1 + yz * w2 + h2 * v0 - h0 * v2
    n2 = xz * w0 + yz * w1 + zz * w2 + h0 * v1 - h1 * v0
    a0, a1, a2, e0, e1, e2 = A[b, 0], A[b, 1], A[b, 2], A[b, 3], A[b, 4], A[b, 5]
    F[b, 0] = m * a0 + e1 * h2 - e2 * h1 + w1 * f2 - w2 * f1
    F[b, 1] = m * a1 + e2 * h0 - e0 * h2 + w2 * f0 - w0 * f2
    F[b, 2] = m * a2 + e0 * h1 - e1 * h0 + w0 * f1 - w1 * f0
    F[b, 3] = (
        xx * e0 + xy * e1 + xz * e2 + h1 * a2 - h2 * a1 + w1 * n2 - w2 * n1 + v1 * f2 - v2 * f1
    )
    F[b, 4] = (
        xy * e0 + yy * e1 + yz * e2 + h2 * a0 - h0 * a2 + w2 * n0 - w0 * n2 + v2 * f0 - v0 * f2
    )
    F[b, 5] = (
        xz * e0 + yz * e1 + zz * e2 + h0 * a1 - h1 * a0 + w0 * n1 - w1 * n0 + v0 * f1 - v1 * f0
    )


@inner
def apply_inertia(c, S, k, f):  # type: ignore[no-untyped-def]
    """``I S_k``: the force that gives composite body c (ten numbers) the motion S_k."""
    m, h0, h1, h2 = c[0], c[1], c[2], c[3]
    l0, l1, l2, s0, s1, s2 = S[k, 0], S[k, 1], S[k, 2], S[k, 3], S[k, 4], S[k, 5]
    f[0] = m * l0 + s1 * h2 - s2 * h1
    f[1] = m * l1 + s2 * h0 - s0 * h2
    f[2] = m * l2 + s0 * h1 - s1 * h0
    f[3] = c[4] * s0 + c[5] * s1 + c[7] * s2 + h1 * l2 - h2 * l1
    f[4] = c[5] * s0 + c[6] * s1 + c[8] * s2 + h2 * l0 - h0 * l2
    f[5] = c[7] * s0 + c[8] * s1 + c[9] * s2 + h0 * l1 - h1 * l0


@inner
def project_force(S, k, f):  # type: ignore[no-untyped-def]
    """``S_k^T f``: what a force does along a screw."""
    return (
        S[k, 0] * f[0]
        + S[k, 1] * f[1]
        + S[k, 2] * f[2]
        + S[k, 3] * f[3]
        + S[k, 4] * f[4]
        + S[k, 5] * f[5]
    )


@inner
def gather_subtrees(tree, w, M, tau):  # type: ignore[no-untyped-def]
    """Composite inertias C, joint-space mass matrix M and the torques of the forces F.

    F becomes the force on each subtree. M is written whole.
    """
    kind, parent, row, path, path_length = (
        tree.kind, tree.parent, tree.row, tree.path, tree.path_length
    )  # fmt: skip
    S, F, own, C, f = w.S, w.F, w.own, w.C, w.f
    bodies = len(kind)
    for i in range(len(M)):
        for j in range(len(M)):
            M[i, j] = 0.0
    for b in range(bodies):
        for i in range(10):
            C[b, i] = own[b, i]
    for b in range(bodies - 1, -1, -1):
        up = parent[b]
        if up >= 0:
            for i in range(10):
                C[up, i] += C[b, i]
            for i in range(6):
                F[up, i] += F[b, i]
        for k in range(row[b], row[b] + (6 if kind[b] == 2 else 1)):
            apply_inertia(C[b], S, k, f)
            tau[k] = project_force(S, k, F[b])
            for j in range(path_length[b]):
                c = path[b, j]
                value = project_force(S, c, f)
                M[c, k] = value
                M[k, c] = value


@inner
def accelerate_bodies(tree, ddq, w):  # type: ignore[no-untyped-def]
    """Add ``S ddq`` to the accelerations; F becomes the force on each subtree again."""
    kind, parent, row = tree.kind, tree.parent, tree.row
    S, V, own, extra, A, F = w.S, w.V, w.own, w.extra, w.A, w.F
    bodies = len(kind)
    for b in range(bodies):
        up = parent[b]
        for i in range(6):
            extra[b, i] = extra[up, i] if up >= 0 else 0.0
        for k in range(row[b], row[b] + (6 if kind[b] == 2 else 1)):
            for i in range(6):
                extra[b, i] += S[k, i] * ddq[k]
        for i in range(6):
            A[b, i] += extra[b, i]
        write_body_force(own, V, A, b, F)
    for b in range(bodies - 1, 0, -1):
        up = parent[b]
        if up >= 0:
            for i in range(6):
                F[up, i] += F[b, i]
