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
from importlib import import_module
from inspect import getfile
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, codegen, event, sigutils
from numba.core.ccallback import CFunc

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
    return add_compiler_cache(numba.njit(**options))


def add_compiler_cache(decorator: Decorator) -> Decorator:
    """A decorator of Numba's with a cache: beside the source, in the user's place, a temporary one.

    Parameters
    ----------
    decorator : callable
        Of a function; what it gives has Numba's ``_cache``.
    """

    def decorate(function: Any) -> Any:
        compiled = decorator(function)
        compiled._cache = find_cache(function)
        return compiled

    return decorate


def compile_callback(function: Any, signature: Any, **options: Any) -> Any:
    """``numba.cfunc`` with that cache."""
    callback = CFunc(function, sigutils.normalize_signature(signature), {}, options)
    if getfile(function).endswith(".py"):  # not as at a prompt: there is nothing to keep it beside
        callback._cache = find_cache(function)
    callback.compile()
    return callback


def find_cache(function: Any) -> Any:
    """The cache of a function, where it may be."""
    try:
        return MachineCode(function)
    except RuntimeError:  # no directory can be written
        return MachineCode(function) if use_temporary_cache() else Passing(function)


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


LONGEST = int(os.environ.get("LONGEST", "60"))
"""Instructions of a body that callers take into their own; longer ones are called."""


def is_called(library: Any) -> bool:
    """Whether a function is so long that its callers call it, instead of a copy within theirs."""
    return bool(library.__dict__.get("called"))


def link(self: Any, library: Any) -> None:
    """Have code use a library: a copy that is optimised with it, or the code that is there.

    Numba copies every callee into every caller, and optimises it again there: kernels of many
    functions, five calls deep, take minutes.
    """
    library._ensure_finalized()
    needs = self.__dict__.setdefault("needs", {})
    if is_called(library):
        needs[library.called[0]] = library.called
    else:
        needs.update(library.__dict__.get("needs", {}))
        self._linking_libraries.append(library)


codegen.CPUCodeLibrary.add_linking_library = link  # type: ignore[method-assign]


def count_instructions(library: Any) -> int:
    """Of a compiled function's own code, with what it has taken into it."""
    return sum(
        sum(1 for _ in block.instructions)
        for function in library._get_module_for_linking().functions
        if not function.is_declaration and not function.name.startswith(("_ZN7cpython", "cfunc."))
        for block in function.blocks
    )


def mark(function: Any, sig: Any, cres: Any) -> None:
    """Note of code that is long that it is to be called, and how to find it again."""
    if count_instructions(cres.library) > LONGEST:
        cres.library.called = (
            cres.fndesc.llvm_func_name, function.__module__, function.__qualname__, sig
        )  # fmt: skip


class Passing(caching.NullCache):
    """Nothing is kept."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Note how it is called."""
        mark(self._function, sig, cres)


class MachineCode(caching.FunctionCache):
    """Numba's cache of a function, with the functions that its code calls."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._function = function
        self._cache_file = CacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def _load_overload(self, sig: Any, context: Any) -> Any:
        found = self._cache_file.load(self._index_key(sig, context.codegen()))
        if found is None:
            return None
        needs, called, payload = found
        for symbol, module, name, wanted in needs:
            dispatcher = getattr(import_module(module), name, None)
            if dispatcher is None:
                return None
            dispatcher.compile(wanted)
            now = dispatcher.overloads[tuple(sigutils.normalize_signature(wanted)[0])]
            if now.fndesc.llvm_func_name != symbol:
                return None  # it has been compiled again
        cres = self._impl.rebuild(context, payload)
        cres.library.needs = {each[0]: each for each in needs}
        if called:
            cres.library.called = called
        return cres

    def _save_overload(self, sig: Any, cres: Any) -> None:
        mark(self._function, sig, cres)
        if not self._impl.check_cachable(cres):
            return
        self._impl.locator.ensure_cache_path()
        library = cres.library
        data = (
            tuple(library.__dict__.get("needs", {}).values()),
            library.__dict__.get("called"),
            self._impl.reduce(cres),
        )
        self._cache_file.save(self._index_key(sig, cres.codegen), data)


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
