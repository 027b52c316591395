"""A fit as its users hold it: fresh, or read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, check_type
from dynident.core.files import write_files
from dynident.core.plain import from_plain, to_json
from dynident.core.schema import Spec
from dynident.dynamics.passive import warn_of_nonpassive_drives
from dynident.estimators.estimate import Estimate
from dynident.export.formats import EXPORTS, choose_own_format
from dynident.fit.facts import LogFacts
from dynident.fit.json import serialise_result, serialise_state
from dynident.fit.logs import Logs
from dynident.fit.provenance import Provenance, carry_robot_files, restore_robot_files
from dynident.fit.reasons import expect_percent, list_torque_reasons
from dynident.fit.result import Result
from dynident.fit.state import FORMS
from dynident.fit.verdict import ANYWAY, REFUTED, Reason, reach_verdict
from dynident.fit.warnings import warn_of_disbelief, warn_of_sensor_errors, warn_of_weak_excitation
from dynident.regression.problem import Problem
from dynident.report.card import render_fit_card
from dynident.report.difference import Difference, compare_results
from dynident.report.exported import Exportable
from dynident.report.sections import render_result_page, summarise_result
from dynident.report.tables import (
    build_frame,
    tabulate_base_parameters,
    tabulate_drive_values,
    tabulate_links,
)
from dynident.report.views import Plots

if TYPE_CHECKING:
    from pandas import DataFrame

OUTPUTS = ("result.json", "model.urdf", "model.xml", "report.html")
"""All that a fit is saved as; of the two models the one of the robot file's kind."""
CLOSE = 1e-6
"""Of numbers that stand twice in a file, as a share; they are computed again when it is read."""
NONE = 1e-12
"""Below which numbers are rounding."""


@dataclass(frozen=True)
class Fit(Exportable):
    """A model with its certificate, its error bars and its errors; see `Result`.

    >>> fit = di.identify(problem)
    """

    def __repr__(self) -> str:
        """One line, for a prompt."""
        error = f"error {self.identification[0].overall_percent:.3g} % on fitted rows"
        if self.encoder_only:
            error = f"free simulation {self.simulated[0].free[-1].overall_milli:.3g} mrad"
        return (
            f"<Fit of {self.base.idim.robot.name} by {self.method}: "
            f"{self.verdict.state}, {error}; print(fit.summary())>"
        )

    def __eq__(self, other: object) -> bool:
        """Whether all that was found and measured is the same, to the last bit.

        Fresh or read from a file; when, where and how fast it was made does not count, nor where
        its files lie. Between fits that differ, `compare` says by how much.
        """
        if not isinstance(other, Result):
            return NotImplemented
        return self is other or select_compared_state(self) == select_compared_state(other)

    def __hash__(self) -> int:
        return hash((self.method, self.robot.name, *self.estimate.beta.tolist()))

    def _repr_html_(self) -> str:
        """The verdict, errors and tables that fold, for a notebook."""
        return render_fit_card(self)

    def summary(self, full: bool = False) -> str:
        """The result as plain text of at most 80 columns: its answer on a screen, or all of it.

        >>> print(fit.summary())
        robot ...
        """
        return summarise_result(self, full)

    def compare(self, other: Result | None = None) -> Difference:
        """The result, A, beside another one of the same kind of robot, or beside its robot file, B.

        >>> print(fit.compare().summary())
        A ...

        Parameters
        ----------
        other : Fit, optional
            Fresh, or read from a file; by default the inertials of its own robot's file.

        Returns
        -------
        Difference
            `summary()` is its text, `to_dict()` plain data.

        Raises
        ------
        InputError
            When their robots do not have the same joints.
        """
        if other is not None:
            check_type("compare", other, Result, "dynident.read_result(path) reads one")
        return compare_results(self, other)

    def links(self) -> DataFrame:
        """The links as a data frame of pandas, in SI units: a row a link.

        >>> fit.links().loc["fore", ["mass", "mass_std", "mass_file"]].size
        3

        Returns
        -------
        DataFrame, shape (bodies, 36)
            ``mass`` [kg], ``com_x`` .. ``com_z`` [m] in the joint frame, and the inertia about it,
            ``Ixx Ixy Iyy Ixz Iyz Izz`` [kg m^2]; of each ``_std``, its standard deviation, NaN
            where neither log nor prior determines it, and ``_file``, the robot file's value, NaN
            where it has none. ``mass_from_data``, ``com_from_data`` and ``inertia_from_data`` are
            the shares, from 0 to 1, that the logs tell and not the prior. ``gyration`` is the
            smallest radius of gyration, ``least_gyration`` what it has to be at least [m], and
            ``min_eigenvalue`` of the pseudo-inertia.

        Raises
        ------
        InputError
            When the method gives base parameters only, or pandas is not installed.
        """
        return build_frame(tabulate_links(self), self.robot.links, "link")

    def drives(self) -> DataFrame:
        """Rotor inertias and friction as a data frame of pandas, in SI units: a row a joint.

        >>> list(fit.drives())[::2]
        ['Ia', 'fv', 'fc', 'off']

        Returns
        -------
        DataFrame, shape (n, 2 symbols)
            The symbols of the friction model (``Ia fv fc off``, its shapes last), and of each
            ``_std``, its standard deviation. NaN where a joint has no such parameter, or torques
            determine it in a sum alone; those stand in `to_frame`.

        Raises
        ------
        InputError
            When pandas is not installed.
        """
        return build_frame(tabulate_drive_values(self), self.robot.joint_names, "joint")

    def to_frame(self) -> DataFrame:
        """The base parameters as a data frame of pandas: a row a parameter.

        >>> frame = fit.to_frame()[["value", "low", "high", "from_data", "unit"]]

        Returns
        -------
        DataFrame, shape (base parameters, 9)
            ``value``, ``std``, ``low`` and ``high`` of the 95 % interval, ``file`` (the same
            combination of the robot file's inertials, without rotors and friction; NaN where the
            file does not tell), ``from_data`` (its share, from 0 to 1, that the logs tell and not
            the prior; NaN where only that does), ``unit``, ``combination`` (what it is) and
            ``essential`` (whether it is).

        Raises
        ------
        InputError
            When pandas is not installed.
        """
        return build_frame(tabulate_base_parameters(self), self.base.names, "parameter")

    @property
    def plot(self) -> Plots:
        """Plots on axes of matplotlib: ``fit.plot.torque()``; see `Plots`.

        >>> shoulder, elbow = fit.plot.torque()
        """
        return Plots(self)

    def report(self, path: str | Path) -> None:
        """Write the fit as a page, whole or not at all.

        Of logs that are not at hand any more nothing is drawn, which the page says.

        >>> fit.report("arm.html")

        Parameters
        ----------
        path : str or Path

        Raises
        ------
        InputError
            When it cannot be written, or is an input.
        """
        self.refuse_inputs([Path(path)])
        write_files({Path(path): self.render_page()})

    def render_page(self) -> bytes:
        """The fit as a page."""
        try:
            page = render_result_page(self, self.series(), self.simulate_positions())
        except InputError as error:
            page = render_result_page(self, (), gone=str(error))
        return page.encode(errors="backslashreplace")

    def save(
        self, folder: str | Path, report: bool = True, anyway: bool = False
    ) -> tuple[str, ...]:
        """Write result.json, model.urdf or model.xml, and report.html, all or none.

        `dynident.read_result` reads it back. What an earlier fit left there goes.

        >>> notes = fit.save("out/arm")

        Parameters
        ----------
        folder : str or Path
        report : bool
            Whether the page is written, too.
        anyway : bool
            Write the model of a refuted result.

        Returns
        -------
        tuple of str
            Why there is no model, or what it has no place for; and what went.

        Raises
        ------
        InputError
            When it cannot be written, or holds what no file can.
        """
        folder = Path(folder)
        self.refuse_inputs([folder / name for name in OUTPUTS])
        contents, notes = self.render_files(folder, report, anyway)
        went = write_files(contents, OUTPUTS.__contains__)
        return (*notes, *(f"removed {path} of an earlier result" for path in went))

    def render_files(
        self, folder: Path, report: bool = True, anyway: bool = False
    ) -> tuple[dict[Path, bytes], tuple[str, ...]]:
        """The contents of the files of `save`, and notes on them."""
        text = to_json(serialise_result(self, folder))
        contents = {folder / OUTPUTS[0]: text.encode()}
        own = choose_own_format(self.robot)
        model = f"model.{EXPORTS[own].suffix}"
        repair = "dynident export --repair writes the nearest consistent one"
        notes: tuple[str, ...] = ()
        if self.phi is None:
            words = f"{self.bare} gives base parameters only, so there is no {model}"
            notes = (f"{words}; {repair}",)
        elif not self.consistent:
            words = f"the links are not physically consistent, so there is no {model}"
            notes = (f"{words}; {repair}",)
        elif self.verdict.state == REFUTED and not anyway:
            notes = (f"the result is refuted: {model} is written only with {ANYWAY}",)
        else:
            contents[folder / model], notes = self.render_file(own, folder)
        if report:
            contents[folder / "report.html"] = self.render_page()
        return contents, notes


def conclude_fit(
    problem: Problem,
    fitted: Problem,
    found: Estimate,
    theta: Array,
    facts: Sequence[LogFacts],
    *,
    against: Sequence[Reason] | None = None,
    foreign: Sequence[Reason] = (),
    rest: bool = False,
    logs_apart: int,
    noticed: Sequence[str] = (),
    beside: Sequence[str] = (),
    last: Sequence[str] = (),
    **measured: Any,
) -> Fit:
    """The fit of an estimate: how well it is determined, what speaks against it, and warnings.

    `fitted` has the rows, or their factors. What speaks `against` it is `list_torque_reasons`
    unless given, what speaks against its logs `foreign`. Some warnings are `noticed` before those
    of the estimate, some are `beside` them. `measured` are the other fields of the fit.
    """
    factors, kept = fitted.factors, None if found.essential is None else found.essential.kept
    system = (factors if kept is None else factors.select(kept)).weighted(found.sigma)
    condition, rank, _ = system.condition()
    expected = None
    if found.fitted is None:
        percent = measured["identification"][-1].overall_percent
        expected = expect_percent(factors, found, percent)
    if against is None:
        against = list_torque_reasons(
            problem, found, system, facts, measured["findings"], measured["identification"],
            measured["nominal"], measured["validation"], rest,
        )  # fmt: skip
    warnings = [
        *problem.robot.warnings,
        *noticed,
        *found.warnings,
        *beside,
        *(warn_of_weak_excitation(fitted, system, found, facts) if found.fitted is None else ()),
        *warn_of_disbelief(problem, found),
        *warn_of_sensor_errors(problem, theta),
        *warn_of_nonpassive_drives(problem.idim, theta),
        *last,
    ]
    return Fit(
        base=problem.base,
        estimate=found,
        condition_number=condition,
        rank=rank,
        warnings=tuple(dict.fromkeys(warnings)),
        verdict=reach_verdict([*against, *foreign], logs_apart, expected),
        robot_files=carry_robot_files(problem.robot),
        **measured,
    )


def select_compared_state(result: Result) -> dict[str, Any]:
    """What two fits that are equal have alike."""
    state = serialise_state(result, Path())
    files = {key: value for key, value in state["robot_files"].items() if key != "folder"}
    return {**state, "robot_files": files, "provenance": None}


def restore_fit(document: dict[str, Any], path: Path, study: Spec | None, logs: Logs) -> Fit:
    """The fit of a result.json.

    Parameters
    ----------
    document : dict
        See `dynident.fit.json.read_document`.
    path : Path
        The file.
    study : Spec or None
        Its study, names of files as seen from the current directory.
    """
    state: Fit = from_plain(Fit, document["state"], f"{path}: state", FORMS)
    timings = from_plain(dict[str, float], document.get("timings"), f"{path}: timings")
    provenance = from_plain(Provenance, document.get("provenance"), f"{path}: provenance")
    files = replace(state.robot_files, folder=str(path.parent / state.robot_files.folder))
    source = restore_robot_files(files, str(path))
    fit = replace(
        state,
        base=replace(state.base, idim=state.idim.of(replace(state.robot, source=source))),
        robot_files=files,
        study=study,
        logs=logs,
        timings=timings,
        provenance=provenance,
    )
    try:
        with np.errstate(over="raise"):
            told = serialise_result(fit, path.parent)
    except (TypeError, ValueError, IndexError, ArithmeticError) as error:
        raise InputError(f"{path}: state: its parts do not fit together ({error})") from error
    odd = find_difference(
        {k: v for k, v in told.items() if k not in ("state", "settings")}, document
    )
    if odd is not None:
        place, stands, expected = odd
        raise InputError(
            f"{path}: {place} is {stands}, but the state behind it makes it {expected}; was the "
            "file edited?"
        )
    return fit


def find_difference(told: Any, found: Any, place: str = "") -> tuple[str, str, str] | None:
    """Where two documents first differ by more than rounding: the place and both values."""
    if isinstance(told, dict) and isinstance(found, dict):
        pairs = [(v, found.get(key), f"{place}.{key}".lstrip(".")) for key, v in told.items()]
    elif isinstance(told, list) and isinstance(found, list) and len(told) == len(found):
        both = enumerate(zip(told, found, strict=True), 1)
        pairs = [(one, other, f"{place}[{k}]") for k, (one, other) in both]
    elif isinstance(told, float) and isinstance(found, int | float):
        size = max(abs(told), abs(found))
        same = abs(told - found) <= CLOSE * size + NONE
        return None if same else (place, f"{found:.6g}", f"{told:.6g}")
    else:
        return None if told == found else (place, str(found)[:40], str(told)[:40])
    return next((odd for odd in (find_difference(*pair) for pair in pairs) if odd), None)
