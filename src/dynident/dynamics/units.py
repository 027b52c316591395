"""Units of parameters, on the joints that they are of."""

from __future__ import annotations

from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import SensorColumn
from dynident.dynamics.springs import TERMS, SpringColumn
from dynident.robot.model import Robot


def find_parameter_unit(idim: Idim, index: int) -> str:
    """Unit of a standard parameter, on its joint."""
    symbol, number = idim.parameters[index].symbol, idim.parameters[index].number
    if index < idim.inertial:
        return "kg" if symbol == "m" else "kg m" if symbol[0] == "m" else "kg m^2"
    column = idim.drive_columns[index - idim.inertial]
    if isinstance(column, SensorColumn):
        return column.unit
    if isinstance(column, SpringColumn):
        return convert_unit_to_joint(TERMS[symbol].unit, idim.robot, number)
    if column.friction is None:
        return "kg" if idim.robot.joints[number - 1].kind == "prismatic" else "kg m^2"
    model = idim.frictions[column.friction].model
    if column.term is not None:
        return convert_unit_to_joint(model.parameters[column.term].unit, idim.robot, number)
    shape = model.shape[column.shape or 0]
    return convert_unit_to_joint(shape.unit, idim.robot, number)


def convert_unit_to_joint(unit: str, robot: Robot, number: int) -> str:
    """A unit of a revolute joint, as a joint has it by its 1-based number."""
    straight = robot.joints[number - 1].kind == "prismatic"
    return unit.replace("rad", "m").replace("Nm", "N") if straight else unit
