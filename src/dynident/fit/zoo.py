"""The zoo: robots identified from public logs, whose fits the package carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dynident.core.errors import refuse_unknown
from dynident.core.words import format_entry, format_number, format_percent, format_table
from dynident.fit.figures import ALL_SAMPLES
from dynident.fit.json import PACKED, read_document

FOLDER = Path(__file__).parents[1] / "zoo"
"""Of each entry the fit, and the notice and licences of those whose log and robot file it is of."""


@dataclass(frozen=True)
class ZooEntry:
    """A robot that was identified from a public log.

    Attributes
    ----------
    name : str
    robot : str
        Whose, which, and its joints.
    source : str
        Who published the log and the robot's file.
    licence : str
        Of both, as SPDX has it.
    study : str
        In the project's repository: ``dynident identify`` makes the entry of it.
    """

    name: str
    robot: str
    source: str
    licence: str
    study: str

    @property
    def result(self) -> Path:
        """The file of the fit."""
        return FOLDER / f"{self.name}.json{PACKED}"

    @property
    def notice(self) -> str:
        """What has to go with copies, licences and all."""
        return (FOLDER / f"{self.name}.txt").read_text(encoding="utf-8")


ENTRIES = (
    ZooEntry("tx40", "Stäubli TX40", "figaroh-examples", "Apache-2.0",
             "examples/tx40/held_out.toml"),
    ZooEntry("kr300", "KUKA KR300", "J. Weigand, Robot_Identification", "MIT",
             "examples/kr300/study.toml"),
    ZooEntry("emps", "EMPS slide", "A. Janot, M. Gautier, M. Brunot, nonlinearbenchmark.org",
             "Apache-2.0", "examples/emps/held_out.toml"),
    ZooEntry("panda", "Franka Panda",
             "University of Salerno, inverse-dynamics-solver; franka_ros",
             "BSD-3-Clause, Apache-2.0", "examples/panda/study.toml"),
    ZooEntry("tiago", "PAL TIAGo", "figaroh-examples", "Apache-2.0", "examples/tiago/study.toml"),
    ZooEntry("z1", "Unitree Z1",
             "Dynamic Legged Systems lab, simple-robot-identification-isaaclab", "BSD-3-Clause",
             "examples/z1/study.toml"),
    ZooEntry("go2", "Unitree Go2",
             "Dynamic Legged Systems lab, simple-robot-identification-isaaclab", "BSD-3-Clause",
             "examples/go2/study.toml"),
    ZooEntry("so101", "SO-101", "isaac-sim2real, sage; TheRobotStudio, SO-ARM100", "Apache-2.0",
             "examples/so101/study.toml"),
)  # fmt: skip
ZOO = {entry.name: entry for entry in ENTRIES}
"""The entries by name: fits to torques, then to the encoders alone."""


class ZooRow(NamedTuple):
    """What a fit says of itself in a table."""

    name: str
    robot: str
    joints: int
    method: str
    held_out: str
    """The largest error of the logs held out, with its unit: of torque on all samples, or of the
    positions of a free simulation."""
    verdict: str
    source: str
    licence: str
    study: str


def find_zoo_entry(name: str) -> ZooEntry:
    """The entry of a name; `InputError` where there is none."""
    refuse_unknown(name, ZOO, f"{name!r} is not in the zoo")
    return ZOO[name]


def tabulate_zoo() -> tuple[ZooRow, ...]:
    """All entries, as their fits have it."""
    return tuple(tabulate_zoo_entry(entry) for entry in ZOO.values())


def tabulate_zoo_entry(entry: ZooEntry) -> ZooRow:
    """One entry, read of its file."""
    told = read_document(entry.result)
    joints, verdict = len(told["robot"]["joints"]), told["verdict"]["state"]
    own = (entry.name, entry.robot, joints, told["method"], find_held_out(told), verdict)
    return ZooRow(*own, entry.source, entry.licence, entry.study)


def find_held_out(told: Mapping[str, Any]) -> str:
    """The largest error of a result's held-out logs, in words."""
    free = [
        each["overall_rms_mrad"]
        for each in told["free_simulation"]
        if each["use"] == "validate" and each["horizon_s"] is None
    ]
    if free:
        return f"{format_number(max(free), 3)} mrad"
    percents = [
        figure["overall_relative_error_percent"]
        for log in told["fit"]["validation"]
        for figure in log["entries"]
        if figure["rows"] == ALL_SAMPLES
    ]
    return f"{format_percent(max(percents))} %"


def format_zoo(rows: Sequence[ZooRow]) -> list[str]:
    """The table, and below it whose the logs and robot files are."""
    columns = [
        ("robot", [row.robot for row in rows]),
        ("joints", [str(row.joints) for row in rows]),
        ("method", [row.method for row in rows]),
        ("held out", [row.held_out for row in rows]),
        ("verdict", [row.verdict for row in rows]),
    ]
    lines = format_table("zoo", [row.name for row in rows], columns)
    lines += format_entry(
        "  held out",
        "largest error of logs that were not fitted: torque, or positions of a free simulation",
    )
    for row in rows:
        lines += format_entry(f"  {row.name}", f"{row.source} ({row.licence})")
    return lines
