"""Base parameters by the literature's algorithms, and by what the motion of a log tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy
from robots import EXAMPLES

from dynident.dynamics.base import base_parameters, draw_random_states
from dynident.dynamics.base_algorithms import ALGORITHMS, find_basis
from dynident.dynamics.idim import build_idim
from dynident.fit.determined import find_told_parameters
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.robot import load_robot

MODELS = {
    "toy": lambda: build_idim(toy.arm(4, coupled=True)),
    "tx40": lambda: build_idim(load_robot(EXAMPLES / "tx40" / "tx40.toml")),
    "floating": lambda: build_idim(replace(toy.arm(2), floating=True), "none"),
}


def project(columns):
    """The orthogonal projector on the span of columns."""
    Q = np.linalg.qr(columns)[0]
    return Q @ Q.T


@pytest.mark.parametrize("by", ALGORITHMS)
@pytest.mark.parametrize("model", ["toy", "tx40"])
def test_all_algorithms_find_the_same_space(by, model):
    idim = MODELS[model]()
    own, usual = find_basis(idim, by), base_parameters(idim)
    assert own.count == usual.count == len(own.names) == len(own.regroupings)
    np.testing.assert_allclose(project(own.matrix.T), project(usual.matrix.T), atol=1e-8)
    # at states that it has not seen: the same columns of the base regressor, and the same torques
    states = draw_random_states(idim, 40, seed=5)
    Y = idim.regressor(*states).reshape(-1, len(idim.names))
    Y_base = Y @ np.linalg.pinv(own.matrix)
    size = np.abs(Y).max()
    np.testing.assert_allclose(project(Y_base), project(Y[:, usual.kept]), atol=1e-7)
    np.testing.assert_allclose(Y_base @ own.matrix, Y, atol=1e-8 * size)
    if own.kept:
        np.testing.assert_allclose(Y[:, own.kept] @ own.matrix, Y, atol=1e-8 * size)
        np.testing.assert_array_equal(own.matrix[:, own.kept], np.eye(own.count))


def test_the_formulas_of_the_notes():
    idim = build_idim(toy.arm(3))
    states = draw_random_states(idim, 60, seed=3)
    Y = idim.regressor(*states).reshape(-1, len(idim.names))
    svd = find_basis(idim, "svd")
    B = svd.matrix.T
    # orthonormal, so that x_std = B^T x_base in the notes' words, which is B beta here
    np.testing.assert_allclose(B.T @ B, np.eye(svd.count), atol=1e-12)
    x = np.random.default_rng(0).normal(size=len(idim.names))
    np.testing.assert_allclose(Y @ (B @ (svd.matrix @ x)), Y @ x, atol=1e-9)
    # columns of Q of the QR decomposition of Y span those of Y_base
    Q = np.linalg.svd(Y, full_matrices=False)[0][:, : svd.count]
    np.testing.assert_allclose(Q @ (Q.T @ (Y @ B)), Y @ B, atol=1e-9)
    # sums of squares of regressors have the same dependencies: Y^T Y = R^T R
    null = np.linalg.svd(Y.T @ Y)[2][svd.count :]
    assert np.abs(svd.matrix @ null.T).max() < 1e-7


def test_echelon_keeps_the_first_that_depend_on_none_before():
    idim = build_idim(toy.arm(3))
    found = find_basis(idim, "rref")
    Y = idim.regressor(*draw_random_states(idim, 60, seed=3)).reshape(-1, len(idim.names))
    Y = Y / np.maximum(np.linalg.norm(Y, axis=0), 1e-12)
    ranks = [np.linalg.matrix_rank(Y[:, : k + 1], tol=1e-7) for k in range(Y.shape[1])]
    assert found.kept == tuple(k for k, r in enumerate(np.diff([0, *ranks])) if r)


def noisy(still=False):
    """A log of an arm with noise of encoders and torques, its last joint still or not."""
    recording, _ = toy.log(toy.arm(3), seconds=8.0)
    q, dq, ddq = (getattr(recording, each).copy() for each in ("q", "dq", "ddq"))
    if still:
        q[:, 2], dq[:, 2], ddq[:, 2] = 0.7, 0.0, 0.0
    idim = build_idim(toy.arm(3))
    tau = idim.torque(toy.true_parameters(idim, toy.arm(3).nominal), q, dq, ddq)
    rng = np.random.default_rng(2)
    q = q + 2e-5 * rng.normal(size=q.shape)
    return Recording("a log", toy.RATE, q, tau + 0.3 * rng.normal(size=tau.shape))


def test_rich_motion_tells_all_of_the_structural_ones():
    problem = Problem(toy.arm(3), prepare(noisy(), 10.0))
    found = find_told_parameters(problem)
    assert found.count == problem.base.count
    assert found.names == found.regroupings == problem.base.names
    literature = np.linalg.norm(np.linalg.inv(np.linalg.qr(weighted(problem))[1]), axis=1)
    np.testing.assert_allclose(found.std, literature, rtol=1e-6)


def weighted(problem):
    from dynident.regression.weighted import solve_wls

    return problem.factors.weighted(solve_wls(problem.factors)[1]).A


def test_a_joint_that_stands_still_hides_what_its_motion_would_tell():
    problem = Problem(toy.arm(3), prepare(noisy(still=True), 10.0))
    found = find_told_parameters(problem)
    # without noise, at random states with the joint held: its column of dry friction is zero
    idim = problem.idim
    q, dq, ddq = draw_random_states(idim, 60, seed=0)
    q[:, 2], dq[:, 2], ddq[:, 2] = 0.7, 0.0, 0.0
    Y = idim.regressor(q, dq, ddq).reshape(-1, len(idim.names))[:, problem.base.kept]
    scaled = Y / np.maximum(np.linalg.norm(Y, axis=0), 1e-9)
    assert found.count == np.linalg.matrix_rank(scaled, tol=1e-6) < problem.base.count
    assert {"Ia3", "fv3", "fc3"} <= set(found.unseen)
    # and what is told has the same torques, whatever the rest
    B = np.linalg.pinv(found.K)
    np.testing.assert_allclose(Y @ B @ found.K, Y, atol=0.05 * np.abs(Y).max())
