"""Units of columns, as a second line of a file's header or the columns' names state them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from dynident.core.errors import InputError
from dynident.readers.column_names import match_word
from dynident.readers.table import Table, label_column

SPELLED = {
    "rad": "radian radians", "deg": "degs degree degrees °", "rev": "revs turn turns", "m": "",
    "mm": "", "s": "sec secs second seconds", "ms": "msec msecs millis milliseconds",
    "us": "usec usecs micros microseconds µs", "ns": "nsec nsecs nanos nanosec nanoseconds",
    "degC": "°c c", "K": "", "Nm": "n·m n*m n.m n-m", "N": "", "A": "", "mNm": "", "kNm": "",
    "Ncm": "", "Nmm": "", "kN": "", "mA": "", "rpm": "1/min", "%": "percent", "V": "", "W": "",
    "Hz": "", "counts": "count inc ticks", "-": "none bool",
}  # fmt: skip
"""Units by the name that they have here, with others that files have for them."""
KNOWN = {word.lower(): unit for unit, own in SPELLED.items() for word in (unit, *own.split())}
PER_SECOND = re.compile(r"(?P<unit>\S+?) ?/ ?s(ec)?(?P<twice> ?(\^2|2|²|/ ?s))?")
AMONG_WORDS = {"q": ("rad", "deg", "rev"), "time": ("ms", "us", "ns")}
"""Units of signals that names may have among their words, without brackets."""
INSTANTS = "date"
"""In place of the unit of instants, which have no other."""
POSITIONS = ("rad", "deg", "rev", "m", "mm")
BEHIND = {"q": "", "qref": "", "dq": "/s", "dqref": "/s", "ddq": "/s^2"}
"""What a unit of joints' motion has behind that of their positions."""
CHOSEN = {
    "time": ("s", "ms", "us", "ns", INSTANTS),
    "temp": ("degC", "K"),
    "base_rpy": ("rad", "deg", "rev"),
}
"""Other signals whose unit is chosen, and of which."""
EFFORTS = ("tau", "current", "unsigned", "known")
MULTIPLES = ("mNm", "kNm", "Ncm", "Nmm", "kN", "mA")
"""Units that would be taken for those of torques, forces and currents; in others, as %, a fit is
of numbers."""
FIXED = ("rad", "rad/s", "rad/s^2", "m", "m/s", "m/s^2", "N", "Nm", "-")
"""Units of bases, contacts and sensors in the chain."""


def parse_unit(cell: str) -> str | None:
    """The unit that a cell states, between brackets or not: ``deg``, ``rad/s^2``; else None."""
    text = re.sub(r"^(\[.*\]|\(.*\))$", lambda whole: whole[0][1:-1], cell.strip()).strip().lower()
    rate = PER_SECOND.fullmatch(text)
    if rate is None or text in KNOWN:
        return KNOWN.get(text)
    unit = KNOWN.get(rate["unit"])
    return f"{unit}/s{'^2' if rate['twice'] else ''}" if unit in POSITIONS else None


def read_units(cells: Sequence[str]) -> dict[int, str]:
    """Units by 0-based column of a line that holds nothing else; none of another line."""
    found = {k: parse_unit(cell) for k, cell in enumerate(cells) if cell}
    return {k: unit for k, unit in found.items() if unit} if all(found.values()) else {}


def find_named_unit(name: str, signal: str) -> str | None:
    """The unit that a column's name ends with in brackets, or has among its words."""
    behind = re.search(r"[\[(][^\[\]()]+[\])]\s*$", name)
    unit = None if behind is None else parse_unit(behind[0])
    for other in AMONG_WORDS.get(signal, ()) if unit is None else ():
        # as a word of its own, or a last one that has its capital: timeMs
        forms = "|".join(
            rf"(?<![A-Za-z])(?i:{word})|(?<=[a-z]){word.capitalize()}|(?<=[a-z]){word.upper()}"
            for word in (other, *SPELLED[other].split())
        )
        unit = other if re.search(rf"(?:{forms})(?![A-Za-z])", name) else unit
    return unit


def find_units(
    places: Mapping[str, Sequence[tuple[Table, int]]],
    stated: Collection[str],
    mapped: Collection[str],
    joints: Sequence[str],
) -> dict[str, str | tuple[str, ...]]:
    """Units of signals by their columns, where none is stated for them.

    Names of columns tell of signals that are mapped alone: those of others are made of the joints'.

    Raises
    ------
    InputError
        For a unit that is not read, and a signal of which some columns alone have one.
    """
    found: dict[str, str | tuple[str, ...]] = {}
    for signal, spots in places.items():
        own = [table.units.get(index) for table, index in spots]
        if signal in mapped and not any(own):
            names = [table.titles[index] if table.names else "" for table, index in spots]
            own = [  # a joint may be called like a unit
                find_named_unit(re.sub("|".join(map(match_word, joints)), "", name), signal)
                for name in names
            ]
        key = "base_rpy" if signal.endswith("_rpy") else signal
        if not any(own) or (key in stated and INSTANTS not in own):
            continue
        behind, known = BEHIND.get(signal, ""), CHOSEN.get(key, FIXED)
        if signal in BEHIND:
            known = tuple(f"{unit}{behind}" for unit in POSITIONS)
        for (table, index), unit in zip(spots, own, strict=True):
            place = f"{table.called}, {label_column(table.names, index)}"
            if unit is None:
                raise InputError(f"{place}: has no unit beside others of {signal}; state units")
            if unit == INSTANTS and key in stated:
                raise InputError(f"{place}: units.{key} is for numbers, but it has dates")
            if unit not in known and (signal not in EFFORTS or unit in MULTIPLES):
                raise InputError(
                    f"{place}: is in {unit}, which is not read for {signal}; convert it"
                )
        units = tuple(str(unit).removesuffix(behind) for unit in own)
        if (signal in BEHIND or key in CHOSEN) and {*units} not in ({INSTANTS}, {"s"}):
            found[key] = units[0] if len({*units}) == 1 else units
    return found
