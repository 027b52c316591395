"""Logs of legged robots, and of an arm on a force plate, that another program made: MuJoCo.

MuJoCo moves a robot whose parameters are known and are not those of its URDF, over a ground on
which it stands and walks by itself. Every row of a log is one evaluation of MuJoCo's forward
dynamics: state, acceleration, motor torques and contact wrenches of the same instant, so that

    Y(q, v, a) theta = S^T tau + sum_l J_l^T f_l

holds to rounding. The URDF is what a user would have; the truth is in the log.

Columns, SI, wrenches acting ON the robot: `time`; `base_px..z base_qx..w` pose of the base
link's frame in the world; `base_vx..z base_wx..z` velocity of its origin and angular rate,
`base_ax..z base_dwx..z` second derivative of the origin's position (without gravity) and angular
acceleration, all in base axes; `imu_wx..z imu_ax..z` angular rate and specific force at the
mount, in the mount's axes; `q_ dq_ ddq_ tau_ qref_ dqref_` of each joint; `fx_ fy_ fz_` (and
`mx_ my_ mz_`, not of point feet) of each contact in its frame's axes about its origin and
`contact_` (0 or 1); the same six of each sensor between two bodies: the wrench that the part
before it exerts on the part beyond it, in the sensor's axes about its origin.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

import mujoco
import numpy as np
import pinocchio as pin
from robots import urdf
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation
from tables import write_table

from dynident.core.arrays import Array, Booleans, Integers, freeze_array
from dynident.core.inertia import to_inertial_parameters, to_pseudo_inertia, transform_body
from dynident.robot.rotations import remove_sign_flips

FORCE, MOMENT = ("fx", "fy", "fz"), ("mx", "my", "mz")
KNOTS = 250.0
"""Instants a second at which a motion is planned; between them it goes by cubic splines [Hz]."""
LEAD = 1.0
"""Time in which a robot settles on the ground before its log begins [s]."""
GRAVITY = np.array([0.0, 0.0, -9.81])
MOUNT = (np.array([0.04, -0.03, 0.05]), pin.rpy.rpyToMatrix(0.1, -0.2, 1.2))
"""Where the IMU sits in the base frame, and how its axes are turned."""


# ------------------------------------------------------------------------------- what is logged


@dataclass(frozen=True)
class Contact:
    """Where the world acts on the robot; `point` has no moments."""

    name: str
    frame: str
    point: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the wrench's columns."""
        parts = FORCE if self.point else FORCE + MOMENT
        return tuple(f"{part}_{self.name}" for part in parts)


@dataclass(frozen=True)
class Cut:
    """A force/torque sensor between two parts of the robot, and the truth of what is beyond."""

    name: str
    frame: str
    """`name`, `frame`: the frame of the URDF whose axes and origin the wrench has."""
    joints: tuple[str, ...]
    """Joints beyond it."""
    phi: Array
    """Inertial parameters of the body that it holds, in the sensor's frame, shape (10,)."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the wrench's columns."""
        return tuple(f"{part}_{self.name}" for part in FORCE + MOMENT)


@dataclass(frozen=True)
class LeggedLog:
    """A log and the truth behind it."""

    name: str
    rate: float
    """[Hz]"""
    columns: Mapping[str, Array] = field(repr=False)
    """Shape (samples,)."""
    urdf: Path
    """The robot as its user knows it."""
    joints: tuple[str, ...]
    bodies: tuple[str, ...]
    """`joints`, `bodies`: all joints of the robot in order; its bodies, the base link first."""
    phi: Array = field(repr=False)
    """True inertial parameters about the joint frames, shape (bodies, 10)."""
    Ia: Array = field(repr=False)
    fv: Array = field(repr=False)
    """`Ia`, `fv`: shape (joints,). True rotor inertias and viscous friction; there is no other
    friction."""
    contacts: tuple[Contact, ...]
    cuts: tuple[Cut, ...]
    mount: tuple[Array, Array]
    """Position and rotation (mount to base axes) of the IMU in the base frame."""
    locked: Mapping[str, float]
    """Joints that were held: they have no columns."""

    @property
    def theta(self) -> Array:
        """Standard parameters of all bodies and joints in the order of a viscous model."""
        return np.concatenate([self.phi.ravel(), np.column_stack([self.Ia, self.fv]).ravel()])

    def theta_beyond(self, cut: Cut) -> Array:
        """The same of what is beyond a sensor."""
        places = [self.joints.index(joint) for joint in cut.joints]
        phi = np.vstack([cut.phi, self.phi[[1 + k for k in places]]])
        drives = np.column_stack([self.Ia[places], self.fv[places]])
        return np.concatenate([phi.ravel(), drives.ravel()])

    @property
    def moving(self) -> tuple[str, ...]:
        """Joints that have columns."""
        return tuple(joint for joint in self.joints if joint not in self.locked)

    @property
    def samples(self) -> int:
        """Number of rows."""
        return len(self.columns["time"])

    def stack(self, names: Sequence[str]) -> Array:
        """Some columns side by side, shape (samples, names)."""
        return np.column_stack([self.columns[name] for name in names])

    def of_joints(self, signal: str) -> Array:
        """A signal of the moving joints, shape (samples, moving joints)."""
        return self.stack([f"{signal}_{joint}" for joint in self.moving])

    def of_base(self, signal: str) -> Array:
        """``p q v w a dw`` of the base, or with `imu_` before it ``imu_w imu_a``."""
        axes = "xyzw" if signal == "q" else "xyz"
        stem = signal if signal.startswith("imu") else f"base_{signal}"
        return self.stack([f"{stem}{axis}" for axis in axes])


def noisy(
    log: LeggedLog,
    seed: int,
    *,
    count: float = 2.0 * np.pi / 2**16,
    gyro: float = 2e-3,
    accelerometer: float = 2e-2,
    torque: float = 0.02,
    force: float = 1.0,
    moment: float = 0.05,
    position: float = 2e-4,
    attitude: float = 2e-4,
) -> LeggedLog:
    """The log as sensors give it; what no sensor gives (all derivatives) is gone.

    Parameters
    ----------
    log : LeggedLog
    seed : int
    count : float
        Step of the encoders [rad].
    gyro, accelerometer : float
        Standard deviations of the IMU [rad/s, m/s^2].
    torque : float
        Standard deviation as a share of each joint's own rms torque.
    force, moment : float
        Standard deviations of each component of all wrenches [N, Nm].
    position, attitude : float
        Of the base's pose [m, rad].
    """
    rng = np.random.default_rng(seed)
    samples = log.samples

    def white(deviation: float, width: int) -> Array:
        return deviation * rng.normal(size=(samples, width))

    columns = {"time": log.columns["time"]}

    def put(names: Sequence[str], values: Array) -> None:
        columns.update(zip(names, values.T, strict=True))

    put([f"base_p{axis}" for axis in "xyz"], log.of_base("p") + white(position, 3))
    turned = Rotation.from_quat(log.of_base("q")) * Rotation.from_rotvec(white(attitude, 3))
    put([f"base_q{axis}" for axis in "xyzw"], remove_sign_flips(turned.as_quat()))
    put([f"imu_w{axis}" for axis in "xyz"], log.of_base("imu_w") + white(gyro, 3))
    put([f"imu_a{axis}" for axis in "xyz"], log.of_base("imu_a") + white(accelerometer, 3))
    q, tau = log.of_joints("q"), log.of_joints("tau")
    put([f"q_{joint}" for joint in log.moving], np.round(q / count) * count)
    spread = torque * np.sqrt(np.mean(tau**2, axis=0))
    put([f"tau_{joint}" for joint in log.moving], tau + spread * white(1.0, tau.shape[1]))
    for signal in ("qref", "dqref"):
        put([f"{signal}_{joint}" for joint in log.moving], log.of_joints(signal))
    wrenches: tuple[Contact | Cut, ...] = (*log.contacts, *log.cuts)
    for each in wrenches:
        deviation = np.array([force] * 3 + [moment] * (len(each.columns) - 3))
        put(each.columns, log.stack(each.columns) + deviation * white(1.0, len(deviation)))
    for contact in log.contacts:
        columns[f"contact_{contact.name}"] = log.columns[f"contact_{contact.name}"]
    return replace(log, columns=settled(columns))


def write_csv(log: LeggedLog, path: Path, columns: Sequence[str] | None = None) -> None:
    """Write a log's columns, all of them unless told which, to the last digit."""
    names = list(log.columns) if columns is None else list(columns)
    write_table(path, names, log.stack(names))


def settled(columns: Mapping[str, Array]) -> Mapping[str, Array]:
    """Columns that nobody can change."""
    return MappingProxyType({name: freeze_array(values) for name, values in columns.items()})


# ------------------------------------------------------------------------ what Pinocchio says


def pin_state(log: LeggedLog, row: int) -> tuple[Array, Array, Array]:
    """A row in Pinocchio's layout: the base's spatial acceleration in its own axes."""
    c = log.columns
    joints = {joint: k for k, joint in enumerate(log.joints)}
    q = np.zeros(7 + len(joints))
    v, a = np.zeros((2, 6 + len(joints)))
    q[:3], q[3:7] = log.of_base("p")[row], log.of_base("q")[row]
    v[:3], v[3:6] = log.of_base("v")[row], log.of_base("w")[row]
    a[:3] = log.of_base("a")[row] - np.cross(v[3:6], v[:3])
    a[3:6] = log.of_base("dw")[row]
    for joint, k in joints.items():
        if joint in log.locked:
            q[7 + k] = log.locked[joint]
        else:
            q[7 + k], v[6 + k], a[6 + k] = (c[f"{s}_{joint}"][row] for s in ("q", "dq", "ddq"))
    return q, v, a


def wrench(log: LeggedLog, names: tuple[str, ...], row: int) -> Array:
    """Six components, the moments of point feet zero."""
    values = [log.columns[name][row] for name in names]
    return np.array(values + [0.0] * (6 - len(values)))


def residual(log: LeggedLog, rows: int = 40) -> float:
    """Largest residual of the equations of motion over the largest generalised force."""
    model = pin.buildModelFromUrdf(str(log.urdf), pin.JointModelFreeFlyer())
    data = model.createData()
    worst, size = 0.0, 0.0
    for row in np.linspace(0, log.samples - 1, rows).astype(int):
        q, v, a = pin_state(log, row)
        left = pin.computeJointTorqueRegressor(model, data, q, v, a) @ log.phi.ravel()
        left[6:] += log.Ia * a[6:] + log.fv * v[6:]
        right = np.zeros(model.nv)
        for k, joint in enumerate(log.joints):
            if joint not in log.locked:
                right[6 + k] = log.columns[f"tau_{joint}"][row]
        for contact in log.contacts:
            frame = model.getFrameId(contact.frame)
            J = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL)
            right += J.T @ wrench(log, contact.columns, row)
        off = left - right
        off[[6 + log.joints.index(joint) for joint in log.locked]] = 0.0
        worst, size = max(worst, np.abs(off).max()), max(size, np.abs(right).max())
    return worst / size


# ----------------------------------------------------------------------------------- the robots


@dataclass(frozen=True)
class Machine:
    """How a robot stands and is driven."""

    home: Mapping[str, float]
    """Joint positions of its stance; others are zero."""
    feet: tuple[str, ...]
    """Frames that stand on the ground; none of an arm."""
    sole: tuple[float, float] | None
    """Half length and half width of flat feet; points without."""
    legs: tuple[str, ...]
    """Beginnings of the names of the joints that place the feet."""
    stiffness: Mapping[str, float]
    damping: Mapping[str, float]
    """`stiffness`, `damping`: gains of the joints by the beginnings of their names; the longest
    that fits counts."""
    rotor: Mapping[str, float]
    """Rotor inertias about which the true ones lie, likewise."""
    cuts: tuple[str, ...]
    """Frames of sensors between bodies."""
    reach: float
    """Size of its motions: the height of the base over the feet [m]."""


def _quadruped(names: Mapping[str, tuple[float, float, float]]) -> dict[str, float]:
    return {
        f"{leg}_{joint}": angle
        for leg, angles in names.items()
        for joint, angle in zip(("HAA", "HFE", "KFE"), angles, strict=True)
    }


def _talos(side: str, sign: float) -> dict[str, float]:
    leg = (0.0, 0.0, -0.411354, 0.859395, -0.448041, -0.001708)
    arm = (0.25847 * sign, 0.35 * sign, -0.2 * sign, -0.9, 0.0, 0.0, 0.1)
    return {f"leg_{side}_{k}_joint": v for k, v in enumerate(leg, 1)} | {
        f"arm_{side}_{k}_joint": v for k, v in enumerate(arm, 1)
    }


ANKLES = tuple(f"leg_{side}_{k}" for side in ("left", "right") for k in (5, 6))
"""Of TALOS: softer than its knees, so that soles stay flat."""

MACHINES = {
    "solo12": Machine(
        home=_quadruped({
            "FL": (0.05, 0.8, -1.6), "FR": (-0.05, 0.8, -1.6),
            "HL": (0.05, -0.8, 1.6), "HR": (-0.05, -0.8, 1.6),
        }),
        feet=("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
        sole=None,
        legs=("FL", "FR", "HL", "HR"),
        stiffness={"": 15.0},
        damping={"": 0.3},
        rotor={"": 1.5e-3},
        cuts=(),
        reach=0.24,
    ),
    "anymal": Machine(
        home=_quadruped({
            "LF": (-0.1, 0.7, -1.2), "LH": (-0.1, -0.7, 1.2),
            "RF": (0.1, 0.7, -1.2), "RH": (0.1, -0.7, 1.2),
        }),
        feet=("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"),
        sole=None,
        legs=("LF", "LH", "RF", "RH"),
        stiffness={"": 350.0},
        damping={"": 10.0},
        rotor={"": 0.06},
        cuts=(),
        reach=0.45,
    ),
    "talos": Machine(
        home=_talos("left", 1.0) | _talos("right", -1.0) | {"torso_2_joint": 0.05},
        feet=("left_sole_link", "right_sole_link"),
        sole=(0.105, 0.065),
        legs=("leg_left", "leg_right"),
        stiffness={"leg": 4000.0, "torso": 2000.0, "arm": 300.0, "head": 100.0, "gripper": 2.0}
        | dict.fromkeys(ANKLES, 1500.0),
        damping={"leg": 100.0, "torso": 60.0, "arm": 10.0, "head": 3.0, "gripper": 0.03}
        | dict.fromkeys(ANKLES, 50.0),
        rotor={"leg": 0.6, "torso": 0.5, "arm": 0.08, "head": 0.03, "gripper": 2e-4},
        cuts=("wrist_left_ft_link", "arm_right_3_link", "leg_left_6_link"),
        reach=0.9,
    ),
    "ur5": Machine(
        home={"shoulder_lift_joint": -1.2, "elbow_joint": 1.2, "wrist_2_joint": 0.6},
        feet=(),
        sole=None,
        legs=(),
        stiffness={"": 800.0, "wrist": 150.0},
        damping={"": 60.0, "wrist": 6.0},
        rotor={"": 0.3, "wrist": 0.04},
        cuts=("forearm_link",),
        reach=0.6,
    ),
}  # fmt: skip
"""Robots by the names of `robots.URDFS`."""

PLATE = "plate"
"""Name of the contact that holds a robot without feet, at its base link."""


def longest_fit(table: Mapping[str, float], name: str) -> float:
    """Value of the longest beginning of a name."""
    return table[max((key for key in table if name.startswith(key)), key=len)]


@dataclass(frozen=True)
class Truth:
    """A robot whose parameters are not its URDF's."""

    machine: Machine
    path: Path
    model: pin.Model
    """Kinematics and the URDF's inertials."""
    phi: Array
    """Shape (bodies, 10)."""
    Ia: Array
    fv: Array
    """`Ia`, `fv`: shape (joints,)."""
    cuts: tuple[Cut, ...]
    held: tuple[Array, ...]
    """Shape (10,). Of each cut, the part of its body beyond it, in the joint's frame; all of the
    body where the sensor sits at the joint."""

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of all joints, the free one left out."""
        return tuple(self.model.names)[2:]


@cache
def true_robot(name: str, seed: int = 0) -> Truth:
    """A robot of `MACHINES` with consistent parameters up to 30 % from its URDF's.

    Each body's pseudo-inertia goes through a congruence: its masses are scaled, stretched,
    sheared and shifted, so that what was a body stays one.
    """
    machine, path = MACHINES[name], urdf(name)
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    maps = []
    for inertia in list(model.inertias)[1:]:
        J = to_pseudo_inertia(inertia.toDynamicParameters())
        com = J[:3, 3] / J[3, 3]
        spread = np.sqrt(np.trace(J[:3, :3] / J[3, 3] - np.outer(com, com)) / 3.0)
        stretch = np.eye(3) + rng.uniform(-0.08, 0.08, (3, 3))
        T = np.eye(4)
        T[:3, :3] = stretch
        T[:3, 3] = com - stretch @ com + rng.uniform(-0.3, 0.3, 3) * spread
        maps.append(T * np.sqrt(rng.uniform(0.75, 1.3)))

    def moved(body: int, phi: Array) -> Array:
        return to_inertial_parameters(maps[body] @ to_pseudo_inertia(phi) @ maps[body].T)

    phi = np.array(
        [moved(b, i.toDynamicParameters()) for b, i in enumerate(list(model.inertias)[1:])]
    )
    joints = list(model.names)[2:]
    Ia = np.array([longest_fit(machine.rotor, joint) for joint in joints])
    Ia = Ia * rng.uniform(0.7, 1.3, len(joints))
    fv = Ia * rng.uniform(2.0, 5.0, len(joints))
    cuts, held = [], []
    for frame in machine.cuts:
        index = model.getFrameId(frame)
        here = model.frames[index]
        first = here.parentFrame
        beyond = {first}
        for f in range(first + 1, len(model.frames)):
            if model.frames[f].parentFrame in beyond:
                beyond.add(f)
        body = here.parentJoint - 1
        if model.frames[first].type == pin.FrameType.JOINT:
            part = phi[body]
        else:
            fixed = [f for f in beyond if model.frames[f].parentJoint == here.parentJoint]
            inertias = [model.frames[f].placement.act(model.frames[f].inertia) for f in fixed]
            part = moved(body, np.sum([i.toDynamicParameters() for i in inertias], axis=0))
        back = here.placement.inverse()
        names = tuple(
            model.names[model.frames[f].parentJoint]
            for f in sorted(beyond)
            if model.frames[f].type == pin.FrameType.JOINT and f != first
        )
        cuts.append(Cut(frame, frame, names, transform_body(part, back.rotation, back.translation)))
        held.append(part)
    return Truth(
        machine,
        path,
        model,
        freeze_array(phi),
        freeze_array(Ia),
        freeze_array(fv),
        tuple(cuts),
        tuple(held),
    )


# ------------------------------------------------------------------------------ MuJoCo's robot


@dataclass(frozen=True)
class Built:
    """MuJoCo's model, and where in it things are."""

    model: mujoco.MjModel
    order: Integers
    """Place of each moving joint among MuJoCo's, in the robot's order."""
    moving: Integers
    """Moving joints among all of the robot's."""
    foot: Integers
    """Which foot each geom is, or -1, shape (geoms,)."""
    cut: tuple[tuple[int, Array, Array], ...]
    """Tuple of (body, rotation, translation). MuJoCo's body beyond each sensor, and the sensor's
    frame in it."""
    point: bool
    """Whether feet are points."""


def mujoco_robot(truth: Truth, locked: Mapping[str, float]) -> Built:
    """The robot in MuJoCo: bodies, hinges, motors with PD control, feet on a plane; no meshes."""
    model, machine = truth.model, truth.machine
    spec = mujoco.MjSpec()
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    spec.compiler.degree = False
    spec.option.gravity = GRAVITY
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    spec.option.tolerance = 1e-24  # of the cost: forces balance to rounding
    spec.option.iterations = 50
    spec.option.impratio = 3.0
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], contype=1, conaffinity=0
    )
    split: dict[
        int, tuple[Cut, pin.SE3, Array]
    ] = {}  # joints' bodies whose part beyond a sensor is a body of its own
    for cut, part in zip(truth.cuts, truth.held, strict=True):
        frame = model.frames[model.getFrameId(cut.frame)]
        if model.frames[frame.parentFrame].type != pin.FrameType.JOINT:
            split[frame.parentJoint] = (cut, frame.placement, part)
    bodies: dict[int, mujoco.MjsBody] = {}
    parts: dict[int, mujoco.MjsBody] = {}
    for j in range(1, model.njoints):
        name, up, place = model.names[j], model.parents[j], model.jointPlacements[j]
        holder = spec.worldbody if j == 1 else bodies[up]
        if up in split and name in split[up][0].joints:
            holder, place = parts[up], split[up][1].actInv(place)
        S = np.zeros(6) if j == 1 else model.joints[j].createData().S.ravel()
        if name in locked:
            assert not np.any(S[:3])
            place = place * pin.SE3(pin.exp3(S[3:] * locked[name]), np.zeros(3))
        body = holder.add_body(name=name, pos=place.translation, quat=wxyz(place.rotation))
        bodies[j] = body
        if j == 1:
            body.add_freejoint()
            body.add_site(name="imu", pos=MOUNT[0], quat=wxyz(MOUNT[1]))
        elif name not in locked:
            hinge = bool(np.any(S[3:]))
            body.add_joint(
                name=name,
                type=mujoco.mjtJoint.mjJNT_HINGE if hinge else mujoco.mjtJoint.mjJNT_SLIDE,
                axis=S[3:] if hinge else S[:3],
                armature=truth.Ia[j - 2],
                damping=truth.fv[j - 2],
            )
        phi = truth.phi[j - 1]
        if j in split:
            cut, placement, part = split[j]
            phi = phi - part
            parts[j] = body.add_body(
                name=f"beyond {cut.name}", pos=placement.translation, quat=wxyz(placement.rotation)
            )
            give_inertial(parts[j], cut.phi)
        give_inertial(body, phi)
    for frame in machine.feet:
        f = model.frames[model.getFrameId(frame)]
        if machine.sole is None:
            kind, size, centre = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-6, 0, 0], f.placement.translation
        else:
            half = 0.01
            kind, size = mujoco.mjtGeom.mjGEOM_BOX, [*machine.sole, half]
            centre = f.placement.act(np.array([0.0, 0.0, half]))
        bodies[f.parentJoint].add_geom(
            name=frame, type=kind, size=size, pos=centre, quat=wxyz(f.placement.rotation),
            contype=0, conaffinity=1, condim=3, friction=[0.9, 0, 0],
            solref=[0.02, 1.0], solimp=[0.0, 0.95, 0.01, 0.5, 2.0],
        )  # fmt: skip
    names = [joint for joint in truth.joints if joint not in locked]
    for joint in names:
        kp, kd = longest_fit(machine.stiffness, joint), longest_fit(machine.damping, joint)
        spec.add_actuator(
            name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT,
            gaintype=mujoco.mjtGain.mjGAIN_FIXED, gainprm=[1.0] + [0.0] * 9,
            biastype=mujoco.mjtBias.mjBIAS_AFFINE, biasprm=[0.0, -kp, -kd] + [0.0] * 7,
        )  # fmt: skip
    for kind in (mujoco.mjtSensor.mjSENS_GYRO, mujoco.mjtSensor.mjSENS_ACCELEROMETER):
        spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="imu")
    compiled = spec.compile()
    foot = np.full(compiled.ngeom, -1)
    for k, frame in enumerate(machine.feet):
        foot[compiled.geom(frame).id] = k
    places = []
    for cut in truth.cuts:
        frame = model.frames[model.getFrameId(cut.frame)]
        if frame.parentJoint in split and split[frame.parentJoint][0] is cut:
            places.append((compiled.body(f"beyond {cut.name}").id, np.eye(3), np.zeros(3)))
        else:
            owner = compiled.body(model.names[frame.parentJoint]).id
            places.append((owner, frame.placement.rotation, frame.placement.translation))
    return Built(
        model=compiled,
        order=np.array([compiled.joint(joint).dofadr[0] for joint in names]),
        moving=np.array([truth.joints.index(joint) for joint in names]),
        foot=foot,
        cut=tuple(places),
        point=machine.sole is None,
    )


def wxyz(rotation: Array) -> Array:
    """MuJoCo's quaternion of a rotation."""
    return np.asarray(pin.Quaternion(rotation).coeffs()[[3, 0, 1, 2]])


def give_inertial(body: mujoco.MjsBody, phi: Array) -> None:
    """Mass, centre of mass and inertia about it."""
    inertia = pin.Inertia.FromDynamicParameters(phi)
    xx, xy, xz, _, yy, yz, _, _, zz = inertia.inertia.ravel()
    body.mass, body.ipos = inertia.mass, inertia.lever
    body.fullinertia = [xx, yy, zz, xy, xz, yz]
    body.explicitinertial = True


# --------------------------------------------------------------------------------- the motions


@dataclass(frozen=True)
class Course:
    """What a motion asks of the robot at its knots: where base, feet and other joints are."""

    base: Array
    """Shift of the base from its stance [m] and roll, pitch, yaw [rad], shape (knots, 6)."""
    feet: Array
    """Shift of each foot from its stance [m], shape (knots, feet, 3)."""
    stance: Array
    """How much each foot carries, from 0 to 1, shape (knots, feet)."""
    others: Array
    """Shape (knots, joints). Shift of each joint from home; those of legs that stand are found from
    the rest."""


def bell(x: Array) -> Array:
    """``sin^2 (pi x)`` between 0 and 1, zero elsewhere."""
    return np.where((x > 0.0) & (x < 1.0), np.sin(np.pi * np.clip(x, 0.0, 1.0)) ** 2, 0.0)


def step(x: Array) -> Array:
    """From 0 to 1 over x from 0 to 1 with two continuous derivatives."""
    x = np.clip(x, 0.0, 1.0)
    return np.asarray(x**3 * (10.0 - 15.0 * x + 6.0 * x * x))


def wander(
    t: Array, amplitude: Sequence[float] | Array, lowest: float, highest: float,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Sums of five sinusoids, none beyond its amplitude, faded in over a second."""
    out = np.zeros((len(t), len(amplitude)))
    for column, most in enumerate(amplitude):
        share = rng.dirichlet(np.full(5, 3.0))
        tone = np.geomspace(lowest, highest, 5) * rng.uniform(0.9, 1.1, 5)
        phase = rng.uniform(0.0, 2.0 * np.pi, 5)
        out[:, column] = most * np.sin(2.0 * np.pi * np.outer(t, tone) + phase) @ share
    return out * step(t)[:, None]


def swings(truth: Truth, t: Array, rng: np.random.Generator, low: float, high: float) -> Array:
    """Motions of all joints that carry no weight, within their limits."""
    model = truth.model
    lower, upper = model.lowerPositionLimit[7:], model.upperPositionLimit[7:]
    amplitude = np.minimum(0.5, 0.35 * (upper - lower))
    if not truth.machine.feet:
        amplitude = np.minimum(1.4, 2.0 * amplitude)
    home = np.array([truth.machine.home.get(joint, 0.0) for joint in truth.joints])
    centre = np.clip(home, lower + amplitude, upper - amplitude)
    around = (centre - home) * step(t - t[0])[:, None]
    return np.asarray(around + wander(t, amplitude, low, high, rng))


def on_all_feet(truth: Truth, t: Array, base: Array, rng: np.random.Generator) -> Course:
    """The base moves, the feet stay; flat ones with the weight over their middle."""
    if truth.machine.sole:
        base[:, 0] -= 0.015 * step(t - t[0])
    feet = len(truth.machine.feet)
    others = swings(truth, t, rng, 0.2, 0.9)
    return Course(base, np.zeros((len(t), feet, 3)), np.ones((len(t), feet)), others)


def sway(truth: Truth, t: Array, rng: np.random.Generator) -> Course:
    """All six directions of the base at once."""
    h = truth.machine.reach
    if truth.machine.sole:
        amplitude, fastest = (0.015, 0.03, 0.04, 0.07, 0.11, 0.25), 0.7
    else:
        amplitude, fastest = (0.15 * h, 0.12 * h, 0.14 * h, 0.30, 0.28, 0.35), 1.6
    base = wander(t, amplitude, 0.15, fastest, rng)
    base[:, 2] -= 0.06 * h * step(t - t[0])
    return on_all_feet(truth, t, base, rng)


def squat(truth: Truth, t: Array, rng: np.random.Generator) -> Course:
    """Down and up, with a little of all else."""
    h = truth.machine.reach
    scale = 0.5 if truth.machine.sole else 1.0
    small = np.array([0.03 * h, 0.05 * h, 0.0, 0.10, 0.15, 0.2]) * scale
    base = wander(t, small, 0.15, 0.9, rng)
    depth, tempo = 0.13 * h * rng.uniform(0.9, 1.1), rng.uniform(0.55, 0.75)
    base[:, 2] -= depth * step(t) * (1.0 - np.cos(2.0 * np.pi * tempo * t)) + 0.04 * h * step(t)
    return on_all_feet(truth, t, base, rng)


def walk(truth: Truth, t: Array, rng: np.random.Generator) -> Course:
    """One foot after the other, the base over the three that stand, the fourth swinging."""
    h, places = truth.machine.reach, stance_of(truth)[1][:, :2]
    slowly = 1.0 if h < 0.3 else 1.4
    shift, swing = 0.35 * slowly, 0.45 * slowly
    turn = shift + swing
    base = wander(t, (0.0, 0.0, 0.06 * h, 0.22, 0.22, 0.25), 0.2, 1.2, rng)
    feet, stance = np.zeros((len(t), 4, 3)), np.ones((len(t), 4))
    aim, number = np.zeros(2), 0
    order = (2, 0, 3, 1)
    begin = 0.5
    while begin < t[-1]:
        foot = order[number % 4]
        rest = [k for k in range(4) if k != foot]
        goal = 0.8 * (places[rest].mean(axis=0) - places.mean(axis=0))
        base[:, :2] += np.outer(step((t - begin) / shift), goal - aim)
        aim = goal
        x = (t - begin - shift) / swing
        feet[:, foot, 2] += rng.uniform(0.2, 0.3) * h * bell(x)
        wave = bell(x) * np.sin(2.0 * np.pi * 2.0 * x)
        feet[:, foot, :2] += np.outer(wave, rng.uniform(-0.25, 0.25, 2) * h)
        stance[:, foot] *= 1.0 - step((t - begin - shift + 0.1) / 0.1) * (
            1.0 - step((t - begin - turn) / 0.1)
        )
        begin += turn
        number += 1
    return Course(base, feet, stance, np.zeros((len(t), len(truth.joints))))


def trot(truth: Truth, t: Array, rng: np.random.Generator) -> Course:
    """Diagonal feet in turn, on the spot."""
    h = truth.machine.reach
    period = 0.44 if h < 0.3 else 0.62
    base = wander(t, (0.03 * h, 0.03 * h, 0.05 * h, 0.08, 0.08, 0.2), 0.2, 1.0, rng)
    feet, stance = np.zeros((len(t), 4, 3)), np.ones((len(t), 4))
    phase = (t - 0.5) / period
    for foot in range(4):
        x = phase + (0.5 if foot in (1, 2) else 0.0)
        x = (x - np.floor(x)) / 0.4
        x = np.where(t > 0.5, x, 0.0)
        feet[:, foot, 2] = 0.22 * h * bell(x)
        stance[:, foot] = 1.0 - bell(x) ** 0.25
    return Course(base, feet, stance, np.zeros((len(t), len(truth.joints))))


def swing(truth: Truth, t: Array, rng: np.random.Generator) -> Course:
    """An arm on a base that stands still."""
    none = np.zeros((len(t), 0, 3))
    return Course(np.zeros((len(t), 6)), none, none[..., 0], swings(truth, t, rng, 0.1, 0.7))


def carried(truth: Truth, t: Array, rng: np.random.Generator) -> Course:
    """An arm on a base that is moved."""
    course = swing(truth, t, rng)
    base = wander(t, (0.15, 0.15, 0.15, 0.3, 0.3, 0.5), 0.15, 0.8, rng)
    return replace(course, base=base)


MOTIONS = {
    "sway": sway, "squat": squat, "walk": walk, "trot": trot, "swing": swing, "carried": carried,
}  # fmt: skip
"""Of robots with feet the first two, of quadrupeds the first four, of an arm the last two."""


def stance_of(truth: Truth) -> tuple[Array, Array]:
    """Home with the feet on the ground: configuration, and places of the feet."""
    model, machine = truth.model, truth.machine
    data = model.createData()
    q = pin.neutral(model)
    q[7:] = [machine.home.get(joint, 0.0) for joint in truth.joints]
    pin.framesForwardKinematics(model, data, q)
    if machine.feet:
        q[2] -= np.mean([data.oMf[model.getFrameId(f)].translation[2] for f in machine.feet])
        pin.framesForwardKinematics(model, data, q)
    places = [data.oMf[model.getFrameId(f)].translation.copy() for f in machine.feet]
    return q, np.array(places).reshape(-1, 3)


def configurations(truth: Truth, course: Course) -> Array:
    """The robot along a course: legs by Newton's method from knot to knot, (knots, nq)."""
    model, machine = truth.model, truth.machine
    data = model.createData()
    q, places = stance_of(truth)
    home, wanted = q.copy(), [pin.SE3.Identity() for _ in machine.feet]
    frames = [model.getFrameId(f) for f in machine.feet]
    legs = np.array([6 + k for k, j in enumerate(truth.joints) if j.startswith(machine.legs)])
    legs = legs if machine.legs else np.zeros(0, dtype=int)
    free = np.setdiff1d(np.arange(6, model.nv), legs)
    parts = 6 if machine.sole else 3
    out = np.empty((len(course.base), model.nq))
    for k, shift in enumerate(course.base):
        q[:3] = home[:3] + shift[:3]
        q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(*shift[3:])).coeffs()
        q[1 + free] = home[1 + free] + course.others[k, free - 6]
        for goal, place, move in zip(wanted, places, course.feet[k], strict=True):
            goal.translation = np.array([place[0], place[1], 0.0]) + move
        for _ in range(12 if k == 0 else 3):
            if not frames:
                break
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            error, slope = [], []
            for frame, goal in zip(frames, wanted, strict=True):
                off = pin.log6(data.oMf[frame].actInv(goal)).vector
                J = pin.getFrameJacobian(model, data, frame, pin.LOCAL)
                error.append(off[:parts])
                slope.append(J[:parts, legs])
                if parts == 3:
                    error[-1] = data.oMf[frame].rotation.T @ (
                        goal.translation - data.oMf[frame].translation
                    )
            q[1 + legs] += np.linalg.solve(np.vstack(slope), np.concatenate(error))
        out[k] = q
    out[:, 3:7] = remove_sign_flips(out[:, 3:7])
    return out


def feed_forward(truth: Truth, course: Course, q: Array, rate: float) -> Array:
    """Joint torques along a course by the URDF's own inertials, weight shared by the feet."""
    model, machine = truth.model, truth.machine
    data = model.createData()
    v = np.array([pin.difference(model, a, b) for a, b in zip(q[:-2], q[2:], strict=True)])
    v = np.vstack([v[:1], v, v[-1:]]) * rate / 2.0
    a = np.gradient(v, 1.0 / rate, axis=0)
    frames = [model.getFrameId(f) for f in machine.feet]
    parts = 6 if machine.sole else 3
    scale = np.array([1.0, 1.0, 1.0, 1e-2, 1e-2, 1e-2])[:parts]
    out = np.empty((len(q), model.nv - 6))
    for k in range(len(q)):
        tau = pin.rnea(model, data, q[k], v[k], a[k])
        if frames:
            pin.computeJointJacobians(model, data, q[k])
            pin.updateFramePlacements(model, data)
            J = np.vstack([pin.getFrameJacobian(model, data, f, pin.LOCAL)[:parts] for f in frames])
            S = np.outer(course.stance[k], scale).ravel() + 1e-9
            A = J[:, :6].T
            W = (A * S) @ A.T
            W += 1e-5 * np.trace(W) * np.eye(6)
            tau = tau - J.T @ (S * (A.T @ np.linalg.solve(W, tau[:6])))
        out[k] = tau[6:]
    return out


# ------------------------------------------------------------------------------- the simulation


def forward(built: Built, data: mujoco.MjData) -> None:
    """MuJoCo's forward dynamics, with the forces on point feet acting at their centres.

    MuJoCo has them act halfway into the ground, about which a foot's frame knows nothing.
    """
    model = built.model
    mujoco.mj_fwdPosition(model, data)
    if built.point and data.ncon:
        contact = data.contact
        contact.pos[:] = data.geom_xpos[contact.geom[:, 1]]
        mujoco.mj_makeConstraint(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_fwdActuation(model, data)
    mujoco.mj_fwdAcceleration(model, data)
    mujoco.mj_fwdConstraint(model, data)


def make(
    robot: str,
    motion: str,
    seconds: float,
    seed: int = 0,
    *,
    rate: int = 1000,
    truth: int = 0,
    locked: Mapping[str, float] | None = None,
    knots: float = KNOTS,
    lead: float = LEAD,
) -> LeggedLog:
    """Have a robot move in MuJoCo and log it, without noise.

    Parameters
    ----------
    robot : str
        One of `MACHINES`.
    motion : str
        One of `MOTIONS` that the robot can do.
    seconds : float
    seed : int
        Of the motion.
    rate : int
        Rows a second; a Runge-Kutta step of fourth order lies between two.
    truth : int
        Seed of the parameters: logs with the same one are of the same robot.
    locked : mapping of str to float, optional
        Joints held at a value, none of a standing leg.
    knots : float
        Instants a second at which the motion is planned [Hz].
    lead : float
        Time before the log begins [s].

    Raises
    ------
    RuntimeError
        When the robot falls.
    """
    real, locked = true_robot(robot, truth), dict(locked or {})
    rng = np.random.default_rng([zlib.crc32(motion.encode()), seed])
    at = np.arange(-lead, seconds + 0.1, 1.0 / knots)
    course = MOTIONS[motion](real, at, rng)
    planned = configurations(real, course)
    for joint, value in locked.items():
        planned[:, 7 + real.joints.index(joint)] = value
    torque = feed_forward(real, course, planned, knots)
    built = mujoco_robot(real, locked)
    run = standing if real.machine.feet else mounted
    track = run(real, built, course, at, planned, torque, round(seconds * rate), rate)
    return logged(f"{robot} {motion} {seed}", real, built, track, rate, locked)


@dataclass(frozen=True)
class Track:
    """What was the case at each row, as MuJoCo has it.

    Attributes
    ----------
    qpos, qvel, qacc : ndarray, shape (rows, ...)
        Of MuJoCo: quaternions begin with w, linear motion is in world axes.
    tau, aim, speed : ndarray, shape (rows, moving joints)
    feet, cuts : ndarray, shape (rows, ..., 6)
        Wrenches in the frames' axes about their origins; of an arm the first of `feet` is the
        plate's.
    touching : ndarray of bool, shape (rows, feet)
    """

    qpos: Array
    qvel: Array
    qacc: Array
    tau: Array
    aim: Array
    speed: Array
    feet: Array
    cuts: Array
    touching: Booleans

    @staticmethod
    def empty(rows: int, model: mujoco.MjModel, feet: int, cuts: int) -> Track:
        """Room for that many rows."""
        nq, nv, nu = model.nq, model.nv, model.nu
        return Track(
            qpos=np.zeros((rows, nq)),
            qvel=np.zeros((rows, nv)),
            qacc=np.zeros((rows, nv)),
            tau=np.zeros((rows, nu)),
            aim=np.zeros((rows, nu)),
            speed=np.zeros((rows, nu)),
            feet=np.zeros((rows, feet, 6)),
            cuts=np.zeros((rows, cuts, 6)),
            touching=np.zeros((rows, feet), dtype=bool),
        )


def targets(
    real: Truth, built: Built, t: Array, knots: Array, planned: Array, torque: Array
) -> tuple[Array, Array, Array]:
    """Positions, speeds and motor commands of the moving joints at instants t."""
    joints = [real.joints[k] for k in built.moving]
    path = CubicSpline(knots, planned[:, 7 + built.moving])
    aim, speed = path(t), path(t, 1)
    kp = np.array([longest_fit(real.machine.stiffness, joint) for joint in joints])
    kd = np.array([longest_fit(real.machine.damping, joint) for joint in joints])
    command = kp * aim + kd * speed + CubicSpline(knots, torque[:, built.moving])(t)
    return aim, speed, command


def standing(
    real: Truth, built: Built, course: Course, knots: Array, planned: Array, torque: Array,
    rows: int, rate: int,
) -> Track:  # fmt: skip
    """A robot on its feet."""
    model, h = built.model, 1.0 / rate
    data = mujoco.MjData(model)
    lead = round(-knots[0] * rate)
    half = np.arange(-2.0 * lead, 2.0 * rows + 2.0) * h / 2.0
    aim, speed, command = targets(real, built, half, knots, planned, torque)
    track = Track.empty(rows, model, len(real.machine.feet), len(real.cuts))
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    q[:7] = planned[0, [0, 1, 2, 6, 3, 4, 5]]
    q[1 + built.order] = planned[0, 7 + built.moving]
    lowest = 0.4 * q[2]
    qpos, qvel, qacc, ctrl = data.qpos, data.qvel, data.qacc, data.ctrl
    kq, ka = np.zeros((4, model.nv)), np.zeros((4, model.nv))
    stages = ((0.0, 0), (0.5, 1), (0.5, 1), (1.0, 2))
    for k in range(rows + lead):
        for i, (part, ahead) in enumerate(stages):
            qpos[:] = q
            if i:
                mujoco.mj_integratePos(model, qpos, kq[i - 1], part * h)
                qvel[:] = v + part * h * ka[i - 1]
            else:
                qvel[:] = v
            ctrl[:] = command[2 * k + ahead]
            forward(built, data)
            kq[i], ka[i] = qvel, qacc
            if i == 0 and k >= lead:
                row = k - lead
                track.qpos[row], track.qvel[row], track.qacc[row] = q, v, qacc
                track.tau[row] = data.actuator_force
                track.aim[row], track.speed[row] = aim[2 * k], speed[2 * k]
                tread(built, data, track.feet[row], track.touching[row])
                feel(built, data, track.cuts[row])
        v = v + h / 6.0 * (ka[0] + 2.0 * ka[1] + 2.0 * ka[2] + ka[3])
        mean = (kq[0] + 2.0 * kq[1] + 2.0 * kq[2] + kq[3]) / 6.0
        mujoco.mj_integratePos(model, q, mean, h)
        if not q[2] > lowest:
            raise RuntimeError(f"{real.path.stem} falls at t = {half[2 * k]:.2f} s")
    return track


def tread(built: Built, data: mujoco.MjData, wrench: Array, touching: Booleans) -> None:
    """Contact wrench of each foot in its frame, summed over its points of contact."""
    if not data.ncon:
        return
    contact = data.contact
    firsts = contact.efc_address
    bears = firsts >= 0
    geom, first = contact.geom[bears, 1], firsts[bears]
    foot, R = built.foot[geom], data.geom_xmat[geom].reshape(-1, 3, 3)
    axes = contact.frame[bears].reshape(-1, 3, 3)
    touching[foot] = True
    pushes = data.efc_force[first[:, None] + np.arange(3)]
    force = (pushes[:, None] @ axes @ R)[:, 0]
    np.add.at(wrench[:, :3], foot, force)
    if not built.point:
        place = ((contact.pos[bears] - data.geom_xpos[geom])[:, None] @ R)[:, 0]
        place[:, 2] += built.model.geom_size[geom, 2]
        np.add.at(wrench[:, 3:], foot, np.cross(place, force))


def feel(built: Built, data: mujoco.MjData, wrench: Array) -> None:
    """Wrench at each sensor, in its frame."""
    if not built.cut:
        return
    model = built.model
    mujoco.mj_rnePostConstraint(model, data)
    for k, (body, rotation, translation) in enumerate(built.cut):
        R = data.xmat[body].reshape(3, 3)
        turn, origin = R @ rotation, data.xpos[body] + R @ translation
        moment, force = data.cfrc_int[body, :3], data.cfrc_int[body, 3:]
        about = data.subtree_com[model.body_rootid[body]]
        wrench[k, :3] = force @ turn
        x, y, z = about - origin
        fx, fy, fz = force
        moment = moment + np.array([y * fz - z * fy, z * fx - x * fz, x * fy - y * fx])
        wrench[k, 3:] = moment @ turn


def mounted(
    real: Truth, built: Built, course: Course, knots: Array, planned: Array, torque: Array,
    rows: int, rate: int,
) -> Track:  # fmt: skip
    """A robot whose base is held, or led along its course; the plate feels what it takes.

    With the base's acceleration given, the rows of the joints are solved for theirs and those
    of the base say the wrench.
    """
    model, h = built.model, 1.0 / rate
    data = mujoco.MjData(model)
    half = np.arange(0.0, 2.0 * rows + 2.0) * h / 2.0
    aim, speed, command = targets(real, built, half, knots, planned, torque)
    pose, twist, rise = led(course, knots, half, planned[0, :3])
    track = Track.empty(rows, model, 1, len(real.cuts))
    M = np.zeros((model.nv, model.nv))
    arm = np.arange(6, model.nv)
    q, v = np.zeros(len(arm)), np.zeros(len(arm))
    q[built.order - 6], v[built.order - 6] = aim[0], speed[0]
    kq, ka = np.zeros((4, len(arm))), np.zeros((4, len(arm)))
    for k in range(rows):
        for i, (part, ahead) in enumerate(((0.0, 0), (0.5, 1), (0.5, 1), (1.0, 2))):
            now = 2 * k + ahead
            kq[i] = v + part * h * ka[i - 1] * (i > 0)
            data.qpos[:7], data.qvel[:6] = pose[now], twist[now]
            data.qpos[7:] = q + part * h * kq[i - 1] * (i > 0)
            data.qvel[6:] = kq[i]
            data.ctrl[:] = command[now]
            forward(built, data)
            mujoco.mj_fullM(model, data, M)
            pull = data.qfrc_actuator + data.qfrc_passive - data.qfrc_bias
            ka[i] = np.linalg.solve(M[6:, 6:], pull[6:] - M[6:, :6] @ rise[now])
            if i:
                continue
            data.qacc[:6], data.qacc[6:] = rise[now], ka[i]
            track.qpos[k], track.qvel[k], track.qacc[k] = data.qpos, data.qvel, data.qacc
            track.tau[k], track.aim[k], track.speed[k] = data.actuator_force, aim[now], speed[now]
            held = M[:6] @ data.qacc - pull[:6]
            track.feet[k, 0, :3] = held[:3] @ data.xmat[1].reshape(3, 3)
            track.feet[k, 0, 3:] = held[3:]
            track.touching[k] = True
            feel(built, data, track.cuts[k])
        q = q + h / 6.0 * (kq[0] + 2.0 * kq[1] + 2.0 * kq[2] + kq[3])
        v = v + h / 6.0 * (ka[0] + 2.0 * ka[1] + 2.0 * ka[2] + ka[3])
    return track


def led(course: Course, knots: Array, t: Array, start: Array) -> tuple[Array, Array, Array]:
    """Pose, velocity and acceleration of a base on its course, as MuJoCo has them."""
    path = CubicSpline(knots, course.base)
    shift, rate, rise = path(t), path(t, 1), path(t, 2)
    pose, twist, second = np.zeros((len(t), 7)), rate.copy(), rise.copy()
    pose[:, :3] = start + shift[:, :3]
    for k in range(len(t)):
        rpy, slope = shift[k, 3:], rate[k, 3:]
        pose[k, 3:] = wxyz(pin.rpy.rpyToMatrix(rpy))
        E = pin.rpy.computeRpyJacobian(rpy, pin.LOCAL)
        dE = pin.rpy.computeRpyJacobianTimeDerivative(rpy, slope, pin.LOCAL)
        twist[k, 3:] = E @ slope
        second[k, 3:] = E @ rise[k, 3:] + dE @ slope
    return pose, twist, second


def logged(
    name: str, real: Truth, built: Built, track: Track, rate: int, locked: Mapping[str, float]
) -> LeggedLog:
    """A track as a log has it."""
    w, x, y, z = track.qpos[:, 3:7].T
    quaternion = remove_sign_flips(np.column_stack([x, y, z, w]))
    R = Rotation.from_quat(quaternion).as_matrix()
    velocity = np.einsum("tji,tj->ti", R, track.qvel[:, :3])
    rise = np.einsum("tji,tj->ti", R, track.qacc[:, :3])
    spin, second = track.qvel[:, 3:6], track.qacc[:, 3:6]
    lever, turn = MOUNT
    felt = rise - np.einsum("tji,j->ti", R, GRAVITY)
    felt = felt + np.cross(second, lever) + np.cross(spin, np.cross(spin, lever))
    columns = {"time": np.arange(len(spin)) / rate}

    def put(stem: str, axes: str, values: Array) -> None:
        columns.update(
            {f"{stem}{axis}": column for axis, column in zip(axes, values.T, strict=True)}
        )

    put("base_p", "xyz", track.qpos[:, :3])
    put("base_q", "xyzw", quaternion)
    put("base_v", "xyz", velocity)
    put("base_w", "xyz", spin)
    put("base_a", "xyz", rise)
    put("base_dw", "xyz", second)
    put("imu_w", "xyz", spin @ turn)
    put("imu_a", "xyz", felt @ turn)
    order = built.order
    signals = {
        "q": track.qpos[:, 1 + order], "dq": track.qvel[:, order], "ddq": track.qacc[:, order],
        "tau": track.tau, "qref": track.aim, "dqref": track.speed,
    }  # fmt: skip
    for k, joint in enumerate(built.moving):
        for signal, values in signals.items():
            columns[f"{signal}_{real.joints[joint]}"] = values[:, k]
    contacts = tuple(Contact(foot, foot, built.point) for foot in real.machine.feet)
    if not contacts:
        base = next(f for f in list(real.model.frames)[2:] if f.type == pin.FrameType.BODY)
        contacts = (Contact(PLATE, base.name, False),)
    for k, contact in enumerate(contacts):
        columns.update(zip(contact.columns, track.feet[:, k].T, strict=False))
        columns[f"contact_{contact.name}"] = track.touching[:, k].astype(float)
    for k, cut in enumerate(real.cuts):
        columns.update(zip(cut.columns, track.cuts[:, k].T, strict=True))
    links = {
        f.parentJoint: f.name
        for f in reversed(list(real.model.frames))
        if f.type == pin.FrameType.BODY
    }
    return LeggedLog(
        name=name,
        rate=float(rate),
        columns=settled(columns),
        urdf=real.path,
        joints=real.joints,
        bodies=tuple(links[j] for j in range(1, real.model.njoints)),
        phi=real.phi,
        Ia=real.Ia,
        fv=real.fv,
        contacts=contacts,
        cuts=real.cuts,
        mount=MOUNT,
        locked=MappingProxyType(dict(locked)),
    )
