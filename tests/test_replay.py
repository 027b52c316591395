"""The replay of a trajectory: what is drawn is where the robot is, and the page stands alone."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import lxml.html
import numpy as np
import pinocchio as pin
import pytest
from browser import find_chromium
from robots import EXAMPLES, pin_model, pin_q, states, urdf

from dynident.core.arrays import Array
from dynident.excitation.certificate import certify_trajectory
from dynident.excitation.clearance import build_clearance
from dynident.excitation.design import Design, DesignTask
from dynident.excitation.excite import Excitation, excite
from dynident.excitation.limits import build_limits
from dynident.excitation.obstacles import OBSTACLES, Obstacle
from dynident.excitation.options import TrajectoryLimits, TrajectoryShape
from dynident.excitation.trajectories import Trajectory, fourier
from dynident.experiments.replay import MOST_FRAMES, choose_frame_times, render_replay_page
from dynident.robot.load import load_robot
from dynident.robot.model import Robot
from dynident.scenes.scene import (
    STEADY,
    build_capsule_rings,
    build_cylinder_rings,
    build_scene,
    build_wall,
    cluster_corners,
    compute_corner_normals,
    find_nearest_pairs,
    place_bodies,
    triangulate_rings,
)

FINGERS = {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.03}
AROUND = (
    Obstacle("table", OBSTACLES["box"]((0.5, 0.8, 0.3), (0.9, 0.0, 0.1), (0.0, 0.0, 0.3))),
    Obstacle("lamp", OBSTACLES["sphere"](0.12, (0.2, 0.5, 0.9))),
    Obstacle("hall", OBSTACLES["room"]((-2.0, -2.0, -0.05), (2.0, 2.0, 2.5))),
)


def excitation(
    robot: Robot,
    obstacles: Sequence[Obstacle] = (),
    seconds: float = 4.0,
    watched: bool = True,
    ramp: float = 0.0,
) -> Excitation:
    """A random motion as if it had been designed."""
    family = fourier(seconds, 5, ramp=ramp)
    rng = np.random.default_rng(3)
    C = 0.3 * rng.normal(size=(family.count, robot.n)) * family.scale[:, None]
    trajectory = Trajectory(family, C)
    limits = build_limits(robot, TrajectoryLimits(acceleration=np.full(robot.n, 20.0)))
    clearance = build_clearance(robot, obstacles) if watched else None
    certificate = certify_trajectory(trajectory, limits, None, clearance, robot.joint_names, 0.5)
    task = DesignTask(None, family, limits, None, clearance, "d", None)
    design = Design(task, trajectory, 0.0, certificate, (), "")
    around = tuple(obstacles)
    return Excitation(robot, design, None, TrajectoryShape(), 1, 1000.0, obstacles=around)


@cache
def ur5() -> Excitation:
    return excitation(load_robot(urdf("ur5")), AROUND)


@cache
def page() -> str:
    return render_replay_page(ur5())


def data_of(text: str) -> dict:
    element = lxml.html.fromstring(text.encode()).get_element_by_id("data")
    return json.loads(element.text)


def unpacked(text: str, kind: str) -> Array:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def mean_box(points: Array) -> Array:
    return np.array([points.min(axis=0), points.max(axis=0)])


# ------------------------------------------------------------------------------ poses


@pytest.mark.parametrize("name", ["ur5", "panda", "tx40", "tiago"])
def test_poses_are_those_of_forward_kinematics(name):
    robot = load_robot(urdf(name))
    model = pin_model(urdf(name))
    data = model.createData()
    q, _, _ = states(robot, 5)
    found = place_bodies(robot, q)
    for t in range(len(q)):
        pin.forwardKinematics(model, data, pin_q(model, q[t]))
        for k in range(robot.n):
            there = data.oMi[k + 1]
            assert np.allclose(found[t, k, :, :3], there.rotation, atol=1e-12)
            assert np.allclose(found[t, k, :, 3], there.translation, atol=1e-12)


@pytest.mark.parametrize(("name", "locked"), [("ur5", {}), ("panda", FINGERS)])
def test_links_are_drawn_where_the_file_has_them(name, locked):
    """Also those that are fixed to a body, or move with a joint that is locked."""
    path = urdf(name)
    robot = load_robot(path, locked=locked)
    model = pin_model(path)
    shapes = pin.buildGeomFromUrdf(
        model, str(path), pin.GeometryType.COLLISION, package_dirs=[str(path.parents[4])]
    )
    q, _, _ = states(robot, 1, seed=4)
    full = pin.neutral(model)
    for joint, value in zip(robot.joint_names, q[0], strict=True):
        full[model.joints[model.getJointId(joint)].idx_q] = value
    for joint, value in locked.items():
        full[model.joints[model.getJointId(joint)].idx_q] = value
    data, geometry = model.createData(), shapes.createData()
    pin.updateGeometryPlacements(model, data, shapes, geometry, full)
    theirs: dict[str, list[Array]] = {}
    for shape, where in zip(shapes.geometryObjects, geometry.oMg, strict=True):
        form = shape.geometry
        if type(form).__name__ == "Box":
            signs = np.array(list(product((-1.0, 1.0), repeat=3)))
            own = signs * form.halfSide
        else:
            own = np.array(form.vertices())
        points = own @ where.rotation.T + where.translation
        theirs.setdefault(model.frames[shape.parentFrame].name, []).append(points)
    placed = place_bodies(robot, q)[0]
    ours: dict[str, list[Array]] = {}
    for piece in build_scene(robot).pieces:
        at = placed[piece.body] if piece.body >= 0 else np.eye(3, 4)
        ours.setdefault(piece.name, []).append(piece.points @ at[:, :3].T + at[:, 3])
    assert set(ours) == set(theirs)
    for link, points in theirs.items():
        both = mean_box(np.vstack(ours[link])), mean_box(np.vstack(points))
        assert np.allclose(*both, atol=2e-3), link


# ------------------------------------------------------------------------------ shapes


def test_what_is_drawn_has_few_triangles_and_keeps_its_size():
    robot = load_robot(urdf("ur5"))
    full, few = build_scene(robot), build_scene(robot, most=2000)
    count = [sum(len(piece.faces) for piece in each.pieces) for each in (full, few)]
    assert count[1] < 0.6 * count[0]
    assert count[1] <= 400 * len(few.pieces)
    for a, b in zip(full.pieces, few.pieces, strict=True):
        size = np.ptp(a.points, axis=0).max()
        assert np.allclose(mean_box(a.points), mean_box(b.points), atol=0.1 * size)


def test_equal_corners_are_joined_and_no_triangle_comes_twice():
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    faces = np.array([[0, 1, 2], [3, 4, 5], [5, 3, 4], [0, 3, 1]])
    points, own = cluster_corners(square, faces, 1e-6)
    assert len(points) == 4
    assert len(own) == 2


def test_normals_are_smooth_where_the_surface_is_and_keep_its_edges():
    tip = np.array([0.0, 0.0, 0.5])
    points, faces = triangulate_rings(build_cylinder_rings(-tip, tip, 1.0))
    normals = compute_corner_normals(points, faces)
    flat = np.abs(normals[:, :, 2]) > 0.5
    assert np.array_equal(flat.all(axis=1), flat.any(axis=1))
    assert np.allclose(np.abs(normals[flat][:, 2]), 1.0)
    side = ~flat.all(axis=1)
    outward = points[faces[side]] * [1.0, 1.0, 0.0]
    assert np.allclose(normals[side], outward, atol=0.06)
    assert np.allclose(np.linalg.norm(normals, axis=2), 1.0)


def test_a_rod_is_a_capsule():
    points, faces = triangulate_rings(
        build_capsule_rings(np.zeros(3), np.array([0.0, 0.0, 1.0]), 0.2)
    )
    assert np.allclose(mean_box(points), [[-0.2, -0.2, -0.2], [0.2, 0.2, 1.2]])
    a, b, c = (points[faces[:, k]] for k in range(3))
    outward = np.sum(np.cross(b - a, c - a) * (a + b + c - [0.0, 0.0, 1.5]), axis=1)
    assert np.all(outward > 0.0)


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_walls_of_a_room_end_where_they_meet(scale):
    low, high = scale * np.array([-1.0, -0.5, 0.0]), scale * np.array([0.5, 0.7, 0.9])
    room = Obstacle("room", OBSTACLES["room"](low, high))
    walls = [p for p in build_scene(load_robot(urdf("ur5")), [room]).pieces if p.kind == "wall"]
    assert len(walls) == 6
    for piece in walls:
        for points in (piece.points, piece.lines.reshape(-1, 3)):
            assert np.all(points >= low - 1e-12)
            assert np.all(points <= high + 1e-12)
        assert np.allclose(
            np.ptp(piece.points, axis=0), (high - low) * (np.ptp(piece.points, axis=0) > 0)
        )
        a, b, c = piece.points[piece.faces[0]]
        inward = 0.5 * (low + high) - a
        assert np.cross(b - a, c - a) @ inward > 0.0


def test_a_plane_alone_is_a_square_around_the_base():
    corners, lines = build_wall(np.array([0.0, 0.0, 1.0]), -0.2, [], 1.0, 0.25)
    assert np.allclose(mean_box(corners), [[-1.0, -1.0, -0.2], [1.0, 1.0, -0.2]])
    assert len(lines) == 4 + 2 * 7


# ----------------------------------------------------------------- robots without shapes


def test_a_table_of_joints_is_a_stick_figure_and_says_so():
    robot = load_robot(EXAMPLES / "tx40" / "tx40_dh.toml")
    drawn = build_scene(robot)
    assert "stick figure" in drawn.said[0]
    assert "no URDF" in drawn.said[0]
    assert {piece.body for piece in drawn.pieces} == {-1, *range(robot.n)}
    # the arm's rod leads from one joint to the next
    elbow = robot.joints[2]
    rods = [piece for piece in drawn.pieces if piece.body == elbow.parent - 1]
    reached = max(float((piece.points @ elbow.translation).max()) for piece in rods)
    assert reached >= elbow.translation @ elbow.translation


def test_a_urdf_without_its_meshes_is_a_stick_figure_that_names_them():
    drawn = build_scene(load_robot(urdf("tx40")))
    assert "stick figure" in drawn.said[0]
    assert "base_link.stl" in drawn.said[0]
    assert drawn.pieces


@pytest.mark.long
def test_a_designed_trajectory_of_a_stick_figure_is_played():
    robot = load_robot(EXAMPLES / "tx40" / "tx40_dh.toml")
    found = excite(robot, acceleration=15.0, starts=1, iterations=2, time=5.0, collision=False)
    text = render_replay_page(found)
    assert "A stick figure" in text
    assert data_of(text)["nearest"] is None
    assert "Distances are not checked" in text


# ------------------------------------------------------------------------------ distances


def test_the_nearest_pair_is_the_nearest():
    found = ur5()
    clearance = found.design.task.clearance
    q = found.trajectory.at(np.linspace(0.0, 4.0, 30))
    got = find_nearest_pairs(clearance, q)
    d = clearance.distances(q)
    low, high = d.min(axis=0), d.max(axis=0)
    counted = high - low >= STEADY * np.abs(low)
    assert np.array_equal(got.distance, d[:, counted].min(axis=1))
    for t, k in enumerate(np.argmin(np.where(counted, d, np.inf), axis=1)):
        assert got.names[got.pair[t]] == clearance.pairs[k].names
    gap = np.linalg.norm(got.ends[:, 1] - got.ends[:, 0], axis=1)
    assert np.allclose(gap, np.abs(got.distance), atol=1e-5)
    for names, least, largest in got.steady:
        k = [pair.names for pair in clearance.pairs].index(names)
        assert (least, largest) == (low[k], high[k])
        assert np.any(d[:, k] < got.distance)


def test_when_nothing_moves_the_nearest_pair_is_named_all_the_same():
    clearance = ur5().design.task.clearance
    got = find_nearest_pairs(clearance, np.zeros((3, 6)))
    assert got.steady == ()
    assert np.array_equal(got.distance, clearance.distances(np.zeros((3, 6))).min(axis=1))


# ------------------------------------------------------------------------------ the page


def test_the_page_has_the_poses_of_every_frame():
    found, data = ur5(), data_of(page())
    times = choose_frame_times(found)
    assert data["count"] == len(times) == 201
    assert data["start"] + data["step"] * (data["count"] - 1) == pytest.approx(times[-1])
    numbers = unpacked(data["poses"], "<i2").reshape(len(times), found.robot.n, 3, 4)
    there = place_bodies(found.robot, found.trajectory.at(times))
    assert np.allclose(numbers[..., :3] * data["unit"], there[..., :3], atol=2e-5)
    assert np.allclose(numbers[..., 3] * data["scale"], there[..., 3], atol=5e-5)
    q = unpacked(data["q"], "<f4").reshape(len(times), -1)
    assert np.allclose(np.radians(q), found.trajectory.at(times), atol=1e-6)
    (trace,) = [unpacked(each, "<f4").reshape(-1, 3) for each in data["traces"]]
    assert len(trace) == data["fine"] * (len(times) - 1) + 1
    body, point = build_scene(found.robot).hands[0]
    hand = there[:, body, :, :3] @ point + there[:, body, :, 3]
    assert np.allclose(trace[:: data["fine"]], hand, atol=1e-6)


def test_the_page_has_the_obstacles():
    data = data_of(page())
    kinds = {(piece["name"], piece["kind"]) for piece in data["pieces"] if piece["kind"] != "link"}
    assert kinds == {("table", "obstacle"), ("lamp", "obstacle"), ("hall", "wall")}
    lamp = next(piece for piece in data["pieces"] if piece["name"] == "lamp")
    points = unpacked(lamp["points"], "<f4").reshape(-1, 3)
    assert np.allclose(np.linalg.norm(points - [0.2, 0.5, 0.9], axis=1), 0.12, atol=1e-6)
    faces, normals = unpacked(lamp["faces"], "<u2"), unpacked(lamp["normals"], "i1")
    assert faces.max() == len(points) - 1
    assert len(normals) == 3 * len(faces)


def test_the_page_says_what_is_proved():
    text = lxml.html.fromstring(page().encode()).text_content()
    kept = [each for each in ur5().design.certificate.kept if each.what == "clearance"]
    closest = min(kept, key=lambda each: each.seen)
    bound = min(each.reached for each in kept)
    assert f"never nearer than {1000.0 * bound:.1f} mm" in text
    assert f"measured: {1000.0 * closest.seen:.1f} mm ({closest.where}, about" in text
    assert ("Not proved" in text) == (not all(each.ok for each in kept))


def test_the_page_needs_nothing_else():
    assert not re.search(r"https?:", page())
    root = lxml.html.fromstring(page().encode())
    assert root.xpath("//*[@src or (@href and not(starts-with(@href, '#')))]") == []
    assert root.xpath("//link | //iframe | //img") == []
    assert "default-src 'none'" in page()


@pytest.mark.long
def test_the_page_is_small_and_the_same_each_time():
    assert len(page()) < 1_000_000
    assert render_replay_page(ur5()) == page()
    robot = load_robot(urdf("panda"), locked=FINGERS)
    assert len(render_replay_page(excitation(robot, AROUND, 20.0))) < 2_000_000


def test_long_motions_have_fewer_frames_and_ramps_are_shown():
    robot = load_robot(EXAMPLES / "tx40" / "tx40_dh.toml")
    assert len(choose_frame_times(excitation(robot, seconds=600.0, watched=False))) == MOST_FRAMES
    times = choose_frame_times(excitation(robot, watched=False, ramp=1.0))
    assert (times[0], times[-1]) == (-1.0, 5.0)


def test_names_are_escaped():
    hostile = "</script><script>alert(1)</script><!--"
    robot = load_robot(EXAMPLES / "tx40" / "tx40_dh.toml")
    joints = (replace(robot.joints[0], name=hostile), *robot.joints[1:-1])
    joints += (replace(robot.joints[-1], link=hostile),)
    robot = replace(robot, name=hostile, joints=joints)
    obstacles = [Obstacle(hostile, OBSTACLES["sphere"](0.1, (1.0, 0.0, 0.0)))]
    text = render_replay_page(excitation(robot, obstacles, watched=False))
    root = lxml.html.fromstring(text.encode())
    assert len(root.xpath("//script")) == 2
    assert root.xpath("//h1")[0].text == hostile
    data = data_of(text)
    assert data["joints"][0]["name"] == hostile
    assert hostile in {piece["name"] for piece in data["pieces"]}
    assert "<!--" not in text


@pytest.mark.long
def test_the_page_runs_in_a_browser(tmp_path):
    browser = find_chromium()
    place = tmp_path / "replay.html"
    place.write_text(page(), "utf-8")
    done = subprocess.run(
        [
            browser, "--headless=new", "--no-sandbox", "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader", f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=2000", "--dump-dom", f"{place.as_uri()}#t=1.5",
        ],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    root = lxml.html.fromstring(done.stdout)
    assert root.get_element_by_id("clock").text == "1.50 s of 4.00 s"
    rows = root.get_element_by_id("joints").findall("tr")
    angle = np.degrees(ur5().trajectory.at(np.array([1.5]))[0])
    shown = [float(row.findall("td")[0].text.split()[0].replace("−", "-")) for row in rows]
    assert np.allclose(shown, angle, atol=0.051)
    assert root.get_element_by_id("distance").text.endswith(" mm")
