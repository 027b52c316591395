"""Logs into recordings: columns, units, sides, clocks, and what is refused or warned of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynident.core.errors import InputError
from dynident.recording.read import read_log
from dynident.robot.drives import Drives
from dynident.robot.model import Joint, Robot

RATE = 100.0
SAMPLES = 200
TIME = np.arange(SAMPLES) / RATE
RNG = np.random.default_rng(11)
Q = np.column_stack([np.sin(TIME), 0.5 * np.cos(2 * TIME)])
TAU = RNG.normal(size=(SAMPLES, 2))


def make_robot(names=("a", "b"), drives=None, kinds=None, **limits):
    kinds = kinds or ["revolute"] * len(names)
    joints = tuple(
        Joint(name, f"l{i}", kind, i, np.eye(3), np.zeros(3), np.array([0.0, 0.0, 1.0]), **limits)
        for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
    )
    n = len(names)
    return Robot("robot", joints, np.zeros((n, 10)), drives or Drives.direct(n))


ROBOT = make_robot()


def write(path, **signals):
    """A CSV of the named signals; 2-D ones get the joints' names."""
    columns = {}
    for key, values in signals.items():
        if values.ndim == 1:
            columns[key] = values
        else:
            columns |= {f"{key}_{joint}": values[:, i] for i, joint in enumerate("ab")}
    rows = np.column_stack(list(columns.values()))
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def log(tmp_path):
    return write(tmp_path / "log.csv", time=TIME, q=Q, tau=TAU)


def refusal(*args, **kwargs):
    with pytest.raises(InputError) as caught:
        read_log(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


# what is read


def test_default_columns(tmp_path):
    signals = {"dq": 2 * Q, "ddq": 3 * Q, "qref": 4 * Q, "dqref": 5 * Q}
    path = write(tmp_path / "log.csv", tau=TAU, t=TIME, q=Q, extra=TIME, **signals)
    recording = read_log(str(path), ROBOT)
    assert recording.name == "log.csv"
    assert recording.rate == RATE
    assert recording.segments == ((0, SAMPLES),)
    assert recording.warnings == ()
    np.testing.assert_allclose(recording.q, Q, rtol=1e-15)
    np.testing.assert_allclose(recording.tau, TAU, rtol=1e-15)
    for signal, values in signals.items():
        np.testing.assert_allclose(getattr(recording, signal), values, rtol=1e-15)
        assert getattr(recording, signal).flags.c_contiguous
    assert not recording.q.flags.writeable


@pytest.mark.parametrize(
    "columns",
    [
        {"time": 1, "q": [2, 3], "tau": [4, 5]},
        {"time": "time", "q": ["q_a", 3], "tau": "tau_*"},
        {"q": "q_*", "tau": ["log.csv:tau_a", "log.csv:tau_b"]},
        {"q": ["log.csv:2", "log.csv:3"]},
    ],
)
def test_mapped_columns(log, columns):
    recording = read_log(log, ROBOT, columns=columns)
    np.testing.assert_allclose(recording.q, Q, rtol=1e-15)
    np.testing.assert_allclose(recording.tau, TAU, rtol=1e-15)


@pytest.mark.parametrize("kind", [np.array, tuple, lambda columns: (c for c in columns)])
def test_positions_may_come_from_numpy(log, kind):
    positions = kind(np.arange(2, 4))
    np.testing.assert_allclose(read_log(log, ROBOT, columns={"q": positions}).q, Q, rtol=1e-15)


@pytest.mark.parametrize("entry", [None, 1.0, [2.0, 3.0], [[2], [3]]])
def test_what_is_neither_name_nor_position_is_refused(log, entry):
    message = refusal(log, ROBOT, columns={"q": entry})
    assert "log.csv: columns.q: " in message
    assert "is neither the name of a column nor a position, which counts from 1" in message


def test_a_time_that_is_no_number_is_named(tmp_path):
    path = tmp_path / "log.npz"
    stamps = np.datetime64("2026-01-01") + np.arange(len(Q)).astype("m8[ms]")
    columns = {f"q_{j}": c for j, c in zip("ab", Q.T, strict=True)}
    columns |= {f"tau_{j}": c for j, c in zip("ab", TAU.T, strict=True)}
    np.savez(path, time=stamps, **columns)
    message = refusal(path, ROBOT)
    assert "has no time column ('time' is not a numeric array of one or two dim" in message


def test_headerless_file_by_position(tmp_path):
    path = tmp_path / "log.txt"
    np.savetxt(path, np.column_stack([Q[:, ::-1], TAU]))
    recording = read_log(path, ROBOT, rate=50, columns={"q": [2, 1], "tau": [3, 4]}, name="first")
    assert (recording.name, recording.rate) == ("first", 50.0)
    np.testing.assert_allclose(recording.q, Q, rtol=1e-15)
    message = refusal(path, ROBOT, rate=50)
    assert "log.txt: has no header, so no column 'q_a'; give positions" in message
    files = [tmp_path / name for name in ("q_filtered.txt", "u.txt", "stamps.txt")]
    for file, values in zip(files, (Q, TAU, TIME), strict=True):
        np.savetxt(file, values)
    assert "positions, like columns = { q = 'q_filtered.txt:*' }" in refusal(files, ROBOT)
    assert "positions, like columns = { q = 'FILE:*' }" in refusal(files[1:], ROBOT)


def test_a_joint_that_is_named_in_the_order_of_the_robot(log):
    swapped = replace(ROBOT, joints=ROBOT.joints[::-1])
    np.testing.assert_allclose(read_log(log, swapped).q, Q[:, ::-1], rtol=1e-15)


def test_npz_with_globs(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, times=TIME, positions=Q, torques=TAU, target_positions=2 * Q)
    columns = {"time": "times", "q": "positions_*", "tau": "torques_*"}
    recording = read_log(path, ROBOT, columns=columns)
    np.testing.assert_array_equal(recording.q, Q)
    np.testing.assert_array_equal(recording.tau, TAU)
    assert recording.qref is None


def test_files_side_by_side(tmp_path):
    position = write(tmp_path / "pos.csv", time=TIME, j=Q)
    torque = write(tmp_path / "tau.csv", time=TIME, j=TAU)
    columns = {"q": "pos.csv:*", "tau": ["tau.csv:j_a", f"{torque}:j_b"]}
    recording = read_log([position, torque], ROBOT, columns=columns)
    assert recording.name == "pos.csv+tau.csv"
    assert recording.size == position.stat().st_size + torque.stat().st_size
    np.testing.assert_allclose(recording.q, Q, rtol=1e-15)
    np.testing.assert_allclose(recording.tau, TAU, rtol=1e-15)
    by_position = read_log([position, torque], ROBOT, columns={"q": [2, 3], "tau": [5, 6]})
    np.testing.assert_array_equal(by_position.tau, recording.tau)
    message = refusal([position, torque], ROBOT, columns={"q": ["j_a", "j_b"]})
    assert "has 'j_a' twice; write 'pos.csv:2' and 'tau.csv:2' in columns" in message


def test_files_side_by_side_must_match(tmp_path):
    position = write(tmp_path / "pos.csv", time=TIME, q=Q)
    short = write(tmp_path / "tau.csv", tau=TAU[:-1])
    message = refusal([position, short], ROBOT)
    assert f"{short}: has 199 rows of samples, {position} has 200" in message
    late = write(tmp_path / "late.csv", time=TIME + 0.5, tau=TAU)
    message = refusal([position, late], ROBOT)
    assert f"{late}, row 2, column 1 (time): is 0.5 s off the time in {position}" in message
    assert read_log([position, late], ROBOT, columns={"time": "pos.csv:time"}).rate == RATE


def test_files_one_after_another(tmp_path):
    first = write(tmp_path / "1.csv", time=TIME, q=Q, tau=TAU, dq=Q)
    second = write(tmp_path / "2.csv", time=TIME[:80], q=-Q[:80], tau=TAU[:80])
    recording = read_log([first, second], ROBOT, stack="time")
    second_begins = recording.find_time(recording.segments[1][0])
    assert second_begins == pytest.approx(recording.segments[0][1] / recording.rate)
    assert recording.segments == ((0, 200), (200, 280))
    np.testing.assert_allclose(recording.q, np.vstack([Q, -Q[:80]]), rtol=1e-15)
    assert recording.dq is None
    assert recording.warnings == ("1.csv+2.csv: dq is in 1 of 2 files; not used",)
    slow = write(tmp_path / "3.csv", time=2 * TIME, q=Q, tau=TAU)
    assert "rates differ (100, 50 Hz)" in refusal([first, slow], ROBOT, stack="time")


# clocks


def test_rate_is_needed_without_time(tmp_path):
    path = write(tmp_path / "log.csv", q=Q, tau=TAU)
    assert "log.csv: has no time column; name it in columns, or set rate" in refusal(path, ROBOT)
    assert read_log(path, ROBOT, rate=1000).rate == 1000.0
    for rate in (0, -5.0, np.nan, np.inf):
        assert "is not a sample rate" in refusal(path, ROBOT, rate=rate)


def test_time_wins_over_rate(log):
    assert read_log(log, ROBOT, rate=100.5).warnings == ()
    recording = read_log(log, ROBOT, rate=250)
    assert recording.rate == RATE
    assert recording.warnings == (
        "log.csv: rate = 250 Hz, but the time column says 100 Hz; time is used (clock = 'rate' "
        "takes the rate)",
    )


def test_a_stated_rate_may_win_over_time(tmp_path):
    """Gaps and the order of stamps count as before, in time that runs at the rate."""
    time = TIME + 0.5 * (np.arange(SAMPLES) >= 80)
    path = write(tmp_path / "log.csv", time=time, q=Q, tau=TAU)
    plain = read_log(path, ROBOT)
    recording = read_log(path, ROBOT, rate=250.0, clock="rate")
    assert (recording.rate, recording.warnings) == (250.0, plain.warnings)
    assert recording.segments == plain.segments == ((0, 80), (80, SAMPLES))
    np.testing.assert_array_equal(recording.q, plain.q)
    assert recording.find_time(80) == pytest.approx(0.4 * time[80])
    assert read_log(path, ROBOT, rate=1.0, clock="rate", units={"time": "ns"}).rate == 1.0
    assert refusal(path, ROBOT, clock="rate") == "log.csv: clock = 'rate' needs a rate"
    path = write(tmp_path / "bare.csv", q=Q, tau=TAU)
    assert read_log(path, ROBOT, rate=250.0, clock="rate").rate == 250.0


def test_stamps_that_jitter_lie_on_the_stated_rate(tmp_path):
    time = TIME + RNG.uniform(-3e-3, 3e-3, SAMPLES)
    path = write(tmp_path / "log.csv", time=time, q=np.column_stack([np.sin(time), time]), tau=TAU)
    plain, recording = read_log(path, ROBOT), read_log(path, ROBOT, rate=50.0, clock="rate")
    assert recording.rate == 50.0
    assert recording.warnings == plain.warnings
    np.testing.assert_allclose(recording.q, plain.q, rtol=1e-12)


def test_gap_jitter_and_units_of_time(tmp_path):
    rng = np.random.default_rng(2)
    time = TIME + rng.uniform(-5e-4, 5e-4, SAMPLES)
    time[100:] += 1.0
    q = np.column_stack([np.sin(time), np.cos(time)])
    path = write(tmp_path / "log.csv", time=1e3 * time, q=q, tau=TAU)
    recording = read_log(path, ROBOT, units={"time": "ms"})
    assert len(recording.segments) == 2
    assert len(recording.q) == recording.segments[-1][1]
    assert "1 gap in time" in recording.warnings[0]
    assert f"before {path}, row 102, column 1 (time)" in recording.warnings[0]
    assert "jitter" in recording.warnings[1]
    start, stop = recording.segments[0]
    uniform = time[0] + np.arange(stop - start) / recording.rate
    np.testing.assert_allclose(recording.q[start:stop, 0], np.sin(uniform), atol=1e-7)


def test_repeated_time_names_the_row(tmp_path):
    time = TIME.copy()
    time[50] = time[49]
    path = write(tmp_path / "log.csv", q=Q, time=time, tau=TAU)
    assert f"{path}, row 52, column 3 (time): time 0.49 repeats" in refusal(path, ROBOT)


# sides, units, currents


def coupled_drives():
    reduction = np.array([[50.0, 0.0], [-30.0, 30.0]])
    return Drives(np.eye(2), reduction, np.array([0.1, -0.2]), np.array([2.0, 0.5]))


def test_motor_side(tmp_path):
    drives = coupled_drives()
    robot = make_robot(drives=drives)
    to_motor = drives.reduction.T
    motor = {
        "q": (Q - drives.zero) @ to_motor,
        "qref": (Q + 0.01 - drives.zero) @ to_motor,
        "dq": 2 * Q @ to_motor,
        "ddq": 3 * Q @ to_motor,
        "dqref": 4 * Q @ to_motor,
        "tau": TAU @ np.linalg.inv(drives.reduction),
    }
    recording = read_log(write(tmp_path / "m.csv", time=TIME, **motor), robot, side="motor")
    expected = {"q": Q, "qref": Q + 0.01, "dq": 2 * Q, "ddq": 3 * Q, "dqref": 4 * Q, "tau": TAU}
    for signal, values in expected.items():
        np.testing.assert_allclose(getattr(recording, signal), values, atol=1e-12)
        assert getattr(recording, signal).flags.c_contiguous


def test_current_becomes_torque(tmp_path):
    path = write(tmp_path / "log.csv", time=TIME, q=Q, current=TAU)
    robot = make_robot(drives=coupled_drives())
    gained = TAU * robot.drives.gain
    np.testing.assert_allclose(read_log(path, robot).tau, gained, rtol=1e-15)
    motor = read_log(path, robot, side="motor").tau
    np.testing.assert_allclose(motor, gained @ robot.drives.reduction, rtol=1e-14)
    assert "every drive's gain is 1" in read_log(path, ROBOT).warnings[0]


def test_motions_of_joints_with_torques_of_motors(tmp_path):
    """Controllers tell joints' positions, and currents of motors: coupled ones have to be asked."""
    drives = coupled_drives()
    robot = make_robot(drives=drives)
    tau = TAU @ np.linalg.inv(drives.reduction)
    path = write(tmp_path / "log.csv", time=TIME, q=Q, dq=2 * Q, tau=tau)
    for side in ({"q": "joint", "tau": "motor"}, {"tau": ["motor", "motor"]}):
        log = read_log(path, robot, side=side)
        np.testing.assert_array_equal(log.q, Q)
        np.testing.assert_array_equal(log.dq, 2 * Q)
        np.testing.assert_allclose(log.tau, TAU, atol=1e-12)
    assert "side: 'dq' is unknown" in refusal(path, robot, side={"dq": "motor"})
    assert "coupled by the transmission" in refusal(path, robot, side={"tau": ["joint", "motor"]})


def test_a_side_per_joint(tmp_path):
    path = write(tmp_path / "log.csv", time=TIME, q=Q, dq=Q, tau=TAU)
    ratio, zero = np.diag([50.0, 1.0]), np.array([0.1, 0.0])
    robot = make_robot(drives=Drives(np.eye(2), ratio, zero, np.ones(2)))
    log = read_log(path, robot, side=["motor", "joint"])
    np.testing.assert_allclose(log.q, Q / [50.0, 1.0] + zero, rtol=1e-14)
    np.testing.assert_allclose(log.tau, TAU * [50.0, 1.0], rtol=1e-14)
    motors = read_log(path, robot, side="motor")
    np.testing.assert_array_equal(motors.q, log.q)
    assert "side of b is 'motor', but it has no transmission" in refusal(
        path, robot, side=["motor", "motor"]
    )
    coupled = make_robot(drives=coupled_drives())
    assert "b and a are coupled by the transmission, so they need the same side" in refusal(
        path, coupled, side=["joint", "motor"]
    )
    assert "side has 1 values; give one, or one for each of 2 joints" in refusal(
        path, robot, side=["motor"]
    )
    for side in ("motor", ["motor", "joint"]):
        assert "no transmission, so that both sides are one" in refusal(path, ROBOT, side=side)


def test_empty_cells_are_refused_or_cut(tmp_path):
    path = write(tmp_path / "log.csv", time=TIME, q=Q, tau=TAU, note=TIME)
    lines = path.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    cells[31][1] = cells[61][4] = cells[91][0] = cells[95][5] = ""
    path.write_text("\n".join(",".join(row) for row in cells) + "\n")
    message = refusal(path, ROBOT)
    assert f"{path}, row 92, column 1 (time): nan is not a finite number" in message
    log = read_log(path, ROBOT, bad_rows="cut")
    assert "3 rows of 200 cut: 3 with values that are not" in log.warnings[0]
    assert "(row 32, 62, 92)" in log.warnings[0]
    np.testing.assert_allclose(log.q, Q, atol=1e-5)


def test_torque_comes_before_current(tmp_path):
    path = write(tmp_path / "log.csv", time=TIME, q=Q, tau=TAU, current=2 * TAU)
    robot = make_robot(drives=coupled_drives())
    np.testing.assert_allclose(read_log(path, robot).tau, TAU, rtol=1e-15)
    current = read_log(path, robot, columns={"current": "current_*"})
    np.testing.assert_allclose(current.tau, 2 * TAU * robot.drives.gain, rtol=1e-15)
    both = read_log(path, robot, columns={"current": "current_*", "tau": "tau_*"})
    assert both.warnings == ("log.csv: columns names tau and current; current is not used",)


def test_units(tmp_path):
    deg = 180 / np.pi
    path = write(tmp_path / "log.csv", time=TIME, q=deg * Q, dq=deg * Q, qref=deg * Q, tau=TAU)
    recording = read_log(path, ROBOT, units={"q": "deg"})
    for values in (recording.q, recording.dq, recording.qref):
        np.testing.assert_allclose(values, Q, rtol=1e-14)
    mixed = read_log(path, ROBOT, units={"q": "deg", "dq": "rad", "qref": ["rev", "rad"]})
    np.testing.assert_allclose(mixed.dq, deg * Q, rtol=1e-14)
    np.testing.assert_allclose(mixed.qref, deg * Q * [2 * np.pi, 1.0], rtol=1e-14)


UNITED = "time,q_a,q_b,dq_a,dq_b,tau_a,tau_b,note"


@pytest.mark.parametrize(
    ("head", "gap"),
    [
        (f"{UNITED}\nms,deg,deg,rad/s,rad/s,Nm,Nm,", ","),
        (f"{UNITED}\n[ms];[°];[deg];[rad/s];[rad / s];[N·m];[Nm];[%]".replace(",", ";"), ";"),
        (f"# {UNITED}\n# ms,deg,deg,rad/s,rad/s,Nm,Nm,-", ","),
        (f"{UNITED}\nms deg deg rad/s rad/s Nm Nm V".replace(",", " "), " "),
    ],
)
def test_a_second_line_of_the_header_states_units(tmp_path, head, gap):
    rows = np.column_stack([1e3 * TIME, np.degrees(Q), Q, TAU, TIME])
    text = "".join(gap.join(map(repr, row)) + "\n" for row in rows.tolist())
    (tmp_path / "log.csv").write_text(f"{head}\n{text}")
    log = read_log(tmp_path / "log.csv", ROBOT)
    assert log.rate == pytest.approx(RATE)
    np.testing.assert_allclose(log.q, Q, rtol=1e-14)
    np.testing.assert_array_equal(log.dq, Q)
    np.testing.assert_array_equal(log.tau, TAU)
    assert "log.csv: q in deg; dq in rad; time in ms, as its columns say" in log.warnings
    stated = read_log(tmp_path / "log.csv", ROBOT, units={"q": "rad", "time": "ms"})
    np.testing.assert_array_equal(stated.q, np.degrees(Q))


def test_units_a_joint_each_and_others(tmp_path):
    robot = make_robot(kinds=["revolute", "prismatic"])
    path = write(tmp_path / "log.csv", time=TIME, q=Q, tau=TAU)
    head, _, rows = path.read_text().partition("\n")

    def state(units):
        path.write_text(f"{head}\n{units}\n{rows}")

    state("s,deg,mm,Nm,N")
    np.testing.assert_allclose(read_log(path, robot).q, Q * [np.pi / 180, 1e-3], rtol=1e-14)
    for units, words in (
        ("s,deg,deg/s,Nm,Nm", "column 3 (q_b): is in deg/s, which is not read for q"),
        ("s,deg,deg,Nm,mNm", "column 5 (tau_b): is in mNm, which is not read for tau"),
        ("s,deg,,Nm,Nm", "column 3 (q_b): has no unit beside others of q; state units"),
        ("s,deg,furlong,Nm,Nm", "row 2, column 1 (time): 's' is not a number"),
    ):
        state(units)
        assert words in refusal(path, ROBOT)


def test_dates_are_no_milliseconds_whatever_they_are_called(tmp_path):
    path = write(tmp_path / "log.csv", stamp_ms=TIME, q=Q, tau=TAU)
    head, *rows = path.read_text().splitlines()
    rows = [f"2024-05-01 12:00:0{row}" for row in rows]  # of two seconds
    path.write_text("\n".join([head, *rows, ""]))
    assert read_log(path, ROBOT, columns={"time": "stamp_ms"}).rate == RATE
    words = refusal(path, ROBOT, columns={"time": "stamp_ms"}, units={"time": "ms"})
    assert "units.time is for numbers, but it has dates" in words


def test_units_of_angle_and_length(tmp_path):
    robot = make_robot(kinds=["revolute", "prismatic"])
    path = write(tmp_path / "log.csv", time=TIME, q=Q, tau=TAU)
    deg = np.pi / 180
    for units, factors in (
        ("deg", [deg, 1.0]),
        ("mm", [1.0, 1e-3]),
        (["rev", "mm"], [2 * np.pi, 1e-3]),
    ):
        recording = read_log(path, robot, units={"q": units})
        np.testing.assert_allclose(recording.q, Q * factors, rtol=1e-14)
    assert "'deg' for b, a prismatic joint" in refusal(path, robot, units={"q": ["deg", "deg"]})
    assert "every joint is revolute" in refusal(path, ROBOT, units={"q": "mm"})
    assert "has 1 units for 2 joints" in refusal(path, robot, units={"q": ["deg"]})
    spindle = Drives(np.eye(2), np.diag([1.0, 100.0]), np.zeros(2), np.ones(2))
    turned = read_log(path, replace(robot, drives=spindle), units={"q": "rev"}, side="motor")
    np.testing.assert_allclose(turned.q, Q * [2 * np.pi, 2 * np.pi / 100], rtol=1e-14)


# refusals


@pytest.mark.parametrize(("unit", "parts"), [("us", 1e6), ("ns", 1e9)])
def test_a_time_that_is_not_in_seconds_is_told_by_its_rate(tmp_path, unit, parts):
    path = write(tmp_path / "log.csv", time=parts * TIME, q=Q, tau=TAU)
    assert f"set units = {{ time = '{unit}' }}" in refusal(path, ROBOT, rate=RATE)
    np.testing.assert_allclose(read_log(path, ROBOT, units={"time": unit}).rate, RATE)


def test_a_date_is_no_clock_but_a_rate_is(tmp_path):
    rows = "".join(f"2024-03-01T12:00:{t:.3f},{t},{t},{t},{t}\n" for t in TIME)
    (tmp_path / "log.csv").write_text("time,q_a,q_b,tau_a,tau_b\n" + rows)
    message = refusal(tmp_path / "log.csv", ROBOT)
    assert "row 2, column 1 (time): '2024-03-01T12:00:0.000' is not a number; write" in message
    assert read_log(tmp_path / "log.csv", ROBOT, rate=50.0).rate == 50.0
    columns = {"q": ["time", "q_b"]}
    assert "column 1 (time)" in refusal(tmp_path / "log.csv", ROBOT, rate=50.0, columns=columns)
    columns = {"q": [1, 3]}
    assert "column 1 (time)" in refusal(tmp_path / "log.csv", ROBOT, rate=50.0, columns=columns)


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["Time [s]", "q1 [deg]", "q2 [deg]", "Nm 1", "Nm 2"], "'q* [deg]'"),
        (["Time", "/js/a/position", "/js/b/position", "tau_a", "tau_b"], "'/js/*/position'"),
        (["stamp", "arm1_q_0", "arm1_q_1", "arm1_qd_0", "arm1_qd_1"], "'arm1_q_*'"),
        (["Zeit", "q1", "q2", "qd1", "qd2"], "['q1', ..., 'q2']"),
    ],
)
def test_columns_of_other_names_are_recognised(tmp_path, names, wanted):
    rows = np.column_stack([TIME, Q, TAU])
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header=",".join(names), comments="")
    message = refusal(tmp_path / "log.csv", ROBOT)
    assert f"columns = {{ q = {wanted} }} maps other names" in message
    columns = {"q": names[1:3] if wanted[0] == "[" else wanted[1:-1], "tau": names[3:]}
    message = refusal(tmp_path / "log.csv", ROBOT, columns=columns)
    assert f"like columns = {{ time = {names[0]!r} }}" in message
    given = {"columns": {**columns, "time": names[0]}, "units": {"q": "rad"}}
    log = read_log(tmp_path / "log.csv", ROBOT, **given)
    np.testing.assert_allclose(log.q, Q, atol=1e-12)


def test_columns_that_are_clear_are_read_without_being_named(tmp_path):
    path, head = tmp_path / "log.csv", "stamp,angle_a [deg],angle_b [deg],effort_a,effort_b"
    rows = np.column_stack([TIME, np.degrees(Q), TAU])
    np.savetxt(path, rows, delimiter=",", header=head, comments="")
    log = read_log(path, ROBOT)
    np.testing.assert_allclose(log.q, Q, atol=1e-12)
    np.testing.assert_allclose(log.tau, TAU, atol=1e-12)
    said = "columns: q = angle_* [deg], tau = effort_*, time = stamp, by what they are called"
    assert log.warnings == (f"log.csv: {said}", "log.csv: q in deg, as its columns say")
    # what is stated stays; efforts beside usual positions are none where torques are not asked for
    assert "no column 'tau_a'" in refusal(path, ROBOT, columns={"q": "angle_*", "time": "stamp"})
    path.write_text(
        path.read_text().replace("angle_a [deg]", "q_a").replace("angle_b [deg]", "q_b")
    )
    assert read_log(path, ROBOT, torque=False).torque == "none"
    assert read_log(path, ROBOT).torque == "measured"


def test_a_star_stands_for_numbers_where_names_go_on(tmp_path):
    head = (
        "time,Position1,Position2,PositionCmd1,PositionCmd2,Torque1,Torque2,TorqueCur1,TorqueCur2"
    )
    rows = np.column_stack([TIME, Q, 0.0 * Q, TAU, 0.0 * TAU])
    path = tmp_path / "log.csv"
    np.savetxt(path, rows, delimiter=",", header=head, comments="")
    log = read_log(path, ROBOT, columns={"q": "Position*", "tau": "Torque*"})
    np.testing.assert_allclose(log.q, Q, atol=1e-12)
    np.testing.assert_allclose(log.tau, TAU, atol=1e-12)
    for star in ("PositionCmd*", "TorqueCur*"):
        assert np.all(read_log(path, ROBOT, columns={"q": "Position*", "tau": star}).tau == 0.0)
    assert "columns.q names 4 columns" in refusal(
        path, ROBOT, columns={"q": "P*", "tau": "Torque*"}
    )


def test_missing_columns_name_the_nearest(tmp_path):
    path = write(tmp_path / "log.csv", time=TIME, q_a=TIME, q_bb=TIME, tau=TAU)
    message = refusal(path, ROBOT)
    assert message.startswith(f"{path}: no column 'q_b' for q; the nearest are 'q_bb', 'q_a'")
    path = write(tmp_path / "log.csv", time=TIME, q=Q)
    assert "no column 'tau_a' for tau" in refusal(path, ROBOT)
    path = write(tmp_path / "log.csv", time=TIME, q=Q, tau=TAU, dq_a=TIME)
    recording = read_log(path, ROBOT)
    assert recording.dq is None
    assert recording.warnings == ("log.csv: dq_ has 1 of 2 joints; not used",)


def test_files_of_a_signal_each_say_how_they_are_mapped(tmp_path):
    paths = [tmp_path / name for name in ("angles.csv", "torques.csv")]
    for path, values in zip(paths, (Q, TAU), strict=True):
        write(path, t=TIME, x=values)
        path.write_text(path.read_text().replace("x_a,x_b", "a,b", 1))
    words = "no column 'q_a' for q; angles.csv, torques.csv each have columns of the joints' names"
    message = refusal(paths, ROBOT)
    assert words in message
    assert "columns = { q = 'angles.csv:*' } maps other names" in message
    columns = {"q": "angles.csv:*"}
    assert "columns = { tau = 'torques.csv:*' } maps" in refusal(paths, ROBOT, columns=columns)
    both = read_log(paths, ROBOT, columns=columns | {"tau": "torques.csv:*"})
    paths[1] = paths[1].rename(tmp_path / "load.csv")
    assert "columns = { tau = 'FILE:*' } maps" in refusal(paths, ROBOT, columns=columns)
    np.testing.assert_allclose(both.tau, TAU, rtol=1e-15)


def test_missing_arrays_say_why(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, time=TIME, q=Q, tau=TAU[:-1])
    message = refusal(path, ROBOT, columns={"q": "q_*", "tau": "tau_*"})
    assert message == f"{path}: 'tau' cannot be tau: it has shape (199, 2), not 200 samples"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"columns": {"q": [2]}}, "columns.q names 1 columns, the robot has 2 joints (a, b)"),
        ({"columns": {"q": [2, 9]}}, "columns.q asks for column 9; there are 1 to 5"),
        ({"columns": {"q": [0, 2]}}, "columns.q asks for column 0; there are 1 to 5"),
        ({"columns": {"q": "p_*"}}, "no column 'p_*' for q"),
        ({"columns": {"position": "q_*"}}, "columns: 'position' is unknown; known are time, q"),
        ({"columns": {"taus": "q_*"}}, "'taus' is unknown; did you mean 'tau'?"),
        ({"columns": {"time": [1, 2]}}, "columns.time names 2 columns, not one"),
        ({"columns": {"time": "stamp"}}, "no column 'stamp' for time"),
        ({"units": {"q": "degrees"}}, "units.q: 'degrees' is unknown; did you mean 'deg'?"),
        ({"units": {"tau": "Nmm"}}, "units: 'tau' is unknown"),
        ({"units": {"time": "min"}}, "units.time = 'min'; known are s, ms, us, ns"),
        ({"side": "drive"}, "side: 'drive' is unknown; known are joint, motor"),
        ({"stack": "up"}, "stack: 'up' is unknown; known are side, time"),
    ],
)
def test_refused_requests(log, options, part):
    message = refusal(log, ROBOT, **options)
    assert "log.csv" in message
    assert part in message


def test_fewer_columns_than_joints(tmp_path):
    robot = make_robot(["a", "b", "hand"])
    path = write(tmp_path / "log.csv", time=TIME, q=Q, tau=TAU)
    lock = "if hand did not move, lock it (--locked hand, or locked = { hand = 0.0 } of the robot)"
    for columns in ({}, {"q": "q_*"}, {"q": ["q_a", "q_b"], "tau": "tau_*"}):
        assert lock in refusal(path, robot, columns=columns)
    quoted = "(--locked 'left hand', or locked = { \"left hand\" = 0.0 } of the robot)"
    assert quoted in refusal(path, make_robot(["a", "b", "left hand"]))
    np.savetxt(tmp_path / "bare.txt", np.hstack([Q, TAU]))
    message = refusal(tmp_path / "bare.txt", robot, rate=100.0, columns={"q": [1, 2]})
    assert "the robot has 3 joints (a, b, hand); those that did not move and are not in" in message
    # names of other joints, or of none, are no reason to lock
    other = refusal(path, make_robot(["x", "y"]), columns={})
    assert "lock" not in other


def test_no_files():
    assert "no files" in refusal([], ROBOT)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(tmp_path, bad):
    tau = TAU.copy()
    tau[41:44, 1] = bad
    path = write(tmp_path / "log.csv", time=TIME, q=Q, tau=tau, other=np.full(SAMPLES, bad))
    message = refusal(path, ROBOT)
    assert f"{path}, row 43, column 5 (tau_b): {bad} is not a finite number" in message
    assert "nor are values in 2 more rows" in message
    # what is not used may be anything
    fine = read_log(path, ROBOT, columns={"tau": ["tau_a", "q_a"]})
    np.testing.assert_allclose(fine.tau[:, 0], TAU[:, 0], rtol=1e-15)


# what looks odd


def test_still_joints_and_dead_sensors(tmp_path):
    q, tau = Q.copy(), TAU.copy()
    q[:, 1], tau[:, 0] = 0.25, -3.0
    path = write(tmp_path / "log.csv", time=TIME, q=q, tau=tau)
    still, dead = read_log(path, ROBOT).warnings
    assert "b never moves (q = 0.25)" in still
    assert "tau of a is -3 in every sample" in dead
    path = write(tmp_path / "log.csv", time=TIME, q=Q, tau=0.0 * TAU)
    (dead,) = read_log(path, ROBOT).warnings
    assert "tau of a, b is 0 in every sample" in dead
    assert dead.endswith("nothing fitted to these joints can be trusted; check their columns")


def test_positions_below_their_limits_have_their_sign(tmp_path):
    robot = make_robot(lower=-0.2, upper=4.0)
    path = write(tmp_path / "log.csv", time=TIME, q=Q - 1.3, tau=TAU)
    first, _ = read_log(path, robot).warnings
    assert "q of a reaches -1.3 rad, limits -0.2 to 4" in first


@pytest.mark.parametrize(
    ("rows", "speed", "words"),
    [
        (slice(None), 0.0, "zero in every row"),
        (slice(None), np.nan, f"not a number in {SAMPLES} rows"),
        (slice(7, 8), np.inf, "not a number in 1 row"),
    ],
)
def test_speeds_that_nobody_measured_are_not_used(tmp_path, rows, speed, words):
    dq = np.ones(Q.shape)
    dq[rows] = speed
    path = write(tmp_path / "log.csv", time=TIME, q=Q, dq=dq, tau=TAU)
    found = read_log(path, ROBOT)
    assert found.dq is None
    assert found.warnings == (f"log.csv: dq is {words}, and is not used",)


DQ = np.column_stack([np.cos(TIME), -np.sin(2 * TIME)])
ALL = "log.csv: dq says that all joints move "


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ((1.0, 1.0), ""),
        ((0.9, 1.1), ""),
        (
            (0.5, 0.5),
            f"{ALL}0.5 times as fast as q does; if dq is right, set rate = ",
        ),
        ((57.3, 57.3), f"{ALL}57.3 times as fast as q does; set units = {{ dq = 'deg' }}"),
        ((1.0, -1.0), "log.csv: dq says that b moves -1 times as fast as q does; check its units"),
        (
            (3.0, 0.5),
            "dq says that a moves 3 times, b moves 0.5 times as fast as q does",
        ),
        ((0.0, 0.0), ""),
    ],
)
def test_speeds_are_held_against_positions(tmp_path, factors, words):
    """Noise and offsets of speeds, and joints that stand, say nothing."""
    noise = np.random.default_rng(5).normal(size=DQ.shape) * 2e-4
    dq = np.array(factors) * DQ + noise + 0.1 * np.abs(factors)
    path = write(tmp_path / "log.csv", time=TIME, q=Q, dq=dq, tau=TAU)
    said = read_log(path, ROBOT).warnings
    assert len(said) == bool(words)
    assert words in "".join(said)
    still = write(tmp_path / "still.csv", time=TIME, q=0.0 * Q + 1.0, dq=dq, tau=TAU)
    assert not any("dq" in note for note in read_log(still, ROBOT).warnings)


@pytest.mark.parametrize(
    ("limits", "scale", "refused", "part"),
    [
        ({"lower": -2.0, "upper": 2.0}, 57.3, True, "looks like degrees; set units = { q = 'deg'"),
        ({"lower": -0.1, "upper": 0.1}, 1.0, True, "looks like degrees"),
        ({"lower": -2.0, "upper": 2.0}, 1e5, True, "is not an angle of this joint"),
        ({"lower": -2.0, "upper": 2.0}, 3.0, False, "looks like degrees; if so, set units"),
        ({}, 57.3, False, "looks like degrees; if so"),
        ({}, 20.0, False, "'deg' }; if it turned"),
        ({"lower": -0.9, "upper": 0.9}, 1.0, False, "outside its limits; check the zero"),
    ],
)
def test_degrees(tmp_path, limits, scale, refused, part):
    robot = make_robot(**limits)
    path = write(tmp_path / "log.csv", time=TIME, q=scale * Q, tau=TAU)
    if refused:
        assert part in refusal(path, robot)
        stated = read_log(path, robot, units={"q": "rad"}).warnings
        assert "check the unit and the zero" in stated[0]
    else:
        warnings = read_log(path, robot).warnings
        assert "q of a reaches" in warnings[0]
        assert part in warnings[0]


def test_degrees_or_the_motor_side(tmp_path):
    robot = make_robot(drives=coupled_drives(), lower=-2.0, upper=2.0)
    path = write(tmp_path / "log.csv", time=TIME, q=50 * Q, tau=TAU)
    assert "or, for motor positions, side = 'motor'" in refusal(path, robot)


@pytest.mark.parametrize(
    "limits", [{}, {"lower": -1e3, "upper": 1e3}, {"lower": 0.0, "upper": 0.0}]
)
def test_what_stays_within_reach_is_not_remarked(tmp_path, limits):
    robot = make_robot(**limits)
    path = write(tmp_path / "log.csv", time=TIME, q=9.0 * Q, tau=TAU)
    assert read_log(path, robot).warnings == ()


def test_millimetres(tmp_path):
    robot = make_robot(kinds=["prismatic", "prismatic"], lower=-1.5, upper=1.5)
    path = write(tmp_path / "log.csv", time=TIME, q=1e3 * Q, tau=TAU)
    assert (
        "looks like millimetres; if so, set units = { q = 'mm' }"
        in read_log(path, robot).warnings[0]
    )


def test_what_is_a_little_outside_its_limits_is_not_in_millimetres(tmp_path):
    robot = make_robot(kinds=["prismatic", "prismatic"], lower=-0.2, upper=0.2)
    path = write(tmp_path / "log.csv", time=TIME, q=0.4 * Q / np.abs(Q).max(), tau=TAU)
    warnings = read_log(path, robot).warnings
    assert warnings
    assert all("outside its limits; check the zero and the unit" in each for each in warnings)


def test_torques_beyond_the_effort(tmp_path):
    path = write(tmp_path / "log.csv", time=TIME, q=Q, tau=np.clip(TAU, -1, 1) * [1.0, 50.0])
    (warning,) = read_log(path, make_robot(effort=10.0)).warnings
    assert warning.startswith(
        "log.csv: tau of b reaches 50, its effort limit is 10; check the side"
    )
    assert read_log(path, make_robot(effort=0.0)).warnings == ()


# measured logs


def test_tx40(measured):
    files = [measured("tx40/pos_read_data.csv"), measured("tx40/curr_data.csv")]
    reduction = np.diag([32.0, 32, 45, -48, 45, 32])
    reduction[5, 4] = 32.0
    zero = np.array([0, -np.pi / 2, np.pi / 2, 0, 0, 0])
    deg = np.deg2rad([180, 125, 138, 270, 133.5, 270])
    robot = make_robot("123456", Drives(np.eye(6), reduction, zero, np.ones(6)))
    joints = tuple(replace(j, lower=-d, upper=d) for j, d in zip(robot.joints, deg, strict=True))
    robot = replace(robot, joints=joints)
    columns = {"q": "pos_read_data.csv:*", "tau": "curr_data.csv:*"}
    log = read_log(files, robot, rate=5000, side="motor", columns=columns)
    assert log.q.shape == log.tau.shape == (45000, 6)
    assert log.duration == 9.0
    assert log.warnings == ()
    motor = np.loadtxt(files[0], delimiter=",", skiprows=1)
    torque = np.loadtxt(files[1], delimiter=",", skiprows=1)
    np.testing.assert_allclose((log.q - zero) @ reduction.T, motor, atol=1e-9)
    np.testing.assert_allclose(log.tau[:, 4], 45 * torque[:, 4] + 32 * torque[:, 5], rtol=1e-12)
    assert "side = 'motor'" in refusal(files, robot, rate=5000, columns=columns)


def test_emps(measured):
    path = measured("emps/DATA_EMPS.mat")
    drives = replace(Drives.direct(1), gain=np.array([35.15]))
    robot = make_robot(["slide"], drives, ["prismatic"])
    columns = {"time": "t", "q": ["qm"], "qref": ["qg"], "current": ["vir"]}
    log = read_log(path, robot, columns=columns)
    assert log.rate == 1000.0
    assert log.q.shape == (24841, 1)
    assert log.warnings == ()
    assert log.qref is not None
    assert np.abs(log.qref - log.q).max() < 0.01
    assert np.abs(log.tau).max() <= 351.5


def test_lwr4(measured):
    path = measured("lwr4/measurements_1.npz")
    robot = make_robot([f"a{i}" for i in range(7)])
    columns = {
        "time": "times",
        "q": "positions_*",
        "dq": "velocities_*",
        "ddq": "accelerations_*",
        "tau": "torques_*",
    }
    log = read_log(path, robot, columns=columns)
    assert log.rate == pytest.approx(200.0, rel=1e-3)
    assert "jitter by up to" in log.warnings[0]
    with np.load(path) as file:
        raw = {name: file[name] for name in ("times", "positions")}
    assert abs(len(log.q) - len(raw["times"])) <= 1
    np.testing.assert_allclose(log.q.max(axis=0), raw["positions"].max(axis=0), atol=1e-3)


def test_currents_without_a_sign_are_sizes_where_no_torque_is_asked_for(tmp_path):
    path = write(tmp_path / "log.csv", time=TIME, q=Q, current=np.abs(TAU))
    log = read_log(path, ROBOT, torque=False)
    assert log.torque != "measured"
    assert any("currents without a sign are taken as sizes" in each for each in log.warnings)
    np.testing.assert_allclose(log.unsigned, np.abs(TAU))
    np.testing.assert_allclose(log.tau, 0.0)
    np.testing.assert_allclose(read_log(path, ROBOT).tau, np.abs(TAU))
    signed = write(tmp_path / "signed.csv", time=TIME, q=Q, current=TAU)
    assert read_log(signed, ROBOT, torque=False).torque == "measured"


def test_a_locked_joint_that_the_log_has_elsewhere_is_said(log, tmp_path):
    def warned(at, **keys):
        robot = replace(make_robot(("a",)), locked={"b": at, "c": 0.0})
        found = read_log(keys.pop("file", log), robot, **keys)
        return [note for note in found.warnings if "locked" in note]

    words = "log.csv: b is locked at 0.1, but the log has it from -0.5 to 0.5: the model holds it"
    assert [note[: len(words)] for note in warned(0.1)] == [words]
    still = write(tmp_path / "still.csv", time=TIME, q=np.column_stack([Q[:, 0], 0 * TIME + 0.3]),
                  tau=TAU)  # fmt: skip
    assert not warned(0.31, file=still)
    assert "from 0.3 to 0.3" in warned(0.0, file=still)[0]
    assert not warned(0.1, columns={"q": "q_a", "tau": "tau_a"})
    assert "from -0.00873 to 0.00873" not in str(warned(0.1, units={"q": "deg"}))
    assert "locked at 0.1" in warned(0.1, units={"q": "rev"}, columns={"q": "q_*"})[0]
