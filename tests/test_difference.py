"""Two results side by side: common combinations, joint standard deviations, one log for both."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import toy
from commands import ask, tell
from tables import write_joints

from dynident.api import identify
from dynident.cli import run
from dynident.core.errors import InputError
from dynident.dynamics.base import base_parameters
from dynident.dynamics.equations import Observability
from dynident.dynamics.idim import build_idim
from dynident.export.urdf import render_urdf
from dynident.recording.prepare import prepare
from dynident.recording.read import read_log
from dynident.regression.problem import Problem
from dynident.report.difference import compare_results, find_common_base
from dynident.report.fit import Fit
from dynident.robot import load_robot
from dynident.study.fits import read_result

NOISE = 0.3


@cache
def fit(
    seed: int = 0,
    method: str = "pc-idim-ls",
    friction: str = "coulomb-viscous",
    robot: str = "arm",
    n: int = 2,
) -> Fit:
    own = toy.arm(n)
    if robot == "longer":
        joints = own.joints
        first = replace(joints[1], translation=1.2 * joints[1].translation)
        own = replace(own, joints=(joints[0], first))
    recording, _ = toy.log(own, 6.0, NOISE, seed)
    named = replace(prepare(recording, 5.0), name=f"run{seed}.csv")
    return identify(Problem(own, named, friction), method, doctor=False)


def test_what_bounds_hold_is_no_difference():
    """Whose values are where the bounds are, with what the logs leave open beside them."""
    fits = []
    for seed in range(4):
        own = toy.arm(2)
        samples = prepare(toy.log(own, 6.0, NOISE, seed)[0], 5.0)
        problem = Problem(own, samples, "stribeck(vs=0.1)")
        fits.append(identify(problem, doctor=False, bootstrap=0))
    held = [each for each in fits if "fs1 > 0" in each.estimate.active][:2]
    assert len(held) == 2
    found = held[0].compare(held[1])
    (pair,) = (each for each in found.parameters if each.name == "fs1")
    assert pair.values[0] != pair.values[1]
    assert pair.stds == tuple(
        own.std for each in held for own in each.estimate.bounded if own.name == "fs1"
    )
    assert abs(pair.deviations) < 1e-3
    assert found.test.p_value > 0.01
    shown = found.summary(full=True)
    assert re.search(r"^drive .* fs A", shown, re.M)
    assert re.search(r"^joint_1 .* < 0\.\d\d", shown, re.M)
    assert not re.search(r"\d\.\d{10}", shown)


def test_a_result_does_not_differ_from_itself():
    found = fit().compare(fit())
    assert [pair.name for pair in found.parameters] == list(fit().base.names)
    assert all(pair.difference == 0.0 == pair.deviations for pair in found.parameters)
    assert found.test.statistic == 0.0
    assert found.shared_logs == ("run0.csv",)
    assert "both were fitted to run0.csv" in found.notes[0]
    assert len(repr(found)) < 100
    assert "print(found.summary())" in repr(found)


def test_masses_and_drives_have_error_bars_and_units_and_rounding_is_no_difference():
    found = compare_results(fit(seed=1), None)
    text = found.summary()
    mass, file = text.partition("mass A")[2].splitlines()[1].split()[1:3]
    assert re.fullmatch(r"[\d.]+\(\d+\)", mass)
    assert "(" not in file
    assert "units     Ia [kg m^2]; fv [Nm s/rad]; fc, off [Nm]" in text
    assert "mass [kg]" in text
    near = fit().phi.copy()
    near[:, 1:4] += 1e-9 * near[:, :1]
    moved = replace(fit(), estimate=replace(fit().estimate, theta=set_bodies(fit(), near)))
    shifts = fit().compare(moved).summary().partition("dx mm")[2].splitlines()[1].split()
    assert shifts[3:6] == ["0", "0", "0"]


def set_bodies(result: Fit, phi: np.ndarray) -> np.ndarray:
    """Standard parameters with other bodies."""
    theta = result.theta.copy()
    theta[: result.idim.inertial] = phi.ravel()
    return theta


@pytest.mark.parametrize("method", ["pc-idim-ls", "wls"])
def test_the_same_robot_on_two_logs_differs_by_its_error_bars(method):
    one, other = fit(0, method), fit(1, method)
    found = one.compare(other)
    shift = other.estimate.beta - one.estimate.beta
    joint = np.sqrt(one.estimate.covariance.std**2 + other.estimate.covariance.std**2)
    assert [pair.deviations for pair in found.parameters] == pytest.approx(shift / joint)
    assert found.notes == ()
    covariance = one.estimate.covariance.matrix + other.estimate.covariance.matrix
    assert found.test.statistic == pytest.approx(shift @ np.linalg.solve(covariance, shift))
    assert found.test.p_value > 1e-3
    assert "the same base parameters: not rejected" in " ".join(found.summary().split())


def test_what_two_kinds_of_logs_determine_is_common():
    robot = replace(toy.arm(2), floating=True, nominal=toy.arm(3).nominal)
    idim = build_idim(robot)
    whole = base_parameters(idim)
    joints = base_parameters(idim, observed=[Observability("joints")])
    base = base_parameters(idim, observed=[Observability("base")])
    assert find_common_base(whole, whole) is whole
    theta = np.random.default_rng(0).normal(size=len(idim.parameters))
    for one, other in ((whole, joints), (joints, base), (base, whole)):
        common = find_common_base(one, other)
        assert 0 < common.count <= min(one.count, other.count)
        for each in (one, other):
            turned = common.matrix[:, each.kept] @ (each.matrix @ theta)
            assert turned == pytest.approx(common.matrix @ theta)
    # what the fewer equations determine is all common to those that have more
    assert find_common_base(whole, joints).count == joints.count


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"friction": "viscous"}, "their friction models differ: coulomb-viscous, viscous"),
        ({"robot": "longer"}, "the geometry of their robots differs at joint joint_2"),
    ],
)
def test_what_does_not_mean_the_same_is_not_compared(other, why):
    found = fit().compare(fit(1, **other))
    assert found.apart == why
    assert (found.parameters, found.test) == ((), None)
    text = found.summary()
    assert f"note parameters are not compared: {why}" in " ".join(text.split())
    assert "mass A" in text
    assert "torque error %" in text


def test_shapes_of_friction_are_compared_too():
    found = fit(0, "wls", "cube-root").compare(fit(1, "wls", "cube-root"))
    assert not found.apart
    nonlinear = fit(0, "wls", "stribeck")
    names = [pair.name for pair in nonlinear.compare(nonlinear).parameters]
    assert names[-len(nonlinear.estimate.shape.names) :] == list(nonlinear.estimate.shape.names)


def test_other_robots_and_other_things_are_refused():
    with pytest.raises(InputError, match="only results of the same kind of robot"):
        fit().compare(fit(n=3))
    with pytest.raises(InputError, match=r"compare takes Result, not str"):
        fit().compare("result.json")  # type: ignore[arg-type]


def test_text_fits_a_terminal_and_says_what_it_leaves_out():
    one, other = fit(0, n=3), fit(1, n=3)
    found = one.compare(other)
    short, whole = found.summary(), found.summary(full=True)
    assert max(len(line) for line in [*short.split("\n"), *whole.split("\n")]) <= 80
    assert f"12 of {one.base.count}" in short
    assert all(name in whole for name in one.base.names)


# ---------------------------------------------------------------------- the command line


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("difference")
    robot = toy.arm(2)
    (place / "arm.urdf").write_bytes(render_urdf(robot, robot.nominal)[0])
    for seed in range(3):
        recording, _ = toy.log(robot, 6.0, NOISE, seed)
        signals = {"q": recording.q, "tau": recording.tau}
        write_joints(place / f"run{seed}.csv", robot.joint_names, toy.RATE, **signals)
    before = os.getcwd()
    os.chdir(place)
    for name, log, bandwidth in (("A", "run0.csv", "5"), ("B", "run1.csv", "6")):
        flags = ["--robot", "arm.urdf", "--log", log, "--bandwidth", bandwidth]
        assert run(["identify", *flags, "-o", name, "--no-report"]) == 0
    os.chdir(before)
    return place


@pytest.fixture
def inside(place, monkeypatch):
    monkeypatch.chdir(place)


RESULTS = ["A/result.json", "B/result.json"]


@pytest.mark.long
def test_the_command_takes_results_and_measures_both_on_a_log(inside, capfd):
    document = ask(capfd, ["diff", *RESULTS, "--log", "run2.csv"])
    assert document["schema"] == "dynident.difference/1"
    stored = [read_result(path) for path in RESULTS]
    for row, name, a in zip(
        document["parameters"], stored[0].base.names, stored[0].estimate.beta, strict=True
    ):
        assert row["name"] == name
        assert row["A"]["value"] == pytest.approx(a)
        assert row["difference"] == pytest.approx(row["B"]["value"] - row["A"]["value"])
    assert [row["link"] for row in document["standard"]] == list(stored[0].robot.links)
    (log,) = document["logs"]
    for key, path in zip("AB", RESULTS, strict=True):
        (own,) = ask(capfd, ["validate", path, "run2.csv", "--lowpass", "10"])["validation"]
        assert log[key] == own
    text = tell(capfd, ["diff", *RESULTS, "--log", "run2.csv", "--full"]).out
    assert text.startswith("A           toy, pc-idim-ls")
    assert "A L1" in text
    assert "B L1" in text


@pytest.mark.long
def test_more_results_are_compared_with_the_first(inside, capfd):
    document = ask(capfd, ["diff", *RESULTS, RESULTS[0]])
    assert document["schema"] == "dynident.differences/1"
    second, third = document["differences"]
    assert ask(capfd, ["diff", *RESULTS]) == second
    assert all(row["difference"] == 0.0 for row in third["parameters"])
    text = tell(capfd, ["diff", *RESULTS, RESULTS[0]]).out
    heads = [f"{letter}           {path}" for letter, path in zip("ABC", [*RESULTS, RESULTS[0]])]
    assert text.startswith("\n".join(heads))
    assert "C - A" in text
    assert "same        A and C have the same base parameters" in text
    assert max(map(len, text.split("\n"))) <= 80


def test_a_result_alone_is_compared_with_its_robot_file(inside, capfd):
    own, robot = read_result(RESULTS[0]), load_robot("arm.urdf")
    document = ask(capfd, ["diff", RESULTS[0], "--log", "run2.csv"])
    assert [each["method"] for each in document["results"]] == ["pc-idim-ls"]
    for row in document["standard"]:
        file = robot.nominal[robot.links.index(row["link"])]
        assert row["B"]["mass"] == pytest.approx(file[0])
    told = {row["name"]: row for row in document["parameters"]}
    inertial = own.base.matrix[:, : own.idim.inertial] @ robot.nominal.ravel()
    drives = [k for k, name in enumerate(own.base.names) if name.startswith(("fv", "fc", "off"))]
    assert not {own.base.names[k] for k in drives} & {*told}  # of which a file says nothing
    for name, value in zip(own.base.names, inertial, strict=True):
        if name in told:
            assert told[name]["B"] == {"value": pytest.approx(value), "std": 0.0,
                                       "interval_95": [pytest.approx(value)] * 2}  # fmt: skip
            shift = value - told[name]["A"]["value"]
            assert told[name]["difference_in_std"] == pytest.approx(shift / told[name]["A"]["std"])
    assert len(told) + len(drives) == own.base.count
    text = tell(capfd, ["diff", RESULTS[0], "--log", "run2.csv"]).out
    assert "note" in text
    assert "Izz1R" in text.partition("note")[2]
    assert "B           the robot file's inertials" in text
    assert "B on run2.csv" in text
    (nominal,) = own.nominal[:1]
    assert f"{nominal.overall_percent:.1f}"[:3] in text


def test_a_stored_result_is_compared_with_a_fresh_one(inside):
    robot = load_robot("arm.urdf")
    fresh = identify(Problem(robot, prepare(read_log("run0.csv", robot), 5.0)))
    found = fresh.compare(read_result("A/result.json"))
    assert found.shared_logs == ("run0.csv",)
    assert max(abs(pair.deviations) for pair in found.parameters) < 1e-6
    assert found.to_dict()["test"]["p_value"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["diff", *RESULTS, "--rate", "100"], "--bad-rows and --drop-below go with --log"),
        (["diff", "A/result.json", "arm.urdf"], "arm.urdf: is not JSON"),
        (["diff", *RESULTS, "--log", "no.csv"], "no.csv"),
        (["diff", *27 * RESULTS[:1]], "at most 26"),
        (["compare", *RESULTS[:1]], "A/result.json: is not a study; dynident diff"),
    ],
)
def test_what_cannot_be_compared_is_refused(inside, capfd, argv, words):
    out, err = tell(capfd, argv, code=2)
    assert (out, err.count("\n")) == ("", 1)
    assert words in err
