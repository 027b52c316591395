"""Regroupings with the lengths of a DH table as symbols: ``Izz1 + Iyy2 + d3^2 m3``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations_with_replacement
from math import prod

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import INERTIAL
from dynident.core.text import format_combination
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import Parameter
from dynident.robot.load import read_table_lengths

EXACT = 1e-9
"""By which the symbols' values may miss the numbers, over the largest one of their row or one."""
ROUND = 1e-7
"""By which a coefficient may miss a whole number that it is."""
MORE = 4
"""Robots more than there are coefficients."""

Terms = tuple[tuple[float, str], ...]


def find_symbolic_regroupings(
    base: BaseParameters, lengths: Mapping[str, tuple[float, Array]]
) -> tuple[str, ...]:
    """Each base parameter as a combination whose factors are products of lengths.

    A factor that regroups a parameter of dimension ``kg m^p`` into one of ``kg m^r`` is a
    homogeneous polynomial of degree r - p in the lengths, its coefficients of the angles. They are
    found from robots with other lengths and the same angles. Factors of which that does not hold,
    as where equal lengths mean something, are numbers. The lengths are those of
    `dynident.robot.load.read_table_lengths`.
    """
    factors = find_symbolic_factors(base, lengths)
    names = base.idim.names
    return tuple(
        format_combination(
            [
                (1.0, names[kept]),
                *(
                    (factor, f"{symbol} {names[d]}".strip())
                    for d, terms in zip(base.dropped, row, strict=True)
                    for factor, symbol in terms
                ),
            ]
        )
        for kept, row in zip(base.kept, factors, strict=True)
    )


def find_symbolic_factors(
    base: BaseParameters, lengths: Mapping[str, tuple[float, Array]]
) -> list[list[Terms]]:
    """Of each entry of K its terms: coefficients and products of lengths, ``2``, ``d3 a4``."""
    own = np.array([length for length, _ in lengths.values()])
    symbols = [list(combinations_with_replacement(lengths, degree)) for degree in range(3)]
    rng = np.random.default_rng(0)
    others = own * rng.uniform(0.6, 1.4, (max(len(each) for each in symbols) + MORE, len(own)))
    found = [build_other_base(base, lengths, each) for each in others]
    same = [k for k, each in enumerate(found) if np.array_equal(each.kept, base.kept)]
    values = [evaluate_symbols(each, lengths, others[same]) for each in symbols]
    here = [evaluate_symbols(each, lengths, own[None]) for each in symbols]
    K = np.array([found[k].K for k in same])
    parameters = base.idim.parameters
    factors: list[list[Terms]] = []
    for i, kept in enumerate(base.kept):
        row: list[Terms] = []
        for j, dropped in enumerate(base.dropped):
            number = float(base.K[i, j])
            degree = measure_degree(parameters[kept], parameters[dropped])
            terms: Terms = ((number, ""),)
            if number != 0.0 and 0 <= degree <= 2 and len(same) >= len(symbols[degree]):
                c = np.linalg.lstsq(values[degree], K[:, i, j], rcond=None)[0]
                whole = np.round(c)
                c = np.where(np.abs(c - whole) < ROUND, whole, c)
                off = np.append(values[degree] @ c - K[:, i, j], here[degree] @ c - number)
                if np.max(np.abs(off)) <= EXACT * max(1.0, float(np.max(np.abs(base.K[i])))):
                    products = [name_product(each) for each in symbols[degree]]
                    terms = tuple((x, s) for x, s in zip(c.tolist(), products) if x != 0.0)
            row.append(terms)
        factors.append(row)
    return factors


def build_other_base(
    base: BaseParameters, lengths: Mapping[str, tuple[float, Array]], other: Array
) -> BaseParameters:
    """The base parameters of the robot with other lengths."""
    idim = base.idim
    moved = sum(
        (value - length) * slope
        for value, (length, slope) in zip(other, lengths.values(), strict=True)
    ) + np.zeros((idim.robot.n, 3))
    joints = tuple(
        replace(joint, translation=joint.translation + way)
        for joint, way in zip(idim.robot.joints, moved, strict=True)
    )
    robot = replace(idim.robot, joints=joints)
    return base_parameters(build_idim(robot, idim.friction, idim.rotor, elements=idim.elements))


def evaluate_symbols(
    products: list[tuple[str, ...]], lengths: Mapping[str, object], values: Array
) -> Array:
    """Values of products of lengths, shape (robots, products)."""
    at = {name: values[:, k] for k, name in enumerate(lengths)}
    ones = np.ones(len(values))
    return np.array([prod((at[name] for name in each), start=ones) for each in products]).T.reshape(
        len(values), len(products)
    )


def measure_degree(kept: Parameter, dropped: Parameter) -> int:
    """Power of a length in the factor that regroups one into the other; 0 of drives."""
    if kept.symbol not in INERTIAL or dropped.symbol not in INERTIAL:
        return 0
    power = [0 if s == "m" else 1 if s[0] == "m" else 2 for s in (kept.symbol, dropped.symbol)]
    return power[0] - power[1]


def name_product(lengths: tuple[str, ...]) -> str:
    """``d3^2`` or ``d3 a4``; nothing for no lengths."""
    if len(lengths) == 2 and lengths[0] == lengths[1]:
        return f"{lengths[0]}^2"
    return " ".join(lengths)


def write_with_symbols(found: BaseParameters) -> tuple[str, ...]:
    """Regroupings with the lengths of the robot's DH table as symbols."""
    lengths = read_table_lengths(found.idim.robot)
    if not lengths:
        raise InputError(
            f"{found.idim.robot.name}: symbols need a DH table with lengths and no locked "
            "joints, in a robot TOML; leave --symbols out"
        )
    return find_symbolic_regroupings(found, lengths)
