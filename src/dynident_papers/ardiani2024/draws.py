"""The scenarios under ten draws of the random torques: spread, bias, and what intervals hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array
from dynident.core.progress import Progress, ignore_progress
from dynident.core.side_by_side import HERE, Engine, gather_side_by_side
from dynident.core.threads import limit_to_one_thread
from dynident_papers.ardiani2024.estimated import (
    ACTUAL,
    CONTROLLER,
    DOWNGRADED,
    METHODS,
    Fit,
    estimate_method,
    measure_held_out_error,
    measure_weighted_error,
)
from dynident_papers.ardiani2024.simulated import Bench, Scenario, build_bench
from dynident_papers.report import Table, blank_repeats, format_range, join_words, pad_row

DRAWS = 10
DRAWN = ("wls", "idim-iv", "didim", "pc-idim-iv", "pc-didim")
"""Methods that are drawn."""
QUIET = replace(ACTUAL, label="1, errors / 10", errors=0.1)
"""So little error that the true values are many sigma inside of (27)."""
OF_DRAWS = (ACTUAL, DOWNGRADED, CONTROLLER, QUIET)
RATE, INTEGRATOR = 2000.0, "ode1"
"""Of the reduced form, too [Hz]."""
NORMAL = 1.96
"""Standard deviations of a 95 % interval."""


@dataclass(frozen=True)
class Drawn:
    """A method's estimates of one scenario under several draws."""

    scenario: Scenario
    method: str
    fits: tuple[Fit, ...] = field(repr=False)
    """One a draw; those that failed have no estimate."""
    truth: Array = field(repr=False)
    """Shape (60,)."""
    weighted: Array
    held_out: Array
    """`weighted`, `held_out`: as in the tables of one draw [%], shape (settled draws,)."""

    @property
    def settled(self) -> tuple[Fit, ...]:
        """The draws that have an estimate."""
        return tuple(fit for fit in self.fits if fit.beta is not None)

    @property
    def by_draw(self) -> dict[int, float]:
        """Weighted errors by draw, of those that settled [%]."""
        draws = (k for k, fit in enumerate(self.fits) if fit.beta is not None)
        return dict(zip(draws, self.weighted.tolist(), strict=True))

    @property
    def free(self) -> int:
        """Of these, those that no constraint holds back."""
        return sum(not fit.active for fit in self.settled)

    @property
    def errors(self) -> Array:
        """Errors of all parameters, shape (settled draws, 60)."""
        found = [fit.beta - self.truth for fit in self.settled if fit.beta is not None]
        return np.array(found).reshape(-1, len(self.truth))

    def measure_bias(self) -> float:
        """Mean error over the scatter of one draw, rms of the parameters that scatter."""
        scatter = np.std(self.errors, axis=0, ddof=1)
        moves = scatter > 0.0
        shares = np.mean(self.errors, axis=0)[moves] / scatter[moves]
        return float(np.sqrt(np.mean(shares**2)))

    def measure_coverage(self, law: bool) -> float:
        """Share of the 95 % intervals that hold the truth, of parameters that have one [%].

        `law`: by the literature's formula, eq. (42) of instruments, instead of ours.
        """
        held = []
        for fit in self.settled:
            std = fit.law if law else fit.std
            assert fit.beta is not None
            assert std is not None
            held.append((np.abs(fit.beta - self.truth) < NORMAL * std)[std > 0.0])
        return 100.0 * float(np.mean(np.concatenate(held)))


class Draw(NamedTuple):
    """One draw of a scenario's random torques, and by which methods it is estimated."""

    scenario: Scenario
    number: int
    methods: tuple[str, ...]


@limit_to_one_thread
def estimate_draw(task: Draw) -> list[Fit]:
    """One fit a method."""
    bench = build_bench(RATE, integrator=INTEGRATOR)
    problem, simulation = bench.problem(task.scenario, task.number), bench.simulation(task.scenario)
    return [estimate_method(problem, simulation, method) for method in task.methods]


def estimate_draws(
    scenarios: Sequence[Scenario] = OF_DRAWS,
    methods: Sequence[str] = DRAWN,
    draws: int = DRAWS,
    progress: Progress = ignore_progress,
    engine: Engine = HERE,
) -> tuple[Drawn, ...]:
    """The methods on scenarios whose random torques are drawn several times, a task a draw."""
    tasks = [Draw(each, k, tuple(methods)) for each in scenarios for k in range(draws)]
    fits = gather_side_by_side(estimate_draw, tasks, engine, progress, "ardiani2024, draws")
    bench = build_bench(RATE, integrator=INTEGRATOR)
    return tuple(
        summarise_draws(bench, scenario, method, [own[m] for own in fits[s : s + draws]])
        for s, scenario in zip(range(0, len(tasks), draws), scenarios, strict=True)
        for m, method in enumerate(methods)
    )


def summarise_draws(bench: Bench, scenario: Scenario, method: str, fits: Sequence[Fit]) -> Drawn:
    """What the estimates of several draws are worth."""
    settled = [fit.beta for fit in fits if fit.beta is not None]
    return Drawn(
        scenario,
        method,
        tuple(fits),
        bench.truth,
        np.array([measure_weighted_error(bench, beta) for beta in settled]),
        np.array([measure_held_out_error(bench, beta) for beta in settled]),
    )


def tabulate_draws(found: Sequence[Drawn]) -> Table:
    """Spread, bias and coverage over the draws."""
    header = ("scenario", "method", "settled", "none\nactive", "weighted\n[%]", "held-out\n[%]",
              "bias", "95 %\nlaw", "\nours")  # fmt: skip
    rows = []
    for d in found:
        row = [d.scenario.label, METHODS[d.method], f"{len(d.settled)}/{len(d.fits)}"]
        row.append(str(d.free) if d.method.startswith("pc-") else "")
        if len(d.settled) > 1:
            row += [format_spread(values) for values in (d.weighted, d.held_out)]
            row.append(f"{d.measure_bias():.2f}")
            row += [f"{d.measure_coverage(law):.0f}" for law in (True, False)]
        rows.append(pad_row(row, len(header)))
    draws = max((len(d.fits) for d in found), default=0)
    return Table(
        f"The twin under {draws} draws of the random torques",
        header,
        blank_repeats(rows, 1),
        (
            f"At {RATE:g} Hz by {INTEGRATOR}; errors as above, mean and standard deviation over "
            "the draws. None active: settled draws that no constraint of (27) holds back. Bias: "
            "mean error over the scatter of one draw, rms of the parameters; "
            f"{expect_bias(draws):.2f} is that of normal estimates without any. 95 %: share of the "
            "intervals that hold the true value, by the literature's formula (eq. 9, 12 and, of "
            "PC-IV, 42) and by ours, which is bootstrapped where a constraint is active.",
            *(
                f"{METHODS[d.method]}, {d.scenario.label}: {reason}."
                for d in found
                for reason in {fit.failure: None for fit in d.fits if fit.failure}
            ),
        ),
    )


def expect_bias(draws: int) -> float:
    """What `Drawn.measure_bias` is of normal estimates without bias: Student's t has a variance.

    ``sqrt((n - 1) / (n (n - 3)))``; not a number of three draws or fewer, where it has none.
    """
    return float(np.sqrt((draws - 1) / (draws * (draws - 3)))) if draws > 3 else np.nan


def describe_draws(found: Sequence[Drawn]) -> str:
    """What the draws show of constraints, and of the law of their estimates."""
    kept = [d for d in found if len(d.settled) > 1]
    constrained = [d for d in kept if d.method.startswith("pc-")]
    known = [d for d in constrained if d.scenario.bandwidth == 1.0]
    groups = {
        "where some draws have an active constraint": [d for d in known if d.free < len(d.settled)],
        "where none has": [d for d in known if d.free == len(d.settled)],
        "under the wrong controller": [d for d in constrained if d not in known],
    }
    told = []
    for what, group in groups.items():
        if group:
            law, ours = (
                format_range([d.measure_coverage(by) for d in group], ".0f") for by in (True, False)
            )
            told.append(
                f"{what} ({join_words([name_drawn(d) for d in group])}) by the literature's "
                f"formula {law} %, by ours {ours} %, with biases of "
                f"{format_range([d.measure_bias() for d in group], '.2f')}"
            )
    words = f"Draws of the random torques, 95 % intervals that hold the truth: {'; '.join(told)}."
    own = {d.scenario.label: d for d in kept if d.method == "idim-iv"}
    gaps = [
        compare_drawn(d, own[d.scenario.label])
        for d in constrained
        if d.method == "pc-idim-iv" and d.scenario.label in own
    ]
    if gaps:
        words += (
            f" PC-IV's mean weighted errors are within {max(gaps):.2f} points of IV's on the draws "
            "where both settle."
        )
    return f"{words} The paper says of its own runs that they confirm eq. (42)."


def compare_drawn(a: Drawn, b: Drawn) -> float:
    """Difference of the mean weighted errors, of the draws where both settle [%]."""
    both = set(a.by_draw) & set(b.by_draw)
    return abs(float(np.mean([a.by_draw[k] - b.by_draw[k] for k in both]))) if both else np.nan


def name_drawn(drawn: Drawn) -> str:
    """A method on a scenario."""
    return f"{METHODS[drawn.method]} ({drawn.scenario.label})"


def format_spread(values: Array) -> str:
    """A mean and the standard deviation of one."""
    return f"{np.mean(values):.2f} ({np.std(values, ddof=1):.2f})"
