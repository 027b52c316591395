"""Where rows come from: a regressor along a motion, what is given, and instruments beside them.

Rows come in groups: whatever shares a sigma, a unit, a filter and a gate. A fixed robot's
groups are the torques of its joints; a floating one's are the components of its base's wrench
before them; behind are wrenches of sensors in the chain, and then combinations that are free of
contacts that nothing measures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.errors import InputError
from dynident.core.factors import Factors
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.columns import apply_load_friction, fill_bodies, fill_drives
from dynident.dynamics.conditions import FREE, Conditions
from dynident.dynamics.equations import NullSpace, stack_contact_jacobians
from dynident.dynamics.following import apply_load_slopes, find_conditions, fold_torques
from dynident.dynamics.idim import Idim, build_idim
from dynident.dynamics.packing import LoadCoupling, Places, pair_slots, sum_columns
from dynident.dynamics.parameters import Packing
from dynident.filters.filters import filter_by_cutoff
from dynident.regression.decimate import GroupDecimator
from dynident.regression.generalised import (
    FreeGroups,
    GeneralisedSamples,
    find_segment_null_space,
    list_free_groups,
)
from dynident.robot.model import WRENCH_ROWS, Robot

CHUNK, SHORTEST_CHUNK, CHUNK_BYTES = 4096, 128, 2**24
"""Samples that are turned into rows at a time: fewer where there are many columns."""
FEW = 512
"""Rows a group, below which stretches are joined: what is done with one takes as long for fewer."""
FREE_OF = "free of "
"""Beginning of the names of combinations: then contacts, and a number."""
KEEP_BYTES, SPARE_BYTES = 256 * 2**20, 2**25
"""Decimated rows below this size are kept instead of being made anew at each pass; below that one
also when an identification is done with them."""


@dataclass(frozen=True)
class RowGroup:
    """What the rows of one group are.

    Attributes
    ----------
    name : str
        ``joint_1``.
    unit : str
        Of y: ``Nm``, ``N``, ``rad`` or ``m``; ``1`` of combinations of scaled equations.
    noise : str, optional
        Whatever has the same here has the same sigma, as orthonormal combinations of equations
        have; the group alone where it is empty.
    """

    name: str
    unit: str
    noise: str = ""


@dataclass(frozen=True)
class Rows:
    """Decimated rows of every group over a stretch of one log.

    Attributes
    ----------
    X : tuple of ndarray, shapes (r_g, columns of group g)
        Only the columns that act in group g: ``columns[g]`` of their source.
    y : tuple of ndarray, shapes (r_g,)
    sample : tuple of ndarray of int, shapes (r_g,)
        The sample at the centre of each row's filter window.
    Z : tuple of ndarray, shapes (r_g, instruments of group g), or None
        Instruments: columns ``instruments[g]`` of their source.
    """

    X: tuple[Array, ...]
    y: tuple[Array, ...]
    sample: tuple[np.ndarray, ...]
    Z: tuple[Array, ...] | None = None

    @property
    def blocks(self) -> tuple[Array, ...]:
        """``[X | y]`` of each group."""
        return tuple(np.column_stack(pair) for pair in zip(self.X, self.y, strict=True))

    @property
    def scores(self) -> tuple[Array, ...]:
        """What the errors are made orthogonal to: Z where there are instruments, else X."""
        return self.X if self.Z is None else self.Z


@dataclass(frozen=True, eq=False)
class RowRemainder:
    """What is left of rows that are gone."""

    groups: tuple[RowGroup, ...]
    """What they were."""
    factors: Factors
    """Of all of them."""
    blocks: tuple[tuple[Factors, ...], ...]
    """Of each log, those of equal runs of time."""

    def select(self, columns: Sequence[int]) -> RowRemainder:
        """The same with some of the columns of X."""
        blocks = tuple(tuple(each.select(columns) for each in log) for log in self.blocks)
        return RowRemainder(self.groups, self.factors.select(columns), blocks)


class RowSource(ABC):
    """Rows on demand, or what is left of them: None of rows on demand."""

    left: RowRemainder | None = None

    @property
    @abstractmethod
    def groups(self) -> tuple[RowGroup, ...]:
        """The groups, in the order in which rows have them."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Integers, ...]:
        """Per group, the base parameters that act in it."""

    @property
    def instruments(self) -> tuple[Integers, ...]:
        """Per group, the columns of Z that stand in its rows: `columns` where Z is X."""
        return self.columns

    @property
    def instrument_sets(self) -> int:
        """How many regressors Z is made of; 0 without instruments, where X stands for Z."""
        return 0

    @abstractmethod
    def passes(self) -> Iterator[Iterator[Rows]]:
        """Rows of each log, in stretches of time order."""

    @abstractmethod
    def only(self, base: BaseParameters, chosen: Sequence[int]) -> RowSource:
        """The same rows with some of the base parameters, in this order."""

    def release(self) -> None:  # noqa: B027 (many keep none)
        """Let go of many rows that are kept for the next pass, which makes them anew."""


def list_torque_groups(robot: Robot) -> tuple[RowGroup, ...]:
    """The groups of a robot's rows: its base's wrench, its joints, then sensors in its chain.

    Wrenches are in the axes of the base link, or of that which a sensor holds, about its origin.
    """
    base = [RowGroup(f"base {part}", unit) for part, unit in WRENCH_ROWS]
    joints = [
        RowGroup(joint.name, "N" if joint.kind == "prismatic" else "Nm") for joint in robot.joints
    ]
    felt = [
        RowGroup(f"{gauge.name} {part}".rstrip(), unit)
        for gauge, _ in robot.sensed
        for part, unit in gauge.parts
    ]
    return (*(base if robot.floating else ()), *joints, *felt)


def list_position_groups(robot: Robot) -> tuple[RowGroup, ...]:
    """The groups of joints' positions."""
    return tuple(
        RowGroup(group.name, "m" if group.unit == "N" else "rad")
        for group in list_torque_groups(robot.bare)
    )


@dataclass(frozen=True, eq=False)
class MotionRows(RowSource):
    """The regressor along the motion of some logs, beside their torques."""

    base: BaseParameters
    samples: tuple[GeneralisedSamples, ...]
    widths: Sequence[Array | None] | None = None
    """Shape (n,). Smoothing of the sign that the motion of each log was simulated with: its rows
    have it too, so that they give the simulated torque [rad/s or m/s]."""
    progress: Callable[[str, float], None] | None = field(default=None, repr=False)
    """Called with "rows" and the share of a log that has been turned into rows."""
    bodies: MotionRows | None = field(default=None, repr=False)
    """Rows of the bodies along the same motion, to which columns of bodies are left where no
    friction depends on their loads."""

    def __getstate__(self) -> dict[str, Any]:
        """What crosses processes: what it is made of, and no rows that are kept."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"progress": None}

    @cached_property
    def packing(self) -> Packing:
        """Where the kept columns stand in packed rows."""
        return self.base.idim.packing(self.base.kept, self.bodies is not None)

    @cached_property
    def followed(self) -> frozenset[int]:
        """Which of the frictions have columns here, or bend those of bodies."""
        idim = self.base.idim
        own = [column.friction for column, _, _ in self.packing.special]
        bends = [k for k, each in enumerate(idim.frictions) if "load" in each.model.needs]
        return frozenset(k for k in own if k is not None).union(
            bends if idim.bodies_load_friction else ()
        )

    @cached_property
    def free(self) -> tuple[FreeGroups, ...]:
        """Sets of contacts that bear unmeasured, with the equations that they act on."""
        return list_free_groups(self.base.idim, self.samples)

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """The equations of motion, then combinations of them that are free of contacts."""
        # equations are scaled by their noise: of whatever contacts, what is left is one factor
        combined = [
            RowGroup(f"{FREE_OF}{'+'.join(each.names)} {k + 1}", "1", FREE_OF)
            for each in self.free
            for k in range(each.count)
        ]
        return (*list_torque_groups(self.base.idim.robot), *combined)

    @cached_property
    def columns(self) -> tuple[Integers, ...]:
        """Per group, the base parameters that act in it."""
        own = [columns for _, columns in self.packing.joints]
        unions = [
            np.unique(np.concatenate([own[i] for i in each.acting]))
            for each in self.free
            for _ in range(each.count)
        ]
        return (*own, *unions)

    def only(self, base: BaseParameters, chosen: Sequence[int]) -> MotionRows:
        """The same rows with the base parameters of another model alone."""
        return replace(self, base=base)

    def passes(self) -> Iterator[Iterator[Rows]]:
        """Rows of each log, kept where they are few."""
        shifts = [self.base.shift[columns] for columns in self.columns]
        for log in self.unshifted():
            yield (linearise_rows(rows, shifts) for rows in log)

    def unshifted(self) -> Iterator[Iterator[Rows]]:
        """Rows as though the shapes were not parameters."""
        return self._stream() if self._kept is None else map(iter, self._kept)

    def release(self) -> None:
        """See `RowSource`."""
        kept = self.__dict__.get("_kept") or ()
        if sum(X.nbytes for log in kept for rows in log for X in rows.X) > SPARE_BYTES:
            del self.__dict__["_kept"]
        self.__dict__.pop("_unfiltered", None)

    def _stream(self) -> Iterator[Iterator[Rows]]:
        return map(self._stretches, range(len(self.samples)))

    @cached_property
    def _kept(self) -> tuple[tuple[Rows, ...], ...] | None:
        steps = (min(f.step for f in log.filters) for log in self.samples)
        counts = [len(log.q) // step for log, step in zip(self.samples, steps, strict=True)]
        if 8 * sum(counts) * self.packing.width > KEEP_BYTES:
            return None
        if 8 * sum(counts) * self.packing.width < SPARE_BYTES:
            return tuple(map(tuple, self._stream()))
        width = sum(len(columns) + 1 for columns in self.columns)
        sizes = (
            (count + len(log.segments)) * width
            for log, count in zip(self.samples, counts, strict=True)
        )
        return tuple(gather_rows(rows, size) for rows, size in zip(self._stream(), sizes))

    def _stretches(self, k: int) -> Iterator[Rows]:
        """Decimated rows of one log, run by run.

        The regressor is computed once at every sample, in stretches; of the filter's outputs
        only those that survive the decimation are computed.
        """
        log, idim, packing = self.samples[k], self.base.idim, self.packing
        # the same for all columns of a robot, which are joined stretch by stretch
        entries = 10 * int(np.sum(idim.tree.path_length))
        chunk = min(CHUNK, max(SHORTEST_CHUNK, CHUNK_BYTES // (8 * entries)))
        if log.yielding:  # whose rows are one after another: see `soften_rows`
            chunk = max(stop - start for start, stop in log.segments)
        packed = np.empty((chunk, packing.width))
        least = min(FEW, chunk) * len(self.groups)
        for segment, (start, stop) in enumerate(log.segments):
            combined = find_segment_null_space(self.base.idim, log, segment)
            names = log.sets[segment] if combined else ()
            chosen, moving = self._shown(log, names, start, stop)
            decimator = GroupDecimator(
                [log.filter_of(g) for g in chosen],
                moving,
                start,
                stop,
                [len(self.columns[g]) + 1 for g in chosen],
                gather_left_out(log, chosen),
            )
            met, found = None, list[Rows]()
            for a in range(start, stop, chunk):
                b = min(a + chunk, stop)
                if self.progress is not None:
                    self.progress("rows", b / len(log.q))
                part = packed[: b - a]
                tau, met = self._fill(k, a, b, met, part)
                self._soften(log, a, b, part)
                blocks: list[tuple[Array, ...]] = [
                    (part[:, packing.joints[g][0]], tau[:, g : g + 1])
                    for g in chosen
                    if g < len(packing.joints)
                ]
                if combined is not None:
                    rows, regular = self._free_rows(log, segment, combined, packed, tau, a)
                    # where the contacts' Jacobian loses rank their null space jumps
                    if log.kept is not None:
                        regular = regular & log.kept[a:b]
                    moving[a:b, len(blocks) :] = regular[:, None]
                    blocks += [(each,) for each in rows]
                found.append(self._placed(chosen, *decimator.push(a, blocks)))
                if sum(len(y) for each in found for y in each.y) >= least:
                    yield join_stretches(found)
                    found = []
            if found:
                yield join_stretches(found)

    def _fill(
        self, k: int, a: int, b: int, before: Conditions | None, part: Array
    ) -> tuple[Array, Conditions]:
        """Fill the columns of some samples of a log; gives their torques, and what friction meets.

        `before` is what it met in the samples just before, None where there are none.
        """
        log, width = self.samples[k], None if self.widths is None else self.widths[k]
        idim, packing, bodies = self.base.idim, self.packing, self.bodies
        motion = (log.q[a:b], log.dq[a:b], log.ddq[a:b])
        met = collect_conditions(idim, log, slice(a, b))
        if packing.special:
            met = find_conditions(idim, *motion, log.rate, width, before, met, self.followed)
        tau = log.tau[a:b]
        # columns of bodies, by the recursion or as they are along the same motion already
        if bodies is None or not packing.load_couplings:
            fill_bodies(idim, packing, *motion, part)
        else:
            rigid, (whole, coupled) = bodies.unfiltered(k, a, b), self._borrowed
        if met.bend is not None:
            # friction by the load |tau| is linear about the torques of the bodies `about`:
            # their slopes go to the columns, and what these give at that point to y
            torques = (
                fold_torques(
                    idim, motion[0], evaluate_inverse_dynamics(idim.tree, self._about[0], *motion)
                )
                if bodies is None
                else sum_columns(bodies.packing, rigid, bodies.base.kept, self._about[1])
            )
            tau = tau + apply_load_slopes(idim, torques, met.bend)
        if bodies is None or not packing.load_couplings:
            fill_drives(idim, packing, *motion, part, width, met)
        else:
            fill_drives(idim, packing, *motion, part, width, replace(met, bend=None))
            for here, there in whole:
                part[:, here] = rigid[:, there]
            slopes = np.zeros((b - a, len(idim.gears))) if met.bend is None else met.bend
            apply_load_friction(idim, coupled, rigid, part, slopes)
        return tau, met

    def _soften(self, log: GeneralisedSamples, a: int, b: int, part: Array) -> None:
        """Make of columns, in rows of springs with hysteresis, what they change of deflections.

        Without noise that is faster than the rows: springs, which soften now and then, would turn
        it into what is slow.
        """
        clean = self.base.idim.expected[self.base.kept]
        for row, spring in log.yielding:
            own, columns = self.packing.joints[row]
            hz = (log.filters[row].cutoff,) * len(columns)
            smooth = filter_by_cutoff(part[:, own], hz, log.rate)
            x = np.where(clean[columns], part[:, own], smooth)
            part[:, own] = spring.soften(x, slice(a, b))

    def _shown(
        self, log: GeneralisedSamples, names: tuple[str, ...], start: int, stop: int
    ) -> tuple[list[int], np.ndarray]:
        """Groups that a segment has rows of, and which of its samples they keep."""
        chosen = np.flatnonzero(np.any(log.moving[start:stop], axis=0)).tolist()
        if not names:
            return chosen, log.moving if len(chosen) == log.moving.shape[1] else (
                log.moving[:, chosen]
            )
        first = len(self.packing.joints)
        for each in self.free:
            own = range(first, first + each.count)
            first += each.count
            if each.names == names:
                gates = np.zeros((len(log.q), each.count), dtype=bool)
                return [*chosen, *own], np.hstack([log.moving[:, chosen], gates])
        raise AssertionError("a set of contacts without groups")

    def _free_rows(
        self,
        log: GeneralisedSamples,
        segment: int,
        combined: NullSpace,
        packed: Array,
        tau: Array,
        start: int,
    ) -> tuple[Array, np.ndarray]:
        """Rows ``[X | y]`` of the combinations, shape (count, samples, columns), and which hold.

        From the sample on with which the torques start.
        """
        q = log.configuration[start : start + len(tau)]
        idim = self.base.idim
        own = [self.packing.joints[i] for i in combined.acting]
        union = np.unique(np.concatenate([columns for _, columns in own]))
        dense = np.zeros((len(q), len(own), len(union) + 1))
        for k, (entries, columns) in enumerate(own):
            dense[:, k, np.searchsorted(union, columns)] = packed[: len(q), entries]
        dense[:, :, -1] = tau[:, combined.acting]
        J = stack_contact_jacobians(idim.tree, idim.robot, log.sets[segment], q)
        out = log.left_out
        N, regular = combined.at(
            J, None if out is None else out[start : start + len(q), combined.acting]
        )
        return np.moveaxis(np.swapaxes(N, 1, 2) @ dense, 1, 0), regular

    def _placed(
        self, chosen: list[int], found: Sequence[Array], sample: tuple[np.ndarray, ...]
    ) -> Rows:
        """Rows of every group, none of those that were left out."""
        if len(chosen) == len(self.groups):
            return split_rows(found, sample)
        rows = [np.empty((0, len(columns) + 1)) for columns in self.columns]
        samples = [np.empty(0, dtype=np.int64)] * len(rows)
        for g, own, at in zip(chosen, found, sample, strict=True):
            rows[g], samples[g] = own, at
        return split_rows(rows, tuple(samples))

    @cached_property
    def _about(self) -> tuple[Array, dict[int, float]]:
        """Bodies about which loads are linearised, as the columns have them: also by column.

        Those that the base parameters stand for: with the rotors that are regrouped into them.
        """
        idim = self.base.idim
        beta = self.base.matrix @ np.array([*idim.about, *idim.shape])
        by_column = dict(zip(self.base.kept.tolist(), beta.tolist(), strict=True))
        return idim.split(self.base.standard(beta))[0], by_column

    @cached_property
    def _borrowed(self) -> tuple[list[tuple[Places, Places]], list[LoadCoupling]]:
        """Slots of bodies, and where the rows of the bodies have the same; see `pair_slots`."""
        assert self.bodies is not None
        other = self.bodies
        return pair_slots(self.packing, self.base.kept, other.packing, other.base.kept)

    def serves(self, robot: Robot, kept: Integers, samples: tuple[GeneralisedSamples, ...]) -> bool:
        """Whether these are rows of a robot along some logs, with all of some columns."""
        return (
            self.base.idim.robot is robot
            and set(kept.tolist()) <= set(self.base.kept.tolist())
            and all(a is b for a, b in zip(self.samples, samples, strict=True))
        )

    def unfiltered(self, k: int, a: int, b: int) -> Array:
        """Packed rows of bodies at some samples of a log, kept where they are few."""
        if self._unfiltered is not None:
            return self._unfiltered[k][a:b]
        out = np.empty((b - a, self.packing.width))
        self._fill_bodies(self.samples[k], a, b, out)
        return out

    @cached_property
    def _unfiltered(self) -> tuple[Array, ...] | None:
        if 8 * sum(len(log.q) for log in self.samples) * self.packing.width > KEEP_BYTES:
            return None
        found = tuple(np.zeros((len(log.q), self.packing.width)) for log in self.samples)
        for log, out in zip(self.samples, found, strict=True):
            for a, b in log.segments:
                self._fill_bodies(log, a, b, out[a:b])
        return found

    def _fill_bodies(self, log: GeneralisedSamples, a: int, b: int, out: Array) -> None:
        fill_bodies(self.base.idim, self.packing, log.q[a:b], log.dq[a:b], log.ddq[a:b], out)


def gather_rows(stretches: Iterable[Rows], size: int) -> tuple[Rows, ...]:
    """Rows in one piece of memory for so many numbers, which is free as a whole when they are."""
    room = np.empty(size)
    end = 0

    def take(x: Array) -> Array:
        nonlocal end
        own = room[end : end + x.size].reshape(x.shape)
        own[...] = x
        end += x.size
        return own

    return tuple(
        Rows(tuple(map(take, rows.X)), tuple(map(take, rows.y)), rows.sample) for rows in stretches
    )


def join_stretches(stretches: Sequence[Rows]) -> Rows:
    """Rows of stretches of one run that follow each other."""
    if len(stretches) == 1:
        return stretches[0]
    X, y, sample = (
        tuple(np.concatenate(own) for own in zip(*each, strict=True))
        for each in zip(*((rows.X, rows.y, rows.sample) for rows in stretches), strict=True)
    )
    return Rows(X, y, sample)


def gather_left_out(log: GeneralisedSamples, chosen: Sequence[int]) -> Booleans | None:
    """Samples whose equations some groups leave out; combinations are free of them already."""
    if log.left_out is None:
        return None
    equations, none = log.left_out.shape[1], np.zeros(len(log.left_out), dtype=bool)
    return np.column_stack([log.left_out[:, g] if g < equations else none for g in chosen])


def collect_conditions(idim: Idim, log: GeneralisedSamples, some: slice | Integers) -> Conditions:
    """What a log has at some of its samples that columns depend on beside the motion."""
    known_sensors = log.observed.sensors if idim.structure.sensors else ()
    wrenches = {each: log.wrenches[each.contact][some] for each in known_sensors}
    bent = None if log.deflection is None else log.deflection[:, some]
    sway = None if log.sway is None else log.sway[some]
    if not idim.needs - {"load"}:
        return (
            FREE
            if bent is None and not wrenches
            else Conditions(None, wrenches=wrenches, deflection=bent, sway=sway)
        )
    joints = [gear.number - 1 for gear in idim.gears]
    temperature, known = (
        signal[some][:, joints] if signal is not None and need in idim.needs else None
        for need, signal in (("temperature", log.temp), ("known", log.known))
    )
    time = np.arange(len(log.q))[some] / log.rate if "time" in idim.needs else None
    return Conditions(
        None, None, temperature, time, known, wrenches=wrenches, deflection=bent, sway=sway
    )


def split_rows(rows: Sequence[Array], sample: tuple[np.ndarray, ...]) -> Rows:
    """Rows ``[X | y]`` of every group."""
    return Rows(tuple(r[:, :-1] for r in rows), tuple(r[:, -1] for r in rows), sample)


@dataclass(frozen=True, eq=False)
class JoinedRows(RowSource):
    """Columns that are shared between models, and those of one alone, side by side."""

    base: BaseParameters
    """Which of the columns, in its order."""
    sources: tuple[MotionRows, ...]
    """Of the same logs; where several have a column of a group, it is the last one's."""

    @classmethod
    def of(
        cls,
        base: BaseParameters,
        samples: tuple[GeneralisedSamples, ...],
        like: RowSource | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> JoinedRows:
        """Rows of a model; columns that shapes and loads do not move are those of another's."""
        idim, kept = base.idim, base.kept
        rigid, steady = kept < idim.inertial, idim.steady[kept]
        bodies, drives = like.sources[:2] if isinstance(like, JoinedRows) else (None, None)
        if bodies is None or not bodies.serves(idim.robot, kept[rigid], samples):
            bare = build_idim(idim.robot, "none")
            bodies = MotionRows(
                replace(base, idim=bare, kept=kept[rigid]), samples, progress=progress
            )
        if (
            drives is None
            or drives.base.idim.structure is not idim.structure
            or not drives.serves(idim.robot, kept[steady], samples)
        ):
            alone = select_base_parameters(base, np.flatnonzero(steady))
            drives = MotionRows(replace(alone, idim=idim.alone), samples)
        own = ~steady & ~idim.stated[kept] & (idim.bodies_load_friction | ~rigid)
        if not np.any(own):
            return cls(base, (bodies, drives))
        special = select_base_parameters(base, np.flatnonzero(own))
        return cls(base, (bodies, drives, MotionRows(special, samples, bodies=bodies)))

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """Those of all sources."""
        return self.sources[-1].groups

    @cached_property
    def places(self) -> tuple[tuple[Integers, Integers], ...]:
        """Per group, which of the columns side by side, and where they stand in the base."""
        where = {int(k): place for place, k in enumerate(self.base.kept)}
        found = []
        for own in zip(*(source.columns for source in self.sources), strict=True):
            ids = np.concatenate([s.base.kept[c] for s, c in zip(self.sources, own, strict=True)])
            taken = {where[int(k)]: i for i, k in enumerate(ids) if int(k) in where}
            columns = np.array(sorted(taken), dtype=np.int64)
            found.append((np.array([taken[k] for k in columns.tolist()], dtype=np.int64), columns))
        return tuple(found)

    @cached_property
    def columns(self) -> tuple[Integers, ...]:
        """Per group, the base parameters that act in it."""
        return tuple(columns for _, columns in self.places)

    def only(self, base: BaseParameters, chosen: Sequence[int]) -> JoinedRows:
        """The same rows with the base parameters of another model alone."""
        return replace(self, base=base)

    def release(self) -> None:
        """See `RowSource`."""
        for source in self.sources:
            source.release()

    def passes(self) -> Iterator[Iterator[Rows]]:
        """Rows of each log."""
        for log in zip(*(source.unshifted() for source in self.sources), strict=True):
            yield map(self._joined, *log)

    def _joined(self, *parts: Rows) -> Rows:
        X = tuple(
            np.hstack(own)[:, taken]
            for *own, (taken, _) in zip(*(part.X for part in parts), self.places, strict=True)
        )
        shifts = [self.base.shift[columns] for columns in self.columns]
        return linearise_rows(replace(parts[-1], X=X), shifts)


def select_base_parameters(
    base: BaseParameters, columns: Sequence[int] | Integers
) -> BaseParameters:
    """Some of the base parameters, in this order."""
    chosen = list(columns)
    return replace(base, kept=base.kept[chosen], K=base.K[chosen])


def linearise_rows(rows: Rows, shifts: Sequence[Array]) -> Rows:
    """Rows of the linearised model: ``y + X shift``, group by group."""
    if not any(np.any(shift) for shift in shifts):
        return rows
    y = tuple(y + X @ shift for X, y, shift in zip(rows.X, rows.y, shifts, strict=True))
    return replace(rows, y=y)


@dataclass(frozen=True, eq=False)
class GivenRows(RowSource):
    """Rows of another origin."""

    kinds: tuple[RowGroup, ...]
    """Their groups."""
    stretches: tuple[tuple[Rows, ...], ...]
    """Of each log, in time order."""
    acting: tuple[Integers, ...]
    """Per group, the base parameters that its rows have columns of."""

    @property
    def groups(self) -> tuple[RowGroup, ...]:
        """Those that were given."""
        return self.kinds

    @property
    def columns(self) -> tuple[Integers, ...]:
        """Those that were given."""
        return self.acting

    def only(self, base: BaseParameters, chosen: Sequence[int]) -> GivenRows:
        """The same rows with some of their columns."""
        place = {column: k for k, column in enumerate(chosen)}
        kept = [np.isin(own, chosen) for own in self.acting]
        stretches = tuple(
            tuple(
                replace(rows, X=tuple(X[:, own] for X, own in zip(rows.X, kept, strict=True)))
                for rows in log
            )
            for log in self.stretches
        )
        acting = tuple(
            np.array([place[int(c)] for c in own[at]], dtype=np.int64)
            for own, at in zip(self.acting, kept, strict=True)
        )
        return GivenRows(self.kinds, stretches, acting)

    def passes(self) -> Iterator[Iterator[Rows]]:
        """Rows of each log."""
        yield from (iter(rows) for rows in self.stretches)


@dataclass(frozen=True, eq=False)
class KeptRows(RowSource):
    """Rows that are gone: factors alone are left of them."""

    left: RowRemainder

    @property
    def groups(self) -> tuple[RowGroup, ...]:
        """As they were."""
        return self.left.groups

    @cached_property
    def columns(self) -> tuple[Integers, ...]:
        """Per group, the base parameters that act in it."""
        return tuple(group.columns for group in self.left.factors.groups)

    def only(self, base: BaseParameters, chosen: Sequence[int]) -> KeptRows:
        """The same with some of the columns."""
        return KeptRows(self.left.select(chosen))

    def passes(self) -> Iterator[Iterator[Rows]]:
        """Refuse to give rows."""
        raise InputError("only factors of these rows were kept; identify the logs themselves")


@dataclass(frozen=True, eq=False)
class ChangedRows(RowSource):
    """Rows of another source, changed as they come."""

    rows: RowSource

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """Those of the rows."""
        return self.rows.groups

    @cached_property
    def columns(self) -> tuple[Integers, ...]:
        """Those of the rows."""
        return self.rows.columns

    def release(self) -> None:
        """See `RowSource`."""
        self.rows.release()


@dataclass(frozen=True, eq=False)
class InstrumentedRows(ChangedRows):
    """Rows beside the regressors of other sources, at the same instants, as instruments Z."""

    others: tuple[RowSource, ...]
    """Along other motions of the same logs."""
    count: int

    @property
    def instruments(self) -> tuple[Integers, ...]:
        """Columns of the first other source, then those of the next, and so on."""
        return tuple(
            np.concatenate([c + k * self.count for k, c in enumerate(found)])
            for found in zip(*(other.columns for other in self.others), strict=True)
        )

    @property
    def instrument_sets(self) -> int:
        """The other sources."""
        return len(self.others)

    def release(self) -> None:
        """See `RowSource`."""
        for source in (self.rows, *self.others):
            source.release()

    def only(self, base: BaseParameters, chosen: Sequence[int]) -> InstrumentedRows:
        """Some of the parameters, with the instruments of these."""
        others = tuple(other.only(base, chosen) for other in self.others)
        return InstrumentedRows(self.rows.only(base, chosen), others, len(chosen))

    def passes(self) -> Iterator[Iterator[Rows]]:
        """Rows of each log with X of the other sources as Z."""
        sources = (source.passes() for source in (self.rows, *self.others))
        for log, *others in zip(*sources, strict=True):
            yield map(attach_instruments, log, *others)


def attach_instruments(rows: Rows, *others: Rows) -> Rows:
    """Rows with X of others, at the same instants, as Z."""
    Z = tuple(np.column_stack(parts) for parts in zip(*(o.X for o in others), strict=True))
    return replace(rows, Z=Z)
