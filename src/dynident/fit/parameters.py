"""The parameters of a result, row by row: what every form of it tells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dynident.core.arrays import Array
from dynident.core.inertia import differentiate_body
from dynident.dynamics.units import find_parameter_unit
from dynident.estimators.estimate import compute_intervals
from dynident.fit.result import Result


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
    from_data: float
    """The share that the logs tell, and not the prior; NaN where the links are the prior's."""

    @property
    def literature_percent(self) -> float:
        """Standard deviation by the literature's formula, relative to the value [%]."""
        return 100.0 * self.literature_std / abs(self.value) if self.value else math.nan

    @property
    def weak(self) -> bool:
        """Whether the 95 % interval contains zero."""
        return self.essential and self.low <= 0.0 <= self.high


@dataclass(frozen=True)
class FileRow:
    """What the robot's file says of a base parameter, beside what was identified."""

    value: float
    """NaN where the file has no inertial of a link in it, or nothing of it is of a link."""
    unit: str


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
    std, low, high = compute_intervals(estimate, base.names)
    kept = range(base.count) if result.essential is None else result.essential
    share = estimate.informed_base
    if share is None:
        share = np.full(base.count, 1.0 if estimate.fitted is None else np.nan)
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
            float(share[k]),
        )
        for k in range(base.count)
    )


def find_correlations(result: Result) -> tuple[list[str], Array]:
    """Names of the base parameters that were estimated, and how their estimates go together.

    NaN of parameters without an error bar.
    """
    kept = range(result.base.count) if result.essential is None else result.essential
    matrix = result.estimate.covariance.matrix[np.ix_(kept, kept)]
    std = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = np.outer(std, std)
    known = np.divide(matrix, scale, out=np.full_like(matrix, np.nan), where=scale > 0.0)
    return [result.base.names[k] for k in kept], known


def list_correlated_pairs(result: Result, most: int) -> list[tuple[str, str, float]]:
    """Base parameters whose estimates go together most, the strongest correlation first."""
    names, matrix = find_correlations(result)
    rows, columns = np.triu_indices(len(names), 1)
    found = np.nan_to_num(matrix[rows, columns])
    order = np.argsort(-np.abs(found), kind="stable")[:most]
    return [(names[rows[k]], names[columns[k]], float(found[k])) for k in order if found[k]]


def list_file_parameters(result: Result) -> tuple[FileRow, ...]:
    """The base parameters of the robot file's inertials alone, and the units of all."""
    idim, base = result.idim, result.base
    matrix, known = base.matrix, result.robot.nominal[:, 0] > 0.0
    values = matrix @ idim.nominal
    links = np.any(matrix[:, : idim.inertial].reshape(base.count, -1, 10) != 0.0, axis=2)
    told = links.any(axis=1) & ~np.any(links & ~known, axis=1)
    return tuple(
        FileRow(float(value) if own else math.nan, find_parameter_unit(idim, int(kept)))
        for value, own, kept in zip(values, told, base.kept, strict=True)
    )


def list_drive_errors(result: Result) -> list[dict[str, float]]:
    """Of each joint the standard deviations of its `drive_parameters`, NaN where there is none."""
    std = find_drive_errors(result)
    return [
        {
            parameter.symbol: float(own)
            for parameter, own in zip(result.idim.drives, std, strict=True)
            if parameter.number == joint + 1
        }
        for joint in range(result.robot.n)
    ]


def find_drive_errors(result: Result) -> Array:
    """Standard deviations of the drives' parameters, NaN of what has none.

    At a bound those of its `Interval`.
    """
    names = result.idim.names[result.idim.inertial :]
    std = find_own_drive_errors(result).copy()
    for own in result.estimate.bounded:
        if own.name in names:
            std[names.index(own.name)] = own.std
    return std


def find_own_drive_errors(result: Result) -> Array:
    """The same by the covariance alone."""
    found = result.estimate.standard_errors
    if found is not None:
        return found.drives[: len(result.idim.drives)]  # shapes that are free come after
    idim, base, known = result.idim, result.base, result.estimate.fitted
    std = np.full(len(idim.parameters), math.nan)
    if known is not None:
        own = dict(zip(known.names, known.std, strict=True))
        std = np.array([own.get(name, math.nan) for name in idim.names])
    else:
        alone = ~np.any(base.K != 0.0, axis=1)
        std[base.kept[alone]] = result.estimate.covariance.std[alone]
    return std[idim.inertial :]


def find_body_errors(result: Result) -> Array:
    """Standard deviations of the links' mass, centre and inertia, as `StandardErrors.bodies`."""
    found = result.estimate.standard_errors
    bodies = np.full((result.idim.bodies, 10), math.nan)
    if found is not None:
        return found.bodies
    known = result.estimate.fitted
    if known is None or result.phi is None:
        return bodies
    places = {name: k for k, name in enumerate(known.names)}
    for k, phi in enumerate(result.phi):
        names = result.idim.names[10 * k : 10 * k + 10]
        if all(name in places for name in names):
            own = [places[name] for name in names]
            derivative = differentiate_body(phi)
            spread = derivative @ known.matrix[np.ix_(own, own)] @ derivative.T
            bodies[k] = np.sqrt(np.maximum(np.diag(spread), 0.0))
    return bodies


def list_regrouped_drives(result: Result) -> tuple[str, ...]:
    """Drives' parameters that torques determine in a sum alone, each with the base parameter."""
    base, idim = result.base, result.idim
    if result.estimate.fitted is not None:
        return ()
    places = {int(d): c for c, d in enumerate(base.dropped)}
    found = []
    for k in range(idim.inertial, len(idim.parameters)):
        row = (
            np.flatnonzero(base.K[:, places[k]]) if k in places else np.flatnonzero(base.kept == k)
        )
        sums = [base.names[r] for r in row if np.any(base.K[r] != 0.0)]
        if sums:
            found.append(f"{idim.names[k]} in {' and '.join(sums)}")
    return tuple(found)


def serialise_body_errors(std: Array) -> dict[str, Any]:
    """Standard deviations of a body, in the words of `serialise_body`; null of what has none."""
    plain = [None if math.isnan(s) else float(s) for s in std]
    return {"mass": plain[0], "com": plain[1:4], "inertia_com": plain[4:]}
