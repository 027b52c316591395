"""What a sweep varies: keys of a study, and values of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from pydantic import BaseModel

from dynident.core.errors import InputError
from dynident.core.schema import validate_data
from dynident.core.text import suggest_nearest
from dynident.study.study import Study

Axes = Mapping[str, Sequence[Any]]
"""Values by keys, ``section.key``."""
MOST = 10_000
"""Combinations."""


def list_combinations(axes: Axes) -> list[dict[str, Any]]:
    """Every combination of the values, those of the last key next to each other."""
    for key, values in axes.items():
        if not values:
            raise InputError(f"{key}: no value is given")
        if any(value in values[:k] for k, value in enumerate(values)):
            raise InputError(f"{key}: the values are not all different")
    if not axes:
        raise InputError("nothing is varied: give --set SECTION.KEY=VALUE,VALUE,...")
    found = [dict(zip(axes, each, strict=True)) for each in product(*axes.values())]
    if len(found) > MOST:
        raise InputError(f"{len(found)} combinations are more than {MOST}")
    return found


def vary_study(study: Study, values: Mapping[str, Any]) -> Study:
    """A study with other values of some keys."""
    sections: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        section, _, key = name.partition(".")
        sections.setdefault(find_section(study, section, name), {})[key] = value
    changed = {}
    for section, told in sections.items():
        own: BaseModel = getattr(study, section)
        data = {**own.model_dump(exclude_none=True), **told}
        changed[section] = validate_data(type(own), data, f"--set {section}")
    return study.model_copy(update=changed)


def find_section(study: Study, section: str, name: str) -> str:
    """The name of a section that has keys, refused where a study has no such."""
    known = [each for each in Study.model_fields if isinstance(getattr(study, each), BaseModel)]
    if section not in known or "." not in name:
        raise InputError(
            f"--set {name}: a key is SECTION.KEY of the study{suggest_nearest(section, known)}"
        )
    return section
