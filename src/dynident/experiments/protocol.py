"""``dynident protocol``: what to record for what question, and what to expect of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from dynident.core.arrays import Array
from dynident.core.compiled import tells_compilations
from dynident.core.errors import InputError, check_type
from dynident.core.inertia import PER_BODY, from_com
from dynident.core.options import build_all_options, list_options
from dynident.core.progress import Progress, ignore_progress
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import JointElements
from dynident.excitation.certificate import certify_trajectory
from dynident.excitation.excite import (
    Excitation,
    choose_torque_noise,
    describe_untold_parameters,
    excite,
)
from dynident.excitation.limits import Limits, build_limits
from dynident.excitation.obstacles import Obstacle
from dynident.excitation.options import AimOptions
from dynident.excitation.reach import bound_reach
from dynident.experiments.expected import FutureLog
from dynident.experiments.keywords import ProtocolOptions
from dynident.experiments.plan import PlannedRun, Protocol
from dynident.experiments.planning import FAMILIES, OWN, ProtocolPlan
from dynident.experiments.steps import QUESTIONS, STEPS, ProtocolStep, expect_delay
from dynident.friction import DEFAULT_FRICTION
from dynident.robot.model import Robot

EFFORT = 0.2
"""Of the weakest drive, that the mass takes at the far length unless it is given."""
QUICK = {"duration": 4.0, "harmonics": 20}
"""A series to 5 Hz, for delays."""
RESERVES = (0.0, 0.05, 0.15)
"""Shares of the torques that are left beside the margin, where a motion that is proved with the
mass at its far length is not proved without it or nearer."""
HELD = {"duration": 60.0, "points": 16}
"""Poses and their time."""


@tells_compilations
def protocol(
    robot: Robot,
    friction: str = DEFAULT_FRICTION,
    *,
    rotor: bool | None = None,
    elements: Sequence[JointElements] = (),
    obstacles: Sequence[Obstacle] = (),
    progress: Progress = ignore_progress,
    **options: Unpack[ProtocolOptions],
) -> Protocol:
    """State what to record for each question, and which intervals to expect.

    Motions are designed as `excite` does, all of them with the mass at its far length where a
    question asks for one.

    >>> plan = di.protocol(robot, questions=("drives",), sweeping=10.0, period=4.0,
    ...                    starts=1, iterations=5, collision=False)
    >>> plan.seconds
    34.0

    Parameters
    ----------
    robot : Robot
        On a fixed base.
    friction : str
        That will be identified, linear in its parameters and by the motion alone.
    rotor : bool, optional
        Whether rotor inertias will be.
    elements : sequence of JointElements
        What else acts on the joints.
    obstacles : sequence of Obstacle
    progress : callable, optional
    **options
        Of `dynident.experiments.planning`, and limits and search of `excite`.

    Raises
    ------
    InputError
        For options and robots with which it cannot be done, in one line.
    ComputationError
        When no motion was found that keeps the limits.
    """
    for name in OWN:
        if name in options:
            raise InputError(
                f"protocol decides {name!r} itself; a mass is given by mass and lengths"
            )
    check_type("protocol", robot, Robot, "dynident.load_robot(file) makes one")
    planning, bounds, _ = build_all_options("protocol", FAMILIES, options)
    wanted = {name for each in planning.questions for name in QUESTIONS[each].steps}
    steps = {name: step for name, step in STEPS.items() if name in wanted}
    limits, warnings = build_limits(robot, bounds), warn_of_idle_options(options, steps)
    sigma = choose_torque_noise(robot, limits, AimOptions(sigma=planning.sigma), warnings)
    base = base_parameters(build_idim(robot, friction, rotor, elements=elements))
    carried = any(step.carries is not None for step in steps.values())
    mass = choose_mass(robot, planning, limits.torque) if carried else 0.0
    centres = [length * find_arm(robot) for length in planning.lengths]
    designed = build_body(1 if carried else None, mass, centres)
    own = {option.name for option in list_options(ProtocolPlan)}
    common: dict[str, Any] = {
        name: value for name, value in options.items() if name not in {*own, "margin"}
    }
    common |= {"sigma": tuple(sigma.tolist()), "rate": planning.rate}
    common |= {"load": mass, "load_centre": tuple(centres[1].tolist())} if carried else {}
    design = partial(
        excite, robot, friction, rotor=rotor, elements=elements, obstacles=obstacles, **common
    )
    shapes = list_motion_shapes(planning)
    found: dict[str, Excitation] = {}
    recordings: dict[str, FutureLog] = {}
    runs = []
    for k, (name, step) in enumerate(steps.items()):
        if step.motion not in found:
            progress(f"designing {step.motion}", k / len(steps))
            others = {each.carries for each in steps.values() if each.motion == step.motion}
            found[step.motion] = design_with_reserve(
                partial(design, **shapes[step.motion]),
                bounds.margin,
                limits,
                [build_body(each, mass, centres) - designed for each in others],
            )
        plan = found[step.motion]
        body = build_body(step.carries, mass, centres)
        recordings[name] = FutureLog(base, plan, sigma, body)
        runs.append(
            PlannedRun(
                name,
                step,
                plan,
                float(plan.trajectory.family.repeated(plan.periods)),
                describe_setup(step, robot.links[-1], mass, planning.lengths),
                prove_limits(plan, limits, body - designed),
                tuple(step.expect(recordings, planning.damping)),
            )
        )
    warnings = add_design_warnings(warnings, found.values())
    return Protocol(robot, planning, sigma, mass, tuple(runs), tuple(warnings))


def warn_of_idle_options(
    options: Mapping[str, Any], steps: Mapping[str, ProtocolStep]
) -> list[str]:
    """What is told of runs that no question asks for."""
    carried = {name for name, step in STEPS.items() if step.carries is not None}
    late = {name for name, step in STEPS.items() if step.expect is expect_delay}
    found = []
    for key, runs in {"mass": carried, "lengths": carried, "damping": late}.items():
        if options.get(key) is not None and not runs & {*steps}:
            asked = [name for name, each in QUESTIONS.items() if runs & {*each.steps}]
            found.append(f"{key} has no effect: it applies to the questions {', '.join(asked)}")
    return found


def list_motion_shapes(planning: ProtocolPlan) -> dict[str, dict[str, Any]]:
    """What each motion of the steps asks of `excite`, by name."""
    return {
        "sweeps": {"trajectory": "sweeps", "duration": planning.sweeping},
        "series": {"duration": planning.period, "periods": planning.periods},
        "quick": {**QUICK, "periods": planning.periods},
        "rests": {"trajectory": "rests", **HELD},
    }


def design_with_reserve(
    design: Callable[..., Excitation], margin: float, limits: Limits, bodies: Sequence[Array]
) -> Excitation:
    """The first motion that is proved with each of the bodies it will carry, or the last one."""
    for reserve in RESERVES:
        plan = design(margin=min(margin + reserve, 0.99))
        if all(prove_limits(plan, limits, body) for body in bodies):
            break
    return plan


def add_design_warnings(warnings: Sequence[str], plans: Iterable[Excitation]) -> list[str]:
    """Warnings with those of designs, once each.

    A motion tells of some parameters alone, which the tables say of all.
    """
    found = [*warnings]
    for plan in plans:
        known = (*describe_untold_parameters(plan.prediction, ""), *found)
        found += [each for each in plan.warnings if each not in known]
    return found


def find_arm(robot: Robot) -> Array:
    """Direction across the last joint's axis in which the mass is moved out, shape (3,).

    That of the last link's centre of mass, where it is not on the axis.
    """
    joint, body = robot.joints[-1], robot.nominal[robot.n - 1]
    sideways = [body[1:4], *np.eye(3)]
    across = [each - joint.axis * (joint.axis @ each) for each in sideways]
    least = [1e-3 * body[0], 0.5, 0.5, 0.0]
    far = next(
        each for each, size in zip(across, least, strict=True) if np.linalg.norm(each) > size
    )
    return np.asarray(np.round(far / np.linalg.norm(far), 9))


def choose_mass(robot: Robot, planning: ProtocolPlan, torque: Array) -> float:
    """The mass that is given, or one that no drive has much trouble with [kg].

    `torque`, shape (n,): what the limits leave of the drives'.
    """
    if planning.mass is not None:
        return planning.mass
    reach, _ = bound_reach(robot, robot.n - 1, planning.lengths[1])
    weight = np.linalg.norm(robot.gravity) * reach
    most = np.min(torque[: robot.n][weight > 0.0] / weight[weight > 0.0], initial=np.inf)
    if not np.isfinite(most):
        raise InputError(
            f"{robot.name}: no drive's effort is known; give the mass that it may hold"
        )
    return float(f"{EFFORT * most:.1g}")


def build_body(carries: int | None, mass: float, centres: Sequence[Array]) -> Array:
    """Ten parameters of what the last link carries."""
    if carries is None:
        return np.zeros(PER_BODY)
    return from_com(mass, centres[carries], np.zeros((3, 3)))


def prove_limits(plan: Excitation, limits: Limits, change: Array) -> bool:
    """Whether a motion keeps limits with another body than it was designed with.

    `change`, shape (10,): of the last link.
    """
    task = plan.design.task
    if task.nominal is None or not np.any(change):
        return plan.design.certificate.ok
    theta = task.nominal.theta.copy()
    theta[: task.nominal.idim.inertial][-PER_BODY:] += change
    other = replace(task.nominal, theta=theta)
    proof = certify_trajectory(plan.trajectory, limits, other, None, task.names, task.step)
    return plan.design.certificate.ok and proof.ok


def describe_setup(step: ProtocolStep, link: str, mass: float, lengths: Sequence[float]) -> str:
    """What the robot carries, in words."""
    if step.carries is None:
        return "nothing in the hand"
    return f"{mass:g} kg on {link}, {lengths[step.carries]:g} m from its joint's axis"
