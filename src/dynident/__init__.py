"""From a robot model and a motion log to a physically consistent dynamic model.

>>> import dynident as di
>>> robot = di.load_robot("tx40.toml")
>>> log = di.read_log("run.csv", robot)
>>> problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
>>> fit = di.identify(problem)
>>> print(fit.summary())
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynident.base import base_parameters as base_parameters
    from dynident.errors import ComputationError as ComputationError
    from dynident.errors import DynidentError as DynidentError
    from dynident.errors import InfeasibleError as InfeasibleError
    from dynident.errors import InputError as InputError
    from dynident.estimators.auxiliary import Simulation as Simulation
    from dynident.facade import identify as identify
    from dynident.facade import run_study as run_study
    from dynident.facade import validate as validate
    from dynident.identification import Identification as Identification
    from dynident.idim import build_idim as build_idim
    from dynident.nearest import consistent_witness as consistent_witness
    from dynident.nearest import nearest_consistent as nearest_consistent
    from dynident.nearest import nearest_to_base as nearest_to_base
    from dynident.problem import Problem as Problem
    from dynident.recording.prepare import Samples as Samples
    from dynident.recording.prepare import prepare as prepare
    from dynident.recording.read import read_log as read_log
    from dynident.recording.recording import Recording as Recording
    from dynident.robot import load_robot as load_robot
    from dynident.robot.model import Robot as Robot
    from dynident.simulation.controller import Controller as Controller
    from dynident.simulation.loop import Loop as Loop
    from dynident.simulation.reference import Reference as Reference
    from dynident.simulation.rollout import rollout as rollout
    from dynident.study import Study as Study
    from dynident.study import read_study as read_study
    from dynident.synthesis import simulate_study as simulate_study

__version__ = "0.1.0"

_PUBLIC = {
    "ComputationError": "dynident.errors",
    "Controller": "dynident.simulation.controller",
    "DynidentError": "dynident.errors",
    "Identification": "dynident.identification",
    "InfeasibleError": "dynident.errors",
    "InputError": "dynident.errors",
    "Loop": "dynident.simulation.loop",
    "Problem": "dynident.problem",
    "Recording": "dynident.recording.recording",
    "Reference": "dynident.simulation.reference",
    "Robot": "dynident.robot.model",
    "Samples": "dynident.recording.prepare",
    "Simulation": "dynident.estimators.auxiliary",
    "Study": "dynident.study",
    "base_parameters": "dynident.base",
    "build_idim": "dynident.idim",
    "consistent_witness": "dynident.nearest",
    "identify": "dynident.facade",
    "load_robot": "dynident.robot",
    "nearest_consistent": "dynident.nearest",
    "nearest_to_base": "dynident.nearest",
    "prepare": "dynident.recording.prepare",
    "read_log": "dynident.recording.read",
    "read_study": "dynident.study",
    "rollout": "dynident.simulation.rollout",
    "run_study": "dynident.facade",
    "simulate_study": "dynident.synthesis",
    "validate": "dynident.facade",
}
"""Public names and where they live, loaded on first use so that --help is quick."""

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'dynident' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
