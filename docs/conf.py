"""Sphinx configuration: sphinx-build -W docs docs/_build."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "dynident"
author = "The dynident developers"
copyright = "2026, The dynident developers"
release = version = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"][
    "version"
]

extensions = [
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "figures/*.md", "files"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"dynident {version}"
html_theme_options = {"top_of_page_buttons": []}

# Directives stand in comments, so that pages read as they are: a page of tables as a link to it,
# which is included here or else downloaded, files that are shown, and contents.
INCLUDED = re.compile(r"^.*\[[^\]]*\]\((\S+\.md)\) <!-- include (\d) -->$", re.M)
FIGURES = re.compile(r"\[([^\]]*)\]\(((?:\.\./)?figures/[\w-]+\.md)\)")
SHOWN = re.compile(r"^\[[^\]]*\]\((\S+)\) <!-- show -->$", re.M)
DIRECTIVE = re.compile(r"^<!-- (\{\w+\}.*?)-->$", re.M | re.S)


def show_directives(app: Any, name: str, source: list[str]) -> None:
    """A page as Sphinx takes it."""
    found = INCLUDED.sub(
        r"```{include} \1\n:heading-offset: \2\n:relative-docs: ..\n```", source[0]
    )
    found = SHOWN.sub(r"```{literalinclude} \1\n:language: toml\n```", found)
    found = FIGURES.sub(r"{download}`\1 <\2>`", found)
    source[0] = DIRECTIVE.sub(r"```\1```", found)


def setup(app: Any) -> None:
    """Of this guide."""
    app.connect("source-read", show_directives)
