"""The TX40 twin: the simulated robot on which the papers' experiments are repeated.

Its standard parameters are physically consistent and its base parameters are those published
for the Stäubli TX40, within their uncertainty (`benchmarks/make_tx40_twin.py` made the files).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array, freeze_array
from dynident.core.errors import InputError
from dynident.core.inertia import is_consistent
from dynident.core.schema import Number, Spec, read_toml, validate_data
from dynident.core.text import suggest_nearest
from dynident.dynamics.idim import Idim, build_idim
from dynident.robot import load_robot
from dynident.robot.model import Robot

FRICTION = "coulomb-viscous-symmetric"
"""The twin's friction: the offsets of the published model are zero in it."""
ROBOT_FILE = "tx40_twin.toml"
"""Geometry and inertials."""
DRIVES_FILE = "tx40_twin_drives.toml"
"""Rotors, friction and gains."""

Positive = Annotated[Number, Field(gt=0.0)]


@dataclass(frozen=True)
class Twin:
    """A robot whose parameters are all known, with the gains of its controller."""

    robot: Robot
    """Its ``nominal`` inertials are the true ones."""
    idim: Idim
    """Of that robot with friction ``"coulomb-viscous-symmetric"`` and rotors."""
    theta: Array
    """True standard parameters in the order of ``idim.parameters`` [SI], shape
    (len(idim.parameters),)."""
    kp: Array
    """Position gains on the joint side [V/rad], in volts of a drive's command, shape (n,)."""
    kd: Array
    """Velocity gains on the joint side [V s/rad], shape (n,)."""
    gain: Array
    """Shape (n,). Drive gains [Nm/V]: ``tau = gain (kp (qref - q) + kd (dqref - dq))``. As a P loop
    around a P loop, the outer gain is ``kp / kd`` [1/s], the inner ``gain kd`` [Nm s/rad]. The
    numbers are those used to simulate a TX40; that they mean this law is our reading."""

    def values(self, names: Sequence[str]) -> Array:
        """True standard parameters by name; zero where the twin has none, as of offsets.

        Returns
        -------
        ndarray, shape (len(names),)
            SI units.
        """
        known = dict(zip(self.idim.names, self.theta.tolist(), strict=True))
        return np.array([known.get(name, 0.0) for name in names])

    @property
    def coulomb(self) -> Array:
        """Coulomb friction of the joints' own drives, shape (n,) [Nm]."""
        return self.values([f"fc{j + 1}" for j in range(self.robot.n)])


class ControllerSpec(Spec):
    """Joint-side gains, one number per joint (see `Twin`)."""

    kp: tuple[Positive, ...]
    kd: tuple[Positive, ...]
    gain: tuple[Positive, ...]


class DrivesSpec(Spec):
    """What stands beside the robot file."""

    parameters: dict[str, Positive]
    """Each drive parameter of the model by its name [kg m^2, Nm s/rad, Nm]."""
    controller: ControllerSpec


def load_twin() -> Twin:
    """The TX40 twin from the files of the package."""
    with as_file(files(__package__) / ROBOT_FILE) as robot_file:
        robot = load_robot(robot_file)
    with as_file(files(__package__) / DRIVES_FILE) as drives_file:
        return assemble_twin(robot, drives_file)


def assemble_twin(robot: Robot, drives_file: Path) -> Twin:
    """A robot with the drives and the gains of a file.

    Parameters
    ----------
    robot : Robot
        With inertials.
    drives_file : Path
        TOML, see `DrivesSpec`.

    Raises
    ------
    InputError
        When the file cannot be read, does not fit the robot's drives and joints, or the
        robot's inertials are not physically consistent.
    """
    spec = validate_data(DrivesSpec, read_toml(drives_file), drives_file)
    idim = build_idim(robot, FRICTION)
    names = idim.names[idim.inertial :]
    for name in spec.parameters:
        if name not in names:
            raise InputError(
                f"{drives_file}: unknown key 'parameters.{name}'{suggest_nearest(name, names)}"
            )
    for name in names:
        if name not in spec.parameters:
            raise InputError(f"{drives_file}: key 'parameters.{name}' is missing")
    for key in ("kp", "kd", "gain"):
        count = len(getattr(spec.controller, key))
        if count != robot.n:
            raise InputError(
                f"{drives_file}: key 'controller.{key}' has {count} numbers but there are "
                f"{robot.n} joints"
            )
    if not is_consistent(robot.nominal):
        raise InputError(
            f"{robot.source}: the inertials of a twin have to be those of real bodies, and "
            "a pseudo-inertia of it is not positive definite"
        )
    drives = np.array([spec.parameters[name] for name in names])
    return Twin(
        robot=robot,
        idim=idim,
        theta=freeze_array(np.concatenate([robot.nominal.ravel(), drives])),
        kp=freeze_array(spec.controller.kp),
        kd=freeze_array(spec.controller.kd),
        gain=freeze_array(spec.controller.gain),
    )
