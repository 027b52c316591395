"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dynident.errors import InputError


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write several files; none appears unless all could be written.

    Each is written beside its place under a temporary name and renamed at the end.

    Raises
    ------
    InputError
        When a directory cannot be made or written.
    """
    pending: list[tuple[str, Path]] = []
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            pending.append((name, path))
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(name, 0o644)
        for name, path in pending:
            os.replace(name, path)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written ({error.strerror})") from error
    finally:
        for name, _ in pending:
            if os.path.exists(name):
                os.unlink(name)
