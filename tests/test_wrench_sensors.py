"""Sensors of forces that are biased or askew: estimated beside the bodies."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
import toy
from commands import ask
from floating import FEET, Made, solo
from legged_files import columns_of, contacts, study, written
from thin import first

import dynident as di
from dynident.cli import run
from dynident.core.arrays import Array
from dynident.dynamics.base import base_parameters, find_observed_base
from dynident.dynamics.contacts import follow_contact
from dynident.dynamics.equations import EstimatedSensor, Observability
from dynident.dynamics.idim import build_idim
from dynident.fit.json import serialise_result
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.report import sections
from dynident.robot.contacts import ContactSpec, add_contacts
from dynident.robot.model import Robot, Unknown
from dynident.robot.rotations import convert_rpy, to_rpy

NAMES = [name for name, _ in FEET["solo12"]]
BIAS = dict(zip(NAMES, np.random.default_rng(1).normal(size=(4, 3)), strict=True))
TURN = np.array([0.004, -0.003, 0.005])


@cache
def made() -> Made:
    return solo(4.0, 400.0)


def biased(recording: Recording, bias: dict[str, Array]) -> Recording:
    own = {name: force + bias.get(name, 0.0) for name, force in recording.wrenches.items()}
    return replace(recording, wrenches=own)


def with_unknowns(estimate: tuple[Unknown, ...], *names: str, **further: object) -> Robot:
    specs = [
        ContactSpec(
            name=name, frame=frame, kind="point",
            **({"estimate": estimate, **further} if name in names else {}),  # type: ignore[arg-type]
        )
        for name, frame in FEET["solo12"]
    ]  # fmt: skip
    return add_contacts(made().robot, specs)


def exact(recording: Recording) -> di.Samples:
    return di.prepare(recording, bandwidth=25.0, position_hz=1e4, derivatives="measured")


def sensor_off(problem: Problem, found: dict[str, float], truth: dict[str, float]) -> float:
    own = {c.parameter.name for c in problem.idim.structure.sensor_columns}
    assert own == set(truth)
    return max(abs(found[name] - value) for name, value in truth.items())


def bodies_off(found: dict[str, float]) -> float:
    """Largest error of the bodies' combinations."""
    known = Problem(made().robot, exact(made().recording), "viscous")
    truth = dict(zip(known.base.names, known.base.matrix @ made().theta, strict=True))
    return max(abs(found[name] - value) for name, value in truth.items())


def biases(log: str = "") -> dict[str, float]:
    return {
        f"{part}0_{name}{log}": float(BIAS[name][k])
        for name in NAMES
        for k, part in enumerate(("fx", "fy", "fz"))
    }


def test_biases_of_all_feet_are_found_beside_all_bodies():
    robot = with_unknowns(("bias",), *NAMES)
    problem = Problem(robot, exact(biased(made().recording, BIAS)), "viscous")
    found = toy.solved(problem)
    assert sensor_off(problem, found, biases()) < 1e-8
    assert bodies_off(found) < 1e-8


@pytest.mark.parametrize("axes", ["frame", "world"])
def test_a_sensor_that_is_askew_is_found_to_the_first_order(axes):
    turned = pin.exp3(TURN)
    recording = made().recording
    own = dict(recording.wrenches)
    if axes == "world":
        feet = with_unknowns((), axes="world")
        idim, base = made().idim, recording.base
        assert base is not None
        q = np.hstack([base.position, base.orientation, recording.q])
        contact = next(c for c in feet.contacts if c.name == "FR")
        turn = follow_contact(idim.tree, feet, contact, q).turn
        own["FR"] = np.einsum("tij,tj->ti", turn, own["FR"])
    own["FR"] = own["FR"] @ turned  # the wrench in the stated axes is exp(TURN) times the logged
    robot = with_unknowns(("bias", "orientation"), "FR", axes=axes)
    problem = Problem(robot, exact(replace(recording, wrenches=own)), "viscous")
    found = toy.solved(problem)
    truth = dict(zip(("rx_FR", "ry_FR", "rz_FR"), TURN, strict=True))
    truth |= {"fx0_FR": 0.0, "fy0_FR": 0.0, "fz0_FR": 0.0}
    size = float(np.sqrt(np.mean(own["FR"] ** 2)))
    for name, value in truth.items():
        assert abs(found[name] - value) < 5e-5 * (size if "0" in name else 1.0)


@pytest.mark.long
def test_a_large_turn_is_restated_from_the_warning():
    turned = pin.exp3(np.array([0.1, 0.2, -0.1]))
    own = dict(made().recording.wrenches)
    own["HL"] = own["HL"] @ turned
    recording = replace(made().recording, wrenches=own)
    rpy = (0.0, 0.0, 0.0)
    for _ in range(4):
        robot = with_unknowns(("orientation",), "HL", rpy=rpy)
        fit = di.identify(Problem(robot, exact(recording), "viscous"), "wls", doctor=False)
        said = [w for w in fit.warnings if w.startswith("HL: its sensor is turned")]
        if not said:
            break
        rpy = tuple(float(part) for part in said[0].split("[")[1].split("]")[0].split(","))
    left = fit.idim.sensor_values(fit.theta)
    assert np.linalg.norm(left) < 0.03
    found = convert_rpy(to_rpy(convert_rpy(rpy) @ pin.exp3(left)))
    assert np.linalg.norm(pin.log3(found.T @ turned)) < 1e-3


def test_a_log_before_which_sensors_were_tared_has_biases_of_its_own():
    robot = with_unknowns(("bias",), *NAMES)
    second = {name: -2.0 * value for name, value in BIAS.items()}
    one = exact(biased(made().recording, BIAS))
    two = exact(replace(biased(made().recording, second), name="later", tared=True))
    problem = Problem(robot, [one, two], "viscous")
    truth = biases() | {f"{name}@later": -2.0 * value for name, value in biases().items()}
    assert sensor_off(problem, toy.solved(problem), truth) < 1e-8


def test_a_bias_that_a_standing_base_cannot_tell_from_weight_is_held():
    robot = with_unknowns(("bias",), *NAMES)
    idim = build_idim(robot, "viscous")
    sensors = tuple(EstimatedSensor(name) for name in NAMES)
    free = find_observed_base(idim, [Observability("full", sensors=sensors)])
    assert not free.idim.structure.stated
    assert free.count == base_parameters(idim).count + 12
    # without torques a plate under a base that stands says nothing of its own bias
    plate = replace(robot, contacts=(replace(robot.contacts[0], body=0, surface=True),))
    own = build_idim(plate, "none")
    found = find_observed_base(
        own, [Observability("base", still=True, sensors=(EstimatedSensor("FL"),))]
    )
    assert "fz0_FL" in found.idim.structure.stated
    assert {"mx0_FL", "my0_FL"} <= set(found.idim.structure.stated)


@pytest.fixture(scope="module")
def noisy() -> tuple[Recording, Robot]:
    rng = np.random.default_rng(5)
    recording = biased(made().recording, BIAS)
    wrenches = {k: v + 0.2 * rng.normal(size=v.shape) for k, v in recording.wrenches.items()}
    tau = recording.tau + 0.01 * rng.normal(size=recording.tau.shape)
    return replace(recording, wrenches=wrenches, tau=tau), with_unknowns(("bias",), *NAMES)


@pytest.mark.long
def test_error_bars_of_biases_hold_and_every_form_tells_them(noisy):
    recording, robot = noisy
    cut = len(recording.q) // 2
    samples, held_out = exact(recording.rows(0, cut)), exact(recording.rows(cut, 2 * cut))
    fit = di.identify(
        Problem(robot, samples, "viscous"), bootstrap=0, doctor=False, validation=[held_out]
    )
    rows = serialise_result(fit)["sensors"]
    assert [row["name"] for row in rows] == list(biases())
    misses = [(row["value"] - biases()[row["name"]]) / row["std"] for row in rows]
    assert 0.3 < np.sqrt(np.mean(np.square(misses))) < 2.0
    assert all(row["unit"] == "N" for row in rows)
    text, page = fit.summary(), sections.render_result_page(fit, ())
    for name in biases():
        assert name in text
        assert name in page
    # held out as well as fitted: biases are taken from what sensors read
    fitted = next(f for f in fit.identification if f.rows == "all samples")
    validated = next(f for f in fit.validation[0].entries if f.rows == "all samples")
    assert validated.overall_percent < 1.5 * fitted.overall_percent
    plain = add_contacts(made().robot, [
        ContactSpec(name=name, frame=frame, kind="point") for name, frame in FEET["solo12"]
    ])  # fmt: skip
    worse = di.identify(Problem(plain, samples, "viscous"), "wls", doctor=False)
    of_worse = next(f for f in worse.identification if f.rows == "all samples")
    assert of_worse.overall_percent > 3.0 * fitted.overall_percent
    # the model of the robot alone knows nothing of sensors
    assert fit.model.idim.names == fit.idim.names[: len(fit.model.idim.names)]
    assert fit.model_urdf()[0].startswith(b"<?xml")


@pytest.mark.long
@pytest.mark.parametrize("method", first(["pc-idim-ls", "wls"]))
def test_a_stored_result_takes_biases_from_other_logs(tmp_path, capsys, method):
    recording = biased(made().recording, BIAS)
    columns = columns_of(replace(made(), recording=recording))
    half = len(recording.q) // 2
    written(tmp_path, {name: own[:half] for name, own in columns.items()})
    written(tmp_path, {name: own[half:] for name, own in columns.items()}, "other.csv")
    path = study(
        tmp_path, 'files = "log.csv"',
        contact=contacts('estimate = ["bias"]'),
        identify=f'method = "{method}"\ndoctor = false' + "\nbootstrap = 0" * (method[0] == "p"),
    )  # fmt: skip
    out = tmp_path / "out"
    assert run(["identify", str(path), "-o", str(out), "--no-report"]) == 0
    capsys.readouterr()
    result, other = str(out / "result.json"), str(tmp_path / "other.csv")
    errors = ask(capsys, ["validate", result, other])
    entries = errors["validation"][0]["entries"]
    assert all(entry["overall_relative_error_percent"] < 0.1 for entry in entries)
