"""Any robot file into a `Robot`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from dynident.core.arrays import Array, freeze_array
from dynident.core.errors import InputError, check_type
from dynident.core.inertia import to_com, to_inertia_matrix, transform_body
from dynident.core.schema import read_toml, validate_data
from dynident.core.text import suggest_nearest
from dynident.robot.dh import BASE, UNIT, build_dh_joints, read_dh_inertials
from dynident.robot.drives import Drives
from dynident.robot.geometry import freeze_placement
from dynident.robot.loops import add_loops, assemble, lock_loops, take_loops
from dynident.robot.mimics import list_mimic_warnings
from dynident.robot.mjcf import load_mjcf
from dynident.robot.model import HUGE, HYSTERESIS, Gauge, Joint, Robot
from dynident.robot.spec import DHJointSpec, DriveSpec, LoopSpec, RobotSpec, TransmissionSpec
from dynident.robot.urdf import load_urdf, make_xacro_error, refuse_many_joints


def load_robot(
    path: str | Path,
    *,
    floating: bool = False,
    gravity: npt.ArrayLike | None = None,
    drives: Sequence[DriveSpec] = (),
    transmission: TransmissionSpec | None = None,
    locked: Mapping[str, float] | None = None,
    loops: Sequence[LoopSpec] = (),
    closed_as: Robot | None = None,
) -> Robot:
    """Read a robot from a URDF (.urdf), an MJCF (.xml) or a robot file (.toml, see `RobotSpec`).

    >>> di.load_robot("arm.urdf").links
    ('upper', 'fore')

    Parameters
    ----------
    path : str or Path
    floating : bool
        Add a free-flyer joint at the root link, even if the file does not have one.
    gravity : array_like, shape (3,), optional
        In the base frame (world frame when floating), instead of the file's [m/s^2].
    drives : sequence of DriveSpec
        Each replaces the file's drive of its joint.
    transmission : TransmissionSpec, optional
        Instead of the file's.
    locked : mapping of str to float, optional
        Joints that are fixed at a value, in addition to the file's [rad or m].
    loops : sequence of LoopSpec
        Closed kinematic loops, in addition to the file's.
    closed_as : Robot, optional
        Another robot with the same joints, whose loops are used, too.

    Raises
    ------
    InputError
        For files that cannot be read, unknown keys and joints, and wrong shapes.
    """
    if "\n" in str(path):
        raise InputError("load_robot takes the path of a file, not its text; write it to a file")
    check_type("floating", floating, bool, "whether the base is free")
    if transmission is not None:
        check_type("transmission", transmission, TransmissionSpec, "dynident.robot.spec has it")
    if locked is not None:
        check_type("locked", locked, Mapping, "joints with the values at which they stay")
    path = Path(path)
    loader = LOADERS.get(path.suffix.lower())
    if path.suffix.lower() == ".xacro":
        raise make_xacro_error(path, path)
    if loader is None:
        raise InputError(
            f"{path}: a robot file ends in {', '.join(LOADERS)}, not in {path.suffix or 'nothing'}"
        )
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    robot = loader(path, floating, dict(locked or {}))
    robot = replace(robot, warnings=(*robot.warnings, *list_inertial_warnings(robot)))
    refuse_many_joints(robot.n, path)
    if gravity is not None:
        try:
            vector = np.asarray(gravity, dtype=float)
        except (TypeError, ValueError):
            vector = np.empty(0)
        if vector.shape != (3,) or not np.all(np.abs(vector) < HUGE):
            raise InputError(f"{path}: gravity is {gravity!r} but has to be 3 finite numbers")
        robot = replace(robot, gravity=freeze_array(vector))
    robot = replace_drives(robot, drives, transmission, path)
    robot = add_loops(robot, loops, path)
    if closed_as is not None:
        robot = take_loops(robot, closed_as)
    robot = assemble(robot, path)
    return replace(robot, warnings=(*list_mimic_warnings(robot), *robot.warnings))


def _load_from_toml(path: Path, floating: bool, locked: dict[str, float]) -> Robot:
    data = read_toml(path)
    if isinstance(data.get("robot"), dict):
        of = data["robot"].get("file")
        here = f", in {path.parent / of}" if isinstance(of, str) else ""
        raise InputError(f"{path}: is a study, not a robot: its robot is key robot.file{here}")
    spec = validate_data(RobotSpec, data, path)
    floating = floating or spec.floating
    if floating and spec.base is not None:
        raise InputError(f"{path}: key 'base' needs a fixed base; a floating base's pose is logged")
    locked = {**spec.locked, **locked}
    if spec.convention is not None:
        robot = _build_from_table(spec, floating, path)
    else:
        key, name = ("urdf", spec.urdf) if spec.urdf is not None else ("mjcf", spec.mjcf)
        source = path.parent / str(name)
        if not source.is_file():
            raise InputError(f"{path}: key {key!r}: there is no file {source}")
        load = load_urdf if key == "urdf" else load_mjcf
        robot = _set_base_gravity(load(source, floating, locked), spec)
    if spec.name is not None:
        robot = replace(robot, name=spec.name)
    robot = add_loops(lock_joints(robot, locked, path), spec.loop, path)
    return replace_drives(robot, spec.drive, spec.transmission, path)


Loader = Callable[[Path, bool, dict[str, float]], Robot]


def _then_lock(load: Loader) -> Loader:
    return lambda path, floating, locked: lock_joints(load(path, floating, locked), locked, path)


LOADERS: dict[str, Loader] = {
    ".urdf": _then_lock(load_urdf),
    ".toml": _load_from_toml,
    ".xml": _then_lock(load_mjcf),
}
"""Readers of robot files by suffix: (path, floating, locked joints) to a robot."""


def _build_from_table(spec: RobotSpec, floating: bool, path: Path) -> Robot:
    assert spec.convention is not None
    joints = build_dh_joints(
        spec.joint, spec.convention, angles=spec.angles, base=spec.base, place=path
    )
    robot = Robot(
        name=path.stem,
        joints=joints,
        nominal=read_dh_inertials(spec.joint, floating),
        drives=Drives.direct(len(joints)),
        floating=floating,
        base_link=BASE,
        source=path,
    )
    return robot if spec.gravity is None else replace(robot, gravity=freeze_array(spec.gravity))


def read_table_lengths(robot: Robot) -> dict[str, tuple[float, Array]]:
    """Lengths of the DH table of a robot that are not zero, as ``a2`` and ``d3`` by their rows.

    Each [m] with what the joints' translations change with it, shape (n, 3). Empty for robots of
    no table, or with locked joints.
    """
    path = robot.source
    if path is None or path.suffix.lower() != ".toml":
        return {}
    spec = validate_data(RobotSpec, read_toml(path), path)
    if spec.convention is None or len(spec.joint) != robot.n:
        return {}

    def place(table: list[DHJointSpec]) -> Array:
        assert spec.convention is not None
        joints = build_dh_joints(table, spec.convention, angles=spec.angles, base=spec.base)
        return np.array([joint.translation for joint in joints])

    table = list(spec.joint)
    found = {}
    for k, row in enumerate(table):
        for key in ("a", "d"):
            length = getattr(row, key)
            if length != 0.0:
                without = [*table[:k], row.model_copy(update={key: 0.0}), *table[k + 1 :]]
                found[f"{key}{k + 1}"] = length, (place(table) - place(without)) / length
    return found


def _set_base_gravity(robot: Robot, spec: RobotSpec) -> Robot:
    """Gravity as the base link of a URDF or an MJCF sees it: its own placements stay as they are.

    Where a fixed base stands has no bearing on the dynamics, only how it is turned.
    """
    gravity = robot.gravity if spec.gravity is None else np.array(spec.gravity)
    if spec.base is not None:
        rotation = pin.rpy.rpyToMatrix(*(UNIT[spec.angles] * np.array(spec.base.rpy)))
        gravity = rotation.T @ gravity
    return replace(robot, gravity=freeze_array(gravity))


def list_inertial_warnings(robot: Robot) -> tuple[str, ...]:
    """A line for each massless or inconsistent body of a robot that has any inertials."""
    if not robot.has_nominal:
        return ()
    found = []
    for link, phi in zip(robot.links, robot.nominal, strict=True):
        if phi[0] == 0.0:
            found.append(f"link {link}: the robot file gives it no mass")
        elif not _is_clearly_consistent(phi):
            found.append(
                f"link {link}: the robot file's inertial is not physically consistent (its "
                "pseudo-inertia is not positive definite), so no real body has it"
            )
    return tuple(found)


def _is_clearly_consistent(phi: Array) -> bool:
    """Positive definite by more than the rounding of moving to the centre of mass."""
    mass, _, inertia = to_com(phi)
    moments = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    rounding = 1e-12 * float(np.trace(to_inertia_matrix(phi)))
    return mass > 0.0 and bool(np.linalg.eigvalsh(moments)[0] > rounding)


def lock_joints(robot: Robot, locked: Mapping[str, float], place: str | Path) -> Robot:
    """Fix joints at a value; what they move becomes part of the body that carries them.

    Joints are named, or numbered from 1 as text; positions are in rad or m.
    """
    if not locked:
        return robot
    names = robot.joint_names
    values: dict[int, float] = {}
    for key, value in locked.items():
        if not isinstance(value, Real) or not abs(value) < HUGE:
            raise InputError(f"{place}: locked: {key} = {value!r} is not a finite number")
        values[find_joint_index(names, key, f"{place}: locked")] = float(value)
    offset = 0 if robot.floating else -1
    where = find_carrying_joints(robot, {names[i]: v for i, v in values.items()})
    joints: list[Joint] = []
    nominal = [robot.nominal[0]] if robot.floating else []
    for index, joint in enumerate(robot.joints):
        phi = robot.nominal[index + 1 + offset]
        number, at = where[index + 1]
        if index not in values:
            parent, at = where[joint.parent]
            rotation, translation = freeze_placement(
                at * pin.SE3(joint.rotation, joint.translation)
            )
            joints.append(replace(joint, parent=parent, rotation=rotation, translation=translation))
            nominal.append(phi)
        elif number + offset >= 0:
            more = transform_body(phi, at.rotation, at.translation)
            nominal[number + offset] = nominal[number + offset] + more
    if not joints and not robot.floating:
        raise InputError(f"{place}: locked leaves no moving joint")
    drives, left = robot.drives, [i for i in range(robot.n) if i not in values]
    pairs = np.ix_(left, left)
    kept = (drives.turns[pairs], drives.reduction[pairs], drives.zero[left], drives.gain[left])
    loops, assembled = lock_loops(robot, values, where)
    return replace(
        robot,
        joints=tuple(joints),
        nominal=freeze_array(nominal),
        drives=Drives(*map(freeze_array, kept)),
        locked={names[i]: v for i, v in values.items()},
        loops=loops,
        assembled=assembled,
    )


def find_carrying_joints(robot: Robot, locked: Mapping[str, float]) -> list[tuple[int, pin.SE3]]:
    """What carries the base and each joint's frame once some joints of a whole robot are locked.

    The 1-based number, among those that are left, of the joint that moves what it moves (0 is the
    base), and its frame in that one's.
    """
    where = [(0, pin.SE3.Identity())]
    count = 0
    for joint in robot.joints:
        if joint.name not in locked:
            count += 1
            where.append((count, pin.SE3.Identity()))
            continue
        parent, at = where[joint.parent]
        step = joint.axis * locked[joint.name]
        turning = joint.kind == "revolute"
        moved = pin.SE3(pin.exp3(step), np.zeros(3)) if turning else pin.SE3(np.eye(3), step)
        where.append((parent, at * pin.SE3(joint.rotation, joint.translation) * moved))
    return where


def find_joint_index(names: Sequence[str], ref: str | int, place: str) -> int:
    """Index of a joint from its name or its 1-based number (also as text)."""
    if ref in names:
        return list(names).index(str(ref))
    if str(ref).isdecimal() and 1 <= int(ref) <= len(names):
        return int(ref) - 1
    if str(ref).isdecimal():
        raise InputError(f"{place}: there is no joint {ref}; joints count from 1 to {len(names)}")
    raise InputError(f"{place}: there is no joint {ref!r}{suggest_nearest(str(ref), names)}")


def replace_drives(
    robot: Robot,
    drives: Sequence[DriveSpec],
    transmission: TransmissionSpec | None,
    place: str | Path,
) -> Robot:
    """The robot with other drives; what is not given stays as it is."""
    if not drives and transmission is None:
        return robot
    n, names = robot.n, robot.joint_names
    turns, gain = robot.drives.turns.copy(), robot.drives.gain.copy()
    seen: set[int] = set()
    gauges = list[Gauge]()
    for number, spec in enumerate(drives, start=1):
        key = f"{place}: drive[{number}]"
        check_type(key, spec, DriveSpec, "dynident.robot.spec has it")
        for ref in (spec.joint, *(spec.row or {})):
            if ref in robot.locked:
                raise InputError(
                    f"{key}: {ref} is locked, but drives belong to moving joints; leave it out, "
                    "and state what its drive does to the others as a drive of theirs"
                )
        joint = find_joint_index(names, spec.joint, f"{key}.joint")
        if joint in seen:
            raise InputError(f"{key}.joint: joint {names[joint]!r} has a drive already")
        seen.add(joint)
        gain[joint] = spec.gain
        gauges += list_link_gauges(robot, joint, spec)
        if spec.row is not None:
            turns[joint] = 0.0
            for ref, factor in spec.row.items():
                turns[joint, find_joint_index(names, ref, f"{key}.row")] = factor
            if turns[joint, joint] == 0.0:
                raise InputError(
                    f"{key}.row: the drive does not turn with its own joint; "
                    f"add {names[joint]} = 1.0"
                )
    reduction, zero = robot.drives.reduction, robot.drives.zero
    if transmission is not None:
        reduction = _read_reduction(transmission, n, place)
        zero = np.zeros(n) if transmission.zero is None else np.array(transmission.zero)
        if zero.shape != (n,):
            raise InputError(
                f"{place}: transmission.zero has {len(zero)} numbers but there are {n} joints"
            )
    others = [gauge for gauge in robot.gauges if gauge.place not in seen]
    return replace(
        robot,
        drives=Drives(*map(freeze_array, (turns, reduction, zero, gain))),
        gauges=(*others, *gauges),
    )


def list_link_gauges(robot: Robot, joint: int, spec: DriveSpec) -> list[Gauge]:
    """What is measured on the link's side of a drive."""
    each, found = robot.joints[joint], []
    parts = (("", "N" if each.kind == "prismatic" else "Nm"),)
    if "position" in spec.link:
        more = [symbol for word, symbol in SPRING.items() if word in spec.spring]
        slips = spec.slip if "hysteresis" in spec.spring else ()
        own = ("K", "D", "offs", *more, *HYSTERESIS[: len(slips)])
        found.append(Gauge("link encoder", f"link_{each.name}", parts, joint, own, slips))
    if "torque" in spec.link:
        terms = ("K", "D", "offt") if "stiffness" in spec.spring else ("offt",)
        found.append(Gauge("link torque", f"torque_{each.name}", parts, joint, terms))
    return found


SPRING = {"cubic": "Kc", "lag": "KT", "scale": "KS"}
"""What else a spring has, by the words of `DriveSpec`."""


def _read_reduction(spec: TransmissionSpec, n: int, place: str | Path) -> Array:
    if spec.reduction is None:
        return np.eye(n)
    key = f"{place}: transmission.reduction"
    if len({len(row) for row in spec.reduction if isinstance(row, tuple)}) > 1:
        raise InputError(f"{key}: its rows have different lengths")
    matrix = np.array(spec.reduction, dtype=float)
    if matrix.ndim == 1:
        matrix = np.diag(matrix)
    if matrix.shape != (n, n):
        raise InputError(
            f"{key} is for {len(matrix)} joints but there are {n}; give {n} numbers, "
            f"or {n} rows of {n}"
        )
    if np.linalg.matrix_rank(matrix) < n:
        raise InputError(f"{key} is singular: motor positions would not fix the joints'")
    return matrix
