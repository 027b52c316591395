"""Messages as a recording that rerun shows, which appears whole when they end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dynident.core.errors import InputError, name_missing_package
from dynident.live.messages import (
    ROOT,
    Message,
    NoticedChange,
    SampleSignals,
    split_into_topics,
    tell_event,
)

if TYPE_CHECKING:
    from rerun import RecordingStream

CLOCK = "time"
"""The timeline: that of the log [s]."""
PART = ".part"
"""Before the end of the file's name until it is whole."""


class RerunFile:
    """Numbers of messages as scalars by topic and name, events as text.

    It is begun with the first message; `close` puts it in its place. Nothing is sent anywhere and
    no viewer is started: the stream of rerun has a file, and no one else's.

    Raises
    ------
    InputError
        When the package `rerun-sdk` is not installed.
    """

    def __init__(self, path: Path) -> None:
        with name_missing_package(
            f"{path}: needs the package rerun-sdk: pip install 'dynident[rerun]'"
        ):
            import rerun
            import rerun.blueprint
        self.path = path
        self._part = path.with_suffix(PART + path.suffix)
        self._rerun: ModuleType = rerun
        self._stream: RecordingStream | None = None
        self._laid_out = False

    def write(self, message: Message) -> None:
        """Put a message at the end.

        Raises
        ------
        InputError
            When the file cannot be made, or the environment switches rerun off.
        """
        rerun = self._rerun
        if self._stream is None:
            stream = rerun.RecordingStream("dynident")
            if not rerun.is_enabled(stream):
                raise InputError(f"{self.path}: RERUN in the environment switches rerun off")
            try:
                stream.save(self._part)
            except RuntimeError as error:
                raise InputError(f"{self.path}: cannot be written ({error})") from error
            self._stream = stream
        stream = self._stream
        stream.set_time(CLOCK, duration=message.time)
        for topic, plain in split_into_topics(message):
            if isinstance(message, NoticedChange):
                stream.log(topic, rerun.TextLog(tell_event(message), level="WARN"), strict=True)
                continue
            for names, value in list_numbers(plain):
                stream.log([*topic.split("/")[1:], *names], rerun.Scalars(value), strict=True)
        if isinstance(message, SampleSignals) and not self._laid_out:
            stream.send_blueprint(self._lay_out(message))
            self._laid_out = True

    def _lay_out(self, signals: SampleSignals) -> Any:
        """A plot for each equation, measured and predicted, with load, drift and events."""
        new_path, views = self._rerun.new_entity_path, self._rerun.blueprint
        torques = [
            views.TimeSeriesView(
                name=f"{name} [{unit}]",
                contents=[
                    f"+ {new_path([*ROOT.split('/')[1:-1], 'torque', kind, name])}"
                    for kind in ("measured", "predicted")
                ],
            )
            for name, unit in signals.equations
        ]
        others = [
            views.TimeSeriesView(name=topic, origin=f"{ROOT}{topic}") for topic in ("load", "drift")
        ]
        events = views.TextLogView(name="events", origin=f"{ROOT}events")
        return views.Blueprint(views.Grid(*torques, *others, events))

    def close(self) -> None:
        """End the file and put it in the place of an earlier one, where a message came.

        Raises
        ------
        InputError
            When not all of it could be written; what stood there before is left.
        """
        if self._stream is None:
            return
        stream, self._stream = self._stream, None
        try:
            stream.flush()
            stream.disconnect()
            self._part.replace(self.path)
        except (OSError, RuntimeError) as error:
            with suppress(OSError):
                self._part.unlink()
            raise InputError(f"{self.path}: cannot be written ({error})") from error


def list_numbers(plain: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], float]]:
    """Numbers and flags of plain data by their names; its time and its words aside."""
    for name, value in plain.items():
        if isinstance(value, Mapping):
            yield from (((name, *names), number) for names, number in list_numbers(value))
        elif name != CLOCK and not isinstance(value, str):
            yield (name,), float(value)
