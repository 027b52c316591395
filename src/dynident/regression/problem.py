"""The identification problem: rows ``y = X beta + e`` in base parameters, and their factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import ComputationError, InputError, check_type
from dynident.core.factors import Compression, Factors, GroupFactor, InstrumentFactors
from dynident.dynamics.base import BaseParameters, find_observed_base
from dynident.dynamics.idim import FRICTION, Idim, build_idim
from dynident.dynamics.parameters import JointElements
from dynident.filters.blocks import find_run_extremes
from dynident.recording.prepare import Samples
from dynident.regression.generalised import GeneralisedSamples, generalise_samples
from dynident.regression.rows import (
    GivenRows,
    InstrumentedRows,
    JoinedRows,
    KeptRows,
    MotionRows,
    RowGroup,
    RowRemainder,
    Rows,
    RowSource,
    select_base_parameters,
)
from dynident.robot.model import Robot

NO_TORQUE = 1e-200
"""Sum of squared torques that is none: its square roots and quotients are no longer numbers."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Rows ``y = X beta + e`` in base parameters (ardiani2024, eq. 8), on demand.

    Attributes
    ----------
    base : BaseParameters
    samples : tuple of Samples
        The logs that the rows are of.
    source : RowSource
    """

    base: BaseParameters
    samples: tuple[GeneralisedSamples, ...]
    source: RowSource = field(repr=False)

    def __repr__(self) -> str:
        """One line, for a prompt."""
        logs = ", ".join(log.name for log in self.samples)
        return (
            f"<{type(self).__name__} of {self.robot.name}: {self.base.count} base parameters, "
            f"friction {self.idim.friction}, logs {logs}>"
        )

    @property
    def idim(self) -> Idim:
        """The model."""
        return self.base.idim

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.idim.robot

    @property
    def warnings(self) -> tuple[str, ...]:
        """What reading the robot's file, reading its logs and filtering them noticed; each once."""
        told = (*self.robot.warnings, *(words for log in self.samples for words in log.warnings))
        return tuple(dict.fromkeys(told))

    @property
    def groups(self) -> tuple[RowGroup, ...]:
        """What the groups of rows are."""
        return self.source.groups

    @property
    def columns(self) -> tuple[Integers, ...]:
        """Per group, the base parameters that act in it."""
        return self.source.columns

    @property
    def instruments(self) -> tuple[Integers, ...]:
        """Per group, the columns of Z in its rows; those of X without instruments."""
        return self.source.instruments

    @property
    def scores(self) -> int:
        """Number of columns that the errors are made orthogonal to."""
        return self.base.count * max(1, self.source.instrument_sets)

    @property
    def instrumented(self) -> bool:
        """Whether the rows have instruments."""
        return self.source.instrument_sets > 0

    @property
    def at_hand(self) -> bool:
        """Whether there are rows, and not their factors alone."""
        return self.source.left is None

    def passes(self) -> Iterator[Iterator[Rows]]:
        """Rows of each log, in stretches of time order."""
        return self.source.passes()

    def rows(self) -> Iterator[Rows]:
        """Rows of all logs, one after another."""
        for log in self.passes():
            yield from log

    def with_instruments(self, *others: Regression) -> Regression:
        """The same rows, each with the regressors of others as instruments Z."""
        sources = tuple(other.source for other in others)
        instrumented = InstrumentedRows(self.source, sources, self.base.count)
        return Regression(self.base, self.samples, instrumented)

    def only(self, columns: Sequence[int]) -> Regression:
        """The same rows with some of the base parameters, in this order; others are zero."""
        base = select_base_parameters(self.base, columns)
        return Regression(base, self.samples, self.source.only(base, columns))

    @cached_property
    def factors(self) -> Factors:
        """Streaming factors of all rows, group by group.

        Raises
        ------
        InputError
            When no row is left.
        """
        if self.source.left is not None:
            return self.source.left.factors
        found = self.compress(rows.blocks for rows in self.rows())
        if not found.rows:
            called = ", ".join(log.name for log in self.samples)
            raise InputError(f"{called}: no rows are left; lower drop_below or use a longer log")
        return found

    def compress(self, blocks: Iterable[tuple[Array, ...]]) -> Factors:
        """Factors of rows ``[X | y]`` made of these: of each group the columns that it has."""
        found = self.begin_factors()
        for block in blocks:
            found.add(block)
        return self.end_factors(found)

    def begin_factors(self) -> Compression:
        """What takes in rows ``[X | y]``, of each group the columns that it has."""
        return self._begin([len(columns) + 1 for columns in self.columns])

    def end_factors(self, found: Compression) -> Factors:
        """Factors of all rows that were taken in."""
        p = self.base.count
        return Factors(self._end(found, [[*columns, p] for columns in self.columns], p + 1))

    @cached_property
    def instrument_factors(self) -> InstrumentFactors:
        """Streaming factors of ``[Z X y]``, group by group (docs/theory/closed-loop.md)."""
        p, z = self.base.count, self.scores
        places = [
            [*i, *(c + z), p + z] for i, c in zip(self.instruments, self.columns, strict=True)
        ]
        found = self._begin([len(place) for place in places])
        for rows in self.rows():
            pairs = zip(rows.scores, rows.X, rows.y, strict=True)
            found.add([np.column_stack(block) for block in pairs])
        return InstrumentFactors(self._end(found, places, z + p + 1), z)

    def _begin(self, widths: Sequence[int]) -> Compression:
        """Rows of the groups, so wide, to come."""
        return Compression([group.name for group in self.groups], widths)

    def _end(
        self, taken: Compression, places: Sequence[Sequence[int]], width: int
    ) -> tuple[GroupFactor, ...]:
        """Factors of each group's own columns, put where they stand among all."""
        found = []
        for part, group, place in zip(taken.groups, self.groups, places, strict=True):
            factor = np.zeros((len(part.factor), width))
            factor[:, place] = part.factor
            found.append(replace(part, factor=factor, noise=group.noise))
        return tuple(found)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem(Regression):
    """The regressor of a robot along the motion of its logs, and their torques.

    >>> problem = di.Problem(robot, samples, friction="coulomb-viscous")
    >>> [group.name for group in problem.groups]
    ['shoulder', 'elbow']

    Parameters
    ----------
    robot : Robot
    samples : Samples or sequence of Samples
        One or several logs.
    friction : str
        Name in `dynident.friction.models.FRICTIONS`, or one per joint, separated by commas.
    rotor : bool, optional
        Whether the drives' rotor inertias are parameters; by default unless friction is "none".
    elements : sequence of JointElements
        What else acts on the joints.
    progress : callable, optional
        Called with "rows" and the share of a log that has been converted to rows.

    Raises
    ------
    InputError
        When the samples do not fit the robot, or lack what its equations take.
    """

    def __init__(
        self,
        robot: Robot,
        samples: Samples | Sequence[Samples],
        friction: str = FRICTION,
        rotor: bool | None = None,
        *,
        elements: Sequence[JointElements] = (),
        progress: Callable[[str, float], None] | None = None,
    ) -> None:
        check_type("a problem", robot, Robot, "dynident.load_robot(file) makes one")
        idim = build_idim(robot, friction, rotor, elements=elements)
        logs = check_logs(idim, samples)
        base = find_observed_base(idim, [log.observed for log in logs])
        super().__init__(base, logs, JoinedRows.of(base, logs, progress=progress))

    @classmethod
    def of(cls, base: BaseParameters, samples: Samples | Sequence[Samples]) -> Problem:
        """The problem of a model whose base parameters are known.

        Raises
        ------
        InputError
            When the samples do not fit the robot, or lack what its equations take.
        """
        logs = check_logs(base.idim, samples)
        return cls._of_source(base, logs, JoinedRows.of(base, logs))

    @classmethod
    def of_factors(
        cls,
        base: BaseParameters,
        groups: tuple[RowGroup, ...],
        factors: Factors,
        blocks: Sequence[Sequence[Factors]],
    ) -> Problem:
        """The problem of rows that are gone, of which factors are left, of runs of time too."""
        left = RowRemainder(groups, factors, tuple(map(tuple, blocks)))
        return cls._of_source(base, (), KeptRows(left))

    @classmethod
    def _of_source(
        cls, base: BaseParameters, samples: tuple[GeneralisedSamples, ...], source: RowSource
    ) -> Problem:
        problem = cls.__new__(cls)
        Regression.__init__(problem, base, samples, source)
        return problem

    def without_limbs(self) -> Problem:
        """The robot without the sensors in its chain on the same logs, but for their rows."""
        idim, _ = self.idim.without_sensors(self.idim.nominal)
        logs = tuple(log.without_limbs(self.robot) for log in self.samples)
        return Problem.of(find_observed_base(idim, [log.observed for log in logs]), logs)

    def without_hysteresis(self) -> Problem | None:
        """The same logs of springs without bristles; None where none has them."""
        gauges, logs = self.robot.gauges, self.samples
        plain = tuple(gauge.without_bristles() for gauge in gauges)
        if plain == gauges:
            return None
        idim = self.idim.of(replace(self.robot, gauges=plain))
        return Problem.of(find_observed_base(idim, [log.observed for log in logs]), logs)

    def on(self, samples: Samples | Sequence[Samples]) -> Problem:
        """The same model on other logs."""
        return Problem.of(self.base, samples)

    def under(self, base: BaseParameters) -> Problem:
        """The same logs under another model, whose bodies' columns are not filled again."""
        logs = check_logs(base.idim, self.samples)
        return Problem._of_source(base, logs, JoinedRows.of(base, logs, self.source))

    def expecting(self, theta: Array, begin: bool = False, step: bool = False) -> Problem:
        """The same, rows of links' encoders linearised: see `GeneralisedSamples.expecting`."""
        if all(log.deflection is None for log in self.samples):
            return self
        return self.on([log.expecting(self.idim, theta, begin, step) for log in self.samples])

    def with_drives(
        self, friction: str, rotor: bool | None = None, elements: Sequence[JointElements] = ()
    ) -> Problem:
        """The same logs and bodies with other drives."""
        idim = build_idim(self.robot, friction, rotor, elements=elements)
        return self.under(find_observed_base(idim, [log.observed for log in self.samples]))

    def shaped(self, values: Array) -> Problem:
        """The same logs at other shapes of the friction."""
        return self.under(replace(self.base, idim=self.idim.shaped(values)))

    def linearised(self, theta: Array) -> Problem:
        """The same logs, the shapes of the friction as parameters, about a full set."""
        return self.under(self.base.linearised(theta))

    def settled(self, theta: Array) -> Problem:
        """The same logs at the shapes of a full set."""
        return self.under(self.base.settled(theta))

    def with_known_loads(self, theta: Array) -> Problem:
        """The same logs with friction under the loads of known bodies, those of a full set."""
        base = replace(self.base, idim=replace(self.idim, bearing=tuple(map(float, theta))))
        return self.under(base)

    def only(self, columns: Sequence[int]) -> Problem:
        """The same logs with some of the base parameters, in this order; others are zero."""
        base = select_base_parameters(self.base, columns)
        return Problem._of_source(base, self.samples, self.source.only(base, columns))

    def along(
        self,
        motions: Sequence[tuple[Array, Array, Array]],
        widths: Sequence[Array | None] | None = None,
    ) -> Regression:
        """The same torques and rows on other motions ``(q, dq, ddq)``, one a log.

        Parameters
        ----------
        motions : sequence of (q, dq, ddq)
        widths : sequence of ndarray, shape (n,), optional
            Smoothing of the sign that each motion was simulated with [rad/s or m/s].
        """
        pairs = zip(self.samples, motions, strict=True)
        logs = tuple(log.along(*motion) for log, motion in pairs)
        return Regression(self.base, logs, MotionRows(self.base, logs, widths))

    def curved_along(self, other: Regression) -> Regression:
        """The same torques and rows, but friction nonlinear in the speed along another's motion."""
        curved = self.idim.curved[self.base.kept]
        moved = other.source
        assert isinstance(moved, MotionRows)
        parts = [np.flatnonzero(part).tolist() for part in (~curved, curved)]
        straight, own = (select_base_parameters(self.base, part) for part in parts)
        measured = MotionRows(straight, self.samples)
        joined = JoinedRows(self.base, (measured, moved.only(own, parts[1])))
        return Regression(self.base, self.samples, joined)

    def given(
        self, groups: tuple[RowGroup, ...], stretches: Sequence[Sequence[Rows]]
    ) -> Regression:
        """Rows of another origin about the same parameters, all of them in every group.

        Parameters
        ----------
        groups : tuple of RowGroup
        stretches : sequence of sequence of Rows
            Of each log, in time order.
        """
        every = (np.arange(self.base.count),) * len(groups)
        source = GivenRows(groups, tuple(tuple(rows) for rows in stretches), every)
        return Regression(self.base, self.samples, source)


def check_logs(idim: Idim, samples: Samples | Sequence[Samples]) -> tuple[GeneralisedSamples, ...]:
    """Logs as the equations of their robot, refused where they do not fit it."""
    robot = idim.robot
    logs = tuple(samples) if isinstance(samples, Iterable) else (samples,)
    if not logs:
        raise InputError("a problem needs at least one log")
    for log in logs:
        check_type(
            "a problem", log, Samples, "dynident.prepare(recording, bandwidth=...) makes them"
        )
        logged = robot.carrier or robot
        if log.joints is None and log.measured.shape[1] != logged.n:
            raise InputError(
                f"{log.name}: has {log.q.shape[1]} joints, {logged.name} has {logged.n}"
            )
        if "temperature" in idim.needs and log.temp is None:
            raise InputError(
                f"{log.name}: friction {idim.friction!r} needs the drives' temperatures; name them "
                "in columns.temp, or temp_<joint> or temp in the log"
            )
        if "known" in idim.needs and log.known is None:
            raise InputError(
                f"{log.name}: an element needs known torques; name them in columns.known, or "
                "known_<joint> in the log, zeros where nothing is known"
            )
    return tuple(generalise_samples(idim, log) for log in logs)


def refuse_combinations(problem: Problem, what: str) -> None:
    """Refuse rows that combine equations, which `what` says is not done."""
    robot = problem.robot
    if len(problem.groups) > robot.equations:
        instead = "set equations = 'base', or take wls" if robot.floating else "take wls"
        raise InputError(f"{what} the null space of contacts that nothing measures; {instead}")


def refuse_sensors(robot: Robot, what: str) -> None:
    """Refuse sensors in the chain, of which `what` knows nothing."""
    if robot.sensed:
        gauge, _ = robot.sensed[0]
        raise InputError(
            f"{robot.name}: {what} no rows of the {gauge.kind} at {gauge.name}; leave {gauge.key}, "
            "or take wls or pc-idim-ls"
        )


def refuse_springs(robot: Robot, what: str) -> None:
    """Refuse springs in the joints, of which `what` knows nothing."""
    names = ", ".join(gauge.name for gauge in robot.gauges if "K" in gauge.terms)
    if names:
        raise InputError(
            f"{robot.name}: {what} no springs behind {names}; leave link out of [[robot.drive]]"
        )


def require_torque(problem: Problem) -> None:
    """Refuse logs that say nothing of the robot."""
    bent = [
        row for row, _ in problem.robot.sprung_rows
    ]  # torques of springs, by what is expected of them
    if max(np.max(np.delete(log.peaks, bent)) for log in problem.samples) ** 2 < NO_TORQUE:
        called = ", ".join(log.name for log in problem.samples)
        if all(log.torque == "none" for log in problem.samples):
            raise InputError(f"{called}: has no torque with a sign, which this takes")
        raise ComputationError(
            f"{called}: the torque is zero throughout, so it has no information; "
            "check the torque columns"
        )
    if problem.robot.floating and all(lacks_joint_torques(log) for log in problem.samples):
        raise ComputationError(
            f"{', '.join(log.name for log in problem.samples)}: the torques of all joints are zero "
            "throughout, unlike those of any motion: leave their columns out if they were not "
            "measured"
        )


def lacks_joint_torques(log: GeneralisedSamples) -> bool:
    """Whether a log states equations of joints by torques that are zero throughout."""
    own = log.joint_rows
    stated = any(log.stated[a:b, own].any() for a, b in log.segments)
    # forces of contacts stand beside torques in all equations: what was measured is asked
    torques = find_run_extremes(log.joint_torque, log.runs)
    return stated and log.torque == "measured" and not np.any(torques)
