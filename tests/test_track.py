"""``dynident track``: streams, stops and resumes, bad input; the causal filter behind it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Thread, Timer

import numpy as np
import pytest
import toy
from commands import tell
from robots import EXAMPLES
from thin import first

import dynident as di
from dynident.cli import run
from dynident.core.errors import InputError
from dynident.core.inertia import from_com
from dynident.core.state_files import KeptState, StateOrigin, pack_state_file, read_state_file
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.filters.filters import differentiate_twice, filter_zero_phase
from dynident.methods import ESTIMATORS
from dynident.online.causal import CausalFilter
from dynident.online.online import LEVEL, SCATTER, filter_speed_sign
from dynident.online.tracker import Tracker
from dynident.study.fits import read_result
from dynident.study.study import read_study
from dynident.study.track import SCHEMA, EstimateRow, build_track_setting, track_log

RATE = 200.0
EMPS = EXAMPLES / "emps" / "emps.toml"


# ---- the filter


def test_a_causal_filter_is_the_zero_phase_one_some_lag_later():
    t = np.arange(6000) / 1000.0
    q = np.column_stack([np.sin(2 * np.pi * t), 0.5 * np.cos(2 * np.pi * 1.7 * t)])
    tau = np.column_stack([np.cos(2 * np.pi * 2.0 * t), q[:, 0] * q[:, 1]])
    causal = CausalFilter(2, 2, 20.0, 1000.0)
    outputs = []
    for each in np.column_stack([q, tau]):
        out = causal.push(each)
        outputs.append(np.full(8, np.nan) if out is None else out.copy())
    found = np.array(outputs)
    settled = np.isfinite(found[:, 0])
    assert settled.sum() == len(t) - causal.settling
    smooth = filter_zero_phase(q, 20.0, 1000.0)
    dq, ddq = differentiate_twice(smooth, 1000.0)
    reference = np.column_stack([smooth, dq, ddq, filter_zero_phase(tau, 20.0, 1000.0)])
    inner = settled & (t > 1.0) & (t < 5.0)
    for j in range(8):
        late = np.interp(t - causal.lag, t, reference[:, j])
        error = np.abs(found[:, j] - late)[inner].max() / np.abs(reference[:, j]).max()
        assert error < 6e-3
        early = np.abs(found[:, j] - reference[:, j])[inner].max() / np.abs(reference[:, j]).max()
        assert early > 5.0 * error
    assert 0.02 < causal.lag < 0.025


def test_the_lag_is_the_delay_of_a_ramp():
    causal = CausalFilter(0, 4, 5.0, 100.0)
    for k in range(400):
        out = causal.push(np.full(4, 3.0 * k / 100.0))
    assert out is not None
    np.testing.assert_allclose(out, 3.0 * (399 / 100.0 - causal.lag), rtol=1e-9)


def test_a_filter_resumes_and_refuses():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(300, 4))
    whole, first = CausalFilter(1, 3, 10.0, 100.0), CausalFilter(1, 3, 10.0, 100.0)
    for each in samples:
        expected = whole.push(each)
    for each in samples[:123]:
        first.push(each)
    second = CausalFilter(1, 3, 10.0, 100.0)
    second.restore(first.state())
    for each in samples[123:]:
        found = second.push(each)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(InputError, match="samples a second"):
        CausalFilter(1, 1, 60.0, 100.0)
    with pytest.raises(InputError, match="not that of such a filter"):
        second.restore({"filter": np.zeros(3)})


@pytest.mark.parametrize("slope", [3.0, -0.4])
def test_a_sign_comes_out_of_the_filter_as_the_turnover_says(slope):
    """The filtered sign of a ramp's speed, between samples too."""
    rate, cutoff = 500.0, 10.0
    t = np.arange(2000) / rate
    speed = slope * (t - 1.9007)
    filtered = CausalFilter(0, 4, cutoff, rate)
    signals = np.column_stack([0.0 * t, speed, np.full(2000, slope), np.sign(speed)])
    found = [out[1:].copy() for each in signals if (out := filtered.push(each)) is not None]
    v, a, sign = np.array(found).T
    turn = filtered.turnover
    at = np.linspace(-turn.reach, turn.reach, len(turn.values))
    expected = np.sign(a) * np.interp(v / a, at, turn.values)
    assert np.abs(sign - np.sign(v)).max() > 0.9
    np.testing.assert_allclose(sign, expected, atol=0.03)
    kernel = [filter_speed_sign(*each, turn.reach, turn.values) for each in zip(v, a, strict=True)]
    np.testing.assert_allclose(kernel, expected, atol=1e-12)


def events_of(tracker, causal, step, signals):
    """Time and kind of what a tracker notices behind a causal filter, and those of a load."""
    found, taken = [], 0
    n = signals[0].shape[1]
    for k, each in enumerate(np.hstack([signals[0], signals[-1]])):
        out = causal.push(each)
        taken += out is not None
        if out is None or taken % step:
            continue
        event = tracker.update(*np.split(out, 4))
        if event is not None:
            found.append((k, event.kind))
        assert len(out) == 4 * n
    return found


def filtered_signals(seed, seconds, rate, n, load=None, base_hz=0.1):
    """A robot's noisy positions and torques; with another load from the middle on."""
    robot = toy.arm(n)
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    t = np.arange(0.0, seconds, 1.0 / rate)[:, None]
    q, dq, ddq = np.zeros((3, len(t), n))
    waves = np.random.default_rng(seed).normal(scale=0.5, size=(5, 2, n))
    for k, (a, b) in enumerate(waves, 1):
        w = 2.0 * np.pi * base_hz * k
        s, c = np.sin(w * t), np.cos(w * t)
        q += (a * s + b * c) / k
        dq += w * (a * c - b * s) / k
        ddq -= w**2 * (a * s + b * c) / k
    tau = idim.torque(theta, q, dq, ddq)
    if load is not None:
        heavy = theta.copy()
        heavy[10 * (n - 1) : 10 * n] += load
        half = len(q) // 2
        tau[half:] = idim.torque(heavy, q[half:], dq[half:], ddq[half:])
    rng = np.random.default_rng(seed + 100)
    sigma = np.linspace(0.4, 0.1, n)
    q = q + 1e-5 * rng.normal(size=q.shape)
    zero = np.zeros_like(q)
    return (
        base_parameters(idim),
        theta,
        sigma,
        (q, zero, zero, tau + sigma * rng.normal(size=q.shape)),
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_joints_that_turn_are_no_load(seed):
    """Coulomb friction is many times the noise: the sign itself, that jumps, would alarm."""
    rate, cutoff = 500.0, 12.0
    base, theta, sigma, signals = filtered_signals(seed, 40.0, rate, 2)
    counts = []
    for turn in (True, False):
        causal = CausalFilter(2, 2, cutoff, rate)
        step = int(0.5 * rate / cutoff)
        tracker = Tracker(
            base,
            sigma * np.sqrt(2.0 * cutoff / rate),
            rate / step,
            turnover=causal.turnover if turn else None,
        )
        counts.append(len(events_of(tracker, causal, step, signals)))
        level, scatter = tracker._memory.total[[LEVEL, SCATTER]]
        if turn:  # white, and as large as they are said to be
            assert 0.9 < level < 1.2
            assert 0.8 < scatter < 1.3
        if turn:
            known = base.matrix @ theta
            for name in ("fc1", "fc2"):
                k = base.names.index(name)
                assert abs(tracker.beta[k] - known[k]) < 0.01 * known[k]
    assert counts[0] == 0
    assert counts[1] > 0


@pytest.mark.parametrize("seed", range(3))
def test_a_load_is_weighed_behind_the_causal_filter(seed):
    """1 kg on six joints: noticed within half a second, within 5 % after five."""
    rate, cutoff = 500.0, 20.0
    load = from_com(1.0, [0.02, -0.01, 0.08], 2e-3 * np.eye(3))
    base, _, sigma, signals = filtered_signals(seed, 24.0, rate, 6, load, 0.2)
    causal = CausalFilter(6, 6, cutoff, rate)
    step = int(0.5 * rate / cutoff)
    tracker = Tracker(
        base, sigma * np.sqrt(2.0 * cutoff / rate), rate / step, turnover=causal.turnover
    )
    until = [each[: int(17.0 * rate)] for each in signals]
    events = events_of(tracker, causal, step, until)
    assert events[0][1] == "load"
    assert 0.0 < events[0][0] / rate - 12.0 < 0.5 + causal.lag
    assert tracker.load is not None
    assert abs(tracker.load.mass - 1.0) < 0.05


# ---- the command


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A two-joint arm, a log of it, a study and a result."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.toml").write_text(toy.ARM)
    robot = di.load_robot("arm.toml")
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    q, dq, ddq = toy.motion(2, 20.0, rate=RATE)
    tau = idim.torque(theta, q, dq, ddq)
    tau = tau + np.array([0.3, 0.1]) * np.random.default_rng(0).normal(size=q.shape)
    write("run.csv", q, tau)
    (tmp_path / "study.toml").write_text(
        '[robot]\nfile = "arm.toml"\n[[log]]\nfiles = "run.csv"\n[prepare]\nbandwidth = 6.0\n'
        "[track]\nevery = 2.0\nmemory = 100.0\n"
    )
    return tmp_path


def write(path, q, tau, start=0):
    t = (start + np.arange(len(q))) / RATE
    rows = "".join(
        f"{at:.6f},{','.join(f'{v:.12g}' for v in (*a, *b))}\n"
        for at, a, b in zip(t, q, tau, strict=True)
    )
    with open(path, "w") as file:
        file.write("time,q_one,q_two,tau_one,tau_two\n" + rows)


@pytest.mark.long
def test_python_follows_a_fit_as_the_command_does(desk, capfd):
    fit = di.run_study(read_study("study.toml"))
    fit.save("out", report=False)
    assert run(["track", "run.csv", "--start", "out/result.json", "--every", "3"]) == 0
    lines = capfd.readouterr().out.splitlines()
    followed = di.track(fit, di.read_log("run.csv", fit.robot), every=3.0)
    names = fit.base.names
    assert lines[0].split(",")[: 2 + len(names)] == ["time", "samples", *names]
    written = np.array([line.split(",")[: 2 + 2 * len(names)] for line in lines[1:]], dtype=float)
    found = np.column_stack([followed.time, followed.beta, followed.std])
    np.testing.assert_allclose(np.delete(written, 1, axis=1), found, rtol=1e-7)
    assert followed.load.shape == (len(followed.rows), 2)
    assert np.isnan(followed.load).all()
    assert not followed.events
    assert followed.theta is None
    assert repr(followed).startswith("<Followed along run.csv: ")
    bare = di.identify(di.Problem(fit.robot, fit.prepare(di.read_log("run.csv", fit.robot))))
    assert di.track(bare, di.read_log("run.csv", fit.robot), consistent=True).theta.shape[1] > 20


def test_a_fit_without_a_study_is_followed_as_its_logs_were_prepared(desk, capfd):
    robot = di.load_robot("arm.toml")
    samples = di.prepare(di.read_log("run.csv", robot), bandwidth=6.0, drop_below=0.1)
    fit = di.identify(di.Problem(robot, samples), "wls", doctor=False)
    fit.save("out", report=False)
    found = tell(capfd, ["track", "run.csv", "--start", "out/result.json", "--every", "3"])
    written = [[float(cell) for cell in line.split(",")[:6]] for line in found.out.split()[1:]]
    followed = di.track(di.read_result("out/result.json"), "run.csv", every=3.0)
    own = np.column_stack([followed.time, followed.beta[:, :4]])
    np.testing.assert_allclose(np.delete(np.array(written), 1, axis=1), own, rtol=1e-7)


def test_what_python_cannot_follow_is_refused(desk):
    fit = di.run_study(read_study("study.toml"))
    log = di.read_log("run.csv", fit.robot)
    with pytest.raises(InputError, match="unknown key 'evry'; did you mean 'every'"):
        di.track(fit, log, evry=2.0)
    with pytest.raises(InputError, match=r"track takes Fit, not Recording: dynident\.identify"):
        di.track(log, fit)
    with pytest.raises(
        InputError, match=r"takes files and data frames, not float: dynident\.read_"
    ):
        di.track(fit, 2.0)


def tracked(**options):
    """What a run writes, and its follower."""
    study = read_study("study.toml")
    written = []
    follower = track_log(build_track_setting(study, study.log[0], None), written.append, **options)
    return written, follower


def test_a_log_ends_near_its_batch_answer(desk):
    """As far as filters that differ let it: the torques of both agree."""
    found, follower = tracked()
    assert all(isinstance(each, EstimateRow) for each in found)
    assert len(found) == 10
    robot = di.load_robot("arm.toml")
    problem = di.Problem(robot, di.prepare(di.read_log("run.csv", robot), 6.0))
    batch = ESTIMATORS["wls"](problem)
    motion = toy.motion(2, 20.0, rate=RATE)
    X = problem.idim.regressor(*motion)[:, :, problem.base.kept]
    torque = X @ batch.beta
    assert np.linalg.norm(X @ found[-1].beta - torque) < 0.03 * np.linalg.norm(torque)
    assert follower.taken == 4000


@pytest.mark.long
@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("kind", ["log", "pipe"])
def test_stopped_and_resumed_is_as_if_it_had_not_been(desk, kind, consistent):
    if consistent:
        with open("study.toml", "a") as file:
            file.write("consistent = true\n")
    text = (desk / "run.csv").read_text().splitlines(keepends=True)
    study = read_study("study.toml")
    given = study.track.model_copy(update={"sigma": 0.2})
    study = study.model_copy(update={"track": given})

    def go(written, stop, state, taken=0):
        """Until `stop` samples are taken."""
        seen = count()
        options = {"state": state, "stopped": lambda: stop is not None and next(seen) > stop}
        tracked = build_track_setting(study, study.log[0], None)
        if kind == "pipe":
            with open("part.csv", "w") as file:
                file.writelines([text[0], *text[1 + taken :]])
            with open("part.csv", "rb") as file:
                return track_log(tracked, written.append, stream=file, **options)
        return track_log(tracked, written.append, **options)

    whole, parts = [], []
    end = go(whole, None, desk / "whole.npz")
    taken = 0
    for stop in (3, 700, 1501, None):
        taken = go(parts, stop, desk / "parts.npz", taken).taken
    assert taken == 4000
    with np.load("whole.npz") as a, np.load("parts.npz") as b:
        assert set(a.files) == set(b.files)
        for name in a.files:
            np.testing.assert_array_equal(a[name], b[name])
    assert len(whole) == len(parts) == 9
    for one, other in zip(whole, parts, strict=True):
        assert one.time == other.time
        np.testing.assert_array_equal(one.beta, other.beta)
        np.testing.assert_array_equal(one.std, other.std)
        if consistent:
            np.testing.assert_array_equal(one.theta, other.theta)
    assert end.taken == 4000


def test_a_load_is_told(desk, capsys):
    robot = di.load_robot("arm.toml")
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    q, dq, ddq = toy.motion(2, 30.0, rate=RATE)
    heavy = theta.copy()
    heavy[10:20] += [1.0, 0.25, 0.0, 0.0, 0.005, 0.0, 0.07, 0.0, 0.0, 0.07]
    tau = idim.torque(theta, q, dq, ddq)
    tau[4000:] = idim.torque(heavy, q, dq, ddq)[4000:]
    tau = tau + np.array([0.3, 0.1]) * np.random.default_rng(1).normal(size=q.shape)
    write("load.csv", q, tau)
    flags = ["--study", "study.toml", "--sigma", "0.15", "--every", "1", "--bandwidth", "20"]
    out, notes = tell(capsys, ["track", "load.csv", *flags])
    assert notes.startswith("note: 20.")
    assert "another load than before" in notes
    rows = [line.split(",") for line in out.splitlines()]
    assert rows[0][-2:] == ["load", "std_load"]
    loads = [row[-2] for row in rows[1:]]
    assert not any(loads[:19])
    # of an arm that hardly feels masses: its error bar says so
    off = abs(float(loads[-1]) - 1.0)
    assert off < min(0.1, 0.5 * float(rows[-1][-1]))
    assert run(["track", "load.csv", *flags, "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (told,) = [each for each in events if "event" in each]
    assert told["event"] == "load"
    assert 20.0 < told["time"] < 20.6


def start_from(result):
    assert run(["identify", "study.toml", "--method", "wls", "-o", result, "--no-report"]) == 0


def test_a_result_is_a_start(desk, capsys):
    start_from("out")
    stored = read_result(desk / "out" / "result.json")
    capsys.readouterr()
    assert run(["track", "run.csv", "--start", "out/result.json", "--every", "0.5"]) == 0
    rows = capsys.readouterr().out.splitlines()
    first = np.array([float(cell) for cell in rows[1].split(",")[2 : 2 + stored.base.count]])
    values, std = stored.estimate.beta, stored.estimate.covariance.std
    assert np.all(np.abs(first - values) < 5.0 * std)


def refusal(argv, capsys, code=2):
    """The one line with which a command refuses."""
    assert run(argv) == code
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def piped(monkeypatch, capsys):
    """A function that runs on a pipe, as a shell makes it: its code and what it writes."""

    def write(text, end):
        with suppress(BrokenPipeError), open(end, "w") as file:  # who refuses reads no further
            file.write(text)

    def go(text, *flags):
        there, here = os.pipe()
        writer = Thread(target=write, args=(text, here))
        with open(there) as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            writer.start()
            code = run(["track", "-", *flags])
        writer.join()
        return code, *capsys.readouterr()

    return go


HEADER = "time,q_one,q_two,tau_one,tau_two\n"
GOOD = "".join(f"{k / 200:.3f},{0.01 * k},0.2,1.0,2.0\n" for k in range(40))


def slower(rate: float) -> str:
    """Rows that go on after `GOOD` at another rate."""
    return "".join(f"{0.2 + k / rate:.6f},{0.4 + 0.01 * k},0.2,1.0,2.0\n" for k in range(40))


BAD = {
    "cut off": (HEADER + GOOD + "0.2,0.1,0.2,1", "line 42: stops in the middle of the line"),
    "short": (HEADER + GOOD + "0.2,0.1,0.2\n", "line 42: has 3 columns where the first has 5"),
    "a word": (HEADER + GOOD + "0.2,x,0.2,1,2\n", "line 42, column 2 (q_one): 'x' is not a number"),
    "no number": (HEADER + GOOD + "0.2,0.1,0.2,nan,2\n", "line 42, column 4 (tau_one): nan is not"),
    "empty cell": (HEADER + GOOD + "0.2,0.1,,1,2\n", "line 42, column 3 (q_two): is empty"),
    "no value": (HEADER + GOOD + "#N/A,0.1,0.2,1,2\n", "column 1 (time): '#N/A' is not a number"),
    "endless": (HEADER + "0," * 3_000_000, "line 2: is longer than 4194304 characters"),
    "backward": (HEADER + GOOD + "0.1,0.1,0.1,1,2\n", "line 42: time goes from 0.195 s to 0.1 s"),
    "slower": (HEADER + GOOD + slower(160.0), "line 58: samples come at 160 Hz, and not at 200 Hz"),
    "half": (HEADER + GOOD + slower(100.0), "samples come at 100 Hz, and not at 200 Hz"),
    "nothing": ("", "needs"),
    "another robot's": ("time,q_a,tau_a\n0,0,0\n", "q_one"),
    "no object": ('{"time": 0, "q": [0, 0], "tau"\n', "line 1: is not a JSON object of numbers"),
    "short list": ('{"time": 0, "q": [0], "tau": [0, 0]}\n', "line 1: q has 1 values for 2 joints"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_streams_are_refused_with_their_place(desk, piped, name):
    text, reason = BAD[name]
    code, _, err = piped(text, "--study", "study.toml", "--sigma", "0.2")
    errors = err.splitlines()
    assert code == 2
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    if name != "nothing":
        assert "standard input" in errors[0]
        assert reason in errors[0]


@pytest.mark.parametrize(
    ("digits", "late", "lost"), [(3, 0.4, []), (3, 0.0, [60, 61, 90]), (6, 0.4, [60, 61, 90])]
)
def test_stamps_that_are_coarse_late_or_missing_are_of_one_rate(desk, piped, digits, late, lost):
    number = np.arange(200)
    stamps = np.delete((number + late * (number % 9 == 4)) / 300.0, lost)
    rows = "".join(f"{at:.{digits}f},0.1,0.2,1.0,2.0\n" for at in stamps)
    code, _, err = piped(HEADER + rows, "--study", "study.toml", "--sigma", "0.2", "--rate", "300")
    assert (code, err) == (0, "")


def test_a_rate_that_no_stream_has_is_refused(desk, piped):
    text = "q_one,q_two,tau_one,tau_two\n" + "0,0,0,0\n" * 5
    flags = ("--study", "study.toml", "--sigma", "0.2", "--rate", "1e12")
    code, _, err = piped(text, *flags)
    assert code == 2
    assert "check the unit of time, or the rate" in err


def test_angles_of_a_stream_go_on_where_an_encoder_begins_a_turn_anew(desk, piped):
    log = np.loadtxt("run.csv", delimiter=",", skiprows=1)
    log[:, 1] = np.mod(log[:, 1] + 2.0, 2.0 * np.pi) - 2.0 + 4.0 * log[:, 0]
    said = []
    for angle in (log[:, 1], np.mod(log[:, 1] + np.pi, 2.0 * np.pi) - np.pi):
        log[:, 1] = angle
        text = HEADER + "".join(",".join(f"{x:.12g}" for x in row) + "\n" for row in log)
        code, out, _ = piped(text, "--study", "study.toml", "--sigma", "0.2")
        assert code == 0
        said.append([[float(x or 0) for x in row.split(",")] for row in out.splitlines()[1:]])
    np.testing.assert_allclose(said[1], said[0], rtol=1e-6)


def test_a_stream_has_the_units_of_its_header(desk, piped):
    flags = ("--study", "study.toml", "--sigma", "0.2")
    plain = np.array([[float(cell) for cell in row.split(",")] for row in GOOD.splitlines()])
    plain[:, :3] *= np.array([1e3, 180.0 / np.pi, 180.0 / np.pi])
    rows = "".join(",".join(map(repr, row)) + "\n" for row in plain.tolist())
    code, out, err = piped(f"{HEADER}ms,deg,deg,Nm,Nm\n{rows}", *flags, "--every", "0.05")
    assert code == 0
    assert "standard input: q in deg" in err
    assert "time in ms, as its columns say" in " ".join(err.split())
    other = piped(HEADER + GOOD, *flags, "--every", "0.05")[1]
    one, two = (
        [[float(x or 0) for x in row.split(",")] for row in text.splitlines()[1:]]
        for text in (out, other)
    )
    np.testing.assert_allclose(one, two, rtol=1e-6)


def test_the_last_line_of_a_stream_needs_no_end(desk, piped):
    flags = ("--study", "study.toml", "--sigma", "0.2", "--every", "0.05")
    whole, other = piped(HEADER + GOOD, *flags), piped((HEADER + GOOD).rstrip("\n"), *flags)
    assert whole[0] == 0
    assert other == whole


def test_a_stream_has_columns_by_what_they_are_called(desk, piped):
    flags = ("--study", "study.toml", "--sigma", "0.2", "--every", "0.05")
    head = HEADER.replace("q_", "position ").replace("tau_", "effort ")
    code, out, err = piped(head + GOOD, *flags)
    assert code == 0
    assert "standard input: columns: q = position *, tau = effort *" in " ".join(err.split())
    assert out == piped(HEADER + GOOD, *flags)[1]


def test_a_file_has_the_stamps_of_a_pipe(desk, piped, capsys):
    """From an epoch on, and with a gap: estimates at the same times, told to a microsecond."""
    head, *lines = (desk / "run.csv").read_text().splitlines(keepends=True)
    cells = [line.partition(",") for line in lines[:1000]]
    begin = [1.7e9 if k < 500 else 1.7e9 + 0.75 for k in range(len(cells))]
    moved = [f"{t0 + float(at):.3f},{rest}" for t0, (at, _, rest) in zip(begin, cells, strict=True)]
    text = head + "".join(moved)
    (desk / "run.csv").write_text(text)
    flags = ["--study", "study.toml", "--sigma", "0.2", "--every", "1"]
    code, out, _ = piped(text, *flags)
    assert code == 0
    told = tell(capsys, ["track", "run.csv", *flags])
    assert "1 gap in time" in told.err
    one, two = ([row.split(",") for row in own.splitlines()[1:]] for own in (told.out, out))
    assert len(one) == len(two) > 3
    for row, other in zip(one, two, strict=True):
        assert row[1] == other[1]
        assert float(row[0]) - 1.7e9 == pytest.approx(float(other[0]) - 1.7e9, abs=5e-6)


def test_json_lines_are_read_like_a_table(desk, piped):
    lines = (desk / "run.csv").read_text().splitlines()[1:2000]
    numbers = [[float(cell) for cell in line.split(",")] for line in lines]
    table = HEADER + "\n".join(lines) + "\n"
    objects = "".join(
        json.dumps({"time": a[0], "q": a[1:3], "tau": a[3:5]}) + "\n" for a in numbers
    )
    flags = ("--study", "study.toml", "--sigma", "0.2")
    (code, one, _), other = piped(table, *flags), piped(objects, *flags)
    assert other == (code, one, "")
    assert code == 0
    assert len(one.splitlines()) > 3


def test_what_a_state_has_taken_of_a_file_is_said(desk, capsys):
    """Another file with as many samples would otherwise give nothing, without a word."""
    assert "warning" not in tell(capsys, ["track", "study.toml", "--state", "s.npz"]).err
    again = tell(capsys, ["track", "study.toml", "--state", "s.npz"])
    assert again.out == ""
    assert re.search(r"warning: the first \d+ samples were taken before, with this", again.err)


def test_a_stream_cuts_no_bad_rows(desk, piped):
    flags = ("--study", "study.toml", "--sigma", "0.2", "--bad-rows", "cut")
    code, _, err = piped(HEADER + GOOD, *flags)
    assert code == 2
    assert "a stream is taken as it comes; leave rows, bad_rows" in err


def test_states_that_do_not_fit_are_refused(desk, capsys, piped):
    assert run(["track", "study.toml", "--state", "s.npz"]) == 0
    capsys.readouterr()
    line = refusal(["track", "study.toml", "--state", "s.npz", "--memory", "5"], capsys)
    assert "s.npz: was written under other options" in line
    emps = ["--robot", str(EMPS), "--sigma", "1", "--rate", "10", "--state", "s.npz"]
    code, _, err = piped(slider(), *emps)
    assert code == 2
    assert "s.npz: is the state of arm" in err
    (desk / "bad.npz").write_bytes(b"PK nonsense")
    line = refusal(["track", "study.toml", "--state", "bad.npz"], capsys)
    assert "bad.npz: is not a state file" in line
    np.savez("other.npz", x=np.zeros(3))
    line = refusal(["track", "study.toml", "--state", "other.npz"], capsys)
    assert "other.npz: is not a state file" in line
    line = refusal(["track", "study.toml", "--state", "run.csv"], capsys)
    assert "run.csv: is an input" in line


def spoil(kept: KeptState, spoilt: str, content: object) -> bytes:
    """A state whose arrays or words are others, with a digest that fits them."""
    own = {"robot", "parameters", "fingerprint", "digest", "schema"}
    about = {key: value for key, value in kept.about.items() if key not in own}
    arrays = dict(kept.arrays)
    (about if spoilt in about else arrays)[spoilt] = content
    origin = StateOrigin(
        kept.about["robot"], tuple(kept.about["parameters"]), kept.about["fingerprint"]
    )
    return pack_state_file(kept.about["schema"], origin, about, arrays)


def edit(whole: bytes) -> bytes:
    with np.load(io.BytesIO(whole)) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(edited := io.BytesIO(), **{**arrays, "last": arrays["last"] + 1.0})
    return edited.getvalue()


SPOILT = {
    "other options": (lambda whole, kept: whole, ["--memory", "5"]),
    "cut": (lambda whole, kept: whole[: len(whole) // 2], []),
    "empty": (lambda whole, kept: b"", []),
    "edited": (lambda whole, kept: edit(whole), []),
    "other shapes": (lambda whole, kept: spoil(kept, "past", np.zeros((3, 1))), []),
    "counts": (lambda whole, kept: spoil(kept, "counts", np.zeros(1)), []),
    "last": (lambda whole, kept: spoil(kept, "last", np.zeros((2, 2))), []),
    "memory": (lambda whole, kept: spoil(kept, "memory_R", np.zeros(4)), []),
    "words": (lambda whole, kept: spoil(kept, "counts", np.array(["a", "b"])), []),
    "rate": (lambda whole, kept: spoil(kept, "rate", "fast"), []),
    "sigma": (lambda whole, kept: spoil(kept, "sigma", [[1.0], [1.0, 2.0]]), []),
}


@pytest.mark.parametrize("how", first(SPOILT, 6))
def test_a_state_that_is_refused_is_not_written(desk, capsys, how):
    change, flags = SPOILT[how]
    state = Path("st.npz")
    argv = ["track", "study.toml", "--state", "st.npz"]
    assert run(argv) == 0
    capsys.readouterr()
    kept = read_state_file(state, SCHEMA, (), "")
    state.write_bytes(change(state.read_bytes(), kept))
    before = state.read_bytes()
    assert refusal([*argv, *flags], capsys).startswith("error: st.npz: ")
    assert state.read_bytes() == before


def slider():
    """A stream of the EMPS."""
    (name,) = di.load_robot(EMPS).joint_names
    return f"q_{name},tau_{name}\n" + "0.0,0.0\n" * 5


def test_the_end_of_a_log_is_written(desk):
    study = read_study("study.toml")
    study = study.model_copy(update={"track": study.track.model_copy(update={"every": 1000.0})})
    written = []
    follower = track_log(build_track_setting(study, study.log[0], None), written.append)
    (last,) = written
    assert last.samples == follower.taken == 4000
    np.testing.assert_array_equal(last.beta, tracked()[1].tracker.beta)


@pytest.mark.long
def test_the_reference_of_a_stream_gives_instruments(desk, capsys, piped):
    robot = di.load_robot("arm.toml")
    idim = build_idim(robot)
    q, dq, ddq = toy.motion(2, 20.0, rate=RATE)
    tau = idim.torque(toy.true_parameters(idim, robot.nominal), q, dq, ddq)
    measured = q + 3e-3 * np.random.default_rng(0).normal(size=q.shape)
    table = np.column_stack([np.arange(len(q)) / RATE, measured, tau, q])
    head = "time,q_one,q_two,tau_one,tau_two,qref_one,qref_two"
    np.savetxt("run.csv", table, delimiter=",", header=head, comments="")

    def miss(extra):
        with open("study.toml", "a") as file:
            file.write(f"cutoff = 20.0\nsigma = 0.2\n{extra}")
        found = tracked()[0][-1]
        X = idim.regressor(q, dq, ddq)[:, :, found.base.kept]
        return np.linalg.norm(X @ found.beta - tau) / np.linalg.norm(tau)

    study = (desk / "study.toml").read_text()
    by_motion = miss("")
    (desk / "study.toml").write_text(study)
    assert miss('instruments = "reference"\n') < 0.3 * by_motion
    whole = tell(capsys, ["track", "study.toml"]).out
    assert piped((desk / "run.csv").read_text(), "--study", "study.toml") == (0, whole, "")
    write("run.csv", q, tau)
    assert run(["track", "study.toml"]) == 2
    assert "run.csv: instruments = 'reference' needs the reference" in capsys.readouterr().err


def test_what_is_missing_is_said(desk, capsys):
    assert "--start or --robot" in refusal(["track", "run.csv"], capsys)
    assert "sigma" in refusal(["track", "run.csv", "--robot", "arm.toml", "--follow"], capsys)
    line = refusal(["track", "run.csv", "--robot", "arm.toml", "--start", "x.json"], capsys)
    assert "give one of" in line
    given = ["track", "run.csv", "--start", "x.json", "--friction", "viscous"]
    assert "--start already sets the friction model" in refusal(given, capsys)
    line = refusal(["track", "study.toml", "--memory", "-1"], capsys)
    assert "memory" in line
    line = refusal(["track", "no.csv", "--study", "study.toml", "--sigma", "1", "--follow"], capsys)
    assert "no.csv: cannot be read" in line


def test_what_reading_a_log_warns_of_is_said_before_estimates(desk, capsys):
    log = Path("run.csv").read_text()
    Path("currents.csv").write_text(log.replace("tau_", "current_"))
    said = tell(capsys, ["track", "currents.csv", "--study", "study.toml"])
    (words,) = said.err.splitlines()
    assert words == (
        "warning: currents.csv: currents taken as torques, because every drive's gain is 1"
    )
    assert said.out.startswith("time,")


def test_a_log_without_study_needs_a_robot_alone(desk, capsys):
    assert run(["track", "run.csv", "--robot", "arm.toml", "--bandwidth", "6", "--every", "5"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5  # the end of the log is the last


@pytest.mark.long
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_growing_file_is_followed_until_told_to_stop(desk, number, capsys):
    lines = (desk / "run.csv").read_text().splitlines(keepends=True)
    whole, follower = [], None
    study = read_study("study.toml")
    study = study.model_copy(update={"track": study.track.model_copy(update={"sigma": 0.2})})
    follower = track_log(
        build_track_setting(study, study.log[0], None), whole.append, state=desk / "w.npz"
    )
    with open("grow.csv", "w") as file:
        file.writelines(lines[:1500])
        file.write(lines[1500][:9])
    argv = [sys.executable, "-m", "dynident", "track", "grow.csv", "--study", "study.toml"]
    argv += ["--sigma", "0.2", "--rate", "200", "--follow", "--state", "g.npz"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        limit = Timer(60.0, process.kill)
        limit.start()
        for _ in range(4):
            process.stdout.readline()
        with open("grow.csv", "a") as file:
            file.write(lines[1500][9:])
            file.writelines(lines[1501:3000])
        for line in process.stdout:
            if line.startswith("14."):
                break
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        limit.cancel()
    assert process.returncode == 0
    assert "state written to g.npz" in errors
    with open("grow.csv", "a") as file:
        file.writelines(lines[3000:])
    argv.remove("--follow")
    assert tell(capsys, argv[3:]).out.splitlines()[-1].split(",")[1] == str(whole[-1].samples)
    with np.load("w.npz") as a, np.load("g.npz") as b:
        np.testing.assert_array_equal(a["memory_R"], b["memory_R"])
    assert follower.taken == 4000
