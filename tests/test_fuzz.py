"""Files changed at random: whatever they become, a command ends with a code and one reason.

Every case is made from its number, so that one that fails can be had again:
``pytest tests/test_fuzz.py -k "urdf and 33"``. The long form is ``-m slow``.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
import pytest
import scipy.io
from bags import State, write_bag
from hostile import signals, sound, stock
from thin import first

SHORT, LONG = 2, 250
"""Groups of cases that run always, and by night."""
GROUP, NIGHTLY = 8, 31
"""Cases a group, and groups a test by night: each test is collected by day, too."""

Rng = np.random.Generator
NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
VALUES = (
    "0", "-0.0", "-1", "1", "0.5", "2", "3.0", "-0.1", "50.0", "1e3", "1e-3", "1e-12", "1e10",
    "1e-300", "5e-324", "1e160", "1e300", "-1e300", "1e999", "nan", "inf", "-inf", "true", '"x"',
    "[]", "[1.0]", "9" * 400, "1" + 28 * "0", "",
)  # fmt: skip
WORDS = (
    b"", b"\0", b"\n", b"\x1b[31m", b"\xff\xfe", b"&lt;", b"&m;", b"<!--", b"]]>", b'"', b"'",
    b"[", b"]", b"{", b"}", b"=", b".", b",", b"#", b"a" * 5000, b"../", b"NaN",
    "é関\u202e".encode(),
)  # fmt: skip


def other_number(data: bytes, rng: Rng) -> bytes:
    """A number that is another one, or none."""
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    spot = found[int(rng.integers(len(found)))]
    return data[: spot.start()] + str(rng.choice(VALUES)).encode() + data[spot.end() :]


def other_byte(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data)))
    return data[:at] + bytes([int(rng.integers(256))]) + data[at + 1 :]


def word_between(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + WORDS[int(rng.integers(len(WORDS)))] + data[at:]


def without_part(data: bytes, rng: Rng) -> bytes:
    start, stop = sorted(rng.integers(len(data) + 1, size=2).tolist())
    return data[:start] + data[min(stop, start + int(rng.integers(1, 200))) :]


def part_twice(data: bytes, rng: Rng) -> bytes:
    start = int(rng.integers(len(data)))
    part = data[start : start + int(rng.integers(1, 200))]
    return data[:start] + part * int(rng.integers(2, 4)) + data[start + len(part) :]


def line_elsewhere(data: bytes, rng: Rng) -> bytes:
    lines = data.split(b"\n")
    line = lines.pop(int(rng.integers(len(lines))))
    if rng.random() < 0.7:
        lines.insert(int(rng.integers(len(lines) + 1)), line)
    return b"\n".join(lines)


def cut_off(data: bytes, rng: Rng) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


TEXT = (
    other_number, word_between, without_part, part_twice,
    line_elsewhere, cut_off, other_byte,
)  # fmt: skip
BINARY = (other_byte, other_byte, other_byte, without_part, part_twice, cut_off)


def text(name: str) -> Callable[[Rng], bytes]:
    """A text file with one to three changes; in half of the cases they are of numbers alone."""

    def make(rng: Rng) -> bytes:
        data = Path(name).read_bytes()
        if rng.random() < 0.5:
            for _ in range(int(rng.integers(1, 4))):
                data = other_number(data, rng)
            return data
        for _ in range(int(rng.integers(1, 4))):
            data = TEXT[int(rng.integers(len(TEXT)))](data, rng) if data else data
        return data

    return make


HEADS = (
    rb"\x0e\0\0\0|PK|NUMPY|descr|\x1f\x8b|\x89HDF|TREE|SNOD|HEAP|OHDR|#ROSBAG|md5sum|MCAP|/joint"
)
"""What stands at the beginning of what binary files hold."""


def spoiled(data: bytes, rng: Rng) -> bytes:
    """Bytes changed, mostly near the heads of what they hold."""
    heads = [m.start() for m in re.finditer(HEADS, data)] or [0]
    for _ in range(int(rng.integers(1, 6))):
        if rng.random() < 0.6 and data:
            at = min(int(rng.choice(heads)) + int(rng.integers(64)), len(data) - 1)
            data = data[:at] + bytes([int(rng.integers(256))]) + data[at + 1 :]
        elif data:
            data = BINARY[int(rng.integers(len(BINARY)))](data, rng)
    return data


def mat(rng: Rng) -> bytes:
    """A MAT file of any version with structs, cells and text beside the signals."""
    old, packed = bool(rng.random() < 0.3), bool(rng.random() < 0.3)
    content: dict[str, object] = dict(signals())
    if not old:
        cells = np.array([1.0, "x", [2]], dtype=object)
        content |= {"s": {"a": np.arange(5.0), "b": "text"}, "c": cells, "n": "name"}
    file = io.BytesIO()
    scipy.io.savemat(file, content, format="4" if old else "5", do_compression=packed and not old)
    return spoiled(file.getvalue(), rng)


def npz(rng: Rng) -> bytes:
    """A NumPy archive."""
    file = io.BytesIO()
    save = np.savez_compressed if rng.random() < 0.3 else np.savez
    save(file, **signals(), other=np.zeros((3, 4, 5)), name=np.array("x"))
    if rng.random() < 0.5:
        return spoiled(file.getvalue(), rng)
    # archives whose members are spoiled, with sums that are right
    whole, out = zipfile.ZipFile(file), io.BytesIO()
    spoil = int(rng.integers(len(whole.namelist())))
    with zipfile.ZipFile(out, "w") as archive:
        for k, name in enumerate(whole.namelist()):
            data = whole.read(name)
            archive.writestr(name, spoiled(data, rng) if k == spoil else data)
    return out.getvalue()


def packed(rng: Rng) -> bytes:
    """A CSV file packed by gzip: spoiled before or behind."""
    if rng.random() < 0.5:
        return gzip.compress(text("a.csv")(rng), 1)
    return spoiled(gzip.compress(Path("a.csv").read_bytes(), 1), rng)


def hdf5(rng: Rng) -> bytes:
    """An HDF5 file with groups, text, links and compressed arrays beside the signals."""
    options = ({}, {"compression": "gzip", "shuffle": True}, {"chunks": (50,), "fletcher32": True})
    chosen = options[int(rng.integers(len(options)))]
    file = io.BytesIO()
    with h5py.File(file, "w", libver="latest" if rng.random() < 0.3 else "earliest") as place:
        for key, values in signals().items():
            place.create_dataset(key, data=values, **chosen)
        place["group/name"] = "text"
        place["group/again"] = place["group"]
        place["group/link"] = h5py.SoftLink("/time")
        place["time"].attrs["MATLAB_class"] = np.bytes_("double")
    return spoiled(file.getvalue(), rng)


def mat73(rng: Rng) -> bytes:
    """The same behind the header of a MAT file."""
    file = io.BytesIO()
    with h5py.File(file, "w", userblock_size=512) as place:
        for key, values in signals().items():
            place[key] = values[None]
            place[key].attrs["MATLAB_class"] = np.bytes_("double")
    head = b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM"
    return spoiled(head + file.getvalue()[len(head) :], rng)


@cache
def whole_bag(form: str, packing: str | None) -> bytes:
    """A bag of the log's first second, with two topics."""
    columns = signals()
    joints = [key[2:] for key in columns if key.startswith("q_")]
    q, tau = (np.column_stack([columns[f"{s}_{j}"] for j in joints]) for s in ("q", "tau"))
    states = [
        State(topic, t, tuple(joints), *values)
        for t, q, tau in zip(columns["time"][:200], q, tau, strict=False)
        for topic, values in (("/joint_states", (q, (), tau)), ("/other", ((), q, ())))
    ]
    with TemporaryDirectory() as folder:
        path = write_bag(Path(folder, "bag"), form, states, packing=packing)
        found = [path] if form == "bag" else [p for p in path.iterdir() if p.suffix != ".yaml"]
        return found[0].read_bytes()


def bag(form: str, *packings: str) -> Callable[[Rng], bytes]:
    """A bag of a kind, packed or not."""
    every = (None, *packings)
    return lambda rng: spoiled(whole_bag(form, every[int(rng.integers(len(every)))]), rng)


Case = tuple[str, Callable[[Rng], bytes], tuple[tuple[str, ...], ...]]
LOG = ("identify", "--robot", "arm.urdf", "--bandwidth", "5", "--no-doctor", "--log")
REPAIR = ("repair", "--urdf", "y.urdf")
KINDS: dict[str, Case] = {
    "study": ("x.toml", text("s.toml"), (("identify", "x.toml"), ("doctor", "x.toml"))),
    "loop": ("x.toml", text("loop.toml"), (("simulate", "x.toml", "-o", "y.csv"),)),
    "urdf": ("x.urdf", text("arm.urdf"), (("base", "x.urdf"), (*REPAIR, "x.urdf"))),
    "table": ("x.toml", text("dh.toml"), (("base", "x.toml"), (*REPAIR, "x.toml"))),
    "csv": ("x.csv", text("a.csv"), ((*LOG, "x.csv"), (*LOG, "x.csv", "--method", "irls"))),
    "mat": ("x.mat", mat, ((*LOG, "x.mat"),)),
    "npz": ("x.npz", npz, ((*LOG, "x.npz"),)),
    "packed": ("x.csv.gz", packed, ((*LOG, "x.csv.gz"),)),
    "hdf5": ("x.h5", hdf5, ((*LOG, "x.h5"),)),
    "mat73": ("x.mat", mat73, ((*LOG, "x.mat"),)),
    "bag": ("x.bag", bag("bag", "bz2", "lz4"), ((*LOG, "x.bag"),)),
    "db3": ("x.db3", bag("sqlite3"), ((*LOG, "x.db3"),)),
    "mcap": ("x.mcap", bag("mcap", "zstd"), ((*LOG, "x.mcap"),)),
    "result": (
        "x.json",
        text("out/result.json"),
        (
            ("validate", "x.json", "a.csv"),
            ("export", "x.json", "--urdf", "y.urdf"),
            ("export", "x.json", "--urdf", "y.urdf", "--repair"),
        ),
    ),
}
"""The file, what makes it, and the commands that read it."""


@pytest.fixture(scope="module")
def stocked(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("fuzz")
    stock(place)
    (place / "dh.toml").write_text(TABLE)
    return place


TABLE = """name = "arm"
convention = "modified"
angles = "deg"
gravity = [0.0, 0.0, -9.81]
[[joint]]
name = "a"
alpha = 0.0
a = 0.0
d = 0.3
lower = -170.0
upper = 170.0
[joint.inertial]
mass = 3.0
com = [0.1, 0.0, 0.05]
inertia = [0.02, 0.001, 0.03, 0.0, 0.0, 0.03]
[[joint]]
name = "b"
type = "prismatic"
alpha = 90.0
theta0 = 10.0
[joint.inertial]
mass = 2.0
inertia = [0.02, 0.0, 0.02, 0.0, 0.0, 0.01]
[[drive]]
joint = "b"
row = { a = 1.0, b = 1.0 }
[transmission]
reduction = [[100.0, 0.0], [10.0, 50.0]]
zero = [0.1, 0.2]
"""


def tried(kind: str, group: int) -> None:
    file, make, commands = KINDS[kind]
    for case in range(GROUP * group, GROUP * (group + 1)):
        rng = np.random.default_rng([case, *kind.encode()])
        Path(file).write_bytes(make(rng))
        command = commands[int(rng.integers(len(commands)))]
        try:
            sound(list(command), ("y.csv", "y.urdf"))
        except BaseException as error:
            kept = Path(f"kept-{kind}-{case}{Path(file).suffix}").resolve()
            os.replace(file, kept)
            error.add_note(f"case {case} of {kind}: {' '.join(command)}, with {kept} as {file}")
            raise


@pytest.mark.parametrize("group", first(range(SHORT)))
@pytest.mark.parametrize("kind", first(KINDS, 6))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_some_spoiled_files(stocked, monkeypatch, kind, group):
    monkeypatch.chdir(stocked)
    tried(kind, group)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(SHORT, LONG, NIGHTLY))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_spoiled_files(stocked, monkeypatch, kind, start):
    monkeypatch.chdir(stocked)
    for group in range(start, min(start + NIGHTLY, LONG)):
        tried(kind, group)
