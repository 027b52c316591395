"""State files: what a run that was stopped goes on from.

Arrays and one text, without anything that could run, and with the robot, its parameters and a
fingerprint of all that the state has to fit.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.errors import InputError
from dynident.core.files import DAMAGE

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class StateOrigin:
    """What a state is of."""

    robot: str
    parameters: tuple[str, ...]
    fingerprint: str
    """Of whatever else it has to fit."""


@dataclass(frozen=True)
class KeptState:
    """A state file, read."""

    path: Path
    about: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]

    def require(self, origin: StateOrigin, options: str) -> None:
        """Refuse a state of another robot, or of other options."""
        names = list(origin.parameters)
        if self.about["robot"] != origin.robot or self.about["parameters"] != names:
            raise InputError(
                f"{self.path}: is the state of {self.about['robot']} with "
                f"{len(self.about['parameters'])} parameters, not of {origin.robot} with "
                f"{len(names)} of its own"
            )
        if self.about["fingerprint"] != origin.fingerprint:
            raise InputError(
                f"{self.path}: was written under other options ({options}); give the same, or "
                "another file"
            )

    @property
    def damaged(self) -> InputError:
        """The refusal of one whose arrays do not fit."""
        return InputError(f"{self.path}: is damaged; restart without it")


def take_fingerprint(parts: Iterable[str | bytes | npt.NDArray[Any]]) -> str:
    """Of texts, bytes and arrays, in their order."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(repr((part.shape, part.dtype.str)).encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.hexdigest()


def hash_file(path: Path) -> bytes:
    """SHA-256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def pack_state_file(
    schema: str, origin: StateOrigin, about: Mapping[str, object], arrays: Arrays
) -> bytes:
    """A state as a file."""
    document = {
        "schema": schema,
        "robot": origin.robot,
        "parameters": list(origin.parameters),
        "fingerprint": origin.fingerprint,
        **about,
    }
    document["digest"] = take_digest(document, arrays)
    file = io.BytesIO()
    named: dict[str, Any] = {"about": np.array(json.dumps(document)), **arrays}
    np.savez(file, **named)
    return file.getvalue()


def take_digest(document: Mapping[str, object], arrays: Arrays) -> str:
    """Of all that a state file holds: by it one is known that was cut, mixed or edited."""
    told = json.dumps({key: value for key, value in document.items() if key != "digest"})
    return take_fingerprint(
        [told, *(part for name in sorted(arrays) for part in (name, arrays[name]))]
    )


def read_state_file(path: Path, schema: str, own: Sequence[str], what: str) -> KeptState | None:
    """A state file; None where there is none yet.

    `own` are the keys that it has beside its origin; `what` writes such files, in words.
    """
    if not path.exists():
        return None
    foreign = InputError(f"{path}: is not a state file of {what}")
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")[()]))
        if about["schema"] != schema:
            raise ValueError
        if not {"robot", "parameters", "fingerprint", "digest", *own} <= set(about):
            raise ValueError
        kept = KeptState(path, about, arrays)
        digest = take_digest(about, arrays)
    except DAMAGE as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from error
        raise foreign from error
    if digest != about["digest"]:
        raise kept.damaged
    return kept
