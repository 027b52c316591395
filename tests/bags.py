"""Bags of joint states, written as ROS 1, ROS 2 and MCAP write them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

START = 1_700_000_000_000_000_000
"""The first stamp [ns]."""
FORMS = ("bag", "sqlite3", "mcap")


@dataclass(frozen=True)
class State:
    """A message: when it was sampled [s], and each joint's values."""

    topic: str
    time: float
    names: tuple[str, ...]
    q: Iterable[float] = ()
    dq: Iterable[float] = ()
    tau: Iterable[float] = ()


def write_bag(
    path: Path,
    form: str,
    states: Iterable[State],
    stamped: bool = True,
    packing: str | None = None,
    mode: CompressionMode | None = None,
) -> Path:
    """Write a bag; of ROS 2 a folder. Messages arrive 3 ms after they were sampled."""
    old = form == "bag"
    store = get_typestore(Stores.ROS1_NOETIC if old else Stores.ROS2_HUMBLE)
    types = store.types
    sequence = {"seq": 0} if old else {}
    if old:
        writer = Writer1(path.with_suffix(".bag"))
        if packing is not None:
            writer.set_compression(Writer1.CompressionFormat[packing.upper()])
    else:
        plugin = StoragePlugin.MCAP if form == "mcap" else StoragePlugin.SQLITE3
        writer = Writer2(path, version=9, storage_plugin=plugin)
        if packing is not None:
            usual = CompressionMode.STORAGE if form == "mcap" else CompressionMode.MESSAGE
            mode = usual if mode is None else mode
            writer.set_compression(mode, CompressionFormat[packing.upper()])
    with writer:
        kind, text = "sensor_msgs/msg/JointState", "std_msgs/msg/String"
        topics = {}
        other = writer.add_connection("/chatter", text, typestore=store)
        hello = types[text]("hello")
        data = (store.serialize_ros1 if old else store.serialize_cdr)(hello, text)
        writer.write(other, START, data)
        for state in states:
            if state.topic not in topics:
                topics[state.topic] = writer.add_connection(state.topic, kind, typestore=store)
            nanoseconds = START + round(1e9 * state.time)
            at = divmod(nanoseconds, 10**9) if stamped else (0, 0)
            stamp = types["builtin_interfaces/msg/Time"](*at)
            header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="", **sequence)
            values = [np.array(list(v), dtype=float) for v in (state.q, state.dq, state.tau)]
            message = types[kind](header, list(state.names), *values)
            data = (store.serialize_ros1 if old else store.serialize_cdr)(message, kind)
            writer.write(topics[state.topic], nanoseconds + 3_000_000, data)
    return path.with_suffix(".bag") if old else path
