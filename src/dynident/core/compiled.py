"""Compiled functions whose machine code is kept wherever it may be kept.

Numba keeps it beside the source or in the user's cache directory. On machines where neither
can be written (an installation of the administrator's and a service without a home, a
container of which only ``/tmp`` can be written) it refuses to compile at all.
"""

from __future__ import annotations

import logging
import os
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, event

from dynident.core.files import DAMAGE

Decorator = Callable[[Any], Any]

NOTES = logging.getLogger(__name__)


def make_compiler(**options: Any) -> Decorator:
    """``numba.njit`` `add_compiler_cache`.

    Parameters
    ----------
    **options
        Those of ``numba.njit``, without ``cache``.
    """
    return add_compiler_cache(lambda cache: numba.njit(cache=cache, **options))


def add_compiler_cache(decorator: Callable[[bool], Decorator]) -> Decorator:
    """A decorator of Numba's with a cache: beside the source, in the user's place, a temporary one.

    Parameters
    ----------
    decorator : callable
        Takes Numba's ``cache`` and gives what compiles with it.
    """

    def decorate(function: Any) -> Any:
        theirs = caching.IndexDataCacheFile
        # what Numba makes for the decorated function
        caching.IndexDataCacheFile = CacheFile  # type: ignore[misc]
        try:
            return decorator(True)(function)
        except RuntimeError:  # no directory can be written
            return decorator(use_temporary_cache())(function)
        finally:
            caching.IndexDataCacheFile = theirs  # type: ignore[misc]

    return decorate


DAMAGED = (caching.pickle.PickleError, MemoryError, *DAMAGE)  # type: ignore[attr-defined]
"""What Numba's own reading of its files stumbles over."""


class CacheFile(caching.IndexDataCacheFile):
    """Numba's files of a function; those that were cut off or damaged are written anew.

    A full disk or a loss of power leaves such files.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except DAMAGED:
            return {}

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)  # type: ignore[no-untyped-call]
        except DAMAGED as error:
            raise FileNotFoundError(name) from error  # Numba compiles where a file is gone


@cache
def use_temporary_cache() -> bool:
    """Have Numba keep machine code in the temporary directory; whether it can.

    Logs once where that is.
    """
    try:
        place = make_private_directory()
    except OSError:
        NOTES.warning(
            "no directory can be written, so functions are compiled anew at every start; set "
            "NUMBA_CACHE_DIR to one that can"
        )
        return False
    numba.config.CACHE_DIR = str(place)  # type: ignore[attr-defined]
    NOTES.warning(
        "compiled functions are kept in %s, for neither the package's directory nor the user's "
        "cache can be written; set NUMBA_CACHE_DIR to keep them elsewhere",
        place,
    )
    return True


def make_private_directory() -> Path:
    """The same directory at every start, where it is ours alone; otherwise a new one.

    What lies there is run: others may neither have made it nor write into it.
    """
    place = Path(tempfile.gettempdir()) / f"dynident-{os.getuid()}"
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if ours and not found.st_mode & 0o077:
            tempfile.TemporaryFile(dir=place).close()
            return place
    except OSError:
        pass  # there is a file of that name, or the directory of another
    return Path(tempfile.mkdtemp(prefix="dynident-"))


class DeferredInterrupts(event.Listener):
    """Lets an interrupt wait while Numba compiles, or loads what it has compiled.

    An interrupt within LLVM's calls back into Python is lost there, and what they had to give is
    missing afterwards: the process crashes.
    """

    def __init__(self) -> None:
        self._depth, self._asked = 0, False
        self._before: Any = None

    def on_start(self, event: object) -> None:
        """The compiler begins, perhaps within another function's compilation."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth += 1
        if self._depth == 1:
            self._asked = False
            self._before = signal.signal(signal.SIGINT, self._note)

    def on_end(self, event: object) -> None:
        """It is done: an interrupt that came meanwhile comes now."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth == 0:
            signal.signal(signal.SIGINT, self._before or signal.SIG_DFL)
            if self._asked:
                signal.raise_signal(signal.SIGINT)

    def _note(self, number: int, frame: object) -> None:
        self._asked = True


event.register("numba:compiler_lock", DeferredInterrupts())  # type: ignore[no-untyped-call]


class Compilations(event.Listener):
    """Counts functions as they are compiled anew, not those that are loaded.

    Parameters
    ----------
    tell : callable
        Called with the count whenever another one begins.
    """

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.tell, self.count = tell, 0

    def on_start(self, event: object) -> None:
        """Another function."""
        self.count += 1
        self.tell(self.count)

    def on_end(self, event: object) -> None:
        """It is done."""


@contextmanager
def count_compilations(tell: Callable[[int], None]) -> Iterator[None]:
    """Have `tell` called with a count whenever a function is compiled in the block."""
    with event.install_listener("numba:compile", Compilations(tell)):
        yield
