"""``[[constraint]]`` of a study: what is known of the robot, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from dynident.consistency.constraints import CONSTRAINTS, Constraint
from dynident.consistency.constraints.checks import name_constraint_in_errors
from dynident.core.makers import build_maker_section, collect_arguments
from dynident.core.schema import Name, Spec, make_choice_validator


class ConstraintKind(Spec):
    """``[[constraint]]``: a kind, and the fields of its type as keys."""

    kind: Annotated[Name, make_choice_validator(CONSTRAINTS)]
    """Name in `dynident.consistency.constraints.CONSTRAINTS`."""


if TYPE_CHECKING:
    ConstraintSection = ConstraintKind
else:
    ConstraintSection = build_maker_section("ConstraintSection", ConstraintKind, CONSTRAINTS)


def build_constraints(sections: tuple[ConstraintSection, ...]) -> tuple[Constraint, ...]:
    """Constraints of a study."""
    built = []
    for k, section in enumerate(sections, 1):
        make = CONSTRAINTS[section.kind]
        with name_constraint_in_errors(k):
            built.append(
                make(**collect_arguments(make, section, f"constraint {section.kind!r}", ("kind",)))
            )
    return tuple(built)
