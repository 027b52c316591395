"""Tables whose keys are arguments: what a file can say is read off the functions it calls.

A registry has makers by kind: functions, or types, whose arguments are a table's keys. Their
signatures are the only place where the keys stand.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy.typing as npt
from pydantic import Field

from dynident.core.errors import InputError
from dynident.core.options import PerJoint
from dynident.core.schema import Flag, Name, Number, Spec, extend_table

Maker = Callable[..., Any]


@dataclass(frozen=True)
class ReadAs:
    """Marks an argument that a file gives in a narrower type than a caller may."""

    type: Any
    """As pydantic reads it."""


Row = tuple[Number, ...]
Rows = tuple[Row, ...]

Numbers = Annotated[npt.ArrayLike, ReadAs(PerJoint)]
"""An argument that is one number for all joints, or one for each."""
Vector = Annotated[npt.ArrayLike, ReadAs(Row)]
"""One that is a list of numbers."""
Table = Annotated[npt.ArrayLike, ReadAs(Rows)]
"""One that is a list of lists, equally long."""

STRICT = {float: Number, int: Annotated[int, Field(strict=True)], bool: Flag, str: Name}
"""What passes for a plain value in a file."""


@dataclass(frozen=True)
class MakerArgument:
    """What a maker can be told."""

    name: str
    type: Any
    """What a file may give, as pydantic reads it."""
    required: bool


@cache
def list_arguments(maker: Maker, leave: tuple[str, ...] = ()) -> dict[str, MakerArgument]:
    """Arguments of a maker but for those to leave; those of ``**common: Unpack[...]`` last."""
    hints = get_type_hints(maker, include_extras=True)
    found = {}
    for name, parameter in inspect.signature(maker).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            (shared,) = get_args(hints[name])
            common = get_type_hints(shared, include_extras=True)
            found.update(
                {key: MakerArgument(key, to_file_type(hint), False) for key, hint in common.items()}
            )
        elif name not in leave:
            missing = parameter.default is parameter.empty
            found[name] = MakerArgument(name, to_file_type(hints[name]), missing)
    return {name: argument for name, argument in found.items() if name not in leave}


def to_file_type(hint: Any) -> Any:
    """How a file gives what a maker takes."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in STRICT:
        return STRICT[hint]
    if origin is Annotated:
        read = next((note.type for note in parts[1:] if isinstance(note, ReadAs)), None)
        return Annotated[(to_file_type(parts[0]), *parts[1:])] if read is None else read
    if origin in (Union, types.UnionType):
        return unite_types(to_file_type(part) for part in parts if part is not type(None))
    if origin is tuple:
        return tuple[tuple(part if part is ... else to_file_type(part) for part in parts)]  # type: ignore[misc]
    if origin is Literal:
        return hint
    raise TypeError(f"nothing says how a file gives {hint}")


def unite_types(kinds: Iterable[Any]) -> Any:
    """Any of some types, each once."""
    return Union[tuple(dict.fromkeys(kinds))]  # noqa: UP007 (as many as there are)


def build_maker_section(
    name: str, section: type[Spec], makers: Mapping[str, Maker], leave: tuple[str, ...] = ()
) -> type[Spec]:
    """A table whose keys are what any of the makers takes; what is not given is None.

    The section has the keys of all kinds; no file gives the arguments in `leave`.
    """
    known: dict[str, list[Any]] = {}
    for maker in makers.values():
        for key, argument in list_arguments(maker, leave).items():
            known.setdefault(key, []).append(argument.type)
    own = section.model_fields
    return extend_table(
        name, section, {key: unite_types(kinds) for key, kinds in known.items() if key not in own}
    )


def collect_arguments(
    maker: Maker, section: Spec, what: str, own: tuple[str, ...] = (), leave: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The keys of a section that were given, refused where the maker does not take them.

    `what` names the table in messages; `own` are keys that are not arguments, and no file gives
    the arguments in `leave`.
    """
    known = list_arguments(maker, leave)
    told = section.model_dump(exclude_none=True, exclude_unset=True, exclude=set(own))
    for key in told:
        if key not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"{what} has no {key!r}; {takes}")
    for argument in known.values():
        if argument.required and argument.name not in told:
            raise InputError(f"{what} needs {argument.name!r}")
    return told
