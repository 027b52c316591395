"""How concentrated the mass of a link may be.

A positive definite pseudo-inertia admits a body of 1 kg within a tenth of a millimetre. With the
second central moments of its mass, ``Sigma_c = integral of (x - c)(x - c)^T dm``, a link is kept
where ``Sigma_c >= m r^2 1``: in no direction is the radius of gyration below r. By Schur's
complement that is ``J - m r^2 diag(1, 1, 1, 0) >= 0``, as linear in the inertial parameters as
consistency itself, which is r = 0 (ardiani2024, eq. 17 and 18).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.consistency.constraints.convex import measure_solid_moments
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import measure_least_gyration
from dynident.robot.geometry import load_link_points
from dynident.robot.model import Robot

SHARE = 0.5
"""Of the radius of gyration that the robot's file shows of a link, which it has to have at least.
Links drawn in CAD, and solids that fill their hulls, are within a third of each other; a motor
inside of a shell is where the half comes from."""
SLENDER = 30.0
"""Length over least radius of gyration of a beam as thin as a ninth of its length: a file's
inertial with less is a needle, and not believed."""
WIDE = np.sqrt(12.0)
"""Of a cube as wide as the link is long, beyond which a file's inertial is not believed either."""


INERTIAL, GEOMETRY, LENGTH = "its inertial", "its geometry", "a beam of its length"
SHOWN = (INERTIAL, GEOMETRY, LENGTH)
"""By what in the robot's file."""


@dataclass(frozen=True)
class Gyration:
    """The least radius of gyration of a link."""

    link: str
    radius: float
    """[m]; 0 asks for a positive definite pseudo-inertia and no more."""
    source: str
    """What says so."""
    lowered: float | None = None
    """What it would have been, where the log has the mass more concentrated [m]."""
    rise: float | None = None
    """By how much chi-squared would rise with that."""


def list_gyrations(robot: Robot, given: tuple[float, ...] | None = None) -> tuple[Gyration, ...]:
    """The least radius of gyration of each link, as given [m], or as the robot's file shows it.

    `SHARE` of the smallest principal radius of gyration of the file's inertial, or of a solid
    that fills the hull of the link's geometry where the file has no inertial of it. Where these
    have less than a beam along the link, more than a cube of its length, or are missing, the beam
    or the cube.
    """
    if given is not None:
        return tuple(
            Gyration(link, radius, "given") for link, radius in zip(robot.links, given, strict=True)
        )
    found = []
    for k, (link, length) in enumerate(zip(robot.links, measure_link_lengths(robot), strict=True)):
        beam, cube = float(length) / SLENDER, float(length) / WIDE
        seen, source = measure_least_gyration(robot.nominal[k]), INERTIAL
        if seen is None:
            seen, source = measure_geometric_radius(robot, link), GEOMETRY
        if seen is None or not beam <= seen <= cube:
            seen = beam if seen is None else min(max(seen, beam), cube)
            source = LENGTH
        found.append(Gyration(link, SHARE * seen, source))
    return tuple(found)


def measure_link_lengths(robot: Robot) -> Array:
    """From each link's joint to the farthest one that it carries, shape (bodies,) [m].

    At least the mean of the links that have a length, since a last link and those of a wrist whose
    axes meet have none.
    """
    lengths = np.zeros(len(robot.links))
    first = int(robot.floating)
    for joint in robot.joints:
        body = joint.parent - 1 + first
        if body >= 0:
            lengths[body] = max(lengths[body], float(np.linalg.norm(joint.translation)))
    long = lengths[lengths > 0.0]
    return np.maximum(lengths, float(np.mean(long)) if len(long) else 0.0)


def measure_geometric_radius(robot: Robot, link: str) -> float | None:
    """Of a solid that fills the hull of a link's geometry; None where there is none [m]."""
    try:
        moments = measure_solid_moments(load_link_points(robot, link))
    except InputError:  # no URDF, no geometry, meshes that are elsewhere: its length is left
        return None
    return float(np.sqrt(np.linalg.eigvalsh(moments)[0]))


def describe_gyrations(gyrations: Sequence[Gyration]) -> list[str]:
    """Where least radii of gyration come from, and what the log has lowered."""
    sources: dict[str, list[str]] = {}
    for each in gyrations:
        if each.radius > 0.0 and each.lowered is None and each.source in SHOWN:
            sources.setdefault(each.source, []).append(each.link)
    told = [f"of {source} ({', '.join(links)})" for source, links in sources.items()]
    found = [f"of each link at least half of that {', '.join(told)}"] if told else []
    return found + [
        f"of {each.link} at least {each.radius:.2g} m, not half of that of {each.source}, "
        f"{each.lowered:.2g} m: chi-squared would rise by {each.rise:.3g}"
        for each in gyrations
        if each.lowered is not None
    ]


def list_radii(gyrations: Sequence[Gyration]) -> tuple[float, ...]:
    """The radii alone [m]."""
    return tuple(each.radius for each in gyrations)
