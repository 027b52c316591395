"""Filters that know no future: motion and torque of a stream, with one stated lag.

A stream brings positions and torques, and its rows cannot wait for the end of the log. The same
Butterworth low-pass of order 4 goes over all of them, forwards alone, and the positions are then
differentiated by the central differences of `differences`, for which two more samples are waited;
so do the others. Below the cutoff such a filter is a delay: every signal comes out as it was a lag
ago, the same lag for all, and the model holds among them as it held then. What it does not do is
what the parallel filter of the batch does: it filters the motion and not the regressor's columns,
which for a motion well below the cutoff is the same. It is not for the sign of a speed: where a
joint turns, Coulomb friction goes from one side to the other at once, and comes out of the filter
as its step response. That is what `SignTurnover` has in place of the sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.compiled import make_compiler
from dynident.core.errors import InputError
from dynident.filters.filters import design_butterworth, filter_in_place

AHEAD = 2
"""Samples that central differences look ahead."""
KEPT = 2 * AHEAD + 1
SLOWEST = 1e6
"""Samples a period of the cutoff, from which on the rate is a mistake and no stream's."""
SETTLED = 1e-3
"""Of a step, what is left where its response has settled."""


@dataclass(frozen=True)
class SignTurnover:
    """What a filter makes of a sign that changes, about the instant at which it does."""

    reach: float
    """So long before and after it the sign itself comes out [s]."""
    values: Array
    """From -1 to 1, at even times from `-reach` to `reach`, shape (TURN_POINTS,)."""


TURN_POINTS = 129


class CausalFilter:
    """Filtered motion and torque, sample by sample; cutoff and rate are in Hz.

    So many signals are followed, and differentiated twice; others are filtered alone.
    """

    def __init__(self, followed: int, others: int, cutoff: float, rate: float) -> None:
        if not 0.0 < cutoff < 0.5 * rate:
            raise InputError(
                f"a causal filter at {cutoff:g} Hz needs more than {2.0 * cutoff:g} samples a "
                f"second, got {rate:g}"
            )
        if rate > SLOWEST * cutoff:
            raise InputError(
                f"a causal filter at {cutoff:g} Hz of {rate:g} samples a second; check the unit of "
                "time, or the rate"
            )
        self.rate, self._followed = rate, followed
        self._sections = design_butterworth(cutoff, rate)
        # ten periods of the cutoff are far more than a step needs
        self._step = compute_step_response(self._sections, int(np.ceil(10.0 * rate / cutoff)))
        settled = int(np.flatnonzero(np.abs(self._step - 1.0) > SETTLED)[-1]) + 1
        self.settling = settled + KEPT
        """Samples that feel the start."""
        width = followed + others
        self._state = np.zeros((len(self._sections), 2, width))
        self._past = np.zeros((KEPT, width))
        self._count = np.zeros(1, dtype=np.int64)
        self._out = np.empty(width + 2 * followed)

    @property
    def lag(self) -> float:
        """How late what comes out is, well below the cutoff [s].

        The group delay of each section at zero frequency, ``sum k b_k / sum b_k - sum k a_k / sum
        a_k``, and the samples that differences wait for.
        """
        samples = float(AHEAD)
        for b0, b1, b2, a1, a2 in self._sections:
            samples += (b1 + 2.0 * b2) / (b0 + b1 + b2) - (a1 + 2.0 * a2) / (1.0 + a1 + a2)
        return samples / self.rate

    @property
    def turnover(self) -> SignTurnover:
        """What comes out where a speed changes its sign, the lag taken off."""
        late = self.lag * self.rate - AHEAD
        reach = max(late, self.settling - KEPT - late)
        # a sign that changes between two samples does so half a sample before the second
        at = np.linspace(-reach, reach, TURN_POINTS) + late - 0.5
        known = np.concatenate([[0.0], self._step])
        values = 2.0 * np.interp(at, np.arange(-1.0, len(self._step)), known) - 1.0
        values[0], values[-1] = -1.0, 1.0
        return SignTurnover(reach / self.rate, values)

    def push(self, sample: Array) -> Array | None:
        """Take in ``[x | y]``, x followed and y others: ``[x | dx | ddx | y]`` as of a lag ago.

        None comes out while the filter feels its start.
        """
        filter_sample(
            self._sections, self._state, self._past, self._count, sample, self.rate,
            self._followed, self._out,
        )  # fmt: skip
        return self._out if self._count[0] > self.settling else None

    def restart(self) -> None:
        """Forget the past, as after a gap."""
        self._count[0] = 0

    @property
    def _memory(self) -> dict[str, Array | Integers]:
        return {"filter": self._state, "past": self._past, "filtered": self._count}

    def state(self) -> dict[str, Array | Integers]:
        """All that it remembers; copies."""
        return {name: array.copy() for name, array in self._memory.items()}

    def restore(self, state: dict[str, Array | Integers]) -> None:
        """Go on from what `state` gave."""
        for name, array in self._memory.items():
            if name not in state or state[name].shape != array.shape:
                raise InputError("the state is not that of such a filter")
        for name, array in self._memory.items():
            array[:] = state[name]


def compute_step_response(sections: Array, samples: int) -> Array:
    """What comes out of second-order sections for a step, shape (samples,)."""
    response = np.ones((samples + 1, 1))
    response[0] = 0.0  # at which the filter rests
    filter_in_place(sections, response, False)
    return np.asarray(response[1:, 0])


@make_compiler(nogil=True, error_model="numpy")
def filter_sample(sections, state, past, count, sample, rate, n, out):  # type: ignore[no-untyped-def]
    """One sample through the sections, into the past, and what the past says of its middle."""
    width = len(sample)
    kept = len(past)
    for k in range(kept - 1):
        for j in range(width):
            past[k, j] = past[k + 1, j]
    for j in range(width):
        value = sample[j]
        for section in range(len(sections)):
            b0, b1, b2 = sections[section, 0], sections[section, 1], sections[section, 2]
            a1, a2 = sections[section, 3], sections[section, 4]
            if count[0] == 0:
                # as if it had rested at the first sample
                state[section, 0, j] = (1.0 - b0) * value
                state[section, 1, j] = (b2 - a2) * value
            filtered = b0 * value + state[section, 0, j]
            state[section, 0, j] = b1 * value - a1 * filtered + state[section, 1, j]
            state[section, 1, j] = b2 * value - a2 * filtered
            value = filtered
        past[kept - 1, j] = value
    count[0] += 1
    for j in range(n):
        a, b, c, d, e = past[0, j], past[1, j], past[2, j], past[3, j], past[4, j]
        out[j] = c
        # five-point differences, of the fourth order in the time between samples
        out[n + j] = (8.0 * (d - b) + a - e) * rate / 12.0
        out[2 * n + j] = (16.0 * (b + d) - a - e - 30.0 * c) * rate * rate / 12.0
    for j in range(n, width):
        out[2 * n + j] = past[2, j]
