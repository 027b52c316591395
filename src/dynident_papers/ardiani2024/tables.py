"""The tables of the instrumental variable experiment: the paper's beside ours, and our own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dynident.core.arrays import Array
from dynident_papers.ardiani2024.estimated import (
    ACTUAL,
    BIASED,
    CONSTRAINED,
    CONTROLLER,
    DOWNGRADED,
    FEW,
    LOG,
    MAIN,
    METHODS,
    OF_LOG,
    OF_THE_PAPER,
    SMOOTH,
    STARTS,
    STRIBECK,
    TWIN,
    TWO_LOGS,
    UNFILTERED,
    WEAK,
    Fit,
    Outcome,
    Results,
    measure_held_out_error,
    measure_joint_errors,
    measure_overall_error,
    measure_torque_share,
    measure_weighted_error,
)
from dynident_papers.ardiani2024.scenario3 import (
    EQUAL,
    FAR,
    FEW_BOUNDS,
    NEAR,
    NONE,
    Bounded,
    Prediction,
    Third,
)
from dynident_papers.ardiani2024.simulated import (
    POSITION_FILTER,
    TORQUE_FILTER,
    Bench,
    Scenario,
)
from dynident_papers.published import (
    ARDIANI,
    ARDIANI_BAND_ITERATIONS,
    ARDIANI_ITERATIONS,
    ARDIANI_SECONDS,
    ARDIANI_STRIBECK_ERROR,
)
from dynident_papers.report import Table, blank_repeats, describe_machine, pad_row

Columns = Mapping[str, Sequence[float]]
Errors = Sequence[float] | Array | None
"""None of a method that failed."""
BESIDE = (
    ("I", "II", ACTUAL, "actual data"),
    ("III", "IV", DOWNGRADED, "downgraded data"),
    ("V", "VI", CONTROLLER, "error in the controller"),
)
"""The paper's tables: direct comparison, cross-validation, scenario."""


def tabulate_results(found: Results, third: Third, timed: bool = False) -> tuple[Table, ...]:
    """The tables of some results, with computing times where it was timed."""
    tables = [
        *tabulate_paper_errors(found),
        *tabulate_log(found),
        tabulate_true_errors(found),
        *tabulate_starts(found),
        tabulate_constraints(found),
        tabulate_bounds(found.bench, third.bounded),
        tabulate_predictions(third.predictions),
        tabulate_consistency(third),
        tabulate_tests(found),
        tabulate_stribeck_effect(found),
        tabulate_weaker_filters(found),
    ]
    return (*tables, tabulate_times(found)) if timed else tuple(tables)


def tabulate_paper_errors(found: Results) -> list[Table]:
    """Tables I to VI, the unconstrained methods and the constrained ones apart."""
    tables = []
    for direct, cross, scenario, words in BESIDE:
        sources = {LOG: found.log.outcomes, TWIN: found.outcomes}
        outcomes = {s: own[scenario.label] for s, own in sources.items() if scenario.label in own}
        checks = found.checks[scenario.label]
        parts = (
            (f". Relative errors, direct comparison, {words} [%]", direct, "joint"),
            (f". Relative errors, cross-validation, {words} [%]", cross, "traj."),
        )
        for title, number, label in parts:
            for constrained, kind in ((False, ""), (True, f", constrained by {OF_THE_PAPER}")):
                ours: dict[str, dict[str, Errors]] = {}
                notes: list[str] = []
                for source, outcome in outcomes.items():
                    if source == LOG and number == cross:
                        continue
                    for method in outcome.fits:
                        if (method in CONSTRAINED) is not constrained:
                            continue
                        beta = outcome.fits[method].beta
                        errors: Errors = None
                        if beta is not None and number == direct:
                            errors = measure_joint_errors(outcome.problem, beta)
                        elif beta is not None:
                            errors = [measure_overall_error(log, beta) for log in checks]
                        ours.setdefault(method, {})[source] = errors
                    if number == direct:
                        own = [m for m in outcome.fits if (m in CONSTRAINED) is constrained]
                        notes += describe_failures(outcome, own, source)
                if not ours:
                    continue
                name = f"Table {number}{kind}{title}"
                tables.append(
                    tabulate_beside_paper(name, label, ARDIANI[number], ours, tuple(notes))
                )
    return tables


def tabulate_beside_paper(
    title: str,
    label: str,
    paper: Columns,
    ours: Mapping[str, Mapping[str, Errors]],
    notes: tuple[str, ...] = (),
) -> Table:
    """The paper's columns beside those of the log and of the twin, method by method."""
    header, columns = [label], []
    count = max(len(values) for values in paper.values())
    for method in sorted(ours, key=list(METHODS).index):
        sources = ours[method]
        if method in paper:
            header.append(f"{METHODS[method]}\npaper")
            columns.append([f"{x:.1f}" for x in paper[method]])
        for source, values in sources.items():
            header.append(f"{METHODS[method]}\n{source}")
            columns.append(["fails"] * count if values is None else [f"{x:.1f}" for x in values])
    rows = tuple((str(k + 1), *(column[k] for column in columns)) for k in range(count))
    return Table(title, tuple(header), rows, notes)


def tabulate_log(found: Results) -> list[Table]:
    """What the scenarios do to the estimates of the log; nothing where there is none."""
    if ACTUAL.label not in found.log.outcomes:
        return []
    first = found.log.outcomes[ACTUAL.label]
    reference = first.fits["idim-iv"]
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for scenario in OF_LOG:
        outcome = found.log.outcomes[scenario.label]
        for method, fit in outcome.fits.items():
            row = [scenario.label, METHODS[method]]
            row.append("fails" if fit.beta is None else str(fit.iterations))
            row.append(ARDIANI_ITERATIONS.get(scenario.label, {}).get(method, ""))
            if fit.beta is not None and reference.beta is not None and reference.std is not None:
                change = fit.beta - reference.beta
                row.append(str(len(fit.active)) if method in CONSTRAINED else "")
                row.append(f"{np.max(np.abs(change) / reference.std):.2f}")
                row.append(f"{measure_torque_share(first.problem, change):.2f}")
            rows.append(pad_row(row, 7))
        notes += describe_failures(outcome, outcome.fits, LOG)
    return [
        Table(
            "The log of the TX40: estimates beside that of IV in scenario 1",
            ("scenario", "method", "iterations\nours", "\npaper", "active", "largest\n[sigma]",
             "moved\n[%]"),
            blank_repeats(rows, 1),
            (
                "Iterations as below. Largest: difference of a parameter in IV's standard "
                "deviations. Moved: all of them as a torque, 100 ||X change|| / ||y||. There is "
                "no second log for Tables II, IV and VI.",
                *notes,
            ),
        )
    ]  # fmt: skip


def tabulate_starts(found: Results) -> list[Table]:
    """Iterations from rotors alone, with gains as they are and gains that follow the estimate."""
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for (source, label, update), fits in found.started.items():
        if update:
            continue
        for method, fit in fits.items():
            pair = {"off": fit, "on": found.started[source, label, True][method]}
            cells = ["fails" if f.beta is None else str(f.iterations) for f in pair.values()]
            rows.append((source, label, METHODS[method], *cells))
            notes += [
                f"{METHODS[method]}, {source}, {label}, {word}: {f.failure}."
                for word, f in pair.items()
                if f.failure
            ]
    if not rows:
        return []
    return [
        Table(
            "Simulations from rotors alone, by gain_update",
            ("", "start", "method", "off", "on"),
            blank_repeats(rows, 1, 1),
            (
                "Scenarios 1 and 4 from Ia = 1, all else zero. On: the simulated gains of a joint "
                "are times its mean inertia under the estimate, over that under LS.",
                *notes,
            ),
        )
    ]


def describe_failures(
    outcome: Outcome, methods: Iterable[str] = METHODS, source: str = TWIN
) -> tuple[str, ...]:
    """Reasons of the methods that failed, as notes."""
    place = f"{source}, {describe_filtered_scenario(outcome.scenario)}"
    return tuple(
        f"{METHODS[m]}, {place}: {outcome.fits[m].failure}."
        for m in methods
        if m in outcome.fits and outcome.fits[m].failure
    )


def describe_filtered_scenario(scenario: Scenario) -> str:
    """A scenario with its filters, where they are not the paper's."""
    if scenario.position == scenario.torque == 1.0 and scenario.rows == "decimated":
        return f"scenario {scenario.label}"
    _, position, torque = format_filters(scenario)
    plant = ", no fc" if scenario in SMOOTH else ""
    return f"position cutoff {position}, torque {torque}{plant}"


def format_error_cells(bench: Bench, beta: Array) -> tuple[str, str]:
    """Weighted and held-out error as cells."""
    return (
        f"{measure_weighted_error(bench, beta):.2f}",
        f"{measure_held_out_error(bench, beta):.2f}",
    )


def format_sigma_cell(value: float) -> str:
    """An error in standard deviations, empty where there are none."""
    return "" if np.isnan(value) else f"{value:.2f}"


def tabulate_true_errors(found: Results) -> Table:
    """Iterations, and errors against the truth, with the paper's filters."""
    header = ("scenario", "method", "iterations\nours", "\npaper", "sigma\nrms",
              "sigma\nlargest", "weighted\n[%]", "held-out\n[%]")  # fmt: skip
    rows, used = [], []
    for scenario in (*MAIN[:4], *STARTS, STRIBECK):
        outcome = found.outcomes.get(scenario.label)
        if outcome is None:
            continue
        used.append(outcome)
        for method, fit in outcome.fits.items():
            row = [scenario.label, METHODS[method]]
            row.append("fails" if fit.beta is None else str(fit.iterations))
            row.append(ARDIANI_ITERATIONS.get(scenario.label, {}).get(method, ""))
            if fit.beta is not None:
                errors = fit.errors(found.bench.truth)
                row.append(format_sigma_cell(fit.sigmas(found.bench.truth)))
                row.append(f"{np.max(np.abs(errors)):.1f}" if len(errors) else "")
                row += format_error_cells(found.bench, fit.beta)
            rows.append(pad_row(row, len(header)))
    return Table(
        "Against the truth, with the paper's filters",
        header,
        blank_repeats(rows, 1),
        (
            "Parameter errors in their own standard deviations, and as 100 ||X (beta - true)|| "
            "/ ||y|| along the noise-free identification motion; then the error of the torque "
            "against noise-free torques of the three cross-validations.",
            "Iterations are simulations of the loop, rounds of the weights for LS, steps of the "
            "interior-point method for PC-LS. In 2 loop the controller sees the coarse counts as "
            "well; Ia = 1 starts with all else zero. PC: constrained by (27), standard deviations "
            "bootstrapped where constraints are active; parameters that then have none are left "
            "out of sigma.",
            *(reason for outcome in used for reason in describe_failures(outcome)),
        ),
    )


def tabulate_constraints(found: Results) -> Table:
    """The constrained methods under each kind of constraints."""
    header = ("", "method", "constraints", "iter-\nations", "active", "rank", "p", "sigma\nrms",
              "weighted\n[%]", "held-\nout [%]", "certi-\nficate")  # fmt: skip
    rows: list[tuple[str, ...]] = []
    reasons: list[str] = []
    groups = {LOG: found.log.compared}
    groups |= {label: found.compared[label] for label in (ACTUAL.label, CONTROLLER.label)}
    for label, fits in groups.items():
        for (method, constraints), fit in fits.items():
            row = [label, METHODS[method], constraints]
            if fit.beta is None:
                rows.append(pad_row([*row, "fails"], len(header)))
                reasons.append(
                    f"{METHODS[method]}, {constraints}, scenario {label}: {fit.failure}."
                )
                continue
            row += [str(fit.iterations), str(len(fit.active))]
            price = fit.restriction
            row += ["", ""] if price is None else [str(price.freedom), f"{price.p_value:.1g}"]
            if fits is found.log.compared:  # which knows no truth
                row += ["", "", ""]
            else:
                row.append(format_sigma_cell(fit.sigmas(found.bench.truth)))
                row += format_error_cells(found.bench, fit.beta)
            rows.append((*row, f"{fit.worst:.0e}"))
    return Table(
        "Constraints (27) on base parameters and (19) on standard parameters, without and with "
        "a prior",
        header,
        blank_repeats(rows, 1, 1),
        (
            "Active: constraints that keep the estimate back; a pseudo-inertia is one. Rank: "
            "directions that they take, and p of the price of that in chi-squared, small where "
            "the data contradict them. Certificate: the worst of primal, dual and gap residuals. "
            "Otherwise as above, scenarios 1 and 4; of the log 1, which knows no truth.",
            *reasons,
        ),
    )


def tabulate_bounds(bench: Bench, found: Sequence[Bounded]) -> Table:
    """What overly restrictive bounds do, and what tells of them."""
    header = ("loop", "method", "bounds", "true\noutside", "iter-\nations", "on a\nbound",
              "least\nmult.", "g_IV", "p", "weighted\n[%]", "held-out\n[%]")  # fmt: skip
    rows, reasons = [], []
    for b in found:
        row = [b.label, METHODS[b.method], b.words]
        if b.fit.beta is None:
            reasons.append(
                f"{METHODS[b.method]}, scenario {b.label}, bounds {b.words}: {b.fit.failure}."
            )
            rows.append(pad_row([*row, "", "fails"], len(header)))
            continue
        bounded = b.words not in (NONE, OF_THE_PAPER)
        row += [str(b.outside) if bounded else "", str(b.fit.iterations)]
        row.append(str(len(b.stuck)) if bounded else str(len(b.fit.active)))
        price, least, p_value = b.fit.restriction, "", ""
        if price is not None:
            least = f"{min(abs(value) for _, value in price.multipliers):.0e}"
            p_value = f"{price.p_value:.1g}"
        row += [least, f"{b.gradient:.0e}", p_value]
        rows.append((*row, *format_error_cells(bench, b.fit.beta)))
    return Table(
        f"Scenario 3: bounds at {NEAR:g} and {FAR:g} of the estimate of IV",
        header,
        blank_repeats(rows, 1),
        (
            f"Bounds on the {FEW_BOUNDS} parameters that are known best, or on all; loops are "
            "those of scenarios 1 and 4. True outside: bounded parameters whose true value misses "
            "its bounds. On a bound: how many estimates stick to one. Least multiplier: the "
            "smallest of these. g_IV = ||Z'(y - X b)|| / ||Z'y||, with Z for X of DIDIM. p: of "
            "the price that the constraints have in chi-squared.",
            *reasons,
        ),
    )


def tabulate_predictions(found: Sequence[Prediction]) -> Table:
    """The constrained estimate from the unconstrained one, by both formulas."""
    rows = [
        (p.label, p.words, f"{p.identity:.2g}", str(p.free), f"{p.moved:.2f}",
         f"{p.exact:.0e}", f"{p.instruments:.2g}")
        for p in found
    ]  # fmt: skip
    return Table(
        "Scenario 3: PC-IDIM-IV from the unconstrained estimate",
        ("instruments", "bounds", "|Pi b - b|\n[sigma]", "free", "moved\n[sigma]",
         "exact\n[sigma]", "eq. (45)\n[sigma]"),
        blank_repeats(rows, 1),
        (
            "Largest of all parameters, in standard deviations of eq. (42). Free: parameters on "
            "no bound, which the bounds of the others move. Exact: b_U + Q_UU^-1 Q_UC (b_C - d) "
            "with Q = X'Z (Z'Z)^-1 Z'X and d the bounds, on the instruments of the last step; "
            "eq. (45) has (Z_U'X_U)^-1 Z_U'X_C for it.",
        ),
    )  # fmt: skip


def tabulate_consistency(third: Third) -> Table:
    """Which base parameters a consistent robot has."""
    rows = []
    for d in third.decisions:
        if d.theta is None:
            rows.append(pad_row((d.words, "no"), 5))
        else:
            steps = str(d.iterations) if d.iterations else ""
            rows.append((d.words, "yes", steps, f"{d.distance:.2f}", f"{d.eigenvalue:.0e}"))
    return Table(
        "Scenario 3, problem (47): has a consistent robot these base parameters?",
        ("base parameters", "found", "iterations", "largest\n[sigma]", "smallest\neigenvalue"),
        tuple(rows),
        (
            "b_CIV: PC-IV under (27), scenario 1; sigma: eq. (42). Consistent: eq. (19), every "
            "pseudo-inertia definite, Ia, fv, fc positive. Largest: |b_j - b_CIV,j|. Smallest "
            "eigenvalue: of the pseudo-inertias of the robot that was found [kg, kg m^2]. The "
            f"paper finds the band feasible in {ARDIANI_BAND_ITERATIONS} iterations and b "
            f"{EQUAL} infeasible.",
            *(f"{d.words}: {d.reason}." for d in third.decisions if d.theta is None),
        ),
    )


def tabulate_tests(found: Results) -> Table:
    """Tests of Pi = I and of exogeneity, and the corrected DIDIM against IV."""
    rows = []
    cases = [(f"{LOG}, {s.label}", found.log.outcomes.get(s.label)) for s in OF_LOG]
    cases += [(s.label, found.outcomes.get(s.label)) for s in (*MAIN, BIASED)]
    for label, outcome in cases:
        if outcome is None or outcome.identity is None:
            continue
        exogenous = outcome.fits["idim-iv"].tests[-1]
        cells = [f"{outcome.identity.statistic:.3g}", f"{outcome.identity.p_value:.1g}"]
        cells += [f"{outcome.shift:.2f}", f"{exogenous.statistic:.3g}", f"{exogenous.p_value:.1g}"]
        cells.append(f"{outcome.apart:.1f}")
        rows.append((label, *cells, format_corrected_gap(outcome)))
    return Table(
        "Tests: Pi = I, exogeneity of X, and DIDIM corrected by Pi^-1",
        ("scenario", "Pi = I\nF", "\np", "|Pi b - b|\n[sigma]", "exogenous\nF", "\np",
         "Z - X\n[%]", "corr. - IV\n[sigma]"),
        tuple(rows),
        (
            "The paper accepts Pi = I in scenario 1 and has it fail in 4. |Pi b - b| is by how "
            "much DIDIM would move IV's estimate b in one step, the worst parameter; Z - X: 100 "
            "||(Z - X) b|| / ||y||, how far the torques along the simulated motion are from those "
            "along the measured one.",
        ),
    )  # fmt: skip


def format_corrected_gap(outcome: Outcome) -> str:
    """The corrected DIDIM's distance from IV in sigmas, as a cell."""
    iv, corrected = outcome.fits["idim-iv"], outcome.fits.get("pi-didim")
    if corrected is None:
        return ""
    if corrected.beta is None or iv.beta is None or iv.std is None:
        return "fails"
    return f"{np.max(np.abs(corrected.beta - iv.beta) / iv.std):.0e}"


def tabulate_stribeck_effect(found: Results) -> Table:
    """What a Stribeck effect does to inertial and to friction parameters (ardiani2024, IV-F)."""
    with_, without = found.outcomes[STRIBECK.label], found.outcomes[TWO_LOGS.label]
    rows = []
    for method, fit in with_.fits.items():
        before = without.fits[method]
        if fit.beta is None or before.beta is None:
            rows.append((METHODS[method], *["fails"] * 8))
            continue
        cells = [f"{measure_overall_error(without.problem, before.beta):.1f}"]
        cells.append(f"{measure_overall_error(with_.problem, fit.beta):.1f}")
        for own in (~found.friction, found.friction):
            change = np.where(own, fit.beta - before.beta, 0.0)
            cells.append(f"{measure_torque_share(found.bench.clean, change):.1f}")
            cells += [format_sigma_cell(f.sigmas(found.bench.truth, own)) for f in (before, fit)]
        rows.append((METHODS[method], *cells))
    return Table(
        "Scenario 5: without and with a Stribeck effect, linear friction in the model",
        ("method", "direct\nwithout", "[%]\nwith", "inertial\nmoved [%]", "sigma\nwithout",
         "\nwith", "friction\nmoved [%]", "sigma\nwithout", "\nwith"),
        tuple(rows),
        (
            f"The paper has {ARDIANI_STRIBECK_ERROR:g} % with it. Moved: the change of these "
            "parameters as a torque, 100 ||X change|| / ||y||; sigma: rms error against the truth "
            "in standard deviations.",
        ),
    )  # fmt: skip


def tabulate_weaker_filters(found: Results) -> Table:
    """Coarse encoders with weaker filters: where least squares is biased."""
    header = ("count\n[deg]", "fc", "position\ncutoff", "torque\ncutoff", "method",
              "on X\n[%]", "on Z\n[%]", "weighted\n[%]", "held-out\n[%]")  # fmt: skip
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for scenario in (DOWNGRADED, *WEAK, *SMOOTH):
        outcome, bench = found.outcomes.get(scenario.label), found.bench_of(scenario)
        if outcome is None:
            continue
        count, *cutoffs = format_filters(scenario)
        for method, fit in collect_named_fits(found, outcome).items():
            row = [count, "no" if bench is found.smooth else "yes", *cutoffs, method]
            if fit.beta is None:
                notes.append(f"{method}, {describe_filtered_scenario(scenario)}: {fit.failure}.")
                rows.append(pad_row([*row, "fails"], len(header)))
                continue
            along = outcome.along
            row.append(f"{measure_overall_error(outcome.problem, fit.beta):.1f}")
            row.append("" if along is None else f"{measure_overall_error(along, fit.beta):.1f}")
            rows.append((*row, *format_error_cells(bench, fit.beta)))
    return Table(
        "Scenario 2 with weaker filters",
        header,
        blank_repeats(rows, 4),
        (
            f"Cutoffs over the paper's {POSITION_FILTER:g} and {TORQUE_FILTER:g} omega_dyn. On X: "
            "||y - X b|| / ||y|| with the measured motion, the in-sample error; on Z: with the "
            "motion simulated with IV's estimate, whatever the method. Weighted and held-out as "
            "above. PC: constrained by (27), or as it says.",
            *notes,
        ),
    )


def collect_named_fits(found: Results, outcome: Outcome) -> dict[str, Fit]:
    """The methods of the filter table, and those under other constraints."""
    fits = {METHODS[m]: outcome.fits[m] for m in (*FEW, *CONSTRAINED) if m in outcome.fits}
    for (method, name), fit in found.compared.get(outcome.scenario.label, {}).items():
        fits[f"{METHODS[method]} {name}"] = fit
    return fits


def format_filters(scenario: Scenario) -> tuple[str, str, str]:
    """Encoder, position cutoff and torque cutoff as cells of a table."""
    position = "none" if scenario.position >= UNFILTERED else f"x {scenario.position:g}"
    torque = "all rows" if scenario.rows == "all" else f"x {scenario.torque:g}"
    return f"{scenario.stored:g}", position, torque


def tabulate_times(found: Results) -> Table:
    """Computing times of scenario 1 [s]."""
    fits = found.outcomes[ACTUAL.label].fits
    sources = {LOG: found.log.outcomes, TWIN: found.outcomes}
    rows = [("paper", *(str(ARDIANI_SECONDS.get(m, "")) for m in fits))]
    for source, outcomes in sources.items():
        own = outcomes[ACTUAL.label].fits if ACTUAL.label in outcomes else {}
        if own:
            rows.append((source, *(f"{own[m].seconds:.2f}" if m in own else "" for m in fits)))
    return Table(
        "Computing times of scenario 1 [s]",
        ("", *(METHODS[m] for m in fits)),
        tuple(rows),
        (
            "Ours: processor time of the estimate on one core, bootstraps of the twin's "
            "constrained forms included; the first of a process loads or compiles the kernels. "
            f"{describe_machine()}; the paper's: MATLAB on an i5-10400H.",
        ),
    )
