"""Lost motion of position servos from their own encoders: a two-mass twin with known widths.

The twin is that of tests/lost_motion.py. Drives, delay and the width of what is lost are fitted.
Beside it one motion of the SO-101 that its recorder made for the purpose. Writes
docs/figures/servo_backlash.md.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import FIGURES, ROOT, markdown

import dynident as di
from dynident.control.controller import servo

sys.path.insert(0, str(ROOT / "tests"))

from lost_motion import KP, RATE, ROTOR, SECONDS, VISCOUS, record_lost_motion, write_pendulum

FRICTIONS = (0.052, 0.5)
"""Friction loss [Nm]: of the published model of an SO-101's servo, and as its logs have it."""
WIDTHS = (0.0, 8.7e-3, 17.5e-3)
"""Of the lost motion, both sides together [rad]: none, and up to half a degree each."""
SEEDS = range(3)
COVERED = 1.96
"""Standard errors of an interval of 95 % to either side."""
MOST_TOGETHER = 6
"""Fits at the same time."""
EXACT = 1e-9
"""A width at its bound of zero is zero but for this [rad]."""
STUDY = """[robot]
file = "{folder}/so101_new_calib.urdf"
friction = "coulomb-viscous"
locked = {{ gripper = 0.5 }}

[[log]]
files = "{folder}/backlash_detection.csv"

[controller]
kind = "servo"
kp = 17.8

[identify]
method = "cloe"
loop = ["delay", "gain", "backlash"]
decide = "nothing"
"""


class Found(NamedTuple):
    """A fit: error of the free simulation [mrad], width and its standard error [rad]."""

    error: float
    width: float
    std: float

    @property
    def words(self) -> str:
        """The width in mrad."""
        return f"{1e3 * self.width:.2f} +- {1e3 * self.std:.2f}"


def fit_twins(loss: float, width: float) -> list[Found]:
    """Drives, delay and the width, one of both joints, of each motion of the twin."""
    simulation, found = di.Simulation(servo([KP] * 2)), []
    with tempfile.TemporaryDirectory() as folder:
        robot = write_pendulum(Path(folder))
        for seed in SEEDS:
            log = di.prepare(record_lost_motion(width, loss, seed), bandwidth=5.0)
            fit = di.identify(
                di.Problem(robot, log), "cloe", simulation=simulation, loop="delay,backlash"
            )
            found.append(summarise(fit))
    return found


def summarise(fit: di.Identification) -> Found:
    """Error and width of a fit."""
    own = fit.estimate.fitted
    assert own is not None
    k = own.names.index("backlash1")
    error = fit.simulated[0].free[-1].overall_milli
    return Found(error, float(own.values[k]), float(own.std[k]))


def fit_arm() -> Found:
    """The same, and the gain, of the motion of the SO-101: one of all joints."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_text(STUDY.format(folder=ROOT.parent / "shared" / "data" / "so101"))
        return summarise(di.run_study(di.read_study(path)))


def write(lines: list[str]) -> None:
    """Write the page."""
    (FIGURES / "servo_backlash.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure and write the page, the twins' part before the arm's, which takes longer."""
    rows, inside, total = [], 0, 0
    with ProcessPoolExecutor(MOST_TOGETHER, get_context("spawn")) as pool:
        cases = list(product(FRICTIONS, WIDTHS))
        twins = [pool.submit(fit_twins, *case) for case in cases]
        waiting = pool.submit(fit_arm)
        for (loss, width), each_twin in zip(cases, twins, strict=True):
            fits = each_twin.result()
            within = sum(abs(each.width - width) <= COVERED * each.std + EXACT for each in fits)
            inside, total = inside + within, total + len(fits)
            rows.append([
                f"{loss:g}", f"{1e3 * width:.3g}", *(each.words for each in fits),
                f"{within} of {len(fits)}", f"{np.mean([each.error for each in fits]):.2f}",
            ])  # fmt: skip
        header = ["friction loss [Nm]", "width [mrad]",
                  *(f"found, motion {seed + 1} [mrad]" for seed in SEEDS), "within 95 %",
                  "error [mrad]"]  # fmt: skip
        lines = [
            "# Lost motion behind a servo's own encoder", "",
            "Made by `benchmarks/servo_backlash.py`.", "", *markdown(header, rows), "",
            f"Logs of {SECONDS:g} s at {RATE:g} Hz, 4096 counts a turn. True drives: Ia {ROTOR:g}, "
            f"fv {VISCOUS:g}, fc as said, unknown like the delay; the width is one of both joints, "
            "and counts from stop to stop. Standard errors behind +-; error of free simulations of "
            f"whole logs, mean of the motions. {inside} of {total} intervals of 95 % have the "
            "true width.",
        ]  # fmt: skip
        write(lines)
        arm = waiting.result()
        write([
            *lines, "", "## SO-101", "",
            f"`backlash_detection`, five joints: {arm.words} mrad, one of all joints; the free "
            f"simulation errs by {arm.error:.2f} mrad. `joints_properties.xml` has half a degree "
            "to either side, 17.5 mrad.",
        ])  # fmt: skip


if __name__ == "__main__":
    main()
