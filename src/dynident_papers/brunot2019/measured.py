"""The experiment on the log of a TX40: the same methods, without a truth to compare with.

How the log's loop is simulated: the law and the gains of the twin, and a reference that is
rebuilt (`dynident_papers.measured`). Positions that are fitted answer to what is wrong with
either, so that CLOE ends at inertias which an explicit integrator at the log's clock cannot
follow; the implicit one can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dynident.estimators.closed_loop import Simulation
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident_papers.brunot2019.simulated import BANDWIDTH, SLOW, Case, select_essential
from dynident_papers.experiment import build_twin_controller, list_top_speeds
from dynident_papers.measured import REFERENCES, read_tx40_log
from dynident_papers.published import BRUNOT_SAMPLES
from dynident_papers.twin import Twin

INTEGRATOR = "sdirk2"
SHORT = 15000
"""Samples of the reduced form."""


@dataclass(frozen=True)
class AssumedLoop:
    """What is assumed of the robot's loop."""

    label: str
    scale: float = 1.0
    """Of the twin's bandwidth."""
    delay: float = 0.0
    """Of the controllers' output [s]."""


TWINS = AssumedLoop("as the twin's")
OTHERS = (
    AssumedLoop("band x 0.5", scale=0.5),
    AssumedLoop("band x 0.7", scale=0.7),
    AssumedLoop("band x 2", scale=2.0),
    AssumedLoop("delay of 0.4 ms", delay=4e-4),
)
"""Loops that may be the robot's as well."""


@dataclass(frozen=True)
class Bench:
    """The log, and what is estimated from it."""

    twin: Twin
    """Whose law and gains are assumed."""
    recording: Recording
    full: Problem
    """On all base parameters, offsets included."""

    def case(self, reference: str, essential: bool, loop: AssumedLoop = TWINS) -> Case:
        """The log under a reference.

        Parameters
        ----------
        reference : str
            A name in `dynident_papers.measured.REFERENCES`.
        essential : bool
            Whether the 28 parameters alone are estimated.
        loop : AssumedLoop
            The reference is rebuilt under it.
        """
        scale = loop.scale
        twin = replace(self.twin, kp=scale**2 * self.twin.kp, kd=scale * self.twin.kd)
        simulation = Simulation(
            replace(build_twin_controller(twin), delay=loop.delay),
            start="rotors",
            integrator=INTEGRATOR,
            references=(REFERENCES[reference](twin, self.recording),),
        )
        few = select_essential(self.full)
        return Case(few if essential else self.full, self.full, simulation)


def load_bench(twin: Twin, reduced: bool = False) -> Bench:
    """The first samples of the log, as many as the paper has, reduced only `SHORT` of them.

    Raises
    ------
    InputError
        When the log is not there.
    """
    log = read_tx40_log(SHORT if reduced else BRUNOT_SAMPLES["all"])
    slow = (SLOW * list_top_speeds(twin)).tolist()
    samples = prepare(log.recording, bandwidth=BANDWIDTH, drop_below=slow)
    return Bench(twin, log.recording, Problem(log.robot, samples))
