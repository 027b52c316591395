"""Files that appear whole or not at all."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import tempfile
import time
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dynident.core.errors import ComputationError, InputError

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it cannot meet it either
    LZMAError = zlib.error  # type: ignore[misc, assignment]

NOTES = logging.getLogger(__name__)

DAMAGE = (
    LZMAError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What libraries raise of damaged files, beyond what they document."""
STAGE = ".dynident."
"""How the directories begin in which files are made."""
NEW, OLD, JOURNAL = "new", "old", "journal"
"""In a stage: what is to be written, what it replaces, and the names of the former."""
PATIENCE = 20.0
"""How long another process may hold a directory [s]; writing takes less than a second."""


def write_files(
    contents: Mapping[Path, bytes], own: Callable[[str], object] = lambda name: False
) -> tuple[Path, ...]:
    """Write the files of a set; where that fails, all stands as it did before.

    They are made in a stage beside their places, where the files that they replace are put before
    they take these places. Until the last one stands, whatever ends the run leaves a journal by
    which the earlier set is put back: at once where this process lives on, else by the next
    one that writes there or misses a file there. The first file is the set's head: it is the first
    to go and the last to come, so whatever stands beside a head belongs to it. A file alone is
    replaced in one step. Only one run at a time writes into a directory: two sets never mix.

    Parameters
    ----------
    contents : mapping of Path to bytes
        The head is the first.
    own : callable
        Whether a file of this name is of such a set: those that an earlier set left beside its
        head, and this one has not, go.

    Returns
    -------
    tuple of Path
        The files that went.
    """
    refuse_outputs(contents)
    head = next(iter(contents))
    sets: dict[Path, dict[str, bytes]] = {}
    for path, content in contents.items():
        sets.setdefault(path.parent.resolve(), {})[path.name] = content
    made: list[Path] = []
    stages: list[Path] = []
    try:
        with ExitStack() as held:
            for directory in sorted(sets):
                made += make_directory(directory)
                held.enter_context(lock_directory(directory))
            names = sorted(os.listdir(head.parent)) if head.is_file() else []
            left = [head.with_name(name) for name in names if own(name)]
            stale = [path.name for path in left if path not in contents and path.is_file()]
            for directory, files in sets.items():
                stages.append(Path(tempfile.mkdtemp(prefix=STAGE, dir=directory)))
                held.callback(roll_back, stages[-1], stages[0])
                (stages[-1] / NEW).mkdir()
                for name, content in files.items():
                    write_through(stages[-1] / NEW / name, content)
            if len(contents) == 1 and not stale:
                os.replace(stages[0] / NEW / head.name, head)
            else:
                for stage, files in zip(stages, sets.values(), strict=True):
                    replace_files(stage, list(files), stale if stage is stages[0] else [])
                (stages[0] / JOURNAL).unlink()  # from here on the new set counts
        made.clear()
    except OSError as error:
        named = Path(error.filename or head).name
        path = next((path for path in contents if path.name == named), head)
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        for place in reversed(made):
            with suppress(OSError):  # another run may have written there
                place.rmdir()
    return tuple(head.with_name(name) for name in stale)


def replace_files(stage: Path, files: Sequence[str], stale: Sequence[str]) -> None:
    """Put files of an earlier set into a stage, and those that were made there into their places.

    The head is the first of what was made; what is stale goes beside what these replace.
    """
    (stage / OLD).mkdir()
    write_through(stage / JOURNAL, json.dumps(files).encode())
    for directory in (stage / NEW, stage, stage.parent):
        keep_names(directory)
    for name in (*files, *stale):
        with suppress(FileNotFoundError):
            os.replace(stage.parent / name, stage / OLD / name)
    for name in reversed(files):
        os.replace(stage / NEW / name, stage.parent / name)
    keep_names(stage.parent)


def roll_back(stage: Path, first: Path) -> None:
    """Put back what a stage holds of an earlier set, unless the new one counts; the stage goes.

    It may be ended at any step, and begun again. The stage is one directory's; the journal of the
    set's first says that the new set does not count yet.
    """
    try:
        files = json.loads((stage / JOURNAL).read_bytes()) if (first / JOURNAL).exists() else []
    except (FileNotFoundError, NotADirectoryError, ValueError):
        files = []  # nothing was moved yet, or the new set counts
    for name in files:
        if not (stage / NEW / name).exists():
            with suppress(FileNotFoundError):
                os.replace(stage.parent / name, stage / NEW / name)
    earlier = os.listdir(stage / OLD) if files else []
    for name in sorted(earlier, key=lambda name: name == files[0]):
        os.replace(stage / OLD / name, stage.parent / name)
    with suppress(FileNotFoundError, NotADirectoryError):
        (stage / JOURNAL).unlink()
    shutil.rmtree(stage, ignore_errors=True)


def write_through(path: Path, content: bytes) -> None:
    """Write a file so that a loss of power does not take it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def keep_names(directory: Path) -> None:
    """Have the names in a directory reach the disk."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system can
            os.fsync(handle)
    finally:
        os.close(handle)


def read_file(path: Path) -> bytes:
    """The content of a file that a set may have.

    Where it is missing because a run was killed while it replaced it, the earlier set is put back.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        with lock_directory(path.parent):
            return path.read_bytes()


@contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Hold a directory for the length of a block; what a run that was killed left there is undone.

    The lock is of the directory itself and ends with the process: no file is left behind.
    """
    handle = os.open(directory, os.O_RDONLY)
    try:
        take_lock(handle, directory)
        for left in directory.glob(f"{STAGE}*"):
            roll_back(left, left)
        yield
    finally:
        os.close(handle)


def take_lock(handle: int, directory: Path) -> None:
    """Lock an open directory; says whom it waits for."""
    begin, holder = time.monotonic(), ""
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError:
            return None  # a file system without locks
        if not holder:
            holder = describe_holder(handle)
            NOTES.warning("waiting for %s (%s)", directory, holder)
        if time.monotonic() - begin > PATIENCE:
            raise ComputationError(
                f"{directory}: {holder} has been writing there for more than {PATIENCE:g} s; end "
                "it, or write somewhere else"
            )
        time.sleep(0.02)


def describe_holder(handle: int) -> str:
    """The process that holds the lock of an open file, where the system tells."""
    number = os.fstat(handle).st_ino
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].endswith(f":{number}"):
                return f"process {words[4]}"
    return "another process"


def make_directory(directory: Path) -> list[Path]:
    """Make a directory and its parents; returns those that were not there, parents first."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def refuse_outputs(outputs: Iterable[Path], inputs: Iterable[str | Path] = ()) -> None:
    """Refuse files that could not be written, or were read, or are each other, before any work."""
    read = {_resolve_path(Path(path)) for path in inputs}
    outputs = tuple(outputs)
    places = [_resolve_path(path) for path in outputs]
    for path, place in zip(outputs, places, strict=True):
        if place in read:
            raise InputError(f"{path}: is an input; write somewhere else")
        if places.count(place) > 1:
            raise InputError(f"{path}: is given for two outputs; write one somewhere else")
        if path.is_dir() or any(place in other.parents for other in places):
            raise InputError(f"{path}: cannot be written (it is a directory)")
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: cannot be written (it is not a file but a device or pipe)")
        _refuse_unwritable(path.parent)


def _refuse_unwritable(directory: Path) -> None:
    """Refuse a directory that no file could be written into."""
    places = (place for place in (directory, *directory.parents) if os.path.lexists(place))
    place = next(places, Path())
    if not place.is_dir():
        raise InputError(f"{directory}: cannot be written ({place} is not a directory)")
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"{directory}: cannot be written (no permission to write in {place})")


def _resolve_path(path: Path) -> Path:
    """Where a path leads; a name that is none and links in a circle lead nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path
