"""A result beside another, or beside its robot file: what they say differently, and how surely."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy import linalg

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import serialise_body, to_com
from dynident.core.words import (
    ROUNDED,
    format_entry,
    format_number,
    format_percent,
    format_table,
    format_with_error,
)
from dynident.dynamics.base import BaseParameters, find_base_from_rows
from dynident.dynamics.units import find_parameter_unit
from dynident.fit.json import serialise_drive, serialise_figure, serialise_validation
from dynident.fit.parameters import find_body_errors, list_base_parameters, list_file_parameters
from dynident.fit.result import Result, ValidationFigures
from dynident.regression.statistics import (
    TestResult,
    build_chi2_result,
    compute_confidence_interval,
    compute_wald_statistic,
)
from dynident.report.text import (
    MORE,
    ErrorColumn,
    describe_test_result,
    format_drive_units,
    format_free_errors,
    format_torque_errors,
    label_fit_figure,
    label_headlines,
    list_fitted_logs,
    list_free_errors,
    tabulate_drives,
)

SCHEMA = "dynident.difference/1"
BOTH = ("A", "B")
"""What the two are called."""
FILE = "the robot file's inertials, without rotors and friction"
SAME = 1e-6
"""Of placements [m], axes and cosines, below which they differ by rounding alone."""

FEW = 12
"""Parameters that are printed without being asked for."""

Pair = tuple[ValidationFigures, ValidationFigures]
"""Errors of both on one log."""


@dataclass(frozen=True)
class ParameterPair:
    """A parameter that both have.

    Attributes
    ----------
    name, regrouping : str
    values, stds : tuple of float
        Of A and of B; what was eliminated, held, or is a file's has no standard deviation.
    unit : str
        Of both; empty of shapes of friction and of what was fitted to positions.
    """

    name: str
    regrouping: str
    values: tuple[float, float]
    stds: tuple[float, float]
    unit: str = ""

    @property
    def difference(self) -> float:
        """B minus A."""
        return self.values[1] - self.values[0]

    @property
    def deviations(self) -> float:
        """The difference in joint standard deviations, of estimates that are independent."""
        joint = float(np.hypot(*np.nan_to_num(self.stds)))
        return self.difference / joint if joint > 0.0 else float("nan")


@dataclass(frozen=True, eq=False)
class Difference:
    """A result, A, beside another one or its robot file, B.

    Attributes
    ----------
    one : Result
    other : Result or None
        None is the robot file of `one`.
    apart : str
        Why their parameters cannot be compared; empty where they can.
    parameters : tuple of ParameterPair
        Base parameters that both determine, then shapes of friction and what was fitted to
        positions.
    test : TestResult or None
        Whether all common base parameters are the same.
    logs : tuple of (ValidationFigures, ValidationFigures)
        Errors of both on other logs; beside a file of the one twice, which have the file's.
    names : (str, str)
        What the text calls them.
    """

    one: Result
    other: Result | None
    apart: str
    parameters: tuple[ParameterPair, ...]
    test: TestResult | None
    logs: tuple[Pair, ...] = ()
    names: tuple[str, str] = BOTH

    def __repr__(self) -> str:
        """What is beside what."""
        other = "its robot file" if self.other is None else f"another by {self.other.method}"
        return f"<Difference of {self.one.robot.name} and {other}; print(found.summary())>"

    @property
    def results(self) -> tuple[Result, ...]:
        """Those that are results."""
        return (self.one,) if self.other is None else (self.one, self.other)

    @property
    def shared_logs(self) -> tuple[str, ...]:
        """Logs that both were fitted to, by A's names."""
        if self.other is None:
            return ()
        own, others = (
            {each.provenance.logs[name]: name for name in list_fitted_logs(each)}
            for each in self.results
        )
        return tuple(name for digest, name in own.items() if digest in others)

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the comparison."""
        found = [f"parameters are not compared: {self.apart}"] if self.apart else []
        if self.shared_logs and not self.apart:
            found.append(
                f"both were fitted to {', '.join(self.shared_logs)}: their errors go together, so "
                "that the differences in standard deviations are too small"
            )
        if self.other is None and (summed := list_sums_with_drives(self.one)):
            found.append(f"of {', '.join(summed)} the file states the bodies' share only")
        return tuple(found)

    def summary(self, full: bool = False) -> str:
        """Tables of at most 80 columns; `full` adds the parameters that hardly differ."""
        sections = [
            format_heads(self),
            format_parameters(self, full),
            format_links(self),
            format_pair_of_drives(self),
            format_errors(self),
            [line for note in self.notes for line in format_entry("note", note)],
        ]
        return "\n\n".join("\n".join(lines) for lines in sections if lines)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data (schema ``dynident.difference/1``)."""
        return {
            "schema": SCHEMA,
            "results": [
                {
                    "robot": each.robot.identity,
                    "method": each.method,
                    "friction": each.idim.friction,
                    "logs": list_fitted_logs(each),
                    "verdict": asdict(each.verdict),
                    "base_count": each.base.count,
                }
                for each in self.results
            ],
            "parameters": [serialise_pair(pair) for pair in self.parameters],
            "test": None if self.test is None else asdict(self.test),
            "standard": [
                {"link": link, **dict(zip(BOTH, map(serialise_body, bodies), strict=True))}
                for link, bodies in list_bodies(self).items()
            ],
            "joints": [
                {
                    "name": name,
                    **{
                        key: {"name": name, **serialise_drive(each.drive_parameters(j))}
                        for key, each in zip(BOTH, self.results)
                    },
                }
                for j, name in enumerate(self.one.robot.joint_names)
            ],
            "fit": [serialise_errors(each) for each in self.results],
            "logs": [
                {
                    "log": pair[0].log,
                    **{
                        key: serialise_validation(own, self.one.robot)
                        for key, own, _ in zip(BOTH, pair, self.results)
                    },
                }
                for pair in self.logs
            ],
            "notes": list(self.notes),
        }


def compare_results(one: Result, other: Result | None) -> Difference:
    """A result beside another of the same kind of robot, or beside its robot file.

    Parameters
    ----------
    other : Result or None
        None is the robot file of `one`.

    Raises
    ------
    InputError
        When their robots do not have the same joints.
    """
    if other is None:
        return Difference(one, None, "", pair_with_file(one), None)
    names, others = one.robot.joint_names, other.robot.joint_names
    if names != others or one.robot.floating != other.robot.floating:
        raise InputError(
            f"{describe_robot(one)} and {describe_robot(other)}: only "
            "results of the same kind of robot can be compared"
        )
    apart = find_reason_apart(one, other)
    pairs, test = ((), None) if apart else pair_base_parameters(one, other)
    return Difference(one, other, apart, (*pairs, *pair_others(one, other)), test)


def describe_robot(result: Result) -> str:
    """What kind of robot it is."""
    robot = result.robot
    base = "floating, " if robot.floating else ""
    return f"{robot.name} ({base}joints {', '.join(robot.joint_names)})"


def find_reason_apart(one: Result, other: Result) -> str:
    """Why parameters of two results do not mean the same; empty where they do."""
    if one.idim.friction != other.idim.friction:
        return f"their friction models differ: {one.idim.friction}, {other.idim.friction}"
    for mine, theirs in zip(one.robot.joints, other.robot.joints, strict=True):
        placed = [(each.rotation, each.translation, each.axis) for each in (mine, theirs)]
        if (mine.kind, mine.parent) != (theirs.kind, theirs.parent) or any(
            np.max(np.abs(a - b)) > SAME for a, b in zip(*placed, strict=True)
        ):
            return f"the geometry of their robots differs at joint {mine.name}"
    if np.max(np.abs(one.robot.drives.turns - other.robot.drives.turns)) > SAME:
        return "their drives are coupled otherwise"
    odd = sorted({*one.idim.names} ^ {*other.idim.names})
    return f"only one of them has {', '.join(odd)}" if odd else ""


def find_common_base(one: BaseParameters, other: BaseParameters) -> BaseParameters | None:
    """The combinations of standard parameters that both bases determine; None where none is.

    They are what lies in the span of both rows: principal vectors whose cosine is one.
    """
    same = one.matrix.shape == other.matrix.shape
    if same and np.max(np.abs(one.matrix - other.matrix)) < SAME:
        return one
    spans = [linalg.qr(each.matrix.T, mode="economic")[0] for each in (one, other)]
    left, cosines, _ = linalg.svd(spans[0].T @ spans[1])
    shared = (spans[0] @ left)[:, : len(cosines)][:, cosines > 1.0 - SAME]
    if not shared.shape[1]:
        return None
    return find_base_from_rows(one.idim, shared.T)


def pair_base_parameters(
    one: Result, other: Result
) -> tuple[tuple[ParameterPair, ...], TestResult | None]:
    """Base parameters that both determine, and whether they are the same."""
    common = find_common_base(one.base, other.base)
    if common is None:
        return (), None
    values, covariances = [], []
    for each in (one, other):
        # rows of the common base are in the span of each one's [I K], whose kept columns are I
        turn = common.matrix[:, each.base.kept]
        values.append(turn @ each.estimate.beta)
        covariance = turn @ each.estimate.covariance.matrix @ turn.T
        for own in each.estimate.intervals:
            if own.name in common.names:
                k = common.names.index(own.name)
                covariance[k, k] = max(covariance[k, k], own.std**2)
        covariances.append(covariance)
    every = [np.sqrt(np.maximum(np.diag(matrix), 0.0)) for matrix in covariances]
    # what is held has what rounding leaves, and counts as having none
    stds = [
        np.where(std > ROUNDED * np.abs(value), std, 0.0)
        for std, value in zip(every, values, strict=True)
    ]
    units = [find_parameter_unit(one.idim, int(kept)) for kept in common.kept]
    pairs = tuple(
        ParameterPair(name, text, (float(a), float(b)), (float(s), float(t)), unit)
        for name, text, a, b, s, t, unit in zip(
            common.names, common.regroupings, *values, *stds, units, strict=True
        )
    )
    told = stds[0] + stds[1] > 0.0
    if not np.any(told):
        return pairs, None
    joint = (covariances[0] + covariances[1])[np.ix_(told, told)]
    statistic = compute_wald_statistic((values[1] - values[0])[told], joint)
    return pairs, build_chi2_result(state_sameness(BOTH), *statistic)


def state_sameness(names: tuple[str, str]) -> str:
    """What is tested."""
    return f"{names[0]} and {names[1]} have the same base parameters"


def pair_with_file(result: Result) -> tuple[ParameterPair, ...]:
    """Base parameters that the robot file tells, which knows no standard deviations."""
    both = zip(list_base_parameters(result), list_file_parameters(result), strict=True)
    return tuple(
        ParameterPair(row.name, row.regrouping, (row.value, file.value), (row.std, 0.0), file.unit)
        for row, file in both
        if np.isfinite(file.value)
    )


def list_sums_with_drives(result: Result) -> list[str]:
    """Base parameters in which a drive's parameter stands beside those of bodies."""
    own = result.base.matrix != 0.0
    count = result.idim.inertial
    mixed = own[:, :count].any(axis=1) & own[:, count:].any(axis=1)
    return [name for name, is_sum in zip(result.base.names, mixed, strict=True) if is_sum]


def pair_others(one: Result, other: Result) -> tuple[ParameterPair, ...]:
    """Shapes of friction, and drives and loop that were fitted to positions, that both have."""
    found = []
    for sort in ("shape", "fitted"):
        own = [getattr(each.estimate, sort) for each in (one, other)]
        if None in own:
            continue
        told = [
            {n: (float(v), float(s)) for n, v, s in zip(e.names, e.values, e.std, strict=True)}
            for e in own
        ]
        found += [
            ParameterPair(name, name, (value, told[1][name][0]), (std, told[1][name][1]))
            for name, (value, std) in told[0].items()
            if name in told[1]
        ]
    return tuple(found)


def list_bodies(found: Difference) -> dict[str, tuple[Array, Array]]:
    """Links whose bodies both determine."""
    own = [
        {} if each.phi is None else dict(zip(each.robot.links, each.phi, strict=True))
        for each in found.results
    ]
    if found.other is None:
        robot = found.one.robot
        pairs = zip(robot.links, robot.nominal, strict=True)
        own.append({link: phi for link, phi in pairs if phi[0] > 0.0})
    return {link: (own[0][link], own[1][link]) for link in own[0] if link in own[1]}


def serialise_pair(pair: ParameterPair) -> dict[str, Any]:
    """A parameter of both as plain data."""
    sides = {}
    for key, value, std in zip(BOTH, pair.values, pair.stds, strict=True):
        low, high = compute_confidence_interval(np.array(value), np.array(std))
        sides[key] = {"value": value, "std": std, "interval_95": [float(low), float(high)]}
    return {
        "name": pair.name,
        "regrouping": pair.regrouping,
        "unit": pair.unit,
        **sides,
        "difference": pair.difference,
        "difference_in_std": pair.deviations,
    }


def serialise_errors(result: Result) -> dict[str, Any]:
    """Errors of a result on its own logs, fitted and held out."""
    return {
        "identification": [serialise_figure(each, result.robot) for each in result.identification],
        "validation": [serialise_validation(each, result.robot) for each in result.validation],
    }


# -------------------------------------------------------------------------------- text


def describe_sides(found: Difference) -> list[tuple[str, str]]:
    """What each is, and whether to trust it."""
    told = [FILE, FILE]
    for k, each in enumerate(found.results):
        logs = ", ".join(list_fitted_logs(each))
        told[k] = f"{each.robot.name}, {each.method}, friction {each.idim.friction}, fitted to "
        told[k] += f"{logs}: {each.verdict.words}"
    return list(zip(found.names, told, strict=True))


def format_heads(found: Difference) -> list[str]:
    """The same, and whether they are the same."""
    lines = [line for side in describe_sides(found) for line in format_entry(*side)]
    if found.test is not None:
        test = replace(found.test, null=state_sameness(found.names))
        lines += format_entry("same", describe_test_result(test))
    return lines


def format_parameters(found: Difference, full: bool) -> list[str]:
    """Parameters of both, those that differ most first unless all are shown."""
    rows = list(found.parameters)
    if not rows:
        return []
    if not full and len(rows) > FEW:
        rows = sorted(rows, key=lambda row: -abs(np.nan_to_num(row.deviations)))[:FEW]
    columns = []
    for k, key in enumerate(found.names):
        stds = np.array([row.stds[k] for row in rows])
        _, half = compute_confidence_interval(np.zeros(len(rows)), stds)
        columns.append((key, [format_number(row.values[k]) for row in rows]))
        columns.append(("± 95 %", [format_number(value, 2) for value in half.tolist()]))
    columns.append(
        (" - ".join(reversed(found.names)), [format_number(row.difference, 3) for row in rows])
    )
    columns.append(("in std", [format_number(row.deviations, 2) for row in rows]))
    lines = format_table("parameter", [row.name for row in rows], columns)
    if len(rows) < len(found.parameters):
        lines += format_entry(
            f"  {len(rows)} of {len(found.parameters)}",
            f"that differ most in joint standard deviations; all with {MORE}",
        )
    return lines


def format_links(found: Difference) -> list[str]:
    """Masses, and how far apart centres of mass and inertias are."""
    bodies = list_bodies(found)
    if not bodies:
        return []
    told = [[to_com(phi) for phi in pair] for pair in bodies.values()]
    masses = [[format_number(pair[k][0]) for pair in told] for k in range(2)]
    for k, each in enumerate(found.results):
        std = dict(zip(each.robot.links, find_body_errors(each)[:, 0], strict=True))
        both = zip(told, bodies, strict=True)
        masses[k] = [format_with_error(pair[k][0], std[link]) for pair, link in both]
    columns = [(f"mass {key}", own) for key, own in zip(found.names, masses, strict=True)]
    shifts = [pair[1][1] - pair[0][1] for pair in told]
    apart = [1e3 * np.where(np.abs(shift) < SAME, 0.0, shift) for shift in shifts]
    columns += [
        (f"d{axis} mm", [format_number(shift[k], 3) for shift in apart])
        for k, axis in enumerate("xyz")
    ]
    sizes = [[np.linalg.norm(each[2]) for each in pair] for pair in told]
    columns += [
        (f"|I| {key}", [format_number(float(pair[k]), 3) for pair in sizes])
        for k, key in enumerate(found.names)
    ]
    gaps = [100.0 * float(np.linalg.norm(pair[1][2] - pair[0][2])) for pair in told]
    shares = [
        gap / float(size[0]) if size[0] else np.nan for gap, size in zip(gaps, sizes, strict=True)
    ]
    columns.append(("dI %", [format_percent(share) for share in shares]))
    lines = format_table("link", list(bodies), columns)
    one, other = found.names
    words = (
        f"of {other}'s centre of mass from {one}'s; mass [kg]; |I|: norm of the inertia about the "
        f"centre of mass [kg m^2]; dI: norm of the difference, of {one}'s"
    )
    return lines + format_entry("  dx dy dz", words)


def format_pair_of_drives(found: Difference) -> list[str]:
    """Rotor inertia and friction of each drive."""
    own = [tabulate_drives(each) for each in found.results]
    sides = [[(f"{title} {key}", cells) for title, cells in c] for key, c in zip(found.names, own)]
    columns = [each for pair in zip_longest(*sides) for each in pair if each is not None]
    if not columns:
        return []
    lines = format_table("drive", found.one.robot.joint_names, columns)
    return lines + format_drive_units(*found.results)


def format_errors(found: Difference) -> list[str]:
    """Torque errors, and those of free simulations, on fitted logs and on others."""
    columns, lines = [], []
    joints = found.one.robot.joint_names
    for k, (key, each) in enumerate(zip(found.names, found.results)):
        if not each.encoder_only:
            columns += [
                label_fit_figure(key, f"{key}, fitted logs", f) for f in each.identification
            ]
            for number, log in enumerate(each.validation, start=1):
                title = f"{key}, held-out {log.log}"
                columns += label_headlines(f"{key} V{number}", title, log.entries)
        for number, pair in enumerate(found.logs, start=1):
            if pair[k].torque == "measured" or not pair[k].free:
                title = f"{key} on {pair[k].log}"
                columns += label_headlines(f"{key} L{number}", title, pair[k].entries)
        free = [(f"{key}, {log}", errors) for log, errors in list_free_errors(each)]
        free += [(f"{key} on {pair[k].log}", pair[k].free) for pair in found.logs]
        lines += format_free_errors(joints, free)
    if found.other is None and not found.one.encoder_only:
        columns += label_file_errors(found)
    return lines + format_torque_errors(columns, found.one.torque_source)


def label_file_errors(found: Difference) -> list[ErrorColumn]:
    """Torque errors of the robot file's inertials, on the logs of the result and on others."""
    one, key = found.one, found.names[1]
    columns = [label_fit_figure(key, f"{key}, fitted logs", f) for f in one.nominal]
    held_out = [(f"{key} V{k}", each) for k, each in enumerate(one.validation, start=1)]
    others = [(f"{key} L{k}", each) for k, (each, _) in enumerate(found.logs, start=1)]
    for short, each in (*held_out, *others):
        columns += label_headlines(short, f"{key} on {each.log}", each.nominal)
    return columns
