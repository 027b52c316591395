"""What logs say by the names of their columns, where a study says nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dynident.core.errors import InputError
from dynident.readers import column_names, list_titles, list_unborne_joints
from dynident.recording.floating import BASE, find_logged_robot, is_arm, tells_base
from dynident.recording.read import find_called_columns
from dynident.robot.contacts import find_contacts
from dynident.robot.mimics import find_couplings, find_mimics
from dynident.robot.model import Robot
from dynident.study.study import LogSection, Study, fill_presets, load_study_robot, update_section

Words = tuple[str, str]
"""A keyword, and what is said of it."""


def recognise(study: Study) -> tuple[Study, tuple[Words, ...]]:
    """A study whose logs have the columns, joints and bases that their columns' names tell.

    Those of a preset, where one is stated.
    """
    study, of_columns = recognise_columns(fill_presets(study))
    study, of_base = recognise_base(study)
    return study, (*of_columns, *of_base)


def recognise_columns(study: Study) -> tuple[Study, tuple[Words, ...]]:
    """A study whose logs have columns that are called otherwise, or not of all joints.

    Joints of which no log has a torque follow another where the robot's file says so; those of
    which none has a position are locked at zero else. Logs whose columns are stated stay as they
    are, and so do all where they do not have the same joints.
    """
    robot = find_logged_robot(load_study_robot(study))
    joints = [j for j, own in zip(robot.joint_names, robot.passive, strict=True) if not own]
    counted = all(joint.parent == k for k, joint in enumerate(robot.joints))
    logs, moving, said = [], list[list[str]](), dict[Words, None]()
    for log in study.log:
        names = [] if log.columns else list_names(log)
        moved, columns = find_called_columns(names, robot, log.rate)
        moving.append(moved)
        logs.append(log.model_copy(update={"columns": columns or log.columns}))
        if columns:
            said["columns", column_names.describe_columns(columns)] = None
    if not all(moved and moved == moving[0] for moved in moving):
        return study, ()
    study = study.model_copy(update={"log": tuple(logs)})
    led = find_unborne_mimics(study, robot, counted)
    study, coupled = couple_mimics(study, [joint for joint in moving[0] if joint not in led])
    words = [*said, *coupled]
    told = {*moving[0], *study.robot.locked, *(j for loop in study.loop for j in loop.passive)}
    absent = [joint for joint in joints if joint not in told]
    if absent:
        words.append(("locked", f"{', '.join(absent)} at 0, as the logs do not have them"))
        locked = {**study.robot.locked, **dict.fromkeys(absent, 0.0)}
        study = update_section(study, "robot", locked=locked)
        load_study_robot(study)  # refuses to lock what its file cannot
    return study, tuple(words)


def couple_mimics(
    study: Study, moving: Sequence[str] | None = None
) -> tuple[Study, tuple[Words, ...]]:
    """A study in which joints follow those that move by themselves, as the robot's file says.

    These are all that mimic none, where it is not said. No floating robot has loops, nor a part.
    """
    robot = load_study_robot(study)
    logs, arm = [{*list_names(log)} for log in study.log], is_arm(robot)
    afloat = bool(logs) and all(tells_base(log, arm) for log in logs)
    if robot.floating or robot.limbs or robot.contacts or afloat:
        return study, ()
    coupled = find_couplings(robot, moving)
    section = study.robot.model_copy(update={"locked": {**study.robot.locked, **coupled.locked}})
    loops = (*study.loop, *coupled.loops)
    said = tuple(("coupled", each) for each in coupled.words)
    return study.model_copy(update={"robot": section, "loop": loops}), said


def find_unborne_mimics(study: Study, robot: Robot, counted: bool) -> list[str]:
    """Joints that mimic another, and of which no log has a torque."""
    mimics = find_mimics(robot)
    if not mimics or any("tau" in (log.columns or {}) for log in study.log):
        return []
    files = [Path(file) for log in study.log for file in log.files]
    return [j for j in list_unborne_joints(files, robot.joint_names, counted) if j in mimics]


def list_unclear_torques(study: Study, joints: Sequence[str]) -> tuple[Words, ...]:
    """Of logs without torques, what is called as torques are, but not clearly as those measured."""
    found = list_series(study, joints, "tau")
    words = f"of {', '.join(found)} none is clearly what was measured; name it in columns if one is"
    return (("torques", words),) if found else ()


def list_targets(study: Study, joints: Sequence[str]) -> list[str]:
    """What the targets of all positions are called in the logs, as far as names tell."""
    return [name for name in list_series(study, joints, "q") if column_names.TARGETS.search(name)]


def list_series(study: Study, joints: Sequence[str], signal: str) -> list[str]:
    """What is called as a signal's columns are in any of the logs, as measured or not."""
    every = (column_names.find_series(list_names(log), joints, signal) for log in study.log)
    return list(dict.fromkeys(name for names in every for name in names))


def list_names(log: LogSection) -> list[str]:
    """Of all columns of a log's files."""
    return [name for file in log.files for name in list_titles(Path(file))]


def recognise_base(study: Study) -> tuple[Study, tuple[Words, ...]]:
    """A study whose robot floats, on contacts, where all of its logs have a base's motion.

    What the study states of either stays, and so do robots of which a part alone is identified.
    """
    section = study.robot
    stated = {signal for log in study.log for signal in log.columns or {}}
    if section.beyond is not None or section.sensor or stated & {*BASE}:
        return study, ()
    logs, robot = [{*list_names(log)} for log in study.log], load_study_robot(study)
    if not all(map(tells_base, logs)) or robot.floating:
        return study, ()
    if is_arm(robot) and not all(tells_base(log, arm=True) for log in logs):
        words = "stands, though the logs have an inertial unit and contacts, as but one joint is"
        return study, (("base", f"{words} on it; --floating if it moves"),)
    fixed = study
    study = update_section(study, "robot", floating=True)
    said = [("base", "floating = true, as the logs have columns of the base's motion")]
    if not study.contact:
        try:
            contacts = find_contacts(load_study_robot(study), set[str]().union(*logs))
        except InputError:
            return fixed, ()  # MJCF and tables of joints have no links for contacts
        study = study.model_copy(update={"contact": contacts})
        places = ", ".join(f"{each.name} at {each.frame} ({each.kind})" for each in contacts)
        said += [("contacts", f"{places}, by the names of columns and links")] if contacts else []
    return study, tuple(said)
