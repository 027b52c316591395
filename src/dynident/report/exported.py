"""A result as files and models for others: what can be made of it, and what each costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy.typing as npt

from dynident.core.errors import InputError
from dynident.core.files import write_files
from dynident.dynamics.whole import WholeModel
from dynident.export.c_code import c_code
from dynident.export.controller import ControllerModel
from dynident.export.cost import describe_export_cost, describe_loop_omissions, describe_torque_cost
from dynident.export.formats import Format, choose_own_format, find_format
from dynident.export.mujoco import mujoco_model
from dynident.export.pinocchio import PinocchioModel, build_pinocchio_model
from dynident.export.servo import Servo, derive_servos
from dynident.export.springs import add_springs, list_joint_springs
from dynident.export.stand_in import StandIn, find_stand_in, follow_log
from dynident.export.terms import sort_joint_terms
from dynident.fit.result import Result


@dataclass(frozen=True)
class Exportable(Result):
    """A result that other programs take, each in its own words."""

    @cached_property
    def stand_in(self) -> tuple[StandIn | None, tuple[str, ...]]:
        """What stands in models of simulators for what they cannot have, and why nothing does."""
        model = self.model
        if not sort_joint_terms(model).left:
            return None, ()
        try:
            logs = self.samples
        except InputError as error:
            return None, (
                f"fv, fc and off stand alone, because the log cannot be read again: {error}",
            )
        motion = (each for log in logs for each in follow_log(model, log, self.width))
        return find_stand_in(model, motion, self.width), ()

    @cached_property
    def simulable(self) -> tuple[WholeModel, tuple[str, ...]]:
        """The model that simulators are given, and what in it stands for what they cannot have."""
        found, said = self.stand_in
        return (self.model, said) if found is None else found.apply(self.model)

    def render_file(self, format: str, folder: Path | None = None) -> tuple[bytes, tuple[str, ...]]:
        """The identified model as a file, and notes on what has no place in one.

        >>> content, notes = fit.render_file("urdf")

        Parameters
        ----------
        format : str
            Name in `EXPORTS`: ``urdf``, ``mjcf``, ``c``, ...
        folder : Path, optional
            Where it will stand, so that it finds its meshes; beside the robot's own when left
            out.

        Raises
        ------
        InputError
            For links that cannot exist, where the format has any; for what it cannot express.
        """
        form = find_format(format, self.robot)
        springs = list_joint_springs(self.idim, self.theta)
        names = ", ".join(own.joint for own in springs)
        stiff: tuple[str, ...] = ()
        if springs and not form.springs:
            stiff = (f"stiff in the {form.name}, which has no springs: {names}",)
        if form.holds is None:
            document, notes = form.render(self.idim, self.theta, folder, self.width, ())
            return document, (*notes, *stiff)
        self._refuse_unreal(form.name)
        model, said = self.simulable
        # a link that a sensor holds has its own inertial; springs are added
        whole = model.idim.of(replace(self.robot, gauges=()))
        theta = whole.join(self.phi, model.idim.split(model.theta)[1])  # type: ignore[arg-type]
        servos: tuple[Servo, ...] = ()
        own = format == choose_own_format(self.robot)  # a file of the robot's keeps its actuators
        if self.estimate.fitted is not None and form.loop and not own:
            servos = derive_servos(self.estimate.fitted.loop, sort_joint_terms(model).offset)
        document, notes = form.render(whole, theta, folder, self.width, servos)
        if form.springs:
            document, stiff = add_springs(document, springs)
        return document, (*said, *notes, *stiff, *self._costs(form, form.loop if servos else ()))

    def model_urdf(self) -> tuple[bytes, tuple[str, ...]]:
        """The identified model as a URDF; see `render_file`.

        >>> content, notes = fit.model_urdf()
        """
        return self.render_file("urdf")

    def model_mjcf(self, folder: Path | None = None) -> tuple[bytes, tuple[str, ...]]:
        """The identified model as an MJCF; see `render_file`.

        >>> content, notes = fit.model_mjcf()
        """
        return self.render_file("mjcf", folder)

    def _costs(self, form: Format, law: Sequence[str]) -> tuple[str, ...]:
        """What is not in a file and what that costs: of positions, or of torques."""
        fitted, (near, _) = self.estimate.fitted, self.simulable
        words: tuple[str, ...] = ()
        if fitted is not None:
            told = [k for k in fitted.loop.controller.parts if f"{k}1" not in fitted.names]
            names = (*fitted.names, *told)
            words = describe_loop_omissions(self.idim, names, form.name, law)
        try:
            if fitted is None:
                return describe_torque_cost(lambda: self.samples, self.model, near, form)
            logs = self.samples
        except InputError as error:
            return (
                *words,
                f"the resulting error is not known, because the logs cannot be read: {error}",
            )
        costs = describe_export_cost(logs, fitted.loop, self.model, near, form, law)
        return (*words, *costs)

    def _refuse_unreal(self, kind: str) -> None:
        """Refuse what no model file can hold, or no simulator should be given."""
        if self.phi is None:
            raise InputError(
                f"{self.bare} gives base parameters only, which no {kind} can hold; "
                "identify with pc-idim-ls, or take the nearest links by export --repair"
            )
        if not self.consistent:
            raise InputError(
                f"{', '.join(self.inconsistencies)} is not physically consistent, so that no "
                "simulator should be given it; use consistency 'pseudo-inertia', or export --repair"
            )

    def export(self, path: str | Path, format: str, anyway: bool = False) -> tuple[str, ...]:
        """Write the model as a file, whole or not at all; returns the notes of `render_file`.

        >>> notes = fit.export("arm.c", "c")

        Parameters
        ----------
        path : str or Path
        format : str
            Name in `EXPORTS`: ``urdf``, ``mjcf``, ``c``, ...
        anyway : bool
            Also of a refuted result.

        Raises
        ------
        InputError
            See `render_file`; when it cannot be written, or is an input.
        ComputationError
            Of a refuted result.
        """
        self.require_trust(find_format(format).what, anyway)
        document, notes = self.render_file(format, Path(path).parent)
        self._write(Path(path), document)
        return notes

    def to_urdf(self, path: str | Path, anyway: bool = False) -> tuple[str, ...]:
        """Write the URDF; see `export`.

        >>> notes = fit.to_urdf("identified.urdf")
        """
        return self.export(path, "urdf", anyway)

    def to_mjcf(self, path: str | Path, anyway: bool = False) -> tuple[str, ...]:
        """Write the MJCF; see `export`.

        >>> notes = fit.to_mjcf("identified.xml")
        """
        return self.export(path, "mjcf", anyway)

    def _write(self, path: Path, document: bytes) -> None:
        """Write one file, but not over those that the robot came from."""
        self.refuse_inputs([path])
        write_files({path: document})

    def to_pinocchio(self) -> PinocchioModel:
        """The identified model as one of Pinocchio, and the offsets apart; see `PinocchioModel`.

        >>> model = fit.to_pinocchio()
        """
        self._refuse_unreal("model of Pinocchio")
        model, said = self.simulable
        return build_pinocchio_model(model, said)

    def to_mujoco(self, width: npt.ArrayLike | None = None) -> Any:
        """The identified model as one of MuJoCo; see `mujoco_model`.

        What has no place in it is in the notes of `model_mjcf`, but for offsets.

        >>> model = fit.to_mujoco()

        Parameters
        ----------
        width : array_like, shape () or (n,), optional
            Of the sign of Coulomb friction, which friction loss is given the softness of; that of
            the fit where drives were fitted to positions, else MuJoCo's own softness
            [rad/s or m/s].
        """
        self._refuse_unreal("model of MuJoCo")
        return mujoco_model(self.simulable[0], self.width if width is None else width)

    def to_c(
        self,
        path: str | Path,
        name: str | None = None,
        width: npt.ArrayLike | None = None,
        anyway: bool = False,
    ) -> None:
        """Write `inverse_dynamics` as a C99 file, whole or not at all; see `c_code`.

        >>> fit.to_c("identified.c")

        Parameters
        ----------
        name, width
            See `c_code`.
        anyway : bool
            Also of a refuted result.
        """
        self.require_trust("C code", anyway)
        self._write(Path(path), c_code(self.model, name, width).encode())

    def controller_model(
        self, width: npt.ArrayLike | None = None, anyway: bool = False
    ) -> ControllerModel:
        """The same functions of one state at a time, without checks, in microseconds.

        >>> feed_forward = fit.controller_model()

        Parameters
        ----------
        width : array_like, shape () or (n,), optional
            Of the sign of Coulomb friction, see `inverse_dynamics`.
        anyway : bool
            Also of a refuted result.

        Raises
        ------
        InputError
            For friction that depends on a temperature, on time or on torques of the log.
        ComputationError
            Of a refuted result.
        """
        self.require_trust("a controller's model", anyway)
        return ControllerModel(self.model, width)
