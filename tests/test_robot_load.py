"""Robot files into robots: mimics, locked joints, drives, warnings, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from robots import EXAMPLES, pin_model, pin_q, relative, states, urdf

from dynident.core.errors import InputError
from dynident.dynamics import build_tree, evaluate_inverse_dynamics
from dynident.robot import load_robot
from dynident.robot.load import LOADERS
from dynident.robot.spec import DriveSpec, TransmissionSpec

TX40 = EXAMPLES / "tx40"
DH = """
convention = "modified"
[[joint]]
name = "shoulder"
[[joint]]
name = "elbow"
a = 0.4
[[joint]]
name = "slide"
type = "prismatic"
alpha = 90.0
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "robot.toml"
    path.write_text(text)
    return path


def test_mimic_joints_are_joints_of_their_own_with_a_warning() -> None:
    robot = load_robot(urdf("panda"))
    assert robot.n == 9
    assert (
        "joint panda_finger_joint2 mimics panda_finger_joint1; it is taken as a joint of its own, "
        "so its motion must be in the log, or lock it: locked = { panda_finger_joint2 = 0.0 }"
    ) in robot.warnings
    talos = load_robot(urdf("talos"), floating=True)
    assert talos.n == pin_model(urdf("talos"), True).nv - 6
    assert sum("mimics" in warning for warning in talos.warnings) == 12


@pytest.mark.parametrize(
    ("name", "floating", "locked"),
    [
        ("panda", False, {"panda_finger_joint1": 0.01, "panda_finger_joint2": 0.03}),
        ("panda", False, {"panda_joint4": -1.2, "panda_joint1": 0.5}),
        ("solo12", True, {"FL_HAA": 0.3, "FL_HFE": -0.7, "HR_KFE": 1.0}),
        ("tiago", False, {"wheel_left_joint": 0.4, "torso_lift_joint": 0.2}),
    ],
)
def test_locked_joints_are_pinocchios_reduced_model(
    name: str, floating: bool, locked: dict[str, float]
) -> None:
    robot = load_robot(urdf(name), floating=floating, locked=locked)
    assert robot.locked == locked
    assert not any(f"joint {joint} mimics" in w for w in robot.warnings for joint in locked)
    full = pin_model(urdf(name), floating)
    values = np.zeros(full.nv - 6 * floating)
    free = load_robot(urdf(name), floating=floating)
    for joint, value in locked.items():
        values[free.joint_names.index(joint)] = value
    base = [0.0] * 6 + [1.0] if floating else []
    reference = pin_q(full, np.concatenate([base, values]))
    model = pin.buildReducedModel(full, [full.getJointId(j) for j in locked], reference)
    model.armature = np.zeros(model.nv)
    assert robot.joint_names == tuple(list(model.names)[1 + floating :])
    theirs = np.array([model.inertias[i].toDynamicParameters() for i in range(1, model.njoints)])
    np.testing.assert_allclose(robot.nominal, theirs, rtol=1e-9, atol=1e-12)
    q, dq, ddq = states(robot, 5)
    data = model.createData()
    torques = [pin.rnea(model, data, pin_q(model, q[k]), dq[k], ddq[k]) for k in range(5)]
    ours = evaluate_inverse_dynamics(build_tree(robot), robot.nominal, q, dq, ddq)
    assert relative(ours, np.array(torques)) < 1e-10


def test_locked_joints_of_a_table(tmp_path: Path) -> None:
    path = write(tmp_path, "locked = { elbow = 0.5 }\n" + DH)
    robot = load_robot(path)
    assert robot.joint_names == ("shoulder", "slide")
    assert robot.joints[1].parent == 1
    np.testing.assert_allclose(robot.joints[1].translation, [0.4, 0.0, 0.0])
    np.testing.assert_allclose(robot.joints[1].axis, [0.0, 0.0, 1.0])
    both = load_robot(path, locked={"slide": 0.1})
    assert both.joint_names == ("shoulder",)
    assert both.locked == {"elbow": 0.5, "slide": 0.1}


def test_tx40() -> None:
    robot = load_robot(TX40 / "tx40.toml")
    assert robot.name == "tx40"
    assert robot.source == TX40 / "tx40_mdh_modified.urdf"
    drives = robot.drives
    assert drives.reduction[5, 4] == 32.0
    assert drives.reduction[3, 3] == -48.0
    np.testing.assert_array_equal(drives.turns[5], [0, 0, 0, 0, 1, 1])
    assert [drives.coupled(j) for j in range(6)] == [False] * 5 + [True]
    np.testing.assert_allclose(
        drives.position_to_joint(np.zeros((1, 6)))[0, 1:3], [-np.pi / 2, np.pi / 2]
    )
    torque = drives.torque_to_joint(np.eye(6)[5:])
    np.testing.assert_array_equal(torque, [[0, 0, 0, 0, 32, 32]])
    assert len(robot.warnings) == 1
    assert (
        "link link_6: the robot file's inertial is not physically consistent" in (robot.warnings[0])
    )


def test_emps() -> None:
    robot = load_robot(EXAMPLES / "emps" / "emps.toml")
    assert [joint.kind for joint in robot.joints] == ["prismatic"]
    assert robot.drives.gain[0] == 35.1507
    # neither weight nor anything but the mass matters
    q, dq, ddq = states(robot, 4)
    phi = np.random.default_rng(0).normal(size=(1, 10))
    torque = evaluate_inverse_dynamics(build_tree(robot), phi, q, dq, ddq)
    np.testing.assert_allclose(torque, phi[0, 0] * ddq, atol=1e-14)


def test_massless_moving_link_is_warned_of(tmp_path: Path) -> None:
    text = urdf("ur5").read_text().replace('<mass value="0.1879"/>', '<mass value="0"/>')
    path = tmp_path / "ur5.urdf"
    path.write_text(text)
    found = load_robot(path).warnings
    assert found == ("link wrist_3_link: the robot file gives it no mass",)
    assert load_robot(urdf("ur5")).warnings == ()


def test_a_table_without_inertials_is_not_warned_of(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, DH))
    assert robot.warnings == ()
    assert not robot.has_nominal
    assert (robot.name, robot.base_link) == ("robot", "base")


def test_base_turns_gravity_of_a_urdf_and_moves_a_table(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_bytes(urdf("ur5").read_bytes())
    turned = write(tmp_path, 'urdf = "arm.urdf"\nbase = { rpy = [90.0, 0.0, 0.0] }')
    np.testing.assert_allclose(load_robot(turned).gravity, [0.0, -9.81, 0.0], atol=1e-14)
    moved = write(tmp_path, "base = { xyz = [0.0, 0.0, 0.3], rpy = [90.0, 0.0, 0.0] }" + DH)
    robot = load_robot(moved)
    np.testing.assert_allclose(robot.gravity, [0.0, 0.0, -9.81])
    np.testing.assert_allclose(robot.joints[0].translation, [0.0, 0.0, 0.3])
    np.testing.assert_allclose(robot.joints[0].rotation @ [0, 0, 1], [0, -1, 0], atol=1e-14)


def test_a_urdf_is_read_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError("no usable temporary directory")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    assert load_robot(urdf("tx40")).n == 6


def test_overrides(tmp_path: Path) -> None:
    text = DH + '[[drive]]\njoint = 2\ngain = 3.0\n[[drive]]\njoint = "slide"\ngain = 4.0'
    robot = load_robot(
        write(tmp_path, text),
        gravity=[0.0, 0.0, -1.62],
        drives=[DriveSpec(joint=3, row={"elbow": 1.0, "3": 2.0}, gain=5.0)],
        transmission=TransmissionSpec(reduction=(10.0, 20.0, -30.0)),
    )
    np.testing.assert_array_equal(robot.gravity, [0.0, 0.0, -1.62])
    np.testing.assert_array_equal(robot.drives.gain, [1.0, 3.0, 5.0])
    np.testing.assert_array_equal(robot.drives.turns, [[1, 0, 0], [0, 1, 0], [0, 1, 2]])
    np.testing.assert_array_equal(robot.drives.reduction, np.diag([10.0, 20.0, -30.0]))
    np.testing.assert_array_equal(robot.drives.zero, 0.0)
    assert not robot.drives.turns.flags.writeable


def test_floating_table(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, "floating = true" + DH))
    assert robot.links == ("base", "link_1", "link_2", "link_3")
    assert robot.nominal.shape == (4, 10)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (DH, {"locked": {"elbw": 0.0}}, "locked: there is no joint 'elbw'; did you mean 'elbow'"),
        (DH, {"locked": {"4": 0.0}}, "locked: there is no joint 4; joints count from 1 to 3"),
        (DH, {"locked": {"elbow": np.nan}}, "locked: elbow = nan is not a finite number"),
        (DH, {"locked": {"elbow": "0"}}, "locked: elbow = '0' is not a finite number"),
        (DH + "[[drive]]\njoint = 'elbo'", {}, r"drive\[1\].joint: there is no joint 'elbo'; did"),
        (DH + "[[drive]]\njoint = 7", {}, r"drive\[1\].joint: there is no joint 7"),
        (DH + "[[drive]]\njoint=1\n[[drive]]\njoint='shoulder'", {}, "has a drive already"),
        (DH + "[[drive]]\njoint=1\nrow={elbw=1}", {}, r"drive\[1\].row: .* did you mean 'elbow'"),
        (DH + "[[drive]]\njoint=1\nrow={elbow=1}", {}, "add shoulder = 1.0"),
        (DH + "[transmission]\nreduction=[1,2]", {}, "is for 2 joints but there are 3"),
        (DH + "[transmission]\nreduction=[1,2,0]", {}, "singular"),
        (DH + "[transmission]\nreduction=[[1,2],[3]]", {}, "different lengths"),
        (DH + "[transmission]\nzero=[0]", {}, "transmission.zero has 1 numbers"),
        ("base = {}" + DH, {"floating": True}, "key 'base' needs a fixed base"),
        (DH, {"gravity": [1.0]}, "gravity is"),
        (DH, {"gravity": [0.0, 0.0, 1e300]}, "gravity is .* 3 finite numbers"),
        (DH, {"gravity": "down"}, "gravity is 'down' but has to be 3 finite numbers"),
        (DH + "a = 1e300", {}, r"'joint\[3\].a' is 1e\+300 .* less than 1000000000"),
        (DH + "inertial = { mass = 1e300 }", {}, r"joint\[3\].inertial.mass' .* less than"),
        (DH + "[[drive]]\njoint=2\nrow={elbow=1e300}", {}, r"drive\[1\].row.elbow' .* less than"),
        ("urdf = 'a.urdf'\ncolour = 1", {}, "unknown key 'colour'"),
    ],
)
def test_refusals(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        load_robot(path, **options)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("robot", "", "not in nothing"),
        ("robot.xml", "<mujoco/>", "the robot has no moving joint"),
    ],
)
def test_refused_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        load_robot(path)
    assert str(caught.value).startswith(str(path))


JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name}"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<link name="{name}"/>
"""


def geared(*transmissions: str) -> str:
    joints = "".join(JOINT.format(name=b, parent=a) for a, b in ("wa", "ab", "bc"))
    return f'<robot name="r"><link name="w"/>\n{joints}{"".join(transmissions)}</robot>'


def test_the_world_need_not_be_stated_as_a_link(tmp_path: Path) -> None:
    """As in files written for Drake; of another link that is not there it is a mistake."""
    weld = '<joint name="weld" type="fixed"><parent link="{}"/><child link="w"/></joint></robot>'
    path, text = tmp_path / "r.urdf", geared()
    path.write_text(text.replace("</robot>", weld.format("world")))
    robot = load_robot(path)
    assert robot.joint_names == ("a", "b", "c")
    path.write_text(text.replace("</robot>", weld.format("wall")))
    with pytest.raises(InputError, match=r"parent link \[wall\] of joint \[weld\] not found"):
        load_robot(path)


def transmission(ratio: str, *joints: str) -> str:
    named = "".join(f'<joint name="{joint}"/>' for joint in joints)
    tag = "mechanicalReduction"
    return (
        f'<transmission name="t">{named}<actuator><{tag}>{ratio}</{tag}></actuator></transmission>'
    )


def test_transmissions_of_a_urdf_are_reductions(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(geared(transmission(" 50 ", "a"), transmission("-2.5", "c")))
    robot = load_robot(path)
    np.testing.assert_array_equal(robot.drives.reduction, np.diag([50.0, 1.0, -2.5]))
    assert not any("transmission" in warning for warning in robot.warnings)
    stiff = load_robot(path, locked={"a": 0.5})
    np.testing.assert_array_equal(stiff.drives.reduction, np.diag([1.0, -2.5]))
    given = load_robot(path, transmission=TransmissionSpec(reduction=(1.0, 2.0, 3.0)))
    np.testing.assert_array_equal(given.drives.reduction, np.diag([1.0, 2.0, 3.0]))
    path.write_text(geared(transmission("50", "a", "b")))
    robot = load_robot(path)
    np.testing.assert_array_equal(robot.drives.reduction, np.eye(3))
    assert robot.warnings[0].startswith("transmission t couples a, b, which is not read")
    for ratio, words in (
        ("0", "line 11: <mechanicalReduction> is 0;"),
        ("x", "should hold a number"),
    ):
        path.write_text(geared(transmission(ratio, "a")))
        with pytest.raises(InputError, match=words):
            load_robot(path)


def test_xacro_is_refused_with_the_command(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf.xacro"
    path.write_text("<robot/>")
    words = f"{path}: is xacro, which has to be expanded first: xacro {path} -o arm.urdf"
    with pytest.raises(InputError) as caught:
        load_robot(path)
    assert str(caught.value) == words
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">\n<xacro:arm/></robot>'
    )
    with pytest.raises(InputError, match=r"line 2: is xacro, .*: xacro .* -o arm.urdf"):
        load_robot(path)


def test_every_loader_is_reachable() -> None:
    assert list(LOADERS) == [".urdf", ".toml", ".xml"]


def test_a_drive_of_a_locked_joint_is_refused_as_that(tmp_path: Path) -> None:
    row = "row = { panda_joint1 = 1.0, panda_joint2 = 1.0 }"
    path = write(tmp_path, f'urdf = "{urdf("panda")}"\n[[drive]]\njoint = "panda_joint2"\n{row}\n')
    for joint in ("panda_joint1", "panda_joint2"):
        with pytest.raises(InputError, match=f"drive.1.: {joint} is locked, but drives belong to"):
            load_robot(path, locked={joint: 0.4})
