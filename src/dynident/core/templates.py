"""Templates of pages, which stand beside the code that fills them."""

from __future__ import annotations

from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def load_templates(*packages: str) -> Environment:
    """The templates of packages, by file name, the first that has one counts.

    What is filled in is escaped, and not left out.
    """
    from jinja2 import ChoiceLoader, Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([FunctionLoader(partial(read_template, each)) for each in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def read_template(package: str, name: str) -> str | None:
    """A template's text; None where the package has none of this name."""
    file = resources.files(package).joinpath(name)
    return file.read_text("utf-8") if file.is_file() else None
