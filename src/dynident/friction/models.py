"""Friction models by name. A new model is one definition and a line in its table."""

from __future__ import annotations

from dynident.friction.bristles import BRISTLES
from dynident.friction.memoryless import MEMORYLESS
from dynident.friction.model import FrictionModel

FRICTIONS: dict[str, FrictionModel] = {**MEMORYLESS, **BRISTLES}
"""All of them."""
