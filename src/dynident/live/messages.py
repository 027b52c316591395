"""What a run tells while it follows a robot, as plain data and by topics with their schemas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dynident.core.arrays import Array
from dynident.dynamics.base import BaseParameters
from dynident.online.tracker import Event, Surprise

ROOT = "/dynident/"
"""Before the name of each topic."""
NUMBER, WHOLE, WORD, FLAG = ("number", "integer", "string", "boolean")
"""Types of JSON."""
OF_LOAD = {"mass": NUMBER, "std": NUMBER}
EVENTS = {
    "load": "another load than before, or than the start has",
    "released": "no load besides the model's any more",
    "misfit": "the start does not fit: another robot, other drives, or other noise",
}
"""What an event is in words, by its kind."""

Plain = dict[str, Any]
"""What JSON can hold."""


class Equation(NamedTuple):
    """An equation of motion that is followed."""

    name: str
    """Of a joint, or of a component of a floating base's wrench."""
    unit: str
    """"Nm" or "N"."""


class EstimateRow(NamedTuple):
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
    base : BaseParameters
        What beta are.
    """

    time: float
    samples: int
    beta: Array
    std: Array
    load: tuple[float, float] | None
    theta: Array | None
    base: BaseParameters


class NoticedChange(NamedTuple):
    """A change of the load, or a start that does not fit.

    Attributes
    ----------
    time : float
        [s]
    """

    time: float
    event: Event


class SampleSignals(NamedTuple):
    """What is measured and what is predicted of one sample."""

    time: float
    """Of the motion, a filter's lag before the last sample [s]."""
    equations: Sequence[Equation]
    measured: Array
    predicted: Array
    """`measured`, `predicted`: shape (equations,). Filtered torques, and those by what was learnt
    before this sample; NaN of what is not measured, or cannot be predicted [Nm or N]."""
    load: tuple[float, float] | None
    """Mass of a load and its standard deviation, where one is carried [kg]."""
    surprise: Surprise
    """Of the last window."""
    moved: tuple[float, str] | None
    """The largest change of a parameter since the start, in standard deviations that it had then,
    and which one it is; None without a start."""


Message = EstimateRow | NoticedChange | SampleSignals


def describe_message(message: Message) -> Plain:
    """A message as plain data, a line of JSON; None of what is not known."""
    match message:
        case NoticedChange(time, event):
            return {
                "time": time,
                "event": event.kind,
                "statistic": event.statistic,
                "threshold": event.threshold,
            }
        case EstimateRow():
            names = message.base.names
            found: Plain = {
                "time": message.time,
                "samples": message.samples,
                "beta": name_values(names, message.beta.tolist()),
                "std": name_values(names, message.std.tolist()),
                "load": describe_load(message.load),
            }
            if message.theta is not None:
                found["consistent"] = name_values(message.base.idim.names, message.theta.tolist())
            return found
        case SampleSignals():
            names = tuple(equation.name for equation in message.equations)
            surprise, moved = message.surprise, message.moved or (None, None)
            tested = surprise.threshold > 0.0
            return {
                "time": message.time,
                "torque": {
                    "measured": name_values(names, message.measured.tolist()),
                    "predicted": name_values(names, message.predicted.tolist()),
                },
                "load": describe_load(message.load),
                "drift": {
                    "statistic": surprise.statistic if tested else None,
                    "threshold": surprise.threshold if tested else None,
                    "level": surprise.level,
                    "moved": moved[0],
                    "most": moved[1],
                },
            }


def tell_event(noticed: NoticedChange) -> str:
    """A change of the load in words."""
    event = noticed.event
    return (
        f"{noticed.time:.3f} s: {EVENTS[event.kind]} (squared innovations {event.statistic:.0f}, "
        f"expected below {event.threshold:.0f})"
    )


def name_values(names: Sequence[str], values: Sequence[float]) -> dict[str, float | None]:
    """Numbers by name; None of what is not finite."""
    own = (float(value) if math.isfinite(value) else None for value in values)
    return dict(zip(names, own, strict=True))


def describe_load(load: tuple[float, float] | None) -> dict[str, float | None] | None:
    """A load's mass and its standard deviation."""
    return None if load is None else name_values(tuple(OF_LOAD), load)


def split_into_topics(message: Message) -> Iterator[tuple[str, Plain]]:
    """A message by topics; what is not known is left out, for schemas have no word for it."""
    plain = drop_missing(describe_message(message))
    match message:
        case NoticedChange():
            yield ROOT + "events", plain
        case EstimateRow():
            yield ROOT + "parameters", plain
        case SampleSignals():
            for topic in ("torque", "load", "drift"):
                own = {"time": message.time, **plain.get(topic, {})}
                if topic == "load":
                    own["carried"] = message.load is not None
                yield ROOT + topic, own


def drop_missing(plain: Mapping[str, Any]) -> Plain:
    """Plain data without what is None."""
    found: Plain = {}
    for key, value in plain.items():
        if isinstance(value, Mapping):
            found[key] = drop_missing(value)
        elif value is not None:
            found[key] = value
    return found


def build_schemas(message: Message) -> dict[str, Plain]:
    """JSON schemas of a message's topics: all fields that may come, of which not all have to."""
    match message:
        case NoticedChange():
            event = {"event": WORD, "statistic": NUMBER, "threshold": NUMBER}
            return build_topic_schema("events", "Changes of what is carried.", event)
        case EstimateRow():
            named = dict.fromkeys(message.base.names, NUMBER)
            fields: Plain = {"samples": WHOLE, "beta": named, "std": named, "load": OF_LOAD}
            if message.theta is not None:
                fields["consistent"] = dict.fromkeys(message.base.idim.names, NUMBER)
            return build_topic_schema("parameters", "Estimates, SI units.", fields)
        case SampleSignals():
            named = dict.fromkeys((equation.name for equation in message.equations), NUMBER)
            torque = {"measured": named, "predicted": named}
            units = ", ".join(f"{name} {unit}" for name, unit in message.equations)
            drift = dict.fromkeys(("statistic", "threshold", "level", "moved"), NUMBER)
            return {
                **build_topic_schema("torque", f"Filtered torques: {units}.", torque),
                **build_topic_schema("load", "What is carried [kg].", {"carried": FLAG, **OF_LOAD}),
                **build_topic_schema(
                    "drift",
                    "Squared innovations of a window and their threshold, their mean, and the "
                    "largest change of a parameter since the start in standard deviations.",
                    {**drift, "most": WORD},
                ),
            }


def build_topic_schema(topic: str, words: str, fields: Plain) -> dict[str, Plain]:
    """The schema of one topic; each message of it has a time [s]."""
    schema = {"title": f"dynident.{topic}", "description": words}
    return {ROOT + topic: {**schema, **build_object_schema({"time": NUMBER, **fields})}}


def build_object_schema(fields: Plain) -> Plain:
    """Of an object: types by name, or objects in turn."""
    own = {
        name: {"type": kind} if isinstance(kind, str) else build_object_schema(kind)
        for name, kind in fields.items()
    }
    return {"type": "object", "properties": own}
