"""Messages as lines of text: estimates as a table, or all of them as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TextIO

from dynident.live.messages import (
    EstimateRow,
    Message,
    NoticedChange,
    SampleSignals,
    describe_message,
    tell_event,
)


class MessageLines:
    """Writes messages line by line, and each line at once.

    Parameters
    ----------
    out : TextIO
        Where they go.
    as_json : bool
        Every estimate and event as an object, instead of estimates as comma-separated values.
    signals : bool
        Objects of samples, too.
    say : callable
        Told of events, for which the table has no place.
    """

    def __init__(
        self,
        out: TextIO,
        as_json: bool,
        signals: bool = False,
        say: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.signals = signals
        self._out, self._say, self._as_json, self._begun = out, say, as_json, False

    def write(self, message: Message) -> None:
        """Write what there is to be said of a message."""
        if self._as_json:
            if self.signals or not isinstance(message, SampleSignals):
                self._out.write(json.dumps(describe_message(message), allow_nan=False) + "\n")
        elif isinstance(message, EstimateRow):
            if not self._begun:
                self._out.write(",".join(list_columns(message)) + "\n")
                self._begun = True
            self._out.write(",".join(list_cells(message)) + "\n")
        elif isinstance(message, NoticedChange):
            self._say(tell_event(message))
        self._out.flush()


def list_columns(row: EstimateRow) -> list[str]:
    """Names of what a line of the table has."""
    names = row.base.names
    theta = () if row.theta is None else row.base.idim.names
    consistent = [f"consistent_{name}" for name in theta]
    return [
        "time", "samples", *names, *(f"std_{name}" for name in names), *consistent, "load",
        "std_load",
    ]  # fmt: skip


def list_cells(row: EstimateRow) -> list[str]:
    """A line of the table; empty where nothing is carried."""
    theta = () if row.theta is None else row.theta
    cells = [row.samples, *row.beta, *row.std, *theta, *(row.load or ())]
    time = str(round(row.time, 6))  # seconds of an epoch have ten digits before the point
    return [time, *(f"{each:.9g}" for each in cells)] + ([] if row.load else ["", ""])
