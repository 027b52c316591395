"""Logs without torque: drives and loop fitted to encoders, the links as their file has them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import lxml.html
import numpy as np
import pytest
from commands import ask, tell
from differences import assert_slope
from robots import urdf
from tables import write_joints, write_table
from thin import long

import dynident as di
from dynident.conic.cones import NonnegativeCone, ZeroCone
from dynident.consistency.constraints import Belief, Bounds, Fixed, Tied
from dynident.control.controller import pd, pid
from dynident.control.reference import Reference
from dynident.core.errors import ComputationError, InputError
from dynident.dynamics.idim import build_idim
from dynident.encoders.drives import DriveFitOptions, keep_bounds
from dynident.estimators.closed_loop import build_auxiliary_model
from dynident.simulation.loop import Loop, LoopColumn
from dynident.simulation.rollout import rollout, sensitive_rollout

RATE = 200.0
KP, KD = (80.0, 60.0, 40.0), (3.0, 2.5, 2.0)
Z1 = Path(__file__).parents[1] / "examples" / "z1"
DRIVES = np.array(
    [[0.15, 2.0, 1.0, 0.3], [0.12, 1.5, 0.8, -0.4], [0.08, 1.0, 0.5, 0.2]]
)  # Ia fv fc off
DELAY, BIAS = 0.0083, np.array([0.0, 0.02, -0.015])

URDF = """<robot name="arm"><link name="base"/>
{}</robot>"""
LINK = """<link name="l{k}"><inertial><origin xyz="{c}"/><mass value="{m}"/>
<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/>
<origin xyz="{at}"/><axis xyz="{axis}"/>
<limit lower="-3" upper="3" effort="90" velocity="9"/></joint>
"""


def arm(tmp_path: Path) -> Path:
    parts = [("base", "0 0 0", "0 1 0"), ("l1", "0.4 0 0", "0 1 0"), ("l2", "0.3 0 0", "1 0 0")]
    text = "".join(
        LINK.format(k=k, c="0.2 0.03 0.02", m=2.0 - 0.4 * k, parent=p, at=at, axis=axis)
        for k, (p, at, axis) in enumerate(parts, start=1)
    )
    path = tmp_path / "arm.urdf"
    path.write_text(URDF.format(text))
    return path


def targets(seconds: float, seed: int = 0) -> np.ndarray:
    """Triangles that become faster, written every fourth sample."""
    t = np.arange(int(seconds * RATE)) / RATE
    phase = np.cumsum(0.4 + 1.1 * t / seconds) / RATE
    wave = 2.0 * np.abs(2.0 * ((phase[:, None] + [0.0, 0.3, 0.6]) % 1.0) - 1.0) - 1.0
    held = wave[(np.arange(len(t)) // 4) * 4]
    return 0.5 * held + np.array([0.2, -0.3, 0.4]) + 0.0 * seed


def twin(
    tmp_path: Path, seconds: float = 8.0, **changes: object
) -> tuple[di.Robot, Loop, np.ndarray]:
    robot = di.load_robot(str(arm(tmp_path)))
    model = di.build_idim(robot)
    q = targets(seconds)
    still = np.zeros_like(q)
    loop = Loop(
        model,
        pd(KP, KD, delay=DELAY),
        Reference(RATE, q, still, still),
        "sdirk2",
        1,
        np.full(3, 0.03),
        q0=q[0] + BIAS + 0.05,
        dq0=np.zeros(3),
        held=True,
        bias=BIAS,
    )
    theta = np.concatenate([robot.nominal.ravel(), DRIVES.ravel()])
    return robot, replace(loop, **changes), theta


def log_of(loop: Loop, theta: np.ndarray, noise: float = 5e-5, seed: int = 0) -> di.Recording:
    motion = rollout(loop, theta)
    q = motion.measured + noise * np.random.default_rng(seed).normal(size=motion.q.shape)
    return di.Recording("twin", RATE, q, np.zeros_like(q), qref=loop.reference.q, torque="none")


def fitted(tmp_path: Path, **options: object) -> tuple[di.Fit, dict[str, tuple[float, float]]]:
    robot, loop, theta = twin(tmp_path)
    problem = di.Problem(robot, di.prepare(log_of(loop, theta), bandwidth=10.0))
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    found = di.identify(problem, "cloe", simulation=simulation, **options)
    own = found.estimate.fitted
    assert own is not None
    return found, {n: (v, s) for n, v, s in zip(own.names, own.values, own.std, strict=True)}


@pytest.mark.parametrize(
    ("integrator", "substeps"),
    [("sdirk2", 3), ("ode4", 1), long("sdirk2", 1), long("ode4", 3)],
)
def test_a_motion_is_differentiated_by_gains_biases_and_delay(tmp_path, integrator, substeps):
    _, loop, theta = twin(tmp_path, 2.0, integrator=integrator, substeps=substeps)
    own = [LoopColumn("gain", 1), LoopColumn("bias", 1), LoopColumn("bias", 2), LoopColumn("delay")]
    own += [LoopColumn("speed", 1), LoopColumn("place", 2)]
    by = np.concatenate([part.by_q for part in sensitive_rollout(loop, theta, (), ("q",), own)])

    def moved(kind: str, joint: int, step: float) -> np.ndarray:
        control = loop.controller
        if kind == "delay":
            other = replace(loop, controller=replace(control, delay=control.delay + step))
        elif kind == "gain":
            gain = control.gain + step * (np.arange(3) == joint)
            other = replace(loop, controller=replace(control, gain=gain))
        elif kind == "speed":
            other = replace(loop, dq0=step * (np.arange(3) == joint))
        elif kind == "place":
            other = replace(loop, q0=loop.q0 + step * (np.arange(3) == joint))
        else:
            other = replace(loop, bias=BIAS + step * (np.arange(3) == joint))
        return rollout(other, theta).q

    for k, each in enumerate(own):
        assert_slope(partial(moved, each.kind, each.joint), by[:, :, k], 3e-6)


def test_a_delay_of_whole_samples_is_that_of_the_targets(tmp_path):
    _, loop, theta = twin(tmp_path, 2.0)
    late = replace(loop, controller=pd(KP, KD, delay=2.0 / RATE))
    shifted = np.vstack([loop.reference.q[:1], loop.reference.q[:1], loop.reference.q[:-2]])
    still = np.zeros_like(shifted)
    other = replace(loop, controller=pd(KP, KD), reference=Reference(RATE, shifted, still, still))
    np.testing.assert_allclose(rollout(late, theta).q, rollout(other, theta).q, atol=1e-12)


def test_rows_before_the_start_are_targets_that_are_still_to_come(tmp_path):
    _, loop, theta = twin(tmp_path, 2.0)
    whole = rollout(loop, theta)
    a = 120
    still = np.zeros_like(loop.reference.q[a - 5 :])
    rest = replace(
        loop,
        reference=Reference(RATE, loop.reference.q[a - 5 :], still, still),
        lead=5,
        q0=whole.measured[a],
        dq0=whole.dq[a],
    )
    np.testing.assert_allclose(rollout(rest, theta).q, whole.q[a:], atol=1e-9)


def test_the_implicit_law_agrees_with_small_explicit_steps(tmp_path):
    _, loop, theta = twin(tmp_path, 2.0)
    fine = rollout(replace(loop, integrator="ode4", substeps=20), theta)
    near = rollout(replace(loop, substeps=20), theta)
    np.testing.assert_allclose(near.q, fine.q, atol=2e-5)


@pytest.mark.long
def test_the_twins_drives_delay_and_biases_are_found(tmp_path):
    _, values = fitted(tmp_path, loop="delay,bias", constraints=(Fixed("bias1", 0.0),))
    for j in range(3):
        for k, symbol in enumerate(("Ia", "fv")):
            value, std = values[f"{symbol}{j + 1}"]
            assert abs(value - DRIVES[j, k]) < 3.0 * std + 1e-3 * DRIVES[j, k]
    assert abs(values["delay"][0] - DELAY) < 0.05 / RATE
    for j in (1, 2):
        value, std = values[f"bias{j + 1}"]
        assert abs(value - BIAS[j]) < max(2e-4, 3.0 * std)


@pytest.mark.long
def test_a_twin_of_the_measured_arm_gives_its_drives_back():
    """Seven joints of `examples/z1` along the measured targets, drives and delay as told."""
    robot = di.load_robot(str(Z1 / "z1.urdf"))
    log = di.read_log(Z1 / "z1.csv", robot, torque=False).rows(0, 1000)
    samples = di.prepare(log, bandwidth=10.0)
    n, rng = robot.n, np.random.default_rng(0)
    drives = np.column_stack([
        rng.uniform(0.1, 0.3, n), rng.uniform(3.0, 7.0, n), rng.uniform(1.5, 4.0, n),
        rng.uniform(-1.0, 1.0, n),
    ])  # fmt: skip
    theta = np.concatenate([robot.nominal.ravel(), drives.ravel()])
    simulation = di.Simulation(pd([80.0, 120.0, 120.0, *[80.0] * 4], 2.5), width=0.05)
    tuned = simulation.of_encoders().with_values({"delay": DELAY})
    loop = build_auxiliary_model(di.Problem(robot, samples), tuned).loops[0][0][2]
    motion = rollout(loop, theta)
    q = motion.measured + 2e-5 * rng.normal(size=motion.q.shape)
    other = di.Recording("twin", RATE, q, np.zeros_like(q), qref=log.qref, torque="none")
    problem = di.Problem(robot, di.prepare(other, bandwidth=10.0))
    told: list[tuple[str, float]] = []
    found = di.identify(
        problem,
        "cloe",
        simulation=simulation,
        progress=lambda stage, share: told.append((stage, share)),
    ).estimate.fitted
    assert found is not None
    shares = [share for stage, share in told if stage == "estimate"]
    assert len(shares) > 4
    assert shares == sorted(shares)
    assert shares[-1] < 1.0
    values = dict(zip(found.names, zip(found.values, found.std, strict=True), strict=True))
    assert abs(values["delay"][0] - DELAY) < 0.05 / RATE
    for j in range(n):
        for k, symbol in enumerate(("Ia", "fv")):
            value, std = values[f"{symbol}{j + 1}"]
            assert abs(value - drives[j, k]) < 3.0 * std + 1e-3 * drives[j, k]


@pytest.mark.long
def test_a_twin_of_a_quadruped_gives_its_drives_delay_and_zeros_back():
    """Twelve joints of a Go2 that hangs: 49 parameters, encoders with biases."""
    robot = di.load_robot(str(urdf("go2")))
    n, rng = robot.n, np.random.default_rng(3)
    assert n == 12
    kp, kd = 20.0, 1.5
    t = np.arange(int(5.0 * RATE)) / RATE
    phase = 2.0 * np.pi * np.outer(np.cumsum(0.4 + 0.25 * t) / RATE, np.ones(n))
    wave = 0.3 * np.sin(phase + rng.uniform(0.0, 2.0 * np.pi, n))
    q = np.tile([0.0, 0.8, -1.5], 4) + wave[(np.arange(len(t)) // 4) * 4]
    still = np.zeros_like(q)
    bias = rng.uniform(-0.02, 0.02, n)
    drives = np.column_stack([rng.uniform(0.02, 0.05, n), rng.uniform(0.2, 0.8, n),
                              rng.uniform(0.1, 0.4, n), np.zeros(n)])  # fmt: skip
    theta = np.concatenate([robot.nominal.ravel(), drives.ravel()])
    loop = Loop(
        di.build_idim(robot), pd([kp] * n, kd, delay=DELAY), Reference(RATE, q, still, still),
        "sdirk2", 1, np.full(n, 0.05), q0=q[0] + bias, dq0=np.zeros(n), held=True, bias=bias,
    )  # fmt: skip
    problem = di.Problem(robot, di.prepare(log_of(loop, theta, noise=2e-5), bandwidth=10.0))
    simulation = di.Simulation(pd([kp] * n, kd), width=0.05)
    known = (Fixed("off", 0.0),)
    found = di.identify(
        problem, "cloe", simulation=simulation, loop="delay,bias", constraints=known
    ).estimate.fitted
    assert found is not None
    values = dict(zip(found.names, zip(found.values, found.std, strict=True), strict=True))
    assert abs(values["delay"][0] - DELAY) < 0.05 / RATE
    for j in range(n):
        value, std = values[f"bias{j + 1}"]
        assert abs(value - bias[j]) < max(2e-4, 4.0 * std)
        for k, symbol in enumerate(("Ia", "fv")):
            value, std = values[f"{symbol}{j + 1}"]
            assert abs(value - drives[j, k]) < 4.0 * std


@pytest.mark.long
def test_intervals_of_encoder_fits_hold_the_truth(tmp_path):
    """The first reading errs as all others do, and the fit begins there."""
    robot, loop, theta = twin(tmp_path, 3.0, bias=None)
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    inside = []
    for seed in range(8):
        log = log_of(loop, theta, noise=2e-4, seed=seed)
        found = di.identify(
            di.Problem(robot, di.prepare(log, bandwidth=10.0)), "cloe", simulation=simulation
        ).estimate.fitted
        assert found is not None
        true = np.append(DRIVES.ravel(), DELAY)
        inside.append(np.abs(found.values - true) < 1.96 * found.std)
    assert 0.9 < np.mean(inside) < 0.99
    assert np.mean(inside, axis=0).min() > 0.6


@pytest.mark.long
def test_held_out_errors_of_free_simulation_come_first(tmp_path):
    robot, loop, theta = twin(tmp_path, 9.0)
    recording = log_of(loop, theta)
    first, last = (
        di.prepare(recording.rows(*part), bandwidth=10.0) for part in ((0, 1200), (1200, 1800))
    )
    problem = di.Problem(robot, first)
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    found = di.identify(problem, "cloe", simulation=simulation, validation=[last])
    (figures,) = found.validation
    assert [each.horizon for each in figures.free] == [0.1, 1.0, None]
    assert figures.free[-1].overall_milli < 2.0
    said = found.summary(full=True)
    parts = [part.split("  ")[0].strip() for part in said.split("\n\n")]
    assert parts[-4:] == ["fitted", "free sim. mrad", "consistent", "verdict"]
    assert said.index("of        held-out") < said.index("of        ", said.index("held-out"))
    assert first.torque == "none"


@pytest.mark.long
def test_friction_that_changes_along_a_turn_is_noticed(tmp_path):
    robot, loop, _ = twin(tmp_path, 4.0)
    drives = np.hstack([DRIVES, np.zeros((3, 2))])
    drives[1, 4:] = [0.6, 0.2]
    theta = np.concatenate([robot.nominal.ravel(), drives.ravel()])
    uneven = replace(loop, idim=di.build_idim(robot, "uneven"), bias=None)
    log = di.prepare(log_of(uneven, theta), bandwidth=10.0)
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    plain = di.identify(di.Problem(robot, log), "cloe", simulation=simulation)
    (words,) = (note for note in plain.warnings if "uneven" in note)
    assert "j2 are those of friction that changes along a turn: try friction = 'uneven'" in words
    right = di.identify(di.Problem(robot, log, friction="uneven"), "cloe", simulation=simulation)
    assert not any("uneven" in note for note in right.warnings)
    found = right.estimate.fitted
    assert found is not None
    assert found.values[found.names.index("fcs2")] == pytest.approx(0.6, abs=0.1)


@pytest.mark.long
def test_a_study_that_says_nothing_of_friction_gets_it_along_a_turn(tmp_path, capsys):
    robot, loop, _ = twin(tmp_path, 4.0)
    drives = np.hstack([DRIVES, np.zeros((3, 2))])
    drives[1, 4:] = [0.6, 0.2]
    theta = np.concatenate([robot.nominal.ravel(), drives.ravel()])
    log = log_of(replace(loop, idim=di.build_idim(robot, "uneven"), bias=None), theta)
    write_joints(tmp_path / "log.csv", robot.joint_names, RATE, q=log.q, qref=log.qref)
    study = tmp_path / "study.toml"
    text = f"""
[robot]
file = "arm.urdf"
[[log]]
files = "log.csv"
[controller]
kind = "pd"
kp = {list(KP)}
kd = {list(KD)}
[simulation]
width = 0.03
[identify]
method = "cloe"
"""
    study.write_text(text)
    found = ask(capsys, ["identify", str(study)])
    assert "j2 is 'uneven'" in found["warnings"][0]
    assert "fcs" in found["joints"][1]["friction"]
    assert "fcs" not in found["joints"][2]["friction"]
    study.write_text(text.replace('"arm.urdf"', '"arm.urdf"\nfriction = "coulomb-viscous"'))
    plain = ask(capsys, ["identify", str(study)])
    assert any("try friction = 'uneven'" in words for words in plain["warnings"])
    assert plain["free_simulation"] != found["free_simulation"]


@pytest.mark.long
def test_known_values_ties_and_beliefs_hold(tmp_path):
    constraints = (
        Tied("fv"),
        Fixed("off1", 0.3),
        Bounds("fc", 0.6, 0.9),
        Belief("Ia2", 0.05, 1e-4),
    )
    found, values = fitted(tmp_path, constraints=constraints)
    assert values["fv1"][0] == pytest.approx(values["fv3"][0], rel=1e-6)
    assert values["off1"] == pytest.approx((0.3, 0.0), abs=1e-6)
    assert all(0.6 - 1e-6 <= values[f"fc{k}"][0] <= 0.9 + 1e-6 for k in (1, 2, 3))
    assert values["Ia2"][0] == pytest.approx(0.05, abs=2e-2)
    assert any("fc" in name for name in found.estimate.active)
    assert found.estimate.prior == "Ia2 = 0.05 +- 0.0001"


@pytest.mark.parametrize(
    ("fitting", "words"),
    [
        ({"loop": "delay,slack"}, "'slack' is not known"),
        ({"constraints": (Bounds("fw1", 0.0),)}, "'fw1' is not fitted"),
        ({"constraints": (Bounds("bias1", 0.0),)}, "'bias1' is not fitted"),
    ],
)
def test_what_is_not_fitted_is_refused(tmp_path, fitting, words):
    with pytest.raises(InputError, match=words):
        fitted(tmp_path, **fitting)


def test_methods_that_fit_torque_refuse_logs_without(tmp_path):
    robot, loop, theta = twin(tmp_path, 4.0)
    problem = di.Problem(robot, di.prepare(log_of(loop, theta), bandwidth=10.0))
    with pytest.raises(
        InputError, match=r"has no torque, which method wls fits; under a \[controller\] cloe"
    ):
        di.identify(problem, "wls")
    with pytest.raises(InputError, match="the law of p, pd, p-p and servo"):
        di.identify(problem, "cloe", simulation=di.Simulation(pid(9.0, 1.0, 1.0, n=3)))


@pytest.mark.long
def test_clie_fits_the_torque_of_the_law_where_none_is_measured(tmp_path):
    """Of targets that come late by no whole number of samples; base parameters, links free."""
    robot, loop, theta = twin(tmp_path, 5.0, bias=None)
    problem = di.Problem(robot, di.prepare(log_of(loop, theta), bandwidth=10.0))
    simulation = di.Simulation(pd(KP, KD, delay=DELAY), width=0.03)
    found = di.identify(problem, "clie", simulation=simulation)
    true, std = problem.base.matrix @ theta, np.sqrt(np.diag(found.estimate.covariance.matrix))
    assert np.all(np.abs(found.estimate.beta - true) < 4.0 * std)
    assert np.median(std / np.abs(true)) < 0.02
    assert "torque of the law" in found.summary()
    assert found.settings["logs"][0]["torque"] == "law"
    early = di.identify(problem, "clie", simulation=di.Simulation(pd(KP, KD), width=0.03))
    assert not np.all(np.abs(early.estimate.beta - true) < 4.0 * std)


def test_targets_that_never_move_and_chatter_are_refused(tmp_path):
    robot, loop, theta = twin(tmp_path, 4.0)
    problem = di.Problem(robot, di.prepare(log_of(loop, theta), bandwidth=10.0))
    chatters = di.Simulation(pd(KP, KD), width=1e-4, integrator="ode3")
    with pytest.raises(ComputationError, match="chatters"):
        di.identify(problem, "cloe", simulation=chatters)
    still = np.tile(loop.reference.q[:1], (len(loop.reference.q), 1))
    log = replace(log_of(loop, theta), qref=still)
    with pytest.raises(InputError, match="targets never move"):
        di.identify(
            di.Problem(robot, di.prepare(log, bandwidth=10.0)),
            "cloe",
            simulation=di.Simulation(pd(KP, KD)),
        )


def test_gains_of_zero_and_delays_beyond_the_log_are_refused(tmp_path):
    robot, loop, theta = twin(tmp_path, 4.0)
    problem = di.Problem(robot, di.prepare(log_of(loop, theta), bandwidth=10.0))
    with pytest.raises(InputError, match="the gain on the target of j2 is zero: give kp"):
        di.identify(problem, "cloe", simulation=di.Simulation(pd((80.0, 0.0, 40.0), KD)))
    late = di.Simulation(pd(KP, KD, delay=5.0))
    with pytest.raises(InputError, match="a delay of 5 s is longer than the log of 4 s"):
        di.identify(problem, "cloe", simulation=late)


def test_chatter_is_no_estimate_of_base_parameters_either(tmp_path):
    robot, loop, theta = twin(tmp_path, 4.0)
    motion = rollout(loop, theta)
    still = np.zeros_like(motion.q)
    reference = Reference(RATE, motion.q, motion.dq, still)
    driven = rollout(replace(loop, reference=reference, held=False, bias=None,
                             controller=pd(KP, KD)), theta)  # fmt: skip
    log = di.Recording("driven", RATE, driven.q, driven.tau, qref=motion.q, dqref=motion.dq)
    problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
    simulation = di.Simulation(pd(KP, KD), width=1e-4)
    with pytest.raises(ComputationError, match="chatters"):
        di.identify(problem, "cloe", simulation=simulation)


def test_from_the_command_line_alone(tmp_path, capsys):
    _, loop, theta = twin(tmp_path, 6.0)
    motion = rollout(loop, theta)
    names = ["time", *(f"{s}_j{k}" for s in ("q", "qref") for k in (1, 2, 3))]
    table = np.column_stack([np.arange(len(motion.q)) / RATE, motion.measured, loop.reference.q])
    for name, rows in (("fit", slice(0, 800)), ("test", slice(800, 1200))):
        write_table(tmp_path / f"{name}.csv", names, table[rows])
    study = tmp_path / "study.toml"
    study.write_text(
        '[robot]\nfile = "arm.urdf"\n[[log]]\nfiles = "fit.csv"\n'
        f'[controller]\nkind = "pd"\nkp = {list(KP)}\nkd = {list(KD)}\n'
        '[identify]\nmethod = "cloe"\n[simulation]\nwidth = 0.03\n'
    )
    said = tell(capsys, ["identify", str(study), "--full", "-o", str(tmp_path / "out")]).out
    assert said.index("\nlink ") < said.index("\nfree sim. mrad") < said.index("\nconsistent ")
    assert "torque error" not in said
    assert "position error" in said
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {row["name"] for row in result["fitted"]} >= {"Ia1", "fc3", "delay"}
    assert result["free_simulation"][0]["horizon_s"] == 0.1
    assert result["fit"]["torque"] == result["simulation"][0]["torque"] == "law"
    assert (tmp_path / "out" / "model.urdf").is_file()
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index("<h2>Free simulation</h2>") < page.index("<h2>Facts</h2>")
    root = lxml.html.document_fromstring(page)
    assert root.xpath("//nav/a/@href")[:2] == ["#answer", "#free"]
    titles = root.xpath("//ul[@class='verdict']//strong/text()")
    assert [t for t in titles if re.fullmatch(r"Free simulation [\d.]+ mrad", t)]
    assert root.xpath("(//figure)[1]/@aria-label")[0].startswith(
        "Position of every joint: measured"
    )
    text = root.text_content()
    assert not re.search("[Tt]orque errors?|as measured", text)
    assert "held as the robot file has them" in text
    assert "nearest to the prior" not in text
    sigmas = [float(s.split()[0]) for s in root.xpath("//section[@id='residuals']//td[2]/text()")]
    assert max(sigmas) < 2e-3  # rad
    stored = str(tmp_path / "out" / "result.json")
    (log,) = ask(capsys, ["validate", stored, str(tmp_path / "test.csv")])["validation"]
    assert log["torque"] == "law"
    assert "torque error" not in tell(capsys, ["validate", stored, str(tmp_path / "test.csv")]).out
    assert log["free_simulation"][-1]["overall_rms_mrad"] < 2.0
    text = study.read_text()
    study.write_text(text.replace('"cloe"', '"clie"'))
    said = tell(capsys, ["identify", str(study), "-o", str(tmp_path / "law")]).out
    page = (tmp_path / "law" / "report.html").read_text()
    assert "error of the law's torque" in " ".join(said.split())
    assert "torque error %" not in said
    assert "Law’s torque errors" in page
    assert "none was measured" in page
    assert ">measured</text>" not in page
    stored = str(tmp_path / "law" / "result.json")
    said = tell(capsys, ["validate", stored, str(tmp_path / "test.csv")]).out
    assert "law's torque %" in said
    assert "torque error" not in said
    study.write_text(text.replace('"cloe"', '"wls"'))
    words = tell(capsys, ["identify", str(study)], code=2).err
    assert "no column 'tau_j1'" in words
    assert "without torques cloe fits positions" in words


def test_options_are_said_once():
    assert DriveFitOptions(loop=["delay", "bias"]).loop == "delay,bias"  # type: ignore[arg-type]


@pytest.mark.long
def test_friction_under_load_is_fitted_to_positions(tmp_path):
    robot, loop, _ = twin(tmp_path)
    idim = build_idim(robot, "load")
    theta = idim.nominal
    true = {"Ia": 0.02, "fv": 0.4, "fc": 0.3, "fl": 0.25}
    for k, name in enumerate(idim.names):
        symbol = name.rstrip("0123456789")
        theta[k] = true.get(symbol, theta[k]) if k >= idim.inertial else theta[k]
    loop = replace(loop, idim=idim)
    problem = di.Problem(robot, di.prepare(log_of(loop, theta), bandwidth=10.0), "load")
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    fit = di.identify(problem, "cloe", simulation=simulation, doctor=False)
    own = fit.estimate.fitted
    assert own is not None
    for name, value, std in zip(own.names, own.values, own.std, strict=True):
        if name in ("fl2", "fl3"):
            assert std < 0.05
            assert abs(value - 0.25) < 4.0 * std + 0.01
    tau = fit.inverse_dynamics(loop.reference.q[:5], loop.reference.dq[:5], loop.reference.ddq[:5])
    assert np.all(np.isfinite(tau))


@pytest.mark.long
@pytest.mark.measured
def test_hobby_servos_are_fitted_and_hold_still(measured, tmp_path):
    folder = measured("so101")
    logs = "".join(
        f'[[log]]\nfiles = "{folder / name}.csv"\n{use}'
        for name, use in (
            ("step_response", ""),
            ("triangle_wave", ""),
            ("sinusoidal_sweep", 'use = "validate"\n'),
            ("actuator_bandwidth", 'use = "validate"\n'),
            ("single_joint_elbow", 'use = "validate"\n'),
        )
    )
    path = tmp_path / "study.toml"
    path.write_text(
        f'[robot]\nfile = "{folder / "so101_new_calib.urdf"}"\nlocked = {{ gripper = 0.5 }}\n'
        f'{logs}[controller]\nkind = "p"\nkp = 17.8\n'
        '[identify]\nmethod = "cloe"\nloop = ["delay", "gain"]\ndecide = "nothing"\n'
    )
    fit = di.run_study(di.read_study(path))
    assert any("currents without a sign are taken as sizes" in warning for warning in fit.warnings)
    assert fit.findings == ()  # joints that friction holds are neither stuck nor pushed
    assert fit.verdict.state == "doubtful"
    # half of what MuJoCo with the published servo leaves (docs/figures/servo.md)
    sweep, bandwidth, elbow = fit.validation
    for held, most in ((sweep, 14.2), (bandwidth, 12.0)):
        assert held.hindered == ()
        assert held.free[-1].overall_milli < most
    # the gripper meets the table
    free, whole = elbow.free[-2:]
    for at in (25.0, 34.0):
        assert any(each.start <= at * each.rate <= each.stop for each in free.without)
    assert free.overall_milli < 0.8 * whole.overall_milli


def test_what_a_row_bounds_by_itself_stays_within_that_bound():
    """A solver ends at a bound up to rounding: a delay of -1e-23 s is none."""
    G = np.array([[2.0, 0.0, 0.0], [0.0, -1.0, 0.0], [1.0, 0.0, 1.0]])
    fact = ZeroCone(("fact",), np.array([[0.0, 0.0, 1.0]]), np.array([7.0]))  # is not a bound
    cones = (NonnegativeCone(("low", "high", "sum"), G, np.array([0.0, -3.0, 5.0])), fact)
    for x in ([-1.8e-23, 3.0 + 1e-9, 4.0], [1.7e-21, 3.0 - 1e-13, 4.0]):
        np.testing.assert_array_equal(keep_bounds(np.array(x), cones), [0.0, 3.0, 4.0])
    inside = np.array([1e-6, 2.9, 4.0])
    np.testing.assert_array_equal(keep_bounds(inside, cones), inside)
