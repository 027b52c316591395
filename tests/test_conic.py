"""The cone problem: optimality, infeasibility and sensitivity, judged by code of this file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import cvxpy
import numpy as np
import pytest
import robots
from differences import assert_slope
from scipy.spatial.transform import Rotation
from thin import first

from dynident.conic import solve as solve_module
from dynident.conic.active_set import Face, LinearisedConstraints, linearise_constraints
from dynident.conic.cones import (
    NonnegativeCone,
    SemidefiniteCone,
    ZeroCone,
    list_constraint_names,
    measure_cone_violation,
    smat,
    svec,
)
from dynident.conic.infeasible import bound_nearest_distance, is_feasible
from dynident.conic.interior import STEPS, ClarabelForm
from dynident.conic.solve import RepeatedSolver, compress_to_triangle, solve_cone_problem
from dynident.consistency.constraints import Bounds, Fixed, LinkMass, TotalMass
from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import ComputationError, InfeasibleError
from dynident.core.factors import System
from dynident.core.inertia import INERTIAL, PSEUDO_INERTIA_BASIS, to_pseudo_inertia
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.robot.drives import Drives
from dynident.robot.model import Joint, Robot

TIGHT = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
"""Settings of Clarabel where it is the oracle."""


def bodies(p, links, floor=1e-3):
    """One definite matrix a link, its ten parameters among p unknowns."""
    cones = []
    for k in range(links):
        basis = np.zeros((p, 4, 4))
        basis[10 * k : 10 * k + 10] = PSEUDO_INERTIA_BASIS
        cones.append(SemidefiniteCone(f"link {k}", basis, floor * np.eye(4)))
    return cones


def problem(seed, links=3, rows=25):
    """A random fit whose unconstrained answer is inconsistent, with one sign."""
    rng = np.random.default_rng(seed)
    p = 10 * links + 1
    A = rng.normal(size=(rows, p))
    b = rng.normal(size=rows) * 5.0
    cones = bodies(p, links)
    cones.append(NonnegativeCone(("friction",), np.eye(p)[[-1]], np.array([0.1])))
    # full column rank, so that the answer is unique
    return np.vstack([A, 0.1 * np.eye(p)]), np.concatenate([b, np.zeros(p)]), cones


def mixed(seed):
    """The same with equalities, and inequalities of which some bind and some do not."""
    A, b, cones = problem(seed)
    p = A.shape[1]
    e = np.eye(p)
    total = e[0] + e[10] + e[20]
    cones.insert(1, ZeroCone(("total mass", "mx of 1 = my of 2"),
                          np.array([total, e[11] - e[22]]), np.array([2.0, 0.0])))  # fmt: skip
    cones.append(
        NonnegativeCone(
            ("m of 0 <= 1", "Izz of 1 <= 0.2", "Izz of 1 >= -10"),
            np.array([-e[0], -e[19], e[19]]),
            np.array([-1.0, -0.2, -10.0]),
        )
    )
    return A, b, cones


def kkt(A, b, x, cones, multipliers):
    """Stationarity, infeasibility, wrong signs and complementarity of ``||A x - b||^2``.

    Forces over ``||2 A^T b||``, slacks over the largest of x where that is above one.
    """
    gradient = 2.0 * A.T @ (A @ x - b)
    missed, wrong, product = 0.0, 0.0, 0.0
    for cone, multiplier in zip(cones, multipliers, strict=True):
        if isinstance(cone, SemidefiniteCone):
            s = np.einsum("k,kij->ij", x, cone.basis) - cone.floor
            gradient -= np.einsum("kij,ij->k", cone.basis, multiplier)
            np.testing.assert_allclose(multiplier, multiplier.T, atol=1e-12 * abs(b).max())
            missed = max(missed, -np.linalg.eigvalsh(s)[0])
            wrong = max(wrong, -np.linalg.eigvalsh(multiplier)[0])
        else:
            s = cone.G @ x - cone.h
            gradient -= cone.G.T @ multiplier
            missed = max(missed, np.abs(s).max() if isinstance(cone, ZeroCone) else -s.min())
            wrong = max(wrong, 0.0 if isinstance(cone, ZeroCone) else -multiplier.min())
        product += abs(np.sum(s * multiplier))
    scale = 2.0 * np.linalg.norm(A.T @ b)
    size = max(1.0, np.abs(x).max())
    return np.linalg.norm(gradient) / scale, missed / size, wrong / scale, product / scale / size


def oracle(cones, x):
    """The constraints as cvxpy has them, by name."""
    found = {}
    for cone in cones:
        if isinstance(cone, SemidefiniteCone):
            d, seen = len(cone.floor), np.flatnonzero(np.any(cone.basis, axis=(1, 2)))
            matrix = cvxpy.reshape(cone.basis[seen].reshape(-1, d * d).T @ x[seen], (d, d), "F")
            found.setdefault(cone.name, []).append(matrix - cone.floor >> 0)
            continue
        for name, row, bound in zip(cone.name, cone.G, cone.h, strict=True):
            side = row @ x == bound if isinstance(cone, ZeroCone) else row @ x >= bound
            found.setdefault(name, []).append(side)
    return found


def by_cvxpy(A, b, cones):
    """Minimiser of cvxpy with Clarabel, and the criterion there."""
    x = cvxpy.Variable(A.shape[1])
    constraints = [c for group in oracle(cones, x).values() for c in group]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(A @ x - b)), constraints)
    program.solve(solver=cvxpy.CLARABEL, **TIGHT)
    return x.value, float(np.sum((A @ x.value - b) ** 2))


def feasible_for_cvxpy(cones, kept, p):
    """Whether the constraints of these names can all hold."""
    x = cvxpy.Variable(p)
    constraints = [c for name, group in oracle(cones, x).items() if name in kept for c in group]
    if not constraints:
        return True
    # the norm keeps the problem bounded where the constraints do not
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x)), constraints)
    program.solve(solver=cvxpy.CLARABEL)
    assert program.status in ("optimal", "infeasible"), program.status
    return program.status == "optimal"


def assert_irreducible(conflict, cones, p):
    """The named constraints cannot all hold, and without any one of them they can."""
    assert conflict
    assert set(conflict) <= set(list_constraint_names(cones))
    assert not feasible_for_cvxpy(cones, set(conflict), p), conflict
    for spared in set(conflict):
        assert feasible_for_cvxpy(cones, set(conflict) - {spared}, p), (spared, conflict)


def test_svec_is_an_isometry_and_smat_its_inverse():
    rng = np.random.default_rng(0)
    a, b = (m + m.T for m in rng.normal(size=(2, 4, 4)))
    assert svec(a) @ svec(b) == pytest.approx(np.trace(a @ b))
    np.testing.assert_allclose(smat(svec(a)), a)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # cvxpy just short of 1e-9
@pytest.mark.parametrize("make", [problem, mixed])
@pytest.mark.parametrize("seed", range(6))
def test_answer_is_that_of_cvxpy(make, seed):
    A, b, cones = make(seed)
    x, theirs = by_cvxpy(A, b, cones)
    solution = solve_cone_problem(A, b, cones)
    ours = np.sum((A @ solution.x - b) ** 2)
    assert ours == pytest.approx(theirs, rel=1e-8)
    # the criterion is 0.1^2 at its flattest, so that 1e-9 in it is 3e-4 in x
    np.testing.assert_allclose(A @ solution.x, A @ x, atol=1e-5 * np.linalg.norm(b))
    np.testing.assert_allclose(solution.x, x, atol=1e-4)


@pytest.mark.parametrize("make", [problem, mixed])
@pytest.mark.parametrize("seed", range(12))
def test_karush_kuhn_tucker(make, seed):
    """On the boundary, at 1e-8 of ``||A^T b||``."""
    A, b, cones = make(seed)
    solution = solve_cone_problem(A, b, cones)
    assert max(kkt(A, b, solution.x, cones, solution.multipliers)) < 1e-8
    assert solution.certificate.worst < 1e-8
    assert any(
        face.shape[1]
        for cone, face in zip(cones, solution.faces)
        if isinstance(cone, SemidefiniteCone)
    )


def test_multipliers_of_equalities_have_the_sign_of_their_force():
    """Moving the right-hand side changes the criterion as the multiplier says."""
    A, b, cones = mixed(0)
    solution = solve_cone_problem(A, b, cones)
    at = next(k for k, cone in enumerate(cones) if isinstance(cone, ZeroCone))
    sizes = solution.multipliers[at]
    for row in range(2):

        def cost(t, row=row):
            moved = [*cones]
            moved[at] = ZeroCone(cones[at].name, cones[at].G, cones[at].h + t * np.eye(2)[row])
            x = solve_cone_problem(A, b, moved).x
            return np.sum((A @ x - b) ** 2)

        assert_slope(cost, sizes[row], 1e-3, 1e-4, scale=np.abs(sizes).max())


def interior_problem(rows=80, seed=3):
    """A fit whose unconstrained answer is consistent."""
    rng = np.random.default_rng(seed)
    cones = mixed(0)[2]
    del cones[1]  # equalities are never met by chance
    p = cones[0].basis.shape[0]
    A = rng.normal(size=(rows, p))
    inside = np.concatenate([np.tile([0.5, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1], 3), [1.0]])
    return A, A @ inside + 1e-3 * rng.normal(size=rows), cones


def test_inside_the_cones_it_is_least_squares():
    A, b, cones = interior_problem()
    solution = solve_cone_problem(A, b, cones)
    free = np.linalg.lstsq(A, b)[0]
    assert np.linalg.norm(A @ (solution.x - free)) <= 1e-7 * np.linalg.norm(b)
    assert not any(np.any(m) for m in solution.multipliers)
    assert not any(np.any(f) if f.ndim == 1 else f.shape[1] for f in solution.faces)
    assert solution.iterations == 0
    assert np.linalg.eigvalsh(to_pseudo_inertia(solution.x[:10]))[0] > 0.04


def test_the_same_torques_where_only_some_of_the_equal_answers_are_inside():
    """Fewer rows than unknowns: the shortest answer is outside, others are not."""
    A, b, cones = interior_problem(rows=20)
    shortest = np.linalg.lstsq(A, b)[0]
    assert any(measure_cone_violation(cone, shortest) > 1e-3 for cone in cones)
    solution = solve_cone_problem(A, b, cones)
    assert np.linalg.norm(A @ (solution.x - shortest)) <= 1e-7 * np.linalg.norm(b)
    assert max(measure_cone_violation(cone, solution.x) for cone in cones) < 1e-8
    for multiplier in solution.multipliers:
        assert np.abs(multiplier).max() < 1e-7 * np.linalg.norm(A.T @ b)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [1e-3, 1e-1, 1e2, 1e4, 1e6])
def test_the_unit_of_the_rows_has_no_bearing(scale, seed):
    """A log may be a million times as precise as another: refused by none, held by all."""
    A, b, cones = mixed(seed)
    x = solve_cone_problem(A, b, cones).x
    scaled = solve_cone_problem(scale * A, scale * b, cones)
    np.testing.assert_allclose(scaled.x, x, atol=1e-4)
    assert max(kkt(scale * A, scale * b, scaled.x, cones, scaled.multipliers)) < 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_a_warm_start_gives_the_same_answer(seed):
    A, b, cones = mixed(seed)
    cold = solve_cone_problem(A, b, cones)
    again = solve_cone_problem(A, b, cones, cold)
    assert again.iterations == 0
    np.testing.assert_allclose(again.x, cold.x, atol=1e-9)
    rng = np.random.default_rng(seed)
    for distance in (1e-3, 1.0, 100.0):  # from the same face to anywhere
        moved = b + distance * rng.normal(size=len(b))
        warm = solve_cone_problem(A, moved, cones, cold)
        x = solve_cone_problem(A, moved, cones).x
        np.testing.assert_allclose(warm.x, x, atol=1e-6 * max(1.0, np.abs(x).max()))
        assert max(kkt(A, moved, warm.x, cones, warm.multipliers)) < 1e-8


@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
def test_one_right_hand_side_after_another_gives_each_its_answer(size, monkeypatch):
    """However far the answers are apart, and without a second attempt."""
    A, b, cones = mixed(4)
    x = solve_cone_problem(A, b, cones).x
    rng = np.random.default_rng(0)
    changes = size * rng.normal(size=(12, len(b)))
    answers = [solve_cone_problem(A, b + change, cones).x for change in changes]
    attempts = []
    whole = solve_module.solve_cone_problem
    monkeypatch.setattr(
        solve_module, "solve_cone_problem", lambda *given: attempts.append(0) or whole(*given)
    )
    repeated = RepeatedSolver(A, b, cones, x)
    found = repeated.minimisers(changes)
    for one, answer in zip(found, answers, strict=True):
        off = np.linalg.norm(A @ (one - answer))
        assert off < 5e-3 * max(1.0, np.linalg.norm(A @ (answer - x)))
    assert not attempts
    # whoever solves it, and after what
    np.testing.assert_array_equal(repeated.minimisers(changes, threads=3), found)
    np.testing.assert_array_equal(repeated.minimisers(changes[5:6])[0], found[5])


def test_contradiction_is_named_as_such():
    G = np.array([[1.0], [-1.0]])
    cones = [NonnegativeCone(("x > 1", "x < 0"), G, np.array([1.0, 0.0]))]
    with pytest.raises(ComputationError, match="contradict"):
        solve_cone_problem(np.eye(1), np.zeros(1), cones)


def far_and_slender(p, links, at, reach=1.0, mass=1.0, trace=0.5):
    """Mass far from the axis, little of it, and little inertia: no body can be so."""
    e = np.eye(p)
    m, mx = e[10 * at], e[10 * at + 1]
    # the trace of the second moments is half that of the rotational inertia
    inertia = e[10 * at + 4] + e[10 * at + 6] + e[10 * at + 9]
    rows = np.array([-m, mx, -inertia])
    return NonnegativeCone((f"m{at} <=", f"mx{at} >=", f"trace{at} <="), rows,
                    np.array([-mass, reach * mass, -trace]))  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_conflicts_through_definite_matrices_are_irreducible(seed):
    A, b, cones = problem(seed)
    p = A.shape[1]
    cones.append(far_and_slender(p, 3, at=1))
    cones.append(NonnegativeCone(("m0 <= 50",), -np.eye(p)[[0]], np.array([-50.0])))
    with pytest.raises(InfeasibleError) as refused:
        solve_cone_problem(A, b, cones)
    assert set(refused.value.conflict) == {"link 1", "m1 <=", "mx1 >=", "trace1 <="}
    assert_irreducible(refused.value.conflict, cones, p)
    # mass at 1 m needs 1 kg m^2 of second moment: a trace of 2.1 leaves room for it
    cones[-2] = far_and_slender(p, 3, at=1, trace=2.1)
    assert max(measure_cone_violation(c, solve_cone_problem(A, b, cones).x) for c in cones) < 1e-8


def test_conflicts_between_linear_constraints_are_irreducible():
    A, b, cones = mixed(2)
    p = A.shape[1]
    e = np.eye(p)
    # the total of 2 cannot be reached by three links of 0.5
    upper = NonnegativeCone(
        tuple(f"m{k} <= 0.5" for k in range(3)), -e[[0, 10, 20]], np.full(3, -0.5)
    )
    with pytest.raises(InfeasibleError) as refused:
        solve_cone_problem(A, b, [*cones, upper])
    assert set(refused.value.conflict) == {"total mass", *upper.name}
    assert_irreducible(refused.value.conflict, [*cones, upper], p)


def test_of_several_conflicts_one_is_named():
    A, b, cones = problem(0)
    p = A.shape[1]
    cones += [far_and_slender(p, 3, at=0), far_and_slender(p, 3, at=2)]
    with pytest.raises(InfeasibleError) as refused:
        solve_cone_problem(A, b, cones)
    assert_irreducible(refused.value.conflict, cones, p)
    assert "cannot all hold" in str(refused.value)


def test_feasibility_is_decided_by_any_point():
    cones = bodies(10, 1)
    assert is_feasible(cones)
    assert is_feasible([])
    assert not is_feasible([*cones, NonnegativeCone(("m < 0",), -np.eye(10)[[0]], np.ones(1))])
    # a body may be far from the origin of the unknowns, or hardly have any room
    assert is_feasible([*cones, NonnegativeCone(("m > 1e4",), np.eye(10)[[0]], np.full(1, 1e4))])
    tight = [NonnegativeCone((f"x{k} >= 1", f"x{k} <= 1"), np.array([e, -e]), np.array([1.0, -1.0]))
             for k, e in enumerate(np.eye(10)[:1])]  # fmt: skip
    assert is_feasible([*cones, *tight])


@pytest.mark.parametrize("seed", first(range(4), 2))
def test_sensitivity_on_a_curved_face_is_that_of_differences(seed):
    A, b, cones = mixed(seed)
    solution = solve_cone_problem(A, b, cones)
    R, _ = compress_to_triangle(A, b)
    halves = [0.5 * m for m in solution.multipliers]
    active, _ = linearise_constraints(cones, solution.x, solution.faces, halves)
    assert len(active.F), "a face without curvature tests nothing"
    K = Face(R, active).sensitivity()
    flat = Face(R, LinearisedConstraints(active.c, active.C, active.F[:0])).sensitivity()
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(5, len(b)))

    def moved(t):
        xs = []
        for d in directions:
            other = solve_cone_problem(A, b + t * d, cones)
            for mine, theirs in zip(other.faces, solution.faces, strict=True):
                assert mine.shape == theirs.shape
            xs.append(other.x)
        return np.array(xs)

    pushed = directions @ A
    assert_slope(moved, pushed @ K.T, 1e-4, 1e-4)
    assert np.abs(pushed @ (flat - K).T).max() > 0.02 * np.abs(pushed @ K.T).max()


# Random problems: arms of 2 to 7 joints, noise of the order of the torque.


def serial_arm(rng):
    """2 to 7 joints with random axes and placements, one in seven of them a slide."""
    n = int(rng.integers(2, 8))
    joints = []
    for k in range(n):
        axis = rng.normal(size=3)
        joints.append(
            Joint(
                name=f"joint{k + 1}",
                link=f"link{k + 1}",
                kind="revolute" if rng.random() < 0.85 else "prismatic",
                parent=k,
                rotation=Rotation.random(rng=rng).as_matrix(),
                translation=rng.uniform(-0.4, 0.4, 3),
                axis=axis / np.linalg.norm(axis),
            )
        )
    nominal = robots.bodies(n, int(rng.integers(1 << 30)))
    return Robot("random", tuple(joints), nominal, Drives.direct(n))


def extra_constraints(rng, robot, base, theta):
    """One to three more constraints, right or wrong by up to threefold."""
    idim, found = base.idim, []
    for kind in rng.choice(6, size=int(rng.integers(1, 4)), replace=False):
        factor = float(rng.uniform(0.2, 3.0))
        k = int(rng.integers(robot.n))
        link, number, mass = robot.links[k], robot.numbers[k], float(robot.nominal[k, 0])
        if kind == 0:
            found.append(TotalMass(value=factor * float(robot.nominal[:, 0].sum())))
        elif kind == 1:
            found.append(LinkMass((link,), lower=0.5 * factor * mass, upper=factor * mass))
        elif kind == 2:
            found.append(LinkMass("all", upper=factor * mass))
        elif kind == 3:
            at = int(rng.integers(len(theta)))
            found.append(Fixed((idim.names[at],), factor * float(theta[at])))
        elif kind == 4:
            at = int(rng.integers(base.count))
            value, room = float(base.matrix[at] @ theta), abs(float(base.matrix[at] @ theta))
            lower, upper = value - factor * room, value + factor * room
            found.append(Bounds((base.names[at],), lower, upper))
        else:  # mass far from an axis about which there is little inertia
            found.append(Bounds((f"mx{number}",), lower=0.3 * factor * mass))
            found.append(Bounds((f"Iyy{number}",), upper=0.05 * mass))
            found.append(LinkMass((link,), upper=2.0 * mass))
    return tuple(found)


@dataclass(frozen=True)
class Case:
    """One random problem, from nothing but its seed."""

    robot: Robot
    base: object
    system: System
    knowledge: Knowledge


def random_case(seed):
    """Half of them with extra constraints, half with the true bodies as a weak prior."""
    rng = np.random.default_rng(seed)
    robot = serial_arm(rng)
    idim = build_idim(robot, str(rng.choice(["coulomb-viscous", "viscous", "none"])))
    base = base_parameters(idim)
    drives = rng.uniform(0.05, 1.0, len(idim.parameters) - idim.inertial)
    theta = np.concatenate([robot.nominal.ravel(), drives])
    samples = int(np.ceil(rng.uniform(1.5, 6.0) * base.count / robot.n)) + 2
    X = idim.regressor(*robots.states(robot, samples, seed=seed)).reshape(-1, len(theta))
    y = X @ theta
    sigma = np.sqrt(np.mean(y**2)) * rng.uniform(0.5, 2.0)
    rows = np.column_stack([X[:, base.kept], y + sigma * rng.normal(size=len(y))]) / sigma
    R, p = np.linalg.qr(rows, mode="r"), base.count
    constraints = extra_constraints(rng, robot, base, theta) if seed % 2 else ()
    prior = "nominal" if seed % 4 >= 2 else "none"
    system = System(R[:p, :p], R[:p, p], float(R[p, p] ** 2))
    return Case(robot, base, system, Knowledge(prior=prior, constraints=constraints))


def consistent(theta, case):
    """Eigenvalues of each 4x4 pseudo-inertia, written out, and the signs of the drives."""
    idim = case.base.idim
    for m, hx, hy, hz, xx, xy, yy, xz, yz, zz in theta[: idim.inertial].reshape(-1, 10):
        half = 0.5 * (xx + yy + zz)
        J = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy],
             [-xz, -yz, half - zz, hz], [hx, hy, hz, m]]  # fmt: skip
        if np.linalg.eigvalsh(np.array(J))[0] <= 0.0:
            return False
    signs = [p.symbol in ("Ia", "fv", "fc") for p in idim.parameters]
    return bool(np.all(theta[signs] > 0.0))


def kept_to(constraint, theta, case):
    """By how much a constraint is missed, over the size of what it bounds."""
    idim, base = case.base.idim, case.base
    masses = theta[: idim.inertial : len(INERTIAL)]
    if isinstance(constraint, TotalMass):
        return abs(masses.sum() / constraint.value - 1.0)
    if isinstance(constraint, LinkMass):
        values = masses
        if constraint.links != "all":
            values = masses[[case.robot.links.index(link) for link in constraint.links]]
    else:
        (name,) = constraint.parameters
        known = dict(zip(base.names, base.matrix, strict=True))
        known.update(zip(idim.names, np.eye(len(theta)), strict=True))
        values = np.array([known[name] @ theta])
    if isinstance(constraint, Fixed):
        return float(np.abs(values - constraint.value).max() / max(1.0, abs(constraint.value)))
    lower = -np.inf if constraint.lower is None else constraint.lower
    upper = np.inf if constraint.upper is None else constraint.upper
    missed = max(float((lower - values).max()), float((values - upper).max()), 0.0)
    return missed / max(1.0, *(abs(v) for v in (lower, upper) if np.isfinite(v)))


@dataclass
class Survey:
    """What came of many problems."""

    solved: int = 0
    infeasible: int = 0
    inconsistent: int = 0
    priced: int = 0
    failures: list = field(default_factory=list)


def survey(seeds):
    """Solve problems and judge each answer, or each refusal, independently."""
    found = Survey()
    for seed in seeds:
        case = random_case(seed)
        admitted = build_feasible_set(case.base, case.system, case.knowledge)
        A, b, _ = admitted.rows(case.system)
        free = admitted.space.value(np.linalg.lstsq(A, b)[0])
        found.inconsistent += not consistent(free, case)
        try:
            held = admitted.solve(case.system)
        except InfeasibleError as refusal:
            found.infeasible += 1
            try:
                assert_irreducible(refusal.conflict, admitted.cones, A.shape[1])
            except AssertionError as wrong:
                found.failures.append((seed, "conflict", str(wrong)))
            continue
        except ComputationError as failure:
            found.failures.append((seed, "unsolved", str(failure)))
            continue
        found.solved += 1
        found.priced += np.sum((case.system.A @ held.beta - case.system.b) ** 2) > 0.01
        if not consistent(held.theta, case):
            found.failures.append((seed, "inconsistent"))
        residuals = kkt(A, b, held.x, admitted.cones, held.solution.multipliers)
        if max(residuals) > 1e-8:
            found.failures.append((seed, "kkt", residuals))
        missed = [kept_to(c, held.theta, case) for c in case.knowledge.constraints]
        if max(missed, default=0.0) > 1e-7:
            found.failures.append((seed, "constraint", missed))
    return found


def judge(found, count):
    """All settled, most of them of interest."""
    assert not found.failures, f"{len(found.failures)} of {count}: {found.failures}"
    assert found.solved + found.infeasible == count
    assert found.infeasible > 0.05 * count
    # most unconstrained answers were inconsistent, and it costs to be consistent
    assert found.inconsistent > 0.75 * count
    assert found.priced > 0.6 * count


@pytest.mark.long
def test_random_arms_in_heavy_noise():
    judge(survey(range(25)), 25)


@pytest.mark.slow
def test_500_random_arms_in_heavy_noise():
    judge(survey(range(500)), 500)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_visible_does_not_depend_on_the_axes_of_a_face(seed):
    A, b, cones = problem(seed)
    answer = solve_cone_problem(A, b, cones)
    rng = np.random.default_rng(seed)
    faces = tuple(
        face @ np.linalg.qr(rng.normal(size=(face.shape[1],) * 2))[0]
        if isinstance(cone, SemidefiniteCone)
        else face
        for cone, face in zip(cones, answer.faces, strict=True)
    )
    turned = replace(answer, faces=faces)
    strongest = max(float(np.max(np.abs(m), initial=0.0)) for m in answer.multipliers)
    assert strongest > 0.0
    for share in (0.5, 0.05, 0.005):
        own, others = (s.visible(cones, share * strongest) for s in (answer, turned))
        for cone, one, other in zip(cones, own, others, strict=True):
            if isinstance(cone, SemidefiniteCone):
                assert one.shape == other.shape
                np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-9)


def test_a_proof_says_how_far_away_an_answer_would_be():
    above = NonnegativeCone(("x > 2",), np.array([[1.0]]), np.array([2.0]))
    below = NonnegativeCone(("x < 1",), np.array([[-1.0]]), np.array([-1.0]))
    assert bound_nearest_distance([above, below], np.array([1.0, 1.0])) == np.inf
    assert bound_nearest_distance([above], np.array([1.0])) == 2.0
    # multipliers that are none prove nothing
    assert bound_nearest_distance([above, below], np.array([-1.0, -1.0])) == 0.0
    far = NonnegativeCone(("1e-7 x > 1",), np.array([[1e-7]]), np.array([1.0]))
    assert bound_nearest_distance([far], np.array([1.0])) == pytest.approx(1e7)


def build_contradictory_form(state):
    """Constraints that no point satisfies, or only one far away."""
    rng = np.random.default_rng(state)
    bases = rng.normal(size=(3, 3, 4, 4))
    bases = bases + bases.transpose(0, 1, 3, 2)
    sizes = [10.0 ** rng.uniform(-3.0, 3.0, (3, 1, 1)) for _ in bases]
    floor = 1e-9 * np.eye(4)
    cones = [SemidefiniteCone(f"c{k}", b * s, floor) for k, (b, s) in enumerate(zip(bases, sizes))]
    R = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-3.0, 3.0, 3)
    return ClarabelForm(R, rng.normal(size=3), cones, np.zeros(3))


@pytest.mark.parametrize("state", [129, 151, 168, 212, 293])
def test_the_solver_ends_before_its_numbers_underflow(state, capfd):
    """After 150 steps it would panic."""
    form = build_contradictory_form(state)
    for unit in (3.0, 30.0):
        outcome = form.solve(unit, careful=False)
        assert outcome is not None
        assert outcome.iterations <= STEPS
    assert capfd.readouterr().err == ""


def test_a_panic_of_the_solver_is_no_message(capfd, monkeypatch):
    """What it prints as its numbers underflow says nothing a user can act on."""
    monkeypatch.setattr("dynident.conic.interior.STEPS", 1000)
    outcomes = [
        build_contradictory_form(state).solve(unit, careful=False)
        for state in (129, 151, 168, 212, 293)
        for unit in (3.0, 30.0)
    ]
    assert None in outcomes
    assert capfd.readouterr().err == ""


def test_rows_beyond_the_digits_are_named():
    """Columns of 1 to 1e14 in one problem: certified answers, or the reason why there is none."""
    refused = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(30, 8)) * np.logspace(0.0, 14.0, 8)
        x, g = rng.normal(size=8), rng.normal(size=(1, 8))
        floor = x - np.abs(rng.normal(size=8)) * (rng.random(8) < 0.5)
        cones = [ZeroCone(("sum",), g, g @ x), NonnegativeCone(tuple("abcdefgh"), np.eye(8), floor)]
        try:
            assert solve_cone_problem(A, A @ x + rng.normal(size=30), cones).worst <= 1e-7
        except ComputationError as error:
            refused.append(str(error))
    assert refused
    assert all("are lost in rounding; check units" in words for words in refused)


def test_an_unknown_that_hardly_counts_is_settled_like_any_other():
    """Its column is 1e13 times shorter than the longest, and a bound is far from its minimum."""
    A = np.diag([1e9, 1.0, 3e-5])
    A[0, 1] = 2e8
    b = A @ np.array([1.0, -1.0, 4000.0])
    cones = [NonnegativeCone(("x3",), -np.eye(3)[[2]], np.array([-100.0])),
             NonnegativeCone(("x2",), np.eye(3)[[1]], np.array([-0.5]))]  # fmt: skip
    found = solve_cone_problem(A, b, cones)
    np.testing.assert_allclose(found.x, [1.0 - 0.1, -0.5, 100.0], rtol=1e-9)
