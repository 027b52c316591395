"""What an identification found, frozen: fresh or read from a file, all that its forms need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.files import refuse_outputs
from dynident.core.inertia import find_smallest_eigenvalue
from dynident.core.schema import Spec
from dynident.core.series import PositionSeries, TorqueSeries
from dynident.diagnosis.examine import Finding
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import Idim
from dynident.dynamics.whole import WholeModel
from dynident.estimators.closed_loop import (
    FreeError,
    SimulatedFigure,
    Simulation,
    simulate_readings,
)
from dynident.estimators.estimate import Estimate
from dynident.fit.figures import FitFigure, decompose_torques, thin_positions
from dynident.fit.floor import Floor
from dynident.fit.logs import Logs, LogWords
from dynident.fit.provenance import Provenance, RobotFiles
from dynident.fit.residuals import GroupResiduals
from dynident.fit.verdict import ANYWAY, REFUTED, Verdict
from dynident.recording.prepare import Preparation, Samples, prepare_by_options
from dynident.recording.read import Files, take_log
from dynident.recording.recording import Recording
from dynident.regression.compliance import SpringEvidence
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.robot.mjcf import list_model_files
from dynident.robot.model import Robot


@dataclass(frozen=True)
class ValidationFigures:
    """Errors on one held-out log, of the model and of the robot file's own inertials.

    Beside those of torque, those of free simulations where drives were fitted to positions.
    """

    log: str
    entries: tuple[FitFigure, ...]
    nominal: tuple[FitFigure, ...]
    free: tuple[FreeError, ...] = ()
    torque: str = "measured"

    @property
    def hindered(self) -> tuple[str, ...]:
        """Stretches that are counted apart, in words."""
        return tuple(f"{own.words}, counted apart" for each in self.free for own in each.without)


@dataclass(frozen=True)
class Result:
    """A model with its certificate, its error bars and its errors."""

    method: str
    base: BaseParameters
    estimate: Estimate
    logs: Logs
    """What was fitted and what was held out."""
    log_words: tuple[LogWords, ...]
    """The same in words, fitted ones first."""
    residuals: tuple[GroupResiduals, ...]
    """Of the rows that were fitted."""
    preparation: Preparation
    """Of the fitted logs, as others are prepared."""
    lowpass_hz: float
    """Of the all-samples figures [Hz]."""
    identification: tuple[FitFigure, ...]
    nominal: tuple[FitFigure, ...]
    """`identification`, `nominal`: errors on the fitted logs, of the model and the robot file's."""
    validation: tuple[ValidationFigures, ...]
    condition_number: float
    """Of the sigma-weighted regressor with columns scaled to unit length."""
    rank: int
    settings: dict[str, Any]
    """All that shaped the result."""
    warnings: tuple[str, ...]
    timings: dict[str, float]
    """Seconds per stage, with their total."""
    verdict: Verdict
    """Whether to trust it, with reasons."""
    robot_files: RobotFiles
    """The text of the files that the robot came from."""
    provenance: Provenance
    findings: tuple[Finding, ...] = ()
    """What is wrong with the fitted logs, where something explains them better."""
    simulated: tuple[SimulatedFigure, ...] = ()
    """How well the simulated loop reproduces the fitted logs, where a method simulates."""
    floor: tuple[Floor, ...] = ()
    """What of the logs' torques no function of the motion explains, where motions repeat."""
    springs: tuple[SpringEvidence, ...] = ()
    """What the logs tell of joints with a spring."""
    simulation: Simulation | None = None
    """The loop of methods that simulate it, without what is of one log."""
    study: Spec | None = None
    """Where a study was run."""

    @property
    def samples(self) -> tuple[GeneralisedSamples, ...]:
        """The logs that were fitted; read again where the fit was."""
        return tuple(log.expecting(self.idim, self.theta) for log in self.logs.fitted)

    @property
    def held_out(self) -> tuple[GeneralisedSamples, ...]:
        """The logs of `validation`; likewise."""
        return tuple(log.expecting(self.idim, self.theta) for log in self.logs.held_out)

    @property
    def idim(self) -> Idim:
        """The model that was identified."""
        return self.base.idim

    @property
    def essential(self) -> tuple[int, ...] | None:
        """Base parameters that survived elimination, where it was asked for."""
        found = self.estimate.essential
        return None if found is None else found.kept

    @property
    def estimated_count(self) -> int:
        """How many base parameters were estimated; the others are zero."""
        return self.base.count if self.essential is None else len(self.essential)

    @property
    def robot(self) -> Robot:
        """The robot that was identified."""
        return self.base.idim.robot

    @property
    def torque_source(self) -> str:
        """What torque errors are of: ``measured``, or of the ``law`` where a log has none."""
        return "measured" if all(log.torque == "measured" for log in self.log_words) else "law"

    @property
    def encoder_only(self) -> bool:
        """Whether positions were fitted and no torque measured: then no torque has an error."""
        return self.estimate.fitted is not None and self.torque_source == "law"

    @property
    def of_factors(self) -> bool:
        """Whether it was made of factors: what takes samples is then not known."""
        return "sources" in self.settings

    @property
    def contact_loads(self) -> tuple[tuple[str, float], ...]:
        """What contacts bear of a floating robot while it stands, by log [kg]."""
        return tuple((log.name, log.borne_kg) for log in self.log_words if log.borne_kg is not None)

    @cached_property
    def theta(self) -> Array:
        """Standard parameters that give the model's torques.

        Physically meaningful link by link only where the method determines them; else the
        base parameters in the places of those they keep.
        """
        theta = self.estimate.theta
        return self.base.standard(self.estimate.beta) if theta is None else theta

    @cached_property
    def phi(self) -> Array | None:
        """Inertial parameters, shape (bodies, 10), where the method determines them."""
        theta = self.estimate.theta
        return None if theta is None else self.idim.split(theta)[0]

    @property
    def bare(self) -> str:
        """What gives no links, where there are none: the method, with the consistency asked for."""
        asked = self.settings.get("consistency")
        return self.method if asked is None else f"{self.method} with consistency {asked!r}"

    @cached_property
    def smallest_eigenvalue(self) -> float | None:
        """Smallest pseudo-inertia eigenvalue over all bodies."""
        _, bodies = self.every_body
        return float(find_smallest_eigenvalue(bodies).min()) if len(bodies) else None

    @property
    def every_body(self) -> tuple[tuple[str, ...], Array]:
        """All that has to be a body by name, shape (bodies, 10): links, and rests of split ones.

        None where the method does not determine them.
        """
        if self.phi is None:
            return (), np.zeros((0, 10))
        rests = [rest.name for rest in self.idim.structure.rests]
        return (*self.robot.links, *rests), np.vstack([self.phi, self.idim.rests(self.theta)])

    @property
    def consistent(self) -> bool:
        """Whether all bodies, rotors and friction parameters are physically consistent."""
        theta = self.estimate.theta
        return theta is not None and self.idim.is_consistent(theta)

    @property
    def inconsistencies(self) -> tuple[str, ...]:
        """Links and drive parameters that are not physically consistent."""
        names, bodies = self.every_body
        values = find_smallest_eigenvalue(bodies) if names else ()
        links = (f"pseudo-inertia {name}" for name, value in zip(names, values) if value <= 0.0)
        drives = (
            f"{parameter.name} = {float(value):.3g}"
            for parameter, value in zip(self.idim.parameters, self.theta, strict=True)
            if parameter.positive and value <= 0.0
        )
        return (*links, *drives)

    @cached_property
    def model(self) -> WholeModel:
        """The model at work: what `inverse_dynamics` and its kin are functions of."""
        return WholeModel(self.idim, self.theta)

    @property
    def width(self) -> Array | None:
        """Of the sign that friction had where it was simulated, as far as the settings tell it.

        Shape (1,) or (n,) [rad/s or m/s].
        """
        found = self.settings.get("simulation", {}).get("width")
        return np.array(found, dtype=float) if isinstance(found, list) else None

    def inverse_dynamics(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        ddq: npt.ArrayLike,
        width: npt.ArrayLike | None = None,
    ) -> Array:
        """Torque for a motion, rotors and friction included; see `WholeModel.inverse_dynamics`.

        >>> fit.inverse_dynamics([0.1, 0.2], [0.0, 0.0], [0.0, 0.0]).shape
        (2,)

        Parameters
        ----------
        q, dq, ddq : array_like, shapes (..., nq), (..., dof) and (..., dof)
            [rad or m], [rad/s or m/s], [rad/s^2 or m/s^2]
        width : array_like, shape () or (n,), optional
            Speed over which Coulomb friction changes its sign [rad/s or m/s].

        Returns
        -------
        ndarray, shape (..., dof)
            [Nm or N]
        """
        return self.model.inverse_dynamics(q, dq, ddq, width)

    def forward_dynamics(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        tau: npt.ArrayLike,
        width: npt.ArrayLike | None = None,
    ) -> Array:
        """Acceleration under torques of the drives; see `WholeModel.forward_dynamics`.

        >>> tau = fit.inverse_dynamics([0.1, 0.2], [1.0, 0.0], [2.0, 3.0])
        >>> fit.forward_dynamics([0.1, 0.2], [1.0, 0.0], tau).round(6)
        array([2., 3.])

        Parameters
        ----------
        q, dq, tau : array_like, shapes (..., nq), (..., dof) and (..., dof)
            [rad or m], [rad/s or m/s], [Nm or N]
        width : array_like, shape () or (n,), optional
            Speed over which Coulomb friction changes its sign [rad/s or m/s].

        Returns
        -------
        ndarray, shape (..., dof)
            [rad/s^2 or m/s^2]
        """
        return self.model.forward_dynamics(q, dq, tau, width)

    def gravity(self, q: npt.ArrayLike) -> Array:
        """Torque that holds the bodies; see `WholeModel.gravity`.

        >>> fit.gravity([0.1, 0.2]).shape
        (2,)
        """
        return self.model.gravity(q)

    def mass_matrix(self, q: npt.ArrayLike) -> Array:
        """Mass matrix with rotors; see `WholeModel.mass_matrix`.

        >>> fit.mass_matrix([0.1, 0.2]).shape
        (2, 2)
        """
        return self.model.mass_matrix(q)

    def torque(self, q: npt.ArrayLike, dq: npt.ArrayLike, ddq: npt.ArrayLike) -> Array:
        """Predicted torques of one sample or of many, shape (..., rows).

        Behind those of all equations of motion are the wrenches at sensors in the chain.

        >>> fit.torque(samples.q, samples.dq, samples.ddq).shape
        (1600, 2)
        """
        shape, (at, speed, rate) = self.model.stacked(q, dq, ddq)
        return self.idim.torque(self.theta, at, speed, rate).reshape(*shape[:-1], -1)

    def prepare(self, log: Recording | Samples | Files) -> Samples:
        """Prepare another log with the cutoffs of the identification.

        >>> samples = fit.prepare("run2.csv")

        Parameters
        ----------
        log : Recording, path, DataFrame, or sequence of these
            Files and data frames as `read_log` knows them by the names of their columns; it reads
            others. Samples are prepared already.
        """
        if isinstance(log, Samples):
            return log
        return prepare_by_options(take_log(log, self.robot), self.preparation)

    def drive_parameters(self, joint: int) -> dict[str, float | None]:
        """A joint's rotor inertia and friction by symbol; None where it is regrouped.

        A method that gives standard parameters gives all of them; otherwise those that
        are base parameters of their own, with nothing regrouped into them.

        >>> list(fit.drive_parameters(0))
        ['Ia', 'fv', 'fc', 'off']
        """
        pairs = zip(self.base.kept, np.any(self.base.K != 0.0, axis=1), strict=True)
        alone = {int(k) for k, regrouped in pairs if not regrouped}
        known = self.estimate.theta is not None
        values: dict[str, float | None] = {}
        for index, parameter in enumerate(self.idim.parameters):
            if index >= self.idim.inertial and parameter.number == joint + 1:
                given = known or index in alone
                values[parameter.symbol] = float(self.theta[index]) if given else None
        return values

    def refuse_inputs(self, paths: Sequence[Path]) -> None:
        """Refuse to write over the files that the robot came from."""
        refuse_outputs(paths, list_model_files(self.robot))

    def require_trust(self, what: str, anyway: bool) -> None:
        """Refuse to make something of a refuted result."""
        if self.verdict.state == REFUTED and not anyway:
            first = self.verdict.reasons[0].words
            raise ComputationError(
                f"the result is refuted ({first}): {what} requires {ANYWAY}; better to repair its "
                "logs"
            )

    def simulate_positions(self, points: int = 4000) -> tuple[PositionSeries, ...]:
        """Positions of all logs beside free simulations of them, thinned for plots.

        Empty unless drives were fitted to positions.
        """
        fitted = self.estimate.fitted
        if fitted is None:
            return ()
        found = []
        other = replace(fitted.loop, references=None, external=None)
        for logs, loop in ((self.samples, fitted.loop), (self.held_out, other)):
            if logs:
                readings = simulate_readings(Problem.of(self.base, logs), loop, self.theta)
                found += [thin_positions(log, q, points) for log, q in zip(logs, readings)]
        return tuple(found)

    def series(self, points: int = 4000) -> tuple[TorqueSeries, ...]:
        """Low-passed torques of all logs and their parts, thinned for plots.

        >>> [series.name for series in fit.series()]
        ['run1.csv', 'run2.csv']
        """
        nominal = self.idim.nominal if self.robot.has_nominal else None
        fitted, held_out = (
            [
                decompose_torques(self.idim, self.theta, nominal, log, self.lowpass_hz, points)
                for log in logs
            ]
            for logs in (self.samples, self.held_out)
        )
        return (*fitted, *(replace(each, fitted=None) for each in held_out))
