"""How positions follow their targets without a robot: what any model has to do better than."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from dynident.core.arrays import Array
from dynident.diagnosis.tracking import measure_motion
from dynident.filters.filters import filter_in_place
from dynident.filters.shift import shift_in_time
from dynident.recording.prepare import Samples

START = np.array([0.08, 0.05, 0.01])
"""Of the search, [s]: ``2 z / w``, ``1 / w`` and the delay, by which the motion goes evenly."""
BOUNDS = np.array([[1e-3, 2e-3, 0.0], [2.0, 1.0, 0.1]])
TURNS, DIFFERENCE = 30, 1e-5
"""Steps of the search, and of its difference quotients: a lag that is nearly the best will do."""
SETTLED = 1e-4
"""Share of the squared error below which a step is the last."""


@dataclass(frozen=True)
class JointFollower:
    """A joint that follows its target as ``q'' = w^2 (target - q) - 2 z w q'`` does, and late."""

    pace: float
    """w [rad/s]."""
    damping: float
    """z."""
    delay: float
    """Of the target [s]."""

    @classmethod
    def of(cls, x: Array) -> JointFollower:
        """By the numbers of the search."""
        slow, quick, delay = x.tolist()
        return cls(1.0 / quick, 0.5 * slow / quick, delay)

    def find_errors(self, target: Array, q: Array, rate: float) -> Array:
        """What is left of a run about an offset, from the start that is best, shape (samples,)."""
        w, z = self.pace, self.damping
        drift = np.array([[0.0, 1.0, 0.0], [-(w**2), -2.0 * z * w, w**2], [0.0, 0.0, 0.0]])
        step = expm(drift / rate)
        A, b = step[:2, :2], step[:2, 2]
        trace = A[0, 0] + A[1, 1]
        late = shift_in_time(target[:, None], np.array([-self.delay * rate]))[:, 0]
        rows = np.zeros((len(q) + 1, 3))  # the first is of rest
        rows[2:, 0] = b[0] * (late[:-1] - late[0])
        rows[3:, 0] += (A[0] @ b - trace * b[0]) * (late[:-2] - late[0])
        rows[1:3, 1] = 1.0, A[0, 0] - trace
        rows[2, 2] = A[0, 1]
        poles = np.array([[1.0, 0.0, 0.0, -trace, A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]]])
        filter_in_place(poles, rows, False)
        free = np.column_stack([np.ones(len(q)), rows[1:, 1:]])
        rest = q - late[0] - rows[1:, 0]
        return np.asarray(rest - free @ np.linalg.lstsq(free, rest, rcond=None)[0])


def fit_followers(logs: Sequence[Samples]) -> tuple[JointFollower, ...]:
    """The lag of each joint that follows the targets of some logs best."""

    def errors(x: Array, joint: int) -> Array:
        return np.concatenate(
            [find_follower_errors(JointFollower.of(x), log, joint) for log in logs]
        )

    return tuple(
        JointFollower.of(minimise(lambda x, j=j: errors(x, j)))  # type: ignore[misc]
        for j in range(logs[0].measured.shape[1])
    )


def minimise(errors: Callable[[Array], Array]) -> Array:
    """Where damped steps of Gauss and Newton within the bounds end, by difference quotients."""
    x, damping = START, 1e-2
    here = errors(x)
    for _ in range(TURNS):
        by = np.column_stack([errors(x + d) - here for d in DIFFERENCE * np.eye(3)]) / DIFFERENCE
        size = np.sqrt(damping) * np.diag(np.linalg.norm(by, axis=0) + 1e-12)
        system = np.vstack([by, size])
        step = np.linalg.lstsq(system, np.append(-here, np.zeros(3)), rcond=None)[0]
        new = np.clip(x + step, *BOUNDS)
        there, square = errors(new), float(here @ here)
        gain = square - float(there @ there)
        damping *= 0.1 if gain > 0.0 else 10.0
        if gain > 0.0:
            x, here = new, there
        if 0.0 <= gain < SETTLED * square:
            break
    return x


def find_follower_errors(follower: JointFollower, log: Samples, joint: int) -> Array:
    """Errors of a joint of a log, run after run."""
    assert log.qref is not None
    q, target = log.measured[:, joint], log.qref[:, joint]
    return np.concatenate(
        [follower.find_errors(target[a:b], q[a:b], log.rate) for a, b in log.runs]
    )


def measure_followers(followers: Sequence[JointFollower], log: Samples) -> Array:
    """Root mean square of the errors on a log, shape (n,) [rad or m]."""
    errors = (find_follower_errors(own, log, j) for j, own in enumerate(followers))
    return np.array([np.sqrt(np.mean(each**2)) for each in errors])


def measure_log_motion(log: Samples) -> Array:
    """How far each joint of a log moves about its mean, see `measure_motion`."""
    return measure_motion(np.concatenate([log.measured[a:b] for a, b in log.runs]))
