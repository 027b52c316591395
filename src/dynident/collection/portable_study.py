"""A study with its model as text that a process reads where the robot's files are not."""

from __future__ import annotations

import json
from dataclasses import replace

from dynident.dynamics.idim import Idim
from dynident.dynamics.plain import make_model, put_model


def pack_model(study: str, model: Idim) -> str:
    """The JSON of a study with its model."""
    bare = model.of(replace(model.robot, source=None))
    return json.dumps({"study": study, "model": put_model(bare)})


def unpack_model(text: str) -> tuple[str, Idim]:
    """The JSON of a study, and its model."""
    told = json.loads(text)
    return told["study"], make_model(told["model"])
