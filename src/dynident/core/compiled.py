"""Compiled functions whose machine code is kept wherever it may be kept.

Numba keeps it beside the source or in the user's cache directory. On machines where neither
can be written (an installation of the administrator's and a service without a home, a
container of which only ``/tmp`` can be written) it refuses to compile at all.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, wraps
from importlib import import_module
from inspect import getfile, signature
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import caching, codegen, event, sigutils
from numba.core.ccallback import CFunc
from numba.core.runtime.nrt import rtsys

from dynident.core import quicker  # noqa: F401
from dynident.core.beside import claim_function, give_up_claim
from dynident.core.files import DAMAGE
from dynident.core.progress import Progress

P = ParamSpec("P")
R = TypeVar("R")
Decorator = Callable[[Any], Any]

NOTES = logging.getLogger(__name__)


def make_compiler(*, wide: bool = False, **options: Any) -> Decorator:
    """``numba.njit`` with a cache: beside the source, in the user's place, or a temporary one.

    The loops of `wide` functions are long and of one operation, as over the columns of a matrix:
    they are vectorised. Short loops, as over joints, are faster without. The options are those of
    ``numba.njit``, without ``cache``.
    """

    def decorate(function: Any) -> Any:
        compiled = numba.njit(**options)(function)
        if options.get("forceinline"):
            COPIED.add(function.__qualname__)
        if wide:
            WIDE.add(function.__qualname__)
        compiled._cache = find_cache(function)
        return compiled

    return decorate


def compile_callback(function: Any, signature: Any, **options: Any) -> Any:
    """``numba.cfunc`` with that cache."""
    callback = CFunc(function, sigutils.normalize_signature(signature), {}, options)
    kept = None
    if getfile(function).endswith(".py"):  # not as at a prompt: there is nothing to keep it beside
        kept = callback._cache = find_cache(function)  # type: ignore[attr-defined]
    try:
        callback.compile()
    finally:
        if isinstance(kept, MachineCode):
            kept.give_up(signature)
    return callback


def find_cache(function: Any) -> Any:
    """The cache of a function, where it may be."""
    try:
        return MachineCode(function)
    except RuntimeError:  # no directory can be written
        return MachineCode(function) if use_temporary_cache() else NoCache(function)


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


LONGEST = 400
"""Instructions of a body that callers take into their own; longer ones are called."""
COPIED: set[str] = set()
"""Names of functions whose bodies callers take into their own in any case."""
WIDE: set[str] = set()
"""Names of functions whose loops are vectorised; they are called."""


# Numba copies the body of every callee into every caller and optimises it again there: kernels of
# many functions, five calls deep, took two minutes. Here a long body is compiled once, and its
# callers have its symbol; a cached caller names what it needs, so that it is there before.


def link(self: Any, library: Any) -> None:
    """Have code use a library: a copy that is optimised with it, or the code that is there."""
    library._ensure_finalized()
    needs = self.__dict__.setdefault("needs", {})
    called = library.__dict__.get("called")
    if called is None:
        needs.update(library.__dict__.get("needs", {}))
        self._linking_libraries.append(library)
    else:
        needs[called[0]] = called


def optimise(self: Any) -> None:
    """Numba's own optimisation of a library, its loops vectorised where they are long."""
    before = numba.config.LOOP_VECTORIZE  # type: ignore[attr-defined]
    numba.config.LOOP_VECTORIZE = before and self.name in WIDE  # type: ignore[attr-defined]
    try:
        numba_optimise(self)
    finally:
        numba.config.LOOP_VECTORIZE = before  # type: ignore[attr-defined]


numba_optimise = codegen.CPUCodeLibrary._optimize_final_module
codegen.CPUCodeLibrary.add_linking_library = link  # type: ignore[method-assign]
codegen.CPUCodeLibrary._optimize_final_module = optimise  # type: ignore[method-assign]


def is_long(library: Any) -> bool:
    """Whether a compiled function's own code is, with what it has taken into it."""
    instructions = (
        instruction
        for function in library._get_module_for_linking().functions
        if not function.is_declaration and not function.name.startswith(("_ZN7cpython", "cfunc."))
        for block in function.blocks
        for instruction in block.instructions
    )
    return next(islice(instructions, LONGEST, None), None) is not None


def mark_as_called(function: Any, sig: Any, cres: Any) -> None:
    """Note of code that is to be called under which symbol it is, and how to find it again."""
    name = function.__qualname__
    if name in WIDE or (name not in COPIED and is_long(cres.library)):
        cres.library.called = cres.fndesc.llvm_func_name, function.__module__, name, sig


class NoCache(caching.NullCache):
    """Nothing is kept."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Note how it is called."""
        mark_as_called(self._function, sig, cres)


def is_there(symbol: str, module: str, name: str, sig: Any) -> bool:
    """Load or compile a function; whether its code is still that of a symbol."""
    dispatcher = getattr(import_module(module), name, None)
    if dispatcher is None:
        return False
    dispatcher.compile(sig)
    now = dispatcher.overloads[find_arguments(sig)]
    return bool(now.fndesc.llvm_func_name == symbol)


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
        self._claims: dict[Any, Path] = {}

    def is_empty(self) -> bool:
        """Whether no variant of the function is kept."""
        return not self._cache_file._load_index()

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # Numba's own entries, and those of other lengths, hold something else
        return ("called", LONGEST, super()._index_key(sig, codegen))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kept code of a signature, without what only the compiler needs.

        Numba sets up all that it can compile first, which takes longer than to load everything.
        Whatever is compiled sets it up.
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():  # type: ignore[no-untyped-call]
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, context: Any) -> Any:
        key = self._index_key(sig, context.codegen())
        found = self._cache_file.load(key)
        if found is None:
            self._claim(sig, key)
            found = self._cache_file.load(key)  # another process may have compiled it meanwhile
            if found is None:
                return None
            self.give_up(sig)
        needs, called, payload = found
        if not all(is_there(*each) for each in needs):
            return None
        cres = self._impl.rebuild(context, payload)
        cres.library.needs = {each[0]: each for each in needs}
        if called:
            cres.library.called = called
        return cres

    def _claim(self, sig: Any, key: Any) -> None:
        with suppress(OSError):
            self._impl.locator.ensure_cache_path()
            claim = claim_function(Path(self._cache_path), self._impl.filename_base, key)
            if claim is not None:
                self._claims[find_arguments(sig)] = claim

    def give_up(self, sig: Any) -> None:
        """Let other processes compile a variant, or load it."""
        claim = self._claims.pop(find_arguments(sig), None)
        if claim is not None:
            give_up_claim(claim)

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep the code of a signature, for other processes, too, that may wait for it."""
        try:
            super().save_overload(sig, cres)  # type: ignore[no-untyped-call]
        finally:
            self.give_up(sig)

    def _save_overload(self, sig: Any, cres: Any) -> None:
        mark_as_called(self._function, sig, cres)
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


def is_compiled(function: Any) -> bool:
    """Whether any variant of a function is there or kept, or it is compiled never or every time."""
    cache = getattr(function, "_cache", None)
    return not isinstance(cache, MachineCode) or bool(function.overloads) or not cache.is_empty()


def compile_for(function: Any, *arguments: Any) -> None:
    """Compile a function for such arguments, or load it, without calling it."""
    function.compile(tuple(numba.typeof(each) for each in arguments))


def find_arguments(sig: Any) -> tuple[Any, ...]:
    """Types of the arguments of a signature, or of such a tuple of types."""
    return tuple(sigutils.normalize_signature(sig)[0])


@cache
def use_temporary_cache() -> bool:
    """Have Numba keep machine code in the temporary directory; whether it can.

    Logs once where that is.
    """
    try:
        place = make_private_directory()
    except OSError:
        NOTES.warning(
            "no directory can be written, so functions are compiled again at every start; set "
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


class CompilationCounter(event.Listener):
    """Counts functions as they are compiled anew, not those that are loaded, and says so.

    Python's collection of garbage rests meanwhile. Of `told`, what reports progress, the latest is
    told.
    """

    def __init__(self) -> None:
        self.count = 0
        self.told: list[Progress] = []
        self._depth, self._collecting = 0, False

    def on_start(self, event: Any) -> None:
        """Another function begins; the first is logged, too."""
        # what the compiler makes stays until it is done: to look through it takes a tenth longer
        if self._depth == 0:
            self._collecting = gc.isenabled()
            gc.disable()
        self._depth += 1
        cache = event.data["dispatcher"]._cache
        if not isinstance(cache, MachineCode):
            return
        self.count += 1
        if self.count == 1:
            NOTES.info(
                "compiling functions for the first time (kept in %s): up to a minute",
                find_top_directory(Path(cache.cache_path)),
            )
        for progress in self.told[-1:]:
            progress(f"compiling functions for the first time, {self.count} so far", 0.0)

    def on_end(self, event: Any) -> None:
        """It is done; what failed is nobody's any more."""
        self._depth -= 1
        if self._depth == 0 and self._collecting:
            gc.enable()
        cache = event.data["dispatcher"]._cache
        failed = event._exc_details is not None  # Numba's `is_failed` tells the contrary
        if failed and isinstance(cache, MachineCode):
            cache.give_up(event.data["args"])


def find_top_directory(place: Path) -> Path:
    """Where the caches of all functions are, from that of one: the package, or their directory."""
    return Path(__file__).parents[1] if place.name == "__pycache__" else place.parent


COMPILATIONS = CompilationCounter()  # type: ignore[no-untyped-call]
event.register("numba:compile", COMPILATIONS)  # type: ignore[no-untyped-call]


@contextmanager
def tell_compilations(progress: Progress) -> Iterator[None]:
    """Report what is compiled in the block as a stage of its own."""
    COMPILATIONS.told.append(progress)
    try:
        yield
    finally:
        COMPILATIONS.told.remove(progress)


def tells_compilations(function: Callable[P, R]) -> Callable[P, R]:
    """Have the `progress` that a function is given told of what it compiles."""
    known = signature(function)

    @wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        progress = known.bind(*args, **kwargs).arguments.get("progress")
        with nullcontext() if progress is None else tell_compilations(progress):
            return function(*args, **kwargs)

    return told
