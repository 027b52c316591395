"""Constraints between links: equal parts, left and right, and payloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.conic.cones import Cone, SemidefiniteCone, ZeroCone
from dynident.consistency.constraints.checks import (
    Names,
    check_flag,
    check_name,
    check_name_list,
    check_number,
    check_numbers,
    check_word,
    set_frozen_fields,
)
from dynident.consistency.constraints.consistency import FLOOR, scale_pseudo_inertia
from dynident.consistency.space import BODY_UNITS, ParameterSpace, list_body_indices
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import (
    INERTIAL,
    PSEUDO_INERTIA_BASIS,
    from_com,
    to_inertia_matrix,
    to_inertial_parameters,
    to_pseudo_inertia,
)
from dynident.core.schema import make_choice_validator
from dynident.robot.model import Robot

PLANES = {"xy": 2, "xz": 1, "yz": 0}
"""Planes of symmetry by the axis that they mirror."""
ROUNDED = 1e-6
"""Second moment of a payload's mass, in units of its inertia, that is rounding of its file."""


@dataclass(frozen=True)
class EqualLinks:
    """Links that are the same part, with the same drive.

    Their inertial parameters in their own joint frames are equal, and their drives'.

    Attributes
    ----------
    links : tuple of str, or "all"
        At least two.
    drives : bool
        Whether rotor inertia and friction are equal as well.
    """

    links: Names
    drives: bool = True

    def __post_init__(self) -> None:
        links = check_name_list("equal", "links", self.links)
        if links != "all" and (isinstance(links, str) or len(links) < 2):
            raise InputError("constraint 'equal' needs at least two links, or \"all\"")
        set_frozen_fields(self, links=links, drives=check_flag("equal", "drives", self.drives))

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """Eleven or so rows a pair."""
        first, *others = list_body_indices(space, self.links)
        if not others:
            raise InputError("constraint 'equal' needs at least two links; the robot has one")
        return [
            cone
            for other in others
            for cone in equate_links(space, first, other, np.eye(4), "equal", self.drives)
        ]


@dataclass(frozen=True)
class Symmetric:
    """A right link that mirrors a left one, with the same drive.

    At the zero configuration the one is the other's image in a plane of the base frame.

    Attributes
    ----------
    left, right : str
    plane : {"xz", "xy", "yz"}
        Through the base frame's origin.
    drives : bool
        Whether rotor inertia and friction are equal as well.
    """

    left: str
    right: str
    plane: Annotated[str, make_choice_validator(PLANES)] = "xz"
    drives: bool = True

    def __post_init__(self) -> None:
        left, right = tuple(check_name_list("symmetric", "left and right", (self.left, self.right)))
        plane = check_word("symmetric", "plane", self.plane, PLANES)
        drives = check_flag("symmetric", "drives", self.drives)
        set_frozen_fields(self, left=left, right=right, plane=plane, drives=drives)

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """Eleven or so rows."""
        left, right = space.link(self.left), space.link(self.right)
        mirror = np.eye(4)
        mirror[PLANES[self.plane], PLANES[self.plane]] = -1.0
        world = place_body_frames(space.idim.robot)
        # points of the right link are mirror images of points of the left one
        map_ = np.linalg.inv(world[right]) @ mirror @ world[left]
        return equate_links(space, left, right, map_, "symmetric", self.drives)


@dataclass(frozen=True)
class Payload:
    """A link that carries a payload rigidly: known, or to be found.

    With its mass given, the link without this payload has to be consistent. Without,
    the payload is what the link has beyond the robot file's inertials, and that has to
    be consistent.

    Attributes
    ----------
    link : str
    mass : float, optional
        [kg]
    com : tuple of 3 floats
        In the link's joint frame [m].
    inertia : tuple of 6 floats
        xx, xy, yy, xz, yz, zz about its centre of mass [kg m^2].
    """

    link: str
    mass: Annotated[float, Field(gt=0.0)] | None = None
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: tuple[float, float, float, float, float, float] = (0.0,) * 6

    def __post_init__(self) -> None:
        link = check_name("payload", "link", self.link)
        com = check_numbers("payload", "com", self.com)
        inertia = check_numbers("payload", "inertia", self.inertia, count=6)
        mass = self.mass
        if mass is not None:
            mass = check_number("payload", "mass", mass, positive=True)
            check_inertia(inertia)
        elif any(com) or any(inertia):
            raise InputError("constraint 'payload' has com or inertia but no mass; give its mass")
        set_frozen_fields(self, link=link, mass=mass, com=com, inertia=inertia)

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One matrix."""
        k = space.link(self.link)
        if self.mass is None:
            known = space.idim.robot.nominal[k]
            if known[0] <= 0.0:
                raise InputError(
                    f"constraint 'payload': the robot file has no inertials of {self.link}, so "
                    "that an unknown payload cannot be separated from it; give its mass"
                )
            title = f"payload of {self.link}"
        else:
            known = from_com(self.mass, self.com, to_inertia_matrix((0.0,) * 4 + self.inertia))
            title = f"{self.link} without its payload"
        bodies, payload = to_pseudo_inertia(space.body(k).T), to_pseudo_inertia(known)
        floor = scale_pseudo_inertia(payload, space.mass(k)) + FLOOR * np.eye(4)
        return [SemidefiniteCone(title, scale_pseudo_inertia(bodies, space.mass(k)), floor)]


def check_inertia(inertia: tuple[float, ...]) -> None:
    """Refuse an inertia about the centre of mass that no mass has.

    Its second moments ``1/2 tr(I) 1 - I`` (ardiani2024, eq. 17) have to be positive
    semidefinite: moments that are not negative, none larger than the sum of the others.
    """
    matrix = to_inertia_matrix((0.0,) * 4 + inertia)
    moments = 0.5 * np.trace(matrix) * np.eye(3) - matrix
    if np.linalg.eigvalsh(moments)[0] < -ROUNDED * np.max(np.abs(matrix)):
        raise InputError(
            "constraint 'payload': no body has its inertia; each principal moment has to be "
            "at least 0 and at most the sum of the others"
        )


def equate_links(
    space: ParameterSpace, left: int, right: int, map_: Array, word: str, drives: bool
) -> list[Cone]:
    """Rows for ``J_right = map J_left map^T``, and equal drives."""
    images = [to_inertial_parameters(map_ @ matrix @ map_.T) for matrix in PSEUDO_INERTIA_BASIS]
    rows = space.body(right) - np.column_stack(images) @ space.body(left)
    # in the scaled units of the left body, of order one like all other constraints
    rows = rows / (space.mass(left) * BODY_UNITS)[:, None]
    pair = f"{word} {space.links[left]} {space.links[right]}"
    names = tuple(f"{pair}: {symbol}" for symbol in INERTIAL)
    cones: list[Cone] = [ZeroCone(names, rows, np.zeros(10))]
    if drives:
        idim = space.idim
        numbers = [idim.robot.numbers[k] for k in (left, right)]
        own = [
            {p.symbol: k for k, p in enumerate(idim.parameters)
             if k >= idim.inertial and p.number == number}
            for number in numbers
        ]  # fmt: skip
        shared = [s for s in own[0] if s in own[1] and s != "off"]
        if shared:
            G = np.zeros((len(shared), len(space.unit)))
            for i, symbol in enumerate(shared):
                G[i, own[0][symbol]] = 1.0
                G[i, own[1][symbol]] = -space.unit[own[1][symbol]] / space.unit[own[0][symbol]]
            cones.append(ZeroCone(tuple(f"{pair}: {s}" for s in shared), G, np.zeros(len(shared))))
    return cones


def place_body_frames(robot: Robot) -> list[Array]:
    """Homogeneous placements of the bodies' frames in the base frame at q = 0."""
    found = {0: np.eye(4)}
    for k, joint in enumerate(robot.joints, start=1):
        own = np.eye(4)
        own[:3, :3], own[:3, 3] = joint.rotation, joint.translation
        found[k] = found[joint.parent] @ own
    return [found[number] for number in robot.numbers]
