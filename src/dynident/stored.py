"""Stored results at work: validation on other logs, and model files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynident.errors import InputError
from dynident.export.result import StoredResult, read_result
from dynident.export.urdf import model_urdf
from dynident.problem import Problem
from dynident.robot.model import Robot
from dynident.robot.spec import validated
from dynident.study import LogSection, Study, listed, study_robot, study_samples
from dynident.validation import FitFigure, all_samples_figure, fitted_figure


def stored_study(stored: StoredResult) -> Study:
    """The study that a result was made from."""
    return validated(Study, stored.part("settings", "study"), stored.path)


def stored_figures(
    path: Path, files: list[str], lowpass_hz: float | None
) -> tuple[tuple[FitFigure, ...], tuple[FitFigure, ...]]:
    """Errors of a stored model, and of the robot file's inertials, on another log.

    Parameters
    ----------
    path : Path
        A result.json.
    files : list of str
        The log's files, in the layout of the first log of the result's study.
    lowpass_hz : float, optional
        As in the result by default [Hz].

    Returns
    -------
    entries, nominal : tuple of FitFigure

    Raises
    ------
    InputError
    """
    stored = read_result(path)
    study = stored_study(stored)
    robot = study_robot(study.robot)
    section = relocated(study.log[0], files)
    samples = study_samples(section, robot, study.prepare)
    problem = Problem(robot, samples, study.robot.friction, study.robot.rotor)
    idim, base = problem.idim, problem.base
    lowpass = lowpass_hz or float(stored.part("settings", "lowpass_hz"))
    theta = stored.theta(idim, base.kept)
    nominal = np.zeros_like(theta)
    nominal[: idim.inertial] = robot.nominal.ravel()
    sets = (theta, nominal) if robot.has_nominal else (theta,)
    fitted = [fitted_figure(robot.joint_names, problem.factors, base.matrix @ t) for t in sets]
    everywhere = all_samples_figure(idim, sets, [samples], lowpass)
    pairs = list(zip(fitted, everywhere, strict=True))
    return pairs[0], pairs[1] if len(pairs) > 1 else ()


def relocated(section: LogSection, files: list[str]) -> LogSection:
    """A log section that reads other files laid out alike.

    Raises
    ------
    InputError
        When the number of files differs.
    """
    old = listed(section.files)
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
    return section.model_copy(update=update)


def stored_urdf(path: Path) -> tuple[bytes, tuple[str, ...]]:
    """The URDF of a stored result, and notes on what has no place in one."""
    stored = read_result(path)
    robot: Robot = study_robot(stored_study(stored).robot)
    phi = stored.phi()
    drives = [row["friction"] for row in stored.part("joints")]
    omitted = [
        f"{symbol}{number}"
        for number, row in enumerate(stored.part("joints"), start=1)
        for symbol in ("Ia", "Iam", *row["friction"])
        if symbol not in ("fv", "fc") and {**row, **row["friction"]}.get(symbol) is not None
    ]
    damping = [d["fv"] for d in drives] if all("fv" in d for d in drives) else None
    friction = [d["fc"] for d in drives] if all("fc" in d for d in drives) else None
    return model_urdf(robot, phi, damping=damping, friction=friction, omitted=omitted)
