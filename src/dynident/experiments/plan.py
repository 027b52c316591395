"""A protocol: its runs, as plain data, as text, as a page to print, and as files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.plain import replace_nonfinite, to_json
from dynident.core.words import format_entry, format_number, format_table
from dynident.excitation.excite import Excitation
from dynident.experiments.page import render_excitation_files
from dynident.experiments.planning import ProtocolPlan
from dynident.experiments.steps import QUESTIONS, ProtocolStep, ToldParameters
from dynident.plots.document import (
    PagePart,
    VerdictSentence,
    build_column_table,
    render_document,
    render_facts,
    render_list,
    render_table,
)
from dynident.robot.model import Robot

NORMAL = 1.96
"""Standard deviations of half a 95 % interval."""
HEAD, PAGE, MOTIONS = "protocol.json", "protocol.html", "motions"
LAPSE = "without changing the setup and without warming up"


@dataclass(frozen=True)
class PlannedRun:
    """A step of a protocol, as it is designed.

    Attributes
    ----------
    name : str
        In `STEPS`.
    step : ProtocolStep
    excitation : Excitation
        The motion, designed with the mass at its far length where any run has it.
    seconds : float
        That it lasts, all periods [s].
    setup : str
        What the robot carries.
    kept : bool
        Whether it is proved to keep the limits with what the robot carries.
    told : tuple of ToldParameters
        What to expect of it.
    """

    name: str
    step: ProtocolStep
    excitation: Excitation
    seconds: float
    setup: str
    kept: bool
    told: tuple[ToldParameters, ...]


@dataclass(frozen=True)
class Protocol:
    """What to record, in this order.

    >>> plan = di.protocol(robot, questions=("drives",), sweeping=10.0, period=4.0,
    ...                    starts=1, iterations=5, collision=False)
    >>> [run.name for run in plan.runs]
    ['sweeps', 'series', 'gains']

    Attributes
    ----------
    robot : Robot
        Without the mass.
    planning : ProtocolPlan
    sigma : ndarray, shape (n,)
        Of the torques' noise, as it is taken [Nm or N].
    mass : float
        Known mass, 0 where none is used [kg].
    runs : tuple of PlannedRun
    warnings : tuple of str
    """

    robot: Robot
    planning: ProtocolPlan
    sigma: Array
    mass: float
    runs: tuple[PlannedRun, ...]
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        """One line, for a prompt."""
        runs = ", ".join(run.name for run in self.runs)
        return f"<Protocol of {self.robot.name}: {runs}; print(plan.summary())>"

    @property
    def seconds(self) -> float:
        """Of all runs together [s]."""
        return sum(run.seconds for run in self.runs)

    @property
    def motions(self) -> dict[str, Excitation]:
        """The motions by name, each once."""
        return {run.step.motion: run.excitation for run in self.runs}

    @property
    def folders(self) -> dict[str, str]:
        """Of the runs' logs and studies, by name, numbered in order."""
        return {run.name: f"{k:02}-{run.name}" for k, run in enumerate(self.runs, 1)}

    def list_commands(self, run: PlannedRun) -> list[str]:
        """What follows from a run, in the protocol's folder."""
        return [words.format(**self.folders, mass=f"{self.mass:g}") for words in run.step.then]

    def summary(self) -> str:
        """All of it as plain text of at most 80 columns."""
        return summarise_protocol(self)

    def render(self) -> str:
        """A page that needs nothing else."""
        return render_protocol_page(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data (schema ``dynident.protocol/1``)."""
        return {
            "schema": "dynident.protocol/1",
            "robot": {"name": self.robot.name, "joints": list(self.robot.joint_names)},
            "questions": list(self.planning.questions),
            "sigma": self.sigma.tolist(),
            "rate": self.planning.rate,
            "mass": self.mass,
            "lengths": list(self.planning.lengths),
            "seconds": self.seconds,
            "runs": [
                {
                    "name": run.name,
                    "folder": self.folders[run.name],
                    "title": run.step.title,
                    "motion": run.step.motion,
                    "kept": run.kept,
                    "seconds": run.seconds,
                    "setup": run.setup,
                    "gains": run.step.gains,
                    "told": [
                        {
                            "by": told.title,
                            "parameters": [each._asdict() for each in told.entries],
                        }
                        for told in run.told
                    ],
                    "untold": list(run.step.untold),
                    "then": self.list_commands(run),
                }
                for run in self.runs
            ],
            "warnings": list(self.warnings),
        }


def list_columns(told: ToldParameters) -> list[tuple[str, list[str]]]:
    """Values, half intervals, these over the values, and units, where there are any."""
    values = np.array([each.value for each in told.entries])
    half = NORMAL * np.array([each.std for each in told.entries])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = 100.0 * half / np.abs(values)
    words = ["unknown" if np.isinf(each) else format_number(each, 2) for each in half]
    found = [
        ("value", [format_number(each) if np.isfinite(each) else "-" for each in values]),
        ("± 95 %", words),
        ("± %", [f"{each:.2g}" if np.isfinite(each) else "-" for each in shares]),
        ("unit", [each.unit for each in told.entries]),
    ]
    return [column for column in found if not {*column[1]} <= {"-", ""}]


def list_facts(found: Protocol, run: PlannedRun) -> list[tuple[str, str]]:
    """How a run is made."""
    again = f", {run.excitation.periods} periods" if run.excitation.periods > 1 else ""
    kept = "proved to keep the limits" if run.kept else "NOT proved to keep the limits"
    return [
        ("motion", f"{MOTIONS}/{run.step.motion}, {run.seconds:g} s{again}; {kept}"),
        (
            "record",
            f"{found.folders[run.name]}/log.csv at {found.planning.rate:g} Hz: time, "
            "positions, torques, references",
        ),
        ("setup", run.setup),
        ("gains", run.step.gains),
    ]


def describe_noise(found: Protocol) -> str:
    """What the intervals rest on."""
    how = "" if found.planning.sigma is not None else " (1 % of the largest torques)"
    return (
        f"white noise of the torques of {', '.join(f'{v:g}' for v in found.sigma)} Nm or N a "
        f"sample{how}, a model that is right, and no noise of positions; a real log has "
        "errors that repeat, and wider intervals"
    )


def describe_length(found: Protocol) -> str:
    """How long it takes."""
    minutes, seconds = divmod(round(found.seconds), 60)
    return f"{minutes} min {seconds} s of motion in {len(found.runs)} runs, {LAPSE}"


def summarise_protocol(found: Protocol) -> str:
    """What the terminal is told."""
    lines = format_entry("protocol", f"{found.robot.name}: {', '.join(found.planning.questions)}")
    lines += format_entry("time", describe_length(found))
    lines += format_entry("assumed", describe_noise(found))
    for k, run in enumerate(found.runs, 1):
        lines += ["", f"{k}. {run.step.title}", ""]
        for key, words in list_facts(found, run):
            lines += format_entry(key, words)
        for told in run.told:
            labels = [each.name for each in told.entries]
            lines += ["", *format_entry("expected", told.title)]
            lines += format_table("", labels, list_columns(told))
        lines += [""]
        for words in run.step.untold:
            lines += format_entry("left open", words)
        for words in found.list_commands(run):
            lines += format_entry("then", words)
    for warning in found.warnings:
        lines += ["", *format_entry("warning", warning)]
    return "\n".join([*lines, ""])


def render_protocol_page(found: Protocol) -> str:
    """The page."""
    proved = all(run.kept for run in found.runs)
    statements = [
        VerdictSentence("good", "Time", f"{describe_length(found)}."),
        VerdictSentence(
            "good" if proved else "bad",
            "Limits kept" if proved else "Limits not proved",
            "by every run with what the robot carries in it: proved of the robot file's bodies.",
        ),
        VerdictSentence("note", "Assumed", f"{describe_noise(found)}."),
        *(VerdictSentence("note", "Note", words) for words in found.warnings),
    ]
    numbers = {run.name: str(k) for k, run in enumerate(found.runs, 1)}
    asked = [
        (key, f"{own.words}: runs {', '.join(numbers[name] for name in own.steps)}")
        for key, own in ((key, QUESTIONS[key]) for key in found.planning.questions)
    ]
    parts = [PagePart("questions", "Questions", render_facts(asked))]
    for k, run in enumerate(found.runs, 1):
        parts.append(PagePart(run.name, f"{k}. {run.step.title}", "".join(list_parts(found, run))))
    return render_document(found.robot.name, "What to record for what question", statements, parts)


def list_parts(found: Protocol, run: PlannedRun) -> Iterator[str]:
    """Elements of a run's section."""
    yield render_facts(list_facts(found, run))
    for told in run.told:
        labels = [each.name for each in told.entries]
        table = build_column_table("parameter", labels, list_columns(told), ("unit",))
        yield f"<h3>Expected {escape(told.title)}</h3>{render_table(table)}"
    yield f"<h3>Not told</h3>{render_list(run.step.untold)}"
    then = "\n".join(found.list_commands(run))
    yield f"<h3>Then</h3><pre><code>{escape(then)}</code></pre>"


def render_protocol_files(found: Protocol) -> dict[str, str]:
    """Contents of all files but the studies, by name."""
    files = {HEAD: to_json(replace_nonfinite(found.to_dict())), PAGE: found.render()}
    for name, plan in found.motions.items():
        made = render_excitation_files(plan)
        files |= {f"{MOTIONS}/{name}/{file}": text for file, text in made.items()}
    return files
