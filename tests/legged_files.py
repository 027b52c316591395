"""Files of floating robots as a stranger would write them: CSV logs and studies beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from floating import Made
from robots import urdf
from tables import write_columns

from dynident.core.arrays import Array

FOOT = {"FL": "FL_FOOT", "FR": "FR_FOOT", "HL": "HL_FOOT", "HR": "HR_FOOT"}
FRICTION = "viscous"
Columns = dict[str, Array]


def columns_of(made: Made) -> Columns:
    """All that a log can have, by the names of its columns."""
    log, base = made.recording, made.recording.base
    assert base is not None
    found: Columns = {"time": np.arange(len(log.q)) / log.rate}
    for j, joint in enumerate(made.robot.joint_names):
        found[f"q_{joint}"], found[f"tau_{joint}"] = log.q[:, j], log.tau[:, j]
        assert log.dq is not None
        assert log.ddq is not None
        found[f"dq_{joint}"], found[f"ddq_{joint}"] = log.dq[:, j], log.ddq[:, j]
    parts = (
        ("px py pz", base.position),
        ("qx qy qz qw", base.orientation),
        ("vx vy vz wx wy wz", base.twist),
        ("ax ay az dwx dwy dwz", base.acceleration),
    )
    for names, signal in parts:
        assert signal is not None
        found |= {f"base_{name}": signal[:, k] for k, name in enumerate(names.split())}
    for name, wrench in log.wrenches.items():
        found |= {f"{part}_{name}": wrench[:, k] for k, part in enumerate(("fx", "fy", "fz"))}
    return found


def written(folder: Path, columns: Columns, name: str = "log.csv") -> Path:
    """A CSV file of columns."""
    path = folder / name
    write_columns(path, columns)
    return path


def without(columns: Columns, *beginnings: str) -> Columns:
    """The columns but for those whose names begin so."""
    return {name: own for name, own in columns.items() if not name.startswith(beginnings)}


def contacts(keys: str = "", feet: dict[str, str] = FOOT, kind: str = "point") -> str:
    """The feet as a study has them."""
    return "\n".join(
        f'[[contact]]\nname = "{name}"\nframe = "{frame}"\nkind = "{kind}"\n{keys}'
        for name, frame in feet.items()
    )


def study(
    folder: Path,
    *logs: str,
    contact: str | None = None,
    identify: str = 'method = "ols"',
    robot: str = "floating = true",
    prepare: str = 'bandwidth = 10.0\nderivatives = "measured"',
    decide: str = "nothing",
) -> Path:
    """A study beside its logs; each of them the text of its table.

    What is decided from logs takes longer than all else: it has tests of its own.
    """
    path = folder / "study.toml"
    parts = [
        f'[robot]\nfile = "{urdf("solo12")}"\nfriction = "{FRICTION}"\n{robot}',
        contacts() if contact is None else contact,
        *(f"[[log]]\n{log}" for log in logs),
        f"[prepare]\n{prepare}",
        f'[identify]\ndecide = "{decide}"\n{identify}',
    ]
    path.write_text("\n\n".join(parts) + "\n")
    return path
