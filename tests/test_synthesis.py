"""`dynident simulate`, and identification of what it writes: end to end, and refusals."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import ask
from thin import first

from dynident.cli import run
from dynident.core.errors import InputError
from dynident.study.simulate import simulate_study
from dynident.study.study import read_study
from dynident_papers.picture import Panel
from dynident_papers.report import Reproduction

FILES = Path(__file__).parents[1] / "docs" / "files"


@pytest.fixture
def folder(tmp_path):
    """A folder with the arm and the study of its loop."""
    for name in ("arm.urdf", "arm_loop.toml"):
        shutil.copy(FILES / name, tmp_path / name)
    return tmp_path


def edited(folder: Path, old: str, new: str) -> Path:
    path = folder / "arm_loop.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


IDENTIFY = """
[[log]]
files = "loop.csv"

[prepare]
bandwidth = 5.0
drop_below = 0.05

[identify]
method = "METHOD"
"""
WITH_IV = IDENTIFY.replace("METHOD", "idim-iv")


def simulate(folder: Path, section: str, tail: str, *inner: str) -> list[Path]:
    """The log of the loop; and studies of it, with other words from a section to the parameters."""
    study, found = folder / "arm_loop.toml", []
    assert run(["simulate", str(study), "-o", str(folder / "loop.csv")]) == 0
    text = study.read_text()
    start, end = text.index(section), text.index("[simulation.parameters]")
    for k, words in enumerate(inner):
        found.append(folder / f"study_{k}.toml")
        found[-1].write_text(text[:start] + words + text[end:] + tail)
    return found


@pytest.mark.parametrize("method", first(["clie", "idim-iv", "didim"]))
def test_a_simulated_log_gives_its_parameters_back(folder, capsys, method):
    (study,) = simulate(folder, "[reference]", IDENTIFY.replace("METHOD", method), "")
    assert "6165 samples at 1000 Hz written" in capsys.readouterr().err
    found = ask(capsys, ["identify", str(study)])
    values = {row["name"]: row for row in found["parameters"]}
    for name, truth in {"fv1": 2.0, "fv2": 1.0, "fc1": 1.5, "fc2": 0.8}.items():
        assert abs(values[name]["value"] - truth) < 4.0 * values[name]["std"] + 0.03, name
    assert found["simulation"][0]["position_percent"][0] < 0.1
    assert found["settings"]["simulation"]["control_rate_hz"] == 1000.0


@pytest.mark.long
def test_gains_are_identified_from_the_log(folder, capsys):
    controller = '[controller]\nkind = "pd"\ngains = "identify"\n'
    (study,) = simulate(folder, "[controller]", WITH_IV, controller)
    warnings = ask(capsys, ["identify", str(study)])["warnings"]
    note = next(words for words in warnings if "gains were identified" in words)
    assert "shoulder kp 9" in note


def test_what_would_be_ignored_is_refused(folder, capsys):
    log = '[reference]\nkind = "log"\nvelocity = 3.0\n'
    velocity, gains = simulate(folder, "[reference]", WITH_IV, log, "")
    text = gains.read_text().replace("[controller]", '[controller]\ngains = "identify"')
    gains.write_text(text)
    capsys.readouterr()
    assert run(["identify", str(velocity)]) == 2
    assert "[reference] log has no 'velocity'" in capsys.readouterr().err
    assert run(["identify", str(gains)]) == 2
    assert "gains = 'identify' finds 'kd' itself" in capsys.readouterr().err


def test_a_loop_that_chatters_is_said(folder, capsys):
    (study,) = simulate(folder, "[reference]", WITH_IV, "[simulation]\nwidth = 1e-6\n\n")
    warnings = ask(capsys, ["identify", str(study)])["warnings"]
    assert any("the simulated loop chatters" in note for note in warnings)


def test_same_seed_same_log(folder):
    study = read_study(folder / "arm_loop.toml", use=None)
    first, second = simulate_study(study).to_csv(), simulate_study(study).to_csv()
    assert first == second
    other = edited(folder, "seed = 1", "seed = 2")
    assert simulate_study(read_study(other, use=None)).to_csv() != first


def test_a_log_may_be_the_reference(folder):
    (study,) = simulate(folder, "[reference]", '\n[[log]]\nfiles = "loop.csv"\n', "")
    again = simulate_study(read_study(study, use=None)).recording
    written = np.genfromtxt(folder / "loop.csv", delimiter=",", names=True)
    np.testing.assert_allclose(again.q[:, 0], written["q_shoulder"], atol=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("kp = [900.0, 600.0]", "kp = [900.0, 600.0, 3.0]", "kp has 3 values, the robot has 2"),
        ("kp = [900.0", "kq = [900.0", "controller.kq"),
        ("kp = [900.0, 600.0]", "", "[controller] pd needs 'kp'"),
        ('kind = "pd"', 'kind = "pdd"', "'pdd' is not known"),
        ("kp = [900.0, 600.0]", "kp = [-900.0, 600.0]", "the loop of shoulder is unstable"),
        ("kd = [60.0, 40.0]", "kd = [60.0, 40.0]\nkv = 1.0", "[controller] pd has no 'kv'"),
        ("velocity = 2.5", "frequency = 2.5", "[reference] bang-bang has no 'frequency'"),
        ('kind = "bang-bang"', 'kind = "log"', "[reference] needs a kind and its values"),
        ("Ia1 = 0.2", "Ia7 = 0.2", "'Ia7' is not known"),
        ("Ia1 = 0.2", "Iyy1 = -30.0", "not positive definite"),
        ("count = 1e-5", "count = [1e-5]", "[noise] count has 1 values, the robot has 2 joints"),
        ("rate = 1000.0        # Hz: sampled", "rate = 700.0 # ", "not a whole number"),
        ("[noise]", '[simulation]\nintegrator = "ode9"\n[noise]', "'ode9' is not known"),
        ("points = [[0.0, 0.0]", "points = [[0.0]", "points"),
    ],
)
def test_one_clear_line(folder, capsys, old, new, reason):
    path = edited(folder, old, new)
    out = folder / "out.csv"
    code = run(["simulate", str(path), "-o", str(out)])
    lines = capsys.readouterr().err.strip().splitlines()
    assert code in (1, 2)
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert reason in lines[0]
    assert not out.exists()


def test_a_stiff_joint_is_named_with_what_to_do(folder):
    path = edited(folder, "[noise]", "[simulation]\nwidth = 1e-6\n\n[noise]")
    with pytest.raises(InputError, match=r"is too stiff for ode3 at steps of 0\.001 s.*sdirk2"):
        simulate_study(read_study(path, use=None))


@pytest.mark.long
def test_a_stored_result_can_be_simulated(folder, capsys):
    study = folder / "arm_loop.toml"
    assert run(["simulate", str(study), "-o", str(folder / "loop.csv")]) == 0
    text = study.read_text()
    identify = folder / "identify.toml"
    start = text.index("[controller]")
    head = text[:start] + IDENTIFY.replace("METHOD", "pc-idim-ls")
    identify.write_text(head)
    out = folder / "out"
    assert run(["identify", str(identify), "-o", str(out), "--no-report"]) == 0
    start, end = text.index("[simulation.parameters]"), text.index("[noise]")
    again = folder / "again.toml"
    again.write_text(text[:start] + '[simulation]\nresult = "out/result.json"\n\n' + text[end:])
    assert run(["simulate", str(again), "-o", str(folder / "again.csv")]) == 0
    capsys.readouterr()
    one = np.genfromtxt(folder / "loop.csv", delimiter=",", names=True)
    two = np.genfromtxt(folder / "again.csv", delimiter=",", names=True)
    assert np.abs(one["q_shoulder"] - two["q_shoulder"]).max() < 1e-3


def test_reproduce_hands_its_flags_on(capsys, monkeypatch):
    asked = []

    def made(progress, reduced, timed, engine):
        asked.append((reduced, timed, engine.workers))
        return Reproduction("As it was", ())

    monkeypatch.setattr("dynident_papers.REPRODUCTIONS", {"brunot2019": made})
    for flags in ([], ["--quick"], ["--times"], ["--workers", "3"]):
        assert run(["reproduce", "brunot2019", *flags]) == 0
    assert asked == [(False, False, 1), (True, False, 1), (False, True, 1), (False, False, 3)]
    assert "As it was" in capsys.readouterr().out


@pytest.mark.long
def test_reproduce_draws_the_papers_figures(tmp_path, monkeypatch):
    x = np.linspace(0.0, 1.0, 5)
    panel = Panel("a figure", "x", "y", x, {"one": x, "two": x**2}, band=0.5)
    drawn = Reproduction("As it was", (), panels=((panel, panel), (panel,)))
    monkeypatch.setattr("dynident_papers.REPRODUCTIONS", {"brunot2019": lambda **_: drawn})
    picture = tmp_path / "figures.png"
    assert run(["reproduce", "brunot2019", "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    for refused in (tmp_path, tmp_path / "figures.pdf"):
        assert run(["reproduce", "brunot2019", "--picture", str(refused)]) == 2


def test_reproduce_refuses_unknown_papers(capsys):
    assert run(["reproduce", "brunot2018"]) == 2
    assert "paper 'brunot2018' is not known" in capsys.readouterr().err
