"""The parameters of a result, row by row: what every form of it tells."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dynident.core.arrays import Array
from dynident.core.inertia import to_com
from dynident.fit.result import Result
from dynident.regression.statistics import compute_confidence_interval
from dynident.robot.model import Robot


class BaseRow(NamedTuple):
    """One base parameter with its error bars."""

    name: str
    value: float
    std: float
    relative_percent: float
    low: float
    high: float
    literature_std: float
    regrouping: str
    essential: bool

    @property
    def literature_percent(self) -> float:
        """Standard deviation by the literature's formula, relative to the value [%]."""
        return 100.0 * self.literature_std / abs(self.value) if self.value else math.nan

    @property
    def weak(self) -> bool:
        """Whether the 95 % interval contains zero."""
        return self.essential and self.low <= 0.0 <= self.high


class SensorRow(NamedTuple):
    """What was estimated of a sensor of forces, with its error bar."""

    name: str
    unit: str
    value: float
    std: float


def list_sensor_parameters(result: Result) -> tuple[SensorRow, ...]:
    """Biases and orientations of sensors, where they were estimated."""
    columns = result.idim.structure.sensor_columns
    places = {name: k for k, name in enumerate(result.base.names)}
    std = result.estimate.covariance.std
    return tuple(
        SensorRow(
            column.parameter.name,
            column.unit,
            float(value),
            float(std[places[column.parameter.name]]),
        )
        for column, value in zip(columns, result.idim.sensor_values(result.theta), strict=True)
    )


def list_base_parameters(result: Result) -> tuple[BaseRow, ...]:
    """The base parameters with standard deviations and 95 % intervals."""
    estimate, base = result.estimate, result.base
    std = estimate.covariance.std
    low, high = compute_confidence_interval(estimate.beta, std)
    kept = range(base.count) if result.essential is None else result.essential
    size = np.abs(estimate.beta)
    relative = 100.0 * np.divide(std, size, out=np.full_like(size, np.nan), where=size > 0.0)
    return tuple(
        BaseRow(
            base.names[k],
            float(estimate.beta[k]),
            float(std[k]),
            float(relative[k]),
            float(low[k]),
            float(high[k]),
            float(estimate.covariance.literature[k]),
            base.regroupings[k],
            k in kept,
        )
        for k in range(base.count)
    )


def serialise_robot(robot: Robot) -> dict[str, Any]:
    """Which robot it is, in the words of result.json."""
    return {"name": robot.name, "joints": list(robot.joint_names), "dof": robot.dof}


def serialise_body(phi: Array) -> dict[str, Any]:
    """A body's mass, centre of mass and inertia about it, in the words of result.json."""
    mass, com, i = to_com(phi)
    entries = [i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2]]
    return {
        "mass": mass,
        "com": [float(c) for c in com],
        "inertia_com": [float(e) for e in entries],
    }
