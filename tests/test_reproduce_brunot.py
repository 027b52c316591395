"""The output error experiment on the TX40 twin: what the paper says, and where it holds."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from papers_text import figures_stated

from dynident.core.errors import InputError
from dynident.dynamics.whole import average_inertia
from dynident.estimators.closed_loop import build_auxiliary_model
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.simulation.loop import Loop
from dynident.simulation.record import record_rollout
from dynident.simulation.rollout import rollout
from dynident_papers import experiment
from dynident_papers.brunot2019 import build_reproduction, estimated, remarks, simulated, tables
from dynident_papers.brunot2019 import measured as measured_cases
from dynident_papers.brunot2019.estimated import (
    FEED_FORWARD,
    KINDS,
    METHODS,
    MISMATCHES,
    SIMULATING,
    measure_coulomb_bias,
)
from dynident_papers.brunot2019.simulated import NAMES, SIDE, simulate_case
from dynident_papers.measured import (
    ASKED,
    EXACT,
    FOLLOWED,
    REFERENCES,
    find_tx40_folder,
    read_tx40_log,
    solve_demand,
)
from dynident_papers.published import (
    BANDWIDTHS,
    BRUNOT,
    BRUNOT_ERRORS,
    BRUNOT_NAMES,
    BRUNOT_SINGULAR,
    build_published_sums,
)
from dynident_papers.report import (
    WIDTH,
    Reproduction,
    Table,
    blank_repeats,
    format_range,
    join_words,
    pad_row,
)
from dynident_papers.twin import load_twin


@pytest.fixture(scope="module")
def twin():
    return load_twin()


FORMS = [
    pytest.param("reduced", marks=pytest.mark.long),
    pytest.param("full", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=FORMS)
def found(request):
    return estimated.estimate_all(reduced=request.param == "reduced")


def values(found, kind, method):
    answer = found.answers[kind, method]
    assert not isinstance(answer, str), answer
    return answer


# ---- what the paper says


@pytest.mark.long
def test_positions_hold_far_less_than_torques_and_all_find_the_same(twin):
    """The shortest form, of one log: a reduced and a full one follow."""
    case = simulate_case(twin, estimated.MAIN, estimated.REDUCED)
    cloe, clie, didim = (
        estimated.estimate_case(case, "decimated", m) for m in ("cloe", "clie", "didim")
    )
    for answer in (cloe, clie, didim):
        assert not isinstance(answer, str), answer
        assert np.mean(answer.inside) > 0.9
    assert np.max(cloe.estimate.singular_values) < 1e-3 * np.max(clie.estimate.singular_values)
    assert np.all(np.abs(clie.value - didim.value) < 3.0 * np.minimum(clie.std, didim.std))
    assert np.all(np.abs(cloe.value - clie.value) < 4.0 * (cloe.std + clie.std))


def test_every_method_settles_from_rotors_alone(found):
    for answer in found.answers.values():
        assert not isinstance(answer, str), answer
    for kind in KINDS:
        start = values(found, kind, "cloe").estimate.history[0]
        of = dict(zip(NAMES, start, strict=True))
        assert {k for k, v in of.items() if v != 0.0} == {
            "Izz1R", "Izz2R", "Ia3", "Ia4", "Ia5", "Iam6",
        }  # fmt: skip
        in_paper = dict(zip(BRUNOT_NAMES, build_published_sums(NAMES) @ start, strict=True))
        assert in_paper["Ia5"] == 2.0
        assert in_paper["Iam6"] == in_paper["Ia3"] == in_paper["Izz1"] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_cloe_has_by_far_the_smallest_singular_values(found, kind):
    s = {m: values(found, kind, m).estimate.singular_values for m in SIMULATING}
    for other in ("clie", "didim"):
        assert s["cloe"][0] < 1e-3 * s[other][0]
        assert s["cloe"][-1] < 1e-3 * s[other][-1]
        assert s["cloe"][0] / s["cloe"][-1] > s[other][0] / s[other][-1]
    assert s["clie"][0] == pytest.approx(s["didim"][0], rel=0.05)


def test_positions_hardly_answer_to_the_parameters(found):
    problem = found.main.problem
    theta = problem.base.standard(values(found, "decimated", "clie").estimate.beta)
    auxiliary = build_auxiliary_model(problem, found.main.simulation)
    (before,), (after,) = auxiliary.motions(theta), auxiliary.motions(1.1 * theta)
    position = np.linalg.norm(after.q - before.q, axis=0) / np.linalg.norm(before.q, axis=0)
    torque = np.linalg.norm(after.tau - before.tau, axis=0) / np.linalg.norm(before.tau, axis=0)
    assert np.all(np.abs(torque - 0.1) < 0.03)
    assert np.all(position < 1e-3)


def test_a_feed_forward_that_is_not_known_biases_cloe_alone(found):
    bias = found.biases(FEED_FORWARD)
    assert bias["cloe"] > 10.0
    for other in ("clie", "didim"):
        assert bias[other] < 0.2 * bias["cloe"]
    truth, answers = found.mismatch(FEED_FORWARD)
    change = dict(zip(NAMES, 100.0 * (answers["cloe"].estimate.beta / truth - 1.0), strict=True))
    for name in ("fc1", "fc2", "fc3", "fc4", "fc5"):
        assert change[name] < -10.0
    assert abs(change["fcm6"]) < 1.0


def test_clie_and_didim_agree(found):
    clie, didim = (values(found, "decimated", m) for m in ("clie", "didim"))
    difference = np.abs(clie.value - didim.value)
    assert np.all(difference < 3.0 * np.minimum(clie.std, didim.std))
    assert np.all(difference < 3.0 * np.minimum(clie.robust, didim.robust))


def test_residuals_are_white_with_decimation_only(found):
    for method in METHODS:
        assert np.mean(values(found, "decimated", method).inside) > 0.9
        assert np.min(values(found, "decimated", method).inside) > 0.8
        assert np.mean(values(found, "all", method).inside) < 0.6


def test_without_decimation_the_papers_standard_deviations_are_too_small(found):
    truth = found.truth
    for method in SIMULATING:
        answer = values(found, "all", method)
        error = answer.value - truth
        papers, ours = (np.sqrt(np.mean((error / s) ** 2)) for s in (answer.std, answer.robust))
        assert papers > 3.0
        # of positions at 5 kHz an autoregression still forgets too early: twice too small there
        assert ours < (2.5 if method == "cloe" else 2.0)


def test_errors_have_the_size_of_the_papers(found):
    for method in SIMULATING:
        answer = values(found, "all", method)
        position, torque = BRUNOT_ERRORS[method]
        assert 0.5 * position < answer.position < 2.0 * position
        assert 0.5 * torque < answer.torque < 2.0 * torque
    residuals = values(found, "decimated", "ols").estimate.residuals
    squared = [float(error @ error) for error in residuals.error]
    torques = found.main.problem.factors.squared_torques
    assert 3.0 < 100.0 * np.mean(np.sqrt(squared / torques)) < 8.0


# ---- on the log of a TX40


def on_log(found, reference, essential, kind, method):
    answer = found.measured.answer(reference, essential, kind, method)
    assert not isinstance(answer, str), answer
    return answer


def test_on_the_log_torques_are_fitted_and_positions_lose_coulomb_friction(found):
    ls, clie, cloe, didim = (on_log(found, ASKED, True, "decimated", m) for m in METHODS)
    assert np.all(np.abs(clie.value - didim.value) < 3.0 * np.minimum(clie.std, didim.std))
    bias = {
        m: measure_coulomb_bias(a.value, ls.value)
        for m, a in (("clie", clie), ("cloe", cloe), ("didim", didim))
    }
    assert max(bias["clie"], bias["didim"]) < 10.0
    assert bias["cloe"] > 2.0 * max(bias["clie"], bias["didim"])
    assert cloe.position < clie.position
    assert cloe.torque > 1.5 * clie.torque
    assert np.max(cloe.estimate.singular_values) < 1e-3 * np.max(clie.estimate.singular_values)


def test_the_paper_s_finding_is_the_log_s_and_not_the_twin_s(found):
    log, twin = found.measured.answers[ASKED, True], found.answers
    counts, known = tables.count_within_of_ls(log), tables.count_within_of_ls(twin)
    assert min(counts["clie"], counts["didim"]) >= 26
    assert counts["cloe"] <= 16  # of the paper's
    assert min(known.values()) >= 26
    assert f"CLOE {counts['cloe']}" in remarks.describe_headline(found)
    text = tables.tabulate_intervals(found).text()
    assert re.search(r"paper +28 +16 +28", text)


def test_half_of_the_log_s_torque_error_is_above_the_robot_s_frequencies(found):
    for method in ("ols", "clie", "didim"):
        answer = on_log(found, ASKED, True, "decimated", method)
        assert answer.torque > 1.5 * answer.slow_torque
        assert 0.7 * 6.95 < answer.slow_torque < 1.4 * 6.95
    log = found.measured.bench.full.samples[0]
    assert np.max(tables.measure_share_above(log, 500.0)) > 5.0


def test_torque_errors_are_shared_out_by_band_and_by_row(twin):
    rate, samples = 1000.0, 4000
    time = np.arange(samples) / rate
    tone, ripple = 20.0 * np.sin(2.0 * np.pi * time), np.sin(2.0 * np.pi * 100.0 * time)
    q = np.tile(np.cos(2.0 * np.pi * 0.5 * time)[:, None], (1, 6))
    tau = np.tile((tone + ripple)[:, None], (1, 6))
    recording = Recording("tones", rate, q, tau)
    log = prepare(recording, bandwidth=simulated.BANDWIDTH, drop_below=1.0)
    found = estimated.measure_torque_errors(log, 0.9 * np.tile(tone[:, None], (1, 6)))
    norm = np.sqrt(401.0)
    np.testing.assert_allclose(found.whole, 100.0 * np.sqrt(5.0) / norm, rtol=0.02)
    np.testing.assert_allclose(found.fast, 100.0 / norm, rtol=0.02)
    np.testing.assert_allclose(found.slow, 200.0 / norm, rtol=0.02)
    np.testing.assert_allclose(found.resting**2 + found.moving**2, found.slow**2)
    assert np.all(found.resting > 0.0)
    assert np.all(found.moving > found.resting)


def test_above_20_hz_the_log_s_torque_is_all_error(found):
    """No rigid robot has it: what CLIE leaves there is what is logged there."""
    own = tables.list_error_sources(found)[f"log, {ASKED}"]
    logged = tables.measure_share_above(found.measured.bench.full.samples[0], estimated.LOW_PASS)
    np.testing.assert_allclose(own["clie"].torques.fast, logged, rtol=0.1)
    (table,) = tables.tabulate_error_shares(found)
    assert f"{np.mean(own['clie'].torques.slow):.1f}" in table.text()
    words = remarks.describe_torque_errors(found)
    assert f"{np.mean(own['ols'].torques.moving):.1f} % of LS's" in words
    # by the model along the measured motion, without any loop, no less is left below it
    assert np.mean(own["ols"].torques.slow) > 0.85 * np.mean(own["clie"].torques.slow)


def test_the_log_rejects_that_the_28_are_all(found):
    assert found.measured.test.rejected
    assert found.measured.test.distribution.startswith("F(32, ")
    assert "rejects" in remarks.describe_essential_set(found)


def test_the_whole_log_run_tells_reference_and_inverted_matrix(found):
    if (EXACT, True) not in found.measured.answers:  # of the reduced form
        assert remarks.describe_references(found) is None
        assert remarks.describe_inverted_matrices(found) is None
        return
    error = {r: on_log(found, r, True, "decimated", "clie").position for r in REFERENCES}
    assert error[EXACT] < 0.5 * error[ASKED] < 0.25 * error[FOLLOWED]
    same, other = (on_log(found, EXACT, False, "decimated", m) for m in ("clie", "cloe"))
    assert np.all(np.abs(same.value - other.value) < 3.0 * (same.std + other.std))
    assert "nearest those of 60" in remarks.describe_inverted_matrices(found)


def test_without_the_log_the_report_says_so(found):
    text = build_reproduction(
        replace(found, measured=estimated.MeasuredResults(missing="x"))
    ).text()
    assert "Log: left out: x." in text
    assert "log, 28" not in text


# ---- where it does not hold


def test_a_mismatch_of_friction_moves_cloe_and_clie_alike(found):
    bias = found.biases(MISMATCHES[5])
    assert MISMATCHES[5].stribeck > 0.0
    assert bias["clie"] > 3.0
    assert 0.7 * bias["clie"] < bias["cloe"] < 1.3 * bias["clie"]


def test_slow_rows_bias_what_regresses_on_the_sign_of_a_measured_speed(found):
    dropped, kept = (found.biases(setting) for setting in MISMATCHES[:2])
    assert MISMATCHES[1].slow == 0.0
    assert kept["ols"] > 5.0
    assert dropped["ols"] < 1.5
    # these have the simulation's smooth sign
    for method in ("didim", "clie", "cloe"):
        assert max(kept[method], dropped[method]) < 0.1


def test_white_noise_of_the_log_leaves_residuals_white_anyway(found):
    answers = next(a for s, _, a in found.noises if s.log_noise > 0.0)
    for answer in answers.values():
        assert np.mean(answer.inside) > 0.9


def test_the_28_are_essential_only_where_the_others_are_zero(found):
    for setting, test, answers in found.noises:
        assert test.rejected is not setting.essential
        worst = min(np.min(a.inside) for k, a in answers.items() if k[0] == "decimated")
        assert bool(worst > 0.8) is setting.essential


# ---- the pieces


def biases_of_full(twin, setting):
    case = simulate_case(twin, replace(setting, disturbance=0.0), SIDE)
    answers = {m: estimated.estimate_case(case, "decimated", m, "least-squares") for m in METHODS}
    return {m: measure_coulomb_bias(a.estimate.beta, case.truth) for m, a in answers.items()}


@pytest.mark.slow
def test_only_errors_of_the_controller_move_cloe_alone(twin):
    for setting in MISMATCHES:
        bias = biases_of_full(twin, setting)
        unknown_law = setting.kp != 1.0 or setting.feed_forward or np.isfinite(setting.integral)
        alone = bias["cloe"] > 5.0 * bias["clie"] + 1.0
        assert bool(alone) is bool(unknown_law), setting.label


def test_published_tables():
    assert len(BRUNOT_NAMES) == len(NAMES) == 28
    assert BRUNOT_NAMES["Iam6"] == "ia6"
    assert BRUNOT["decimated", "ols"]["fc6"] == (0.30, 32.9)
    assert BRUNOT["all", "cloe"]["fc6"].value == 0.04
    assert BRUNOT["decimated", "cloe"]["fc6"] == (0.042, 315.0)
    assert BRUNOT["all", "didim"]["fcm6"].value == 1.92
    assert BRUNOT["decimated", "didim"]["Izz1"].percent == 1.23
    assert BRUNOT["all", "clie"]["mx4"].percent == 3.40
    assert BRUNOT["decimated", "ols"]["Ixx2"].std == pytest.approx(0.48 * 0.0328)
    for key, (largest, smallest, condition) in BRUNOT_SINGULAR.items():
        assert largest / smallest == pytest.approx(condition, rel=0.05), key


def test_published_sums_are_those_of_the_coupled_drive():
    names = ("fv5", "fvm6", "Izz1R", "Ia5R", "Iam6", "fv6")
    summed = build_published_sums(names) @ np.array([1.0, 10.0, 100.0, 2.0, 20.0, 3.0])
    np.testing.assert_array_equal(summed, [11.0, 10.0, 100.0, 22.0, 20.0, 13.0])
    np.testing.assert_array_equal(build_published_sums(("fv5", "Ia5")), np.eye(2))


def test_the_twin_is_the_papers_robot(twin):
    _, truth = simulated.choose_plant_values(twin, essential=True)
    rounding = 0.005
    published = BRUNOT["decimated", "ols"].values()
    for ours, theirs in zip(build_published_sums(NAMES) @ truth, published, strict=True):
        assert abs(ours - theirs.value) < 2.0 * theirs.std + rounding


def test_the_reference_is_the_published_motion(twin):
    reference, limits = (
        experiment.build_tx40_reference(twin, 1000.0, 8.0),
        experiment.list_top_speeds(twin),
    )
    assert len(reference.q) == 8000
    speed = np.abs(reference.dq)
    assert np.all(speed <= limits * (1.0 + 1e-9))
    assert np.all(np.max(speed, axis=0) > 0.9 * limits)
    for point in experiment.POINTS:
        assert np.min(np.max(np.abs(reference.q - point), axis=1)) < 1e-3
    still = np.flatnonzero(np.sum(speed, axis=1) < 1e-9)
    assert 7.3 < still[still > 7000][0] / 1000.0 < 7.5
    short = experiment.build_tx40_reference(twin, 1000.0, 2.0)
    np.testing.assert_allclose(short.q, reference.q[:2000], atol=1e-12)


def test_gains_for_a_bandwidth_have_it(twin):
    hertz = np.array(BANDWIDTHS)
    controller = experiment.build_bandwidth_controller(twin, hertz, damping=np.sqrt(0.5))
    J, w = experiment.average_twin_inertia(twin), 2.0 * np.pi * hertz
    kp, kd = -controller.gain * controller.D[:, 3], -controller.gain * controller.D[:, 4]
    closed = kp / (-J * w**2 + 1j * w * kd + kp)
    np.testing.assert_allclose(np.abs(closed), np.sqrt(0.5), rtol=1e-9)
    half = experiment.build_twin_controller(twin, scale=0.5)
    np.testing.assert_allclose(half.D[:, 3], -0.25 * twin.kp)
    np.testing.assert_allclose(half.D[:, 4], -0.5 * twin.kd)


def test_the_mean_inertia_is_what_unit_accelerations_ask_for(twin):
    q = np.random.default_rng(4).uniform(-2.0, 2.0, (20, 6))
    rest = np.zeros_like(q)
    still = twin.idim.torque(twin.theta, q, rest, rest)
    expected = [
        np.mean((twin.idim.torque(twin.theta, q, rest, rest + np.eye(6)[j]) - still)[:, j])
        for j in range(6)
    ]
    np.testing.assert_allclose(average_inertia(twin.idim, twin.theta, q), expected, rtol=1e-9)


def test_the_actual_controller_is_the_assumed_one_where_nothing_is_said(twin):
    assumed = experiment.build_twin_controller(twin)
    actual = simulated.build_actual_controller(assumed, estimated.MAIN)
    np.testing.assert_array_equal(actual.D, assumed.D)
    assert not np.any(actual.B)
    lower = simulated.build_actual_controller(
        assumed, replace(estimated.MAIN, kp=0.9, integral=3.0)
    )
    np.testing.assert_allclose(lower.D[:, 3], 0.9 * assumed.D[:, 3])
    rate = experiment.CONTROL_RATE
    np.testing.assert_allclose(np.abs(lower.B[:, 0, 0]), 0.9 * twin.kp / 3.0 / rate)


def test_random_torques_have_their_size_and_their_corner(twin):
    reference = experiment.build_tx40_reference(twin, 2000.0, 60.0)
    rms = np.array([1.0, 5.0])
    torque = experiment.draw_disturbance(rms, reference, 50.0, seed=3)
    np.testing.assert_allclose(np.std(torque, axis=0), rms, rtol=0.05)
    step = np.mean(torque[1:] * torque[:-1], axis=0) / np.mean(torque**2, axis=0)
    np.testing.assert_allclose(step, np.exp(-2.0 * np.pi * 50.0 / 2000.0), atol=0.02)
    again = experiment.draw_disturbance(rms, reference, 50.0, seed=3)
    np.testing.assert_array_equal(torque, again)


def test_a_record_is_what_its_sensors_see(twin):
    reference = experiment.build_tx40_reference(twin, 1000.0, 0.5)
    noise = np.array([0.5, 0.5, 0.2, 0.1, 0.1, 0.1])
    loop = Loop(
        twin.idim,
        experiment.build_twin_controller(twin),
        reference,
        width=0.01 * experiment.list_top_speeds(twin),
        substeps=5,
    )
    sensors = experiment.build_encoders(twin, count=0.02, torque=noise, seed=5)
    found = record_rollout(loop, twin.theta, sensors, "half a second")
    log, motion = found.recording, found.motion
    assert log.name == "half a second"
    steps = log.q / np.radians(0.02)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    np.testing.assert_allclose(log.q, motion.q, atol=np.radians(0.0101))
    np.testing.assert_allclose(np.std(log.tau - motion.tau, axis=0), noise, rtol=0.2)
    np.testing.assert_array_equal(log.qref, reference.q)
    np.testing.assert_array_equal(log.dqref, reference.dq)
    # the controller sees the counts, and no noise of another loop
    again = rollout(replace(loop, count=sensors.count), twin.theta)
    np.testing.assert_array_equal(again.q, motion.q)
    shaken = replace(loop, noise=np.full(reference.q.shape, 1e-3))
    np.testing.assert_array_equal(record_rollout(shaken, twin.theta, sensors).motion.q, motion.q)
    noisy = replace(sensors, position=np.full(6, 1e-4))
    seen = record_rollout(loop, twin.theta, noisy)
    assert np.all(np.std(seen.motion.tau - motion.tau, axis=0) > 0.0)


def test_the_demand_of_a_log_is_what_its_controller_was_asked_for(twin):
    reference = experiment.build_tx40_reference(twin, 5000.0, 0.9)
    loop = Loop(
        twin.idim,
        experiment.build_twin_controller(twin),
        reference,
        width=0.01 * experiment.list_top_speeds(twin),
    )
    log = record_rollout(loop, twin.theta, experiment.build_encoders(twin)).recording
    follows = np.sqrt(np.mean((log.q - reference.q) ** 2, axis=0))
    found = np.sqrt(np.mean((solve_demand(twin, log) - reference.q) ** 2, axis=0))
    assert np.all(found < 0.05 * follows)
    # and what is made of moves is nearer the reference where it is of the demand
    asked, followed, exact = (
        np.sqrt(np.mean((REFERENCES[name](twin, log).q - reference.q) ** 2))
        for name in (ASKED, FOLLOWED, EXACT)
    )
    assert asked < 0.5 * followed
    assert exact < followed


def test_the_measured_log_is_the_example_s(tmp_path):
    log = read_tx40_log(1000)
    assert log.recording.q.shape == log.recording.tau.shape == (1000, 6)
    assert log.recording.rate == 5000.0
    with pytest.raises(InputError, match="the source distribution has it"):
        find_tx40_folder(tmp_path)


def test_inside_counts_what_white_residuals_keep():
    rng = np.random.default_rng(0)
    white = rng.standard_normal(5000)
    assert estimated.measure_white_share(white) > 0.85
    assert estimated.measure_white_share(np.cumsum(white)) < 0.1


# ---- the report


def test_the_report_fits_a_page(found):
    text = build_reproduction(found).text()
    assert max(len(line) for line in text.split("\n")) <= WIDTH
    for title in ("Table 1a", "Table 2", "Table 3", "Table 4b", "Table 5", "Table 8", "Remarks"):
        assert title in text
    assert "failed" not in text
    assert "nan" not in text


def test_no_remark_states_a_figure_of_its_own():
    assert figures_stated(remarks) == []


def test_remarks_tell_of_this_run(found):
    words = remarks.describe_cloe_bias(found)
    assert f"CLOE alone is moved by {MISMATCHES[0].label}" not in words
    assert FEED_FORWARD.label in words.split("Whatever else")[0]
    # were it CLIE that the feed-forward moves, the remark would not say so of CLOE
    swapped = tuple(
        (s, t, {**a, "clie": a["cloe"], "cloe": a["clie"]}) for s, t, a in found.mismatches
    )
    other = remarks.describe_cloe_bias(replace(found, mismatches=swapped))
    assert "CLOE alone" not in other
    bias = found.biases(MISMATCHES[1])["ols"]
    assert f"by {bias:.1f} % where they are kept" in remarks.describe_slow_rows(found)
    counts = [group.rows for group in found.main.problem.factors.groups]
    assert format_range(counts, ".0f") in remarks.describe_row_counts(found)


def test_what_a_run_does_not_hold_is_left_out(found):
    designed = any(setting.designed for setting, _, _ in found.mismatches)
    assert ("nearer the paper's" in remarks.describe_twin_controller(found)) is designed
    less = replace(found, mismatches=(), noises=found.noises[:1])
    assert remarks.describe_plant(less) is None
    assert remarks.describe_cloe_bias(less) is None
    assert "kept" not in remarks.describe_slow_rows(less)


def test_a_method_that_fails_is_printed(found):
    broken = dict(found.answers)
    for kind in KINDS:
        broken[kind, "cloe"] = "no step lowers the error"
    mismatches = tuple((s, t, {**a, "cloe": "no"}) for s, t, a in found.mismatches)
    text = build_reproduction(replace(found, answers=broken, mismatches=mismatches)).text()
    assert "CLOE on rows 'decimated' failed: no step lowers the error." in text
    assert "failed" in text.split("Remarks")[0]
    assert "nan" not in text


def test_differences_take_as_many_simulations_as_the_paper(found):
    exact, slopes = found.answers["decimated", "clie"], estimated.SlopeOptions("differences")
    answer = estimated.estimate_case(found.main, "decimated", "clie", slopes=slopes)
    assert np.all(np.abs(answer.value - exact.value) < 0.05 * exact.std)
    rollouts = int(re.search(r"(\d+) rollouts", answer.estimate.message)[1])
    assert rollouts == 29 * int(re.search(r"(\d+) rollouts", exact.estimate.message)[1])
    text = build_reproduction(replace(found, differences={"clie": answer}), timed=True).text()
    assert "twin, differences" in text
    assert "CLIE by differences, as there: settled in" in " ".join(text.split())


@pytest.mark.long
def test_progress_reaches_the_end(monkeypatch):
    monkeypatch.setattr(
        estimated,
        "simulate_case",
        lambda twin, setting, scale: simulated.SimulatedCase(*[None] * 4),
    )
    monkeypatch.setattr(measured_cases.Bench, "case", lambda *args, **kwargs: None)
    monkeypatch.setattr(estimated, "estimate_case", lambda *args, **kwargs: "not tried")
    monkeypatch.setattr(estimated, "evaluate_essential_test", lambda case: None)
    for reduced in (True, False):
        shares = []
        estimated.estimate_all(
            lambda stage, share, shares=shares: shares.append(share), reduced, not reduced
        )
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


def test_words_and_rows():
    assert join_words(["a"]) == "a"
    assert join_words(["a", "b", "c"]) == "a, b and c"
    assert format_range([2.0, 1.0], ".1f") == "1.0 to 2.0"
    assert format_range([1.01, 1.02]) == "1.0"
    assert pad_row(("a",), 3) == ("a", "", "")
    rows = [("1", "x", "p"), ("1", "x", "q"), ("1", "y", "p"), ("2", "y", "p")]
    assert [row[:2] for row in blank_repeats(rows, 1, 1)] == [
        ("1", "x"), ("", ""), ("", "y"), ("2", "y"),
    ]  # fmt: skip
    assert [row[:2] for row in blank_repeats(rows, 2)] == [
        ("1", "x"), ("", ""), ("1", "y"), ("2", "y"),
    ]  # fmt: skip


def test_tables_are_set_in_columns():
    table = Table("T", ("name", "long\nheader"), (("a", "1.0"), ("bcd", "-10.0")), ("A note.",))
    assert table.text().split("\n") == [
        "T", "", "        long", "name  header", "----  ------", "a        1.0", "bcd    -10.0", "",
        "A note.",
    ]  # fmt: skip
    with pytest.raises(InputError, match="a row has 1 cells, the header 2"):
        Table("T", ("a", "b"), (("x",),)).text()
    with pytest.raises(InputError, match="wider than 80 columns"):
        Table("T", ("a", "b"), (("x" * 50, "y" * 30),)).text()
    tight = Table("T", ("a", "b"), (("x" * 49, "y" * 30),)).text()
    assert len(tight.split("\n")[-1]) == 80
    report = Reproduction("Title", (table,), ("word " * 30,))
    assert report.text().endswith("\n")
    assert max(map(len, report.text().split("\n"))) <= 80
