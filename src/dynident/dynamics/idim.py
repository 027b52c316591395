"""The inverse dynamic identification model: torques linear in the standard parameters.

``tau = IDM_f(q, dq, ddq) beta_f`` (ardiani2024, eq. 3): ten inertial parameters a body,
then the drives' rotor inertia and friction. Packed rows hold only the entries of
``IDM_f`` that can differ from zero, grouped by joint, for the parameters asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError, check_type
from dynident.dynamics.columns import fill_rows
from dynident.dynamics.conditions import FREE, Conditions
from dynident.dynamics.idim_parameters import IdimParameters
from dynident.dynamics.packing import build_packing
from dynident.dynamics.parameters import JointElements, Packing
from dynident.dynamics.structure import Structure, list_friction_models
from dynident.dynamics.torques import evaluate_torques
from dynident.friction import DEFAULT_FRICTION
from dynident.friction.names import split_friction_names
from dynident.robot.model import Robot

FRICTION = DEFAULT_FRICTION
"""Of a model of which nothing else is said, for rooms that know no friction models."""


@dataclass(frozen=True)
class Idim(IdimParameters):
    """A robot with a friction model, as the linear model that is identified.

    Its attributes and its parameters are those of `IdimParameters`.
    """

    def packing(self, columns: Sequence[int] | Integers, bent_alone: bool = False) -> Packing:
        """Layout of packed rows for some of the standard parameters, in the caller's order.

        With `bent_alone` bodies are left out of all rows on which they act through no friction.
        """
        key = (self.free, self.bodies_load_friction, bent_alone, tuple(int(c) for c in columns))
        known = self.structure.packings
        if key not in known:
            pairs = self.structure.levers if self.bodies_load_friction else ()
            columns = key[3]
            known[key] = build_packing(
                self.structure, self.drive_columns, pairs, columns, bent_alone
            )
        return known[key]

    def regressor(self, q: Array, dq: Array, ddq: Array, conditions: Conditions = FREE) -> Array:
        """The full regressor ``IDM_f`` of a motion, shape (samples, rows, parameters)."""
        q, dq, ddq = self.take_motion(q, dq, ddq)
        packing = self.packing(range(len(self.parameters)))
        packed = np.empty((len(q), packing.width))
        fill_rows(self, packing, q, dq, ddq, packed, conditions=conditions)
        dense = np.zeros((len(q), self.rows, len(self.parameters)))
        for row, (entries, columns) in enumerate(packing.joints):
            dense[:, row, columns] = packed[:, entries]
        return dense

    def torque(
        self,
        theta: Array,
        q: Array,
        dq: Array,
        ddq: Array,
        width: Array | None = None,
        conditions: Conditions = FREE,
    ) -> Array:
        """Torques of standard parameters ``theta``, shape (samples, rows).

        Wrenches at sensors in the chain come behind them.

        Parameters
        ----------
        theta : ndarray, shape (standard parameters,)
        q, dq, ddq : ndarray, shapes (samples, nq), (samples, dof) and (samples, dof)
        width, conditions
            See `fill_rows`. A load that is not given is that of theta's own bodies.

        Raises
        ------
        InputError
            For other shapes.
        """
        q, dq, ddq = self.take_motion(q, dq, ddq)
        theta = np.asarray(theta, dtype=float)
        if theta.shape != (len(self.parameters),):
            reason = f"theta has shape {theta.shape}, not {(len(self.parameters),)}"
            raise InputError(f"{self.robot.name}: {reason}")
        tau: Array = evaluate_torques(self, [theta], q, dq, ddq, width, conditions)[0]
        return tau


def build_idim(
    robot: Robot,
    friction: str = FRICTION,
    rotor: bool | None = None,
    shape: Sequence[float] | Array = (),
    elements: Sequence[JointElements] = (),
) -> Idim:
    """The identification model of a robot.

    >>> di.build_idim(robot).regressor(samples.q, samples.dq, samples.ddq).shape
    (1600, 2, 28)

    Parameters
    ----------
    robot : Robot
    friction : str
        Name of `dynident.friction.names.build_friction`, or one a joint with commas between them.
        ``"none"`` is the bare rigid body.
    rotor : bool, optional
        Whether each drive has a rotor inertia; by default unless friction is "none".
    shape : sequence of float, optional
        Values of the friction's shape parameters, drive by drive; usual ones by default.
    elements : sequence of JointElements
        What else acts on the joints.

    Raises
    ------
    InputError
        When the friction model is not known, or does not have such shapes; when an element acts
        on no joint.
    """
    check_type("build_idim", robot, Robot, "dynident.load_robot(file) makes one")
    if rotor is not None:
        check_type("rotor", rotor, bool, "whether rotor inertias are parameters")
    list_friction_models(friction, robot)
    for element in elements:
        check_type(
            "a model", element, JointElements, "a maker of dynident.friction.elements makes one"
        )
        if not 0 <= element.joint < robot.n:
            raise InputError(f"{robot.name}: an element on joint {element.joint + 1} of {robot.n}")
        if element.over is not None and (
            not 0 <= element.over < robot.n or element.over == element.joint
        ):
            raise InputError(
                f"{robot.name}: an element over joints {element.joint + 1} and {element.over + 1}; "
                f"it needs two of {robot.n}"
            )
    rotors = set(split_friction_names(friction)) != {"none"} if rotor is None else rotor
    values = tuple(float(value) for value in shape)
    structure = Structure(robot, friction, rotors, tuple(elements))
    return Idim(structure, values)
