"""Sensitivities of rollouts against difference quotients of rollouts."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import toy
from differences import assert_slope
from frictions import registered, values
from test_simulation import ROBOTS, closed, effect, replayed, still, wave

from dynident.control.controller import CONTROLLERS, pd
from dynident.core.errors import InputError, RolloutError
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.simulation.integrators import INTEGRATORS
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import SENSITIVITIES, rollout, sensitive_rollout

__all__ = ["registered"]

RATE = 250.0
SAMPLES = 80
FIXED = [name for name, robot in ROBOTS.items() if not robot.floating]
FRICTIONS = (
    "none",
    "viscous",
    "viscous-offset",
    "coulomb-viscous",
    "coulomb-viscous-symmetric",
    "coulomb-viscous-asymmetric",
)
PULL = 3e-6
"""How far a difference quotient moves the robot [rad or m]."""
MIXTURES = 3
"""Of all columns, along which quotients are taken."""


def one_of_each(idim):
    """A column of every kind of parameter, of one joint after another."""
    symbols = list(dict.fromkeys(parameter.symbol for parameter in idim.parameters))
    chosen = []
    for turn, symbol in enumerate(symbols):
        alike = [k for k, each in enumerate(idim.parameters) if each.symbol == symbol]
        chosen.append(alike[-1 - turn % len(alike)])
    return chosen


def exact(loop, theta, columns):
    """Motion (4, samples, n) of q, dq, ddq, tau, and its sensitivities with columns last."""
    parts = list(sensitive_rollout(loop, theta, columns))
    return np.stack(
        [np.concatenate([getattr(part, f"by_{name}") for part in parts]) for name in SENSITIVITIES]
    )


def moved(loop, parameters):
    """Motion of standard parameters, and of the friction's shapes if they come after them."""
    theta, shape = np.split(parameters, [len(loop.idim.parameters)])
    if len(shape):
        loop = replace(loop, idim=loop.idim.shaped(shape))
    motion = rollout(loop, theta)
    return np.stack([motion.q, motion.dq, motion.ddq, motion.tau])


def assert_differences_agree(loop, theta, columns, pull=PULL):
    """Along mixtures of all columns; hands out the motions that were compared.

    A mixture has every column by a like share of what the robot moves, whether its parameter
    means much or little: none can be wrong in a column and right along all of them. The step is
    such that the robot moves by `pull`.
    """
    ours = exact(loop, theta[: len(loop.idim.parameters)], columns)
    assert np.isfinite(ours).all()
    reach = np.abs(ours[0]).max(axis=(0, 1))
    rng = np.random.default_rng(0)
    motions, still = [], moved(loop, theta)
    for _ in range(MIXTURES):
        shares = rng.choice([-1.0, 1.0], len(columns)) * rng.uniform(0.5, 1.0, len(columns))
        shares /= np.maximum(reach, 1e-3 * reach.max())
        shares *= pull / np.abs(ours[0] @ shares).max()
        step = np.zeros(len(theta))
        step[list(columns)] = shares
        around = {t: moved(loop, theta + t * step) for t in (-2.0, -1.0, 1.0, 2.0)}
        around[0.0] = still
        for signal, slope in enumerate(ours @ shares):
            assert_slope(lambda t, at=around, k=signal: at[t][k], slope, 1.0)
        motions += around.values()
    return motions


def case(robot, kind, friction="coulomb-viscous", options=None, **settings):
    """A loop with columns to differentiate by."""
    robot = ROBOTS[robot]
    control = CONTROLLERS[kind](n=robot.n, **settings)
    loop, theta = closed(
        robot,
        control,
        wave(robot.n, SAMPLES / RATE, RATE),
        friction,
        **{"model": 0.8, **(options or {})},
    )
    return loop, theta, one_of_each(loop.idim)


PD = {"kp": 120.0, "kd": 15.0}
CLOCKED = {"rate": RATE, "velocity": "differences", "lag": 2}
DIFFERENCES = {**PD, **CLOCKED}
STATES = {
    "A": [[0.3, 0.2], [-0.1, 0.5]],
    "B": [[5.0, 0.1, 0.001, -5.0, -0.1], [1.0, 0.2, 0.0, -1.0, 0.0]],
    "C": [3.0, -2.0],
    "D": [60.0, 6.0, 0.01, -60.0, -6.0],
}
LOOPS = {
    "p": ("p", {"kp": 50.0}),
    "pd": ("pd", PD),
    "sampled pd": ("pd", {**PD, "rate": RATE}),
    "differences": ("pd", DIFFERENCES),
    "pid": ("pid", {**PD, "ki": 300.0}),
    "sampled pid": ("pid", {**DIFFERENCES, "ki": 300.0}),
    "pid off near its target": ("pid", {**PD, "ki": 3000.0, "integral_band": 0.02}),
    "sampled pid off near its target": (
        "pid",
        {**DIFFERENCES, "ki": 3000.0, "limit": 15.0, "integral_band": 0.02},
    ),
    "sampled p-pi off near its target": (
        "p-pi",
        {**CLOCKED, "kp": 9.0, "kv": 12.0, "ki": 60.0, "integral_band": 0.02},
    ),
    "p-p": ("p-p", {"kp": 9.0, "kv": 12.0}),
    "p-pi": ("p-pi", {"kp": 9.0, "kv": 12.0, "ki": 60.0, "velocity_feedforward": 1.0}),
    "sampled p-pi": ("p-pi", {"kp": 9.0, "kv": 12.0, "ki": 60.0, "rate": RATE / 2}),
    "transfer function": ("transfer-function", {"num": [12.0, 90.0], "den": [1e-4, 0.02, 1.0]}),
    "sampled transfer function": (
        "transfer-function",
        {"num": [12.0, 90.0], "den": [0.02, 1.0], "rate": RATE},
    ),
    "state space": ("state-space", {**STATES, "A": [[-30.0, 10.0], [-5.0, -60.0]]}),
    "sampled state space": ("state-space", {**STATES, "rate": RATE}),
    "delay": ("pd", {**DIFFERENCES, "delay": 3.0 / RATE}),
    "slow and late": ("pid", {**PD, "ki": 90.0, "rate": RATE / 3, "delay": 2.0 / RATE}),
    "gravity": ("pd", {**PD, "compensation": "gravity"}),
    "sampled gravity": ("pd", {**DIFFERENCES, "compensation": "gravity", "delay": 2.0 / RATE}),
    "feed-forward": ("pd", {**PD, "compensation": "feed-forward"}),
    "computed torque": ("pd", {**PD, "compensation": "computed-torque"}),
    "sampled computed torque": (
        "pid",
        {**DIFFERENCES, "ki": 90.0, "compensation": "computed-torque"},
    ),
}


MODELLED = [name for name, (_, settings) in LOOPS.items() if "compensation" in settings]


@pytest.mark.parametrize(
    ("robot", "name"),
    # a controller sees its own joint, but for a model of the robot
    [("tree", name) for name in LOOPS] + [("coupled", name) for name in ("pd", *MODELLED)],
)
def test_of_every_controller(robot, name):
    kind, settings = LOOPS[name]
    assert_differences_agree(*case(robot, kind, **settings))


@pytest.mark.parametrize(
    ("robot", "name"),
    [("coupled", name) for name, each in INTEGRATORS.items() if each.error is None]
    + [("chain", "ode3"), ("tree", "sdirk2")],
)
def test_of_every_integrator_and_parameter(robot, name):
    outside = np.random.default_rng(1).normal(size=(SAMPLES, ROBOTS[robot].n))
    options = {"integrator": name, "substeps": 2, "external": outside}
    loop, theta, _ = case(robot, "pd", options=options, **PD, rate=RATE)
    assert_differences_agree(loop, theta, range(len(theta)))


@pytest.mark.parametrize("name", ["ode1", "ode2", "ode3", "ode4", "ode5"])
def test_of_every_integrator_under_a_continuous_controller(name):
    options = {"integrator": name, "substeps": 2}
    assert_differences_agree(*case("tree", "pid", options=options, **PD, ki=300.0))


@pytest.mark.parametrize("integrator", ["ode3", "sdirk2"])
@pytest.mark.parametrize("friction", [*FRICTIONS, "effect", "dry"])
def test_of_every_friction(friction, integrator):
    n, pull = ROBOTS["coupled"].n, PULL
    options = {"integrator": integrator}
    if friction == "effect":
        options["elements"] = effect(np.linspace(1.0, 2.0, n), np.linspace(0.1, 0.2, n))
        friction = "coulomb-viscous"
    if friction == "dry":
        # a sign that turns within a sample bends the motion on a smaller scale
        options["width"] = np.full(n, 0.01)
        friction, pull = "coulomb-viscous-asymmetric", 1.5e-7
    soft = {"kp": 30.0, "kd": 2.0, "rate": RATE, "velocity": "differences"}
    assert_differences_agree(*case("coupled", "pd", friction, options, **soft), pull)


NONLINEAR = ("stribeck", "spring", "dahl", "lugre")


def shaped_case(robot, friction, options=None, kind="pd", **settings):
    """A loop whose friction has shapes, with a column of every kind of parameter and shape."""
    robot = ROBOTS[robot]
    idim = build_idim(robot, friction)
    idim = idim.shaped(np.linspace(0.9, 1.2, len(idim.shape)) * np.array(idim.shape) + 0.01)
    control = CONTROLLERS[kind](n=robot.n, **settings)
    theta = values(idim)
    options = {"width": np.full(robot.n, 0.2), "model": 0.8 * theta, **(options or {})}
    loop = Loop(idim, control, wave(robot.n, SAMPLES / RATE, RATE), **options)
    symbols = dict.fromkeys(each.parameter.symbol for each in idim.shape_parameters)
    chosen = [
        next(k for k, s in enumerate(idim.shape_parameters) if s.parameter.symbol == symbol)
        for symbol in symbols
    ]
    shapes = [len(theta) + k for k in (*chosen, len(idim.shape) - 1)]
    parameters = np.concatenate([theta, idim.shape])
    return loop, parameters, [*one_of_each(idim), *dict.fromkeys(shapes)]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("robot", "friction", "name"),
    # laws meet the integrators in one place, stages that are solved for and stages that are not
    [("coupled", friction, name) for friction in NONLINEAR for name in ("ode3", "sdirk2")]
    + [("coupled", "lugre", name) for name in ("ode1", "ode2", "ode4")]
    + [("tree", "spring", "ode3"), ("tree", "dahl", "sdirk2")],
)
def test_of_shapes_and_of_friction_that_remembers(robot, friction, name):
    outside = np.random.default_rng(1).normal(size=(SAMPLES, ROBOTS[robot].n))
    options = {"integrator": name, "substeps": 2, "external": outside}
    # friction curves bend on a smaller scale than the robot
    assert_differences_agree(*shaped_case(robot, friction, options, **PD, rate=RATE), 1e-7)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("name", "friction"),
    [(name, "lugre") for name in ("pid", "differences", "slow and late", "computed torque")]
    + [("computed torque", friction) for friction in NONLINEAR if friction != "lugre"],
)
def test_of_shapes_under_other_controllers(name, friction):
    kind, settings = LOOPS[name]
    assert_differences_agree(*shaped_case("coupled", friction, kind=kind, **settings), 3e-7)


@pytest.mark.usefixtures("registered")
def test_of_shapes_alone_are_those_among_others():
    loop, parameters, columns = shaped_case("coupled", "lugre", **PD)
    theta = parameters[: len(loop.idim.parameters)]
    every, some = exact(loop, theta, columns), exact(loop, theta, columns[-2:])
    np.testing.assert_allclose(some, every[..., -2:], atol=1e-12 * np.abs(some).max())


@pytest.mark.parametrize("robot", FIXED)
def test_of_base_parameters_alone(robot):
    """Parameters that no robot has: base parameters in their kept places, zeros elsewhere."""
    loop, theta, _ = case(robot, "pd", **PD)
    base = base_parameters(loop.idim)
    kept = base.standard(base.matrix @ theta)
    np.testing.assert_allclose(moved(loop, kept), moved(loop, theta), atol=1e-8)
    assert_differences_agree(loop, kept, base.kept)


@pytest.mark.parametrize("robot", FIXED)
def test_of_regrouped_parameters_are_those_of_their_base_parameters(robot):
    loop, theta, _ = case(robot, "p-pi", kp=9.0, kv=12.0, ki=60.0)
    base = base_parameters(loop.idim)
    every, kept = exact(loop, theta, range(len(theta))), exact(loop, theta, base.kept)
    np.testing.assert_allclose(every, kept @ base.matrix, atol=1e-9 * np.abs(every).max())


SATURATED = {
    "sampled": {"rate": RATE},
    "slow and late": {"rate": RATE / 2, "delay": 1.0 / RATE, "velocity": "differences"},
    "continuous, Euler": {},
    "continuous": {},
    "computed torque": {"rate": RATE, "compensation": "computed-torque"},
}


@pytest.mark.parametrize("clock", SATURATED)
@pytest.mark.parametrize("robot", ["coupled", "tree"])
def test_of_a_controller_that_is_limited_now_and_then(robot, clock):
    """The motion bends where a decision passes from limited to unlimited.

    Between two such parameter values it is smooth, and its derivative is meant there. The
    difference quotients have to stay in between, and do: none of their motions disagrees
    with the others on which joints are limited at which sample. (All decisions are at
    samples but for the inner stages of the continuous case that is not Euler's.)
    """
    # outputs of the computed torque are accelerations
    limit = 4.0 if clock == "computed torque" else 8.0
    settings = {**PD, "ki": 500.0, "limit": limit, **SATURATED[clock]}
    options = {"integrator": "ode1" if "Euler" in clock else "ode3"}
    loop, theta, columns = case(robot, "pid", "viscous", options, **settings)

    def limited(motion):
        if clock != "computed torque":
            return np.abs(motion[3]) == limit
        seen = SimpleNamespace(q=motion[0], dq=motion[1], measured=motion[0])
        return np.abs(replayed(loop, seen)) == limit

    here = limited(moved(loop, theta))
    assert 0.02 < here.mean() < 0.9
    assert np.count_nonzero(here[1:] != here[:-1]) >= 4
    motions = assert_differences_agree(loop, theta, columns, 1e-6)
    assert all(np.array_equal(limited(motion), here) for motion in motions)


@pytest.mark.parametrize("compensation", ["none", "gravity", "computed-torque"])
@pytest.mark.parametrize(
    "clock", [{}, {"rate": RATE * 3 / 2, "delay": 1.0 / RATE}], ids=["continuous", "late"]
)
def test_of_a_noisy_loop_that_starts_elsewhere(clock, compensation):
    robot = ROBOTS["tree"]
    rng = np.random.default_rng(3)
    options = {
        "noise": rng.normal(size=(SAMPLES, robot.n)) * 1e-3,
        "external": rng.normal(size=(SAMPLES, robot.n)),
        "q0": rng.normal(size=robot.n) * 0.3,
        "dq0": rng.normal(size=robot.n),
        "substeps": 3,
    }
    loop, theta, columns = case(
        "tree", "pid", options=options, **PD, ki=90.0, compensation=compensation, **clock
    )
    assert_differences_agree(loop, theta, columns)
    ours = exact(loop, theta, columns)
    assert not ours[:2, 0].any()  # where it starts is not a matter of parameters
    assert ours[2, 0].any()


@pytest.mark.parametrize("compensation", ["none", "gravity", "computed-torque"])
def test_of_an_encoder_are_those_of_positions_as_read(compensation):
    """Rounding acts like a noise of the same size: it has no slope of its own."""
    count = {"count": np.full(ROBOTS["tree"].n, 2e-3)}
    settings = {**PD, "rate": RATE, "compensation": compensation}
    coarse, theta, columns = case("tree", "pd", options=count, **settings)
    motion = rollout(coarse, theta)
    rounding = motion.measured - motion.q
    assert np.abs(rounding).max() > 0.9e-3
    noisy = replace(coarse, count=None, noise=rounding)
    ours, theirs = exact(coarse, theta, columns), exact(noisy, theta, columns)
    largest = np.abs(theirs).max(axis=(1, 2), keepdims=True)
    assert np.all(np.abs(ours - theirs) <= 1e-9 * largest)


def test_robots_at_rest_whose_weight_is_known_feel_their_friction_alone():
    """Closed form: a standing robot's column is what the controller has to hold."""
    stiff = 200.0
    robot = toy.arm(2)
    control = pd(stiff, 30.0, n=2, compensation="gravity")
    loop, theta = closed(robot, control, still([0.3, -0.4], 1500, RATE), "viscous-offset")
    names = loop.idim.names
    theta[[names.index("off1"), names.index("off2")]] = 0.0
    offset, viscous = names.index("off1"), names.index("fv2")
    ours = exact(loop, theta, [offset, viscous])
    np.testing.assert_allclose(ours[0, -1, :, 0], [-1.0 / stiff, 0.0], atol=1e-8)
    np.testing.assert_allclose(ours[3, -1, :, 0], [1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(ours[..., 1], 0.0, atol=1e-12)


def assert_same(ours, theirs):
    """But for rounding, which grows along the motion: a loop over other columns may be compiled
    into other sums, and a wrong column is off by its size.
    """
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max(initial=0.0))


def test_only_what_is_wanted_is_handed_out_and_the_motion_is_the_same():
    loop, theta, columns = case("coupled", "pid", **PD, ki=90.0, rate=RATE, delay=1.0 / RATE)
    (whole,) = sensitive_rollout(loop, theta, columns)
    for wanted in ((), ("dq",), ("q", "tau"), SENSITIVITIES):
        (part,) = sensitive_rollout(loop, theta, columns, wanted)
        for name in SENSITIVITIES:
            given, expected = getattr(part, f"by_{name}"), getattr(whole, f"by_{name}")
            assert given.shape == (SAMPLES * (name in wanted), 4, len(columns))
            assert_same(given, expected[: len(given)])
    plain = rollout(loop, theta)
    for name in ("q", "dq", "ddq", "tau", "measured"):
        assert_same(getattr(plain, name), getattr(whole.motion, name))


def test_columns_come_in_the_order_asked_for():
    loop, theta, columns = case("tree", "p-pi", kp=9.0, kv=12.0, ki=60.0)
    forward, backward = exact(loop, theta, columns), exact(loop, theta, columns[::-1])
    assert_same(backward[..., ::-1], forward)
    for k in (0, 7, len(columns) - 1):
        assert_same(exact(loop, theta, [columns[k]])[..., 0], forward[..., k])


NUMBERS = "columns .* have to be different numbers from 0 to 41"


@pytest.mark.parametrize(
    ("columns", "wanted", "message"),
    [
        ([-1], ("q",), NUMBERS),
        ([3, 3], ("q",), NUMBERS),
        ([42], ("q",), NUMBERS),
        ([10**6], ("q",), NUMBERS),
        ([3], ("q", "position"), "sensitivity 'position' is not known"),
    ],
    ids=["negative", "twice", "next", "beyond", "unknown name"],
)
def test_columns_and_names_that_do_not_exist_are_refused(columns, wanted, message):
    loop, theta, _ = case("chain", "pd", **PD)
    assert len(theta) == 42
    with pytest.raises(InputError, match=message):
        list(sensitive_rollout(loop, theta, columns, wanted))


def test_half_a_column_is_refused():
    loop, theta, _ = case("chain", "pd", **PD)
    with pytest.raises(InputError, match=NUMBERS):
        list(sensitive_rollout(loop, theta, [1.5]))


def test_sensitivities_without_bound_end_in_a_reason():
    control = pd(1e6, -20.0, n=3, rate=500.0, limit=1e4)
    loop, theta = closed(ROBOTS["chain"], control, wave(3, 48.0, 500.0))
    with pytest.raises(RolloutError, match=r"sensitivities overflow before t = \d+\.\d{4} s"):
        exact(loop, theta, [0, 9, 20])
    assert np.isfinite(moved(loop, theta)).all()


def test_a_failure_with_sensitivities_has_its_reason_too():
    loop, theta, columns = case("chain", "pd", kp=1e8, kd=0.0)
    with pytest.raises(RolloutError, match="diverges at t = "):
        exact(loop, theta, columns)
    loop, theta, columns = case("chain", "pd", **PD)
    theta[loop.idim.names.index("Ia2")] = -50.0
    with pytest.raises(RolloutError, match=r"at t = 0\.0000 s \(joint_2\)"):
        exact(loop, theta, columns)
