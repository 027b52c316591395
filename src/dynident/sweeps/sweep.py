"""``dynident sweep``: every combination of values, side by side, and what they are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dynident.core.compiled import tells_compilations
from dynident.core.errors import ComputationError, InputError
from dynident.core.files import refuse_outputs, write_files
from dynident.core.progress import Progress, ignore_progress
from dynident.core.side_by_side import LostTask, Runner, choose_engine, run_side_by_side
from dynident.study.compare import BLOCKS
from dynident.study.first_study import hold_some_out
from dynident.study.study import Study, list_input_files, load_study_robot, read_study_recording
from dynident.sweeps.axes import list_combinations, vary_study
from dynident.sweeps.outcome import Sweep, SweepFailure
from dynident.sweeps.run import SweepRun, make_task, read_run, run_combination

RUNS = "runs"
"""The folder of the runs, in that of a sweep."""
OUTPUTS = ("sweep.json", "sweep.html")


@tells_compilations
def sweep(
    study: Study,
    values: Mapping[str, Sequence[Any]],
    output: str | Path = "sweep",
    *,
    blocks: int = BLOCKS,
    workers: int = 1,
    engine: Runner = None,
    strict: bool = False,
    progress: Progress = ignore_progress,
) -> Sweep:
    """Identify a study with every combination of some values, and compare the held-out errors.

    All are scored on the same rows: those of the held-out logs, as the study prepares them with its
    own values. Without held-out logs the last one is held out, or the last third of a log alone.
    What is in the folder already, of the same study and logs, is not run again.

    >>> study = di.read_study("study.toml")
    >>> di.sweep(study, {"prepare.bandwidth": [4.0, 5.0]}, "swept").best.values
    {'prepare.bandwidth': ...}

    Parameters
    ----------
    study : Study
    values : mapping of str to sequence
        Values by keys of the study: ``{"prepare.bandwidth": [1.0, 2.0, 5.0]}``.
    output : str or Path
        Folder of the results, one a combination.
    blocks : int
        Contiguous blocks in time of the held-out logs, between which errors scatter.
    workers : int
        Processes of this machine.
    engine : Engine, distributed.Client or str, optional
        What runs the combinations instead: a Dask cluster by a client or its scheduler's address.
    strict : bool
        Refuse the first combination that gives no answer, instead of naming it.
    progress : callable
        See `Progress`.

    Raises
    ------
    InputError
        For keys and values that the study has not.
    ComputationError
        Where every combination failed.
    """
    if blocks < 2:
        raise InputError(f"blocks is {blocks}, but a standard error needs at least 2")
    folder, combinations = Path(output), list_combinations(values)
    refuse_outputs([folder / name for name in OUTPUTS], list_input_files(study))
    held = study
    if not has_held_out(study):
        robot = load_study_robot(study)
        logs = [read_study_recording(log, robot, torque=False) for log in study.log]
        held = hold_some_out(study, logs)
    if not has_held_out(held):
        raise InputError("the log is too short for a part of it to be held out; give another log")
    made = [
        make_task(vary_study(held, each), held, blocks, folder / RUNS / "run")
        for each in combinations
    ]
    runs: list[SweepRun | SweepFailure | None] = [
        read_run(folder / RUNS / key, each, f"{RUNS}/{key}", "there")
        for each, (key, _) in zip(combinations, made, strict=True)
    ]
    missing = [k for k, run in enumerate(runs) if run is None]
    tasks = [made[k][1] for k in missing]
    chosen = choose_engine(workers, engine)
    for place, done in run_side_by_side(run_combination, tasks, chosen, progress, "sweeping"):
        k = missing[place]
        own, key = combinations[k], made[k][0]
        if isinstance(done, LostTask) or done.reason:
            runs[k] = SweepFailure(own, done.reason)
            if strict:
                raise ComputationError(f"{runs[k]}")
            continue
        write_files({folder / RUNS / key / name: text for name, text in done.files.items()})
        runs[k] = read_run(folder / RUNS / key, own, f"{RUNS}/{key}", "run")
    found = Sweep(
        held.robot.file,
        {key: tuple(each) for key, each in values.items()},
        blocks,
        tuple(run for run in runs if isinstance(run, SweepRun)),
        tuple(run for run in runs if isinstance(run, SweepFailure)),
    )
    if not found.runs:
        raise ComputationError(f"every combination failed; {found.failures[0]}")
    texts = (found.to_json(), found.render())
    write_files({folder / name: t.encode() for name, t in zip(OUTPUTS, texts, strict=True)})
    return found


def has_held_out(study: Study) -> bool:
    """Whether a study has a log that is not fitted."""
    return any(log.use == "validate" for log in study.log)
