"""What tests have done side by side: functions that other processes load in no time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from dynident.core.errors import InputError


def square(task: tuple[int, str]) -> int:
    """The square of a number; the folder's file of it says how often its process was ended."""
    number, folder = task
    if folder:
        path = Path(folder, str(number))
        begun = len(path.read_text()) if path.exists() else 0
        if number == 3 or (number == 1 and not begun):
            path.write_text("x" * (begun + 1))
            os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def tell_process(number: int) -> int:
    return os.getpid()


def take_memory(gigabytes: float) -> int:
    return len(bytearray(int(gigabytes * 1e9)))


def refuse(number: int) -> int:
    if number == 2:
        raise InputError("two is refused")
    return number


def wait_a_little(number: int) -> int:
    time.sleep(0.3)
    return number


def fail(number: int) -> int:
    raise TypeError(f"{number} is no such thing")
