"""How well a model predicts torque: on fitted rows, and on all samples of a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.errors import InputError
from dynident.core.factors import Factors
from dynident.core.options import Options
from dynident.core.schema import Number
from dynident.core.series import PositionSeries, Stretch, TorqueSeries
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.following import compute_loads, follow_friction
from dynident.dynamics.idim import Idim
from dynident.dynamics.torques import (
    evaluate_drive_torques,
    evaluate_rigid_torques,
    evaluate_torques,
)
from dynident.filters.blocks import Block, count_memory, cut_into_blocks, take_every
from dynident.filters.filters import count_filter_edge, filter_zero_phase
from dynident.recording.prepare import Samples
from dynident.recording.recording import COMMANDED
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.regression.rests import find_standstill_speeds
from dynident.regression.rows import collect_conditions, list_torque_groups
from dynident.robot.drives import find_moving_joints
from dynident.robot.model import Robot

FITTED, ALL_SAMPLES, MOVING = "fitted", "all samples", "moving samples"
PARTS = ("inertia", "velocity", "gravity", "friction")
"""What a predicted torque is the sum of."""
EXTREMES = 5
"""Times as many samples as plots ask for that extremes between them may be."""
FINE = 8.0
"""Samples a period of a low-pass, at which nothing is left that they could not tell."""


@dataclass(frozen=True)
class Scoring(Options):
    """How errors on all samples are counted."""

    lowpass_hz: Annotated[
        Annotated[Number, Field(gt=0.0)] | None,
        "low-pass of the all-samples errors; the largest torque cutoff by default [Hz]",
    ] = None
    score: Annotated[
        Literal["all", "moving"],
        "`moving`: besides the errors of all samples those of moving ones, because at rest "
        "friction is not a function of speed",
    ] = "all"


@dataclass(frozen=True)
class JointError:
    """Torque error of one joint, or of one component of a floating base's wrench."""

    name: str
    relative_percent: float
    """``100 ||y - yhat|| / ||y||``; NaN where the torque is zero throughout."""
    rmse: float
    """NaN where there are no rows [Nm or N]."""


@dataclass(frozen=True)
class FitFigure:
    """Torque errors of all joints on one set of rows.

    Attributes
    ----------
    rows : {"fitted", "all samples", "moving samples"}
        Filtered, decimated rows; or all samples that no filter's edge reaches, measured and
        predicted torque both low-passed; or of these, joint by joint, those in which it moves.
    lowpass_hz : float or None
        That low-pass: zero-phase Butterworth of order 4.
    joints : tuple of JointError
    overall_percent : float
        All joints stacked.
    """

    rows: str
    lowpass_hz: float | None
    joints: tuple[JointError, ...]
    overall_percent: float


def tell_torque_source(log: Samples) -> str:
    """What errors on a log are of: ``law`` where that stands for torques, else ``measured``.

    Of a log without torques what is measured is the wrench.
    """
    return "law" if log.torque in ("law", COMMANDED) else "measured"


def build_fit_figure(
    names: Sequence[str],
    squared_error: Array,
    squared_torque: Array,
    rows: Array,
    kind: str,
    lowpass_hz: float | None,
    sprung: Sequence[tuple[int, int]] = (),
) -> FitFigure:
    """Relative errors of sums of squares; those of `sprung` (`Robot.sprung_rows`) not in all."""
    joints = tuple(
        JointError(name, compute_relative_error(e, y), float(np.sqrt(e / r)) if r else np.nan)
        for name, e, y, r in zip(names, squared_error, squared_torque, rows, strict=True)
    )
    counted = np.setdiff1d(np.arange(len(joints)), [row for row, _ in sprung])
    sums = (float(np.sum(each[counted])) for each in (squared_error, squared_torque))
    return FitFigure(kind, lowpass_hz, joints, compute_relative_error(*sums))


def compute_relative_error(squared_error: float, squared_torque: float) -> float:
    """``100 ||e|| / ||y||`` [%]."""
    return 100.0 * float(np.sqrt(squared_error / squared_torque)) if squared_torque else np.nan


def list_efforts(robot: Robot) -> dict[str, float]:
    """Largest torques by joint, of those whose limit the robot file states [Nm or N]."""
    efforts = {joint.name: joint.effort for joint in robot.joints}
    return {name: effort for name, effort in efforts.items() if 0.0 < effort < np.inf}


def compute_effort_percent(error: JointError, efforts: Mapping[str, float]) -> float:
    """``100 rmse / effort``; NaN where no effort is stated [%]."""
    return 100.0 * error.rmse / efforts.get(error.name, np.nan)


def score_fitted_rows(
    factors: Factors, beta: Array, sprung: Sequence[tuple[int, int]] = ()
) -> FitFigure:
    """Errors on filtered, decimated rows, from their factors."""
    squared, torque = factors.squared_residuals(beta), factors.squared_torques
    for row, joint in sprung:
        torque[row] = torque[joint] * factors.counts[row] / max(1, factors.counts[joint])
    return build_fit_figure(factors.names, squared, torque, factors.counts, FITTED, None, sprung)


def score_all_samples(
    idim: Idim,
    sets: Sequence[Array],
    logs: Sequence[GeneralisedSamples],
    lowpass_hz: float,
    moving: bool = False,
) -> tuple[FitFigure, ...]:
    """Errors of parameter sets on all samples of some logs, stacked, but for filter edges.

    Where contacts are measured, those of joints are relative to the motors' torques, of which
    the contacts may take away nearly all.

    `sets`, shape (parameters,): standard parameters, one figure each. `lowpass_hz`: of measured and
    predicted torque [Hz]. `moving`: leave out, joint by joint, samples in which it stands.
    """
    n = idim.rows
    squared_error, squared_torque, rows = np.zeros((len(sets), n)), np.zeros(n), np.zeros(n)
    for log in logs:
        # equations that the log states at every sample
        stated = np.all([log.stated[a:b].all(axis=0) for a, b in log.segments], axis=0)
        slow = tuple(find_standstill_speeds(log)) if moving else ()
        referred = log.applied is not None or log.deflection is not None
        for own, wide, inner in cut_scored_samples(idim, log, lowpass_hz):

            def smooth(x: Array, inner: slice = inner, rate: float = log.rate) -> Array:
                return filter_zero_phase(x, lowpass_hz, rate)[inner]

            measured = smooth(log.tau[wide])
            kept = np.broadcast_to(stated, measured.shape)
            if moving:
                kept = kept & find_moving_samples(idim, log.dq[own], slow)
            known = measured if not referred else smooth(log.reference[wide])
            squared_torque += np.sum(kept * known**2, axis=0)
            rows += np.sum(kept, axis=0)
            motion = log.q[wide], log.dq[wide], log.ddq[wide]
            conditions = follow_log_friction(idim, log, wide)
            for k, torque in enumerate(
                evaluate_torques(idim, sets, *motion, conditions=conditions)
            ):
                error = measured - smooth(torque)
                squared_error[k] += np.sum(kept * error**2, axis=0)
    names = [group.name for group in list_torque_groups(idim.robot)]
    kind = MOVING if moving else ALL_SAMPLES
    return tuple(
        build_fit_figure(
            names, squared, squared_torque, rows, kind, lowpass_hz, idim.robot.sprung_rows
        )
        for squared in squared_error
    )


def find_moving_samples(idim: Idim, dq: Array, slow: tuple[float, ...]) -> Booleans:
    """Samples in which all that rubs on a joint moves, shape (samples, rows).

    `slow`: see `find_standstill_speeds`.
    """
    joints = slice(idim.tree.dof - idim.robot.n, idim.tree.dof)
    found = np.ones((len(dq), idim.rows), dtype=bool)
    found[:, joints] = find_moving_joints(dq[:, joints], slow, idim.robot.drives)
    return found


def find_scored_samples(log: Samples, lowpass_hz: float) -> tuple[tuple[slice, slice], ...]:
    """What is scored of a log: runs, and of each the samples that no filter's edge reaches.

    Left out are the edges of the position filter, which the fit leaves out too (and with them
    runs that are too short to be fitted), and beyond these the edges of the figure's low-pass,
    which carries what is wrong there inwards.

    Parameters
    ----------
    lowpass_hz : float
        Of the figure [Hz].

    Returns
    -------
    tuple of (slice, slice)
        A run among the log's samples, and what is scored among the run's.
    """
    found = []
    for start, stop in log.segments:
        first, last = next((a, b) for a, b in log.runs if a <= start and stop <= b)
        # asked first without the edge, which no integer holds where the low-pass is absurd
        if lowpass_hz * (stop - start) < log.rate:
            continue
        cut = count_filter_edge(lowpass_hz, log.rate)
        if stop - start > 2 * cut:
            found.append((slice(first, last), slice(start + cut - first, stop - cut - first)))
    return tuple(found)


def cut_scored_samples(
    idim: Idim, log: Samples, lowpass_hz: float, runs: bool = False
) -> Iterator[Block]:
    """The same block by block, with as much of their runs as the figure's low-pass sees.

    Of friction with a memory, whose states follow from the run's start, all of it.

    `runs`: whole runs instead of what is scored of them.
    """
    memory = len(log.q) if idim.has_states else count_memory(lowpass_hz, log.rate)
    if runs:
        return cut_into_blocks(log.runs, memory)
    found = find_scored_samples(log, lowpass_hz)
    parts = [(run.start + inner.start, run.start + inner.stop) for run, inner in found]
    return cut_into_blocks(parts, memory, [(run.start, run.stop) for run, _ in found])


def count_edge_samples(log: Samples, lowpass_hz: float) -> int:
    """How many samples of a log are filters' edges, and in no figure of all samples."""
    counted = sum(inner.stop - inner.start for _, inner in find_scored_samples(log, lowpass_hz))
    return int(sum(stop - start for start, stop in log.runs) - counted)


def check_lowpass(lowpass_hz: float, logs: Sequence[Samples]) -> tuple[str, ...]:
    """Warnings on a low-pass that filters nothing."""
    notes = []
    for log in logs:
        seconds = max(stop - start for start, stop in log.runs) / log.rate
        if not find_scored_samples(log, lowpass_hz):
            raise InputError(
                f"{log.name}: a low-pass of {lowpass_hz:g} Hz leaves no usable samples of "
                f"{seconds:.4g} s"
            )
        if lowpass_hz > 0.5 * log.rate:
            notes.append(
                f"{log.name}: the low-pass of {lowpass_hz:g} Hz is above the Nyquist frequency of "
                f"{0.5 * log.rate:g} Hz, so the all-samples errors are not filtered"
            )
    return tuple(notes)


def score_model(
    problem: Problem, theta: Array, lowpass_hz: float, score: str = "all"
) -> tuple[tuple[FitFigure, ...], tuple[FitFigure, ...]]:
    """Errors of a model, and of the robot file's inertials, on the logs of a problem.

    Parameters
    ----------
    theta : ndarray, shape (parameters,)
        Standard parameters of the model.
    lowpass_hz : float
        Of the all-samples figures [Hz].
    score : {"all", "moving"}
        Whether those of moving samples come beside them.

    Returns
    -------
    model, nominal : tuple of FitFigure
        Fitted rows, then all samples, then moving ones; nominal is empty where the file has no
        inertials.
    """
    problem = problem.expecting(theta)
    idim, base, robot = problem.idim, problem.base, problem.robot
    sets = (theta, idim.nominal) if robot.has_nominal else (theta,)
    fitted = [score_fitted_rows(problem.factors, base.matrix @ t, robot.sprung_rows) for t in sets]
    kinds = (False, True) if score == "moving" else (False,)
    figures = [score_all_samples(idim, sets, problem.samples, lowpass_hz, k) for k in kinds]
    pairs = [*zip(fitted, *figures, strict=True), ()]
    return pairs[0], pairs[1]


def find_extremes(signals: Array, size: int, first: int = 0) -> Integers:
    """Rows in which a column is lowest or highest of its stretch, each once, in their order.

    Parameters
    ----------
    signals : ndarray, shape (rows, columns)
    size : int
        Rows of a stretch.
    first : int
        Number of the first row, of those that are counted in stretches.
    """
    before = first % size
    count = before + len(signals)
    padded = np.full((-(-count // size) * size, signals.shape[1]), np.nan)
    padded[before:count] = signals
    stretches = padded.reshape(-(-count // size), size, signals.shape[1])
    start = size * np.arange(len(stretches))[:, None] - before
    lowest = np.argmin(np.where(np.isnan(stretches), np.inf, stretches), axis=1)
    highest = np.argmax(np.where(np.isnan(stretches), -np.inf, stretches), axis=1)
    rows = np.concatenate([start + lowest, start + highest]).ravel()
    return np.unique(rows[(rows >= 0) & (rows < len(signals))])


def choose_stretches(samples: int, columns: int, points: int) -> int:
    """How many samples a stretch has whose extremes are kept, of so many signals."""
    stretches = max(1, EXTREMES * points // max(1, 2 * columns))
    return max(1, samples // points, -(-samples // stretches))


def choose_drawn_samples(signals: Array, points: int, step: int, samples: int) -> Integers:
    """Of a run the samples that are drawn: every so manieth, and extremes between these.

    Parameters
    ----------
    signals : ndarray, shape (run, columns)
    samples : int
        Of the whole log, which `points` are of.
    """
    size = choose_stretches(samples, signals.shape[1], points)
    return np.union1d(np.arange(0, len(signals), step), find_extremes(signals, size))


def find_breaks(counts: Sequence[int]) -> Integers:
    """Where runs of so many samples begin, without the first."""
    return np.cumsum(counts)[:-1].astype(np.int64)


def thin_positions(log: Samples, simulated: Array, points: int) -> PositionSeries:
    """Measured and simulated positions of a log, for a plot: about `points`, and extremes."""
    step = max(1, len(log.q) // points)
    runs = []
    for start, stop in log.runs:
        measured = log.measured[start:stop]
        both = np.hstack([measured, measured - simulated[start:stop]])
        runs.append(start + choose_drawn_samples(both, points, step, len(log.q)))
    kept, breaks = np.concatenate(runs), find_breaks([len(run) for run in runs])
    return PositionSeries(log.name, kept / log.rate, log.measured[kept], simulated[kept], breaks)


def find_fitted_samples(log: GeneralisedSamples, some: Integers) -> Booleans:
    """At which of some samples of a log rows are fitted, shape (some, rows)."""
    inside = np.zeros(len(some), dtype=bool)
    for start, stop in log.segments:
        inside |= (start <= some) & (some < stop)
    if log.kept is not None:
        inside &= log.kept[some]
    return inside[:, None] & log.moving[some]


def thin_motion(logs: Sequence[Samples], points: int) -> list[tuple[Integers, Array, Array]]:
    """About `points` samples of all logs: which of each, its positions and speeds there."""
    step, before, found = max(1, sum(len(log.q) for log in logs) // points), 0, []
    for log in logs:
        few = np.arange(-before % step, len(log.q), step)
        q, dq = take_every((log.q, log.dq), step, -before % step)
        found.append((few, q, dq))
        before += len(log.q)
    return found


def decompose_torques(
    idim: Idim,
    theta: Array,
    nominal: Array | None,
    log: GeneralisedSamples,
    lowpass_hz: float,
    points: int,
) -> TorqueSeries:
    """Low-passed torques of a log and their parts, for a plot: about `points`, and extremes."""
    step = max(1, len(log.q) // points)
    size = choose_stretches(len(log.q), 2 * log.tau.shape[1], points)
    fine = max(1, int(log.rate / (FINE * lowpass_hz)))
    dense, (first, last) = [], choose_stretch(log, fine * points)
    signals: dict[str, list[Any]] = {}
    scored = np.zeros(len(log.q), dtype=bool)
    for run, inner in find_scored_samples(log, lowpass_hz):
        scored[run][inner] = True
    shares = share_parameters(idim, theta, nominal)
    for own, wide, inner in cut_scored_samples(idim, log, lowpass_hz, runs=True):
        values = split_torque(idim, shares, log, wide)
        begin = next(start for start, stop in log.runs if own.stop <= stop)
        shown: dict[str, Any] = {
            name: filter_zero_phase(x, lowpass_hz, log.rate) for name, x in values.items()
        }
        shown["measured"] = np.where(log.stated[wide], shown["measured"], np.nan)
        both = np.hstack([shown["measured"], shown["measured"] - sum(shown[x] for x in PARTS)])
        place = np.arange(wide.start, wide.stop)
        known = np.where(scored[wide, None], both, np.nan)
        near = np.arange(inner.start, inner.stop)
        near = near[(first <= place[near]) & (place[near] < last)]
        dense += [known[near[(place[near] - begin) % fine == 0]], known[:1] * np.nan]
        even = (place - begin) % step == 0
        extremes = inner.start + find_extremes(both[inner], size, own.start - begin)
        few = np.union1d(inner.start + np.flatnonzero(even[inner]), extremes)
        q = log.q[wide]
        shown |= {"place": place, "even": even, "speed": log.dq[wide], "sharp": values["friction"]}
        shown |= {"position": q[:, q.shape[1] - log.measured.shape[1] :], "scored": scored[wide]}
        shown["fitted"] = find_fitted_samples(log, place)
        if log.temp is not None:
            shown["temperature"] = log.temp[wide]
        for name, x in shown.items():
            signals.setdefault(name, []).append(x[few].copy())  # no view, which would keep all
    joined = {name: np.concatenate(pieces) for name, pieces in signals.items()}
    joined = drop_candidates(joined, size, [start for start, _ in log.runs])
    parts = {name: joined[name] for name in PARTS}
    measured, residual = np.hsplit(np.concatenate(dense), 2)
    return TorqueSeries(
        name=log.name,
        time=joined["place"] / log.rate,
        measured=joined["measured"],
        predicted=np.sum(list(parts.values()), axis=0),
        nominal=joined.get("nominal"),
        parts=parts,
        speed=joined["speed"],
        friction=joined["sharp"],
        torque=tell_torque_source(log),
        scored=joined["scored"],
        fitted=joined["fitted"],
        position=joined["position"],
        temperature=joined.get("temperature"),
        breaks=np.searchsorted(joined["place"], [start for start, _ in log.runs[1:]]),
        even=joined["even"],
        stretch=Stretch(fine / log.rate, measured, residual),
    )


class ParameterShares(NamedTuple):
    """Parameters by the part of the torque that is theirs."""

    bodies: Array
    """Shape (sets, 10 links). Of the model three times, for gravity, speed and acceleration; of the
    robot file, if any."""
    rotors: Array
    friction: Array
    sensors: Array
    """`rotors`, `friction`, `sensors`: the full set, with zeros for all others, shape
    (parameters,)."""


def follow_log_friction(idim: Idim, log: GeneralisedSamples, wide: slice) -> Conditions:
    """What friction meets along a stretch of a log without gaps, its states beginning there."""
    known = collect_conditions(idim, log, wide)
    return follow_friction(idim, log.q[wide], log.dq[wide], log.rate, conditions=known)


def share_parameters(idim: Idim, theta: Array, nominal: Array | None) -> ParameterShares:
    """Parameters by what they are of."""
    sets = [theta, theta, theta] if nominal is None else [theta, theta, theta, nominal]
    rotor = np.array([p.symbol.startswith("Ia") for p in idim.parameters])
    drives, sensors = theta.copy(), np.zeros_like(theta)
    drives[: idim.inertial] = 0.0
    idim.sensor_values(sensors)[:] = idim.sensor_values(theta)
    idim.sensor_values(drives)[:] = 0.0
    return ParameterShares(
        np.array([idim.split(each)[0] for each in sets]),
        np.where(rotor, drives, 0.0),
        np.where(rotor, 0.0, drives),
        sensors,
    )


def split_torque(
    idim: Idim, shares: ParameterShares, log: GeneralisedSamples, wide: slice
) -> dict[str, Array]:
    """Torques of a stretch as measured, by `PARTS`, and by the robot file, unfiltered [Nm or N].

    Rigid bodies without speed and acceleration feel gravity alone; what speeds add is theirs, and
    the rest that of accelerations.
    """
    q, dq, ddq = log.q[wide], log.dq[wide], log.ddq[wide]
    moved = np.multiply.outer((0.0, 1.0, 1.0), dq), np.multiply.outer((0.0, 0.0, 1.0), ddq)
    gravity, moving, body, *rest = evaluate_rigid_torques(
        idim, shares.bodies, (0, 1, 2, 2), q, *moved
    )
    around = follow_log_friction(idim, log, wide)
    conditions = replace(around, load=compute_loads(idim, body) if idim.loaded else None)
    told = evaluate_drive_torques(idim, shares.sensors, q, dq, ddq, conditions=conditions)
    return {
        "measured": log.tau[wide] - told,
        "inertia": body - moving + evaluate_drive_torques(idim, shares.rotors, q, dq, ddq),
        "velocity": moving - gravity,
        "gravity": gravity,
        "friction": evaluate_drive_torques(
            idim, shares.friction, q, dq, ddq, conditions=conditions
        ),
        **({"nominal": rest[0]} if rest else {}),
    }


def choose_stretch(log: GeneralisedSamples, most: int) -> tuple[int, int]:
    """Of a log the samples that spectra are of: all, or the first of its longest run."""
    if len(log.q) <= most:
        return 0, len(log.q)
    start, stop = max(log.runs, key=lambda run: run[1] - run[0])
    return start, min(stop, start + most)


def drop_candidates(found: dict[str, Any], size: int, starts: Sequence[int]) -> dict[str, Any]:
    """What is drawn of a log that was seen block by block, as if it had been seen at once.

    A stretch that blocks share has extremes in each, and keeps its own.
    """
    run = np.searchsorted(starts, found["place"], side="right") - 1
    number = (found["place"] - np.asarray(starts)[run]) // size
    edges = np.flatnonzero(np.r_[True, (np.diff(number) != 0) | (np.diff(run) != 0)])
    counts = np.diff(np.r_[edges, len(number)])
    kept = np.asarray(found["even"], dtype=bool).copy()
    predicted = sum(found[name] for name in PARTS)
    for signal in (found["measured"], found["measured"] - predicted):
        for pick, none in ((np.minimum, np.inf), (np.maximum, -np.inf)):
            values = np.where(np.isnan(signal), none, signal)
            ends = np.repeat(pick.reduceat(values, edges, axis=0), counts, axis=0)
            kept |= np.any(values == ends, axis=1)
    return {name: x[kept] for name, x in found.items()}


def collect_log_settings(log: Samples, lowpass_hz: float) -> dict[str, Any]:
    """All that shaped a log, and how many samples of it are in no figure."""
    return {**log.settings(), "edge_samples": count_edge_samples(log, lowpass_hz)}
