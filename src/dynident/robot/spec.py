"""What a TOML file says of a robot, checked at the door."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import (
    AllowInfNan,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from dynident.errors import InputError
from dynident.text import nearest

Number = Annotated[float, Strict(), AllowInfNan(False)]
"""A finite number; neither a string nor a truth value passes for one."""
Flag = Annotated[bool, Strict()]
"""``true`` or ``false`` and nothing else."""
Name = Annotated[str, Strict(), Field(min_length=1)]
JointRef = Name | Annotated[int, Strict(), Field(ge=1)]
"""A joint's name, or its 1-based number."""
Vector3 = tuple[Number, Number, Number]


class Spec(BaseModel):
    """A frozen table of a TOML file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DriveSpec(Spec):
    """One drive.

    Attributes
    ----------
    joint : str or int
        The joint that it belongs to: a name or a 1-based number.
    row : dict of str to float, optional
        How the drive turns with the joints, ``w = sum row[j] dq_j``; with its own joint
        alone when left out.
    gain : float
        Torque per unit of logged current or voltage [Nm/A, N/V].
    """

    joint: JointRef
    row: dict[str, Number] | None = None
    gain: Number = 1.0


class TransmissionSpec(Spec):
    """Motor-side logs: ``q_m = reduction @ (q - zero)``, ``tau = reduction.T @ tau_m``.

    Attributes
    ----------
    reduction : tuple, optional
        n numbers (the diagonal) or an n x n matrix; the identity when left out.
    zero : tuple of float, optional
        Joint positions where all motors read zero [rad or m]; zeros when left out.
    """

    reduction: tuple[Number, ...] | tuple[tuple[Number, ...], ...] | None = None
    zero: tuple[Number, ...] | None = None


class InertialSpec(Spec):
    """Nominal inertia of a link.

    Attributes
    ----------
    mass : float
        [kg]
    com : tuple of 3 floats
        Centre of mass in the joint's body frame (see `dynident.robot.dh`) [m].
    inertia : tuple of 6 floats
        xx xy yy xz yz zz about the centre of mass, axes of that frame [kg m^2].
    """

    mass: Annotated[Number, Field(ge=0.0)]
    com: Vector3 = (0.0, 0.0, 0.0)
    inertia: tuple[Number, Number, Number, Number, Number, Number] = (0.0,) * 6


class DHJointSpec(Spec):
    """One row of a Denavit-Hartenberg table.

    Attributes
    ----------
    name : str
    link : str, optional
        The link that it moves; ``link_<k>`` for the k-th joint when left out.
    type : {"revolute", "prismatic"}
    alpha, a, d, theta0 : float
        Angles in the table's unit, lengths in metres.
    parent : str, optional
        The joint that carries this one: the previous one when left out, "base" for none.
    lower, upper, velocity : float, optional
        Limits; of revolute joints in the table's angle unit.
    effort : float, optional
        [Nm or N]
    inertial : InertialSpec, optional
    """

    name: Name
    link: Name | None = None
    type: Literal["revolute", "prismatic"] = "revolute"
    alpha: Number = 0.0
    a: Number = 0.0
    d: Number = 0.0
    theta0: Number = 0.0
    parent: Name | None = None
    lower: Number | None = None
    upper: Number | None = None
    velocity: Annotated[Number, Field(gt=0.0)] | None = None
    effort: Annotated[Number, Field(gt=0.0)] | None = None
    inertial: InertialSpec | None = None


class BaseSpec(Spec):
    """Pose of a fixed base in the world: ``xyz`` [m], ``rpy`` in the file's angle unit."""

    xyz: Vector3 = (0.0, 0.0, 0.0)
    rpy: Vector3 = (0.0, 0.0, 0.0)


class RobotSpec(Spec):
    """A robot file: a URDF with what it lacks, or a DH table.

    Attributes
    ----------
    name : str, optional
        The URDF's own, or the file's stem, when left out.
    urdf : str, optional
        Path of a URDF, relative to this file.
    convention : {"modified", "standard"}, optional
        The DH table's; see `dynident.robot.dh`.
    joint : tuple of DHJointSpec
        The DH table.
    angles : {"deg", "rad"}
        Unit of the table's and `base`'s angles (`transmission.zero` and `locked` are SI).
    base : BaseSpec, optional
    gravity : tuple of 3 floats, optional
        In the world [m/s^2].
    floating : bool
    transmission : TransmissionSpec, optional
    drive : tuple of DriveSpec
    locked : dict of str to float
        Joints that stay at a value [rad or m]; their bodies merge into their parents.
    """

    name: Name | None = None
    urdf: Name | None = None
    convention: Literal["modified", "standard"] | None = None
    joint: tuple[DHJointSpec, ...] = ()
    angles: Literal["deg", "rad"] = "deg"
    base: BaseSpec | None = None
    gravity: Vector3 | None = None
    floating: Flag = False
    transmission: TransmissionSpec | None = None
    drive: tuple[DriveSpec, ...] = ()
    locked: dict[str, Number] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_description(self) -> Self:
        if (self.urdf is None) == (self.convention is None):
            raise ValueError(
                'give either urdf = "file.urdf", or convention = "modified" | "standard" '
                "with [[joint]] rows"
            )
        if self.urdf is not None and self.joint:
            raise ValueError("[[joint]] rows are of a DH table and have no place beside urdf")
        if self.convention is not None and not self.joint:
            raise ValueError("the DH table has no [[joint]] rows")
        return self


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    InputError
        When it is missing or malformed; the message has the line.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except (ValueError, RecursionError) as error:  # of numbers and nesting beyond reason too
        raise InputError(f"{path}: is not valid TOML: {error}") from error


M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], data: object, place: str | Path) -> M:
    """Check data against a model.

    Parameters
    ----------
    model : type
        A pydantic model.
    data : object
        What a file says, as TOML gives it.
    place : str or Path
        The file (and table), for the message.

    Returns
    -------
    model

    Raises
    ------
    InputError
        One line with the first problem: its key path (entries of a list count from 1),
        the value and what is valid there. Unknown keys are named first, as they explain
        missing ones.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{place}: {_first_problem(model, data, error)}") from error


def _first_problem(model: type[BaseModel], data: object, error: ValidationError) -> str:
    found = [(e, *_locate(model, data, e["loc"])) for e in error.errors(include_url=False)]
    unknown = [item for item in found if item[0]["type"] == "extra_forbidden"]
    if unknown:
        problem, path, models = unknown[0]
        fields = sorted({name for m in models for name in m.model_fields})
        return f"unknown key {_shown(path)}{nearest(str(problem['loc'][-1]), fields)}"
    # of a union's branches, the one that got deepest is the one that was meant
    top = found[0][1][:1]
    _, path, _ = max((item for item in found if item[1][:1] == top), key=lambda item: len(item[1]))
    return _told([item[0] for item in found if item[1] == path], path)


def _told(errors: list[ErrorDetails], path: tuple[str | int, ...]) -> str:
    """The errors at one key in words."""
    error, context = errors[0], errors[0].get("ctx", {})
    where = f"key {_shown(path)}" if path else "the content"
    tag = str(context.get("discriminator", "")).strip("'")
    match error["type"]:
        case "missing" if isinstance(error["loc"][-1], int):
            return f"{where} has too few entries"
        case "missing":
            return f"{where} is missing"
        case "union_tag_not_found":
            return f"key {_shown((*path, tag))} is missing"
        case "union_tag_invalid":
            value, choices = context["tag"], context["expected_tags"]
            return f"key {_shown((*path, tag))} is {value!r}{_instead(value, choices)}"
        case "literal_error" if isinstance(error["input"], str):
            return f"{where} is {error['input']!r}{_instead(error['input'], context['expected'])}"
        case "value_error":
            return f"{where}: {context['error']}" if path else str(context["error"])
    messages = dict.fromkeys(
        e["msg"].removeprefix("Input ").replace("valid tuple", "valid list") for e in errors
    )
    expected = " or ".join(m[0].lower() + m[1:] for m in messages)
    return f"{where} is {_short(error['input'])} but {expected}"


def _instead(value: str, expected: str) -> str:
    choices = [part.strip("'") for part in expected.replace(" or ", ", ").split(", ")]
    return nearest(value, choices)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _shown(path: tuple[str | int, ...]) -> str:
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return repr(text.removeprefix("."))


def _locate(
    model: type[BaseModel], data: object, loc: tuple[str | int, ...]
) -> tuple[tuple[str | int, ...], list[type[BaseModel]]]:
    """Key path of an error, without pydantic's union tags, and the models of its table."""
    models = [model]
    path: list[str | int] = []
    for position, part in enumerate(loc):
        inside = isinstance(data, dict) and part in data
        indexed = isinstance(data, list | tuple) and isinstance(part, int) and part < len(data)
        tagged = [m for m in models if _has_tag(m, part)]
        if inside or indexed:
            path.append(part)
            data = data[part]  # type: ignore[index]
            if inside and position < len(loc) - 1:
                models = list(_field_models(models, str(part))) or models
        elif tagged:
            models = tagged
        elif position == len(loc) - 1 and any(part in m.model_fields for m in models):
            path.append(part)
    return tuple(path), models


def _has_tag(model: type[BaseModel], part: str | int) -> bool:
    """Whether `part` is the tag with which pydantic names this member of a union."""
    if part == model.__name__:
        return True
    return any(
        part in get_args(field.annotation) and isinstance(part, str)
        for field in model.model_fields.values()
        if getattr(field.annotation, "__origin__", None) is Literal
    )


def _field_models(models: list[type[BaseModel]], key: str) -> Iterator[type[BaseModel]]:
    for model in models:
        if key in model.model_fields:
            yield from _models_in(model.model_fields[key].annotation)


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
