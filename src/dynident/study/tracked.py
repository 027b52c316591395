"""A fit followed along a log, in Python: what ``dynident track LOG --start result.json`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError, check_type
from dynident.core.schema import validate_data
from dynident.core.text import format_count
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import BaseParameters
from dynident.live.channels import find_channels
from dynident.live.messages import EstimateRow, Message, NoticedChange, tell_event
from dynident.live.stream import stream_recording
from dynident.online.keywords import TrackOptions
from dynident.recording.read import Files, take_log
from dynident.recording.recording import Recording
from dynident.report.fit import Fit
from dynident.report.pages import render_track_page
from dynident.report.tables import build_frame
from dynident.study.fits import find_study
from dynident.study.study import PrepareSection, RobotSection, Study, TrackSection
from dynident.study.track import TrackSetting, begin_following, build_track_setting

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class FollowedParameters:
    """A fit's parameters along a log.

    Attributes
    ----------
    name : str
        Of the log.
    base : BaseParameters
        What beta are.
    rows : tuple of EstimateRow
        Estimates, every so often.
    events : tuple of NoticedChange
        When another load was noticed, and when that of the fit again.
    time : ndarray, shape (instants,)
        Of the estimates [s].
    beta, std : ndarray, shape (instants, base parameters)
        Base parameters and their standard deviations.
    load : ndarray, shape (instants, 2)
        Mass of a load and its standard deviation [kg]; NaN where none is carried.
    theta : ndarray, shape (instants, parameters), or None
        Consistent standard parameters, where they are followed.
    """

    name: str
    base: BaseParameters
    rows: tuple[EstimateRow, ...]
    events: tuple[NoticedChange, ...]

    @cached_property
    def time(self) -> Array:
        """Of the estimates, shape (instants,) [s]."""
        return np.array([row.time for row in self.rows])

    @cached_property
    def beta(self) -> Array:
        """Base parameters, shape (instants, base parameters)."""
        return np.array([row.beta for row in self.rows]).reshape(len(self.rows), -1)

    @cached_property
    def std(self) -> Array:
        """Their standard deviations, shape (instants, base parameters)."""
        return np.array([row.std for row in self.rows]).reshape(len(self.rows), -1)

    @cached_property
    def load(self) -> Array:
        """Mass of a load and its standard deviation, shape (instants, 2) [kg]; NaN of none."""
        nothing = (np.nan, np.nan)
        return np.array([row.load or nothing for row in self.rows]).reshape(-1, 2)

    @cached_property
    def theta(self) -> Array | None:
        """Consistent standard parameters, shape (instants, parameters), where followed."""
        found = [row.theta for row in self.rows if row.theta is not None]
        return np.array(found) if found else None

    def to_frame(self) -> DataFrame:
        """Base parameters, their standard deviations and the load over time, as pandas has it.

        Raises
        ------
        InputError
            When pandas is not installed.
        """
        names = self.base.names
        columns = {
            **dict(zip(names, self.beta.T, strict=True)),
            **{f"std_{name}": own for name, own in zip(names, self.std.T, strict=True)},
            "load": self.load[:, 0],
            "std_load": self.load[:, 1],
        }
        return build_frame(columns, self.time.tolist(), "time")

    def __repr__(self) -> str:
        """One line, for a prompt."""
        return (
            f"<Followed along {self.name}: {format_count(len(self.base.names), 'parameter')} at "
            f"{format_count(len(self.rows), 'instant')}, {format_count(len(self.events), 'event')}>"
        )


def find_followed_study(fit: Fit) -> Study:
    """The study whose settings count for a log that follows a fit; of one without, its own."""
    study = find_study(fit)
    if study is not None:
        return study
    given = {k: v for k, v in asdict(fit.preparation).items() if v is not None}
    prepare = validate_data(PrepareSection, given, "preparation")
    return Study(robot=RobotSection(file=fit.robot.name), prepare=prepare)


def build_fit_setting(fit: Fit, **options: Any) -> TrackSetting:
    """How a fit is followed: by its study, with keys of ``[track]`` in place of the study's own."""
    study = find_followed_study(fit)
    told = study.track.model_dump(exclude_none=True)
    section = validate_data(TrackSection, {**told, **options}, "track")
    return build_track_setting(study.model_copy(update={"track": section}), None, fit)


@limit_to_one_thread
def track(fit: Fit, log: Recording | Files, **options: Unpack[TrackOptions]) -> FollowedParameters:
    """Track a fit's base parameters, and the load, along a log.

    Parameters
    ----------
    fit : Fit
        Knowledge before the first sample, with its robot and preparation.
    log : Recording, path, DataFrame, or sequence of paths or frames
        Files and data frames as `read_log` knows them by the names of their columns.
    **options
        Keys of ``[track]``: every, cutoff, forgetting, drift, alarm, consistent, link, ...

    Returns
    -------
    FollowedParameters
        Estimates lag behind the samples by a causal filter, as they do on a robot.

    Raises
    ------
    InputError
        For options that are not known, logs of other joints or without torque, and fits without
        error bars.

    Examples
    --------
    >>> followed = di.track(fit, "run2.csv", every=2.0)
    >>> list(followed.to_frame())[:2]
    [...]
    """
    check_type("track", fit, Fit, "dynident.identify and read_result give one")
    log = take_log(log, fit.robot)
    setting = build_fit_setting(fit, **options)
    channels = find_channels(fit.robot, log, setting.measured, True, setting.instruments)
    follower = begin_following(setting, channels, log, None, log.rate)
    found = [each for s in stream_recording(log, channels) for each in follower.feed(s)]
    found += follower.rest()
    if not follower.taken:
        raise InputError(f"{log.name}: has no samples")
    rows = tuple(each for each in found if isinstance(each, EstimateRow))
    events = tuple(each for each in found if isinstance(each, NoticedChange))
    return FollowedParameters(log.name, follower.base, rows, events)


def render_messages(log: str, messages: Sequence[Message]) -> str:
    """Estimates over time as a page, and what was noticed."""
    rows = tuple(each for each in messages if isinstance(each, EstimateRow))
    if not rows:
        raise ComputationError(f"{log}: there is no estimate to draw")
    noticed = [each for each in messages if isinstance(each, NoticedChange)]
    found = FollowedParameters(log, rows[0].base, rows, tuple(noticed))
    events = [(each.time, tell_event(each)) for each in noticed]
    return render_track_page(found.base, log, found.time, found.beta, found.std, found.load, events)
