"""The TX40 twin: consistent, and the published robot."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from robots import EXAMPLES

import dynident_papers.twin as module
from dynident.core.errors import InputError
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.robot import load_robot
from dynident_papers.published import (
    BRUNOT,
    TX40_MASSES,
    TX40_ROTORS,
    build_published_sums,
    read_tx40_table,
)
from dynident_papers.twin import assemble_twin, load_twin

FILES = Path(module.__file__).parent
TABLE = read_tx40_table(EXAMPLES / "tx40" / "TX40_bp_5.csv")


def listed(twin) -> dict[str, float]:
    """Base parameters of the twin as published tables list them."""
    base = base_parameters(twin.idim)
    values = build_published_sums(base.names) @ base.matrix @ twin.theta
    return {n.removesuffix("R"): float(v) for n, v in zip(base.names, values, strict=True)}


def moments(phi: np.ndarray) -> np.ndarray:
    """Principal second moments about the centre of mass, from the definitions alone."""
    mass, first = phi[0], phi[1:4]
    xx, xy, yy, xz, yz, zz = phi[4:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    second = 0.5 * np.trace(about_origin) * np.eye(3) - about_origin
    return np.linalg.eigvalsh(second - np.outer(first, first) / mass)


def test_the_twin_loads():
    twin = load_twin()
    assert twin.robot.n == 6
    assert twin.idim.friction == "coulomb-viscous-symmetric"
    assert twin.theta.shape == (len(twin.idim.parameters),) == (80,)
    assert not twin.theta.flags.writeable
    np.testing.assert_array_equal(twin.theta[:60], twin.robot.nominal.ravel())
    assert twin.robot.warnings == ()
    for gains in (twin.kp, twin.kd, twin.gain):
        assert gains.shape == (6,)
        assert gains.min() > 0.0
        assert not gains.flags.writeable
    at = [twin.idim.names.index(name) for name in ("fv1", "Ia2")]
    np.testing.assert_array_equal(twin.values(["off1", "fv1", "Ia2"]), [0.0, *twin.theta[at]])
    np.testing.assert_array_equal(twin.coulomb, twin.values([f"fc{j}" for j in range(1, 7)]))


def test_it_has_the_geometry_and_the_drives_of_the_example():
    twin, example = load_twin(), load_robot(EXAMPLES / "tx40" / "tx40_dh.toml")
    for ours, theirs in zip(twin.robot.joints, example.joints, strict=True):
        np.testing.assert_array_equal(ours.rotation, theirs.rotation)
        np.testing.assert_array_equal(ours.translation, theirs.translation)
        assert (ours.lower, ours.upper, ours.velocity) == (
            theirs.lower,
            theirs.upper,
            theirs.velocity,
        )
    np.testing.assert_array_equal(twin.robot.drives.turns, example.drives.turns)
    np.testing.assert_array_equal(twin.robot.drives.reduction, example.drives.reduction)


def test_it_has_the_published_60_base_parameters():
    robot = load_twin().robot
    with_offsets = base_parameters(build_idim(robot, "coulomb-viscous"))
    assert with_offsets.count == len(TABLE) == 60
    assert {name.removesuffix("R") for name in with_offsets.names} == set(TABLE)
    # the twin's own friction has no offsets
    own = base_parameters(load_twin().idim)
    assert own.count == 54
    assert set(with_offsets.names) - set(own.names) == {f"off{k}" for k in range(1, 7)}


def test_it_is_physically_consistent_with_room():
    twin = load_twin()
    for phi, mass in zip(twin.robot.nominal, TX40_MASSES, strict=True):
        assert phi[0] == pytest.approx(mass, rel=0.05)
        least_radius = np.sqrt(moments(phi)[0] / phi[0])
        assert least_radius > 9e-3
        assert np.sqrt(moments(phi)[-1] / phi[0]) < 0.25
        assert np.linalg.norm(phi[1:4] / phi[0]) < 0.25
        inertia = pin.Inertia.FromDynamicParameters(phi)
        principal = np.linalg.eigvalsh(inertia.inertia)
        assert principal[0] > 0.0
        assert principal[0] + principal[1] > 1.01 * principal[2]
    positive = {
        p.name: value
        for p, value in zip(twin.idim.parameters, twin.theta, strict=True)
        if p.positive
    }
    assert len(positive) == 20
    assert min(positive.values()) > 5e-3
    for name, value in TX40_ROTORS.items():
        assert positive[name] == pytest.approx(value, rel=0.2), name


def test_table_1_of_brunot_within_three_sigma():
    ours, table = listed(load_twin()), BRUNOT["decimated", "ols"]
    assert len(table) == 28
    for name, published in table.items():
        assert abs(ours[name] - published.value) < 3.0 * published.std, name


def test_the_other_published_rows_within_three_sigma():
    """In the frames of the URDF, whose link 6 is turned by half a turn about its axis."""
    ours = listed(load_twin())
    flipped = {"mx6", "my6", "Ixz6", "Iyz6"}
    bodies = {n: row.wls for n, row in TABLE.items() if n[:2] not in ("fv", "fc", "of", "Ia")}
    assert len(bodies) == 36
    for name, published in bodies.items():
        twins = ours[name] * (-1.0 if name in flipped else 1.0)
        assert abs(twins - published.value) < 3.0 * published.std, name


def test_mass_matrix_is_positive_definite_everywhere():
    twin = load_twin()
    rng = np.random.default_rng(3)
    samples, n = 200, 6
    q = rng.uniform(-np.pi, np.pi, (samples, n))
    rest = np.zeros((samples, n))
    free = twin.theta.copy()
    friction = [p.symbol.startswith("f") for p in twin.idim.parameters]
    free[friction] = 0.0
    gravity = twin.idim.torque(free, q, rest, rest)
    columns = [twin.idim.torque(free, q, rest, rest + np.eye(n)[j]) - gravity for j in range(n)]
    matrices = np.stack(columns, axis=2)
    np.testing.assert_allclose(matrices, np.swapaxes(matrices, 1, 2), atol=1e-12)
    assert np.linalg.eigvalsh(matrices).min() > 5e-3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("^Ia1 = ", "Ia9 = ", r"unknown key 'parameters\.Ia9'"),
        ("^fcm6 = ", "# fcm6", r"key 'parameters\.fcm6' is missing"),
        ("^fv6 = ", "fv6 = -", r"parameters\.fv6"),
        (r"^kp = \[[\d.]+, ", "kp = [", r"key 'controller\.kp' has 5 numbers"),
        ("^gain = ", "gains = ", r"unknown key 'controller\.gains'"),
        (r"^\[controller\]", "[controller", "is not valid TOML"),
    ],
)
def test_wrong_drive_files_are_refused(tmp_path, old, new, message):
    text, count = re.subn(old, new, (FILES / module.DRIVES_FILE).read_text(), flags=re.MULTILINE)
    assert count == 1
    path = tmp_path / "drives.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        assemble_twin(load_twin().robot, path)
    assert str(path) in str(caught.value)


def test_inconsistent_inertials_are_refused(tmp_path):
    text = (FILES / module.ROBOT_FILE).read_text()
    shutil.copy(FILES / module.DRIVES_FILE, tmp_path)
    path = tmp_path / module.ROBOT_FILE
    thick, count = re.subn(r"inertial\.inertia = \[0", "inertial.inertia = [9", text, count=1)
    assert count == 1
    path.write_text(thick)
    with pytest.raises(InputError, match="pseudo-inertia of it is not positive definite"):
        assemble_twin(load_robot(path), tmp_path / module.DRIVES_FILE)
