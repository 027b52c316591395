"""The text summary and the page: what they say, that they fit, that they repeat."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from functools import cache

import jinja2
import lxml.html
import numpy as np
import pytest
import toy

from dynident.api import identify
from dynident.consistency.constraints import Bounds, LinkMass, TotalMass
from dynident.consistency.nearest import nearest_consistent
from dynident.core.series import TorqueSeries
from dynident.core.templates import keep_compiled_templates
from dynident.core.words import LONGEST_NAME, format_number, format_percent, shorten_line
from dynident.estimators.closed_loop import FreeError, SimulatedFigure
from dynident.export.repair import format_repair, measure_com_shift, serialise_repair
from dynident.fit.figures import decompose_torques, find_extremes, thin_positions
from dynident.fit.json import serialise_result
from dynident.fit.parameters import list_base_parameters
from dynident.fit.verdict import Reason, reach_verdict
from dynident.plots.charts import insert_gaps
from dynident.plots.curves import chart_torques
from dynident.plots.page import render_chart
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.regression.rows import list_torque_groups
from dynident.report.base import format_regroupings
from dynident.report.fit import Fit
from dynident.report.html import judge_free_errors, judge_residuals, list_result_statements
from dynident.report.sections import (
    SECTIONS,
    make_table_section,
    render_result_page,
    summarise_result,
)
from dynident.report.text import format_fit_figures, tabulate_drives

HOSTILE = ("<i>&'\"", "$x^2", "関節" * 30, "a joint with spaces and a name that goes on and on")


@cache
def identified(
    method: str = "pc-idim-ls",
    n: int = 2,
    joints: tuple[str, ...] = (),
    name: str = "toy",
    **options: str | bool,
) -> Fit:
    """A result on a simulated log, with a held-out log beside it."""
    robot = toy.arm(n)
    named = [replace(j, name=new) for j, new in zip(robot.joints, joints, strict=False)]
    robot = replace(robot, name=name, joints=(*named, *robot.joints[len(named) :]))
    logs = [toy.log(robot, seconds=8.0, noise=0.5, seed=seed)[0] for seed in (0, 5)]
    held_out = replace(logs[1], name="held-out log")
    problem = Problem(robot, prepare(logs[0], 5.0))
    return identify(problem, method, validation=[prepare(held_out, 5.0)], **options)


@cache
def result() -> Fit:
    return identified()


@cache
def page() -> str:
    return render_result_page(result(), result().series(500))


def widest(text: str) -> int:
    return max(len(line) for line in text.splitlines())


def test_a_section_is_in_its_place_on_the_page_and_in_the_summary(monkeypatch):
    def tabulate(found):
        return ("one", "two"), [("guess", [f"<{k}>" for k in range(2)])]

    own = make_table_section("Guesses", "guesses", tabulate, "Not <known>.")
    places = list(SECTIONS.items())
    at = list(SECTIONS).index("links")
    told = dict([*places[:at], ("guessed", own), *places[at:]])
    monkeypatch.setattr("dynident.report.sections.SECTIONS", told)
    root = lxml.html.document_fromstring(render_result_page(result(), ()))
    ids = root.xpath("//section/@id")
    assert ids[ids.index("guessed") + 1] == "links"
    assert [link.removeprefix("#") for link in root.xpath("//nav/a/@href")] == ids
    assert [key for key in ids if key != "guessed"] == [key for key in SECTIONS if key in ids]
    (section,) = root.xpath("//section[@id='guessed']")
    assert section.xpath("./h2/text()") == ["Guesses"]
    assert section.xpath(".//td/text()") == ["<0>", "<1>"]
    assert section.xpath(".//p/text()") == ["Not <known>."]
    parts = [part.split(maxsplit=1)[0] for part in summarise_result(result(), True).split("\n\n")]
    assert parts[parts.index("guesses") - 1] == "link"
    assert "guesses" not in summarise_result(result())


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("method", ["pc-idim-ls", "ols"])
def test_summary_fits_80_columns_whatever_the_names(method, full):
    found = identified(method, n=5, joints=HOSTILE, name="r" * 300, doctor=False)
    found = replace(found, warnings=("w" * 200, "a warning\nof two lines"))
    text = summarise_result(found, full)
    assert widest(text) <= 80
    assert shorten_line(HOSTILE[3], LONGEST_NAME) in text
    assert "…" in text
    assert text == text.rstrip()
    assert "\x1b" not in text


def test_summary_is_short_by_default_and_complete_in_full():
    count = result().base.count
    short, full = summarise_result(result()), summarise_result(result(), full=True)
    assert f"{count} base parameters" in full
    assert set(result().base.names) <= set(full.split())
    for text in (short, full):
        assert "pc-idim-ls" in text
        assert re.search(r"^consistent +yes", text, re.MULTILINE)
        assert text.split("\n\n")[-1].startswith("verdict     trusted")
    for pattern in (r"^certificate +primal .*gap", r"^covariance  ", r"^time  ", r"^overall  "):
        assert re.search(pattern, full, re.MULTILINE)
        assert not re.search(pattern, short, re.MULTILINE)


def test_a_short_summary_counts_the_warnings_and_reasons_that_it_leaves_out():
    reasons = [Reason("refuted", "it is wrong"), *(Reason("doubtful", f"so {k}") for k in range(2))]
    found = replace(
        result(), warnings=("a", "b", "c", "d", "e"), verdict=reach_verdict(reasons, logs=1)
    )
    short, full = summarise_result(found), summarise_result(found, full=True)
    assert [line[12:] for line in short.splitlines() if line.startswith("warning ")] == [
        "a", "b", "c", "2 more warnings with --full or summary(full=True)",
    ]  # fmt: skip
    assert [line[12:] for line in full.splitlines() if line.startswith("warning ")] == [*"abcde"]
    (last,) = short.split("\n\n")[-1:]
    assert " ".join(last.split()) == (
        "verdict refuted: it is wrong; 2 more reasons with --full or summary(full=True)"
    )
    assert full.endswith("verdict     refuted: it is wrong; so 0; so 1")


def test_summary_counts_the_eliminated():
    found = identified("wls", essential="f-test")
    gone = found.base.count - len(found.essential)
    assert gone > 0
    text = summarise_result(found, full=True)
    assert f"{gone} of them eliminated" in text
    names = {line.split()[0] for line in text.splitlines() if line}
    for k, name in enumerate(found.base.names):
        assert (name in names) == (k in found.essential)
    html = render_result_page(found, ())
    assert all(name in html for name in found.base.names)


def test_errors_stand_over_the_efforts_that_the_file_states():
    robot = toy.arm(2)
    first, second = robot.joints
    robot = replace(robot, joints=(replace(first, effort=50.0), second))
    problem = Problem(robot, prepare(toy.log(robot, seconds=8.0, noise=0.5)[0], 5.0))
    found = identify(problem, "wls", doctor=False)
    told = serialise_result(found)["fit"]["identification"][0]["joints"]
    assert told[0]["effort_percent"] == pytest.approx(2.0 * told[0]["rmse"])
    assert told[1]["effort_percent"] is None
    best = found.identification[-1].joints
    text = summarise_result(found, full=True)
    (head,) = [line for line in text.splitlines() if line.startswith("torque error")]
    lines = text[text.index(head) :].splitlines()[1:3]
    shown = [line.split()[-1] for line in lines]
    assert shown == [format_percent(2.0 * best[0].rmse), "-"]
    assert "effort %" not in summarise_result(found)
    root = lxml.html.document_fromstring(render_result_page(found, ()))
    rows = [[cell.text_content() for cell in row] for row in root.xpath("//tr")]
    (titles,) = [row for row in rows if "effort %" in row]
    (cells,) = [row for row in rows[rows.index(titles) :][:2] if row[0] == first.name]
    assert cells[titles.index("effort %", 4)] == shown[0]
    plain = lxml.html.document_fromstring(page())
    assert "effort %" not in [cell.text_content() for cell in plain.xpath("//th")]


def test_a_method_without_standard_parameters_says_so():
    found = identified("ols")
    assert "not determined: ols gives base parameters only" in summarise_result(found)
    text = render_result_page(found, ())
    assert "Consistency not determined" in text
    assert 'id="links"' not in text


@pytest.mark.parametrize("method", ["pc-idim-ls", "ols"])
def test_values_of_drives_have_errors_or_say_with_what_they_are_regrouped(method):
    root = lxml.html.document_fromstring(render_result_page(identified(method, doctor=False), ()))
    (section,) = root.xpath("//section[@id='drives']")
    cells = [cell.text_content().strip() for cell in section.xpath(".//td")]
    bare = [cell for cell in cells if not re.fullmatch(r"-?[\d.]+\(\d+\)(e[-+]\d\d)?", cell)]
    assert bare == (["-"] * 2 if method == "ols" else [])  # rotors, which a prior alone tells apart
    assert (
        "Identifiable only within a base parameter: Ia1 in Izz1R; Ia2 in " in section.text_content()
    )


def test_tables_for_the_command_line_fit_80_columns():
    found = identified(n=4, joints=HOSTILE, doctor=False)
    entries = found.validation[0].entries
    text = format_fit_figures(entries, found.validation[0].nominal)
    assert widest(text) <= 80
    assert format_percent(entries[0].overall_percent) in text
    text = format_regroupings(found.base, found.base.regroupings)
    assert widest(text) <= 80
    assert all(re.search(rf"^{name} ", text, re.MULTILINE) for name in found.base.names)


def test_many_columns_go_on_in_a_further_block():
    found = replace(result(), validation=result().validation * 9)
    short, text = summarise_result(found), summarise_result(found, full=True)
    assert widest(short) <= 80
    assert widest(text) <= 80
    assert re.findall("^held out [0-9]", short, re.M) == ["held out 8", "held out 9"]
    assert "7 more logs with --full" in short
    assert text.count("torque error %") > 1
    assert "V9 nom." in text


def test_page_holds_every_parameter_joint_and_link():
    text = lxml.html.document_fromstring(page()).text_content()
    robot, base = result().robot, result().base
    for name in (*base.names, *base.regroupings, *robot.joint_names, *robot.links):
        assert name in text
    for row in list_base_parameters(result()):
        assert format_number(row.low) in text
        assert format_number(row.high) in text
    assert result().estimate.covariance.name in text
    assert "(XᵀΩ⁻¹X)⁻¹" in text
    assert "held-out log" in text


@pytest.mark.parametrize(
    ("covariance", "source"),
    [("hac", "Andrews and Monahan (1992)"), ("bartlett", "Newey and West (1987)"), ("robust", "")],
)
def test_page_cites_what_counted_the_errors(covariance, source):
    text = render_result_page(identified("wls", covariance=covariance, doctor=False), ())
    cited = re.findall("Andrews and Monahan|Newey and West", text)
    assert cited == ([source.partition(" (")[0]] if source else [])
    assert ("Bartlett weights" in text) == (covariance == "bartlett")


def test_page_is_whole_and_refers_to_nothing_else():
    root = lxml.html.document_fromstring(page())
    assert root.find(".//title").text == "toy · dynident"
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page())
    assert not re.search(r"https?://|//cdn|@import|url\((?!#)", without_namespaces)
    assert not root.xpath("//script[@src] | //link | //iframe[@src]")
    for element in root.iter("*"):
        for attribute in ("src", "href", "xlink:href"):
            assert element.get(attribute, "#").startswith(("#", "data:"))


def test_ids_are_unique_and_every_reference_has_its_target():
    ids = re.findall(r'\bid="([^"]+)"', page())
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page())) <= set(ids)


def test_one_torque_figure_a_joint_and_the_first_is_open():
    root = lxml.html.document_fromstring(page())
    details = root.xpath("//section[@id='torques']//details")
    logs = len(result().samples) + len(result().held_out)
    assert len(details) == logs * result().robot.n
    assert details[0].get("open") is not None
    assert details[1].get("open") is None
    assert all(d.xpath(".//svg") for d in details)


def test_same_input_same_bytes():
    assert render_result_page(result(), result().series(500)) == page()


def test_names_are_escaped_and_drawn_whatever_they_hold():
    found = identified(n=4, joints=HOSTILE, name="<b>&", doctor=False)
    text = render_result_page(found, found.series(300)[:1])
    assert "<b>" not in text
    assert "<i>" not in text
    root = lxml.html.document_fromstring(text)
    assert root.find(".//h1").text == "<b>&"
    titles = [" ".join(h.split()) for h in HOSTILE]
    assert [s.text for s in root.xpath("//section[@id='torques']//summary")] == titles


def test_lines_are_not_drawn_across_gaps():
    time = np.array([0.0, 0.1, 0.2, 5.0, 5.1])
    broken = insert_gaps(time, np.array([3]))
    assert np.isnan(broken[3])
    np.testing.assert_array_equal(np.delete(broken, 3), time)


def test_a_spike_of_one_sample_is_drawn_of_a_long_log():
    """Of a log of which every hundredth sample is drawn, and one stands out."""
    found = result()
    log = found.samples[0]
    spike, j = len(log.q) // 2 + 7, 1
    tau = log.tau.copy()
    tau[spike, j] += 500.0
    points, own = len(log.q) // 100, log.rate / 2.5  # a low-pass that leaves it one sample wide
    before, after = (
        decompose_torques(found.idim, found.theta, None, replace(log, tau=each), own, points)
        for each in (log.tau, tau)
    )
    assert np.sum(after.even) <= points + len(log.runs)
    assert not after.even[np.searchsorted(after.time, spike / log.rate)]
    assert len(after.time) < 6 * points
    risen = np.nanmax(after.measured[:, j]) - np.nanmax(before.measured[:, j])
    assert risen > 250.0
    assert np.max(after.evenly.measured[:, j]) == np.max(before.evenly.measured[:, j])
    # and on the page, whose panel reaches as far
    (_, (_, chart)) = chart_torques(list_torque_groups(found.robot), after)
    high = [
        float(pair.split()[1]) for pair in re.findall('data-y="([^"]*)"', render_chart(chart, ""))
    ]
    assert high[0] > np.nanmax(after.measured[:, j])


def test_positions_keep_their_extremes_too():
    log = result().samples[0]
    simulated = log.measured.copy()
    simulated[1234, 0] += 1.0
    thinned = thin_positions(log, simulated, 20)
    assert len(thinned.time) < 120
    assert np.max(np.abs(thinned.simulated - thinned.measured)) == pytest.approx(1.0)


def test_extremes_are_those_of_each_stretch():
    signals = np.array([[0.0, np.nan], [3.0, 1.0], [1.0, 0.0], [-1.0, np.nan], [5.0, np.nan]])
    assert find_extremes(signals, 3).tolist() == [0, 1, 2, 3, 4]
    assert find_extremes(signals[:, :1], 5).tolist() == [3, 4]
    assert find_extremes(signals[:, :1], 3, 2).tolist() == [0, 1, 3, 4]
    assert find_extremes(np.zeros((7, 0)), 2).tolist() == []


def test_figure_of_a_log_without_nominal_torques():
    signal = np.ones((50, 1))
    parts = {"gravity": signal}
    series = TorqueSeries(
        "x", np.arange(50) * 0.1, signal, signal, None, parts, signal, 0.0 * signal
    )
    for kind, unit in (("revolute", "Nm"), ("prismatic", "N")):
        robot = result().robot
        joint = replace(robot.joints[0], kind=kind)
        ((_, chart),) = chart_torques(list_torque_groups(replace(robot, joints=(joint,))), series)
        figure = render_chart(chart, "torque")
        assert "robot file" not in figure
        assert f"[{unit}]" in figure


def levels(found: Fit) -> dict[str, str]:
    return {s.title: s.level for s in list_result_statements(found)}


def test_verdict_of_a_good_result():
    found = levels(result())
    assert found["Physically consistent"] == "good"
    assert "No held-out log" not in found
    assert "bad" not in found.values()


def test_verdict_names_what_is_wrong():
    theta = result().theta.copy()
    theta[0] = -1.0
    theta[result().idim.names.index("fv2")] = -0.5
    estimate = replace(result().estimate, theta=theta)
    broken = replace(
        result(),
        estimate=estimate,
        rank=result().base.count - 1,
        nominal=(replace(result().identification[1], overall_percent=1e-9),),
        validation=(),
        warnings=("odd log",),
    )
    found = levels(broken)
    assert found["Not physically consistent"] == "bad"
    assert found["Some parameters are not excited"] == "bad"
    assert found["No held-out log"] == "note"
    assert found["Warning"] == "note"
    assert next(v for k, v in found.items() if k.startswith("Torque error")) == "bad"
    text = render_result_page(broken, ())
    assert "pseudo-inertia link_1, fv2 = -0.5" in text
    assert "odd log" in text
    assert "no: pseudo-inertia link_1, fv2 = -0.5" in summarise_result(broken)


def test_verdict_doubts_a_model_that_does_not_generalise():
    worse = tuple(replace(f, overall_percent=60.0) for f in result().validation[0].entries)
    held_out = replace(result().validation[0], entries=worse, nominal=())
    found = levels(replace(result(), validation=(held_out,)))
    assert found["Held-out error 60.00 %"] == "note"


def test_held_out_errors_are_beside_those_of_the_same_rows():
    """A held-out log that is too short for the low-pass has an error of its fitted rows alone."""
    rows, every = (
        replace(f, overall_percent=p) for f, p in zip(result().identification, (2.0, 8.0))
    )
    short = replace(
        result().validation[0], entries=(replace(rows, overall_percent=6.0),), nominal=()
    )
    both = replace(result(), identification=(rows, every), validation=(short,))
    (told,) = (s for s in list_result_statements(both) if s.title == "Held-out error 6.00 %")
    assert "; 3.0 times the error on the fitted logs" in told.text


def test_free_errors_are_beside_those_of_all_fitted_logs():
    """As the verdict has them, and not beside that of the worst."""
    of = [FreeError(None, np.full(2, rms)) for rms in (1e-3, 7e-3, 5e-3)]
    fitted = tuple(
        SimulatedFigure(f"log {k}", *np.zeros((3, 2)), free=(each,))
        for k, each in enumerate(of[:2])
    )
    held_out = replace(result().validation[0], free=(of[2],))
    *_, told = judge_free_errors(replace(result(), simulated=fitted, validation=(held_out,)))
    assert told.text.endswith("; 1.0 times the error on the fitted logs")


def test_groups_of_rows_that_are_not_white_are_named():
    """A base's axes and combinations of equations are not joints."""
    (first, *_) = result().residuals

    def told(*names: str) -> str:
        groups = [
            replace(first, name=name, whiteness=replace(first.whiteness, p_value=p))
            for name, p in (("base fx", 1e-6), ("joint_1", 0.5), *((name, 1e-9) for name in names))
        ]
        return judge_residuals(replace(result(), residuals=tuple(groups))).text

    covariance = f"; error bars: {result().estimate.covariance.name}"
    assert told("joint_2") == f"Ljung-Box rejects whiteness of base fx, joint_2{covariance}"
    many = told(*(f"free of tip {k}" for k in range(1, 10)))
    assert many.startswith("Ljung-Box rejects whiteness of base fx, free of tip 1, ")
    assert many.endswith(f"free of tip 7 and 2 more{covariance}")


def test_missing_numbers_are_dashes():
    assert format_number(None) == format_number(float("nan")) == format_percent(float("inf")) == "-"
    assert format_number(0.0) == "0"
    assert format_number(247.0, 3) == "247"
    assert format_percent(0.001) == "0.001"
    assert format_percent(0.009876) == "0.0099"
    assert format_percent(1234.5) == "1234"


# constraints that hold an estimate back


@cache
def held(lower: float, consistency: str = "pseudo-inertia") -> Fit:
    """Results with a bound that the data agree with, or contradict."""
    robot = toy.arm(2)
    problem = Problem(robot, prepare(toy.log(robot, seconds=8.0, noise=0.5)[0], 5.0))
    bound = Bounds(("fv2",), lower=lower)
    return identify(problem, consistency=consistency, constraints=[bound])


@pytest.mark.long
def test_restrictions_are_in_the_summary_and_on_the_page():
    free = identify(Problem(held(9.0).robot, held(9.0).samples))
    k = free.base.names.index("fv2")
    lucky = float(free.estimate.beta[k] + 0.3 * free.estimate.covariance.std[k])
    for found, words in ((held(lucky), "the data agree with"), (held(9.0), "the data contradict")):
        text = summarise_result(found, full=True)
        assert widest(text) <= 80
        assert found.estimate.restriction.verdict.startswith(words)
        joined = " ".join(text.split())
        assert f"restriction {found.estimate.restriction.verdict}" in joined
        assert f"active {found.estimate.active[0]}" in joined
        page_text = lxml.html.document_fromstring(render_result_page(found, ())).text_content()
        assert found.estimate.restriction.verdict in page_text
        assert "fv2 >=" in page_text
    assert "restriction" not in summarise_result(free, full=True)
    assert "active      no constraint" in summarise_result(free, full=True)


def test_what_is_at_a_bound_is_told_by_where_its_interval_ends():
    robot = toy.arm(2)
    recording, _ = toy.log(robot, 6.0, 0.5, 3, friction="viscous")
    fit = identify(Problem(robot, prepare(recording, 5.0)), bootstrap=0, doctor=False)
    one, two = fit.estimate.bounded
    assert (one.name, two.name) == ("fc1", "fc2")
    drives = dict(tabulate_drives(fit))
    assert drives["fc"] == [f"< {format_number(own.high, 2)}" for own in (one, two)]
    assert not any("<" in cell for cell in drives["fv"])
    text = summarise_result(fit, full=True)
    assert widest(text) <= 80
    assert re.search(r"^fc1 .* 0 +0\.0299", text, re.M)
    assert "  <         at its bound" in text
    page_text = lxml.html.document_fromstring(render_result_page(fit, ())).text_content()
    assert drives["fc"][0] in page_text
    document = serialise_result(fit)
    assert document["joints"][0]["std"]["friction"]["fc"] == one.std
    (row,) = (row for row in document["parameters"] if row["name"] == "fc1")
    assert (row["std"], row["interval_95"]) == (one.std, [0.0, one.high])


def test_a_contradiction_is_a_warning_of_the_verdict():
    statements = list_result_statements(held(9.0))
    warnings = [s.text for s in statements if s.title == "Warning"]
    told = [text for text in warnings if text.startswith("the data contradict the constraints (")]
    assert len(told) == 1
    assert "fv2 >= 9" in told[0]
    only_base = held(9.0, "base")
    found = levels(only_base)
    assert found["Consistency not determined"] == "note"
    assert found["Warning"] == "note"
    assert "restriction  the data contradict" in summarise_result(only_base, full=True)


@pytest.mark.long
def test_active_constraints_with_hostile_names_fit_80_columns():
    robot = toy.arm(4)
    joints = [
        replace(j, name=name, link=f"{name} link {k}")
        for k, (j, name) in enumerate(zip(robot.joints, HOSTILE, strict=True))
    ]
    robot = replace(robot, joints=tuple(joints))
    problem = Problem(robot, prepare(toy.log(robot, seconds=6.0, noise=0.5)[0], 5.0))
    heavier = (1.5 * robot.nominal[:, 0]).tolist()
    masses = [LinkMass((link,), value=m) for link, m in zip(robot.links, heavier, strict=True)]
    found = identify(problem, constraints=[*masses, TotalMass(sum(heavier))])
    assert len(found.estimate.active) >= 4
    assert widest(summarise_result(found, full=True)) <= 80
    text = render_result_page(found, ())
    shown = lxml.html.document_fromstring(text).text_content()
    assert "mass of <i>&'\" link 0" in shown


# repair


def repaired(names: tuple[str, ...] = ()):
    robot = toy.arm(4)
    named = [replace(j, link=new) for j, new in zip(robot.joints, names, strict=False)]
    robot = replace(robot, joints=(*named, *robot.joints[len(named) :]))
    nominal = robot.nominal.copy()
    nominal[2, 9] = 3.0
    robot = replace(robot, nominal=nominal)
    return robot, nearest_consistent(robot)


@pytest.mark.parametrize("names", [(), HOSTILE], ids=["plain", "hostile"])
def test_a_repair_fits_80_columns_whatever_the_names(names):
    robot, found = repaired(names)
    text = format_repair(robot, found)
    assert widest(text) <= 80
    assert text == text.rstrip()
    lines = " ".join(text.split())
    assert f"changed {' '.join(robot.links[2].split())}" in lines
    assert "1 link of 4 changed" in lines
    assert "certificate primal" in lines


def test_a_repair_as_data_says_what_the_table_says():
    robot, found = repaired()
    data = serialise_repair(robot, found)
    assert data["changed"] == ["link_3"]
    assert [row["link"] for row in data["standard"]] == list(robot.links)
    for k, row in enumerate(data["standard"]):
        assert row["mass"] == pytest.approx(found.phi[k, 0])
        assert (row["distance"] > 0.0) == (k == 2)
        assert (row["min_eigenvalue_before"] < 0.0) == (k == 2)
        assert row["min_eigenvalue"] > 0.0
    assert data["robot"] == {"name": "toy", "joints": list(robot.joint_names), "dof": 4}


def test_a_repair_of_a_robot_without_some_links():
    robot = toy.arm(2)
    nominal = robot.nominal.copy()
    nominal[0] = 0.0
    robot = replace(robot, nominal=nominal)
    found = nearest_consistent(robot)
    assert "mass" not in serialise_repair(robot, found)["standard"][0]
    assert widest(format_repair(robot, found)) <= 80
    assert np.isnan(measure_com_shift(nominal[0], found.phi[0]))
    shifted = nominal[1].copy()
    shifted[1] += 0.3 * shifted[0]
    assert measure_com_shift(nominal[1], shifted) == pytest.approx(0.3)


def test_templates_are_compiled_once_where_modules_are(tmp_path, monkeypatch):
    def render() -> str:
        kept = keep_compiled_templates(tmp_path)
        return jinja2.Environment(
            loader=jinja2.DictLoader({"a": "{{ 1 + 1 }}"}), bytecode_cache=kept
        ).get_template("a").render()  # fmt: skip

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert render() == "2"
    (kept,) = tmp_path.iterdir()
    before = kept.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(jinja2.Environment, "compile", None)  # it is not called again
        assert render() == "2"
    assert kept.read_bytes() == before
    cache = keep_compiled_templates(tmp_path)
    shutil.rmtree(tmp_path)  # a place that went away costs a compilation, and no page
    environment = jinja2.Environment(loader=jinja2.DictLoader({"a": "2"}), bytecode_cache=cache)
    assert environment.get_template("a").render() == "2"
    assert keep_compiled_templates(tmp_path) is None
    tmp_path.mkdir()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert keep_compiled_templates(tmp_path) is None
