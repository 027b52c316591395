"""``[[constraint]]`` of a study: what is known of the robot, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from dynident.consistency.constraints import CONSTRAINTS, Constraint
from dynident.consistency.constraints.checks import entry
from dynident.core.makers import given_to, maker_section
from dynident.core.schema import Name, Spec, one_of


class ConstraintKind(Spec):
    """``[[constraint]]``: a kind, and the fields of its type as keys.

    Attributes
    ----------
    kind : str
        Name in `dynident.consistency.constraints.CONSTRAINTS`.
    """

    kind: Annotated[Name, one_of(CONSTRAINTS)]


if TYPE_CHECKING:
    ConstraintSection = ConstraintKind
else:
    ConstraintSection = maker_section("ConstraintSection", ConstraintKind, CONSTRAINTS)


def build_constraints(sections: tuple[ConstraintSection, ...]) -> tuple[Constraint, ...]:
    """Constraints of a study.

    Raises
    ------
    InputError
        Naming the entry and the key that its kind does not have, lacks or cannot use.
    """
    built = []
    for k, section in enumerate(sections, 1):
        make = CONSTRAINTS[section.kind]
        with entry(k):
            built.append(make(**given_to(make, section, f"constraint {section.kind!r}", ("kind",))))
    return tuple(built)
