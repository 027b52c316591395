"""Our own simulation of robots on their feet, against Pinocchio, MuJoCo and the laws of nature."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pinocchio as pin
import pytest
from robots import pin_model, relative, urdf

import dynident as di
from dynident.control.controller import pd, pid
from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.errors import InputError, RolloutError
from dynident.simulation.contacts import Foot, Ground, foot
from dynident.simulation.floating import FloatingMotion, simulate_floating
from dynident.simulation.loop import Loop

FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
HOME = np.array([0.05, 0.8, -1.6, -0.05, 0.8, -1.6, 0.05, -0.8, 1.6, -0.05, -0.8, 1.6])
ROTOR, VISCOUS = 1.5e-3, 5e-3

BOX = """<robot name="box">
  <link name="body"><inertial><origin xyz="0.01 0 0.1"/><mass value="2"/>
    <inertia ixx="0.012" iyy="0.015" izz="0.02" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><origin xyz="0 0 0.15"/><mass value="0.4"/>
    <inertia ixx="0.004" iyy="0.004" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="body"/><child link="arm"/>
    <origin xyz="0 0 0.2"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="100" velocity="100"/></joint>
</robot>"""


def held(q: Array, rate: float = 1000.0, seconds: float = 1.0) -> Reference:
    """Joints that are asked to stay."""
    rows = np.tile(q, (max(2, round(seconds * rate)), 1))
    return Reference(rate, rows, np.zeros_like(rows), np.zeros_like(rows))


def solo(seconds: float, substeps: int = 4, **options: object) -> tuple[Loop, Array]:
    """Solo12 on its feet under PD."""
    robot = di.load_robot(urdf("solo12"), floating=True)
    idim = di.build_idim(robot, "viscous")
    control = pd(np.full(12, 15.0), np.full(12, 0.3))
    loop = Loop(idim, control, held(HOME, seconds=seconds), substeps=substeps, **options)
    return loop, np.concatenate([robot.nominal.ravel(), np.tile([ROTOR, VISCOUS], 12)])


def solo_feet(loop: Loop) -> list[Foot]:
    return [foot(loop.idim.robot, name) for name in FEET]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("box") / "box.urdf"
    path.write_text(BOX)
    return path


def boxed(
    path: Path, seconds: float, kp: float, kd: float, **options: object
) -> tuple[Loop, Array, list[Foot]]:
    robot = di.load_robot(path, floating=True)
    idim = di.build_idim(robot, "viscous")
    theta = np.concatenate([robot.nominal.ravel(), np.zeros(len(idim.drives))])
    theta[idim.names.index("Ia1")] = 0.002
    loop = Loop(idim, pd([kp], [kd]), held(np.array([0.3]), seconds=seconds), **options)
    return loop, theta, [foot(robot, "body", (0.1, 0.08))]


def stated(
    loop: Loop, motion: FloatingMotion, row: int
) -> tuple[pin.Model, Array, list[pin.Force]]:
    """Pinocchio's model, the joint torques of a row, and its wrenches on the joints' bodies."""
    robot = loop.idim.robot
    model = pin_model(robot.source, floating=True)
    model.armature[6:] = ROTOR
    tau = np.concatenate([np.zeros(6), motion.tau[row] - VISCOUS * motion.dq[row, 6:]])
    forces = [pin.Force.Zero() for _ in range(model.njoints)]
    for name, wrench in motion.wrenches.items():
        frame = model.frames[model.getFrameId(name)]
        whole = np.zeros(6)
        whole[: wrench.shape[1]] = wrench[row]
        forces[frame.parentJoint] += frame.placement.act(pin.Force(whole))
    return model, tau, forces


@pytest.mark.parametrize("name", ["solo12", "talos"])
def test_accelerations_are_those_of_pinocchio_under_the_same_wrenches(name):
    robot = di.load_robot(urdf(name), floating=True)
    idim = di.build_idim(robot, "viscous")
    soles = {"left_sole_link": (0.1, 0.06), "right_sole_link": (0.1, 0.06)}
    feet = [
        foot(robot, f, s) for f, s in (soles if name == "talos" else dict.fromkeys(FEET)).items()
    ]
    rng = np.random.default_rng(3)
    theta = np.concatenate([robot.nominal.ravel(), np.tile([ROTOR, VISCOUS], robot.n)])
    ground = Ground(
        stiffness=10.0, damping=0.05, slip=0.5, normal=np.array([0.3, -0.2, 1.0]), height=5.0
    )  # a slope of mud, that all feet are in
    for _ in range(5):
        joints = rng.uniform(-1.0, 1.0, robot.n)
        turn = rng.normal(size=4)
        q0 = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn), joints])
        dq0 = 0.5 * rng.normal(size=robot.dof)
        loop = Loop(
            idim, pd(np.full(robot.n, 20.0), np.full(robot.n, 0.4)),
            held(joints + 0.1, seconds=0.0), q0=q0, dq0=dq0,
        )  # fmt: skip
        motion = simulate_floating(loop, theta, feet, ground)
        assert all(each[0] for each in motion.touching.values())
        model, tau, forces = stated(loop, motion, 0)
        expected = pin.aba(model, model.createData(), q0, dq0, tau, forces)
        assert relative(motion.ddq[0], expected) < 1e-9


def test_accelerations_are_those_of_mujoco_under_the_same_forces():
    mujoco = pytest.importorskip("mujoco")
    from legged import mujoco_robot, true_robot, wxyz

    truth = true_robot("solo12")
    built = mujoco_robot(truth, {})
    model, data = built.model, mujoco.MjData(built.model)
    model.geom_conaffinity[:] = 0
    loop, _ = solo(0.0)
    theta = np.concatenate([truth.phi.ravel(), np.column_stack([truth.Ia, truth.fv]).ravel()])
    rng = np.random.default_rng(8)
    turn = rng.normal(size=4)
    q0 = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn), HOME])
    loop = replace(loop, q0=q0, dq0=rng.normal(size=18))
    mud = Ground(stiffness=10.0, damping=0.05, slip=0.5, height=5.0)
    motion = simulate_floating(loop, theta, solo_feet(loop), mud)
    assert all(touching[0] for touching in motion.touching.values())
    R = pin.Quaternion(q0[3:7]).matrix()
    v = motion.dq[0]
    data.qpos[:3], data.qpos[3:7], data.qpos[1 + built.order] = q0[:3], wxyz(R), HOME
    data.qvel[:3], data.qvel[3:6], data.qvel[built.order] = R @ v[:3], v[3:6], v[6:]
    data.ctrl[:] = motion.tau[0] + 15.0 * HOME + 0.3 * v[6:]  # its motors are servos
    mujoco.mj_fwdPosition(model, data)
    for name, wrench in motion.wrenches.items():
        geom = model.geom(name).id
        force = data.geom_xmat[geom].reshape(3, 3) @ wrench[0]
        mujoco.mj_applyFT(
            model, data, force, np.zeros(3), data.geom_xpos[geom].copy(), model.geom_bodyid[geom],
            data.qfrc_applied,
        )  # fmt: skip
    mujoco.mj_forward(model, data)
    assert relative(motion.ddq[0, 6:], data.qacc[built.order]) < 1e-9
    assert relative(motion.ddq[0, 3:6], data.qacc[3:6]) < 1e-9
    classical = motion.ddq[0, :3] + np.cross(v[3:6], v[:3])
    assert relative(R @ classical, data.qacc[:3]) < 1e-9


@pytest.mark.long
def test_a_drop_on_the_feet_is_that_of_mujoco_with_the_same_ground():
    mujoco = pytest.importorskip("mujoco")
    from legged import mujoco_robot, true_robot

    ground = Ground(stiffness=5e3, exponent=1.5, damping=1.0, friction=0.6, slip=0.05)
    truth = true_robot("solo12")
    built = mujoco_robot(truth, {})
    model, data = built.model, mujoco.MjData(built.model)
    model.geom_conaffinity[:] = 0
    theta = np.concatenate([truth.phi.ravel(), np.column_stack([truth.Ia, truth.fv]).ravel()])
    loop, _ = solo(0.25, substeps=16)
    q0 = np.concatenate([[0.0, 0.0, 0.27, 0.05, -0.04, 0.1], [np.sqrt(1.0 - 0.0141)], HOME])
    dq0 = np.concatenate([[0.3, -0.2, 0.0, 0.5, -0.4, 0.6], np.zeros(12)])
    loop = replace(loop, q0=q0, dq0=dq0)
    ours = simulate_floating(loop, theta, solo_feet(loop), ground)
    assert any(np.any(touching) for touching in ours.touching.values())

    geoms = [model.geom(name).id for name in FEET]
    J = np.zeros((3, model.nv))

    def push(model, data):
        data.qfrc_applied[:] = 0.0
        for geom in geoms:
            point = data.geom_xpos[geom]
            mujoco.mj_jac(model, data, J, None, point, model.geom_bodyid[geom])
            v = J @ data.qvel
            depth = -point[2]
            if depth > 0.0:
                N = max(0.0, 5e3 * depth**1.5 * (1.0 - v[2]))
                slide = np.array([v[0], v[1], 0.0])
                force = -0.6 * N * slide / np.sqrt(slide @ slide + 0.05**2)
                force[2] = N
                data.qfrc_applied += J.T @ force

    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.timestep = 1.25e-4
    x, y, z, w = q0[3:7]
    data.qpos[:7], data.qpos[1 + built.order] = [*q0[:3], w, x, y, z], HOME
    data.qvel[:3] = pin.Quaternion(q0[3:7]).matrix() @ dq0[:3]
    data.qvel[3:6] = dq0[3:6]
    data.ctrl[:] = 15.0 * HOME
    mujoco.set_mjcb_control(push)
    try:
        mujoco.mj_step(model, data, 8 * 249)
    finally:
        mujoco.set_mjcb_control(None)
    assert np.abs(ours.q[-1, :3] - data.qpos[:3]).max() < 2e-6
    assert np.abs(ours.q[-1, 7:] - data.qpos[1 + built.order]).max() < 2e-5
    assert np.abs(ours.dq[-1, 6:] - data.qvel[built.order]).max() < 2e-3


def test_free_flight_keeps_momentum_and_energy():
    loop, theta = solo(0.5, substeps=8)
    rng = np.random.default_rng(4)
    dq0 = rng.normal(size=18) * ([1.0] * 3 + [3.0] * 3 + [2.0] * 12)
    q0 = np.concatenate([[0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0], HOME])
    theta[-24:] = 0.0  # neither rotors, which are outside of the momentum, nor friction
    loop = replace(loop, controller=pd(np.full(12, 1e-12), np.zeros(12)), q0=q0, dq0=dq0)
    motion = simulate_floating(loop, theta)
    model = pin_model(loop.idim.robot.source, floating=True)
    data = model.createData()
    energy, momentum, centre = [], [], []
    for q, v in zip(motion.q, motion.dq, strict=True):
        energy.append(pin.computeMechanicalEnergy(model, data, q, v))
        momentum.append(pin.computeCentroidalMomentum(model, data, q, v).vector.copy())
        centre.append(data.com[0].copy())
    t = np.arange(len(motion.q)) / 1000.0
    mass = pin.computeTotalMass(model)
    fallen = np.outer(t, momentum[0][:3] / mass) + np.outer(0.5 * t**2, [0.0, 0.0, -9.81])
    assert np.abs(centre - centre[0] - fallen).max() < 1e-6
    turning = np.array(momentum)[:, 3:]
    assert np.abs(turning - turning[0]).max() < 1e-5 * np.abs(turning[0]).max()
    assert np.ptp(energy) < 1e-5 * np.ptp([d[2] * mass * 9.81 for d in fallen])


@pytest.mark.long
def test_an_elastic_ground_gives_back_what_it_took(box):
    q0 = np.array([0.0, 0.0, 0.25, 0.05, 0.1, 0.0, np.sqrt(1.0 - 0.0125), 0.1])
    loop, theta, feet = boxed(box, 1.0, 30.0, 0.0, q0=q0, substeps=40)
    ground = Ground(stiffness=4e3, exponent=1.5, damping=0.0, friction=0.0)
    motion = simulate_floating(loop, theta, feet, ground)
    energy = energies(box, loop, motion, feet[0], ground)
    assert np.any(motion.touching["body"])
    assert motion.q[-1, 2] > 0.0
    lifted = 2.4 * 9.81 * 0.25
    assert np.ptp(energy) < 1e-4 * lifted
    finer = simulate_floating(replace(loop, substeps=80), theta, feet, ground)
    assert np.ptp(energies(box, loop, finer, feet[0], ground)) < 0.5 * np.ptp(energy)


def test_a_real_ground_never_gives_more(box):
    q0 = np.array([0.0, 0.0, 0.25, 0.05, 0.1, 0.0, np.sqrt(1.0 - 0.0125), 0.1])
    dq0 = np.array([0.5, 0.3, 0.0, 0.0, 0.0, 1.0, 0.0])
    loop, theta, feet = boxed(box, 1.5, 30.0, 0.3, q0=q0, dq0=dq0, substeps=20)
    ground = Ground()
    motion = simulate_floating(loop, theta, feet, ground)
    energy = energies(box, loop, motion, feet[0], ground)
    assert np.max(np.diff(energy)) < 1e-5 * energy[0]
    assert energy[-1] < 0.8 * energy[0]


def energies(path: Path, loop: Loop, motion: FloatingMotion, sole: Foot, ground: Ground) -> Array:
    """Mechanical energy, with the springs of the joint and of the ground."""
    model = pin_model(path, floating=True)
    model.armature[6:] = 0.002
    data = model.createData()
    kp = -loop.controller.D[0, 3]
    found = []
    for q, v in zip(motion.q, motion.dq, strict=True):
        own = pin.computeMechanicalEnergy(model, data, q, v)
        R = pin.Quaternion(q[3:7]).matrix()
        depth = np.maximum(0.0, -(sole.points @ R.T + q[:3])[:, 2])
        spring = ground.stiffness / (ground.exponent + 1.0) * depth ** (ground.exponent + 1.0)
        found.append(own + 0.5 * kp * (q[7] - 0.3) ** 2 + spring.sum())
    return np.array(found)


def test_what_stands_weighs_what_it_weighs():
    loop, theta = solo(4.0)
    motion = simulate_floating(loop, theta, solo_feet(loop), Ground(slip=0.2))
    model = pin_model(loop.idim.robot.source, floating=True)
    data = model.createData()
    pin.framesForwardKinematics(model, data, motion.q[-1])
    total = np.zeros(3)
    for name, wrench in motion.wrenches.items():
        total += data.oMf[model.getFrameId(name)].rotation @ wrench[-1]
    weight = 9.81 * loop.idim.robot.nominal[:, 0].sum()
    assert abs(total[2] / weight - 1.0) < 1e-6
    assert np.abs(total[:2]).max() < 1e-6 * weight
    assert np.abs(motion.dq[-1]).max() < 1e-6


def test_forces_stay_in_the_cone_and_never_pull():
    loop, theta = solo(1.0)
    q0 = np.concatenate([[0.0, 0.0, 0.3, 0.1, 0.0, 0.0, np.sqrt(0.99)], HOME])
    dq0 = np.concatenate([[0.8, 0.5, 0.0, 2.0, -1.0, 3.0], np.zeros(12)])
    loop = replace(loop, q0=q0, dq0=dq0)
    ground = Ground(friction=0.4, normal=np.array([0.1, 0.05, 1.0]))
    motion = simulate_floating(loop, theta, solo_feet(loop), ground)
    model = pin_model(loop.idim.robot.source, floating=True)
    data = model.createData()
    ratios = []
    for row, q in enumerate(motion.q):
        pin.framesForwardKinematics(model, data, q)
        for name, wrench in motion.wrenches.items():
            force = data.oMf[model.getFrameId(name)].rotation @ wrench[row]
            normal = force @ ground.normal
            assert normal >= 0.0
            assert motion.touching[name][row] == (normal > 0.0)
            slide = np.linalg.norm(force - normal * ground.normal)
            assert slide <= 0.4 * normal * (1.0 + 1e-12)
            ratios.append(slide / normal if normal else 0.0)
    assert max(ratios) > 0.39  # it slides


@pytest.mark.parametrize(("friction", "slides"), [(0.1, True), (0.6, False)])
def test_a_box_on_a_slope_slides_where_friction_is_too_small(box, friction, slides):
    angle = 0.3
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    q0 = np.array([0.0, 0.0, 0.0, 0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2), 0.3])
    loop, theta, feet = boxed(box, 1.0, 200.0, 8.0, q0=q0)
    motion = simulate_floating(loop, theta, feet, Ground(friction=friction, normal=normal))
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    turned = [pin.Quaternion(q[3:7]).matrix() for q in motion.q]
    speed = np.array([R @ v[:3] @ down for R, v in zip(turned, motion.dq, strict=True)])
    if slides:
        expected = 9.81 * (np.sin(angle) - friction * np.cos(angle))
        assert abs((speed[-1] - speed[499]) / 0.5 / expected - 1.0) < 1e-3
    else:
        share = np.tan(angle) / friction
        assert abs(speed[-1]) < 1.1 * 0.002 * share / np.sqrt(1.0 - share**2)


@pytest.mark.long
def test_steps_are_of_second_order():
    loop, theta = solo(0.4)
    rng = np.random.default_rng(2)
    t = np.arange(400)[:, None] / 1000.0
    swing = 0.15 * (1.0 - np.cos(2.0 * np.pi * 2.0 * t)) * rng.uniform(-1.0, 1.0, 12)
    rate = 0.15 * 4.0 * np.pi * np.sin(2.0 * np.pi * 2.0 * t) * rng.uniform(-1.0, 1.0, 12)
    reference = Reference(1000.0, HOME + swing, rate, np.gradient(rate, 1e-3, axis=0))
    feet, ground = solo_feet(loop), Ground(exponent=1.5, stiffness=1e5, slip=0.05)
    loop = replace(loop, reference=reference)
    ends = [
        simulate_floating(replace(loop, substeps=s), theta, feet, ground).q[-1]
        for s in (4, 8, 16, 64)
    ]
    off = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
    assert off[0] > 2.8 * off[1] > 2.8**2 * off[2] > 0.0


def test_feet_that_slip_get_the_steps_that_they_need():
    loop, theta = solo(0.6)
    t = np.arange(600)[:, None] / 1000.0
    swing = 0.1 * np.sin(2.0 * np.pi * t) ** 3 * np.ones(12)
    rate = np.gradient(swing, 1e-3, axis=0)
    reference = Reference(1000.0, HOME + swing, rate, np.gradient(rate, 1e-3, axis=0))
    loop = replace(loop, reference=reference)
    feet, ground = solo_feet(loop), Ground(slip=0.002)
    coarse, fine = (
        simulate_floating(replace(loop, substeps=s), theta, feet, ground) for s in (1, 16)
    )
    assert np.abs(coarse.q - fine.q).max() < 1e-4
    off = coarse.wrenches["FL_FOOT"] - fine.wrenches["FL_FOOT"]
    assert np.sqrt(np.mean(off**2)) < 0.02 * 9.81 * loop.idim.robot.nominal[:, 0].sum()
    # without halved steps the feet chatter
    rough = simulate_floating(replace(loop, substeps=1), theta, feet, ground, tolerance=1e6)
    off = rough.wrenches["FL_FOOT"] - fine.wrenches["FL_FOOT"]
    assert np.sqrt(np.mean(off**2)) > 0.05 * 9.81 * loop.idim.robot.nominal[:, 0].sum()
    with pytest.raises(RolloutError, match=r"no step is short enough at t = 0\.0000 s"):
        simulate_floating(loop, theta, feet, ground, tolerance=1e-12)
    with pytest.raises(InputError, match="tolerance has to be positive"):
        simulate_floating(loop, theta, feet, ground, tolerance=0.0)


def test_a_simulated_motion_is_a_log():
    pytest.importorskip("mujoco")
    from legged import MOUNT, Contact, LeggedLog, residual

    robot = di.load_robot(urdf("talos"), floating=True)
    idim = di.build_idim(robot, "viscous")
    leg = np.array([0.0, 0.0, -0.411354, 0.859395, -0.448041, -0.001708])
    home = np.zeros(robot.n)
    home[:12] = np.tile(leg, 2)
    stiff = np.array([4000.0 if "leg" in name else 500.0 for name in robot.joint_names])
    stiff[["gripper" in name for name in robot.joint_names]] = 5.0
    drives = np.column_stack([stiff / 4000.0, stiff / 2000.0])
    theta = np.concatenate([robot.nominal.ravel(), drives.ravel()])
    feet = [foot(robot, name, (0.1, 0.06)) for name in ("left_sole_link", "right_sole_link")]
    loop = Loop(idim, pd(stiff, stiff / 40.0), held(home, seconds=0.3), substeps=4)
    motion = simulate_floating(loop, theta, feet, Ground(stiffness=2e5))
    columns = motion.log_columns
    assert columns["contact_left_sole_link"][-1] == 1.0
    assert columns["fz_left_sole_link"][-1] > 0.2 * 9.81 * robot.nominal[:, 0].sum()
    log = LeggedLog(
        "ours", 1000.0, MappingProxyType(columns), urdf("talos"), robot.joint_names, robot.links,
        robot.nominal, drives[:, 0], drives[:, 1],
        tuple(Contact(f.name, f.name, False) for f in feet), (), MOUNT, MappingProxyType({}),
    )  # fmt: skip
    assert residual(log) < 1e-9


def test_coulomb_friction_acts_with_a_smooth_sign():
    loop, _ = solo(0.0, width=np.full(12, 0.1), dq0=np.linspace(-0.4, 0.5, 18))
    robot = loop.idim.robot
    drives = np.tile([ROTOR, VISCOUS, 0.06, 0.01], 12)  # Ia fv fc off
    loop = replace(loop, idim=di.build_idim(robot, "coulomb-viscous"))
    motion = simulate_floating(loop, np.concatenate([robot.nominal.ravel(), drives]))
    model, tau, _ = stated(loop, motion, 0)
    speed = motion.dq[0, 6:]
    tau[6:] -= 0.06 * np.tanh(speed / 0.1) + 0.01
    expected = pin.aba(model, model.createData(), motion.q[0], motion.dq[0], tau)
    assert relative(motion.ddq[0], expected) < 1e-9


def test_drives_give_what_is_fed_forward_and_what_is_external_acts():
    loop, theta = solo(0.05)
    push = np.zeros((50, 18))
    push[:, 2] = 9.81 * loop.idim.robot.nominal[:, 0].sum()
    forward = np.full((50, 12), 0.02)
    free = simulate_floating(loop, theta)
    carried = simulate_floating(replace(loop, external=push), theta, forward=forward)
    assert np.allclose(carried.tau[0] - free.tau[0], 0.02, atol=1e-15)
    assert abs(carried.q[-1, 2]) < 0.05 * abs(free.q[-1, 2])


def test_what_does_not_fit_is_refused(box):
    loop, theta = solo(0.01)
    robot = loop.idim.robot
    fixed = di.load_robot(urdf("ur5"))
    model = di.build_idim(fixed, "viscous")
    arm = Loop(model, pd(np.full(6, 1.0), np.zeros(6)), held(np.zeros(6), seconds=0.01))
    with pytest.raises(InputError, match="fixed base"):
        simulate_floating(arm, np.ones(72))
    for control in (
        pd(np.full(12, 1.0), np.zeros(12), rate=1000.0),
        pid(np.full(12, 1.0), 1.0, 0.1),
    ):
        with pytest.raises(InputError, match="continuous controller without states"):
            simulate_floating(replace(loop, controller=control), theta)
    with pytest.raises(InputError, match=r"no link 'FL_FOOD'.*FL_FOOT"):
        foot(robot, "FL_FOOD")
    with pytest.raises(InputError, match="its base is fixed"):
        foot(fixed, "tool0")
    with pytest.raises(InputError, match="sole needs its half length"):
        foot(robot, "FL_FOOT", (0.1, -0.1))
    feet = solo_feet(loop)
    with pytest.raises(InputError, match="'FL_FOOT' is there twice"):
        simulate_floating(loop, theta, [*feet, feet[0]])
    with pytest.raises(InputError, match="is on body 99"):
        simulate_floating(loop, theta, [replace(feet[0], body=99)])
    with pytest.raises(InputError, match="noise and counts"):
        simulate_floating(replace(loop, noise=np.zeros((10, 12))), theta)
    with pytest.raises(InputError, match="feed-forward torque has shape"):
        simulate_floating(loop, theta, forward=np.zeros((3, 12)))
    with pytest.raises(RolloutError, match="not positive definite"):
        simulate_floating(loop, -theta, feet)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"exponent": 0.5}, "exponent has to be 1 or more"),
        ({"damping": -1.0}, "damping has to be 0 or more"),
        ({"friction": float("nan")}, "friction has to be"),
        ({"slip": 0.0}, "slip has to be above 0"),
        ({"normal": np.zeros(3)}, "normal needs 3 finite numbers"),
    ],
)
def test_a_ground_that_is_none_is_refused(options, said):
    with pytest.raises(InputError, match=said):
        Ground(**options)
