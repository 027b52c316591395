"""What a robot's TOML may say, and what it is told when it says something else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from dynident.core.errors import InputError
from dynident.core.schema import Spec, read_toml, validate_data
from dynident.robot.spec import RobotSpec, TransmissionSpec

TABLE: dict[str, Any] = {"convention": "modified", "joint": [{"name": "a"}, {"name": "b"}]}


def test_defaults() -> None:
    spec = validate_data(RobotSpec, TABLE, "r.toml")
    assert spec.angles == "deg"
    assert spec.joint[1].type == "revolute"
    assert spec.joint[1].alpha == 0.0
    assert spec.locked == {}
    assert not spec.floating


def test_reduction_is_a_diagonal_or_a_matrix() -> None:
    assert TransmissionSpec.model_validate({"reduction": [3, -2.0]}).reduction == (3.0, -2.0)
    matrix = TransmissionSpec.model_validate({"reduction": [[1, 0], [2, 1]]}).reduction
    assert matrix == ((1.0, 0.0), (2.0, 1.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gravty": [0, 0, 0]}, "unknown key 'gravty'; did you mean 'gravity'?"),
        (
            {"joint": [{"name": "a"}, {"name": "b", "alhpa": 1}]},
            "unknown key 'joint[2].alhpa'; did you mean 'alpha'?",
        ),
        # the unknown key explains the missing one and is named first
        ({"joint": [{"nam": "a"}]}, "unknown key 'joint[1].nam'; did you mean 'name'?"),
        ({"joint": [{"a": 1.0}]}, "key 'joint[1].name' is missing"),
        (
            {"joint": [{"name": "a", "type": "revolut"}]},
            "key 'joint[1].type' is 'revolut'; did you mean 'revolute'?",
        ),
        (
            {"joint": [{"name": "a", "alpha": "90"}]},
            "key 'joint[1].alpha' is '90' but should be a valid number",
        ),
        (
            {"joint": [{"name": "a", "d": float("nan")}]},
            "key 'joint[1].d' is nan but should be a finite number",
        ),
        (
            {"joint": [{"name": "a", "inertial": {"mass": -1.0}}]},
            "key 'joint[1].inertial.mass' is -1.0 but should be greater than or equal to 0",
        ),
        (
            {"drive": [{"joint": "a", "gain": 0.0}]},
            "key 'drive[1].gain': is 0, so that no current gives a torque; leave it out",
        ),
        ({"joint": []}, "the DH table has no [[joint]] rows"),
        ({"urdf": "x.urdf"}, "give either urdf = "),
        (
            {"transmission": {"reduction": [[1, 0], [0, "x"]]}},
            "key 'transmission.reduction[2][2]' is 'x' but should be a valid number",
        ),
        (
            {"transmission": {"reduction": [1, "x"]}},
            "key 'transmission.reduction[2]' is 'x' but should be a valid number",
        ),
        (
            {"drive": [{"joint": 1.5}]},
            "key 'drive[1].joint' is 1.5 but should be a valid string or should be a valid integer",
        ),
        (
            {"drive": [{"joint": "a", "row": {"b": "x"}}]},
            "key 'drive[1].row.b' is 'x' but should be a valid number",
        ),
        ({"floating": 1}, "key 'floating' is 1 but should be a valid boolean"),
        ({"gravity": [0.0, 1.0]}, "key 'gravity' has too few entries"),
        ({"gravity": [0.0] * 4}, "key 'gravity' is [0.0, 0.0, 0.0, 0.0] but tuple should have at"),
        ({"angles": "grad"}, "key 'angles' is 'grad'; did you mean 'rad'?"),
    ],
)
def test_refusals_are_one_line_with_the_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        validate_data(RobotSpec, TABLE | change, Path("robots/r.toml"))
    text = str(caught.value)
    assert text.startswith(f"robots/r.toml: {message}")
    assert "\n" not in text


class Box(Spec):
    kind: Literal["box"]
    width: float


class Ball(Spec):
    kind: Literal["ball"]
    radius: float


class Shapes(Spec):
    shape: tuple[Annotated[Box | Ball, Field(discriminator="kind")], ...] = ()
    either: Box | Ball | None = None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"shape": [{"kind": "ball", "radios": 1.0}]},
            "unknown key 'shape[1].radios'; did you mean 'radius'?",
        ),
        (
            {"shape": [{"kind": "ball", "qqq": 1.0}]},
            "unknown key 'shape[1].qqq'; choose from kind, radius",
        ),
        ({"shape": [{"kind": "ball"}]}, "key 'shape[1].radius' is missing"),
        ({"shape": [{"kind": "bal"}]}, "key 'shape[1].kind' is 'bal'; did you mean 'ball'?"),
        ({"shape": [{"kind": "egg"}]}, "key 'shape[1].kind' is 'egg'; choose from box, ball"),
        ({"shape": [{"radius": 1.0}]}, "key 'shape[1].kind' is missing"),
        ({"shape": 3}, "key 'shape' is 3 but should be a valid list"),
        ({"either": {"kind": "box", "withd": 1}}, "unknown key 'either.withd'; did you mean"),
    ],
)
def test_unions_are_told_without_pydantics_tags(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        validate_data(Shapes, data, "s.toml")
    assert str(caught.value).startswith(f"s.toml: {message}")


def test_toml_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = \n")
    with pytest.raises(InputError, match=r"bad.toml: is not valid TOML: .*line 1"):
        read_toml(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b'a = "\xe9"')
    with pytest.raises(InputError, match=r"not UTF-8"):
        read_toml(tmp_path / "latin.toml")
