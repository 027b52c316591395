"""Log files of every format into tables, and every refusal with its place."""

from __future__ import annotations

import gzip
import io
import os
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io

import dynident as di
from dynident.core.errors import InputError
from dynident.core.text import UNSHOWN
from dynident.readers import READERS, Table, list_titles, read_tables
from dynident.readers import text as text_reader
from dynident.readers.table import describe_object

VALUES = np.random.default_rng(7).normal(size=(60, 3)) * np.array([1.0, 1e-9, 1e12])
NAMES = ("time", "q_a", "tau_a")


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def read_table(path: Path) -> Table:
    (table,) = read_tables(path)
    return table


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        _ = read_table(path).values
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert not UNSHOWN.search(message)
    return message


def as_text(values: np.ndarray, delimiter: str = ",") -> str:
    return "".join(delimiter.join(repr(float(x)) for x in row) + "\n" for row in values)


ESCAPE = "\x1b[31m"
"""What turns a terminal red."""


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("log.csv", f"time,a\n0,1\n1,{ESCAPE}\n2,3\n".encode(), "row 3, column 2 (a): "),
        ("log.csv", f"time,a{ESCAPE}\n0,1\n1,x\n2,3\n".encode(), "column 2 (a\\x1b[31m): 'x'"),
        ("log.csv.gz", ESCAPE.encode(), "is not packed by gzip"),
        ("log.npz", ESCAPE.encode(), "is not an NPZ archive"),
        ("log.mat", 100 * ESCAPE.encode(), "is not a MAT file"),
        ("log.raw", ESCAPE.encode(), "cannot be read (it holds \\x1b[31m)"),
    ],
)
def test_no_message_about_a_file_acts_on_a_terminal(tmp_path, monkeypatch, name, content, words):
    def quoting(path: Path) -> Table:
        raise OSError(f"it holds {path.read_text()}")

    monkeypatch.setitem(READERS, ".raw", quoting)
    path = tmp_path / name
    path.write_bytes(content)
    assert words in refusal(path)


@pytest.mark.parametrize("suffix", [".txt", ".tsv", ".dat", ".CSV"])
def test_text_has_several_suffixes(tmp_path, suffix):
    path = write(tmp_path / f"log{suffix}", "a;b\n1;2\n")
    assert read_table(path).values.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", "   ", ", ", " ; "])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("comment", ["", "# made by hand in June\n", "% one\n\n# two; three\n"])
def test_text_in_all_its_forms(tmp_path, delimiter, header, comment):
    head = delimiter.join(NAMES) + "\n" if header else ""
    path = write(tmp_path / "log.csv", comment + head + as_text(VALUES, delimiter))
    table = read_table(path)
    assert table.names == (NAMES if header else None)
    np.testing.assert_allclose(table.values, VALUES, rtol=4e-16)
    assert not table.values.flags.writeable
    assert table.row(0) == comment.count("\n") + header + 1


@pytest.mark.parametrize(
    "text",
    [
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r1,2\r3,4\r",
        "\ufeffa,b\n1,2\n3,4",
        '"a","b"\n"1","2"\n"3","4"\n',
        "a,b,\n1,2,\n3,4,\n",
        "a,b\n1,2,\n3,4,\n",
        "a,b\n\n1,2\n\n3,4\n\n",
        "a,b\n1,2 # first\n# between\n3,4\n",
        "a,b\n1,2\n% between\n3,4\n",
        " a   b\n 1   2\n 3\t 4\n",
        "# a,b\n1,2\n3,4\n",
        "a,b\n+1,2.0e0\n3.,04\n",
    ],
)
def test_text_with_the_habits_of_other_programs(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode())
    table = read_table(path)
    assert table.names == ("a", "b")
    assert table.values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_one_column_and_one_row(tmp_path):
    assert read_table(write(tmp_path / "a.csv", "q\n1\n2\n")).values.tolist() == [[1.0], [2.0]]
    assert read_table(write(tmp_path / "b.csv", "1;2")).values.tolist() == [[1.0, 2.0]]


def test_missing_and_infinite_values_stay_for_the_checks(tmp_path):
    table = read_table(write(tmp_path / "log.csv", "a,b\n1,nan\ninf,4\nNaN,-Inf\n"))
    np.testing.assert_array_equal(table.values, [[1, np.nan], [np.inf, 4], [np.nan, -np.inf]])


@pytest.mark.parametrize("cell", ["#N/A", "#DIV/0!", '"#NUM!"', " #NAME?"])
def test_what_a_spreadsheet_has_no_value_for_is_no_comment(tmp_path, cell):
    text = f"a,b\n{cell},2\n# {cell}\n3,{cell}\n5,6 # no value\n{cell},8\n"
    table = read_table(write(tmp_path / "log.csv", text))
    nan = np.nan
    np.testing.assert_array_equal(table.values, [[nan, 2], [3, nan], [5, 6], [nan, 8]])
    assert table.row(3) == 6


def test_row_counts_lines_of_the_file(tmp_path):
    table = read_table(write(tmp_path / "log.csv", "# c\na,b\n1,2\n# d\n\n3,4\n5,6\n"))
    assert [table.row(sample) for sample in range(3)] == [3, 6, 7]
    assert table.place(1, 1) == f"{tmp_path / 'log.csv'}, row 6, column 2 (b)"


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n,4\n5,\n",
        "a,b\n1,2\n ,4\n5, # none\n",
        'a;b\n1;2\n"";4\n5;""\n',
        "a\tb\n1\t2\n\t4\n5\t\n",
        "a,b,\n1,2,\n,4,\n5,,\n",
    ],
)
def test_empty_cells_are_missing_values(tmp_path, text):
    table = read_table(write(tmp_path / "log.csv", text))
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2], [np.nan, 4], [5, np.nan]])
    first = read_table(write(tmp_path / "log.csv", "a,b\n1,\n3,4\n"))
    np.testing.assert_array_equal(first.values, [[1, np.nan], [3, 4]])


@pytest.mark.parametrize("suffix", [".csv.gz", ".txt.gz", ".tsv.gz", ".dat.gz", ".CSV.GZ"])
def test_packed_text(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    text = "# c\n" + ",".join(NAMES) + "\n" + as_text(VALUES)
    path.write_bytes(gzip.compress(text.encode()))
    table = read_table(path)
    assert table.names == NAMES
    np.testing.assert_allclose(table.values, VALUES, rtol=4e-16)
    assert table.row(0) == 3
    path.write_bytes(gzip.compress((text + "1,,3\n").encode()))
    assert np.isnan(read_table(path).values[-1, 1])
    path.write_bytes(gzip.compress((text + "1,x,3\n").encode()))
    assert "row 63, column 2 (q_a): 'x' is not a number" in refusal(path)
    path.write_bytes(gzip.compress(text.encode() + b"1,\xb0,3\n"))
    assert "row 63: is not UTF-8 text" in refusal(path)


def test_titles_of_packed_text_are_read_of_its_first_lines_alone(tmp_path, monkeypatch):
    path = tmp_path / "log.csv.gz"

    def refuse(path):
        raise AssertionError("is unpacked as a whole")

    monkeypatch.setattr(text_reader, "_open_bytes", refuse)
    path.write_bytes(gzip.compress(f"time,q_a,tau_a\n{as_text(VALUES)}".encode()))
    assert list_titles(path) == NAMES
    for data in (gzip.compress(b"0" * (1 << 23)), path.read_bytes()[:30], b"1,2\n"):
        path.write_bytes(data)
        assert list_titles(path) == ()


def test_refused_packed_text(tmp_path, monkeypatch):
    path = tmp_path / "log.csv.gz"
    whole = gzip.compress(as_text(VALUES).encode())
    for data in (b"", b"1,2\n", whole[:-300], whole[:200] + bytes(50) + whole[250:]):
        path.write_bytes(data)
        if data:
            assert "is not packed by gzip, or was cut off" in refusal(path)
        else:
            assert "is empty" in refusal(path)
    monkeypatch.setattr("dynident.readers.table.UNPACKED", 1 << 20)
    zeros = b"0,0,0,0\n" * 100_000
    path.write_bytes(gzip.compress(b"a,b,c,d\n" + zeros * 10))
    assert "bytes unpack to" in refusal(path)
    np.savez_compressed(tmp_path / "log.npz", q=np.zeros((1_000_000, 2)))
    assert "array 'q': " in refusal(tmp_path / "log.npz")
    scipy.io.savemat(tmp_path / "log.mat", {"q": np.zeros((1_000_000, 2))}, do_compression=True)
    assert "which no log does" in refusal(tmp_path / "log.mat")


# HDF5


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        file["time"] = np.arange(60) / 100
        file.create_dataset("arm/q", data=VALUES, compression="gzip", chunks=(20, 2))
        file["arm/tau"] = VALUES.T.astype("f4")
        file["arm/self"] = file["arm"]
        file["ready"] = np.arange(60) > 3
        file["name"] = "text"
        file["gain"] = 3.0
        file["soft"] = h5py.SoftLink("/arm/q")
        file["away"] = h5py.ExternalLink("other.h5", "/q")
        file.create_dataset("outside", (60,), "f8", external=[("raw.bin", 0, 480)])
        file.create_dataset("picture", (60, 10**9), "f4", chunks=(60, 1))
        file.create_dataset("film", (10**9, 1000), "f4", chunks=(1000, 1))
    table = read_table(path)
    arm = [f"arm.{key}_{k}" for key in ("q", "tau") for k in (1, 2, 3)]
    assert set(table.names) == {"time", "ready", *arm}
    wanted = [table.names.index(name) for name in ("arm.q_3", "arm.q_1", "arm.tau_2", "time")]
    expected = [VALUES[:, 2], VALUES[:, 0], VALUES[:, 1].astype("f4"), np.arange(60) / 100]
    np.testing.assert_array_equal(table.take(wanted), np.column_stack(expected))
    skipped = dict(table.skipped)
    for key in ("soft", "away", "outside"):
        assert skipped[key] == "stands elsewhere, behind a link; save it in the file itself"
    assert skipped["picture"] == "has shape (60, 1000000000): more than 1000 columns"
    assert skipped["film"] == "has shape (1000000000, 1000), not 60 samples"


@pytest.mark.parametrize("header", [False, True])
def test_mat_of_version_73(tmp_path, header):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "log.mat"

    def save(place, key, values, kind="double"):
        place[key] = values
        place[key].attrs["MATLAB_class"] = np.bytes_(kind)

    with h5py.File(path, "w", userblock_size=512 if header else 0) as file:
        save(file, "t", np.arange(60.0)[None])
        save(file.create_group("log"), "q", VALUES.T)  # MATLAB's columns are rows here
        save(file, "name", np.array([[110], [97]], dtype="u2"), "char")
        save(file, "#refs#", np.arange(60.0))
        save(file, "run", np.arange(6, dtype="u4")[None], "timeseries")
        file["run"].attrs["MATLAB_object_decode"] = 3
        save(file, "none", np.array([0, 0], dtype="u8"))
        file["none"].attrs["MATLAB_empty"] = 1
    if header:
        head = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
        path.write_bytes(head + path.read_bytes()[len(head) :])
    table = read_table(path)
    assert set(table.names) == {"t", "log.q_1", "log.q_2", "log.q_3"}
    wanted = [table.names.index(f"log.q_{k}") for k in (2, 3)]
    np.testing.assert_array_equal(table.take(wanted), VALUES[:, 1:])
    assert set(dict(table.skipped)) == {"name", "none", "run"}
    assert dict(table.skipped)["run"] == describe_object("timeseries")


def test_refused_hdf5(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "log.hdf5"
    path.write_bytes(b"nothing of that kind")
    assert "is not an HDF5 file, or was cut off" in refusal(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("q", data=VALUES, compression="gzip")
    whole = path.read_bytes()
    for length in (0, 100, 600, 2000, len(whole) - 100):
        path.write_bytes(whole[:length])
        assert "is not an HDF5 file, or was cut off" in refusal(path)
    at = whole.rindex(b"\x78\x5e") if b"\x78\x5e" in whole else len(whole) - 900
    path.write_bytes(whole[:at] + bytes(200) + whole[at + 200 :])
    assert "array 'q': is damaged" in refusal(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("q", (10**8, 3), "f4", chunks=(10**4, 3))  # nothing is written of it
    assert "array 'q': 0 bytes unpack to 1200000000 or more, which no log does" in refusal(path)
    with h5py.File(path, "w") as file:
        file["name"] = "x"
    assert "holds no samples; 'name' is not a numeric array" in refusal(path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert refusal(path) == f"{path}: needs h5py; pip install dynident[hdf5]"


def test_text_of_many_rows(tmp_path):
    path = write(tmp_path / "log.csv", ",".join(NAMES) + "\n" + as_text(VALUES))
    np.testing.assert_allclose(read_table(path).values, VALUES, rtol=4e-16)
    path.write_text(path.read_text() + "1,2,3,4\n")
    assert "row 62, column 4: has 4 columns where the first row has 3" in refusal(path)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["is empty"]),
        ("\n\n# only this\n", ["is empty"]),
        ("a,b\n", ["header but no rows"]),
        ('a,b\n1,2\n3,"4,5"\n', ["row 3, column 2 (b): '4,5' is not a number", "point"]),
        (
            "t;a\n2024-05-01T12:00:00;1\nnoon;2\n",
            ["row 3, column 1 (t): 'noon' is not an instant like"],
        ),
        ("t;a\n2024-05-01T12:00:00;1\n2024-05-01T12:00:01\n", ["row 3", "cut off"]),
        (
            "t;a\n2024-05-01T12:00:00;1\n2024-05-01T12:00:01Z;2\n",
            [
                "row 3, column 1 (t): ",
                "is not an instant like those before (can't subtract offset-naive",
            ],
        ),
        ("t;a\n2024-05-01 12:00:00;1\n2024-05-32 12:00:00;2\n", ["row 3, column 1 (t)", "(day is"]),
        # which of 1.5 and 1500, or of 1 and 1000, is meant
        ("a;b\n0.5;1\n1,500;2\n", ["row 3: has decimals with a comma where others have a point"]),
        ("a;b\n0,5;1,5\n1.5;2\n", ["row 3: has decimals with a comma"]),
        ("t;s;a\n2024-05-01T12:00:00.5;x, y.;1,5\n2024-05-01T12:00:01;;2.5\n", ["row 3: has"]),
        ("a,b\n1,2\n3,4,5\n6,7\n", ["row 3, column 3: has 3 columns"]),
        ("a,b\n1,2\n3,4\n5", ["row 4, column 2: has 1 columns", "cut off"]),
        ("a,b\n1,2\n3,4\n5,1e-", ["row 4, column 2 (b): '1e-' is not a number"]),
        ("a,b\n1,2\n3," + 99 * "\0", ["row 3, column 2 (b): ", "\\x00…' is not a number"]),
        ("a,b\n1,2\n3,1_0\n", ["row 3, column 2 (b): '1_0' is not a number"]),
        ("a,b,c\n1,2\n3,4\n", ["row 2: has 2 columns, but the header in row 1 names 3: name each"]),
        ("a,b\n1,2\n# c\n\n3,x # d\n", ["row 5, column 2 (b): 'x' is not a number"]),
        ("a,b,\n1,2,\n3,4,5\n", ["not a table of numbers"]),
        ("a b\n1 2\n3 4 5\n", ["row 3, column 3: has 3 columns"]),
        ('a,b\n1,2\n"3,4\n', ["row 3"]),
        ("a,b\ns,rods\n1,2\n", ["row 2, column 1 (a): 's' is not a number"]),
    ],
)
def test_refused_text(tmp_path, text, parts):
    message = refusal(write(tmp_path / "log.csv", text))
    for part in parts:
        assert part in message


def test_columns_of_words_are_left_alone(tmp_path):
    text = 'time,state,q_a,note\n0,RUN,1,\n1,"a, b",,2\n'
    table = read_table(write(tmp_path / "log.csv", text))
    np.testing.assert_array_equal(table.values, [[0, np.nan, 1, np.nan], [1, np.nan, np.nan, 2]])
    assert table.names == ("time", "state", "q_a", "note")
    assert [*table.words] == [1]
    assert table.words[1].endswith("log.csv, row 2, column 2 (state): 'RUN' is not a number")
    for rows in ("0,RUN,1\n1,a, b,2\n", "0,RUN,1\n1,2\n", "0,RUN,1\n1,RUN,x\n"):
        assert "row 3, column" in refusal(write(tmp_path / "log.csv", "time,state,q_a\n" + rows))


def test_decimals_may_have_a_comma(tmp_path, monkeypatch):
    for text in ("a;b\n1,5;2\n-3;4,25e1\n", "a\tb\n1,5\t2\n-3\t4,25e1\n", "1,5;2\n-3;4,25e1\n"):
        table = read_table(write(tmp_path / "log.csv", text))
        np.testing.assert_array_equal(table.values, [[1.5, 2.0], [-3.0, 42.5]])
        assert table.names == (("a", "b") if text.startswith("a") else None)
    # the first row has none, and one has no value
    table = read_table(write(tmp_path / "log.csv", "# c\n1;2\n3;4,5\n;6,5\n"))
    np.testing.assert_array_equal(table.values, [[1.0, 2.0], [3.0, 4.5], [np.nan, 6.5]])
    monkeypatch.setattr(text_reader, "LARGE", 0)
    table = read_table(write(tmp_path / "log.csv", "a;b\n1,5;2\n-3;4,25e1\n"))
    np.testing.assert_array_equal(table.take([0, 1]), [[1.5, 2.0], [-3.0, 42.5]])


@pytest.mark.parametrize("mark", [";", ","])
def test_dates_count_in_seconds(tmp_path, mark):
    rows = [
        ("time", "state", "q_a"),
        ("2024-05-01 23:59:59.250", f'"a{mark}b"', "1"),
        ("2024-05-02T00:00:00.000001000", "c", "2.5"),
        ("2024-05-02 00:00:00,5" if mark == ";" else "2024-05-02 00:00:00.5", "", "3"),
    ]
    path = write(tmp_path / "log.csv", "\n".join(map(mark.join, rows)) + "\n")
    table = read_table(path)
    seconds = np.array([0.0, 0.750001, 1.25]) + 86399.25  # of the day when it began
    np.testing.assert_allclose(table.values[:, 0], seconds, rtol=0.0, atol=1e-10)
    np.testing.assert_array_equal(table.values[:, 2], [1.0, 2.5, 3.0])
    assert [*table.words] == [1]
    # of one zone each, or with their distance from it
    zones = "t,q\n2024-05-01T12:00:00+02:00,1\n2024-05-01T10:00:01Z,2\n"
    np.testing.assert_array_equal(read_table(write(path, zones)).values, [[36000, 1], [36001, 2]])
    # one that is missing, as other values
    lost = read_table(write(path, "t,q\n2024-05-01T00:00:01,1\n,2\n2024-05-01T00:00:03,3\n"))
    np.testing.assert_array_equal(lost.values, [[1, 1], [np.nan, 2], [3, 3]])


def test_files_side_by_side_have_dates_of_one_clock(tmp_path):
    robot = tmp_path / "arm.toml"
    robot.write_text(
        'name = "arm"\nconvention = "modified"\n[[joint]]\nname = "a"\ninertial = '
        "{ mass = 1.0, com = [0.1, 0.0, 0.0], inertia = [0.1, 0.0, 0.1, 0.0, 0.0, 0.1] }\n"
    )
    for name, seconds in (("q", 0), ("tau", 0), ("late", 5)):
        rows = (
            f"2024-05-01T12:00:{seconds + k // 50:02}.{k % 50 * 2:02}0,{np.sin(0.1 * k)}"
            for k in range(100)
        )
        head = f"time,{'q' if name == 'q' else 'tau'}_a"
        write(tmp_path / f"{name}.csv", "\n".join([head, *rows]) + "\n")
    model = di.load_robot(robot)
    assert di.read_log([tmp_path / "q.csv", tmp_path / "tau.csv"], model).rate == 50.0
    with pytest.raises(di.InputError, match="is 5 s off the time in"):
        di.read_log([tmp_path / "q.csv", tmp_path / "late.csv"], model)


def test_refused_files(tmp_path):
    assert "no such file" in refusal(tmp_path / "gone.csv")
    several = refusal(tmp_path / "q.csv+tau.csv")  # as a summary names them
    assert several.endswith(f"no such file; of files side by side: {tmp_path / 'q.csv'},tau.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "folder.csv: is not a file" in refusal(tmp_path / "folder.csv")
    message = refusal(write(tmp_path / "log.xlsx", "x"))
    assert all(suffix in message for suffix in READERS)
    utf16 = tmp_path / "wide.csv"
    utf16.write_bytes("a,b\n1,2\n".encode("utf-16"))
    assert "is not text" in refusal(utf16)
    latin = tmp_path / "latin.csv"
    latin.write_bytes("# angles in °\nq,τ\n".encode() + b"1,2\n# 20 \xb0C\n3,4\n")
    assert "row 4: is not UTF-8 text; export the log as CSV (UTF-8)" in refusal(latin)
    wide = write(tmp_path / "field.csv", "q,tau\n" + "1" * 200_000 + ",2\n")
    assert "is not a table of numbers (field larger than" in refusal(wide)
    closed = write(tmp_path / "closed.csv", "q\n1\n")
    closed.chmod(0)
    if not os.access(closed, os.R_OK):  # the administrator may read everything
        assert "cannot be read" in refusal(closed)


def test_numbers_survive_text(tmp_path):
    """Whatever their bits are, and those at the ends of what numbers can be."""
    bits = np.random.default_rng(0).integers(2**64, size=2000, dtype=np.uint64)
    ends = [0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, np.inf, -np.inf]
    every = np.concatenate([ends, bits.view(float)])
    numbers = every[~np.isnan(every)]
    for part in (numbers[:2], numbers):
        values = part[: len(part) // 2 * 2].reshape(-1, 2)
        path = write(tmp_path / "log.csv", "a,b\n" + as_text(values))
        np.testing.assert_allclose(read_table(path).values, values, rtol=1e-15, atol=0)


def test_npz(tmp_path):
    path = tmp_path / "log.npz"
    time = np.arange(60) / 100
    np.savez(path, time=time, q=VALUES, rate=100.0, flat=VALUES[:, 0].astype("f4"), gains=[1, 2])
    table = read_table(path)
    assert table.names == ("time", "q_1", "q_2", "q_3", "flat")
    np.testing.assert_array_equal(table.values[:, 0], time)
    np.testing.assert_array_equal(table.values[:, 1:4], VALUES)
    assert dict(table.skipped)["gains"] == "has shape (2,), not 60 samples"
    assert table.place(4, 1) == f"{path}, row 5, column 2 (q_1)"


def test_arrays_with_samples_along_the_second_axis(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, q=VALUES.T)
    np.testing.assert_array_equal(read_table(path).values, VALUES)


def test_python_objects_beside_the_signals_are_left_alone(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, q=VALUES, meta=np.array({"robot": "x"}, dtype=object))
    table = read_table(path)
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.skipped == (("meta", "holds Python objects; save it as an array of float64"),)


def patched(data: bytes, mark: bytes, offset: int, value: int) -> bytes:
    """An archive with a byte after each mark of a kind changed."""
    changed = bytearray(data)
    at = changed.find(mark)
    while at >= 0:
        changed[at + offset] = value
        at = changed.find(mark, at + 1)
    return bytes(changed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: patched(data, b"PK\x01\x02", 8, 1), "encrypted"),
        (lambda data: patched(data, b"PK\x01\x02", 10, 99), "compression"),
        (lambda data: data[:100] + b"\0" * 20 + data[120:], "is damaged"),
        (lambda data: patched(data, b"PK\x05\x06", 12, 255), "is a damaged NPZ archive"),
    ],
)
def test_an_archive_that_no_library_can_read_is_refused(tmp_path, change, words):
    path = tmp_path / "log.npz"
    np.savez(path, q=VALUES)
    path.write_bytes(change(path.read_bytes()))
    message = refusal(path)
    assert words in message
    assert "save it again with np.savez" in message


@pytest.mark.parametrize("packed", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_refused_however_it_is_packed(tmp_path, packed):
    path, array = tmp_path / "log.npz", io.BytesIO()
    np.save(array, np.random.default_rng(0).normal(size=(300, 2)))
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr("q.npy", array.getvalue())
    data = bytearray(path.read_bytes())
    data[1000:1200] = bytes(200)
    path.write_bytes(bytes(data))
    assert "array 'q': is damaged" in refusal(path)


def test_a_header_that_python_cannot_parse_is_refused(tmp_path):
    path = tmp_path / "log.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("q.npy", b"\x93NUMPY\x01\x00\x14\x00{'descr': 'f8', 'x'\n" + b" " * 9)
    assert "array 'q': is damaged" in refusal(path)


def test_refused_npz(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, q=np.array([{}, None], dtype=object))
    assert "'q' holds Python objects; save it as an array of float64" in refusal(path)
    np.savez(path, name=np.array(["x", "y"]), kp=3.0)
    assert "holds no samples; 'name' is not a numeric array" in refusal(path)
    path.write_bytes(b"not a zip")
    assert "is not an NPZ archive" in refusal(path)
    np.savez(path, q=VALUES)
    path.write_bytes(path.read_bytes()[:-300])
    assert "was cut off" in refusal(path)
    np.savez(path, q=VALUES)
    damaged = bytearray(path.read_bytes())
    damaged[400] ^= 255
    path.write_bytes(bytes(damaged))
    assert "damaged" in refusal(path)


def test_mat(tmp_path):
    path = tmp_path / "log.mat"
    content = {"t": np.arange(60.0), "q": VALUES, "kp": 160.0, "s": {"a": VALUES}, "n": "name"}
    scipy.io.savemat(path, content, oned_as="column")
    table = read_table(path)
    assert table.names == ("t", "q_1", "q_2", "q_3", "s.a_1", "s.a_2", "s.a_3")
    np.testing.assert_array_equal(table.values[:, 1:4], VALUES)
    np.testing.assert_array_equal(table.values[:, 4:], VALUES)
    assert set(dict(table.skipped)) == {"kp", "n"}


@pytest.mark.parametrize("packed", [False, True])
def test_structs_in_structs(tmp_path, packed):
    path = tmp_path / "log.mat"
    log = {
        "time": np.arange(60.0),
        "arm": {"q": VALUES, "kp": 3.0, "note": "text", "empty": np.zeros((0, 0))},
        "cells": np.array([1.0, "x"], dtype=object),
        "many": np.array([(1.0,), (2.0,)], dtype=[("x", "f8")]),
    }
    scipy.io.savemat(path, {"log": log, "other": VALUES}, do_compression=packed)
    table = read_table(path)
    arm = tuple(f"log.arm.q_{k}" for k in (1, 2, 3))
    assert table.names == ("log.time", *arm, "other_1", "other_2", "other_3")
    np.testing.assert_array_equal(table.take([1, 3]), VALUES[:, ::2])
    assert {"log.arm.kp", "log.arm.note", "log.cells", "log.many"} <= set(dict(table.skipped))
    deep: dict[str, object] = {"q": VALUES}
    for _ in range(20):
        deep = {"s": deep}
    scipy.io.savemat(path, {"q": VALUES, **deep}, do_compression=packed)
    assert "structs stand more than 16 deep in each other" in refusal(path)


@pytest.mark.parametrize("packed", [False, True])
def test_objects_of_matlab_are_named_and_what_they_hold_is_no_signal(tmp_path, packed):
    """A `timeseries` beside arrays, and the bytes of all objects, which MATLAB appends."""

    def part(kind, content):
        tag = struct.pack("<II", kind, len(content))
        return tag + content + bytes(-len(content) % 8)

    def element(kind, *parts):
        own = part(14, part(6, struct.pack("<II", kind, 0)) + b"".join(parts))
        packing = zlib.compress(own)
        return struct.pack("<II", 15, len(packing)) + packing if packed else own

    path, held = tmp_path / "log.mat", bytes(5000)
    scipy.io.savemat(path, {"q": VALUES}, do_compression=packed)
    names = (part(1, text) for text in (b"run", b"MCOS", b"timeseries"))
    run = element(17, *names, part(14, b""))
    rest = element(9, part(5, struct.pack("<II", 1, len(held))), part(1, b""), part(2, held))
    path.write_bytes(path.read_bytes() + run + rest)
    table = read_table(path)
    assert table.names == ("q_1", "q_2", "q_3")
    assert dict(table.skipped) == {"run": describe_object("timeseries")}


def test_refused_mat(tmp_path):
    path = tmp_path / "log.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x00" * 400)
    assert "is not an HDF5 file, or was cut off" in refusal(path)
    path.write_bytes(b"just text" * 40)
    assert "is not a MAT file" in refusal(path)
    path.write_bytes(b"")
    assert "is not a MAT file" in refusal(path)
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 500)
    assert "is not an HDF5 file, or was cut off" in refusal(path)
    scipy.io.savemat(path, {"q": VALUES}, do_compression=True)
    whole = path.read_bytes()
    for length in (1, 20, 50, 125, 130, len(whole) - 200):
        path.write_bytes(whole[:length])
        assert "is not a MAT file, or was cut off" in refusal(path)


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "log.parquet"
    columns = {
        "time": np.arange(60) / 100,
        "q.a": VALUES[:, 0].astype("f4"),
        "count": np.arange(60),
        "mode": ["run"] * 60,
    }
    parquet.write_table(pyarrow.table(columns), path)
    table = read_table(path)
    assert table.names == ("time", "q.a", "count")
    np.testing.assert_array_equal(table.values[:, 1], columns["q.a"])
    np.testing.assert_array_equal(table.values[:, 2], columns["count"])
    assert table.skipped == (("mode", "holds string, not numbers"),)
    holes = pyarrow.table({"q": pyarrow.array([1.0, None, 3.0])})
    parquet.write_table(holes, path)
    np.testing.assert_array_equal(read_table(path).values[:, 0], [1.0, np.nan, 3.0])


def test_refused_parquet(tmp_path, monkeypatch):
    path = write(tmp_path / "log.parquet", "nothing of that kind")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    assert "is not a Parquet file" in refusal(path)
    parquet.write_table(pyarrow.table([VALUES[:, 0]] * 2, names=["q", "q"]), path)
    assert "has column 'q' twice; rename one" in refusal(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install dynident[parquet]" in refusal(path)


def test_savetxt_header_is_read(tmp_path):
    text = io.StringIO()
    np.savetxt(text, VALUES, delimiter=",", header="time,q_a,tau_a")
    assert read_table(write(tmp_path / "log.txt", text.getvalue())).names == NAMES
