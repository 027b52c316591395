"""All pages, for those who do not see them, or see them on a phone or in the dark."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib import resources
from pathlib import Path

import lxml.html
import numpy as np
import pytest
import test_compare
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
from test_report import identified

from dynident.excitation.excite import excite
from dynident.experiments.page import render_excitation_page
from dynident.experiments.replay import render_replay_page
from dynident.plots.charts import BLUE, Chart, Curve, Panel
from dynident.plots.page import render_chart
from dynident.report.bodies import render_bodies
from dynident.report.html import render_comparison_page
from dynident.study.compare import compare
from dynident.study.study import read_study

place = test_compare.place
KINDS = ("result", "base parameters", "comparison", "excitation", "replay", "bodies")


@cache
def excitation_pages() -> tuple[str, str]:
    options = {"acceleration": 15.0, "starts": 1, "iterations": 2, "time": 4.0}
    found = excite(toy.arm(2), **options, collision=False, floor=False)
    replay = render_replay_page(found)
    return render_excitation_page(found, replay), replay


@pytest.fixture(scope="module")
def pages(place) -> dict[str, str]:
    study = read_study(place / "both.toml")
    compared = compare(study, ["wls"], ["coulomb-viscous"], 2)
    return {
        "result": identified().render_page().decode(),
        "base parameters": identified("wls", essential="f-test").render_page().decode(),
        "comparison": render_comparison_page(compared),
        "excitation": excitation_pages()[0],
        "replay": test_replay.page(),
        "bodies": render_bodies(fit(), fit().samples[0]),
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
        # legends colour their marks, which are no words
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


def test_a_browser_shows_a_result_by_night_on_a_phone(browser, tmp_path):
    page = identified().render_page().decode()
    file = write_page(tmp_path, "result", page)
    assert look_at_page(browser, file, min(WIDTHS), "dark") == []


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
    found = "\n".join(look_at_page(browser, write_page(tmp_path, "faulty", page), 390, "light"))
    for words in (
        "axe color-contrast", "axe image-alt", "overflow: 6", "console: loud", "error: Ref",
        "no value at the pointer", "is not enlarged",
    ):  # fmt: skip
        assert words in found
