"""The guide of every version, a folder each, and a page that lists them.

Versions are the tags `v*` of the repository, and what is committed now. Needs the groups that the
guide is built with, and no network:

    python docs/make_versions.py [FOLDER]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
NOW = "HEAD"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>dynident, versions of the guide</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root {{ color-scheme: light dark; font-family: sans-serif }} body {{ margin: 2em }}</style>
</head><body><h1>dynident</h1><ul>
{items}
</ul></body></html>
"""


def list_versions(top: Path = TOP) -> list[str]:
    """Tags, the newest version first."""
    told = subprocess.run(["git", "tag", "--list", "v*"], cwd=top, capture_output=True, text=True,
                          check=True).stdout.split()  # fmt: skip
    return sorted(told, key=lambda tag: [int(n) for n in re.findall(r"\d+", tag)], reverse=True)


def build(reference: str, folder: Path) -> None:
    """The guide as it stands in the tree of a tag, with that tree's own code."""
    with tempfile.TemporaryDirectory() as place:
        pack = Path(place) / "tree.tar"
        subprocess.run(["git", "archive", "-o", str(pack), reference], cwd=TOP, check=True)
        with tarfile.open(pack) as tree:
            tree.extractall(place, filter="data")
        own = os.environ | {"PYTHONPATH": str(Path(place) / "src")}
        given = ["-W", "-q", "-b", "html", str(Path(place) / "docs"), str(folder)]
        subprocess.run([sys.executable, "-m", "sphinx", *given], env=own, check=True)


def write_index(folder: Path, versions: Sequence[str]) -> None:
    """The page that lists them."""
    called = {"latest": "what comes next", **{version: version for version in versions}}
    items = [f'<li><a href="{name}/index.html">{words}</a></li>' for name, words in called.items()]
    (folder / "index.html").write_text(PAGE.format(items="\n".join(items)), encoding="utf-8")


def main() -> None:
    """All of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=TOP / "docs" / "_build" / "all")
    folder = parser.parse_args().folder
    versions = list_versions()
    for name, reference in (("latest", NOW), *((tag, tag) for tag in versions)):
        build(reference, folder / name)
    write_index(folder, versions)
    print(f"written to {folder}")


if __name__ == "__main__":
    main()
