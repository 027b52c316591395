"""Options that stand once: a frozen family whose fields say all that is said of them.

The study's section, the command line's flags, what is refused and the reference page are made
from the fields: each is ``name: Annotated[type, words] = default``.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from dynident.core.errors import OptionError, check_type, refuse_unknown
from dynident.core.plain import list_union_members, strip_annotation
from dynident.core.schema import Number, Spec, describe_value_errors, extend_table, list_choices


def to_plain_values(values: object) -> object:
    """Arrays of numpy as numbers and lists."""
    return values.tolist() if isinstance(values, np.ndarray) else values


F = TypeVar("F")

HUGE = 1e9
"""Magnitude of a number, and the inverse of the smallest that is not zero, in SI units."""


def refuse_extreme(values: float | tuple[float, ...]) -> float | tuple[float, ...]:
    """Refuse numbers that no robot has, and whose powers leave the range of doubles."""
    sizes = np.abs(np.asarray(values, dtype=float))
    if np.any(sizes > HUGE) or np.any((sizes > 0.0) & (sizes < 1.0 / HUGE)):
        most = f"has to be 0, or from {1.0 / HUGE:g} to {HUGE:g} in magnitude"
        raise ValueError(f"{most}, got {format_toml_value(values)}")
    return values


def refuse_nonpositive(values: float | tuple[float, ...]) -> float | tuple[float, ...]:
    """Refuse what is not positive, and lists of none."""
    if not np.size(values) or np.min(values) <= 0.0:
        raise ValueError(f"has to be positive, got {format_toml_value(values)}")
    return values


def refuse_negative(values: float | tuple[float, ...]) -> float | tuple[float, ...]:
    """Refuse what is negative, and lists of none."""
    if not np.size(values) or np.min(values) < 0.0:
        raise ValueError(f"must not be negative, got {format_toml_value(values)}")
    return values


def format_toml_value(values: float | tuple[float, ...]) -> str:
    """A number or a list as TOML has it."""
    return str(list(values)) if isinstance(values, tuple) else f"{values:g}"


PerJoint = Annotated[
    Number | tuple[Number, ...], BeforeValidator(to_plain_values), AfterValidator(refuse_extreme)
]
"""One finite number for all joints, or one for each."""
Positives = Annotated[PerJoint, AfterValidator(refuse_nonpositive)]
NotNegatives = Annotated[PerJoint, AfterValidator(refuse_negative)]


def broadcast_to_joints(
    values: float | tuple[float, ...], n: int, key: str, what: str = "joints"
) -> tuple[float, ...]:
    """One value a joint, or another thing of which there are n, from a number or a list."""
    found = np.atleast_1d(np.asarray(values, dtype=float))
    if found.shape not in ((1,), (n,)):
        words = f"{key} has {len(found)} values; give one, or one for each of {n} {what}"
        raise OptionError(key.rpartition(": ")[2], words)
    return tuple(np.broadcast_to(found, (n,)).tolist())


@dataclass(frozen=True)
class InPython:
    """Marks an option that is an object: a study has sections for it, and no key."""


@dataclass(frozen=True)
class Of:
    """Marks an option that says nothing but beside another of its family: it is refused alone."""

    other: str
    value: object = None
    """Of the other; None for any but its default."""

    def refuse_alone(self, name: str, family: Options) -> None:
        """Refuse the option, which was given, an `OptionError`, where the other is not so."""
        found = getattr(family, self.other)
        if self.value is None:
            alone = found == collect_options([type(family)])[self.other].default
        else:
            alone = found != self.value
        if alone:
            beside = self.other if self.value is None else f"{self.other} = {self.value!r}"
            raise OptionError(name, f"{name} applies only with {beside}; leave it out")


@dataclass(frozen=True)
class Option:
    """One field of a family."""

    name: str
    type: Any
    """What it may be, as pydantic reads it."""
    default: Any
    words: str
    """What it says, in a sentence."""
    in_python: bool
    """Whether it is an object that no key of a study can hold."""
    of: Of | None

    @property
    def kinds(self) -> frozenset[Any]:
        """Plain types that it may be, but none."""
        return frozenset(_list_plain_types(self.type))

    @property
    def entries(self) -> frozenset[Any]:
        """Plain types of what it may hold, where it is a list."""
        members = list_union_members(strip_annotation(self.type))
        lists = (get_args(each) for each in members if get_origin(each) is tuple)
        parts = (part for inner in lists for part in inner if part is not ...)
        return frozenset().union(*map(_list_plain_types, parts))

    @property
    def choices(self) -> tuple[str, ...]:
        """Words that it may be, where it is one of some."""
        return _list_words(self.type)

    @property
    def shown_default(self) -> str:
        """What it is unless told otherwise, as a study has it; nothing where it is off."""
        return "" if self.default is None else json.dumps(self.default).replace('"', "")


def _list_plain_types(kind: Any) -> set[Any]:
    found: set[Any] = set()
    for each in list_union_members(strip_annotation(kind)):
        words = get_args(each) if get_origin(each) is Literal else ()
        found |= {type(word) for word in words} or {get_origin(each) or each}
    return found


def _list_words(kind: Any) -> tuple[str, ...]:
    """Of the nearest note that knows them, else of all parts of the type."""
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    whole = get_origin(kind) is Annotated
    if not whole and get_origin(kind) not in (Union, types.UnionType):
        return ()
    inner, *notes = get_args(kind)
    named = (known for note in notes if (known := list_choices(note)))
    parts = (inner,) if whole else get_args(kind)
    return next(named, tuple(word for part in parts for word in _list_words(part)))


class Options:
    """Base of the families: values are checked where they are given."""

    def __post_init__(self) -> None:
        options = list_options(type(self))  # type: ignore[arg-type]
        for option in options:
            value = getattr(self, option.name)
            object.__setattr__(self, option.name, check_option(option, value))
        for option in options:
            if option.of is not None and getattr(self, option.name) != option.default:
                option.of.refuse_alone(option.name, self)


@cache
def list_options(family: type) -> tuple[Option, ...]:
    """The options of a family, in the order of its fields."""
    hints = get_type_hints(family, include_extras=True)
    return tuple(_read_option(field, hints[field.name]) for field in fields(family))


def _read_option(field: Field[Any], hint: Any) -> Option:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    words = next((note for note in notes if isinstance(note, str)), "")
    checks = [note for note in notes if not isinstance(note, str | InPython | Of)]
    if checks:
        kind = Annotated[(kind, *checks)]
    default = field.default
    if default is MISSING and field.default_factory is not MISSING:
        default = field.default_factory()
    in_python = any(isinstance(note, InPython) for note in notes)
    of = next((note for note in notes if isinstance(note, Of)), None)
    return Option(field.name, kind, default, words, in_python, of)


@cache
def _make_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def check_option(option: Option, value: object) -> Any:
    """A value as its option has it, numbers of numpy as plain ones."""
    if option.in_python and isinstance(option.type, type) and value is not option.default:
        check_type(option.name, value, option.type, "an option that is an object")
    if option.in_python or value is option.default:
        return value
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        return _make_adapter(option.type).validate_python(plain)
    except ValidationError as error:
        words = describe_value_errors(error.errors(include_url=False))
        raise OptionError(option.name, f"{option.name} {words}") from error


def build_options(family: type[F], given: Mapping[str, Any]) -> F:
    """A family with what was given of its options."""
    names = [option.name for option in list_options(family)]  # type: ignore[arg-type]
    return family(**{name: given[name] for name in names if name in given})


def read_options(family: type[F], section: Spec) -> F:
    """A family with what a section of a study gives of its options."""
    return build_options(family, section.model_dump(exclude_none=True))


def build_all_options(
    owner: str, families: Sequence[type], given: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Families with what was given of their options."""
    names = collect_options(families)
    for name in given:
        refuse_unknown(name, names, f"{owner} has no option {name!r}")
    return tuple(build_options(family, given) for family in families)


def collect_options(families: Sequence[type]) -> dict[str, Option]:
    """Options of several families by name, each name once."""
    return {option.name: option for family in families for option in list_options(family)}


def build_option_section(
    name: str, section: type[Spec], options: Mapping[str, Option]
) -> type[Spec]:
    """A section of a study with options as keys beside its own; what is not given is None."""
    keys = {option.name: option.type for option in options.values() if not option.in_python}
    return extend_table(name, section, keys)
