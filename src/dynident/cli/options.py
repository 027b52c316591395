"""Options that several commands share, and flags of what is an option everywhere."""

from __future__ import annotations

import inspect
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynident.cli.help import OPTIONS
from dynident.core.errors import InputError, OptionError
from dynident.core.options import Option

if TYPE_CHECKING:
    from dynident.study.fits import LogLayout
    from dynident.study.study import LogSection, Study


def check_positive(value: float | None) -> float | None:
    """Refuse a number that is not finite or not positive."""
    if value is not None and not 0.0 < value < math.inf:
        raise typer.BadParameter(f"{value:g} is not a positive number.")
    return value


RobotOption = Annotated[
    Path | None,
    typer.Option("--robot", metavar="FILE", help="URDF, MJCF or robot TOML, instead of a study."),
]
AnywayFlag = Annotated[
    bool, typer.Option("--anyway", help="Proceed even if the result is refuted.")
]
RateOption = Annotated[
    float | None,
    typer.Option(
        "--rate",
        metavar="HZ",
        callback=check_positive,
        help="Sample rate of logs without time [Hz].",
    ),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="SIGNAL=NAME[,NAME...]",
        help="Columns of the logs: 'q=pos_*', or names or numbers from 1, one a joint; repeatable.",
    ),
]
UnitsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--units",
        metavar="SIGNAL=UNIT[,UNIT...]",
        help="Units of the logs: q=deg; repeatable.",
    ),
]
SideOption = Annotated[
    list[str] | None,
    typer.Option(
        "--side",
        metavar="[SIGNAL=]SIDE[,SIDE...]",
        help="Side of the gears on which the logs were taken, joint (default) or motor, or one a "
        "joint; q=joint and tau=motor apart, repeatable.",
    ),
]
FloatingOption = Annotated[bool, typer.Option("--floating", help="Free-flying base.")]
BeyondOption = Annotated[
    str | None,
    typer.Option(
        "--beyond",
        metavar="LINK",
        help="Only the limb or tool beyond the force/torque sensor on this link.",
    ),
]
SensorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sensor",
        metavar="LINK",
        help="Link that carries a force/torque sensor in the chain, whose wrench is fitted too; "
        "repeatable.",
    ),
]
ContactOption = Annotated[
    list[str] | None,
    typer.Option(
        "--contact",
        metavar="[NAME=]LINK[:point]",
        help="Where external contacts act; repeatable.",
    ),
]
LockedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--locked",
        metavar="JOINTS",
        help="Joints that do not move and are not in the log: a,b=0.5 [rad or m], 0 if not given.",
    ),
]
PageOption = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Write an HTML page, too."),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
LowpassOption = Annotated[
    float | None,
    typer.Option(
        "--lowpass",
        metavar="HZ",
        callback=check_positive,
        help="Low-pass of the all-samples errors [Hz].",
    ),
]
ROBOT = typer.Argument(metavar="ROBOT", help="URDF, MJCF or robot TOML.", show_default=False)
"""The robot of a command that needs no log."""


def complete_by(names: str | Sequence[str]) -> Callable[[str], list[str]]:
    """What a shell completes a flag's value by: names, or those of a key of `list_names`."""

    def complete(incomplete: str) -> list[str]:
        from dynident.study.study import list_names

        known = list_names()[names] if isinstance(names, str) else names
        return [name for name in known if name.startswith(incomplete)]

    return complete


FrictionOption = Annotated[
    str | None,
    typer.Option(
        "--friction",
        metavar="NAME",
        autocompletion=complete_by("friction"),
        help="coulomb-viscous (default), cube-root, stribeck, load ... (docs/friction.md), or one "
        "a joint with commas between; identify decides it from the logs unless given.",
    ),
]


PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        autocompletion=complete_by("preset"),
        help="Recorder that wrote the logs: ur-rtde, libfranka ...",
    ),
]


def declare_directory(words: str) -> Any:
    """The flag of a directory that a command writes."""
    return typer.Option("-o", "--output", metavar="DIR", help=words)


@dataclass(frozen=True)
class LogFlags:
    """What flags say of logs."""

    keys: dict[str, Any]
    """Of a ``[[log]]``."""
    prepare: dict[str, Any]
    """Of ``[prepare]``."""

    @property
    def given(self) -> bool:
        """Whether there are any."""
        return bool(self.keys or self.prepare)

    def refuse_beside(self, what: str) -> None:
        """Refuse flags of logs whose layout another has told."""
        if self.keys:
            flag = "--" + next(iter(self.keys)).replace("_", "-")
            raise InputError(
                f"{flag}: {what}: edit its [[log]]; give either a study or --robot and --log"
            )

    def refuse_without(self, logs: Sequence[str] | None, what: str = "--log") -> None:
        """Refuse flags of logs where there is none that they could be of."""
        if self.given and not logs:
            raise InputError(
                "--preset, --columns, --units, --side, --rate, --rows, --bad-rows and --drop-below "
                f"go with {what}"
            )

    def prepared(self, study: Study) -> Study:
        """The study with the preparation that the flags tell."""
        return override_section(study, "prepare", self.prepare)

    @property
    def layout(self) -> LogLayout:
        """The same for logs beside those of a fit."""
        from dynident.study.fits import LogLayout

        return LogLayout(self.keys, self.prepare)

    def locate_log(self, study: Study, files: Sequence[str]) -> LogSection:
        """A log, laid out as the study's first where there is one, and as the flags tell."""
        from dynident.study.fits import relocate_log_section

        return relocate_log_section(study.log, files, self.keys)


def override_section(study: Study, name: str, changes: Mapping[str, object]) -> Study:
    """The study with other values in a table; None is not a change."""
    from dynident.core.schema import validate_data

    given = {key: value for key, value in changes.items() if value is not None}
    if not given:
        return study
    section: Any = getattr(study, name)
    told = {**section.model_dump(exclude_none=True), **given}
    return study.model_copy(update={name: validate_data(type(section), told, "command line")})


Command = Callable[..., None]


def replace_parameter(
    command: Command, name: str, added: Sequence[inspect.Parameter], call: Callable[[Any], None]
) -> Command:
    """A command whose flags are others in the place of a parameter.

    `call`: takes all arguments of the new flags, and calls the command.
    """
    signature = inspect.signature(command, eval_str=True)
    every = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for p in signature.parameters.values()
        for each in (added if p.name == name else (p,))
    ]

    @wraps(command)
    def run(**arguments: Any) -> None:
        call(arguments)

    run.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in every}
    return run


def gather_flags(
    command: Command, name: str, read: Callable[..., object], without: Sequence[str] = ()
) -> Command:
    """A command with the flags that are another function's parameters, but for some of them.

    What that function makes of them arrives as the parameter of the name.
    """
    own = [
        p
        for p in inspect.signature(read, eval_str=True).parameters.values()
        if p.name not in without
    ]

    def call(arguments: dict[str, Any]) -> None:
        given = read(**{p.name: arguments.pop(p.name) for p in own})
        command(**arguments, **{name: given})

    return replace_parameter(command, name, own, call)


def add_log_flags(command: Command) -> Command:
    """Add the flags of logs, the same for all commands; they arrive as `told`."""

    @wraps(command)
    def run(*, told: LogFlags, **arguments: Any) -> None:
        flags = {key: "--" + key.replace("_", "-") for key in (*told.keys, *told.prepare)}
        with name_option_in_errors(flags, None, "prepare"):
            command(**arguments, told=told)

    return gather_flags(run, "told", read_log_flags)


def read_log_flags(
    *,
    preset: PresetOption = None,
    columns: ColumnsOption = None,
    units: UnitsOption = None,
    side: SideOption = None,
    rate: RateOption = None,
    span: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="FIRST,STOP",
            help="Samples of the logs, from 0: first, and stop.",
        ),
    ] = None,
    bad_rows: Annotated[
        str | None,
        typer.Option(
            "--bad-rows",
            metavar="refuse|cut",
            help="Damaged rows of the logs: refuse (default) or cut.",
        ),
    ] = None,
    drop_below: Annotated[
        str | None,
        typer.Option(
            "--drop-below",
            metavar="X[,X...]",
            help="Speed below which rows are left out, or one a joint [rad/s or m/s].",
        ),
    ] = None,
) -> LogFlags:
    """What the flags of logs say."""
    keys = {
        "preset": preset,
        "columns": parse_signal_values("--columns", columns),
        "units": parse_signal_values("--units", units),
        "side": parse_sides(side),
        "rate": rate,
        "rows": None if span is None else parse_numbers("--rows", span, int),
        "bad_rows": bad_rows,
    }
    slow = None if drop_below is None else parse_numbers("--drop-below", drop_below, float)
    if slow is not None and len(slow) == 1:
        (slow,) = slow
    return LogFlags(
        {key: value for key, value in keys.items() if value is not None},
        {} if slow is None else {"drop_below": slow},
    )


def parse_numbers(flag: str, text: str, kind: type[int] | type[float]) -> Any:
    """Numbers between commas."""
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(f"{flag} {text!r}: write {what} with commas between") from None


def parse_locked_joints(texts: Sequence[str] | None) -> dict[str, float] | None:
    """Joints and where they stay, None where none are given."""
    if not texts:
        return None
    locked: dict[str, float] = {}
    for part in ",".join(texts).split(","):
        name, given, value = part.strip().partition("=")
        try:
            locked[name.strip()] = float(value) if given else 0.0
        except ValueError:
            raise InputError(f"--locked {part.strip()}: {value!r} is not a number") from None
    if "" in locked:
        raise InputError(f"--locked {','.join(texts)}: has an empty name; write a,b=0.5")
    return locked


def parse_signal_values(
    flag: str, texts: Sequence[str] | None
) -> dict[str, str | list[str]] | None:
    """What --columns or --units says of each signal, None where it is not given."""
    found: dict[str, str | list[str]] = {}
    for text in texts or ():
        signal, _, value = text.partition("=")
        names = [name.strip() for name in value.split(",")]
        if not signal.strip() or "" in names:
            raise InputError(f"{flag} {text!r}: write SIGNAL=NAME, or SIGNAL=NAME,NAME,...")
        if signal.strip() in found:
            raise InputError(f"{flag}: {signal.strip()} is given twice; put commas between names")
        found[signal.strip()] = names[0] if len(names) == 1 else names
    return found or None


def parse_sides(texts: Sequence[str] | None) -> Any:
    """What --side says of all signals, or of some, None where it is not given."""
    if texts and len(texts) == 1 and "=" not in texts[0]:
        names = [name.strip() for name in texts[0].split(",")]
        return names[0] if len(names) == 1 else names
    return parse_signal_values("--side", texts)


def refuse_study_output(
    output: Path, flag: str, study: Path | None, inputs: Sequence[str | Path]
) -> None:
    """Refuse a study over what is read or is there already; its copy where that stands elsewhere.

    What is written may have been edited since: no study is written over.
    """
    from dynident.core.files import refuse_outputs

    if study is not None and output.parent.resolve() != study.parent.resolve():
        raise InputError(f"{output}: has to be in the folder of {study}, whose file names it keeps")
    refuse_outputs([output], inputs)
    if output.exists():
        raise InputError(f"{output}: is there already; choose another name with {flag}")


SPELLED = {"lowpass_hz": "lowpass", "n": "number", "rows": "fit-rows"}
"""Options whose flag has another name; --rows are those of a log."""
OF_TABLES = {"file": "robot", "files": "log"}
"""Keys of robots and logs whose flag has another name."""
KEY_OF_FLAG = re.compile(
    r"^command line: (?P<log>log: )?key '(?P<table>log\[\d+\]\.|robot\.)?(?P<key>\w+)[^']*'"
)
"""How a key is named that stands in no file."""
EVERY = "of every method: "
"""How the words of an option begin that is not a method's own."""
CALLED = {"srdf": "FILE", "link": "LINK", "sensor": "LINK", "frame": "FRAME"}
"""Values that are not numbers, nor names of a list."""
SHORT = {"n": "-n"}
"""Options whose flag has a short name too."""


def add_flags(
    every: Mapping[str, Option],
    section: str = "identify",
    choose_group: Callable[[Option], str] = lambda _: OPTIONS,
) -> Callable[[Command], Command]:
    """Add a flag for every option that a line can hold; those given arrive as `options`.

    What is refused of an option is named as the flag that gave it, or as the key of the study, in
    whose `section` the options stand. A page of ``--help`` has them in the groups that are chosen.
    """
    known = [each for each in every.values() if has_flag(each)]
    added = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                choose_parsed_type(option) | None,
                typer.Option(
                    *list_flag_spellings(option),
                    metavar=choose_metavar(option),
                    rich_help_panel=choose_group(option),
                    autocompletion=complete_by(option.choices),
                    help=write_flag_help(option),
                ),
            ],
        )
        for option in known
    ]

    def add(command: Command) -> Command:
        def call(arguments: dict[str, Any]) -> None:
            given = {o.name: convert_flag_value(o, arguments.pop(o.name)) for o in known}
            options = {name: value for name, value in given.items() if value is not None}
            flags = {o.name: list_flag_spellings(o)[-1] for o in known if o.name in options}
            with name_option_in_errors(flags, arguments.get("study"), section):
                command(**arguments, options=options)

        return replace_parameter(command, "options", added, call)

    return add


def has_flag(option: Option) -> bool:
    """Objects and lists of lists have none."""
    return not option.in_python and tuple not in option.entries


def choose_parsed_type(option: Option) -> type:
    """What the parser makes of a flag's text; what may be several things is left as it is."""
    return next((kind for kind in (bool, int, float) if option.kinds == {kind}), str)


def choose_metavar(option: Option) -> str | None:
    """What a page of help calls a flag's value."""
    if option.kinds == {bool} or option.name in CALLED:
        return CALLED.get(option.name)
    numbers = float in option.kinds | option.entries
    called = "X" if numbers else "N" if int in option.kinds else "NAME"
    return f"{called}[,{called}...]" if tuple in option.kinds else called


def write_flag_help(option: Option) -> str:
    """What an option says, which words it may be, and what it is unless given."""
    text = option.words.removeprefix(EVERY).replace("`", "")
    known = ", ".join(option.choices)
    if known not in text and not all(f"{word} (" in text for word in option.choices):
        text += f" ({known})"
    if option.default is not None and option.kinds != {bool}:
        text += f"; {option.shown_default}"
    return f"{text[0].upper()}{text[1:]}."


@contextmanager
def name_option_in_errors(
    flags: Mapping[str, str], study: Path | None, section: str
) -> Iterator[None]:
    """Name the flag, or the key of the study, that gave an option which is refused."""
    try:
        yield
    except OptionError as error:
        if error.key in flags:
            raise InputError(f"{flags[error.key].partition('/')[0]}: {error}") from error
        from dynident.study.study import find_section_of_key

        table = find_section_of_key(error.key, section)
        if study is None or table is None:
            raise
        raise InputError(f"{study}: {table}.{error.key}: {error}") from error


def name_flag(reason: str) -> str:
    """What is wrong with a key that a flag gave, with the flag instead of the key."""

    def spell(found: re.Match[str]) -> str:
        spelled = OF_TABLES if found["log"] or found["table"] else SPELLED
        return "--" + spelled.get(found["key"], found["key"]).replace("_", "-")

    return KEY_OF_FLAG.sub(spell, reason)


def spell_flag(option: Option) -> str:
    """How a flag is written."""
    name = "--" + SPELLED.get(option.name, option.name).replace("_", "-")
    return f"{name}/--no-{name[2:]}" if option.kinds == {bool} else name


def list_flag_spellings(option: Option) -> tuple[str, ...]:
    """All ways in which a flag is written, for the parser."""
    short = (SHORT[option.name],) if option.name in SHORT else ()
    return (*short, spell_flag(option))


def convert_flag_value(option: Option, value: Any) -> Any:
    """A flag's value as a study has it."""
    if not isinstance(value, str):
        return value
    if Mapping in option.kinds:
        return parse_inline_table(option, value)
    if tuple in option.kinds:
        return split_flag_values(option, value)
    if float in option.kinds:
        with suppress(ValueError):
            return float(value)
    return value


def split_flag_values(option: Option, text: str) -> Any:
    """Values between commas; a number alone is one for all joints."""
    kind = float if float in option.entries else str
    try:
        values = tuple(kind(part.strip()) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"{spell_flag(option)} is {text!r}, but has to be a number, or numbers with commas"
        ) from None
    return values[0] if kind is float and len(values) == 1 else values


def parse_inline_table(option: Option, text: str) -> dict[str, Any]:
    """A table as TOML has it in a line, ``{fc1 = [0, 10]}``; the braces may be left out."""
    inside = text.strip().removeprefix("{").removesuffix("}")
    try:
        found = tomllib.loads(f"table = {{{inside}}}")["table"]
    except ValueError as error:
        raise typer.BadParameter(
            f"{spell_flag(option)} is {text!r}, but has to be a table: 'fc1 = [0, 10], m2 = [1, 5]'"
        ) from error
    return dict(found)
