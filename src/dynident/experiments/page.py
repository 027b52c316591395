"""The report of a designed trajectory: its limits, predicted error bars, how it looks."""

from __future__ import annotations

from itertools import cycle

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.plain import replace_nonfinite, to_json
from dynident.core.words import format_number
from dynident.excitation.certificate import KeptLimit
from dynident.excitation.excite import Excitation
from dynident.excitation.obstacles import FLOOR
from dynident.excitation.prediction import Prediction
from dynident.experiments.replay import render_replay_page
from dynident.experiments.trajectory import (
    FORMATS,
    describe_distances,
    describe_floor,
    describe_periods,
    describe_share,
    format_limit_shares,
    format_parameter_columns,
    list_distances,
    serialise_trajectory,
)
from dynident.plots.charts import (
    BLUE,
    GREY,
    LINES,
    RED,
    Chart,
    Curve,
    Dots,
    Mark,
    Panel,
    Rule,
    label_joint,
    name_places,
)
from dynident.plots.document import (
    PagePart,
    PageRow,
    PageTable,
    VerdictSentence,
    build_column_table,
    render_document,
    render_macro,
)
from dynident.plots.page import render_chart
from dynident.robot.model import Robot

OUTPUTS = ("trajectory.json", *FORMATS, "report.html", "replay.html")
"""All that ``-o DIR`` receives; the first is the head of the set."""
SCRIPT, SIX = "trajectory.script", 6
"""A program for one make of robots, which have so many joints."""
INSTANTS = 400
"""Of a curve."""


def render_excitation_files(found: Excitation, script: bool = False) -> dict[str, str]:
    """Contents of all files of a design, by name.

    `script`: whether a program for robots of one make is among them.
    """
    replay = render_replay_page(found)
    return {
        "trajectory.json": to_json(replace_nonfinite(serialise_trajectory(found))),
        **{name: made(found) for name, made in FORMATS.items() if name != SCRIPT or script},
        "report.html": render_excitation_page(found, replay),
        "replay.html": replay,
    }


def refuse_script(robot: Robot) -> None:
    """Refuse the program of a robot that cannot be of its make."""
    slides = [joint.name for joint in robot.joints if joint.kind != "revolute"]
    if robot.n != SIX or slides:
        has = f"slides along {slides[0]}" if slides else f"has {robot.n} joints"
        raise InputError(
            f"{robot.name}: {SCRIPT} is a program for robots with {SIX} turning joints, this one "
            f"{has}; leave --script out"
        )


def render_excitation_page(found: Excitation, replay: str) -> str:
    """A design as a self-contained page, with the page that plays it inside."""
    family = found.design.trajectory.family
    return render_document(
        found.robot.name,
        f"excitation by {family.kind}, {family.length:g} s{describe_periods(found)}",
        [
            *list_excitation_statements(found),
            *(VerdictSentence("note", "Note", words) for words in found.warnings),
        ],
        [
            PagePart(key, title, render_macro(__package__ or "", "sections.html.j2", key, **filled))
            for key, title, filled in (
                ("limits", "Limits", fill_limits(found)),
                ("motion", "Motion", fill_motion(found, replay)),
                ("precision", "Predicted error bars", fill_precision(found)),
            )
        ],
    )


def fill_limits(found: Excitation) -> dict[str, object]:
    """What is near its limit, and how near to what links come."""
    return {
        "limits": build_column_table("joint", found.robot.joint_names, format_limit_shares(found)),
        "near": build_nearest_table(found),
        "clearance": plot_clearance(found) if found.design.task.clearance is not None else "",
    }


def fill_motion(found: Excitation, replay: str) -> dict[str, object]:
    """The robot in motion, and each joint over its limits."""
    figures = [plot_motion_shares(found, order) for order in range(3)]
    figures += [plot_torque_shares(found)] if found.design.task.nominal is not None else []
    return {"replay": replay, "figures": list(filter(None, figures))}


def fill_precision(found: Excitation) -> dict[str, object]:
    """Predicted standard deviations, and what stays weak."""
    design, prediction, sensed = found.design, found.prediction, found.sensed
    weak = [prediction.why(k) for k in prediction.weak]
    if sensed is not None:
        weak += [f"beyond {found.sensor}, {sensed.why(k)}" for k in sensed.weak]
    return {
        "precision": plot_predicted_precision(found),
        "parameters": build_prediction_table("parameter", prediction),
        "sensed": sensed and build_prediction_table(f"beyond {found.sensor}", sensed),
        "weak": weak,
        "unidentifiable": prediction.base.unidentifiable,
        "criterion": design.task.criterion,
        "value": format_number(design.value),
        "stopped": design.stopped,
    }


def build_prediction_table(stub: str, prediction: Prediction) -> PageTable:
    """Predicted standard deviations as a table."""
    return build_column_table(stub, prediction.names, format_parameter_columns(prediction))


def list_excitation_statements(found: Excitation) -> list[VerdictSentence]:
    """What is said first."""
    certificate, prediction = found.design.certificate, found.prediction
    worst = certificate.worst
    assert worst is not None
    said = [
        VerdictSentence(
            "good" if certificate.ok else "bad",
            "Limits kept" if certificate.ok else "Limits not kept",
            f"proved between the points of a grid of {1e3 * certificate.step:.1f} ms, torques at "
            f"{certificate.points} instants; closest is the {worst.what} of {worst.where}, with "
            f"{describe_share(worst)}.",
        )
    ]
    apart = list_distances(found)
    if apart:
        clear = all(each.ok for each in apart)
        said.append(
            VerdictSentence(
                "good" if clear else "bad",
                "No collision" if clear else "Too near",
                f"{len(apart)} pairs of shapes, of which {1e3 * apart[0].limit:.0f} mm are asked "
                f"for; {describe_distances(apart)}.",
            )
        )
    else:
        said.append(
            VerdictSentence("note", "Collisions not checked", "only the joints' limits are.")
        )
    watched = any(each.name == FLOOR for each in found.obstacles)
    said.append(
        VerdictSentence("good" if watched else "note", "Floor", f"{describe_floor(found)}.")
    )
    known = int(np.sum(np.abs(prediction.nominal) > 0.0))
    said.append(
        VerdictSentence(
            "good" if not prediction.weak else "note",
            "Predicted error bars",
            f"condition number {format_number(prediction.unscaled, 3)} in SI units, "
            f"{format_number(prediction.columns, 3)} with columns scaled; "
            f"{known - len(prediction.weak)} of {known} parameters with a nominal value will be "
            "known to better than half of it.",
        )
    )
    return said


def choose_curve_times(found: Excitation) -> Array:
    """Of the curves [s]."""
    family = found.trajectory.family
    return np.linspace(family.start, family.stop, INSTANTS)


def plot_motion_shares(found: Excitation, order: int) -> str:
    """Positions, speeds or accelerations over their limits; empty where none is limited."""
    low, high = found.design.task.limits.of_order(order)
    limited = np.isfinite(high)
    if not np.any(limited):
        return ""
    times = choose_curve_times(found)
    values = found.trajectory.at(times, order)
    middle, half = np.zeros_like(high), np.full_like(high, np.inf)
    middle[limited] = 0.5 * (high[limited] + low[limited])
    half[limited] = 0.5 * (high[limited] - low[limited])
    shares = (values - middle) / half
    return plot_shares_over_time(times, shares, found, ("position", "speed", "acceleration")[order])


def plot_torque_shares(found: Excitation) -> str:
    """Torques of the nominal model over what the margin leaves."""
    task = found.design.task
    assert task.nominal is not None
    times = choose_curve_times(found)
    q, dq, ddq = (found.trajectory.at(times, order) for order in range(3))
    tau = task.nominal.torque(q, dq, ddq)
    tau = tau + np.sign(tau) * task.nominal.steady
    shares = (tau / task.limits.torque)[:, : found.robot.n]
    return plot_shares_over_time(times, shares, found, "torque")


def plot_shares_over_time(times: Array, shares: Array, found: Excitation, what: str) -> str:
    """Shares of limits over time, a line a joint."""
    marks: list[Mark] = [
        Curve(
            times,
            shares[:, j],
            colour,
            dashed=dashed,
            label=label_joint(name, found.robot.joint_names),
        )
        for j, (name, (colour, dashed)) in enumerate(
            zip(found.robot.joint_names, cycle(LINES), strict=False)
        )
    ]
    marks += [Rule(edge, RED, 0.7, dashed=True) for edge in (-1.0, 1.0)]
    return render_chart(
        Chart((
            Panel(
                tuple(marks),
                x="time [s]",
                y=f"{what} / limit",
                height=170.0,
                flush=True,
                y_range=(-1.08, 1.08),
            ),
        )),
        f"Each joint's {what} against its limit",
    )  # fmt: skip


def plot_clearance(found: Excitation) -> str:
    """The smallest distance over time."""
    task = found.design.task
    assert task.clearance is not None
    times = choose_curve_times(found)
    distance = task.clearance.distances(found.trajectory.at(times)).min(axis=1)
    marks = (
        Curve(times, 1e3 * distance, BLUE),
        Rule(1e3 * task.limits.clearance, RED, 0.7, dashed=True),
    )
    panel = Panel(marks, x="time [s]", y="nearest [mm]", flush=True, y_range=(0.0, None))
    return render_chart(Chart((panel,)), "Smallest distance over time")


def build_nearest_table(found: Excitation) -> PageTable | None:
    """The pairs that come nearest, each two links once."""
    apart = list_distances(found)
    if not apart:
        return None
    nearest: dict[str, KeptLimit] = {}
    proved: dict[str, float] = {}
    for each in apart:
        nearest.setdefault(each.where, each)
        proved[each.where] = min(each.reached, proved.get(each.where, np.inf))
    rows = tuple(
        PageRow((
            where, f"{1e3 * each.seen:.1f}", f"{each.time:.2f}", f"{1e3 * proved[where]:.1f}",
        ))
        for where, each in list(nearest.items())[:10]
    )  # fmt: skip
    columns = ("pair", "measured [mm]", "at [s]", "proved, never nearer than [mm]")
    return PageTable(columns, rows, ("pair",))


def plot_predicted_precision(found: Excitation) -> str:
    """Predicted relative standard deviations, the best first."""
    prediction = found.prediction
    relative = 100.0 * prediction.relative
    order = np.argsort(relative)
    order = order[np.isfinite(relative[order])]
    if not len(order):
        return ""
    place = np.arange(float(len(order)))
    weak = np.isin(order, prediction.weak)
    shown = relative[order]
    marks = (
        Rule(50.0, RED, 0.7, dashed=True),
        Dots(place[~weak], shown[~weak], BLUE, 4.5, label="predicted std"),
        Dots(place[weak], shown[weak], GREY, 4.5, "diamond", "weak"),
    )
    panel = name_places([prediction.names[k] for k in order], marks, "std [%]", log=True)
    return render_chart(Chart((panel,)), "Predicted relative standard deviations")
