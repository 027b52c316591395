"""Inverse dynamics in C: compiled without a warning, and equal to our own."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import toy
from commands import tell
from frictions import VALUES, registered  # noqa: F401
from linkages import LINKAGES, load_linkage, write_spatial
from robots import relative, states
from test_dynamics import CASES, load
from test_result import result as identified
from test_whole import consistent
from thin import first

import dynident as di
from dynident.cli import run
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.idim import Idim, build_idim
from dynident.dynamics.parameters import JointElements, attach
from dynident.dynamics.whole import WholeModel
from dynident.export.c_code import C_LAWS, CStatements, c_code
from dynident.friction.elements import ELEMENTS
from dynident.friction.models import FRICTIONS
from dynident.robot.closure import Closure
from dynident.robot.linkage import CLOSED
from dynident.robot.load import load_robot
from dynident.robot.spec import LoopSpec

FILES = Path(__file__).parents[1] / "docs" / "files"
COMPILER = shutil.which("cc")
FLAGS = ["-std=c99", "-O0", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
DOUBLES = ctypes.POINTER(ctypes.c_double)
compiled = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc)")


def torques(text: str, name: str, q: Array, dq: Array, ddq: Array, folder: Path) -> Array:
    """What a C file's function gives, state by state."""
    source, library = folder / "model.c", folder / f"{name}.so"
    source.write_text(text)
    assert COMPILER is not None
    subprocess.run([COMPILER, *FLAGS, "-o", str(library), str(source), "-lm"], check=True)
    function = getattr(ctypes.CDLL(str(library)), f"{name}_inverse_dynamics")
    function.restype = None
    found = np.zeros_like(dq)
    for row in zip(q, dq, ddq, found, strict=True):
        function(*(np.ascontiguousarray(each).ctypes.data_as(DOUBLES) for each in row))
    return found


def compare(idim: Idim, theta: Array, folder: Path, width: float | None = None) -> float:
    model = WholeModel(idim, theta)
    q, dq, ddq = states(idim.robot, 20)
    first = idim.robot.dof - idim.robot.n
    dq[0], dq[1, first:] = 0.0, 0.0  # friction at rest
    found = torques(c_code(model, "robot", width), "robot", q, dq, ddq, folder)
    return relative(found, model.inverse_dynamics(q, dq, ddq, width))


@compiled
@pytest.mark.parametrize(
    "case",
    [
        *(case for case in CASES if case not in ("tiago", "talos")),
        pytest.param("talos", marks=pytest.mark.long),
    ],
)
def test_c_is_our_own_inverse_dynamics(case, tmp_path):
    robot, _ = load(case, tmp_path)
    idim = build_idim(robot)
    assert compare(idim, consistent(idim), tmp_path) < 1e-12


@compiled
@pytest.mark.parametrize("name", ["coupling", *first(LINKAGES, 3)])
def test_closed_chains_are_our_own_inverse_dynamics(name, tmp_path):
    """Passive joints in C from near where they are; what is given of their speeds is not read."""
    if name == "coupling":
        law = LoopSpec(kind="joint", joints=("c2", "lever"), polynomial=(0.1, 0.5, 0.2, -0.1))
        path = tmp_path / "tree.urdf"
        path.write_text(write_spatial())
        robot = load_robot(path, loops=[law])
    else:
        robot = load_linkage(name, tmp_path)
    idim, rng, closure = (
        build_idim(robot, "coulomb-viscous"),
        np.random.default_rng(0),
        Closure(robot),
    )
    values = {"Ia": 0.05, "fv": 0.3, "fc": 0.2, "off": 0.1}
    theta = idim.join(robot.nominal, [values[each.symbol] for each in idim.drives])
    q = closure.draw(40, rng)[:20]
    q = q[closure.measure_distance(q) > 0.01]
    dq, ddq = rng.normal(size=(2, *q.shape))
    text = c_code(WholeModel(idim, theta), "robot", 0.1)
    found = torques(text, "robot", q, dq, ddq, tmp_path)
    assert relative(found, WholeModel(idim, theta).inverse_dynamics(q, dq, ddq, 0.1)) < 1e-9
    assert not found[:, robot.passive].any()
    library = ctypes.CDLL(str(tmp_path / "robot.so"))
    for each in q:
        near = each + np.where(robot.passive, 0.005 * rng.normal(size=len(each)), 0.0)
        assert library.robot_close(near.ctypes.data_as(DOUBLES)) == 1
        np.testing.assert_allclose(near, each, atol=1e-9)
    if name != "coupling":
        far = np.array(robot.assembled)
        far[closure.driven] += 40.0 * np.arange(1, len(closure.driven) + 1)
        closed = closure.correct(far[None])[1][0] < CLOSED
        assert library.robot_close(far.ctypes.data_as(DOUBLES)) == int(closed)


@compiled
@pytest.mark.parametrize("width", first([None, 0.1]))
@pytest.mark.parametrize(
    "friction", first((name for name, model in FRICTIONS.items() if not model.needs), 5)
)
def test_all_friction_of_the_motion_is_in(friction, width, tmp_path):
    idim = build_idim(toy.arm(3, coupled=True), friction)  # of its drives the first is not
    theta = consistent(idim)
    theta[idim.inertial :] *= np.linspace(1.0, 1.4, len(idim.drives))
    assert compare(idim, theta, tmp_path, width) < 1e-12


FACTS = {
    "spring": {},
    "gas-spring": {"base": 0.5, "crank": 0.2, "angle": 0.4, "stroke": 0.9},
    "ripple": {"order": 7.0},
    "counterweight": {"angle": 0.3},
    "linkage": {"base": 0.5, "crank": 0.2, "coupler": 0.6, "rocker": 0.4, "angle": 0.2,
                "lean": 0.1, "side": -1.0},
}  # fmt: skip


@compiled
@pytest.mark.parametrize("kind", FACTS)
def test_other_elements_are_in_on_joints_and_on_cables(kind, tmp_path):
    element = ELEMENTS[kind](**FACTS[kind])
    elements = [JointElements(1, element), JointElements(0, element, 2, -0.5)]
    idim = build_idim(toy.arm(3), elements=elements)
    theta = idim.nominal
    theta[idim.inertial :] = np.linspace(0.5, 2.5, len(idim.drives))
    assert compare(idim, theta, tmp_path) < 1e-12


def test_every_law_of_the_motion_has_a_form_in_c():
    models = [*FRICTIONS.values(), *(ELEMENTS[kind](**facts) for kind, facts in FACTS.items())]
    laws = {m.law for m in models if m.law is not None and not m.needs}
    assert laws == set(C_LAWS)


@compiled
def test_a_result_writes_it(tmp_path):
    result = identified()
    result.to_c(tmp_path / "toy.c")
    text = (tmp_path / "toy.c").read_text()
    q, dq, ddq = states(result.robot, 20)
    found = torques(text, "toy", q, dq, ddq, tmp_path)
    assert relative(found, result.inverse_dynamics(q, dq, ddq)) < 1e-12
    assert "0  joint_1 [rad]" in text
    assert "(0, 0, -9.81) m/s^2" in text


def test_what_is_zero_is_not_there():
    idim = build_idim(toy.arm(1), "none")
    text = c_code(WholeModel(idim, np.zeros(10)))
    assert "tau[0] = 0.0;" in text
    assert "double t" not in text.partition("{")[2]
    idim = build_idim(toy.arm(1), "viscous")
    theta = idim.join(np.zeros((1, 10)), np.array([0.25, 2.0]))
    text = c_code(WholeModel(idim, theta)).partition("{")[2]
    assert [line.strip() for line in text.splitlines()[2:-1]] == [
        "const double t3 = 0.25 * ddq[0] + 2.0 * dq[0];",
        "tau[0] = t3;",
    ]


def test_sums_fold_constants():
    code = CStatements()
    a, b = (1.0, "a"), (-2.0, "b")
    assert code.sum(((2.0, ""), (3.0, "")), ((1.0, ""),)) == (7.0, "")
    assert code.sum((a, (0.0, "")), (a,), ((-1.0, ""), a)) == (0.0, "")
    assert code.sum((b, (0.5, ""))) == (-1.0, "b")
    assert not code.statements
    assert code.sum((a, b)) == (-2.0, "t0")
    assert code.sum((b, a)) == (-2.0, "t0")  # not twice
    assert code.sum((a,), (b,), ((0.5, ""),)) == (1.0, "t1")
    assert code.statements == [("t0", "a * b"), ("t1", "a - 2.0 * b + 0.5")]


@pytest.mark.parametrize(
    ("friction", "elements", "signal"),
    [
        ("load", (), "load of its drive"),
        ("temperature", (), "temperature of its drive"),
        ("viscous-drift", (), "time since the log began"),
        ("viscous", (attach(1, "known", {}),), "known torque of the log"),
    ],
)
def test_friction_that_depends_on_more_than_the_motion_is_refused(friction, elements, signal):
    idim = build_idim(toy.arm(2), friction, elements=elements)
    with pytest.raises(
        InputError, match=rf"its friction depends on the {signal}, .* C code of one"
    ):
        c_code(WholeModel(idim, idim.nominal))


@pytest.mark.parametrize("name", ["7dof", "a b", "", "double", "ä"])
def test_names_are_those_of_c(name):
    idim = build_idim(toy.arm(1))
    with pytest.raises(InputError, match="is not a name that a function of C can have"):
        c_code(WholeModel(idim, idim.nominal), name)


@pytest.mark.usefixtures("registered")
def test_a_law_without_a_form_is_refused():
    idim = build_idim(toy.arm(1), "spring")
    theta = idim.join(idim.nominal[:10].reshape(1, 10), VALUES["k"] * np.ones(len(idim.drives)))
    with pytest.raises(InputError, match="friction law 'pull' has no C code"):
        c_code(WholeModel(idim, theta))


@pytest.mark.long
@compiled
@pytest.mark.parametrize("method", ["pc-idim-ls", "wls"])
def test_the_command_writes_it_of_base_parameters_too(method, tmp_path, monkeypatch, capfd):
    for file in FILES.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile((tmp_path / "make_logs.py").read_text(), "make_logs.py", "exec"), {})
    known = ["--robot", "arm.urdf", "--log", "run1.csv", "--bandwidth", "5", "--method", method]
    assert run(["identify", *known, "-o", "out", "--no-report"]) == 0
    assert "written to arm.c" in tell(capfd, ["export", "out/result.json", "--c", "arm.c"]).err
    stored = di.read_result("out/result.json")
    q, dq, ddq = states(stored.robot, 10)
    name = f"{stored.robot.name}"
    found = torques(Path("arm.c").read_text(), name, q, dq, ddq, tmp_path)
    assert relative(found, stored.model.inverse_dynamics(q, dq, ddq)) < 1e-12
    assert run(["export", "out/result.json", "--c", "x", "--urdf", "x"]) == 2
    assert "x: is given for two outputs" in capfd.readouterr().err
    assert run(["export", "out/result.json", "--c", "x.c", "--repair"]) == 2
    assert "--repair applies to --urdf and --mjcf" in capfd.readouterr().err
    assert not Path("x.c").exists()
