"""A fit as a notebook shows it."""

from __future__ import annotations

from dynident.core.text import format_count
from dynident.core.words import format_percent
from dynident.fit.parameters import list_base_parameters
from dynident.fit.result import Result
from dynident.plots.card import render_card
from dynident.report.html import (
    ERROR_TITLES,
    LEVELS,
    build_drive_table,
    build_error_table,
    build_fitted_table,
    build_free_error_table,
    build_link_table,
    build_parameter_table,
)


def render_fit_card(result: Result) -> str:
    """The verdict, the errors, and tables of what was found, folded."""
    rows = list_base_parameters(result)
    tables = (
        ("Free simulation [mrad or mm]", build_free_error_table(result)),
        (ERROR_TITLES[result.torque_source], build_error_table(result)),
        ("Links", build_link_table(result)),
        ("Drives", build_drive_table(result)),
        ("Fitted", build_fitted_table(result)),
        (format_count(len(rows), "base parameter"), build_parameter_table(result)),
    )
    joints = format_count(result.robot.n, "joint")
    title = f"{result.robot.name}, {joints}, by {result.method}: {result.verdict.state}"
    lines = [describe_first_reason(result), describe_errors(result)]
    told = [line for line in lines if line]
    return render_card(title, told, tables, result.warnings, LEVELS[result.verdict.state])


def describe_first_reason(result: Result) -> str:
    """The gravest reason of the verdict, and how many more there are."""
    reasons = result.verdict.reasons
    if not reasons:
        return result.verdict.reserve
    more = f"; and {format_count(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return f"{reasons[0].words}{more}"


def describe_errors(result: Result) -> str:
    """Errors over all joints in a line."""
    if result.encoder_only:
        return ""
    last = result.identification[-1]
    told = [f"{format_percent(last.overall_percent)} % on {last.rows} of the fitted logs"]
    told += [
        f"{format_percent(each.entries[-1].overall_percent)} % on {each.log} (held out)"
        for each in result.validation
    ]
    return f"torque error {', '.join(told)}"
