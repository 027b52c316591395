"""How the guide is built: formulas as MathML, a folder for each version."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import lxml.etree
import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

from make_versions import list_versions, write_index  # noqa: E402
from mathml import UnknownFormulaError, convert  # noqa: E402

CODE = re.compile(r"^(`{3,})(?!\{math).*?^\1|`[^`\n]*`", re.M | re.S)
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+?(?:\n[^$\n]+?)?)\$(?!\d)", re.S)


def text(formula: str) -> str:
    return "".join(lxml.etree.fromstring(convert(formula)).itertext())


def test_every_formula_of_the_guide_is_drawn():
    count = 0
    for page in sorted(DOCS.rglob("*.md")):
        if "_build" in page.parts:
            continue
        for display, inline in FORMULA.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
            found = lxml.etree.fromstring(convert(display or inline, bool(display)))
            assert found.get("alttext")
            assert (found.get("display") == "block") == bool(display)
            count += 1
    assert count > 1000


def test_formulas_have_their_parts_in_their_places():
    assert text(r"\boldsymbol\tau = \mathbf M(\mathbf q)\ddot{\mathbf q}") == "𝝉=𝐌(𝐪)𝐪¨"
    assert text(r"\mathcal N(0, \Sigma) \succeq 0") == "𝒩(0,Σ)⪰0"
    root = lxml.etree.fromstring(convert(r"\sum_{k=1}^n x_k'^2", display=True))
    tags = [each.tag.rpartition("}")[2] for each in root.iter()]
    assert tags[1:3] == ["mrow", "munderover"]
    assert "msubsup" in tags
    root = lxml.etree.fromstring(convert(r"\begin{bmatrix} a & b \\ c & d \end{bmatrix}"))
    cells = root.findall(".//{*}mtr")
    assert [len(row) for row in cells] == [2, 2]
    assert text(r"e_{\text{held out}} \le 1\,\mathrm{Nm}").startswith("eheld\u00a0out≤1")
    assert text("a < b & c".replace(" & c", "")) == "a<b"


@pytest.mark.parametrize(
    "formula", [r"\nonsense x", r"\frac{a}", "{a", r"\begin{array} a \end{array}"]
)
def test_what_is_not_known_is_refused(formula):
    with pytest.raises(UnknownFormulaError):
        convert(formula)


def test_versions_are_the_tags_the_newest_first(tmp_path):
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    for tag in ("v0.9.0", "v0.10.0", "other"):
        git("tag", tag)
    versions = list_versions(tmp_path)
    assert versions == ["v0.10.0", "v0.9.0"]
    write_index(tmp_path, versions)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'href="(.+?)/index.html"', page) == ["latest", *versions]
