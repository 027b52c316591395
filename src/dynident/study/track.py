"""A robot tracked along a log, a growing file or standard input, and resumed where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.files import write_files
from dynident.core.options import broadcast_to_joints, read_options
from dynident.core.state_files import KeptState, StateOrigin, pack_state_file, read_state_file
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import SAME, BaseParameters, base_parameters
from dynident.dynamics.idim import Idim
from dynident.live.channels import Channels, StreamInstant, find_channels
from dynident.live.messages import Equation, EstimateRow, Message, NoticedChange, SampleSignals
from dynident.live.outlets import Outlets, open_outlets
from dynident.live.stream import (
    MISSING,
    Sample,
    Stopped,
    StreamLines,
    TextStream,
    open_text,
    stream_recording,
)
from dynident.online.causal import CausalFilter
from dynident.online.recursive import Drift, Forgetting, RowWeights, convert_to_equation_sigma
from dynident.online.tracker import AlarmOptions, PriorKnowledge, Tracker, TrackerSettings
from dynident.readers.table import Table
from dynident.recording.floating import FloatingOptions
from dynident.recording.prepare import BANDWIDTH, TORQUE_FACTOR, prepare
from dynident.recording.read import ColumnLayout, find_column_layout
from dynident.recording.recording import Recording
from dynident.recording.repairs import LogRepair
from dynident.regression.problem import Problem
from dynident.regression.weighted import solve_wls
from dynident.report.fit import Fit
from dynident.robot.model import WRENCH_ROWS, Robot
from dynident.study.fits import choose_layout
from dynident.study.study import (
    LogSection,
    Study,
    build_study_idim,
    fill_preset,
    load_study_robot,
    read_law,
    read_torque_recording,
)

SCHEMA = "dynident.track/1"
STANDARD_INPUT = "standard input"
NO_SIGMA = "a stream has no log that determines its sigma: give --sigma, or a result to start from"


@dataclass(frozen=True)
class TrackSetting:
    """What is tracked, and how."""

    idim: Idim
    study: Study
    """Whose preparation and tracking count."""
    section: LogSection | None
    """How the log is laid out; as robots name their columns without."""
    result: Fit | None
    """That it starts from."""

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.idim.robot

    @property
    def weights(self) -> RowWeights:
        """How rows are weighed."""
        return read_options(RowWeights, self.study.track)

    @property
    def start(self) -> PriorKnowledge | None:
        """What is known before the first sample."""
        if self.result is None:
            return None
        std = self.result.estimate.covariance.std
        if not np.all(std > 0.0):
            raise InputError(
                f"{self.robot.name}: parameters that the result fixes have no errors and cannot be "
                "tracked; start from a result without any, such as wls on logs with torque"
            )
        return PriorKnowledge(self.result.estimate.beta, np.diag(std**2))

    def choose_base(self, channels: Channels) -> BaseParameters:
        """Base parameters of a stream: those of the result, where they are all that it shows."""
        own = base_parameters(self.idim, observed=(channels.observed,))
        if self.result is None:
            return own
        known = self.result.base
        if channels.observed not in known.observed:
            span = np.linalg.qr(known.matrix.T)[0]
            missed = np.linalg.norm(own.matrix - own.matrix @ span @ span.T, axis=1)
            if np.any(missed > SAME * np.linalg.norm(own.matrix, axis=1)):
                raise InputError(
                    f"{channels.name}: states equations = {channels.observed.equations!r}, whose "
                    "parameters the logs of the result do not all determine; start from a result "
                    "of such logs, or from none"
                )
        return replace(known, observed=(channels.observed,))

    def find_sigma(self, channels: Channels) -> Array | None:
        """Sigma of each equation where it is known before the log is; infinite of those without."""
        stated = channels.observed.rows(self.robot)
        found = np.full(len(stated), np.inf)
        if self.weights.sigma is not None:
            what = "equations" if self.robot.floating else "joints"
            count = int(np.sum(stated))
            found[stated] = broadcast_to_joints(self.weights.sigma, count, "sigma", what)
            return found
        if self.result is None:
            return None
        rows = np.array([group.rows for group in self.result.residuals])
        sigma = self.result.estimate.sigma
        if len(rows) != len(sigma) or len(rows) < len(stated):
            return None
        known = (rows[: len(stated)] > 0) & (sigma[: len(stated)] > 0.0)
        if not np.all(known[stated]):
            return None
        found[stated] = sigma[: len(stated)][stated]
        return found

    @cached_property
    def prepare(self) -> dict[str, Any]:
        """What is said of the preparation."""
        return self.study.prepare.model_dump(exclude_none=True)

    @property
    def measured(self) -> bool:
        """Whether derivatives are the stream's own."""
        return self.prepare.get("derivatives") == "measured"

    @property
    def instruments(self) -> bool:
        """Whether the reference of the stream gives instruments."""
        return read_options(TrackerSettings, self.study.track).instruments != "none"

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

    @property
    def open_outlets(self) -> Callable[..., AbstractContextManager[Outlets]]:
        """`dynident.live.outlets.open_outlets` under the robot's name."""
        return partial(open_outlets, self.robot.name)


def build_track_setting(
    study: Study, section: LogSection | None, result: Fit | None
) -> TrackSetting:
    """What is tracked by a study, or from a fit on."""
    if result is not None:
        return TrackSetting(result.idim, study, section, result)
    return TrackSetting(build_study_idim(study, load_study_robot(study)), study, section, None)


class LogFollower:
    """The causal filter, the tracker and what is written when.

    Parameters
    ----------
    sigma : ndarray, shape (dof,)
        Of each equation of motion.
    rate : float
        Of the stream [Hz].
    signals : bool
        Whether there is a message of every sample that the tracker takes in.
    """

    def __init__(
        self,
        setting: TrackSetting,
        channels: Channels,
        base: BaseParameters,
        sigma: Array,
        rate: float,
        signals: bool = False,
    ) -> None:
        track = setting.study.track
        options = read_options(TrackerSettings, track)
        self.rate, self.sigma, self.base, self.channels = rate, sigma, base, channels
        self._start = setting.start
        self.filter = CausalFilter(*channels.widths, setting.cutoff, rate)
        self.step = max(1, int(0.5 * rate / setting.cutoff + 1e-9))
        self.tracker = Tracker(
            base,
            sigma,
            rate / self.step,
            forgetting=read_options(Forgetting, track),
            drift=read_options(Drift, track),
            alarm=read_options(AlarmOptions, track),
            drop_below=setting.prepare.get("drop_below", 0.0),
            start=self._start,
            knowledge=Knowledge() if options.consistent else None,
            turnover=self.filter.turnover,
            link=options.link,
            instruments=setting.instruments,
        )
        self.each = max(1, round(options.every * rate / self.step))
        self.signals = signals
        self._equations = list_followed_equations(base.idim.robot, sigma)
        self._setting = setting
        self._counts = np.zeros(2, dtype=np.int64)  # samples taken, phase of the decimation
        self._last = np.zeros(1)  # time of the last sample

    @property
    def taken(self) -> int:
        """Samples of the stream so far."""
        return int(self._counts[0])

    def feed(self, sample: Sample) -> list[Message]:
        """Take in one sample of the stream; what is to be written."""
        counts = self._counts
        gap = sample.time - self._last[0] > MISSING / self.rate
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
        found: list[Message] = []
        at = sample.time - self.filter.lag
        instant = self.channels.compose(out)
        predicted = None
        if self.signals:
            predicted = self.tracker.predict(instant.q, instant.dq, instant.ddq, instant.bearing)
        event = self.tracker.update(*instant)
        if predicted is not None:
            found.append(self.signal(at, instant, predicted))
        if event is not None:
            found.append(NoticedChange(at, event))
        if self.tracker.samples % self.each == 0:
            found.append(self.row(at))
        return found

    def rest(self) -> list[EstimateRow]:
        """The estimate at the end, where the last that was written is an earlier one."""
        due = self.tracker.samples % self.each != 0
        return [self.row(float(self._last[0]) - self.filter.lag)] if due else []

    def row(self, at: float) -> EstimateRow:
        """The estimate as it is."""
        tracker = self.tracker
        theta = tracker.theta if tracker.consistent else None
        return EstimateRow(at, self.taken, tracker.beta, tracker.std, self.load, theta, self.base)

    @property
    def load(self) -> tuple[float, float] | None:
        """Mass of what is carried and its standard deviation [kg]."""
        load = self.tracker.load
        return None if load is None else (load.mass, float(load.std[0]))

    def signal(self, at: float, instant: StreamInstant, predicted: Array) -> SampleSignals:
        """What is told of a sample that was taken in, and of what had been predicted of it."""
        places, moved = [k for k, _ in self._equations], None
        measured = instant.tau.copy()
        if all(name != "tau" for name, _ in self.channels.others):
            measured[-self.base.idim.robot.n :] = np.nan
        if self._start is not None:
            std = np.sqrt(np.diag(self._start.covariance))
            change = np.abs(self.tracker.beta - self._start.beta) / std
            moved = float(change.max()), self.base.names[int(change.argmax())]
        equations = tuple(equation for _, equation in self._equations)
        return SampleSignals(
            at, equations, measured[places], predicted[places], self.load, self.tracker.surprise,
            moved,
        )  # fmt: skip

    def stored(self) -> bytes:
        """The state as a file."""
        arrays = {**self.tracker.state(), **self.filter.state()}
        arrays |= {"counts": self._counts, "last": self._last}
        about = {"rate": self.rate, "sigma": self.sigma.tolist()}
        return pack_state_file(SCHEMA, self.origin, about, arrays)

    @property
    def origin(self) -> StateOrigin:
        """All that a state has to fit."""
        base, channels = self.base, self.channels
        rates = f"{self.tracker.fingerprint} {self._setting.cutoff!r} {self.rate!r} {self.step}"
        rates += f" {channels.followed} {channels.others}"
        return StateOrigin(base.idim.robot.name, base.names, rates)

    def restore(self, state: KeptState) -> None:
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


def list_followed_equations(robot: Robot, sigma: Array) -> list[tuple[int, Equation]]:
    """Places and names of the equations of motion that have a sigma."""
    joints = (Equation(j.name, "Nm" if j.kind == "revolute" else "N") for j in robot.joints)
    base = (Equation(f"base_{part}", unit) for part, unit in WRENCH_ROWS if robot.floating)
    every = enumerate([*base, *joints])
    return [(k, equation) for k, equation in every if np.isfinite(sigma[k])]


class StateFileHead(NamedTuple):
    """What a state file tells before its arrays are needed."""

    kept: KeptState
    taken: int
    """Samples that it has seen."""
    rate: float
    """[Hz]"""
    sigma: Array
    """Shape (dof,)."""


def read_state(path: Path) -> StateFileHead | None:
    """What a state file tells; None where there is none yet."""
    kept = read_state_file(path, SCHEMA, ("rate", "sigma"), "dynident track")
    if kept is None:
        return None
    try:
        taken, _ = kept.arrays["counts"].tolist()
        rate, sigma = float(kept.about["rate"]), np.array(kept.about["sigma"], dtype=float)
        if not 0.0 < rate < np.inf or sigma.ndim != 1:
            raise kept.damaged
        return StateFileHead(kept, int(taken), rate, sigma)
    except (KeyError, TypeError, ValueError) as error:
        raise kept.damaged from error


def estimate_log_sigma(setting: TrackSetting, base: BaseParameters, recording: Recording) -> Array:
    """Sigma of each equation, of least squares on a whole log."""
    # sigma is that of single samples, also where a batch would average periods
    given = {k: v for k, v in setting.prepare.items() if k not in ("period", "warmup")}
    problem = Problem.of(base, prepare(recording, **given))
    return convert_to_equation_sigma(problem, solve_wls(problem.factors)[1])


@limit_to_one_thread
def track_log(
    setting: TrackSetting,
    write: Callable[[Message], None],
    *,
    stream: IO[bytes] | None = None,
    follow: bool = False,
    rate: float | None = None,
    state: Path | None = None,
    signals: bool = False,
    stopped: Stopped = lambda: False,
    warn: Callable[[Sequence[str]], None] = lambda words: None,
) -> LogFollower:
    """Follow the log of a setting, or a stream, from where its state says to its end.

    Parameters
    ----------
    write : callable
        Given every message when it comes: estimates, events and, with `signals`, samples.
    stream : binary file, optional
        Read instead of a log: standard input.
    follow : bool
        Wait for more at the end of the log, a file of text.
    rate : float, optional
        Of a stream without time [Hz].
    state : Path, optional
        Read, where it exists, before the first sample, and written after the last.
    signals : bool
        Whether there is a message of every sample that the tracker takes in.
    stopped : callable
        Asked between samples.
    warn : callable
        Given, before the first message, what was noticed about the robot's file and the log.
    """
    warn(setting.robot.warnings)
    earlier = None if state is None else read_state(state)
    past, rate = (0, rate) if earlier is None else (earlier.taken, earlier.rate)
    follower: LogFollower | None = None
    whole: Recording | None = None
    channels: Channels | None = None
    text: TextStream | None = None
    with ExitStack() as opened:
        if stream is not None or follow:
            if setting.weights.sigma is None and setting.result is None and earlier is None:
                raise InputError(NO_SIGMA)
            lines = open_lines(setting, stream, follow, stopped, opened)
            text = build_text_stream(setting, lines, rate)
            samples = text.samples()
        else:
            whole = read_whole_log(setting, rate)
            warn(whole.warnings)
            rate = whole.rate
            channels = find_channels(
                setting.robot, whole, setting.measured, True, setting.instruments
            )
            samples = stream_recording(whole, channels)
        if text is not None and stream is not None:  # a pipe goes on where it went on
            text.taken, past = past, 0
        if past:
            warn([f"the first {past} samples were taken before, with this state: passed over"])
        for k, sample in enumerate(samples):
            if follower is None:
                if text is not None:
                    rate, channels = text.rate, text.channels
                    warn(text.notes)
                assert channels is not None  # of the first sample
                hz = float(rate or 0.0)
                follower = begin_following(setting, channels, whole, earlier, hz, signals)
                if state is not None:  # only now: a state that is refused is not written over
                    opened.callback(
                        lambda own, at: write_files({at: own.stored()}), follower, state
                    )
            if k < past:
                continue
            for each in follower.feed(sample):
                write(each)
            if stopped():
                break
        if follower is not None and state is None:  # with a state the estimates go on
            for last in follower.rest():
                write(last)
    if follower is None:
        origin = whole if text is None else text.lines
        assert origin is not None
        raise InputError(f"{origin.name}: has no samples")
    return follower


def open_lines(
    setting: TrackSetting,
    stream: IO[bytes] | None,
    follow: bool,
    stopped: Stopped,
    opened: ExitStack,
) -> StreamLines:
    """Lines of a stream, or of a file that is opened."""
    refuse_repairs(setting.section)
    if stream is not None:
        return StreamLines(stream, STANDARD_INPUT, follow, stopped)
    files = () if setting.section is None else setting.section.files
    name = ",".join(files)
    return StreamLines(opened.enter_context(open_text(name)), name, follow, stopped)


def build_text_stream(setting: TrackSetting, lines: StreamLines, rate: float | None) -> TextStream:
    """Samples of lines, laid out as the study has them."""
    section = setting.section
    floating = FloatingOptions() if section is None else read_options(FloatingOptions, section)
    rate = section.rate if rate is None and section is not None else rate
    finder = make_layout_finder(setting.robot, section, floating)
    return TextStream(
        lines, setting.robot, finder, rate, floating, setting.measured, setting.instruments
    )


def begin_following(
    setting: TrackSetting,
    channels: Channels,
    whole: Recording | None,
    earlier: StateFileHead | None,
    rate: float,
    signals: bool = False,
) -> LogFollower:
    """What follows a stream whose channels are known, at its first sample."""
    base, sigma = setting.choose_base(channels), setting.find_sigma(channels)
    if sigma is None and earlier is not None:
        sigma = earlier.sigma
    if sigma is None and whole is not None:
        sigma = estimate_log_sigma(setting, base, whole)
    if sigma is None:
        raise InputError(NO_SIGMA)
    follower = LogFollower(setting, channels, base, sigma, rate, signals)
    if earlier is not None:
        follower.restore(earlier.kept)
    return follower


def read_whole_log(setting: TrackSetting, rate: float | None) -> Recording:
    """The log of a setting, read as a whole."""
    section = setting.section
    if section is None:
        raise InputError("no log is given")
    if rate is not None and section.rate is None:
        section = section.model_copy(update={"rate": rate})
    section = fill_preset(section, setting.robot)
    return read_torque_recording(setting.study, section, setting.robot)


def make_layout_finder(
    robot: Robot, section: LogSection | None, floating: FloatingOptions
) -> Callable[[Table], ColumnLayout]:
    """Where the columns of a stream are: as a log's table says, or by their default names."""
    if section is None:
        return partial(find_column_layout, robot=robot)
    floating = replace(floating, locked=None)  # a stream has the columns of all joints

    def find(table: Table) -> ColumnLayout:
        own = fill_preset(section, robot, table.titles)
        own = choose_layout([own], table.titles, str(table.path))
        return find_column_layout(table, robot, own.columns, own.units, own.side, floating)

    return find


def refuse_repairs(section: LogSection | None) -> None:
    """Refuse to take a stream as a log that has to be repaired, or of which a part counts."""
    if section is None:
        return
    cuts = section.model_dump().get("bad_rows") == "cut"
    if read_options(LogRepair, section) != LogRepair() or section.rows is not None or cuts:
        raise InputError(
            "[[log]]: a stream is taken as it comes; leave rows, bad_rows, order, sign, ... out"
        )
    if read_law(section).law_kp is not None:
        raise InputError(
            "[[log]]: law_kp computes torques of whole logs; for a stream name them in columns.tau"
        )
