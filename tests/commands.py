"""The command line, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dynident.cli import run


def tell(capture: pytest.CaptureFixture[str], argv: Sequence[str], code: int = 0) -> Any:
    """What a command writes, behind what was written and not read before: `out` and `err`."""
    assert run([*argv]) == code
    return capture.readouterr()


def ask(capture: pytest.CaptureFixture[str], argv: Sequence[str]) -> Any:
    """What a command answers to ``--json``; what was said before is forgotten."""
    capture.readouterr()
    return json.loads(tell(capture, [*argv, "--json"]).out)
