"""Shapes of friction, estimated with what the torque is linear in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy
from differences import assert_slope, take_quotient
from frictions import values
from robots import EXAMPLES
from scipy.optimize import least_squares
from tables import write_table
from thin import first

import dynident as di
from dynident.control.controller import pd
from dynident.control.reference import fourier
from dynident.core.errors import ComputationError, InputError
from dynident.dynamics.base import base_parameters
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.following import find_conditions, follow_friction
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import JointElements
from dynident.estimators.closed_loop import Simulation
from dynident.friction.elements import gas_spring
from dynident.friction.models import FRICTIONS
from dynident.plant.plant import build_plant
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.search import shapes
from dynident.search.shapes import fit_linear_parameters, limit_to_visible_speeds, search_shapes
from dynident.simulation.loop import Loop
from dynident.simulation.record import record_rollout
from dynident.simulation.sensors import Sensors

RATE = 500.0


def scene(name, noise=0.02, seconds=16.0, spread=(0.7, 1.6), coupled=True, rotor=None, n=3):
    """A log of an arm with some friction, the problem, its model and parameters."""
    robot = toy.arm(n, coupled=coupled)
    idim = build_idim(robot, name, rotor)
    true = idim.shaped(np.linspace(*spread, len(idim.shape)) * np.array(idim.shape))
    theta = values(idim)
    q, dq, ddq = toy.motion(n, seconds, 4, RATE)
    tau = true.torque(theta, q, dq, ddq, conditions=follow_friction(true, q, dq, RATE))
    tau = tau + noise * tau.std(axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    log = Recording(rate=RATE, q=q, tau=tau, name="log")
    return Problem(robot, prepare(log, bandwidth=40.0), name, rotor), true, theta


def deviations(fit, theta):
    return (fit.estimate.beta - fit.base.matrix @ theta) / fit.estimate.covariance.std


@pytest.mark.long
@pytest.mark.parametrize("method", first(["wls", "pc-idim-ls"]))
@pytest.mark.parametrize("name", first(["stribeck", "dahl", "sigmoid"], 2))
def test_shapes_and_linear_parameters_of_a_log_are_found(name, method):
    problem, true, theta = scene(name)
    fit = di.identify(problem, method, doctor=False)
    shape = fit.estimate.shape
    assert shape.names == tuple(each.name for each in true.shape_parameters)
    assert np.all(np.abs(shape.values - true.shape) < 4.0 * shape.std)
    assert np.sqrt(np.mean(deviations(fit, theta) ** 2)) < 1.6
    assert len(fit.estimate.beta) == fit.base.count == base_parameters(true).count
    assert fit.base.idim.shape == pytest.approx(tuple(shape.values))
    assert 1.0 < fit.identification[0].overall_percent < 3.0
    if method == "pc-idim-ls":
        assert fit.consistent


def test_without_noise_they_are_exact():
    problem, true, theta = scene("stribeck", noise=0.0)
    fit = di.identify(problem, "wls", doctor=False)
    # what the position filter leaves of the corners of the sign is all that is wrong
    np.testing.assert_allclose(fit.estimate.shape.values, true.shape, rtol=0.02)
    np.testing.assert_allclose(fit.estimate.beta, fit.base.matrix @ theta, rtol=0.02, atol=0.02)


@pytest.mark.long
def test_variable_projection_ends_where_a_general_search_does():
    """The projected problem minimised by scipy over the same rows, from nearby."""
    problem, _, _ = scene("stribeck", seconds=12.0)
    found = search_shapes(limit_to_visible_speeds(problem))
    sigma = found.sigma

    def errors(shape):
        theta = found.theta
        theta[found.problem.idim.plain :] = shape
        here = found.problem.linearised(theta)
        system = here.factors.weighted(sigma)
        free = here.base.kept >= here.idim.plain
        left = system.b - system.A[:, free] @ shape
        Q, _ = np.linalg.qr(system.A[:, ~free])
        return np.append(left - Q @ (Q.T @ left), np.sqrt(system.rest))

    low, high = np.transpose(
        [(s.bounds.lower, s.bounds.upper) for s in found.problem.idim.shape_parameters]
    )
    start = np.clip(found.beta[found.free] * np.array([1.1, 0.9, 1.05, 0.95]), low, high)
    other = least_squares(errors, start, bounds=(low, high), x_scale=start, xtol=1e-10)
    assert np.sum(errors(found.beta[found.free]) ** 2) < 2.0 * other.cost + 1e-2
    assert found.beta[found.free] == pytest.approx(other.x, rel=0.02)


def test_the_columns_of_the_shapes_are_the_gradient():
    """``d cost / d s = -J^T e / sigma^2`` of the projected problem, against differences."""
    problem, _, _ = scene("stribeck", noise=0.05, seconds=5.0)
    found = search_shapes(problem)
    problem, theta, plain = found.problem, found.theta, problem.idim.plain
    theta[plain:] *= 1.3

    def cost(shape):
        theta[plain:] = shape
        return fit_linear_parameters(problem.linearised(theta))

    here = cost(theta[plain:].copy())
    here = fit_linear_parameters(
        problem.linearised(here.theta), here.sigma
    )  # about its own friction
    J, e = here.reduced
    shape = here.beta[here.free]
    counts = here.problem.factors.counts
    weights = counts * here.sigma**2 / here.problem.factors.squared_residuals(here.beta)
    for k in range(len(shape)):
        own = np.eye(len(shape))[k]
        slope, off = take_quotient(lambda t, own=own: cost(shape + t * own).cost, 1e-4 * shape[k])
        assert off < 1e-3 * abs(slope)
        # the cost has the mean square where the weights have the leverages taken off
        np.testing.assert_allclose(slope, -(J.T @ e)[k], rtol=0.02 + abs(weights - 1.0).max())


def test_loads_are_those_of_the_bodies_that_are_found():
    problem, true, theta = scene("load", rotor=False)
    fit = di.identify(problem, "wls", doctor=False)
    assert fit.estimate.shape is None
    assert np.sqrt(np.mean(deviations(fit, theta) ** 2)) < 1.6
    named = dict(zip(fit.base.names, fit.estimate.beta, strict=True))
    expected = dict(zip(true.names, theta, strict=True))
    for name in ("fl2", "fl3", "flm3"):
        assert named[name] == pytest.approx(expected[name], rel=0.05)


def test_a_gain_of_the_load_is_told_beside_joints_that_have_none():
    """Of all joints together it is the bodies' own scale: zhang2018, eq. 9, as printed."""
    names = "coulomb-viscous, cube-root + load-gain"
    problem, true, theta = scene(names, seconds=8.0, coupled=False, rotor=False, n=2)
    fit = di.identify(problem, "wls", doctor=False)
    assert np.sqrt(np.mean(deviations(fit, theta) ** 2)) < 1.6
    k = fit.base.names.index("flg2")
    assert fit.estimate.covariance.std[k] < 0.3 * theta[true.names.index("flg2")]
    assert any("joint_2: the friction gives energy away" in w for w in fit.warnings)
    every, _, _ = scene("load-gain", coupled=False, n=2, seconds=4.0)
    with pytest.raises(ComputationError, match=r"does not excite .*flg1"):
        di.identify(every, "wls", doctor=False)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "rotor"),
    [
        ("load", None),
        pytest.param("load-square", False, marks=pytest.mark.long),
        pytest.param("stribeck-load", None, marks=pytest.mark.long),
    ],
)
def test_loads_settle_in_a_few_rounds_within_error_bars(monkeypatch, name, rotor):
    """To a millionth of a sigma, where half of each step would leave a hundredth after seven."""
    monkeypatch.setattr(shapes, "CLOSE", 1e-6)
    monkeypatch.setattr(shapes, "ROUNDS", 15)
    problem, _, theta = scene(name, rotor=rotor)
    fit = di.identify(problem, doctor=False, bootstrap=0)
    assert np.sqrt(np.mean(deviations(fit, theta) ** 2)) < 1.6
    assert 1.0 < fit.identification[0].overall_percent < 1.2


@pytest.mark.parametrize(
    "name", ["load", "load-square", "load-gain", "stribeck-load", "directional-load"]
)
@pytest.mark.parametrize("which", first(["crossed", "coupled"]))
def test_columns_of_bodies_are_slopes_of_the_torque_under_loads(name, which):
    """Rows of the linearised model against differences of the torque, couplings included."""
    robot = toy.arm(3, coupled=True)
    if which == "crossed":  # motor 2 turns with joint 3, that is farther out
        turns = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
        robot = replace(robot, drives=replace(robot.drives, turns=turns))
    idim = build_idim(robot, name, rotor=False)
    rng = np.random.default_rng(3)
    theta = idim.join(toy.arm(3).nominal, rng.uniform(0.1, 0.4, len(idim.drives)))
    q, dq, ddq = (each[::50].copy() for each in toy.motion(3, 4.0, 4, RATE))
    near = replace(idim.linearised(theta), blur=(1e-7,) * 3)
    conditions = find_conditions(near, q, dq, ddq, RATE)
    found = near.regressor(q, dq, ddq, conditions)
    for k in range(idim.plain):
        own, step = np.eye(idim.plain)[k], 1e-6 * max(1.0, abs(theta[k]))
        assert_slope(
            lambda t, own=own: idim.torque(theta + t * own, q, dq, ddq),
            found[:, :, k],
            step,
            scale=1.0 + np.abs(found[:, :, k]).max(),
        )


@pytest.mark.parametrize("name", ["load", "directional-load", "stribeck-load"])
def test_errors_of_the_linearised_rows_are_those_of_the_torque(name):
    """Rows ``y - X beta`` about a full set are the filtered errors of its torque."""
    problem, true, theta = scene(name, noise=0.0)
    start = theta * np.random.default_rng(1).uniform(0.9, 1.1, len(theta))
    base = replace(problem.base, idim=replace(true, blur=(0.1,) * 3))
    about = Problem.of(base, problem.samples).linearised(start)
    idim = about.base.idim
    beta = about.base.matrix @ np.array([*start, *idim.shape])
    (log,) = about.samples
    motion = log.q, log.dq, log.ddq
    torque = true.torque(start, *motion)
    bare = replace(base, idim=replace(true, about=tuple(start)))
    plain = Problem.of(bare, replace(log, tau=log.tau - torque))
    for linear, errors in zip(about.rows(), plain.rows(), strict=True):
        for j in range(3):
            error = linear.y[j] - linear.X[j] @ beta[about.columns[j]]
            np.testing.assert_allclose(error, errors.y[j], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "held_out"),
    [
        pytest.param("load", 4.0, marks=pytest.mark.slow),
        pytest.param("load-square", 4.2, marks=pytest.mark.long),
    ],
)
def test_friction_under_load_explains_a_kr300_better(measured, name, held_out):
    """Held out on B while it moves: the default friction leaves 4.8 %."""
    robot = di.load_robot(measured("kr300/kr300.toml"))
    A, B = (
        prepare(di.read_log(path, robot).rows(450, 2051), bandwidth=5.0)
        for path in (measured("kr300/kr300_A.csv"), measured("kr300/kr300_B.csv"))
    )
    spring = JointElements(1, gas_spring(0.8, 0.2, np.deg2rad(5.0), 0.575))
    problem = Problem(robot, A, name, elements=(spring,))
    fit = di.identify(problem, validation=[B], bootstrap=0, doctor=False)
    assert fit.validation[0].entries[1].overall_percent < held_out


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("load-square", marks=pytest.mark.slow),
        pytest.param("directional-load", marks=pytest.mark.long),
    ],
)
def test_friction_under_load_settles_on_a_lwr4(measured, name):
    """Axes whose loads change their direction at rest; the default friction leaves 5.15 %."""
    robot = di.load_robot(measured("lwr4/kuka_lwr4.urdf"))
    columns = {"time": "times", "q": "positions_*", "tau": "torques_*"}
    slow, fast = (
        prepare(
            di.read_log(measured(f"lwr4/measurements_{k}.npz"), robot, columns=columns),
            bandwidth=10.0,
        )
        for k in (1, 3)
    )
    problem = Problem(robot, slow, name, rotor=False)
    fit = di.identify(problem, validation=[fast], bootstrap=0, doctor=False)
    assert fit.validation[0].entries[1].overall_percent < 5.3


def test_a_shape_that_the_log_does_not_determine_is_held_and_named():
    robot = toy.arm(2)
    samples = prepare(toy.log(robot, seconds=10.0, noise=0.1)[0], bandwidth=10.0)
    fit = di.identify(Problem(robot, samples, "stribeck"), doctor=False)
    held = [w for w in fit.warnings if "it is held at" in w]
    assert held
    names = [w.split()[0] for w in held]
    shape = fit.estimate.shape
    assert [n for n, s in zip(shape.names, shape.std, strict=True) if np.isnan(s)] == names


@pytest.fixture(scope="module")
def loop():
    """A simulated log of a robot with Stribeck friction, its simulation, shapes and values."""
    robot = toy.arm(2)
    model = build_idim(robot, "stribeck").shaped([0.25, 0.4])
    rng = np.random.default_rng(1)
    waves = [0.6 * rng.normal(size=(2, 5)) for _ in range(2)]
    control = pd(300.0, 30.0, n=2, rate=RATE)
    closed = Loop(
        model, control, fourier(RATE, 10.0, 0.1, [0.0, 0.0], *waves), width=np.full(2, 0.02),
        substeps=2,
    )  # fmt: skip
    zero = np.zeros(2)
    sensors = Sensors(zero, np.full(2, 1e-4), np.full(2, 0.1), zero, zero, 0.0, 3)
    theta = values(model)
    log = record_rollout(closed, theta, sensors).recording
    simulation = Simulation(control, substeps=2, width=(0.02, 0.02))
    return Problem(robot, prepare(log, bandwidth=15.0), "stribeck"), simulation, model, theta


@pytest.mark.long
@pytest.mark.parametrize("method", first(["idim-iv", "cloe", "clie", "pc-didim"]))
def test_simulating_methods_find_shapes(loop, method):
    problem, simulation, model, theta = loop
    fit = di.identify(problem, method, simulation=simulation, doctor=False)
    shape = fit.estimate.shape
    # instruments cannot correct the sign of a measured speed that the simulation has smooth
    near = 4.0 if method != "idim-iv" else 6.0
    assert np.all(np.abs(shape.values - model.shape) < near * shape.std)
    assert np.sqrt(np.mean(deviations(fit, theta) ** 2)) < (1.6 if method != "idim-iv" else 2.5)


def test_friction_that_gives_energy_away_is_named():
    problem, _, theta = scene("polynomial", noise=0.0, coupled=False)
    idim = problem.idim
    active = theta.copy()
    active[idim.names.index("f51")] = -5.0
    log = problem.samples[0]
    problem = problem.on(log.driven(idim.torque(active, log.q, log.dq, log.ddq)))
    fit = di.identify(problem, "wls", doctor=False)
    assert any("joint_1: the friction gives energy away" in w for w in fit.warnings)


def test_elimination_is_refused():
    problem, _, _ = scene("stribeck", seconds=5.0)
    with pytest.raises(InputError, match=r"essential .* friction 'stribeck' has shapes"):
        di.identify(problem, "wls", essential="ratio", doctor=False)


@pytest.mark.long
def test_every_model_of_the_library_is_identified():
    """A few seconds of each: that it runs, fits and reports its shapes."""
    for name, model in FRICTIONS.items():
        if model.law is None or "temperature" in model.needs:
            continue
        problem, _, _ = scene(name, noise=0.05, seconds=3.0, coupled=False, n=1)
        fit = di.identify(problem, doctor=False, bootstrap=0)
        assert fit.identification[0].overall_percent < 8.0, name
        assert fit.consistent


@pytest.mark.long
@pytest.mark.parametrize("name", ["load", "dahl"])
def test_the_doctor_looks_at_logs_of_friction_that_depends_on_more(name):
    problem, _, _ = scene(name, seconds=8.0, coupled=False)
    fit = di.identify(problem, bootstrap=0)
    assert fit.findings == ()
    assert "doctor" in fit.timings


# ---- signals of the log beside its motion


def warm_log(tmp_path, columns, unit=0.0):
    """A file of an arm whose friction thins as it warms, the robot, model and parameters."""
    robot = toy.arm(2)
    idim = build_idim(robot, "temperature").shaped([25.0, 40.0])
    theta = values(idim)
    q, dq, ddq = toy.motion(2, 10.0, 4, RATE)
    time = np.arange(len(q)) / RATE
    temp = 20.0 + 15.0 * np.column_stack([time / 10.0, 1.0 - np.exp(-time / 2.5)])
    if columns == ["temp"]:
        temp = temp[:, :1] * np.ones(2)
    tau = idim.torque(theta, q, dq, ddq, conditions=Conditions(temperature=temp))
    tau = tau + 0.02 * tau.std(axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    head = [f"{s}_{joint}" for s in ("q", "tau") for joint in robot.joint_names]
    path = tmp_path / "warm.csv"
    measured = temp[:, : len(columns)] + unit
    write_table(path, ["time", *head, *columns], time, q, tau, measured)
    return path, robot, idim, theta


@pytest.mark.long
@pytest.mark.parametrize("unit", first(["degC", "K"]))
@pytest.mark.parametrize(
    "columns", [["temp_joint_1", "temp_joint_2"], ["temp"], ["warm_a", "warm_b"]]
)
def test_the_temperature_of_a_log_reaches_the_friction(tmp_path, columns, unit):
    path, robot, idim, theta = warm_log(tmp_path, columns, 273.15 if unit == "K" else 0.0)
    mapped = {"temp": columns} if columns[0].startswith("warm") else None
    log = di.read_log(path, robot, columns=mapped, units={"temp": unit})
    assert log.temp.shape == log.q.shape
    assert log.rows(100, 4000).temp[0, 0] == pytest.approx(20.0 + 15.0 * 100 / 5000, abs=1e-6)
    problem = Problem(robot, prepare(log, bandwidth=40.0), "temperature")
    fit = di.identify(problem, "wls", doctor=False, validation=[problem.samples[0]])
    assert np.sqrt(np.mean(deviations(fit, theta) ** 2)) < 1.6
    assert np.all(np.abs(fit.estimate.shape.values - idim.shape) < 4.0 * fit.estimate.shape.std)
    assert fit.validation[0].entries[1].overall_percent < 2.5


def test_a_log_without_temperatures_is_refused_by_name():
    robot = toy.arm(2)
    samples = prepare(toy.log(robot, seconds=5.0)[0], bandwidth=10.0)
    with pytest.raises(InputError, match="needs the drives' temperatures; name them in columns"):
        Problem(robot, samples, "temperature")
    recording = toy.log(robot, seconds=5.0)[0]
    with pytest.raises(InputError, match=r"units.temp = 'F'; known are degC, K"):
        di.read_arrays(
            recording.q, recording.tau, rate=500.0, temp=recording.q, units={"temp": "F"}
        )


def test_viscous_friction_that_drifts_is_found():
    """Each log begins anew, and is told from a constant by its error bar."""
    robot = toy.arm(2)
    idim = build_idim(robot, "viscous-drift")
    theta = values(idim)
    logs = []
    for seed in (4, 5):
        q, dq, ddq = toy.motion(2, 20.0, seed, RATE)
        time = np.arange(len(q)) / RATE
        tau = idim.torque(theta, q, dq, ddq, conditions=Conditions(time=time))
        tau = tau + 0.02 * tau.std(axis=0) * np.random.default_rng(seed).normal(size=tau.shape)
        logs.append(prepare(Recording("log", RATE, q, tau), bandwidth=40.0))
    fit = di.identify(Problem(robot, logs, "viscous-drift"), doctor=False, bootstrap=0)
    assert np.sqrt(np.mean(deviations(fit, theta) ** 2)) < 1.6
    found = dict(zip(fit.base.names, fit.estimate.covariance.std, strict=True))
    assert found["fvt1"] < 0.05 * abs(theta[idim.names.index("fvt1")])
    with pytest.raises(InputError, match="depends on the time since the log began cannot"):
        build_plant(idim, theta, np.full(2, 0.1))


@pytest.mark.long
def test_minima_at_which_loads_change_their_direction_are_reached():
    given = di.read_study(EXAMPLES / "tiago" / "study.toml")
    robot = given.robot.model_copy(update={"friction": "cube-root + load"})
    prepare = given.prepare.model_copy(update={"bandwidth": 2.5, "drop_below": 0.02})
    first, rest = (
        log.model_copy(update={"rows": rows})
        for log, rows in zip(given.log, ((0, 3208), (3208, 5348)), strict=True)
    )
    asked = {"decide": "nothing", "doctor": False, "bootstrap": 0, "lowpass_hz": 5.0}
    identify = given.identify.model_copy(update=asked)
    fit = di.run_study(
        given.model_copy(
            update={"robot": robot, "prepare": prepare, "log": (first, rest), "identify": identify}
        )
    )
    assert fit.validation[0].entries[1].overall_percent < 8.0
