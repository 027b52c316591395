"""An identified model as one of Pinocchio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array
from dynident.core.library_messages import capture_library_messages
from dynident.dynamics.whole import WholeModel
from dynident.export.exported import describe_omissions
from dynident.export.terms import sort_joint_terms
from dynident.export.urdf import render_standard_urdf
from dynident.robot.geometry import build_locked_configuration


@dataclass(frozen=True, eq=False)
class PinocchioModel:
    """A model of Pinocchio with identified values, and what it has no place for.

    Attributes
    ----------
    model : pin.Model
        Joints and frames of the robot's URDF, or of one that is made where there is none; locked
        joints at their values; a free-flyer in front where the base floats; joints without limits
        have a cosine and a sine in ``q``. In it are

        - ``inertias`` of the links and ``gravity``;
        - ``armature``: rotor inertias at the joints, which ``rnea``, ``crba`` and ``aba`` add to
          the mass matrix; of coupled drives the diagonal alone;
        - ``damping`` (fv) and ``lowerDryFrictionLimit``, ``upperDryFrictionLimit`` (-fc and fc),
          which none of Pinocchio's algorithms for unconstrained motion adds: write
          ``tau - damping * v - upperDryFrictionLimit * tanh(v / width) - offset`` as the torque
          of ``aba``.
    offset : ndarray, shape (nv,)
        Torque that the drives need at rest beside weight, in the order of ``model``'s velocities
        [Nm or N].
    rotors : ndarray, shape (nv, nv)
        All rotor inertias, coupled ones too: ``crba + rotors - diag(armature)`` is the mass matrix
        of the identified model [kg m^2 or kg].
    notes : tuple of str
        What was identified beside that, and is not in it.
    """

    model: pin.Model
    offset: Array
    rotors: Array
    notes: tuple[str, ...]


def build_pinocchio_model(model: WholeModel, said: tuple[str, ...] = ()) -> PinocchioModel:
    """A model of Pinocchio from the identified URDF and the identified drives.

    Parameters
    ----------
    model : WholeModel
        Whose links can exist.
    said : tuple of str
        Notes on the model itself.
    """
    document, _ = render_standard_urdf(model.idim, model.theta)
    robot, terms = model.idim.robot, sort_joint_terms(model)
    free = (pin.JointModelFreeFlyer(),) if robot.floating else ()
    with capture_library_messages():
        found = pin.buildModelFromXML(document.decode(), *free)
    locked = [found.getJointId(name) for name in robot.locked if found.existJointName(name)]
    if locked:  # a URDF that was made of the robot has none
        found = pin.buildReducedModel(found, locked, build_locked_configuration(found, robot))
    rows = [*range(6)] * robot.floating + [
        int(found.joints[found.getJointId(name)].idx_v) for name in robot.joint_names
    ]
    joints = rows[len(rows) - robot.n :]
    found.gravity.linear = np.array(robot.gravity)
    armature, offset = np.zeros(found.nv), np.zeros(found.nv)
    damping, friction = np.zeros(found.nv), np.zeros(found.nv)
    armature[joints] = np.diag(model.rotors)[len(rows) - robot.n :]
    offset[joints] = terms.offset
    damping[joints], friction[joints] = terms.damping, terms.friction
    found.armature, found.damping = armature, damping
    found.lowerDryFrictionLimit, found.upperDryFrictionLimit = -friction, friction
    rotors = np.zeros((found.nv, found.nv))
    rotors[np.ix_(rows, rows)] = model.rotors
    friction_left = [name for name in terms.motors if not name.startswith("Ia")]
    notes = said + describe_omissions([*friction_left, *terms.left], "model of Pinocchio")
    if robot.loops:
        left = ", ".join(loop.name for loop in robot.loops)
        notes += (f"the model of Pinocchio is a tree: the loop {left} is not in it",)
    turning = [name for name in terms.motors if name.startswith("Ia")]
    if turning:
        notes += (
            f"{', '.join(turning)}: Pinocchio's armature is a diagonal, what turns several joints "
            "acts on each alone",
        )
    return PinocchioModel(found, offset, rotors, notes)
