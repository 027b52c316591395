"""Recordings and samples keep their signals to themselves, and refuse what is not a signal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy

from dynident.core.arrays import freeze_array
from dynident.core.errors import InputError
from dynident.recording import recording as module
from dynident.recording.prepare import prepare
from dynident.recording.read import read_log
from dynident.recording.recording import SIGNALS, Recording

LOGGED = [label for label in SIGNALS if label != "unsigned"]
"""What columns are named of; sizes are what becomes of a current without a sign."""


def signals(samples: int = 2000, joints: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    walks = rng.normal(size=(len(SIGNALS), samples, joints)).cumsum(axis=1)
    return dict(zip(SIGNALS, 1e-3 * walks, strict=True))


def test_what_the_caller_holds_stays_the_callers():
    own = signals()
    log = Recording("own", 1000.0, **own)
    samples = prepare(log, 10.0)
    driven = samples.driven(own["tau"])
    along = samples.along(own["q"], own["dq"], own["ddq"])
    before = {label: value.copy() for label, value in own.items()}
    for value in own.values():
        assert value.flags.writeable
        value[:] = 7.0
    for label, value in before.items():
        np.testing.assert_array_equal(getattr(log, label), value)
    np.testing.assert_array_equal(samples.tau, before["tau"])
    np.testing.assert_array_equal(samples.measured, before["q"])
    np.testing.assert_array_equal(driven.tau, before["tau"])
    np.testing.assert_array_equal(along.dq, before["dq"])


@pytest.mark.parametrize("label", SIGNALS)
def test_nobody_can_change_a_recording(label):
    log = Recording("own", 1000.0, **signals())
    with pytest.raises(ValueError, match="read-only"):
        getattr(log, label)[0, 0] = 1.0


def test_a_part_and_a_preparation_share_the_recordings_memory():
    log = Recording("own", 1000.0, **signals())
    part = log.rows(200, 1800)
    for label in SIGNALS:
        assert np.shares_memory(getattr(part, label), getattr(log, label))
    samples = prepare(log, 10.0)
    assert samples.tau is log.tau
    assert samples.measured is log.q
    assert samples.driven(samples.tau).q is samples.q


def test_a_log_that_is_read_is_not_copied_again(tmp_path, monkeypatch):
    given = signals(500)
    robot = toy.arm(2)
    path = tmp_path / "log.npz"
    np.savez(path, **given)
    copied = []

    def watched(values):
        found = freeze_array(values)
        copied.append(found is not values)
        return found

    monkeypatch.setattr(module, "freeze_array", watched)
    log = read_log(path, robot, rate=500.0, columns={label: f"{label}_*" for label in LOGGED})
    assert copied == [False] * len(LOGGED)
    np.testing.assert_array_equal(log.dqref, given["dqref"])


def test_read_only_memory_of_another_is_copied():
    held = np.zeros((3, 2))
    view = held[:]
    view.setflags(write=False)
    assert not np.shares_memory(freeze_array(view), held)
    held.setflags(write=False)
    assert freeze_array(view) is view
    assert freeze_array(held) is held
    for other in (held.T, held[:, :1], held.astype(np.float32), held.tolist()):
        found = freeze_array(other)
        assert not np.shares_memory(found, held)
        assert found.flags.c_contiguous
        assert type(found) is np.ndarray
        assert found.dtype == np.float64
    buffer = np.frombuffer(bytearray(48))
    buffer.setflags(write=False)
    assert not np.shares_memory(freeze_array(buffer), buffer)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rate": 0.0}, "rate = 0.0 is not a sample rate"),
        ({"rate": np.nan}, "rate = nan is not a sample rate"),
        ({"q": np.zeros(2000)}, r"q has shape \(2000,\); it needs a row a sample"),
        ({"q": np.zeros((0, 2))}, r"q has shape \(0, 2\)"),
        ({"q": "x"}, "q is not an array of numbers"),
        ({"tau": [[1.0, 2.0], [3.0]]}, "tau is not an array of numbers"),
        ({"tau": [[1.0, None]]}, r"tau has shape \(1, 2\), q has \(2000, 2\)"),
        ({"ddq": np.zeros((2000, 3))}, r"ddq has shape \(2000, 3\), q has \(2000, 2\)"),
        ({"segments": ((0, 3000),)}, r"segment \(0, 3000\) is empty, outside the 2000"),
        ({"segments": ((5, 5),)}, r"segment \(5, 5\) is empty"),
        ({"segments": ((0, 500), (400, 900))}, r"segment \(400, 900\) .* before the end"),
    ],
)
def test_what_is_no_recording_is_refused(changes, words):
    with pytest.raises(InputError, match=f"^own: {words}"):
        Recording(**{"name": "own", "rate": 1000.0, **signals(), **changes})


def test_missing_values_may_stand_between_the_segments_alone():
    log = Recording("own", 1000.0, **signals(), segments=((0, 900), (1000, 2000)))
    tau = log.tau.copy()
    tau[950, 1] = np.nan
    assert np.isnan(replace(log, tau=tau).tau[950, 1])
    tau[1500, 1] = np.inf
    with pytest.raises(InputError, match=r"own: tau\[1500, 1\] is inf, no finite number"):
        replace(log, tau=tau)


def test_rows_between_the_segments_are_refused():
    log = Recording("own", 1000.0, **signals(), segments=((0, 900), (1000, 2000)))
    assert log.rows(850, 1100).segments == ((0, 50), (150, 250))
    with pytest.raises(InputError, match="own: rows 920-980 are in no segment"):
        log.rows(920, 980)


@pytest.mark.parametrize("length", [1, 2, 4, 9])
@pytest.mark.parametrize("options", [{}, {"median": 11}, {"derivatives": "measured"}])
def test_runs_that_are_too_short_to_be_differentiated_are_left_out(length, options):
    log = Recording("own", 1000.0, **signals(), segments=((0, length), (100, 2000)))
    samples = prepare(log, 10.0, **options)
    assert samples.runs == ((100, 2000),)
    assert samples.warnings == (f"own: runs of fewer than 10 samples dropped, {length} together",)
    whole = prepare(log.rows(100, 2000), 10.0, **options)
    np.testing.assert_array_equal(samples.ddq[100:], whole.ddq)
    short = replace(log, segments=((0, length),))
    with pytest.raises(InputError, match=f"own: .*{length} samples"):
        prepare(short, 400.0)
