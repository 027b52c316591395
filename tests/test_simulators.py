"""Files for Drake, Newton, mjlab, Isaac Lab, BAM and Franka's Desk: read back by their schemas.

None of these programs need be there. What they ask of a file is transcribed here from their own
schemas, and a model that is built of the file again has to give the torques of the one it is of.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field, make_dataclass, replace
from types import ModuleType

import numpy as np
import pinocchio as pin
import pytest
import toy
from lxml import etree
from test_encoder import BIAS, DELAY, KD, KP, twin
from test_init import GRIPPER

import dynident as di
from dynident.control.controller import pd
from dynident.core.errors import ComputationError, InputError
from dynident.dynamics.idim import build_idim
from dynident.dynamics.whole import WholeModel
from dynident.export.actuators import render_isaac_lab, render_mjlab
from dynident.export.bam import render_bam
from dynident.export.end_effector import render_end_effector
from dynident.export.formats import find_format
from dynident.export.sdf import render_sdf
from dynident.export.servo import derive_servos
from dynident.export.terms import sort_joint_terms
from dynident.export.urdf import render_standard_urdf
from dynident.export.usd import name_prims, render_usd
from dynident.robot.load import load_robot
from dynident.robot.loops import add_loops, assemble
from dynident.robot.mimics import find_mimics
from dynident.robot.model import Robot
from dynident.robot.spec import LoopSpec

LIMIT = 9.0


def robot(floating: bool = False) -> Robot:
    """A tree with turned frames, skew axes, a slide and an endless joint."""
    arm = toy.arm(3, nominal=True)
    turn = pin.rpy.rpyToMatrix(0.4, -0.7, 1.1)
    skew = np.array([0.6, 0.0, 0.8])
    joints = (
        replace(arm.joints[0], rotation=turn, effort=90.0, velocity=2.0),
        replace(arm.joints[1], axis=skew, lower=-1.0, upper=2.0, effort=60.0),
        replace(arm.joints[2], kind="prismatic", parent=1, lower=0.0, upper=0.5, effort=40.0),
    )
    nominal = arm.nominal
    if floating:
        nominal = np.vstack([nominal[:1], nominal])
    return replace(arm, joints=joints, nominal=nominal, floating=floating, base_link="stand")


def model_of(own: Robot):
    idim = build_idim(own)
    theta = toy.true_parameters(idim, own.nominal)
    return idim, theta


@dataclass
class Built:
    """A model that is built of a file: joints with placements, axes and what they carry."""

    names: list = field(default_factory=list)
    model: pin.Model = field(default_factory=pin.Model)

    def add(self, name, parent, kind, axis, rotation, translation, body):
        carrier = 0 if parent is None else self.names.index(parent) + 1
        make = pin.JointModelRevoluteUnaligned
        if kind == "prismatic":
            make = pin.JointModelPrismaticUnaligned
        place = pin.SE3(np.array(rotation), np.array(translation))
        number = self.model.addJoint(carrier, make(np.array(axis)), place, name)
        mass, com, inertia = body
        self.model.appendBodyToJoint(number, pin.Inertia(mass, com, inertia), pin.SE3.Identity())
        self.names.append(name)

    def torque(self, q, v, a):
        return pin.rnea(self.model, self.model.createData(), q, v, a)


def assert_same_torques(built: Built, idim, theta) -> None:
    bodies = theta.copy()
    bodies[idim.inertial :] = 0.0
    rng = np.random.default_rng(2)
    q, v, a = rng.normal(size=(3, 5, idim.robot.n))
    expected = idim.torque(bodies, q, v, a)
    found = [built.torque(*each) for each in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


# ---- SDF


def numbers(element, path):
    return [float(value) for value in element.findtext(path).split()]


def test_an_sdf_has_bodies_joints_and_rotors():
    own = robot()
    idim, theta = model_of(own)
    text, notes = render_sdf(idim, theta)
    root = etree.fromstring(text)
    assert (root.tag, root.get("version")) == ("sdf", "1.9")
    (model,) = root
    assert {child.tag for child in model} == {"link", "joint"}
    links = {link.get("name"): link for link in model.iterchildren("link")}
    fixed, *joints = model.iterchildren("joint")
    assert [fixed.get("type"), fixed.findtext("parent"), fixed.findtext("child")] == [
        "fixed", "world", "stand"
    ]  # fmt: skip
    drake = {"drake": "http://drake.mit.edu"}
    built, above = Built(), {}
    values = dict(zip(idim.names, theta, strict=True))
    for j, joint in enumerate(joints, 1):
        name, child = joint.get("name"), joint.findtext("child")
        link = links[child]
        assert link.find("pose").get("relative_to") == name
        assert link.findtext("pose") == "0 0 0 0 0 0"
        assert joint.find("pose").get("relative_to") == joint.findtext("parent")
        *xyz, roll, pitch, yaw = numbers(joint, "pose")
        i = {tag: float(link.findtext(f"inertial/inertia/{tag}"))
             for tag in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")}  # fmt: skip
        matrix = np.array([[i["ixx"], i["ixy"], i["ixz"]], [i["ixy"], i["iyy"], i["iyz"]],
                           [i["ixz"], i["iyz"], i["izz"]]])  # fmt: skip
        body = (
            float(link.findtext("inertial/mass")),
            np.array(numbers(link, "inertial/pose")[:3]),
            matrix,
        )
        kind, axis = joint.get("type"), numbers(joint, "axis/xyz")
        turned = pin.rpy.rpyToMatrix(roll, pitch, yaw)
        built.add(name, above.get(joint.findtext("parent")), kind, axis, turned, xyz, body)
        above[child] = name
        assert float(joint.findtext("drake:rotor_inertia", None, drake)) == values[f"Ia{j}"]
        assert float(joint.findtext("drake:gear_ratio", None, drake)) == 1.0
        assert float(joint.findtext("axis/dynamics/damping")) == values[f"fv{j}"]
        assert float(joint.findtext("axis/dynamics/friction")) == values[f"fc{j}"]
    assert_same_torques(built, idim, theta)
    assert [joint.get("type") for joint in joints] == ["continuous", "revolute", "prismatic"]
    assert [numbers(joint, "axis/limit/effort") for joint in joints] == [[90.0], [60.0], [40.0]]
    assert joints[1].findtext("axis/limit/velocity") == "-1"
    assert joints[0].find("axis/limit/lower") is None
    assert "not in the SDF, which has no place for it: off1 ... off3" in notes
    assert notes[-1].startswith("Gazebo reads dry friction (fc); Drake does not")


def test_an_sdf_of_a_floating_robot_is_held_by_nothing():
    idim, theta = model_of(robot(floating=True))
    model = etree.fromstring(render_sdf(idim, theta)[0])[0]
    assert all(joint.get("type") != "fixed" for joint in model.iterchildren("joint"))
    assert float(model.find("link[@name='stand']").findtext("inertial/mass")) == theta[0]


def test_names_of_an_sdf_are_there_once():
    own = robot()
    joints = tuple(replace(joint, name=f"link_{k}") for k, joint in enumerate(own.joints))
    idim, theta = model_of(replace(own, joints=joints, base_link="world"))
    text, notes = render_sdf(idim, theta)
    names = [child.get("name") for child in etree.fromstring(text)[0]]
    assert len(set(names)) == len(names)
    assert names[:2] == ["base", "fixed_to_world"]
    assert (
        "names that an SDF has once alone: world is base, link_1 is link_1_link, link_2 is "
        "link_2_link"
    ) in notes


# ---- USD

NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf)"
VALUES = {
    "float": NUMBER,
    "point3f": rf"\({NUMBER}, {NUMBER}, {NUMBER}\)",
    "float3": rf"\({NUMBER}, {NUMBER}, {NUMBER}\)",
    "double3": rf"\({NUMBER}, {NUMBER}, {NUMBER}\)",
    "quatf": rf"\({NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}\)",
    "quatd": rf"\({NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}\)",
    "uniform token": r'"\w+"',
    "uniform token[]": r'\["[\w:]+"(?:, "[\w:]+")*\]',
    "rel": r"</\w+(?:/\w+)*>",
}
JOINT = {
    "physics:body0": "rel", "physics:body1": "rel", "physics:localPos0": "point3f",
    "physics:localPos1": "point3f", "physics:localRot0": "quatf", "physics:localRot1": "quatf",
}  # fmt: skip
AXIAL = {
    **JOINT, "physics:axis": "uniform token", "physics:lowerLimit": "float",
    "physics:upperLimit": "float",
}  # fmt: skip
TYPES = {
    "Scope": {},
    "Xform": {
        "xformOp:translate": "double3", "xformOp:orient": "quatd",
        "xformOpOrder": "uniform token[]",
    },
    "PhysicsFixedJoint": JOINT,
    "PhysicsRevoluteJoint": AXIAL,
    "PhysicsPrismaticJoint": AXIAL,
}  # fmt: skip
DRIVE = {"type": "uniform token", "stiffness": "float", "damping": "float", "maxForce": "float"}
APPLIED = {  # UsdPhysics, and NewtonJointAPI of newton-usd-schemas
    "PhysicsArticulationRootAPI": {},
    "PhysicsRigidBodyAPI": {},
    "PhysicsMassAPI": {
        "physics:mass": "float", "physics:centerOfMass": "point3f",
        "physics:diagonalInertia": "float3", "physics:principalAxes": "quatf",
    },
    "NewtonJointAPI": {
        f"newton:{name}": "float" for name in ("armature", "damping", "friction", "velocityLimit")
    },
    "NewtonMimicAPI": {
        "newton:mimicJoint": "rel", "newton:mimicCoef0": "float", "newton:mimicCoef1": "float",
    },
    **{
        f"PhysicsDriveAPI:{axis}": {f"drive:{axis}:physics:{n}": kind for n, kind in DRIVE.items()}
        for axis in ("angular", "linear")
    },
}  # fmt: skip


@dataclass
class Prim:
    kind: str
    path: str
    applied: tuple
    values: dict = field(default_factory=dict)


def read_usda(text: str) -> dict[str, Prim]:
    """Prims by path; every line has to be one that the schemas know."""
    head, _, rest = text.partition(")\n\n")
    assert head.startswith("#usda 1.0\n(\n")
    lines = iter(rest.splitlines())
    found: dict[str, Prim] = {}
    open_prims: list[Prim] = []
    for line in lines:
        text = line.strip()
        if not text:
            continue
        begun = re.fullmatch(r'def (\w+) "([A-Za-z_]\w*)"( \()?', text)
        if begun:
            applied = ()
            if begun[3]:
                applied = tuple(re.findall(r'"([\w:]+)"', next(lines)))
                assert next(lines).strip() == ")"
            assert next(lines).strip() == "{"
            above = open_prims[-1].path if open_prims else ""
            prim = Prim(begun[1], f"{above}/{begun[2]}", applied)
            assert prim.path not in found
            found[prim.path] = prim
            open_prims.append(prim)
        elif text == "}":
            open_prims.pop()
        else:
            kind, name, value = re.fullmatch(
                r"((?:uniform )?[\w\[\]]+) (\S+)(?: = (.+))?", text
            ).groups()
            prim = open_prims[-1]
            known = dict(TYPES[prim.kind])
            for schema in prim.applied:
                known |= APPLIED[schema]
            assert known[name] == kind, line
            assert re.fullmatch(VALUES[kind], value), line
            assert name not in prim.values
            prim.values[name] = value
    assert not open_prims
    return found


def take(prim, name):
    found = [float(value) for value in re.findall(NUMBER, prim.values[name])]
    return found[0] if len(found) == 1 else np.array(found)


def turn(prim, name):
    w, x, y, z = take(prim, name)
    return pin.Quaternion(w, x, y, z).toRotationMatrix()


def test_joints_that_follow_others_do_so_in_sdf_usd_and_urdf(tmp_path):
    law = LoopSpec(kind="joint", joints=("joint_2", "joint_1"), polynomial=(0.2, -0.5))
    idim, theta = model_of(assemble(add_loops(robot(), [law], "here"), "here"))
    one, two, _ = idim.robot.joint_names
    (mimic,) = etree.fromstring(render_sdf(idim, theta)[0]).iter("mimic")
    assert mimic.get("joint") == one
    assert mimic.getparent().getparent().get("name") == two
    # mimic_angle = multiplier (other_joint_angle - reference) + offset
    assert [float(child.text) for child in mimic] == [-0.5, 0.2, 0.0]
    drakes = mimic.getparent().getparent().find("{http://drake.mit.edu}mimic")
    assert dict(drakes.attrib) == {"joint": one, "multiplier": "-0.5", "offset": "0.2"}
    prims = read_usda(render_usd(idim, theta, None, None, ())[0].decode())
    follower = prims[f"/toy/joints/{two}"]
    assert follower.values["newton:mimicJoint"] == f"</toy/joints/{one}>"
    assert take(follower, "newton:mimicCoef0") == pytest.approx(np.rad2deg(0.2))
    assert take(follower, "newton:mimicCoef1") == -0.5
    assert not any(schema.startswith("PhysicsDriveAPI") for schema in follower.applied)
    path = tmp_path / "model.urdf"
    path.write_bytes(render_standard_urdf(idim, theta)[0])
    assert find_mimics(load_robot(path)) == {two: (one, 0.2, -0.5)}
    slides = law.model_copy(update={"joints": ("joint_3", "joint_1")})
    idim, theta = model_of(assemble(add_loops(robot(), [slides], "here"), "here"))
    with pytest.raises(InputError, match="joint_3: is prismatic and follows joint_1"):
        render_usd(idim, theta, None, None, ())


def test_a_urdf_has_the_law_that_was_identified(tmp_path):
    """Also where its own mimic says another, or has it the other way round."""
    path = tmp_path / "gripper.urdf"
    path.write_text(GRIPPER)
    for joints, law, expected in (
        (("two", "one"), (0.02, -1.5), {"two": ("one", 0.02, -1.5)}),
        (("one", "two"), (0.01, -0.5), {"one": ("two", 0.01, -0.5)}),
    ):
        loop = LoopSpec(kind="joint", joints=joints, polynomial=law)
        idim = build_idim(load_robot(path, loops=[loop]), "viscous")
        document, notes = find_format("urdf").render(idim, idim.nominal, None, None, ())
        out = tmp_path / "out.urdf"
        out.write_bytes(document)
        assert find_mimics(load_robot(out)) == expected
        assert not any("stays in the study" in note for note in notes)


def servos_of(tmp_path):
    """A model, its parameters and the law of its robot, as they would be fitted to positions."""
    _, loop, theta = twin(tmp_path, 1.0)
    simulation = di.Simulation(pd(KP, KD, limit=LIMIT, delay=DELAY), bias=tuple(BIAS))
    offset = sort_joint_terms(WholeModel(loop.idim, theta)).offset
    return loop.idim, theta, derive_servos(simulation, offset)


def test_a_usd_has_bodies_joints_and_drives():
    own = robot()
    idim, theta = model_of(own)
    text, notes = render_usd(idim, theta, None, None, ())
    prims = read_usda(text.decode())
    (root,) = (prim for prim in prims.values() if "PhysicsArticulationRootAPI" in prim.applied)
    assert root.path == "/toy"
    bodies = [p for p in prims.values() if "PhysicsRigidBodyAPI" in p.applied]
    assert [p.path for p in bodies] == [f"/toy/{name}" for name in ("stand", *own.links)]
    fixed, *joints = (p for p in prims.values() if p.kind.endswith("Joint"))
    assert fixed.values == {"physics:body1": "</toy/stand>"}
    built, above, scale = Built(), {"/toy/stand": None}, 180.0 / np.pi
    values = dict(zip(idim.names, theta, strict=True))
    place = {"/toy/stand": pin.SE3.Identity()}
    for j, joint in enumerate(joints, 1):
        assert joint.values["physics:axis"] == '"Z"'
        parent, child = (joint.values[f"physics:body{k}"].strip("<>") for k in (0, 1))
        body = prims[child]
        inner = pin.SE3(turn(joint, "physics:localRot1"), take(joint, "physics:localPos1"))
        outer = pin.SE3(turn(joint, "physics:localRot0"), take(joint, "physics:localPos0"))
        there = outer * inner.inverse()
        axes = turn(body, "physics:principalAxes")
        inertia = axes @ np.diag(take(body, "physics:diagonalInertia")) @ axes.T
        mass = take(body, "physics:mass"), take(body, "physics:centerOfMass"), inertia
        kind = joint.kind.removeprefix("Physics").removesuffix("Joint").lower()
        axis = inner.rotation[:, 2]
        built.add(child, above[parent], kind, axis, there.rotation, there.translation, mass)
        above[child] = child
        place[child] = place[parent] * there
        assert np.allclose(place[child].translation, take(body, "xformOp:translate"))
        assert np.allclose(place[child].rotation, turn(body, "xformOp:orient"))
        unit = scale if kind == "revolute" else 1.0
        assert take(joint, "newton:armature") == values[f"Ia{j}"]
        assert take(joint, "newton:friction") == values[f"fc{j}"]
        assert take(joint, "newton:damping") * unit == pytest.approx(values[f"fv{j}"])
    assert_same_torques(built, idim, theta)
    assert "physics:lowerLimit" not in joints[0].values
    assert take(joints[0], "newton:velocityLimit") == pytest.approx(2.0 * scale)
    assert take(joints[1], "physics:upperLimit") == pytest.approx(2.0 * scale)
    assert take(joints[2], "physics:upperLimit") == 0.5
    assert take(joints[2], "drive:linear:physics:maxForce") == 40.0
    assert "not in the USD, which has no place for it: off1 ... off3" in notes
    assert "the base is held by the world: its mass of 1 kg means nothing" in notes


def test_a_law_is_a_drive_by_degrees(tmp_path):
    idim, theta, servos = servos_of(tmp_path)
    prims = read_usda(render_usd(idim, theta, None, None, servos)[0].decode())
    for name, kp, kd in zip(idim.robot.joint_names, KP, KD, strict=True):
        joint = prims[f"/arm/joints/{name}"]
        assert "PhysicsDriveAPI:angular" in joint.applied
        assert take(joint, "drive:angular:physics:stiffness") == pytest.approx(kp * np.pi / 180.0)
        assert take(joint, "drive:angular:physics:damping") == pytest.approx(kd * np.pi / 180.0)
        assert take(joint, "drive:angular:physics:maxForce") == pytest.approx(LIMIT)


def test_names_are_identifiers_and_links_have_mass():
    assert name_prims(["a", "b-c", "b c", "1"]) == ("a", "b_c", "b_c_", "_1")
    own = robot()
    joints = (replace(own.joints[0], name="left/hip"), *own.joints[1:])
    there = replace(own, joints=joints, gravity=(0.0, 9.81, 0.0), base_link="joints")
    idim, theta = model_of(there)
    text, notes = render_usd(idim, theta, None, None, ())
    assert "/toy/joints_" in read_usda(text.decode())
    assert notes[-1] == "names of USD are identifiers: joints is joints_, left/hip is left_hip"
    assert "gravity is (0, 9.81, 0) m/s^2 in the robot's frame: set it in the engine" in notes
    theta[:10] = 0.0
    with pytest.raises(ComputationError, match="link_1: has no mass"):
        render_usd(idim, theta, None, None, ())


# ---- modules of Python

MJLAB = make_dataclass(  # mjlab 1.3
    "ActuatorCfg",
    [
        ("target_names_expr", tuple),
        *(
            (name, float, None)
            for name in ("armature", "velocity_limit", "frictionloss", "viscous_damping")
        ),
        ("delay_min_lag", int, 0),
        ("delay_max_lag", int, 0),
    ],
    kw_only=True,
)
ISAAC = make_dataclass(  # Isaac Lab 2.2
    "ActuatorBaseCfg",
    [
        ("joint_names_expr", list),
        ("stiffness", dict),
        ("damping", dict),
        *(
            (name, dict, None)
            for name in ("effort_limit", "velocity_limit", "effort_limit_sim", "armature",
                         "velocity_limit_sim", "friction", "dynamic_friction", "viscous_friction")
        ),
    ],
    kw_only=True,
)  # fmt: skip


def load(text: bytes, monkeypatch) -> dict:
    """What a module defines, with configurations that have the fields of their classes alone."""
    stubs = {
        "mjlab.actuator": {
            "BuiltinPositionActuatorCfg": make_dataclass(
                "Position",
                [("stiffness", float), ("damping", float), ("effort_limit", float, None)],
                bases=(MJLAB,),
                kw_only=True,
            ),
            "BuiltinMotorActuatorCfg": make_dataclass(
                "Motor",
                [("effort_limit", float), ("gear", float, 1.0)],
                bases=(MJLAB,),
                kw_only=True,
            ),
        },
        "isaaclab.actuators": {
            "ImplicitActuatorCfg": make_dataclass("Implicit", [], bases=(ISAAC,), kw_only=True),
            "DelayedPDActuatorCfg": make_dataclass(
                "Delayed",
                [("min_delay", int, 0), ("max_delay", int, 0)],
                bases=(ISAAC,),
                kw_only=True,
            ),
        },
    }
    for name, contents in stubs.items():
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name.partition(".")[0], ModuleType(name.partition(".")[0]))
        monkeypatch.setitem(sys.modules, name, module)
    found: dict = {}
    exec(compile(text, "actuators.py", "exec"), found)
    return found


def test_actuators_for_mjlab_have_the_law_and_its_delay(tmp_path, monkeypatch):
    idim, theta, servos = servos_of(tmp_path)
    text, notes = render_mjlab(idim, theta, None, None, servos)
    found = load(text, monkeypatch)["make_actuators"](0.002)
    values = dict(zip(idim.names, theta, strict=True))
    for j, (own, kp, kd) in enumerate(zip(found, KP, KD, strict=True), 1):
        assert own.target_names_expr == (f"j{j}",)
        assert (own.stiffness, own.damping, own.effort_limit) == (kp, kd, LIMIT)
        assert own.armature == values[f"Ia{j}"]
        assert own.frictionloss == values[f"fc{j}"]
        assert own.viscous_damping == values[f"fv{j}"]
        assert own.delay_min_lag == own.delay_max_lag == round(DELAY / 0.002) == 4
    assert notes[0] == "not in the mjlab module, which has no place for it: off1 ... off3"
    assert "take its <actuator> out" in notes[1]


def test_actuators_for_mjlab_move_mujoco_as_the_servos_of_the_mjcf_do(tmp_path, monkeypatch):
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    idim, theta, _ = servos_of(tmp_path)
    law = di.Simulation(pd(KP, KD, limit=LIMIT))
    servos = derive_servos(law, np.zeros(3))  # an offset has no place in the module
    found = load(render_mjlab(idim, theta, None, None, servos)[0], monkeypatch)["make_actuators"](1)
    pairs = zip(servos, idim.robot.joint_names, strict=True)
    lines = [etree.tostring(servo.element(name), encoding="unicode") for servo, name in pairs]
    spec = mujoco.MjSpec.from_string(MJCF.format("".join(lines)))
    servos_there = run_to_target(mujoco, spec.compile())
    spec = mujoco.MjSpec.from_string(MJCF.format(""))
    for own in found:  # as mjlab's create_position_actuator does
        (name,) = own.target_names_expr
        actuator = spec.add_actuator(name=name, target=name)
        actuator.trntype = mujoco.mjtTrn.mjTRN_JOINT
        actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        actuator.gainprm[0] = own.stiffness
        actuator.biasprm[1:3] = [-own.stiffness, -own.damping]
        actuator.forcelimited = True
        actuator.forcerange[:] = [-own.effort_limit, own.effort_limit]
    np.testing.assert_allclose(run_to_target(mujoco, spec.compile()), servos_there, atol=1e-12)


MJCF = """<mujoco><worldbody><body><joint name="j1" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>
<body pos=".6 0 0"><joint name="j2" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
<body pos=".4 0 0"><joint name="j3" axis="1 0 0"/><geom size=".1" pos=".1 .1 0"/></body></body>
</body></worldbody><actuator>{}</actuator></mujoco>"""


def run_to_target(mujoco, model):
    data = mujoco.MjData(model)
    data.ctrl[:] = [0.3, -0.5, 0.8]
    for _ in range(200):
        mujoco.mj_step(model, data)
    return data.qpos.copy()


def test_actuators_for_isaac_lab_have_the_law_and_its_delay(tmp_path, monkeypatch):
    idim, theta, servos = servos_of(tmp_path)
    text, notes = render_isaac_lab(idim, theta, None, None, servos)
    (own,) = load(text, monkeypatch)["make_actuators"](0.005).values()
    names, values = idim.robot.joint_names, dict(zip(idim.names, theta, strict=True))
    assert own.joint_names_expr == list(names)
    assert own.stiffness == dict(zip(names, KP, strict=True))
    assert own.damping == dict(zip(names, KD, strict=True))
    assert own.effort_limit == dict.fromkeys(names, LIMIT)
    drives = {
        "armature": "Ia",
        "friction": "fc",
        "dynamic_friction": "fc",
        "viscous_friction": "fv",
    }
    for key, symbol in drives.items():
        told = {name: values[f"{symbol}{j}"] for j, name in enumerate(names, 1)}
        assert getattr(own, key) == told
    assert own.min_delay == own.max_delay == 2
    assert notes == ("not in the Isaac Lab module, which has no place for it: off1 ... off3",)


def test_without_a_law_there_are_motors(monkeypatch):
    idim, theta = model_of(robot())
    found = load(render_mjlab(idim, theta, None, None, ())[0], monkeypatch)["make_actuators"]()
    assert [type(own).__name__ for own in found] == ["Motor"] * 3
    assert [own.effort_limit for own in found] == [90.0, 60.0, 40.0]
    text, _ = render_isaac_lab(idim, theta, None, None, ())
    (own,) = load(text, monkeypatch)["make_actuators"]().values()
    assert (own.stiffness, own.damping) == (None, None)
    assert own.effort_limit_sim == {"joint_1": 90.0, "joint_2": 60.0, "joint_3": 40.0}
    idim, theta = model_of(toy.arm(2))
    with pytest.raises(InputError, match="joint_1: a motor of mjlab has to have a limit"):
        render_mjlab(idim, theta, None, None, ())


def test_names_with_marks_are_no_patterns(monkeypatch):
    own = robot()
    joints = (replace(own.joints[0], name="left.hip[0]"), *own.joints[1:])
    idim, theta = model_of(replace(own, joints=joints))
    first, *_ = load(render_mjlab(idim, theta, None, None, ())[0], monkeypatch)["make_actuators"]()
    (pattern,) = first.target_names_expr
    assert re.fullmatch(pattern, "left.hip[0]")
    assert not re.fullmatch(pattern, "left_hip0")


# ---- BAM and Desk


def test_a_bam_file_has_the_friction_of_each_servo():
    idim, theta = model_of(toy.arm(3))
    text, notes = render_bam(idim, theta, None, None, ())
    values = dict(zip(idim.names, theta, strict=True))
    assert json.loads(text) == {
        f"joint_{j}": {
            "model": "m1",
            "armature": values[f"Ia{j}"],
            "friction_base": values[f"fc{j}"],
            "friction_viscous": values[f"fv{j}"],
        }
        for j in (1, 2, 3)
    }
    assert "add those, and take kt^2/R off friction_viscous" in notes[-1]
    with pytest.raises(InputError, match="joint_3: slides"):
        render_bam(*model_of(robot()), None, None, ())


def test_an_end_effector_is_what_desk_asks_for():
    inertia = np.array([[3.0, 0.1, 0.2], [0.1, 2.0, 0.3], [0.2, 0.3, 1.0]])
    found = json.loads(render_end_effector("EE- My tool!", 0.7, np.array([0.0, 0.1, 0.2]), inertia))
    assert {key: type(value) for key, value in found.items()} == {
        "id": str, "name": str, "color": str, "mass": float, "centerOfMass": list,
        "transformation": list, "inertia": list,
    }  # fmt: skip
    assert found["id"] == "my-tool"  # a URI reference that does not begin with ee-
    assert found["centerOfMass"] == [0.0, 0.1, 0.2]
    assert np.array_equal(np.reshape(found["transformation"], (4, 4)), np.eye(4))
    assert np.array_equal(np.reshape(found["inertia"], (3, 3), order="F"), inertia)
    with pytest.raises(InputError, match="no letter"):
        render_end_effector("!?", 0.7, np.zeros(3), inertia)


def test_motors_of_several_joints_are_named(tmp_path):
    own = toy.arm(3, coupled=True)
    joints = tuple(replace(joint, effort=50.0) for joint in own.joints)
    idim, theta = model_of(replace(own, joints=joints))
    kinds = {
        "SDF": render_sdf,
        "USD": render_usd,
        "mjlab module": render_mjlab,
        "Isaac Lab module": render_isaac_lab,
        "BAM file": render_bam,
    }
    for what, render in kinds.items():
        _, notes = render(idim, theta, None, None, ())
        (note,) = (each for each in notes if each.startswith(f"not in the {what}"))
        assert "Iam3" in note
        assert "fvm3" in note
