"""Protocols: their intervals and errors of made logs, what one length leaves open, files."""

from __future__ import annotations

import json
import tomllib
from functools import cache

import numpy as np
import pytest
import toy
from commands import ask, tell
from scipy.stats import chi2
from test_excitation import limited

import dynident as di
from dynident.core.errors import InputError
from dynident.core.inertia import from_com
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.excitation.limits import add_point_mass
from dynident.experiments.protocol import find_arm, prove_limits
from dynident.study.study import read_study

ROBOT = limited(toy.arm(3))
RATE, SIGMA, MASS, LENGTHS = 100.0, 0.5, 1.0, (0.1, 0.4)
OPTIONS = {
    "rate": RATE,
    "sigma": SIGMA,
    "mass": MASS,
    "lengths": LENGTHS,
    "sweeping": 12.0,
    "period": 5.0,
    "periods": 2,
    "acceleration": 20.0,
    "collision": False,
    "floor": False,
    "starts": 1,
    "iterations": 20,
}
REPLICATES = 40


@cache
def plan():
    return di.protocol(ROBOT, **OPTIONS)


def told(name, title, key="std"):
    """A column of what a run is expected to tell."""
    (run,) = (run for run in plan().runs if run.name == name)
    found = next(each for each in run.told if title in each.title)
    return np.array([getattr(each, key) for each in found.entries])


def follow(motion):
    """The samples of a motion at which something moves."""
    design = plan().motions[motion]
    reference = design.trajectory.reference(RATE, design.periods)
    moves = np.any(reference.dq != 0.0, axis=1)
    return reference.q[moves], reference.dq[moves], reference.ddq[moves]


def carrying(length):
    """The robot with the mass."""
    return add_point_mass(ROBOT, MASS, length * find_arm(ROBOT))


def torque(robot, motion, friction="coulomb-viscous", **own):
    """What a robot takes along a motion, as the model of the whole has it."""
    idim = build_idim(robot, friction)
    theta = toy.true_parameters(build_idim(robot), robot.nominal)
    values = dict(zip(build_idim(robot).names, theta, strict=True)) | own
    return idim.torque(np.array([values[name] for name in idim.names]), *motion)


def fit_noise(X, tau, seed=0):
    """Estimates from rows with noise, shape (replicates, unknowns)."""
    noise = np.random.default_rng(seed).normal(size=(tau.size, REPLICATES)) * SIGMA
    flat = X.reshape(-1, X.shape[-1])
    return np.linalg.lstsq(flat, tau.ravel()[:, None] + noise, rcond=None)[0].T


def assert_as_predicted(errors, std):
    """Each unknown's squared errors over the predicted variance are as those of a chi-square."""
    total = np.sum((errors / std) ** 2, axis=0)
    low, high = chi2.ppf([1e-4, 1.0 - 1e-4], len(errors))
    assert np.all(total > low), total
    assert np.all(total < high), total


@pytest.mark.long
def test_errors_of_drives_and_bodies_are_as_predicted():
    base = base_parameters(build_idim(ROBOT))
    truth = base.matrix @ toy.true_parameters(base.idim, ROBOT.nominal)
    motions = follow("sweeps"), follow("series")
    X = [base.idim.regressor(*motion)[:, :, base.kept] for motion in motions]
    tau = [torque(ROBOT, motion) for motion in motions]
    drives = [k for k, name in enumerate(base.names) if name[:2] in ("fv", "fc", "of")]
    errors = fit_noise(X[0], tau[0]) - truth
    assert_as_predicted(errors[:, drives], told("sweeps", "by this run alone"))
    errors = fit_noise(np.concatenate(X), np.concatenate(tau)) - truth
    assert_as_predicted(errors, told("series", "the sweeps"))
    # two fits differ by the noise of both
    twice = [fit_noise(X[1], tau[1], seed) for seed in (1, 2)]
    assert_as_predicted(twice[0] - twice[1], told("gains", "noise alone"))


def test_one_length_leaves_friction_under_load_open_and_two_tell_it():
    motion, share = follow("sweeps"), np.array([0.12, 0.08, 0.15])
    own = dict(zip(("fl1", "fl2", "fl3"), share, strict=True))
    none = dict.fromkeys(own, 0.0)
    robots = [carrying(length) for length in LENGTHS]
    columns = []
    for robot in robots:
        bodies = build_idim(robot, "none", False).torque(robot.nominal.ravel(), *motion)
        columns.append((np.abs(bodies) * np.sign(motion[1]))[:, :, None] * np.eye(3))
    # friction of one robot grows with the load, that of the other varies along the motion as much
    plain = [torque(robot, motion, "load", **none) for robot in robots]
    loaded = [torque(robot, motion, "load", **own) for robot in robots]
    repeating = [tau + columns[0] @ share for tau in plain]
    # the mass at one length cannot tell them apart
    np.testing.assert_allclose(loaded[0], repeating[0], atol=1e-9)
    assert np.all(np.isinf(told("near", "by this one length alone")))
    assert np.all(np.isfinite(told("near", "same everywhere")))
    # between both lengths only the mass, which is known, and friction under it differ
    std = told("far", "by both lengths")
    for logs, truth in ((loaded, share), (repeating, 0.0 * share)):
        apart = (logs[1] - logs[0] - plain[1] + plain[0]) / np.sqrt(2.0)
        errors = fit_noise((columns[1] - columns[0]) / np.sqrt(2.0), apart) - truth
        assert_as_predicted(errors, std)
    assert np.all(std[1:] < 0.2 * share[1:])
    assert np.all(told("far", "without the mass") < std)


def test_errors_of_a_load_and_of_the_gain_are_as_predicted():
    base = base_parameters(build_idim(ROBOT))
    empty = [follow("sweeps"), follow("series")]
    loaded = carrying(LENGTHS[0])
    # poses: gravity, and friction of its own that holds with the sign of the approach
    design = plan().motions["rests"]
    reference = design.trajectory.reference(RATE)
    still = np.all(reference.dq == 0.0, axis=1)
    moved = np.maximum.accumulate(np.where(~still, np.arange(len(still)), 0))
    came = np.sign(reference.dq[moved])
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still, [0]])))
    kept = np.zeros(len(still), dtype=bool)
    for a, b in edges.reshape(-1, 2):
        edge = round(0.1 * (b - a))
        kept[a + edge : b - edge] = moved[a] > 0
    q, zero = reference.q[kept], np.zeros_like(reference.q[kept])
    held = came[kept][:, :, None] * np.eye(3)
    stand = base.idim.regressor(q, zero, zero)
    parts, tau = [], []
    for motion in empty:
        X = base.idim.regressor(*motion)
        parts.append(np.concatenate([X[:, :, base.kept], np.zeros((len(X), 3, 7))], axis=2))
        tau.append(torque(ROBOT, motion))
    moments = stand[:, :, 20:24]
    parts.append(np.concatenate([stand[:, :, base.kept], moments, held], axis=2))
    tau.append(torque(loaded, (q, zero, zero)) + came[kept] * [4.0, 2.5, 1.0])
    errors = fit_noise(np.concatenate(parts), np.concatenate(tau))[:, base.count :][:, :4]
    errors -= from_com(MASS, LENGTHS[0] * find_arm(ROBOT), np.zeros((3, 3)))[:4]
    std = told("rests", "of the load")
    seen = np.isfinite(std)
    assert seen.tolist() == [True, True, False, True]
    assert_as_predicted(errors[:, seen], std[seen])
    # a known mass weighs the drives' gain as well as a known gain weighs the mass
    assert told("rests", "known")[0] == pytest.approx(100.0 * std[0] / MASS)
    assert told("loaded", "known")[0] < told("rests", "known")[0]
    # a body that is known whole is a single column
    body = from_com(MASS, LENGTHS[0] * find_arm(ROBOT), np.zeros((3, 3)))
    held_body = (stand[:, :, 20:30] @ body)[:, :, None]
    parts[:2] = [np.delete(each, range(base.count, base.count + 3), axis=2) for each in parts[:2]]
    parts[2] = np.concatenate([stand[:, :, base.kept], held_body, held], axis=2)
    errors = fit_noise(np.concatenate(parts), np.concatenate(tau))[:, [base.count]] - 1.0
    assert_as_predicted(100.0 * errors, told("rests", "known")[1:])


STILL = {f"{symbol}{k}": 0.0 for symbol in ("Ia", "fv", "fc") for k in (1, 2, 3)}
"""Drives as the robot's file has them, which says nothing of them."""


def follow_quickly(late=0.0, step=1e-4):
    """The quick series later, and its torque with the derivative, of drives without any loss."""
    design = plan().motions["quick"]
    period = design.trajectory.family.period
    times = np.arange(round(design.periods * period * RATE)) / RATE - late
    found = [
        [design.trajectory.at(np.mod(times + d, period), order) for order in range(3)]
        for d in (-step, 0.0, step)
    ]
    before, tau, after = (torque(ROBOT, each, **STILL) for each in found)
    return found[1], tau, (after - before) / (2.0 * step)


def test_errors_of_delays_are_as_predicted():
    base = base_parameters(build_idim(ROBOT))
    late = np.array([1e-3, 3e-3, 2e-3])
    at, _, slope = follow_quickly()
    tau = np.column_stack([follow_quickly(own)[1][:, j] for j, own in enumerate(late)])
    known = base.idim.regressor(*at)[:, :, base.kept]
    X, y = [np.concatenate([known, -slope[:, :, None] * np.eye(3)], axis=2)], [tau]
    for motion in (follow("sweeps"), follow("series")):
        known = base.idim.regressor(*motion)[:, :, base.kept]
        X.append(np.concatenate([known, np.zeros((len(known), 3, 3))], axis=2))
        y.append(torque(ROBOT, motion, **STILL))
    errors = 1e3 * (fit_noise(np.concatenate(X), np.concatenate(y))[:, -3:] - late)
    # a delay is not quite what its derivative makes of it
    assert_as_predicted(errors - errors.mean(axis=0), told("quick", "delay"))
    assert np.all(np.abs(errors.mean(axis=0)) < 0.2)


def test_errors_of_a_controllers_gains_are_as_predicted():
    _, tau, slope = follow_quickly()
    tau = tau - tau.mean(axis=0)  # the steady error has an offset beside it
    kp, damping = np.array([400.0, 300.0, 100.0]), plan().planning.damping
    waves = np.fft.rfft(tau, axis=0)
    omega = 2.0 * np.pi * np.fft.rfftfreq(len(tau), 1.0 / RATE)[:, None]
    error = np.fft.irfft(waves / (1.0 + 1j * omega * damping), len(tau), axis=0) / kp
    speed = (tau / kp - error) / damping
    for j, scale in enumerate(kp):
        X = np.column_stack([error[:, j], speed[:, j], -slope[:, j]])
        found = fit_noise(X, tau[:, j])
        errors = found - [scale, scale * damping, 0.0]
        errors *= [100.0 / scale, 100.0 / (scale * damping), 1e3]
        assert_as_predicted(errors, told("quick", "gains of the controller")[j::3])


def test_every_question_has_its_runs_and_every_run_is_told():
    found = plan()
    assert [run.name for run in found.runs] == [
        "sweeps", "series", "gains", "quick", "near", "far", "rests", "loaded"
    ]  # fmt: skip
    assert found.seconds == pytest.approx(3 * 12.0 + 3 * 10.0 + 2 * 4.0 + 60.0)
    assert all(run.kept for run in found.runs)
    document = json.loads(json.dumps(found.to_dict()))
    text = found.summary()
    for made, said in zip(found.runs, document["runs"], strict=True):
        assert made.step.title in text
        assert said["folder"].endswith(made.name)
        assert all("{" not in words for words in said["then"])
        assert said["untold"]
    assert "left open" in text
    assert "2 min 14 s" in text
    drives = di.protocol(ROBOT, questions=("drives",), **{**OPTIONS, "mass": None})
    assert [run.name for run in drives.runs] == ["sweeps", "series", "gains"]
    assert drives.mass == 0.0


def test_twice_the_noise_is_twice_the_interval_and_four_times_the_rate_half_of_it():
    given = {**OPTIONS, "questions": ("drives",), "iterations": 1}
    (once, *_), (noisy, *_), (quick, *_) = (
        di.protocol(ROBOT, **{**given, **more}).runs
        for more in ({}, {"sigma": 2.0 * SIGMA}, {"rate": 4.0 * RATE})
    )
    stds = [np.array([each.std for each in one.told[0].entries]) for one in (once, noisy, quick)]
    np.testing.assert_allclose(stds[1], 2.0 * stds[0], rtol=1e-6)
    np.testing.assert_allclose(stds[2], 0.5 * stds[0], rtol=1e-6)


def test_a_mass_is_chosen_that_the_drives_bear_or_asked_for():
    given = {**OPTIONS, "questions": ("load-friction",), "mass": None, "iterations": 1}
    found = di.protocol(ROBOT, **given)
    assert 0.0 < found.mass < 60.0 / (9.81 * 0.4)
    with pytest.raises(InputError, match="give the mass that it may hold"):
        di.protocol(limited(toy.arm(3), effort=np.inf), **given)
    with pytest.raises(InputError, match="protocol decides 'load' itself"):
        di.protocol(ROBOT, load=1.0)
    with pytest.raises(InputError, match="questions"):
        di.protocol(ROBOT, questions=("colour",))


def test_what_is_told_of_runs_that_are_not_asked_for_is_said():
    given = {**OPTIONS, "questions": ("delay",), "mass": 1.0, "damping": 0.1, "iterations": 1}
    given.pop("lengths")
    words = "mass has no effect: it applies to the questions payload, load-friction"
    assert [each for each in di.protocol(ROBOT, **given).warnings if "no effect" in each] == [words]


def test_what_the_robot_carries_is_on_a_link_by_name():
    carried = [run.setup for run in plan().runs if run.step.carries is not None]
    assert carried
    assert all(setup.startswith(f"1 kg on {ROBOT.links[-1]}, ") for setup in carried)


def test_a_run_that_breaks_a_limit_without_the_mass_is_said():
    found = plan().motions["series"]
    heavy = from_com(60.0, [0.0, 0.0, 0.3], np.zeros((3, 3)))
    assert prove_limits(found, found.design.task.limits, 0.0 * heavy)
    assert not prove_limits(found, found.design.task.limits, heavy)
    q, dq, ddq = follow("series")
    for length in (None, *LENGTHS):
        robot = ROBOT if length is None else carrying(length)
        bodies = build_idim(robot, "none", False).torque(robot.nominal.ravel(), q, dq, ddq)
        assert np.all(np.abs(bodies) <= 0.8 * 60.0)


def test_the_command_writes_the_page_the_motions_and_a_study_a_run(tmp_path, capsys):
    file, out = tmp_path / "arm.toml", tmp_path / "plan"
    limits = "lower = -2\nupper = 2\nvelocity = 2\neffort = 60\n"
    file.write_text(toy.ARM.replace("[[joint]]\n", f"[[joint]]\n{limits}"), "utf-8")
    excitation = "rate = 100\ncollision = false\nfloor = false\nstarts = 1\niterations = 2\n"
    study = tmp_path / "arm-study.toml"
    text = f'[robot]\nfile = "arm.toml"\n[excitation]\nduration = 7.0\n{excitation}'
    study.write_text(text, "utf-8")
    call = ["protocol", "--study", str(study), "--questions", "drives", "--sweeping", "8"]
    call += ["--period", "4"]
    document = ask(capsys, [*call, "-o", str(out)])
    assert document["schema"] == "dynident.protocol/1"
    assert (document["rate"], document["seconds"]) == (100.0, 8.0 + 2 * 3 * 4.0)
    assert json.loads((out / "protocol.json").read_text()) == document
    assert "What to record" in (out / "protocol.html").read_text("utf-8")
    for motion in ("sweeps", "series"):
        assert (out / "motions" / motion / "trajectory.csv").is_file()
    for said in document["runs"]:
        own = tomllib.loads((out / said["folder"] / "study.toml").read_text())
        assert own["robot"]["friction"] == "coulomb-viscous"
        assert own["log"] == [{"files": ["log.csv"]}]
        kept = read_study(out / said["folder"] / "study.toml", use=None)
        assert kept.robot.file.endswith("arm.toml")
    assert "--questions" in tell(capsys, ["protocol", str(file), "--questions", "colour"], 2).err
    # a study among the files is not an output
    own = ["protocol", "--study", str(out / "01-sweeps" / "study.toml"), *call[3:], "-o", str(out)]
    given = [*own, "--no-collision", "--floor", "false", "--starts", "1", "--iterations", "1"]
    assert "study.toml" in tell(capsys, [*given, "--rate", "100"], 2).err


@pytest.mark.long
def test_what_the_library_fits_to_the_runs_errs_as_expected():
    """From prepared logs: drives and bodies by wls, a load by held poses, friction by two fits."""
    given = {**OPTIONS, "rate": 500.0, "sweeping": 30.0, "period": 10.0, "iterations": 60}
    runs = {each.name: each for each in di.protocol(ROBOT, **given).runs}
    base = base_parameters(build_idim(ROBOT))
    truth = base.matrix @ toy.true_parameters(base.idim, ROBOT.nominal)

    def record(name, robot, seed, friction="coulomb-viscous", holds=0.0, **own):
        design = runs[name].excitation
        at = design.trajectory.reference(500.0, design.periods)
        moves = np.any(at.dq != 0.0, axis=1)
        last = np.maximum.accumulate(np.where(moves, np.arange(len(moves)), 0))
        tau = torque(robot, (at.q, at.dq, at.ddq), friction, **own)
        tau = tau + holds * np.sign(at.dq[last]) * ~moves[:, None]
        rng = np.random.default_rng(seed)
        q = at.q + 1e-6 * rng.normal(size=tau.shape)
        return di.read_arrays(q, tau + SIGMA * rng.normal(size=tau.shape), rate=500.0)

    def prepare(*args, rests=None, **own):
        return di.prepare(record(*args, **own), bandwidth=10.0, rests=rests)

    expected = np.array([each.std for each in runs["series"].told[0].entries])
    errors = []
    for seed in range(8):
        logs = [prepare(name, ROBOT, 10 * seed + k) for k, name in enumerate(("sweeps", "series"))]
        errors.append(di.identify(di.Problem(ROBOT, logs), "wls").estimate.beta - truth)
    scaled = np.array(errors) / expected
    print(f"rms {np.sqrt(np.mean(scaled**2)):.2f}, within {np.mean(np.abs(scaled) < 1.96):.3f}")
    assert 0.8 < np.sqrt(np.mean(scaled**2)) < 1.25
    assert 0.9 < np.mean(np.abs(scaled) < 1.96) < 0.99
    # a load, in poses that friction of its own holds; then the gain of its known mass
    fit = di.identify(di.Problem(ROBOT, logs))
    std = runs["rests"].told[0].entries[0].std
    for seed in range(3):
        held = prepare("rests", carrying(LENGTHS[0]), 90 + seed, holds=2.0, rests=1.0)
        weighed, known = di.payload(fit, held), di.payload(fit, held, mass=MASS)
        assert abs(weighed.mass - MASS) < 4.0 * std
        assert abs(known.load.gains.values[0] - 1.0) < 4.0 * std / MASS
    # friction under load, of both drives that gravity loads
    share = {"fl1": 0.12, "fl2": 0.08, "fl3": 0.15}
    fc = [base.names.index(f"fc{k}") for k in (2, 3)]
    near, far = (
        di.identify(
            di.Problem(ROBOT, prepare(name, carrying(length), 50, friction="load", **share)), "wls"
        ).estimate.beta[fc]
        for name, length in zip(("near", "far"), LENGTHS, strict=True)
    )
    more = np.array([each.value for each in runs["far"].told[2].entries])[1:]
    np.testing.assert_allclose((far - near) / more, [0.08, 0.15], rtol=0.2)
