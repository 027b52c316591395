"""Rollouts whose steps are chosen by their error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy
from loops import closed_loop
from test_simulation import ROBOTS, closed, columns, gap, simulated, wave

from dynident.control.controller import pd, pid
from dynident.control.reference import Reference
from dynident.core.errors import InputError, RolloutError
from dynident.dynamics.idim import build_idim
from dynident.estimators.closed_loop import Simulation
from dynident.methods.options import estimate
from dynident.simulation.integrators import INTEGRATORS
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout, sensitive_rollout
from dynident.simulation.stability import check_integration

RATE = 50.0
"""Of logs whose samples are far apart."""
LOOPS = {
    "continuous": ("coupled", lambda n: pd(120.0, 15.0, n=n)),
    "with states": ("tree", lambda n: pid(120.0, 400.0, 15.0, n=n)),
    "sampled": ("tree", lambda n: pid(120.0, 400.0, 15.0, n=n, rate=RATE, limit=30.0)),
    "floating": ("floating", lambda n: pd(120.0, 15.0, n=n)),
}


def far_apart(name, tolerance, integrator="ode45"):
    robot, control = LOOPS[name]
    n = ROBOTS[robot].n
    loop, theta = closed(
        ROBOTS[robot], control(n), wave(n, 0.2, RATE), integrator=integrator, width=np.full(n, 0.5)
    )
    return replace(loop, tolerance=tolerance), theta


@pytest.mark.parametrize("name", LOOPS)
def test_the_error_is_that_of_the_tolerance(name):
    loop, theta = far_apart(name, 1e-10)
    truth = simulated(loop, theta, 1e-12)
    rough = gap(columns(rollout(replace(loop, tolerance=1e-4), theta)), truth)
    fine = gap(columns(rollout(loop, theta)), truth)
    assert fine < 1e-7 < rough < 1e-2
    assert fine < 1e-3 * rough


def test_steps_are_taken_where_a_fixed_one_is_too_long():
    loop, theta = far_apart("continuous", 1e-8)
    loop = replace(loop, width=np.full(loop.idim.robot.n, 0.005))
    with pytest.raises(InputError, match="too stiff for ode5"):
        check_integration(replace(loop, integrator="ode5"), theta)
    check_integration(loop, theta)
    truth = rollout(replace(loop, integrator="ode5", substeps=2000), theta)
    assert gap(columns(rollout(loop, theta)), columns(truth)) < 1e-5


def test_the_pair_is_dormand_and_princes():
    pair, fixed = INTEGRATORS["ode45"], INTEGRATORS["ode5"]
    np.testing.assert_array_equal(pair.a[:6, :6], fixed.a)
    np.testing.assert_array_equal(pair.a[6], pair.b)  # the last stage is the next step's first
    lower = pair.b - pair.error
    assert pair.error.sum() == pytest.approx(0.0, abs=1e-15)
    for order in range(1, 5):  # quadrature conditions of the fourth order
        assert lower @ pair.c ** (order - 1) == pytest.approx(1.0 / order, rel=1e-14)
    assert abs(lower @ pair.c**4 - 0.2) > 1e-4


def test_what_cannot_be_done_in_such_steps_is_refused():
    loop, theta = far_apart("continuous", 1e-8)
    with pytest.raises(InputError, match=r"'ode45' has adaptive steps, .* differentiated; take"):
        next(sensitive_rollout(loop, theta, [0]))
    problem, _, control = closed_loop(1, seconds=2.0)
    simulation = Simulation(control, integrator="ode45")
    for method, options in (("clie", {}), ("cloe", {"sensitivities": "differences"})):
        with pytest.raises(InputError, match="'ode45' has adaptive steps"):
            estimate(problem, method, simulation=simulation, **options)
    with pytest.raises(InputError, match="friction that remembers is followed in equal ones"):
        Loop(build_idim(toy.arm(1), "dahl"), control, loop.reference, "ode45")
    with pytest.raises(InputError, match=r"tolerance has to be from 1e-12 to 0\.01"):
        replace(loop, tolerance=1.0)
    with pytest.raises(InputError, match="tolerance is 1"):
        Simulation(control, tolerance=1.0)


def test_a_motion_that_sticks_is_given_up():
    loop, theta = far_apart("continuous", 1e-8)
    rest = Reference(RATE, *np.zeros((3, *loop.reference.q.shape)))
    stuck = replace(loop, reference=rest, width=np.full(loop.idim.robot.n, 1e-9))
    with pytest.raises(RolloutError, match=r"1e-08 takes more than 10000 steps at t = .*sdirk2"):
        rollout(stuck, theta)
