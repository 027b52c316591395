"""Names of friction: models, sums of models, and shapes that are known.

``cube-root``, ``cube-root + load``, ``tanh-sech(w3=2.5, w4=30) + load``; one for all joints, or
one a joint with commas between them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dynident.core.errors import InputError, refuse_unknown
from dynident.friction.elements import number_symbols
from dynident.friction.memoryless import OFFSET, USUAL
from dynident.friction.model import FrictionModel, ShapeTerm
from dynident.friction.models import FRICTIONS

BETWEEN_JOINTS = re.compile(r",(?![^(]*\))")
BETWEEN_MODELS = re.compile(r"\+(?![^(]*\))")
PART = re.compile(r"(?P<name>[^()+]+?)\s*(?:\((?P<shapes>[^()]*)\))?")


def split_friction_names(friction: str) -> list[str]:
    """The friction of all joints, or that of each."""
    return [name.strip() for name in BETWEEN_JOINTS.split(friction)]


def build_friction(name: str) -> tuple[FrictionModel, ...]:
    """The models whose sum a name is; refuses what is not known, or does not have such a shape.

    The first is as it is. Each further one adds what it has beside viscous and Coulomb friction and
    an offset; symbols that are taken end in a letter there.
    """
    found: list[FrictionModel] = []
    for text in BETWEEN_MODELS.split(name):
        part = PART.fullmatch(text.strip())
        if part is None:
            raise InputError(
                f"friction {name!r} is not a sum of models; write them as 'cube-root + load', "
                "shapes that are known as 'stribeck(vs=0.1)'"
            )
        own = part["name"]
        refuse_unknown(own, FRICTIONS, f"friction {own!r} is not known")
        model = FRICTIONS[own]
        if part["shapes"] is not None:
            model = fix_shapes(own, model, part["shapes"])
        found.append(add_model(found, model))
    return tuple(found)


def add_model(before: list[FrictionModel], model: FrictionModel) -> FrictionModel:
    """What a model adds to others of a sum."""
    if not before:
        return model
    rest = tuple(each for each in model.parameters if each not in USUAL)
    own, number = replace(model, parameters=rest), 0
    added, taken = own, {symbol for other in before for symbol in list_symbols(other)}
    while taken & list_symbols(added):
        number += 1
        added = number_symbols(own, number)
    return added


def list_symbols(model: FrictionModel) -> set[str]:
    """Of its parameters and shapes."""
    return {each.symbol for each in model.parameters} | {each.symbol for each in model.shape}


def fix_shapes(name: str, model: FrictionModel, text: str) -> FrictionModel:
    """A model some of whose shapes are known, ``w3=2.5, w4=30``; ``off=0`` is without an offset."""
    values: dict[str, float] = {}
    symbols = [shape.symbol for shape in model.shape]
    symbols += [OFFSET.symbol] if OFFSET in model.parameters else []
    for each in text.split(","):
        symbol, _, number = (part.strip() for part in each.partition("="))
        if symbol not in symbols:
            has = f"it has {', '.join(symbols)}" if symbols else "it has none"
            raise InputError(f"friction {name}: no shape {symbol!r}; {has}")
        try:
            values[symbol] = float(number)
        except ValueError:
            raise InputError(f"friction {name}: {symbol} is {number!r}, not a number") from None
    if values.get(OFFSET.symbol, 0.0) != 0.0:
        raise InputError(f"friction {name}: {OFFSET.symbol} is known only where it is 0")
    left = tuple(p for p in model.parameters if p != OFFSET or OFFSET.symbol not in values)
    shape = tuple(fix_shape(name, shape, values) for shape in model.shape)
    return replace(model, parameters=left, shape=shape)


def fix_shape(name: str, shape: ShapeTerm, values: Mapping[str, float]) -> ShapeTerm:
    """A shape at its known value, where it has one."""
    if shape.symbol not in values:
        return shape
    value = values[shape.symbol]
    if not shape.lower <= value <= shape.upper:
        raise InputError(
            f"friction {name}: {shape.symbol} is {value:g} but has to be from {shape.lower:g} to "
            f"{shape.upper:g} {shape.unit}"
        )
    return shape.within(value, value)
