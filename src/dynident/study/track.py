"""A robot tracked along a log, a growing file or standard input, and resumed where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.files import write_files
from dynident.core.kept import Kept, Origin, pack_state_file, read_state_file
from dynident.core.options import broadcast_to_joints, read_options
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.filters.causal import CausalFilter
from dynident.online.recursive import Drift, Forgetting, Weights
from dynident.online.tracker import Alarm, Event, Known, Tracker, Tracking
from dynident.recording.mend import Mending
from dynident.recording.prepare import BANDWIDTH, TORQUE_FACTOR, prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.weighted import solve_wls
from dynident.report.fit import Fit
from dynident.robot.model import Robot
from dynident.study.fits import relocate_log_section
from dynident.study.stream import Lines, Sample, Stopped, TextStream, open_text, stream_recording
from dynident.study.study import (
    LogSection,
    Study,
    build_study_idim,
    load_study_robot,
    read_study_recording,
)

SCHEMA = "dynident.track/1"
STANDARD_INPUT = "standard input"
GAP = 1.5
"""Periods between two stamps from which samples are missing."""


class Row(NamedTuple):
    """An estimate at one time.

    Attributes
    ----------
    time : float
        Of the motion that it follows, a filter's lag before the last sample [s].
    samples : int
        Taken in so far.
    beta, std : ndarray, shape (base parameters,)
    load : (float, float), or None
        Mass of a load and its standard deviation, where one is carried [kg].
    theta : ndarray or None
        Consistent standard parameters, where they are followed.
    """

    time: float
    samples: int
    beta: Array
    std: Array
    load: tuple[float, float] | None
    theta: Array | None


class Noticed(NamedTuple):
    """A change of the load.

    Attributes
    ----------
    time : float
        [s]
    """

    time: float
    event: Event


@dataclass(frozen=True)
class Setting:
    """What is tracked, and how.

    Attributes
    ----------
    study : Study
        Whose preparation and tracking count.
    section : LogSection or None
        How the log is laid out; as robots name their columns without.
    sigma : ndarray or None
        Where it is known before the log is.
    """

    base: BaseParameters
    study: Study
    section: LogSection | None
    sigma: Array | None
    start: Known | None

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.idim.robot

    @cached_property
    def prepare(self) -> dict[str, Any]:
        """What is said of the preparation."""
        return self.study.prepare.model_dump(exclude_none=True)

    @property
    def measured(self) -> bool:
        """Whether derivatives are the stream's own."""
        return self.prepare.get("derivatives") == "measured"

    @property
    def cutoff(self) -> float:
        """Of the causal filter [Hz]."""
        given = getattr(self.study.track, "cutoff", None)
        if given is not None:
            return float(given)
        torque = self.prepare.get("torque_hz")
        if torque is not None:
            return float(np.max(torque))
        return TORQUE_FACTOR * float(np.max(self.prepare.get("bandwidth", BANDWIDTH)))


def build_track_setting(study: Study, section: LogSection | None, result: Fit | None) -> Setting:
    """What is tracked by a study, or from a fit on."""
    if result is None:
        idim = build_study_idim(study, load_study_robot(study))
        base, start, sigma = base_parameters(idim), None, None
    else:
        base = result.base
        std = result.estimate.covariance.std
        if not np.all(std > 0.0):
            raise InputError(f"{result.robot.name}: parameters without error cannot be followed")
        start, sigma = Known(result.estimate.beta, np.diag(std**2)), result.estimate.sigma
        if len(sigma) != result.robot.n or np.min(sigma) <= 0.0:
            sigma = None
    weights = read_options(Weights, study.track)
    if weights.sigma is not None:
        sigma = np.array(broadcast_to_joints(weights.sigma, base.idim.robot.n, "sigma"))
    return Setting(base, study, section, sigma, start)


class Follower:
    """The causal filter, the tracker and what is written when.

    Parameters
    ----------
    sigma : ndarray, shape (n,)
    rate : float
        Of the stream [Hz].
    """

    def __init__(self, setting: Setting, sigma: Array, rate: float) -> None:
        track = setting.study.track
        options = read_options(Tracking, track)
        n = setting.robot.n
        self.rate, self.sigma = rate, sigma
        self.filter = CausalFilter(n, setting.cutoff, rate, setting.measured)
        self.step = max(1, int(0.5 * rate / setting.cutoff + 1e-9))
        self.tracker = Tracker(
            setting.base,
            sigma,
            rate / self.step,
            forgetting=read_options(Forgetting, track),
            drift=read_options(Drift, track),
            alarm=read_options(Alarm, track),
            drop_below=setting.prepare.get("drop_below", 0.0),
            start=setting.start,
            knowledge=Knowledge() if options.consistent else None,
            turnover=self.filter.turnover,
        )
        self.each = max(1, round(options.every * rate / self.step))
        self._setting = setting
        self._counts = np.zeros(2, dtype=np.int64)  # samples taken, phase of the decimation
        self._last = np.zeros(1)  # time of the last sample

    @property
    def taken(self) -> int:
        """Samples of the stream so far."""
        return int(self._counts[0])

    def feed(self, sample: Sample) -> list[Row | Noticed]:
        """Take in one sample of the stream; what is to be written."""
        counts = self._counts
        gap = sample.time - self._last[0] > GAP / self.rate
        if counts[0] and (sample.fresh or gap):
            self.filter.restart()
        self._last[0] = sample.time
        out = self.filter.push(sample.values)
        counts[0] += 1
        if out is None:
            return []
        counts[1] = (counts[1] + 1) % self.step
        if counts[1]:
            return []
        n = len(self.sigma)
        found: list[Row | Noticed] = []
        at = sample.time - self.filter.lag
        event = self.tracker.update(out[:n], out[n : 2 * n], out[2 * n : 3 * n], out[3 * n :])
        if event is not None:
            found.append(Noticed(at, event))
        if self.tracker.samples % self.each == 0:
            found.append(self.row(at))
        return found

    def rest(self) -> list[Row]:
        """The estimate at the end, where the last that was written is an earlier one."""
        due = self.tracker.samples % self.each != 0
        return [self.row(float(self._last[0]) - self.filter.lag)] if due else []

    def row(self, at: float) -> Row:
        """The estimate as it is."""
        tracker = self.tracker
        load = tracker.load
        return Row(
            at,
            self.taken,
            tracker.beta,
            tracker.std,
            None if load is None else (load.mass, float(load.std[0])),
            tracker.theta if tracker.consistent else None,
        )

    def stored(self) -> bytes:
        """The state as a file."""
        arrays = {**self.tracker.state(), **self.filter.state()}
        arrays |= {"counts": self._counts, "last": self._last}
        about = {"rate": self.rate, "sigma": self.sigma.tolist()}
        return pack_state_file(SCHEMA, self.origin, about, arrays)

    @property
    def origin(self) -> Origin:
        """All that a state has to fit."""
        base = self._setting.base
        rates = f"{self.tracker.fingerprint} {self._setting.cutoff!r} {self.rate!r} {self.step}"
        return Origin(base.idim.robot.name, base.names, rates)

    def restore(self, state: Kept) -> None:
        """Go on from a stored state."""
        state.require(self.origin, "sigma, rate, cutoff, ageing or prior")
        arrays = dict(state.arrays)
        try:
            self._counts[:] = arrays.pop("counts")
            self._last[:] = arrays.pop("last")
            own = self.filter.state()
            self.filter.restore({name: arrays.pop(name) for name in own})
            self.tracker.restore(arrays)
        except (KeyError, ValueError, InputError) as error:
            raise state.damaged from error


class Earlier(NamedTuple):
    """What a state file tells before its arrays are needed.

    Attributes
    ----------
    taken : int
        Samples that it has seen.
    rate : float
        [Hz]
    sigma : ndarray, shape (n,)
    """

    kept: Kept
    taken: int
    rate: float
    sigma: Array


def read_state(path: Path) -> Earlier | None:
    """What a state file tells; None where there is none yet."""
    kept = read_state_file(path, SCHEMA, ("rate", "sigma"), "dynident track")
    if kept is None:
        return None
    try:
        taken, _ = kept.arrays["counts"].tolist()
        rate, sigma = float(kept.about["rate"]), np.array(kept.about["sigma"], dtype=float)
        if not 0.0 < rate < np.inf or sigma.ndim != 1:
            raise kept.damaged
        return Earlier(kept, int(taken), rate, sigma)
    except (KeyError, TypeError, ValueError) as error:
        raise kept.damaged from error


def estimate_log_sigma(setting: Setting, recording: Recording) -> Array:
    """Sigma of each joint, of least squares on a whole log."""
    # sigma is that of single samples, also where a batch would average periods
    given = {k: v for k, v in setting.prepare.items() if k not in ("period", "warmup")}
    samples = prepare(recording, **given)
    return solve_wls(Problem.of(setting.base, samples).factors)[1]


@limit_to_one_thread
def track_log(
    setting: Setting,
    source: str | None,
    write: Callable[[Row | Noticed], None],
    *,
    stream: IO[bytes] | None = None,
    follow: bool = False,
    rate: float | None = None,
    state: Path | None = None,
    stopped: Stopped = lambda: False,
) -> Follower:
    """Follow a log or a stream from where its state says to its end.

    Parameters
    ----------
    source : str or None
        A log's files, separated by commas; None for the study's own log.
    write : callable
        Given every estimate and event when it comes.
    stream : binary file, optional
        Read instead of a log: standard input.
    follow : bool
        Wait for more at the end of the log, a file of text.
    rate : float, optional
        Of a stream without time [Hz].
    state : Path, optional
        Read, where it exists, before the first sample, and written after the last.
    stopped : callable
        Asked between samples.
    """
    earlier = None if state is None else read_state(state)
    past = 0 if earlier is None else earlier.taken
    follower: Follower | None = None
    section = setting.section
    if earlier is not None:
        rate = earlier.rate
    sigma = setting.sigma
    if sigma is None and earlier is not None:
        sigma = earlier.sigma
    opened: IO[bytes] | None = None
    text: TextStream | None = None
    try:
        if stream is not None or follow:
            if sigma is None:
                raise InputError(
                    "a stream has no log that tells its sigma: give --sigma, or a result to start "
                    "from"
                )
            refuse_mending(section)
            name = STANDARD_INPUT
            if stream is None:
                name = source or ",".join(section.files if section is not None else ())
                stream = opened = open_text(name)
            if rate is None and section is not None:
                rate = section.rate
            text = TextStream(Lines(stream, name, follow, stopped), setting.robot, section, rate)
            samples = text.samples()
        else:
            whole = read_whole_log(setting, source, rate)
            rate = whole.rate
            if sigma is None:
                sigma = estimate_log_sigma(setting, whole)
            samples = stream_recording(whole, setting.measured)
        # what a state has taken from a file is passed over; a pipe goes on where it went on
        if text is not None and opened is None:
            text.taken, past = past, 0
        for k, sample in enumerate(samples):
            if follower is None:
                fresh = Follower(setting, sigma, float((text.rate if text else rate) or 0.0))
                if earlier is not None:
                    fresh.restore(earlier.kept)
                follower = fresh  # only now: a state that is refused is not written over
            if k < past:
                continue
            for each in follower.feed(sample):
                write(each)
            if stopped():
                break
        if follower is not None and state is None:  # with a state the estimates go on
            for last in follower.rest():
                write(last)
    finally:
        if opened is not None:
            opened.close()
        if follower is not None and state is not None:
            write_files({state: follower.stored()})
    if follower is None:
        raise InputError(f"{text.lines.name if text else source}: has no samples")
    return follower


def read_whole_log(setting: Setting, source: str | None, rate: float | None) -> Recording:
    """A log read as a whole, laid out as the study has it."""
    section = setting.section
    if source is not None:
        files = tuple(source.split(","))
        section = (
            LogSection(files=files) if section is None else relocate_log_section(section, files)
        )
    if section is None:
        raise InputError("no log is given")
    if rate is not None and section.rate is None:
        section = section.model_copy(update={"rate": rate})
    return read_study_recording(section, setting.robot)


def refuse_mending(section: LogSection | None) -> None:
    """Refuse to take a stream as a log that has to be repaired, or of which a part counts."""
    if section is None:
        return
    if read_options(Mending, section) != Mending() or section.rows is not None:
        raise InputError(
            "[[log]]: a stream is taken as it comes; leave rows, order, sign, offset and delay out"
        )
