import cvxpy
import numpy as np
import pytest

from dynident.conic import Definite, Positive, smat, solve_cone_problem, svec
from dynident.errors import ComputationError
from dynident.inertia import PSEUDO_INERTIA_BASIS, pseudo_inertia


def problem(seed, links=3, rows=25):
    """A random fit whose unconstrained answer is inconsistent, with one sign."""
    rng = np.random.default_rng(seed)
    p = 10 * links + 1
    A = rng.normal(size=(rows, p))
    b = rng.normal(size=rows) * 5.0
    cones = []
    for k in range(links):
        basis = np.zeros((p, 4, 4))
        basis[10 * k : 10 * k + 10] = PSEUDO_INERTIA_BASIS
        cones.append(Definite(f"link {k}", basis, 1e-3 * np.eye(4)))
    cones.append(Positive(("friction",), np.eye(p)[[-1]], np.array([0.1])))
    # full column rank, so that the answer is unique
    return np.vstack([A, 0.1 * np.eye(p)]), np.concatenate([b, np.zeros(p)]), cones


def test_svec_is_an_isometry_and_smat_its_inverse():
    rng = np.random.default_rng(0)
    a, b = (m + m.T for m in rng.normal(size=(2, 4, 4)))
    assert svec(a) @ svec(b) == pytest.approx(np.trace(a @ b))
    np.testing.assert_allclose(smat(svec(a)), a)


@pytest.mark.parametrize("seed", range(4))
def test_answer_is_that_of_cvxpy(seed):
    A, b, cones = problem(seed)
    x = cvxpy.Variable(A.shape[1])
    constraints = [x[-1] >= 0.1]
    for cone in cones[:-1]:
        matrix = sum(x[k] * cone.basis[k] for k in range(A.shape[1]) if np.any(cone.basis[k]))
        constraints.append(matrix - cone.floor >> 0)
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(A @ x - b)), constraints).solve(
        solver=cvxpy.CLARABEL
    )
    solution = solve_cone_problem(A, b, cones)
    ours = np.sum((A @ solution.x - b) ** 2)
    assert ours == pytest.approx(np.sum((A @ x.value - b) ** 2), rel=1e-6)
    np.testing.assert_allclose(solution.x, x.value, atol=2e-4)


@pytest.mark.parametrize("seed", range(8))
def test_karush_kuhn_tucker(seed):
    """Stationarity, feasibility and complementarity, without the solver's own words."""
    A, b, cones = problem(seed)
    solution = solve_cone_problem(A, b, cones)
    x = solution.x
    gradient = 2.0 * A.T @ (A @ x - b)
    scale = np.linalg.norm(A.T @ b)
    for cone, multiplier in zip(cones, solution.multipliers, strict=True):
        if isinstance(cone, Positive):
            gradient -= cone.G.T @ multiplier
            slack = cone.G @ x - cone.h
            assert slack.min() > -1e-7
            assert multiplier.min() > -1e-7 * scale
            assert abs(slack @ multiplier) < 1e-6 * scale
        else:
            slack = np.tensordot(x, cone.basis, axes=1) - cone.floor
            gradient -= np.einsum("kij,ij->k", cone.basis, multiplier)
            assert np.linalg.eigvalsh(slack)[0] > -1e-7
            assert np.linalg.eigvalsh(multiplier)[0] > -1e-7 * scale
            assert abs(np.sum(slack * multiplier)) < 1e-6 * scale
    assert np.linalg.norm(gradient) < 1e-7 * scale
    assert max(vars(solution.certificate).values()) < 1e-7


def test_inside_the_cones_it_is_least_squares():
    rng = np.random.default_rng(3)
    A, _, cones = problem(0)
    inside = np.concatenate([np.tile([2.0, 0, 0, 0, 1, 0, 1, 0, 0, 1], 3), [1.0]])
    b = A @ inside + 1e-3 * rng.normal(size=len(A))
    solution = solve_cone_problem(A, b, cones)
    np.testing.assert_allclose(solution.x, np.linalg.lstsq(A, b)[0], atol=1e-7)
    assert not any(np.any(m) if m.ndim == 1 else m.shape[1] for m in solution.faces)
    assert np.linalg.eigvalsh(pseudo_inertia(solution.x[:10]))[0] > 0.1


def test_contradiction_is_named_as_such():
    G = np.array([[1.0], [-1.0]])
    cones = [Positive(("x > 1", "x < 0"), G, np.array([1.0, 0.0]))]
    with pytest.raises(ComputationError, match="contradict"):
        solve_cone_problem(np.eye(1), np.zeros(1), cones)
