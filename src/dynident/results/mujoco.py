"""An identified model as one of MuJoCo, and how soft its friction loss is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.whole import Model
from dynident.results.mjcf import standard_mjcf
from dynident.results.terms import JointTerms, joint_terms, term_notes

SOFT = 1e-3
"""Impedance of a friction loss, at which MuJoCo's is a function of the speed alone."""
HARDEST = 0.999
SLOPE = 1.0 / (2.0 * np.log(2.0))
"""Slope of a straight rise to one by which it stays below the sign as much as ``tanh`` does."""


@dataclass(frozen=True, eq=False)
class MujocoModel:
    """A compiled model of MuJoCo with identified values, and what it has no place for.

    Attributes
    ----------
    model : mujoco.MjModel
        With the identified inertials, ``dof_armature`` (of coupled drives the diagonal alone),
        ``dof_damping`` (fv) and ``dof_frictionloss`` (fc). Where a width of the friction's sign is
        known, ``dof_solref`` and ``dof_solimp`` give the friction loss that softness.
    offset : ndarray, shape (nv,)
        Torque that the drives need at rest beside weight, in the order of the model's velocities:
        ``data.qfrc_applied[:] = -offset`` [Nm or N].
    notes : tuple of str
        What was identified beside that, and is not in it.
    """

    model: Any
    offset: Array
    notes: tuple[str, ...]


def mujoco_library() -> Any:
    """MuJoCo's module.

    Raises
    ------
    InputError
        When it is not installed.
    """
    try:
        import mujoco
    except ImportError as error:
        raise InputError("needs MuJoCo: pip install dynident[mujoco]") from error
    return mujoco


def mujoco_model(model: Model, width: npt.ArrayLike | None = None) -> MujocoModel:
    """A compiled model of MuJoCo from the identified MJCF and the identified drives.

    Parameters
    ----------
    model : Model
        Whose links can exist.
    width : array_like, shape () or (n,), optional
        Of the smoothed sign that friction was identified with; MuJoCo's own softness without.

    Raises
    ------
    InputError
        When MuJoCo is not installed, or cannot compile the model; when the robot's file no longer
        fits the robot.
    ComputationError
        For links that no MJCF can hold.
    """
    mujoco = mujoco_library()
    with TemporaryDirectory() as folder:  # meshes are found from a file's folder alone
        path = Path(folder) / "model.xml"
        path.write_bytes(standard_mjcf(model.idim, model.theta, path.parent)[0])
        try:
            found = mujoco.MjModel.from_xml_path(str(path))
        except (ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{model.idim.robot.name}: MuJoCo refuses it: {reason}") from error
    terms = joint_terms(model)
    rows = velocities(found, model.idim.robot.joint_names)
    offset = np.zeros(found.nv)
    offset[rows] = terms.offset
    found.dof_armature[rows] = terms.armature
    found.dof_damping[rows] = terms.damping
    found.dof_frictionloss[rows] = terms.friction
    mujoco.mj_setConst(found, mujoco.MjData(found))
    if width is not None:
        soften(found, rows, terms, np.full(len(rows), width, dtype=float))
    return MujocoModel(found, offset, term_notes(terms, "MuJoCo"))


def velocities(found: Any, names: tuple[str, ...]) -> list[int]:
    """Where joints stand among a compiled model's velocities."""
    return [int(found.joint(name).dofadr[0]) for name in names]


def soften(found: Any, rows: list[int], terms: JointTerms, width: Array) -> None:
    """Give the friction loss of joints the rise of ``fc tanh(v / width)``.

    MuJoCo's friction loss is a constraint that is at rest below its limit: at a steady torque it
    creeps with ``R / b`` of that torque, R being its regularisation ``(1 - d) / d`` over the mass
    matrix' share of the joint and b its damping (MuJoCo's documentation, "Computation"). Of the
    impedance d that also slows what is faster the smallest is taken that the time step can have:
    ``h s (1 - d) / m <= 1`` for a rise of s.
    """
    inverse = found.dof_invweight0[rows]
    rise = SLOPE * terms.friction / width
    stiff = found.opt.timestep * rise * inverse
    impedance = np.clip(1.0 - 1.0 / np.maximum(stiff, 1e-300), SOFT, HARDEST)
    for row, d, s in zip(rows, impedance, rise * (1.0 - impedance) * inverse, strict=True):
        if s > 0.0:
            found.dof_solimp[row] = [d, d, 1e-3, 0.5, 2.0]
            found.dof_solref[row] = [0.0, -s]
