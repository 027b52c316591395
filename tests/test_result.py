"""result.json: every key that is scripted against, its type, and numbers that are numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import toy

import dynident as di
from dynident.api import identify, validate
from dynident.consistency.constraints import Bounds, Fixed, Hull, LinkMass, Payload, TotalMass
from dynident.control.controller import pd
from dynident.core.errors import InputError
from dynident.core.inertia import find_smallest_eigenvalue, from_com
from dynident.core.plain import replace_nonfinite, to_json
from dynident.estimators.estimate import ShapeEstimate, Track
from dynident.fit.json import SCHEMA, serialise_result
from dynident.recording.prepare import prepare
from dynident.recording.read import read_log
from dynident.regression.problem import Problem
from dynident.report.fit import Fit
from dynident.robot import load_robot
from dynident.study.compare import compare
from dynident.study.doctor import doctor
from dynident.study.fits import read_result
from dynident.study.tracked import track

NUMBER = (int, float)

FIGURE = {
    "rows": str,
    "lowpass_hz": (float, type(None)),
    "joints": [{"name": str, "relative_error_percent": float, "rmse": float}],
    "overall_relative_error_percent": float,
}
DOCUMENT = {
    "schema": str,
    "method": str,
    "settings": dict,
    "warnings": [str],
    "covariance": str,
    "base_count": int,
    "robot": {"name": str, "joints": [str], "dof": int},
    "parameters": [
        {
            "name": str,
            "value": float,
            "std": float,
            "relative_std_percent": (float, type(None)),
            "regrouping": str,
        }
    ],
    "standard": [
        {
            "link": str,
            "mass": float,
            "com": [float],
            "inertia_com": [float],
            "min_eigenvalue": float,
        }
    ],
    "joints": [{"name": str, "Ia": (float, type(None)), "friction": dict}],
    "fit": {
        "identification": [FIGURE],
        "nominal": [FIGURE],
        "validation": [{"log": str, "entries": [FIGURE], "nominal": [FIGURE]}],
    },
    "consistent": bool,
    "min_pseudo_inertia_eigenvalue": (float, type(None)),
    "certificate": {"primal": float, "dual": float, "gap": float},
    "active_constraints": [str],
    "restriction": (dict, type(None)),
    "iterations": int,
    "converged": bool,
    "message": str,
    "rank": int,
    "condition_number": float,
    "timings": dict,
}
"""Section 5 of the design, as types; other keys may stand beside these."""
RESTRICTION = {
    "multipliers": [{"name": str, "value": float}],
    "gradient": float,
    "cost": float,
    "freedom": int,
    "p_value": float,
    "shift": float,
    "moved": str,
    "by_data": bool,
    "verdict": str,
}
"""What active constraints do."""


@cache
def result(method: str = "pc-idim-ls", nominal: bool = True, zero: bool = False) -> Fit:
    robot = toy.arm(2, nominal=nominal)
    bodies = toy.arm(2).nominal
    logs = [toy.log(robot, 6.0, 0.3, seed, bodies=bodies)[0] for seed in (0, 5)]
    held_out = prepare(logs[1], 5.0)
    if zero:
        object.__setattr__(held_out, "tau", np.zeros_like(held_out.tau))
    return identify(Problem(robot, prepare(logs[0], 5.0)), method, validation=[held_out])


@cache
def document(method: str = "pc-idim-ls", nominal: bool = True) -> dict[str, Any]:
    return serialise_result(result(method, nominal))


def check(value: Any, shape: Any, place: str) -> None:
    if isinstance(shape, dict):
        assert isinstance(value, dict), place
        for key, inner in shape.items():
            assert key in value, f"{place}.{key}"
            check(value[key], inner, f"{place}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), place
        for k, entry in enumerate(value):
            check(entry, shape[0], f"{place}[{k}]")
    else:
        assert isinstance(value, shape), f"{place} is {value!r}"
        assert not (isinstance(value, bool) and shape is int), place


def test_every_key_is_there_with_its_type():
    assert SCHEMA == "dynident.result/1"
    assert document()["schema"] == SCHEMA
    check(document(), DOCUMENT, "result")


@pytest.mark.long
def test_a_method_without_standard_parameters_has_nulls_there():
    expected = {**DOCUMENT, "standard": type(None), "certificate": type(None)}
    check(document("wls"), expected, "result")
    assert document("wls")["min_pseudo_inertia_eigenvalue"] is None
    assert document("wls")["consistent"] is False


def test_counts_and_names_agree():
    found = document()
    assert found["base_count"] == len(found["parameters"]) == result().base.count
    assert found["robot"]["joints"] == [row["name"] for row in found["joints"]]
    assert [row["link"] for row in found["standard"]] == list(result().robot.links)
    assert all(len(row["com"]) == 3 and len(row["inertia_com"]) == 6 for row in found["standard"])
    for figure in (*found["fit"]["identification"], *found["fit"]["validation"][0]["entries"]):
        assert [joint["name"] for joint in figure["joints"]] == found["robot"]["joints"]
    kinds = [figure["rows"] for figure in found["fit"]["identification"]]
    assert kinds == ["fitted", "all samples"]
    assert found["fit"]["identification"][0]["lowpass_hz"] is None
    assert found["fit"]["identification"][1]["lowpass_hz"] == found["settings"]["lowpass_hz"]


def test_standard_rows_are_the_bodies():
    bodies = []
    for row in document()["standard"]:
        xx, xy, yy, xz, yz, zz = row["inertia_com"]
        bodies.append(from_com(row["mass"], row["com"], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    np.testing.assert_allclose(bodies, result().phi, rtol=1e-10, atol=1e-12)
    own = [row["min_eigenvalue"] for row in document()["standard"]]
    np.testing.assert_allclose(own, find_smallest_eigenvalue(np.array(bodies)), rtol=1e-6)
    smallest = document()["min_pseudo_inertia_eigenvalue"]
    assert smallest == pytest.approx(find_smallest_eigenvalue(np.array(bodies)).min())
    assert document()["consistent"] is True


def test_settings_name_all_that_shaped_the_result():
    settings = document()["settings"]
    for key in ("friction", "rotor", "method", "prior", "lowpass_hz", "sigma", "gravity"):
        assert key in settings
    for log in (*settings["logs"], *settings["validation"]):
        for key in ("log", "rate_hz", "bandwidth_hz", "position_hz", "torque_hz", "decimation"):
            assert key in log
    assert settings["prior"] == "nominal"
    assert document(nominal=False)["settings"]["prior"] == "none"
    assert document(nominal=False)["fit"]["nominal"] == []


def test_timings_are_seconds_of_stages_within_the_total():
    timings = document()["timings"]
    stages = {stage: seconds for stage, seconds in timings.items() if stage != "total"}
    assert {"rows", "estimate", "validation"} <= set(stages)
    assert all(seconds >= 0.0 for seconds in stages.values())
    assert sum(stages.values()) <= timings["total"]


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))


@pytest.mark.parametrize("method", ["pc-idim-ls", "wls"])
def test_there_is_no_nan_and_no_infinity(method):
    assert strict(to_json(document(method))) == document(method)


def test_errors_of_a_log_without_torque_are_null():
    held_out = serialise_result(result(zero=True))["fit"]["validation"][0]["entries"]
    assert all(figure["overall_relative_error_percent"] is None for figure in held_out)
    assert all(joint["rmse"] > 0.0 for figure in held_out for joint in figure["joints"])


def test_finite_replaces_what_json_has_no_word_for():
    given = {"a": [1.0, np.float64("nan"), (float("inf"), -np.inf)], "b": "nan", "c": True, "d": 3}
    assert replace_nonfinite(given) == {
        "a": [1.0, None, [None, None]],
        "b": "nan",
        "c": True,
        "d": 3,
    }
    with pytest.raises(ValueError, match="Out of range"):
        to_json({"a": float("nan")})


# constrained results


@cache
def held(**options: Any) -> Fit:
    """A result that a bound and a mass hold back."""
    robot = toy.arm(2)
    problem = Problem(robot, prepare(toy.log(robot, 6.0, 0.3, 0)[0], 5.0))
    constraints = (Bounds(("fv2",), lower=3.0), LinkMass(("link_2",), value=2.5))
    return identify(problem, "pc-idim-ls", constraints=constraints, **options)


def test_active_constraints_have_their_own_part():
    found = serialise_result(held())
    check(found, {**DOCUMENT, "fit": dict, "restriction": RESTRICTION}, "result")
    restriction = found["restriction"]
    names = [row["name"] for row in restriction["multipliers"]]
    assert set(names) == set(found["active_constraints"])
    assert {"fv2 >= 3", "mass of link_2 = 2.5"} <= set(names)
    sizes = [abs(row["value"]) for row in restriction["multipliers"]]
    assert sizes == sorted(sizes, reverse=True)
    assert restriction["verdict"] in found["warnings"]
    assert "bootstrap" in found["covariance"]
    assert strict(to_json(found)) == found


def test_without_active_constraints_that_part_is_null():
    assert document()["restriction"] is None
    assert document("wls")["restriction"] is None


def test_settings_hold_constraints_and_all_that_was_chosen():
    chosen = {
        "metric": "euclidean",
        "prior_weight": 3.0,
        "consistency": "inertia",
        "bootstrap": 30,
        "seed": 7,
    }
    settings = serialise_result(held(**chosen))["settings"]
    for key, value in chosen.items():
        assert settings[key] == value
    assert settings["constraints"] == [
        {"kind": "bounds", "parameters": ["fv2"], "lower": 3.0},
        {"kind": "mass", "links": ["link_2"], "value": 2.5},
    ]
    assert "weight 3" in settings["prior_in_words"]
    assert "euclidean" in settings["prior_in_words"]
    assert "constraints" not in document()["settings"]


def test_constraints_are_described_as_a_study_has_them():
    robot = toy.arm(2)
    problem = Problem(robot, prepare(toy.log(robot, 6.0, 0.3, 0)[0], 5.0))
    points = ((-1.0, -1.0, -1.0), (1.0, -1.0, -1.0), (0.0, 1.0, -1.0), (0.0, 0.0, 1.0))
    constraints = [
        TotalMass(lower=5.0, upper=7.0),
        Fixed(("fc1",), 3.0),
        Hull("all", points, of="com"),
        Payload("link_2", 0.5, (0.0, 0.0, 0.1)),
    ]
    settings = serialise_result(identify(problem, constraints=constraints))["settings"]
    kinds = [row["kind"] for row in settings["constraints"]]
    assert kinds == ["total-mass", "fixed", "hull", "payload"]
    assert settings["constraints"][0] == {"kind": "total-mass", "lower": 5.0, "upper": 7.0}
    assert settings["constraints"][2]["points"] == [list(point) for point in points]
    assert strict(to_json(settings)) == settings


def test_base_consistency_has_nulls_where_links_would_be():
    robot = toy.arm(2)
    problem = Problem(robot, prepare(toy.log(robot, 6.0, 0.3, 0)[0], 5.0))
    fit = identify(problem, consistency="base", constraints=[Bounds(("fv2",), lower=3.0)])
    found = serialise_result(fit)
    expected = {**DOCUMENT, "standard": type(None), "fit": dict, "restriction": RESTRICTION}
    check(found, expected, "result")
    assert found["min_pseudo_inertia_eigenvalue"] is None
    assert found["consistent"] is False
    assert found["settings"]["prior"] == "none"
    assert found["active_constraints"] == ["fv2 >= 3"]
    words = "pc-idim-ls with consistency 'base' gives base parameters only"
    for ask in (fit.model_urdf, fit.links):
        with pytest.raises(InputError, match=words):
            ask()
    assert words in " ".join(fit.summary(full=True).split())


def test_nonlinear_parameters_and_estimates_over_time_are_told():
    found = result()
    p = found.base.count
    shape = ShapeEstimate(("vs1",), np.array([0.1]), np.array([0.01]))
    track = Track(np.arange(3.0), np.tile(found.estimate.beta, (3, 1)), np.ones((3, p)))
    told = serialise_result(
        replace(found, estimate=replace(found.estimate, shape=shape, track=track))
    )
    assert told["shape"] == [{"name": "vs1", "value": 0.1, "std": 0.01}]
    assert told["track"]["time"] == [0.0, 1.0, 2.0]
    assert np.shape(told["track"]["beta"]) == np.shape(told["track"]["std"]) == (3, p)
    plain = serialise_result(found)
    assert plain["shape"] == []
    assert plain["track"] is None


# at a prompt


@pytest.mark.parametrize("method", ["irls", "pc-idim-ls"])
def test_error_bars_are_those_of_the_file_to_the_last_bit(method, tmp_path):
    fit = result(method)
    fit.save(tmp_path, report=False)
    read = read_result(tmp_path / "result.json")
    assert np.array_equal(read.estimate.covariance.matrix, fit.estimate.covariance.matrix)


def test_what_is_shown_at_a_prompt_is_short():
    fit = result("ols")
    problem = Problem(toy.arm(), fit.samples)
    recording = toy.log(toy.arm(), 1.0)[0]
    shown = [fit.robot, recording, fit.samples[0], problem, fit.base, fit.estimate, fit]
    for each in shown:
        assert repr(each).startswith(f"<{type(each).__name__} ")
        assert len(repr(each)) < 250
        assert "\n" not in repr(each)


def again(fit):
    return Problem(fit.robot, fit.samples)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda fit: prepare("run1.csv"), "prepare takes Recording, not str: dynident.read_log"),
        (lambda fit: validate(fit, "run1.csv"), "run1.csv: no such file"),
        (lambda fit: validate(fit, again(fit)), "not Problem: dynident.read_arrays(q, tau"),
        (lambda fit: validate(fit, fit.samples[0].q), "takes files and data frames, not ndarray"),
        (lambda fit: track(fit, fit.samples[0]), "data frames, not GeneralisedSamples"),
        (lambda fit: read_log({"q": [0.0]}, fit.robot), "takes files and data frames, not dict"),
        (lambda fit: read_log(5.0, fit.robot), "takes files and data frames, not float"),
        (
            lambda fit: Problem(fit.robot, toy.log(toy.arm(), 1.0)[0]),
            "takes Samples, not Recording: dyn",
        ),
        (lambda fit: Problem(fit.robot, ["run1.csv"]), "a problem takes Samples, not str"),
        (lambda fit: Problem(fit.robot, 5.0), "a problem takes Samples, not float"),
        (lambda fit: identify(fit.samples[0]), "identify takes Problem, not GeneralisedSamples"),
        (lambda fit: identify(again(fit), 1), "a method takes str, not int: its name, as 'wls'"),
        (
            lambda fit: identify(again(fit), "clie", simulation=pd(1.0, 1.0, n=3)),
            "method clie takes Simulation, not Controller: dynident.Simulation(controller)",
        ),
        (lambda fit: read_log("run1.csv", "arm.urdf"), "read_log takes Robot, not str: dynident."),
        (doctor, "takes Study, not Fit: dynident.read_study(path)"),
        (compare, "takes Study, not Fit: dynident.read_study(path)"),
        (
            lambda fit: Problem(fit.samples, fit.robot),
            "a problem takes Robot, not tuple: dyn",
        ),
        (lambda fit: validate(again(fit), fit.samples[0]), "validate takes Fit, not Problem"),
        (
            lambda fit: identify(again(fit), friction="stribeck"),
            "no option 'friction'; dynident.Problem(robot, samples) takes it",
        ),
        (
            lambda fit: identify(again(fit), bandwidth=5.0),
            "no option 'bandwidth'; dynident.prepare(recording) takes it",
        ),
        (
            lambda fit: identify(again(fit), units={"q": "deg"}),
            "no option 'units'; dynident.read_log(files, robot) takes it",
        ),
        (lambda fit: identify(again(fit), bootstrp=1), "did you mean 'bootstrap'?"),
        (lambda fit: load_robot("<robot>\n</robot>"), "takes the path of a file, not its text"),
        (lambda fit: load_robot("a.urdf", floating="no"), "floating takes bool, not str"),
        (lambda fit: load_robot("a.urdf", locked=["elbow"]), "locked takes Mapping, not list"),
        (lambda fit: di.build_idim("arm.urdf"), "build_idim takes Robot, not str: dynident.load_"),
        (lambda fit: di.build_idim(fit.robot, rotor="no"), "rotor takes bool, not str"),
        (lambda fit: di.build_idim(fit.robot, ["none"]), "friction takes str, not list"),
        (lambda fit: di.build_idim(fit.robot, elements=["spring"]), "takes JointElements, not str"),
        (lambda fit: di.base_parameters(fit.robot), "base_parameters takes Idim, not Robot"),
        (
            lambda fit: di.read_arrays(Q, Q, rate="500"),
            "recording: rate = '500' is not a sample rate; give it in Hz",
        ),
        (lambda fit: di.read_arrays(Q, Q, rate=True), "rate = True is not a sample rate"),
        (lambda fit: di.read_arrays(Q, Q, rate=9.0, robot="a.urdf"), "takes Robot, not str"),
        (
            lambda fit: di.read_arrays(Q, Q, rate=9.0, floating=True),
            "takes FloatingOptions, not bool",
        ),
        (lambda fit: di.Simulation(900.0), "controller takes Controller, not float"),
        (lambda fit: di.rollout(fit.robot, fit.theta), "rollout takes Loop, not Robot"),
        (di.select_blocks, "select_blocks takes Problem, not Fit"),
        (lambda fit: di.simulate_study("a.toml"), "simulate_study takes Study, not str"),
        (lambda fit: di.replay("result.json", Q), "replay takes Fit, not str"),
        (lambda fit: di.payload("result.json", Q), "payload takes Fit, not str"),
        (lambda fit: di.sample("result.json"), "sample takes Fit, not str"),
        (lambda fit: di.excite("arm.urdf"), "excite takes Robot, not str"),
        (lambda fit: di.protocol("arm.urdf"), "protocol takes Robot, not str"),
        (lambda fit: di.nearest_consistent("arm.urdf"), "nearest_consistent takes Robot, not str"),
        (
            lambda fit: di.Tracker(fit.robot, [1.0], 9.0),
            "a tracker takes BaseParameters, not Robot",
        ),
        (lambda fit: validate(fit, fit.samples[0], lowpass_hz=0.0), "lowpass_hz is 0.0"),
        (lambda fit: validate(fit, fit.samples[0], lowpass_hz=np.nan), "lowpass_hz is nan"),
    ],
)
def test_stages_say_what_they_take(call, words):
    with pytest.raises(InputError) as caught:
        call(result("ols"))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda fit: fit.idim.regressor(Q[0], Q[0], Q[0]), "have shapes (2,), (2,), (2,); their"),
        (
            lambda fit: fit.idim.regressor(Q[:, :1], Q, Q),
            "axes have to be 2 (q) and 2, before them that",
        ),
        (lambda fit: fit.idim.regressor(Q, Q, Q[:1]), "have shapes (4, 2), (4, 2), (1, 2)"),
        (lambda fit: fit.idim.torque(np.ones(99), Q, Q, Q), "theta has shape (99,), not ("),
        (lambda fit: follow(fit).update(0.1, Q[0], Q[0], Q[0]), "sample 1: q has shape (), not"),
        (lambda fit: follow(fit).update(Q[0], [0.1], Q[0], Q[0]), "dq has shape (1,), not (2,)"),
        (lambda fit: follow(fit).predict(Q[0], Q[0], Q), "ddq has shape (4, 2), not (2,)"),
        (
            lambda fit: di.consistent_witness(fit.base, np.ones(2), np.ones(2)),
            "beta and std need",
        ),
        (
            lambda fit: di.nearest_to_base(fit.base, fit.estimate.beta, -(fit.estimate.beta**2)),
            "std zero or more",
        ),
        (
            lambda fit: di.consistent_witness(
                fit.base, fit.estimate.beta, fit.estimate.beta**2, -1.0
            ),
            "width is -1.0, but has to be zero or more",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused_and_not_stretched(call, words):
    with pytest.raises(InputError) as caught:
        call(result("ols"))
    assert words in str(caught.value)


Q = np.zeros((4, 2))


def follow(fit: Fit) -> di.Tracker:
    return di.Tracker(fit.base, fit.estimate.sigma, 100.0)
