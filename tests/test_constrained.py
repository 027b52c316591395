"""Constrained estimators: free where nothing binds, honest where something does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import toy
from differences import assert_slope
from loops import RATE, WIDTH, closed_loop, off
from scipy import signal, stats
from thin import first

from dynident.api import identify
from dynident.conic.cones import svec
from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.constraints import Bounds, Fixed, LinkMass, Payload, TotalMass
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.prior import METRICS
from dynident.consistency.reach import SLIGHT, Reach, ReleasedDirections
from dynident.consistency.weight import WEIGHTS, factor_blocks
from dynident.core.errors import ComputationError, InfeasibleError, InputError
from dynident.core.factors import InstrumentSystem
from dynident.core.inertia import from_com, to_pseudo_inertia
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.estimators.constrained import build_constrained_setting, choose_constrained_start
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import compute_intervals
from dynident.estimators.instrumental import make_iv_step
from dynident.estimators.iteration import IterationOptions, iterate_until_settled
from dynident.methods import ESTIMATORS
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.statistics import compute_residuals, estimate_long_run_ratio
from dynident_papers.ardiani2024.prediction import (
    predict_by_instruments,
    predict_constrained_estimate,
)

FREE = {"pc-idim-ls": "wls", "pc-idim-iv": "idim-iv", "pc-didim": "didim", "pc-clie": "clie"}
"""Constrained methods and what they are without constraints."""
LOOPED = ("pc-idim-iv", "pc-didim", "pc-clie")
NONE = Knowledge(prior="none")
BASE = Knowledge(consistency="base")


@pytest.fixture(scope="module")
def loop():
    """A slightly noisy closed loop: its problem, the truth, its simulation."""
    problem, truth, control = closed_loop(2, noise=2e-5, torque_noise=0.1)
    return problem, truth, Simulation(control, width=WIDTH)


def run(method, problem, simulation, **options):
    """An estimate, with the loop for the methods that simulate it."""
    looped = method not in ("wls", "pc-idim-ls")
    return ESTIMATORS[method](problem, *((simulation,) if looped else ()), **options)


def torque_gap(problem, a, b):
    """``||X (a - b)|| / ||y||`` over the rows of a problem."""
    gaps = [g.factor[:, :-1] @ (a - b) for g in problem.factors.groups]
    return np.sqrt(sum(g @ g for g in gaps) / problem.factors.squared_torques.sum())


def wrong_file(problem, factor=1.3):
    """The same log for a robot whose file states other inertials."""
    robot = replace(problem.robot, nominal=problem.robot.nominal * factor)
    return Problem(robot, problem.samples, problem.idim.friction)


# where nothing binds


@pytest.mark.parametrize("knowledge", first([NONE, BASE]), ids=["pseudo-inertia", "base"])
@pytest.mark.parametrize("method", FREE)
def test_inside_the_torques_are_those_without_constraints(loop, method, knowledge):
    problem, _, simulation = loop
    free = run(FREE[method], problem, simulation)
    held = run(method, problem, simulation, knowledge=knowledge)
    assert torque_gap(problem, held.beta, free.beta) <= 1e-7
    assert held.active == ()
    assert held.restriction is None
    assert held.prior == "none"
    assert held.certificate.worst < 1e-7
    np.testing.assert_allclose(held.sigma, free.sigma, rtol=1e-6)


@pytest.mark.parametrize("method", FREE)
def test_clean_logs_give_the_true_parameters_whatever_the_file_believes(method):
    problem, truth, control = closed_loop(2, friction="viscous", rate=None)
    wrong = wrong_file(problem)
    simulation = Simulation(control, width=WIDTH)
    estimate = run(method, wrong, simulation)
    assert "inertials of the robot file" in estimate.prior
    # the measured regressor carries the position filter's attenuation with it
    assert off(estimate.beta, truth) < (2e-3 if method in ("pc-idim-ls", "pc-idim-iv") else 1e-4)
    bodies = estimate.theta[: problem.idim.inertial].reshape(-1, 10)
    assert np.linalg.eigvalsh(to_pseudo_inertia(bodies)).min() > 0.0
    np.testing.assert_allclose(estimate.beta, problem.base.matrix @ estimate.theta, atol=1e-12)


@pytest.mark.parametrize("method", LOOPED)
def test_a_coupled_arm_is_recovered(method):
    problem, truth, control = closed_loop(3, coupled=True, friction="viscous", rate=None)
    estimate = run(method, wrong_file(problem), Simulation(control, width=WIDTH))
    assert off(estimate.beta, truth) < (5e-3 if method == "pc-idim-iv" else 5e-4)


def test_base_consistency_gives_base_parameters_only(loop):
    problem, _, simulation = loop
    fit = identify(problem, "pc-idim-iv", simulation=simulation, consistency="base")
    assert fit.estimate.theta is None
    assert fit.phi is None
    assert not fit.consistent
    with pytest.raises(InputError, match="base parameters only"):
        fit.to_urdf("never.urdf")


@pytest.mark.parametrize("start", ["nominal", "rotors"])
def test_other_starts_end_where_least_squares_does(loop, start):
    problem, _, simulation = loop
    ends = [
        ESTIMATORS["pc-idim-iv"](problem, replace(simulation, start=s))
        for s in ("least-squares", start)
    ]
    assert not np.allclose(ends[0].history[0], ends[1].history[0], rtol=1e-3)
    gaps = np.abs(ends[0].beta - ends[1].beta) / ends[0].covariance.std
    assert gaps.max() < 0.05


# where bounds bind


def bound_pair(truth, names):
    """Two bounds that the truth violates by five and by ten per cent."""
    values = {"Izz1R": 0.95 * truth[names.index("Izz1R")], "fv2": 1.1 * truth[names.index("fv2")]}
    constraints = (
        Bounds(("Izz1R",), upper=values["Izz1R"]),
        Bounds(("fv2",), lower=values["fv2"]),
    )
    return constraints, [names.index(n) for n in values], np.array(list(values.values()))


def last_system(problem, simulation, knowledge):
    """The system of PC-IDIM-IV's final instruments, and the setting."""
    given = build_constrained_setting(problem, knowledge, Bootstrap(), ErrorBars())
    auxiliary = build_auxiliary_model(problem, simulation)
    start = choose_constrained_start(given, auxiliary)
    step = make_iv_step(auxiliary, False, given.inner())
    found = iterate_until_settled(auxiliary, start, IterationOptions(), step, "no advice")
    return given, found.rows.instrument_factors.weighted(found.sigma)


def test_active_bounds_are_predicted_exactly_from_the_free_estimate(loop):
    problem, truth, simulation = loop
    constraints, fixed, values = bound_pair(truth, problem.base.names)
    knowledge = replace(BASE, constraints=constraints)
    estimate = run("pc-idim-iv", problem, simulation, knowledge=knowledge)
    assert set(estimate.active) == {f"Izz1R <= {values[0]:g}", f"fv2 >= {values[1]:g}"}
    np.testing.assert_allclose(estimate.beta[fixed], values, rtol=1e-12)
    _, system = last_system(problem, simulation, knowledge)
    expected = predict_constrained_estimate(system.projected, fixed, values)
    np.testing.assert_allclose(estimate.beta, expected, rtol=0, atol=1e-8)


def test_equation_45_is_exact_only_where_pi_is_the_identity(loop):
    problem, truth, simulation = loop
    constraints, fixed, values = bound_pair(truth, problem.base.names)
    knowledge = replace(BASE, constraints=constraints)

    def gap(system):
        A = system.projected.A
        by_paper = predict_by_instruments(system, fixed, values)
        return np.linalg.norm(
            A @ (by_paper - predict_constrained_estimate(system.projected, fixed, values))
        )

    z, p = 14, 14
    _, system = last_system(problem, simulation, knowledge)
    assert system.instruments == z
    R = system.R.copy()
    R[:z, z : z + p] = R[:z, :z]  # X has Z's mean: Pi is the identity
    identical = InstrumentSystem(R, z, system.rows)
    np.testing.assert_allclose(identical.Pi, np.eye(p), atol=1e-10)
    wrong = replace(simulation, controller=simulation.controller.scaled(0.15))
    _, spoiled = last_system(problem, wrong, knowledge)
    exact, near, far = gap(identical), gap(system), gap(spoiled)
    assert exact < 1e-7
    assert far > 5.0 * near > 100.0 * exact
    # ours stays exact with the wrong controller
    estimate = run("pc-idim-iv", problem, wrong, knowledge=knowledge)
    np.testing.assert_allclose(
        estimate.beta,
        predict_constrained_estimate(spoiled.projected, fixed, values),
        rtol=0,
        atol=1e-8,
    )


@pytest.mark.parametrize("method", first(FREE, 2))
def test_price_shift_and_gradient_of_one_bound(loop, method):
    """Of one linear constraint: cost = z^2 = shift^2 of the bounded parameter itself."""
    problem, _, simulation = loop
    free = run(FREE[method], problem, simulation)
    k = problem.base.names.index("fv2")
    # of the white-noise formula, which is what the price is counted in
    value = float(free.beta[k] + 3.0 * free.covariance.literature[k])
    knowledge = replace(BASE, constraints=(Bounds(("fv2",), lower=value),))
    found = run(method, problem, simulation, knowledge=knowledge).restriction
    assert found.freedom == 1
    assert found.moved == "fv2"
    assert found.shift**2 == pytest.approx(found.cost, rel=1e-6)
    assert found.p_value == pytest.approx(stats.chi2.sf(found.cost, 1), rel=1e-9)
    assert [name for name, _ in found.multipliers] == [f"fv2 >= {value:g}"]
    assert found.multipliers[0][1] > 0.0
    assert found.gradient > 1e-8  # ardiani2024, section III-H
    assert 0.2 < found.cost / 9.0 < 1.5  # kappa of correlated rows makes it cheaper


def test_multiplier_is_the_slope_of_the_criterion(loop):
    problem, truth, _ = loop
    k = problem.base.names.index("fv2")
    given = build_constrained_setting(problem, BASE, Bootstrap(), ErrorBars())
    size = np.linalg.norm(given.admitted.space.row("fv2"))

    def criterion(value):
        knowledge = replace(BASE, constraints=(Bounds(("fv2",), lower=value),))
        estimate = ESTIMATORS["pc-idim-ls"](problem, knowledge)
        A, b = given.system.A, given.system.b
        return float(np.sum((A @ estimate.beta - b) ** 2)), estimate.restriction

    value = 1.05 * truth[k]
    at, found = criterion(value)
    assert_slope(lambda t: criterion(value + t)[0], found.multipliers[0][1] / size, 1e-3)
    least = float(np.sum((given.system.A @ given.system.solve() - given.system.b) ** 2))
    assert found.cost == pytest.approx((at - least) / given.admitted.kappa**2, rel=1e-6)


def test_verdict_tells_a_contradiction_from_bad_luck(loop):
    problem, _, simulation = loop
    free = run("idim-iv", problem, simulation)
    k = problem.base.names.index("fv2")
    words = {}
    for sigmas in (0.5, 40.0):
        value = float(free.beta[k] + sigmas * free.covariance.std[k])
        knowledge = replace(BASE, constraints=(Bounds(("fv2",), lower=value),))
        words[sigmas] = run("pc-idim-iv", problem, simulation, knowledge=knowledge)
    lucky, wrong = words[0.5], words[40.0]
    assert lucky.restriction.verdict.startswith("the data agree with the constraints: ")
    assert not lucky.restriction.rejected
    assert not any("contradict" in warning for warning in lucky.warnings)
    assert wrong.restriction.verdict.startswith("the data contradict the constraints (fv2 >= ")
    assert "fv2 moves most, by" in wrong.restriction.verdict
    assert wrong.restriction.rejected
    assert wrong.restriction.verdict in wrong.warnings


def test_zeros_of_a_spectrum_are_no_contradiction():
    """Coulomb friction as the shortest bristles alone: without bounds others are negative."""
    (q, dq, ddq), tau = exact_log(tuple(truth_of()), 4.0)
    noise = np.random.default_rng(0).normal(size=tau.shape)
    recording = Recording("exact", toy.RATE, q, tau + 0.05 * noise, dq=dq, ddq=ddq)
    problem = Problem(toy.arm(2), toy.on_its_motion(recording), friction="dahl-spectrum")
    found = ESTIMATORS["pc-idim-ls"](problem, NONE, Bootstrap(0))
    assert set(found.active) == {f"fh{k}{joint} > 0" for k in "bcdef" for joint in "12"}
    assert found.restriction is None
    assert not found.warnings
    wrong = replace(NONE, constraints=(Bounds(("fv1",), upper=1.0), Bounds(("fhb2",), lower=0.5)))
    told = ESTIMATORS["pc-idim-ls"](problem, wrong, Bootstrap(0)).restriction
    assert {name for name, _ in told.multipliers} == {"fv1 <= 1", "fhb2 >= 0.5"}
    assert told.freedom == 2
    assert told.rejected


def test_the_truth_within_wide_bounds_is_left_alone(loop):
    problem, truth, simulation = loop
    wide = tuple(
        Bounds((name,), lower=v - 1.0, upper=v + 1.0)
        for name, v in zip(problem.base.names, truth, strict=True)
    )
    free = run("idim-iv", problem, simulation)
    held = run("pc-idim-iv", problem, simulation, knowledge=replace(NONE, constraints=wide))
    assert held.active == ()
    assert torque_gap(problem, held.beta, free.beta) <= 1e-7


@pytest.mark.parametrize("method", FREE)
def test_equalities_hold_in_every_method(loop, method):
    problem, _, simulation = loop
    constraints = (TotalMass(5.5), Fixed(("fv1",), 2.1), Fixed(("Izz1R",), 0.37))
    estimate = run(method, problem, simulation, knowledge=Knowledge(constraints=constraints))
    theta, idim = estimate.theta, problem.idim
    assert theta[: idim.inertial : 10].sum() == pytest.approx(5.5, rel=1e-9)
    assert theta[idim.names.index("fv1")] == pytest.approx(2.1, rel=1e-9)
    assert estimate.beta[problem.base.names.index("Izz1R")] == pytest.approx(0.37, rel=1e-9)
    # of the three the torques see all but the total mass, which a prior without data gives
    assert {"fv1 = 2.1", "Izz1R = 0.37"} <= set(estimate.active)


@pytest.mark.parametrize("method", ["pc-idim-ls", "pc-didim"])
def test_contradictions_are_named(loop, method):
    problem, _, simulation = loop
    apart = (Bounds(("fv2",), lower=5.0), Bounds(("fv2",), upper=1.0), TotalMass(6.0))
    with pytest.raises(InfeasibleError, match="fv2 >= 5, fv2 <= 1 cannot all hold") as caught:
        run(method, problem, simulation, knowledge=replace(NONE, constraints=apart))
    assert set(caught.value.conflict) == {"fv2 >= 5", "fv2 <= 1"}
    heavy = (Payload("link_2", 5.0), LinkMass(("link_2",), upper=3.0))
    with pytest.raises(InfeasibleError) as caught:
        run(method, problem, simulation, knowledge=replace(NONE, constraints=heavy))
    assert set(caught.value.conflict) == {"link_2 without its payload", "mass of link_2 <= 3"}
    with pytest.raises(InfeasibleError, match="fv1 > 0, fv1 = -1 cannot all hold"):
        run(method, problem, simulation,
            knowledge=replace(NONE, constraints=(Fixed(("fv1",), -1.0),)))  # fmt: skip


# where bounds hold


@pytest.mark.parametrize("knowledge", [NONE, BASE], ids=["pseudo-inertia", "base"])
@pytest.mark.parametrize("bootstrap", [0, 20])
@pytest.mark.parametrize("truth", [0.0, -0.03])
def test_the_interval_at_a_bound_is_as_long_as_without_it(knowledge, bootstrap, truth):
    """However far beyond the log would have a joint without viscous friction."""
    problem = exact_problem(truth_of(fv1=truth), noise=0.5, seed=1)
    bars = ErrorBars("sandwich")
    found = ESTIMATORS["pc-idim-ls"](problem, knowledge, Bootstrap(bootstrap), bars)
    (own,) = found.bounded
    k = problem.base.names.index("fv1")
    free = ESTIMATORS["wls"](problem, bars=bars)
    assert free.beta[k] < 0.0
    assert (own.name, own.low) == ("fv1", 0.0)
    assert own.high == pytest.approx(1.96 * free.covariance.std[k], rel=1e-3)
    system = problem.factors.weighted(found.sigma)

    def squares(value):
        held = replace(knowledge, constraints=(Bounds(("fv1",), lower=value),))
        point = build_constrained_setting(problem, held, Bootstrap(0), bars).admitted.solve(system)
        return float(np.sum((system.A @ point.beta - system.b) ** 2))

    # what the squares rise by beside the multiplier's share
    rise = 0.5 * (squares(3.0 * own.high) - 2.0 * squares(2.0 * own.high) + squares(own.high))
    assert rise == pytest.approx(stats.chi2.isf(0.05, 1), rel=1e-2)
    std, low, high = compute_intervals(found, problem.base.names)
    assert found.covariance.std[k] < 0.5 * std[k]
    assert (low[k], high[k], 1.96 * std[k]) == pytest.approx((0.0, own.high, own.high), rel=1e-4)


def test_intervals_beside_a_bound_are_longer_on_the_side_on_which_it_gives_way():
    """There as long as without it; on the other as long as if it were known to hold."""
    problem = exact_problem(truth_of(fv1=-0.03), noise=0.5, seed=1)
    bars, names = ErrorBars("sandwich"), problem.base.names
    found = ESTIMATORS["pc-idim-ls"](problem, NONE, Bootstrap(20), bars)
    free = ESTIMATORS["wls"](problem, bars=bars)
    held = ESTIMATORS["pc-idim-ls"](problem, NONE, Bootstrap(0), bars)
    std, low, high = compute_intervals(found, names)
    k = names.index("fv1")
    assert len(found.intervals) == len(names)
    up, down = (high - found.beta) / 1.96, (found.beta - low) / 1.96
    # viscous friction that was larger would leave less to the other parameters, or more
    falls = free.covariance.matrix[k] < 0.0
    for j in set(range(len(names))) - {k}:
        long, short = (down, up) if falls[j] else (up, down)
        assert long[j] == pytest.approx(free.covariance.std[j], rel=1e-3)
        # what hardly gives way is bounded from above
        beside = held.covariance.std[j] * np.hypot(1.0, SLIGHT)
        slight = free.covariance.std[j] <= beside
        assert short[j] == pytest.approx((free if slight else held).covariance.std[j], rel=1e-3)
        assert std[j] == pytest.approx(0.5 * (up[j] + down[j]), rel=1e-3)
    assert down[names.index("fc1")] > 1.3 * up[names.index("fc1")]


def test_constraints_give_way_within_their_cones():
    """Two bounds whose slacks go against each other, and a matrix of rank zero."""
    bounds = ReleasedDirections((1, 1), np.eye(2), np.eye(2))
    reach = Reach(np.zeros((2, 2)), bounds, np.array([[4.0, -1.0], [-1.0, 1.0]]))
    down, up = reach.measure_sides(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    # one alone rises where the other would have to fall: by its deviation if that is held
    assert up**2 == pytest.approx([3.0, 0.75, 3.0], rel=1e-4)
    assert down**2 == pytest.approx(np.zeros(3), abs=1e-4)
    matrix = ReleasedDirections((2,), np.eye(3), np.eye(3))
    rows = np.array([svec(np.diag(each)) for each in ([1.0, 1.0], [1.0, -1.0], [0.0, 2.0])])
    down, up = Reach(np.zeros((3, 3)), matrix, np.eye(3)).measure_sides(rows)
    assert up**2 == pytest.approx([2.0, 1.0, 4.0], rel=1e-4)
    assert down**2 == pytest.approx([0.0, 1.0, 0.0], abs=1e-4)


def test_an_interval_at_an_upper_bound_lies_below_it():
    problem = exact_problem(truth_of(), noise=0.5)
    free = ESTIMATORS["wls"](problem)
    k = problem.base.names.index("fc2")
    value = float(free.beta[k] - free.covariance.std[k])
    knowledge = replace(NONE, constraints=(Bounds(("fc2",), upper=value),))
    (own,) = ESTIMATORS["pc-idim-ls"](problem, knowledge, Bootstrap(0)).bounded
    assert own.high == pytest.approx(value, rel=1e-12)
    far = 1.96 * free.covariance.std[k]
    assert own.low == pytest.approx(value - far, rel=1e-3)


def test_no_interval_goes_beyond_a_bound():
    """Friction that is positive, though hardly, is not between minus something and something."""
    problem = exact_problem(truth_of(fv1=0.002), noise=0.5)
    found = ESTIMATORS["pc-idim-ls"](problem, NONE, Bootstrap(0))
    k = problem.base.names.index("fv1")
    assert not found.active
    std, low, high = compute_intervals(found, problem.base.names)
    assert found.beta[k] < 1.96 * std[k]
    assert std == pytest.approx(found.covariance.std, rel=1e-9)
    assert low[k] == 0.0
    assert high[k] == pytest.approx(found.beta[k] + 1.96 * std[k], rel=1e-4)
    others = [j for j in range(len(std)) if j != k]
    assert (high - low)[others] == pytest.approx(2.0 * 1.96 * std[others], rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_intervals_of_small_friction_cover(share):
    """None, or as much as its standard deviation: at its bound in half, or a sixth, of the logs."""
    truth = 0.0022 * share
    inside, at = [], 0
    for seed in range(60):
        problem = exact_problem(truth_of(fv1=truth), noise=0.5, seed=seed)
        found = ESTIMATORS["pc-idim-ls"](problem, NONE, Bootstrap(0))
        _, low, high = compute_intervals(found, problem.base.names)
        k = problem.base.names.index("fv1")
        inside.append(low[k] <= truth <= high[k])
        at += bool(found.bounded)
    assert at >= 5
    assert np.mean(inside) >= 0.9


# what consistency means


@cache
def exact_log(theta, seconds):
    """A motion that is exactly known, and its torques."""
    clean = toy.motion(2, seconds)
    return clean, build_idim(toy.arm(2)).torque(np.array(theta), *clean)


def exact_problem(theta, noise=0.05, seed=0, seconds=6.0, bandwidth=20.0):
    """A two-joint arm on an exactly known motion, with white torque noise."""
    (q, dq, ddq), tau = exact_log(tuple(theta), seconds)
    tau = tau + np.random.default_rng(seed).normal(size=tau.shape) * noise
    recording = Recording("exact", toy.RATE, q, tau, dq=dq, ddq=ddq)
    return Problem.of(exact_base(), toy.on_its_motion(recording, bandwidth))


@cache
def exact_base():
    """What is estimated of the two-joint arm."""
    return base_parameters(build_idim(toy.arm(2)))


def truth_of(**values):
    """True standard parameters of the two-joint arm, some replaced by name."""
    idim = build_idim(toy.arm(2))
    theta = toy.true_parameters(idim, toy.arm(2).nominal)
    for name, value in values.items():
        theta[idim.names.index(name)] = value
    return theta


@pytest.mark.long
def test_inertia_admits_what_the_triangle_inequality_forbids():
    """A second link with Izz > Ixx + Iyy + Ia, which no mass distribution has."""
    theta = truth_of(Ia2=0.02)
    theta[10:20] = from_com(2.0, [0.0, 0.0, 0.0], np.diag([0.02, 0.02, 0.1]))
    problem = exact_problem(theta)
    free = ESTIMATORS["wls"](problem)
    older = ESTIMATORS["pc-idim-ls"](problem, replace(NONE, consistency="inertia"))
    whole = ESTIMATORS["pc-idim-ls"](problem, NONE)
    assert older.active == ()
    assert torque_gap(problem, older.beta, free.beta) <= 1e-7
    for m, hx, hy, hz, xx, xy, yy, xz, yz, zz in older.theta[:20].reshape(-1, 10):
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        c = np.array([hx, hy, hz]) / m
        about_com = inertia - m * (c @ c * np.eye(3) - np.outer(c, c))
        assert m > 0.0
        assert np.linalg.eigvalsh(about_com).min() > 0.0
    assert np.linalg.eigvalsh(to_pseudo_inertia(older.theta[10:20]))[0] < -0.01
    assert {"pseudo-inertia link_2", "Ia2 > 0"} <= set(whole.active)
    assert whole.restriction.rejected
    assert np.linalg.eigvalsh(to_pseudo_inertia(whole.theta[:20].reshape(-1, 10))).min() > 0.0
    fit = identify(problem, "pc-idim-ls", prior="none", consistency="inertia")
    assert not fit.consistent
    assert fit.smallest_eigenvalue < 0.0


def test_base_consistency_holds_what_must_be_positive(loop):
    """ardiani2024, eq. 27: negative friction in the log ends at zero."""
    problem = exact_problem(truth_of(fv1=-1.0))
    estimate = ESTIMATORS["pc-idim-ls"](problem, BASE)
    names = problem.base.names
    assert "fv1 > 0" in estimate.active
    assert abs(estimate.beta[names.index("fv1")]) < 1e-12
    assert estimate.restriction.moved == "fv1"
    none = ESTIMATORS["pc-idim-ls"](problem, replace(NONE, consistency="none"))
    free = ESTIMATORS["wls"](problem)
    assert torque_gap(problem, none.beta, free.beta) < 1e-10
    assert none.active == ()
    assert none.theta is None


def test_constraints_on_links_need_links(loop):
    problem, _, _ = loop
    for constraint, words in (
        (LinkMass(("link_1",), value=2.0), "base parameters have no links"),
        (TotalMass(6.0), "base parameters have no links"),
        (Fixed(("m1",), 2.0), "'m1' is not a parameter"),
    ):
        with pytest.raises(InputError, match=words):
            ESTIMATORS["pc-idim-ls"](problem, replace(BASE, constraints=(constraint,)))
    with pytest.raises(InputError, match="without a prior"):
        ESTIMATORS["pc-idim-ls"](problem, replace(BASE, prior="nominal"))


# the prior


def distance(estimate, problem, gyration=0.0):
    """How far the bodies are from the file's, in the file's own units."""
    nominal = problem.robot.nominal.copy()
    scale = np.array([[m, *[0.1 * m] * 3, *[0.01 * m] * 6] for m in nominal[:, 0]])
    # second moments of m r^2 each way are inertias of 2 m r^2
    nominal[:, [4, 6, 9]] += 2.0 * gyration**2 * nominal[:, :1]
    bodies = estimate.theta[: problem.idim.inertial].reshape(-1, 10)
    return float(np.linalg.norm((bodies - nominal) / scale))


@pytest.mark.parametrize("metric", first(METRICS, 2))
def test_the_weight_of_every_metric_draws_towards_the_file(loop, metric):
    problem = loop[0]
    wrong = wrong_file(problem)
    found = {
        weight: ESTIMATORS["pc-idim-ls"](wrong, Knowledge(metric=metric, prior_weight=weight))
        for weight in (0.0, 1e-3, 1.0, 1e4, 1e10)
    }
    # the divergence admits no body without extent: its centre is the file's, 3 cm of gyration added
    gyration = 0.03 if metric == "entropic" else 0.0
    gaps = [distance(estimate, wrong, gyration) for estimate in found.values()]
    assert np.all(np.diff(gaps) < 1e-9), gaps
    assert gaps[-1] < 2e-3
    free = ESTIMATORS["pc-idim-ls"](wrong, NONE)
    assert torque_gap(problem, found[0.0].beta, free.beta) < 1e-12
    assert found[0.0].prior == "none"
    assert METRICS[metric].words in found[1.0].prior
    assert "weight" in found[1e4].prior
    # at weight one it is weak: no parameter moves by a tenth of its white standard deviation,
    # which is what the prior is weighed against
    assert np.max(np.abs(found[1.0].beta - free.beta) / free.covariance.literature) < 0.1
    assert all(estimate.certificate.worst < 1e-7 for estimate in found.values())


@pytest.mark.long
def test_kappa_counts_slow_errors_where_the_motion_is():
    """Errors of 0.3 s along motions up to 2 Hz: as least squares errs, not as an average does."""
    robot = toy.arm(3)
    recording, theta = toy.log(robot, seconds=20.0)
    pole = np.exp(-1.0 / toy.RATE / 0.3)
    found, errs, average = [], [], []
    for seed in range(8):
        white = np.random.default_rng(seed).normal(size=recording.tau.shape)
        slow = signal.lfilter([2.0 * np.sqrt(1.0 - pole**2)], [1.0, -pole], white, axis=0)
        noisy = replace(recording, tau=recording.tau + slow)
        problem = Problem(robot, toy.on_its_motion(noisy, 10.0))
        given = build_constrained_setting(problem, Knowledge(), Bootstrap(0), ErrorBars())
        free = given.system.solve()
        found.append(given.admitted.kappa**2)
        errs.append(np.mean((given.system.A @ (free - problem.base.matrix @ theta)) ** 2))
        average.append(estimate_long_run_ratio(compute_residuals(problem, free).error))
    # the fit takes some of the errors away
    assert 0.5 < np.mean(found) / np.mean(errs) < 1.1
    assert np.mean(average) > 1.5 * np.mean(errs)


@pytest.mark.long
def test_held_out_blocks_choose_a_weight_that_the_file_deserves():
    """A right file earns a larger weight than one that is wrong by far."""
    theta = truth_of()
    problem = exact_problem(theta, noise=8.0, bandwidth=10.0)
    chosen = {}
    for name, factor in (("right", 1.0), ("wrong", 0.1)):
        given = Knowledge(prior_weight="held-out")
        used = build_constrained_setting(
            wrong_file(problem, factor), given, Bootstrap(), ErrorBars()
        ).knowledge.prior_weight
        assert used in WEIGHTS
        chosen[name] = used
    assert chosen["right"] > 10.0 * chosen["wrong"]
    estimate = ESTIMATORS["pc-idim-ls"](problem, Knowledge(prior_weight="held-out"))
    assert f"weight {chosen['right']:.3g}" in estimate.prior
    # the same weight given as a number is the same estimate
    again = ESTIMATORS["pc-idim-ls"](problem, Knowledge(prior_weight=chosen["right"]))
    assert torque_gap(problem, again.beta, estimate.beta) < 1e-9


def test_blocks_are_all_rows_once(loop):
    problem, truth, _ = loop
    blocks = factor_blocks(problem, 5)
    whole = problem.factors
    assert [sum(b.groups[j].rows for b in blocks) for j in range(2)] == [
        g.rows for g in whole.groups
    ]
    total = sum(block.squared_residuals(truth) for block in blocks)
    np.testing.assert_allclose(total, whole.squared_residuals(truth), rtol=1e-9)
    rows = [block.groups[0].rows for block in blocks]
    assert max(rows) - min(rows) <= 0.2 * max(rows)


def test_held_out_needs_rows_in_every_block(loop):
    problem, _, _ = loop
    still = [
        replace(log, moving=log.moving & (np.arange(len(log.q))[:, None] < 900))
        for log in problem.samples
    ]
    with pytest.raises(ComputationError, match="held-out' needs rows of every joint in each of 5"):
        ESTIMATORS["pc-idim-ls"](problem.on(still), Knowledge(prior_weight="held-out"))


# error bars


def replicates(knowledge, runs, noise=1.0):
    """Estimates on white noise drawn anew, their error bars, and which were held back."""
    betas, stds, active = [], [], []
    for seed in range(runs):
        problem = exact_problem(truth_of(), noise, 10_000 + seed, bandwidth=10.0)
        # noise alone is drawn anew: what constraints leave is the same in all runs
        estimate = ESTIMATORS["pc-idim-ls"](
            problem, knowledge, bootstrap=Bootstrap(0), bars=ErrorBars("hac")
        )
        betas.append(estimate.beta)
        stds.append(estimate.covariance.std)
        active.append(bool(estimate.active))
    return np.array(betas), np.array(stds), np.array(active)


def example(noise=1.0, seed=0):
    problem = exact_problem(truth_of(), noise, 10_000 + seed, bandwidth=10.0)
    names = problem.base.names
    k = names.index("fv2")
    std = ESTIMATORS["wls"](problem).covariance.std
    return problem, k, float((problem.base.matrix @ truth_of())[k]), std


@pytest.mark.long
@pytest.mark.parametrize(
    ("constraints", "moved"),
    [
        # true values of what the torques see: a smooth case without bias
        ((Fixed(("fv2",), 2.0), Fixed(("Ia2R",), 0.34446199)), False),
        # a link of 1.3 kg can hardly be this large: its face is curved and always active
        ((LinkMass(("link_2",), value=1.3), Fixed(("Ia2",), 0.3)), True),
    ],
    ids=["equalities", "curved face"],
)
def test_sensitivities_give_the_spread_of_a_monte_carlo(constraints, moved):
    """On the faces of constraints that always hold: bootstrap = 0."""
    knowledge = Knowledge(constraints=constraints)
    betas, stds, active = replicates(knowledge, 80)
    assert active.all()
    spread, claimed = betas.std(axis=0, ddof=1), stds.mean(axis=0)
    names = exact_problem(truth_of()).base.names
    fixed = [] if moved else [names.index(n) for c in constraints for n in c.parameters]
    assert np.all(spread[fixed] < 1e-8)
    assert np.all(claimed[fixed] < 1e-8)
    ratio = np.delete(claimed / np.maximum(spread, 1e-12), fixed)
    # 80 runs know a standard deviation to 8 %
    assert np.all((ratio > 0.78) & (ratio < 1.3)), ratio
    if moved:
        free = np.array([ESTIMATORS["wls"](exact_problem(truth_of(), 1.0, s, bandwidth=10.0))
                         .covariance.std for s in range(3)]).mean(axis=0)  # fmt: skip
        # the face takes freedom from the moments that it holds
        assert np.min(claimed / free) < 0.75


@pytest.mark.long
def test_bootstrap_spreads_like_a_monte_carlo_on_the_boundary():
    """The true value lies on a bound: half of all estimates stick to it."""
    _, k, value, _ = example()
    knowledge = replace(BASE, constraints=(Bounds(("fv2",), lower=value),))
    betas, stds, active = replicates(knowledge, 100)
    assert 0.3 < active.mean() < 0.7
    spread = betas.std(axis=0, ddof=1)
    found = []
    for seed in np.flatnonzero(active)[:6]:
        problem = example(seed=int(seed))[0]
        estimate = ESTIMATORS["pc-idim-ls"](problem, knowledge, bootstrap=Bootstrap(100))
        assert "bootstrap of the cone problem, 100 replicates" in (estimate.covariance.name)
        found.append(estimate.covariance.std)
    ratio = np.mean(found, axis=0) / spread
    # a bootstrap is not consistent on a boundary: of the bound parameter it knows the order
    assert 0.3 < ratio[k] < 1.3, ratio[k]
    assert np.all(np.delete(ratio, k) > 0.7)
    assert np.all(np.delete(ratio, k) < 1.2)
    # on its face alone the bound parameter would have no error at all
    assert np.all(stds[active][:, k] < 1e-10)


def test_bootstrap_is_that_of_its_seed_and_only_where_something_is_active():
    problem, _, value, std = example()
    held = replace(BASE, constraints=(Bounds(("fv2",), lower=value + float(std.max())),))
    first, again, other = (
        ESTIMATORS["pc-idim-ls"](problem, held, bootstrap=Bootstrap(60, seed)) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.covariance.matrix, again.covariance.matrix)
    np.testing.assert_array_equal(first.beta, other.beta)
    assert not np.array_equal(first.covariance.matrix, other.covariance.matrix)
    values = np.linalg.eigvalsh(first.covariance.matrix)
    assert values[0] > -1e-12 * values[-1]
    free = ESTIMATORS["pc-idim-ls"](problem, BASE)
    assert "bootstrap" not in free.covariance.name
    told = ESTIMATORS["pc-idim-ls"](problem, held)
    assert "60 replicates (1 active constraints)" in told.covariance.name
    same = ESTIMATORS["pc-idim-ls"](problem, held, bootstrap=Bootstrap(60, 0))
    np.testing.assert_array_equal(told.covariance.matrix, same.covariance.matrix)
    few, negative = "at least 20 replicates, or 0 for none", "should be greater than or equal to 0"
    for count, words in ((1, few), (19, few), (-5, negative)):
        with pytest.raises(InputError, match=f"bootstrap is {count}.*{words}"):
            ESTIMATORS["pc-idim-ls"](problem, held, bootstrap=Bootstrap(count))


@pytest.mark.long
@pytest.mark.parametrize("method", LOOPED)
def test_bootstrap_of_methods_that_simulate(loop, method):
    """Bounds three sigma off hold in most replicates; all other parameters are smooth."""
    problem, _, simulation = loop
    free = run(FREE[method], problem, simulation)
    fixed = [problem.base.names.index(name) for name in ("Izz1R", "fv2")]
    upper, lower = (
        float(free.beta[k] + sign * 3.0 * free.covariance.std[k])
        for k, sign in zip(fixed, (-1.0, 1.0), strict=True)
    )
    bounds = (Bounds(("Izz1R",), upper=upper), Bounds(("fv2",), lower=lower))
    knowledge = replace(BASE, constraints=bounds)
    plain = run(method, problem, simulation, knowledge=knowledge, bootstrap=Bootstrap(0))
    assert plain.covariance.name.startswith("constrained on the faces of 2 active constraints: ")
    drawn = run(method, problem, simulation, knowledge=knowledge, bootstrap=Bootstrap(200))
    np.testing.assert_array_equal(plain.beta, drawn.beta)
    assert np.all(drawn.covariance.std[fixed] < 0.3 * free.covariance.std[fixed])
    ratio = np.delete(drawn.covariance.std / np.maximum(plain.covariance.std, 1e-15), fixed)
    # 200 replicates know a standard deviation to 5 %
    assert np.all((ratio > 0.75) & (ratio < 1.3)), ratio


# the loop is wrong


def test_a_wrong_controller_spoils_pc_didim_but_not_pc_idim_iv():
    """Gains at half: the constraints do not save DIDIM, and IV does not need them to."""
    problem, truth, control = closed_loop(2, friction="viscous", rate=None, torque_noise=0.2)
    norm = problem.factors.weighted(ESTIMATORS["wls"](problem).sigma).A
    lost = {}
    for scale in (1.0, 0.5):
        simulation = Simulation(control.scaled(scale), width=WIDTH)
        for method in ("pc-idim-iv", "pc-didim"):
            estimate = run(method, problem, simulation, knowledge=NONE)
            lost[method, scale] = np.linalg.norm(norm @ (estimate.beta - truth))
    assert lost["pc-didim", 1.0] < 1.2 * lost["pc-idim-iv", 1.0]
    assert lost["pc-didim", 0.5] > 5.0 * lost["pc-idim-iv", 0.5]
    assert lost["pc-idim-iv", 0.5] < 1.2 * lost["pc-idim-iv", 1.0]


def test_methods_refuse_a_loop_that_is_not_the_logs(loop):
    problem, _, simulation = loop
    for method in LOOPED:
        with pytest.raises(InputError, match=f"{method} simulates the closed loop"):
            identify(problem, method)
    bare = problem.on([replace(log, qref=None, dqref=None) for log in problem.samples])
    with pytest.raises(InputError, match="has no reference"):
        ESTIMATORS["pc-clie"](bare, simulation)
    assert problem.samples[0].rate == RATE


def test_an_assumed_loop_is_a_warning_of_every_method(loop):
    problem, _, simulation = loop
    assumed = replace(simulation, assumed="the gains were guessed")
    for method in LOOPED:
        estimate = run(method, problem, assumed)
        assert estimate.warnings[0] == "the gains were guessed"
        assert len(estimate.history) == estimate.iterations + 1


def test_instruments_are_tested_under_constraints(loop):
    problem, _, simulation = loop
    estimate = run("pc-idim-iv", problem, simulation)
    assert len(estimate.tests) == 2
    assert "Pi has rank 14 of 14" in estimate.message
    assert estimate.singular_values.shape == (14,)
