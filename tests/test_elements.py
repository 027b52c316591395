"""What else acts on a joint: springs, gas springs and ripple, and friction joint by joint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest
import toy
from differences import assert_slope
from linkage_logs import plan_motion
from linkages import load_linkage

import dynident as di
from dynident.consistency.constraints import Fixed
from dynident.control.controller import pd
from dynident.control.reference import fourier
from dynident.core.errors import InputError
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import JointElements
from dynident.friction.elements import (
    ELEMENTS,
    counterweight,
    gas_spring,
    known,
    linkage,
    number_symbols,
    ripple,
    spring,
)
from dynident.friction.kernel import BY_POSITION
from dynident.friction.model import DriveSignals
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.elements import build_elements
from dynident.regression.problem import Problem
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout
from dynident.study.study import build_study_idim, load_study_robot, read_study

RATE = 500.0


def assert_within_errors(fit, theta):
    """Base parameters are those of the truth, to about their standard deviations."""
    away = (fit.estimate.beta - fit.base.matrix @ theta) / fit.estimate.covariance.std
    assert np.sqrt(np.mean(away**2)) < 1.6


def test_a_gas_spring_pulls_as_its_geometry_says():
    """The formula of the KR300's authors: pressure times area times lever."""
    D, k, A, V, nRT = 0.8, 0.2, np.pi * (0.055**2 - 0.03**2) / 4, 2 * 0.00048, 15634.0
    model = gas_spring(D, k, np.deg2rad(5.0), V / A)
    q = np.linspace(-1.5, 1.5, 31)
    d = q + np.deg2rad(5.0)
    L = np.sqrt(D**2 + k**2 - 2 * D * k * np.cos(d))
    expected = np.sin(d) * D * k / L * A * nRT / (V - (L - (D - k)) * A)
    force = A * nRT / V
    found = model.columns(DriveSignals(q, np.zeros(31)), np.array(model.start))[:, 0] * force
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    fine = np.linspace(-1.5, 1.5, 3001)
    energy = model.energy(DriveSignals(fine, np.zeros(3001)), np.array(model.start))[:, 0]
    slope = np.gradient(energy, fine)[1:-1]
    pull = model.columns(DriveSignals(fine, np.zeros(3001)), np.array(model.start))[1:-1, 0]
    np.testing.assert_allclose(slope, pull, atol=1e-5)


FOUR_BARS = (0.5, 0.2, 0.6, 0.4)
CONSERVATIVE = {
    "spring": spring(),
    "ripple": ripple(3.0),
    "gas spring": gas_spring(0.8, 0.2, 0.1, 0.575),
    "counterweight": counterweight(0.7),
    "linkage": linkage(*FOUR_BARS, 0.3, 0.4),
    "other side": linkage(*FOUR_BARS, 0.3, 0.4, -1.0),
}


@pytest.mark.parametrize("model", CONSERVATIVE.values(), ids=CONSERVATIVE)
def test_torques_are_slopes_of_the_energy_and_have_the_slopes_they_say(model):
    q, shape = np.linspace(-2.0, 2.0, 41), np.array(model.start)

    def assert_slopes(of, column, slope):
        assert_slope(
            lambda t: of(DriveSignals(q + t, np.zeros(41)), shape)[:, column],
            slope,
            1e-4,
            scale=max(1.0, np.abs(slope).max()),  # a slope may be nothing
        )

    table = model.table(model.law, DriveSignals(q, np.zeros(41)), shape)
    for k in range(len(model.parameters)):
        pull = model.columns(DriveSignals(q, np.zeros(41)), shape)[:, k]
        assert_slopes(model.energy, k, pull)
        assert_slopes(model.columns, k, table[:, k, BY_POSITION])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gas_spring(0.1, 0.2, 0.0, 1.0), "base has to be farther"),
        (lambda: gas_spring(0.8, -0.2, 0.0, 1.0), "crank has to be positive"),
        (lambda: gas_spring(0.8, 0.2, 0.0, 0.3), "used up"),
        (lambda: gas_spring(1e308, 0.2, 0.0, 1.0), r"base is 1e\+308; 1e\+09 at most"),
        (lambda: counterweight(np.nan), "angle is nan"),
        (
            lambda: JointElements(1, spring(), over=0, ratio=1e308),
            r"ratio is 1e\+308; 1e\+09 at most",
        ),
        (lambda: ripple(0.0), "order has to be"),
        (lambda: linkage(0.5, -0.2, 0.6, 0.4, 0.0), "crank has to be positive"),
        (lambda: linkage(0.5, 0.2, 0.3, 0.3, 0.0), "do not meet at every angle"),
        (lambda: linkage(0.5, 0.2, 0.9, 0.4, 0.0), "do not meet at every angle"),
        (lambda: linkage(*FOUR_BARS, 0.0, side=0.5), "side has to be 1 or -1"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_bars_of_a_linkage_meet(side):
    """The rocker's angle from its energy, and the coupler's length that it leaves."""
    base, crank, coupler, rocker = FOUR_BARS
    q = np.linspace(-np.pi, np.pi, 101)
    signals = DriveSignals(q, np.zeros(101))
    sines, cosines = (
        model.energy(signals, np.array(model.start))[:, 0]
        for model in (linkage(*FOUR_BARS, 0.3, lean, side) for lean in (0.0, 0.5 * np.pi))
    )
    end = np.column_stack([base + rocker * cosines, rocker * sines])
    pin = crank * np.column_stack([np.cos(q + 0.3), np.sin(q + 0.3)])
    np.testing.assert_allclose(np.linalg.norm(end - pin, axis=1), coupler, rtol=1e-12)
    to_pin, to_end = pin - [base, 0.0], end - [base, 0.0]
    turned = to_pin[:, 0] * to_end[:, 1] - to_pin[:, 1] * to_end[:, 0]
    assert np.all(np.sign(turned) == -side)


def log_with(robot, elements, friction, values, noise=0.01):
    """A log of a robot with elements, its model and full set."""
    idim = build_idim(robot, friction, elements=elements)
    named = {**{p.name: 0.5 + 0.1 * p.number for p in idim.drives}, **values}
    theta = idim.join(robot.nominal, np.array([named[p.name] for p in idim.drives]))
    q, dq, ddq = toy.motion(robot.n, 20.0, 3, RATE)
    pulls = 3.0 * toy.motion(robot.n, 20.0, 7, RATE)[0]
    conditions = Conditions(known=pulls[:, [gear.number - 1 for gear in idim.gears]])
    tau = idim.torque(theta, q, dq, ddq, conditions=conditions)
    tau = tau + noise * tau.std(axis=0) * np.random.default_rng(1).normal(size=tau.shape)
    return prepare(Recording("log", RATE, q, tau, known=pulls), bandwidth=40.0), theta


def test_elements_are_identified_with_all_else():
    robot = toy.arm(3)
    elements = (JointElements(1, spring()), JointElements(2, gas_spring(0.8, 0.2, 0.3, 0.6)))
    elements += (JointElements(0, ripple(6.0)),)
    known = {"ks2": 20.0, "ps2": 4.0, "fg3": 150.0, "rs1": 1.5, "rc1": -0.8}
    samples, theta = log_with(robot, elements, "coulomb-viscous", known)
    problem = Problem(robot, samples, elements=elements)
    assert not problem.idim.nonlinear
    fit = di.identify(problem, "wls", doctor=False)
    assert_within_errors(fit, theta)
    # a preload and an offset are one
    assert any(name == "off2R" and "ps2" in r for name, r in
               zip(fit.base.names, fit.base.regroupings, strict=True))  # fmt: skip
    without = di.identify(Problem(robot, samples), "wls", doctor=False)
    share = fit.identification[0].overall_percent / without.identification[0].overall_percent
    assert share < 0.5
    assert not [warning for warning in fit.warnings if "energy" in warning]


def test_weights_linkages_and_known_torques_are_identified_with_all_else():
    robot = toy.arm(3)
    elements = (
        JointElements(0, counterweight(0.5)),
        JointElements(1, linkage(*FOUR_BARS, 0.3, 0.4)),
        JointElements(2, known()),
    )
    truth = {"cw1": 12.0, "wr2": 9.0, "kt3": -1.3}
    samples, theta = log_with(robot, elements, "coulomb-viscous", truth)
    problem = Problem(robot, samples, elements=elements)
    fit = di.identify(problem, "wls", validation=[samples])
    assert_within_errors(fit, theta)
    std = dict(zip(fit.base.names, fit.estimate.covariance.std, strict=True))
    for name, value in truth.items():
        assert std[name] < 0.05 * abs(value)
    assert fit.validation[0].entries[1].overall_percent < 1.5
    assert fit.findings == ()
    # a known factor is a constraint
    held = di.identify(problem, constraints=[Fixed("kt3", -1.3)], doctor=False, bootstrap=0)
    assert held.theta[fit.idim.names.index("kt3")] == pytest.approx(-1.3, abs=1e-6)


def test_a_log_without_the_known_torque_is_refused():
    robot = toy.arm(2)
    samples = prepare(toy.log(robot, seconds=5.0)[0], bandwidth=10.0)
    with pytest.raises(InputError, match="needs known torques; name them in"):
        Problem(robot, samples, elements=[JointElements(0, known())])


def test_known_torques_of_driven_joints_alone_are_said_to_be_zero_elsewhere(tmp_path):
    """A log of the drives of a closed chain, and an element on a joint without one."""
    robot = load_linkage("five_bar.xml", tmp_path)
    _, motion = plan_motion(robot, 2.0, 100.0, 2)
    driven = [robot.joint_names[k] for k in robot.driven]
    passive = next(k for k in range(robot.n) if robot.passive[k])
    columns = {f"q_{robot.joint_names[k]}": motion[0][:, k] for k in range(robot.n)}
    columns |= {f"{s}_{name}": columns[f"q_{name}"] for s in ("tau", "known") for name in driven}
    own = {f"q_{name}": columns[f"q_{name}"] for name in driven}
    alone = {key: value for key, value in columns.items() if key[:2] != "q_"} | own
    words = f"log: has no known_{robot.joint_names[passive]}, or zeros there"
    elements = [JointElements(robot.driven[0], known()), JointElements(passive, known())]

    def warn(columns, elements):
        log = di.read_log(pandas.DataFrame(columns), robot, rate=100.0, name="log")
        told = Problem(robot, prepare(log, bandwidth=5.0), elements=elements).warnings
        return [each for each in told if "known" in each]

    assert [each[: len(words)] for each in warn(alone, elements)] == [words]
    assert warn(alone, elements[:1]) == []
    whole = columns | {f"known_{name}": columns[f"q_{name}"] for name in robot.joint_names}
    assert warn(whole | {f"tau_{name}": 0.0 for name in robot.joint_names}, elements) == []


@pytest.mark.parametrize("coupled", [False, True])
def test_a_cable_over_two_joints_pulls_on_both(coupled):
    robot = toy.arm(3, coupled=coupled)
    elements = (JointElements(0, spring(), over=2, ratio=-0.5), JointElements(1, spring()))
    truth = {"ks1": 20.0, "ps1": 3.0, "ks2": 15.0, "ps2": 1.0}
    samples, theta = log_with(robot, elements, "coulomb-viscous", truth)
    idim = build_idim(robot, elements=elements)
    q, zero = samples.q[:50], np.zeros((50, 3))
    plain = build_idim(robot)
    bare = plain.join(robot.nominal, np.zeros(len(plain.drives)))
    with_cable = idim.join(robot.nominal, np.zeros(len(idim.drives)))
    with_cable[idim.names.index("ks1")] = 20.0
    pull = idim.torque(with_cable, q, zero, zero) - plain.torque(bare, q, zero, zero)
    stretched = 20.0 * (q[:, 0] - 0.5 * q[:, 2])
    expected = np.column_stack([stretched, 0.0 * stretched, -0.5 * stretched])
    np.testing.assert_allclose(pull, expected, atol=1e-9)
    fit = di.identify(Problem(robot, samples, elements=elements), "wls", doctor=False)
    assert_within_errors(fit, theta)
    assert "ks1" in fit.base.names
    assert not any(name.startswith("Ia") and name[2:] not in "123" for name in fit.base.names
                   if not name.startswith("Iam") and not name.endswith("R"))  # fmt: skip
    with pytest.raises(InputError, match="over joints 1 and 1; it needs two of 3"):
        build_idim(robot, elements=[JointElements(0, spring(), over=0)])


def test_a_ratio_that_is_not_known_follows_from_three_springs():
    robot, stiffness, ratio = toy.arm(3), 20.0, -0.5
    cable = (JointElements(0, spring(), over=2, ratio=ratio),)
    samples, _ = log_with(robot, cable, "coulomb-viscous", {"ks1": stiffness, "ps1": 3.0})
    both = JointElements(0, number_symbols(spring(), 1), over=2)
    elements = (JointElements(0, spring()), JointElements(2, spring()), both)
    fit = di.identify(Problem(robot, samples, elements=elements), "wls", doctor=False)
    names = list(fit.base.names)
    places = [names.index(name) for name in ("ks1", "ks3", "ksb1")]
    first, second, shared = fit.estimate.beta[places]
    # k (q1 + r q3)^2 / 2 as the springs' ks1 q1^2 / 2 + ks3 q3^2 / 2 + ksb1 (q1 + q3)^2 / 2
    combined = [first + shared, shared, second + shared]
    rows = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    covariance = rows @ fit.estimate.covariance.matrix[np.ix_(places, places)] @ rows.T
    away = combined - stiffness * np.array([1.0, ratio, ratio**2])
    assert np.all(np.abs(away) < 4.0 * np.sqrt(np.diag(covariance)))
    assert shared / (first + shared) == pytest.approx(ratio, rel=0.1)


def test_a_cable_is_simulated_as_it_pulls():
    """The forward dynamics with a cable has the torques of the linear model."""
    robot = toy.arm(2)
    elements = (JointElements(0, spring(), over=1, ratio=2.0),)
    idim = build_idim(robot, "viscous", elements=elements)
    named = {"Ia1": 0.5, "Ia2": 0.4, "fv1": 2.0, "fv2": 1.0, "ks1": 30.0, "ps1": 0.0}
    theta = idim.join(robot.nominal, np.array([named[p.name] for p in idim.drives]))
    waves = 0.4 * np.random.default_rng(0).normal(size=(2, 2, 3))
    reference = fourier(RATE, 4.0, 0.25, [0.0, 0.0], *waves)
    motion = rollout(Loop(idim, pd(300.0, 30.0, n=2, rate=RATE), reference, "ode4"), theta)
    back = idim.torque(theta, motion.q, motion.dq, motion.ddq)
    np.testing.assert_allclose(back, motion.tau, atol=1e-6 * np.abs(motion.tau).max())


def test_facts_of_elements_stay_beside_shapes_of_friction():
    robot = toy.arm(2)
    elements = (JointElements(1, gas_spring(0.8, 0.2, 0.3, 0.6)), JointElements(0, ripple(6.0)))
    known = {"fg2": 150.0, "rs1": 1.5, "rc1": -0.8}
    samples, theta = log_with(robot, elements, "stribeck", known)
    fit = di.identify(Problem(robot, samples, "stribeck", elements=elements), "wls", doctor=False)
    assert_within_errors(fit, theta)
    shape = dict(zip(fit.estimate.shape.names, fit.estimate.shape.values, strict=True))
    assert {shape[name] for name in ("base2", "crank2", "order1")} == {0.8, 0.2, 6.0}
    assert not [warning for warning in fit.warnings if "is known" in warning]


def test_friction_may_differ_joint_by_joint():
    robot = toy.arm(3)
    friction = "viscous, coulomb-viscous-symmetric, cube-root"
    idim = build_idim(robot, friction)
    assert [p.name for p in idim.drives] == [
        "Ia1", "fv1", "Ia2", "fv2", "fc2", "Ia3", "fv3", "fc3", "off3", "fr3",
    ]  # fmt: skip
    samples, theta = log_with(robot, (), friction, {})
    fit = di.identify(Problem(robot, samples, friction), "wls", doctor=False)
    assert_within_errors(fit, theta)
    with pytest.raises(InputError, match="2 friction models for 3 joints"):
        build_idim(robot, "viscous,viscous")
    with pytest.raises(InputError, match="friction 'viscus' is not known; did you mean"):
        build_idim(robot, "viscous,viscus,none")


STUDY = """[robot]
file = "arm.urdf"
friction = ["viscous", "coulomb-viscous"]

[[log]]
files = "run1.csv"
"""
ELEMENT = """
[[element]]
joint = "elbow"
kind = "spring"

[[element]]
joint = "elbow"
kind = "ripple"
order = 4.0

[[element]]
joint = "elbow"
kind = "ripple"
order = 9.0
"""


@pytest.fixture
def study(tmp_path):
    files = Path(__file__).resolve().parents[1] / "docs" / "files"
    (tmp_path / "arm.urdf").write_bytes((files / "arm.urdf").read_bytes())

    def write(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return path

    return write


def test_a_study_has_elements_and_friction_joint_by_joint(study):
    found = read_study(study(STUDY + ELEMENT))
    idim = build_study_idim(found, load_study_robot(found))
    names = [p.name for p in idim.drives]
    assert names[:2] == ["Ia1", "fv1"]
    assert names[-6:] == ["ks2", "ps2", "rs2", "rc2", "rsb2", "rcb2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('\n[[element]]\njoint = "elbow"\nkind = "sprung"\n', "'sprung' is not known.*'spring'"),
        ('\n[[element]]\njoint = "elbov"\nkind = "spring"\n', "element.1..joint 'elbov' .*'elbow'"),
        ('\n[[element]]\njoint = "elbow"\nkind = "ripple"\n', r"\[\[element\]\] ripple needs 'ord"),
        (
            '\n[[element]]\njoint = "elbow"\nkind = "spring"\norder = 2.0\n',
            "spring has no 'order'",
        ),
        (
            '\n[[element]]\njoint = "elbow"\nkind = "spring"\nover = "elbow"\n',
            "element.1..over is the joint itself",
        ),
        (
            '\n[[element]]\njoint = "elbow"\nkind = "spring"\nover = "hand"\n',
            "element.1..over 'hand' is not known",
        ),
        (
            '\n[[element]]\njoint = "elbow"\nkind = "spring"\nratio = 2.0\n',
            "element.1..ratio needs an element over another joint",
        ),
        (
            '\n[[element]]\njoint = "elbow"\nkind = "ripple"\norder = -1.0\n',
            "element.1.: ripple: order has to be",
        ),
    ],
)
def test_elements_that_cannot_be_are_refused_by_their_number(study, text, words):
    path = study(STUDY + text)

    def built():
        found = read_study(path)
        return build_elements(found.element, load_study_robot(found))

    with pytest.raises(InputError, match=words):
        built()


def test_every_element_is_in_this_file():
    assert set(ELEMENTS) == {
        "spring", "gas-spring", "ripple", "counterweight", "linkage", "known",
    }  # fmt: skip


def test_the_gas_spring_of_a_kr300_is_found(measured):
    """Held out on B, moving samples: at most 5.1 %, and worse than 9 % without the spring."""
    robot = di.load_robot(measured("kr300/kr300.toml"))
    A, B = (
        prepare(di.read_log(path, robot).rows(450, 2051), bandwidth=5.0)
        for path in (measured("kr300/kr300_A.csv"), measured("kr300/kr300_B.csv"))
    )
    element = JointElements(1, gas_spring(0.8, 0.2, np.deg2rad(5.0), 0.575))
    fits = [
        di.identify(Problem(robot, A, elements=elements), validation=[B], doctor=False, bootstrap=0)
        for elements in ((element,), ())
    ]
    held_out = [fit.validation[0].entries[1].overall_percent for fit in fits]
    assert held_out[0] < 5.1
    assert held_out[1] > 9.0
    force = dict(zip(fits[0].idim.names, fits[0].theta, strict=True))["fg2"]
    assert force == pytest.approx(27180.0, rel=0.1)
