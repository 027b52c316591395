"""The output error experiment on the TX40 twin: what the paper says, and where it holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynident.core.errors import InputError
from dynident.estimators.closed_loop import auxiliary_model
from dynident.simulation.rollout import rollout
from dynident_papers import brunot2019, cases, comparison, experiment
from dynident_papers.brunot2019 import NAMES, PAPER_NAMES, STD, VALUES, reported
from dynident_papers.cases import SIDE, made
from dynident_papers.comparison import FEED_FORWARD, KINDS, METHODS, coulomb_bias, paper_sums
from dynident_papers.tables import WIDTH, Reproduction, Table
from dynident_papers.twin import load_twin

SIMULATING = METHODS[1:]


@pytest.fixture(scope="module")
def twin():
    return load_twin()


@pytest.fixture(scope="module", params=["reduced", pytest.param("full", marks=pytest.mark.slow)])
def found(request):
    return comparison.results(reduced=request.param == "reduced")


def values(found, kind, method):
    answer = found.answers[kind, method]
    assert not isinstance(answer, str), answer
    return answer


def biases(found, label):
    ((truth, answers),) = [(t, a) for s, t, a in found.mismatches if s.label == label]
    return {m: coulomb_bias(answers[m].estimate.beta, truth) for m in METHODS}


# ---- what the paper says


def test_every_method_settles_from_rotors_alone(found):
    for answer in found.answers.values():
        assert not isinstance(answer, str), answer
    for kind in KINDS:
        start = values(found, kind, "cloe").estimate.history[0]
        of = dict(zip(NAMES, start, strict=True))
        assert {k for k, v in of.items() if v != 0.0} == {
            "Izz1R", "Izz2R", "Ia3", "Ia4", "Ia5", "Iam6",
        }  # fmt: skip
        in_paper = dict(zip(PAPER_NAMES, paper_sums() @ start, strict=True))
        assert in_paper["ia5"] == 2.0
        assert in_paper["ia6"] == in_paper["ia3"] == in_paper["zz1r"] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_cloe_has_by_far_the_smallest_singular_values(found, kind):
    s = {m: values(found, kind, m).estimate.singular_values for m in SIMULATING}
    for other in ("clie", "didim"):
        assert s["cloe"][0] < 1e-3 * s[other][0]
        assert s["cloe"][-1] < 1e-3 * s[other][-1]
        assert s["cloe"][0] / s["cloe"][-1] > s[other][0] / s[other][-1]
    assert s["clie"][0] == pytest.approx(s["didim"][0], rel=0.05)


def test_positions_hardly_answer_to_the_parameters(found):
    beta = values(found, "decimated", "clie").estimate.beta
    auxiliary = auxiliary_model(found.main.problem, found.main.simulation)
    (before,), (after,) = auxiliary.motions(beta), auxiliary.motions(1.1 * beta)
    position = np.linalg.norm(after.q - before.q, axis=0) / np.linalg.norm(before.q, axis=0)
    torque = np.linalg.norm(after.tau - before.tau, axis=0) / np.linalg.norm(before.tau, axis=0)
    assert np.all(np.abs(torque - 0.1) < 0.03)
    assert np.all(position < 1e-3)


def test_a_feed_forward_that_is_not_known_biases_cloe_alone(found):
    bias = biases(found, FEED_FORWARD.label)
    assert bias["cloe"] > 10.0
    for other in ("clie", "didim"):
        assert bias[other] < 0.2 * bias["cloe"]
    ((truth, answers),) = [(t, a) for s, t, a in found.mismatches if s is FEED_FORWARD]
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
    truth = paper_sums() @ found.main.truth
    for method in SIMULATING:
        answer = values(found, "all", method)
        error = answer.value - truth
        assert np.sqrt(np.mean((error / answer.std) ** 2)) > 3.0
        assert np.sqrt(np.mean((error / answer.robust) ** 2)) < 2.0


def test_errors_have_the_size_of_the_papers(found):
    for method in SIMULATING:
        answer = values(found, "all", method)
        position, torque = brunot2019.DIRECT[method]
        assert 0.5 * position < answer.position < 2.0 * position
        assert 0.5 * torque < answer.torque < 2.0 * torque
    residuals = values(found, "decimated", "ols").estimate.residuals
    squared = [float(error @ error) for error in residuals.error]
    torques = found.main.problem.factors.squared_torques
    assert 3.0 < 100.0 * np.mean(np.sqrt(squared / torques)) < 8.0


# ---- where it does not hold


def test_a_mismatch_of_friction_moves_cloe_and_clie_alike(found):
    bias = biases(found, "Stribeck effect of +30 %")
    assert bias["clie"] > 3.0
    assert 0.7 * bias["clie"] < bias["cloe"] < 1.3 * bias["clie"]


def test_slow_rows_bias_what_regresses_on_the_sign_of_a_measured_speed(found):
    kept, dropped = biases(found, "nothing; slow rows are kept"), biases(found, "nothing")
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
    case = made(twin, replace(setting, disturbance=0.0), SIDE)
    answers = {m: comparison.answered(case, "decimated", m, "least-squares") for m in METHODS}
    return {m: coulomb_bias(a.estimate.beta, case.truth) for m, a in answers.items()}


@pytest.mark.slow
def test_only_errors_of_the_controller_move_cloe_alone(twin):
    for setting in comparison.MISMATCHES:
        bias = biases_of_full(twin, setting)
        unknown_law = setting.kp != 1.0 or setting.feed_forward or np.isfinite(setting.integral)
        alone = bias["cloe"] > 5.0 * bias["clie"] + 1.0
        assert bool(alone) is bool(unknown_law), setting.label


def test_published_tables():
    assert len(PAPER_NAMES) == len(NAMES) == 28
    of = {key: dict(zip(PAPER_NAMES, column, strict=True)) for key, column in VALUES.items()}
    std = {key: dict(zip(PAPER_NAMES, column, strict=True)) for key, column in STD.items()}
    assert of["decimated", "ols"]["fc6"] == 0.30
    assert of["all", "cloe"]["fc6"] == 0.04
    assert of["decimated", "cloe"]["fc6"] == 0.042
    assert std["decimated", "cloe"]["fc6"] == 315.0
    assert of["all", "didim"]["fcm6"] == 1.92
    assert std["decimated", "didim"]["zz1r"] == 1.23
    assert std["all", "clie"]["mx4"] == 3.40
    for key, (largest, smallest, condition) in brunot2019.FIGURES.items():
        assert largest / smallest == pytest.approx(condition, rel=0.05), key


def test_the_twin_is_the_papers_robot(twin):
    _, truth = cases.plant_values(twin, essential=True)
    published, std = VALUES["decimated", "ols"], STD["decimated", "ols"]
    rounding = 0.005
    error = np.abs(paper_sums() @ truth - published)
    assert np.all(error < 2.0 * np.abs(published) * std / 100.0 + rounding)


def test_the_reference_is_the_published_motion():
    reference = experiment.tx40_reference(1000.0, 8.0)
    assert len(reference.q) == 8000
    speed = np.abs(reference.dq)
    assert np.all(speed <= experiment.VELOCITY * (1.0 + 1e-9))
    assert np.all(np.max(speed, axis=0) > 0.9 * experiment.VELOCITY)
    for point in experiment.POINTS:
        assert np.min(np.max(np.abs(reference.q - point), axis=1)) < 1e-3
    still = np.flatnonzero(np.sum(speed, axis=1) < 1e-9)
    assert 7.3 < still[still > 7000][0] / 1000.0 < 7.5
    short = experiment.tx40_reference(1000.0, 2.0)
    np.testing.assert_allclose(short.q, reference.q[:2000], atol=1e-12)


def test_gains_for_a_bandwidth_have_it(twin):
    hertz = np.array([10.0, 10.0, 10.0, 20.0, 20.0, 20.0])
    controller = experiment.bandwidth_controller(twin, hertz, damping=np.sqrt(0.5))
    J, w = experiment.mean_inertia(twin), 2.0 * np.pi * hertz
    kp, kd = -controller.gain * controller.D[:, 3], -controller.gain * controller.D[:, 4]
    closed = kp / (-J * w**2 + 1j * w * kd + kp)
    np.testing.assert_allclose(np.abs(closed), np.sqrt(0.5), rtol=1e-9)
    half = experiment.twin_controller(twin, scale=0.5)
    np.testing.assert_allclose(half.D[:, 3], -0.25 * twin.kp)
    np.testing.assert_allclose(half.D[:, 4], -0.5 * twin.kd)


def test_the_actual_controller_is_the_assumed_one_where_nothing_is_said(twin):
    assumed = experiment.twin_controller(twin)
    actual = cases.actual_controller(assumed, comparison.MAIN)
    np.testing.assert_array_equal(actual.D, assumed.D)
    assert not np.any(actual.B)
    lower = cases.actual_controller(assumed, replace(comparison.MAIN, kp=0.9, integral=3.0))
    np.testing.assert_allclose(lower.D[:, 3], 0.9 * assumed.D[:, 3])
    rate = experiment.CONTROL_RATE
    np.testing.assert_allclose(np.abs(lower.B[:, 0, 0]), 0.9 * twin.kp / 3.0 / rate)


def test_random_torques_have_their_size_and_their_corner():
    reference = experiment.tx40_reference(2000.0, 60.0)
    rms = np.array([1.0, 5.0])
    torque = experiment.disturbance(rms, reference, 50.0, seed=3)
    np.testing.assert_allclose(np.std(torque, axis=0), rms, rtol=0.05)
    step = np.mean(torque[1:] * torque[:-1], axis=0) / np.mean(torque**2, axis=0)
    np.testing.assert_allclose(step, np.exp(-2.0 * np.pi * 50.0 / 2000.0), atol=0.02)
    again = experiment.disturbance(rms, reference, 50.0, seed=3)
    np.testing.assert_array_equal(torque, again)


def test_a_run_logs_what_its_sensors_see(twin):
    reference = experiment.tx40_reference(1000.0, 0.5)
    noise = np.array([0.5, 0.5, 0.2, 0.1, 0.1, 0.1])
    trial = experiment.Experiment(
        twin,
        experiment.twin_controller(twin),
        reference,
        experiment.encoders(twin, count=0.02, torque=noise, seed=5),
        0.01 * experiment.VELOCITY,
        substeps=5,
    )
    run = experiment.run_experiment(trial, "half a second")
    steps = run.recording.q / np.radians(0.02)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    np.testing.assert_allclose(run.recording.q, run.motion.q, atol=np.radians(0.0101))
    np.testing.assert_allclose(np.std(run.recording.tau - run.motion.tau, axis=0), noise, rtol=0.2)
    np.testing.assert_array_equal(run.recording.qref, reference.q)
    again = rollout(trial.loop, twin.theta)
    np.testing.assert_array_equal(again.q, run.motion.q)


def test_inside_counts_what_white_residuals_keep():
    rng = np.random.default_rng(0)
    white = rng.standard_normal(5000)
    assert comparison.inside(white) > 0.85
    assert comparison.inside(np.cumsum(white)) < 0.1


# ---- the report


def test_the_report_fits_a_page(found):
    text = reported(found).text()
    assert max(len(line) for line in text.split("\n")) <= WIDTH
    for title in ("Table 1a", "Table 2", "Table 3", "Table 4b", "Table 5", "Table 8", "Remarks"):
        assert title in text
    assert "failed" not in text
    assert "nan" not in text


def test_a_method_that_fails_is_printed(found):
    broken = dict(found.answers)
    for kind in KINDS:
        broken[kind, "cloe"] = "no step lowers the error"
    mismatches = tuple((s, t, {**a, "cloe": "no"}) for s, t, a in found.mismatches)
    text = reported(replace(found, answers=broken, mismatches=mismatches)).text()
    assert "CLOE on rows 'decimated' failed: no step lowers the error." in text
    assert "failed" in text.split("Remarks")[0]
    assert "nan" not in text


def test_progress_reaches_the_end(monkeypatch):
    monkeypatch.setattr(comparison, "made", lambda twin, setting, scale: cases.Case(*[None] * 4))
    monkeypatch.setattr(comparison, "answered", lambda *args, **kwargs: "not tried")
    monkeypatch.setattr(comparison, "essential_test", lambda case: None)
    for reduced in (True, False):
        shares = []
        comparison.results(lambda stage, share, shares=shares: shares.append(share), reduced)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


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
