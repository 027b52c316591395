"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from dynident.core.errors import InputError


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write several files; none appears unless all could be written.

    Each is written beside its place under a temporary name and renamed at the end.

    Raises
    ------
    InputError
        When a directory cannot be made or written; what was made for it is gone again.
    """
    pending: list[tuple[str, Path]] = []
    made: list[Path] = []
    path = Path()
    try:
        for path, content in contents.items():
            if path.is_dir():
                raise InputError(f"{path}: cannot be written (it is a directory)")
            made += make_directory(path.parent)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            pending.append((name, path))
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(name, 0o644)
        for name, path in pending:
            os.replace(name, path)
        made.clear()
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        for name, _ in pending:
            if os.path.exists(name):
                os.unlink(name)
        for directory in reversed(made):
            directory.rmdir()


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
    read = {_resolved(Path(path)) for path in inputs}
    for path in outputs:
        if _resolved(path) in read:
            raise InputError(f"{path}: is an input of this command; write somewhere else")


def _resolved(path: Path) -> Path:
    """Where a path leads; a name that is none and links in a circle lead nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path
