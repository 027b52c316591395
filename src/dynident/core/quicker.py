"""Parts of Numba that take much of its time, so that they take less.

What they give is the same: functions that stand in the place of Numba's own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from llvmlite.binding import ffi
from numba.core import base, cpu, ir, types
from numba.core.targetconfig import TargetConfig
from numba.core.types.functions import BaseFunction
from numba.core.typing import context, npydecl


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


PLAIN = (types.Number, types.Boolean, types.Literal)
"""Types of arguments of whose operators the types are looked for once."""
SCALAR = (operator.add.__module__, math.__name__)
"""Modules of functions that have the same type for the same plain arguments at every call."""
CALLS: dict[tuple[Any, tuple[Any, ...]], tuple[Any, Any]] = {}
"""Signatures of such calls, with what implements them."""


def find_call_type(self: Any, typing: Any, args: tuple[Any, ...], kws: Any) -> Any:
    """The signature of a call: of numbers, the one that was found before."""
    module = getattr(self.typing_key, "__module__", None)
    if kws or module not in SCALAR or not all(isinstance(each, PLAIN) for each in args):
        return find_type_of_call(self, typing, args, kws)
    known = CALLS.get((self, args))
    if known is None:
        found = find_type_of_call(self, typing, args, kws)
        CALLS[self, args] = known = found, self._impl_keys[found.args]
    self._impl_keys[known[0].args] = known[1]
    return known[0]


@cache
def find_kept_loop(ufunc: Any, given: tuple[Any, ...]) -> Any:
    """What `find_loop` found before."""
    return find_loop_of_types(ufunc, given)


def find_loop(ufunc: Any, given: Any) -> Any:
    """The loop of a universal function for such arguments: asked at every operator."""
    return find_kept_loop(ufunc, tuple(given))


def run_once(method: Callable[[Any], None]) -> Callable[[Any], None]:
    """Have a method run once an object: Numba's own gather what it can compile, at every call."""
    ran: set[Any] = set()

    @wraps(method)
    def once(self: Any) -> None:
        if self not in ran:
            method(self)
            ran.add(self)

    return once


def leave_llvm_untimed() -> None:
    """Take Numba's clocks off the calls of LLVM, a hundred thousand; nobody reads them."""
    for pair in [*ffi.lib._lock._cblist]:
        if pair[0].__module__ == base.__name__:
            ffi.unregister_lock_callback(*pair)


FUNCTION: Any = BaseFunction
UFUNCS: Any = npydecl
find_type_of_call, find_loop_of_types = FUNCTION.get_call_type, UFUNCS.ufunc_find_matching_loop
FUNCTION.get_call_type, UFUNCS.ufunc_find_matching_loop = find_call_type, find_loop
CONTEXTS: tuple[Any, ...] = (context.Context, cpu.CPUContext)
for kind in CONTEXTS:
    kind.load_additional_registries = run_once(kind.load_additional_registries)
TargetConfig.__eq__ = are_equal_options  # type: ignore[method-assign]
ir.Inst._rec_list_vars = list_variables  # type: ignore[method-assign]
leave_llvm_untimed()
