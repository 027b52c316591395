"""Free simulations of a log in an engine and in ours: their errors, as text and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.series import PositionSeries
from dynident.core.words import format_entry, format_number, format_table
from dynident.regression.rows import RowGroup

SCHEMA = "dynident.replay/1"
OURS = "dynident"
"""The engine that is our own simulation."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Errors of free simulations of a log, from its first sample on: measured minus simulated.

    Attributes
    ----------
    log, engine : str
    joints : tuple of str
    ours : ndarray, shape (n,)
        Root mean square, of the whole model in our own simulation [rad or m].
    theirs : ndarray, shape (n,), optional
        Of the exported model in the engine; None where the engine is ours.
    apart : ndarray, shape (n,), optional
        Root mean square of the engine's motion minus ours.
    nominal : ndarray, shape (n,), optional
        Of the robot's file as it is, in our own simulation; None where that cannot be simulated.
    notes : tuple of str
        What the engine cannot express.
    warnings : tuple of str
    motion : PositionSeries
        Measured, and simulated: by the engine, whichever that is.
    channels : tuple of RowGroup
        Joints and the units of their positions.
    """

    log: str
    engine: str
    joints: tuple[str, ...]
    ours: Array
    theirs: Array | None
    apart: Array | None
    nominal: Array | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    motion: PositionSeries
    channels: tuple[RowGroup, ...]

    def __repr__(self) -> str:
        """One line, for a prompt."""
        rms = f"positions within {combine_joint_rms(self.ours):.3g} rms"
        return f"<Replay of {self.log}: {rms}; print(found.text())>"

    @property
    def columns(self) -> dict[str, Array]:
        """Errors by what is simulated."""
        others = ((self.engine, self.theirs), ("file", self.nominal))
        return {OURS: self.ours, **{name: rms for name, rms in others if rms is not None}}

    @property
    def cost(self) -> float | None:
        """By how much the engine's error is larger than ours, all joints together [rad or m]."""
        return (
            None
            if self.theirs is None
            else combine_joint_rms(self.theirs) - combine_joint_rms(self.ours)
        )

    def text(self) -> str:
        """A table of at most 80 columns."""
        columns = [
            (name, [format_number(1e3 * value, 3) for value in (*rms, combine_joint_rms(rms))])
            for name, rms in self.columns.items()
        ]
        lines = format_table("replay mrad", [*self.joints, "overall"], columns)
        lines += format_entry("  of", f"{self.log}: rms of the positions of free simulations")
        if self.cost is not None and self.apart is not None:
            words = (
                f"{self.engine} is {format_number(1e3 * combine_joint_rms(self.apart), 2)} apart "
                f"from dynident, which costs {1e3 * self.cost:+.2g}"
            )
            lines += format_entry("  engine", words)
        return "\n".join(
            [*lines, *(line for note in self.notes for line in format_entry("  note", note))]
        )

    def document(self) -> dict[str, Any]:
        """What ``--json`` prints [mrad or mm]."""
        named = {
            name: dict(zip(self.joints, (1e3 * rms).tolist(), strict=True))
            for name, rms in self.columns.items()
        }
        return {
            "schema": SCHEMA,
            "log": self.log,
            "engine": self.engine,
            "rms_mrad": named,
            "overall_rms_mrad": {
                k: 1e3 * combine_joint_rms(rms) for k, rms in self.columns.items()
            },
            "apart_mrad": None if self.apart is None else 1e3 * combine_joint_rms(self.apart),
            "cost_mrad": None if self.cost is None else 1e3 * self.cost,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def combine_joint_rms(rms: Array) -> float:
    """Root mean square of all joints together."""
    return float(np.sqrt(np.mean(rms**2)))
