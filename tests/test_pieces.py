"""Logs that are read in pieces: the same as in one, in memory that does not grow with them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import toy

import dynident as di
from dynident.core import store as storing
from dynident.core.errors import ComputationError, InputError
from dynident.core.factors import fix_signs, merge_all
from dynident.core.store import Store
from dynident.diagnosis.signs import Sign, find_signs
from dynident.filters import blocks
from dynident.filters import clock as clocks
from dynident.filters.blocks import LongSignal, open_stored_signal
from dynident.filters.clock import ClockOptions, find_clock, find_even_clock
from dynident.fit.provenance import hash_log
from dynident.readers import parquet, table, text
from dynident.recording import pieces as reading
from dynident.recording import prepare as preparing
from dynident.regression.blocks import factor_runs
from dynident.regression.problem import Problem
from dynident.robot.spec import DriveSpec

ARM = Path(__file__).parents[1] / "docs" / "files" / "arm.urdf"
RATE = 200.0
NAMES = ("time", "q_shoulder", "q_elbow", "tau_shoulder", "tau_elbow")


@pytest.fixture(scope="module")
def robot() -> di.Robot:
    return di.load_robot(ARM)


def shorten(monkeypatch: pytest.MonkeyPatch, rows: int = 700) -> None:
    """Bounds by which a log of a few thousand samples is long, and comes in some pieces."""
    for module in (storing, table, parquet, clocks):
        monkeypatch.setattr(module, "ROWS", rows)
    monkeypatch.setattr(text, "LARGE", 0)
    monkeypatch.setattr(text, "LINES", rows)
    monkeypatch.setattr(reading, "LONG", 0)


def make_log(samples: int = 4000, gap: bool = False) -> np.ndarray:
    """Time, positions and torques of the two-joint arm, shape (samples, 5)."""
    model = di.build_idim(di.load_robot(ARM), "coulomb-viscous")
    q, dq, ddq = (0.35 * x for x in toy.motion(2, samples / RATE, 1, RATE))
    drives = [0.20, 1.5, 2.0, 0.1, 0.08, 0.6, 0.9, -0.05]
    tau = model.torque(np.concatenate([1.1 * model.robot.nominal.ravel(), drives]), q, dq, ddq)
    tau += np.random.default_rng(1).normal(scale=[0.5, 0.2], size=tau.shape)
    time = np.arange(samples) / RATE
    if gap:
        time[samples // 3 :] += 0.5
    return np.column_stack([time, q, tau])


def write(path: Path, values: np.ndarray) -> Path:
    """A log in the format of its ending."""
    columns = dict(zip(NAMES, values.T, strict=True))
    if path.suffix == ".npz":
        np.savez_compressed(path, **columns)
    elif path.suffix == ".csv":
        np.savetxt(path, values, fmt="%.17g", delimiter=",", header=",".join(NAMES), comments="")
    elif path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), path, 900)
    else:
        with pytest.importorskip("h5py").File(path, "w") as file:
            for name, column in columns.items():
                file[name] = column
    return path


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("kind", ["csv", "npz", "parquet", "h5"])
def test_a_log_in_pieces_is_the_log(kind, gap, robot, tmp_path, monkeypatch):
    path = write(tmp_path / f"run.{kind}", make_log(gap=gap))
    units = {"q": "deg"}
    whole = di.read_log(path, robot, units=units)
    shorten(monkeypatch)
    found = di.read_log(path, robot, units=units, pieces=True)
    assert isinstance(found.q, LongSignal)
    assert isinstance(found.tau, LongSignal)
    np.testing.assert_array_equal(found.q[:], whole.q)
    np.testing.assert_array_equal(found.tau[:], whole.tau)
    assert (found.rate, found.segments) == (whole.rate, whole.segments)
    assert found.warnings == whole.warnings
    assert len(found.segments) == 1 + gap
    for sample in (0, 1400, 3999):
        time = sample / RATE + 0.5 * (gap and sample > 4000 // 3)
        assert found.find_time(sample) == pytest.approx(time, abs=1e-9)
        assert whole.rows(7, 4000).find_time(sample - 7) == pytest.approx(time, abs=1e-9)
    part, other = found.rows(100, 3000), whole.rows(100, 3000)
    np.testing.assert_array_equal(part.tau[:], other.tau)
    assert part.segments == other.segments


def test_a_log_in_pieces_has_the_rate_that_is_stated(robot, tmp_path, monkeypatch):
    path = write(tmp_path / "run.csv", make_log(gap=True))
    given = {"units": {"q": "deg"}, "rate": 0.5 * RATE, "clock": "rate"}
    whole = di.read_log(path, robot, **given)
    shorten(monkeypatch)
    found = di.read_log(path, robot, pieces=True, **given)
    assert isinstance(found.q, LongSignal)
    assert (found.rate, found.segments) == (0.5 * RATE, whole.segments)
    assert (found.stamps, found.warnings) == (whole.stamps, whole.warnings)


def test_a_log_in_pieces_has_the_units_of_its_header(robot, tmp_path, monkeypatch):
    path = write(tmp_path / "run.csv", make_log())
    plain = di.read_log(path, robot, units={"q": "deg"})
    head, _, rows = path.read_text().partition("\n")
    path.write_text(f"{head}\ns,deg,deg,Nm,Nm\n{rows}")
    shorten(monkeypatch)
    found = di.read_log(path, robot, pieces=True)
    assert isinstance(found.q, LongSignal)
    np.testing.assert_array_equal(found.q[:], plain.q)


@pytest.mark.parametrize("end", ["0.2,0.1", "0.2,0.1,0.1,1e-"])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "txt"])
def test_a_last_row_that_was_cut_off_is_cut(kind, end, robot, tmp_path, monkeypatch):
    path = write(tmp_path / "run.csv", make_log(2000))
    plain = di.read_log(path, robot, units={"q": "deg"})
    text, path = path.read_text() + end, tmp_path / f"cut.{kind}"
    text = text if kind != "txt" else text.replace(",", "  ")  # two blanks are not empty cell
    path.write_bytes(gzip.compress(text.encode()) if kind == "csv.gz" else text.encode())
    with pytest.raises(InputError, match=r"row 2002, .* last row, or set bad_rows = 'cut'$"):
        di.read_log(path, robot, units={"q": "deg"})
    for pieces in (False, True):
        if pieces:
            shorten(monkeypatch)
        found = di.read_log(path, robot, units={"q": "deg"}, bad_rows="cut", pieces=pieces)
        assert isinstance(found.q, LongSignal) == pieces
        np.testing.assert_array_equal(found.q[:], plain.q)
        (note,) = (each for each in found.warnings if each not in plain.warnings)
        assert note.startswith(f"{path.name}: row 2002, column")
        assert note.endswith("the log was cut off; this row is cut")


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_angles_that_begin_a_turn_anew_go_on(kind, robot, tmp_path, monkeypatch):
    turning = make_log()
    turning[:, 1] += 3.0 * turning[:, 0]
    wrapped = turning.copy()
    wrapped[:, 1] = np.mod(turning[:, 1] + np.pi, 2.0 * np.pi) - np.pi
    first = wrapped[0, 1] - turning[0, 1]
    wrapped[:, 1:3] = np.degrees(wrapped[:, 1:3])
    path = write(tmp_path / f"run.{kind}", wrapped)
    whole = di.read_log(path, robot, units={"q": "deg"})
    np.testing.assert_allclose(whole.q[:, 0], turning[:, 1] + first, atol=1e-12)
    np.testing.assert_allclose(whole.q[:, 1], turning[:, 2], atol=1e-12)
    assert [x for x in whole.warnings if "q of shoulder jumps by a turn" in x]
    shorten(monkeypatch)
    found = di.read_log(path, robot, units={"q": "deg"}, pieces=True)
    assert isinstance(found.q, LongSignal)
    np.testing.assert_allclose(found.q[:], whole.q, atol=1e-12)
    assert found.warnings == whole.warnings


@pytest.mark.parametrize("pieces", [False, True])
def test_targets_and_links_begin_on_the_turn_of_their_joint(pieces, tmp_path, monkeypatch):
    """A position of 175 deg beside a target and a link of 185, each wrapped by itself."""
    text = ARM.read_text().replace("revolute", "continuous")
    (tmp_path / "arm.urdf").write_text(text)
    link = DriveSpec(joint="shoulder", link=("position",))
    robot = di.load_robot(tmp_path / "arm.urdf", drives=[] if pieces else [link])
    log = make_log()
    q = np.radians(175.0) + 2.5 * log[:, 0]
    names = dict(zip(NAMES, log.T, strict=True))
    names["q_shoulder"] = wrap(q)
    names |= {"qref_elbow": log[:, 2], "qref_shoulder": wrap(q + np.radians(10.0))}
    names |= {"link_shoulder": wrap(q + np.radians(6.0))} if not pieces else {}
    np.savez_compressed(tmp_path / "run.npz", **names)
    if pieces:
        shorten(monkeypatch)
    found = di.read_log(tmp_path / "run.npz", robot, pieces=pieces)
    assert isinstance(found.q, LongSignal) == pieces
    np.testing.assert_allclose(found.q[:, 0], q, atol=1e-9)
    np.testing.assert_allclose(found.qref[:, 0], q + np.radians(10.0), atol=1e-9)
    assert any("qref of shoulder begins 1 turn away" in words for words in found.warnings)
    # what jumps by a turn in radians is in radians
    assert not any("looks like degrees" in words for words in found.warnings)
    if not pieces:
        np.testing.assert_allclose(found.wrenches["link_shoulder"][:, 0], q + np.radians(6.0))


def wrap(angle: np.ndarray) -> np.ndarray:
    """Within half a turn."""
    return np.mod(angle + np.pi, 2.0 * np.pi) - np.pi


def damage_nothing(values: np.ndarray) -> None:
    """As it is."""


def jitter(values: np.ndarray) -> None:
    """Stamps of arrival."""
    values[:, 0] += np.random.default_rng(2).uniform(0.0, 1e-3, len(values))


def leap(values: np.ndarray) -> None:
    """One torque that no sensor gave."""
    values[2000, 3] = 1e7


def lose(values: np.ndarray) -> None:
    """One value."""
    values[2000, 2] = np.nan


def go_back(values: np.ndarray) -> None:
    """One stamp."""
    values[2000, 0] = 1.0


@pytest.mark.parametrize("harm", [jitter, leap, lose, go_back])
def test_what_takes_all_of_a_log_is_read_as_a_whole(harm, robot, tmp_path, monkeypatch):
    values = make_log()
    harm(values)
    path, found = write(tmp_path / "run.npz", values), []
    shorten(monkeypatch)
    for pieces in (False, True):
        try:
            log = di.read_log(path, robot, pieces=pieces)
            assert isinstance(log.q, np.ndarray)
            found.append((log.warnings, log.q.tobytes()))
        except InputError as error:
            found.append((str(error), b""))
    assert found[0] == found[1]


def test_encoder_counts_are_no_damage(robot, tmp_path, monkeypatch):
    values = make_log()
    values[:, 3] *= 1e4
    path = write(tmp_path / "run.npz", values)
    shorten(monkeypatch)
    assert isinstance(di.read_log(path, robot, pieces=True).tau, LongSignal)


@pytest.mark.parametrize("digits", [3, 4, 12])
@pytest.mark.parametrize("start", [0.0, 1.7e9])
@pytest.mark.parametrize("pauses", [(), (1100,), (700, 2099)])
def test_the_clock_of_stamps_in_pieces(digits, start, pauses, monkeypatch):
    monkeypatch.setattr(clocks, "ROWS", 700)
    time = start + np.arange(3000) * 0.004
    for at in pauses:
        time[at:] += 0.7
    time = np.round(time, digits)
    stamps = Store(1)
    stamps.append(time[:, None])
    whole = find_clock(time, np.zeros((3000, 1)), "log", str, ClockOptions())
    found = find_even_clock(stamps, "log", str, ClockOptions())
    assert found is not None
    assert (found.rate, found.runs) == (whole.rate, whole.runs)
    assert found.warnings == whole.warnings
    assert find_even_clock(stamps, "log", str, ClockOptions(bridge=0.9)) is None or not pauses


def factorise(problem: Problem) -> np.ndarray:
    """The triangle of all rows of the first group of a problem."""
    (raw,) = factor_runs(problem)
    return np.vstack([fix_signs(group.factor) for group in merge_all(raw).groups])


def test_factors_of_a_log_in_any_number_of_pieces(robot, tmp_path, monkeypatch):
    path = write(tmp_path / "run.npz", make_log(8000, gap=True))
    whole = di.prepare(di.read_log(path, robot), 5.0)
    expected = factorise(Problem(robot, whole))
    shorten(monkeypatch)
    monkeypatch.setattr(preparing, "LONG", 0)
    for block in (4000, 400):
        monkeypatch.setattr(blocks, "BLOCK", block)
        log = di.prepare(di.read_log(path, robot, pieces=True), 5.0)
        assert len(log.q.course.blocks) >= min(8000 // block, 10)
        problem = Problem(robot, log)
        found = factorise(problem)
        np.testing.assert_allclose(found, expected, atol=1e-10 * np.max(np.abs(expected)))
        assert hash_log(problem.samples[0]) == hash_log(whole)


def test_files_one_behind_another(robot, tmp_path, monkeypatch):
    values = make_log(6000)
    paths = [
        write(tmp_path / f"run{k}.npz", values[a:b])
        for k, (a, b) in enumerate(((0, 1500), (1500, 2500), (2500, 6000)))
    ]
    whole = di.read_log(paths, robot, stack="time")
    shorten(monkeypatch)
    found = di.read_log(paths, robot, stack="time", pieces=True)
    assert isinstance(found.q, LongSignal)
    assert found.segments == whole.segments
    for some in (slice(0, 6000), slice(1400, 1600), slice(1200, 3000), slice(2500, 2501)):
        np.testing.assert_array_equal(found.tau[some], whole.tau[some])


def test_signs_of_a_long_log_are_those_of_its_stretches(robot, monkeypatch):
    values = make_log(9000)
    tau, q = values[:, 3:].copy(), values[:, 1:3].copy()
    tau[6500:7500, 0] = 0.25 * np.max(tau[:, 0])  # clipped in the last third
    q[:3000, 1] = q[2999, 1]  # at rest in the first, which says nothing
    log = di.prepare(di.Recording("long", RATE, q, tau), 5.0)
    monkeypatch.setattr(preparing, "STRETCH", 3000)
    parts = list(log.stretches())
    assert [start for start, _ in parts] == [0, 3000, 6000]
    assert all(len(part.q) == 3000 for _, part in parts)
    np.testing.assert_array_equal(parts[1][1].ddq, log.ddq[3000:6000])
    found = find_signs(robot, log)
    assert any(sign.kind in ("clipped", "stuck") for sign in found)
    assert not any(sign.kind == "still" for sign in found)
    assert any(sign.kind == "still" for sign in find_signs(robot, parts[0][1]))
    assert all(isinstance(sign, Sign) for sign in found)


def test_a_store_gives_back_what_it_took(monkeypatch):
    monkeypatch.setattr(storing, "ROWS", 100)
    values = np.random.default_rng(0).normal(size=(1234, 3))
    held = Store(3)
    for a in range(0, 1234, 77):
        held.append(values[a : a + 77])
    np.testing.assert_array_equal(np.concatenate([*held]), values)
    signal = open_stored_signal(held)
    np.testing.assert_array_equal(signal[100:900:7, 1], values[100:900:7, 1])
    np.testing.assert_array_equal(signal.cut(slice(50, 60))[:], values[50:60])
    with pytest.raises(ComputationError, match="shorter"):
        held.read(1200, 1300)


def test_a_full_folder_of_temporary_files_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(storing.tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ComputationError, match="TMPDIR"):
        Store(3)


CHILD = """
import json, sys, tracemalloc
import dynident as di
from dynident.core import store
from dynident.filters import blocks, clock
from dynident.readers import parquet, table
from dynident.recording import pieces, prepare
from dynident.regression import rows
for module in (store, table, parquet, clock):
    module.ROWS = 1 << 12
blocks.BLOCK, pieces.LONG, prepare.LONG, prepare.STRETCH = 1 << 12, 0, 0, 1 << 14
rows.KEEP_BYTES = 0

study, folder, *logs = sys.argv[1:]
tracemalloc.start()
for k, log in enumerate(logs):
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    made = di.collect(study, [log], f"{folder}/{k}")
    _, peak = tracemalloc.get_traced_memory()
    print(json.dumps([(peak - before) / 1e6, [entry.state for entry in made.entries]]))
"""


@pytest.mark.long
def test_memory_does_not_grow_with_a_log(tmp_path):
    study = f'[robot]\nfile = "{ARM}"\n[prepare]\nbandwidth = 5.0\n[identify]\ndoctor = false\n'
    (tmp_path / "study.toml").write_text(study)
    logs = [
        str(write(tmp_path / f"{samples}.npz", make_log(samples)))
        for samples in (20_000, 40_000, 320_000)
    ]
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "study.toml"), str(tmp_path), *logs],
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    told = [json.loads(line) for line in child.stdout.splitlines()]
    assert all(states == ["read"] for _, states in told)
    (short, _), (long, _) = told[1:]
    assert long <= 1.3 * short, f"{short} and {long} MB, of logs of 2 and 13 MB"
