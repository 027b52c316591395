"""Where a fit came from: the program, the day, the logs, and the text of the robot's files."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import numpy as np

from dynident.core.errors import InputError
from dynident.core.version import VERSION
from dynident.filters.blocks import cut_into_blocks
from dynident.recording.prepare import Samples
from dynident.robot.mjcf import list_model_files
from dynident.robot.model import Robot


@dataclass(frozen=True)
class Provenance:
    """What made a fit, and of what."""

    version: str
    """Of this program."""
    date: str
    """Of the identification, ISO 8601, UTC."""
    python: str
    machine: str
    """`python`, `machine`: what it ran on: version, and system with processor."""
    logs: dict[str, str]
    """SHA-256 of each log's positions and torques as they were fitted, by its name."""
    log_bytes: dict[str, int | None]
    """Size of each log's files; None of one from memory."""


def record_provenance(digests: dict[str, str], sizes: dict[str, int | None]) -> Provenance:
    """The provenance of a fit that is made now, of logs with these SHA-256 and sizes."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    machine = f"{platform.system()} {platform.machine()}"
    return Provenance(VERSION, now, platform.python_version(), machine, digests, sizes)


def hash_log(log: Samples) -> str:
    """SHA-256 of a log's positions and torques."""
    digest = hashlib.sha256()
    for signal in (log.measured, log.tau):
        for own, _, _ in cut_into_blocks([(0, len(signal))], 0):
            digest.update(np.ascontiguousarray(signal[own]).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class RobotFile:
    """A file of a robot, whole."""

    name: str
    """Relative to the folder of all of them, with slashes."""
    sha256: str
    text: str
    """Its content; of what is not UTF-8, in base 64."""
    encoding: str = "utf-8"
    """``"utf-8"`` or ``"base64"``."""

    @property
    def content(self) -> bytes:
        """As it was read."""
        return base64.b64decode(self.text) if self.encoding == "base64" else self.text.encode()


@dataclass(frozen=True)
class RobotFiles:
    """The files that a robot came from: one, or with those that it includes."""

    folder: str = ""
    """That has them all; of a fit in a file, as seen from there."""
    files: tuple[RobotFile, ...] = ()
    """The robot's own first; none of a robot that came from no file."""


def carry_robot_files(robot: Robot) -> RobotFiles:
    """The files of a robot, read whole."""
    paths = [path.resolve() for path in list_model_files(robot)]
    if not paths:
        return RobotFiles()
    folder = Path(os.path.commonpath([path.parent for path in paths]))
    return RobotFiles(str(folder), tuple(carry_file(path, folder) for path in paths))


def carry_file(path: Path, folder: Path) -> RobotFile:
    """One file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        text, encoding = content.decode(), "utf-8"
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(content).decode(), "base64"
    name = path.relative_to(folder).as_posix()
    return RobotFile(name, hashlib.sha256(content).hexdigest(), text, encoding)


KEPT: list[tempfile.TemporaryDirectory[str]] = []
"""Copies of robot files that are gone; they go with the process."""


def restore_robot_files(found: RobotFiles, place: str) -> Path | None:
    """The robot's own file: where it was, if all are unchanged, else a copy; None of none."""
    if not found.files:
        return None
    names = [PurePosixPath(file.name) for file in found.files]
    for name, file in zip(names, found.files, strict=True):
        if name.is_absolute() or ".." in name.parts:
            raise InputError(f"{place}: the robot's file {file.name!r} is outside of its folder")
        if hashlib.sha256(file.content).hexdigest() != file.sha256:
            raise InputError(f"{place}: the text of {file.name} is not what it was; edited?")
    folder = Path(found.folder)
    own = [folder / name for name in names]
    if all(is_unchanged(path, file) for path, file in zip(own, found.files, strict=True)):
        return own[0]
    KEPT.append(tempfile.TemporaryDirectory(prefix="dynident-robot-"))
    copies = [Path(KEPT[-1].name, name) for name in names]
    for path, file in zip(copies, found.files, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
    return copies[0]


def is_unchanged(path: Path, file: RobotFile) -> bool:
    """Whether a file is still there as it was."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    except OSError:
        return False
