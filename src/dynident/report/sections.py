"""What a fit's report has, part by part: on its page, and in its summary."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.core.series import PositionSeries, TorqueSeries
from dynident.core.text import format_count
from dynident.core.words import WIDTH, format_entry, format_table
from dynident.fit.figures import list_efforts
from dynident.fit.floor import UNKNOWN
from dynident.fit.parameters import find_correlations, list_base_parameters
from dynident.fit.result import Result
from dynident.plots.charts import Chart
from dynident.plots.coverage import chart_spectra
from dynident.plots.curves import (
    chart_all_positions,
    chart_all_torques,
    chart_positions,
    chart_torques,
)
from dynident.plots.document import PagePart, build_column_table, render_document, render_macro
from dynident.plots.friction import chart_friction
from dynident.plots.page import POINTS, render_chart
from dynident.plots.parameters import build_correlation, chart_precision
from dynident.plots.residuals import chart_autocorrelation, chart_residuals
from dynident.regression.rows import list_position_groups, list_torque_groups
from dynident.report.charts import show_coverage, show_parameters
from dynident.report.html import (
    ERROR_TITLES,
    build_correlation_table,
    build_drive_table,
    build_error_table,
    build_fitted_table,
    build_free_error_table,
    build_link_table,
    build_parameter_table,
    build_residual_table,
    compare_std_with_literature,
    describe_regrouped_drives,
    flatten_settings,
    format_log_title,
    list_facts,
    list_provenance,
    list_result_statements,
    plot_ground_support,
    render_repeating_study,
)
from dynident.report.screen import format_headlines, format_joints
from dynident.report.text import (
    Column,
    build_error_columns,
    describe_certificate,
    format_base_parameters,
    format_drives,
    format_fitted_values,
    format_free_errors,
    format_header,
    format_links,
    format_quality,
    format_torque_errors,
    format_verdict,
    list_fitted_logs,
    list_floor_words,
    list_free_errors,
    tabulate_sensors,
    tabulate_shapes,
    tabulate_springs,
)

CURVES = 150_000
"""Points that all curves over time of a page have, at most about."""
ALL_PREDICTED = "Torque of every joint: measured and predicted, and the residual"
ALL_SIMULATED = "Position of every joint: measured and simulated, and their difference"
VIEWS = "Measured against predicted torque, and the residual against what it may be of"
MATRIX = "Correlation of the base parameters' estimates"
PREDICTED = "Torque of {}: measured, predicted, parts and residual"
SIMULATED = "Position of {}: measured and simulated, and their difference"
FRICTION = "Friction of each joint against its speed: measured and model"
MOTION = "Speed of each joint against its position, with their limits"
SPECTRA = "Amplitude densities of torques and residuals"
CORRELATION = "Residual autocorrelation of each joint"
PRECISION = "Relative standard deviation of each base parameter"
BESIDE = "Base parameters beside the robot file's"
SHAPES = "Parameters that the torque is not linear in; a dash where one was held."
SPRINGS = (
    "K: stiffness [Nm/rad]; 1/K: compliance by the deflection's regression on the load [urad/Nm], "
    "of a torque sensor alone that of the fit, with its interval. Root mean square errors of link "
    "positions on held-out logs [mrad] by the spring (V1 ...), of a stiff joint with the same "
    "encoder, and of a link that is where its motor is (plain). Found: whether the logs tell the "
    "spring from a stiff joint. With hysteresis: errors of a linear spring, the width of the loop "
    "[urad] with its interval, and whether the logs tell it."
)
SENSORS = (
    "What was estimated besides the bodies: fx0 … mz0 is what a sensor reads beyond its stated "
    "bias, rx, ry, rz the angles by which its axes are turned from the stated ones. Behind an @: "
    "of that log alone."
)


@dataclass(frozen=True)
class PageContents:
    """What a page is made of: a result, what is drawn of its logs, or why nothing is."""

    result: Result
    series: tuple[TorqueSeries, ...]
    positions: tuple[PositionSeries, ...]
    gone: str

    @property
    def points(self) -> int:
        """Most of a curve over time: the page has a size, whatever the logs."""
        channels = sum(len(each.measured.T) for each in self.drawn)
        return min(POINTS, CURVES // max(1, 10 * channels))

    @property
    def drawn(self) -> list[TorqueSeries | PositionSeries]:
        """All that is drawn over time."""
        return [*self.positions, *self.series]

    @property
    def fitted(self) -> list[TorqueSeries]:
        """The series of logs that were fitted, at samples equally far apart."""
        return [s.evenly for s in self.series if s.name in list_fitted_logs(self.result)]


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    title: str | Callable[[Result], str]
    """Or what tells it of a result."""
    fill: Callable[[PageContents], Mapping[str, Any]]
    """The arguments of its macro, for a page."""
    lines: Callable[[Result, bool], list[str]] | None = None
    """Its lines in the summary, in full or in short; none where it has nothing to say."""
    macro: str = ""
    """In ``sections.html.j2``, its own unless given. What gives nothing is not shown."""

    def render(self, key: str, page: PageContents) -> PagePart:
        """Filled for a page."""
        title = self.title if isinstance(self.title, str) else self.title(page.result)
        filled = self.fill(page)
        own = render_macro("dynident.report", "sections.html.j2", self.macro or key, **filled)
        return PagePart(key, title, own)


def make_table_section(
    title: str,
    stub: str,
    tabulate: Callable[[Result], tuple[Sequence[str], Sequence[Column]]],
    caption: str = "",
    short: bool = False,
) -> Section:
    """A section of one table and what stands beneath, on the page and in the summary alike.

    A `short` one is in the short summary, too.
    `tabulate` gives labels of rows, none where there is nothing to show, and columns of text; over
    the labels stands `stub`.
    """

    def fill(page: PageContents) -> dict[str, Any]:
        labels, columns = tabulate(page.result)
        table = build_column_table(stub, labels, columns, ("unit",)) if labels else None
        return {"table": table, "caption": caption}

    def format_lines(result: Result, full: bool) -> list[str]:
        labels, columns = tabulate(result) if full or short else ((), ())
        if not labels:
            return []
        return [*format_table(stub, labels, columns), *textwrap.wrap(caption, WIDTH)]

    return Section(title, fill, format_lines, "table")


def fill_answer(page: PageContents) -> dict[str, Any]:
    """All joints of one log: of those with the most signals one that was held out, if any was."""
    robot, names = page.result.robot, list_fitted_logs(page.result)

    def rank(series: TorqueSeries | PositionSeries) -> tuple[int, bool]:
        known = np.isfinite(series.measured).any(axis=0)
        return int(np.sum(known)), series.name not in names

    if not page.drawn:
        return {"name": "", "chart": "", "torque": ""}
    chosen = max(page.drawn, key=rank)
    if isinstance(chosen, PositionSeries):
        groups = list_position_groups(robot)[robot.dof - robot.n :]
        chart = render_chart(chart_all_positions(groups, chosen), ALL_SIMULATED, page.points)
        return {"name": format_log_title(page.result, chosen.name), "chart": chart, "torque": ""}
    torques = chart_all_torques(list_torque_groups(robot), chosen, robot.joint_names)
    chart = render_chart(torques, ALL_PREDICTED, page.points)
    title = format_log_title(page.result, chosen.name)
    return {"name": title, "chart": chart, "torque": chosen.torque}


def fill_free_errors(page: PageContents) -> dict[str, Any]:
    """Errors of free simulations, positions, and what was fitted to them."""
    joints = list_position_groups(page.result.robot)[page.result.robot.dof - page.result.robot.n :]
    logs = [(s.name, chart_positions(joints, s)) for s in page.positions]
    table, fitted = build_free_error_table(page.result), build_fitted_table(page.result)
    return {"table": table, "fitted": fitted, "logs": plot_logs(page, logs, SIMULATED)}


def format_free_and_fitted(result: Result, full: bool) -> list[str]:
    """The same in lines, what was fitted first; in short that alone."""
    errors = format_free_errors(result.robot.joint_names, list_free_errors(result)) if full else []
    fitted = format_fitted_values(result, full)
    return [*fitted, *([""] if fitted and errors else []), *errors]


def fill_torques(page: PageContents) -> dict[str, Any]:
    """Torques of the logs over time."""
    channels = list_torque_groups(page.result.robot)
    logs = plot_logs(page, [(s.name, chart_torques(channels, s)) for s in page.series], PREDICTED)
    return {"logs": logs, "torque": page.result.torque_source}


def plot_logs(
    page: PageContents, logs: Sequence[tuple[str, Sequence[tuple[str, Chart]]]], words: str
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Titles of logs, and by joint their charts as elements of a page."""
    return [
        (
            format_log_title(page.result, log),
            [
                (joint, render_chart(chart, words.format(joint), page.points))
                for joint, chart in charts
            ],
        )
        for log, charts in logs
    ]


def format_errors(result: Result, full: bool) -> list[str]:
    """Errors in lines, and what of the torques no model explains."""
    lines = format_headlines(result)
    if full:
        efforts = list_efforts(result.robot)
        lines = format_torque_errors(build_error_columns(result), result.torque_source, efforts)
    floor = [words for words in list_floor_words(result) if full or words != UNKNOWN]
    return [*lines, *(line for words in floor for line in format_entry("floor", words))]


def fill_friction(page: PageContents) -> dict[str, Any]:
    """Friction against speed."""
    robot = page.result.robot
    channels = list_torque_groups(robot)[robot.dof - robot.n : robot.dof]
    chart = render_chart(chart_friction(channels, page.fitted), FRICTION) if page.fitted else ""
    return {"chart": chart, "torque": page.result.torque_source}


def fill_motion(page: PageContents) -> dict[str, Any]:
    """Which positions and speeds the fitted logs have."""
    panels = () if page.gone else tuple(show_coverage(page.result, page.result.samples))
    return {"chart": render_chart(Chart(panels, columns=3, together=True), MOTION)}


def fill_residuals(page: PageContents) -> dict[str, Any]:
    """Autocorrelation, spectrum and size of what is left."""
    result, plot, spectrum, views = page.result, "", "", ""
    if not result.of_factors:
        # combinations of equations are in the table
        shown = [group for group in result.residuals if group.rows and not group.combination]
        own = chart_autocorrelation(shown or result.residuals, result.robot.joint_names)
        plot = render_chart(own, CORRELATION)
    if page.fitted:
        channels = list_torque_groups(result.robot)
        spectrum = render_chart(
            chart_spectra(channels, page.fitted[0], page.result.robot.joint_names), SPECTRA
        )
        joints = channels[result.robot.dof - result.robot.n : result.robot.dof]
        views = render_chart(chart_residuals(joints, page.fitted), VIEWS)
    table = build_residual_table(result)
    return {"plot": plot, "spectrum": spectrum, "views": views, "table": table}


def fill_links(page: PageContents) -> dict[str, Any]:
    """The links' parameters, and ellipsoids of them."""
    from dynident.report.bodies import render_bodies

    bodies = render_bodies(page.result, None if page.gone else page.result.samples[0])
    fitted = page.result.estimate.fitted
    held = fitted is not None and not {*fitted.names} & {*page.result.idim.names[:10]}
    return {"table": build_link_table(page.result), "bodies": bodies, "held": held}


def fill_parameters(page: PageContents) -> dict[str, Any]:
    """Base parameters with their errors."""
    result, rows = page.result, list_base_parameters(page.result)
    kept = [row for row in rows if row.essential]
    names, known = find_correlations(result)
    return {
        "precision": render_chart(chart_precision(kept), PRECISION),
        "forest": render_chart(Chart((show_parameters(result),)), BESIDE),
        "table": build_parameter_table(result),
        "pairs": build_correlation_table(result),
        "matrix": render_chart(Chart((build_correlation(known, names),)), MATRIX),
        "weak": sum(row.weak for row in rows),
        "eliminated": len(rows) - len(kept),
        "unidentifiable": result.base.unidentifiable,
    }


SECTIONS = {
    "answer": Section("All joints", fill_answer),
    "free": Section("Free simulation", fill_free_errors, format_free_and_fitted),
    "torques": Section("Torques", fill_torques),
    "errors": Section(
        lambda result: ERROR_TITLES[result.torque_source],
        lambda page: {
            "table": build_error_table(page.result),
            "torque": page.result.torque_source,
            "combined": any(group.combination for group in page.result.residuals),
        },
        format_errors,
    ),
    "ground": Section(
        "Ground", lambda page: {"logs": [] if page.gone else plot_ground_support(page.result)}
    ),
    "friction": Section("Friction", fill_friction),
    "motion": Section("Motion", fill_motion),
    "residuals": Section("Residuals", fill_residuals),
    "links": Section(
        "Links", fill_links, lambda result, full: format_links(result) if full else []
    ),
    "sensors": make_table_section("Force sensors", "sensor", tabulate_sensors, SENSORS, short=True),
    "springs": make_table_section("Springs", "spring", tabulate_springs, SPRINGS, short=True),
    "shapes": make_table_section("Shapes", "shape", tabulate_shapes, SHAPES),
    "drives": Section(
        "Drives",
        lambda page: {
            "table": build_drive_table(page.result),
            "regrouped": describe_regrouped_drives(page.result),
        },
        lambda result, full: format_drives(result) if full else format_joints(result),
    ),
    "parameters": Section("Base parameters", fill_parameters, format_base_parameters),
    "proof": Section(
        "Certificate",
        lambda page: {
            "certificate": describe_certificate(page.result),
            "gyrations": page.result.estimate.describe_gyrations(),
            "estimate": page.result.estimate,
        },
    ),
    "facts": Section("Facts", lambda page: {"facts": list_facts(page.result)}, format_header),
    "provenance": Section(
        "Provenance",
        lambda page: {
            "facts": list_provenance(page.result),
            "study": render_repeating_study(page.result),
        },
    ),
    "settings": Section(
        "Settings", lambda page: {"settings": [*flatten_settings(page.result.settings)]}
    ),
    "formulas": Section(
        "Formulas",
        lambda page: {
            "result": page.result,
            "median_ratio": compare_std_with_literature(list_base_parameters(page.result)),
            "error_title": ERROR_TITLES[page.result.torque_source],
        },
    ),
}
"""In the order of the page. The summary has them from the last to the first, as a terminal shows
the end of what it was given; the verdict opens the one and ends the other."""


def render_result_page(
    result: Result,
    series: Sequence[TorqueSeries],
    positions: Sequence[PositionSeries] = (),
    gone: str = "",
) -> str:
    """A result as a page that refers to no other file, with its logs or why they are gone."""
    drawn = () if result.encoder_only else tuple(series)
    page = PageContents(result, drawn, tuple(positions), gone)
    logs = format_count(len(list_fitted_logs(result)), "log")
    return render_document(
        result.robot.name,
        f"dynamic model identified by {result.method} from {logs}",
        list_result_statements(result),
        [section.render(key, page) for key, section in SECTIONS.items()],
        f"The logs cannot be plotted: {gone}" if gone else "",
    )


def summarise_result(result: Result, full: bool = False) -> str:
    """A result in lines of at most 80 columns: its answer on a screen, what to think of it last.

    In `full` base parameters, shapes, tests, proofs, and all columns, warnings and reasons, too.
    """
    parts = [each.lines(result, full) for each in reversed(SECTIONS.values()) if each.lines]
    parts += [format_quality(result, full), format_verdict(result, full)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)
