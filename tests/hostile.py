"""A directory with all that the commands read, for tests that spoil it."""

from __future__ import annotations

import io
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import toy

from dynident.cli import run
from dynident.core.text import LONGEST
from dynident.dynamics.idim import build_idim
from dynident.export.urdf import render_urdf

STUDY = """[robot]
file = "arm.urdf"
[[log]]
files = "a.csv"
[prepare]
bandwidth = 5.0
[identify]
doctor = false
"""
LOOP = """[robot]
file = "arm.urdf"
[controller]
kind = "pd"
kp = 400.0
kd = 40.0
rate = 500.0
[reference]
kind = "fourier"
rate = 500.0
duration = 2.0
frequency = 0.5
offset = [0.1, 0.2]
sine = [[0.5, 0.3], [0.4, 0.2]]
cosine = [[0.1, 0.2], [0.3, 0.1]]
[noise]
torque = 0.1
[simulation]
parameters = { Ia1 = 0.3, Ia2 = 0.3, fv1 = 2.0, fv2 = 2.0, fc1 = 1.0, fc2 = 1.0 }
"""
RATE = 200.0


def signals() -> dict[str, np.ndarray]:
    """Columns of a log of the two-joint arm."""
    robot = toy.arm(2)
    idim = build_idim(robot)
    q, dq, ddq = toy.motion(2, 4.0, 0, RATE)
    tau = idim.torque(toy.true_parameters(idim, robot.nominal), q, dq, ddq)
    tau += np.random.default_rng(1).normal(size=tau.shape) * 0.3
    names = [f"{signal}_{joint}" for signal in ("q", "tau") for joint in robot.joint_names]
    table = np.column_stack([np.arange(len(q)) / RATE, q, tau])
    return dict(zip(["time", *names], table.T, strict=True))


def stock(place: Path) -> None:
    """Fill a directory."""
    robot = toy.arm(2)
    (place / "arm.urdf").write_bytes(render_urdf(robot, robot.nominal)[0])
    columns = signals()
    table = np.column_stack(list(columns.values()))
    header = ",".join(columns)
    np.savetxt(place / "a.csv", table, "%.9g", ",", header=header, comments="")
    (place / "s.toml").write_text(STUDY)
    (place / "loop.toml").write_text(LOOP)
    with chdir(place):
        code, _, err = command(["identify", "s.toml", "--no-report", "-o", "out"])
    assert code == 0, err


def command(argv: list[str]) -> tuple[int, str, str]:
    """Run a command; its exit code and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(argv)
    return code, out.getvalue(), err.getvalue()


def listing() -> dict[str, int]:
    """All files below the current directory and when they were written."""
    found = (Path(folder, name) for folder, _, names in os.walk(".") for name in names)
    return {str(path): path.stat().st_mtime_ns for path in found}


def sound(argv: list[str], outputs: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run a command and check what holds whatever it was given; its exit code and its reason."""
    before = listing()
    code, _, err = command(argv)
    assert code in (0, 1, 2)
    assert "Traceback" not in err
    reasons = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(reasons) == (code != 0), err[:2000]
    assert all(len(line) <= LONGEST + 20 for line in reasons)
    after = listing()
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed <= (set(outputs) if code == 0 else set())
    return code, reasons[0] if reasons else ""
