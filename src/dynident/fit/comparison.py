"""Methods and friction models side by side on held-out blocks, and which of them to take."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.series import TorqueSeries
from dynident.core.text import format_count
from dynident.core.words import WIDTH, format_entry, format_number, format_percent, format_table
from dynident.fit.scores import BlockScores, choose_simplest, select_by_verdict
from dynident.fit.verdict import STATES
from dynident.robot.model import Robot

SCHEMA = "dynident.comparison/1"
TORQUE_LEVELS = (0.01, 0.1)
"""Of e_T, below which it is an A, and a B (zhang2018, Table 1)."""
TIME_LEVELS = (60.0, 3600.0)
"""Of a solution's time (zhang2018, Table 3) [s]."""


@dataclass(frozen=True)
class Candidate:
    """A method with a friction model, fitted and held out.

    Attributes
    ----------
    parameters : int
        Base parameters that were estimated, and shapes of friction that were not held.
    fitted_percent : float
        Torque error on the fitted rows of all blocks [%].
    squared, rows : ndarray, shape (sigmas,)
        Residual sum of squares and rows of all that has one sigma, of the fit to all blocks.
    ratio : float
        By which autocorrelation inflates the variance of an average of those residuals.
    seconds : float
        The median of its identifications.
    held : tuple of str
        Shapes that the log does not determine.
    series : tuple of TorqueSeries
        Torques along the fitted logs, thinned.
    """

    method: str
    friction: str
    parameters: int
    fitted_percent: float
    held_out: BlockScores
    squared: Array
    rows: Array
    ratio: float
    seconds: float
    verdict: str
    held: tuple[str, ...]
    series: tuple[TorqueSeries, ...]

    def bic(self, ratio: float) -> float:
        """``sum_g r_g log(RSS_g / r_g) + p log(sum_g r_g)``, rows counted `ratio` times fewer."""
        effective = self.rows / ratio
        present = self.rows > 0.0
        likelihood = effective[present] @ np.log(self.squared[present] / self.rows[present])
        return float(likelihood + self.parameters * np.log(np.sum(effective)))

    @property
    def torque_level(self) -> str:
        """A, B or C by the mean relative error of held-out torque (zhang2018, Table 1)."""
        return grade_value(float(np.nanmean(self.held_out.relative_error)), TORQUE_LEVELS)

    @property
    def time_level(self) -> str:
        """A, B or C by the time of one identification (zhang2018, Table 3)."""
        return grade_value(self.seconds, TIME_LEVELS)


@dataclass(frozen=True)
class Failure:
    """A method with a friction model that gave no answer, and why."""

    method: str
    friction: str
    reason: str


@dataclass(frozen=True)
class Recommendation:
    """What to take for a joint, or for all, by the rule of one standard error."""

    joint: str | None
    """None for all."""
    method: str
    friction: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Methods and friction models on one study's logs.

    Attributes
    ----------
    kinds : tuple of str
        Names of the kinds of rows: the joints, and what else a floating robot's logs state.
    rotating : bool
        Whether each block of the fitted logs was held out in turn; else the blocks are of the
        study's held-out logs, and one fit was scored on all.
    candidates : tuple of Candidate
        At least one.
    warnings : tuple of str
        What was noticed about the robot's file and the logs.
    seconds : float
        In all.
    """

    robot: Robot
    kinds: tuple[str, ...]
    blocks: int
    rotating: bool
    candidates: tuple[Candidate, ...]
    failures: tuple[Failure, ...]
    warnings: tuple[str, ...]
    seconds: float

    @cached_property
    def bic(self) -> tuple[float, ...]:
        """BIC of each candidate over the smallest.

        All count rows alike, by the autocorrelation that the best fit leaves: what a worse one
        leaves beyond that is its own error.
        """
        ratio = min(self.candidates, key=lambda each: each.fitted_percent).ratio
        values = [each.bic(ratio) for each in self.candidates]
        return tuple(value - min(values) for value in values)

    @cached_property
    def choice(self) -> Candidate:
        """What is recommended for all joints."""
        return choose_simplest(select_by_verdict(self.candidates), None)[0]

    @cached_property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """For all joints, then for each among the friction models of that choice's method."""
        own = [self.candidates[k] for k in self.members(self.choice.method)]
        own = [each for each in own if each.verdict != STATES[-1]] or own
        found = [recommend_candidate(select_by_verdict(self.candidates), None, None)]
        shown = {name: self.kinds.index(name) for name in self.robot.joint_names}
        found += [
            recommend_candidate(own, kind, name)
            for name, kind in shown.items()
            if own[0].held_out.count_blocks(kind) > 1
        ]
        return tuple(found)

    @property
    def shown(self) -> tuple[int, ...]:
        """Kinds of rows that have torque in what was held out."""
        scores = self.candidates[0].held_out
        return tuple(k for k in range(len(self.kinds)) if scores.count_blocks(k))

    def members(self, method: str) -> list[int]:
        """Which candidates are of a method."""
        return [k for k, each in enumerate(self.candidates) if each.method == method]

    def __repr__(self) -> str:
        """One line, for a prompt."""
        choice = f"{self.choice.friction} by {self.choice.method} recommended"
        return f"<Comparison on {self.robot.name}: {choice}; print(found.summary())>"

    def summary(self) -> str:
        """Tables and recommendations as plain text of at most 80 columns."""
        methods = list(dict.fromkeys(each.method for each in self.candidates))
        sections = [format_overview(self)]
        for method in methods:
            own = self.members(method)
            labels = [self.candidates[k].friction for k in own]
            columns = format_comparison_columns(self, own)
            sections.append(format_table(method, labels, columns))
        sections += [format_joint_errors(self, self.choice.method), format_notes(self)]
        sections.append(format_recommendations(self))
        return "\n\n".join("\n".join(lines) for lines in sections if lines)


def grade_value(value: float, limits: tuple[float, float]) -> str:
    """A below the first limit, B below the second, else C."""
    return "A" if value < limits[0] else "B" if value < limits[1] else "C"


def recommend_candidate(
    candidates: Sequence[Candidate], kind: int | None, name: str | None
) -> Recommendation:
    """The choice for a joint with its reason."""
    found, best = choose_simplest(candidates, kind)
    on = "" if name is None else f" on {name}"
    simpler = [each for each in candidates if each.parameters < found.parameters]
    if found is not best:
        gain = format_percent_with_std(*found.held_out.beyond(best.held_out, kind))
        better = name_candidate(best, found)
        reason = f"{better} improves by {gain} %{on}, too little for more parameters"
    elif simpler:
        next_best = min(simpler, key=lambda each: each.held_out.percent(kind)[0])
        gain = format_percent_with_std(*next_best.held_out.beyond(found.held_out, kind))
        reason = f"improves by {gain} %{on} over {name_candidate(next_best, found)}"
    elif len(candidates) > 1:
        reason = "the simplest, and no other has a smaller held-out error"
    else:
        reason = "no other result is as trustworthy"
    if name is None and found.verdict != STATES[0]:
        beside_trusted = any(each.verdict == STATES[0] for each in candidates)
        words = "its verdict is" if beside_trusted else "like the others, it is"
        reason += f"; {words} {found.verdict}"
    return Recommendation(name, found.method, found.friction, reason)


def name_candidate(candidate: Candidate, beside: Candidate) -> str:
    """A candidate by what tells it from another."""
    if candidate.method == beside.method:
        return candidate.friction
    if candidate.friction == beside.friction:
        return candidate.method
    return f"{candidate.friction} by {candidate.method}"


# -------------------------------------------------------------------------------- text


def format_percent_with_std(value: float, std: float) -> str:
    """A percentage and its standard error, where it has one."""
    return (
        f"{format_percent(value)} ± {format_percent(std)}"
        if np.isfinite(std)
        else format_percent(value)
    )


def describe_held_out_blocks(found: Comparison) -> str:
    """What was held out."""
    if found.rotating:
        return f"{found.blocks} blocks of the fitted logs, each held out in turn"
    return f"{found.blocks} blocks of the held-out logs, scored on one fit"


def format_overview(found: Comparison) -> list[str]:
    """What was compared, and what is recommended for all joints."""
    best = found.recommendations[0]
    return [
        *format_entry("recommended", f"{best.friction} by {best.method}: {best.reason}"),
        *format_entry("robot", f"{found.robot.name}, {format_count(found.robot.n, 'joint')}"),
        *format_entry("held out", describe_held_out_blocks(found)),
        *format_entry("time", f"{found.seconds:.1f} s"),
    ]


def format_comparison_columns(
    found: Comparison, members: Sequence[int]
) -> list[tuple[str, list[str]]]:
    """The columns that the text and the page share."""
    rows = [found.candidates[k] for k in members]
    return [
        ("fit %", [format_percent(c.fitted_percent) for c in rows]),
        ("held out %", [format_percent_with_std(*c.held_out.percent()) for c in rows]),
        ("par.", [str(c.parameters) for c in rows]),
        ("BIC", [f"{found.bic[k]:+.0f}" for k in members]),
        ("s", [format_number(c.seconds, 2) for c in rows]),
        ("A-C", [c.torque_level + c.time_level for c in rows]),
        ("verdict", [c.verdict for c in rows]),
    ]


def format_joint_errors(found: Comparison, method: str) -> list[str]:
    """Held-out errors of every joint under one method."""
    rows = [found.candidates[k] for k in found.members(method)]
    return [
        f"held-out error by {method} [%]",
        *format_table("", [c.friction for c in rows], format_joint_columns(found, rows)),
    ]


def format_joint_columns(
    found: Comparison, rows: Sequence[Candidate]
) -> list[tuple[str, list[str]]]:
    """Held-out errors of every joint, candidate by candidate."""
    return [
        (found.kinds[k], [format_percent_with_std(*c.held_out.percent(k)) for c in rows])
        for k in found.shown
    ]


def list_comparison_notes(found: Comparison) -> list[tuple[str, str]]:
    """What was passed over, what failed, what was held, and what the logs warn of."""
    best = min(found.candidates, key=lambda each: each.held_out.percent()[0])
    barred = [
        (
            "beside",
            f"{name_candidate(best, found.choice)} has the smaller error, but its result is "
            f"{best.verdict}",
        )
    ] * (best not in select_by_verdict(found.candidates))
    failed = [("failed", f"{f.friction} by {f.method}: {f.reason}") for f in found.failures]
    held = [
        ("fixed", f"{c.friction} by {c.method}: {', '.join(c.held)} (not determined by the log)")
        for c in found.candidates
        if c.held
    ]
    return barred + failed + held + [("warning", words) for words in found.warnings]


def format_notes(found: Comparison) -> list[str]:
    """The notes, and what the columns are."""
    lines = [
        line for key, words in list_comparison_notes(found) for line in format_entry(key, words)
    ]
    return lines + textwrap.wrap(LEGEND, WIDTH)


LEGEND = (
    "fit %: error on the fitted rows; ± one standard error over the blocks; par.: parameters that "
    "were estimated; BIC over the smallest; s: time of one identification; A-C: levels of e_T, "
    "the mean held-out error over the largest torque (A < 0.01, B < 0.1), and of the time (A < "
    "1 min, B < 1 h) of Zhang et al. (2018), Tables 1 and 3. Its e_d, e_f and J_e need the true "
    "parameters, and are left out."
)


def format_recommendations(found: Comparison) -> list[str]:
    """What to take for each joint."""
    own = [each for each in found.recommendations if each.joint is not None]
    lines = [f"by one standard error, of the models by {found.choice.method}"] * bool(own)
    for each in own:
        lines += format_entry(str(each.joint), f"{each.friction}: {each.reason}")
    return lines


# -------------------------------------------------------------------------------- JSON


def serialise_comparison(found: Comparison) -> dict[str, Any]:
    """The comparison as plain data (schema ``dynident.comparison/1``)."""
    return {
        "schema": SCHEMA,
        "robot": {"name": found.robot.name, "joints": list(found.robot.joint_names)},
        "blocks": found.blocks,
        "rotating": found.rotating,
        "seconds": found.seconds,
        "candidates": [
            serialise_candidate(found, each, bic)
            for each, bic in zip(found.candidates, found.bic, strict=True)
        ],
        "failures": [asdict(each) for each in found.failures],
        "warnings": list(found.warnings),
        "recommendations": [asdict(each) for each in found.recommendations],
    }


def serialise_candidate(found: Comparison, candidate: Candidate, bic: float) -> dict[str, Any]:
    """One combination as plain data; BIC over the smallest."""
    errors = {name: candidate.held_out.percent(k) for k, name in enumerate(found.kinds)}
    joints = found.robot.joint_names
    return {
        "method": candidate.method,
        "friction": candidate.friction,
        "parameters": candidate.parameters,
        "fitted_percent": candidate.fitted_percent,
        "held_out": serialise_score(candidate.held_out.percent()),
        "joints": [serialise_score(errors[name]) for name in joints],
        "others": [
            {"name": found.kinds[k], **serialise_score(errors[found.kinds[k]])}
            for k in found.shown
            if found.kinds[k] not in joints
        ],
        "bic": bic,
        "e_T": float(np.nanmean(candidate.held_out.relative_error)),
        "levels": {"e_T": candidate.torque_level, "time": candidate.time_level},
        "seconds": candidate.seconds,
        "verdict": candidate.verdict,
        "held": list(candidate.held),
    }


def serialise_score(pair: tuple[float, float]) -> dict[str, float]:
    """An error with its standard error."""
    return {"percent": pair[0], "std": pair[1]}
