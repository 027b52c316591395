"""The auxiliary model: the closed loop simulated with the current estimate.

"The same reference trajectory and control law for the actual and simulated robot"
(ardiani2024, II-E): its motion depends on the references and the estimate only, so what is
built from it is free of the measurement's noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from dynident.control.controller import OF_SERVOS, Controller
from dynident.control.reference import Reference, average_held_signals
from dynident.core.arrays import Array, Booleans
from dynident.core.errors import ComputationError, InputError, name_section_in_errors
from dynident.core.options import InPython, Of, Options, Positives
from dynident.core.schema import Name, Number, make_choice_validator
from dynident.core.threads import map_in_threads
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.idim import Idim
from dynident.dynamics.whole import average_inertia
from dynident.recording.prepare import Samples
from dynident.recording.reference import differentiate_reference
from dynident.regression.generalised import GeneralisedSamples, put_base_before
from dynident.regression.problem import Problem, Regression, refuse_sensors
from dynident.simulation.integrators import INTEGRATORS
from dynident.simulation.loop import (
    MOST_STEPS,
    TOLERANCE,
    TOLERANCES,
    WIDTH_SHARE,
    Loop,
    choose_share_of_speed,
    close_reference,
    find_holding_width,
)
from dynident.simulation.mount import Mount, find_mount
from dynident.simulation.rollout import (
    SensitiveStretch,
    SimulatedMotion,
    refuse_chosen_steps,
    rollout,
    sensitive_rollout,
)
from dynident.simulation.stability import check_integration

MASS_SAMPLES = 200
HELD_WIDTH = 0.1
"""Default smoothing width of the sign under held targets, as a share of the largest speed: what
predicts motions that are faster than those fitted."""
LEAD = 64
"""Samples before a start from which targets may come late."""
FIRST = 0.05
"""Seconds of a run that tell where, and with which speed, it begins."""
ROUNDING = 1e-9
"""Least scatter of a reading [rad or m]."""
SCATTER = 3.0
"""A start this many scatters of a reading from the reference is off it."""
STEEPER = 14.0
"""Scatter of a parabola's slope at its end, over its length, in scatters of a reading."""
HORIZONS = (0.1, 1.0, None)
"""Seconds after which a free simulation is restarted; None for never."""
STARTS = ("least-squares", "nominal", "rotors")
"""Where iterations start: WLS; the file's inertials with fitted drives; Ia = 1 alone."""


Log = TypeVar("Log", bound=Samples)
"""A log as it was prepared, or as the equations of a robot: what comes out is what goes in."""
HELD = "held"
Targets = Literal["smooth", "held"]
Steps = Annotated[int, Field(strict=True, ge=1, le=MOST_STEPS)]
IntegratorName = Annotated[Name, make_choice_validator(INTEGRATORS)]


@dataclass(frozen=True)
class Simulation(Options):
    """How the closed loop behind a log is simulated.

    >>> loop = di.Simulation(pd(kp=[900.0, 600.0], kd=[60.0, 40.0], rate=1000.0))
    >>> fit = di.identify(driven, "idim-iv", simulation=loop)
    """

    controller: Annotated[
        Controller, InPython(), "the actual robot's law and gains, as far as they are known"
    ]
    integrator: Annotated[
        IntegratorName | None,
        "of the loop; `ode3` by default, `sdirk2` where targets are held by default",
    ] = None
    substeps: Annotated[Steps, "integration steps a sample of the log"] = 1
    tolerance: Annotated[
        Annotated[Number, Field(ge=TOLERANCES[0], le=TOLERANCES[1])],
        "of a step's error over one plus the value of each position and speed: of `ode45`, whose "
        "steps are as long as it allows",
        Of("integrator", "ode45"),
    ] = TOLERANCE
    width: Annotated[
        Positives | None,
        "smoothing of the sign of Coulomb friction; one per cent of the largest reference speed "
        "by default, where targets are held a tenth of the largest speed, less where joints rest "
        "[rad/s or m/s]",
    ] = None
    targets: Annotated[
        Targets | None,
        "between samples: `smooth` by default, `held` for logs without torque, where drives are "
        "fitted to positions and in other engines",
    ] = None
    references: Annotated[
        tuple[Reference, ...] | None, InPython(), "one a log, where the log has none of its own"
    ] = None
    external: Annotated[
        tuple[Array | None, ...] | None, InPython(), "torques from outside, one a log [Nm or N]"
    ] = None
    start: Annotated[
        Annotated[Name, make_choice_validator(STARTS)] | Mapping[str, Number],
        "where an estimator starts, or values of some base parameters by name, the others zero",
    ] = "least-squares"
    assumed: Annotated[
        str | None, InPython(), "why the reference or the gains are not known but assumed"
    ] = None
    bias: Annotated[
        tuple[float, ...] | None, InPython(), "what the encoders read at zero [rad or m]"
    ] = None
    mount: Annotated[Mount | None, InPython(), "the compliant mount of the base"] = None

    def loop(self, idim: Idim, reference: Reference, **more: Any) -> Loop:
        """The loop along a reference; `more` is what else a `Loop` has.

        Raises
        ------
        InputError
            When parts of it do not fit the robot.
        """
        n, width = idim.robot.n, self.width
        if width is not None and np.shape(width) not in ((), (n,)):
            raise InputError(f"width has {np.size(width)} values, {idim.robot.name} has {n} joints")
        given = None if width is None else np.full(n, width, dtype=float)
        return Loop(
            idim,
            self.controller,
            reference,
            self.integrator or "ode3",
            self.substeps,
            given,
            held=self.targets == HELD,
            bias=None if self.bias is None else np.array(self.bias),
            mount=self.mount,
            tolerance=self.tolerance,
            **more,
        )

    def of_encoders(self, explicit: bool = False) -> Simulation:
        """The same for logs without torque: what was not asked for as suits these.

        Stages of a floating robot, and of a closed chain, are `explicit`.
        """
        usual = "ode3" if explicit else "sdirk2"
        return replace(self, integrator=self.integrator or usual, targets=self.targets or "held")

    def with_values(self, values: Mapping[str, float]) -> Simulation:
        """The same with what was fitted of it, by name; the rest as it is."""
        control = self.controller.with_values(values)
        given = (0.0,) * control.n if self.bias is None else self.bias
        delay = max(0.0, values.get("delay", control.delay))
        return replace(
            self,
            controller=replace(control, delay=delay),
            bias=tuple(float(values.get(f"bias{j + 1}", b)) for j, b in enumerate(given)),
            mount=find_mount(values) or self.mount,
        )

    def of_log(self, log: Samples) -> Simulation:
        """The same of a log without torque, with the width that it then has."""
        found = self.of_encoders()
        return found.smoothed(log) if found.targets == HELD else found

    def smoothed(self, log: Samples, reference: Reference | None = None) -> Simulation:
        """The same with the width that a log has, one for all its runs.

        Where targets are held no reference is asked for.
        """
        if self.width is not None:
            return self
        if reference is None or self.targets == HELD:
            width = choose_share_of_speed(log.dq[:, -log.measured.shape[1] :], HELD_WIDTH)
            width = np.minimum(width, find_holding_width(log.measured, log.runs, log.rate))
        else:
            asked = np.vstack([reference.dq[start:stop] for start, stop in log.runs])
            width = choose_share_of_speed(asked, WIDTH_SHARE)
        return replace(self, width=tuple(width.tolist()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the result has to say of it."""
        return () if self.assumed is None else (self.assumed,)

    def settings(self) -> dict[str, object]:
        """What shaped the simulation, for a result to report."""
        control = self.controller
        width: object = "1 % of the largest reference speed of each log"
        if self.targets == HELD:
            width = "10 % of the largest speed of each log, less where joints rest for long"
        if self.width is not None:
            width = np.atleast_1d(self.width).tolist()
        return {
            "integrator": self.integrator or "ode3",
            "substeps": self.substeps,
            "tolerance": self.tolerance,
            "width": width,
            "targets": self.targets or "smooth",
            "bias": None if self.bias is None else list(self.bias),
            "mount": None if self.mount is None else self.mount.named,
            "start": self.start if isinstance(self.start, str) else dict(self.start),
            "control_rate_hz": control.rate,
            "delay": control.delay,
            "compensation": control.compensation,
            "controller": {
                name: getattr(control, name).tolist()
                for name in ("A", "B", "C", "D", "antiwindup", "band")
            },
            "gain": control.gain.tolist(),
            **{
                name: [x if np.isfinite(x) else None for x in getattr(control, name).tolist()]
                for name in ("limit", *(OF_SERVOS if control.edge else ()))
            },
        }


@dataclass(frozen=True)
class HinderedStretch:
    """A stretch of a log along which no model of the free robot moves."""

    log: str
    start: int
    stop: int
    """`start`, `stop`: its samples."""
    rate: float
    """[Hz]"""
    joints: tuple[str, ...]
    """Those that err far beyond what is usual."""
    worst: str
    """The one that does most."""
    error: float
    usual: float
    """`error`, `usual`: of that joint in a window of the stretch, and in others [rad or m]."""

    @property
    def words(self) -> str:
        """Rows, times and joints."""
        first, last = self.start / self.rate, self.stop / self.rate
        return (
            f"{self.log}: rows {self.start} to {self.stop} ({first:.4g} to {last:.4g} s), where "
            f"{', '.join(self.joints)} move together as the free robot does not ({self.worst} "
            f"{1e3 * self.error:.3g} mrad off within a second, {1e3 * self.usual:.3g} elsewhere)"
        )


@dataclass(frozen=True)
class FreeError:
    """Error of the positions of a free simulation."""

    horizon: float | None
    """Seconds after which it is restarted from the measured motion; None for never."""
    rms: Array
    """Over all samples, from the first [rad or m], shape (n,)."""
    without: tuple[HinderedStretch, ...] = ()
    """Stretches that do not count; behind each the simulation begins anew."""

    @property
    def overall_milli(self) -> float:
        """Of all joints together [mrad or mm]."""
        return 1e3 * float(np.sqrt(np.mean(self.rms**2)))


def choose_judged_error(free: Sequence[FreeError]) -> FreeError:
    """Of the errors of a log the one that models answer for: of whole motion, while it is free."""
    return next((each for each in free if each.without), free[-1])


@dataclass(frozen=True)
class SimulatedFigure:
    """How well the simulated closed loop reproduces a log (brunot2019, Table 3)."""

    log: str
    position_rms: Array
    """Root mean square of ``q_m - q_s`` [rad or m], shape (n,)."""
    position_percent: Array
    torque_percent: Array
    """`position_percent`, `torque_percent`: ``100 ||q_m - q_s|| / ||q_m||`` and ``100 ||tau -
    tau_s|| / ||tau||``, shape (n,)."""
    free: tuple[FreeError, ...] = ()
    """Over horizons, where they were asked for."""
    torque: str = "measured"
    """``"measured"`` or ``"law"``. What the simulated torque is compared with."""


@dataclass(frozen=True)
class AuxiliaryModel:
    """The loops of all runs of all logs."""

    problem: Problem
    simulation: Simulation
    loops: tuple[tuple[tuple[int, int, Loop], ...], ...] = field(repr=False)
    """Tuple of tuple of (start, stop, Loop). Runs of each log, from where they were measured."""
    balanced: frozenset[tuple[int, int]] = frozenset()
    """Logs and first samples of runs that begin at rest where the law bears the robot."""

    def begin(self, log: int, start: int, loop: Loop, theta: Array) -> tuple[Loop, Array | None]:
        """A run's loop where its simulation starts, and how that moves with theta if it does."""
        return balance_start(loop, theta) if (log, start) in self.balanced else (loop, None)

    def motions(self, theta: Array, scale: Array | None = None) -> tuple[Samples, ...]:
        """Logs with the simulated motion and torque in the place of the measured ones.

        `scale`: multiplies the controllers' gains, shape (n,).
        """

        def simulate(run: tuple[int, int, Loop]) -> SimulatedMotion:
            index, start, loop = run
            scaled = loop if scale is None else loop.scaled(scale)
            return rollout(self.begin(index, start, scaled, theta)[0], theta)

        runs = [(k, start, loop) for k, own in enumerate(self.loops) for start, _, loop in own]
        simulated, found = map_in_threads(simulate, runs), []
        for log, loops in zip(self.problem.samples, self.loops, strict=True):
            q, dq, ddq = (np.zeros_like(each) for each in (log.q, log.dq, log.ddq))
            tau = np.zeros_like(log.joint_torque)
            for (start, stop, _), motion in zip(loops, simulated, strict=False):
                run = slice(start, stop)
                q[run], dq[run], ddq[run] = motion.q, motion.dq, motion.ddq
                tau[run] = motion.tau
            found.append(log.along(q, dq, ddq).driven(put_base_before(tau, log.first)))
        return tuple(found)

    def simulated(self, beta: Array, scale: Array | None = None) -> Regression:
        """The problem's torques on the simulated motion: rows ``[Z | y]``."""
        motions = [
            (m.q, m.dq, m.ddq) for m in self.motions(self.problem.base.standard(beta), scale)
        ]
        return self.problem.along(motions, [loops[0][2].width for loops in self.loops])

    def referenced(self) -> Regression:
        """The problem's torques on the references themselves: more instruments."""
        motions = []
        for log, loops in zip(self.problem.samples, self.loops, strict=True):
            q, dq, ddq = log.q.copy(), log.dq.copy(), log.ddq.copy()
            for start, stop, loop in loops:
                along = loop.reference
                for own, asked in zip((q, dq, ddq), (along.q, along.dq, along.ddq), strict=True):
                    own[start:stop, log.first + own.shape[1] - dq.shape[1] :] = asked
            motions.append((q, dq, ddq))
        return self.problem.along(motions)

    def sensitive(self, beta: Array, wanted: str) -> Iterator[tuple[int, int, SensitiveStretch]]:
        """Stretches of all runs with sensitivities: log, first sample of the run, stretch."""
        theta, kept = self.problem.base.standard(beta), self.problem.base.kept
        for index, loops in enumerate(self.loops):
            for start, _, loop in loops:
                own, moved = self.begin(index, start, loop, theta)
                begun = None if moved is None else moved[:, list(kept)]
                for part in sensitive_rollout(own, theta, kept, (wanted,), begun=begun):
                    yield index, start, part

    def differenced(
        self, beta: Array, wanted: str, steps: Array
    ) -> Iterator[tuple[int, int, SensitiveStretch]]:
        """What `sensitive` gives, by forward differences of a further rollout a parameter."""
        standard, n = self.problem.base.standard, self.problem.robot.n
        refuse_chosen_steps(self.simulation.integrator)
        near = [standard(beta), *(standard(beta + step) for step in np.diag(steps))]
        for index, loops in enumerate(self.loops):
            for start, _, loop in loops:
                runs = [sensitive_rollout(self.begin(index, start, loop, t)[0], t) for t in near]
                for part, *others in zip(*runs, strict=True):
                    signals = [getattr(each.motion, wanted)[:, -n:] for each in (part, *others)]
                    slopes = np.stack([each - signals[0] for each in signals[1:]], axis=2) / steps
                    yield index, start, replace(part, **{f"by_{wanted}": slopes})

    def inertia(self, beta: Array) -> Array:
        """Mean diagonal of the mass matrix along the logs, shape (n,)."""
        problem = self.problem
        q = np.vstack([log.q[:: max(1, len(log.q) // MASS_SAMPLES)] for log in problem.samples])
        found = average_inertia(problem.idim, problem.base.standard(beta), q)
        return found[-problem.robot.n :]


def compare_with_simulation(auxiliary: AuxiliaryModel, theta: Array) -> tuple[SimulatedFigure, ...]:
    """Direct comparison of measured and simulated positions and torques, log by log."""
    figures = []
    for log, motion in zip(auxiliary.problem.samples, auxiliary.motions(theta), strict=True):
        used = np.concatenate([np.arange(a, b) for a, b in log.segments])
        position, torque = log.measured[used], log.joint_torque[used]
        n = position.shape[1]
        error = position - motion.q[used, -n:]
        figures.append(
            SimulatedFigure(
                log.name,
                np.sqrt(np.mean(error**2, axis=0)),
                compute_percent_error(error, position),
                compute_percent_error(torque - motion.tau[used, -n:], torque),
                torque=log.torque,
            )
        )
    return tuple(figures)


def measure_free_errors(
    problem: Problem,
    simulation: Simulation,
    theta: Array,
    horizons: Sequence[float | None] = HORIZONS,
) -> tuple[tuple[FreeError, ...], ...]:
    """Errors of free simulations of each log over horizons, from the first sample on.

    A mount, which no encoder reads, is not restarted.
    """
    found: list[list[FreeError]] = [[] for _ in problem.samples]
    stands = [] if simulation.mount is None else simulate_mounts(problem, simulation, theta)
    for horizon in horizons:
        readings = simulate_readings(problem, simulation, theta, horizon, stands)
        for log, simulated, errors in zip(problem.samples, readings, found, strict=True):
            squares, count = np.zeros(log.measured.shape[1]), 0
            for start, stop in log.runs:
                error = log.measured[start:stop] - simulated[start:stop]
                squares += np.sum(error**2, axis=0)
                count += stop - start
            errors.append(FreeError(horizon, np.sqrt(squares / count)))
    return tuple(tuple(errors) for errors in found)


def simulate_readings(
    problem: Problem,
    simulation: Simulation,
    theta: Array,
    horizon: float | None = None,
    stands: Sequence[Mapping[int, Mount]] = (),
) -> tuple[Array, ...]:
    """What the encoders of each log read in free simulations; NaN between its runs.

    `stands`: the mount at the samples of each log, where it goes on as it was: `simulate_mounts`.
    """
    runs = [
        (k, start, stop, replace(loop, mount=stands[k][start]) if stands else loop)
        for k, own in enumerate(build_auxiliary_model(problem, simulation, horizon).loops)
        for start, stop, loop in own
    ]
    found = tuple(np.full_like(log.measured, np.nan) for log in problem.samples)
    motions = map_in_threads(lambda run: rollout(run[-1], theta).measured, runs)
    for (k, start, stop, _), readings in zip(runs, motions, strict=True):
        found[k][start:stop] = readings
    return found


def simulate_mounts(
    problem: Problem, simulation: Simulation, theta: Array
) -> list[dict[int, Mount]]:
    """The mount at each sample of each log, as free simulations of whole runs move it."""
    found: list[dict[int, Mount]] = []
    for loops in build_auxiliary_model(problem, simulation).loops:
        stands: dict[int, Mount] = {}
        for start, stop, loop in loops:
            motion = rollout(loop, theta).mount
            assert motion is not None
            assert loop.mount is not None
            level = loop.reference.q[loop.lead]
            stands.update(
                (k, replace(loop.mount, level=level, start=motion[k - start]))
                for k in range(start, stop)
            )
        found.append(stands)
    return found


def warn_of_chatter(auxiliary: AuxiliaryModel, theta: Array) -> list[str]:
    """Loops whose integration steps are too long for the estimate's friction, in words."""
    notes = []
    for loops in auxiliary.loops:
        for _, _, loop in loops[:1]:
            try:
                check_integration(loop, theta)
            except InputError as error:
                notes.append(f"the simulated loop chatters: {error}")
    return notes


def refuse_chatter(problem: Problem, simulation: Simulation, theta: Array) -> None:
    """Refuse an estimate whose simulated loop the integrator cannot follow."""
    for chatter in warn_of_chatter(build_auxiliary_model(problem, simulation), theta):
        raise ComputationError(chatter)


def compute_percent_error(error: Array, signal: Array) -> Array:
    """``100 ||error|| / ||signal||`` column by column."""
    norms = np.maximum(np.linalg.norm(signal, axis=0), 1e-300)
    return np.asarray(100.0 * np.linalg.norm(error, axis=0) / norms)


def build_auxiliary_model(
    problem: Problem, simulation: Simulation, horizon: float | None = None
) -> AuxiliaryModel:
    """Loops for all runs of a problem's logs.

    `horizon`: restart from the measured motion every so many seconds.
    """
    if simulation.references is not None and len(simulation.references) != len(problem.samples):
        raise InputError(f"{len(simulation.references)} references for {len(problem.samples)} logs")
    held = simulation.targets == HELD
    control, robot = simulation.controller, problem.robot
    # D[:, 3] answers the measured position: inputs are q_r, dq_r, ddq_r, q, dq
    bears = control.states == 0 and control.compensation == "none" and bool(np.all(control.D[:, 3]))
    bears = bears and not robot.floating and simulation.mount is None
    loops, balanced = [], set()
    for k, log in enumerate(problem.samples):
        if log.rests is not None:
            raise InputError(f"{log.name}: rests are not simulated; leave rests out, or take wls")
        reference = choose_reference(simulation, log, k)
        refuse_sensors(problem.robot, "a simulated loop predicts")
        refuse_unknown_forces(log)
        external, base = log.external, log.base_motion
        if simulation.external is not None:
            beside = simulation.external[k]
            external = beside if external is None or beside is None else external + beside
        reference = close_reference(problem.idim, reference, log.q[0])
        smoothed = simulation.smoothed(log, reference)
        begun = log.q.copy()
        if held:
            begun[:, -log.measured.shape[1] :] = log.measured
        own = []
        for start, stop in cut_into_windows(log, horizon):
            lead = min(start, LEAD) if held and control.rate is None else 0
            known, rests = False, False
            if not held and horizon is None:
                known, rests = is_on_reference(log, reference, start, stop)
            if rests and bears and not known:
                balanced.add((k, start))
            place, speed = begun[start].copy(), log.dq[start].copy()
            if held:
                speed = estimate_start_speed(log, start, stop)
            elif known:
                place[-robot.n :], speed[-robot.n :] = reference.q[start], reference.dq[start]
            with name_section_in_errors():
                loop = smoothed.loop(
                    problem.idim,
                    reference.rows(start - lead, stop),
                    external=None if external is None else external[start - lead : stop],
                    base=None if base is None else base[start - lead : stop],
                    model=problem.idim.nominal if problem.robot.has_nominal else None,
                    q0=place,
                    dq0=speed,
                    lead=lead,
                )
            own.append((start, stop, loop))
        loops.append(tuple(own))
    return AuxiliaryModel(problem, simulation, tuple(loops), frozenset(balanced))


def choose_reference(simulation: Simulation, log: Samples, number: int) -> Reference:
    """The reference that is given for a log, or else its own, as long and as fast as the log."""
    if simulation.references is not None:
        reference: Reference | None = simulation.references[number]
    else:
        reference = extract_logged_reference(log, simulation.targets == HELD)
    if reference is None:
        raise InputError(
            f"{log.name}: the log has no reference (qref) to simulate; give it the column, or a "
            "[reference] section"
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
    return reference


def is_on_reference(log: Samples, reference: Reference, start: int, stop: int) -> tuple[bool, bool]:
    """Whether joints begin on their reference, and whether they rest there beside one at rest.

    As far as a parabola through a run's first readings tells both from their scatter about it.
    """
    count = min(stop - start, max(5, round(FIRST * log.rate)))
    if count < 5:
        return False, False
    time = np.arange(count) / (count - 1)
    fit = np.polynomial.polynomial.polyfit(time, log.measured[start:][:count], 2)
    left = log.measured[start:][:count] - np.polynomial.polynomial.polyval(time, fit).T
    scatter = np.sqrt(np.sum(left**2, axis=0) / (count - 3))
    beside = SCATTER * np.maximum(scatter, ROUNDING)
    speed = reference.dq[start] * (count - 1) / log.rate
    along = np.abs(fit[1] - speed) <= STEEPER * beside
    rests = bool(np.all(along & (reference.dq[start] == 0.0)))
    return bool(np.all(along & (np.abs(fit[0] - reference.q[start]) <= beside))), rests


def balance_start(loop: Loop, theta: Array) -> tuple[Loop, Array]:
    """The loop from where a law without states bears the robot that rests, and its derivatives.

    ``gain (D w) = tau(q_r, 0, 0)`` solved for the position among the inputs w: gravity as on the
    reference.

    Returns
    -------
    loop : Loop
    moved : ndarray, shape (n, standard parameters)
        Derivatives of the joints' start.
    """
    idim, control, target = loop.idim, loop.controller, loop.reference.q[0]
    at = np.stack([target, *np.zeros((2, len(target)))])[:, None]
    tau = idim.torque(theta, *at)[0]
    if loop.external is not None:
        tau = tau - loop.external[0]
    borne = np.clip(tau / control.gain, -control.limit, control.limit)
    q0 = (borne - control.D[:, 0] * target) / control.D[:, 3]
    within = np.abs(tau) < control.gain * control.limit
    slope = np.where(within, 1.0 / (control.gain * control.D[:, 3]), 0.0)
    unloaded = Conditions(load=np.zeros((1, len(target))))  # no friction slides, whatever its load
    moved = slope[:, None] * idim.regressor(at[0], at[1], at[2], unloaded)[0]
    return replace(loop, q0=q0, dq0=np.zeros_like(q0)), moved


def refuse_unknown_forces(log: GeneralisedSamples) -> None:
    """Refuse logs of which nobody knows all that acts on the joints beside their drives."""
    free = sorted({name for names in log.sets for name in names})
    if free:
        raise InputError(
            f"{log.name}: the load on {', '.join(free)} is not measured, so the loop cannot be "
            "simulated: take wls, ml or pc-idim-ls, or ref-iv"
        )
    if log.observed.equations == "base":
        raise InputError(
            f"{log.name}: equations = 'base' take no drives, and so there is no loop to simulate"
        )


def estimate_start_speed(log: Samples, start: int, stop: int) -> Array:
    """Speeds where a simulation begins.

    At the first sample of a run, where filters have an edge, the slope of a parabola through the
    positions of its first moments.
    """
    if start not in {a for a, _ in log.runs}:
        return np.asarray(log.dq[start])
    count = min(stop - start, max(5, round(FIRST * log.rate)))
    if count < 3:
        return np.asarray(log.dq[start])
    time = np.arange(count) / log.rate
    slope = np.polynomial.polynomial.polyfit(time, log.measured[start:][:count], 2)[1]
    return np.concatenate([log.dq[start, : -len(slope)], slope])


def cut_into_windows(log: Samples, horizon: float | None) -> list[tuple[int, int]]:
    """Runs of a log, cut into pieces of so many seconds; what is left at an end is shorter."""
    if horizon is None:
        return list(log.runs)
    step = max(2, round(horizon * log.rate))
    return [(a, min(a + step, stop)) for start, stop in log.runs for a in range(start, stop, step)]


def lacks_torque(log: GeneralisedSamples) -> bool:
    """Whether a log has no torques, and equations that take them."""
    return log.torque in ("none", "law") and log.observed.equations != "base"


def fill_missing_torque(log: Log, simulation: Simulation, passive: Booleans) -> Log:
    """A log without torque with that of the controllers' law along the measured motion.

    ``gain * sat(kp (qref - q) + kd (dqref - dq))``, or as the law is, its targets as late as told;
    of servos without their integral. Zero at `passive` joints, which have no drive.
    """
    if log.torque == "measured":
        return log
    control = simulation.controller
    reference = extract_logged_reference(log, held=True)
    if reference is None:
        raise InputError(f"{log.name}: has neither torque nor targets (qref); one is needed")
    if not np.any(np.ptp(reference.q, axis=0) > 0.0):
        raise InputError(
            f"{log.name}: the targets never move, and so the log does not excite the drives"
        )
    states = control.states and not control.edge
    if states or control.compensation != "none" or log.q.shape[1] != control.n:
        raise InputError(
            f"{log.name}: has no torque; only the law of p, pd, p-p and servo of {log.q.shape[1]} "
            "joints can replace it"
        )
    targets = [np.zeros_like(log.q) for _ in range(3)]
    for start, stop in log.runs:
        lead = min(start, LEAD)
        late = np.arange(lead, lead + stop - start, dtype=float) - control.delay * log.rate
        for own, signal in zip(targets, (reference.q, reference.dq, reference.ddq), strict=True):
            own[start:stop] = average_held_signals(signal[start - lead : stop], late)
    w = np.stack([*targets, log.measured, log.dq], axis=2)
    output = np.clip(control.answer(w), -control.limit, control.limit)
    return replace(log, tau=np.where(passive, 0.0, control.gain * output), torque="law")


def extract_logged_reference(log: Samples, held: bool = False) -> Reference | None:
    """The reference that a log holds; missing derivatives are differences, of held targets zero."""
    if log.qref is None:
        return None
    if held:
        still = np.zeros_like(log.qref)
        return Reference(log.rate, log.qref, still if log.dqref is None else log.dqref, still)
    return Reference(log.rate, log.qref, *differentiate_reference(log))
