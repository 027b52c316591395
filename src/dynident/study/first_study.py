"""A first study of a robot and its logs: what was found in them, and what else it may state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dynident.core.words import format_entry
from dynident.fit.doctor import Report
from dynident.recording.checks import UnitError
from dynident.recording.recording import Recording
from dynident.robot.model import Robot
from dynident.study.doctor import render_repaired_study
from dynident.study.loop import ControllerSection
from dynident.study.recognise import Words
from dynident.study.study import LogSection, Study, list_logs_of, read_study_recording
from dynident.study.study_text import render_study

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


def fit_positions(study: Study, robot: Robot) -> Study:
    """A study of logs without torques, which are fitted to their positions.

    The law is that of the robot's file, where it has one of all joints.
    """
    told: dict[str, object] = {"identify": study.identify.model_copy(update={"method": "cloe"})}
    if study.controller is None and all(joint.kp > 0.0 for joint in robot.joints):
        told["controller"] = ControllerSection(kind="pd", gains="file")
    return study.model_copy(update=told)


def read_recognised_logs(
    study: Study, robot: Robot
) -> tuple[Study, tuple[Recording, ...], tuple[Words, ...]]:
    """A study whose logs have the units that their refusals ask for, its logs, what is said of it.

    Raises
    ------
    InputError
        For files that cannot be read, and logs that are not the robot's in any unit.
    """
    sections, logs, said = list[LogSection](), list[Recording](), dict[Words, None]()
    for section in study.log:
        own, units = section, dict(section.units or {})
        while len(logs) == len(sections):
            try:
                logs.append(read_study_recording(own, robot, torque=False))
            except UnitError as error:
                if error.signal in units:
                    raise
                units[error.signal] = error.unit
                own = section.model_copy(update={"units": units})
                why = str(error).partition("; ")[0]
                said["units", f"{error.signal} = {error.unit}, because {why}"] = None
        sections.append(own)
    return study.model_copy(update={"log": tuple(sections)}), tuple(logs), tuple(said)


def hold_some_out(study: Study, recordings: Sequence[Recording]) -> Study:
    """A study with a part of its logs held out.

    Of several logs where none is, the last one; of one log its last third.
    """
    if list_logs_of(study, "validate"):
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
    said: Sequence[Words] = (),
) -> str:
    """Its text, with what repairs its logs, what was found in them, and what else it may state.

    Parameters
    ----------
    said : sequence of (str, str)
        What was recognised: layouts of logs, a base that floats.
    reports : sequence of Report, or None
        One a log, and one alone of a log that was cut; None of logs that were not examined.
    """
    head, text, more = ["# Made by dynident init.", "#"], render_study(study, folder), KEYS
    for key, words in said:
        head += [f"# {line}" for line in format_entry(key, words)]
    head += ["#"] if said else []
    if study.robot.beyond is not None:
        head += ["# The doctor takes whole robots: ask it about these logs without beyond."]
    elif reports is None:
        law = "state the [controller]" if study.controller is None else "its file has the law"
        head += [f"# Its logs have no known torques: {law} that drove the robot, by which cloe"]
        head += ["# fits the positions (docs/sim-to-real.md); ask dynident doctor what is wrong."]
    else:
        found = [
            f"#   {report.log}: {each.found}; {each.remedy}"
            for report in reports
            for each in report.findings
        ]
        found += [f"#   {report.log}: {sign.what}" for report in reports for sign in report.signs]
        head += ["# The doctor's findings:", *found] if found else ["# The doctor found nothing."]
        parts = [*reports] if len(reports) == len(study.log) else [*reports, *reports]
        text = render_repaired_study(text, parts)
    if study.controller is None:
        more += LOOP
    return "\n".join([*head, "", text.strip(), "", more])
