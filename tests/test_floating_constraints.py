"""What is known of a legged robot: its sides are alike, a scale weighed it. With error bars."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from floating import Made, solo

import dynident as di
from dynident.consistency.constraints import Constraint, Symmetric, TotalMass
from dynident.core.arrays import Array
from dynident.dynamics.idim import Idim
from dynident.regression.problem import Problem
from dynident.report.fit import Fit

LEFT = tuple(
    f"{leg}_{part}" for leg in ("FL", "HL") for part in ("SHOULDER", "UPPER_LEG", "LOWER_LEG")
)
PAIRS = {left: left.replace("L_", "R_", 1) for left in LEFT}
SIDES = tuple(Symmetric(left, right) for left, right in PAIRS.items())


def mirrored(idim: Idim, theta: Array) -> Array:
    """The same with the left legs' images in the plane y = 0 for the right legs."""
    robot, found = idim.robot, theta.copy()
    model = pin.buildModelFromUrdf(str(robot.source), pin.JointModelFreeFlyer())
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    names = {joint.link: joint.name for joint in robot.joints}
    across = np.diag([1.0, -1.0, 1.0])
    phi, drives = idim.split(found)
    drive = dict(zip((p.name for p in idim.drives), range(len(drives)), strict=True))
    for left, right in PAIRS.items():
        here, there = (data.oMi[model.getJointId(names[link])] for link in (left, right))
        k, other = robot.links.index(left), robot.links.index(right)
        body = here.act(pin.Inertia.FromDynamicParameters(phi[k]))
        image = pin.Inertia(body.mass, across @ body.lever, across @ body.inertia @ across)
        phi[other] = there.actInv(image).toDynamicParameters()
        for symbol in ("Ia", "fv"):
            drives[drive[f"{symbol}{other}"]] = drives[drive[f"{symbol}{k}"]]
    return found


@cache
def made() -> Made:
    return solo(4.0, 250.0, change=mirrored)


@cache
def problem(kind: str = "full", seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    log = made().recording
    wrenches = {name: own + 0.3 * rng.normal(size=own.shape) for name, own in log.wrenches.items()}
    tau = log.tau + 0.02 * rng.normal(size=log.tau.shape)
    noisy = replace(log, tau=tau, wrenches=wrenches, equations=kind)
    samples = di.prepare(noisy, 25.0, position_hz=1e4, derivatives="measured")
    return Problem(made().robot, samples, "viscous")


@cache
def fitted(*constraints: Constraint, kind: str = "full") -> Fit:
    # what is made lacks nothing but noise
    return di.identify(
        problem(kind), prior="none", constraints=constraints, covariance="hac", bootstrap=0,
        doctor=False,
    )  # fmt: skip


def misses(fit: Fit) -> Array:
    """Errors of the base parameters that have any, in standard deviations."""
    error = fit.estimate.beta - fit.base.matrix @ made().theta
    std = fit.estimate.covariance.std
    told = std > 1e-6 * np.max(std)
    return error[told] / std[told]


def spread_of_total(fit: Fit) -> float:
    """Standard deviation of the total mass [kg]."""
    total = np.zeros(len(fit.theta))
    total[: fit.idim.inertial : 10] = 1.0
    row = np.linalg.lstsq(fit.base.matrix.T, total, rcond=None)[0]
    assert np.allclose(fit.base.matrix.T @ row, total, atol=1e-8)
    return float(np.sqrt(max(row @ fit.estimate.covariance.matrix @ row, 0.0)))  # or rounding


def test_the_mirror_is_that_of_the_robot_file():
    """Its legs are drawn as images of each other, to a part in 30 of a millimetre."""
    idim = made().idim
    images = mirrored(idim, idim.nominal)
    assert np.max(np.abs(images - idim.nominal)[: idim.inertial]) < 5e-6


@pytest.mark.long
def test_sides_that_are_alike_come_out_alike_with_smaller_error_bars():
    free, alike = fitted(), fitted(*SIDES)
    again = mirrored(made().idim, alike.theta)
    assert np.max(np.abs(again - alike.theta)) < 1e-6 * np.max(np.abs(alike.theta))
    truth = alike.base.matrix @ made().theta
    error = [np.abs(fit.estimate.beta - truth) for fit in (free, alike)]
    std = [fit.estimate.covariance.std for fit in (free, alike)]
    # two legs say twice as much of each; but a free one may be held by its own bound
    assert 0.6 < np.median(std[1] / std[0]) < 0.8
    assert np.percentile(std[1] / std[0], 90) < 1.02
    assert np.median(error[1]) < np.median(error[0])
    assert 0.7 < np.sqrt(np.mean(misses(alike) ** 2)) < 1.3
    assert np.mean(np.abs(misses(alike)) < 1.96) > 0.85


@pytest.mark.long
def test_sides_that_are_not_alike_are_noticed():
    wrong = fitted(Symmetric("FL_UPPER_LEG", "FL_LOWER_LEG", drives=False)).estimate.restriction
    right = fitted(*SIDES).estimate.restriction
    assert wrong is not None
    assert right is not None
    assert wrong.rejected
    assert "symmetric FL_UPPER_LEG FL_LOWER_LEG: m" in wrong.verdict
    assert not right.rejected


@pytest.mark.long
def test_a_scale_takes_the_error_of_the_total_mass_away():
    phi, _ = made().idim.split(made().theta)
    weighed = float(phi[:, 0].sum())
    free, known = fitted(), fitted(TotalMass(weighed))
    assert known.phi[:, 0].sum() == pytest.approx(weighed, rel=1e-8)
    before = spread_of_total(free)
    assert abs(free.phi[:, 0].sum() - weighed) < 4.0 * before
    assert spread_of_total(known) < 1e-3 * before
    assert 0.7 < np.sqrt(np.mean(misses(known) ** 2)) < 1.3
    # and all others are at most as uncertain
    assert np.all(known.estimate.covariance.std < 1.1 * free.estimate.covariance.std)


def test_a_scale_tells_the_mass_that_joint_torques_alone_do_not():
    phi, _ = made().idim.split(made().theta)
    weighed = float(phi[:, 0].sum())
    fit = fitted(TotalMass(weighed), kind="joints")
    assert fit.phi[:, 0].sum() == pytest.approx(weighed, rel=1e-8)
    assert "m0R" not in fit.base.names
    assert 0.7 < np.sqrt(np.mean(misses(fit) ** 2)) < 1.3
