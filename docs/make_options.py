"""Writes `options.md`, and the types of the same keywords, from the fields of the options.

Run it after an option was added or said otherwise: ``.venv/bin/python docs/make_options.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dynident.api import EVERY_METHOD
from dynident.cli.options import has_flag, list_flag_spellings
from dynident.consistency.constraints import CONSTRAINTS
from dynident.control.controller import CONTROLLERS
from dynident.core.makers import Maker, list_arguments
from dynident.core.options import Option, collect_options
from dynident.decide.decision import DecisionOptions
from dynident.decide.selection import SelectionOptions
from dynident.estimators.closed_loop import Simulation
from dynident.excitation.criteria import CRITERIA
from dynident.excitation.obstacles import OBSTACLES
from dynident.excitation.options import FAMILIES as EXCITATION
from dynident.experiments.planning import PLANNING, ProtocolPlan
from dynident.export.formats import EXPORTS
from dynident.filters.clock import ClockOptions
from dynident.loads.identify import FAMILIES as PAYLOAD
from dynident.methods.options import SIMULATION, list_all_options, name_methods_with_option
from dynident.recording.commanded import DriveLaw
from dynident.recording.floating import FloatingOptions
from dynident.recording.prepare import Preparation
from dynident.recording.repairs import LogRepair
from dynident.study.loop import JOINTS, MADE
from dynident.study.sample import DrawOptions
from dynident.study.study import TRACKING

HERE = Path(__file__).resolve().parent
PAGE = HERE / "options.md"
SOURCE = HERE.parent / "src" / "dynident"
TYPES: dict[Any, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    tuple: "Sequence[float] | npt.NDArray[Any]",
    Mapping: "Mapping[str, Any]",
    str: "str",
}
"""How what an option may be is written as a type."""
OBJECTS = {
    "constraints": "Sequence[Constraint]",
    "simulation": "Simulation",
    "law": "Simulation",
    "loop": "str | Sequence[str]",
    "mount": "str | Sequence[str]",
    "only": "str | Sequence[str]",
    "wanted": "Sequence[str]",
    "questions": "Sequence[str]",
    "avoid": "Sequence[Sequence[float]]",
    "ignore": "Sequence[Sequence[str]]",
}
"""The same of objects, and of lists of names."""
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
    "only": "choosing-a-method.md#essential-parameters",
    "covariance": "choosing-a-method.md#which-covariance",
    "loss": "choosing-a-method.md#robust-estimation",
    "position_std": "choosing-a-method.md#noise-of-positions-torques-and-wrenches",
    "torque_std": "choosing-a-method.md#noise-of-positions-torques-and-wrenches",
    "wrench_std": "choosing-a-method.md#noise-of-positions-torques-and-wrenches",
    "gain_update": "closed-loop.md#starts",
    "sensitivities": "closed-loop.md#sensitivities-by-differences",
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
    "decide": "decisions.md",
    "median": "preparation.md#the-keys",
    "torque_median": "preparation.md#the-keys",
    "rests": "preparation.md#poses-that-are-held",
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
    "mount": "sim-to-real.md#a-compliant-stand",
    "gains": "payload.md#gains-of-the-drives",
}
"""Where the guide says more of an option."""


OF_METHODS = ("seed",)
"""Options of which the guide says more as far as they are of methods."""
HEAD = ("key", "meaning", "values", "default")
WITH_FLAGS = (HEAD[0], "flag", *HEAD[1:])


def of_family(family: type) -> list[tuple[str, ...]]:
    """The rows of a family whose options have no flags."""
    return of_options(collect_options([family]))


def of_options(options: Mapping[str, Option]) -> list[tuple[str, ...]]:
    """Rows without flags."""
    return [(named(o), o.words, values(o), default(o)) for o in options.values() if not o.in_python]


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


def of_exports() -> list[tuple[str, ...]]:
    """The formats of exports."""
    return [
        (
            f"`{name}`",
            f"`--{name}`",
            form.help,
            "all" if form.holds is None else ", ".join(form.holds),
        )
        for name, form in EXPORTS.items()
    ]


def named(option: Option) -> str:
    """Its name, with where the guide says more."""
    link = EXPLAINED.get(option.name)
    return f"[`{option.name}`]({link})" if link else f"`{option.name}`"


def called(option: Option) -> str:
    """The same of an option of a command."""
    return f"`{option.name}`" if option.name in OF_METHODS else named(option)


def values(option: Option) -> str:
    """What it may be."""
    words = [f"`{choice}`" for choice in option.choices]
    if option.kinds == {tuple}:
        return ", ".join([*words, "a list"])
    return ", ".join([*words, *(said for kind, said in VALUES.items() if kind in option.kinds)])


def default(option: Option) -> str:
    """What it is unless told otherwise, as a study has it."""
    return option.shown_default and f"`{option.shown_default}`"


def rows(head: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> list[str]:
    """A table."""
    lines = [head, ("---",) * len(head), *body]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def page() -> str:
    """The reference page."""
    every = list_all_options() | collect_options([*EVERY_METHOD, DecisionOptions])
    of_methods_rows = [
        (named(o), flags(o), o.words, values(o), default(o), name_methods_with_option(o.name))
        for o in every.values()
        if not o.in_python
    ]
    lines = [
        "# Options of the methods",
        "",
        "Made by `.venv/bin/python docs/make_options.py` from the fields of the option families.",
        "",
        "Each of them is a key of `[identify]` in a study, a flag of `dynident identify`, and a",
        "keyword of [`dynident.identify`](api.md). A method that does not have an option refuses",
        "it, and says which methods have it. `decide` is of studies and the command alone: in",
        "Python a `Problem` states everything.",
        "",
        *rows(("key", "flag", "meaning", "values", "default", "methods"), of_methods_rows),
        "",
        "Where no default stands, the option is off, or its sentence says what is taken. A result",
        "tells under `settings` which options were in effect.",
        "",
        "## Preparation",
        "",
        "Keys of `[prepare]` in a study, for all of its logs, held-out ones included, and keywords",
        "of [`dynident.prepare`](api.md). The command line has `--bandwidth`.",
        "",
        *rows(HEAD, of_family(Preparation)),
        "",
        "## Reading",
        "",
        "Keys of a `[[log]]` in a study, and keywords of [`dynident.read_log`](api.md): how rows",
        "become samples on one uniform clock.",
        "",
        *rows(HEAD, of_family(ClockOptions)),
        "",
        "## Repairs",
        "",
        "Keys of a `[[log]]` in a study: what is done to the log before anything else, in this",
        "order, on the joints' side. [The doctor](doctor.md) says which.",
        "",
        *rows(HEAD, of_family(LogRepair)),
        "",
        "## Logs without torques",
        "",
        "Keys of a `[[log]]`: the law of the drives, whose torque is fitted "
        "([walking](legged.md#walking-without-torque-sensors)).",
        "",
        *rows(HEAD, of_family(DriveLaw)),
        "",
        "## Floating bases",
        "",
        "Keys of a `[[log]]` in a study, of robots on bases that move and of robots with contacts:",
        "how the columns are meant, and what the log is to state.",
        "",
        *rows(HEAD, of_family(FloatingOptions)),
        "",
        "## The simulated loop",
        "",
        "Keys of `[simulation]` in a study, and arguments of [`dynident.Simulation`](api.md),",
        "for the methods that simulate. They have no flags.",
        "",
        *rows(HEAD, of_family(Simulation)),
        "",
        "## Tracking",
        "",
        "Keys of `[track]` in a study, and flags, of [`dynident track`](online.md).",
        "",
        *rows(HEAD, of_options(TRACKING)),
        "",
        "## Excitation",
        "",
        "Keys of `[excitation]` in a study, flags of [`dynident excite`](excitation.md) and",
        "keywords of [`dynident.excite`](api.md).",
        "",
        *rows(WITH_FLAGS, with_flags(EXCITATION)),
        "",
        "### Criteria",
        "",
        "What they mean stands in [excitation](excitation.md#criteria).",
        "",
        *rows(("`criterion`", "minimises"), [(f"`{k}`", c.words) for k, c in CRITERIA.items()]),
        "",
        "## Protocols",
        "",
        "Flags of [`dynident protocol`](protocol.md), and keywords of",
        "[`dynident.protocol`](api.md), beside the limits and the search of",
        "[excitation](#excitation).",
        "",
        *rows(WITH_FLAGS, with_flags((ProtocolPlan,))),
        "",
        "## Selection",
        "",
        "Keys of `[select]` in a study, and flags, of [`dynident select`](selection.md).",
        "",
        *rows(HEAD, of_family(SelectionOptions)),
        "",
        "## Loads",
        "",
        "Flags of [`dynident payload`](payload.md), and keywords of [`dynident.payload`](api.md).",
        "",
        *rows(WITH_FLAGS, with_flags(PAYLOAD)),
        "",
        "## Draws",
        "",
        "Flags of [`dynident sample`](sample.md), and keywords of [`dynident.sample`](api.md).",
        "",
        *rows(WITH_FLAGS, with_flags([DrawOptions])),
        "",
        "## Exports",
        "",
        "Flags of [`dynident export`](exports.md), and names of `fit.export(path, name)`.",
        "",
        *rows(("name", "flag", "meaning", "of the drives it holds"), of_exports()),
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
        "- `law`: the same of methods that do not simulate, whose torques the doctor asks about",
        "- `constraints`: see [consistency](consistency.md#what-else-is-known), from",
        "  `[[constraint]]`",
        "",
    ]
    return "\n".join(lines)


def with_flags(families: Sequence[type]) -> list[tuple[str, ...]]:
    """The rows of a command's options, with their flags."""
    return [
        (called(o), flags(o) if has_flag(o) else "", o.words, values(o), default(o))
        for o in collect_options(families).values()
        if not o.in_python
    ]


def flags(option: Option) -> str:
    """How its flag is written."""
    return f"`{'`, `'.join(list_flag_spellings(option)).replace('/', '`, `')}`"


def keywords(
    name: str,
    what: str,
    options: Iterable[Option],
    imports: Sequence[str],
    beside: Sequence[str] = (),
) -> str:
    """A module with the types of keywords, by which editors complete and mypy refuses."""
    types = {each.name: typed(each) for each in options}
    types |= {key: OBJECTS[key] for key in beside}
    body = [declared(key, f"{kind} | None") for key, kind in sorted(types.items())]
    return "\n".join(
        [
            f'"""{what}: made by docs/make_options.py from the fields of the options."""',
            "",
            "from __future__ import annotations",
            "",
            *imports,
            "",
            "",
            f"class {name}(TypedDict, total=False):",
            f'    """{what}."""',
            "",
            *body,
            "",
        ]
    )


def declared(key: str, kind: str) -> str:
    """A key with its type, in parentheses where a line does not hold both."""
    line = f"    {key}: {kind}"
    if len(line) <= 100:
        return line
    if len(kind) > 92:  # as ruff formats it
        choices, _, rest = kind.removeprefix("Literal[").partition("]")
        if len(choices) > 88:
            choices = choices.replace(", ", f",\n{12 * ' '}") + ","
        kind = f"Literal[\n            {choices}\n        ]\n        {rest.strip()}"
    return f"    {key}: (\n        {kind}\n    )"


def typed(option: Option) -> str:
    """What an option may be, as a type."""
    if option.name in OBJECTS:
        return OBJECTS[option.name]
    words = [f"Literal[{', '.join(map(repr, option.choices))}]"] if option.choices else []
    kinds = [k for k in TYPES if k in option.kinds and not (k is str and words)]
    return " | ".join([*words, *(TYPES[kind] for kind in kinds)]).replace("'", '"')


COMMANDS: dict[tuple[str, str], Mapping[str, Option]] = {
    ("excitation", "excite"): collect_options(EXCITATION),
    ("loads", "payload"): collect_options(PAYLOAD),
    ("experiments", "protocol"): PLANNING,
    ("online", "track"): TRACKING,
}
"""By room and function: its keywords."""
COLLECTIONS = "from collections.abc import Mapping, Sequence"


def modules() -> dict[Path, str]:
    """The modules with types of keywords, by where they are."""
    common = [
        "from typing import Any, Literal, TypedDict",
        "",
        "import numpy.typing as npt",
    ]
    objects = [
        "",
        "from dynident.consistency.constraints import Constraint",
        "from dynident.estimators.closed_loop import Simulation",
    ]
    every = (list_all_options() | collect_options(EVERY_METHOD)).values()
    prepared = (o for o in collect_options([Preparation]).values() if o.name != "bandwidth")
    of_methods = keywords(
        "IdentifyOptions",
        "Options of `dynident.identify`",
        every,
        [COLLECTIONS, *common, *objects],
        [SIMULATION],
    )
    of_preparation = keywords(
        "PrepareOptions",
        "Options of `dynident.prepare`",
        prepared,
        [COLLECTIONS.replace("Mapping, ", ""), *common],
    )
    found = {
        SOURCE / "methods" / "keywords.py": of_methods,
        SOURCE / "recording" / "keywords.py": of_preparation,
    }
    for (room, command), options in COMMANDS.items():
        own = (o for o in options.values() if command != "payload" or o.name != "link")
        text = keywords(
            f"{command.capitalize()}Options", f"Options of `dynident.{command}`", own, common
        )
        if "Sequence[" in text:
            text = text.replace(common[0], f"{COLLECTIONS.replace('Mapping, ', '')}\n{common[0]}")
        if "npt." not in text:
            text = text.replace(f"\n{common[2]}\n", "")
        for name in ("Any", "Literal"):
            if f"{name}[" not in text and f"[{name}" not in text:
                text = text.replace(f"{name}, ", "", 1)
        found[SOURCE / room / "keywords.py"] = text
    return found


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    for place, text in modules().items():
        place.write_text(text, encoding="utf-8")
