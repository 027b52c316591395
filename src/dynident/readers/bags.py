"""Bags of ROS 1 and ROS 2, and MCAP files: the states of joints that were published.

Messages that are not JointState are those of ros2_control and of Franka's drivers, whose
definitions come from the bag itself.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, name_missing_package
from dynident.core.files import DAMAGE
from dynident.core.text import format_one_line
from dynident.readers.chunks import import_zstandard, refuse_bombs, refuse_message_bombs
from dynident.readers.table import MOST_COLUMNS, Table, refuse_damage

METADATA = "metadata.yaml"
"""What makes a folder a bag."""
FIELDS = {
    "q": "position",
    "dq": "velocity",
    "tau": "effort",
    "qref": "reference position",
    "dqref": "reference velocity",
}
"""Signals and what they are called."""
Unpacked = tuple[tuple[str, ...], dict[str, Any]]
"""Joints of a message, and its values by signal, empty where it does not have one."""
MOST_ORDERS = 1000
"""Different lists of joints that one topic may have."""


def unpack_joint_state(message: Any) -> Unpacked:
    """sensor_msgs/JointState."""
    values = {"q": message.position, "dq": message.velocity, "tau": message.effort}
    return tuple(message.name), values


def unpack_franka_robot_state(message: Any) -> Unpacked:
    """franka_msgs/FrankaRobotState of franka_ros2: two states of joints in one message."""
    joints, values = unpack_joint_state(message.measured_joint_state)
    named, wanted = unpack_joint_state(message.desired_joint_state)
    if named == joints:
        values |= {"qref": wanted["q"], "dqref": wanted["dq"]}
    return joints, values


def unpack_trajectory_state(message: Any) -> Unpacked:
    """control_msgs/JointTrajectoryControllerState, also as Humble and ROS 1 call its parts."""
    now = message.feedback if hasattr(message, "feedback") else message.actual
    wanted = message.reference if hasattr(message, "reference") else message.desired
    values = {"q": now.positions, "dq": now.velocities, "tau": now.effort}
    values |= {"qref": wanted.positions, "dqref": wanted.velocities}
    return tuple(message.joint_names), values


def unpack_dynamic_state(message: Any) -> Unpacked:
    """control_msgs/DynamicJointState, of the interfaces that all of its joints have."""
    named = [
        dict(zip(each.interface_names, each.values, strict=False))
        for each in message.interface_values
    ]
    values = {
        signal: [own[FIELDS[signal]] for own in named]
        for signal in ("q", "dq", "tau")
        if named and all(FIELDS[signal] in own for own in named)
    }
    return tuple(message.joint_names), values


def unpack_franka_state(message: Any) -> Unpacked:
    """franka_msgs/FrankaState of franka_ros, whose seven joints have numbers instead of names."""
    values = {"q": message.q, "dq": message.dq, "tau": message.tau_J}
    values |= {"qref": message.q_d, "dqref": message.dq_d}
    return tuple(str(k) for k in range(len(message.q))), values


KINDS: dict[str, Callable[[Any], Unpacked]] = {
    "franka_msgs/msg/FrankaRobotState": unpack_franka_robot_state,
    "sensor_msgs/msg/JointState": unpack_joint_state,
    "control_msgs/msg/JointTrajectoryControllerState": unpack_trajectory_state,
    "control_msgs/msg/DynamicJointState": unpack_dynamic_state,
    "franka_msgs/msg/FrankaState": unpack_franka_state,
}
"""Messages that are read: of those that hold the same signal, the first ones are meant."""


@dataclass
class _Kind:
    """Messages of one topic that have the same joints, in the same order, and the same fields."""

    joints: tuple[str, ...]
    values: dict[str, array[float]]
    numbers: array[int] = field(default_factory=lambda: array("q"))


@dataclass
class _Topic:
    """What was published on a topic; its place among `KINDS`."""

    rank: int
    kinds: dict[tuple[Any, ...], _Kind] = field(default_factory=dict)
    stamps: array[int] = field(default_factory=lambda: array("q"))
    arrivals: array[int] = field(default_factory=lambda: array("q"))

    @property
    def times(self) -> Any:
        """Instants of the messages [ns]: those of arrival where headers have none."""
        return np.array(self.stamps if any(self.stamps) else self.arrivals, dtype=np.int64)


def read_bag(path: Path) -> tuple[Table, ...]:
    """Read the joint states of a bag: a table a topic of `KINDS`, with its own clock.

    Columns are ``time`` and, where messages have them, ``q_<joint>``, ``dq_<joint>``,
    ``tau_<joint>``, ``qref_<joint>`` and ``dqref_<joint>``. Joints of a topic that are not always
    in the same messages have tables of their own. Time is that of the headers, since the earliest
    one of the bag.
    """
    with name_missing_package(f"{path}: needs rosbags; pip install dynident[ros]"):
        import apsw
        import rosbags.rosbag1
        import rosbags.rosbag2
        from rosbags.serde import SerdeError
        from rosbags.typesys import TypesysError
    folder = path.parent if path.name == METADATA else path
    damage = (
        *DAMAGE,
        AssertionError,
        MemoryError,
        struct.error,
        apsw.Error,
        rosbags.rosbag1.ReaderError,
        rosbags.rosbag2.ReaderError,
        SerdeError,
        import_zstandard().ZstdError,
        TypesysError,
    )
    old = path.suffix.lower() == ".bag"
    with refuse_damage(path, "is not a bag, or was cut off", "convert it again", damage):
        for file in folder.iterdir() if folder.is_dir() else [folder]:
            if file.is_file():
                refuse_bombs(file)
        with (rosbags.rosbag1.Reader if old else rosbags.rosbag2.Reader)(folder) as reader:
            if not old:
                _refuse_bag_bombs(path, reader)
            topics, others = _read_topics(path, reader, old)
    if not topics:
        found = f"; its topics are {format_one_line(', '.join(others[:6]))}" if others else ""
        raise InputError(f"{path}: has no messages of {' or '.join(KINDS)}{found}")
    start = min(int(topic.times.min()) for topic in topics.values())
    return tuple(
        table
        for name, topic in topics.items()
        for table in _build_tables(path, name, topic, (topic.times - start) / 1e9)
    )


def _refuse_bag_bombs(path: Path, reader: Any) -> None:
    """Refuse what grows out of all proportion in a bag of ROS 2, packed as files or messages."""
    for storage in getattr(reader.storage, "storages", ()):
        refuse_bombs(storage.path)  # what was packed as a file is unpacked by now
        if reader.compression_mode == "message":
            wanted = [c for c in storage.connections if c.msgtype in KINDS]
            messages = storage.messages(wanted, None, None) if wanted else ()
            refuse_message_bombs(str(path), (data for _, _, data in messages))


def _know_type(store: Any, connection: Any) -> bool:
    """Whether messages of a connection can be decoded, by the definition that the bag has."""
    from rosbags.interfaces import MessageDefinitionFormat
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    definition = connection.msgdef
    if connection.msgtype not in store.types and definition.data:
        if definition.format is MessageDefinitionFormat.IDL:
            found = get_types_from_idl(definition.data)
        else:
            found = get_types_from_msg(definition.data, connection.msgtype)
        store.register({name: own for name, own in found.items() if name not in store.types})
    return connection.msgtype in store.types


def _read_topics(path: Path, reader: Any, old: bool) -> tuple[dict[str, _Topic], list[str]]:
    """All joint states, topic by topic, and what else was published."""
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if old else Stores.ROS2_HUMBLE)
    decode = store.deserialize_ros1 if old else store.deserialize_cdr
    topics: dict[str, _Topic] = {}
    wanted = [c for c in reader.connections if c.msgtype in KINDS and _know_type(store, c)]
    strange = {c.topic: c.msgtype for c in reader.connections if c not in wanted}
    known = {
        name: f"{kind}{', without a definition' * (kind in KINDS)}"
        for name, kind in strange.items()
    }
    ranks = {kind: rank for rank, kind in enumerate(KINDS)}
    for connection, arrival, raw in reader.messages(connections=wanted) if wanted else ():
        topic = topics.setdefault(connection.topic, _Topic(ranks[connection.msgtype]))
        number = len(topic.stamps)
        message: Any = decode(raw, connection.msgtype)
        stamp = message.header.stamp
        topic.stamps.append(10**9 * int(stamp.sec) + int(stamp.nanosec))
        topic.arrivals.append(int(arrival))
        joints, values_of = KINDS[connection.msgtype](message)
        found = {key: own for key, own in values_of.items() if len(own)}
        kind = topic.kinds.get((joints, *found))
        if kind is None or any(len(values) != len(joints) for values in found.values()):
            place = f"{path}, {connection.topic}, row {number + 1}"
            _refuse_message(place, joints, found)
            if len(topic.kinds) == MOST_ORDERS:
                raise InputError(f"{place}: is the {MOST_ORDERS + 1}st list of joints")
            kind = topic.kinds[(joints, *found)] = _Kind(joints, {key: array("d") for key in found})
        for key, values in found.items():
            kind.values[key].frombytes(np.asarray(values, dtype=float).tobytes())
        kind.numbers.append(number)
    return topics, [f"{name} ({told})" for name, told in sorted(known.items())]


def _refuse_message(place: str, joints: tuple[str, ...], found: dict[str, Any]) -> None:
    """Refuse a message that is not as long as its list of joints."""
    if len(joints) > MOST_COLUMNS:
        raise InputError(f"{place}: has {len(joints)} joints, more than {MOST_COLUMNS}")
    for name in joints:
        if joints.count(name) > 1:
            raise InputError(f"{place}: has joint {name!r} twice")
    for key, values in found.items():
        if len(values) != len(joints):
            raise InputError(
                f"{place}: {FIELDS[key]} has {len(values)} values for {len(joints)} joints"
            )


def _build_tables(path: Path, name: str, topic: _Topic, time: Array) -> Iterator[Table]:
    """A table for all joints that are in the same messages."""
    note = f"{path.name}: headers of {name} have no time; that of arrival in the bag is taken"
    notes = () if any(topic.stamps) else (note,)
    kinds = list(topic.kinds.values())
    within: dict[str, list[int]] = {}
    for k, kind in enumerate(kinds):
        for joint in kind.joints:
            within.setdefault(joint, []).append(k)
    blocks: dict[tuple[int, ...], list[str]] = {}
    for joint, chosen in within.items():
        blocks.setdefault(tuple(chosen), []).append(joint)
    for places, joints in blocks.items():
        own = [kinds[k] for k in places]
        numbers = np.sort(np.concatenate([np.asarray(kind.numbers) for kind in own]))
        signals = [key for key in FIELDS if any(key in kind.values for kind in own)]
        values = np.full((len(numbers), 1 + len(signals) * len(joints)), np.nan)
        values[:, 0] = time[numbers]
        for kind in own:
            rows = np.searchsorted(numbers, kind.numbers)
            columns = [kind.joints.index(joint) for joint in joints]
            for signal, key in enumerate(signals):
                if key in kind.values:
                    first = 1 + signal * len(joints)
                    part = np.asarray(kind.values[key]).reshape(len(rows), -1)[:, columns]
                    values[rows, first : first + len(joints)] = part
        names = ("time", *(f"{key}_{joint}" for key in signals for joint in joints))
        yield Table(path, names, values, topic=name, notes=notes, rank=topic.rank)
