"""A base that gives way under a robot whose encoders are fitted: its start, and its worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import chdtri

from dynident.consistency.constraints import Bounds
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, RolloutError
from dynident.dynamics.whole import average_inertia
from dynident.encoders.errors import LinearisedErrors, linearise_encoder_errors
from dynident.encoders.unknowns import Unknowns
from dynident.estimators.closed_loop import Simulation
from dynident.regression.problem import Problem
from dynident.simulation.loop import LoopColumn
from dynident.simulation.mount import list_mount_parameters as mount_names
from dynident.simulation.mount import mount_model

MOUNT_HZ = (2.0, 4.0, 7.0, 12.0, 20.0)
"""Natural frequencies of a mount that fits are started from."""
MOUNT_DAMPING, MOUNT_INERTIA = 0.1, 0.5
"""Its damping ratio there, and inertia of base and stand as a share of the robot's."""
MOUNT_RIGID_HZ, MOUNT_HEAVY = 60.0, 20.0
"""Stands that are stiffer or heavier than these are rigid, by the robot's own inertia."""
MOUNT_LEVEL = 0.95
"""Of the test that a mount gives way at all."""


def add_mount_unknowns(
    problem: Problem,
    simulation: Simulation,
    unknowns: Unknowns,
    axes: tuple[str, ...],
    x: Array,
) -> tuple[Unknowns, tuple[Bounds, ...], Array]:
    """The unknowns with those of a mount, what bounds these, and what leaves the least errors.

    Along and about its axes the base gives way; x are the unknowns of the robot on a rigid one.
    """
    k, carried = unknowns.asked, mount_model(problem.idim, axes)
    log = problem.samples[0]
    robot = np.hstack([np.zeros((1, len(axes))), log.q[:1]])
    bodies = carried.idim.join(carried.idim.robot.nominal)
    inertia = average_inertia(carried.idim, bodies, robot)[: len(axes)]
    mine = tuple(LoopColumn(name) for name in mount_names(axes))
    whole = (1.0 + MOUNT_INERTIA) * inertia
    fastest = 2.0 * np.pi * MOUNT_RIGID_HZ
    most = np.column_stack([MOUNT_HEAVY * inertia, 2.0 * fastest * whole, fastest**2 * whole])
    bounds = tuple(
        Bounds((c.kind,), upper=float(high)) for c, high in zip(mine, most.ravel(), strict=True)
    )
    wider = replace(unknowns, own=(*unknowns.own, *mine), unit=np.ones(len(x) + len(mine)))
    best, least = None, np.inf
    for hertz in MOUNT_HZ:
        speed = 2.0 * np.pi * hertz
        values = np.column_stack([
            MOUNT_INERTIA * inertia, 2.0 * MOUNT_DAMPING * speed * whole, speed**2 * whole,
        ])  # fmt: skip
        start = np.concatenate([x[:k], values.ravel(), x[k:]])
        try:
            here = linearise_encoder_errors(problem, simulation, wider, start)
        except RolloutError:
            continue
        left = float(np.sum(np.log(here.rms())))
        if left < least:
            best, least = start, left
    if best is None:
        raise ComputationError(f"the robot cannot be simulated on a mount of {', '.join(axes)}")
    return wider, bounds, best


def list_mount_doubts(
    rigid: LinearisedErrors, soft: LinearisedErrors, axes: Sequence[str]
) -> tuple[str, ...]:
    """What speaks against a mount: errors that fall no further than by chance.

    The likelihood ratio of errors that count as many as are independent.
    """
    rows = np.array([group.rows for group in rigid.factors]) / rigid.memory
    ratio = float(np.sum(rows * np.log(rigid.squares() / soft.squares())))
    added = len(mount_names(axes))
    if ratio > chdtri(added, 1.0 - MOUNT_LEVEL):
        return ()
    before, after = (float(np.sqrt(np.mean(each.rms() ** 2))) for each in (rigid, soft))
    return (
        f"no compliance of the mount is visible: with it the errors are {1e3 * after:.4g} mrad, "
        f"without it {1e3 * before:.4g}",
    )
