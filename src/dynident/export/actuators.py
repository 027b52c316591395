"""Actuators of learning environments on MuJoCo and PhysX, as modules of Python.

Their fields are those of mjlab 1.3 (`mjlab/actuator/actuator.py`, `builtin_actuator.py`) and of
Isaac Lab 2.2 (`isaaclab/actuators/actuator_base_cfg.py`, `actuator_pd_cfg.py`), in SI units both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.idim import Idim
from dynident.export.drives import JointDrive, describe_left_drives, list_drives
from dynident.export.servo import Servo

DELAYED = """DELAY = {delay!r}
\"\"\"By which the targets come late [s].\"\"\"


def make_actuators(timestep: float) -> {kind}:
    \"\"\"{what}, at a time step of the physics [s].\"\"\"
    lag = round(DELAY / timestep)
"""
PLAIN = """
def make_actuators() -> {kind}:
    \"\"\"{what}.\"\"\"
"""
"""What a module begins with, of a law that may be late, and without one."""


def render_mjlab(
    idim: Idim, theta: Array, folder: object, width: object, servos: Sequence[Servo]
) -> tuple[bytes, tuple[str, ...]]:
    """A module with the actuators of an mjlab entity: one a joint, since each is another.

    Position actuators of a fitted law, whose stiffness and damping are the law's; of other fits
    motors, which have to have limits.

    Parameters and returns are those of `Render`.
    """
    drives = list_drives(idim, theta, servos)
    kind = "BuiltinPositionActuatorCfg" if servos else "BuiltinMotorActuatorCfg"
    entries = []
    for drive in drives:
        fields: dict[str, Any] = {"target_names_expr": (re.escape(drive.joint.name),)}
        if drive.servo is not None:
            fields |= {"stiffness": drive.servo.kp, "damping": drive.servo.kv}
        elif np.isinf(drive.effort):
            raise InputError(
                f"{drive.joint.name}: a motor of mjlab has to have a limit of its effort; give the "
                "robot file one, or fit positions under a law"
            )
        if np.isfinite(drive.effort):
            fields["effort_limit"] = drive.effort
        passive = {
            "armature": drive.armature,
            "frictionloss": drive.dry,
            "viscous_damping": drive.viscous,
        }
        fields |= {name: value for name, value in passive.items() if value is not None}
        lags = ["delay_min_lag=lag", "delay_max_lag=lag"] if servos else []
        entries.append(render_call(kind, fields, lags))
    body = "    return (\n" + "".join(f"{entry},\n" for entry in entries) + "    )\n"
    what = "For ``EntityArticulationInfoCfg(actuators=...)``"
    head = render_head(idim, "mjlab.actuator", kind, f"tuple[{kind}, ...]", what, servos)
    notes = describe_left_drives(idim, "mjlab module")
    if servos:
        notes += ("the MJCF has servos of its own: take its <actuator> out where these are used",)
    return (head + body).encode(), notes


def render_isaac_lab(
    idim: Idim, theta: Array, folder: object, width: object, servos: Sequence[Servo]
) -> tuple[bytes, tuple[str, ...]]:
    """A module with the actuators of an Isaac Lab articulation, all joints in one.

    Of a fitted law a delayed PD actuator; of other fits an implicit one with the gains of the USD.

    Parameters and returns are those of `Render`.
    """
    drives = list_drives(idim, theta, servos)
    kind = "DelayedPDActuatorCfg" if servos else "ImplicitActuatorCfg"
    law: dict[str, Mapping[str, float] | None] = {"stiffness": None, "damping": None}
    limit = "effort_limit_sim"
    if servos:
        named = zip(idim.robot.joint_names, servos, strict=True)
        gains = {name: (servo.kp, servo.kv) for name, servo in named}
        law = {
            "stiffness": {name: kp for name, (kp, _) in gains.items()},
            "damping": {name: kv for name, (_, kv) in gains.items()},
        }
        limit = "effort_limit"
    passive = {
        limit: select_known(drives, [d.effort if np.isfinite(d.effort) else None for d in drives]),
        "armature": select_known(drives, [drive.armature for drive in drives]),
        "friction": select_known(drives, [drive.dry for drive in drives]),
        "dynamic_friction": select_known(drives, [drive.dry for drive in drives]),
        "viscous_friction": select_known(drives, [drive.viscous for drive in drives]),
    }
    names = [re.escape(name) for name in idim.robot.joint_names]
    fields = {"joint_names_expr": names, **law, **{k: v for k, v in passive.items() if v}}
    lags = ["min_delay=lag", "max_delay=lag"] if servos else []
    call = render_call(kind, fields, lags).strip()
    what = "For ``ArticulationCfg(actuators=...)``"
    head = render_head(idim, "isaaclab.actuators", kind, f"dict[str, {kind}]", what, servos)
    text = head + f'    return {{\n        "drives": {call}\n    }}\n'
    return text.encode(), describe_left_drives(idim, "Isaac Lab module")


def select_known(drives: Sequence[JointDrive], values: Sequence[float | None]) -> dict[str, float]:
    """Values by joint, of joints that have one."""
    pairs = zip(drives, values, strict=True)
    return {re.escape(drive.joint.name): value for drive, value in pairs if value is not None}


def render_head(
    idim: Idim, package: str, kind: str, returned: str, what: str, servos: Sequence[Servo]
) -> str:
    """What stands before the actuators."""
    begin = DELAYED if servos else PLAIN
    words = f'"""Actuators of {idim.robot.name}, identified by dynident, in SI units."""'
    imported = f"from __future__ import annotations\n\nfrom {package} import {kind}"
    delay = servos[0].delay if servos else 0.0
    return f"{words}\n\n{imported}\n\n{begin.format(delay=delay, kind=returned, what=what)}"


def render_call(name: str, fields: Mapping[str, Any], lags: Sequence[str]) -> str:
    """A call over several lines: keywords with literals of Python, and those of lags."""
    arguments = [*(f"{name}={value!r}" for name, value in fields.items()), *lags]
    inner = "".join(f"            {argument},\n" for argument in arguments)
    return f"        {name}(\n{inner}        )"
