"""The survey's simulation on an arm of its robot's class: its patterns."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynident.core.inertia import find_smallest_eigenvalue, is_consistent, to_com
from dynident.core.progress import ignore_progress
from dynident.dynamics.base import base_parameters
from dynident_papers.published import (
    ZHANG,
    ZHANG_ERRORS,
    ZHANG_LEVELS,
    ZHANG_MODELS,
    ZHANG_NAMES,
    ZHANG_POSITIONS,
    ZHANG_STRIBECK,
    ZHANG_STRIBECK_ERRORS,
    ZHANG_STRIBECK_NAMES,
)
from dynident_papers.report import WIDTH
from dynident_papers.zhang2018 import build_reproduction
from dynident_papers.zhang2018.estimated import (
    BY_CRITERION,
    Results,
    build_undecimated_problem,
    estimate_all,
    grade_error,
    judge_parameters,
    list_link_parameters,
    make_method_solver,
    measure_estimate_errors,
    search_in_ranges,
)
from dynident_papers.zhang2018.instance import METHOD, MODELS, QUICK, fit_friction_models
from dynident_papers.zhang2018.simulated import (
    BELIEF,
    COULOMB,
    JOINT,
    LARGEST_SPEED,
    NOISE,
    SPEED,
    STATIC,
    VISCOUS,
    choose_trajectory,
    load_arm,
    simulate_exact_log,
    simulate_noisy_torque_log,
)
from dynident_papers.zhang2018.tables import draw_figures

BASE = ("ols", "wls", "irls", "kf", "rls")


@cache
def results() -> Results:
    return estimate_all(ignore_progress, reduced=True)


def test_published_tables_are_of_one_size():
    assert all(len(column) == len(ZHANG_NAMES) for column in ZHANG.values())
    assert all(len(column) == len(ZHANG_STRIBECK_NAMES) for column in ZHANG_STRIBECK.values())
    for column in (*ZHANG_ERRORS.values(), *ZHANG_STRIBECK_ERRORS.values()):
        for part in (column[:5], column[5:10]):
            assert part[4] == pytest.approx(sum(part[:4]), abs=2e-3)
        assert column[10] == pytest.approx((column[9] - column[4]) / column[4], abs=1e-3)
    for levels in ZHANG_LEVELS.values():
        assert re.fullmatch(r"([ABC] ){4}[ABC]", levels)
    for filtered, raw, change in ZHANG_POSITIONS.values():
        assert change == pytest.approx((raw - filtered) / filtered, abs=1e-3)


def test_the_published_body_cannot_be_and_the_set_one_can():
    arm = load_arm()
    published, found = arm.published.nominal[JOINT], arm.robot.nominal[JOINT]
    np.testing.assert_allclose(list_link_parameters(published), ZHANG["set"][:10], atol=1e-12)
    assert np.linalg.eigvalsh(to_com(published)[2])[0] == pytest.approx(-0.016, abs=1e-3)
    assert find_smallest_eigenvalue(published) < 0.0 < find_smallest_eigenvalue(found)
    assert is_consistent(arm.robot.nominal)
    assert is_consistent(arm.believed.nominal)
    others = [k for k in range(6) if k != JOINT]
    np.testing.assert_allclose(arm.robot.nominal[others], arm.published.nominal[others], rtol=1e-6)


def test_trajectories_are_the_best_of_those_that_are_tried():
    arm = load_arm()
    reference = choose_trajectory(arm, 2)
    assert reference.q.shape == (1000, 6)
    np.testing.assert_allclose(np.abs(reference.dq).max(axis=0), LARGEST_SPEED)
    noise = (
        simulate_noisy_torque_log(arm, reference, 0).tau - simulate_exact_log(arm, reference).tau
    )
    np.testing.assert_allclose(noise.std(axis=0), NOISE, rtol=0.1)


def test_a_belief_and_constraints_tell_what_a_motion_does_not():
    """The shortest form, of one log: that of all methods follows."""
    arm = load_arm()
    reference = choose_trajectory(arm, 4)
    own = build_undecimated_problem(arm.believed, simulate_noisy_torque_log(arm, reference, seed=1))
    ols, bounded = (
        measure_estimate_errors(arm, reference, own, make_method_solver(own, m), False)
        for m in ("ols", "pc-idim-ls")
    )
    assert ols.inertial > 10.0
    assert max(ols.friction, bounded.friction) < 0.02
    assert bounded.overall < ols.overall / 20.0
    assert arm.idim.is_consistent(bounded.theta)


@pytest.mark.long
@pytest.mark.parametrize("method", BASE)
def test_base_methods_are_right_on_friction_and_far_off_on_inertia(method):
    clean, noisy = results().clean[method], results().noisy[method]
    assert clean.friction < 1e-5
    assert noisy.friction < 0.02
    assert clean.inertial > 10.0
    assert noisy.inertial > 10.0
    assert clean.torque < 1e-6


@pytest.mark.long
def test_all_searches_by_the_surveys_criterion_have_an_answer():
    arm, failures = load_arm(), []
    log = simulate_noisy_torque_log(arm, choose_trajectory(arm, 4), 0)
    own = build_undecimated_problem(arm.robot, log)
    found = search_in_ranges(arm, own, True, failures, "noisy")
    assert not failures
    assert set(BY_CRITERION) <= set(found)
    assert all(arm.idim.is_consistent(found[method][1]) for method in BY_CRITERION)


@pytest.mark.long
def test_constraints_and_a_belief_give_the_standard_parameters():
    clean, noisy = results().clean["pc-idim-ls"], results().noisy["pc-idim-ls"]
    assert clean.inertial < 0.2
    assert noisy.overall < results().noisy["ols"].overall / 20.0
    assert noisy.friction < 0.02
    assert results().arm.idim.is_consistent(noisy.theta)


@pytest.mark.long
def test_nonlinear_friction_is_found_with_its_shape():
    truth = np.array([COULOMB, STATIC, SPEED, VISCOUS])
    for method in ("ekf", "forgetting", "wls", "pc-idim-ls"):
        clean, noisy = results().clean_stribeck[method], results().noisy_stribeck[method]
        assert noisy.friction < 0.1
        if method not in ("ekf", "forgetting"):
            np.testing.assert_allclose(clean.friction_values, truth, rtol=1e-4)
    inertial = {m: found.inertial for m, found in results().clean_stribeck.items()}
    assert inertial["ekf"] > 10.0
    assert inertial["pc-idim-ls"] < 0.2


@pytest.mark.long
def test_instruments_do_not_mind_noisy_positions():
    found = results().positions
    change = {m: found[m, False].overall / found[m, True].overall - 1.0 for m in ("ols", "iv")}
    assert change["ols"] > 1.0
    assert abs(change["iv"]) < 0.2 * change["ols"]
    assert found["iv", False].friction < 0.2 * found["ols", False].friction


@pytest.mark.long
def test_a_simulated_loop_takes_parameters_that_are_a_robot_s():
    found, failures = results().positions, results().failures
    for filtered in (True, False):
        assert found["pc-idim-iv", filtered].base < 0.5 * found["ols", filtered].base
        # with so much noise the free estimate has either no answer, and says why, or a good one
        told = [each for each in failures if each.startswith("idim-iv (noisy positions")]
        own = found.get(("idim-iv", filtered))
        assert told if own is None else own.base < found["ols", filtered].base


@pytest.mark.long
def test_searches_as_the_survey_s_stay_in_their_ranges():
    truth, own = results().arm.theta, results().noisy_ranged["nls"]
    size = BELIEF * np.abs(truth)
    inside = size > 0.0
    assert np.all(np.abs(own.theta - truth)[inside] <= (1.0 + 1e-4) * size[inside])
    assert own.inertial < 1.0
    assert results().arm.idim.is_consistent(own.theta)


@pytest.mark.long
def test_figures_show_the_trajectory_and_what_changes():
    motion, tracked = draw_figures(results())
    assert sum(len(panel.curves) for panel in motion) == 6
    assert [len(panel.curves) for panel in tracked] == [3, 3]


@pytest.mark.long
def test_the_survey_s_models_on_a_measured_log():
    assert set(MODELS.values()) == set(ZHANG_MODELS)
    usual, root = (results().instance.fitted[name, METHOD] for name in QUICK)
    assert root.parameters == usual.parameters + 13  # six offsets, and one root a drive
    assert root.std < 0.8 * usual.std
    assert root.relative < 0.8 * usual.relative
    assert abs(root.mean) < 1e-6 < abs(usual.mean)


@pytest.mark.long
def test_without_the_measured_log_the_report_says_so(tmp_path):
    missing = fit_friction_models(reduced=True, folder=tmp_path)
    assert not missing.fitted
    text = build_reproduction(replace(results(), instance=missing)).text()
    assert "Table 12 is left out" in text
    assert "Table 12, friction" not in text


@pytest.mark.long
@pytest.mark.parametrize("k", [0, 1])
def test_forgetting_tracks_closer(k):
    tracked = results().tracked[k]
    assert tracked.truth[-1] > 1.45 * tracked.truth[0]
    assert tracked.error("rls") < 0.7 * tracked.error("kf")


def test_errors_do_not_hang_on_the_rounding_of_a_mass_that_is_zero():
    arm = load_arm()
    reference = choose_trajectory(arm, 1)
    friction = arm.idim.split(arm.theta)[1].reshape(6, -1).T
    found = []
    for rounding in (1e-16, -3e-14):
        theta = arm.theta.copy()
        theta[:10] = rounding * np.arange(1.0, 11.0)
        found.append(judge_parameters(arm, arm.idim, reference, theta, 0.0, 0.0, friction))
    assert found[0].inertial == pytest.approx(found[1].inertial, rel=1e-9)
    assert found[0].inertial == pytest.approx(1.0 / 6.0, rel=1e-9)  # of six links one has no mass
    assert np.isnan(list_link_parameters(np.zeros(10))[1:]).all()


def test_what_a_motion_determines_is_judged_apart():
    arm = load_arm()
    reference = choose_trajectory(arm, 1)
    base = base_parameters(arm.idim)
    least = np.linalg.pinv(base.matrix) @ (base.matrix @ arm.theta)
    friction = arm.idim.split(least)[1].reshape(6, -1).T
    same = judge_parameters(arm, arm.idim, reference, least, 0.0, 0.0, friction)
    assert same.inertial > 10.0
    assert same.base < 1e-9
    assert same.torque < 1e-9
    assert max(map(abs, same.joint_torque)) < 1e-7
    # a heavier arm is seen in both
    more = judge_parameters(arm, arm.idim, reference, 1.1 * arm.theta, 0.0, 0.0, friction)
    assert more.base == pytest.approx(0.1)
    assert more.joint_torque[1] > 1.0


def test_levels_are_those_of_the_survey():
    assert [grade_error("e_d", v) for v in (0.1, 0.5, 2.0)] == ["A", "B", "C"]
    assert [grade_error("J_e", v) for v in (0.5, 5.0, 50.0)] == ["A", "B", "C"]
    assert [grade_error("ΔJ_e", v) for v in (0.05, 0.5, 2.0)] == ["A", "B", "C"]
    assert [grade_error("e_T", v) for v in (0.005, 0.05, 0.5)] == ["A", "B", "C"]


@pytest.mark.long
def test_the_report_fits_its_page_and_has_both_bodies():
    text = build_reproduction(results()).text()
    assert max(len(line) for line in text.split("\n")) <= WIDTH
    for word in (
        "published  set here",
        "Table 6",
        "Table 8",
        "Table 9",
        "Table 10",
        "Table 11",
        "Table 12, friction",
        "Figure 4",
        "-0.0158",
    ):
        assert word in text
