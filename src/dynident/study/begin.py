"""A first study of a robot and its logs: what was found in them, and what else it may state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dynident.core.words import format_entry
from dynident.fit.doctor import Report
from dynident.readers.presets import PresetLayout
from dynident.recording.recording import Recording
from dynident.robot.model import Robot
from dynident.study.doctor import render_mended_study
from dynident.study.study import (
    LogSection,
    Study,
    load_study_robot,
    read_study_recording,
)
from dynident.study.written import render_study

HELD_OUT = 3
"""One part of so many is held out of a log that stands alone, the last one."""
LEAST = 100
"""Samples of a part, below which a log is not cut."""
KEYS = """\
# What else a study may state; a line counts without its first #, in the table that it names.
# Unless stated, the logs decide bandwidth, friction, drop_below and prior_weight
# (docs/decisions.md), and the result says what they decided.
#
# [robot]
# friction = "coulomb-viscous"  # one law, or one a joint with commas between (docs/friction.md)
# locked = { gripper = 0.0 }    # joints that did not move and are not in the logs [rad or m]
#
# [prepare]
# bandwidth = 10.0              # of the joints [Hz]: what the motion has below it is kept
# drop_below = 0.01             # speed below which rows are left out [rad/s or m/s]
#
# [identify]
# method = "pc-idim-ls"         # or another (docs/choosing-a-method.md)
# prior_weight = 1.0            # how much the robot file's inertials are trusted
"""
LOOP = """\
#
# [controller]                  # of methods that simulate the loop (docs/closed-loop.md)
# kind = "pd"
# kp = 100.0                    # Nm/rad
# kd = 10.0                     # Nm s/rad
"""


def read_bare_logs(study: Study) -> tuple[Robot, tuple[Recording, ...]]:
    """The robot of a study and its logs, with or without torques.

    Raises
    ------
    InputError
        For files that cannot be read, and logs that are not the robot's.
    """
    robot = load_study_robot(study)
    return robot, tuple(read_study_recording(log, robot, torque=False) for log in study.log)


def hold_some_out(study: Study, recordings: Sequence[Recording]) -> Study:
    """A study with a part of its logs held out.

    Of several logs where none is, the last one; of one log its last third.
    """
    if any(log.use == "validate" for log in study.log):
        return study
    *others, last = study.log
    if others:
        parts = [last.model_copy(update={"use": "validate"})]
    else:
        parts = cut_log(last, recordings[0])
    return study.model_copy(update={"log": (*others, *parts)})


def cut_log(log: LogSection, recording: Recording) -> list[LogSection]:
    """A log in a part that is fitted and one that is held out; whole where it is too short."""
    first = 0 if log.rows is None else log.rows[0]
    count = len(recording.q)
    cut = count - count // HELD_OUT
    if count - cut < LEAST:
        return [log]
    fitted = log.model_copy(update={"rows": (first, first + cut)})
    held = {"rows": (first + cut, first + count), "use": "validate"}
    return [fitted, log.model_copy(update=held)]


def render_first_study(
    study: Study,
    folder: Path,
    reports: Sequence[Report] | None,
    layouts: Sequence[PresetLayout] = (),
) -> str:
    """Its text, with what repairs its logs, what was found in them, and what else it may state.

    Parameters
    ----------
    layouts : sequence of PresetLayout
        Which were recognised.
    reports : sequence of Report, or None
        One a log, and one alone of a log that was cut; None of logs that were not examined.
    """
    head, text, more = ["# Made by dynident init.", "#"], render_study(study, folder), KEYS
    for key, words in (line for layout in layouts for line in layout.words):
        head += [f"# {line}" for line in format_entry(key, words)]
    head += ["#"] if layouts else []
    if study.robot.beyond is not None:
        head += ["# The doctor takes whole robots: ask it about these logs without beyond."]
    elif reports is None:
        head += ["# Its logs have no torques: state the [controller] that drove the robot, and ask"]
        head += ["# dynident doctor what is wrong with them."]
    else:
        said = [
            f"#   {report.log}: {found.found}; {found.mend}"
            for report in reports
            for found in report.findings
        ]
        said += [f"#   {report.log}: {sign.what}" for report in reports for sign in report.signs]
        head += ["# The doctor's findings:", *said] if said else ["# The doctor found nothing."]
        parts = [*reports] if len(reports) == len(study.log) else [*reports, *reports]
        text = render_mended_study(text, parts)
    if study.controller is None:
        more += LOOP
    return "\n".join([*head, "", text.strip(), "", more])
