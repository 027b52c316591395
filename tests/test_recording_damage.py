"""Logs as they come: stamps that jitter, gaps, corrupt rows, and edges that no figure counts."""

from __future__ import annotations

import numpy as np
import pytest
import toy

from dynident.api import identify, validate
from dynident.core.errors import InputError
from dynident.dynamics.idim import build_idim
from dynident.filters.filters import count_filter_edge
from dynident.fit.figures import count_edge_samples, find_scored_samples, score_all_samples
from dynident.recording.checks import find_bad_values
from dynident.recording.prepare import prepare
from dynident.recording.read import read_log
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.study.study import LogSection, PrepareSection, read_study_samples

RATE = 997.0
ROBOT = toy.arm(4)
NAMES = ",".join(["time", *(f"{s}_joint_{j}" for s in ("q", "tau") for j in range(1, 5))])


def moved(seed, samples):
    """Stamps, positions and torques of one motion: noise as of a good drive, stamps of arrival."""
    rng = np.random.default_rng(seed)
    idim = build_idim(ROBOT, "coulomb-viscous")
    q, dq, ddq = (x[:samples] for x in toy.motion(4, samples / RATE + 0.1, seed, RATE))
    tau = idim.torque(toy.true_parameters(idim, ROBOT.nominal), q, dq, ddq)
    tau = tau + 0.5 * rng.normal(size=tau.shape)
    time = (np.arange(samples) + np.abs(rng.normal(0.0, 0.2, samples))) / RATE
    return np.maximum.accumulate(time), q + 2e-6 * rng.normal(size=q.shape), tau


def write(path, time, q, tau):
    rows = np.column_stack([time, q, tau])
    np.savetxt(path, rows, "%.9g", ",", header=NAMES, comments="")
    return path


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A log, the same with two gaps of 8 ms and a corrupt row, and another motion."""
    folder = tmp_path_factory.mktemp("logs")
    time, q, tau = moved(1, 12000)
    whole = write(folder / "whole.csv", time, q, tau)
    tau = tau.copy()
    tau[5000, 1] = 1e154
    rows = np.delete(np.arange(12000), np.r_[3001:3008, 8001:8008])
    damaged = write(folder / "damaged.csv", time[rows], q[rows], tau[rows])
    other = write(folder / "other.csv", *moved(2, 8000))
    return whole, damaged, other


def held_out(fit, other):
    _, every = validate(fit, read_log(other, ROBOT))
    return every.overall_percent


def fitted(log):
    return identify(Problem(ROBOT, prepare(log, 10.0)), prior="none", doctor=False)


@pytest.mark.long
def test_a_damaged_log_identifies_as_the_undamaged_one(logs):
    whole, damaged, other = logs
    with pytest.raises(
        InputError, match=r"damaged.csv, row 4995, column 7 \(tau_joint_2\): 1e\+15"
    ):
        read_log(damaged, ROBOT)
    log = read_log(damaged, ROBOT, bad_rows="cut")
    assert log.segments == ((0, 12000),)
    assert log.rate == pytest.approx(RATE, rel=1e-5)
    cut, jitter, bridged = log.warnings
    assert cut == (
        "damaged.csv: 1 row of 11986 cut: "
        "1 with values that are not finite numbers of sensible size (row 4995)"
    )
    assert "times smoother without them, samples taken as equidistant at 99" in jitter
    assert "3 pauses in time, 0.01805 s together, the longest 0.008024 s: bridged" in bridged
    assert not any("\n" in note for note in log.warnings)
    sound = held_out(fitted(read_log(whole, ROBOT)), other)
    assert held_out(fitted(log), other) == pytest.approx(sound, rel=0.02)
    assert held_out(fitted(log), other) < 0.5


@pytest.mark.long
def test_the_wrong_clock_is_worse_than_the_one_that_was_chosen(logs):
    _, damaged, _ = logs

    def error(clock):
        fit = fitted(read_log(damaged, ROBOT, bad_rows="cut", clock=clock))
        return fit.identification[1].overall_percent

    assert error("stamps") > 2.0 * error("auto")
    assert error("uniform") == error("auto")


def test_gaps_that_are_not_bridged_cut_the_log(logs):
    _, damaged, _ = logs
    log = read_log(damaged, ROBOT, bad_rows="cut", bridge=0.0)
    assert [stop - start for start, stop in log.segments] == [3001, 4993, 3992]
    cut = log.warnings[1]
    assert "2 gaps in time" in cut
    assert "cut into 3 segments" in cut
    assert "damaged.csv, row 7996, column 1 (time)" in cut or "row 3003" in cut


def test_a_study_has_the_same_options(logs):
    _, damaged, _ = logs
    section = LogSection(files=str(damaged), bad_rows="cut", clock="stamps", bridge=0.0)
    samples = read_study_samples(section, ROBOT, PrepareSection(bandwidth=10.0))
    assert len(samples.runs) == 3
    assert any("resampled" in note for note in samples.warnings)
    with pytest.raises(ValueError, match="clock"):
        LogSection(files="a.csv", clock="sundial")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clock": "sundial"}, "clock "),
        ({"bridge": -1.0}, "bridge "),
        ({"bridge": 2.0}, "bridge "),
        ({"bridge": np.nan}, "bridge "),
        ({"bad_rows": "keep"}, "bad_rows "),
    ],
)
def test_options_that_are_none_are_refused(logs, options, words):
    with pytest.raises(InputError, match=f"^whole.csv: {words}"):
        read_log(logs[0], ROBOT, **options)


def small(samples=300):
    time, q, tau = moved(3, samples)
    return np.arange(samples) / 500.0, q, tau, time


def test_stamps_that_repeat_or_go_back_are_cut(tmp_path):
    time, q, tau, _ = small()
    time[100] = time[99]
    time[200] = 0.1
    tau[50, 0] = np.nan
    path = write(tmp_path / "log.csv", time, q, tau)
    with pytest.raises(InputError, match=r"row 52, column 6 \(tau_joint_1\): nan is not a finite"):
        read_log(path, ROBOT)
    log = read_log(path, ROBOT, bad_rows="cut")
    assert log.warnings[0] == (
        "log.csv: 3 rows of 300 cut: 1 with values that are not finite numbers of sensible size "
        "(row 52), 2 whose time repeats or goes back (row 102, 202)"
    )
    assert len(log.q) == 300
    assert log.rate == 500.0
    kept = np.delete(np.arange(300), [50, 100, 200])
    np.testing.assert_allclose(log.q[kept], q[kept], atol=1e-8)
    tau[50, 0] = 0.0
    path = write(tmp_path / "log.csv", time, q, tau)
    with pytest.raises(InputError, match=r"row 102, column 1 \(time\) and 1 more rows: .* repeats"):
        read_log(path, ROBOT)


def test_stamps_that_are_no_numbers_are_cut(tmp_path):
    time, q, tau, _ = small()
    time[100] = np.nan
    path = write(tmp_path / "log.csv", time, q, tau)
    with pytest.raises(InputError, match=r"row 102, column 1 \(time\): nan is not a finite"):
        read_log(path, ROBOT)
    assert len(read_log(path, ROBOT, bad_rows="cut").q) == 300


def test_rows_of_a_log_without_time_are_cut_where_they_are(tmp_path):
    _, q, tau, _ = small()
    tau[100:103] = np.inf
    path = tmp_path / "log.npz"
    np.savez(path, q=q, tau=tau)
    columns = {"q": "q_*", "tau": "tau_*"}
    log = read_log(path, ROBOT, rate=500.0, columns=columns, bad_rows="cut")
    assert log.rate == 500.0
    assert len(log.q) == 300
    assert "3 with values" in log.warnings[0]
    assert "(row 101, 102, 103)" in log.warnings[0]
    assert "1 pause in time, 0.008 s together" in log.warnings[1]
    tau[100:103] = 0.0
    np.savez(path, q=q, tau=tau)
    assert read_log(path, ROBOT, rate=500.0, columns=columns, bad_rows="cut").warnings == ()


def test_files_side_by_side_lose_the_same_rows(tmp_path):
    time, q, tau, _ = small()
    late = time.copy()
    time[20] = np.nan
    late[40] = np.inf
    names = NAMES.split(",")
    for file, stamps, values, own in (
        ("q.csv", time, q, names[1:5]),
        ("tau.csv", late, tau, names[5:]),
    ):
        rows = np.column_stack([stamps, values])
        np.savetxt(
            tmp_path / file, rows, delimiter=",", header=",".join(["time", *own]), comments=""
        )
    files = [tmp_path / "q.csv", tmp_path / "tau.csv"]
    log = read_log(files, ROBOT, bad_rows="cut")
    assert "2 with values that are not finite" in log.warnings[0]
    assert len(log.q) == 300
    with pytest.raises(InputError, match=r"q.csv, row 22, column 1 \(time\)"):
        read_log(files, ROBOT)


def test_too_many_bad_rows_are_no_damage_of_rows(tmp_path):
    time, q, tau, _ = small()
    path = write(tmp_path / "log.csv", np.round(time, 2), q, tau)
    with pytest.raises(
        InputError, match=r"log.csv: 239 rows of 300 cut: .* goes back \(row 3, 4, 6, .*too many"
    ):
        read_log(path, ROBOT, bad_rows="cut")


def test_what_is_absurd():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1000, 6))
    values[:, 2] = 0.0
    values[10, 0], values[20, 0] = 1e154, -5e7
    values[30, 1] = np.nan
    values[40, 2] = 2e3  # nothing else is there
    values[:, 3] = 1e5 + values[:, 3]  # all are large
    values[50, 4] = 900.0  # a spike, but one that a sensor may have
    values[:500, 5] *= 1e-12  # at rest, then not: never beyond what is sensible
    found = np.argwhere(find_bad_values(values)).tolist()
    assert found == [[10, 0], [20, 0], [30, 1], [40, 2]]
    moving = np.where(np.arange(1000) < 900, 1e-6, 1e4)[:, None]
    assert not find_bad_values(moving).any()  # so many are not damage
    assert np.argwhere(find_bad_values(values, leaps=False)).tolist() == [[10, 0], [30, 1]]


def gapped(cut=None):
    """A log of two runs, with a wild torque within the edges only."""
    recording, theta = toy.log(toy.arm(2), 8.0, noise=0.1)
    segments = ((0, 3500), (3500, 8000))
    tau = recording.tau.copy()
    for start, stop in segments if cut else ():
        tau[start : start + cut] += 3.0
        tau[stop - cut : stop] -= 3.0
    return Recording("gapped", toy.RATE, recording.q, tau, segments=segments), theta


def test_no_figure_of_all_samples_has_a_filters_edge():
    recording, theta = gapped()
    samples = prepare(recording, 10.0)
    lowpass = 20.0
    position, low = count_filter_edge(50.0, toy.RATE), count_filter_edge(lowpass, toy.RATE)
    cut = position + low
    parts = [
        (run.start, run.stop, inner.start) for run, inner in find_scored_samples(samples, lowpass)
    ]
    assert parts == [(0, 3500, cut), (3500, 8000, cut)]
    assert count_edge_samples(samples, lowpass) == 4 * cut
    fit = identify(Problem(toy.arm(2), samples), doctor=False)
    (settings,) = fit.settings["logs"]
    assert (settings["samples"], settings["segments"]) == (8000, 2)
    assert settings["edge_samples"] == count_edge_samples(samples, fit.lowpass_hz) == 4 * cut
    (figure,) = score_all_samples(fit.idim, [theta], fit.samples, lowpass)
    # 3 Nm off at the borders; if these were counted, they alone would make 2.5 % of error
    wild = Problem(toy.arm(2), prepare(gapped(5)[0], 10.0))
    (other,) = score_all_samples(fit.idim, [theta], wild.samples, lowpass)
    assert other.overall_percent == pytest.approx(figure.overall_percent, rel=0.05)


def test_a_low_pass_whose_edges_meet_leaves_nothing():
    samples = prepare(gapped()[0], 10.0)
    fit = identify(Problem(toy.arm(2), samples), doctor=False)
    assert find_scored_samples(samples, 0.3) == ()
    with pytest.raises(
        InputError, match=r"gapped: a low-pass of 0\.3 Hz leaves no usable samples of 4.5 s"
    ):
        validate(fit, samples, lowpass_hz=0.3)
    for absurd in (1e-3, 1e-300):
        assert find_scored_samples(samples, absurd) == ()
