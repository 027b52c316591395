"""Pages of ``--help``: flags in groups, and values called what a reader calls them."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

LOGS, PREPARATION, METHOD, OUTPUT = "Robot and logs", "Preparation", "Method", "Output"
OPTIONS, METHODS = "Options", "Options of methods"
GROUPS = (LOGS, PREPARATION, METHOD, METHODS, OUTPUT, OPTIONS)
"""In the order of a page."""
VALUES = {
    "<path>": "FILE",
    "<list[Path]>": "FILE",
    "<list[str]>": "TEXT",
    "<str>": "TEXT",
    "<float>": "X",
    "<int>": "N",
}
"""What a flag is given, by the parser's names of types."""
WHOLE = "dynident.help.whole"


class GroupedCommand(TyperCommand):
    """A command whose page has its flags in groups; those of methods where they are asked for."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, and flags group by group."""
        arguments: list[tuple[str, str]] = []
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            name, words = record
            if param.param_type_name == "argument":
                arguments.append((name.partition(" <")[0], words))
                continue
            for kind, called in VALUES.items():
                name = name.replace(kind, called)
            groups[getattr(param, "rich_help_panel", None) or OPTIONS].append((name, words))
        if not ctx.meta.get(WHOLE):
            groups.pop(METHODS)
        for title, rows in (("Arguments", arguments), *groups.items()):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def show_method_flags(ctx: typer.Context, wanted: bool) -> None:
    """Print the page with the flags of methods, and leave."""
    if wanted:
        ctx.meta[WHOLE] = True
        typer.echo(ctx.get_help())
        raise typer.Exit
