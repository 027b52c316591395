"""Stretches of encoder logs along which no free robot moves: found, left out, and said."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from test_encoder import DELAY, DRIVES, KD, KP, RATE, log_of, twin

import dynident as di
from dynident.control.controller import pd
from dynident.estimators.closed_loop import choose_judged_error
from dynident.estimators.hindered import (
    FreeWindows,
    estimate_scatter,
    examine_free_motion,
    find_hindered,
    leave_out_hindered,
    list_stretches,
    measure_free_motion,
    select_windows,
)
from dynident.fit.json import serialise_result

JOINTS = ("a", "b", "c", "d", "e")
STEP = 50  # samples in a window


def windows_of(count: int, seed: int, spread: float = 0.6) -> FreeWindows:
    """Errors that scatter widely about what is usual of each joint."""
    rng = np.random.default_rng(seed)
    error = np.array([1.0, 2.0, 3.0, 1.5, 2.0]) * np.exp(spread * rng.normal(size=(count, 5)))
    spans = tuple((STEP * k, STEP * (k + 1)) for k in range(count))
    return FreeWindows(spans, error, np.full_like(error, 100.0))


def log_over(windows: FreeWindows) -> SimpleNamespace:
    return SimpleNamespace(name="log", rate=float(STEP), runs=((0, windows.spans[-1][1]),))


def find(windows: FreeWindows) -> list[tuple[int, int]]:
    scatter = estimate_scatter([windows])
    assert scatter is not None
    found = find_hindered(log_over(windows), windows, scatter, JOINTS)
    return [(each.start, each.stop) for each in found]


def test_false_alarms_are_as_rare_as_they_are_said_to_be():
    """One log in a hundred, and at most one or two of two hundred here."""
    alarms = sum(bool(find(windows_of(60, seed))) for seed in range(200))
    assert alarms <= 7  # 2 expected; more by chance in one of two hundred trials


def test_joints_that_err_together_are_found_with_the_windows_beside_them():
    windows = windows_of(60, 0)
    windows.error[20:24, 1:4] *= 15.0
    windows.error[24, 1:4] = 5.0 * np.array([2.0, 3.0, 1.5])  # not sure by itself
    assert find(windows) == [(20 * STEP - STEP // 2, 25 * STEP + STEP // 2)]
    (told,) = find_hindered(log_over(windows), windows, estimate_scatter([windows]), JOINTS)
    assert {"b", "c", "d"} <= set(told.joints)
    assert "rows 975 to 1275 (19.5 to 25.5 s)" in told.words


def test_a_joint_alone_and_joints_that_rest_are_not_found():
    windows = windows_of(60, 0)
    windows.error[20:24, 1] *= 40.0
    assert find(windows) == []
    windows.motion[:, :4] = 0.0  # one joint moves
    assert estimate_scatter([windows]) is None


def test_what_is_left_is_no_shorter_than_a_window():
    windows = windows_of(20, 0)
    within = np.zeros(20, dtype=bool)
    within[[0, 4, 6, 18]] = True
    log = replace_runs(((0, 1000),))
    assert list_stretches(log, windows, within, STEP) == [(0, 75), (175, 375), (875, 1000)]
    within = select_windows(windows, np.ones(20, dtype=bool), np.arange(20) == 9)
    assert within.all()


def replace_runs(runs: tuple[tuple[int, int], ...]) -> SimpleNamespace:
    return SimpleNamespace(name="log", rate=float(STEP), runs=runs)


PUSH = slice(1000, 1300)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory) -> tuple[di.Problem, di.Simulation, np.ndarray]:
    """A twin that a hand takes for a second and a half, at two joints."""
    robot, loop, theta = twin(tmp_path_factory.mktemp("arm"), 10.0, bias=None)
    hand = np.zeros_like(loop.reference.q)
    rise = np.sin(np.linspace(0.0, np.pi, PUSH.stop - PUSH.start)) ** 0.5
    hand[PUSH, :2] = rise[:, None] * np.array([14.0, -10.0])
    log = log_of(replace(loop, external=hand), theta)
    problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
    return problem, di.Simulation(pd(KP, KD), width=0.03), theta


def test_a_push_is_found_by_the_true_model_and_nothing_without_it(pushed, tmp_path):
    problem, simulation, theta = pushed
    loop = simulation.of_encoders().with_values({"delay": DELAY})
    scatter, ((told,),) = examine_free_motion(problem, loop, theta)
    assert scatter is not None
    assert told.start < PUSH.start < PUSH.stop < told.stop
    assert told.stop - told.start < 4.0 * RATE
    assert {"j1", "j2"} <= set(told.joints)
    ((*_, without, whole),) = measure_free_motion(problem, loop, theta, ((told,),))
    assert 5.0 * without.overall_milli < 5.0 < whole.overall_milli
    assert choose_judged_error((without, whole)) is without
    _, free, _ = twin(tmp_path, 10.0, bias=None)
    quiet = problem.on(di.prepare(log_of(free, theta), bandwidth=10.0))
    assert examine_free_motion(quiet, loop, theta, scatter)[1] == ((),)


@pytest.mark.long
def test_a_push_is_left_out_of_the_fit_and_said(pushed):
    problem, simulation, _ = pushed
    fit = di.identify(problem, "cloe", simulation=simulation, doctor=False)
    own = fit.estimate.fitted
    ((told,),) = own.hindered
    assert told.start < PUSH.start < PUSH.stop < told.stop
    assert told.stop - told.start < 4.0 * RATE
    assert {"j1", "j2"} <= set(told.joints)
    for note in (fit.warnings, fit.verdict.reasons):
        assert any(told.words in str(words) for words in note)
    *_, without, whole = fit.simulated[0].free
    assert 5.0 * without.overall_milli < 5.0 < whole.overall_milli
    assert "unhindered" in fit.summary()
    last, _ = serialise_result(fit)["free_simulation"][-2:]
    assert last["without"][0]["rows"] == [told.start, told.stop]
    values = dict(zip(own.names, own.values, strict=True))
    assert abs(values["delay"] - DELAY) < 0.1 / RATE
    for j in range(3):
        for k, symbol in enumerate(("Ia", "fv", "fc", "off")):
            assert abs(values[f"{symbol}{j + 1}"] - DRIVES[j, k]) < 0.01 * DRIVES[0, k] + 0.005
    (log,) = problem.samples
    left = leave_out_hindered(log, [told])
    assert left.runs == ((0, told.start), (told.stop, len(log.q)))


@pytest.mark.long
def test_a_push_that_is_fitted_spoils_the_drives(pushed):
    problem, simulation, _ = pushed
    fit = di.identify(problem, "cloe", simulation=simulation, doctor=False, hindered="fitted")
    own = fit.estimate.fitted
    assert own.hindered == ((),)
    values = dict(zip(own.names, own.values, strict=True))
    assert abs(values["fc1"] - DRIVES[0, 2]) > 0.1
    assert abs(values["off1"] - DRIVES[0, 3]) > 0.5
    assert all(not each.without for each in fit.simulated[0].free)


@pytest.mark.long
@pytest.mark.measured
@pytest.mark.parametrize(("name", "kp", "kd"), [("z1", 80.0, 2.5), ("go2", 20.0, 1.5)])
def test_robots_that_touch_nothing_raise_no_alarm(measured, name, kp, kd):
    """Their errors are large at single joints: a gripper at its stop, calves of uneven friction."""
    folder = measured("unitree")
    robot = di.load_robot(folder / f"{name}.urdf")
    log = di.read_log(folder / f"{name}_first.csv", robot, torque=False)
    first, last = (
        di.prepare(log.rows(*part), bandwidth=10.0) for part in ((0, 2088), (2088, 3133))
    )
    gains = [80.0, 120.0, 120.0, 80.0, 80.0, 80.0, 80.0] if name == "z1" else [kp] * robot.n
    fit = di.identify(
        di.Problem(robot, first), "cloe", validation=[last], doctor=False,
        simulation=di.Simulation(pd(gains, kd)),
    )  # fmt: skip
    assert fit.estimate.fitted.scatter is not None
    assert fit.estimate.fitted.hindered == ((),)
    assert fit.validation[0].hindered == ()
