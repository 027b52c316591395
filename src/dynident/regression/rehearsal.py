"""What a first fit has another process compile: its rows and their errors, either one first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np

from dynident.core.arrays import Array
from dynident.core.beside import compile_beside
from dynident.core.compiled import is_compiled
from dynident.dynamics.idim import Idim, build_idim
from dynident.dynamics.regressor import fill_regressor_samples
from dynident.regression.covariance import Adjoint, add_products, whiten_errors
from dynident.robot.drives import Drives
from dynident.robot.model import Joint, Robot

ROWS, TORQUES = 0, 1
"""Parts of a first fit: the regressor's kernels, and those of inverse dynamics."""


def prepare_rows(robot: Robot) -> None:
    """Have half of what a fit needs compiled in a process of its own, unless that has been done.

    It takes some seconds. Fits of a fixed base begin with the regressor, those of a floating one
    with the torques; the other process begins with what comes later.
    """
    if not is_compiled(fill_regressor_samples):
        later = ROWS if robot.floating else TORQUES
        compile_beside("dynident.regression.rehearsal", (later,))


def build_pendulum() -> Idim:
    """A robot of one joint: what is compiled for it serves every robot."""
    joint = Joint("joint", "link", "revolute", 0, np.eye(3), np.zeros(3), np.array([0.0, 0.0, 1.0]))
    return build_idim(Robot("pendulum", (joint,), np.zeros((1, 10)), Drives.direct(1)))


def choose_parameters(idim: Idim) -> Array:
    """Parameters with which the pendulum has an inertia."""
    return np.array([1.0, *np.zeros(8), 1.0, *np.ones(len(idim.parameters) - 10)])


def correlate_errors() -> None:
    """What a covariance with correlated errors takes."""
    instants, error, a = np.arange(3), np.zeros((3, 1)), np.ones(1)
    whiten_errors(instants, error, a)
    Adjoint(a, 1).push(instants, error)
    add_products(np.zeros((1, 3, 1)), instants, instants[:1], error, error)


def compile_part(part: int) -> None:
    """Compile one part, then what comes after both, and the other at last."""
    idim, motion = build_pendulum(), np.zeros((2, 1))
    parts: Sequence[Callable[[], object]] = (
        lambda: idim.regressor(motion, motion, motion),
        lambda: idim.torque(choose_parameters(idim), motion, motion, motion),
    )
    for step in (parts[part], correlate_errors, parts[1 - part]):
        step()


if __name__ == "__main__":
    compile_part(int(sys.argv[1]))
