"""What goes into a rollout, what it carries along, and what comes out."""

from __future__ import annotations

from typing import NamedTuple

from dynident.dynamics.kinematics import jit
from dynident.dynamics.tree import Integers
from dynident.inertia import Array
from dynident.simulation.law import measure

DONE, NOT_POSITIVE, DIVERGED, STUCK = 0, 1, 2, 3
"""How a rollout ends."""


class Inputs(NamedTuple):
    """What acts on a rollout, one row a sample; between samples it is interpolated.

    Attributes
    ----------
    reference : ndarray, shape (3, samples, n)
        Position, velocity and acceleration.
    forward : ndarray, shape (samples, n) or (0, n)
        Feed-forward torque [Nm or N].
    external : ndarray, shape (samples, dof) or (0, dof)
        Torques from outside [Nm or N].
    noise : ndarray, shape (samples, n) or (0, n)
        Of the measured positions, held over a sample [rad or m].
    counts : ndarray, shape (n,)
        Encoder resolution, zero for none [rad or m].
    """

    reference: Array
    forward: Array
    external: Array
    noise: Array
    counts: Array


class State(NamedTuple):
    """Where a rollout stands; the kernel moves it on in place.

    Attributes
    ----------
    q, dq : ndarray, shapes (nq,) and (dof,)
    z : ndarray, shape (n, m)
        Of the controllers.
    ring : ndarray, shape (delay + 1, n)
        Torques that have been decided and not yet overwritten.
    at : ndarray of int, shape (1,)
        Place of the newest one.
    SQ, SV, SZ, SU : ndarray, shapes (dof, c), (dof, c), (n, m, c), (delay + 1, n, c)
        Sensitivities of all these.
    """

    q: Array
    dq: Array
    z: Array
    ring: Array
    at: Integers
    SQ: Array
    SV: Array
    SZ: Array
    SU: Array


class Outputs(NamedTuple):
    """One row a sample; an array without rows is not written.

    Attributes
    ----------
    q, dq, ddq : ndarray, shapes (rows, nq), (rows, dof), (rows, dof)
    tau : ndarray, shape (rows, n)
        Torque that the drives apply [Nm or N].
    measured : ndarray, shape (rows, n)
        Joint positions as the encoders give them.
    by_q, by_dq, by_ddq, by_tau : ndarray, shape (rows, n, c)
        Sensitivities.
    """

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    measured: Array
    by_q: Array
    by_dq: Array
    by_ddq: Array
    by_tau: Array


@jit
def store(out, record, joints, first, q, dq, ddq, tau, noise, k, count, SQ, SV, X, U):  # type: ignore[no-untyped-def]
    """Write one sample into the outputs that are wanted."""
    out.q[record] = q
    out.dq[record] = dq
    out.ddq[record] = ddq
    out.tau[record] = tau
    if len(out.measured):
        measure(q, noise, k, count, joints, out.measured[record])
    if len(out.by_q):
        out.by_q[record] = SQ[first:]
    if len(out.by_dq):
        out.by_dq[record] = SV[first:]
    if len(out.by_ddq):
        out.by_ddq[record] = X[first:]
    if len(out.by_tau):
        out.by_tau[record] = U[first:]
