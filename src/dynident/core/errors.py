"""The errors that dynident raises on purpose.

Every message is one line that names the file, the row or the key, and what to try.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from dynident.core.text import suggest_nearest

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")
"""Where an object lies in memory, which is another place at every start."""
KEY_OF_LOG = re.compile(r"\b(bad_rows|side|clock|stack) = ")
"""What messages say of keys that a log has in a study."""
FLAG_OF_LOG = re.compile(r"\b(columns|units) = \{ (\w+) = (.+?) \}")
"""What they say of those that are flags, too."""
WORD_OF_LOG = re.compile(r"\b(?:bad_rows = (['\"])cut\1|preset = (['\"])([\w-]+)\2)")
LOCKING = re.compile(
    r"(?:dynident init writes a study that reads it; )?if (.+) did not move, lock (it|them) \(.*\)"
)
"""What they advise of joints without columns, which are those of a stored result for good."""
DROP_BELOW = re.compile(r"\bdrop_below\b")


class DynidentError(Exception):
    """Anything that dynident refuses or fails at, with a reason a user can act on.

    >>> try:
    ...     di.load_robot("nowhere.urdf")
    ... except di.DynidentError as error:
    ...     print(error)
    nowhere.urdf: ...
    """

    def __init__(self, reason: object = "") -> None:
        super().__init__(ADDRESS.sub("", str(reason)))


class InputError(DynidentError):
    """The input cannot be used: a file, a key, a value or their combination.

    >>> di.identify(log)
    Traceback (most recent call last):
        ...
    dynident.core.errors.InputError: identify takes Problem, not Recording: ...
    """


def check_type(who: str, given: object, wanted: type, hint: str) -> None:
    """Refuse what is of another type than a stage takes; the hint says what makes one."""
    if not isinstance(given, wanted):
        name = type(given).__name__
        raise InputError(f"{who} takes {wanted.__name__}, not {name}: {hint}")


def refuse_unknown(name: str, known: Collection[str], words: str) -> None:
    """Refuse a name that is none of those known, in these words and by what is near it."""
    if name not in known:
        raise InputError(f"{words}{suggest_nearest(name, known)}")


@contextmanager
def name_missing_package(words: str) -> Iterator[None]:
    """Refuse in these words where what is imported in a block is not installed."""
    try:
        yield
    except ImportError as error:
        raise InputError(words) from error


class OptionError(InputError):
    """A value of an option that does not fit; it knows the option, and not who gave it where."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


class SectionError(InputError):
    """A section of a study that does not fit; it knows its place there, and not the file."""


@contextmanager
def name_section_in_errors(name: str = "") -> Iterator[None]:
    """What is refused in a block is of this section of a study, or of several; it says so."""
    try:
        yield
    except SectionError:
        raise
    except InputError as error:
        reason = str(error)
        said = name.strip("[]") in reason.partition(":")[0]
        raise SectionError(reason if said or not name else f"{name}: {reason}") from error


@contextmanager
def name_study_in_errors(path: Path | None, stored: bool = False) -> Iterator[None]:
    """Name the file of a study's section that does not fit, or say what a study is for.

    Without a path flags take the study's place, which have no keys of logs; `stored` are logs
    beside a result.
    """
    try:
        yield
    except SectionError as error:
        raise InputError(f"{path or 'command line'}: {error}") from error
    except InputError as error:
        reason = str(error)
        if path is None:
            reason = FLAG_OF_LOG.sub(format_flag, reason)
            reason = WORD_OF_LOG.sub(
                lambda key: f"--preset {key[3]}" if key[3] else "--bad-rows cut", reason
            )
        if stored:
            reason = LOCKING.sub(r"if \1 did not move, take a result with \2 locked", reason)
        reason = DROP_BELOW.sub("--drop-below" if path is None else "[prepare] drop_below", reason)
        if KEY_OF_LOG.search(reason):
            reason += " (keys of a log stand in [[log]] of a study: docs/study.md)"
        if reason == str(error) or isinstance(error, OptionError):
            raise
        raise InputError(reason) from error


def format_flag(key: re.Match[str]) -> str:
    """``--columns 'q=pos_*'`` instead of ``columns = { q = 'pos_*' }``, as a shell takes it."""
    names = ",".join(name.strip(" '\"") for name in key[3].strip("[]").split(","))
    return f"--{key[1]} {shlex.quote(f'{key[2]}={names}')}"


class ComputationError(DynidentError):
    """The input was fine but no trustworthy answer came out of it.

    >>> still = di.read_arrays(log.q, 0.0 * log.tau, rate=log.rate)
    >>> di.identify(di.Problem(robot, di.prepare(still, 5.0)))
    Traceback (most recent call last):
        ...
    dynident.core.errors.ComputationError: recording: the torque is zero throughout, ...
    """


class RolloutError(ComputationError):
    """A simulation that could not go on: no robot's mass matrix, or a motion that diverges."""


class UnsettledError(ComputationError):
    """Friction whose shapes or loads go on changing: the fit to a log never comes to an end."""


class InfeasibleError(ComputationError):
    """Constraints that contradict each other.

    >>> from dynident.consistency.constraints import LinkMass, TotalMass
    >>> try:
    ...     di.identify(problem, constraints=[TotalMass(4.0), LinkMass("upper", lower=5.0)])
    ... except di.InfeasibleError as error:
    ...     print(*error.conflict)
    gyration fore >= ... total mass = 4... mass of upper >= 5

    Parameters
    ----------
    conflict : tuple of str
        Names of constraints that cannot all hold, of which none is redundant.
    """

    def __init__(self, conflict: tuple[str, ...]) -> None:
        self.conflict = conflict
        shown = ", ".join(conflict[:8])
        if len(conflict) > 8:
            shown += f" and {len(conflict) - 8} more"
        super().__init__(f"the constraints contradict each other: {shown} cannot all hold")
