"""Robots on stands that give way: springs and dampers under the base, fitted to encoders alone."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from commands import ask
from differences import assert_slope
from tables import write_joints
from test_encoder import BIAS, DELAY, DRIVES, KD, KP, RATE, log_of, targets, twin

import dynident as di
from dynident.cli import run
from dynident.control.controller import pd
from dynident.control.reference import Reference
from dynident.core.errors import InputError
from dynident.encoders.drives import DriveFitOptions
from dynident.simulation.loop import Loop, LoopColumn
from dynident.simulation.mount import Mount, mount_model
from dynident.simulation.rollout import rollout, sensitive_rollout

STAND = Mount(("roll", "pitch"), np.array([[0.8, 4.0, 2500.0], [1.2, 6.0, 3000.0]]))
REST, BEFORE = 360, 300
"""Samples before the targets move, and those of them that are not in the log."""


def rested(loop: Loop) -> Loop:
    """Targets that rest at first, until the arm hangs still on its stand."""
    q = loop.reference.q
    q = np.vstack([np.tile(q[:1], (REST, 1)), q])
    still = np.zeros_like(q)
    return replace(loop, reference=Reference(RATE, q, still, still), q0=q[0])


def log(loop: Loop, theta: np.ndarray) -> di.Recording:
    found = log_of(loop, theta)
    return found.rows(BEFORE, len(found.q))


@pytest.mark.long
def test_a_motion_is_differentiated_by_the_mount_beside_all_else(tmp_path):
    _, loop, theta = twin(tmp_path, 1.5)
    mount = Mount(("x", "pitch"), np.array([[8.0, 20.0, 1e4], [0.5, 3.0, 2e3]]))
    loop = replace(loop, mount=mount)
    kinds = ("gain", "ks_pitch", "bias", "fv_pitch", "Ia_x", "ks_x", "delay")
    own = [LoopColumn(kind, int(kind in ("gain", "bias"))) for kind in kinds]
    columns = [30, 35]
    parts = sensitive_rollout(loop, theta, columns, ("q",), own)
    by = np.concatenate([part.by_q for part in parts])

    def moved(k: int, step: float) -> np.ndarray:
        if k < len(columns):
            return rollout(loop, theta + step * (np.arange(len(theta)) == columns[k])).q
        kind, second = kinds[k - len(columns)], np.arange(3) == 1
        control = loop.controller
        if kind == "delay":
            other = replace(loop, controller=replace(control, delay=control.delay + step))
        elif kind == "gain":
            other = replace(loop, controller=replace(control, gain=control.gain + step * second))
        elif kind == "bias":
            other = replace(loop, bias=BIAS + step * second)
        else:
            symbol, axis = kind.split("_")
            values = mount.values.copy()
            values[mount.axes.index(axis), ("Ia", "fv", "ks").index(symbol)] += step
            other = replace(loop, mount=Mount(mount.axes, values))
        return rollout(other, theta).q

    steps = [1e-6, 1e-6, 1e-6, 0.2, 1e-6, 1e-4, 1e-4, 0.2, 1e-6]
    for k, step in enumerate(steps):
        assert_slope(partial(moved, k), by[:, :, k], step)


def test_a_mount_is_a_spring_that_bears_the_weight_where_targets_begin(tmp_path):
    """Against the law itself: joints whose targets are zero, with gains in the springs' place."""
    _, loop, theta = twin(tmp_path, 1.5, bias=None)
    m = len(STAND.axes)
    model = mount_model(loop.idim, STAND.axes)
    q = np.hstack([np.zeros((len(loop.reference.q), m)), loop.reference.q])
    every = model.theta(STAND, theta, loop.reference.q[0])
    still = np.zeros((1, q.shape[1]))
    np.testing.assert_allclose(model.idim.torque(every, q[:1], still, still)[0, :m], 0.0, atol=1e-9)
    for axis in STAND.axes:
        every[[model.place(f"{symbol}_{axis}") for symbol in ("fv", "ks")]] = 0.0
    springs = replace(
        loop,
        idim=model.idim,
        controller=pd([*STAND.values[:, 2], *KP], [*STAND.values[:, 1], *KD], delay=DELAY),
        reference=Reference(RATE, q, np.zeros_like(q), np.zeros_like(q)),
        width=np.full(q.shape[1], 0.03),
        q0=np.concatenate([np.zeros(m), loop.q0]),
        dq0=np.zeros(q.shape[1]),
    )
    motion = rollout(replace(loop, mount=STAND), theta)
    law = rollout(springs, every)
    np.testing.assert_allclose(motion.q, law.q[:, m:], atol=1e-9)
    np.testing.assert_allclose(motion.mount[:, 0], law.q[:, :m], atol=1e-9)
    stiff = Mount(STAND.axes, STAND.values * [1.0, 1e4, 1e8])
    np.testing.assert_allclose(
        rollout(replace(loop, mount=stiff), theta).q, rollout(loop, theta).q, atol=1e-6
    )


@pytest.mark.long
def test_stiffness_and_damping_of_a_stand_are_found_and_errors_fall_to_the_noise(tmp_path, capsys):
    _, loop, theta = twin(tmp_path, 3.0, bias=None)
    stand = Mount(("pitch",), STAND.values[1:])
    first = log(replace(rested(loop), mount=stand), theta)
    q = 0.8 * targets(1.5)[:, [1, 2, 0]] + 0.1
    other = replace(loop, reference=Reference(RATE, q, np.zeros_like(q), np.zeros_like(q)))
    last = log(replace(rested(other), mount=stand), theta)
    for name, each in (("first", first), ("last", last)):
        write_joints(tmp_path / f"{name}.csv", ("j1", "j2", "j3"), RATE, q=each.q, qref=each.qref)
    study = tmp_path / "study.toml"
    study.write_text(
        '[robot]\nfile = "arm.urdf"\nfriction = "coulomb-viscous"\n[[log]]\nfiles = "first.csv"\n'
        f'[controller]\nkind = "pd"\nkp = {list(KP)}\nkd = {list(KD)}\n'
        '[identify]\nmethod = "cloe"\nmount = "pitch"\n[simulation]\nwidth = 0.03\n'
    )
    assert run(["identify", str(study), "-o", str(tmp_path / "out"), "--no-report"]) == 0
    capsys.readouterr()
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    found = {row["name"]: (row["value"], row["std"]) for row in result["fitted"]}
    for name, true in stand.named.items():
        value, std = found[name]
        assert abs(value - true) < 3.0 * std
        assert std < 0.3 * true
    for j in range(3):
        for k, symbol in enumerate(("Ia", "fv")):
            value, std = found[f"{symbol}{j + 1}"]
            assert abs(value - DRIVES[j, k]) < 3.0 * std + 1e-3 * DRIVES[j, k]
    assert not any("compliance" in words for words in result["verdict"]["reasons"])
    stored = str(tmp_path / "out" / "result.json")
    (figures,) = ask(capsys, ["validate", stored, str(tmp_path / "last.csv")])["validation"]
    short, _, whole = (each["overall_rms_mrad"] for each in figures["free_simulation"])
    assert whole < 0.1  # the encoders' noise is 0.05
    assert short < 0.5
    # the true drives on a base that stands still
    rigid = rollout(rested(other), theta).measured[BEFORE:]
    assert np.sqrt(np.mean((rigid - last.q) ** 2)) > 1e-3


@pytest.mark.long
def test_a_base_that_does_not_give_way_is_said_to(tmp_path):
    robot, loop, theta = twin(tmp_path, 2.0, bias=None)
    problem = di.Problem(robot, di.prepare(log_of(loop, theta), bandwidth=10.0))
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    found = di.identify(problem, "cloe", simulation=simulation, mount="pitch")
    assert found.verdict.words.startswith("doubtful: ")
    assert "no compliance of the mount is visible" in found.verdict.words


def test_what_is_no_mount_is_refused(tmp_path):
    robot, loop, theta = twin(tmp_path, 2.0)
    with pytest.raises(InputError, match="axis 'pich' is not known; did you mean 'pitch'"):
        DriveFitOptions(mount="roll,pich")
    with pytest.raises(InputError, match="name an axis twice"):
        DriveFitOptions(mount="x,x")
    problem = di.Problem(robot, di.prepare(log_of(loop, theta), bandwidth=10.0))
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    for links in ("prior", "free"):
        with pytest.raises(InputError, match="mount"):
            di.identify(problem, "cloe", simulation=simulation, mount="pitch", links=links)
    with pytest.raises(InputError, match="needs a fixed base, and drives with rotors"):
        mount_model(di.build_idim(robot, "none"), ("x",))
