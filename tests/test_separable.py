"""Shapes of friction by instruments under noisy positions, curved friction along the simulation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from loops import stribeck_loop, stribeck_truth

from dynident.api import identify
from dynident.core.arrays import Array
from dynident.estimators.closed_loop import Simulation

METHODS = {"wls": {}, "idim-iv": {}, "separable": {"curves": "simulated"}}


def estimate_all(seed: int, noise: float, methods: Iterable[str] = METHODS) -> dict[str, Array]:
    """Errors of the linear parameters, then of the shape, by method."""
    problem, control, width = stribeck_loop(seed, noise)
    model, theta = stribeck_truth()
    simulation, found = Simulation(control, width=width), {}
    for name in methods:
        given = {} if name == "wls" else {"simulation": simulation, **METHODS[name]}
        fit = identify(problem, name.replace("separable", "idim-iv"), doctor=False, **given)
        values = np.array([*fit.estimate.beta, *fit.estimate.shape.values])
        found[name] = values - [*(fit.base.matrix @ theta), *model.shape]
    return found


def test_friction_with_a_sign_or_a_curve_is_evaluated_along_the_other_motion():
    problem, _, _ = stribeck_loop(0, 0.0, seconds=3.0)
    log = problem.samples[0]
    for own in (problem, problem.linearised(problem.idim.join(problem.robot.nominal))):
        moved = own.along([(log.q + 0.1, log.dq + 0.3, log.ddq + 1.0)])
        mixed = own.curved_along(moved)
        rows = [next(each.rows()) for each in (mixed, own, moved)]
        assert mixed.groups == own.groups
        for g, columns in enumerate(own.columns):
            assert list(mixed.columns[g]) == list(columns)
            for k, name in enumerate(own.base.names[c] for c in columns):
                curved = name[:2] in ("fc", "fs", "vs")
                expected = rows[2 if curved else 1].X[g][:, k]
                np.testing.assert_allclose(rows[0].X[g][:, k], expected, atol=1e-12)


@pytest.mark.long
def test_the_shape_is_found_where_noisy_signs_mislead_instruments():
    found = estimate_all(4, 2e-4, ("wls", "separable"))
    static, speed = -2, -1
    for k in (static, speed):
        assert abs(found["separable"][k]) < 0.5 * abs(found["wls"][k])


@pytest.mark.long
def test_bias_is_less_than_that_of_least_squares():
    runs = [estimate_all(seed, 5e-4) for seed in range(4)]
    bias = {m: np.abs(np.mean([run[m] for run in runs], axis=0)) for m in METHODS}
    scatter = {m: np.std([run[m] for run in runs], axis=0) for m in METHODS}
    coulomb, static, speed = -4, -2, -1
    assert bias["separable"][coulomb] < 0.7 * bias["wls"][coulomb]
    for k in (static, speed):
        assert scatter["separable"][k] < 0.5 * scatter["wls"][k]
        assert bias["separable"][k] < 0.2 * bias["idim-iv"][k]
