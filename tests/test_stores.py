"""Logs in stores: collected as files are, read once, and named where they cannot be."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from test_collect import ARM, assert_near, write_log

import dynident as di
from dynident.core.errors import InputError
from dynident.readers.stores import fetch_files
from dynident.study.collect import open_model, reduce_log

STUDY = '[robot]\nfile = "arm.urdf"\n[prepare]\nbandwidth = 5.0\n'


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A study, and logs in a store in memory."""
    shutil.copy(ARM, tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    store = fsspec.filesystem("memory")
    for seed in (1, 2):
        write_log(tmp_path / f"run{seed}.npz", seed, samples=1000)
        store.pipe(f"/logs/run{seed}.npz", (tmp_path / f"run{seed}.npz").read_bytes())
    yield tmp_path
    store.rm("/logs", recursive=True)


def test_a_store_gives_the_factors_of_its_files(place, monkeypatch):
    (place / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place / "copies"))
    there = di.collect(place / "study.toml", ["memory://logs/run*.npz"], place / "there")
    assert [(entry.name, entry.state) for entry in there.entries] == [
        ("run1.npz", "read"), ("run2.npz", "read"),
    ]  # fmt: skip
    assert not list((place / "copies").iterdir())  # they went
    here = di.collect(place / "study.toml", [f"{place}/run*.npz"], place / "here")
    names = sorted(path.name for path in (place / "here").iterdir())
    assert sorted(path.name for path in (place / "there").iterdir()) == names
    assert [entry.rows for entry in there.entries] == [entry.rows for entry in here.entries]
    one, other = (di.identify_factors(place / name, "wls") for name in ("here", "there"))
    assert_near(one.estimate.beta, other.estimate.beta)

    def refuse(task):
        raise AssertionError("nothing has changed")

    monkeypatch.setattr("dynident.study.collect.reduce_log", refuse)
    again = di.collect(place / "study.toml", ["memory://logs"], place / "there")
    assert [entry.state for entry in again.entries] == ["there", "there"]
    # a log that is here, too, has the contents of one that was there
    mixed = di.collect(place / "study.toml", [f"{place}/run1.npz"], place / "there")
    assert [entry.state for entry in mixed.entries] == ["there", "there"]


def test_what_a_store_has_anew_replaces_what_was_read_of_it(place):
    store, study, made = fsspec.filesystem("memory"), place / "study.toml", place / "made"
    di.collect(study, ["memory://logs/run*.npz"], made)
    before = {path.name: path.read_bytes() for path in made.glob("*.npz")}
    write_log(place / "new.npz", 5, samples=1000)
    store.pipe("/logs/run2.npz", (place / "new.npz").read_bytes())
    found = di.collect(study, ["memory://logs/run*.npz"], made)
    assert [entry.state for entry in found.entries] == ["there", "read"]
    assert found.notes == ("run2.npz has changed: its earlier factors went",)
    after = {path.name: path.read_bytes() for path in made.glob("*.npz")}
    assert len(after) == 2
    assert len(before.items() & after.items()) == 1


def test_what_a_store_has_twice_or_not_whole_is_named(place, monkeypatch):
    store, study = fsspec.filesystem("memory"), place / "study.toml"
    whole = (place / "run1.npz").read_bytes()
    store.pipe("/logs/copy.npz", whole)
    store.pipe("/logs/cut.npz", whole[: len(whole) // 2])
    asked = ["memory://logs/*.npz", "memory://logs/none.npz", "memory://nowhere/*.npz"]
    found = di.collect(study, asked, place / "made")
    reasons = {entry.name: entry.reason for entry in found.left_out}
    used = [entry.name for entry in found.entries if entry.state == "read"]
    assert used == ["copy.npz", "run2.npz"]  # the first in order counts, in whatever order read
    assert reasons["run1.npz"] == "has the contents of copy.npz"
    assert "was cut off" in reasons["cut.npz"]
    assert "no such file" in reasons["none.npz"]
    assert reasons["memory://nowhere/*.npz"] == "no log file is there"
    assert len(list((place / "made").glob("*.npz"))) == 2
    with pytest.raises(InputError, match=r"what://logs/a\.npz: its store is not known"):
        di.collect(study, ["what://logs/a.npz"], place / "made")


def test_a_copy_that_is_not_whole_is_refused(place, monkeypatch):
    store = type(fsspec.filesystem("memory"))

    def get_half(self, path, local, **_):
        Path(local).write_bytes(self.cat(path)[:100])

    monkeypatch.setattr(store, "get_file", get_half)
    with (
        pytest.raises(InputError, match=r"run1\.npz: was cut off, 100 of \d+ bytes came"),
        fetch_files(["memory://logs/run1.npz"]),
    ):
        pass


def test_identify_reads_from_no_store(place):
    study = di.read_study(place / "study.toml", use=None)
    log = {"files": ["memory://logs/run1.npz"]}
    told = di.Study.model_validate({**study.model_dump(exclude_none=True), "log": [log]})
    with pytest.raises(InputError, match=r"memory://logs/run1\.npz: is in a store"):
        di.run_study(told)


def test_the_robot_travels_with_the_work(place, monkeypatch):
    """Whoever reads logs of a store needs no file from here."""
    study, asked = place / "study.toml", ["memory://logs/run1.npz"]
    di.collect(study, asked, place / "here")
    monkeypatch.setattr(
        "dynident.study.collect.reduce_log",
        lambda task: (place / "arm.urdf").unlink() or reduce_log(task),
    )
    open_model.cache_clear()
    assert not di.collect(study, asked, place / "there").left_out
    (path,) = (place / "here").glob("*.npz")
    assert path.read_bytes() == (place / "there" / path.name).read_bytes()
