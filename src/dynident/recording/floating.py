"""What a log has of a floating base and of contacts: columns, conventions, the base's motion.

Rigid-body dynamics know no place and no steady speed: of the base's motion they need how it is
turned, its angular velocity and acceleration, and the proper acceleration of its origin (that
minus gravity), which an inertial measurement unit gives by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array, Booleans, freeze_array
from dynident.core.errors import InputError, check_type
from dynident.core.options import Options
from dynident.core.schema import Name, Number, Vector3
from dynident.filters.filters import differentiate_twice, filter_zero_phase
from dynident.readers.orientation import FORMS, ORIENTATIONS, normalise_rows
from dynident.robot.contacts import MARKS
from dynident.robot.model import WRENCH, Equations, Robot
from dynident.robot.rotations import (
    compute_lever_acceleration,
    convert_quaternions,
    convert_rpy,
    multiply_by_conjugate,
    remove_sign_flips,
)

BASE: dict[str, tuple[str, ...]] = {
    "base_position": ("base_px", "base_py", "base_pz"),
    "base_twist": ("base_vx", "base_vy", "base_vz", "base_wx", "base_wy", "base_wz"),
    "base_acceleration": ("base_ax", "base_ay", "base_az", "base_dwx", "base_dwy", "base_dwz"),
    "imu": ("imu_wx", "imu_wy", "imu_wz", "imu_ax", "imu_ay", "imu_az"),
    "baseref_position": ("baseref_px", "baseref_py", "baseref_pz"),
    **{
        signal: tuple(f"{signal.partition('_')[0]}_{end}" for end in form.columns)
        for signal, form in ORIENTATIONS.items()
    },
}
"""Signals of a base and the columns that hold them by themselves."""
QUATERNIONS = ("base_orientation", "baseref_orientation")
"""Those that are quaternions, as which all orientations are kept."""
TURNS = np.radians(1.0)
"""A base that turns by less stands."""


@dataclass(frozen=True)
class FloatingOptions(Options):
    """How the columns of a floating base and of contacts are meant, and what a log states."""

    equations: Annotated[
        Equations | None,
        "that the log states: `full`, `joints` alone, `base` alone (no torques; the wrench of a "
        "sensor in the chain), or the `null-space` of contacts that nothing measures; what its "
        "columns allow by default",
    ] = None
    base: Annotated[
        Literal["moving", "fixed"],
        "whether the base moves as the log says, or stands with its link's axes along the world's",
    ] = "moving"
    quaternion: Annotated[
        Literal["xyzw", "wxyz"], "order of the columns that `columns.base_orientation` names"
    ] = "xyzw"
    base_axes: Annotated[
        Literal["base", "world"], "of the logged twist and acceleration of the base"
    ] = "base"
    imu_position: Annotated[Vector3, "of the inertial measurement unit in the base [m]"] = (
        0.0, 0.0, 0.0,
    )  # fmt: skip
    imu_rpy: Annotated[
        Vector3, "its orientation in the base: roll, pitch, yaw about fixed axes [rad]"
    ] = (0.0, 0.0, 0.0)
    locked: Annotated[
        Mapping[Name, Number] | None,
        "joints that were held at a value while the log was taken, which may lack their columns: "
        "their torque is not used [rad or m]",
    ] = None
    contact_speed: Annotated[
        Annotated[Number, Field(gt=0.0)],
        "a contact that is slower touches, where the log does not say which do [m/s]",
    ] = 0.02
    contact_force: Annotated[
        Annotated[Number, Field(gt=0.0)],
        "a contact whose measured force is larger touches, where it is measured [N]",
    ] = 5.0
    tared: Annotated[
        bool,
        "whether sensors of forces were tared before the log: what of them is estimated is its "
        "own then, and else that of all logs",
    ] = False


OF_BASES = ("base", "quaternion", "base_axes", "imu_position", "imu_rpy")
"""Keys of `FloatingOptions` that are of bases which float, and those of contacts or sensors."""
OF_CONTACTS = ("contact_speed", "contact_force", "tared")


def refuse_idle_keys(label: str, given: FloatingOptions, robot: Robot) -> None:
    """Refuse, an `InputError`, what is said of a log of a base or contacts that a robot has not."""

    def list_said(keys: Sequence[str], equations: Equations) -> list[str]:
        said = [key for key in keys if getattr(given, key) != getattr(FloatingOptions, key)]
        return [*said, *[f"equations = {equations!r}"] * (given.equations == equations)]

    name = robot.name
    for key in [] if robot.floating else list_said(OF_BASES, "base"):
        raise InputError(f"{label}: {key} needs a floating base; read {name} with floating = true")
    for key in [] if robot.contacts or robot.limbs else list_said(OF_CONTACTS, "null-space"):
        raise InputError(f"{label}: {key} needs contacts or force sensors; {name} has none")


@dataclass(frozen=True)
class LoggedBase:
    """A floating base as it was logged; what is missing is None."""

    position: Array | None = None
    """Of the base link's origin in the world [m], shape (samples, 3)."""
    orientation: Array | None = None
    """Unit quaternion x y z w from the base's axes to the world's, without flips, shape (samples,
    4)."""
    twist: Array | None = None
    """Velocity of the origin, angular velocity, in the base's axes [m/s, rad/s], shape (samples,
    6)."""
    acceleration: Array | None = None
    """Second derivative of the position, angular acceleration, in the base's axes, shape (samples,
    6)."""
    gyro: Array | None = None
    force: Array | None = None
    """`gyro`, `force`: angular velocity and specific force (acceleration minus gravity) of the
    inertial measurement unit, in the base's axes [rad/s, m/s^2], shape (samples, 3)."""
    mount: Array | None = None
    """Where the unit is in the base [m], shape (3,)."""
    turn: Array | None = None
    """By which its axes were turned to the base's, shape (3, 3)."""
    fixed: bool = False
    """Whether the base stands, with its axes along the world's."""
    asked_position: Array | None = None
    asked_orientation: Array | None = None
    """`asked_position`, `asked_orientation`: where the base was asked to be, shapes (samples, 3)
    and (samples, 4)."""

    @property
    def asked(self) -> LoggedBase | None:
        """The base as it was asked to move; None where the log does not have all of that."""
        if self.asked_position is None or self.asked_orientation is None:
            return None
        return LoggedBase(self.asked_position, self.asked_orientation)

    def __post_init__(self) -> None:
        for label in SAMPLED:
            signal = getattr(self, label)
            if signal is not None:
                object.__setattr__(self, label, freeze_array(signal))

    def rows(self, start: int, stop: int) -> LoggedBase:
        """Some of the samples."""
        cut: dict[str, Any] = {
            label: None if (own := getattr(self, label)) is None else own[start:stop]
            for label in SAMPLED
        }
        return replace(self, **cut)


SAMPLED = (
    "position", "orientation", "twist", "acceleration", "gyro", "force", "asked_position",
    "asked_orientation",
)  # fmt: skip


@dataclass(frozen=True)
class BaseMotion:
    """Motion of a base as equations need it."""

    pose: Array
    """Shape (samples, 7). Position and quaternion x y z w; zeros and the unit quaternion where
    nobody knows."""
    twist: Array
    """Shape (samples, 6). In the base's axes; its velocity is zero where nobody knows, which
    changes no wrench."""
    acceleration: Array
    """In the base's axes, the linear one of the origin as it is (no spatial one), shape (samples,
    6)."""
    proper: bool
    """Whether the linear acceleration is minus gravity."""
    oriented: bool
    """Whether the orientation is known."""
    still: bool
    """Whether the base stands."""
    placed: bool = False
    """Whether its position is known."""
    mount: Array | None = None
    turn: Array | None = None
    """`mount`, `turn`: where an inertial measurement unit is said to be, and how it is turned,
    shapes (3,) and (3, 3)."""

    def __post_init__(self) -> None:
        for label in ("pose", "twist", "acceleration"):
            object.__setattr__(self, label, freeze_array(getattr(self, label)))

    def motion(self, gravity: Array) -> tuple[Array, Array, Array]:
        """Configuration, twist and spatial acceleration, as the kernels have them.

        Gravity is that in the world [m/s^2].
        """
        acceleration = self.acceleration.copy()
        if self.proper:
            acceleration[:, :3] += np.einsum(
                "tji,j->ti", convert_quaternions(self.pose[:, 3:]), gravity
            )
        # spatial = classical - omega x v (Featherstone 2008, section 2.11)
        acceleration[:, :3] -= np.cross(self.twist[:, 3:], self.twist[:, :3])
        return self.pose, self.twist, acceleration


def normalise_quaternions(columns: Array, order: str) -> Array:
    """Unit quaternions x y z w without flips, from logged columns that are rotations."""
    found = columns if order == "xyzw" else columns[:, [1, 2, 3, 0]]
    return remove_sign_flips(normalise_rows(found))


def extract_base(
    signals: Mapping[str, Array], robot: Robot, wanted: FloatingOptions, name: str
) -> LoggedBase | None:
    """The base of a floating robot from a log's signals; None where the log has nothing of it."""
    if not robot.floating:
        return None
    if wanted.base == "fixed":
        return LoggedBase(fixed=True)
    quaternion, asked = (
        None if label not in signals else normalise_quaternions(signals[label], wanted.quaternion)
        for label in QUATERNIONS
    )
    twist, acceleration = signals.get("base_twist"), signals.get("base_acceleration")
    if wanted.base_axes == "world" and (twist is not None or acceleration is not None):
        if quaternion is None:
            raise InputError(
                f"{name}: base_axes = 'world', but the log has no orientation of the base"
            )
        R = convert_quaternions(quaternion)
        turned = (
            None
            if each is None
            else np.einsum("tij,tki->tkj", R, each.reshape(-1, 2, 3)).reshape(-1, 6)
            for each in (twist, acceleration)
        )
        twist, acceleration = turned
    gyro = force = None
    turn = convert_rpy(wanted.imu_rpy)
    if "imu" in signals:
        gyro, force = signals["imu"][:, :3] @ turn.T, signals["imu"][:, 3:] @ turn.T
    base = LoggedBase(
        signals.get("base_position"),
        quaternion,
        twist,
        acceleration,
        gyro,
        force,
        np.array(wanted.imu_position),
        turn,
        asked_position=signals.get("baseref_position"),
        asked_orientation=asked,
    )
    known = any(getattr(base, label) is not None for label in SAMPLED)
    return base if known else None


def filter_base_motion(
    base: LoggedBase, runs: tuple[tuple[int, int], ...], samples: int, rate: float, cutoff: float,
    measured: bool, name: str,
) -> BaseMotion:  # fmt: skip
    """The base's motion, filtered and differentiated like the joints'.

    Angular velocity and acceleration come from the quaternion by
    ``[omega, 0] = 2 conj(q) dq`` and ``[domega, .] = 2 conj(q) ddq``, never through angles; where
    it is `measured`, the logged twist and acceleration are taken instead.
    """
    pose = np.zeros((samples, 7))
    pose[:, 6] = 1.0
    twist, acceleration = np.zeros((samples, 6)), np.zeros((samples, 6))
    if base.fixed:
        return BaseMotion(pose, twist, acceleration, proper=False, oriented=True, still=True)
    followed, others = sort_base_signals(base, measured, name)
    for start, stop in runs:
        run = slice(start, stop)
        signals: dict[str, tuple[Array, ...]] = {}
        for label in (*followed, *others):
            signal = filter_zero_phase(getattr(base, label)[run], cutoff, rate)
            if label == "orientation":
                signal /= np.linalg.norm(signal, axis=1, keepdims=True)
            slopes = differentiate_twice(signal, rate) if label in followed else ()
            signals[label] = (signal, *slopes)
        pose[run], twist[run], acceleration[run] = compose_base_motion(signals, base.mount)
    return describe_base_motion(base, "force" in others, pose, twist, acceleration)


def describe_base_motion(
    base: LoggedBase, proper: bool, pose: Array, twist: Array, acceleration: Array
) -> BaseMotion:
    """The motion of a moving base, with what is known of it."""
    return BaseMotion(
        pose,
        twist,
        acceleration,
        proper=proper,
        oriented=base.orientation is not None,
        still=False,
        placed=base.position is not None,
        mount=base.mount,
        turn=base.turn,
    )


def sort_base_signals(
    base: LoggedBase, measured: bool, name: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Signals of a moving base that are differentiated, and those that are taken as they are.

    Where its derivatives are `measured`, the logged twist and acceleration are taken; else its
    pose and what an inertial measurement unit tells. Refused where they do not tell its
    acceleration, or where gravity points to.
    """
    here = [label for label in SAMPLED if getattr(base, label) is not None]
    # without the orientation nobody knows where gravity points to
    if measured and "twist" in here and "orientation" in here:
        known = [each for each in ("position", "orientation") if each in here]
        if "acceleration" in here:
            return (), (*known, "twist", "acceleration")
        return ("twist",), tuple(known)
    inertial = "gyro" in here and "force" in here
    if not inertial and not ("position" in here and "orientation" in here):
        raise InputError(
            f"{name}: the base's acceleration, or the direction of gravity, is not in the log; it "
            "takes imu_w and imu_a, or base_p and base_q, or base_q, base_v and base_w with "
            "derivatives = 'measured'"
        )
    followed = tuple(each for each in ("position", "orientation", "gyro") if each in here)
    return followed, ("force",) if inertial else ()


def compose_base_motion(
    signals: Mapping[str, tuple[Array, ...]], mount: Array | None
) -> tuple[Array, Array, Array]:
    """Pose, twist and acceleration of a base, shapes (samples, 7), (samples, 6), (samples, 6).

    The signals have the names of `LoggedBase` and are filtered, with first and second derivatives
    of those that `sort_base_signals` has differentiated; the mount is of the inertial unit [m].
    """
    samples = len(next(iter(signals.values()))[0])
    pose, (twist, acceleration) = np.zeros((samples, 7)), np.zeros((2, samples, 6))
    pose[:, 6] = 1.0
    size = np.ones((samples, 1))
    if "position" in signals:
        pose[:, :3] = signals["position"][0]
    if "orientation" in signals:
        size = np.linalg.norm(signals["orientation"][0], axis=1, keepdims=True)
        pose[:, 3:] = signals["orientation"][0] / size
    if "twist" in signals:
        twist[:] = signals["twist"][0]
        if "acceleration" in signals:
            acceleration[:] = signals["acceleration"][0]
        else:
            acceleration[:] = signals["twist"][1]
            acceleration[:, :3] += np.cross(twist[:, 3:], twist[:, :3])
        return pose, twist, acceleration
    if "position" in signals and "orientation" in signals:
        R = convert_quaternions(pose[:, 3:])
        _, velocity, second = signals["position"]
        twist[:, :3] = np.einsum("tji,tj->ti", R, velocity)
        acceleration[:, :3] = np.einsum("tji,tj->ti", R, second)
    if "gyro" in signals:
        twist[:, 3:], acceleration[:, 3:] = signals["gyro"][:2]
    elif "orientation" in signals:
        # the filtered quaternion is p = s u, |u| = 1: of dp = ds u + s du and of ddp the vectors
        # of conj(u) dp and conj(u) ddp are s omega / 2 and s domega / 2 + ds omega
        _, first, second = signals["orientation"]
        twist[:, 3:] = 2.0 * multiply_by_conjugate(pose[:, 3:], first) / size
        growth = np.sum(pose[:, 3:] * first, axis=1, keepdims=True)
        turned = 2.0 * multiply_by_conjugate(pose[:, 3:], second)
        acceleration[:, 3:] = (turned - 2.0 * growth * twist[:, 3:]) / size
    if "force" in signals:
        assert mount is not None
        w, spin = twist[:, 3:], acceleration[:, 3:]
        acceleration[:, :3] = signals["force"][0] - compute_lever_acceleration(w, spin, mount)
    return pose, twist, acceleration


def measure_base_turn(motion: BaseMotion, runs: tuple[tuple[int, int], ...]) -> float:
    """By how much the direction of gravity, or the base, turns at most over a log [rad]."""
    rates = np.concatenate([motion.twist[a:b, 3:] for a, b in runs])
    if not motion.oriented:
        return float(np.max(np.ptp(rates, axis=0))) if len(rates) else 0.0
    first = motion.pose[runs[0][0], 3:]
    products = np.concatenate([motion.pose[a:b, 3:] @ first for a, b in runs])
    return float(2.0 * np.arccos(np.clip(np.min(np.abs(products)), 0.0, 1.0)))


def is_arm(robot: Robot) -> bool:
    """Whether all that moves is on one joint: an arm, rather than a robot with legs."""
    return sum(joint.parent == 0 for joint in robot.joints) == 1


def tells_base(columns: Collection[str], arm: bool = False) -> bool:
    """Whether columns hold a base's acceleration, and where gravity points to, and contacts.

    Without these an inertial unit may well be on an arm that stands; of an `arm` with them too, for
    a force sensor may be at its wrist.
    """
    if not any(column.partition("_")[0] in MARKS for column in columns):
        return False
    held = {signal for signal, names in BASE.items() if {*names} <= {*columns}}
    turned = any(f"base_{form}" in held for form in FORMS)
    return ("imu" in held and not arm) or ("base_position" in held and turned)


def choose_floating(given: FloatingOptions | None) -> FloatingOptions:
    """How columns of a base and of contacts are meant, the usual way where nothing is said."""
    if given is None:
        return FloatingOptions()
    check_type(
        "floating", given, FloatingOptions, "dynident.load_robot(file, floating=True) frees a base"
    )
    return given


def find_logged_robot(robot: Robot) -> Robot:
    """The robot whose columns a log has: of a limb its carrier; with sensors as contacts."""
    if robot.carrier is None or robot.seat is None:
        sensors = [limb.contacts[0] for limb in robot.limbs]
        return replace(robot, contacts=(*robot.contacts, *sensors))
    return replace(robot.carrier, contacts=(robot.seat, *robot.contacts[1:]))


def list_floating_columns(robot: Robot) -> dict[str, tuple[str, ...]]:
    """Columns of a robot's base and contacts by their signals, as files have them."""
    found = dict(BASE) if robot.floating else {}
    for contact in robot.contacts:
        parts = WRENCH[: contact.components]
        found[f"wrench_{contact.name}"] = tuple(f"{part}_{contact.name}" for part in parts)
        found[f"contact_{contact.name}"] = (f"contact_{contact.name}",)
    return found | {gauge.signal: gauge.columns for gauge in robot.gauges}


def extract_contacts(
    signals: Mapping[str, Array], robot: Robot, wanted: FloatingOptions
) -> tuple[dict[str, Array], dict[str, Booleans]]:
    """Wrenches, and which contacts touch where the log or their force says it, by name."""
    wrenches: dict[str, Array] = {}
    touching: dict[str, Booleans] = {}
    for contact in robot.contacts:
        name = contact.name
        wrench, told = signals.get(f"wrench_{name}"), signals.get(f"contact_{name}")
        if wrench is not None:
            wrenches[name] = wrench
            unloaded = wrench[:, :3] - contact.bias[:3]
            touching[name] = np.linalg.norm(unloaded, axis=1) > wanted.contact_force
        if told is not None:
            touching[name] = told[:, 0] > 0.5
    known = {gauge.name: signals.get(gauge.signal) for gauge in robot.gauges}
    wrenches |= {name: own for name, own in known.items() if own is not None}
    return wrenches, touching
