"""Kinematics of closed chains: passive joints, and how all joints move with the driven ones.

The loops of a robot are cut, so that a tree is left, and closed by constraints ``e(q) = 0`` between
two frames. With the passive joints p and the driven ones a, ``J_p dq_p + J_a dq_a = 0`` gives
``dq = G dq_a`` and ``ddq = G ddq_a + gamma`` (Featherstone 2008, section 8.3; Khalil and Dombre
2002, chapter 7). All functions take arrays of many samples; what they do with one is compiled in
`dynident.robot.linkage`, which rollouts call, too.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Integers, to_kernel_arrays
from dynident.core.bundle import Bundle
from dynident.core.errors import InputError
from dynident.robot.linkage import (
    CLOSED,
    COUPLING,
    SINGULAR,
    build_linkage,
    correct_states,
    linearise_states,
    move_states,
    place_state,
    vary_states,
)
from dynident.robot.model import KinematicLoop, Robot

STEP = 0.1
"""By which a passive joint may differ from what speeds at both ends of a step say [rad or m]."""
BLOCK = 2048
"""Samples that are closed at a time."""
HALVINGS = 12
"""Of a step between two samples that is too long."""
REACHING = 64
"""Steps of a motion to where a chain is not known to close."""


class LoopWorkspaces(threading.local):
    """Loops with room for a state, of one thread."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Closure, Bundle]] = {}


ROOMS, MOST_KEPT = LoopWorkspaces(), 16


@dataclass(frozen=True, eq=False)
class Closure:
    """The loops of a robot.

    >>> arm = Closure(robot)
    >>> q = arm.close(q)
    """

    robot: Robot
    """With loops."""

    @cached_property
    def passive(self) -> Integers:
        """Joints whose positions the loops give."""
        return np.flatnonzero(self.robot.passive)

    @cached_property
    def driven(self) -> Integers:
        """The others."""
        return np.flatnonzero(~self.robot.passive)

    @cached_property
    def start(self) -> Array:
        """Positions with which the loops are closed, shape (n,)."""
        return np.array(self.robot.assembled)

    @cached_property
    def length(self) -> float:
        """By which turns are put beside places [m]."""
        return max(self.robot.reach, 1e-3)

    @cached_property
    def paths(self) -> list[list[int]]:
        """Joints that move each body, the base's first, from 0."""
        found: list[list[int]] = [[]]
        for k, joint in enumerate(self.robot.joints):
            found.append([*found[joint.parent], k])
        return found

    @property
    def room(self) -> Bundle:
        """Its loops as kernels read them, for the kernel that this thread calls next."""
        found = ROOMS.made.get(id(self))
        if found is None or found[0] is not self:
            if len(ROOMS.made) >= MOST_KEPT:
                ROOMS.made.clear()
            found = ROOMS.made[id(self)] = self, Bundle(build_linkage(self.robot))
        return found[1]

    @cached_property
    def acting(self) -> tuple[tuple[int, ...], ...]:
        """For each joint those on whose rows it bears: itself, and the passive ones of its loops.

        None for a passive joint.
        """
        groups: list[set[int]] = []
        for loop in self.robot.loops:
            own = set(self.list_joints(loop))
            for other in [each for each in groups if each & own]:
                groups.remove(other)
                own |= other
            groups.append(own)
        passive, found = set(self.passive.tolist()), []
        for k in range(self.robot.n):
            others = [each & passive for each in groups if k in each]
            found.append(() if k in passive else (k, *sorted(set().union(*others))))
        return tuple(found)

    def list_joints(self, loop: KinematicLoop) -> list[int]:
        """Joints that move the two sides of a loop against each other, from 0."""
        if loop.kind == COUPLING:
            return [number - 1 for number in loop.bodies]
        one, other = (set(self.paths[body]) for body in loop.bodies)
        return sorted(one ^ other)

    def place(self, q: Array) -> tuple[Array, Array]:
        """Rotations and origins of all bodies in the base's axes at one state, the base's first."""
        found: tuple[Array, Array] = place_state(self.room, *to_kernel_arrays(q))
        return found

    def measure(self, q: Array) -> Array:
        """How far the loops are from closed, shape (samples, constraints) [m]."""
        return self.linearise(q)[0]

    def linearise(self, q: Array) -> tuple[Array, Array]:
        """The gaps ``e(q)`` [m] and their Jacobian, (samples, constraints) and (.., .., n)."""
        e, J, _, _ = linearise_states(self.room, *to_kernel_arrays(q))
        return e, J

    def _follow(self, q: Array) -> tuple[Array, Array]:
        """How passive joints move with driven ones, and how far from singular that is."""
        _, _, G, share = linearise_states(self.room, *to_kernel_arrays(q))
        return G, share

    def measure_distance(self, q: Array) -> Array:
        """How far from singular closed chains are: 0 is singular."""
        return self._follow(q)[1]

    def measure_stiffness(self, q: Array) -> Array:
        """Least singular values of the passive joints' Jacobian, shape (samples,) [m]."""
        J = self.linearise(q)[1][:, :, self.passive]
        return np.asarray(np.linalg.svd(J, compute_uv=False)[:, -1])

    def settle(self, q: Array, name: str = "") -> Array:
        """A closed chain at one sample, shape (n,).

        Assembled as its passive joints are where these are nearly closed, else as the robot is.
        """
        found, gap = self.correct(q[None])
        if gap[0] < CLOSED and np.max(np.abs(found[0] - q)) < STEP:
            return np.asarray(found[0])
        return np.asarray(self.close(q[None], name)[0])

    def follow(
        self, q: Array, dq: Array, ddq: Array, name: str = "", rate: float = 1.0
    ) -> tuple[Array, Array, Array]:
        """The motion of all joints by that of the driven ones, assembled as the first sample is.

        Raises
        ------
        InputError
            As of `close`.
        """
        q = self.close(q, name, rate, self.settle(q[0], name))
        return q, *self.move(q, dq, ddq)

    def find_null_space(self, q: Array) -> Array:
        """G, ``dq = G dq``: columns of driven joints alone are not zero, shape (samples, n, n)."""
        G = np.zeros((len(q), self.robot.n, self.robot.n))
        G[:, self.driven, self.driven] = 1.0
        G[:, self.passive[:, None], self.driven] = self._follow(q)[0]
        return G

    def move(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array]:
        """Speeds and accelerations of all joints by those of the driven ones, of closed chains."""
        found: tuple[Array, Array] = move_states(self.room, *to_kernel_arrays(q, dq, ddq))
        return found

    def find_drift(self, q: Array, dq: Array) -> Array:
        """gamma, the accelerations where driven joints have none, shape (samples, n)."""
        return self.move(q, dq, np.zeros_like(q))[1]

    def vary(self, q: Array, dq: Array, ddq: Array, whole: bool = True) -> tuple[Array, ...]:
        """Slopes of closed motions by those of the driven joints: see `vary_states`."""
        found: tuple[Array, ...] = vary_states(self.room, *to_kernel_arrays(q, dq, ddq), whole)
        return found

    def correct(self, q: Array) -> tuple[Array, Array]:
        """Newton's steps of the passive joints, sample by sample, and the gaps that are left."""
        found: tuple[Array, Array] = correct_states(self.room, *to_kernel_arrays(q))
        return found

    def close(
        self, q: Array, name: str = "", rate: float = 1.0, start: Array | None = None
    ) -> Array:
        """Positions of a motion with those of passive joints that close the loops.

        The way in which they are assembled is kept from sample to sample.

        Parameters
        ----------
        q : ndarray, shape (samples, n)
            Of which driven joints are read.
        name, rate : str, float
            What messages call the motion, and its samples per second.
        start : ndarray, shape (n,), optional
            A closed chain near the first sample; the robot's own without.

        Raises
        ------
        InputError
            Where a loop cannot be closed or is singular: when, and where.
        """
        found = np.array(q, dtype=float)
        last, done, block = self.start if start is None else start, 0, 64
        while done < len(q):
            own = slice(done, done + block)
            count, closed = self._advance(last, found[own])
            if not count:
                target = found[done]
                middle, good = self._reach(last, target[None], HALVINGS)
                if not good[0]:
                    self._refuse(middle[0], target, name, done / rate)
                closed, count = middle, 1
            found[done : done + count] = closed[:count]
            last, done = found[done + count - 1], done + count
            block = min(BLOCK, 2 * block) if count >= block else max(16, block // 4)
        return found

    def _advance(self, last: Array, q: Array) -> tuple[int, Array]:
        """Samples that follow one that is closed, and how many of them surely continue it."""
        a, p = self.driven, self.passive
        slope, _ = self._follow(last[None])
        guess = q.copy()
        guess[:, p] = last[p] + (q[:, a] - last[a]) @ slope[0].T
        closed, gap = self.correct(guess)
        every = np.vstack([last, closed])
        G, share = self._follow(every)
        ahead = np.einsum("tij,tj->ti", 0.5 * (G[1:] + G[:-1]), np.diff(every[:, a], axis=0))
        jump = np.max(np.abs(np.diff(every[:, p], axis=0) - ahead), axis=1)
        good = (gap < CLOSED) & (share[1:] > SINGULAR) & (jump < STEP)
        return (len(q) if good.all() else int(np.argmin(good))), closed

    def close_beside(self, q: Array, near: Array) -> Array:
        """Positions closed as other closed chains near them are, shape (samples, n) both.

        Raises
        ------
        InputError
            As of `close`.
        """
        a, p = self.driven, self.passive
        change, found = q[:, a] - near[:, a], q.copy()
        before, _ = self._follow(near)
        found[:, p] = near[:, p] + np.einsum("tij,tj->ti", before, change)
        found, gap = self.correct(found)
        after, share = self._follow(found)
        ahead = np.einsum("tij,tj->ti", 0.5 * (before + after), change)
        jump = np.max(np.abs(found[:, p] - near[:, p] - ahead), axis=1)
        good = (gap < CLOSED) & (share > SINGULAR) & (jump < STEP)
        if not np.all(good):
            worst = int(np.argmin(good))
            self._refuse(near[worst], q[worst], "the trajectory", np.nan)
        return found

    def _reach(self, last: Array, targets: Array, halvings: int) -> tuple[Array, np.ndarray]:
        """Closed chains as near to targets of driven joints as straight ways to them lead.

        Shape (targets, n); and whether they are there. All are walked side by side.
        """
        a, p = self.driven, self.passive
        now, at = np.repeat(last[None], len(targets), axis=0), np.zeros(len(targets))
        step = np.ones(len(targets))
        way = targets[:, a] - last[a]
        for _ in range(REACHING + halvings):
            ahead = np.minimum(at + step, 1.0)
            slope, share = self._follow(now)
            guess = now.copy()
            guess[:, a] = last[a] + ahead[:, None] * way
            change = guess[:, a] - now[:, a]
            guess[:, p] += np.einsum("tij,tj->ti", slope, change)
            found, gap = self.correct(guess)
            later, share = self._follow(found)
            jump = found[:, p] - now[:, p] - np.einsum("tij,tj->ti", 0.5 * (slope + later), change)
            good = (gap < CLOSED) & (share > SINGULAR) & (np.abs(jump).max(axis=1) < STEP)
            now[good], at[good] = found[good], ahead[good]
            step = np.where(good, 2.0 * step, 0.5 * step)
            if np.all((at >= 1.0) | (step < 2.0**-halvings)):
                break
        return now, at >= 1.0

    def _refuse(self, last: Array, target: Array, name: str, time: float) -> None:
        """Say where a chain closes no more."""
        _, share = self._follow(last[None])
        names = self.robot.joint_names
        where = ", ".join(f"{names[k]} = {target[k]:.4g}" for k in self.driven)
        why = "is singular near there" if share[0] < 10.0 * SINGULAR else "cannot be closed"
        loops = ", ".join(loop.name for loop in self.robot.loops)
        when = "" if np.isnan(time) else f"at {time:.4g} s "
        raise InputError(
            f"{name or self.robot.name}: {when}({where}) the loop {loops} {why}; check "
            "its frames, the units and zeros of the joints, and how it is assembled"
        )

    def draw(self, samples: int, rng: np.random.Generator) -> Array:
        """Closed chains at random, shape (samples, n): as far as straight ways from the start lead.

        Within the limits of driven joints where these are finite; of ways that end before a part,
        so that none is at the edge of what can be closed.
        """
        joints = [self.robot.joints[k] for k in self.driven]
        ends = np.array([
            (max(each.lower, x - np.pi), min(each.upper, x + np.pi))
            for each, x in zip(joints, self.start[self.driven], strict=True)
        ])  # fmt: skip
        ends = np.sort(ends, axis=1)
        targets = np.repeat(self.start[None], samples, axis=0)
        targets[:, self.driven] = rng.uniform(ends[:, 0], ends[:, 1], (samples, len(joints)))
        far, there = self._reach(self.start, targets, 5)
        short = np.where(there, 1.0, rng.uniform(0.3, 0.9, samples))[:, None]
        targets[:, self.driven] = self.start[self.driven] + short * (
            far[:, self.driven] - self.start[self.driven]
        )
        return self._reach(self.start, targets, 5)[0]
