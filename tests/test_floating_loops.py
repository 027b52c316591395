"""Closed loops of floating robots: the base moves as it was measured, the joints are simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import ask
from differences import assert_slope
from floating import Made, solo
from robots import EXAMPLES

import dynident as di
from dynident.cli import run
from dynident.control.controller import pd
from dynident.control.reference import Reference
from dynident.core.errors import InputError
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout, sensitive_rollout

KP, KD = np.full(12, 40.0), np.full(12, 1.0)
LAW = pd(KP, KD, velocity_reference=False)
NOISE = 4e-4
LONG = pytest.mark.long


@pytest.fixture(scope="module")
def made() -> Made:
    """A log in which the joints moved as the law has them move: simulated, and its own torque."""
    shaken = solo(seconds=4.0)
    log = shaken.recording
    asked = log.q + (log.tau + KD * log.dq) / KP
    log = replace(log, qref=asked)
    made = replace(shaken, recording=log)
    for _ in range(4):  # the feet's wrenches act where the joints are
        (motion,) = build_auxiliary_model(pose(made), Simulation(LAW)).motions(shaken.theta)
        q, dq, ddq = motion.q[:, 7:], motion.dq[:, 6:], motion.ddq[:, 6:]
        made = replace(made, recording=replace(log, q=q, dq=dq, ddq=ddq, tau=motion.tau[:, 6:]))
    # without the first steps, whose speed is one of differences
    return replace(made, recording=made.recording.rows(500, 2000))


def pose(made: Made, **changes: object) -> di.Problem:
    log = replace(made.recording, **changes)
    derivatives = "differences" if log.dq is None else "measured"
    samples = di.prepare(log, bandwidth=30.0, derivatives=derivatives)
    return di.Problem(made.robot, samples, "viscous")


def error(problem: di.Problem, beta: np.ndarray, made: Made) -> float:
    truth = problem.base.matrix @ made.theta
    return float(np.linalg.norm(beta - truth) / np.linalg.norm(truth))


def test_joints_move_alike_whether_the_base_is_free_or_led_along_the_same_motion(made):
    rate, samples, n = 2000.0, 800, 12
    t = np.arange(samples)[:, None] / rate
    waves = 0.2 * np.sin(2.0 * np.pi * t * np.linspace(0.7, 1.9, n))
    targets = np.tile([0.0, 0.7, -1.4], 4) + waves
    reference = Reference(rate, targets, np.gradient(targets, 1.0 / rate, axis=0), 0.0 * targets)
    push = np.hstack([5.0 * np.sin(9.0 * t + np.arange(6)), np.cos(7.0 * t + np.arange(n))])
    loop = Loop(made.idim, LAW, reference, "ode4", external=push)
    free = rollout(loop, made.theta)
    led = np.hstack([free.q[:, :7], free.dq[:, :6], free.ddq[:, :6]])
    led[samples // 2 :, 3:7] *= -1.0  # the same rotation
    # what pushes a base that is led changes nothing
    push[:, :6] = 1e3
    found = rollout(replace(loop, base=led, external=push), made.theta)
    assert np.ptp(free.q[:, 3]) > 0.1
    np.testing.assert_allclose(found.q[:, 7:], free.q[:, 7:], atol=1e-6)
    np.testing.assert_allclose(found.tau, free.tau, atol=1e-4)
    # between samples it is on a line, and so its error is of the second order
    coarse = rollout(replace(loop, reference=Reference(rate / 2, *(
        signal[::2] for signal in (reference.q, reference.dq, reference.ddq)
    )), base=led[::2], external=push[::2]), made.theta)  # fmt: skip
    ratio = np.max(np.abs(coarse.q - free.q[::2])[:, 7:]) / np.max(np.abs(found.q - free.q)[:, 7:])
    assert 2.5 < ratio < 6.5


def test_sensitivities_are_those_of_differences(made):
    problem = pose(made)
    ((_, _, loop),) = build_auxiliary_model(problem, Simulation(LAW)).loops[0]
    loop = replace(
        loop, reference=loop.reference.rows(0, 200), base=loop.base[:200],
        external=loop.external[:200],
    )  # fmt: skip
    chosen = [made.idim.names.index(name) for name in ("m2", "mx3", "Izz9", "Ia5", "fv7")]
    parts = list(sensitive_rollout(loop, made.theta, chosen, ("q", "tau")))
    by_q, by_tau = (np.concatenate([getattr(p, f"by_{s}") for p in parts]) for s in ("q", "tau"))
    for k, column in enumerate(chosen):

        def along(step: float, column: int = column) -> np.ndarray:
            theta = made.theta.copy()
            theta[column] += step
            motion = rollout(loop, theta)
            return np.stack([motion.q[:, 7:], motion.tau])

        assert_slope(along, np.stack([by_q[:, :, k], by_tau[:, :, k]]), 1e-5, within=1e-4)


@pytest.mark.long
@pytest.mark.parametrize(
    "method",
    [
        "idim-iv",
        "didim",
        *(pytest.param(m, marks=LONG) for m in ("2sls", "pc-idim-iv", "pc-didim")),
    ],
)
def test_methods_that_simulate_find_the_robot_and_its_base(made, method):
    problem = pose(made)
    fit = di.identify(problem, method, simulation=Simulation(LAW))
    assert len(fit.estimate.beta) == 118
    assert error(problem, fit.estimate.beta, made) < 2e-4
    (figure,) = fit.simulated
    assert figure.position_rms.shape == (12,)
    assert figure.position_rms.max() < 1e-5


@pytest.mark.long
@pytest.mark.parametrize("method", ["cloe", pytest.param("clie", marks=LONG)])
def test_outputs_of_the_joints_are_fitted_where_the_base_is_led(made, method):
    problem = pose(made, equations="joints")
    start = di.identify(problem, "wls").estimate.beta
    off = dict(zip(problem.base.names, start * 1.01, strict=True))
    fit = di.identify(problem, method, simulation=Simulation(LAW, start=off))
    assert error(problem, fit.estimate.beta, made) < 2e-4


@pytest.mark.long
def test_noise_of_encoders_biases_least_squares_and_no_instruments(made):
    rng = np.random.default_rng(5)
    q = made.recording.q
    problem = pose(made, q=q + NOISE * rng.standard_normal(q.shape), dq=None, ddq=None)
    wls = di.identify(problem, "wls").estimate.beta
    simulation = Simulation(LAW, start="nominal")
    instruments = di.identify(problem, "idim-iv", simulation=simulation)
    assert error(problem, instruments.estimate.beta, made) < 0.3 * error(problem, wls, made)


def test_what_cannot_be_simulated_is_refused_in_a_line(made):
    simulation = Simulation(LAW)
    bears = {name: np.ones(len(made.recording.q), dtype=bool) for name in made.recording.wrenches}
    loose = pose(made, wrenches={}, touching=bears, contact_speed=10.0)
    with pytest.raises(InputError, match="the load on FL, FR, HL, HR is not measured"):
        di.identify(loose, "idim-iv", simulation=simulation)
    with pytest.raises(InputError, match="equations = 'base' take no drives"):
        di.identify(pose(made, equations="base"), "didim", simulation=simulation)
    with pytest.raises(InputError, match="set equations = 'joints'"):
        di.identify(pose(made), "clie", simulation=simulation)
    fixed = di.build_idim(replace(made.robot, floating=False, contacts=()))
    asked = Reference(10.0, *np.zeros((3, 5, 12)))
    with pytest.raises(InputError, match="needs a floating robot"):
        Loop(fixed, LAW, asked, base=np.zeros((5, 19)))


@pytest.mark.slow
def test_a_quadruped_is_simulated_identified_and_replayed_by_commands(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ("quadruped.urdf", "simulate.toml"):
        Path(name).write_text(
            (EXAMPLES / "quadruped" / name).read_text(encoding="utf-8"), encoding="utf-8"
        )
    assert run(["simulate", "simulate.toml", "-o", "sway.csv"]) == 0
    text = Path("simulate.toml").read_text(encoding="utf-8")
    model = text[text.index("[robot]") : text.index("[ground]")]
    law = '[controller]\nkind = "pd"\nkp = 120.0\nkd = 3.0\n\n'
    rest = '[prepare]\nbandwidth = 10.0\n\n[identify]\nmethod = "pc-idim-iv"\n'
    Path("study.toml").write_text(
        f'{model}[[log]]\nfiles = "sway.csv"\n\n{law}{rest}', encoding="utf-8"
    )
    assert run(["identify", "study.toml", "-o", "out"]) == 0
    fit = di.read_result("out/result.json")
    assert fit.verdict.state != "refuted"
    (figure,) = fit.simulated
    assert 1e3 * np.sqrt(np.mean(figure.position_rms**2)) < 1.5
    said = ask(capsys, ["replay", "out/result.json", "sway.csv"])
    assert said["overall_rms_mrad"]["dynident"] < 1.5
    assert run(["replay", "out/result.json", "sway.csv", "--engine", "mujoco"]) == 2
    assert "fixed base" in capsys.readouterr().err
