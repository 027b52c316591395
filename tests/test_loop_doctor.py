"""The doctor on logs of closed chains: it reads driven joints otherwise, and closes the loops."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from linkage_logs import plan_motion
from linkages import load_linkage

import dynident as di
from dynident.diagnosis.diagnoses import list_column_orders
from dynident.diagnosis.scene import take_scene
from dynident.dynamics.base import base_parameters
from dynident.regression.generalised import generalise_samples

RATE = 200.0
CRANK, SHOULDER = "crank", "shoulder"


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return load_linkage("palletiser.xml", tmp_path_factory.mktemp("palletiser"))


@pytest.fixture(scope="module")
def signals(robot):
    """Columns of the drives, the torques of a model with friction in all joints and noise."""
    idim = di.build_idim(robot, "viscous")
    theta = idim.nominal
    for k, each in enumerate(idim.drives, idim.inertial):
        theta[k] = {"fv": 0.2, "Ia": 0.04}[each.symbol]
    _, motion = plan_motion(robot, 4.0, RATE, 1)
    tau = idim.torque(theta, *motion)
    tau = tau + 0.02 * np.random.default_rng(1).normal(size=tau.shape)
    names = robot.joint_names
    found = {f"q_{names[j]}": motion[0][:, j] for j in robot.driven}
    return found | {f"tau_{names[j]}": tau[:, j] for j in robot.driven}


def turn(own, column):
    return own | {column: -own[column]}


def swap(own, one, other):
    return own | {one: own[other], other: own[one]}


DAMAGE = {
    "sound": (lambda own: own, None, ""),
    "torque sign": (
        lambda own: turn(own, "tau_crank"),
        "the torque of crank has the opposite sign",
        "add sign = { tau = [1, 1, 1, -1, 1] } to [[log]]",
    ),
    "position sign": (
        lambda own: turn(own, "q_crank"),
        "the position of crank has the opposite sign",
        "add sign = { q = [1, 1, 1, -1, 1], qref = [1, 1, 1, -1, 1] } to [[log]]",
    ),
    "torque order": (
        lambda own: swap(own, "tau_shoulder", "tau_crank"),
        "the torques of shoulder and crank are in each other's columns",
        "add order = { tau = [1, 4, 3, 2, 5] } to [[log]]",
    ),
    "position order": (
        lambda own: swap(own, "q_shoulder", "q_crank"),
        "the positions of shoulder and crank are in each other's columns",
        "add order = { q = [1, 4, 3, 2, 5] } to [[log]]",
    ),
    "absolute encoder": (
        lambda own: own | {"q_crank": own["q_crank"] + own["q_shoulder"]},
        "the position of crank has that of shoulder in it",
        "",
    ),
}
LONG = ("absolute encoder", "position sign", "torque order", "position order")


@pytest.mark.long
@pytest.mark.parametrize(
    "damage", [pytest.param(d, marks=pytest.mark.long) if d in LONG else d for d in DAMAGE]
)
def test_what_is_wrong_with_a_drives_columns_is_named(damage, robot, signals):
    change, said, remedy = DAMAGE[damage]
    log = di.read_log(pd.DataFrame(change(dict(signals))), robot, rate=RATE, name="log")
    problem = di.Problem(robot, di.prepare(log, bandwidth=6.0), "viscous")
    (report,) = di.doctor(problem)
    if said is None:
        assert not report.findings
        assert not report.signs
        return
    (found,) = report.findings
    assert found.diagnosis == damage
    assert found.what == said
    assert found.remedy == remedy or not remedy
    assert found.after < 0.1 * found.before


@pytest.mark.long
def test_a_late_torque_is_measured(robot, signals):
    late = {k: np.roll(own, 6) if k.startswith("tau") else own for k, own in signals.items()}
    log = di.read_log(pd.DataFrame(late), robot, rate=RATE, name="log")
    (report,) = di.doctor(di.Problem(robot, di.prepare(log, bandwidth=6.0), "viscous"))
    (found,) = report.findings
    assert found.diagnosis == "delay"
    assert report.repair.delay == pytest.approx(6.0 / RATE, abs=2.0 * found.error)


def test_orders_leave_passive_joints_where_they_are(robot):
    orders = [order for _, order in list_column_orders(robot, frozenset(robot.driven), True)]
    assert orders
    for order in orders:
        assert sorted(order[j] - 1 for j in robot.driven) == robot.driven


@pytest.mark.long
def test_a_reading_that_no_chain_has_leaves_no_row(tmp_path):
    """Cranks of a five-bar that would turn four times as far: its rods do not reach."""
    robot = load_linkage("five_bar.xml", tmp_path)
    base = base_parameters(di.build_idim(robot, "viscous"))
    _, motion = plan_motion(robot, 3.0, RATE, 1)
    log = di.Recording("log", RATE, motion[0], base.idim.torque(base.idim.nominal, *motion))
    scene = take_scene(base, generalise_samples(base.idim, di.prepare(log, bandwidth=6.0)))
    closure = base.idim.structure.closure
    assert np.abs(closure.measure(scene.q)).max() < 1e-9
    near, far = (scene.along(x * scene.q, x * scene.dq, x * scene.ddq) for x in (1.02, 4.0))
    assert near.problem.as_many_as(scene.problem)
    assert np.abs(closure.measure(near.q)).max() < 1e-9
    assert not far.problem.as_many_as(scene.problem)
