"""A fitted law in MuJoCo: position servos that move as our own simulation does."""

from __future__ import annotations

from dataclasses import replace

import lost_motion
import numpy as np
import pytest
from lost_motion import swing, write_pendulum
from test_encoder import BIAS, DELAY, KD, KP, twin

import dynident as di
from dynident.control.controller import Controller, pd, pid, servo
from dynident.control.reference import Reference
from dynident.dynamics.whole import WholeModel
from dynident.export.mjcf import render_identified_mjcf
from dynident.export.servo import derive_servos
from dynident.export.terms import sort_joint_terms
from dynident.simulation.backlash import rest_on_flank
from dynident.simulation.rollout import rollout

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
LIMIT = 9.0  # which the first steps reach
WIDTH = 8.7e-3


def write_model(loop, theta, simulation):
    """What the MJCF of a law makes of a model, and its notes."""
    offset = sort_joint_terms(WholeModel(loop.idim, theta)).offset
    servos = derive_servos(simulation, offset)
    text, notes = render_identified_mjcf(loop.idim, theta, None, loop.width, servos)
    return mujoco.MjModel.from_xml_string(text.decode()), notes


def replay(model, loop, q0, ahead=None, cancels=False):
    """What the encoders read under the targets of a loop, and how far links are behind motors."""
    names = loop.idim.robot.joint_names
    own = [model.joint(name).qposadr[0] for name in names]
    gaps = [] if ahead is None else [model.joint(f"{name}_backlash").qposadr[0] for name in names]
    data = mujoco.MjData(model)
    data.qpos[own] = q0
    if gaps:
        data.qpos[own], data.qpos[gaps] = q0 + ahead, -ahead
    for j, first in enumerate(loop.reference.q[0]):
        count = model.actuator_history[j, 0]
        if count:
            past = -model.opt.timestep * np.arange(count, 0, -1)
            mujoco.mj_initCtrlHistory(model, data, j, past, np.full(count, first))
    found, apart = np.empty_like(loop.reference.q), np.zeros_like(loop.reference.q)
    for k, target in enumerate(loop.reference.q):
        if gaps:
            apart[k] = data.qpos[gaps]
        found[k] = data.qpos[own] + apart[k]
        data.ctrl[:] = target
        for _ in range(round(1.0 / (loop.rate * model.opt.timestep))):
            if cancels:
                data.qfrc_applied[gaps] = -data.qfrc_actuator[gaps]
            mujoco.mj_step(model, data)
    return found, apart


@pytest.mark.parametrize("delay", [0.0, DELAY])
@pytest.mark.parametrize("limit", [np.inf, LIMIT])
def test_an_mjcf_with_servos_moves_as_the_fitted_loop_does(tmp_path, limit, delay):
    robot, loop, theta = twin(tmp_path, 2.0)
    law = pd(KP, KD, limit=limit, delay=delay)
    loop = replace(loop, controller=law)
    ours = rollout(loop, theta)
    there, notes = write_model(
        loop, theta, di.Simulation(law, bias=tuple(BIAS), targets="held").of_encoders()
    )
    assert not any("off" in note for note in notes)
    assert any("mj_initCtrlHistory" in note for note in notes) == (delay > 0.0)
    assert there.nu == robot.n
    assert there.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    found, _ = replay(there, loop, loop.q0 - BIAS)
    apart = np.sqrt(np.mean((found - ours.q) ** 2, axis=0))
    assert np.all(apart < 0.005 * np.std(ours.q, axis=0))
    full = np.max(np.abs(ours.tau), axis=0)
    assert np.isinf(limit) or np.max(full) == pytest.approx(limit, rel=0.02)


def loop_of_pendulum(tmp_path, seconds, drives, width, **law):
    """The arm that hangs, whose encoders are at the links, under servos."""
    robot = write_pendulum(tmp_path)
    model = di.build_idim(robot)
    theta = model.join(robot.nominal, np.array([drives.get(p.symbol, 0.0) for p in model.drives]))
    qref = swing(0)[: round(seconds * lost_motion.RATE)]
    still = np.zeros_like(qref)
    reference = Reference(lost_motion.RATE, qref, still, still)
    control = servo([lost_motion.KP] * 2, **law)
    loop = di.Loop(model, control, reference, "sdirk2", 8, np.full(2, width), held=True,
                   q0=qref[0], dq0=still[0])  # fmt: skip
    return loop, theta


@pytest.mark.long
def test_servos_with_a_backlash_move_links_as_ours_do(tmp_path):
    """Of what the lost motion changes a tenth is left; the file alone changes more than it does."""
    drives = {"Ia": lost_motion.ROTOR, "fv": lost_motion.VISCOUS, "fc": 0.052}
    own = {"kd": 0.2, "delay": 0.01}
    loop, theta = loop_of_pendulum(tmp_path, 15.0, drives, 1e-4, backlash=WIDTH, **own)
    ours = rollout(loop, theta).q
    rigid = rollout(replace(loop, controller=servo([lost_motion.KP] * 2, **own)), theta).q
    there, notes = write_model(loop, theta, di.Simulation(loop.controller, targets="held"))
    (note,) = (note for note in notes if "qfrc_applied" in note)
    assert "the backlash of j1, j2" in note
    ahead, _ = rest_on_flank(loop.idim, theta, loop.q0, np.full(2, WIDTH))
    found, apart = replay(there, loop, loop.q0, ahead, cancels=True)
    np.testing.assert_allclose(np.ptp(apart, axis=0), WIDTH, rtol=0.15)
    left = {
        "cancelled": np.std(found - ours, axis=0),
        "file alone": np.std(replay(there, loop, loop.q0, ahead)[0] - ours, axis=0),
    }
    changed = np.std(rigid - ours, axis=0)
    assert np.all(left["cancelled"] < 0.1 * changed)
    assert np.all(left["file alone"] > changed)


def test_friction_holds_a_light_joint_in_the_file(tmp_path):
    """Where the impedance that a small width asks for was cut off, such joints shook and moved."""
    loop, theta = loop_of_pendulum(tmp_path, 4.0, {"Ia": 1e-6, "fv": 0.05, "fc": 0.8}, 1.5e-5)
    hanging = np.array([0.5 * np.pi, 0.0])
    qref = np.tile(hanging + np.array([0.03, -0.03]), (len(loop.reference.q), 1))
    loop = replace(loop, reference=replace(loop.reference, q=qref))
    there, _ = write_model(loop, theta, di.Simulation(loop.controller, targets="held"))
    found, _ = replay(there, loop, hanging)
    assert np.max(np.abs(found[-1] - hanging)) < 4.0 * loop.width[0] * 4.0


def test_laws_that_are_no_servos_have_none():
    offset = np.zeros(2)
    for law in (pid([5.0, 4.0], 1.0, 0.2), pd([5.0, 4.0], 0.2, rate=500.0)):
        assert isinstance(law, Controller)
        assert derive_servos(di.Simulation(law), offset) == ()
