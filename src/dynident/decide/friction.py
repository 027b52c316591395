"""Springs that a robot's file lacks, and the friction of each drive, by rows that were left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.consistency.feasible_set import FeasibleSet
from dynident.core.arrays import Array, Booleans
from dynident.core.factors import System
from dynident.decide.blocks import lack_rows
from dynident.decide.decision import (
    BLOCKS,
    ELEMENTS,
    FRICTION,
    WORTH,
    Decision,
    LeftOutErrors,
    compute_gain_percent,
)
from dynident.decide.folds import AddedColumns, Folds
from dynident.decide.laws import PLAIN, CandidateLaw, Column, LawMenu, build_menu, list_columns
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
from dynident.regression.problem import Problem

SURE = {1: 2.0, 2: 1.0}
"""Standard errors by which `FURTHER` parts have to pay: load is extrapolated to other loads."""
TOGETHER = 0.97
"""Share of the squared error of all joints that what all of them have may leave."""


def choose_drives(
    problem: Problem,
    admitted: FeasibleSet,
    sigma: Array,
    what: Collection[str],
    confirm: Callable[[Decision, Sequence[Decision]], Decision] | None = None,
    loads: bool = True,
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
    confirm : callable, optional
        Where the weight of the prior is open: a weight and what was decided with it to that weight,
        or to the usual one where the fit to all rows does not confirm it. Friction that was chosen
        under a weight makes up for what that weight does, and is not taken without it.
    loads : bool
        Whether friction may grow with the load of its drive.

    Returns
    -------
    tuple of Decision
        Of elements alone where some pay, as all else is to be decided with them: their sections in
        a study, as JSON. Else of the friction, too: one name, or one a joint with commas between
        them; after the weight where that was chosen first.
    """
    about = estimate_roughly(problem, admitted, sigma)
    wide = widen(problem, about, admitted.space.matrix.shape[1], what, loads)
    blocks = factor_blocks(problem.under(wide.base), BLOCKS)
    if lack_rows(problem, blocks):
        words = f"some joint has no rows in one of {BLOCKS} blocks of time"
        values = {ELEMENTS: NONE, FRICTION: DEFAULT_FRICTION}
        return tuple(Decision(each, values[each], 0.0, words) for each in what)
    found, error = choose_columns(wide, Folds.of(blocks, admitted, sigma, wide.first), what)
    if confirm is None:
        return found
    weight = choose_weight(problem, admitted, sigma)
    if weight.gain_percent > 0.0:
        system = problem.factors.weighted(sigma)
        other = weigh_prior(problem, admitted, system, float(weight.value))
        then, left = choose_columns(wide, Folds.of(blocks, other, sigma, wide.first), what)
        if left < error and has_springs(then):
            return then
        if left < error:
            confirmed = confirm(weight, then)
            return (confirmed, *(then if confirmed == weight else found))
    return found


def choose_columns(
    wide: WideModel, folds: Folds, what: Collection[str]
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
class JointLaws:
    """The friction of each joint, and the columns of the model with it.

    The errors are squared, of the rows that were left out, shape (blocks, groups).
    """

    decision: Decision
    standing: frozenset[int]
    errors: Array


def choose_laws(wide: WideModel, folds: Folds, usual: Collection[int]) -> JointLaws:
    """The friction of each joint that has a menu, beside the columns of the usual model.

    Joints have laws of their own, or all the same one, without shapes: what predicts better.
    """
    menus = wide.menus
    first = folds.measure(folds.fit(np.array(sorted(usual))))
    begin = [menu.usual for menu in menus], frozenset(usual)
    every = [*range(len(menus))]
    # joints whose errors are largest first: what is wrong there disturbs the others
    worst = -np.sum(first, axis=0)[first.shape[1] - len(menus) :]
    own = begin
    for j in np.argsort(worst, kind="stable").tolist():
        own = choose_law(wide, folds, [j], menus[j].tiers[1:], *own)
    ways = [choose_law(wide, folds, every, (), *own) if menus else begin]
    if len(menus) > 1:
        ways.append(choose_law(wide, folds, every, menus[0].plain, *begin))
    errors = [folds.measure(folds.fit(np.array(sorted(held)))) for _, held in ways]
    best = int(np.argmin([np.sum(each) for each in errors]))
    (chosen, standing), last = ways[best], errors[best]
    names = [law.name for law in chosen]
    value = ", ".join(names if len(set(names)) > 1 else names[:1])
    gain = compute_gain_percent(np.sum(first, axis=1), np.sum(last, axis=1))
    paid = sum(law != menu.usual for law, menu in zip(chosen, menus, strict=True))
    words = (
        f"another model than {DEFAULT_FRICTION} is clearly better on {paid} of {len(menus)} joints"
    )
    return JointLaws(Decision(FRICTION, value, gain, words), standing, last)


def choose_law(
    wide: WideModel,
    folds: Folds,
    joints: Sequence[int],
    tiers: Sequence[Sequence[CandidateLaw]],
    laws: Sequence[CandidateLaw],
    standing: frozenset[int],
) -> tuple[list[CandidateLaw], frozenset[int]]:
    """The laws of all joints, of which some may have another that pays, all of them the same.

    One with more parameters has to pay beside that which was chosen of those with fewer. Of
    several joints, load and bristles are not with those that would be pushed by them: what no joint
    shows clearly by itself, all together may. Columns of the model with the laws are `standing`.
    """
    owned = [(j, c) for j in joints for c in wide.columns[j] if c.part in PLAIN or len(joints) == 1]
    places = np.array([wide.find(column) for _, column in owned])
    positive, spare = describe_columns([column for _, column in owned])
    worth = WORTH
    if len(joints) > 1:
        began = np.array([int(place) in standing for place in places], dtype=bool)
        worth, positive, spare = TOGETHER, positive & ~began, ~began
    rest = standing - {int(place) for place in places}
    change = AddedColumns.of(folds, folds.fit(np.array(sorted(rest))), places)

    def find(some: Mapping[int, CandidateLaw]) -> list[int]:
        return [k for k, (j, column) in enumerate(owned) if column.part in some[j]]

    def measure(some: Mapping[int, CandidateLaw]) -> LeftOutErrors | None:
        return change.measure(find(some), positive, spare)

    own = {j: laws[j] for j in joints}
    left = measure(own)
    if left is None:
        return [*laws], standing
    for tier in tiers:
        options = [{j: law.beside(own[j]) for j in joints} for law in tier]
        measured = [(each, measure(each)) for each in options]
        tried = [(each, other) for each, other in measured if other is not None]
        best = min(tried, key=lambda each: float(np.sum(each[1].squares)), default=None)
        if best is not None and left.pays(best[1], worth=worth):
            own, left = best
    for part, sure in SURE.items():
        further = {j: law.extend(part) for j, law in own.items()}
        other = measure(further)
        if other is not None and left.pays(other, sure, worth):
            own, left = further, other
    members = change.select(find(own), positive, spare)
    held = {(owned[k][0], owned[k][1].part) for k in members}
    gone = {j: {c.part for i, c in owned if i == j and (j, c.part) not in held} for j in joints}
    settled = [own[j].without(gone[j]) if j in own else law for j, law in enumerate(laws)]
    return settled, rest | {int(place) for place in places[members]}


def describe_columns(columns: Sequence[Column]) -> tuple[Booleans, Booleans]:
    """Which columns are positive, and which are left out where they would not be."""
    positive = np.array([column.positive for column in columns], dtype=bool)
    return positive, np.array([column.spare for column in columns], dtype=bool)


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
class WideModel:
    """A model with the parts of all laws, and springs, beside the one that it was made of."""

    base: BaseParameters
    """Those of the narrow model, and each column of a further part as one more."""
    menus: tuple[LawMenu, ...]
    """Of each joint; empty where the friction is not open."""
    columns: tuple[tuple[Column, ...], ...]
    """Of each joint with a menu, those that its laws differ in."""
    narrow: tuple[int, ...]
    """Where the narrow model's parameters stand among the wide one's."""
    places: Mapping[int, int]
    """Where the wide model's further parameters stand among the unknowns and those beyond."""
    springs: Mapping[int, int]
    """The same of the spring of each joint that may have one."""

    @property
    def first(self) -> int | None:
        """How many unknowns stand before all those that a law may be without; None of all."""
        spare = (self.find(column) for own in self.columns for column in own)
        return min([*spare, *self.places.values()], default=None)

    def find(self, column: Column) -> int:
        """Where a column stands among unknowns and those beyond."""
        return self.narrow.index(column.place) if column.part == 0 else self.places[column.place]


def widen(
    problem: Problem, theta: Array, unknowns: int, what: Collection[str], loads: bool = True
) -> WideModel:
    """A model with all that a joint's drives may have, about a full set of a problem's.

    So many unknowns stand for the problem's parameters; for the others, see `choose_drives`.
    """
    base, structure = problem.base, problem.idim.structure
    speeds = find_fastest_speeds(problem) if FRICTION in what else []
    # what passive joints bear is in no row
    menus = tuple(
        build_menu(speed, loads and not passive)
        for speed, passive in zip(speeds, problem.robot.passive, strict=False)
    )
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
    return WideModel(
        replace(base, idim=idim, kept=kept, dropped=place[base.dropped], K=K),
        menus,
        columns,
        narrow,
        places,
        {j: places[k] for j, k in springs.items()},
    )
