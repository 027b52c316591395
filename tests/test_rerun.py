"""`dynident track --rrd`: a recording that rerun reads, whole or not at all; nobody is told."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_track
from test_live import noticed, row, signals

from dynident.cli import run
from dynident.core.errors import InputError
from dynident.live.messages import tell_event
from dynident.live.rerun import RerunFile

desk = test_track.desk


@pytest.fixture(scope="module", autouse=True)
def installed():
    """Loaded here, and not by whoever collects the tests: it takes long."""
    pytest.importorskip("rerun.chunk")


def open_recording(path: Path) -> Any:
    from rerun.chunk import RrdReader

    return RrdReader(path)


def read_recording(path: Path) -> dict[str, list[tuple[float, object]]]:
    """What stands at each entity: times of the log [s] and values, in their order."""
    found: dict[str, list[tuple[float, object]]] = {}
    for chunk in open_recording(path).stream():
        if chunk.is_static or "time" not in chunk.timeline_names:
            continue
        batch = chunk.to_record_batch()
        times = 1e-9 * batch.column("time").cast("int64").to_numpy()
        (name,) = (n for n in batch.schema.names if n in ("Scalars:scalars", "TextLog:text"))
        values = [each[0] for each in batch.column(name).to_pylist()]
        found.setdefault(chunk.entity_path, []).extend(zip(times, values, strict=True))
    return {entity: sorted(each, key=lambda own: own[0]) for entity, each in found.items()}


@pytest.mark.long
def test_the_recording_says_what_the_lines_say(desk, capsys):
    test_track.start_from("out")
    capsys.readouterr()
    argv = ["track", "run.csv", "--start", "out/result.json", "--every", "5", "--json"]
    assert run([*argv, "--signals", "--rrd", "run.rrd"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    some = [each for each in lines if "torque" in each]
    found = read_recording(desk / "run.rrd")
    for kind in ("measured", "predicted"):
        for joint in ("one", "two"):
            times, values = zip(*found[f"/dynident/torque/{kind}/{joint}"], strict=True)
            assert list(values) == [each["torque"][kind][joint] for each in some]
            np.testing.assert_allclose(times, [each["time"] for each in some], atol=1e-9)
    assert {value for _, value in found["/dynident/load/carried"]} == {0.0}
    level = [each["drift"]["level"] for each in some]
    assert [value for _, value in found["/dynident/drift/level"]] == level
    rows = [each for each in lines if "beta" in each]
    for name in rows[0]["beta"]:
        (entity,) = (e for e in found if e.replace("\\", "") == f"/dynident/parameters/beta/{name}")
        assert [value for _, value in found[entity]] == [each["beta"][name] for each in rows]
    assert not (desk / "run.part.rrd").exists()


def test_events_are_text_and_names_are_escaped(tmp_path):
    with closing(RerunFile(tmp_path / "a.rrd")) as file:
        for k in range(30):
            file.write(signals(0.1 * k, mass=2.0))
        file.write(noticed(1.5))
        file.write(row(3.0))
    reader = open_recording(tmp_path / "a.rrd")
    assert [each.application_id for each in reader.recordings()] == ["dynident"]
    assert len(reader.blueprints()) == 1
    found = read_recording(tmp_path / "a.rrd")
    assert found["/dynident/events"] == [(1.5, tell_event(noticed(1.5)))]
    assert [value for _, value in found["/dynident/load/mass"]] == [2.0] * 30
    assert len(found[r"/dynident/torque/measured/\<\/script\>"]) == 30
    assert r"/dynident/torque/predicted/\<\/script\>" not in found  # it is not known


def test_a_recording_is_whole_or_what_was_there(tmp_path, monkeypatch):
    place = tmp_path / "a.rrd"
    place.write_text("earlier")
    with closing(RerunFile(place)):
        pass
    assert place.read_text() == "earlier"  # no message came
    file = RerunFile(place)
    file.write(signals(0.0))
    assert place.read_text() == "earlier"
    os.unlink(tmp_path / "a.part.rrd")
    with pytest.raises(InputError, match=r"a\.rrd: cannot be written"):
        file.close()
    assert place.read_text() == "earlier"
    with pytest.raises(InputError, match=r"x\.rrd: cannot be written \(.*No such file"):
        RerunFile(tmp_path / "none" / "x.rrd").write(signals(0.0))
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(InputError, match=r"needs the package rerun-sdk: pip install 'dynident\["):
        RerunFile(place)


def test_what_cannot_be_written_whole_is_not_written(tmp_path, monkeypatch):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = RerunFile(tmp_path / "a.rrd")
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        for k in range(500):
            file.write(signals(0.1 * k))
        with pytest.raises(InputError, match=r"a\.rrd: cannot be written \("):
            file.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    monkeypatch.setenv("RERUN", "off")
    with pytest.raises(InputError, match=r"a\.rrd: RERUN in the environment switches rerun off"):
        RerunFile(tmp_path / "a.rrd").write(signals(0.0))
    assert not [*tmp_path.iterdir()]


ALONE = """
import os, sys
from pathlib import Path
def refuse(event, given):
    assert not event.startswith(("socket.", "subprocess.", "os.fork", "os.exec", "os.posix_spawn"))
from dynident.live.messages import NoticedChange
from dynident.live.rerun import RerunFile
from dynident.online.tracker import Event
sys.addaudithook(refuse)
file = RerunFile(Path("a.rrd"))
for k in range(200):
    file.write(NoticedChange(0.1 * k, Event("load", 50, 90.0, 40.0)))
file.close()
for task in Path("/proc/self/task").glob("*/children"):
    print(task.read_text().strip(), end="")
"""


@pytest.mark.long
def test_nothing_is_told_to_anyone_and_nothing_is_started(tmp_path):
    """No address is looked up, no process started, nothing kept as for a viewer's analytics."""
    home = tmp_path / "home"
    home.mkdir()
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, **own},
    )  # fmt: skip
    assert done.stdout == ""
    assert not [*home.rglob("*rerun*")]
    assert (tmp_path / "a.rrd").stat().st_size > 0
