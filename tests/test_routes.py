"""Other routes to standard parameters: their identities, their failures and their logs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import cvxpy
import numpy as np
import pytest
import toy
from robots import EXAMPLES
from scipy.linalg import null_space
from thin import first

from dynident.consistency.knowledge import Knowledge
from dynident.consistency.space import build_standard_space
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import PSEUDO_INERTIA_BASIS, is_consistent
from dynident.estimators.essential import select_essential_parameters
from dynident.fit.figures import score_fitted_rows
from dynident.methods import ESTIMATORS
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.study.study import load_study_robot, read_study, read_study_samples
from dynident_papers.routes import (
    ROUTES,
    cad_difference,
    cad_difference_essential,
    compute_identifiable_basis,
    find_exactly_consistent,
    fit_cad_values,
    follow_routes,
    format_routes,
    measure_inconsistent_share,
    measure_positive_share,
    minimum_norm,
    render_routes,
    sousa_correction,
    sousa_correction_euclidean,
    truncated_svd,
    weigh_rows,
)

OF_LEAST_SQUARES = ("minimum-norm", "truncated-svd", "cad-difference")
CORRECTIONS = ("sousa-correction", "sousa-correction-euclidean")
NOISE = (0.4, 0.2, 0.1)


def other_bodies(robot):
    """Consistent bodies that are not those of the file."""
    return robot.nominal * np.array([1.3, 0.8, 1.1])[:, None]


@cache
def noisy(noise: float = 1.0, seconds: float = 6.0) -> Problem:
    robot = toy.arm(3)
    recording, _ = toy.log(
        robot, seconds, noise * np.array(NOISE), bodies=other_bodies(robot), seed=3
    )
    return Problem(robot, prepare(recording, 10.0))


@cache
def infeasible() -> Problem:
    """A log of bodies that cannot exist: the last link's inertia about x is negative."""
    robot = toy.arm(3)
    bodies = other_bodies(robot)
    bodies[2, 4] = -0.1
    bodies[2, 9] = 0.4
    recording, _ = toy.log(robot, 6.0, 0.3 * np.array(NOISE), bodies=bodies, seed=3)
    return Problem(robot, prepare(recording, 10.0))


def exact(robot, bodies=None):
    """Neither noise nor the filters' error of the motion."""
    recording, truth = toy.log(robot, bodies=bodies)
    return Problem(robot, toy.on_its_motion(recording)), truth


def bodies_of(problem, theta):
    return problem.idim.split(theta)[0]


def consistent(problem, theta) -> bool:
    idim = problem.idim
    assert measure_inconsistent_share(theta, idim) == 0.0 or not is_consistent(
        bodies_of(problem, theta)
    )
    return (
        measure_inconsistent_share(theta, idim) == 0.0
        and measure_positive_share(theta, idim) == 1.0
    )


def same_torques(problem, theta, beta, rel=1e-9):
    """Base parameters agree to a share of their standard deviations and values."""
    found = problem.base.matrix @ theta
    np.testing.assert_allclose(found, beta, rtol=rel, atol=rel * np.abs(beta).max())


@pytest.mark.parametrize("name", OF_LEAST_SQUARES)
def test_linear_routes_have_the_torques_of_least_squares(name):
    problem = noisy()
    theta = ROUTES[name](problem)
    same_torques(problem, theta, weigh_rows(problem).beta)
    q, dq, ddq = toy.motion(3, 0.5, seed=9)
    ours = problem.idim.torque(theta, q, dq, ddq)
    theirs = problem.idim.torque(problem.base.standard(weigh_rows(problem).beta), q, dq, ddq)
    np.testing.assert_allclose(ours, theirs, atol=1e-8 * np.abs(theirs).max())
    # to within the rounds in which sigma settles
    np.testing.assert_allclose(weigh_rows(problem).beta, ESTIMATORS["wls"](problem).beta, rtol=1e-4)


def test_minimum_norm_is_the_smallest_of_all_with_its_torques():
    problem = noisy()
    theta = minimum_norm(problem)
    base = problem.base
    B = compute_identifiable_basis(base)
    np.testing.assert_allclose(B.T @ B, np.eye(base.count), atol=1e-12)
    invisible = null_space(base.matrix)
    assert invisible.shape[1] == len(theta) - base.count
    np.testing.assert_allclose(invisible.T @ theta, 0.0, atol=1e-10)
    assert np.linalg.norm(theta) < np.linalg.norm(base.standard(weigh_rows(problem).beta))
    assert np.linalg.norm(theta) < np.linalg.norm(cad_difference(problem))


def test_truncated_svd_is_minimum_norm_unless_columns_are_scaled():
    problem = noisy()
    theta = truncated_svd(problem)
    np.testing.assert_allclose(theta, minimum_norm(problem), atol=1e-9)
    given = weigh_rows(problem)
    unit = build_standard_space(problem.base, given.system.A, given.system.b).unit
    scaled = truncated_svd(problem, unit)
    same_torques(problem, scaled, given.beta)
    assert np.abs(scaled - theta).max() > 0.1
    assert np.linalg.norm(scaled / unit) < np.linalg.norm(theta / unit)


def test_truncated_svd_is_that_of_the_rows_themselves():
    # the seed has the regressor of all rows, with as many singular values as columns
    problem = noisy()
    sigma = weigh_rows(problem).sigma
    X, y = [], []
    for rows in problem.rows():
        for j, columns in enumerate(problem.columns):
            full = np.zeros((len(rows.y[j]), problem.base.count))
            full[:, columns] = rows.X[j]
            X.append(full / sigma[j])
            y.append(rows.y[j] / sigma[j])
    W, tau = np.vstack(X) @ problem.base.matrix, np.concatenate(y)
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    rank = problem.base.count
    assert len(s) == W.shape[1] > rank
    assert s[rank] < 1e-12 * s[0] < s[rank - 1]
    theta = (Vt[:rank].T / s[:rank]) @ (U[:, :rank].T @ tau)
    np.testing.assert_allclose(truncated_svd(problem), theta, atol=1e-8)


def test_cad_difference_is_the_nearest_to_cad_with_its_torques():
    problem = noisy()
    cad, theta = fit_cad_values(problem), cad_difference(problem)
    np.testing.assert_array_equal(bodies_of(problem, cad), problem.robot.nominal)
    np.testing.assert_allclose(null_space(problem.base.matrix).T @ (theta - cad), 0.0, atol=1e-10)
    assert np.linalg.norm(theta - cad) < np.linalg.norm(minimum_norm(problem) - cad)


@pytest.mark.parametrize("name", [*OF_LEAST_SQUARES, *CORRECTIONS])
def test_without_noise_the_base_parameters_are_the_true_ones(name):
    robot = toy.arm(3)
    problem, truth = exact(robot, other_bodies(robot))
    same_torques(problem, ROUTES[name](problem), problem.base.matrix @ truth)


def test_where_cad_is_true_its_difference_is_none():
    problem, truth = exact(toy.arm(3))
    np.testing.assert_allclose(cad_difference(problem), truth, atol=1e-9)
    np.testing.assert_allclose(cad_difference_essential(problem), truth, atol=1e-9)


def test_essential_difference_leaves_the_rest_at_cad():
    problem = noisy(noise=3.0, seconds=3.0)
    given, cad = weigh_rows(problem), fit_cad_values(problem)
    found = select_essential_parameters(problem.factors, given.sigma)
    kept, gone = list(found.kept), list(found.eliminated)
    assert gone
    assert kept
    theta = cad_difference_essential(problem)
    M = problem.base.matrix
    np.testing.assert_allclose(M[gone] @ theta, M[gone] @ cad, atol=1e-10)
    idle = ~np.any(M[kept] != 0.0, axis=0)
    assert np.any(idle)
    # a column of zeros has no share of a smallest change, but for its rounding
    np.testing.assert_allclose(theta[idle], cad[idle], atol=1e-13 * np.abs(theta - cad).max())
    # least squares in the essential base parameters: their columns see no error
    error = given.system.b - given.system.A @ M @ theta
    reach = np.linalg.norm(given.system.A[:, kept], axis=0) * np.linalg.norm(error)
    assert np.all(np.abs(given.system.A[:, kept].T @ error) < 1e-8 * reach)
    better = given.system.b - given.system.A @ M @ cad_difference(problem)
    assert np.linalg.norm(better) < np.linalg.norm(error)


@pytest.mark.parametrize("name", CORRECTIONS)
def test_corrections_do_not_move_a_feasible_estimate(name):
    problem = noisy(noise=0.01)
    given = weigh_rows(problem)
    theta = ROUTES[name](problem)
    assert find_exactly_consistent(given, given.beta) is not None
    assert consistent(problem, theta)
    same_torques(problem, theta, given.beta)
    assert not consistent(problem, minimum_norm(problem))


@pytest.mark.long
def test_corrections_are_consistent_and_nearest_each_in_its_distance():
    problem = infeasible()
    given = weigh_rows(problem)
    assert find_exactly_consistent(given, given.beta) is None
    weighted, plain = sousa_correction(problem), sousa_correction_euclidean(problem)
    assert consistent(problem, weighted)
    assert consistent(problem, plain)
    moved = [problem.base.matrix @ theta - given.beta for theta in (weighted, plain)]
    sizes = [np.linalg.norm(m) for m in moved]
    whitened = [np.linalg.norm(given.system.A @ m) for m in moved]
    assert sizes[1] < 0.99 * sizes[0]
    assert whitened[0] < 0.99 * whitened[1]


@pytest.mark.parametrize("name", CORRECTIONS)
def test_corrections_are_those_of_another_program(name):
    problem = infeasible()
    given, M = weigh_rows(problem), problem.base.matrix
    measure = given.system.A if name == "sousa-correction" else np.eye(problem.base.count)
    theta = cvxpy.Variable(M.shape[1])
    bodies = [
        sum(theta[10 * k + i] * PSEUDO_INERTIA_BASIS[i] for i in range(10)) >> 0 for k in range(3)
    ]
    signed = [k for k, p in enumerate(problem.idim.parameters) if p.positive]
    error = measure @ M @ theta - measure @ given.beta
    task = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(error)), [*bodies, theta[signed] >= 0])
    theirs = np.sqrt(task.solve(solver=cvxpy.CLARABEL))
    ours = np.linalg.norm(measure @ (M @ ROUTES[name](problem) - given.beta))
    # ours keeps a millionth from the boundary
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_the_weighted_correction_is_constrained_estimation_without_a_prior():
    problem = infeasible()
    constrained = ESTIMATORS["pc-idim-ls"](problem, Knowledge(prior="none", gyration=0.0))
    free = ESTIMATORS["wls"](problem)
    corrected = problem.base.matrix @ sousa_correction(problem)
    std = free.covariance.std
    assert np.abs((corrected - constrained.beta) / std).max() < 1e-6
    assert np.abs((corrected - free.beta) / std).max() > 1.0


def test_a_consistent_set_has_the_base_parameters_that_were_asked_for():
    problem = noisy(noise=0.01)
    given = weigh_rows(problem)
    truth = toy.true_parameters(problem.idim, other_bodies(problem.robot))
    beta = problem.base.matrix @ truth
    theta = find_exactly_consistent(given, beta)
    assert consistent(problem, theta)
    same_torques(problem, theta, beta)
    names = problem.base.names
    assert find_exactly_consistent(given, np.where(np.array(names) == "fv2", -1.0, beta)) is None


def test_shares_count_links_and_drives():
    problem = noisy()
    idim = problem.idim
    theta = toy.true_parameters(idim, problem.robot.nominal)
    assert measure_inconsistent_share(theta, idim) == 0.0
    assert measure_positive_share(theta, idim) == 1.0
    theta[10] = -1.0
    theta[idim.names.index("fv1")] = 0.0
    theta[idim.names.index("off2")] = -1.0  # an offset may be negative
    assert measure_inconsistent_share(theta, idim) == pytest.approx(1 / 3)
    assert measure_positive_share(theta, idim) == pytest.approx(8 / 9)
    bare = Problem(problem.robot, problem.samples, friction="none")
    assert measure_positive_share(theta[:30], bare.idim) == 1.0


@pytest.mark.parametrize("name", ROUTES)
def test_a_log_that_excites_too_little_is_refused(name):
    problem = noisy()
    samples = problem.samples[0]
    still = replace(samples, ddq=np.zeros_like(samples.ddq))
    with pytest.raises(ComputationError, match="does not excite"):
        ROUTES[name](problem.on(still))


def test_a_file_without_inertials_and_odd_units_are_refused():
    robot = toy.arm(2, nominal=False)
    recording, _ = toy.log(robot, 6.0, 0.1, bodies=toy.arm(2).nominal)
    problem = Problem(robot, prepare(recording, 10.0))
    for name in ("cad-difference", "cad-difference-essential"):
        with pytest.raises(InputError, match="toy: its file has no inertials"):
            ROUTES[name](problem)
    assert np.all(np.isfinite(minimum_norm(problem)))
    for unit in (np.ones(3), np.zeros(len(problem.idim.parameters))):
        with pytest.raises(InputError, match="positive numbers, one a standard parameter"):
            truncated_svd(problem, unit)


@cache
def tx40() -> Problem:
    study = read_study(EXAMPLES / "tx40" / "study.toml")
    robot = load_study_robot(study)
    return Problem(robot, read_study_samples(study.log[0], robot, study.prepare))


@pytest.mark.parametrize("name", first(ROUTES, 3))
def test_every_route_runs_on_the_tx40_log(name):
    problem = tx40()
    theta = ROUTES[name](problem)
    assert theta.shape == (len(problem.idim.parameters),)
    if name in OF_LEAST_SQUARES:
        same_torques(problem, theta, weigh_rows(problem).beta)
        # what the notes warn of: nothing keeps these consistent
        assert measure_inconsistent_share(theta, problem.idim) > 0.5
    if name in CORRECTIONS:
        assert consistent(problem, theta)


def test_the_measures_of_routes_are_those_of_the_rows_and_the_links():
    problem = noisy()
    found = follow_routes(problem)
    assert list(found) == list(ROUTES)
    factors, best = problem.factors, ESTIMATORS["wls"](problem)
    for name, each in found.items():
        beta = problem.base.matrix @ each.theta
        fitted = score_fitted_rows(factors, beta).overall_percent
        assert each.fitted_percent == pytest.approx(fitted, rel=1e-6)
        bodies = each.theta[: problem.idim.inertial].reshape(-1, 10)
        assert each.inconsistent == sum(not is_consistent(body) for body in bodies)
        away = (beta - best.beta) / best.covariance.std
        assert each.distance == pytest.approx(np.sqrt(np.mean(away**2)), rel=1e-3, abs=1e-5)
        assert each.distance < 1e-5 or name not in OF_LEAST_SQUARES


def test_a_route_without_an_answer_says_why():
    robot = toy.arm(2, nominal=False)
    recording, _ = toy.log(robot, 6.0, 0.1, bodies=toy.arm(2).nominal)
    problem = Problem(robot, prepare(recording, 10.0))
    found = follow_routes(problem)
    assert found["cad-difference"].theta is None
    text = " ".join(format_routes(problem.idim, found).split())
    assert "cad-difference none: toy: its file has no inertials" in text
    assert render_routes(problem.idim, found).startswith("parameter,minimum-norm,truncated-svd,sou")
