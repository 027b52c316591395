"""Where the entries of chosen columns stand in packed rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from dynident.dynamics.parameters import DriveColumn, Packing
from dynident.dynamics.structure import Structure


def build_packing(
    structure: Structure,
    drive_columns: Sequence[DriveColumn],
    pairs: Iterable[tuple[int, int]],
    columns: Sequence[int],
) -> Packing:
    """Layout of packed rows for some of the standard parameters, in the order of `columns`.

    `pairs` are rows of torque on which friction acts under the load of another, or of their own.
    """
    tree, inertial = structure.tree, structure.inertial
    position = {c: k for k, c in enumerate(columns)}
    entries: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(structure.rows)]
    for b in range(tree.bodies):
        for k in range(tree.path_length[b]):
            for i in range(10):
                if 10 * b + i in position:
                    entries[tree.path[b, k]].append((position[10 * b + i], (b, k, i)))
    for s, felt in enumerate(structure.felt):
        places = {row: felt.rows.start + at for at, row in enumerate(felt.taken)}
        for b, whole in enumerate(felt.bodies):
            for k, i in product(range(felt.tree.path_length[b]), range(10)):
                taken = int(felt.tree.path[b, k])
                if taken in places and 10 * whole + i in position:
                    entries[places[taken]].append((position[10 * whole + i], (b, k, i, s)))
    first = tree.dof - structure.robot.n
    for d, column in enumerate(drive_columns):
        if inertial + d in position:
            for reached in structure.list_touched_rows(column):
                entries[reached].append((position[inertial + d], (d, reached)))
            for j in np.flatnonzero(column.turns):
                entries[first + int(j)].append((position[inertial + d], (d, int(j))))
    own = [{c for c, _ in row} for row in entries]
    bodies = [{c for c, where in row if len(where) == 3} for row in entries]
    for to, of in pairs:
        new = bodies[first + of] - own[first + to]
        own[first + to] |= new
        entries[first + to] += [(c, ()) for c in new]
    slot, *felts = (
        np.full((each.bodies, each.path.shape[1], 10), -1)
        for each in (tree, *(felt.tree for felt in structure.felt))
    )
    drive, joints, empty, width = [], [], [], 0
    for row in entries:
        row.sort()
        start = width
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
        joints.append((slice(start, width), np.array([c for c, _ in row], dtype=np.int64)))
    bent = []
    for to, of in pairs:
        shared = sorted(bodies[first + of])
        here, there = (
            entered.start + np.searchsorted(known, shared)
            for entered, known in (joints[first + to], joints[first + of])
        )
        bent.append((to, of, here, there))
    simple = [each for each in drive if structure.is_plain(each[0])]
    plain = structure.group_plain_columns(
        [(column, column.turns[joint], at) for column, joint, at in simple]
    )
    special = tuple(each for each in drive if not structure.is_plain(each[0]))
    return Packing(
        slot, tuple(drive), plain, special, tuple(joints), width, tuple(bent),
        np.array(empty, dtype=np.int64), tuple(felts),
    )  # fmt: skip
