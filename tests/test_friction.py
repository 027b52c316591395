"""The friction protocol: columns, shapes, states and energy, in regressors and in rollouts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
import toy
from differences import assert_slope
from frictions import (
    DAHL,
    LUGRE,
    MODELS,
    SPRING,
    STRIBECK,
    VALUES,
    registered,
    values,
)
from loops import output
from robots import relative
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares
from test_simulation import Plant, through, wave
from thin import first

from dynident.control.controller import p, pd
from dynident.control.reference import Reference
from dynident.core.errors import InputError
from dynident.dynamics.base import base_parameters
from dynident.dynamics.columns import fill_rows
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.following import (
    compute_loads,
    find_conditions,
    follow_friction,
    view_friction,
)
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import JointElements
from dynident.dynamics.torques import evaluate_drive_torques
from dynident.friction.bristles import BRISTLES, SPECTRUM
from dynident.friction.elements import spring
from dynident.friction.energy import balance_energies, check_passive
from dynident.friction.kernel import (
    BY_LOAD,
    BY_POSITION,
    BY_SPEED,
    BY_STATE,
    VALUE,
    fill_tables,
    find_law_address,
)
from dynident.friction.memoryless import OFFSET, VISCOUS
from dynident.friction.model import DriveSignals, Element, FrictionModel, LinearTerm, ShapeTerm
from dynident.friction.models import FRICTIONS
from dynident.friction.names import build_friction
from dynident.methods import ESTIMATORS
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.simulation.integrators import INTEGRATORS
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout, sensitive_rollout
from dynident.simulation.stability import check_integration

__all__ = ["registered"]

SPEEDS = np.array([-3.0, -0.7, -0.05, 0.0, 0.02, 0.4, 2.5])

# ---- the linear models


CURVES = {
    "none": {},
    "viscous": {"fv": lambda v: v},
    "viscous-offset": {"fv": lambda v: v, "off": np.ones_like},
    "coulomb-viscous": {"fv": lambda v: v, "fc": np.sign, "off": np.ones_like},
    "coulomb-viscous-symmetric": {"fv": lambda v: v, "fc": np.sign},
    "coulomb-viscous-asymmetric": {
        "fv": lambda v: v,
        "fcp": lambda v: np.where(v > 0.0, 1.0, 0.0),
        "fcn": lambda v: np.where(v < 0.0, -1.0, 0.0),
    },
}


@pytest.mark.parametrize("name", CURVES)
def test_columns_of_the_linear_models_are_their_formulas(name):
    model, curves = FRICTIONS[name], CURVES[name]
    assert [each.symbol for each in model.parameters] == list(curves)
    columns = model.columns(DriveSignals(np.zeros(7), SPEEDS), np.zeros(0))
    for column, curve in zip(columns.T, curves.values(), strict=True):
        np.testing.assert_array_equal(column, curve(SPEEDS))


@pytest.mark.parametrize("name", CURVES)
def test_smooth_columns_tend_to_the_exact_ones_beside_standstill(name):
    model, moving = FRICTIONS[name], SPEEDS[SPEEDS != 0.0]
    still = np.zeros(len(moving))
    exact = model.columns(DriveSignals(still, moving), np.zeros(0))
    smooth = model.columns(DriveSignals(still, moving, 1e-3), np.zeros(0))
    np.testing.assert_allclose(smooth, exact, atol=1e-12)
    wide = model.columns(DriveSignals(still, moving, 1.0), np.zeros(0))
    assert np.array_equal(wide, exact) == (name in ("none", "viscous", "viscous-offset"))


@pytest.mark.parametrize("width", [None, np.array([0.02, 0.05, 0.1])])
def test_drives_that_are_made_together_are_those_made_one_by_one(width):
    """Among laws and springs, on joints whose drives are coupled."""
    belt = JointElements(2, spring(), over=0, ratio=-0.5)
    names = "coulomb-viscous-asymmetric, stribeck, coulomb-viscous"
    idim = build_idim(ROBOTS["coupled"], names, elements=[belt])
    q, dq, ddq = np.random.default_rng(8).normal(size=(3, 40, 3))
    dq[::7] = 0.0
    theta = np.random.default_rng(9).normal(size=len(idim.parameters))
    theta[: idim.inertial] = 0.0
    torque = evaluate_drive_torques(idim, theta, q, dq, ddq, width)
    packing = idim.packing(range(len(idim.parameters)))
    packed = np.empty((40, packing.width))
    fill_rows(idim, packing, q, dq, ddq, packed, width)
    expected = np.zeros((40, 3))
    for place, column in enumerate(idim.structure.linear_columns, idim.inertial):
        if column.friction is None:
            own = ddq @ column.turns
        else:
            friction = idim.frictions[column.friction]
            signals = view_friction(idim, q, dq, width)(column.friction)
            shape = np.array(idim.shape[friction.shape])
            own = friction.model.columns(signals, shape)[:, column.term]
        each = np.outer(own, column.turns)
        expected += theta[place] * each
        for j, (entries, known) in enumerate(packing.joints):
            if place in known:
                filled = packed[:, entries][:, known == place][:, 0]
                np.testing.assert_allclose(filled, each[:, j], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(torque, expected, rtol=1e-12, atol=1e-12)


# ---- laws, their columns and derivatives


def step(v):
    return np.where(v > 0.0, 1.0, 0.0)


POSITIONS = np.linspace(-2.0, 1.0, 7)
FORMULAS = {
    "cube-root": lambda v, load, T, p: [np.cbrt(v)],
    "polynomial": lambda v, load, T, p: [v**3, v**5],
    "uneven": lambda v, load, T, p: [
        np.sin(POSITIONS) * np.sign(v),
        np.cos(POSITIONS) * np.sign(v),
    ],
    "load": lambda v, load, T, p: [np.abs(load) * np.sign(v)],
    "load-gain": lambda v, load, T, p: [load],
    "load-square": lambda v, load, T, p: [np.abs(load) * np.sign(v), load**2 * np.sign(v)],
    "directional-load": lambda v, load, T, p: [
        np.abs(load) * np.sign(v) * step(load * v),
        np.abs(load) * np.sign(v) * step(-load * v),
    ],
    "stribeck": lambda v, load, T, p: [np.exp(-((v / p[0]) ** 2)) * np.sign(v)],
    "stribeck-exponent": lambda v, load, T, p: [np.exp(-(np.abs(v / p[0]) ** p[1])) * np.sign(v)],
    "stribeck-load": lambda v, load, T, p: [
        np.exp(-((v / p[0]) ** 2)) * np.sign(v),
        np.abs(load) * np.sign(v),
        np.abs(load) * np.exp(-((v / p[0]) ** 2)) * np.sign(v),
    ],
    "bompos": lambda v, load, T, p: [
        -np.sign(v) * np.exp(-np.abs(v) / p[0]),
        -np.sign(v) * np.exp(-1.0 / (p[1] * np.maximum(np.abs(v), 1e-300))),
    ],
    "tanh-sech": lambda v, load, T, p: [np.tanh(p[1] * v), np.tanh(p[1] * v) / np.cosh(p[0] * v)],
    "sigmoid": lambda v, load, T, p: [
        1.0 / (1.0 + np.exp(-p[0] * (v + p[1]))) - 1.0 / (1.0 + np.exp(-p[0] * p[1]))
    ],
    "temperature": lambda v, load, T, p: [np.exp(-(T - 20.0) / p[0]) * v],
}
"""Columns of the laws without memory as the literature has them."""


@pytest.mark.parametrize("name", FORMULAS)
def test_columns_of_the_laws_are_their_formulas(name):
    model = FRICTIONS[name]
    shape = np.array(model.start) * 1.3 + 0.1
    load, warmth = np.linspace(-20.0, 30.0, 7), np.linspace(10.0, 60.0, 7)
    found = model.columns(DriveSignals(POSITIONS, SPEEDS, None, load, warmth), shape)[:, model.rows]
    expected = FORMULAS[name](SPEEDS, load, warmth, shape)
    np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-12, atol=1e-15)


def test_every_law_without_memory_has_its_formula_here():
    laws = {name for name, model in FRICTIONS.items() if model.law and not model.state}
    assert laws == set(FORMULAS)
    assert set(FRICTIONS) - laws - set(CURVES) == {*BRISTLES, "viscous-drift"}


def tables(model, law, at, shape):
    """A law's tables at many instants, `at` ordered as `DriveInstant`, with the states after it."""
    z = np.ascontiguousarray(at[7:].T)
    rows = len(model.state) if law is model.step else len(model.rows)
    out = np.empty((at.shape[1], rows, BY_STATE + len(model.state) + len(model.shape)))
    inputs = [np.ascontiguousarray(row) for row in at[[0, 1, 2, 3, 4, 5]]]
    fill_tables(find_law_address(law), *inputs, float(at[6, 0]), np.array(shape), z, out)
    return out


def instants(model, samples=40):
    """Random ones with a smooth sign, one row for each input of a law."""
    rng = np.random.default_rng(3)
    v = rng.choice([-1.0, 1.0], samples) * 10.0 ** rng.uniform(-2.0, 0.5, samples)
    q, load = rng.normal(size=(2, samples))
    z = 0.01 * rng.normal(size=(len(model.state), samples))
    rest = [q, *smooth(v), 10.0 * load, np.full(samples, 25.0), np.full(samples, 0.01)]
    return np.vstack([v, *rest, z])


def smooth(v, width=0.3):
    return np.tanh(v / width), (1.0 - np.tanh(v / width) ** 2) / width


@pytest.mark.parametrize("part", ["law", "step"])
@pytest.mark.parametrize("name", MODELS)
def test_derivatives_of_a_law_are_those_of_its_values(name, part):
    model = MODELS[name]
    law = getattr(model, part)
    if law is None:
        return
    at, shape = instants(model), np.array(model.start)
    found = tables(model, law, at, shape)

    def value(changed, shape=shape):
        changed = changed.copy()
        changed[2:4] = smooth(changed[0])  # the sign goes with the speed
        return tables(model, law, changed, shape)[:, :, VALUE]

    def along(row):
        return lambda t: value(at + t * (np.arange(len(at)) == row)[:, None])

    def bent(k):
        return lambda t: value(at, shape + t * np.eye(len(shape))[k])

    cases = [(BY_SPEED, along(0), 1e-5), (BY_POSITION, along(1), 1e-5), (BY_LOAD, along(4), 1e-5)]
    cases += [(BY_STATE + k, along(7 + k), 1e-5) for k in range(len(model.state))]
    after = BY_STATE + len(model.state)
    cases += [(after + k, bent(k), 1e-4 * max(start, 0.1)) for k, start in enumerate(shape)]
    assert len(cases) == found.shape[2] - 1
    for column, moved, step in cases:
        scale = np.abs(found[:, :, column]).max() + np.abs(found[:, :, VALUE]).max()
        assert_slope(moved, found[:, :, column], step, scale=scale)


def test_a_law_needs_no_file_of_its_own():
    namespace = {}
    exec("def cube(at, shape, z, out):\n    out[0, 0] = at.speed**3\n", namespace)
    model = FrictionModel((LinearTerm("f3", "", positive=True),), law=namespace["cube"])
    columns = model.columns(DriveSignals(np.zeros(7), SPEEDS), np.zeros(0))
    np.testing.assert_allclose(columns[:, 0], SPEEDS**3)


# ---- models that do not fit


WRONG = {
    "a parameter twice": ({"parameters": (VISCOUS, VISCOUS)}, "fv, fv are not all different"),
    "a row without a law": ({"parameters": (LinearTerm("f", "", positive=True),)}, "a law is for"),
    "a law without a row": ({"parameters": (VISCOUS,), "law": STRIBECK.law}, "a law is for"),
    "a state without a step": ({"state": (0.0,)}, "states need a step and the energy"),
    "a state without energy": (
        {"state": (0.0,), "step": DAHL.step},
        "states need a step and the energy",
    ),
    "a shape of nothing": (
        {"parameters": (VISCOUS,), "shape": STRIBECK.shape},
        "shapes and states are for a law",
    ),
    "a start beyond": (
        {"shape": (ShapeTerm("vs", "", 0.0, 1.0, 2.0),)},
        "vs starts beyond its bounds",
    ),
    "an unknown signal": ({"needs": ("humidity",)}, "signal 'humidity' is not known"),
}


@pytest.mark.parametrize("name", WRONG)
def test_parts_that_do_not_fit_are_refused(name):
    parts, message = WRONG[name]
    whole = {"parameters": STRIBECK.parameters, "law": STRIBECK.law}
    if "parameters" in parts:
        whole = {}
    with pytest.raises(InputError, match=message):
        FrictionModel(**{**whole, **parts})


# ---- in the regressor


ROBOTS = {"chain": toy.arm(3), "coupled": toy.arm(3, coupled=True)}
RATE = 500.0


def moved(robot, seconds=1.0, seed=0):
    """A motion, loads and temperatures of its drives."""
    q, dq, ddq = toy.motion(robot.n, seconds, seed, RATE)
    rng = np.random.default_rng(seed)
    drives = len(build_idim(robot).gears)
    load = 20.0 * rng.normal(size=(len(q), drives))
    temperature = np.linspace(20.0, 40.0, len(q))[:, None] * np.ones(drives)
    return q, dq, ddq, Conditions(load=load, temperature=temperature)


def packed(idim, q, dq, ddq, conditions, width=None):
    packing = idim.packing(range(len(idim.parameters)))
    out = np.empty((len(q), packing.width))
    fill_rows(idim, packing, q, dq, ddq, out, width, conditions)
    dense = np.zeros((len(q), idim.tree.dof, len(idim.parameters)))
    for row, (entries, columns) in enumerate(packing.joints):
        dense[:, row, columns] = out[:, entries]
    return dense


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("width", first([None, 0.1]))
@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("name", MODELS)
def test_the_regressor_gives_the_torque_and_its_slope_by_the_shape(name, robot, width):
    idim = build_idim(ROBOTS[robot], name)
    q, dq, ddq, given = moved(idim.robot)
    width = None if width is None else np.full(3, width)
    theta = values(idim)
    # not at the start, and of every drive another
    spread = np.linspace(0.8, 1.3, len(idim.shape)) if len(idim.shape) else np.zeros(0)
    idim = idim.shaped(spread * np.array(idim.shape) + 0.01)

    def torque(idim):
        conditions = follow_friction(idim, q, dq, RATE, width, given)
        return packed(idim, q, dq, ddq, conditions, width) @ theta

    conditions = follow_friction(idim, q, dq, RATE, width, given)
    found = idim.torque(theta, q, dq, ddq, width, conditions)
    np.testing.assert_allclose(torque(idim), found, atol=1e-10 * np.abs(found).max())
    if not idim.shape:
        return
    free = idim.linearised(theta)
    slopes = packed(free, q, dq, ddq, conditions, width)[:, :, free.plain :]
    for k, value in enumerate(idim.shape):
        own = np.eye(len(idim.shape))[k]
        step = 1e-4 * max(abs(value), 0.01)
        assert_slope(
            lambda t, own=own: torque(idim.shaped(np.array(idim.shape) + t * own)),
            slopes[:, :, k],
            step,
        )


def test_signals_of_one_length_are_needed():
    # the kernels take the length from the speed: they would read beyond the others' end
    cut = DriveSignals(np.zeros(10), np.zeros(20))
    with pytest.raises(ValueError, match=r"signals of one length .* not of \[10, 20\]"):
        FRICTIONS["dahl"].follow(cut, 100.0, np.array(FRICTIONS["dahl"].start))


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", BRISTLES)
def test_states_are_followed_a_stretch_at_a_time(name):
    idim = build_idim(ROBOTS["coupled"], name)
    q, dq, _, _ = moved(idim.robot)
    whole, before, parts = follow_friction(idim, q, dq, RATE), None, []
    for a, b in ((0, 1), (1, 200), (200, 437), (437, len(q))):
        before = follow_friction(idim, q[a:b], dq[a:b], RATE, previous=before)
        parts.append(before)
    for k, trace in enumerate(whole.traces):
        joined = np.concatenate([part.traces[k].z for part in parts])
        np.testing.assert_array_equal(joined, trace.z)
        joined = np.concatenate([part.traces[k].by_shape for part in parts])
        np.testing.assert_array_equal(joined, trace.by_shape)
    cut = whole.rows(slice(200, 437))
    np.testing.assert_array_equal(cut.traces[0].z, parts[2].traces[0].z)


WITH_OFFSET = [name for name, model in FRICTIONS.items() if OFFSET in model.parameters]


@pytest.mark.parametrize("name", WITH_OFFSET)
def test_every_law_may_be_without_its_offset(name):
    (whole,), (bare,) = build_friction(name), build_friction(f"{name}(off=0)")
    assert bare.parameters == tuple(p for p in whole.parameters if p.symbol != "off")
    assert bare.shape == whole.shape
    assert bare.law is whole.law
    if whole.state or whole.needs:
        return
    robot = toy.arm(2, False)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 7, 2))
    models = [build_idim(robot, friction) for friction in (name, f"{name}(off=0)")]
    kept = [k for k, p in enumerate(models[0].parameters) if p.symbol != "off"]
    columns = [model.regressor(q, dq, ddq) for model in models]
    assert np.array_equal(columns[0][:, :, kept], columns[1])


def test_an_offset_is_known_only_where_it_is_none():
    with pytest.raises(InputError, match="off is known only where it is 0"):
        build_friction("stribeck(off=0.1)")
    with pytest.raises(InputError, match="no shape 'off'; it has none"):
        build_friction("viscous(off=0)")


@pytest.mark.usefixtures("registered")
def test_names_of_a_coupled_drive():
    idim = build_idim(ROBOTS["coupled"], "stribeck")
    assert [p.name for p in idim.drives] == [
        "Ia1", "fv1", "fc1", "off1", "fs1", "Ia2", "fv2", "fc2", "off2", "fs2",
        "fv3", "fc3", "off3", "fs3", "Iam3", "fvm3", "fcm3", "fsm3",
    ]  # fmt: skip
    assert [p.name for p in idim.shape_parameters] == ["vs1", "vs2", "vs3", "vsm3"]
    assert idim.shape == (0.1,) * 4
    assert idim.shaped([0.1, 0.2, 0.3, 0.4]).shape == (0.1, 0.2, 0.3, 0.4)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", MODELS)
def test_base_parameters_do_not_depend_on_the_shape(name):
    idim = build_idim(ROBOTS["coupled"], name)
    other = idim.shaped([1.7 * value + 0.05 for value in idim.shape])
    ours, theirs = base_parameters(idim), base_parameters(other)
    np.testing.assert_array_equal(ours.kept, theirs.kept)
    np.testing.assert_allclose(ours.K, theirs.K, atol=1e-9)
    friction = {p.name for k, p in enumerate(idim.parameters) if k >= idim.inertial}
    assert friction - {p.name for p in idim.drives if p.symbol == "Ia"} <= set(idim.names)


@pytest.mark.parametrize("joints", [1, 2, 3])
@pytest.mark.parametrize("name", FRICTIONS)
def test_no_friction_is_regrouped_with_anything(name, joints):
    """States and loads that excite the base parameters are none of the motion's own signals."""
    base = base_parameters(build_idim(toy.arm(joints), name))
    friction = {p.name for p in base.idim.drives if p.symbol != "Ia"}
    assert friction <= set(base.names)


@pytest.mark.parametrize("name", ["viscous", "stribeck", "stribeck-load", "dahl"])
@pytest.mark.parametrize("free", [False, True])
def test_a_model_at_other_shapes_is_as_one_that_is_made_anew(name, free):
    robot = toy.arm(3, coupled=True)
    model = replace(build_idim(robot, name), blur=(0.1,) * 3)
    if free:
        model = model.linearised(np.ones(model.plain))
    q, dq, ddq = (each[:40].copy() for each in toy.motion(3, 2.0, 1, 200.0))
    every = range(len(model.parameters))
    model.packing(every)  # so that all that lasts is known
    other = model.shaped(1.1 * np.array(model.shape)).linearised(2.0 * np.ones(model.plain))
    anew = replace(model, shape=other.shape, about=other.about, free=other.free)
    assert other == anew
    assert other.parameters == anew.parameters
    ours, theirs = (
        each.regressor(q, dq, ddq, find_conditions(each, q, dq, ddq, 200.0))
        for each in (other, anew)
    )
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("registered")
def test_shapes_that_cannot_be_are_refused():
    with pytest.raises(InputError, match="'stribeck' has 3 shape parameters, got 2 values"):
        build_idim(ROBOTS["chain"], "stribeck", shape=(0.1, 0.2))
    with pytest.raises(InputError, match="'viscous' has 0 shape parameters, got 1 values"):
        build_idim(ROBOTS["chain"], "viscous", shape=(0.1,))
    with pytest.raises(InputError, match=r"vs2 is 0 but has to be from 0\.001 to 10 rad/s"):
        build_idim(ROBOTS["chain"], "stribeck").shaped([0.1, 0.0, 0.1])
    with pytest.raises(InputError, match="vs1 is nan but has to be"):
        build_idim(ROBOTS["chain"], "stribeck").shaped([np.nan, 0.1, 0.1])


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dahl", "has 1 states that have to be followed first"),
        ("load", "depends on the load of its drive, which is missing"),
        ("temperature", "depends on the temperature of its drive, which is missing"),
    ],
)
def test_conditions_that_are_missing_are_named(name, message):
    idim = build_idim(ROBOTS["chain"], name)
    q, dq, ddq, _ = moved(idim.robot)
    with pytest.raises(InputError, match=message):
        packed(idim, q, dq, ddq, Conditions())


@pytest.mark.usefixtures("registered")
def test_the_load_of_a_torque_is_that_of_its_own_bodies():
    idim = build_idim(ROBOTS["coupled"], "load")
    q, dq, ddq, _ = moved(idim.robot)
    theta = values(idim)
    rigid = idim.torque(idim.join(idim.split(theta)[0]), q, dq, ddq)
    load = compute_loads(idim, rigid)
    motors = load[:, [0, 1, 3]]  # motor 3 turns with joints 2 and 3
    np.testing.assert_array_equal(load[:, 2], rigid[:, 2])
    np.testing.assert_allclose(
        np.sum(motors * (dq @ idim.robot.drives.turns.T), axis=1), np.sum(rigid * dq, axis=1)
    )
    np.testing.assert_array_equal(
        idim.torque(theta, q, dq, ddq),
        idim.torque(theta, q, dq, ddq, conditions=Conditions(load=load)),
    )
    named = dict(zip(idim.names, theta, strict=True))
    plain = build_idim(ROBOTS["coupled"], "coulomb-viscous-symmetric")
    bare = plain.torque(np.array([named[name] for name in plain.names]), q, dq, ddq)
    bare += [named[f"off{j}"] for j in (1, 2, 3)]
    signs = np.sign(np.column_stack([dq, dq[:, 1] + dq[:, 2]]))
    rub = np.array([named[name] for name in ("fl1", "fl2", "fl3", "flm3")]) * np.abs(load) * signs
    expected = rub @ np.array([gear.turns for gear in idim.gears])
    np.testing.assert_allclose(idim.torque(theta, q, dq, ddq) - bare, expected, atol=1e-10)


# ---- states, against formulas


def test_bristles_follow_dahls_hysteresis_loop():
    """``w = s - (s - w0) exp(-|q - q0| / delta)`` from turning point to turning point."""
    delta, reach, rate = 0.02, 0.05, 1000.0
    t = np.arange(4000) / rate
    q, dq = reach * np.sin(2.0 * np.pi * t), reach * 2.0 * np.pi * np.cos(2.0 * np.pi * t)
    trace = DAHL.follow(DriveSignals(q, dq), rate, np.array([delta]))
    later = q + 0.5 * dq / rate  # states are those in the middle of the period
    expected, w0, q0, direction = [], 0.0, 0.0, 1.0
    for position, speed in zip(later, dq, strict=True):
        if np.sign(speed) != direction:
            w0, q0 = expected[-1], direction * reach
            direction = np.sign(speed)
        w = direction - (direction - w0) * np.exp(-abs(position - q0) / delta)
        expected.append(w)
    # w0 is that at the turning point, not of the sample before it: a share of delta
    np.testing.assert_allclose(trace.z[:, 0], expected, atol=2e-4)
    assert np.ptp(trace.z[2000:, 0]) > 1.9


def test_a_spectrum_is_the_sum_of_its_bristles():
    """Each of its columns and states is that of ``dahl`` with this bend."""
    rate, rng = 1000.0, np.random.default_rng(3)
    dq = np.cumsum(rng.normal(size=3000)) / 30.0
    signals = DriveSignals(np.cumsum(dq) / rate, dq)
    model = FRICTIONS["dahl-spectrum"]
    trace = model.follow(signals, rate, np.zeros(0))
    columns = model.columns(replace(signals, trace=trace), np.zeros(0))[:, 1:-1]
    assert columns.shape[1] == len(SPECTRUM)
    for k, delta in enumerate(SPECTRUM):
        alone = DAHL.follow(signals, rate, np.array([delta]))
        np.testing.assert_allclose(trace.z[:, k], alone.z[:, 0], atol=1e-12)
        np.testing.assert_allclose(columns[:, k], alone.z[:, 0], atol=1e-12)
        for one, many in (
            (DAHL.law, model.law),
            (DAHL.step, model.step),
            (DAHL.stored, model.stored),
        ):
            own = DAHL.table(one, replace(signals, trace=alone), np.array([delta]))[:, 0]
            row = model.table(many, replace(signals, trace=trace), np.zeros(0))[:, k]
            found = row[:, [VALUE, BY_SPEED, BY_STATE + k]]
            expected = own[:, [VALUE, BY_SPEED, BY_STATE]]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("v", [-2.0, -0.4, -0.1, 0.05, 0.3, 1.0])
def test_bristles_settle_on_the_stribeck_curve(v):
    shape = np.array([0.02, 0.4, 0.3])
    delta, rise, vs = shape
    signals = DriveSignals(v * np.arange(20000) / 500.0, np.full(20000, v))
    trace = LUGRE.follow(signals, 500.0, shape)
    columns = LUGRE.columns(replace(signals, trace=trace), shape)
    linear = np.array([2.0, 150.0, 2.0, 0.5])
    expected = 150.0 * delta * (1.0 + rise * np.exp(-((v / vs) ** 2))) * np.sign(v)
    np.testing.assert_allclose(columns[-1] @ linear, 2.0 * v + expected + 0.5, rtol=1e-9)


# ---- energy


@pytest.mark.parametrize("width", first([None, 0.1]))
@pytest.mark.parametrize("name", sorted({*FRICTIONS, *MODELS} - {"load-gain"}))
def test_friction_that_dissipates_is_passive(name, width):
    model = {**FRICTIONS, **MODELS}[name]
    linear = np.array([VALUES[each.symbol] for each in model.parameters])
    if name == "coulomb-viscous-asymmetric" and width is not None:
        # the smooth sign leaves half the difference of the directions at standstill
        with pytest.raises(InputError, match="gives energy away"):
            check_passive(model, linear, np.array(model.start), width=width)
        linear[2] = linear[1]
    check_passive(model, linear, np.array(model.start), width=width)


ACTIVE = {
    "negative viscosity": ("viscous", (-0.1,), ()),
    "negative Coulomb friction": ("coulomb-viscous", (0.1, -0.5, 0.0), ()),
    "one direction": ("coulomb-viscous-asymmetric", (0.1, 2.0, -0.5), ()),
    "an excess below zero": ("stribeck", (0.0, 1.0, 0.0, -1.5), (0.2,)),
    "bristles that push": ("dahl", (0.0, -1.0, 0.0), (0.02,)),
    # known of the model: passive up to db |v| = 4 kb delta g (Barabanov and Ortega 2000)
    "bristles too damped": ("lugre", (0.0, 150.0, 40.0, 0.0), (0.02, 0.4, 0.3)),
    "a load that helps": ("load", (0.0, 0.1, 0.0, -0.1), ()),
    "a load whatever the way": ("load-gain", (0.1, 1.0, 0.0, 0.1), ()),
}


@pytest.mark.parametrize("name", ACTIVE)
def test_friction_that_gives_energy_away_is_refused(name):
    model, linear, shape = ACTIVE[name]
    with pytest.raises(InputError, match=r"gives energy away: \S+ W at a speed of"):
        check_passive({**FRICTIONS, **MODELS}[model], np.array(linear), np.array(shape))


def test_what_a_spring_stores_comes_back():
    t = np.arange(2000) / 1000.0
    q = 0.3 * np.sin(2.0 * np.pi * t)
    speed = np.append(np.diff(q), 0.0) * 1000.0
    found = balance_energies(
        SPRING, np.array([8.0]), DriveSignals(q, speed), 1000.0, np.array([0.1])
    )
    assert np.abs(found.supplied).sum() > 1.0
    np.testing.assert_allclose(found.dissipated, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.supplied.sum(), 0.0, atol=1e-2)


# ---- identified


@pytest.mark.usefixtures("registered")
def test_linear_parameters_and_shape_of_a_log_are_found():
    """Variable projection over the shape, linear parameters eliminated, on exact rows."""
    robot = ROBOTS["chain"]
    for name, spread in (("stribeck", (0.6, 1.0, 1.6)), ("lugre", (0.7, 1.2, 0.8) * 3)):
        idim = build_idim(robot, name)
        q, dq, ddq = toy.motion(3, 3.0, 4, RATE)
        true = idim.shaped(np.array(spread) * np.array(idim.shape))
        base = base_parameters(idim)
        beta = base.matrix @ values(idim)
        tau = true.torque(values(idim), q, dq, ddq, conditions=follow_friction(true, q, dq, RATE))

        def fitted(shape, idim=idim, base=base, q=q, dq=dq, ddq=ddq, tau=tau):
            here = idim.shaped(shape)
            conditions = follow_friction(here, q, dq, RATE)
            X = here.regressor(q, dq, ddq, conditions)[:, :, base.kept].reshape(-1, base.count)
            found = np.linalg.lstsq(X, tau.ravel(), rcond=None)[0]
            return here, conditions, X, found

        def error(shape, fitted=fitted, tau=tau):
            *_, X, found = fitted(shape)
            return X @ found - tau.ravel()

        def slope(shape, fitted=fitted, base=base, q=q, dq=dq, ddq=ddq):
            here, conditions, X, found = fitted(shape)
            free = here.linearised(base.standard(found))
            moved = packed(free, q, dq, ddq, conditions)[:, :, free.plain :]
            J = moved.reshape(-1, len(here.shape))
            return J - X @ np.linalg.lstsq(X, J, rcond=None)[0]  # Kaufman's projection

        bounds = np.array([(s.bounds.lower, s.bounds.upper) for s in idim.shape_parameters]).T
        found = least_squares(error, idim.shape, slope, bounds, xtol=1e-14, x_scale=idim.shape)
        np.testing.assert_allclose(found.x, true.shape, rtol=1e-5)
        np.testing.assert_allclose(fitted(found.x)[-1], beta, rtol=1e-4, atol=1e-4)


# ---- in the rollout


def closed(robot, friction, reference, control=None, **options):
    """A loop under PD control, and the parameters of its robot."""
    idim = build_idim(robot, friction)
    options.setdefault("width", np.full(robot.n, 0.2))
    control = control or pd(120.0, 15.0, n=robot.n)
    return Loop(idim, control, reference, **options), values(idim)


def bristles(loop, theta):
    """Friction of every drive from its formulas, ``(q, dq, z) -> f, dz/dt``, z one a drive."""
    idim, named = loop.idim, dict(zip(loop.idim.names, theta, strict=True))
    named |= dict(zip((s.name for s in idim.shape_parameters), idim.shape, strict=True))
    turns = np.array([gear.turns for gear in idim.gears])
    marks = [f"{'m' * gear.coupled}{gear.number}" for gear in idim.gears]
    width = np.array([loop.width[gear.number - 1] for gear in idim.gears])

    @cache
    def value(symbol):
        return np.array([named.get(symbol + mark, 0.0) for mark in marks])

    fv, fc, off = value("fv"), value("fc"), value("off")

    def friction(q, dq, z):
        v = turns @ dq
        size, sign = v * np.tanh(v / width), np.tanh(v / width)
        if idim.friction == "dahl":
            rate = (v - size * z) / value("delta")
            f = fv * v + fc * z + off
        elif idim.friction == "lugre":
            g = value("delta") * (1.0 + value("rise") * np.exp(-((v / value("vs")) ** 2)))
            rate = v - size * z / g
            f = fv * v + value("kb") * z + value("db") * rate + off
        elif idim.friction == "spring":
            f, rate = value("k") * (turns @ q - value("rest")), 0.0 * z
        else:
            fall = np.exp(-((v / value("vs")) ** 2))
            f, rate = fv * v + (fc + value("fs") * fall) * sign + off, 0.0 * z
        return turns.T @ f, rate

    return friction, len(marks)


def simulated(loop, theta, tolerance=1e-11):
    """The same loop by an integrator of eighth order that chooses its steps; bristles too."""
    plant, control, n = Plant(loop, theta), loop.controller, loop.idim.robot.n
    friction, drives = bristles(loop, theta)
    asked = through(loop.reference)
    start = [loop.reference.q[0], loop.reference.dq[0]] if loop.q0 is None else [loop.q0, loop.dq0]
    y, out, held = np.concatenate([*start, np.zeros(drives)]), [], None

    def decided(t, q, dq):
        w = np.stack([*asked(t), q, dq], axis=1)
        return control.gain * output(control, np.zeros((n, 0)), w)

    def rate(t, y):
        q, dq, z = np.split(y, [n, 2 * n])
        f, change = friction(q, dq, z)
        tau = decided(t, q, dq) if held is None else held
        load = pin.nonLinearEffects(plant.model, plant.data, q, dq) + f
        return np.concatenate([dq, np.linalg.solve(plant.mass(q), tau - load), change])

    for k in range(loop.samples):
        t = k / loop.rate
        q, dq, _ = np.split(y, [n, 2 * n])
        tau = decided(t, q, dq)
        held = None if control.rate is None else tau
        out.append(np.concatenate([q, dq, tau]))
        span = (t, t + 1.0 / loop.rate)
        whole = 0.999999 / loop.rate  # no longer than the span, whatever its ends round to
        y = solve_ivp(rate, span, y, "DOP853", rtol=tolerance, atol=tolerance, first_step=whole).y[
            :, -1
        ]
    return np.split(np.array(out), 3, axis=1)


def errors(motion, truth):
    pairs = zip((motion.q, motion.dq, motion.tau), truth, strict=True)
    return np.array([np.linalg.norm(ours - theirs) for ours, theirs in pairs])


@pytest.mark.long
@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("robot", ["chain", "coupled"])
@pytest.mark.parametrize("name", ["stribeck", "spring"])
def test_friction_of_an_instant_is_what_another_integrator_finds(name, robot):
    loop, theta = closed(
        ROBOTS[robot], name, wave(3, 0.12), integrator="ode4", substeps=8,
    )  # fmt: skip
    motion, truth = rollout(loop, theta), simulated(loop, theta)
    for ours, theirs in zip((motion.q, motion.dq, motion.tau), truth, strict=True):
        assert relative(ours, theirs) < 1e-8


@cache
def split_off(name, start, sampled):
    """A loop at 100 Hz, its parameters, and its motion by a method of high order."""
    rate = 100.0
    asked = wave(3, 0.3, rate)
    control = pd(120.0, 15.0, n=3, rate=rate if sampled else None)
    options = {} if start == "moving" else {"q0": asked.q[0], "dq0": np.zeros(3)}
    loop, theta = closed(ROBOTS["coupled"], name, asked, control, width=np.ones(3), **options)
    return loop, theta, simulated(loop, theta, 1e-12)


ORDERS = {"ode1": 1, "ode2": 2, "ode3": 2, "ode4": 2, "ode5": 2, "sdirk2": 2}


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("integrator", [k for k, v in INTEGRATORS.items() if v.error is None])
@pytest.mark.parametrize("start", first(["moving", "at rest"]))
@pytest.mark.parametrize("name", ["dahl", "lugre"])
def test_friction_that_remembers_is_split_off_with_second_order(name, start, integrator):
    """States and robot take turns (Strang's splitting): no better than the square of the step."""
    loop, theta, truth = split_off(name, start, INTEGRATORS[integrator].implicit)
    few = 32 if integrator == "ode1" else 16
    coarse, fine = (
        errors(rollout(replace(loop, integrator=integrator, substeps=substeps), theta), truth)
        for substeps in (few, 2 * few)
    )
    np.testing.assert_allclose(np.log2(coarse / fine), ORDERS[integrator], atol=0.2)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("clock", [{}, {"rate": 500.0}, {"rate": 250.0, "delay": 0.004}])
@pytest.mark.parametrize("robot", ["chain", "coupled"])
@pytest.mark.parametrize("name", ["stribeck", "spring", *BRISTLES])
def test_recorded_torques_are_those_of_the_inverse_model(name, robot, clock):
    """The very states that the rollout had, followed along its motion."""
    control = pd(120.0, 15.0, n=3, **clock)
    loop, theta = closed(ROBOTS[robot], name, wave(3, 0.6), control)
    motion = rollout(loop, theta)
    conditions = follow_friction(loop.idim, motion.q, motion.dq, loop.rate, loop.width)
    found = loop.idim.torque(theta, motion.q, motion.dq, motion.ddq, loop.width, conditions)
    np.testing.assert_allclose(found, motion.tau, atol=1e-9 * np.abs(motion.tau).max())


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", BRISTLES)
def test_rollouts_with_memory_in_stretches_are_those_in_one_piece(name, monkeypatch):
    loop, theta = closed(ROBOTS["coupled"], name, wave(3, 0.6), substeps=2)
    chosen = [4, len(theta) - 1, len(theta)][: 2 + bool(loop.idim.shape)]
    (whole,) = sensitive_rollout(loop, theta, chosen)
    monkeypatch.setattr("dynident.simulation.rollout.STRETCH", 64)
    parts = list(sensitive_rollout(loop, theta, chosen))
    assert len(parts) == 5
    for label in ("q", "ddq"):
        joined = np.concatenate([getattr(part.motion, label) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole.motion, label))
    np.testing.assert_array_equal(np.concatenate([p.by_ddq for p in parts]), whole.by_ddq)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", ["stribeck", "spring", *BRISTLES])
def test_elements_are_friction_of_the_model_by_another_way(name):
    """What a model has as friction, another has as elements; and two halves are a whole."""
    loop, theta = closed(ROBOTS["chain"], name, wave(3))
    motion = rollout(loop, theta)
    plain = build_idim(ROBOTS["chain"], "none", rotor=True)
    named = dict(zip(loop.idim.names, theta, strict=True))
    bare = np.array([named[each] for each in plain.names])
    whole = [
        Element(f.gear, f.model, tuple(linear), loop.idim.shape[f.shape])
        for f, linear in zip(loop.idim.frictions, loop.idim.linear(theta), strict=True)
    ]
    halves = [replace(e, linear=tuple(0.5 * x for x in e.linear)) for e in whole for _ in range(2)]
    for elements in (whole, halves, halves[::-1]):
        other = rollout(replace(loop, idim=plain, elements=tuple(elements)), bare)
        np.testing.assert_allclose(other.q, motion.q, atol=1e-11)
        np.testing.assert_allclose(other.tau, motion.tau, atol=1e-8)


def test_a_spring_makes_a_pendulum_of_a_turntable():
    """One joint about the vertical: ``q = A cos(w t)`` with ``w^2 = k / I``."""
    idim = build_idim(toy.arm(1), "none", rotor=True)
    theta = values(idim)
    named = dict(zip(idim.names, theta, strict=True))
    inertia, k = named["Izz1"] + named["Ia1"], 12.0
    spring = (Element(0, SPRING, (k / 3.0,), (0.3,)), Element(0, SPRING, (2.0 * k / 3.0,)))
    t = np.arange(1000) / 500.0
    still = Reference(500.0, *np.zeros((3, len(t), 1)))
    start = {"q0": np.array([0.5]), "dq0": np.zeros(1)}
    loop = Loop(idim, p(0.0), still, integrator="ode4", elements=spring, **start)
    middle = 0.1  # of the two springs' rests, weighed by their stiffness
    expected = middle + (0.5 - middle) * np.cos(np.sqrt(k / inertia) * t)
    np.testing.assert_allclose(rollout(loop, theta).q[:, 0], expected, atol=1e-7)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", ["stribeck", *BRISTLES])
def test_a_robot_that_is_let_go_loses_energy_to_its_friction(name):
    """Kinetic, potential and stored energy together never rise."""
    robot = ROBOTS["coupled"]
    start = {"q0": np.array([0.3, -0.4, 0.5]), "dq0": np.array([2.0, -1.0, 3.0])}
    asked = Reference(2000.0, *np.zeros((3, 4000, 3)))
    loop, theta = closed(robot, name, asked, p(0.0, n=3), integrator="ode4", **start)
    idim = loop.idim
    theta[[k for k, each in enumerate(idim.names) if each.startswith("off")]] = 0.0
    motion, plant = rollout(loop, theta), Plant(loop, theta)
    conditions = follow_friction(idim, motion.q, motion.dq, loop.rate, loop.width)
    energy = np.array(
        [
            0.5 * dq @ plant.mass(q) @ dq + pin.computePotentialEnergy(plant.model, plant.data, q)
            for q, dq in zip(motion.q, motion.dq, strict=True)
        ]
    )
    for k, linear in enumerate(idim.linear(theta)):
        signals = view_friction(idim, motion.q, motion.dq, loop.width, conditions)(k)
        shape = np.array(idim.shape[idim.frictions[k].shape])
        energy += idim.frictions[k].model.energy(signals, shape) @ linear
    assert energy[0] - energy[-1] > 1.0
    # states stand in the middle of their periods
    assert np.diff(energy).max() < 2e-3 * np.abs(np.diff(energy)).max()


@pytest.mark.usefixtures("registered")
def test_bristles_that_are_too_stiff_for_the_step_are_refused():
    """A bristle is a spring: leapfrog's limit is two radians a step."""
    idim = build_idim(toy.arm(1), "lugre")
    theta, names = values(idim), list(idim.names)
    theta[[names.index(name) for name in ("fv1", "db1", "off1")]] = 0.0
    inertia = theta[names.index("Izz1")] + theta[names.index("Ia1")]
    asked = Reference(500.0, *np.zeros((3, 500, 1)))
    for share, integrator in ((0.98, "ode4"), (0.5, "ode2"), (1.02, "ode4")):
        theta[names.index("kb1")] = inertia * (2.0 * share * 500.0) ** 2
        start = {"q0": np.zeros(1), "dq0": np.full(1, 1e-6)}
        loop = Loop(idim, p(0.0, rate=500.0), asked, integrator, width=np.ones(1), **start)
        speed = np.abs(rollout(loop, theta).dq).max()
        if share < 1.0:
            check_integration(loop, theta)
            assert speed < 1e-4
        else:
            assert speed > 1e-2
            with pytest.raises(
                InputError, match=r"joint_1 is too stiff for ode4 at steps of 0\.00"
            ):
                check_integration(loop, theta)


@pytest.mark.usefixtures("registered")
def test_a_log_gives_its_friction_back_by_weighted_least_squares():
    """Rows, filters and decimation of a nonlinear model at its shape are those of any other."""
    robot = ROBOTS["coupled"]
    idim = build_idim(robot, "stribeck")
    q, dq, ddq = toy.motion(3, 12.0, 0)
    theta = values(idim)
    noise = np.random.default_rng(1).normal(size=q.shape) * 0.5
    for scatter, bound in ((0.0, 1e-4), (noise, 0.1)):
        tau = idim.torque(theta, q, dq, ddq) + scatter
        log = Recording("toy log", toy.RATE, q, tau, dq=dq, ddq=ddq)
        problem = Problem(robot, prepare(log, bandwidth=40.0), "stribeck")
        estimate, truth = ESTIMATORS["wls"](problem), problem.base.matrix @ theta
        assert {"fs1", "fs2", "fs3", "fsm3"} <= set(problem.base.names)
        np.testing.assert_allclose(estimate.beta, truth, atol=bound)
    assert np.abs((estimate.beta - truth) / estimate.covariance.std).max() < 5.0
