"""The log of a simulated robot: a study's loop, rolled out and seen by its sensors."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.compiled import tells_compilations
from dynident.core.errors import InputError, SectionError, check_type, name_section_in_errors
from dynident.core.makers import collect_arguments
from dynident.core.progress import Progress, ignore_progress
from dynident.dynamics.idim import Idim
from dynident.estimators.closed_loop import Simulation, extract_logged_reference
from dynident.excitation.prediction import join_nominal_parameters
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.regression.problem import refuse_sensors
from dynident.robot.model import Contact, Robot
from dynident.simulation.afloat import collect_floating_signals, record_floating
from dynident.simulation.contacts import Ground
from dynident.simulation.record import record_rollout
from dynident.simulation.stability import check_integration, check_loop
from dynident.study.fits import build_study_loop, read_result
from dynident.study.loop import (
    OF_LOGS,
    build_base_sensors,
    build_controller,
    build_reference,
    build_sensors,
    replace_parameters,
)
from dynident.study.study import Study, build_study_idim, load_study_robot, read_study_samples


@dataclass(frozen=True)
class SimulatedLog:
    """What a robot's log would hold."""

    recording: Recording
    """Positions and torques as the sensors give them, with the reference."""
    joints: tuple[str, ...]
    warnings: tuple[str, ...]
    contacts: tuple[Contact, ...] = ()
    """Of a floating robot."""

    def to_csv(self) -> bytes:
        """The log with the columns that `dynident identify` reads without being told."""
        log = self.recording
        assert log.qref is not None
        assert log.dqref is not None
        signals = {"q": log.q, "tau": log.tau, "qref": log.qref, "dqref": log.dqref}
        others = collect_floating_signals(log, self.contacts)
        named = [f"{s}_{joint}" for s in signals for joint in self.joints]
        header = ",".join(["time", *named, *others])
        time = np.arange(len(log.q)) / log.rate
        table = np.column_stack([time, *signals.values(), *others.values()])
        text = io.StringIO()
        np.savetxt(text, table, fmt="%.10g", delimiter=",", header=header, comments="")
        return text.getvalue().encode()


@tells_compilations
def simulate_study(study: Study, progress: Progress = ignore_progress) -> SimulatedLog:
    """Simulate the log of a study's robot under its controller.

    >>> driven_log = di.simulate_study(di.read_study("loop.toml", use=None)).recording

    Raises
    ------
    InputError
        When the study has no controller, or parts of it do not fit; when the loop is unstable
        or too stiff for its integrator.
    RolloutError
    """
    check_type("simulate_study", study, Study, "dynident.read_study(path, use=None) makes one")
    if study.controller is None:
        raise SectionError("a simulation needs a [controller] section")
    robot = load_study_robot(study)
    refuse_sensors(robot, "simulate writes")
    idim, theta = choose_simulated_model(study, robot)
    logs: tuple[Samples, ...] = ()
    if study.reference.kind in OF_LOGS:
        if not study.log:
            raise SectionError(
                "[reference] needs a kind and its values, or a [[log]] that has qref"
            )
        # all of it is simulated, at its own rate: a mean period would not be
        own = study.log[0].model_copy(update={"period": "none"})
        logs = (read_study_samples(own, robot, study.prepare, torque=False),)
        simulation = build_study_loop(study, robot, logs[0])
        reference = choose_log_reference(simulation.references, logs[0])
    else:
        controller, _ = build_controller(study.controller, robot, logs)
        with name_section_in_errors("[simulation]"):
            simulation = Simulation(controller, **study.simulation.options())
        reference = build_reference(study.reference)
    sensors = build_sensors(study.noise, robot.n)
    beside = build_base_sensors(study.noise, robot.floating)
    with name_section_in_errors("[simulation]"):
        known = idim.nominal if robot.has_nominal else None  # of a law that compensates
        loop = simulation.loop(idim, reference, model=known)
    if robot.floating:
        with name_section_in_errors("[ground]"):
            ground = Ground(**collect_arguments(Ground, study.ground, "[ground]", ("sole",)))
        with name_section_in_errors():
            recording = record_floating(
                loop, theta, ground, study.ground.sole, sensors, beside, progress=progress
            )
        return SimulatedLog(recording, robot.joint_names, robot.warnings, robot.contacts)
    if study.ground.model_fields_set:
        raise SectionError("[ground] needs a robot that is read as floating (floating = true)")
    with name_section_in_errors("[simulation]"):
        check_integration(loop, theta)
        check_loop(loop, theta)
    with name_section_in_errors("[noise]"):
        found = record_rollout(loop, theta, sensors, progress=progress)
    seen = found.recording
    return SimulatedLog(seen, robot.joint_names, (*robot.warnings, *seen.warnings))


def choose_log_reference(references: tuple[Reference, ...] | None, log: Samples) -> Reference:
    """The reference of a log: its own unless it was reconstructed."""
    if references is not None:
        return references[0]
    own = extract_logged_reference(log)
    if own is None:
        raise InputError(f"{log.name}: has no reference (qref); give [reference] a kind")
    return own


def choose_simulated_model(study: Study, robot: Robot) -> tuple[Idim, Array]:
    """The model that a study simulates, and its standard parameters.

    Those of a result where one is named, with its shapes of friction; else the robot file's
    inertials, armature (Ia), damping (fv) and friction (fc); on both, what
    ``[simulation.parameters]`` says.
    """
    idim, settings = build_study_idim(study, robot), study.simulation
    if settings.result is not None:
        fit = read_result(Path(settings.result))
        if fit.idim.names != idim.names:
            raise InputError(
                f"{settings.result}: its parameters are not those of {study.robot.file} with "
                f"friction {study.robot.friction}"
            )
        idim, theta = fit.idim.of(robot), fit.theta
    else:
        if not robot.has_nominal and not settings.parameters:
            raise InputError(
                f"{study.robot.file}: has no inertials; give [simulation] a result, or parameters"
            )
        theta = join_nominal_parameters(idim)
    return idim, replace_parameters(idim.names, settings.parameters, theta)
