"""What columns of a log are, by what they are called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from dynident.readers.table import TIME as NAMED_TIME

Columns = dict[str, str | tuple[str, ...]]
"""Of some signals: a name, with a star for one a joint, or all names."""

TIME = re.compile(r"time|zeit|stamp|\bsecs?\b|\bt\b", re.IGNORECASE)
"""What a column may be called that has the time."""
SIGNALS = {
    "q": re.compile(r"(?<![a-z])q(?![a-z])|pos(?![est])|angle|winkel|theta", re.IGNORECASE),
    "dq": re.compile(r"(?<![a-z])(?:dq|q_?dot|d_?theta)(?![a-z])|(?<!le)vel|speed", re.IGNORECASE),
    "tau": re.compile(r"tau|torque|effort|moment(?!um)|joint[\W\d_]*force", re.IGNORECASE),
}
"""What columns of a signal may be called: ``pos``, but neither ``pose`` nor ``post``; not ``qd``,
which one recorder has for speeds and another for targets."""
RATES = re.compile(r"vel|speed|rate|dot|(?<![a-z])d+(?=theta|pos|angle)", re.IGNORECASE)
BESIDE = {
    "q": RATES,
    "dq": re.compile(
        r"(?<![a-z])dd|ddot|rpm|(?<![a-z])(?:deg|rad)(?![a-z])(?! ?/ ?s)", re.IGNORECASE
    ),
    "tau": RATES,
}
"""What columns are called beside that are derivatives of a signal, or have units that are not."""
TARGETS = re.compile(
    r"target|desired|soll|ref|command|cmd|set_?point|goal|planned|(?<![a-z])(?:des|d)(?![a-z])",
    re.IGNORECASE,
)
"""What columns of what is asked for are called."""
OTHERS = re.compile(
    # what is asked for, or what a model or a limit says
    rf"{TARGETS.pattern}|model|comput|predict|nominal|limit"
    r"|feed_?f|grav|corio|dynamic|fric|(?<![a-z])(?:ff|min|max)(?![a-z])"
    # differences
    r"|err|std|acc|delta|diff"
    # what acts from outside, and where the tool is
    r"|ext|resid|disturb|wrench|tcp|cart|(?<![a-z])(?:eef?|ft)(?![a-z])"
    # motors, their currents, and units that are not read
    r"|motor|rotor|(?:tau|torque|effort|moment)[\W_]*curr|(?<![a-z])i_q(?![a-z])"
    r"|cycle|exec|delay|latency|count|tick|percent|%|(?<![a-z])(?:mrad|[mk]nm|ncm|kgf?_?c?m)(?![a-z])",
    re.IGNORECASE,
)
"""What columns are called beside that are of another signal, side of the gears, or unit."""

NAMED = re.compile(r"(?<![a-z])names?[\W_]*\d", re.IGNORECASE)
"""What columns are called that hold joints' names beside numbered ones, as of a JointState."""


def match_word(joint: str) -> str:
    """A pattern of a joint's name that is not part of another word."""
    return rf"(?<![^\W_]){re.escape(joint)}(?![^\W_])"


def find_joint_series(names: Sequence[str], joints: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Columns of which there are as many as joints, by their name with a star for what differs.

    What tells them apart is the joints' names or a number: ``position.*``, ``q* [deg]``.
    """
    found: dict[str, list[str]] = {}
    for name in names:
        whole = (re.search(match_word(joint), name) for joint in joints)
        inside = max(filter(None, whole), key=lambda part: len(part[0]), default=None)
        parts = re.finditer(r"\d+", name) if inside is None else [inside]
        for part in parts:
            found.setdefault(f"{name[: part.start()]}*{name[part.end() :]}", []).append(name)
    return {stem: tuple(own) for stem, own in found.items() if len(own) == len(joints) > 1}


def has_columns(
    names: Sequence[str], wanted: Mapping[str, str | int | Sequence[str | int]]
) -> bool:
    """Whether all columns are there that are named; a star stands for what is one or more names.

    Those by position, and any of a file without names, are taken to be.
    """
    every = (own if isinstance(own, tuple) else (own,) for own in wanted.values())
    texts = [e for own in every for e in own if isinstance(e, str) and not e.isdecimal()]
    patterns = [re.escape(text.rpartition(":")[2]).replace(r"\*", ".*") for text in texts]
    return not names or all(
        any(re.fullmatch(f"(?:.*:)?{pattern}", name) for name in names) for pattern in patterns
    )


def is_called_as(name: str, signal: str) -> bool:
    """Whether something is called as what was measured of a signal is."""
    if signal not in SIGNALS or OTHERS.search(name):
        return False
    return bool(SIGNALS[signal].search(name) and not BESIDE[signal].search(name))


def find_series(names: Sequence[str], joints: Sequence[str], signal: str) -> list[str]:
    """What is called as a signal's columns are, a joint each, as measured or not."""
    series = names if len(joints) == 1 else [*find_joint_series(names, joints)]
    return [each for each in series if SIGNALS[signal].search(each)]


def find_likely_columns(
    names: Sequence[str], joints: Sequence[str], signal: str, counted: bool = True
) -> str | tuple[str, ...] | None:
    """The one series of columns, a joint each, that is called as those of a signal are.

    With a star where that means no others in their order, and else all of them. Numbers say whose
    they are where joints are `counted`.
    """
    if signal not in SIGNALS:
        return None
    alone = {name: (name,) for name in names} if len(joints) == 1 else {}
    series = alone or find_joint_series(names, joints)
    likely = [stem for stem in series if is_called_as(stem, signal)]
    if len(likely) != 1:
        return None
    own = series[likely[0]]
    before, _, after = likely[0].partition("*")
    parts = {name[len(before) : len(name) - len(after)]: name for name in own}
    ordered = order_joint_columns(parts, joints)
    if ordered is None or not (alone or counted or {*parts} == {*joints}):
        return None
    # a star means the joints' names, or else the file's order, which may have 10 before 2
    starred = ordered == own or {*parts} == {*joints}
    meant = sum(name.startswith(before) and name.endswith(after) for name in names)
    return likely[0] if alone or (starred and meant == len(own)) else ordered


def order_joint_columns(parts: Mapping[str, str], joints: Sequence[str]) -> tuple[str, ...] | None:
    """Columns in the order of the joints, by the names or numbers that tell them apart.

    None where a number is missing, for then it is not clear whose the others are.
    """
    if len(joints) == 1:
        return tuple(parts.values())
    if {*parts} == {*joints}:
        return tuple(parts[joint] for joint in joints)
    if not all(map(str.isdecimal, parts)):
        return None
    numbers = {int(part): name for part, name in parts.items()}
    first = min(numbers)
    counted = first in (0, 1) and sorted(numbers) == [*range(first, first + len(joints))]
    return tuple(numbers[number] for number in sorted(numbers)) if counted else None


def match_joints(names: Sequence[str], joints: Sequence[str], signal: str) -> dict[str, str]:
    """Columns of a signal by the joints whose names, or the ends of whose names, they end with.

    ``q_joint1`` is of ``panda_joint1`` where another is ``panda_finger_joint1``; of neither where
    that is ``other_joint1``. Those of one beginning belong together; of several there are none, and
    none where one of that beginning is of no joint.
    """
    begun: dict[str, dict[str, str]] = {}
    for name in names:
        ends = ((j, k.start()) for j in joints for k in re.finditer(r"(?<![^\W_])\w", j))
        fits = [(j, j[k:]) for j, k in ends if re.search(rf"[\W_]{re.escape(j[k:])}$", name)]
        if not fits:
            continue
        end = max((end for _, end in fits), key=len)
        own = sorted((joint for joint, other in fits if other == end), key=len)
        begin = name[: -len(end)]
        if is_called_as(begin, signal):
            told = all(joint.startswith(own[0].removesuffix(end)) for joint in own)
            if not told or own[0] in begun.setdefault(begin, {}):
                return {}
            begun[begin][own[0]] = name
    if len(begun) != 1:
        return {}
    begin, found = next(iter(begun.items()))
    return found if len(found) == sum(name.startswith(begin) for name in names) else {}


def find_columns(
    names: Sequence[str], joints: Sequence[str], counted: bool = True
) -> tuple[list[str], Columns]:
    """The joints of which a log has positions, and what its columns are, by their names.

    Joints are `counted` where a number says which one is meant: those of a chain are, and those of
    a robot with branches not, for recorders do not begin with the branch that its file has first;
    nor where the log itself says beside its numbers which joint is which. No joints where it is not
    clear of which there are positions; no columns of signals that are called as by default, or that
    are not clear.
    """
    counted = counted and not any(map(NAMED.search, names))
    moved, q = find_signal(names, joints, "q", counted)
    if any(re.search(match_word(j), name) for j in joints if j not in moved for name in names):
        return [], {}  # it has something else of a joint, which may well have moved
    found: Columns = {} if q is None else {"q": q}
    borne, tau = find_signal(names, joints, "tau", counted)
    currents = {f"current_{joint}" for joint in moved} <= {*names}
    found |= {} if tau is None or borne != moved or currents else {"tau": tau}
    turning, dq = find_signal(names, joints, "dq", counted)
    found |= {} if dq is None or turning != moved else {"dq": dq}
    others = (OTHERS, RATES)
    timed = [n for n in names if TIME.search(n) and not any(each.search(n) for each in others)]
    if moved and len(timed) == 1 and timed[0] not in NAMED_TIME:
        found["time"] = timed[0]
    return (moved, found) if moved else ([], {})


def find_signal(
    names: Sequence[str], joints: Sequence[str], signal: str, counted: bool
) -> tuple[list[str], str | tuple[str, ...] | None]:
    """The joints that have columns of a signal, and these; None where they have their own names."""
    if {f"{signal}_{joint}" for joint in joints} <= {*names}:
        return [*joints], None
    likely = find_likely_columns(names, joints, signal, counted)
    if likely is not None:
        return [*joints], likely
    told = match_joints(names, joints, signal)
    moved = [joint for joint in joints if joint in told]
    own = tuple(told[joint] for joint in moved)
    usual = own == tuple(f"{signal}_{joint}" for joint in moved)
    return moved, None if usual else shorten(names, own)


def find_torque_column(
    names: Sequence[str], joints: Sequence[str], joint: str, counted: bool = True
) -> str | None:
    """The column of a joint's torque, or of the current that stands for it."""
    own = [name for name in names if re.search(match_word(joint), name)]
    likely = [name for name in own if is_called_as(name, "tau")]
    if likely or f"current_{joint}" in own:
        return likely[0] if likely else f"current_{joint}"
    borne, told = find_signal(names, joints, "tau", counted)
    if told is None or joint not in borne:
        return None
    before, _, after = told.partition("*") if isinstance(told, str) else ("", "", "")
    series = [n for n in names if n.startswith(before) and n.endswith(after)]
    return (series if isinstance(told, str) else told)[borne.index(joint)]


def shorten(names: Sequence[str], listed: tuple[str, ...]) -> str | tuple[str, ...]:
    """Columns as a name with a star, where that means them alone, in their order."""
    alike = takewhile(lambda letters: len({*letters}) == 1, zip(*listed, strict=False))
    begin = "".join(letters[0] for letters in alike)
    meant = tuple(name for name in names if begin and name.startswith(begin))
    return f"{begin}*" if len(listed) > 1 and meant == listed else listed


def describe(columns: str | tuple[str, ...]) -> str:
    """Columns in words: the first and the last of many."""
    listed = (columns,) if isinstance(columns, str) else columns
    return " ... ".join(dict.fromkeys((listed[0], listed[-1])))


def describe_columns(columns: Columns) -> str:
    """Columns of signals in words."""
    listed = ", ".join(f"{signal} = {describe(own)}" for signal, own in columns.items())
    return f"{listed}, by what they are called"
