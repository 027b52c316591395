"""The page of the four documents: whole, and of things that exist."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

import pytest
from test_docs import TOP

from dynident.friction.models import FRICTIONS

PAGE = TOP / "docs" / "seeds.md"
EQUATIONS = {"ardiani2024": 52, "brunot2019": 37, "zhang2018": 27}
TABLES = {"brunot2019": 5, "zhang2018": 12}
FIGURES = {"ardiani2024": 4, "brunot2019": 3, "zhang2018": 4}
SECTION = re.compile(r"^## (\w+): [^\n]*\n(.*?)(?=^## |\Z)", re.M | re.S)
NAME = re.compile(r"`(dynident(?:_papers)?(?:\.\w+)+)`")
TEST = re.compile(r"`(tests/\w+\.py)::(\w+)`")
COMMAND = re.compile(r"`(dynident [^`]+)`")
FILE = re.compile(r"(?:\]\(|<)([\w./-]+\.md)(?:#[\w-]+)?[>)]")
QUOTED = re.compile(r"`([a-z-]+)`")
RANGE = re.compile(r"\((\d+)\)(?: to \((\d+)\))?")
COUNTED = r"{}s? ((?:\d+|and|to|,|\s)+)"


@cache
def sections() -> dict[str, list[list[str]]]:
    """Rows of each document's table: what, where, what differs."""
    found = {}
    for name, text in SECTION.findall(PAGE.read_text(encoding="utf-8")):
        lines = [line for line in text.splitlines() if line.startswith("|")]
        found[name] = [[c.strip() for c in line.strip("|").split(" | ")] for line in lines[2:]]
    return found


def expand(text: str) -> set[int]:
    """Numbers of ``1, 2 and 4 to 6``."""
    spread = re.sub(
        r"(\d+) to (\d+)",
        lambda m: " ".join(str(k) for k in range(int(m[1]), int(m[2]) + 1)),
        text,
    )
    return {int(k) for k in re.findall(r"\d+", spread)}


ROWS = [(name, row) for name, rows in sections().items() for row in rows]


def test_there_is_a_section_for_each_document():
    assert list(sections()) == ["ardiani2024", "brunot2019", "zhang2018", "FloBaRoID"]


@pytest.mark.parametrize("name", EQUATIONS)
def test_every_equation_has_a_row(name):
    told: set[int] = set()
    for what, *_ in sections()[name]:
        for first, last in RANGE.findall(what):
            told |= set(range(int(first), int(last or first) + 1))
    assert told == set(range(1, EQUATIONS[name] + 1))


@pytest.mark.parametrize(
    ("word", "numbers"), [("table", TABLES), ("figure", FIGURES)], ids=["tables", "figures"]
)
def test_every_table_and_figure_has_a_row(word, numbers):
    for name, count in numbers.items():
        told: set[int] = set()
        for what, *_ in sections()[name]:
            for text in re.findall(COUNTED.format(word), what):
                told |= expand(text)
        assert told == set(range(1, count + 1)), name


def test_every_roman_table_has_a_row():
    text = " ".join(row[0] for row in sections()["ardiani2024"])
    pairs = re.findall(r"tables ([IV]+) and ([IV]+)", text)
    assert [each for pair in pairs for each in pair] == ["I", "II", "III", "IV", "V", "VI"]


def test_every_row_says_where_and_all_of_it_exists():
    for name, row in ROWS:
        assert len(row) == 3, row
        text, where = " ".join(row), row[1]
        for found in NAME.findall(text):
            find(found)
        for path, test in TEST.findall(text):
            assert f"def {test}(" in (TOP / path).read_text(encoding="utf-8"), (path, test)
        for path in FILE.findall(text):
            assert (PAGE.parent / path).is_file(), path
        laws = [each for each in QUOTED.findall(where) if each in FRICTIONS]
        said = laws or any(each.search(where) for each in (NAME, TEST, COMMAND, FILE))
        # what is nowhere has a reason
        assert said or (where == "*missing*" and row[2]), (name, row)


def find(name: str) -> object:
    """What a dotted name stands for."""
    module, _, rest = name.rpartition(".")
    left: list[str] = [rest]
    while True:
        try:
            found: object = import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            left.insert(0, last)
    for each in left:
        found = getattr(found, each)
    return found
