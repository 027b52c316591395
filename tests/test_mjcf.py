"""MJCF files into robots: the same mass matrix and bias as MuJoCo's, warnings, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco_model import agree, engine, without_meshes
from robots import relative, states

from dynident.core.errors import InputError
from dynident.dynamics import build_tree, evaluate_inverse_dynamics
from dynident.dynamics.idim import build_idim
from dynident.robot import load_robot
from dynident.study.loop import ControllerSection, build_controller
from dynident.study.simulate import choose_simulated_model
from dynident.study.study import Study

INERTIAL = '<inertial pos="0.1 -0.02 0.03" mass="1.5" diaginertia="0.02 0.03 0.025"/>'

ANGLES = f"""<mujoco model="angles">
  <compiler eulerseq="zYx"/>
  <worldbody>
    <body name="a" pos="0.1 0.2 0.3" euler="10 20 -30">
      {INERTIAL}
      <joint name="a1" axis="1 2 3" pos="0.05 0 0.1" ref="25" range="-90 45"/>
      <body name="b" pos="0 0.1 0.2" axisangle="1 0 2 40">
        <inertial pos="0 0.1 0" zaxis="1 1 0.5" mass="0.7" diaginertia="0.01 0.012 0.005"/>
        <joint name="b1" type="slide" axis="0 1 1" ref="0.2" pos="1 2 3" range="-0.1 0.4"/>
        <body name="c" pos="0.3 0 0" xyaxes="1 1 0 0 1 1">
          <inertial pos="0 0 0.1" mass="0.4" fullinertia="0.004 0.005 0.006 0.001 -0.0005 0.0002"/>
          <joint name="c1" limited="false" range="-1 1"/>
          <body name="d" pos="0 0.2 0" zaxis="0 0 -1">
            <inertial pos="0.1 0 0" euler="5 6 7" mass="0.2" diaginertia="0.001 0.002 0.0015"/>
            <joint name="d1" axis="0 1 0"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""

CLASSES = """<mujoco model="classes">
  <compiler angle="radian"/>
  <option gravity="1 -2 -9"/>
  <default>
    <joint axis="1 0 0" armature="0.1" damping="0.5"/>
    <geom density="500"/>
    <default class="arm">
      <joint armature="0.2" frictionloss="0.3" range="-1 1"/>
      <motor gear="50" ctrlrange="-2 2"/>
      <default class="finger"><joint type="slide" axis="0 1 0" damping="0.7"/></default>
    </default>
    <default class="servo"><position kp="100" kv="3" forcerange="-40 30"/></default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="table"><geom type="box" size="1 1 1" mass="100"/></body>
    <body name="base" childclass="arm" pos="0 0 1">
      <geom size="0.1"/>
      <body name="upper" pos="0 0 0.1">
        <joint name="shoulder"/>
        <geom type="capsule" fromto="0 0 0 0.3 0.1 0.2" size="0.03"/>
        <geom type="cylinder" fromto="0 0 0.3 0 0.2 0.3" size="0.02" mass="0.6"/>
        <body name="welded" pos="0.1 0.1 0" quat="1 1 0 0">
          <geom type="ellipsoid" size="0.1 0.05 0.07" pos="0.1 0 0" quat="1 0 1 0"/>
          <body name="fore" pos="0.3 0 0">
            <joint name="elbow" class="main"/>
            <geom type="box" fromto="0 0 0 0.2 0.2 0" size="0.04"/>
            <geom type="box" size="0.1 0.2 0.3" mass="0"/>
            <geom size="0.3" group="3"/>
            <body name="tip" pos="0 0 0.2" childclass="finger">
              <joint name="slide"/>
              <geom type="box" size="0.02 0.03 0.05" euler="0.3 0.2 0.1"/>
              <geom type="capsule" size="0.03 0.1" pos="0 0 0.1"/>
              <geom type="cylinder" size="0.05 0.02"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="m1" joint="shoulder" class="arm"/>
    <position name="m2" joint="elbow" class="servo" gear="2"/>
    <general joint="slide" gainprm="10" biastype="affine" biasprm="0 -10 -1"/>
  </actuator>
  <keyframe><key qpos="0 0 0"/></keyframe>
</mujoco>""".replace('group="3"', 'group="5" density="0"')

FRAMES = f"""<mujoco model="frames">
  <compiler angle="radian" inertiafromgeom="auto"/>
  <worldbody>
    <frame pos="0.1 0 0" euler="0.1 0.2 0.3">
      <body name="a" pos="0 0 0.1">
        {INERTIAL}
        <frame pos="0 0.1 0" quat="1 0.2 0 0.1">
          <joint name="a1" axis="0 1 0" pos="0.1 0 0" ref="0.4"/>
          <frame axisangle="0 0 1 1.2" pos="0.2 0 0">
            <joint name="a2" axis="1 0 0" pos="0 0 0.3"/>
            <joint name="a3" type="slide" axis="1 0 1" ref="-0.3"/>
            <body name="b" pos="0 0 0.3">
              <joint name="b1"/><joint name="b2" axis="0 1 0"/>
              <frame pos="0.1 0.1 0.1"><geom size="0.1" pos="0 0 0.1"/></frame>
            </body>
            <geom size="2"/>
          </frame>
        </frame>
      </body>
    </frame>
  </worldbody>
</mujoco>"""

BOUNDS = """<mujoco>
  <compiler boundmass="0.5" boundinertia="0.01" balanceinertia="true" settotalmass="7"/>
  <worldbody>
    <body name="fixed"><geom size="0.1"/></body>
    <body name="a">
      <inertial pos="0.1 0 0" mass="0.2" diaginertia="0.02 0.02 0.05"/><joint name="a1"/>
      <body name="b" pos="0.2 0 0">
        <inertial pos="0.05 0.1 0" mass="2" euler="10 0 0" diaginertia="0.001 0.001 0.03"/>
        <joint name="b1" axis="0 1 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""

GEOMS = """<mujoco>
  <compiler inertiafromgeom="true" inertiagrouprange="0 2"/>
  <option><flag gravity="disable"/></option>
  <worldbody>
    <body name="a">
      <inertial pos="0.1 0 0" mass="9" diaginertia="1 1 1"/><joint name="j"/>
      <geom size="0.1" pos="0 0.1 0"/><geom size="0.3" group="3"/>
      <body name="b" pos="0.2 0 0">
        <inertial pos="0 0.1 0" mass="2" diaginertia="0.01 0.02 0.015"/>
        <joint name="k" axis="0 1 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""


def write(folder: Path, text: str, name: str = "robot.xml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", [ANGLES, CLASSES, FRAMES, BOUNDS, GEOMS])
def test_mujoco_agrees(text: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    assert agree(path, load_robot(path)) < 1e-12


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("name", ["z1", "go2"])
def test_mujoco_agrees_on_the_unitree_robots(
    name: str, held: bool, tmp_path: Path, measured: Callable[[str], Path]
) -> None:
    path = measured(f"unitree/{name}.xml")
    robot = load_robot(path, floating=not held and name == "go2")
    bare = without_meshes(path, tmp_path, held)
    assert agree(bare, robot) < 1e-12


@pytest.mark.parametrize("name", ["z1", "go2"])
def test_the_urdf_beside_it_is_the_same_robot(name: str, measured: Callable[[str], Path]) -> None:
    one, other = (load_robot(measured(f"unitree/{name}{end}")) for end in (".xml", ".urdf"))
    assert one.joint_names == other.joint_names
    motion = states(one, 10)
    ours, theirs = (
        evaluate_inverse_dynamics(build_tree(r), r.nominal, *motion) for r in (one, other)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    for mine, same in zip(one.joints, other.joints, strict=True):
        np.testing.assert_allclose([mine.lower, mine.upper], [same.lower, same.upper], atol=1e-4)


def test_a_floating_base_needs_no_free_joint(tmp_path: Path) -> None:
    path = write(tmp_path, CLASSES)
    robot = load_robot(path, floating=True)
    assert robot.links[0] == "base"
    np.testing.assert_array_equal(robot.gravity, [1.0, -2.0, -9.0])
    free = write(
        tmp_path,
        CLASSES.replace('<geom size="0.1"/>', '<freejoint/><geom size="0.1"/>'),
        "free.xml",
    )
    assert agree(free, load_robot(free, floating=True)) < 1e-12
    held = load_robot(free)
    assert held.warnings[0].startswith("body base has a free joint")
    assert held.warnings[0].endswith("it is taken as held where the file puts it")
    np.testing.assert_allclose(held.nominal, load_robot(path).nominal)
    assert load_robot(free, floating=True).warnings == ()


def test_classes_give_joints_and_actuators_their_values(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, CLASSES))
    assert (robot.name, robot.base_link, robot.warnings) == ("classes", "base", ())
    shoulder, elbow, slide = robot.joints
    assert (shoulder.armature, shoulder.damping, shoulder.friction) == (0.2, 0.5, 0.3)
    assert (shoulder.lower, shoulder.upper, shoulder.effort) == (-1.0, 1.0, 100.0)
    assert (elbow.armature, elbow.damping, elbow.friction) == (0.1, 0.5, 0.0)
    assert (elbow.lower, elbow.upper, elbow.effort) == (-np.inf, np.inf, 80.0)
    assert (elbow.kp, elbow.kd) == (400.0, 12.0)
    assert (slide.kind, slide.damping, slide.friction) == ("prismatic", 0.7, 0.3)
    assert (slide.kp, slide.kd, slide.effort) == (10.0, 1.0, np.inf)
    assert (shoulder.kp, shoulder.kd) == (0.0, 0.0)


def test_the_law_of_a_position_servo_is_mujocos(tmp_path: Path) -> None:
    path = write(tmp_path, CLASSES)
    robot, model = load_robot(path), engine(path)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = [0.1, 0.02, 0.3], [1.0, 0.1, -1.0], [0, 0.1, 0.2]
    mujoco.mj_forward(model, data)
    gear = [1.0, 2.0, 1.0]
    for k in (1, 2):
        joint = robot.joints[k]
        law = joint.kp * (data.ctrl[k] / gear[k] - data.qpos[k]) - joint.kd * data.qvel[k]
        assert data.qfrc_actuator[k] == pytest.approx(law, rel=1e-12)


def test_limits_are_those_of_the_compiler(tmp_path: Path) -> None:
    path = write(tmp_path, ANGLES)
    robot = load_robot(path)
    model = engine(path)
    for k, joint in enumerate(robot.joints):
        if model.jnt_limited[k]:
            np.testing.assert_allclose([joint.lower, joint.upper], model.jnt_range[k])
        else:
            assert np.isinf(joint.lower)
            assert np.isinf(joint.upper)
    assert [bool(x) for x in model.jnt_limited] == [True, True, False, False]


def test_several_joints_of_a_body_are_a_chain(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, FRAMES))
    assert robot.links == ("a/a1", "a/a2", "a", "b/b1", "b")
    assert [joint.parent for joint in robot.joints] == [0, 1, 2, 3, 4]
    assert robot.base_link == "world"
    np.testing.assert_array_equal(robot.nominal[[0, 1, 3]], 0.0)


def test_what_has_no_name_gets_one(tmp_path: Path) -> None:
    text = BOUNDS
    for name in ("fixed", "a", "b", "a1", "b1"):
        text = text.replace(f'name="{name}"', "")
    robot = load_robot(write(tmp_path, text.replace('settotalmass="7"', "")))
    assert robot.name == "robot"
    assert robot.links == ("body2", "body3")
    assert robot.joint_names == ("body2_joint", "body3_joint")


def test_included_files_stand_in_their_place(tmp_path: Path) -> None:
    start, end = CLASSES.index("<default>"), CLASSES.index("</default>\n  <worldbody>") + 10
    write(tmp_path, f"<mujoco>{CLASSES[start:end]}</mujoco>", "parts/classes.xml")
    arm = CLASSES[CLASSES.index('<body name="upper"') : CLASSES.index("    </body>\n  </worldb")]
    inner = arm.replace('<joint name="slide"/>', '<include file="slide.xml"/>')
    write(tmp_path, f"<any>{inner}</any>", "parts/arm.xml")
    write(tmp_path, '<a><joint name="slide"/></a>', "parts/slide.xml")
    text = CLASSES[:start] + '<include file="parts/classes.xml"/>' + CLASSES[end:]
    path = write(tmp_path, text.replace(arm, '<include file="parts/arm.xml"/>'))
    whole, parts = load_robot(write(tmp_path, CLASSES, "whole.xml")), load_robot(path)
    np.testing.assert_array_equal(parts.nominal, whole.nominal)
    assert [j.armature for j in parts.joints] == [j.armature for j in whole.joints]
    assert agree(path, parts) < 1e-12
    write(tmp_path, "<a>\n<body><joint type='ball'/></body></a>", "parts/slide.xml")
    with pytest.raises(InputError, match=r"slide.xml, line 2: joint .* has type 'ball'"):
        load_robot(path)


def test_locked_joints_are_part_of_their_carrier(tmp_path: Path) -> None:
    path = write(tmp_path, CLASSES)
    full, stiff = load_robot(path), load_robot(path, locked={"elbow": 0.3})
    assert stiff.joint_names == ("shoulder", "slide")
    q, dq, ddq = states(stiff, 5)

    def wide(values, value=0.0):
        return np.insert(values, 1, value, axis=1)

    ours = evaluate_inverse_dynamics(build_tree(stiff), stiff.nominal, q, dq, ddq)
    theirs = evaluate_inverse_dynamics(
        build_tree(full), full.nominal, wide(q, 0.3), wide(dq), wide(ddq)
    )[:, [0, 2]]
    assert relative(ours, theirs) < 1e-12


ARM = f"""<mujoco>
  <worldbody>
    <body name="a">
      {INERTIAL}<joint name="a1"/><site name="end"/>
      <body name="b" pos="0 0 1">{INERTIAL}<joint name="b1" axis="0 1 0"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def beside(section: str) -> str:
    return ARM.replace("</mujoco>", f"{section}\n</mujoco>")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            ARM.replace('name="a1"', 'name="a1" stiffness="3"'),
            r"joint a1 has a spring .*\[\[element",
        ),
        (ARM.replace('name="a1"', 'name="a1" springdamper="1 1"'), "joint a1 has a spring"),
        (ARM.replace('name="b"', 'name="b" gravcomp="1"'), "body b has gravcomp"),
        (beside('<option density="1.2"/>'), "line 8: forces of a fluid"),
        (
            beside(
                '<equality><joint name="g" joint1="a1" joint2="b1"/></equality>'
                '<actuator><motor joint="a1"/></actuator>'
            ),
            "joint 'g' .*line 8.: joint a1 follows b1; .* lock it: locked = { a1 = 0.0 }",
        ),
        (
            beside(
                '<tendon><fixed name="t" stiffness="1"><joint joint="a1" coef="1"/></fixed>'
                "</tendon>"
            ),
            "fixed 't' .*has stiffness over",
        ),
        (
            beside(
                '<default><tendon damping="1"/><equality active="false"/></default>'
                '<tendon><fixed name="t"><joint joint="a1" coef="1"/></fixed></tendon>'
                '<equality><weld body1="b"/></equality>'
            ),
            "fixed 't' .*has damping over",
        ),
        (
            beside(
                '<tendon><fixed name="t"><joint joint="a1" coef="1"/></fixed></tendon>'
                '<actuator><motor name="m" tendon="t"/></actuator>'
            ),
            "motor 'm' .*acts on a tendon",
        ),
    ],
)
def test_what_has_no_place_is_named(text: str, words: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    engine(path)
    robot = load_robot(path)
    assert len(robot.warnings) == 1
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(robot.warnings[0])


def test_couplings_of_locked_joints_are_none(tmp_path: Path) -> None:
    text = (
        '<equality><joint joint1="a1" joint2="b1"/><connect body1="b" anchor="0 0 0"/></equality>'
    )
    path = write(tmp_path, beside(text))
    with pytest.raises(InputError, match="closes a loop"):
        load_robot(path)
    inner = '<equality><joint joint1="b1" joint2="a1"/><weld body1="b" body2="a"/></equality>'
    path = write(tmp_path, beside(inner))
    robot = load_robot(path, locked={"b1": 0.0})
    assert robot.warnings == ()
    assert robot.joint_names == ("a1",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot name='r'/>", r"line 1: is a URDF; give it a name that ends in .urdf"),
        ("<sdf/>", r"line 1: expected <mujoco>, found <sdf>"),
        ("<mujoco>", r"line 1: "),
        ("<mujoco/>", "the robot has no moving joint"),
        (
            ARM.replace('name="b1"', 'name="b1" type="ball"'),
            "line 5: joint 'b1' has type 'ball'; only",
        ),
        (
            ARM.replace('<joint name="b1" axis="0 1 0"/>', "<freejoint/>"),
            "body 'b' has a free joint and is",
        ),
        (
            ARM.replace('<joint name="a1"/>', '<freejoint/><joint name="a1"/>'),
            "and has other joints too",
        ),
        (
            ARM.replace(
                "</worldbody>", f'<body name="cube"><freejoint/>{INERTIAL}</body></worldbody>'
            ),
            r"several bodies of the world move, .*: a \(line 3\), cube \(line 7\); leave only",
        ),
        (
            ARM.replace('axis="0 1 0"', 'axis="0 0 0"'),
            'line 5: <joint axis="0 0 0"> has no direction',
        ),
        (
            ARM.replace('axis="0 1 0"', 'axis="0 1"'),
            'line 5: <joint axis="0 1"> should hold 3 finite',
        ),
        (ARM.replace('axis="0 1 0"', 'damping="1 2 3"'), "line 5: .* is a polynomial"),
        (
            ARM.replace('axis="0 1 0"', 'armatur="1"'),
            "has no attribute 'armatur'; did you mean 'armature'",
        ),
        (ARM.replace('axis="0 1 0"', 'class="x"'), "line 5: there is no default class 'x'"),
        (ARM.replace('axis="0 1 0"', 'range="1 -1"'), "line 5: joint 'b1' has an empty range"),
        (ARM.replace('name="b1"', 'name="a1"'), "line 5: there is a joint 'a1' already"),
        (ARM.replace('name="b"', 'name="a"'), "line 5: there is a body 'a' already"),
        (
            ARM.replace("<site", "<sites"),
            "line 4: <sites> is nothing that a body has; did you mean 'site'",
        ),
        (ARM.replace("<site", "<composite"), "line 4: <composite> makes bodies"),
        (
            ARM.replace('<site name="end"/>', '<replicate count="2"><body/></replicate>'),
            "line 4: <replicate> makes",
        ),
        (ARM.replace('mass="1.5"', ""), "line 4: <inertial> has no mass"),
        (ARM.replace('mass="1.5"', 'mass="-1"'), 'line 4: <inertial mass="-1"> is not a mass'),
        (
            ARM.replace('mass="1.5"', 'mass="1" fullinertia="1 1 1 0 0 0"'),
            "line 4: .* both fullinertia and diag",
        ),
        (
            ARM.replace('pos="0 0 1"', 'quat="1 0 0 0" euler="1 0 0"'),
            "line 5: body 'b' has several orientations",
        ),
        (
            ARM.replace('pos="0 0 1"', 'quat="0 0 0 0"'),
            'line 5: <body quat="0 0 0 0"> has no direction',
        ),
        (
            ARM.replace(INERTIAL, '<geom type="mesh" mesh="m"/>'),
            "line 4: body 'a' .* the mesh 'm'; give",
        ),
        (
            ARM.replace(INERTIAL, '<geom size="1" shellinertia="true"/>'),
            "line 4: body 'a' .* a shell; give",
        ),
        (ARM.replace(INERTIAL, "<geom/>"), "line 4: <geom> has no positive size"),
        (
            ARM.replace(INERTIAL, '<geom type="box" size="1 1"/>'),
            'size="1 1"> should hold 3 finite',
        ),
        (beside('<compiler angle="grad"/>'), "should be degree or radian"),
        (beside('<compiler coordinate="global"/>'), "should be local"),
        (beside('<compiler eulerseq="xy"/>'), "should be three of x, y, z"),
        (beside('<default class="x"/>'), "line 8: the outermost <default> is class 'main'"),
        (
            beside("<default><default/></default>"),
            "line 8: a <default> inside another needs a class",
        ),
        (beside('<include file="none.xml"/>'), "line 8: there is no file .*none.xml"),
        (beside("<include/>"), "line 8: <include> names no file"),
        (beside('<include file="robot.xml"/>'), "line 8: .*robot.xml is included already"),
        (beside('<include file="/dev/zero"/>'), "line 8: there is no file /dev/zero"),
        (
            beside('<equality><weld body1="b"/></equality>'),
            "weld closes a loop of bodies and leaves none of its joints a drive",
        ),
        (
            '<!DOCTYPE mujoco [<!ENTITY x SYSTEM "/etc/passwd">]>\n<mujoco>&x;</mujoco>',
            "line 2: .*; write what it stands for",
        ),
    ],
)
def test_refusals(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        load_robot(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_robot_file_adds_drives_to_an_mjcf(tmp_path: Path) -> None:
    write(tmp_path, CLASSES, "arm.xml")
    text = 'mjcf = "arm.xml"\nlocked = { shoulder = 0.2 }\n[[drive]]\njoint = "slide"\ngain = 3.0\n'
    robot = load_robot(write(tmp_path, text, "arm.toml"))
    assert robot.joint_names == ("elbow", "slide")
    np.testing.assert_array_equal(robot.drives.gain, [1.0, 3.0])
    np.testing.assert_array_equal(robot.drives.reduction, np.diag([2.0, 1.0]))
    path = write(tmp_path, 'mjcf = "none.xml"', "none.toml")
    with pytest.raises(InputError, match="key 'mjcf': there is no file"):
        load_robot(path)
    path = write(tmp_path, 'mjcf = "arm.xml"\nurdf = "arm.urdf"', "both.toml")
    with pytest.raises(InputError, match="give either urdf"):
        load_robot(path)


SERVO = ARM.replace(
    "</mujoco>",
    '<default><position kp="9" kv="2"/></default><actuator><position joint="a1"/>'
    '<position joint="b1" kp="30" gear="2"/></actuator></mujoco>',
)


def test_a_controller_takes_the_gains_of_servos(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, SERVO))
    found, words = build_controller(section(), robot, ())
    own, _ = build_controller(
        section(gains="given", kp=(9.0, 120.0), kd=(2.0, 8.0), velocity_reference=False), robot, ()
    )
    assert words is None
    np.testing.assert_array_equal(found.D, own.D)
    for given, message in (
        (section(kp=1.0), "has 'kp' already; leave it out"),
        (section(kind="pid"), "are those of a 'pd', not of pid"),
    ):
        with pytest.raises(InputError, match=message):
            build_controller(given, robot, ())
    bare = load_robot(write(tmp_path, ARM))
    with pytest.raises(InputError, match="has no position servo of a1, b1; give kp and kd"):
        build_controller(section(), bare, ())


def section(**given: object) -> ControllerSection:
    return ControllerSection.model_validate({"kind": "pd", "gains": "file", **given})


def test_the_files_own_values_are_simulated(tmp_path: Path) -> None:
    path = write(tmp_path, CLASSES)
    study = Study.model_validate({"robot": {"file": str(path)}})
    robot = load_robot(path)
    idim = build_idim(robot)
    values = dict(zip(idim.names, choose_simulated_model(study, robot)[1], strict=True))
    assert [values[f"Ia{k}"] for k in (1, 2, 3)] == [0.2, 0.1, 0.2]
    assert [values[f"fv{k}"] for k in (1, 2, 3)] == [0.5, 0.5, 0.7]
    assert [values[f"fc{k}"] for k in (1, 2, 3)] == [0.3, 0.0, 0.3]


JUNK = ("", "nan", "1e999", "x", "-1", "0 0 0", "1 2", "true", "ball", "1e-300", "9" * 400, "../x")


@pytest.mark.parametrize("seed", range(4))
def test_torn_files_are_refused_or_read(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path / "robot.xml"
    read, said = 0, []
    for _ in range(60):
        text = str(rng.choice([ANGLES, CLASSES, FRAMES, BOUNDS, GEOMS, ARM]))
        for _ in range(rng.integers(1, 4)):
            values, tags = (
                [m.span(k) for m in re.finditer(pattern, text)]
                for pattern, k in ((r'="([^"]*)"', 1), (r"<[a-z]+[^<>]*/>", 0))
            )
            (a, b), (c, d) = rng.choice(values), rng.choice(tags)
            torn = (
                text[:a] + str(rng.choice(JUNK)) + text[b:],
                text[:c] + text[d:],
                text[:c] + text[c:d] + text[c:],
            )
            text = torn[rng.choice(3, p=[0.6, 0.2, 0.2])]
        path.write_text(text)
        try:
            robot = load_robot(path)
        except InputError as error:
            said.append(str(error))
        else:
            read += 1
            assert np.all(np.isfinite(robot.nominal))
    assert read
    assert said
    assert all(line.startswith(str(path)) and "\n" not in line for line in said)


def test_only_a_body_inside_can_be_let_go(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="body 'a' has a joint to the world, so there is no base"):
        load_robot(write(tmp_path, ARM), floating=True)
