"""Logs of object stores and of the web: which there are, and copies of them for a while.

By fsspec, whose packages know where credentials are; no address here carries any.
"""

from __future__ import annotations

import glob
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dynident.core.errors import InputError
from dynident.core.schema import REMOTE
from dynident.core.text import format_one_line

STAMPS = ("ETag", "LastModified", "mtime", "updated", "created", "size")
"""What stores say of a file's version."""
FAILURES = (("botocore.exceptions", "BotoCoreError"), ("aiohttp", "ClientError"))
"""What the packages of stores raise beside what Python has."""


def is_remote(name: str) -> bool:
    """Whether a name is of a store and no path."""
    return REMOTE in name


def open_store(name: str) -> tuple[Any, str]:
    """The store of a file, and what it is called there."""
    try:
        core = import_module("fsspec.core")
        store, path = core.url_to_fs(name)
    except ImportError as error:
        raise InputError(
            f"{name}: needs a package ({format_one_line(error)}): pip install 'dynident[cloud]'"
        ) from error
    except ValueError as error:
        raise InputError(f"{name}: its store is not known ({error})") from error
    return store, str(path)


@contextmanager
def name_store_in_errors(name: str) -> Iterator[None]:
    """What a store refuses in a block is said in one line."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{name}: no such file") from error
    except list_failures() as error:
        raise InputError(f"{name}: cannot be read ({format_one_line(error)})") from error


def list_failures() -> tuple[type[BaseException], ...]:
    """What stores raise, by the packages that are in use."""
    own = (getattr(sys.modules[name], failure) for name, failure in FAILURES if name in sys.modules)
    return (OSError, ValueError, *own)


def forget_listings(names: Iterable[str]) -> None:
    """Have stores look again what they hold."""
    for name in names:
        if is_remote(name):
            open_store(name)[0].invalidate_cache()


def list_remote_files(name: str, suffixes: tuple[str, ...]) -> list[str]:
    """The files of a pattern, those of a folder that end as is asked, or one file."""
    web = urlsplit(name).scheme in ("http", "https")  # a question mark is part of an address there
    store, path = open_store(name)
    with name_store_in_errors(name):
        if "*" in path or (not web and glob.has_magic(path)):
            found = store.glob(path)
        elif not path.lower().endswith(suffixes) and not web and store.isdir(path):
            found = [own for own in store.ls(path, detail=False) if own.endswith(suffixes)]
        else:
            return [name]
    return [str(store.unstrip_protocol(own)) for own in sorted(found)]


def stamp_remote_file(name: str) -> str:
    """What the store says of a file's version; empty where it says nothing but a size."""
    store, path = open_store(name)
    with name_store_in_errors(name):
        told = store.info(path)
    found = {key: str(told[key]) for key in STAMPS if told.get(key) is not None}
    return json.dumps(found, sort_keys=True) if found.keys() - {"size"} else ""


@contextmanager
def fetch_files(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Names of local files: those of stores are copies, which go with the block."""
    if not any(map(is_remote, names)):
        yield tuple(names)
        return
    with tempfile.TemporaryDirectory(prefix="dynident-") as folder:
        yield tuple(
            fetch_file(name, Path(folder, str(k))) if is_remote(name) else name
            for k, name in enumerate(names)
        )


def fetch_file(name: str, folder: Path) -> str:
    """A copy of a store's file in a folder, whole, under its own name."""
    store, path = open_store(name)
    local = folder / Path(urlsplit(name).path).name
    folder.mkdir()
    with name_store_in_errors(name):
        size = store.info(path).get("size")
        store.get_file(path, str(local))
    if size is not None and local.stat().st_size != size:
        raise InputError(
            f"{name}: was cut off, {local.stat().st_size} of {size} bytes came; try again"
        )
    return str(local)
