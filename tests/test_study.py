"""The study: what is refused, with its file and key, and what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dynident.consistency.constraints import (
    CONSTRAINTS,
    Belief,
    Bounds,
    Box,
    Ellipsoid,
    EqualLinks,
    Fixed,
    Hull,
    LinkMass,
    Payload,
    Sphere,
    Symmetric,
    Tied,
    TotalMass,
)
from dynident.consistency.constraints.sections import build_constraints
from dynident.core.errors import InputError
from dynident.core.plain import replace_nonfinite
from dynident.core.schema import list_file_names, validate_data
from dynident.study.run import run_study
from dynident.study.study import (
    LogSection,
    Study,
    list_input_files,
    read_study,
)

STUDY = """[robot]
file = "arm.urdf"

[[log]]
files = "a.csv"

[prepare]
bandwidth = 5.0
"""


def reason(tmp_path: Path, text: str | bytes, *words: str) -> str:
    """Why a study is refused: one line that begins with its path and has some words."""
    path = tmp_path / "s.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError) as caught:
        read_study(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert "value error" not in message
    for word in words:
        assert word in message
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
    reason(tmp_path, STUDY.replace(old, new), *words)


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
        ("only = [1]", ("identify.only", "string")),
        ("lowpass_hz = 0", ("identify.lowpass_hz",)),
        ("lowpass_hz = inf", ("identify.lowpass_hz", "finite")),
        ("seed = -1", ("identify.seed",)),
        ("seed = 1.5", ("identify.seed",)),
        ('metric = "pulback"', ("identify.metric", "'pullback'")),
        ("metric = 3", ("identify.metric", "string")),
        ('prior_weight = "heldout"', ("identify.prior_weight", "'held-out'")),
        ("prior_weight = -1.0", ("identify.prior_weight", "0")),
        ("prior_weight = nan", ("identify.prior_weight", "finite")),
        ("prior_weight = inf", ("identify.prior_weight", "finite")),
        ("prior_weight = 1e100", ("identify.prior_weight", "less than or equal to")),
        ("prior_weight = true", ("identify.prior_weight", "number")),
        ("prior_weight = [1.0]", ("identify.prior_weight", "number")),
        ("prior_wieght = 1.0", ("identify.prior_wieght", "'prior_weight'")),
        ('consistency = "pseudo"', ("identify.consistency",)),
        ('consistency = "bas"', ("identify.consistency", "'base'")),
        ("bootstrap = -5", ("identify.bootstrap",)),
        ("bootstrap = 2.5", ("identify.bootstrap", "integer")),
        ("bootstrap = true", ("identify.bootstrap", "integer")),
        ('bootstrap = "50"', ("identify.bootstrap", "integer")),
        ("bootstrp = 50", ("identify.bootstrp", "'bootstrap'")),
    ],
)
def test_methods_and_options_are_checked_at_the_door(tmp_path, line, words):
    reason(tmp_path, f"{STUDY}[identify]\n{line}\n", *words)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", ("constraint[1].kind", "missing")),
        ('kind = ""', ("constraint[1].kind",)),
        ("kind = 3", ("constraint[1].kind", "string")),
        ('kind = "bound"', ("constraint[1].kind", "'bounds'")),
        ('kind = "spheres"', ("constraint[1].kind", "'sphere'")),
        ('knd = "bounds"', ("constraint[1].knd", "'kind'")),
        ('kind = "bounds"\nparameter = "fv2"', ("constraint[1].parameter", "'parameters'")),
        ('kind = "bounds"\nparameters = []', ("constraint[1].parameters",)),
        ('kind = "bounds"\nparameters = ["fv2", 3]', ("constraint[1].parameters[2]", "string")),
        ('kind = "bounds"\nparameters = 3', ("constraint[1].parameters",)),
        ('kind = "bounds"\nparameters = "fv2"\nlower = "1"', ("constraint[1].lower", "number")),
        ('kind = "bounds"\nparameters = "fv2"\nlower = nan', ("constraint[1].lower", "finite")),
        ('kind = "fixed"\nparameters = "fv2"\nvalue = -inf', ("constraint[1].value", "finite")),
        ('kind = "mass"\nlinks = ""', ("constraint[1].links",)),
        ('kind = "mass"\nlink = 3', ("constraint[1].link", "string")),
        ('kind = "sphere"\nradius = -1.0', ("constraint[1].radius", "greater than 0")),
        ('kind = "sphere"\ncentre = [0.0, 0.0]', ("constraint[1].centre", "too few")),
        ('kind = "sphere"\ncentre = [0.0, 0.0, nan]', ("constraint[1].centre[3]", "finite")),
        ('kind = "sphere"\ncenter = [0.0, 0.0, 0.0]', ("constraint[1].center", "'centre'")),
        ('kind = "ellipsoid"\naxes = [1.0, 1.0]', ("constraint[1].axes", "too few")),
        ('kind = "ellipsoid"\nrotation = 1.0', ("constraint[1].rotation",)),
        ('kind = "hull"\npoints = [[0.0, 0.0, 0.0]]', ("constraint[1].points", "at least 4")),
        (
            'kind = "hull"\npoints = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]',
            ("constraint[1].points[1]", "too few"),
        ),
        ('kind = "box"\nof = "centre"', ("constraint[1].of", "mass, com")),
        ('kind = "symmetric"\nplane = "zx"', ("constraint[1].plane", "xy, xz, yz")),
        ('kind = "symmetric"\ndrives = 1', ("constraint[1].drives", "boolean")),
        ('kind = "payload"\nmass = 0.0', ("constraint[1].mass", "greater than 0")),
        ('kind = "payload"\ninertia = [1.0, 1.0, 1.0]', ("constraint[1].inertia", "too few")),
        ('kind = "total-mass"\nvalue = 1.0\n[[constraint]]', ("constraint[2].kind", "missing")),
    ],
)
def test_constraints_are_checked_at_the_door(tmp_path, lines, words):
    reason(tmp_path, f"{STUDY}[[constraint]]\n{lines}\n", *words)


def built(tmp_path: Path, lines: str) -> tuple[object, ...]:
    (tmp_path / "s.toml").write_text(f"{STUDY}[[constraint]]\n{lines}\n")
    return build_constraints(read_study(tmp_path / "s.toml").constraint)


CORNERS = "[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]"
POINTS = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('kind = "bounds"\nparameters = "fv2"\nlower = 1', Bounds("fv2", lower=1.0)),
        (
            'kind = "bounds"\nparameters = ["fv1", "fv2"]\nlower = -1.0\nupper = 2.0',
            Bounds(("fv1", "fv2"), -1.0, 2.0),
        ),
        ('kind = "fixed"\nparameters = "Izz1R"\nvalue = 0.5', Fixed("Izz1R", 0.5)),
        ('kind = "mass"\nlinks = "all"\nupper = 9.0', LinkMass("all", upper=9.0)),
        ('kind = "mass"\nlinks = ["a", "b"]\nvalue = 2.0', LinkMass(("a", "b"), 2.0)),
        ('kind = "total-mass"\nvalue = 30.0', TotalMass(30.0)),
        ('kind = "total-mass"\nlower = 29.0\nupper = 31.0', TotalMass(None, 29.0, 31.0)),
        (
            'kind = "box"\nlinks = "a"\nlower = [0.0, 0.0, 0.0]\nupper = [1.0, 1.0, 1.0]',
            Box("a", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
        ),
        (
            'kind = "sphere"\nlinks = "a"\ncentre = [0.0, 0.0, 0.1]\nradius = 0.2\nof = "com"',
            Sphere("a", (0.0, 0.0, 0.1), 0.2, "com"),
        ),
        (
            'kind = "ellipsoid"\nlinks = "a"\ncentre = [0.0, 0.0, 0.1]\naxes = [1.0, 2.0, 3.0]\n'
            "rotation = [0.1, 0.2, 0.3]",
            Ellipsoid("a", (0.0, 0.0, 0.1), (1.0, 2.0, 3.0), (0.1, 0.2, 0.3)),
        ),
        ('kind = "hull"\nlinks = "all"\nmargin = 0.01', Hull("all", None, 0.01)),
        (f'kind = "hull"\nlinks = "a"\npoints = {CORNERS}', Hull("a", POINTS)),
        ('kind = "equal"\nlinks = ["a", "b"]\ndrives = false', EqualLinks(("a", "b"), False)),
        (
            'kind = "symmetric"\nleft = "a"\nright = "b"\nplane = "xy"',
            Symmetric("a", "b", "xy"),
        ),
        ('kind = "payload"\nlink = "a"', Payload("a")),
        (
            'kind = "payload"\nlink = "a"\nmass = 1.0\ncom = [0.0, 0.0, 0.1]\n'
            "inertia = [0.1, 0.0, 0.1, 0.0, 0.0, 0.1]",
            Payload("a", 1.0, (0.0, 0.0, 0.1), (0.1, 0.0, 0.1, 0.0, 0.0, 0.1)),
        ),
    ],
)
def test_a_section_is_the_constraint_that_it_names(tmp_path, lines, expected):
    assert built(tmp_path, lines) == (expected,)


def test_no_kind_of_constraint_was_forgotten_above():
    """A new kind belongs into the tests of this file."""
    of_drives = {Tied, Belief}  # tests/test_encoder.py
    linked = {Box, Sphere, Ellipsoid, Hull, LinkMass, EqualLinks, Symmetric, Payload}
    assert set(CONSTRAINTS.values()) == {Bounds, Fixed, TotalMass, *linked, *of_drives}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('kind = "bounds"\nlower = 1.0', ("constraint[1] 'bounds' needs 'parameters'",)),
        (
            'kind = "bounds"\nparameters = "fv2"\nradius = 1.0',
            ("'bounds' has no 'radius'", "parameters, lower, upper"),
        ),
        ('kind = "fixed"\nparameters = "fv2"', ("'fixed' needs 'value'",)),
        ('kind = "fixed"\nparameters = "fv2"\nlower = 1.0', ("'fixed' has no 'lower'",)),
        ('kind = "mass"\nlink = "a"\nvalue = 2.0', ("'mass' has no 'link'", "links, value")),
        ('kind = "total-mass"\nlinks = "all"', ("'total-mass' has no 'links'",)),
        ('kind = "box"\nlinks = "a"', ("'box' needs 'lower'",)),
        ('kind = "sphere"\nlinks = "a"', ("'sphere' needs 'centre'",)),
        ('kind = "ellipsoid"\nlinks = "a"\nradius = 1.0', ("'ellipsoid' has no 'radius'",)),
        ('kind = "hull"', ("'hull' needs 'links'",)),
        ('kind = "equal"\nlinks = ["a", "b"]\nleft = "a"', ("'equal' has no 'left'",)),
        ('kind = "symmetric"\nright = "a"', ("'symmetric' needs 'left'",)),
        ('kind = "payload"\nmass = 1.0', ("'payload' needs 'link'",)),
        ('kind = "payload"\nlink = "a"\nvalue = 1.0', ("'payload' has no 'value'",)),
    ],
)
def test_keys_of_another_kind_are_refused_and_missing_ones_named(tmp_path, lines, words):
    reason(tmp_path, f"{STUDY}[[constraint]]\n{lines}\n", *words)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('kind = "bounds"\nparameters = "fv2"\nlower = [1.0, 2.0, 3.0]', "1 finite number"),
        ('kind = "box"\nlinks = "a"\nlower = 0.0\nupper = 1.0', "3 numbers"),
        ('kind = "equal"\nlinks = ["a", "a"]', "'a' twice"),
    ],
)
def test_constraints_that_cannot_be_are_refused_by_their_number(tmp_path, lines, words):
    """With the file, and counted as in the keys of other messages."""
    good = '[[constraint]]\nkind = "total-mass"\nvalue = 6.0\n'
    message = reason(tmp_path, f"{STUDY}{good}[[constraint]]\n{lines}\n")
    kind = lines.split('"')[1]
    assert f"s.toml: constraint[2] '{kind}'" in message
    assert words in message
    assert "\n" not in message


def test_a_box_may_have_open_sides(tmp_path):
    """They are null in the JSON of a result, which is read again."""
    body = 'kind = "box"\nlinks = "a"\nlower = [-inf, -1, -0.2]\nupper = [0.2, inf, 0.4]'
    (box,) = built(tmp_path, body)
    inf = float("inf")
    assert box == Box("a", (-inf, -1.0, -0.2), (0.2, inf, 0.4))
    study = read_study(tmp_path / "s.toml")
    stored = json.dumps(replace_nonfinite(study.model_dump(mode="json", exclude_none=True)))
    assert "[null, -1.0, -0.2]" in stored
    again = validate_data(Study, json.loads(stored), "result.json")
    assert again == study
    assert build_constraints(again.constraint) == (box,)
    assert "inf for an open side" in reason(
        tmp_path, STUDY + "[[constraint]]\n" + body.replace("-0.2", "nan")
    )


def test_constraints_survive_the_way_through_json(tmp_path):
    body = f'kind = "hull"\nlinks = ["a", "b"]\npoints = {CORNERS}\nof = "com"'
    more = 'kind = "box"\nlinks = "a"\nlower = [0.0, 0.0, 0.0]\nupper = [1.0, 1.0, 1.0]'
    text = f"{STUDY}[[constraint]]\n{body}\n[[constraint]]\n{more}\n"
    (tmp_path / "s.toml").write_text(text)
    study = read_study(tmp_path / "s.toml")
    stored = json.loads(json.dumps(study.model_dump(mode="json", exclude_none=True)))
    again = validate_data(Study, stored, "result.json")
    assert again == study
    assert build_constraints(again.constraint) == build_constraints(study.constraint)


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
    reason(tmp_path, STUDY.replace('"a.csv"', f'"a.csv"\n{line}'), *words)


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
    reason(tmp_path, STUDY.replace("[[log]]", f"{line}\n[[log]]"), *words)


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
    reason(tmp_path, text, *words)


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


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["run.csv", "other.csv"], [None, None]),
        (["a/run.csv", "b/run.csv", "c.csv"], ["a/run.csv", "b/run.csv", None]),
        (["run.csv", "b/run.csv"], ["run.csv", "b/run.csv"]),
        (["x/a/run.csv", "y/a/run.csv"], ["x/a/run.csv", "y/a/run.csv"]),
        (["1/a/run.csv", "2/b/run.csv"], ["a/run.csv", "b/run.csv"]),
        (["run.csv", "run.csv"], [None, None]),  # other rows of one file
        (
            [["a/q.csv", "a/tau.csv"], ["b/q.csv", "b/tau.csv"]],
            ["a/q.csv+a/tau.csv", "b/q.csv+b/tau.csv"],
        ),
    ],
)
def test_logs_of_one_name_are_told_apart_by_their_folders(files, names):
    study = Study.model_validate(
        {"robot": {"file": "arm.urdf"}, "log": [{"files": each} for each in files]}
    )
    assert [log.name for log in study.log] == names
    given = Study.model_validate(
        {
            "robot": {"file": "arm.urdf"},
            "log": [{"files": each, "name": f"log {k}"} for k, each in enumerate(files)],
        }
    )
    assert [log.name for log in given.log] == [f"log {k}" for k in range(len(files))]


def test_a_study_survives_the_way_through_json(tmp_path):
    text = STUDY.replace('"a.csv"', '"a.csv"\nrows = [0, 900]\ncolumns = { q = [2, "q_2"] }')
    (tmp_path / "s.toml").write_text(text)
    study = read_study(tmp_path / "s.toml")
    stored = study.model_dump(mode="json", exclude_none=True)
    assert validate_data(Study, stored, "result.json") == study


def test_one_file_is_a_list_of_one():
    assert validate_data(LogSection, {"files": "a.csv"}, "s.toml").files == ("a.csv",)
    assert validate_data(LogSection, {"files": ["a.csv", "b.csv"]}, "s.toml").files == (
        "a.csv",
        "b.csv",
    )


def test_every_file_that_a_study_names_stands_beside_it_and_is_an_input(tmp_path):
    robot = tmp_path / "arm.toml"
    robot.write_text('convention = "modified"\njoint = [{ name = "a" }]\n')
    (tmp_path / "s.toml").write_text(
        """
        robot.file = "arm.toml"
        log = [{ files = ["a.csv", "b.csv"] }]
        identify = { method = "ga", search_state = "kept.npz" }
        simulation.result = "result.json"
        reference.file = "trajectory.json"
        excitation = { task = "task.csv", srdf = "arm.srdf" }
        obstacle = [{ kind = "mesh", file = "table.stl" }, { kind = "plane" }]
        """
    )
    study = read_study(tmp_path / "s.toml")
    names = ("arm.toml", "a.csv", "b.csv", "kept.npz", "trajectory.json", "result.json")
    names += ("task.csv", "arm.srdf", "table.stl")
    beside = {str(tmp_path / name) for name in names}
    assert set(list_file_names(study)) == beside
    assert {str(file) for file in list_input_files(study)} == beside


def test_a_path_is_no_study_yet():
    with pytest.raises(InputError, match=r"run_study .*Study, not str.*read_study"):
        run_study("study.toml")  # type: ignore[arg-type]
