"""Least radii of gyration: where they come from, what they ask, and when a log lowers them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import toy
from differences import assert_slope

import dynident as di
from dynident.conic.cones import measure_cone_violation
from dynident.consistency.constraints import Fixed, LinkMass
from dynident.consistency.constraints.consistency import PseudoInertia
from dynident.consistency.constraints.convex import measure_solid_moments
from dynident.consistency.evidence import estimate_costs, measure_criterion
from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.gyration import (
    GEOMETRY,
    INERTIAL,
    LENGTH,
    SHARE,
    SLENDER,
    WIDE,
    describe_gyrations,
    list_gyrations,
)
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.space import build_standard_space
from dynident.core.errors import InputError
from dynident.core.inertia import differentiate_body, from_com, measure_least_gyration, to_com
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem

RNG = np.random.default_rng(7)


def made_body(radii, mass=2.0):
    """A body with these principal radii of gyration, turned and away from its frame."""
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    moments = turn @ np.diag(np.square(radii)) @ turn.T
    inertia = mass * (np.trace(moments) * np.eye(3) - moments)
    return from_com(mass, RNG.normal(size=3), inertia)


@pytest.mark.long
def test_the_cone_is_what_points_of_mass_say():
    """Against the second moments of many points, along many directions."""
    points = RNG.normal(size=(40, 3)) * (0.2, 0.05, 0.02) + RNG.normal(size=3)
    mass = RNG.uniform(0.1, 1.0, size=40)
    centre = mass @ points / mass.sum()
    inertia = sum(
        m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(mass, points - centre, strict=True)
    )
    phi = from_com(float(mass.sum()), centre, inertia)
    ways = RNG.normal(size=(400_000, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    along = np.sqrt(mass @ np.square((points - centre) @ ways.T) / mass.sum()).min()
    smallest = measure_least_gyration(phi)
    assert smallest == pytest.approx(along, rel=1e-3)
    assert smallest <= along
    robot = replace(toy.arm(1), nominal=phi[None])
    base = base_parameters(build_idim(robot, "none", rotor=False))
    space = build_standard_space(base, np.zeros((1, base.count)), np.zeros(1))
    for factor, inside in ((0.99, True), (1.01, False)):
        (cone,) = PseudoInertia(floor=0.0, radii=(factor * smallest,)).cones(space)
        missed = measure_cone_violation(cone, phi / space.unit)
        assert (missed == 0.0) == inside


def test_a_files_inertial_counts_within_what_its_length_allows():
    robot = toy.arm(3)
    lengths = [float(np.linalg.norm(joint.translation)) for joint in robot.joints[1:]]
    mean = float(np.mean(lengths))
    for radius, source, shown in (
        (0.3 * mean, LENGTH, max(lengths[0], mean) / WIDE),
        (0.1 * mean, INERTIAL, 0.1 * mean),
        (1e-4 * mean, LENGTH, max(lengths[0], mean) / SLENDER),
    ):
        thin = np.array([made_body((radius, 2 * radius, 3 * radius)), *robot.nominal[1:]])
        first = list_gyrations(replace(robot, nominal=thin))[0]
        assert first.source == source
        assert first.radius == pytest.approx(SHARE * shown)


def test_without_inertials_geometry_and_then_length_tell(tmp_path):
    body = '<link name="{0}">{1}</link>'
    box = '<collision><geometry><box size="0.3 0.12 0.1"/></geometry></collision>'
    joint = (
        '<joint name="j{0}" type="continuous"><parent link="{1}"/><child link="{2}"/>'
        '<origin xyz="0 0 0.3"/><axis xyz="0 1 0"/></joint>'
    )
    file = tmp_path / "arm.urdf"
    file.write_text(
        '<robot name="arm">'
        + body.format("base", "") + body.format("upper", box) + body.format("fore", "")
        + joint.format(1, "base", "upper") + joint.format(2, "upper", "fore") + "</robot>"
    )  # fmt: skip
    upper, fore = list_gyrations(di.load_robot(file))
    assert (upper.source, fore.source) == (GEOMETRY, LENGTH)
    assert upper.radius == pytest.approx(SHARE * 0.1 / WIDE)
    assert fore.radius == pytest.approx(SHARE * 0.3 / SLENDER)


def test_moments_of_a_solid_hull():
    """Of a box in closed form, and of a turned, moved one by its rotation."""
    corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)
    exact = np.diag([1.0, 4.0, 9.0]) / 12.0
    np.testing.assert_allclose(measure_solid_moments(corners), exact, atol=1e-13)
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    moved = corners @ turn.T + (5.0, -2.0, 1.0)
    np.testing.assert_allclose(measure_solid_moments(moved), turn @ exact @ turn.T, atol=1e-12)


def thin_truth(radius, noise):
    """A log of two links, the second a sphere of this radius of gyration; its file has 5 cm."""
    robot = toy.arm(2)
    wide = np.array(
        [robot.nominal[0], from_com(1.5, [0.15, 0.0, 0.05], 2 * 1.5 * 0.05**2 * np.eye(3))]
    )
    thin = np.array(
        [robot.nominal[0], from_com(1.5, [0.15, 0.0, 0.05], 2 * 1.5 * radius**2 * np.eye(3))]
    )
    log = toy.log(replace(robot, nominal=thin), noise=noise)[0]
    return Problem(replace(robot, nominal=wide), prepare(log, 10.0))


def test_a_log_that_says_otherwise_lowers_the_radius_and_says_so():
    """With mass and rotor known, gravity and the joint's inertia tell how its mass is spread."""
    problem = thin_truth(0.004, 1e-3)
    known = (LinkMass("link_2", 1.5), Fixed("Ia2", 0.3))
    fit = di.identify(problem, bootstrap=0, constraints=known)
    second = fit.estimate.gyrations[1]
    assert second.lowered == pytest.approx(SHARE * 0.05)
    assert second.rise > 10.0
    assert second.radius < 0.5 * second.lowered + 1e-12
    assert any(
        "chi-squared would rise" in words for words in describe_gyrations(fit.estimate.gyrations)
    )
    kept = di.identify(problem, bootstrap=0, constraints=known, gyration=SHARE * 0.05)
    assert kept.estimate.gyrations[1].lowered is None
    assert kept.estimate.restriction.rejected
    assert measure_least_gyration(kept.phi[1]) >= SHARE * 0.05 * (1.0 - 1e-9)


def test_what_radii_cost_to_first_order_bounds_what_they_cost():
    """The criterion is convex in r^2, and its slope that of a difference quotient."""
    problem = thin_truth(0.004, 1e-3)
    known = Knowledge(constraints=(LinkMass("link_2", 1.5), Fixed("Ia2", 0.3)))
    system = problem.factors.weighted(np.full(2, 1e-3))
    admit = partial(build_feasible_set, problem.base, system, known, 1.0)
    robot = problem.robot

    def least(radius):
        return admit(list_gyrations(robot, (0.0, radius))).solve(system)

    radius = 0.02
    costs = estimate_costs(least(radius), list_gyrations(robot, (0.0, radius)))

    def shifted(share):
        return measure_criterion(least(radius * np.sqrt(1.0 + share)))

    assert costs[0] == 0.0
    assert_slope(shifted, costs[1], 0.03)  # optima of cone problems, known to their tolerance
    assert costs[1] > measure_criterion(least(radius)) - measure_criterion(least(0.0)) > 0.0


def test_a_log_that_agrees_keeps_it():
    problem = thin_truth(0.05, 0.3)
    fit = di.identify(problem, bootstrap=0)
    assert all(each.lowered is None for each in fit.estimate.gyrations)
    for each, phi in zip(fit.estimate.gyrations, fit.phi, strict=True):
        assert measure_least_gyration(phi) >= each.radius * (1.0 - 1e-6)


def test_a_number_for_each_link_or_none():
    robot = toy.arm(2)
    assert [g.radius for g in Knowledge(gyration=0.01).gyrations(robot)] == [0.01, 0.01]
    assert [g.radius for g in Knowledge(gyration=(0.01, 0.0)).gyrations(robot)] == [0.01, 0.0]
    assert Knowledge(consistency="inertia").gyrations(robot) == ()
    with pytest.raises(InputError, match="gyration has 3 values"):
        Knowledge(gyration=(0.1, 0.1, 0.1)).gyrations(robot)


@pytest.mark.parametrize("radii", [(0.02, 0.03, 0.2), (0.1, 0.1, 0.1)])
def test_derivatives_of_a_body_are_those_of_the_complex_step(radii):
    phi, step = made_body(radii), 1e-30

    def described(values):
        m, h = values[0], values[1:4]
        xx, xy, yy, xz, yz, zz = values[4:]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        own = inertia - (h @ h * np.eye(3) - np.outer(h, h)) / m
        return np.array(
            [m, *(h / m), *(own[at] for at in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)))]
        )

    mass, com, inertia = to_com(phi)
    np.testing.assert_allclose(described(phi)[:4], [mass, *com])
    np.testing.assert_allclose(described(phi)[4], inertia[0, 0])
    exact = np.array([described(phi + 1j * step * e).imag / step for e in np.eye(10)]).T
    np.testing.assert_allclose(differentiate_body(phi), exact, rtol=1e-12, atol=1e-12)
