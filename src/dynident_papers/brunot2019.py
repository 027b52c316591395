"""Output error methods for robot identification (Brunot et al. 2019) on the TX40 twin."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.progress import Progress, silent
from dynident.regression.problem import Problem
from dynident_papers.cases import COULOMB, DESIGNED, NAMES
from dynident_papers.comparison import (
    FEED_FORWARD,
    KINDS,
    LAGS,
    METHODS,
    SIMULATING,
    WORDS,
    Answer,
    Key,
    Results,
    coulomb_bias,
    paper_sums,
    results,
)
from dynident_papers.experiment import mean_inertia
from dynident_papers.tables import Reproduction, Table

PUBLISHED = """
zz1r 1.24 1.45  1.25 .32  1.22 .24  1.25 .32  1.25 1.52  1.22 2.69  1.25 1.23
fv1  8.00 .91   7.96 .28  8.18 .12  7.99 .28  7.96 .91   8.18 1.39  7.99 .75
fc1  7.34 2.66  7.21 .87  6.34 .37  7.11 .89  7.21 2.84  6.34 4.22  7.11 2.36
xx2r -.48 3.28  -.47 .97  -.42 .55  -.48 .98  -.47 3.72  -.42 5.95  -.48 3.06
xz2r -.16 5.40  -.16 1.85 -.17 .72  -.15 1.89 -.16 6.82  -.17 7.92  -.15 6.01
zz2r 1.09 1.29  1.09 .29  1.08 .18  1.09 .30  1.09 1.37  1.08 2.05  1.09 1.12
mx2r 2.21 3.01  2.24 .94  2.43 .73  2.22 .95  2.24 4.05  2.43 8.57  2.22 3.32
fv2  5.50 1.45  5.47 .35  5.68 .22  5.45 .35  5.47 1.55  5.68 2.66  5.45 1.24
fc2  8.24 2.26  8.35 .53  7.40 .28  8.35 .53  8.35 2.36  7.40 3.38  8.35 1.85
xx3r .13 10.6   .13 2.07  .18 1.31  .13 2.10  .13 11.1   .18 14.5   .13 8.97
zz3r .11 9.57   .12 1.81  .11 1.59  .11 1.89  .12 10.3   .11 17.8   .11 8.47
my3r -.60 2.52  -.59 .44  -.53 .60  -.59 .44  -.59 2.70  -.53 6.38  -.59 2.11
ia3  .09 9.39   .09 1.94  .09 1.62  .09 1.94  .09 11.1   .09 17.7   .09 8.61
fv3  1.93 2.05  1.94 .31  1.93 .46  1.94 .31  1.94 2.14  1.93 4.51  1.94 1.58
fc3  6.48 2.06  6.47 .31  5.80 .31  6.47 .32  6.47 2.19  5.79 3.22  6.47 1.59
mx4  -.02 35.1  -.03 3.40 .01 12.4  -.03 3.50 -.03 26.9  .01 124    -.03 18.8
ia4  .03 9.10   .03 1.08  .03 1.38  .03 1.09  .03 9.33   .03 12.8   .03 7.78
fv4  1.09 1.62  1.11 .19  1.15 .28  1.11 .19  1.11 1.81  1.15 2.52  1.11 1.48
fc4  2.57 2.46  2.44 .31  2.17 .54  2.42 .31  2.44 2.97  2.17 5.00  2.42 2.43
my5r -.03 15.2  -.04 1.81 -.06 1.31 -.03 1.85 -.04 14.5  -.06 13.7  -.03 11.0
ia5  .04 10.6   .04 1.35  .05 1.29  .04 1.38  .04 12.1   .05 15.4   .04 9.78
fv5  1.79 2.33  1.82 .24  1.92 .34  1.82 .25  1.82 2.33  1.92 4.20  1.82 1.84
fc5  3.07 3.59  3.01 .39  2.26 .48  2.99 .39  3.01 3.72  2.26 6.00  2.99 2.92
ia6  .01 13.3   .01 2.06  .01 1.78  .01 2.08  .01 20.2   .01 20.9   .01 18.7
fv6  .65 1.85   .66 .20   .67 .23   .65 .21   .66 2.07   .67 2.85   .65 1.59
fc6  .30 32.9   .18 5.92  .04 24.4  .25 4.18  .18 19.5   .042 315   .25 11.6
fvm6 .61 1.97   .60 .22   .57 .46   .60 .22   .60 2.19   .57 5.66   .60 1.67
fcm6 1.90 4.40  1.94 .46  1.95 .78  1.92 .46  1.94 4.50  1.96 9.84  1.92 3.44
"""
"""Tables 1 and 4: the name; value and relative standard deviation [%] of LS, CLIE, CLOE, DIDIM
without decimation, then of CLIE, CLOE, DIDIM with it. The order is that of `NAMES`."""
FIGURES = {
    ("all", "clie"): (2.26e4, 19.3, 1172.0),
    ("all", "cloe"): (9.85, 2.6e-3, 3845.0),
    ("all", "didim"): (2.23e4, 19.1, 1166.0),
    ("decimated", "clie"): (1589.0, 1.3, 1178.0),
    ("decimated", "cloe"): (1.34, 1.74e-4, 7622.0),
    ("decimated", "didim"): (1571.0, 1.3, 1165.0),
}
"""Tables 2 and 5: mu_max, mu_min, condition number."""
TIMES = {"clie": "23 min", "cloe": "23 min", "didim": "1 min"}
"""Tables 2 and 5."""
DIRECT = {"clie": (0.017, 6.97), "cloe": (0.017, 10.7), "didim": (0.013, 6.95)}
"""Table 3: position and torque error, every sample fitted [%]."""
COLUMNS: tuple[Key, ...] = (
    ("decimated", "ols"),
    *(("all", method) for method in SIMULATING),
    *(("decimated", method) for method in SIMULATING),
)
"""Whose the pairs of numbers in `PUBLISHED` are. LS is decimated in both tables."""
LINES = [line.split() for line in PUBLISHED.split("\n") if line]
PAPER_NAMES = tuple(line[0] for line in LINES)
VALUES = {c: np.array([float(x[1 + 2 * k]) for x in LINES]) for k, c in enumerate(COLUMNS)}
STD = {c: np.array([float(x[2 + 2 * k]) for x in LINES]) for k, c in enumerate(COLUMNS)}


def run(progress: Progress = silent, reduced: bool = False) -> Reproduction:
    """Repeat the paper's experiment on the TX40 twin.

    Parameters
    ----------
    progress : callable, optional
        See `dynident.core.progress.Progress`.
    reduced : bool
        A shorter and coarser version, for a quick look and for tests.

    Returns
    -------
    Reproduction
        The paper's tables beside ours.

    Raises
    ------
    ComputationError
        When a motion of the twin diverges.
    """
    return reported(results(progress, reduced))


def reported(found: Results) -> Reproduction:
    """The paper's tables beside the results."""
    tables = (
        loop_table(found),
        *parameter_tables(found, "Table 1", "all"),
        optimisation_table(found, "Table 2", "all"),
        comparison_table(found),
        *parameter_tables(found, "Table 4", "decimated"),
        optimisation_table(found, "Table 5", "decimated"),
        mismatch_table(found),
        coulomb_table(found),
        whiteness_table(found),
        truth_table(found),
    )
    failures = tuple(
        f"{WORDS[method]} on rows '{KINDS[kind]}' failed: {answer}."
        for (kind, method), answer in found.answers.items()
        if isinstance(answer, str)
    )
    title = "Brunot et al. 2019, Output Error Methods for Robot Identification, on the TX40 twin"
    return Reproduction(title, tables, (*failures, *REMARKS))


def loop_table(found: Results) -> Table:
    """Gains of the simulated controller, and the condition of its motion."""
    twin, main = found.twin, found.main
    J, kp, kd = mean_inertia(twin), twin.gain * twin.kp, twin.gain * twin.kd
    friction = np.array([main.truth[NAMES.index(f"fv{j + 1}")] for j in range(twin.robot.n)])
    friction[4:] += main.truth[NAMES.index("fvm6")]
    w = np.sqrt(kp / J)
    z = (kd + friction) / (2.0 * np.sqrt(kp * J))
    band = w * np.sqrt(1.0 - 2.0 * z**2 + np.sqrt((1.0 - 2.0 * z**2) ** 2 + 1.0))
    shape = "{} {:.0f} {:.1f} {:.3g} {:.1f} {:.2f} {:.1f} {:.0f}"
    numbers = zip(kp, kd, J, w / 2 / np.pi, z, band / 2 / np.pi, DESIGNED, strict=True)
    rows = tuple(tuple(shape.format(j, *row).split()) for j, row in enumerate(numbers, start=1))
    names = ("joint", "kp gain", "kd gain", "inertia", "natural", "damping", "-3 dB", "seeds")
    units = ("", "[Nm/rad]", "[Nms/rad]", "[kgm2]", "[Hz]", "", "[Hz]", "[Hz]")
    with_offsets = Problem(twin.robot, main.full.samples, "coulomb-viscous")
    words = []
    for problem in (with_offsets, main.full, main.problem):
        values = problem.factors.singular_values()
        scaled = problem.factors.weighted(np.ones(twin.robot.n)).condition()[0]
        words.append(
            f"{problem.base.count} parameters {values[0] / values[-1]:.0f}, with columns of unit "
            f"length {scaled:.1f}"
        )
    return Table(
        "Table A. The loop, from the twin's gains and its mean inertia",
        tuple(f"{name}\n{unit}" if unit else name for name, unit in zip(names, units, strict=True)),
        rows,
        (
            f"Condition of the decimated regressor: {'; '.join(words)}. The paper has 200 for 60.",
            "The band is that of the reference's position alone (a P loop around a P loop).",
        ),
    )


def parameter_tables(found: Results, number: str, kind: str) -> tuple[Table, Table]:
    """Estimates with relative standard deviations, two methods a table."""
    truth = paper_sums() @ found.main.truth
    first: tuple[Key, ...] = (("decimated", "ols"), (kind, "clie"))
    second: tuple[Key, ...] = ((kind, "cloe"), (kind, "didim"))
    parts = (first, second) if kind == "all" else (first[1:], second)
    tables = []
    for letter, keys in zip("ab", parts, strict=True):
        header = ["", "true"]
        for key in keys:
            header += [f"{WORDS[key[1]]}\nours", f"{WORDS[key[1]]}\npaper"]
        rows = []
        for k, name in enumerate(PAPER_NAMES):
            row = [name, f"{truth[k]:.3f}"]
            for key in keys:
                answer = found.answers[key]
                ours = "failed"
                if not isinstance(answer, str):
                    share = 100.0 * answer.std[k] / max(abs(answer.value[k]), 1e-12)
                    ours = f"{answer.value[k]:.3f} ({digits(share)})"
                row += [ours, f"{VALUES[key][k]:g} ({STD[key][k]:g})"]
            rows.append(tuple(row))
        words = "every sample; LS decimated" if letter == "a" and kind == "all" else KINDS[kind]
        notes = ("In brackets the relative standard deviation [%] by the paper's formula.",)
        tables.append(
            Table(f"{number}{letter}. Estimates, {words}", tuple(header), tuple(rows), notes)
        )
    return tables[0], tables[1]


def optimisation_table(found: Results, number: str, kind: str) -> Table:
    """Singular values of the matrices that are inverted (Tables 2 and 5)."""
    rows: list[list[str]] = [["mu max"], ["mu min"], ["condition"], ["time"], ["iterations"]]
    header = [""]
    for method in SIMULATING:
        header += [f"{WORDS[method]}\nours", f"{WORDS[method]}\npaper"]
        answer = found.answers[kind, method]
        largest, smallest, condition = FIGURES[kind, method]
        ours = ["failed"] * 3 + ["", ""]
        if not isinstance(answer, str):
            values = answer.estimate.singular_values
            assert values is not None
            ours = [digits(values[0]), digits(values[-1]), digits(values[0] / values[-1])]
            ours += ["", str(answer.estimate.iterations)]
        paper = [digits(largest), digits(smallest), digits(condition), TIMES[method], ""]
        for row, cell, theirs in zip(rows, ours, paper, strict=True):
            row += [cell, theirs]
    notes = ["Ours are not timed. An iteration of CLIE and CLOE is one simulation here, 29 there."]
    paper_ratios = [FIGURES[kind, "clie"][k] / FIGURES[kind, "cloe"][k] for k in (0, 1)]
    notes.append(
        "CLIE over CLOE, largest and smallest: "
        f"{ratios(found.answers[kind, 'clie'], found.answers[kind, 'cloe'])} here, "
        f"{digits(paper_ratios[0])} and {digits(paper_ratios[1])} in the paper."
    )
    for setting, _, answers in found.mismatches:
        if kind == "decimated" and setting.designed:
            words = ratios(answers["clie"], answers["cloe"])
            notes.append(f"With gains for 10 and 20 Hz these ratios are {words}.")
    return Table(
        f"{number}. Optimization, {KINDS[kind]}",
        tuple(header),
        tuple(tuple(row) for row in rows),
        tuple(notes),
    )


def ratios(upper: Answer | str, lower: Answer | str) -> str:
    """Largest singular values of two methods over each other, and smallest."""
    if isinstance(upper, str) or isinstance(lower, str):
        return "unknown"
    a, b = upper.estimate.singular_values, lower.estimate.singular_values
    assert a is not None
    assert b is not None
    return f"{digits(a[0] / b[0])} and {digits(a[-1] / b[-1])}"


def beta_of(answer: Answer | str) -> Array:
    """The estimate, not a number where there is none."""
    return np.full(len(NAMES), np.nan) if isinstance(answer, str) else answer.estimate.beta


def comparison_table(found: Results) -> Table:
    """Errors of the simulated positions and torques (Table 3)."""
    rows = []
    for kind in KINDS:
        for method in SIMULATING:
            answer = found.answers[kind, method]
            ours = ("failed", "")
            if not isinstance(answer, str):
                ours = (f"{answer.position:.4f}", f"{answer.torque:.2f}")
            theirs = tuple(f"{x:g}" for x in DIRECT[method]) if kind == "all" else ("", "")
            rows.append((f"{WORDS[method]}, {KINDS[kind]}", ours[0], theirs[0], ours[1], theirs[1]))
    return Table(
        "Table 3. Mean relative errors of the simulated motion over the axes [%]",
        ("estimate", "position\nours", "position\npaper", "torque\nours", "torque\npaper"),
        tuple(rows),
        ("Every sample is compared, whatever rows were fitted.",),
    )


def mismatch_table(found: Results) -> Table:
    """Bias of Coulomb friction, for each thing that the estimators do not know."""
    rows = []
    for setting, truth, answers in found.mismatches:
        biases = [coulomb_bias(beta_of(answers[m]), truth) for m in METHODS]
        rows.append((setting.label, *("failed" if np.isnan(x) else f"{x:.1f}" for x in biases)))
    reference = VALUES["decimated", "ols"]
    paper = [coulomb_bias(VALUES["decimated", m], reference) for m in SIMULATING]
    rows.append(("the paper's robot, against LS", "", *(f"{x:.1f}" for x in paper)))
    return Table(
        "Table 6. Error of the Coulomb friction, 100 sum |error| / sum fc [%]",
        ("what the estimators do not know", *(WORDS[m] for m in METHODS)),
        tuple(rows),
        ("Without random errors; decimated rows; the paper has no such table.",),
    )


def coulomb_table(found: Results) -> Table:
    """Coulomb friction joint by joint under the feed-forward, beside the paper's."""
    ((_, truth, answers),) = [m for m in found.mismatches if m[0] is FEED_FORWARD]
    rows = []
    for k in COULOMB:
        row = [PAPER_NAMES[k], f"{truth[k]:.2f}"]
        changes = [100.0 * (beta_of(answers[m])[k] / truth[k] - 1.0) for m in METHODS]
        row += ["failed" if np.isnan(x) else f"{x:+.0f}" for x in changes]
        least_squares = VALUES["decimated", "ols"][k]
        row += [f"{100 * (VALUES['decimated', m][k] / least_squares - 1):+.0f}" for m in SIMULATING]
        rows.append(tuple(row))
    return Table(
        f"Table 7. {FEED_FORWARD.label}: change of the Coulomb friction [%]",
        ("", "true", *(WORDS[m] for m in METHODS), *(f"paper\n{WORDS[m]}" for m in SIMULATING)),
        tuple(rows),
        ("Ours against the truth, the paper's against its LS.",),
    )


def whiteness_table(found: Results) -> Table:
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
                label = setting.label if method == METHODS[0] else ""
                rows.append((label, WORDS[method], *cells, digits(test.statistic) if label else ""))
    return Table(
        f"Table 8. Share of the first {LAGS} autocorrelations within 2 sigma",
        ("errors", "", "all\nmean", "all\nworst", "decim.\nmean", "decim.\nworst", "F"),
        tuple(rows),
        (
            "Mean and worst over the joints; 0.95 is that of a white residual. F tests that the "
            "base parameters beside the 28 are zero; values near 1 accept it.",
        ),
    )


def truth_table(found: Results) -> Table:
    """Errors against the true parameters, and how honest the standard deviations are."""
    truth = paper_sums() @ found.main.truth
    rows: list[tuple[str, ...]] = []
    for key in (("all", "ols"), *COLUMNS[1:4], *COLUMNS[:1], *COLUMNS[4:]):
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


def digits(value: float) -> str:
    """Three significant digits, large numbers in full."""
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


REMARKS = (
    "Motion: the references pass through the points at which the published log of this robot "
    "rests, with limits fitted to that log; its first twelve moves take 6.9 s, the length of the "
    "paper's data. The condition of its regressor is of the size of the paper's 200 for the 54 "
    "parameters without offsets and without scaling; with columns of unit length it is an order "
    "of magnitude below (Table A). The paper's own 1166 for 28 of its 60 columns is above its "
    "200 for all of them, so that these two are not of one matrix.",
    "Controller: the gains are those that come with the twin, read as kp (qref - q) + kd (dqref "
    "- dq), sampled. Their bands are two to five times the 10 and 20 Hz of ardiani2024, and "
    "joint 6 has little damping (Table A). They are kept because CLIE's singular values over "
    "CLOE's, which measure the stiffness of the loop, are then nearest the paper's (Tables 2 and "
    "5), and because position and torque errors have the sizes of Table 3 together.",
    "Errors: random torques act on the joints, 10 % of each torque's rms with a corner at 50 Hz, "
    "and the logged torque is the controller's, as the paper's is. With white noise of the "
    "logged torque instead, residuals are white without decimation too (Table 8), and CLOE, "
    "which does not use the torque, would meet the encoder's rounding alone.",
    "Plant: the base parameters beside the 28 are zero, as the paper's F-test has them. With all "
    "of the twin's the F-test rejects that, and joints 2 and 3 keep residuals that are not white "
    "even with decimation (Table 8): the twin has a moment my2 that Table 1 leaves out.",
    "Slow rows: rows of a joint slower than 1 % of its largest speed are not fitted, which the "
    "paper does not mention. Where they are kept, LS finds too little Coulomb friction without "
    "any error in the data (Table 6): its columns hold the sign of a velocity that is next to "
    "zero. Those of DIDIM turn as smoothly as the simulated friction and are not affected.",
    "Friction: the robot's sign turns within 0.1 % of a joint's largest speed, the estimators' "
    "within 0.3 % (0.6 % in the reduced form), about as sharply as ode3 bears. In Tables 6 and 7 "
    "both turn within the latter width unless a row says otherwise.",
    "CLOE's bias: none of the mismatches of friction makes it. A wrong width of the sign or a "
    "Stribeck effect moves CLOE and CLIE alike, with stiff gains and with soft ones (Table 6), "
    "as section 4.2 of the paper lets expect: both see a torque error through the same loop. "
    "CLOE alone is moved by what the estimators do not know of the controller. A feed-forward of "
    "12 % of the Coulomb friction gives the paper's pattern: fc1 to fc5 fall by 10 % or more, "
    "fcm6 stays, CLIE and DIDIM stay (Table 7). The paper's joints 5 and 6 fall further. An "
    "integral action or lower gains make an error of that size as well, spread over other "
    "parameters.",
    "Weights: here all methods but LS weigh each joint by its error's standard deviation; the "
    "paper's Gauss-Newton steps do not. CLOE and CLIE are weighed alike, so that without a "
    "mismatch they are one estimator.",
    "Steps: CLIE and CLOE come near the answer by a few steps of DIDIM before those of Levenberg "
    "and Marquardt that are counted, with exact sensitivities instead of differences.",
    "Rows: filter edges and slow rows leave fewer than the paper's 276 a joint. Tables 6 and 7 "
    "and the cases beside the first of Table 8 are logged at 1 kHz and start from least squares; "
    "the others start from ia_j = 1 (ia5 = 2).",
)
