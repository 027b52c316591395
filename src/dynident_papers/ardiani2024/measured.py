"""The scenarios on the log of a TX40: one with actual data, one downgraded, one with wrong gains.

The loop is that of the twin's law and gains, which are assumed, along moves that are rebuilt from
the log (`dynident_papers.measured.ASKED`). There is no second log to validate with, and no truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.control.reference import Reference
from dynident.estimators.closed_loop import Simulation
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.simulation.sensors import quantise_positions
from dynident_papers.ardiani2024.simulated import (
    BANDWIDTH,
    POSITION_FILTER,
    SLOW,
    TORQUE_FILTER,
    WIDTH,
    Scenario,
)
from dynident_papers.experiment import COUNT, build_twin_controller
from dynident_papers.measured import ASKED, REFERENCES, MeasuredLog, read_tx40_log
from dynident_papers.twin import Twin, load_twin

SAMPLES = 37500
"""In which the log moves."""
SHORT = 20000
"""Samples of the reduced form."""
START = "nominal"
"""For CAD values: the inertials of the robot's file, with drives that then fit the log."""


@dataclass(frozen=True)
class LogBench:
    """The log, and what is assumed of its loop."""

    twin: Twin
    """Whose law and gains are assumed."""
    log: MeasuredLog
    integrator: str = "ode3"
    """Name in `dynident.simulation.integrators.INTEGRATORS`."""

    @cached_property
    def reference(self) -> Reference:
        """Moves through the demand of the actual data, whatever the scenario."""
        return REFERENCES[ASKED](self.twin, self.log.recording)

    @property
    def width(self) -> tuple[float, ...]:
        """Of the sign of the velocity [rad/s]."""
        return tuple((WIDTH * np.max(np.abs(self.reference.dq), axis=0)).tolist())

    def problem(self, scenario: Scenario) -> Problem:
        """What a scenario's estimators are given: filters of the paper, on 60 parameters."""
        recording, n = self.log.recording, self.log.robot.n
        if scenario.stored > COUNT:
            count = np.full(n, np.radians(scenario.stored))
            recording = replace(recording, q=quantise_positions(recording.q, count))
        samples = prepare(
            recording,
            BANDWIDTH.tolist(),
            position_hz=(POSITION_FILTER * BANDWIDTH).tolist(),
            torque_hz=(TORQUE_FILTER * BANDWIDTH).tolist(),
            drop_below=[SLOW * width for width in self.width],
        )
        return Problem(self.log.robot, samples)

    def simulation(self, scenario: Scenario) -> Simulation:
        """How a scenario's estimators simulate the loop."""
        return Simulation(
            build_twin_controller(self.twin, scenario.bandwidth),
            width=self.width,
            start=START if scenario.start == "cad" else scenario.start,
            integrator=self.integrator,
            references=(self.reference,),
        )


def load_log_bench(reduced: bool = False) -> LogBench:
    """The log while the robot moves, reduced only `SHORT` of its samples.

    Raises
    ------
    InputError
        When the log is not there.
    """
    return LogBench(load_twin(), read_tx40_log(SHORT if reduced else SAMPLES))
