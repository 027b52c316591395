"""Bodies, rotors and friction together, as functions: against Pinocchio and each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
import toy
from frictions import values
from robots import pin_q, relative, states
from test_dynamics import CASES, load
from test_result import result as identified

from dynident.core.errors import ComputationError, InputError
from dynident.dynamics.following import follow_friction
from dynident.dynamics.idim import Idim, build_idim
from dynident.dynamics.whole import WholeModel
from dynident.export.controller import ControllerModel
from dynident.friction.model import StateTrace

SAMPLES = 12


def consistent(idim: Idim) -> np.ndarray:
    """Values of bodies that differ and can exist, with drives that differ."""
    from robots import bodies

    theta = values(idim)
    theta[: idim.inertial] = bodies(idim.tree.bodies).ravel()
    return theta


@pytest.mark.parametrize("case", ["panda", "talos", "prismatic", "branched", "branched-floating"])
def test_they_are_pinocchios_with_armature_and_friction(case, tmp_path):
    robot, other = load(case, tmp_path)
    idim = build_idim(robot)
    theta = consistent(idim)
    model = WholeModel(idim, theta)
    own = {p.name: value for p, value in zip(idim.parameters, theta, strict=True)}
    Ia, fv, fc, off = (
        np.array([own[f"{symbol}{j}"] for j in range(1, robot.n + 1)])
        for symbol in ("Ia", "fv", "fc", "off")
    )
    for index, body in enumerate(model.phi, start=1):
        other.inertias[index] = pin.Inertia.FromDynamicParameters(body)
    first = robot.dof - robot.n
    other.armature = np.concatenate([np.zeros(first), Ia])
    data = other.createData()
    q, dq, ddq = states(robot, SAMPLES)
    friction = np.zeros_like(dq)
    friction[:, first:] = fv * dq[:, first:] + fc * np.sign(dq[:, first:]) + off
    tau = model.inverse_dynamics(q, dq, ddq)
    for k in range(SAMPLES):
        at = pin_q(other, q[k])
        assert relative(tau[k], pin.rnea(other, data, at, dq[k], ddq[k]) + friction[k]) < 1e-10
        found = pin.aba(other, data, at, dq[k], tau[k] - friction[k])
        assert relative(model.forward_dynamics(q[k], dq[k], tau[k]), found) < 1e-8
        upper = np.triu(pin.crba(other, data, at))
        assert relative(model.mass_matrix(q[k]), upper + np.triu(upper, 1).T) < 1e-10
        weight = pin.computeGeneralizedGravity(other, data, at)
        assert relative(model.gravity(q[k]), weight) < 1e-10


@pytest.mark.parametrize("case", CASES)
def test_one_undoes_the_other(case, tmp_path):
    robot, _ = load(case, tmp_path)
    idim = build_idim(robot, "stribeck")
    model = WholeModel(idim, consistent(idim))
    q, dq, ddq = states(robot, SAMPLES)
    for width in (None, 0.05):
        tau = model.inverse_dynamics(q, dq, ddq, width)
        assert relative(model.forward_dynamics(q, dq, tau, width), ddq) < 1e-8


def test_coupled_rotors_and_their_friction_are_in():
    idim = build_idim(toy.arm(4, coupled=True))
    model = WholeModel(idim, toy.true_parameters(idim, idim.robot.nominal))
    q, dq, ddq = states(idim.robot, SAMPLES)
    M, rest = model.mass_matrix(q), model.inverse_dynamics(q, dq, np.zeros_like(dq))
    tau = model.inverse_dynamics(q, dq, ddq)
    assert relative(tau, np.einsum("tij,tj->ti", M, ddq) + rest) < 1e-12
    assert relative(model.forward_dynamics(q, dq, tau), ddq) < 1e-9
    assert model.rotors[3, 2] == model.rotors[2, 3] == pytest.approx(0.2)  # Iam4, of dq3 + dq4


def test_states_may_come_alone_or_in_any_number():
    idim = build_idim(toy.arm(3))
    model = WholeModel(idim, toy.true_parameters(idim, idim.robot.nominal))
    q, dq, ddq = (each.reshape(2, 3, 3) for each in states(idim.robot, 6))
    tau = model.inverse_dynamics(q, dq, ddq)
    assert tau.shape == (2, 3, 3)
    assert model.mass_matrix(q).shape == (2, 3, 3, 3)
    assert model.gravity(q[0]).shape == (3, 3)
    alone = model.inverse_dynamics(q[1, 2].tolist(), dq[1, 2], ddq[1, 2])
    assert alone.shape == (3,)
    assert relative(alone, tau[1, 2]) < 1e-14
    still = np.zeros(3)
    assert (
        relative(model.gravity(q[0, 0]), model.inverse_dynamics(q[0, 0], still, still) - [0.5] * 3)
        < 1e-12
    )  # at rest there is no Coulomb friction, but the offset


def test_a_result_has_them_all():
    result = identified()
    q, dq, ddq = states(result.robot, 5)
    tau = result.inverse_dynamics(q, dq, ddq)
    assert relative(tau, result.torque(q, dq, ddq)) < 1e-14
    assert relative(tau[3], result.torque(q[3], dq[3], ddq[3])) < 1e-14
    with pytest.raises(InputError, match="states have shapes"):
        result.torque(q[3], dq[3], ddq)
    assert relative(result.forward_dynamics(q, dq, tau), ddq) < 1e-9
    weight = result.inverse_dynamics(q, 0.0 * dq, 0.0 * dq)
    assert relative(result.mass_matrix(q) @ ddq[0], result.inverse_dynamics(
        q, 0.0 * dq, np.tile(ddq[0], (5, 1))) - weight) < 1e-10  # fmt: skip
    assert result.gravity(q[0]).shape == (result.robot.n,)
    prepared = result.controller_model()
    assert relative(prepared.inverse_dynamics(q[0], dq[0], ddq[0]), tau[0]) < 1e-12


@pytest.mark.parametrize("width", [None, 0.3])
@pytest.mark.parametrize(
    ("case", "friction"),
    [
        ("branched-floating", "coulomb-viscous"),
        ("prismatic", "stribeck"),
        ("panda", "load"),
        ("branched", "lugre"),
        ("branched", "coulomb-viscous-asymmetric"),
    ],
)
def test_a_controllers_model_is_the_same_of_one_state(case, friction, width, tmp_path):
    idim = build_idim(load(case, tmp_path)[0], friction)
    model = WholeModel(idim, consistent(idim))
    prepared = ControllerModel(model, width)
    q, dq, ddq = states(idim.robot, 3)
    dq[0, -1] = 0.0
    tau = model.inverse_dynamics(q, dq, ddq, width)
    for k in range(3):
        found = prepared.inverse_dynamics(q[k], dq[k], ddq[k])
        assert relative(found, tau[k]) < 1e-10
        assert relative(prepared.forward_dynamics(q[k], dq[k], found), ddq[k]) < 1e-6
        assert relative(prepared.gravity(q[k]), model.gravity(q[k])) < 1e-12
        assert relative(prepared.mass_matrix(q[k]), model.mass_matrix(q[k])) < 1e-12


def test_a_controllers_model_refuses_what_is_not_possible():
    idim = build_idim(toy.arm(2), "temperature")
    with pytest.raises(InputError, match="depends on the temperature"):
        ControllerModel(WholeModel(idim, idim.nominal))
    idim = build_idim(toy.arm(2))
    prepared = ControllerModel(WholeModel(idim, 0.0 * idim.nominal))
    with pytest.raises(ComputationError, match="no acceleration"):
        prepared.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize(
    ("friction", "call", "reason"),
    [
        ("temperature", "inverse", "temperature"),
        ("load", "forward", "load"),
    ],
)
def test_friction_that_depends_on_more_is_refused(friction, call, reason):
    idim = build_idim(toy.arm(2), friction)
    model = WholeModel(idim, idim.nominal)
    function = model.inverse_dynamics if call == "inverse" else model.forward_dynamics
    with pytest.raises(InputError, match=f"depends on the {reason}.*of one instant"):
        function(*states(idim.robot, 2))


@pytest.mark.parametrize("friction", ["dahl", "dahl-spectrum", "lugre"])
@pytest.mark.parametrize("width", [None, 1e-6])
def test_friction_with_a_memory_is_as_it_settles(friction, width):
    """As along a motion that has gone on at that speed for long; and there is a way back."""
    idim = build_idim(toy.arm(2), friction)
    model = WholeModel(idim, values(idim))
    q, dq, ddq = states(idim.robot, 4)
    tau = model.inverse_dynamics(q, dq, ddq, width)
    smooth = model.widths(width)
    for k in range(4):
        before = follow_friction(
            idim, np.tile(q[k], (200, 1)), np.tile(dq[k], (200, 1)), 0.1, smooth
        )
        last = replace(before, traces=tuple(
            StateTrace(each.z[-1:], each.by_shape[-1:]) for each in before.traces))  # fmt: skip
        one = (a[k : k + 1] for a in (q, dq, ddq))
        assert relative(tau[k], idim.torque(model.theta, *one, smooth, last)[0]) < 1e-12
    assert relative(model.forward_dynamics(q, dq, tau, width), ddq) < 1e-9
    assert np.all(np.isfinite(model.inverse_dynamics(q, 0.0 * dq, ddq, width)))


def test_friction_under_load_has_an_inverse_model():
    idim = build_idim(toy.arm(2), "load")
    theta = values(idim)
    q, dq, ddq = states(idim.robot, 4)
    tau = WholeModel(idim, theta).inverse_dynamics(q, dq, ddq)
    assert relative(tau, idim.torque(theta, q, dq, ddq)) < 1e-14


def test_wrong_states_are_refused():
    idim = build_idim(toy.arm(2))
    model = WholeModel(idim, idim.nominal)
    with pytest.raises(InputError, match=r"shapes \(2,\), \(3,\), \(2,\); their last axes"):
        model.inverse_dynamics([0, 0], [0, 0, 0], [0, 0])
    with pytest.raises(InputError, match="not finite"):
        model.gravity([0.0, np.nan])
    with pytest.raises(InputError, match="width needs one positive value, or 2"):
        model.inverse_dynamics([0, 0], [0, 0], [0, 0], -1.0)
    with pytest.raises(InputError, match="needs 28 finite parameter values"):
        WholeModel(idim, np.zeros(3))
    with pytest.raises(ComputationError, match="not positive definite"):
        WholeModel(idim, -idim.nominal).forward_dynamics([0, 0], [0, 0], [0, 0])
