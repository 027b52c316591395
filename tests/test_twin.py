"""The TX40 twin: consistent, and the published robot."""

from __future__ import annotations

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
from dynident_papers.twin import assembled, load_twin

FILES = Path(module.__file__).parent

# Table 1 of brunot2019, column LS: value and relative standard deviation [%]
TABLE = {
    "zz1r": (1.24, 1.45), "fv1": (8.00, 0.91), "fc1": (7.34, 2.66),
    "xx2r": (-0.48, 3.28), "xz2r": (-0.16, 5.40), "zz2r": (1.09, 1.29), "mx2r": (2.21, 3.01),
    "fv2": (5.50, 1.45), "fc2": (8.24, 2.26),
    "xx3r": (0.13, 10.6), "zz3r": (0.11, 9.57), "my3r": (-0.60, 2.52), "ia3": (0.09, 9.39),
    "fv3": (1.93, 2.05), "fc3": (6.48, 2.06),
    "mx4": (-0.02, 35.1), "ia4": (0.03, 9.10), "fv4": (1.09, 1.62), "fc4": (2.57, 2.46),
    "my5r": (-0.03, 15.2), "ia5": (0.04, 10.6), "fv5": (1.79, 2.33), "fc5": (3.07, 3.59),
    "ia6": (0.01, 13.3), "fv6": (0.65, 1.85), "fc6": (0.30, 32.9),
    "fvm6": (0.61, 1.97), "fcm6": (1.90, 4.40),
}  # fmt: skip


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
    np.testing.assert_array_equal(twin.kp[:2], [342.0, 375.0])
    np.testing.assert_array_equal(twin.kd[:2], [2.54, 4.12])
    np.testing.assert_array_equal(twin.gain[:2], [35.24, 32.04])


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
    published = {
        line.split(",")[0].split(" ")[0].replace("fs", "fc")
        for line in (EXAMPLES / "tx40" / "TX40_bp_5.csv").read_text().splitlines()
    }
    assert with_offsets.count == len(published) == 60
    assert {name.removesuffix("R") for name in with_offsets.names} == published
    # the twin's own friction has no offsets
    own = base_parameters(load_twin().idim)
    assert own.count == 54
    assert set(with_offsets.names) - set(own.names) == {f"off{k}" for k in range(1, 7)}


def test_it_is_physically_consistent_with_room():
    twin = load_twin()
    for phi, mass in zip(twin.robot.nominal, (8.61, 4.85, 4.07, 3.62, 1.02, 0.2), strict=True):
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
    assert positive["Ia1"] == pytest.approx(0.362, rel=0.2)
    assert positive["Ia2"] == pytest.approx(0.362, rel=0.2)


def test_table_1_of_brunot_within_three_sigma():
    twin = load_twin()
    base = base_parameters(twin.idim)
    beta = base.matrix @ twin.theta
    ours = {n.removesuffix("R"): float(b) for n, b in zip(base.names, beta, strict=True)}
    # the published joint sums contain the coupled drive
    ours |= {
        "fv5": ours["fv5"] + ours["fvm6"],
        "fv6": ours["fv6"] + ours["fvm6"],
        "Ia5": ours["Ia5"] + ours["Iam6"],
        "Ia6": ours["Iam6"],
    }
    assert len(TABLE) == 28
    for key, (value, percent) in TABLE.items():
        plain = key.removesuffix("r")
        name = f"I{plain}" if plain[:2] in ("xx", "xz", "zz") else plain.replace("ia", "Ia")
        assert abs(ours[name] - value) < 3.0 * abs(value) * percent / 100.0, key


def test_the_other_published_rows_within_three_sigma():
    """In the frames of the URDF, whose link 6 is turned by half a turn about its axis."""
    twin = load_twin()
    base = base_parameters(twin.idim)
    ours = dict(zip(base.names, base.matrix @ twin.theta, strict=True))
    flipped = {"mx6", "my6", "Ixz6", "Iyz6"}
    checked = 0
    for line in (EXAMPLES / "tx40" / "TX40_bp_5.csv").read_text().splitlines():
        regrouping, _, _, value, percent = line.rsplit(",", 4)
        name = regrouping.split(" ")[0]
        if name[:2] in ("fv", "fs", "of", "Ia"):
            continue
        twins = ours.get(name, ours.get(f"{name}R")) * (-1.0 if name in flipped else 1.0)
        assert abs(twins - float(value)) < 3.0 * abs(float(value)) * float(percent) / 100, name
        checked += 1
    assert checked == 36


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
        ("Ia1 = ", "Ia9 = ", r"unknown key 'parameters\.Ia9'"),
        ("fcm6 = 1.9", "# fcm6", r"key 'parameters\.fcm6' is missing"),
        ("fv6 = 0.04", "fv6 = -0.04", r"parameters\.fv6"),
        ("kp = [342.0, ", "kp = [", r"key 'controller\.kp' has 5 numbers"),
        ("gain = ", "gains = ", r"unknown key 'controller\.gains'"),
        ("[controller]", "[controller", "is not valid TOML"),
    ],
)
def test_wrong_drive_files_are_refused(tmp_path, old, new, message):
    text = (FILES / module.DRIVES_FILE).read_text()
    assert old in text
    path = tmp_path / "drives.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        assembled(load_twin().robot, path)
    assert str(path) in str(caught.value)


def test_inconsistent_inertials_are_refused(tmp_path):
    text = (FILES / module.ROBOT_FILE).read_text()
    shutil.copy(FILES / module.DRIVES_FILE, tmp_path)
    path = tmp_path / module.ROBOT_FILE
    thin = "inertial.inertia = [0.07"
    assert thin in text
    path.write_text(text.replace(thin, "inertial.inertia = [9.07", 1))
    with pytest.raises(InputError, match="pseudo-inertia of it is not positive definite"):
        assembled(load_robot(path), tmp_path / module.DRIVES_FILE)
