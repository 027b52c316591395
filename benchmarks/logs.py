"""The measured logs of the benchmarks."""

from __future__ import annotations

from common import ROOT, TX40

import dynident as di
from dynident.recording.prepare import Samples
from dynident.robot.model import Robot
from dynident.study.study import Study, load_study_robot, read_study_samples

LWR4 = ROOT / ".." / "shared" / "data" / "lwr4"
LWR4_MISSING = "The LWR4+ logs were not there when this page was made."
HALVES = ((0, 24750), (29250, 45000))
"""Rows of the TX40 log: to fit, and to test on."""


def tx40_halves() -> tuple[Study, Robot, Samples, Samples]:
    """The study of the TX40, its robot, and both halves of its log."""
    study = di.read_study(TX40 / "study.toml")
    (log,) = study.log
    robot = load_study_robot(study)
    first, second = (
        read_study_samples(log.model_copy(update={"rows": rows}), robot, study.prepare)
        for rows in HALVES
    )
    return study, robot, first, second


def lwr4_logs() -> tuple[Robot, dict[int, Samples]]:
    """The LWR4+ and its three logs, by their numbers; bandwidth 10 Hz."""
    robot = di.load_robot(LWR4 / "kuka_lwr4.urdf")
    columns = {"time": "times", "q": "positions_*", "tau": "torques_*"}
    logs = {
        k: di.prepare(
            di.read_log(LWR4 / f"measurements_{k}.npz", robot, columns=columns), bandwidth=10.0
        )
        for k in (1, 2, 3)
    }
    return robot, logs
