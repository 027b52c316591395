"""Gradient descent: against its closed form, what it needs, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import toy

from dynident.api import identify
from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import InputError
from dynident.estimators.covariance import ErrorBars
from dynident.regression.problem import Problem
from dynident.search.gradient import CLOSE, GradientDescent, count_iterations, descend_by_gradient
from dynident.search.ranges import RangeProblem, SearchRegion, build_search_task


def make_task(n: int = 2, **region: object) -> RangeProblem:
    robot = toy.arm(n)
    recording, _ = toy.log(robot, noise=0.5)
    problem = Problem(robot, toy.on_its_motion(recording))
    return build_search_task(
        problem, SearchRegion(**region), Knowledge(consistency="none", prior="none"), ErrorBars()
    )


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_errors_shrink_along_each_eigenvector_as_the_formula_says(rate):
    task = make_task()
    found = descend_by_gradient(task, GradientDescent(rate, 200))
    width = task.high - task.low
    values, vectors = np.linalg.eigh(width[:, None] * task.metric.T @ task.metric * width)
    free = task.given.system.solve()
    error = vectors.T @ ((task.begin - free) / width)
    expected = vectors @ ((1.0 - rate * values / values[-1]) ** 200 * error)
    np.testing.assert_allclose((found.beta - free) / width, expected, atol=1e-9)
    assert found.condition == pytest.approx(values[-1] / values[0])
    assert found.words.startswith("stopped after 200 iterations")


def test_it_converges_after_as_many_iterations_as_are_foretold():
    task = make_task()
    found = descend_by_gradient(task, GradientDescent())
    assert found.words.startswith("converged after")
    least = task.cost(task.given.system.solve()[None])[0]
    assert task.cost(found.beta[None])[0] - least < CLOSE
    width = task.high - task.low
    _, s, vt = np.linalg.svd(task.given.system.A * width)
    start = vt @ ((task.begin - task.given.system.solve()) / width)
    foretold = count_iterations(s, start, GradientDescent())
    assert found.iterations == pytest.approx(foretold, rel=0.1)
    # the condition number decides
    assert 2.0 < found.iterations / found.condition < 20.0
    assert found.iterations > 1.7 * descend_by_gradient(task, GradientDescent(1.9)).iterations


@pytest.mark.long
def test_ranges_hold_at_every_step():
    given = make_task().given
    inside = given.system.solve()
    k = int(np.argmax(np.abs(inside)))
    name = given.problem.base.names[k]
    task = make_task(ranges={name: (0.1 * inside[k], 0.5 * inside[k])})
    found = descend_by_gradient(task, GradientDescent())
    assert found.beta[k] == pytest.approx(0.5 * inside[k], rel=1e-12)
    assert task.distance(found.beta) < 0.02


def test_as_a_method_it_says_how_far_it_got_and_refuses_what_has_no_gradient():
    problem = make_task().given.problem
    stopped = identify(problem, "gradient", iterations=50, doctor=False)
    assert "and about 8e+03 more are needed" in stopped.estimate.message
    assert any("nls finds that" in note for note in stopped.warnings)
    exact = identify(problem, "nls", doctor=False).estimate
    away = np.abs(stopped.estimate.beta - exact.beta)
    # error bars have the distance in them
    assert np.max(away / exact.covariance.std) > 5.0
    assert np.max(away / stopped.estimate.covariance.std) <= 1.0
    assert np.all(stopped.estimate.covariance.std >= 0.99 * exact.covariance.std)
    for options, words in (
        ({"learning_rate": 2.0}, "learning_rate is 2.0"),
        ({"objective": "mean-and-spread"}, "has no gradient where a mean is zero"),
    ):
        with pytest.raises(InputError, match=words):
            identify(problem, "gradient", **options)
