import numpy as np
import pytest
from loops import next_state, output
from scipy import signal

from dynident.control.controller import (
    CONTROLLERS,
    INPUTS,
    p,
    p_p,
    p_pi,
    pd,
    pid,
    state_space,
    transfer_function,
)
from dynident.core.errors import InputError

STEP = np.array([1.0, 0.0, 0.0, 0.0, 0.0])  # of the reference, the robot held at zero


def rows(n, samples, **signals):
    """Inputs (samples, n, 5) from named signals, the rest zero."""
    w = np.zeros((samples, n, len(INPUTS)))
    for k, name in enumerate(INPUTS):
        if name in signals:
            w[:, :, k] = np.asarray(signals[name]).reshape(samples, -1)
    return w


def respond(controller, w, h=None):
    """Outputs of a sampled controller, or of a continuous one by Runge-Kutta with step h."""
    z = np.zeros((controller.n, controller.states))
    out = []
    for row in w:
        out.append(output(controller, z, row))
        if controller.rate is not None:
            z = next_state(controller, z, row)
            continue
        k1 = next_state(controller, z, row)
        k2 = next_state(controller, z + 0.5 * h * k1, row)
        k3 = next_state(controller, z + 0.5 * h * k2, row)
        k4 = next_state(controller, z + h * k3, row)
        z = z + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return np.array(out)


def smooth(samples, rate, n=2):
    """A motion that follows its reference with some error."""
    t = np.arange(samples) / rate
    phase = np.arange(n)
    qref = 0.5 * np.sin(2.0 * np.pi * t[:, None] + phase)
    dqref = np.pi * np.cos(2.0 * np.pi * t[:, None] + phase)
    q = 0.48 * np.sin(2.0 * np.pi * t[:, None] + phase - 0.1)
    dq = 0.96 * np.pi * np.cos(2.0 * np.pi * t[:, None] + phase - 0.1)
    return rows(n, samples, qref=qref, dqref=dqref, q=q, dq=dq)


# ---------------------------------------------------------------- the static laws


def test_p_pd_and_cascade_are_their_formulas():
    w = smooth(50, 100.0)
    qref, dqref, _, q, dq = np.moveaxis(w, 2, 0)
    kp, kd = np.array([10.0, 20.0]), np.array([1.0, 3.0])
    cases = {
        "p": (p(kp), kp * (qref - q)),
        "pd": (pd(kp, kd), kp * (qref - q) + kd * (dqref - dq)),
        "without": (pd(kp, kd, velocity_reference=False), kp * (qref - q) - kd * dq),
        "cascade": (p_p(kp, kd, 0.7), kd * (kp * (qref - q) + 0.7 * dqref - dq)),
    }
    for name, (controller, expected) in cases.items():
        assert controller.states == 0, name
        np.testing.assert_allclose(respond(controller, w, 0.01), expected, atol=1e-12)


def test_output_is_limited_joint_by_joint():
    controller = p(10.0, limit=[2.0, np.inf])
    w = np.stack([5.0 * STEP, -5.0 * STEP])
    np.testing.assert_allclose(output(controller, np.zeros((2, 0)), w), [2.0, -50.0])


def test_computed_torque_adds_the_reference_acceleration():
    w = np.array([[0.0, 0.0, 3.0, 0.0, 0.0]])
    none = np.zeros((1, 0))
    assert output(pd(10.0, 2.0, compensation="computed-torque"), none, w) == 3.0
    assert output(pd(10.0, 2.0, compensation="gravity"), none, w) == 0.0


# ---------------------------------------------------------------- integral action


def test_continuous_pid_on_a_step_and_a_ramp():
    h, t = 1e-3, np.arange(1000) * 1e-3
    step = respond(pid(4.0, 8.0, 1.0), rows(1, 1000, qref=np.ones(1000)), h)[:, 0]
    np.testing.assert_allclose(step, 4.0 + 8.0 * t, rtol=1e-10)
    # Runge-Kutta sees the ramp as steps: compare with the sum it stands for
    ramp = respond(pid(4.0, 8.0, 1.0), rows(1, 1000, qref=t, dqref=np.ones(1000)), h)[:, 0]
    np.testing.assert_allclose(ramp, 4.0 * t + 1.0 + 4.0 * t * (t - h), atol=1e-9)


@pytest.mark.long
def test_sampled_pid_is_forward_euler_and_meets_the_continuous_one():
    qref = np.sin(np.arange(100.0))
    out = respond(pid(4.0, 8.0, rate=50.0), rows(1, 100, qref=qref))[:, 0]
    past = np.concatenate([[0.0], np.cumsum(qref)[:-1]])
    np.testing.assert_allclose(out, 4.0 * qref + 8.0 / 50.0 * past, atol=1e-12)
    gaps = []
    for rate in (50.0, 250.0):
        w = smooth(int(rate), rate, 1)
        exact = smooth(int(rate) * 10, rate * 10, 1)
        fine = respond(pid(4.0, 8.0, 1.0), exact, 1.0 / (rate * 10))[::10]
        gaps.append(np.max(np.abs(respond(pid(4.0, 8.0, 1.0, rate=rate), w) - fine)))
    assert gaps[1] < 0.24 * gaps[0]  # first order
    assert gaps[1] < 0.02


def test_cascade_with_integral_velocity_loop():
    w = smooth(300, 1000.0)
    qref, dqref, _, q, dq = np.moveaxis(w, 2, 0)
    kp, kv, ki, ff = 12.0, np.array([3.0, 4.0]), np.array([50.0, 0.0]), 0.9
    error = kp * (qref - q) + ff * dqref - dq
    past = np.vstack([np.zeros(2), np.cumsum(error, axis=0)[:-1]])
    out = respond(p_pi(kp, kv, ki, ff, rate=1000.0), w)
    np.testing.assert_allclose(out, kv * error + ki * past / 1000.0, atol=1e-10)


def closed_loop(controller, seconds=25.0, h=5e-3, target=1.0):
    """Positions and outputs of a unit mass with viscous friction under a sampled controller."""
    z = np.zeros((1, controller.states))
    q = dq = 0.0
    qs, us = [], []
    for _ in range(round(seconds / h)):
        w = np.array([[target, 0.0, 0.0, q, dq]])
        u = float(output(controller, z, w)[0])
        z = next_state(controller, z, w)
        dq += h * (u - dq)
        q += h * dq
        qs.append(q)
        us.append(u)
    return np.array(qs), np.array(us)


@pytest.mark.long
def test_back_calculation_keeps_the_integral_from_winding_up():
    gains = {"kp": 8.0, "ki": 10.0, "kd": 4.0, "limit": 1.0, "rate": 200.0}
    with_it, u = closed_loop(pid(**gains))
    without, _ = closed_loop(pid(**gains, tracking_time=np.inf))
    assert np.max(np.abs(u)) <= 1.0
    assert np.max(without) - 1.0 > 3.0 * (np.max(with_it) - 1.0)
    assert with_it[-1] == pytest.approx(1.0, abs=1e-3)


def test_back_calculation_settles_at_the_limit_with_its_tracking_time():
    """Held in saturation, I goes to where ki e + (sat(u) - u) / T = 0, with time constant T."""
    T, h = 0.2, 1e-3
    controller = pid(2.0, 5.0, limit=1.0, tracking_time=T)
    z = np.zeros((1, 1))
    history = []
    for _ in range(2000):
        history.append(z[0, 0])
        z = z + h * next_state(controller, z, STEP[None])
    rest = 1.0 + T * 5.0 - 2.0
    assert history[-1] == pytest.approx(rest, abs=1e-3)
    t = np.arange(2000) * h
    np.testing.assert_allclose(history, rest * (1.0 - np.exp(-t / T)), atol=5e-3)


def test_default_tracking_times():
    kw = {"limit": 1.0}
    assert pid(8.0, 2.0, 0.5, **kw).antiwindup == pytest.approx(2.0)  # 1 / sqrt(kd / ki)
    assert pid(8.0, 2.0, **kw).antiwindup == pytest.approx(0.25)  # ki / kp
    assert p_pi(5.0, 8.0, 2.0, **kw).antiwindup == pytest.approx(0.25)
    assert pid(8.0, 2.0, 0.5, rate=100.0, **kw).antiwindup == pytest.approx(0.02)
    # never faster than the clock
    assert pid(0.001, 200.0, rate=100.0, **kw).antiwindup == pytest.approx(1.0)
    np.testing.assert_array_equal(pid(8.0, [0.0, 2.0], **kw).antiwindup[:, 0], [0.0, 0.25])
    assert pid(0.0, 3.0).antiwindup == 0.0  # a pure integrator without a limit needs none


# ---------------------------------------------------------------- transfer functions

POLYNOMIALS = [
    ([3.0], [2.0]),
    ([1.0, 4.0], [0.02, 1.0]),
    ([5.0], [1.0, 3.0, 40.0]),
    ([2.0, 30.0, 80.0], [1.0, 60.0, 0.0]),
]


@pytest.mark.parametrize(("num", "den"), POLYNOMIALS)
def test_continuous_transfer_function_has_the_step_response_of_scipy(num, den):
    t = np.arange(1000) * 1e-3
    ours = respond(transfer_function(num, den), rows(1, 1000, qref=np.ones(1000)), 1e-3)[:, 0]
    if len(den) == 1:
        np.testing.assert_allclose(ours, num[0] / den[0])
        return
    _, theirs = signal.step((num, den), T=t)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("num", "den"), POLYNOMIALS)
def test_sampled_transfer_function_is_tustins_of_scipy(num, den):
    noise = np.random.default_rng(0).normal(size=300)
    ours = respond(transfer_function(num, den, rate=200.0), rows(1, 300, q=-noise))[:, 0]
    if len(den) == 1:
        np.testing.assert_allclose(ours, num[0] / den[0] * noise)
        return
    top, bottom, _ = signal.cont2discrete((num, den), 1.0 / 200.0, method="bilinear")
    np.testing.assert_allclose(ours, signal.lfilter(np.ravel(top), bottom, noise), atol=1e-9)


def test_transfer_functions_of_several_joints_are_padded():
    nums, dens = zip(*POLYNOMIALS, strict=True)
    together = transfer_function(nums, dens, rate=500.0)
    assert (together.n, together.states) == (4, 2)
    w = rows(4, 100, qref=np.ones((100, 4)))
    alone = [respond(transfer_function(a, b, rate=500.0), w[:, :1])[:, 0] for a, b in POLYNOMIALS]
    np.testing.assert_allclose(respond(together, w), np.transpose(alone), atol=1e-10)
    assert transfer_function([1.0], dens).n == 4
    assert transfer_function([1.0], [1.0, 2.0], n=3).n == 3


@pytest.mark.long
def test_state_space_is_taken_as_it_is():
    A, B = [[0.0, 1.0], [-4.0, -0.5]], np.zeros((2, 5))
    B[1, 0] = 4.0
    controller = state_space(A, B, [1.0, 0.0], np.zeros(5), n=2)
    out = respond(controller, rows(2, 2000, qref=np.ones(2000)), 1e-3)
    _, theirs = signal.step((A, B[:, :1], [[1.0, 0.0]], [[0.0]]), T=np.arange(2000) * 1e-3)
    np.testing.assert_allclose(out, np.column_stack([theirs, theirs]), atol=1e-8)
    each = state_space([A, A], B, [1.0, 0.0], np.zeros(5), antiwindup=0.5)
    assert each.n == 2
    np.testing.assert_array_equal(each.antiwindup, np.full((2, 2), 0.5))


# ---------------------------------------------------------------- differences, gains


@pytest.mark.parametrize("make", ["pd", "pid", "p-p", "p-pi"])
def test_differences_replace_the_velocity(make):
    """Fed with the differences as a measured velocity, the plain law gives the same."""
    gains = {
        "pd": {"kp": 10.0, "kd": 2.0},
        "pid": {"kp": 10.0, "ki": 5.0, "kd": 2.0},
        "p-p": {"kp": 10.0, "kv": 2.0},
        "p-pi": {"kp": 10.0, "kv": 2.0, "ki": 30.0},
    }[make]
    rate, lags = 200.0, (1, 3)
    w = smooth(100, rate)
    fed = w.copy()
    for j, lag in enumerate(lags):
        past = np.concatenate([np.zeros(lag), w[:-lag, j, 3]])
        fed[:, j, 4] = (w[:, j, 3] - past) * rate / lag
    maker = CONTROLLERS[make]
    sampled = maker(**gains, rate=rate, velocity="differences", lag=lags)
    ours, plain = respond(sampled, w), maker(**gains, rate=rate, n=2)
    np.testing.assert_allclose(ours, respond(plain, fed), atol=1e-9)
    slow = sampled.of_an_instant
    if plain.states:  # an integral remembers all that was
        assert slow is None
    else:
        assert slow.states == 0
        np.testing.assert_allclose(slow.D, plain.D, atol=1e-9)


def test_scaling_multiplies_the_gain_only():
    controller = pid(10.0, 2.0, 1.0, gain=[3.0, 4.0], limit=5.0, rate=100.0)
    scaled = controller.scaled([2.0, 0.5])
    np.testing.assert_array_equal(scaled.gain, [6.0, 2.0])
    np.testing.assert_array_equal(scaled.limit, controller.limit)
    np.testing.assert_array_equal(controller.scaled(2.0).gain, [6.0, 8.0])
    with pytest.raises(InputError, match="factor has to be a number, or 2 numbers"):
        controller.scaled([1.0, 2.0, 3.0])


def test_arrays_are_read_only_and_their_own():
    kp = np.array([1.0, 2.0])
    controller = p(kp)
    kp[0] = 5.0
    assert controller.D[0, 0] == 1.0
    for name in ("A", "B", "C", "D", "antiwindup", "band", "gain", "limit"):
        assert not getattr(controller, name).flags.writeable
        assert getattr(controller, name).flags.c_contiguous


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pd([1.0] * 5, 1.0, n=6), "^kp has 5 values, the robot has 6 joints$"),
        (lambda: pd([1.0], 1.0, n=6), "^kp has 1 value, the robot has 6 joints$"),
        (lambda: pd([1.0] * 5, [1.0] * 6), "^kp has 5 values, kd has 6$"),
        (lambda: p(1.0, n=2, limit=[1.0] * 3), "limit has 3 values, the robot has 2 joints"),
        (lambda: p([1.0, np.nan]), "kp has a value that is not a finite number"),
        (lambda: p([[1.0, 2.0]]), "kp has to be a number, or 1 numbers: one for each joint"),
        (lambda: p(1.0, rate=0.0), "rate has to be positive, got 0 Hz"),
        (lambda: pid(1.0, 1.0, rate=-5.0), "rate has to be positive, got -5 Hz"),
        (lambda: p(1.0, delay=-0.1), "delay has to be zero or more, got -0.1 s"),
        (lambda: p(1.0, limit=0.0), "limit has to be positive; leave it out for none"),
        (lambda: p(1.0, limit=np.nan), "limit has to be positive"),
        (lambda: p(1.0, gain=np.inf), "gain has a value that is not a finite number"),
        (lambda: p(1.0, compensation="gravty"), "'gravty' is not known; did you mean 'gravity'"),
        (lambda: p(1.0, velocity="difference"), "did you mean 'differences'"),
        (lambda: p(1.0, limt=3.0), "unknown controller setting 'limt'; did you mean 'limit'"),
        (lambda: p_p(1.0, 1.0, velocity="differences"), "a sampled controller: give a rate"),
        (lambda: p_p(1.0, 1.0, lag=2), "lag is for velocity = 'differences'"),
        (
            lambda: p_p(1.0, 1.0, rate=10.0, velocity="differences", lag=1.5),
            "lag has to be a whole number of samples from 1 to 200",
        ),
        (lambda: pid(1.0, 1.0, tracking_time=0.001, rate=10.0, limit=1.0), "no shorter than"),
        (lambda: pid(0.0, 1.0, limit=1.0), "tracking_time has to be positive"),
        (lambda: transfer_function([1.0, 0.0], [1.0]), "joint 1: degree 1 over 0 is improper"),
        (lambda: transfer_function([1.0], [0.0]), "den of joint 1 has to be finite numbers"),
        (
            lambda: transfer_function([[1.0], [1.0]], [1.0, 1.0], n=3),
            "num has 2 values, the robot has 3 joints",
        ),
        (
            lambda: state_space(np.eye(2), np.zeros((2, 4)), [1.0, 0.0], np.zeros(5)),
            r"B has shape \(1, 2, 4\), needs \(1, 2, 5\)",
        ),
        (lambda: p(1.0, n=0), "C has shape"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()
