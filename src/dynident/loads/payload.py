"""A load in words: intervals, a link of a robot file, and the calls that controllers take."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.loads.load import Load, estimate_load_intervals
from dynident.robot.rotations import to_rpy

WIDTH = 100
"""Columns of the summary, which no call of a maker fits in 80."""
SYMBOLS = ("mass", "x", "y", "z", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""What `dynident.loads.load.to_central_inertia` gives."""


@dataclass(frozen=True)
class Payload:
    """A load as seen from a frame of the robot.

    Attributes
    ----------
    load : Load
    log : str
    frame : str
    rotation, translation : ndarray, shapes (3, 3) and (3,)
        Placement of the frame in the joint frame of the link that carries the load.
    """

    load: Load
    log: str
    frame: str
    rotation: Array
    translation: Array

    def __repr__(self) -> str:
        """One line, for a prompt."""
        interval = f"95 % {self.low['mass']:.4g} to {self.high['mass']:.4g}"
        what = f"{self.log}: {self.mass:.4g} kg on {self.load.link}, {interval}"
        return f"<Payload of {what}; print(found.summary())>"

    @cached_property
    def intervals(self) -> tuple[Array, Array, Array]:
        """Values by `SYMBOLS`, and the ends of their 95 % intervals."""
        return estimate_load_intervals(self.load, self.rotation, self.translation)

    @property
    def mass(self) -> float:
        """[kg]"""
        return float(self.intervals[0][0])

    @property
    def _body(self) -> Array:
        """Values of a load that is seen."""
        if not self.load.seen:
            raise ComputationError(f"{self.log}: {self.load.warnings[0]}; it has no centre")
        return self.intervals[0]

    @property
    def com(self) -> Array:
        """Centre of mass in the frame [m]; a ComputationError where no load is seen."""
        return self._body[1:4]

    @property
    def inertia(self) -> Array:
        """About the centre of mass, axes of the frame, shape (3, 3) [kg m^2]; likewise."""
        xx, xy, yy, xz, yz, zz = self._body[4:]
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def low(self) -> dict[str, float]:
        """Lower ends of the 95 % intervals by `SYMBOLS`."""
        return dict(zip(SYMBOLS, self.intervals[1].tolist(), strict=True))

    @property
    def high(self) -> dict[str, float]:
        """Their upper ends."""
        return dict(zip(SYMBOLS, self.intervals[2].tolist(), strict=True))

    def urdf(self) -> str:
        """A link with the load's inertial, and the joint that fixes it to the frame."""
        xx, xy, yy, xz, yz, zz = map(format_number, self._body[4:])
        return (
            '<link name="payload">\n'
            "  <inertial>\n"
            f'    <origin xyz="{join_numbers(self.com, " ")}" rpy="0 0 0"/>\n'
            f'    <mass value="{self.mass:.6g}"/>\n'
            f'    <inertia ixx="{xx}" ixy="{xy}" ixz="{xz}"\n'
            f'             iyy="{yy}" iyz="{yz}" izz="{zz}"/>\n'
            "  </inertial>\n"
            "</link>\n"
            '<joint name="payload_fixed" type="fixed">\n'
            f'  <parent link="{self.frame}"/>\n'
            '  <child link="payload"/>\n'
            "</joint>"
        )

    def ur(self) -> str:
        """URScript: mass, centre [m], inertia about it ``Ixx Iyy Izz Ixy Ixz Iyz`` [kg m^2]."""
        xx, xy, yy, xz, yz, zz = self._body[4:]
        return (
            f"set_target_payload({self.mass:.6g}, [{join_numbers(self.com)}], "
            f"[{join_numbers([xx, yy, zz, xy, xz, yz])}])"
        )

    def franka(self) -> str:
        """libfranka: mass, centre in the flange [m], inertia about it, column by column."""
        return (
            f"robot.setLoad({self.mass:.6g}, {{{{{join_numbers(self.com)}}}}}, "
            f"{{{{{join_numbers(self.inertia.T.ravel())}}}}});"
        )

    def kuka(self) -> str:
        """KRL: mass [kg], centre [mm], principal axes as A B C [deg] and inertia [kg m^2]."""
        values, axes = np.linalg.eigh(self.inertia)
        axes = axes * np.sign(np.linalg.det(axes))
        a, b, c = np.degrees(to_abc_angles(axes))
        frame = zip("XYZABC", [*(1e3 * self.com), a, b, c], strict=True)
        moments = zip("XYZ", values, strict=True)
        told = (
            ", ".join(f"{axis} {format_number(value)}" for axis, value in each)
            for each in (frame, moments)
        )
        return "$LOAD = {{M {}, CM {{{}}}, J {{{}}}}}".format(format_number(self.mass), *told)

    def calls(self) -> dict[str, str]:
        """By maker."""
        return {"UR": self.ur(), "Franka": self.franka(), "KUKA": self.kuka()}

    @property
    def seat(self) -> str:
        """What the calls take for the flange, in words."""
        return f"for a controller whose flange is {self.frame}; name another by frame (--frame)"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        load, seen = self.load, self.load.seen
        values, low, high = self.intervals
        told = len(SYMBOLS) if seen else 1  # of what is not there the mass alone
        gains = None
        if load.gains is not None:
            rows = zip(load.gains.names, load.gains.values, load.gains.std, strict=True)
            gains = [{"joint": n, "gain": float(v), "std": float(s)} for n, v, s in rows]
        return {
            "schema": "dynident.payload/1",
            "log": self.log,
            "link": load.link,
            "frame": self.frame,
            "mass": self.mass,
            "seen": seen,
            "com": self.com.tolist() if seen else None,
            "inertia_com": values[4:].tolist() if seen else None,
            "interval_95": {
                symbol: [float(a), float(b)]
                for symbol, a, b in zip(SYMBOLS[:told], low, high, strict=False)
            },
            "consistent": True,
            "certificate": asdict(load.nearest.certificate),
            "gains": gains,
            "changed": list(load.drifted),
            "moved": load.moved,
            "tests": [asdict(test) for test in load.tests],
            "warnings": list(self.warnings),
            "urdf": self.urdf() if seen else None,
            "calls": self.calls() if seen else None,
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the load doubtful."""
        moved = self.load.moved
        if moved is None:
            return self.load.warnings
        words = f"the load moves: it is not the same {moved}; is it liquid, or loose?"
        return (words, *self.load.warnings)

    def summary(self) -> str:
        """In lines of at most 100 columns, with the calls where a load is seen."""
        values, low, high = self.intervals
        seen, gains = self.load.seen, self.load.gains
        told = len(SYMBOLS) if seen else 1
        lines = [
            *wrap_text(f"payload on {self.load.link}, seen from {self.frame}, of {self.log}"),
            "",
        ]
        lines.append(f"{'':8}{'value':>12}  95 % interval")
        units = ["kg", *["m"] * 3, *["kg m^2"] * 6]
        rows = zip(SYMBOLS, values, low, high, units, strict=True)
        for symbol, v, a, b, unit in list(rows)[:told]:
            ends = "known" if gains is not None and symbol == "mass" else f"{a:.4g} to {b:.4g}"
            lines.append(f"{symbol:8}{round(v, 9) + 0.0:12.5g}  {ends} {unit}")
        lines += ["", "consistent  yes, with certificate"] if seen else [""]
        if gains is not None:
            lines.append("gains       true torque over that of the log, from the known mass")
            drives = zip(gains.names, gains.values, gains.std, strict=True)
            lines += [f"  {n:16} {v:.4f} +- {s:.4f}" for n, v, s in drives]
        if self.load.drifted:
            lines += wrap_text(f"besides the load: {', '.join(self.load.drifted)}", "changed     ")
        for words in self.warnings:
            lines += wrap_text(words, "warning     ")
        if seen:
            lines += ["", self.urdf(), ""]
            lines += wrap_text(self.seat, "calls   ")
            for maker, call in self.calls().items():
                lines += wrap_text(call, f"{maker:8}")
        return "\n".join(lines)


def wrap_text(text: str, label: str = "") -> list[str]:
    """Lines of at most `WIDTH` columns behind a label; words stay whole."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_on_hyphens=False,
        break_long_words=False,
    )


def join_numbers(values: Iterable[float], mark: str = ", ") -> str:
    """Numbers in six digits, rounding as zero, with a mark between them."""
    return mark.join(map(format_number, values))


def format_number(value: float) -> str:
    """Six digits, rounding as zero."""
    return f"{round(float(value), 9) + 0.0:.6g}"


def to_abc_angles(rotation: Array) -> tuple[float, float, float]:
    """A, B, C [rad]: about z, then the new y, then the new x."""
    roll, pitch, yaw = to_rpy(rotation)
    return yaw, pitch, roll
