"""``[excitation]`` and ``[[obstacle]]`` of a study, and trajectories read back from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from dynident.control.reference import Reference
from dynident.core.errors import InputError, name_section_in_errors
from dynident.core.files import read_file
from dynident.core.makers import build_maker_section, collect_arguments
from dynident.core.options import build_option_section, collect_options
from dynident.core.schema import File, Name, Spec, make_choice_validator
from dynident.excitation.obstacles import OBSTACLES, Obstacle
from dynident.excitation.options import FAMILIES, TrajectoryShape
from dynident.excitation.trajectories import SCHEMA, Trajectory


class ObstacleKind(Spec):
    """``[[obstacle]]``: what stands around the robot; its shape's numbers beside these."""

    kind: Annotated[Name, make_choice_validator(OBSTACLES)]
    """Name in `dynident.excitation.obstacles.OBSTACLES`."""
    name: Name | None = None
    links: tuple[Name, ...] = ()
    """That keep clear of it; all that move by default."""
    file: File | None = None
    """Of a mesh, relative to the study."""


class ExcitationKind(Spec):
    """``[excitation]``: options of `dynident.excitation.options`, and those that name files."""

    task: File | None = None
    """File of the motion whose torques are to be predicted, relative to the study: a log of the
    robot, of which torques are not asked, or a trajectory.json of ``dynident excite``."""
    srdf: File | None = None
    """Likewise."""


if TYPE_CHECKING:
    ObstacleSection = ObstacleKind
    ExcitationSection = ExcitationKind
else:
    ObstacleSection = build_maker_section("ObstacleSection", ObstacleKind, OBSTACLES)
    ExcitationSection = build_option_section(
        "ExcitationSection", ExcitationKind, collect_options(FAMILIES)
    )


def build_obstacles(sections: tuple[ObstacleSection, ...]) -> tuple[Obstacle, ...]:
    """Obstacles of a study."""
    built = []
    for k, section in enumerate(sections, 1):
        maker = OBSTACLES[section.kind]
        with name_section_in_errors(f"obstacle[{k}]"):
            what = f"[[obstacle]] {section.kind}"
            shapes = maker(**collect_arguments(maker, section, what, ("kind", "name", "links")))
        built.append(Obstacle(section.name or f"{section.kind} {k}", shapes, section.links))
    return tuple(built)


def trajectory(file: str, rate: float | None = None, periods: int | None = None) -> Reference:
    """A designed trajectory, from the trajectory.json that ``dynident excite`` writes.

    Parameters
    ----------
    file : str
    rate : float, optional
        Instead of its own [Hz].
    periods : int, optional
        Instead of its own.

    Raises
    ------
    InputError
    """
    found, own_rate, own_periods = read_trajectory(Path(file))
    return found.reference(
        own_rate if rate is None else rate, own_periods if periods is None else periods
    )


def read_trajectory(path: Path) -> tuple[Trajectory, float, int]:
    """A designed trajectory with its rate [Hz] and its periods."""
    try:
        document = json.loads(read_file(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(f"{path}: is not a {SCHEMA}; dynident excite writes one")
    try:
        family = TrajectoryShape(**convert_lists_to_tuples(document["shape"])).family()
        C = np.array(document["coefficients"], dtype=float)
        rate, periods = float(document["rate"]), int(document["periods"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: is not whole ({error})") from error
    if C.ndim != 2 or len(C) != family.count or not np.all(np.isfinite(C)):
        raise InputError(f"{path}: its coefficients are not {family.count} finite rows")
    if not 0.0 < rate < np.inf or periods < 1:
        raise InputError(f"{path}: its rate is {rate:g} Hz and it has {periods} periods")
    return Trajectory(family, C), rate, periods


def convert_lists_to_tuples(shape: dict[str, Any]) -> dict[str, Any]:
    """Lists of JSON as the options have them."""

    def tupled(value: Any) -> Any:
        return tuple(tupled(each) for each in value) if isinstance(value, list) else value

    return {key: tupled(value) for key, value in shape.items()}
