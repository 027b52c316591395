"""Estimates of some base parameters alone: one mechanism for all methods that constrain nothing."""

from __future__ import annotations

import numpy as np
import pytest
from loops import WIDTH, closed_loop

from dynident.api import identify
from dynident.core.errors import ComputationError, InputError
from dynident.estimators.closed_loop import Simulation
from dynident.fit.json import serialise_parameters
from dynident.methods import REDUCIBLE
from dynident.methods.options import SIMULATION, estimate, list_option_names
from dynident.regression.problem import Problem


@pytest.fixture(scope="module")
def frictionless():
    """A log of drives without dry friction and offsets, with a model that has them."""
    few, truth, control = closed_loop(2, friction="viscous", torque_noise=0.5, seconds=4.0)
    problem = Problem(few.robot, few.samples, "coulomb-viscous")
    return problem, dict(zip(few.base.names, truth, strict=True)), Simulation(control, width=WIDTH)


def give(method, simulation):
    return {SIMULATION: simulation} if SIMULATION in list_option_names(method) else {}


@pytest.mark.parametrize("method", sorted(REDUCIBLE))
def test_only_the_given_parameters_are_estimated(method, frictionless):
    problem, truth, simulation = frictionless
    found = estimate(problem, method, only=list(truth), **give(method, simulation))
    names = problem.base.names
    kept = [names.index(name) for name in truth]
    gone = [k for k in range(len(names)) if k not in kept]
    assert len(gone) == 4
    std = found.covariance.std
    assert not np.any(found.beta[gone])
    assert not np.any(std[gone])
    assert np.all(std[kept] > 0.0)
    assert np.all(np.abs(found.beta[kept] - [*truth.values()]) < 6.0 * std[kept])
    assert found.essential.kept == tuple(sorted(kept))
    assert found.essential.test.p_value > 1e-3
    whole = [found.covariance.literature, *(() if found.history is None else found.history)]
    whole += [] if found.track is None else [*found.track.beta, *found.track.std]
    assert all(values.shape == (len(names),) for values in whole)


def test_what_is_known_to_be_zero_makes_the_rest_surer(frictionless):
    problem, truth, simulation = frictionless
    every = estimate(problem, "idim-iv", simulation=simulation)
    found = estimate(problem, "idim-iv", simulation=simulation, only=list(truth))
    kept = list(found.essential.kept)
    assert np.all(found.covariance.literature[kept] < every.covariance.literature[kept])


def test_a_rule_chooses_the_same_for_every_method(frictionless):
    problem, _, simulation = frictionless
    methods = ("ols", "wls", "irls", "idim-iv", "didim", "rls")
    options = {"essential": "ratio", "essential_ratio": 20.0}
    sets = {estimate(problem, m, **options, **give(m, simulation)).essential.kept for m in methods}
    (kept,) = sets
    assert 0 < len(kept) < problem.base.count


def test_a_result_marks_what_was_left_out(frictionless):
    problem, truth, simulation = frictionless
    names = [name.removesuffix("R") for name in truth]
    fit = identify(problem, "didim", simulation=simulation, only=names, doctor=False)
    assert any(name.endswith("R") for name in truth)
    assert {problem.base.names[k] for k in fit.essential} == set(truth)
    assert fit.settings["only"] == names
    assert set(fit.settings["eliminated"]) == set(problem.base.names) - set(truth)
    assert f"rank {len(names)} of {len(names)}," in fit.summary(full=True)
    told = serialise_parameters(fit)
    assert [row["name"] for row in told if row["eliminated"]] == fit.settings["eliminated"]


def test_what_a_log_does_not_excite_can_be_left_out():
    whole, truth, _ = closed_loop(3, seconds=2.0)
    (log,) = whole.samples
    alone = np.array([0.0, 0.0, 1.0])
    still = log.along(0.3 + alone * (log.q - 0.3), alone * log.dq, alone * log.ddq)
    own = ["mx3", "mz3", "fv3", "fc3"]
    beta = np.where([name in own for name in whole.base.names], truth, 0.0)
    torque = whole.idim.torque(whole.base.standard(beta), still.q, still.dq, still.ddq)
    noise = 1e-3 * np.random.default_rng(0).normal(size=torque.shape)
    problem = whole.on(still.driven(torque + noise))
    with pytest.raises(ComputationError, match="does not excite"):
        estimate(problem, "wls", essential="ratio")
    fit = identify(problem, "wls", only=own, doctor=False)
    assert {problem.base.names[k] for k in fit.essential} == {*own}
    np.testing.assert_allclose(fit.estimate.beta, beta, atol=1e-2)
    assert fit.rank == len(own)
    assert not any("combinations" in reason.words for reason in fit.verdict.reasons)


def test_what_makes_no_sense_is_refused_in_a_line(frictionless):
    problem, _, simulation = frictionless
    refusals = [
        (
            "wls",
            {"only": ["Iz1"]},
            "only names 'Iz1', which is not a base parameter; did you mean 'Izz1",
        ),
        ("wls", {"only": ["fv1"], "essential": "ratio"}, "give one"),
        ("pc-idim-ls", {"only": ["fv1"]}, "pc-idim-ls has no option 'only'; .*didim"),
        ("nls", {"essential": "ratio"}, "nls has no option 'essential'"),
        ("cloe", {"only": ["fv1"], "links": "fixed", "simulation": simulation}, "fits the drives"),
    ]
    for method, options, words in refusals:
        with pytest.raises(InputError, match=words):
            estimate(problem, method, **options)
