"""A fitted law in MuJoCo: position servos that move as our own simulation does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_encoder import BIAS, KD, KP, RATE, twin

import dynident as di
from dynident.control.controller import Controller, pd, pid
from dynident.dynamics.whole import Model
from dynident.export.mjcf import render_identified_mjcf
from dynident.export.servo import derive_servos
from dynident.export.terms import sort_joint_terms
from dynident.simulation.rollout import rollout

LIMIT = 9.0  # which the first steps reach


@pytest.mark.parametrize("limit", [np.inf, LIMIT])
def test_an_mjcf_with_servos_moves_as_the_fitted_loop_does(tmp_path, limit):
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    robot, loop, theta = twin(tmp_path, 2.0)
    law = pd(KP, KD, limit=limit)
    loop = replace(loop, controller=law)
    ours = rollout(loop, theta)
    model = Model(loop.idim, theta)
    servos = derive_servos(
        di.Simulation(law, bias=tuple(BIAS)).of_encoders(), sort_joint_terms(model).offset
    )
    text, notes = render_identified_mjcf(loop.idim, theta, None, loop.width, servos)
    assert not any("off" in note for note in notes)
    there = mujoco.MjModel.from_xml_string(text.decode())
    assert there.nu == robot.n
    assert there.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(there)
    data.qpos[:] = loop.q0 - BIAS
    found = np.empty_like(ours.q)
    for k, target in enumerate(loop.reference.q):
        found[k] = data.qpos
        data.ctrl[:] = target
        for _ in range(round(1.0 / (RATE * there.opt.timestep))):
            mujoco.mj_step(there, data)
    apart = np.sqrt(np.mean((found - ours.q) ** 2, axis=0))
    assert np.all(apart < 0.02 * np.std(ours.q, axis=0))
    full = np.max(np.abs(ours.tau), axis=0)
    assert np.isinf(limit) or np.max(full) == pytest.approx(limit, rel=0.02)


def test_laws_that_are_no_servos_have_none():
    offset = np.zeros(2)
    for law in (pid([5.0, 4.0], 1.0, 0.2), pd([5.0, 4.0], 0.2, rate=500.0)):
        assert isinstance(law, Controller)
        assert derive_servos(di.Simulation(law), offset) == ()
