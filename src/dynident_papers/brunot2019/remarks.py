"""What the run shows beside the paper, in sentences whose figures are the run's.

A remark is left out where the run does not hold what it speaks of, as under ``--quick``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynident.core.arrays import Array
from dynident_papers.brunot2019.estimated import (
    FEED_FORWARD,
    KINDS,
    LOW_PASS,
    MAIN,
    METHODS,
    MISMATCHES,
    NOISES,
    SIMULATING,
    WORDS,
    Answer,
    Answers,
    Results,
    take_beta_or_nan,
)
from dynident_papers.brunot2019.measured import INTEGRATOR
from dynident_papers.brunot2019.simulated import COULOMB, CUTOFF, DISTURBANCE, NAMES, SLOW
from dynident_papers.brunot2019.tables import (
    compute_condition_numbers,
    compute_loop_figures,
    compute_published_ratios,
    compute_singular_ratios,
    count_within,
    count_within_of_ls,
    list_error_sources,
    list_published_values,
    measure_log_biases,
    measure_share_above,
)
from dynident_papers.measured import ASKED, EXACT, FOLLOWED, REFERENCES
from dynident_papers.published import (
    BANDWIDTHS,
    BRUNOT,
    BRUNOT_ERRORS,
    BRUNOT_SAMPLES,
    BRUNOT_SINGULAR,
    CONDITION,
)
from dynident_papers.report import format_digits, format_range, join_words

ALONE = 5.0
"""CLOE's error over CLIE's above which a mismatch is said to move CLOE alone."""
FELT = 1.0
"""Errors of the Coulomb friction that are as good as none [%]."""


def collect_remarks(found: Results) -> tuple[str, ...]:
    """The remarks of some results, those of methods that failed first."""
    failures = tuple(
        f"{WORDS[method]} on rows '{KINDS[kind]}' failed: {answer}."
        for (kind, method), answer in found.answers.items()
        if isinstance(answer, str)
    )
    remarks = (remark(found) for remark in REMARKS)
    return (*failures, *(words for words in remarks if words))


def describe_twin_motion(found: Results) -> str:
    """References, length and condition."""
    all_, few = (
        compute_condition_numbers(found.main.full)[0],
        compute_condition_numbers(found.main.problem)[0],
    )
    theirs = BRUNOT_SINGULAR["decimated", "didim"][2]
    return (
        "Motion: the references pass through the points at which the published log of this robot "
        f"rests, with limits fitted to that log. {found.scale.duration:g} s are logged, "
        f"{found.scale.duration * found.scale.rate:.0f} samples (the paper has "
        f"{BRUNOT_SAMPLES['all']}). The condition of the decimated regressor is {all_:.0f} for "
        f"the {found.main.full.base.count} parameters without offsets and {few:.0f} for the "
        f"{len(NAMES)}; the paper has {CONDITION} for all of its columns, but {theirs:.0f} for "
        f"{len(NAMES)} of them (Table 5), and no matrix is worse conditioned with fewer columns."
    )


def describe_twin_controller(found: Results) -> str:
    """Gains, and what speaks for them."""
    loop = compute_loop_figures(found)
    least = int(np.argmin(loop.damping))
    words = (
        "Controller: the gains are those that come with the twin, read as kp (qref - q) + kd "
        f"(dqref - dq), sampled. Their bands are {format_range(loop.band / BANDWIDTHS)} times "
        f"those of ardiani2024, IV-A; joint {least + 1} has the least damping, "
        f"{loop.damping[least]:.2f} (Table A)."
    )
    designed = next((a for s, _, a in found.mismatches if s.designed), None)
    stiff = compute_singular_ratios(
        found.answers["decimated", "clie"], found.answers["decimated", "cloe"]
    )
    soft = None if designed is None else compute_singular_ratios(designed["clie"], designed["cloe"])
    if stiff is None or soft is None:
        return words
    theirs = compute_published_ratios("decimated")
    gaps = [np.abs(np.log(ours / theirs)).max() for ours in (stiff, soft)]
    nearer = "are" if gaps[0] < gaps[1] else "are not"
    return (
        f"{words} CLIE's singular values over CLOE's, which measure the stiffness of the loop, "
        f"{nearer} nearer the paper's with them than with gains for the bands of ardiani2024 "
        "(Table 5)."
    )


def describe_random_errors(found: Results) -> str:
    """What is random."""
    words = (
        f"Errors: random torques act on the joints, {100.0 * DISTURBANCE:g} % of each torque's rms "
        f"with a corner at {CUTOFF:g} Hz. The logged torque is the controller's, as the paper's."
    )
    white = average_white_shares(
        find_noise_answers(found, "white noise of the logged torque"), "all"
    )
    own = average_white_shares(find_noise_answers(found, MAIN.label), "all")
    if not white or not own:
        return words
    return (
        f"{words} On every sample {format_range(own.values(), '.2f')} of the residuals' "
        "autocorrelations are then within two sigma; with white noise of the logged torque "
        f"instead {format_range(white.values(), '.2f')} are (Table 8), and CLOE, which does not "
        "use the torque, would meet the encoder's rounding alone."
    )


def describe_plant(found: Results) -> str | None:
    """What the parameters beside the essential ones do."""
    tests = {setting.label: test for setting, test, _ in found.noises}
    other = NOISES[1].label
    with_, without = find_noise_answers(found, other), find_noise_answers(found, MAIN.label)
    if with_ is None or without is None or other not in tests:
        return None
    worst = {
        name: min(answers.values())
        for name, answers in (
            ("with", find_least_white_shares(with_, "decimated")),
            ("without", find_least_white_shares(without, "decimated")),
        )
        if answers
    }
    base = found.main.full.base
    factors = found.main.full.factors
    beta = base.matrix @ found.twin.theta
    size = {
        name: sum(float(np.sum((g.factor[:, k] * beta[k]) ** 2)) for g in factors.groups)
        for k, name in enumerate(base.names)
        if name not in NAMES
    }
    largest = max(size, key=lambda name: size[name])
    percent = 100.0 * np.sqrt(size[largest] / np.sum(factors.squared_torques))
    words = (
        f"Plant: the base parameters beside the {len(NAMES)} are zero, as the paper's F-test has "
        f"them (F = {format_digits(tests[MAIN.label].statistic)}). With all of the twin's it has "
        f"{format_digits(tests[other].statistic)}"
    )
    if len(worst) == 2:
        words += (
            ", and of the decimated residuals' autocorrelations as few as "
            f"{worst['with']:.2f} of a joint are within two sigma ({worst['without']:.2f} without "
            "them; Table 8)"
        )
    return (
        f"{words}. The largest of those that Table 1 leaves out is the twin's {largest}, "
        f"{percent:.1f} % of the torque."
    )


def describe_slow_rows(found: Results) -> str:
    """Rows near standstill."""
    words = (
        f"Slow rows: rows of a joint slower than {100.0 * SLOW:g} % of its largest speed are not "
        "fitted, which the paper does not mention."
    )
    without, with_ = found.biases(MISMATCHES[0]), found.biases(MISMATCHES[1])
    if not np.isfinite([*without.values(), *with_.values()]).all():
        return words
    rest = format_range([b[m] for b in (without, with_) for m in SIMULATING], ".1f")
    return (
        f"{words} Without any error in the data LS is off by {without['ols']:.1f} % in the Coulomb "
        f"friction, and by {with_['ols']:.1f} % where they are kept (Table 6): its columns hold "
        "the sign of a velocity that is next to zero. Those of the other methods turn as smoothly "
        f"as the simulated friction; they are off by {rest} %."
    )


def describe_sign_widths(found: Results) -> str:
    """Widths of the sign."""
    assert MAIN.plant_width is not None
    plant, main, side = (
        f"{100.0 * width:g} %" for width in (MAIN.plant_width, found.scale.width, found.side.width)
    )
    return (
        f"Friction: the robot's sign turns within {plant} of a joint's largest speed, the "
        f"estimators' within {main}. In Tables 6 and 7 both turn within {side} unless a row says "
        "otherwise."
    )


def describe_cloe_bias(found: Results) -> str | None:
    """Which mismatches move CLOE alone, and the pattern of the feed-forward."""
    alone, alike = [], []
    for setting, _, _ in found.mismatches:
        bias = found.biases(setting)
        if not np.isfinite([bias["cloe"], bias["clie"]]).all():
            continue
        if bias["cloe"] > ALONE * bias["clie"] + FELT:
            alone.append(setting.label)
        elif max(bias["cloe"], bias["clie"]) > FELT:
            alike.append(bias["cloe"] / bias["clie"])
    if not alone and not alike:
        return None
    words = "CLOE's bias (Table 6):"
    if alone:
        words += f" CLOE alone is moved by {join_words(alone)}."
    if alike:
        words += (
            f" Whatever else moves them moves CLOE {format_range(alike, '.2f')} times as far as "
            "CLIE; section 4.2 of the paper lets expect that it moves them alike, as both see a "
            "torque error through the same loop."
        )
    changes = measure_coulomb_changes(found)
    if changes is None:
        return words
    reference = list_published_values("decimated", "ols")
    theirs = list_published_values("decimated", "cloe") / reference - 1.0
    own = [k for k in COULOMB if NAMES[k] != "fcm6"]
    m6 = NAMES.index("fcm6")
    return (
        f"{words} Under the feed-forward CLOE's fc of the joints change by "
        f"{format_range([changes['cloe'][k] for k in own], '+.0f')} % and its fcm6 by "
        f"{changes['cloe'][m6]:+.0f} %, those of CLIE and DIDIM by "
        f"{format_range([changes[m][k] for m in ('clie', 'didim') for k in COULOMB], '+.0f')} % "
        "(Table 7); against its LS the paper's CLOE has "
        f"{format_range([100.0 * theirs[k] for k in own], '+.0f')} % and "
        f"{100.0 * theirs[m6]:+.0f} %."
    )


def describe_joint_weights(found: Results) -> str:
    """Of the joints, and how steps are counted."""
    return (
        "Weights and steps: all methods but LS weigh each joint by its error's standard deviation; "
        "the paper's Gauss-Newton steps do not. CLOE and CLIE come near the answer by a few steps "
        "of DIDIM before those of Levenberg and Marquardt that are counted, with exact "
        "sensitivities instead of differences."
    )


def describe_row_counts(found: Results) -> str:
    """How many rows, and where iterations start."""
    counts = [group.rows for group in found.main.problem.factors.groups]
    return (
        f"Rows: filter edges and slow rows leave {format_range(counts, '.0f')} decimated rows a "
        f"joint where the paper has {BRUNOT_SAMPLES['decimated']}. Tables 6 and 7 and the cases "
        f"beside the first of Table 8 are logged at {found.side.rate / 1e3:g} kHz and start from "
        "least squares; the others start from the paper's values, rotors alone."
    )


def find_noise_answers(found: Results, label: str) -> Answers | None:
    """The answers under random errors of a setting."""
    return next((answers for setting, _, answers in found.noises if setting.label == label), None)


def average_white_shares(answers: Answers | None, kind: str) -> dict[str, float]:
    """Share of white autocorrelations on one kind of rows by method, mean over the joints."""
    return {m: float(np.mean(a.inside)) for m, a in select_answers(answers, kind).items()}


def find_least_white_shares(answers: Answers, kind: str) -> dict[str, float]:
    """The same of the joint that has the least."""
    return {m: float(np.min(a.inside)) for m, a in select_answers(answers, kind).items()}


def select_answers(answers: Answers | None, kind: str) -> dict[str, Answer]:
    """The answers on one kind of rows by method, without those that failed."""
    return {
        method: answer
        for (rows, method), answer in (answers or {}).items()
        if rows == kind and not isinstance(answer, str)
    }


def measure_coulomb_changes(found: Results) -> dict[str, Array] | None:
    """What the feed-forward makes of the Coulomb friction by method [%]; None if one failed."""
    run = found.mismatch(FEED_FORWARD)
    if run is None:
        return None
    truth, answers = run
    changes = {m: 100.0 * (take_beta_or_nan(answers[m]) / truth - 1.0) for m in METHODS}
    return changes if all(np.isfinite(c).all() for c in changes.values()) else None


def describe_log(found: Results) -> str:
    """The measured log and how its loop is simulated, or why there is none."""
    measured = found.measured
    if measured.bench is None:
        return f"Log: left out: {measured.missing}."
    log = measured.bench.recording
    words = (
        f"Log: the first {len(log.q) / log.rate:g} s of the TX40's of the examples, with the "
        "twin's law and gains, which are assumed, and a reference that is rebuilt: moves from stop "
        "to stop through the demand with which that law gives the logged torques, unless a table "
        f"says otherwise. Loops are integrated by {INTEGRATOR} at the log's clock"
    )
    refused = [note for note in measured.chatter.values() if note]
    if not refused:
        return f"{words}."
    return (
        f"{words}: of CLOE's {len(measured.chatter)} estimates on decimated rows {len(refused)} "
        f"have friction over inertia that ode3 would not follow ({refused[0]})."
    )


def describe_headline(found: Results) -> str | None:
    """What the paper says of CLOE, on the log and on the twin."""
    log, twin = found.measured.answers.get((ASKED, True)), count_within_of_ls(found.answers)
    counts = {} if log is None else count_within_of_ls(log)
    if not counts or not twin:
        return None
    reference = BRUNOT["decimated", "ols"].values()
    centre, std = (np.array([getattr(e, kind) for e in reference]) for kind in ("value", "std"))
    theirs = count_within(list_published_values("decimated", "cloe"), centre, std)
    return (
        f"The paper's finding (Table 10): of {len(NAMES)} estimates CLIE and DIDIM have "
        f"{format_range([counts['clie'], counts['didim']], '.0f')} within three sigma of LS on the "
        f"log, CLOE {counts['cloe']} (the paper's {theirs}), and all of them "
        f"{format_range(twin.values(), '.0f')} on the twin, whose reference and gains the "
        "estimators know."
    )


def describe_torque_errors(found: Results) -> str | None:
    """Why the logged torques are further from any model than the paper's, and what limits it."""
    sources = list_error_sources(found)
    own = sources.get(f"log, {ASKED}")
    if own is None or found.measured.bench is None:
        return None
    few = {m: answer for m, answer in own.items() if m != "cloe"}
    simulated = [answer for m, answer in few.items() if m != "ols"]
    theirs = [BRUNOT_ERRORS[m][1] for m in SIMULATING if m != "cloe"]
    shares = measure_share_above(found.measured.bench.full.samples[0], LOW_PASS)
    clie, ls = few["clie"].torques, few["ols"].torques
    nearer = np.abs(np.mean([a.slow_torque for a in simulated]) - np.mean(theirs)) < np.abs(
        np.mean([a.torque for a in simulated]) - np.mean(theirs)
    )
    words = (
        f"Torques of the log: {join_words([WORDS[m] for m in few if m != 'ols'])} leave "
        f"{format_range([a.torque for a in simulated])} % of them, the inverse model along the "
        f"measured motion, which needs no loop, {few['ols'].torque:.1f} %. {format_range(shares)} "
        f"% of a joint's torque is above {LOW_PASS:g} Hz, in the mean {np.mean(shares):.1f} %; "
        f"CLIE's error has {np.mean(clie.fast):.1f} % there (Table 3c). Below it they leave "
        f"{format_range([a.slow_torque for a in simulated])} % and {few['ols'].slow_torque:.1f} %; "
        f"the paper's {format_range(theirs, '.2f')} % {'are' if nearer else 'are not'} nearer "
        f"these. Rows too slow to be fitted hold {np.mean(clie.resting):.1f} % of CLIE's, the "
        f"others {np.mean(clie.moving):.1f} % ({np.mean(ls.moving):.1f} % of LS's)."
    )
    exact = sources.get(f"log, {EXACT}")
    if exact is None:
        return words
    return (
        f"{words} Under the demand itself, along which the assumed loop follows the log whatever "
        f"its gains, CLIE leaves {exact['clie'].slow_torque:.1f} % below {LOW_PASS:g} Hz: that "
        "much is the model's and no error of the loop."
    )


def describe_references(found: Results) -> str | None:
    """What CLOE and CLIE make of a reference that is not quite the robot's."""
    rows = []
    for reference in REFERENCES:
        own = found.measured.answers.get((reference, True), {})
        clie, bias = own.get(("decimated", "clie")), measure_log_biases(own) if own else []
        if isinstance(clie, Answer) and np.isfinite(bias).all():
            cells = dict(zip(SIMULATING, bias, strict=True))
            rows.append((reference, clie.position, cells))
    if len(rows) < len(REFERENCES):
        return None
    told = "; ".join(
        f"{reference}: {position:.3f} %, {cells['clie']:.0f} and {cells['cloe']:.0f} %"
        for reference, position, cells in rows
    )
    gaps = {reference: abs(cells["cloe"] - cells["clie"]) for reference, _, cells in rows}
    words = (
        f"Reference of the log: error of CLIE's positions, and changes of CLIE's and of CLOE's "
        f"Coulomb friction against LS (Table 6; {len(NAMES)} parameters): {told}. The paper has "
        f"{BRUNOT_ERRORS['clie'][0]:g} %."
    )
    if gaps[EXACT] < FELT * ALONE and min(gaps[FOLLOWED], gaps[ASKED]) > FELT * ALONE:
        words += (
            " With the demand itself, under which the loop repeats the log whatever its gains, "
            "CLOE finds what CLIE finds, as on the twin: what it loses with the others is its "
            "answer to an error of the reference or of the gains, which CLIE hardly heeds."
        )
    return (
        f"{words} That demand holds the log's noise and ripple, so that it proves nothing of "
        "either method's consistency."
    )


def describe_assumed_loops(found: Results) -> str | None:
    """What gains and delays do to the log's figures."""
    loops = found.measured.loops
    pairs = {k: (a["clie"], a["cloe"]) for k, a in loops.items()}
    known = {
        k: (clie, cloe)
        for k, (clie, cloe) in pairs.items()
        if isinstance(clie, Answer) and isinstance(cloe, Answer)
    }
    if not known:
        return None
    clie, cloe = ([pair[j] for pair in known.values()] for j in (0, 1))
    theirs = BRUNOT_ERRORS["cloe"][1]
    nearest = min(known, key=lambda k: abs(known[k][1].slow_torque - theirs))
    return (
        f"Gains and delays of the log (Table 3d): of the loops that were tried CLIE leaves "
        f"{format_range([a.torque for a in clie])} % of the torques and "
        f"{format_range([a.slow_torque for a in clie])} % below {LOW_PASS:g} Hz; CLOE "
        f"has {format_range([a.torque for a in cloe])} and "
        f"{format_range([a.slow_torque for a in cloe])} %, nearest the paper's {theirs:g} % with "
        f"{nearest}."
    )


def describe_inverted_matrices(found: Results) -> str | None:
    """Whose singular values the paper's are."""
    if found.measured.bench is None:
        return None
    counts = {True: len(NAMES), False: found.measured.bench.full.base.count}
    sets = {n: found.measured.answer(ASKED, own, "all", "clie") for own, n in counts.items()}
    theirs = np.array(BRUNOT_SINGULAR["all", "clie"][:2])
    gaps, words = {}, []
    for count, answer in sets.items():
        if not isinstance(answer, Answer):
            return None
        values = answer.estimate.singular_values
        assert values is not None
        ends = np.array([values[0], values[-1]])
        gaps[count] = float(np.abs(np.log(ends / theirs)).max())
        words.append(f"{format_digits(ends[0])} and {format_digits(ends[1])} of {count} parameters")
    return (
        f"Singular values of the log, CLIE, every sample: {join_words(words)}; Table 2 has "
        f"{format_digits(theirs[0])} and {format_digits(theirs[1])}, nearest those of "
        f"{min(gaps, key=lambda count: gaps[count])}, although its estimates are {len(NAMES)}."
    )


def describe_essential_set(found: Results) -> str | None:
    """Whether the 28 are enough for the log."""
    test = found.measured.test
    if test is None:
        return None
    verdict = "rejects" if test.rejected else "does not reject"
    return (
        f"Essential parameters of the log: {test.distribution} = {test.statistic:.3g} (p = "
        f"{test.p_value:.1g}) {verdict} that those beside the {len(NAMES)} are zero, by least "
        "squares on decimated rows that count as independent (Table 8); the paper's test accepts "
        "it."
    )


def describe_log_whiteness(found: Results) -> str | None:
    """Whether decimation makes the log's residuals white, as the paper's third figure has them."""
    shares = {
        m: float(np.mean(answer.inside))
        for m, answer in select_measured(found).items()
        if m in ("clie", "didim")
    }
    twin = average_white_shares(found.answers, "decimated")
    if len(shares) < 2 or not twin:
        return None
    return (
        f"Whiteness: on decimated rows of the log {format_range(shares.values(), '.2f')} of the "
        f"autocorrelations of CLIE and DIDIM are within two sigma, of the twin "
        f"{format_range(twin.values(), '.2f')} (Table 8); the paper's figure of DIDIM has nearly "
        "all of its robot's. Standard deviations by the paper's formula, which counts rows as "
        "independent, are no measure on the log."
    )


def select_measured(found: Results) -> dict[str, Answer]:
    """Answers on the log, decimated rows, of all parameters where there are any."""
    for essential in (False, True):
        own = found.measured.answers.get((ASKED, essential))
        if own:
            return select_answers(own, "decimated")
    return {}


REMARKS: tuple[Callable[[Results], str | None], ...] = (
    describe_log,
    describe_headline,
    describe_torque_errors,
    describe_references,
    describe_assumed_loops,
    describe_inverted_matrices,
    describe_essential_set,
    describe_log_whiteness,
    describe_twin_motion,
    describe_twin_controller,
    describe_random_errors,
    describe_plant,
    describe_slow_rows,
    describe_sign_widths,
    describe_cloe_bias,
    describe_joint_weights,
    describe_row_counts,
)
"""Each makes one remark, or None where the run does not show it."""
