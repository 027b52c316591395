"""Robots: their trees and drives, and the files that describe them."""

from dynident.robot.load import load_robot
from dynident.robot.model import Joint, Robot

__all__ = ["Joint", "Robot", "load_robot"]
