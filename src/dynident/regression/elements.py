"""``[[element]]`` of a study: what acts on a joint beside its friction, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from dynident.core.errors import SectionError, name_section_in_errors
from dynident.core.makers import build_maker_section, collect_arguments
from dynident.core.schema import Name, Number, Spec, make_choice_validator
from dynident.core.text import suggest_nearest
from dynident.dynamics.parameters import JointElements, attach
from dynident.friction.elements import ELEMENTS
from dynident.robot.model import Robot


class ElementKind(Spec):
    """``[[element]]``: a joint and a kind, and what its maker is told as keys."""

    joint: Name
    kind: Annotated[Name, make_choice_validator(ELEMENTS)]
    """Name in `dynident.friction.elements.ELEMENTS`."""
    over: Name | None = None
    """Another joint that it couples, as a cable or a belt does."""
    ratio: Number | None = None
    """By which the other's motion counts; 1 without."""


if TYPE_CHECKING:
    ElementSection = ElementKind
else:
    ElementSection = build_maker_section("ElementSection", ElementKind, ELEMENTS)


def build_elements(sections: tuple[ElementSection, ...], robot: Robot) -> tuple[JointElements, ...]:
    """Elements of a study."""
    built: list[JointElements] = []
    seen: dict[tuple[str, str], int] = {}
    for k, section in enumerate(sections, 1):
        joints = robot.joint_names
        for key, name in (("joint", section.joint), ("over", section.over)):
            if name is not None and name not in joints:
                raise SectionError(
                    f"element[{k}].{key} {name!r} is not known{suggest_nearest(name, joints)}"
                )
        if section.over == section.joint:
            raise SectionError(f"element[{k}].over is the joint itself")
        if section.ratio is not None and section.over is None:
            raise SectionError(f"element[{k}].ratio needs an element over another joint")
        maker = ELEMENTS[section.kind]
        with name_section_in_errors(f"element[{k}]"):
            what = f"[[element]] {section.kind}"
            given = collect_arguments(maker, section, what, ("joint", "kind", "over", "ratio"))
            over = None if section.over is None else joints.index(section.over)
            ratio = 1.0 if section.ratio is None else section.ratio
            before = seen.get((section.joint, section.kind), 0)
            joint = joints.index(section.joint)
            built.append(attach(joint, section.kind, given, over, ratio, before))
        seen[section.joint, section.kind] = before + 1
    return tuple(built)
