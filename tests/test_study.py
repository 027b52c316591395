"""The study: what is refused, with its file and key, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynident.errors import InputError
from dynident.robot.spec import validated
from dynident.study import LogSection, Study, listed, read_study

STUDY = """[robot]
file = "arm.urdf"

[[log]]
files = "a.csv"

[prepare]
bandwidth = 5.0
"""


def reason(tmp_path: Path, text: str | bytes) -> str:
    """Why a study is refused: one line that begins with its path."""
    path = tmp_path / "s.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError) as caught:
        read_study(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[robot]", "[robt]", ("'robt'", "'robot'")),
        ("file =", "fle =", ("'robot.fle'", "'file'")),
        ("files =", "file =", ("'log[1].file'", "'files'")),
        ("bandwidth", "bandwith", ("'prepare.bandwith'", "'bandwidth'")),
        ("[prepare]", "[prepar]", ("'prepar'", "'prepare'")),
        ("[[log]]", "[log]", ("'log'",)),
        ('files = "a.csv"', "", ("'log[1].files'", "missing")),
        ('file = "arm.urdf"', "", ("'robot.file'", "missing")),
        ('file = "arm.urdf"', 'file = ""', ("'robot.file'",)),
        ('file = "arm.urdf"', "file = 3", ("'robot.file'", "string")),
        ('"a.csv"', "[]", ("'log[1].files'",)),
        ('"a.csv"', "3", ("'log[1].files'",)),
        ('"a.csv"', '["a.csv", 3]', ("'log[1].files[2]'",)),
    ],
)
def test_typos_and_types_are_refused_with_the_key(tmp_path, old, new, words):
    message = reason(tmp_path, STUDY.replace(old, new))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("bandwidth = 0", "bandwidth"),
        ("bandwidth = -1.0", "bandwidth"),
        ("bandwidth = nan", "bandwidth"),
        ("bandwidth = inf", "bandwidth"),
        ("bandwidth = true", "bandwidth"),
        ('bandwidth = "5"', "bandwidth"),
        ("bandwidth = []", "bandwidth"),
        ("bandwidth = [5.0, -1.0]", "bandwidth"),
        ("bandwidth = 1979-05-27", "bandwidth"),
        ("position_hz = 0.0", "position_hz"),
        ("torque_hz = [1.0, 0.0]", "torque_hz"),
        ("decimation = 0", "decimation"),
        ("decimation = 2.5", "decimation"),
        ("decimation = 99999999999999999999999", "decimation"),
        ("median = 1", "median"),
        ("median = 4", "median"),
        ("drop_below = -0.1", "drop_below"),
        ("drop_below = [0.1, -0.1]", "drop_below"),
        ('derivatives = "diff"', "derivatives"),
    ],
)
def test_preparation_is_checked_at_the_door(tmp_path, line, key):
    assert f"'prepare.{key}" in reason(tmp_path, STUDY.replace("bandwidth = 5.0", line))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('method = "olss"', ("identify.method", "'ols'")),
        ("method = 3", ("identify.method", "string")),
        ('methd = "ols"', ("identify.methd", "'method'")),
        ('prior = "nominale"', ("identify.prior", "'nominal'")),
        ('loss = "hubr"', ("identify.loss", "'huber'")),
        ('essential = "rato"', ("identify.essential", "'ratio'")),
        ("lowpass_hz = 0", ("identify.lowpass_hz",)),
        ("lowpass_hz = inf", ("identify.lowpass_hz", "finite")),
        ("seed = -1", ("identify.seed",)),
        ("seed = 1.5", ("identify.seed",)),
    ],
)
def test_methods_and_options_are_checked_at_the_door(tmp_path, line, words):
    message = reason(tmp_path, f"{STUDY}[identify]\n{line}\n")
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('use = "validte"', ("log[1].use", "'validate'")),
        ("rate = 0", ("log[1].rate",)),
        ("rate = -500.0", ("log[1].rate",)),
        ("rate = nan", ("log[1].rate", "finite")),
        ('rate = "500"', ("log[1].rate", "number")),
        ("rows = [100, 50]", ("log[1].rows", "[100, 50]")),
        ("rows = [10, 10]", ("log[1].rows", "[10, 10]")),
        ("rows = [5]", ("log[1].rows",)),
        ("rows = [0, 5, 6]", ("log[1].rows",)),
        ("rows = [-5, 600]", ("log[1].rows[1]",)),
        ("rows = [0, 10.5]", ("log[1].rows[2]",)),
        ('side = "motors"', ("log[1].side", "'motor'")),
        ('stack = "x"', ("log[1].stack", "side, time")),
        ("columns = { q = [0, 1] }", ("log[1].columns.q[1]",)),
        ("columns = { q = [2, true] }", ("log[1].columns.q[2]",)),
        ("units = { q = 3 }", ("log[1].units.q",)),
        ('name = ""', ("log[1].name",)),
    ],
)
def test_logs_are_checked_at_the_door(tmp_path, line, words):
    message = reason(tmp_path, STUDY.replace('"a.csv"', f'"a.csv"\n{line}'))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('friction = "coulomb"', ("robot.friction", "'coulomb-viscous'")),
        ("rotor = 1", ("robot.rotor", "boolean")),
        ('floating = "no"', ("robot.floating", "boolean")),
        ("gravity = [0.0, 0.0]", ("robot.gravity",)),
        ("gravity = [0.0, 0.0, nan]", ("robot.gravity[3]", "finite")),
        ("gravity = 9.81", ("robot.gravity",)),
        ('locked = { joint_1 = "x" }', ("robot.locked.joint_1", "number")),
        ("transmission = { reductions = [1.0] }", ("reductions", "'reduction'")),
        ("drive = [{}]", ("robot.drive[1].joint", "missing")),
        ("drive = [{ joint = 1, gan = 2.0 }]", ("robot.drive[1].gan", "'gain'")),
    ],
)
def test_the_robot_section_is_checked_at_the_door(tmp_path, line, words):
    message = reason(tmp_path, STUDY.replace("[[log]]", f"{line}\n[[log]]"))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("'robot'", "missing")),
        ('[robot]\nfile = "arm.urdf"\n', ("no [[log]]", '"identify"')),
        ('[[log]]\nfiles = "a.csv"\n', ("'robot'", "missing")),
        (STUDY + "[identify]\n[identify]\n", ("TOML", "line 10")),
        (STUDY + "[controller]\n", ("'controller.kind'", "missing")),
        (STUDY + "[controler]\n", ("'controler'", "controller")),
        (STUDY + "=\n", ("TOML", "line 9")),
        (STUDY.replace('"a.csv"', '"a.csv"\nuse = "validate"'), ("no [[log]]", '"identify"')),
        (b'[robot]\nfile = "\xe9.urdf"\n', ("UTF-8",)),
        (STUDY.encode("utf-16"), ("UTF-8",)),
        (STUDY.encode() + b"\0", ("TOML",)),
        (bytes(range(256)), ("UTF-8",)),
        (b"a = " + b"[" * 100_000, ("TOML",)),
        (STUDY + f"[identify]\nseed = {'9' * 5000}\n", ("TOML",)),
    ],
)
def test_files_that_are_no_study(tmp_path, text, words):
    message = reason(tmp_path, text)
    for word in words:
        assert word in message


@pytest.mark.parametrize("choice", ["directory", "nothing"])
def test_studies_that_cannot_be_read(tmp_path, choice):
    path = tmp_path if choice == "directory" else tmp_path / "no.toml"
    with pytest.raises(InputError, match="cannot be read"):
        read_study(path)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_study_and_its_defaults(tmp_path, ending, mark):
    path = tmp_path / "s.toml"
    path.write_bytes((mark + STUDY.replace("\n", ending)).encode())
    study = read_study(path)
    assert study.identify.method == "pc-idim-ls"
    assert study.robot.friction == "coulomb-viscous"
    assert study.prepare.bandwidth == 5.0
    assert study.log[0].use == "identify"


def test_files_are_relative_to_the_study_and_absolute_ones_stay(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    elsewhere = str(tmp_path / "elsewhere.csv")
    text = STUDY.replace('"a.csv"', f'["a.csv", "../b.csv", "{elsewhere}"]')
    (tmp_path / "deep" / "s.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    study = read_study(Path("deep/s.toml"))
    assert study.robot.file == "deep/arm.urdf"
    assert study.log[0].files == ("deep/a.csv", "deep/../b.csv", elsewhere)


def test_a_study_survives_the_way_through_json(tmp_path):
    text = STUDY.replace('"a.csv"', '"a.csv"\nrows = [0, 900]\ncolumns = { q = [2, "q_2"] }')
    (tmp_path / "s.toml").write_text(text)
    study = read_study(tmp_path / "s.toml")
    stored = study.model_dump(mode="json", exclude_none=True)
    assert validated(Study, stored, "result.json") == study


def test_one_file_is_a_list_of_one():
    assert listed("a.csv") == ("a.csv",)
    assert listed(LogSection(files=("a.csv", "b.csv")).files) == ("a.csv", "b.csv")
