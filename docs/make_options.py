"""Writes what is made from the fields of the options: `options.md` and the flags of identify.

Run it after an option was added or said otherwise: ``.venv/bin/python docs/make_options.py``.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from dynident.api import EVERY_METHOD
from dynident.cli.flags import Flag
from dynident.cli.options import list_flag_spellings, spell_flag
from dynident.consistency.constraints import CONSTRAINTS
from dynident.consistency.knowledge import Knowledge
from dynident.control.controller import CONTROLLERS
from dynident.core.makers import Maker, list_arguments
from dynident.core.options import Option, collect_options
from dynident.core.schema import list_choices
from dynident.estimators.closed_loop import Simulation
from dynident.excitation.criteria import CRITERIA
from dynident.excitation.obstacles import OBSTACLES
from dynident.excitation.options import FAMILIES as EXCITATION
from dynident.excitation.selection import Selecting
from dynident.friction.models import DEFAULT_FRICTION
from dynident.methods import DEFAULT_METHOD, ESTIMATORS
from dynident.methods.options import list_all_options, list_methods_with_option
from dynident.recording.clock import Clocking
from dynident.recording.floating import Floating
from dynident.recording.mend import Mending
from dynident.recording.prepare import BANDWIDTH, Preparation
from dynident.study.compare import METHODS
from dynident.study.loop import JOINTS, MADE
from dynident.study.payload import FAMILIES as PAYLOAD
from dynident.study.sample import Drawing
from dynident.study.study import TRACKING

HERE = Path(__file__).resolve().parent
PAGE = HERE / "options.md"
FLAGS = HERE.parent / "src" / "dynident" / "cli" / "flags.py"
KINDS = {
    frozenset({str}): "word",
    frozenset({float}): "number",
    frozenset({float, str}): "number or word",
    frozenset({float, bool}): "number or word",
    frozenset({int}): "whole number",
    frozenset({bool}): "switch",
    frozenset({Mapping}): "table",
    frozenset({float, tuple}): "numbers",
    frozenset({tuple}): "words",
}
VALUES: dict[Any, str] = {
    bool: "`true`, `false`",
    int: "a whole number",
    float: "a number",
    tuple: "one a joint",
    Mapping: "a table of numbers or lists",
}
"""What an option may be beside the words that it knows."""
EXPLAINED = {
    "essential": "choosing-a-method.md#essential-parameters",
    "covariance": "choosing-a-method.md#which-covariance",
    "loss": "choosing-a-method.md#robust-estimation",
    "position_std": "choosing-a-method.md#noise-of-positions-torques-and-wrenches",
    "torque_std": "choosing-a-method.md#noise-of-positions-torques-and-wrenches",
    "wrench_std": "choosing-a-method.md#noise-of-positions-torques-and-wrenches",
    "gain_update": "closed-loop.md#starts",
    "prior": "consistency.md#the-prior",
    "metric": "consistency.md#the-prior",
    "prior_weight": "consistency.md#the-prior",
    "consistency": "consistency.md#what-consistent-means",
    "bootstrap": "consistency.md#error-bars-on-a-boundary",
    "seed": "consistency.md#error-bars-on-a-boundary",
    "memory": "online.md#forgetting",
    "memory_friction": "online.md#forgetting",
    "directional": "online.md#forgetting",
    "walk": "online.md#the-kalman-filter",
    "walk_friction": "online.md#the-kalman-filter",
    "shape_std": "online.md#the-extended-kalman-filter",
    "ranges": "choosing-a-method.md#searching-ranges",
    "objective": "choosing-a-method.md#searching-ranges",
    "spread_weight": "choosing-a-method.md#searching-ranges",
    "begin": "choosing-a-method.md#searching-ranges",
    "population": "choosing-a-method.md#searching-ranges",
    "generations": "choosing-a-method.md#searching-ranges",
    "particles": "choosing-a-method.md#searching-ranges",
    "steps": "choosing-a-method.md#searching-ranges",
    "search_state": "choosing-a-method.md#searching-ranges",
    "rows": "closed-loop.md#rows",
    "lowpass_hz": "conventions.md#relative-error",
    "score": "conventions.md#relative-error",
    "bandwidth": "preparation.md#the-keys",
    "position_hz": "preparation.md#the-keys",
    "torque_hz": "preparation.md#the-keys",
    "decimation": "preparation.md#the-keys",
    "drop_below": "preparation.md#the-keys",
    "median": "preparation.md#the-keys",
    "derivatives": "preparation.md#the-keys",
    "period": "preparation.md#averaging-over-periods",
    "warmup": "preparation.md#averaging-over-periods",
    "doctor": "doctor.md#in-every-identification",
    "clock": "logs.md#clocks",
    "bridge": "logs.md#gaps",
    "bad_rows": "logs.md#bad-rows",
    "equations": "legged.md#the-equations",
    "base": "legged.md#a-fixed-arm-on-a-force-plate",
    "quaternion": "legged.md#columns",
    "base_axes": "legged.md#columns",
    "imu_position": "legged.md#columns",
    "imu_rpy": "legged.md#columns",
    "locked": "legged.md#locked-joints",
    "contact_speed": "legged.md#columns",
    "contact_force": "legged.md#columns",
    "tared": "legged.md#sensors-that-are-biased-or-askew",
    "order": "doctor.md#repair-by-hand",
    "sign": "doctor.md#repair-by-hand",
    "offset": "doctor.md#repair-by-hand",
    "delay": "doctor.md#repair-by-hand",
    "integrator": "simulation.md#integrators",
    "substeps": "simulation.md#integrators",
    "width": "simulation.md#the-sign-of-coulomb-friction",
    "start": "closed-loop.md#starts",
    "targets": "sim-to-real.md#the-loop",
    "links": "sim-to-real.md#what-is-fitted",
    "loop": "sim-to-real.md#what-is-fitted",
    "mount": "sim-to-real.md#a-stand-that-gives-way",
    "gains": "payload.md#gains-of-the-drives",
}
"""Where the guide says more of an option."""


OF_METHODS = ("seed",)
"""Options of which the guide says more as far as they are of methods."""
NESTED = ("avoid", "ignore")
"""Options of excite that are lists of lists."""
HEAD = ("key", "what it says", "values", "default")
WITH_FLAGS = (HEAD[0], "flag", *HEAD[1:])


def bases(kind: Any) -> set[Any]:
    """Plain types that an option may be."""
    if get_origin(kind) is Annotated:
        return bases(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return set().union(*(bases(part) for part in get_args(kind)))
    if get_origin(kind) is Literal:
        return {type(value) for value in get_args(kind)}
    return set() if kind is type(None) else {get_origin(kind) or kind}


def choices(kind: Any) -> tuple[str, ...]:
    """Words that an option may be, where it is one of some."""
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        named = next((known for note in notes if (known := list_choices(note))), ())
        return named or choices(inner)
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(word for part in get_args(kind) for word in choices(part))
    if get_origin(kind) is Literal:
        return tuple(str(value) for value in get_args(kind))
    return ()


def of_methods(option: Option) -> str:
    """The methods that have it, shortened."""
    having = list_methods_with_option(option.name)
    if not having or len(having) == len(ESTIMATORS):
        return "every method"
    constrained = [method for method in ESTIMATORS if method.startswith("pc-")]
    if not set(constrained) <= set(having):
        return ", ".join(having)
    return ", ".join([*(method for method in having if method not in constrained), "pc-*"])


def options() -> list[Option]:
    """Options that a study and the command line can hold, those of the methods first."""
    every = [*list_all_options().values(), *collect_options(EVERY_METHOD).values()]
    return [option for option in every if not option.in_python]


def of_family(family: type) -> list[tuple[str, ...]]:
    """The rows of a family whose options have no flags."""
    return [
        (named(o), o.words, values(o), default(o))
        for o in collect_options([family]).values()
        if not o.in_python
    ]


def of_makers(makers: Mapping[str, Maker], leave: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The kinds of a section, and the keys that each has to be given and takes."""
    found = []
    for kind, maker in makers.items():
        known = list_arguments(maker, leave).values()
        keys = [
            ", ".join(f"`{a.name}`" for a in known if a.required is has) for has in (True, False)
        ]
        found.append((f"`{kind}`", *keys))
    return found


def named(option: Option) -> str:
    """Its name, with where the guide says more."""
    link = EXPLAINED.get(option.name)
    return f"[`{option.name}`]({link})" if link else f"`{option.name}`"


def called(option: Option) -> str:
    """The same of an option of a command."""
    return f"`{option.name}`" if option.name in OF_METHODS else named(option)


def values(option: Option) -> str:
    """What it may be."""
    kinds = bases(option.type)
    words = [f"`{choice}`" for choice in choices(option.type)]
    if kinds == {tuple}:
        return ", ".join([*words, "a list"])
    return ", ".join([*words, *(said for kind, said in VALUES.items() if kind in kinds)])


def default(option: Option) -> str:
    """What it is unless told otherwise, as a study has it."""
    if option.default is None:
        return ""
    return f"`{json.dumps(option.default)}`".replace('"', "")


def rows(head: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> list[str]:
    """A table."""
    lines = [head, ("---",) * len(head), *body]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def page() -> str:
    """The reference page."""
    of_methods_rows = [
        (named(o), f"`{flag}`", o.words, values(o), default(o), of_methods(o))
        for o, flag in zip(options(), spelled_flags(), strict=True)
    ]
    lines = [
        "# Options of the methods",
        "",
        "Made by `.venv/bin/python docs/make_options.py` from the fields of the option families.",
        "",
        "Each of them is a key of `[identify]` in a study, a flag of `dynident identify`, and a",
        "keyword of {py:func}`dynident.identify`. A method that does not have an option refuses",
        "it, and says which methods have it.",
        "",
        *rows(("key", "flag", "what it says", "values", "default", "methods"), of_methods_rows),
        "",
        "Where no default stands, the option is off, or its sentence says what is taken. A result",
        "tells under `settings` which options were in effect.",
        "",
        "## Preparation",
        "",
        "Keys of `[prepare]` in a study, for all of its logs, held-out ones included, and keywords",
        "of {py:func}`dynident.prepare`. The command line has `--bandwidth`.",
        "",
        *rows(HEAD, of_family(Preparation)),
        "",
        "## Reading",
        "",
        "Keys of a `[[log]]` in a study, and keywords of {py:func}`dynident.read_log`: how rows",
        "become samples on one uniform clock.",
        "",
        *rows(HEAD, of_family(Clocking)),
        "",
        "## Repairs",
        "",
        "Keys of a `[[log]]` in a study: what is done to the log before anything else, in this",
        "order, on the joints' side. [The doctor](doctor.md) says which.",
        "",
        *rows(HEAD, of_family(Mending)),
        "",
        "## Floating bases",
        "",
        "Keys of a `[[log]]` in a study, of robots on bases that move and of robots with contacts:",
        "how the columns are meant, and what the log is to state.",
        "",
        *rows(HEAD, of_family(Floating)),
        "",
        "## The simulated loop",
        "",
        "Keys of `[simulation]` in a study, and arguments of {py:class}`dynident.Simulation`,",
        "for the methods that simulate. They have no flags.",
        "",
        *rows(HEAD, of_family(Simulation)),
        "",
        "## Tracking",
        "",
        "Keys of `[track]` in a study, and flags, of [`dynident track`](online.md).",
        "",
        *rows(HEAD, [row for family in TRACKING for row in of_family(family)]),
        "",
        "## Excitation",
        "",
        "Keys of `[excitation]` in a study, flags of [`dynident excite`](excitation.md) and",
        "keywords of {py:func}`dynident.excite`.",
        "",
        *rows(WITH_FLAGS, with_flags(EXCITATION)),
        "",
        "### Criteria",
        "",
        "What they mean stands in [excitation](excitation.md#criteria).",
        "",
        *rows(("`criterion`", "minimises"), [(f"`{k}`", c.words) for k, c in CRITERIA.items()]),
        "",
        "## Selection",
        "",
        "Keys of `[select]` in a study, and flags, of [`dynident select`](selection.md).",
        "",
        *rows(HEAD, of_family(Selecting)),
        "",
        "## Loads",
        "",
        "Flags of [`dynident payload`](payload.md), and keywords of {py:func}`dynident.payload`.",
        "",
        *rows(WITH_FLAGS, with_flags(PAYLOAD)),
        "",
        "## Draws",
        "",
        "Flags of [`dynident sample`](sample.md), and keywords of {py:func}`dynident.sample`.",
        "",
        *rows(WITH_FLAGS, with_flags([Drawing])),
        "",
        "## Kinds",
        "",
        "What each `kind` of a section has to be given, and what it takes beside. What the keys",
        "mean stands in [the study](study.md).",
        "",
        *rows(("`[controller]`", "needs", "takes"), of_makers(CONTROLLERS, JOINTS)),
        "",
        *rows(("`[reference]`", "needs", "takes"), of_makers(MADE)),
        "",
        *rows(("`[[constraint]]`", "needs", "takes"), of_makers(CONSTRAINTS)),
        "",
        *rows(("`[[obstacle]]`", "needs", "takes"), of_makers(OBSTACLES)),
        "",
        "## Objects",
        "",
        "Given as objects in Python, in sections of a study:",
        "",
        "- `simulation`: a `Simulation`, from `[controller]`, `[reference]` and `[simulation]`",
        "- `constraints`: see [consistency](consistency.md#what-else-is-known), from",
        "  `[[constraint]]`",
        "",
    ]
    return "\n".join(lines)


def flag_rows() -> tuple[tuple[str, str, str], ...]:
    """Name, kind and help of each flag of identify."""
    return tuple(flag_row(option, f"Of {of_methods(option)}: ") for option in options())


def own_rows(families: Sequence[type], *names: str) -> tuple[tuple[str, str, str], ...]:
    """The same of a command with families of its own, or with some options of them.

    Lists of lists are a study's alone.
    """
    chosen = [
        o
        for o in collect_options(families).values()
        if not o.in_python and o.name not in NESTED and (not names or o.name in names)
    ]
    return tuple(flag_row(option, "", default(option).strip("`")) for option in chosen)


def with_flags(families: Sequence[type]) -> list[tuple[str, ...]]:
    """The rows of a command's options, with their flags."""
    known = (Flag(*row) for row in own_rows(families))
    flags = {
        flag.name: "`, `".join(list_flag_spellings(flag)).replace("/", "`, `") for flag in known
    }
    return [
        (called(o), f"`{flags[o.name]}`" if o.name in flags else "", o.words, values(o), default(o))
        for o in collect_options(families).values()
        if not o.in_python
    ]


def flag_row(option: Option, before: str, value: str = "") -> tuple[str, str, str]:
    """Name, kind and help of a flag."""
    words = option.words.replace("`", "")
    known = ", ".join(choices(option.type))
    text = f"{before}{words}"
    told = known in text or all(f"{word} (" in text for word in choices(option.type))
    text += f" ({known})" if known and not told else ""
    text += f"; {value}" if value and value not in ("false", "true") else ""
    text = text if before else text[0].upper() + text[1:]
    return option.name, kind_of(option), f"{text}."


def kind_of(option: Option) -> str:
    """The kind of a flag."""
    kinds = frozenset(bases(option.type))
    return "numbers" if kinds == {tuple} and inner(option.type) <= {float} else KINDS[kinds]


def inner(kind: Any) -> set[Any]:
    """Plain types of what a list may hold."""
    if get_origin(kind) is tuple:
        return set().union(*(bases(part) for part in get_args(kind) if part is not ...))
    if get_origin(kind) in (Union, types.UnionType, Annotated):
        parts = get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)
        return set().union(*(inner(part) for part in parts))
    return set()


def spelled_flags() -> list[str]:
    """How the flags are written on the command line."""
    return [spell_flag(Flag(*row)).replace("/", "`, `") for row in flag_rows()]


def defaults() -> dict[str, str]:
    """What is taken where a flag that is no option is not given, for its help."""
    return {
        "friction": DEFAULT_FRICTION,
        "bandwidth": f"{BANDWIDTH:g}, at most a twentieth of the rate, and a warning",
        "method": DEFAULT_METHOD,
        "methods": ",".join(METHODS),
    }


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
    ]
    lines += ["", "DEFAULTS = {"]
    lines += [f"    {json.dumps(name)}: {json.dumps(value)}," for name, value in defaults().items()]
    lines += ["}", '"""What is taken where a flag that is no option is not given, for its help."""']
    made = {
        "FLAGS": flag_rows(),
        "SELECT_FLAGS": own_rows([Selecting]),
        "TRACK_FLAGS": own_rows(TRACKING),
        "EXCITE_FLAGS": own_rows(EXCITATION),
        "NEAREST_FLAGS": own_rows([Knowledge], "metric"),
        "PAYLOAD_FLAGS": own_rows(PAYLOAD),
        "SAMPLE_FLAGS": own_rows([Drawing]),
    }
    for title, every in made.items():
        lines += ["", f"{title} = ("]
        lines += [line for row in every for line in flag_lines(*row)]
        lines += [")"]
    return "\n".join([*lines, ""])


def flag_lines(name: str, kind: str, words: str) -> list[str]:
    """A flag as lines of the module."""
    lines = ["    Flag(", f"        {json.dumps(name)},", f"        {json.dumps(kind)},"]
    return [*lines, *wrapped(words), "    ),"]


def wrapped(text: str) -> list[str]:
    """A string literal over lines of at most 100 columns."""
    parts, rest = [], text
    while len(rest) > (80 if parts else 89):
        cut = rest.rfind(" ", 0, 80) + 1
        parts.append(rest[:cut])
        rest = rest[cut:]
    return [f"        {json.dumps(part)}" for part in parts] + [f"        {json.dumps(rest)},"]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    FLAGS.write_text(flags(), encoding="utf-8")
