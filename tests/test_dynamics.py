"""The kernels against Pinocchio, on every kind of tree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from robots import bodies, pin_model, pin_q, relative, states, urdf

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.dynamics import (
    build_tree,
    compute_mass_matrix,
    differentiate_dynamics,
    evaluate_inverse_dynamics,
    solve_forward_dynamics,
)
from dynident.dynamics.energy import evaluate_energy_columns
from dynident.dynamics.idim import build_idim
from dynident.dynamics.regressor import fill_regressor
from dynident.robot import Robot, load_robot
from dynident.robot.urdf import convert_pinocchio_model

TOLERANCE = 1e-10
SAMPLES = 20

PRISMATIC = """<robot name="gantry">
  <link name="base"/>
  <joint name="x" type="prismatic"><parent link="base"/><child link="lx"/>
    <axis xyz="1 0 0"/><origin xyz="0 0.1 0.5" rpy="0.1 0.2 0.3"/>
    <limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
  <link name="lx"/>
  <joint name="y" type="prismatic"><parent link="lx"/><child link="ly"/>
    <axis xyz="0 0.6 0.8"/><origin xyz="0.2 0 0" rpy="0 0.5 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
  <link name="ly"/>
  <joint name="turn" type="continuous"><parent link="ly"/><child link="tool"/>
    <axis xyz="0 0 -1"/><origin xyz="0 0 0.3" rpy="1 0 0"/></joint>
  <link name="tool"/>
</robot>"""

BRANCHED = """<robot name="branched">
  <link name="base"/>
  <joint name="trunk" type="revolute"><parent link="base"/><child link="body"/>
    <axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="10" velocity="1"/></joint>
  <link name="body"/>
  <joint name="left" type="revolute"><parent link="body"/><child link="l1"/>
    <axis xyz="0 1 0"/><origin xyz="0.1 0.3 0.2" rpy="0.4 0 0"/>
    <limit lower="-3" upper="3" effort="10" velocity="1"/></joint>
  <link name="l1"/>
  <joint name="left_slide" type="prismatic"><parent link="l1"/><child link="l2"/>
    <axis xyz="1 0 0"/><origin xyz="0.2 0 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
  <link name="l2"/>
  <joint name="right" type="continuous"><parent link="body"/><child link="r1"/>
    <axis xyz="0 -1 0"/><origin xyz="0.1 -0.3 0.2" rpy="-0.4 0 0.2"/></joint>
  <link name="r1"/>
  <joint name="other" type="revolute"><parent link="base"/><child link="o1"/>
    <axis xyz="1 0 0"/><origin xyz="1 0 0"/>
    <limit lower="-3" upper="3" effort="10" velocity="1"/></joint>
  <link name="o1"/>
</robot>"""

CASES = {
    "ur5": False,
    "panda": False,
    "tiago": False,
    "tx40": False,
    "talos": True,
    "solo12": True,
    "anymal": True,
    "prismatic": False,
    "branched": False,
    "branched-floating": True,
}


def load(case: str, folder: Path) -> tuple[Robot, pin.Model]:
    texts = {"prismatic": PRISMATIC, "branched": BRANCHED, "branched-floating": BRANCHED}
    if case in texts:
        path = folder / "robot.urdf"
        path.write_text(texts[case])
    else:
        path = urdf(case)
    floating = CASES[case]
    return load_robot(path, floating=floating), pin_model(path, floating)


@pytest.fixture(params=CASES)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Robot, pin.Model, Array]:
    """A robot, Pinocchio's model of it, and random parameters that both have."""
    robot, model = load(request.param, tmp_path)
    phi = bodies(len(robot.links))
    for index, body in enumerate(phi, start=1):
        model.inertias[index] = pin.Inertia.FromDynamicParameters(body)
    return robot, model, phi


def test_inverse_dynamics_and_bias(both: tuple[Robot, pin.Model, Array]) -> None:
    robot, model, phi = both
    q, dq, ddq = states(robot, SAMPLES)
    data, tree = model.createData(), build_tree(robot)
    theirs = np.array(
        [pin.rnea(model, data, pin_q(model, a), b, c) for a, b, c in zip(q, dq, ddq, strict=True)]
    )
    assert relative(evaluate_inverse_dynamics(tree, phi, q, dq, ddq), theirs) < TOLERANCE
    theirs = np.array(
        [pin.nonLinearEffects(model, data, pin_q(model, a), b) for a, b in zip(q, dq, strict=True)]
    )
    assert relative(evaluate_inverse_dynamics(tree, phi, q, dq, 0.0 * dq), theirs) < TOLERANCE


def test_energies(both: tuple[Robot, pin.Model, Array]) -> None:
    robot, model, phi = both
    if robot.floating:
        pytest.skip("columns of energy are those of fixed robots")
    q, dq, _ = states(robot, SAMPLES)
    data = model.createData()
    theirs = np.array(
        [
            pin.computeKineticEnergy(model, data, pin_q(model, a), b)
            + pin.computePotentialEnergy(model, data, pin_q(model, a))
            for a, b in zip(q, dq, strict=True)
        ]
    )
    ours = evaluate_energy_columns(build_tree(robot), q, dq) @ phi.ravel()
    assert relative(ours, theirs) < TOLERANCE


def test_mass_matrix(both: tuple[Robot, pin.Model, Array]) -> None:
    robot, model, phi = both
    q, _, _ = states(robot, SAMPLES)
    data = model.createData()
    ours = compute_mass_matrix(build_tree(robot), phi, q)
    for a, mine in zip(q, ours, strict=True):
        upper = np.triu(pin.crba(model, data, pin_q(model, a)))
        theirs = upper + np.triu(upper, 1).T
        assert relative(mine, theirs) < TOLERANCE


def test_forward_dynamics(both: tuple[Robot, pin.Model, Array]) -> None:
    robot, model, phi = both
    q, dq, tau = states(robot, SAMPLES, seed=4)
    rng = np.random.default_rng(2)
    rotors = np.diag(rng.uniform(0.0, 0.3, robot.dof))
    data = model.createData()
    model.armature = np.diag(rotors)
    theirs = np.array(
        [pin.aba(model, data, pin_q(model, a), b, c) for a, b, c in zip(q, dq, tau, strict=True)]
    )
    assert (
        relative(solve_forward_dynamics(build_tree(robot), phi, q, dq, tau, rotors), theirs) < 1e-9
    )


def test_forward_dynamics_refuses_a_mass_matrix_that_is_not_positive(tmp_path: Path) -> None:
    robot, _ = load("ur5", tmp_path)
    with pytest.raises(ComputationError, match="mass matrix of sample 0 is not positive definite"):
        solve_forward_dynamics(build_tree(robot), -robot.nominal, *states(robot, 2))


def test_derivatives(both: tuple[Robot, pin.Model, Array]) -> None:
    robot, model, phi = both
    q, dq, ddq = states(robot, SAMPLES)
    data = model.createData()
    by_q, by_dq, by_ddq = differentiate_dynamics(build_tree(robot), phi, q, dq, ddq)
    for k in range(SAMPLES):
        pin.computeRNEADerivatives(model, data, pin_q(model, q[k]), dq[k], ddq[k])
        assert relative(by_q[k], data.dtau_dq) < TOLERANCE
        assert relative(by_dq[k], data.dtau_dv) < TOLERANCE
    assert relative(by_ddq, compute_mass_matrix(build_tree(robot), phi, q)) < TOLERANCE


def test_regressor(both: tuple[Robot, pin.Model, Array]) -> None:
    robot, model, phi = both
    q, dq, ddq = states(robot, SAMPLES)
    data, tree = model.createData(), build_tree(robot)
    ours = build_idim(robot, "none").regressor(q, dq, ddq)
    for k in range(SAMPLES):
        theirs = pin.computeJointTorqueRegressor(model, data, pin_q(model, q[k]), dq[k], ddq[k])
        assert relative(ours[k], theirs) < TOLERANCE
    torques = evaluate_inverse_dynamics(tree, phi, q, dq, ddq)
    assert relative(ours @ phi.ravel(), torques) < TOLERANCE


def test_regressor_fills_only_the_slots_that_are_asked_for(tmp_path: Path) -> None:
    robot, _ = load("branched", tmp_path)
    tree, idim = build_tree(robot), build_idim(robot, "none")
    q, dq, ddq = states(robot, 3)
    packing = idim.packing(range(idim.inertial))
    dense, wanted = packing.slot, np.arange(packing.width)[::3]
    slot = np.full_like(dense, -1)
    for column, entry in enumerate(wanted):
        slot[dense == entry] = column
    out = np.full((3, len(wanted) + 1), 7.0)
    fill_regressor(tree, slot, q, dq, ddq, out)
    full = np.empty((3, packing.width))
    fill_regressor(tree, dense, q, dq, ddq, full)
    assert relative(out[:, :-1], full[:, wanted]) < 1e-14
    np.testing.assert_array_equal(out[:, -1], 7.0)


def test_gravity_is_the_robots() -> None:
    path = urdf("ur5")
    robot = load_robot(path, gravity=(1.0, -2.0, 3.0))
    model = pin_model(path)
    model.gravity.linear = np.array([1.0, -2.0, 3.0])
    q, dq, _ = states(robot, 1)
    theirs = pin.nonLinearEffects(model, model.createData(), q[0], dq[0])
    ours = evaluate_inverse_dynamics(build_tree(robot), robot.nominal, q, dq, 0.0 * dq)
    assert relative(ours[0], theirs) < TOLERANCE


def test_robot_of_a_pinocchio_model_has_its_nominal_torques() -> None:
    model = pin.buildSampleModelManipulator()
    robot = convert_pinocchio_model(model, Path("sample"), False)
    q, dq, ddq = states(robot, 5)
    data = model.createData()
    model.armature = np.zeros(model.nv)
    theirs = np.array([pin.rnea(model, data, q[k], dq[k], ddq[k]) for k in range(5)])
    ours = evaluate_inverse_dynamics(build_tree(robot), robot.nominal, q, dq, ddq)
    assert relative(ours, theirs) < TOLERANCE
