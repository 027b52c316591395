"""One combination: identified as `dynident identify` does, and scored on what was held out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynident.core.errors import DynidentError
from dynident.core.plain import to_json
from dynident.core.schema import list_file_names, replace_file_names
from dynident.core.state_files import hash_file, take_fingerprint
from dynident.core.threads import limit_to_one_thread
from dynident.core.version import VERSION
from dynident.fit.json import relate_path, serialise_result
from dynident.fit.scores import BlockScores
from dynident.study.compare import count_estimated_parameters, score_held_out
from dynident.study.run import run_study
from dynident.study.study import Study, pack_study

SCHEMA = "dynident.sweep.run/1"
RUN, RESULT = "run.json", "result.json"


class SweepTask(NamedTuple):
    """A combination as plain data that cross processes: its study, and the one without it."""

    study: str
    plain: str
    blocks: int
    folder: str


class SweepFiles(NamedTuple):
    """The files of a run, or why there are none."""

    files: dict[str, bytes]
    reason: str = ""


@dataclass(frozen=True)
class SweepRun:
    """What is told of a combination.

    Attributes
    ----------
    values : dict
        By keys of the study.
    folder : str
        Of its result, as seen from the sweep's.
    state : {"run", "there"}
    verdict : str
    parameters : int
        That were estimated.
    fitted_percent : float
        Torque error of the fitted rows [%].
    kinds : tuple of str
        Names of the kinds of rows: the joints, and what else the logs state.
    held_out : BlockScores
        On the same rows in all runs.
    """

    values: dict[str, Any]
    folder: str
    state: str
    verdict: str
    parameters: int
    fitted_percent: float
    kinds: tuple[str, ...]
    held_out: BlockScores


def make_task(study: Study, plain: Study, blocks: int, folder: Path) -> tuple[str, SweepTask]:
    """The work of a combination, and what it depends on: contents of files, too."""
    seen = replace_file_names(study, lambda name: relate_path(name, folder))
    reference = plain.prepare.model_dump_json(exclude_none=True)
    files = [hash_file(Path(name)) for name in list_file_names(study)]
    text = seen.model_dump_json(exclude_none=True)
    key = take_fingerprint([VERSION, text, reference, str(blocks), *files])[:16]
    return key, SweepTask(pack_study(study), pack_study(plain), blocks, str(folder.absolute()))


@limit_to_one_thread
def run_combination(task: SweepTask) -> SweepFiles:
    """Identify and score."""
    study, plain = (Study.model_validate_json(text) for text in (task.study, task.plain))
    try:
        fit = run_study(study)
        kinds, scores = score_held_out(fit, plain, task.blocks)
    except DynidentError as error:
        return SweepFiles({}, str(error))
    told = {
        "schema": SCHEMA,
        "verdict": fit.verdict.state,
        "parameters": count_estimated_parameters(fit),
        "fitted_percent": fit.identification[0].overall_percent,
        "kinds": kinds,
        "squared_error": scores.squared_error.tolist(),
        "squared_torque": scores.squared_torque.tolist(),
    }
    result = to_json(serialise_result(fit, Path(task.folder)))
    return SweepFiles({RUN: to_json(told).encode(), RESULT: result.encode()})


def read_run(folder: Path, values: dict[str, Any], name: str, state: str) -> SweepRun | None:
    """A run from its file; None where there is none that is whole."""
    try:
        told = json.loads((folder / RUN).read_bytes())
        if told["schema"] != SCHEMA or not (folder / RESULT).is_file():
            return None
        squared = np.array(told["squared_error"]), np.array(told["squared_torque"])
        shape: Sequence[int] = squared[0].shape
        return SweepRun(
            values, name, state, told["verdict"], told["parameters"], told["fitted_percent"],
            tuple(told["kinds"]), BlockScores(*squared, np.full(shape[-1], np.nan)),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None
