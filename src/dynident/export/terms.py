"""What simulators have a place for at a joint, and what of an identified model has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.dynamics.idim import build_idim
from dynident.dynamics.whole import WholeModel

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
    motion: Sequence[tuple[Array, Array, Array]],
    width: npt.ArrayLike | None = None,
) -> tuple[WholeModel, tuple[str, ...]]:
    """The model as simulators can have it: viscous and Coulomb friction and offsets alone.

    Where a joint has other friction, or a spring, its fv, fc and off become those that are nearest
    to its torque along a motion, least squares over all samples.

    Parameters
    ----------
    motion : sequence of (q, dq, ddq)
        Logs, arrays of shapes (samples, nq), (samples, dof), (samples, dof).
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
    q, dq, ddq = (np.vstack(each) for each in zip(*motion, strict=True))
    rest = model.inverse_dynamics(q, dq, ddq, width) - plain.inverse_dynamics(q, dq, ddq, width)
    widths = model.widths(width)
    values = {"fv": terms.damping, "fc": terms.friction, "off": terms.offset}
    values = {symbol: value.copy() for symbol, value in values.items()}
    words = []
    for j in np.flatnonzero(np.any(rest[:, first:] != 0.0, axis=0)):
        v, y = dq[:, first + j], rest[:, first + j]
        sign = np.sign(v) if widths is None else np.tanh(v / widths[j])
        columns = np.column_stack([v, sign, np.ones(len(v))])
        own = np.array([value[j] for value in values.values()])
        found = fit_nearest_friction(columns, columns @ own + y)
        left = np.linalg.norm(columns @ (found - own) - y) / np.linalg.norm(y)
        words.append(f"{idim.robot.joint_names[j]} ({100.0 * left:.2g} % of it not covered)")
        for value, new in zip(values.values(), found, strict=True):
            value[j] = new
    return replace_friction(model, values), (
        f"fv, fc and off approximate, along the fitted motion, friction that has no place there "
        f"({', '.join(terms.left)}) at {', '.join(words)}",
    )


def fit_nearest_friction(columns: Array, y: Array) -> Array:
    """Least squares ``columns @ (fv, fc, off) = y`` with fv and fc not below zero."""
    best: Array | None = None
    for free in ([0, 1, 2], [1, 2], [0, 2], [2]):
        found = np.zeros(3)
        found[free] = np.linalg.lstsq(columns[:, free], y, rcond=None)[0]
        error = np.linalg.norm(columns @ found - y)
        if min(found[:2]) >= 0.0 and (best is None or error < np.linalg.norm(columns @ best - y)):
            best = found
    assert best is not None  # an offset alone always is one
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
