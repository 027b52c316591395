"""What a sweep found: as text, data and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dynident.core.plain import replace_nonfinite, to_json
from dynident.core.text import format_count
from dynident.core.words import format_entry, format_percent, format_table
from dynident.fit.comparison import format_percent_with_std, serialise_score
from dynident.fit.scores import choose_simplest, select_by_verdict
from dynident.plots.document import (
    PagePart,
    PageRow,
    PageTable,
    VerdictSentence,
    build_column_table,
    render_document,
    render_facts,
    render_table,
)
from dynident.sweeps.run import SweepRun

SCHEMA = "dynident.sweep/1"
LEGEND = (
    "fit %: error on the fitted rows, which are a run's own; held out %: on rows that are the same "
    "in all, ± one standard error over the blocks; par.: parameters that were estimated."
)


@dataclass(frozen=True)
class SweepFailure:
    """A combination that gave no answer, and why."""

    values: dict[str, Any]
    reason: str

    def __str__(self) -> str:
        return f"{describe_values(self.values)}: {self.reason}"


@dataclass(frozen=True)
class Sweep:
    """Every combination of some values of a study's keys, and what they are worth.

    Attributes
    ----------
    robot : str
        Its file.
    axes : dict of str to tuple
        Values by keys.
    blocks : int
        Of the held-out logs.
    runs : tuple of SweepRun
        At least one.
    failures : tuple of SweepFailure
    """

    robot: str
    axes: dict[str, tuple[Any, ...]]
    blocks: int
    runs: tuple[SweepRun, ...]
    failures: tuple[SweepFailure, ...]

    def __repr__(self) -> str:
        """One line, for a prompt."""
        runs = f"{len(self.runs)} runs, best {describe_values(self.best.values)}"
        return f"<Sweep of {self.robot}: {runs}; print(found.summary())>"

    @cached_property
    def best(self) -> SweepRun:
        """The simplest run within one standard error of the smallest held-out error.

        Among those with the best verdict that any has, and doubtful ones that are clearly better;
        of equally simple ones that with the smallest error.
        """
        return choose_simplest(select_by_verdict(self.runs), None)[0]

    @cached_property
    def reason(self) -> str:
        """Why that one."""
        least = min(self.runs, key=lambda run: run.held_out.percent()[0])
        said = format_percent_with_std(*self.best.held_out.percent())
        if least is self.best:
            return f"the smallest held-out error, {said} %"
        gain = format_percent_with_std(*self.best.held_out.beyond(least.held_out))
        why = (
            f"which is {least.verdict}"
            if least.verdict != self.best.verdict
            else "too little for its parameters"
        )
        return f"{said} %; {describe_values(least.values)} has {gain} % less, {why}"

    def summary(self) -> str:
        """A table and the choice as plain text of at most 80 columns."""
        lines = format_table(*self.list_columns())
        lines += ["", *format_entry("held out", f"{format_count(self.blocks, 'block')} in time")]
        for each in self.failures:
            lines += format_entry("failed", str(each))
        best = f"{describe_values(self.best.values)}: {self.reason}"
        lines += format_entry("best", best)
        lines += format_entry("result", f"{self.best.folder}/result.json")
        return "\n".join(lines)

    def list_columns(self) -> tuple[str, list[str], list[tuple[str, list[str]]]]:
        """A stub, the runs' labels, and columns that the text and the page share."""
        first, *others = self.axes
        runs = self.runs
        columns = [(key, [format_value(run.values[key]) for run in runs]) for key in others]
        columns += [
            ("fit %", [format_percent(run.fitted_percent) for run in runs]),
            ("held out %", [format_percent_with_std(*run.held_out.percent()) for run in runs]),
            ("par.", [str(run.parameters) for run in runs]),
            ("verdict", [run.verdict for run in runs]),
            ("", ["best" if run is self.best else "" for run in runs]),
        ]
        return first, [format_value(run.values[first]) for run in runs], columns

    def to_dict(self) -> dict[str, Any]:
        """Plain data (schema ``dynident.sweep/1``)."""
        return {
            "schema": SCHEMA,
            "robot": self.robot,
            "axes": {key: list(values) for key, values in self.axes.items()},
            "blocks": self.blocks,
            "best": {"values": self.best.values, "folder": self.best.folder, "reason": self.reason},
            "runs": [serialise_run(run) for run in self.runs],
            "failures": [{"values": e.values, "reason": e.reason} for e in self.failures],
        }

    def to_json(self) -> str:
        """The same as text."""
        return to_json(replace_nonfinite(self.to_dict()))

    def render(self) -> str:
        """A page that needs nothing else."""
        stub, labels, columns = self.list_columns()
        table = build_column_table(stub, labels, columns[:-1], ("verdict",))
        rows = zip(table.rows, self.runs, strict=True)
        marked = tuple(PageRow(row.cells, "total" * (run is self.best)) for row, run in rows)
        words = f"{describe_values(self.best.values)}: {self.reason}"
        combinations = format_count(len(self.runs), "combination")
        held_out = f"{format_count(self.blocks, 'block')} of held-out logs"
        failed = [(describe_values(e.values), f"gave no answer: {e.reason}") for e in self.failures]
        own = render_table(table._replace(rows=marked), LEGEND)
        own += render_facts(failed) if failed else ""
        joints = "In per cent of the joint's torque, ± one standard error over the blocks."
        return render_document(
            Path(self.robot).stem,
            f"{combinations} of {', '.join(self.axes)}, scored on {held_out}",
            [VerdictSentence("good", "Best", words)],
            [
                PagePart("runs", "Combinations", own),
                PagePart(
                    "joints",
                    "Held-out errors of the joints",
                    render_table(build_joint_table(self), joints),
                ),
            ],
        )


def build_joint_table(found: Sweep) -> PageTable:
    """Held-out errors of every kind of rows, run by run."""
    kinds = list(dict.fromkeys(kind for run in found.runs for kind in run.kinds))
    columns = [
        (
            kind,
            [
                format_percent_with_std(*run.held_out.percent(run.kinds.index(kind)))
                if kind in run.kinds
                else "-"
                for run in found.runs
            ],
        )
        for kind in kinds
    ]
    return build_column_table("", [describe_values(run.values) for run in found.runs], columns)


def serialise_run(run: SweepRun) -> dict[str, Any]:
    """A run as plain data."""
    return {
        "values": run.values,
        "folder": run.folder,
        "state": run.state,
        "verdict": run.verdict,
        "parameters": run.parameters,
        "fitted_percent": run.fitted_percent,
        "held_out": serialise_score(run.held_out.percent()),
        "rows": [
            {"name": kind, **serialise_score(run.held_out.percent(k))}
            for k, kind in enumerate(run.kinds)
        ],
    }


def describe_values(values: Mapping[str, Any]) -> str:
    """A combination in words."""
    return ", ".join(f"{key} {format_value(value)}" for key, value in values.items())


def format_value(value: Any) -> str:
    """A value as it was given."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(format_value(each) for each in value) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)
