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

from dynident.core.progress import Progress, ignore_progress
from dynident.core.threads import limit_to_one_thread
from dynident_papers.brunot2019.estimated import Results, estimate_all
from dynident_papers.brunot2019.figures import draw_figures
from dynident_papers.brunot2019.remarks import collect_remarks
from dynident_papers.brunot2019.tables import tabulate_results
from dynident_papers.report import Reproduction


@limit_to_one_thread
def reproduce_paper(
    progress: Progress = ignore_progress, reduced: bool = False, timed: bool = False
) -> Reproduction:
    """Repeat the paper's experiment on the log of a TX40 and on its twin.

    Parameters
    ----------
    progress : callable
        Called with "brunot2019" and the share that is done.
    reduced : bool
        A shorter and coarser version, for a quick look and for tests.
    timed : bool
        With computing times, which make the text differ from run to run, also of sensitivities
        by differences, as the paper has them.

    Returns
    -------
    Reproduction
        The paper's tables beside ours.

    Raises
    ------
    ComputationError
        When a motion of the twin diverges. Methods that fail are printed.
    """
    return build_reproduction(estimate_all(progress, reduced, timed), timed)


def build_reproduction(found: Results, timed: bool = False) -> Reproduction:
    """Tables and remarks of some results."""
    return Reproduction(
        "Brunot et al. 2019, Output Error Methods for Robot Identification, on a TX40 and its twin",
        tabulate_results(found, timed),
        collect_remarks(found),
        draw_figures(found),
    )
