"""The log of a TX40 that the papers' methods run on beside the twin, and a reference for it.

The log has positions and torques of the motors, and no reference. What its controller was asked
for is rebuilt, under the twin's law and gains, which are assumed to be the robot's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from dynident.control.reconstruct import reconstruct
from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.filters.filters import differentiate_twice, filter_zero_phase
from dynident.recording.read import read_log
from dynident.recording.recording import Recording
from dynident.robot import load_robot
from dynident.robot.model import Robot
from dynident_papers.twin import Twin

EXAMPLE = Path("examples") / "tx40"
ROBOT_FILE = "tx40.toml"
POSITIONS, TORQUES = "pos_read_data.csv", "curr_data.csv"
"""Of the motors."""
RATE = 5000.0
"""[Hz]"""
CUTOFF = 50.0
"""Of a demand that is a reference itself, as of positions (brunot2019, 5.1) [Hz]."""


@dataclass(frozen=True)
class MeasuredLog:
    """The robot and its log."""

    robot: Robot
    recording: Recording
    """Positions and torques of the joints."""


def find_tx40_folder(folder: Path | None = None) -> Path:
    """The folder of the log.

    Parameters
    ----------
    folder : Path, optional
        Unless it is given, that of the examples, in the working directory or beside the source.

    Raises
    ------
    InputError
        When it is not there: the wheel does not hold it.
    """
    places = [EXAMPLE, Path(__file__).parents[2] / EXAMPLE] if folder is None else [folder]
    found = next((place for place in places if (place / POSITIONS).is_file()), None)
    if found is None:
        raise InputError(f"{places[0] / POSITIONS} is not here; the source distribution has it")
    return found


def read_tx40_log(samples: int | None = None, folder: Path | None = None) -> MeasuredLog:
    """The TX40's log.

    Parameters
    ----------
    samples : int, optional
        So many from its start; all by default.
    folder : Path, optional
        See `find_tx40_folder`.

    Raises
    ------
    InputError
        When it is not there.
    """
    place = find_tx40_folder(folder)
    robot = load_robot(place / ROBOT_FILE)
    log = read_log(
        [place / POSITIONS, place / TORQUES],
        robot,
        columns={"q": f"{POSITIONS}:*", "tau": f"{TORQUES}:*"},
        side="motor",
        rate=RATE,
    )
    return MeasuredLog(robot, log if samples is None else log.rows(0, samples))


def solve_demand(twin: Twin, log: Recording) -> Array:
    """What the twin's law has to be asked for to give the log's torque.

    ``tau = gain (kp e + kd de/dt)`` of the error ``e = qref - q``, solved for qref with the torque
    held from sample to sample.

    Returns
    -------
    ndarray, shape (samples, n)
        [rad]
    """
    assert log.tau is not None
    output = log.tau / twin.gain
    found = np.array(log.q)
    for j, (kp, kd) in enumerate(zip(twin.kp, twin.kd, strict=True)):
        kept = np.exp(-kp / kd / log.rate)
        start = np.array([kept * output[0, j] / kp])
        found[:, j] += lfilter([(1.0 - kept) / kp], [1.0, -kept], output[:, j], zi=start)[0]
    return found


def take_moves_of_motion(twin: Twin, log: Recording) -> Reference:
    """Moves from stop to stop, fitted to the motion itself, as if the robot followed exactly."""
    return reconstruct(log.q, log.rate).reference


def take_moves_of_demand(twin: Twin, log: Recording) -> Reference:
    """Such moves fitted to what the law has to be asked for (`solve_demand`)."""
    return reconstruct(solve_demand(twin, log), log.rate).reference


def take_demand(twin: Twin, log: Recording) -> Reference:
    """What the law has to be asked for, low-passed: it holds the log's noise and ripple."""
    q = filter_zero_phase(solve_demand(twin, log), CUTOFF, log.rate)
    return Reference(log.rate, q, *differentiate_twice(q, log.rate))


FOLLOWED, ASKED, EXACT = "moves, motion", "moves, demand", "demand"
REFERENCES: dict[str, Callable[[Twin, Recording], Reference]] = {
    FOLLOWED: take_moves_of_motion,
    ASKED: take_moves_of_demand,
    EXACT: take_demand,
}
"""References of the log by what they are made of."""
