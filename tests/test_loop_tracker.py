"""A closed chain followed sample by sample: passive joints computed, rows those of its drives."""

from __future__ import annotations

import numpy as np
import pytest
from linkage_logs import plan_motion
from linkages import LINKAGES, load_linkage
from thin import first

import dynident as di
from dynident.core.errors import InputError
from dynident.core.inertia import from_com
from dynident.dynamics.base import base_parameters
from dynident.online.tracker import PriorKnowledge, Tracker

RATE, NOISE = 200.0, 0.02


def make_stream(robot, seconds, load=0.0, friction="viscous"):
    """A motion and its torques with noise; driven joints alone are told."""
    idim, rng = di.build_idim(robot, friction), np.random.default_rng(0)
    values = {"Ia": 0.05, "fv": 0.3, "fc": 0.2}
    drives = [values.get(each.symbol, 0.0) for each in idim.drives]
    _, motion = plan_motion(robot, seconds, RATE, 2)
    nominal = robot.nominal.copy()
    theta = idim.join(nominal, drives)
    carried = nominal.copy()
    body = robot.links.index("fore") if "fore" in robot.links else robot.n - 1
    carried[body] += from_com(load, np.array([0.0, 0.0, 0.25]), np.zeros((3, 3)))
    tau = idim.torque(theta, *motion)
    half = len(tau) // 2
    tau[half:] = idim.torque(idim.join(carried, drives), *motion)[half:]
    told = ~robot.passive
    noisy = np.where(told, tau + NOISE * rng.normal(size=tau.shape), 0.0)
    return idim, theta, motion, tuple(np.where(told, each, 0.0) for each in motion), noisy


@pytest.mark.parametrize("name", ["five_bar.xml", "leg.urdf", "palletiser.xml"])
@pytest.mark.parametrize("friction", first(["coulomb-viscous", "viscous"]))
def test_sample_by_sample_it_is_least_squares(name, friction, tmp_path):
    assert name in LINKAGES
    robot = load_linkage(name, tmp_path)
    idim, _, motion, told, tau = make_stream(robot, 3.0, friction=friction)
    base = base_parameters(idim)
    tracker = Tracker(base, np.full(robot.n, NOISE), RATE)
    for q, dq, ddq, y in zip(*told, tau, strict=True):
        tracker.update(q, dq, ddq, y)
    own = ~robot.passive
    X = idim.regressor(*motion)[:, own][:, :, base.kept].reshape(-1, base.count)
    y = tau[:, own].ravel()
    size = np.linalg.norm(X, axis=0)
    wanted = np.linalg.lstsq(X / size, y, rcond=None)[0] / size
    std = NOISE * np.sqrt(np.diag(np.linalg.inv(X.T @ X)))
    known = std < 0.3 * np.abs(wanted)  # of the others the tracker's first belief is a part
    assert known.sum() > 4
    np.testing.assert_allclose(tracker.beta[known], wanted[known], atol=0.1 * std[known].max())
    predicted = tracker.predict(*(each[10] for each in told))
    np.testing.assert_allclose(
        predicted[own], (idim.regressor(*(each[10:11] for each in motion))[0][own][:, base.kept])
        @ tracker.beta, atol=1e-9,
    )  # fmt: skip
    assert np.isnan(predicted[robot.passive]).all()


def test_a_load_on_a_link_of_the_chain_is_noticed(tmp_path):
    robot = load_linkage("palletiser.xml", tmp_path)
    idim, theta, _, told, tau = make_stream(robot, 8.0, load=1.5)
    base = base_parameters(idim)
    start = PriorKnowledge(base.matrix @ theta, np.diag(np.full(base.count, 1e-8)))
    tracker = Tracker(base, np.full(robot.n, NOISE), RATE, start=start, link="fore")
    events = [
        event for sample in zip(*told, tau, strict=True) if (event := tracker.update(*sample))
    ]
    assert [event.kind for event in events] == ["load"]
    assert 0 <= events[0].sample / RATE - 4.0 < 1.0
    assert tracker.loaded
    assert tracker.load is not None
    assert abs(tracker.load.phi[0] - 1.5) < 5.0 * max(tracker.load.std[0], 0.01)


def test_what_a_tracker_does_not_follow_is_refused(tmp_path):
    robot = load_linkage("five_bar.xml", tmp_path)
    base = base_parameters(di.build_idim(robot, "viscous"))
    with pytest.raises(InputError, match="instruments of a stream needs a tree"):
        Tracker(base, np.full(robot.n, NOISE), RATE, instruments=True)
    tracker = Tracker(base, np.full(robot.n, NOISE), RATE)
    q = np.array(robot.assembled)
    tracker.update(q, 0.0 * q, 0.0 * q, 0.0 * q)
    q[[0, 2]] += [-3.0, 3.0]
    with pytest.raises(InputError, match=r"sample 2: .* the loop tip"):
        tracker.update(q, 0.0 * q, 0.0 * q, 0.0 * q)
    assert tracker.samples == 1
