"""Compiled functions that are called by their address.

Who calls one is compiled without it, and it is compiled when somebody asks for its address.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir


def generate_call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Code of an intrinsic whose first argument is the address of a callback for the others."""
    parts = [context.get_value_type(each) for each in signature.args[1:]]
    kind = ir.FunctionType(context.get_value_type(signature.return_type), parts)
    found = builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])
    return context.get_dummy_value() if isinstance(kind.return_type, ir.VoidType) else found
