"""The zoo's table in words."""

from __future__ import annotations

from collections.abc import Sequence

from dynident.core.words import format_entry, format_table
from dynident.fit.zoo import ZooRow


def format_zoo(rows: Sequence[ZooRow]) -> list[str]:
    """The table, and below it whose the logs and robot files are."""
    columns = [
        ("robot", [row.robot for row in rows]),
        ("joints", [str(row.joints) for row in rows]),
        ("method", [row.method for row in rows]),
        ("held out", [row.held_out for row in rows]),
        ("verdict", [row.verdict for row in rows]),
    ]
    lines = format_table("zoo", [row.name for row in rows], columns)
    lines += format_entry(
        "  held out",
        "largest error of logs that were not fitted: torque, or positions of a free simulation",
    )
    for row in rows:
        lines += format_entry(f"  {row.name}", f"{row.source} ({row.licence})")
    return lines
