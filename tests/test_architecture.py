"""The structure: rooms that import one way, documented public names, no bad habits."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import dynident
from dynident.methods import ESTIMATORS

SOURCE = Path(dynident.__file__).parent.parent
MODULES = sorted(
    path for package in ("dynident", "dynident_papers") for path in (SOURCE / package).rglob("*.py")
)


def read_rooms() -> dict[str, set[str]]:
    """Who may import whom, in the order in which the rooms build on each other: the guide's table.

    A module alone in the package (`api`) is a room of its own.
    """
    page = (Path(__file__).parents[1] / "docs" / "contributing.md").read_text(encoding="utf-8")
    section = page.partition("## The house")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)`(?:, `\w+`)* \|.*\| ([^|]*) \|$", section, re.M)
    return {name: set(re.findall(r"\w+", imported)) - {"nothing"} for name, imported in rows}


ROOMS = read_rooms()


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[0] if parts[0] == "dynident_papers" else (parts[1] if len(parts) > 1 else "")


@cache
def known_modules() -> set[str]:
    return {module_name(path) for path in MODULES}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def statements(tree: ast.AST, own: bool = False) -> Iterator[ast.AST]:
    """Every statement of a module, whatever it stands in; or those of a function alone."""
    blocks = ("body", "orelse", "handlers", "finalbody", "cases")
    for block in blocks:
        for node in getattr(tree, block, ()):
            yield node
            if not (own and isinstance(node, ast.FunctionDef | ast.ClassDef)):
                yield from statements(node, own)


@cache
def imports(path: Path) -> list[str]:
    """Modules of ours that a file imports, anywhere and for whatever purpose."""
    known, found = known_modules(), []
    for node in statements(parsed(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name in known]
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known or node.module in known:
                    found.append(inner if inner in known else node.module)
    return found


STILL_WIDE = {"study": 21}
"""Rooms that import more than eight others; they may not know more."""


def test_rooms_are_small_and_know_few_others():
    lines: dict[str, int] = {}
    for path in MODULES:
        room = room_of(module_name(path))
        if room == "dynident_papers":  # a paper has a package of its own
            room = ".".join(path.parent.relative_to(SOURCE).parts)
        lines[room] = lines.get(room, 0) + len(path.read_text().splitlines())
    assert max(lines.values()) <= 5000, lines
    for room, others in ROOMS.items():
        assert len(others) <= STILL_WIDE.get(room, 14 if room == "dynident_papers" else 8), room


def test_every_room_says_what_it_is_for():
    rooms = {room_of(module_name(path)) for path in MODULES} - {"", "__main__", "dynident_papers"}
    assert rooms == set(ROOMS) - {"dynident_papers"}
    for room in rooms - {"api"}:
        init = SOURCE / "dynident" / room / "__init__.py"
        assert init.is_file(), room
        assert ast.get_docstring(parsed(init)), room


def test_the_rooms_stand_in_the_order_in_which_they_build_on_each_other():
    order = list(ROOMS)
    late = {"cli": {"dynident_papers"}}  # the papers stand beside the library
    for room, others in ROOMS.items():
        for other in others - late.get(room, set()):
            assert order.index(other) < order.index(room), f"{room} imports {other}"


def test_every_import_that_is_allowed_is_made():
    made = {(room_of(module_name(path)), room_of(one)) for path in MODULES for one in imports(path)}
    allowed = {(room, other) for room, others in ROOMS.items() for other in others}
    assert not allowed - made


def test_imports_go_one_way():
    for path in MODULES:
        room = room_of(module_name(path))
        for imported in imports(path) if room not in ("", "__main__") else ():
            other = room_of(imported)
            if other not in ("", room):
                assert other in ROOMS[room], f"{module_name(path)} imports {imported}"


def levels(graph: dict[str, set[str]]) -> int:
    """How deep imports go; refuses circles."""
    count = 0
    while graph:
        free = {name for name, found in graph.items() if not found & set(graph)}
        assert free, f"circle among {sorted(graph)}"
        graph = {name: found for name, found in graph.items() if name not in free}
        count += 1
    return count


def test_no_module_is_in_a_circle():
    graph = {module_name(path): set(imports(path)) - {module_name(path)} for path in MODULES}
    graph.pop("dynident")  # the index of public names, for type checkers alone
    assert levels(graph)


def test_the_rooms_levels_are_few():
    assert levels(dict(ROOMS)) <= 12


def test_modules_are_free_of_bad_habits():
    for path in MODULES:
        text = path.read_text()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("print", "eval", "exec"), (path, node.lineno)
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, (path, node.lineno)
                assert ast.unparse(node.type) != "Exception", (path, node.lineno)
        assert "allow_pickle=True" not in text, path
        assert "import pickle" not in text, path


def test_tests_reach_what_is_beside_the_project_through_one_fixture():
    for path in Path(__file__).parent.glob("*.py"):
        outside = re.search(
            r"__file__\)(\.resolve\(\))?\.parents\[[2-9]\]|\.\./shared|[\"']shared[\"'/]",
            path.read_text(),
        )
        assert not outside or path.name in ("conftest.py", Path(__file__).name), path.name


def public_objects() -> Iterator[tuple[str, object]]:
    for path in MODULES:
        name = module_name(path)
        module = import_module(name)
        for attribute, value in vars(module).items():
            if attribute.startswith("_") or getattr(value, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{module.__name__}.{attribute}", value


def test_public_names_are_documented():
    missing = []
    for name, value in public_objects():
        if not value.__doc__:
            missing.append(name)
        if inspect.isclass(value):
            missing += [
                f"{name}.{attribute}"
                for attribute, member in vars(value).items()
                if inspect.isfunction(member) and not attribute.startswith("_")
                if not member.__doc__
            ]
    assert not missing


def public_functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions of a module and ``Class.method`` of its public classes."""
    for holder in ast.iter_child_nodes(parsed(path)):
        public = isinstance(holder, ast.ClassDef) and not holder.name.startswith("_")
        for node in holder.body if public else [holder]:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield f"{holder.name}.{node.name}" if public else node.name, node


def raised(function: ast.FunctionDef) -> Iterator[str]:
    """What a function's own body raises by name."""
    for node in statements(function, own=True):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield ast.unparse(node.exc).partition("(")[0]


def list_shown_functions() -> set[str]:
    """Functions that the API page shows and ``Class.method`` of its classes; the estimators."""
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    shown = {estimator.__name__ for estimator in ESTIMATORS.values()}
    for name, members in re.findall(
        r"^.. auto\w+:: \S*?(\w+)(?:\n   :members: (.*))?$", page, re.M
    ):
        shown |= {name, *(f"{name}.{member}" for member in members.split(", "))}
    return shown


def test_functions_of_the_api_page_say_what_they_raise():
    told, shown = {"InputError", "ComputationError"}, list_shown_functions()
    missing, asked = [], 0
    for path in MODULES:
        if room_of(module_name(path)) in ("dynident_papers", "cli"):
            continue
        for name, node in public_functions(path):
            if name not in shown or not told & set(raised(node)):
                continue
            asked += 1
            words = ast.get_docstring(node) or ""
            if not (words.startswith("Refuse") or "\n\nRaises\n------\n" in words):
                missing.append(f"{module_name(path)}.{name}, line {node.lineno}")
    assert asked > 20
    assert not missing


def test_fields_inside_are_said_where_they_stand():
    shown = list_shown_functions() | set(dynident.__all__)
    for path in MODULES:
        for node in statements(parsed(path)):
            if isinstance(node, ast.ClassDef) and node.name not in shown:
                assert "Attributes\n---" not in (ast.get_docstring(node) or ""), node.name


def test_all_public_names_of_the_package_load():
    for name in dynident.__all__:
        assert getattr(dynident, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = dynident.nonsense


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, dynident, dynident.cli;"
        "heavy = {'numpy', 'scipy', 'pandas', 'numba', 'pinocchio', 'matplotlib'};"
        "sys.exit(len(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.long
def test_importing_everything_and_reading_arrays_leaves_what_is_heavy_alone():
    code = (
        "import sys, numpy as np, dynident as di; [getattr(di, n) for n in di.__all__];"
        "x = np.sin(np.outer(np.arange(100) / 100, [1.0, 2.0]));"
        "r = di.read_arrays(x, x, rate=100.0); assert isinstance(r, di.Recording);"
        "heavy = {'pandas', 'polars', 'xarray', 'pyarrow', 'h5py', 'rosbags', 'matplotlib',"
        "'scipy.signal', 'scipy.stats', 'scipy.optimize', 'scipy.spatial', 'scipy.ndimage'};"
        "sys.exit(len(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def read_late_imports() -> set[str]:
    """What the guide says is imported within functions although it is always installed."""
    page = (Path(__file__).parents[1] / "docs" / "contributing.md").read_text(encoding="utf-8")
    rule = page.partition("* Imports stand at the top")[2].partition("`dynident.identify`")[0]
    return set(re.findall(r"`([\w.]+)`", rule))


def list_required_packages() -> set[str]:
    """Packages that are installed with this one, by the names under which they are imported."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=]", name)[0] for name in project["dependencies"]}
    return {"pinocchio" if name == "pin" else name for name in names} | {"dynident"}


def list_imports_within_functions(path: Path) -> Iterator[str]:
    """Modules, or what is taken from a package, that functions of a file import."""
    for function in ast.walk(parsed(path)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in statements(function):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            if isinstance(node, ast.ImportFrom) and node.module:
                whole = "." not in node.module
                yield from (f"{node.module}.{a.name}" if whole else node.module for a in node.names)


@pytest.mark.long
def test_functions_import_what_the_guide_lists_alone():
    required, told, found = list_required_packages(), read_late_imports(), set()
    for path in MODULES:
        if room_of(module_name(path)) in ("cli", "dynident_papers", "__main__"):
            continue
        for name in list_imports_within_functions(path):
            if name.partition(".")[0] in required:
                listed = {one for one in told if f"{name}.".startswith(f"{one}.")}
                assert listed, f"{module_name(path)} imports {name} within a function"
                found |= listed
    assert found == told


def test_identify_loads_nothing_that_few_runs_need():
    late = {*read_late_imports(), "dynident.excitation", "dynident.study", "dynident.cli", "typer"}
    assert len(late) > 10
    code = (
        "import sys, dynident; dynident.identify;"
        f"found = {late} & set(sys.modules); print(*found); sys.exit(len(found))"
    )
    told = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr
