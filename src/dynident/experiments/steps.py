"""Questions, the runs that answer them, and what each run is expected to tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from dynident.core.arrays import Array
from dynident.core.inertia import INERTIAL, PER_BODY
from dynident.dynamics.units import find_parameter_unit
from dynident.experiments.expected import (
    ExpectedRows,
    FutureLog,
    compare_loads,
    control,
    predict_std,
    stand,
    sum_information,
)
from dynident.robot.model import Robot


class ExpectedValue(NamedTuple):
    """What is expected of a parameter: its value by the file, and its standard deviation."""

    name: str
    unit: str
    value: float
    std: float


class ToldParameters(NamedTuple):
    """Parameters, and how they are told."""

    title: str
    entries: tuple[ExpectedValue, ...]


class Question(NamedTuple):
    """A question: in words, and the runs that answer it."""

    words: str
    steps: tuple[str, ...]


class ProtocolStep(NamedTuple):
    """A run: what it is, and what follows from it.

    Attributes
    ----------
    motion : str
        Which of the motions is made.
    carries : int or None
        Which of both lengths the mass is at; None without it.
    gains : str
        Of the controller.
    expect : callable
        What it tells, from all runs so far, itself among them, and kd over kp.
    untold : tuple of str
        What it does not tell.
    then : tuple of str
        What to do with the log, in the folder of the protocol.
    prepare : mapping
        Keys of ``[prepare]`` of its study.
    """

    title: str
    motion: str
    carries: int | None
    gains: str
    expect: Callable[[Mapping[str, FutureLog], float], Sequence[ToldParameters]]
    untold: tuple[str, ...]
    then: tuple[str, ...]
    prepare: Mapping[str, Any] = {}


def list_base(run: FutureLog, std: Array, only: Array | None = None) -> tuple[ExpectedValue, ...]:
    """Base parameters, all or some, with their standard deviations."""
    base = run.base
    chosen = np.arange(base.count) if only is None else only
    nominal = base.matrix @ base.idim.nominal
    return tuple(
        ExpectedValue(
            base.names[k],
            find_parameter_unit(base.idim, int(base.kept[k])),
            nominal[k] if base.kept[k] < base.idim.inertial else np.nan,
            std[k],
        )
        for k in chosen
    )


def inform(runs: Sequence[FutureLog]) -> Array:
    """What runs without an unknown load tell of the base parameters."""
    return sum_information(
        [runs[0].base.count], [ExpectedRows((each.known,), each.weights) for each in runs]
    )


def find_empty(runs: Mapping[str, FutureLog]) -> list[FutureLog]:
    """The runs of the model of the robot alone."""
    return [runs[name] for name in ("sweeps", "series")]


def expect_drives(runs: Mapping[str, FutureLog], damping: float) -> list[ToldParameters]:
    """Friction and offsets, by the sweeps alone."""
    run = runs["sweeps"]
    rubs = np.flatnonzero(run.base.kept >= run.base.idim.inertial)
    rotors = [name.startswith("Ia") for name in run.base.names]
    chosen = rubs[~np.array(rotors)[rubs]]
    return [ToldParameters("by this run alone", list_base(run, predict_std(inform([run])), chosen))]


def expect_bodies(runs: Mapping[str, FutureLog], damping: float) -> list[ToldParameters]:
    """All base parameters, rotors among them."""
    every = find_empty(runs)
    return [
        ToldParameters(
            "by this run and the sweeps", list_base(every[0], predict_std(inform(every)))
        )
    ]


def expect_other_gains(runs: Mapping[str, FutureLog], damping: float) -> list[ToldParameters]:
    """The differences of two fits that noise alone makes."""
    run = runs["series"]
    std = np.sqrt(2.0) * predict_std(inform([run]))
    return [ToldParameters("difference of both fits that noise alone makes", list_base(run, std))]


def expect_delay(runs: Mapping[str, FutureLog], damping: float) -> list[ToldParameters]:
    """Delays of the log, then gains and delay of the loop."""
    run, robot = runs["quick"], runs["quick"].base.idim.robot
    names, n = robot.joint_names, robot.n
    widths = [run.base.count, n]
    lag = -run.slope[:, :, None] * np.eye(n)
    parts = [ExpectedRows((each.known, None), each.weights) for each in find_empty(runs)]
    M = sum_information(widths, [*parts, ExpectedRows((run.known, lag), run.weights)])
    late = 1e3 * predict_std(M)[-n:]
    loop = predict_std(sum_information([n, n, n], [control(run, damping)])).reshape(3, n)
    loop *= np.array([[100.0], [100.0], [1e3]])
    kinds = (("kp", "%"), ("kd", "%"), ("loop delay", "ms"))
    return [
        ToldParameters(
            "delay between torques and positions of the log",
            tuple(ExpectedValue(f"delay {names[k]}", "ms", np.nan, late[k]) for k in robot.driven),
        ),
        ToldParameters(
            f"gains of the controller, by kd / kp = {damping:g} s",
            tuple(
                ExpectedValue(f"{kind} {names[k]}", unit, np.nan, stds[k])
                for (kind, unit), stds in zip(kinds, loop, strict=True)
                for k in robot.driven
            ),
        ),
    ]


def list_load_friction(M: Array, robot: Robot, title: str) -> ToldParameters:
    """Friction under load of each drive, the last unknowns."""
    std = predict_std(M)[-robot.n :]
    return ToldParameters(
        title, tuple(ExpectedValue(f"fl{k + 1}", "", np.nan, std[k]) for k in robot.driven)
    )


def expect_near(runs: Mapping[str, FutureLog], damping: float) -> list[ToldParameters]:
    """Friction under load by one mass at one length, twice: with other friction free and not."""
    near, robot = runs["near"], runs["near"].base.idim.robot
    rows = ExpectedRows((near.known, near.loaded), near.weights)
    steady = sum_information([near.base.count, robot.n], [rows])
    return [
        list_load_friction(compare_loads([near]), robot, "by this one length alone"),
        list_load_friction(
            steady, robot, "likewise, if all other friction were the same everywhere"
        ),
    ]


def expect_far(runs: Mapping[str, FutureLog], damping: float) -> list[ToldParameters]:
    """Friction under load by both lengths, and without the mass; and by which load they differ."""
    both, robot = [runs["near"], runs["far"]], runs["far"].base.idim.robot
    more = np.subtract(*(np.abs(each.loads).mean(axis=0) for each in both[::-1]))
    units = ["N" if each.kind == "prismatic" else "Nm" for each in robot.joints]
    return [
        list_load_friction(compare_loads(both), robot, "by both lengths"),
        list_load_friction(
            compare_loads([runs["sweeps"], *both]), robot, "by both lengths and without the mass"
        ),
        ToldParameters(
            "of the mean load, more at the far length: what fc gains, over it, is about fl",
            tuple(
                ExpectedValue(robot.joint_names[k], units[k], more[k], np.nan) for k in robot.driven
            ),
        ),
    ]


def expect_load(
    runs: Mapping[str, FutureLog],
    carried: Sequence[ExpectedRows],
    chosen: Sequence[int],
    title: str,
) -> list[ToldParameters]:
    """Parameters of a load, and the drives' gain where its mass is known.

    `carried`: of base parameters, ten of the load, holding friction.
    """
    empty = find_empty(runs)
    body = runs["rests"].body
    n = empty[0].base.idim.robot.n
    parts = [ExpectedRows((each.known, None, None), each.weights) for each in empty]
    p = empty[0].base.count
    M = sum_information([p, PER_BODY, n], [*parts, *carried])
    std = predict_std(M)[p : p + PER_BODY]
    units = ("kg", *["kg m"] * 3, *["kg m^2"] * 6)
    found = tuple(ExpectedValue(INERTIAL[k], units[k], body[k], std[k]) for k in chosen)
    # a body that is known is one column: what all of its torques are multiplied by
    whole = block_diag(np.eye(p), body[:, None], np.eye(n))
    by_body = predict_std(whole.T @ M @ whole)[p]
    gains = (("by the mass", std[0] / body[0]), ("by the mass and its place", by_body))
    return [
        ToldParameters(title, found),
        ToldParameters(
            "gain, of torques over logged ones, where these are known",
            tuple(ExpectedValue(name, "%", np.nan, 100.0 * share) for name, share in gains),
        ),
    ]


def expect_rests(runs: Mapping[str, FutureLog], damping: float) -> list[ToldParameters]:
    """Mass and first moments of a load."""
    return expect_load(runs, [stand(runs["rests"])], range(4), "of the load, by these poses")


def expect_loaded(runs: Mapping[str, FutureLog], damping: float) -> list[ToldParameters]:
    """All ten of a load."""
    run = runs["loaded"]
    moving = ExpectedRows((run.known, run.carried, None), run.weights)
    parts = [stand(runs["rests"]), moving]
    return expect_load(runs, parts, range(PER_BODY), "of the load, by this run and the poses")


USUAL = "those that the robot will work with"
MODEL = ("sweeps", "series")
QUESTIONS: dict[str, Question] = {
    "drives": Question("friction, offsets and rotors", (*MODEL, "gains")),
    "inertials": Question("bodies", (*MODEL, "gains")),
    "payload": Question("a load, or the drives' gain by a known mass", (*MODEL, "rests", "loaded")),
    "delay": Question("delays, gains of the controller", (*MODEL, "quick")),
    "load-friction": Question("friction under load", (*MODEL, "near", "far")),
}
"""What can be asked, and by which runs it is answered."""
IDENTIFY = "dynident identify {%s}/study.toml -o {%s}/out"

STEPS: dict[str, ProtocolStep] = {
    "sweeps": ProtocolStep(
        "Sweeps at constant speeds",
        "sweeps",
        None,
        USUAL,
        expect_drives,
        (
            "rotors and bodies: hardly anything accelerates",
            "friction under load, and of cold drives: warm them up first",
            "whether friction is straight in speed, where only its law is fitted: look at what is "
            "left over the speeds, or let the logs decide (leave friction out of the study)",
        ),
        (IDENTIFY % ("sweeps", "sweeps"),),
    ),
    "series": ProtocolStep(
        "Fourier series",
        "series",
        None,
        USUAL,
        expect_bodies,
        (
            "parameters that act on no torque, and what stands in a sum (names with R): rotors of "
            "first joints with their links",
            "a factor of all torques: a wrong torque constant scales all parameters alike",
        ),
        (IDENTIFY % ("series", "series"),),
    ),
    "gains": ProtocolStep(
        "The same series under other gains",
        "series",
        None,
        "half of kp and kd, or any that differ as much",
        expect_other_gains,
        (
            "which of both fits is right: parameters that differ by more than noise makes hold a "
            "delay, a filter or torque that the log has not; ask dynident doctor of both",
        ),
        (
            IDENTIFY % ("gains", "gains"),
            "dynident diff {series}/out/result.json {gains}/out/result.json",
        ),
    ),
    "quick": ProtocolStep(
        "A quick series, with references in the log",
        "quick",
        None,
        USUAL,
        expect_delay,
        (
            "a delay apart from a lag of first order, and kd apart from a delay, where no harmonic "
            "is as fast as they are",
            "gains of a controller that feeds a model forward: its torque is not in the error",
        ),
        ("dynident doctor {quick}/study.toml",),
    ),
    "near": ProtocolStep(
        "Sweeps with the mass at the near length",
        "sweeps",
        0,
        USUAL,
        expect_near,
        (
            "friction under load, by one mass at one length: wherever the motion comes there is "
            "one load, and friction that is not the same everywhere looks like it",
        ),
        (IDENTIFY % ("near", "near"),),
    ),
    "far": ProtocolStep(
        "The same sweeps with the mass at the far length",
        "sweeps",
        1,
        USUAL,
        expect_far,
        (
            "friction under load of drives that the mass does not load, as of upright axes",
            "whether it grows straight with the load: that takes a third length",
            "a mass or a length that is wrong: the runs differ by its torque as well",
        ),
        (
            IDENTIFY % ("far", "far"),
            "dynident diff {near}/out/result.json {far}/out/result.json",
        ),
    ),
    "rests": ProtocolStep(
        "Poses that are held, with the load",
        "rests",
        0,
        USUAL,
        expect_rests,
        (
            "moments of inertia: nothing moves",
            "both the mass and the drives' gain: the one is found where the other is known",
        ),
        (
            "dynident identify {rests}/study.toml --method static -o {rests}/out",
            "dynident payload {series}/out/result.json --log {rests}/log.csv --rests 1 "
            "--mass {mass}",
        ),
        {"rests": 1.0},
    ),
    "loaded": ProtocolStep(
        "The series with the load",
        "series",
        0,
        USUAL,
        expect_loaded,
        ("a load that slides or sloshes: it is not a body",),
        (
            "dynident payload {series}/out/result.json --log {loaded}/log.csv",
            "dynident payload {series}/out/result.json --log {loaded}/log.csv --mass {mass}",
        ),
    ),
}
"""Runs in the order in which they are made."""
