"""Lost motion between the motors of position servos and what they move, where the encoders are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from differences import assert_slope
from lost_motion import COUNT, KP, record_lost_motion, write_pendulum
from scipy.integrate import solve_ivp
from test_encoder import BIAS, RATE
from test_servo_law import servo_loop

import dynident as di
from dynident.control.controller import servo
from dynident.control.reference import Reference
from dynident.core.errors import InputError
from dynident.engines.drive import build_drive
from dynident.friction.gap import ONSET, SETTLING, STIFFNESS, fill_gap_torque
from dynident.friction.kernel import BY_POSITION, BY_SPEED, BY_STATE, VALUE, DriveInstant
from dynident.simulation.loop import LoopColumn
from dynident.simulation.mount import Mount
from dynident.simulation.rollout import rollout, sensitive_rollout

WIDTH = 0.02


@pytest.mark.long
@pytest.mark.parametrize("integrator", ["sdirk2", "ode3"])
def test_a_motion_is_differentiated_by_the_width_and_all_else(tmp_path, integrator):
    substeps = 1 if integrator == "sdirk2" else 16
    loop, theta = servo_loop(tmp_path, 1.0, backlash=WIDTH, ki=0.0, speed_limit=None)
    loop = replace(loop, integrator=integrator, substeps=substeps)
    names = ("Ia2", "fv1", "fc3")
    columns = [loop.idim.names.index(name) for name in names]
    kinds = ("backlash", "gain", "damping", "bias", "place", "speed", "delay")
    # the second joint's weight lies on one flank, whose place no encoder tells
    joint = {"backlash": 2, "delay": 0}
    own = [LoopColumn(kind, joint.get(kind, 1)) for kind in kinds]
    wanted = sensitive_rollout(loop, theta, columns, ("q",), own)
    by = np.concatenate([part.by_q for part in wanted])
    one = np.arange(3) == 1

    def moved(kind, step):
        control = loop.controller
        if kind in names:
            return rollout(loop, theta + step * (np.array(loop.idim.names) == kind)).q
        if kind == "delay":
            other = replace(loop, controller=replace(control, delay=control.delay + step))
        elif kind == "bias":
            other = replace(loop, bias=BIAS + step * one)
        elif kind in ("place", "speed"):
            name = "q0" if kind == "place" else "dq0"
            other = replace(loop, **{name: getattr(loop, name) + step * one})
        else:
            j = joint.get(kind, 1)
            value = control.parameter(kind)[j] + step
            other = replace(loop, controller=control.with_values({f"{kind}{j + 1}": value}))
        return rollout(other, theta).q

    for k, each in enumerate((*names, *kinds)):
        assert np.max(np.abs(by[:, :, k])) > 1e-5, each
        step = {"delay": 1e-8, "bias": 1e-7, "place": 1e-7, "backlash": 1e-7}.get(each, 1e-6)
        assert_slope(partial(moved, each), by[:, :, k], step)


def test_flanks_touch_at_half_the_width_and_never_pull():
    out = np.zeros((1, BY_STATE + 1))

    def torque(position, speed=0.0, width=WIDTH):
        out[:] = 0.0
        at = DriveInstant(speed, position, 0.0, 0.0, 0.0, 0.0, 0.0)
        fill_gap_torque(at, np.array([width]), np.zeros(0), out)
        return out[0, VALUE]

    assert torque(0.49 * WIDTH) == 0.0
    assert torque(0.5 * WIDTH + 1e-3) == pytest.approx(1e-3 - 0.5 * ONSET)
    assert torque(-0.5 * WIDTH - 1e-3) == -torque(0.5 * WIDTH + 1e-3)
    assert torque(0.5 * WIDTH + 1e-3, speed=-1.1e-3 / SETTLING) == 0.0  # on its way back
    for into in (0.3 * ONSET, 7.0 * ONSET):
        for side in (-1.0, 1.0):
            at = side * (0.5 * WIDTH + into)
            torque(at)
            slopes = out[0, [BY_POSITION, BY_SPEED, BY_STATE]]
            assert_slope(lambda h, at=at: torque(at + h), slopes[0], 1e-6)
            assert_slope(lambda h, at=at: torque(at, h), slopes[1], 1e-4)
            assert_slope(lambda h, at=at: torque(at, width=WIDTH + h), slopes[2], 1e-6)


@pytest.mark.long
def test_a_motor_crosses_the_gap_as_two_masses_do(tmp_path):
    """One joint against a solver of scipy's, law, rotor, friction and flanks written out."""
    robot = write_pendulum(tmp_path, joints=1)
    model = di.build_idim(robot)
    qref = np.full((100, 1), 0.5 * np.pi + 0.3)
    qref[50:] -= 0.6
    still = np.zeros_like(qref)
    drives = {"Ia": 0.03, "fv": 0.5, "fc": 0.05}
    theta = model.join(robot.nominal, np.array([drives.get(p.symbol, 0.0) for p in model.drives]))
    width = 0.05
    loop = di.Loop(
        model, servo(KP, backlash=WIDTH, n=1), Reference(50.0, qref, still, still), "sdirk2", 32,
        np.array([width]), held=True, q0=qref[0], dq0=still[0],
    )  # fmt: skip
    found = rollout(loop, theta).q[:, 0]
    none, links = np.zeros((1, 1)), np.where(np.arange(len(theta)) < model.inertial, theta, 0.0)
    inertia = float(np.diff([model.torque(links, none, none, none + k)[0, 0] for k in (0, 1)])[0])

    def push(way):
        into = max(abs(way) - 0.5 * WIDTH, 0.0)
        slope = min(into / ONSET, 1.0)
        return STIFFNESS * np.sign(way) * slope * (into - 0.5 * slope * ONSET)

    def rate(t, x, target):
        q, motor, dq, dmotor = x
        weight = model.torque(theta, np.array([[q]]), none, none)[0, 0]
        gap = push(motor - q + SETTLING * (dmotor - dq))
        law = KP * (target - q) - 0.5 * dmotor - 0.05 * np.tanh(dmotor / width)
        return [dq, dmotor, (gap - weight) / inertia, (law - gap) / 0.03]

    q0 = qref[0, 0]
    weight = model.torque(theta, np.array([[q0]]), none, none)[0, 0]
    bent = weight / STIFFNESS
    x = [q0, q0 + np.sign(bent) * (0.5 * WIDTH + abs(bent) + 0.5 * ONSET), 0.0, 0.0]
    there = [q0]
    for k, (target,) in enumerate(qref[:-1]):
        ends = solve_ivp(rate, (k / 50, (k + 1) / 50), x, "Radau", args=(target,), rtol=1e-8,
                         atol=1e-10)  # fmt: skip
        x = ends.y[:, -1]
        there.append(x[0])
    np.testing.assert_allclose(found, there, atol=2e-4)
    plain = rollout(replace(loop, controller=servo(KP, n=1)), theta).q[:, 0]
    assert np.max(np.abs(plain - found)) > 20 * 2e-4


def test_what_a_lost_motion_is_not_simulated_with_is_refused(tmp_path):
    with pytest.raises(InputError, match="backlash must not be negative"):
        servo(1.0, backlash=-1.0)
    loop, theta = servo_loop(tmp_path, 0.2, backlash=WIDTH)
    for other in (
        replace(loop, controller=servo(80.0, n=3, rate=RATE, backlash=WIDTH)),
        replace(loop, noise=np.zeros_like(loop.reference.q)),
    ):
        with pytest.raises(InputError, match="a backlash"):
            rollout(other, theta)
    mounted = replace(loop, mount=Mount(("pitch",), np.ones((1, 3))))
    with pytest.raises(InputError, match="without a mount"):
        rollout(mounted, theta)
    with pytest.raises(InputError, match=r"without .* backlash"):
        build_drive(loop)
    with pytest.raises(InputError, match="links that are fixed"):
        next(sensitive_rollout(loop, theta, (0,), ("q",)))


def fit_width(tmp_path, width, seed):
    """Width and standard error of a motion of the two-mass twin, which MuJoCo moves."""
    robot = write_pendulum(tmp_path)
    log = record_lost_motion(width, 0.052, seed)
    problem = di.Problem(robot, di.prepare(log, bandwidth=5.0))
    fit = di.identify(
        problem, "cloe", simulation=di.Simulation(servo([KP] * 2)), loop="delay,backlash"
    )
    own = fit.estimate.fitted
    k = own.names.index("backlash1")
    assert own.values[k] == pytest.approx(own.values[own.names.index("backlash2")])
    return float(own.values[k]), float(own.std[k]), fit


@pytest.mark.long
def test_the_width_is_found_in_the_logs_of_another_simulator(tmp_path):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    found, std, fit = fit_width(tmp_path, 8.7e-3, 0)
    assert abs(found - 8.7e-3) < 4.0 * std
    assert std < 0.1 * 8.7e-3
    assert fit.simulated[0].free[-1].overall_milli < 1.5e3 * COUNT / np.sqrt(12.0)
    document, notes = fit.model_mjcf()
    assert b"j2_backlash" in document
    assert not any("of the loop" in note for note in notes)
    assert any("backlash2" in note and "of the loop" in note for note in fit.model_urdf()[1])
