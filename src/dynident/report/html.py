"""The result as one page that needs nothing else: tables, figures and a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from dynident.core.inertia import find_smallest_eigenvalue, to_com
from dynident.core.schema import replace_file_names
from dynident.core.text import format_count
from dynident.core.words import (
    format_common_values,
    format_number,
    format_percent,
    format_with_error,
    raise_powers,
)
from dynident.estimators.closed_loop import choose_judged_error
from dynident.fit.comparison import (
    LEGEND,
    Candidate,
    Comparison,
    describe_held_out_blocks,
    format_comparison_columns,
    format_joint_columns,
    list_comparison_notes,
)
from dynident.fit.figures import list_efforts
from dynident.fit.ground import find_ground_support
from dynident.fit.parameters import (
    BaseRow,
    find_body_errors,
    list_base_parameters,
    list_correlated_pairs,
    list_file_parameters,
    list_regrouped_drives,
)
from dynident.fit.residuals import is_any_not_white
from dynident.fit.result import Result, ValidationFigures
from dynident.fit.verdict import STATES
from dynident.plots.document import (
    Group,
    PagePart,
    PageRow,
    PageTable,
    VerdictSentence,
    build_column_table,
    render_caption,
    render_document,
    render_facts,
    render_table,
)
from dynident.plots.friction import chart_friction
from dynident.plots.ground import chart_contact_forces, chart_footholds, chart_stances
from dynident.plots.page import render_chart
from dynident.regression.rows import list_torque_groups
from dynident.regression.statistics import SIGNIFICANCE
from dynident.report.text import (
    build_error_columns,
    choose_headline,
    describe_consistency,
    describe_decisions,
    describe_excitation,
    describe_row_count,
    describe_rows,
    describe_simulation,
    describe_test_result,
    describe_timings,
    find_drive_units,
    format_free_error,
    list_error_names,
    list_fitted_logs,
    list_floor_words,
    list_free_errors,
    tabulate_drives,
)

LITERATURE = "std, Ardiani eq. (9)"
"""By the formula of Ardiani et al. (2024)."""
NAMED = 8
"""Groups of rows that a statement names."""
GENERALISES = 1.5
"""Held-out error over fitted error up to which the page does not raise a doubt."""
LEVELS = dict(zip(STATES, ("good", "note", "bad"), strict=True))
"""Of statements about states of the verdict."""
ERROR_TITLES = {"measured": "Torque errors", "law": "Law’s torque errors"}
"""By what the torques of the logs are."""
POINTS = 2000
"""Samples of contact forces that are drawn."""
ROUNDING = 1e-15
PAIRS = 12
"""Of parameters whose correlation is told."""
FORCES = "Contact forces over time, and their sum against the weight"
STANCES = "When contacts were loaded"
FOOTHOLDS = "Path of the base and footholds from above"
"""What charts show."""
INERTIA = ("xx", "xy", "yy", "xz", "yz", "zz")
"""Entries of its lower triangle, row by row."""


def render_comparison_page(found: Comparison) -> str:
    """A comparison as a self-contained page."""
    own = [found.candidates[k] for k in found.members(found.choice.method)]
    methods = dict.fromkeys(each.method for each in found.candidates)
    models = ""
    for method in methods:
        members = found.members(method)
        columns = format_comparison_columns(found, members)
        shown = [found.candidates[k] for k in members]
        table = build_candidate_table(found, method, shown, columns, ("verdict",))
        models += render_table(table)
    notes = list_comparison_notes(found)
    chart = chart_friction(
        list_torque_groups(found.robot.bare)[found.robot.dof - found.robot.n :],
        found.choice.series,
        {each.friction: each.series for each in own},
    )
    return render_document(
        found.robot.name,
        f"methods and friction models compared on {describe_held_out_blocks(found)}",
        [
            VerdictSentence(
                "good" if each.friction == found.choice.friction else "note",
                each.joint or "All joints",
                f"{each.friction} by {each.method}: {each.reason}",
            )
            for each in found.recommendations
        ],
        [
            PagePart(
                "models",
                "Methods and friction models",
                models + render_caption(LEGEND) + (render_facts(notes) if notes else ""),
            ),
            PagePart(
                "joints",
                "Held-out errors of the joints",
                render_table(
                    build_candidate_table(found, "friction", own, format_joint_columns(found, own)),
                    f"By {found.choice.method}, in per cent of the joint’s torque, ± one standard "
                    "error over the blocks. Bold: what is recommended for all joints.",
                ),
            ),
            PagePart(
                "friction",
                "Friction",
                render_caption(
                    f"Dots: measured torque less that of the rigid bodies of "
                    f"{found.choice.friction}, by {found.choice.method}. Orange: the motor drives "
                    "its load; blue: the load drives the motor; grey: the load is less than in "
                    "half of the samples. Lines: means of each model’s friction over samples of "
                    "like speed. The strip on the axis stands out more where more samples have "
                    "that speed. Where joints share a drive, friction depends on the speed of both."
                )
                + render_chart(
                    chart, "Friction of each joint against its speed: measured, and every model"
                ),
            ),
        ],
    )


def build_candidate_table(
    found: Comparison,
    stub: str,
    own: Sequence[Candidate],
    columns: Sequence[tuple[str, Sequence[str]]],
    words: tuple[str, ...] = (),
) -> PageTable:
    """Friction models and what is told of them, the chosen one marked."""
    table = build_column_table(stub, [each.friction for each in own], columns, words)
    rows = zip(table.rows, own, strict=True)
    return table._replace(
        rows=tuple(PageRow(row.cells, "total" * (each is found.choice)) for row, each in rows)
    )


# ----------------------------------------------------------------------------- verdict


def list_result_statements(result: Result) -> tuple[VerdictSentence, ...]:
    """What the result is worth, in sentences."""
    statements = [*judge_trust(result), judge_consistency(result)]
    if result.encoder_only:
        statements.extend(judge_free_errors(result))
    else:
        statements.extend(judge_torque_error(result))
        statements.extend(judge_held_out_error(result, log) for log in result.validation)
        statements.extend(
            VerdictSentence("note", "Floor of the error", words)
            for words in list_floor_words(result)
        )
    if not result.validation:
        text = "all errors are on fitted logs; validate on another log"
        statements.append(VerdictSentence("note", "No held-out log", text))
    statements.append(judge_excitation(result))
    statements.append(judge_residuals(result))
    found = result.estimate.restriction
    if found is not None and not found.rejected:
        statements.append(VerdictSentence("note", "Active constraints", found.verdict))
    statements += [VerdictSentence("note", "Warning", warning) for warning in result.warnings]
    if not result.warnings:
        statements.append(
            VerdictSentence("good", "No warnings", "from reading, filtering or fitting")
        )
    return tuple(statements)


def judge_trust(result: Result) -> Iterator[VerdictSentence]:
    """Whether to trust the result, and what to do about each reason not to."""
    verdict = result.verdict
    if not verdict.reasons:
        words = verdict.reserve or "no evidence against the result"
        yield VerdictSentence(
            "note" if verdict.reserve else "good", verdict.state.capitalize(), words
        )
    # what is to be done about several reasons is said once
    for _, alike in groupby(verdict.reasons, lambda r: (r.state, r.advice or r.words)):
        first, *others = alike
        words = "; ".join(reason.words for reason in (first, *others))
        yield VerdictSentence(LEVELS[first.state], first.state.capitalize(), words, first.advice)
    yield from (VerdictSentence("note", "Remark", words) for words in verdict.remarks)


def judge_consistency(result: Result) -> VerdictSentence:
    """Whether a body could have these parameters."""
    text = describe_consistency(result)
    if result.consistent:
        return VerdictSentence("good", "Physically consistent", text.removeprefix("yes: "))
    if result.phi is None:
        hint = "consistency 'pseudo-inertia'" if result.method.startswith("pc-") else "pc-idim-ls"
        text = text.removeprefix("not determined: ") + f"; {hint} gives consistent links"
        return VerdictSentence("note", "Consistency not determined", text)
    return VerdictSentence("bad", "Not physically consistent", text.removeprefix("no: "))


def judge_free_errors(result: Result) -> Iterator[VerdictSentence]:
    """Errors of whole free simulations, of logs without torque; held-out ones beside the fitted."""
    logs = [(each.log, choose_judged_error(each.free), False) for each in result.simulated]
    fitted = float(np.sqrt(np.mean([error.overall_milli**2 for _, error, _ in logs])))
    logs += [(each.log, choose_judged_error(each.free), True) for each in result.validation]
    for log, error, held_out in logs:
        worst = int(np.argmax(error.rms))
        text = f"of the {'held-out' if held_out else 'fitted'} log {log} (worst: "
        text += f"{result.robot.joint_names[worst]}, {format_number(1e3 * error.rms[worst], 3)})"
        level = "good"
        if held_out and fitted > 0.0:
            ratio = error.overall_milli / fitted
            text += f"; {ratio:.1f} times the error on the fitted logs"
            level = "good" if ratio <= GENERALISES else "note"
        if error.without:
            text += "; without the stretches in which the robot was hindered"
        title = f"{'Held-out free' if held_out else 'Free'} simulation"
        yield VerdictSentence(level, f"{title} {format_number(error.overall_milli, 3)} mrad", text)


def judge_torque_error(result: Result) -> Iterator[VerdictSentence]:
    """Torque error on the fitted logs beside that of the robot file."""
    mine, nominal = choose_headline(result.identification), choose_headline(result.nominal)
    if mine is None:
        return
    text = f"on the fitted logs ({describe_rows(mine)}, all joints)"
    level = "good"
    if nominal is not None:
        text += f"; with the robot file's inertials {format_percent(nominal.overall_percent)} %"
        if mine.overall_percent >= nominal.overall_percent:
            level = "bad"
    title = "Torque error" if result.torque_source == "measured" else "Error of the law's torque"
    yield VerdictSentence(level, f"{title} {format_percent(mine.overall_percent)} %", text)


def judge_held_out_error(result: Result, log: ValidationFigures) -> VerdictSentence:
    """How the model does on a log that it has not seen."""
    found, nominal = choose_headline(log.entries), choose_headline(log.nominal)
    if found is None:
        return VerdictSentence("note", "Not validated", f"{log.log} gave no figure")
    fitted = next((each for each in result.identification if each.rows == found.rows), None)
    worst = max(found.joints, key=lambda joint: np.nan_to_num(joint.relative_percent))
    text = f"on the held-out log {log.log} ({describe_rows(found)}; worst: {worst.name}, "
    text += f"{format_percent(worst.relative_percent)} %)"
    level = "good"
    for floor in (each for each in result.floor if each.log == log.log):
        text += f", of which {format_percent(floor.overall_percent)} % does not repeat"
    if nominal is not None:
        text += f"; robot file {format_percent(nominal.overall_percent)} %"
    if fitted is not None and fitted.overall_percent > 0.0:
        ratio = found.overall_percent / fitted.overall_percent
        text += f"; {ratio:.1f} times the error on the fitted logs"
        if ratio > GENERALISES:
            level = "note"
            text += ": other motions, other conditions, or a model fitted to too little"
    if nominal is not None and found.overall_percent >= nominal.overall_percent:
        level = "bad"
    return VerdictSentence(level, f"Held-out error {format_percent(found.overall_percent)} %", text)


def judge_excitation(result: Result) -> VerdictSentence:
    """Whether the log determines the parameters."""
    text = describe_excitation(result)
    if result.rank < result.estimated_count:
        return VerdictSentence("bad", "Some parameters are not excited", text)
    return VerdictSentence("good", "All estimated parameters are excited", text)


def judge_residuals(result: Result) -> VerdictSentence:
    """Whether the residuals are white."""
    groups = result.residuals
    covariance = f"error bars: {result.estimate.covariance.name}"
    if result.of_factors:
        return VerdictSentence("note", "Residuals are not available", covariance)
    if not is_any_not_white(groups):
        return VerdictSentence("good", "White residuals", covariance)
    rejected = [group.name for group in groups if group.whiteness.rejected]
    names = ", ".join(rejected[:NAMED])
    if len(rejected) > NAMED:
        names += f" and {len(rejected) - NAMED} more"
    text = f"Ljung-Box rejects whiteness of {names}"
    return VerdictSentence("note", "Autocorrelated residuals", f"{text}; {covariance}")


# ------------------------------------------------------------------------------ tables


def list_facts(result: Result) -> tuple[tuple[str, str], ...]:
    """What was identified, from what and how."""
    estimate = result.estimate
    logs = [log for log in result.log_words if log.use == "identify"]
    cutoffs = dict.fromkeys(log.cutoffs for log in logs)
    return (
        ("Robot", f"{result.robot.name}, {format_count(result.robot.n, 'joint')}"),
        ("Friction", result.idim.friction),
        ("Logs", ", ".join(log.words for log in logs)),
        ("Rows", describe_row_count(result)),
        ("Cutoffs", "; ".join(cutoffs)),
        ("Base parameters", f"{result.base.count}; {describe_excitation(result)}"),
        *(("Decided", words) for words in describe_decisions(result)),
        ("Prior", estimate.prior or "none"),
        ("Covariance", estimate.covariance.name),
        ("Iterations", f"{estimate.iterations}, {estimate.message}"),
        *(("Simulation", describe_simulation(figure)) for figure in result.simulated),
        *(("Test", describe_test_result(test)) for test in estimate.tests),
        ("Time", describe_timings(result)),
    )


def list_provenance(result: Result) -> tuple[tuple[str, str], ...]:
    """What made a result, of what, and how it is cited."""
    made = result.provenance
    files = [
        f"{file.name}, {len(file.content)} bytes, SHA-256 {file.sha256}"
        for file in result.robot_files.files
    ]
    words = {log.name: log.words for log in result.log_words}
    sizes = {n: "from memory" if s is None else f"{s} bytes" for n, s in made.log_bytes.items()}
    logs = [
        f"{words.get(name, name)}, {sizes[name]}, SHA-256 {digest}"
        for name, digest in made.logs.items()
    ]
    return (
        ("Made by", f"dynident {made.version}, Python {made.python}, {made.machine}"),
        ("On", made.date),
        *(("Robot", file) for file in files),
        *(("Log, as read", log) for log in logs),
        ("Cite", f"The dynident developers: dynident, version {made.version} (CITATION.cff)"),
    )


def render_repeating_study(result: Result) -> str:
    """The study that repeats a result, beside its files; empty where no study was run."""
    if result.study is None:
        return ""
    beside = replace_file_names(result.study, lambda name: Path(name).name)
    return tomlkit.dumps(beside.model_dump(mode="json", exclude_defaults=True, exclude_none=True))


def build_error_table(result: Result) -> PageTable | None:
    """Torque errors per joint, all models and logs side by side."""
    columns = build_error_columns(result)
    if not columns:
        return None
    names, efforts = list_error_names(columns), list_efforts(result.robot)
    found = [each for column in columns for each in column.format_errors(names, efforts)]
    table = build_column_table("joint", [*names, "all joints"], found)
    span = len(found) // len(columns)
    return table._replace(
        rows=(*table.rows[:-1], table.rows[-1]._replace(kind="total")),
        groups=(Group("", 1), *(Group(column.title, span) for column in columns)),
    )


def format_log_title(result: Result, name: str) -> str:
    """A log's name and what it was used for."""
    use = "fitted" if name in list_fitted_logs(result) else "held out"
    return f"{name} ({use})"


def build_residual_table(result: Result) -> PageTable:
    """Size and whiteness of each joint's residual."""
    rows = []
    for group in result.residuals:
        if not group.rows:
            continue
        test = group.whiteness
        chance = "< 0.0001" if test.p_value < 1e-4 else f"{test.p_value:.4f}"
        told = ["", "", ""]
        if not result.of_factors:
            told = [f"{group.correlation[0]:.2f}", format_number(test.statistic, 4), chance]
        cells = (
            group.name,
            f"{group.rows}",
            f"{format_number(group.sigma, 3)} {group.unit}".removesuffix(" 1"),
            *told,
            "not known" if result.of_factors else "not white" if test.rejected else "white",
        )
        rows.append(PageRow(cells, "weak" if test.rejected else ""))
    columns = ("joint", "rows", "sigma", "lag 1", "Ljung-Box Q", "p-value")
    verdict_column = f"at {100.0 * SIGNIFICANCE:g} %"
    return PageTable((*columns, verdict_column), tuple(rows), ("joint", verdict_column))


def build_parameter_table(result: Result) -> PageTable:
    """Base parameters with error bars and regroupings."""
    columns = ("parameter", "value", "std", "unit", "std %", "95 % from", "to", LITERATURE)
    rows = zip(list_base_parameters(result), list_file_parameters(result), strict=True)
    return PageTable(
        (*columns, "combination"),
        tuple(
            PageRow(
                (
                    row.name,
                    format_number(row.value, 5),
                    format_number(row.std, 3),
                    raise_powers(file.unit),
                    format_percent(row.relative_percent),
                    format_number(row.low),
                    format_number(row.high),
                    format_number(row.literature_std, 3),
                    row.regrouping,
                ),
                "weak" if row.weak else "" if row.essential else "gone",
            )
            for row, file in rows
        ),
        ("parameter", "unit", "combination"),
    )


def build_correlation_table(result: Result) -> PageTable | None:
    """Base parameters whose estimates go together most."""
    rows = []
    for one, other, correlation in list_correlated_pairs(result, PAIRS):
        better = "difference" if correlation > 0.0 else "sum"
        rows.append(PageRow((one, other, f"{correlation:.3f}", better)))
    columns = ("parameter", "and", "correlation", "better known")
    return PageTable(columns, tuple(rows), ("parameter", "and", "better known")) if rows else None


def compare_std_with_literature(rows: Sequence[BaseRow]) -> float | None:
    """How the standard deviations compare with the literature's formula, as a median."""
    ratios = [
        row.std / row.literature_std for row in rows if row.essential and row.literature_std > 0.0
    ]
    return float(np.median(ratios)) if ratios else None


def build_link_table(result: Result) -> PageTable | None:
    """Mass, centre of mass and inertia of each link with errors, where the method gives them."""
    if result.phi is None:
        return None
    rows = []
    shares, std = result.estimate.informed, find_body_errors(result)
    every = zip(result.robot.links, result.phi, result.robot.nominal, strict=True)
    for k, (link, phi, file) in enumerate(every):
        told = [math.nan] * 3 if shares is None else (100.0 * shares[k]).tolist()
        mass, com, inertia = to_com(phi)
        values = [mass, *com, *inertia[np.tril_indices(3)]]
        eigenvalue = float(find_smallest_eigenvalue(phi))
        nominal = format_number(float(file[0]), 3) if file[0] > 0.0 else "-"
        # what the link does not have is left at rounding, which would read like a number
        plain = [float(v) if abs(v) > ROUNDING else 0.0 for v in values]
        texts = [format_with_error(v, float(s)) for v, s in zip(plain, std[k], strict=True)]
        data = ["-" if math.isnan(x) else f"{x:.0f}" for x in told]
        rows.append(
            PageRow((link, texts[0], nominal, *texts[1:], format_number(eigenvalue, 3), *data))
        )
    found = ("mass", "in file", "x", "y", "z", *INERTIA, "min. eigenvalue")
    columns = ("link", *found, "mass", "centre", "inertia")
    groups = (
        Group("", 1),
        Group("mass [kg]", 2),
        Group("centre of mass [m]", 3),
        Group("inertia about it [kg m²]", 6),
        Group("", 1),
        Group("from data [%]", 3),
    )
    return PageTable(columns, tuple(rows), ("link",), groups)


def build_free_error_table(result: Result) -> PageTable | None:
    """Errors of free simulations, held-out logs first, where drives were fitted to positions."""
    told = [
        (log, *format_free_error(e)) for log, errors in list_free_errors(result) for e in errors
    ]
    rows = [PageRow((f"{log}, {horizon}", *cells)) for log, horizon, cells in told]
    columns = ("log and horizon", *result.robot.joint_names, "overall")
    return PageTable(columns, tuple(rows), columns[:1]) if rows else None


def build_fitted_table(result: Result) -> PageTable | None:
    """What was fitted of drives, loop and links to positions, with error bars."""
    found = result.estimate.fitted
    if found is None:
        return None
    rows = zip(found.names, found.units, found.values, found.std, strict=True)
    return PageTable(
        ("parameter", "value", "std", "unit"),
        tuple(
            PageRow((n, format_number(v, 4), format_number(s, 2), unit)) for n, unit, v, s in rows
        ),
        ("parameter", "unit"),
    )


def build_drive_table(result: Result) -> PageTable | None:
    """Rotor inertia and friction of each drive."""
    units = find_drive_units(result)
    columns = [
        (f"{symbol} [{raise_powers(units[symbol])}]" if units[symbol] else symbol, cells)
        for symbol, cells in tabulate_drives(result)
    ]
    return build_column_table("joint", result.robot.joint_names, columns) if columns else None


def describe_regrouped_drives(result: Result) -> str:
    """Which parameters torques determine in a sum alone; empty where none is."""
    found = "; ".join(list_regrouped_drives(result))
    return f" Identifiable only within a base parameter: {found}." if found else ""


def plot_ground_support(result: Result) -> list[tuple[str, dict[str, str]]]:
    """Of each log of a floating robot its title, and by kind what is known of the ground."""
    found = []
    for log in (*result.samples, *result.held_out):
        own = find_ground_support(result.idim, result.theta, log, result.lowpass_hz, POINTS)
        if own is None or not (own.forces or own.stances):
            continue
        charts = {
            "stances": (chart_stances, STANCES, len(own.forces) < len(own.contacts)),
            "forces": (chart_contact_forces, FORCES, bool(own.forces)),
            "footholds": (chart_footholds, FOOTHOLDS, own.stances and len(own.path)),
        }
        shown = {
            kind: render_chart(draw(own), words)
            for kind, (draw, words, known) in charts.items()
            if known
        }
        found.append((format_log_title(result, log.name), shown))
    return found


def flatten_settings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as lines of a path and a text."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from flatten_settings(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)) and any(isinstance(v, (Mapping, list)) for v in value):
        for k, inner in enumerate(value, start=1):
            yield from flatten_settings(inner, f"{path} {k}")
    else:
        yield path, format_setting(value)


def format_setting(value: Any) -> str:
    """One setting as text."""
    if value is None or value in ([], {}, ()):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        if all(isinstance(v, (int, float)) for v in value):
            return format_common_values(value) + (
                " (each)" if len(set(value)) == 1 < len(value) else ""
            )
        return ", ".join(str(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
