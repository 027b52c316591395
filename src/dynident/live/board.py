"""What a page shows of a run: the last of its signals, the latest estimate, what was noticed."""

from __future__ import annotations

import json
import math
from collections import deque
from itertools import islice
from threading import Lock

from dynident.live.messages import (
    EstimateRow,
    Message,
    NoticedChange,
    SampleSignals,
    describe_message,
    drop_missing,
    tell_event,
)

KEPT = 4000
"""Samples of signals that a page can go back."""
EVENTS = 200
"""That are kept, the last ones."""


class LiveBoard:
    """What there is to be shown; written by the run, read by the threads of a server.

    Parameters
    ----------
    title : str
        Of the page: the robot's name.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._lock = Lock()
        self._signals: deque[SampleSignals] = deque(maxlen=KEPT)
        self._events: deque[NoticedChange] = deque(maxlen=EVENTS)
        self._row: EstimateRow | None = None
        self._count = 0
        self._ended = ""

    def write(self, message: Message) -> None:
        """Take in a message."""
        with self._lock:
            match message:
                case SampleSignals():
                    self._signals.append(message)
                    self._count += 1
                case NoticedChange():
                    self._events.append(message)
                case EstimateRow():
                    self._row = message

    def end(self, words: str) -> None:
        """Nothing comes any more, and why."""
        with self._lock:
            self._ended = words

    def read(self, after: int = 0) -> str:
        """What is new to those who have seen so many samples, as JSON, with all that was noticed.

        Points are ``time, measured ..., predicted ..., mass, std, share, moved``, with null of what
        is not known. The first of them is sample `first`: who does not have all before it, or has
        more than `count`, as after another run began, forgets what is there.
        """
        with self._lock:
            kept, count = len(self._signals), self._count
            fresh = min(kept, count - after) if 0 <= after <= count else kept
            signals = list(islice(self._signals, kept - fresh, kept))
            last = self._signals[-1] if self._signals else None
            events, row, ended = list(self._events), self._row, self._ended
        return json.dumps({
            "first": count - fresh,
            "count": count,
            "ended": ended,
            "equations": [] if last is None else [each._asdict() for each in last.equations],
            "most": None if last is None or last.moved is None else last.moved[1],
            "points": [list_point(each) for each in signals],
            "events": [{"time": each.time, "words": tell_event(each)} for each in events],
            "estimate": None if row is None else drop_missing(describe_message(row)),
        })  # fmt: skip


def list_point(signals: SampleSignals) -> list[float | None]:
    """What is drawn of one sample, to six digits."""
    statistic, threshold, _ = signals.surprise
    mass, std = signals.load or (math.nan, math.nan)
    every = (
        *signals.measured.tolist(),
        *signals.predicted.tolist(),
        mass,
        std,
        statistic / threshold if threshold > 0.0 else math.nan,
        math.nan if signals.moved is None else signals.moved[0],
    )
    return [signals.time, *(float(f"{v:.6g}") if math.isfinite(v) else None for v in every)]
