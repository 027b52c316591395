"""Docstrings of public names have an example, and each of these runs."""

from __future__ import annotations

import doctest
import inspect
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import springs
import toy
from test_architecture import MODULES, list_shown_functions

import dynident as di
from dynident.control.controller import pd
from dynident.control.reference import quintic
from dynident.core.inertia import from_com

DOCS = Path(__file__).parents[1] / "docs"
RATE = 200.0
"""Of the logs [Hz]."""
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
STUDY = """[robot]
file = "arm.urdf"
[[log]]
files = "run1.csv"
[[log]]
files = "run2.csv"
use = "validate"
[prepare]
bandwidth = 5.0
"""
LONG = (
    *("excite", "Excitation", "compare", "identify_fleet", "identify_robot", "identify_factors"),
    *("doctor", "payload", "simulate_floating", "track", "run_study", "Simulation"),
    *("Fit.plot", "Fit.report", "Fit.to_mujoco", "collect", "replay", "Loop", "sweep", "shake"),
)
"""What takes a while, and has shorter tests elsewhere."""
NEEDS = {"Fit.to_mujoco": "mujoco", **dict.fromkeys(("Fit.links", "Fit.drives"), "pandas")}


def list_public() -> Iterator[tuple[str, Any]]:
    """All that the package exports, and what the guide's page of the API shows of a fit."""
    for name in di.__all__:
        if name != "__version__":
            yield name, getattr(di, name)
    for name in sorted(list_shown_functions()):
        owner, _, member = name.partition(".")
        if owner == "Fit" and member:
            found = inspect.getattr_static(di.Fit, member, None)
            own = found.fget if member == "plot" else found
            if inspect.isfunction(own):
                yield name, own


PUBLIC = dict(list_public())


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Iterator[dict[str, Any]]:
    """Names that examples begin with, in a folder with the files that they read."""
    folder, before = tmp_path_factory.mktemp("examples"), Path.cwd()
    os.chdir(folder)
    text = (DOCS / "files" / "arm.urdf").read_text()
    Path("arm.urdf").write_text(text)
    loop = (DOCS / "files" / "arm_loop.toml").read_text()
    Path("loop.toml").write_text(loop)
    soft = loop.replace("[900.0, 600.0]", "[90.0, 60.0]").replace("[60.0, 40.0]", "[6.0, 2.0]")
    Path("soft.toml").write_text(soft)
    Path("study.toml").write_text(STUDY)
    robot = di.load_robot("arm.urdf")
    model = di.build_idim(robot)
    theta = np.concatenate([robot.nominal.ravel(), [0.2, 1.5, 2.0, 0.1, 0.1, 0.6, 0.9, -0.05]])
    for k in (1, 2):
        q, dq, ddq = toy.motion(2, 8.0, rate=RATE, seed=k)
        noise = np.random.default_rng(k).normal(scale=[0.5, 0.2], size=q.shape)
        tau = model.torque(theta, q, dq, ddq) + noise
        table = np.column_stack([np.arange(len(q)) / RATE, q, tau])
        names = "time,q_shoulder,q_elbow,tau_shoulder,tau_elbow"
        np.savetxt(f"run{k}.csv", table, delimiter=",", header=names, comments="")
    log, other = (di.read_log(f"run{k}.csv", robot) for k in (1, 2))
    samples = di.prepare(log, bandwidth=5.0)
    problem = di.Problem(robot, samples)
    held_out = di.prepare(other, bandwidth=5.0)
    fit = di.identify(problem, validation=[held_out], bootstrap=0)
    fit.save("out", report=False)
    yield {
        "di": di, "robot": robot, "model": model, "theta": theta, "log": log, "samples": samples,
        "problem": problem, "other": other, "held_out": held_out, "fit": fit, "pd": pd,
        "reference": quintic(500.0, [[0.0, 0.0], [1.0, 0.5]], [0.0, 1.0]),
    }  # fmt: skip
    os.chdir(before)


def prepare_driven(study: str = "loop.toml") -> dict[str, Any]:
    """A log under a law."""
    robot = di.load_robot("arm.urdf")
    log = di.simulate_study(di.read_study(study, use=None)).recording
    samples = di.prepare(log, bandwidth=10.0, drop_below=0.05)
    return {"driven_log": log, "driven": di.Problem(robot, samples)}


def prepare_floating() -> dict[str, Any]:
    """The arm on a base that is free, falling."""
    robot = di.load_robot("arm.urdf", floating=True)
    model = di.build_idim(robot)
    plate = from_com(12.0, [0.0, 0.0, 0.03], np.diag([0.2, 0.4, 0.5]))
    drives = [0.2, 1.5, 2.0, 0.1, 0.1, 0.6, 0.9, -0.05]
    theta = np.concatenate([plate, robot.nominal[1:].ravel(), drives])
    reference = quintic(500.0, [[0.0, 0.0], [0.1, 0.1]], [0.0, 0.2])
    loop = di.Loop(model, pd([900.0, 600.0], [60.0, 40.0]), reference)
    return {"floating_loop": loop, "floating_theta": theta}


def prepare_factors() -> dict[str, Any]:
    """Factors of three robots."""
    for folder in ("factors", "second", "third"):
        di.collect("study.toml", ["run1.csv", "run2.csv"], folder)
    return {}


def prepare_plan() -> dict[str, Any]:
    """A designed trajectory."""
    robot = di.load_robot("arm.urdf")
    return {"plan": di.excite(robot, duration=5.0, starts=1, iterations=5, collision=False)}


def prepare_shaken():
    """A log of a joint with a spring, shaken through its resonance."""
    idim = di.build_idim(springs.elastic_arm((1, 2)))
    log, _ = springs.twin(idim, move=partial(springs.multisine, joint=1, top=60.0))
    return {"shaken": log}


BEFORE = {
    "Excitation": prepare_plan,
    "Simulation": prepare_driven,
    "replay": partial(prepare_driven, "soft.toml"),
    "find_resonance": prepare_shaken,
    "simulate_floating": prepare_floating,
    **dict.fromkeys(("identify_factors", "identify_fleet", "identify_robot"), prepare_factors),
}
"""What some examples need beside."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in LONG else []) for name in PUBLIC],
)
def test_an_example_runs(name, desk):
    pytest.importorskip(NEEDS.get(name, "numpy"))
    words = inspect.getdoc(PUBLIC[name])
    example = doctest.DocTestParser().get_doctest(words, {**desk}, name, None, 0)
    assert example.examples, "has no example"
    if name in BEFORE:
        example.globs.update(BEFORE[name]())
    said: list[str] = []
    failed = doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=said.append)
    assert not failed.failed, "".join(said)


def test_what_the_package_says_of_itself_runs(desk, capsys):
    text = di.__doc__.replace("tx40.toml", "arm.urdf").replace("run.csv", "run1.csv")
    example = doctest.DocTestParser().get_doctest(text, {}, "dynident", None, 0)
    assert len(example.examples) > 5
    assert not doctest.DocTestRunner(optionflags=OPTIONS).run(example).failed


def test_names_in_docstrings_are_names_of_the_code():
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES}
    told = re.compile(r'"""(.*?)"""', re.S)
    known = {word for text in texts.values() for word in re.findall(r"\w+", told.sub("", text))}
    for path, text in texts.items():
        for words in told.findall(text):
            for name in re.findall(r"(?<![`:])`([A-Za-z_][\w.]*)(?<!\.py)`(?!`)", words):
                assert known.issuperset(name.split(".")), (path.name, name)


def test_nothing_public_is_a_module_or_hidden_by_one():
    top = Path(di.__file__).parent
    for name in di.__all__:
        assert not inspect.ismodule(getattr(di, name)), name
        assert not (top / f"{name}.py").exists(), name
        assert not (top / name).is_dir(), name
