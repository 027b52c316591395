"""Inputs that are meant to do harm, or might as well be: one line, and nothing half-written."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hostile import LOOP, STUDY, signals, sound, stock
from thin import long

from dynident.cli import complain
from dynident.core import files
from dynident.core.errors import ComputationError, InputError
from dynident.core.files import write_files
from dynident.core.schema import read_toml
from dynident.core.text import LONGEST, format_one_line
from dynident.readers import read_tables
from dynident.robot import load_robot
from dynident.robot.model import MOST_JOINTS
from dynident.study.fits import read_result


@pytest.fixture(scope="module")
def stocked(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("hostile")
    stock(place)
    return place


@pytest.fixture
def place(stocked, monkeypatch) -> Path:
    monkeypatch.chdir(stocked)
    return stocked


def refused(argv: list[str], *words: str, code: int = 2) -> None:
    found, reason = sound(argv)
    assert found == code, reason
    for word in words:
        assert word in reason


def identify(log: str, *more: str) -> list[str]:
    return [
        "identify",
        "--robot",
        "arm.urdf",
        "--bandwidth",
        "5",
        "--no-doctor",
        "--log",
        log,
        *more,
    ]


# numbers


@pytest.mark.parametrize("size", [1e-160, 5e-324])
@pytest.mark.parametrize("method", ["pc-idim-ls", "wls", "irls"])
def test_torques_that_are_none_say_so(place, size, method):
    columns = signals()
    for name in ("tau_joint_1", "tau_joint_2"):
        columns[name] = size * np.sign(columns[name])
    np.savez("tiny.npz", **columns)
    refused(identify("tiny.npz", "--method", method), "tiny.npz", "zero throughout", code=1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rate = 500.0", "rate = 1e-12", "rate"),
        ("rate = 500.0", "rate = 5e-324", "rate"),
        ("rate = 500.0", "rate = 1e300", "rate"),
        ("rate = 500.0", "rate = 500.0\ndelay = 1e10", "delay"),
        ("rate = 500.0", "rate = 500.0\ndelay = 1e300", "delay"),
        ("rate = 500.0", "rate = 500.0\nvelocity = 'differences'\nlag = 3000", "lag"),
        ("kp = 400.0", "kp = [1.0, 2.0, 3.0]", "[controller]: kp"),
        ("[simulation]", "[simulation]\nsubsteps = 10000000000", "simulation.substeps"),
        ("[simulation]", f"[simulation]\nsubsteps = 1{28 * '0'}", "simulation.substeps"),
        ("[simulation]", "[simulation]\nwidth = [0.1]", "[simulation]: width"),
        ("[simulation]", "[simulation]\nwidth = 1e-300", "simulation.width"),
        (
            "[simulation]",
            "[simulation]\ntolerance = 1e-3",
            "tolerance applies only with integ",
        ),
        ("fv1 = 2.0", "fv1 = 1e300", "[simulation]: "),
        ("fv1 = 2.0", "fv1 = -1e300", "[simulation]: "),
        ("fc1 = 1.0", "fc1 = 1e300", "[simulation]: "),
        ("Ia1 = 0.3", "Ia1 = 1e300", "[simulation]: "),
        ("Ia1 = 0.3", "Ia9 = 1.0", "[simulation] parameters"),
        ("kp = 400.0", "kp = 1e300", "controller.kp"),
        ("torque = 0.1", "torque = [0.1, 0.1, 0.1]", "[noise] torque"),
        ("torque = 0.1", "ripple = 1.0", "[noise]: "),
        ("torque = 0.1", "jitter = 1.0", "[noise]: "),
        ("frequency = 0.5", "frequency = 1e300", "reference"),
        ("frequency = 0.5", "frequenzy = 0.5", "frequenzy"),
        ("offset = [0.1, 0.2]", "offset = [0.1]", "reference"),
        ('kind = "fourier"', 'kind = "log"', "[reference]"),
    ],
)
def test_a_loop_that_cannot_be_is_refused_with_the_file(place, old, new, words):
    Path("x.toml").write_text(LOOP.replace(old, new, 1))
    refused(["simulate", "x.toml", "-o", "never.csv"], "x.toml: ", words)


def test_wild_friction_is_named_where_an_element_turns_with_two_joints(place):
    over = '[[element]]\njoint = "joint_2"\nkind = "spring"\nover = "joint_1"\n'
    wild = LOOP.replace("fv2 = 2.0", "fv2 = 1e300", 1)
    Path("x.toml").write_text(wild + over)
    words = "the inertia or the friction of joint_2 is not physical"
    refused(["simulate", "x.toml", "-o", "never.csv"], "x.toml: ", "[simulation]: ", words)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ('quaternion = "wxyz"', "quaternion needs a floating base; read toy with floating = true"),
        ("imu_rpy = [0.1, 0.0, 0.0]", "imu_rpy needs a floating base"),
        ('base = "fixed"', "base needs a floating base"),
        ('equations = "base"', "equations = 'base' needs a floating base"),
        ('equations = "null-space"', "equations = 'null-space' needs contacts or force sensors"),
        ("contact_force = 9.0", "contact_force needs contacts or force sensors; toy has none"),
        ("tared = true", "tared needs contacts"),
    ],
)
def test_keys_of_bases_and_contacts_are_refused_without_any(place, key, words):
    Path("x.toml").write_text(STUDY.replace('"a.csv"', f'"a.csv"\n{key}'))
    refused(["identify", "x.toml"], "a.csv: ", words)


@pytest.mark.parametrize("key", ["law_kd", "law_delay"])
def test_a_law_without_its_stiffness_is_refused(place, key):
    Path("x.toml").write_text(STUDY.replace('"a.csv"', f'"a.csv"\n{key} = 0.01'))
    refused(["identify", "x.toml"], "x.toml: [[log]] a.csv: ", f"{key} applies only with law_kp")


def test_the_motors_side_needs_a_transmission(place):
    Path("x.toml").write_text(STUDY.replace('"a.csv"', '"a.csv"\nside = "motor"'))
    refused(["identify", "x.toml"], "a.csv", "side = 'motor'", "transmission")
    given = STUDY.replace('"a.csv"', '"a.csv"\nside = "motor"')
    given = given.replace("[[log]]", "[robot.transmission]\nreduction = [1.5, 2.0]\n[[log]]")
    Path("x.toml").write_text(given)
    assert sound(["identify", "x.toml"])[0] == 0


def test_a_bandwidth_that_leaves_too_few_rows_is_no_traceback(place):
    Path("x.toml").write_text(STUDY.replace("bandwidth = 5.0", "bandwidth = 1"))
    refused(["identify", "x.toml"], "rows for", "raise the bandwidth", code=1)


# robots


def urdf(*changes: tuple[str, str]) -> str:
    text = Path("arm.urdf").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    Path("x.urdf").write_text(text)
    return "x.urdf"


def with_entities(declared: str, *changes: tuple[str, str]) -> str:
    return urdf(("<robot", f"<!DOCTYPE robot [{declared}]>\n<robot"), *changes)


def test_an_entity_of_the_file_is_its_value(place):
    robot = with_entities('<!ENTITY m "4.5">', ('value="4.0"', 'value="&m;"'))
    assert load_robot(robot).nominal[0, 0] == 4.5
    assert sound(["repair", robot, "--urdf", "y.urdf"], ("y.urdf",))[0] == 0
    assert load_robot("y.urdf").nominal[0, 0] == pytest.approx(4.5)


def test_an_entity_does_not_keep_an_old_mass(place):
    with_entities('<!ENTITY m "4.0">', ('value="4.0"', 'value="&m;"'))
    assert sound(["repair", "x.urdf", "--mass", "9", "--urdf", "y.urdf"], ("y.urdf",))[0] == 0
    assert load_robot("y.urdf").nominal[:, 0].sum() == pytest.approx(9.0)
    assert "&m;" not in Path("y.urdf").read_text()


@pytest.mark.parametrize(
    "declared",
    ['<!ENTITY m SYSTEM "arm.urdf">', "", '<!ENTITY % p SYSTEM "p.dtd"> %p;', '<!ENTITY m "&n;">'],
)
@pytest.mark.parametrize(
    "change", [('value="4.0"', 'value="&m;"'), ('<link name="base"/>', '<link name="base"/>&m;')]
)
def test_other_entities_are_refused_with_the_line(place, declared, change):
    robot = with_entities(declared, change)
    refused(["repair", robot, "--urdf", "never.urdf"], "x.urdf, line", "Entity", "stands for")


def test_entities_that_grow_are_refused(place):
    steps = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 12))
    robot = with_entities(f'<!ENTITY a0 "1">{steps}', ('value="4.0"', 'value="&a11;"'))
    refused(["base", robot], "x.urdf, line")


FIXED = '<joint name="f" type="fixed"><parent link="{}"/><child link="{}"/></joint></robot>'


@pytest.mark.parametrize(
    "change",
    [
        ('<parent link="base"/>', '<parent link="link_1"/>'),
        ('<parent link="base"/>', '<parent link="link_2"/>'),
        ("</robot>", '<link name="f"/>' + FIXED.format("f", "f")),
    ],
)
def test_a_link_that_carries_itself_is_refused(place, change):
    refused(["repair", urdf(change), "--urdf", "never.urdf"], "x.urdf, line", "carries itself")


def test_a_mass_that_rounding_left_is_refused(place):
    refused(["repair", urdf(('value="4.0"', 'value="5e-324"'))], "x.urdf, line", "is not a mass")
    refused(["repair", urdf(('value="4.0"', 'value="-4.0"'))], "x.urdf, line", "is negative")
    Path("x.toml").write_text(DH.replace("mass = 1.0", "mass = 5e-324"))
    refused(["repair", "x.toml"], "joint[1].inertial.mass", "is not a mass")


def joints(count: int, star: bool) -> str:
    parts = (
        f'<link name="l{k}"/><joint name="j{k}" type="continuous">'
        f'<parent link="l{0 if star else k - 1}"/><child link="l{k}"/></joint>'
        for k in range(1, count + 1)
    )
    return "".join(['<robot name="x"><link name="l0"/>', *parts, "</robot>"])


@pytest.mark.parametrize("star", [True, False])
def test_more_joints_than_can_be_are_refused(place, star):
    Path("x.urdf").write_text(joints(1000, star))
    refused(["base", "x.urdf"], "x.urdf: 1000 joints", "lock")
    rows = "\n".join(f'[[joint]]\nname = "j{k}"' for k in range(MOST_JOINTS + 1))
    Path("x.toml").write_text(f'convention = "modified"\n{rows}\n')
    refused(["base", "x.toml"], f"x.toml: {MOST_JOINTS + 1} joints", "lock")


@pytest.mark.parametrize("corner", ["nan", "inf", "1e300"])
def test_a_mesh_with_a_corner_that_is_no_number_has_no_hull(place, corner):
    faces = "f 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 3 4\n"
    Path("x.obj").write_text(f"v {corner} 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n{faces}")
    shape = '<collision><geometry><mesh filename="x.obj"/></geometry></collision>'
    urdf(('<link name="link_2">', f'<link name="link_2">{shape}'))
    hull = '[[constraint]]\nkind = "hull"\nlinks = "link_2"\n'
    Path("x.toml").write_text(STUDY.replace("arm.urdf", "x.urdf") + hull)
    refused(["identify", "x.toml"], "x.toml: constraint[1]", "x.urdf", "link_2", "finite")


DH = """name = "robot"
convention = "modified"
[[joint]]
name = "shoulder"
link = "upper"
[joint.inertial]
mass = 1.0
inertia = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
"""


@pytest.mark.parametrize("word", ["robot", "shoulder", "upper"])
@pytest.mark.parametrize("odd", [r"\u0000", r"\u0007", r"\n", r"\u001b[31m", r"\uFFFF"])
def test_names_hold_no_control_characters(place, word, odd):
    Path("x.toml").write_text(DH.replace(f'"{word}"', f'"{word}{odd}"'))
    refused(["repair", "x.toml", "--urdf", "never.urdf"], "x.toml: key", "no name can have")
    Path("x.toml").write_text(DH.replace(f'"{word}"', f"'{word}<&\"'"))
    assert sound(["repair", "x.toml", "--urdf", "y.urdf"], ("y.urdf",))[0] == 0
    assert load_robot("y.urdf").n == 1


@pytest.mark.parametrize("key", ["file = ", "files = ", "result = "])
def test_no_path_has_a_nul(place, key):
    text = LOOP.replace("[simulation]", '[[log]]\nfiles = "a.csv"\n[simulation]\nresult = "r.json"')
    Path("x.toml").write_text(re.sub(f'({key}"[^"]*)"', r'\1\\u0000"', text))
    refused(["simulate", "x.toml", "-o", "never.csv"], "x.toml: key", "no name can have")


# logs


def test_a_header_cell_of_a_megabyte(place):
    Path("x.csv").write_text(f"time,{'q' * 10**6},b\n1,2,3\n2,3,4\n")
    refused(identify("x.csv"), "x.csv")


def test_lines_that_lead_to_no_table_are_not_read_to_the_end(place):
    Path("x.csv").write_text("\n" * 3_000_000)
    refused(identify("x.csv"), "x.csv, row 100001", "no row")
    Path("x.csv").write_text("1," * 3_000_000 + "\n1,2\n")
    refused(identify("x.csv"), "x.csv, row 1", "more than 4194304 characters")


def archive(path: str, **shapes: tuple[int, ...]) -> None:
    """The log with further arrays, of which the headers alone are there."""
    with zipfile.ZipFile(path, "w") as file:
        for name, column in signals().items():
            content = io.BytesIO()
            np.save(content, column)
            file.writestr(f"{name}.npy", content.getvalue())
        for name, shape in shapes.items():
            content = io.BytesIO()
            head = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(content, head)
            file.writestr(f"{name}.npy", content.getvalue())


@pytest.mark.parametrize("shape", [(10**10,), (10**6, 2500), (800, 10**9), (2**62,), (1 << 70,)])
def test_a_header_that_promises_more_than_there_is(place, shape):
    archive("x.npz", image=shape)
    refused(identify("x.npz"), "x.npz, array 'image'", "damaged")


def test_what_is_not_wanted_is_not_read(place, monkeypatch):
    read = []
    real = np.lib.format.read_array
    monkeypatch.setattr(
        np.lib.format, "read_array", lambda file, **k: read.append(file.name) or real(file, **k)
    )
    columns = signals()
    others = {"film": np.zeros((10, 9, 8)), "map": np.zeros((1500, 1600)), "long": np.zeros(5000)}
    np.savez("x.npz", **columns, **others)
    (table,) = read_tables(Path("x.npz"))
    assert not read  # before it is wanted
    assert table.names == tuple(columns)
    assert {name for name, _ in table.skipped} == set(others)
    wanted = list(columns)[1:3]
    table.take([table.names.index(name) for name in wanted])
    assert sorted(read) == sorted(f"{name}.npy" for name in wanted)


def test_keys_of_many_parts_are_refused(tmp_path):
    path = tmp_path / "x.toml"
    many = ".".join("a" * 100_000)
    quoted = ".".join(['"a"'] * 100_000)
    for text in (
        f"{many} = 1",
        f"[{many}]",
        f"[[{many}]]",
        f"{quoted} = 1",
        f"b = {{ {many} = 1 }}",
    ):
        path.write_text(f"x = 1\n{text}\n")
        with pytest.raises(InputError, match="line 2: a key has more than 64 parts"):
            read_toml(path)
    path.write_text(f"# {'. ' * 99}\n#{'.a' * 99}\nx = [{'1.5, ' * 99}]\ny = '{'../' * 99}'\n")
    assert len(read_toml(path)["x"]) == 99


# stored results


@pytest.mark.parametrize(
    ("part", "index", "key", "name"),
    [
        ("parameters", 0, "value", "parameters[1].value"),
        ("standard", 1, "mass", "standard[2].mass"),
        ("joints", 0, "Ia", "joints[1].Ia"),
    ],
)
@pytest.mark.parametrize(
    "command", [["validate", "x.json", "a.csv"], ["export", "x.json", "--urdf", "n.urdf"]]
)
def test_a_result_agrees_with_itself(place, part, index, key, name, command):
    document = json.loads(Path("out/result.json").read_text())
    document[part][index][key] *= 1.0 + 1e-10  # as another processor rounds
    Path("x.json").write_text(json.dumps(document))
    assert sound(command, ("n.urdf",))[0] == 0
    document[part][index][key] *= 1.001
    Path("x.json").write_text(json.dumps(document))
    refused(command, "x.json", name, "the state behind it makes it")


def list_places(value: object, place: tuple = ()) -> Iterator[tuple]:
    """Keys to whatever a document holds, of lists the first few."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value[:3])
    for key, inner in pairs:
        yield (*place, key)
        if isinstance(inner, dict | list):
            yield from list_places(inner, (*place, key))


@pytest.mark.long
def test_a_state_of_any_other_content_is_read_or_refused_in_one_line(place):
    document = json.loads(Path("out/result.json").read_text())
    rng = np.random.default_rng(0)
    places = list(list_places(document["state"], ("state",)))
    for k in rng.choice(len(places), 40, replace=False):
        spoiled = json.loads(json.dumps(document))
        inner = spoiled
        for key in places[k][:-1]:
            inner = inner[key]
        others = (None, -1, 1e300, "x", [], {}, True, [[1.0]], "nan", 10**30)
        inner[places[k][-1]] = others[rng.integers(len(others))]
        Path("x.json").write_text(json.dumps(spoiled))
        said = "x.json: read"
        try:
            read_result("x.json")
        except InputError as error:
            said = str(error)
        assert said.startswith("x.json: ")
        assert "\n" not in said


# messages and streams


def test_a_reason_is_one_line_that_can_be_read(capsys):
    assert complain("a\tb\nc \x1b[31m\0" + "x" * 10**6 + " end", 2) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: a b c \\x1b[31m\\x00xxx")
    assert err.endswith("xxx end\n")
    assert len(err) <= LONGEST + 20
    assert format_one_line("zoë § 関節 \ud800") == "zoë § 関節 \\ud800"


def test_names_of_any_length_are_told_in_a_line(place):
    name = "l" * 100_000
    Path("x.urdf").write_text(Path("arm.urdf").read_text().replace("joint_2", name))
    refused(["identify", "--robot", "x.urdf", "--log", "a.csv"], "a.csv")
    refused(["identify", "s.toml", "--method", name], "method")
    Path("x.toml").write_text(STUDY + f"{name} = 1\n")
    refused(["identify", "x.toml"], "x.toml")


def in_shell(line: str, **options) -> subprocess.CompletedProcess[str]:
    """`line` with the command line in place of its "dynident"."""
    script = line.replace("dynident", f"{sys.executable} -m dynident", 1)
    return subprocess.run(["sh", "-c", script], text=True, check=False, **options)


def test_a_pipe_that_nobody_reads_is_no_traceback():
    done = in_shell("dynident --help | true", capture_output=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.long
def test_a_user_without_a_home_hears_nothing_of_fonts(place, tmp_path):
    """With closed streams, too: the page is whole, and stderr is that of the command."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MPL", "XDG"))}
    environment |= {"HOME": "/proc/none", "MPLCONFIGDIR": "/proc/none", "TMPDIR": str(tmp_path)}
    line = f"dynident identify s.toml -o {tmp_path / 'o'} <&- >&-"
    done = in_shell(line, env=environment, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o" / "report.html").read_text().rstrip().endswith("</html>")
    assert "atplotlib" not in done.stderr


# what is written


@pytest.mark.parametrize("output", ["sub.urdf", "table.toml", "x.toml", "a.csv", "r.json"])
def test_a_simulation_is_not_written_over_what_it_reads(place, output):
    Path("sub.urdf").write_bytes(Path("arm.urdf").read_bytes())
    Path("table.toml").write_text('urdf = "sub.urdf"\n')
    Path("r.json").write_bytes(Path("out/result.json").read_bytes())
    log = '[[log]]\nfiles = "a.csv"\n[simulation]\nresult = "r.json"'
    Path("x.toml").write_text(LOOP.replace("arm.urdf", "table.toml").replace("[simulation]", log))
    refused(["simulate", "x.toml", "-o", output], f"{output}: is an input")
    refused(["simulate", "x.toml", "-o", "new.mat"], "new.mat: logs are written as text")


def test_a_repaired_study_is_not_written_over_its_log(place):
    refused(["doctor", "s.toml", "--fix", "a.csv"], "a.csv: is an input")


SET = ("result.json", "model.urdf", "report.html")


OLD, NEW = dict.fromkeys(SET, "a"), dict.fromkeys(SET[:2], "b")
STEPS = ("replace", "fsync", "unlink", "mkdir", "rmdir", "listdir")
"""What is done to files on the way."""


class Killed(BaseException):
    """Nothing is done any more after it."""


def written(place: Path, mark: str, names: tuple[str, ...] = SET, *more: Path) -> None:
    files = (*(place / name for name in names), *more)
    write_files({path: mark.encode() * 10_000 for path in files}, SET.__contains__)


def shown(place: Path) -> dict[str, str]:
    """Files of a folder by the letter that they are full of."""
    contents = {path.name: path.read_text() for path in place.iterdir() if path.is_file()}
    assert all(text == text[:1] * 10_000 for text in contents.values())
    return {name: text[:1] for name, text in contents.items()}


def break_off(patch, instant: int, error: BaseException, after: bool) -> Callable[[], bool]:
    """Have the step at an instant fail, undone or done; whether it was come to."""
    count = 0

    def breaking(act):
        def step(*arguments, **options):
            nonlocal count
            now, count = count, count + 1
            fails = now == instant or (now > instant and isinstance(error, Killed))
            if fails and not (after and now == instant):
                raise error
            found = act(*arguments, **options)
            if fails:
                raise error
            return found

        return step

    for name in STEPS:
        patch.setattr(os, name, breaking(getattr(os, name)))
    return lambda: count > instant


def test_a_set_is_that_of_one_run(tmp_path):
    def work(mark: str, names: tuple[str, ...]) -> None:
        for _ in range(10):
            written(tmp_path, mark, names)

    threads = [threading.Thread(target=work, args=each) for each in (("a", SET), ("b", SET[:2]))]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with files.lock_directory(tmp_path):
            assert shown(tmp_path) in ({}, OLD, NEW)
    assert shown(tmp_path) in (OLD, NEW)


@pytest.mark.parametrize(
    ("error", "after"),
    [
        (Killed(), False),
        long(OSError(errno.ENOSPC, "full"), True),
        long(Killed(), True),
        long(OSError(errno.ENOSPC, "full"), False),
        long(KeyboardInterrupt(), False),
        long(KeyboardInterrupt(), True),
    ],
)
def test_whatever_ends_a_run_the_earlier_result_stands_or_the_new_one(
    tmp_path, monkeypatch, error, after
):
    """At every step: a set that lacks a file of the one before, and a file of another folder."""
    place, other = tmp_path / "o", tmp_path / "s"
    old, new = (OLD, {"s.toml": "a"}), (NEW, {"s.toml": "b"})
    for instant in range(100):
        written(place, "a", SET, other / "s.toml")
        with monkeypatch.context() as patch:
            reached = break_off(patch, instant, error, after)
            with suppress(InputError, KeyboardInterrupt, Killed):
                written(place, "b", SET[:2], other / "s.toml")
        if not reached():
            break
        found = shown(place)
        if isinstance(error, Killed):  # what stands beside a head belongs to it
            assert found in (OLD, NEW) or SET[0] not in found
            for path in (place / SET[0], other / "s.toml"):
                assert files.read_file(path)[:1] in (b"a", b"b")
            # the other folder counts by itself where a run was killed just between the two
            assert shown(place) in (OLD, NEW)
            assert len(shown(other)) == 1
        else:
            assert (found, shown(other)) in (old, new), instant
    assert 20 < instant < 99
    written(place, "c")
    assert sorted(os.listdir(place)) == sorted(SET)


def test_a_journal_that_cannot_be_read_now_is_not_taken_for_none(tmp_path, monkeypatch):
    instant = 0
    while not shown(tmp_path) or SET[0] in shown(tmp_path):  # until it is killed between two sets
        instant += 1
        written(tmp_path, "a")
        with monkeypatch.context() as patch, suppress(Killed):
            break_off(patch, instant, Killed(), False)
            written(tmp_path, "b")
    (journal,) = tmp_path.glob(f"{files.STAGE}*/{files.JOURNAL}")
    full = OSError(errno.EMFILE, "Too many open files")
    real = Path.read_bytes

    def read(path):
        if path == journal:
            raise full
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", read)
        with pytest.raises(InputError, match="Too many open files"):
            written(tmp_path, "c")
    assert files.read_file(tmp_path / SET[0])[:1] == b"a"
    assert shown(tmp_path) == OLD


def test_a_folder_that_is_called_like_a_file_of_a_set_stays(tmp_path):
    (tmp_path / SET[2] / "mine").mkdir(parents=True)
    for _ in range(2):
        written(tmp_path, "b", SET[:2])
    assert (tmp_path / SET[2] / "mine").is_dir()


def test_a_file_alone_is_never_missing(tmp_path, monkeypatch):
    for instant in range(100):
        write_files({tmp_path / "state.npz": b"a"})
        with monkeypatch.context() as patch, suppress(Killed):
            reached = break_off(patch, instant, Killed(), False)
            write_files({tmp_path / "state.npz": b"b"})
        if not reached():
            break
        assert (tmp_path / "state.npz").read_bytes() in (b"a", b"b")
    assert 4 < instant < 99


def test_a_folder_that_another_process_holds(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    told = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with told:
        told.stdout.readline()
        with pytest.raises(ComputationError, match=f"{tmp_path}: .*process.* has been writing"):
            written(tmp_path, "a")
        assert f"waiting for {tmp_path} (" in caplog.text
        if Path("/proc/locks").exists():
            assert f"(process {told.pid})" in caplog.text
        told.stdin.close()
    written(tmp_path, "a")
    assert shown(tmp_path) == OLD


HOLD = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(handle, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""
