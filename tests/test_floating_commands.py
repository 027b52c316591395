"""Commands on logs of floating robots: what is compared, chosen, and found to be wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import tell
from floating import Made, solo
from robots import EXAMPLES

from dynident.api import identify
from dynident.cli import run
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.text import format_one_line
from dynident.decide.selection import Selection, SelectionOptions, select_blocks, stack_motion
from dynident.diagnosis.diagnoses import find_equal_limbs, list_column_orders
from dynident.diagnosis.examine import examine
from dynident.diagnosis.wrenches import list_right_angled_turns
from dynident.dynamics.contacts import follow_contact, map_wrench_to_joints
from dynident.dynamics.tree import Tree, build_tree
from dynident.fit.comparison import Comparison, serialise_comparison
from dynident.instants.null_spaces import find_null_spaces
from dynident.recording.prepare import Samples, prepare
from dynident.regression.problem import Problem
from dynident.report import html
from dynident.report.html import render_comparison_page
from dynident.robot.load import load_robot
from dynident.robot.model import Robot
from dynident.robot.rotations import compute_lever_acceleration, convert_rpy, multiply_by_conjugate
from dynident.study import doctor as command
from dynident.study.compare import compare
from dynident.study.doctor import doctor
from dynident.study.run import run_study
from dynident.study.select import format_selection, render_selected_study, select_study
from dynident.study.simulate import SimulatedLog, choose_simulated_model, simulate_study
from dynident.study.study import Study, load_study_robot, read_study, read_study_samples

STUDY = EXAMPLES / "quadruped" / "study.toml"
TRUE, POOR = "coulomb-viscous-symmetric", "viscous"


@cache
def made() -> Made:
    """Solo12 in the air: exact."""
    return solo(3.0)


@cache
def log(equations: str = "full") -> Samples:
    return prepare(replace(made().recording, equations=equations), 10.0)


@cache
def compared() -> Comparison:
    """The example, whose second log has no forces: its logs were written with one friction."""
    return compare(read_study(STUDY), ["wls"], [POOR, TRUE], 3)


def fitted(study: Study) -> Problem:
    """The rows that a study fits."""
    robot = load_study_robot(study)
    logs = [read_study_samples(s, robot, study.prepare) for s in study.log if s.use == "identify"]
    return Problem(robot, logs, study.robot.friction)


# compare


@pytest.mark.long
def test_the_friction_behind_a_floating_log_is_recommended() -> None:
    found = compared()
    assert found.choice.friction == TRUE
    assert not found.failures
    poor, true = found.candidates
    assert true.held_out.percent()[0] < 0.5 * poor.held_out.percent()[0]
    assert found.bic[0] > found.bic[1] == 0.0


def test_blocks_in_which_no_contacts_last_are_refused() -> None:
    with pytest.raises(InputError, match=r"contacts lasts .* or ask for fewer blocks than 5"):
        compare(read_study(STUDY), ["wls"], [TRUE], 5)


@pytest.mark.long
def test_friction_with_shapes_is_fitted_afloat() -> None:
    samples = prepare(made().recording.rows(0, 500), 10.0)
    problem = Problem(made().robot, [samples], "stribeck")
    fit = identify(problem, "wls", doctor=False)
    assert fit.identification[0].overall_percent < 1.0
    assert fit.estimate.shape is not None


@pytest.mark.long
def test_combinations_that_are_free_of_one_set_are_one_kind_of_rows() -> None:
    found = compared()
    assert found.kinds[:6] == tuple(f"base {part}" for part in ("fx", "fy", "fz", "mx", "my", "mz"))
    sets = [name for name in found.kinds if name.startswith("free of ")]
    assert "free of FL+FR+HL+HR" in sets
    assert found.kinds == (*found.kinds[:6], *found.robot.joint_names, *sets)
    # held out is a stretch in which one leg alone is lifted, and no force is measured
    shown = [found.kinds[k] for k in found.shown]
    assert shown == [
        "HL_roll", "HL_hip_pitch", "HL_knee", "free of FL+FR+HL+HR", "free of FL+FR+HR",
    ]  # fmt: skip
    # as many sigmas as there are kinds that were fitted: combinations share theirs
    assert len(found.candidates[0].rows) == 6 + 12 + 4
    assert np.sum(found.candidates[0].rows) == fitted(read_study(STUDY)).factors.rows


@pytest.mark.long
def test_a_comparison_of_a_floating_robot_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "render_chart", lambda *_: "")
    found = compared()
    text, page = found.summary(), render_comparison_page(found)
    assert "nan" not in text
    assert "free of FL+FR+HR" in text
    assert "free of FL+FR+HR" in page
    assert max(map(len, text.splitlines())) <= 80
    one = serialise_comparison(found)["candidates"][1]
    assert len(one["joints"]) == 12
    assert [each["name"] for each in one["others"]] == ["free of FL+FR+HL+HR", "free of FL+FR+HR"]
    assert all(np.isfinite(each["percent"]) for each in one["others"])


# select


@cache
def chosen() -> Selection:
    return select_study(read_study(STUDY))


@pytest.mark.long
def test_the_chosen_rows_alone_are_fitted(tmp_path: Path) -> None:
    """Those of the base's wrench and of combinations, too."""
    found, study = chosen(), read_study(STUDY)
    whole = fitted(study)
    assert 0 < found.rows < found.rows_all == whole.factors.rows
    assert found.of(whole).factors.rows == found.rows
    text = render_selected_study(STUDY, study, found)
    for name in ("quadruped.urdf", "sway.csv", "steps.csv"):
        text = text.replace(f'"{name}"', f'"{STUDY.parent / name}"')
    path = tmp_path / "chosen.toml"
    path.write_text(text)
    assert fitted(read_study(path)).factors.rows == found.rows


@pytest.mark.long
def test_the_base_carries_the_whole_robot() -> None:
    found = chosen()
    assert found.chains[0].joint == "trunk"
    assert found.chains[0].columns == tuple(range(len(found.names)))
    assert [chain.joint for chain in found.chains[1:4]] == ["FL_roll", "FL_hip_pitch", "FL_knee"]
    text = format_selection(found)
    assert "trunk" in text
    assert "nan" not in text


@pytest.mark.long
def test_the_same_motion_is_a_repeat_where_its_rows_are_of_the_same_equations() -> None:
    often = SelectionOptions(block=0.5, gain=1e-6)
    robot = made().robot
    same = select_blocks(Problem(robot, [log(), log()], "viscous"), often)
    assert same.repeats == same.offered // 2
    other = select_blocks(Problem(robot, [log(), log("base")], "viscous"), often)
    assert other.repeats == 0


def test_a_repeat_may_be_elsewhere_and_move_steadily() -> None:
    here, gravity = log(), made().robot.gravity
    assert here.base is not None
    pose, twist = here.base.pose.copy(), here.base.twist.copy()
    pose[:, :3] += [3.0, -2.0, 0.1]
    twist[:, :3] += 0.7
    there = replace(here, base=replace(here.base, pose=pose, twist=twist))
    assert np.array_equal(stack_motion(here, gravity), stack_motion(there, gravity))
    # an inertial unit feels the same
    acceleration = here.base.acceleration.copy()
    acceleration[:, :3] = stack_motion(here, gravity)[:, :3]
    unit = replace(here.base, acceleration=acceleration, proper=True)
    assert np.allclose(stack_motion(replace(here, base=unit), gravity), stack_motion(here, gravity))


def test_what_the_base_misses_is_said_of_the_base() -> None:
    """A base that stands tells nothing of its moments of inertia apart from those of others."""
    recording = made().recording
    assert recording.base is not None
    assert recording.base.orientation is not None
    upright = np.tile([0.0, 0.0, 0.0, 1.0], (len(recording.q), 1))
    level = replace(recording, base=replace(recording.base, orientation=upright))
    problem = Problem(made().robot, prepare(level, 10.0), "viscous")
    words = {each.name: each for each in select_blocks(problem).missing}
    assert words["Ixx0R"].joint == made().robot.base_link
    assert "rolling, pitching and yawing" in words["Ixx0R"].words


# doctor


@cache
def logs() -> tuple[Samples, Samples]:
    """The example's: forces under all feet, and none."""
    study = read_study(STUDY)
    robot = load_study_robot(study)
    sway, steps, _ = (read_study_samples(each, robot, study.prepare) for each in study.log)
    return sway, steps


def found(*samples: Samples, thorough: bool = False) -> list[tuple[str, str, str]]:
    problem = Problem(load_study_robot(read_study(STUDY)), samples)
    every = examine(problem.base, problem.samples, thorough=thorough)
    assert len(every) == len(samples)
    return [(f.log, f.what, f.remedy) for own in every for f in own]


def torques(log: Samples, change: Callable[[Array], Array]) -> Samples:
    return log.driven(change(log.tau.copy()))


def wrenches(log: Samples, change: Callable[[dict[str, Array]], dict[str, Array]]) -> Samples:
    return replace(log, wrenches={**log.wrenches, **change(dict(log.wrenches))})


def remounted(log: Samples) -> Samples:
    """As though nobody had said that the unit is turned by a quarter."""
    base, R = log.base, convert_rpy((0.0, 0.0, -np.pi / 2))
    assert base is not None
    assert base.mount is not None
    assert base.turn is not None
    rate, spin = base.twist[:, 3:], base.acceleration[:, 3:]
    felt = (base.acceleration[:, :3] + compute_lever_acceleration(rate, spin, base.mount)) @ R.T
    rate, spin = rate @ R.T, spin @ R.T
    return replace(
        log,
        base=replace(
            base,
            twist=np.hstack([base.twist[:, :3], rate]),
            acceleration=np.hstack(
                [felt - compute_lever_acceleration(rate, spin, base.mount), spin]
            ),
            turn=R @ base.turn,
            oriented=False,
        ),
    )


def later(x: Array, samples: int) -> Array:
    return np.vstack([np.repeat(x[:1], samples, axis=0), x[:-samples]])


@pytest.mark.long
def test_nothing_is_wrong_with_sound_logs() -> None:
    assert not found(*logs(), thorough=True)
    assert not found(*logs())


def in_kgf(w: dict[str, Array]) -> dict[str, Array]:
    return {name: x / 9.81 for name, x in w.items()}


FLIP = np.where(np.arange(12) == 4, -1.0, 1.0)
LEGS = [3, 4, 5, 0, 1, 2, *range(6, 12)]
LEGS_SWAPPED = (
    "of FL_roll ... FL_knee and FR_roll ... FR_knee are in each other's columns",
    "[4, 5, 6, 1, 2, 3,",
)
FOOT_PULLS = ("wrench of FL has", "sign = -1")
FEET = ("the wrenches of FL and HR are in each other's columns", "wrench_FL as those of HR")


@pytest.mark.long
@pytest.mark.parametrize(
    ("which", "damage", "what", "remedy"),
    [
        (1, lambda log: torques(log, lambda t: FLIP * t), "the torque of FR_hip_pitch has the", ""),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (0, lambda log: wrenches(log, in_kgf), "kgf", "in N"),
                (0, remounted, "inertial unit is oriented differently", "imu_rpy = [0, 0, 1.5708]"),
                (0, lambda log: torques(log, lambda t: FLIP * t), "of FR_hip_pitch has the", ""),
                (0, lambda log: torques(log, lambda t: -t), "torques of all joints have the", "-1"),
                (0, lambda log: torques(log, lambda t: t[:, LEGS]), *LEGS_SWAPPED),
                (1, lambda log: torques(log, lambda t: t[:, LEGS]), *LEGS_SWAPPED),
                (0, lambda log: wrenches(log, lambda w: {"FL": -w["FL"]}), *FOOT_PULLS),
                (0, lambda log: wrenches(log, lambda w: {"FL": w["HR"], "HR": w["FL"]}), *FEET),
                (1, remounted, "inertial unit is oriented differently", "imu_rpy = [0, 0, 1.5708]"),
            )
        ),
    ],
)
def test_what_is_wrong_with_one_of_two_logs_is_named(which, damage, what, remedy) -> None:
    damaged = [damage(log) if k == which else log for k, log in enumerate(logs())]
    ((name, said, repaired),) = found(*damaged)
    assert name == damaged[which].name
    assert what in said
    assert remedy in repaired


def number(words: str) -> float:
    return float(next(w for w in words.split() if w.lstrip("-").replace(".", "", 1).isdigit()))


@pytest.mark.long
def test_delays_and_zeros_are_measured() -> None:
    """At 100 Hz five samples are 50 ms."""
    sway, steps = logs()
    ((_, said, repaired),) = found(torques(sway, lambda t: later(t, 5)), thorough=True)
    assert said.startswith("the torques stand")
    assert number(said) == pytest.approx(50.0, abs=3.0)
    assert repaired.startswith("add delay = 0.0")
    late = wrenches(sway, lambda w: {name: later(x, 5) for name, x in w.items()})
    ((_, said, _),) = found(late)
    assert said.startswith("the contacts' wrenches stand")
    assert number(said) == pytest.approx(50.0, abs=3.0)
    q = sway.q + 0.1 * (np.arange(12) == 5)
    ((_, said, repaired),) = found(replace(sway, q=q), steps, thorough=True)
    assert said.startswith("the position of FR_knee lacks")
    assert number(said) == pytest.approx(-np.degrees(0.1), abs=np.degrees(0.01))
    assert (
        "offset = [0, 0, 0, 0, 0, -0.1" in repaired or "offset = [0, 0, 0, 0, 0, -0.09" in repaired
    )


@pytest.mark.long
def test_axes_of_wrenches_are_told() -> None:
    sway, _ = logs()
    problem = Problem(load_study_robot(read_study(STUDY)), [sway])
    (log,) = problem.samples
    turned = {}
    for contact in problem.robot.contacts:
        R = follow_contact(problem.idim.tree, problem.robot, contact, log.q).turn
        turned[contact.name] = np.einsum("tij,tj->ti", R, log.wrenches[contact.name])
    ((_, said, repaired),) = found(wrenches(sway, lambda w: turned))
    assert said == "the wrenches are in the axes of the world"
    assert repaired == 'set axes = "world" in [[contact]]'


def test_null_spaces_are_those_of_each_instant_whatever_its_rank() -> None:
    A = np.random.default_rng(0).normal(size=(7, 6, 3))
    A[2, :, 1] = A[2, :, 0] - 2.0 * A[2, :, 2]
    A[4] = 0.0
    for own, counts in ((A, [3, 3, 4, 3, 6, 3, 3]), (np.swapaxes(A, 1, 2), [0, 0, 1, 0, 3, 0, 0])):
        N, count = find_null_spaces(own)
        assert count == sum(counts)
        assert N.shape == (7, max(counts), own.shape[1])
        np.testing.assert_allclose(N @ own, 0.0, atol=1e-12)
        products = N @ np.swapaxes(N, 1, 2)
        there = np.arange(max(counts)) >= max(counts) - np.array(counts)[:, None]
        np.testing.assert_allclose(products, there[:, None] * np.eye(max(counts)), atol=1e-12)


def test_orders_are_those_of_limbs() -> None:
    robot = made().robot
    assert find_equal_limbs(robot) == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9, 10, 11)]
    every = {tuple(order): words for words, order in list_column_orders(robot, frozenset())}
    assert len(every) == 6 + 1 + 1  # pairs of limbs, by joints, opposite; by name is as it is
    # the first joint's column is the first, the second joint's of the same leg the fifth
    by_joints = next(order for order, words in every.items() if "sorted by joints" in words)
    assert by_joints[:3] == (1, 5, 9)
    assert len(list(list_right_angled_turns())) == 23
    assert all(np.isclose(np.linalg.det(R), 1.0) for R in list_right_angled_turns())


@pytest.mark.long
def test_a_study_is_repaired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = STUDY.read_text()
    for name in ("quadruped.urdf", "sway.csv", "steps.csv"):
        text = text.replace(f'"{name}"', f'"{STUDY.parent / name}"')
    head, sway, *_ = text.partition("[prepare]")[0].split("[[log]]\n")
    flipped = sway.rstrip() + "\nsign = { tau = [1, 1, 1, 1, -1, 1, 1, 1, 1, 1, 1, 1] }\n"
    path, repaired = tmp_path / "study.toml", tmp_path / "repaired.toml"
    path.write_text(f"{head}[[log]]\n{flipped}\n[prepare]\nbandwidth = 5.0\n")
    assert run(["doctor", str(path), "--fix", str(repaired)]) == 0
    assert "the torque of FR_hip_pitch has the opposite sign" in capsys.readouterr().out
    (report,) = doctor(read_study(repaired))
    assert not report.findings
    # identify says it, too, and does not trust what it found
    out = tell(capsys, ["identify", str(path), "--method", "wls", "--no-report"]).out
    assert "refuted" in out
    assert "FR_hip_pitch has the opposite sign" in " ".join(out.split())


def test_logs_of_a_base_alone_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their joints have no torques, which is nothing that is wrong with them."""
    head, sway, *_ = STUDY.read_text().partition("[prepare]")[0].split("[[log]]\n")
    names, *rows = (STUDY.parent / "sway.csv").read_text().splitlines()[:252]
    kept = [k for k, name in enumerate(names.split(",")) if not name.startswith("tau_")]
    table = [",".join(row.split(",")[k] for k in kept) for row in (names, *rows)]
    (tmp_path / "sway.csv").write_text("\n".join(table))
    file, path = STUDY.parent / "quadruped.urdf", tmp_path / "study.toml"
    head = head.replace('"quadruped.urdf"', f'"{file}"')
    path.write_text(f"{head}[[log]]\n{sway}\n[prepare]\nbandwidth = 5.0\n")
    study = read_study(path)
    robot = load_study_robot(study)
    log = read_study_samples(study.log[0], robot, study.prepare)
    monkeypatch.setattr(command, "examine_generalised_logs", lambda _: ([()], [()]))
    for report in (*doctor(study), *doctor(Problem(robot, (log,)))):
        assert not [sign.what for sign in report.signs if "torque of" in sign.what]


@pytest.mark.long
@pytest.mark.parametrize(
    ("turned", "kind"), [pytest.param(0.6, "findings", marks=pytest.mark.long), (1.45, "signs")]
)
def test_what_no_reading_explains_is_asked_gravity(
    tmp_path: Path, turned: float, kind: str
) -> None:
    """A unit that is askew by no right angle: its turn is measured beside the orientation.

    What is less is a sign.
    """
    # of the logs that are fitted
    head, *logs = STUDY.read_text().partition("[prepare]")[0].split("[[log]]\n")
    text = "[[log]]\n".join([head, *logs[: 2 if kind == "findings" else 1]])
    text = text.replace("1.5707963]", f"{turned}]") + "[prepare]\nbandwidth = 5.0\n"
    for name in ("quadruped.urdf", "sway.csv", "steps.csv"):
        text = text.replace(f'"{name}"', f'"{STUDY.parent / name}"')
    path = tmp_path / "study.toml"
    path.write_text(text)
    for report in doctor(read_study(path)):
        own = getattr(report, kind)
        assert own[0].what.startswith("the base's angular velocity is not that of its orientation")
        if kind == "findings":
            assert re.fullmatch(r"add imu_rpy = \[.*, 1\.57\d*\] to \[\[log\]\]", own[0].remedy)
        else:
            assert "1.57] it would be" in own[0].what


def test_a_limb_is_not_looked_at(tmp_path: Path) -> None:
    text = STUDY.read_text().replace("floating = true", 'floating = true\nbeyond = "FL_thigh"')
    for name in ("quadruped.urdf", "sway.csv", "steps.csv"):
        text = text.replace(f'"{name}"', f'"{STUDY.parent / name}"')
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(InputError, match="beyond") as error:
        doctor(read_study(path))
    assert format_one_line(error.value)


# simulate

SIMULATED = STUDY.parent / "simulate.toml"


@pytest.fixture(scope="module")
def circle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first seconds of the log of the example, and a study that identifies from it."""
    folder = tmp_path_factory.mktemp("circle")
    text = SIMULATED.read_text().replace('"quadruped.urdf"', f'"{STUDY.parent / "quadruped.urdf"}"')
    (folder / "simulate.toml").write_text(text.replace("duration = 8.0", "duration = 5.0"))
    assert run(["simulate", str(folder / "simulate.toml"), "-o", str(folder / "run.csv")]) == 0
    head = text.partition("[ground]")[0]
    path = folder / "study.toml"
    path.write_text(
        f'{head}[[log]]\nfiles = "run.csv"\nrows = [250, 1250]\n\n'
        "[prepare]\nbandwidth = 5.0\n\n[identify]\nbootstrap = 0\n"
    )
    return path


@pytest.mark.long
def test_what_is_simulated_is_identified(circle: Path) -> None:
    """By `simulate.toml` 14.35 kg, of which the robot file knows 12.6."""
    result = run_study(read_study(circle))
    assert result.phi is not None
    assert not result.findings
    assert result.verdict.state == "trusted"
    assert abs(np.sum(result.phi[:, 0]) - 14.35) < 0.02
    found = fitted(read_study(circle))
    study = read_study(SIMULATED, use=None)
    truth = found.base.matrix @ choose_simulated_model(study, found.robot)[1]
    plain = identify(found, "wls", doctor=False)
    z = (plain.estimate.beta - truth) / np.sqrt(np.diag(plain.estimate.covariance.matrix))
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.5


def shortly(folder: Path, change: Callable[[str], str], noise: bool = True) -> SimulatedLog:
    """The example's first second."""
    text = SIMULATED.read_text().replace('"quadruped.urdf"', f'"{STUDY.parent / "quadruped.urdf"}"')
    text = text.replace("duration = 8.0", "duration = 0.6")
    if not noise:
        text = re.sub(r"\[noise\].*?(?=\[simulation)", "", text, flags=re.S)
    path = folder / "short.toml"
    path.write_text(change(text))
    return simulate_study(read_study(path, use=None))


@pytest.mark.long
def test_noise_has_the_size_that_the_study_says(tmp_path: Path) -> None:
    """The motion is the same: no controller sees it."""
    seen = shortly(tmp_path, lambda text: text).recording
    true = shortly(tmp_path, lambda text: text, noise=False).recording
    one, other = seen.base, true.base
    assert one is not None
    assert other is not None
    turned = 2.0 * multiply_by_conjugate(other.orientation, one.orientation)
    for off, size in (
        (seen.q - true.q, 2e-5),
        (seen.tau - true.tau, 0.03),
        (one.gyro - other.gyro, 2e-3),
        (one.force - other.force, 2e-2),
        (one.position - other.position, 2e-4),
        (turned, 2e-4),
        *((seen.wrenches[name] - true.wrenches[name], 0.5) for name in true.wrenches),
    ):
        assert np.std(off) == pytest.approx(size, rel=0.15)
    assert all(np.array_equal(seen.touching[name], true.touching[name]) for name in true.touching)
    assert np.array_equal(seen.qref, true.qref)


@pytest.mark.long
def test_a_contact_is_logged_as_it_is_said_to_be(tmp_path: Path) -> None:
    """Another sign, other axes and a bias of its sensor: the same force on the joints."""
    keys = 'kind = "point"\nsign = -1\naxes = "world"\nbias = [1.0, -2.0, 3.0]\nrpy = [0.2, 0.1, 0]'
    plain = shortly(tmp_path, lambda text: text, noise=False)
    other = shortly(tmp_path, lambda text: text.replace('kind = "point"', keys), noise=False)
    base = plain.recording.base
    assert base is not None
    assert np.allclose(base.force, other.recording.base.force)
    q = np.hstack([base.position, base.orientation, plain.recording.q])
    tree = made_tree(plain)
    for one, two in zip(plain.contacts, other.contacts, strict=True):
        felt = [
            map_wrench_to_joints(
                tree, robot_of(each), contact, q, each.recording.wrenches[contact.name]
            )
            for each, contact in ((plain, one), (other, two))
        ]
        assert np.allclose(*felt, atol=1e-9)


def robot_of(log: SimulatedLog) -> Robot:
    robot = load_robot(STUDY.parent / "quadruped.urdf", floating=True)
    return replace(robot, contacts=log.contacts)


def made_tree(log: SimulatedLog) -> Tree:
    return build_tree(robot_of(log))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('kind = "point"', 'kind = "surface"', "give [ground] sole"),
        ("seed = 1", "seed = 1\njitter = 1e-4", "jitter is not simulated for floating robots"),
        ("stiffness = 20000.0", "stiffness = -1.0", "stiffness has to be above 0"),
        ("stiffness", "stiffnes", "stiffness"),
        ("gyro = 2e-3", "gyro = -2e-3", "'noise.gyro' is -0.002"),
        ("kd = 3.0", "kd = 3.0\nrate = 250.0", "continuous controller"),
        ("floating = true", "floating = false", "'m0' is not known"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, words: str
) -> None:
    text = SIMULATED.read_text().replace('"quadruped.urdf"', f'"{STUDY.parent / "quadruped.urdf"}"')
    path = tmp_path / "study.toml"
    path.write_text(text.replace("duration = 8.0", "duration = 0.4").replace(old, new))
    assert run(["simulate", str(path), "-o", str(tmp_path / "run.csv")]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert words in said[0]
    assert not (tmp_path / "run.csv").exists()


@pytest.mark.long
def test_soles_bear_moments(tmp_path: Path) -> None:
    found = shortly(
        tmp_path,
        lambda text: text.replace('kind = "point"', 'kind = "surface"').replace(
            "friction = 0.8", "friction = 0.8\nsole = [0.02, 0.01]\nnormal = [0.05, 0.0, 1.0]"
        ),
    )
    assert all(wrench.shape[1] == 6 for wrench in found.recording.wrenches.values())
    header = found.to_csv().decode().partition("\n")[0]
    assert "mz_HR,contact_HR" in header


def test_ground_and_noise_of_a_base_are_of_floating_robots(tmp_path: Path) -> None:
    text = (
        f'[robot]\nfile = "{STUDY.parent / "quadruped.urdf"}"\nfriction = "viscous"\n'
        '[controller]\nkind = "pd"\nkp = 100.0\nkd = 2.0\n[reference]\nkind = "quintic"\n'
        f"rate = 500.0\npoints = [{[0.0] * 12}, {[0.1] * 12}]\ntimes = [0.0, 0.5]\n"
    )
    path = tmp_path / "fixed.toml"
    for more, words in (
        ("[ground]\nstiffness = 1e4\n", "ground"),
        ("[noise]\nforce = 1.0\n", "force needs a floating robot"),
    ):
        path.write_text(text + more)
        with pytest.raises(InputError, match=words):
            simulate_study(read_study(path, use=None))


FEET = [f"--contact={foot}={foot}_foot:point" for foot in ("FL", "FR", "HL", "HR")]
BRIEF = {"compare": ["--frictions", "viscous", "--methods", "ols", "--blocks", "2"]}


@pytest.mark.long
@pytest.mark.parametrize("command", ["compare", "doctor", "select"])
@pytest.mark.parametrize("by_flags", [False, True], ids=["study", "flags"])
def test_commands_take_floating_robots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, by_flags: bool
) -> None:
    given = [str(STUDY)]
    if by_flags:
        table = pd.read_csv(STUDY.parent / "sway.csv")
        for sensor in ("imu_w", "imu_a"):  # it is turned by a quarter
            x, y = table[f"{sensor}x"].copy(), table[f"{sensor}y"].copy()
            table[f"{sensor}x"], table[f"{sensor}y"] = -y, x
        table.to_csv(tmp_path / "sway.csv", index=False)
        given = ["--robot", str(STUDY.parent / "quadruped.urdf"), "--floating", *FEET]
        given += ["--log", str(tmp_path / "sway.csv"), "--bandwidth", "5"]
    assert run([command, *given, *BRIEF.get(command, [])]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


@pytest.mark.parametrize("command", ["compare", "doctor", "select"])
def test_a_base_and_contacts_beside_a_study_are_refused(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    for flag in ("--floating", FEET[0]):
        assert run([command, str(STUDY), flag]) == 2
        assert "give either a study, or --robot and --log" in capsys.readouterr().err
