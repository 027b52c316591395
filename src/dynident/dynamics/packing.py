"""Where the entries of chosen columns stand in packed rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.dynamics.parameters import DriveColumn, Packing
from dynident.dynamics.structure import Structure

Places = Integers | slice
LoadCoupling = tuple[int, int, Integers, Integers]
"""See `Packing.load_couplings`."""


def build_packing(
    structure: Structure,
    drive_columns: Sequence[DriveColumn],
    pairs: Collection[tuple[int, int]],
    columns: Sequence[int],
    bent_alone: bool = False,
) -> Packing:
    """Layout of packed rows for some of the standard parameters, in the order of `columns`.

    `pairs` are rows of torque on which friction acts under the load of another, or of their own;
    with `bent_alone` bodies are in these rows alone.
    """
    first = structure.tree.dof - structure.robot.n
    position = {c: k for k, c in enumerate(columns)}
    of_bodies = find_rows_of_bodies(structure, pairs, bent_alone)
    entries = list_body_entries(structure, of_bodies, position)
    bodies = [{c for c, where in row if len(where) == 3} for row in entries]
    add_drive_entries(structure, drive_columns, position, entries)
    own = [{c for c, _ in row} for row in entries]
    here_alone = pairs if structure.closure is None else ()
    for to, of in here_alone:
        new = bodies[first + of] - own[first + to]
        own[first + to] |= new
        entries[first + to] += [(c, ()) for c in new]
    slot, *felts = (
        np.full((each.bodies, each.path.shape[1], 10), -1)
        for each in (structure.tree, *(felt.tree for felt in structure.sensed_motions))
    )
    drive, joints, empty, width = [], [], [], 0
    for row in map(sorted, entries):
        joints.append((slice(width, width + len(row)), np.array([c for c, _ in row], dtype=int)))
        for _, where in row:
            if len(where) == 3:
                slot[where] = width
            elif len(where) == 4:
                felts[where[3]][where[:3]] = width
            elif where:
                drive.append((drive_columns[where[0]], where[1], width))
            else:
                empty.append(width)
            width += 1
    simple = [each for each in drive if structure.is_plain(each[0])]
    plain = structure.group_plain_columns(
        [(column, column.turns[joint], at) for column, joint, at in simple]
    )
    special = tuple(each for each in drive if not structure.is_plain(each[0]))
    shared = [sorted(own) for own in bodies[first:]]
    found = Packing(
        slot, tuple(drive), plain, special, tuple(joints), width,
        pair_load_couplings(here_alone, joints[first:], shared),
        np.array(empty, dtype=np.int64), tuple(felts),
    )  # fmt: skip
    return found if structure.closure is None else combine_layout(structure, found, columns, pairs)


Entry = tuple[int, tuple[int, ...]]
"""A column and what fills it: a parameter of a body by its place on the body's path, of bodies that
a sensor carries with the sensor's number; a drive's column at a joint; nothing but what loads add.
"""


def find_rows_of_bodies(
    structure: Structure, pairs: Collection[tuple[int, int]], bent_alone: bool
) -> set[int]:
    """Rows in which bodies have columns: see `build_packing`."""
    if not bent_alone:
        return set(range(structure.rows))
    first = structure.tree.dof - structure.robot.n
    found = {first + row for pair in pairs for row in pair}
    if structure.closure is not None:
        found = {each for row in found for each in structure.closure.acting[row]}
    return found


def list_body_entries(
    structure: Structure, of_bodies: Collection[int], position: Mapping[int, int]
) -> list[list[Entry]]:
    """Entries of bodies, row by row."""
    tree = structure.tree
    entries: list[list[Entry]] = [[] for _ in range(structure.rows)]
    for b in range(tree.bodies):
        for k, i in product(range(tree.path_length[b]), range(10)):
            if 10 * b + i in position and tree.path[b, k] in of_bodies:
                entries[tree.path[b, k]].append((position[10 * b + i], (b, k, i)))
    for s, felt in enumerate(structure.sensed_motions):
        places = {row: felt.rows.start + at for at, row in enumerate(felt.taken)}
        for b, whole in enumerate(felt.bodies):
            for k, i in product(range(felt.tree.path_length[b]), range(10)):
                place = places.get(int(felt.tree.path[b, k]), -1)
                if place in of_bodies and 10 * whole + i in position:
                    entries[place].append((position[10 * whole + i], (b, k, i, s)))
    return entries


def add_drive_entries(
    structure: Structure,
    drive_columns: Sequence[DriveColumn],
    position: Mapping[int, int],
    entries: Sequence[list[Entry]],
) -> None:
    """Add the entries of drives, springs and sensors, and of friction behind a spring."""
    first = structure.tree.dof - structure.robot.n
    for d, column in enumerate(drive_columns):
        place = position.get(structure.inertial + d)
        if place is None:
            continue
        for reached in structure.list_touched_rows(column):
            entries[reached].append((place, (d, reached)))
        for j in np.flatnonzero(column.turns):
            entries[first + int(j)].append((place, (d, int(j))))
        if column.friction is not None and structure.frictions[column.friction].link:
            for joint, behind in structure.linked:
                if column.turns[joint] != 0.0:
                    entries[behind].append((place, (d, joint)))


def pair_load_couplings(
    pairs: Collection[tuple[int, int]],
    joints: Sequence[tuple[slice, Integers]],
    shared: Sequence[Sequence[int] | Integers],
) -> tuple[LoadCoupling, ...]:
    """Where bodies of one row stand in it and in another that they bend, of the joints' rows."""
    found = []
    # first what is moved by its own load alone, to which others are added
    for to, of in sorted(pairs, key=lambda pair: pair[0] != pair[1]):
        here, there = (
            entered.start + np.searchsorted(known, shared[of])
            for entered, known in (joints[to], joints[of])
        )
        found.append((to, of, here, there))
    return tuple(found)


def as_slice(places: Integers) -> Integers | slice:
    """Places that follow each other as a slice, which copies nothing; others as they are."""
    if not len(places) or int(places[-1]) - int(places[0]) != len(places) - 1:
        return places
    return slice(int(places[0]), int(places[-1]) + 1)


def combine_layout(
    structure: Structure,
    tree: Packing,
    columns: Sequence[int],
    pairs: Collection[tuple[int, int]] = (),
) -> Packing:
    """The layout of rows ``G^T W`` of a robot with loops, by that of its tree's rows W.

    `pairs` are rows of drives on which friction acts under the load of another, or of their own.
    """
    assert structure.closure is not None
    joints: list[tuple[slice, Integers]] = []
    mixed: tuple[list[tuple[int, int, Integers, Integers]], ...] = ([], [])
    width, of_drive = 0, np.array(columns, dtype=np.int64) >= structure.inertial
    nothing, empty = np.empty(0, dtype=np.int64), [np.empty(0, dtype=np.int64)]
    every = [
        np.unique(np.concatenate([nothing, *(tree.joints[of][1] for of in rows)]))
        for rows in structure.closure.acting
    ]
    bodies = [own[~of_drive[own]] for own in every]
    for to, rows in enumerate(structure.closure.acting):
        borne = [bodies[of] for row, of in pairs if row == to]
        union = np.unique(np.concatenate([every[to], *borne]))
        empty.append(width + np.flatnonzero(~np.isin(union, every[to])))
        joints.append((slice(width, width + len(union)), union))
        for of in rows:
            slots, there = tree.joints[of]
            for part, chosen in zip(mixed, (~of_drive[there], of_drive[there]), strict=True):
                here = width + np.searchsorted(union, there[chosen])
                part.append((to, of, here, slots.start + np.flatnonzero(chosen)))
        width += len(union)
    both = tuple(tuple(part) for part in mixed)
    return replace(
        tree, joints=tuple(joints), width=width, tree=tree, mixed=both,
        load_couplings=pair_load_couplings(pairs, joints, bodies), empty=np.concatenate(empty),
    )  # fmt: skip


def pair_slots(
    own: Packing, kept: Integers, other: Packing, others: Integers
) -> tuple[list[tuple[Places, Places]], list[LoadCoupling]]:
    """Slots of entries that another layout has, too, and where it has them; then couplings.

    `kept` and `others` are the standard parameters that the columns of each layout are of.
    """
    found = np.full(own.width, -1)
    for (mine, columns), (theirs, known) in zip(own.joints, other.joints, strict=True):
        where = {int(k): place for place, k in enumerate(others[known], theirs.start)}
        found[mine] = [where.get(k, -1) for k in kept[columns].tolist()]
    coupled = [(to, of, here, found[there]) for to, of, here, there in own.load_couplings]
    left = found >= 0
    for to, of, here, _ in coupled:
        left[here] &= to != of
    rows = (mine.start + np.flatnonzero(left[mine]) for mine, _ in own.joints)
    return [(as_slice(each), as_slice(found[each])) for each in rows if len(each)], coupled


def sum_columns(
    packing: Packing, packed: Array, kept: Integers, values: Mapping[int, float]
) -> Array:
    """Torques of packed rows with values by standard parameter, shape (samples, rows)."""
    beta = np.array([values.get(k, 0.0) for k in kept.tolist()])
    return np.column_stack([packed[:, own] @ beta[columns] for own, columns in packing.joints])
