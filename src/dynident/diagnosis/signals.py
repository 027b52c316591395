"""What a look at the raw signals shows: stuck, clipped, coarse, unsigned, too fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.recording.prepare import Samples
from dynident.robot.model import Robot

CLIPPED = 0.01
"""Share of samples at an extreme from which a torque is called clipped."""
STUCK = 0.1
"""Share of a log over which a signal that stands still is called stuck."""
COARSE = 0.1
"""Steps of a signal over its standard deviation from which it is called coarse."""
FAST = 1.5
"""Speed over the robot file's limit."""
SLOW_RATE = 25.0
"""Rate below which no robot is logged [Hz]."""
RUN = 5
"""Equal samples in a row that are no chance."""


@dataclass(frozen=True)
class Sign:
    """Something that a signal shows by itself.

    Attributes
    ----------
    kind : str
    what : str
    """

    kind: str
    what: str


def signs(robot: Robot, samples: Samples) -> tuple[Sign, ...]:
    """All that the raw signals of a log show.

    Parameters
    ----------
    robot : Robot
    samples : Samples
    """
    found = [*rate_signs(samples)]
    for j, joint in enumerate(robot.joints):
        q = np.concatenate([samples.measured[a:b, j] for a, b in samples.runs])
        tau = np.concatenate([samples.tau[a:b, j] for a, b in samples.runs])
        dq = np.concatenate([samples.dq[a:b, j] for a, b in samples.runs])
        found += stuck(joint.name, q, tau, samples.rate)
        found += clipped(joint.name, tau)
        found += coarse(joint.name, "torque", tau)
        found += unsigned(joint.name, tau, dq)
        fastest = float(np.max(np.abs(dq)))
        if fastest > FAST * joint.velocity:
            found.append(
                Sign(
                    "speed",
                    f"{joint.name} moves at {fastest:.3g}, the robot file allows "
                    f"{joint.velocity:.3g}: check units and rate",
                )
            )
    return tuple(found)


def rate_signs(samples: Samples) -> Iterator[Sign]:
    """A rate that no robot is logged at."""
    if samples.rate < SLOW_RATE:
        yield Sign("rate", f"the rate is {samples.rate:.3g} Hz: is time in ms, or in minutes?")


def longest_run(values: Array) -> tuple[int, int]:
    """First sample and length of the longest run of equal values."""
    changes = np.flatnonzero(np.diff(values)) + 1
    borders = np.concatenate([[0], changes, [len(values)]])
    lengths = np.diff(borders)
    k = int(np.argmax(lengths))
    return int(borders[k]), int(lengths[k])


def stuck(name: str, q: Array, tau: Array, rate: float) -> Iterator[Sign]:
    """A position that stands still while the torque goes on."""
    for what, signal, other in (("position", q, tau), ("torque", tau, q)):
        first, length = longest_run(signal)
        if length < max(RUN, STUCK * len(signal)):
            continue
        spread = np.ptp(other)
        if spread > 0.0 and np.ptp(other[first : first + length]) > 0.3 * spread:
            yield Sign(
                "stuck",
                f"{what} of {name} stands still for {length / rate:.3g} s at "
                f"{signal[first]:.4g} while the other goes on",
            )


def clipped(name: str, tau: Array) -> Iterator[Sign]:
    """A torque that stays at an extreme, or falls to zero, many samples in a row."""
    if np.ptp(tau) == 0.0:
        return
    equal = np.concatenate([[False], np.diff(tau) == 0.0])
    for level, word in ((np.max(tau), "clipped at"), (np.min(tau), "clipped at"), (0.0, "lost at")):
        at = tau == level
        share = float(np.mean(at & equal))
        _, length = longest_run(np.where(at, 1.0, np.arange(len(tau)) + 2.0))
        if share >= CLIPPED and length >= RUN:
            yield Sign(
                "clipped",
                f"torque of {name} is {word} {level:.4g} in {100.0 * share:.2g} % of the samples",
            )


def coarse(name: str, what: str, values: Array) -> Iterator[Sign]:
    """A signal in steps."""
    levels = np.unique(values)
    if 2 <= len(levels) <= 200:
        step = float(np.min(np.diff(levels)))
        if step > COARSE * float(np.std(values)):
            yield Sign("coarse", f"{what} of {name} comes in steps of {step:.3g}")


def unsigned(name: str, tau: Array, dq: Array) -> Iterator[Sign]:
    """A torque without a sign, on a joint that turns both ways."""
    quick = np.sign(dq[np.abs(dq) > 0.05 * np.max(np.abs(dq))])
    turns = int(np.sum(np.diff(quick) != 0.0))
    smallest, large = float(np.min(np.abs(tau))), float(np.max(np.abs(tau)))
    one_sided = np.min(tau) >= 0.0 or np.max(tau) <= 0.0
    if turns >= 4 and one_sided and smallest < 0.01 * large:
        yield Sign("unsigned", f"torque of {name} touches zero and never changes its sign")
