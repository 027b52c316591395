"""The auxiliary model: the closed loop simulated with the current estimate.

"The same reference trajectory and control law for the actual and simulated robot"
(ardiani2024, II-E): its motion depends on the references and the estimate only, so what is
built from it is free of the measurement's noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.recording.filters import differences
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem
from dynident.simulation.controller import Controller
from dynident.simulation.loop import Loop
from dynident.simulation.plant import mean_inertia
from dynident.simulation.reference import Reference
from dynident.simulation.rollout import Stretch, rollout, sensitive_rollout
from dynident.simulation.stability import check_integration

MASS_SAMPLES = 200


@dataclass(frozen=True)
class Simulation:
    """How the closed loop behind a log is simulated.

    Attributes
    ----------
    controller : Controller
        The actual robot's law and gains, as far as they are known.
    integrator : str
        Name in `dynident.simulation.integrators.INTEGRATORS`.
    substeps : int
        Integration steps a sample of the log.
    width : ndarray, shape (n,), or float, optional
        Smoothing of the sign of Coulomb friction; one per cent of the largest reference
        speed by default [rad/s or m/s].
    references : tuple of Reference, optional
        One a log, where the log has none of its own.
    external : tuple of (ndarray or None), optional
        Torques from outside, one a log [Nm or N].
    start : str or mapping of str to float
        One of `dynident.estimators.iteration.STARTS`, or values of some base parameters by
        name, the others zero.
    assumed : str, optional
        Why the reference or the gains are not known but assumed, for the result to say.
    """

    controller: Controller
    integrator: str = "ode3"
    substeps: int = 1
    width: Array | float | None = None
    references: tuple[Reference, ...] | None = None
    external: tuple[Array | None, ...] | None = None
    start: str | Mapping[str, float] = "least-squares"
    assumed: str | None = None

    def settings(self) -> dict[str, object]:
        """What shaped the simulation, for a result to report."""
        control = self.controller
        width = "1 % of the largest reference speed"
        if self.width is not None:
            width = np.atleast_1d(np.asarray(self.width, dtype=float)).tolist()
        return {
            "integrator": self.integrator,
            "substeps": self.substeps,
            "width": width,
            "start": self.start if isinstance(self.start, str) else dict(self.start),
            "control_rate_hz": control.rate,
            "delay": control.delay,
            "compensation": control.compensation,
            "controller": {
                name: getattr(control, name).tolist() for name in ("A", "B", "C", "D", "antiwindup")
            },
            "gain": control.gain.tolist(),
            "limit": [x if np.isfinite(x) else None for x in control.limit.tolist()],
        }


@dataclass(frozen=True)
class SimulatedFigure:
    """How well the simulated closed loop reproduces a log (brunot2019, Table 3).

    Attributes
    ----------
    log : str
    position_rms : ndarray, shape (n,)
        Root mean square of ``q_m - q_s`` [rad or m].
    position_percent, torque_percent : ndarray, shape (n,)
        ``100 ||q_m - q_s|| / ||q_m||`` and ``100 ||tau - tau_s|| / ||tau||``.
    """

    log: str
    position_rms: Array
    position_percent: Array
    torque_percent: Array


@dataclass(frozen=True)
class Auxiliary:
    """The loops of all runs of all logs.

    Attributes
    ----------
    problem : Problem
    simulation : Simulation
    loops : tuple of tuple of (start, stop, Loop)
        Runs of each log.
    """

    problem: Problem
    simulation: Simulation
    loops: tuple[tuple[tuple[int, int, Loop], ...], ...] = field(repr=False)

    def motions(self, beta: Array, scale: Array | None = None) -> tuple[Samples, ...]:
        """Logs with the simulated motion and torque in the place of the measured ones.

        Parameters
        ----------
        beta : ndarray, shape (base parameters,)
        scale : ndarray, shape (n,), optional
            Multiplies the controllers' gains.

        Raises
        ------
        RolloutError
        """
        theta = self.problem.base.standard(beta)
        found = []
        for log, loops in zip(self.problem.samples, self.loops, strict=True):
            q, dq, ddq, tau = (np.zeros_like(log.q) for _ in range(4))
            for start, stop, loop in loops:
                run = slice(start, stop)
                motion = rollout(loop if scale is None else loop.scaled(scale), theta)
                q[run], dq[run], ddq[run] = motion.q, motion.dq, motion.ddq
                tau[run] = motion.tau
            found.append(log.along(q, dq, ddq).driven(tau))
        return tuple(found)

    def simulated(self, beta: Array, scale: Array | None = None) -> Problem:
        """The problem's torques on the simulated motion: rows ``[Z | y]``."""
        motions = [(m.q, m.dq, m.ddq) for m in self.motions(beta, scale)]
        return self.problem.along(motions, self.loops[0][0][2].width)

    def referenced(self) -> Problem:
        """The problem's torques on the references themselves: more instruments."""
        motions = []
        for log, loops in zip(self.problem.samples, self.loops, strict=True):
            q, dq, ddq = (np.zeros_like(log.q) for _ in range(3))
            for start, stop, loop in loops:
                run = slice(start, stop)
                q[run], dq[run], ddq[run] = loop.reference.q, loop.reference.dq, loop.reference.ddq
            motions.append((q, dq, ddq))
        return self.problem.along(motions)

    def sensitive(self, beta: Array, wanted: str) -> Iterator[tuple[int, int, Stretch]]:
        """Stretches of all runs with sensitivities: log, first sample of the run, stretch.

        Raises
        ------
        RolloutError
        """
        theta, kept = self.problem.base.standard(beta), self.problem.base.kept
        for index, loops in enumerate(self.loops):
            for start, _, loop in loops:
                for part in sensitive_rollout(loop, theta, kept, (wanted,)):
                    yield index, start, part

    def inertia(self, beta: Array) -> Array:
        """Mean diagonal of the mass matrix along the logs, shape (n,)."""
        problem = self.problem
        q = np.vstack([log.q[:: max(1, len(log.q) // MASS_SAMPLES)] for log in problem.samples])
        return mean_inertia(problem.idim, problem.base.standard(beta), q)


def simulated_figures(auxiliary: Auxiliary, beta: Array) -> tuple[SimulatedFigure, ...]:
    """Direct comparison of measured and simulated positions and torques, log by log.

    Raises
    ------
    ComputationError
        When the estimate cannot be simulated.
    """
    figures = []
    for log, motion in zip(auxiliary.problem.samples, auxiliary.motions(beta), strict=True):
        used = np.concatenate([np.arange(a, b) for a, b in log.segments])
        position, torque = log.measured[used], log.tau[used]
        error = position - motion.q[used]
        figures.append(
            SimulatedFigure(
                log.name,
                np.sqrt(np.mean(error**2, axis=0)),
                percent(error, position),
                percent(torque - motion.tau[used], torque),
            )
        )
    return tuple(figures)


def stiffness_warnings(auxiliary: Auxiliary, theta: Array) -> list[str]:
    """Loops whose integration steps are too long for the estimate's friction, in words."""
    notes = []
    for loops in auxiliary.loops:
        for _, _, loop in loops[:1]:
            try:
                check_integration(loop, theta)
            except InputError as error:
                notes.append(f"the simulated loop chatters: {error}")
    return notes


def percent(error: Array, signal: Array) -> Array:
    """``100 ||error|| / ||signal||`` column by column."""
    norms = np.maximum(np.linalg.norm(signal, axis=0), 1e-300)
    return np.asarray(100.0 * np.linalg.norm(error, axis=0) / norms)


def auxiliary_model(problem: Problem, simulation: Simulation) -> Auxiliary:
    """Loops for all runs of a problem's logs.

    Raises
    ------
    InputError
        When a log has no reference, or one that is too short.
    """
    n = problem.robot.n
    if simulation.references is not None and len(simulation.references) != len(problem.samples):
        raise InputError(f"{len(simulation.references)} references for {len(problem.samples)} logs")
    width = simulation.width
    if width is not None:
        width = np.broadcast_to(np.asarray(width, dtype=float), (n,)).copy()
    loops = []
    for k, log in enumerate(problem.samples):
        reference = logged_reference(log)
        if simulation.references is not None:
            reference = simulation.references[k]
        if reference is None:
            raise InputError(
                f"{log.name}: the log has no reference (qref) to simulate; give it the column, or "
                "a [reference] section"
            )
        if len(reference.q) < len(log.q):
            raise InputError(
                f"{log.name}: the reference has {len(reference.q)} samples, the log has "
                f"{len(log.q)}; give a reference that is as long"
            )
        if abs(reference.rate - log.rate) > 1e-6 * log.rate:
            raise InputError(
                f"{log.name}: the reference has {reference.rate:g} Hz, the log {log.rate:g} Hz"
            )
        external = None if simulation.external is None else simulation.external[k]
        loops.append(
            tuple(
                (
                    start,
                    stop,
                    Loop(
                        problem.idim,
                        simulation.controller,
                        reference.rows(start, stop),
                        simulation.integrator,
                        simulation.substeps,
                        width,
                        None if external is None else external[start:stop],
                        model=compensation_model(problem),
                        q0=log.q[start],
                        dq0=log.dq[start],
                    ),
                )
                for start, stop in log.runs
            )
        )
    return Auxiliary(problem, simulation, tuple(loops))


def compensation_model(problem: Problem) -> Array | None:
    """The file's inertials as standard parameters, for controllers that compensate."""
    if not problem.robot.has_nominal:
        return None
    model = np.zeros(len(problem.idim.parameters))
    model[: problem.idim.inertial] = problem.robot.nominal.ravel()
    return model


def logged_reference(log: Samples) -> Reference | None:
    """The reference that a log holds; missing derivatives are differences."""
    if log.qref is None:
        return None
    dq, ddq = (np.empty_like(log.qref) for _ in range(2))
    for start, stop in log.runs:
        run = slice(start, stop)
        dq[run], ddq[run] = differences(log.qref[run], log.rate)
        if log.dqref is not None:
            dq[run] = log.dqref[run]
    return Reference(log.rate, log.qref, dq, ddq)
