"""Zhang et al. 2018, sections 5 and 6, on an arm of the same class: a survey's methods.

Tables 5, 6, 8 to 11 and Figures 2 and 4, and on a measured log Table 12, with the survey's numbers
beside ours.

========= ======================================================================
module    content
========= ======================================================================
simulated the arm that stands in, its trajectory, noise
estimated the methods and their errors
instance  friction models on a measured log
tables    the tables
========= ======================================================================
"""

from __future__ import annotations

from dynident.core.progress import Progress
from dynident.core.side_by_side import HERE, Engine
from dynident_papers.published import ZHANG_MODELS
from dynident_papers.report import Reproduction
from dynident_papers.zhang2018.estimated import Results, estimate_all, measure_body_error
from dynident_papers.zhang2018.instance import METHOD, MODELS
from dynident_papers.zhang2018.tables import draw_figures, tabulate_results


def reproduce_paper(
    progress: Progress, reduced: bool, timed: bool, engine: Engine = HERE
) -> Reproduction:
    """Repeat the survey's simulation on a stand-in of its arm: see `REPRODUCTIONS`.

    The reduced form has fewer trajectories to choose from, shorter tracking, and two models of
    Table 12.
    """
    return build_reproduction(estimate_all(progress, reduced, engine), timed)


def build_reproduction(found: Results, timed: bool = False) -> Reproduction:
    """Tables and remarks of some results."""
    best, noisy = found.clean["pc-idim-ls"], found.noisy["pc-idim-ls"]
    believed = measure_body_error(found.arm.believed.nominal, found.arm.robot.nominal)
    return Reproduction(
        "Zhang et al. 2018, Parameter estimation survey, on an arm of the ER20-C10's class",
        tabulate_results(found, timed),
        (
            "The arm's kinematics, its other bodies and frictions are ours: the survey's are not "
            "published. Figures compare in kind, not in size.",
            f"The trajectory is the best of some random Fourier series, L = 5, 0.1 Hz, 100 Hz: "
            f"condition number {found.condition:.1f}; the survey's search got 4.6.",
            "Where the bodies are known to a fifth, constrained least squares gives standard "
            f"parameters with J_e {best.overall:.2f} without and {noisy.overall:.2f} with noise; "
            "the survey's searches, which start from as much, report 0.39 to 0.87 and 1.06 to "
            f"1.20. What is believed has an e_d of {believed:.2f} itself: "
            "J_e of standard parameters judges the belief more than the method; e_b, of what the "
            "motion determines, does not.",
            "Shapes of friction start at the usual value, 0.1 rad/s; joint 3's is the true one.",
            *(
                f"Gradient descent on the {kind} log: {words}."
                for kind, words in found.descent.items()
            ),
            describe_best_model(found),
            *(f"No answer: {failure}" for failure in found.failures),
        ),
        draw_figures(found),
    )


def describe_best_model(found: Results) -> str:
    """Which models leave least of a measured log, or why that is not here."""
    if found.instance.missing:
        return f"Table 12 is left out: {found.instance.missing}."
    left = {
        name: own.std for (name, method), own in found.instance.fitted.items() if method == METHOD
    }
    theirs = min(left, key=lambda name: ZHANG_MODELS[MODELS[name]][1])
    return (
        f"Of the models of Table 12 that were fitted here, {theirs} leaves least of the survey's "
        f"torques, {min(left, key=lambda name: left[name])} of the TX40's. Which predicts other "
        "motion best is another question: dynident compare answers it."
    )
