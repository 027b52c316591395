"""The Runge-Kutta methods, on the test equation and inside the rollout."""

from __future__ import annotations

import numpy as np
import pytest
import toy

from dynident.control.controller import p, pd
from dynident.control.reference import Reference
from dynident.dynamics.idim import build_idim
from dynident.simulation.integrators import GAMMA, INTEGRATORS
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout

FIXED = [name for name, scheme in INTEGRATORS.items() if scheme.error is None]
EXPLICIT = [name for name in FIXED if not INTEGRATORS[name].implicit]
ORDERS = {"ode1": 1, "ode2": 2, "ode3": 3, "ode4": 4, "ode5": 5, "ode45": 5, "sdirk2": 2}
PLANE = [-0.3, 0.4 + 0.2j, -1.5 + 2.0j, 2.5j, -7.0 - 1.0j]
"""Values of z = h lambda, stable and unstable ones."""


def one_step(scheme, z, y):
    """The method on ``y' = lambda y``, stage by stage as it is defined."""
    slopes = []
    for i in range(len(scheme.b)):
        known = y + sum(scheme.a[i, s] * slopes[s] for s in range(i))
        # a diagonal entry makes the stage an equation: k = z (known + a_ii k)
        slopes.append(z * known / (1.0 - z * scheme.a[i, i]))
    return y + sum(weight * slope for weight, slope in zip(scheme.b, slopes, strict=True))


def trees(a, b, c):
    """Order conditions as (order, left side, right side): Hairer, Norsett and Wanner, II.2."""
    yield 1, b.sum(), 1.0
    yield 2, b @ c, 1 / 2
    yield 3, b @ c**2, 1 / 3
    yield 3, b @ a @ c, 1 / 6
    yield 4, b @ c**3, 1 / 4
    yield 4, (b * c) @ a @ c, 1 / 8
    yield 4, b @ a @ c**2, 1 / 12
    yield 4, b @ a @ a @ c, 1 / 24
    yield 5, b @ c**4, 1 / 5
    yield 5, (b * c**2) @ a @ c, 1 / 10
    yield 5, b @ (a @ c) ** 2, 1 / 20
    yield 5, (b * c) @ a @ c**2, 1 / 15
    yield 5, (b * c) @ a @ a @ c, 1 / 30
    yield 5, b @ a @ c**3, 1 / 20
    yield 5, b @ a @ (c * (a @ c)), 1 / 40
    yield 5, b @ a @ a @ c**2, 1 / 60
    yield 5, b @ a @ a @ a @ c, 1 / 120
    yield 6, b @ c**5, 1 / 6


@pytest.mark.parametrize("name", FIXED)
def test_amplification_is_that_of_one_step(name):
    scheme = INTEGRATORS[name]
    for z in PLANE:
        assert scheme.amplification(z) == pytest.approx(one_step(scheme, z, 1.0), rel=1e-14)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_amplification_is_the_polynomial_or_quotient_of_the_method(name):
    order = ORDERS[name]
    for z in PLANE:
        taylor = sum(z**k / np.prod(np.arange(1, k + 1), initial=1.0) for k in range(order + 1))
        if name == "sdirk2":
            taylor = (1.0 + (1.0 - 2.0 * GAMMA) * z) / (1.0 - GAMMA * z) ** 2
        if name in ("ode5", "ode45"):
            taylor += z**6 / 600.0  # of its sixth stage (Hairer, Norsett and Wanner, IV.2)
        assert INTEGRATORS[name].amplification(z) == pytest.approx(taylor, rel=1e-13)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_order_is_the_one_stated(name):
    scheme = INTEGRATORS[name]
    assert scheme.order == ORDERS[name]
    np.testing.assert_allclose(scheme.c, scheme.a.sum(axis=1), rtol=1e-15)
    missed = {
        k for k, left, right in trees(scheme.a, scheme.b, scheme.c) if abs(left - right) > 1e-14
    }
    assert min(missed) == scheme.order + 1
    small = 0.01 if scheme.order < 5 else 0.03  # beyond rounding
    error = [abs(scheme.amplification(z) - np.exp(z)) for z in (-2.0 * small, -small)]
    assert error[0] / error[1] == pytest.approx(2.0 ** (scheme.order + 1), rel=0.03)


def test_only_the_implicit_pair_is_implicit_and_it_is_l_stable():
    assert [name for name, scheme in INTEGRATORS.items() if scheme.implicit] == ["sdirk2"]
    pair = INTEGRATORS["sdirk2"]
    for frequency in np.logspace(-2, 4, 50):
        assert abs(pair.amplification(1j * frequency)) <= 1.0 + 1e-14
    assert abs(pair.amplification(-1e8)) < 1e-6
    # stiffly accurate: the last stage is the step
    np.testing.assert_array_equal(pair.a[-1], pair.b)


def spinning(name, controller, samples=40, rate=100.0, substeps=1):
    """One joint about the vertical with viscous friction: a linear system."""
    robot = toy.arm(1)
    idim = build_idim(robot, "viscous")
    theta = toy.true_parameters(idim, robot.nominal)
    value = dict(zip(idim.names, theta, strict=True))
    still = np.zeros((samples, 1))
    loop = Loop(
        idim,
        controller,
        Reference(rate, still, still, still),
        name,
        substeps,
        q0=np.array([0.4]),
        dq0=np.array([1.5]),
    )
    inertia = value["Izz1"] + value["Ia1"]
    return rollout(loop, theta), inertia, value["fv1"]


@pytest.mark.parametrize("substeps", [1, 3])
@pytest.mark.parametrize("name", FIXED)
def test_a_spinning_joint_decays_by_the_amplification(name, substeps):
    motion, inertia, viscous = spinning(name, p(0.0, rate=100.0), substeps=substeps)
    scheme = INTEGRATORS[name]
    step = scheme.amplification(-viscous / inertia / (100.0 * substeps)).real
    expected = 1.5 * step ** (substeps * np.arange(40))
    np.testing.assert_allclose(motion.dq[:, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(motion.ddq[:, 0], -viscous / inertia * expected, rtol=1e-11)
    np.testing.assert_array_equal(motion.tau, 0.0)


@pytest.mark.parametrize("name", EXPLICIT)
def test_an_oscillating_joint_turns_by_the_amplification(name):
    stiff, damping, h = 60.0, 0.5, 0.01
    motion, inertia, viscous = spinning(name, pd(stiff, damping))
    system = np.array([[0.0, 1.0], [-stiff / inertia, -(viscous + damping) / inertia]])
    poles, vectors = np.linalg.eig(system)
    assert np.all(poles.imag != 0.0)
    factors = np.array([INTEGRATORS[name].amplification(h * pole) for pole in poles])
    start = np.linalg.solve(vectors, np.array([0.4, 1.5], dtype=complex))
    expected = ((factors ** np.arange(40)[:, None] * start) @ vectors.T).real
    found = np.hstack([motion.q, motion.dq])
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())
