"""Sweeps: every combination once, scored on the same rows, and done again only where it has to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import lxml.html
import numpy as np
import pytest
from clusters import start_threads
from commands import ask, tell
from pages import find_faults
from test_collect import ARM, write_log

import dynident as di
from dynident.cli.sweep import parse_axes
from dynident.core.errors import ComputationError, InputError
from dynident.sweeps import sweep as sweeping

STUDY = """
[robot]
file = "arm.urdf"
[prepare]
bandwidth = 5.0
drop_below = 0.05
[identify]
decide = "nothing"
method = "wls"
doctor = false
[[log]]
files = "run1.npz"
"""
HELD_OUT = '[[log]]\nfiles = "run2.npz"\nuse = "validate"\n'
AXES = {"prepare.bandwidth": [2.0, 5.0], "identify.method": ["ols", "wls"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of one log, with another one held out, and its sweep in ``swept``."""
    place = tmp_path_factory.mktemp("sweep")
    shutil.copy(ARM, place)
    for seed in (1, 2):
        write_log(place / f"run{seed}.npz", seed)
    (place / "study.toml").write_text(STUDY + HELD_OUT)
    (place / "alone.toml").write_text(STUDY)
    di.sweep(di.read_study(place / "study.toml"), AXES, place / "swept")
    return place


def read_runs(folder: Path) -> dict[str, bytes]:
    return {p.parent.name: p.read_bytes() for p in folder.glob("runs/*/run.json")}


def test_each_combination_is_identified_as_identify_does(place, monkeypatch):
    def refuse(task):
        raise AssertionError("all is there already")

    monkeypatch.setattr(sweeping, "run_combination", refuse)
    study = di.read_study(place / "study.toml")
    found = di.sweep(study, AXES, place / "swept")
    assert [run.state for run in found.runs] == ["there"] * 4
    assert [tuple(run.values.values()) for run in found.runs] == [
        (2.0, "ols"), (2.0, "wls"), (5.0, "ols"), (5.0, "wls"),
    ]  # fmt: skip
    last = found.runs[-1]
    fit = di.read_result(place / "swept" / last.folder / "result.json")
    own = di.run_study(study)
    np.testing.assert_array_equal(fit.estimate.beta, own.estimate.beta)
    # with the study's own values that of its validation, but for where blocks end
    whole = own.validation[0].entries[0].overall_percent
    assert last.held_out.percent()[0] == pytest.approx(whole, rel=0.1)
    # all on the same torques, however these were prepared to be fitted
    squares = {tuple(run.held_out.squared_torque.ravel()) for run in found.runs}
    assert len(squares) == 1
    assert len({run.fitted_percent for run in found.runs}) == 4


def test_only_what_is_new_is_run(place, monkeypatch):
    run_combination, asked = sweeping.run_combination, []
    monkeypatch.setattr(
        sweeping, "run_combination", lambda task: asked.append(task) or run_combination(task)
    )
    study = di.read_study(place / "study.toml")
    before = read_runs(place / "swept")
    more = {"prepare.bandwidth": [5.0, 8.0], "identify.method": ["ols"]}
    again = di.sweep(study, more, place / "swept")
    assert len(asked) == 1
    assert [run.state for run in again.runs] == ["there", "run"]
    assert before.items() <= read_runs(place / "swept").items()
    broken = place / "swept" / again.runs[0].folder / "run.json"
    broken.write_bytes(broken.read_bytes()[:50])
    di.sweep(study, AXES, place / "swept")
    assert len(asked) == 2
    assert broken.read_bytes() == before[broken.parent.name]


def test_the_engine_changes_no_bit(place):
    study = di.read_study(place / "study.toml")
    with start_threads() as here:
        di.sweep(study, {"identify.method": ["ols"]}, place / "there", engine=here)
    mine = set(read_runs(place / "there").values())
    assert mine <= set(read_runs(place / "swept").values())
    assert len(mine) == 1


@pytest.mark.long
def test_the_number_of_workers_changes_no_bit(place):
    di.sweep(di.read_study(place / "study.toml"), AXES, place / "two", workers=2)
    two = read_runs(place / "two")
    assert two.items() <= read_runs(place / "swept").items()
    assert len(two) == 4


def test_the_simplest_within_one_standard_error_is_best(place):
    study = di.read_study(place / "study.toml")
    found = di.sweep(
        study, {"robot.friction": ["none", "coulomb-viscous-symmetric"]},
        place / "laws",
    )  # fmt: skip
    errors = [run.held_out.percent()[0] for run in found.runs]
    assert errors[0] > 2.0 * errors[1]
    assert found.best is found.runs[1]
    page = (place / "laws" / "sweep.html").read_text()
    assert "coulomb-viscous-symmetric" in page
    assert find_faults(lxml.html.document_fromstring(page)) == []
    told = json.loads((place / "laws" / "sweep.json").read_text())
    assert told["best"]["values"] == {"robot.friction": "coulomb-viscous-symmetric"}
    assert [each["held_out"]["percent"] for each in told["runs"]] == errors
    assert all(len(line) <= 80 for line in found.summary().splitlines())


def test_several_logs_may_be_held_out(place, capfd):
    write_log(place / "run3.npz", 3)
    text = STUDY + HELD_OUT + HELD_OUT.replace("run2", "run3")
    (place / "both.toml").write_text(text)
    sweep = ["sweep", str(place / "both.toml"), "--set", "identify.method=wls"]
    found = ask(capfd, [*sweep, "-o", str(place / "swept-both")])
    each = di.run_study(di.read_study(place / "both.toml")).validation
    errors = [log.entries[0].overall_percent for log in each]
    assert found["runs"][0]["held_out"]["percent"] == pytest.approx(np.mean(errors), rel=0.1)


def test_what_gives_no_answer_is_named_and_the_rest_is_done(place):
    study = di.read_study(place / "study.toml")
    values = {"prepare.drop_below": [0.05, 1e9]}
    found = di.sweep(study, values, place / "failing")
    (failure,) = found.failures
    assert failure.values == {"prepare.drop_below": 1e9}
    assert "prepare.drop_below 1e+09: " in found.summary()
    assert len(found.runs) == 1
    with pytest.raises(ComputationError, match=r"prepare\.drop_below 1e\+09: "):
        di.sweep(study, values, place / "failing", strict=True)
    with pytest.raises(ComputationError, match="every combination failed"):
        di.sweep(study, {"prepare.drop_below": [1e9]}, place / "failing")


def test_the_command_holds_out_a_part_of_a_log_alone(place, monkeypatch, capfd):
    monkeypatch.chdir(place)
    asked = ["sweep", "alone.toml", "--set", "identify.method=ols, wls", "-o", "cut"]
    out = tell(capfd, asked).out
    assert "identify.method" in out
    assert "best" in out
    told = json.loads(Path("cut/sweep.json").read_text())
    assert [each["values"]["identify.method"] for each in told["runs"]] == ["ols", "wls"]
    assert all(0.0 < each["held_out"]["percent"] < 20.0 for each in told["runs"])
    assert ask(capfd, asked)["blocks"] == 5


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["prepare.bandwidth"], "write SECTION"),
        (["prepare.bandwidth=1", "prepare.bandwidth=2"], "is given twice"),
        (["bandwidth=1"], "a key is SECTION"),
        (["log.files=a,b"], "a key is SECTION"),
        (["prepare.bandwith=1"], "bandwith.*did you mean"),
        (["prepare.bandwidth=-1"], r"--set prepare: .*bandwidth"),
        (["identify.method=wls,wls"], "not all different"),
        ([], "nothing is varied"),
    ],
)
def test_what_cannot_be_varied_is_refused(place, texts, words):
    with pytest.raises(InputError, match=words):
        di.sweep(di.read_study(place / "study.toml"), parse_axes(texts), place / "refused")


def test_values_are_read_as_they_are_meant():
    texts = ["a.b=1, 2.5", "c.d=wls,pc-idim-ls", "e.f=[1, 2], [3, 4]", "g.h=true,none", 'i.j="x,y"']
    assert parse_axes(texts) == {
        "a.b": (1, 2.5),
        "c.d": ("wls", "pc-idim-ls"),
        "e.f": ([1, 2], [3, 4]),
        "g.h": (True, "none"),
        "i.j": ("x,y",),
    }
