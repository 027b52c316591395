"""Closed-loop rollouts against Pinocchio, another integrator, plain Python and formulas."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import toy
from frictions import STRIBECK, registered, values
from loops import next_state, output
from numba import typeof
from robots import bodies, relative
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline, CubicSpline
from test_dynamics import BRANCHED

from dynident.control.controller import CONTROLLERS, p, pd, pid, state_space, transfer_function
from dynident.control.reference import Reference, fourier
from dynident.core.errors import ComputationError, InputError, RolloutError
from dynident.dynamics import solve_forward_dynamics
from dynident.dynamics.idim import build_idim
from dynident.friction.model import Element
from dynident.plant.state import DONE
from dynident.robot.urdf import convert_pinocchio_model
from dynident.simulation import rollout as module
from dynident.simulation.integrators import INTEGRATORS
from dynident.simulation.loop import Loop, find_holding_width
from dynident.simulation.rollout import rollout
from dynident.simulation.sensors import quantise_positions

__all__ = ["registered"]

FIXED_STEPS = {name: each for name, each in INTEGRATORS.items() if each.error is None}
RATE = 500.0
SLANTED = (0.5, -0.3, -9.81)


def tree(floating=False):
    """The tree of `test_dynamics` with a slide, random bodies and gravity along no axis."""
    base = (pin.JointModelFreeFlyer(),) if floating else ()
    robot = convert_pinocchio_model(
        pin.buildModelFromXML(BRANCHED, *base), Path("branched"), floating
    )
    return replace(robot, nominal=bodies(len(robot.links)), gravity=np.array(SLANTED))


ROBOTS = {
    "chain": toy.arm(3),
    "coupled": toy.arm(4, coupled=True),
    "tree": tree(),
    "floating": tree(floating=True),
}
FIXED = [name for name, robot in ROBOTS.items() if not robot.floating]


def wave(n, duration=0.6, rate=RATE, seed=0):
    """A lively reference that does not begin at rest."""
    rng = np.random.default_rng(seed)
    sine, cosine = rng.normal(size=(2, n, 3)) * 0.5
    return fourier(rate, duration, 1.5, rng.uniform(-0.3, 0.3, n), sine, cosine)


def course(n, seed=0):
    """That of `wave` at any time, from its formula: (t) -> shape (3, n)."""
    rng = np.random.default_rng(seed)
    sine, cosine = rng.normal(size=(2, n, 3)) * 0.5
    offset, w = rng.uniform(-0.3, 0.3, n), 2.0 * np.pi * 1.5 * np.arange(1, 4)

    def asked(now):
        s, c = np.sin(w * now), np.cos(w * now)
        position = offset + sine @ (s / w) - cosine @ (c / w)
        return np.stack([position, sine @ c + cosine @ s, cosine @ (w * c) - sine @ (w * s)])

    return asked


def still(q, samples=100, rate=RATE):
    """A reference that stays where it is."""
    q = np.tile(np.asarray(q, dtype=float), (samples, 1))
    return Reference(rate, q, np.zeros_like(q), np.zeros_like(q))


def closed(robot, controller, reference=None, friction="coulomb-viscous", model=1.0, **options):
    """A loop with a wide friction width, and the parameters of its robot.

    A controller that compensates knows `model` times the true parameters.
    """
    idim = build_idim(robot, friction)
    theta = standard(idim)
    if controller.compensation != "none":
        options["model"] = model * theta
    options.setdefault("width", np.full(robot.n, 0.2))
    return Loop(idim, controller, reference or wave(robot.n), **options), theta


def standard(idim):
    """Standard parameters of the robot's bodies, and drives that all differ."""
    values = {"Ia": 0.3, "Iam": 0.2, "fv": 2.0, "fvm": 1.5, "fc": 3.0, "fcm": 1.2, "off": 0.5}
    values |= {"fcp": 2.5, "fcn": 1.5, "fcpm": 0.8, "fcnm": 1.3}
    drive = [values[k.symbol] * (1.0 + 0.1 * k.number) for k in idim.parameters[idim.inertial :]]
    return np.concatenate([idim.robot.nominal.ravel(), drive])


def effect(excess, speed):
    """A Stribeck effect on the joints' drives, beside their friction."""
    pairs = enumerate(zip(excess, speed, strict=True))
    return tuple(Element(j, STRIBECK, (0.0, 0.0, 0.0, fs), (vs,)) for j, (fs, vs) in pairs)


# ---- the plant, once more: Pinocchio's bodies, friction and rotors by parameter name


@dataclass(frozen=True)
class Plant:
    """The robot of a loop, written from the formulas and on Pinocchio."""

    loop: Loop
    theta: np.ndarray

    @property
    def robot(self):
        return self.loop.idim.robot

    @cached_property
    def first(self):
        return self.robot.dof - self.robot.n

    @cached_property
    def model(self):
        phi = self.theta[: self.loop.idim.inertial].reshape(-1, 10)
        model, base = pin.Model(), 0
        model.gravity.linear = self.robot.gravity
        here = pin.SE3.Identity()
        if self.robot.floating:
            base = model.addJoint(0, pin.JointModelFreeFlyer(), here, "base")
            model.appendBodyToJoint(base, pin.Inertia.FromDynamicParameters(phi[0]), here)
        for joint, body in zip(self.robot.joints, phi[-self.robot.n :], strict=True):
            turns = joint.kind == "revolute"
            kind = pin.JointModelRevoluteUnaligned if turns else pin.JointModelPrismaticUnaligned
            place = pin.SE3(joint.rotation, joint.translation)
            index = model.addJoint(joint.parent + base, kind(*joint.axis), place, joint.name)
            model.appendBodyToJoint(index, pin.Inertia.FromDynamicParameters(body), here)
        return model

    @cached_property
    def data(self):
        return self.model.createData()

    @cached_property
    def drives(self):
        """(turns, parameter by symbol, joint) of every drive: one's own, then coupled ones."""
        named = dict(zip(self.loop.idim.names, self.theta, strict=True))
        found = []
        for j in range(self.robot.n):
            for turns, mark in ((np.eye(self.robot.n)[j], ""), (self.robot.drives.turns[j], "m")):
                if not mark or self.robot.drives.coupled(j):
                    value = {
                        s: named.get(f"{s}{mark}{j + 1}", 0.0)
                        for s in ("Ia", "fv", "fc", "off", "fcp", "fcn")
                    }
                    found.append((turns, value, j))
        return found

    @cached_property
    def turns(self):
        """Of the joints by drive, shape (drives, n)."""
        return np.array([turns for turns, _, _ in self.drives])

    @cached_property
    def curve(self):
        """Of each drive: a value by symbol, and the width of its sign."""
        found = {s: np.array([v[s] for _, v, _ in self.drives]) for s in self.drives[0][1]}
        return found, self.loop.width[[j for _, _, j in self.drives]]

    @cached_property
    def rotors(self):
        matrix = np.zeros((self.robot.dof, self.robot.dof))
        for turns, value, _ in self.drives:
            matrix[self.first :, self.first :] += value["Ia"] * np.outer(turns, turns)
        return matrix

    def friction(self, dq):
        """``turns^T f(turns dq)`` of all drives, on the velocities of the joints."""
        value, width = self.curve
        v = self.turns @ dq[self.first :]
        sign = np.tanh(v / width)
        f = value["off"] + value["fv"] * v + value["fc"] * sign
        f += 0.5 * value["fcp"] * (1.0 + sign) - 0.5 * value["fcn"] * (1.0 - sign)
        for element in self.loop.elements:
            for k, (turns, _, j) in enumerate(self.drives):
                if element.joint == j and turns.sum() == 1.0:
                    excess, (speed,) = element.linear[3], element.shape
                    f[k] += excess * np.exp(-((v[k] / speed) ** 2)) * sign[k]
        torque = np.zeros(self.robot.dof)
        torque[self.first :] = self.turns.T @ f
        return torque

    @cached_property
    def upper(self):
        """Where Pinocchio writes a mass matrix."""
        return np.triu(np.ones((self.robot.dof,) * 2, dtype=bool))

    def mass(self, q):
        half = pin.crba(self.model, self.data, q)
        return np.where(self.upper, half, half.T) + self.rotors

    def load(self, q, dq):
        """Torques at zero acceleration."""
        return pin.nonLinearEffects(self.model, self.data, q, dq) + self.friction(dq)

    @cached_property
    def coupled(self):
        """Whether rotors turn with several joints; others are armatures of Pinocchio's."""
        own = np.diag(self.rotors).copy()
        coupled = bool(np.any(self.rotors - np.diag(own)))
        if not coupled:
            self.model.armature = own
        return coupled

    def acceleration(self, q, dq, torque):
        if self.coupled:
            return np.linalg.solve(self.mass(q), torque - self.load(q, dq))
        return pin.aba(self.model, self.data, q, dq, torque - self.friction(dq))


def turning(q, dq, first):
    """Rate of the configuration; of a free-flying base by rotation matrix and quaternion."""
    if not first:
        return dq
    x, y, z, w = q[3:7]
    matrix = np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]])
    rotation = pin.Quaternion(q[3:7] / np.linalg.norm(q[3:7])).matrix()
    return np.concatenate([rotation @ dq[:3], 0.5 * matrix @ dq[3:6], dq[6:]])


def between(signal, k, share):
    """A sampled signal on the straight line from sample k to the next."""
    return signal[k] + share * (signal[min(k + 1, len(signal) - 1)] - signal[k])


def through(reference):
    """(t) -> position, velocity and acceleration asked for then, shape (3, n).

    SciPy's cubics through positions with velocities, and through velocities with
    accelerations, and the slope of the latter.
    """
    t = np.arange(len(reference.q)) / reference.rate
    both = CubicHermiteSpline(
        t, np.stack([reference.q, reference.dq], 1), np.stack([reference.dq, reference.ddq], 1)
    )
    slope = both.derivative()

    def asked(now):
        now = min(now, t[-1])  # the last sample is held
        return np.concatenate([both(now), slope(now)[1:]])

    return asked


def seen(loop, asked, k, share, q, dq):
    """What the controllers see, shape (n, 5), without an encoder's counts."""
    n = loop.idim.robot.n
    noise = 0.0 if loop.noise is None else loop.noise[k]
    return np.stack([*asked((k + share) / loop.rate), q[-n:] + noise, dq[-n:]], axis=1)


def relocated(w, q0):
    """The same inputs counted from the start, where a controller at rest has seen zeros."""
    return w - q0[:, None] * [1.0, 0.0, 0.0, 1.0, 0.0]


def start_of(loop):
    """Configuration and velocity that the rollout starts from."""
    floating, asked = loop.idim.robot.floating, loop.reference
    base = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0] if floating else []
    q = np.concatenate([base, asked.q[0]]) if loop.q0 is None else loop.q0
    dq = np.concatenate([np.zeros(6 * floating), asked.dq[0]]) if loop.dq0 is None else loop.dq0
    return q, dq


def simulated(loop, theta, tolerance=1e-11, asked=None):
    """The same closed loop by a method of eighth order that chooses its own steps.

    `asked` takes the place of the reference's samples: (t) -> shape (3, n).
    """
    asked = asked or through(loop.reference)
    plant, control = Plant(loop, theta), loop.controller
    first, n, dof = plant.first, loop.idim.robot.n, loop.idim.robot.dof
    q, dq = start_of(loop)
    q0 = q[-n:]
    nq, sampled = len(q), control.rate is not None
    substeps = loop.substeps if sampled else 1
    hold, delay = loop.steps
    z = np.zeros((n, control.states))
    y = np.concatenate([q, dq, np.zeros(0) if sampled else z.ravel()])
    late = None
    out = []
    for step in range(loop.samples * substeps):
        k, sub = divmod(step, substeps)
        held = None
        if sampled:
            if step % hold == 0:
                w = relocated(seen(loop, asked, k, sub / substeps, y[:nq], y[nq : nq + dof]), q0)
                decided = control.gain * output(control, z, w)
                z = next_state(control, z, w)
            late = deque([decided] * delay) if late is None else late
            late.append(decided)
            held = late.popleft()

        def torque(share, q, dq, z, k=k, held=held):
            """And the rate of the controller's states."""
            if held is not None:
                return held, []
            w = relocated(seen(loop, asked, k, share, q, dq), q0)
            change = [next_state(control, z, w).ravel()] if z.size else []
            return control.gain * output(control, z, w), change

        def rate(share, y, k=k, torque=torque):
            q, dq, z = y[:nq], y[nq : nq + dof], y[nq + dof :].reshape(n, -1)
            force = np.zeros(dof)
            force[first:], change = torque(share, q, dq, z)
            if loop.external is not None:
                force += between(loop.external, k, share)
            motion = turning(q, dq, first), plant.acceleration(q, dq, force)
            return np.concatenate([*motion, *change]) / loop.rate

        if sub == 0:
            now = y[:nq], y[nq : nq + dof], y[nq + dof :].reshape(n, -1)
            out.append((now[0], now[1], torque(0.0, *now)[0]))
        span = (sub / substeps, (sub + 1) / substeps)
        y = solve_ivp(
            rate, span, y, "DOP853", rtol=tolerance, atol=tolerance, first_step=1.0 / substeps
        ).y[:, -1]
    return tuple(np.array(column) for column in zip(*out, strict=True))


def gap(ours, theirs):
    """Largest relative difference of q, dq and tau."""
    return max(relative(mine, each) for mine, each in zip(ours, theirs, strict=True))


def columns(motion):
    return motion.q, motion.dq, motion.tau


# ---- against another integrator


@pytest.mark.parametrize("name", ["coupled", "tree", "floating"])
def test_continuous_pd_is_what_another_integrator_finds(name):
    n = ROBOTS[name].n
    outside = np.random.default_rng(1).normal(size=(60, ROBOTS[name].dof))
    loop, theta = closed(
        ROBOTS[name],
        pd(120.0, 15.0, n=n),
        wave(n, 0.12),
        integrator="ode4",
        substeps=8,
        external=outside,
    )
    assert gap(columns(rollout(loop, theta)), simulated(loop, theta)) < 1e-8


@pytest.mark.parametrize(
    ("name", "integrator"),
    [("coupled", "ode4"), ("tree", "ode4"), ("floating", "ode4"), ("coupled", "sdirk2")],
)
def test_sampled_pd_is_held_between_samples(name, integrator):
    robot = ROBOTS[name]
    # decides every third integration step: now and then within a sample; two steps late
    late = pd(120.0, 15.0, n=robot.n, rate=RATE * 4 / 3, delay=0.5 / RATE)
    loop, theta = closed(robot, late, wave(robot.n, 0.12), integrator=integrator, substeps=4)
    bound = 1e-8 if integrator == "ode4" else 2e-5
    assert gap(columns(rollout(loop, theta)), simulated(loop, theta)) < bound


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("pid", {"kp": 120.0, "ki": 400.0, "kd": 15.0}),
        ("p-pi", {"kp": 8.0, "kv": 15.0, "ki": 60.0, "velocity_feedforward": 0.8}),
        ("transfer-function", {"num": [15.0, 120.0], "den": [0.001, 0.05, 1.0]}),
    ],
)
def test_states_of_continuous_controllers_are_integrated_along(kind, settings):
    loop, theta = closed(
        ROBOTS["chain"],
        CONTROLLERS[kind](n=3, **settings),
        wave(3, 0.12),
        integrator="ode4",
        substeps=8,
    )
    assert gap(columns(rollout(loop, theta)), simulated(loop, theta)) < 1e-8


@cache
def slow_loop(robot, sampled):
    """A loop at 40 Hz, its parameters, and its motion by the method of eighth order."""
    robot, rate = ROBOTS[robot], 40.0
    control = pd(40.0, 5.0, n=robot.n, rate=rate if sampled else None)
    loop, theta = closed(robot, control, wave(robot.n, 0.5, rate), width=np.ones(robot.n))
    return loop, theta, simulated(loop, theta, 1e-13)


@pytest.mark.parametrize(
    ("robot", "name"),
    [("floating", name) for name, each in FIXED_STEPS.items() if not each.implicit]
    + [("coupled", name) for name, each in FIXED_STEPS.items() if each.implicit]
    + [("tree", name) for name in FIXED_STEPS],
)
def test_error_falls_with_the_order_of_the_integrator(robot, name):
    order = INTEGRATORS[name].order
    loop, theta, truth = slow_loop(robot, INTEGRATORS[name].implicit)
    steps = [16, 32] if order < 4 else [8, 16]
    errors = []
    for substeps in steps:
        motion = rollout(replace(loop, integrator=name, substeps=substeps), theta)
        errors.append([np.linalg.norm(a - b) for a, b in zip(columns(motion), truth, strict=True)])
    for coarse, fine in zip(*errors, strict=True):
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.2)


SMOOTH = {
    "pd": {"kp": 40.0, "kd": 5.0},
    "pid": {"kp": 40.0, "ki": 90.0, "kd": 5.0},
    "p-pi": {"kp": 8.0, "kv": 5.0, "ki": 30.0, "velocity_feedforward": 1.0},
}


@cache
def curved_loop(robot, kind):
    """A loop along a curve, its parameters, and its motion by the method of eighth order."""
    robot = ROBOTS[robot]
    control = CONTROLLERS[kind](n=robot.n, **SMOOTH[kind])
    loop, theta = closed(robot, control, wave(robot.n, 0.5, 40.0), width=np.ones(robot.n))
    return loop, theta, simulated(loop, theta, 1e-13, course(robot.n))


@pytest.mark.parametrize(
    ("robot", "kind", "name"),
    [("tree", "p-pi", name) for name in ("ode1", "ode2", "ode3", "ode4")]
    + [("coupled", "pd", "ode3"), ("chain", "pid", "ode4"), ("floating", "pd", "ode3")],
)
def test_one_step_a_sample_keeps_the_order_of_the_integrator(robot, kind, name):
    """Of a reference that is a curve, of which the loop has the samples alone."""
    order = INTEGRATORS[name].order
    loop, theta, truth = curved_loop(robot, kind)
    errors = []
    for times in [16, 32] if order < 4 else [8, 16]:
        along = wave(loop.idim.robot.n, 0.5, 40.0 * times)
        dense = replace(loop, integrator=name, reference=along)
        assert dense.substeps == 1
        found = [each[::times] for each in columns(rollout(dense, theta))]
        errors.append([np.linalg.norm(a - b) for a, b in zip(found, truth, strict=True)])
    for coarse, fine in zip(*errors, strict=True):
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.2)


# ---- torques that balance


DRIVES = ("coulomb-viscous", "coulomb-viscous-asymmetric", "viscous-offset", "none", "effect")


@pytest.mark.parametrize("friction", DRIVES)
@pytest.mark.parametrize("name", ROBOTS)
def test_recorded_torques_balance_at_every_sample(name, friction):
    robot = ROBOTS[name]
    rng = np.random.default_rng(1)
    options = {"external": rng.normal(size=(300, robot.dof))}
    if friction == "effect":
        friction = "coulomb-viscous"
        options["elements"] = effect(rng.uniform(1.0, 2.0, robot.n), rng.uniform(0.1, 0.2, robot.n))
    loop, theta = closed(robot, pd(120.0, 15.0, n=robot.n), friction=friction, **options)
    assert_balanced(loop, theta, rollout(loop, theta))


@pytest.mark.parametrize("substeps", [1, 3])
@pytest.mark.parametrize("name", FIXED)
def test_recorded_torques_of_the_implicit_pair_balance(name, substeps):
    n = ROBOTS[name].n
    outside = np.random.default_rng(1).normal(size=(300, n))
    loop, theta = closed(
        ROBOTS[name],
        pd(120.0, 15.0, n=n, rate=RATE),
        integrator="sdirk2",
        substeps=substeps,
        external=outside,
    )
    assert_balanced(loop, theta, rollout(loop, theta))


def assert_balanced(loop, theta, motion):
    plant = Plant(loop, theta)
    outside = np.zeros((loop.samples, loop.idim.robot.dof))
    outside = outside if loop.external is None else loop.external
    for k in range(0, loop.samples, 23):
        force = outside[k] + np.concatenate([np.zeros(plant.first), motion.tau[k]])
        needed = plant.mass(motion.q[k]) @ motion.ddq[k] + plant.load(motion.q[k], motion.dq[k])
        np.testing.assert_allclose(needed, force, atol=1e-11 * np.abs(motion.tau).max())


def test_forward_dynamics_with_rotors_are_those_of_the_rollout():
    robot = ROBOTS["coupled"]
    loop, theta = closed(robot, pd(120.0, 15.0, n=4), friction="none")
    idim = build_idim(robot, "none", rotor=True)
    theta, loop = standard(idim), replace(loop, idim=idim)
    motion = rollout(loop, theta)
    rotors = Plant(loop, theta).rotors
    assert rotors[2, 3] != 0.0
    phi = theta[: idim.inertial].reshape(-1, 10)
    ddq = solve_forward_dynamics(idim.tree, phi, motion.q, motion.dq, motion.tau, rotors)
    assert relative(ddq, motion.ddq) < 1e-12


# ---- controllers, replayed in plain Python

KINDS = {
    "p": {"kp": [90.0, 80.0, 40.0]},
    "pd": {"kp": [90.0, 80.0, 40.0], "kd": [9.0, 8.0, 4.0]},
    "pid": {"kp": [90.0, 80.0, 40.0], "ki": [200.0, 300.0, 100.0], "kd": 6.0},
    "servo": {
        **{"kp": [90.0, 80.0, 40.0], "kd": [9.0, 8.0, 4.0], "ki": 90.0},
        **{"deadband": 2e-3, "punch": [0.5, 0.0, 1.0]},
    },
    "p-p": {"kp": 9.0, "kv": [9.0, 8.0, 4.0], "velocity_feedforward": 0.5},
    "p-pi": {"kp": 9.0, "kv": [9.0, 8.0, 4.0], "ki": 40.0, "velocity_feedforward": 1.0},
    "transfer-function": {"num": [[9.0, 80.0], [8.0, 70.0], [40.0]], "den": [0.01, 1.0]},
    "state-space": {
        "A": [[0.3, 0.2], [-0.1, 0.5]],
        "B": [[5.0, 0.1, 0.001, -5.0, -0.1], [1.0, 0.2, 0.0, -1.0, 0.0]],
        "C": [3.0, -2.0],
        "D": [60.0, 6.0, 0.01, -60.0, -6.0],
        "antiwindup": [0.1, -0.05],
    },
}
CLOCKS = {
    "continuous": {},
    "sampled": {"rate": RATE},
    "slow": {"rate": RATE / 3},
    "late": {"rate": RATE, "delay": 3 / RATE},
    "slow and late": {"rate": RATE / 3, "delay": 4 / RATE},
    "differences": {"rate": RATE / 2, "velocity": "differences", "lag": [1, 2, 3]},
}


def replayed(loop, motion):
    """Torques that the controllers decide on a recorded motion, shape (samples, n)."""
    control, n = loop.controller, loop.idim.robot.n
    hold, delay = loop.steps
    z, q0 = np.zeros((n, control.states)), motion.q[0, -n:]
    late, torques = None, []
    for k in range(loop.samples):
        asked = (loop.reference.q[k], loop.reference.dq[k], loop.reference.ddq[k])
        w = relocated(np.stack([*asked, motion.measured[k], motion.dq[k, -n:]], axis=1), q0)
        if hold == 0:
            torques.append(control.gain * output(control, z, w))
            z = z + next_state(control, z, w) / loop.rate  # Euler, as the rollout's ode1
            continue
        if k % hold == 0:
            decided = control.gain * output(control, z, w)
            z = next_state(control, z, w)
        late = deque([decided] * delay) if late is None else late
        late.append(decided)
        torques.append(late.popleft())
    return np.array(torques)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("kind", CONTROLLERS)
def test_torques_are_those_of_the_controllers_written_in_python(kind, clock):
    free = CONTROLLERS[kind](gain=[1.0, 0.5, 2.0], **KINDS[kind], **CLOCKS[clock])
    rng = np.random.default_rng(2)
    options = {"noise": rng.normal(size=(300, 3)) * 1e-3}
    if free.rate is not None:
        options["count"] = np.array([1e-3, 0.0, 2e-3])
    loop, theta = closed(ROBOTS["chain"], free, integrator="ode1", **options)
    # now with half of what it would need
    limit = 0.5 * np.abs(rollout(loop, theta).tau).max(axis=0) / free.gain
    control = CONTROLLERS[kind](gain=free.gain, limit=limit, **KINDS[kind], **CLOCKS[clock])
    loop = replace(loop, controller=control)
    motion = rollout(loop, theta)
    np.testing.assert_allclose(motion.tau, replayed(loop, motion), rtol=1e-9, atol=1e-9)
    read = quantise_positions(motion.q + loop.noise, options.get("count", np.zeros(3)))
    # but for rounding: a wrong count is off by 1e-3
    assert relative(motion.measured, read) < 1e-14
    limited = np.abs(motion.tau) >= control.gain * control.limit * (1.0 - 1e-12)
    assert 0.01 < limited.mean() < 0.7


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("kind", ["pid", "p-pi"])
def test_integrals_stand_still_near_their_target(kind, clock):
    settings = {**KINDS[kind], **CLOCKS[clock], "limit": 40.0}
    free, theta = closed(ROBOTS["chain"], CONTROLLERS[kind](**settings), integrator="ode1")
    error = np.abs(free.reference.q - rollout(free, theta).q)
    band = np.quantile(error, 0.4, axis=0)
    control = CONTROLLERS[kind](**settings, integral_band=band)
    loop = replace(free, controller=control)
    motion = rollout(loop, theta)
    np.testing.assert_allclose(motion.tau, replayed(loop, motion), rtol=1e-9, atol=1e-9)
    within = np.abs(loop.reference.q - motion.q) / band
    assert all(np.mean(zone) > 0.05 for zone in (within < 1.0, within > 2.0))
    assert np.abs(motion.tau - replayed(free, motion)).max() > 1.0
    # of the whole motion within the band there is no integral
    far = rollout(replace(free, controller=CONTROLLERS[kind](**settings, integral_band=9.0)), theta)
    none = rollout(replace(free, controller=CONTROLLERS[kind](**{**settings, "ki": 0.0})), theta)
    np.testing.assert_allclose(far.tau, none.tau, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("floating", [False, True])
def test_controllers_act_on_the_joints_of_a_tree(floating):
    robot = tree(floating)
    control = pid(80.0, 50.0, 9.0, n=robot.n, limit=30.0, rate=RATE, delay=2 / RATE)
    noise = np.random.default_rng(2).normal(size=(300, robot.n)) * 1e-3
    loop, theta = closed(robot, control, integrator="ode3", noise=noise)
    motion = rollout(loop, theta)
    np.testing.assert_allclose(motion.tau, replayed(loop, motion), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "clock",
    [
        {},
        {"rate": 3 * RATE},
        {"rate": RATE},
        {"rate": 3 * RATE / 5, "delay": 4 / (3 * RATE)},
    ],
    ids=["continuous", "every step", "every sample", "across samples, late"],
)
def test_substeps_are_a_faster_log_of_the_same_loop(clock):
    robot, samples = ROBOTS["coupled"], 200
    rng = np.random.default_rng(2)
    noise, outside = rng.normal(size=(samples, 4)) * 1e-3, rng.normal(size=(samples, 4))
    control = pid(80.0, 50.0, 9.0, n=4, limit=30.0, **clock)
    # of a cubic spline cubics through samples lose nothing, however many there are
    curve = CubicSpline(np.arange(samples), wave(4, samples / RATE).q)

    def asked(rate):
        at = np.arange(samples * rate / RATE) * RATE / rate
        return Reference(rate, *(curve(at, order) * RATE**order for order in range(3)))

    def fast(signal):
        at = np.arange(3 * samples) / 3
        return np.array([np.interp(at, np.arange(samples), each) for each in signal.T]).T

    slow, theta = closed(robot, control, asked(RATE), substeps=3, noise=noise, external=outside)
    every = replace(
        slow,
        reference=asked(3 * RATE),
        substeps=1,
        noise=np.repeat(noise, 3, axis=0),
        external=fast(outside),
    )
    assert slow.steps == every.steps
    ours, theirs = rollout(slow, theta), rollout(every, theta)
    for label in ("q", "dq", "ddq", "tau", "measured"):
        assert relative(getattr(ours, label), getattr(theirs, label)[::3]) < 1e-11


def test_anti_windup_shortens_the_overshoot_of_a_limited_step():
    reference = still([1.0], 1500)
    peak = {}
    for time in (None, np.inf):
        control = pid(60.0, 80.0, 8.0, limit=12.0, rate=RATE, tracking_time=time)
        loop, theta = closed(
            toy.arm(1), control, reference, "viscous", q0=np.zeros(1), dq0=np.zeros(1)
        )
        motion = rollout(loop, theta)
        assert motion.tau.max() == 12.0
        np.testing.assert_allclose(motion.q[-1], 1.0, atol=0.05)
        peak[time] = motion.q.max() - 1.0
    assert peak[None] < 0.5 * peak[np.inf]


def test_scaled_gains_are_those_of_each_joint():
    loop, theta = closed(ROBOTS["chain"], pd(90.0, 9.0, n=3))
    more = closed(ROBOTS["chain"], pd([90.0, 180.0, 45.0], [9.0, 18.0, 4.5]))[0]
    ours, theirs = rollout(loop.scaled(np.array([1.0, 2.0, 0.5])), theta), rollout(more, theta)
    assert gap(columns(ours), columns(theirs)) < 1e-12


# ---- model compensation


@pytest.mark.parametrize("clock", [{}, {"rate": RATE}, {"rate": RATE / 4, "delay": 2 / RATE}])
@pytest.mark.parametrize("name", FIXED)
def test_a_robot_whose_weight_is_compensated_stands_still(name, clock):
    robot = ROBOTS[name]
    where = np.linspace(-0.7, 0.8, robot.n)
    control = pd(80.0, 9.0, n=robot.n, compensation="gravity", **clock)
    loop, theta = closed(robot, control, still(where), "viscous")
    motion = rollout(loop, theta)
    plant = Plant(loop, theta)
    weight = pin.computeGeneralizedGravity(plant.model, plant.data, where)
    assert np.abs(weight).max() > 1.0
    assert np.abs(motion.q - where).max() < 1e-13
    np.testing.assert_allclose(motion.tau, np.tile(weight, (100, 1)), atol=1e-10)
    sags = rollout(replace(loop, model=0.5 * theta), theta)
    assert np.abs(sags.q - where).max() > 1e-3


@pytest.mark.parametrize("clock", ["continuous", "late"])
def test_compensated_weight_is_added_behind_the_limit(clock):
    loop, theta = mismeasured("gravity", clock, limit=5.0)
    motion = rollout(loop, theta)
    weighing = Plant(loop, loop.model)
    # where the encoders say that the robot is
    weight = np.array(
        [
            pin.computeGeneralizedGravity(weighing.model, weighing.data, q).copy()
            for q in motion.measured
        ]
    )
    delay = loop.steps[1]
    weight = np.concatenate([np.repeat(weight[:1], delay, axis=0), weight[: len(weight) - delay]])
    np.testing.assert_allclose(motion.tau - weight, replayed(loop, motion), atol=1e-9)


@pytest.mark.parametrize("clock", ["continuous", "sampled"])
@pytest.mark.parametrize("name", FIXED)
def test_computed_torque_is_that_of_the_measured_positions(name, clock):
    loop, theta = mismeasured("computed-torque", clock, name, limit=20.0)
    motion = rollout(loop, theta)
    model = Plant(loop, loop.model)
    asked = replayed(loop, motion)
    expected = [
        model.mass(q) @ ddq + pin.nonLinearEffects(model.model, model.data, q, dq)
        for q, dq, ddq in zip(motion.measured, motion.dq, asked, strict=True)
    ]
    np.testing.assert_allclose(motion.tau, expected, atol=1e-9)
    assert 0.01 < (np.abs(asked) == 20.0).mean() < 0.7


def mismeasured(compensation, clock, name="chain", **settings):
    """A loop whose model is not the robot's and whose encoders are noisy and, sampled, coarse."""
    n = ROBOTS[name].n
    control = pd(80.0, 9.0, n=n, compensation=compensation, **settings, **CLOCKS[clock])
    options = {"noise": np.random.default_rng(2).normal(size=(300, n)) * 1e-2}
    if control.rate is not None:
        options["count"] = np.linspace(0.0, 0.02, n)
    return closed(ROBOTS[name], control, integrator="ode1", model=0.8, **options)


@pytest.mark.parametrize("clock", ["continuous", "slow and late"])
def test_feed_forward_is_the_model_along_the_reference(clock):
    control = pd(80.0, 9.0, n=4, limit=5.0, compensation="feed-forward", **CLOCKS[clock])
    loop, theta = closed(ROBOTS["coupled"], control, integrator="ode1", model=0.9)
    motion = rollout(loop, theta)
    asked = loop.reference
    forward = loop.idim.torque(loop.model, asked.q, asked.dq, asked.ddq)
    hold, delay = loop.steps
    shown = np.arange(300) if hold == 0 else (np.maximum(np.arange(300) - delay, 0) // hold) * hold
    np.testing.assert_allclose(motion.tau - forward[shown], replayed(loop, motion), atol=1e-9)


@pytest.mark.parametrize(
    ("compensation", "friction"), [("feed-forward", "viscous"), ("computed-torque", "none")]
)
def test_a_perfect_model_leaves_little_to_the_controller(compensation, friction):
    error = {}
    for model in (1.0, 0.7):
        control = pd(80.0, 9.0, n=4, compensation=compensation)
        asked = wave(4, 1.0, 2000.0)
        loop, theta = closed(ROBOTS["coupled"], control, asked, friction, model)
        error[model] = relative(rollout(loop, theta).q, asked.q)
    assert error[1.0] < 1e-5
    assert error[0.7] > 1e3 * error[1.0]


@pytest.mark.parametrize("clock", [{}, {"rate": RATE}])
@pytest.mark.parametrize("name", FIXED)
def test_computed_torque_makes_the_error_a_linear_system(name, clock):
    robot = ROBOTS[name]
    stiff, damping = np.linspace(60.0, 90.0, robot.n), np.linspace(8.0, 10.0, robot.n)
    control = pd(stiff, damping, compensation="computed-torque", gain=1.0, **clock)
    idim = build_idim(robot, "none", rotor=True)
    theta, asked = standard(idim), wave(robot.n)
    start = {"q0": asked.q[0] + 0.2, "dq0": asked.dq[0] - 0.5}
    loop = Loop(idim, control, asked, model=theta, **start)
    motion = rollout(loop, theta)
    error, rate = asked.q - motion.q, asked.dq - motion.dq
    np.testing.assert_allclose(motion.ddq, asked.ddq + stiff * error + damping * rate, atol=1e-9)
    if not clock:
        t = np.arange(300) / RATE
        w = np.sqrt(stiff - damping**2 / 4)
        fade = np.exp(-damping * t[:, None] / 2)
        a, b = -0.2, (0.5 - 0.2 * damping / 2) / w
        expected = fade * (a * np.cos(w * t[:, None]) + b * np.sin(w * t[:, None]))
        # the accelerations asked for are a polygon between their samples
        np.testing.assert_allclose(error, expected, atol=2e-5)


# ---- drives and friction


def turntable(controller, reference, friction="coulomb-viscous-symmetric", **options):
    """One joint about the vertical, without weight."""
    return closed(toy.arm(1), controller, reference, friction, **options)


@pytest.mark.parametrize("friction", ["coulomb-viscous", "coulomb-viscous-asymmetric"])
@pytest.mark.parametrize("speed", [-0.8, -0.12, -0.02, 0.02, 0.12, 0.8])
def test_steady_torque_is_the_static_friction_curve(speed, friction):
    t = np.arange(1500)[:, None] / RATE
    steady = Reference(RATE, speed * t, np.full_like(t, speed), np.zeros_like(t))
    excess, fade, width = 4.0, 0.1, 0.05
    loop, theta = turntable(
        pd(4000.0, 100.0),
        steady,
        friction,
        elements=effect([excess], [fade]),
        width=np.array([width]),
    )
    motion = rollout(loop, theta)
    value = dict(zip(loop.idim.names, theta, strict=True))
    sign = np.tanh(speed / width)
    if friction == "coulomb-viscous":
        expected = value["off1"] + value["fc1"] * sign
    else:
        expected = value["fcp1"] * (1.0 + sign) / 2 - value["fcn1"] * (1.0 - sign) / 2
    expected += value["fv1"] * speed + excess * np.exp(-((speed / fade) ** 2)) * sign
    np.testing.assert_allclose(motion.dq[-1], speed, rtol=1e-8)
    np.testing.assert_allclose(motion.tau[-1], expected, rtol=1e-7)


@pytest.mark.parametrize("name", ["ode4", "sdirk2"])
def test_a_turntable_runs_down_as_the_smoothed_sign_says(name):
    # I dv/dt = -fc tanh(v / w) has the solution sinh(v / w) = sinh(v0 / w) exp(-fc t / (I w))
    v0, width = 1.0, 0.1
    loop, theta = turntable(
        p(0.0, rate=RATE),
        still([0.0], 300),
        width=np.array([width]),
        dq0=np.array([v0]),
        integrator=name,
        substeps=4,
    )
    theta[loop.idim.names.index("fv1")] = 0.0
    value = dict(zip(loop.idim.names, theta, strict=True))
    inertia, t = value["Izz1"] + value["Ia1"], np.arange(300) / RATE
    expected = width * np.arcsinh(
        np.sinh(v0 / width) * np.exp(-value["fc1"] * t / (inertia * width))
    )
    motion = rollout(loop, theta)
    bound = 1e-9 if name == "ode4" else 1e-5
    np.testing.assert_allclose(motion.dq[:, 0], expected, atol=bound)
    # energy lost so far is friction's work, int fc tanh(v / w) v dt
    power = value["fc1"] * np.tanh(motion.dq[:, 0] / width) * motion.dq[:, 0]
    work = np.concatenate([[0.0], np.cumsum(power[1:] + power[:-1]) / (2 * RATE)])
    lost = 0.5 * inertia * (v0**2 - motion.dq[:, 0] ** 2)
    np.testing.assert_allclose(work, lost, atol=2e-4 * lost[-1])
    assert lost[-1] > 0.999 * 0.5 * inertia * v0**2


def test_the_way_to_a_stop_tends_to_that_of_dry_friction():
    """``I v0^2 / (2 fc)``, from which the smoothed sign departs in proportion to its width."""
    excess = []
    for width in (0.02, 0.01):
        loop, theta = turntable(
            p(0.0, rate=RATE),
            still([0.0], 500),
            width=np.array([width]),
            dq0=np.ones(1),
            integrator="sdirk2",
            substeps=10,
        )
        theta[loop.idim.names.index("fv1")] = 0.0
        value = dict(zip(loop.idim.names, theta, strict=True))
        dry = (value["Izz1"] + value["Ia1"]) / (2.0 * value["fc1"])
        way = rollout(loop, theta).q[-1, 0]
        excess.append(way / dry - 1.0)
        # int v dt of the smoothed run-down: v dv / tanh(v / w) instead of v dv
        assert excess[-1] == pytest.approx(np.pi**2 / 6 * width**2, rel=0.05)
    assert excess[0] / excess[1] == pytest.approx(4.0, rel=0.05)


def test_the_implicit_pair_stops_where_an_explicit_step_chatters():
    last = {}
    for name in ("sdirk2", "ode3"):
        loop, theta = turntable(
            p(0.0, rate=RATE),
            still([0.0], 400),
            width=np.array([1e-4]),
            dq0=np.ones(1),
            integrator=name,
        )
        motion = rollout(loop, theta)
        last[name] = np.abs(motion.dq[-50:]).max()
    assert last["sdirk2"] < 1e-12
    assert last["ode3"] > 1e-3


def test_the_default_width_is_a_hundredth_of_the_largest_speed():
    reference = wave(3)
    loop = Loop(build_idim(ROBOTS["chain"]), pd(1.0, 1.0, n=3), reference)
    np.testing.assert_array_equal(loop.width, 0.01 * np.abs(reference.dq).max(axis=0))
    loop = Loop(build_idim(ROBOTS["chain"]), pd(1.0, 1.0, n=3), still([0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(loop.width, 1e-5)


def test_a_coupled_drive_resists_through_the_transpose():
    robot = ROBOTS["coupled"]
    idim = build_idim(robot)
    theta = np.where(np.arange(len(idim.names)) < idim.inertial, standard(idim), 0.0)
    asked = still(np.zeros(4), 5)
    speeds = {"q0": np.array([0.1, 0.4, -0.3, 0.2]), "dq0": np.array([0.3, -0.2, 0.5, 0.4])}
    loop = Loop(idim, p(0.0, n=4), asked, width=np.full(4, 0.2), **speeds)
    bare = rollout(loop, theta).ddq[0]
    q = speeds["q0"]
    for name, torque in (
        ("fvm4", 0.9),
        ("fcm4", np.tanh(0.9 / 0.2)),
        ("fv4", 0.4),
        ("fc3", np.tanh(0.5 / 0.2)),
    ):
        changed = theta.copy()
        changed[idim.names.index(name)] = 2.0
        found = rollout(loop, changed).ddq[0]
        rows = [0.0, 0.0, 1.0, 1.0] if "m" in name else np.eye(4)[int(name[-1]) - 1]
        felt = Plant(loop, theta).mass(q) @ (bare - found)
        np.testing.assert_allclose(felt, 2.0 * torque * np.array(rows), atol=1e-11)


# ---- a base that moves freely


def test_a_tree_in_free_fall_follows_the_parabola():
    robot = ROBOTS["floating"]
    quaternion = np.array([0.1, -0.5, 0.3, 0.8]) / np.linalg.norm([0.1, -0.5, 0.3, 0.8])
    joints = np.linspace(-0.5, 0.9, robot.n)
    q0 = np.concatenate([[0.3, -0.2, 1.0], quaternion, joints])
    dq0 = np.concatenate([[0.7, -0.4, 1.1], np.zeros(3 + robot.n)])
    control = pd(80.0, 9.0, n=robot.n)
    for name in ("ode2", "ode3", "ode4"):
        loop, theta = closed(
            robot, control, still(joints, 500), "viscous", integrator=name, q0=q0, dq0=dq0
        )
        motion = rollout(loop, theta)
        t = np.arange(500)[:, None] / RATE
        turn = pin.Quaternion(quaternion).matrix()
        weight = np.array(SLANTED)
        expected = q0[:3] + t * (turn @ dq0[:3]) + 0.5 * t**2 * weight
        np.testing.assert_allclose(motion.q[:, :3], expected, atol=1e-10)
        np.testing.assert_allclose(motion.q[:, 3:], np.tile(q0[3:], (500, 1)), atol=1e-12)
        rates = dq0[:3] + t * (turn.T @ weight)
        np.testing.assert_allclose(motion.dq[:, :3], rates, atol=1e-10)
        np.testing.assert_allclose(motion.dq[:, 3:], 0.0, atol=1e-12)
        np.testing.assert_allclose(
            motion.ddq[:, :3], np.tile(turn.T @ weight, (500, 1)), atol=1e-10
        )


def tumbling(integrator, substeps, gravity=(0.0, 0.0, 0.0)):
    """A tree thrown into space, its joints at work: the motion and Pinocchio's robot."""
    robot = replace(ROBOTS["floating"], gravity=np.array(gravity))
    rng = np.random.default_rng(4)
    asked = wave(robot.n, 0.5, 100.0)
    q0 = np.concatenate([rng.normal(size=3), [0.5, 0.5, -0.5, 0.5], asked.q[0]])
    loop, theta = closed(
        robot,
        pd(80.0, 9.0, n=robot.n),
        asked,
        integrator=integrator,
        substeps=substeps,
        q0=q0,
        dq0=rng.normal(size=robot.dof) * 2.0,
    )
    return rollout(loop, theta), Plant(loop, theta)


def momenta(motion, plant):
    """Linear and angular momentum about the centre of mass in world axes, (samples, 6)."""
    return np.array(
        [
            pin.computeCentroidalMomentum(plant.model, plant.data, q, dq).vector
            for q, dq in zip(motion.q, motion.dq, strict=True)
        ]
    )


@pytest.mark.parametrize("name", [k for k, v in FIXED_STEPS.items() if not v.implicit])
def test_a_tumbling_tree_keeps_its_momentum(name):
    order, drift = INTEGRATORS[name].order, []
    steps = {4: (4, 8), 5: (2, 4)}.get(order, (16, 32))
    for substeps in steps:
        motion, plant = tumbling(name, substeps)
        h = momenta(motion, plant)
        assert np.abs(np.diff(motion.dq[:, 6:], axis=0)).max() > 0.1  # the joints do move
        drift.append([np.linalg.norm((h - h[0])[:, part]) for part in (slice(0, 3), slice(3, 6))])
        norm = np.linalg.norm(motion.q[:, 3:7], axis=1)
        np.testing.assert_allclose(norm, 1.0, atol=1e-15)
    for coarse, fine in zip(*drift, strict=True):
        # steps this long show more than the fifth order's leading error
        assert order - 0.1 < np.log2(coarse / fine) < (order + 0.1 if order < 5 else np.inf)
    # of about 100 kg m/s, over as many samples
    assert np.max(drift[1]) < {1: 1.0, 2: 1e-3, 3: 1e-7, 4: 1e-8, 5: 1e-8}[order]


def test_the_centre_of_mass_of_a_tumbling_tree_falls():
    motion, plant = tumbling("ode4", 20, SLANTED)
    centre = np.array([pin.centerOfMass(plant.model, plant.data, q).copy() for q in motion.q])
    mass = pin.computeTotalMass(plant.model)
    v0 = momenta(motion, plant)[0, :3] / mass
    t = np.arange(len(centre))[:, None] / 100.0
    expected = centre[0] + v0 * t + 0.5 * np.array(SLANTED) * t**2
    np.testing.assert_allclose(centre, expected, atol=1e-8)


# ---- failures end in a reason


def test_a_negative_inertia_is_named_with_time_and_joint():
    loop, theta = closed(ROBOTS["chain"], pd(80.0, 9.0, n=3))
    theta[loop.idim.names.index("Ia2")] = -50.0
    with pytest.raises(RolloutError, match=r"not positive definite at t = 0\.0000 s \(joint_2\)"):
        rollout(loop, theta)


def test_a_mass_matrix_that_fails_on_the_way_is_named_with_its_time():
    loop, theta = closed(ROBOTS["chain"], pd(80.0, 9.0, n=3), wave(3, 2.0), integrator="ode1")
    theta[loop.idim.names.index("mz3")] = -0.8
    with pytest.raises(RolloutError, match=r"not positive definite at t = \d\.\d{4} s") as caught:
        rollout(loop, theta)
    samples = round(float(str(caught.value).split("t = ")[1].split(" s")[0]) * RATE)
    assert samples > 10
    before = rollout(replace(loop, reference=loop.reference.rows(0, samples)), theta)
    plant = Plant(loop, theta)
    eigenvalues = [np.linalg.eigvalsh(plant.mass(q))[0] for q in before.q]
    assert min(eigenvalues) > 0.0
    # one step of Euler further it is not
    following = before.q[-1] + before.dq[-1] / RATE
    assert np.linalg.eigvalsh(plant.mass(following))[0] < 0.0


@pytest.mark.parametrize("integrator", ["ode1", "ode2", "ode3", "ode4"])
@pytest.mark.parametrize("name", FIXED)
def test_a_wild_gain_diverges(name, integrator):
    control = pd(1e8, 0.0, n=ROBOTS[name].n)
    loop, theta = closed(ROBOTS[name], control, integrator=integrator)
    with pytest.raises(RolloutError, match=r"diverges at t = 0\.\d{4} s at \w+: check the gains"):
        rollout(loop, theta)


def test_an_implicit_step_without_a_solution_says_so():
    control = pd(400.0, 30.0, n=3, rate=RATE)
    steep = np.full(3, 1e-4)
    loop, theta = closed(ROBOTS["chain"], control, integrator="sdirk2", width=steep)
    pushing = [name.startswith("fc") for name in loop.idim.names]
    theta = np.where(pushing, -theta, theta)  # a joint at rest is pushed to either side
    with pytest.raises(RolloutError, match=r"no solution at t = 0\.\d{4} s .*: raise substeps or"):
        rollout(loop, theta)


def test_joints_stay_where_nearly_exact_friction_holds_them():
    control = p(40.0, n=3, rate=RATE)
    narrow = np.full(3, 1e-9)
    loop, theta = closed(ROBOTS["chain"], control, integrator="sdirk2", width=narrow)
    theta = np.where([name.startswith("fc") for name in loop.idim.names], 100.0 + theta, theta)
    still = np.zeros_like(loop.reference.q)
    off = 0.1 + np.zeros(3)
    reference = replace(loop.reference, q=still, dq=still, ddq=still)
    held = rollout(replace(loop, reference=reference, q0=off, dq0=np.zeros(3)), theta)
    np.testing.assert_allclose(held.q, np.tile(off, (len(held.q), 1)), atol=1e-8)


def test_a_joint_that_rests_asks_for_a_width_that_keeps_it():
    rate = 100.0
    t = np.arange(0.0, 10.0, 1.0 / rate)
    moving = np.sin(t)
    resting = np.where(t < 5.0, 0.3, 0.3 + np.sin(t - 5.0))
    found = find_holding_width(np.column_stack([moving, resting]), ((0, len(t)),), rate)
    assert found[0] == np.inf
    assert found[1] == pytest.approx(1e-4 / 5.0)
    ticks = 0.01 * np.round(np.column_stack([resting, resting]) / 0.01)
    np.testing.assert_allclose(
        find_holding_width(ticks, ((0, len(t)),), rate)[0], 0.01 / 5.0, rtol=0.2
    )


def test_a_wild_gain_diverges_on_a_floating_base_too():
    loop, theta = closed(ROBOTS["floating"], pd(1e20, 0.0, n=5), integrator="ode4")
    with pytest.raises(RolloutError, match="diverges at t = "):
        rollout(loop, theta)


@pytest.mark.parametrize(("name", "gain"), [("chain", 1e200), ("tree", 1e100)])
def test_a_wild_gain_is_no_matter_of_the_robot(name, gain):
    control = pd(gain, 0.0, n=ROBOTS[name].n, rate=RATE)
    loop, theta = closed(ROBOTS[name], control, integrator="sdirk2")
    # at the first sample, or at the second where the first position is met to the last digit
    with pytest.raises(RolloutError, match=r"diverges at t = 0\.00[02]0 s at \w+: check the gains"):
        rollout(loop, theta)


def test_instability_shows_in_the_base_as_well():
    robot = ROBOTS["floating"]
    loop, theta = closed(robot, pd(-500.0, -50.0, n=robot.n))
    with pytest.raises(RolloutError, match=r"diverges at t = 0\.\d{4} s at base: check the gains"):
        rollout(loop, theta)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"controller": pd(1.0, 1.0, n=2)}, "the controller has 2 joints, toy has 3"),
        ({"reference": wave(2)}, "the reference has 2 joints, toy has 3"),
        ({"integrator": "ode46"}, "integrator 'ode46' is not known"),
        ({"substeps": 0}, "substeps must be from 1 to 10000, got 0"),
        (
            {"integrator": "sdirk2", "controller": transfer_function([1.0], [0.1, 1.0], n=3)},
            "'sdirk2' needs a tree on a fixed base, and a sampled controller",
        ),
        ({"count": np.full(3, 1e-3)}, "counts need a sampled controller"),
        ({"controller": pd(1.0, 1.0, n=3, delay=0.002)}, "a delay needs a sampled controller"),
        (
            {"controller": pd(1.0, 1.0, n=3, rate=300.0)},
            r"period is 1\.667 integration steps of 0\.002 s, which is not a whole number",
        ),
        (
            {"controller": pd(1.0, 1.0, n=3, rate=RATE, delay=0.003)},
            r"delay is 1\.5 integration steps of 0\.002 s, which is not a whole number",
        ),
        (
            {"controller": pd(1.0, 1.0, n=3, rate=2 * RATE)},
            "rate of 1000 Hz is above that of the integration, 500 Hz; give more substeps",
        ),
        ({"controller": pd(1.0, 1.0, n=3, rate=1e9)}, r"rate of 1e\+09 Hz is above that of the"),
        ({"controller": pd(1.0, 1.0, n=3, compensation="gravity")}, "'gravity' needs a model"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_at_the_door(options, message):
    idim = build_idim(ROBOTS["chain"])
    whole = {"idim": idim, "controller": pd(1.0, 1.0, n=3), "reference": wave(3), **options}
    with pytest.raises(InputError, match=message) as caught:
        Loop(**whole)
    assert "\n" not in str(caught.value)


def test_what_a_floating_base_cannot_have_is_refused():
    robot = ROBOTS["floating"]
    idim = build_idim(robot)
    control = pd(1.0, 1.0, n=5, rate=RATE)
    with pytest.raises(InputError, match="a fixed base"):
        Loop(idim, control, wave(5), "sdirk2")
    with pytest.raises(InputError, match="model compensation needs a fixed base"):
        Loop(
            idim,
            pd(1.0, 1.0, n=5, compensation="gravity"),
            wave(5),
            model=standard(idim),
        )
    with pytest.raises(InputError, match="sensitivities need a fixed base"):
        next(module.sensitive_rollout(Loop(idim, control, wave(5)), standard(idim), [0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"external": np.zeros((300, 2))}, r"external torque has shape \(300, 2\), not \(300, 3\)"),
        ({"external": np.zeros((299, 3))}, r"external torque has shape \(299, 3\)"),
        ({"noise": np.zeros((300, 1))}, r"position noise has shape \(300, 1\)"),
        ({"width": np.array([0.1, 0.0, 0.1])}, "width of the sign needs 3 positive values"),
        ({"width": np.full(2, 0.1)}, "width of the sign needs 3 positive values"),
        ({"width": np.array([0.1, np.nan, 0.1])}, "width of the sign needs 3 positive values"),
        ({"q0": np.zeros(2)}, "the start has shapes"),
        ({"dq0": np.zeros(4)}, "the start has shapes"),
    ],
    ids=str,
)
def test_inputs_of_the_wrong_shape_are_refused(options, message):
    loop, theta = closed(ROBOTS["chain"], pd(80.0, 9.0, n=3), **options)
    with pytest.raises(InputError, match=message):
        rollout(loop, theta)


ODD = {
    "start of two axes": ({"q0": np.zeros((3, 3))}, r"the start has shapes \(3, 3\) and"),
    "speeds of two axes": ({"dq0": np.zeros((3, 1))}, r"the start has shapes \(3,\) and \(3, 1\)"),
    "width of two axes": ({"width": np.ones((3, 1))}, "width of the sign needs 3 positive"),
    "an element of another joint": (
        {"elements": (Element(3, STRIBECK, (1.0, 1.0, 1.0, 0.0)),)},
        "an element acts on joint 4 of 3",
    ),
    "infinite counts": ({"count": np.full(3, np.inf)}, "an encoder's counts need 3 finite"),
}


@pytest.mark.parametrize("name", ODD)
def test_all_that_does_not_fit_is_refused(name):
    loop, theta = closed(ROBOTS["chain"], pd(80.0, 9.0, n=3, rate=RATE))
    options, message = ODD[name]
    with pytest.raises(InputError, match=message):
        rollout(replace(loop, **options), theta)


def test_a_start_without_an_orientation_is_refused():
    loop, theta = closed(ROBOTS["floating"], pd(80.0, 9.0, n=5))
    with pytest.raises(InputError, match=r"the start's quaternion \(x, y, z, w\) is zero"):
        rollout(replace(loop, q0=np.zeros(12)), theta)


@pytest.mark.usefixtures("registered")
def test_friction_that_depends_on_what_is_not_simulated_is_refused():
    idim = build_idim(ROBOTS["chain"], "temperature")
    loop = Loop(idim, pd(80.0, 9.0, n=3), wave(3))
    with pytest.raises(InputError, match="depends on the temperature of its drive cannot be simul"):
        rollout(loop, values(idim))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"linear": (1.0, 1.0)}, "an element of joint 2 needs 4 finite parameters and 1 finite"),
        ({"linear": (1.0, 1.0, np.nan, 0.0)}, "needs 4 finite parameters"),
        ({"shape": (0.1, 0.2)}, "4 finite parameters and 1 finite shapes"),
        ({"shape": (np.nan,)}, "1 finite shapes"),
        ({"shape": (0.0,)}, r"joint 2: vs is 0 but has to be from 0\.001 to 10 rad/s"),
    ],
    ids=str,
)
def test_elements_with_values_of_another_model_are_refused(parts, message):
    with pytest.raises(InputError, match=message):
        Element(**{"joint": 1, "model": STRIBECK, "linear": (1.0, 1.0, 1.0, 0.0), **parts})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": np.array([1e-3])}, "an encoder's counts need 3 finite values"),
        ({"count": np.array([1e-3, -1e-3, 0.0])}, "counts need 3 finite values, positive or zero"),
        ({"count": np.array([1e-3, np.nan, 0.0])}, "counts need 3 finite values, positive or zero"),
    ],
    ids=str,
)
def test_encoders_and_drives_of_another_robot_are_refused(options, message):
    loop, theta = closed(ROBOTS["chain"], pd(80.0, 9.0, n=3, rate=RATE))
    with pytest.raises(InputError, match=message):
        rollout(replace(loop, **options), theta)


@pytest.mark.parametrize("change", [lambda x: x[:-1], lambda x: np.append(x, 1.0)])
@pytest.mark.parametrize("compensation", ["gravity", "feed-forward", "computed-torque"])
def test_parameters_of_another_robot_are_refused(compensation, change):
    control = pd(80.0, 9.0, n=3, compensation=compensation)
    loop, theta = closed(ROBOTS["chain"], control)
    other = change(theta)
    for attempt in ((loop, other), (replace(loop, model=other), theta)):
        with pytest.raises(InputError, match="parameter values have to be 42 finite numbers"):
            rollout(*attempt)


LAYOUTS = {
    "read-only": lambda array: array,  # all of them are made so
    "every other": lambda array: np.repeat(array, 2, axis=0)[::2],
    "by columns": np.asfortranarray,
    "short": lambda array: array.astype(np.float32),
}
SIGNALS = {
    "gravity": np.array(SLANTED),
    "theta": standard(build_idim(ROBOTS["chain"])),
    "model": standard(build_idim(ROBOTS["chain"])),
    "width": np.ones(3),
    "count": np.ones(3),
    "noise": np.zeros((300, 3)),
    "external": np.zeros((300, 3)),
    "q0": np.zeros(3),
    "dq0": np.zeros(3),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("what", SIGNALS)
def test_one_compilation_serves_all(monkeypatch, what, layout):
    types = []

    def advance_rollout(*arguments):
        types.append(typeof(arguments))
        return DONE, 0, -1

    monkeypatch.setattr(module, "advance_rollout", advance_rollout)
    control = pd(80.0, 9.0, n=3, rate=RATE, compensation="gravity")
    other = LAYOUTS[layout](SIGNALS[what].copy())
    other.setflags(write=False)
    for arrays in (dict(SIGNALS), {**SIGNALS, what: other}):
        theta, gravity = arrays.pop("theta"), arrays.pop("gravity")
        idim = build_idim(replace(ROBOTS["chain"], gravity=gravity))
        next(module.sensitive_rollout(Loop(idim, control, wave(3), **arrays), theta, [0, 3]))
    assert types[0] == types[1]


POISON = {
    "noise": lambda loop: replace(loop, noise=poisoned(loop.samples, 3)),
    "external": lambda loop: replace(loop, external=poisoned(loop.samples, 3)),
    "start": lambda loop: replace(loop, q0=np.array([0.0, np.nan, 0.0])),
    "velocity": lambda loop: replace(loop, dq0=np.array([0.0, np.inf, 0.0])),
}


def poisoned(samples, n):
    signal = np.zeros((samples, n))
    signal[samples // 2, 1] = np.nan
    return signal


@pytest.mark.parametrize("clock", ["continuous", "slow and late", "differences"])
@pytest.mark.parametrize("what", POISON)
def test_what_is_not_a_number_is_refused(what, clock):
    control = pd(80.0, 9.0, n=3, limit=20.0, **CLOCKS[clock])
    loop, theta = closed(ROBOTS["chain"], control)
    with pytest.raises(InputError, match="holds values that are not finite"):
        rollout(POISON[what](loop), theta)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("symbol", ["m2", "Izz1", "Ia3", "fv1", "fc2", "off3"])
def test_parameters_that_are_no_numbers_are_refused(symbol, value):
    loop, theta = closed(ROBOTS["chain"], pd(80.0, 9.0, n=3, limit=20.0, compensation="gravity"))
    wrong = theta.copy()
    wrong[loop.idim.names.index(symbol)] = value
    for attempt in ((loop, wrong), (replace(loop, model=wrong), theta)):
        with pytest.raises(InputError, match="parameter values have to be 42 finite numbers"):
            rollout(*attempt)


def test_a_controller_state_that_overflows_unread_is_an_error():
    direct = np.array([80.0, 9.0, 0.0, -80.0, -9.0])
    growing = state_space([[3.0]], [[1.0, 0, 0, 0, 0]], [0.0], direct, n=3, rate=RATE)
    loop, theta = closed(ROBOTS["chain"], growing, wave(3, 4.0))
    with pytest.raises(RolloutError, match=r"diverges at t = 1\.\d{4} s at joint_1"):
        rollout(loop, theta)


def test_forward_dynamics_names_the_sample_that_fails():
    loop, theta = closed(ROBOTS["chain"], pd(80.0, 9.0, n=3))
    q, dq, tau = np.zeros((3, 4, 3))
    q[2, 1] = np.nan
    phi = theta[: loop.idim.inertial].reshape(-1, 10)
    with pytest.raises(ComputationError, match="mass matrix of sample 2 is not positive definite"):
        solve_forward_dynamics(loop.idim.tree, phi, q, dq, tau)


# ---- same input, same bits


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", ROBOTS)
def test_two_rollouts_are_the_same_bits(name, clock):
    robot = ROBOTS[name]
    clock = {**CLOCKS[clock], "lag": 2} if clock == "differences" else CLOCKS[clock]
    loop, theta = closed(robot, pid(80.0, 30.0, 9.0, n=robot.n, limit=30.0, **clock))
    first, second = rollout(loop, theta), rollout(loop, theta)
    for label in ("q", "dq", "ddq", "tau", "measured"):
        assert getattr(first, label).tobytes() == getattr(second, label).tobytes()


@pytest.mark.parametrize("name", ["ode3", "sdirk2"])
@pytest.mark.parametrize(
    "clock",
    [
        {},
        {"rate": RATE},
        {"rate": RATE, "delay": 3 / RATE},
        {"rate": RATE / 4, "delay": 3 / RATE},
        {"rate": RATE / 3},
    ],
    ids=["continuous", "sampled", "late", "slow and late", "across the cut"],
)
def test_a_rollout_in_stretches_is_that_in_one_piece(monkeypatch, name, clock):
    robot = ROBOTS["tree"]
    if name == "sdirk2" and not clock:
        pytest.skip("the implicit pair needs a sampled controller")
    control = pid(80.0, 30.0, 9.0, n=robot.n, limit=30.0, **clock)
    rng = np.random.default_rng(2)
    options = {"noise": rng.normal(size=(300, 5)) * 1e-3, "external": rng.normal(size=(300, 5))}
    loop, theta = closed(robot, control, integrator=name, substeps=2, **options)
    chosen = [4, 17, 58]

    def parts():
        return list(module.sensitive_rollout(loop, theta, chosen))

    (whole,) = parts()
    monkeypatch.setattr(module, "STRETCH", 64)
    pieces = parts()
    assert [part.start for part in pieces] == [0, 64, 128, 192, 256]
    for label in ("q", "dq", "ddq", "tau", "measured"):
        joined = np.concatenate([getattr(part.motion, label) for part in pieces])
        np.testing.assert_array_equal(joined, getattr(whole.motion, label))
    for label in ("by_q", "by_dq", "by_ddq", "by_tau"):
        joined = np.concatenate([getattr(part, label) for part in pieces])
        np.testing.assert_array_equal(joined, getattr(whole, label))


def test_progress_rises_to_one(monkeypatch):
    monkeypatch.setattr(module, "STRETCH", 64)
    loop, theta = closed(ROBOTS["chain"], pd(80.0, 9.0, n=3))
    told = []
    rollout(loop, theta, lambda stage, share: told.append((stage, share)))
    assert {stage for stage, _ in told} == {"simulation"}
    assert all(a < b for (_, a), (_, b) in pairwise(told))
    assert told[-1][1] == 1.0


def test_the_motion_starts_where_it_is_told():
    asked = wave(3)
    loop, theta = closed(ROBOTS["chain"], pd(80.0, 9.0, n=3), asked)
    motion = rollout(loop, theta)
    np.testing.assert_array_equal(motion.q[0], asked.q[0])
    np.testing.assert_array_equal(motion.dq[0], asked.dq[0])
    there = {"q0": np.array([0.1, 0.2, 0.3]), "dq0": np.array([0.0, -1.0, 1.0])}
    motion = rollout(replace(loop, **there), theta)
    np.testing.assert_array_equal(motion.q[0], there["q0"])
    np.testing.assert_array_equal(motion.dq[0], there["dq0"])
    loop, theta = closed(ROBOTS["floating"], pd(80.0, 9.0, n=5))
    motion = rollout(loop, theta)
    asked = loop.reference
    np.testing.assert_array_equal(motion.q[0], [0, 0, 0, 0, 0, 0, 1, *asked.q[0]])
    np.testing.assert_array_equal(motion.dq[0], [0, 0, 0, 0, 0, 0, *asked.dq[0]])


def test_the_orientation_of_a_start_may_have_any_length():
    robot = ROBOTS["floating"]
    loop, theta = closed(robot, pd(80.0, 9.0, n=5))
    unit = np.array([0.1, 0.7, -0.1, 0.7])
    q0 = np.concatenate([[0.3, -0.2, 1.0], 3.0 * unit, loop.reference.q[0]])
    motion = rollout(replace(loop, q0=q0), theta)
    assert q0[4] == 3.0 * unit[1]  # what is given stays as it is
    np.testing.assert_allclose(motion.q[0, 3:7], unit, rtol=1e-15)
    np.testing.assert_array_equal(
        motion.q[0, [0, 1, 2, *range(7, 12)]], q0[[0, 1, 2, *range(7, 12)]]
    )
    q0[3:7] = unit
    ours, theirs = motion, rollout(replace(loop, q0=q0), theta)
    assert gap(columns(ours), columns(theirs)) < 1e-12
