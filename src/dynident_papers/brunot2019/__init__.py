"""Brunot et al. 2019, section 5, on the log of a TX40 and on its twin: output error methods.

Tables 1 to 5 with the paper's numbers beside ours, what makes CLOE's bias, how white the
residuals are, and on the twin the errors against the truth.

========= ======================================================================
module    content
========= ======================================================================
simulated settings of the robot that the estimators do or do not know; their logs
measured  the log of a TX40 under references that are rebuilt
estimated the methods on every sample and on decimated rows, case by case
tables    the tables
remarks   what the run shows, in sentences
figures   the figures
========= ======================================================================
"""

from __future__ import annotations

from dynident.core.progress import Progress
from dynident.core.side_by_side import HERE, Engine
from dynident_papers.brunot2019.estimated import Results, estimate_all
from dynident_papers.brunot2019.figures import draw_figures
from dynident_papers.brunot2019.remarks import collect_remarks
from dynident_papers.brunot2019.tables import tabulate_results
from dynident_papers.report import Reproduction


def reproduce_paper(
    progress: Progress, reduced: bool, timed: bool, engine: Engine = HERE
) -> Reproduction:
    """Repeat the paper's experiment on the log of a TX40 and on its twin: see `REPRODUCTIONS`.

    The reduced form is shorter and coarser, for a quick look and for tests. With computing times
    also stand sensitivities by differences, as the paper has them.
    """
    return build_reproduction(estimate_all(progress, reduced, timed, engine), timed)


def build_reproduction(found: Results, timed: bool = False) -> Reproduction:
    """Tables and remarks of some results."""
    return Reproduction(
        "Brunot et al. 2019, Output Error Methods for Robot Identification, on a TX40 and its twin",
        tabulate_results(found, timed),
        collect_remarks(found),
        draw_figures(found),
    )
