"""Bags of ROS 1 and 2, and MCAP: topics, their clocks, and joints in any order."""

from __future__ import annotations

import bz2
import mmap
import sqlite3
import struct
import sys

import numpy as np
import pytest
from bags import FORMS, State, write_bag
from rosbags.rosbag2 import CompressionMode
from test_recording_read import ROBOT, SAMPLES, TAU, TIME, Q, make_robot, refusal

from dynident.core.errors import InputError
from dynident.readers.chunks import _list_chunks, import_zstandard, refuse_bombs
from dynident.recording.read import read_log

AB, BA = ("a", "b"), ("b", "a")


def states(topic="/joint_states", time=TIME, q=Q, dq=None, tau=TAU, names=AB):
    """Messages of a topic; empty where there is no signal."""
    none = [()] * len(time)
    signals = [none if s is None else s for s in (q, dq, tau)]
    return [State(topic, t, names, *values) for t, *values in zip(time, *signals, strict=True)]


@pytest.mark.parametrize("form", FORMS)
def test_joint_states(tmp_path, form):
    # a gripper is in the messages, too, and the order changes in the middle
    wide = np.column_stack([TIME, Q[:, 1], Q[:, 0]])
    first = states(q=Q[:90], tau=TAU[:90], dq=2 * Q[:90], time=TIME[:90])
    second = states(
        q=wide[90:], tau=wide[90:, :] * 0 + np.column_stack([TIME, TAU[:, ::-1]])[90:],
        dq=2 * wide[90:], time=TIME[90:], names=("gripper", "b", "a"),
    )  # fmt: skip
    path = write_bag(tmp_path / "run", form, first + second)
    log = read_log(path, ROBOT)
    assert log.name == path.name
    assert log.rate == pytest.approx(100.0, rel=1e-6)
    assert log.warnings == ()
    assert log.segments == ((0, SAMPLES),)
    np.testing.assert_array_equal(log.q, Q)
    np.testing.assert_array_equal(log.tau, TAU)
    np.testing.assert_array_equal(log.dq, 2 * Q)
    if form != "bag":
        (inner,) = (p for p in path.iterdir() if p.suffix in (".mcap", ".db3"))
        for other in (inner, path / "metadata.yaml"):
            np.testing.assert_array_equal(read_log(other, ROBOT).q, Q)
        every = sum(own.stat().st_size for own in path.iterdir())
        assert log.size == read_log(path / "metadata.yaml", ROBOT).size == every


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_topics_on_their_own_clocks(tmp_path, form):
    slow = np.arange(4, 90) / 50.0 + 0.004
    wave = np.column_stack([slow, 2.0 * slow])  # what lines give back exactly
    every = states() + states("/reference", slow, wave, None, None, BA)
    path = write_bag(tmp_path / "run", form, sorted(every, key=lambda s: s.time))
    message = refusal(path, ROBOT)
    assert "has 'q_a' twice; write '/joint_states:q_a' and '/reference:q_a' in columns" in message
    log = read_log(path, ROBOT, columns={"q": "/joint_states:q_*", "qref": "/reference:q_*"})
    (note,) = log.warnings
    lost = SAMPLES - len(log.q)
    assert note == (
        f"{path.name}: /reference (50 Hz) put on the clock of /joint_states by linear "
        f"interpolation; {lost} samples before, behind or in its gaps left out"
    )
    inside = np.abs(TIME - slow.mean()) < 0.5 * np.ptp(slow) + 1e-9
    assert lost == np.sum(~inside)
    np.testing.assert_array_equal(log.q, Q[inside])
    np.testing.assert_array_equal(log.tau, TAU[inside])
    np.testing.assert_allclose(log.qref, np.column_stack([2 * TIME, TIME])[inside], atol=1e-6)
    other = {"q": "/joint_states:q_*", "time": "/reference:time"}
    message = refusal(path, ROBOT, columns=other)
    assert "the clock of the positions is their topic's; leave columns.time out" in message
    # where the reference pauses nothing is known of it
    held = [s for s in every if s.topic[1] == "j" or not 0.8 < s.time < 1.2]
    path = write_bag(tmp_path / "held", form, sorted(held, key=lambda s: s.time))
    log = read_log(path, ROBOT, columns={"q": "/joint_states:q_*", "qref": "/reference:q_*"})
    assert len(log.segments) == 2
    assert any("1 gap in time" in note for note in log.warnings)
    # the other way round its clock decides
    log = read_log(path, ROBOT, columns={"q": "/reference:q_*", "tau": "/joint_states:tau_*"})
    assert log.rate == pytest.approx(50.0, rel=1e-6)
    assert log.dq is None


def test_positions_and_efforts_on_topics_of_their_own(tmp_path):
    every = states(tau=None) + states("/efforts", TIME + 0.002, None, None, TAU, BA)
    path = write_bag(tmp_path / "run", "mcap", sorted(every, key=lambda s: s.time))
    log = read_log(path, ROBOT)
    assert "/efforts (100 Hz) put on the clock of /joint_states" in log.warnings[0]
    between = 0.2 * TAU[:-1, ::-1] + 0.8 * TAU[1:, ::-1]
    np.testing.assert_allclose(log.tau, between, atol=1e-5)
    np.testing.assert_array_equal(log.q, Q[1:])


def test_joints_that_are_published_apart(tmp_path):
    parts = states(q=Q[:, :1], tau=TAU[:, :1], names=("a",))
    parts += states(time=TIME + 0.005, q=Q[:, 1:], tau=TAU[:, 1:], names=("b",))
    path = write_bag(tmp_path / "run", "sqlite3", sorted(parts, key=lambda s: s.time))
    log = read_log(path, ROBOT)
    assert "by linear interpolation; 1 sample before" in log.warnings[0]
    np.testing.assert_array_equal(log.q[:, 0], Q[1:, 0])
    np.testing.assert_allclose(log.q[:, 1], 0.5 * (Q[:-1, 1] + Q[1:, 1]), atol=1e-6)


def test_bad_rows_of_another_topic(tmp_path):
    bad = TAU.copy()
    bad[50, 1] = np.nan
    every = states(tau=None) + states("/efforts", TIME, None, None, bad)
    path = write_bag(tmp_path / "run", "mcap", sorted(every, key=lambda s: s.time))
    message = refusal(path, ROBOT)
    assert f"{path}, /efforts, row 51, column 3 (tau_b): nan is not a finite number" in message
    log = read_log(path, ROBOT, bad_rows="cut")
    np.testing.assert_array_equal(log.tau[49], TAU[49])
    np.testing.assert_allclose(log.tau[50], 0.5 * (TAU[49] + TAU[51]), atol=1e-6)
    back = TIME.copy()
    back[60] = back[58]
    path = write_bag(tmp_path / "back", "bag", states(time=back))
    assert f"{path}, /joint_states, row 60, column 1 (time): time 0.58 repeats 0.58" in refusal(
        path, ROBOT
    )
    assert "1 row of 200 cut" in read_log(path, ROBOT, bad_rows="cut").warnings[0]


@pytest.mark.parametrize(
    ("form", "packing"), [("bag", "bz2"), ("bag", "lz4"), ("mcap", "zstd"), ("sqlite3", "zstd")]
)
def test_packed_bags(tmp_path, monkeypatch, form, packing):
    path = write_bag(tmp_path / "run", form, states(), packing=packing)
    np.testing.assert_array_equal(read_log(path, ROBOT).q, Q)
    monkeypatch.setattr("dynident.readers.table.UNPACKED", 1000)
    monkeypatch.setattr("dynident.readers.table.GROWTH", 1)
    assert "which no log does" in refusal(path, ROBOT)
    monkeypatch.undo()
    if form != "mcap":
        return  # bzip2 was counted, LZ4 grows 255 times at most
    file = next(path.glob("*.mcap"))
    whole = file.read_bytes()
    # the size that a chunk says it has is another one
    _, start, size, unpacked = next(_list_chunks(memory(file)))
    assert size < unpacked
    at = whole.rindex(unpacked.to_bytes(8, "little"), 0, start)
    file.write_bytes(whole[:at] + (unpacked + 1).to_bytes(8, "little") + whole[at + 8 :])
    assert "does not unpack to as many" in refusal(path, ROBOT)


def test_all_streams_of_a_chunk_are_counted(tmp_path, monkeypatch):
    packed = bz2.compress(b"short") + bz2.compress(bytes(100_000))
    fields = [b"op=\x05", b"compression=bz2", b"size=" + struct.pack("<I", 5)]
    header = b"".join(struct.pack("<I", len(field)) + field for field in fields)
    record = struct.pack("<I", len(header)) + header + struct.pack("<I", len(packed)) + packed
    file = tmp_path / "run.bag"
    file.write_bytes(b"#ROSBAG V2.0\n" + record)
    monkeypatch.setattr("dynident.readers.table.UNPACKED", 1000)
    with pytest.raises(InputError, match="which no log does"):
        refuse_bombs(file)


@pytest.mark.parametrize("form", ["mcap", "sqlite3"])
def test_bags_packed_as_files(tmp_path, monkeypatch, form):
    path = write_bag(tmp_path / "run", form, states(), packing="zstd", mode=CompressionMode.FILE)
    np.testing.assert_array_equal(read_log(path, ROBOT).q, Q)
    (file,) = path.glob("*.zstd")
    monkeypatch.setattr("dynident.readers.table.UNPACKED", 1000)
    monkeypatch.setattr("dynident.readers.table.GROWTH", 1)
    message = refusal(path, ROBOT)
    assert message.startswith(f"{file}: ")
    assert "which no log does" in message


def test_messages_that_do_not_say_their_size_are_refused(tmp_path):
    path = write_bag(tmp_path / "run", "sqlite3", states(), packing="zstd")
    database = sqlite3.connect(next(path.glob("*.db3")))
    with database:
        (number, data), *_ = database.execute("SELECT id, data FROM messages WHERE topic_id = 2")
        stream = import_zstandard().ZstdCompressor()
        silent = stream.compress(import_zstandard().decompress(data)) + stream.flush()
        database.execute("UPDATE messages SET data = ? WHERE id = ?", (silent, number))
    database.close()
    assert "does not say how long it is" in refusal(path, ROBOT)


def memory(path):
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def test_headers_without_time(tmp_path):
    path = write_bag(tmp_path / "run", "bag", states(), stamped=False)
    log = read_log(path, ROBOT)
    assert log.rate == pytest.approx(100.0, rel=1e-6)
    assert log.warnings == (
        "run.bag: headers of /joint_states have no time; that of arrival in the bag is taken",
    )


def test_refused_bags(tmp_path, monkeypatch):
    def bag(name, *messages, form="mcap"):
        return write_bag(tmp_path / name, form, messages)

    path = bag("none")
    message = refusal(path, ROBOT)
    assert "has no messages of franka_msgs/msg/FrankaRobotState or sensor_msgs/msg/Jo" in message
    assert "; its topics are /chatter (std" in message
    path = bag("short", *states()[:3], State("/joint_states", 1.0, AB, (1.0, 2.0), (), (1.0,)))
    assert f"{path}, /joint_states, row 4: effort has 1 values for 2 joints" in refusal(path, ROBOT)
    path = bag("twice", State("/joint_states", 1.0, ("a", "a"), (1.0, 2.0)))
    assert "row 1: has joint 'a' twice" in refusal(path, ROBOT)
    path = bag("other", *states(names=("x", "a")))
    message = refusal(path, ROBOT)
    assert "no column 'q_b' for q" in message
    assert (
        "if b did not move, lock it (--locked b, or locked = { b = 0.0 } of the robot)" in message
    )
    beside = tmp_path / "log.csv"
    beside.write_text("q_a\n1\n")
    assert (
        "has topics with a clock each, and cannot be put side by side with another file"
        in refusal([path, beside], ROBOT)
    )
    (tmp_path / "folder").mkdir()
    assert "unknown log format" in refusal(tmp_path / "folder", ROBOT)
    (tmp_path / "folder/metadata.yaml").write_text("rosbag2_bagfile_information: 3")
    assert "is not a bag, or was cut off" in refusal(tmp_path / "folder", ROBOT)
    for form, suffix in (("bag", ".bag"), ("mcap", ".mcap"), ("sqlite3", ".db3")):
        path = bag("whole-" + form, *states(), form=form)
        data = (path if form == "bag" else next(path.glob(f"*{suffix}"))).read_bytes()
        for length in (0, 10, 1000, len(data) // 2):
            cut = tmp_path / f"cut{suffix}"
            cut.write_bytes(data[:length])
            assert "is not a bag, or was cut off" in refusal(cut, ROBOT), (form, length)
    monkeypatch.setitem(sys.modules, "rosbags.rosbag1", None)
    assert refusal(path, ROBOT) == f"{path}: needs rosbags; pip install dynident[ros]"


def test_prefixes_take_joints_by_name_where_names_follow(tmp_path):
    path = tmp_path / "log.csv"
    columns = np.column_stack([TIME, Q[:, ::-1], TIME, TAU[:, ::-1]])
    np.savetxt(path, columns, delimiter=",", header="time,p_b,p_a,p_hand,m_2,m_1", comments="")
    log = read_log(path, ROBOT, columns={"q": "p_*", "tau": "m_*"})
    np.testing.assert_allclose(log.q, Q, rtol=1e-15)
    np.testing.assert_allclose(log.tau, TAU[:, ::-1], rtol=1e-15)
    assert "columns.q names 3 columns" in refusal(
        path, make_robot("xy"), columns={"q": "p_*", "tau": "m_*"}
    )
