"""Draws of a model: consistent sets of parameters, files of them, and how they are calibrated."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, refuse_unknown
from dynident.core.files import write_files
from dynident.core.inertia import find_smallest_eigenvalue
from dynident.core.words import format_entry
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.whole import WholeModel
from dynident.estimators.closed_loop import Simulation
from dynident.export.formats import Format, choose_own_format, find_format, list_model_formats
from dynident.export.stand_in import StandIn

BAND = (0.025, 0.975)
"""Quantiles between which 95 % of the draws lie."""
HEAD = "draws.yaml"
"""The file that tells of the others."""


@dataclass(frozen=True)
class Draws:
    """Sets of standard parameters that a robot can have, drawn from what a result leaves open."""

    base: BaseParameters
    """Of the model at the result's own shapes of friction."""
    theta: Array
    """Shape (draws, standard parameters)."""
    loop: tuple[str, ...]
    """What else was drawn: shapes of friction, then ``gain2``, ``bias3``, ``delay`` of the loop."""
    values: Array
    """Shape (draws, loop)."""
    seed: int
    share: float
    """Of the normal distribution that is consistent."""
    way: str
    """How draws within it were had."""
    margin: float
    """Smallest eigenvalue of a pseudo-inertia, over all draws and links."""
    least: float
    """Smallest parameter that has to be positive, likewise; infinite where there is none."""
    width: Array | None = None
    """Of the sign that friction had where it was simulated, shape (1,) or (n,)."""
    stand_in: tuple[StandIn | None, tuple[str, ...]] = (None, ())
    """What model files have in the place of friction that they cannot hold, or why nothing."""

    def __repr__(self) -> str:
        """How many of what."""
        robot = self.base.idim.robot.name
        return f"<Draws of {robot}: {len(self)} sets of {len(self.names)} parameters>"

    def __len__(self) -> int:
        """How many."""
        return len(self.theta)

    @property
    def beta(self) -> Array:
        """Base parameters, shape (draws, base parameters)."""
        return np.asarray(self.theta @ self.base.matrix.T)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all that was drawn."""
        return (*self.base.idim.names, *self.loop)

    @property
    def every(self) -> Array:
        """All that was drawn, shape (draws, names)."""
        return np.hstack([self.theta, self.values])

    @property
    def ranges(self) -> dict[str, dict[str, float]]:
        """Mean, standard deviation (of one draw 0) and the 95 % band of all that was drawn."""
        every = self.every
        low, high = np.quantile(every, BAND, axis=0)
        std = np.std(every, axis=0, ddof=1) if len(every) > 1 else np.zeros(every.shape[1])
        found = np.column_stack([np.mean(every, axis=0), std, low, high]).tolist()
        keys = ("mean", "std", "low", "high")
        return {
            name: dict(zip(keys, row, strict=True))
            for name, row in zip(self.names, found, strict=True)
        }

    def shaped(self, k: int) -> BaseParameters:
        """The model of a draw, with its shapes of friction."""
        count = len(self.base.idim.shape)
        names = [s.name for s in self.base.idim.shape_parameters]
        if not count or list(self.loop[:count]) != names:
            return self.base
        return replace(self.base, idim=self.base.idim.shaped(self.values[k, :count]))

    def of_loop(self, k: int, simulation: Simulation) -> Simulation:
        """The loop of a draw: what of it was drawn, else the loop's own."""
        return simulation.with_values(dict(zip(self.loop, self.values[k].tolist(), strict=True)))

    def write(self, directory: str | Path, format: str | None = None) -> tuple[str, ...]:
        """Write them beside a `draws.yaml` that lists them, all or none; notes on the files.

        Parameters
        ----------
        format : str, optional
            Of `list_draw_formats`; as the robot's own file by default.
        """
        folder, known = Path(directory), list_draw_formats()
        chosen = format or choose_own_format(self.base.idim.robot)
        refuse_unknown(chosen, known, f"format {chosen!r} is not known")
        if chosen in FORMATS:
            found, notes = FORMATS[chosen](self)
        else:
            found, notes = convert_draws_to_models(
                self, folder, find_format(chosen, self.base.idim.robot)
            )
        contents = {HEAD: self.describe(tuple(found)).encode(), **found}
        write_files({folder / name: content for name, content in contents.items()}, is_draw_file)
        return notes

    def describe(self, files: Sequence[str] = ()) -> str:
        """``parameter: {mean, std, low, high}`` of all draws, as YAML."""
        lines = [
            f"# {len(self)} draws of {self.base.idim.robot.name}, SI units, inertials about the "
            "joint frames; low and high hold 95 % of them",
            f"seed: {self.seed}",
            f"way: {self.way}",
            f"share_consistent: {self.share:.4g}",
            f"min_pseudo_inertia_eigenvalue: {self.margin:.6g}",
            *([f"min_positive_parameter: {self.least:.6g}"] if np.isfinite(self.least) else []),
            "parameters:",
            *(
                f"  {name}: {{mean: {r['mean']:.9g}, std: {r['std']:.6g}, low: {r['low']:.9g}, "
                f"high: {r['high']:.9g}}}"
                for name, r in self.ranges.items()
            ),
            "files:" if files else "files: []",
            *(f"  - {name}" for name in files),
        ]
        return "\n".join(lines) + "\n"


def certify_draws(
    base: BaseParameters, theta: Array, loop: tuple[str, ...], values: Array, **words: Any
) -> Draws:
    """Draws, each of them shown to be consistent."""
    idim = base.idim
    eigenvalues = find_smallest_eigenvalue(idim.split(theta)[0])
    positive = theta[:, np.flatnonzero(idim.positive)]
    margin = float(np.min(eigenvalues))
    least = float(np.min(positive, initial=np.inf))
    if not (margin > 0.0 and least > 0.0):
        raise ComputationError(
            f"a draw is not physically consistent (smallest eigenvalue {margin:.3g}, smallest "
            f"drive parameter {least:.3g}); dynident repair corrects inertials of the robot file"
        )
    return Draws(base, theta, loop, values, margin=margin, least=least, **words)


Files = tuple[dict[str, bytes], tuple[str, ...]]
"""Files by name, and notes."""


def name_draw_files(draws: Draws, suffix: str) -> Iterator[tuple[int, str]]:
    """Numbers of the draws and names of their files."""
    digits = len(str(len(draws) - 1))
    for k in range(len(draws)):
        yield k, f"draw_{k:0{digits}d}.{suffix}"


def convert_draws_to_models(draws: Draws, folder: Path, form: Format) -> Files:
    """One model file a draw; what of the loop has no place in one is in the notes."""
    files: dict[str, bytes] = {}
    stand_in, missing = draws.stand_in
    notes = [*missing]
    for k, name in name_draw_files(draws, form.suffix):
        model, said = WholeModel(draws.base.idim, draws.theta[k]), tuple[str, ...]()
        if stand_in is not None:
            model, said = stand_in.apply(model)
        files[name], own = form.render(model.idim, model.theta, folder, draws.width, ())
        notes += (*(said if k == 0 else ()), *own)
    if draws.loop:
        loop = ", ".join(draws.loop)
        notes.append(f"{loop} of each draw stand in the formats npz and yaml alone")
    return files, tuple(dict.fromkeys(notes))


def convert_draws_to_npz(draws: Draws) -> Files:
    """All draws as arrays."""
    buffer = io.BytesIO()
    np.savez(
        buffer,
        names=np.array(draws.names),
        values=draws.every,
        base_names=np.array(draws.base.names),
        beta=draws.beta,
    )
    return {"draws.npz": buffer.getvalue()}, ()


def convert_draws_to_yaml(draws: Draws) -> Files:
    """One file of plain values a draw."""
    files = {}
    for k, name in name_draw_files(draws, "yaml"):
        rows = zip(draws.names, draws.every[k].tolist(), strict=True)
        files[name] = "".join(f"{key}: {value!r}\n" for key, value in rows).encode()
    return files, ()


FORMATS: dict[str, Callable[[Draws], Files]] = {
    "npz": convert_draws_to_npz,
    "yaml": convert_draws_to_yaml,
}
"""Files of draws by format, beside model files."""


def list_draw_formats() -> tuple[str, ...]:
    """Names of all formats of draws."""
    return (*list_model_formats(), *FORMATS)


def is_draw_file(name: str) -> bool:
    """Whether a file is named like one of a set of draws."""
    suffixes = "|".join([*(form.suffix for form in list_model_formats().values()), "yaml"])
    return re.fullmatch(rf"draw_\d+\.({suffixes})|draws\.npz", name) is not None


@dataclass(frozen=True)
class Calibration:
    """How much of a measured log lies inside the 95 % band of draws."""

    log: str
    what: str
    """``"torque"`` or ``"position"``."""
    names: tuple[str, ...]
    """Of the joints, or groups of rows."""
    draws: int
    """That the band is of."""
    parameters: Array
    """Shape (n,). Share inside the band of the draws alone: of what the parameters leave open."""
    noise: Array
    """Share inside the band of the draws and of what the model left of the logs that were fitted,
    as one a joint tells, shape (n,)."""
    warnings: tuple[str, ...] = ()
    """Of reading and preparing the log."""


def serialise_calibration(found: Calibration) -> dict[str, Any]:
    """For JSON."""
    rows = zip(found.names, found.parameters, found.noise, strict=True)
    return {
        "log": found.log,
        "what": found.what,
        "draws": found.draws,
        "band_percent": 95.0,
        "joints": [
            {"name": n, "inside_percent": 100.0 * p, "inside_with_noise_percent": 100.0 * w}
            for n, p, w in rows
        ],
        "inside_percent": 100.0 * float(np.mean(found.parameters)),
        "inside_with_noise_percent": 100.0 * float(np.mean(found.noise)),
        "warnings": list(found.warnings),
    }


def serialise_draws(draws: Draws, logs: Sequence[Calibration]) -> dict[str, Any]:
    """For JSON: what was drawn, and how well it holds."""
    return {
        "schema": "dynident.draws/1",
        "draws": len(draws),
        "seed": draws.seed,
        "share_consistent": draws.share,
        "way": draws.way,
        "min_pseudo_inertia_eigenvalue": draws.margin,
        "min_positive_parameter": draws.least,
        "parameters": [{"name": name, **row} for name, row in draws.ranges.items()],
        "calibration": [serialise_calibration(one) for one in logs],
    }


def format_draws(draws: Draws, logs: Sequence[Calibration]) -> str:
    """What was drawn, and how well it holds, in lines."""
    share = "less than 0.1" if draws.share < 1e-3 else f"{100.0 * draws.share:.3g}"
    least = "" if np.isinf(draws.least) else f", smallest drive parameter {draws.least:.2g}"
    lines = [
        f"draws       {len(draws)}, seed {draws.seed}, by {draws.way}",
        f"accepted    {share} % of the normal distribution is physically consistent",
        *format_entry(
            "certified", f"all; smallest pseudo-inertia eigenvalue {draws.margin:.2g}{least}"
        ),
    ]
    for one in logs:
        width = max(len(name) for name in (*one.names, "overall"))
        means = (float(np.mean(one.parameters)), float(np.mean(one.noise)))
        rows = [*zip(one.names, one.parameters, one.noise, strict=True), ("overall", *means)]
        lines += [
            "",
            f"{one.log}: {one.what} inside the 95 % band of {one.draws} draws [%]",
            f"{'':{width}}  parameters  with noise",
            *(f"{n:{width}}  {100.0 * p:10.1f}  {100.0 * w:10.1f}" for n, p, w in rows),
        ]
    return "\n".join(lines)
