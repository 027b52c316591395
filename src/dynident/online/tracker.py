"""A robot's parameters while it moves: one sample in, estimate and covariance out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy import linalg, special

from dynident.consistency.feasible_set import FeasiblePoint
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array, check_rate
from dynident.core.bundle import Bundle
from dynident.core.errors import InputError, check_type, refuse_unknown
from dynident.core.options import NotNegatives, Options, broadcast_to_joints
from dynident.core.schema import Flag, Name, Number
from dynident.core.state_files import take_fingerprint
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.contacts import follow_touch
from dynident.friction.model import name_signals
from dynident.online.causal import TURN_POINTS, SignTurnover
from dynident.online.consistent import ConsistentAnswer
from dynident.online.initial_load import SURE, weigh_load
from dynident.online.instruments import InstrumentAnswer
from dynident.online.online import (
    BAD,
    CHANGED,
    FIRST_ROWS,
    FIRST_SUM,
    LEVEL,
    LOAD,
    MISFIT,
    MODE,
    MODE_AGE,
    QUIETLY,
    ROWS_BEFORE,
    SAMPLES,
    SETTLED,
    STATISTIC,
    SUM_BEFORE,
    THRESHOLD,
    TrackerModel,
    begin_memory,
    build_friction_tables,
    predict,
    step,
)
from dynident.online.recursion import (
    DIFFUSE,
    Recursion,
    absorb_row,
    choose_diffuse_std,
    estimate_natural_size,
    mark_friction_columns,
)
from dynident.online.recursive import Drift, Forgetting
from dynident.regression.problem import refuse_sensors
from dynident.robot.closure import Closure
from dynident.robot.model import LAW, WRENCH, Robot

HEAVY, FAR = 50.0, 0.5
"""Size of what is believed of a load before it is seen [kg], [m]."""
LOAD_STD = HEAVY * np.array([1.0] + [FAR] * 3 + [FAR**2] * 6)
"""The same of its parameters."""
HOUR = 3600.0
BASE_VALUES = (
    ("px", "py", "pz", "qx", "qy", "qz", "qw"),
    ("vx", "vy", "vz", "wx", "wy", "wz"),
    ("ax", "ay", "az", "dwx", "dwy", "dwz"),
    WRENCH,
)
"""What a sample has of a floating base, in q, dq, ddq and tau."""

Positive = Annotated[Number, Field(gt=0.0, le=1e9)]
MOTION = ("q", "dq", "ddq", "tau")
"""What a sample has."""


@dataclass(frozen=True)
class AlarmOptions(Options):
    """When a change of the load is reported."""

    window: Annotated[
        Positive, "over which innovations are summed; the test is made twice in it [s]"
    ] = 0.25
    settle: Annotated[
        Positive, "time of motion in which the innovations' own level is learnt, without tests [s]"
    ] = 3.0
    false_alarms: Annotated[
        Annotated[Number, Field(gt=0.0, le=1e3)], "how many are admitted in an hour of motion"
    ] = 0.1


@dataclass(frozen=True)
class TrackerSettings(Options):
    """What a tracker beside a stream is told."""

    cutoff: Annotated[
        Positive | None,
        "of the causal filter of all signals; 2 bandwidths by default [Hz]",
    ] = None
    every: Annotated[Positive, "time between two estimates that are written [s]"] = 1.0
    consistent: Annotated[
        Flag, "follow physically consistent parameters, under the default prior, too"
    ] = False
    link: Annotated[
        Name | None,
        "that carries loads; the last one, of a floating robot its base by default",
    ] = None
    instruments: Annotated[
        Literal["none", "reference"],
        "what the rows of the motion are multiplied by: themselves (least squares), or those of "
        "the `reference` in the log, which have no noise of the encoders",
    ] = "none"


@dataclass(frozen=True)
class Event:
    """Something that a tracker noticed.

    Attributes
    ----------
    kind : {"load", "released", "misfit"}
        Another load is carried than the model has, or that of the model again; or the start does
        not fit the first samples.
    sample : int
        After which, counted from 1.
    statistic, threshold : float
        The sum of squared innovations of the window over what they usually are, and the
        quantile of chi-squared that it is held against; of a load from the first sample on how many
        standard errors its mass is from none, squared; of a misfit the mean square of the
        innovations so far, and what is admitted.
    """

    kind: str
    sample: int
    statistic: float
    threshold: float


class Surprise(NamedTuple):
    """How far samples are from what the model says.

    Attributes
    ----------
    statistic, threshold : float
        Of the last test for a change, as of an `Event`; zero before the first.
    level : float
        Mean square of the normalised innovations, as learnt: 1 where sigma is right.
    """

    statistic: float
    threshold: float
    level: float


@dataclass(frozen=True)
class LoadEstimate:
    """What is carried beside the model's own bodies.

    Attributes
    ----------
    phi, std : ndarray, shape (10,)
        Its inertial parameters in the frame of the link that carries it.
    covariance : ndarray, shape (10, 10)
    """

    phi: Array
    std: Array
    covariance: Array

    @property
    def mass(self) -> float:
        """[kg]"""
        return float(self.phi[0])


@dataclass(frozen=True)
class PriorKnowledge:
    """What is known before the first sample.

    Attributes
    ----------
    beta : ndarray, shape (base parameters,)
    covariance : ndarray, shape (base parameters, base parameters)

    Raises
    ------
    InputError
        When the covariance is not positive definite or shapes do not fit.
    """

    beta: Array
    covariance: Array

    def factor(self, base: BaseParameters) -> Array:
        """``R`` with ``R^T R = covariance^-1``, upper triangular with a positive diagonal."""
        if self.beta.shape != (base.count,) or self.covariance.shape != (base.count,) * 2:
            raise InputError(
                f"{base.idim.robot.name}: a start needs {base.count} base parameters and their "
                "covariance"
            )
        size = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        try:
            L = np.linalg.cholesky(self.covariance / np.outer(size, size))
        except np.linalg.LinAlgError as error:
            raise InputError(
                f"{base.idim.robot.name}: the covariance of the start is not positive definite"
            ) from error
        R = np.linalg.qr(linalg.solve_triangular(L, np.diag(1.0 / size), lower=True), mode="r")
        return np.asarray(R * np.sign(np.diag(R))[:, None])


class Tracker:
    """A robot's base parameters, estimated sample by sample.

    >>> tracker = di.Tracker(problem.base, sigma=fit.estimate.sigma, rate=log.rate)
    >>> event = tracker.update(samples.q[0], samples.dq[0], samples.ddq[0], samples.tau[0])

    Parameters
    ----------
    base : BaseParameters
        Of the model.
    sigma : sequence of float
        Standard deviation of each equation's torque error [Nm or N], by which samples are weighted.
        The six equations of a floating base come first; those with infinite sigma are not used.
    rate : float
        Samples a second [Hz].
    forgetting : Forgetting
    drift : Drift
    alarm : AlarmOptions
    drop_below : float or sequence of float
        A joint's row is dropped if the joint, or a coupled drive on it, is slower
        [rad/s or m/s].
    start : PriorKnowledge, optional
        A diffuse prior by default.
    knowledge : Knowledge, optional
        Also track a physically consistent set of standard parameters, with this prior.
    turnover : SignTurnover, optional
        Of the causal filter of the samples: its response to Coulomb friction when a joint
        reverses. None for samples without such a filter.
    link : str, optional
        Link that carries loads; by default the last one, or the base of a floating robot.
    instruments : bool
        Estimate by instrumental variables: each sample then needs its reference.

    Raises
    ------
    InputError
        If options contradict each other, friction depends on load or
        temperature, or errors of a force sensor are to be estimated.
    """

    def __init__(
        self,
        base: BaseParameters,
        sigma: Sequence[float] | Array,
        rate: float,
        *,
        forgetting: Forgetting = Forgetting(),
        drift: Drift = Drift(),
        alarm: AlarmOptions = AlarmOptions(),
        drop_below: NotNegatives = 0.0,
        start: PriorKnowledge | None = None,
        knowledge: Knowledge | None = None,
        turnover: SignTurnover | None = None,
        link: str | None = None,
        instruments: bool = False,
    ) -> None:
        check_type("a tracker", base, BaseParameters, "the base of a problem, or base_parameters")
        refuse_untrackable(base, sigma, rate)
        if instruments:
            refuse_without_instruments(base, forgetting, drift)
        self.base, self.rate = base, float(rate)
        self.sigma = np.array(sigma, dtype=float)
        if base.idim.robot.loops:  # passive joints have no torque
            self.sigma[base.idim.robot.passive] = np.inf
        self.options = {**asdict(forgetting), **asdict(drift), **asdict(alarm)}
        slow = broadcast_to_joints(drop_below, base.idim.robot.n, "drop_below")
        turn = SignTurnover(0.0, np.zeros(TURN_POINTS)) if turnover is None else turnover
        carrying = find_carrying_body(base.idim.robot, link)
        self._carrying = LOAD * carrying
        self._model = build_tracker_model(
            base, self.sigma, self.rate, forgetting, drift, alarm, slow, turn,
            carrying,
        )  # fmt: skip
        if start is None:
            ageing = forgetting.rule(
                estimate_natural_size(base, self.sigma), mark_friction_columns(base), 1
            )
            first = Recursion.start(np.zeros(base.count), np.diag(1.0 / choose_diffuse_std(ageing)))
        else:
            first = Recursion.start(np.asarray(start.beta, dtype=float), start.factor(base))
        self._start = None if start is None else first.R.copy()
        states = sum(len(friction.model.state) for friction in base.idim.frictions)
        self._memory = begin_memory(first, base.idim.robot.dof, states)
        self._bundles = Bundle(self._model), Bundle(self._memory)
        robot = base.idim.robot
        coordinates = robot.dof + int(robot.floating)  # an orientation has four
        self._contacts = robot.contacts if has_unmeasured_contacts(base) else ()
        forces = count_unmeasured_forces(base)
        self._closure = base.idim.structure.closure
        linked = 0 if self._closure is None else robot.n
        self._sample = np.zeros(coordinates + (3 + forces + linked) * robot.dof)
        ends = coordinates + robot.dof * np.array([0, 1, 2, 3, 3 + forces])
        self._parts = np.split(self._sample, ends)  # views: q, dq, ddq, tau, levers, G
        self._near = None if self._closure is None else self._closure.start
        self._instruments = None
        if instruments:
            # rows are weighed by the square of what they are multiplied with
            age = 0.0 if forgetting.memory is None else 0.5 / (forgetting.memory * self.rate)
            R = first.R[:, : base.count]
            self._instruments = InstrumentAnswer(R, first.beta, float(np.exp(-age)))
        self._answer = None
        if knowledge is not None:
            self._answer = ConsistentAnswer(base, self.sigma, knowledge)

    def update(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        ddq: npt.ArrayLike,
        tau: npt.ArrayLike,
        bearing: Collection[str] = (),
        reference: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike] | None = None,
    ) -> Event | None:
        """Take in one sample, as a row of the log of a `Problem` is.

        Parameters
        ----------
        q, dq, ddq : array_like, shapes (nq,), (dof,) and (dof,)
            Of a floating robot position and quaternion x y z w of its base come first, its twist,
            and its spatial acceleration, in its axes.
        tau : array_like, shape (dof,)
            Right-hand sides: zeros of a floating base, then the joints' torques, with ``J^T f`` of
            all wrenches that are measured [Nm or N].
        bearing : collection of str
            Contacts that bear and that nothing measures: what they do is eliminated from the rows
            of this sample. They are of base parameters of a null space.
        reference : (array_like, array_like, array_like), optional
            q, dq and ddq of the controller's reference, of a tracker with instruments.

        Returns
        -------
        Event or None
            What was noticed.

        Raises
        ------
        InputError
            When a value is not finite, a shape is another, or a contact is not known; the tracker
            is then as it was.
        """
        sample = self._fill_sample(q, dq, ddq, tau, bearing)
        along = np.empty(0)
        if self._instruments is not None:
            if reference is None:
                raise InputError(f"sample {self.samples + 1}: has no reference for the instruments")
            along = np.concatenate([np.asarray(part, dtype=float) for part in reference])
            if along.shape != (3 * self.base.idim.robot.n,) or not np.all(np.isfinite(along)):
                raise InputError(f"sample {self.samples + 1}: its reference is not a motion")
        outcome = step(*self._bundles, sample)
        if self._instruments is not None and outcome != BAD:
            counts = self._memory.counts
            self._instruments.update(*self._bundles, counts, sample, along, outcome)
        if self._answer is not None and outcome != BAD:
            self._answer.update(self._recursion.R)
        if outcome == QUIETLY:
            return None
        if outcome == BAD:
            bad = int(np.flatnonzero(~np.isfinite(sample))[0])
            name = self._name_value(bad)
            raise InputError(f"sample {self.samples + 1}: {name} is {sample[bad]}")
        if outcome == SETTLED:
            return None if self._start is None else self._look_back(self._start)
        total = self._memory.total
        kind = "load" if outcome == CHANGED else "released"
        return Event(kind, self.samples, float(total[STATISTIC]), float(total[THRESHOLD]))

    def _look_back(self, start: Array) -> Event | None:
        """What the first samples say of a start: that a load was there from the first on, or less.

        With a load the model is again what the start says, and the load what explains the samples.
        """
        memory, total, p = self._memory, self._memory.total, self.base.count
        shift = self.base.matrix[:, self._carrying : self._carrying + LOAD]
        first = float(total[FIRST_SUM]), int(memory.counts[FIRST_ROWS])
        carried = weigh_load(start, memory.R, shift, LOAD_STD, *first)
        if carried.statistic > SURE**2:
            memory.R[:] = start
            memory.beta[:] = linalg.solve_triangular(start[:, :p], start[:, p])
            for k in range(2):
                memory.kept_factor[k], memory.kept_beta[k] = memory.R, memory.beta
            if self._instruments is not None:
                self._instruments.begin(start[:, :p], memory.beta)
            memory.load_factor[:], memory.load_beta[:] = carried.factor, carried.phi
            memory.counts[[MODE, MODE_AGE, ROWS_BEFORE]] = 1, 0, 0
            total[[LEVEL, SUM_BEFORE]] = carried.level, 0.0
            return Event("load", self.samples, carried.statistic, SURE**2)
        level = float(total[LEVEL])
        return Event("misfit", self.samples, level, MISFIT) if level > MISFIT else None

    def predict(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        ddq: npt.ArrayLike,
        bearing: Collection[str] = (),
    ) -> Array:
        """What `tau` of a sample should be by what was learnt so far; `update` comes after it.

        Parameters
        ----------
        q, dq, ddq, bearing
            As `update` takes them.

        Returns
        -------
        ndarray, shape (dof,)
            Right-hand sides, with what is carried [Nm or N]. NaN of equations that are not
            followed, and of those that forces act on which nothing measures.

        Raises
        ------
        InputError
            When a shape is another, or a contact is not known.
        """
        sample = self._fill_sample(q, dq, ddq, np.zeros(len(self.sigma)), bearing)
        beta = self._memory.beta if self.loaded else self._recursion.beta  # a load's are held
        return np.asarray(predict(*self._bundles, beta, sample))

    def _fill_sample(
        self,
        q: npt.ArrayLike,
        dq: npt.ArrayLike,
        ddq: npt.ArrayLike,
        tau: npt.ArrayLike,
        bearing: Collection[str],
    ) -> Array:
        """A sample as the compiled functions take it: always the same storage."""
        parts = self._parts
        for name, part, values in zip(MOTION, parts, (q, dq, ddq, tau), strict=False):
            if np.shape(values) != part.shape:
                shapes = f"{np.shape(values)}, not {part.shape}"
                raise InputError(f"sample {self.samples + 1}: {name} has shape {shapes}")
            part[:] = values
        if self._contacts or bearing:
            self._fill_levers(parts[4].reshape(-1, len(self.sigma)), bearing)
        if self._closure is not None and np.all(np.isfinite(self._sample)):
            self._close(self._closure)
        return self._sample

    def _close(self, closure: Closure) -> None:
        """Passive joints of a sample by its driven ones, from where they were before."""
        q, dq, ddq = (part[None] for part in self._parts[:3])
        assert self._near is not None
        name = f"sample {self.samples + 1}"
        given = q[0] if self.samples == 0 and np.any(q[0, closure.passive]) else self._near
        whole = np.where(self.base.idim.robot.passive, given, q[0])
        q[0] = closure.settle(whole, name)
        dq[0], ddq[0] = (part[0] for part in closure.move(q, dq, ddq))
        self._parts[5][:] = closure.find_null_space(q)[0].ravel()
        self._near = q[0].copy()

    def _fill_levers(self, levers: Array, bearing: Collection[str]) -> None:
        """Jacobians of the contacts that bear unmeasured, zeros of all others."""
        known = [contact.name for contact in self._contacts]
        odd = next((name for name in bearing if name not in known), None)
        if odd is not None:
            raise InputError(
                f"{odd!r} carries load that is not measured, but is not among the contacts of "
                "base parameters of a null space"
            )
        q, first = self._parts[0][None], 0
        for contact in self._contacts:
            own = levers[first : first + contact.components]
            first += contact.components
            own[:] = 0.0
            if contact.name in bearing and np.all(np.isfinite(q)):
                idim = self.base.idim
                motion = follow_touch(idim.tree, idim.robot, contact, q)
                own[:] = motion.jacobian[0, : contact.components]

    def _name_value(self, place: int) -> str:
        """What a sample has at a place."""
        robot = self.base.idim.robot
        names = []
        for signal, of_base in zip(("q", "dq", "ddq", "tau"), BASE_VALUES, strict=True):
            names += [f"base_{part}" for part in of_base] if robot.floating else []
            names += [f"{signal}_{joint}" for joint in robot.joint_names]
        return names[place]

    def reset(self, weight: float = 1e-4) -> None:
        """Let all samples so far weigh less: the estimate stays, its covariance grows.

        For what is known to have changed: an exchanged gear, a robot that was mounted anew. What
        was carried is forgotten.

        Parameters
        ----------
        weight : float
            Of what was learnt, from 1 to all but 0: the covariance grows by its inverse, but for
            standard deviations of no more than those of a diffuse prior.

        Raises
        ------
        InputError
            When the weight is none.
        """
        if not 0.0 < weight <= 1.0:
            raise InputError(f"weight = {weight} has to be above 0 and at most 1")
        memory = self._memory
        memory.R[:] *= np.sqrt(weight)
        least = 1.0 / (DIFFUSE * estimate_natural_size(self.base, self.sigma))
        if self._instruments is not None:
            self._instruments.believe_less(weight, least)
        for k, floor in enumerate(least):
            row = np.zeros(self.base.count + 1)
            row[k], row[-1] = floor, floor * memory.beta[k]
            absorb_row(memory.R, row, k)
        for k in range(2):
            memory.kept_factor[k], memory.kept_beta[k] = memory.R, memory.beta
        memory.counts[MODE] = 0

    @property
    def samples(self) -> int:
        """Samples so far."""
        return int(self._memory.counts[SAMPLES])

    @property
    def beta(self) -> Array:
        """Base parameters, shape (p,); a copy."""
        return self._recursion.beta.copy()

    @property
    def half(self) -> Array:
        """``R^-1``: its rows' squares sum to the variances, shape (p, p)."""
        return self._recursion.half

    @property
    def covariance(self) -> Array:
        """Of the base parameters, shape (p, p)."""
        return self._recursion.covariance

    @property
    def std(self) -> Array:
        """Standard deviations of the base parameters, shape (p,)."""
        return self._recursion.std

    @property
    def _recursion(self) -> Recursion:
        memory = self._memory
        R, beta = memory.R, memory.beta
        if self._instruments is not None:
            R, beta = self._instruments.solve()
        return Recursion(R, beta, memory.due, memory.place, np.empty(0))

    @property
    def consistent(self) -> bool:
        """Whether `theta` is followed."""
        return self._answer is not None

    @property
    def theta(self) -> Array:
        """Consistent standard parameters; certified by Cholesky factors at each sample.

        Raises
        ------
        InputError
            When none are followed: the tracker was made without `knowledge`.
        """
        return self._followed.theta

    @property
    def gap(self) -> float:
        """By how much `theta`, at rest, may miss the constrained minimum, in squared sigmas."""
        return self._followed.gap

    def projected(self) -> FeasiblePoint:
        """The constrained minimum itself, by the cone solver, with its certificate.

        Raises
        ------
        InputError
            As `theta`.
        ComputationError
            When no certified answer was reached.
        """
        return self._followed.projected(self._recursion.R)

    @property
    def _followed(self) -> ConsistentAnswer:
        if self._answer is None:
            raise InputError("no consistent parameters are followed; give the tracker knowledge")
        return self._answer

    @property
    def surprise(self) -> Surprise:
        """How far the samples of the last window are from what the model says."""
        total = self._memory.total
        return Surprise(float(total[STATISTIC]), float(total[THRESHOLD]), float(total[LEVEL]))

    @property
    def loaded(self) -> bool:
        """Whether something is carried that the model does not have."""
        return bool(self._memory.counts[MODE])

    @property
    def load(self) -> LoadEstimate | None:
        """What is carried, where something is."""
        if not self.loaded:
            return None
        R = self._memory.load_factor[:, :LOAD]
        half = linalg.solve_triangular(R, np.eye(LOAD))
        std = np.sqrt(np.sum(half**2, axis=1))
        return LoadEstimate(self._memory.load_beta.copy(), std, half @ half.T)

    @property
    def fingerprint(self) -> str:
        """Of the robot, the model, the options and the rate: a state fits where it is the same."""
        text = ",".join((self.base.idim.robot.name, *self.base.names))
        law = self._model.law.copy()
        law[:, [0, 3]] = 0  # where a law and its step are compiled to differs from run to run
        parts = (p if isinstance(p, tuple) else (p,) for p in self._model._replace(law=law))
        answer = b"" if self._answer is None else self._answer.identity
        by = b"" if self._instruments is None else b"instruments"
        return take_fingerprint((text, *map(np.asarray, chain(*parts)), answer + by))

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that it remembers, as arrays; copies."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def _arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        own: dict[str, npt.NDArray[np.generic]] = {
            f"memory_{name}": each for name, each in self._memory._asdict().items()
        }
        if self._answer is not None:
            answer = self._answer
            own |= {"x": answer.x, "factor": answer.factor, "weight": answer.weight}
            own["count"] = answer.count
        if self._instruments is not None:
            own |= {"instruments": self._instruments.S, "instruments_kept": self._instruments.kept}
        return own

    def restore(self, state: dict[str, npt.NDArray[np.generic]]) -> None:
        """Go on from what `state` gave, of a tracker of the same `fingerprint`.

        Raises
        ------
        InputError
            When the state does not fit.
        """
        arrays = self._arrays()
        if set(state) != set(arrays):
            raise InputError("the state is not that of such a tracker")
        for name, own in arrays.items():
            if state[name].shape != own.shape or state[name].dtype != own.dtype:
                raise InputError("the state is not that of such a tracker")
        for name, own in arrays.items():
            own[:] = state[name]


def refuse_untrackable(base: BaseParameters, sigma: Sequence[float] | Array, rate: float) -> None:
    """Refuse what no tracker can be made of."""
    idim, dof = base.idim, base.idim.robot.dof
    refuse_sensors(idim.robot, "a tracker follows")
    what = f"{dof} equations" if idim.robot.floating else f"{dof} joints"
    given = np.asarray(sigma, dtype=float)
    if given.shape != (dof,) or not np.all(given > 0.0) or not np.any(np.isfinite(given)):
        raise InputError(f"{idim.robot.name}: sigma needs a positive number for each of {what}")
    if LAW in base.names:
        raise InputError(
            f"{idim.robot.name}: {LAW} is estimated from whole logs, and not followed; state the "
            "one that was found in [[log]] and identify again"
        )
    if any(contact.estimate for contact in idim.robot.contacts):
        raise InputError(
            f"{idim.robot.name}: errors of force sensors are estimated from whole logs, "
            "and not tracked"
        )
    check_rate(rate)
    if idim.needs:
        raise InputError(
            f"{idim.robot.name}: its friction depends on the {name_signals(idim.needs)}, which a "
            "tracker does not follow; identify it from a log"
        )
    if any(any(friction.model.state) for friction in idim.frictions):  # bristles begin straight
        raise InputError(
            f"{idim.robot.name}: a tracker does not know where the states of friction "
            f"{idim.friction!r} begin; identify it from a log"
        )


def refuse_without_instruments(base: BaseParameters, forgetting: Forgetting, drift: Drift) -> None:
    """Refuse what is not estimated by instruments sample by sample."""
    name = base.idim.robot.name
    base.idim.robot.refuse_loops("instruments of a stream")
    if base.idim.robot.floating:
        raise InputError(
            f"{name}: instruments = 'reference' of a stream needs a fixed base; identify a "
            "floating robot with ref-iv"
        )
    if base.idim.has_states:
        raise InputError(
            f"{name}: friction {base.idim.friction!r} has memory, but the reference has "
            "no past motion: leave instruments out"
        )
    if forgetting.directional or forgetting.memory_friction is not None or drift.ages:
        raise InputError(
            "instruments = 'reference' forgets by one memory: leave directional, memory_friction, "
            "walk and walk_friction out"
        )


def has_unmeasured_contacts(base: BaseParameters) -> bool:
    """Whether base parameters are of logs in which contacts bear that nothing measures."""
    return any(each.equations == "null-space" for each in base.observed)


def count_unmeasured_forces(base: BaseParameters) -> int:
    """Components of the forces of contacts that nothing measures."""
    if not has_unmeasured_contacts(base):
        return 0
    return sum(contact.components for contact in base.idim.robot.contacts)


def find_carrying_body(robot: Robot, link: str | None) -> int:
    """The body that carries loads: a link's, else the last, of a floating robot its base."""
    if link is None:
        return 0 if robot.floating else len(robot.links) - 1
    refuse_unknown(link, robot.links, f"link {link!r} is not known")
    return robot.links.index(link)


def build_tracker_model(
    base: BaseParameters,
    sigma: Array,
    rate: float,
    forgetting: Forgetting,
    drift: Drift,
    alarm: AlarmOptions,
    slow: tuple[float, ...],
    turnover: SignTurnover,
    carrying: int,
) -> TrackerModel:
    """What a tracker is told; `carrying` is the body that carries loads."""
    idim, p = base.idim, base.count
    n, tree = idim.robot.n, idim.tree
    last = 10 * carrying + np.arange(LOAD)
    columns = [*base.kept.tolist(), *(k for k in last.tolist() if k not in base.kept)]
    combined = idim.packing(columns)
    packing = combined.tree or combined  # a kernel combines rows of a tree by each sample's G
    entry, weight, law, shape = build_friction_tables(base, packing.drive)
    size = estimate_natural_size(base, sigma)
    rubs = mark_friction_columns(base)
    fading, walking = forgetting.rule(size, rubs, 1), drift.rule(size, rubs, 1)
    rule = fading._replace(walk=walking.walk, turns=np.union1d(fading.turns, walking.turns))
    half = max(1, round(0.5 * alarm.window * rate))
    settle = max(2, int(np.ceil(alarm.settle * rate / half)))
    # chance of one test: as many are made in an hour as it has half windows
    error = min(0.5, alarm.false_alarms * half / rate / HOUR)
    drives = idim.robot.drives
    gate = np.array([
        drives.turns[i] / drives.turns[i, i] if drives.coupled(i) and slow[i] > 0.0 else np.zeros(n)
        for i in range(n)
    ])  # fmt: skip
    return TrackerModel(
        tree, packing.slot,
        np.array([entries.start for entries, _ in packing.joints]),
        np.array([entries.stop for entries, _ in packing.joints]),
        np.concatenate([place for _, place in packing.joints]),
        entry, law,
        np.array([min([*place[place < p].tolist(), p]) for _, place in combined.joints]),
        np.array([columns.index(k) for k in last.tolist()]),
        weight, idim.structure.turning, shape, gate, np.array(slow), sigma, rule, LOAD_STD,
        turnover.values, len(columns), half, settle, count_unmeasured_forces(base),
        0 if idim.structure.closure is None else n, 1.0 / rate,
        float(special.ndtri(1.0 - error)), turnover.reach,
    )  # fmt: skip
