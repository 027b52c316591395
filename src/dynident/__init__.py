"""From a robot model and a motion log to a physically consistent dynamic model.

>>> import dynident as di
>>> robot = di.load_robot("tx40.toml")
>>> log = di.read_log("run.csv", robot)
>>> problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
>>> fit = di.identify(problem)
>>> print(fit.summary())
robot ...
"""

from __future__ import annotations

import gc
import logging
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dynident.core import version

if TYPE_CHECKING:
    from dynident.api import identify as identify
    from dynident.api import validate as validate
    from dynident.consistency.nearest import consistent_witness as consistent_witness
    from dynident.consistency.nearest import nearest_consistent as nearest_consistent
    from dynident.consistency.nearest import nearest_to_base as nearest_to_base
    from dynident.control.controller import Controller as Controller
    from dynident.control.reference import Reference as Reference
    from dynident.core.errors import ComputationError as ComputationError
    from dynident.core.errors import DynidentError as DynidentError
    from dynident.core.errors import InfeasibleError as InfeasibleError
    from dynident.core.errors import InputError as InputError
    from dynident.core.side_by_side import Engine as Engine
    from dynident.decide.selection import select_blocks as select_blocks
    from dynident.dynamics.base import base_parameters as base_parameters
    from dynident.dynamics.idim import build_idim as build_idim
    from dynident.estimators.closed_loop import Simulation as Simulation
    from dynident.excitation.excite import Excitation as Excitation
    from dynident.excitation.excite import excite as excite
    from dynident.excitation.obstacles import Obstacle as Obstacle
    from dynident.experiments.plan import Protocol as Protocol
    from dynident.experiments.protocol import protocol as protocol
    from dynident.loads.identify import payload as payload
    from dynident.online.tracker import Tracker as Tracker
    from dynident.recording.arrays import read_arrays as read_arrays
    from dynident.recording.prepare import Samples as Samples
    from dynident.recording.prepare import prepare as prepare
    from dynident.recording.read import read_log as read_log
    from dynident.recording.recording import Recording as Recording
    from dynident.regression.problem import Problem as Problem
    from dynident.report.fit import Fit as Fit
    from dynident.resonance.multisine import shake as shake
    from dynident.resonance.two_masses import find_resonance as find_resonance
    from dynident.robot import load_robot as load_robot
    from dynident.robot.model import Robot as Robot
    from dynident.simulation.floating import simulate_floating as simulate_floating
    from dynident.simulation.loop import Loop as Loop
    from dynident.simulation.rollout import rollout as rollout
    from dynident.study.collect import collect as collect
    from dynident.study.collect import identify_factors as identify_factors
    from dynident.study.compare import compare as compare
    from dynident.study.doctor import doctor as doctor
    from dynident.study.fits import read_result as read_result
    from dynident.study.fits import read_zoo as read_zoo
    from dynident.study.fleet import identify_fleet as identify_fleet
    from dynident.study.fleet import identify_robot as identify_robot
    from dynident.study.replay import replay as replay
    from dynident.study.run import run_study as run_study
    from dynident.study.sample import sample as sample
    from dynident.study.simulate import simulate_study as simulate_study
    from dynident.study.study import Study as Study
    from dynident.study.study import read_study as read_study
    from dynident.study.tracked import track as track
    from dynident.sweeps.sweep import sweep as sweep


__version__ = version.VERSION

_PUBLIC = {
    "ComputationError": "dynident.core.errors",
    "Controller": "dynident.control.controller",
    "DynidentError": "dynident.core.errors",
    "Engine": "dynident.core.side_by_side",
    "Excitation": "dynident.excitation.excite",
    "Fit": "dynident.report.fit",
    "InfeasibleError": "dynident.core.errors",
    "InputError": "dynident.core.errors",
    "Loop": "dynident.simulation.loop",
    "Obstacle": "dynident.excitation.obstacles",
    "Problem": "dynident.regression.problem",
    "Protocol": "dynident.experiments.plan",
    "Recording": "dynident.recording.recording",
    "Reference": "dynident.control.reference",
    "Robot": "dynident.robot.model",
    "Samples": "dynident.recording.prepare",
    "Simulation": "dynident.estimators.closed_loop",
    "Study": "dynident.study.study",
    "Tracker": "dynident.online.tracker",
    "base_parameters": "dynident.dynamics.base",
    "build_idim": "dynident.dynamics.idim",
    "collect": "dynident.study.collect",
    "compare": "dynident.study.compare",
    "consistent_witness": "dynident.consistency.nearest",
    "doctor": "dynident.study.doctor",
    "excite": "dynident.excitation.excite",
    "find_resonance": "dynident.resonance.two_masses",
    "identify": "dynident.api",
    "identify_factors": "dynident.study.collect",
    "identify_fleet": "dynident.study.fleet",
    "identify_robot": "dynident.study.fleet",
    "load_robot": "dynident.robot",
    "nearest_consistent": "dynident.consistency.nearest",
    "nearest_to_base": "dynident.consistency.nearest",
    "payload": "dynident.loads.identify",
    "prepare": "dynident.recording.prepare",
    "protocol": "dynident.experiments.protocol",
    "read_arrays": "dynident.recording.arrays",
    "read_log": "dynident.recording.read",
    "read_result": "dynident.study.fits",
    "read_study": "dynident.study.study",
    "read_zoo": "dynident.study.fits",
    "replay": "dynident.study.replay",
    "rollout": "dynident.simulation.rollout",
    "run_study": "dynident.study.run",
    "sample": "dynident.study.sample",
    "select_blocks": "dynident.decide.selection",
    "shake": "dynident.resonance.multisine",
    "simulate_floating": "dynident.simulation.floating",
    "simulate_study": "dynident.study.simulate",
    "sweep": "dynident.sweeps.sweep",
    "track": "dynident.study.tracked",
    "validate": "dynident.api",
}
"""Public names and where they live, loaded on first use so that --help is quick."""

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(
            f"module 'dynident' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    value = getattr(_load(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def _load(module: str) -> ModuleType:
    collecting = gc.isenabled()
    gc.disable()  # what is loaded stays: looking through it again and again takes a sixth longer
    try:
        return import_module(module)
    finally:
        if collecting:
            gc.enable()


def __dir__() -> list[str]:
    return sorted(__all__)
