"""Distances from what is believed: their derivatives, invariances and minimisers."""

from __future__ import annotations

from dataclasses import replace

import cvxpy
import numpy as np
import pytest
import robots
import toy
from differences import assert_slope
from scipy.spatial.transform import Rotation

from dynident.api import identify
from dynident.conic.cones import SemidefiniteCone, ZeroCone
from dynident.consistency.constraints import TotalMass
from dynident.consistency.disbelief import FAR
from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.prior import GYRATION, METRICS, NO_PRIOR, Prior, build_belief
from dynident.core.errors import InputError
from dynident.core.inertia import (
    PSEUDO_INERTIA_BASIS,
    from_com,
    to_inertial_parameters,
    to_pseudo_inertia,
    transform_body,
)
from dynident.dynamics.idim import build_idim
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem

LINKS = ("one", "two", "three")
FILE = robots.bodies(3, seed=4)
CHANGED = robots.bodies(3, seed=5)
THICKENING = np.diag([1.0, 1.0, 1.0, 0.0]) * GYRATION**2


def prior(metric, weight=1.0, phis=FILE):
    return Prior(build_belief(phis, LINKS), metric, weight)


def centre(metric):
    """Where the distance is zero: the file's bodies, inflated for the divergence."""
    phis = build_belief(FILE, LINKS).inflated if metric == "entropic" else to_pseudo_inertia(FILE)
    return to_inertial_parameters(phis).ravel()


def modelled(prior_, theta, at=None):
    rows, target = prior_.rows(len(theta), theta if at is None else at)
    return rows, target, float(np.sum((rows @ theta - target) ** 2))


@pytest.mark.parametrize("metric", METRICS)
def test_a_distance_is_zero_at_its_centre_and_positive_elsewhere(metric):
    p, at = prior(metric), centre(metric)
    assert p.distance(at) == pytest.approx(0.0, abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert p.distance(at * (1.0 + 0.02 * rng.normal(size=len(at)))) > 1e-5
    assert p.distance(CHANGED.ravel()) > 0.1


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("where", ["centre", "elsewhere"])
def test_rows_are_gradient_and_hessian_of_the_distance(metric, where):
    """By central differences, in units in which a body is of order one."""
    p = prior(metric, weight=0.7)
    theta = centre(metric) if where == "centre" else CHANGED.ravel()
    unit = np.tile([1.0] + [0.1] * 3 + [0.01] * 6, 3)
    rows, target, _ = modelled(p, theta)
    gradient = 2.0 * rows.T @ (rows @ theta - target) * unit
    hessian = 2.0 * rows.T @ rows * np.outer(unit, unit)
    count = len(theta)
    e = np.diag(unit)
    size, second = np.abs(hessian).max(), 1e-3
    for k in range(count):
        assert_slope(lambda t, k=k: p.distance(theta + t * e[k]), gradient[k], 1e-5, scale=size)
    rng = np.random.default_rng(1)
    for direction in rng.normal(size=(6, count)) / np.sqrt(count):
        step = second * direction * unit
        values = [p.distance(theta + k * step) for k in (-1.0, 0.0, 1.0)]
        curvature = (values[0] - 2.0 * values[1] + values[2]) / second**2
        assert curvature == pytest.approx(direction @ hessian @ direction, rel=1e-4)


@pytest.mark.parametrize("metric", METRICS)
def test_whether_rows_depend_on_the_body_is_what_the_metric_says(metric):
    p = prior(metric)
    here, there = p.rows(30, centre(metric))[0], p.rows(30, CHANGED.ravel())[0]
    assert np.allclose(here, there) == METRICS[metric].fixed
    np.testing.assert_allclose(p.rows(30)[0], p.rows(30, centre("entropic"))[0])


def test_distances_are_those_of_the_formulas():
    J, J0 = to_pseudo_inertia(CHANGED), to_pseudo_inertia(FILE)
    inflated = J0 + FILE[:, 0, None, None] * THICKENING
    ratio = np.linalg.solve(inflated, J - J0)
    theta = CHANGED.ravel()
    riemannian = 0.5 * np.einsum("kij,kji->", ratio, ratio)
    assert prior("pullback").distance(theta) == pytest.approx(riemannian)
    D = np.diag([10.0, 10.0, 10.0, 1.0])
    plain = 0.5 * sum(np.sum((D @ d @ D) ** 2) for d in J - J0)
    assert prior("euclidean").distance(theta) == pytest.approx(plain)
    sizes = 0.0
    for d, body in zip(J - J0, inflated, strict=True):
        mass, length = body[3, 3], np.sqrt(np.trace(body[:3, :3]) / body[3, 3] / 3.0)
        D = np.diag([1.0 / length] * 3 + [1.0])
        sizes += 0.5 * np.sum((D @ d @ D / mass) ** 2)
    assert prior("weighted").distance(theta) == pytest.approx(sizes)
    bregman = sum(
        np.trace(a @ np.linalg.inv(b)) - np.linalg.slogdet(a)[1] + np.linalg.slogdet(b)[1] - 4.0
        for a, b in zip(J, inflated, strict=True)
    )
    assert prior("entropic").distance(theta) == pytest.approx(bregman)


def test_the_divergence_is_the_pullback_nearby_and_infinite_outside():
    at = centre("entropic")
    flat = prior("pullback", phis=at.reshape(3, 10))
    same = replace(flat, belief=replace(flat.belief, inflated=flat.belief.centre))
    curved = replace(same, metric="entropic")
    step = 1e-4 * (CHANGED.ravel() - at)
    assert curved.distance(at + step) == pytest.approx(same.distance(at + step), rel=1e-3)
    outside = at.copy()
    outside[4] = -1.0
    assert curved.distance(outside) == np.inf
    assert same.distance(outside) < np.inf


# Invariances: J -> T J T^T for another frame, or other units of length and mass.

ROTATION = Rotation.from_euler("xyz", [0.4, -1.1, 2.0]).as_matrix()
SHIFT = np.array([0.3, -0.2, 0.5])


def change(kind):
    """The congruence of a change of frame or units."""
    T = np.eye(4)
    if kind == "rotation":
        T[:3, :3] = ROTATION
    elif kind == "translation":
        T[:3, 3] = SHIFT
    elif kind == "millimetres":
        T[:3, :3] *= 1000.0
    else:  # grams
        T *= np.sqrt(1000.0)
    return T


def distance(metric, J, J0, inflated):
    """Of one body, from the metric's own rows."""
    rows, target = METRICS[metric].rows(J0, inflated, J)
    return float(np.sum((rows @ to_inertial_parameters(J) - target) ** 2))


INVARIANT = {
    "pullback": {"rotation", "translation", "millimetres", "grams"},
    "entropic": {"rotation", "translation", "millimetres", "grams"},
    "weighted": {"rotation", "millimetres", "grams"},
    "euclidean": {"rotation"},
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["rotation", "translation", "millimetres", "grams"])
def test_what_each_metric_depends_on(metric, kind):
    J, J0 = to_pseudo_inertia(CHANGED[0]), to_pseudo_inertia(FILE[0])
    inflated = J0 + FILE[0, 0] * THICKENING
    T = change(kind)
    here = distance(metric, J, J0, inflated)
    there = distance(metric, *(T @ matrix @ T.T for matrix in (J, J0, inflated)))
    assert (there == pytest.approx(here, rel=1e-6)) == (kind in INVARIANT[metric])


@pytest.mark.parametrize("metric", ["pullback", "entropic"])
def test_a_belief_says_the_same_in_any_frame(metric):
    """Thickening included, which is a ball's in any frame."""
    moved = [np.array([transform_body(phi, ROTATION, SHIFT) for phi in s]) for s in (FILE, CHANGED)]
    here = prior(metric).distance(CHANGED.ravel())
    there = prior(metric, phis=moved[0]).distance(moved[1].ravel())
    assert there == pytest.approx(here, rel=1e-6)


# Belief


def test_bodies_without_mass_are_not_believed():
    phis = FILE.copy()
    phis[1] = 0.0
    belief = build_belief(phis, LINKS)
    assert belief.bodies == (0, 2)
    assert belief.doubtful == ()
    p = Prior(belief)
    theta = CHANGED.ravel().copy()
    before = p.distance(theta)
    theta[10:20] *= 3.0
    assert p.distance(theta) == before
    rows, target = p.rows(33)
    assert rows.shape == (20, 33)
    assert len(target) == 20
    assert not np.any(rows[:, 10:20])
    assert not np.any(rows[:, 30:])


def test_inconsistent_bodies_are_inflated_and_named():
    phis = FILE.copy()
    phis[2] = from_com(1.0, [0.1, 0.0, 0.0], np.diag([0.01, 0.01, 0.03]))  # no triangle
    phis[0] = from_com(2.0, [0.1, 0.0, 0.0], np.zeros((3, 3)))  # a point
    belief = build_belief(phis, LINKS)
    assert belief.doubtful == ("one", "three")
    for matrices in (belief.centre, belief.inflated):
        assert np.linalg.eigvalsh(matrices)[:, 0].min() > 0.0
    words = Prior(belief).words
    assert "repaired: one, three" in words
    assert "repaired" not in prior("pullback").words


def test_a_consistent_body_is_the_centre_as_it_is():
    belief = build_belief(FILE, LINKS)
    # entries are sums of up to three moments, in the order of the kernel that adds them: each
    # order is within eps times the sum of their sizes, which is under thrice the largest entry
    assert robots.relative(belief.centre, to_pseudo_inertia(FILE)) < 6.0 * np.finfo(float).eps
    np.testing.assert_allclose(belief.inflated - belief.centre, FILE[:, 0, None, None] * THICKENING)


@pytest.mark.parametrize("metric", METRICS)
def test_a_weight_multiplies_the_squared_distance(metric):
    theta = CHANGED.ravel()
    once, thrice = prior(metric), prior(metric, weight=3.0)
    assert thrice.distance(theta) == pytest.approx(3.0 * once.distance(theta))
    for one, three in zip(once.rows(30, theta), thrice.rows(30, theta), strict=True):
        np.testing.assert_allclose(three, np.sqrt(3.0) * one)
    assert "weight 3" in thrice.words
    assert METRICS[metric].words in once.words


def test_no_weight_is_no_prior():
    off = prior("pullback", weight=0.0)
    assert off.rows(30)[0].shape == (0, 30)
    assert off.words == "none"
    assert NO_PRIOR.words == "none"
    assert NO_PRIOR.distance(CHANGED.ravel()) == 0.0


# Through a fit


def setup(n=3, noise=1.0, seed=0, samples=40, wrong=1.0):
    """A robot whose file has bodies `wrong` times the true ones, and whitened rows."""
    robot = toy.arm(n)
    base, system, theta = toy.setup(robot, noise=noise, seed=seed, samples=samples)
    filed = replace(robot, nominal=wrong * robot.nominal)
    return replace(base, idim=build_idim(filed)), system, theta


def by_cvxpy(admitted, system):
    """The criterion with its log-determinants, and every cone, as a convex program."""
    space, p = admitted.space, admitted.prior
    x = cvxpy.Variable(len(space.unit))
    criterion = cvxpy.sum_squares(system.A @ space.matrix @ x - system.b)
    criterion += cvxpy.sum_squares(admitted.open @ x)
    for k, J0 in zip(p.belief.bodies, p.belief.inflated, strict=True):
        # in the coordinates in which J0 is the unit matrix
        root = np.linalg.inv(np.linalg.cholesky(J0))
        basis = root @ PSEUDO_INERTIA_BASIS @ root.T
        span = slice(10 * k, 10 * k + 10)
        columns = basis.reshape(10, 16).T * space.unit[span]
        ratio = cvxpy.reshape(columns @ x[span], (4, 4), "F")
        bregman = cvxpy.trace(ratio) - cvxpy.log_det(ratio) - 4.0
        criterion += admitted.kappa**2 * p.weight * bregman
    constraints = []
    for cone in admitted.cones:
        if isinstance(cone, SemidefiniteCone):
            d = len(cone.floor)
            matrix = cvxpy.reshape(cone.basis.reshape(-1, d * d).T @ x, (d, d), "F")
            constraints.append(matrix - cone.floor >> 0)
        elif isinstance(cone, ZeroCone):
            constraints.append(cone.G @ x == cone.h)
        else:
            constraints.append(cone.G @ x >= cone.h)
    program = cvxpy.Problem(cvxpy.Minimize(criterion), constraints)
    program.solve(solver=cvxpy.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    return x.value


def criterion(admitted, system, x):
    """Written out once more: data, divergence, open directions."""
    space, p = admitted.space, admitted.prior
    theta = space.unit * x
    total = np.sum((system.A @ space.matrix @ x - system.b) ** 2)
    total += np.sum((admitted.open @ x) ** 2)
    for k, J0 in zip(p.belief.bodies, p.belief.inflated, strict=True):
        J = to_pseudo_inertia(theta[10 * k : 10 * k + 10])
        ratio = np.linalg.solve(J0, J)
        bregman = np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4.0
        total += admitted.kappa**2 * p.weight * bregman
    return float(total)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # cvxpy just short of 1e-9
@pytest.mark.parametrize(
    ("noise", "weight", "kappa", "wrong", "constraints"),
    [
        (0.05, 1.0, 1.0, 1.0, ()),
        (1.0, 1.0, 1.0, 1.0, ()),
        (1.0, 0.01, 1.0, 1.0, ()),
        (0.1, 0.05, 2.0, 5.0, ()),
        (3.0, 10.0, 0.5, 0.3, ()),
        (1.0, 1.0, 1.0, 1.0, (TotalMass(5.0),)),
    ],
)
def test_the_entropic_answer_minimises_the_true_criterion(noise, weight, kappa, wrong, constraints):
    """Newton's iteration ends where cvxpy's log_det does, with every cone on both sides."""
    base, system, _ = setup(noise=noise, wrong=wrong)
    knowledge = Knowledge(
        metric="entropic", prior_weight=weight, constraints=constraints, gyration=0.0
    )
    admitted = build_feasible_set(base, system, knowledge, kappa)
    held = admitted.solve(system)
    theirs = by_cvxpy(admitted, system)
    ours_value, theirs_value = (criterion(admitted, system, x) for x in (held.x, theirs))
    assert ours_value == pytest.approx(theirs_value, rel=1e-7, abs=1e-7)
    assert ours_value <= theirs_value + 1e-8 * max(1.0, theirs_value)
    # along directions that only the prior sees the criterion is flat
    np.testing.assert_allclose(held.x, theirs, atol=1e-3 * np.abs(theirs).max())


@pytest.mark.parametrize("seed", range(4))
def test_the_entropic_answer_has_no_way_down(seed):
    base, system, _ = setup(noise=2.0, seed=seed)
    admitted = build_feasible_set(base, system, Knowledge(metric="entropic"))
    held = admitted.solve(system)
    value = criterion(admitted, system, held.x)
    rng = np.random.default_rng(seed)
    for _ in range(3):  # answers to other rows are admitted as well
        moved = system.b + rng.normal(size=len(system.b))
        other = admitted.solve(replace(system, b=moved)).x
        for share in (1e-3, 1e-2, 0.3, 1.0):
            there = criterion(admitted, system, held.x + share * (other - held.x))
            assert there >= value - 1e-9 * max(1.0, value)


@pytest.mark.parametrize("metric", METRICS)
def test_a_heavy_prior_is_believed_and_a_light_one_is_not(metric):
    base, system, theta = setup(noise=0.05, wrong=1.5)
    bodies = base.idim.inertial
    far = {}
    for weight in (1e-6, 1e8):
        known = Knowledge(metric=metric, prior_weight=weight)
        held = build_feasible_set(base, system, known).solve(system)
        ratio = held.theta[:bodies:10] / (1.5 * theta[:bodies:10])
        far[weight] = np.abs(ratio - 1.0).max()
        if weight == 1e-6:
            light = held
    assert far[1e8] < 1e-2
    assert far[1e-6] > 0.1
    free = build_feasible_set(base, system, Knowledge(prior="none")).solve(system)
    shift = np.linalg.norm(system.A @ (light.beta - free.beta))
    assert shift < 0.05 * np.linalg.norm(system.b)


@pytest.mark.parametrize("metric", METRICS)
def test_the_truth_in_the_file_makes_the_estimate_better(metric):
    base, system, theta = setup(noise=2.0)
    truth = base.matrix @ theta
    errors = [
        np.linalg.norm(
            system.A @ (build_feasible_set(base, system, known).solve(system).beta - truth)
        )
        for known in (Knowledge(prior="none"), Knowledge(metric=metric, prior_weight=10.0))
    ]
    assert errors[1] < errors[0]


def test_kappa_is_a_weight_of_the_prior():
    base, system, _ = setup(noise=1.0)
    by_kappa = build_feasible_set(base, system, Knowledge(), kappa=2.0).solve(system)
    by_weight = build_feasible_set(base, system, Knowledge(prior_weight=4.0)).solve(system)
    np.testing.assert_allclose(by_kappa.beta, by_weight.beta, atol=1e-6 * np.abs(system.b).max())


# Refusals


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"metric": "pulback"}, "metric 'pulback' is not known; did you mean 'pullback'"),
        ({"prior": "nominl"}, "prior 'nominl' is not known; did you mean 'nominal'"),
        ({"consistency": "pseudo"}, "consistency 'pseudo' is not known"),
        ({"prior_weight": -1.0}, "prior_weight is -1.0 but should be greater"),
        ({"prior_weight": np.nan}, "prior_weight is nan but should be a finite number"),
        ({"prior_weight": np.inf}, "prior_weight is inf but should be a finite number"),
        (
            {"prior_weight": 1e100},
            r"prior_weight is 1e\+100 but should be less than",
        ),
        ({"prior_weight": "heldout"}, "prior_weight is 'heldout' but should be a valid number"),
        ({"prior_weight": np.ones(2)}, r"prior_weight is array\(.*should be a valid number"),
        ({"prior_weight": "held-out"}, "needs a log"),
    ],
)
def test_unknown_names_and_senseless_weights_are_refused(known, message):
    with pytest.raises(InputError, match=message):
        Knowledge(**known).of(toy.arm(2))


def test_a_prior_that_is_not_told_otherwise():
    assert Knowledge().of(toy.arm(2)).words == Knowledge(metric="pullback").of(toy.arm(2)).words
    prior_ = Knowledge(prior_weight=np.float32(2.0)).of(toy.arm(2))
    assert (prior_.metric, prior_.weight, type(prior_.weight)) == ("pullback", 2.0, float)
    assert Knowledge().of(toy.arm(2)).weight == 1.0


def test_a_file_without_inertials_has_no_prior():
    bare = toy.arm(2, nominal=False)
    assert Knowledge().of(bare) is NO_PRIOR
    assert Knowledge(consistency="base").of(toy.arm(2)) is NO_PRIOR
    with pytest.raises(InputError, match=r"metric belongs to a prior, but .* has no inertials"):
        Knowledge(metric="entropic").of(bare)


@pytest.mark.long
@pytest.mark.parametrize("factor", [3.0, 1.0 / 4.0])
def test_links_that_the_log_disbelieves_are_named(factor):
    robot = toy.arm(4)
    nominal = robot.nominal.copy()
    nominal[[1, 3]] *= factor
    wrong = replace(robot, nominal=nominal)
    recording, _ = toy.log(robot, seconds=8.0, noise=0.5)
    samples = prepare(recording, 10.0)

    def named(robot):
        found = identify(Problem(robot, samples), bootstrap=0)
        return [w for w in found.warnings if "disagrees with the robot file" in w]

    assert named(robot) == []
    (words,) = named(wrong)
    assert "link_2 (" in words
    assert "link_4 (" in words
    assert "link_1" not in words
    assert "link_3" not in words


@pytest.mark.parametrize(("factor", "state"), [(1.0 / 4.0, "trusted"), (1.0 / 10.0, "doubtful")])
def test_a_mass_that_is_five_times_off_the_file_is_doubtful(factor, state):
    robot = toy.arm(4)
    nominal = robot.nominal.copy()
    nominal[1] *= factor
    recording, _ = toy.log(robot, seconds=8.0, noise=0.5)
    samples = prepare(recording, 10.0)
    found = identify(Problem(replace(robot, nominal=nominal), samples), bootstrap=0, doctor=False)
    assert found.verdict.state == state
    assert ("link_2 has " in found.verdict.words) == (state == "doubtful")


def test_a_gripper_that_the_file_forgot_is_named_by_its_moments():
    robot = toy.arm(4)
    bodies = robot.nominal.copy()
    bodies[3] += from_com(0.3 * bodies[3, 0], [0.0, 0.02, 0.3], 1e-3 * np.eye(3))
    idim = build_idim(robot)
    q, dq, ddq = toy.motion(4, 8.0, 0)
    tau = idim.torque(toy.true_parameters(idim, bodies), q, dq, ddq)
    tau = tau + 0.5 * np.random.default_rng(1).normal(size=tau.shape)
    samples = prepare(Recording("log", toy.RATE, q, tau), 10.0)
    (own,) = identify(Problem(robot, samples), bootstrap=0, doctor=False).estimate.disbelieved
    assert own.body == 3
    assert own.mass < FAR < own.most
    free = identify(Problem(robot, samples), bootstrap=0, doctor=False, prior="none")
    assert free.estimate.disbelieved == ()


def test_what_the_log_tells_of_a_link_is_its_share_of_what_is_known():
    """Much noise: all is believed. Little: what torques show is told, what they do not is not."""
    robot = toy.arm(3)
    shares = []
    for noise in (1e4, 0.01):
        recording, _ = toy.log(robot, seconds=8.0, noise=noise)
        samples = toy.on_its_motion(recording, 10.0)
        found = identify(Problem(robot, samples), bootstrap=0, doctor=False)
        shares.append(found.estimate.informed)
    loud, quiet = shares
    assert loud.shape == (3, 3)
    assert np.all(loud[1:] < 0.2)
    assert np.all(quiet[1:, 1] > 0.5)
    # the first link turns about the vertical: one moment of inertia, and no mass
    assert quiet[0, 0] < 0.01
    assert np.all(quiet >= loud - 1e-6)
    without = identify(Problem(robot, samples), bootstrap=0, doctor=False, prior="none")
    assert without.estimate.informed is None
