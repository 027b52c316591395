"""What a notebook shows of logs and fits: data frames, plots, folding tables, overviews."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import lxml.html
import numpy as np
import pytest
import toy
from matplotlib.figure import Figure
from test_encoder import fitted
from test_pages import weigh
from test_report import identified

import dynident as di
from dynident.cli import main
from dynident.cli.output import paint_verdict
from dynident.core.errors import InputError
from dynident.core.inertia import to_com
from dynident.fit.parameters import (
    find_body_errors,
    list_base_parameters,
    list_correlated_pairs,
    list_drive_errors,
)
from dynident.plots.card import LEVELS, STYLE
from dynident.plots.charts import Rule, label_joint, thin_to_extremes
from dynident.plots.coverage import Range, build_coverage, build_spectrum, estimate_density
from dynident.plots.overview import find_step
from dynident.recording.recording import Recording
from dynident.regression.rows import list_torque_groups

pytest.importorskip("pandas")
TWO = ("joint_1", "joint_2")


def labels(axes) -> tuple[str, str]:
    return axes.get_xlabel(), axes.get_ylabel()


def test_links_are_those_of_the_fit_beside_the_files():
    fit = identified()
    frame = fit.links()
    assert list(frame.index) == list(fit.robot.links)
    assert frame.shape == (2, 36)
    for k, phi in enumerate(fit.phi):
        mass, com, inertia = to_com(phi)
        row, file = frame.iloc[k], to_com(fit.robot.nominal[k])
        assert row["mass"] == mass
        assert row[["com_x", "com_y", "com_z"]].tolist() == list(com)
        assert row["Ixz"] == inertia[0, 2]
        assert row["Iyy_file"] == file[2][1, 1]
        assert row["mass_file"] == file[0]
    errors = frame[[name for name in frame if name.endswith("_std")]].to_numpy()
    assert np.array_equal(errors, find_body_errors(fit), equal_nan=True)
    shares = frame[["mass_from_data", "com_from_data", "inertia_from_data"]].to_numpy()
    assert np.array_equal(shares, fit.estimate.informed)
    least = [each.radius for each in fit.estimate.gyrations]
    assert frame["least_gyration"].tolist() == least
    assert (frame["gyration"] >= 0.999 * frame["least_gyration"]).all()
    assert frame["min_eigenvalue"].min() == fit.smallest_eigenvalue


def test_links_of_a_file_without_inertials_have_no_values_of_it():
    fit = identified()
    bare = replace(fit.robot, nominal=np.zeros((2, 10)))
    other = replace(fit, base=replace(fit.base, idim=fit.idim.of(bare)))
    assert other.links().filter(like="_file").isna().all(axis=None)
    assert other.to_frame()["file"].isna().all()


def test_drives_have_a_row_a_joint_and_gaps_where_a_sum_alone_is_known():
    fit = identified()
    frame = fit.drives()
    assert list(frame) == [c for s in ("Ia", "fv", "fc", "off") for c in (s, f"{s}_std")]
    for j, (name, std) in enumerate(zip(fit.robot.joint_names, list_drive_errors(fit))):
        for symbol, value in fit.drive_parameters(j).items():
            assert frame.loc[name, symbol] == value
            assert frame.loc[name, f"{symbol}_std"] == std[symbol]
    sums = identified("ols", doctor=False).drives()
    assert sums[["Ia", "Ia_std"]].isna().all(axis=None)
    assert sums.drop(columns=["Ia", "Ia_std"]).notna().all(axis=None)


def test_base_parameters_come_with_intervals_units_and_the_files_values():
    fit = identified()
    frame = fit.to_frame()
    rows = list_base_parameters(fit)
    assert list(frame.index) == [row.name for row in rows]
    for column in ("value", "std", "low", "high", "essential"):
        assert frame[column].tolist() == [getattr(row, column) for row in rows]
    assert frame["combination"].tolist() == list(fit.base.regroupings)
    file = fit.base.matrix @ fit.idim.nominal
    friction = frame.index.str.match(r"(fv|fc|off)\d")
    assert np.array_equal(frame["file"][~friction], file[~friction])
    assert frame["file"][friction].isna().all()
    units = frame["unit"].to_dict()
    assert (units["Izz1R"], units["mx2"], units["fv1"], units["off2"]) == (
        "kg m^2", "kg m", "Nm s/rad", "Nm",
    )  # fmt: skip


def test_base_parameters_say_what_of_them_the_log_tells():
    shares = {}
    for weight in (1e-3, 1.0, 1e8):
        frame = identified(prior_weight=weight, doctor=False).to_frame()
        friction = frame.index.str.match(r"(fv|fc|off)\d")
        assert (frame["from_data"][friction] == 1.0).all()
        shares[weight] = frame["from_data"][~friction].to_numpy()
        assert len(shares[weight]) > 3
    # where a rotor is regrouped into a link, the prior does not tell the sum
    told = shares[1e8] < 1.0
    assert np.any(told)
    assert np.min(shares[1e-3]) > 0.99
    assert np.max(shares[1e8][told]) < 0.5
    assert np.all(np.diff([shares[w][told] for w in shares], axis=0) <= 0.0)
    assert (identified("wls").to_frame()["from_data"] == 1.0).all()


def test_eliminated_parameters_are_marked():
    fit = identified("wls", essential="f-test")
    assert fit.to_frame()["essential"].sum() == len(fit.essential) < fit.base.count


def test_frames_say_what_they_lack(monkeypatch):
    fit = identified("ols", doctor=False)
    with pytest.raises(InputError, match="ols gives base parameters only"):
        fit.links()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        fit.to_frame()


@pytest.mark.long
def test_identifying_loads_neither_pandas_nor_matplotlib_and_no_plot_pyplot():
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "import toy, dynident as di\n"
        "log = toy.log(toy.arm(2), seconds=4.0, noise=0.5)[0]\n"
        "fit = di.identify(di.Problem(toy.arm(2), di.prepare(log, 5.0)), doctor=False)\n"
        "fit.summary(), repr(fit), fit.plot, fit == fit\n"
        "assert not {'pandas', 'matplotlib'} & set(sys.modules)\n"
        "fit.plot.torque(), fit.plot.parameters()._repr_png_()\n"
        "assert not {'pandas', 'matplotlib.pyplot'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_torques_are_those_of_the_fit_with_their_units():
    fit = identified()
    for log, series in enumerate(fit.series()):
        panels = fit.plot.torque(log=log)
        assert [axes.get_title(loc="left") for axes in panels] == list(TWO)
        for j, axes in enumerate(panels):
            assert labels(axes) == ("time [s]", "torque [Nm]")
            measured, predicted, file = axes.lines
            for line, drawn in ((measured, series.measured), (predicted, series.predicted)):
                assert np.array_equal(line.get_xdata(), series.time)
                assert np.array_equal(line.get_ydata(), drawn[:, j])
            assert np.array_equal(file.get_ydata(), series.nominal[:, j])
            words = [text.get_text() for text in axes.get_legend().get_texts()]
            assert words == ["measured", "predicted", "robot file"]
    name = fit.series()[1].name
    held_out = fit.plot.torque(log=name)[0].lines[0].get_ydata()
    assert np.array_equal(held_out, fit.series()[1].measured[:, 0])


def test_residuals_leave_the_edges_of_filters_out():
    fit = identified()
    series = fit.series()[0]
    for j, axes in enumerate(fit.plot.residuals()):
        drawn = axes.lines[0].get_ydata()
        error = series.measured[:, j] - series.predicted[:, j]
        assert np.array_equal(drawn[series.scored], error[series.scored])
        assert np.isnan(drawn[~series.scored]).all()
        assert 0 < np.sum(~series.scored) < 0.1 * len(error)
        rms = np.sqrt(np.nanmean(drawn**2))
        assert rms == pytest.approx(fit.identification[1].joints[j].rmse, rel=0.1)
        assert labels(axes) == ("time [s]", "residual [Nm]")


def test_plots_go_into_the_axes_that_are_given():
    fit = identified()
    figure = Figure()
    grid = figure.subplots(2, 1)
    assert fit.plot.torque(grid) == tuple(grid)
    one = Figure().subplots()
    (drawn,) = fit.plot.residuals(one, joints="joint_2")
    assert drawn is one
    assert drawn.get_title(loc="left") == "joint_2"
    with pytest.raises(InputError, match=r"axes: 2 were given, 1 are drawn in: parameters"):
        fit.plot.parameters(grid)
    with pytest.raises(InputError, match="axes: 1 were given, 2 are"):
        fit.plot.friction(one)
    with pytest.raises(InputError, match="axes: 1"):
        fit.plot.correlation("here")
    spines = one.spines["top"].get_visible()
    assert spines  # axes that are given keep their style


def test_joints_and_logs_that_are_not_there_are_refused_with_the_nearest():
    plot = identified().plot
    with pytest.raises(InputError, match="joint 'joint_3' has nothing to draw; did you mean"):
        plot.torque(joints=["joint_3"])
    with pytest.raises(InputError, match="log 'held-out' is none of the fit's; did you mean"):
        plot.diagnostics(log="held-out")
    with pytest.raises(InputError, match="log 2 is not there; the fit has 2"):
        plot.residuals(log=2)
    with pytest.raises(InputError, match=r"pc-idim-ls was fitted to torques.*plot\.torque"):
        plot.positions()


def test_friction_is_what_the_rigid_bodies_leave():
    fit = identified()
    panels, series = fit.plot.friction(), fit.series()[0].evenly
    for j, axes in enumerate(panels):
        assert labels(axes) == ("speed [rad/s]", "friction [Nm]")
        *clouds, model = axes.lines
        assert len(clouds) == 3
        y = np.concatenate([cloud.get_ydata() for cloud in clouds])
        left = series.measured - series.predicted + series.parts["friction"]
        assert {*np.round(y, 9)} <= {*np.round(left[series.scored, j], 9)}
        law = fit.drive_parameters(j)
        speed, friction = (np.asarray(part) for part in model.get_data())
        below, above = np.flatnonzero(speed == 0.0)
        sign = np.where(np.arange(len(speed)) <= below, -1.0, 1.0)
        expected = law["fv"] * speed + law["fc"] * sign + law["off"]
        assert above == below + 1
        np.testing.assert_allclose(friction, expected, atol=1e-9)
        counts = np.array([bar.get_facecolor()[3] for bar in axes.patches]) ** 2
        known, _ = np.histogram(series.speed[:, j], len(counts))
        np.testing.assert_allclose(counts, known / known.max())
    words = [text.get_text() for text in panels[0].get_legend().get_texts()]
    assert words == ["little load", "motor drives load", "load drives motor", "model"]


def test_excitation_is_the_motion_with_what_is_fitted_and_the_limits():
    fit = identified()
    log = fit.samples[0]
    for j, axes in enumerate(fit.plot.excitation(log=0)):
        assert labels(axes) == ("position [rad]", "speed [rad/s]")
        *limits, left, used = axes.lines
        points = np.column_stack([np.concatenate([a.get_data()[k] for a in (left, used)])
                                  for k in (0, 1)])  # fmt: skip
        own = np.column_stack([log.q[:, j], log.dq[:, j]])
        assert {*map(tuple, points)} <= {*map(tuple, own)}
        fitted = np.zeros(len(own), dtype=bool)
        for start, stop in log.segments:
            fitted[start:stop] = log.moving[start:stop, j]
        assert {*map(tuple, np.column_stack(used.get_data()))} <= {*map(tuple, own[fitted])}
        assert not limits  # the toy arm states none
    assert len(fit.plot.excitation(joints="joint_2")) == 1
    with pytest.raises(InputError, match="joint 'joint_3' has nothing to draw; did you mean"):
        fit.plot.excitation(joints=["joint_3"])
    panel = build_coverage("a", True, *np.zeros((2, 3)), np.ones(3, bool), Range(-1.0, 2.0, 3.0))
    rules = [(mark.at, mark.standing) for mark in panel.marks if isinstance(mark, Rule)]
    assert rules == [(-1.0, True), (2.0, True), (-3.0, False), (3.0, False)]
    assert panel.x == "position [m]"


def test_spectra_are_densities():
    step = 0.01
    noise = 3.0 * np.random.default_rng(0).normal(size=100_000)
    hz, density = estimate_density(noise, step, 400)
    assert np.max(np.abs(density / (3.0 * np.sqrt(2.0 * step)) - 1.0)) < 0.2
    assert np.sum(density**2) * (hz[1] - hz[0]) == pytest.approx(9.0, rel=0.02)
    hz, density = estimate_density(
        5.0 * np.sin(2 * np.pi * 7.0 * step * np.arange(5000)), step, 500
    )
    assert hz[np.argmax(density)] == pytest.approx(7.0, abs=0.3)
    assert np.sum(density**2) * (hz[1] - hz[0]) == pytest.approx(12.5, rel=0.02)
    assert len(estimate_density(np.zeros(5), step, 9)[0]) == 0
    series = identified().series()[0]
    few = replace(series.stretch, residual=series.stretch.residual[:9])
    short = replace(series, stretch=few)
    panel = build_spectrum(short, 0, list_torque_groups(identified().robot)[0])
    assert (panel.marks, panel.note) == ((), "no run is long enough")
    fit = identified()
    for axes in fit.plot.spectrum():
        assert labels(axes) == ("frequency [Hz]", "density [Nm/√Hz]")
        torque, residual = (line.get_ydata() for line in axes.lines)
        assert np.nanmax(torque) > 5.0 * np.nanmax(residual)


def test_parameters_stand_in_a_forest_beside_the_files():
    fit = identified()
    frame = fit.to_frame()
    (axes,) = fit.plot.parameters()
    ticks = [tick.get_text() for tick in axes.get_yticklabels()][::-1]  # the first on top
    assert [tick.split()[0] for tick in ticks] == list(frame.index)
    assert ticks[0].endswith("kg m²")
    sure, file = axes.lines[1], axes.lines[-1]
    largest = frame[["value", "low", "high", "file"]].abs().max(axis=1)
    np.testing.assert_allclose(file.get_xdata(), frame["file"] / largest)
    np.testing.assert_allclose(sure.get_xdata(), frame["value"] / largest)
    (intervals,) = axes.collections
    drawn = np.array([segment[:, 0] for segment in intervals.get_segments()])
    np.testing.assert_allclose(drawn, (frame[["low", "high"]].T / largest).T)
    assert "relative" in axes.get_xlabel()


def test_eliminated_parameters_are_not_drawn():
    fit = identified("wls", essential="f-test")
    (forest,), (matrix,) = fit.plot.parameters(), fit.plot.correlation()
    kept = [fit.base.names[k] for k in fit.essential]
    assert [t.get_text().split()[0] for t in forest.get_yticklabels()] == kept[::-1]
    assert [t.get_text() for t in matrix.get_xticklabels()] == kept


def test_correlation_is_that_of_the_covariance():
    fit = identified()
    (axes,) = fit.plot.correlation()
    matrix = np.asarray(axes.images[0].get_array())
    std = fit.estimate.covariance.std
    np.testing.assert_allclose(matrix * np.outer(std, std), fit.estimate.covariance.matrix)
    assert np.allclose(np.diag(matrix), 1.0)
    assert axes.images[0].get_clim() == (-1.0, 1.0)
    told = list_correlated_pairs(fit, 4)
    off = np.abs(matrix - np.eye(len(matrix)))
    assert abs(told[0][2]) == pytest.approx(off.max())
    assert [abs(rho) for *_, rho in told] == sorted((abs(rho) for *_, rho in told), reverse=True)
    for one, other, rho in told:
        j, k = fit.base.names.index(one), fit.base.names.index(other)
        assert rho == pytest.approx(matrix[j, k])
    page = lxml.html.document_fromstring(fit.render_page())
    (table,) = page.xpath("//summary[contains(., 'correlations')]/following-sibling::div/table")
    cells = [each.text for each in table.find("tbody")[0]]
    better = "difference" if told[0][2] > 0.0 else "sum"
    assert cells == [*told[0][:2], f"{told[0][2]:.3f}", better]


def test_diagnostics_have_four_views_a_joint():
    fit = identified()
    panels = fit.plot.diagnostics()
    series = fit.series()[0]
    error = (series.measured - series.predicted)[series.scored]
    assert len(panels) == 8
    for j in range(2):
        against, by_speed, normal, itself = panels[4 * j : 4 * j + 4]
        assert labels(against) == ("predicted [Nm]", "measured [Nm]")
        assert labels(by_speed) == ("speed [rad/s]", "residual [Nm]")
        y = np.asarray(by_speed.lines[0].get_ydata())
        assert {*np.round(y, 12)} <= {*np.round(error[:, j], 12)}
        predicted, measured = (np.asarray(part) for part in against.lines[0].get_data())
        np.testing.assert_allclose(measured - predicted, y, atol=1e-9)
        assert np.all(np.diff(normal.lines[-1].get_ydata()) >= 0.0)
        sticks = itself.collections[-1].get_segments()
        np.testing.assert_allclose([end[1, 1] for end in sticks], fit.residuals[j].correlation)


@pytest.mark.long
def test_encoder_fits_draw_positions_and_no_torques(tmp_path):
    fit, _ = fitted(tmp_path)
    (series,) = fit.simulate_positions()
    panels = fit.plot.positions(joints=["j3", "j1"])
    for axes, joint in zip(panels, (2, 0), strict=True):
        measured, simulated = axes.lines
        assert np.array_equal(measured.get_ydata(), series.measured[:, joint])
        assert np.array_equal(simulated.get_ydata(), series.simulated[:, joint])
        assert axes.get_ylabel() == "position [rad]"
    for name in ("torque", "residuals", "friction", "diagnostics"):
        with pytest.raises(InputError, match=r"no torque was measured: plot\.positions"):
            getattr(fit.plot, name)()
    assert len(fit.plot.parameters()) == 1
    assert fit.drives().shape[0] == 3
    assert len(fit.to_frame()) == fit.base.count
    units = dict(zip(fit.estimate.fitted.names, fit.estimate.fitted.units, strict=True))
    assert (units["Ia1"], units["fv2"], units["fc3"]) == ("kg m^2", "Nm s/rad", "Nm")


def test_a_notebook_shows_figures_that_pyplot_does_not():
    panels = identified().plot.parameters()
    assert panels._repr_png_().startswith(b"\x89PNG")
    assert repr(identified().plot).startswith("<Plots: torque(), residuals(), friction()")


@pytest.mark.long
def test_names_are_not_read_as_formulas():
    hostile = ("$x^2", "a joint with spaces and a name that goes on and on")
    plot = identified(joints=hostile, doctor=False).plot
    for panels in (plot.torque(), plot.friction(), plot.diagnostics()):
        assert panels[0].get_title(loc="left") == "$x^2"
        panels.figure.canvas.draw()


# equality


def test_fits_are_equal_where_all_that_was_found_is(tmp_path):
    fit = identified()
    same = identified.__wrapped__()
    assert fit == same
    assert hash(fit) == hash(same)
    assert fit != identified("wls")
    assert fit != "a fit"
    other = replace(fit, warnings=(*fit.warnings, "another"))
    assert fit != other
    fit.save(tmp_path, report=False)
    read = di.read_result(tmp_path / "result.json")
    assert read == fit
    assert len({fit, same, read, identified("wls")}) == 2
    # what needs no log is there without one
    assert len(read.plot.parameters()[0].get_yticklabels()) == fit.base.count
    assert read.links().equals(fit.links())
    assert read._repr_html_() == fit._repr_html_()
    with pytest.raises(InputError, match="logs are not known"):
        read.plot.torque()


# cards


def test_a_fit_folds_in_a_notebook_and_escapes_what_others_wrote():
    hostile = ("<i>&'\"", "<script>alert(1)</script>")
    fit = identified(joints=hostile, name="<b>robot", doctor=False)
    fit = replace(fit, warnings=("a <b>warning",))
    text = fit._repr_html_()
    root = lxml.html.fragment_fromstring(text)
    assert not root.xpath(".//i | .//b | .//script")
    assert root.xpath("string(./p[1])") == f"<b>robot, 2 joints, by pc-idim-ls: {fit.verdict.state}"
    folds = {fold.xpath("string(./summary)"): fold for fold in root.xpath("./details")}
    count = f"{fit.base.count} base parameters"
    assert list(folds) == ["Torque errors", "Links", "Drives", count, "1 warning"]
    names = [cell.text_content() for cell in folds[count].xpath(".//tbody//th")]
    assert names == list(fit.base.names)
    drives = folds["Drives"].xpath(".//tbody//th")
    assert [cell.text_content() for cell in drives] == list(hostile)
    assert folds["1 warning"].xpath("string(.//td)") == "a <b>warning"
    for fold in folds.values():
        widths = {sum(int(c.get("colspan", 1)) for c in row) for row in fold.xpath(".//tr")}
        assert len(widths) == 1
    assert len(text) < 20_000


def test_cards_take_colours_from_what_is_around_them():
    colours = re.findall(r"(?:color|background):([^;}]*)", STYLE)
    assert {*colours} <= {"inherit", "none"}
    assert not re.search(r"#[0-9a-fA-F]{3}|rgb", STYLE)
    assert {*re.findall(r"#[0-9A-F]{6}", identified()._repr_html_())} <= {*LEVELS.values()}


@pytest.mark.long
def test_encoder_fits_and_base_parameters_alone_fold_too(tmp_path):
    encoder, _ = fitted(tmp_path)
    text = encoder._repr_html_()
    assert "Free simulation" in text
    assert "torque error" not in text
    assert "Links" not in identified("ols")._repr_html_()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dynident id", ["identify"]),
        ("dynident identify --help-", ["--help-methods"]),
        ("dynident identify --method pc-idim", ["pc-idim-ls", "pc-idim-iv"]),
        ("dynident doctor --friction cube", ["cube-root"]),
        ("dynident init --preset ur", ["ur-rtde"]),
        ("dynident identify --loss h", ["huber"]),
    ],
)
def test_a_shell_completes_commands_flags_and_names(line, words, monkeypatch, capsys):
    monkeypatch.setenv("_DYNIDENT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    monkeypatch.setattr(sys, "argv", ["dynident"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.split() == words


# logs


def coarse_log() -> di.Recording:
    """A log in steps of an encoder, of two segments, with a joint that rests half of the time."""
    q = np.round(toy.motion(2, 8.0)[0] / 1e-3) * 1e-3
    q[4000:, 1] = q[4000, 1]
    tau = np.round(np.random.default_rng(0).normal(size=q.shape) * 40.0)
    return di.Recording("a log", 1000.0, q, tau, qref=q + 0.01, segments=((0, 3000), (3000, 8000)))


def limited_arm() -> di.Robot:
    robot = toy.arm(2)
    joints = [replace(j, lower=-4.0, upper=4.0, velocity=20.0, effort=np.inf) for j in robot.joints]
    return replace(robot, joints=(joints[0], replace(joints[1], kind="prismatic")))


def test_a_log_is_told_at_a_glance():
    log = coarse_log()
    found = log.overview(limited_arm())
    assert (found.samples, found.segments, found.duration, found.longest) == (8000, 2, 8.0, 5.0)
    assert found.signals == ("qref",)
    assert [joint.name for joint in found.joints] == list(TWO)
    for k, joint in enumerate(found.joints):
        assert joint.position == (log.q[:, k].min(), log.q[:, k].max())
        assert joint.torque == (log.tau[:, k].min(), log.tau[:, k].max())
        assert joint.torque_rms == pytest.approx(np.sqrt(np.mean(log.tau[:, k] ** 2)))
        assert joint.limits == (-4.0, 4.0)
        assert joint.range_share == pytest.approx(np.ptp(log.q[:, k]) / 8.0)
        assert joint.position_step == pytest.approx(1e-3)
        assert joint.torque_step == pytest.approx(1.0)
        assert np.isnan(joint.torque_share)
        true = toy.motion(2, 8.0)[1]
        high = true[: 4000 if k else None, k].max()
        assert joint.speed[1] == pytest.approx(high, rel=0.05)
        assert joint.speed_share == pytest.approx(np.abs(joint.speed).max() / 20.0)
    assert found.joints[0].resting < 0.1
    assert 0.5 <= found.joints[1].resting < 0.6
    assert [joint.unit for joint in found.joints] == ["rad", "m"]


def test_an_overview_reads_as_text_and_in_one_line():
    log = replace(coarse_log(), joints=("a", "b"), warnings=("a log: 1 gap in time",))
    found = log.overview()
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "8000 samples at 1000 Hz, 8 s in 2 segments",
        "q, tau, qref",
        "1 gap",
        "rad or m",
        "rad/s or m/s",
        "Nm or N",
    ):
        assert words in text
    assert repr(found) == "<Overview of a log: 2 joints, 8 s at 1000 Hz; print() shows it>"
    root = lxml.html.fragment_fromstring(log._repr_html_())
    folds = [fold.xpath("string(./summary)") for fold in root.xpath("./details")]
    assert folds == ["Positions", "Speeds", "Torques", "1 warning"]
    assert len(root.xpath("./details[@open]")) == 0
    opened = lxml.html.fragment_fromstring(found._repr_html_())
    assert len(opened.xpath("./details[@open]")) == 3


def test_what_a_prompt_shows_is_one_line():
    fit = identified()
    for found, words in (
        (fit.controller_model(), "<ControllerModel of toy: inverse_dynamics"),
        (weigh(), "<Payload of a log: 1 kg on fore, 95 % 0.9 to 1.1; print(found.summary())>"),
        (di.sample(fit, 3), "<Draws of toy: 3 sets of 28 parameters>"),
        (fit.compare(fit), "<Difference of toy and another by pc-idim-ls; print(found.summary())>"),
    ):
        assert repr(found).startswith(words)
        assert len(repr(found)) < 120


def test_a_wrong_call_is_answered_by_the_right_one():
    log = coarse_log()
    with pytest.raises(InputError, match="prepare has no option 'bandwith'; did you mean 'band"):
        di.prepare(log, bandwith=5.0)  # type: ignore[call-arg]
    with pytest.raises(
        InputError, match=r"doctor takes Study, not Recording: .* or a Problem of logs"
    ):
        di.doctor(log)  # type: ignore[arg-type]


def test_a_joint_is_numbered_where_its_name_does_not_say_it():
    names = ["joint_1", "elbow", "axis2", "wrist12"]
    shown = [label_joint(name, names) for name in (*names, "base fx")]
    assert shown == ["joint_1", "2  elbow", "3  axis2", "4  wrist12", "base fx"]


def test_logs_without_torque_steps_or_the_robots_joints():
    q = toy.motion(2, 2.0)[0]
    log = di.Recording("free", 1000.0, q, np.zeros_like(q), torque="none")
    found = log.overview()
    assert np.isnan([j.torque_rms for j in found.joints]).all()
    assert np.isnan([j.position_step for j in found.joints]).all()
    assert "torque    " not in str(found)
    assert "no torque" in str(found)
    assert len(log.plot()) == 2
    with pytest.raises(InputError, match="free: toy has 3 joints, the log has 2"):
        log.overview(toy.arm(3))
    with pytest.raises(InputError, match="free: toy has no joint 'elbow'"):
        replace(log, joints=("elbow", "joint_1")).overview(toy.arm(2))
    turned = replace(log, joints=("joint_2", "joint_1")).overview(limited_arm())
    assert [joint.unit for joint in turned.joints] == ["m", "rad"]


def test_steps_are_found_through_units_and_rounding_of_files():
    rng = np.random.default_rng(0)
    counts = np.cumsum(rng.integers(-40, 40, 5000))
    assert find_step(np.deg2rad(counts * 0.01)) == pytest.approx(np.deg2rad(0.01))
    assert np.isnan(find_step(rng.normal(size=5000)))
    assert np.isnan(find_step(np.ones(100)))
    written = np.array([float(f"{value:.4f}") for value in rng.normal(size=5000)])
    assert find_step(written) == pytest.approx(1e-4)


def test_a_log_is_drawn_with_gaps_and_no_spike_is_missed():
    log = coarse_log()
    tau = log.tau.copy()
    tau[4321, 0] = 900.0
    log = replace(log, tau=tau)
    panels = log.plot(robot=limited_arm())
    assert [axes.get_ylabel() for axes in panels] == [
        "position [rad]", "torque [Nm]", "position [m]", "torque [N]",
    ]  # fmt: skip
    time, drawn = (np.asarray(part) for part in panels[1].lines[0].get_data())
    assert len(drawn) < 0.7 * len(tau)
    assert np.nanmax(drawn) == 900.0
    assert time[np.nanargmax(drawn)] == pytest.approx(4.321)
    assert np.isnan(drawn).sum() == 1
    reference, measured = panels[0].lines
    assert np.nanmin(np.asarray(reference.get_ydata())) == log.qref[:, 0].min()
    assert np.nanmin(np.asarray(measured.get_ydata())) == log.q[:, 0].min()
    with pytest.raises(InputError, match="axes: 1 were given, 4 are drawn in: position of joint 1"):
        log.plot(Figure().subplots())


def test_spectra_of_a_log_stand_beside_a_bandwidth():
    time = np.arange(4000) / 200.0
    tones = np.stack([np.sin(2 * np.pi * 1.5 * time), np.sin(2 * np.pi * 6.0 * time)], axis=1)
    log = Recording("tones", 200.0, tones, tones[:, ::-1], segments=((0, 400), (400, 4000)))
    panels = log.spectrum(robot=limited_arm(), bandwidth=4.0)
    assert [axes.get_ylabel() for axes in panels] == [
        "position [rad/√Hz]", "torque [Nm/√Hz]", "position [m/√Hz]", "torque [N/√Hz]",
    ]  # fmt: skip
    for axes, tone in zip(panels, (1.5, 6.0, 6.0, 1.5), strict=True):
        rule, curve = axes.lines
        assert set(rule.get_xdata()) == {4.0}
        hz, density = (np.asarray(part) for part in curve.get_data())
        assert hz[np.nanargmax(density)] == pytest.approx(tone, abs=hz[1] - hz[0])
        assert axes.get_xlim()[1] >= 4.4
    short = log.rows(0, 10).spectrum()
    assert len(short[0].lines) == 1
    assert short[0].texts[0].get_text() == "no segment is long enough"
    assert len(replace(log, torque="none").spectrum()) == 2


def test_short_signals_are_drawn_as_they_are():
    time, signal = np.arange(10.0), np.arange(10.0) ** 2
    kept = thin_to_extremes(time, signal, 10)
    assert kept[0] is time
    assert kept[1] is signal
    _, kept = thin_to_extremes(np.arange(1000.0), np.sin(np.arange(1000.0)), 100)
    assert len(kept) <= 100


def test_a_verdict_is_in_colour_on_a_terminal_that_wants_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "consistent  yes\n\nverdict     doubtful: a verdict is refuted"
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert paint_verdict(text) == text
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert paint_verdict(text) == text.replace("doubtful", "\x1b[33m\x1b[1mdoubtful\x1b[0m")
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint_verdict(text) == text
