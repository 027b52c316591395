"""The flags of commands whose work runs side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

from dynident.cli.options import Command, check_positive, gather_flags
from dynident.core.side_by_side import ENGINES, Engine

MOST = 256
"""Processes that one machine is asked for."""


def check_workers(count: int) -> int:
    """Refuse none, and more than any machine has use for."""
    if not 1 <= count <= MOST:
        raise typer.BadParameter(f"{count} is not from 1 to {MOST}.")
    return count


def read_engine_flags(
    *,
    workers: Annotated[
        int,
        typer.Option("--workers", callback=check_workers, help="Processes of this machine."),
    ] = 1,
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory",
            metavar="GB",
            callback=check_positive,
            help="Memory limit of each process; tasks that need more are skipped.",
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="|".join(ENGINES), help="Where the work runs.")
    ] = "processes",
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help="Dask scheduler: tcp://HOST:8786, or its JSON file.",
        ),
    ] = None,
) -> Engine:
    """What the flags say."""
    return Engine(engine, workers, memory, scheduler)


def add_engine_flags(*without: str) -> Callable[[Command], Command]:
    """Add the flags, but for some of them; they arrive as `engine`."""
    return partial(gather_flags, name="engine", read=read_engine_flags, without=without)
