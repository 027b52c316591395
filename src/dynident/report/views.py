"""Plots of a fit, one call each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dynident.core.errors import InputError, refuse_unknown
from dynident.core.series import TorqueSeries
from dynident.fit.parameters import find_correlations
from dynident.fit.result import Result
from dynident.plots.charts import Mark, Panel
from dynident.plots.coverage import build_spectrum
from dynident.plots.curves import build_position_panels, build_torque_panels, list_measured
from dynident.plots.friction import (
    LOADS,
    count_speeds,
    label_speed,
    scatter_friction,
    trace_friction,
)
from dynident.plots.panels import Panels, draw_panel, open_panels, title_panel
from dynident.plots.parameters import build_correlation
from dynident.plots.residuals import build_diagnostics
from dynident.regression.rows import RowGroup, list_position_groups, list_torque_groups
from dynident.report.charts import show_coverage, show_parameters

if TYPE_CHECKING:
    from dynident.plots.panels import Given

Log = int | str
"""A log's place among the fitted ones and then those held out, or its name."""
Channel = tuple[int, RowGroup]
"""A column of a series, and whose it is."""
VIEWS = ("measured against predicted", "residual by speed", "quantiles", "autocorrelation")
WIDE, NARROW = 7.0, 5.5
"""Of figures of parameters [inch]."""
ROW = 0.2
"""Height of a parameter among others [inch]."""


@dataclass(frozen=True)
class Plots:
    """Plots of a fit: ``fit.plot.torque()``.

    Each is drawn in the axes that are given (`axes`: one, or as many as it needs, in any
    arrangement), which are left in their own style, or in those of a new figure, of no state of
    pyplot. It returns the axes: a tuple, whose figure a notebook shows and
    ``panels.figure.savefig(path)`` saves. Logs are read again where the fit was read from a file.

    Attributes
    ----------
    fit : Fit
    """

    fit: Result

    def __repr__(self) -> str:
        """One line, for a prompt."""
        calls = (name for name in vars(type(self)) if not name.startswith("_") and name != "fit")
        return f"<Plots: {', '.join(f'{name}()' for name in calls)}>"

    def torque(
        self, axes: Given = None, *, joints: Sequence[str] | None = None, log: Log = 0
    ) -> Panels:
        """Draw measured and predicted torque over time, and that of the robot file's inertials.

        Parameters
        ----------
        axes : Axes or sequence of Axes, optional
            One a joint.
        joints : sequence of str, optional
            All of which the log has torques by default; of a floating robot also the components
            of its base's wrench, ``base fx``.
        log : int or str
            Its place among the fitted ones and then those held out, or its name.

        Returns
        -------
        tuple of Axes
            One a joint: time [s], torque [Nm or N], low-passed as the all-samples errors are.

        Raises
        ------
        InputError
            For joints and logs that are not there, logs that cannot be read again, axes of another
            number, and fits of positions.
        """
        return self._draw_torques(axes, joints, log, 0)

    def residuals(
        self, axes: Given = None, *, joints: Sequence[str] | None = None, log: Log = 0
    ) -> Panels:
        """Draw measured less predicted torque over time.

        Parameters
        ----------
        axes, joints, log
            As of `torque`.

        Returns
        -------
        tuple of Axes
            One a joint: time [s], residual [Nm or N]; none at filters' edges, as no error counts
            them.

        Raises
        ------
        InputError
            As of `torque`.
        """
        return self._draw_torques(axes, joints, log, 2)

    def friction(self, axes: Given = None, *, joints: Sequence[str] | None = None) -> Panels:
        """Draw what the rigid bodies leave of the torque against speed, and the friction model.

        Dots are measured: blue where the load drives the motor, orange where the motor drives the
        load, grey where the load is less than in half of the samples. The line is the model's, a
        mean over samples of like speed on either side of standstill; where joints share a drive,
        friction depends on the speed of both. The strip on the axis stands out more where
        more samples have that speed.

        Parameters
        ----------
        axes : Axes or sequence of Axes, optional
            One a joint.
        joints : sequence of str, optional
            All by default.

        Returns
        -------
        tuple of Axes
            One a joint: speed [rad/s or m/s], friction [Nm or N], of all fitted logs.

        Raises
        ------
        InputError
            As of `torque`.
        """
        series = [each.evenly for each in self._list_series()[: len(self.fit.samples)]]
        first, last = self.fit.robot.dof - self.fit.robot.n, self.fit.robot.dof
        every = [each for each in self._list_channels(series[0], None) if first <= each[0] < last]
        channels = select_channels(every, joints)
        names = [group.name for _, group in channels]
        with open_panels(axes, names, columns=min(3, len(names)), height=2.0) as panels:
            for k, (panel, (column, group)) in enumerate(zip(panels, channels, strict=True)):
                words = LOADS if k == 0 else ("", "", "")
                marks: tuple[Mark, ...] = (
                    count_speeds(series, column),
                    *scatter_friction(series, column, words),
                    *trace_friction({"" if k else "model": series}, column),
                )
                speed, unit = label_speed(group), f"friction [{group.unit}]"
                draw_panel(panel, Panel(marks, group.name, speed, unit))
            panels[0].legend(loc="upper left", markerscale=3.0, handlelength=1.0)
        return panels

    def excitation(
        self, axes: Given = None, *, joints: Sequence[str] | None = None, log: Log | None = None
    ) -> Panels:
        """Draw each joint's speed against its position, and the robot file's limits.

        Parameters
        ----------
        axes : Axes or sequence of Axes, optional
            One a joint.
        joints : sequence of str, optional
            All by default.
        log : int or str, optional
            Its place among the fitted ones and then those held out, or its name; all that are
            fitted by default.

        Returns
        -------
        tuple of Axes
            One a joint: position [rad or m], speed [rad/s or m/s]; blue where rows are fitted, grey
            where they are not: at standstill, at edges of filters, or left out.

        Raises
        ------
        InputError
            For joints and logs that are not there, logs that cannot be read again, and axes of
            another number.
        """
        logs = self.fit.samples
        if log is not None:
            every = (*logs, *self.fit.held_out)
            logs = (every[find_log([each.name for each in every], log)],)
        shown = {panel.title: panel for panel in show_coverage(self.fit, logs)}
        asked = list(shown) if joints is None else select_names(list(shown), joints)
        return draw_all(axes, [shown[name] for name in asked])

    def spectrum(
        self, axes: Given = None, *, joints: Sequence[str] | None = None, log: Log = 0
    ) -> Panels:
        """Draw at which frequencies the measured torque and the residual are.

        Parameters
        ----------
        axes, joints, log
            As of `torque`.

        Returns
        -------
        tuple of Axes
            One a joint: frequency [Hz], amplitude density [Nm or N by the root of Hz] by Welch's
            method, of the longest run without a gap.

        Raises
        ------
        InputError
            As of `torque`.
        """
        series = self._find_series(log)
        channels = self._list_channels(series, joints)
        return draw_all(axes, [build_spectrum(series, *each) for each in channels])

    def positions(
        self, axes: Given = None, *, joints: Sequence[str] | None = None, log: Log = 0
    ) -> Panels:
        """Draw measured positions over time, and those of a free simulation.

        Parameters
        ----------
        axes, joints, log
            As of `torque`.

        Returns
        -------
        tuple of Axes
            One a joint: time [s], position [rad or m].

        Raises
        ------
        InputError
            When the fit is one of torques, or as of `torque`.
        """
        found = self.fit.simulate_positions()
        if not found:
            raise InputError(
                f"{self.fit.method} was fitted to torques, not to positions: plot.torque() "
                "draws these"
            )
        series = found[find_log([each.name for each in found], log)]
        groups = list_position_groups(self.fit.robot)[-self.fit.robot.n :]
        channels = select_channels(list(enumerate(groups)), joints)
        own = [build_position_panels(series, *each)[0] for each in channels]
        return draw_over_time(axes, channels, own)

    def parameters(self, axes: Given = None) -> Panels:
        """Draw the base parameters with their 95 % intervals, beside the robot file's values.

        Each is drawn relative to the largest number of its row; the labels have the values with
        their standard deviations and units. Eliminated parameters are left out.

        Parameters
        ----------
        axes : Axes, optional

        Returns
        -------
        tuple of Axes
            One.

        Raises
        ------
        InputError
            When more than one axes are given.
        """
        panel = show_parameters(self.fit)
        height = ROW * len(panel.y_names) + 0.4
        with open_panels(axes, ("parameters",), height=height, width=WIDE) as panels:
            draw_panel(panels[0], panel)
            panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
        return panels

    def correlation(self, axes: Given = None) -> Panels:
        """Draw the correlation of the base parameters' estimates.

        Parameters
        ----------
        axes : Axes, optional

        Returns
        -------
        tuple of Axes
            One; grey of parameters without an error bar. Eliminated ones are left out.

        Raises
        ------
        InputError
            When more than one axes are given.
        """
        names, known = find_correlations(self.fit)
        size = max(NARROW, ROW * len(names) + 1.5)
        with open_panels(axes, ("correlation",), height=size, width=size + 1.0) as panels:
            draw_panel(panels[0], build_correlation(known, names))
            (image,) = panels[0].images
            bar = panels.figure.colorbar(image, ax=panels[0], shrink=0.7, label="correlation")
            bar.outline.set_visible(False)
        return panels

    def diagnostics(
        self, axes: Given = None, *, joints: Sequence[str] | None = None, log: Log = 0
    ) -> Panels:
        """Draw four views of what is left of each joint's torque.

        Measured against predicted torque; the residual against speed; its quantiles against those
        of the normal law; and the autocorrelation of the rows that were fitted, with the band in
        which it would be without any.

        Parameters
        ----------
        axes : sequence of Axes, optional
            Four a joint.
        joints, log
            As of `torque`.

        Returns
        -------
        tuple of Axes
            Four a joint, joint by joint.

        Raises
        ------
        InputError
            As of `torque`.
        """
        series = self._find_series(log)
        channels = self._list_channels(series, joints)
        residuals = {each.name: each for each in self.fit.residuals}
        names = [f"{group.name} {view}" for _, group in channels for view in VIEWS]
        with open_panels(axes, names, columns=len(VIEWS), height=1.9) as panels:
            for k, (column, group) in enumerate(channels):
                own = panels[len(VIEWS) * k : len(VIEWS) * (k + 1)]
                known = residuals.get(group.name)
                views = build_diagnostics(series.evenly, column, group, known)
                for place, view in zip(own, views, strict=True):
                    draw_panel(place, view)
                title_panel(own[0], group.name)
        return panels

    def _draw_torques(
        self, axes: Given, joints: Sequence[str] | None, log: Log, which: int
    ) -> Panels:
        """Draw one of the panels of `build_torque_panels`."""
        series = self._find_series(log)
        channels = self._list_channels(series, joints)
        own = [build_torque_panels(series, *each)[which] for each in channels]
        return draw_over_time(axes, channels, own)

    def _list_series(self) -> tuple[TorqueSeries, ...]:
        """Torques of all logs."""
        if self.fit.encoder_only:
            raise InputError("no torque was measured: plot.positions() draws what was fitted")
        return self.fit.series()

    def _find_series(self, log: Log) -> TorqueSeries:
        """Torques of one log."""
        found = self._list_series()
        return found[find_log([each.name for each in found], log)]

    def _list_channels(self, series: TorqueSeries, joints: Sequence[str] | None) -> list[Channel]:
        """Columns of which a log has torques, or some of them by name."""
        known = list_measured(list_torque_groups(self.fit.robot), series)
        return select_channels(known, joints)


def draw_over_time(axes: Given, channels: Sequence[Channel], shown: Sequence[Panel]) -> Panels:
    """Draw panels over the same time, one a channel."""
    titled = [
        replace(panel, title=group.name) for panel, (_, group) in zip(shown, channels, strict=True)
    ]
    return draw_all(axes, titled, 1 if len(titled) <= 3 else 2, 1.7, True)


def draw_all(
    axes: Given, shown: Sequence[Panel], columns: int = 3, height: float = 2.0, share: bool = False
) -> Panels:
    """Draw panels, each in axes of its own."""
    names = [panel.title for panel in shown]
    with open_panels(axes, names, min(columns, len(names)), height, share_x=share) as panels:
        for place, panel in zip(panels, shown, strict=True):
            draw_panel(place, panel)
    return panels


def find_log(names: Sequence[str], log: Log) -> int:
    """The place of a log."""
    if isinstance(log, str):
        refuse_unknown(log, names, f"log {log!r} is none of the fit's")
        return names.index(log)
    if not -len(names) <= log < len(names):
        raise InputError(f"log {log} is not there; the fit has {len(names)}: {', '.join(names)}")
    return int(log)


def select_channels(channels: Sequence[Channel], joints: Sequence[str] | None) -> list[Channel]:
    """Some of the channels by name, in the order asked for; all by default."""
    if joints is None:
        return list(channels)
    known = {group.name: (k, group) for k, group in channels}
    return [known[joint] for joint in select_names(list(known), joints)]


def select_names(known: Sequence[str], joints: Sequence[str]) -> list[str]:
    """Names that are asked for, all of them known."""
    asked = [joints] if isinstance(joints, str) else list(joints)
    for joint in asked:
        refuse_unknown(joint, known, f"joint {joint!r} has nothing to draw")
    return asked
