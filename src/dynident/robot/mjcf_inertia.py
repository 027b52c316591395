"""Inertial parameters of an MJCF's bodies, stated or of their geoms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import from_com, to_com
from dynident.robot.mjcf_document import Attributes, Compiler, MjcfDocument, MjcfElement
from dynident.robot.model import HUGE, TINY
from dynident.robot.rotations import turn_z_to

SPANNED = ("capsule", "cylinder", "ellipsoid", "box")
"""Shapes that may be given by their two ends."""
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
FLAT = ("plane", "hfield")
"""Shapes of the world alone."""
DENSITY = 1000.0
"""Of water, and of geoms that say nothing [kg/m^3]."""
NONE = 1e-14
"""Geoms that weigh less do not count [kg]."""


def read_body_inertia(
    document: MjcfDocument,
    name: str,
    inertial: Attributes | None,
    geoms: Sequence[tuple[Attributes, pin.SE3]],
    hidden: MjcfElement | None = None,
) -> Array:
    """The 10-vector of a body about its frame, as the compiler's settings have it.

    Geoms come with the placement of the frames around each; `hidden` may hold some unread.
    """
    compiler = document.compiler
    of_geoms = compiler.from_geoms == "true" or (inertial is None and compiler.from_geoms == "auto")
    phi = np.zeros(10)
    if of_geoms:
        if hidden is not None:
            raise InputError(
                f"{hidden.place}: body {name!r} has the inertia of its geoms, but not all of them "
                "are spelled out; give the body an <inertial>"
            )
        parts = [_read_geom_inertia(document, name, *geom) for geom in geoms]
        phi = np.sum([part for part in parts if part[0] > NONE], axis=0, initial=0.0) + phi
    if inertial is not None and phi[0] == 0.0:
        phi = read_stated_inertia(document, inertial)
    return bound_inertia(phi, compiler)


def read_stated_inertia(document: MjcfDocument, own: Attributes) -> Array:
    """The 10-vector of an ``<inertial>`` in its body's frame."""
    place = own.element.place
    for key in ("pos", "mass"):
        if key not in own:
            raise InputError(f"{place}: <inertial> has no {key}")
    mass = own.number("mass")
    if mass < 0.0 or 0.0 < mass < TINY:
        raise InputError(f"{own.shown('mass')} is not a mass; write 0 for none")
    placement = document.placement(own)
    rotation, com = placement.rotation, placement.translation
    if "fullinertia" not in own:
        moments = np.diag(own.vector("diaginertia", (0.0, 0.0, 0.0)))
        return from_com(mass, com, rotation @ moments @ rotation.T)
    other = [key for key in ("diaginertia", "axisangle", "xyaxes", "zaxis", "euler") if key in own]
    if other:
        raise InputError(f"{place}: <inertial> has both fullinertia and {other[0]}")
    xx, yy, zz, xy, xz, yz = own.numbers("fullinertia", 6)
    return from_com(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def bound_inertia(phi: Array, compiler: Compiler) -> Array:
    """A body with the compiler's least mass and moments, balanced where it is told so."""
    if not (compiler.least_mass > 0.0 or compiler.least_inertia > 0.0 or compiler.balance):
        return phi
    mass, com, inertia = to_com(phi)
    moments, axes = np.linalg.eigh(inertia)
    moments = np.maximum(moments, compiler.least_inertia)
    if compiler.balance and moments[0] + moments[1] < moments[2]:
        moments = np.full(3, moments.mean())
    return from_com(max(mass, compiler.least_mass), com, axes @ np.diag(moments) @ axes.T)


def _read_geom_inertia(
    document: MjcfDocument, body: str, own: Attributes, around: pin.SE3
) -> Array:
    """The 10-vector of a geom in its body's frame."""
    low, high = document.compiler.groups
    if not low <= own.number("group") <= high:
        return np.zeros(10)
    shape = own.text("type", "sphere")
    stated = own.number("mass", -1.0)
    density = own.number("density", DENSITY)
    if shape in FLAT or stated == 0.0 or (stated < 0.0 and density == 0.0):
        return np.zeros(10)
    if "mesh" in own or shape not in SIZES or own.flag("shellinertia", False):
        what = "a shell" if shape in SIZES and "mesh" not in own else f"of type {shape!r}"
        if "mesh" in own:
            what = f"the mesh {own.text('mesh')!r}"
        raise InputError(
            f"{own.element.place}: body {body!r} has the inertia of its geoms, of which one is "
            f"{what}; give the body an <inertial>"
        )
    size, placement = _read_geom_extent(document, own, shape)
    volume, moments = _compute_solid_moments(shape, size)
    mass = stated if stated >= 0.0 else density * volume
    placement = around * placement
    turned = placement.rotation
    return from_com(mass, placement.translation, turned @ np.diag(mass * moments) @ turned.T)


def _read_geom_extent(document: MjcfDocument, own: Attributes, shape: str) -> tuple[Array, pin.SE3]:
    """Half sizes and placement of a geom."""
    if "fromto" not in own:
        least = SIZES[shape]
        size = np.array(own.numbers("size", 3, least) if "size" in own else np.zeros(3))[:least]
        _refuse_flat(own, size)
        return size, document.placement(own)
    if shape not in SPANNED:
        raise InputError(f"{own.shown('fromto')}: a {shape} has no two ends")
    ends = np.reshape(own.numbers("fromto", 6), (2, 3))
    along = ends[0] - ends[1]
    length = float(np.linalg.norm(along))
    radius = own.numbers("size", 3, 1)[0] if "size" in own else 0.0
    sides = 1 if shape in ("capsule", "cylinder") else 2
    size = np.array([radius] * sides + [0.5 * length])
    _refuse_flat(own, size)
    return size, pin.SE3(turn_z_to(along / length), ends.mean(axis=0))


def _refuse_flat(own: Attributes, size: Array) -> None:
    if not np.all(size > 1.0 / HUGE):
        raise InputError(f"{own.element.place}: {own.element.name} has no positive size")


def _compute_solid_moments(shape: str, size: Array) -> tuple[float, Array]:
    """Volume, and moments of inertia about the middle for a mass of 1."""
    if shape == "sphere":
        size = np.repeat(size, 3)
    if shape in ("sphere", "ellipsoid", "box"):
        square = size**2
        box = shape == "box"
        volume = (8.0 if box else 4.0 / 3.0 * np.pi) * float(np.prod(size))
        return volume, (square.sum() - square) / (3.0 if box else 5.0)
    radius, half = size
    tube = 2.0 * np.pi * radius**2 * half
    across = radius**2 / 4.0 + half**2 / 3.0
    round_tube = np.array([across, across, radius**2 / 2.0])
    if shape == "cylinder":
        return tube, round_tube
    ball = 4.0 / 3.0 * np.pi * radius**3
    # each half of the ball has its centre of mass 3/8 of the radius beyond its flat side
    across = 0.4 * radius**2 + half**2 + 0.75 * radius * half
    caps = np.array([across, across, 0.4 * radius**2])
    volume = tube + ball
    return volume, (tube * round_tube + ball * caps) / volume
