"""The tables of the output error experiment: the paper's beside ours, and our own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.regression.problem import Problem
from dynident_papers.brunot2019.estimated import (
    FEED_FORWARD,
    KINDS,
    LAGS,
    METHODS,
    SIMULATING,
    WORDS,
    Answer,
    Results,
    measure_coulomb_bias,
    take_beta_or_nan,
)
from dynident_papers.brunot2019.simulated import COULOMB, NAMES
from dynident_papers.experiment import average_twin_inertia
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
from dynident_papers.report import Table, blank_repeats, format_digits

PAPER_NAMES = tuple(BRUNOT_NAMES.values())


def tabulate_results(found: Results) -> tuple[Table, ...]:
    """The tables of some results."""
    return (
        tabulate_loop(found),
        *tabulate_estimates(found, "Table 1", "all"),
        tabulate_singular_values(found, "Table 2", "all"),
        tabulate_simulated_errors(found),
        *tabulate_estimates(found, "Table 4", "decimated"),
        tabulate_singular_values(found, "Table 5", "decimated"),
        tabulate_mismatches(found),
        tabulate_coulomb_changes(found),
        tabulate_whiteness(found),
        tabulate_true_errors(found),
    )


def list_published_values(kind: str, method: str) -> Array:
    """The paper's estimates, shape (28,)."""
    return np.array([entry.value for entry in BRUNOT[kind, method].values()])


@dataclass(frozen=True)
class LoopFigures:
    """The twin's loop in numbers, each of shape (n,).

    Attributes
    ----------
    kp, kd : ndarray
        Drive gains included [Nm/rad], [Nm s/rad].
    inertia : ndarray
        Mean [kg m^2].
    natural, band : ndarray
        Natural frequency, and that at which the position has fallen by 3 dB [Hz].
    damping : ndarray
    """

    kp: Array
    kd: Array
    inertia: Array
    natural: Array
    damping: Array
    band: Array


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
    words = []
    for problem in (with_offsets, found.main.full, found.main.problem):
        plain, unit = compute_condition_numbers(problem)
        words.append(
            f"{problem.base.count} parameters {plain:.0f}, with columns of unit length {unit:.1f}"
        )
    return Table(
        "Table A. The loop, from the twin's gains and its mean inertia",
        tuple(f"{name}\n{unit}" if unit else name for name, unit in zip(names, units, strict=True)),
        rows,
        (
            f"Condition of the decimated regressor: {'; '.join(words)}. "
            f"The paper has {CONDITION} for {with_offsets.base.count}.",
            "The band is that of the reference's position alone (a P loop around a P loop); "
            "ardiani: that of the robot's own loops (ardiani2024, IV-A).",
        ),
    )


def tabulate_estimates(found: Results, number: str, kind: str) -> tuple[Table, Table]:
    """Estimates with relative standard deviations, two methods a table."""
    truth = found.truth
    first: tuple[Column, ...] = (("decimated", "ols"), (kind, "clie"))
    second: tuple[Column, ...] = ((kind, "cloe"), (kind, "didim"))
    parts = (first, second) if kind == "all" else (first[1:], second)
    tables = []
    for letter, keys in zip("ab", parts, strict=True):
        header = ["", "true"]
        for key in keys:
            header += [f"{WORDS[key[1]]}\nours", f"{WORDS[key[1]]}\npaper"]
        rows = []
        for k, (name, theirs) in enumerate(BRUNOT_NAMES.items()):
            row = [theirs, f"{truth[k]:.3f}"]
            for key in keys:
                answer = found.answers[key]
                ours = "failed"
                if not isinstance(answer, str):
                    share = 100.0 * answer.std[k] / max(abs(answer.value[k]), 1e-12)
                    ours = f"{answer.value[k]:.3f} ({format_digits(share)})"
                row += [ours, "{:g} ({:g})".format(*BRUNOT[key][name])]
            rows.append(tuple(row))
        words = "every sample; LS decimated" if letter == "a" and kind == "all" else KINDS[kind]
        notes = ("In brackets the relative standard deviation [%] by the paper's formula.",)
        tables.append(
            Table(f"{number}{letter}. Estimates, {words}", tuple(header), tuple(rows), notes)
        )
    return tables[0], tables[1]


def tabulate_singular_values(found: Results, number: str, kind: str) -> Table:
    """Singular values of the matrices that are inverted (Tables 2 and 5)."""
    header, columns = [""], [["mu max", "mu min", "condition", "time", "iterations"]]
    for method in SIMULATING:
        header += [f"{WORDS[method]}\nours", f"{WORDS[method]}\npaper"]
        answer = found.answers[kind, method]
        cells = ["failed"] * 3 + ["", ""]
        if not isinstance(answer, str):
            values = answer.estimate.singular_values
            assert values is not None
            cells = [format_digits(x) for x in (values[0], values[-1], values[0] / values[-1])]
            cells += ["", str(answer.estimate.iterations)]
        paper = [format_digits(x) for x in BRUNOT_SINGULAR[kind, method]]
        columns += [cells, [*paper, BRUNOT_TIMES[method], ""]]
    ours = compute_singular_ratios(found.answers[kind, "clie"], found.answers[kind, "cloe"])
    theirs = compute_published_ratios(kind)
    notes = [
        "Ours are not timed. An iteration of CLIE and CLOE is one simulation here, "
        f"{len(NAMES) + 1} there.",
        f"CLIE over CLOE, largest and smallest: {describe_ratios(ours)} here, "
        f"{describe_ratios(theirs)} in the paper.",
    ]
    for setting, _, answers in found.mismatches:
        if kind == "decimated" and setting.designed:
            softer = compute_singular_ratios(answers["clie"], answers["cloe"])
            notes.append(f"With gains for the bands of ardiani2024: {describe_ratios(softer)}.")
    return Table(
        f"{number}. Optimization, {KINDS[kind]}",
        tuple(header),
        tuple(zip(*columns, strict=True)),
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
    rows = []
    for kind in KINDS:
        for method in SIMULATING:
            answer = found.answers[kind, method]
            ours = ("failed", "")
            if not isinstance(answer, str):
                ours = (f"{answer.position:.4f}", f"{answer.torque:.2f}")
            theirs = tuple(f"{x:g}" for x in BRUNOT_ERRORS[method]) if kind == "all" else ("", "")
            rows.append((f"{WORDS[method]}, {KINDS[kind]}", ours[0], theirs[0], ours[1], theirs[1]))
    return Table(
        "Table 3. Mean relative errors of the simulated motion over the axes [%]",
        ("estimate", "position\nours", "position\npaper", "torque\nours", "torque\npaper"),
        tuple(rows),
        ("Every sample is compared, whatever rows were fitted.",),
    )


def tabulate_mismatches(found: Results) -> Table:
    """Bias of Coulomb friction, for each thing that the estimators do not know."""
    rows = []
    for setting, _, _ in found.mismatches:
        cells = ("failed" if np.isnan(x) else f"{x:.1f}" for x in found.biases(setting).values())
        rows.append((setting.label, *cells))
    reference = list_published_values("decimated", "ols")
    paper = [
        measure_coulomb_bias(list_published_values("decimated", m), reference) for m in SIMULATING
    ]
    rows.append(("the paper's robot, against LS", "", *(f"{x:.1f}" for x in paper)))
    return Table(
        "Table 6. Error of the Coulomb friction, 100 sum |error| / sum fc [%]",
        ("what the estimators do not know", *(WORDS[m] for m in METHODS)),
        tuple(rows),
        ("Without random errors; decimated rows; the paper has no such table.",),
    )


def tabulate_coulomb_changes(found: Results) -> Table:
    """Coulomb friction joint by joint under the feed-forward, beside the paper's."""
    run = found.mismatch(FEED_FORWARD)
    assert run is not None  # of the reduced form, too
    truth, answers = run
    rows = []
    reference = list_published_values("decimated", "ols")
    for k in COULOMB:
        row = [PAPER_NAMES[k], f"{truth[k]:.2f}"]
        changes = [100.0 * (take_beta_or_nan(answers[m])[k] / truth[k] - 1.0) for m in METHODS]
        row += ["failed" if np.isnan(x) else f"{x:+.0f}" for x in changes]
        for m in SIMULATING:
            share = list_published_values("decimated", m)[k] / reference[k]
            row.append(f"{100.0 * (share - 1.0):+.0f}")
        rows.append(tuple(row))
    return Table(
        f"Table 7. {FEED_FORWARD.label}: change of the Coulomb friction [%]",
        ("", "true", *(WORDS[m] for m in METHODS), *(f"paper\n{WORDS[m]}" for m in SIMULATING)),
        tuple(rows),
        ("Ours against the truth, the paper's against its LS.",),
    )


def tabulate_whiteness(found: Results) -> Table:
    """Autocorrelations of the residuals (figures 1 to 3 as numbers)."""
    rows = []
    for setting, test, answers in found.noises:
        for method in METHODS:
            cells = []
            for kind in KINDS:
                answer = answers.get((kind, method))
                if answer is None or isinstance(answer, str):
                    cells += ["", ""]
                else:
                    cells += [f"{np.mean(answer.inside):.2f}", f"{np.min(answer.inside):.2f}"]
            if any(cells):
                F = format_digits(test.statistic) if method == METHODS[0] else ""
                rows.append((setting.label, WORDS[method], *cells, F))
    return Table(
        f"Table 8. Share of the first {LAGS} autocorrelations within 2 sigma",
        ("errors", "", "all\nmean", "all\nworst", "decim.\nmean", "decim.\nworst", "F"),
        blank_repeats(rows, 1),
        (
            "Mean and worst over the joints; 0.95 is that of a white residual. F tests that the "
            f"base parameters beside the {len(NAMES)} are zero; values near 1 accept it.",
        ),
    )


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
