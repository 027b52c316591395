"""Files that appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from dynident.core.errors import InputError

STAGE = ".dynident."
"""How the directories begin in which files are made."""


def write_files(contents: Mapping[Path, bytes], gone: Iterable[Path] = ()) -> None:
    """Write the files of a set; none appears unless all could be written.

    They are made in a directory beside their places and renamed at the end. The first one is the
    set's head: where files of an earlier set are in the way, the old head goes first and the new
    one comes last. So whatever ends a run, at whatever instant, what stands beside a head belongs
    to it; a set whose head is missing is none, and the next run clears it. Only one run at a time
    writes into a directory, the others wait: two sets never mix.

    Parameters
    ----------
    contents : mapping of Path to bytes
        All in one directory; the head is the first.
    gone : iterable of Path
        What an earlier set left there and this one has not.

    Raises
    ------
    InputError
        When a directory cannot be made or written; what was made for it is gone again.
    """
    head = next(iter(contents))
    directory = head.parent
    made: list[Path] = []
    path = head
    try:
        made = make_directory(directory)
        with lock_directory(directory):
            # the lock is ours: what is staged here was left by a run that was killed
            for left in directory.glob(f"{STAGE}*"):
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=STAGE, dir=directory) as stage:
                for path, content in contents.items():
                    if path.is_dir():
                        raise InputError(f"{path}: cannot be written (it is a directory)")
                    staged = Path(stage, path.name)
                    staged.write_bytes(content)
                    staged.chmod(0o644)
                others = [path for path in contents if path != head]
                for path in (head, *others, *gone) if others or gone else ():
                    path.unlink(missing_ok=True)
                for path in (*others, head):
                    os.replace(Path(stage, path.name), path)
        made.clear()
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        for place in reversed(made):
            with suppress(OSError):  # another run may have written there
                place.rmdir()


@contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Hold a directory for the length of a block; whoever else wants it waits.

    The lock is of the directory itself and ends with the process: no file is left behind.
    """
    handle = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def make_directory(directory: Path) -> list[Path]:
    """Make a directory and its parents; returns those that were not there, parents first."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def refuse_unwritable(directory: Path) -> None:
    """Refuse a directory that no file could be written into, before any work is done.

    Raises
    ------
    InputError
        When it, or where it would be made, is no directory or not ours to write.
    """
    places = (place for place in (directory, *directory.parents) if os.path.lexists(place))
    place = next(places, Path())
    if not place.is_dir():
        raise InputError(f"{directory}: cannot be written ({place} is not a directory)")
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"{directory}: cannot be written (no permission to write in {place})")


def refuse_overwriting(outputs: Iterable[Path], inputs: Iterable[str | Path]) -> None:
    """Refuse to write over a file that was read.

    Raises
    ------
    InputError
        Naming the file.
    """
    read = {_resolve_path(Path(path)) for path in inputs}
    for path in outputs:
        if _resolve_path(path) in read:
            raise InputError(f"{path}: is an input; write somewhere else")


def _resolve_path(path: Path) -> Path:
    """Where a path leads; a name that is none and links in a circle lead nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path
