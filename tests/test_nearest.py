"""Repair: the nearest consistent bodies, witnesses of consistency, and their refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import robots
import toy

from dynident.consistency.constraints import Box, Fixed, LinkMass, Symmetric, TotalMass
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.nearest import (
    LEAST_STD,
    consistent_witness,
    nearest_consistent,
    nearest_to_base,
)
from dynident.consistency.prior import METRICS
from dynident.core.errors import InfeasibleError, InputError
from dynident.core.inertia import to_inertial_parameters, to_pseudo_inertia
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.robot import load_robot

ROBOT = toy.arm(3)
QUADRATIC = tuple(name for name, metric in METRICS.items() if metric.fixed)


def spoiled(kind):
    """The arm's inertials with a second link that cannot be."""
    phi = ROBOT.nominal.copy()
    if kind == "negative":
        phi[1, 4] = -0.05
    elif kind == "triangle":
        phi[1, 9] = 1.0
    elif kind == "far centre":
        phi[1, 3] = 3.0
    elif kind == "no inertia":
        phi[1, 4:] = 0.0
    elif kind == "point":
        phi[1, 1:] = 0.0
    return phi


KINDS = ("negative", "triangle", "far centre", "no inertia", "point")


def eigenvalues(phi):
    """Of the 4x4 pseudo-inertia, written out."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = phi
    half = 0.5 * (xx + yy + zz)
    J = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy],
         [-xz, -yz, half - zz, hz], [hx, hy, hz, m]]  # fmt: skip
    return np.linalg.eigvalsh(np.array(J))


def root_of(metric, J):
    """D of a metric's ``1/2 ||D (J - J0) D||^2``, by its definition."""
    mass = J[3, 3]
    if metric == "euclidean":
        return np.diag([10.0, 10.0, 10.0, 1.0])
    thick = J + mass * 0.03**2 * np.diag([1.0, 1.0, 1.0, 0.0])
    values, vectors = np.linalg.eigh(thick)
    thick = (vectors * np.maximum(values, 1e-3 * values[-1])) @ vectors.T
    if metric == "weighted":
        size = np.sqrt(np.trace(thick[:3, :3]) / 3.0 / thick[3, 3])
        return np.diag([1.0 / size] * 3 + [1.0]) / np.sqrt(thick[3, 3])
    values, vectors = np.linalg.eigh(thick)
    return (vectors / np.sqrt(values)) @ vectors.T


def clipped(metric, phi):
    """The nearest body at or above the floor: eigenvalues clipped in the metric's frame."""
    J = to_pseudo_inertia(phi)
    D = root_of(metric, J)
    mass = ROBOT.nominal[1, 0]
    floor = 1e-6 * mass * np.diag([0.01, 0.01, 0.01, 1.0])
    values, vectors = np.linalg.eigh(D @ (J - floor) @ D)
    inverse = np.linalg.inv(D)
    nearest = inverse @ (vectors * np.maximum(values, 0.0)) @ vectors.T @ inverse + floor
    return to_inertial_parameters(nearest), np.sqrt(0.5 * np.sum((D @ (nearest - J) @ D) ** 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", METRICS)
def test_an_impossible_link_is_repaired_and_no_other_is_touched(metric, kind):
    phi = spoiled(kind)
    assert eigenvalues(phi[1])[0] <= 0.0
    found = nearest_consistent(ROBOT, phi, metric)
    assert eigenvalues(found.phi[1])[0] > 0.0
    assert found.changed == (1,)
    for k in (0, 2):
        np.testing.assert_array_equal(found.phi[k], phi[k])
        assert found.distance[k] == 0.0
    np.testing.assert_allclose(found.before, [eigenvalues(p)[0] for p in phi], atol=1e-14)
    np.testing.assert_allclose(found.after, [eigenvalues(p)[0] for p in found.phi], atol=1e-12)
    assert found.certificate.worst < 1e-8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", QUADRATIC)
def test_alone_a_link_has_its_eigenvalues_clipped(metric, kind):
    phi = spoiled(kind)
    found = nearest_consistent(ROBOT, phi, metric)
    expected, far = clipped(metric, phi[1])
    np.testing.assert_allclose(found.phi[1], expected, atol=1e-8)
    assert found.distance[1] == pytest.approx(far, rel=1e-6)


def test_metrics_differ_in_what_they_call_near():
    phi = spoiled("far centre")
    found = {metric: nearest_consistent(ROBOT, phi, metric).phi[1] for metric in METRICS}
    masses = {metric: round(float(body[0]), 3) for metric, body in found.items()}
    assert len(set(masses.values())) == len(METRICS), masses


@pytest.mark.parametrize("metric", METRICS)
def test_consistent_robots_come_back_as_they_are(metric):
    for name in ("ur5", "panda", "solo12"):
        robot = load_robot(robots.urdf(name), floating=name == "solo12")
        found = nearest_consistent(robot, metric=metric)
        np.testing.assert_array_equal(found.phi, robot.nominal)
        assert not np.any(found.distance)


@pytest.mark.parametrize("metric", METRICS)
def test_a_weighed_robot_has_that_mass(metric):
    phi = spoiled("triangle")
    found = nearest_consistent(ROBOT, phi, metric, (TotalMass(10.0),))
    assert found.phi[:, 0].sum() == pytest.approx(10.0, rel=1e-9)
    assert found.changed == (0, 1, 2)
    assert all(eigenvalues(p)[0] > 0.0 for p in found.phi)
    # the mass it has already changes nothing of a consistent robot
    same = nearest_consistent(ROBOT, None, metric, (TotalMass(float(ROBOT.nominal[:, 0].sum())),))
    np.testing.assert_allclose(same.phi, ROBOT.nominal, rtol=1e-6, atol=1e-9)


def test_other_constraints_hold_too():
    phi = spoiled("far centre")
    region = Box(("link_2",), (-0.1, -0.1, 0.0), (0.1, 0.1, 0.4), of="com")
    found = nearest_consistent(ROBOT, phi, constraints=(LinkMass(("link_2",), value=2.5), region))
    assert found.phi[1, 0] == pytest.approx(2.5)
    centre = found.phi[1, 1:4] / 2.5
    assert np.all(centre > [-0.1 - 1e-9, -0.1 - 1e-9, -1e-9])
    assert np.all(centre < [0.1 + 1e-9, 0.1 + 1e-9, 0.4 + 1e-9])
    mirrored = nearest_consistent(ROBOT, constraints=(Symmetric("link_1", "link_2"),))
    assert mirrored.phi[0, 0] == pytest.approx(mirrored.phi[1, 0])
    assert 0 in mirrored.changed


def test_bodies_without_anything_stay_empty():
    phi = ROBOT.nominal.copy()
    phi[2] = 0.0
    found = nearest_consistent(ROBOT, phi)
    np.testing.assert_array_equal(found.phi, phi)


@pytest.mark.parametrize(
    ("phi", "metric", "words"),
    [
        (np.zeros((2, 10)), "pullback", r"finite inertial parameters of shape \(3, 10\)"),
        (np.zeros(30), "pullback", r"finite inertial parameters of shape \(3, 10\)"),
        (np.full((3, 10), np.nan), "pullback", "finite inertial parameters"),
        (np.full((3, 10), np.inf), "pullback", "finite inertial parameters"),
        (None, "entropy", "metric 'entropy' is not known; did you mean 'entropic'"),
        (None, "", "metric '' is not known"),
    ],
)
def test_what_is_no_robot_and_no_metric_is_refused(phi, metric, words):
    with pytest.raises(InputError, match=words):
        nearest_consistent(ROBOT, phi, metric)


def test_contradicting_constraints_are_named():
    with pytest.raises(InfeasibleError) as caught:
        nearest_consistent(ROBOT, None, "pullback",
                           (TotalMass(5.0), LinkMass(("link_1",), value=6.0)))  # fmt: skip
    assert {"total mass = 5", "mass of link_1 = 6"} <= set(caught.value.conflict)
    with pytest.raises(InputError, match="'m9' is not a parameter"):
        nearest_consistent(ROBOT, None, "pullback", (Fixed(("m9",), 1.0),))


# base parameters


def truth(n=2):
    """Base parameters of the arm, their values, and standard deviations to go with them."""
    robot = toy.arm(n)
    idim = build_idim(robot)
    base = base_parameters(idim)
    beta = base.matrix @ toy.true_parameters(idim, robot.nominal)
    return base, beta, 0.02 * np.abs(beta) + 0.01


def assert_consistent(theta, idim):
    """Positive eigenvalues and positive drives, by code of this file."""
    assert all(eigenvalues(p)[0] > 0.0 for p in theta[: idim.inertial].reshape(-1, 10))
    assert all(theta[k] > 0.0 for k, p in enumerate(idim.parameters) if p.positive)


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_a_noisy_estimate_of_a_consistent_robot_has_a_witness(n, seed):
    base, beta, std = truth(n)
    noisy = beta + std * np.clip(np.random.default_rng(seed).normal(size=len(beta)), -2.5, 2.5)
    found = consistent_witness(base, noisy, std)
    assert found.found
    assert found.conflict == ()
    assert_consistent(found.theta, base.idim)
    gaps = np.abs(base.matrix @ found.theta - noisy)
    assert np.all(gaps <= 3.0 * std * (1.0 + 1e-6))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_exact_truth_is_its_own_witness(n):
    base, beta, std = truth(n)
    found = consistent_witness(base, beta, std, width=0.0)
    assert_consistent(found.theta, base.idim)
    np.testing.assert_allclose(base.matrix @ found.theta, beta, atol=1e-9)


@pytest.mark.parametrize(("width", "word"), [(0.0, "Ia2R = -0.1"), (3.0, "Ia2R + 3 sigma")])
def test_of_an_impossible_estimate_the_conflict_is_named(width, word):
    base, beta, std = truth(2)
    bad = beta.copy()
    bad[base.names.index("Ia2R")] = -0.1  # Ia2 + Iyy2
    found = consistent_witness(base, bad, 0.1 * std, width)
    assert not found.found
    assert found.theta is None
    assert set(found.conflict) == {"pseudo-inertia link_2", "Ia2 > 0", word}


def test_the_older_conditions_admit_more():
    """Izz2 - Ixx2 above Ia2 + Iyy2 breaks the triangle inequality and nothing else."""
    base, beta, std = truth(2)
    bad = beta.copy()
    bad[base.names.index("Izz2R")] = bad[base.names.index("Ia2R")] + 0.05
    assert not consistent_witness(base, bad, std, 0.0).found
    assert consistent_witness(base, bad, std, 0.0, "inertia").found
    negative = beta.copy()
    negative[base.names.index("fv1")] = -1.0
    for consistency in ("pseudo-inertia", "inertia", "base"):
        found = consistent_witness(base, negative, std, 0.0, consistency)
        assert set(found.conflict) == {"fv1 > 0", "fv1 = -1"}
    with pytest.raises(InputError, match="consistency 'inertial' is not known"):
        consistent_witness(base, beta, std, 3.0, "inertial")


@pytest.mark.parametrize("n", [1, 2, 4])
def test_consistent_base_parameters_are_their_own_nearest(n):
    base, beta, std = truth(n)
    for knowledge in (None, Knowledge(prior="none")):
        held = nearest_to_base(base, beta, std, knowledge)
        assert np.max(np.abs(held.beta - beta) / std) < 1e-3
        np.testing.assert_allclose(base.matrix @ held.theta, held.beta, atol=1e-12)
        assert_consistent(held.theta, base.idim)


def test_the_nearest_moves_what_is_wrong_and_what_hangs_on_it():
    base, beta, std = truth(2)
    bad = beta.copy()
    bad[base.names.index("fv1")] = -1.0
    held = nearest_to_base(base, bad, std, Knowledge(prior="none"))
    moved = np.abs(held.beta - bad) / std
    k = base.names.index("fv1")
    assert held.beta[k] == pytest.approx(0.0, abs=1e-3)
    assert np.max(np.delete(moved, k)) < 1e-3
    bad = beta.copy()
    bad[base.names.index("Ia2R")] = -0.1
    held = nearest_to_base(base, bad, std, Knowledge(prior="none"))
    assert_consistent(held.theta, base.idim)
    # what is known well moves less than what is known badly
    sharp = std.copy()
    sharp[base.names.index("Ia2R")] *= 0.01
    other = nearest_to_base(base, bad, sharp, Knowledge(prior="none"))
    at = base.names.index("Ia2R")
    assert other.beta[at] - bad[at] <= held.beta[at] - bad[at] + 1e-6
    assert np.linalg.norm((other.beta - bad) / sharp) >= np.linalg.norm((held.beta - bad) / std)


def test_parameters_without_an_error_count_as_known_well():
    base, beta, std = truth(2)
    none = np.zeros_like(std)
    held = nearest_to_base(base, beta, none, Knowledge(prior="none"))
    assert np.max(np.abs(held.beta - beta)) < LEAST_STD * np.max(np.abs(beta))
    missing = np.where(np.arange(len(std)) % 2, np.nan, std)
    held = nearest_to_base(base, beta, missing, Knowledge(prior="none"))
    assert np.max(np.abs(held.beta - beta)) < LEAST_STD * np.max(np.abs(beta))


def test_constraints_reach_the_nearest_too():
    base, beta, std = truth(2)
    heavy = Knowledge(constraints=(TotalMass(7.0),))
    held = nearest_to_base(base, beta, std, heavy)
    assert held.theta[: base.idim.inertial : 10].sum() == pytest.approx(7.0)
    with pytest.raises(InfeasibleError, match="cannot all hold"):
        nearest_to_base(base, beta, std, replace(heavy, constraints=(Fixed(("fv1",), -1.0),)))
