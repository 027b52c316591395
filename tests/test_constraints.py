"""What each constraint admits and refuses, and that a fit keeps to it."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pytest
import robots
import toy
from commands import ask
from scipy.spatial.transform import Rotation
from toy import setup

from dynident.cli import run
from dynident.conic.cones import (
    NonnegativeCone,
    SemidefiniteCone,
    ZeroCone,
    list_constraint_names,
    measure_cone_violation,
)
from dynident.consistency.constraints import (
    CONSISTENCY,
    CONSTRAINTS,
    BasePositive,
    Bounds,
    Box,
    EqualLinks,
    Fixed,
    Hull,
    LinkMass,
    MassInertia,
    Payload,
    PositiveDrives,
    PseudoInertia,
    Symmetric,
    TotalMass,
    serialise_constraint,
)
from dynident.consistency.constraints.consistency import (
    FLOOR,
    SPATIAL_INERTIA_BASIS,
    is_never_negative,
)
from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.space import (
    LENGTH,
    build_base_space,
    build_standard_space,
    list_body_indices,
)
from dynident.consistency.symmetries import find_symmetries
from dynident.core.errors import InfeasibleError, InputError
from dynident.core.inertia import (
    from_com,
    to_com,
    to_inertial_parameters,
    to_pseudo_inertia,
    transform_body,
)
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.robot.drives import Drives
from dynident.robot.model import Joint, Robot

EXACT = 1e-9
"""Scaled violation that is rounding."""


def spaces(robot, **options):
    """Scaled standard and base parameters of a robot, and its true ones."""
    base, system, theta = setup(robot, **options)
    return (
        build_standard_space(base, system.A, system.b),
        build_base_space(base, system.A, system.b),
        theta,
    )


def missed(constraint, space, theta):
    """Largest violation by physical values, in scaled units."""
    return beyond(constraint.cones(space), space, theta)


def beyond(cones, space, theta):
    """The same of cones."""
    values = theta if space.standard else space.base.matrix @ theta
    return max((measure_cone_violation(c, values / space.unit) for c in cones), default=0.0)


def fitted(robot, constraints=(), theta=None, noise=0.01, friction="coulomb-viscous", **known):
    """Constrained estimate of a robot from rows, without a prior unless asked for."""
    base, system, _ = setup(robot, theta, noise, friction)
    knowledge = Knowledge(**{"prior": "none", "constraints": tuple(constraints), **known})
    return build_feasible_set(base, system, knowledge).solve(system)


def bodies_of(theta, count):
    return theta[: 10 * count].reshape(-1, 10)


ARM = toy.arm(3)
IDIM = build_idim(ARM)
STANDARD, BASE, TRUTH = spaces(ARM)
VALUE = dict(zip(IDIM.names, TRUTH, strict=True))
MASSES = ARM.nominal[:, 0]

# Space


def test_rows_of_parameters_by_their_names():
    x = TRUTH / STANDARD.unit
    np.testing.assert_allclose(STANDARD.value(x), TRUTH)
    beta = STANDARD.base.matrix @ TRUTH
    np.testing.assert_allclose(STANDARD.matrix @ x, beta)
    for name, value in VALUE.items():
        assert STANDARD.row(name) @ x == pytest.approx(value)
    for name, value in zip(STANDARD.base.names, beta, strict=True):
        assert STANDARD.row(name) @ x == pytest.approx(value)
        assert BASE.row(name) @ (beta / BASE.unit) == pytest.approx(value)
    assert any(name.endswith("R") for name in BASE.base.names)


def test_rows_of_bodies_and_their_units():
    x = TRUTH / STANDARD.unit
    for k, link in enumerate(ARM.links):
        assert STANDARD.link(link) == k
        np.testing.assert_allclose(STANDARD.body(k) @ x, ARM.nominal[k], atol=1e-15)
        assert STANDARD.mass(k) == MASSES[k]
        # scaled, a body is of order one
        assert np.abs(x[10 * k : 10 * k + 10]).max() < 10.0
    assert list_body_indices(STANDARD, "all") == [0, 1, 2]
    assert list_body_indices(STANDARD, "link_2") == [1]
    assert list_body_indices(STANDARD, ("link_3", "link_1")) == [2, 0]


def test_without_inertials_in_the_file_masses_count_in_kilograms():
    space, _, _ = spaces(toy.arm(2, nominal=False), theta=setup(toy.arm(2))[2])
    assert [space.mass(k) for k in range(2)] == [1.0, 1.0]
    assert np.all(space.unit > 0.0)


def test_a_drive_that_never_moves_has_the_unit_of_the_others():
    base, system, _ = setup(ARM)
    A = system.A.copy()
    still = [k for k, name in enumerate(base.names) if name.startswith("fv3")]
    A[:, still] = 0.0
    space = build_standard_space(base, A, system.b)
    units = dict(zip(space.idim.names, space.unit, strict=True))
    assert units["fv3"] == min(units["fv1"], units["fv2"])


def test_a_parameter_that_is_regrouped_is_no_base_parameter():
    with pytest.raises(InputError, match="not a parameter"):
        BASE.row("m3")


def test_base_parameters_have_no_links():
    with pytest.raises(InputError, match="base parameters have no links"):
        BASE.link("link_1")
    for constraint in (
        LinkMass("all", value=1.0), TotalMass(1.0), EqualLinks(("link_1", "link_2")),
        Symmetric("link_1", "link_2"), Payload("link_3", 1.0),
    ):  # fmt: skip
        with pytest.raises(InputError, match="base parameters have no links"):
            constraint.cones(BASE)


# Consistency


def point_masses(seed, count=6):
    """Masses and places of points: a body of them is consistent by construction."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 1.0, count), rng.normal(scale=0.1, size=(count, 3))


def body_of_points(masses, places):
    h = masses @ places
    turned = [m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, places, strict=True)]
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = np.sum(turned, axis=0)
    return np.array([masses.sum(), *h, xx, xy, yy, xz, yz, zz])


def with_body(theta, k, phi):
    out = theta.copy()
    out[10 * k : 10 * k + 10] = phi
    return out


def test_pseudo_inertia_is_the_second_moment_of_points():
    cones = PseudoInertia().cones(STANDARD)
    assert [cone.name for cone in cones] == [f"pseudo-inertia {link}" for link in ARM.links]
    for seed in range(5):
        masses, places = point_masses(seed)
        phi = body_of_points(masses, places)
        x = with_body(TRUTH, 1, phi) / STANDARD.unit
        scale = np.array([1.0 / LENGTH] * 3 + [1.0]) / np.sqrt(MASSES[1])
        points = np.column_stack([places, np.ones(len(places))]) * scale
        moment = (points.T * masses) @ points
        np.testing.assert_allclose(cones[1].matrix(x) + FLOOR * np.eye(4), moment, atol=1e-12)
    assert missed(PseudoInertia(), STANDARD, TRUTH) == 0.0


def test_spatial_inertia_has_the_kinetic_energy_of_points():
    masses, places = point_masses(3)
    matrix = np.tensordot(body_of_points(masses, places), SPATIAL_INERTIA_BASIS, axes=1)
    rng = np.random.default_rng(0)
    for angular, linear in rng.normal(size=(4, 2, 3)):
        twist = np.concatenate([angular, -linear])  # the literature's sign of S(h)
        speeds = linear + np.cross(angular, places)
        assert twist @ matrix @ twist == pytest.approx(masses @ np.sum(speeds**2, axis=1))


# two moments of inertia are 0.01 and the third 0.03: more than their sum
THIN = from_com(2.0, [0.02, 0.0, 0.05], np.diag([0.01, 0.01, 0.03]))


def test_mass_inertia_leaves_the_triangle_inequality_out():
    impossible = with_body(TRUTH, 1, THIN)
    assert missed(MassInertia(), STANDARD, impossible) == 0.0
    assert missed(PseudoInertia(), STANDARD, impossible) > 1e-2


def test_mass_inertia_is_mass_and_central_inertia():
    rng = np.random.default_rng(4)
    seen = set()
    for _ in range(200):
        mass = rng.normal() + 0.8
        half = rng.normal(size=(3, 3))
        inertia = 0.02 * (half @ half.T - rng.uniform(0.0, 0.5) * np.eye(3))
        phi = from_com(mass, rng.normal(scale=0.1, size=3), inertia)
        inside = mass > 0.0 and np.linalg.eigvalsh(inertia)[0] > 0.0
        refused = missed(MassInertia(floor=0.0), STANDARD, with_body(TRUTH, 0, phi)) > 0.0
        assert refused == (not inside)
        seen.add(inside)
    assert seen == {True, False}


def test_a_fit_finds_the_impossible_body_only_where_it_is_admitted():
    """On a floating base, whose composite body the wrench determines whole."""
    small = from_com(0.1, [0.0, 0.0, 0.02], np.diag([1e-4, 1e-4, 1e-4]))
    robot = replace(toy.arm(1), floating=True, nominal=np.array([5.0 * THIN, small]))
    theta = toy.true_parameters(build_idim(robot), robot.nominal)
    older, newer = (
        fitted(robot, theta=theta, noise=1e-4, consistency=name)
        for name in ("inertia", "pseudo-inertia")
    )
    for mass, _, inertia in (to_com(phi) for phi in bodies_of(older.theta, 2)):
        assert mass > 0.0
        assert np.linalg.eigvalsh(inertia)[0] > 0.0
    assert np.linalg.eigvalsh(to_pseudo_inertia(older.theta[:10]))[0] < -1e-3
    assert np.linalg.eigvalsh(to_pseudo_inertia(bodies_of(newer.theta, 2))).min() > 0.0
    cost = [np.sum((h.A[: h.data] @ h.x - h.b[: h.data]) ** 2) for h in (older, newer)]
    assert cost[0] < 30.0
    assert cost[1] > 1000.0


@pytest.mark.parametrize(
    ("robot", "friction"),
    [(ARM, "coulomb-viscous"), (toy.arm(4, coupled=True), "coulomb-viscous"),
     (ARM, "coulomb-viscous-asymmetric"), (ARM, "none")],
)  # fmt: skip
def test_drives_are_positive_but_offsets_have_any_sign(robot, friction):
    idim = build_idim(robot, friction)
    theta = np.concatenate([robot.nominal.ravel(), np.full(len(idim.drive_columns), 0.4)])
    space, _, _ = spaces(robot, theta=theta, friction=friction)
    cones = PositiveDrives().cones(space)
    chosen = [p.name for p in idim.parameters[idim.inertial :] if p.symbol != "off"]
    assert list_constraint_names(cones) == tuple(f"{name} > 0" for name in chosen)
    assert missed(PositiveDrives(), space, theta) == 0.0
    for k in range(idim.inertial, len(theta)):
        wrong = theta.copy()
        wrong[k] = -0.4
        refused = missed(PositiveDrives(), space, wrong) > 0.0
        assert refused == (idim.parameters[k].symbol != "off")


def test_negative_friction_is_held_at_zero():
    theta = TRUTH.copy()
    theta[IDIM.names.index("fv2")] = -2.0
    held = fitted(ARM, theta=theta)
    value = dict(zip(IDIM.names, held.theta, strict=True))["fv2"]
    assert 0.0 < value < 1e-3


def random_consistent(idim, rng):
    """Bodies from flat and far to compact, drives over decades."""
    theta = []
    for _ in range(idim.tree.bodies):
        size = 10.0 ** rng.uniform(-3.0, 1.0)
        places = rng.normal(size=(int(rng.integers(1, 6)), 3)) * rng.choice([0.05, 0.5, 3.0])
        if rng.random() < 0.5:  # a point far along one axis, or in a corner
            places = places[:1] * rng.choice([0.0, 1.0], size=3, p=[0.3, 0.7])
        masses = size * rng.uniform(0.1, 1.0, len(places))
        phi = body_of_points(masses, places)
        theta.append(phi + size * np.array([1, 0, 0, 0, 2, 0, 2, 0, 0, 2.0]) * 1e-9)
    drives = 10.0 ** rng.uniform(-4.0, 1.0, len(idim.drive_columns))
    signs = [1.0 if column.parameter.positive else rng.choice([-1.0, 1.0])
             for column in idim.drive_columns]  # fmt: skip
    return np.concatenate([*theta, drives * signs])


def planar(n):
    """Parallel axes: most inertial parameters do not act."""
    robot = toy.arm(n)
    joints = tuple(
        replace(joint, axis=np.array([0.0, 0.0, 1.0]), translation=np.array([0.3, 0.0, 0.0]))
        for joint in robot.joints
    )
    return replace(robot, joints=joints)


def skewed(n, seed):
    """Random placements and axes, the second joint a slide."""
    rng = np.random.default_rng(seed)
    joints = tuple(
        replace(
            joint,
            kind="prismatic" if k == 1 else "revolute",
            rotation=Rotation.random(rng=rng).as_matrix(),
            translation=rng.uniform(-0.4, 0.4, 3),
        )
        for k, joint in enumerate(toy.arm(n).joints)
    )
    return replace(toy.arm(n), joints=joints)


@pytest.mark.parametrize(
    ("robot", "friction"),
    [
        (ARM, "coulomb-viscous"),
        (toy.arm(4, coupled=True), "coulomb-viscous"),
        (toy.arm(6), "none"),
        (planar(3), "viscous"),
        (skewed(3, 0), "coulomb-viscous"),
        (skewed(5, 1), "viscous"),
    ],
    ids=["arm", "coupled", "bare", "planar", "skewed 3", "skewed 5"],
)
def test_base_parameters_that_no_consistent_robot_has_negative(robot, friction):
    """Selected ones stay positive in 200 random robots, each of the others does not."""
    idim = build_idim(robot, friction)
    base = base_parameters(idim)
    rng = np.random.default_rng(5)
    sample = np.array([random_consistent(idim, rng) for _ in range(200)])
    lowest = np.linalg.eigvalsh(to_pseudo_inertia(sample[:, : idim.inertial].reshape(-1, 10)))[:, 0]
    assert lowest.min() > 0.0
    beta = sample @ base.matrix.T
    size = np.maximum(np.abs(sample) @ np.abs(base.matrix).T, 1e-30)
    space = spaces(robot, theta=sample[0], friction=friction)[1]
    chosen = [is_never_negative(space, row) for row in base.matrix]
    assert any(chosen)
    assert not all(chosen)
    for k, selected in enumerate(chosen):
        least = float((beta[:, k] / size[:, k]).min())
        assert (least > -1e-9) == selected, (base.regroupings[k], least)
    cones = BasePositive().cones(space)
    wanted = tuple(f"{n} > 0" for n, c in zip(base.names, chosen, strict=True) if c)
    assert list_constraint_names(cones) == wanted
    for theta in sample[:50]:
        assert beyond(cones, space, theta) < EXACT


def test_a_fit_on_base_parameters_keeps_the_selected_ones_positive():
    held = fitted(ARM, noise=30.0, consistency="base")
    assert held.theta is None
    beta = dict(zip(BASE.base.names, held.beta, strict=True))
    names = list_constraint_names(BasePositive().cones(BASE))
    assert min(beta[name.removesuffix(" > 0")] for name in names) > -1e-9
    free = fitted(ARM, noise=30.0, consistency="none")
    base, system, _ = setup(ARM, noise=30.0)
    np.testing.assert_allclose(free.beta, np.linalg.solve(system.A, system.b), rtol=1e-6)
    assert min(free.beta[base.names.index(name.removesuffix(" > 0"))] for name in names) < 0.0


def test_a_robot_without_any_such_parameter_has_no_row():
    slide = Joint("slide", "cart", "prismatic", 0, np.eye(3), np.zeros(3), np.array([1.0, 0, 0]))
    robot = Robot("cart", (slide,), robots.bodies(1), Drives.direct(1))
    _, space, _ = spaces(robot, theta=robots.bodies(1).ravel(), friction="none")
    assert list_constraint_names(BasePositive().cones(space)) == tuple(
        f"{n} > 0" for n in space.base.names
    )


# Values


TRUE = [
    Bounds(("fv1",), lower=1.0, upper=3.0),
    Bounds(("mz2", "mz3"), lower=0.0),
    Bounds(("Ixx2",), upper=1.0),
    Bounds((STANDARD.base.names[0],), lower=0.0, upper=50.0),
    Bounds("off2", 0.0, 1.0),
    Fixed(("fc1", "fc2"), 3.0),
    Fixed(("m2",), float(MASSES[1])),
    LinkMass("all", lower=0.1, upper=10.0),
    LinkMass(("link_2",), value=float(MASSES[1])),
    LinkMass("link_3", upper=2.0),
    TotalMass(float(MASSES.sum())),
    TotalMass(lower=1.0, upper=20.0),
    Payload("link_3", 0.3, (0.01, -0.02, 0.12)),
]
FALSE = [
    Bounds(("fv1",), lower=2.1),
    Bounds(("mz2", "mz3"), lower=0.0, upper=0.2),
    Bounds((STANDARD.base.names[0],), upper=0.1),
    Fixed(("fc1", "fc2"), 2.9),
    LinkMass("all", upper=3.0),
    LinkMass(("link_2",), value=1.9),
    TotalMass(7.0),
    TotalMass(lower=8.0),
    EqualLinks(("link_1", "link_2")),
    Payload("link_3", 0.3, (0.5, 0.0, 0.0)),
    Payload("link_3", 2.0),
]
"""Of `TRUTH`: masses of 4, 2 and 4/3 kg, friction 2.0 and 3.0."""


@pytest.mark.parametrize("constraint", TRUE, ids=repr)
def test_the_truth_satisfies_what_is_true(constraint):
    assert missed(constraint, STANDARD, TRUTH) < EXACT


@pytest.mark.parametrize("constraint", FALSE, ids=repr)
def test_the_truth_violates_what_is_not(constraint):
    assert missed(constraint, STANDARD, TRUTH) > 1e-3


@pytest.mark.parametrize("constraint", [*TRUE, *FALSE], ids=repr)
def test_a_fit_keeps_to_it(constraint):
    """In physical units, whether the data agree or not."""
    held = fitted(ARM, [constraint])
    assert missed(constraint, STANDARD, held.theta) < 1e-7
    assert held.solution.certificate.worst < 1e-7
    values = dict(zip(IDIM.names, held.theta, strict=True))
    values.update(zip(STANDARD.base.names, held.beta, strict=True))
    masses = held.theta[:30:10]
    if isinstance(constraint, Bounds | Fixed):
        names = constraint.parameters
        found = np.array([values[name] for name in ((names,) if names == "off2" else names)])
    elif isinstance(constraint, LinkMass):
        links = ARM.links if constraint.links == "all" else np.atleast_1d(constraint.links)
        found = masses[[ARM.links.index(str(link)) for link in links]]
    elif isinstance(constraint, TotalMass):
        found = masses.sum()
    else:
        return
    room = 1e-6 * np.abs(found).max()
    if getattr(constraint, "value", None) is not None:
        np.testing.assert_allclose(found, constraint.value, atol=room)
    else:
        assert constraint.lower is None or np.all(found >= constraint.lower - room)
        assert constraint.upper is None or np.all(found <= constraint.upper + room)


@pytest.mark.parametrize("noise", [1e-2, 1e-5, 1e-8])
def test_precise_logs_are_held_by_wrong_values_and_not_refused(noise):
    """mx3 is 0.013 kg m; a body with 0.3 is far but possible, however sure the data are."""
    held = fitted(ARM, [Fixed(("mx3",), 0.3)], noise=noise)
    assert dict(zip(IDIM.names, held.theta, strict=True))["mx3"] == pytest.approx(0.3)


def test_several_constraints_hold_together():
    known = [
        Fixed(("fv1",), 1.8), LinkMass(("link_2",), value=2.1), TotalMass(7.5),
        Bounds(("Ixx2",), upper=0.02),
    ]  # fmt: skip
    held = fitted(ARM, known)
    assert max(missed(c, STANDARD, held.theta) for c in known) < 1e-7
    names = list_constraint_names(tuple(cone for c in known for cone in c.cones(STANDARD)))
    assert names == ("fv1 = 1.8", "mass of link_2 = 2.1", "total mass = 7.5", "Ixx2 <= 0.02")


def test_a_contradiction_of_constraints_names_them():
    with pytest.raises(InfeasibleError) as refused:
        fitted(ARM, [LinkMass("all", upper=1.0), TotalMass(5.0), Fixed(("fv1",), 2.0)])
    assert set(refused.value.conflict) == {
        "total mass = 5", *(f"mass of {link} <= 1" for link in ARM.links),
    }  # fmt: skip


def test_base_parameters_are_bounded_without_standard_ones():
    name = BASE.base.names[0]
    held = fitted(ARM, [Bounds((name,), upper=0.1)], consistency="none")
    assert held.beta[0] == pytest.approx(0.1)
    assert missed(Fixed((name,), float(held.beta[0])), BASE, held_theta(held)) < 1e-6


def held_theta(held):
    """Standard parameters with the base parameters of an estimate."""
    return BASE.base.standard(held.beta)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bounds("fv1"), "'bounds' has neither lower nor upper"),
        (lambda: Bounds("fv1", 2.0, 1.0), "lower 2 above upper 1"),
        (lambda: Bounds("fv1", lower=NAN), "'bounds': lower is nan but has to be 1 finite number"),
        (lambda: Bounds("fv1", upper=INF), "upper is inf but has to be 1 finite number"),
        (lambda: Bounds("fv1", lower=-INF), "lower is -inf"),
        (lambda: Bounds("fv1", lower="1"), "lower is '1'"),
        (lambda: Bounds("fv1", lower=True), "lower is True"),
        (lambda: Bounds("fv1", lower=(1.0, 2.0, 3.0)), r"lower is \(1.0, 2.0, 3.0\)"),
        (lambda: Bounds("fv1", upper=1e20), r"upper has 1e\+20, more than 1e\+09"),
        (lambda: Bounds((), lower=1.0), "parameters is empty"),
        (lambda: Bounds("", lower=1.0), "parameters is '' but has to be a name"),
        (lambda: Bounds(3, lower=1.0), "parameters is 3 but has to be names"),
        (lambda: Bounds(("fv1", 3), lower=1.0), "parameters is 3 but has to be a name"),
        (lambda: Bounds(("fv1", "fv1"), lower=1.0), "parameters has 'fv1' twice"),
        (lambda: Fixed("fv1", None), "'fixed': value is None"),
        (lambda: Fixed("fv1", {}), "value is {}"),
        (lambda: Fixed("fv1", INF), "value is inf"),
        (lambda: Fixed("fv1", 10**400), "value is 1000.*has to be 1 finite number"),
        (lambda: LinkMass("all"), "'mass' has neither value, lower nor upper"),
        (lambda: LinkMass((), value=1.0), "links is empty"),
        (lambda: LinkMass("all", value=-1.0), "value is -1.0 but has to be 1 positive number"),
        (lambda: LinkMass("all", value=1.0, upper=2.0), "a value and bounds"),
        (lambda: LinkMass("all", lower=NAN), "lower is nan"),
        (lambda: TotalMass(0.0), "'total-mass': value is 0.0"),
        (lambda: TotalMass(INF), "value is inf"),
        (lambda: TotalMass(lower=3.0, upper=2.0), "'total-mass' has lower 3 above upper 2"),
        (lambda: EqualLinks(("link_1",)), "'equal' needs at least two links"),
        (lambda: EqualLinks("link_1"), "at least two links"),
        (lambda: EqualLinks(("link_1", "link_1")), "links has 'link_1' twice"),
        (lambda: EqualLinks("all", drives="no"), "drives is 'no' but has to be True or False"),
        (lambda: Symmetric("link_1", "link_1"), "left and right has 'link_1' twice"),
        (lambda: Symmetric("link_1", "link_2", plane="zz"), "plane is 'zz'; use one of xy, xz, yz"),
        (lambda: Symmetric("link_1", "link_2", plane=[]), r"plane is \[\]"),
        (lambda: Payload("link_3", -1.0), "'payload': mass is -1.0"),
        (lambda: Payload("link_3", NAN), "mass is nan"),
        (lambda: Payload("link_3", 1.0, (NAN, 0.0, 0.0)), "com is .* 3 finite numbers"),
        (lambda: Payload("link_3", 1.0, inertia=(1.0, 1.0)), "inertia is .* 6 finite numbers"),
        (
            lambda: Payload("link_3", 1.0, inertia=(-1.0, 0, -1.0, 0, 0, -1.0)),
            "no body has its",
        ),
        (
            lambda: Payload("link_3", 1.0, inertia=(1.0, 0, 1.0, 0, 0, 2.1)),
            "no body has its",
        ),
        (lambda: Payload("link_3", com=(0.0, 0.0, 0.1)), "com or inertia but no mass"),
        (
            lambda: Payload("link_3", inertia=(1.0, 0, 1.0, 0, 0, 1.0)),
            "com or inertia but no mass",
        ),
    ],
)
def test_senseless_constraints_are_refused(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 150


@pytest.mark.parametrize("inertia", [(1.0, 0, 1.0, 0, 0, 2.0), (1e-3, 0, 1e-3, 0, 0, 0), (0,) * 6])
def test_flat_and_thin_payloads_are_possible(inertia):
    assert Payload("link_3", 1.0, inertia=inertia).inertia == inertia


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Fixed(("Izz",), 0.0), "'Izz' is not a parameter"),
        ({"kind": "bounds"}, "{'kind': 'bounds'} is not a constraint"),
        (TotalMass, ".*TotalMass.* is not a constraint"),
    ],
    ids=str,
)
def test_constraints_that_do_not_fit_the_robot_are_refused_by_their_number(constraint, message):
    with pytest.raises(InputError, match=r"^constraint\[2\]: " + message):
        fitted(ARM, [TotalMass(6.0), constraint])


def test_numbers_of_numpy_are_numbers():
    """Kept and described as a study has them."""
    found = [
        serialise_constraint(constraint)
        for constraint in (
            TotalMass(np.float64(6.0)),
            LinkMass(np.array(["link_1", "link_2"]), lower=np.int64(1)),
            Bounds(["fv1"], upper=np.array(2.5)),
            Symmetric(np.str_("link_1"), "link_2", drives=np.bool_(False)),
            Payload("link_3", 0.5, np.zeros(3), np.zeros(6)),
            Box("all", np.full(3, -0.5), [0.5, np.inf, 1]),
            Hull("all", np.vstack([np.zeros(3), np.eye(3)])),
        )
    ]
    assert found[0] == {"kind": "total-mass", "value": 6.0}
    assert found[1] == {"kind": "mass", "links": ("link_1", "link_2"), "lower": 1.0}
    assert found[3]["drives"] is False
    assert found[6]["points"][0] == (0.0, 0.0, 0.0)

    def plain(value):
        return all(map(plain, value)) if type(value) is tuple else type(value) in (str, float, bool)

    assert all(plain(value) for row in found for value in row.values())


@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_every_kind_is_documented(kind):
    assert CONSTRAINTS[kind].__doc__


def test_constraints_as_a_study_has_them():
    assert serialise_constraint(TotalMass(7.0)) == {"kind": "total-mass", "value": 7.0}
    assert serialise_constraint(Bounds(("fv1",), upper=1.0)) == {
        "kind": "bounds", "parameters": ("fv1",), "upper": 1.0,
    }  # fmt: skip
    for name, parts in CONSISTENCY.items():
        assert isinstance(parts, tuple), name


# Relations


def test_equal_links_are_equal_though_the_file_has_them_different():
    """The units of their unknowns differ, since those are of the file's masses."""
    phi = ARM.nominal[1]
    theta = with_body(TRUTH, 0, phi)
    equal = EqualLinks(("link_1", "link_2"))
    assert missed(equal, STANDARD, theta) < EXACT
    for at in (0, 3, 5, 9):
        wrong = theta.copy()
        wrong[at] += 0.05 * STANDARD.unit[at]
        assert missed(equal, STANDARD, wrong) > 1e-3
    for symbol, matters in (("Ia", True), ("fv", True), ("fc", True), ("off", False)):
        wrong = theta.copy()
        wrong[IDIM.names.index(f"{symbol}2")] *= 1.1
        assert (missed(equal, STANDARD, wrong) > EXACT) == matters
        assert missed(EqualLinks(("link_1", "link_2"), drives=False), STANDARD, wrong) < EXACT


@pytest.mark.parametrize("links", [("link_2", "link_1", "link_3"), "all"])
def test_a_fit_makes_equal_links_equal(links):
    held = fitted(ARM, [EqualLinks(links)], theta=TRUTH)
    one, two, three = bodies_of(held.theta, 3)
    np.testing.assert_allclose(one, two, atol=1e-7)
    np.testing.assert_allclose(three, two, atol=1e-7)
    values = dict(zip(IDIM.names, held.theta, strict=True))
    for symbol in ("Ia", "fv", "fc"):
        assert values[f"{symbol}1"] == pytest.approx(values[f"{symbol}2"], rel=1e-6)
        assert values[f"{symbol}3"] == pytest.approx(values[f"{symbol}2"], rel=1e-6)


def test_one_link_has_no_equal():
    space, _, _ = spaces(toy.arm(1))
    with pytest.raises(InputError, match="at least two links; the robot has one"):
        EqualLinks("all").cones(space)


MIRROR = np.diag([1.0, -1.0, 1.0, 1.0])
"""In the xz plane."""


def placement(rotation, translation):
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation, translation
    return out


def two_arms(seed=0):
    """A torso that turns about z, a left arm of two joints and its mirror image on the right.

    The right arm's frames are turned at random: only its bodies and axes are the image.
    """
    rng = np.random.default_rng(seed)
    torso = Joint("torso", "torso", "revolute", 0, np.eye(3), np.array([0.0, 0.0, 0.4]),
                  np.array([0.0, 0.0, 1.0]))  # fmt: skip
    world = {0: np.eye(4), 1: placement(np.eye(3), [0.0, 0.0, 0.4])}
    joints = [torso]
    bodies = [from_com(8.0, [0.02, 0.0, 0.1], np.diag([0.2, 0.15, 0.1]))]
    parent = 1
    for k in (2, 3):
        own = placement(Rotation.random(rng=rng).as_matrix(), [0.05, 0.2, 0.1])
        axis = np.array([0.0, 1.0, 0.0])
        joints.append(Joint(f"left{k}", f"left{k}", "revolute", parent, own[:3, :3], own[:3, 3],
                            axis))  # fmt: skip
        world[k] = world[parent] @ own
        bodies.append(robots.bodies(1, seed + k)[0])
        parent = k
    parent = 1
    for k, twin in ((4, 2), (5, 3)):
        turn = Rotation.random(rng=rng).as_matrix()
        world[k] = placement(turn, (MIRROR @ world[twin])[:3, 3])
        own = np.linalg.inv(world[parent]) @ world[k]
        # the mirror image of a turn about a is one about the image of -a
        axis = -turn.T @ MIRROR[:3, :3] @ world[twin][:3, :3] @ np.array([0.0, 1.0, 0.0])
        joints.append(Joint(f"right{k}", f"right{k}", "revolute", parent, own[:3, :3], own[:3, 3],
                            axis))  # fmt: skip
        map_ = np.linalg.inv(world[k]) @ MIRROR @ world[twin]
        J = map_ @ to_pseudo_inertia(bodies[twin - 1]) @ map_.T
        bodies.append(to_inertial_parameters(J))
        parent = k
    return Robot("two arms", tuple(joints), np.array(bodies), Drives.direct(5)), world


TWO, WORLD = two_arms()
PAIRS = (("left2", "right4"), ("left3", "right5"))


def test_the_robot_of_these_tests_is_its_own_mirror_image():
    """Torques of the mirrored motion are the mirrored torques, by the dynamics alone."""
    idim = build_idim(TWO, "none")
    theta = TWO.nominal.ravel()
    q, dq, ddq = robots.states(TWO, 20)
    swap = [0, 3, 4, 1, 2]
    sign = np.array([-1.0, 1.0, 1.0, 1.0, 1.0])
    tau = idim.torque(theta, q, dq, ddq)
    image = idim.torque(theta, *(sign * s[:, swap] for s in (q, dq, ddq)))
    np.testing.assert_allclose(image, sign * tau[:, swap], atol=1e-10 * np.abs(tau).max())


def test_links_that_mirror_each_other_are_found_by_the_file():
    """The pairs of a robot of which the test above has it by the torques."""
    assert find_symmetries(TWO) == tuple(Symmetric(*pair, plane="xz") for pair in PAIRS)
    for k, name in enumerate(TWO.links):
        if not any(name in pair for pair in PAIRS):
            continue
        others = tuple(Symmetric(*pair) for pair in PAIRS if name not in pair)
        size = np.sqrt(0.5 * TWO.nominal[k, [4, 6, 9]].sum() / TWO.nominal[k, 0])
        for at, power in enumerate([0, 1, 1, 1, *[2] * 6]):
            nominal = TWO.nominal.copy()
            nominal[k, at] += 0.01 * TWO.nominal[k, 0] * size**power
            assert find_symmetries(replace(TWO, nominal=nominal)) == others
        joints = [*TWO.joints]
        joints[k] = replace(joints[k], translation=joints[k].translation + 0.01)
        moved = find_symmetries(replace(TWO, joints=tuple(joints)))
        assert not any(name in (each.left, each.right) for each in moved)
    assert find_symmetries(replace(TWO, nominal=np.zeros_like(TWO.nominal))) == ()


def test_the_command_proposes_symmetries_that_a_study_may_state(capsys):
    argv = ["base", str(robots.urdf("go2")), "--floating", "--symmetries"]
    assert run(argv) == 0
    proposed = tomllib.loads(capsys.readouterr().out)["constraint"]
    assert {each.pop("kind") for each in proposed} == {"symmetric"}
    found = [Symmetric(**each) for each in proposed]
    assert Symmetric("RL_thigh", "RR_thigh", "xz") in found
    assert all("trunk" not in (each.left, each.right) for each in found)
    assert len(ask(capsys, argv)["constraints"]) == len(found)
    assert run(["base", str(robots.urdf("ur5")), "--symmetries"]) == 0
    assert "no links mirror each other" in capsys.readouterr().out


def test_symmetry_admits_the_mirror_image_and_nothing_else():
    idim = build_idim(TWO)
    theta = toy.true_parameters(idim, TWO.nominal)
    space, _, _ = spaces(TWO, theta=theta)
    for left, right in PAIRS:
        assert missed(Symmetric(left, right), space, theta) < EXACT
        assert missed(Symmetric(left, right, plane="yz"), space, theta) > 1e-2
        assert missed(Symmetric(left, right, plane="xy"), space, theta) > 1e-2
        k = TWO.links.index(right)
        for at in range(10):
            wrong = theta.copy()
            wrong[10 * k + at] += 0.05 * space.unit[10 * k + at]
            assert missed(Symmetric(left, right), space, wrong) > 1e-3
        # equal numbers in frames that differ are not an image
        same = with_body(theta, k, theta[10 * (k - 2) : 10 * (k - 2) + 10])
        assert missed(Symmetric(left, right), space, same) > 1e-2
        slow = theta.copy()
        slow[idim.names.index(f"fv{k + 1}")] *= 1.2
        assert missed(Symmetric(left, right), space, slow) > EXACT
        assert missed(Symmetric(left, right, drives=False), space, slow) < EXACT


def test_a_fit_makes_the_right_arm_the_image_of_the_left():
    known = [Symmetric(left, right) for left, right in PAIRS]
    held = fitted(TWO, known, noise=0.3)
    assert held.solution.certificate.worst < 1e-7
    phis = bodies_of(held.theta, 5)
    for left, right in ((1, 3), (2, 4)):
        J = to_pseudo_inertia(phis)
        seen_left = WORLD[left + 1] @ J[left] @ WORLD[left + 1].T
        seen_right = WORLD[right + 1] @ J[right] @ WORLD[right + 1].T
        np.testing.assert_allclose(seen_right, MIRROR @ seen_left @ MIRROR, atol=1e-6)


def test_symmetry_says_it_of_base_frames_turned_with_a_link():
    """`transform_body` and the placements agree: an image twice over is the body itself."""
    map_ = np.linalg.inv(WORLD[4]) @ MIRROR @ WORLD[2]
    back = np.linalg.inv(WORLD[2]) @ MIRROR @ WORLD[4]
    np.testing.assert_allclose(back @ map_, np.eye(4), atol=1e-12)
    turn = WORLD[2][:3, :3]
    seen = transform_body(TWO.nominal[1], turn, WORLD[2][:3, 3])
    J = WORLD[2] @ to_pseudo_inertia(TWO.nominal[1]) @ WORLD[2].T
    np.testing.assert_allclose(to_pseudo_inertia(seen), J, atol=1e-12)


def test_a_known_payload_leaves_a_consistent_link():
    load = from_com(0.4, [0.0, 0.05, 0.1], np.diag([1e-3, 2e-3, 2e-3]))
    theta = with_body(TRUTH, 2, ARM.nominal[2] + load)
    known = Payload("link_3", 0.4, (0.0, 0.05, 0.1), (1e-3, 0.0, 2e-3, 0.0, 0.0, 2e-3))
    assert missed(known, STANDARD, theta) < EXACT
    (cone,) = known.cones(STANDARD)
    assert isinstance(cone, SemidefiniteCone)
    assert cone.name == "link_3 without its payload"
    held = fitted(ARM, [known], theta=theta, noise=2.0)
    rest = to_pseudo_inertia(bodies_of(held.theta, 3)[2] - load)
    assert np.linalg.eigvalsh(rest)[0] > 0.0
    # the payload alone, without a link to carry it, is on the boundary and refused
    assert missed(known, STANDARD, with_body(TRUTH, 2, load)) > 0.0


def test_an_unknown_payload_is_what_the_link_has_beyond_the_file():
    load = from_com(0.8, [0.02, 0.0, 0.2], np.diag([2e-3, 3e-3, 3e-3]))
    theta = with_body(TRUTH, 2, ARM.nominal[2] + load)
    unknown = Payload("link_3")
    assert missed(unknown, STANDARD, theta) < EXACT
    assert missed(unknown, STANDARD, TRUTH) < 2.0 * FLOOR  # no payload: the boundary
    lighter = with_body(TRUTH, 2, 0.9 * ARM.nominal[2])
    assert missed(unknown, STANDARD, lighter) > 1e-3
    held = fitted(ARM, [unknown], theta=theta, noise=0.5)
    found = bodies_of(held.theta, 3)[2] - ARM.nominal[2]
    assert np.linalg.eigvalsh(to_pseudo_inertia(found))[0] > 0.0


def test_rows_are_of_order_one():
    """What the solver sees does not depend on the size of links and torques."""
    for constraint in (*TRUE, EqualLinks(("link_1", "link_2"))):
        for cone in constraint.cones(STANDARD):
            if isinstance(cone, ZeroCone | NonnegativeCone):
                sizes = np.linalg.norm(cone.G, axis=1)
                assert np.all((sizes > 0.05) & (sizes < 20.0)), constraint
