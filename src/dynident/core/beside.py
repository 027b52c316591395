"""Compilation shared between processes: nobody compiles what another one does at the moment.

LLVM lets one thread of a process work at a time, so that what is to go side by side goes in
processes of its own. They meet in the cache: a process claims a function before it compiles it,
and one that finds it claimed waits for the code instead. No two wait for each other, for a
function waits for what it calls alone.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # not a Unix: every process compiles for itself
    fcntl = None  # type: ignore[assignment]

from dynident.core.threads import count_processors

CLAIMS: dict[Path, IO[bytes]] = {}
"""Files that this process holds."""


def claim_function(place: Path, name: str, key: Any) -> Path | None:
    """Claim the compilation of a function, and wait while another process has claimed it.

    The place is the directory of its cache, and the key tells its variants apart by what it prints
    as. What is returned is for `give_up_claim`; nothing where no file can be locked.
    """
    path = place / f"{name}.{sha256(repr(key).encode()).hexdigest()[:16]}.claim"
    if fcntl is None or path in CLAIMS:
        return None
    try:
        claim = path.open("wb")
    except OSError:  # a full disk
        return None
    try:
        fcntl.flock(claim, fcntl.LOCK_EX)
    except OSError:  # a file system without locks
        claim.close()
        return None
    CLAIMS[path] = claim
    return path


def give_up_claim(path: Path) -> None:
    """Let others have what is now compiled, or will not be."""
    with suppress(OSError):  # others that wait hold the same file, and then find the code
        path.unlink()
    CLAIMS.pop(path).close()


ALONE = "DYNIDENT_COMPILE_ALONE"
"""Variable of the environment: where it is set, no processes are begun."""

HELPERS: list[subprocess.Popen[bytes]] = []
"""Processes that this one has begun."""


def compile_beside(module: str, parts: Sequence[int]) -> None:
    """Have processes of their own run a module, each with the number of a part, once.

    There are as many as processors at most, and none where there is one processor alone. They say
    nothing and end by themselves, at the latest with this process.
    """
    most = count_processors()
    if HELPERS or most < 2 or ALONE in os.environ or fcntl is None or not sys.executable:
        return
    atexit.register(end_helpers)
    for part in parts[:most]:
        with suppress(OSError):
            helper = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(part)],  # nothing of the user's folder
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, ALONE: "1"},
            )
            HELPERS.append(helper)


def end_helpers() -> None:
    """End the processes that this one has begun."""
    for helper in HELPERS:
        if helper.poll() is None:
            helper.terminate()
        helper.wait()
    HELPERS.clear()
