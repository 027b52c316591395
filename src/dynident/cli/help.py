"""Pages of ``--help``: flags in groups, and values called what a reader calls them."""

from __future__ import annotations

from itertools import zip_longest
from textwrap import fill
from typing import Any

import typer
from typer.core import TyperCommand

LOGS, PREPARATION, METHOD, OUTPUT = "Robot and logs", "Preparation", "Method", "Output"
OPTIONS, METHODS = "Options", "Options of methods"
GROUPS = (LOGS, PREPARATION, METHOD, OUTPUT, OPTIONS)
"""In the order of a page; below them what some methods take, under their names."""
WIDTH = 78
"""Of a heading [characters]."""
FLAGS = {
    LOGS: (
        "--robot", "--study", "--log", "--validate", "--preset", "--locked", "--floating",
        "--contact", "--sensor", "--beyond", "--columns", "--units", "--side", "--rate",
        "--rows", "--bad-rows",
    ),
    PREPARATION: ("--bandwidth", "--drop-below"),
    METHOD: ("--friction", "--method", "--as-given"),
    OUTPUT: (
        "--output", "--write-study", "--report", "--script", "--fix", "--urdf", "--mjcf", "--c",
        "--full", "--json", "--strict", "--anyway", "--page", "--franka", "--mcap", "--rrd",
    ),
}  # fmt: skip
"""What is in which group, wherever it stands; flags of options say theirs themselves."""
GROUP_OF = {flag: group for group, flags in FLAGS.items() for flag in flags}
VALUES = {
    "<path>": "FILE",
    "<list[Path]>": "FILE",
    "<list[str]>": "FILE",
    "<str>": "NAME",
    "<float>": "X",
    "<int>": "N",
    "<int range>": "N",
}
"""What a flag is given, by the parser's names of types."""
PORT = 8790
"""Of the page of a run that is followed."""
LEFT_OUT = {"--live": str(PORT)}
"""Flags whose value may be left out, and what it then is; a value that is given is a number."""
WHOLE = "dynident.help.whole"


class GroupedCommand(TyperCommand):
    """A command whose page has its flags in groups; those of methods where they are asked for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill in values that may be left out, for which the parser has no word."""
        told: list[str] = []
        for word, following in zip_longest(args, args[1:], fillvalue=""):
            told.append(word)
            if word in LEFT_OUT and not following.isdecimal():
                told.append(LEFT_OUT[word])
        return super().parse_args(ctx, told)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments as a shell's pages name them: in brackets what may be left out, no braces."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, and flags group by group; those of some methods under these."""
        arguments: list[tuple[str, str]] = []
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        of_methods: dict[str, list[tuple[str, str]]] = {}
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
            known = (GROUP_OF[flag] for flag in param.opts if flag in GROUP_OF)
            group = getattr(param, "rich_help_panel", None) or next(known, OPTIONS)
            if group == METHODS:
                methods, _, words = words.partition(": ")
                words = f"{words[:1].upper()}{words[1:]}"
                of_methods.setdefault(methods, []).append((name, words))
                continue
            groups[group].append((name, words))
        whole = [*of_methods.items()] if ctx.meta.get(WHOLE) else []
        for title, rows in (("Arguments", arguments), *groups.items(), *whole):
            if rows:
                with formatter.section(fill(title, WIDTH)):
                    formatter.write_dl(rows)


def show_method_flags(ctx: typer.Context, wanted: bool) -> None:
    """Print the page with the flags of methods, and leave."""
    if wanted:
        ctx.meta[WHOLE] = True
        typer.echo(ctx.get_help())
        raise typer.Exit
