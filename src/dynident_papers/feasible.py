"""Constraints on base parameters, eq. (27), beside those on standard parameters, eq. (19).

The second half of scenario 3 (ardiani2024, IV-D): what each does to the estimates, and
problem (47), whether a consistent robot has the base parameters that were found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynident.conic.cones import Cone, Definite, Positive
from dynident.conic.solve import solve_cone_problem
from dynident.consistency.constraints import Bounds
from dynident.consistency.feasible_set import FeasibleSet, build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.nearest import consistent_witness
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InfeasibleError
from dynident.core.inertia import smallest_eigenvalue
from dynident.regression.factors import InstrumentSystem
from dynident.regression.problem import Problem
from dynident_papers.estimates import (
    ACTUAL,
    CONTROLLER,
    KNOWLEDGE,
    METHODS,
    Outcome,
    Results,
    fitted,
    overall_error,
    torque_share,
)
from dynident_papers.restricted import final_system, white_std
from dynident_papers.scenarios import Bench
from dynident_papers.tables import Table

BAND = 3.0
"""Half width of the bounds of (47) in standard deviations."""


@dataclass(frozen=True)
class Decision:
    """Whether a consistent robot has some base parameters, or others near them.

    Attributes
    ----------
    words : str
        What is asked of the base parameters.
    theta : ndarray, shape (standard parameters,), or None
        Such a robot's; None where there is none.
    eigenvalue : float
        Smallest of its pseudo-inertias [SI].
    distance : float
        Largest ``|beta - beta_CIV|`` in standard deviations, eq. (42).
    iterations : int
        Of an estimate; 0 where only consistency was asked for.
    reason : str
        Why there is none.
    """

    words: str
    theta: Array | None
    eigenvalue: float = np.nan
    distance: float = np.nan
    iterations: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Centre:
    """Base parameters that consistent ones are looked for about.

    Attributes
    ----------
    problem : Problem
    system : InstrumentSystem
        Of the last step of PC-IDIM-IV.
    beta, std : ndarray, shape (60,)
        beta_CIV under (27), and eq. (42).
    """

    problem: Problem
    system: InstrumentSystem
    beta: Array
    std: Array

    def decision(
        self, words: str, theta: Array | None, iterations: int = 0, reason: str = ""
    ) -> Decision:
        """What a robot that was found, or why none was, decides."""
        if theta is None:
            return Decision(words, None, reason=reason)
        base = self.problem.base
        bodies = theta[: base.idim.inertial].reshape(-1, 10)
        distance = np.max(np.abs(base.matrix @ theta - self.beta) / self.std)
        eigenvalue = float(smallest_eigenvalue(bodies).min())
        return Decision(words, theta, eigenvalue, float(distance), iterations)

    def admitted(self) -> FeasibleSet:
        """Standard parameters under (19)."""
        return build_feasible_set(self.problem.base, self.system.projected, Knowledge(prior="none"))


def problem_47(bench: Bench, outcome: Outcome, reduced: bool = False) -> tuple[Decision, ...]:
    """Whether a consistent robot has the base parameters of PC-IDIM-IV under (27).

    As (47) has it, within `BAND` standard deviations; how wide the band has to be; and as
    equalities, of estimates and of the base parameters of noise-free rows.

    Parameters
    ----------
    bench : Bench
    outcome : Outcome
        With "idim-iv" and "pc-idim-iv".
    reduced : bool
        Without PC-DIDIM.
    """
    problem, simulation = outcome.problem, bench.simulation(outcome.scenario)
    civ = outcome.fits["pc-idim-iv"]
    if civ.beta is None:
        return (Decision("PC-IV under (27)", None, reason=civ.failure),)
    system = final_system(problem, simulation, civ)
    centre = Centre(problem, system, civ.beta, white_std(system))
    names = problem.base.names
    band = tuple(
        Bounds((name,), value - BAND * s, value + BAND * s)
        for name, value, s in zip(names, civ.beta.tolist(), centre.std.tolist(), strict=True)
    )
    found = []
    for method in ("pc-idim-iv", "pc-didim")[: 1 if reduced else 2]:
        knowledge = Knowledge(prior="none", constraints=band)
        fit = fitted(problem, simulation, method, knowledge, bootstrap=0)
        words = f"b_CIV +- {BAND:g} sigma: {METHODS[method]}"
        found.append(centre.decision(words, fit.theta, fit.iterations, fit.failure))
    found.append(attempted(centre, "b_CIV +- the narrowest band", narrowest))
    found.append(attempted(centre, "= b_CIV", having(civ.beta)))
    iv = outcome.fits["idim-iv"].beta
    if iv is not None:
        found.append(attempted(centre, "= b_IV, unconstrained", having(iv)))
    own = fitted(problem, simulation, "pc-idim-iv", KNOWLEDGE["(19)"], bootstrap=0)
    found.append(centre.decision("= b of PC-IV under (19)", own.theta, 0, own.failure))
    clean = bench.clean.factors.weighted(np.ones(problem.robot.n)).solve()
    found.append(attempted(centre, "= b of noise-free rows", having(clean)))
    return tuple(found)


def attempted(centre: Centre, words: str, search: Callable[[Centre], Array]) -> Decision:
    """A search for consistent standard parameters; one that fails leaves its reason."""
    try:
        return centre.decision(words, search(centre))
    except ComputationError as error:
        return Decision(words, None, reason=str(error))


def having(beta: Array) -> Callable[[Centre], Array]:
    """The search for those with given base parameters, the equality form of problem (47)."""

    def search(centre: Centre) -> Array:
        witness = consistent_witness(centre.problem.base, beta, centre.std, width=0.0)
        if witness.theta is None:
            raise InfeasibleError(witness.conflict)
        return witness.theta

    return search


def narrowest(centre: Centre) -> Array:
    """Consistent standard parameters with the least k in ``|beta_j - centre_j| <= k std_j``.

    One more unknown k, and ``min (k + 1)^2``.

    Raises
    ------
    ComputationError
        When no certified answer was reached.
    """
    admitted = centre.admitted()
    rows, middle = admitted.space.matrix / centre.std[:, None], centre.beta / centre.std
    names, one = centre.problem.base.names, np.ones((len(middle), 1))
    cones = [widened(cone) for cone in admitted.cones]
    cones.append(Positive(names, np.hstack([rows, one]), middle))
    cones.append(Positive(names, np.hstack([-rows, one]), -middle))
    width = np.eye(rows.shape[1] + 1)[-1:]
    found = solve_cone_problem(width, np.array([-1.0]), cones)
    return admitted.space.value(found.x[:-1])


def widened(cone: Cone) -> Cone:
    """The same constraint with one more unknown that it does not touch."""
    if isinstance(cone, Definite):
        basis = np.concatenate([cone.basis, np.zeros((1, *cone.floor.shape))])
        return Definite(cone.name, basis, cone.floor)
    return type(cone)(cone.name, np.hstack([cone.G, np.zeros((len(cone.h), 1))]), cone.h)


def consistency_table(found: tuple[Decision, ...]) -> Table:
    """Which base parameters a consistent robot has."""
    rows = []
    for d in found:
        if d.theta is None:
            rows.append((d.words, "no", "", "", ""))
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
            "paper finds the band feasible in 5 iterations and b = b_CIV infeasible.",
            *(f"{d.words}: {d.reason}." for d in found if d.theta is None),
        ),
    )


def constraints_table(found: Results) -> Table:
    """The constrained methods under each of `KNOWLEDGE`."""
    rows, reasons = [], []
    for label in (ACTUAL.label, CONTROLLER.label):
        scenario, before = label, ""
        for (method, constraints), fit in found.compared[label].items():
            row = [scenario, "" if method == before else METHODS[method], constraints]
            scenario, before = "", method
            if fit.beta is None:
                rows.append((*row, "fails", *[""] * 7))
                reasons.append(
                    f"{METHODS[method]}, {constraints}, scenario {label}: {fit.failure}."
                )
                continue
            row += [str(fit.iterations), str(len(fit.active))]
            held, z = fit.restriction, fit.errors(found.bench.truth)
            row += ["", ""] if held is None else [str(held.freedom), f"{held.p_value:.1g}"]
            row += [f"{np.sqrt(np.mean(z**2)):.2f}"]
            row.append(f"{torque_share(found.bench.clean, fit.beta - found.bench.truth):.2f}")
            row.append(f"{overall_error(found.bench.held_out, fit.beta):.2f}")
            rows.append((*row, f"{fit.worst:.0e}"))
    return Table(
        "Constraints (27) on base parameters and (19) on standard parameters, without and with "
        "a prior",
        ("", "method", "constraints", "iter-\nations", "active", "held", "p", "sigma\nrms",
         "weighted\n[%]", "held out\n[%]", "certi-\nficate"),
        tuple(rows),
        (
            "Active: constraints that hold the estimate back; a pseudo-inertia is one. Held: "
            "directions that they hold, and p of the price of that in chi-squared, small where "
            "the data contradict them. Certificate: the worst of primal, dual and gap residuals. "
            "Otherwise as above, scenarios 1 and 4.",
            *reasons,
        ),
    )  # fmt: skip
