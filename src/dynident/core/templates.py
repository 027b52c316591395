"""Templates of pages, which stand beside the code that fills them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment


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
        bytecode_cache=keep_compiled_templates(Path(__file__).parent / "__pycache__"),
    )


def keep_compiled_templates(place: Path) -> BytecodeCache | None:
    """Compiled templates beside compiled modules, where Python keeps those; else none are kept.

    To compile those of a report takes as long as to fill them.
    """
    from jinja2.bccache import Bucket, FileSystemBytecodeCache

    class Kept(FileSystemBytecodeCache):
        """A place that may be full, or be cleared by others."""

        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):
                super().dump_bytecode(bucket)

    if sys.dont_write_bytecode or not os.access(place, os.W_OK):
        return None
    return Kept(str(place), "template-%s.jinja")
