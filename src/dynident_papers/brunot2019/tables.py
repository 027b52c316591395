"""The tables of the output error experiment: the paper's beside ours, and our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.estimators.closed_loop import compute_percent_error
from dynident.filters.filters import filter_zero_phase
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem
from dynident.regression.statistics import TestResult
from dynident_papers.brunot2019.estimated import (
    FEED_FORWARD,
    KINDS,
    LAGS,
    LOW_PASS,
    METHODS,
    OF_LOOPS,
    SIMULATING,
    WORDS,
    Answer,
    Answers,
    Results,
    measure_coulomb_bias,
    take_beta_or_nan,
    take_values_or_nan,
)
from dynident_papers.brunot2019.measured import TWINS
from dynident_papers.brunot2019.simulated import COULOMB, NAMES, select_essential
from dynident_papers.experiment import average_twin_inertia
from dynident_papers.measured import ASKED, EXACT
from dynident_papers.published import (
    BANDWIDTHS,
    BRUNOT,
    BRUNOT_COLUMNS,
    BRUNOT_ERRORS,
    BRUNOT_NAMES,
    BRUNOT_SINGULAR,
    BRUNOT_TIMES,
    CONDITION,
    Column,
)
from dynident_papers.report import Table, blank_repeats, describe_machine, format_digits

PAPER_NAMES = tuple(BRUNOT_NAMES.values())
HALF_DIGIT = 0.005
"""Of the paper's values."""
TWIN = "twin"
SHARES_ABOVE = (20.0, 100.0, 500.0)
"""Frequencies above which torques are looked at [Hz]."""


def tabulate_results(found: Results, timed: bool = False) -> tuple[Table, ...]:
    """The tables of some results, with computing times where it was timed."""
    return (
        tabulate_loop(found),
        *tabulate_estimates(found, "Table 1", "all"),
        tabulate_singular_values(found, "Table 2", "all", timed),
        tabulate_simulated_errors(found),
        tabulate_torque_spectrum(found),
        *tabulate_error_shares(found),
        *tabulate_assumed_loops(found),
        *tabulate_estimates(found, "Table 4", "decimated"),
        tabulate_singular_values(found, "Table 5", "decimated", timed),
        tabulate_mismatches(found),
        tabulate_coulomb_changes(found),
        tabulate_whiteness(found),
        tabulate_true_errors(found),
        tabulate_intervals(found),
    )


def list_published_values(kind: str, method: str) -> Array:
    """The paper's estimates, shape (28,)."""
    return np.array([entry.value for entry in BRUNOT[kind, method].values()])


@dataclass(frozen=True)
class LoopFigures:
    """The twin's loop in numbers, each of shape (n,)."""

    kp: Array
    kd: Array
    """`kp`, `kd`: drive gains included [Nm/rad], [Nm s/rad]."""
    inertia: Array
    """Mean [kg m^2]."""
    natural: Array
    """Natural frequency [Hz]."""
    damping: Array
    band: Array
    """Frequency at which the position has fallen by 3 dB [Hz]."""


def compute_loop_figures(found: Results) -> LoopFigures:
    """The loop of the main case: the twin's gains, its mean inertia and its friction."""
    twin, main = found.twin, found.main
    J, kp, kd = average_twin_inertia(twin), twin.gain * twin.kp, twin.gain * twin.kd
    friction = np.array([main.truth[NAMES.index(f"fv{j + 1}")] for j in range(twin.robot.n)])
    friction[4:] += main.truth[NAMES.index("fvm6")]
    w = np.sqrt(kp / J)
    z = (kd + friction) / (2.0 * np.sqrt(kp * J))
    band = w * np.sqrt(1.0 - 2.0 * z**2 + np.sqrt((1.0 - 2.0 * z**2) ** 2 + 1.0))
    return LoopFigures(kp, kd, J, w / 2 / np.pi, z, band / 2 / np.pi)


def compute_condition_numbers(problem: Problem) -> tuple[float, float]:
    """Condition of a regressor, and with columns of unit length."""
    values = problem.factors.singular_values()
    unit = problem.factors.weighted(np.ones(problem.robot.n)).condition()[0]
    return float(values[0] / values[-1]), float(unit)


def describe_condition_numbers(problems: Sequence[Problem]) -> str:
    """Conditions of some regressors as words."""
    found = []
    for problem in problems:
        plain, unit = compute_condition_numbers(problem)
        found.append(
            f"{problem.base.count} parameters {plain:.0f}, with columns of unit length {unit:.1f}"
        )
    return "; ".join(found)


def tabulate_loop(found: Results) -> Table:
    """Gains of the simulated controller, and the condition of its motion."""
    loop = compute_loop_figures(found)
    shape = "{} {:.0f} {:.1f} {:.3g} {:.1f} {:.2f} {:.1f} {:.0f}"
    numbers = zip(
        loop.kp, loop.kd, loop.inertia, loop.natural, loop.damping, loop.band, BANDWIDTHS,
        strict=True,
    )  # fmt: skip
    rows = tuple(tuple(shape.format(j, *row).split()) for j, row in enumerate(numbers, start=1))
    names = ("joint", "kp gain", "kd gain", "inertia", "natural", "damping", "-3 dB", "ardiani")
    units = ("", "[Nm/rad]", "[Nms/rad]", "[kgm2]", "[Hz]", "", "[Hz]", "[Hz]")
    with_offsets = Problem(found.twin.robot, found.main.full.samples, "coulomb-viscous")
    twin = (with_offsets, found.main.full, found.main.problem)
    words = f"twin: {describe_condition_numbers(twin)}"
    if found.measured.bench is not None:
        full = found.measured.bench.full
        words += f". log: {describe_condition_numbers((full, select_essential(full)))}"
    return Table(
        "Table A. The loop, from the twin's gains and its mean inertia",
        tuple(f"{name}\n{unit}" if unit else name for name, unit in zip(names, units, strict=True)),
        rows,
        (
            f"Condition of the decimated regressor. {words}. "
            f"The paper has {CONDITION} for {with_offsets.base.count}.",
            "The band is that of the reference's position alone (a P loop around a P loop); "
            "ardiani: that of the robot's own loops (ardiani2024, IV-A).",
        ),
    )


def list_columns(found: Results, kind: str, method: str) -> dict[str, Answer | str]:
    """What stands beside the paper's column: the log, then the twin."""
    columns: dict[str, Answer | str] = {}
    for essential in (True, False):
        answer = found.measured.answer(ASKED, essential, kind, method)
        if answer is not None:
            columns[f"log, {found.measured.count(essential)}"] = answer
    columns["twin"] = found.answers[kind, method]
    return columns


def tabulate_estimates(found: Results, number: str, kind: str) -> list[Table]:
    """Estimates with relative standard deviations, a method a table."""
    methods: list[Column] = [(kind, method) for method in SIMULATING]
    if kind == "all":
        methods.insert(0, ("decimated", "ols"))
    tables = []
    for letter, (rows_kind, method) in zip("abcd", methods, strict=False):
        columns = list_columns(found, rows_kind, method)
        rows = []
        for k, (name, theirs) in enumerate(BRUNOT_NAMES.items()):
            cells = [format_estimate(answer, k) for answer in columns.values()]
            paper = "{:g} ({:g})".format(*BRUNOT[rows_kind, method][name])
            rows.append((theirs, paper, *cells, f"{found.truth[k]:.3f}"))
        header = ("", "paper", *columns, "twin,\ntrue")
        title = f"{number}{letter}. {WORDS[method]}, estimates, {KINDS[rows_kind]}"
        tables.append(Table(title, header, tuple(rows), describe_columns(columns)))
    return tables


def format_estimate(answer: Answer | str, k: int) -> str:
    """A parameter with its relative standard deviation."""
    if isinstance(answer, str):
        return "failed"
    share = 100.0 * answer.std[k] / max(abs(answer.value[k]), 1e-12)
    return f"{answer.value[k]:.3f} ({format_digits(share)})"


def describe_columns(columns: Mapping[str, Answer | str]) -> tuple[str, ...]:
    """What the columns of a table are, and why some have failed."""
    return (
        "In brackets the relative standard deviation [%] by the paper's formula. log: the TX40's, "
        "with so many parameters.",
        *(f"{name}: {answer}." for name, answer in columns.items() if isinstance(answer, str)),
    )


def tabulate_singular_values(found: Results, number: str, kind: str, timed: bool) -> Table:
    """Singular values of the matrices that are inverted (Tables 2 and 5)."""
    rows = []
    for method in SIMULATING:
        paper = [format_digits(x) for x in BRUNOT_SINGULAR[kind, method]]
        rows.append((WORDS[method], "paper", *paper, "", BRUNOT_TIMES[method]))
        columns = list_columns(found, kind, method)
        if kind == "decimated" and method in found.differences:
            columns["twin, differences"] = found.differences[method]
        for words, answer in columns.items():
            cells = ["failed", *[""] * 4]
            if not isinstance(answer, str):
                values = answer.estimate.singular_values
                assert values is not None
                cells = [format_digits(x) for x in (values[0], values[-1], values[0] / values[-1])]
                cells += [str(answer.estimate.iterations)]
                cells += [f"{answer.seconds:.1f} s" if timed else ""]
            rows.append((WORDS[method], words, *cells))
    theirs = describe_ratios(compute_published_ratios(kind))
    ratios = [
        f"{describe_ratios(compute_singular_ratios(upper, lower))} ({words})"
        for (words, upper), lower in zip(
            list_columns(found, kind, "clie").items(),
            list_columns(found, kind, "cloe").values(),
            strict=True,
        )
    ]
    notes = [
        f"CLIE over CLOE, largest and smallest: {theirs} (paper), {', '.join(ratios)}.",
        "An iteration of CLIE and CLOE is one simulation here, and one more for each step that "
        f"is refused, {len(NAMES) + 1} there. {describe_times(timed)}",
    ]
    if kind == "decimated":
        notes += [
            f"{WORDS[method]} by differences, as there: "
            f"{answer if isinstance(answer, str) else answer.estimate.message}."
            for method, answer in found.differences.items()
        ]
    for setting, _, answers in found.mismatches:
        if kind == "decimated" and setting.designed:
            softer = compute_singular_ratios(answers["clie"], answers["cloe"])
            notes.append(
                f"Twin with gains for the bands of ardiani2024: {describe_ratios(softer)}."
            )
    return Table(
        f"{number}. Optimization, {KINDS[kind]}",
        ("", "", "mu max", "mu min", "condition", "iterations", "time"),
        blank_repeats(rows, 1),
        tuple(notes),
    )


def compute_singular_ratios(upper: Answer | str, lower: Answer | str) -> Array | None:
    """Largest singular values of two methods over each other, and smallest; None if one failed."""
    if isinstance(upper, str) or isinstance(lower, str):
        return None
    a, b = upper.estimate.singular_values, lower.estimate.singular_values
    assert a is not None
    assert b is not None
    return np.array([a[0] / b[0], a[-1] / b[-1]])


def compute_published_ratios(kind: str) -> Array:
    """The paper's (Tables 2 and 5)."""
    upper, lower = BRUNOT_SINGULAR[kind, "clie"], BRUNOT_SINGULAR[kind, "cloe"]
    return np.array([upper[0] / lower[0], upper[1] / lower[1]])


def describe_ratios(ratios: Array | None) -> str:
    """Two ratios as words."""
    return (
        "unknown"
        if ratios is None
        else f"{format_digits(ratios[0])} and {format_digits(ratios[1])}"
    )


def tabulate_simulated_errors(found: Results) -> Table:
    """Errors of the simulated positions and torques (Table 3)."""
    rows: list[tuple[str, ...]] = [
        ("paper", "", KINDS["all"], WORDS[method], *(f"{x:g}" for x in BRUNOT_ERRORS[method]), "")
        for method in SIMULATING
    ]
    sources = [
        (f"log, {reference}", str(found.measured.count(essential)), answers)
        for (reference, essential), answers in found.measured.answers.items()
    ]
    for source, count, answers in (*sources, ("twin", str(len(NAMES)), found.answers)):
        for (kind, method), answer in answers.items():
            cells = ("failed", "", "")
            if not isinstance(answer, str):
                position = "" if np.isnan(answer.position) else f"{answer.position:.4f}"
                cells = (position, f"{answer.torque:.2f}", f"{answer.slow_torque:.2f}")
            rows.append((source, count, KINDS[kind], WORDS[method], *cells))
    return Table(
        "Table 3. Mean relative errors of the simulated motion over the axes [%]",
        ("", "parameters", "fitted", "", "position", "torque", f"below\n{LOW_PASS:g} Hz"),
        blank_repeats(rows, 1, 1, 1),
        (
            f"Every sample is compared, whatever rows were fitted. Below {LOW_PASS:g} Hz: torques "
            "low-passed, simulated and logged. LS has those of the inverse model along the "
            "filtered motion. log, of what its reference is made: moves through the motion, moves "
            "through the demand with which the assumed law gives the logged torques, or that "
            "demand.",
        ),
    )


def tabulate_torque_spectrum(found: Results) -> Table:
    """What of the torques is above some frequencies."""
    columns = []
    logs = {"twin": found.main.problem.samples[0]}
    if found.measured.bench is not None:
        logs = {"log": found.measured.bench.full.samples[0], **logs}
    for log in logs.values():
        columns += [measure_share_above(log, cutoff) for cutoff in SHARES_ABOVE]
    rows = tuple((str(j), *(f"{x:.1f}" for x in row)) for j, row in enumerate(zip(*columns), 1))
    header = [f"{name}\n> {cutoff:g} Hz" for name in logs for cutoff in SHARES_ABOVE]
    return Table(
        "Table 3b. Share of the logged torque above a frequency, of its norm [%]",
        ("joint", *header),
        rows,
        (
            "The torque less its zero-phase low-pass. The twin shows what of it a rigid robot with "
            "friction, and the random torques, have.",
        ),
    )


def list_error_sources(found: Results) -> dict[str, dict[str, Answer]]:
    """Answers of all parameters where there are any, by what they are of and method; decimated."""
    log = found.measured.answers
    sources = {
        f"log, {reference}": log.get((reference, False), log.get((reference, True), {}))
        for reference in (ASKED, EXACT)
    }
    sources[TWIN] = found.answers
    answers = {
        source: {
            method: answer
            for (kind, method), answer in own.items()
            if kind == "decimated" and isinstance(answer, Answer)
        }
        for source, own in sources.items()
    }
    return {source: own for source, own in answers.items() if "clie" in own and "ols" in own}


def tabulate_error_shares(found: Results) -> list[Table]:
    """Where the errors of the torques are; nothing without the log."""
    sources, bench = list_error_sources(found), found.measured.bench
    if bench is None:
        return []
    rows = []
    for source, own in sources.items():
        problem = found.main.problem if source == TWIN else bench.full
        logged = measure_share_above(problem.samples[0], LOW_PASS)
        for method in ("ols", "clie"):
            e = own[method].torques
            columns = np.array([e.whole, logged, e.fast, e.slow, e.resting, e.moving])
            cells = {"mean": np.mean(columns, axis=1)}
            if source != TWIN and method == "clie":
                cells |= {str(j): row for j, row in enumerate(columns.T, start=1)}
            rows += [
                (source, WORDS[method], joint, *(f"{x:.1f}" for x in row))
                for joint, row in cells.items()
            ]
    above, below = f"above\n{LOW_PASS:g} Hz", f"below\n{LOW_PASS:g} Hz"
    return [
        Table(
            "Table 3c. Where the errors of the torques are [%]",
            ("", "", "joint", "error", f"logged,\n{above}", above, below, "slow\nrows", "others"),
            blank_repeats(rows, 1, 1),
            (
                "Decimated rows; on the log of all parameters where they were estimated. All over "
                "the norm of the logged torque: the error, the logged torque itself above "
                f"{LOW_PASS:g} Hz, the error above and below that, and of the error below what "
                "lies in rows that are too slow to be fitted and in the others. LS is along the "
                "filtered motion, without a loop.",
            ),
        )
    ]


def describe_times(timed: bool) -> str:
    """What times are."""
    return (
        "Processor time on one core, compilation or its cache's loading with the first; "
        f"{describe_machine()}."
        if timed
        else "Ours are timed with --times."
    )


def tabulate_assumed_loops(found: Results) -> list[Table]:
    """What the log's figures are under other loops; nothing where none was tried."""
    own = found.measured.answers.get((ASKED, True), {})
    ls = own.get(("decimated", "ols"))
    if not found.measured.loops or not isinstance(ls, Answer):
        return []
    twins = {m: own["decimated", m] for m in OF_LOOPS}
    rows = []
    for label, answers in {TWINS.label: twins, **found.measured.loops}.items():
        for method, answer in answers.items():
            cells = ["failed", "", "", ""]
            if isinstance(answer, Answer):
                cells = [f"{answer.position:.4f}", f"{answer.torque:.2f}"]
                cells.append(f"{answer.slow_torque:.2f}")
                cells.append(f"{measure_coulomb_bias(answer.value, ls.value):.1f}")
            rows.append((label, WORDS[method], *cells))
    return [
        Table(
            "Table 3d. The log under other loops that may be its robot's [%]",
            ("assumed", "", "position", "torque", f"below\n{LOW_PASS:g} Hz", "Coulomb"),
            blank_repeats(rows, 1),
            (
                f"{len(NAMES)} parameters, decimated rows, {ASKED} (rebuilt under each). Coulomb: "
                "100 sum |difference from LS| / sum fc; the paper's CLIE and CLOE have "
                f"{' and '.join(f'{measure_published_bias(m):.1f}' for m in OF_LOOPS)}.",
            ),
        )
    ]


def measure_published_bias(method: str) -> float:
    """The same of the paper's estimates, decimated."""
    reference = list_published_values("decimated", "ols")
    return measure_coulomb_bias(list_published_values("decimated", method), reference)


def measure_share_above(log: Samples, cutoff: float) -> Array:
    """``100 ||tau - low-passed tau|| / ||tau||``, shape (n,)."""
    used, torque = slice(*log.segments[0]), log.joint_torque
    low = filter_zero_phase(torque, cutoff, log.rate)
    return compute_percent_error((torque - low)[used], torque[used])


def tabulate_mismatches(found: Results) -> Table:
    """Bias of Coulomb friction, for each thing that the estimators do not know."""
    rows = []
    for setting, _, _ in found.mismatches:
        rows.append((setting.label, *map(format_percent, found.biases(setting).values())))
    paper = [measure_published_bias(m) for m in SIMULATING]
    rows += [
        (
            f"log, {reference}, {found.measured.count(essential)} parameters",
            "",
            *map(format_percent, measure_log_biases(answers)),
        )
        for (reference, essential), answers in found.measured.answers.items()
    ]
    rows.append(("the paper's robot", "", *(f"{x:.1f}" for x in paper)))
    return Table(
        "Table 6. Error of the Coulomb friction, 100 sum |error| / sum fc [%]",
        ("what the estimators do not know", *(WORDS[m] for m in METHODS)),
        tuple(rows),
        (
            "Decimated rows; the paper has no such table. The twin, without random errors, against "
            "the truth; the log and the paper's robot against LS.",
        ),
    )


def format_percent(value: float) -> str:
    """A figure as a cell."""
    return "failed" if np.isnan(value) else f"{value:.1f}"


def measure_log_biases(answers: Answers) -> list[float]:
    """Differences of the Coulomb friction from that of LS on decimated rows, by method [%]."""
    ls = answers["decimated", "ols"]
    if isinstance(ls, str):
        return [np.nan] * len(SIMULATING)
    return [
        measure_coulomb_bias(take_values_or_nan(answers["decimated", m]), ls.value)
        for m in SIMULATING
    ]


def tabulate_coulomb_changes(found: Results) -> Table:
    """Coulomb friction joint by joint: under the feed-forward, of the log, of the paper."""
    run = found.mismatch(FEED_FORWARD)
    assert run is not None  # of the reduced form, too
    truth, answers = run
    reference = list_published_values("decimated", "ols")
    log = found.measured.answers.get((ASKED, True))
    rows = []
    for k in COULOMB:
        cells = [take_beta_or_nan(answers[m])[k] / truth[k] for m in METHODS]
        if log is not None:
            ls = take_values_or_nan(log["decimated", "ols"])[k]
            cells += [take_values_or_nan(log["decimated", m])[k] / ls for m in SIMULATING]
        cells += [list_published_values("decimated", m)[k] / reference[k] for m in SIMULATING]
        changes = ["failed" if np.isnan(x) else f"{100.0 * (x - 1.0):+.0f}" for x in cells]
        rows.append((PAPER_NAMES[k], *changes))
    sources = [("twin", METHODS), *([] if log is None else [("log", SIMULATING)])]
    header = [f"{s}\n{WORDS[m]}" for s, own in (*sources, ("paper", SIMULATING)) for m in own]
    return Table(
        "Table 7. Change of the Coulomb friction [%]",
        ("", *header),
        tuple(rows),
        (
            f"Decimated rows. The twin under a {FEED_FORWARD.label} that the estimators do not "
            f"know, against the truth; the log ({ASKED}; {len(NAMES)} parameters) and the paper's "
            "robot against their LS.",
        ),
    )


def tabulate_whiteness(found: Results) -> Table:
    """Autocorrelations of the residuals (figures 1 to 3 as numbers), and the F-test."""
    rows = []
    cases: list[tuple[str, TestResult | None, Answers]] = [
        (
            f"log, {found.measured.count(essential)} parameters",
            found.measured.test if essential else None,
            own,
        )
        for (reference, essential), own in found.measured.answers.items()
        if reference == ASKED
    ]
    cases += [(setting.label, test, answers) for setting, test, answers in found.noises]
    for label, test, answers in cases:
        for method in METHODS:
            cells = []
            for kind in KINDS:
                answer = answers.get((kind, method))
                if answer is None or isinstance(answer, str):
                    cells += ["", ""]
                else:
                    cells += [f"{np.mean(answer.inside):.2f}", f"{np.min(answer.inside):.2f}"]
            if any(cells):
                F = ["", ""]
                if test is not None and method == METHODS[0]:
                    F = [f"{test.statistic:.3g}", f"{test.p_value:.1g}"]
                rows.append((label, WORDS[method], *cells, *F))
    return Table(
        f"Table 8. Share of the first {LAGS} autocorrelations within 2 sigma",
        ("errors", "", "all\nmean", "all\nworst", "decim.\nmean", "decim.\nworst", "F", "p"),
        blank_repeats(rows, 1),
        (
            "Mean and worst over the joints; 0.95 is that of a white residual. F tests that the "
            f"base parameters beside the {len(NAMES)} are zero, rows counted as independent. log: "
            f"{ASKED}; all else is the twin's.",
        ),
    )


def tabulate_intervals(found: Results) -> Table:
    """How many estimates lie within three sigma of LS, as the paper says of CLIE and DIDIM."""
    centre = list_published_values("decimated", "ols")
    std = np.array([entry.std for entry in BRUNOT["decimated", "ols"].values()])
    theirs = (count_within(list_published_values("decimated", m), centre, std) for m in SIMULATING)
    rows = [("paper", "", *map(str, theirs))]
    sources = {
        f"log, {ASKED}, {found.measured.count(own)} parameters": answers
        for (reference, own), answers in found.measured.answers.items()
        if reference == ASKED
    }
    for source, answers in {**sources, "twin": found.answers}.items():
        ls = answers["decimated", "ols"]
        if isinstance(ls, Answer):
            counts = count_within_of_ls(answers)
            near = count_within(ls.value, centre, std)
            rows.append((source, str(near), *(str(counts[m]) for m in SIMULATING)))
    return Table(
        f"Table 10. Of the {len(NAMES)} estimates, those within three sigma of LS",
        ("decimated", "LS, of\nthe paper's", *(f"{WORDS[m]}, of\nits LS" for m in SIMULATING)),
        tuple(rows),
        (
            "Sigma is that of LS by the paper's formula, and half a digit of what is printed. The "
            "paper has CLIE and DIDIM within them (section 5.2).",
        ),
    )


def count_within(value: Array, centre: Array, std: Array) -> int:
    """How many values are within three standard deviations, and the rounding of a table."""
    return int(np.sum(np.abs(value - centre) <= 3.0 * std + HALF_DIGIT))


def count_within_of_ls(answers: Answers) -> dict[str, int]:
    """How many decimated estimates of each method are within three sigma of LS; none without."""
    ls = answers["decimated", "ols"]
    if isinstance(ls, str):
        return {}
    return {
        m: count_within(take_values_or_nan(answers["decimated", m]), ls.value, ls.std)
        for m in SIMULATING
    }


def tabulate_true_errors(found: Results) -> Table:
    """Errors against the true parameters, and how honest the standard deviations are."""
    truth = found.truth
    rows: list[tuple[str, ...]] = []
    for key in (("all", "ols"), *BRUNOT_COLUMNS[1:4], *BRUNOT_COLUMNS[:1], *BRUNOT_COLUMNS[4:]):
        answer = found.answers[key]
        label = f"{WORDS[key[1]]}, {KINDS[key[0]]}"
        if isinstance(answer, str):
            rows.append((label, "failed", "", "", ""))
            continue
        error = answer.value - truth
        k = int(np.argmax(np.abs(error / truth)))
        sigmas = (np.sqrt(np.mean((error / std) ** 2)) for std in (answer.std, answer.robust))
        middle, most = 100.0 * np.median(np.abs(error / truth)), 100.0 * abs(error[k] / truth[k])
        worst = f"{most:.0f} ({PAPER_NAMES[k]})"
        rows.append((label, f"{middle:.1f}", worst, *(f"{x:.1f}" for x in sigmas)))
    return Table(
        "Table 9. Errors against the true parameters",
        ("estimate", "median\n[%]", "largest\n[%]", "rms error in\npaper's sigma", "in our\nsigma"),
        tuple(rows),
        ("Sigmas that are honest, of an estimate without bias, give an rms of 1.",),
    )
