"""What a log decides, and friction that is a sum of models."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import toy
from commands import ask
from scipy.optimize import minimize_scalar
from tables import write_joints

from dynident.api import identify
from dynident.cli import run
from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import ComputationError, InputError, UnsettledError
from dynident.core.factors import System
from dynident.decide.bandwidth import choose_bandwidth
from dynident.decide.decision import (
    ALL,
    DECISIONS,
    NOTHING,
    Decision,
    DecisionOptions,
    LeftOutErrors,
)
from dynident.decide.derivatives import choose_derivatives
from dynident.decide.folds import AddedColumns, Folds
from dynident.decide.friction import (
    choose_drives,
    choose_law,
    list_joints_within_a_turn,
    widen,
)
from dynident.decide.laws import LOAD, MEMORY, Column, build_menu, drop_load
from dynident.decide.outliers import count_huber
from dynident.decide.prior import confirm_weight, estimate_weight
from dynident.dynamics.following import follow_friction
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import attach
from dynident.estimators.constrained import build_constrained_setting
from dynident.estimators.covariance import ErrorBars
from dynident.export.urdf import render_urdf
from dynident.friction import DEFAULT_FRICTION
from dynident.friction.model import FrictionModel
from dynident.friction.names import build_friction, split_friction_names
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.blocks import factor_blocks
from dynident.regression.problem import Problem
from dynident.study.decide import decide_study, list_open_decisions
from dynident.study.run import WITHOUT_LOADS, run_study
from dynident.study.study import read_study
from dynident.study.study_text import render_study

RATE = 500.0
PUSHED = 500
"""Samples to the first push on a joint, and half of those between two."""
VALUES = {"Ia": 0.3, "fv": 2.0, "fc": 3.0, "off": 0.5, "fr": 6.0, "fl": 0.2, "f1": 5.0, "f2": 3.0}
VALUES |= {"fha": 0.0, "fhb": 0.0, "fhc": 0.0, "fhd": 2.5, "fhe": 2.0, "fhf": 0.0}
TRUTHS = {
    "usual": "coulomb-viscous",
    "root": "cube-root",
    "smooth": "tanh-sech(w3=2, w4=3)",
    "loaded": "coulomb-viscous + load",
    "elastic": "coulomb-viscous + dahl-spectrum",
}


# ---- sums of models, and shapes that are known


def test_a_sum_has_the_parameters_of_all_of_its_models_once():
    idim = build_idim(toy.arm(1), "cube-root + load + tanh-sech(w3=2, w4=30)")
    drive = [p.symbol for p in idim.drives]
    assert drive == ["Ia", "fv", "fc", "off", "fr", "fl", "f1", "f2"]
    assert dict(zip([s.name for s in idim.shape_parameters], idim.shape, strict=True)) == {
        "w31": 2.0,
        "w41": 30.0,
    }
    assert not build_idim(toy.arm(1), "tanh-sech(w3=2, w4=30)").nonlinear


def test_the_torque_of_a_sum_is_the_sum_of_torques():
    robot = toy.arm(2)
    q, dq, ddq = toy.motion(2, 1.0)
    both = build_idim(robot, "cube-root + polynomial", rotor=False)
    parts = [build_idim(robot, name, rotor=False) for name in ("cube-root", "polynomial")]
    rng = np.random.default_rng(1)
    values = {p.name: float(v) for p, v in zip(both.drives, rng.normal(size=20), strict=False)}
    none = np.zeros((2, 10))
    once = both.torque(both.join(none, np.array([values[p.name] for p in both.drives])), q, dq, ddq)
    usual = {"fv", "fc", "off"}
    second = [0.0 if p.symbol in usual else values[p.name] for p in parts[1].drives]
    first = [values[p.name] for p in parts[0].drives]
    each = [
        part.torque(part.join(none, np.array(own)), q, dq, ddq)
        for part, own in zip(parts, (first, second), strict=True)
    ]
    np.testing.assert_allclose(once, each[0] + each[1], rtol=1e-12, atol=1e-12)


def test_the_same_symbol_twice_ends_in_a_letter():
    models = build_friction("stribeck(vs=0.1) + stribeck(vs=0.5)")
    assert [p.symbol for p in models[0].parameters] == ["fv", "fc", "off", "fs"]
    assert [p.symbol for p in models[1].parameters] == ["fsb"]
    assert [s.symbol for m in models for s in m.shape] == ["vs", "vsb"]
    assert all(isinstance(m, FrictionModel) for m in models)


def test_commas_between_joints_are_not_those_of_shapes():
    friction = "tanh-sech(w3=2, w4=30) + load, viscous"
    assert split_friction_names(friction) == ["tanh-sech(w3=2, w4=30) + load", "viscous"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cube-rot + load", "'cube-rot' is not known; did you mean 'cube-root'"),
        ("cube-root +", "not a sum of models"),
        ("stribeck(vs=0.1", "not a sum of models"),
        ("cube-root(vs=0.1)", "no shape 'vs'; it has off"),
        ("stribeck(v=0.1)", "no shape 'v'; it has vs"),
        ("stribeck(vs=fast)", "vs is 'fast', not a number"),
        ("stribeck(vs=99)", "vs is 99 but has to be from 0.001 to 10"),
    ],
)
def test_names_that_are_no_friction_are_refused(name, words):
    with pytest.raises(InputError) as raised:
        build_friction(name)
    assert words in str(raised.value)


# ---- when a decision pays


def test_a_decision_has_to_be_clear_and_worth_it():
    before = LeftOutErrors(np.array([10.0, 10.0, 10.0, 10.0, 10.0]), 50.0)
    assert before.pays(LeftOutErrors(np.full(5, 8.0), 40.0))
    assert not before.pays(LeftOutErrors(np.full(5, 9.5), 47.5))  # clear, and hardly worth it
    assert not before.pays(
        LeftOutErrors(np.array([1.0, 14.0, 11.0, 9.0, 10.0]), 40.0)
    )  # one block alone
    assert not before.pays(LeftOutErrors(np.array([8.0, 8.0, 8.0, 8.0, 11.0]), 40.0), errors=5.0)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (ALL, DECISIONS),
        (NOTHING, ()),
        ("friction", ("friction",)),
        ("standstill, bandwidth", ("bandwidth", "standstill")),
    ],
)
def test_what_is_asked_is_decided_in_one_order(given, asked):
    assert DecisionOptions(given).asked == asked


def test_the_errors_of_a_candidate_are_those_of_its_fit():
    """Columns projected on those that stand give what a fit of all of them gives."""
    rng = np.random.default_rng(2)
    blocks = tuple(
        (rng.normal(size=(30, 9)), np.hstack([rng.normal(size=(20, 5)), np.zeros((20, 3)),
         rng.normal(size=(20, 1))]))
        for _ in range(5)
    )  # fmt: skip
    known = np.hstack([0.3 * np.eye(5), np.zeros((5, 3)), np.zeros((5, 1))])
    folds = Folds(blocks, known)
    standing, columns = np.arange(5), np.array([5, 6, 7])
    change = AddedColumns.of(folds, folds.fit(standing), columns)
    anything = np.zeros(3, dtype=bool)
    for some in ([], [0], [1, 2], [0, 1, 2]):
        left = change.measure(some, anything, anything)
        exact = folds.fit(np.array([*standing, *columns[some]], dtype=int))
        np.testing.assert_allclose(left.squares, folds.leave(exact).squares, rtol=1e-7)
        assert left.own == pytest.approx(np.sum(folds.measure(exact)[:, 0]), rel=1e-7)


def test_a_block_that_alone_excites_a_parameter_does_not_decide():
    """What the others make of it is noise over nothing: it is no worse than no model at all."""
    rng = np.random.default_rng(5)
    noise, common = rng.normal(size=(2, 5, 40))

    def leave(size, excited):
        alone = np.where(np.arange(5)[:, None] == 4, common, excited * rng.normal(size=(5, 40)))
        y = 3.0 * common + size * noise
        blocks = [(np.column_stack(each),) for each in zip(common, alone, y, strict=True)]
        folds = Folds(tuple(blocks), np.zeros((0, 3)))
        return folds.leave(folds.fit(np.arange(2)))

    assert not leave(1.0, 1e-6).pays(leave(0.99, 1e-5))


def test_columns_of_every_model_are_eliminated_once():
    """Whatever is begun with, a choice of columns is fitted as by itself."""
    rng = np.random.default_rng(11)
    blocks = tuple(tuple(rng.normal(size=(2, 12, 9))) for _ in range(5))
    known = np.hstack([0.3 * np.eye(5), np.zeros((5, 4))])
    every = [0, 1, 2, 3, 4, 6, 7]
    alone = Folds(blocks, known).fit(np.array(every))
    for first in (1, 3, 5):
        for one, other in zip(Folds(blocks, known, first).fit(np.array(every)), alone, strict=True):
            np.testing.assert_allclose(one.x, other.x, rtol=1e-9)
            np.testing.assert_allclose(abs(one.R), abs(other.R), rtol=1e-9, atol=1e-12)
    for fit, out in zip(alone, range(5), strict=True):
        rows = [own for k, block in enumerate(blocks) if k != out for own in block]
        stacked = np.vstack([*rows, known])
        direct = np.linalg.lstsq(stacked[:, every], stacked[:, -1], rcond=None)[0]
        np.testing.assert_allclose(fit.x, direct, rtol=1e-9)
    with pytest.raises(ValueError, match="every model"):
        Folds(blocks, known, 3).fit(np.array([0, 2, 4]))


def test_columns_that_tell_nothing_new_or_have_the_wrong_sign_are_no_candidates():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(5, 40, 4))
    rows[:, :, 2] = 2.0 * rows[:, :, 0]
    rows[:, :, 3] = rows[:, :, 0] - rows[:, :, 1] + 0.01 * rng.normal(size=(5, 40))
    folds = Folds(tuple((own,) for own in rows), np.zeros((0, 4)))
    change = AddedColumns.of(folds, folds.fit(np.array([0])), np.array([1, 2]))
    none, every = np.zeros(2, dtype=bool), np.ones(2, dtype=bool)
    assert change.measure([1], none, none) is None
    assert change.measure([0], every, none) is None
    assert change.measure([0], none, none) is not None
    left, without = change.measure([0], every, every), change.measure([], every, every)
    np.testing.assert_array_equal(left.squares, without.squares)


def test_the_wide_factor_has_the_factors_of_its_laws():
    """Columns of one factor of all candidates are those of a model with some of them alone."""
    robot = toy.arm(2)
    samples = prepare(toy.log(robot, seconds=4.0, noise=0.1)[0], bandwidth=10.0)
    problem = Problem(robot, samples)
    about = np.random.default_rng(1).normal(size=problem.idim.plain)
    wide = widen(problem, about, problem.base.count, ["friction"])
    whole = problem.under(wide.base)
    names = [f"{DEFAULT_FRICTION} + {MEMORY} + cube-root + {menu.parts[4]}" for menu in wide.menus]
    own = problem.with_drives(", ".join(names))
    alone = Problem(robot, samples, ", ".join(names))
    columns = [wide.base.names.index(name) for name in own.base.names]
    assert wide.first < len(columns) < wide.base.count
    parts = [factor_blocks(each, 5) for each in (whole, own, alone)]
    for of_wide, of_own, expected in zip(*parts, strict=True):
        for found in (of_wide.select(columns), of_own):
            for one, other in zip(found.groups, expected.groups, strict=True):
                assert one.rows == other.rows
                grams = [each.factor.T @ each.factor for each in (one, other)]
                sizes = np.sqrt(np.maximum(np.diag(grams[1]), 1e-30))
                left, right = (gram / np.outer(sizes, sizes) for gram in grams)
                np.testing.assert_allclose(left, right, atol=1e-9)


def test_laws_are_within_the_bounds_of_their_models():
    for fastest in (1e-4, 0.01, 1.0, 30.0, 1e4):
        menu = build_menu(fastest)
        for law in (law for tier in menu.tiers for law in tier):
            build_friction(law.name)
            build_friction(law.extend(1).name)
            assert drop_load(law.extend(1).name) == law.name
        assert len(build_friction(menu.wide)) == len(menu.parts)


# ---- from a log to a decision


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """An arm, and two logs of it with each friction."""
    place = tmp_path_factory.mktemp("decide")
    robot = toy.arm(2)
    (place / "arm.urdf").write_bytes(render_urdf(robot, robot.nominal)[0])
    for name, friction in TRUTHS.items():
        idim = build_idim(robot, friction)
        drive = [VALUES[p.symbol] for p in idim.parameters[idim.inertial :]]
        theta = np.concatenate([robot.nominal.ravel(), drive])
        if idim.loaded:
            idim, _ = idim.settled(theta)
        for k in range(2):
            motion = toy.motion(2, 10.0, k, RATE)
            states = follow_friction(idim, *motion[:2], RATE)
            tau = idim.torque(theta, *motion, conditions=states)
            tau += np.random.default_rng(k).normal(size=tau.shape)
            table = place / f"{name}-{k}.csv"
            write_joints(table, robot.joint_names, RATE, q=motion[0], tau=tau)
        text = f'[robot]\nfile = "arm.urdf"\n[[log]]\nfiles = "{name}-0.csv"\n'
        text += f'[[log]]\nfiles = "{name}-1.csv"\nuse = "validate"\n[identify]\nbootstrap = 0\n'
        (place / f"{name}.toml").write_text(text)
    return place


def identified(path: Path, **options):
    study = read_study(path)
    own = study.identify.model_copy(update=options)
    return run_study(study.model_copy(update={"identify": own}))


def held_out(fit) -> float:
    return fit.validation[0].entries[1].overall_percent


@pytest.mark.long
def test_the_usual_friction_stays_where_it_is_the_true_one(place):
    fit, given = identified(place / "usual.toml"), identified(place / "usual.toml", decide=NOTHING)
    assert fit.idim.friction == "coulomb-viscous"
    # the log has no speeds of its own
    assert ["derivatives", *(each["what"] for each in fit.settings["decided"])] == [*DECISIONS]
    assert given.settings["decided"] == []
    np.testing.assert_array_equal(fit.theta, given.theta)


@pytest.mark.long
def test_the_prior_is_trusted_less_where_the_file_is_wrong(place, tmp_path):
    robot = toy.arm(2)
    wrong = robot.nominal * np.array([[4.0], [0.2]])
    (tmp_path / "arm.urdf").write_bytes(render_urdf(robot, wrong)[0])
    text = (place / "usual.toml").read_text().replace('"usual-', f'"{place}/usual-')
    log = np.loadtxt(place / "usual-0.csv", delimiter=",", skiprows=1)
    head = (place / "usual-0.csv").read_text().partition("\n")[0]
    np.savetxt(tmp_path / "short.csv", log[:1500], delimiter=",", header=head, comments="")
    text = text.replace(f'"{place}/usual-0.csv"', '"short.csv"')
    (tmp_path / "s.toml").write_text(text + "metric = 'pullback'\n")
    stated = identified(tmp_path / "s.toml")
    assert "prior_weight" not in [each["what"] for each in stated.settings["decided"]]
    (tmp_path / "s.toml").write_text(text)
    fit = identified(tmp_path / "s.toml")
    (decision,) = (d for d in fit.settings["decided"] if d["what"] == "prior_weight")
    assert float(decision["value"]) <= 1.0
    assert fit.settings["prior_weight"] == float(decision["value"])


@pytest.mark.parametrize(("samples", "decides"), [(1000, False), (1100, True)])
def test_a_fifth_of_a_log_is_two_windows_of_its_filter_at_least(place, samples, decides):
    """At 500 Hz and 10 Hz of bandwidth a window has 105 samples: 1050 are the least."""
    study = read_study(place / "root.toml")
    first, *rest = study.log
    logs = (first.model_copy(update={"rows": (0, samples)}), *rest)
    identify = study.identify.model_copy(update={"decide": "friction", "doctor": False})
    fit = run_study(study.model_copy(update={"log": logs, "identify": identify}))
    assert bool(fit.settings["decided"]) == decides


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["root", "smooth", "loaded", pytest.param("elastic", marks=pytest.mark.long)]
)
def test_another_law_is_taken_where_it_is_the_true_one(place, name):
    fit = identified(place / f"{name}.toml")
    given = identified(place / f"{name}.toml", decide=NOTHING)
    assert fit.idim.friction != "coulomb-viscous"
    assert held_out(fit) < 0.97 * held_out(given)
    told = {"loaded": "load", "elastic": "dahl-spectrum"}
    assert told.get(name, "") in fit.idim.friction
    (decision,) = (d for d in fit.settings["decided"] if d["what"] == "friction")
    assert decision["gain_percent"] > 3.0
    # the next run decides nothing, and gives the same
    again = run_study(fit.study)
    assert again.settings["decided"] == []
    np.testing.assert_array_equal(again.theta, fit.theta)


STIFFNESS = 30.0


@pytest.fixture(scope="module")
def sprung(place, tmp_path_factory) -> Path:
    """The arm and its logs with a spring on the second joint, of which the file knows nothing."""
    own = tmp_path_factory.mktemp("sprung")
    robot = toy.arm(2)
    (own / "arm.urdf").write_bytes((place / "arm.urdf").read_bytes())
    idim = build_idim(robot, elements=[attach(1, "spring", {})])
    values = {**VALUES, "ks": STIFFNESS, "ps": -5.0}
    theta = idim.join(robot.nominal, np.array([values[p.symbol] for p in idim.drives]))
    for k in range(2):
        motion = toy.motion(2, 10.0, k, RATE)
        tau = idim.torque(theta, *motion)
        tau += np.random.default_rng(k).normal(size=tau.shape)
        write_joints(own / f"usual-{k}.csv", robot.joint_names, RATE, q=motion[0], tau=tau)
    (own / "usual.toml").write_text((place / "usual.toml").read_text())
    return own


@pytest.mark.long
def test_a_spring_that_the_file_lacks_is_added(sprung):
    fit = identified(sprung / "usual.toml", doctor=False)
    (decision,) = (d for d in fit.settings["decided"] if d["what"] == "elements")
    assert json.loads(decision["value"]) == [{"joint": "joint_2", "kind": "spring"}]
    place = fit.idim.names.index("ks2")
    assert fit.theta[place] == pytest.approx(STIFFNESS, rel=0.15)
    given = identified(sprung / "usual.toml", decide=NOTHING, doctor=False)
    assert held_out(fit) < 0.8 * held_out(given)
    again = run_study(fit.study)
    assert again.settings["decided"] == []
    np.testing.assert_array_equal(again.theta, fit.theta)


@pytest.mark.long
def test_a_measured_arm_gets_the_spring_that_balances_it(measured, tmp_path):
    """Held out on B: 8 % by the best of a search without it (docs/figures/decide.md)."""
    robot, a, b = (
        measured(f"kr300/{name}") for name in ("kr300.toml", "kr300_A.csv", "kr300_B.csv")
    )
    text = f'[robot]\nfile = "{robot}"\n[[log]]\nfiles = "{a}"\nrows = [450, 2051]\n'
    text += (
        f'[[log]]\nfiles = "{b}"\nrows = [450, 2051]\nuse = "validate"\n[identify]\nbootstrap = 0\n'
    )
    (tmp_path / "s.toml").write_text(text)
    fit = identified(tmp_path / "s.toml", doctor=False)
    assert [(each.joint, each.kind) for each in fit.study.element] == [("joint2", "spring")]
    assert held_out(fit) < 6.0


def test_a_spring_is_found_beside_friction_that_is_stated(sprung, tmp_path):
    text = (sprung / "usual.toml").read_text()
    for name in ("arm.urdf", "usual-0.csv", "usual-1.csv"):
        text = text.replace(f'"{name}"', f'"{sprung / name}"')
    path = tmp_path / "s.toml"
    path.write_text(text.replace("[[log]]", 'friction = "coulomb-viscous-asymmetric"\n[[log]]', 1))
    fit = identified(path, doctor=False, decide="elements")
    assert [each.joint for each in fit.study.element] == ["joint_2"]
    assert fit.idim.friction == "coulomb-viscous-asymmetric"


def test_a_joint_that_turns_on_and_on_has_no_spring():
    recording, _ = toy.log(toy.arm(2))
    q = recording.q + np.linspace(0.0, 10.0, len(recording.q))[:, None] * [0.0, 1.0]
    log = prepare(Recording("turns", recording.rate, q, recording.tau), 10.0)
    assert list_joints_within_a_turn(Problem(toy.arm(2), log)) == [0]


def test_friction_may_be_stated_where_no_joint_may_have_a_spring(place, tmp_path):
    robot = toy.arm(2)
    recording, _ = toy.log(robot, 4.0, noise=0.1)
    q = recording.q + np.linspace(0.0, 10.0, len(recording.q))[:, None]
    write_joints(tmp_path / "t.csv", robot.joint_names, recording.rate, q=q, tau=recording.tau)
    text = f'[robot]\nfile = "{place}/arm.urdf"\nfriction = "coulomb-viscous"\n'
    (tmp_path / "s.toml").write_text(f'{text}[[log]]\nfiles = "t.csv"\n')
    fit = identified(tmp_path / "s.toml", doctor=False, bootstrap=0, decide="elements")
    assert [(d["what"], d["value"]) for d in fit.settings["decided"]] == [("elements", "none")]


def test_elements_that_a_study_states_are_not_decided(sprung, tmp_path):
    text = (sprung / "usual.toml").read_text()
    for name in ("arm.urdf", "usual-0.csv", "usual-1.csv"):
        text = text.replace(f'"{name}"', f'"{sprung / name}"')
    (tmp_path / "s.toml").write_text(text + '[[element]]\njoint = "joint_1"\nkind = "spring"\n')
    fit = identified(tmp_path / "s.toml", doctor=False)
    assert "elements" not in [each["what"] for each in fit.settings["decided"]]
    assert [each.joint for each in fit.study.element] == ["joint_1"]


@pytest.mark.long
def test_a_study_that_states_everything_decides_nothing(place, tmp_path):
    text = (place / "root.toml").read_text().replace('"arm.urdf"', f'"{place / "arm.urdf"}"')
    text = text.replace('"root-', f'"{place}/root-').replace(
        "[[log]]", 'friction = "viscous"\n[[log]]', 1
    )
    path = tmp_path / "stated.toml"
    text += 'decide = "bandwidth, friction, standstill, prior_weight"\n'  # all rows are kept
    path.write_text(text + "prior_weight = 1.0\n[prepare]\nbandwidth = 5.0\ndrop_below = 0.0\n")
    fit = run_study(read_study(path))
    assert fit.settings["decided"] == []
    assert fit.idim.friction == "viscous"


def test_logs_are_prepared_by_the_bandwidth_as_it_is_stated(place, tmp_path):
    """A written study has the digits that are said, and gives the same result."""
    text = (place / "usual.toml").read_text().replace('"arm.urdf"', f'"{place / "arm.urdf"}"')
    text = text.replace('"usual-', f'"{place}/usual-')
    names, *lines = (place / "usual-0.csv").read_text().splitlines()
    # 96.1234 Hz: 4.80617 Hz are assumed
    rows = [f"{k / 96.1234!r},{line.partition(',')[2]}" for k, line in enumerate(lines[:800])]
    (tmp_path / "slow.csv").write_text("\n".join([names, *rows]))
    path = tmp_path / "slow.toml"
    path.write_text(text.replace(f"{place}/usual-0.csv", str(tmp_path / "slow.csv")))
    fit = identified(path, decide="bandwidth, standstill")
    (stated,) = {each["value"] for each in fit.settings["decided"] if each["what"] == "bandwidth"}
    assert fit.samples[0].bandwidth == (float(stated),) * 2
    assert float(stated) != 0.05 * fit.samples[0].rate


def test_noise_that_shrinks_a_model_does_not_speak_for_its_bandwidth():
    """A motion of 7 Hz, too, of which noise of 6 mrad leaves little."""
    robot = toy.arm(2)
    q, dq, ddq = (np.array(signal) for signal in toy.motion(2, 6.0))
    wave = 0.01 * np.exp(2j * np.pi * 7.0 * np.arange(len(q)) / toy.RATE)[:, None] * [1.0, -1.0]
    w = 2j * np.pi * 7.0
    q, dq, ddq = (s + (wave * w**k).imag for k, s in enumerate((q, dq, ddq)))
    idim = build_idim(robot, DEFAULT_FRICTION)
    tau = idim.torque(toy.true_parameters(idim, robot.nominal), q, dq, ddq)
    q += 0.006 * np.random.default_rng(5).normal(size=q.shape)
    log = Recording("noisy", toy.RATE, q, tau)
    problem = Problem(robot, prepare(log, bandwidth=10.0))
    setting = build_constrained_setting(problem, Knowledge(), Bootstrap(0), ErrorBars())
    scale = setting.admitted, setting.sigma
    found = choose_bandwidth(problem, lambda hz: [prepare(log, bandwidth=hz)], *scale)
    assert found.value == "2.5"
    assert found.gain_percent > 50.0


@pytest.mark.parametrize(("jitter", "speeds"), [(3e-3, "measured"), (0.0, "differences")])
def test_speeds_are_the_logs_own_where_positions_were_read_at_other_instants(jitter, speeds):
    """Beside speeds that are noisy themselves; without jitter they are no better."""
    robot, count = toy.arm(2), 1500
    q, dq, ddq = (np.array(signal[:count]) for signal in toy.motion(2, 6.0))
    idim = build_idim(robot, DEFAULT_FRICTION)
    tau = idim.torque(toy.true_parameters(idim, robot.nominal), q, dq, ddq)
    rng = np.random.default_rng(5)
    q += jitter * rng.normal(size=(count, 1)) * dq
    dq += 0.01 * rng.normal(size=dq.shape)
    log = Recording("late", toy.RATE, q, tau + 0.1 * rng.normal(size=tau.shape), dq=dq)
    problem = Problem(robot, prepare(log, bandwidth=10.0))
    setting = build_constrained_setting(problem, Knowledge(), Bootstrap(0), ErrorBars())
    scale = setting.admitted, setting.sigma
    found = choose_derivatives(
        problem, lambda kind: [prepare(log, bandwidth=10.0, derivatives=kind)], *scale
    )
    assert found.value == speeds
    assert (found.gain_percent > 30.0) == (jitter > 0.0)


def test_a_bandwidth_that_was_decided_is_not_warned_of_as_assumed(place):
    for decide, told in (("bandwidth", False), ("nothing", True)):
        fit = identified(place / "usual.toml", decide=decide)
        assert any("Hz is assumed" in words for words in fit.warnings) == told


def test_the_command_says_what_was_decided_and_writes_it(place, tmp_path, capfd):
    written = tmp_path / "decided.toml"
    argv = ["identify", str(place / "root.toml"), "-o", str(tmp_path / "out")]
    assert run([*argv, "--write-study", str(written)]) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert (
        "decided friction cube-root: another model than coulomb-viscous is clearly better on 2 of 2"
        in text
    )
    page = (tmp_path / "out" / "report.html").read_text()
    assert "another model than coulomb-viscous is clearly better on 2 of 2 joints" in page
    once = ask(capfd, ["identify", str(written)])
    assert once["settings"]["decided"] == []
    stored = json.loads((tmp_path / "out" / "result.json").read_text())
    assert once["parameters"] == stored["parameters"]
    given = ask(capfd, ["identify", str(place / "root.toml"), "--as-given"])
    assert given["settings"]["friction"] == "coulomb-viscous"


@pytest.mark.long
def test_the_usual_friction_is_written_where_it_was_decided(place, tmp_path, capfd):
    written = tmp_path / "decided.toml"
    argv = ["identify", str(place / "usual.toml"), "--write-study", str(written)]
    first = ask(capfd, argv)
    assert read_study(written).robot.friction == "coulomb-viscous"
    again = ask(capfd, ["identify", str(written)])
    assert again["settings"]["decided"] == []
    assert again["parameters"] == first["parameters"]


@pytest.fixture(scope="module")
def struck(place, tmp_path_factory) -> Path:
    """The log with the usual friction, while something pushes a joint now and then."""
    own = tmp_path_factory.mktemp("struck")
    for name in ("arm.urdf", "usual-1.csv"):
        (own / name).write_bytes((place / name).read_bytes())
    head = (place / "usual-0.csv").read_text().partition("\n")[0]
    log = np.loadtxt(place / "usual-0.csv", delimiter=",", skiprows=1)
    torque = head.split(",").index("tau_joint_2")
    for first in range(PUSHED, len(log) - PUSHED, 2 * PUSHED):
        log[first : first + 100, torque] += 40.0
    np.savetxt(own / "usual-0.csv", log, delimiter=",", header=head, comments="")
    (own / "usual.toml").write_text((place / "usual.toml").read_text())
    return own


@pytest.mark.long
def test_what_the_rest_of_a_log_contradicts_is_left_out(struck):
    fit = identified(struck / "usual.toml", decide="outliers")
    with_all = identified(struck / "usual.toml", decide=NOTHING)
    (decision,) = fit.settings["decided"]
    (ranges,) = json.loads(decision["value"])
    assert decision["gain_percent"] > 0.0
    assert all(a < b for a, b in ranges)
    gaps = [(stop, start) for (_, stop), (start, _) in itertools.pairwise(ranges)]
    assert len(gaps) >= 3
    for a, b in gaps:  # about something that pushed, and no longer than the filter makes it
        assert any(a < f + 300 and b > f - 200 for f in range(PUSHED, 10**4, 2 * PUSHED))
    assert held_out(fit) < 0.7 * held_out(with_all)


@pytest.mark.long
def test_outliers_that_were_left_out_are_stated_in_a_written_study(struck, tmp_path):
    fit = identified(struck / "usual.toml", decide="outliers")
    written = tmp_path / "written.toml"
    written.write_text(render_study(fit.study, tmp_path))
    again = run_study(read_study(written))
    (decision,) = fit.settings["decided"]
    assert [list(each) for each in again.study.log[0].keep] == json.loads(decision["value"])[0]
    assert "outliers" not in [each["what"] for each in again.settings["decided"]]


def test_nothing_is_left_out_of_a_log_with_normal_errors(place):
    fit = identified(place / "usual.toml", decide="outliers")
    assert [each["value"] for each in fit.settings["decided"]] == ["kept"]


def test_an_outlier_among_the_predicted_rows_counts_by_its_size():
    """A row that is far off cannot outweigh what a change does to all others."""
    assert count_huber(np.array([0.5, -1.0])) == pytest.approx([0.25, 1.0])
    far = count_huber(np.array([100.0, 101.0]))
    assert far[1] - far[0] == pytest.approx(2.0 * 1.345)
    both = count_huber(np.array([1.345 - 1e-9, 1.345 + 1e-9]))
    assert both[0] == pytest.approx(both[1])


def opened(place: Path, more: str = "", friction: str = "") -> tuple[str, ...]:
    """What a study leaves open."""
    text = (place / "usual.toml").read_text().replace("[[log]]", f"{friction}\n[[log]]", 1)
    path = place / "open.toml"
    path.write_text(text + more)
    return list_open_decisions(read_study(path), DECISIONS, False)


def test_what_is_stated_is_not_open(place):
    assert opened(place) == DECISIONS

    def without(name: str) -> tuple[str, ...]:
        return tuple(each for each in DECISIONS if each != name)

    assert opened(place, friction='friction = "load"') == without("friction")
    assert opened(place, "[prepare]\ntorque_hz = 9.0\n") == without("bandwidth")
    assert opened(place, "[prepare]\ndrop_below = 0.0\n") == without("standstill")
    stated = '[prepare]\nderivatives = "differences"\n'
    assert opened(place, stated) == without("derivatives")
    assert "derivatives" not in opened(place, 'method = "ml"\n')
    assert opened(place, 'prior = "none"\n') == without("prior_weight")
    spring = '[[element]]\njoint = "joint_1"\nkind = "spring"\n'
    assert opened(place, spring) == without("elements")
    assert "outliers" not in opened(place, 'method = "irls"\n')
    alike = '[[constraint]]\nkind = "symmetric"\nleft = "link_1"\nright = "link_2"\n'
    assert "friction" not in opened(place, alike)
    mass = '[[constraint]]\nkind = "total-mass"\nvalue = 6.0\n'
    assert "friction" in opened(place, mass)


def test_friction_that_is_not_linear_lets_the_rest_be_decided(place):
    text = (place / "loaded.toml").read_text().replace("[[log]]", 'friction = "load"\n[[log]]', 1)
    path = place / "stated-load.toml"
    path.write_text(text)
    fit = run_study(read_study(path))
    found = [each["what"] for each in fit.settings["decided"]]
    assert found == [each for each in DECISIONS if each not in ("derivatives", "friction")]
    assert fit.idim.friction == "load"


def test_the_verdict_does_not_advise_against_what_was_decided():
    robot = toy.arm(2)
    recording, _ = toy.log(robot, noise=0.5)
    q, tau = recording.q.copy(), recording.tau.copy()
    q[6000:] = q[5999]  # at rest, friction is anything
    tau[6000:] += np.random.default_rng(4).uniform(-3.0, 3.0, (1, 2))
    problem = Problem(robot, prepare(Recording("rests", toy.RATE, q, tau), 20.0))
    advised = identify(problem, bootstrap=0, doctor=False).verdict.reasons
    assert any("leave them out" in reason.words for reason in advised)
    decided = identify(problem, bootstrap=0, doctor=False, decided=["standstill"]).verdict.reasons
    assert not any("leave them out" in reason.words for reason in decided)


@pytest.mark.long
def test_logs_are_examined_with_the_usual_friction_whatever_was_decided(place):
    """A decision says nothing of what is wrong with a log."""
    robot = toy.arm(2)
    idim = build_idim(robot, "cube-root")
    drive = np.array([VALUES[p.symbol] for p in idim.drives])
    q, dq, ddq = toy.motion(2, 12.0)
    tau = idim.torque(idim.join(robot.nominal, drive), q, dq, ddq)
    tau[:, 1] *= -1.0
    tau += np.random.default_rng(5).normal(size=tau.shape)
    log = prepare(Recording("turned", toy.RATE, q, tau), 10.0)
    usual = identify(Problem(robot, log), bootstrap=0).findings
    other = identify(Problem(robot, log, "cube-root"), bootstrap=0, decided=["friction"]).findings
    assert [each.remedy for each in usual] == [each.remedy for each in other]
    assert usual


def test_sums_and_known_shapes_can_be_compared(place, capfd):
    names = "cube-root + load, stribeck(vs=0.3), coulomb-viscous"
    argv = ["compare", str(place / "root.toml"), "--frictions", names, "--methods", "wls"]
    found = ask(capfd, argv)
    tried = [*found["candidates"], *found["failures"]]
    assert {each["friction"] for each in tried} == {
        "cube-root + load",
        "stribeck(vs=0.3)",
        "coulomb-viscous",
    }


def test_what_cannot_be_decided_is_refused(place, capfd):
    assert run(["identify", str(place / "root.toml"), "--decide", "frictoin"]) == 2
    assert "'frictoin' is not known; did you mean 'friction'" in capfd.readouterr().err


@pytest.mark.long
def test_what_could_not_be_decided_is_said(place, monkeypatch):
    def fail(*given):
        raise ComputationError("sigmas did not settle")

    monkeypatch.setattr("dynident.study.decide.choose_drives", fail)
    fit = identified(place / "root.toml")
    words = "elements and what comes after were not decided from the logs: sigmas did not settle"
    assert words in fit.warnings
    assert [each["what"] for each in fit.settings["decided"]] == ["bandwidth"]
    assert fit.idim.friction == "coulomb-viscous"


def test_friction_is_decided_without_loads_where_the_fit_with_them_does_not_settle(
    place, monkeypatch
):
    tried = []

    def decided(*given):
        *others, loads = given
        tried.append(loads)
        return decide_study(*others, loads)

    def fit(problem, *given, **options):
        if problem.idim.loaded or not options["decided"]:
            raise UnsettledError("the shapes of the friction did not settle in 60 rounds")
        return identify(problem, *given, **options)

    monkeypatch.setattr("dynident.study.run.decide_study", decided)
    monkeypatch.setattr("dynident.study.run.identify", fit)
    found = identified(place / "loaded.toml")
    assert tried == [True, False]
    assert WITHOUT_LOADS in found.warnings
    assert "load" not in found.idim.friction
    tried.clear()
    with pytest.raises(UnsettledError):
        identified(place / "loaded.toml", decide=NOTHING)
    assert tried == [True]


def test_friction_and_the_weight_of_the_prior_are_decided_in_both_orders(monkeypatch):
    """What is taken is the pair that predicts what was left out better, the weight first or not."""
    room = "dynident.decide.friction"
    weight = Decision("prior_weight", "10", 5.0, "trusted more")
    space = SimpleNamespace(matrix=np.eye(2))
    usual, heavy = (SimpleNamespace(name=name, space=space) for name in ("usual", "heavy"))
    monkeypatch.setattr(f"{room}.choose_weight", lambda *given: weight)
    monkeypatch.setattr(f"{room}.weigh_prior", lambda *given: heavy)
    for name, value in (("estimate_roughly", None), ("factor_blocks", ())):
        monkeypatch.setattr(f"{room}.{name}", lambda *given, value=value: value)
    monkeypatch.setattr(f"{room}.widen", lambda *given: SimpleNamespace(base=None, first=0))
    monkeypatch.setattr(f"{room}.Folds", SimpleNamespace(of=lambda b, admitted, *_: admitted.name))

    def found(errors, springs=()):
        def choose(wide, name, what):
            kind = "elements" if name in springs else "friction"
            return (Decision(kind, name, 0.0, ""),), errors[name]

        return choose

    factors = SimpleNamespace(weighted=lambda own: None)
    problem = SimpleNamespace(factors=factors, under=lambda base: None, robot=toy.arm(2))
    better, worse = {"usual": 5.0, "heavy": 4.0}, {"usual": 4.0, "heavy": 5.0}
    for errors, springs, expected in (
        (better, (), ["prior_weight", "heavy"]),
        (worse, (), ["usual"]),
        ({"usual": 4.0, "heavy": 4.0}, (), ["usual"]),
        (better, ("heavy",), ["heavy"]),  # with springs the weight is to be chosen again
        (better, ("usual", "heavy"), ["heavy"]),
    ):
        monkeypatch.setattr(f"{room}.choose_columns", found(errors, springs))
        pair = choose_drives(problem, usual, np.ones(2), ["friction"], lambda own, _: own)
        assert [each.what if each is weight else each.value for each in pair] == expected
    # a weight that all rows do not confirm takes along the friction that was chosen under it
    monkeypatch.setattr(f"{room}.choose_columns", found(better))
    none = Decision("prior_weight", "1", 0.0, "")
    pair = choose_drives(problem, usual, np.ones(2), ["friction"], lambda *given: none)
    assert [each.value for each in pair] == ["1", "usual"]


KAPPA = 1.7
"""By how much more than their standard deviation says the rows of the next tests err."""


def believe(off):
    """Rows of six parameters, and a prior that is off by so many of its standard deviations."""
    rng = np.random.default_rng(9)
    A, P, truth = rng.normal(size=(400, 6)), rng.normal(size=(6, 6)), rng.normal(size=6)
    b = A @ truth + KAPPA * rng.normal(size=400)
    target = KAPPA * (P @ truth + off * rng.normal(size=6))
    space = SimpleNamespace(matrix=np.eye(6))
    admitted = SimpleNamespace(space=space, kappa=KAPPA, pull=lambda: (KAPPA * P, target))
    return admitted, System(A, b, 0.0)


def minus_log_likelihood(admitted, system, weight):
    """Of the rows, the parameters integrated out under a prior of some weight."""
    P, target = (each / KAPPA for each in admitted.pull())
    mean = np.linalg.solve(P, target)
    spread = np.linalg.inv(P.T @ P) / weight
    C = KAPPA**2 * np.eye(len(system.b)) + system.A @ spread @ system.A.T
    error = system.b - system.A @ mean
    return np.linalg.slogdet(C)[1] + error @ np.linalg.solve(C, error)


@pytest.mark.parametrize("off", [0.2, 1.0, 5.0])
def test_the_weight_rests_where_the_likelihood_of_the_rows_is_largest(off):
    admitted, system = believe(off)
    best = np.exp(
        minimize_scalar(
            lambda log: minus_log_likelihood(admitted, system, np.exp(log)), bounds=(-8.0, 8.0)
        ).x
    )
    P, target = admitted.pull()
    there = SimpleNamespace(**{
        **vars(admitted), "pull": lambda: (np.sqrt(best) * P, np.sqrt(best) * target)
    })  # fmt: skip
    assert estimate_weight(there, system) == pytest.approx(1.0, rel=1e-3)
    # from afar it points there
    assert (estimate_weight(admitted, system) > 1.0) == (best > 1.0)


@pytest.mark.parametrize(
    ("off", "decided", "confirmed"),
    [(0.2, "10", "10"), (1.0, "10", "1"), (5.0, "10", "1"), (5.0, "0.1", "0.1"), (1.0, "0.1", "1")],
)
def test_a_weight_has_to_be_nearer_to_what_the_fit_says_than_the_usual_one(off, decided, confirmed):
    weight = Decision("prior_weight", decided, 5.0, "trusted otherwise")
    found = confirm_weight(weight, *believe(off))
    assert found.value == confirmed
    assert (found is weight) == (decided == confirmed)
    assert found.gain_percent == (5.0 if decided == confirmed else 0.0)


def test_bristles_that_push_in_most_fits_have_no_place():
    """Columns of the wrong sign are left out one after another; the rest is a least-squares fit."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(5, 60, 5))
    rows[:, :, 4] = rows[:, :, 1] - 0.5 * rows[:, :, 2] + 0.1 * rng.normal(size=(5, 60))
    folds = Folds(tuple((own,) for own in rows), np.zeros((0, 5)))
    change = AddedColumns.of(folds, folds.fit(np.array([0])), np.array([1, 2, 3]))
    every = np.ones(3, dtype=bool)
    chosen = change.select([0, 1, 2], every, every)
    assert 0 in chosen
    assert 1 not in chosen
    places, c = change.solve(2, [0, 1, 2], every, every)
    assert np.all(c > 0.0)
    S, right = change.normal[2]
    np.testing.assert_allclose(S[np.ix_(places, places)] @ c, right[places], rtol=1e-12)


@pytest.mark.parametrize(("size", "part"), [(0.22, MEMORY), (0.3, LOAD), (0.0, "")])
def test_what_no_joint_shows_clearly_all_joints_may(size, part):
    """Bristles, or load, that explain a twentieth of each joint's error, and push on the last."""
    rng, joints = np.random.default_rng(2), 5
    blocks = []
    for _ in range(5):
        groups = []
        for j in range(joints):
            rows = np.zeros((300, 3 * joints + 1))
            own = rng.normal(size=(300, 3))
            rows[:, [j, joints + j, 2 * joints + j]] = own
            k = 2 if part == MEMORY else 1
            rows[:, -1] = own[:, 0] + (size if j < 4 else -size) * own[:, k]
            rows[:, -1] += rng.normal(size=300)
            groups.append(rows)
        blocks.append(tuple(groups))
    folds = Folds(tuple(blocks), np.zeros((0, 3 * joints + 1)))
    columns = [
        tuple(Column(part * joints + j, part, True, part == 2) for part in (1, 2))
        for j in range(joints)
    ]
    wide = SimpleNamespace(columns=columns, find=lambda column: column.place)
    menu = build_menu(1.0)
    given = [menu.usual] * joints, frozenset(range(joints))
    for j in range(joints):  # of itself a tenth is asked of each
        assert choose_law(wide, folds, [j], menu.tiers[1:], *given) == given
    for tiers in ((), menu.plain):
        laws, standing = choose_law(wide, folds, range(joints), tiers, *given)
        wanted = f"coulomb-viscous + {part}" if part else "coulomb-viscous"
        assert [law.name for law in laws] == [wanted] * 4 + ["coulomb-viscous"]
        assert len(standing) == joints + (4 if part else 0)
