"""Charts of pages: what the paths hold, the numbers beside them, and what the script does."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from importlib import resources

import lxml.html
import numpy as np
import pytest
from browser import find_chromium
from matplotlib.figure import Figure

from dynident.plots.charts import (
    BLUE,
    COLOURS,
    GREY,
    RED,
    Band,
    Bars,
    Chart,
    Curve,
    Dots,
    Panel,
    Rule,
    Strip,
    thin_to_extremes,
)
from dynident.plots.page import UNITS, find_powers, find_ticks, fit_scale, render_chart
from dynident.plots.panels import draw_panel

TIME = np.linspace(0.0, 8.0, 801)
WAVE = 3.0 + 20.0 * np.sin(TIME)


def wave(**more) -> Panel:
    curve = Curve(TIME, WAVE, BLUE, label="predicted")
    return Panel((curve, Rule(0.0, GREY)), x="time [s]", y="torque [Nm]", flush=True, **more)


def read_points(root: ET.Element) -> np.ndarray:
    """A panel's first curve in its own units, shape (points, 2); NaN between runs."""
    panel = next(each for each in root.iter("div") if "panel" in each.get("class").split())
    scales = [np.array(panel.get(f"data-{axis}").split(), dtype=float) for axis in "xy"]
    path = next(p for p in panel.iter("path") if p.get("class").startswith("curve"))
    points = []
    for run in path.get("d").split("M")[1:]:
        numbers = np.array(re.findall(r"-?\d+", run.removesuffix("h0")), dtype=float)
        points += [np.full((1, 2), np.nan), numbers.reshape(-1, 2).cumsum(axis=0)]
    shares = np.concatenate(points[1:]) / UNITS
    shares[:, 1] = 1.0 - shares[:, 1]
    return np.stack([low + (high - low) * s for (low, high), s in zip(scales, shares.T)], axis=1)


def test_paths_hold_the_numbers():
    x, y = read_points(ET.fromstring(render_chart(Chart((wave(),)), "wave"))).T
    assert x[0] == pytest.approx(0.0)
    assert x[-1] == pytest.approx(8.0)
    np.testing.assert_allclose(y, 3.0 + 20.0 * np.sin(x), atol=44.0 / UNITS + 20.0 * 8.0 / UNITS)


def test_of_long_curves_no_spike_is_missed_and_no_gap_is_closed():
    time = np.arange(100_000) / 1000.0
    signal = np.sin(time)
    signal[31_234], signal[77_777] = 9.0, -7.0
    signal[50_000:50_100] = np.nan
    curve = Curve(time, signal, BLUE)
    x, y = read_points(ET.fromstring(render_chart(Chart((Panel((curve,)),)), "long"))).T
    assert len(x) < 2000
    assert np.nanmax(y) == pytest.approx(9.0, abs=0.01)
    assert np.nanmin(y) == pytest.approx(-7.0, abs=0.01)
    assert x[np.nanargmax(y)] == pytest.approx(31.234, abs=0.02)
    gap = np.flatnonzero(np.isnan(y))
    assert len(gap) == 1
    assert x[gap[0] - 1] < 50.01
    assert x[gap[0] + 1] > 50.09


@pytest.mark.parametrize("count", [10, 99, 100, 101, 997, 1000])
def test_extremes_are_those_of_stretches(count):
    rng = np.random.default_rng(count)
    time, signal = np.arange(float(count)), rng.normal(size=count)
    at, kept = thin_to_extremes(time, signal, 100)
    assert len(kept) <= max(100, count * (count <= 100))
    assert np.all(np.diff(at) > 0.0)
    np.testing.assert_array_equal(signal[at.astype(int)], kept)
    assert {signal.min(), signal.max()} <= {*kept}


def test_numbers_at_axes_are_round_and_within():
    rng = np.random.default_rng(1)
    for _ in range(300):
        low = rng.normal() * 10.0 ** rng.uniform(-6, 6)
        high = low + 10.0 ** rng.uniform(-4, 6)
        ticks = [*find_ticks((low, high))]
        assert 2 <= len(ticks) <= 6
        places = np.array([at for at, _ in ticks])
        assert low - 1e-6 * (high - low) <= places[0] <= places[-1] <= high + 1e-6 * (high - low)
        assert len({word for _, word in ticks}) == len(ticks)
    assert [word for _, word in find_ticks((0.0, 1.0))] == [
        "0.0",
        "0.2",
        "0.4",
        "0.6",
        "0.8",
        "1.0",
    ]
    assert [word for _, word in find_powers((-1.2, 3.1))] == ["0.1", "1", "10", "100", "1000"]
    assert [word for _, word in find_powers((0.0, 1.0))] == ["1", "2", "5", "10"]
    assert [word for _, word in find_powers((-5.0, -2.5))] == ["1e-5", "1e-4", "0.001"]
    assert [word for _, word in find_ticks((-1e-4, 4e-4))] == [
        "-1e-4",
        "0",
        "1e-4",
        "2e-4",
        "3e-4",
        "4e-4",
    ]


def test_scales_have_all_numbers_and_some_width():
    assert fit_scale(np.array([1.0, 3.0]), (None, None), 0.05) == pytest.approx((0.9, 3.1))
    assert fit_scale(np.array([1.0, 3.0]), (0.0, None), 0.05) == pytest.approx((0.0, 3.1))
    for one in (np.zeros(0), np.zeros(3), np.full(2, 7.0)):
        low, high = fit_scale(one, (None, None), 0.05)
        assert high > low


def everything() -> Panel:
    ten = np.arange(10.0)
    marks = (
        Band(0.5, 2.0, BLUE),
        Bars(ten, ten + 1.0, ten + 3.0, (RED, GREY) * 5),
        Dots(ten, 1.0 + ten, BLUE, shape="ring", label="<ring>"),
        Dots(ten, 2.0 + ten, RED, shape="diamond"),
        Dots(ten, 2.0 + ten, RED, shape="bar"),
        Rule(4.0, RED, dashed=True, label="rule & line"),
        Curve(ten, np.where(ten == 4.0, np.nan, 2.0 + ten), GREY, dashed=True),
        Strip(np.array([0.0, 1.0, 2.0, 4.0]), np.array([4.0, 0.0, 1.0]), GREY),
    )
    names = tuple("abcdefghi<")
    return Panel(marks, "<title>", "x & y", "y <", x_names=names, log=True, note="a <note>")


def test_a_page_and_axes_draw_the_same_panel():
    root = ET.fromstring(render_chart(Chart((everything(),)), 'a "name"'))
    text = " ".join(root.itertext())
    for words in ("<title>", "x & y", "y <", "<ring>", "rule & line", "i", "<", "a <note>"):
        assert words in text
    assert root.get("aria-label") == 'a "name"'
    kinds = {path.get("class").split()[0] for path in root.iter("path")}
    known = {"grid", "band", "bars", "ring", "hole", "diamond", "bar", "rule", "curve", "strip"}
    assert kinds == known
    strips = [path.get("style") for path in root.iter("path") if path.get("class") == "strip"]
    assert [look.partition("opacity:")[2] for look in strips] == ["0.50", "1.00"]  # none of none
    axes = Figure().subplots()
    draw_panel(axes, everything())
    assert axes.get_yscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == list("abcdefghi<")
    assert [each.get_text() for each in axes.get_legend().get_texts()] == ["<ring>", "rule & line"]
    assert len(axes.lines) == 5
    axes.figure.canvas.draw()


def test_colours_have_a_name_in_the_style_sheet_by_day_and_by_night():
    style = resources.files("dynident.plots").joinpath("style.css.j2").read_text("utf-8")
    for name in COLOURS.values():
        assert len(re.findall(rf"--{name}: #", style)) == 2, name


def test_a_common_legend_names_what_any_panel_shows_once():
    none, some = np.zeros(0), np.ones(1)
    first = Panel((Dots(none, none, RED, label="weak"), Dots(some, some, BLUE, label="known")))
    second = Panel((Dots(some, some, RED, label="weak"), Dots(some, some, BLUE, label="known")))
    nothing = Panel((Dots(none, none, GREY, label="gone"),))
    root = ET.fromstring(render_chart(Chart((first, second, nothing), together=True), "legend"))
    words = [" ".join("".join(each.itertext()).split()) for each in root.findall("p/span")]
    assert words == ["● known", "● weak"]


def test_maps_keep_their_shape():
    points = np.array([0.0, 4.0]), np.array([0.0, 1.0])
    text = render_chart(Chart((Panel((Curve(*points, BLUE),), equal=True),)), "map")
    assert "--aspect:4.0000" in text


@pytest.mark.long
def test_a_browser_enlarges_a_stretch_and_tells_values(tmp_path):
    browser = find_chromium()
    chart = render_chart(Chart((wave(), wave()), shared=True), "waves")
    script = resources.files("dynident.plots").joinpath("chart.js").read_text("utf-8")
    keys = "+++"
    act = f"""
    const area = document.querySelector(".area");
    for (const key of [..."{keys}", "ArrowRight"])
      area.dispatchEvent(new KeyboardEvent("keydown", {{ key }}));
    """
    place = tmp_path / "page.html"
    place.write_text(
        f"<!DOCTYPE html><body>{chart}<script>{script}</script><script>{act}</script>", "utf-8"
    )
    done = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", place.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    root = lxml.html.document_fromstring(done.stdout)
    first, second = root.find_class("panel")
    width = UNITS * 0.7 ** len(keys)
    for panel in (first, second):  # what is enlarged in one is in all
        start, _, shown, _ = map(float, panel.find(".//svg").get("viewbox").split())
        assert shown == pytest.approx(width, rel=1e-6)
        assert start == pytest.approx(0.5 * (UNITS - width), rel=1e-6)
    time, predicted = (line.text for line in first.findall(".//output/span"))
    at = float(time.removeprefix("time [s] "))
    assert at == pytest.approx(4.0 + 0.02 * 8.0 * 0.7 ** len(keys), abs=1e-3)
    assert predicted.startswith("predicted ")
    value = float(predicted.removeprefix("predicted "))
    assert value == pytest.approx(3.0 + 20.0 * np.sin(at), abs=0.05)
    assert [line.text for line in second.findall(".//output/span")] == [predicted]
    numbers = [float(each.text) for each in second.find_class("x")]
    assert 2 <= len(numbers) <= 6
    assert 4.0 - 4.0 * 0.343 - 1e-6 <= min(numbers) < max(numbers) <= 4.0 + 4.0 * 0.343 + 1e-6
    assert root.find_class("hint")
