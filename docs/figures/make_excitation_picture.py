"""The picture of a designed trajectory: python docs/figures/make_excitation_picture.py.

The robot is the Panda of example-robot-data, which the test extra brings; Chromium draws it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pinocchio as pin

import dynident as di
from dynident.experiments.replay import render_replay_page

HERE = Path(__file__).resolve().parent
PANDA = Path("share/example-robot-data/robots/panda_description/urdf/panda.urdf")
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
SIZE = (1100, 700)


def main() -> None:
    """Write excitation.png."""
    folders = Path(pin.__file__).parents
    path = next(folder / PANDA for folder in folders if (folder / PANDA).is_file())
    robot = di.load_robot(path, locked=FINGERS)
    plan = di.excite(robot, acceleration=10.0, starts=2, time=300.0)
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("there is no Chromium on this machine")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "replay.html"
        page.write_text(render_replay_page(plan), "utf-8")
        drawing = ["--headless", "--no-sandbox", "--use-angle=swiftshader"]
        drawing += ["--enable-unsafe-swiftshader", f"--user-data-dir={folder}/profile"]
        drawing += [f"--window-size={SIZE[0]},{SIZE[1]}", "--virtual-time-budget=3000"]
        shown = f"--screenshot={HERE / 'excitation.png'}"
        subprocess.run([browser, *drawing, shown, f"{page.as_uri()}#t=0"], check=True, timeout=300)


if __name__ == "__main__":
    main()
