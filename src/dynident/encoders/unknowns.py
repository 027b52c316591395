"""What is fitted to encoders alone, and what it may be: drives, links and the loop behind a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import null_space

from dynident.conic.active_set import linearise_constraints
from dynident.conic.cones import Cone, ZeroCone
from dynident.conic.solve import ConeSolution
from dynident.consistency.constraints import Bounds, Constraint, Fixed, PseudoInertia
from dynident.consistency.constraints.values import Belief, Tied, list_names
from dynident.consistency.gyration import list_gyrations, list_radii
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.space import build_body_rows
from dynident.core.arrays import Array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.text import suggest_nearest
from dynident.dynamics.idim import Idim
from dynident.dynamics.units import convert_unit_to_joint, find_parameter_unit
from dynident.estimators.closed_loop import Simulation
from dynident.simulation.loop import LoopColumn
from dynident.simulation.rollout import START_KINDS

LONGEST_DELAY = 0.1
"""Of targets, unless a constraint says otherwise [s]."""
SMALLEST = 1e-6
"""Rotor inertias and friction that have to be positive are at least so large, in SI units."""
MOST_OF_LOAD = 0.9
"""Share of its load that friction takes up at most: with all of it a drive locks itself."""
UNITS = {
    "delay": "s",
    "bias": "rad",
    "gain": "Nm per unit",
    "limit": "units",
    "damping": "units s/rad",
    "integral": "units/(rad s)",
    "deadband": "rad",
    "punch": "units",
    "speed_limit": "rad/s",
    "backlash": "rad",
}
"""Of what is fitted of the loop; units are those of the law's output."""
FROM_ZERO = ("damping", "integral", "deadband", "punch", "backlash")
"""What may be nothing, and begins there."""


@dataclass(frozen=True, eq=False)
class Unknowns:
    """What is fitted: drives' parameters, shapes of their friction, then the loop's."""

    idim: Idim
    own: tuple[LoopColumn, ...]
    unit: Array
    """By which the cone problem scales them, shape (unknowns,)."""
    first: int
    """The first standard parameter: the first link's, or where links are fixed the first
    drive's."""
    runs: int
    """Runs whose start is fitted, too: nobody asks for it, but what a reading of it errs would pass
    for friction."""

    @property
    def columns(self) -> range:
        """Of the model, as rollouts are differentiated by them."""
        idim = self.idim
        return range(self.first, len(idim.parameters) + len(idim.shape))

    @property
    def names(self) -> tuple[str, ...]:
        """``Ia1``, ``vs3``, ``bias2``, ``delay``."""
        idim = self.idim
        return (
            *idim.names[self.first :],
            *(shape.name for shape in idim.shape_parameters),
            *(f"{each.kind}{each.joint + 1}" if each.kind in UNITS and each.kind != "delay"
              else each.kind for each in self.own),
            *(f"{kind} {r + 1} of {name}" for r in range(self.runs)
              for kind in START_KINDS for name in self.idim.robot.joint_names),
        )  # fmt: skip

    @property
    def units(self) -> tuple[str, ...]:
        """Empty of what has none."""
        idim = self.idim
        return (
            *(find_parameter_unit(idim, k) for k in range(self.first, len(idim.parameters))),
            *(convert_unit_to_joint(shape.bounds.unit, idim.robot, shape.parameter.number)
              for shape in idim.shape_parameters),
            *(UNITS.get(each.kind, "") for each in self.own),
        )  # fmt: skip

    @property
    def asked(self) -> int:
        """How many are asked for: all but the starts, which come last."""
        return len(self.columns) + len(self.own)

    def starts(self, x: Array) -> Array:
        """What encoders read there and speeds, shape (runs, 2, n) [rad or m, a second]."""
        return x[self.asked :].reshape(self.runs, 2, self.idim.robot.n)

    @property
    def linear(self) -> int:
        """How many are standard parameters."""
        return len(self.idim.parameters) - self.first

    def expanded(self, given: str | Sequence[str]) -> tuple[str, ...]:
        """Names, of which a symbol stands for that of every joint."""
        found: list[str] = []
        for name in list_names(given):  # type: ignore[arg-type]
            every = [n for n in self.names if n.rstrip("0123456789") == name]
            if name in self.names:
                every = [name]
            if not every:
                raise InputError(f"{name!r} is not fitted{suggest_nearest(name, self.names)}")
            found += every
        return tuple(found)

    def row(self, name: str) -> Array:
        """The row that gives a parameter from the scaled unknowns."""
        k = self.names.index(name)
        return np.asarray(self.unit[k] * (np.arange(len(self.unit)) == k), dtype=float)

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the bodies."""
        return self.idim.robot.links

    def link(self, name: str) -> int:
        """Index of a body by its link's name."""
        refuse_unknown(name, self.links, f"constraint: {name!r} is not a link")
        return self.links.index(name)

    def body(self, link: int) -> Array:
        """``phi = body @ x``: a body's 10 inertial parameters, shape (10, unknowns)."""
        return build_body_rows(self.unit, link)

    def mass(self, link: int) -> float:
        """Unit of a body's mass [kg]."""
        return max(float(self.idim.robot.nominal[link, 0]), 1e-3)

    def theta(self, x: Array) -> Array:
        """Standard parameters; the links are those of the file."""
        theta = self.idim.nominal.copy()
        theta[self.first :] = x[: self.linear]
        return theta

    def shaped(self, x: Array) -> Idim:
        """The model at its shapes."""
        values = x[self.linear : len(self.columns)]
        if not len(values):
            return self.idim
        # the cones keep them inside but for the solver's last digits
        return self.idim.shaped(np.clip(values, *self.idim.shape_bounds))

    def tuned(self, x: Array, simulation: Simulation) -> Simulation:
        """The loop as it is fitted, and as it was where it is not."""
        plain = slice(len(self.columns), self.asked)
        return simulation.with_values(dict(zip(self.names[plain], x[plain].tolist(), strict=True)))


@dataclass(frozen=True, eq=False)
class AdmittedUnknowns:
    """What the unknowns may be."""

    cones: tuple[Cone, ...]
    """On scaled unknowns."""
    rows: Array
    target: Array
    """`rows`, `target`: ``rows @ x - target`` in standard deviations, of unscaled ones, shapes
    (beliefs, unknowns) and (beliefs,)."""
    words: str

    def penalty(self, x: Array) -> float:
        """What beliefs add to the criterion."""
        return float(np.sum((self.rows @ x - self.target) ** 2))


def build_admitted_set(unknowns: Unknowns, constraints: Sequence[Constraint]) -> AdmittedUnknowns:
    """What can be, and what is known beside.

    Drives are positive, shapes within their ranges, links that are fitted consistent and about
    the file's, delays short.
    """
    idim, names = unknowns.idim, unknowns.names
    every = list_own_bounds(unknowns, constraints)
    rows, target, words = [], [], []
    for constraint in constraints:
        if not isinstance(constraint, Bounds | Fixed | Tied | Belief):
            if unknowns.first:
                raise InputError(
                    f"links are fixed, so that {type(constraint).__name__} has nothing to say; "
                    "take links = 'prior', or bounds, fixed, tied and belief on drives"
                )
            every.append(constraint)
            continue
        chosen = unknowns.expanded(constraint.parameters)
        if isinstance(constraint, Belief):
            for name in chosen:
                rows.append((np.array(names) == name) / constraint.std)
                target.append(constraint.value / constraint.std)
            words.append(
                f"{', '.join(list_names(constraint.parameters))} = {constraint.value:g} "
                f"+- {constraint.std:g}"
            )
        else:
            every.append(replace(constraint, parameters=chosen))
    count = len(names)
    beliefs = np.array(rows, dtype=float).reshape(-1, count)
    aims = np.array(target, dtype=float)
    if not unknowns.first:
        every += [PseudoInertia(radii=list_radii(list_gyrations(idim.robot)))]
        prior = Knowledge().of(idim.robot)
        own, aim = prior.rows(len(idim.parameters))
        beliefs = np.vstack([np.pad(own, ((0, 0), (0, count - own.shape[1]))), beliefs])
        aims = np.concatenate([aim, aims])
        words.insert(0, prior.words)
    cones = [cone for constraint in every for cone in constraint.cones(unknowns)]  # type: ignore[arg-type]
    return AdmittedUnknowns(tuple(cones), beliefs, aims, "; ".join(words))


def list_own_bounds(unknowns: Unknowns, constraints: Sequence[Constraint]) -> list[Constraint]:
    """Bounds of drives, shapes and the loop, but for a delay that constraints bound from above."""
    idim, names = unknowns.idim, unknowns.names
    every: list[Constraint] = [Bounds((p.name,), lower=SMALLEST) for p in idim.drives if p.positive]
    every += [Bounds((idim.names[k],), upper=MOST_OF_LOAD) for k in find_load_shares(idim)]
    every += [
        Bounds((s.name,), s.bounds.lower, s.bounds.upper)
        if s.bounds.lower < s.bounds.upper
        else Fixed((s.name,), s.bounds.lower)
        for s in idim.shape_parameters
    ]
    every += [
        Bounds((name,), lower=0.0 if each.kind in FROM_ZERO else SMALLEST)
        for name, each in zip(names[len(unknowns.columns) :], unknowns.own, strict=False)
        if each.kind not in ("bias", "delay")
    ]
    if "delay" in names:
        bounded = any(
            isinstance(c, Bounds)
            and c.upper is not None
            and "delay" in unknowns.expanded(c.parameters)
            for c in constraints
        )
        every.append(Bounds(("delay",), lower=0.0, upper=None if bounded else LONGEST_DELAY))
    return every


def find_load_shares(idim: Idim) -> list[int]:
    """Columns of parameters that are shares of a drive's load: those without a unit."""
    return [
        k
        for k, column in enumerate(idim.drive_columns, idim.inertial)
        if idim.loaded and not find_parameter_unit(idim, k) and column.friction is not None
    ]


def hold_start_readings(unknowns: Unknowns, x: Array) -> tuple[Cone, ...]:
    """What the encoders read at the starts as it is."""
    if not unknowns.runs:
        return ()
    first, n = unknowns.asked, unknowns.idim.robot.n
    places = [first + 2 * n * run + j for run in range(unknowns.runs) for j in range(n)]
    names = tuple(unknowns.names[k] for k in places)
    return (ZeroCone(names, np.eye(len(x))[places], (x / unknowns.unit)[places]),)


def find_free_directions(cones: Sequence[Cone], solution: ConeSolution) -> Array:
    """Orthonormal directions of scaled unknowns that the active constraints leave."""
    halves = [0.5 * multiplier for multiplier in solution.multipliers]
    active, _ = linearise_constraints(cones, solution.x, solution.faces, halves)
    return null_space(active.C, rcond=1e-9)
