"""Ardiani, Janot, Benoussaad 2024, section IV, on the TX40 twin.

Tables I to VI with the paper's numbers beside ours, what the estimates are worth against the
truth, what constraints add, and where and why the two depart. The experiment is in
`dynident_papers.scenarios`, its third scenario in `restricted` and `feasible`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.core.progress import Progress, silent
from dynident_papers.estimates import (
    ACTUAL,
    BIASED,
    CONTROLLER,
    DOWNGRADED,
    FEW,
    HELD,
    MAIN,
    METHODS,
    PAPERS,
    SMOOTH,
    STARTS,
    STRIBECK,
    TWO_LOGS,
    UNFILTERED,
    WEAK,
    Outcome,
    Results,
    joint_errors,
    overall_error,
    results,
    torque_share,
)
from dynident_papers.feasible import (
    Decision,
    consistency_table,
    constraints_table,
    problem_47,
)
from dynident_papers.published import PAPER, PAPER_ITERATIONS, REMARKS
from dynident_papers.restricted import (
    Bounded,
    Prediction,
    bounds_table,
    identical,
    prediction_table,
    restricted,
)
from dynident_papers.scenarios import Scenario
from dynident_papers.tables import Reproduction, Table

Columns = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Third:
    """What scenario 3 found, of overly restrictive constraints and of problem (47).

    Attributes
    ----------
    bounded : list of Bounded
    predictions : list of Prediction
    decisions : tuple of Decision
    """

    bounded: list[Bounded]
    predictions: list[Prediction]
    decisions: tuple[Decision, ...]


def run(progress: Progress = silent, reduced: bool = False, timed: bool = False) -> Reproduction:
    """The paper's experiment on the TX40 twin.

    Parameters
    ----------
    progress : callable
        Called with "ardiani2024" and the share that is done.
    reduced : bool
        At 2 kHz instead of 5 kHz, and without most of the variants.
    timed : bool
        With computing times, which make the text differ from run to run.

    Returns
    -------
    Reproduction

    Raises
    ------
    ComputationError
        When the robot itself cannot be simulated. Methods that fail are printed.
    """
    found = results(progress, reduced)
    return reported(found, third_scenario(found, progress, reduced), timed)


def third_scenario(found: Results, progress: Progress = silent, reduced: bool = False) -> Third:
    """Scenario 3 on the data of scenario 1, and of 4 where Pi is not I.

    Parameters
    ----------
    found : Results
    progress : callable
        Called with "ardiani2024, scenario 3" and the share that is done.
    reduced : bool
        PC-IDIM-IV alone.
    """
    methods = (("idim-iv", "pc-idim-iv"), ("didim", "pc-didim"))[: 1 if reduced else 2]
    actual, wrong = (found.outcomes[s.label] for s in (ACTUAL, CONTROLLER))
    bounded: list[Bounded] = []
    predictions = identical(found.bench, actual)
    for share, outcome in ((0.4, actual), (0.8, wrong)):
        some, more = restricted(found.bench, outcome, methods)
        bounded, predictions = bounded + some, predictions + more
        progress("ardiani2024, scenario 3", share)
    decisions = problem_47(found.bench, actual, reduced)
    progress("ardiani2024, scenario 3", 1.0)
    return Third(bounded, predictions, decisions)


def reported(found: Results, third: Third, timed: bool = False) -> Reproduction:
    """Tables and remarks of some results."""
    pairs = (
        ("I", "II", ACTUAL, "actual data"),
        ("III", "IV", DOWNGRADED, "downgraded data"),
        ("V", "VI", CONTROLLER, "error in the controller"),
    )
    tables = []
    for direct, cross, scenario, words in pairs:
        outcome, logs = found.outcomes[scenario.label], found.checks[scenario.label]
        free = {m: f.beta for m, f in outcome.fits.items() if m not in HELD}
        held = {m: f.beta for m, f in outcome.fits.items() if m in HELD}
        for ours, kind in ((free, ""), (held, f", constrained by {PAPERS}")):
            tables.append(
                beside(
                    f"Table {direct}{kind}. Relative errors, direct comparison, {words} [%]",
                    "joint",
                    PAPER[direct],
                    {m: None if b is None else joint_errors(outcome.problem, b)
                     for m, b in ours.items()},
                    failures(outcome, ours),
                )
            )  # fmt: skip
        for ours, kind in ((free, ""), (held, f", constrained by {PAPERS}")):
            tables.append(
                beside(
                    f"Table {cross}{kind}. Relative errors, cross-validation, {words} [%]",
                    "traj.",
                    PAPER[cross],
                    {m: None if b is None else [overall_error(log, b) for log in logs]
                     for m, b in ours.items()},
                )
            )  # fmt: skip
    tables += [truth_table(found), constraints_table(found)]
    tables += [
        bounds_table(found.bench, third.bounded),
        prediction_table(third.predictions),
        consistency_table(third.decisions),
    ]
    tables += [tests_table(found), friction_table(found), filter_table(found)]
    if timed:
        tables.append(time_table(found))
    return Reproduction(
        "Ardiani, Janot, Benoussaad 2024: IDIM-IV, DIDIM and constraints on the TX40",
        tuple(tables),
        REMARKS,
    )


def beside(
    title: str,
    label: str,
    paper: Columns,
    ours: Mapping[str, Sequence[float] | Array | None],
    notes: tuple[str, ...] = (),
) -> Table:
    """The paper's columns beside ours, one pair a method; more methods are more pairs."""
    header, columns = [label], []
    count = max(len(values) for values in paper.values())
    for method, values in ours.items():
        if method in paper:
            header.append(f"{METHODS[method]}\npaper")
            columns.append([f"{x:.1f}" for x in paper[method]])
        header.append(f"{METHODS[method]}\nours")
        columns.append(["fails"] * count if values is None else [f"{x:.1f}" for x in values])
    rows = tuple((str(k + 1), *(column[k] for column in columns)) for k in range(count))
    return Table(title, tuple(header), rows, notes)


def failures(outcome: Outcome, methods: Iterable[str] = METHODS) -> tuple[str, ...]:
    """Reasons of the methods that failed, as notes."""
    return tuple(
        f"{METHODS[m]}, {in_words(outcome.scenario)}: {outcome.fits[m].failure}."
        for m in methods
        if m in outcome.fits and outcome.fits[m].failure
    )


def in_words(scenario: Scenario) -> str:
    """A scenario with its filters, where they are not the seed's."""
    if scenario.position == scenario.torque == 1.0 and scenario.rows == "decimated":
        return f"scenario {scenario.label}"
    _, position, torque = filters(scenario)
    plant = ", no fc" if scenario in SMOOTH else ""
    return f"position cutoff {position}, torque {torque}{plant}"


def truth_table(found: Results) -> Table:
    """Iterations, and errors against the truth, at the seed's filters."""
    rows, used = [], []
    for scenario in (*MAIN[:4], *STARTS, STRIBECK):
        outcome = found.outcomes.get(scenario.label)
        if outcome is None:
            continue
        used.append(outcome)
        for k, (method, fit) in enumerate(outcome.fits.items()):
            row = ["" if k else scenario.label, METHODS[method]]
            row.append("fails" if fit.beta is None else str(fit.iterations))
            row.append(PAPER_ITERATIONS.get(scenario.label, {}).get(method, ""))
            if fit.beta is None:
                rows.append((*row, "", "", "", ""))
                continue
            error, sigmas = fit.beta - found.bench.truth, ["", ""]
            if fit.std is not None:
                z = fit.errors(found.bench.truth)
                sigmas = [f"{np.sqrt(np.mean(z**2)):.2f}", f"{np.max(np.abs(z)):.1f}"]
            row += [*sigmas, f"{torque_share(found.bench.clean, error):.2f}"]
            rows.append((*row, f"{overall_error(found.bench.held_out, fit.beta):.2f}"))
    return Table(
        "Against the truth, at the seed's filters",
        ("scenario", "method", "iterations\nours", "\npaper", "sigma\nrms", "sigma\nlargest",
         "weighted\n[%]", "held out\n[%]"),
        tuple(rows),
        (
            "Parameter errors in their own standard deviations, and as 100 ||X (beta - true)|| "
            "/ ||y|| along the noise-free identification motion; then the error of the torque "
            "against noise-free torques of the three cross-validations.",
            "Iterations are simulations of the loop, rounds of the weights for LS, steps of the "
            "interior-point method for PC-LS. In 2 loop the controller sees the coarse counts as "
            "well; Ia = 1 starts with all else zero. PC: constrained by (27), standard deviations "
            "bootstrapped where constraints are active; parameters that then have none are left "
            "out of sigma.",
            *(reason for outcome in used for reason in failures(outcome)),
        ),
    )  # fmt: skip


def tests_table(found: Results) -> Table:
    """Tests of Pi = I and of exogeneity, and the corrected DIDIM against IV."""
    rows = []
    for scenario in (*MAIN, BIASED):
        outcome = found.outcomes.get(scenario.label)
        if outcome is None or outcome.identity is None:
            continue
        iv, corrected = outcome.fits["idim-iv"], outcome.fits.get("pi-didim")
        gap = ""
        if corrected is not None:
            gap = "fails"
            if corrected.beta is not None and iv.beta is not None and iv.std is not None:
                gap = f"{np.max(np.abs(corrected.beta - iv.beta) / iv.std):.0e}"
        exogenous = iv.tests[-1]
        cells = [f"{outcome.identity.statistic:.3g}", f"{outcome.identity.p_value:.1g}"]
        cells += [f"{outcome.shift:.2f}", f"{exogenous.statistic:.3g}", f"{exogenous.p_value:.1g}"]
        rows.append((scenario.label, *cells, gap))
    return Table(
        "Tests: Pi = I, exogeneity of X, and DIDIM corrected by Pi^-1",
        ("scenario", "Pi = I\nF", "\np", "|Pi b - b|\n[sigma]", "exogenous\nF", "\np",
         "corr. - IV\n[sigma]"),
        tuple(rows),
        (
            "The paper accepts Pi = I in scenario 1 and rejects it in 4. |Pi b - b| is by how "
            "much DIDIM would move IV's estimate b in one step, the worst parameter.",
        ),
    )  # fmt: skip


def friction_table(found: Results) -> Table:
    """What a Stribeck effect does to inertial and to friction parameters (IV-F)."""
    names = found.bench.clean.base.names
    friction = np.array([name[:2] in ("fv", "fc", "of") for name in names])
    with_, without = found.outcomes[STRIBECK.label], found.outcomes[TWO_LOGS.label]
    rows = []
    for method, fit in with_.fits.items():
        before = without.fits[method]
        if fit.beta is None or before.beta is None:
            rows.append((METHODS[method], *["fails"] * 8))
            continue
        errors = [overall_error(o.problem, f.beta)
                  for o, f in ((without, before), (with_, fit)) if f.beta is not None]  # fmt: skip
        cells = [f"{x:.1f}" for x in errors]
        for own in (~friction, friction):
            change = np.where(own, fit.beta - before.beta, 0.0)
            cells.append(f"{torque_share(found.bench.clean, change):.1f}")
            for f in (before, fit):
                z = f.errors(found.bench.truth, own)
                cells.append("" if f.std is None else f"{np.sqrt(np.mean(z**2)):.2f}")
        rows.append((METHODS[method], *cells))
    return Table(
        "Scenario 5: without and with a Stribeck effect, linear friction in the model",
        ("method", "direct\nwithout", "[%]\nwith", "inertial\nmoved [%]", "sigma\nwithout",
         "\nwith", "friction\nmoved [%]", "sigma\nwithout", "\nwith"),
        tuple(rows),
        (
            "The paper has 12 % with it. Moved: the change of these parameters as a torque, "
            "100 ||X change|| / ||y||; sigma: rms error against the truth in standard deviations.",
        ),
    )  # fmt: skip


def filter_table(found: Results) -> Table:
    """Coarse encoders with weaker filters: where least squares is biased."""
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for robot, group in ((found.bench, (DOWNGRADED, *WEAK)), (found.smooth, SMOOTH)):
        for scenario in group:
            outcome = found.outcomes.get(scenario.label)
            if outcome is None:
                continue
            fits = {METHODS[m]: outcome.fits[m] for m in (*FEW, *HELD) if m in outcome.fits}
            for (method, name), fit in found.compared.get(scenario.label, {}).items():
                fits[f"{METHODS[method]} {name}"] = fit
            for k, (method, fit) in enumerate(fits.items()):
                row = ["", "", "", "", method]
                if fit.failure:
                    notes.append(f"{method}, {in_words(scenario)}: {fit.failure}.")
                if k == 0:
                    count, *cutoffs = filters(scenario)
                    row[:4] = [count, "no" if robot is found.smooth else "yes", *cutoffs]
                if fit.beta is None:
                    rows.append((*row, "fails", "", "", ""))
                    continue
                row.append(f"{overall_error(outcome.problem, fit.beta):.1f}")
                along = outcome.along
                row.append("" if along is None else f"{overall_error(along, fit.beta):.1f}")
                row.append(f"{torque_share(robot.clean, fit.beta - robot.truth):.2f}")
                rows.append((*row, f"{overall_error(robot.held_out, fit.beta):.2f}"))
    return Table(
        "Scenario 2 with weaker filters",
        ("count\n[deg]", "fc", "position\ncutoff", "torque\ncutoff", "method", "on X\n[%]",
         "on Z\n[%]", "weighted\n[%]", "held out\n[%]"),
        tuple(rows),
        (
            "Cutoffs over the seed's 5 and 2 omega_dyn. On X: ||y - X b|| / ||y|| with the "
            "measured motion, the in-sample error; on Z: with the motion simulated with IV's "
            "estimate, whatever the method. Weighted and held out as above. PC: constrained by "
            "(27), or as it says.",
            *notes,
        ),
    )  # fmt: skip


def filters(scenario: Scenario) -> tuple[str, str, str]:
    """Encoder, position cutoff and torque cutoff as cells of a table."""
    position = "none" if scenario.position >= UNFILTERED else f"x {scenario.position:g}"
    torque = "all rows" if scenario.rows == "all" else f"x {scenario.torque:g}"
    return f"{scenario.stored:g}", position, torque


def time_table(found: Results) -> Table:
    """Computing times of scenario 1 [s]."""
    fits = found.outcomes[ACTUAL.label].fits
    return Table(
        "Computing times of scenario 1 [s]",
        ("", *(METHODS[m] for m in fits)),
        (("ours", *(f"{f.seconds:.2f}" for f in fits.values())),
         ("paper", *("25" if m in ("idim-iv", "didim") else "" for m in fits))),
        ("The first simulation of a process includes the loading of the kernels.",),
    )  # fmt: skip
