"""The result as plain text of at most 80 columns, and the words that the page shares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dynident.core.inertia import to_com
from dynident.core.text import format_count
from dynident.core.words import (
    LABEL,
    WIDTH,
    format_common_values,
    format_entry,
    format_number,
    format_one_sided,
    format_percent,
    format_table,
    format_with_error,
    shorten_line,
)
from dynident.dynamics.equations import Observability
from dynident.dynamics.units import convert_unit_to_joint, find_parameter_unit
from dynident.fit.figures import ALL_SAMPLES, MOVING, FitFigure, JointError, compute_effort_percent
from dynident.fit.floor import describe_floor
from dynident.fit.parameters import (
    find_body_errors,
    list_base_parameters,
    list_drive_errors,
    list_file_parameters,
    list_regrouped_drives,
    list_sensor_parameters,
)
from dynident.regression.rows import FREE_OF
from dynident.regression.statistics import TestResult

if TYPE_CHECKING:
    from dynident.estimators.closed_loop import FreeError, SimulatedFigure
    from dynident.fit.result import Result


TORQUE_ERRORS = {"measured": "torque error %", "law": "law's torque %"}
"""Errors of torques, by what they are of: one that a log has, or that its law commands."""
FEW = 3
"""Warnings and reasons that are printed without being asked for."""
MANY = 12
"""Base parameters that are printed only when asked for."""
MORE = "--full or summary(full=True)"
"""What prints the others."""


Column = tuple[str, list[str]]
"""A title and the text under it."""


class ErrorColumn(NamedTuple):
    """Torque errors of one model on one set of rows, with a short and a full name."""

    key: str
    title: str
    figure: FitFigure

    def format_errors(self, names: Sequence[str], efforts: Mapping[str, float]) -> list[Column]:
        """In %, absolute, and in % of efforts if any, by name and over all; dashes without rows."""
        known = {joint.name: joint for joint in self.figure.joints}
        own = [known.get(name, JointError(name, np.nan, np.nan)) for name in names]
        percents = [*(each.relative_percent for each in own), self.figure.overall_percent]
        shares = [format_percent(compute_effort_percent(each, efforts)) for each in own]
        found = [
            ("%", [format_percent(each) for each in percents]),
            ("rmse", [*(format_number(each.rmse, 3) for each in own), ""]),
            ("effort %", [*shares, ""]),
        ]
        return found if efforts else found[:2]


def list_free_errors(result: Result) -> list[tuple[str, tuple[FreeError, ...]]]:
    """Errors of free simulations by log, held-out ones first."""
    return [
        *((f"held-out {each.log}", each.free) for each in result.validation),
        *((each.log, each.free) for each in result.simulated),
    ]


def format_free_error(error: FreeError) -> tuple[str, list[str]]:
    """A horizon, and the errors of the joints and of all [mrad or mm]."""
    whole = "unhindered" if error.without else "whole"
    horizon = whole if error.horizon is None else f"{error.horizon:g} s"
    milli = [*(1e3 * rms for rms in error.rms), error.overall_milli]
    return horizon, [format_number(value, 3) for value in milli]


def format_free_errors(
    names: Sequence[str], logs: Sequence[tuple[str, Sequence[FreeError]]]
) -> list[str]:
    """Errors of free simulations, log by log, held-out ones first."""
    lines = []
    for log, errors in logs:
        if not errors:
            continue
        columns = [format_free_error(each) for each in errors]
        lines += format_table("free sim. mrad", [*names, "overall"], columns)
        lines += format_entry("  of", f"{log}: rms of the positions, restarted at these intervals")
        for own in (own for each in errors for own in each.without):
            lines += format_entry("  without", own.words)
    return lines


def format_fitted_values(result: Result, full: bool) -> list[str]:
    """The loop that was fitted, in full the drives too; result.json has the links as well."""
    found = result.estimate.fitted
    if found is None:
        return []
    elsewhere = {*result.idim.names[: result.idim.inertial if full else None]}
    own = [k for k, name in enumerate(found.names) if name not in elsewhere]
    columns = [
        ("value", [format_number(found.values[k], 4) for k in own]),
        ("std", [format_number(found.std[k], 2) for k in own]),
        ("unit", [found.units[k] for k in own]),
    ]
    return format_table("fitted", [found.names[k] for k in own], columns) if own else []


def describe_row_count(result: Result) -> str:
    """How many rows were fitted."""
    rows = [group.rows for group in result.residuals]
    if len(rows) <= result.robot.n:
        return f"{sum(rows)} fitted, {format_common_values(rows)} a joint"
    some = [count for count in rows if count]
    span = f"{min(some)}" if min(some) == max(some) else f"{min(some)} to {max(some)}"
    return f"{sum(rows)} fitted, {span} in each of {len(some)} groups"


def describe_excitation(result: Result) -> str:
    """Rank and condition number."""
    return (
        f"rank {result.rank} of {result.estimated_count}, condition number "
        f"{format_number(result.condition_number, 3)} (weighted, columns of unit length)"
    )


def describe_consistency(result: Result) -> str:
    """Whether the model is physically consistent, and why not where it is not."""
    eigenvalue = result.smallest_eigenvalue
    if result.phi is None or eigenvalue is None:
        return f"not determined: {result.bare} gives base parameters only"
    if result.consistent:
        return (
            "yes: every link's pseudo-inertia is positive definite (smallest eigenvalue "
            f"{format_number(eigenvalue, 3)}), rotor inertias and friction are positive"
        )
    odd = ", ".join(result.inconsistencies)
    return f"no: {odd} (smallest eigenvalue {format_number(eigenvalue, 3)})"


def describe_certificate(result: Result) -> str:
    """The solver's certificate."""
    proof = result.estimate.certificate
    return proof.words if proof else "none: this method solves no cone problem"


def describe_simulation(figure: SimulatedFigure) -> str:
    """How far the simulated closed loop is from a log."""
    position = " ".join(format_percent(p) for p in figure.position_percent)
    torque = " ".join(format_percent(p) for p in figure.torque_percent)
    words = f"of {figure.log}: position error {position} %"
    if figure.torque == "measured":
        return f"{words}, torque error {torque} %"
    return words if figure.free else f"{words}, error of the law's torque {torque} %"


def describe_test_result(test: TestResult) -> str:
    """A test's outcome in words."""
    verdict = "rejected" if test.rejected else "not rejected"
    chance = f"p = {test.p_value:.2g}" if test.p_value >= 1e-4 else "p < 0.0001"
    words = f"{test.null}: {verdict} ({chance}, {test.distribution} = "
    words += f"{format_number(test.statistic, 3)})"
    return f"{words}; {test.remark}" if test.remark else words


def describe_timings(result: Result) -> str:
    """Seconds in all and per stage."""
    stages = [f"{k} {v:.3f}" for k, v in result.timings.items() if k != "total"]
    total = result.timings.get("total", sum(result.timings.values()))
    return f"{total:.3f} s" + (f" ({', '.join(stages)})" if stages else "")


def list_error_names(columns: Sequence[ErrorColumn]) -> list[str]:
    """What errors are of, where any of the columns has rows: a floating base's wrench, joints."""
    return list(
        dict.fromkeys(
            joint.name
            for each in columns
            for joint in each.figure.joints
            if np.isfinite(joint.rmse) or np.isfinite(joint.relative_percent)
        )
    )


def build_error_columns(result: Result) -> tuple[ErrorColumn, ...]:
    """All torque errors: on the fitted logs, then on each held-out log; none of encoders alone."""
    if result.encoder_only:
        return ()
    columns = [label_fit_figure("", "fitted logs", f) for f in result.identification]
    columns += label_headlines("nominal", "fitted logs, robot file", result.nominal)
    for k, log in enumerate(result.validation, start=1):
        columns += label_headlines(f"V{k}", f"held-out {log.log}", log.entries)
        columns += label_headlines(f"V{k} nom.", f"held-out {log.log}, robot file", log.nominal)
    return tuple(columns)


def list_floor_words(result: Result) -> list[str]:
    """What of the torques no model explains, where torques have errors at all."""
    measured = result.torque_source == "measured" and not result.of_factors
    return describe_floor(result.floor, result.robot) if measured else []


def label_headlines(key: str, title: str, figures: Sequence[FitFigure]) -> list[ErrorColumn]:
    """The figure of all samples, and of moving ones; result.json has the others too."""
    best = choose_headline(figures)
    told = [] if best is None else [best]
    told += [figure for figure in figures if figure.rows == MOVING]
    return [label_fit_figure(key, title, figure) for figure in told]


def label_fit_figure(key: str, title: str, figure: FitFigure) -> ErrorColumn:
    """An error column named after its model, its log and its rows."""
    rows = figure.rows.removesuffix(" samples")
    short = (key or rows) if figure.rows == ALL_SAMPLES else f"{key} {rows}".strip()
    title = f"{title}, {describe_rows(figure)}".removeprefix(", ")
    return ErrorColumn(short, title, merge_contact_sets(figure))


def merge_contact_sets(figure: FitFigure) -> FitFigure:
    """A figure with one error a set of unmeasured contacts, whose combinations it has by number.

    They have as many rows each. Contacts are called by what tells their names apart.
    """
    sets: dict[str, list[JointError]] = {}
    for joint in figure.joints:
        if joint.name.startswith(FREE_OF):
            sets.setdefault(joint.name.removeprefix(FREE_OF).rpartition(" ")[0], []).append(joint)
    if not sets:
        return figure
    contacts = {contact for names in sets for contact in names.split("+")}
    shared = find_common_end(contacts) if len(contacts) > 1 else ""
    joints = [joint for joint in figure.joints if not joint.name.startswith(FREE_OF)]
    for names, errors in sets.items():
        called = "+".join(contact.removesuffix(shared) for contact in names.split("+"))
        rms = np.array([joint.rmse for joint in errors])
        percents = np.array([joint.relative_percent for joint in errors])
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(rms > 0.0, 100.0 * rms / percents, 0.0)
            overall = 100.0 * np.sqrt(np.sum(rms**2) / np.sum(size**2))
        joints.append(JointError(f"{FREE_OF}{called}", float(overall), np.nan))
    return replace(figure, joints=tuple(joints))


def find_common_end(names: Iterable[str]) -> str:
    """What all of some names end with, from a mark between words on."""
    letters = zip(*(name[::-1] for name in names), strict=False)
    end = "".join(a for a, *_ in takewhile(lambda each: len(set(each)) == 1, letters))[::-1]
    mark = next((k for k, letter in enumerate(end) if not letter.isalnum()), len(end))
    return end[mark:]


def describe_rows(figure: FitFigure) -> str:
    """Which rows an error is of."""
    if figure.rows == ALL_SAMPLES:
        return f"all samples below {figure.lowpass_hz:g} Hz"
    if figure.rows == MOVING:
        return f"moving samples below {figure.lowpass_hz:g} Hz"
    return "filtered, decimated rows"


def choose_headline(figures: Sequence[FitFigure]) -> FitFigure | None:
    """The figure of all samples, where they show any torque, else the first."""
    every = [f for f in figures if f.rows == ALL_SAMPLES and np.isfinite(f.overall_percent)]
    return next(iter([*every, *figures]), None)


def tabulate_drives(result: Result) -> list[Column]:
    """The drives' parameters by symbol with their standard deviations, joint by joint, as text.

    A dash stands where the value is regrouped, nothing where a drive has no such parameter, the
    interval alone where it is at a bound.
    """
    drives = [result.drive_parameters(j) for j in range(result.robot.n)]
    errors, sided = list_drive_errors(result), result.estimate.bounded
    ends = {own.name: format_one_sided(own.low, own.high) for own in sided}
    columns: dict[str, list[str]] = {symbol: [] for own in drives for symbol in own}
    for j, (values, std) in enumerate(zip(drives, errors, strict=True)):
        for symbol, cells in columns.items():
            told = format_with_error(values[symbol], std[symbol]) if symbol in values else ""
            cells.append(ends.get(f"{symbol}{j + 1}", told))
    return list(columns.items())


def find_drive_units(result: Result) -> dict[str, str]:
    """Unit of each symbol of the drives; of turning and sliding joints both."""
    idim, found = result.idim, dict[str, dict[str, None]]()
    for index in range(idim.inertial, len(idim.parameters)):
        found.setdefault(idim.parameters[index].symbol, {})[find_parameter_unit(idim, index)] = None
    return {symbol: " or ".join(units) for symbol, units in found.items()}


def format_drive_units(*results: Result) -> list[str]:
    """Units of a table of drives, ``fc, off [Nm]``."""
    shared: dict[str, dict[str, None]] = {}
    for result in results:
        units = find_drive_units(result)
        for symbol, _ in tabulate_drives(result):
            shared.setdefault(units[symbol], {})[symbol] = None
    words = "; ".join(f"{', '.join(symbols)} [{unit}]" for unit, symbols in shared.items())
    return format_entry("  units", words)


def list_fitted_logs(result: Result) -> list[str]:
    """Names of the logs that were fitted."""
    return [log.name for log in result.log_words if log.use == "identify"]


def format_header(result: Result, full: bool) -> list[str]:
    """What was identified, from what, and how."""
    logs = [log for log in result.log_words if log.use == "identify"]
    told = logs if full or len(logs) <= FEW else logs[:1]
    more = f", and {len(logs) - len(told)} more" if len(told) < len(logs) else ""
    joints = format_count(result.robot.n, "joint")
    friction = re.sub(",(?! )", ", ", result.idim.friction)  # names of joints break between lines
    lines = [
        *format_entry("robot", f"{result.robot.name}, {joints}, friction {friction}"),
        *format_entry("method", f"{result.method}: {result.estimate.message}"),
        *format_entry("logs", ", ".join(log.words for log in told) + more),
        *(format_entry("rows", describe_row_count(result)) if full else []),
        *format_equations(result),
    ]
    for words in dict.fromkeys(log.cutoffs for log in logs if full):
        lines += format_entry("cutoffs", words)
    for words in describe_decisions(result, full):
        lines += format_entry("decided", words)
    if full:
        lines += format_entry("prior", result.estimate.prior or "none")
        lines += format_entry("covariance", result.estimate.covariance.name)
    return lines


def describe_decisions(result: Result, full: bool = True) -> list[str]:
    """What the logs decided that the study left open, and what each decision gained."""
    decided = result.settings.get("decided", ())
    found = []
    for each in (each for each in decided if each["gain_percent"] > 0.0):
        value = "" if "," in each["value"] else f" {each['value']}"
        gain = f"the cross-validation error is {each['gain_percent']:.2g} % lower"
        found.append(f"{each['what']}{value}: {each['words']}; {gain}")
    usual = [each for each in decided if not each["gain_percent"]]
    if usual and full:
        told = ", ".join(f"{each['what']} {each['value']}" for each in usual)
        found.append(f"defaults kept: {told} (no alternative is clearly better)")
    elif usual:
        found.append(f"defaults kept: {', '.join(each['what'] for each in usual)}")
    return found


def format_equations(result: Result) -> list[str]:
    """Which equations the logs state, what each kind adds, and what bears the robot."""
    base = result.base
    if base.all_stated:
        return []
    kinds = [describe_observed(each, result) for each in base.observed]
    told = [f"{kinds[0]}: {base.counts[0]} base parameters"]
    told += [
        f"{kind} adds {after - before}"
        for kind, before, after in zip(kinds[1:], base.counts, base.counts[1:], strict=False)
    ]
    lines = format_entry("equations", "; ".join(told))
    if result.phi is not None and result.robot.floating:
        mass, file = (
            float(np.sum(phi[: result.robot.bodies, 0]))
            for phi in (result.phi, result.robot.nominal)
        )
        words = [f"model {format_number(mass, 4)} kg", f"robot file {format_number(file, 4)} kg"]
        words += [
            f"contacts of {log} {format_number(kg, 4)} kg while it stands"
            for log, kg in result.contact_loads
        ]
        lines += format_entry("weight", ", ".join(words))
    return lines


def describe_observed(observed: Observability, result: Result) -> str:
    """A kind of equations in words."""
    robot = result.robot
    words = observed.equations + ", base fixed" * observed.still + ", poses held" * observed.static
    if observed.locked:
        names = [robot.joint_names[joint] for joint, _ in observed.locked]
        words += f", {', '.join(names)} locked"
    felt = [gauge for gauge, _ in robot.sensed if gauge.name not in observed.missing]
    for kind in dict.fromkeys(gauge.kind for gauge in felt if observed.equations != "joints"):
        names = sorted(gauge.name for gauge in felt if gauge.kind == kind)
        words += f", {kind} at {', '.join(names)}"
    if observed.equations == "null-space":
        sets = ["+".join(each) or "no contact" for each in observed.free]
        words += f" of {', '.join(sets)}"
    return words


def format_verdict(result: Result, full: bool) -> list[str]:
    """What repairs the log, whether to trust the result, and what decides that."""
    words, (first, *rest) = result.verdict.words, result.verdict.reasons or (None,)
    if first and rest and not full:
        more = format_count(len(rest), "more reason")
        words = f"{first.state}: {first.words}; {more} with {MORE}"
    told = [("finding", each.words) for each in result.findings] + [("verdict", words)]
    shown = result.verdict.reasons if full else result.verdict.reasons[:1]
    known = {"", *(each.remedy for each in result.findings)}
    advice = dict.fromkeys(reason.advice for reason in shown if reason.advice not in known)
    told += [("remark", each) for each in result.verdict.remarks if full]
    told += [("to do", each) for each in advice]
    return [line for entry in told for line in format_entry(*entry)]


def format_trust(result: Result) -> str:
    """The verdict alone."""
    return "\n".join(format_entry("verdict", result.verdict.words))


def format_base_parameters(result: Result, full: bool) -> list[str]:
    """The base parameters; in short those of a method that gives nothing else, unless many."""
    every, files = list_base_parameters(result), list_file_parameters(result)
    if not full and (result.phi is not None or len(every) > MANY):
        return []
    rows = [row for row in every if row.essential]
    note = format_count(len(every), "base parameter")
    if len(rows) < len(every):
        note += f", {len(every) - len(rows)} of them eliminated"
    columns = [
        ("value", [format_number(row.value, 5) for row in rows]),
        ("std", [format_number(row.std, 3) for row in rows]),
        ("std %", [format_percent(row.relative_percent) for row in rows]),
        ("95 % from", [format_number(row.low) for row in rows]),
        ("to", [format_number(row.high) for row in rows]),
        ("unit", [file.unit for row, file in zip(every, files, strict=True) if row.essential]),
    ]
    return [*format_table("base parameter", [row.name for row in rows], columns), note]


def format_drives(result: Result) -> list[str]:
    """Rotor inertia and friction of each drive."""
    columns = tabulate_drives(result)
    if not columns:
        return []
    lines = format_table("drive", result.robot.joint_names, columns) + format_drive_units(result)
    if any(cell.startswith("<") for _, cells in columns for cell in cells):
        lines += format_entry("  <", "at its bound of zero; where its 95 % interval ends")
    regrouped = "; ".join(list_regrouped_drives(result))
    return lines + (format_entry("  regrouped", regrouped) if regrouped else [])


def tabulate_shapes(result: Result) -> tuple[Sequence[str], list[Column]]:
    """Parameters that the torque is not linear in; a dash where one was held."""
    found = result.estimate.shape
    if found is None:
        return (), []
    units = [
        convert_unit_to_joint(each.bounds.unit, result.robot, each.parameter.number)
        for each in result.idim.shape_parameters
    ]
    return found.names, [
        ("value", [format_number(value, 4) for value in found.values]),
        ("std", ["-" if np.isnan(std) else format_number(std, 2) for std in found.std]),
        ("unit", units),
    ]


def tabulate_sensors(result: Result) -> tuple[Sequence[str], list[Column]]:
    """What was estimated of sensors of forces: names, and columns of text."""
    rows = list_sensor_parameters(result)
    return [row.name for row in rows], [
        ("value", [format_number(row.value, 4) for row in rows]),
        ("std", [format_number(row.std, 2) for row in rows]),
        ("unit", [row.unit for row in rows]),
    ]


def tabulate_springs(result: Result) -> tuple[Sequence[str], list[Column]]:
    """Springs in the joints, and held-out positions of their links: names, and columns of text."""
    rows, held = result.springs, [log for own in result.springs for log in own.held_out]
    columns = [
        ("K", [format_number(own.stiffness, 4) for own in rows]),
        ("1/K", [format_number(1e6 * own.compliance, 3) for own in rows]),
        ("95 % from", [format_number(1e6 * own.interval[0], 3) for own in rows]),
        ("to", [format_number(1e6 * own.interval[1], 3) for own in rows]),
    ]
    wide = any(own.width_interval for own in rows)
    for k, log in enumerate(dict.fromkeys(log.log for log in held), 1):
        every = [[each for each in own.held_out if each.log == log] for own in rows]
        titles = [(f"V{k}", "spring"), ("stiff", "stiff"), ("plain", "plain")]
        for title, error in titles + [("linear", "linear")] * wide:
            errors = [getattr(each[0], error) if each else None for each in every]
            told = ["" if own is None else format_number(1e3 * own, 3) for own in errors]
            columns.append((title, told))
    columns.append(("found", ["yes" if own.supported else "no" for own in rows]))
    if wide:
        ends = [own.width_interval or (None, None) for own in rows]
        for title, numbers in (
            ("width", [own.width if own.width_interval else None for own in rows]),
            ("from", [low for low, _ in ends]),
            ("to", [high for _, high in ends]),
        ):
            shown = ["" if each is None else format_number(1e6 * each, 3) for each in numbers]
            columns.append((title, shown))
        columns.append(("hysteresis", ["yes" if own.hysteresis else "no" for own in rows]))
    return [own.joint for own in rows], columns


def tabulate_bodies(result: Result) -> list[Column]:
    """Mass, the file's, and centre of mass of each body with standard deviations, as text."""
    if result.phi is None:
        return []
    file = [format_number(phi[0] if phi[0] > 0.0 else None, 3) for phi in result.robot.nominal]
    both = list(zip(result.phi, find_body_errors(result), strict=True))
    values = [((phi[0], *to_com(phi)[1]), std) for phi, std in both]
    columns = [
        (title, [format_with_error(value[k], std[k]) for value, std in values])
        for k, title in enumerate(("mass", "x", "y", "z"))
    ]
    return [columns[0], ("file", file), *columns[1:]]


def format_links(result: Result) -> list[str]:
    """Mass and centre of mass of each link, and what of it the logs tell, not the file."""
    columns, shares = tabulate_bodies(result), result.estimate.informed
    if not columns:
        return []
    words = "standard deviations of the last digits; mass [kg], centre of mass [m]"
    if shares is not None:
        words += "; %: of mass, centre and inertia, from the logs"
        columns += [
            (part, ["-" if np.isnan(x) else f"{100.0 * x:.0f}" for x in shares[:, k]])
            for k, part in enumerate(("m %", "c %", "I %"))
        ]
    return [*format_table("link", result.robot.links, columns), *format_entry("  (12)", words)]


def format_torque_errors(
    columns: Sequence[ErrorColumn], torque: str, efforts: Mapping[str, float] = {}
) -> list[str]:
    """Torque errors per joint and overall, in % of some efforts too, and what the columns are."""
    if not columns:
        return []
    names = list_error_names(columns)
    best = next((c for c in columns if c.figure.rows == ALL_SAMPLES), columns[0])
    told = [(each.key, each.format_errors(names, {})[0][1]) for each in columns]
    told += best.format_errors(names, efforts)[1:]
    lines = format_table(TORQUE_ERRORS[torque], [*names, "overall"], told)
    for column in columns:
        lines += format_entry(f"  {column.key}", column.title)
    words = "[Nm or N]; effort %: over the file's effort" if efforts else "[Nm or N]"
    return lines + format_entry("  rmse", f"{words}, {best.title}")


def format_fit_figures(
    entries: Sequence[FitFigure], nominal: Sequence[FitFigure], torque: str = "measured"
) -> str:
    """Torque errors of a model, and of the robot file's inertials, on one log."""
    columns = [label_fit_figure("", "", f) for f in entries]
    columns += [label_fit_figure("nominal", "robot file", f) for f in nominal]
    return "\n".join(format_torque_errors(columns, torque))


def format_quality(result: Result, full: bool) -> list[str]:
    """Excitation, consistency, certificate, constraints, warnings and time; the first in short."""
    estimate, warnings = result.estimate, list(result.warnings)
    lines = format_entry("consistent", describe_consistency(result))
    for figure in result.simulated if full or not result.encoder_only else ():
        lines += format_entry("simulation", describe_simulation(figure))
    if full:
        lines += format_entry("excitation", describe_excitation(result))
        for test in estimate.tests:
            lines += format_entry("test", describe_test_result(test))
        for words in estimate.describe_gyrations():
            lines += format_entry("gyration", words)
        if estimate.certificate is not None:
            lines += format_entry("certificate", describe_certificate(result))
            lines += format_entry("active", ", ".join(estimate.active) or "no constraint")
        if estimate.restriction is not None:
            lines += format_entry("restriction", estimate.restriction.verdict)
    for warning in warnings if full else warnings[:FEW]:
        short = warning if full else shorten_line(warning, WIDTH - LABEL)
        lines += format_entry("warning", short)
    if not full and len(warnings) > FEW:
        rest = format_count(len(warnings) - FEW, "more warning")
        lines += format_entry("warning", f"{rest} with {MORE}")
    return lines + (format_entry("time", describe_timings(result)) if full else [])
