"""Bodies to look at: ellipsoids are the bodies', and move as a log did."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from functools import cache

import lxml.html
import numpy as np
import pinocchio as pin
import pytest
import toy
from robots import EXAMPLES, pin_model, states, urdf

from dynident.api import identify
from dynident.core.arrays import Array
from dynident.core.inertia import from_com, to_com
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.report.bodies import LONGEST, POSES, cut_motion, render_bodies
from dynident.report.fit import Fit
from dynident.report.sections import render_result_page
from dynident.robot.load import load_robot
from dynident.scenes.ellipsoids import find_half_axes, list_ellipsoids
from dynident.scenes.scene import place_bodies
from dynident.study.run import run_study
from dynident.study.study import read_study


@cache
def fit(method: str = "pc-idim-ls") -> Fit:
    robot = toy.arm(2)
    recording, _ = toy.log(robot, 6.0, 0.3, 0)
    samples = replace(prepare(recording, 5.0), name="run.csv")
    return identify(Problem(robot, samples), method, doctor=False)


def read_data(text: str) -> dict:
    return json.loads(lxml.html.fromstring(text.encode()).get_element_by_id("data").text)


def unpack(text: str, kind: str) -> Array:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


@pytest.mark.parametrize("seed", range(3))
def test_an_ellipsoid_has_the_mass_centre_and_inertia_of_its_body(seed):
    rng = np.random.default_rng(seed)
    half = rng.uniform(0.02, 0.5, 3)
    turn, mass, com = pin.exp3(rng.normal(size=3)), rng.uniform(0.1, 20.0), rng.normal(size=3)
    squares = half**2
    inertia = turn @ np.diag(0.2 * mass * (np.sum(squares) - squares)) @ turn.T
    centre, axes = find_half_axes(from_com(mass, com, inertia))
    np.testing.assert_allclose(centre, com)
    np.testing.assert_allclose(axes @ axes.T, turn @ np.diag(squares) @ turn.T, rtol=1e-9)
    assert np.linalg.det(axes) == pytest.approx(np.prod(half))


def test_bodies_that_cannot_exist_have_none():
    robot = toy.arm(3)
    bodies = robot.nominal.copy()
    bodies[1, 4] = -1.0
    assert [each.link for each in list_ellipsoids(robot, bodies, "file")] == [
        robot.links[0],
        robot.links[2],
    ]


def test_a_floating_robot_is_where_its_base_is():
    path = urdf("solo12")
    robot = load_robot(path, floating=True)
    model = pin_model(path, floating=True)
    data = model.createData()
    rng = np.random.default_rng(1)
    joints, _, _ = states(replace(robot, floating=False, nominal=robot.nominal[1:]), 3)
    base = np.hstack([rng.normal(size=(3, 3)), rng.normal(size=(3, 4))])
    base[:, 3:] /= np.linalg.norm(base[:, 3:], axis=1, keepdims=True)
    found = place_bodies(robot, np.hstack([base, joints]))
    assert found.shape == (3, robot.n + 1, 3, 4)
    for t in range(3):
        pin.forwardKinematics(model, data, np.concatenate([base[t], joints[t]]))
        for body in range(robot.n + 1):
            there = data.oMi[1 if body == robot.n else body + 2]
            np.testing.assert_allclose(found[t, body, :, :3], there.rotation, atol=1e-12)
            np.testing.assert_allclose(found[t, body, :, 3], there.translation, atol=1e-12)


def test_the_page_has_both_sets_of_bodies_and_the_motion_of_the_log():
    (log,) = fit().samples
    data = read_data(render_bodies(fit(), log))
    sorts = {"identified": fit().phi, "file": fit().robot.nominal}
    assert len(data["ellipsoids"]) == 2 * fit().robot.n
    for sort, bodies in sorts.items():
        own = [each for each in data["ellipsoids"] if each["sort"] == sort]
        assert [each["body"] for each in own] == list(range(fit().robot.n))
        for each, phi in zip(own, bodies, strict=True):
            mass, com, inertia = to_com(phi)
            axes = np.array(each["axes"]).T
            moment = 0.2 * mass * axes @ axes.T
            np.testing.assert_allclose(each["centre"], com, atol=1e-12)
            np.testing.assert_allclose(
                np.trace(moment) * np.eye(3) - moment, inertia, rtol=1e-6, atol=1e-12
            )
    stride = round(data["step"] * log.rate)
    start, stop = log.runs[0]
    q = np.degrees(log.q[start:stop:stride])[: data["count"]]
    np.testing.assert_allclose(unpack(data["q"], "<f4").reshape(q.shape), q, atol=1e-4)
    assert 0.0 <= stop - start - 1 - stride * (data["count"] - 1) < stride
    poses = place_bodies(fit().robot, log.q[start:stop:stride])
    for each in data["ellipsoids"]:  # all that moves is in the picture
        ends = np.array(each["centre"]) + np.vstack([each["axes"], -np.array(each["axes"])])
        body = poses[:, each["body"]]
        there = ends @ np.swapaxes(body[..., :3], 1, 2) + body[:, None, :, 3]
        away = np.linalg.norm(there - data["view"]["middle"], axis=-1)
        assert away.max() <= data["view"]["radius"] + 1e-9


def test_long_logs_are_cut_to_their_longest_run():
    (log,) = fit().samples
    rate = (len(log.q) - 1) / 100.0
    slow = replace(log, rate=rate, runs=((0, 9), (9, len(log.q))))
    motion = cut_motion(slow, 2)
    assert motion.step * (len(motion.q) - 1) == pytest.approx(LONGEST, abs=motion.step)
    # of many bodies fewer frames have room
    many = cut_motion(slow, POSES // 100)
    assert len(many.q) == 101
    assert many.step == motion.step
    np.testing.assert_array_equal(motion.q[0], log.q[9])
    assert len(motion.path) == motion.fine * (len(motion.q) - 1) + 1


def test_the_report_holds_it_folded_and_stands_without_the_logs():
    shown = [
        lxml.html.document_fromstring(render_result_page(fit(), (), gone=gone))
        for gone in ("", "they are gone")
    ]
    for root, words in zip(shown, ("motion of run.csv", "at zero positions"), strict=True):
        (frame,) = root.xpath("//section[@id='links']/details[not(@open)]/iframe")
        assert frame.get("title")
        assert words in frame.get("srcdoc")
    assert not render_bodies(fit("wls"), None)
    assert "<iframe" not in render_result_page(fit("wls"), ())


@pytest.mark.long
def test_the_page_of_a_six_joint_arm_stays_small():
    found = run_study(read_study(EXAMPLES / "tx40" / "study.toml"))
    page = found.render_page()
    assert b"<iframe" in page
    assert len(page) < 1_500_000
