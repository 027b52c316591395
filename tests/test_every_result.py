"""Every friction law and every element through every command that takes a result or a log."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import toy
from floating import turned, waves
from tables import write_columns

import dynident as di
from dynident.cli import run
from dynident.core.arrays import Array
from dynident.core.inertia import from_com
from dynident.dynamics.idim import build_idim
from dynident.export.urdf import render_urdf
from dynident.fit.json import serialise_result
from dynident.friction.elements import ELEMENTS
from dynident.friction.models import FRICTIONS
from dynident.loads import load
from dynident.study.run import run_study

RATE, SECONDS = 250.0, 5.0
ELEMENT = {
    "spring": "",
    "gas-spring": "base = 0.8\ncrank = 0.2\nangle = 0.1\nstroke = 0.5\n",
    "ripple": "order = 8.0\n",
    "counterweight": "angle = 0.2\n",
    "linkage": "base = 0.4\ncrank = 0.1\ncoupler = 0.4\nrocker = 0.2\nangle = 0.3\n",
    "known": "",
}
"""What each kind has to be told."""
STUDY = """[robot]
file = "arm.urdf"
friction = "{friction}"
[[log]]
files = "a.csv"
[prepare]
bandwidth = 5.0
drop_below = 0.02
[identify]
bootstrap = 0
decide = "nothing"
"""


CONTACT = 'floating = true\n[[contact]]\nname = "plate"\nframe = "base"\n'
BASE = from_com(5.0, [0.02, -0.01, 0.05], np.diag([0.08, 0.06, 0.05]))


def build_robot(floating: bool) -> di.Robot:
    """Two joints, on a fixed base or on a body that flies."""
    robot = toy.arm(2)
    if not floating:
        return robot
    return replace(robot, floating=True, nominal=np.vstack([BASE, robot.nominal]))


def columns(seed: int, floating: bool) -> dict[str, np.ndarray]:
    """A log with what any friction or element asks for."""
    robot = build_robot(floating)
    idim = build_idim(robot)
    motion = toy.motion(2, SECONDS, seed, RATE)
    if floating:
        *motion, pose, twist = fly(motion, seed)
    tau = idim.torque(toy.true_parameters(idim, robot.nominal), *motion)
    tau += np.random.default_rng(seed).normal(size=tau.shape) * 0.3
    time = np.arange(len(tau)) / RATE
    found = {"time": time}
    if floating:
        found |= dict(zip(("base_px", "base_py", "base_pz"), pose[:, :3].T, strict=True))
        found |= dict(zip((f"base_q{axis}" for axis in "xyzw"), pose[:, 3:].T, strict=True))
        found |= dict(zip((f"base_v{axis}" for axis in "xyz"), twist[:, :3].T, strict=True))
        found |= dict(zip((f"base_w{axis}" for axis in "xyz"), twist[:, 3:].T, strict=True))
        signals = [f"{kind}{axis}_plate" for kind in "fm" for axis in "xyz"]
        found |= dict(zip(signals, tau[:, :6].T, strict=True))
    for j, joint in enumerate(robot.joint_names):
        q, own = motion[0][:, j - 2], tau[:, j - 2]
        found |= {f"q_{joint}": q, f"tau_{joint}": own}
        found |= {f"temp_{joint}": 30.0 + 2.0 * np.sin(0.9 * time + j)}
        found |= {f"known_{joint}": np.cos(1.3 * time + j)}
    return found


def fly(motion: tuple[Array, Array, Array], seed: int) -> tuple[Array, ...]:
    """The motion of the joints with one of the base before it, and the base's pose and twist."""
    place, turn = (waves(np.random.default_rng([seed, k]), len(motion[0]), 3, RATE, 0.2)
                   for k in (1, 2))  # fmt: skip
    pose, twist, rate = (np.empty((len(motion[0]), k)) for k in (7, 6, 6))
    for t in range(len(pose)):
        quaternion, R, w, dw = turned(*(each[t] for each in turn))
        pose[t] = np.r_[place[0][t], quaternion]
        twist[t] = np.r_[R.T @ place[1][t], w]
        rate[t] = np.r_[R.T @ place[2][t] - np.cross(w, R.T @ place[1][t]), dw]
    q, dq, ddq = (np.hstack(pair) for pair in zip((pose, twist, rate), motion, strict=True))
    return q, dq, ddq, pose, twist


@pytest.fixture(scope="module", params=["fixed", "floating"])
def place(request, tmp_path_factory) -> Path:
    """A robot and two logs of it, and the head of a study."""
    folder = tmp_path_factory.mktemp("every")
    floating = request.param == "floating"
    robot = build_robot(floating)
    (folder / "arm.urdf").write_bytes(render_urdf(robot, robot.nominal)[0])
    for name, seed in (("a.csv", 1), ("b.csv", 2)):
        write_columns(folder / name, columns(seed, floating))
    text = STUDY.replace("[[log]]", CONTACT + "[[log]]") if floating else STUDY
    (folder / "study.toml").write_text(text)
    return folder


COMMANDS = {
    "validate": ("validate", "out/result.json", "b.csv", "--json"),
    "diff": ("diff", "out/result.json", "--log", "b.csv"),
    "export": ("export", "out/result.json", "--urdf", "x.urdf", "--mjcf", "x.xml", "--anyway"),
    "sample": ("sample", "out/result.json", "-n", "3", "--log", "b.csv", "--anyway", "--json"),
    "payload": ("payload", "out/result.json", "--log", "b.csv", "--anyway", "--json"),
    "doctor": ("doctor", "study.toml"),
    "select": ("select", "study.toml"),
    "track": ("track", "b.csv", "--start", "out/result.json"),
}
SUMS = ("cube-root + load", "tanh-sech(w3=2, w4=30)", "coulomb-viscous + dahl-spectrum")
CASES = [
    *((name, "") for name in (*FRICTIONS, *SUMS)),
    *(("coulomb-viscous", kind) for kind in ELEMENTS),
]
ALWAYS = ("stribeck-load", "known")
"""Of these the first runs always on a base that floats, the second on one that stands."""
DECIDED = "tanh-sech"
"""Beside which the rest is decided from the log."""
LOADED = {name for name, model in FRICTIONS.items() if "load" in model.needs}
"""What depends on loads, which a base that floats has by other code."""
UNTRACKED = ("viscous-drift", "load", "load-gain", "load-square", "directional-load",
             "stribeck-load", "temperature", "known", "cube-root + load")  # fmt: skip
"""What depends on more than the motion."""


def choose_commands(friction: str, element: str, floating: bool) -> list[str]:
    """Those that a case of `CASES` is followed by on a base.

    Each case has all of them on one base or the other, and each base has all: every second one,
    from a place that changes from case to case and from base to base. Cases that run always, and
    what depends on loads, have all on both; payload tells of a base that floats that it takes none.
    """
    place = CASES.index((friction, element)) + floating
    both = {friction, element} & {*ALWAYS, *LOADED}
    return [name for k, name in enumerate(COMMANDS) if both or name == "payload" or (k + place) % 2]


def test_each_case_has_all_commands_and_so_has_each_base():
    told = {
        floating: {case: {*choose_commands(*case, floating)} for case in CASES}
        for floating in (False, True)
    }
    for case in CASES:
        assert told[False][case] | told[True][case] == {*COMMANDS}
    for own in told.values():
        assert all(sum(name in each for each in own.values()) > len(CASES) / 3 for name in COMMANDS)


def keep(kept: list[di.Fit], fit: di.Fit) -> di.Fit:
    """A fit, which stays in a list."""
    kept.append(fit)
    return fit


@pytest.mark.parametrize(
    ("place", "friction", "element"),
    [
        pytest.param(stands, *case, marks=() if always in case else pytest.mark.long)
        for stands, always in zip(("floating", "fixed"), ALWAYS, strict=True)
        for case in CASES
    ],
    indirect=["place"],
)
def test_a_result_can_be_used(place, tmp_path, monkeypatch, capfd, friction, element):
    for name in ("arm.urdf", "a.csv", "b.csv"):
        (tmp_path / name).symlink_to(place / name)
    monkeypatch.chdir(tmp_path)
    text = (place / "study.toml").read_text().format(friction=friction)
    if friction == DECIDED:
        text = text.replace('decide = "nothing"', 'decide = "all"')
    if element:
        text += f'[[element]]\njoint = "joint_2"\nkind = "{element}"\n{ELEMENT[element]}'
    Path("study.toml").write_text(text)
    made = []
    with monkeypatch.context() as patch:
        patch.setattr(
            "dynident.study.run.run_study", lambda *a, **k: keep(made, run_study(*a, **k))
        )
        assert run(["identify", "study.toml", "-o", "out", "--no-report", "--anyway"]) == 0
    (fresh,) = made
    read = di.read_result("out/result.json")
    assert tell(fresh) == tell(read)
    assert fresh == read
    if {friction, element} & {*ALWAYS}:
        look_at(read)  # which takes as long as all commands
    assert read.summary().split("time  ")[0] == fresh.summary().split("time  ")[0]
    floating = fresh.robot.floating
    capfd.readouterr()
    monkeypatch.setattr(load, "DRAWS", 100)  # 2000 are for intervals, which nothing here asks about
    for name in choose_commands(friction, element, floating):
        untracked = friction in UNTRACKED or element in UNTRACKED
        refused = (name == "track" and untracked) or (name == "payload" and floating)
        assert (name, run([*COMMANDS[name]])) == (name, 2 * refused)
        said = capfd.readouterr().err
        assert "Traceback" not in said
        if refused:
            assert said.startswith("error: toy: ")
            assert said.count("\n") == 1
            assert ("dynident track --link" in said) == (name == "payload")


def test_a_fit_is_saved_and_its_page_written_wherever_its_logs_are(place, tmp_path, monkeypatch):
    robot = build_robot((place / "study.toml").read_text().count("floating") > 0)
    if robot.floating:
        pytest.skip("the fixed one is enough")
    monkeypatch.chdir(tmp_path)
    log = di.read_log(place / "a.csv", robot)
    fit = di.identify(di.Problem(robot, di.prepare(log, bandwidth=5.0)), bootstrap=0)
    note, cost = fit.save("mine")
    assert "has no place for it: Ia1, off1" in note
    assert cost.startswith("what the URDF cannot hold of the torques ")
    assert sorted(os.listdir("mine")) == ["model.urdf", "report.html", "result.json"]
    read = di.read_result("mine/result.json")
    assert read.summary() == fit.summary()
    size = (place / "a.csv").stat().st_size
    assert read.provenance == fit.provenance
    assert read.provenance.log_bytes == {"a.csv": size}
    assert f"{size} bytes, SHA-256 {fit.provenance.logs['a.csv']}" in fit.render_page().decode()
    assert "because the logs cannot be read: " in read.to_urdf("again.urdf")[-1]
    assert Path("again.urdf").read_bytes() == Path("mine/model.urdf").read_bytes()
    with pytest.raises(di.InputError, match="made without a study, so its logs are not known"):
        _ = read.samples
    assert run(["report", "mine/result.json", "-o", "page.html"]) == 0
    assert "The logs cannot be plotted: " in Path("page.html").read_text()
    assert "The logs cannot be plotted" not in Path("mine/report.html").read_text()
    assert run(["validate", "mine/result.json", str(place / "b.csv")]) == 0


def look_at(fit: di.Fit) -> None:
    """All that a notebook shows of a fit: frames, tables that fold, plots."""
    pytest.importorskip("pandas")
    assert len(fit.links()) == len(fit.robot.links)
    shown = {symbol for j in range(fit.robot.n) for symbol in fit.drive_parameters(j)}
    assert shown <= {*fit.drives()}
    frame = fit.to_frame()
    assert frame["unit"].map(type).eq(str).all()
    assert frame["value"].notna().all()
    assert fit._repr_html_().count("<details") >= 4
    equations = fit.robot.dof
    for panels, count in (
        (fit.plot.torque(), equations),
        (fit.plot.residuals(), equations),
        (fit.plot.friction(), fit.robot.n),
        (fit.plot.spectrum(), equations),
        (fit.plot.excitation(), fit.robot.n),
        (fit.plot.diagnostics(), 4 * equations),
        (fit.plot.parameters(), 1),
        (fit.plot.correlation(), 1),
    ):
        assert len(panels) == count
        assert all(axes.get_xlabel() for axes in panels[:-1])
        assert all(len(line.get_xdata()) for axes in panels for line in axes.lines)
    log = di.read_log("a.csv", fit.robot)
    assert ("base" in log.overview(fit.robot).signals) == fit.robot.floating
    assert len(log.plot()) == 2 * fit.robot.n


def tell(fit: di.Fit) -> dict[str, object]:
    """All of a fit but the date and how long it took."""
    document = json.loads(json.dumps(serialise_result(fit, Path("out"))))
    del document["timings"], document["provenance"]["date"]
    return document
