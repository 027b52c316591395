"""All pages, for those who do not see them, or see them on a phone or in the dark."""

from __future__ import annotations

import re
from functools import cache

import lxml.html
import pytest
import test_compare
import test_live
import test_replay
import toy
from pages import THEMES, find_faint_text, find_faults, look_in_browser, measure_contrast
from test_bodies import fit
from test_report import identified

from dynident.excitation.excite import excite
from dynident.live.server import render_live_page
from dynident.report.bodies import render_bodies
from dynident.report.excitation import render_excitation_page
from dynident.report.html import render_comparison_page
from dynident.report.replay import render_replay_page
from dynident.study.compare import compare
from dynident.study.study import read_study

place = test_compare.place
KINDS = ("result", "base parameters", "comparison", "excitation", "replay", "bodies", "live")


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
        "live": render_live_page(test_live.board()),
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


@pytest.mark.long
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_browser_shows_it_whole_and_complains_of_nothing(pages, kind, theme, tmp_path):
    assert look_in_browser(tmp_path, pages[kind], theme) == []


@pytest.mark.long
def test_a_browser_finds_faults(tmp_path):
    page = (
        '<!DOCTYPE html><html><meta charset="utf-8"><body style="background:#fff">'
        '<p style="color:#999">faint</p><div style="width:600px">wide</div>'
        "<script>console.error('loud'); nothing.at.all;</script></body></html>"
    )
    found = "\n".join(look_in_browser(tmp_path, page, "light"))
    for words in ("contrast 2.85: P faint", "overflow: 6", "console: loud", "error: "):
        assert words in found
