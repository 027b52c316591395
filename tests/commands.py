"""The command line, asked for its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dynident.cli import run


def ask(
    capture: pytest.CaptureFixture[str] | pytest.CaptureFixture[bytes], argv: Sequence[str]
) -> Any:
    """What a command answers to ``--json``; what was said before is forgotten."""
    capture.readouterr()
    assert run([*argv, "--json"]) == 0
    return json.loads(capture.readouterr().out)
