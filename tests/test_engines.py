"""Identified models in other engines: the same robot, as far as these can express it."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
import toy
from robots import pin_q, relative, states, urdf
from test_result import result as identified
from test_whole import consistent

from dynident.core.errors import InputError
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.conditions import FREE
from dynident.dynamics.idim import Idim, build_idim
from dynident.dynamics.parameters import JointElements
from dynident.dynamics.whole import WholeModel
from dynident.export.mjcf import render_identified_mjcf
from dynident.export.mujoco import find_velocity_rows, mujoco_model
from dynident.export.pinocchio import PinocchioModel, build_pinocchio_model
from dynident.export.softness import SLOPE
from dynident.export.stand_in import find_stand_in, follow_log
from dynident.export.terms import sort_joint_terms
from dynident.friction.elements import ELEMENTS
from dynident.robot import load_robot

ROBOTS = {
    "ur5": {},
    "panda": {"locked": {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.01}},
    "tiago": {"locked": {"torso_lift_joint": 0.1}},
    "tx40": {"gravity": (0.0, 3.0, -9.0)},
    "solo12": {"floating": True},
}


def in_pinocchio(idim: Idim, theta: np.ndarray) -> tuple[WholeModel, PinocchioModel]:
    model = WholeModel(idim, theta)
    return model, build_pinocchio_model(model)


def check_pinocchio(model: WholeModel, there: PinocchioModel) -> None:
    """Torques, mass matrices and accelerations are ours."""
    robot, other = model.idim.robot, there.model
    data = other.createData()
    first = robot.dof - robot.n
    order = [*range(first)] + [
        int(other.joints[other.getJointId(name)].idx_v) for name in robot.joint_names
    ]
    q, dq, ddq = states(robot, 6)
    width = 0.3
    tau = model.inverse_dynamics(q, dq, ddq, width)
    M = model.mass_matrix(q)
    for k in range(6):
        at = pin_q(other, q[k])  # siblings stand in the same order here
        v, a = np.zeros(other.nv), np.zeros(other.nv)
        v[order], a[order] = dq[k], ddq[k]
        resisting = other.damping * v + there.offset
        resisting += other.upperDryFrictionLimit * np.tanh(v / width)
        found = pin.rnea(other, data, at, v, a) + resisting
        found += (there.rotors - np.diag(other.armature)) @ a
        assert relative(found[order], tau[k]) < 1e-9
        upper = np.triu(pin.crba(other, data, at))
        mass = upper + np.triu(upper, 1).T + there.rotors - np.diag(other.armature)
        assert relative(mass[np.ix_(order, order)], M[k]) < 1e-9


@pytest.mark.parametrize("name", ROBOTS)
def test_a_model_of_pinocchio_is_the_same_robot(name):
    robot = load_robot(urdf(name), **ROBOTS[name])
    idim = build_idim(robot)
    model, there = in_pinocchio(idim, consistent(idim))
    check_pinocchio(model, there)
    assert there.notes == ()
    assert set(robot.joint_names) <= set(there.model.names)
    assert not set(robot.locked) & set(there.model.names)


def test_coupled_rotors_stand_beside_the_armature():
    idim = build_idim(toy.arm(4, coupled=True))
    model, there = in_pinocchio(idim, toy.true_parameters(idim, idim.robot.nominal))
    _, lone = in_pinocchio(idim, idim.nominal)
    q, _, _ = states(idim.robot, 3)
    at = pin_q(there.model, q[0])
    upper, bodies = (
        np.triu(pin.crba(other, other.createData(), at)) for other in (there.model, lone.model)
    )
    mass = upper + np.triu(upper, 1).T + there.rotors - np.diag(there.model.armature)
    assert relative(mass, model.mass_matrix(q[0])) < 1e-10
    assert relative(np.diag(upper - bodies), np.diag(there.rotors)) < 1e-10
    assert there.rotors[2, 3] == pytest.approx(0.2)
    assert there.model.armature[2] == pytest.approx(0.3 + 0.2)
    assert "Iam4: Pinocchio's armature is a diagonal" in there.notes[1]
    assert there.notes[0].endswith("no place for it: fvm4, fcm4")


def test_what_simulators_lack_is_named():
    spring = JointElements(1, ELEMENTS["spring"]())
    idim = build_idim(toy.arm(2), "stribeck, uneven", elements=[spring])
    theta = idim.nominal
    theta[idim.inertial :] = np.linspace(0.5, 2.5, len(idim.drives))
    terms = sort_joint_terms(WholeModel(idim, theta))
    own = dict(zip(idim.names, theta, strict=True))
    assert terms.left == ("fs1", "fcs2", "fcc2", "ks2", "ps2")
    assert terms.motors == ()
    for place, symbol in (("armature", "Ia"), ("damping", "fv"), ("friction", "fc")):
        assert getattr(terms, place).tolist() == [own[f"{symbol}1"], own[f"{symbol}2"]]
    assert terms.offset.tolist() == [own["off1"], own["off2"]]
    theta[idim.names.index("fs1")] = 0.0
    assert "fs1" not in sort_joint_terms(WholeModel(idim, theta)).left


def test_what_simulators_lack_is_stood_for_by_what_they_have():
    idim = build_idim(toy.arm(3), "uneven")
    own = {"Ia": 0.3, "fv": 2.0, "fc": 1.0, "off": 0.5, "fcs": 0.0, "fcc": 0.0}
    drives = np.array([own[p.symbol] for p in idim.drives])
    theta = idim.join(idim.robot.nominal, drives)
    theta[[idim.names.index(name) for name in ("fcs2", "fcc2", "fcs3")]] = -3.0, 1.0, 40.0
    model = WholeModel(idim, theta)
    rng = np.random.default_rng(5)
    logs = [
        (rng.uniform(-1.6, -1.2, (300, 3)), rng.normal(size=(300, 3)), rng.normal(size=(300, 3)))
        for _ in range(2)
    ]
    found, notes = find_stand_in(model, [(*log, FREE) for log in logs], 0.2).apply(model)
    values = dict(zip(found.idim.names, found.theta, strict=True))
    assert found.idim.friction == "coulomb-viscous"
    assert [values[f"{s}1"] for s in ("Ia", "fv", "fc", "off")] == [0.3, 2.0, 1.0, 0.5]
    assert values["fc2"] == pytest.approx(1.0 + 3.0 * np.sin(1.4) + np.cos(1.4), rel=0.01)
    assert values["fc3"] == 0.0  # a friction below zero is none
    assert "(fcs2, fcc2, fcs3) at joint_2" in notes[0]
    q, dq, ddq = logs[0]
    ours = model.inverse_dynamics(q, dq, ddq, 0.2)
    for j, share in ((0, 1e-9), (1, 0.06)):
        theirs = found.inverse_dynamics(q, dq, ddq, 0.2)
        friction = (
            ours[:, j]
            - WholeModel(idim, idim.join(model.phi, 0.0 * drives)).inverse_dynamics(
                q, dq, ddq, 0.2
            )[:, j]
        )
        assert np.linalg.norm((theirs - ours)[:, j]) < share * np.linalg.norm(friction)


@pytest.mark.parametrize("friction", ["coulomb-viscous", "temperature"])
def test_models_that_have_nothing_to_stand_for_or_nothing_that_can_stay(friction):
    idim = build_idim(toy.arm(2), friction)
    theta = idim.nominal
    theta[idim.inertial :] = 1.0
    model = WholeModel(idim, theta)
    motion = states(idim.robot, 20)
    assert find_stand_in(model, [(*motion, FREE)]) is None


def test_friction_under_load_is_stood_for_too():
    idim = build_idim(toy.arm(2), "load")
    theta = idim.nominal
    theta[idim.inertial :] = 0.2
    model, (q, dq, ddq) = WholeModel(idim, theta), states(idim.robot, 200)
    found, notes = find_stand_in(model, [(q, dq, ddq, FREE)]).apply(model)
    gone = theta.copy()
    gone[[k for k, p in enumerate(idim.parameters) if p.symbol == "fl"]] = 0.0
    torque = model.inverse_dynamics(q, dq, ddq)
    near = found.inverse_dynamics(q, dq, ddq) - torque
    far = WholeModel(idim, gone).inverse_dynamics(q, dq, ddq) - torque
    assert np.linalg.norm(near) < 0.7 * np.linalg.norm(far)
    assert "(fl1, fl2)" in notes[0]


def test_a_result_becomes_a_model_of_pinocchio():
    result = identified()
    there = result.to_pinocchio()
    check_pinocchio(result.model, there)
    with pytest.raises(
        InputError, match="wls gives base parameters only, which no model of Pinocchio can hold"
    ):
        identified("wls").to_pinocchio()


@pytest.mark.parametrize("name", ["ur5", "panda", "tx40", "solo12", "coupled"])
def test_a_model_of_mujoco_is_the_same_robot(name):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    from mujoco_model import engine_terms

    robot = toy.arm(4, True) if name == "coupled" else load_robot(urdf(name), **ROBOTS[name])
    idim = build_idim(robot)
    theta = consistent(idim)
    model = WholeModel(idim, theta)
    there = mujoco_model(model)
    q, dq, _ = states(robot, 6)
    M, bias, _ = engine_terms(there, robot, q, dq)
    assert relative(M, model.mass_matrix(q)) < 1e-6  # coupled rotors are tendons'
    weighed = evaluate_inverse_dynamics(idim.tree, model.phi, q, dq, np.zeros_like(dq))
    assert relative(bias, weighed) < 1e-6
    rows = find_velocity_rows(there, robot.joint_names)
    terms = sort_joint_terms(model)
    np.testing.assert_array_equal(there.dof_damping[rows], terms.damping)
    np.testing.assert_array_equal(there.dof_frictionloss[rows], terms.friction)
    springs = [there.joint(joint) for joint in robot.joint_names]
    pull = [s.stiffness[0] * (there.qpos_spring[s.qposadr[0]] - 0.3) for s in springs]
    np.testing.assert_allclose(pull, -terms.offset, atol=1e-6)


WHEEL = """<mujoco><option timestep="{step}"/><worldbody><body name="wheel">
<inertial pos="0 0 0" mass="9" diaginertia="1 1 2"/><joint name="turn" axis="0 0 1"/>
</body></worldbody></mujoco>"""


def wheel(folder: Path, fc: float, step: float) -> WholeModel:
    """2 kg m^2, and a rotor of 0.3, that turn without weight under friction alone."""
    (folder / "wheel.xml").write_text(WHEEL.format(step=step))
    robot = load_robot(folder / "wheel.xml")
    idim = build_idim(robot)
    own = {"Ia": 0.3, "fv": 0.0, "fc": fc, "off": 0.0}
    return WholeModel(
        idim, idim.join(robot.nominal, np.array([own[p.symbol] for p in idim.drives]))
    )


@pytest.mark.long
@pytest.mark.parametrize("fc", [0.5, 20.0, 400.0])
@pytest.mark.parametrize("step", [1e-4, 2e-3])
def test_friction_loss_creeps_as_the_identified_sign_does(fc, step, tmp_path):
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    model, width = wheel(tmp_path, fc, step), 0.05
    there = mujoco_model(model, width)
    assert there.dof_armature[0] == pytest.approx(0.3)
    assert there.dof_frictionloss[0] == fc
    data = mujoco.MjData(there)
    for share in (0.3, -0.5):
        data.qfrc_applied[0] = share * fc
        for _ in range(round(4.0 / step)):
            mujoco.mj_step(there, data)
        assert data.qvel[0] == pytest.approx(share * width / SLOPE, rel=0.02)
    data.qfrc_applied[0], data.qvel[0] = 1.5 * fc, 3.0 * width  # beyond the rise all of it is there
    mujoco.mj_forward(there, data)
    assert data.qacc[0] == pytest.approx(0.5 * fc / 2.3, rel=1e-3)


@pytest.mark.parametrize("name", ["solo12", "coupled", "wheel"])
def test_an_mjcf_says_how_soft_its_friction_loss_is(name, tmp_path):
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    if name == "wheel":
        model = wheel(tmp_path, 40.0, 4e-3)  # a time step of its own
    else:
        robot = toy.arm(4, True) if name == "coupled" else load_robot(urdf(name), **ROBOTS[name])
        idim = build_idim(robot)
        model = WholeModel(idim, consistent(idim))
    width = np.linspace(0.05, 0.2, model.idim.robot.n)
    text = render_identified_mjcf(model.idim, model.theta, None, width)[0].decode()
    found, there = mujoco.MjModel.from_xml_string(text), mujoco_model(model, width)
    assert found.opt.timestep == there.opt.timestep
    for key in ("dof_solref", "dof_solimp", "tendon_solref_fri", "tendon_solimp_fri"):
        np.testing.assert_allclose(getattr(found, key), getattr(there, key), rtol=1e-6)
    rows = find_velocity_rows(found, model.idim.robot.joint_names)
    assert np.all(found.dof_solref[rows, 1] < 0.0)
    plain = mujoco.MjModel.from_xml_string(
        render_identified_mjcf(model.idim, model.theta)[0].decode()
    )
    assert np.all(plain.dof_solref[rows, 0] > 0.0)


def test_a_result_becomes_a_model_of_mujoco():
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    result = identified()
    assert result.width is None
    plain, soft = result.to_mujoco(), result.to_mujoco(width=0.1)
    assert plain.nv == result.robot.n
    assert np.all(plain.dof_solref[:, 0] > 0.0)
    assert np.all(soft.dof_solref[:, 1] < 0.0)
    with pytest.raises(InputError, match="which no model of MuJoCo can hold"):
        identified("wls").to_mujoco()


def test_a_spring_that_is_there_gives_the_offset_beside_its_own(tmp_path):
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    path = tmp_path / "wheel.xml"
    path.write_text(WHEEL.format(step=2e-3).replace('axis="0 0 1"', 'axis="0 0 1" stiffness="4"'))
    idim = build_idim(load_robot(path))
    theta = idim.nominal
    theta[[idim.names.index("off1"), idim.names.index("Ia1")]] = 0.5, 0.1
    there = mujoco_model(WholeModel(idim, theta))
    data = mujoco.MjData(there)
    data.qpos[0] = 0.25
    mujoco.mj_forward(there, data)
    assert data.qfrc_passive[0] == pytest.approx(-4.0 * 0.25 - 0.5)


def test_friction_with_a_memory_is_stood_for_as_it_is_along_the_motion():
    """In short strokes it does not settle: nearest is less Coulomb friction, and none viscous."""
    idim = build_idim(toy.arm(2), "coulomb-viscous + dahl", shape=(0.02, 0.02))
    theta = idim.nominal
    for name, value in (("fv1", 0.3), ("fv2", 0.3), ("fc1", 0.1), ("fc2", 0.1), ("fcb1", 2.0)):
        theta[idim.names.index(name)] = value
    model, t = WholeModel(idim, theta), np.arange(3000) / 500.0
    w, a = np.array([7.0, 5.0]), np.array([0.02, 0.5])
    q, dq, ddq = (
        x * f(np.outer(t, w)) for x, f in ((a, np.sin), (a * w, np.cos), (-a * w**2, np.sin))
    )
    log = SimpleNamespace(q=q, dq=dq, ddq=ddq, rate=500.0, segments=((0, 1400), (1400, 3000)))
    motion = list(follow_log(model, log))
    tau = np.vstack([idim.torque(theta, *each[:3], conditions=each[3]) for each in motion])
    found, notes = find_stand_in(model, motion).apply(model)
    values = dict(zip(found.idim.names, found.theta, strict=True))
    assert values["fv1"] == pytest.approx(0.3, abs=1e-6)
    assert 0.2 < values["fc1"] < 1.0  # 2.1 as it settles
    (share,) = map(float, re.findall(r"joint_1 \((\S+) % of it", notes[0]))
    rest = theta.copy()
    rest[idim.names.index("fcb1")] = 0.0
    memory = (tau - WholeModel(idim, rest).inverse_dynamics(q, dq, ddq))[:, 0]
    left = (tau - found.inverse_dynamics(q, dq, ddq))[:, 0]
    assert share == pytest.approx(100.0 * np.linalg.norm(left) / np.linalg.norm(memory), rel=0.02)
    settled = (tau - model.inverse_dynamics(q, dq, ddq))[:, 0]
    assert np.linalg.norm(left) < 0.7 * np.linalg.norm(settled)


def test_what_does_not_resist_motion_is_an_offset():
    idim = build_idim(toy.arm(2), elements=[JointElements(1, ELEMENTS["spring"]())])
    theta = idim.nominal
    own = {"fv2": 0.4, "fc2": 0.2, "off2": 0.1, "ks2": 3.0, "ps2": 1.0}
    theta[[idim.names.index(name) for name in own]] = [*own.values()]
    model, t = WholeModel(idim, theta), np.linspace(0.0, 1.0, 500)[:, None]
    q, dq, ddq = (f * np.ones(2) for f in (t**2, 2.0 * t, 2.0 + 0.0 * t))  # one way alone
    found, _ = find_stand_in(model, [(q, dq, ddq, FREE)]).apply(model)
    values = dict(zip(found.idim.names, found.theta, strict=True))
    assert values["fv2"] == pytest.approx(0.4, rel=1e-9)
    assert values["fc2"] == pytest.approx(0.2, rel=1e-9)
    assert values["off2"] == pytest.approx(0.1 + 3.0 * np.mean(q) + 1.0, rel=1e-9)
