"""Integrators by name, as Butcher tableaus.

``y_i = y + h sum_j a_ij k_j``, ``k_i = f(t + c_i h, y_i)``, ``y+ = y + h sum_i b_i k_i``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array

# with this diagonal the second order is L-stable (Alexander 1977)
GAMMA = 1.0 - 1.0 / np.sqrt(2.0)


@dataclass(frozen=True)
class Integrator:
    """A Runge-Kutta method."""

    a: Array
    """Shape (stages, stages). Lower triangular; a diagonal makes it implicit, one stage at a
    time."""
    b: Array
    c: Array
    """`b`, `c`: shape (stages,)."""
    order: int
    error: Array | None = None
    """Shape (stages,). The weights b less those of an order below, whose difference chooses the
    steps; without, all steps are alike."""

    @property
    def implicit(self) -> bool:
        """Whether each stage is an equation to solve."""
        return bool(self.a[0, 0] != 0.0)

    def propagator(self, Z: Array) -> Array:
        """``R(Z)`` of the linear system ``y' = A y``, Z = h A, (n, n): what a step makes of y.

        The matrix form of ``R(z) = 1 + z b^T (1 - z a)^-1 (1, ..., 1)`` (Hairer and Wanner, IV.3).
        """
        n, stages = len(Z), len(self.b)
        ones = np.tile(np.eye(n), (stages, 1))
        inner = np.linalg.solve(np.eye(n * stages) - np.kron(self.a, Z), ones)
        return np.asarray(np.eye(n) + np.kron(self.b, Z) @ inner)

    def amplification(self, z: complex) -> complex:
        """``R(z)`` of the test equation ``y' = lambda y``, z = h lambda (Hairer, IV.3)."""
        return complex(self.propagator(np.array([[z]]))[0, 0])


def build_integrator(
    rows: list[list[float]], b: list[float], order: int, lower: list[float] | None = None
) -> Integrator:
    """An integrator from the rows of its matrix a, and the weights of an order below if it has."""
    a = np.zeros((len(b), len(b)))
    for i, row in enumerate(rows):
        a[i, : len(row)] = row
    error = None if lower is None else np.array(b) - np.array(lower)
    return Integrator(a, np.array(b), a.sum(axis=1), order, error)


DORMAND_PRINCE = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
]
FIFTH = [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]
FOURTH = [5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]

INTEGRATORS: dict[str, Integrator] = {
    "ode1": build_integrator([[]], [1.0], 1),
    "ode2": build_integrator([[], [1.0]], [0.5, 0.5], 2),
    "ode3": build_integrator([[], [0.5], [0.0, 0.75]], [2.0 / 9.0, 3.0 / 9.0, 4.0 / 9.0], 3),
    "ode4": build_integrator(
        [[], [0.5], [0.0, 0.5], [0.0, 0.0, 1.0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6], 4
    ),
    "ode5": build_integrator(DORMAND_PRINCE, FIFTH, 5),
    "ode45": build_integrator([*DORMAND_PRINCE, FIFTH], [*FIFTH, 0.0], 5, FOURTH),
    "sdirk2": build_integrator([[GAMMA], [1.0 - GAMMA, GAMMA]], [1.0 - GAMMA, GAMMA], 2),
}
"""Euler, Heun, Bogacki-Shampine (that of the papers), Runge-Kutta, Dormand-Prince with fixed steps
and with steps by its error; Alexander's L-stable pair."""
