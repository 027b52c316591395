"""What `dynident.simulation.rollout.prepare_rollouts` has other processes compile."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from dynident.control.controller import pd
from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.bundle import Bundle
from dynident.core.compiled import compile_for
from dynident.dynamics.spatial import gather_subtrees, move_bodies
from dynident.dynamics.tangent import fill_inertial_columns, linearise_dynamics
from dynident.dynamics.whole import average_inertia
from dynident.plant.state import step_element_states
from dynident.regression.rehearsal import build_pendulum, choose_parameters
from dynident.simulation.implicit import solve_implicit_stage
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import STEPS_AND_STAGES, WHOLE, build_parts, rollout

Call = tuple[Any, tuple[Any, ...]]


def build_loop() -> Loop:
    """A loop of one joint: what is compiled for it serves every robot on a fixed base."""
    motion = np.zeros((2, 1))
    return Loop(
        build_pendulum(), pd(1.0, 1.0), Reference(100.0, motion, motion, motion), width=np.ones(1)
    )


def list_steps(loop: Loop, theta: Array, implicit: bool = True) -> list[Call]:
    """The longest functions of a rollout with arguments, in the order in which they are missed.

    With those of implicit stages, or without.
    """
    tree = loop.idim.tree
    plant, law, _, state, room = build_parts(loop, theta, [0])
    s, w, bodies = Bundle(room), Bundle(room.bodies), Bundle(tree)
    q, dq, memory, SQ, SV, SM = state.q, state.dq, state.memory, state.SQ, state.SV, state.SM
    moved = q, dq, memory, SQ, SV, SM
    laws = plant.gears, plant.width, plant.rough, Bundle(plant.elements)
    stage = (
        solve_implicit_stage,
        (bodies, Bundle(plant), Bundle(law), s, 0.1, *moved, room.kq[0], room.kv[0]),
    )
    return [
        (move_bodies, (bodies, plant.phi, q, dq, w)),
        (gather_subtrees, (bodies, w, room.M, room.tau)),
        (linearise_dynamics, (bodies, w, room.K, room.D)),
        (fill_inertial_columns, (bodies, plant.slot, w, room.W)),
        (step_element_states, (*laws, s, 0.1, *moved)),
        *([stage] if implicit else ()),
    ]


def compile_part(part: int) -> None:
    """Compile a rollout, or its longest functions and what its motion is judged by."""
    loop = build_loop()
    theta = choose_parameters(loop.idim)
    if part != WHOLE:
        for function, arguments in list_steps(loop, theta, part == STEPS_AND_STAGES):
            compile_for(function, *arguments)
        motion = np.zeros((2, 1))
        average_inertia(loop.idim, theta, motion)
        loop.idim.torque(theta, motion, motion, motion)
    else:
        rollout(loop, theta)


if __name__ == "__main__":
    compile_part(int(sys.argv[1]))
