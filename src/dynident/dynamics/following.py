"""What the friction of a model sees of a motion, and what it remembers of it.

Speeds of drives, loads and temperatures by the instant; states along the samples before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.conditions import FREE, Conditions
from dynident.dynamics.idim_parameters import IdimParameters
from dynident.friction.model import DriveSignals, StateTrace


def view_friction(
    idim: IdimParameters,
    q: Array,
    dq: Array,
    width: Array | None = None,
    conditions: Conditions = FREE,
) -> Callable[[int], DriveSignals]:
    """What any of the `frictions` sees of a motion of the joints.

    All on one drive share its signals, but for their states; motors are ahead of the links.
    """
    n, given, shared = idim.robot.n, conditions, dict[tuple[int, bool], DriveSignals]()

    def see(gear: int, link: bool) -> DriveSignals:
        turns, number = idim.gears[gear].turns, idim.gears[gear].number
        at, speed = q[:, q.shape[1] - n :] @ turns, dq[:, dq.shape[1] - n :] @ turns
        if given.deflection is not None and not link:
            at, speed = at + given.deflection[0] @ turns, speed + given.deflection[1] @ turns
        return DriveSignals(
            at,
            speed,
            None if width is None else float(width[number - 1]),
            None if given.load is None else np.ascontiguousarray(given.load[:, gear]),
            None if given.temperature is None else given.temperature[:, gear],
            given.time,
            None if given.known is None else given.known[:, gear],
        )

    def of(friction: int) -> DriveSignals:
        side = idim.frictions[friction].gear, idim.frictions[friction].link
        if side not in shared:
            shared[side] = see(*side)
        if given.traces is None or not idim.frictions[friction].model.state:
            return shared[side]
        return replace(shared[side], trace=given.traces[friction])

    return of


def follow_friction(
    idim: IdimParameters,
    q: Array,
    dq: Array,
    rate: float,
    width: Array | None = None,
    conditions: Conditions = FREE,
    previous: Conditions | None = None,
    some: Collection[int] | None = None,
) -> Conditions:
    """The conditions with the states of all friction, followed along a motion.

    Parameters
    ----------
    q, dq : ndarray, shapes (samples, nq), (samples, dof)
        A stretch without gaps.
    rate : float
        [Hz]
    width
        See `fill_rows`.
    conditions : Conditions
        Load and temperature on this stretch, where friction depends on them.
    previous : Conditions, optional
        What this returned for the stretch before; without, the motion starts here.
    some : collection of int, optional
        Those of the `frictions` whose states are asked for; all by default.
    """
    wanted = range(len(idim.frictions)) if some is None else some
    if not any(idim.frictions[k].model.state for k in wanted):
        return conditions
    nothing = StateTrace(np.zeros((len(q), 0)), np.zeros((len(q), 0, 0)))
    traces, see = [nothing] * len(idim.frictions), view_friction(idim, q, dq, width, conditions)
    for k in wanted:
        before = None if previous is None or previous.traces is None else previous.traces[k]
        model = idim.frictions[k].model
        if model.state:
            traces[k] = model.follow(see(k), rate, idim.shape_of(k), before)
    return replace(conditions, traces=tuple(traces))


def settle_friction(
    idim: IdimParameters, q: Array, dq: Array, width: Array | None = None
) -> Conditions:
    """The states of all friction where each instant's speed lasts; see `follow_friction`."""
    if not idim.has_states:
        return FREE
    see, every = view_friction(idim, q, dq, width), enumerate(idim.frictions)
    traces = [friction.model.settle(see(k), idim.shape_of(k)) for k, friction in every]
    return replace(FREE, traces=tuple(traces))


def find_conditions(
    idim: IdimParameters,
    q: Array,
    dq: Array,
    ddq: Array,
    rate: float,
    width: Array | None = None,
    previous: Conditions | None = None,
    around: Conditions = FREE,
    some: Collection[int] | None = None,
) -> Conditions:
    """What the friction meets along a stretch of a motion: the loads of `about`, its states.

    Of a linearised model, with what a change of the loads does. The motion is without gaps,
    and `around` is what the log has of temperatures, known torques and time; see `follow_friction`,
    also for `some`.
    """
    if not idim.nonlinear and not idim.has_states:
        return around
    load = None
    bearing = idim.bearing or idim.about
    if bearing and idim.loaded:
        phi, _ = idim.split(np.array(bearing))
        rigid = evaluate_inverse_dynamics(idim.tree, phi, q, dq, ddq)
        load = compute_loads(idim, fold_torques(idim, q, rigid))
    found = follow_friction(idim, q, dq, rate, width, replace(around, load=load), previous, some)
    if load is None or not idim.free or idim.bearing:
        return found
    bend, see = np.zeros(load.shape), view_friction(idim, q, dq, width, found)
    for k, friction in enumerate(idim.frictions):
        model, linear, gear = friction.model, idim.linear_about[k], friction.gear
        if "load" in model.needs and np.any(linear != 0.0):
            # a quotient over what nobody can tell from zero: a slope that jumps where a load
            # changes its direction would have steps swing about it
            blur = idim.blur[idim.gears[gear].number - 1]
            signals = see(k)
            # (f(load + blur) - f(load - blur)) / (2 blur)
            for side in (0.5 / blur, -0.5 / blur):
                moved = replace(signals, load=load[:, gear] + 0.5 / side)
                bend[:, gear] += side * model.bear(moved, idim.shape_of(k), linear)
    return replace(found, bend=bend)


def compute_loads(idim: IdimParameters, rigid: Array) -> Array:
    """Loads of the drives under torques of the rigid bodies, shape (samples, drives)."""
    joints = slice(idim.tree.dof - idim.robot.n, idim.tree.dof)
    return np.asarray(rigid[:, joints] @ idim.structure.bearing.T)


def apply_load_slopes(idim: IdimParameters, rigid: Array, bend: Array) -> Array:
    """What friction linear in the loads makes of torques of rigid bodies, (samples, rows)."""
    first = idim.tree.dof - idim.robot.n
    tau = np.zeros((len(rigid), idim.rows))
    for gear, signal in zip(idim.gears, (bend * compute_loads(idim, rigid)).T, strict=True):
        add_drive_torque(signal, gear.turns, tau[:, first:])
    return tau


def fold_torques(idim: IdimParameters, q: Array, tau: Array) -> Array:
    """Torques of a tree's rows as those of its drives, ``G^T tau``, shape (..., samples, rows).

    Those of passive joints are zero; of a robot without loops nothing is changed.
    """
    closure = idim.structure.closure
    if closure is None:
        return tau
    return np.asarray(np.einsum("tij,...ti->...tj", closure.find_null_space(q), tau))


def add_drive_torque(signal: Array, turns: Array, tau: Array) -> None:
    """Add a drive's torque to those of the joints, through the transpose of its gear."""
    for j in np.flatnonzero(turns):
        tau[:, j] += turns[j] * signal
