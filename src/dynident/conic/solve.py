"""The one cone problem under every constrained estimator: ``min ||A x - b||^2``.

Clarabel finds the active constraints, in the auxiliary form ``min r^T r, R x - r = b``: a
normal matrix ``A^T A`` would square the condition number and has been seen to give wrong
answers on large robots. Newton's method on their face then takes the answer to rounding
(see `dynident.conic.active_set`), or a step from the answer so far. What the solver says of
itself is not relied upon, be it solved or almost solved: the certificate is computed from the
answer, and decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from clarabel import DefaultSolver
from scipy.linalg import solve_triangular

from dynident.conic.active_set import ROUNDS, Certificate, certify_answer, polish_answer
from dynident.conic.cones import (
    Cone,
    SemidefiniteCone,
    ZeroCone,
    measure_cone_violation,
    project_on_dual_cone,
)
from dynident.conic.infeasible import refuse_contradiction
from dynident.conic.interior import INFEASIBLE, LARGE, ClarabelForm, attempt_solution
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.progress import ignore_progress
from dynident.core.side_by_side import HERE, Engine, gather_side_by_side
from dynident.core.threads import count_processors, limit_to_one_thread

MODERATE = 1e-6
"""Tolerance of what needs no certificate."""
ATTEMPTS = (
    (3.0, False),
    (3.0, True),
    (30.0, False),
    (30.0, True),
    (1000.0, True),
    (1.0, True),
)
"""Tried in turn: the unit of the step from the unconstrained minimiser, in standard
deviations where rows are whitened, and whether the solver scales and refines by itself,
which unknowns and rows of order one seldom need and which takes half of the time again."""
CLOSER = (1.0, 0.1, 0.01, 0.001)
"""Units of the steps from an answer that is not accurate yet, after the first two attempts."""
FEW_ROUNDS = 2
"""Changes of the active set from a warm start, or to polish what is accurate already."""
ACCURATE = 1e-8
"""Violation and gradient below which an answer needs no other attempt."""
ACCURATE_GAP = 1e-7
"""The same of the gap, over the criterion: less than a hundredth of a standard deviation."""
ACCEPTED = 1e-7
FEWEST_EACH, WORTHWHILE = 8, 50
"""Right-hand sides, and unknowns, that a thread is worth, which builds a solver of its own; of an
engine so many right-hand sides are a task."""
SINGULAR = 1e-12
"""Diagonal of R over its column below which there is no unique answer to polish."""


@dataclass(frozen=True)
class ConeSolution:
    """The minimiser with its multipliers.

    Attributes
    ----------
    x : ndarray
    multipliers : tuple of ndarray
        One per cone: a vector for linear constraints, a symmetric matrix for `SemidefiniteCone`.
    faces : tuple of ndarray
        What is active, one per cone: rows, as a mask; for `SemidefiniteCone` the null directions of
        the matrix, shape (d, k).
    certificate : Certificate
    iterations : int
        Of the interior-point method; 0 where none was needed.
    """

    x: Array
    multipliers: tuple[Array, ...]
    faces: tuple[np.ndarray, ...]
    certificate: Certificate
    iterations: int

    @property
    def worst(self) -> float:
        """The largest residual of its certificate."""
        return self.certificate.worst

    @property
    def accurate(self) -> bool:
        """Whether no other attempt is needed."""
        proof = self.certificate
        return max(proof.primal, proof.dual) <= ACCURATE and proof.gap <= ACCURATE_GAP

    def visible(self, cones: Sequence[Cone], least: float) -> tuple[np.ndarray, ...]:
        """The faces of the multipliers that are larger than `least`."""
        shown = []
        for cone, face, multiplier in zip(cones, self.faces, self.multipliers, strict=True):
            if isinstance(cone, SemidefiniteCone):
                # by its own axes: those of the face are arbitrary where it has several
                forces, axes = np.linalg.eigh(face.T @ multiplier @ face)
                shown.append(face @ axes[:, forces > least])
            else:
                shown.append(face & (np.abs(multiplier) > least))
        return tuple(shown)


def build_free_faces(cones: Sequence[Cone]) -> tuple[list[np.ndarray], list[Array]]:
    """Faces and multipliers of an answer at which equalities alone are active."""
    faces: list[np.ndarray] = [
        np.zeros((len(c.floor), 0))
        if isinstance(c, SemidefiniteCone)
        else np.full(len(c.h), isinstance(c, ZeroCone))
        for c in cones
    ]
    return faces, [
        np.zeros_like(c.floor if isinstance(c, SemidefiniteCone) else c.h) for c in cones
    ]


def solve_cone_problem(
    A: Array, b: Array, cones: Sequence[Cone], warm: ConeSolution | None = None
) -> ConeSolution:
    """Minimise ``||A x - b||^2`` subject to cones.

    Parameters
    ----------
    A : ndarray, shape (rows, unknowns)
        Need not have full column rank where the cones settle the rest.
    b : ndarray, shape (rows,)
    cones : sequence of Cone
    warm : ConeSolution, optional
        Answer to a problem nearby with the same cones: its face is tried first.

    Notes
    -----
    Solved for the step away from the unconstrained minimiser: its size, and not that of
    b, is then what the tolerances refer to. Relative to ``||b||^2`` they would hide many
    standard deviations when the torque is precise.

    Raises
    ------
    InfeasibleError
        When the constraints contradict each other, with the names of those in conflict.
    ComputationError
        When no certified answer was reached.
    """
    R, c = compress_to_triangle(A, b)
    start, unique = solve_unconstrained(R, c)
    if all(measure_cone_violation(cone, start) == 0.0 for cone in cones):
        return finish_solution(A, b, cones, (start, *build_free_faces(cones)), 0)
    if warm is not None and unique:
        # multipliers here are those of half the criterion, whose gradient is A^T (A x - b)
        half = [0.5 * m for m in warm.multipliers]
        guess = polish_answer(R, c, cones, warm.x, warm.faces, half, FEW_ROUNDS)
        if guess is not None and (found := finish_solution(A, b, cones, guess, 0)).accurate:
            return found
    best: ConeSolution | None = None
    iterations, status = 0, ""
    for number, (unit, careful) in enumerate(ATTEMPTS):
        centre = start
        for size in (unit, *CLOSER) if number > 1 else (unit,):
            form = ClarabelForm(R, c, cones, centre, pulled=number > 1)
            outcome = form.solve(size, careful)
            if outcome is None:
                break
            status = str(outcome.status)
            iterations += int(outcome.iterations)
            if status == INFEASIBLE:
                # the solver's dual ray proves it, where it is one: otherwise another attempt
                refuse_contradiction(cones, np.array(outcome.z)[len(R) :])
                break
            answer = form.answer(outcome, size)
            if not np.all(np.isfinite(answer[0])):
                break
            plain = finish_solution(A, b, cones, answer, iterations)
            if len(start) > LARGE and plain.accurate:
                return plain  # a dense active set of so many unknowns costs more than it improves
            rounds = FEW_ROUNDS if plain.accurate else ROUNDS
            refined = polish_answer(R, c, cones, *answer, rounds) if unique else None
            found = plain if refined is None else finish_solution(A, b, cones, refined, iterations)
            best = min((f for f in (best, found, plain) if f is not None), key=lambda f: f.worst)
            if best.accurate:
                return best
            centre = answer[0]
    if best is None or best.worst > ACCEPTED:
        refuse_contradiction(cones, None)
        raise ComputationError(
            f"the cone problem was not solved: {describe_best(A, b, start, best)}; check units and "
            "the size of the numbers that it was given"
        )
    return best


def describe_best(A: Array, b: Array, start: Array, best: ConeSolution | None) -> str:
    """Why the best answer is not accepted, in view of the unconstrained minimiser `start`."""
    if best is None:
        return "the solver gave no answer"
    # the step from the unconstrained minimiser is solved for, whose errors are the least
    size = float(np.linalg.norm(np.abs(A) @ np.abs(start) + np.abs(b)))
    left, rounding = float(np.linalg.norm(A @ start - b)), np.finfo(float).eps * size
    if rounding * (rounding + 2.0 * left) > ACCEPTED * max(1.0, left**2):
        return (
            f"beside rows of norm {size:.1e} the least errors, of norm {left:.1e}, are lost in "
            "rounding"
        )
    proof = best.certificate
    return (
        f"the best answer has residuals of {proof.primal:.1e} primal, {proof.dual:.1e} dual and "
        f"{proof.gap:.1e} gap, of which {ACCEPTED:g} are accepted"
    )


def approximate_minimiser(A: Array, b: Array, cones: Sequence[Cone]) -> Array:
    """What `solve_cone_problem` finds, to moderate accuracy and without a certificate.

    For answers that are only compared with each other.
    """
    R, c = compress_to_triangle(A, b)
    start, _ = solve_unconstrained(R, c)
    if all(measure_cone_violation(cone, start) == 0.0 for cone in cones):
        return start
    unit, careful = ATTEMPTS[0]
    outcome = ClarabelForm(R, c, cones, start).solve(unit, careful, MODERATE)
    if outcome is None or str(outcome.status) != "Solved":
        return solve_cone_problem(A, b, cones).x
    return np.asarray(start + unit * np.array(outcome.x[: len(start)]))


def solve_unconstrained(R: Array, c: Array) -> tuple[Array, bool]:
    """The minimiser of ``||R x - c||^2``, and whether there is but one."""
    diagonal = np.abs(np.diag(R))
    unique = len(diagonal) == R.shape[1]
    if unique and np.all(diagonal > SINGULAR * np.linalg.norm(R, axis=0)):
        return np.asarray(solve_triangular(R, c, check_finite=False)), True
    return np.asarray(np.linalg.lstsq(R, c, rcond=None)[0], dtype=np.float64), False


def compress_to_triangle(A: Array, b: Array) -> tuple[Array, Array]:
    """Triangular R and c with ``||A x - b||^2 = ||R x - c||^2 + constant``."""
    n = A.shape[1]
    R = np.asarray(np.linalg.qr(np.column_stack([A, b]), mode="r"))[:n]
    return R[:, :n], R[:, n]


def finish_solution(
    A: Array,
    b: Array,
    cones: Sequence[Cone],
    answer: tuple[Array, Sequence[np.ndarray], Sequence[Array]],
    iterations: int,
) -> ConeSolution:
    """A candidate with multipliers of the whole criterion, their signs made right."""
    x, faces, halves = answer
    pairs = zip(cones, halves, strict=True)
    multipliers = tuple(2.0 * project_on_dual_cone(cone, half) for cone, half in pairs)
    certificate = certify_answer(A, b, x, cones, multipliers)
    return ConeSolution(x, multipliers, tuple(faces), certificate, iterations)


class RepeatedSolver:
    """The same cones around an answer x, with one right-hand side after another.

    For replicates, which need no certificate of their own: the matrices are built once, and
    one solution of moderate accuracy is taken as it is. Each is solved from the beginning, so
    that it is the same whatever was solved before it, and by whom.
    """

    def __init__(self, A: Array, b: Array, cones: Sequence[Cone], x: Array) -> None:
        self.A, self.b, self.cones, self.x = A, b, cones, x
        self.Q, self.R = np.linalg.qr(A)
        self.form = ClarabelForm(self.R, self.Q.T @ b, cones, x)

    def __reduce__(self) -> tuple[type[RepeatedSolver], tuple[object, ...]]:
        """What crosses processes: the solver's matrices are built again."""
        return RepeatedSolver, (self.A, self.b, self.cones, self.x)

    def minimisers(
        self, changes: Array, engine: Engine = HERE, threads: int | None = None
    ) -> Array:
        """The answers after changes of b, shape (count, rows).

        In this process all but small problems are shared between threads: the solver works without
        the interpreter. There are as many as processors by default. Neither they nor an engine ever
        change the answers.
        """
        if engine != HERE:
            tasks = [changes[k : k + FEWEST_EACH] for k in range(0, len(changes), FEWEST_EACH)]
            work = partial(find_minimisers, self)
            return np.vstack(
                gather_side_by_side(work, tasks, engine, ignore_progress, "replicates")
            )
        if threads is None:
            most = len(changes) // FEWEST_EACH if self.form.unknowns > WORTHWHILE else 1
            threads = max(1, min(count_processors(), most))
        if threads == 1:
            return self.in_turn(changes)
        found = np.empty((len(changes), self.form.unknowns))
        with ThreadPoolExecutor(threads) as pool:
            parts = pool.map(self.in_turn, [changes[k::threads] for k in range(threads)])
            for k, part in enumerate(parts):
                found[k::threads] = part
        return found

    def in_turn(self, changes: Array) -> Array:
        """The same, one after another."""
        solver = self.form.solver(*ATTEMPTS[0], MODERATE)
        found = np.empty((len(changes), self.form.unknowns))
        for k, change in enumerate(changes):
            x = self._attempt(solver, change)
            if x is None:
                x = solve_cone_problem(self.A, self.b + change, self.cones).x
                # nobody knows what is left of one that gave up
                solver = self.form.solver(*ATTEMPTS[0], MODERATE)
            found[k] = x
        return found

    def _attempt(self, solver: DefaultSolver, change: Array) -> Array | None:
        """The answer after a change of b; None where the solver does not reach it."""
        g = (self.R @ self.x - self.Q.T @ (self.b + change)) / self.form.precision
        # without constraints the step would be as long: in its unit the solver seldom falls short
        unit = max(ATTEMPTS[0][0], float(np.linalg.norm(self.Q.T @ change)))
        solver.update(q=self.form.linear(g, unit), b=self.form.b / unit)
        outcome = attempt_solution(solver.solve)
        if outcome is None or str(outcome.status) != "Solved":
            return None
        return np.asarray(self.x + unit * np.array(outcome.x[: self.form.unknowns]))


@limit_to_one_thread
def find_minimisers(repeated: RepeatedSolver, changes: Array) -> Array:
    """The answers after some changes of b, as a task of its own."""
    return repeated.in_turn(changes)
