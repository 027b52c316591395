"""What was decided, and when a decision pays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, BeforeValidator

from dynident.core.arrays import Array
from dynident.core.options import Options
from dynident.core.schema import OneOf, join_names
from dynident.regression.statistics import is_clearly_positive

BLOCKS = 5
"""Runs of time that are left out in turn."""
WORTH = 0.9
"""Share of the squared error of what a decision is about that it may leave at most."""
FREE = 0.97
"""Likewise, where it costs no parameters."""

BANDWIDTH, ELEMENTS, FRICTION = "bandwidth", "elements", "friction"
STANDSTILL, PRIOR_WEIGHT, OUTLIERS = "standstill", "prior_weight", "outliers"
DERIVATIVES = "derivatives"
DECISIONS = (DERIVATIVES, BANDWIDTH, ELEMENTS, FRICTION, STANDSTILL, PRIOR_WEIGHT, OUTLIERS)
"""What can be decided, in this order."""
ALL, NOTHING = "all", "nothing"


def check_decisions(names: str) -> str:
    """Refuse what cannot be decided."""
    known = OneOf((ALL, NOTHING, *DECISIONS))
    for name in names.split(","):
        known(name.strip())
    return names


@dataclass(frozen=True)
class DecisionOptions(Options):
    """What is decided from the log where a study leaves it open."""

    decide: Annotated[
        Annotated[str, BeforeValidator(join_names), AfterValidator(check_decisions)],
        "what is chosen by cross-validation unless it is stated: `all`, `nothing`, or names of "
        "`derivatives`, `bandwidth`, `elements`, `friction`, `standstill`, `prior_weight` and "
        "`outliers`",
    ] = ALL

    @property
    def asked(self) -> tuple[str, ...]:
        """Which decisions."""
        names = [name.strip() for name in self.decide.split(",")]
        if NOTHING in names:
            return ()
        return tuple(name for name in DECISIONS if ALL in names or name in names)


@dataclass(frozen=True)
class Decision:
    """One thing that the log decided."""

    what: str
    """One of `DECISIONS`."""
    value: str
    """As a study has it."""
    gain_percent: float
    """By how much the error of rows that were left out fell, their root mean square in units of
    each joint's sigma; 0 where nothing paid and all stays as it is without a decision."""
    words: str
    """What it was decided by."""


def compute_gain_percent(before: Array, after: Array) -> float:
    """By how much an error falls, of the sums of its squares in each block [%]."""
    return 100.0 * (1.0 - float(np.sqrt(np.sum(after) / np.sum(before))))


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """Squared errors of the rows that were left out, in units of each group's sigma.

    Of all rows, shape (blocks,), and of those that a decision is about, in one number.
    """

    squares: Array
    own: float

    def pays(self, after: LeftOutErrors, errors: float = 1.0, worth: float = WORTH) -> bool:
        """Whether what leaves others instead is clear, and worth it where it acts.

        The fall has to exceed so many standard errors of the blocks' difference, and to leave at
        most the share `worth` of the error where it acts.
        """
        clear = is_clearly_positive(self.squares - after.squares, errors)
        return clear and after.own < worth * self.own
