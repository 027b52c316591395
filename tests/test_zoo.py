"""The zoo: what the package carries is what its studies give, and may be copied."""

from __future__ import annotations

import lzma
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from commands import tell

import dynident as di
from dynident.cli import run
from dynident.fit.zoo import ENTRIES, FOLDER, ZOO, tabulate_zoo
from dynident.report.fit import Fit

TOP = Path(__file__).parents[1]
LARGEST = 1_000_000
"""Bytes of all files together, which go into the wheel."""
LARGEST_PAGE = 1_500_000
QUICK = "emps"
NEAR = 0.1
"""Standard errors by which searches may end apart on other processors."""


SCREEN = 40
"""Lines of a summary of up to six joints."""


@cache
def keep(name: str) -> Fit:
    """The entry as the package has it, read once."""
    return di.read_zoo(name)


@pytest.mark.parametrize("name", ZOO)
def test_a_summary_is_a_screen_and_says_what_is_left_out(name):
    fit = keep(name)
    lines = fit.summary().splitlines()
    assert max(len(line) for line in lines) <= 80
    assert len(lines) <= SCREEN + max(0, fit.robot.n - 6)
    head = next(line for line in lines if line.startswith("joint "))
    for joint in fit.robot.joint_names:
        (line,) = (each for each in lines if each.startswith(f"{joint} "))
        assert len(line) <= len(head)
    assert "--full" in "".join(lines)


def measure_held_out(fit: Fit) -> list[float]:
    free = [log.free[-1].overall_milli for log in fit.validation if log.free]
    return free or [log.entries[-1].overall_percent for log in fit.validation]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == QUICK else pytest.mark.long) for name in ZOO],
)
def test_an_entry_is_what_its_command_makes(name):
    kept, made = keep(name), di.run_study(di.read_study(TOP / ZOO[name].study))
    assert made.method == kept.method
    assert made.base.names == kept.base.names
    assert made.verdict.state == kept.verdict.state
    assert len(made.render_page()) < LARGEST_PAGE
    assert [d["what"] for d in made.settings["decided"]] == [
        d["what"] for d in kept.settings["decided"]
    ]
    np.testing.assert_allclose(measure_held_out(made), measure_held_out(kept), rtol=0.01)
    if kept.estimate.fitted is None:
        one, other, std = made.estimate.beta, kept.estimate.beta, kept.estimate.covariance.std
    else:
        one, other = made.estimate.fitted.values, kept.estimate.fitted.values
        std = kept.estimate.fitted.std
    told = np.isfinite(std) & (std > 0.0)
    assert np.sum(told) > 0
    assert np.max(np.abs(one - other)[told] / std[told]) < NEAR


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_entries_have_the_files_of_the_tree_and_its_licences(entry):
    folder = (TOP / entry.study).parent
    for paper in (folder / "NOTICE", *folder.glob("LICENSE-*")):
        assert paper.read_text(encoding="utf-8") in entry.notice
    assert "LICENSE-" in entry.notice
    fit = keep(entry.name)
    assert fit.robot_files.files
    for file in fit.robot_files.files:
        assert (folder / file.name).read_bytes() == file.content
    study = di.read_study(TOP / entry.study)
    files = {Path(name).resolve() for log in fit.study.log for name in log.files}
    assert files == {Path(name).resolve() for log in study.log for name in log.files}
    assert any(log.use == "validate" for log in study.log)
    assert fit.validation


def test_the_zoo_is_small_and_has_nothing_else():
    assert {path.name for path in FOLDER.iterdir()} == {
        name for each in ENTRIES for name in (each.result.name, f"{each.name}.txt")
    }
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < LARGEST


def test_the_table_has_what_the_fits_say(capsys):
    out = tell(capsys, ["zoo"]).out
    assert max(map(len, out.splitlines())) <= 80
    page = (TOP / "docs" / "figures" / "zoo.md").read_text(encoding="utf-8")
    for row in tabulate_zoo():
        fit = keep(row.name)
        line = next(line for line in out.splitlines() if line.startswith(f"{row.name} "))
        assert line.split()[-1] == fit.verdict.state
        figure = f"{max(measure_held_out(fit)):.3g}"
        assert row.held_out.startswith(figure[:3])
        assert row.held_out in line
        assert row.held_out in page
        assert f"({row.licence})" in " ".join(out.split())
        assert row.source.split()[-1] in out


def test_an_entry_is_written_with_its_notice(tmp_path, capsys):
    assert run(["zoo", "kr300", "-o", str(tmp_path), "--no-report"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"NOTICE", "model.urdf", "result.json"}
    assert di.read_result(tmp_path / "result.json") == keep("kr300")
    assert "Jonas Weigand" in (tmp_path / "NOTICE").read_text()
    robot = di.load_robot(tmp_path / "model.urdf")
    np.testing.assert_allclose(robot.nominal, keep("kr300").phi, atol=1e-6)


def test_a_refuted_entry_gives_no_model_unless_anyway(tmp_path, capsys, monkeypatch):
    fit = keep("panda")
    refuted = replace(fit, verdict=replace(fit.verdict, state="refuted"))
    monkeypatch.setattr("dynident.study.fits.read_zoo", lambda name: refuted)
    given = ["zoo", "panda", "-o", str(tmp_path), "--no-report"]
    assert "--anyway" in tell(capsys, given).err
    assert not (tmp_path / "model.urdf").exists()
    assert run([*given, "--anyway"]) == 0
    assert (tmp_path / "model.urdf").exists()


def test_unknown_names_are_refused_with_the_nearest(capsys):
    assert "did you mean 'tx40'" in tell(capsys, ["zoo", "tx4"], code=2).err
    assert run(["zoo", "-o", "out"]) == 2


def test_packed_results_that_are_damaged_are_refused(tmp_path):
    whole = ZOO[QUICK].result.read_bytes()
    for name, content in (("cut", whole[:2000]), ("plain", b"{}"), ("odd", lzma.compress(b"[1"))):
        path = tmp_path / f"{name}.json.xz"
        path.write_bytes(content)
        with pytest.raises(di.InputError, match="is not JSON"):
            di.read_result(path)


def test_errors_of_several_fitted_logs_have_columns_of_their_own():
    found = keep("go2")
    (one,) = found.simulated
    text = replace(found, simulated=(one, replace(one, log="again.csv"))).summary()
    assert max(len(line) for line in text.splitlines()) <= 80
    (titles,) = re.findall(r"^joint .*$", text, re.M)
    assert "fitted 2" in titles
    assert re.search(r"^fitted 1 .*mrad free", text, re.M)
