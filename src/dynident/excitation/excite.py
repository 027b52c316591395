"""From a robot to a trajectory that is proved to keep its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from dynident.consistency.prior import Prior, build_belief
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import broadcast_to_joints, build_all_options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.text import suggest_nearest
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import Attached
from dynident.excitation.clearance import Clearance, build_clearance
from dynident.excitation.criteria import Asked
from dynident.excitation.design import Design, Task, design_trajectory
from dynident.excitation.information import Experiment, Motion, sample_motion
from dynident.excitation.limits import Limits, Nominal, add_point_mass, build_limits
from dynident.excitation.obstacles import Obstacle
from dynident.excitation.options import FAMILIES, Aim, Bounds, Shape
from dynident.excitation.prediction import WEAK, Prediction, add_nominal_friction, predict_precision
from dynident.excitation.sensor import build_sensor
from dynident.excitation.trajectories import Family, Trajectory, count_samples
from dynident.friction.models import DEFAULT_FRICTION
from dynident.robot.model import Robot
from dynident.simulation.reference import Reference

NOISE = 0.01
"""Of the largest torques, where nothing is said of the noise."""
STRETCH = 1000
"""Samples of a task whose rows are made at a time."""
SLOW = 0.02
"""Of the largest speeds: the width of the smooth sign with which friction is searched."""


@dataclass(frozen=True)
class Excitation:
    """A trajectory, what is proved of it and what it will buy.

    Attributes
    ----------
    robot : Robot
        With its load.
    design : Design
    prediction : Prediction
    shape : Shape
        As it was asked for.
    periods : int
    rate : float
        [Hz]
    warnings : tuple of str
    sensor : str or None
        The link that a force/torque sensor holds.
    sensed : Prediction or None
        Of what is beyond the sensor, by its rows and the torques of the joints there.
    """

    robot: Robot
    design: Design
    prediction: Prediction
    shape: Shape
    periods: int
    rate: float
    warnings: tuple[str, ...] = ()
    sensor: str | None = None
    sensed: Prediction | None = None

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory."""
        return self.design.trajectory


@limit_to_one_thread
def excite(
    robot: Robot,
    friction: str = DEFAULT_FRICTION,
    *,
    rotor: bool | None = None,
    elements: Sequence[Attached] = (),
    obstacles: Sequence[Obstacle] = (),
    known: Array | None = None,
    after: Sequence[Trajectory] = (),
    task: Reference | None = None,
    progress: Progress = ignore_progress,
    **options: Any,
) -> Excitation:
    """Design a trajectory that excites what is to be identified, within the robot's limits.

    Parameters
    ----------
    robot : Robot
        On a fixed base.
    friction : str
        That will be identified.
    rotor : bool, optional
        Whether rotor inertias will be.
    elements : sequence of Attached
        What else acts on the joints.
    obstacles : sequence of Obstacle
    known : ndarray, shape (count, count), optional
        Information of the robot's base parameters there is already: of logs taken before.
    after : sequence of Trajectory
        Designed before, which this one is to complement.
    task : Reference, optional
        The motion whose torques are to be predicted, of the criterion ``torque``.
    progress : callable, optional
    **options
        Of `dynident.excitation.options`.

    Returns
    -------
    Excitation

    Raises
    ------
    InputError
        For options and robots with which it cannot be done, in one line.
    ComputationError
        When no trajectory was found that keeps the limits.
    """
    shape, bounds, aim, budget = build_all_options("excite", FAMILIES, options)
    family = shape.family()
    refuse_contradictions(robot, family, bounds, aim, task)
    bare = robot
    if bounds.load > 0.0:
        robot = add_point_mass(robot, bounds.load, np.array(bounds.load_centre))
    base = base_parameters(build_idim(robot, friction, rotor, elements=elements))
    limits = convert_bounds(robot, bounds)
    clearance, warnings = choose_clearance(robot, bounds, obstacles)
    sigma = choose_torque_noise(robot, limits, aim, warnings)
    experiment = Experiment(
        base,
        sigma,
        aim.rate,
        float(aim.periods),
        width=np.where(np.isfinite(limits.speed), SLOW * limits.speed, 0.05),
        drop_below=np.array(broadcast_to_joints(aim.drop_below, robot.n, "drop_below")),
        known=known,
    )
    if aim.sensor is not None:
        experiment = add_wanted_sensor(experiment, bare, bounds, aim)
    refuse_unknown_parameters(experiment, aim.wanted or ())
    for earlier in after:
        seen = replace(experiment, width=None).information(sample_fine_motion(earlier))
        experiment = replace(experiment, known=seen)
    knows = robot.has_nominal and bool(np.any(np.isfinite(limits.torque)))
    if not knows:
        warnings.append("the file has no inertials or no efforts: torques are not limited")
    start = (
        None
        if bounds.initial is None
        else np.array(broadcast_to_joints(bounds.initial, robot.n, "initial"))
    )
    # the search sees all rows: which of them are slow is no smooth question
    smooth = replace(experiment, drop_below=None)
    typical = estimate_typical_scale(smooth, family, limits, budget.seed)
    asked, smooth = prepare_criterion(smooth, typical, aim, task)
    wanted = Task(
        smooth,
        family,
        limits,
        Nominal(base.idim, add_nominal_friction(base), bounds.base_wrench is not None)
        if knows
        else None,
        clearance,
        aim.criterion,
        asked,
        start,
        (lambda rng: shape.redrawn(rng).family()) if shape.free_knots else None,
    )
    found = design_trajectory(
        wanted, budget.starts, budget.seed, budget.time, budget.iterations, budget.polish, progress
    )
    prediction, sensed = predict_with_sensor(experiment, found.trajectory, typical)
    warnings += describe_untold_parameters(prediction, "")
    if sensed is not None:
        warnings += describe_untold_parameters(sensed, f" beyond {aim.sensor}")
    return Excitation(
        robot,
        found,
        prediction,
        adopt_found_knots(shape, found.trajectory.family),
        aim.periods,
        aim.rate,
        tuple(warnings),
        aim.sensor,
        sensed,
    )


def refuse_contradictions(
    robot: Robot, family: Family, bounds: Bounds, aim: Aim, task: Reference | None
) -> None:
    """Refuse options that do not go together, or with the robot.

    Raises
    ------
    InputError
    """
    if task is not None and aim.criterion != "torque":
        raise InputError(f"a task is of the criterion 'torque', not of {aim.criterion!r}")
    if not np.all(np.isfinite(bounds.load_centre)):
        raise InputError("load_centre has to be finite")
    if robot.carrier is not None and robot.seat is not None:
        raise InputError(
            f"{robot.name}: a limb does not move by itself; design for the whole robot, with "
            f"sensor = {robot.seat.frame!r}"
        )
    if aim.sensor is None and aim.sensor_sigma is not None:
        raise InputError("sensor_sigma is of a sensor: give the link that it holds (sensor)")
    if aim.periods > 1 and family.period is None:
        raise InputError(
            f"trajectory {family.kind!r} is made once; periods are of a fourier series"
        )
    count_samples(family, aim.rate, aim.periods)


def refuse_unknown_parameters(experiment: Experiment, wanted: Sequence[str]) -> None:
    """Refuse names that no base parameter has.

    Raises
    ------
    InputError
    """
    known = experiment.names
    for name in wanted:
        if name not in known:
            raise InputError(f"no base parameter is called {name!r}{suggest_nearest(name, known)}")


def predict_with_sensor(
    experiment: Experiment, trajectory: Trajectory, typical: Array
) -> tuple[Prediction, Prediction | None]:
    """What a trajectory will buy: of the robot's rows, and of a sensor's where there is one.

    Parameters
    ----------
    experiment : Experiment
    trajectory : Trajectory
    typical : ndarray, shape (parameters,)
        Values from which parameters count as known.
    """
    exact, whole = replace(experiment, width=None), sample_fine_motion(trajectory)
    own = experiment.base.count
    prediction = predict_precision(exact.own, whole, typical[:own], experiment.base.names)
    if exact.beyond is None:
        return prediction, None
    beyond = predict_precision(exact.beyond, exact.spread(whole), typical[own:], exact.names[own:])
    return prediction, beyond


def describe_untold_parameters(prediction: Prediction, where: str) -> list[str]:
    """A warning where a motion tells nothing of some parameters, or little of most."""
    missed = [
        name
        for name, std in zip(prediction.names, prediction.std, strict=True)
        if not np.isfinite(std)
    ]
    if missed:
        return [
            f"the motion tells nothing of {len(missed)} of {len(prediction.names)} parameters"
            f"{where} ({', '.join(missed[:5])}{' ...' * (len(missed) > 5)}): search longer, or "
            "allow it more speed and acceleration"
        ]
    known, weak = int(np.count_nonzero(prediction.nominal)), len(prediction.weak)
    if 2 * weak <= known:
        return []
    return [
        f"of {known} parameters{where} that the robot file has, the motion leaves {weak} "
        f"uncertain by more than {100.0 * WEAK:g} %: make it longer (duration, periods), or "
        "allow it more speed and acceleration"
    ]


def add_wanted_sensor(experiment: Experiment, bare: Robot, bounds: Bounds, aim: Aim) -> Experiment:
    """An experiment with the sensor that is asked for.

    Raises
    ------
    InputError
        When nothing is said of its noise, or there is no such link.
    """
    if aim.sensor is None or aim.sensor_sigma is None:
        raise InputError(f"sensor {aim.sensor}: give its noise (sensor_sigma), forces and moments")
    idim, known = experiment.base.idim, experiment.known
    sensor = build_sensor(
        bare,
        aim.sensor,
        aim.sensor_sigma,
        experiment.sigma,
        idim.friction,
        idim.rotor,
        idim.elements,
        (bounds.load, np.array(bounds.load_centre)),
    )
    if known is not None:  # logs of the robot tell nothing of the sensor's rows
        known = np.asarray(block_diag(known, np.zeros((sensor.base.count,) * 2)))
    return replace(experiment, sensor=sensor, known=known)


def adopt_found_knots(shape: Shape, family: Family) -> Shape:
    """The shape with the knots that were found."""
    if not shape.free_knots:
        return shape
    knots = tuple(family.parts[0].knots[1:-1].tolist())
    return replace(shape, knots=knots, intervals=None, free_knots=None)


def convert_bounds(robot: Robot, bounds: Bounds) -> Limits:
    """The limits that the options leave."""

    def each(name: str) -> Array | None:
        value = getattr(bounds, name)
        return None if value is None else np.array(broadcast_to_joints(value, robot.n, name))

    return build_limits(
        robot,
        speed=each("speed"),
        acceleration=each("acceleration"),
        jerk=each("jerk"),
        torque=each("torque"),
        base_wrench=None if bounds.base_wrench is None else np.array(bounds.base_wrench),
        lower=each("lower"),
        upper=each("upper"),
        margin=bounds.margin,
        share=bounds.share,
        clearance=bounds.clearance,
    )


def choose_clearance(
    robot: Robot, bounds: Bounds, obstacles: Sequence[Obstacle]
) -> tuple[Clearance | None, list[str]]:
    """What the robot keeps clear of, and what has to be said of it.

    Raises
    ------
    InputError
        When nothing is known of its shape.
    """
    srdf = None if bounds.srdf is None else Path(bounds.srdf)
    if srdf is not None and not bounds.collision:
        raise InputError(f"{srdf}: tells which own links are not watched, but collision is false")
    clearance = build_clearance(robot, obstacles, bounds.ignore, bounds.collision, srdf)
    warnings = []
    if clearance is not None and clearance.touching:
        pairs = ", ".join(pair.name for pair in clearance.touching)
        warnings.append(f"these touch wherever the robot is, and are not watched: {pairs}")
    return clearance, warnings


def choose_torque_noise(robot: Robot, limits: Limits, aim: Aim, warnings: list[str]) -> Array:
    """Standard deviations of the torques' noise."""
    if aim.sigma is not None:
        return np.array(broadcast_to_joints(aim.sigma, robot.n, "sigma"))
    efforts = np.array([joint.effort for joint in robot.joints])
    most = np.where(np.isfinite(efforts), efforts, limits.torque[: robot.n])
    if np.all(np.isfinite(most)):
        return np.asarray(NOISE * most)
    warnings.append("nothing is known of the torques' noise: 1 Nm is taken; give sigma")
    return np.ones(robot.n)


def sample_fine_motion(trajectory: Trajectory) -> Motion:
    """A motion on a grid on which signs of speeds are as good as exact."""
    return sample_motion(trajectory, 0.015 * trajectory.family.quickest)


def prepare_criterion(
    experiment: Experiment, typical: Array, aim: Aim, task: Reference | None
) -> tuple[Asked, Experiment]:
    """What the criterion sees beside the information, and the experiment with its prior.

    Raises
    ------
    InputError
        For criterion 'std' without wanted parameters, and 'torque' without a task.
    """
    count, own = experiment.count, experiment.base.count
    bases = [part.base for part in (experiment, experiment.beyond) if part is not None]
    if aim.criterion in ("condition", "column-condition"):
        return Asked(np.ones(count)), experiment
    if aim.criterion == "presse-gautier":
        nominal = np.abs(
            np.concatenate([base.matrix @ add_nominal_friction(base) for base in bases])
        )
        return Asked(np.where(nominal > 0.0, nominal, typical)), experiment
    if aim.criterion == "std":
        if not aim.wanted:
            raise InputError("criterion 'std' needs the base parameters that are wanted")
        rows = np.eye(count)[[experiment.names.index(name) for name in aim.wanted]]
        return Asked(typical, rows / typical), experiment
    if aim.criterion == "torque":
        if task is None:
            raise InputError("criterion 'torque' needs the task whose torques are to be predicted")
        rows = compress_task_rows(bases[0], task)
        return Asked(typical, np.pad(rows, ((0, 0), (0, count - own)))), experiment
    if aim.criterion == "unknown":
        sizes = np.split(typical, [own])
        belief = np.asarray(block_diag(*map(compute_prior_information, bases, sizes)))
        total = belief if experiment.known is None else belief + experiment.known
        return Asked(typical, known=total), replace(experiment, known=total)
    return Asked(typical), experiment


def estimate_typical_scale(
    experiment: Experiment, family: Family, limits: Limits, seed: int
) -> Array:
    """Values of the parameters that a random motion would tell from zero by one sigma."""
    rng = np.random.default_rng([seed, 1])
    n = len(limits.lower)
    half = 0.5 * (limits.upper - limits.lower)
    q = 0.5 * (limits.upper + limits.lower) + half * rng.uniform(-1.0, 1.0, (256, n))
    fast = np.where(np.isfinite(limits.speed), limits.speed, half)
    dq = 0.5 * fast * rng.normal(size=(256, n))
    ddq = 0.5 * fast / family.quickest * rng.normal(size=(256, n))
    part = family.parts[family.main]
    duration = np.full(256, (part.stop - part.start) / 256)
    M = replace(experiment, known=None).information(Motion(q, dq, ddq, duration))
    return np.asarray(1.0 / np.sqrt(np.diag(M)))


def compress_task_rows(base: BaseParameters, task: Reference) -> Array:
    """Rows of the torques of a task, as few as say the same: a triangular factor.

    Raises
    ------
    InputError
        When it moves another number of joints.
    """
    n = base.idim.robot.n
    if task.q.shape[1] != n:
        raise InputError(f"the task moves {task.q.shape[1]} joints, the robot has {n}")
    factor = np.zeros((0, base.count))
    for a in range(0, len(task.q), STRETCH):
        s = slice(a, a + STRETCH)
        W = base.idim.regressor(task.q[s], task.dq[s], task.ddq[s])[:, :, base.kept]
        rows = np.vstack([factor, W.reshape(-1, base.count)])
        factor = np.asarray(np.linalg.qr(rows, mode="r"))
    return np.asarray(factor / np.sqrt(task.q.size))


def compute_prior_information(base: BaseParameters, typical: Array) -> Array:
    """What the robot's file tells of the base parameters, each link within its own size.

    Drives, and links of which it says nothing, are known to a hundred times what a motion
    would tell.
    """
    idim = base.idim
    variance = np.zeros((len(idim.parameters),) * 2)
    prior = Prior(build_belief(idim.split(idim.nominal)[0], idim.robot.links))
    rows, _ = prior.rows(len(idim.parameters))
    for k, body in enumerate(prior.belief.bodies):
        own = slice(10 * body, 10 * body + 10)
        block = rows[10 * k : 10 * k + 10, own]
        variance[own, own] = np.linalg.inv(block.T @ block)
    spread = base.matrix @ variance @ base.matrix.T
    diffuse = np.where(np.diag(spread) > 0.0, 1e-6, 100.0) * typical
    return np.asarray(np.linalg.inv(spread + np.diag(diffuse**2)))
