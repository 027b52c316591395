"""Commands on logs of floating robots: what is compared, and what is chosen."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from floating import Made, solo
from robots import EXAMPLES

from dynident.cli import run
from dynident.excitation.selection import Selecting, Selection, felt, select_blocks
from dynident.recording.prepare import Samples, prepare
from dynident.regression.problem import Problem
from dynident.results.comparison import Comparison, comparison_dict
from dynident.results.html import comparison_page
from dynident.study.compare import compare
from dynident.study.select import select_study, selected_study, selection_text
from dynident.study.study import Study, read_study, study_robot, study_samples

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
    robot = study_robot(study)
    logs = [study_samples(s, robot, study.prepare) for s in study.log if s.use == "identify"]
    return Problem(robot, logs, study.robot.friction)


# compare


def test_the_friction_behind_a_floating_log_is_recommended() -> None:
    found = compared()
    assert found.choice.friction == TRUE
    assert not found.failures
    poor, true = found.candidates
    assert true.held_out.percent()[0] < 0.5 * poor.held_out.percent()[0]
    assert found.bic[0] > found.bic[1] == 0.0


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


def test_a_comparison_of_a_floating_robot_is_written() -> None:
    found = compared()
    text, page = found.summary(), comparison_page(found)
    assert "nan" not in text
    assert "free of FL+FR+HR" in text
    assert "free of FL+FR+HR" in page
    assert max(map(len, text.splitlines())) <= 80
    one = comparison_dict(found)["candidates"][1]
    assert len(one["joints"]) == 12
    assert [each["name"] for each in one["others"]] == ["free of FL+FR+HL+HR", "free of FL+FR+HR"]
    assert all(np.isfinite(each["percent"]) for each in one["others"])


# select


@cache
def chosen() -> Selection:
    return select_study(read_study(STUDY))


def test_the_chosen_rows_alone_are_fitted(tmp_path: Path) -> None:
    """Those of the base's wrench and of combinations, too."""
    found, study = chosen(), read_study(STUDY)
    whole = fitted(study)
    assert 0 < found.rows < found.rows_all == whole.factors.rows
    assert found.of(whole).factors.rows == found.rows
    text = selected_study(STUDY, study, found)
    for name in ("quadruped.urdf", "sway.csv", "steps.csv"):
        text = text.replace(f'"{name}"', f'"{STUDY.parent / name}"')
    path = tmp_path / "chosen.toml"
    path.write_text(text)
    assert fitted(read_study(path)).factors.rows == found.rows


def test_the_base_carries_the_whole_robot() -> None:
    found = chosen()
    assert found.chains[0].joint == "trunk"
    assert found.chains[0].columns == tuple(range(len(found.names)))
    assert [chain.joint for chain in found.chains[1:4]] == ["FL_roll", "FL_hip_pitch", "FL_knee"]
    text = selection_text(found)
    assert "trunk" in text
    assert "nan" not in text


def test_the_same_motion_is_a_repeat_where_its_rows_are_of_the_same_equations() -> None:
    often = Selecting(block=0.5, gain=1e-6)
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
    assert np.array_equal(felt(here, gravity), felt(there, gravity))
    # an inertial unit feels the same
    acceleration = here.base.acceleration.copy()
    acceleration[:, :3] = felt(here, gravity)[:, :3]
    unit = replace(here.base, acceleration=acceleration, proper=True)
    assert np.allclose(felt(replace(here, base=unit), gravity), felt(here, gravity))


def test_what_the_base_misses_is_said_of_the_base(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("command", ["compare", "select"])
def test_commands_take_floating_studies(capsys: pytest.CaptureFixture[str], command: str) -> None:
    more = ["--frictions", "viscous", "--methods", "ols", "--blocks", "2"]
    assert run([command, str(STUDY), *(more if command == "compare" else [])]) == 0
    assert capsys.readouterr().out
