"""How functions are compiled (Numba)."""

from __future__ import annotations

from typing import Any

from dynident.core.compiled import make_compiler

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
}
"""Compiled once and cached; products and sums may fuse, nothing is reordered."""
NO_COUNTS: dict[str, Any] = {**OPTIONS, "_nrt": False}

jit = make_compiler(**OPTIONS, wide=True)
"""For functions that Python calls: they may allocate."""

entry = make_compiler(**NO_COUNTS)
"""For functions that Python calls, on short loops, and that allocate nothing: counting references
to the arrays that they are given would cost more than what most of them do."""

ALONE: dict[str, Any] = {**NO_COUNTS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = make_compiler(**ALONE)
"""For functions that only compiled functions call, on short loops: over joints, bodies, axes."""

wide = make_compiler(**ALONE, wide=True)
"""Likewise, on long ones: over the columns of sensitivities."""

spliced = make_compiler(**ALONE, forceinline=True)
"""For short steps of one caller, whose body becomes part of it."""

written = make_compiler(**ALONE, inline="always")
"""For steps of one caller, in its file: they stand in its code before anything is compiled, and are
not compiled by themselves."""
