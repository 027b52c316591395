"""What the run shows beside the paper, in sentences whose figures are the run's.

A remark is left out where the run does not hold what it speaks of, as under ``--quick``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from dynident.conic.cones import list_constraint_names
from dynident.consistency.feasible_set import build_feasible_set
from dynident.core.arrays import Array
from dynident.estimators.iteration import CONVERGED
from dynident_papers.ardiani2024.estimated import (
    ACTUAL,
    BIASED,
    CONSTRAINED,
    CONTROLLER,
    DOWNGRADED,
    FEW,
    KNOWLEDGE,
    LOST,
    MAIN,
    METHODS,
    OF_THE_PAPER,
    SMOOTH,
    STRIBECK,
    TWO_LOGS,
    WEAK,
    Fit,
    Results,
    measure_held_out_error,
    measure_joint_errors,
    measure_overall_error,
    measure_weighted_error,
)
from dynident_papers.ardiani2024.scenario3 import (
    BAND,
    EQUAL,
    EQUAL_CLEAN,
    EQUAL_CONSISTENT,
    NARROWEST,
    NONE,
    SELF,
    Third,
    describe_band,
)
from dynident_papers.ardiani2024.simulated import (
    BANDWIDTH,
    CORNER,
    DURATION,
    POSITION_FILTER,
    SLOW,
    SPREAD,
    STRIBECK_SPEED,
    VELOCITY_LAG,
    WIDTH,
    Scenario,
)
from dynident_papers.ardiani2024.tables import format_filters
from dynident_papers.published import (
    ARDIANI,
    ARDIANI_ITERATIONS,
    ARDIANI_RESTRICTED,
    CONDITION,
)
from dynident_papers.report import format_range, join_words

SIGNIFICANCE = 0.01
"""Of the tests that are said to reject."""


def collect_remarks(found: Results, third: Third) -> tuple[str, ...]:
    """The remarks of some results."""
    remarks = (remark(found, third) for remark in REMARKS)
    return tuple(words for words in remarks if words)


# ---- how it is set up


def describe_twin(found: Results, third: Third) -> str:
    """The robot and its references."""
    values = found.bench.clean.factors.singular_values()
    return (
        f"Robot: the TX40 twin with its {len(values)} base parameters. The references are random "
        f"points, chosen for a condition number near the paper's {CONDITION} (it is "
        f"{values[0] / values[-1]:.0f}), joined by smoothed bang-bang moves that take "
        f"{DURATION:g} s together; those of the cross-validations are quintics through others."
    )


def describe_twin_controller(found: Results, third: Third) -> str:
    """The controller, and what is wrong with it in scenario 4."""
    bands = join_words([f"{hz:g}" for hz in sorted(set(BANDWIDTH.tolist()))])
    return (
        "Controller: P around P without feed-forward, sampled with the log, its velocity "
        f"differenced from encoder counts over {1e3 * VELOCITY_LAG:g} ms. Gains are for the mean "
        "inertia, not the twin's: critically damped, with the position loops' 3 dB at "
        f"{bands} Hz. In scenario 4 the gains of both simulated loops are times "
        f"{CONTROLLER.bandwidth:g}, and with them the band."
    )


def describe_random_errors(found: Results, third: Third) -> str:
    """The random torques."""
    words = (
        f"Errors: random torques on the joints with a corner at {CORNER:g} Hz, which the log does "
        "not hold. Their size is chosen so that the direct errors of scenario 1 come near Table "
        "I's"
    )
    gaps = [
        np.abs(errors - ARDIANI["I"][m]).max()
        for m, errors in measure_direct_errors(found, ACTUAL).items()
    ]
    if not gaps:
        return f"{words}."
    return f"{words}; that they do, within {max(gaps):.1f} points, is no finding."


def describe_slow_rows(found: Results, third: Third) -> str:
    """Rows that are left out."""
    return (
        f"Slow rows: rows of a joint slower than {SLOW:g} widths of the smoothed sign, "
        f"{100.0 * SLOW * WIDTH:g} % of its top speed, are not fitted. The paper does not mention "
        "it; near standstill the sign of a measured velocity is not the robot's friction, "
        "whatever the noise."
    )


def describe_iterations(found: Results, third: Third) -> str:
    """Where iterations start and end."""
    return (
        "Start and end: iterations start from CAD values, which are the twin's inertials and "
        f"rotors, each wrong by up to {100.0 * SPREAD:g} %, without friction, and from Ia = 1 "
        f"alone. They end by eq. (46) with a tolerance of {100.0 * CONVERGED:g} % of the value or "
        "of its standard deviation, whichever is larger: eq. (46) alone waits for the last digits "
        "of parameters that are zero. LS is weighted by joint."
    )


# ---- the log


def describe_log(found: Results, third: Third) -> str:
    """The measured log, or why there is none."""
    bench = found.log.bench
    if bench is None:
        return f"Log: left out: {found.log.missing}."
    recording = bench.log.recording
    return (
        f"Log: the first {len(recording.q) / recording.rate:g} s of the TX40's of the examples. "
        "Its loop is assumed: the law and the gains that come with the twin, along moves from stop "
        "to stop through the demand with which they give the logged torques. CAD values are the "
        "inertials of its file with the drives that then fit. Standard deviations are those on "
        "active faces."
    )


def describe_log_encoders(found: Results, third: Third) -> str | None:
    """Scenario 2 on the log."""
    before, after = (measure_log_errors(found, s) for s in (ACTUAL, DOWNGRADED))
    if not before or before.keys() != after.keys():
        return None
    change = max(np.abs(after[m] - before[m]).max() for m in before)
    return (
        f"Scenario 2 on the log: counts of {DOWNGRADED.stored:g} degrees change the direct errors "
        f"by {change:.1f} points at most; LS has {format_range(after['wls'])} % where Table III "
        f"has {format_range(ARDIANI['III']['wls'])}."
    )


def describe_log_controller(found: Results, third: Third) -> str | None:
    """Scenario 4 on the log."""
    errors = measure_log_errors(found, CONTROLLER, ("idim-iv", "pc-idim-iv", "pc-didim"))
    wrong = found.log.outcomes.get(CONTROLLER.label)
    good = found.log.outcomes.get(ACTUAL.label)
    if len(errors) < 3 or wrong is None or good is None:
        return None
    didim = wrong.fits["didim"]
    lost = "fails" if didim.beta is None else f"settles in {didim.iterations} simulations"
    shown = {
        method: f"{METHODS[method]} {format_range(own)} % (the paper's "
        f"{format_range(ARDIANI['V'][method])})"
        for method, own in errors.items()
    }
    return (
        f"Scenario 4 on the log: {CONTROLLER.bandwidth:g} of the band leaves "
        f"{join_words(list(shown.values()))}; DIDIM {lost}. The torques of IV along the simulated "
        f"motion are {wrong.apart:.1f} % off those along the measured one ({good.apart:.1f} in "
        "scenario 1; Z - X of the tests). The assumed law feeds the reference's velocity forward; "
        "of the paper's, P around P, nothing of the kind is said."
    )


def describe_log_constraints(found: Results, third: Third) -> str | None:
    """What constraints cost on the log."""
    priced = {
        name: fit.restriction.p_value
        for (method, name), fit in found.log.compared.items()
        if method == "pc-idim-iv" and fit.restriction is not None
    }
    if not priced:
        return None
    told = join_words([f"{name} p = {p:.1g}" for name, p in priced.items()])
    refused = [name for name, p in priced.items() if p < SIGNIFICANCE]
    verdict = (
        f"the log contradicts {join_words(refused)}" if refused else "the log contradicts none"
    )
    return f"Constraints on the log, price of PC-IV in chi-squared: {told}; {verdict}."


def describe_gain_update(found: Results, third: Third) -> str | None:
    """What gains that follow the estimate do from rotors alone."""
    if not found.started:
        return None
    off, on = (
        [
            fit
            for (*_, update), fits in found.started.items()
            if update is own
            for fit in fits.values()
        ]
        for own in (False, True)
    )
    pairs = [
        (a.iterations, b.iterations)
        for a, b in zip(off, on, strict=True)
        if a.beta is not None and b.beta is not None
    ]
    fewer, more = (sum(sign * (b - a) > 0 for a, b in pairs) for sign in (-1, 1))
    return (
        f"gain_update from rotors alone: of {len(off)} runs {count_failures(off)} fail without "
        f"and {count_failures(on)} with it; of the {len(pairs)} that settle both ways {fewer} take "
        f"fewer simulations with it and {more} take more."
    )


def count_failures(fits: Sequence[Fit]) -> int:
    """How many have no estimate."""
    return sum(fit.beta is None for fit in fits)


def measure_log_errors(
    found: Results, scenario: Scenario, methods: Sequence[str] = FEW
) -> dict[str, Array]:
    """Direct errors of the joints on the log by method, without those that failed [%]."""
    outcome = found.log.outcomes.get(scenario.label)
    fits = {} if outcome is None else {m: outcome.fits[m].beta for m in methods}
    return {
        m: measure_joint_errors(outcome.problem, b)
        for m, b in fits.items()
        if b is not None and outcome is not None
    }


# ---- scenario 2


def describe_coarse_encoders(found: Results, third: Third) -> str | None:
    """With the paper's filters."""
    fine, coarse = measure_direct_errors(found, ACTUAL), measure_direct_errors(found, DOWNGRADED)
    if not fine or fine.keys() != coarse.keys():
        return None
    bench = found.bench
    before, after = (
        format_range(
            [measure_weighted_error(bench, b) for b in collect_betas(found, scenario).values()],
            ".2f",
        )
        for scenario in (ACTUAL, DOWNGRADED)
    )
    passed = POSITION_FILTER * BANDWIDTH.max() / (0.5 * bench.rate)
    change = max(np.abs(coarse[m] - fine[m]).max() for m in fine)
    return (
        f"Scenario 2: the paper's LS has {format_range(ARDIANI['III']['wls'])} % in Table III. "
        "Here, with the paper's filters, the coarse encoder changes the direct errors by "
        f"{change:.1f} points at most; the errors of the parameters (weighted) are {after} % with "
        f"it and {before} % without: at {bench.rate / 1e3:g} kHz no more than "
        f"{100.0 * passed:.0f} % of white rounding is below {POSITION_FILTER:g} omega_dyn."
    )


def describe_in_sample_errors(found: Results, third: Third) -> str | None:
    """That Table III cannot have in-sample errors."""
    table = ARDIANI["III"]
    if not np.all(np.greater(table["wls"], table["idim-iv"])):
        return None
    shares = []
    for outcome in found.outcomes.values():
        ls, others = outcome.fits["wls"].beta, set(outcome.fits) - {"wls"}
        if ls is None:
            continue
        factors = outcome.problem.factors
        sigma2 = factors.squared_residuals(ls) / [group.rows for group in factors.groups]
        costs = [
            float(np.sum(factors.squared_residuals(b) / sigma2))
            for b in (ls, *collect_betas(found, outcome.scenario, sorted(others)).values())
        ]
        shares += [cost / costs[0] for cost in costs[1:]]
    if not shares:
        return None
    return (
        "Table III has more error for LS than for IV at every joint. In-sample errors of least "
        "squares as eq. (9) has it cannot have that, whatever the weights of the joints: least "
        "squares is the estimate that has the least. Here the weighted squares of the others are "
        f"at least {min(shares):.4f} times those of LS on the same rows, in every scenario."
    )


def describe_weaker_filters(found: Results, third: Third) -> str | None:
    """Where LS is biased, and where the paper's figures could be from."""
    outcome = found.outcomes.get(BIASED.label)
    if outcome is None or outcome.along is None:
        return None
    own = collect_betas(found, BIASED)
    if len(own) < len(FEW):
        return None
    bench, table = found.bench_of(BIASED), ARDIANI["III"]
    out = {m: measure_held_out_error(bench, b) for m, b in own.items()}
    on_x, on_z = (
        {m: measure_overall_error(rows, b) for m, b in own.items()}
        for rows in (outcome.problem, outcome.along)
    )
    away = {
        name: max(abs(found_[m] - np.mean(table[m])) for m in ("idim-iv", "didim"))
        for name, found_ in (("X", on_x), ("Z", on_z))
    }
    nearer = min(away, key=lambda name: away[name])
    joints = measure_joint_errors(outcome.problem, own["wls"])
    means = {m: float(np.mean(table[m])) for m in FEW}
    return (
        f"Weaker filters, {describe_scenario_filters(BIASED)}: held-out errors are "
        f"{describe_method_errors(out)} %. In-sample, on X, they have "
        f"{describe_method_errors(on_x)} %, along the simulated motion, on Z, "
        f"{describe_method_errors(on_z)} %; in Table III they have "
        f"{describe_method_errors(means)} % (means of the joints). The paper's figures of IV and "
        f"DIDIM are nearer ours on {nearer}, with data that are filtered less than II-C says. "
        "Joint by joint LS has here "
        f"{', '.join(f'{x:.0f}' for x in joints)} %, there "
        f"{', '.join(f'{x:.0f}' for x in table['wls'])} %."
    )


def describe_noisy_signs(found: Results, third: Third) -> str | None:
    """IV, noise in the positions and Coulomb friction."""
    rough, smooth = (DOWNGRADED, *WEAK[:3]), SMOOTH[:2]
    if any(s.label not in found.outcomes for s in (*rough, *smooth)):
        return None

    def errors(scenarios: Iterable[Scenario], method: str) -> str:
        cells = []
        for s in scenarios:
            b = collect_betas(found, s).get(method)
            cells.append(
                "fails" if b is None else f"{measure_held_out_error(found.bench_of(s), b):.1f}"
            )
        return ", ".join(cells)

    cutoffs, fewer = ([format_filters(s)[1] for s in group] for group in (rough, smooth))
    return (
        f"IV and noisy positions: with the position filter alone widened (cutoff "
        f"{', '.join(cutoffs)}) held-out errors of LS are {errors(rough, 'wls')} %, of IV "
        f"{errors(rough, 'idim-iv')}, of DIDIM {errors(rough, 'didim')}; without Coulomb friction "
        f"({', '.join(fewer)}) those of IV are {errors(smooth, 'idim-iv')}. X holds the sign of a "
        "noisy velocity, whose mean is not the sign of the true one, so that E(Z^T eps) = 0 does "
        "not hold; DIDIM does not use the measured motion."
    )


# ---- constraints


def describe_constraints_27(found: Results, third: Third) -> str | None:
    """Eq. (27), what it selects and what is active of it."""
    bench = found.bench
    base = bench.clean.base
    system = bench.clean.factors.weighted(np.ones(bench.robot.n))
    selected = list_constraint_names(
        build_feasible_set(base, system, KNOWLEDGE[OF_THE_PAPER]).cones
    )
    active: dict[str, float] = {}
    gaps = []
    for scenario in (ACTUAL, DOWNGRADED, CONTROLLER):
        fits = found.outcomes[scenario.label].fits
        errors = measure_direct_errors(found, scenario, (*FEW, *CONSTRAINED))
        for free, constrained in zip(FEW, CONSTRAINED, strict=True):
            if free in errors and constrained in errors:
                gaps.append(np.abs(errors[free] - errors[constrained]).max())
                std = fits[free].std
                for constraint in fits[constrained].active:
                    k = base.names.index(constraint.split(" ")[0])
                    size = np.inf if std is None else abs(bench.truth[k]) / std[k]
                    active[constraint] = max(active.get(constraint, 0.0), float(size))
    words = (
        f"Constraints of the tables beside the paper's: eq. (27), which selects the base "
        f"parameters that have to be positive. We take the {len(selected)} of {base.count} that "
        "no consistent robot can have negative."
    )
    if not gaps:
        return words
    if active:
        words += (
            f" Active in scenarios 1, 2 and 4: {join_words(list(active))}, with true values of at "
            f"most {max(active.values()):.1f} standard deviations."
        )
    return f"{words} The direct errors move by {max(gaps):.2f} points at most."


def describe_bootstrap(found: Results, third: Third) -> str | None:
    """What the bootstrap does to standard deviations."""
    fits = found.outcomes[ACTUAL.label].fits
    free, constrained = fits["idim-iv"], fits["pc-idim-iv"]
    if free.std is None or constrained.std is None or not constrained.active:
        return None
    truth, kept = found.bench.truth, constrained.std > 0.0
    ratio = float(np.median(constrained.std[kept] / free.std[kept]))
    return (
        "With an active constraint standard deviations are bootstrapped. PC-IV's are in the "
        f"median {ratio:.2f} of IV's in scenario 1; errors are {constrained.sigmas(truth):.2f} of "
        f"them (rms), those of IV {free.sigmas(truth):.2f} of its own."
    )


def describe_constraints_19(found: Results, third: Third) -> str:
    """Eq. (19) and the prior."""
    return (
        "Eq. (19) has the standard parameters instead: definite pseudo-inertias and positive "
        "drives. The prior, which the paper does not have, is the library's default: inertials of "
        "the robot file, weakly believed. The twin's file holds the truth, so the estimators are "
        f"given the CAD values for it: right in shape, up to {100.0 * SPREAD:g} % wrong in mass."
    )


def describe_constrained_bias(found: Results, third: Third) -> str | None:
    """Constraints on biased least squares, and where IV cannot simulate its own estimate."""
    biased = collect_betas(found, BIASED, ("wls", "pc-idim-ls"))
    if len(biased) < 2 or any(s.label not in found.compared for s in LOST):
        return None

    def error(b: Array | None) -> str:
        return "fails" if b is None else f"{measure_held_out_error(found.bench, b):.1f} %"

    words = (
        f"Bias under constraints ({describe_scenario_filters(BIASED)}), held-out: LS "
        f"{error(biased['wls'])}, under (27) {error(biased['pc-idim-ls'])}; the paper says that "
        "constraints do not remove a bias."
    )
    for scenario in LOST:
        known = collect_betas(found, scenario, ("idim-iv", "pc-idim-iv"))
        own = found.compared[scenario.label]["pc-idim-iv", "(19)"]
        words += (
            f" With {describe_scenario_filters(scenario)}: IV {error(known.get('idim-iv'))}, PC-IV "
            f"under (27) {error(known.get('pc-idim-iv'))}, under (19) "
            f"{error(own.beta)}{format_constraint_price(own)}."
        )
    return (
        f"{words} Base parameters that satisfy (27) can still have a mass matrix that is not "
        "definite."
    )


# ---- scenario 4


def describe_wrong_controller(found: Results, third: Third) -> str | None:
    """What IV keeps and DIDIM loses."""
    bench, methods = found.bench, ("idim-iv", "pc-idim-iv")
    good, wrong = (collect_betas(found, s, methods) for s in (ACTUAL, CONTROLLER))
    if len(good) < 2 or len(wrong) < 2:
        return None
    before, after = (
        {m: measure_weighted_error(bench, b) for m, b in x.items()} for x in (good, wrong)
    )
    outcome, theirs = found.outcomes[CONTROLLER.label], ARDIANI_ITERATIONS[CONTROLLER.label]
    didim = outcome.fits["didim"]
    lost = "fails"
    if didim.beta is not None:
        lost = (
            f"{measure_weighted_error(bench, didim.beta):.2f} % after {didim.iterations} "
            "simulations"
        )
    words = "Scenario 4, weighted errors: " + "; ".join(
        f"{METHODS[m]} {after[m]:.2f} % ({before[m]:.2f} in scenario 1)" for m in methods
    )
    words += f"; DIDIM {lost} (the paper: {theirs['didim']})."
    fits = [found.compared[CONTROLLER.label]["pc-didim", name] for name in KNOWLEDGE]
    known = [(fit.iterations, fit.beta) for fit in fits if fit.beta is not None]
    if fits[0].beta is None:
        return words
    ratios = [measure_weighted_error(bench, b) / after["idim-iv"] for _, b in known]
    errors = [
        *measure_joint_errors(outcome.problem, fits[0].beta),
        *(measure_overall_error(log, fits[0].beta) for log in found.checks[CONTROLLER.label]),
    ]
    return (
        f"{words} PC-DIDIM under {join_words(list(KNOWLEDGE))} has {format_range(ratios)} times "
        f"IV's after {format_range([n for n, _ in known], '.0f')} simulations (the paper: "
        f"{theirs['pc-didim']}); its relative errors under {OF_THE_PAPER} are "
        f"{format_range(errors)} %, the paper's "
        f"{format_range([*ARDIANI['V']['pc-didim'], *ARDIANI['VI']['pc-didim']])} %. How far the "
        "simulated motion is off depends on the references and on the velocity loop, which the "
        "paper does not give."
    )


def describe_corrected_didim(found: Results, third: Third) -> str | None:
    """DIDIM with Pi^-1."""
    gaps = []
    for outcome in found.outcomes.values():
        iv, other = outcome.fits["idim-iv"], outcome.fits.get("pi-didim")
        if other is not None and other.beta is not None and iv.beta is not None:
            assert iv.std is not None
            gaps.append(float(np.max(np.abs(other.beta - iv.beta) / iv.std)))
    if not gaps:
        return None
    return (
        f"Corrected by Pi^-1 at each step DIDIM is IV to {max(gaps):.0e} sigma, as the paper has "
        "it: with as many instruments as parameters the two are one formula."
    )


# ---- scenario 3


def describe_tight_bounds(found: Results, third: Third) -> str | None:
    """What sticks to overly restrictive bounds, and what tells of them."""
    names = found.bench.clean.base.names
    known = [b for b in third.bounded if b.fit.beta is not None]
    free = [b for b in known if b.words == NONE]
    ours = [b for b in known if b.words == OF_THE_PAPER]
    tight = [b for b in known if b.words not in (NONE, OF_THE_PAPER)]
    if not free or not ours or not tight:
        return None
    everywhere = [b for b in tight if int(b.words) == len(names)]
    loose = [n for k, n in enumerate(names) if any(k not in b.stuck for b in everywhere)]
    inside = [int(b.words) - b.outside for b in tight]
    p_27, p_tight = (
        [b.fit.restriction.p_value for b in group if b.fit.restriction is not None]
        for group in (ours, tight)
    )
    words = (
        "Scenario 3, bounds: the paper has all estimates stick to their bounds. Ours that do not "
        f"in some run with all parameters bounded: {join_words(loose) if loose else 'none'}. The "
        f"true values of {format_range(inside, '.0f')} bounded parameters are inside. g_IV is "
        f"{max(b.gradient for b in free):.0e} or less of free estimates, "
        f"{min(b.gradient for b in tight):.0e} or more under these bounds."
    )
    if not p_27 or not p_tight:
        return words
    called = sum(b.gradient > ARDIANI_RESTRICTED for b in ours)
    return (
        f"{words} The paper's threshold, {ARDIANI_RESTRICTED:.0e}, also calls (27) restrictive, in "
        f"{called} of {len(ours)} runs. The price tells them apart: p = "
        f"{format_range(p_27, '.1g')} under (27), {max(p_tight):.0e} or less under these bounds."
    )


def describe_equation_45(found: Results, third: Third) -> str | None:
    """Eq. (45) beside the exact formula."""
    errors = {
        label: [p.instruments for p in third.predictions if p.label == label]
        for label in (SELF, ACTUAL.label, CONTROLLER.label)
    }
    if not all(errors.values()):
        return None
    return (
        "Scenario 3, eq. (45): its prediction of the constrained estimate is off by "
        f"{max(errors[SELF]):.0e} sigma where Pi = I, by {max(errors[ACTUAL.label]):.2g} in "
        f"scenario 1 and by {max(errors[CONTROLLER.label]):.2g} with the wrong controller. It "
        "makes the errors orthogonal to Z_U, while the minimum of the criterion (28) makes them "
        "orthogonal to P_Z X_U. With Q = X' P_Z X in its place it is off by "
        f"{max(p.exact for p in third.predictions):.0e} at most."
    )


def describe_problem_47(found: Results, third: Third) -> str | None:
    """The band of problem (47), and what (19) adds to (27)."""
    within, narrowest = third.decision(describe_band("pc-idim-iv")), third.decision(NARROWEST)
    own = third.decision(EQUAL_CONSISTENT)
    fits = {name: found.compared[ACTUAL.label]["pc-idim-iv", name] for name in KNOWLEDGE}
    if within is None or narrowest is None or any(f.beta is None for f in fits.values()):
        return None
    if within.theta is None:
        return "Scenario 3, problem (47): infeasible, where the paper finds it feasible."
    base = found.bench.clean.base
    words = "Scenario 3, problem (47): feasible, as the paper has it"
    std = fits[OF_THE_PAPER].std
    if own is not None and own.theta is not None and std is not None:
        gap = np.abs(base.matrix @ (within.theta - own.theta))
        kept = std > 0.0
        words += (
            f"; its answer is that of PC-IV under (19) to {np.max(gap[kept] / std[kept]):.0e} sigma"
        )
    words += (
        f". That they differ from b_CIV by less than {BAND:g} sigma is what the band imposes and "
        "no proof that (27) and (19) are equivalent"
    )
    if narrowest.theta is not None:
        words += f"; the narrowest band that has an answer is of {narrowest.distance:.2f} sigma"
    taken = {n: 0 if f.restriction is None else f.restriction.freedom for n, f in fits.items()}
    out = {
        n: measure_held_out_error(found.bench, f.beta)
        for n, f in fits.items()
        if f.beta is not None
    }
    return (
        f"{words}. (19) takes {taken['(19)']} directions where (27) takes {taken['(27)']}, and "
        f"PC-IV has a held-out error of {out['(19)']:.2f} % with it, {out['(27)']:.2f} with (27) "
        f"and {out['(19), prior']:.2f} with the prior."
    )


def describe_equality_form(found: Results, third: Third) -> str | None:
    """The equality form of problem (47)."""
    equal = third.decision(EQUAL)
    civ = collect_betas(found, ACTUAL, ("pc-idim-iv",)).get("pc-idim-iv")
    if equal is None or civ is None:
        return None
    if equal.theta is not None:
        return f"The equality b {EQUAL} is feasible, where the paper finds it infeasible."
    words = f"The equality b {EQUAL} is infeasible, as the paper finds"
    others = [
        (EQUAL_CONSISTENT, "the base parameters of PC-IV under (19), from the same data"),
        (EQUAL_CLEAN, "those of noise-free rows"),
    ]
    possible = [
        what
        for key, what in others
        for d in (third.decision(key),)
        if d is not None and d.theta is not None
    ]
    if possible:
        words += (
            ", but not because an estimate is no deterministic value: a consistent robot has "
            f"exactly {join_words(possible)}"
        )
    names = found.bench.clean.base.names
    Izz, Ixy = civ[names.index("Izz6")], civ[names.index("Ixy6")]
    if Izz < 2.0 * abs(Ixy):
        words += (
            f". b_CIV has Izz6 = {Izz:.2g} < 2 |Ixy6| = {2.0 * abs(Ixy):.2g}, which no body can "
            "have and (27) does not know"
        )
    return f"{words}."


# ---- tests and scenario 5


def describe_rejected_tests(found: Results, third: Third) -> str | None:
    """What the tests reject, and the size of Pi - I."""
    outcomes = [found.outcomes[s.label] for s in MAIN if s.label in found.outcomes]
    known = [o for o in outcomes if o.identity is not None]
    if not known:
        return None
    rejected = [o.scenario.label for o in known if o.identity and o.identity.p_value < SIGNIFICANCE]
    exogenous = [
        o.scenario.label for o in known if o.fits["idim-iv"].tests[-1].p_value < SIGNIFICANCE
    ]
    shifts = {o.scenario.label: o.shift for o in known}
    wrong = shifts.pop(CONTROLLER.label, None)
    words = (
        f"Tests: Pi = I is rejected in {describe_scenarios(rejected)}; the paper accepts it in "
        "scenario 1."
    )
    if ACTUAL.label in rejected:
        words += (
            " V is so small that the test sees the estimate's own error in the simulated motion, "
            "and rows correlated in time count as independent in it."
        )
    if wrong is not None and shifts:
        words += (
            f" |Pi b - b| is {format_range(shifts.values(), '.2f')} sigma of IV in "
            f"{describe_scenarios(list(shifts))}, {wrong:.1f} in {CONTROLLER.label}."
        )
    return (
        f"{words} Exogeneity of X is rejected in {describe_scenarios(exogenous)}: the random "
        "torques move the robot, and correlated rows count as independent here, too."
    )


def describe_stribeck_effect(found: Results, third: Third) -> str | None:
    """Where a Stribeck effect goes."""
    without, with_ = (found.outcomes[s.label].fits for s in (TWO_LOGS, STRIBECK))
    words = (
        f"Scenario 5: the robot's friction at standstill is {1.0 + STRIBECK.stribeck:g} times fc, "
        f"falling over {STRIBECK_SPEED:g} rad/s, and a second log of {DURATION:g} s at low speed "
        "is added."
    )
    truth, parts = found.bench.truth, []
    for name, own in (("inertial", ~found.friction), ("friction", found.friction)):
        before, after = (
            [fits[m].sigmas(truth, own) for m in FEW if fits[m].std is not None]
            for fits in (without, with_)
        )
        if not before or not after:
            return words
        parts.append(
            f"{name} parameters {format_range(after, '.2f')} sigma "
            f"({format_range(before, '.2f')} without)"
        )
    growth = [
        float(np.median(after / before))
        for m in FEW
        for before, after in ((without[m].std, with_[m].std),)
        if before is not None and after is not None
    ]
    words += f" Errors with it (rms; LS, IV, DIDIM): {join_words(parts)}."
    return (
        f"{words} Sigma is {format_range(growth)} times that without (median)." if growth else words
    )


# ---- words


def collect_betas(
    found: Results, scenario: Scenario, methods: Sequence[str] = FEW
) -> dict[str, Array]:
    """Estimates by method, without those that failed or were not asked for."""
    outcome = found.outcomes.get(scenario.label)
    fits = {} if outcome is None else outcome.fits
    known = {m: fits[m].beta for m in methods if m in fits}
    return {m: b for m, b in known.items() if b is not None}


def measure_direct_errors(
    found: Results, scenario: Scenario, methods: Sequence[str] = FEW
) -> dict[str, Array]:
    """Direct errors of the joints by method, without those that failed [%]."""
    problem = found.outcomes[scenario.label].problem
    return {
        m: measure_joint_errors(problem, b)
        for m, b in collect_betas(found, scenario, methods).items()
    }


def describe_method_errors(errors: dict[str, float]) -> str:
    """Errors with their methods."""
    return join_words([f"{error:.1f} ({METHODS[m]})" for m, error in errors.items()])


def describe_scenario_filters(scenario: Scenario) -> str:
    """The filters of a scenario."""
    _, position, _ = format_filters(scenario)
    torque = (
        "torques neither filtered nor decimated"
        if scenario.rows == "all"
        else f"torque cutoff x {scenario.torque:g}"
    )
    return f"position cutoff {position}, {torque}"


def format_constraint_price(fit: Fit) -> str:
    """The price of active constraints in brackets, or nothing."""
    return "" if fit.restriction is None else f" (p = {fit.restriction.p_value:.1g})"


def describe_scenarios(labels: Sequence[str]) -> str:
    """Scenarios by their labels."""
    return f"scenarios {join_words(labels)}" if labels else "no scenario"


REMARKS: tuple[Callable[[Results, Third], str | None], ...] = (
    describe_twin,
    describe_twin_controller,
    describe_random_errors,
    describe_slow_rows,
    describe_iterations,
    describe_log,
    describe_log_encoders,
    describe_log_controller,
    describe_log_constraints,
    describe_gain_update,
    describe_coarse_encoders,
    describe_in_sample_errors,
    describe_weaker_filters,
    describe_noisy_signs,
    describe_constraints_27,
    describe_bootstrap,
    describe_constraints_19,
    describe_constrained_bias,
    describe_wrong_controller,
    describe_corrected_didim,
    describe_tight_bounds,
    describe_equation_45,
    describe_problem_47,
    describe_equality_form,
    describe_rejected_tests,
    describe_stribeck_effect,
)
"""Each makes one remark, or None where the run does not show it."""
