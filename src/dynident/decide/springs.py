"""Springs of which a robot's file knows nothing, by rows that were left out."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from dynident.core.arrays import Array
from dynident.decide.decision import ELEMENTS, Decision, compute_gain_percent
from dynident.decide.folds import AddedColumns, Folds

MOST_SURELY, HALF = 4.0, 0.6
"""Standard errors by which a spring has to pay, and the share of its joint's squared error that it
may leave. Springs that balance an arm explain more; what a cable seems to do in some poses it does
not do in others."""
NONE, SPRING, STIFFNESS = "none", "spring", "ks"
"""What is decided where no element pays; the one that is tried on each joint, and its parameter: an
offset of the friction has its preload."""


def choose_springs(
    folds: Folds, standing: Collection[int], springs: Mapping[int, int]
) -> list[int]:
    """Joints on which a spring pays, the one that tells most first.

    Beside the standing columns of the model without; by the column of each joint's spring.
    """
    joints = list(springs)
    chosen: list[int] = []
    while joints:
        columns = np.array(sorted({*standing, *(springs[j] for j in chosen)}))
        fits = folds.fit(columns)
        paying: list[tuple[float, int]] = []
        for j in joints:
            change = AddedColumns.of(folds, fits, np.array([springs[j]]))
            signs = np.array([True]), np.array([False])  # a stiffness, left out in no fit
            without, left = (change.measure(own, *signs) for own in ([], [0]))
            if without is not None and left is not None and without.pays(left, MOST_SURELY, HALF):
                paying.append((float(np.sum(left.squares)), j))
        if not paying:
            break
        chosen.append(min(paying)[1])
        joints.remove(chosen[-1])
    return chosen


def describe_springs(names: Sequence[str], before: Array, after: Array) -> Decision:
    """The decision to have springs on some joints."""
    value = json.dumps([{"joint": name, "kind": SPRING} for name in names])
    gain = compute_gain_percent(np.sum(before, axis=1), np.sum(after, axis=1))
    words = f"a spring at {', '.join(names)}, which the robot file does not have"
    return Decision(ELEMENTS, value, gain, words)


def has_springs(decisions: Sequence[Decision]) -> bool:
    """Whether springs were decided, and so all else is still to be."""
    return any(each.what == ELEMENTS and each.value != NONE for each in decisions)
