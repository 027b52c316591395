"""Packed rows of a model: its columns along a motion, those of bodies and those of drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.jit import jit
from dynident.dynamics.conditions import FREE, Conditions
from dynident.dynamics.contacts import build_tilt_columns, evaluate_levers
from dynident.dynamics.equations import EstimatedSensor
from dynident.dynamics.following import view_friction
from dynident.dynamics.idim_parameters import IdimParameters
from dynident.dynamics.packing import LoadCoupling
from dynident.dynamics.parameters import Packing, SensorColumn
from dynident.dynamics.regressor import fill_regressor
from dynident.dynamics.springs import SpringColumn
from dynident.friction.kernel import VALUE
from dynident.friction.model import DriveSignals
from dynident.robot.model import LAW


def fill_rows(
    idim: IdimParameters,
    packing: Packing,
    q: Array,
    dq: Array,
    ddq: Array,
    out: Array,
    width: Array | None = None,
    conditions: Conditions = FREE,
) -> None:
    """Packed regressor rows into `out`, shape (samples, packing.width).

    Parameters
    ----------
    width : ndarray, shape (n,), optional
        Smooths the sign of Coulomb friction as a simulation does [rad/s or m/s].
    conditions : Conditions, optional
        That friction with states, load or temperature depends on.
    """
    fill_bodies(idim, packing, q, dq, ddq, out)
    fill_drives(idim, packing, q, dq, ddq, out, width, conditions)


def fill_bodies(
    idim: IdimParameters, packing: Packing, q: Array, dq: Array, ddq: Array, out: Array
) -> None:
    """The columns of bodies, as no friction under load bends them."""
    if packing.tree is not None:
        inner = np.zeros((len(q), packing.tree.width))
        fill_bodies(idim, packing.tree, q, dq, ddq, inner)
        combine_columns(idim, packing.mixed[0], q, inner, out)
        return
    if np.any(packing.slot >= 0):
        fill_regressor(idim.tree, packing.slot, q, dq, ddq, out)
    for felt, own in zip(idim.structure.sensed_motions, packing.felts, strict=True):
        if np.any(own >= 0):
            fill_regressor(felt.tree, own, *felt.carried((q, dq, ddq)), out)


def fill_drives(
    idim: IdimParameters,
    packing: Packing,
    q: Array,
    dq: Array,
    ddq: Array,
    out: Array,
    width: Array | None = None,
    conditions: Conditions = FREE,
) -> None:
    """The columns of drives beside those of bodies, and what they make of these."""
    if packing.tree is not None:
        inner = np.zeros((len(q), packing.tree.width))
        fill_drives(idim, packing.tree, q, dq, ddq, inner, width, conditions)
        combine_columns(idim, packing.mixed[1], q, inner, out)
    out[:, packing.empty] = 0.0
    if conditions.bend is not None and packing.load_couplings:
        apply_load_friction(idim, packing.load_couplings, out.copy(), out, conditions.bend)
    if packing.tree is not None:
        return
    first = idim.tree.dof - idim.robot.n
    see = view_friction(idim, q, dq, width, conditions)
    laws = evaluate_laws(idim, packing, see)
    sensed = evaluate_sensor_errors(idim, (q, dq, ddq), conditions)
    at = q[:, q.shape[1] - idim.robot.n :]
    motors = follow_motors(dq[:, first:], ddq[:, first:], conditions)
    for kind in packing.plain:
        out[:, kind.slots] = idim.structure.plain_values(kind, *motors, width) * kind.factors
    for column, joint, slot in packing.special:
        if isinstance(column, SpringColumn):
            out[:, slot] = column.evaluate(conditions, at, dq[:, first:], joint)
        elif isinstance(column, SensorColumn):
            J = sensed.get((column.sensor, column.tilted))
            out[:, slot] = 0.0 if J is None else J[:, column.axis, joint]
        else:
            k = column.friction
            assert k is not None
            model = idim.frictions[k].model
            if column.term is None:
                values = laws[k].slopes[:, column.shape]
            elif column.term in model.rows:
                values = laws[k].values[model.rows.index(column.term)]
            else:
                values = see(k).column(model.parameters[column.term])
            np.multiply(values, column.turns[joint], out=out[:, slot])


@dataclass(frozen=True)
class LawValues:
    """What a law of friction gives along a motion."""

    values: Array
    """Shape (terms of the law, samples)."""
    slopes: Array
    """Shape (samples, shapes). Of the law at its linear parameters by its shapes; none where these
    are not asked for."""


def evaluate_laws(
    idim: IdimParameters, packing: Packing, see: Callable[[int], DriveSignals]
) -> dict[int, LawValues]:
    """The laws of all friction that columns of a layout are of, each evaluated once."""
    asked: dict[int, bool] = {}
    for column, _, _ in packing.special:
        k, term = column.friction, column.term
        if k is not None and (term is None or term in idim.frictions[k].model.rows):
            asked[k] = asked.get(k, False) or term is None
    found = {}
    for k, bending in asked.items():
        model, signals, shape = idim.frictions[k].model, see(k), idim.shape_of(k)
        assert model.law is not None
        if not bending:
            found[k] = LawValues(model.values(model.law, signals, shape), np.zeros((0, 0)))
            continue
        table = model.table(model.law, signals, shape)
        by_shape = model.slopes(table, signals.trace)
        slopes = np.einsum("tks,k->ts", by_shape, idim.linear_about[k][[*model.rows]])
        found[k] = LawValues(table[:, :, VALUE].T, slopes)
    return found


def evaluate_sensor_errors(
    idim: IdimParameters, motion: tuple[Array, Array, Array], conditions: Conditions
) -> dict[tuple[EstimatedSensor, bool], Array]:
    """What units of what is not known of sensors do along a motion.

    Shapes (samples, axes, rows): of the bias and, with True beside it, of the orientation of
    each sensor that the conditions have.
    """
    found = {}
    for sensor, wrench in conditions.wrenches.items():
        if sensor not in idim.structure.sensors:
            continue
        if sensor.contact == LAW:
            found[sensor, False] = np.zeros((len(wrench), 1, idim.rows))
            found[sensor, False][:, 0, idim.tree.dof - idim.robot.n : idim.tree.dof] = wrench
            continue
        J = np.zeros((*wrench.shape, idim.rows))
        own = [(at, felt) for name, at, felt in idim.structure.gauged if name == sensor.contact]
        for contact, felt in own:
            if felt is None:
                levers = evaluate_levers(idim.tree, idim.robot, contact, motion[0])
                J[:, :, : idim.tree.dof] = levers
            else:
                levers = evaluate_levers(felt.tree, felt.robot, contact, felt.carried(motion)[0])
                J[:, :, felt.rows] = levers[:, :, felt.taken]
        found[sensor, False] = J
        contact, _ = own[0]
        if "orientation" in contact.estimate:
            found[sensor, True] = build_tilt_columns(J, contact, wrench)
    return found


def follow_motors(dq: Array, ddq: Array, conditions: Conditions) -> tuple[Array, Array]:
    """Speeds and accelerations of the motors, as joints with a spring see them."""
    bent = conditions.deflection
    return (dq, ddq) if bent is None else (dq + bent[1], ddq + bent[2])


def combine_columns(
    idim: IdimParameters,
    mixed: tuple[tuple[int, int, Integers, Integers], ...],
    q: Array,
    inner: Array,
    out: Array,
) -> None:
    """Some columns of rows ``G^T W`` by those of W."""
    assert idim.structure.closure is not None
    G = idim.structure.closure.find_null_space(q)
    for _, _, here, _ in mixed:
        out[:, here] = 0.0
    for to, of, here, there in mixed:
        out[:, here] += G[:, of, to, None] * inner[:, there]


def apply_load_friction(
    idim: IdimParameters, pairs: Sequence[LoadCoupling], rigid: Array, out: Array, bend: Array
) -> None:
    """Packed columns of bodies with what these do through loads.

    Of pairs as those of a layout; the second slots are those of the rigid columns.
    """
    for to, of, here, there in pairs:
        share = bend @ idim.structure.levers[to, of]
        scale_columns(rigid, there, share, to == of, here, out)


@jit
def scale_columns(rigid, there, share, own, here, out):  # type: ignore[no-untyped-def]
    """Columns scaled sample by sample: beside what they are themselves, or added to others.

    With NumPy three quarters of the time would go to copies.
    """
    for t in range(len(out)):
        for i in range(len(here)):
            more = share[t] * rigid[t, there[i]]
            out[t, here[i]] = more + (rigid[t, there[i]] if own else out[t, here[i]])
