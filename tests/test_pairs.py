"""Methods, friction laws, elements and files that are valid alone, together."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import toy
from thin import first

import dynident as di
from dynident.cli import run
from dynident.control.controller import pd
from dynident.core.errors import InputError
from dynident.dynamics.parameters import attach
from dynident.export.urdf import render_urdf
from dynident.friction.models import FRICTIONS
from dynident.methods import ESTIMATORS
from dynident.methods.options import SIMULATION, list_option_names, switch_bootstrap_off
from dynident.recording.recording import Recording

RATE = 250.0
ELEMENTS = {
    "spring": {},
    "gas-spring": {"base": 0.8, "crank": 0.2, "angle": 0.1, "stroke": 0.5},
    "ripple": {"order": 8.0},
    "counterweight": {"angle": 0.2},
    "known": {},
    "linkage": {"base": 0.4, "crank": 0.1, "coupler": 0.4, "rocker": 0.2, "angle": 0.3},
}
LOOP = di.Simulation(pd(900.0, 60.0, n=2), width=0.05)
QUICK = {
    "gradient": {"iterations": 20_000},
    "ga": {"population": 10, "generations": 5},
    "pf": {"particles": 10, "steps": 5},
}
"""Searches that stop early: whether they arrive, `test_search` asks."""


@cache
def recorded() -> Recording:
    """A short log of two joints with targets, and with what any friction or element asks for."""
    log, _ = toy.log(toy.arm(2), seconds=4.0, noise=0.3)
    warmth = np.linspace(30.0, 34.0, len(log.q))[:, None] + [0.0, 1.0]
    return replace(log, qref=log.q.copy(), temp=warmth, known=np.sin(3.0 * log.q))


def problem(friction: str = "coulomb-viscous", element: str = "") -> di.Problem:
    samples = di.prepare(recorded(), bandwidth=5.0, drop_below=0.02)
    elements = [attach(1, element, ELEMENTS[element])] if element else []
    return di.Problem(toy.arm(2), samples, friction, elements=elements)


def check(fit: di.Fit) -> None:
    """A fit whose numbers are numbers of a robot."""
    assert np.all(np.isfinite(fit.theta))
    assert np.all(np.isfinite(fit.estimate.covariance.matrix))
    assert np.all((fit.estimate.sigma > 0.0) & (fit.estimate.sigma < 1e3))


@pytest.mark.parametrize("element", sorted({*ELEMENTS} - {"known"}))
@pytest.mark.parametrize("friction", first(["coulomb-viscous", "stribeck"]))
def test_facts_of_elements_are_known_to_the_filter(element: str, friction: str) -> None:
    given = problem(friction, element)
    fit = di.identify(given, "ekf", doctor=False)
    check(fit)
    known = [s.bounds.lower == s.bounds.upper for s in given.idim.shape_parameters]
    found = fit.estimate.shape
    if found is not None:
        np.testing.assert_allclose(found.values[known], np.array(given.idim.shape)[known])
        np.testing.assert_array_equal(np.isnan(found.std), known)


@pytest.mark.long
@pytest.mark.parametrize("friction", first(["bompos", "lugre", "stribeck-exponent"]))
@pytest.mark.parametrize("consistency", ["base", "none"])
def test_shapes_that_are_held_need_no_links(friction: str, consistency: str) -> None:
    check(di.identify(problem(friction), consistency=consistency, doctor=False, bootstrap=0))


@pytest.mark.long
@pytest.mark.parametrize(
    ("friction", "element"),
    [
        pytest.param("stribeck", "", marks=pytest.mark.long),
        ("coulomb-viscous", "counterweight"),
        ("dahl", "counterweight"),
    ],
)
def test_drives_are_fitted_to_positions_with_shapes(friction: str, element: str) -> None:
    fit = di.identify(
        problem(friction, element), "cloe", simulation=LOOP, links="prior", doctor=False
    )
    for each, value in zip(fit.idim.shape_parameters, fit.idim.shape, strict=True):
        assert each.bounds.lower <= value <= each.bounds.upper


@pytest.mark.long
@pytest.mark.parametrize("method", ["rls", "kf"])
def test_what_bristles_do_by_their_shapes_has_a_size(method: str) -> None:
    check(di.identify(problem("dahl", "ripple"), method, doctor=False))


@pytest.mark.parametrize(
    ("method", "options"), [("ekf", {}), ("cloe", {"simulation": LOOP, "links": "free"})]
)
@pytest.mark.parametrize("friction", ["load", "stribeck-load"])
def test_loads_that_a_method_does_not_follow_are_refused(
    method: str, options: dict, friction: str
) -> None:
    words = rf"friction '{friction}' depends on the load .* method {method} does not follow it"
    with pytest.raises(InputError, match=words):
        di.identify(problem(friction), method, doctor=False, **options)


SIMULATING = {method for method in ESTIMATORS if SIMULATION in list_option_names(method)}
HARD = {name for name, model in FRICTIONS.items() if len(model.shape) > 1}
HARD |= {"none", "dahl", "directional-load", "load-gain", "load-square", "stribeck-load", "uneven"}
"""Laws of which this log, of drives without them, says little."""
UNSEEN = "does not excite|did not settle|diverges|found no solution|lost in rounding|no step from"
UNSEEN += "|takes up as much as its load"


def refusal(method: str, friction: str, element: str) -> str:
    """What cannot be together, in the words that say why; nothing of what has to work."""
    model = FRICTIONS[friction]
    needs = {*model.needs, *(["known"] if element == "known" else [])}
    if method == "static":
        return "static takes poses that were held"
    if "load" in needs and method == "energy":
        return "depends on loads, which need accelerations"
    if "load" in needs and method != "cloe" and (method in SIMULATING or method == "ekf"):
        return "depends on the load of its drive, which follows from the bodies"
    if needs - {"load"} and method in SIMULATING:
        return "depends on the .* cannot be simulated"
    if method == "ml" and ("load" in needs or model.state):
        return "ml does not propagate noise of the motion through friction"
    if method == "cloe" and friction == "none" and not element:
        return "friction 'none' leaves nothing to fit"
    shaped = model.shape or element in ("gas-spring", "ripple", "counterweight", "linkage")
    if method == "ekf" and shaped and (needs or model.state):
        beyond = "the .*" if needs else "more than the motion of an instant"
        return f"depends on {beyond}, which ekf does not follow"
    return ""


PAIRS = [
    (method, friction, element)
    for method in ESTIMATORS
    for friction in FRICTIONS
    for element in ("", *ELEMENTS)
    if not element or friction in ("coulomb-viscous", "stribeck")
]
NAMES = (ESTIMATORS, FRICTIONS, ("", *ELEMENTS))
ALWAYS = {
    *(("ekf", friction, "") for friction in FRICTIONS),
    *(("wls", "coulomb-viscous", element) for element in ELEMENTS),
    *(("pc-idim-ls", "stribeck", element) for element in ("known", "gas-spring")),
    *(("clie", friction, "") for friction in ("temperature", "load", "coulomb-viscous")),
}


SLOW = (
    {
        (method, friction, "")
        for method in ("clie", "pc-clie", "smooth")
        for friction in ("bompos", "sigmoid", "tanh-sech")
    }
    | {
        ("smooth", friction, element)
        for friction in FRICTIONS
        for element in ("", *ELEMENTS)
        if friction in ("temperature", "stribeck-exponent", "stribeck-load", "load-gain")
        or (friction == "stribeck" and element not in ("", "known"))
    }
    | {("clie", "stribeck-exponent", "")}
)
"""Ten seconds each: other methods with these, and these methods with others, are run."""


def mark(pair: tuple[str, str, str]) -> tuple[pytest.MarkDecorator, ...]:
    """When a pair is run: with the long ones a third of the laws of each method."""
    if pair in ALWAYS:
        return ()
    place = sum([*names].index(each) for names, each in zip(NAMES, pair, strict=True))
    return (pytest.mark.slow if pair in SLOW or place % 3 else pytest.mark.long,)


@pytest.mark.parametrize(
    ("method", "friction", "element"), [pytest.param(*p, marks=mark(p)) for p in PAIRS]
)
def test_pairs_work_or_say_why_not(method: str, friction: str, element: str) -> None:
    options = dict(QUICK.get(method, {}))
    if method in SIMULATING:
        options["simulation"] = LOOP
    if method == "cloe":
        options["links"] = "prior"
    options |= switch_bootstrap_off(method)
    words, given = refusal(method, friction, element), problem(friction, element)
    if words:
        with pytest.raises(InputError, match=words) as refused:
            di.identify(given, method, doctor=False, **options)
        assert "\n" not in str(refused.value)
        return
    try:
        check(di.identify(given, method, doctor=False, **options))
    except di.ComputationError as failure:
        if friction not in HARD or not re.search(UNSEEN, str(failure)):
            raise


def test_unused_temperatures_are_no_obstacle_to_averaging() -> None:
    time = np.arange(2000) / RATE
    q = np.sin(2 * np.pi * 0.5 * time[:, None] + [0.0, 1.0])
    noise = 0.01 * np.random.default_rng(0).normal(size=q.shape)
    log = Recording("log", RATE, q, 3.0 * q + noise, temp=np.full_like(q, 30.0))
    samples = di.prepare(log, bandwidth=5.0, period=2.0)
    assert any("temperatures are not averaged" in words for words in samples.warnings)
    with pytest.raises(InputError, match="temperature"):
        di.identify(di.Problem(toy.arm(2), samples, "temperature"), "wls")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "kf", "sigma": 1e300}, "sigma"),
        ({"method": "rls", "sigma": 1e-300}, "sigma"),
        ({"method": "ekf", "shape_std": 1e-300}, "shape_std"),
    ],
)
def test_numbers_beyond_reason_are_refused(options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        di.identify(problem("stribeck"), **options)


def test_torques_beyond_reason_are_bad_values(tmp_path: Path) -> None:
    log = recorded()
    robot = toy.arm(2)
    (tmp_path / "arm.urdf").write_bytes(render_urdf(robot, robot.nominal)[0])
    table = np.column_stack([np.arange(len(log.q)) / RATE, log.q, 1e18 * log.tau])
    head = ",".join(["time", *(f"{s}_{j}" for s in ("q", "tau") for j in robot.joint_names)])
    np.savetxt(tmp_path / "big.csv", table, delimiter=",", header=head, comments="")
    with pytest.raises(InputError, match=r"big\.csv, row 2, column 4 .*sensible size"):
        di.read_log(tmp_path / "big.csv", robot)


SECOND = '<joint name="again" type="fixed"><parent link="base"/><child link="link_2"/></joint>'
CHAIN = "".join(
    f'<link name="f{k}"/><joint name="g{k}" type="fixed"><parent link="{parent}"/>'
    f'<child link="f{k}"/></joint>'
    for k, parent in enumerate(["link_2", *(f"f{k}" for k in range(999))])
)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("</robot>", f"{SECOND}</robot>", "'link_2' is the child of joint 'joint_2' and of"),
        ("<robot", '<?xml version="1.0" encoding="UTF-7"?><robot', "line 1: declares the encod"),
        ("</robot>", f"{CHAIN}</robot>", ""),
    ],
    ids=["two parents", "UTF-7", "a thousand fixed links"],
)
def test_urdfs_at_the_edge(tmp_path: Path, capsys, old: str, new: str, words: str) -> None:
    robot = toy.arm(2)
    text = render_urdf(robot, robot.nominal)[0].decode()
    text = text[text.index("<robot") :].replace(old, new, 1)
    (tmp_path / "x.urdf").write_text(text)
    command = ["repair", str(tmp_path / "x.urdf"), "--urdf", str(tmp_path / "y.urdf")]
    assert run(command) == (2 if words else 0)
    if words:
        assert words in capsys.readouterr().err
        return
    again = di.load_robot(tmp_path / "y.urdf")
    np.testing.assert_allclose(again.nominal, robot.nominal, rtol=1e-9, atol=1e-12)


def test_an_estimate_that_diverged_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    found = di.identify(problem(), "wls", doctor=False).estimate
    wild = replace(found, sigma=np.array([2e57, 1.0]))
    monkeypatch.setitem(ESTIMATORS, "wls", lambda *_, **__: wild)
    with pytest.raises(di.ComputationError, match=r"diverged: its errors are 2e\+57 Nm"):
        di.identify(problem(), "wls", doctor=False)
