"""Stored results at work: validation on other logs, and model files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dynident.api import measure_held_out_log
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.nearest import nearest_to_base
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import find_smallest_eigenvalue, from_com, to_inertia_matrix
from dynident.core.schema import validate_data
from dynident.dynamics.base import BaseParameters, find_observed_base
from dynident.dynamics.equations import PLAIN
from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import SensorParameter
from dynident.dynamics.whole import Model
from dynident.estimators import TORQUE_FREE
from dynident.estimators.closed_loop import Simulation, fill_missing_torque, lacks_torque
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem
from dynident.results.cost import describe_export_cost, describe_loop_omissions
from dynident.results.diagnosis.standing import check_bearing
from dynident.results.figures import check_lowpass
from dynident.results.json import SCHEMA
from dynident.results.mjcf import render_identified_mjcf
from dynident.results.repair import describe_base_shift
from dynident.results.result import ValidationFigures
from dynident.results.terms import make_simulable, sort_joint_terms
from dynident.results.urdf import render_standard_urdf
from dynident.study.document import Document
from dynident.study.loop import build_simulation
from dynident.study.study import (
    LogSection,
    Study,
    build_study_idim,
    load_study_robot,
    read_study_samples,
)

ROUNDING = 1e-9
"""Consistency that the way to the centre of mass and back may cost."""
AGREEMENT = 1e-6
"""By which parameters that are stored twice may differ, as a share of their terms."""


@dataclass(frozen=True)
class StoredResult:
    """A result.json with the study and the robot that it was made from.

    Attributes
    ----------
    path : Path
    document : Document
    study : Study
    base : BaseParameters
        Those of the model, rebuilt from the study.
    told : mapping
        Keys of other logs, where these are laid out otherwise than the study's first.
    """

    path: Path
    document: Document
    study: Study
    base: BaseParameters
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def idim(self) -> Idim:
        """The model."""
        return self.base.idim

    @property
    def needs_torque(self) -> bool:
        """Whether its method fits measured torque alone."""
        return self.document.method not in TORQUE_FREE

    @property
    def width(self) -> Array | None:
        """Of the sign that friction had where it was simulated, as far as the result tells it."""
        found = self.document.settings.simulation.width
        if not isinstance(found, tuple) or len(found) not in (1, self.idim.robot.n):
            return None
        return np.array(found) if min(found) > 0.0 else None

    def locate_log(self, files: Sequence[str]) -> LogSection:
        """Another log, laid out as the study's first, but for what was told otherwise."""
        return relocate_log_section(self.study.log[0], files, self.told)

    @property
    def model(self) -> Model:
        """The model at work: its inverse and forward dynamics, gravity and mass matrix."""
        return Model(self.idim, self.theta())

    def sigma(self) -> Array | None:
        """Standard deviation of each joint's torque error, where the result tells it."""
        found = self.document.settings.sigma
        if found is None or len(found) != self.idim.robot.n or min(found) <= 0.0:
            return None
        return np.array(found, dtype=float)

    def position_sigma(self) -> Array:
        """Root mean square of the positions that free simulations left of the fitted logs.

        Raises
        ------
        InputError
            When the result does not tell it.
        """
        names = self.idim.robot.joint_names
        found = [
            [one.rms_mrad[name] for name in names]
            for one in self.document.free_simulation
            if one.use == "identify" and one.horizon_s is None and set(one.rms_mrad) == set(names)
        ]
        if not found:
            raise InputError(f"{self.path}: has no free_simulation of the logs that it was made of")
        return np.asarray(1e-3 * np.sqrt(np.mean(np.square(found), axis=0)))

    def covariance(self) -> Array:
        """Of the base parameters.

        Raises
        ------
        InputError
            When the result does not tell it.
        """
        count = len(self.document.parameters)
        return self._full(self.document.covariance_matrix, "covariance_matrix", count)

    def fitted_covariance(self) -> Array:
        """Of drives and loop, where they were fitted to positions; errors as `covariance`."""
        count = len(self.document.fitted)
        return self._full(self.document.fitted_covariance, "fitted_covariance", count)

    def _full(self, rows: tuple[tuple[float, ...], ...] | None, key: str, count: int) -> Array:
        """A symmetric matrix of its lower triangle."""
        if rows is None or [len(row) for row in rows] != list(range(1, count + 1)):
            raise InputError(
                f"{self.path}: has no {key} of its {count} parameters; make it anew with "
                "dynident identify"
            )
        full = np.zeros((count, count))
        for k, row in enumerate(rows):
            full[k, : k + 1] = full[: k + 1, k] = row
        return full

    def theta(self) -> Array:
        """Standard parameters with the stored model's torques."""
        idim, document = self.idim, self.document
        if document.standard is None:
            theta = np.zeros(len(idim.parameters))
            theta[self.base.kept] = [row.value for row in document.parameters]
            return theta
        values = [joint.values() for joint in document.joints]
        sensors = {sensor.name: sensor.value for sensor in document.sensors}
        drives = [
            sensors[p.name] if isinstance(p, SensorParameter) else values[p.number - 1][p.symbol]
            for p in idim.drives
        ]
        return idim.join(self.phi(), np.array(drives))

    def phi(self) -> Array:
        """Inertial parameters of the stored links, shape (bodies, 10).

        Whether they can be is asked elsewhere (`impossible`): torques need not know.

        Raises
        ------
        InputError
            When the result has base parameters only.
        """
        document = self.document
        if document.standard is None:
            raise InputError(
                f"{self.path}: holds base parameters only ({document.method}), which no model "
                "file can hold; write one with export --repair, or identify with pc-idim-ls"
            )
        rows = []
        for link in document.standard:
            xx, xy, yy, xz, yz, zz = link.inertia_com
            rows.append(from_com(link.mass, link.com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        return np.array(rows)

    def impossible(self) -> tuple[str, ...]:
        """Stored links that are not physically consistent, as no real body is."""
        document = self.document
        if document.standard is None:
            return ()
        phi = self.phi()
        size = np.abs(phi[:, 0] + np.trace(to_inertia_matrix(phi), axis1=1, axis2=2))
        odd = find_smallest_eigenvalue(phi) < -ROUNDING * size
        return tuple(row.link for row, no in zip(document.standard, odd, strict=True) if no)

    def refuse_other_robot(self) -> None:
        """Refuse a robot whose joints, links, drives or base parameters are other ones.

        Raises
        ------
        InputError
        """
        robot, document = self.idim.robot, self.document
        if tuple(joint.name for joint in document.joints) != robot.joint_names:
            raise self.changed("its joints")
        if tuple(row.name for row in document.parameters) != self.base.names:
            raise self.changed("its base parameters")
        if document.standard is None:
            return
        if tuple(row.link for row in document.standard) != robot.links:
            raise self.changed("its links")
        own = {p.name for p in self.idim.drives if isinstance(p, SensorParameter)}
        if {sensor.name for sensor in document.sensors} != own:
            raise self.changed("what is estimated of its sensors")
        drives = self.idim.drives
        for number, joint in enumerate(document.joints, start=1):
            if set(joint.values()) != {p.symbol for p in drives if p.number == number}:
                raise self.changed(f"the drive parameters of {joint.name}")

    def refuse_other_numbers(self) -> None:
        """Refuse standard and base parameters that are not of one model.

        Where the robot's regroupings are other ones, that is what `warnings` say instead.

        Raises
        ------
        InputError
        """
        rows, base = self.document.parameters, self.base
        if self.document.standard is None or self.regrouped:
            return
        theta = self.theta()
        told = np.array([row.value for row in rows])
        off = np.abs(base.matrix @ theta - told)
        # moments that are none, but for rounding, are told from zero by the size of their body
        phi = self.phi()
        mass, spread = np.abs(phi[:, 0]), np.abs(np.trace(to_inertia_matrix(phi), axis1=1, axis2=2))
        sizes = np.column_stack([mass, *[np.sqrt(mass * spread)] * 3, *[spread] * 6])
        scale = np.maximum(np.abs(theta), self.idim.join(sizes))
        off /= np.abs(base.matrix) @ scale + np.abs(told) + np.finfo(float).tiny
        worst = int(np.argmax(off))
        if off[worst] > AGREEMENT:
            raise InputError(
                f"{self.path}: parameters[{worst + 1}].value ({base.names[worst]}) is "
                f"{told[worst]:.6g}, but standard and joints make it "
                f"{float(base.matrix[worst] @ theta):.6g}; was the file edited, or "
                f"{self.study.robot.file} changed since?"
            )

    @property
    def regrouped(self) -> bool:
        """Whether the robot's base parameters are other combinations than those stored."""
        stored = tuple(row.regrouping for row in self.document.parameters)
        return stored != self.base.regroupings

    def changed(self, what: str) -> InputError:
        """The error that the robot file is not the one behind the result."""
        return InputError(
            f"{self.path}: {what} are not those of {self.study.robot.file} with friction "
            f"{self.study.robot.friction}; was either changed since?"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the robot and the links, and whether the robot is still the same."""
        warnings = (
            *self.idim.robot.warnings,
            *(
                f"{self.path}: the inertia of {link} is not physically consistent"
                for link in self.impossible()
            ),
        )
        if not self.regrouped:
            return warnings
        return (
            *warnings,
            f"{self.path}: its base parameters regroup otherwise than those of "
            f"{self.study.robot.file}; was the robot file changed since?",
        )


def read_result(path: str | Path) -> StoredResult:
    """Read a result.json and the robot that it was made from.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    StoredResult

    Raises
    ------
    InputError
        When it is missing, not JSON, of another schema, or does not fit the robot.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give the result.json in it")
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error})") from error
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        raise InputError(
            f"{path}: its schema is {schema!r}, expected {SCHEMA!r}; give the result.json of "
            "dynident identify"
        )
    document = validate_data(Document, found, path)
    study = validate_data(Study, document.settings.study, f"{path}: settings.study")
    if not study.log:
        raise InputError(f"{path}: settings.study: has no 'log'; was the file edited?")
    section = study.robot
    if not Path(section.file).is_file():
        raise InputError(
            f"{path}: its robot {section.file} is gone; put the file back or edit "
            "settings.study.robot.file"
        )
    idim = build_study_idim(study, load_study_robot(study))
    if tuple(each.name for each in idim.shape_parameters) != tuple(s.name for s in document.shape):
        raise InputError(f"{path}: its shapes are not those of friction {section.friction!r}")
    try:
        idim = idim.shaped([each.value for each in document.shape])
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    observed = tuple(each.observed() for each in document.settings.observed) or (PLAIN,)
    stored = StoredResult(path, document, study, find_observed_base(idim, observed))
    stored.refuse_other_robot()
    stored.refuse_other_numbers()
    return stored


@dataclass(frozen=True)
class StoredFigures:
    """Errors of a stored model on one log.

    Attributes
    ----------
    figures : ValidationFigures
    warnings : tuple of str
        What was noticed about the log.
    """

    figures: ValidationFigures
    warnings: tuple[str, ...]


def validate_stored_model(
    stored: StoredResult, files: Sequence[str], lowpass_hz: float | None = None
) -> StoredFigures:
    """Errors of a stored model, and of the robot file's inertials, on another log.

    Parameters
    ----------
    stored : StoredResult
    files : sequence of str
        The log's files, in the layout of the first log of the result's study.
    lowpass_hz : float, optional
        As in the result by default [Hz].

    Raises
    ------
    InputError
        When the log does not fit the robot or its filters.
    """
    study, robot = stored.study, stored.idim.robot
    section = stored.locate_log(files)
    samples = read_study_samples(section, robot, study.prepare, stored.needs_torque)
    loop = rebuild_stored_loop(stored, samples) if stored.document.fitted else None
    if lacks_torque(samples) and not stored.needs_torque:
        samples = fill_missing_torque(samples, loop or rebuild_stored_loop(stored, samples))
    problem = Problem.of(stored.base, samples)
    settings = stored.document.settings
    lowpass = lowpass_hz or settings.lowpass_hz
    borne = [note for log in problem.samples for note in check_bearing(problem.idim, log)]
    name = ",".join(files)
    return StoredFigures(
        measure_held_out_log(name, problem, loop, stored.theta(), lowpass, settings.score),
        (*stored.warnings, *samples.warnings, *borne, *check_lowpass(lowpass, [samples])),
    )


def rebuild_stored_loop(stored: StoredResult, samples: Samples) -> Simulation:
    """The loop of a stored result on another log, what was fitted of it as it was found.

    Raises
    ------
    InputError
        When its study has no controller any more.
    """
    study = stored.study
    if study.controller is None:
        raise InputError(f"{stored.path}: settings.study: has no 'controller'; was it edited?")
    simulation = build_simulation(
        study.controller, study.reference, study.simulation, stored.idim.robot, (samples,)
    ).of_encoders()
    return simulation.told({each.name: each.value for each in stored.document.fitted})


def relocate_log_section(
    section: LogSection, files: Sequence[str], told: Mapping[str, Any] = MappingProxyType({})
) -> LogSection:
    """A log section that reads other files laid out alike, but for keys that are told.

    Raises
    ------
    InputError
        When the number of files differs.
    """
    old = section.files
    if len(files) != len(old):
        raise InputError(
            f"{','.join(files)}: the result's log has {len(old)} files side by side; give as "
            "many, separated by commas"
        )
    names = {Path(a).name: Path(b).name for a, b in zip(old, files, strict=True)}

    def renamed(column: str | int) -> str | int:
        if isinstance(column, str) and ":" in column:
            file, _, rest = column.partition(":")
            return f"{names.get(file, file)}:{rest}"
        return column

    columns = section.columns and {
        signal: tuple(renamed(c) for c in where) if isinstance(where, tuple) else renamed(where)
        for signal, where in section.columns.items()
    }
    update = {"files": tuple(files), "columns": columns, "rows": None, "use": "validate"}
    # a period is a log's own: another may have no such
    own = section.model_copy(update=update | {"name": None, "keep": None, "period": "none"})
    if not told:
        return own
    return validate_data(
        LogSection, {**own.model_dump(exclude_none=True), **told}, "command line: log"
    )


def render_stored_urdf(
    stored: StoredResult, repair: Knowledge | None = None
) -> tuple[bytes, tuple[str, ...]]:
    """The URDF of a stored result, and notes on what has no place in one.

    Parameters
    ----------
    stored : StoredResult
    repair : Knowledge, optional
        Of a result without consistent links: write the consistent set that is nearest to
        its base parameters, with their standard deviations as the measure.

    Raises
    ------
    InputError
        When the result has no consistent links and is not to be repaired.
    """
    model, said = build_simulable_model(stored, repair)
    document, notes = render_standard_urdf(model.idim, model.theta)
    return document, (*said, *notes, *list_export_losses(stored, model, "URDF"))


def render_stored_mjcf(
    stored: StoredResult, repair: Knowledge | None = None, folder: Path | None = None
) -> tuple[bytes, tuple[str, ...]]:
    """The MJCF of a stored result, and notes on what has no place in one.

    Parameters
    ----------
    stored : StoredResult
    repair : Knowledge, optional
        As in `render_stored_urdf`.
    folder : Path, optional
        Where the document will stand, so that it finds its meshes.

    Raises
    ------
    InputError
        When the result has no consistent links and is not to be repaired.
    """
    model, said = build_simulable_model(stored, repair)
    document, notes = render_identified_mjcf(model.idim, model.theta, folder, stored.width)
    return document, (*said, *notes, *list_export_losses(stored, model, "MJCF"))


def list_export_losses(stored: StoredResult, near: Model, kind: str) -> tuple[str, ...]:
    """What is not in a file and what that costs, where positions were fitted."""
    if not stored.document.fitted:
        return ()
    words = describe_loop_omissions(
        stored.idim, [each.name for each in stored.document.fitted], kind
    )
    try:
        logs = read_fitted_logs(stored)
        loop = rebuild_stored_loop(stored, logs[0])
    except InputError as error:
        return (*words, f"what that costs is not said, for its logs cannot be read: {error}")
    return (*words, *describe_export_cost(stored.base, logs, loop, stored.model, near, kind))


def read_fitted_logs(stored: StoredResult) -> list[Samples]:
    """The logs that a result was made of, read again.

    Raises
    ------
    InputError
    """
    study = stored.study
    return [
        read_study_samples(section, stored.idim.robot, study.prepare, stored.needs_torque)
        for section in study.log
        if section.use == "identify"
    ]


def build_simulable_model(
    stored: StoredResult, repair: Knowledge | None = None
) -> tuple[Model, tuple[str, ...]]:
    """The model that simulators are given, and what in it stands for what they cannot have.

    Where friction is of another kind than theirs the logs that were fitted are read again.

    Raises
    ------
    InputError
        As of `find_consistent_theta`.
    """
    theta, said = find_consistent_theta(stored, repair)
    model = Model(stored.idim, theta)
    if not sort_joint_terms(model).left:
        return model, said
    try:
        logs = read_fitted_logs(stored)
    except InputError as error:
        reason = f"fv, fc and off stand alone, for the log cannot be read again: {error}"
        return model, (*said, reason)
    motion = [(log.q, log.dq, log.ddq) for log in logs]
    found, notes = make_simulable(model, motion, stored.width)
    return found, (*said, *notes)


def find_consistent_theta(
    stored: StoredResult, repair: Knowledge | None = None
) -> tuple[Array, tuple[str, ...]]:
    """Standard parameters of a stored result that a simulator can be given, and how they came.

    Raises
    ------
    InputError
        When the result has no consistent links and is not to be repaired.
    """
    impossible = stored.impossible()
    if repair is None:
        stored.phi()  # refuses base parameters
        if impossible:
            raise InputError(
                f"{stored.path}: the inertia of {impossible[0]} is not physically consistent; use "
                "--repair"
            )
        return stored.theta(), ()
    if stored.document.standard is not None and not impossible:
        return stored.theta(), ("nothing to repair: the links are consistent",)
    return repair_parameters(stored, repair)


def repair_parameters(stored: StoredResult, knowledge: Knowledge) -> tuple[Array, tuple[str, ...]]:
    """Consistent standard parameters nearest to a result's base parameters, and how near."""
    rows = stored.document.parameters
    beta = np.array([row.value for row in rows])
    std = np.array([row.std or 0.0 for row in rows])
    point = nearest_to_base(stored.base, beta, std, knowledge)
    assert point.theta is not None
    return point.theta, (f"repaired: {describe_base_shift(stored.base, beta, std, point.beta)}",)
