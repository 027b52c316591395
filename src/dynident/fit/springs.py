"""Springs in the joints, as the verdict weighs them."""

from __future__ import annotations

from collections.abc import Sequence

from dynident.core.arrays import Array
from dynident.estimators.estimate import Estimate
from dynident.fit.verdict import DOUBTFUL, Reason
from dynident.regression.compliance import SpringEvidence, judge_springs
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem


def weigh_springs(
    problem: Problem, found: Estimate, theta: Array, held_out: Sequence[GeneralisedSamples]
) -> tuple[tuple[SpringEvidence, ...], list[Reason]]:
    """What logs tell of springs, and those that they do not tell from stiff joints."""
    springs, reasons = judge_springs(problem, theta, found.covariance, held_out), []
    for own in springs:
        if not own.supported:
            low, high = (1e6 * end for end in own.interval)
            words = (
                f"{own.joint}: the logs do not distinguish its spring from a stiff joint "
                "(compliance "
            )
            words += f"{low:.2g} to {high:.2g} urad/Nm"
            words += end_with_worse([log.log for log in own.held_out if not log.better])
            reasons.append(Reason(DOUBTFUL, words, advice="leave its link out of [[robot.drive]]"))
        if own.width_interval and not own.hysteresis:
            low, high = (1e6 * end for end in own.width_interval)
            words = (
                f"{own.joint}: the logs do not distinguish hysteresis of its spring from none "
                "(width "
            )
            words += f"{low:.2g} to {high:.2g} urad"
            words += end_with_worse([log.log for log in own.held_out if not log.told])
            reasons.append(Reason(DOUBTFUL, words, advice="leave hysteresis out of spring"))
        if own.alike:
            words = f"{own.joint}: the logs do not separate {' and '.join(own.alike)}"
            reasons.append(Reason(DOUBTFUL, words, advice="give fewer lengths in slip"))
    return springs, reasons


def end_with_worse(logs: Sequence[str]) -> str:
    """The end of such words, with the logs on which a link is no better."""
    return f"; link no better on held-out {', '.join(logs)})" if logs else ")"
