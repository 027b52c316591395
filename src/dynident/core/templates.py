"""Templates of pages, which stand beside the code that fills them."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def load_templates(*packages: str) -> Environment:
    """The templates of packages, by file name; what is filled in is escaped, and not left out."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folders = [resources.files(package) for package in packages]

    def load(name: str) -> str | None:
        found = (folder.joinpath(name) for folder in folders)
        return next((file.read_text("utf-8") for file in found if file.is_file()), None)

    return Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
