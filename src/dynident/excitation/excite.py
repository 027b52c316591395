"""From a robot to a trajectory that is proved to keep its limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from scipy.linalg import block_diag

from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.compiled import tells_compilations
from dynident.core.errors import InputError, check_type, refuse_unknown
from dynident.core.options import broadcast_to_joints, build_all_options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.side_by_side import Runner, choose_engine
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import Idim, build_idim
from dynident.dynamics.parameters import JointElements
from dynident.dynamics.tree import Tree
from dynident.excitation.criteria import CRITERIA, CriterionInputs, CriterionNeeds
from dynident.excitation.design import Design, DesignTask, design_trajectory, refuse_size
from dynident.excitation.drawn import MotionDraw, draw_ladder, draw_poses
from dynident.excitation.hand import HandMotions
from dynident.excitation.information import Experiment, WeightedMotion, sample_motion
from dynident.excitation.keywords import ExciteOptions
from dynident.excitation.limits import Limits, NominalTorques, add_point_mass, build_limits
from dynident.excitation.obstacles import Obstacle
from dynident.excitation.options import FAMILIES, AimOptions, TrajectoryLimits, TrajectoryShape
from dynident.excitation.prediction import (
    WEAK,
    Prediction,
    join_nominal_parameters,
    predict_precision,
)
from dynident.excitation.sensor import build_sensor
from dynident.excitation.surroundings import LowestPoint, choose_surroundings, find_lowest_point
from dynident.excitation.trajectories import Trajectory, TrajectoryFamily
from dynident.friction import DEFAULT_FRICTION
from dynident.robot.model import Robot

NOISE = 0.01
"""Of the largest torques, where nothing is said of the noise."""
LONGEST = 2e6
"""Samples of a trajectory."""
SLOW = 0.02
"""Of the largest speeds: the width of the smooth sign with which friction is searched."""


@dataclass(frozen=True)
class Excitation:
    """A trajectory, the proof of its limits and the predicted error bars.

    >>> plan.robot.name
    'arm'

    Attributes
    ----------
    robot : Robot
        With its load.
    design : Design
    prediction : Prediction
    shape : TrajectoryShape
        As requested.
    periods : int
    rate : float
        [Hz]
    warnings : tuple of str
    sensor : str or None
        The link behind a force/torque sensor.
    sensed : Prediction or None
        For the part beyond the sensor, from its rows and the torques of the joints there.
    obstacles : tuple of Obstacle
        Obstacles around the robot, including the floor.
    lowest : LowestPoint or None
        The lowest moving point, on the grid of the proof; None without geometry.
    """

    robot: Robot
    design: Design
    prediction: Prediction
    shape: TrajectoryShape
    periods: int
    rate: float
    warnings: tuple[str, ...] = ()
    sensor: str | None = None
    sensed: Prediction | None = None
    obstacles: tuple[Obstacle, ...] = ()
    lowest: LowestPoint | None = None

    def __repr__(self) -> str:
        """One line, for a prompt."""
        family = self.trajectory.family
        motion = f"{family.kind}, {family.length:g} s"
        return f"<Excitation of {self.robot.name}: {motion} at {self.rate:g} Hz>"

    @property
    def trajectory(self) -> Trajectory:
        """The trajectory."""
        return self.design.trajectory


@tells_compilations
@limit_to_one_thread
def excite(
    robot: Robot,
    friction: str = DEFAULT_FRICTION,
    *,
    rotor: bool | None = None,
    elements: Sequence[JointElements] = (),
    obstacles: Sequence[Obstacle] = (),
    known: Array | None = None,
    after: Sequence[Trajectory] = (),
    task: Reference | None = None,
    engine: Runner = None,
    progress: Progress = ignore_progress,
    **options: Unpack[ExciteOptions],
) -> Excitation:
    """Design a trajectory that excites the parameters to be identified, within the robot's limits.

    >>> plan = di.excite(robot, duration=5.0, starts=1, iterations=5, collision=False)

    Parameters
    ----------
    robot : Robot
        On a fixed base.
    friction : str
        That will be identified.
    rotor : bool, optional
        Whether rotor inertias will be.
    elements : sequence of JointElements
        What else acts on the joints.
    obstacles : sequence of Obstacle
    known : ndarray, shape (count, count), optional
        Information of the robot's base parameters there is already: of logs taken before.
    after : sequence of Trajectory
        Designed before, which this one is to complement.
    task : Reference, optional
        The motion whose torques are to be predicted, of the criterion ``torque``.
    engine : Engine, distributed.Client or str, optional
        What runs the starts; this process by default.
    progress : callable, optional
    **options
        Of `dynident.excitation.options`.

    Raises
    ------
    InputError
        For options and robots with which it cannot be done, in one line.
    ComputationError
        When no trajectory was found that keeps the limits.
    """
    check_type("excite", robot, Robot, "dynident.load_robot(file) makes one")
    shape, bounds, aim, budget = build_all_options("excite", FAMILIES, options)
    family = shape.family()
    refuse_contradictions(robot, family, aim, budget.polish, task)
    refuse_size(family, robot.n)
    refuse_length(family, aim)
    bare = robot
    if bounds.load > 0.0:
        robot = add_point_mass(robot, bounds.load, np.array(bounds.load_centre))
    idim = build_idim(robot, friction, rotor, elements=elements)
    limits = build_limits(robot, bounds)
    warnings: list[str] = []
    experiment = build_experiment(idim, limits, aim, known, warnings)
    around = choose_surroundings(robot, bounds, obstacles, warnings)
    if aim.sensor is not None:
        experiment = add_wanted_sensor(experiment, bare, bounds, aim)
    refuse_unknown_names(aim.wanted or (), experiment.names)
    experiment = know_earlier(experiment, idim, after)
    nominal = choose_nominal(idim, limits, bounds, warnings)
    # the search sees all rows: which of them are slow is not a smooth question
    smooth = replace(experiment, drop_below=None)
    typical = estimate_typical_scale(smooth, family, limits, budget.seed)
    asked, smooth = prepare_criterion(smooth, typical, aim, task)
    initial = None if bounds.initial is None else spread_joints(bounds.initial, robot, "initial")
    wanted = DesignTask(
        smooth,
        family,
        limits,
        nominal,
        around.clearance,
        aim.criterion,
        asked,
        initial,
        shape.redrawn if shape.free_knots else None,
        choose_drawn(idim.tree, family),
    )
    found = design_trajectory(
        wanted,
        budget.starts,
        budget.seed,
        budget.time,
        budget.iterations,
        budget.polish,
        progress,
        choose_engine(1, engine),
    )
    prediction, sensed = predict_with_sensor(experiment, found.trajectory, typical)
    warnings += describe_untold_parameters(prediction, "")
    if sensed is not None:
        warnings += describe_untold_parameters(sensed, f" beyond {aim.sensor}")
    lowest = None
    if around.drawing is not None:
        lowest = find_lowest_point(robot, around.drawing, found.trajectory, found.certificate.step)
    return Excitation(
        robot,
        found,
        prediction,
        adopt_knots(shape, found.trajectory),
        aim.periods,
        aim.rate,
        tuple(warnings),
        aim.sensor,
        sensed,
        around.obstacles,
        lowest,
    )


def refuse_unknown_names(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Refuse to tell of what is not a base parameter."""
    for name in wanted:
        refuse_unknown(name, names, f"no base parameter is called {name!r}")


def know_earlier(experiment: Experiment, idim: Idim, after: Sequence[Trajectory]) -> Experiment:
    """An experiment that knows what trajectories designed before will tell."""
    for earlier in after:
        moved = replace(earlier, closure=idim.structure.closure)
        seen = replace(experiment, width=None).information(sample_fine_motion(moved))
        experiment = replace(experiment, known=seen)
    return experiment


def spread_joints(value: Any, robot: Robot, name: str) -> Array:
    """A number for each joint of an option that may be one for all."""
    return np.array(broadcast_to_joints(value, robot.n, name))


def build_experiment(
    idim: Idim, limits: Limits, aim: AimOptions, known: Array | None, warnings: list[str]
) -> Experiment:
    """What the rows of a trajectory would tell of the base parameters."""
    return Experiment(
        base_parameters(idim),
        choose_torque_noise(idim.robot, limits, aim, warnings),
        aim.rate,
        float(aim.periods),
        width=np.where(np.isfinite(limits.speed), SLOW * limits.speed, 0.05),
        drop_below=spread_joints(aim.drop_below, idim.robot, "drop_below"),
        known=known,
    )


def choose_nominal(
    idim: Idim, limits: Limits, bounds: TrajectoryLimits, warnings: list[str]
) -> NominalTorques | None:
    """The file's model, by which torques are limited where it says enough for that."""
    if not (idim.robot.has_nominal and np.any(np.isfinite(limits.torque))):
        warnings.append("the file has no inertials or no efforts: torques are not limited")
        return None
    rubs = [
        j.name
        for j, own in zip(idim.robot.joints, idim.robot.passive, strict=True)
        if own and j.friction
    ]
    if rubs:
        warnings.append(
            f"torques leave out the Coulomb friction of {', '.join(rubs)}: no drive is there"
        )
    return NominalTorques(idim, join_nominal_parameters(idim), bounds.base_wrench is not None)


def adopt_knots(shape: TrajectoryShape, trajectory: Trajectory) -> TrajectoryShape:
    """The shape of a trajectory that was found, with its knots where these were free."""
    if not shape.free_knots:
        return shape
    return replace(shape.at_knots(trajectory.family.parts[0].knots[1:-1]), free_knots=None)


def refuse_contradictions(
    robot: Robot, family: TrajectoryFamily, aim: AimOptions, polish: bool, task: Reference | None
) -> None:
    """Refuse options that do not go together, or with the robot."""
    if task is not None and not CRITERIA[aim.criterion].task:
        known = " or ".join(repr(name) for name, each in CRITERIA.items() if each.task)
        raise InputError(f"a task needs the criterion {known}, not {aim.criterion!r}")
    if robot.carrier is not None and robot.seat is not None:
        raise InputError(
            f"{robot.name}: a limb does not move by itself; design for the whole robot, with "
            f"sensor = {robot.seat.frame!r}"
        )
    if robot.sensed:
        gauge, _ = robot.sensed[0]
        instead = "" if gauge.terms else ", and state sensor and sensor_sigma in [excitation]"
        raise InputError(
            f"{robot.name}: excitation does not support the {gauge.kind} at {gauge.name}; leave "
            f"{gauge.key}{instead}"
        )
    if aim.sensor is None and aim.sensor_sigma is not None:
        raise InputError("sensor_sigma needs a sensor: name the link behind it (sensor)")
    if aim.periods > 1 and family.period is None:
        raise InputError(
            f"trajectory {family.kind!r} is not periodic; periods need a fourier series"
        )
    if family.kind == "cartesian":
        robot.refuse_loops("a trajectory of the hand")
    if polish and family.kind in ("cartesian", "sweeps", "rests"):
        raise InputError(
            f"trajectory {family.kind!r} is random and not optimised; polish does not apply"
        )


def choose_drawn(tree: Tree, family: TrajectoryFamily) -> MotionDraw | None:
    """What draws the motions of families that are not searched."""
    if family.kind == "cartesian":
        hand = HandMotions(tree, family)
        return MotionDraw(hand.draw, hand.follow)
    draw = {"sweeps": draw_ladder, "rests": draw_poses}.get(family.kind)
    return None if draw is None else MotionDraw(partial(draw, family))


def refuse_length(family: TrajectoryFamily, aim: AimOptions) -> None:
    """Refuse trajectories of more samples than can be held."""
    length = family.repeated(aim.periods)
    if not length * aim.rate <= LONGEST:
        raise InputError(
            f"excitation: {length:g} s at a rate of {aim.rate:g} Hz are more than {LONGEST:g} "
            "samples; choose a smaller rate, duration or number of periods"
        )


def predict_with_sensor(
    experiment: Experiment, trajectory: Trajectory, typical: Array
) -> tuple[Prediction, Prediction | None]:
    """What to expect of a trajectory: of the robot's rows, and of a sensor's where there is one."""
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
            f"the motion does not excite {len(missed)} of {len(prediction.names)} parameters"
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


def add_wanted_sensor(
    experiment: Experiment, bare: Robot, bounds: TrajectoryLimits, aim: AimOptions
) -> Experiment:
    """An experiment with the sensor that is asked for."""
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


def choose_torque_noise(
    robot: Robot, limits: Limits, aim: AimOptions, warnings: list[str]
) -> Array:
    """Standard deviations of the torques' noise."""
    if aim.sigma is not None:
        return np.array(broadcast_to_joints(aim.sigma, robot.n, "sigma"))
    efforts = np.array([joint.effort for joint in robot.joints])
    most = np.where(np.isfinite(efforts), efforts, limits.torque[: robot.n])
    most[robot.passive] = 1.0 / NOISE  # which have no torque
    if np.all(np.isfinite(most)):
        return np.asarray(NOISE * most)
    warnings.append("nothing is known of the torques' noise: 1 Nm is taken; give sigma")
    return np.ones(robot.n)


def sample_fine_motion(trajectory: Trajectory) -> WeightedMotion:
    """A motion on a grid on which signs of speeds are as good as exact."""
    return sample_motion(trajectory, 0.015 * trajectory.family.quickest)


def prepare_criterion(
    experiment: Experiment, typical: Array, aim: AimOptions, task: Reference | None
) -> tuple[CriterionNeeds, Experiment]:
    """What the criterion sees beside the information, and the experiment with what is believed."""
    parts = [part for part in (experiment, experiment.beyond) if part is not None]
    bases = tuple(part.base for part in parts)
    given = CriterionInputs(
        bases, experiment.names, typical, experiment.known, aim.wanted or (), task
    )
    asked = CRITERIA[aim.criterion].ask(given)
    known = experiment.known if asked.known is None else asked.known
    return asked, replace(experiment, known=known)


def estimate_typical_scale(
    experiment: Experiment, family: TrajectoryFamily, limits: Limits, seed: int
) -> Array:
    """Values of the parameters that a random motion would tell from zero by one sigma."""
    rng = np.random.default_rng([seed, 1])
    n = len(limits.lower)
    closure, room = experiment.base.idim.structure.closure, limits.upper - limits.lower
    half = 0.5 * np.where(np.isfinite(room), room, 0.0)
    q = limits.upper - half + half * rng.uniform(-1.0, 1.0, (256, n))
    fast = np.where(np.isfinite(limits.speed), limits.speed, half)
    dq = 0.5 * fast * rng.normal(size=(256, n))
    ddq = 0.5 * fast / family.quickest * rng.normal(size=(256, n))
    if closure is not None:
        q = closure.draw(256, rng)
        dq, ddq = closure.move(q, dq, ddq)
    part = family.parts[family.main]
    duration = np.full(256, (part.stop - part.start) / 256)
    M = replace(experiment, known=None).information(WeightedMotion(q, dq, ddq, duration))
    return np.asarray(1.0 / np.sqrt(np.diag(M)))
