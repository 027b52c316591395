"""Logs of floating robots as strangers write them: other layouts, missing things, and mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from commands import tell
from floating import Made, solo
from legged_files import (
    FOOT,
    Columns,
    columns_of,
    contacts,
    study,
    without,
    written,
)
from robots import EXAMPLES, urdf
from thin import first, long

from dynident.cli import run
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.contacts import follow_contact
from dynident.fit.figures import FitFigure, JointError
from dynident.plots.curves import chart_torques
from dynident.recording.floating import FloatingOptions
from dynident.recording.read import read_log
from dynident.regression.rows import list_torque_groups
from dynident.report import sections
from dynident.report.fit import Fit
from dynident.report.text import merge_contact_sets
from dynident.robot.rotations import convert_quaternions, convert_rpy
from dynident.study.run import run_study
from dynident.study.study import read_study

DIFFERENCES = "bandwidth = 10.0"
MOUNT = np.array([0.1, -0.05, 0.08]), (0.3, -0.2, 1.5)
MOUNTED = "imu_position = [0.1, -0.05, 0.08]\nimu_rpy = [0.3, -0.2, 1.5]\n"
DERIVED = ("base_v", "base_w", "base_a", "base_d", "dq_", "ddq_")
EXACT, NEAR = 1e-7, 3e-5
"""Of logs with all derivatives, and of those that are differentiated."""


@pytest.fixture(scope="module")
def made() -> Made:
    return solo(seconds=4.0, rate=250.0)


@pytest.fixture(scope="module")
def whole(made: Made) -> Columns:
    return columns_of(made)


def fitted(folder: Path, columns: Columns, log: str = "", **parts: str) -> Fit:
    """The result of one CSV log."""
    written(folder, columns)
    return run_study(read_study(study(folder, f'files = "log.csv"\n{log}', **parts)))


def off(result: Fit, made: Made) -> float:
    """Largest error of a base parameter, over the largest one."""
    truth = result.base.matrix @ made.theta
    return float(np.max(np.abs(result.estimate.beta - truth)) / np.max(np.abs(truth)))


def turns(columns: Columns) -> Array:
    """From the base's axes to the world's."""
    return convert_quaternions(np.column_stack([columns[f"base_q{k}"] for k in "xyzw"]))


def stack(columns: Columns, *names: str) -> Array:
    return np.column_stack([columns[name] for name in names])


def put(columns: Columns, names: tuple[str, ...], values: Array) -> Columns:
    """Other values in some columns."""
    return columns | dict(zip(names, values.T, strict=True))


def with_imu(columns: Columns) -> Columns:
    """What a unit that is mounted somewhere in the base says."""
    position, rpy = MOUNT
    w, dw, a = (stack(columns, *(f"base_{s}{k}" for k in "xyz")) for s in ("w", "dw", "a"))
    up = np.einsum("tji,j->ti", turns(columns), [0.0, 0.0, 9.81])
    force = a + up + np.cross(dw, position) + np.cross(w, np.cross(w, position))
    T = convert_rpy(rpy)
    names = tuple(f"imu_w{k}" for k in "xyz"), tuple(f"imu_a{k}" for k in "xyz")
    return put(put(columns, names[0], w @ T), names[1], force @ T)


def feet(columns: Columns, change: Callable[[str, Array], Array]) -> Columns:
    """Other forces of the feet."""
    for name in FOOT:
        parts = (f"fx_{name}", f"fy_{name}", f"fz_{name}")
        columns = put(columns, parts, change(name, stack(columns, *parts)))
    return columns


# what a log may have


def pose(columns: Columns) -> Columns:
    return without(columns, *DERIVED)


def flipped(columns: Columns) -> Columns:
    signs = np.where(np.arange(len(columns["time"])) // 37 % 2, -1.0, 1.0)
    return columns | {f"base_q{k}": signs * columns[f"base_q{k}"] for k in "xyzw"}


def reordered(columns: Columns) -> Columns:
    called = {f"Q{k}": columns[f"base_q{k}"] for k in "wxyz"}
    return without(columns, "base_q") | called


def in_world(columns: Columns) -> Columns:
    for parts in ("v", "w", "a", "dw"):
        names = tuple(f"base_{parts}{k}" for k in "xyz")
        turned = np.einsum("tij,tj->ti", turns(columns), stack(columns, *names))
        columns = put(columns, names, turned)
    return columns


def lost(columns: Columns, value: float) -> Columns:
    """Ten samples without a pose, on the other side of which the quaternion is the other one."""
    n = np.arange(len(columns["time"]))
    gone = (n >= 500) & (n < 510)
    signs = np.where(n > 505, -1.0, 1.0)
    names = [f"base_p{k}" for k in "xyz"] + [f"base_q{k}" for k in "xyzw"]
    signed = {name: columns[name] * (signs if "q" in name else 1.0) for name in names}
    return columns | {name: np.where(gone, value, own) for name, own in signed.items()}


ORDER = 'quaternion = "wxyz"\ncolumns = { base_orientation = ["Qw", "Qx", "Qy", "Qz"] }'


@pytest.mark.parametrize(
    ("change", "log", "prepare", "bound"),
    [
        (lambda c: c, "", None, EXACT),
        (pose, "", DIFFERENCES, NEAR),
        (lambda c: flipped(pose(c)), "", DIFFERENCES, NEAR),
        long(lambda c: reordered(pose(c)), ORDER, DIFFERENCES, NEAR),
        (lambda c: lost(pose(c), np.nan), 'bad_rows = "cut"', DIFFERENCES, NEAR),
        long(lambda c: lost(pose(c), 0.0), 'bad_rows = "cut"', DIFFERENCES, NEAR),
        (in_world, 'base_axes = "world"', None, EXACT),
        long(lambda c: without(c, "base_a", "base_d", "base_p"), "", None, NEAR),
        (lambda c: without(with_imu(c), "base_"), MOUNTED, None, NEAR),
        long(lambda c: pose(with_imu(c)), MOUNTED, DIFFERENCES, NEAR),
        (lambda c: without(pose(with_imu(c)), "base_p"), MOUNTED, DIFFERENCES, NEAR),
    ],
    ids=[
        "all", "pose", "flips", "wxyz", "lost", "zeros", "world", "twist", "imu", "imu and pose",
        "imu and orientation",
    ],
)  # fmt: skip
def test_a_base_may_be_logged_in_many_ways(
    tmp_path: Path, made: Made, whole: Columns, change, log: str, prepare: str | None, bound: float
) -> None:
    parts = {} if prepare is None else {"prepare": prepare}
    found = fitted(tmp_path, change(whole), log, **parts)
    assert found.base.count == 118
    assert off(found, made) < bound


def test_a_base_may_have_a_reference(tmp_path: Path, made: Made, whole: Columns) -> None:
    """Its quaternion has the order of the base's, and may flip."""
    asked = {
        name.replace("base_", "baseref_"): own
        for name, own in flipped(whole).items()
        if name.startswith(("base_p", "base_q"))
    }
    base = read_log(written(tmp_path, {**whole, **asked}), made.robot).base
    assert base is not None
    assert base.asked is not None
    np.testing.assert_allclose(base.asked.position, base.position)
    np.testing.assert_allclose(
        convert_quaternions(base.asked.orientation), convert_quaternions(base.orientation)
    )
    wrong = {**asked, "baseref_qx": 3.0 + asked["baseref_qx"]}
    with pytest.raises(InputError, match=r"columns\.baseref_orientation"):
        read_log(written(tmp_path, {**whole, **wrong}), made.robot)


def matrices(columns: Columns) -> Columns:
    names = tuple(f"base_r{i}{j}" for i in "123" for j in "123")
    return put(without(columns, "base_q"), names, turns(columns).reshape(-1, 9))


def angles(columns: Columns, unit: float = 1.0) -> Columns:
    rpy = np.array([pin.rpy.matrixToRpy(R) for R in turns(columns)])
    return put(without(columns, "base_q"), ("base_roll", "base_pitch", "base_yaw"), rpy / unit)


DEGREES = {"units": {"base_rpy": "deg"}}


@pytest.mark.parametrize("order", first(["wxyz", "xyzw"]))
@pytest.mark.parametrize(
    ("change", "given"),
    [(matrices, {}), (angles, {}), (lambda c: angles(c, np.pi / 180.0), DEGREES)],
    ids=["matrix", "rpy", "degrees"],
)
def test_an_orientation_may_be_a_matrix_or_angles(
    tmp_path: Path, made: Made, whole: Columns, change, given: dict, order: str
) -> None:
    """As it turns over: yaw goes round, and pitch past the upright."""
    turn = np.linspace(0.0, 4.0 * np.pi, len(whole["time"]))
    xyzw = np.array(
        [pin.Quaternion(pin.rpy.rpyToMatrix(0.3, 0.1 * a, 1.5 * a)).coeffs() for a in turn]
    )
    columns = put(whole, tuple(f"base_q{k}" for k in "xyzw"), xyzw)
    log = read_log(
        written(tmp_path, change(columns)),
        made.robot,
        floating=FloatingOptions(quaternion=order),
        **given,
    )
    assert log.base is not None
    np.testing.assert_allclose(convert_quaternions(log.base.orientation), turns(columns), atol=1e-6)
    both = read_log(written(tmp_path, {**change(columns), **columns}), made.robot, **given)
    assert any("says what base_orientation does; not used" in each for each in both.warnings)


def test_a_pause_among_angles_is_bridged_the_short_way(
    tmp_path: Path, made: Made, whole: Columns
) -> None:
    """Between two samples beside half a turn lies no zero."""
    turn = np.pi + 1e-3 * (np.arange(len(whole["time"])) - 500.5)
    rpy = np.stack([0.0 * turn, 0.0 * turn, np.arctan2(np.sin(turn), np.cos(turn))], axis=1)
    columns = put(without(whole, "base_q"), ("base_roll", "base_pitch", "base_yaw"), rpy)
    kept = {name: np.delete(own, 500) for name, own in columns.items()}
    base = read_log(written(tmp_path, kept), made.robot).base
    assert base is not None
    expected = [pin.rpy.rpyToMatrix(*each) for each in rpy]
    np.testing.assert_allclose(convert_quaternions(base.orientation), expected, atol=1e-5)


def mirrored(columns: Columns) -> Columns:
    return {name: -own if "base_r" in name else own for name, own in matrices(columns).items()}


def tilted(columns: Columns) -> Columns:
    own = angles(columns, np.pi / 180.0)
    return own | {"base_pitch": own["base_pitch"] + 30.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (mirrored, r"log\.csv, row 2, column \d+ \(base_r11\): .*determinant -1\).*not a rotation"),
        (
            lambda c: matrices(c) | {"base_r22": 1.2 * np.abs(matrices(c)["base_r22"]) + 0.1},
            r"misses R R\^T = 1 by .*columns\.base_matrix",
        ),
        (tilted, r"roll and pitch are .* rad \(of degrees say units\.base_rpy = 'deg'\)"),
        (lambda c: without(matrices(c), "base_r33"), "has base_r11 but no base_r33"),
    ],
    ids=["mirror", "skew", "degrees", "part"],
)
def test_matrices_and_angles_that_are_no_rotations_are_refused(
    tmp_path: Path, made: Made, whole: Columns, change, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_log(written(tmp_path, change(whole)), made.robot)


def world_forces(made: Made) -> Callable[[str, Array], Array]:
    """Of the feet, from their frames' axes to the world's."""
    base = made.recording.base
    assert base is not None
    assert base.position is not None
    assert base.orientation is not None
    q = np.hstack([base.position, base.orientation, made.recording.q])
    turn = {
        c.name: follow_contact(made.idim.tree, made.robot, c, q).turn for c in made.robot.contacts
    }
    return lambda name, force: np.einsum("tij,tj->ti", turn[name], force)


@pytest.mark.parametrize(
    "way", first(["world", "bias", "six for a surface", "sign", "six for a point"], 3)
)
def test_a_contact_may_be_logged_in_many_ways(
    tmp_path: Path, made: Made, whole: Columns, way: str
) -> None:
    columns, keys, kind = whole, "", "point"
    if way == "world":
        columns, keys = feet(whole, world_forces(made)), 'axes = "world"'
    if way == "sign":
        columns, keys = feet(whole, lambda _, force: -force), "sign = -1"
    if way == "bias":
        columns = feet(whole, lambda _, force: force + np.array([1.0, 2.0, 3.0]))
        keys = "bias = [1.0, 2.0, 3.0]"
    if way.startswith("six"):
        kind = way.rpartition(" ")[2]
        columns = whole | {
            f"m{k}_{foot}": np.zeros(len(whole["time"])) for foot in FOOT for k in "xyz"
        }
    found = fitted(tmp_path, columns, contact=contacts(keys, kind=kind))
    assert off(found, made) < EXACT


@pytest.mark.long
@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_other_files_have_the_same_columns(
    tmp_path: Path, made: Made, whole: Columns, ending: str
) -> None:
    path = tmp_path / f"log.{ending}"
    if ending == "npz":
        np.savez(path, **whole)
    else:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(whole), path)
    found = run_study(read_study(study(tmp_path, f'files = "log.{ending}"')))
    assert off(found, made) < EXACT


@pytest.mark.long
def test_a_log_without_torques_states_the_base_alone_and_says_so(
    tmp_path: Path, made: Made, whole: Columns
) -> None:
    found = fitted(tmp_path, without(whole, "tau_"))
    assert found.base.count == 94
    assert off(found, made) < EXACT
    assert any("has no torques (tau_FL_HAA)" in note for note in found.warnings)
    asked = fitted(tmp_path, without(whole, "tau_"), 'equations = "base"')
    assert not any("has no torques" in note for note in asked.warnings)
    assert not any("no row of" in note for note in asked.warnings)


def test_equations_that_a_log_does_not_state_are_no_missing_rows(
    tmp_path: Path, made: Made, whole: Columns
) -> None:
    found = fitted(tmp_path, whole, 'equations = "joints"')
    assert found.base.count == 108
    assert off(found, made) < EXACT
    assert not any("no row of" in note for note in found.warnings)
    assert "base fx" not in found.summary()


# what is refused, and what is noted


def test_torques_that_are_all_zero_were_not_measured(tmp_path, made, whole, capsys):
    zero = {name: 0.0 * each if name.startswith("tau_") else each for name, each in whole.items()}
    written(tmp_path, zero)
    words = refused(tmp_path, capsys, study(tmp_path, 'files = "log.csv"'), 1)
    assert "log.csv: the torques of all joints are zero throughout" in words


def refused(folder: Path, capsys: pytest.CaptureFixture[str], path: Path, code: int = 2) -> str:
    """The one line that a study is refused with."""
    capsys.readouterr()
    assert run(["identify", str(path), "-o", str(folder / "out")]) == code
    said = capsys.readouterr()
    assert not said.out
    assert not (folder / "out").exists()
    lines = said.err.strip().splitlines()
    assert len(lines) == 1, said.err
    assert lines[0].startswith("error: ")
    return lines[0]


def half(columns: Columns) -> Columns:
    n = np.arange(len(columns["time"]))
    return columns | {
        f"base_q{k}": np.where(n == 500, 0.9, 1.0) * columns[f"base_q{k}"] for k in "xyzw"
    }


WRONG_BASES: dict[str, tuple[Callable[[Columns], Columns], str, str]] = {
    "unnormalised": (
        half,
        "",
        r"log\.csv, row 502, column \d+ \(base_qx\): the base's quaternion has length 0\.9 .*"
        "bad_rows = 'cut'",
    ),
    "missing poses": (
        lambda c: lost(c, np.nan),
        "",
        r"log\.csv, row 502, .*base_p.*bad_rows = 'cut'",
    ),
    "no quaternion": (
        lambda c: without(c, "base_q"),
        "",
        r"log\.csv: .*direction of gravity.*imu_w and imu_a, or base_p and base_q",
    ),
    "half a quaternion": (
        lambda c: without(c, "base_qx"),
        "",
        r"log\.csv: has base_qy but no base_qx; name all 4",
    ),
    "a gyroscope alone": (
        lambda c: without(with_imu(c), "imu_a", "base_"),
        MOUNTED,
        "has imu_wx but no imu_ax",
    ),
    "nothing of the base": (
        lambda c: without(c, "base_"),
        "",
        "does not have its base: .* base = 'fixed'",
    ),
    "another order": (
        reordered,
        'columns = { base_orientation = ["Qw", "Qx", "Qy", "Qz"] }',
        "angular velocity is not that of its orientation .* the other order of quaternion",
    ),
    "upside down": (
        lambda c: reordered(without(c, "base_v", "base_w", "base_a", "base_d")),
        'columns = { base_orientation = ["Qw", "Qx", "Qy", "Qz"] }',
        "is upside down; check quaternion",
    ),
    "the inverse": (
        lambda c: c | {f"base_q{k}": -c[f"base_q{k}"] for k in "xyz"},
        "",
        "with the inverse of the orientation they would agree",
    ),
    "world for base": (in_world, "", r'with base_axes = "world" they would agree'),
    "base for world": (
        lambda c: c,
        'base_axes = "world"',
        r'with base_axes = "base" they would agree',
    ),
    "world without a turn": (
        lambda c: without(c, "base_q"),
        'base_axes = "world"',
        "base_axes = 'world', but the log has no orientation",
    ),
    "degrees": (
        lambda c: c | {f"base_w{k}": np.degrees(c[f"base_w{k}"]) for k in "xyz"},
        "",
        "with angular velocities in rad/s they would agree",
    ),
    "specific force as acceleration": (
        lambda c: put(
            c,
            ("base_ax", "base_ay", "base_az"),
            stack(c, "base_ax", "base_ay", "base_az")
            + np.einsum("tji,j->ti", turns(c), [0.0, 0.0, 9.81]),
        ),
        "",
        "base_a is without gravity; .* imu_a",
    ),
    "another mount": (
        lambda c: without(with_imu(c), "base_p", "base_v", "base_w", "base_a", "base_d"),
        "",
        r"with imu_rpy = \[0\.3, -0\.2, 1\.5\] it would be",
    ),
    "another mount, nothing else": (
        lambda c: without(with_imu(c), "base_"),
        "",
        "degrees off against its weight",
    ),
    "falling": (
        lambda c: put(
            without(with_imu(c), "base_"),
            ("imu_ax", "imu_ay", "imu_az"),
            -stack(with_imu(c), "imu_ax", "imu_ay", "imu_az"),
        ),
        MOUNTED,
        "check imu_a, which points upwards at rest",
    ),
    "unknown word": (lambda c: c, 'base = "fixd"', r"log\[1\]\.base.*did you mean 'fixed'"),
    "no torques": (
        lambda c: without(c, "tau_"),
        'equations = "full"',
        "has no torques, which equations = 'full' take; .* equations = 'base'",
    ),
}


@pytest.mark.parametrize("case", WRONG_BASES)
def test_bases_that_cannot_be_are_refused_in_one_line(
    tmp_path: Path, whole: Columns, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    change, log, words = WRONG_BASES[case]
    written(tmp_path, change(whole))
    path = study(tmp_path, f'files = "log.csv"\n{log}')
    assert re.search(words, refused(tmp_path, capsys, path))


def silent(columns: Columns) -> Columns:
    return without(columns, "fx", "fy", "fz")


WRONG_CONTACTS: dict[str, tuple[Callable[[Columns], Columns], str, str]] = {
    "no such frame": (
        lambda c: c,
        contacts(feet={"FL": "FL_FOT"}),
        r"solo12\.urdf: contact 'FL': there is no link 'FL_FOT'; did you mean 'FL_FOOT'",
    ),
    "a joint": (
        lambda c: c,
        contacts(feet={"FL": "FL_KFE"}),
        "'FL_KFE' is a joint; name a link in frame, such as 'FL_LOWER_LEG'",
    ),
    "twice": (
        lambda c: c,
        contacts(feet={"FL": "FL_FOOT"}) + "\n" + contacts(feet={"FL": "FL_FOOT"}),
        "contact 'FL' is there twice",
    ),
    "unknown kind": (
        lambda c: c,
        contacts(kind="pont"),
        r"study\.toml: key 'contact\[1\]\.kind' is 'pont'; did you mean 'point'",
    ),
    "four of a bias": (
        lambda c: c,
        contacts("bias = [1.0, 2.0, 3.0, 4.0]"),
        r"contact\[1\]\.bias.*a force has 3, a wrench 6",
    ),
    "one column missing": (
        lambda c: without(c, "fy_HL"),
        contacts(),
        r"log\.csv: has fx_HL but no fy_HL; name all 3 columns in columns\.wrench_HL",
    ),
    "three of a surface": (
        lambda c: c,
        contacts(kind="surface"),
        "has fx_FL but no mx_FL; a point has no moments: kind = 'point'",
    ),
    "on the ground": (
        lambda c: feet(c, lambda _, force: -force),
        contacts(),
        r"pull it down by .* set sign = -1 in \[\[contact\]\]",
    ),
    "frame for world": (
        lambda c: c,
        contacts('axes = "world"'),
        r'degrees off against its weight; with axes = "frame"',
    ),
    "no contact": (
        silent,
        "",
        r"nothing supports the robot, which does not fall; .*\[\[contact\]\]",
    ),
    "all feet in the air": (
        silent,
        contacts(),
        "none of FL, FR, HL, HR is in contact by the log, but the robot does not fall; raise "
        "contact_speed",
    ),
    "no wrench": (
        lambda c: (
            c | {name: 0.0 * own for name, own in c.items() if name[:2] in ("fx", "fy", "fz")}
        ),
        contacts(),
        "FL, FR, HL, HR carry none of the robot, which does not fall",
    ),
    "flying": (
        lambda c: silent(c) | {f"contact_{foot}": np.ones(len(c["time"])) for foot in FOOT},
        contacts(),
        r"FL is marked as in contact \(contact_FL\) while its frame moves at .* m/s; check the "
        r"column",
    ),
    "a moment at a time": (
        lambda c: silent(c) | {f"contact_{foot}": np.arange(len(c["time"])) % 2.0 for foot in FOOT},
        contacts(),
        "no set of contacts lasts for .* check the contact columns",
    ),
}


@pytest.mark.parametrize("case", WRONG_CONTACTS)
def test_contacts_that_cannot_be_are_refused_in_one_line(
    tmp_path: Path, whole: Columns, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    change, contact, words = WRONG_CONTACTS[case]
    written(tmp_path, change(whole))
    path = study(tmp_path, 'files = "log.csv"', contact=contact)
    assert re.search(words, refused(tmp_path, capsys, path))


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        ("floating = true", "read it as floating|there is no link"),
        ("", "is on the fixed base, where no wrench moves the robot; read it as floating"),
    ],
)
def test_a_contact_of_a_base_that_stands_is_refused(
    tmp_path: Path, whole: Columns, capsys: pytest.CaptureFixture[str], robot: str, words: str
) -> None:
    written(tmp_path, whole)
    frame = "base_link" if not robot else "base"
    path = study(
        tmp_path, 'files = "log.csv"', robot=robot, contact=contacts(feet={"plate": frame})
    )
    assert re.search(words, refused(tmp_path, capsys, path))


def test_a_robot_without_a_urdf_has_no_frames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "arm.toml").write_text(
        'name = "arm"\nconvention = "modified"\n'
        '[[joint]]\nname = "j1"\ntype = "revolute"\nalpha = 0.0\na = 0.0\nd = 0.0\n'
    )
    (tmp_path / "study.toml").write_text(
        '[robot]\nfile = "arm.toml"\n[[contact]]\nname = "hand"\n[[log]]\nfiles = "log.csv"\n'
    )
    found = refused(tmp_path, capsys, tmp_path / "study.toml")
    assert re.search("arm.*in which contacts could be found", found)


def test_a_robot_file_that_is_gone_is_named(
    tmp_path: Path, whole: Columns, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, whole)
    path = study(tmp_path, 'files = "log.csv"')
    path.write_text(path.read_text().replace(str(urdf("solo12")), "gone.urdf"))
    assert "gone.urdf" in refused(tmp_path, capsys, path)


def test_what_a_fixed_robot_does_not_use_is_noted(tmp_path: Path, whole: Columns) -> None:
    plain = 'method = "ols"\ndoctor = false'
    found = fitted(tmp_path, whole, robot="", contact="", identify=plain)
    assert any(
        "set floating = true to use its columns of a base (base_px" in note
        for note in found.warnings
    )


def test_columns_of_no_contact_are_noted(tmp_path: Path, whole: Columns) -> None:
    more = whole | {f"{part}_hand": np.zeros(len(whole["time"])) for part in ("fx", "fy", "fz")}
    found = fitted(tmp_path, more)
    assert any("columns of hand, which is no [[contact]]" in note for note in found.warnings)


@pytest.mark.long
def test_feet_that_slide_are_noted(tmp_path: Path, whole: Columns) -> None:
    found = fitted(tmp_path, whole)
    assert any("FL, FR, HL, HR slide under load at up to 0." in note for note in found.warnings)
    calm = fitted(tmp_path, whole, "contact_speed = 0.2")
    assert not any("slide under load at up to" in note for note in calm.warnings)


@pytest.mark.long
def test_a_base_that_never_turns_is_noted(tmp_path: Path, made: Made) -> None:
    n = 1000
    t = np.arange(n) / 250.0
    columns: Columns = {"time": t}
    for j, joint in enumerate(made.robot.joint_names):
        columns[f"q_{joint}"] = 0.1 * np.sin(2.0 * t + j)
        columns[f"tau_{joint}"] = 0.1 * np.cos(2.0 * t + j)
    roll = np.full(n, np.radians(10.0))
    columns |= {"base_px": 0.0 * t, "base_py": 0.0 * t, "base_pz": 0.1 + 0.01 * np.sin(3.0 * t)}
    columns |= {"base_qx": np.sin(roll / 2), "base_qy": 0.0 * t, "base_qz": 0.0 * t}
    columns["base_qw"] = np.cos(roll / 2)
    columns |= {f"contact_{foot}": np.ones(n) for foot in FOOT}
    found = fitted(
        tmp_path, columns, "contact_speed = 1.0",
        identify='method = "pc-idim-ls"\ndoctor = false\nbootstrap = 0',
        prepare=DIFFERENCES,
    )  # fmt: skip
    assert any("the base turns by 0 degrees" in note for note in found.warnings)


@pytest.mark.long
def test_a_unit_that_is_a_little_askew_is_noted(tmp_path: Path, whole: Columns) -> None:
    columns = without(with_imu(whole), "base_p", "base_v", "base_w", "base_a", "base_d")
    askew = MOUNTED.replace("0.3, -0.2, 1.5", "0.3, -0.15, 1.5")
    found = fitted(tmp_path, columns, askew)
    (note,) = [each for each in found.warnings if "angular velocity" in each]
    assert "with imu_rpy = [0.3, -0.2, 1.5] it would be" in note
    right = fitted(tmp_path, columns, MOUNTED)
    assert not any("angular velocity" in note for note in right.warnings)


def test_one_of_two_logs_with_another_mount_is_the_one_that_is_named(
    tmp_path: Path, whole: Columns, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = without(with_imu(whole), "base_")
    written(tmp_path, columns, "first.csv")
    written(tmp_path, columns, "second.csv")
    path = study(tmp_path, f'files = "first.csv"\n{MOUNTED}', 'files = "second.csv"\n')
    assert "error: second.csv: " in refused(tmp_path, capsys, path)


# locked joints, and logs of several kinds


def test_a_locked_joint_that_moves_is_refused(
    tmp_path: Path, whole: Columns, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, whole)
    path = study(tmp_path, 'files = "log.csv"\nlocked = { FL_HAA = 0.0 }')
    assert re.search("FL_HAA is stated as locked at 0, but", refused(tmp_path, capsys, path))
    path = study(tmp_path, 'files = "log.csv"\nlocked = { FL_HA = 0.0 }')
    found = refused(tmp_path, capsys, path)
    assert re.search("there is no joint 'FL_HA'; did you mean 'FL_HAA'", found)


def test_logs_of_three_kinds_make_one_fit(tmp_path: Path, made: Made, whole: Columns) -> None:
    written(tmp_path, whole, "full.csv")
    written(tmp_path, without(whole, "tau_"), "base.csv")
    written(tmp_path, pose(with_imu(whole)), "imu.csv")
    path = study(
        tmp_path,
        'files = "base.csv"\nequations = "base"',
        'files = "full.csv"\nequations = "joints"',
        decide="all",
    )
    mixed = run_study(read_study(path))
    assert mixed.base.count == 118
    assert off(mixed, made) < EXACT
    lone = run_study(read_study(study(tmp_path, 'files = "full.csv"\nequations = "joints"')))
    assert lone.base.count == 108


# what is stored, and other commands


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, whole: Columns) -> Path:
    """A folder with a study, its logs and its result."""
    folder = tmp_path_factory.mktemp("stored")
    written(folder, whole)
    written(folder, whole, "other.csv")
    written(folder, feet(whole, lambda _, force: -force), "wrong.csv")
    path = study(
        folder,
        'files = "log.csv"',
        'files = "other.csv"\nuse = "validate"',
        identify='prior = "none"\nbootstrap = 0',
    )
    result = run_study(read_study(path))
    result.save(folder / "out", report=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sections, "plot_ground_support", lambda *_: [])
        (folder / "out" / "report.html").write_text(sections.render_result_page(result, ()))
    return folder


@pytest.mark.long
def test_results_of_floating_robots_are_stored(
    stored: Path, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((stored / "out" / "result.json").read_text())
    assert document["robot"]["dof"] == 18
    assert document["standard"][0]["link"] == "base_link"
    names = [joint["name"] for joint in document["fit"]["identification"][0]["joints"]]
    assert names[:6] == [f"base {part}" for part in ("fx", "fy", "fz", "mx", "my", "mz")]
    assert tuple(names[6:]) == made.robot.joint_names
    assert document["settings"]["study"]["contact"][0]["frame"] == "FL_FOOT"
    assert run(["validate", str(stored / "out" / "result.json"), str(stored / "other.csv")]) == 0
    assert "base mz" in capsys.readouterr().out
    arguments = ["validate", str(stored / "out" / "result.json"), str(stored / "wrong.csv")]
    assert "set sign = -1" in tell(capsys, arguments, code=2).err
    model = stored / "model.urdf"
    assert run(["export", str(stored / "out" / "result.json"), "--urdf", str(model)]) == 0
    from dynident.robot import load_robot

    again = load_robot(model, floating=True)
    masses = [link["mass"] for link in document["standard"]]
    np.testing.assert_allclose(again.nominal[:, 0], masses, rtol=1e-9)
    assert abs(sum(masses) / np.sum(made.theta[:130:10]) - 1.0) < 1e-6


@pytest.mark.long
def test_the_report_has_the_wrench_of_the_base(stored: Path) -> None:
    text = (stored / "out" / "report.html").read_text()
    for part in ("fx", "fy", "fz", "mx", "my", "mz"):
        assert f"base {part}" in text


# what is said of combinations that are free of contacts

QUADRUPED = EXAMPLES / "quadruped"


@pytest.fixture(scope="module")
def stepping(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Fit]:
    """The example, whose second log has no forces; nobody looks at its error bars."""
    text = (QUADRUPED / "study.toml").read_text()
    for name in ("quadruped.urdf", "sway.csv", "steps.csv"):
        text = text.replace(f'"{name}"', f'"{QUADRUPED / name}"')
    folder = tmp_path_factory.mktemp("stepping")
    (folder / "study.toml").write_text(f"{text}\n[identify]\nbootstrap = 0\n")
    return folder, run_study(read_study(folder / "study.toml"))


@pytest.mark.long
def test_the_load_of_the_example_is_found(stepping: tuple[Path, Fit]) -> None:
    """14.278 kg, of which the file knows 12.6: by `make_logs.py`."""
    _, result = stepping
    assert abs(np.sum(result.phi[:, 0]) - 14.278) < 0.02
    trunk = result.phi[0]
    assert abs(trunk[0] - 7.75) < 0.2
    assert abs(trunk[3] / trunk[0] - 0.0227) < 0.005
    assert result.consistent
    assert result.verdict.state == "trusted"


@pytest.mark.long
def test_a_set_of_contacts_has_one_line(stepping: tuple[Path, Fit]) -> None:
    _, result = stepping
    lines = [line for line in result.summary(full=True).splitlines() if line.startswith("free of ")]
    names = [line.split()[2] for line in lines]
    assert names[0] == "FL+FR+HL+HR"
    assert len({*names}) == 5
    groups = [g.name for g in result.estimate.residuals.groups if g.name.startswith("free of ")]
    assert len(groups) == 6 * 4
    rows = [line for line in result.summary(full=True).splitlines() if line.startswith("rows ")]
    assert "in each of 42 groups" in rows[0]


def test_errors_of_a_set_are_those_of_its_combinations() -> None:
    """Two combinations of equal rows: roots of sums of squares."""
    joints = (
        JointError("base fx", 1.0, 2.0),
        JointError("free of left_sole+right_sole 1", 10.0, 1.0),
        JointError("free of left_sole+right_sole 2", 20.0, 4.0),
        JointError("free of left_sole 1", 5.0, 3.0),
    )
    found = merge_contact_sets(FitFigure("fitted", None, joints, 7.0)).joints
    assert [each.name for each in found] == ["base fx", "free of left+right", "free of left"]
    # torques are 10 and 20, errors 1 and 4
    assert found[1].relative_percent == pytest.approx(100.0 * np.sqrt(17.0 / 500.0))
    assert found[2].relative_percent == pytest.approx(5.0)


@pytest.mark.long
def test_a_report_draws_what_a_log_states(
    stepping: tuple[Path, Fit],
) -> None:
    _, result = stepping
    logs = result.series(400)
    channels = list_torque_groups(result.robot)
    every, fitted, held_out = (
        [name for name, _ in chart_torques(channels, series)] for series in logs
    )
    assert len(every) == 18
    assert fitted == [name for name in every if not name.startswith(("base", "HL"))]
    assert held_out == ["HL_roll", "HL_hip_pitch", "HL_knee"]
    # the leg in the air is drawn, and where it bears it is not
    series = logs[1]
    shown = np.isfinite(series.measured)
    assert 0.05 < np.mean(shown[:, 6]) < 0.5
    assert not shown[:, :6].any()


def test_what_kinds_miss_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["base", str(QUADRUPED / "quadruped.urdf"), "--floating", "--friction", "viscous"]
    out = tell(capsys, [*arguments, "--rows", "joints,base"]).out
    listed = out.partition("\n\n")[0].splitlines()
    assert len(listed) == 1 + 10 + 24
    assert "joints 108, base 94" in out
    assert tell(capsys, [*arguments, "--rows", "full"]).out.startswith("base parameters  full 118")
    for wrong, words in (("ful", "did you mean 'full'"), ("null-space", "--contact LINK")):
        assert words in tell(capsys, [*arguments, "--rows", wrong], code=2).err


def of_the_example(folder: Path, change: Callable[[str], str]) -> Path:
    """The study of the example, of its first log alone, changed."""
    text = (QUADRUPED / "study.toml").read_text()
    head, *logs = text.partition("[prepare]")[0].split("[[log]]\n")
    for name in ("quadruped.urdf", "sway.csv"):
        head, logs[0] = (part.replace(name, str(QUADRUPED / name)) for part in (head, logs[0]))
    path = folder / "study.toml"
    path.write_text(
        change(f"{head}[[log]]\n{logs[0]}")
        + '[prepare]\nbandwidth = 5.0\n[identify]\nmethod = "wls"\n'
    )
    return path


@pytest.mark.long
def test_feet_whose_forces_cancel_in_the_wrong_axes_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Upright in the mean, as fore and hind legs lean towards each other."""
    path = of_the_example(
        tmp_path, lambda text: text.replace('kind = "point"', 'kind = "point"\naxes = "world"')
    )
    assert re.search('with axes = "frame" in .* they would', refused(tmp_path, capsys, path))


@pytest.mark.long
def test_a_foot_that_was_forgotten_is_missed(tmp_path: Path) -> None:
    whole = run_study(read_study(of_the_example(tmp_path, lambda text: text)))
    assert not any("from the wrench that the robot file predicts" in w for w in whole.warnings)
    blocks = re.compile(r'\[\[contact\]\]\nname = "HR".*?\n\n', re.S)
    less = run_study(read_study(of_the_example(tmp_path, lambda text: blocks.sub("", text))))
    assert any("columns of HR, which is no [[contact]]" in note for note in less.warnings)
    assert any("from the wrench that the robot file predicts" in note for note in less.warnings)
