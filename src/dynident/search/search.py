"""Searches step by step, until they stagnate; one that was stopped goes on from its state file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import numpy as np

from dynident.core.arrays import Array
from dynident.core.files import refuse_outputs, write_files
from dynident.core.options import Options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.schema import File
from dynident.core.side_by_side import HERE, Engine, gather_repeatedly
from dynident.core.state_files import (
    StateOrigin,
    pack_state_file,
    read_state_file,
    take_fingerprint,
)
from dynident.core.threads import limit_to_one_thread
from dynident.regression.covariance import leave_unchanged
from dynident.regression.problem import Problem

SCHEMA = "dynident.search/1"
SAVED = 10.0
"""Time between two writings of a state [s]."""


@dataclass(frozen=True)
class SearchKeeping(Options):
    """What ga and pf are stopped and gone on with."""

    search_state: Annotated[
        File | None,
        "file with the state of a search: the search resumes from it if it exists, and writes it "
        "every 10 s, when interrupted and at its end",
    ] = None


Evaluate: TypeAlias = Callable[[Array], Array]
"""A criterion of many sets of numbers, shapes (sets, numbers) and (sets,)."""


@dataclass(frozen=True, eq=False)
class Searchable:
    """Numbers between bounds, and a criterion that counts as chi-squared."""

    problem: Problem
    """Whose rows the criterion is of."""
    identity: tuple[Array, ...]
    """Numbers that tell it from others: a state fits where they are the same."""
    low: Array
    high: Array
    begin: Array
    """`low`, `high`, `begin`: bounds of the first population, and one of its sets, shape
    (numbers,)."""
    triangle: Array
    """Shape (numbers, numbers). R: in the coordinates R x the numbers are alike and independent of
    each other."""
    cost: Evaluate
    """The criterion, plain data that cross processes."""
    portion: int
    """Sets that are evaluated together, on whatever engine."""
    within: Callable[[Array], Array] = leave_unchanged
    """Sets taken into the bounds that a search has to keep, if it has any."""


@dataclass(frozen=True)
class SearchPlace:
    """Where a search is after a step."""

    sets: Array
    """Shape (size, numbers)."""
    costs: Array
    """Their criterion, shape (size,)."""
    best: Array
    """What would be the answer, shape (numbers,)."""
    least: float
    """The criterion that the next step has to gain on."""
    since: int
    """Steps without a gain."""
    count: int
    """Steps."""


P = TypeVar("P", bound=SearchPlace)


@dataclass(frozen=True)
class SearchRun:
    """How a search is run: its steps at most, and how many without a gain are the last.

    The engine evaluates the criterion.
    """

    most: int
    patience: int
    keeping: SearchKeeping = SearchKeeping()
    stage: str = "estimate"
    progress: Progress = ignore_progress
    engine: Engine = HERE


@dataclass(frozen=True)
class SearchStateFile:
    """Where a search's state is kept, and what it has to fit."""

    path: Path
    origin: StateOrigin

    def put(self, place: SearchPlace, generator: Any) -> None:
        """Write a state."""
        arrays = {each.name: np.asarray(getattr(place, each.name)) for each in fields(place)}
        content = pack_state_file(SCHEMA, self.origin, {"generator": generator}, arrays)
        write_files({self.path: content})

    def taken(self, kind: type[P], rng: np.random.Generator, numbers: int) -> P | None:
        """The place of a state, the generator put where it was; None where there is none yet."""
        refuse_outputs([self.path])
        kept = read_state_file(self.path, SCHEMA, ("generator",), "a search")
        if kept is None:
            return None
        kept.require(self.origin, "method, size, seed, ranges, prior, log or machine")
        try:
            found: dict[str, Any] = {each.name: kept.arrays[each.name] for each in fields(kind)}
            rng.bit_generator.state = kept.about["generator"]
            size = len(found["costs"])
            shapes = found["sets"].shape, found["costs"].shape, found["best"].shape
        except (KeyError, ValueError, TypeError) as error:
            raise kept.damaged from error
        if shapes != ((size, numbers), (size,), (numbers,)):
            raise kept.damaged
        return kind(**{name: each if each.ndim else each.item() for name, each in found.items()})


@contextmanager
def open_evaluation(task: Searchable, engine: Engine) -> Iterator[Evaluate]:
    """The criterion of a task as an engine evaluates it.

    Portions are the same on any engine, and so are the bits: of more or fewer rows a product of
    matrices may be rounded otherwise.
    """
    work = partial(evaluate_portion, task.cost)
    with gather_repeatedly(work, engine, "evaluating") as gather:

        def evaluate(sets: Array) -> Array:
            portions = [sets[k : k + task.portion] for k in range(0, len(sets), task.portion)]
            return np.concatenate(gather(portions))

        yield evaluate


@limit_to_one_thread
def evaluate_portion(cost: Evaluate, sets: Array) -> Array:
    """The criterion of some sets."""
    return cost(sets)


def run_search(
    task: Searchable,
    options: str,
    rng: np.random.Generator,
    kind: type[P],
    begin: Callable[[Evaluate], P],
    step: Callable[[P, Evaluate], P],
    run: SearchRun,
) -> tuple[P, str]:
    """Where a search ends, and why there.

    From the first place, that of `begin`, each `step` leads to another one of the same kind; both
    are given what evaluates the criterion. The options are what the answer depends on beside the
    task, the number of steps aside; the generator is of `begin` and `step` alone: it is part of the
    state.
    """
    shelf, place = None, None
    if run.keeping.search_state is not None:
        base = task.problem.base
        mark = take_fingerprint((options, *task.identity))
        shelf = SearchStateFile(
            Path(run.keeping.search_state), StateOrigin(base.idim.robot.name, base.names, mark)
        )
        place = shelf.taken(kind, rng, len(task.low))
    with open_evaluation(task, run.engine) as evaluate:
        place = begin(evaluate) if place is None else place
        known, saved = (place, rng.bit_generator.state), time.monotonic()
        try:
            while place.since < run.patience and place.count < run.most:
                run.progress(run.stage, place.count / run.most)
                place = step(place, evaluate)
                known = place, rng.bit_generator.state
                if shelf is not None and time.monotonic() - saved > SAVED:
                    shelf.put(*known)
                    saved = time.monotonic()
        finally:
            if shelf is not None:
                shelf.put(*known)
    return place, "stagnated" if place.since >= run.patience else "stopped"
