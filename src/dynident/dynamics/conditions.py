"""What columns of the regressor depend on beside the motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynident.core.arrays import Array
from dynident.dynamics.equations import EstimatedSensor
from dynident.friction.model import Trace


@dataclass(frozen=True)
class Conditions:
    """What acts on columns beside the motion, along that motion.

    Attributes
    ----------
    traces : tuple of Trace, optional
        States of each of the model's `frictions`, from `Idim.follow`.
    load : ndarray, shape (samples, drives), optional
        Torque of the rigid bodies that each of the `gears` bears [Nm or N].
    temperature : ndarray, shape (samples, drives), optional
        [deg C]
    time : ndarray, shape (samples,), optional
        Since the log began [s].
    known : ndarray, shape (samples, drives), optional
        Known torques on the joints of the drives [Nm or N].
    bend : ndarray, shape (samples, drives), optional
        Derivative of each drive's friction by its load, where loads are linearised about.
    wrenches : mapping of EstimatedSensor to ndarray, shapes (samples, 3 or 6)
        What sensors measured of which something is not known, as logged [N, Nm].
    deflection : ndarray, shape (4, samples, n), optional
        By how much motors, seen through their gears, are ahead of the links, its first two
        derivatives, and what a model expects of it, where joints are elastic [rad or m].
    sway : ndarray, shape (samples, rows, k), optional
        Derivatives of all rows by springs that say where links are: see `find_sway`.
    """

    traces: tuple[Trace, ...] | None = None
    load: Array | None = None
    temperature: Array | None = None
    time: Array | None = None
    known: Array | None = None
    bend: Array | None = None
    wrenches: Mapping[EstimatedSensor, Array] = field(default_factory=dict)
    deflection: Array | None = None
    sway: Array | None = None

    def rows(self, some: slice) -> Conditions:
        """Those of some of the samples."""
        traces = self.traces
        if traces is not None:
            traces = tuple(Trace(each.z[some], each.by_shape[some]) for each in traces)
        signals = (self.load, self.temperature, self.time, self.known, self.bend)
        load, temperature, time, known, bend = (
            None if each is None else each[some] for each in signals
        )
        wrenches = {sensor: wrench[some] for sensor, wrench in self.wrenches.items()}
        bent = None if self.deflection is None else self.deflection[:, some]
        sway = None if self.sway is None else self.sway[some]
        return Conditions(traces, load, temperature, time, known, bend, wrenches, bent, sway)


FREE = Conditions()
"""Of friction that depends on the motion alone."""
