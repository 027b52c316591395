"""Clarabel's interior-point method: a problem in its form, and its answers in ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import clarabel
import numpy as np

from dynident.conic.cones import Cone, NonnegativeCone, SemidefiniteCone, ZeroCone, smat, svec
from dynident.core.arrays import Array
from dynident.core.library_messages import capture_library_messages

INFEASIBLE = "PrimalInfeasible"
TOLERANCE = 1e-9
PRECISE = 1e4
"""Length of the longest column of R that the criterion is scaled down to."""
PULL = 3.0
"""Length of the residual at the start that it is scaled down to, where that is asked."""
STEPS = 100
"""Of the solver at most. Where no point satisfies the constraints and no proof of it is found, it
goes on, a hundred times closer to the boundary with each, until its numbers underflow and it
panics; a problem that can be solved takes a tenth to a half of these."""
LARGE = 200
"""Unknowns above which Clarabel's supernodal factorisation is the faster one."""


class ClarabelForm:
    """A problem as Clarabel has it: ``min r^T r + 2 g^T r, R d = r``, cones on start + d.

    ``g = R start - c`` is zero at the unconstrained minimiser. From an answer that is nearly
    right the step d is small, and so are the errors that a tolerance leaves.

    Parameters
    ----------
    start : ndarray, shape (unknowns,)
        What x is counted from.
    pulled : bool
        Whether rows are scaled by how hard they pull at the start, too. The solver's tolerance of
        constraints is relative to the largest residual, and they would be met by no more.
    """

    def __init__(
        self, R: Array, c: Array, cones: Sequence[Cone], start: Array, pulled: bool = False
    ) -> None:
        from scipy import sparse

        self.rows, self.unknowns = R.shape
        self.cones, self.start = cones, start
        # very precise rows would drown the constraints, whose multipliers grow with them
        self.precision = max(1.0, float(np.max(np.linalg.norm(R, axis=0))) / PRECISE)
        pull = R @ start - c
        if pulled:
            self.precision = max(self.precision, float(np.linalg.norm(pull)) / PULL)
        self.g = pull / self.precision
        blocks, right = [R / self.precision], [np.zeros(self.rows)]
        self.kinds: list[object] = [clarabel.ZeroConeT(self.rows)]
        for cone in cones:
            matrix, vector = to_linear_form(cone)
            if isinstance(cone, ZeroCone):
                self.kinds.append(clarabel.ZeroConeT(len(vector)))
            elif isinstance(cone, NonnegativeCone):
                self.kinds.append(clarabel.NonnegativeConeT(len(vector)))
            else:
                self.kinds.append(clarabel.PSDTriangleConeT(len(cone.floor)))
            blocks.append(-matrix)
            right.append(matrix @ start - vector)
        stacked = sparse.csc_matrix(np.vstack(blocks))
        count = stacked.shape[0]
        minus = sparse.csc_matrix(
            (np.full(self.rows, -1.0), np.arange(self.rows), np.arange(self.rows + 1)),
            shape=(count, self.rows),
        )
        self.A = sparse.hstack([stacked, minus], format="csc")
        self.b = np.concatenate(right)
        weights = np.concatenate([np.zeros(self.unknowns), np.full(self.rows, 2.0)])
        self.P = sparse.diags_array(weights, format="csc")

    def solve(
        self, unit: float, careful: bool = True, tolerance: float = TOLERANCE
    ) -> clarabel.DefaultSolution | None:
        """Clarabel's solution for the step in a unit of length; None where it gave up.

        If it is careful, it scales the problem and refines its linear solutions.
        """
        return attempt_solution(lambda: self.solver(unit, careful, tolerance).solve())

    def solver(self, unit: float, careful: bool, tolerance: float) -> clarabel.DefaultSolver:
        """Clarabel, ready to solve."""
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        # either would forbid to update a solver's data, as `RepeatedSolver` does
        settings.presolve_enable = False
        settings.chordal_decomposition_enable = False
        settings.equilibrate_enable = settings.iterative_refinement_enable = careful
        settings.direct_solve_method = "faer" if self.unknowns > LARGE else "qdldl"
        settings.max_iter = STEPS
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        q = self.linear(self.g, unit)
        return clarabel.DefaultSolver(self.P, q, self.A, self.b / unit, self.kinds, settings)

    def linear(self, g: Array, unit: float) -> Array:
        """The linear term of a gradient in a unit of length."""
        return np.concatenate([np.zeros(self.unknowns), 2.0 / unit * g])

    def answer(
        self, outcome: clarabel.DefaultSolution, unit: float
    ) -> tuple[Array, list[np.ndarray], list[Array]]:
        """The point, its face and the multipliers of half the criterion."""
        x = self.start + unit * np.array(outcome.x[: self.unknowns])
        # the criterion was divided by (precision unit)^2, slacks by unit: multipliers by their
        # ratio
        duals = 0.5 * self.precision**2 * unit * np.array(outcome.z)
        slacks = unit * np.array(outcome.s)
        faces: list[np.ndarray] = []
        multipliers: list[Array] = []
        parts = (split_by_cone(self.cones, values[self.rows :]) for values in (duals, slacks))
        for cone, z, s in zip(self.cones, *parts, strict=True):
            if isinstance(cone, ZeroCone):
                faces.append(np.ones(len(z), dtype=bool))
                multipliers.append(z)
            elif isinstance(cone, NonnegativeCone):
                # on the central path z s goes to 0: the larger of the two tells whether a row is
                # active
                faces.append(z > self.precision**2 * s)
                multipliers.append(z)
            else:
                values, vectors = np.linalg.eigh(smat(z) - self.precision**2 * smat(s))
                faces.append(vectors[:, values > 0.0])
                multipliers.append(smat(z))
        return x, faces, multipliers


def attempt_solution(
    solve: Callable[[], clarabel.DefaultSolution],
) -> clarabel.DefaultSolution | None:
    """A solution, or None where the solver panicked."""
    with capture_library_messages():
        try:
            return solve()
        except BaseException as error:
            # a panic is not an Exception, and says nothing a user can act on
            if type(error).__name__ != "PanicException":
                raise
    return None


def split_by_cone(cones: Sequence[Cone], values: Array) -> list[Array]:
    """Values of all rows of all constraints' `to_linear_form`, one array a constraint."""
    ends = np.cumsum([len(to_linear_form(cone)[1]) for cone in cones])
    return np.split(values, ends)[:-1]


def to_linear_form(cone: Cone) -> tuple[Array, Array]:
    """Rows and right-hand side of a constraint, matrices as `svec`."""
    if isinstance(cone, SemidefiniteCone):
        return svec(cone.basis).T, svec(cone.floor)
    return cone.G, cone.h
