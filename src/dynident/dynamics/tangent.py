"""Derivatives of the inverse dynamics and its regressor at one state, in world axes.

The derivatives are those of Singh, Russell and Wensing (2022), whose 6x6 matrix B of a body
shrinks to twelve numbers about a fixed point::

    B [l, s] = [s x P, -D s],   P = m v + w x h,   D = [w]x Sigma + [h]x [v]x

(the columns of the linear part vanish by Jacobi's identity; ``Sigma = tr(C)/2 - I``).
"""

from __future__ import annotations

from dynident.core.jit import inner
from dynident.dynamics.regressor import fill_screw_entries
from dynident.dynamics.spatial import apply_inertia, project_force


@inner
def cross_screw(V, b, S, k, out):  # type: ignore[no-untyped-def]
    """``V_b x S_k`` of two motions."""
    v0, v1, v2, w0, w1, w2 = V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5]
    l0, l1, l2, s0, s1, s2 = S[k, 0], S[k, 1], S[k, 2], S[k, 3], S[k, 4], S[k, 5]
    out[k, 0] = w1 * l2 - w2 * l1 + v1 * s2 - v2 * s1
    out[k, 1] = w2 * l0 - w0 * l2 + v2 * s0 - v0 * s2
    out[k, 2] = w0 * l1 - w1 * l0 + v0 * s1 - v1 * s0
    out[k, 3] = w1 * s2 - w2 * s1
    out[k, 4] = w2 * s0 - w0 * s2
    out[k, 5] = w0 * s1 - w1 * s0


@inner
def fill_rate_matrices(own, V, B):  # type: ignore[no-untyped-def]
    """P and D of each body, twelve numbers, from its inertia and its motion about the origin."""
    for b in range(len(own)):
        # Sigma = tr(I)/2 - I of the inertia about the world's origin; then P and D, see above
        m, h0, h1, h2 = own[b, 0], own[b, 1], own[b, 2], own[b, 3]
        half = 0.5 * (own[b, 4] + own[b, 6] + own[b, 9])
        xx, yy, zz = half - own[b, 4], half - own[b, 6], half - own[b, 9]
        xy, xz, yz = -own[b, 5], -own[b, 7], -own[b, 8]
        v0, v1, v2, w0, w1, w2 = V[b, 0], V[b, 1], V[b, 2], V[b, 3], V[b, 4], V[b, 5]
        hv = h0 * v0 + h1 * v1 + h2 * v2
        B[b, 0] = m * v0 + w1 * h2 - w2 * h1
        B[b, 1] = m * v1 + w2 * h0 - w0 * h2
        B[b, 2] = m * v2 + w0 * h1 - w1 * h0
        B[b, 3] = w1 * xz - w2 * xy + v0 * h0 - hv
        B[b, 4] = w1 * yz - w2 * yy + v0 * h1
        B[b, 5] = w1 * zz - w2 * yz + v0 * h2
        B[b, 6] = w2 * xx - w0 * xz + v1 * h0
        B[b, 7] = w2 * xy - w0 * yz + v1 * h1 - hv
        B[b, 8] = w2 * xz - w0 * zz + v1 * h2
        B[b, 9] = w0 * xy - w1 * xx + v2 * h0
        B[b, 10] = w0 * yy - w1 * xy + v2 * h1
        B[b, 11] = w0 * yz - w1 * xz + v2 * h2 - hv


@inner
def differentiate_screws(tree, w):  # type: ignore[no-untyped-def]
    """Of every velocity psi', psi'' and psi' + S', into T: how its screw moves with its parent.

    ``psi' = V_p x S`` and ``psi'' = A_p x S + V_p x psi'`` with the motion of the parent body p,
    ``S' = V_b x S``, which is psi' of a single joint.
    """
    kind, parent, row, gravity = tree.kind, tree.parent, tree.row, tree.gravity
    S, V, A, T = w.S, w.V, w.A, w.T
    first, second, rate = T[0], T[1], T[2]
    for b in range(len(kind)):
        up = parent[b]
        for k in range(row[b], row[b] + (6 if kind[b] == 2 else 1)):
            if up >= 0:
                cross_screw(V, up, S, k, first)
                cross_screw(V, up, first, k, second)
                cross_screw(A, up, S, k, rate)
                for i in range(6):
                    second[k, i] += rate[k, i]
                    rate[k, i] = 2.0 * first[k, i]
            else:
                s0, s1, s2 = S[k, 3], S[k, 4], S[k, 5]
                for i in range(6):
                    first[k, i] = second[k, i] = rate[k, i] = 0.0
                second[k, 0] = gravity[2] * s1 - gravity[1] * s2
                second[k, 1] = gravity[0] * s2 - gravity[2] * s0
                second[k, 2] = gravity[1] * s0 - gravity[0] * s1
                if kind[b] == 2:
                    cross_screw(V, b, S, k, rate)


@inner
def linearise_dynamics(tree, w, K, D):  # type: ignore[no-untyped-def]
    """Derivatives of the inverse dynamics: ``K = d tau / d q`` and ``D = d tau / d dq``.

    After `accelerate_bodies`: A with ddq in it, F the forces on subtrees, C composite inertias.
    Of a free-flying base q moves along its own axes. Singh, Russell and Wensing (2022), eq. (29)
    to (32).
    """
    kind, parent, row = tree.kind, tree.parent, tree.row
    path, path_length = tree.path, tree.path_length
    S, F, C, B, T, f = w.S, w.F, w.C, w.B, w.T, w.f
    fill_rate_matrices(w.own, w.V, B)
    differentiate_screws(tree, w)
    first, second, rate = T[0], T[1], T[2]
    K[:] = 0.0
    D[:] = 0.0
    for b in range(len(kind) - 1, -1, -1):  # B of a subtree, as C, once its bodies are in
        up = parent[b]
        if up >= 0:
            for i in range(12):
                B[up, i] += B[b, i]
        width = 6 if kind[b] == 2 else 1
        p0, p1, p2 = B[b, 0], B[b, 1], B[b, 2]
        for k in range(row[b], row[b] + width):
            apply_inertia(C[b], S, k, f)
            l0, l1, l2, s0, s1, s2 = S[k, 0], S[k, 1], S[k, 2], S[k, 3], S[k, 4], S[k, 5]
            r0 = 2.0 * (p1 * l2 - p2 * l1 - B[b, 3] * s0 - B[b, 6] * s1 - B[b, 9] * s2)
            r1 = 2.0 * (p2 * l0 - p0 * l2 - B[b, 4] * s0 - B[b, 7] * s1 - B[b, 10] * s2)
            r2 = 2.0 * (p0 * l1 - p1 * l0 - B[b, 5] * s0 - B[b, 8] * s1 - B[b, 11] * s2)
            for n in range(path_length[b]):
                j = path[b, n]
                a = r0 * first[j, 3] + r1 * first[j, 4] + r2 * first[j, 5]
                d = r0 * S[j, 3] + r1 * S[j, 4] + r2 * S[j, 5]
                for i in range(6):
                    a += f[i] * second[j, i]
                    d += f[i] * rate[j, i]
                K[k, j] = a
                D[k, j] = d
            if path_length[b] == width:
                continue
            # how the joints below it feel this one move
            apply_inertia(C[b], second, k, f)
            c0, c1, c2 = first[k, 3], first[k, 4], first[k, 5]
            g0, g1, g2 = F[b, 0], F[b, 1], F[b, 2]
            n0, n1, n2 = F[b, 3], F[b, 4], F[b, 5]
            f[0] += 2.0 * (c1 * p2 - c2 * p1) + s1 * g2 - s2 * g1
            f[1] += 2.0 * (c2 * p0 - c0 * p2) + s2 * g0 - s0 * g2
            f[2] += 2.0 * (c0 * p1 - c1 * p0) + s0 * g1 - s1 * g0
            f[3] += s1 * n2 - s2 * n1 + l1 * g2 - l2 * g1
            f[4] += s2 * n0 - s0 * n2 + l2 * g0 - l0 * g2
            f[5] += s0 * n1 - s1 * n0 + l0 * g1 - l1 * g0
            for i in range(3):
                f[3 + i] -= 2.0 * (
                    B[b, 3 + 3 * i] * c0 + B[b, 4 + 3 * i] * c1 + B[b, 5 + 3 * i] * c2
                )
            for n in range(path_length[b] - width):
                j = path[b, n]
                K[j, k] = project_force(S, j, f)
            apply_inertia(C[b], rate, k, f)
            f[0] += 2.0 * (s1 * p2 - s2 * p1)
            f[1] += 2.0 * (s2 * p0 - s0 * p2)
            f[2] += 2.0 * (s0 * p1 - s1 * p0)
            for i in range(3):
                f[3 + i] -= 2.0 * (
                    B[b, 3 + 3 * i] * s0 + B[b, 4 + 3 * i] * s1 + B[b, 5 + 3 * i] * s2
                )
            for n in range(path_length[b] - width):
                j = path[b, n]
                D[j, k] = project_force(S, j, f)


@inner
def express_in_body_frame(R, p, V, A, b, out):  # type: ignore[no-untyped-def]
    """Angular velocity, angular and proper acceleration of body b in its own frame."""
    p0, p1, p2 = p[b, 0], p[b, 1], p[b, 2]
    w0, w1, w2 = V[b, 3], V[b, 4], V[b, 5]
    e0, e1, e2 = A[b, 3], A[b, 4], A[b, 5]
    v0 = V[b, 0] + w1 * p2 - w2 * p1
    v1 = V[b, 1] + w2 * p0 - w0 * p2
    v2 = V[b, 2] + w0 * p1 - w1 * p0
    # classical = spatial + omega x v at the frame's origin (Featherstone 2008, 2.11)
    a0 = A[b, 0] + e1 * p2 - e2 * p1 + w1 * v2 - w2 * v1
    a1 = A[b, 1] + e2 * p0 - e0 * p2 + w2 * v0 - w0 * v2
    a2 = A[b, 2] + e0 * p1 - e1 * p0 + w0 * v1 - w1 * v0
    for i in range(3):
        r0, r1, r2 = R[b, 0, i], R[b, 1, i], R[b, 2, i]
        out[i] = r0 * w0 + r1 * w1 + r2 * w2
        out[3 + i] = r0 * e0 + r1 * e1 + r2 * e2
        out[6 + i] = r0 * a0 + r1 * a1 + r2 * a2


@inner
def fill_inertial_columns(tree, slot, w, W):  # type: ignore[no-untyped-def]
    """Regressor of one state after `accelerate_bodies`: column ``slot[b, i]`` of W (dof, columns).

    Parameters that no slot names (-1) are left out; the others are written whole, where
    the path of their body leads.
    """
    path, path_length = tree.path, tree.path_length
    R, p, S, motion, e = w.R, w.p, w.S, w.motion, w.e
    for b in range(len(path)):
        express_in_body_frame(R, p, w.V, w.A, b, motion)
        p0, p1, p2 = p[b, 0], p[b, 1], p[b, 2]
        for n in range(path_length[b]):
            k = path[b, n]
            s0, s1, s2 = S[k, 3], S[k, 4], S[k, 5]
            l0 = S[k, 0] + s1 * p2 - s2 * p1
            l1 = S[k, 1] + s2 * p0 - s0 * p2
            l2 = S[k, 2] + s0 * p1 - s1 * p0
            fill_screw_entries(
                R[b, 0, 0] * l0 + R[b, 1, 0] * l1 + R[b, 2, 0] * l2,
                R[b, 0, 1] * l0 + R[b, 1, 1] * l1 + R[b, 2, 1] * l2,
                R[b, 0, 2] * l0 + R[b, 1, 2] * l1 + R[b, 2, 2] * l2,
                R[b, 0, 0] * s0 + R[b, 1, 0] * s1 + R[b, 2, 0] * s2,
                R[b, 0, 1] * s0 + R[b, 1, 1] * s1 + R[b, 2, 1] * s2,
                R[b, 0, 2] * s0 + R[b, 1, 2] * s1 + R[b, 2, 2] * s2,
                motion[0], motion[1], motion[2], motion[3], motion[4], motion[5],
                motion[6], motion[7], motion[8], 0, e,
            )  # fmt: skip
            for i in range(10):
                if slot[b, i] >= 0:
                    W[k, slot[b, i]] = e[i, 0]
