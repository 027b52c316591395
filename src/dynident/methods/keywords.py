"""Options of `dynident.identify`: made by docs/make_options.py from the fields of the options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy.typing as npt

from dynident.consistency.constraints import Constraint
from dynident.estimators.closed_loop import Simulation


class IdentifyOptions(TypedDict, total=False):
    """Options of `dynident.identify`."""

    begin: Mapping[str, Any] | None
    bootstrap: int | None
    consistency: Literal["pseudo-inertia", "inertia", "base", "none"] | None
    constraints: Sequence[Constraint] | None
    covariance: (
        Literal[
            "sandwich", "filtered", "robust", "bartlett", "hac", "clustered", "scatter", "blocks"
        ]
        | None
    )
    curves: Literal["measured", "simulated"] | None
    directional: bool | None
    doctor: bool | None
    essential: Literal["ratio", "f-test", "torque-range"] | None
    essential_p: float | None
    essential_percent: float | None
    essential_ratio: float | None
    gain_update: bool | None
    generations: int | None
    gyration: Literal["file"] | float | Sequence[float] | npt.NDArray[Any] | None
    hindered: Literal["left-out", "fitted"] | None
    iterations: int | None
    knots_hz: float | None
    law: Simulation | None
    learning_rate: float | None
    links: Literal["free", "fixed", "prior"] | None
    loop: str | Sequence[str] | None
    loss: Literal["huber", "bisquare"] | None
    lowpass_hz: float | None
    memory: float | None
    memory_friction: float | None
    metric: Literal["pullback", "euclidean", "weighted", "entropic"] | None
    mount: str | Sequence[str] | None
    objective: Literal["least-squares", "mean-and-spread"] | None
    only: str | Sequence[str] | None
    particles: int | None
    population: int | None
    position_std: float | Sequence[float] | npt.NDArray[Any] | None
    prior: Literal["nominal", "none"] | None
    prior_weight: Literal["held-out"] | float | None
    ranges: Mapping[str, Any] | None
    round_limit: int | None
    rows: Literal["decimated", "all", "noise-model"] | None
    score: Literal["all", "moving"] | None
    search_state: str | None
    seed: int | None
    sensitivities: Literal["exact", "differences"] | None
    shape_std: float | None
    sigma: float | Sequence[float] | npt.NDArray[Any] | None
    sigma_tolerance: float | None
    simulation: Simulation | None
    simulations: int | None
    spread_weight: float | None
    step_limit: int | None
    steps: int | None
    tolerance: float | None
    torque_std: float | Sequence[float] | npt.NDArray[Any] | None
    walk: float | None
    walk_friction: float | None
    weights: Literal["sigma", "none"] | None
    wrench_std: Sequence[float] | npt.NDArray[Any] | None
