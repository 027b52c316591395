"""Springs that a robot's file lacks, and the friction of each drive, by rows that were left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.consistency.feasible_set import FeasibleSet
from dynident.core.arrays import Array, Booleans
from dynident.decide.decision import (
    BLOCKS,
    ELEMENTS,
    FRICTION,
    Decision,
    Left,
    compute_gain_percent,
)
from dynident.decide.folds import Change, Folds
from dynident.decide.laws import (
    Column,
    Law,
    Menu,
    build_menu,
    extend_law,
    list_columns,
)
from dynident.decide.prior import choose_weight, weigh_prior
from dynident.decide.springs import (
    NONE,
    SPRING,
    STIFFNESS,
    choose_springs,
    describe_springs,
    has_springs,
)
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import attach
from dynident.friction import DEFAULT_FRICTION
from dynident.regression.blocks import factor_blocks
from dynident.regression.factors import System
from dynident.regression.problem import Problem

SURE = {1: 2.0, 2: 1.0}
"""Standard errors by which `FURTHER` parts have to pay: load is extrapolated to other loads."""
TOGETHER = 0.97
"""Share of the squared error of all joints that load or bristles on all of them may leave."""


def choose_drives(
    problem: Problem,
    admitted: FeasibleSet,
    sigma: Array,
    what: Collection[str],
    weighed: bool = False,
) -> tuple[Decision, ...]:
    """The springs and the friction of each joint that predict rows which were left out best.

    Where the weight of the prior is open, too, they are chosen by themselves and after the weight,
    and what predicts best is taken: a prior that is trusted too little spoils the friction of short
    logs, and one that is trusted too much because the usual friction is wrong spoils all.

    Parameters
    ----------
    problem : Problem
        With the usual friction on every joint where `FRICTION` is open.
    admitted : FeasibleSet
        Of its parameters; here its prior counts, and its cones do not.
    sigma : ndarray, shape (groups,)
        Of the rows' errors.
    what : collection of str
        `ELEMENTS`, `FRICTION`, or both.
    weighed : bool
        Whether the weight of the prior is open.

    Returns
    -------
    tuple of Decision
        Of elements alone where some pay, as all else is to be decided with them: their sections in
        a study, as JSON. Else of the friction, too: one name, or one a joint with commas between
        them; after the weight where that was chosen first.
    """
    about = estimate_roughly(problem, admitted, sigma)
    wide = widen(problem, about, admitted.space.matrix.shape[1], what)
    blocks = factor_blocks(problem.under(wide.base), BLOCKS)
    if any(np.min(block.counts) < 1 for block in blocks):
        words = f"some joint has no rows in one of {BLOCKS} blocks of time"
        values = {ELEMENTS: NONE, FRICTION: DEFAULT_FRICTION}
        return tuple(Decision(each, values[each], 0.0, words) for each in what)
    found, error = choose_columns(wide, Folds.of(blocks, admitted, sigma), what)
    if not weighed or has_springs(found):
        return found
    weight = choose_weight(problem, admitted, sigma)
    if weight.gain_percent > 0.0:
        system = problem.factors.weighted(sigma)
        other = weigh_prior(problem, admitted, system, float(weight.value))
        then, left = choose_columns(wide, Folds.of(blocks, other, sigma), what)
        if left < error:
            found = then if has_springs(then) else (weight, *then)
    return found


def choose_columns(
    wide: Wide, folds: Folds, what: Collection[str]
) -> tuple[tuple[Decision, ...], float]:
    """The same with one prior, and the squared error of the rows that were left out."""
    usual = frozenset(range(folds.columns - len(wide.places)))
    laws = choose_laws(wide, folds, usual)
    # beside the laws: bristles, too, pull back
    springs = choose_springs(folds, laws.standing, wide.springs)
    if springs:
        sprung = usual | {wide.springs[j] for j in springs}
        before, after = (folds.measure(folds.fit(np.array(sorted(own)))) for own in (usual, sprung))
        names = [wide.base.idim.robot.joint_names[j] for j in sorted(springs)]
        error = float(np.sum(choose_laws(wide, folds, sprung).errors))
        return (describe_springs(names, before, after),), error
    none = Decision(ELEMENTS, NONE, 0.0, "no joint is clearly better with a spring")
    found = tuple(each for each in (none, laws.decision) if each.what in what)
    return found, float(np.sum(laws.errors))


@dataclass(frozen=True, eq=False)
class Laws:
    """The friction of each joint, and the columns of the model with it.

    The errors are squared, of the rows that were left out, shape (blocks, groups).
    """

    decision: Decision
    standing: frozenset[int]
    errors: Array


def choose_laws(wide: Wide, folds: Folds, usual: Collection[int]) -> Laws:
    """The friction of each joint that has a menu, beside the columns of the usual model."""
    menus, standing = wide.menus, set(usual)
    fits = folds.fit(np.array(sorted(standing)))
    first = folds.measure(fits)
    chosen = [menu.usual for menu in menus]
    # joints whose errors are largest first: what is wrong there disturbs the others
    worst = -np.sum(first, axis=0)[first.shape[1] - len(menus) :]
    for j in np.argsort(worst, kind="stable").tolist():
        columns = wide.columns[j]
        places = np.array([wide.find(column) for column in columns])
        held = {int(place) for place in places} & standing
        rest = np.array(sorted(standing - held))
        own = folds.fit(rest) if held else fits
        change = Change.of(folds, own, places)
        law = choose_law(change, columns, menus[j])
        if law is menus[j].usual:
            continue
        chosen[j] = law
        # bristles that would push stay out of all further fits
        members = change.select(find_members(law, columns), *describe_columns(columns))
        standing = {*rest.tolist(), *places[members].tolist()}
        fits = folds.fit(np.array(sorted(standing)))
    laws, standing = extend_all_laws(wide, folds, chosen, standing)
    if laws != chosen:
        chosen, fits = laws, folds.fit(np.array(sorted(standing)))
    names = [law.name for law in chosen]
    value = ", ".join(names if len(set(names)) > 1 else names[:1])
    last = folds.measure(fits)
    gain = compute_gain_percent(np.sum(first, axis=1), np.sum(last, axis=1))
    paid = sum(law is not menu.usual for law, menu in zip(chosen, menus, strict=True))
    words = (
        f"another model than {DEFAULT_FRICTION} is clearly better on {paid} of {len(menus)} joints"
    )
    return Laws(Decision(FRICTION, value, gain, words), frozenset(standing), last)


def extend_all_laws(
    wide: Wide, folds: Folds, laws: list[Law], standing: set[int]
) -> tuple[list[Law], set[int]]:
    """Load and bristles on all joints that lack them, where that pays of all together.

    A robot's drives are built alike: what no joint shows clearly by itself, all may. Columns of the
    model with the laws are `standing`.
    """
    for part, sure in SURE.items():
        lacking = [
            (j, column, wide.find(column))
            for j, law in enumerate(laws)
            if part not in law.parts
            for column in wide.columns[j]
            if column.part == part
        ]
        if not lacking:
            continue
        fits = folds.fit(np.array(sorted(standing)))
        change = Change.of(folds, fits, np.array([place for *_, place in lacking]))
        positive, _ = describe_columns([column for _, column, _ in lacking])
        all_of = range(len(lacking)), positive, np.ones(len(lacking), dtype=bool)
        left = change.measure(*all_of)
        if left is None or not folds.leave(fits).pays(left, sure, TOGETHER):
            continue
        members = [lacking[k] for k in change.select(*all_of)]
        joints = {j for j, *_ in members}
        laws = [extend_law(law, part) if j in joints else law for j, law in enumerate(laws)]
        standing = standing | {place for *_, place in members}
    return laws, standing


def choose_law(change: Change, columns: Sequence[Column], menu: Menu) -> Law:
    """The law of a joint that pays.

    A law with more parameters has to pay beside the one that was chosen of those with fewer.
    """
    signs = describe_columns(columns)

    def measure(laws: Sequence[Law]) -> list[tuple[Law, Left]]:
        members = ((law, find_members(law, columns)) for law in laws)
        measured = ((law, change.measure(own, *signs)) for law, own in members)
        return [(law, left) for law, left in measured if left is not None]

    found = measure(menu.tiers[0])
    if not found:
        return menu.usual
    law, left = found[0]
    for tier in menu.tiers[1:]:
        best = min(measure(tier), key=lambda each: float(np.sum(each[1].squares)), default=None)
        if best is not None and left.pays(best[1]):
            law, left = best
    for part, sure in SURE.items():
        for more, other in measure([extend_law(law, part)]):
            if left.pays(other, sure):
                law, left = more, other
    return law


def describe_columns(columns: Sequence[Column]) -> tuple[Booleans, Booleans]:
    """Which columns are positive, and which are left out where they would not be."""
    positive = np.array([column.positive for column in columns], dtype=bool)
    return positive, np.array([column.spare for column in columns], dtype=bool)


def find_members(law: Law, columns: Sequence[Column]) -> list[int]:
    """Which of a joint's columns a law has."""
    return [
        k
        for k, column in enumerate(columns)
        if (law.coulomb if column.part == 0 else column.part in law.parts)
    ]


def find_fastest_speeds(problem: Problem) -> list[float]:
    """Largest speed of each joint and of its motor [rad/s or m/s]; small where it never moves."""
    n, idim = problem.robot.n, problem.idim
    found = np.full(n, 1e-3)
    for gear in idim.gears:
        for log in problem.samples:
            for start, stop in log.segments:
                speeds = np.abs(log.dq[start:stop, log.joint_rows] @ gear.turns)
                found[gear.number - 1] = max(found[gear.number - 1], float(np.max(speeds)))
    return [float(speed) for speed in found]


def list_joints_within_a_turn(problem: Problem) -> list[int]:
    """Joints that may have a spring: none is wound up further, and a drift of the torque looks like
    one.
    """
    n = problem.robot.n
    places = [
        log.q[start:stop, log.q.shape[1] - n :]
        for log in problem.samples
        for start, stop in log.segments
    ]
    lowest, highest = (np.array([f(own, axis=0) for own in places]) for f in (np.min, np.max))
    ranges = np.max(highest, axis=0) - np.min(lowest, axis=0)
    return [
        j
        for j, joint in enumerate(problem.robot.joints)
        if joint.kind == "prismatic" or ranges[j] < 2.0 * np.pi
    ]


def estimate_roughly(problem: Problem, admitted: FeasibleSet, sigma: Array) -> Array:
    """The full set that rows and prior ask for, cones aside: loads are taken from its bodies."""
    A, b, _ = admitted.rows(problem.factors.weighted(sigma))
    x = System(A, b, 0.0).solve()
    if admitted.space.standard:
        return admitted.space.value(x)
    return problem.base.standard(admitted.space.matrix @ x)


@dataclass(frozen=True, eq=False)
class Wide:
    """A model with the parts of all laws, and springs, beside the one that it was made of.

    Attributes
    ----------
    base : BaseParameters
        Those of the narrow model, and each column of a further part as one more.
    menus : tuple of Menu
        Of each joint; empty where the friction is not open.
    columns : tuple of tuple of Column
        Of each joint with a menu, those that its laws differ in.
    narrow : tuple of int
        Where the narrow model's parameters stand among the wide one's.
    places : mapping of int to int
        Where the wide model's further parameters stand among the unknowns and those beyond.
    springs : mapping of int to int
        The same of the spring of each joint that may have one.
    """

    base: BaseParameters
    menus: tuple[Menu, ...]
    columns: tuple[tuple[Column, ...], ...]
    narrow: tuple[int, ...]
    places: Mapping[int, int]
    springs: Mapping[int, int]

    def find(self, column: Column) -> int:
        """Where a column stands among unknowns and those beyond."""
        return self.narrow.index(column.place) if column.part == 0 else self.places[column.place]


def widen(problem: Problem, theta: Array, unknowns: int, what: Collection[str]) -> Wide:
    """A model with all that a joint's drives may have, about a full set of a problem's.

    So many unknowns stand for the problem's parameters; for `what`, see `choose_drives`.
    """
    base, structure = problem.base, problem.idim.structure
    speeds = find_fastest_speeds(problem) if FRICTION in what else []
    menus = tuple(build_menu(speed) for speed in speeds)
    joints = list_joints_within_a_turn(problem) if ELEMENTS in what else []
    idim = Idim(
        replace(
            structure,
            friction=", ".join(menu.wide for menu in menus) or structure.friction,
            elements=(*structure.elements, *(attach(j, SPRING, {}) for j in joints)),
        )
    )
    columns = tuple(list_columns(idim, j + 1, menu) for j, menu in enumerate(menus))
    names = {name: k for k, name in enumerate(idim.names)}
    narrow = tuple(names[name] for name in base.idim.names)
    springs = {j: names[f"{STIFFNESS}{j + 1}"] for j in joints}
    parts = (c.place for own in columns for c in own if c.part > 0)
    further = np.array([*parts, *springs.values()], dtype=int)
    about = np.zeros(len(idim.names))
    about[list(narrow)] = theta
    place = np.array(narrow)
    kept = np.concatenate([place[base.kept], further])
    K = np.vstack([base.K, np.zeros((len(further), base.K.shape[1]))])
    idim = replace(idim, about=tuple(about.tolist()))
    places = {int(k): unknowns + i for i, k in enumerate(further)}
    return Wide(
        replace(base, idim=idim, kept=kept, dropped=place[base.dropped], K=K),
        menus,
        columns,
        narrow,
        places,
        {j: places[k] for j, k in springs.items()},
    )
