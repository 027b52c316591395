"""A robot with parameter values, as the rollout's kernel reads it.

Sensitivities are asked for by columns: the base parameters (or any other standard ones, or
shapes of the friction) whose share in the torque the kernel has to differentiate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.dynamics.idim import Idim
from dynident.friction.kernel import DriveElements, find_law_address
from dynident.friction.model import Element, FrictionModel, name_signals


class Plant(NamedTuple):
    """Parameter values and the columns to differentiate by."""

    phi: Array
    """Shape (bodies, 10)."""
    rotors: Array
    """``sum_i Ia_i g_i g_i^T`` over the drives' gears g_i, shape (dof, dof)."""
    gears: Array
    """Shape (drives, n). How each drive turns with the joints: one's own first, then the coupled
    ones."""
    friction: Array
    """Shape (drives, 3). ``f(v) = a + b v + c s(v)``, s the smoothed sign: all that is linear in
    these."""
    width: Array
    """``s(v) = tanh(v / width)`` [rad/s or m/s], shape (drives,)."""
    rough: Integers
    """Where anything depends on the sign, shape (drives,)."""
    elements: DriveElements
    """All other friction."""
    bearing: Array
    """Shares of the joints' rigid-body torques that each drive bears, where friction depends on
    these loads, shape (drives, n) or (0, n)."""
    slot: Integers
    """Column of each inertial parameter among those differentiated, or -1, shape (bodies, 10)."""
    gear: Integers
    column: Integers
    """`gear`, `column`: drive of each rotor and of each linear part of the friction that is
    differentiated, and its column, shape (c,)."""
    share: Array
    """Shape (c, 4). Its torque: ``share . (1, v, s(v), dv/dt)``."""


def build_plant(
    idim: Idim,
    theta: Array,
    width: Array,
    columns: Sequence[int] | Integers = (),
    elements: Sequence[Element] = (),
) -> Plant:
    """Sort a model's standard parameters into what the kernel reads.

    Parameters
    ----------
    theta : ndarray, shape (standard parameters,)
        Only the joint-space mass matrix has to be positive definite, so that base
        parameters in their kept places will do.
    width : ndarray, shape (n,)
        Speed over which each drive's Coulomb friction changes sign [rad/s or m/s].
    columns : sequence of int
        Parameters to differentiate by, in the order of the sensitivities: indices of standard
        parameters, and after these of the model's `shape_parameters`.
    elements : sequence of Element
        What acts on the drives beside the model's friction: a plant that the linear model
        does not have.
    """
    idim, theta = idim.settled(theta)
    count = len(idim.parameters)
    if np.shape(theta) != (count,) or not np.all(np.isfinite(theta)):
        raise InputError(f"{idim.robot.name}: parameter values have to be {count} finite numbers")
    place, n = place_columns(columns, count + len(idim.shape)), idim.robot.n
    if np.shape(width) != (n,) or not np.all(np.asarray(width) > 0.0):
        raise InputError(f"the smoothing width of the sign needs {n} positive values")
    gear, column, share = [], [], []
    of_term: list[dict[int, int]] = [{} for _ in idim.frictions]
    for index, drive in enumerate(idim.drive_columns, idim.inertial):
        if drive.friction is not None and drive.term is not None:
            if index in place:
                of_term[drive.friction][drive.term] = place[index]
            continue
        if index in place:
            gear.append(drive.gear)
            column.append(place[index])
            share.append((0.0, 0.0, 0.0, 1.0))
    acting = [*list_frictions(idim, theta, place, of_term), *list_elements(elements, n)]
    friction = np.zeros((len(idim.gears), 3))
    for each in acting:
        for term, parameter in enumerate(each.model.parameters):
            if parameter.weights is None:
                continue
            if parameter.times and (each.linear[term] != 0.0 or term in each.of_term):
                refuse_missing_signals(each.model)
            friction[each.gear] += each.linear[term] * np.array(parameter.weights)
            if term in each.of_term:
                gear.append(each.gear)
                column.append(each.of_term[term])
                share.append((*parameter.weights, 0.0))
    laws = [each for each in acting if each.acts]
    rough = friction[:, 2] != 0.0
    rough[[g for g, weights in zip(gear, share, strict=True) if weights[2] != 0.0]] = True
    rough[[each.gear for each in laws]] = True
    slot = np.full((idim.tree.bodies, 10), -1)
    for index, k in place.items():
        if index < idim.inertial:
            slot[index // 10, index % 10] = k
    loaded = any("load" in each.model.needs for each in laws)
    return Plant(
        phi=np.array(idim.split(theta)[0], dtype=float),
        rotors=idim.rotors(theta),
        gears=np.array([each.turns for each in idim.gears]),
        friction=friction,
        width=np.array([width[each.number - 1] for each in idim.gears], dtype=float),
        rough=rough.astype(np.int64),
        elements=build_elements(laws),
        bearing=np.array(idim.structure.bearing if loaded else np.zeros((0, n))),
        slot=slot,
        gear=np.array(gear, dtype=np.int64),
        column=np.array(column, dtype=np.int64),
        share=np.array(share, dtype=float).reshape(-1, 4),
    )


def place_columns(columns: Sequence[int] | Integers, count: int) -> dict[int, int]:
    """Where each of the parameters to differentiate by stands, of so many; refuses others."""
    chosen = [int(c) for c in columns]
    whole = all(c == k for c, k in zip(columns, chosen, strict=True))
    last = count - 1
    if not whole or len(set(chosen)) < len(chosen) or any(not 0 <= c <= last for c in chosen):
        raise InputError(
            f"columns to differentiate by have to be different numbers from 0 to {last}"
        )
    return {c: k for k, c in enumerate(chosen)}


def list_frictions(
    idim: Idim, theta: Array, place: dict[int, int], of_term: Sequence[dict[int, int]]
) -> Iterator[ActingFriction]:
    """The friction and the elements of a model, with the places of their columns."""
    count = len(idim.parameters)
    for k, values in enumerate(idim.linear(theta)):
        found = idim.frictions[k]
        own = range(count + found.shape.start, count + found.shape.stop)
        of_shape = {shape: place[c] for shape, c in enumerate(own) if c in place}
        shape = idim.shape[found.shape]
        yield ActingFriction(found.gear, found.model, values, shape, of_term[k], of_shape)


def list_elements(elements: Sequence[Element], n: int) -> Iterator[ActingFriction]:
    """Elements beside the model's; refuses those of joints that are none."""
    for element in elements:
        if not 0 <= element.joint < n:
            raise InputError(f"an element acts on joint {element.joint + 1} of {n}")
        yield ActingFriction(
            element.joint, element.model, np.array(element.linear), element.shape, {}, {}
        )


MOST_KEPT = 8
KEPT: dict[tuple[int, bytes, bytes], tuple[Idim, Plant]] = {}


def keep_plant(idim: Idim, theta: Array, width: Array) -> Plant:
    """`build_plant` without columns and elements, made once for many short rollouts of a model."""
    values, widths = (np.asarray(each, dtype=float) for each in (theta, width))
    key = id(idim), values.tobytes(), widths.tobytes()
    found = KEPT.get(key)
    if found is None or found[0] is not idim:
        if len(KEPT) >= MOST_KEPT:
            KEPT.clear()
        found = KEPT[key] = idim, build_plant(idim, values, widths)
    return found[1]


@dataclass(frozen=True)
class ActingFriction:
    """A friction model on a drive with its values, and the columns of what is differentiated."""

    gear: int
    model: FrictionModel
    linear: Array
    """Shape (parameters,)."""
    shape: tuple[float, ...]
    of_term: dict[int, int]
    of_shape: dict[int, int]
    """`of_term`, `of_shape`: columns of some of its linear parameters and shapes."""

    @property
    def acts(self) -> bool:
        """Whether the model's law has to be called: not for columns of zeros that nobody asks."""
        rows = self.model.rows
        return bool(np.any(self.linear[list(rows)] != 0.0)) or any(k in rows for k in self.of_term)


def build_elements(laws: Sequence[ActingFriction]) -> DriveElements:
    """Friction models with laws as the kernel reads them."""
    models = [each.model for each in laws]
    for model in models:
        refuse_missing_signals(model)
    rows = [len(model.rows) for model in models]
    terms = [
        (e, row, each.of_term[term])
        for e, each in enumerate(laws)
        for row, term in enumerate(each.model.rows)
        if term in each.of_term
    ]
    shapes = [
        (e, rows[e] + shape, column)
        for e, each in enumerate(laws)
        for shape, column in each.of_shape.items()
    ]
    addresses = [(find_law_address(model.law), find_law_address(model.step)) for model in models]
    counts = [(len(model.rows), len(model.state)) for model in models]
    return DriveElements(
        gear=np.array([each.gear for each in laws], dtype=np.int64),
        address=np.array(addresses, dtype=np.int64).reshape(-1, 2),
        counts=np.array(counts, dtype=np.int64).reshape(-1, 2),
        values=pad_rows([each.linear[list(each.model.rows)] for each in laws]),
        shape=pad_rows([np.array(each.shape) for each in laws]),
        rest=pad_rows([np.array(model.state) for model in models]),
        parameter=np.array([*terms, *shapes], dtype=np.int64).reshape(-1, 3),
    )


def refuse_missing_signals(model: FrictionModel) -> None:
    """Refuse friction that reads signals that a simulation does not have."""
    beyond = [need for need in model.needs if need != "load" or model.state]
    if beyond:
        raise InputError(f"friction that depends on the {name_signals(beyond)} cannot be simulated")


def pad_rows(rows: Sequence[Array]) -> Array:
    """Rows of different lengths as a matrix, filled up with zeros."""
    matrix = np.zeros((len(rows), max((len(row) for row in rows), default=0)))
    for row, values in zip(matrix, rows, strict=True):
        row[: len(values)] = values
    return matrix
