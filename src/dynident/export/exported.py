"""What all model files need: checked values, numbers as text, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.dynamics.idim import Idim
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
    """Each joint's attributes as text; NaN, and None for all, stand for none.

    Parameters
    ----------
    given : mapping of str to array_like, shape (n,), or None
    """
    attributes: list[dict[str, str]] = [{} for _ in robot.joints]
    for name, numbers in given.items():
        if numbers is None:
            continue
        values = np.asarray(numbers, dtype=float)
        if values.shape != (robot.n,):
            raise InputError(
                f"robot {robot.name!r}: {name} has shape {values.shape}, expected ({robot.n},)"
            )
        for own, value in zip(attributes, values, strict=True):
            if not np.isnan(value):
                own[name] = format_exact_number(value)
    return attributes


def select_drive_values(idim: Idim, theta: Array, symbol: str) -> Array:
    """A drive parameter of each joint, NaN where it has none of its own, shape (n,)."""
    values = np.full(idim.robot.n, np.nan)
    for parameter, value in zip(idim.drives, idim.split(theta)[1], strict=True):
        if parameter.symbol == symbol:
            values[parameter.number - 1] = value
    return values


def describe_omissions(omitted: Sequence[str], kind: str) -> tuple[str, ...]:
    """The note on what a format has no place for."""
    if not omitted:
        return ()
    return (f"not in the {kind}, which has no place for it: {', '.join(omitted)}",)


def format_exact_number(value: float) -> str:
    """A number that is read back as the same one."""
    return repr(float(value))


def format_exact_numbers(values: npt.ArrayLike) -> str:
    """The same for several, with spaces between them."""
    return " ".join(format_exact_number(value) for value in np.ravel(values))
