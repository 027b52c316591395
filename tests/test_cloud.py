"""Logs of S3 and of the web, both on the loopback: collected as files are."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from test_collect import ARM, write_log

import dynident as di

STUDY = '[robot]\nfile = "arm.urdf"\n[prepare]\nbandwidth = 5.0\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A study with two logs."""
    shutil.copy(ARM, tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    for seed in (1, 2):
        write_log(tmp_path / f"run{seed}.npz", seed, samples=1000)
    di.collect(tmp_path / "study.toml", [f"{tmp_path}/run*.npz"], tmp_path / "here")
    return tmp_path


@pytest.fixture
def bucket(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A store of S3 with the logs in ``robots/arm``, found by the environment alone."""
    s3fs, moto_server = map(pytest.importorskip, ("s3fs", "moto.server"))
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem()
    store.mkdir("robots")
    for seed in (1, 2):
        store.put_file(str(place / f"run{seed}.npz"), f"robots/arm/run{seed}.npz")
    yield store
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def assert_same_sources(place: Path, made: str) -> None:
    """As many sources under the same keys, of the same rows."""
    here, there = (sorted(p.name for p in (place / n).glob("*.npz")) for n in ("here", made))
    assert here == there
    tables = [di.identify_factors(place / n, "wls").settings["sources"] for n in ("here", made)]
    assert tables[0] == tables[1]


def test_a_bucket_is_collected_once(place, bucket):
    study, made = place / "study.toml", place / "made"
    found = di.collect(study, ["s3://robots/arm/*.npz"], made)
    assert [entry.state for entry in found.entries] == ["read", "read"]
    assert_same_sources(place, "made")
    again = di.collect(study, ["s3://robots/arm/"], made)
    assert [entry.state for entry in again.entries] == ["there", "there"]
    write_log(place / "new.npz", 7, samples=1000)
    bucket.put_file(str(place / "new.npz"), "robots/arm/run2.npz")
    anew = di.collect(study, ["s3://robots/arm/*.npz"], made)
    assert [entry.state for entry in anew.entries] == ["there", "read"]
    assert anew.notes == ("run2.npz has changed: its earlier factors went",)
    lacking = di.collect(study, ["s3://robots/arm/run9.npz", "s3://nowhere/a.npz"], made)
    assert [entry.name for entry in lacking.left_out] == ["a.npz", "run9.npz"]


class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a word about it."""

    def log_message(self, *_: object) -> None:
        pass


def test_the_web_is_read_as_files_are(place):
    pytest.importorskip("aiohttp")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(place)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        web = f"http://127.0.0.1:{server.server_port}"
        asked = [f"{web}/run1.npz", f"{web}/run2.npz", f"{web}/run3.npz"]
        found = di.collect(place / "study.toml", asked, place / "made")
        assert [entry.name for entry in found.left_out] == ["run3.npz"]
        assert_same_sources(place, "made")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
