"""Methods and friction models compared on held-out blocks, and what is recommended."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import lxml.html
import numpy as np
import polars as pl
import pytest
import slow_log
import toy
from clusters import start_threads
from commands import ask, tell
from tables import write_joints

from dynident.cli import run
from dynident.core.errors import ComputationError, InputError
from dynident.core.plain import replace_nonfinite
from dynident.decide.blocks import complement_spans, cut_logs, split_into_blocks
from dynident.dynamics.idim import build_idim
from dynident.export.urdf import render_urdf
from dynident.filters.filters import count_filter_edge
from dynident.fit.comparison import Comparison, serialise_comparison
from dynident.fit.scores import BlockScores, jackknife_statistic, select_by_verdict
from dynident.fit.verdict import STATES
from dynident.plots.friction import average_friction_by_speed, chart_friction
from dynident.plots.page import render_chart
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.regression.rows import list_torque_groups
from dynident.report.html import render_comparison_page
from dynident.study.compare import compare
from dynident.study.study import Study, load_study_robot, read_study, read_study_logs

FILES = Path(__file__).parents[1] / "docs" / "files"
RATE = 500.0
VALUES = {"Ia": 0.3, "fv": 2.0, "fc": 3.0, "off": 0.5, "fr": 4.0}
STUDY = """[robot]
file = "arm.urdf"
[[log]]
files = "{log}"
[prepare]
bandwidth = 5.0
drop_below = 0.05
"""
HELD_OUT = '[[log]]\nfiles = "{log}"\nuse = "validate"\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """An arm, and logs of it with friction that is linear and with a cube root."""
    place = tmp_path_factory.mktemp("compare")
    robot = toy.arm(2)
    (place / "arm.urdf").write_bytes(render_urdf(robot, robot.nominal)[0])
    for friction in ("coulomb-viscous", "cube-root"):
        idim = build_idim(robot, friction)
        drive = [VALUES[p.symbol] for p in idim.parameters[idim.inertial :]]
        theta = np.concatenate([robot.nominal.ravel(), drive])
        for run_number in range(2):
            q, dq, ddq = toy.motion(2, 8.0, run_number, RATE)
            tau = idim.torque(theta, q, dq, ddq)
            tau += np.random.default_rng(run_number).normal(size=tau.shape)
            path = place / f"{friction}-{run_number}.csv"
            write_joints(path, robot.joint_names, RATE, q=q, tau=tau)
        (place / f"{friction}.toml").write_text(STUDY.format(log=f"{friction}-0.csv"))
    both = STUDY.format(log="cube-root-0.csv") + HELD_OUT.format(log="cube-root-1.csv")
    (place / "both.toml").write_text(both)
    return place


@cache
def study(path: Path) -> Study:
    return read_study(path)


@cache
def compared(path: Path) -> Comparison:
    return compare(study(path), ["wls"], ["coulomb-viscous", "cube-root"], 4)


def test_elements_of_the_study_are_in_every_model(place):
    """A spring that the log has none of: two parameters more, and hardly another error."""
    path = place / "sprung.toml"
    spring = '[[element]]\njoint = "joint_2"\nkind = "spring"\n'
    path.write_text(STUDY.format(log="coulomb-viscous-0.csv") + spring)
    sprung = compare(read_study(path), ["wls"], ["viscous", "coulomb-viscous"], 4)
    plain = compare(study(place / "coulomb-viscous.toml"), ["wls"], ["viscous"], 4)
    counts = [candidate.parameters for candidate in sprung.candidates]
    assert counts[0] == plain.candidates[0].parameters + 2
    assert counts[1] > counts[0]


# ------------------------------------------------------------------------------- blocks


def samples(seconds: float = 6.0, **options):
    recording, _ = toy.log(toy.arm(2), seconds)
    return prepare(recording, 10.0, **options)


def test_blocks_are_all_that_may_be_fitted_in_order_and_of_one_length():
    log = samples()
    start, stop = log.segments[0]
    gap = replace(log, segments=((start, 2000), (2600, stop)))
    blocks = split_into_blocks([gap, log], 5)
    taken = [(k, i) for spans in blocks for k, a, b in spans for i in range(a, b)]
    every = [
        (k, i) for k, one in enumerate((gap, log)) for a, b in one.segments for i in range(a, b)
    ]
    assert taken == every
    lengths = [sum(b - a for _, a, b in spans) for spans in blocks]
    assert max(lengths) - min(lengths) <= 1


def test_no_fitted_row_reaches_into_what_is_held_out():
    log = samples()
    guard = count_filter_edge(50.0, log.rate)
    half = log.filters[0].half
    rows = Problem(toy.arm(2), log).rows
    for spans in split_into_blocks([log], 4):
        held, own = cut_logs([log], spans), cut_logs([log], complement_spans([log], spans))
        ((_, first, last),) = spans
        inside = np.concatenate([r.sample[0] for r in Problem(toy.arm(2), held).rows()])
        beside = np.concatenate([r.sample[0] for r in Problem(toy.arm(2), own).rows()])
        assert np.all((inside - half >= first) & (inside + half < last))
        assert np.all((beside + half < first - guard) | (beside - half >= last + guard))
        assert len(inside) + len(beside) <= sum(len(r.sample[0]) for r in rows())
        assert len(beside) > len(inside) > 0


def test_stretches_too_short_for_a_row_are_none():
    log = samples()
    shortest = 2 * log.filters[0].half + 1
    assert cut_logs([log], [(0, 100, 100 + shortest - 1)]) == ()
    (found,) = cut_logs([log, log], [(1, 100, 100 + shortest)])
    assert found.segments == ((100, 100 + shortest),)
    assert found.runs == log.runs


# ----------------------------------------------------------------------------- figures


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.array([1.0, 4.0, 2.0, 7.0, 3.0])
    mean, std = jackknife_statistic(lambda kept: float(values[kept].mean()), 5)
    assert mean == pytest.approx(values.mean())
    assert std == pytest.approx(values.std(ddof=1) / np.sqrt(5))


def test_what_makes_blocks_hard_for_both_is_not_in_the_error_of_a_difference():
    torque = np.full((4, 1), 100.0)
    hard = np.array([[1.0], [9.0], [4.0], [25.0]])
    one, other = (BlockScores(c * hard, torque, np.zeros(1)) for c in (1.0, 1.21))
    error, std = one.percent()
    excess, own = other.beyond(one)
    assert error == pytest.approx(100.0 * np.sqrt(39.0 / 400.0))
    assert excess == pytest.approx(0.1 * error)
    assert own == pytest.approx(0.1 * std)


def test_bic_is_that_of_gaussian_errors(place):
    found = compared(place / "cube-root.toml").candidates[1]
    r, rss = found.rows, found.squared
    n = float(np.sum(r))
    plain = float(np.sum(r * np.log(rss / r))) + found.parameters * np.log(n)
    assert found.bic(1.0) == pytest.approx(plain)
    likelihood = plain - found.parameters * np.log(n)
    assert found.bic(3.0) == pytest.approx(likelihood / 3 + found.parameters * np.log(n / 3))


@pytest.mark.long
def test_bic_of_a_method_with_motions_of_its_own_is_of_the_same_rows():
    problem, _ = slow_log.problem(1, seconds=8.0)
    found = compare(problem, ["wls", "smooth"], ["coulomb-viscous"], 2)
    wls, smooth = found.candidates
    assert wls.rows.tolist() == smooth.rows.tolist()
    assert max(found.bic) < 100.0


def test_levels_are_those_of_the_survey(place):
    found = compared(place / "cube-root.toml").candidates[0]
    for value, level in ((0.009, "A"), (0.01, "B"), (0.099, "B"), (0.1, "C")):
        scores = replace(found.held_out, relative_error=np.array([value, np.nan]))
        assert replace(found, held_out=scores).torque_level == level
    for seconds, level in ((59.0, "A"), (61.0, "B"), (3601.0, "C")):
        assert replace(found, seconds=seconds).time_level == level


# --------------------------------------------------------------------------- the choice


@pytest.mark.parametrize("friction", ["coulomb-viscous", "cube-root"])
def test_the_friction_behind_a_log_is_recommended(place, friction):
    found = compared(place / f"{friction}.toml")
    assert found.rotating
    assert {r.friction for r in found.recommendations} == {friction}
    assert [r.joint for r in found.recommendations] == [None, "joint_1", "joint_2"]
    truth = next(c for c in found.candidates if c.friction == friction)
    assert found.bic[found.candidates.index(truth)] == 0.0


def test_what_is_richer_is_recommended_for_what_it_buys(place):
    found = compared(place / "cube-root.toml")
    plain, root = found.candidates
    gain, std = plain.held_out.beyond(root.held_out)
    assert gain > 3.0 * std > 0.0
    assert (
        f"improves by {gain:.2f} ± {std:.2f} % over coulomb-viscous"
        in found.recommendations[0].reason
    )


@pytest.mark.parametrize(("excess", "taken"), [(0.005, "coulomb-viscous"), (0.02, "cube-root")])
def test_what_is_hardly_better_is_not_worth_parameters(place, excess, taken):
    comparison = compared(place / "cube-root.toml")
    plain, root = comparison.candidates
    errors = root.held_out.squared_error * (1.0 + excess) ** 2
    near = replace(plain, held_out=replace(root.held_out, squared_error=errors))
    found = replace(comparison, candidates=(near, root))
    gain, std = near.held_out.beyond(root.held_out)
    assert gain > std
    assert found.choice.friction == taken


def test_held_out_errors_are_no_smaller_than_fitted_ones(place):
    for candidate in compared(place / "cube-root.toml").candidates:
        error, std = candidate.held_out.percent()
        assert error > candidate.fitted_percent - std
        assert std > 0.0


def test_doubtful_results_come_last_unless_they_are_clearly_better(place):
    plain, root = compared(place / "cube-root.toml").candidates
    for k, state in enumerate(STATES[:-1]):
        worse = replace(plain, verdict=STATES[k + 1])
        better = replace(root, verdict=state)
        assert select_by_verdict([better, worse]) == [better]
    excess, std = root.held_out.beyond(plain.held_out)
    assert excess < -2.0 * std
    doubted = replace(root, verdict="doubtful")
    assert select_by_verdict([plain, doubted]) == [plain, doubted]
    found = replace(compared(place / "cube-root.toml"), candidates=(plain, doubted))
    assert found.choice is doubted
    assert found.recommendations[0].reason.endswith("; its verdict is doubtful")
    refuted = replace(root, verdict=STATES[-1])
    found = replace(found, candidates=(plain, refuted))
    assert found.choice is plain
    assert "cube-root has the smaller error, but its result is refuted" in found.summary()
    both = [replace(c, verdict=STATES[-1]) for c in (plain, root)]
    assert select_by_verdict(both) == both
    poor = replace(compared(place / "cube-root.toml"), candidates=tuple(both))
    assert poor.recommendations[0].reason.endswith("; like the others, it is refuted")


def test_held_out_logs_are_scored_on_one_fit(place):
    found = compared(place / "both.toml")
    assert not found.rotating
    assert "scored on one fit" in found.summary()
    assert found.recommendations[0].friction == "cube-root"
    assert found.candidates[0].held_out.squared_error.shape == (4, 2)


def test_logs_in_memory_are_compared_as_those_of_a_study(place):
    asked = read_study(place / "both.toml")
    robot = load_study_robot(asked)
    fitted, held_out = read_study_logs(asked, robot)
    problem = Problem(robot, fitted)
    found = compare(problem, ["wls"], ["coulomb-viscous", "cube-root"], 4, validation=[held_out])
    for one, other in zip(found.candidates, compared(place / "both.toml").candidates, strict=True):
        assert (one.friction, one.parameters) == (other.friction, other.parameters)
        np.testing.assert_allclose(
            one.held_out.squared_error, other.held_out.squared_error, rtol=1e-9
        )
    assert not found.rotating
    assert compare(problem, ["wls"], ["viscous"], 4).rotating
    with pytest.raises(InputError, match="in this process"):
        compare(problem, workers=2)
    with pytest.raises(InputError, match="names its held-out logs itself"):
        compare(asked, validation=[held_out])


def test_what_gives_no_answer_is_named_with_the_reason(place):
    frictions = ["coulomb-viscous"]
    found = compare(study(place / "cube-root.toml"), ["wls", "idim-iv"], frictions, 3)
    (failure,) = found.failures
    assert failure.method == "idim-iv"
    assert "[controller]" in failure.reason
    assert "failed      coulomb-viscous by idim-iv: " in found.summary()
    with pytest.raises(ComputationError, match=r"every candidate failed; .*controller"):
        compare(study(place / "cube-root.toml"), ["idim-iv"], frictions, 3)


def test_progress_is_one_stage_that_never_goes_back(place):
    told: list[tuple[str, float]] = []
    compare(
        study(place / "cube-root.toml"), ["wls"], ["viscous", "cube-root"], 3,
        progress=lambda stage, share: told.append((stage, share)),
    )  # fmt: skip
    shares = [share for stage, share in told if stage == "comparing"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((["wls"], ["stribek"]), "friction 'stribek' is not known"),
        ((["wls", "wls"],), "not all different"),
        (([],), "no method"),
        ((["wls"], ["viscous"], 1), "at least 2"),
        ((["wls"], ["viscous"], 200), "too short for the filters"),
    ],
)
def test_what_cannot_be_compared_is_refused(place, given, words):
    with pytest.raises(InputError, match=words):
        compare(study(place / "cube-root.toml"), *given)


# -------------------------------------------------------------------------------- forms


def test_the_summary_fits_80_columns_and_says_what_is_left_out(place):
    text = compared(place / "cube-root.toml").summary()
    assert max(len(line) for line in text.split("\n")) <= 80
    assert text.startswith("recommended  cube-root by wls")
    assert "e_d, e_f and J_e" in text


def test_the_command_writes_a_page_and_an_object(place, monkeypatch, capfd):
    monkeypatch.chdir(place)
    argv = ["compare", "cube-root.toml", "--methods", "wls", "--blocks", "4"]
    argv += ["--frictions", "coulomb-viscous, cube-root", "--json", "-o", "out"]
    printed = ask(capfd, argv)
    assert sorted(os.listdir("out")) == ["comparison.html", "comparison.json"]
    assert json.loads(Path("out/comparison.json").read_text()) == printed
    expected = replace_nonfinite(serialise_comparison(compared(place / "cube-root.toml")))
    for one in (printed, expected):
        one.pop("seconds")
        for candidate in one["candidates"]:
            candidate.pop("seconds")
    assert printed == expected
    assert run(["compare", "cube-root.toml", "--methods", "wsl"]) == 2
    assert "method 'wsl' is not known; did you mean 'wls'?" in capfd.readouterr().err


def test_what_reading_logs_warns_of_is_told(place, capfd):
    """As `identify` tells it: currents are fitted as torques where no gain is known."""
    log = (place / "coulomb-viscous-0.csv").read_text()
    (place / "currents.csv").write_text(log.replace("tau_", "current_"))
    path = place / "currents.toml"
    path.write_text(STUDY.format(log="currents.csv"))
    argv = ["compare", str(path), "--methods", "wls", "--frictions", "viscous", "--blocks", "2"]
    words = "currents.csv: currents taken as torques, because every drive's gain is 1"
    assert [each.rpartition("/")[2] for each in ask(capfd, argv)["warnings"]] == [words]
    said = " ".join(tell(capfd, [*argv, "-o", str(place / "warned")]).out.split())
    assert re.search(f"warning [^ ]*{words}", said)
    assert words in lxml.html.parse(place / "warned" / "comparison.html").getroot().text_content()


CLOE = """[controller]
kind = "pd"
kp = 900.0
kd = 60.0
[identify]
method = "cloe"
"""


@pytest.mark.parametrize("column", [None, "current_"])
def test_logs_that_cloe_takes_alone_are_refused(place, capfd, column):
    """Without torques, or with sizes of currents: neither are what errors of torques are of."""
    log = pl.read_csv(place / "coulomb-viscous-0.csv")
    tau = [name for name in log.columns if name.startswith("tau_")]
    kept = log.drop(tau) if column is None else log.with_columns(pl.col(tau).abs())
    kept.rename(lambda name: name.replace("tau_", str(column))).write_csv(place / "cloe.csv")
    (place / "cloe.toml").write_text(
        STUDY.format(log="cloe.csv") + HELD_OUT.format(log="cloe.csv") + CLOE
    )
    asked = [[command] for command in ("compare", "select", "track")]
    asked += [["resonance", "--joint", "1", "--band", "2", "20"]]
    for command, *flags in asked:
        said = tell(capfd, [command, str(place / "cloe.toml"), *flags], 2)
        assert said.out == ""
        (line,) = said.err.splitlines()
        assert "cloe.csv: has no torque with a sign, which this command takes" in line
        assert "dynident identify does without by cloe" in line
    said = tell(capfd, ["collect", str(place / "cloe.toml"), "-o", str(place / "factors")], 2)
    assert "cloe.csv: has no torque with a sign" in " ".join(said.out.split())


def test_the_page_is_whole_and_draws_every_model(place):
    page = render_comparison_page(compared(place / "cube-root.toml"))
    root = lxml.html.document_fromstring(page)
    assert not root.xpath("//script[@src] | //link | //iframe")
    text = root.text_content()
    for word in ("coulomb-viscous", "cube-root", "joint_1", "joint_2", "All joints", "BIC"):
        assert word in text
    assert len(root.xpath("//section[@id='friction']//svg")) == 2


def test_curves_of_friction_are_the_models(place):
    candidate = compared(place / "cube-root.toml").candidates[1]
    speed, friction = average_friction_by_speed(candidate.series, 0)
    (below, above) = np.flatnonzero(speed == 0.0)
    assert above == below + 1
    assert np.all(np.diff(np.delete(speed, below)) > 0.0)
    model = 0.5 + 2.0 * speed + np.sign(speed) * (3.0 + 4.0 * np.abs(speed) ** (1.0 / 3.0))
    moving = speed != 0.0
    assert np.abs(friction - model)[moving].max() < 0.1 * np.abs(model).max()
    assert friction[above] - friction[below] > 2.0 * 3.0


@pytest.mark.long
def test_shapes_that_a_log_does_not_tell_spoil_no_block(tmp_path, monkeypatch):
    """Where a shape changes next to nothing, a step of any length is a small one."""
    monkeypatch.chdir(tmp_path)
    for name in ("arm.urdf", "make_logs.py"):
        (tmp_path / name).write_bytes((FILES / name).read_bytes())
    exec(compile(Path("make_logs.py").read_text(), "make_logs.py", "exec"), {})
    Path("study.toml").write_text(
        '[robot]\nfile = "arm.urdf"\n[[log]]\nfiles = "run1.csv"\n[prepare]\nbandwidth = 5.0\n'
    )
    found = compare(read_study("study.toml"), ["pc-idim-ls"], ["coulomb-viscous", "stribeck"])
    plain, shaped = (each.held_out.percent()[0] for each in found.candidates)
    assert shaped < 1.05 * plain


def test_a_robot_at_rest_has_a_figure_too(place):
    found = compared(place / "cube-root.toml")
    still = [replace(s, speed=0.0 * s.speed) for s in found.choice.series]
    drawn = render_chart(chart_friction(list_torque_groups(found.robot), still), "friction")
    assert "<svg" in drawn
    assert "nan" not in drawn


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_the_engine_changes_no_number(place, workers):
    asked = (read_study(place / "cube-root.toml"), ["wls"], ["viscous", "coulomb-viscous"], 2)
    expected = tell_without_seconds(compare(*asked))
    if workers > 1:
        assert tell_without_seconds(compare(*asked, workers=workers)) == expected
        return
    with start_threads() as here:
        assert tell_without_seconds(compare(*asked, engine=here)) == expected


def tell_without_seconds(found: Comparison) -> dict[str, object]:
    """A comparison as plain data, but for how long it took."""
    told = {**serialise_comparison(found), "seconds": 0.0}
    told["candidates"] = [{**each, "seconds": 0.0} for each in told["candidates"]]
    return told
