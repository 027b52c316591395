"""The damped steps of all that fit a simulated output."""

from __future__ import annotations

import numpy as np

from dynident.core.factors import System
from dynident.estimators.damped import LocalProblem, StepPace, run_levenberg_marquardt
from dynident.estimators.inner import FreeSolver

PACE = StepPace(1e-2, 1e8, 1e-12, "stuck", "unsettled")


def errors(x: np.ndarray) -> np.ndarray:
    """Rosenbrock's valley, which bends: steps along it are too long."""
    return np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])


def local(here: np.ndarray, x: np.ndarray) -> LocalProblem[np.ndarray]:
    psi = np.array([[20.0 * x[0], -10.0], [1.0, 0.0]])  # minus the errors' derivatives
    return LocalProblem(
        System(psi, here + psi @ x, 0.0),
        lambda other, at: float(other @ other),
        lambda new: bool(np.max(np.abs(new - x)) < 1e-8),
    )


class Watched(FreeSolver):
    """Notes with which damping each step is tried."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[float] = []

    def __call__(self, system: System) -> np.ndarray:
        norm = np.linalg.norm(system.A[:2, 0])
        self.tried.append(float((system.A[2, 0] / norm) ** 2))
        return super().__call__(system)


def test_a_damping_that_was_just_refused_is_not_tried_again_at_once() -> None:
    inner, start = Watched(), np.array([-1.2, 1.0])
    found = run_levenberg_marquardt(errors, local, inner, start, errors(start), PACE)
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-8)
    tried = np.round(np.log10(inner.tried)).astype(int).tolist()
    assert found.rollouts == 1 + len(tried)
    assert len(tried) > len(found.history) - 1  # steps have been refused
    # up after a refusal, and never down to the same at the next step while damping is slight
    pairs = [*zip(tried, tried[1:], tried[2:], strict=False)]
    assert any(b == a + 1 for a, b, _ in pairs)
    assert not any(b == a + 1 and c == a and b < 0 for a, b, c in pairs)
