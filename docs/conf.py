"""Sphinx configuration: sphinx-build -W docs docs/_build."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "dynident"
author = "The dynident developers"
copyright = "2026, The dynident developers"
release = version = installed_version("dynident")

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
