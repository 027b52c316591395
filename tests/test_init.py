"""`dynident init`: a first study that runs, says what was found, and whose comments are keys."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import toy
from commands import tell

import dynident as di
from dynident.cli import run
from dynident.dynamics.idim import build_idim
from dynident.study.begin import KEYS, LOOP
from dynident.study.study import Study, read_study

RATE = 200.0


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A two-joint arm and a log in which the second torque has the wrong sign."""
    monkeypatch.chdir(tmp_path)
    Path("arm.toml").write_text(toy.ARM)
    robot = di.load_robot("arm.toml")
    idim = build_idim(robot)
    q, dq, ddq = toy.motion(2, 15.0, rate=RATE)
    tau = idim.torque(toy.true_parameters(idim, robot.nominal), q, dq, ddq)
    tau = tau + 0.1 * np.random.default_rng(0).normal(size=q.shape)
    tau[:, 1] *= -1.0
    table = np.column_stack([np.arange(len(q)) / RATE, q, tau])
    head = "time,q_one,q_two,tau_one,tau_two"
    np.savetxt("run.csv", table, delimiter=",", header=head, comments="")
    np.savetxt("blind.csv", table[:, :3], delimiter=",", header=head[:16], comments="")
    return tmp_path


@pytest.mark.long
def test_a_first_study_is_repaired_and_runs(desk, capsys):
    out, err = tell(capsys, ["init", "--robot", "arm.toml", "--log", "run.csv", "-o", "mine.toml"])
    assert "run.csv: 3000 samples at 200 Hz" in out
    assert "repair      add sign" in out
    assert "next: dynident identify mine.toml" in err
    text = Path("mine.toml").read_text()
    assert text.startswith("# Made by dynident init.\n#\n# The doctor's findings:\n#   run.csv: ")
    study = read_study(Path("mine.toml"))
    assert [(log.rows, log.use) for log in study.log] == [
        ((0, 2000), "identify"),
        ((2000, 3000), "validate"),
    ]
    fit = di.run_study(study)
    assert fit.validation[0].entries[1].overall_percent < 10.0
    assert run(["init", "--robot", "arm.toml", "--log", "run.csv", "-o", "mine.toml"]) == 2
    assert "mine.toml: is there already" in capsys.readouterr().err
    assert Path("mine.toml").read_text() == text
    short, err = tell(capsys, ["init", "arm.toml", "run.csv"])
    assert (short, "next: dynident identify study.toml" in err) == (out, True)
    for given, words in (
        ([], "a log: dynident init ROBOT LOG"),
        (["arm.toml"], "a log: dynident init ROBOT LOG"),
        (["arm.toml", "run.csv", "--robot", "arm.toml"], "either ROBOT and LOG, or --robot"),
    ):
        assert run(["init", *given]) == 2
        assert words in capsys.readouterr().err


def test_of_several_logs_the_last_is_held_out_and_encoders_ask_for_a_controller(desk, capsys):
    given = ["init", "--robot", "arm.toml", "--log", "blind.csv"]
    assert (
        "next: fill in [controller] in study.toml"
        in tell(capsys, [*given, "--log", "blind.csv"]).err
    )
    study = read_study(Path("study.toml"))
    assert [(log.rows, log.use) for log in study.log] == [(None, "identify"), (None, "validate")]
    assert "state the [controller]" in Path("study.toml").read_text()
    assert run([*given, "--validate", "run.csv", "-o", "other.toml"]) == 0
    assert [log.use for log in read_study(Path("other.toml")).log] == ["identify", "validate"]
    assert run(["init", "--robot", "arm.toml", "--log", "none.csv", "-o", "no.toml"]) == 2
    assert not Path("no.toml").exists()


def test_what_it_refuses_it_says_in_flags(desk, capsys):
    given = ["init", "--robot", "arm.toml", "--log"]
    assert run([*given, "run.csv", "--columns", "q=p_*"]) == 2
    assert "; --columns 'q=q_*' maps other names" in capsys.readouterr().err
    head, *rows = Path("run.csv").read_text().splitlines()
    of_epoch = [f"{1.7e18 + 5e6 * k:.17g},{row.split(',', 1)[1]}" for k, row in enumerate(rows)]
    Path("ns.csv").write_text("\n".join([head, *of_epoch]))
    assert run([*given, "ns.csv"]) == 2
    assert "; is it in nanoseconds? then set --units time=ns\n" in capsys.readouterr().err


def test_its_comments_are_keys_of_a_study():
    import tomllib

    lines = [line.removeprefix("# ") for line in (KEYS + LOOP).splitlines()[3:]]
    told = tomllib.loads("\n".join(line for line in lines if re.match(r"\[|\w+ =", line)))
    told["robot"]["file"] = "arm.toml"
    study = Study.model_validate({**told, "log": [{"files": ["run.csv"]}]})
    assert study.controller is not None
    assert study.identify.method == "pc-idim-ls"
