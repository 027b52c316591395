"""``[[element]]`` of a study: what acts on a joint beside its friction, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from dynident.core.errors import InputError, SectionError
from dynident.core.makers import given_to, maker_section
from dynident.core.schema import Name, Spec, one_of
from dynident.core.text import nearest
from dynident.dynamics.idim import Attached
from dynident.friction.elements import ELEMENTS, numbered
from dynident.robot.model import Robot


class ElementKind(Spec):
    """``[[element]]``: a joint and a kind, and what its maker is told as keys.

    Attributes
    ----------
    joint : str
    kind : str
        Name in `dynident.friction.elements.ELEMENTS`.
    """

    joint: Name
    kind: Annotated[Name, one_of(ELEMENTS)]


if TYPE_CHECKING:
    ElementSection = ElementKind
else:
    ElementSection = maker_section("ElementSection", ElementKind, ELEMENTS)


def build_elements(sections: tuple[ElementSection, ...], robot: Robot) -> tuple[Attached, ...]:
    """Elements of a study.

    Raises
    ------
    InputError
        Naming the entry, and the joint or key that is not known, missing or cannot be.
    """
    built: list[Attached] = []
    seen: dict[tuple[str, str], int] = {}
    for k, section in enumerate(sections, 1):
        joints = robot.joint_names
        if section.joint not in joints:
            known = nearest(section.joint, joints)
            raise SectionError(f"element[{k}].joint {section.joint!r} is not known{known}")
        maker = ELEMENTS[section.kind]
        try:
            what = f"[[element]] {section.kind}"
            model = maker(**given_to(maker, section, what, ("joint", "kind")))
        except InputError as error:
            raise SectionError(f"element[{k}]: {error}") from error
        before = seen.get((section.joint, section.kind), 0)
        seen[section.joint, section.kind] = before + 1
        built.append(Attached(joints.index(section.joint), numbered(model, before)))
    return tuple(built)
