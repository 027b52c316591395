"""What columns of logs say of a robot that was called fixed: a base that floats, contacts."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Literal

import pinocchio as pin

from dynident.core.errors import InputError
from dynident.readers import read_tables
from dynident.recording.checks import list_column_names
from dynident.recording.floating import BASE
from dynident.recording.orientation import FORMS
from dynident.robot.contacts import ContactSpec
from dynident.robot.geometry import UrdfModel, load_urdf_model
from dynident.study.study import Study, load_study_robot

MARKS = ("fx", "contact")
"""How columns of contacts begin, before the contact's name."""
Words = tuple[str, str]
"""A keyword, and what is said of it."""


def recognise_base(study: Study) -> tuple[Study, tuple[Words, ...]]:
    """A study whose robot floats, on contacts, where all of its logs have a base's motion.

    Contacts are at the links whose names have theirs, the farthest from the base. What the study
    states of either stays, and so do robots of which a part alone is identified.
    """
    section = study.robot
    if section.beyond is not None or section.sensor or any(log.columns for log in study.log):
        return study, ()
    if load_study_robot(study).floating:
        return study, ()
    logs = [
        {name for file in log.files for name in list_column_names(read_tables(Path(file)))}
        for log in study.log
    ]
    if not all(map(tells_base, logs)):
        return study, ()
    study = study.model_copy(update={"robot": section.model_copy(update={"floating": True})})
    said = [("base", "floating = true, as the logs have columns of the base's motion")]
    contacts = study.contact or find_contacts(study, set[str]().union(*logs))
    if contacts and not study.contact:
        study = study.model_copy(update={"contact": contacts})
        places = ", ".join(f"{each.name} at {each.frame} ({each.kind})" for each in contacts)
        said.append(("contacts", f"{places}, by the names of columns and links"))
    return study, tuple(said)


def tells_base(columns: Collection[str]) -> bool:
    """Whether columns hold a base's acceleration, and where gravity points to."""
    held = {signal for signal, names in BASE.items() if {*names} <= {*columns}}
    turned = any(f"base_{form}" in held for form in FORMS)
    return "imu" in held or ("base_position" in held and turned)


def find_contacts(study: Study, columns: Collection[str]) -> tuple[ContactSpec, ...]:
    """Contacts that columns name, where each is found at one link; none where the file has none."""
    begun = (column.partition("_") for column in sorted(columns))
    names = dict.fromkeys(name for mark, _, name in begun if mark in MARKS and name)
    try:
        urdf = load_urdf_model(load_study_robot(study), "in which contacts could be found")
    except InputError:
        return ()  # MJCF and tables of joints
    found = []
    for name in names:
        frame = find_contact_link(urdf, name)
        if frame is None:
            return ()
        kind: Literal["surface", "point"] = "surface" if f"mx_{name}" in columns else "point"
        found.append(ContactSpec(name=name, frame=frame, kind=kind))
    return tuple(found)


def find_contact_link(urdf: UrdfModel, name: str) -> str | None:
    """The link of that name, or the farthest of those whose names have it as a part, if one is."""
    links = urdf.links
    named = [link for link in links if link == name]
    named = named or [link for link in links if split_words(name) in split_words(link)]
    depths = {link: count_ancestors(urdf.model, links[link]) for link in named}
    farthest = [link for link in named if depths[link] == max(depths.values())]
    return farthest[0] if len(farthest) == 1 else None


def split_words(name: str) -> str:
    """A name's words between underscores: ``_fl_foot_``."""
    return "_".join(["", *re.findall("[a-z0-9]+", name.lower()), ""])


def count_ancestors(model: pin.Model, frame: pin.Frame) -> int:
    """How many frames carry a frame, one after another."""
    count, place = 1, int(frame.parentFrame)
    while place > 0:
        count, place = count + 1, int(model.frames[place].parentFrame)
    return count
