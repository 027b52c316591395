"""Motion and parameters at once: splines, elimination, limits, noise that is found, refusals."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import slow_log
import toy
from differences import assert_slope

from dynident.api import identify
from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import ComputationError, InputError
from dynident.core.plain import to_plain
from dynident.dynamics.following import find_conditions
from dynident.dynamics.idim import build_idim
from dynident.estimators.constrained import build_constrained_setting
from dynident.estimators.estimate import Estimate
from dynident.fit.state import FORMS
from dynident.methods.options import estimate
from dynident.recording.arrays import read_arrays
from dynident.recording.prepare import prepare
from dynident.recording.repairs import LogRepair, repair_recording
from dynident.regression.problem import Problem
from dynident.smoothing import smooth as smoothing
from dynident.smoothing.ml import JointNoise
from dynident.smoothing.motion import (
    Equations,
    LinearRun,
    MotionRun,
    SampleSpreads,
    differentiate_torque,
    measure_taken,
)
from dynident.smoothing.smooth import Smoothing, fit_positions, smooth, take_log
from dynident.smoothing.spline import Knots, evaluate_spline
from dynident.study.fits import read_result

FREE = {"prior": "none", "consistency": "none"}


def test_splines_are_polynomials_where_their_coefficients_are_and_know_their_derivatives():
    knots = Knots(0.3, 0.1, 20)
    time = np.linspace(0.31, 2.29, 200)
    place, weights = knots.weigh(time)
    np.testing.assert_allclose(weights[:, 0].sum(axis=1), 1.0, rtol=1e-13)
    # coefficients at their knots' means make the straight line through these
    means = 0.3 + 0.1 * (np.arange(knots.coefficients) - 2.0)
    line = evaluate_spline(means[:, None], place, weights)
    np.testing.assert_allclose(line[:, :, 0], [time, 1 + 0 * time, 0 * time, 0 * time], atol=1e-9)
    c = np.random.default_rng(0).normal(size=(knots.coefficients, 2))
    for order in range(3):

        def signal(t, order=order):
            return evaluate_spline(c, *knots.weigh(time + t))[order]

        assert_slope(signal, evaluate_spline(c, place, weights)[order + 1], 1e-4)


@pytest.mark.long
def test_torques_that_are_far_off_are_left_out_and_counted():
    evenly = {"seconds": 8.0, "jitter": 0.0, "lost": 0.0, "friction": "viscous"}
    found = {
        spikes: estimate(slow_log.problem(3, **evenly, spikes=spikes)[0], "smooth", **FREE)
        for spikes in (0, 5)
    }
    assert "outlier" not in found[0].message
    assert found[5].message.endswith("; 5 torques left out as outliers")
    rows = [len(found[spikes].residuals.error[0]) for spikes in (0, 5)]
    assert rows[0] - rows[1] == 5
    moved = np.abs(found[5].beta - found[0].beta) / found[0].covariance.std
    assert moved.max() < 0.5


@pytest.mark.long
def test_errors_that_are_correlated_count_for_less_and_keep_their_units(monkeypatch):
    problem, _ = slow_log.problem(4, seconds=8.0, lacking=3.0)
    kappa: list[float] = []

    def build(*given, **known):
        setting = build_constrained_setting(*given, **known)
        kappa.append(setting.admitted.kappa)
        if len(kappa) == 1:
            return setting
        return replace(setting, admitted=replace(setting.admitted, kappa=1.0))

    monkeypatch.setattr(smoothing, "build_constrained_setting", build)
    found = [estimate(problem, "smooth", **FREE) for _ in range(2)]
    assert kappa[0] > 2.0
    assert "outliers" not in found[0].message
    np.testing.assert_allclose(found[0].sigma, found[1].sigma, rtol=0.02)
    literature = [each.covariance.literature for each in found]
    np.testing.assert_allclose(literature[0], literature[1], rtol=0.05)
    # the motion is that of positions rather than of torques that err
    assert np.mean(found[0].residuals.motions[0].std) > 1.005 * np.mean(
        found[1].residuals.motions[0].std
    )


@pytest.mark.long
def test_encoders_without_noise_end_no_search():
    """What their positions scatter by would be hardly more than their last digits."""
    problem, _ = slow_log.problem(5, seconds=10.0, jitter=0.0, lost=0.0, step=0.0, lacking=2.0)
    found = estimate(problem, "smooth", bootstrap=0)
    assert "noise of the positions 1e-10," in found.message
    assert found.iterations < 20


def small_run(rng):
    """A run of two joints with equations in three parameters, at instants that are off."""
    time = np.sort(rng.uniform(0.0, 1.2, 30))
    q = np.column_stack([np.sin(3.0 * time), np.cos(2.0 * time)])
    late = 1e-3 * rng.normal(size=30)
    run = MotionRun(slice(0, 30), time, q, Knots.over(time, 0.06), late)
    spreads = SampleSpreads(np.array([1e-2, 2e-2]), np.array([0.05, 0.1]), 3e-3)
    stated = rng.uniform(size=(30, 2)) < 0.8
    told = Equations(
        rng.normal(size=(30, 2, 3)),
        rng.normal(size=(30, 2)),
        1e-2 * rng.normal(size=(30, 2, 2, 3)),
        stated,
        np.array([0.5, 0.7]),
    )
    now = 0.3 * rng.normal(size=(run.knots.coefficients, 2))
    return run, spreads, told, now


def test_elimination_is_least_squares_over_coefficients_instants_and_parameters():
    run, spreads, told, now = small_run(np.random.default_rng(1))
    m, n, p = told.X.shape
    found = LinearRun.of(run, spreads, now, told)
    knots = run.knots.coefficients
    B = np.zeros((4, m, knots))
    place, weights = run.knots.weigh(run.stamps + run.late)
    for t in range(m):
        B[:, t, place[t] : place[t] + 6] = weights[t]
    motion = B @ now
    rows, right, kinds = [], [], []
    for t in range(m):
        for j in range(n):
            row = np.zeros((knots, n))
            row[:, j] = B[0, t]
            moved = np.zeros(m)
            moved[t] = motion[1, t, j]
            rows.append(np.concatenate([row.ravel(), moved, np.zeros(p)]) / spreads.position[j])
            right.append((run.q[t, j] - motion[0, t, j]) / spreads.position[j])
            kinds.append(f"q{j}")
        for g in np.flatnonzero(told.stated[t]):
            row, rate = np.zeros((knots, n)), 0.0
            for j in range(n):
                for a in range(3):
                    row[:, j] += told.slopes[t, g, j, a] * B[a, t]
                    rate += told.slopes[t, g, j, a] * motion[a + 1, t, j]
            moved = np.zeros(m)
            moved[t] = rate
            rows.append(np.concatenate([row.ravel(), moved, told.X[t, g]]) / told.sigma[g])
            right.append(told.y[t, g] / told.sigma[g])
            kinds.append(f"tau{g}")
        rows.append(np.concatenate([np.zeros(knots * n), np.eye(m)[t], np.zeros(p)]) / 3e-3)
        right.append(-run.late[t] / 3e-3)
        kinds.append("late")
    third = np.diff(np.eye(knots), 3, axis=0)
    for k in range(len(third)):
        for j in range(n):
            row = np.zeros((knots, n))
            row[:, j] = third[k]
            rows.append(np.concatenate([row.ravel(), np.zeros(m + p)]) / spreads.bend[j])
            right.append(-(third[k] @ now[:, j]) / spreads.bend[j])
            kinds.append(f"bend{j}")
    A, b = np.array(rows), np.array(right)
    answer = np.linalg.lstsq(A, b, rcond=None)[0]
    size = knots * n
    beta = np.linalg.lstsq(found.eliminated.border[:, :-1], found.eliminated.border[:, -1])[0]
    np.testing.assert_allclose(beta, answer[size + m :], rtol=1e-8)
    step = found.eliminated.solve(beta)
    np.testing.assert_allclose(step.ravel(), answer[:size], atol=1e-8 * np.abs(answer[:size]).max())
    delays = found.delays(step, beta)
    np.testing.assert_allclose(delays, answer[size : size + m], rtol=1e-6, atol=1e-10)
    assert np.sum(found.eliminated.border[:, :-1] ** 2) < np.sum((told.X / 0.5) ** 2)
    # the motion's share of each kind of rows, at known parameters
    own = A[:, : size + m]
    share = np.sum(own * np.linalg.solve(own.T @ own, own.T).T, axis=1)
    taken, kinds = measure_taken(found), np.array(kinds)
    for name in ("q", "tau", "bend"):
        mine = {"q": taken.position, "tau": taken.torque, "bend": taken.bend}[name]
        theirs = [share[kinds == f"{name}{j}"].sum() for j in range(n)]
        np.testing.assert_allclose(mine, theirs, rtol=1e-8)
    assert taken.instant == pytest.approx(share[kinds == "late"].sum(), rel=1e-8)


@pytest.mark.parametrize("friction", ["coulomb-viscous", "load", "stribeck"])
def test_slopes_of_the_torque_are_those_of_differences(friction):
    robot = toy.arm(3, coupled=True)
    idim = build_idim(robot, friction)
    rng = np.random.default_rng(2)
    log = prepare(read_arrays(rng.normal(size=(200, 3)), rng.normal(size=(200, 3)), rate=25.0), 2.0)
    (log,) = Problem(robot, log, friction).samples
    theta = idim.join(robot.nominal, rng.uniform(0.2, 0.4, len(idim.parameters) - idim.inertial))
    if idim.loaded:
        idim = replace(idim, bearing=tuple(theta.tolist()))
    motion, width = rng.normal(size=(3, 200, 3)), np.full(3, 0.3)
    slopes = differentiate_torque(idim, log, theta, motion, width)
    for j in range(3):
        for a in range(3):

            def torque(t, j=j, a=a):
                moved = motion.copy()
                moved[a, :, j] += t
                met = find_conditions(idim, *moved, 25.0, width)
                return idim.torque(theta, *moved, width, met)

            scale = float(np.abs(slopes[..., a]).max())
            assert_slope(torque, slopes[:, :, j, a], 1e-4, scale=scale)


@pytest.mark.parametrize("friction", ["bompos", "sigmoid", "stribeck-load", "load-square"])
def test_slopes_of_a_linearised_model_are_those_of_its_rows(friction):
    """Of shapes and strengths other than those about which it is linearised.

    Rotors are the same: combinations of them with links act through loads, and they do not.
    """
    robot, rng = toy.arm(2), np.random.default_rng(2)
    log = prepare(read_arrays(rng.normal(size=(200, 2)), rng.normal(size=(200, 2)), rate=25.0), 2.0)
    problem = Problem(robot, log, friction)
    idim = replace(problem.idim, blur=(1e-3, 1e-3))
    drives = rng.uniform(0.2, 0.4, idim.plain - idim.inertial)
    base = replace(problem.base, idim=idim).linearised(idim.join(robot.nominal, drives))
    idim, shape = base.idim, np.array(base.idim.shape[: len(base.idim.parameters) - idim.plain])
    drives[[not each.name.startswith("Ia") for each in idim.drives[: len(drives)]]] *= 1.3
    theta = idim.join(robot.nominal, np.concatenate([drives, 1.2 * shape]))
    taken = take_log(problem.samples[0], Smoothing()).log
    along = Problem.of(base, taken)
    motion, width = rng.normal(size=(3, 200, 2)), np.full(2, 0.3)
    slopes = differentiate_torque(idim, taken, theta, motion, width)
    for j in range(2):
        for a in range(3):

            def torque(t, j=j, a=a):
                moved = motion.copy()
                moved[a, :, j] += t
                found = np.zeros((200, 2))
                (stretch,) = along.along([tuple(moved)], [width]).passes()
                for rows in stretch:
                    for g, columns in enumerate(along.columns):
                        own = rows.X[g] @ (base.matrix @ theta)[columns] - rows.y[g]
                        found[rows.sample[g], g] = own
                return found

            known = slopes[:, :, j, a] * (torque(0.0) != 0.0)
            assert_slope(torque, known, 1e-4, scale=float(np.abs(slopes[..., a]).max()))


@pytest.mark.long
def test_what_comes_back_to_an_earlier_round_is_refused_there():
    problem, _ = slow_log.problem(2, seconds=8.0)
    with pytest.raises(ComputationError, match=r"smooth did not settle in \d\d? rounds; give"):
        identify(problem.with_drives("load-gain"), "smooth", bootstrap=0, doctor=False)


@pytest.mark.long
def test_friction_under_loads_settles():
    problem, _ = slow_log.problem(1, seconds=8.0)
    fit = identify(problem.with_drives("load-square"), "smooth", bootstrap=0, doctor=False)
    assert "settled in" in fit.estimate.message
    assert fit.identification[0].overall_percent < 10.0


@pytest.mark.long
def test_where_noise_is_small_it_is_maximum_likelihood():
    robot = toy.arm(2)
    clean, _ = toy.log(robot, seconds=8.0, friction="viscous", noise=0.3)
    q = clean.q + 1e-6 * np.random.default_rng(3).normal(size=clean.q.shape)
    log = replace(clean, q=q, dq=None, ddq=None, rate=clean.rate)
    thinned = replace(log, rate=100.0, q=log.q[::10], tau=log.tau[::10], segments=())
    problem = Problem(robot, prepare(thinned, 10.0, torque_hz=50.0), "viscous")
    ours, theirs = (
        estimate(problem, m, **o) for m, o in (("smooth", FREE), ("ml", {"position_std": 1e-6}))
    )
    np.testing.assert_array_less(
        np.abs(ours.beta - theirs.beta), 0.1 * theirs.covariance.std + 1e-12
    )
    np.testing.assert_allclose(ours.sigma, theirs.sigma, rtol=0.02)


@cache
def slow():
    """A jittered, quantised log with lost samples, its estimate and the truth."""
    problem, truth = slow_log.problem(1, seconds=16.0)
    found = smooth(problem, knowledge=Knowledge(prior="none"))
    return problem, found, found.residuals.motions[0], truth


@pytest.mark.long
def test_slow_quantised_jittered_logs_show_noise_motion_and_parameters():
    problem, found, motion, truth = slow()
    assert found.certificate is not None
    assert np.all(np.abs(found.beta - truth) < 4.0 * found.covariance.std)
    np.testing.assert_allclose(found.sigma, slow_log.TORQUE, rtol=0.15)
    assert "samples at their own instants" in found.message
    (log,) = problem.samples
    measured = log.sampled.q[: len(motion.q)]
    off = (motion.q - measured) / (slow_log.STEP / np.sqrt(12.0))
    assert 0.6 < np.std(off) < 1.1  # less than one by what the motion has taken
    # the motion is known better than it was measured
    assert np.median(motion.std[0]) < 0.8 * slow_log.STEP / np.sqrt(12.0)


@pytest.mark.long
def test_stamps_that_are_off_are_found_where_joints_agree_about_them():
    robot = toy.arm(3)
    q, _, _ = toy.motion(3, 20.0, rate=30.0)
    rng = np.random.default_rng(4)
    stamps = np.arange(len(q)) / 30.0 + 2e-3 * rng.uniform(-1.0, 1.0, len(q))
    at = stamps + 4e-3 * rng.normal(size=len(q))
    exact = np.column_stack([np.interp(at, np.arange(6000) / 300.0, x) for x in fine(3).T])
    measured = exact + 2e-4 * rng.normal(size=q.shape)
    for late in (True, False):
        of, time = (measured, stamps) if late else (q + 2e-3 * rng.normal(size=q.shape), None)
        begun = begin(robot, of, time)
        if late:
            assert begun.spreads.instant == pytest.approx(4e-3, rel=0.25)
        else:
            assert begun.spreads.instant * np.abs(np.diff(q, axis=0)).max() * 30.0 < 2e-3


def begin(robot, q, time=None, rate=30.0):
    """The motion by positions alone, of a log with stamps or on a clock."""
    known = {"rate": rate} if time is None else {"time": time, "clock": "stamps"}
    samples = prepare(read_arrays(q, np.zeros(q.shape), **known), 2.0)
    (log,) = Problem(robot, samples, "viscous").samples
    return fit_positions(take_log(log, Smoothing()), np.full(robot.n, np.nan))


@pytest.mark.long
def test_a_clock_is_not_doubted_where_joints_move_together():
    # from point to point in a third of a second each, as fast as knots follow just not
    rng, u = np.random.default_rng(5), np.linspace(0.0, 1.0, 9)
    points = np.cumsum(rng.normal(size=(25, 2)), axis=0)
    share = (u**3 * (10.0 - 15.0 * u + 6.0 * u**2))[:-1, None]
    q = np.vstack([a + (b - a) * share for a, b in pairwise(points)])
    assert begin(toy.arm(2), q, rate=25.0).spreads.instant < 1e-8
    even = np.arange(len(q)) / 25.0
    jitter = 1e-3 * rng.uniform(-1.0, 1.0, len(q))
    assert begin(toy.arm(2), q, even + jitter).spreads.instant > 1e-4


def fine(n):
    """The motion of `toy.motion` at 300 Hz."""
    return toy.motion(n, 20.0, rate=300.0)[0]


def test_what_was_measured_is_kept_beside_the_clock():
    problem, _ = slow_log.problem(2, seconds=8.0)
    (log,) = problem.samples
    assert log.sampled is not None
    gaps = np.diff(log.sampled.at)
    assert gaps.max() > 1.5
    assert gaps.min() < 0.9
    step = log.sampled.q / slow_log.STEP
    np.testing.assert_allclose(step, np.round(step), atol=1e-6)  # as the encoder counted
    q = np.random.default_rng(0).normal(size=(80, 2))
    time = np.arange(80) / 25.0
    time[1:-1] += 4e-3 * np.sin(np.arange(78.0))
    recording = read_arrays(q, q, time=time, clock="stamps")
    cut = recording.rows(10, 30).sampled
    assert np.all((cut.at >= 0.0) & (cut.at < 20.0))
    assert repair_recording(recording, LogRepair(offset=0.1)).sampled is None
    assert read_arrays(q, q, rate=25.0).sampled is None


@pytest.mark.long
def test_known_noise_is_taken_as_it_is():
    problem, *_ = slow()
    found = estimate(problem, "smooth", prior="none", position_std=1e-3, torque_std=[0.5, 0.6])
    np.testing.assert_array_equal(found.sigma, [0.5, 0.6])
    assert "noise of the positions 0.001," in found.message
    assert JointNoise().position_std is None


def test_positions_without_noise_are_refused():
    problem, _ = slow_log.problem(1, seconds=8.0)
    with pytest.raises(InputError, match="position_std has to be positive for smooth"):
        estimate(problem, "smooth", position_std=[1e-3, 0.0])


@pytest.mark.long
def test_fits_have_reports_and_files(tmp_path):
    problem, *_ = slow()
    fit = identify(problem, "smooth")
    assert fit.method == "smooth"
    assert fit.estimate.certificate is not None
    assert fit.estimate.residuals.motions[0].q.shape[1] == 2
    fit.save(tmp_path)
    again = read_result(tmp_path / "result.json").estimate
    assert type(again) is type(fit.estimate)
    # all but residuals, which a file has of no method
    assert to_plain(Estimate, again, FORMS) == to_plain(Estimate, fit.estimate, FORMS)
    assert "noise of the positions" in fit.estimate.message
    assert "smooth" in fit.summary()


def test_torques_that_a_law_makes_of_positions_are_refused():
    """Their errors are those of the positions."""
    recording, _ = toy.log(toy.arm(2))
    problem = Problem(toy.arm(2), prepare(replace(recording, torque="commanded"), 10.0))
    for method in ("smooth", "ml"):
        with pytest.raises(InputError, match="torque that a law makes of positions; leave law_kp"):
            estimate(problem, method)


@pytest.mark.parametrize(
    ("prepared", "friction", "message"),
    [
        ({"median": 3}, "viscous", "smooth does not take a median filter"),
        ({"derivatives": "measured"}, "viscous", "smooth does not take measured speeds"),
    ],
)
def test_what_it_cannot_do_is_refused(prepared, friction, message):
    recording, _ = toy.log(toy.arm(2))
    problem = Problem(toy.arm(2), prepare(recording, 10.0, **prepared), friction)
    with pytest.raises(InputError, match=message):
        estimate(problem, "smooth")


@pytest.mark.long
def test_friction_that_remembers_is_followed_on_the_clock():
    problem, _ = slow_log.problem(1, seconds=8.0, jitter=0.05, lost=0.0, step=1e-6)
    found = estimate(problem.with_drives("dahl-spectrum"), "smooth", bootstrap=0)
    assert "instants" in found.message
    assert "own instants" not in found.message


@pytest.mark.slow
def test_intervals_cover_on_slow_logs():
    inside = []
    for seed in range(12):
        problem, truth = slow_log.problem(seed)
        found = estimate(problem, "smooth", prior="none", bootstrap=0)
        inside.append(np.abs(found.beta - truth) < 1.96 * found.covariance.std)
    assert 0.88 < np.mean(inside) < 0.99
