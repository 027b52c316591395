"""The picture of a designed trajectory: python docs/figures/make_excitation_picture.py.

The robot is the Panda of example-robot-data, which the test extra brings.
"""

from __future__ import annotations

from pathlib import Path

import pinocchio as pin

import dynident as di
from dynident.results.replay import render_still_picture

HERE = Path(__file__).resolve().parent
PANDA = Path("share/example-robot-data/robots/panda_description/urdf/panda.urdf")
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}


def main() -> None:
    """Write excitation.png."""
    folders = Path(pin.__file__).parents
    path = next(folder / PANDA for folder in folders if (folder / PANDA).is_file())
    robot = di.load_robot(path, locked=FINGERS)
    plan = di.excite(robot, acceleration=10.0, starts=2, time=300.0)
    (HERE / "excitation.png").write_bytes(render_still_picture(plan))


if __name__ == "__main__":
    main()
