"""URDFs that come back with the parameters that were put in, and with nothing else changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from robots import EXAMPLES, bodies, pin_model, pin_q, relative, states, urdf

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import from_com, is_consistent
from dynident.dynamics import build_tree, evaluate_inverse_dynamics
from dynident.export.urdf import render_urdf
from dynident.robot import Robot, load_robot

ROBOTS = {
    "tx40": False,
    "lwr4": False,
    "ur5": False,
    "panda": False,
    "tiago": False,
    "talos": True,
    "solo12": True,
}


def read_back(document: bytes, folder: Path, floating: bool) -> tuple[Path, pin.Model]:
    path = folder / "out.urdf"
    path.write_bytes(document)
    return path, pin_model(path, floating)


def torques_of(model: pin.Model, q: Array, dq: Array, ddq: Array) -> Array:
    data = model.createData()
    return np.array(
        [pin.rnea(model, data, pin_q(model, a), b, c) for a, b, c in zip(q, dq, ddq, strict=True)]
    )


def check_round_trip(robot: Robot, phi: Array, document: bytes, folder: Path) -> None:
    path, model = read_back(document, folder, robot.floating)
    model.gravity.linear = robot.gravity
    q, dq, ddq = states(robot, 5)
    ours = evaluate_inverse_dynamics(build_tree(robot), phi, q, dq, ddq)
    theirs = torques_of(model, q, dq, ddq)
    assert relative(theirs, ours) < 1e-9
    again = load_robot(path, floating=robot.floating)
    assert again.joint_names == robot.joint_names
    assert relative(again.nominal, phi) < 1e-12


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("kind", ["random", "nominal", "heavier"])
def test_round_trip(name: str, kind: str, tmp_path: Path, measured: Callable[[str], Path]) -> None:
    path = measured("lwr4/kuka_lwr4.urdf") if name == "lwr4" else urdf(name)
    robot = load_robot(path, floating=ROBOTS[name])
    phi = robot.nominal
    if kind == "random":
        phi = bodies(len(robot.links))
    elif kind == "heavier":
        phi = robot.nominal + 0.1 * bodies(len(robot.links))
    document, _ = render_urdf(robot, phi)
    check_round_trip(robot, phi, document, tmp_path)


def skeleton(document: bytes) -> list[str]:
    """Everything of a document but the values that the export may change."""
    root = etree.fromstring(document)
    for inertial in root.findall("link/inertial"):
        inertial.getparent().remove(inertial)
    return [etree.tostring(element, with_tail=False).decode() for element in root]


@pytest.mark.parametrize("name", ["tx40", "panda", "tiago"])
def test_nothing_but_inertials_changes(name: str) -> None:
    robot = load_robot(urdf(name))
    document, _ = render_urdf(robot, robot.nominal + 0.1 * bodies(robot.n))
    original = urdf(name).read_bytes()

    def squeezed(parts: list[str]) -> list[str]:
        return ["".join(part.split()).replace("></link>", "/>") for part in parts]

    assert squeezed(skeleton(document)) == squeezed(skeleton(original))
    assert document.split(b"<robot")[0] == original.split(b"<robot")[0]
    changed = {*map(compact, document.splitlines())} - {*map(compact, original.splitlines())}
    # lxml also puts the root's namespaces first
    tags = {b"<mass", b"<origin", b"<inertia", b"<inertial>", b"</inertial>", b"<robot"}
    assert {line.split()[0] for line in changed} <= tags


def compact(line: bytes) -> bytes:
    """lxml closes empty elements without a space."""
    return line.rstrip().replace(b" />", b"/>").replace(b" >", b">")


WRIST = """<robot name="wrist" xmlns:x="urn:x">
  <!-- kept -->
  <link name="base"><inertial><mass value="7"/></inertial></link>
  <joint name="j" type="revolute">
    <parent link="base"/>
    <child link="arm"/>
    <axis xyz="0 0 2"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
    <x:calibration value="3"/>
  </joint>
  <link name="arm"/>
  <joint name="flange" type="fixed">
    <origin xyz="0.1 0 0.2" rpy="0.3 0.2 0.1"/>
    <parent link="arm"/>
    <child link="tool"/>
  </joint>
  <link name="tool">
    <inertial>
      <origin xyz="0 0 0.1" rpy="0 0 1"/>
      <mass value="1.0"/>
      <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="finger" type="prismatic">
    <origin xyz="0 0.05 0"/>
    <parent link="tool"/>
    <child link="tip"/>
    <axis xyz="0 1 0"/>
    <limit lower="0" upper="1" effort="1" velocity="1"/>
  </joint>
  <link name="tip">
    <inertial>
      <mass value="0.2"/>
      <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <transmission name="t"><joint name="j"/></transmission>
</robot>
"""


@pytest.fixture
def wrist(tmp_path: Path) -> Path:
    path = tmp_path / "wrist.urdf"
    path.write_text(WRIST)
    return path


def masses(document: bytes) -> dict[str, str]:
    root = etree.fromstring(document)
    return {
        str(link.get("name")): str(link.find("inertial/mass").get("value"))
        for link in root.findall("link")
        if link.find("inertial") is not None
    }


def test_attached_links_keep_their_inertia_where_the_rest_is_a_body(
    wrist: Path, tmp_path: Path
) -> None:
    robot = load_robot(wrist, locked={"finger": 0.02})
    assert robot.links == ("arm",)
    extra = from_com(3.0, [0.05, 0.0, 0.1], np.diag([0.02, 0.03, 0.025]))
    phi = robot.nominal + extra
    document, notes = render_urdf(robot, phi)
    assert notes == ()
    found = masses(document)
    assert found == {"base": "7", "arm": found["arm"], "tool": "1.0", "tip": "0.2"}
    assert float(found["arm"]) == pytest.approx(3.0)
    _, model = read_back(document, tmp_path, False)
    reference = np.array([0.0, 0.02])
    reduced = pin.buildReducedModel(model, [model.getJointId("finger")], reference)
    assert relative(reduced.inertias[1].toDynamicParameters(), phi[0]) < 1e-14


def test_attached_links_become_massless_where_it_is_none(wrist: Path, tmp_path: Path) -> None:
    robot = load_robot(wrist, locked={"finger": 0.02})
    phi = bodies(1)
    phi[0] *= 0.9 / phi[0, 0]
    document, notes = render_urdf(robot, phi)
    assert notes == (
        "link arm carries the inertia of what is fixed to it: tool, tip became massless",
    )
    assert set(masses(document)) == {"base", "arm"}
    path, model = read_back(document, tmp_path, False)
    assert relative(model.inertias[1].toDynamicParameters(), phi[0]) < 1e-14
    np.testing.assert_array_equal(load_robot(path).nominal[1], 0.0)


@pytest.mark.parametrize(
    ("name", "floating", "locked"),
    [
        ("panda", False, {"panda_joint4": -1.2, "panda_finger_joint2": 0.03}),
        ("solo12", True, {"FL_HAA": 0.3, "FL_HFE": -0.7, "HR_KFE": 1.0}),
        ("tiago", False, {"torso_lift_joint": 0.2, "wheel_left_joint": 0.4}),
    ],
)
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_locked_joints_are_fixed_at_their_values(
    name: str, floating: bool, locked: dict[str, float], scale: float, tmp_path: Path
) -> None:
    robot = load_robot(urdf(name), floating=floating, locked=locked)
    phi = scale * robot.nominal + bodies(len(robot.links))
    document, _ = render_urdf(robot, phi)
    path, _ = read_back(document, tmp_path, floating)
    again = load_robot(path, floating=floating, locked=locked)
    assert relative(again.nominal, phi) < 1e-12


def test_documents_stay_tidy(wrist: Path) -> None:
    robot = load_robot(wrist, locked={"finger": 0.0})
    phi = robot.nominal + 2 * bodies(1)
    document, _ = render_urdf(robot, phi, damping=[0.5], friction=[0.25], omitted=["Ia1", "off1"])
    text = document.decode()
    arm = text[text.index('<link name="arm">') :].split("</link>")[0].splitlines()
    assert [line[: len(line) - len(line.lstrip())] for line in arm] == [
        "", "    ", "      ", "      ", "      ", "    ", "  ",
    ]  # fmt: skip
    joint = text[text.index('<joint name="j" type') :].split("</joint>")[0]
    assert '\n    <dynamics damping="0.5" friction="0.25"/>\n  ' in joint
    assert '<x:calibration value="3"/>' in joint
    assert "<!-- kept -->" in text
    assert '<transmission name="t"><joint name="j"/></transmission>' in text
    assert not text.startswith("<?xml")
    assert text.endswith("</robot>\n")


def test_notes_say_what_was_left_out(wrist: Path) -> None:
    robot = load_robot(wrist)
    _, notes = render_urdf(robot, bodies(2), omitted=["Ia1", "off1"])
    assert notes[-1] == "not in the URDF, which has no place for it: Ia1, off1"


def test_line_ends_are_kept(wrist: Path) -> None:
    wrist.write_bytes(WRIST.replace("\n", "\r\n").encode())
    document, _ = render_urdf(load_robot(wrist), bodies(2))
    assert document.count(b"\r\n") == document.count(b"\n") > 10


def test_only_what_is_given_is_written_into_dynamics() -> None:
    robot = load_robot(urdf("panda"))
    friction = np.arange(1.0, robot.n + 1)
    document, _ = render_urdf(robot, robot.nominal, friction=friction)
    before, after = (
        {j.get("name"): j.find("dynamics") for j in etree.fromstring(text).findall("joint")}
        for text in (urdf("panda").read_bytes(), document)
    )
    # a drive that turns with several joints has no value of its own for its joint
    document, _ = render_urdf(robot, robot.nominal, friction=[None, *friction[1:]])
    text = etree.tostring(etree.fromstring(document).find("joint/dynamics"), with_tail=False)
    assert b"nan" not in document
    assert text == etree.tostring(before["panda_joint1"], with_tail=False)
    for index, name in enumerate(robot.joint_names):
        assert float(after[name].get("friction")) == friction[index]
        if before[name] is not None:
            assert after[name].get("damping") == before[name].get("damping")


def test_a_patched_document_is_stable(tmp_path: Path) -> None:
    robot = load_robot(urdf("ur5"))
    phi = bodies(6)
    first, _ = render_urdf(robot, phi, damping=np.ones(6))
    path, _ = read_back(first, tmp_path, False)
    second, _ = render_urdf(load_robot(path), phi, damping=np.ones(6))
    assert first == second


@pytest.mark.parametrize("convention", ["modified", "standard"])
@pytest.mark.parametrize("floating", [False, True])
def test_a_table_gets_a_fresh_urdf(convention: str, floating: bool, tmp_path: Path) -> None:
    path = tmp_path / "arm.toml"
    path.write_text(
        f"""convention = "{convention}"
floating = {str(floating).lower()}
gravity = [1.0, 2.0, -9.0]
[[joint]]
name = "a"
alpha = 90.0
d = 0.3
lower = -90.0
upper = 90.0
velocity = 100.0
[[joint]]
name = "b"
a = 0.2
theta0 = -90.0
[[joint]]
name = "c"
alpha = -90.0
type = "prismatic"
[[joint]]
name = "e"
alpha = 33.0
a = 0.1
parent = "a"
"""
    )
    robot = load_robot(path)
    phi = bodies(len(robot.links))
    document, notes = render_urdf(robot, phi, damping=np.ones(4), omitted=["Ia1"])
    assert notes == ("not in the URDF, which has no place for it: Ia1",)
    out, model = read_back(document, tmp_path, floating)
    model.gravity.linear = robot.gravity
    q, dq, ddq = states(robot, 5)
    again = load_robot(out, floating=floating, gravity=robot.gravity)
    # Pinocchio takes siblings by name; these are in that order already
    assert again.joint_names == tuple(list(model.names)[1 + floating :])
    order = [robot.joint_names.index(name) for name in again.joint_names]
    first, base = 7 * floating, 6 * floating
    positions = [*range(first), *(first + i for i in order)]
    rates = [*range(base), *(base + i for i in order)]
    ours = evaluate_inverse_dynamics(build_tree(robot), phi, q, dq, ddq)
    theirs = torques_of(model, q[:, positions], dq[:, rates], ddq[:, rates])
    assert relative(theirs, ours[:, rates]) < 1e-9
    for index, joint in zip(order, again.joints, strict=True):
        mine = robot.joints[index]
        for field in ("kind", "link", "lower", "upper", "velocity", "effort"):
            assert getattr(joint, field) == getattr(mine, field), (joint.name, field)
        assert joint.damping == 1.0


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
@pytest.mark.parametrize("floating", [False, True])
def test_a_robot_with_one_joint_comes_back(kind: str, floating: bool, tmp_path: Path) -> None:
    path = tmp_path / "one.urdf"
    path.write_text(WRIST.replace('"prismatic"', '"fixed"').replace('"revolute"', f'"{kind}"'))
    robot = load_robot(path, floating=floating)
    assert [joint.kind for joint in robot.joints] == [kind.replace("continuous", "revolute")]
    np.testing.assert_allclose(robot.joints[0].axis, [0.0, 0.0, 1.0])
    phi = bodies(len(robot.links))
    document, _ = render_urdf(robot, phi)
    check_round_trip(robot, phi, document, tmp_path)


def test_a_table_with_one_joint_gets_a_urdf_that_can_be_read(tmp_path: Path) -> None:
    robot = load_robot(EXAMPLES / "emps" / "emps.toml")
    phi = bodies(1)
    document, _ = render_urdf(robot, phi)
    check_round_trip(robot, phi, document, tmp_path)


def test_tx40_table_and_urdf_export_alike(tmp_path: Path) -> None:
    robot = load_robot(EXAMPLES / "tx40" / "tx40_dh.toml")
    phi = bodies(6)
    document, _ = render_urdf(robot, phi)
    check_round_trip(robot, phi, document, tmp_path)


def test_consistent_parameters_stay_consistent_for_link_6_of_the_tx40(tmp_path: Path) -> None:
    robot = load_robot(EXAMPLES / "tx40" / "tx40.toml")
    document, notes = render_urdf(robot, bodies(6))
    path, _ = read_back(document, tmp_path, False)
    assert notes == ()
    assert is_consistent(load_robot(path).nominal)


def test_refusals(wrist: Path) -> None:
    robot = load_robot(wrist)
    phi = bodies(2)
    with pytest.raises(InputError, match=r"shape \(1, 10\), expected finite .* \(2, 10\)"):
        render_urdf(robot, phi[:1])
    with pytest.raises(InputError, match=r"shape \(2, 10\), expected finite .* \(2, 10\)"):
        render_urdf(robot, phi * np.nan)
    with pytest.raises(ComputationError, match=r"link arm: its mass is -.*pc-idim-ls"):
        render_urdf(robot, -phi)
    wrist.write_text(WRIST.replace('"tip"', '"point"'))
    with pytest.raises(InputError, match="link 'tip' is gone"):
        render_urdf(robot, phi)


def test_what_stands_in_an_entity_is_written_out(wrist: Path) -> None:
    entity = "<!DOCTYPE robot [<!ENTITY own '<inertial><mass value=\"1\"/></inertial>'>]>\n"
    wrist.write_text(entity + WRIST.replace('<link name="arm"/>', '<link name="arm">&own;</link>'))
    document, _ = render_urdf(load_robot(wrist), bodies(2))
    assert float(masses(document)["arm"]) > 0.0
    assert b"&own;" not in document
