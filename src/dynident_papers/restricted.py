"""Overly restrictive constraints: the first half of scenario 3 (ardiani2024, IV-D).

Bounds that the true parameters do not meet, what tells of them, and the constrained
estimate predicted from the unconstrained one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.consistency.active import predicted, predicted_by_instruments
from dynident.consistency.constraints import Bounds
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.estimators.closed_loop import Simulation, auxiliary_model
from dynident.regression.factors import InstrumentSystem
from dynident.regression.problem import Problem
from dynident_papers.estimates import (
    METHODS,
    PAPERS,
    Fit,
    Outcome,
    fitted,
    overall_error,
    torque_share,
)
from dynident_papers.scenarios import Bench
from dynident_papers.tables import Table

NEAR, FAR = 0.8, 0.9
"""Bounds over the unconstrained estimate (IV-D)."""
FEW_BOUNDS = 5
"""Of the best known parameters, so that the others are free to move."""
STUCK = 1e-6
"""Distance from a bound, in widths of its interval, that counts as none."""
SELF = "Z = X"
"""Label of the regressor as its own instruments: Pi is the identity."""


@dataclass(frozen=True)
class Bounded:
    """An estimate under bounds, or without.

    Attributes
    ----------
    label : str
        Of the scenario.
    method : str
    words : str
        "none", "(27)", or how many parameters are bounded.
    fit : Fit
    outside : int
        Parameters whose true value is outside their bounds.
    stuck : tuple of int
        Parameters that lie on a bound.
    gradient : float
        ``||Z^T (y - X beta)|| / ||Z^T y||``, g_IV of section III-H; of DIDIM with Z for X.
    """

    label: str
    method: str
    words: str
    fit: Fit
    outside: int = 0
    stuck: tuple[int, ...] = ()
    gradient: float = np.nan


@dataclass(frozen=True)
class Prediction:
    """A constrained estimate from the unconstrained one on the same instruments.

    Differences are the largest of all parameters in standard deviations, eq. (42).

    Attributes
    ----------
    label : str
        Where the instruments are from.
    words : str
        How many parameters are bounded.
    identity : float
        ``|Pi beta - beta|`` of the unconstrained estimate.
    free : int
        Parameters that are on no bound.
    moved : float
        By how much the constraints move these.
    exact, instruments : float
        Error of `predicted`, and of `predicted_by_instruments`, eq. (45).
    """

    label: str
    words: str
    identity: float
    free: int
    moved: float
    exact: float
    instruments: float


# ---- bounds


def restricted(
    bench: Bench, outcome: Outcome, methods: Sequence[tuple[str, str]]
) -> tuple[list[Bounded], list[Prediction]]:
    """Methods without bounds, under (27), and with a few and with all parameters bounded.

    Parameters
    ----------
    bench : Bench
    outcome : Outcome
        Of the same scenario.
    methods : sequence of (str, str)
        A method and its constrained form, as names of `METHODS`.

    Returns
    -------
    bounded : list of Bounded
        Bounds are `NEAR` and `FAR` over IDIM-IV's estimate, whatever the method.
    predictions : list of Prediction
        Of IDIM-IV.
    """
    problem, simulation = outcome.problem, bench.simulation(outcome.scenario)
    label, iv = outcome.scenario.label, outcome.fits["idim-iv"]
    found = []
    for free, held in methods:
        found.append(Bounded(label, free, "none", outcome.fits[free]))
        found.append(Bounded(label, held, PAPERS, outcome.fits[held]))
        found += [
            under_bounds(problem, simulation, label, held, iv, chosen, bench.truth)
            for chosen in choices(iv)
        ]
    predictions = []
    for k, b in enumerate(found):
        if b.fit.beta is not None:
            system = final_system(problem, simulation, b.fit)
            found[k] = replace(b, gradient=gradient(b.method, b.fit.beta, system))
            if b.stuck and b.method == "pc-idim-iv":
                predictions.append(prediction(b, system))
    return found, predictions


def identical(bench: Bench, outcome: Outcome) -> list[Prediction]:
    """Predictions where Pi = I: PC-IDIM-LS is PC-IDIM-IV with the regressor for instruments."""
    problem, simulation = outcome.problem, bench.simulation(outcome.scenario)
    ls = outcome.fits["wls"]
    found = []
    for chosen in choices(ls):
        b = under_bounds(problem, simulation, SELF, "pc-idim-ls", ls, chosen, bench.truth)
        if b.fit.sigma is not None:
            factors = problem.with_instruments(problem).instrument_factors
            found.append(prediction(b, factors.weighted(b.fit.sigma)))
    return found


def choices(free: Fit) -> list[list[int]]:
    """The `FEW_BOUNDS` parameters of the least relative deviation, and all."""
    if free.beta is None or free.std is None:
        return []
    known = np.argsort(-np.abs(free.beta) / free.std)
    return [sorted(known[:FEW_BOUNDS].tolist()), list(range(len(free.beta)))]


def under_bounds(
    problem: Problem,
    simulation: Simulation,
    label: str,
    method: str,
    free: Fit,
    chosen: Sequence[int],
    truth: Array,
) -> Bounded:
    """An estimate with ``0.8 b <= beta_j <= 0.9 b`` (or the reverse) for some parameters.

    Parameters
    ----------
    free : Fit
        With the estimate b.
    chosen : sequence of int
        Which parameters.
    truth : ndarray, shape (60,)
    """
    assert free.beta is not None
    index = np.asarray(chosen)
    edges = np.sort(np.outer(free.beta[index], [NEAR, FAR]), axis=1)
    bounds = tuple(
        Bounds((problem.base.names[k],), *edge)
        for k, edge in zip(chosen, edges.tolist(), strict=True)
    )
    knowledge = Knowledge(consistency="none", constraints=bounds)
    fit = fitted(problem, simulation, method, knowledge, bootstrap=0)
    outside = (truth[index] < edges[:, 0]) | (truth[index] > edges[:, 1])
    stuck: list[int] = []
    if fit.beta is not None:
        distance = np.min(np.abs(fit.beta[index, None] - edges), axis=1)
        stuck = index[distance <= STUCK * (edges[:, 1] - edges[:, 0])].tolist()
    return Bounded(label, method, str(len(chosen)), fit, int(np.sum(outside)), tuple(stuck))


def final_system(problem: Problem, simulation: Simulation, fit: Fit) -> InstrumentSystem:
    """Rows ``[Z | X | y]`` of the last step of an iteration over simulations.

    Its Z belongs to the estimate before the last. Only on the same instruments is the
    constrained estimate a function of the unconstrained one.
    """
    assert fit.history is not None
    assert fit.sigma is not None
    simulated = auxiliary_model(problem, simulation).simulated(fit.history[-2])
    return problem.with_instruments(simulated).instrument_factors.weighted(fit.sigma)


def gradient(method: str, beta: Array, system: InstrumentSystem) -> float:
    """``||Z^T (y - X beta)|| / ||Z^T y||``, with Z for X of DIDIM; rows are weighted."""
    z = system.instruments
    model = system.R[:z, :z] if method.endswith("didim") else system.R[:z, z:-1]
    torque, transposed = system.R[:z, -1], system.R[:z, :z].T
    error = np.linalg.norm(transposed @ (torque - model @ beta))
    return float(error / np.linalg.norm(transposed @ torque))


def white_std(system: InstrumentSystem) -> Array:
    """Standard deviations of eq. (42), shape (60,)."""
    return np.asarray(np.linalg.norm(system.projected.inverse(), axis=1))


def prediction(found: Bounded, system: InstrumentSystem) -> Prediction:
    """Both formulas against an estimate, on the instruments that it was made with."""
    assert found.fit.beta is not None
    held, beta = list(found.stuck), found.fit.beta
    std, free = white_std(system), system.projected.solve()
    rest = np.setdiff1d(np.arange(len(free)), held)

    def largest(difference: Array) -> float:
        return float(np.max(np.abs(difference), initial=0.0))

    return Prediction(
        found.label,
        found.words,
        largest((system.Pi @ free - free) / std),
        len(rest),
        largest((beta - free)[rest] / std[rest]),
        largest((predicted(system.projected, held, beta[held]) - beta) / std),
        largest((predicted_by_instruments(system, held, beta[held]) - beta) / std),
    )


# ---- tables


def bounds_table(bench: Bench, found: Sequence[Bounded]) -> Table:
    """What overly restrictive bounds do, and what tells of them."""
    rows, label, reasons = [], "", []
    for b in found:
        row = ["" if b.label == label else b.label, METHODS[b.method], b.words]
        label = b.label
        if b.fit.beta is None:
            reasons.append(
                f"{METHODS[b.method]}, scenario {b.label}, bounds {b.words}: {b.fit.failure}."
            )
            rows.append((*row, "", "fails", *[""] * 6))
            continue
        bounded = b.words not in ("none", PAPERS)
        row += [str(b.outside) if bounded else "", str(b.fit.iterations)]
        row.append(str(len(b.stuck)) if bounded else str(len(b.fit.active)))
        held, least, p_value = b.fit.restriction, "", ""
        if held is not None:
            least = f"{min(abs(value) for _, value in held.multipliers):.0e}"
            p_value = f"{held.p_value:.1g}"
        row += [least, f"{b.gradient:.0e}", p_value]
        row.append(f"{torque_share(bench.clean, b.fit.beta - bench.truth):.2f}")
        rows.append((*row, f"{overall_error(bench.held_out, b.fit.beta):.2f}"))
    return Table(
        "Scenario 3: bounds at 0.8 and 0.9 of the estimate of IV",
        ("loop", "method", "bounds", "true\noutside", "iter-\nations", "on a\nbound",
         "least\nmult.", "g_IV", "p", "weighted\n[%]", "held out\n[%]"),
        tuple(rows),
        (
            "Bounds on the five parameters that are known best, or on all 60; loops are those of "
            "scenarios 1 and 4. True outside: bounded parameters whose true value misses its "
            "bounds. On a bound: how many estimates stick to one. Least multiplier: the smallest "
            "of these. g_IV = ||Z'(y - X b)|| / ||Z'y||, with Z for X of DIDIM. p: of the price "
            "that the constraints have in chi-squared.",
            *reasons,
        ),
    )  # fmt: skip


def prediction_table(found: Sequence[Prediction]) -> Table:
    """The constrained estimate from the unconstrained one, by both formulas."""
    rows, label = [], ""
    for p in found:
        cells = ["" if p.label == label else p.label, p.words, f"{p.identity:.2g}", str(p.free)]
        label = p.label
        rows.append((*cells, f"{p.moved:.2f}", f"{p.exact:.0e}", f"{p.instruments:.2g}"))
    return Table(
        "Scenario 3: PC-IDIM-IV from the unconstrained estimate",
        ("instruments", "bounds", "|Pi b - b|\n[sigma]", "free", "moved\n[sigma]",
         "exact\n[sigma]", "eq. (45)\n[sigma]"),
        tuple(rows),
        (
            "Largest of all parameters, in standard deviations of eq. (42). Free: parameters on "
            "no bound, which the bounds of the others move. Exact: b_U + Q_UU^-1 Q_UC (b_C - d) "
            "with Q = X'Z (Z'Z)^-1 Z'X and d the bounds, on the instruments of the last step; "
            "eq. (45) has (Z_U'X_U)^-1 Z_U'X_C for it.",
        ),
    )  # fmt: skip
