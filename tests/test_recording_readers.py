"""Log files of every format into tables, and every refusal with its place."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynident.core.errors import InputError
from dynident.recording.readers import READERS, Table, read_tables

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
    return message


def as_text(values: np.ndarray, delimiter: str = ",") -> str:
    return "".join(delimiter.join(repr(float(x)) for x in row) + "\n" for row in values)


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


def test_row_counts_lines_of_the_file(tmp_path):
    table = read_table(write(tmp_path / "log.csv", "# c\na,b\n1,2\n# d\n\n3,4\n5,6\n"))
    assert [table.row(sample) for sample in range(3)] == [3, 6, 7]
    assert table.place(1, 1) == f"{tmp_path / 'log.csv'}, row 6, column 2 (b)"


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
        ("a,b\n1,2\n3,x\n5,6\n", ["row 3, column 2 (b): 'x' is not a number"]),
        ("# c\n1;2\n3;4,5\n", ["row 3, column 2: '4,5' is not a number", "point"]),
        ("a,b\n1,2\n,4\n5,6\n", ["row 3, column 1 (a): is empty"]),
        ("a,b\n1,2\n3\n5,6\n", ["row 3, column 2: has 1 columns where the first row has 2"]),
        ("a,b\n1,2\n3,4,5\n6,7\n", ["row 3, column 3: has 3 columns"]),
        ("a,b\n1,2\n3,4\n5", ["row 4, column 2: has 1 columns", "cut off"]),
        ("a,b\n1,2\n3,4\n5,1e-", ["row 4, column 2 (b): '1e-' is not a number"]),
        ("a,b\n1,2\n3,1_0\n", ["row 3, column 2 (b): '1_0' is not a number"]),
        ("a,b,c\n1,2\n3,4\n", ["row 2: has 2 columns, but the header in row 1 names 3"]),
        ("a,b\n1,2\n# c\n\n3,x # d\n", ["row 5, column 2 (b): 'x' is not a number"]),
        ("a,b,\n1,2,\n3,4,5\n", ["not a table of numbers"]),
        ("a b\n1 2\n3 4 5\n", ["row 3, column 3: has 3 columns"]),
        ('a,b\n1,2\n"3,4\n', ["row 3"]),
        ("a,b\ns,rad\n1,2\n", ["row 2, column 1 (a): 's' is not a number"]),
    ],
)
def test_refused_text(tmp_path, text, parts):
    message = refusal(write(tmp_path / "log.csv", text))
    for part in parts:
        assert part in message


def test_refused_files(tmp_path):
    assert "no such file" in refusal(tmp_path / "gone.csv")
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


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(*[st.floats(allow_nan=False, width=64)] * 2), min_size=1, max_size=30)
)
def test_numbers_survive_text(tmp_path, rows):
    values = np.array(rows)
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
    assert "is no NPZ archive" in refusal(path)
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
    assert table.names == ("t", "q_1", "q_2", "q_3")
    np.testing.assert_array_equal(table.values[:, 1:], VALUES)
    assert set(dict(table.skipped)) == {"kp", "s", "n"}


def test_refused_mat(tmp_path):
    path = tmp_path / "log.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x00" * 400)
    assert "version 7.3; save it with '-v7' or as CSV" in refusal(path)
    path.write_bytes(b"just text" * 40)
    assert "is not a MAT file" in refusal(path)
    path.write_bytes(b"")
    assert "is not a MAT file" in refusal(path)
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 500)
    assert "is HDF5; save it with '-v7' or as CSV" in refusal(path)
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
