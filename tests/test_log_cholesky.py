"""Log-Cholesky parameters: every one is a consistent set, and every set has one."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
import robots
import toy
from differences import assert_slope
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from dynident.consistency.log_cholesky import (
    build_cholesky_factor,
    decode,
    decode_body,
    differentiate_body,
    encode,
    encode_body,
    find_log_parameters,
    jacobian,
)
from dynident.core.errors import InputError
from dynident.core.inertia import to_pseudo_inertia
from dynident.dynamics.idim import build_idim

BODIES = robots.bodies(20, seed=4)


def etas(count, seed=0, size=0.7):
    return np.random.default_rng(seed).normal(size=(count, 10)) * size


def assert_jacobian(function, x, jacobian):
    """A column an unknown."""
    for k, own in enumerate(np.eye(len(x))):
        size = np.abs(jacobian).max()
        assert_slope(lambda t, own=own: function(x + t * own), jacobian[:, k], 1e-4, scale=size)


@pytest.mark.parametrize("k", range(len(BODIES)))
def test_bodies_go_round(k):
    np.testing.assert_allclose(
        decode_body(encode_body(BODIES[k])), BODIES[k], rtol=1e-10, atol=1e-13
    )


@pytest.mark.parametrize("eta", list(etas(20)), ids=range(20))
def test_parameters_go_round(eta):
    np.testing.assert_allclose(encode_body(decode_body(eta)), eta, atol=1e-9)


@pytest.mark.long
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(npst.arrays(float, 10, elements=st.floats(-3.0, 3.0, allow_subnormal=False)))
def test_every_parameter_is_a_consistent_body(eta):
    J = to_pseudo_inertia(decode_body(eta))
    # the product of a triangular factor with itself, definite but for rounding
    assert np.linalg.eigvalsh(J)[0] > -1e-12 * np.linalg.norm(J)
    # entries are differences of others: rounding is that of the largest
    rounding = 1e-14 * np.linalg.norm(J)
    np.testing.assert_allclose(
        J, build_cholesky_factor(eta) @ build_cholesky_factor(eta).T, rtol=0.0, atol=rounding
    )
    sign, logdet = np.linalg.slogdet(build_cholesky_factor(eta))
    assert sign > 0.0
    assert logdet == pytest.approx(4.0 * eta[0] + eta[1] + eta[2] + eta[3])


@pytest.mark.parametrize("eta", list(etas(8, seed=1)), ids=range(8))
def test_jacobian_is_that_of_differences(eta):
    assert_jacobian(decode_body, eta, differentiate_body(eta))


@pytest.mark.parametrize("eta", list(etas(8, seed=2)), ids=range(8))
def test_bodies_and_jacobian_are_those_of_pinocchio(eta):
    theirs = pin.LogCholeskyParameters(eta)
    dynamic = theirs.toDynamicParameters()
    np.testing.assert_allclose(decode_body(eta), dynamic, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        differentiate_body(eta), theirs.calculateJacobian(), rtol=1e-8, atol=1e-10
    )
    inertia = pin.Inertia.FromLogCholeskyParameters(theirs)
    np.testing.assert_allclose(decode_body(eta), inertia.toDynamicParameters(), atol=1e-12)


def test_the_jacobian_is_regular_inside():
    for body in BODIES:
        assert np.linalg.matrix_rank(differentiate_body(encode_body(body))) == 10


@pytest.mark.parametrize(
    "change",
    [{0: -1.0}, {4: -0.5}, {9: 50.0}, {3: 30.0}, dict.fromkeys(range(10), 0.0)],
    ids=["mass", "moment", "triangle", "centre", "nothing"],
)
def test_an_impossible_body_has_none(change):
    phi = BODIES[0].copy()
    for k, value in change.items():
        phi[k] = value
    with pytest.raises(InputError, match="no log-Cholesky parameters; repair it first"):
        encode_body(phi)


@pytest.mark.parametrize("friction", ["none", "viscous", "coulomb-viscous"])
def test_standard_parameters_go_round(friction):
    robot = toy.arm(3)
    idim = build_idim(robot, friction)
    theta = toy.true_parameters(idim, robot.nominal)
    eta = encode(idim, theta)
    np.testing.assert_allclose(decode(idim, eta), theta, rtol=1e-10, atol=1e-13)
    free = [p.name for k, p in enumerate(idim.parameters) if k >= idim.inertial]
    for k, name in enumerate(free, start=idim.inertial):
        # an offset may have either sign and stays as it is
        expected = theta[k] if name.startswith("off") else np.log(theta[k])
        assert eta[k] == pytest.approx(expected)


def test_whatever_is_decoded_is_consistent():
    robot = toy.arm(2)
    idim = build_idim(robot)
    rng = np.random.default_rng(3)
    for _ in range(20):
        theta = decode(idim, rng.normal(size=len(idim.parameters)))
        for phi in theta[: idim.inertial].reshape(-1, 10):
            assert np.linalg.eigvalsh(to_pseudo_inertia(phi))[0] > 0.0
        assert all(theta[k] > 0.0 for k, p in enumerate(idim.parameters) if p.positive)


def test_jacobian_of_standard_parameters_is_that_of_differences():
    robot = toy.arm(2)
    idim = build_idim(robot)
    eta = encode(idim, toy.true_parameters(idim, robot.nominal))
    slope = jacobian(idim, eta)
    assert_jacobian(lambda e: decode(idim, e), eta, slope)
    # bodies and drives do not depend on each other
    assert np.count_nonzero(slope[:10, 10:]) == np.count_nonzero(slope[20:, :20]) == 0


def test_what_is_a_logarithm():
    idim = build_idim(toy.arm(2))
    names = [idim.parameters[k].name if k >= 20 else k % 10 for k in find_log_parameters(idim)]
    assert names == [0, 1, 2, 3, 0, 1, 2, 3, "Ia1", "fv1", "fc1", "Ia2", "fv2", "fc2"]


def test_impossible_sets_are_refused_by_name():
    robot = toy.arm(2)
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    theta[idim.names.index("fc2")] = 0.0
    with pytest.raises(InputError, match="fc2 = 0 is not positive"):
        encode(idim, theta)
    theta = toy.true_parameters(idim, robot.nominal)
    theta[10] = -2.0
    with pytest.raises(InputError, match="repair it first"):
        encode(idim, theta)
