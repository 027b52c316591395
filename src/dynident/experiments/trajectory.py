"""A designed trajectory in the formats that controllers take, and what is said of it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.options import list_options
from dynident.core.text import format_count
from dynident.core.words import format_entry, format_number, format_percent, format_table
from dynident.excitation.certificate import KeptLimit
from dynident.excitation.criteria import CRITERIA
from dynident.excitation.design import Design
from dynident.excitation.excite import Excitation
from dynident.excitation.obstacles import FLOOR
from dynident.excitation.prediction import Prediction
from dynident.excitation.trajectories import SCHEMA, Harmonics

SERVO_HZ = 125.0
"""Rate of the points of a URScript program, which every controller of that make follows [Hz]."""
POINTS_HZ = 50.0
"""Rate of the points of a ROS 2 trajectory, between which its controller makes splines [Hz]."""


def render_csv(found: Excitation) -> str:
    """Reference positions, speeds and accelerations at the controller's rate."""
    reference = found.trajectory.reference(found.rate, found.periods)
    names = found.robot.joint_names
    header = ["time", *(f"{s}_{name}" for s in ("qref", "dqref", "ddqref") for name in names)]
    time = np.arange(len(reference.q)) / found.rate
    rows = np.column_stack([time, reference.q, reference.dq, reference.ddq])
    return format_matrix(rows, ",", ",".join(header))


def render_points(found: Excitation) -> str:
    """Positions alone, a row a sample."""
    return format_matrix(found.trajectory.reference(found.rate, found.periods).q, " ", "")


def format_matrix(rows: Array, delimiter: str, header: str) -> str:
    """Numbers as text."""
    text = io.StringIO()
    np.savetxt(text, rows, fmt="%.9g", delimiter=delimiter, header=header, comments="")
    return text.getvalue()


def render_joint_trajectory(found: Excitation) -> str:
    """A message of type trajectory_msgs/msg/JointTrajectory, as ``ros2 topic pub`` reads it."""
    reference = found.trajectory.reference(POINTS_HZ, found.periods)
    names = ", ".join(f"'{name}'" for name in found.robot.joint_names)
    lines = ["header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}", f"joint_names: [{names}]"]
    lines.append("points:")
    for k, (q, dq, ddq) in enumerate(zip(reference.q, reference.dq, reference.ddq, strict=True)):
        second, rest = divmod(round(1e9 * k / POINTS_HZ), 10**9)
        lines += [
            f"- positions: [{format_numbers(q)}]",
            f"  velocities: [{format_numbers(dq)}]",
            f"  accelerations: [{format_numbers(ddq)}]",
            "  effort: []",
            f"  time_from_start: {{sec: {second}, nanosec: {rest}}}",
        ]
    return "\n".join([*lines, ""])


def render_urscript(found: Excitation) -> str:
    """A program that moves to the first point and then servoes along the trajectory."""
    reference = found.trajectory.reference(SERVO_HZ, found.periods)
    lines = [
        "def excitation():",
        f"  movej([{format_numbers(reference.q[0])}], a=0.5, v=0.3)",
        "  sleep(1.0)",
        *(
            f"  servoj([{format_numbers(q)}], t={1.0 / SERVO_HZ:.4f}, lookahead_time=0.05, "
            "gain=300)"
            for q in reference.q
        ),
        "  stopj(1.0)",
        "end",
        "",
    ]
    return "\n".join(lines)


def format_numbers(values: Array) -> str:
    """Numbers between commas."""
    return ", ".join(f"{value:.7g}" for value in values + 0.0)


FORMATS: dict[str, Callable[[Excitation], str]] = {
    "trajectory.csv": render_csv,
    "trajectory.points.txt": render_points,
    "trajectory.ros2.yaml": render_joint_trajectory,
    "trajectory.script": render_urscript,
}
"""Files of a trajectory, by name, beside trajectory.json."""
SHAKEN = ("trajectory.csv", "trajectory.points.txt", "trajectory.ros2.yaml")
"""Of a motion with a multisine on top, which trajectory.json does not have."""


def serialise_motion(found: Excitation) -> dict[str, Any]:
    """Such a motion and its proof as plain data (schema ``dynident.shaken/1``)."""
    design = found.design
    main = design.trajectory.family.parts[design.trajectory.family.main]
    assert isinstance(main, Harmonics)
    return {
        "schema": "dynident.shaken/1",
        "robot": {"name": found.robot.name, "joints": list(found.robot.joint_names)},
        "rate": found.rate,
        "periods": found.periods,
        "kept": design.certificate.ok,
        "limits": [asdict(each) for each in design.certificate.kept],
        "fourier": serialise_fourier_terms(main, design.trajectory.C),
    }


def summarise_motion(found: Excitation) -> str:
    """What the terminal is told of such a motion."""
    family = found.trajectory.family
    length = family.length
    lines = format_entry("trajectory", f"shaken, {length:g} s{describe_periods(found)}")
    lines += format_entry("limits", describe_limits(found))
    lines += ["", *format_table("joint", found.robot.joint_names, format_limit_shares(found))]
    for warning in found.warnings:
        lines += ["", *format_entry("warning", warning)]
    return "\n".join([*lines, ""])


def serialise_trajectory(found: Excitation) -> dict[str, Any]:
    """The trajectory as plain data (schema ``dynident.trajectory/1``)."""
    design, prediction = found.design, found.prediction
    family = design.trajectory.family
    shape = {
        option.name: getattr(found.shape, option.name)
        for option in list_options(type(found.shape))  # type: ignore[arg-type]
        if getattr(found.shape, option.name) is not None
    }
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "robot": {"name": found.robot.name, "joints": list(found.robot.joint_names)},
        "shape": shape,
        "rate": found.rate,
        "periods": found.periods,
        "coefficients": design.trajectory.C.tolist(),
        "criterion": {"name": design.task.criterion, "value": design.value},
        "condition_number": {
            "unscaled": prediction.unscaled,
            "columns_scaled": prediction.columns,
            "physically_scaled": prediction.physical,
        },
        "kept": design.certificate.ok,
        "limits": [asdict(each) for each in design.certificate.kept],
        "floor": find_floor_height(found),
        "lowest": None if found.lowest is None else asdict(found.lowest),
        "parameters": serialise_parameters(prediction),
        "unidentifiable": list(prediction.base.unidentifiable),
        "stopped": design.stopped,
        "warnings": list(found.warnings),
    }
    if found.sensed is not None:
        document["sensor"] = {
            "link": found.sensor,
            "parameters": serialise_parameters(found.sensed),
        }
    main = family.parts[family.main]
    if isinstance(main, Harmonics):
        document["fourier"] = serialise_fourier_terms(main, design.trajectory.C)
    return document


def serialise_parameters(prediction: Prediction) -> list[dict[str, Any]]:
    """Names, nominal values and predicted standard deviations."""
    columns = prediction.names, prediction.nominal, prediction.std
    return [
        {"name": name, "nominal": nominal, "std": std}
        for name, nominal, std in zip(*columns, strict=True)
    ]


def serialise_fourier_terms(main: Harmonics, C: Array) -> dict[str, Any]:
    """Offset and amplitudes as zhang2018, eq. (27) has them: of the speeds."""
    full = main.mix @ C
    k = len(main.omega)
    return {
        "hz": (main.omega / (2.0 * np.pi)).tolist(),
        "offset": full[0].tolist(),
        "sine": (main.omega[:, None] * full[1 : 1 + k]).T.tolist(),
        "cosine": (-main.omega[:, None] * full[1 + k :]).T.tolist(),
    }


def summarise_excitation(found: Excitation) -> str:
    """What the terminal is told."""
    design, prediction = found.design, found.prediction
    family = design.trajectory.family
    length = family.length
    lines = format_entry("trajectory", f"{family.kind}, {length:g} s{describe_periods(found)}")
    lines += format_entry("criterion", f"{describe_criterion(design)}; {design.stopped}")
    lines += format_entry(
        "condition",
        f"{format_number(prediction.unscaled, 3)} unscaled, "
        f"{format_number(prediction.columns, 3)} with columns scaled, "
        f"{format_number(prediction.physical, 3)} times nominal values",
    )
    lines += format_entry("limits", describe_limits(found))
    lines += format_entry("floor", describe_floor(found))
    lines += ["", *format_table("joint", found.robot.joint_names, format_limit_shares(found))]
    lines += [
        "",
        *format_table("parameter", prediction.names, format_parameter_columns(prediction)),
    ]
    if found.sensed is not None:
        title = f"beyond {found.sensor}"
        lines += [
            "",
            *format_table(title, found.sensed.names, format_parameter_columns(found.sensed)),
        ]
    for warning in found.warnings:
        lines += ["", *format_entry("warning", warning)]
    return "\n".join([*lines, ""])


def describe_criterion(design: Design) -> str:
    """Its value, and what that means where it has a meaning."""
    name = design.task.criterion
    meaning, std = CRITERIA[name].meaning, format_number(float(np.exp(0.5 * design.value)), 2)
    told = f"{name} {format_number(design.value)}"
    return f"{told}, {meaning.format(std)}" if meaning else told


def describe_periods(found: Excitation) -> str:
    """How often, where more than once."""
    return f", {format_count(found.periods, 'period')}" if found.periods > 1 else ""


def list_distances(found: Excitation) -> list[KeptLimit]:
    """What is proved of the distances that are checked, the pair that was nearest first."""
    kept = [each for each in found.design.certificate.kept if each.what == "clearance"]
    return sorted(kept, key=lambda each: each.seen)


def describe_distances(apart: list[KeptLimit]) -> str:
    """What is proved of distances, and the least one that was measured: see `list_distances`."""
    nearest, bound = apart[0], min(each.reached for each in apart)
    return (
        f"proved: never nearer than {1e3 * bound:.1f} mm; measured: {1e3 * nearest.seen:.1f} mm "
        f"({nearest.where}, about {nearest.time:.2f} s)"
    )


def describe_limits(found: Excitation) -> str:
    """What is proved of the limits."""
    certificate = found.design.certificate
    worst = certificate.worst
    assert worst is not None
    said = "kept at every instant" if certificate.ok else "NOT kept"
    near = f"closest: {worst.what} of {worst.where}, {describe_share(worst)}"
    apart = list_distances(found)
    if not apart:
        return f"{said}; {near}; collisions not checked"
    return f"{said}; {near}; {describe_distances(apart)}"


def describe_share(kept: KeptLimit) -> str:
    """How much of a limit is used, which is proved and not measured."""
    return f"at most {100.0 * kept.share:.1f} % of what is allowed"


def find_floor_height(found: Excitation) -> float | None:
    """Of the plane under the robot, in the base frame; None where there is none [m]."""
    for obstacle in found.obstacles:
        shape, _ = obstacle.shapes[0]
        if obstacle.name == FLOOR and type(shape).__name__ == "Halfspace" and shape.n[2] == 1.0:
            return float(shape.d)
    return None


def describe_floor(found: Excitation) -> str:
    """Where the floor is, what may touch it, and how near to it the robot comes."""
    height, lowest = find_floor_height(found), found.lowest
    told = "not checked"
    if any(each.name == FLOOR for each in found.obstacles):
        where = "as drawn" if height is None else f"z = {format_number(height)} m of the base frame"
        told = f"{where}; only what is fixed to the base may touch it"
    if lowest is None:
        return told
    return (
        f"{told}; lowest point reached: z = {format_number(lowest.height)} m ({lowest.link}, at "
        f"{lowest.time:.2f} s)"
    )


def format_limit_shares(found: Excitation) -> list[tuple[str, list[str]]]:
    """Shares of the limits in per cent, joint by joint."""
    shares = found.design.certificate.shares(found.robot.joint_names)
    kinds = ("range", "speed", "acceleration", "jerk", "torque")
    return [
        (f"{kind} %", [f"{100.0 * value:.0f}" if value > 0.0 else "-" for value in row])
        for kind, row in zip(kinds, shares, strict=True)
        if np.any(row > 0.0)
    ]


def format_parameter_columns(prediction: Prediction) -> list[tuple[str, list[str]]]:
    """Nominal values and predicted standard deviations."""
    return [
        ("nominal", [format_number(value) if value else "-" for value in prediction.nominal]),
        ("std", [format_number(value, 2) for value in prediction.std]),
        ("std %", [format_percent(100.0 * value) for value in prediction.relative]),
    ]
