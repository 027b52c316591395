"""Section 6.6: the survey's friction models on the log of a measured arm.

The survey's is an ER20-C10, whose log is published nowhere; here it is the TX40 of the examples,
which are beside the source and not in the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynident import Fit, identify
from dynident.core.errors import ComputationError, InputError
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident_papers.measured import read_tx40_log

MODELS = {
    "coulomb-viscous-symmetric": 7,
    "cube-root": 8,
    "load": 9,
    "stribeck": 4,
    "bompos": 5,
    "tanh-sech": 6,
}
"""Friction models in the order of Table 12, and the survey's equations."""
QUICK = ("coulomb-viscous-symmetric", "cube-root")
"""Models without shapes or loads: those of the reduced form."""
METHOD, SEARCH = "pc-idim-ls", "pf"
"""Of all models, and the survey's own where it does not take minutes."""
BANDWIDTH = 10.0
"""[Hz]"""


@dataclass(frozen=True)
class Fitted:
    """What a model leaves of the torques."""

    mean: float
    std: float
    """`mean`, `std`: of the errors of all joints' rows [Nm]."""
    relative: float
    relative_std: float
    """`relative`, `relative_std`: e_T and e_T-Std: of their sizes, over each joint's largest
    torque."""
    parameters: int
    """Base parameters, shapes included."""


@dataclass(frozen=True)
class Instance:
    """The models on the log."""

    fitted: dict[tuple[str, str], Fitted]
    failures: tuple[str, ...] = ()
    missing: str = ""
    """Why there are none."""


def fit_friction_models(reduced: bool, folder: Path | None = None) -> Instance:
    """Every model on the log, where it is there.

    Parameters
    ----------
    reduced : bool
        Models of `QUICK` alone, without the search.
    folder : Path, optional
        Of the robot's file and its log; unless it is given, that of the examples, in the working
        directory or beside the source.
    """
    try:
        log = read_tx40_log(folder=folder)
    except InputError as error:
        return Instance({}, missing=str(error))
    samples = prepare(log.recording, BANDWIDTH)
    fitted, failures = {}, []
    for friction in QUICK if reduced else MODELS:
        methods = (METHOD, SEARCH) if friction in QUICK and not reduced else (METHOD,)
        for method in methods:
            try:
                own = identify(Problem(log.robot, samples, friction), method, doctor=False)
                fitted[friction, method] = summarise_residuals(own)
            except ComputationError as error:
                failures.append(f"{method} (TX40, {friction}): {error}")
    return Instance(fitted, tuple(failures))


def summarise_residuals(own: Fit) -> Fitted:
    """Errors of an identification on the rows that it fitted."""
    errors = own.estimate.residuals.error
    torque = own.samples[0].tau
    share = np.concatenate([np.abs(e) / np.abs(torque[:, j]).max() for j, e in enumerate(errors)])
    every = np.concatenate(errors)
    shape = own.estimate.shape
    return Fitted(
        float(every.mean()),
        float(every.std()),
        float(share.mean()),
        float(share.std()),
        own.base.count if shape is None else own.base.count + len(shape.values),
    )
