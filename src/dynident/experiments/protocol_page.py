"""A protocol as text, as a page to print, and as files."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from dynident.core.words import format_common_values, format_entry, format_number, format_table
from dynident.experiments.page import render_excitation_files
from dynident.experiments.protocol import Protocol, Run
from dynident.experiments.steps import QUESTIONS, Told
from dynident.fit.json import replace_nonfinite, to_json
from dynident.plots.document import (
    Part,
    Statement,
    build_column_table,
    render_document,
    render_facts,
    render_list,
    render_table,
)

NORMAL = 1.96
"""Standard deviations of half a 95 % interval."""
HEAD, PAGE, MOTIONS = "protocol.json", "protocol.html", "motions"
LAPSE = "without changing the setup and without warming up"


def list_columns(told: Told) -> list[tuple[str, list[str]]]:
    """Values and half intervals; none of what a title says is no estimate."""
    entries = told.entries
    found = [
        (
            "value",
            [format_number(each.value) if np.isfinite(each.value) else "-" for each in entries],
        )
    ]
    with np.errstate(divide="ignore"):
        shares = [100.0 * NORMAL * each.std / abs(each.value) for each in entries]
    found.append(
        (
            "± 95 %",
            [
                "not told" if np.isinf(each.std) else format_number(NORMAL * each.std, 2)
                for each in entries
            ],
        )
    )
    found.append(("± %", [f"{share:.2g}" if np.isfinite(share) else "-" for share in shares]))
    found.append(("unit", [each.unit for each in entries]))
    return [column for column in found if any(cell not in ("-", "") for cell in column[1])]


def list_facts(found: Protocol, run: Run) -> list[tuple[str, str]]:
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
        f"white noise of the torques of {format_common_values(found.sigma)} Nm or N a "
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
            lines += format_entry("not told", words)
        for words in found.list_commands(run):
            lines += format_entry("then", words)
    for warning in found.warnings:
        lines += ["", *format_entry("warning", warning)]
    return "\n".join([*lines, ""])


def render_protocol_page(found: Protocol) -> str:
    """The page."""
    proved = all(run.kept for run in found.runs)
    statements = [
        Statement("good", "Time", f"{describe_length(found)}."),
        Statement(
            "good" if proved else "bad",
            "Limits kept" if proved else "Limits not proved",
            "by every run with what the robot carries in it: proved of the robot file's bodies.",
        ),
        Statement("note", "Assumed", f"{describe_noise(found)}."),
        *(Statement("note", "Note", words) for words in found.warnings),
    ]
    asked = [
        (key, f"{QUESTIONS[key].words}: runs {', '.join(number_runs(found, key))}")
        for key in found.planning.questions
    ]
    parts = [Part("questions", "Questions", render_facts(asked))]
    for k, run in enumerate(found.runs, 1):
        parts.append(Part(run.name, f"{k}. {run.step.title}", "".join(list_parts(found, run))))
    return render_document(found.robot.name, "What to record for what question", statements, parts)


def number_runs(found: Protocol, question: str) -> Iterator[str]:
    """Numbers of the runs that answer a question."""
    names = [run.name for run in found.runs]
    return (str(1 + names.index(name)) for name in QUESTIONS[question].steps)


def list_parts(found: Protocol, run: Run) -> Iterator[str]:
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
