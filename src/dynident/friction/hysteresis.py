"""Hysteresis of springs: bristles of known lengths that bend with the spring, and slip.

Each is Dahl's, over the deflection of the spring instead of a drive's motion, ``s_k dw_k/d delta =
1 - sign(ddelta) w_k``: the same path gives the same torque, however fast it is gone. All together,
with coefficients that are not negative, dissipate: they store ``s_k w_k^2 / 2`` each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.jit import jit
from dynident.friction.bristles import fill_dahl_energy, fill_dahl_friction, step_dahl_bristles
from dynident.friction.kernel import (
    BY_SPEED,
    BY_STATE,
    VALUE,
    DriveInstant,
    consult_law,
    find_law_address,
)
from dynident.friction.model import DriveSignals, FrictionModel, LinearTerm, ShapeTerm, StateTrace

FORGOTTEN = 0.001
"""Share of how bristles were bent when a log began, of which less is nothing."""
NEARER, NEAR = 50, 1e-14
"""Steps of Newton that a deflection takes at most, and the change of a spring's torque that is
none, as a share of the largest."""


@cache
def build_hysteresis(slips: tuple[float, ...]) -> FrictionModel:
    """Bristles of such lengths [rad or m], whose torques where they slip are the parameters."""
    return FrictionModel(
        tuple(LinearTerm(f"h{k}", "Nm", positive=True) for k, _ in enumerate(slips)),
        tuple(ShapeTerm(f"s{k}", "rad", s, s, s) for k, s in enumerate(slips)),
        fill_dahl_friction,
        state=(0.0,) * len(slips),
        step=step_dahl_bristles,
        stored=fill_dahl_energy,
    )


def bend_bristles(slips: tuple[float, ...], delta: Array, before: Array | None = None) -> Array:
    """Deflections w of bristles along that of their spring, shape (bristles, samples).

    Exact along straight lines between samples.

    Parameters
    ----------
    slips : tuple of float
        [rad or m]
    delta : ndarray, shape (samples,)
        Without gaps [rad or m].
    before : ndarray, shape (bristles,), optional
        Of the bristles at the first sample; they stand upright there without.
    """
    m = len(slips)
    if not m:
        return np.zeros((0, len(delta)))
    start = np.zeros(m) if before is None else before
    first = StateTrace(start[None], np.zeros((1, m, m)))
    path = DriveSignals(delta, np.diff(delta, prepend=delta[:1]))
    return build_hysteresis(slips).follow(path, 1.0, np.array(slips), first).z.T


def find_forgotten(slips: tuple[float, ...], delta: Array) -> Booleans:
    """From where on bristles say nothing any more of how they were bent before, shape (samples,).

    That fades with the way that they have gone, ``exp(-way / s)``.
    """
    way = np.cumsum(np.abs(np.diff(delta, prepend=delta[:1])))
    return np.asarray(way >= -np.log(FORGOTTEN) * max(slips, default=0.0))


def make_passive(torques: Array) -> tuple[float, ...]:
    """Torques of which none is negative, together as large, where others share what one has."""
    found = np.maximum(torques, 0.0)
    share = max(float(np.sum(torques)), 0.0) / (float(np.sum(found)) or 1.0)
    return tuple((share * found).tolist())


@dataclass(frozen=True)
class SpringCompliance:
    """How a spring with hysteresis gives way to small changes of its load, along a path."""

    stiffness: float
    damping: float
    """`stiffness`, `damping`: without bristles [Nm/rad or N/m]; the latter by the change from
    sample to sample."""
    slopes: Array
    """Of the bristles' torques by the deflection, shape (samples, bristles)."""
    kept: Array
    """Share of a change before that they keep, shape (samples, bristles)."""

    def soften(self, x: Array, some: slice) -> Array:
        """Changes of the load at some samples as ``K`` times those of the deflection.

        Of shape (samples, columns).
        """
        out = np.array(x, order="C")
        soften_columns(self.stiffness, self.damping, self.slopes[some], self.kept[some], out)
        return out


def bend_under_load(
    load: Array,
    stiffness: float,
    damping: float,
    torques: tuple[float, ...],
    slips: tuple[float, ...],
) -> tuple[Array, Array, SpringCompliance]:
    """The deflection at which spring and bristles bear a load, instant by instant.

    Parameters
    ----------
    load : ndarray, shape (samples,)
        Without gaps [Nm or N].
    stiffness, damping : float
        As of `SpringCompliance`.
    torques, slips : tuple of float
        Of the bristles, which stand upright at the first sample.

    Returns
    -------
    delta : ndarray, shape (samples,)
        [rad or m]
    bristles : ndarray, shape (bristles, samples)
    SpringCompliance
    """
    m, n = len(slips), len(load)
    delta, states = np.zeros(n), np.zeros((n, m))
    slopes, kept = np.zeros((n, m)), np.zeros((n, m))
    near = NEAR * float(np.max(np.abs(load), initial=0.0))
    follow_load(
        find_law_address(step_dahl_bristles), np.array(load, dtype=float), float(stiffness),
        float(damping), np.array(torques), np.array(slips), near, delta, states, slopes, kept,
    )  # fmt: skip
    return delta, states.T, SpringCompliance(stiffness, damping, slopes, kept)


@jit
def follow_load(  # type: ignore[no-untyped-def]
    step, load, stiffness, damping, torques, slips, near, delta, states, slopes, kept
):
    """Deflections under a load by Newton's method.

    From a reversal on the torque is concave to either side: each step is nearer, none too far.
    """
    m = len(slips)
    table, w = np.zeros((m, BY_STATE + 2 * m)), np.zeros(m)
    at = load[0] / stiffness
    for t in range(len(load)):
        left = load[t] - stiffness * at
        for k in range(m):
            left -= torques[k] * w[k]
        way, moved = np.sign(left), 0.0
        for _ in range(NEARER):
            consult_law(step, DriveInstant(moved, 0.0, way, 0.0, 0.0, 0.0, 1.0), slips, w, table)
            left, slope = load[t] - stiffness * (at + moved), stiffness + damping
            left -= damping * moved
            for k in range(m):
                left -= torques[k] * table[k, VALUE]
                slope += torques[k] * table[k, BY_SPEED]
            if abs(left) <= near:
                break
            moved += left / slope
        at += moved
        delta[t] = at
        for k in range(m):
            w[k] = table[k, VALUE]
            states[t, k] = w[k]
            slopes[t, k] = torques[k] * table[k, BY_SPEED]
            kept[t, k] = table[k, BY_STATE + k]


@jit
def soften_columns(stiffness, damping, slopes, kept, out):  # type: ignore[no-untyped-def]
    """``K d delta + sum_k dt_k = x`` for each column x of `out`, which becomes ``K d delta``.

    The bristles' torques change by ``dt_k = kept dt_k before + slope (d delta - d delta before)``,
    as damping's does, of which nothing is kept; below them `last` has the change of the deflection.
    """
    m = slopes.shape[1]
    last = np.zeros((m + 1, out.shape[1]))
    for t in range(len(out)):
        whole = stiffness + damping
        for k in range(m):
            whole += slopes[t, k]
        for c in range(out.shape[1]):
            before = last[m, c]
            x = out[t, c] + damping * before
            for k in range(m):
                last[k, c] = kept[t, k] * last[k, c] - slopes[t, k] * before
                x -= last[k, c]
            bent = x / whole
            for k in range(m):
                last[k, c] += slopes[t, k] * bent
            last[m, c] = bent
            out[t, c] = stiffness * bent
