"""The structure: imports one way, small modules, documented public names, no bad habits."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dynident

SOURCE = Path(dynident.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# A module imports only from layers above its own. Within a layer order is by listing.
LAYERS = [
    ["errors", "text", "files", "progress", "threads"],
    ["inertia"],
    ["robot.friction", "robot.drives", "robot.model"],
    ["robot.spec", "robot.urdf", "robot.dh", "robot.load", "robot", "robot.geometry"],
    ["dynamics.tree", "dynamics.kinematics", "dynamics.inverse", "dynamics.regressor"],
    ["dynamics.spatial", "dynamics.tangent", "dynamics.cholesky", "dynamics.forward", "dynamics"],
    ["recording", "recording.recording", "recording.filters", "recording.prepare"],
    ["recording.readers", "recording.checks", "recording.clock", "recording.read"],
    ["idim", "base", "factors", "problem", "statistics", "rows"],
    ["convex", "cones", "faces", "interior", "contradiction", "conic"],
    ["space", "priors", "log_cholesky"],
    ["constraints.checks", "constraints.consistency", "constraints.values"],
    ["constraints.relations", "constraints.regions", "constraints"],
    ["knowledge", "admissible", "nearest"],
    ["simulation.controller", "simulation.gains", "simulation.reference", "simulation.sensors"],
    ["simulation.reconstruct", "simulation.integrators", "simulation.plant"],
    ["simulation.state", "simulation.law", "simulation.ports", "simulation.implicit"],
    ["simulation.kernel", "simulation.loop", "simulation.rollout", "simulation.stability"],
    ["simulation"],
    ["estimators.restriction", "estimators.estimate", "estimators.least_squares"],
    ["estimators.auxiliary", "estimators.iteration", "estimators.inner"],
    ["estimators.instrumental", "estimators.didim", "estimators.output_error"],
    ["estimators.bootstrap", "estimators.weight", "estimators.constrained", "estimators"],
    ["essential", "validation", "routes"],
    ["export", "export.urdf", "export.standard", "published"],
    ["report", "report.words", "report.repair", "report.summary"],
    ["identification"],
    ["export.result", "report.plots", "report.html"],
    ["sections", "constraint_section", "study"],
    ["options", "facade", "stored", "synthesis"],
    ["reproduce.tables", "reproduce.twin", "reproduce.experiment", "reproduce.cases"],
    ["reproduce.comparison", "reproduce.brunot2019", "reproduce.scenarios"],
    ["reproduce.estimates", "reproduce.restricted", "reproduce.feasible"],
    ["reproduce.published", "reproduce.ardiani2024", "reproduce"],
    ["cli.options", "cli.identify", "cli.inspect", "cli.simulate", "cli", "__main__"],
]
ORDER = {name: k for k, name in enumerate(n for layer in LAYERS for n in layer)}


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def runtime_imports(tree: ast.Module) -> list[str]:
    """Modules of the package imported anywhere except for types only."""
    found: list[str] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dynident"):
            base = node.module.removeprefix("dynident").lstrip(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                found.append(inner if inner in ORDER else base)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return [name for name in found if name]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path):
    name = name_of(path)
    if not name:
        return
    assert name in ORDER, f"{name} has no place in LAYERS"
    for imported in runtime_imports(ast.parse(path.read_text())):
        assert ORDER[imported] < ORDER[name], f"{name} imports {imported}, which comes after it"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_are_small_and_free_of_bad_habits(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("print", "eval", "exec"), f"line {node.lineno}"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}"
            assert ast.unparse(node.type) != "Exception", f"line {node.lineno}"
    assert "allow_pickle=True" not in text
    assert "import pickle" not in text


def public_objects():
    for path in MODULES:
        name = name_of(path)
        module = import_module(f"dynident.{name}" if name else "dynident")
        for attribute, value in vars(module).items():
            if attribute.startswith("_") or getattr(value, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{module.__name__}.{attribute}", value


@pytest.mark.parametrize(("name", "value"), list(public_objects()), ids=lambda v: str(v)[:60])
def test_public_names_are_documented(name, value):
    assert value.__doc__, name
    if inspect.isclass(value):
        for attribute, member in vars(value).items():
            if inspect.isfunction(member) and not attribute.startswith("_"):
                assert member.__doc__, f"{name}.{attribute}"


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


def test_importing_everything_leaves_pandas_and_matplotlib_alone():
    code = (
        "import sys, dynident as di; [getattr(di, n) for n in di.__all__];"
        "sys.exit(len({'pandas', 'matplotlib', 'pyarrow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
