"""The identified model as a controller calls it: one state at a time, in microseconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.bundle import Bundle
from dynident.core.errors import ComputationError
from dynident.core.jit import entry
from dynident.dynamics.spatial import BodyWorkspace, build_bodies
from dynident.dynamics.tree import Tree
from dynident.dynamics.whole import WholeModel
from dynident.friction.kernel import BY_STATE
from dynident.friction.model import LASTING
from dynident.plant.plant import Plant, build_plant
from dynident.plant.state import (
    DONE,
    add_all_friction,
    add_drive_torque,
    fill_drive_loads,
    fill_drive_speeds,
    fill_mass_and_bias,
    solve_under_load,
    step_element_states,
)
from dynident.plant.vectors import copy_matrix
from dynident.robot.linkage import (
    Linkage,
    accelerate_passive,
    build_linkage,
    fold_passive,
    follow_drives,
    rest_passive,
)

STEEP = 1e-200
"""Width of the exact sign: less than any speed but zero."""


class ModelInstant(NamedTuple):
    """A model, one state of it, and room for what its response takes.

    As of a simulation's scratch, `dynident.simulation.ports.Scratch`: mass matrix M, torques tau,
    accelerations ddq, the drives' torques now; speeds, signs and loads of drives, the laws' tables
    and states (memory), widths of the exact sign (steep), constants that drives have while they
    move alone (moving), and the rest of solving under loads.
    """

    tree: Tree
    plant: Plant
    bodies: BodyWorkspace
    chain: Linkage | None
    q: Array
    dq: Array
    ddq: Array
    now: Array
    tau: Array
    M: Array
    speed: Array
    sign: Array
    load: Array
    table: Array
    memory: Array
    steep: Array
    moving: Array
    fresh: Array
    none: Array
    nothing: Array
    external: Array
    bias: Array
    L: Array
    J: Array
    row: Array
    trial: Array
    step: Array


@entry
def begin_response(s):  # type: ignore[no-untyped-def]
    """Mass matrix and bias torques of a state, and friction's states as they settle there."""
    plant, each = s.plant, s.plant.elements
    follow_drives(s.chain, s.q, s.dq)
    fill_mass_and_bias(s.tree, plant.phi, plant.rotors, s, s.q, s.dq)
    if s.memory.shape[1]:
        # under the exact sign, and they fade as the smooth one does: `FrictionModel.settle`
        copy_matrix(each.rest, s.memory)
        step_element_states(
            plant.gears, s.steep, plant.rough, each, s, LASTING, s.q, s.dq, s.memory, s.none,
            s.none, s.nothing,
        )  # fmt: skip
        fill_drive_speeds(plant.gears, plant.width, plant.rough, s.dq, s.speed, s.sign)
        for e in range(len(each.gear)):
            for k in range(s.memory.shape[1]):
                s.memory[e, k] *= abs(s.sign[each.gear[e]])


@entry
def add_torque_missing_at_rest(s, scale, tau):  # type: ignore[no-untyped-def]
    """Add to torques the constants of drives at a standstill, times a scale: they have none of it.

    As of friction in one direction alone, half a constant and half a sign: `DriveSignals.combined`.
    """
    gears = s.plant.gears
    fill_drive_speeds(gears, s.plant.width, s.plant.rough, s.dq, s.speed, s.sign)
    for i in range(len(gears)):
        if s.moving[i] != 0.0 and s.sign[i] == 0.0:
            add_drive_torque(gears, i, len(tau) - gears.shape[1], scale * s.moving[i], tau)
    fold_passive(s.chain, tau)


@entry
def respond_with_torque(s):  # type: ignore[no-untyped-def]
    """Torques of the motion q, dq, ddq into tau."""
    begin_response(s)
    rest_passive(s.chain, s.ddq)
    fill_drive_loads(s.plant.bearing, s.plant.rotors, s, s.ddq)
    add_torque_missing_at_rest(s, -1.0, s.tau)
    add_all_friction(s.plant, s, s.q, s.dq, s.memory)
    for i in range(len(s.tau)):
        for j in range(len(s.tau)):
            s.tau[i] += s.M[i, j] * s.ddq[j]


@entry
def respond_with_acceleration(s):  # type: ignore[no-untyped-def]
    """Acceleration under the torques now into ddq; DONE or why there is none."""
    begin_response(s)
    rest_passive(s.chain, s.now)
    add_torque_missing_at_rest(s, 1.0, s.external)
    status, _ = solve_under_load(s.plant.bearing, s.plant, s, s.q, s.dq, s.memory, s.ddq)
    accelerate_passive(s.chain, s.ddq)
    return status


class ControllerModel:
    """An identified model that answers for one state, without checks: see `controller_model`.

    It works on arrays of its own: one of them a thread.
    """

    __slots__ = ("_held", "_name", "_passive", "_state")

    def __init__(self, model: WholeModel, width: npt.ArrayLike | None = None) -> None:
        model.refuse_more_than_motion("a controller's model", ("load",))
        robot, idim = model.idim.robot, model.idim
        steep = np.full(robot.n, STEEP)
        smooth = model.widths(width)
        plant = build_plant(idim, model.theta, steep if smooth is None else smooth)
        dof, each, (drives, n) = robot.dof, plant.elements, plant.gears.shape
        count, states = each.rest.shape
        most = max(each.values.shape[1], states)
        shapes = {
            "q": (dof + robot.floating,), "dq": (dof,), "ddq": (dof,), "now": (n,), "tau": (dof,),
            "M": (dof, dof), "speed": (drives,), "sign": (drives,), "load": (drives,),
            "table": (count, most, BY_STATE + states + each.shape.shape[1]),
            "memory": (count, states), "fresh": (states, 0), "none": (dof, 0),
            "nothing": (count, states, 0), "external": (dof,), "bias": (dof,), "L": (dof, dof),
            "J": (dof, dof), "row": (dof,), "trial": (dof,), "step": (dof, 1),
        }  # fmt: skip
        moving = np.zeros(drives)
        for own, values in zip(idim.frictions, idim.linear(model.theta), strict=True):
            for value, term in zip(values, own.model.parameters, strict=True):
                if smooth is None and term.weights is not None and term.weights[2] != 0.0:
                    moving[own.gear] += value * term.weights[0]
        room = {name: np.zeros(shape) for name, shape in shapes.items()}
        bodies = build_bodies(idim.tree.bodies, dof)
        chain = build_linkage(robot) if robot.loops else None
        self._state = ModelInstant(
            idim.tree, plant, bodies, chain, steep=np.full(drives, STEEP), moving=moving, **room
        )
        self._held = Bundle(self._state)
        self._name, self._passive = robot.name, np.flatnonzero(robot.passive)

    def __repr__(self) -> str:
        """Whose it is, and what it answers."""
        return f"<ControllerModel of {self._name}: inverse_dynamics, gravity, mass_matrix ...>"

    def inverse_dynamics(self, q: npt.ArrayLike, dq: npt.ArrayLike, ddq: npt.ArrayLike) -> Array:
        """Torque for a state and its acceleration, shape (dof,): `WholeModel.inverse_dynamics`."""
        s = self._state
        s.q[:], s.dq[:], s.ddq[:] = q, dq, ddq
        respond_with_torque(self._held)
        return s.tau.copy()

    def forward_dynamics(self, q: npt.ArrayLike, dq: npt.ArrayLike, tau: npt.ArrayLike) -> Array:
        """Acceleration under the drives' torques, shape (dof,), friction under load included.

        Raises
        ------
        ComputationError
            Where a mass matrix is not positive definite, or a drive locks itself under its load.
        """
        s = self._state
        s.q[:], s.dq[:] = q, dq
        first = len(s.dq) - len(s.now)
        s.trial[:] = tau
        s.external[:first], s.external[first:] = s.trial[:first], 0.0
        s.now[:] = s.trial[first:]
        if respond_with_acceleration(self._held) != DONE:
            raise ComputationError("no acceleration is determined in this state")
        return s.ddq.copy()

    def gravity(self, q: npt.ArrayLike) -> Array:
        """Torque that holds the bodies, shape (dof,), without friction and offsets."""
        s = self._state
        s.q[:], s.dq[:] = q, 0.0
        begin_response(self._held)
        return s.tau.copy()

    def mass_matrix(self, q: npt.ArrayLike) -> Array:
        """Mass matrix of bodies and rotors, shape (dof, dof)."""
        s = self._state
        s.q[:], s.dq[:] = q, 0.0
        begin_response(self._held)
        found = s.M.copy()
        found[self._passive, self._passive] = 0.0
        return found
