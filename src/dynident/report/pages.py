"""Pages of what commands judge beside a fit: logs, errors, draws, replays, and tracks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np

from dynident.core.arrays import Array
from dynident.core.text import format_count
from dynident.core.words import format_number, format_percent, format_with_error, raise_powers
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.units import find_parameter_unit
from dynident.fit.doctor import Report
from dynident.fit.figures import decompose_torques
from dynident.fit.result import Result, ValidationFigures
from dynident.plots.charts import (
    BLUE,
    GREY,
    LINES,
    RED,
    Chart,
    Curve,
    Dots,
    Mark,
    Panel,
    Rule,
    label_joint,
    name_places,
)
from dynident.plots.curves import chart_all_positions, chart_all_torques
from dynident.plots.data import PlottedLog
from dynident.plots.document import (
    Group,
    PagePart,
    VerdictSentence,
    build_column_table,
    render_caption,
    render_document,
    render_facts,
    render_table,
)
from dynident.plots.page import render_chart
from dynident.plots.recordings import build_recording_panels
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.rows import list_torque_groups
from dynident.report.difference import Difference, describe_sides
from dynident.report.draws import Calibration, Draws
from dynident.report.html import judge_held_out_error, judge_trust
from dynident.report.replays import Replay, combine_joint_rms
from dynident.report.text import describe_rows, format_free_error

POINTS = 4000
"""Samples of a log that are drawn, besides extremes."""
ALL = "all joints"
SMALL = 6
"""Joints that are drawn of a log as finely; more of them together with fewer points each."""
FOLLOWED = 12
"""Parameters that are drawn over time: those that moved most."""
UNSETTLED = 5.0
"""Intervals of so many times the median one do not stretch the axes."""
COLOURS = tuple(colour for colour, dashed in LINES[1:] if not dashed)


def chart_columns(names: Sequence[str], columns: Mapping[str, Array], y: str) -> Chart:
    """Numbers side by side: dots of one colour a column, over names."""
    marks = tuple(
        Dots(np.arange(float(len(names))), np.asarray(values, dtype=float), colour, 5.0, label=name)
        for (name, values), colour in zip(columns.items(), cycle((BLUE, *COLOURS)), strict=False)
    )
    return Chart((name_places(names, (Rule(0.0, GREY), *marks), y, 180.0),), together=True)


def chart_log(joints: Mapping[str, bool], log: PlottedLog, points: int) -> Chart:
    """What was measured of joints, which slide or turn: positions above torques, over one time."""
    names = [label_joint(name, [*joints]) for name in joints]
    units = [("m", "N") if slides else ("rad", "Nm") for slides in joints.values()]
    panels = build_recording_panels(names, units, log, points)
    small = tuple(replace(panel, height=95.0) for panel in panels)
    stacked = len(panels) // len(names)
    return Chart(small, min(3, len(names)), shared=True, together=True, stacked=stacked)


def render_doctor_page(
    robot: str,
    reports: Sequence[Report],
    joints: Mapping[str, bool],
    logs: Sequence[PlottedLog],
) -> str:
    """What is wrong with logs, what repairs them, and what they hold of each joint."""
    every = [(report.log, found) for report in reports for found in report.findings]
    statements = [VerdictSentence("note", r.log, sign.what) for r in reports for sign in r.dead]
    statements += [VerdictSentence("bad", log, found.found, found.remedy) for log, found in every]
    beside = [(r.log, sign) for r in reports for sign in r.signs if sign not in r.dead]
    statements += [VerdictSentence("note", log, sign.what) for log, sign in beside]
    statements += [
        VerdictSentence("good", r.log, "no alternative hypothesis explains the log clearly better")
        for r in reports
        if not r.findings and not r.signs
    ]
    points = POINTS // (1 + len(logs) * len(joints) // SMALL)
    told = [(log, found) for log, found in every if found.before > 0.0]
    names = [f"{k}  {found.diagnosis}" for k, (_, found) in enumerate(told, start=1)]
    before, after = (
        np.array([getattr(found, which) for _, found in told]) for which in ("before", "after")
    )
    picture = (
        render_caption("Mean error of the joints as recorded and with each repair.")
        + render_chart(
            chart_columns(names, {"as recorded": before, "repaired": after}, "error [%]"),
            "Errors of each log before and after its repair",
        )
        if told
        else ""
    )
    table = build_column_table(
        "finding",
        names,
        [
            ("what", [f"{log}: {found.what}" for log, found in told]),
            ("as recorded [%]", [format_percent(value) for value in before]),
            ("repaired [%]", [format_percent(value) for value in after]),
        ],
        ("what",),
    )
    return render_document(
        robot,
        f"the doctor on {format_count(len(reports), 'log')}",
        statements,
        [
            PagePart("errors", "Errors", picture),
            PagePart("findings", "Findings", render_table(table) if told else ""),
            *(
                PagePart(
                    f"log{k}",
                    f"{log.name}, as recorded",
                    render_chart(
                        chart_log(joints, log, points), f"Signals of every joint in {log.name}"
                    ),
                )
                for k, log in enumerate(logs, start=1)
            ),
        ],
    )


def render_validation_page(
    fit: Result,
    logs: Sequence[tuple[ValidationFigures, Sequence[GeneralisedSamples]]],
    warnings: Sequence[str] = (),
) -> str:
    """How a result does on other logs: the samples are of those with torques."""
    statements, parts = [*judge_trust(fit)], []
    statements += [VerdictSentence("note", "Warning", warning) for warning in warnings]
    for k, (figures, samples) in enumerate(logs, start=1):
        if figures.entries:
            statements.insert(k - 1, judge_held_out_error(fit, figures))
        pictures = []
        for log in samples:
            nominal = fit.idim.nominal if fit.robot.has_nominal else None
            series = decompose_torques(fit.idim, fit.theta, nominal, log, fit.lowpass_hz, POINTS)
            series = replace(series, fitted=None)
            groups = list_torque_groups(fit.robot)
            chart = chart_all_torques(groups, series, fit.robot.joint_names)
            pictures.append(render_chart(chart, f"Torque of every joint along {figures.log}"))
        every = (*figures.entries, *figures.nominal)
        told = [{j.name: j.relative_percent for j in entry.joints} for entry in every]
        for entry, own in zip(every, told, strict=True):
            own[ALL] = entry.overall_percent
        known = {n for own in told for n, error in own.items() if math.isfinite(error)}
        names = [*dict.fromkeys(n for own in told for n in own if n in known and n != ALL), ALL]
        columns = [
            (f"{describe_rows(entry)} [%]", [format_percent(own.get(n, math.nan)) for n in names])
            for entry, own in zip(every, told, strict=True)
        ]
        sides = (("model", figures.entries), ("robot file", figures.nominal))
        over = [Group(title, len(entries)) for title, entries in sides if entries]
        errors = build_column_table("joint", names, columns)._replace(groups=(Group("", 1), *over))
        table = render_table(errors) if names[1:] else ""
        if figures.free:
            joints = fit.robot.joint_names
            horizons = {format_free_error(each)[0]: 1e3 * each.rms for each in figures.free}
            chart = chart_columns(joints, horizons, "rms [mrad or mm]")
            pictures.append(render_chart(chart, f"Errors of free simulations of {figures.log}"))
            shown = [format_free_error(each) for each in figures.free]
            free = build_column_table("free simulation [mrad or mm]", [*joints, "overall"], shown)
            table += render_table(free, "Restarted at these intervals.")
        parts.append(PagePart(f"log{k}", Path(figures.log).name, "".join(pictures) + table))
    return render_document(
        fit.robot.name,
        f"{format_count(len(logs), 'log')} beside the fit",
        statements,
        parts,
    )


def render_draws_page(fit: Result, draws: Draws, logs: Sequence[Calibration]) -> str:
    """Draws of a result: how wide they are, and how much of logs is inside their band."""
    statements = [
        VerdictSentence(
            "good", "Physically consistent",
            f"all of {len(draws)} draws; smallest pseudo-inertia eigenvalue {draws.margin:.2g}",
        ),
        *(
            VerdictSentence(
                "good" if np.mean(one.noise) > 0.9 else "note",
                f"{100.0 * np.mean(one.noise):.0f} % inside",
                f"of {one.log}: {one.what}s inside the 95 % band of the draws and what the model "
                "left of the fitted logs",
            )
            for one in logs
        ),
        *judge_trust(fit),
    ]  # fmt: skip
    pictures = [
        render_chart(
            chart_columns(
                one.names,
                {"draws alone": 100.0 * one.parameters, "with noise": 100.0 * one.noise},
                f"{one.log} inside [%]",
            ),
            f"How much of {one.log} is inside the draws' band",
        )
        for one in logs
    ]
    ranges = draws.ranges
    columns = [
        (key, [format_number(row[key], 4) for row in ranges.values()])
        for key in ("mean", "std", "low", "high")
    ]
    table = build_column_table("parameter", [*ranges], columns)
    if pictures:
        inside = (
            "Share of the samples inside the 95 % band of what the draws predict: alone, and with "
            "what the model left of the fitted logs."
        )
        pictures.insert(0, render_caption(inside))
    spread = "Standard deviation of the draws in per cent of their mean, the least first."
    return render_document(
        fit.robot.name,
        f"{len(draws)} draws, seed {draws.seed}, by {draws.way}",
        statements,
        [
            PagePart("inside", "Logs inside the band", "".join(pictures)),
            PagePart(
                "spread",
                "Spread of the draws",
                render_caption(spread)
                + render_chart(
                    Chart((build_spreads(ranges),)), "Spread of each parameter over the draws"
                ),
            ),
            PagePart("ranges", "Ranges", render_table(table)),
        ],
    )


def build_spreads(ranges: Mapping[str, Mapping[str, float]]) -> Panel:
    """Standard deviations of draws over their means, the least first, without those of nothing."""
    relative = {name: 100.0 * r["std"] / max(abs(r["mean"]), 1e-300) for name, r in ranges.items()}
    known = {name: value for name, value in relative.items() if 0.0 < value < 1e6}
    order = sorted(known, key=lambda name: known[name])
    spreads = np.array([known[name] for name in order])
    dots = Dots(np.arange(float(len(order))), spreads, BLUE, 4.0)
    return name_places(order, (dots,), "spread [%]", log=True)


def render_replays_page(
    robot: str, trust: Sequence[VerdictSentence], replays: Sequence[Replay]
) -> str:
    """Free simulations of logs in some engines, side by side."""
    statements, parts = [], []
    for k, each in enumerate(replays, start=1):
        milli = {name: 1e3 * rms for name, rms in each.columns.items()}
        overall = {name: combine_joint_rms(rms) for name, rms in milli.items()}
        words = ", ".join(f"{name} {format_number(value, 3)}" for name, value in overall.items())
        best = min(overall, key=lambda name: overall[name])
        level = "good" if best != "file" else "bad"
        statements.append(
            VerdictSentence(
                level, Path(each.log).name, f"rms of the positions [mrad or mm]: {words}"
            )
        )
        statements += [
            VerdictSentence("note", "Note", words) for words in (*each.notes, *each.warnings)
        ]
        table = build_column_table(
            "joint [mrad or mm]",
            each.joints,
            [(name, [format_number(v, 3) for v in rms]) for name, rms in milli.items()],
        )
        picture = render_caption(
            "Positions as measured, and as simulated from the first sample on; below, the one less "
            "the other. Then the root mean square of that by what was simulated."
        )
        moved = chart_all_positions(each.channels, each.motion)
        picture += render_chart(moved, f"Positions along {each.log}: measured and simulated")
        picture += render_chart(
            chart_columns(each.joints, milli, "rms [mrad or mm]"),
            f"Errors of free simulations of {each.log}",
        )
        parts.append(PagePart(f"log{k}", Path(each.log).name, picture + render_table(table)))
    title = f"free simulations of {format_count(len(replays), 'log')}"
    return render_document(robot, title, [*statements, *trust], parts)


def render_difference_page(found: Sequence[Difference]) -> str:
    """Results beside each other, or beside a robot file: what differs, and how surely."""
    statements, parts = [], []
    for k, each in enumerate(found, start=1):
        one, other = each.names
        pairs = [pair for pair in each.parameters if np.isfinite(pair.deviations)]
        pairs.sort(key=lambda pair: -abs(pair.deviations))
        test = each.test
        if test is not None:
            same = "rejected" if test.rejected else "not rejected"
            statements.append(
                VerdictSentence(
                    "note" if test.rejected else "good",
                    f"{one} and {other}",
                    f"that both have the same base parameters is {same} (p = {test.p_value:.2g})",
                )
            )
        if pairs and abs(pairs[0].deviations) > 3.0:
            worst = pairs[0]
            words = f"{worst.name} differs most, by {worst.deviations:+.1f} standard deviations"
            statements.append(VerdictSentence("note", f"{one} and {other}", words))
        statements += [VerdictSentence("note", "Note", words) for words in each.notes]
        shown = pairs[:40]
        marks: tuple[Mark, ...] = (
            Rule(0.0, GREY),
            *(Rule(at, RED, 0.7, True) for at in (-1.96, 1.96)),
            Dots(np.arange(float(len(shown))), np.array([p.deviations for p in shown]), BLUE, 5.0),
        )
        panel = name_places([pair.name for pair in shown], marks, "difference / std", 180.0)
        columns = [
            ("unit", [raise_powers(pair.unit) for pair in pairs]),
            (one, [format_number(pair.values[0], 4) for pair in pairs]),
            (other, [format_number(pair.values[1], 4) for pair in pairs]),
            (f"std of {one}", [format_number(pair.stds[0], 2) for pair in pairs]),
            (f"std of {other}", [format_number(pair.stds[1], 2) for pair in pairs]),
            ("difference / std", [f"{pair.deviations:+.1f}" for pair in pairs]),
        ]
        names = [pair.name for pair in pairs]
        table = build_column_table("parameter", names, columns, ("unit",))
        body = render_facts(describe_sides(each))
        if pairs:
            body += render_chart(Chart((panel,)), "Differences in their standard deviations")
            body += render_table(table)
        parts.append(PagePart(f"pair{k}", f"{one} and {other}", body))
    calm = VerdictSentence("good", "No difference", "beyond three standard deviations")
    robot = found[0].one.robot.name
    return render_document(robot, "comparison of stored results", statements or [calm], parts)


def render_track_page(
    base: BaseParameters,
    log: str,
    time: Array,
    beta: Array,
    std: Array,
    load: Array,
    events: Sequence[tuple[float, str]],
) -> str:
    """Parameters and load along a log.

    Parameters
    ----------
    base : BaseParameters
        What beta are.
    time : ndarray, shape (instants,)
        [s]
    beta, std : ndarray, shape (instants, parameters)
    load : ndarray, shape (instants, 2)
        Mass and its standard deviation [kg]; NaN of none.
    events : sequence of (float, str)
        When what was noticed [s].
    """
    statements = [VerdictSentence("note", f"{at:.2f} s", words) for at, words in events]
    if np.isfinite(load[-1:, 0]).any():
        words = f"{load[-1, 0]:.3g} ± {1.96 * load[-1, 1]:.2g} kg at the end"
        statements.insert(0, VerdictSentence("good", "Load", words))
    statements = statements or [VerdictSentence("good", "No change", "of the load was noticed")]
    moved = np.ptp(beta, axis=0) / np.maximum(np.median(std, axis=0), 1e-300)
    most = np.argsort(-moved)[:FOLLOWED]

    def follow(title: str, unit: str, value: Array, error: Array) -> Panel:
        known = error <= UNSETTLED * np.nanmedian(error)
        sides = [value + sign * 1.96 * error for sign in (-1.0, 1.0)]
        low, high = float(np.min(sides[0][known])), float(np.max(sides[1][known]))
        # what is far outside has no place among the numbers of a path
        far = (2.0 * low - high, 2.0 * high - low)
        marks: tuple[Mark, ...] = (
            *(Curve(time, np.clip(side, *far), GREY, 0.7) for side in sides),
            Curve(time, np.clip(value, *far), BLUE, 1.4),
            *(Rule(at, RED, 0.7, True, standing=True) for at, _ in events),
        )
        return Panel(marks, title, "time [s]", unit, 110.0, flush=True, y_range=(low, high))

    names = base.names
    units = [raise_powers(find_parameter_unit(base.idim, int(kept))) for kept in base.kept]
    panels = [follow("load", "[kg]", load[:, 0], load[:, 1])] if np.isfinite(load).any() else []
    panels += [follow(names[k], f"[{units[k]}]", beta[:, k], std[:, k]) for k in most.tolist()]
    last = [
        ("unit", units),
        ("value", [format_with_error(*both) for both in zip(beta[-1], std[-1], strict=True)]),
    ]
    caption = (
        "Blue: estimates; grey: 95 % intervals; red: when another load was noticed. Of all "
        "parameters those that moved most, by their standard deviations. First estimates, whose "
        "intervals are much wider than those after them, go beyond the axes."
    )
    chart = Chart(tuple(panels), columns=3, shared=True, together=False)
    digits = "In brackets: standard deviations in units of the last digits."
    table = render_table(build_column_table("parameter", names, last, ("unit",)), digits)
    return render_document(
        base.idim.robot.name,
        f"parameters along {log}, {time[-1] - time[0]:.4g} s",
        statements,
        [
            PagePart(
                "time", "Over time", render_caption(caption) + render_chart(chart, "Over time")
            ),
            PagePart("last", "At the end", table),
        ],
    )
