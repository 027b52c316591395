"""An identified model as one of MuJoCo, and how soft its friction loss is."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.errors import InputError, name_missing_package
from dynident.dynamics.whole import WholeModel
from dynident.export.mjcf import name_motor, render_identified_mjcf
from dynident.export.softness import derive_softness
from dynident.export.terms import sort_joint_terms

FAR = 1e-6
"""Stiffness of a spring that is so far away that its torque is a constant [Nm/rad or N/m]."""


def import_mujoco() -> Any:
    """MuJoCo's module."""
    with name_missing_package("needs MuJoCo: pip install dynident[mujoco]"):
        import mujoco
    return mujoco


def mujoco_model(model: WholeModel, width: npt.ArrayLike | None = None, meshes: bool = True) -> Any:
    """A compiled model of MuJoCo from the identified MJCF and the identified drives.

    Parameters
    ----------
    model : WholeModel
        Whose links can exist.
    width : array_like, shape () or (n,), optional
        Of the smoothed sign that friction was identified with; MuJoCo's own softness without.
    meshes : bool
        Whether to load the meshes of the robot's file; a motion without contacts needs none.

    Returns
    -------
    mujoco.MjModel
        That of `Fit.model_mjcf`: with the identified inertials, ``dof_armature`` (Ia),
        ``dof_damping`` (fv) and ``dof_frictionloss`` (fc), and a fixed tendon with the same for
        each motor that turns with several joints. Where a width of the friction's sign is known,
        ``dof_solref`` and ``dof_solimp`` (of tendons likewise) give friction loss that softness at
        the model's time step. Offsets, for which an MJCF has no place, are torques of springs
        that are far away: ``jnt_stiffness`` and ``qpos_spring``.

    Raises
    ------
    InputError
        When MuJoCo is not installed, or cannot compile the model; when the robot's file no longer
        fits the robot.
    ComputationError
        For links that no MJCF can hold.
    """
    mujoco = import_mujoco()
    with TemporaryDirectory() as folder:  # meshes are found from a file's folder alone
        path = Path(folder) / "model.xml"
        path.write_bytes(render_identified_mjcf(model.idim, model.theta, path.parent)[0])
        try:
            spec = mujoco.MjSpec.from_file(str(path))
            if not meshes:
                drawn = [g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_MESH]
                for each in (*drawn, *list(spec.meshes)):  # what is made of them first
                    spec.delete(each)
            found = spec.compile()
        except (ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{model.idim.robot.name}: MuJoCo refuses it: {reason}") from error
    if width is not None:
        soften_friction(found, model, width)
    offset = sort_joint_terms(model).offset
    for name, torque in zip(model.idim.robot.joint_names, offset, strict=True):
        if torque != 0.0:
            joint = found.joint(name)
            joint.stiffness[0] = max(joint.stiffness[0], FAR)
            found.qpos_spring[joint.qposadr[0]] -= torque / joint.stiffness[0]
    return found


def find_velocity_rows(found: Any, names: tuple[str, ...]) -> list[int]:
    """Where joints stand among a compiled model's velocities."""
    return [int(found.joint(name).dofadr[0]) for name in names]


def soften_friction(found: Any, model: WholeModel, width: npt.ArrayLike) -> None:
    """Give the friction loss of joints and tendons the rise of ``fc tanh(v / width)``.

    Parameters
    ----------
    found : mujoco.MjModel
        Compiled; it is changed.
    width : array_like, shape () or (n,)
    """
    idim, h = model.idim, float(found.opt.timestep)
    widths = np.full(idim.robot.n, width, dtype=float)
    rows = find_velocity_rows(found, idim.robot.joint_names)
    inverse = found.dof_invweight0[rows]
    found_of = derive_softness(found.dof_frictionloss[rows], widths, inverse, h)
    set_softness(found.dof_solimp, found.dof_solref, rows, *found_of)
    motors = [gear.number - 1 for gear in idim.gears if gear.coupled]
    names = [name_motor(idim.robot.joint_names[k]) for k in motors]
    rows = [int(found.tendon(name).id) for name in names]
    inverse = found.tendon_invweight0[rows]
    found_of = derive_softness(found.tendon_frictionloss[rows], widths[motors], inverse, h)
    set_softness(found.tendon_solimp_fri, found.tendon_solref_fri, rows, *found_of)


def set_softness(
    solimp: Array, solref: Array, rows: list[int], impedance: Array, damping: Array
) -> None:
    """Write what `derive_softness` gives where there is friction."""
    for row, d, b in zip(rows, impedance, damping, strict=True):
        if b > 0.0:
            solimp[row], solref[row] = [d, d, 1e-3, 0.5, 2.0], [0.0, -b]
