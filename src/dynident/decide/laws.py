"""Laws of friction that a drive may have, their shapes on a grid that its speeds span."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import Gear
from dynident.friction import DEFAULT_FRICTION
from dynident.friction.models import FRICTIONS
from dynident.friction.names import build_friction

STRIBECK_AT = (0.01, 0.03, 0.1, 0.3)
"""Stribeck speeds, as shares of the largest speed of the drive."""
RISE_AT = (0.01, 0.03, 0.1)
FALL_AT = (0.03, 0.1, 0.3)
"""Where tanh-sech rises, and where its bump falls, likewise."""
COULOMB, LOAD, MEMORY = "fc", "load", "dahl-spectrum"
FURTHER = {1: LOAD, 2: MEMORY}
"""Parts of a menu that any law may have beside it: load, and bristles of many lengths."""
PLAIN = range(4)
"""Parts of a menu without shapes."""


@dataclass(frozen=True)
class CandidateLaw:
    """A law of friction among the parts of a wide model."""

    speed: str
    """What the speed makes of it, as a study has it."""
    own: tuple[int, ...]
    """Which parts of the wide model that has."""
    further: tuple[int, ...] = ()
    """Which of `FURTHER` it has beside."""

    @property
    def name(self) -> str:
        """As a study has it."""
        return " + ".join([self.speed, *(FURTHER[part] for part in self.further)])

    def __contains__(self, part: int) -> bool:
        """Whether it has the columns of a part; of the first, Coulomb friction is meant."""
        return part in self.own or part in self.further

    def extend(self, part: int) -> CandidateLaw:
        """The same with one of `FURTHER` beside it."""
        return replace(self, further=tuple(sorted({*self.further, part})))

    def beside(self, other: CandidateLaw) -> CandidateLaw:
        """The same with what another has beside it."""
        return replace(self, further=other.further)

    def without(self, parts: Collection[int]) -> CandidateLaw:
        """The same without some parts; the usual law, without what a sum with that is of."""
        further = tuple(part for part in self.further if part not in parts)
        if len(self.own) > 1 and self.own[-1] in parts:
            return CandidateLaw(DEFAULT_FRICTION, self.own[:1], further)
        return replace(self, further=further)


@dataclass(frozen=True)
class LawMenu:
    """All laws that one joint may have, and the wide model of their parts.

    The first tier is the usual law; laws of the speed with more and more parameters follow.
    """

    parts: tuple[str, ...]
    tiers: tuple[tuple[CandidateLaw, ...], ...]

    @property
    def usual(self) -> CandidateLaw:
        """The simplest."""
        return self.tiers[0][0]

    @property
    def plain(self) -> tuple[tuple[CandidateLaw, ...], ...]:
        """Tiers of laws without shapes, but for the first."""
        return (self.tiers[1][:1],)

    @property
    def wide(self) -> str:
        """The sum of all parts."""
        return " + ".join(part for part in self.parts if part)


def build_menu(fastest: float, loads: bool = True) -> LawMenu:
    """The laws of a drive whose largest speed this is [rad/s or m/s], with or without its load."""
    parts = [DEFAULT_FRICTION, LOAD if loads else "", MEMORY, "cube-root"]
    one, two = [CandidateLaw("cube-root", (0, 3))], []
    for share in STRIBECK_AT:
        name = name_shaped("stribeck", vs=share * fastest)
        one.append(CandidateLaw(name, (0, len(parts))))
        parts.append(name)
    for rise in RISE_AT:
        for fall in FALL_AT:
            name = name_shaped("tanh-sech", w3=1.0 / (fall * fastest), w4=1.0 / (rise * fastest))
            two.append(CandidateLaw(name, (len(parts),)))
            parts.append(name)
    return LawMenu(tuple(parts), ((CandidateLaw(DEFAULT_FRICTION, (0,)),), tuple(one), tuple(two)))


def drop_load(name: str) -> str:
    """The name of a law without friction that grows with the load beside it."""
    return name.removesuffix(f" + {LOAD}")


def simplify_friction(name: str) -> str:
    """A friction that is linear in all parameters, the same where it is."""
    name = drop_load(name)
    models = build_friction(name)
    free = any(shape.lower < shape.upper for model in models for shape in model.shape)
    loaded = any("load" in model.needs for model in models)
    return DEFAULT_FRICTION if free or loaded else name


def name_shaped(model: str, **shapes: float) -> str:
    """A model at known shapes, which are kept within its bounds."""
    bounds = {shape.symbol: shape for shape in FRICTIONS[model].shape}
    values = {
        symbol: min(max(value, bounds[symbol].lower), bounds[symbol].upper)
        for symbol, value in shapes.items()
    }
    told = ", ".join(f"{symbol}={float(f'{value:.3g}'):g}" for symbol, value in values.items())
    return f"{model}({told})"


@dataclass(frozen=True)
class Column:
    """A column of a wide model that laws may have."""

    place: int
    """Among the standard parameters of the wide model."""
    part: int
    """Which of the parts has it."""
    positive: bool
    """Whether it is not below zero."""
    spare: bool
    """Whether it is left out where it would be, and the law stays one."""


def list_columns(wide: Idim, number: int, menu: LawMenu) -> tuple[Column, ...]:
    """The columns of a joint's drives that its laws differ in: Coulomb friction, and the parts'."""
    names = {name: k for k, name in enumerate(wide.names)}
    gears = [gear for gear in wide.gears if gear.drives and gear.number == number]
    found: list[Column] = []
    there = (part for part, name in enumerate(menu.parts) if name)
    for part, model in zip(there, build_friction(menu.wide), strict=True):
        for each in model.parameters:
            if part == 0 and each.symbol != COULOMB:
                continue
            places = find_places(names, gears, each.symbol)
            spare = menu.parts[part] == MEMORY
            found += [Column(place, part, each.positive, spare) for place in places]
    return tuple(found)


def find_places(names: dict[str, int], gears: Sequence[Gear], symbol: str) -> list[int]:
    """Where a parameter of some gears stands."""
    labels = [f"{gear.symbol(symbol)}{gear.number}" for gear in gears]
    return [names[label] for label in labels if label in names]
