"""Kinematics of closed chains: passive joints, and how all joints move with the driven ones.

The loops of a robot are cut, so that a tree is left, and closed by constraints ``e(q) = 0`` between
two frames. With the passive joints p and the driven ones a, ``J_p dq_p + J_a dq_a = 0`` gives
``dq = G dq_a`` and ``ddq = G ddq_a + gamma`` (Featherstone 2008, section 8.3; Khalil and Dombre
2002, chapter 7). All functions take arrays of many samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.polynomial import polynomial

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.robot.model import Loop, Robot

KINDS: dict[str, tuple[int, ...]] = {
    "point": (0, 1, 2),
    "axis": (0, 1, 2, 3, 4),
    "planar": (0, 1),
    "weld": (0, 1, 2, 3, 4, 5),
}
"""What of two frames meets, in the axes of the first: place (0-2) and turn (3-5)."""
COUPLING = "joint"
"""The other kind: a joint that follows another."""
SINGULAR = 1e-3
"""Least singular value of the passive joints' Jacobian, over its largest, of a closed chain."""
CLOSED = 1e-8
"""Gap of a closed loop, over the robot's length."""
NEWTON = 25
"""Steps; near a solution three or four do."""
STEP = 0.1
"""By which a passive joint may differ from what speeds at both ends of a step say [rad or m]."""
BLOCK = 2048
"""Samples that are closed at a time."""
HALVINGS = 12
"""Of a step between two samples that is too long."""
REACHING = 64
"""Steps of a motion to where a chain is not known to close."""


def cross(a: Array, b: Array) -> Array:
    """Cross products of rows, in a fifth of the time that NumPy's take for few."""
    a0, a1, a2, b0, b1, b2 = (each[..., k] for each in (a, b) for k in range(3))
    return np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


@dataclass(frozen=True)
class Frames:
    """Bodies of some samples in the base's axes: the base first, then those of the joints.

    Lists of arrays, shapes (samples, 3, 3) and (samples, 3): rotations, origins, axes of the
    joints; where there are speeds, velocities and accelerations without those of the joints.
    """

    R: list[Array]
    p: list[Array]
    z: list[Array]
    w: list[Array]
    v: list[Array]
    al: list[Array]
    a: list[Array]


@dataclass(frozen=True, eq=False)
class Closure:
    """The loops of a robot.

    >>> arm = Closure(robot)
    >>> q = arm.close(q)

    Attributes
    ----------
    robot : Robot
        With loops.
    """

    robot: Robot

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

    @cached_property
    def spins(self) -> list[tuple[Array, Array]]:
        """What Rodrigues' formula has of each joint's axis: its cross product, and that squared."""
        skews = [pin.skew(joint.axis) for joint in self.robot.joints]
        return [(K, K @ K) for K in skews]

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

    def list_joints(self, loop: Loop) -> list[int]:
        """Joints that move the two sides of a loop against each other, from 0."""
        if loop.kind == COUPLING:
            return [number - 1 for number in loop.bodies]
        one, other = (set(self.paths[body]) for body in loop.bodies)
        return sorted(one ^ other)

    # frames

    def place(self, q: Array, dq: Array | None = None) -> Frames:
        """All bodies at some samples, shape (samples, n); with their motion where there is one."""
        samples = len(q)
        one = np.eye(3)
        turn, still = np.broadcast_to(one, (samples, 3, 3)), np.zeros((samples, 3))
        f = Frames([turn], [still], [], [still], [still], [still], [still])
        for k, joint in enumerate(self.robot.joints):
            up, x = joint.parent, q[:, k, None]
            r = f.R[up] @ joint.translation
            R = f.R[up] @ joint.rotation
            z = R @ joint.axis
            revolute = joint.kind == "revolute"
            slide = still if revolute else z * x
            if revolute:
                K, square = self.spins[k]
                R = R @ (one + np.sin(x)[:, None] * K + (1.0 - np.cos(x))[:, None] * square)
            f.R.append(R)
            f.z.append(z)
            f.p.append(f.p[up] + r + slide)
            if dq is None:
                continue
            s, w, al = z * dq[:, k, None], f.w[up], f.al[up]
            arm = r + slide
            moved, bent = f.v[up] + cross(w, arm), cross(w, cross(w, arm))
            f.w.append(w + s if revolute else w)
            f.al.append(al + cross(w, s) if revolute else al)
            f.v.append(moved if revolute else moved + s)
            whole = f.a[up] + cross(al, arm) + bent
            f.a.append(whole if revolute else whole + 2.0 * cross(w, s))
        return f

    def _gap(self, f: Frames, loop: Loop) -> tuple[Array, Array, Array, Array, Array]:
        """The first frame's axes, both frames' arms, the way from one to the other, its turn."""
        one, other = loop.bodies
        F = f.R[one] @ loop.rotations[0]
        arms = [f.R[b] @ loop.translations[k] for k, b in enumerate(loop.bodies)]
        d = f.p[other] + arms[1] - f.p[one] - arms[0]
        turn = np.swapaxes(F, 1, 2) @ f.R[other] @ loop.rotations[1]
        return F, arms[0], arms[1], d, turn

    def measure(self, q: Array) -> Array:
        """How far the loops are from closed, shape (samples, constraints) [m]."""
        return self.linearise(q)[0]

    def linearise(self, q: Array) -> tuple[Array, Array]:
        """The gaps ``e(q)`` [m] and their Jacobian, (samples, constraints) and (.., .., n)."""
        f, gaps, slopes = self.place(q), [], []
        for loop in self.robot.loops:
            if loop.kind == COUPLING:
                follows, leads = (number - 1 for number in loop.bodies)
                unit = self.length if self.robot.joints[follows].kind == "revolute" else 1.0
                law = np.array(loop.polynomial)
                J = np.zeros((len(q), 1, len(self.robot.joints)))
                J[:, 0, follows] = unit
                J[:, 0, leads] -= unit * polynomial.polyval(q[:, leads], polynomial.polyder(law))
                gaps.append(unit * (q[:, [follows]] - polynomial.polyval(q[:, [leads]], law)))
                slopes.append(J)
                continue
            rows = list(KINDS[loop.kind])
            F, *arms, d, turn = self._gap(f, loop)
            into = np.swapaxes(F, 1, 2)
            J = np.zeros((len(q), 6, self.robot.n))
            for sign, body, arm in zip((-1.0, 1.0), loop.bodies, arms, strict=True):
                for k in self.paths[body]:
                    w, joint = f.z[k], self.robot.joints[k]
                    v = w
                    if joint.kind == "revolute":
                        v = cross(w, f.p[body] + arm - f.p[k + 1])
                        J[:, 3:, k] += sign * self.length * w
                    J[:, :3, k] += sign * v
            for k in self.paths[loop.bodies[0]]:
                if self.robot.joints[k].kind == "revolute":  # the axes turn, too
                    J[:, :3, k] -= cross(f.z[k], d)
            J[:, :3], J[:, 3:] = into @ J[:, :3], into @ J[:, 3:]
            if loop.kind == "axis":
                bent = np.stack([-turn[:, 1, 2], turn[:, 0, 2], np.zeros(len(q))], axis=1)
            else:  # first order in the angle: exact where the frames meet
                skew = 0.5 * (turn - np.swapaxes(turn, 1, 2))
                bent = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1)
            e = np.hstack([(into @ d[:, :, None])[:, :, 0], self.length * bent])
            gaps.append(e[:, rows])
            slopes.append(J[:, rows])
        return np.concatenate(gaps, axis=1), np.concatenate(slopes, axis=1)

    def bend(self, q: Array, dq: Array) -> Array:
        """``dJ/dt dq`` along a motion, shape (samples, constraints) [m/s^2]."""
        f, found = self.place(q, dq), []
        for loop in self.robot.loops:
            if loop.kind == COUPLING:
                follows, leads = (number - 1 for number in loop.bodies)
                unit = self.length if self.robot.joints[follows].kind == "revolute" else 1.0
                law = polynomial.polyder(np.array(loop.polynomial), 2)
                curve = polynomial.polyval(q[:, [leads]], law)
                found.append(-unit * curve * dq[:, [leads]] ** 2)
                continue
            F, *arms, d, _ = self._gap(f, loop)
            one, other = loop.bodies
            speeds, accelerations = [], []
            for b, arm in zip(loop.bodies, arms, strict=True):
                speeds.append(f.v[b] + cross(f.w[b], arm))
                turning = cross(f.w[b], cross(f.w[b], arm))
                accelerations.append(f.a[b] + cross(f.al[b], arm) + turning)
            w, rate = f.w[one], speeds[1] - speeds[0]
            place = accelerations[1] - accelerations[0] - cross(f.al[one], d)
            place += cross(w, cross(w, d)) - 2.0 * cross(w, rate)
            turn = f.al[other] - f.al[one] - cross(w, f.w[other] - w)
            every = np.hstack([
                (np.swapaxes(F, 1, 2) @ each[:, :, None])[:, :, 0]
                for each in (place, self.length * turn)
            ])  # fmt: skip
            found.append(every[:, list(KINDS[loop.kind])])
        return np.hstack(found)

    # passive joints

    def solve(self, J: Array, right: Array) -> tuple[Array, Array]:
        """``-J_p^+ right`` of samples, and how far from singular they are.

        Right-hand sides have the shape (samples, constraints, columns).
        """
        U, s, V = np.linalg.svd(J[:, :, self.passive], full_matrices=False)
        share = s[:, -1] / s[:, 0] if s.shape[1] == len(self.passive) else np.zeros(len(J))
        inverse = 1.0 / np.maximum(s, 1e-12 * s[:, :1])
        found = -(np.swapaxes(V, 1, 2) * inverse[:, None]) @ (np.swapaxes(U, 1, 2) @ right)
        return found, share

    def _follow(self, q: Array) -> tuple[Array, Array]:
        """How passive joints move with driven ones, and how far from singular that is."""
        _, J = self.linearise(q)
        return self.solve(J, J[:, :, self.driven])

    def measure_distance(self, q: Array) -> Array:
        """How far from singular closed chains are: 0 is singular."""
        return self._follow(q)[1]

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
        dq, ddq = np.array(dq, dtype=float), np.array(ddq, dtype=float)
        for a in range(0, len(q), BLOCK):
            s = slice(a, a + BLOCK)
            dq[s], ddq[s] = self.move(q[s], dq[s], ddq[s])
        return q, dq, ddq

    def find_null_space(self, q: Array, J: Array | None = None) -> Array:
        """G, ``dq = G dq``: columns of driven joints alone are not zero, shape (samples, n, n).

        J is the constraints' Jacobian where it is at hand.
        """
        G = np.zeros((len(q), self.robot.n, self.robot.n))
        G[:, self.driven, self.driven] = 1.0
        J = self.linearise(q)[1] if J is None else J
        G[:, self.passive[:, None], self.driven] = self.solve(J, J[:, :, self.driven])[0]
        return G

    def move(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array]:
        """Speeds and accelerations of all joints by those of the driven ones, of closed chains."""
        _, J = self.linearise(q)
        G = self.find_null_space(q, J)
        dq = np.einsum("tij,tj->ti", G, dq)
        return dq, np.einsum("tij,tj->ti", G, ddq) + self.find_drift(q, dq, J)

    def find_drift(self, q: Array, dq: Array, J: Array | None = None) -> Array:
        """gamma, the accelerations where driven joints have none, shape (samples, n)."""
        gamma = np.zeros_like(q)
        J = self.linearise(q)[1] if J is None else J
        gamma[:, self.passive] = self.solve(J, self.bend(q, dq)[:, :, None])[0][:, :, 0]
        return gamma

    def correct(self, q: Array) -> tuple[Array, Array]:
        """Newton's steps of the passive joints, sample by sample, and the gaps that are left."""
        q = q.copy()
        for _ in range(NEWTON):
            e, J = self.linearise(q)
            step = self.solve(J, e[:, :, None])[0][:, :, 0]
            q[:, self.passive] += np.clip(step, -0.5, 0.5)
            if not np.any(np.abs(step) > 1e-12):
                break
        gap = np.max(np.abs(e), axis=1, initial=0.0)  # before a step that is none
        for loop in self.robot.loops:
            if loop.kind in ("axis", "weld"):  # the other way round the gap is none, too
                turn = self._gap(self.place(q), loop)[4]
                sense = turn[:, 2, 2] if loop.kind == "axis" else np.trace(turn, axis1=1, axis2=2)
                gap = np.where(sense > 0.0, gap, np.inf)
        return q, gap / self.length

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
        raise InputError(
            f"{name or self.robot.name}: at {time:.4g} s ({where}) the loop {loops} {why}; check "
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
