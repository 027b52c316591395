"""Arrays of several libraries into recordings, by the same checks as files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import toy
import xarray as xr
from pyarrow import csv
from tables import write_joints
from test_recording_read import ROBOT, SAMPLES, TAU, TIME, Q, make_robot, write
from test_recording_read import refusal as file_refusal

import dynident as di
from dynident.core.errors import InputError
from dynident.robot.drives import Drives
from dynident.robot.model import Contact

DATES = np.datetime64("2026-01-01", "ns") + (1e9 * TIME).astype("m8[ns]")


def refusal(*args, **kwargs):
    with pytest.raises(InputError) as caught:
        di.read_arrays(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    return message


def frame(values, names=("a", "b"), **options):
    return pd.DataFrame(values, columns=list(names), **options)


WHOLE = frame(np.column_stack([TIME, TAU[:, ::-1], Q]), ("time", "tau_b", "tau_a", "q_a", "q_b"))
"""A file as it was read."""


@pytest.mark.parametrize(
    ("q", "tau", "options"),
    [
        (Q, TAU, {"rate": 100.0}),
        (Q.tolist(), tuple(map(tuple, TAU)), {"time": TIME.tolist()}),
        (Q[:, ::-1][:, ::-1], np.asfortranarray(TAU), {"time": TIME[:, None]}),
        (np.ma.masked_array(Q), TAU, {"time": pd.Series(TIME)}),
        (frame(Q), frame(TAU), {"time": pl.Series(TIME)}),
        (frame(Q, index=pd.Index(TIME, name="time")), TAU, {}),
        (frame(Q, index=pd.Index(TIME, name="t")), frame(TAU), {}),
        (frame(Q, index=pd.DatetimeIndex(DATES)), TAU, {}),
        (frame(Q, index=pd.DatetimeIndex(DATES, tz="Europe/Berlin")), TAU, {}),
        (frame(Q), TAU, {"time": pd.to_timedelta(TIME, unit="s")}),
        (frame(Q).convert_dtypes(), frame(TAU), {"time": DATES}),
        (frame(np.column_stack([Q, TIME]), ("a", "b", "time")), TAU, {}),
        (frame(Q[:, ::-1], ("q_b", "q_a")), frame(TAU, ("tau_a", "tau_b")), {"rate": 100.0}),
        (pl.DataFrame({"b": Q[:, 1], "t": TIME, "a": Q[:, 0]}), frame(TAU), {}),
        (pl.DataFrame({"b": Q[:, 1], "a": Q[:, 0]}), TAU[:, ::-1], {"time": TIME, "joints": "ba"}),
        (xr.DataArray(Q.T, {"joint": ["a", "b"], "time": TIME}, ["joint", "time"]), TAU, {}),
        (xr.DataArray(Q, {"t": DATES}, ["t", "axis"]), TAU, {}),
        (xr.DataArray(Q.T, {"joint": ["a", "b"]}, ["joint", "sample"]), TAU, {"rate": 100.0}),
        (WHOLE, WHOLE, {}),
        (xr.DataArray(Q, dims=["sample", "axis"]), TAU, {"rate": 100.0}),
    ],
)
def test_what_may_be_handed_over(q, tau, options):
    joints = options.pop("joints", None)
    recording = di.read_arrays(
        q, tau, robot=ROBOT, joints=None if joints is None else [*joints], **options
    )
    assert recording.rate == pytest.approx(100.0, rel=1e-9)
    assert recording.joints == ("a", "b")
    assert recording.warnings == ()
    np.testing.assert_array_equal(recording.q, Q)
    np.testing.assert_array_equal(recording.tau, TAU)


def test_the_callers_arrays_are_copied_and_left_alone():
    arrays = {"q": Q.copy(), "tau": TAU.copy(), "qref": Q.copy(), "time": TIME.copy()}
    recording = di.read_arrays(
        arrays["q"], arrays["tau"], time=arrays["time"], qref=arrays["qref"], units={"q": "deg"}
    )
    for key, before in (("q", Q), ("tau", TAU), ("qref", Q), ("time", TIME)):
        assert arrays[key].flags.writeable
        np.testing.assert_array_equal(arrays[key], before)
    arrays["q"][:] = arrays["tau"][:] = 7.0
    np.testing.assert_allclose(recording.q, np.deg2rad(Q), rtol=1e-15)
    np.testing.assert_array_equal(recording.tau, TAU)
    assert not recording.q.flags.writeable


def test_signals_have_the_units_of_a_file():
    robot = make_robot(kinds=["revolute", "prismatic"])
    recording = di.read_arrays(
        Q, TAU, dq=Q, ddq=Q, qref=Q, dqref=Q, time=1e3 * TIME, robot=robot,
        units={"q": ["deg", "mm"], "ddq": ["rev", "m"], "time": "ms"},
    )  # fmt: skip
    scale = np.array([np.pi / 180.0, 1e-3])
    for signal in (recording.q, recording.dq, recording.qref, recording.dqref):
        np.testing.assert_allclose(signal, Q * scale, rtol=1e-15)
    np.testing.assert_allclose(recording.ddq, Q * [2.0 * np.pi, 1.0], rtol=1e-15)
    assert recording.rate == 100.0
    without = di.read_arrays(Q, TAU, rate=100, units={"q": ["deg", "mm"]})
    np.testing.assert_array_equal(without.q, recording.q)
    assert without.joints is None


def test_motors():
    drives = Drives(np.eye(2), np.diag([50.0, 1.0]), np.array([0.1, 0.0]), np.ones(2))
    robot = make_robot(drives=drives)
    recording = di.read_arrays(Q, TAU, dq=Q, rate=100.0, robot=robot, side=["motor", "joint"])
    np.testing.assert_allclose(recording.q, Q / [50.0, 1.0] + [0.1, 0.0], rtol=1e-14)
    np.testing.assert_allclose(recording.dq, Q / [50.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(recording.tau, TAU * [50.0, 1.0], rtol=1e-14)
    assert "needs the robot" in refusal(Q, TAU, rate=100.0, side="motor")


def test_a_frame_with_all_signals_needs_no_robot():
    recording = di.read_arrays(WHOLE, WHOLE)
    assert recording.joints == ("a", "b")
    np.testing.assert_array_equal(recording.tau, TAU)
    robot = make_robot(["q_a", "q_b"])  # names that look like signals of files
    recording = di.read_arrays(
        WHOLE[["q_b", "q_a"]],
        WHOLE[["tau_a", "tau_b"]].to_numpy(),
        rate=100.0,
        joints=["q_a", "q_b"],
        robot=robot,
    )
    np.testing.assert_array_equal(recording.q, Q)


def test_one_joint():
    robot = make_robot(["slide"], kinds=["prismatic"])
    for q, tau in (
        (Q[:, 0], TAU[:, :1]),
        (pd.Series(Q[:, 0], name="position"), TAU[:, 0].tolist()),
        (pl.Series(Q[:, 0]), xr.DataArray(TAU[:, 0], {"time": TIME}, ["time"])),
    ):
        recording = di.read_arrays(q, tau, time=TIME, robot=robot)
        np.testing.assert_array_equal(recording.q, Q[:, :1])
        np.testing.assert_array_equal(recording.tau, TAU[:, :1])


def test_the_words_are_those_of_files(tmp_path):
    def both(q, tau, time=TIME, **options):
        path = write(tmp_path / "log.csv", time=time, q=q, tau=tau)
        return (
            file_refusal(path, ROBOT, **options),
            refusal(q, tau, time=time, robot=ROBOT, name="log", **options),
        )

    bad = TAU.copy()
    bad[41:44, 1] = np.inf
    in_file, in_memory = both(Q, bad)
    assert in_memory == (
        "log: tau, row 42, column 2 (b): inf is not a finite number of sensible size, nor are "
        "values in 2 more rows; set bad_rows = 'cut', or split the log there"
    )
    assert in_file.partition(": inf is")[2] == in_memory.partition(": inf is")[2]
    back = TIME.copy()
    back[7] = back[6]
    in_file, in_memory = both(Q, TAU, back)
    assert in_memory.startswith("log: time, row 8, column 1 (time): time 0.06 repeats 0.06")
    assert in_file.partition(": time 0.06")[2] == in_memory.partition(": time 0.06")[2]
    for options, words in (
        ({"units": {"q": "degrees"}}, "units.q: 'degrees' is unknown; did you mean 'deg'?"),
        ({"rate": np.nan}, "rate = nan is not a sample rate; give it in Hz"),
        ({"clock": "quartz"}, "clock"),
        ({"side": "drive"}, "side: 'drive' is unknown; known are joint, motor"),
        ({"side": "motor"}, "has no transmission"),
    ):
        in_file, in_memory = both(Q, TAU, **options)
        assert words in in_file
        assert in_file.partition(": ")[2] == in_memory.partition(": ")[2]
    in_file, in_memory = both(Q[:49], TAU[:49], TIME[:49])
    assert in_file.partition(": ")[2] == in_memory.partition(": ")[2] != ""


def test_bad_rows_are_cut_gaps_bridged_and_rates_compared():
    q, time = Q.copy(), TIME.copy()
    q[40, 0], q[60, 1], time[90] = np.nan, 1e30, -1.0
    recording = di.read_arrays(q, TAU, time=time, rate=50.0, bad_rows="cut")
    assert recording.segments == ((0, SAMPLES),)
    cut, rate, bridged = recording.warnings
    assert "3 rows of 200 cut: 2 with values that are not finite" in cut
    assert "(row 41, 61), 1 whose time repeats or goes back (row 91)" in cut
    assert "rate = 50 Hz, but the time column says 100 Hz; time is used" in rate + bridged
    np.testing.assert_allclose(recording.q, Q, atol=1e-5)
    dates = DATES.copy()
    dates[[0, 5]] = np.datetime64("NaT")
    assert (
        "2 rows of 200 cut" in di.read_arrays(q=Q, tau=TAU, time=dates, bad_rows="cut").warnings[0]
    )
    missing = frame(Q)
    missing.loc[12, "a"] = None
    assert "q, row 13, column 1 (a): nan is not a finite number" in refusal(missing, TAU, rate=1e2)


@pytest.mark.parametrize(
    ("q", "tau", "options", "words"),
    [
        (Q, TAU, {}, "has no time; give time, or rate"),
        (Q, TAU[:-1], {}, "tau has shape (199, 2), q has (200, 2)"),
        (Q, TAU[:, :1], {}, "tau has shape (200, 1), q has (200, 2)"),
        (Q, TAU[:, :1], {"robot": ROBOT}, "tau has 1 columns, the robot has 2 joints (a, b)"),
        (Q[None], TAU, {}, "q has shape (1, 200, 2); it needs a row a sample and a column a joint"),
        (Q[:0], TAU, {}, "q has shape (0, 2); it needs a row"),
        (Q.astype(complex), TAU, {}, "q is not an array of numbers (its type is complex128)"),
        (Q, [["x", "y"]] * 200, {}, "tau is not an array of numbers"),
        (Q, [[1.0], [1.0, 2.0]], {}, "tau is not an array of numbers"),
        (Q, {"a": 1.0}, {}, "tau is not an array of numbers"),
        (Q, None, {}, "tau is None; it is needed"),
        (Q, TAU, {"time": TIME[1:]}, "time has shape (199,), q has (200, 2)"),
        (Q, TAU, {"time": ["noon"] * 200}, "time is not an array of numbers"),
        (Q, TAU, {"time": DATES, "units": {"time": "ms"}}, "units.time is for numbers"),
        (frame(Q, index=pd.Index(["x"] * 200, name="t")), TAU, {}, "time of q is not an array"),
        (
            frame(Q, index=pd.DatetimeIndex(DATES)),
            frame(TAU, index=pd.to_timedelta(TIME, unit="s")), {}, "time of tau is not an array",
        ),
        (Q, TAU, {"time": TIME, "units": {"time": "min"}}, "units.time = 'min'; known are s, ms"),
        (Q, TAU, {"joints": ["a"], "rate": 1.0}, "q has 2 columns, joints names 1"),
        (Q, TAU, {"joints": ["a", "a"], "rate": 1e2}, "each needs a name of its own"),
        (frame(Q, ("a", "a")), TAU, {"rate": 1.0}, "q has column 'a' twice; rename one"),
        (frame(Q, ("a", "c")), TAU, {"rate": 1.0, "robot": ROBOT}, "q has no column of joint 'b'"),
        (frame(Q, ("b", "a")), TAU, {"rate": 1.0, "robot": ROBOT}, "give joints, their names"),
        (frame(Q), frame(TAU, ("a", "c")), {"rate": 1.0}, "tau has no column of joint 'b'"),
        (frame(Q).astype(str) + "x", TAU, {"rate": 1.0}, "q is not an array of numbers"),
        (
            xr.DataArray(Q[None], dims=["run", "time", "joint"]), TAU, {}, "q has shape (1, 200, 2)"
        ),
    ],
)  # fmt: skip
def test_refused_arrays(q, tau, options, words):
    message = refusal(q, tau, **options)
    assert message.startswith("recording: ")
    assert words in message


def test_signals_of_other_times_are_refused():
    late = frame(TAU, index=pd.Index(TIME + 0.5, name="time"))
    message = refusal(frame(Q, index=pd.Index(TIME, name="time")), late)
    assert (
        "time of tau, row 1, column 1 (time): is 0.5 s off the time in recording: time of q"
        in message
    )
    assert di.read_arrays(frame(Q), late, time=TIME).rate == 100.0


def test_a_joint_that_is_not_in_the_log_may_be_locked():
    message = refusal(frame(Q[:, :1], ["a"]), frame(TAU), rate=100.0, robot=ROBOT)
    assert "q has no column of joint 'b'; there are 'a'" in message
    assert (
        "if b did not move, lock it (--locked b, or locked = { b = 0.0 } of the robot)" in message
    )


def test_a_problem_takes_the_columns_of_its_robots_joints_by_name():
    robot = toy.arm(2)
    model = di.build_idim(robot)
    q, dq, ddq = toy.motion(2, 4.0, 0, 200.0)
    tau = model.torque(toy.true_parameters(model, robot.nominal), q, dq, ddq)
    first, second = robot.joint_names
    swapped = [second, "gripper", first]
    spread = lambda x: frame(np.column_stack([x[:, 1], x[:, 0] + x[:, 1], x[:, 0]]), swapped)  # noqa: E731

    def fitted(recording, **options):
        return di.identify(di.Problem(robot, di.prepare(recording, **options)), "ols")

    straight = fitted(di.read_arrays(q, tau, rate=200.0), bandwidth=(5.0, 6.0))
    named = di.read_arrays(spread(q), spread(tau), rate=200.0)
    assert named.joints == tuple(swapped)
    by_name = fitted(named, bandwidth=(6.0, 9.0, 5.0))
    np.testing.assert_allclose(by_name.estimate.beta, straight.estimate.beta, rtol=1e-8)
    at_once = fitted(
        di.read_arrays(spread(q), spread(tau), rate=200.0, robot=robot), bandwidth=(5.0, 6.0)
    )
    np.testing.assert_allclose(at_once.estimate.beta, straight.estimate.beta, rtol=1e-8)
    other = di.read_arrays(frame(q, ["shoulder", "x"]), tau, rate=200.0)
    with pytest.raises(InputError, match=f"recording: no column of joint '{first}'; there are"):
        fitted(other, bandwidth=5.0)


def arrow(given):
    return pa.Table.from_pandas(given, preserve_index=False)


BY_DATE = WHOLE.drop(columns="time").set_index(pd.DatetimeIndex(DATES))
"""The same, its time an index of dates."""
EVERY = [
    WHOLE,
    WHOLE.convert_dtypes(),
    WHOLE.assign(words="a"),
    BY_DATE,
    WHOLE.drop(columns="time").set_index(pd.Index(TIME, name="time")),
    pl.from_pandas(WHOLE),
    pl.from_pandas(WHOLE.assign(time=DATES, words="a")),
    arrow(WHOLE),
    arrow(WHOLE.assign(time=DATES)),
    xr.Dataset.from_dataframe(WHOLE.set_index("time")),
    xr.Dataset.from_dataframe(BY_DATE.rename_axis("t").assign(words="a")),
    xr.Dataset(
        {"q": (["joint", "time"], Q.T), "tau": (["time", "joint"], TAU), "run": 3},
        {"time": TIME, "joint": ["a", "b"]},
    ),
]


@pytest.mark.parametrize("given", EVERY, ids=range(len(EVERY)))
def test_a_whole_frame_is_given_once(given):
    found = [di.read_log(given, ROBOT), di.read_arrays(given, robot=ROBOT), di.read_arrays(given)]
    for recording in found:
        assert recording.rate == pytest.approx(100.0, rel=1e-9)
        assert recording.joints == ("a", "b")
        assert recording.warnings == ()
        np.testing.assert_array_equal(recording.q, Q)
        np.testing.assert_array_equal(recording.tau, TAU)


def test_a_frame_is_read_as_the_file_that_it_was(tmp_path):
    foreign = WHOLE.rename(columns={"time": "stamp", "q_a": "pos_a", "q_b": "pos_b"})
    foreign["pos_a"] = np.rad2deg(foreign["pos_a"])
    options = {
        "columns": {"time": "stamp", "q": "pos_*", "tau": ["tau_a", "tau_b"]},
        "units": {"q": ["deg", "rad"]},
    }
    path = tmp_path / "log.csv"
    foreign.to_csv(path, index=False)
    file = di.read_log(path, ROBOT, **options)
    held = di.read_log(foreign, ROBOT, name="mine", **options)
    assert held.name == "mine"
    assert di.read_log(foreign, ROBOT, **options).name == "frame"
    np.testing.assert_array_equal(held.q, file.q)
    np.testing.assert_array_equal(held.tau, file.tau)
    parts = [foreign[["stamp", "tau_a", "tau_b"]], pl.from_pandas(foreign[["pos_a", "pos_b"]])]
    np.testing.assert_array_equal(di.read_log(parts, ROBOT, **options).q, file.q)
    twice = di.read_log([foreign, foreign], ROBOT, stack="time", **options)
    assert len(twice.segments) == 2


@pytest.mark.long
def test_what_takes_a_log_takes_a_file_or_a_frame(tmp_path):
    fit = fitted()
    log = toy.measure(fit.robot, 4.0)
    path = tmp_path / "run.csv"
    write_joints(path, fit.robot.joint_names, log.rate, q=log.q, tau=log.tau)
    read = di.read_log(path, fit.robot)
    frame = pd.read_csv(path)
    for given in (path, str(path), frame, pl.read_csv(path), csv.read_csv(path), xr.Dataset(frame)):
        prepared = fit.prepare(given)
        np.testing.assert_array_equal(prepared.tau, fit.prepare(read).tau)
        assert fit.prepare(prepared) is prepared
    assert di.validate(fit, frame) == di.validate(fit, read)
    one, other = (di.track(fit, each, every=1.0).to_frame() for each in (frame, read))
    pd.testing.assert_frame_equal(one, other)
    loads = [di.payload(fit, each).load for each in (frame, read)]
    np.testing.assert_array_equal(loads[0].phi, loads[1].phi)


def test_the_doctor_looks_at_a_frame():
    robot = toy.arm(2)
    log = toy.measure(robot, 6.0)
    columns = {f"q_{name}": q for name, q in zip(robot.joint_names, log.q.T, strict=True)}
    turned = log.tau * [1.0, -1.0]
    columns |= {f"tau_{name}": tau for name, tau in zip(robot.joint_names, turned.T, strict=True)}
    read = di.read_log(pl.DataFrame(columns), robot, rate=log.rate)
    (report,) = di.doctor(di.Problem(robot, di.prepare(read, 10.0)))
    assert [found.diagnosis for found in report.findings] == ["torque sign"]
    assert report.repair.sign == {"tau": (1, -1)}
    blind = di.read_log(pl.DataFrame(columns).select(pl.col("^q_.*$")), robot, rate=log.rate,
                        torque=False)  # fmt: skip
    with pytest.raises(InputError, match=r"give a study with \[controller\]"):
        di.doctor(di.Problem(robot, di.prepare(blind, 10.0)))


@cache
def fitted() -> di.Fit:
    samples = toy.on_its_motion(toy.log(toy.arm(2), 4.0, 0.3)[0])
    return di.identify(di.Problem(toy.arm(2), samples), doctor=False)


def test_other_signals_of_a_frame_are_taken_unless_they_are_given():
    more = WHOLE.assign(dq_a=1.0, dq_b=2.0, qref_a=TIME, qref_b=TIME)
    recording = di.read_arrays(more, dq=frame(3.0 + 0.0 * Q), robot=ROBOT)
    assert np.all(recording.dq == 3.0)
    np.testing.assert_array_equal(recording.qref, np.column_stack([TIME, TIME]))
    assert di.read_log(more, ROBOT).dq[0].tolist() == [1.0, 2.0]


def test_frames_that_are_no_logs_are_refused_in_the_words_of_files():
    def refused(given, **options):
        with pytest.raises(InputError) as caught:
            di.read_log(given, ROBOT, **options)
        return str(caught.value)

    assert "frame: no column 'q_a' for q" in refused(WHOLE.drop(columns="q_a"))
    assert "'q_a' cannot be q: it holds no numbers" in refused(WHOLE.assign(q_a="x"))
    assert "frame: holds no samples" in refused(WHOLE.iloc[:0])
    axes = ["time", "axis"]
    numbered = xr.Dataset({"q": (axes, Q), "tau": (axes, TAU)}, {"time": TIME})
    np.testing.assert_array_equal(di.read_log(numbered, ROBOT).q, Q)  # as q_0 ... of files
    assert "no column 'q_a' for q; it has 'x_*', 'tau_*', one a joint" in refused(
        numbered.rename(q="x")
    )
    assert "not ndarray: dynident.read_arrays(q, tau, rate=...) takes arrays" in refused(Q)
    assert "has column 'time' twice" in refused(pd.concat([WHOLE, WHOLE["time"]], axis=1))
    bad = WHOLE.copy()
    bad.loc[3, "q_a"] = np.nan
    assert "frame, row 4, column 4 (q_a): nan is not a finite" in refused(bad)
    assert "rate" in refused(WHOLE.drop(columns="time"))
    assert refusal(WHOLE.drop(columns=["tau_a", "tau_b"])) == "recording: tau is None; it is needed"
    assert di.read_log(WHOLE.drop(columns="time"), ROBOT, rate=100.0).rate == 100.0


def test_a_base_and_contacts_of_frames_are_taken_by_the_columns_names(tmp_path):
    hand = Contact("hand", "l1", 1, np.eye(3), np.zeros(3))
    robot = replace(ROBOT, floating=True, nominal=np.zeros((3, 10)), contacts=(hand,))
    base = [f"base_{axis}" for axis in ("px", "py", "pz", "qx", "qy", "qz", "qw")]
    force = [f"{axis}_hand" for axis in ("fx", "fy", "fz", "mx", "my", "mz")]
    more = WHOLE.assign(**{name: np.full(SAMPLES, 0.1 * k) for k, name in enumerate(force, 1)})
    more = more.assign(**dict.fromkeys(base, 0.0) | {"base_qw": 1.0, "base_px": 0.01 * TIME})
    more.to_csv(tmp_path / "log.csv", index=False)
    parts = {"base_position": base[2::-1], "base_orientation": base[:2:-1]}
    body = {key: more[names] for key, names in parts.items()} | {"wrench_hand": more[force[::-1]]}
    read = di.read_log(tmp_path / "log.csv", robot)
    for found in (
        di.read_arrays(more, robot=robot),
        di.read_arrays(Q, TAU, time=TIME, robot=robot, body=body),
    ):
        np.testing.assert_array_equal(found.base.position, read.base.position)
        np.testing.assert_array_equal(found.base.orientation, read.base.orientation)
        np.testing.assert_array_equal(found.wrenches["hand"], read.wrenches["hand"])
    named = more[base[3:]].rename(columns=lambda name: name[-1])
    assert "base_orientation has no column 'base_qx'; there are 'x', 'y', 'z', 'w'" in refusal(
        Q, TAU, time=TIME, robot=robot, body={**body, "base_orientation": named}
    )
