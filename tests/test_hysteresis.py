"""Hysteresis of springs: the law, its columns, recovery, evidence, the whole way from a study."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from commands import run
from springs import (
    RATE,
    SLIPS,
    VALUES,
    elastic_arm,
    full_set,
    periodic,
    share_inside,
    twin,
    write_study,
)
from thin import first

import dynident as di
from dynident.core.errors import InputError
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.elastic import bend_joints
from dynident.dynamics.idim import build_idim
from dynident.friction.energy import check_passive
from dynident.friction.hysteresis import bend_bristles, bend_under_load, build_hysteresis
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.robot.load import replace_drives
from dynident.robot.spec import DriveSpec

HYSTERESIS = ("hysteresis",)


def wander(seed: int, samples: int = 4000) -> np.ndarray:
    """A smooth random path of a spring's deflection [rad]."""
    rng, t = np.random.default_rng(seed), np.linspace(0.0, 1.0, samples)
    waves = (
        rng.normal() / k * np.sin(2.0 * np.pi * k * t + rng.uniform(0.0, 6.0)) for k in range(1, 9)
    )
    return 4e-4 * sum(waves)


def step_in_small_steps(
    slips: tuple[float, ...], delta: np.ndarray, parts: int = 400
) -> np.ndarray:
    """The law by Euler's method: ``s dw = d delta - |d delta| w``."""
    w, found = np.zeros(len(slips)), []
    for before, after in pairwise(np.concatenate([delta[:1], delta])):
        step = (after - before) / parts
        for _ in range(parts):
            w = w + (step - abs(step) * w) / np.array(slips)
        found.append(w)
    return np.transpose(found)


def test_bristles_follow_their_law_along_a_path():
    delta = wander(0, 300)
    assert np.allclose(bend_bristles(SLIPS, delta), step_in_small_steps(SLIPS, delta), atol=2e-3)


def test_the_way_counts_and_not_the_time():
    """The same straight pieces, walked in one step, or in many of any size."""
    delta = np.concatenate([np.linspace(a, b, 20) for a, b in pairwise([0.0, 3e-4, -2e-4, 1e-4])])
    corners = np.array([0.0, 3e-4, -2e-4, 1e-4])
    slow, fast = (bend_bristles(SLIPS, path) for path in (delta, corners))
    assert np.allclose(slow[:, -1], fast[:, -1], atol=1e-12)
    assert np.allclose(slow[:, 19], fast[:, 1], atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_closed_cycles_take_energy(seed):
    """Whatever the torques of bristles are, as long as they are not negative; else it is told."""
    torques = np.random.default_rng(seed).uniform(0.0, 1.0, 2)
    once = wander(seed)
    once = once + np.linspace(0.0, once[0] - once[-1], len(once))
    delta = np.tile(once, 3)
    w = torques @ bend_bristles(SLIPS, delta)
    taken = 0.5 * (w[1:] + w[:-1]) @ np.diff(delta)
    last = slice(2 * len(once) - 1, None)
    cycle = 0.5 * (w[last][1:] + w[last][:-1]) @ np.diff(delta[last])
    assert taken > 0.0
    assert cycle > 1e-3 * torques.sum() * np.ptp(once)
    model = build_hysteresis(SLIPS)
    check_passive(model, torques, np.array(SLIPS))
    with pytest.raises(InputError, match="gives energy away"):
        check_passive(model, -torques, np.array(SLIPS))


def test_a_spring_bears_its_load_and_gives_way_as_differences_say():
    load = 3000.0 * wander(3)
    args = (3000.0, 900.0, (0.15, 0.25), SLIPS)
    delta, bristles, gives = bend_under_load(load, *args)
    assert np.allclose(bristles, bend_bristles(SLIPS, delta), atol=1e-9)
    borne = 3000.0 * delta + 900.0 * np.diff(delta, prepend=load[0] / 3000.0)
    assert np.allclose(borne + np.array([0.15, 0.25]) @ bristles, load, atol=1e-10)
    more = 1e-7 * np.sin(np.arange(len(load)) / 100.0)
    sides = [bend_under_load(load + sign * more, *args)[0] for sign in (0.5, -0.5)]
    found = gives.soften(more[:, None], slice(0, len(load)))[:, 0] / 3000.0
    # not where a reversal comes a sample earlier or later
    off = np.abs(found - (sides[0] - sides[1]))
    assert np.quantile(off, 0.98) < 1e-3 * np.max(np.abs(found))


def test_columns_are_the_bristles_in_the_row_of_the_link_alone():
    idim = build_idim(elastic_arm((1, 2), spring=("cubic", "hysteresis")))
    theta, motion = full_set(idim, Kc=4e7), periodic(3)
    bent = bend_joints(idim, theta, motion, RATE)
    some = slice(3000, 3200)
    conditions = Conditions(deflection=bent[:, some])
    W = idim.regressor(*(each[some] for each in motion), conditions)
    # two periods: what is remembered of the first sample is forgotten
    for j in range(2):
        w = step_in_small_steps(SLIPS, np.tile(bent[0, ::1, j], 2)[: 8000 + 3200], 1)[:, 11000:]
        for k, symbol in enumerate(("Kha", "Khb")):
            column = W[:, :, idim.names.index(f"{symbol}{j + 1}")]
            assert np.allclose(column[:, 3 + j], -w[k], atol=0.03)
            assert not np.any(np.delete(column, 3 + j, axis=1))
    assert np.allclose(
        W @ theta, idim.torque(theta, *(m[some] for m in motion), conditions=conditions)
    )


@pytest.mark.parametrize("spring", first([("cubic", "hysteresis"), HYSTERESIS, ("cubic",)], 2))
def test_what_bends_joints_bears_their_links(spring):
    idim = build_idim(elastic_arm((1, 2), spring=spring))
    theta, motion = full_set(idim, Kc=4e7), periodic(3)
    tau = idim.torque(
        theta, *motion, conditions=Conditions(deflection=bend_joints(idim, theta, motion, RATE))
    )
    assert np.max(np.abs(tau[:, 3:])) < 1e-6


@pytest.fixture(scope="module")
def fitted():
    """Twins with hysteresis, fitted and held out, and what was found."""
    idim = build_idim(elastic_arm((1, 2), spring=HYSTERESIS))
    (log, theta), (other, _) = twin(idim), twin(idim, 1)
    problem = Problem(idim.robot, prepare(log, 6.0))
    fit = di.identify(problem, "wls", validation=[prepare(other, 6.0)], doctor=False)
    return fit, theta


def test_a_twin_gives_its_bristles_back(fitted):
    fit, theta = fitted
    off = (fit.estimate.beta - fit.base.matrix @ theta) / fit.estimate.covariance.std
    assert np.max(np.abs(off)) < 4.5
    std = dict(zip(fit.base.names, fit.estimate.covariance.std, strict=True))
    assert std["Kha2"] < 0.05 * VALUES["Kha"]
    assert std["Khb2"] < 0.05 * VALUES["Khb"]
    assert not any("settle" in warning for warning in fit.warnings)


def test_the_verdict_tells_hysteresis_on_held_out_links(fitted):
    fit, _ = fitted
    width = 2.0 * (VALUES["Kha"] + VALUES["Khb"]) / VALUES["K"]
    for own in fit.springs:
        assert own.supported
        assert own.hysteresis
        assert own.interval[0] < 1.0 / VALUES["K"] < own.interval[1]
        low, high = own.width_interval
        assert abs(own.width - width) < high - low
        (held,) = own.held_out
        assert held.spring < 0.5 * held.linear < 0.5 * held.stiff
    # with hysteresis in the model, the compliance is known an order of magnitude better
    plain = build_idim(elastic_arm((1, 2)))
    log, _ = twin(build_idim(elastic_arm((1, 2), spring=HYSTERESIS)))
    linear = di.identify(Problem(plain.robot, prepare(log, 6.0)), "wls", doctor=False)
    assert fit.springs[1].std < 0.2 * linear.springs[1].std
    assert linear.springs[1].width_interval is None


@pytest.mark.long
def test_a_spring_without_hysteresis_has_none_and_it_is_said():
    idim = build_idim(elastic_arm((2,), spring=HYSTERESIS))
    (log, _), (other, _) = (twin(idim, seed, Kha=0.0, Khb=0.0) for seed in (0, 1))
    problem, held = Problem(idim.robot, prepare(log, 6.0)), [prepare(other, 6.0)]
    fit = di.identify(problem, validation=held, doctor=False)
    (own,) = fit.springs
    assert own.supported
    assert not own.hysteresis
    assert any("do not distinguish hysteresis" in reason.words for reason in fit.verdict.reasons)
    values = dict(zip(fit.idim.names, fit.theta, strict=True))
    assert 0.0 < values["Kha2"] < 0.02
    assert 0.0 < values["Khb2"] < 0.02


@pytest.mark.long
def test_bristles_that_are_alike_are_named():
    robot = elastic_arm((2,), spring=HYSTERESIS)
    log, _ = twin(build_idim(robot))
    drive = DriveSpec(joint="joint_2", link=("position",), spring=HYSTERESIS, slip=(1.6e-4, 1.7e-4))
    robot = replace_drives(robot, [drive], None, "toy")
    fit = di.identify(Problem(robot, prepare(log, 6.0)), doctor=False)
    assert {"Kha2", "Khb2"} <= {*fit.springs[0].alike}
    said = [reason.words for reason in fit.verdict.reasons]
    assert any("do not separate Kha2 and Khb2" in words for words in said)


def test_bristles_that_a_log_never_bends_are_refused():
    robot = elastic_arm((2,), spring=HYSTERESIS)
    log, _ = twin(build_idim(robot))
    drive = DriveSpec(joint="joint_2", link=("position",), spring=HYSTERESIS, slip=(1e-4, 0.05))
    with pytest.raises(InputError, match=r"link_joint_2: bristles of 0.05 never slip"):
        Problem(replace_drives(robot, [drive], None, "toy"), prepare(log, 6.0))


def test_keys_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="slip needs spring"):
        DriveSpec(joint="joint_1", link=("position",), slip=(1e-4,))
    with pytest.raises(ValueError, match="slip takes lengths that rise"):
        DriveSpec(joint="joint_1", link=("position",), spring=HYSTERESIS, slip=(3e-4, 1e-4))
    with pytest.raises(ValueError, match="needs the torque alone"):
        DriveSpec(joint="joint_1", link=("torque",), spring=("stiffness", "hysteresis"))
    with pytest.raises(ValueError, match="spring needs the encoder of the link"):
        DriveSpec(joint="joint_1", link=("torque",), spring=HYSTERESIS)


@pytest.mark.long
@pytest.mark.parametrize("spring", [HYSTERESIS, ("cubic", "hysteresis")])
def test_intervals_cover_in_a_few_runs(spring):
    """The reduced form of benchmarks/elastic.py; hits of one run go together, hence the bounds."""
    assert 0.88 < share_inside(elastic_arm((1, 2), spring=spring), Kc=4e7) <= 1.0


@pytest.mark.long
def test_logs_with_and_without_the_encoder_go_together():
    robot = elastic_arm((1, 2), ("position", "torque"), HYSTERESIS)
    log, theta = twin(build_idim(robot))
    bare = replace(twin(build_idim(robot), 1)[0], wrenches={})
    fit = di.identify(Problem(robot, [prepare(log, 6.0), prepare(bare, 6.0)]), "wls", doctor=False)
    off = (fit.estimate.beta - fit.base.matrix @ theta) / fit.estimate.covariance.std
    assert np.max(np.abs(off)) < 4.5
    assert all(own.hysteresis for own in fit.springs)


STUDY = """
[robot]
file = "arm.urdf"
[[robot.drive]]
joint = "shoulder"
link = ["position"]
spring = ["hysteresis"]
slip = [5e-5, 2e-4]
[[log]]
files = "bent.csv"
[prepare]
bandwidth = 6.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study, its log, and its result."""
    path = tmp_path_factory.mktemp("hysteresis")
    drive = DriveSpec(joint="shoulder", link=("position",), spring=HYSTERESIS, slip=SLIPS)
    write_study(path, STUDY, drive, "link_shoulder")
    assert run(["identify", str(path / "study.toml"), "-o", str(path / "out")]) == 0
    return path


def test_a_result_comes_back_with_its_hysteresis(folder):
    result = folder / "out" / "result.json"
    fit = di.read_result(result)
    (own,) = json.loads(result.read_text())["springs"]
    assert own["hysteresis"]
    assert own["width"] == fit.springs[0].width
    assert fit.robot.gauges[0].slips == SLIPS
    values = fit.drive_parameters(0)
    assert abs(values["Kha"] - VALUES["Kha"]) < 0.05
    assert abs(values["Khb"] - VALUES["Khb"]) < 0.05
    assert "hysteresis" in (folder / "out" / "report.html").read_text()
    table = fit.summary().partition("\nspring ")[2].partition("\n\n")[0]
    assert "hysteresis" in table.splitlines()[0]
    explained = " ".join(table.split())
    for words in ("K: stiffness [Nm/rad]; 1/K: compliance", "width of the loop [urad]"):
        assert words in explained


@pytest.mark.parametrize(
    "words",
    [
        ["validate", "{result}", "{log}"],
        ["doctor", "{study}"],
        ["sample", "{result}", "-n", "4", "-o", "{out}"],
        ["diff", "{result}", "{result}"],
        ["report", "{result}", "-o", "{out}.html"],
    ],
    ids=lambda words: words[0],
)
def test_commands_take_results_with_hysteresis(folder, words):
    places = {"study": folder / "study.toml", "out": folder / words[0], "log": folder / "bent.csv"}
    places["result"] = folder / "out" / "result.json"
    assert run([word.format(**places) for word in words]) == 0


def test_exports_say_what_they_leave(folder):
    fit = di.read_result(folder / "out" / "result.json")
    _, notes = fit.model_mjcf()
    assert "not in the MJCF, which has no place for it: Kha1, Khb1" in notes
    content, notes = fit.render_file("c")
    assert b"elastic_inverse_dynamics" in content
    assert "not in the C code, whose springs have no memory: Kha1, Khb1" in notes
    _, notes = fit.render_file("urdf")
    assert any(note.startswith("stiff in the") for note in notes)
