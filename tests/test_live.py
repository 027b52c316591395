"""What `dynident track` tells while it follows: messages, MCAP files, and a page on loopback."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from urllib.request import urlopen

import lxml.html
import numpy as np
import pytest
import test_track
import toy
from browser import find_chromium
from commands import tell
from pages import find_faults

from dynident.cli import run
from dynident.core.errors import InputError
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.live.board import KEPT, LiveBoard
from dynident.live.mcap import McapFile
from dynident.live.messages import (
    Equation,
    EstimateRow,
    NoticedChange,
    SampleSignals,
    build_schemas,
    describe_message,
    split_into_topics,
)
from dynident.live.server import LOOPBACK, PageServer, render_live_page
from dynident.online import tracker
from dynident.online.tracker import Surprise
from dynident.readers.bags import read_bag
from dynident.study.study import read_study
from dynident.study.track import build_track_setting, track_log

desk = test_track.desk
ARM = base_parameters(build_idim(toy.arm(2)))
EQUATIONS = (Equation("shoulder", "Nm"), Equation("</script>", "N"))


def signals(at: float, mass: float | None = None, tested: bool = True) -> SampleSignals:
    return SampleSignals(
        at,
        EQUATIONS,
        np.array([np.sin(at), 2.0]),
        np.array([np.sin(at) + 0.01, np.nan]),
        None if mass is None else (mass, 0.1),
        Surprise(20.0 if tested else 0.0, 40.0 if tested else 0.0, 1.1),
        (1.5, "fv1"),
    )


def row(at: float, std: float = 0.5) -> EstimateRow:
    none = np.zeros(ARM.count)
    return EstimateRow(at, 100, none, np.full(ARM.count, std), None, None, ARM)


def noticed(at: float) -> NoticedChange:
    return NoticedChange(at, tracker.Event("load", 50, 90.0, 40.0))


def board(samples: int = 300) -> LiveBoard:
    made = LiveBoard("arm <2>")
    for k in range(samples):
        made.write(signals(0.05 * k, mass=2.0 if k > samples // 2 else None))
    made.write(noticed(0.05 * samples / 2))
    made.write(row(0.05 * samples))
    return made


# ---- messages


def fits(plain: object, schema: dict) -> bool:
    """Whether plain data is what a JSON schema of ours says."""
    kinds = {"number": (int, float), "integer": int, "string": str, "boolean": bool}
    if schema["type"] == "object":
        known = schema["properties"]
        return set(plain) <= set(known) and all(fits(v, known[k]) for k, v in plain.items())
    return isinstance(plain, kinds[schema["type"]])


@pytest.mark.parametrize(
    "message",
    [signals(1.0), signals(1.0, 2.0, False), row(1.0), row(1.0, np.inf), noticed(1.0),
     row(2.0)._replace(load=(2.0, 0.1), theta=np.zeros(len(ARM.idim.names)))],
)  # fmt: skip
def test_messages_by_topics_are_what_their_schemas_say(message):
    schemas = build_schemas(message)
    topics = dict(split_into_topics(message))
    assert set(topics) == set(schemas)
    for topic, plain in topics.items():
        assert fits(plain, schemas[topic]), plain
        assert plain["time"] == message.time
        json.dumps(plain, allow_nan=False)
    json.dumps(describe_message(message), allow_nan=False)


def test_what_is_not_known_is_null_in_lines_and_left_out_of_topics():
    plain = describe_message(signals(1.0, tested=False))
    assert plain["torque"]["predicted"]["</script>"] is None
    assert plain["load"] is None
    assert plain["drift"]["threshold"] is None
    topics = dict(split_into_topics(signals(1.0, tested=False)))
    assert list(topics["/dynident/torque"]["predicted"]) == ["shoulder"]
    assert topics["/dynident/load"] == {"time": 1.0, "carried": False}
    assert topics["/dynident/drift"] == {"time": 1.0, "level": 1.1, "moved": 1.5, "most": "fv1"}


# ---- the command


def read_mcap(path):
    """Topics of a file: times [ns], messages and schemas; and whether it has its index."""
    from mcap.reader import make_reader

    found = {}
    with open(path, "rb") as file:
        reader = make_reader(file)
        summary = reader.get_summary()
        for schema, channel, message in reader.iter_messages():
            assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
            plain, known = json.loads(message.data), json.loads(schema.data)
            assert fits(plain, known)
            found.setdefault(channel.topic, []).append((message.log_time, plain))
    return found, summary


@pytest.mark.long
def test_signals_are_lines_and_an_mcap_file_and_change_nothing_else(desk, capsys):
    """The same estimates, the same state; torques are predicted before their samples are seen."""
    test_track.start_from("out")
    capsys.readouterr()
    argv = ["track", "run.csv", "--start", "out/result.json", "--every", "5", "--json"]
    assert run([*argv, "--state", "a.npz"]) == 0
    plain = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert run([*argv, "--state", "b.npz", "--signals", "--mcap", "run.mcap"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each for each in lines if "torque" not in each] == plain
    with np.load("a.npz") as a, np.load("b.npz") as b:
        for name in a.files:
            np.testing.assert_array_equal(a[name], b[name])

    some = [each for each in lines if "torque" in each]
    measured, predicted = (
        np.array([[each["torque"][kind][joint] for joint in ("one", "two")] for each in some])
        for kind in ("measured", "predicted")
    )
    off = np.linalg.norm(measured - predicted, axis=0) / np.linalg.norm(measured, axis=0)
    assert np.all(off < 0.03)
    assert np.any(measured != predicted)
    assert np.ptp(np.diff([each["time"] for each in some])) < 1e-9
    last = some[-1]["drift"]
    assert 0.5 < last["level"] < 2.0
    assert 0.0 < last["statistic"] < last["threshold"]
    assert 0.0 < last["moved"] < 6.0

    found, summary = read_mcap("run.mcap")
    assert set(found) == {f"/dynident/{name}" for name in ("torque", "load", "drift", "parameters")}
    assert summary.statistics.message_count == sum(len(each) for each in found.values())
    assert summary.statistics.chunk_count > 3  # it grew as it came
    for messages in found.values():
        for stamp, told in messages:
            assert stamp == round(1e9 * told["time"])
    assert [told for _, told in found["/dynident/torque"]] == [
        {"time": each["time"], **each["torque"]} for each in some
    ]
    assert len(some) == len(found["/dynident/load"]) > 100
    rows = [told for _, told in found["/dynident/parameters"]]
    assert rows == [{k: v for k, v in e.items() if v is not None} for e in lines if "beta" in e]
    with pytest.raises(InputError, match=r"run\.mcap: is not a bag"):
        read_bag(desk / "run.mcap")
    assert "give --json" in tell(capsys, [*argv[:-1], "--signals"], code=2).err


def test_an_mcap_file_grows_and_is_whole_where_bad_input_ends_it(desk, capsys):
    lines = (desk / "run.csv").read_text().splitlines(keepends=True)
    sizes, taken = [], 0
    study = read_study("study.toml")
    setting = build_track_setting(study, study.log[0], None)
    with closing(McapFile(desk / "grows.mcap")) as file:

        def write(message):
            nonlocal taken
            file.write(message)
            taken += isinstance(message, SampleSignals)
            sizes.append(os.path.getsize("grows.mcap"))

        track_log(setting, write, signals=True, stopped=lambda: taken >= 200)
    steps = np.flatnonzero(np.diff(sizes))
    assert len(steps) > 2
    assert np.diff(steps).max() < 200
    assert len(read_mcap("grows.mcap")[0]["/dynident/torque"]) == taken == 200
    (desk / "cut.csv").write_text("".join(lines[:2000]) + "10.0,0,0,nan,0\n")
    argv = ["track", "cut.csv", "--study", "study.toml", "--sigma", "0.2", "--mcap", "cut.mcap"]
    argv += ["--follow", "--rate", "200"]
    assert "cut.csv, line 2001, column 4 (tau_one): nan is not" in tell(capsys, argv, code=2).err
    assert len(read_mcap("cut.mcap")[0]["/dynident/torque"]) > 100


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_an_mcap_file_on_a_full_disk_is_named(desk):
    study = read_study("study.toml")
    setting = build_track_setting(study, study.log[0], None)
    with (
        pytest.raises(InputError, match=r"^/dev/full: cannot be written \(No space left"),
        closing(McapFile(Path("/dev/full"))) as file,
    ):
        track_log(setting, file.write, signals=True)


def refuse_mcap(argv, capsys) -> str:
    """The one line with which a file is refused; none is made."""
    assert run([*argv, "--mcap", "new.mcap"]) == 2
    (line,) = (each for each in capsys.readouterr().err.splitlines() if each.startswith("error"))
    assert not os.path.exists("new.mcap")
    return line


def test_files_that_cannot_be_are_refused_in_one_line(desk, capsys, monkeypatch):
    assert run(["track", "study.toml", "--mcap", "run.csv"]) == 2
    assert "run.csv: is an input" in capsys.readouterr().err
    assert "no.csv" in refuse_mcap(["track", "no.csv", "--study", "study.toml"], capsys)
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    line = refuse_mcap(["track", "study.toml"], capsys)
    assert line == "error: new.mcap: needs the package mcap: pip install 'dynident[live]'"


def test_times_before_zero_are_not_of_an_mcap_file(tmp_path):
    with (
        closing(McapFile(tmp_path / "early.mcap")) as file,
        pytest.raises(InputError, match=r"cannot hold the time -0\.5 s"),
    ):
        file.write(signals(-0.5))
    assert not (tmp_path / "early.mcap").exists()
    with (
        closing(McapFile(tmp_path / "none" / "x.mcap")) as file,
        pytest.raises(InputError, match=r"x\.mcap: cannot be written \(No such file"),
    ):
        file.write(signals(0.5))


# ---- the page


@pytest.fixture
def served():
    """A board and a connection to its page."""
    made = board()
    with closing(PageServer(made, 0)) as server:
        port = int(server.address.rpartition(":")[2].strip("/"))
        with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=10)) as connection:
            yield made, connection, port


def ask(connection, place, method="GET", **headers):
    """Status, headers and text of an answer."""
    connection.request(method, place, headers=headers)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read().decode()


def test_the_page_is_of_this_machine_alone(served):
    _, connection, port = served
    status, headers, page = ask(connection, "/")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert not any(name.startswith("Access-Control") for name in headers)
    root = lxml.html.document_fromstring(page)
    for tag, name in (("script", "src"), ("link", "href"), ("img", "src")):
        for each in root.iter(tag):
            assert each.get(name, "data:").startswith("data:")
    assert "//" not in "".join(root.xpath("//@href"))
    for host in (f"localhost:{port}", "localhost", "127.0.0.1:9000", "LOCALHOST"):
        assert ask(connection, "/data", Host=host)[0] == 200
    for host in (f"evil.example:{port}", "evil.example", "127.0.0.1.evil.example", "", "[::1]"):
        status, headers, text = ask(connection, "/data", Host=host)
        assert status == 403
        assert "shoulder" not in text
        assert headers["Content-Security-Policy"] == policy
        connection.close()
    for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
        assert ask(connection, "/data", method)[0] == 501
        connection.close()
    for place in ("/style.css", "/../etc/passwd", "/data/"):
        assert ask(connection, place)[0] == 404
        connection.close()
    with pytest.raises(OSError, match=r"refused"), socket.create_connection(("127.0.0.2", port)):
        pass


def test_the_page_asks_for_what_is_new(served):
    made, connection, _ = served

    def read(after):
        return json.loads(ask(connection, f"/data?after={after}")[2])

    whole = read(0)
    assert (whole["first"], whole["count"], len(whole["points"])) == (0, 300, 300)
    at = 0.05 * 299
    torque = [float(f"{np.sin(at) + off:.6g}") for off in (0.0, 0.01)]
    last = [at, torque[0], 2.0, torque[1], None, 2.0, 0.1, 0.5, 1.5]
    assert whole["points"][-1] == last
    assert whole["equations"][0] == {"name": "shoulder", "unit": "Nm"}
    assert whole["events"][0]["words"].startswith("7.500 s: another load than before")
    assert read(300)["points"] == []
    made.write(signals(15.0))
    assert [point[0] for point in read(300)["points"]] == [15.0]
    for odd in (1000, "-3", "x", "9" * 40, "%00"):  # of another run, or of nobody
        assert len(read(odd)["points"]) == 301
    for k in range(KEPT):
        made.write(signals(float(k)))
    late = read(300)
    assert len(late["points"]) == KEPT
    assert late["first"] == 301
    assert not late["ended"]
    made.end("it is over")
    assert read(0)["ended"] == "it is over"


def test_who_leaves_in_the_middle_disturbs_nobody(served, capfd):
    _, connection, port = served
    for _ in range(3):
        with socket.create_connection((LOOPBACK, port)) as rude:
            rude.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert ask(connection, "/data")[0] == 200
    time.sleep(0.05)
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_said_in_one_line(desk, capsys):
    with closing(PageServer(board(2), 0)) as server:
        port = server.address.rpartition(":")[2].strip("/")
        assert run(["track", "study.toml", "--live", port]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line == f"error: --live: port {port} is in use; give another, or 0 for any"
    assert "--live" in tell(capsys, ["track", "study.toml", "--live", "70000"], code=2).err


@pytest.mark.parametrize(
    ("flags", "port"), [(["--live"], 8790), (["--live", "9001"], 9001), (["--live=9002"], 9002)]
)
def test_the_port_may_be_left_out(desk, capsys, monkeypatch, flags, port):
    def refuse(board, asked):
        raise InputError(f"asked for {asked}")

    monkeypatch.setattr("dynident.live.outlets.PageServer", refuse)
    for argv in (["track", *flags, "study.toml"], ["track", "study.toml", *flags]):
        assert f"asked for {port}" in tell(capsys, argv, code=2).err


def test_the_page_stays_when_the_stream_has_ended(desk, capfd):
    with socket.create_server((LOOPBACK, 0)) as free:
        port = free.getsockname()[1]
    told = {}

    def look():
        for _ in range(600):
            time.sleep(0.05)
            try:
                with urlopen(f"http://{LOOPBACK}:{port}/data", timeout=5) as answer:
                    told.update(json.load(answer))
            except OSError:
                continue
            if told["ended"]:
                break
        os.kill(os.getpid(), signal.SIGINT)

    looker = Thread(target=look)
    looker.start()
    argv = ["track", "study.toml", "--live", str(port), "--mcap", "run.mcap", "--state", "s.npz"]
    assert run(argv) == 0
    looker.join()
    assert told["ended"] == "the stream has ended"
    assert told["count"] > 100
    assert told["estimate"]["samples"] > 3000
    out, err = capfd.readouterr()
    assert out.startswith("time,samples,")
    assert f"page at http://127.0.0.1:{port}/" in err
    assert "the page stays until Ctrl-C" in err
    assert "state written to s.npz" in err
    assert read_mcap("run.mcap")[1] is not None


def test_a_page_says_nothing_as_markup():
    page = render_live_page(board())
    root = lxml.html.document_fromstring(page)
    assert root.findtext(".//h1") == "arm <2>"
    first = json.loads(root.xpath("string(//script[@id='first'])"))
    assert [each["name"] for each in first["equations"]] == ["shoulder", "</script>"]
    assert len(root.xpath("//script")) == 2


def show_in_browser(port, place):
    """The page as a browser has it after a while; nothing may be complained of."""
    done = subprocess.run(
        [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu",
         f"--user-data-dir={place / 'profile'}", "--virtual-time-budget=3000",
         "--enable-logging=stderr", "--dump-dom", f"http://localhost:{port}/"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    return lxml.html.document_fromstring(done.stdout)


@pytest.mark.long
def test_a_browser_shows_all_of_it_under_the_policy(served, tmp_path):
    made, _, port = served
    made.end("it is over")
    root = show_in_browser(port, tmp_path)
    state = root.get_element_by_id("state").text_content()
    assert "Ended" in state
    assert "it is over" in state
    assert "15.0 s" in state
    assert "Carries 2 kg" in root.get_element_by_id("load").text_content()
    assert "1 alarm" in root.get_element_by_id("alarm").text_content()
    curves = root.xpath("//*[local-name()='path'][starts-with(@class, 'curve')]/@d")
    assert sum(len(path) > 500 for path in curves) >= 4
    rows = root.xpath("//tbody[@id='now']/tr")
    assert [each.findtext("th") for each in rows] == ["shoulder", "</script>"]
    assert len(root.xpath("//tbody[@id='estimate']/tr")) == ARM.count
    assert root.xpath("//*[@role='application']/@aria-label")[0].startswith("shoulder: ")
    assert find_faults(root) == []


@pytest.mark.long
def test_a_browser_follows_what_comes(served, tmp_path):
    made, _, port = served
    over = Event()

    def feed():
        at = 15.0
        while not over.wait(0.01):
            at += 0.01
            made.write(signals(at))

    feeder = Thread(target=feed)
    feeder.start()
    try:
        root = show_in_browser(port, tmp_path)
    finally:
        over.set()
        feeder.join()
    state = root.get_element_by_id("state").text_content()
    assert "Following" in state
    assert int(re.search(r"(\d+) points", state)[1]) > 300
    assert "No load" in root.get_element_by_id("load").text_content()
