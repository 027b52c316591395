"""Blocks of a study's logs that tell the most, in words, and a study of these alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from dynident.core.compiled import tells_compilations
from dynident.core.options import read_options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.text import format_count
from dynident.core.words import format_entry, format_number, format_percent, format_table
from dynident.decide.selection import Selection, SelectionOptions, select_blocks
from dynident.study.study import Study, read_study_problem

MOST = 8
"""Missing parameters that are printed; JSON has all."""


@tells_compilations
def select_study(study: Study, progress: Progress = ignore_progress) -> Selection:
    """Choose among the blocks of all logs that a study fits."""
    problem = read_study_problem(study, progress)
    return select_blocks(problem, read_options(SelectionOptions, study.select))


def render_selected_study(path: Path, study: Study, found: Selection) -> str:
    """The text of a study that fits the chosen samples alone; all else stays as it is.

    Fitted logs of which nothing was chosen are left out.
    """
    document: Any = tomlkit.parse(path.read_text(encoding="utf-8-sig"))
    fitted = [k for k, section in enumerate(study.log) if section.use == "identify"]
    left_out = []
    for log, k in enumerate(fitted):
        rows = study.log[k].rows
        first = 0 if rows is None else rows[0]
        kept = [[first + start, first + stop] for start, stop in found.kept(log)]
        if kept:
            document["log"][k]["keep"] = kept
        else:
            left_out.append(k)
    for k in reversed(left_out):
        del document["log"][k]
    return tomlkit.dumps(document)


def format_selection(found: Selection) -> str:
    """A selection as plain text of at most 80 columns."""
    share = 100.0 * found.rows / found.rows_all
    rest = len(found.blocks) + found.repeats
    lines = format_entry(
        "chosen",
        f"{len(found.blocks)} of {format_count(found.offered, 'block')}, {found.rows} of "
        f"{found.rows_all} rows ({share:.3g} %); {format_count(found.repeats, 'repeat')} and "
        f"{found.offered - rest} that add little left out",
    )
    for log, name in enumerate(found.logs):
        rate = found.rates[log]
        spans = [f"{a / rate:.4g}-{b / rate:.4g}" for a, b in found.kept(log)]
        lines += format_entry(
            "  from", f"{name}: {', '.join(spans) + ' s' if spans else 'nothing'}"
        )
    last = found.blocks[-1]
    lines += format_entry("  last", f"lowered the standard deviations by {100.0 * last.gain:.2g} %")
    columns = [
        ("parameters", [str(len(chain.columns)) for chain in found.chains]),
        ("cond. all", [format_number(chain.condition_all, 3) for chain in found.chains]),
        ("chosen", [format_number(chain.condition, 3) for chain in found.chains]),
        ("information a row", [f"{chain.information:.2f} x" for chain in found.chains]),
    ]
    lines += ["", *format_table("carried by", [chain.joint for chain in found.chains], columns)]
    lines += format_entry(
        "information a row",
        "information of a chosen row over that of a row among all, geometric mean over parameters",
    )
    lines += ["", *format_entry("std %", describe_deviations(found))]
    for each in found.missing[:MOST]:
        lines += format_entry(f"  {each.name}", each.words)
    if len(found.missing) > MOST:
        lines += format_entry("", f"and {len(found.missing) - MOST} more (--json)")
    if not found.missing:
        lines += format_entry(
            "missing", "nothing: all base parameters are known well by what was chosen"
        )
    for words in found.warnings:
        lines += format_entry("warning", words)
    return "\n".join(lines)


def describe_deviations(found: Selection) -> str:
    """Relative standard deviations before and after, in words."""
    words = []
    for name, values in (("of all rows", found.before), ("of the chosen", found.after)):
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], method="nearest")
        words.append(
            f"{name} {format_percent(low)}, {format_percent(middle)}, {format_percent(high)}"
        )
    return (
        f"{'; '.join(words)}: predicted, a tenth, half and nine tenths of the base parameters "
        f"are below. Poorly determined by the chosen rows: {len(found.missing)}"
    )


def serialise_selection(found: Selection) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "blocks": [
            {
                "log": found.logs[b.log],
                "samples": [b.start, b.stop],
                "time_s": [b.start / found.rates[b.log], b.stop / found.rates[b.log]],
                "rows": b.rows,
                "gain": b.gain,
            }
            for b in found.blocks
        ],
        "offered": found.offered,
        "repeats": found.repeats,
        "rows": found.rows,
        "rows_all": found.rows_all,
        "chains": [
            {
                "joint": chain.joint,
                "parameters": [found.names[k] for k in chain.columns],
                "condition_all": chain.condition_all,
                "condition": chain.condition,
                "information_a_row": chain.information,
            }
            for chain in found.chains
        ],
        "parameters": [
            {"name": name, "relative_std_percent_all": before, "relative_std_percent": after}
            for name, before, after in zip(
                found.names, found.before.tolist(), found.after.tolist(), strict=True
            )
        ],
        "missing": [
            {"name": each.name, "joint": each.joint, "words": each.words} for each in found.missing
        ],
        "warnings": list(found.warnings),
    }
