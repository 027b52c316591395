"""Other engines: identified models under the law of a log, as ours simulate them."""

from __future__ import annotations

from collections.abc import Callable

from dynident.dynamics.whole import WholeModel
from dynident.engines.drive import EngineDrive, EngineMotion
from dynident.engines.mujoco import simulate_in_mujoco
from dynident.engines.pinocchio import simulate_in_pinocchio

ENGINES: dict[str, Callable[[WholeModel, EngineDrive, WholeModel], EngineMotion]] = {
    "mujoco": simulate_in_mujoco,
    "pinocchio": simulate_in_pinocchio,
}
"""Simulations by engine, beside our own."""
