"""Compiled functions run wherever the package and the home cannot be written."""

from __future__ import annotations

import gc
import importlib
import logging
import operator
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core import event, types
from numba.core.registry import cpu_target
from numba.core.typing import npydecl
from robots import states, urdf
from thin import first

import dynident
from dynident.core import beside, compiled, quicker
from dynident.core.arrays import Array
from dynident.core.bundle import Bundle, keep_bundle
from dynident.core.jit import jit
from dynident.core.progress import Progress, ignore_progress
from dynident.dynamics.idim import build_idim
from dynident.friction import kernel, memoryless
from dynident.regression import rehearsal as rows
from dynident.robot.load import load_robot
from dynident.simulation import rehearsal

SOURCE = Path(dynident.__file__).parent


@pytest.fixture
def barred(tmp_path: Path) -> dict[str, str]:
    """Environment of a copy of the package that can write neither beside itself nor at home.

    Files stand where directories would be made, which holds for the administrator too. On a
    machine of several users it is permissions that are missing: the same OSError to Numba.
    """
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, tmp_path / "src" / "dynident", ignore=skipped)
    for folder in [p for p in (tmp_path / "src").rglob("*") if p.is_dir()]:
        (folder / "__pycache__").touch()
    (tmp_path / "src" / "dynident" / "__pycache__").touch()
    (tmp_path / "nobody").touch()
    (tmp_path / "tmp").mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "COV_"))}
    return {
        **kept,
        "PYTHONPATH": str(tmp_path / "src"),
        "HOME": str(tmp_path / "nobody" / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "nobody" / "cache"),
        "TMPDIR": str(tmp_path / "tmp"),
    }


def python(environment: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *argv], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_machine_code_is_kept_in_a_temporary_directory_where_no_other_can_be(
    barred: dict[str, str], tmp_path: Path
) -> None:
    place = tmp_path / "tmp" / f"dynident-{os.getuid()}"
    done = python(barred, "-m", "dynident", "base", "none.urdf")
    assert done.returncode == 2
    note, error = done.stderr.splitlines()
    assert note.startswith(f"note: compiled functions are kept in {place}, for neither the package")
    assert error.startswith("error: none.urdf")
    filtering = (
        "import numpy as np; from dynident.filters.filters import filter_zero_phase as f;"
        "assert abs(f(np.ones((100, 1)), 1.0, 10.0) - 1.0).max() < 1e-9"
    )
    done = python(barred, "-c", filtering)
    # a library warns through logging, which a program may show
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path.suffix for path in place.rglob("filters.filter_in_place*")} == {".nbi", ".nbc"}
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Nothing settled yet, and a temporary directory of one's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    compiled.use_temporary_cache.cache_clear()
    yield tmp_path
    compiled.use_temporary_cache.cache_clear()


def sourceless() -> object:
    """A function for which Numba finds no directory: it has no file."""
    names: dict[str, object] = {}
    exec(compile("def double(x):\n    return 2 * x\n", "<nowhere>", "exec"), names)
    return names["double"]


def test_without_any_directory_functions_are_compiled_at_every_start(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full() -> Path:
        raise OSError("no usable temporary directory")

    monkeypatch.setattr(compiled, "make_private_directory", full)
    with caplog.at_level(logging.WARNING, "dynident"):
        first, second = (compiled.make_compiler(nogil=True)(sourceless()) for _ in range(2))
    assert first(3) == second(3) == 6
    assert [r.getMessage().partition(";")[0] for r in caplog.records] == [
        "no directory can be written, so functions are compiled again at every start"
    ]


def test_the_directory_is_the_same_at_every_start(fresh: Path) -> None:
    place = compiled.make_private_directory()
    assert place == fresh / f"dynident-{os.getuid()}" == compiled.make_private_directory()
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_what_others_may_have_put_there_is_not_run(fresh: Path, kind: str) -> None:
    usual = fresh / f"dynident-{os.getuid()}"
    if kind == "open":
        usual.mkdir()
        usual.chmod(0o777)
    elif kind == "link":
        (fresh / "theirs").mkdir(mode=0o700)
        usual.symlink_to(fresh / "theirs")
    else:
        usual.touch()
    place = compiled.make_private_directory()
    assert place.parent == fresh
    assert place not in (usual, fresh / "theirs")
    assert place.stat().st_mode & 0o777 == 0o700


def test_laws_of_friction_are_compiled_at_their_first_start_alone() -> None:
    compile_again = kernel.compile_law.__wrapped__
    compile_again(memoryless.fill_sigmoid_friction)
    assert compile_again(memoryless.fill_sigmoid_friction).cache_hits == 1


def test_a_law_from_a_prompt_is_compiled_where_it_is(caplog: pytest.LogCaptureFixture) -> None:
    names = {"__name__": "prompt"}
    source = "def law(at, shape, z, out):\n    out[0, 0] = at.speed\n"
    exec(compile(source, "<stdin>", "exec"), names)
    assert kernel.compile_law.__wrapped__(names["law"]).cache_hits == 0
    assert not caplog.records


FILTERING = """
import numpy as np

from dynident import cli
from dynident.filters.filters import filter_zero_phase


def run(argv):
    filter_zero_phase(np.ones((100, 1)), 1.0, 10.0)
    print("done")
    return 0


cli.run = run
cli.main([])
"""


class Terminal(StringIO):
    """A stream that is looked at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def uncompiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], int]:
    """A function that is compiled where it is called first."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "adding.py").write_text("def add(x):\n    return x + 1\n")
    monkeypatch.delitem(sys.modules, "adding", raising=False)
    return compiled.make_compiler()(importlib.import_module("adding").add)


def test_a_terminal_is_told_of_what_is_compiled_and_the_line_is_wiped(
    monkeypatch: pytest.MonkeyPatch, uncompiled: Callable[[int], int]
) -> None:
    from dynident.cli import progress

    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    with progress.show_progress() as line:
        assert uncompiled(2) == 3
        before = stream.getvalue()
        assert uncompiled(3) == 4  # not again
        assert stream.getvalue() == before
        line("rows", 0.5)
    assert "\rcompiling functions for the first time, " in before
    assert stream.getvalue().endswith("\r")


def test_python_is_told_once_of_what_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
    uncompiled: Callable[[int], int],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(compiled.COMPILATIONS, "count", 0)
    seen: list[tuple[str, float]] = []

    @compiled.tells_compilations
    def work(x: int, progress: Progress = ignore_progress) -> int:
        return uncompiled(x)

    with caplog.at_level(logging.INFO, "dynident"):
        assert work(2, lambda *told: seen.append(told)) == 3
        assert work(3) == 4
        assert uncompiled(2.0) == 3.0  # another signature
    assert seen == [("compiling functions for the first time, 1 so far", 0.0)]
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("compiling functions for the first time (kept in ")


@pytest.mark.long
def test_a_pipe_is_told_in_one_line_and_of_nothing_that_is_kept(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    (tmp_path / "filtering.py").write_text(FILTERING)
    told = [python(environment, str(tmp_path / "filtering.py")) for _ in range(2)]
    assert [(done.returncode, done.stdout) for done in told] == [(0, "done\n")] * 2
    place = tmp_path / "kept"
    assert told[0].stderr == (
        f"note: compiling functions for the first time (kept in {place}): up to a minute\n"
    )
    assert told[1].stderr == ""


@pytest.mark.parametrize("damage", first(["garbage", "cut", "empty"]))
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_machine_code_that_is_damaged_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, damage: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"doubling_{suffix}_{damage}"
    (tmp_path / f"{name}.py").write_text("def double(x):\n    return 2.0 * x\n")
    double = importlib.import_module(name).double

    def count_hits() -> tuple[int, int]:
        called = compiled.make_compiler(nogil=True)(double)
        assert called(3.0) == 6.0
        callback = compiled.compile_callback(double, "f8(f8)")
        return sum(called.stats.cache_hits.values()), callback.cache_hits

    count_hits()
    assert count_hits() == (1, 1)
    for path in tmp_path.rglob(f"*.{suffix}"):
        whole = path.read_bytes()
        left = {"cut": whole[: len(whole) // 2], "empty": b"", "garbage": b"garbage" * 99}
        path.write_bytes(left[damage])
    assert count_hits() == (0, 0)
    assert count_hits() == (1, 1)


class Interrupting(event.Listener):
    """Sends an interrupt whenever a function is compiled."""

    def on_start(self, event: object) -> None:
        signal.raise_signal(signal.SIGINT)

    def on_end(self, event: object) -> None:
        pass


def test_an_interrupt_waits_until_a_function_is_compiled() -> None:
    triple = compiled.numba.njit(lambda x: 3 * x)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        compiling = event.install_listener("numba:compile", Interrupting())
        with compiling, pytest.raises(KeyboardInterrupt):
            triple(2)
        assert len(triple.signatures) == 1
        assert triple(2) == 6
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


CALLEE = """
from dynident.core.jit import wide


@wide
def scale(x):
    total = 0.0
    for value in x:
        total += {factor} * value
    return total
"""
CALLER = """
import numpy as np

from callee import scale
from dynident.core.jit import jit
from dynident.core.progress import Progress, ignore_progress
from dynident.dynamics.idim import build_idim


@jit
def scale_twice(x):
    return 2.0 * scale(x)


print(scale_twice(np.ones(3)), sum(scale_twice._cache_hits.values()))
"""


@pytest.mark.long
def test_a_kept_caller_is_compiled_again_when_what_it_calls_has_changed(tmp_path: Path):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE.parent)]),
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
    }
    (tmp_path / "caller.py").write_text(CALLER)
    for factor, expected in ((1.0, "6.0 0"), (1.0, "6.0 1"), (10.0, "60.0 0"), (10.0, "60.0 1")):
        text = CALLEE.format(factor=factor)
        if not (tmp_path / "callee.py").exists() or (tmp_path / "callee.py").read_text() != text:
            (tmp_path / "callee.py").write_text(text)
        done = python(environment, str(tmp_path / "caller.py"))
        assert done.stdout.strip() == expected, done.stderr


class Inside(NamedTuple):
    values: Array
    on: Array


class Outside(NamedTuple):
    matrix: Array
    count: int
    share: float
    inside: Inside
    nothing: Array | None


@jit
def read_bundle(s, out):  # type: ignore[no-untyped-def]
    for i in range(s.matrix.shape[0]):
        for j in range(s.matrix.shape[1]):
            out[j] += s.matrix[i, j]
    if s.nothing is None and s.inside.on[1]:
        s.inside.values[0] = s.count + s.share
    return len(s.inside.values)


def test_kernels_read_bundles_as_the_tuples_that_they_are_made_of():
    inside = Inside(np.zeros(3), np.array([False, True]))
    parts = Outside(np.arange(6.0).reshape(2, 3), 7, 0.25, inside, None)
    out = np.zeros(3)
    assert read_bundle(Bundle(parts), out) == 3
    assert out == pytest.approx([3.0, 5.0, 7.0])
    assert inside.values[0] == 7.25
    assert keep_bundle(parts) is keep_bundle(parts)
    with pytest.raises(TypeError, match="not contiguous"):
        Bundle(parts._replace(matrix=parts.matrix.T))


class Meanwhile(event.Listener):
    """Has another process ask for a function that this one compiles, and takes its time."""

    def __init__(self, *argv: str) -> None:
        self.argv = argv
        self.other: subprocess.Popen[str] | None = None

    def on_start(self, event: object) -> None:
        self.other = subprocess.Popen(self.argv, stdout=subprocess.PIPE, text=True)
        assert self.other.stdout is not None
        assert self.other.stdout.readline() == "asks\n"
        time.sleep(0.3)

    def on_end(self, event: object) -> None:
        pass


ASKING = """
import importlib, sys
from dynident.core import compiled
sys.path.insert(0, sys.argv[1])
add = compiled.make_compiler()(importlib.import_module("adding").add)
print("asks", flush=True)
print(add(2), compiled.COMPILATIONS.count)
"""


def test_what_one_process_compiles_others_wait_for(
    uncompiled: Callable[[int], int], tmp_path: Path
) -> None:
    listener = Meanwhile(sys.executable, "-c", ASKING, str(tmp_path))
    with event.install_listener("numba:compile", listener):
        assert uncompiled(2) == 3
    assert listener.other is not None
    assert listener.other.communicate()[0] == "3 0\n"
    assert not [*tmp_path.rglob("*.claim")]


def test_what_cannot_be_compiled_is_nobodys(
    uncompiled: Callable[[object], object], tmp_path: Path
) -> None:
    for _ in range(2):
        with pytest.raises(compiled.numba.TypingError):
            uncompiled("a")
        assert not beside.CLAIMS
    assert not [*tmp_path.rglob("*.claim")]


def test_a_process_compiles_beside_another_and_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "count_processors", lambda: 2)
    text = "import os, sys, time\nopen(sys.argv[1] + '.txt', 'w').close()\ntime.sleep(99)\n"
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "waiting.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(modules))
    # a module of the user's folder is none of its own
    (tmp_path / "waiting.py").write_text(text.replace(".txt", ".other.txt"))
    monkeypatch.chdir(tmp_path)
    beside.compile_beside("waiting", (4, 5, 6))
    assert not beside.HELPERS  # as in this suite, which fills two processors
    monkeypatch.delenv(beside.ALONE)
    for _ in range(2):
        beside.compile_beside("waiting", (4, 5, 6))
    helpers = [*beside.HELPERS]
    assert len(helpers) == 2
    while len([*tmp_path.glob("*.txt")]) < 2:
        time.sleep(0.01)
    beside.end_helpers()
    assert {path.stem for path in tmp_path.glob("*.txt")} == {"4", "5"}
    assert [helper.returncode for helper in helpers] == [-signal.SIGTERM] * 2


def test_what_is_compiled_beside_a_rollout_is_what_the_rollout_asks_for() -> None:
    rehearsal.compile_part(0)
    before = compiled.COMPILATIONS.count
    loop = rehearsal.build_loop()
    for function, arguments in rehearsal.list_steps(loop, rows.choose_parameters(loop.idim)):
        compiled.compile_for(function, *arguments)
    assert compiled.COMPILATIONS.count == before


@pytest.mark.parametrize(("base", "part"), [("fixed", rows.TORQUES), ("floating", rows.ROWS)])
def test_what_is_compiled_beside_a_fit_is_what_the_fit_asks_for(
    base: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, Sequence[int]]] = []
    monkeypatch.setattr(rows, "is_compiled", lambda function: False)
    monkeypatch.setattr(rows, "compile_beside", lambda *asked: begun.append(asked))
    robot = load_robot(urdf("solo12"), floating=base == "floating")
    rows.prepare_rows(robot)
    assert begun == [("dynident.regression.rehearsal", (part,))]
    rows.compile_part(part)
    before = compiled.COMPILATIONS.count
    idim, motion = build_idim(robot), states(robot, 3)
    idim.regressor(*motion)
    idim.torque(np.ones(len(idim.parameters)), *motion)
    rows.correlate_errors()
    assert compiled.COMPILATIONS.count == before


def test_collection_of_garbage_rests_while_numba_compiles():
    seen: list[bool] = []

    class Look(event.Listener):
        def on_start(self, event: object) -> None:
            seen.append(gc.isenabled())

        def on_end(self, event: object) -> None:
            pass

    @numba.njit
    def double(x):
        return 2 * x

    @numba.njit
    def fail(x):
        return x.nothing

    assert gc.isenabled()
    with event.install_listener("numba:run_pass", Look()):
        assert double(2.0) == 4.0
        with pytest.raises(numba.TypingError):
            fail(2.0)
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_types_of_calls_are_those_that_numba_finds():
    typing = cpu_target.typing_context
    typing.refresh()
    numbers = [types.int64, types.float32, types.float64, types.boolean, types.literal(2)]
    for operation in (operator.add, operator.truediv, operator.pow, operator.lt, operator.floordiv):
        function = typing.resolve_value_type(operation)
        for pair in product(numbers, numbers):
            known = quicker.find_type_of_call(function, typing, pair, {})
            for _ in range(2):  # as it is found, and as it is found again
                assert function.get_call_type(typing, pair, {}) == known
            assert (function, pair) in quicker.CALLS
            one = quicker.find_loop_of_types(np.add, pair[:1] * 2)
            assert npydecl.ufunc_find_matching_loop(np.add, list(pair[:1] * 2)) == one
