"""What simulators are given in the place of friction, springs and elements that they do not have.

Viscous and Coulomb friction and an offset, which are nearest to these along the fitted motion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.text import format_series
from dynident.core.words import format_rough
from dynident.dynamics.columns import fill_drives
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.following import (
    compute_loads,
    fold_torques,
    follow_friction,
    settle_friction,
)
from dynident.dynamics.inverse import evaluate_inverse_dynamics
from dynident.dynamics.parameters import Packing
from dynident.dynamics.torques import STRETCH
from dynident.dynamics.whole import WholeModel
from dynident.export.terms import replace_friction, sort_joint_terms
from dynident.regression.generalised import GeneralisedSamples

MOST = 40_000
"""Samples of a log that are taken at the least; all of one with less than twice as many."""
Stretch = tuple[Array, Array, Array, Conditions]
"""Part of a motion: q, dq and ddq, shapes (samples, nq) and (samples, dof), and the states of
friction along it."""


@dataclass(frozen=True, eq=False)
class StandIn:
    """Sums over a motion by which fv, fc and off are found, of any values of the parameters.

    Half of the difference of a torque at opposite speeds resists motion: to that fv and fc are
    nearest, least squares over all samples. Half of the sum does not: its mean is the offset.
    Memory does not depend on speed: fv is nearest to the torque as it settles at each speed, and
    then fc to that along the motion. With both nearest to the latter memory would be viscous, which
    grows with the speed where memory does not.
    """

    left: tuple[str, ...]
    """Names of the parameters that simulators do not have."""
    squares: Array
    """Of a joint's speed, its sign and one, shape (n, 3, 3)."""
    resisting: Array
    """Of speed and sign with the settled torque of a unit of each parameter, shape (n, 2, left)."""
    along: Array
    """Of all three with that along the motion, shape (n, 3, left)."""
    memory: Array
    """Of the sign with what memory changes of it, shape (n, left)."""
    offsets: Array
    """Mean of what does not resist motion, shape (n, left)."""
    products: Array
    """Of torques along the motion with each other, shape (n, left, left)."""

    def apply(self, model: WholeModel) -> tuple[WholeModel, tuple[str, ...]]:
        """A model as simulators can have it, with friction "coulomb-viscous", and what stands in.

        Parameters
        ----------
        model : WholeModel
            That of the sums, or one with other values.
        """
        names, terms = model.idim.names, sort_joint_terms(model)
        theta = model.theta[[names.index(name) for name in self.left]]
        values = np.array([terms.damping, terms.friction, terms.offset])
        words = []
        for j, joint in enumerate(model.idim.robot.joint_names):
            size = theta @ self.products[j] @ theta
            if size == 0.0:
                continue
            own, squares = values[:, j].copy(), self.squares[j]
            moments = squares[:2, :2] @ own[:2] + self.resisting[j] @ theta
            fv = solve_positive(squares[:2, :2], moments)[0]
            rest = moments[1] + self.memory[j] @ theta - squares[1, 0] * fv
            fc = max(rest / squares[1, 1], 0.0) if squares[1, 1] > 0.0 else own[1]
            values[:, j] = fv, fc, own[2] + self.offsets[j] @ theta
            change = values[:, j] - own
            left = size - 2.0 * change @ self.along[j] @ theta + change @ squares @ change
            share = 100.0 * float(np.sqrt(max(left, 0.0) / size))
            words.append(f"{joint} ({format_rough(share)} % of it not covered)")
        found = replace_friction(model, dict(zip(("fv", "fc", "off"), values, strict=True)))
        said = (
            "fv, fc and off approximate, along the fitted motion, friction that has no place there "
            f"({format_series(self.left)}) at {', '.join(words)}"
        )
        return found, (said,) if words else ()


def find_stand_in(
    model: WholeModel, motion: Iterable[Stretch], width: npt.ArrayLike | None = None
) -> StandIn | None:
    """What stands in along a motion; None where nothing has to, or where friction depends on more.

    Parameters
    ----------
    motion : iterable of Stretch
        See `follow_log`.
    width : array_like, shape () or (n,), optional
        Of the sign of Coulomb friction [rad/s or m/s].
    """
    idim, left = model.idim, sort_joint_terms(model).left
    if not left or idim.needs - {"load"}:
        return None
    n, first, count = idim.robot.n, idim.tree.dof - idim.robot.n, len(left)
    packing = idim.packing([idim.names.index(name) for name in left])
    widths, samples = model.widths(width), 0
    squares, products = np.zeros((n, 3, 3)), np.zeros((n, count, count))
    resisting, along = np.zeros((n, 2, count)), np.zeros((n, 3, count))
    memory, offsets = np.zeros((2, n, count))
    for q, dq, ddq, states in motion:
        ahead, back = (
            evaluate_columns(model, packing, count, (q, way * dq, ddq), None, widths)
            for way in (1.0, -1.0)
        )
        moved = ahead
        if idim.has_states:
            moved = evaluate_columns(model, packing, count, (q, dq, ddq), states, widths)
        v = dq[:, first:]
        sign = np.sign(v) if widths is None else np.tanh(v / widths)
        columns = np.stack([v.T, sign.T, np.ones(v.T.shape)], axis=1)
        squares += columns @ columns.swapaxes(1, 2)
        resisting += columns[:, :2] @ (0.5 * (ahead - back))
        along += columns @ moved
        memory += (columns[:, 1:2] @ (moved - ahead))[:, 0]
        offsets += 0.5 * np.sum(ahead + back, axis=1)
        products += moved.swapaxes(1, 2) @ moved
        samples += len(q)
    return StandIn(left, squares, resisting, along, memory, offsets / max(samples, 1), products)


def evaluate_columns(
    model: WholeModel,
    packing: Packing,
    count: int,
    motion: tuple[Array, Array, Array],
    states: Conditions | None,
    widths: Array | None,
) -> Array:
    """Torques of a unit of each of a layout's parameters of drives, shape (n, samples, left).

    Under the loads of the model's own bodies. Friction without `states` is as it settles.
    """
    idim, (q, dq, ddq) = model.idim, motion
    met = settle_friction(idim, q, dq, widths) if states is None else states
    if idim.loaded:
        rigid = fold_torques(idim, q, evaluate_inverse_dynamics(idim.tree, model.phi, *motion))
        met = replace(met, load=compute_loads(idim, rigid))
    packed = np.empty((len(q), packing.width))
    fill_drives(idim, packing, q, dq, ddq, packed, widths, met)
    rows = packing.joints[idim.tree.dof - idim.robot.n : idim.tree.dof]
    found = np.zeros((len(rows), len(q), count))
    for own, (entries, columns) in zip(found, rows, strict=True):
        own[:, columns] = packed[:, entries]
    return found


def follow_log(
    model: WholeModel,
    log: GeneralisedSamples,
    width: npt.ArrayLike | None = None,
    most: int = MOST,
) -> Iterator[Stretch]:
    """The motion of a log, stretch by stretch, with the states of the model's friction.

    Of a log of several times so many samples every few; where friction has states, every few
    stretches, each of which they begin at rest.
    """
    few, widths = max(1, len(log.q) // most), model.widths(width)
    step, skipped = (1, few) if model.idim.has_states else (few, 1)
    for start, stop in log.segments:
        met = None
        for k, a in enumerate(range(start, stop, STRETCH * step)):
            if k % skipped:
                met = None
                continue
            some = slice(a, min(a + STRETCH * step, stop), step)
            q, dq, ddq = log.q[some], log.dq[some], log.ddq[some]
            met = follow_friction(model.idim, q, dq, log.rate, widths, previous=met)
            yield q, dq, ddq, met


def solve_positive(squares: Array, moments: Array) -> Array:
    """Coefficients not below zero with the least ``x^T S x - 2 m^T x``, of few."""
    best, least = np.zeros(len(moments)), 0.0
    for kept in product((True, False), repeat=len(moments)):
        free, found = np.flatnonzero(kept), np.zeros(len(moments))
        found[free] = np.linalg.lstsq(squares[np.ix_(free, free)], moments[free], rcond=None)[0]
        cost = float(found @ squares @ found - 2.0 * moments @ found)
        if np.all(found >= 0.0) and cost < least:
            best, least = found, cost
    return best
