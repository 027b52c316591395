"""Torques of a model along a motion: of all, of its bodies, of its drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.columns import evaluate_sensor_errors, follow_motors
from dynident.dynamics.conditions import FREE, Conditions
from dynident.dynamics.following import add_drive_torque, compute_loads, fold_torques, view_friction
from dynident.dynamics.idim_parameters import IdimParameters
from dynident.dynamics.inverse import evaluate_all_torques
from dynident.dynamics.springs import SpringColumn

STRETCH = 4096
"""Samples whose torque is computed at a time."""


def evaluate_torques(
    idim: IdimParameters,
    sets: Sequence[Array],
    q: Array,
    dq: Array,
    ddq: Array,
    width: Array | None = None,
    conditions: Conditions = FREE,
) -> Array:
    """Torques of several sets of parameters, shape (sets, samples, rows); see `Idim.torque`."""
    if idim.free:
        settled = map(idim.settled, sets)
        every = [
            evaluate_torques(own, [plain], q, dq, ddq, width, conditions)[0]
            for own, plain in settled
        ]
        return np.array(every)
    phi = np.array([idim.split(theta)[0] for theta in sets])
    tau = np.empty((len(sets), len(q), idim.rows))
    loaded = conditions.load is None and idim.loaded
    for a in range(0, len(q), STRETCH):  # what lies between stays in the cache
        s = slice(a, a + STRETCH)
        motion, here = (q[s], dq[s], ddq[s]), conditions.rows(s)
        moved = (each[None] for each in motion[1:])
        rigid = evaluate_rigid_torques(idim, phi, [0] * len(sets), q[s], *moved)
        for theta, own, out in zip(sets, rigid, tau[:, s], strict=True):
            if loaded:
                here = replace(here, load=compute_loads(idim, own))
            np.add(own, evaluate_drive_torques(idim, theta, *motion, width, here), out=out)
    return tau


def evaluate_rigid_torques(
    idim: IdimParameters, phi: Array, along: Sequence[int], q: Array, dq: Array, ddq: Array
) -> Array:
    """Those of bodies alone, along several motions: see `evaluate_all_torques`."""
    tau = np.empty((len(phi), len(q), idim.rows))
    for a in range(0, len(q), STRETCH):  # what lies between stays in the cache
        s = slice(a, a + STRETCH)
        motions = q[s], dq[:, s], ddq[:, s]
        tau[:, s, : idim.tree.dof] = evaluate_all_torques(idim.tree, phi, along, *motions)
        for felt in idim.structure.sensed_motions:
            moved = [felt.carried((q[s], *each)) for each in zip(*motions[1:], strict=True)]
            turned, speeds, changes = (np.array(each) for each in zip(*moved, strict=True))
            own = phi[:, felt.bodies]
            every = evaluate_all_torques(felt.tree, own, along, turned[0], speeds, changes)
            tau[:, s, felt.rows] = every[:, :, felt.taken]
    return fold_torques(idim, q, tau)


def evaluate_drive_torques(
    idim: IdimParameters,
    theta: Array,
    q: Array,
    dq: Array,
    ddq: Array,
    width: Array | None = None,
    conditions: Conditions = FREE,
) -> Array:
    """Torques of the drives, and of sensors' errors, shape (samples, rows).

    For the width and the conditions see `fill_rows`.
    """
    if idim.free:
        model, plain = idim.settled(theta)
        return evaluate_drive_torques(model, plain, q, dq, ddq, width, conditions)
    tau = np.zeros((len(dq), idim.rows))
    for a in range(0, len(dq), STRETCH):  # what lies between stays in the cache
        s = slice(a, a + STRETCH)
        motion, here = (q[s], dq[s], ddq[s]), conditions.rows(s)
        add_drive_torques(idim, theta, motion, width, here, tau[s])
    return fold_torques(idim, q, tau)


def add_drive_torques(
    idim: IdimParameters,
    theta: Array,
    motion: tuple[Array, Array, Array],
    width: Array | None,
    conditions: Conditions,
    tau: Array,
) -> None:
    """Add to torques those of drives, springs and sensors' errors on a stretch of a motion."""
    q, dq, ddq = motion
    first = idim.tree.dof - idim.robot.n
    joints = tau[:, first : idim.tree.dof]
    drives = theta[idim.inertial : idim.plain]
    at = q[:, q.shape[1] - idim.robot.n :]
    motors = follow_motors(dq[:, first:], ddq[:, first:], conditions)
    for kind in idim.structure.plain_columns:
        strength = drives[kind.slots, None]
        if np.any(strength != 0.0):
            values = idim.structure.plain_values(kind, *motors, width)
            joints += values @ (strength * idim.structure.turning[kind.gears])
    see = view_friction(idim, q, dq, width, conditions)
    for k, linear in enumerate(idim.linear(theta, idim.structure.special_columns)):
        if np.any(linear != 0.0):
            friction = idim.frictions[k]
            signal = friction.model.columns(see(k), idim.shape_of(k)) @ linear
            turns = idim.gears[friction.gear].turns
            add_drive_torque(signal, turns, joints)
            for j, row in idim.structure.linked if friction.link else ():
                tau[:, row] += turns[j] * signal
    for value, column in zip(drives, idim.structure.linear_columns, strict=True):
        if isinstance(column, SpringColumn) and value != 0.0:
            for row in idim.structure.list_touched_rows(column):
                tau[:, row] += value * column.evaluate(conditions, at, dq[:, first:], row)
    sensed = evaluate_sensor_errors(idim, motion, conditions)
    for value, own in zip(idim.sensor_values(theta), idim.structure.sensor_columns, strict=True):
        if (own.sensor, own.tilted) in sensed:
            tau += value * sensed[own.sensor, own.tilted][:, own.axis]
