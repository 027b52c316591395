"""Regions: bodies made of point masses inside them and beyond, and the shapes of URDFs."""

from functools import cache

import coal
import cvxpy
import numpy as np
import pinocchio as pin
import pytest
from robots import bodies, pin_model, pin_q, states, urdf
from scipy.spatial import ConvexHull, Delaunay
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation
from thin import first
from toy import arm

from dynident.conic.cones import NonnegativeCone, SemidefiniteCone, evaluate_slack
from dynident.conic.solve import solve_cone_problem
from dynident.consistency.constraints.consistency import PseudoInertia
from dynident.consistency.constraints.convex import find_hull_facets, fit_enclosing_ellipsoid
from dynident.consistency.constraints.regions import PAIRED, Box, Ellipsoid, Hull, Sphere
from dynident.consistency.space import LENGTH, ParameterSpace
from dynident.core.errors import InputError
from dynident.core.inertia import to_com, to_inertial_parameters, to_pseudo_inertia
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.robot.geometry import load_link_points, surround_shape
from dynident.robot.load import load_robot

LINK = "link_2"
CENTRE = np.array([0.02, -0.05, 0.13])
HALF = np.array([0.1, 0.04, 0.2])
AXES = np.array([0.2, 0.05, 0.1])
TURN = (0.4, -0.7, 1.1)
TETRAHEDRON = CENTRE + 0.1 * np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1.0)])
OCTAHEDRON = CENTRE + np.vstack([np.diag(HALF), -np.diag(HALF)])


def rounded_points():
    """A long blob with far more corners than pairs of facets are made of."""
    directions = np.random.default_rng(3).normal(size=(60, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return CENTRE + directions * [0.05, 0.08, 0.25]


def as_points(array):
    return tuple(tuple(float(v) for v in row) for row in array)


POINTS = {
    "tetrahedron": TETRAHEDRON,
    "octahedron": OCTAHEDRON,
    "blob": rounded_points(),
}
REGIONS = {
    "box": lambda of: Box(LINK, tuple(CENTRE - HALF), tuple(CENTRE + HALF), of),
    "sphere": lambda of: Sphere(LINK, tuple(CENTRE), 0.12, of),
    "ellipsoid": lambda of: Ellipsoid(LINK, tuple(CENTRE), tuple(AXES), TURN, of),
    **{
        name: lambda of, points=points: Hull(LINK, as_points(points), 0.0, of)
        for name, points in POINTS.items()
    },
    "wide": lambda of: Hull(LINK, as_points(OCTAHEDRON), 0.03, of),
    "wide blob": lambda of: Hull((LINK,), as_points(POINTS["blob"]), 0.03, of),
}
EXACT = ("sphere", "ellipsoid", "tetrahedron")


@cache
def facets(name):
    """Facets of a hull as Qhull has them, moved outward."""
    corners = OCTAHEDRON if name == "wide" else POINTS[name.removeprefix("wide ")]
    found = ConvexHull(corners).equations.copy()
    found[:, 3] -= 0.03 * name.startswith("wide")
    return found


def depth(name, points):
    """How far points are inside, positive there; of the regions' own words, not their code."""
    away = np.atleast_2d(points) - CENTRE
    if name == "box":
        return np.min(HALF - np.abs(away), axis=1)
    if name == "sphere":
        return 0.12 - np.linalg.norm(away, axis=1)
    if name == "ellipsoid":
        axes = pin.rpy.rpyToMatrix(*TURN)
        return 1.0 - np.linalg.norm(away @ axes / AXES, axis=1)
    sides = facets(name)
    return np.min(-sides[:, 3] - (away + CENTRE) @ sides[:, :3].T, axis=1)


def boundary(name, rng, count=1):
    """Points of the boundary, along random rays from the centre."""
    rays = rng.normal(size=(count, 3)) * [0.1, 0.05, 0.2]
    low, high = np.zeros(count), np.full(count, 100.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        deep = depth(name, CENTRE + middle[:, None] * rays) > 0.0
        low, high = np.where(deep, middle, low), np.where(deep, high, middle)
    return CENTRE + low[:, None] * rays


def inside(name, count, rng):
    """Points of a region, a third of them next to its boundary."""
    scale = rng.random(count) ** (1.0 / 3.0)
    scale[::3] = 1.0 - 1e-9
    return CENTRE + scale[:, None] * (boundary(name, rng, count) - CENTRE)


def body(points, masses):
    """Inertial parameters of point masses."""
    lifted = np.column_stack([points, np.ones(len(points))])
    return to_inertial_parameters((lifted.T * masses) @ lifted)


@pytest.fixture(scope="module", params=["scaled", "SI"])
def space(request):
    idim = build_idim(arm(2))
    unit = np.ones(len(idim.parameters))
    if request.param == "scaled":
        for k, mass in enumerate(idim.robot.nominal[:, 0]):
            unit[10 * k : 10 * k + 10] = mass * np.array([1.0] + [LENGTH] * 3 + [LENGTH**2] * 6)
    return ParameterSpace(base_parameters(idim), unit)


def unknowns(space, phi, link=1):
    x = np.zeros(len(space.unit))
    x[10 * link : 10 * link + 10] = phi
    return x / space.unit


def worst(cones, x):
    """Smallest slack of all, over the size of x."""
    least = [
        np.linalg.eigvalsh(evaluate_slack(cone, x))[0]
        if isinstance(cone, SemidefiniteCone)
        else evaluate_slack(cone, x).min()
        for cone in cones
    ]
    return min(least) / np.linalg.norm(x)


@pytest.mark.parametrize("of", first(["mass", "com"]))
@pytest.mark.parametrize("name", first(REGIONS, 9))
def test_bodies_inside_are_never_refused(space, name, of):
    rng = np.random.default_rng(1)
    cones = REGIONS[name](of).cones(space)
    cloud = inside(name, 400, rng)
    assert depth(name, cloud).min() > 0.0
    for k in range(200):
        count = 1 + k % 7
        chosen = cloud[rng.choice(len(cloud), count, replace=False)]
        phi = body(chosen, rng.exponential(size=count))
        assert worst(cones, unknowns(space, phi)) > -1e-12


@pytest.mark.parametrize("of", ["mass", "com"])
@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("space", ["scaled"], indirect=True)
def test_a_centre_of_mass_outside_is_refused(space, name, of):
    rng = np.random.default_rng(2)
    cones = [*REGIONS[name](of).cones(space), *PseudoInertia(floor=0.0).cones(space)]
    for centre in CENTRE + 1.03 * (boundary(name, rng, 100) - CENTRE):
        assert depth(name, centre)[0] < 0.0
        points = rng.normal(size=(6, 3)) * 0.02
        masses = rng.exponential(size=6)
        phi = body(points - masses @ points / masses.sum() + centre, masses)
        assert worst(cones, unknowns(space, phi)) < -1e-6


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("space", ["scaled"], indirect=True)
def test_mass_beyond_is_refused_around_a_centre_of_mass_inside(space, name):
    rng = np.random.default_rng(3)
    mass, com = REGIONS[name]("mass").cones(space), REGIONS[name]("com").cones(space)
    # necessary conditions of second moments: the weaker the region's form, the further
    away = 1.02 if name in EXACT else 3.0 if "blob" in name else 1.8
    for ray in boundary(name, rng, 100) - CENTRE:
        if name == "tetrahedron":
            points = CENTRE + 1.02 * (TETRAHEDRON - CENTRE)
        else:
            points = CENTRE + away * np.array([ray, -ray])
        phi = body(points, rng.exponential() * np.ones(len(points)))
        np.testing.assert_allclose(to_com(phi)[1], CENTRE, atol=1e-12)
        assert worst(com, unknowns(space, phi)) > 0.0
        assert worst(mass, unknowns(space, phi)) < -1e-6


def test_a_box_knows_the_largest_variance(space):
    """Along an axis a mean mu in [l, u] allows (u - mu)(mu - l), Bhatia and Davis 2000."""
    low, high = -0.1, 0.3
    cones = Box(LINK, (low,) * 3, (high,) * 3).cones(space)
    for mu in (-0.05, 0.1, 0.28):
        for factor, fits in ((0.999, True), (1.001, False)):
            spread = np.sqrt(factor * (high - mu) * (mu - low))
            points = np.full((2, 3), mu)
            points[:, 1] += [spread, -spread]
            assert (worst(cones, unknowns(space, body(points, np.ones(2)))) > 0.0) == fits


def test_open_sides_bound_nothing(space):
    cones = Box(LINK, (-np.inf, -0.1, -np.inf), (np.inf, np.inf, 0.2)).cones(space)
    assert [len(cone.h) for cone in cones] == [2, 1]
    closed = Box(LINK, (-np.inf, -0.1, 0.1), (np.inf, np.inf, 0.2)).cones(space)
    assert [len(cone.h) for cone in closed] == [3]
    far = body(np.array([[50.0, 3.0, -8.0], [-9.0, 5.0, 0.1]]), np.ones(2))
    assert worst(cones, unknowns(space, far)) > 0.0
    assert worst(cones, unknowns(space, body(np.array([[0.0, -0.2, 0.0]]), np.ones(1)))) < 0.0
    (one,) = Box(LINK, (0.0, -np.inf, -np.inf), (np.inf,) * 3).cones(space)
    assert one.name == ("box link_2: x >= 0",)


def test_a_turned_ellipsoid_turns_as_in_a_urdf(space):
    (cone,) = Ellipsoid(LINK, (0.0, 0.0, 0.0), (0.3, 0.1, 0.1), (0.0, 0.0, np.pi / 2)).cones(space)
    along_y = body(np.array([[0.0, 0.29, 0.0]]), np.ones(1))
    along_x = body(np.array([[0.29, 0.0, 0.0]]), np.ones(1))
    assert evaluate_slack(cone, unknowns(space, along_y))[0] > 0.0
    assert evaluate_slack(cone, unknowns(space, along_x))[0] < 0.0


def realised(J, W):
    """Point masses of a pseudo-inertia, each of them with ``xt^T W xt >= 0``.

    Sturm and Zhang 2003, proposition 4: vectors of a factorisation are turned into each
    other until all have the same value of the form, which is its mean.
    """
    values, vectors = np.linalg.eigh(J)
    kept = [np.sqrt(v) * p for v, p in zip(values, vectors.T, strict=True) if v > 0.0]
    done = []
    goal = np.sum(J * W) / len(kept)
    while len(kept) > 1:
        of = [p @ W @ p - goal for p in kept]
        i, j = int(np.argmax(of)), int(np.argmin(of))
        p, q = kept[i], kept[j]
        if of[i] < 1e-15 or i == j:
            break
        # (p + t q) has the value 0 less goal (1 + t^2)
        t = np.roots([of[j], 2.0 * p @ W @ q, of[i]]).real[0]
        done.append((p + t * q) / np.sqrt(1.0 + t * t))
        rest = (q - t * p) / np.sqrt(1.0 + t * t)
        kept = [v for k, v in enumerate(kept) if k not in (i, j)] + [rest]
    return np.array(done + kept)


def spread_inside(name, phi):
    """Whether the second moments are those that mass in the region can have."""
    mass, com, _ = to_com(phi)
    J = to_pseudo_inertia(phi)
    if name in ("sphere", "ellipsoid"):
        axes = np.full(3, 0.12) if name == "sphere" else AXES
        turn = np.eye(3) if name == "sphere" else Rotation.from_euler("xyz", TURN).as_matrix()
        root = (turn / axes).T
        lifted = np.column_stack([root, -root @ CENTRE])
        W = np.diag([0.0, 0.0, 0.0, 1.0]) - lifted.T @ lifted
        vectors = realised(J, W)
        np.testing.assert_allclose(vectors.T @ vectors, J, atol=1e-12)
        return depth(name, vectors[:, :3] / vectors[:, 3:]).min() > -1e-5
    corners = inside_corners(name)
    if "blob" in name:
        middle, root = fit_enclosing_ellipsoid(corners)
        about = J[:3, :3] / mass - np.outer(com, com) + np.outer(com - middle, com - middle)
        return np.trace(root @ about @ root.T) < 1.0 + 1e-6
    directions = np.random.default_rng(0).normal(size=(500, 3))
    spread = np.einsum("ri,ij,rj->r", directions, J[:3, :3] / mass, directions)
    spread -= (directions @ com) ** 2
    reach = corners @ directions.T
    low, high, mean = reach.min(axis=0), reach.max(axis=0), directions @ com
    return bool(np.all(spread <= (high - mean) * (mean - low) * (1.0 + 1e-6) + 1e-9))


def inside_corners(name):
    if name == "box":
        signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
        return CENTRE + signs * HALF
    if name.startswith("wide"):
        return find_hull_facets(OCTAHEDRON if name == "wide" else POINTS["blob"], 0.03)[1]
    return POINTS[name]


@pytest.mark.parametrize("of", ["mass", "com"])
@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("space", ["scaled"], indirect=True)
def test_a_fit_ends_inside(space, name, of):
    rng = np.random.default_rng(5)
    A = rng.normal(size=(60, len(space.unit)))
    consistent = PseudoInertia().cones(space)
    region = REGIONS[name](of).cones(space)
    for seed in range(2):
        far = CENTRE + 1.5 * (boundary(name, np.random.default_rng(seed))[0] - CENTRE)
        points = far + np.random.default_rng(seed).normal(size=(9, 3)) * 0.3
        points += far - points.mean(axis=0)
        other = unknowns(space, bodies(1)[0] / bodies(1)[0, 0], link=0)
        truth = unknowns(space, body(points, np.full(9, 0.2))) + other
        b = A @ truth + 0.01 * rng.normal(size=len(A))
        free = solve_cone_problem(A, b, consistent).x
        held = solve_cone_problem(A, b, [*consistent, *region])
        assert worst(region, free) < -1e-3
        assert held.certificate.worst < 1e-7
        phi = (space.unit * held.x)[10:20]
        com = to_com(phi)[1]
        assert depth(name, com)[0] > -1e-6
        if name.startswith(("tetra", "octa", "blob")):
            shrunk = CENTRE + (com - CENTRE) * (1.0 - 1e-5)
            assert Delaunay(POINTS[name]).find_simplex(shrunk) >= 0
        if of == "mass":
            assert spread_inside(name, phi)


def test_names_say_what_holds(space):
    (box,) = Box("link_1", (-0.1, 0, 0), (0.2, 1, 1), "com").cones(space)
    (paired,) = Box("link_1", (-0.1, 0, 0), (0.2, 1, 1)).cones(space)
    assert box.name[:2] == ("box link_1: x >= -0.1", "box link_1: x <= 0.2")
    assert paired.name[0] == "mass in box of link_1: x >= -0.1 and x <= 0.2"
    assert len(paired.name) == 15
    centre, mass = REGIONS["blob"]("mass").cones(space)
    assert mass.name == ("mass in hull of link_2",)
    assert centre.name[0].startswith("hull link_2: facet 1 towards (")
    assert len(centre.name) > PAIRED
    (paired,) = REGIONS["octahedron"]("mass").cones(space)
    assert paired.name[0].startswith("mass in hull of link_2: facet 1 towards (")
    assert len(paired.name) == 28
    assert REGIONS["sphere"]("mass").cones(space)[0].name == ("mass in sphere of link_2",)
    (matrix,) = REGIONS["ellipsoid"]("com").cones(space)
    assert matrix.name == "centre of mass in ellipsoid of link_2"
    assert len(Sphere("all", (0, 0, 0), 1.0).cones(space)) == 2


def test_rows_are_of_order_one(space):
    for region in REGIONS.values():
        for cone in region("mass").cones(space):
            assert isinstance(cone, NonnegativeCone)
            np.testing.assert_allclose(np.linalg.norm(cone.G, axis=1), 1.0)
            assert not np.any(cone.G[:, :10])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(LINK, (0, 0, 0), (1, 0, 1)), r"'box': lower \(0 0 0\) has to be below upper"),
        (lambda: Box(LINK, (0, 0), (1, 1, 1)), "lower is .* has to be 3 numbers"),
        (lambda: Box(LINK, (0, 0, np.nan), (1, 1, 1)), "lower is .* has to be 3 numbers"),
        (lambda: Box(LINK, (-np.inf,) * 3, (np.inf,) * 3), "all its sides are open"),
        (lambda: Box(LINK, (0, 0, 0), (1, 1, 1), "all"), "of is 'all'; use one of mass, com"),
        (lambda: Sphere(LINK, (0, 0, 0), 0.0), "radius is 0.0 but has to be 1 positive number$"),
        (lambda: Sphere(LINK, (0, 0, 0), "0.1"), "radius is '0.1' but has to be 1 positive"),
        (lambda: Sphere(LINK, (0, np.inf, 0), 0.1), "centre is .* has to be 3 finite numbers"),
        (lambda: Ellipsoid(LINK, (0, 0, 0), (1, 1, -1)), "axes is .* has to be 3 positive numbers"),
        (lambda: Ellipsoid(LINK, (0, 0, 0), (1, 1, 1), (0, 0)), "rotation is .* 3 finite"),
        (lambda: Hull(LINK, as_points(TETRAHEDRON[:3])), "'hull': the points lie in a plane"),
        (lambda: Hull(LINK, as_points(np.eye(3)[[0, 1, 2, 0, 1]])), "the points lie in a plane"),
        (lambda: Hull(LINK, ()), "the points lie in a plane"),
        (lambda: Hull(LINK, ((0, 0),)), "points is .* has to be 3 finite numbers"),
        (lambda: Hull(LINK, as_points(TETRAHEDRON), -0.1), "margin is -0.1 but cannot be negative"),
    ],
)  # fmt: skip
def test_nonsense_is_refused(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_unknown_links_and_robots_without_geometry_are_refused(space):
    with pytest.raises(InputError, match="'link_3' is not a link"):
        Sphere("link_3", (0, 0, 0), 1.0).cones(space)
    with pytest.raises(InputError, match="the robot has no URDF"):
        Hull(LINK).cones(space)


# ---- convex sets -----------------------------------------------------------------------


def test_ellipsoid_around_a_cube_is_a_sphere():
    cube = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    centre, root = fit_enclosing_ellipsoid(0.3 * cube + [1.0, 2.0, 3.0])
    np.testing.assert_allclose(centre, [1.0, 2.0, 3.0], atol=1e-12)
    np.testing.assert_allclose(root.T @ root, np.eye(3) / (3.0 * 0.3**2), atol=1e-9)


def test_ellipsoid_around_a_box_among_points_inside_it():
    """It is affine: half axes of a box times sqrt 3, wherever inner points are."""
    rng = np.random.default_rng(0)
    cube = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    many = np.vstack([rng.uniform(-1.0, 1.0, (300, 3)), cube])
    map_ = rng.normal(size=(3, 3))
    centre, root = fit_enclosing_ellipsoid(many @ map_.T, 1e-6)
    np.testing.assert_allclose(centre, np.zeros(3), atol=2e-3)
    np.testing.assert_allclose(map_.T @ root.T @ root @ map_, np.eye(3) / 3.0, atol=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_ellipsoid_is_that_of_cvxpy(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(40, 3)) * [1.0, 0.3, 0.05] + [2.0, 0.0, 0.5]
    matrix, shift = cvxpy.Variable((3, 3), PSD=True), cvxpy.Variable(3)
    limits = [cvxpy.norm(matrix @ p + shift) <= 1.0 for p in points]
    cvxpy.Problem(cvxpy.Maximize(cvxpy.log_det(matrix)), limits).solve(solver=cvxpy.CLARABEL)
    _, root = fit_enclosing_ellipsoid(points)
    assert np.linalg.det(root) == pytest.approx(np.linalg.det(matrix.value), rel=5e-4)
    np.testing.assert_allclose(
        root.T @ root, matrix.value @ matrix.value, rtol=0.02, atol=0.02 * np.abs(root).max()
    )


@pytest.mark.parametrize("name", POINTS)
def test_ellipsoid_contains_its_points(name):
    centre, root = fit_enclosing_ellipsoid(POINTS[name])
    reach = np.linalg.norm((POINTS[name] - centre) @ root.T, axis=1)
    assert reach.max() == pytest.approx(1.0, abs=1e-12)


def test_facets_in_one_plane_count_once():
    grid = np.array(np.meshgrid(*[[0.0, 0.1, 0.2]] * 3)).reshape(3, -1).T
    sides, corners = find_hull_facets(grid)
    assert len(sides) == 6
    assert len(corners) == 8
    wide, around_it = find_hull_facets(grid, 0.01)
    assert np.ptp(around_it, axis=0) == pytest.approx([0.22] * 3)
    np.testing.assert_allclose(wide[:, 3] - sides[:, 3], 0.01)


# ---- geometry of URDFs -----------------------------------------------------------------


def world_points(path, q, joint):
    """World positions of a joint's collision geometry, by Pinocchio's own placements."""
    model = pin_model(path)
    data = model.createData()
    folders = [str(folder) for folder in path.parents]
    geometry = pin.buildGeomFromUrdf(
        model, str(path), pin.GeometryType.COLLISION, package_dirs=folders
    )
    placed = geometry.createData()
    pin.updateGeometryPlacements(model, data, geometry, placed, pin_q(model, q))
    found = []
    for k, shape in enumerate(geometry.geometryObjects):
        if model.names[shape.parentJoint] != joint:
            continue
        if isinstance(shape.geometry, coal.Box):
            signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
            points = signs * shape.geometry.halfSide
        else:
            points = shape.geometry.vertices()
        pose = placed.oMg[k]
        found.append(points @ pose.rotation.T + pose.translation)
    return np.vstack(found), data.oMi[model.getJointId(joint)]


def same_points(ours, theirs):
    assert len(ours) == len(theirs)
    apart = cdist(ours, theirs)
    assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 1e-9


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_link_points_are_where_pinocchio_has_them(name):
    robot = load_robot(urdf(name))
    q = states(robot, 1, seed=4)[0][0]
    for joint in robot.joints:
        theirs, pose = world_points(urdf(name), q, joint.name)
        ours = load_link_points(robot, joint.link) @ pose.rotation.T + pose.translation
        same_points(ours, theirs)


def test_links_behind_locked_joints_are_part_of_the_body():
    free = load_robot(urdf("panda"))
    robot = load_robot(urdf("panda"), locked={"panda_joint5": 0.4, "panda_joint6": 1.2})
    q = states(free, 1, seed=5)[0][0]
    q[4:6] = 0.4, 1.2
    _, pose = world_points(urdf("panda"), q, "panda_joint4")
    ours = load_link_points(robot, "panda_link4") @ pose.rotation.T + pose.translation
    theirs = [world_points(urdf("panda"), q, f"panda_joint{k}")[0] for k in (4, 5, 6)]
    same_points(ours, np.vstack(theirs))
    with pytest.raises(InputError, match="no link 'panda_link5'"):
        load_link_points(robot, "panda_link5")


def test_a_floating_base_has_its_own_geometry():
    robot = load_robot(urdf("solo12"), floating=True)
    points = load_link_points(robot, robot.base_link)
    assert np.ptp(points, axis=0) == pytest.approx([0.4482, 0.2189, 0.053], abs=1e-3)
    fixed = load_robot(urdf("solo12"))
    same_points(load_link_points(robot, "FL_SHOULDER"), load_link_points(fixed, "FL_SHOULDER"))


def test_meshes_of_a_humanoid_are_found():
    robot = load_robot(urdf("talos"), floating=True)
    left, right = (load_link_points(robot, f"leg_{side}_2_link") for side in ("left", "right"))
    same_points(left * [1.0, -1.0, 1.0], right)


@pytest.mark.long
@pytest.mark.parametrize(("name", "margin"), [("ur5", 0.005), ("panda", 0.0)])
def test_a_robots_own_hull_holds_bodies_in_it(name, margin):
    robot = load_robot(urdf(name))
    base = base_parameters(build_idim(robot))
    space = ParameterSpace(base, np.ones(len(base.idim.parameters)))
    rng = np.random.default_rng(0)
    cones = Hull("all", margin=margin).cones(space)
    assert len(cones) == 2 * len(robot.links)
    x = np.zeros(len(space.unit))
    for k, link in enumerate(robot.links):
        points = load_link_points(robot, link)
        chosen = points[rng.choice(len(points), 20)]
        x[10 * k : 10 * k + 10] = body(chosen, rng.exponential(size=20))
    assert worst(cones, x) > -1e-12
    far = x.copy()
    far[1:4] += 0.5 * far[0]
    assert worst(cones, far) < -1e-3


SHAPES = {
    "sphere": coal.Sphere(0.07),
    "cylinder": coal.Cylinder(0.05, 0.3),
    "capsule": coal.Capsule(0.05, 0.3),
    "box": coal.Box(0.1, 0.2, 0.3),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_primitives_are_inside_their_hull(kind):
    shape = SHAPES[kind]
    rng = np.random.default_rng(0)
    ways = rng.normal(size=(4000, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    if kind == "box":
        surface = np.sign(ways) * shape.halfSide
    elif kind == "cylinder":
        flat = ways[:, :2] / np.linalg.norm(ways[:, :2], axis=1, keepdims=True)
        surface = np.column_stack([shape.radius * flat, shape.halfLength * np.sign(ways[:, 2])])
    else:
        half = shape.halfLength if kind == "capsule" else 0.0
        surface = shape.radius * ways + np.outer(np.sign(ways[:, 2]), [0.0, 0.0, half])
    sides, _ = find_hull_facets(surround_shape(shape, kind))
    away = sides[:, 3] + surface @ sides[:, :3].T
    assert away.min() > -1e-12
    # each facet touches, up to the density of the samples
    assert away.min(axis=0).max() < 2e-3
    if kind in ("cylinder", "box"):
        assert len(sides) <= PAIRED


URDF = """<robot name="r"><link name="base"/>
<link name="arm"><visual><geometry><box size="0.2 0.2 0.4"/></geometry></visual>{arm}</link>
<link name="tool">{tool}</link><link name="bare"/>
<joint name="first" type="continuous"><parent link="base"/><child link="arm"/>
<origin xyz="0 0 1"/><axis xyz="0 0 1"/></joint>
<joint name="second" type="continuous"><parent link="arm"/><child link="tool"/>
<origin xyz="0 0 0.5"/><axis xyz="0 0 1"/></joint>
<joint name="third" type="continuous"><parent link="tool"/><child link="bare"/>
<axis xyz="1 0 0"/></joint></robot>"""
BALL = '<collision><origin xyz="0.3 0 0"/><geometry><sphere radius="0.1"/></geometry></collision>'


def written(folder, arm="", tool="", **options):
    (folder / "r.urdf").write_text(URDF.format(arm=arm, tool=tool))
    return load_robot(folder / "r.urdf", **options)


def mesh(name):
    return f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'


def test_visual_geometry_stands_in_where_there_is_no_other(tmp_path):
    points = load_link_points(written(tmp_path), "arm")
    np.testing.assert_allclose(np.ptp(points, axis=0), [0.2, 0.2, 0.4])
    points = load_link_points(written(tmp_path, arm=BALL), "arm")
    assert np.ptp(points, axis=0).max() < 0.22
    # each link of the file by itself: the arm's visual box, the locked tool's collision
    robot = written(tmp_path, tool=BALL, locked={"second": np.pi / 2})
    points = load_link_points(robot, "arm")
    assert len(points) == 68
    np.testing.assert_allclose(points[:60].mean(axis=0), [0.0, 0.3, 0.5], atol=1e-12)


def tetrahedron_file(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    facets = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    corners = np.vstack([np.zeros(3), np.eye(3)])
    text = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*corners[k]) for k in facet)
        + "endloop\nendfacet\n"
        for facet in facets
    )
    path.write_text(f"solid t\n{text}endsolid t\n")


@pytest.mark.parametrize(
    "name", ["t.stl", "../meshes/t.stl", "package://shapes/t.stl", "package://shapes/../meshes/t.stl"]
)  # fmt: skip
def test_meshes_are_found_beside_the_urdf_and_in_packages(tmp_path, name):
    folder = tmp_path / "robots"
    for place in (folder, tmp_path / "meshes", tmp_path / "shapes"):
        tetrahedron_file(place / "t.stl")
    robot = written(folder, arm=mesh(name))
    assert np.unique(load_link_points(robot, "arm"), axis=0) == pytest.approx(
        np.array([(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)])
    )


def test_meshes_are_found_by_their_full_path_and_in_ros_packages(tmp_path, monkeypatch):
    far = tmp_path / "far" / "shapes" / "t.stl"
    tetrahedron_file(far)
    (tmp_path / "robots").mkdir()
    for name in (f"file://{far}", str(far)):
        assert len(load_link_points(written(tmp_path / "robots", arm=mesh(name)), "arm")) >= 4
    robot = written(tmp_path / "robots", arm=mesh("package://shapes/t.stl"))
    with pytest.raises(InputError, match="ROS_PACKAGE_PATH"):
        load_link_points(robot, "arm")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(far.parents[1]))
    assert len(load_link_points(robot, "arm")) >= 4


def test_missing_and_unreadable_geometry_is_named(tmp_path):
    robot = written(tmp_path, tool=mesh("package://shapes/gone.stl"))
    assert len(load_link_points(robot, "arm")) == 8  # another link's mesh does not matter
    with pytest.raises(InputError, match=r"r.urdf, line 3: there is no mesh .*shapes/gone.stl"):
        load_link_points(robot, "tool")
    with pytest.raises(InputError, match="link 'bare' has neither collision nor visual"):
        load_link_points(robot, "bare")
    with pytest.raises(InputError, match="there is no link 'amr'; did you mean 'arm'"):
        load_link_points(robot, "amr")
    (tmp_path / "bad.stl").write_text("no mesh at all")
    with pytest.raises(InputError, match=r"cannot be read: .*bad\.stl") as error:
        load_link_points(written(tmp_path, arm=mesh("bad.stl")), "arm")
    assert "\n" not in str(error.value)
    odd = "<collision><geometry><torus/></geometry></collision>"
    with pytest.raises(InputError, match="geometry cannot be read: ") as error:
        load_link_points(written(tmp_path, arm=odd), "arm")
    assert "\n" not in str(error.value)


def test_a_changed_file_is_noticed(tmp_path):
    robot = written(tmp_path)
    (tmp_path / "r.urdf").write_text(URDF.format(arm="", tool="").replace("second", "other"))
    with pytest.raises(InputError, match="no longer those of the robot"):
        load_link_points(robot, "arm")


def test_a_flat_shape_has_no_hull(tmp_path):
    flat = '<collision><geometry><box size="0.1 0.1 0"/></geometry></collision>'
    robot = written(tmp_path, arm=flat)
    base = base_parameters(build_idim(robot))
    with pytest.raises(InputError, match="'hull' of arm: the points lie in a plane"):
        Hull("arm").cones(ParameterSpace(base, np.ones(len(base.idim.parameters))))
