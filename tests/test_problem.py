from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import toy
from scipy import signal
from thin import long

from dynident.core.errors import InputError
from dynident.core.options import collect_options
from dynident.dynamics.columns import fill_rows
from dynident.dynamics.idim import build_idim
from dynident.filters.decimate import Decimator
from dynident.filters.filters import (
    DecimationFilter,
    count_filter_edge,
    differentiate_twice,
    filter_zero_phase,
    subtract_lowpass,
)
from dynident.friction.model import FrictionModel
from dynident.recording.prepare import Preparation, prepare, prepare_by_options
from dynident.recording.recording import Recording
from dynident.regression import rows as module
from dynident.regression.problem import Problem, Regression
from dynident.regression.rows import select_base_parameters


@pytest.mark.parametrize(("cutoff", "chunk"), [(4.0, 64), (4.0, 1000), (20.0, 33), (400.0, 100)])
def test_streamed_decimation_is_convolution_at_the_kept_samples(cutoff, chunk):
    x = np.random.default_rng(0).normal(size=(3000, 2))
    f = DecimationFilter.design(cutoff, 1000.0)
    decimator = Decimator(f, 100, 3100, 2)
    parts = [x[k : k + chunk] for k in range(0, 3000, chunk)]
    pieces = [
        decimator.push(100 + chunk * k, [part[:, :1], part[:, 1:]]) for k, part in enumerate(parts)
    ]
    centres = np.concatenate([c for c, _ in pieces]) - 100
    out = np.vstack([o for _, o in pieces])
    assert len(out) == f.outputs(3000)
    assert set(np.diff(centres)) == {f.step}
    full = np.column_stack([np.convolve(x[:, k], f.taps, mode="same") for k in range(2)])
    np.testing.assert_allclose(out, full[centres], atol=1e-12)


def test_decimation_filter_has_unit_gain_and_brunots_step():
    f = DecimationFilter.design(20.0, 5000.0)
    assert f.step == 125  # omega_nyquist / omega_Fp
    assert f.taps.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(f.taps, f.taps[::-1], atol=1e-18)


def test_packed_rows_are_the_dense_regressor():
    idim = build_idim(toy.arm(4, coupled=True))
    q, dq, ddq = toy.motion(4, 0.1)
    dense = idim.regressor(q, dq, ddq)
    theta = np.random.default_rng(0).normal(size=len(idim.parameters))
    np.testing.assert_allclose(dense @ theta, idim.torque(theta, q, dq, ddq), atol=1e-11)
    chosen = [3, 17, 30, 44, len(idim.parameters) - 1]
    packing = idim.packing(chosen)
    out = np.empty((len(q), packing.width))
    fill_rows(idim, packing, q, dq, ddq, out)
    for row, (entries, columns) in enumerate(packing.joints):
        rebuilt = np.zeros((len(q), len(chosen)))
        rebuilt[:, columns] = out[:, entries]
        np.testing.assert_allclose(rebuilt, dense[:, row, chosen], rtol=1e-14, atol=1e-14)


def test_rows_of_a_noise_free_log_fit_exactly():
    robot = toy.arm(3, coupled=True)
    recording, theta = toy.log(robot, friction="viscous")
    samples = toy.on_its_motion(recording, 50.0, derivatives="measured", position_hz=499.9)
    problem = Problem(robot, samples, "viscous")
    beta = problem.base.matrix @ theta
    for rows in problem.rows():
        for j, columns in enumerate(problem.columns):
            np.testing.assert_allclose(rows.X[j] @ beta[columns], rows.y[j], atol=1e-10)
    error = problem.factors.squared_residuals(beta)
    assert error.max() < 1e-20 * problem.factors.squared_torques.max() * 1e4


def test_rows_do_not_depend_on_chunks_or_on_being_kept(monkeypatch):
    robot = toy.arm(3)
    recording, _ = toy.log(robot, noise=0.1)
    samples = prepare(recording, bandwidth=[5.0, 10.0, 20.0], drop_below=[0.0, 0.2, 0.0])
    kept = Problem(robot, samples)
    expected = [np.vstack([r.X[j] for r in kept.rows()]) for j in range(3)]
    assert [len(e) for e in expected] != [len(expected[0])] * 3
    monkeypatch.setattr(module, "CHUNK", 700)
    monkeypatch.setattr(module, "KEEP_BYTES", 0)
    joined = len([*Problem(robot, samples).rows()])
    monkeypatch.setattr(module, "FEW", 1)
    streamed = Problem(robot, samples)
    assert len([*streamed.rows()]) > joined
    for j in range(3):
        found = np.vstack([r.X[j] for r in streamed.rows()])
        np.testing.assert_allclose(found, expected[j], atol=1e-12)
    a, b = kept.factors, streamed.factors
    for first, second in zip(a.groups, b.groups, strict=True):
        assert first.rows == second.rows
        np.testing.assert_allclose(
            first.factor.T @ first.factor, second.factor.T @ second.factor, atol=1e-9
        )


@pytest.mark.parametrize(
    ("coupled", "kept"), [(True, True), (False, False), long(True, False), long(False, True)]
)
def test_models_of_one_log_share_the_columns_of_bodies(monkeypatch, kept, coupled):
    """They have the rows that they have alone, and the regressor of bodies is evaluated once."""
    robot = toy.arm(3, coupled=coupled)
    samples = prepare(toy.log(robot, seconds=4.0, noise=0.1)[0], bandwidth=[5.0, 10.0, 10.0])
    filled = []

    def fill_bodies(idim, packing, q, *others, fill=module.fill_bodies):
        filled.append(len(q) if packing.slot.max() >= 0 else 0)
        fill(idim, packing, q, *others)

    monkeypatch.setattr(module, "fill_bodies", fill_bodies)
    monkeypatch.setattr(module, "CHUNK", 700)
    if not kept:
        monkeypatch.setattr(module, "KEEP_BYTES", 0)
    first = Problem(robot, samples)
    assert first.factors.rows
    once = sum(stop - start for start, stop in samples.segments)
    stribeck = first.with_drives("stribeck-load")
    theta = np.random.default_rng(1).normal(size=stribeck.idim.plain)
    blurred = replace(stribeck.idim, blur=(0.1, 0.1, 0.1))
    bent = stribeck.under(replace(stribeck.base, idim=blurred)).linearised(theta)
    settled = bent.settled(np.append(theta, bent.idim.shape))
    others = stribeck.with_known_loads(theta), bent, settled, first.with_drives("viscous")
    for problem in others:
        filled.clear()
        found = join_rows(problem)
        # where friction under load bends them they are kept as they are before the filters, once
        assert not kept or sum(filled) == (once if problem is bent else 0)
        source = module.MotionRows(problem.base, problem.samples)
        alone = join_rows(Regression(problem.base, problem.samples, source))
        for own, expected in zip(found, alone, strict=True):
            np.testing.assert_allclose(own, expected, atol=1e-9)


def test_friction_that_nothing_moves_is_evaluated_once(monkeypatch):
    """Known shapes and states are filled once for all linearisations of what is not known."""
    seen = []

    def watch(name, own):
        def call(model, *given):
            signals = given[0] if name == "follow" else given[1]
            seen.append((name, model, len(signals.dq)))
            return own(model, *given)

        return call

    for name in ("values", "table", "follow"):
        monkeypatch.setattr(FrictionModel, name, watch(name, getattr(FrictionModel, name)))
    friction = "load + cube-root + tanh-sech(w3=2, w4=30) + dahl-spectrum"
    robot = toy.arm(2)
    samples = prepare(toy.log(robot, seconds=4.0, noise=0.1)[0], bandwidth=10.0)
    problem = Problem(robot, samples, friction)
    rng = np.random.default_rng(1)
    blurred = replace(problem.base, idim=replace(problem.idim, blur=(0.1, 0.1)))
    once = sum(stop - start for start, stop in samples.segments)
    seen.clear()  # of random states, which told the base parameters
    for _ in range(3):
        theta = rng.normal(size=problem.idim.plain)
        problem = problem.under(blurred).linearised(theta)
        found = join_rows(problem)
        own = ~problem.idim.stated[problem.base.kept]
        base = select_base_parameters(problem.base, np.flatnonzero(own))
        counts = {}
        for kind, model, count in seen:
            if "load" not in model.needs:
                counts[kind, model] = counts.get((kind, model), 0) + count
        assert {k for k, _ in counts} == {"values", "follow"}
        assert all(count == once * robot.n for count in counts.values())
        known = [*seen]
        alone = Regression(base, problem.samples, module.MotionRows(base, problem.samples))
        for joined, expected in zip(found, join_rows(alone), strict=True):
            np.testing.assert_allclose(joined[:, np.append(own, True)], expected, atol=1e-9)
        seen[:] = known


def join_rows(regression):
    """``[X | y]`` of each group, all columns of X."""
    found = []
    for g, columns in enumerate(regression.columns):
        X = np.vstack([rows.X[g] for rows in regression.rows()])
        whole = np.zeros((len(X), regression.base.count + 1))
        whole[:, columns] = X
        whole[:, -1] = np.concatenate([rows.y[g] for rows in regression.rows()])
        found.append(whole)
    return found


def test_two_logs_are_the_sum_of_their_rows():
    robot = toy.arm(2)
    logs = [prepare(toy.log(robot, noise=0.1, seed=s)[0], bandwidth=10.0) for s in (0, 5)]
    both = Problem(robot, logs).factors
    merged = Problem(robot, logs[0]).factors.merge(Problem(robot, logs[1]).factors)
    assert both.rows == merged.rows
    for a, b in zip(both.groups, merged.groups, strict=True):
        np.testing.assert_allclose(a.factor.T @ a.factor, b.factor.T @ b.factor, atol=1e-8)


def test_filters_are_zero_phase_and_derivatives_accurate():
    t = np.arange(4000) / 1000.0
    x = np.sin(2 * np.pi * 3.0 * t)[:, None]
    smooth = filter_zero_phase(x, 50.0, 1000.0)
    np.testing.assert_allclose(smooth, x, atol=2e-4)
    first, second = differentiate_twice(x, 1000.0)
    w = 2 * np.pi * 3.0
    np.testing.assert_allclose(first[2:-2, 0], w * np.cos(w * t)[2:-2], rtol=0, atol=1e-6 * w)
    np.testing.assert_allclose(second[2:-2], -(w**2) * x[2:-2], rtol=0, atol=1e-6 * w**2)


def test_gaps_are_cut_and_short_runs_left_out():
    robot = toy.arm(2)
    recording, _ = toy.log(robot)
    gapped = Recording(
        "gapped",
        toy.RATE,
        recording.q,
        recording.tau,
        segments=((0, 6000), (6000, 6100), (6100, 12000)),
    )
    samples = prepare(gapped, bandwidth=10.0)
    assert len(samples.segments) == 2
    assert any("6000-6100 are too short" in w for w in samples.warnings)
    centres = np.concatenate([r.sample[0] for r in Problem(robot, samples).rows()])
    assert not np.any((centres >= 5900) & (centres < 6200))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"bandwidth": [1.0, 2.0, 3.0]},
            "bandwidth has 3 values; give one, or one for each of 2",
        ),
        ({"bandwidth": 0.0}, "bandwidth has to be positive, got 0"),
        ({"bandwidth": float("nan")}, "bandwidth is nan but should be a finite number"),
        ({"bandwidth": 10.0, "median": 4}, "median has to be odd and at least 3, got 4"),
        ({"bandwidth": 10.0, "median": 3.0}, "median is 3.0 but should be a valid integer"),
        (
            {"bandwidth": 10.0, "decimation": 0},
            "decimation is 0 but should be greater than or equal to 1",
        ),
        ({"bandwidth": 10.0, "decimation": 2.5}, "decimation is 2.5 but should be a valid integer"),
        ({"bandwidth": "ten"}, "bandwidth is 'ten' but should be a valid number"),
        ({"bandwidth": 10.0, "drop_below": -1.0}, "drop_below must not be negative, got -1"),
        ({"bandwidth": 10.0, "torque_hz": []}, "torque_hz has to be positive, got ..$"),
        ({"bandwidth": 0.05}, "too short for a torque filter"),
        (
            {"bandwidth": 10.0, "derivatives": "guess"},
            "derivatives is 'guess' but should be 'differences' or",
        ),
    ],
)
def test_bad_settings_are_refused(options, message):
    recording, _ = toy.log(toy.arm(2), seconds=3.0)
    with pytest.raises(InputError, match=message):
        prepare(recording, **options)


@pytest.mark.parametrize("many", [list, tuple, np.array])
def test_what_shaped_samples_shapes_others_alike(many):
    recording, _ = toy.log(toy.arm(2), seconds=3.0)
    options = {"torque_hz": many([15.0, 20.0]), "drop_below": many([0.1, 0.0]), "median": 3}
    samples = prepare(recording, many([10.0, 8.0]), **options)
    again = prepare_by_options(recording, samples.preparation)
    assert again.preparation == samples.preparation
    assert again.preparation.position_hz == (50.0, 40.0)
    assert [f.step for f in again.filters] == [f.step for f in samples.filters]
    np.testing.assert_array_equal(again.moving, samples.moving)
    np.testing.assert_array_equal(again.dq, samples.dq)


@pytest.mark.parametrize(("rate", "bandwidth"), [(None, 10.0), (100.0, 5.0)])
def test_assumed_bandwidth_is_said(rate, bandwidth):
    recording, _ = toy.log(toy.arm(2), seconds=3.0)
    samples = prepare(replace(recording, rate=rate or recording.rate))
    assert samples.bandwidth == (bandwidth, bandwidth)
    assert any(f"given; {bandwidth:g} Hz is assumed" in w for w in samples.warnings)
    words = collect_options([Preparation])["bandwidth"].words
    assert "by default 10, or a twentieth of the rate where that is less, with a warning" in words


def test_dropping_every_row_is_refused():
    recording, _ = toy.log(toy.arm(2))
    with pytest.raises(InputError, match="no rows are left"):
        _ = Problem(toy.arm(2), prepare(recording, 10.0, drop_below=1e6)).factors


def test_wrong_number_of_joints_is_refused():
    recording, _ = toy.log(toy.arm(2))
    with pytest.raises(InputError, match="has 2 joints, toy has 3"):
        Problem(toy.arm(3), prepare(recording, 10.0))


@pytest.mark.parametrize("cutoff", [2.0, 37.0, 200.0, 480.0])
def test_our_butterworth_is_that_of_scipy(cutoff):
    x = np.random.default_rng(0).normal(size=(900, 3)).cumsum(axis=0)
    sections = signal.butter(4, cutoff, fs=1000.0, output="sos")
    padding = min(899, 3 * count_filter_edge(cutoff, 1000.0))
    theirs = signal.sosfiltfilt(sections, x, axis=0, padlen=padding)
    ours = filter_zero_phase(x, cutoff, 1000.0)
    np.testing.assert_allclose(ours, theirs, atol=1e-9 * np.abs(x).max())


@pytest.mark.parametrize("slowness", [(0.05,), (0.07, 0.003)])
def test_what_is_beyond_a_low_pass_is_found_again(slowness):
    rng = np.random.default_rng(0)
    before, more = rng.normal(size=(2, 900, 3)).cumsum(axis=1)
    more[:2] = 0.0
    b, a = signal.bilinear([1.0], [*reversed(slowness), 1.0], fs=1000.0)
    behind = signal.lfilter(b, a, before, axis=0) + more
    found = subtract_lowpass(behind, before, slowness, 1000.0)
    np.testing.assert_allclose(found, more, atol=1e-9 * np.abs(behind).max())
    assert not np.any(subtract_lowpass(behind[:2], before[:2], slowness, 1000.0))


def test_our_decimation_taps_are_those_of_scipy():
    f = DecimationFilter.design(20.0, 5000.0)
    np.testing.assert_allclose(f.taps, signal.firwin(len(f.taps), 20.0, fs=5000.0), atol=1e-12)


def two_logs(robot):
    return [prepare(toy.log(robot, noise=0.1, seed=s)[0], bandwidth=10.0) for s in (0, 5)]


def slower(log):
    return 0.5 * log.q, 0.5 * log.dq, 0.5 * log.ddq


def test_instruments_are_rows_along_another_motion():
    robot = toy.arm(3, coupled=True)
    problem = Problem(robot, two_logs(robot))
    other = problem.along([slower(log) for log in problem.samples])
    both = problem.with_instruments(other, problem)
    p = problem.base.count
    assert both.scores == 2 * p
    for rows, plain, along in zip(both.rows(), problem.rows(), other.rows(), strict=True):
        for g, columns in enumerate(problem.columns):
            np.testing.assert_array_equal(rows.X[g], plain.X[g])
            Z = np.zeros((len(rows.y[g]), 2 * p))
            Z[:, both.instruments[g]] = rows.scores[g]
            np.testing.assert_array_equal(Z[:, columns], along.X[g])
            np.testing.assert_array_equal(Z[:, p + columns], plain.X[g])


@pytest.mark.parametrize("kind", ["measured", "along", "given", "instruments"])
def test_some_of_the_parameters_are_those_columns(kind):
    robot = toy.arm(3)
    problem = Problem(robot, two_logs(robot))
    other = problem.along([slower(log) for log in problem.samples])
    p, chosen = problem.base.count, [7, 2, 11]
    dense = [
        [
            replace(rows, X=tuple(scattered(X, c, p) for X, c in zip(rows.X, problem.columns)))
            for rows in log
        ]
        for log in problem.passes()
    ]
    rows = {
        "measured": problem,
        "along": other,
        "given": problem.given(problem.groups, dense),
        "instruments": problem.with_instruments(other),
    }[kind]
    part = rows.only(chosen)
    assert part.base.names == tuple(problem.base.names[k] for k in chosen)
    for small, large in zip(part.rows(), rows.rows(), strict=True):
        for g in range(3):
            few = scattered(small.X[g], part.columns[g], 3)
            np.testing.assert_allclose(
                few, scattered(large.X[g], rows.columns[g], p)[:, chosen], atol=1e-12
            )
            few = scattered(small.scores[g], part.instruments[g], 3)
            np.testing.assert_allclose(
                few, scattered(large.scores[g], rows.instruments[g], p)[:, chosen], atol=1e-12
            )


def scattered(X, columns, width):
    full = np.zeros((len(X), width))
    full[:, columns] = X
    return full


def test_rows_of_another_origin_know_no_other_logs():
    # instruments of one log beside the rows of another cannot be written
    robot = toy.arm(2)
    problem = Problem(robot, two_logs(robot))
    other = problem.along([slower(log) for log in problem.samples])
    for rows in (problem.with_instruments(other), other, problem.given(problem.groups, [[], []])):
        assert type(rows) is Regression
        assert not hasattr(rows, "on")
    with pytest.raises(FrozenInstanceError):
        problem.samples = ()


def test_groups_are_the_joints_with_their_units():
    robot = toy.arm(3)
    groups = Problem(robot, two_logs(robot)).groups
    assert tuple(g.name for g in groups) == robot.joint_names
    assert {g.unit for g in groups} <= {"Nm", "N"}
