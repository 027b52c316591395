"""What simulators have a place for at a joint, and what of an identified model has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.text import format_series
from dynident.dynamics.following import follow_friction
from dynident.dynamics.idim import build_idim
from dynident.dynamics.torques import STRETCH
from dynident.dynamics.whole import WholeModel
from dynident.regression.generalised import GeneralisedSamples

PLACES = {"Ia": "armature", "fv": "damping", "fc": "friction", "off": "offset"}
"""Symbols of a drive's parameters and what simulators call them."""


@dataclass(frozen=True, eq=False)
class JointTerms:
    """The joints' own drives as far as simulators know such things, and what they do not know."""

    armature: Array
    """Rotor inertias that turn with their joint alone [kg m^2 or kg], shape (n,)."""
    damping: Array
    friction: Array
    """`damping`, `friction`: viscous [Nm s/rad or N s/m] and Coulomb [Nm or N], shape (n,)."""
    offset: Array
    """Torque that the drive needs at rest without weight [Nm or N], shape (n,)."""
    motors: tuple[str, ...]
    """Names of the same, other than zero, of motors that turn with several joints."""
    left: tuple[str, ...]
    """Names of all other parameters, other than zero."""


def make_simulable(
    model: WholeModel,
    motion: Sequence[tuple[Array, Array, Array, Array]],
    width: npt.ArrayLike | None = None,
) -> tuple[WholeModel, tuple[str, ...]]:
    """The model as simulators can have it: viscous and Coulomb friction and offsets alone.

    Where a joint has other friction, or a spring, its fv, fc and off become those that are nearest
    to its torque along a motion, least squares over all samples. Memory does not depend on speed:
    fv is nearest to the torque as it settles at each speed, and then fc and off to that along the
    motion. With all three nearest to the latter, memory would be fv, which grows where it does not.

    Parameters
    ----------
    motion : sequence of (q, dq, ddq, tau)
        Stretches of logs, arrays of shapes (samples, nq) and else (samples, dof), with the torque
        of the model, its memory included: see `follow_log`.
    width : array_like, shape () or (n,), optional
        Of the sign of Coulomb friction [rad/s or m/s].

    Returns
    -------
    WholeModel
        With friction "coulomb-viscous"; the model itself where nothing is left, or where friction
        depends on more than the motion.
    notes : tuple of str
        What stands for what.
    """
    idim, terms = model.idim, sort_joint_terms(model)
    if not terms.left or idim.needs - {"load"}:
        return model, ()
    first = idim.tree.dof - idim.robot.n
    without = model.theta.copy()
    without[[idim.names.index(name) for name in terms.left]] = 0.0
    plain = WholeModel(idim, without)
    q, dq, ddq, tau = (np.vstack(each) for each in zip(*motion, strict=True))
    ahead, back = (
        model.inverse_dynamics(q, way * dq, ddq, width)
        - plain.inverse_dynamics(q, way * dq, ddq, width)
        for way in (1.0, -1.0)
    )
    rest, widths = tau - plain.inverse_dynamics(q, dq, ddq, width), model.widths(width)
    values = {"fv": terms.damping, "fc": terms.friction, "off": terms.offset}
    values = {symbol: value.copy() for symbol, value in values.items()}
    words = []
    for j in np.flatnonzero(np.any(rest[:, first:] != 0.0, axis=0)):
        v, y, one, other = (each[:, first + j] for each in (dq, rest, ahead, back))
        sign = np.sign(v) if widths is None else np.tanh(v / widths[j])
        columns = np.column_stack([v, sign, np.ones(len(v))])
        own = np.array([value[j] for value in values.values()])
        # of opposite speeds the halves of the difference resist motion, and those of the sum do not
        resisting = columns[:, :2] @ own[:2] + 0.5 * (one - other)
        fv = fit_nearest_friction(columns[:, :2], resisting)[0]
        fc = fit_nearest_friction(sign[:, None], resisting + y - one - fv * v)[0]
        found = np.array([fv, fc, own[2] + 0.5 * np.mean(one + other)])
        left = np.linalg.norm(columns @ (found - own) - y) / np.linalg.norm(y)
        words.append(f"{idim.robot.joint_names[j]} ({100.0 * left:.2g} % of it not covered)")
        for value, new in zip(values.values(), found, strict=True):
            value[j] = new
    return replace_friction(model, values), (
        f"fv, fc and off approximate, along the fitted motion, friction that has no place there "
        f"({format_series(terms.left)}) at {', '.join(words)}",
    )


def follow_log(
    model: WholeModel,
    log: GeneralisedSamples,
    width: npt.ArrayLike | None = None,
    most: int | None = None,
) -> Iterator[tuple[Array, Array, Array, Array]]:
    """``(q, dq, ddq, tau)`` of a log, stretch by stretch, with the friction's memory in tau.

    Where there is none, of about `most` samples, if that is stated.
    """
    step = 1 if most is None or model.idim.has_states else max(1, len(log.q) // most)
    widths = model.widths(width)
    for start, stop in log.segments:
        met = None
        for a in range(start, stop, STRETCH * step):
            some = slice(a, min(a + STRETCH * step, stop), step)
            q, dq, ddq = log.q[some], log.dq[some], log.ddq[some]
            met = follow_friction(model.idim, q, dq, log.rate, widths, previous=met)
            yield q, dq, ddq, model.idim.torque(model.theta, q, dq, ddq, widths, met)


def fit_nearest_friction(columns: Array, y: Array) -> Array:
    """Least squares ``columns @ (fv, fc) = y`` with neither below zero."""
    best, smallest = np.zeros(columns.shape[1]), np.inf
    for kept in product((True, False), repeat=len(best)):
        free, found = np.flatnonzero(kept), np.zeros(len(best))
        found[free] = np.linalg.lstsq(columns[:, free], y, rcond=None)[0]
        error = float(np.linalg.norm(columns @ found - y))
        if np.all(found >= 0.0) and error < smallest:
            best, smallest = found, error
    return best


def replace_friction(model: WholeModel, values: Mapping[str, Array]) -> WholeModel:
    """The same bodies and rotors under friction of other values, the motors' own as it is."""
    idim = model.idim
    plain = build_idim(idim.robot, "coulomb-viscous", idim.rotor)
    known = dict(zip(idim.names, model.theta, strict=True))
    drives = [
        float(values[p.symbol][p.number - 1]) if p.symbol in values else known.get(p.name, 0.0)
        for p in plain.drives
    ]
    return WholeModel(plain, plain.join(model.phi, np.array(drives)))


def sort_joint_terms(model: WholeModel) -> JointTerms:
    """Sort the drives of a model into what simulators have at a joint, and the rest."""
    idim = model.idim
    found = {place: np.zeros(idim.robot.n) for place in PLACES.values()}
    motors, left = [], []
    values = model.theta[idim.inertial :]
    for value, column in zip(values, idim.structure.linear_columns, strict=True):
        parameter, gear = column.parameter, idim.gears[column.gear]
        if value == 0.0:
            continue
        if gear.coupled and parameter.symbol.removesuffix("m") in PLACES:
            motors.append(parameter.name)
        elif gear.drives and not gear.coupled and parameter.symbol in PLACES:
            found[PLACES[parameter.symbol]][parameter.number - 1] += value
        else:
            left.append(parameter.name)
    return JointTerms(**found, motors=tuple(motors), left=tuple(left))
