"""What all model files need: checked values, numbers as text, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import is_consistent
from dynident.core.text import format_series
from dynident.dynamics.idim import Idim
from dynident.robot.mjcf import WORLD
from dynident.robot.model import Robot


def check_bodies(robot: Robot, phi: npt.ArrayLike, kind: str) -> Array:
    """Inertial parameters that a model file can hold, shape (bodies, 10).

    Parameters
    ----------
    phi : array_like, shape (bodies, 10)
    kind : str
        The format, for messages.
    """
    values = np.asarray(phi, dtype=float)
    shape = (len(robot.links), 10)
    if values.shape != shape or not np.all(np.isfinite(values)):
        raise InputError(
            f"robot {robot.name!r}: inertial parameters have shape {values.shape}, expected "
            f"finite numbers of shape {shape}"
        )
    for name, body in zip(robot.links, values, strict=True):
        if body[0] <= 0.0 and np.any(body != 0.0):
            raise ComputationError(
                f"link {name}: its mass is {body[0]:.3g} kg, which no {kind} can hold; identify "
                "with a physically consistent method such as pc-idim-ls"
            )
    return values


def format_joint_attributes(
    robot: Robot, given: Mapping[str, npt.ArrayLike | None]
) -> list[dict[str, str]]:
    """Each joint's attributes as text, of values of shape (n,); NaN, or None for all, is none."""
    known = {k: np.asarray(v, dtype=float) for k, v in given.items() if v is not None}
    return [
        {k: format_exact_number(v[j]) for k, v in known.items() if not np.isnan(v[j])}
        for j in range(robot.n)
    ]


def subtract_carried(phi: Array, carried: Sequence[Array]) -> Array | None:
    """What is left of a body without those that are fixed to it; None where that is not a body."""
    rest = phi - sum(carried, np.zeros(10))
    # a remainder of rounding errors alone is not a body
    if carried and not (rest[0] > 1e-9 * phi[0] and is_consistent(rest)):
        return None
    return rest


def describe_massless(host: str, carried: Mapping[str, Array]) -> list[str]:
    """The note on bodies whose inertia is now in what carries them."""
    gone = ", ".join(name for name, own in carried.items() if own[0] != 0.0)
    words = f"{host} carries the inertia of what is fixed to it: {gone} became massless"
    return [words] if gone else []


def name_base(robot: Robot) -> str:
    """What the base is called where "world" is another name, and where its own is a link's."""
    name = robot.base_link
    while name == WORLD or name in robot.links[int(robot.floating) :]:
        name = "base" if name == WORLD else f"{name}_base"
    return name


def describe_gravity(robot: Robot) -> tuple[str, ...]:
    """The note on a direction of gravity that is of the world, and not of a robot's file."""
    x, y, z = robot.gravity
    if (x, y) == (0.0, 0.0) and abs(z + 9.81) < 0.02:
        return ()
    return (f"gravity is ({x:g}, {y:g}, {z:g}) m/s^2 in the robot's frame: set it in the engine",)


def select_drive_values(idim: Idim, theta: Array, symbol: str) -> Array:
    """A drive parameter of each joint, NaN where it has none of its own, shape (n,)."""
    values = np.full(idim.robot.n, np.nan)
    for parameter, value in zip(idim.drives, idim.split(theta)[1], strict=True):
        if parameter.symbol == symbol:
            values[parameter.number - 1] = value
    return values


def is_coupled_alone(robot: Robot, degree: int) -> bool:
    """Whether all loops are joints that follow another by polynomials of a degree at most."""
    return all(len(loop.polynomial) in range(1, degree + 2) for loop in robot.loops)


def list_followers(robot: Robot) -> dict[str, tuple[str, float, float]]:
    """Joints that follow another by a straight law: which, from what offset on, and how much."""
    found = {}
    for loop in robot.loops:
        if len(loop.polynomial) not in (1, 2):
            continue
        (offset, ratio), (own, other) = (*loop.polynomial, 0.0)[:2], loop.bodies
        if robot.joint_names[other - 1] in loop.passive and ratio != 0.0:
            offset, ratio, own, other = -offset / ratio, 1.0 / ratio, other, own
        found[robot.joint_names[own - 1]] = robot.joint_names[other - 1], offset, ratio
    return found


def describe_omissions(omitted: Sequence[str], kind: str) -> tuple[str, ...]:
    """The note on what a format has no place for."""
    if not omitted:
        return ()
    return (f"not in the {kind}, which has no place for it: {format_series(omitted)}",)


def format_exact_number(value: float) -> str:
    """A number that is read back as the same one."""
    return repr(float(value))


def format_exact_numbers(values: npt.ArrayLike) -> str:
    """The same for several, with spaces between them."""
    return " ".join(format_exact_number(value) for value in np.ravel(values))
