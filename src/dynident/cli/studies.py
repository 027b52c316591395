"""The flags of commands that take a study, or a robot and logs instead of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynident.cli.options import (
    BeyondOption,
    Command,
    ContactOption,
    FloatingOption,
    FrictionOption,
    LockedOption,
    LogFlags,
    RobotOption,
    SensorOption,
    check_positive,
    gather_flags,
    override_section,
    parse_locked_joints,
)
from dynident.cli.output import say
from dynident.core.errors import InputError
from dynident.study.study import PREPARING, Study, list_input_files

if TYPE_CHECKING:
    from dynident import Robot

BandwidthOption = Annotated[
    float | None,
    typer.Option(
        "--bandwidth",
        metavar="HZ",
        callback=check_positive,
        help=f"Bandwidth {PREPARING['bandwidth'].words}.",
    ),
]


@dataclass(frozen=True)
class StudyFlags:
    """What flags say of a study, or instead of one; each field is a flag."""

    study: Annotated[
        Path | None,
        typer.Argument(
            metavar="STUDY.toml", show_default=False, help="Robot, logs and settings in one file."
        ),
    ] = None
    robot: RobotOption = None
    log: Annotated[
        list[str] | None,
        typer.Option(
            "--log", metavar="FILE", help="A log; repeat for several, a,b for side by side."
        ),
    ] = None
    validate: Annotated[
        list[str] | None,
        typer.Option("--validate", metavar="FILE", help="A held-out log; repeatable."),
    ] = None
    friction: FrictionOption = None
    bandwidth: BandwidthOption = None
    locked: LockedOption = None
    floating: FloatingOption = False
    contact: ContactOption = None
    beyond: BeyondOption = None
    sensor: SensorOption = None

    def __post_init__(self) -> None:
        parse_locked_joints(self.locked)  # refused first

    def read(self, told: LogFlags, identify: Mapping[str, object] | None = None) -> Study:
        """The study, or that of --robot and --log, with what the flags say instead.

        What names of columns tell of the latter is in it, and said in notes.

        `identify`: keys of ``[identify]``.
        """
        from dynident.study.recognise import recognise
        from dynident.study.study import fill_presets

        study = self.parse(told, identify)
        if self.study is not None:
            return fill_presets(study)
        study, said = recognise(study)
        say("note", map(": ".join, said))
        return study

    def parse(self, told: LogFlags, identify: Mapping[str, object] | None = None) -> Study:
        """The same as it is stated: presets of its logs are not filled in."""
        return self.override(self._choose(told), told, identify)

    @property
    def describes_robot(self) -> bool:
        """Whether they say of a robot what a study says itself."""
        return bool(self.floating or self.contact or self.beyond or self.sensor)

    def override(
        self, study: Study, told: LogFlags, identify: Mapping[str, object] | None = None
    ) -> Study:
        """A study with what the flags say instead."""
        study = self._state_robot(told.prepared(study))
        return override_study(
            study, self.friction, self.bandwidth, parse_locked_joints(self.locked), identify or {}
        )

    def load_robot(self, file: Path) -> Robot:
        """A robot alone, with what the flags say of it."""
        from dynident.core.schema import validate_data
        from dynident.study.study import load_study_robot

        joints = parse_locked_joints(self.locked)
        study = validate_data(Study, {"robot": {"file": str(file)}}, "command line")
        study = override_study(self._state_robot(study), None, None, joints)
        study, said = couple(study)
        say("note", said)
        return load_study_robot(study)

    def _state_robot(self, study: Study) -> Study:
        from dynident.study.study import state_contacts

        robot: dict[str, object] = {"floating": self.floating or None, "beyond": self.beyond}
        robot["sensor"] = tuple(self.sensor or ()) or None
        study = override_section(study, "robot", robot)
        return state_contacts(study, self.contact) if self.contact else study

    def _choose(self, told: LogFlags) -> Study:
        from dynident.core.schema import validate_data
        from dynident.study.study import parse_study

        if self.study is not None:
            if self.robot or self.log or self.validate or self.describes_robot:
                raise InputError(
                    "give either a study, or --robot and --log (and --validate, --floating, "
                    "--contact, --beyond, --sensor)"
                )
            told.refuse_beside(f"{self.study} has logs of its own")
            return parse_study(self.study)
        if self.robot is None or not self.log:
            raise InputError("give a study, or --robot FILE and --log FILE; see --help")
        given = {
            "robot": {"file": str(self.robot)},
            "log": [
                {"files": text.split(","), "use": use, **told.keys}
                for texts, use in ((self.log, "identify"), (self.validate, "validate"))
                for text in texts or ()
            ],
        }
        return validate_data(Study, given, "command line")

    def list_inputs(self, chosen: Study) -> list[str | Path]:
        """Files that the study is read of."""
        return [*list_input_files(chosen), *([] if self.study is None else [self.study])]


def add_study_flags(*without: str) -> Callable[[Command], Command]:
    """Add the flags of studies, some of them left out; they arrive as `given`."""
    return partial(gather_flags, name="given", read=StudyFlags, without=without)


def couple(study: Study) -> tuple[Study, list[str]]:
    """The study of a robot's file alone, its joints coupled that follow another by it; notes."""
    from dynident.study.recognise import couple_mimics

    study, said = couple_mimics(study)
    return study, [*map(": ".join, said)]


def override_study(
    study: Study,
    friction: str | None,
    bandwidth: float | None,
    locked: Mapping[str, float] | None = None,
    identify: Mapping[str, object] | None = None,
) -> Study:
    """The study with what the command line says instead."""
    joints = None if locked is None else {**study.robot.locked, **locked}
    study = override_section(study, "robot", {"friction": friction, "locked": joints})
    study = override_section(study, "prepare", {"bandwidth": bandwidth})
    return override_section(study, "identify", identify or {})
