"""Ardiani, Janot, Benoussaad 2024, section IV, on the log of a TX40 and on its twin.

Tables I to VI with the paper's numbers beside ours, what the estimates are worth against the
truth, what constraints add, and where and why the two depart.

========== =====================================================================
module     content
========== =====================================================================
simulated  scenarios: robot, controller, references, logs
estimated  which methods on which scenario, and what their estimates are worth
measured   the scenarios on the log of a TX40
draws      scenarios under ten draws of the random torques
scenario3  the third scenario: bounds, problem (47)
prediction eq. (44) and (45): constrained estimates from unconstrained ones
tables     the tables
remarks    what the run shows, in sentences
figures    the figures
========== =====================================================================
"""

from __future__ import annotations

from dynident.core.progress import Progress
from dynident.core.side_by_side import HERE, Engine
from dynident_papers.ardiani2024.draws import (
    Drawn,
    describe_draws,
    estimate_draws,
    tabulate_draws,
)
from dynident_papers.ardiani2024.estimated import Results, estimate_all
from dynident_papers.ardiani2024.figures import draw_figures
from dynident_papers.ardiani2024.remarks import collect_remarks
from dynident_papers.ardiani2024.scenario3 import Third, estimate_third_scenario
from dynident_papers.ardiani2024.tables import tabulate_results
from dynident_papers.report import Reproduction


def reproduce_paper(
    progress: Progress, reduced: bool, timed: bool, engine: Engine = HERE
) -> Reproduction:
    """Repeat the paper's experiment on the log of a TX40 and on its twin: see `REPRODUCTIONS`.

    The reduced form is at 2 kHz instead of 5 kHz by an integrator of lower order, and without most
    variants.
    """
    found = estimate_all(progress, reduced, engine)
    third = estimate_third_scenario(found, progress, reduced)
    draws = () if reduced else estimate_draws(progress=progress, engine=engine)
    return build_reproduction(found, third, draws, timed)


def build_reproduction(
    found: Results, third: Third, draws: tuple[Drawn, ...] = (), timed: bool = False
) -> Reproduction:
    """Tables and remarks of some results."""
    return Reproduction(
        "Ardiani, Janot, Benoussaad 2024: IDIM-IV, DIDIM and constraints on the TX40",
        (*tabulate_results(found, third, timed), *([tabulate_draws(draws)] if draws else [])),
        (*collect_remarks(found, third), *([describe_draws(draws)] if draws else [])),
        draw_figures(found),
    )
