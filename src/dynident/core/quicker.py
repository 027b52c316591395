"""Parts of Numba that take much of its time, so that they take less.

What they give is the same: functions that stand in the place of Numba's own.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite.binding import ffi
from numba.core import base, ir
from numba.core.targetconfig import TargetConfig


def are_equal_options(self: TargetConfig, other: object) -> Any:
    """Whether two sets of options are: what Numba asks at every operator, a tenth of its time."""
    if not isinstance(other, TargetConfig):
        return NotImplemented
    one, two = ({**find_defaults(each.__class__), **each._values} for each in (self, other))
    return self is other or one == two


@cache
def find_defaults(kind: Any) -> dict[str, Any]:
    """Options as they are unless given."""
    return {name: option.default for name, option in kind.options.items()}


def list_variables(self: Any, value: Any) -> list[Any]:
    """The variables of a part of an instruction; most parts have none: names, places."""
    kind = find_part(type(value))  # type: ignore[arg-type]
    if kind is None:
        return []
    if kind is ir.Var:
        return [value]
    if kind is ir.Inst:
        return value.list_vars()  # type: ignore[no-any-return]
    parts = value.values() if kind is dict else value
    return [variable for part in parts for variable in list_variables(self, part)]


@cache
def find_part(kind: type) -> type | None:
    """What a part of an instruction is, None where it has no variables."""
    known = (ir.Var, ir.Inst, list, tuple, dict)
    return next((each for each in known if issubclass(kind, each)), None)


def leave_llvm_untimed() -> None:
    """Take Numba's clocks off the calls of LLVM, a hundred thousand; nobody reads them."""
    for pair in [*ffi.lib._lock._cblist]:
        if pair[0].__module__ == base.__name__:
            ffi.unregister_lock_callback(*pair)


TargetConfig.__eq__ = are_equal_options  # type: ignore[method-assign]
ir.Inst._rec_list_vars = list_variables  # type: ignore[method-assign]
leave_llvm_untimed()
