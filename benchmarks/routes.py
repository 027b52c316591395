"""Other routes from a log to standard parameters, beside constrained estimation.

    python benchmarks/routes.py

Writes docs/figures/routes.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import FIGURES
from logs import HALVES, LWR4, LWR4_MISSING, lwr4_logs, tx40_halves

import dynident as di
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.space import build_standard_space
from dynident.core.errors import ComputationError
from dynident.estimators.essential import select_essential_parameters
from dynident.fit.figures import score_all_samples
from dynident.methods import ESTIMATORS
from dynident.recording.prepare import Samples
from dynident_papers.report import join_words
from dynident_papers.routes import (
    ROUTES,
    Routed,
    cad_difference,
    find_exactly_consistent,
    fit_cad_values,
    measure_route,
    truncated_svd,
    weigh_rows,
)

OUT = FIGURES / "routes.md"
LOWPASS_HZ = 6.0
FILE, FITTED_DRIVES = "the robot file", "the robot file, drives fitted"
NO_PRIOR, DEFAULT = "pc-idim-ls, prior none", "pc-idim-ls (the default)"
SVD_SCALED, CAD_SCALED = "truncated-svd, columns scaled", "cad-difference, columns scaled"
LINEAR = ("minimum-norm", "truncated-svd", "cad-difference")


@dataclass(frozen=True)
class Case:
    """Logs to fit and a log to test on."""

    title: str
    problem: di.Problem
    held_out: Samples


@dataclass(frozen=True)
class Row(Routed):
    """What one route came to, and its error on the other log [%]."""

    held_out: float = np.nan


def tx40() -> Case:
    study, robot, fit, test = tx40_halves()
    first, second = (f"{start}-{stop}" for start, stop in HALVES)
    title = f"TX40: first half (rows {first}) to second half ({second})"
    return Case(title, di.Problem(robot, fit, study.robot.friction), test)


def lwr4() -> list[Case]:
    robot, samples = lwr4_logs()
    return [
        Case(
            f"LWR4+: run{'s' * (len(train) > 1)} {' + '.join(map(str, train))} to run {test}",
            di.Problem(robot, [samples[k] for k in train]),
            samples[test],
        )
        for train, test in (((1,), 3), ((2, 3), 1))
    ]


def constrained(problem: di.Problem, known: Knowledge) -> np.ndarray:
    """Standard parameters of `pc-idim-ls`, which gives them wherever it gives an answer."""
    theta = ESTIMATORS["pc-idim-ls"](problem, known).theta
    assert theta is not None
    return theta


def candidates(problem: di.Problem) -> dict[str, np.ndarray | str]:
    """Standard parameters by every route; a message where there are none."""
    given = weigh_rows(problem)
    unit = build_standard_space(problem.base, given.system.A, given.system.b).unit
    file = np.zeros(len(problem.idim.parameters))
    file[: problem.idim.inertial] = problem.robot.nominal.ravel()
    makers: dict[str, Callable[[], np.ndarray]] = {
        FILE: lambda: file,
        FITTED_DRIVES: partial(fit_cad_values, problem),
        **{name: partial(route, problem) for name, route in ROUTES.items()},
        SVD_SCALED: partial(truncated_svd, problem, unit),
        CAD_SCALED: partial(cad_difference, problem, unit),
        NO_PRIOR: partial(constrained, problem, Knowledge(prior="none")),
        DEFAULT: partial(constrained, problem, Knowledge()),
    }
    found: dict[str, np.ndarray | str] = {}
    for name, make in makers.items():
        try:
            found[name] = make()
        except ComputationError as error:
            found[name] = str(error)
    return found


def evaluated(case: Case) -> dict[str, Row]:
    """Errors, consistency and distance of every route on one case."""
    problem, idim = case.problem, case.problem.idim
    found = candidates(problem)
    sets = {name: theta for name, theta in found.items() if not isinstance(theta, str)}
    held_out = score_all_samples(
        idim, list(sets.values()), case.problem.on(case.held_out).samples, LOWPASS_HZ
    )
    best = ESTIMATORS["wls"](problem)
    failed = {name: reason for name, reason in found.items() if isinstance(reason, str)}
    rows = {name: Row(None, reason) for name, reason in failed.items()}
    for (name, theta), test in zip(sets.items(), held_out, strict=True):
        rows[name] = Row(**vars(measure_route(problem, theta, best)), held_out=test.overall_percent)
    return {name: rows[name] for name in found}


def table(case: Case, rows: dict[str, Row]) -> list[str]:
    links = case.problem.idim.tree.bodies
    drives = sum(p.positive for p in case.problem.idim.parameters)
    lines = [
        "| route | fitted [%] | held out [%] | inconsistent links | drive parameters not positive "
        "| smallest eigenvalue | distance from WLS [std] |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        if row.theta is None:
            lines.append(f"| {name} | none: {row.failure} | | | | | |")
            continue
        lost = "the file has none" if name == FILE else f"{row.lost} of {drives}"
        lines.append(
            f"| {name} | {row.fitted_percent:.2f} | {row.held_out:.2f} "
            f"| {row.inconsistent} of {links} | {lost} | {row.eigenvalue:.2g} "
            f"| {row.distance:.2f} |"
        )
    return lines


def sums(results: list[tuple[Case, dict[str, Row]]], name: str) -> tuple[int, int]:
    """Inconsistent links and links of a route over all cases in which it was solved."""
    solved = [(c, rows[name]) for c, rows in results if rows[name].theta is not None]
    return sum(r.inconsistent for _, r in solved), sum(
        c.problem.idim.tree.bodies for c, _ in solved
    )


def figures(results: list[tuple[Case, dict[str, Row]]], name: str, what: str) -> str:
    """A figure of a route in each case."""
    return join_words(
        [
            "none" if rows[name].theta is None else f"{getattr(rows[name], what):.3g}"
            for _, rows in results
        ]
    )


def findings(results: list[tuple[Case, dict[str, Row]]]) -> list[str]:
    """What the tables show, every number computed from them, in the order of the tables."""
    same, other, feasible, moved, kept = [], [], [], [], []
    best: list[str] = []
    sound: list[str] = []
    for case, rows in results:
        problem, given = case.problem, weigh_rows(case.problem)
        sets = {name: row.theta for name, row in rows.items() if row.theta is not None}
        least_norm = sets["minimum-norm"]
        size = np.linalg.norm(least_norm)
        same.append(float(np.linalg.norm(least_norm - sets["truncated-svd"]) / size))
        other.append(float(np.linalg.norm(least_norm - sets[SVD_SCALED]) / size))
        feasible.append("yes" if find_exactly_consistent(given, given.beta) is not None else "no")
        if "sousa-correction" in sets and NO_PRIOR in sets:
            step = problem.base.matrix @ (sets["sousa-correction"] - sets[NO_PRIOR])
            moved.append(float(np.abs(step / ESTIMATORS["wls"](problem).covariance.std).max()))
        count = len(select_essential_parameters(problem.factors, given.sigma).kept)
        kept.append(f"{count} of {problem.base.count}")
        solved = {name: rows[name] for name in sets}
        possible = {n: r for n, r in solved.items() if not r.inconsistent and not r.lost}
        for group, chosen in ((solved, best), (possible, sound)):
            least = min(r.held_out for r in group.values())
            names = [n for n, r in group.items() if r.held_out < least + 0.005]
            chosen.append(f"{' = '.join(names)} ({least:.2f} %)")
    links = {name: "{} of {}".format(*sums(results, name)) for name in (*ROUTES, CAD_SCALED)}
    agreement = (
        f"their base parameters differ by at most {max(moved):.1g} standard deviations where "
        f"both were solved ({len(moved)} of {len(results)} cases)"
        if moved
        else "in no case were both solved"
    )
    lost = sums(results, "cad-difference")[0]
    warning = " Being nearest to CAD does not make a set consistent by itself." if lost else ""
    return [
        "## What the tables show",
        "",
        "Every number is computed from the runs above; where there are several they are in the "
        "order of the tables.",
        "",
        "* `truncated-svd` is `minimum-norm`: the two differ by "
        f"{max(same):.1g} of the set's norm at most. With columns in units of each link's mass "
        "and 0.1 m the same formula gives the same torques by another set, "
        f"{join_words([f'{100 * o:.0f}' for o in other])} % of that norm away: what is filled in "
        "rests on the units.",
        "* Links that cannot exist, over all cases: "
        + ", ".join(f"`{name}` {links[name]}" for name in LINEAR)
        + f", `{CAD_SCALED}` {links[CAD_SCALED]}; the fit is that of least squares in all of "
        "them." + warning,
        f"* Essential parameters ({join_words(kept)} kept) leave "
        f"{links['cad-difference-essential']} links inconsistent; fitted error "
        f"{figures(results, 'cad-difference-essential', 'fitted_percent')} % against "
        f"{figures(results, 'cad-difference', 'fitted_percent')} % of all base parameters, "
        "held out "
        f"{figures(results, 'cad-difference-essential', 'held_out')} % against "
        f"{figures(results, 'cad-difference', 'held_out')} %.",
        "* Does a consistent set exist for the least-squares estimate itself? "
        f"{join_words(feasible).capitalize()}.",
        "* `sousa-correction`, with the distance weighted by the covariance, has the criterion of "
        f"`{NO_PRIOR}` up to a constant: {agreement}. With the authors' distance, which weights "
        "nothing, the fitted error is "
        f"{figures(results, 'sousa-correction-euclidean', 'fitted_percent')} % against "
        f"{figures(results, 'sousa-correction', 'fitted_percent')} %.",
        f"* Lowest held-out error: {'; '.join(best)}. Of the sets in which all links and drives "
        f"can exist: {'; '.join(sound)}.",
        "",
    ]


def main() -> None:
    """Write the page."""
    cases = [tx40()]
    here = LWR4.is_dir()
    if here:
        cases += lwr4()
    lines = [
        "# Other routes to standard parameters",
        "",
        "Made by `.venv/bin/python benchmarks/routes.py`.",
        "",
        "From a log to a full set of standard parameters by those of `dynident_papers.routes`, "
        "beside constrained estimation. *Fitted* is the relative torque error on the filtered, "
        "decimated rows; *held out* that of all joints and all samples of the other log, measured "
        f"and predicted torque low-passed at {LOWPASS_HZ:g} Hz (zero phase). A link is "
        "inconsistent when its pseudo-inertia is not positive definite; the smallest eigenvalue "
        "is that of all links (kg and kg m^2 mixed, so that only its sign and rough size say "
        "something). The last column is the rms over the base parameters of their difference from "
        "weighted least squares, in its standard deviations. CAD values are the robot file's "
        "inertials, with drives fitted beside them. *Columns scaled* counts parameters in units "
        "of each link's mass and 0.1 m. A route that found no certified answer says so in its "
        "row.",
        "",
    ]
    results = []
    for case in cases:
        rows = evaluated(case)
        results.append((case, rows))
        lines += [f"## {case.title}", "", *table(case, rows), ""]
    if not here:
        lines += [LWR4_MISSING, ""]
    lines += findings(results)
    OUT.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
