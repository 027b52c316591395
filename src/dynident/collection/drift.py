"""Friction and offsets over the sessions of a robot: drifts, shifts, outliers.

Of one joint, session k tells ``y_k = a + b T_k + f_k + e_k``, ``e_k ~ N(0, v_k + r^2)``: ``v_k`` is
what its triangle leaves open, ``r`` the scatter of sessions, ``T`` a temperature where logs have
one. ``f`` is nothing, or ``size L g`` with ``g ~ N(0, 1)``: a random walk (the local level model,
Harvey 1989) or a constant slope, both a drift; a step at one session, a level shift; one session
alone, an outlier (Fox 1972). Contrasts ``c = A^T y`` that neither a nor b moves have unit variance
where f is nothing, and their density is the restricted likelihood of all of these. With the
singular values ``s`` of ``A^T L``,

    log p(c) / p_0(c) = 1/2 sum_i c_i^2 size^2 s_i^2 / (1 + size^2 s_i^2) - log(1 + size^2 s_i^2).

Its mean over shapes and sizes, the Bayes factor, is the statistic of the test; its chance where f
is nothing is counted from contrasts that are drawn, for a walk that is none is at the edge of what
it can be, where chi squared does not hold (Shephard and Harvey 1990; Good 1992).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from dynident.collection.member import Member, find_date
from dynident.collection.population import MANY
from dynident.core.arrays import Array
from dynident.core.factors import System, triangularise_rows
from dynident.dynamics.idim import Idim
from dynident.regression.statistics import NORMAL
from dynident.report.fleet import FrictionCourse

LEVEL = 0.01
"""Chance that a sound robot is named, friction of all its joints together; and all its offsets."""
FEWEST = 2
"""Sessions before and after a shift: what one alone tells is an outlier."""
SIZES = 2.0 ** np.arange(-1.0, 6.0)
"""Of a drift from the first to the last session, of a shift, of an outlier, over the scatter."""
FINE = np.append(0.0, np.geomspace(0.1, 100.0, 60))
"""Sizes of a walk of which the most likely one is told."""
NOTHING, WALK = 0.5, 0
"""Probability beforehand of no change, of which drift, shift and outlier share the rest; and which
shape the random walk is."""
WALKS, APART = 0.9, 0.5
"""Probabilities beforehand for the line: of a walk, else it is a shift; and that one session of a
walk is an outlier."""
KINDS = ("drift", "shift", "outlier")
LONG, WARMER, WIDE, LEAST = 3, 1.0, 1e3, 2.0
"""Sessions that are followed, at least; by how much temperatures have to differ [K]; by how much
more an outlier scatters than others; degrees of freedom of scatter at least."""
DRAWS, BLOCK, ENOUGH = 20_000, 1000, 40
"""Contrasts that are drawn at most, at a time, and of which so many as far out are enough."""
GRID = np.geomspace(0.05, 3.0, 16)
"""Scatters that are tried, over a first guess."""
MEDIAN, TINY = 0.4549364231195724, 1e-9
"""Of the square of a standard normal variable; scatter to begin with, at least."""
WEEK = 7.0 * 86400.0


class FollowedSessions(NamedTuple):
    """Sessions of a robot: friction of each joint over that of all, and its offset [Nm]."""

    times: Array
    """Shape (sessions,)."""
    values: Array
    errors: Array
    """`values`, `errors`: shape (sessions, 2 n). With standard errors by what the session's
    triangle leaves open; friction first."""
    warmth: Array | None
    """Mean temperatures of the drives, where friction is not over temperature by itself, shape
    (sessions, n)."""

    def compare(self, place: int, scatter: float, shapes: Sequence[DriftKind]) -> SessionContrasts:
        """Sessions by one column of values; friction follows temperatures that differ enough."""
        regressors = np.ones((len(self.times), 1))
        if self.warmth is not None and place < self.warmth.shape[1] and len(self.times) > LONG:
            warmth = self.warmth[:, place]
            if np.ptp(warmth) > WARMER:
                regressors = np.column_stack([regressors, warmth - np.mean(warmth)])
        deviation = np.sqrt(scatter**2 + self.errors[:, place] ** 2)
        return SessionContrasts(deviation, regressors, shapes)


def measure_sessions(member: Member, beta: Array, times: Array) -> FollowedSessions:
    """Levels of each session of a robot.

    Coulomb and viscous friction of a drive are multiplied alike; all else is the robot's. `beta`:
    base parameters of the robot, shape (p,).
    """
    idim = member.problem.base.idim
    moved = list_friction_columns(idim, member.problem.base.matrix, beta)
    values, errors = [], []
    for part in member.parts:
        triangle = member.whiten(part)
        rest = triangle[:, -1] - triangle[:, :-1] @ beta
        rows = np.column_stack([triangle[:, :-1] @ moved, rest])
        R = np.zeros((rows.shape[1], rows.shape[1]))
        reduced = triangularise_rows(rows)
        R[: len(reduced)] = reduced
        system = System.of(R)
        values.append(system.solve())
        errors.append(np.linalg.norm(system.inverse(), axis=1))
    warmth = [source.about.facts.temperature for source in member.sources]
    told = all(each is not None for each in warmth) and "temperature" not in idim.needs
    whole = np.array(values)
    whole[:, : idim.robot.n] += 1.0
    return FollowedSessions(times, whole, np.array(errors), np.array(warmth) if told else None)


def list_friction_columns(idim: Idim, matrix: Array, beta: Array) -> Array:
    """What multiplied friction and offsets do to base parameters, shape (p, 2 n)."""
    n = idim.robot.n
    values = np.linalg.pinv(matrix[:, idim.inertial :]) @ beta
    friction, offsets = np.zeros((2, len(beta), n))
    for place, parameter in enumerate(idim.parameters[idim.inertial :]):
        column, j = matrix[:, idim.inertial + place], parameter.number - 1
        if parameter.symbol == "off":
            offsets[:, j] += column
        elif not parameter.symbol.startswith("Ia"):
            friction[:, j] += column * values[place]
    return np.hstack([friction, offsets])


@dataclass(frozen=True, eq=False)
class DriftKind:
    """One way in which sessions may differ."""

    kind: str
    """``"drift"``, ``"shift"`` or ``"outlier"``."""
    root: Array
    """Shape (sessions, r). ``L``: of the covariance, for a size of one."""
    prior: float
    session: int = 0
    """From which on, or which, where it is one."""


def list_shapes(times: Array) -> list[DriftKind]:
    """All ways in which sessions at these times may differ."""
    count, share = len(times), (1.0 - NOTHING) / 3.0
    ones, since = np.eye(count), np.tril(np.ones((count, count)))
    span = times - times[0]
    walk = since[:, 1:] * np.sqrt(np.diff(times) / span[-1])
    steps = range(FEWEST, count - FEWEST + 1)
    return [
        DriftKind("drift", walk, 0.5 * share),
        DriftKind("drift", span[:, None] / span[-1], 0.5 * share),
        *(DriftKind("shift", since[:, k : k + 1], share / len(steps), k) for k in steps),
        *(DriftKind("outlier", ones[:, k : k + 1], share / count, k) for k in range(count)),
    ]


@dataclass(frozen=True, eq=False)
class SessionContrasts:
    """Sessions of one joint as contrasts that nothing constant moves."""

    deviation: Array
    """Standard deviation of each, where f is nothing, shape (sessions,)."""
    regressors: Array
    """Shape (sessions, k). Ones, and what else moves a session: of mean zero."""
    shapes: Sequence[DriftKind]

    @cached_property
    def frame(self) -> tuple[Array, float]:
        """``A`` and the unit of sizes."""
        scaled = self.regressors / self.deviation[:, None]
        Q, _ = np.linalg.qr(scaled, mode="complete")
        unit = 1.0 / np.sqrt(np.mean(self.deviation**-2.0))
        return Q[:, scaled.shape[1] :] / self.deviation[:, None], unit

    @cached_property
    def constant(self) -> Array:
        """Weights by which sessions tell a, where f is nothing, shape (sessions,)."""
        scaled = self.regressors / self.deviation[:, None]
        return np.asarray(np.linalg.pinv(scaled)[0] / self.deviation)

    @cached_property
    def walk(self) -> tuple[Array, Array, Array]:
        """Axes of contrasts, singular values and axes of g of the walk, at the unit of sizes."""
        A, unit = self.frame
        columns = unit * (A.T @ self.shapes[WALK].root)
        axes, lengths, own = np.linalg.svd(columns, full_matrices=False)
        return axes, lengths, own

    @cached_property
    def single(self) -> tuple[Array, Array]:
        """Axes and singular values of all shapes but the walk, which have one."""
        A, unit = self.frame
        columns = unit * (A.T @ np.hstack([shape.root for shape in self.shapes[WALK + 1 :]]))
        lengths = np.linalg.norm(columns, axis=0)
        return columns / np.maximum(lengths, TINY), lengths

    def weigh(self, contrasts: Array) -> Array:
        """Logarithms of probabilities over that of nothing, shape (shapes, sizes, draws).

        Contrasts have the shape (m, draws).
        """
        walk, values, _ = self.walk
        axes, lengths = self.single
        grown = (SIZES[:, None] * values) ** 2
        told = (grown / (1.0 + grown)) @ (walk.T @ contrasts) ** 2
        told -= np.sum(np.log1p(grown), axis=1)[:, None]
        grown = (SIZES * lengths[:, None])[..., None] ** 2
        others = grown / (1.0 + grown) * (axes.T @ contrasts)[:, None] ** 2 - np.log1p(grown)
        prior = np.log([shape.prior / len(SIZES) for shape in self.shapes])
        return np.asarray(0.5 * np.concatenate([told[None], others]) + prior[:, None, None])

    def measure_likelihood(self, values: Array) -> float:
        """Logarithm of the restricted likelihood, whatever f is."""
        contrasts = self.frame[0].T @ values
        log = add_logarithms(np.append(self.weigh(contrasts[:, None]), np.log(NOTHING)))
        scaled = self.regressors / self.deviation[:, None]
        volume = np.sum(np.log(self.deviation)) + 0.5 * np.linalg.slogdet(scaled.T @ scaled)[1]
        return float(log - volume - 0.5 * contrasts @ contrasts)

    def draw_line(self, values: Array, rows: Array) -> tuple[Array, Array]:
        """Levels ``a + f``, combined, and their standard errors.

        Averaged are walks, walks with an outlier, and shifts, by their probabilities (Hoeting et
        al. 1999), whatever is told; sizes of walks and shifts are uniform beforehand (Gelman 2006).

        `rows`, shape (k, sessions): combinations that are asked for.
        """
        logs = self.weigh((self.frame[0].T @ values)[:, None])[:, :, 0] + np.log(SIZES)
        logs -= np.log([[shape.prior] for shape in self.shapes])
        steps = [k for k, shape in enumerate(self.shapes) if shape.kind == "shift"]
        maps, spreads = self.smooth_levels(rows, WALK)
        found = [(logs[WALK] + np.log((1.0 - APART) * WALKS), maps @ values, spreads)]
        for log, line, spread in self.leave_outliers(values, maps, spreads):
            beforehand = np.log(APART * WALKS / len(values) / len(SIZES))
            found.append(((logs[WALK, :, None] + log).ravel() + beforehand, line, spread))
        for k in steps:
            maps, spreads = self.smooth_levels(rows, k)
            found.append((logs[k] + np.log((1.0 - WALKS) / len(steps)), maps @ values, spreads))
        weights, lines, spreads = (np.concatenate(each) for each in zip(*found, strict=True))
        weights = np.exp(weights - add_logarithms(weights))
        mean = weights @ lines
        return mean, np.sqrt(weights @ (spreads + (lines - mean) ** 2))

    def smooth_levels(self, rows: Array, k: int) -> tuple[Array, Array]:
        """What values are multiplied by for levels by one shape of each size, and variances.

        Shapes (sizes, k, sessions) and (sizes, k). Contrasts tell f, and what sessions tell of a
        beside f does not depend on them.
        """
        A, unit = self.frame
        if k == WALK:
            axes, lengths, own = self.walk
        else:
            axes, lengths = (each[..., [k - WALK - 1]] for each in self.single)
            own = np.ones((1, 1))
        level = np.outer(np.sum(rows, axis=1), self.constant)
        moved = unit * (rows - level) @ self.shapes[k].root
        told, squares = moved @ own.T, SIZES[:, None] ** 2
        gain = squares * lengths / (1.0 + squares * lengths**2)
        maps = level + (told * gain[:, None]) @ (A @ axes).T
        known = (squares * gain * lengths) @ (told**2).T
        spreads = np.maximum(squares * np.sum(moved**2, axis=1) - known, 0.0)
        return maps, spreads + level**2 @ self.deviation**2

    def leave_outliers(
        self, values: Array, maps: Array, spreads: Array
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Levels by walks with an outlier of any size, session by session.

        With ``P`` the inverse covariance of y, a and b aside, an outlier in session k is ``P_k y /
        P_kk`` to within ``1 / P_kk`` (de Jong and Penzer 1998).

        Parameters
        ----------
        maps, spreads : ndarray
            Without; see `smooth_levels`.

        Yields
        ------
        log : ndarray, shape (sizes, sizes)
            Logarithms of the densities over those without, by the size of the walk and its own.
        lines, spreads : ndarray, shape (sizes * sizes, k)
        """
        A, unit = self.frame
        axes, lengths, _ = self.walk
        B, squares = A @ axes, (unit * SIZES) ** 2
        gain = 1.0 - 1.0 / (1.0 + (SIZES[:, None] * lengths) ** 2)
        for k in range(len(values)):
            P = A @ A[k] - (gain * B[k]) @ B.T
            apart, grown = (P @ values)[:, None], squares * P[:, [k]]
            share = squares / (1.0 + grown)  # P_kk is 0 of the one session that tells b
            log = 0.5 * (share * apart**2 - np.log1p(grown))
            moved = maps[:, None, :, k]
            lines = (maps @ values)[:, None] - (share * apart)[..., None] * moved
            wider = spreads[:, None] + share[..., None] * moved**2
            yield log, *(each.reshape(-1, maps.shape[1]) for each in (lines, wider))

    def fit_walk(self, values: Array) -> float:
        """Standard deviation of the random walk from first to last session, by REML; 0 is none."""
        A, unit = self.frame
        axes, lengths, _ = self.walk
        grown = (FINE[:, None] * lengths) ** 2
        told = (grown / (1.0 + grown)) @ (axes.T @ (A.T @ values)) ** 2
        return float(unit * FINE[np.argmax(told - np.sum(np.log1p(grown), axis=1))])

    def find_size(
        self, values: Array, likely: Sequence[int], weights: Array
    ) -> tuple[float, float]:
        """Size of a step or of one session apart by least squares, and its standard error.

        Averaged over the shapes that are likely, with these weights.
        """
        A, unit = self.frame
        axes, lengths = self.single
        own = [k - WALK - 1 for k in likely]
        sizes = unit * (axes[:, own].T @ (A.T @ values)) / lengths[own]
        mean = float(weights @ sizes)
        spread = weights @ ((unit / lengths[own]) ** 2 + (sizes - mean) ** 2)
        return mean, float(np.sqrt(spread))

    def count_chance(self, factor: float, freedom: float) -> float:
        """Share of contrasts of no change whose Bayes factor has a logarithm as large.

        So many are drawn as that takes (Besag and Clifford 1991), with a scatter that is estimated.
        """
        rng = np.random.default_rng(0)
        drawn = beyond = 0
        while drawn < DRAWS and beyond < ENOUGH:
            normal = rng.normal(size=(self.frame[0].shape[1], BLOCK))
            scatter = np.sqrt(rng.chisquare(freedom, BLOCK) / freedom)
            # one shape as likely as all of them together is enough
            shares = np.exp(np.minimum(self.weigh(normal / scatter) - factor, 0.0))
            drawn += BLOCK
            beyond += int(np.sum(np.sum(shares, axis=(0, 1)) >= 1.0))
        return (beyond + 1) / (drawn + 1)


def add_logarithms(logs: Array) -> float:
    """Logarithm of the sum."""
    return float(np.logaddexp.reduce(logs.ravel()))


@dataclass(frozen=True)
class QuantitySeries:
    """One quantity of one joint in all robots."""

    what: str
    unit: str
    place: int
    """Its column."""
    level: float
    """Chance below which a change is told."""
    scatter: float
    freedom: float
    """`scatter`, `freedom`: standard deviation of a session about the line, and degrees of freedom
    of that."""


def list_series(robots: Sequence[FollowedSessions], joints: Sequence[str]) -> list[QuantitySeries]:
    """What can be followed: of what the logs tell in every session."""
    robots = [each for each in robots if len(each.times) >= LONG]
    if not robots:
        return []
    told = [p for p in range(2 * len(joints)) if all(np.all(r.errors[:, p] > 0.0) for r in robots)]
    friction = sum(place < len(joints) for place in told)
    found = []
    for place in told:
        rubs = place < len(joints)
        name = f"{'friction' if rubs else 'offset'} of {joints[place % len(joints)]}"
        level = LEVEL / (friction if rubs else len(told) - friction)
        scatter, freedom = estimate_scatter(robots, place)
        found.append(QuantitySeries(name, "%" if rubs else "Nm", place, level, scatter, freedom))
    return found


def estimate_scatter(robots: Sequence[FollowedSessions], place: int) -> tuple[float, float]:
    """Scatter of sessions in one column, by restricted maximum likelihood, and its freedom.

    A robot that changes has its shapes, and does not count as one that scatters.
    """
    squares = np.concatenate([np.diff(each.values[:, place]) ** 2 for each in robots])
    guess = max(float(np.sqrt(np.median(squares) / (2.0 * MEDIAN))), TINY)
    shapes = {each.times.tobytes(): list_shapes(each.times) for each in robots}
    logs = np.zeros(len(GRID))
    for robot in robots:
        for k, each in enumerate(GRID):
            one = robot.compare(place, each * guess, shapes[robot.times.tobytes()])
            logs[k] += one.measure_likelihood(robot.values[:, place])
    k = int(np.argmax(logs))
    if not 0 < k < len(GRID) - 1:
        return guess * float(GRID[k]), MANY
    step = float(np.log(GRID[1] / GRID[0]))
    slope, curve = (logs[k + 1] - logs[k - 1]) / 2.0, logs[k + 1] - 2.0 * logs[k] + logs[k - 1]
    scatter = guess * float(GRID[k] * np.exp(-step * slope / curve))
    # of a session's variance, scatter is a share
    share = [np.mean(scatter**2 / (scatter**2 + r.errors[:, place] ** 2)) for r in robots]
    freedom = -curve / step**2 / (2.0 * np.mean(share) ** 2)
    return scatter, float(np.clip(freedom, LEAST, MANY))


def follow_sessions(
    robot: FollowedSessions, series: QuantitySeries, names: Sequence[str]
) -> FrictionCourse:
    """What became of one quantity over the sessions of a robot, whose names these are."""
    values, shapes = robot.values[:, series.place], list_shapes(robot.times)
    one = robot.compare(series.place, series.scatter, shapes)
    logs = one.weigh((one.frame[0].T @ values)[:, None])[:, :, 0]
    factor = add_logarithms(logs)
    chance = one.count_chance(factor, series.freedom)
    by_shape = np.sum(np.exp(logs - factor), axis=1)
    own = {kind: [k for k, s in enumerate(shapes) if s.kind == kind] for kind in KINDS}
    share = {kind: float(np.sum(by_shape[places])) for kind, places in own.items()}
    kind = max(KINDS, key=lambda each: share[each]) if chance < series.level else ""
    rows = np.vstack([np.eye(len(values)), np.eye(len(values))[-1] - np.eye(len(values))[0]])
    alone, session = one, ""
    if kind in ("shift", "outlier"):
        best = max(own[kind], key=lambda k: by_shape[k])
        session = names[shapes[best].session]
        if kind == "outlier":  # the walk is that of all others
            apart = one.deviation * (1.0 + WIDE * shapes[best].root[:, 0])
            alone = replace(one, deviation=apart)
    line, band = one.draw_line(values, rows)
    size, error = float(line[-1]), float(band[-1])
    if session:  # that of a shift, whenever it was; of an outlier, of that session
        likely = own[kind] if kind == "shift" else [best]
        size, error = one.find_size(values, likely, by_shape[likely] / np.sum(by_shape[likely]))
    wider = float(stdtrit(series.freedom, 0.975)) / NORMAL
    return FrictionCourse(
        series.what,
        series.unit,
        kind,
        session,
        share.get(kind, 0.0),
        size,
        wider * error,
        chance,
        alone.fit_walk(values),
        series.scatter,
        tuple(values.tolist()),
        tuple(robot.errors[:, series.place].tolist()),
        tuple(line[:-1].tolist()),
        tuple((wider * band[:-1]).tolist()),
    )


def list_times(members: Sequence[Member]) -> tuple[list[Array], str]:
    """When sessions were, from the first of all robots on, and in what: weeks, by dates in names.

    Numbers of sessions where a name has no date, or all of a robot have one.
    """
    dates = [[find_date(source.name) for source in each.sources] for each in members]
    known = [date for own in dates for date in own if date is not None]
    if len(known) == sum(map(len, dates)) and all(len({*own}) > 1 for own in dates):
        first = min(known)
        return [
            np.array([(d - first).total_seconds() / WEEK for d in own if d is not None])
            for own in dates
        ], "week"
    return [np.arange(1.0, len(own) + 1.0) for own in dates], "session"
