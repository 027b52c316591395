"""The application and the options that several commands share."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from dynident import __version__

app = typer.Typer(
    name="dynident",
    help="From a robot model and a motion log to a physically consistent dynamic model.",
    epilog="Example: dynident identify examples/tx40/study.toml -o out/tx40",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
)


def positive(value: float | None) -> float | None:
    """Refuse a number that is not finite or not positive."""
    if value is not None and not 0.0 < value < math.inf:
        raise typer.BadParameter(f"{value:g} is not a positive number.")
    return value


JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
LowpassOption = Annotated[
    float | None,
    typer.Option("--lowpass", callback=positive, help="Low-pass of the all-samples errors [Hz]."),
]
MetricOption = Annotated[
    str | None,
    typer.Option("--metric", help="Distance: pullback (default), euclidean, weighted or entropic."),
]
FrictionOption = Annotated[
    str | None,
    typer.Option(
        "--friction",
        help="none, viscous, viscous-offset, coulomb-viscous (default), "
        "coulomb-viscous-symmetric or coulomb-viscous-asymmetric.",
    ),
]


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"dynident {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="And leave.")
    ] = False,
) -> None:
    """From a robot model and a motion log to a physically consistent dynamic model."""
