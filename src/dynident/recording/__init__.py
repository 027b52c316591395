"""Logs: files or arrays to `Recording` to `Samples`.

The room has the name of what makes a recording of arrays, so that it can be called:
``dynident.recording(q, tau, rate=500.0)`` is `dynident.recording.arrays.recording`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """The module, which is a function, too: importing any part of it would hide one."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from dynident.recording.arrays import recording

        return recording(*args, **kwargs)


sys.modules[__name__].__class__ = _Room
