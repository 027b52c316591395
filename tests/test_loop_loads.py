"""Friction of a chain's drives under the torque that they bear through its loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differences import assert_slope
from linkage_logs import make_log, plan_motion
from linkages import EACH, load_linkage
from thin import first

import dynident as di
from dynident.control.controller import pd
from dynident.control.reference import Reference
from dynident.dynamics.columns import fill_rows
from dynident.dynamics.following import find_conditions
from dynident.dynamics.whole import WholeModel

SHARE, RATE = 0.15, 200.0


@pytest.fixture(scope="module", params=EACH)
def robot(request, tmp_path_factory):
    return load_linkage(request.param, tmp_path_factory.mktemp("linkage"))


def fill(idim, **more):
    values = {"Ia": 0.05, "fv": 0.3, "fc": 0.2, "fl": SHARE, **more}
    return idim.join(idim.robot.nominal, [values.get(each.symbol, 0.0) for each in idim.drives])


def test_drives_bear_what_bodies_ask_of_them(robot):
    _, (q, dq, ddq) = plan_motion(robot, 0.5, RATE, 1)
    idim, bare = di.build_idim(robot, "load"), di.build_idim(robot, "coulomb-viscous")
    rigid = di.build_idim(robot, "none")
    load = WholeModel(rigid, rigid.nominal).inverse_dynamics(
        q, dq, ddq
    )  # Pinocchio's, see test_loops
    assert not load[:, robot.passive].any()
    plain = WholeModel(bare, fill(bare)).inverse_dynamics(q, dq, ddq)
    found = WholeModel(idim, fill(idim)).inverse_dynamics(q, dq, ddq)
    np.testing.assert_allclose(
        found, plain + SHARE * np.abs(load) * np.sign(dq), atol=1e-11 * np.abs(found).max()
    )


def test_columns_are_the_slopes_of_torques(robot):
    """Of a model linearised about a set: what bodies do through loads is in the drives' rows."""
    _, motion = plan_motion(robot, 0.2, RATE, 1)
    width = np.full(robot.n, 0.3)
    idim, rng = di.build_idim(robot, "load"), np.random.default_rng(0)
    theta = fill(idim)
    model = replace(idim, blur=(1e-3,) * robot.n).linearised(theta)
    known = find_conditions(model, *motion, RATE, width)
    packing = model.packing(range(len(idim.parameters)))
    packed = np.empty((len(motion[0]), packing.width))
    fill_rows(model, packing, *motion, packed, width, known)
    along = rng.normal(size=len(theta)) * (np.abs(theta) > 0.0)
    slope = np.column_stack([packed[:, own] @ along[columns] for own, columns in packing.joints])
    # away from where a load changes its direction
    rigid = di.build_idim(robot, "none")
    load = np.abs(rigid.torque(theta[: idim.inertial], *motion))
    clear = np.min(load + 10.0 * robot.passive, axis=1) > 0.05
    assert clear.sum() > 10
    assert_slope(
        lambda t: idim.torque(theta + t * along, *motion, width)[clear],
        slope[clear],
        1e-4,
        within=1e-4,
    )


def test_rollouts_have_the_torques_of_the_columns(robot):
    idim = di.build_idim(robot, "load")
    _, motion = plan_motion(robot, 0.3, RATE, 1)
    law = pd([400.0] * robot.n, [20.0] * robot.n, rate=RATE)
    width = np.full(robot.n, 0.1)
    loop = di.Loop(idim, law, Reference(RATE, *motion), "ode4", 2, width)
    moved = di.rollout(loop, fill(idim))
    tau = idim.torque(fill(idim), moved.q, moved.dq, moved.ddq, width)
    np.testing.assert_allclose(moved.tau, tau, atol=1e-10 * np.abs(tau).max())
    free = di.rollout(loop, fill(idim, fl=0.0))
    assert np.abs(free.q - moved.q).max() > 1e-6


@pytest.mark.parametrize("name", first(["five_bar.xml", "palletiser.xml"]))
def test_a_log_tells_friction_under_load(name, tmp_path):
    """By the default method, whose prior parts rotors, which are not a load, from cranks."""
    robot = load_linkage(name, tmp_path)
    idim = di.build_idim(robot, "load")
    _, motion = plan_motion(robot, 8.0, RATE, 2)
    truth = fill(idim)
    log = make_log(robot, motion[0], idim.torque(truth, *motion), RATE, 0.005, 1, "made")
    samples = di.prepare(log, bandwidth=8.0)
    problem = di.Problem(robot, samples, "load")
    fit = di.identify(problem, doctor=False)
    value = dict(zip(fit.base.names, fit.estimate.beta, strict=True))
    std = dict(zip(fit.base.names, fit.estimate.covariance.std, strict=True))
    shares = [each for each in value if each.startswith("fl")]
    assert len(shares) == np.sum(~robot.passive)  # of drives alone
    for each in shares:
        assert abs(value[each] - SHARE) < max(4.0 * std[each], 0.01)
    assert min(std[each] for each in shares) < 0.1 * SHARE
    # models of the same log share the columns of bodies: the same rows
    other = di.Problem(robot, samples, "coulomb-viscous").under(problem.base)
    same = di.identify(other, doctor=False)
    np.testing.assert_allclose(same.estimate.beta, fit.estimate.beta, atol=1e-6)
    # without it errors are several times the noise
    plain = di.identify(di.Problem(robot, samples, "coulomb-viscous"), doctor=False)
    own = ~robot.passive
    assert np.max(plain.estimate.sigma[own]) > 1.5 * np.max(fit.estimate.sigma[own])


def test_elements_under_load_act_on_drives_too(tmp_path):
    robot = load_linkage("five_bar.xml", tmp_path)
    plain, loaded = di.build_idim(robot, "coulomb-viscous"), di.build_idim(robot, "load")
    _, motion = plan_motion(robot, 0.2, RATE, 1)
    law = pd([400.0] * 4, [20.0] * 4, rate=RATE)
    loop = di.Loop(plain, law, Reference(RATE, *motion), width=np.full(4, 0.1))
    same = di.rollout(loop, fill(plain)).q
    np.testing.assert_allclose(
        di.rollout(replace(loop, idim=loaded), fill(loaded, fl=0.0)).q, same, atol=1e-12
    )
