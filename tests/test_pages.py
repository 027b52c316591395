"""All pages, for those who do not see them, or see them on a phone or in the dark."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import lxml.html
import numpy as np
import pytest
import test_compare
import test_live
import test_replay
import toy
from browser import open_browser
from pages import (
    THEMES,
    WIDTHS,
    find_faint_text,
    find_faults,
    look_at_page,
    measure_contrast,
)
from test_bodies import fit
from test_ground import problem_of, stepping
from test_protocol import plan
from test_report import identified

import dynident as di
from dynident.cli import run
from dynident.core.plain import to_json
from dynident.core.series import PositionSeries
from dynident.diagnosis.examine import Finding
from dynident.excitation.excite import excite
from dynident.experiments.page import render_excitation_page
from dynident.experiments.replay import render_replay_page
from dynident.fit.doctor import Report
from dynident.fit.json import serialise_result
from dynident.live.server import render_live_page
from dynident.loads.page import render_payload_page
from dynident.loads.payload import Payload
from dynident.plots.charts import BLUE, Chart, Curve, Panel
from dynident.plots.page import render_chart
from dynident.recording.repairs import LogRepair
from dynident.regression.rows import RowGroup, list_position_groups
from dynident.report.bodies import render_bodies
from dynident.report.difference import compare_results
from dynident.report.draws import Calibration
from dynident.report.html import (
    FOOTHOLDS,
    FORCES,
    render_comparison_page,
    render_repeating_study,
)
from dynident.report.pages import (
    render_difference_page,
    render_doctor_page,
    render_draws_page,
    render_replays_page,
    render_track_page,
    render_validation_page,
)
from dynident.study.compare import compare
from dynident.study.study import read_study

place = test_compare.place
JUDGED = ("doctor", "validation", "draws", "replays", "difference", "track", "payload")
"""What `--page` writes."""
KINDS = (
    "result", "legged", "base parameters", "comparison", "excitation", "protocol", "replay",
    "bodies", "live", *JUDGED,
)  # fmt: skip


@cache
def excitation_pages() -> tuple[str, str]:
    options = {"acceleration": 15.0, "starts": 1, "iterations": 2, "time": 4.0}
    found = excite(toy.arm(2), **options, collision=False, floor=False)
    replay = render_replay_page(found)
    return render_excitation_page(found, replay), replay


@dataclass(frozen=True)
class Replayed:
    log: str
    joints: tuple[str, ...]
    columns: dict[str, np.ndarray]
    motion: PositionSeries
    channels: tuple[RowGroup, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ("a warning",)


@cache
def judged_pages() -> dict[str, str]:
    """A page of each command that judges something beside a fit."""
    fit, time = identified(), np.linspace(0.0, 9.0, 10)
    names = fit.robot.joint_names
    finding = Finding("run1", "tau sign", "the sign of joint 2", "sign = -1", 70.0, 3.0)
    report = Report("run1", (finding,), (), LogRepair(), {}, {}, None, True)
    sound = Report("run2", (), (), LogRepair(), {}, {}, None, False)
    draws = di.sample(fit, 12)
    inside = Calibration("a log", "torque", names, 12, np.array([0.5, 0.6]), np.array([0.95, 0.9]))
    errors = {"dynident": np.array([1e-3, 2e-3]), "file": np.array([0.2, 0.1])}
    wave = np.column_stack([np.sin(time), np.cos(time)])
    moved = PositionSeries("a log", time, wave, 1.01 * wave, np.zeros(0, dtype=np.int64))
    channels = list_position_groups(fit.robot)
    load = np.column_stack([np.full(10, 1.5), np.linspace(0.5, 0.1, 10)])
    beta = np.tile(fit.estimate.beta, (10, 1)) + time[:, None]
    followed = (time, beta, 0.1 + 0.0 * beta, load)
    return {
        "doctor": render_doctor_page(
            "toy", [report, sound], dict.fromkeys(names, False), fit.samples[:1]
        ),
        "validation": render_validation_page(fit, [(fit.validation[0], fit.held_out)]),
        "draws": render_draws_page(fit, draws, [inside]),
        "replays": render_replays_page(
            "toy", [], [Replayed("a log", names, errors, moved, channels)]
        ),
        "difference": render_difference_page([compare_results(fit, None)]),
        "track": render_track_page(fit.base, "a log", *followed, [(3.0, "a load")]),
        "payload": render_payload_page(fit, weigh()),
    }


def weigh() -> Payload:
    """A kilogram, as it is found."""
    values = np.array([1.0, 0.01, 0.0, 0.1, 0.01, 0.0, 0.01, 0.0, 0.0, 0.005])

    @dataclass(frozen=True, repr=False)
    class Weighed(Payload):
        intervals = (values, values - 0.1, values + 0.1)
        warnings = ("a warning",)

    load = SimpleNamespace(seen=True, link="fore", moved=None)
    return Weighed(load, "a log", "flange", np.eye(3), np.zeros(3))


def test_first_estimates_of_which_little_is_known_do_not_stretch_the_axes():
    fit = identified()
    time, shape = np.linspace(0.0, 9.0, 10), (10, fit.base.count)
    beta, std = np.ones(shape), np.full(shape, 0.1)
    std[:2], beta[0] = 1e7, -1e6
    page = render_track_page(fit.base, "a log", time, beta, std, np.full((10, 2), np.nan), [])
    ranges = [float(end) for ends in re.findall(r'data-y="(\S+) (\S+)"', page) for end in ends]
    assert (min(ranges), max(ranges)) == pytest.approx((0.804, 1.196))


def test_pages_of_what_is_judged_say_it():
    pages = judged_pages()
    for kind, words in {
        "doctor": ("the sign of joint 2", "sign = -1", "70", "clearly better"),
        "validation": ("Held-out error", "held-out log", "Torque of every joint"),
        "draws": ("all of 12 draws", "92 % inside"),
        "replays": ("dynident 1.58", "a warning"),
        "difference": ("standard deviations", "A and B", "the robot file's inertials", "kg m²"),
        "track": ("1.5 ± 0.2 kg at the end", "3.00 s", "a load", "[Nm s/rad]"),
        "payload": ("1 kg, 95 % from 0.9 to 1.1", "set_target_payload"),
    }.items():
        text = " ".join(lxml.html.document_fromstring(pages[kind]).text_content().split())
        labels = lxml.html.document_fromstring(pages[kind]).xpath("//@aria-label")
        for each in words:
            assert each in text or any(each in label for label in labels), (kind, each)


def test_a_page_has_the_study_that_repeats_it(place):
    study = read_study(place / "both.toml")
    repeated = place / "repeated.toml"
    repeated.write_text(render_repeating_study(replace(identified(), study=study)), "utf-8")
    again = read_study(repeated)
    assert (again.prepare, again.identify) == (study.prepare, study.identify)
    assert [log.files for log in again.log] == [log.files for log in study.log]
    text = lxml.html.document_fromstring(identified().render_page().decode())
    told = " ".join(text.xpath("//section[@id='provenance']")[0].text_content().split())
    made = identified().provenance
    for words in (f"Python {made.python}, {made.machine}", made.date, *made.logs.values(), "Cite"):
        assert words in told
    assert made.log_bytes == dict.fromkeys(made.logs)
    assert f"from memory, SHA-256 {next(iter(made.logs.values()))}" in told


def test_commands_write_pages(tmp_path, capsys):
    saved, page = tmp_path / "result.json", tmp_path / "page.html"
    saved.write_text(to_json(serialise_result(identified(), tmp_path)), "utf-8")
    assert run(["diff", str(saved), "--page", str(page)]) == 0
    assert "comparison of stored results" in page.read_text("utf-8")
    assert f"written to {page}" in capsys.readouterr().err
    assert run(["diff", str(saved), "--page", str(saved)]) == 2
    assert saved.read_text("utf-8").startswith("{")


@cache
def walked() -> di.Fit:
    """A robot on its feet."""
    return di.identify(problem_of(stepping()), "wls", doctor=False)


@pytest.mark.long
def test_a_page_of_a_legged_robot_shows_feet_and_forces():
    root = lxml.html.document_fromstring(walked().render_page().decode())
    labels = root.xpath("//section[@id='ground']//figure/@aria-label")
    assert labels == [FORCES, FOOTHOLDS]
    names = root.xpath("//section[@id='answer']//strong/text()")
    assert names[0] == "base fx"
    assert names[6] == f"1  {walked().robot.joint_names[0]}"


@pytest.fixture(scope="module")
def pages(place) -> dict[str, str]:
    study = read_study(place / "both.toml")
    compared = compare(study, ["wls"], ["coulomb-viscous"], 2)
    return {
        "result": identified().render_page().decode(),
        "legged": walked().render_page().decode(),
        "base parameters": identified("wls", essential="f-test").render_page().decode(),
        "comparison": render_comparison_page(compared),
        "excitation": excitation_pages()[0],
        "protocol": plan().render(),
        "replay": test_replay.page(),
        "bodies": render_bodies(fit(), fit().samples[0]),
        "live": render_live_page(test_live.board()),
        **judged_pages(),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_all_is_named_in_order_and_refers_to_what_there_is(pages, kind):
    root = lxml.html.document_fromstring(pages[kind])
    assert find_faults(root) == []
    for frame in root.xpath("//iframe"):
        assert find_faults(lxml.html.document_fromstring(frame.get("srcdoc"))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_seen_by_day_and_by_night(pages, kind):
    root = lxml.html.document_fromstring(pages[kind])
    assert find_faint_text(root) == []
    for each in root.xpath("//*[contains(@style, 'color:')]"):
        words = re.sub(r"(stroke|fill|background)[-\w]*:[^;]*", "", each.get("style"))
        # legends colour their marks, which are not words
        assert "color:" not in words or not re.search(r"\w", each.text_content())


def test_faults_are_found():
    root = lxml.html.document_fromstring(
        "<html><body><h1>a</h1><h3>b</h3><button></button><label for='x'>c</label><svg></svg>"
        "<input id='y'><canvas role='img'></canvas><iframe></iframe><a href='#z'>d</a>"
        "<table><thead><tr><th>e</th></tr></thead><tbody><tr><td>f</td></tr></tbody></table></body>"
        "</html>"
    )
    found = "\n".join(find_faults(root))
    for words in (
        "<button id=None> has no name", "<input id='y'> has no name", "<svg", "<canvas", "a frame",
        "an h3 stands below an h1", "'x' is nowhere", "'#z' is nowhere", "a head 'e'", "a row 'f'",
        "language", "no title", "phone", "main",
    ):  # fmt: skip
        assert words in found
    root = lxml.html.document_fromstring(
        "<style>:root { --ink: #777777; --page: #ffffff; } :root[d] { --ink: #dddddd; "
        "--page: #000000; }</style><script>line.style.color = curve;</script>"
    )
    assert find_faint_text(root) == ["text in the colour curve", "ink on page, light: 4.48"]
    assert measure_contrast("#000000", "#ffffff") == pytest.approx(21.0)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    """Where pictures go: a folder that the environment names, or one of the tests'."""
    named = os.environ.get("DYNIDENT_PICTURES")
    folder = Path(named) if named else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_page(folder: Path, kind: str, page: str) -> Path:
    file = folder / f"{kind.replace(' ', '-')}.html"
    file.write_text(page, "utf-8")
    return file


@pytest.mark.long
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_browser_shows_all_whole_and_complains_of_nothing(
    browser, pages, pictures, kind, width, theme, tmp_path
):
    file = write_page(tmp_path, kind, pages[kind])
    assert look_at_page(browser, file, width, theme, pictures) == []
    picture = pictures / f"{file.stem}-{width}-{theme}-1.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_browser_finds_faults(browser, tmp_path):
    script = resources.files("dynident.plots").joinpath("chart.js").read_text("utf-8")
    script = script.replace("enlarge(low, high)", "0").replace("tell(panel, group, at);", "")
    chart = render_chart(Chart((Panel((Curve(np.arange(9.0), np.arange(9.0), BLUE),)),)), "a line")
    page = (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>t</title>'
        '<body style="background:#fff"><p style="color:#999">faint</p><img src="data:,">'
        '<div style="width:600px">wide</div><style>.area { position: relative; height: 90px } '
        f".area svg {{ width: 100%; height: 100% }}</style>{chart}"
        "<script>console.error('loud'); setTimeout(() => nothing.at.all);</script>"
        f"<script>{script}</script></body></html>"
    )
    file = write_page(tmp_path, "faulty", page)
    by_day, by_night = ("\n".join(look_at_page(browser, file, 390, theme)) for theme in THEMES)
    for words in ("axe color-contrast", "overflow: 6", "console: loud", "error: Ref"):
        assert words in by_day
        assert words in by_night
    for words in ("axe image-alt", "no value at the pointer", "is not enlarged"):
        assert words in by_day
