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
    add_load,
    add_memory,
    build_menu,
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

SURELY = 2.0
"""Standard errors by which friction under load has to pay: it is extrapolated to other loads."""


def choose_drives(
    problem: Problem, admitted: FeasibleSet, sigma: Array, what: Collection[str]
) -> tuple[tuple[Decision, ...], float]:
    """The springs and the friction of each joint that predict rows which were left out best.

    Parameters
    ----------
    problem : Problem
        With the usual friction on every joint.
    admitted : FeasibleSet
        Of its parameters; here its prior counts, and its cones do not.
    sigma : ndarray, shape (groups,)
        Of the rows' errors.
    what : collection of str
        `ELEMENTS`, `FRICTION`, or both.

    Returns
    -------
    decisions : tuple of Decision
        Of elements alone where some pay, as all else is to be decided with them: their sections in
        a study, as JSON. Else of the friction, too: one name, or one a joint with commas between
        them.
    float
        The squared error of the rows that were left out with them, in units of sigma.
    """
    menus = []
    if FRICTION in what:
        menus = [build_menu(speed) for speed in find_fastest_speeds(problem)]
    unknowns = admitted.space.matrix.shape[1]
    about = estimate_roughly(problem, admitted, sigma)
    wide = widen(problem.base, menus, about, unknowns)
    blocks = factor_blocks(Problem.of(wide.base, problem.samples), BLOCKS)
    if any(np.min(block.counts) < 1 for block in blocks):
        words = f"some joint has no rows in one of {BLOCKS} blocks of time"
        values = {ELEMENTS: NONE, FRICTION: DEFAULT_FRICTION}
        return tuple(Decision(each, values[each], 0.0, words) for each in what), np.inf
    folds = Folds.of(blocks, admitted, sigma)
    standing = set(range(unknowns))
    before = folds.measure(folds.fit(np.array(sorted(standing))))
    laws = choose_laws(folds, standing, wide, menus) if FRICTION in what else None
    if ELEMENTS in what:
        # beside the laws: bristles, too, pull back
        places = {j: wide.springs[j] for j in list_joints_within_a_turn(problem)}
        springs = choose_springs(folds, standing if laws is None else laws.standing, places)
        if springs:
            standing |= {wide.springs[j] for j in springs}
            after = folds.measure(folds.fit(np.array(sorted(standing))))
            error = float(np.sum(after))
            if FRICTION in what:
                error = float(np.sum(choose_laws(folds, standing, wide, menus).errors))
            names = [problem.robot.joint_names[j] for j in sorted(springs)]
            return (describe_springs(names, before, after),), error
    found = [Decision(ELEMENTS, NONE, 0.0, "a spring pays at no joint")] if ELEMENTS in what else []
    if laws is None:
        return tuple(found), float(np.sum(before))
    return (*found, laws.decision), float(np.sum(laws.errors))


@dataclass(frozen=True, eq=False)
class Laws:
    """The friction of each joint.

    Attributes
    ----------
    standing : frozenset of int
        The columns of the model with it.
    errors : ndarray, shape (blocks, groups)
        Squared, of the rows that were left out.
    """

    decision: Decision
    standing: frozenset[int]
    errors: Array


def choose_laws(folds: Folds, standing: Collection[int], wide: Wide, menus: Sequence[Menu]) -> Laws:
    """The friction of each joint, beside the columns of a model with the usual one."""
    n, standing = len(menus), set(standing)
    fits = folds.fit(np.array(sorted(standing)))
    first = folds.measure(fits)
    chosen = [menu.usual for menu in menus]
    # joints whose errors are largest first: what is wrong there disturbs the others
    for j in np.argsort(-np.sum(first, axis=0)[-n:], kind="stable").tolist():
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
    names = [law.name for law in chosen]
    value = names[0] if len(set(names)) == 1 else ", ".join(names)
    last = folds.measure(fits)
    gain = compute_gain_percent(np.sum(first, axis=1), np.sum(last, axis=1))
    paid = sum(law is not menu.usual for law, menu in zip(chosen, menus, strict=True))
    words = f"another law than {DEFAULT_FRICTION} pays on {paid} of {n} joints"
    return Laws(Decision(FRICTION, value, gain, words), frozenset(standing), last)


def choose_drives_and_weight(
    problem: Problem, admitted: FeasibleSet, sigma: Array, what: Collection[str]
) -> tuple[Decision, ...]:
    """The drives by themselves, or after the weight of the prior: what predicts best.

    Each is chosen with the other as it is: a prior that is trusted too little spoils the friction
    of short logs, and one that is trusted too much because the usual friction is wrong spoils all.
    """
    found, error = choose_drives(problem, admitted, sigma, what)
    if has_springs(found):
        return found
    weight = choose_weight(problem, admitted, sigma)
    if weight.gain_percent > 0.0:
        system = problem.factors.weighted(sigma)
        other = weigh_prior(problem, admitted, system, float(weight.value))
        then, left = choose_drives(problem, other, sigma, what)
        if left < error:
            found = then if has_springs(then) else (weight, *then)
    return found


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
    for further, sure in ((add_load, SURELY), (add_memory, 1.0)):
        for more, other in measure([further(law)]):
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
                speeds = np.abs(log.dq[start:stop, -n:] @ gear.turns)
                found[gear.number - 1] = max(found[gear.number - 1], float(np.max(speeds)))
    return [float(speed) for speed in found]


def list_joints_within_a_turn(problem: Problem) -> list[int]:
    """Joints that may have a spring: none is wound up further, and a drift of the torque looks like
    one.
    """
    n = problem.robot.n
    places = [log.q[start:stop, -n:] for log in problem.samples for start, stop in log.segments]
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
    """A model with the parts of all laws and a spring at each joint, beside the one it was made of.

    Attributes
    ----------
    base : BaseParameters
        Those of the narrow model, and each column of a further part as one more.
    columns : tuple of tuple of Column
        Of each joint, those that its laws differ in.
    narrow : tuple of int
        Where the narrow model's parameters stand among the wide one's.
    places : mapping of int to int
        Where the wide model's further parameters stand among the unknowns and those beyond.
    springs : tuple of int
        The same of each joint's spring.
    """

    base: BaseParameters
    columns: tuple[tuple[Column, ...], ...]
    narrow: tuple[int, ...]
    places: Mapping[int, int]
    springs: tuple[int, ...]

    def find(self, column: Column) -> int:
        """Where a column stands among unknowns and those beyond."""
        return self.narrow.index(column.place) if column.part == 0 else self.places[column.place]


def widen(base: BaseParameters, menus: Sequence[Menu], theta: Array, unknowns: int) -> Wide:
    """A model with all that a joint's drives may have, about a full set of the narrow one.

    Parameters
    ----------
    menus : sequence of Menu
        Of each joint; empty where the friction is as it is.
    unknowns : int
        That stand for the narrow model's parameters.
    """
    n = base.idim.robot.n
    friction = ", ".join(menu.wide for menu in menus) if menus else base.idim.friction
    springs = [attach(j, SPRING, {}) for j in range(n)]
    elements = (*base.idim.elements, *(springs if not base.idim.elements else ()))
    idim = Idim(replace(base.idim.structure, friction=friction, elements=elements))
    columns = tuple(list_columns(idim, j + 1, menu) for j, menu in enumerate(menus))
    names = {name: k for k, name in enumerate(idim.names)}
    narrow = tuple(names[name] for name in base.idim.names)
    stiff = [names[f"{STIFFNESS}{j + 1}"] for j in range(n)] if not base.idim.elements else []
    further = np.array(
        [*(c.place for own in columns for c in own if c.part > 0), *stiff], dtype=int
    )
    about = np.zeros(len(idim.names))
    about[list(narrow)] = theta
    place = np.array(narrow)
    kept = np.concatenate([place[base.kept], further])
    K = np.vstack([base.K, np.zeros((len(further), base.K.shape[1]))])
    idim = replace(idim, about=tuple(about.tolist()))
    places = {int(k): unknowns + i for i, k in enumerate(further)}
    return Wide(replace(base, idim=idim, kept=kept, dropped=place[base.dropped], K=K), columns,
                narrow, places, tuple(places[k] for k in stiff))  # fmt: skip
