"""MJCFs that come back with the parameters that were put in, and with nothing else changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import toy
from commands import tell
from linkages import load_linkage
from mujoco_model import agree, engine, without_meshes
from robots import EXAMPLES, bodies, relative, states, urdf
from tables import write_joints
from test_init import GRIPPER
from test_mjcf import ANGLES, ARM, BOUNDS, CLASSES, FRAMES, GEOMS, INERTIAL, write

from dynident.cli import run
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import from_com
from dynident.dynamics import build_tree, evaluate_inverse_dynamics
from dynident.dynamics.idim import build_idim
from dynident.dynamics.whole import WholeModel
from dynident.export.formats import find_format
from dynident.export.mjcf import render_identified_mjcf, render_mjcf
from dynident.export.mujoco import mujoco_model
from dynident.export.pinocchio import build_pinocchio_model
from dynident.robot import Robot, load_robot
from dynident.robot.loops import add_loops
from dynident.robot.mjcf import is_mjcf
from dynident.robot.spec import LoopSpec


def check_round_trip(robot: Robot, phi: Array, document: bytes, folder: Path) -> Robot:
    """The document is the robot with these parameters, here and in MuJoCo."""
    path = folder / "out.xml"
    path.write_bytes(document)
    again = load_robot(path, floating=robot.floating, locked=robot.locked)
    assert again.joint_names == robot.joint_names
    assert again.links == robot.links
    motion = states(robot, 5)
    ours = evaluate_inverse_dynamics(build_tree(robot), phi, *motion)
    theirs = evaluate_inverse_dynamics(build_tree(again), again.nominal, *motion)
    assert relative(theirs, ours) < 1e-9
    if not robot.locked:
        assert agree(path, robot, phi) < 1e-9
    return again


@pytest.mark.parametrize("text", [ANGLES, CLASSES, BOUNDS, GEOMS])
@pytest.mark.parametrize("kind", ["random", "nominal", "heavier"])
def test_round_trip(text: str, kind: str, tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, text))
    phi = {
        "random": bodies(robot.n),
        "nominal": robot.nominal,
        "heavier": robot.nominal + 0.1 * bodies(robot.n),
    }[kind]
    n = robot.n
    document, _ = render_mjcf(
        robot, phi, armature=np.arange(n) + 0.5, damping=np.arange(n) + 1.5, friction=[0.25] * n
    )
    again = check_round_trip(robot, phi, document, tmp_path)
    assert [joint.armature for joint in again.joints] == list(np.arange(n) + 0.5)
    assert [joint.damping for joint in again.joints] == list(np.arange(n) + 1.5)
    assert [joint.friction for joint in again.joints] == [0.25] * n
    model = engine(tmp_path / "out.xml")
    np.testing.assert_array_equal(model.dof_armature, np.arange(n) + 0.5)
    np.testing.assert_array_equal(model.dof_frictionloss, 0.25)


@pytest.mark.parametrize("name", ["z1", "go2"])
@pytest.mark.parametrize("held", [True, False])
def test_the_unitree_robots_come_back(
    name: str, held: bool, tmp_path: Path, measured: Callable[[str], Path]
) -> None:
    path = without_meshes(measured(f"unitree/{name}.xml"), tmp_path, held)
    robot = load_robot(path, floating=not held and name == "go2")
    phi = robot.nominal + 0.02 * bodies(len(robot.links))
    document, notes = render_mjcf(robot, phi)
    check_round_trip(robot, phi, document, tmp_path)
    assert notes == ()


def numbers_aside(text: str, element: str) -> str:
    return re.sub(rf"<{element}\b[^>]*>", f"<{element}/>", text)


@pytest.mark.parametrize("name", ["z1", "go2"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_nothing_else_changes(
    name: str, ends: str, tmp_path: Path, measured: Callable[[str], Path]
) -> None:
    original = measured(f"unitree/{name}.xml").read_text().replace("\n", ends)
    path = tmp_path / f"{name}.xml"
    path.write_bytes(original.encode())
    robot = load_robot(path)
    document, _ = render_mjcf(robot, robot.nominal)
    text = document.decode()
    assert text != original
    assert numbers_aside(text, "inertial") == numbers_aside(original, "inertial")
    friction = 0.5 + np.arange(robot.n)
    document, _ = render_mjcf(robot, robot.nominal, armature=friction, damping=friction)
    text = document.decode()
    for tag in ("inertial", "joint"):
        text, original = numbers_aside(text, tag), numbers_aside(original, tag)
    assert text == original


def test_values_of_a_class_are_stated_at_the_joint(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, CLASSES))
    document, _ = render_mjcf(robot, robot.nominal, armature=[0.0, np.nan, 3.0])
    text = document.decode()
    assert '<joint name="shoulder" armature="0.0"/>' in text
    assert '<joint name="elbow" class="main"/>' in text
    assert '<joint name="slide" armature="3.0"/>' in text
    assert '<joint axis="1 0 0" armature="0.1" damping="0.5"/>' in text


def test_a_document_is_stable(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, CLASSES))
    phi = bodies(robot.n)
    first, _ = render_mjcf(robot, phi, damping=np.ones(3))
    path = tmp_path / "again.xml"
    path.write_bytes(first)
    again = load_robot(path)
    second, _ = render_mjcf(again, again.nominal, damping=np.ones(3))
    assert numbers_aside(first.decode(), "inertial") == numbers_aside(second.decode(), "inertial")


WELDED = f"""<mujoco>
	<worldbody>
		<body name="base">
			<body name="arm">
				<joint name="j" axis="0 0 1"/>
				<!-- a tool -->
				<body name="tool" pos="0.1 0 0.2" quat="1 0.1 0.2 0">{INERTIAL}
					<body name="tip" pos="0 0 0.1">
						<joint name="finger" type="slide" axis="0 1 0"/>
						<inertial pos="0 0 0" mass="0.2" diaginertia="0.001 0.001 0.001"/>
					</body>
				</body>
			</body>
		</body>
	</worldbody>
</mujoco>
"""


def test_welded_bodies_keep_their_inertia_where_the_rest_is_a_body(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, WELDED), locked={"finger": 0.02})
    extra = from_com(3.0, [0.05, 0.0, 0.1], np.diag([0.02, 0.03, 0.025]))
    phi = robot.nominal + extra
    document, notes = render_mjcf(robot, phi)
    assert notes == ()
    again = check_round_trip(robot, phi, document, tmp_path)
    assert relative(again.nominal, phi) < 1e-13
    text = document.decode()
    assert text.count("<inertial") == 3
    assert text.count(INERTIAL) == 1
    assert '\n\t\t\t\t<inertial pos="' in text
    assert re.sub(r'\s*<inertial pos="[^>]*fullinertia[^>]*>', "", text) == WELDED


def test_welded_bodies_become_massless_where_it_is_none(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, WELDED), locked={"finger": 0.02})
    phi = bodies(1)
    phi[0] *= 0.9 / phi[0, 0]
    document, notes = render_mjcf(robot, phi)
    assert notes == (
        "body arm carries the inertia of what is fixed to it: tool, tip became massless",
    )
    again = check_round_trip(robot, phi, document, tmp_path)
    assert relative(again.nominal, phi) < 1e-13


def test_joints_of_one_body_get_bodies_where_they_move_a_mass(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        ANGLES.replace(
            '<joint name="c1" limited="false" range="-1 1"/>',
            '<joint name="c1" axis="0 1 1" pos="0 0.1 0" ref="10"/>\n'
            '          <joint name="c2" type="slide" axis="1 0 0"\n            ref="0.1"/>\n'
            '          <joint name="c3" pos="0.2 0 0"/>',
        ).replace('<body name="c"', '<body childclass="main" name="c"'),
    )
    robot = load_robot(path)
    assert robot.links == ("a", "b", "c/c1", "c/c2", "c", "d")
    document, notes = render_mjcf(robot, robot.nominal + 0.1 * bodies(6), damping=np.arange(6.0))
    assert notes == ("body c has several joints: those before the last move bodies of their own",)
    again = check_round_trip(robot, robot.nominal + 0.1 * bodies(6), document, tmp_path)
    assert [joint.damping for joint in again.joints] == list(np.arange(6.0))
    phi = robot.nominal.copy()
    phi[3] = bodies(1)[0]
    document, _ = render_mjcf(robot, phi)
    again = check_round_trip_of_dynamics(robot, phi, document, tmp_path)
    assert again.links == ("a", "b", "c/c2/c1", "c/c2", "c", "d")
    document, notes = render_mjcf(robot, robot.nominal)
    assert notes == ()
    stiff = load_robot(path, locked={"c2": 0.1, "c3": 0.2})
    phi = bodies(4)
    document, _ = render_mjcf(stiff, phi)
    again = load_robot(write(tmp_path, document.decode(), "s.xml"), locked=stiff.locked)
    assert relative(again.nominal, phi) < 1e-12


def check_round_trip_of_dynamics(robot: Robot, phi: Array, document: bytes, folder: Path) -> Robot:
    again = load_robot(write(folder, document.decode(), "other.xml"))
    motion = states(robot, 5)
    ours = evaluate_inverse_dynamics(build_tree(robot), phi, *motion)
    assert (
        relative(evaluate_inverse_dynamics(build_tree(again), again.nominal, *motion), ours) < 1e-9
    )
    return again


def test_joints_in_frames_cannot_be_parted(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, FRAMES))
    check_round_trip(robot, robot.nominal, render_mjcf(robot, robot.nominal)[0], tmp_path)
    with pytest.raises(InputError, match=r"line 8: joint 'a1' moves a mass .* stands in a frame"):
        render_mjcf(robot, bodies(robot.n))


def test_a_compiler_that_adjusts_inertials_is_told_not_to(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, BOUNDS))
    document, notes = render_mjcf(robot, robot.nominal)
    assert "<compiler/>" in document.decode()
    assert notes == (
        "every moving body states its inertia, without the compiler's settotalmass, boundmass, "
        "boundinertia, balanceinertia",
    )
    robot = load_robot(write(tmp_path, GEOMS))
    document, notes = render_mjcf(robot, robot.nominal)
    assert '<compiler inertiafromgeom="auto" inertiagrouprange="0 2"/>' in document.decode()
    assert notes == (
        "every moving body states its inertia, without the compiler's inertiafromgeom",
    )


def test_included_files_that_change_stand_in_the_document(tmp_path: Path) -> None:
    arm = CLASSES[CLASSES.index('<body name="upper"') : CLASSES.index("    </body>\n  </worldb")]
    start, end = CLASSES.index("<default>"), CLASSES.index("</default>\n  <worldbody>") + 10
    slide = arm.replace('<joint name="slide"/>', '<include file="slide.xml"/>')
    write(tmp_path, f"<a>\n  <!-- the arm -->\n{slide}</a>", "parts/arm.xml")
    write(tmp_path, '<b><!-- a slide --><joint name="slide"/></b>', "parts/slide.xml")
    write(tmp_path, f"<mujoco>{CLASSES[start:end]}</mujoco>", "parts/classes.xml")
    text = CLASSES[:start] + '<include file="parts/classes.xml"/>' + CLASSES[end:]
    robot = load_robot(write(tmp_path, text.replace(arm, '<include file="parts/arm.xml"/>')))
    phi = bodies(3)
    document, notes = render_mjcf(robot, phi, armature=[1.0, 2.0, 3.0])
    assert notes[-1] == "stands in the document now, as it changed: arm.xml, slide.xml"
    written = document.decode()
    assert '<include file="parts/classes.xml"/>' in written
    assert "<!-- the arm -->" in written
    assert '<!-- a slide --><joint name="slide" armature="3.0"/>' in written
    check_round_trip(robot, phi, document, tmp_path)
    elsewhere = tmp_path / "far" / "away"
    elsewhere.mkdir(parents=True)
    document, _ = render_mjcf(robot, phi, folder=elsewhere)
    assert '<include file="../../parts/classes.xml"/>' in document.decode()
    check_round_trip(robot, phi, document, elsewhere)


CUBE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.mark.parametrize(
    "compiler", ["", '<compiler meshdir="m"/>', '<compiler assetdir="m" angle="radian"/>']
)
def test_meshes_are_found_from_elsewhere(compiler: str, tmp_path: Path) -> None:
    where = "" if not compiler else "m/"
    write(tmp_path, CUBE, f"{where}cube.obj")
    drawn = ARM.replace('<site name="end"/>', '<geom type="mesh" mesh="cube"/>')
    text = drawn.replace("<mujoco>", f"<mujoco>\n  {compiler}").replace(
        "</mujoco>", '  <asset><mesh file="cube.obj"/></asset>\n</mujoco>'
    )
    robot = load_robot(write(tmp_path, text))
    elsewhere = tmp_path / "a" / "b"
    elsewhere.mkdir(parents=True)
    document, _ = render_mjcf(robot, robot.nominal, folder=elsewhere)
    check_round_trip(robot, robot.nominal, document, elsewhere)
    document, _ = render_mjcf(robot, robot.nominal, folder=tmp_path)
    assert document.decode().count("compiler") == text.count("compiler")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings_are_kept(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    declared = encoding.removesuffix("-sig")
    text = f'<?xml version="1.0" encoding="{declared}"?>\n<!-- für -->\n{ARM}<!-- Ende -->\n'
    path.write_bytes(text.encode(encoding))
    robot = load_robot(path)
    document, _ = render_mjcf(robot, robot.nominal)
    assert numbers_aside(document.decode(encoding), "inertial") == numbers_aside(text, "inertial")
    assert document.startswith(text.encode(encoding)[:20])


def test_elements_of_entities_cannot_be_changed_in_place(tmp_path: Path) -> None:
    text = f"<!DOCTYPE mujoco [<!ENTITY inertial '{INERTIAL}'>]>\n" + ARM.replace(
        INERTIAL, "&inertial;"
    )
    robot = load_robot(write(tmp_path, text))
    with pytest.raises(InputError, match=r"cannot be changed in place .*stands in an entity"):
        render_mjcf(robot, robot.nominal)


@pytest.mark.parametrize(
    ("name", "floating"),
    [("ur5", False), ("panda", False), ("tx40", False), ("solo12", True), ("anymal", True)],
)
def test_a_urdf_gets_a_fresh_mjcf(name: str, floating: bool, tmp_path: Path) -> None:
    robot = load_robot(urdf(name), floating=floating)
    phi = bodies(len(robot.links))
    n = robot.n
    document, notes = render_mjcf(robot, phi, armature=np.ones(n), omitted=["off1"])
    assert not is_mjcf(robot)
    assert notes == (
        f"shapes and meshes of {urdf(name).name} are not in the MJCF",
        "not in the MJCF, which has no place for it: off1",
    )
    path = tmp_path / "fresh.xml"
    path.write_bytes(document)
    again = load_robot(path, floating=floating)
    assert again.name == robot.name
    assert set(again.joint_names) == set(robot.joint_names)
    order = [robot.joint_names.index(joint) for joint in again.joint_names]
    q, dq, ddq = states(robot, 5)
    first, base = 7 * floating, 6 * floating
    positions = [*range(first), *(first + i for i in order)]
    rates = [*range(base), *(base + i for i in order)]
    ours = evaluate_inverse_dynamics(build_tree(robot), phi, q, dq, ddq)[:, rates]
    motion = (q[:, positions], dq[:, rates], ddq[:, rates])
    theirs = evaluate_inverse_dynamics(build_tree(again), again.nominal, *motion)
    assert relative(theirs, ours) < 1e-9
    for index, joint in zip(order, again.joints, strict=True):
        mine = robot.joints[index]
        for field in ("kind", "link", "effort"):
            assert getattr(joint, field) == getattr(mine, field)
        np.testing.assert_allclose([joint.lower, joint.upper], [mine.lower, mine.upper])
        assert joint.armature == 1.0
    if again.joint_names == robot.joint_names:
        assert agree(path, robot, phi) < 1e-9


def test_a_table_gets_a_fresh_mjcf(tmp_path: Path) -> None:
    robot = load_robot(EXAMPLES / "tx40" / "tx40_dh.toml")
    document, notes = render_mjcf(robot, bodies(6))
    assert notes == ()
    path = tmp_path / "fresh.xml"
    path.write_bytes(document)
    assert agree(path, robot, bodies(6)) < 1e-9
    with pytest.raises(ComputationError, match="link link_1: has no mass"):
        render_mjcf(robot, robot.nominal * 0.0)


def test_standard_parameters(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, ANGLES))
    idim = build_idim(robot, "coulomb-viscous")
    theta = idim.join(bodies(robot.n), np.arange(1.0, len(idim.drives) + 1))
    document, notes = render_identified_mjcf(idim, theta)
    assert notes == ("not in the MJCF, which has no place for it: off1 ... off4",)
    again = check_round_trip(robot, bodies(robot.n), document, tmp_path)
    for k, joint in enumerate(again.joints):
        own = {p.symbol: v for p, v in zip(idim.drives, idim.split(theta)[1]) if p.number == k + 1}
        assert (joint.armature, joint.damping, joint.friction) == (own["Ia"], own["fv"], own["fc"])


@pytest.mark.parametrize("kind", ["patched", "fresh"])
def test_a_coupled_drive_is_a_tendon(kind: str, tmp_path: Path) -> None:
    robot = toy.arm(3, coupled=True)
    if kind == "patched":
        path = write(tmp_path, render_mjcf(robot, robot.nominal)[0].decode())
        robot = replace(load_robot(path), drives=robot.drives)
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    document, notes = render_identified_mjcf(idim, theta)
    assert notes == ("not in the MJCF, which has no place for it: off1 ... off3",)
    model = engine(write(tmp_path, document.decode(), "out.xml"))
    data = mujoco.MjData(model)
    # no friction: the sign of the speed is for constraints to find
    bare = [k for k, p in enumerate(idim.parameters) if p.symbol in ("fc", "fcm", "off")]
    smooth = np.array(theta)
    smooth[bare] = 0.0
    q, dq, ddq = states(robot, 4)
    expected = idim.torque(smooth, q, dq, ddq)
    for k in range(4):
        data.qpos[:], data.qvel[:] = q[k], dq[k]
        mujoco.mj_forward(model, data)
        M = np.zeros((3, 3))
        mujoco.mj_fullM(model, data, M)
        tau = M @ ddq[k] + data.qfrc_bias - data.qfrc_passive
        np.testing.assert_allclose(tau, expected[k], rtol=1e-9, atol=1e-9)
    assert model.tendon_frictionloss[0] == 1.2
    assert list(model.dof_frictionloss) == [3.0, 3.0, 3.0]
    again = load_robot(tmp_path / "out.xml")
    assert len(again.warnings) == 1
    second, _ = render_identified_mjcf(build_idim(replace(again, drives=robot.drives)), theta)
    assert second.count(b"<tendon>") == 1
    engine(write(tmp_path, second.decode(), "second.xml"))


def test_the_command_line_writes_the_kind_of_model_that_it_read(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    robot = toy.arm(2)
    document = render_mjcf(robot, robot.nominal, armature=np.ones(2))[0]
    Path("part.xml").write_text("<a><option timestep='0.001'/></a>")
    more = b"<!-- mine -->\n  <include file='part.xml'/>\n  <worldbody>"
    Path("arm.xml").write_bytes(document.replace(b"<worldbody>", more))
    idim = build_idim(robot)
    q, dq, ddq = toy.motion(2, 4.0, 0, 500.0)
    tau = idim.torque(toy.true_parameters(idim, robot.nominal), q, dq, ddq)
    tau += np.random.default_rng(1).normal(size=tau.shape) * 0.3
    write_joints("log.csv", robot.joint_names, 500.0, q=q, tau=tau)
    argv = ["identify", "--robot", "arm.xml", "--log", "log.csv", "--bandwidth", "5", "-o", "out"]
    assert run([*argv, "--no-report"]) == 0
    assert sorted(os.listdir("out")) == ["model.xml", "result.json"]
    assert "not in the MJCF, which has no place for it: off1, off2" in capfd.readouterr().err
    assert run(["export", "out/result.json", "--mjcf", "far/m.xml", "--urdf", "far/m.urdf"]) == 0
    err = capfd.readouterr().err
    assert "written to far/m.xml" in err
    assert "written to far/m.urdf" in err
    number = rb"-?[\d.]+(e[+-]?\d+)?"
    near, far = (Path(name).read_bytes() for name in ("out/model.xml", "far/m.xml"))
    assert re.sub(number, b"0", far) == re.sub(number, b"0", near)
    assert b"<include file='../part.xml'/>" in Path("far/m.xml").read_bytes()
    assert b"<!-- mine -->" in Path("far/m.xml").read_bytes()
    one, other = load_robot("far/m.xml"), load_robot("far/m.urdf")
    assert relative(one.nominal, load_robot("out/model.xml").nominal) < 1e-12
    assert relative(one.nominal, other.nominal) < 1e-9
    assert [j.damping for j in one.joints] == [j.damping for j in other.joints]
    assert one.joints[0].armature == pytest.approx(0.3, abs=0.1)
    assert run(["identify", *argv[1:], "--no-report", "--method", "wls"]) == 0
    assert os.listdir("out") == ["result.json"]
    assert "there is no model.xml" in capfd.readouterr().err
    assert run(["export", "out/result.json", "--repair", "--mjcf", "repaired.xml"]) == 0
    assert engine(Path("repaired.xml").resolve()).nv == 2
    capfd.readouterr()
    for argv, words in (
        (["export", "out/result.json"], "nothing to write; give --urdf FILE or --mjcf FILE"),
        (
            ["export", "out/result.json", "--urdf", "x", "--mjcf", "x"],
            "x: is given for two outputs",
        ),
        (["export", "out/result.json", "--mjcf", "arm.xml"], "arm.xml: is an input"),
        (["export", "out/result.json", "--mjcf", "part.xml"], "part.xml: is an input"),
        (["export", "out/result.json", "--mjcf", "o.xml"], "which no MJCF can hold"),
    ):
        assert words in tell(capfd, argv, code=2).err


@pytest.mark.parametrize("text", [ARM, GEOMS])
def test_another_gravity_is_written(text: str, tmp_path: Path) -> None:
    write(tmp_path, text, "arm.xml")
    turned = write(tmp_path, 'mjcf = "arm.xml"\nbase = { rpy = [90.0, 0.0, 0.0] }', "arm.toml")
    robot = load_robot(turned, gravity=[0.0, -9.81, 0.0])
    assert robot.source == tmp_path / "arm.xml"
    document, notes = render_mjcf(robot, robot.nominal)
    assert notes[0] == "gravity is the robot's in the MJCF, not its file's: 0.0 -9.81 0.0"
    check_round_trip(robot, robot.nominal, document, tmp_path)


def test_refusals(tmp_path: Path) -> None:
    robot = load_robot(write(tmp_path, ARM))
    with pytest.raises(InputError, match=r"shape \(1, 10\), expected finite .* \(2, 10\)"):
        render_mjcf(robot, bodies(1))
    with pytest.raises(ComputationError, match=r"link a: its mass is .* which no MJCF can hold"):
        render_mjcf(robot, -bodies(2))
    write(tmp_path, ARM.replace('"b1"', '"c1"'))
    with pytest.raises(InputError, match="its joints are no longer those of the robot"):
        render_mjcf(robot, bodies(2))


@pytest.mark.parametrize(("main", "part"), [("", ""), ("meshes", ""), ("", "meshes")])
def test_meshes_that_an_included_file_names_are_found_from_elsewhere(tmp_path, main, part):
    """MuJoCo looks for them from the main file's folder, be the setting here or there."""
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    where = tmp_path / (main or part)
    where.mkdir(exist_ok=True)
    lines = ["v {} {} {}".format(*c) for c in corners]
    lines += ["f {} {} {}".format(*(k + 1 for k in f)) for f in faces]
    (where / "m.obj").write_text("\n".join(lines))
    setting = '<compiler meshdir="{}"/>'
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part.xml").write_text(
        f"<mujoco>{setting.format(part) if part else ''}"
        '<asset><mesh name="m" file="m.obj"/></asset></mujoco>'
    )
    (tmp_path / "robot.xml").write_text(
        f"<mujoco>{setting.format(main) if main else ''}<include file='parts/part.xml'/>"
        '<worldbody><body name="b"><joint name="j"/><geom type="mesh" mesh="m"/>'
        '<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/></body></worldbody>'
        "</mujoco>"
    )
    idim = build_idim(load_robot(tmp_path / "robot.xml"))
    far = tmp_path / "far" / "away"
    far.mkdir(parents=True)
    document, _ = render_identified_mjcf(idim, idim.nominal, far)
    (far / "robot.xml").write_bytes(document)
    assert mujoco.MjModel.from_xml_path(str(far / "robot.xml")).nmesh == 1


def test_a_joint_that_follows_another_does_so_in_mujoco(tmp_path: Path) -> None:
    """A gripper from a URDF: an equality, no motor of its own, and the loop when read again."""
    path = tmp_path / "gripper.urdf"
    path.write_text(GRIPPER)
    law = LoopSpec(kind="joint", joints=("two", "one"), polynomial=(0.01, -2.0), name="fingers")
    robot = add_loops(load_robot(path), [law], path)
    idim = build_idim(robot, "viscous")
    theta = idim.nominal
    document, notes = find_format("mjcf", robot).render(idim, theta, tmp_path)
    assert not any("loop" in note for note in notes)
    out = tmp_path / "out.xml"
    out.write_bytes(document)
    (loop,) = load_robot(out).loops
    assert (loop.passive, loop.bodies) == (("two",), (2, 1))
    np.testing.assert_array_equal(loop.polynomial[:2], (0.01, -2.0))
    model = mujoco.MjModel.from_xml_path(str(out))
    assert model.nu == 1
    # a force on the finger that leads moves both masses: 0.4 + 2^2 0.6
    data = mujoco.MjData(model)
    data.qpos[:] = 0.0, 0.01
    data.ctrl[:] = 1.0
    model.opt.gravity[:] = 0.0
    for _ in range(400):
        mujoco.mj_step(model, data)
    moved = 0.5 * data.time**2 / (0.4 + 2.0**2 * 0.6)
    assert abs(data.qpos[0] / moved - 1.0) < 0.02
    assert abs(data.qpos[1] - (0.01 - 2.0 * data.qpos[0])) < 0.02 * moved
    # the URDF has it as its own mimic
    _, notes = find_format("urdf", robot).render(idim, theta, tmp_path)
    assert not any("loop" in note for note in notes)


def test_loops_that_no_fresh_mjcf_has_are_refused(tmp_path: Path) -> None:
    robot = load_linkage("spatial.urdf", tmp_path)
    model = WholeModel(build_idim(robot), build_idim(robot).nominal)
    for call in (lambda: mujoco_model(model), lambda: find_format("mjcf", robot)):
        with pytest.raises(InputError, match="MJCF needs a tree"):
            call()
    assert any("the loop" in note for note in build_pinocchio_model(model).notes)


def test_a_motor_over_branches_is_said_to_lose_what_couples_them() -> None:
    """MuJoCo's mass matrix is as sparse as the tree: the motor's inertia is not all in it."""
    robot = toy.arm(3, coupled=True)
    branched = replace(robot, joints=(*robot.joints[:2], replace(robot.joints[2], parent=1)))
    for each, said in ((robot, False), (branched, True)):
        idim = build_idim(each)
        theta = toy.true_parameters(idim, each.nominal)
        _, notes = render_identified_mjcf(idim, theta)
        assert any(n.startswith("Iam3: MuJoCo's mass matrix") for n in notes) == said
        model = mujoco_model(WholeModel(idim, theta))
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        M = np.zeros((3, 3))
        mujoco.mj_fullM(model, data, M)
        assert np.allclose(M, WholeModel(idim, theta).mass_matrix(np.zeros(3))) != said
