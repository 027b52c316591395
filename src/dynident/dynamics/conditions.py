"""What columns of the regressor depend on beside the motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynident.core.arrays import Array
from dynident.dynamics.equations import EstimatedSensor
from dynident.friction.model import StateTrace


@dataclass(frozen=True)
class Conditions:
    """What acts on columns beside the motion, along that motion."""

    traces: tuple[StateTrace, ...] | None = None
    """States of each of the model's `frictions`, from `follow_friction`."""
    load: Array | None = None
    """Torque of the rigid bodies that each of the `gears` bears [Nm or N], shape (samples,
    drives)."""
    temperature: Array | None = None
    """Shape (samples, drives). [deg C]"""
    time: Array | None = None
    """Since the log began [s], shape (samples,)."""
    known: Array | None = None
    """Known torques on the joints of the drives [Nm or N], shape (samples, drives)."""
    bend: Array | None = None
    """Derivative of each drive's friction by its load, where loads are linearised about, shape
    (samples, drives)."""
    wrenches: Mapping[EstimatedSensor, Array] = field(default_factory=dict)
    """What sensors measured of which something is not known, as logged [N, Nm], shapes (samples, 3
    or 6)."""
    deflection: Array | None = None
    """Shape (5 + bristles, samples, n). By how much motors, seen through their gears, are ahead of
    the links, its first two derivatives, and what a model expects of it and its speed, where joints
    are elastic [rad or m]; then how bristles are bent, where springs have hysteresis."""
    sway: Array | None = None
    """Shape (samples, rows, k). Derivatives of all rows by springs that say where links are: see
    `find_sway`."""

    def rows(self, some: slice) -> Conditions:
        """Those of some of the samples."""
        traces = self.traces
        if traces is not None:
            traces = tuple(StateTrace(each.z[some], each.by_shape[some]) for each in traces)
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
