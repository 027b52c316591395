"""Tables of TOML and JSON files, checked at the door: one line says what is wrong, and where."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    create_model,
)
from pydantic_core import ErrorDetails

from dynident.core.errors import InputError
from dynident.core.text import UNFIT, suggest_nearest

Number = Annotated[float, Strict(), AllowInfNan(False)]
"""A finite number; neither a string nor a truth value passes for one."""
Flag = Annotated[bool, Strict()]
"""``true`` or ``false`` and nothing else."""
Tolerance = Annotated[Number, Field(gt=0.0, lt=1.0)]
Rounds = Annotated[int, Field(strict=True, ge=1, le=10_000)]


def refuse_unfit_name(name: str) -> str:
    """Refuse names with characters that no file, document or terminal can hold."""
    found = UNFIT.search(name)
    if found:
        raise ValueError(f"{name[:60]!r} has the character {found[0]!r}, which no name can have")
    return name


Name = Annotated[str, Strict(), Field(min_length=1), AfterValidator(refuse_unfit_name)]
"""A word that is not empty, without control characters."""


@dataclass(frozen=True)
class RelativePath:
    """Marks names of files: they stand relative to the file that names them."""


File = Annotated[Name, RelativePath()]
"""Name of a file, relative to the file that it stands in."""
Vector3 = tuple[Number, Number, Number]


REMOTE = "://"
"""What names have that are not paths."""
DEEPEST = 64
"""Parts of a dotted key; a study has no more than four."""
PART = re.compile(r"\.[ \t]*[\w\"'-]")
SEPARATOR = re.compile(r"[=,{}]")


class Spec(BaseModel):
    """A frozen table of a TOML file; unknown keys are refused.

    What checks it is built when it is first used, once for a file and all tables within.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def extend_table(name: str, table: type[Spec], keys: Mapping[str, Any]) -> type[Spec]:
    """A table with more keys, by their types; what is not given is None."""
    more: dict[str, Any] = {key: (kind | None, None) for key, kind in keys.items()}
    return create_model(name, __base__=table, __doc__=table.__doc__, **more)


@dataclass(frozen=True, eq=False)
class OneOf:
    """Checks a name against its choices; a registry is asked as it then is."""

    choices: Collection[str]

    def __call__(self, name: str) -> str:
        """The name, where it is known."""
        if name not in self.choices:
            raise ValueError(f"{name!r} is not known{suggest_nearest(name, self.choices)}")
        return name


def make_choice_validator(choices: Collection[str]) -> AfterValidator:
    """A validator that refuses names which are not among the choices."""
    return AfterValidator(OneOf(choices))


def join_names(names: object) -> object:
    """A list of names as one, with commas between."""
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return ",".join(names)
    return names


def list_choices(note: object) -> tuple[str, ...]:
    """The choices behind a validator of `make_choice_validator`; none behind another."""
    check = note.func if isinstance(note, AfterValidator) else None
    return tuple(check.choices) if isinstance(check, OneOf) else ()


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        refuse_deep_keys(path, text)
        return tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except (ValueError, RecursionError) as error:  # of numbers and nesting beyond reason too
        raise InputError(f"{path}: is not valid TOML: {error}") from error


def refuse_deep_keys(path: Path, text: str) -> None:
    """Refuse keys of too many parts: the parser's memory grows with the square of their number."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") < DEEPEST or line.lstrip().startswith("#"):
            continue
        for piece in SEPARATOR.split(line):
            if len(PART.findall(piece)) >= DEEPEST:
                raise InputError(
                    f"{path}, line {number}: a key has more than {DEEPEST} parts between dots"
                )


M = TypeVar("M", bound=BaseModel)


def has_file_names(annotation: object, notes: Collection[object] = ()) -> bool:
    """Whether a type, with the notes beside it, has names of files somewhere in it."""
    notes = (*notes, *getattr(annotation, "__metadata__", ()))
    return any(isinstance(note, RelativePath) for note in notes) or any(
        has_file_names(part) for part in get_args(annotation)
    )


@cache
def find_file_keys(table: type[BaseModel]) -> frozenset[str]:
    """Keys of a table that name files."""
    fields = table.model_fields.items()
    return frozenset(key for key, own in fields if has_file_names(own.annotation, own.metadata))


def replace_file_names(table: M, placed: Callable[[str], str]) -> M:
    """A table, and those in it, with each name of a file put where `placed` says.

    What is in a store elsewhere (``s3://``) stays there.
    """

    def put(value: Any, file: bool) -> Any:
        if isinstance(value, BaseModel):
            return replace_file_names(value, placed)
        if isinstance(value, tuple):
            return tuple(put(each, file) for each in value)
        return placed(value) if file and isinstance(value, str) and REMOTE not in value else value

    changed, files = {}, find_file_keys(type(table))
    for key, value in table:
        after = put(value, key in files)
        if after != value:
            changed[key] = after
    return table.model_copy(update=changed) if changed else table


def list_file_names(table: BaseModel) -> tuple[str, ...]:
    """Names of all files that a table, or one in it, names."""
    found: list[str] = []

    def note(name: str) -> str:
        found.append(name)
        return name

    replace_file_names(table, note)
    return tuple(found)


def validate_data(model: type[M], data: object, place: str | Path) -> M:
    """Check what a file says against a pydantic model; the place names the file and table."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{place}: {_describe_first_problem(model, data, error)}") from error


def _describe_first_problem(model: type[BaseModel], data: object, error: ValidationError) -> str:
    found = [(e, *_locate_error(model, data, e["loc"])) for e in error.errors(include_url=False)]
    unknown = [item for item in found if item[0]["type"] == "extra_forbidden"]
    if unknown:
        problem, path, models = unknown[0]
        fields = sorted({name for m in models for name in m.model_fields})
        hint = suggest_nearest(str(problem["loc"][-1]), fields)
        return f"unknown key {_format_key_path(path)}{hint}"
    # of a union's branches, the one that got deepest is the one that was meant
    top = found[0][1][:1]
    _, path, _ = max((item for item in found if item[1][:1] == top), key=lambda item: len(item[1]))
    return _describe_key_errors([item[0] for item in found if item[1] == path], path)


def _describe_key_errors(errors: list[ErrorDetails], path: tuple[str | int, ...]) -> str:
    """The errors at one key in words."""
    error, context = errors[0], errors[0].get("ctx", {})
    where = f"key {_format_key_path(path)}" if path else "the content"
    tag = str(context.get("discriminator", "")).strip("'")
    match error["type"]:
        case "missing" if isinstance(error["loc"][-1], int):
            return f"{where} has too few entries"
        case "missing":
            return f"{where} is missing"
        case "union_tag_not_found":
            return f"key {_format_key_path((*path, tag))} is missing"
        case "union_tag_invalid":
            value, choices = context["tag"], context["expected_tags"]
            hint = _suggest_expected(value, choices)
            return f"key {_format_key_path((*path, tag))} is {value!r}{hint}"
        case "literal_error" if isinstance(error["input"], str):
            hint = _suggest_expected(error["input"], context["expected"])
            return f"{where} is {error['input']!r}{hint}"
        case "value_error":
            return f"{where}: {context['error']}" if path else str(context["error"])
    return f"{where} {describe_value_errors(errors)}"


def describe_value_errors(errors: list[ErrorDetails]) -> str:
    """What is wrong with one value, after its name."""
    first = errors[0]
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    messages = dict.fromkeys(
        e["msg"].removeprefix("Input ").replace("valid tuple", "valid list") for e in errors
    )
    expected = " or ".join(m[0].lower() + m[1:] for m in messages)
    given = repr(first["input"])
    return f"is {given if len(given) <= 60 else given[:57] + '...'} but {expected}"


def _suggest_expected(value: str, expected: str) -> str:
    choices = [part.strip("'") for part in expected.replace(" or ", ", ").split(", ")]
    return suggest_nearest(value, choices)


def _format_key_path(path: tuple[str | int, ...]) -> str:
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return repr(text.removeprefix("."))


def _locate_error(
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
                fields = [m.model_fields[part] for m in models if part in m.model_fields]
                models = [own for f in fields for own in _find_models(f.annotation)] or models
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


def _find_models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _find_models(argument)
