"""Sections of a study that describe the closed loop: controller, reference, noise.

Each turns into what `dynident.simulation` works with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from dynident.control.controller import CONTROLLERS, Controller
from dynident.control.reference import REFERENCES, Reference
from dynident.core.arrays import Array
from dynident.core.errors import InputError, SectionError
from dynident.core.errors import name_section_in_errors as placed
from dynident.core.makers import build_maker_section, collect_arguments
from dynident.core.options import (
    PerJoint,
    broadcast_to_joints,
    build_option_section,
    collect_options,
)
from dynident.core.schema import File, Name, Number, Spec, make_choice_validator
from dynident.core.text import suggest_nearest
from dynident.estimators.closed_loop import Simulation
from dynident.excitation.sections import trajectory
from dynident.recording.prepare import Samples
from dynident.robot.model import Robot
from dynident.simulation.afloat import BaseSensors
from dynident.simulation.contacts import Ground
from dynident.simulation.sensors import ROWS, Sensors

if TYPE_CHECKING:
    from dynident.simulation.gains import ControllerGains


OF_LOGS: dict[str, tuple[str, ...]] = {"log": (), "reconstructed": ("lag",)}
"""References that come from a log, and what they take."""
IDENTIFIED = ("p-p", "pd")
"""Kinds of controller whose gains can be identified from a log."""
MADE: dict[str, Callable[..., Reference]] = {
    **{kind: maker for kind, maker in REFERENCES.items() if kind not in OF_LOGS},
    "trajectory": trajectory,
}
"""Makers of references that need no log."""
OF_BASES = tuple(each.name for each in fields(BaseSensors))
"""Keys of `[noise]` that are of floating robots."""
JOINTS = ("n",)
"""Arguments of controllers that the robot gives."""


class ControllerKind(Spec):
    """``[controller]``: the law behind every joint; its maker's arguments are keys beside these."""

    kind: Annotated[Name, make_choice_validator(CONTROLLERS)]
    """Name in `CONTROLLERS`."""
    gains: Literal["given", "identify", "file"] = "given"
    """Identify kp and kv (of "p-p") or kd (of "pd") from the log's reference, position and torque
    instead, or take kp and kd of "pd" from the robot file."""


class ReferenceKind(Spec):
    """``[reference]``: what the controllers follow; its maker's arguments are keys beside these."""

    kind: Annotated[Name, make_choice_validator((*OF_LOGS, *MADE))] = "log"
    """"log" (the log's own), "reconstructed" from the motion where the log has none, or a name in
    `REFERENCES`."""
    lag: PerJoint | None = None
    """By which a reconstructed reference leads the motion [s]."""
    file: File | None = None
    """A trajectory.json, relative to the study."""


class LoopSection(Spec):
    """``[simulation]``: how the closed loop is integrated, and with which values.

    Beside these it has the plain options of `Simulation`.
    """

    parameters: dict[str, Number] = Field(default_factory=dict)
    """Of `dynident simulate`: standard parameters by name, over those of the robot file."""
    result: File | None = None
    """Of `dynident simulate`: a result.json whose model is simulated instead."""

    def options(self) -> dict[str, Any]:
        """What was given of the options of `Simulation`."""
        return self.model_dump(exclude={"parameters", "result"}, exclude_none=True)


class GroundKeys(Spec):
    """``[ground]``: what a floating robot stands on; keys of a `Ground` stand beside these."""

    sole: tuple[Number, Number] | None = None
    """Half length (along x) and half width (along y) of contacts that bear moments, whose corners
    touch [m]."""


if TYPE_CHECKING:
    ControllerSection = ControllerKind
    ReferenceSection = ReferenceKind
    NoiseSection = Spec
    GroundSection = GroundKeys
    SimulationSection = LoopSection
else:
    ControllerSection = build_maker_section(
        "ControllerSection", ControllerKind, CONTROLLERS, JOINTS
    )
    ReferenceSection = build_maker_section("ReferenceSection", ReferenceKind, MADE)
    NoiseSection = build_maker_section(
        "NoiseSection", Spec, {"joints": Sensors, "base": BaseSensors}
    )
    GroundSection = build_maker_section("GroundSection", GroundKeys, {"ground": Ground})
    SimulationSection = build_option_section(
        "SimulationSection", LoopSection, collect_options([Simulation])
    )


def build_controller(
    section: ControllerSection, robot: Robot, logs: tuple[Samples, ...]
) -> tuple[Controller, str | None]:
    """The controller of a study, and what was assumed of it; gains are identified from the logs."""
    if section.gains == "identify":
        with placed("[controller]"):
            return identify_controller(section, robot, logs)
    maker = CONTROLLERS[section.kind]
    with placed("[controller]"):
        if section.gains == "file":
            section = take_gains_from_file(section, robot)
        what = f"[controller] {section.kind}"
        options = collect_arguments(maker, section, what, ("kind", "gains"), JOINTS)
        return maker(n=robot.n, **options), None


def build_reference(section: ReferenceSection) -> Reference:
    """A reference that needs no log."""
    with placed("[reference]"):
        if section.kind in OF_LOGS:
            raise InputError(f"[reference] kind {section.kind!r} needs a [[log]]")
        maker = MADE[section.kind]
        return maker(**collect_arguments(maker, section, f"[reference] {section.kind}", ("kind",)))


def build_sensors(section: NoiseSection, n: int) -> Sensors:
    """The sensors of a study."""
    with placed("[noise]"):
        for key in ROWS:
            count = np.size(getattr(section, key))
            if isinstance(getattr(section, key), tuple) and count != n:
                raise InputError(f"[noise] {key} has {count} values, the robot has {n} joints")
        given: dict[str, Any] = {
            key: broadcast_to_joints(value, n, key) if key in ROWS else value
            for key, value in section.model_dump(exclude_none=True).items()
        }
        perfect = Sensors.perfect(n)
        return replace(perfect, **{key: given[key] for key in given if key not in OF_BASES})


def build_base_sensors(section: NoiseSection, floating: bool) -> BaseSensors:
    """What a floating robot's log has beside its joints."""
    with placed("[noise]"):
        given = {
            key: value
            for key, value in section.model_dump(exclude_none=True).items()
            if key in OF_BASES
        }
        if given and not floating:
            raise InputError(f"[noise] {next(iter(given))} needs a floating robot")
        return BaseSensors(**given)


def build_simulation(
    controller: ControllerSection,
    reference: ReferenceSection,
    settings: LoopSection,
    robot: Robot,
    logs: tuple[Samples, ...],
) -> Simulation:
    """All that an estimator needs to simulate the loop behind a study's logs."""
    references: tuple[Reference, ...] | None = None
    notes = []
    if reference.kind in OF_LOGS:
        for key in sorted(reference.model_fields_set - {"kind", *OF_LOGS[reference.kind]}):
            raise SectionError(f"[reference] {reference.kind} has no {key!r}")
    if reference.kind == "reconstructed":
        from dynident.control.reconstruct import reconstruct  # scipy.optimize is slow to load

        lag = 0.0 if reference.lag is None else reference.lag
        with placed("[reference]"):
            found = [reconstruct(log.measured, log.rate, log.runs, lag=lag) for log in logs]
        references = tuple(r.reference for r in found)
        notes.append(
            f"the reference was reconstructed from the measured motion ({len(found[0].moves)} "
            "moves); that it is free of the measurement's noise is assumed, not shown"
        )
    elif reference.kind != "log":
        references = (build_reference(reference),) * len(logs)
    control, assumed = build_controller(controller, robot, logs)
    if assumed is not None:
        notes.append(assumed)
    words = "; ".join(notes) or None
    with placed("[simulation]"):
        return Simulation(control, references=references, assumed=words, **settings.options())


def take_gains_from_file(section: ControllerSection, robot: Robot) -> ControllerSection:
    """A section with the gains of the position servos in the robot's MJCF, which damp all speed."""
    if section.kind != "pd":
        raise InputError(f"[controller] gains = 'file' are those of a 'pd', not of {section.kind}")
    for key in sorted(section.model_fields_set & {"kp", "kd"}):
        raise InputError(f"[controller] gains = 'file' has {key!r} already; leave it out")
    bare = [joint.name for joint in robot.joints if joint.kp <= 0.0]
    if bare:
        raise InputError(
            f"[controller] gains = 'file': {robot.source or robot.name} has no position servo "
            f"of {', '.join(bare)}; give kp and kd"
        )
    law = {key: tuple(getattr(joint, key) for joint in robot.joints) for key in ("kp", "kd")}
    given = section.model_dump(include={"velocity_reference"}, exclude_none=True)
    return section.model_copy(update={"velocity_reference": False, **given, **law})


def identify_controller(
    section: ControllerSection, robot: Robot, logs: tuple[Samples, ...]
) -> tuple[Controller, str]:
    """Gains identified from the first log with a reference."""
    if section.kind not in IDENTIFIED:
        raise InputError(
            f"[controller] gains of {section.kind!r} cannot be identified; p-p and pd can"
        )
    for key in sorted(section.model_fields_set - {"kind", "gains", "gain", "limit"}):
        raise InputError(f"[controller] gains = 'identify' finds {key!r} itself; leave it out")
    log = next((log for log in logs if log.qref is not None), None)
    if log is None or log.qref is None:
        raise InputError("[controller] gains = 'identify' needs a log with a reference (qref)")
    from dynident.simulation.gains import identify_gains

    given = section.model_dump(exclude_none=True)
    gain = np.array(broadcast_to_joints(given.get("gain", 1.0), robot.n, "gain"))
    limit = (
        None
        if "limit" not in given
        else np.array(broadcast_to_joints(given["limit"], robot.n, "limit"))
    )
    run = slice(*log.runs[0])
    found = identify_gains(
        log.qref[run],
        log.measured[run],
        log.tau[run] / gain,
        log.rate,
        section.kind,
        limit=limit,
        dqref=None if log.dqref is None else log.dqref[run],
    )
    return build_identified_controller(found, gain, limit, log.rate), describe_gains(
        found, robot, log
    )


def build_identified_controller(
    found: ControllerGains, gain: Array, limit: Array | None, rate: float
) -> Controller:
    """The controller of identified gains, sampled with the log."""
    limits = np.inf if limit is None else limit
    # one delay serves all joints: the longest found (an early output is that of a late q)
    delay = max(0, int(np.max(found.shift))) / rate
    lag = [max(1, int(k)) for k in found.lag]
    if found.kind == "p-p":
        return CONTROLLERS["p-p"](
            found.kp, found.kv, found.feedforward, gain=gain, limit=limits, rate=rate,
            velocity="differences", lag=lag, delay=delay,
        )  # fmt: skip
    return CONTROLLERS["pd"](
        found.kp, found.kv, velocity_reference=bool(np.all(found.feedforward > 0.5)), gain=gain,
        limit=limits, rate=rate, velocity="differences", lag=lag, delay=delay,
    )  # fmt: skip


def describe_gains(found: ControllerGains, robot: Robot, log: Samples) -> str:
    """What was identified of the controllers, in words."""
    each = [
        f"{name} kp {kp:.5g}, {'kv' if found.kind == 'p-p' else 'kd'} {kv:.5g} (output within "
        f"{error:.2g} %" + (f", {int(shift)} samples late)" if shift else ")")
        for name, kp, kv, error, shift in zip(
            robot.joint_names, found.kp, found.kv, found.relative_error, found.shift, strict=True
        )
    ]
    return f"the controllers' gains were identified from {log.name}: {'; '.join(each)}"


def replace_parameters(
    names: tuple[str, ...], given: Mapping[str, float], theta: np.ndarray
) -> np.ndarray:
    """Standard parameters with some of them replaced by name."""
    out = np.array(theta, dtype=float)
    for name, value in given.items():
        if name not in names:
            raise SectionError(
                f"[simulation] parameters: {name!r} is not known{suggest_nearest(name, names)}"
            )
        out[names.index(name)] = value
    return out
