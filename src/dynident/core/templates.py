"""Templates of pages, which stand beside the code that fills them."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def load_templates(package: str) -> Environment:
    """The templates of a package, by file name; what is filled in is escaped, and not left out."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    here = resources.files(package)
    return Environment(
        loader=FunctionLoader(lambda name: here.joinpath(name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
