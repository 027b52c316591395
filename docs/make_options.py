"""Writes what is made from the fields of the options: `options.md` and the flags of identify.

Run it after an option was added or said otherwise: ``.venv/bin/python docs/make_options.py``.
"""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from dynident.api import EVERY_METHOD
from dynident.core.options import Option, table
from dynident.core.schema import choices_of
from dynident.estimators.options import every_option, methods_with

HERE = Path(__file__).resolve().parent
PAGE = HERE / "options.md"
KINDS = {
    frozenset({str}): "word",
    frozenset({float}): "number",
    frozenset({float, str}): "number or word",
    frozenset({int}): "whole number",
    frozenset({bool}): "switch",
}
FLAGS = HERE.parent / "src" / "dynident" / "cli" / "flags.py"


def bases(kind: Any) -> set[type]:
    """Plain types that an option may be."""
    if get_origin(kind) is Annotated:
        return bases(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return set().union(*(bases(part) for part in get_args(kind)))
    if get_origin(kind) is Literal:
        return {type(value) for value in get_args(kind)}
    return set() if kind is type(None) else {kind}


def choices(kind: Any) -> tuple[str, ...]:
    """Words that an option may be, where it is one of some."""
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        named = next((known for note in notes if (known := choices_of(note))), ())
        return named or choices(inner)
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(word for part in get_args(kind) for word in choices(part))
    if get_origin(kind) is Literal:
        return tuple(str(value) for value in get_args(kind))
    return ()


def of_methods(option: Option) -> str:
    """The methods that have it, shortened."""
    having = methods_with(option.name)
    if not having or len(having) == 12:
        return "every method"
    constrained = [m for m in having if m.startswith("pc-")]
    rest = [m for m in having if m not in constrained]
    if len(constrained) == 4:
        rest.append("pc-*")
    else:
        rest += constrained
    return ", ".join(rest)


def default_words(option: Option) -> str:
    """Its default, as a study has it."""
    if option.default is None:
        return ""
    return str(option.default).lower() if isinstance(option.default, bool) else f"{option.default}"


def options() -> list[Option]:
    """All options, those of the methods first."""
    return [*every_option().values(), *table(EVERY_METHOD).values()]


def page() -> str:
    """The reference page."""
    lines = [
        "# Options of the methods",
        "",
        "Made by `.venv/bin/python docs/make_options.py` from the fields of the option families.",
        "",
        "Each is a key of `[identify]` in a study, a flag of `dynident identify`",
        "(`prior_weight` is `--prior-weight`), and a keyword of `dynident.identify`. A method that",
        "does not have an option refuses it, and says which methods have it.",
        "",
        "| option | what it says | choices | default | methods |",
        "|---|---|---|---|---|",
    ]
    for option in options():
        if option.in_python:
            continue
        words = ", ".join(f"`{c}`" for c in choices(option.type))
        kinds = bases(option.type)
        if float in kinds:
            words = f"a number, {words}" if words else "a number"
        if kinds == {int}:
            words = "a whole number"
        if kinds == {bool}:
            words = "`true`, `false`"
        default = f"`{default_words(option)}`" if default_words(option) else ""
        row = (f"`{option.name}`", option.words, words, default, of_methods(option))
        lines.append("| " + " | ".join(row) + " |")
    lines += [
        "",
        "Given as objects in Python, in sections of a study:",
        "",
        "- `simulation`: a `Simulation`, from `[controller]`, `[reference]` and `[simulation]`",
        "- `constraints`: see [Consistency](consistency.md), from `[[constraint]]`",
        "",
    ]
    return "\n".join(lines)


def flags() -> str:
    """The flags as a module, so that --help needs to load nothing else."""
    lines = [
        '"""Flags of the methods\' options, so that --help loads nothing else.',
        "",
        "Made by docs/make_options.py from the fields of the option families; do not edit.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import NamedTuple",
        "",
        "",
        "class Flag(NamedTuple):",
        '    """An option as the command line has it: its name, its kind and its help."""',
        "",
        "    name: str",
        "    kind: str",
        "    words: str",
        "",
        "",
        "FLAGS = (",
    ]
    for option in options():
        if option.in_python:
            continue
        words = option.words.replace("`", "")
        named = ", ".join(choices(option.type))
        text = f"Of {of_methods(option)}: {words}"
        text += f" ({named})" if named and named not in text else ""
        kind = KINDS[frozenset(bases(option.type))]
        lines += [
            "    Flag(",
            f"        {json.dumps(option.name)},",
            f"        {json.dumps(kind)},",
        ]
        lines += [*wrapped(text), "    ),"]
    return "\n".join([*lines, ")", ""])


def wrapped(text: str) -> list[str]:
    """A string literal over lines of at most 100 columns."""
    parts, rest = [], text + "."
    while len(rest) > 80:
        cut = rest.rfind(" ", 0, 80) + 1
        parts.append(rest[:cut])
        rest = rest[cut:]
    return [f"        {json.dumps(part)}" for part in parts] + [f"        {json.dumps(rest)},"]


if __name__ == "__main__":
    PAGE.write_text(page())
    FLAGS.write_text(flags())
