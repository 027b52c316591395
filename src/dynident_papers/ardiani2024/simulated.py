"""What is simulated for the instrumental variable experiment: robot, references and logs.

The robot is the TX40 twin under the controller of ardiani2024, IV-A; its 60 base parameters
are those of friction "coulomb-viscous".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from dynident.control.controller import Controller, p_p
from dynident.control.reference import Reference, bang_bang, quintic
from dynident.core.arrays import Array, freeze_array
from dynident.dynamics.base import base_parameters
from dynident.estimators.closed_loop import Simulation
from dynident.recording.prepare import Samples, prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem, Regression
from dynident.regression.row_kinds import ROWS
from dynident.robot.model import Robot
from dynident.simulation.loop import Loop
from dynident.simulation.record import record_rollout
from dynident.simulation.sensors import quantise_positions
from dynident_papers.experiment import (
    COUNT,
    average_twin_inertia,
    build_encoders,
    build_stribeck_elements,
    draw_disturbance,
    list_top_speeds,
)
from dynident_papers.published import BANDWIDTHS
from dynident_papers.twin import Twin, load_twin

BANDWIDTH = np.array(BANDWIDTHS)
"""omega_dyn, of the position loops (ardiani2024, IV-A) [Hz]."""
POSITION_FILTER, TORQUE_FILTER = 5.0, 2.0
"""Cutoffs over omega_dyn (ardiani2024, II-C)."""
VELOCITY_LAG = 1e-3
"""Over which the controller differences encoder counts [s]."""
COARSE = 2e-2
"""Encoder resolution of the downgraded data (ardiani2024, IV-C) [degrees per count]."""
VALIDATION_RATE = 1000.0
"""At which cross-validation data are stored (ardiani2024, IV-A) [Hz]."""
DURATION = 8.0
"""Of a reference (ardiani2024, IV-B) [s]."""
FRICTION = "coulomb-viscous"
"""With rotors it gives the paper's 60 base parameters."""
WIDTH = 0.01
"""Of the smoothed sign of the velocity, plant's and simulation's: share of the top speed."""
SLOW = 3.0
"""Rows of a joint that is slower than so many widths are not fitted."""
SHARES = np.array([6.6, 6.6, 6.4, 6.6, 8.2, 7.2])
"""Random torque on each joint, in per cent of its own rms torque."""
CORNER = 10.0
"""Corner frequency of the random torques [Hz]."""
STRIBECK_SPEED = 0.2
"""Over which the excess friction falls to 1/e [rad/s]."""
SPREAD = 0.3
"""CAD values: each body and rotor is wrong by up to this share."""

POINTS = np.radians(
    [
        [20, 0, -50, -70, -10, -100],
        [-30, 20, 10, -20, 50, -60],
        [30, -70, 40, 0, 10, -150],
        [10, -50, 70, 60, 40, -130],
        [60, 20, 20, -10, 70, 70],
        [90, 70, 80, 100, -60, 100],
        [-80, 10, -30, 30, 30, -40],
        [60, -50, 60, -90, -40, -60],
        [30, 70, 10, 20, 20, 90],
    ]
)
"""Of the identification: out of 1000 random draws, one whose condition is near 200 [rad]."""
CHECKS = np.radians(
    [
        [
            [75, -45, 25, -5, 35, -115],
            [-65, 15, -15, -85, -15, 75],
            [35, -35, 35, 35, 35, -15],
            [75, 5, -65, 85, 5, -55],
            [-35, -35, 55, -35, -45, -95],
            [85, 35, -15, -75, -15, -65],
        ],
        [
            [-25, -55, 25, 5, 45, -105],
            [75, 15, -25, -35, -45, -75],
            [25, -25, 75, 95, 65, 95],
            [-45, 55, 35, 35, -35, -45],
            [55, -5, 65, 105, 5, 25],
            [-45, 65, 35, 25, -45, -115],
        ],
        [
            [5, 35, -55, 25, -45, -5],
            [65, 65, 5, 55, 15, 135],
            [-35, 15, -25, -75, 45, -5],
            [95, 55, 5, 115, -55, -105],
            [45, -35, 75, -25, 5, -5],
            [75, 55, 5, 135, -35, -95],
        ],
    ]
)
"""Of the three cross-validations, random as well [rad]."""
MOVE = 1.2
"""Time of each of their moves [s]."""
SPEED, RAMP = 0.7, 5.0
"""Limits of the moves before they are stretched to `DURATION`: share of the robot's, 1/s."""


@dataclass(frozen=True)
class Scenario:
    """What the robot does, what the log holds, and what the estimators assume."""

    label: str
    seen: float = COUNT
    stored: float = COUNT
    """`seen`, `stored`: encoder resolution in the loop and in the log [degrees per count]."""
    bandwidth: float = 1.0
    """Of the simulated loops over the robot's."""
    stribeck: float = 0.0
    """The robot's friction at standstill above fc, as a share of fc."""
    slow: bool = False
    """With a second log at low speed."""
    position: float = 1.0
    torque: float = 1.0
    """`position`, `torque`: cutoffs over the paper's, `POSITION_FILTER` and `TORQUE_FILTER` times
    omega_dyn."""
    rows: str = "decimated"
    """Name in `dynident.regression.row_kinds.ROWS`."""
    errors: float = 1.0
    """The random torques over those of the other scenarios."""
    start: str = "cad"
    """"cad", or a name in `dynident.estimators.closed_loop.STARTS`."""


@dataclass(frozen=True)
class Bench:
    """The robot and its references."""

    twin: Twin
    rate: float
    """Of controllers, logs and integration [Hz]."""
    moves: Reference
    slow: Reference
    """`moves`, `slow`: of the identification."""
    checks: tuple[Reference, ...]
    """Of the cross-validations."""
    integrator: str = "ode3"
    """Name in `dynident.simulation.integrators.INTEGRATORS`."""

    @cached_property
    def width(self) -> Array:
        """Of the sign of the velocity, shape (6,) [rad/s]."""
        return np.asarray(WIDTH * np.max(np.abs(self.moves.dq), axis=0))

    def controller(self, scale: float = 1.0) -> Controller:
        """P around P, its band times `scale` with the damping left alone.

        The velocity loop is four times as fast as the position loop, which is critical
        damping for the mean inertia; the position loop then falls by 3 dB at
        ``2 sqrt(sqrt(2) - 1) kp``. Velocity is differenced over `VELOCITY_LAG` of counts.
        """
        kp = scale * 2.0 * np.pi * BANDWIDTH / (2.0 * np.sqrt(np.sqrt(2.0) - 1.0))
        kv = 4.0 * kp * average_twin_inertia(self.twin)
        lag = max(1, round(VELOCITY_LAG * self.rate))
        return p_p(kp, kv, rate=self.rate, velocity="differences", lag=lag)

    @cached_property
    def clean(self) -> Regression:
        """Noise-free rows of the identification, with the paper's filters."""
        return self.noise_free([self.moves])

    @cached_property
    def held_out(self) -> Regression:
        """Noise-free rows of the cross-validations."""
        return self.noise_free(self.checks)

    def noise_free(self, references: Sequence[Reference]) -> Regression:
        """Rows of the true motion and the true torque, in which the truth leaves nothing."""
        logs, motions = [], []
        exact = build_encoders(self.twin, count=0.0)
        for reference in references:
            true = record_rollout(self.loop(reference), self.twin.theta, exact).motion
            drives = self.robot.drives
            log = Recording("noise-free", self.rate, q=true.q, tau=true.tau, drives=drives)
            logs.append(self.prepared(log))
            motions.append((true.q, true.dq, true.ddq))
        return Problem(self.robot, logs, FRICTION).along(motions, [self.width] * len(logs))

    def loop(self, reference: Reference) -> Loop:
        """The robot under its controller, undisturbed."""
        return Loop(
            self.twin.idim,
            self.controller(),
            reference,
            width=self.width,
            integrator=self.integrator,
        )

    def prepared(self, log: Recording, position: float = 1.0, torque: float = 1.0) -> Samples:
        """A log behind the paper's filters, cutoffs times `position` and `torque`."""
        return prepare(
            log,
            BANDWIDTH.tolist(),
            position_hz=(POSITION_FILTER * position * BANDWIDTH).tolist(),
            torque_hz=(TORQUE_FILTER * torque * BANDWIDTH).tolist(),
            drop_below=(SLOW * self.width).tolist(),
        )

    @cached_property
    def rms(self) -> Array:
        """Of the robot's filtered torques, shape (6,) [Nm]."""
        factors = self.clean.factors
        return np.sqrt(factors.squared_torques / [group.rows for group in factors.groups])

    @cached_property
    def truth(self) -> Array:
        """True base parameters, shape (60,)."""
        base = self.clean.base
        return np.asarray(base.matrix @ self.twin.values(base.idim.names))

    @cached_property
    def believed(self) -> Array:
        """CAD values: bodies and rotors off by up to `SPREAD`, no friction, shape (80,).

        A body keeps its shape, so that it remains one.
        """
        inertial, names = self.twin.idim.inertial, self.twin.idim.names
        draw = np.random.default_rng(0).uniform(1.0 - SPREAD, 1.0 + SPREAD, len(self.twin.theta))
        factor = np.concatenate([np.repeat(draw[: inertial // 10], 10), draw[inertial:]])
        factor[[k for k, name in enumerate(names) if name[0] == "f"]] = 0.0
        return np.asarray(factor * self.twin.theta)

    @cached_property
    def robot(self) -> Robot:
        """The robot as estimators are given it: with CAD inertials, which priors believe."""
        bodies, _ = self.twin.idim.split(self.believed)
        return replace(self.twin.robot, nominal=freeze_array(bodies))

    @cached_property
    def cad(self) -> dict[str, float]:
        """Where iterations start: the base parameters of the CAD values."""
        base = base_parameters(self.twin.idim)
        return dict(zip(base.names, (base.matrix @ self.believed).tolist(), strict=True))

    def log(self, scenario: Scenario, reference: Reference, seed: int) -> Recording:
        """A log as a scenario has it; the seed is that of the random torques."""
        twin, n = self.twin, self.twin.robot.n
        loop = replace(
            self.loop(reference),
            external=draw_disturbance(
                scenario.errors * 1e-2 * SHARES * self.rms, reference, CORNER, seed
            ),
            elements=build_stribeck_elements(
                scenario.stribeck * twin.coulomb, np.full(n, STRIBECK_SPEED)
            ),
        )
        seen = record_rollout(
            loop, twin.theta, build_encoders(twin, scenario.seen), scenario.label
        ).recording
        return replace(seen, q=quantise_positions(seen.q, np.full(n, np.radians(scenario.stored))))

    def problem(self, scenario: Scenario, draw: int = 0) -> Problem:
        """What a scenario's estimators are given, under one draw of the random torques."""
        references = [self.moves, self.slow][: 1 + scenario.slow]
        logs = [
            self.prepared(self.log(scenario, reference, seed), scenario.position, scenario.torque)
            for seed, reference in enumerate(references, start=100 * draw)
        ]
        return ROWS[scenario.rows](Problem(self.robot, logs, FRICTION))

    def simulation(self, scenario: Scenario) -> Simulation:
        """How a scenario's estimators simulate the loop."""
        start = self.cad if scenario.start == "cad" else scenario.start
        return Simulation(
            self.controller(scenario.bandwidth),
            width=tuple(self.width),
            start=start,
            integrator=self.integrator,
        )

    def validations(self, scenario: Scenario) -> tuple[Problem, ...]:
        """The three cross-validations, stored at 1 kHz with the scenario's encoders."""
        step = round(self.rate / VALIDATION_RATE)
        found = []
        for seed, reference in enumerate(self.checks, start=10):
            log = self.log(scenario, reference, seed)
            q, tau = log.q[::step], log.tau[::step]
            stored = Recording(log.name, VALIDATION_RATE, q, tau, drives=log.drives)
            found.append(Problem(self.robot, self.prepared(stored), FRICTION))
        return tuple(found)


@lru_cache(maxsize=2)
def build_bench(rate: float = 5000.0, coulomb: bool = True, integrator: str = "ode3") -> Bench:
    """The TX40 twin on its references.

    Parameters
    ----------
    rate : float
        [Hz]
    coulomb : bool
        Whether the robot has Coulomb friction; the model has it in either case.
    integrator : str
        Name in `dynident.simulation.integrators.INTEGRATORS`; the papers' by default.
    """
    twin = load_twin()
    if not coulomb:
        kept = [not name.startswith("fc") for name in twin.idim.names]
        twin = replace(twin, theta=np.where(kept, twin.theta, 0.0))
    times = MOVE * np.arange(CHECKS.shape[1])
    speed = SPEED * list_top_speeds(twin)
    return Bench(
        twin,
        rate,
        moves=build_stretched_moves(rate, POINTS, speed),
        slow=build_stretched_moves(rate, POINTS[:4], speed),
        checks=tuple(quintic(rate, points, times) for points in CHECKS),
        integrator=integrator,
    )


def build_stretched_moves(rate: float, points: Array, speed: Array) -> Reference:
    """Smoothed bang-bang moves from point to point that take `DURATION` together.

    Parameters
    ----------
    rate : float
        [Hz]
    points : ndarray, shape (points, n)
        [rad]
    speed : ndarray, shape (n,)
        Limits before the moves are stretched [rad/s].
    """
    # times shrink with the speed and with the square root of the acceleration
    s = bang_bang(rate, points, speed, RAMP * speed, smoothing=0.5).duration / DURATION
    return bang_bang(rate, points, s * speed, s**2 * RAMP * speed, smoothing=0.5)
