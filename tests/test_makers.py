"""Tables whose keys are the arguments of what they call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict, Unpack

import pytest
from pydantic import Field

from dynident.consistency.constraints import CONSTRAINTS
from dynident.control.controller import CONTROLLERS
from dynident.control.reference import REFERENCES
from dynident.core.errors import InputError
from dynident.core.makers import (
    Numbers,
    Table,
    Vector,
    build_maker_section,
    collect_arguments,
    list_arguments,
)
from dynident.core.schema import Name, Spec, validate_data
from dynident.study.loop import JOINTS, MADE, ControllerSection, ReferenceSection
from dynident.study.study import Study


class Shared(TypedDict, total=False):
    n: int
    rate: Annotated[float, Field(gt=0.0)] | None


def toast(minutes: float, sides: Literal["one", "both"] = "both", **shared: Unpack[Shared]) -> str:
    return f"{minutes} {sides} {shared}"


@dataclass(frozen=True)
class Bake:
    minutes: tuple[float, ...]
    at: Numbers
    glaze: bool = False
    rows: Table | None = None


class Kind(Spec):
    kind: Name


KITCHEN = {"toast": toast, "bake": Bake}
SECTION = build_maker_section("KitchenSection", Kind, KITCHEN, ("n",))


def given(kind: str, **keys: object) -> dict[str, object]:
    section = validate_data(SECTION, {"kind": kind, **keys}, "a.toml")
    return collect_arguments(KITCHEN[kind], section, f"[kitchen] {kind}", ("kind",), ("n",))


def test_keys_are_the_arguments():
    assert list(SECTION.model_fields) == ["kind", "minutes", "sides", "rate", "at", "glaze", "rows"]
    assert [a.name for a in list_arguments(toast).values() if a.required] == ["minutes"]
    assert "n" in list_arguments(toast)
    assert "n" not in list_arguments(toast, ("n",))


def test_what_was_given_reaches_the_maker():
    assert given("toast", minutes=2, rate=1.0) == {"minutes": 2.0, "rate": 1.0}
    told = given("bake", minutes=[1.0, 2.0], at=[180.0, 200.0], rows=[[1.0], [2.0]])
    assert Bake(**told) == Bake((1.0, 2.0), (180.0, 200.0), rows=((1.0,), (2.0,)))


@pytest.mark.parametrize(
    ("kind", "keys", "words"),
    [
        ("toast", {}, r"\[kitchen\] toast needs 'minutes'"),
        ("toast", {"minutes": 1.0, "glaze": True}, "toast has no 'glaze'; it takes minutes, sides"),
        ("toast", {"minutes": 1.0, "n": 2}, "a.toml: unknown key 'n'"),
        ("toast", {"minutes": 1.0, "rate": -1.0}, "a.toml: key 'rate' is -1.0 but .*than 0"),
        ("toast", {"minutes": 1.0, "sides": "all"}, "'sides' is 'all'.*one, both"),
        ("toast", {"minutes": "long"}, "'minutes' is 'long' but .*number"),
        ("bake", {"minutes": [1.0], "at": float("nan")}, "'at' is nan but .*finite"),
        ("bake", {"minutes": [1.0], "at": 1.0, "glaze": 1}, "'glaze' is 1 but .*boolean"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(kind, keys, words):
    with pytest.raises(InputError, match=words):
        given(kind, **keys)


def test_a_type_that_no_file_can_give_is_a_mistake_of_the_maker():
    def boil(egg: object) -> None: ...

    with pytest.raises(TypeError, match="nothing says how a file gives"):
        list_arguments(boil)


def test_sections_of_a_study_have_the_arguments_of_their_makers():
    sections = {
        "controller": (ControllerSection, CONTROLLERS, JOINTS),
        "reference": (ReferenceSection, MADE, ()),
        "constraint": (Study.model_fields["constraint"].annotation.__args__[0], CONSTRAINTS, ()),
    }
    for section, makers, leave in sections.values():
        for maker in makers.values():
            assert set(list_arguments(maker, leave)) <= set(section.model_fields)
    assert set(REFERENCES) - set(MADE) == {"log"}
    assert set(list_arguments(MADE["quintic"])) == {"rate", "points", "times", "velocities"}
    assert list_arguments(MADE["quintic"])["times"].type == Vector.__metadata__[0].type
