"""Robots with closed chains, for tests: a five-bar, a parallelogram arm, a chain in space, a delta
and a leg whose knee a rod drives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynident.robot.load import load_robot
from dynident.robot.model import Robot
from dynident.robot.spec import LoopSpec


def make_body(name: str, joint: str, place: str, inertial: str, inner: str = "") -> str:
    """A body of an MJCF with one hinge about y, or z where its name says so.

    ``inertial`` is the mass, the centre of mass and the diagonal of the inertia about it.
    """
    mass, *com = inertial.split()
    axis = "0 0 1" if joint == "turn" else "0 1 0"
    return (
        f'<body name="{name}" pos="{place}"><joint name="{joint}" axis="{axis}"/>'
        f'<inertial mass="{mass}" pos="{" ".join(com[:3])}" '
        f'fullinertia="{" ".join(com[3:])} 0 0 0"/>{inner}</body>\n'
    )


def make_file(name: str, bodies: str, equality: str, drives: tuple[str, ...]) -> str:
    motors = "".join(f'<motor name="{joint}" joint="{joint}"/>' for joint in drives)
    return (
        f'<mujoco model="{name}"><compiler angle="radian"/>\n<option integrator="RK4"/>\n'
        f"<worldbody>{bodies}</worldbody>\n<equality>{equality}</equality>\n"
        f"<actuator>{motors}</actuator></mujoco>\n"
    )


def write_five_bar() -> str:
    """Two cranks of 0.25 m that stand 0.24 m apart, and two rods of 0.35 m whose tips meet."""
    bodies = ""
    for side, x, crank, rod in (
        ("l", -0.12, "0.9 0.01 0 0.11 6e-3 6e-3 6e-4", "0.5 0.006 0 0.16 5e-3 5e-3 4e-4"),
        ("r", 0.12, "0.8 0.01 0 0.13 6e-3 6e-3 6e-4", "0.4 -0.006 0 0.19 5e-3 5e-3 4e-4"),
    ):
        tip = f'<site name="tip_{side}" pos="0 0 0.35"/>'
        inner = make_body(f"rod_{side}", f"rod_{side}", "0 0 0.25", rod, tip)
        bodies += make_body(f"crank_{side}", f"crank_{side}", f"{x} 0 0", crank, inner)
    equality = '<connect name="tip" site1="tip_l" site2="tip_r"/>'
    return make_file("five_bar", f"<body>{bodies}</body>", equality, ("crank_l", "crank_r"))


FIVE_BAR = LoopSpec(
    name="tip",
    passive=("rod_l", "rod_r"),
    start={"crank_l": -0.6, "crank_r": 0.6, "rod_l": 1.4, "rod_r": -1.4},
)
"""The file draws its tips apart."""


def write_palletiser() -> str:
    """A turning column with a parallelogram beside the upper arm, which moves the fore arm."""
    rod = make_body("rod", "rod", "-0.15 0 0", "0.7 0.02 0.004 0.21 9e-3 9e-3 5e-4")
    crank = make_body("crank", "crank", "0 0.08 0", "1.1 -0.06 0.01 0.01 3e-3 6e-3 6e-3", rod)
    fore = make_body("fore", "elbow", "0 0 0.42", "1.6 0.17 -0.01 0.02 5e-3 0.03 0.03")
    upper = make_body("upper", "shoulder", "0 0 0", "2.8 0.02 0.01 0.2 0.05 0.05 8e-3", fore)
    column = make_body("column", "turn", "0 0 0.3", "6 0.03 0 -0.1 0.1 0.1 0.06", upper + crank)
    equality = '<connect name="bar" body1="rod" body2="fore" anchor="0 -0.08 0.42"/>'
    return make_file("palletiser", column, equality, ("turn", "shoulder", "crank"))


def write_spatial() -> str:
    """A URDF of a crank and a lever about other axes, joined by a rod with a ball at one end."""
    text = '<robot name="spatial"><link name="ground"/>\n'
    for name, com, mass, moments in (
        ("crank", "0.05 0.01 0.01", 1.2, (4e-3, 5e-3, 6e-3, 3e-4)),
        ("u1", "0.01 0 0", 0.05, (1e-3, 1e-3, 1e-3, 0.0)),
        ("coupler", "0.2 0.02 0.05", 0.8, (6e-3, 0.02, 0.02, -4e-4)),
        ("rocker", "0.02 0.12 0.01", 0.9, (0.01, 4e-3, 0.012, 5e-4)),
    ):
        pairs = zip(("ixx", "iyy", "izz", "ixy"), moments, strict=True)
        inertia = " ".join(f'{key}="{value}"' for key, value in pairs)
        text += (
            f'<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>'
            f'<inertia {inertia} ixz="1e-4" iyz="-2e-4"/></inertial></link>\n'
        )
    for name, parent, child, origin, axis in (
        ("drive", "ground", "crank", 'xyz="0 0 0"', "0 0 1"),
        ("c1", "crank", "u1", 'xyz="0.12 0 0.02"', "1 0 0"),
        ("c2", "u1", "coupler", 'xyz="0 0 0"', "0 1 0"),
        ("lever", "ground", "rocker", 'xyz="0.5 0.1 0" rpy="1.5708 0 0.2"', "0 0 1"),
    ):
        text += (
            f'<joint name="{name}" type="revolute"><parent link="{parent}"/>'
            f'<child link="{child}"/><origin {origin}/><axis xyz="{axis}"/>'
            '<limit lower="-3" upper="3" effort="50" velocity="9"/></joint>\n'
        )
    return text + "</robot>\n"


SPATIAL = LoopSpec(
    kind="point",
    links=("coupler", "rocker"),
    at=((0.42, 0.0, 0.06), (0.0, 0.25, 0.02)),
    passive=("c1", "c2", "lever"),
)

Body = tuple[str, str, str, str, str, str, str, str]
"""Joint with its kind, parent, link, placement, axis; mass, centre and diagonal of its inertia."""


def write_urdf(name: str, bodies: list[Body]) -> str:
    text = f'<robot name="{name}"><link name="ground"/>\n'
    for joint, parent, link, place, axis, mass, com, moments in bodies:
        kind = "prismatic" if joint.startswith("slide") else "revolute"
        ixx, iyy, izz = moments.split()
        text += (
            f'<link name="{link}"><inertial><origin xyz="{com}"/><mass value="{mass}"/><inertia '
            f'ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>\n'
            f'<joint name="{joint}" type="{kind}"><parent link="{parent}"/><child link="{link}"/>'
            f'<origin {place}/><axis xyz="{axis}"/>'
            '<limit lower="-3" upper="3" effort="90" velocity="9"/></joint>\n'
        )
    return text + "</robot>\n"


def write_delta() -> str:
    """Three arms on a ring, rods on universal joints, and a plate that keeps its orientation.

    Parallelograms of rods hold the plate: it slides along three axes, one rod stands for two.
    """
    bodies: list[Body] = [
        ("slide_x", "ground", "cart_x", 'xyz="0 0 0"', "1 0 0", "0.02", "0 0 0", "1e-5 1e-5 1e-5"),
        ("slide_y", "cart_x", "cart_y", 'xyz="0 0 0"', "0 1 0", "0.02", "0 0 0", "1e-5 1e-5 1e-5"),
        ("slide_z", "cart_y", "plate", 'xyz="0 0 0"', "0 0 1", "0.4", "0 0 0", "1e-4 1e-4 2e-4"),
    ]
    for k, turn in enumerate(TURNS, 1):
        x, y = 0.15 * np.cos(turn), 0.15 * np.sin(turn)
        ring = f'xyz="{x:.12f} {y:.12f} 0" rpy="0 0 {turn:.12f}"'
        bodies += [
            (f"arm{k}", "ground", f"upper{k}", ring, "0 1 0",
             "0.5", "0.09 0.01 0.004", "3e-4 2e-3 2e-3"),
            (f"swing{k}", f"upper{k}", f"cross{k}", 'xyz="0.2 0 0"', "0 1 0",
             "0.03", "0 0 0", "1e-5 1e-5 1e-5"),
            (f"tilt{k}", f"cross{k}", f"rod{k}", 'xyz="0 0 0"', "1 0 0",
             "0.2", "0.002 0.004 -0.22", "4e-3 4e-3 1e-4"),
        ]  # fmt: skip
    return write_urdf("delta", bodies)


TURNS = (0.0, 2.0 * np.pi / 3.0, -2.0 * np.pi / 3.0)
DELTA = tuple(
    LoopSpec(
        name=f"ball{k}",
        kind="point",
        links=(f"rod{k}", "plate"),
        at=((0.0, 0.0, -0.45), (0.05 * float(np.cos(turn)), 0.05 * float(np.sin(turn)), 0.0)),
        passive=(f"swing{k}", f"tilt{k}", f"slide_{'xyz'[k - 1]}"),
        start={f"arm{k}": 0.2, f"swing{k}": 0.4, "slide_z": -0.4},
    )
    for k, turn in enumerate(TURNS, 1)
)


def write_leg() -> str:
    """A leg as of a small quadruped: a crank at the hip moves the shank by a rod, a four-bar."""
    return write_urdf("leg", [
        ("abduction", "ground", "hip", 'xyz="0 0 0"', "1 0 0",
         "0.6", "0.004 0.01 0.003", "5e-4 6e-4 5e-4"),
        ("hip_pitch", "hip", "thigh", 'xyz="0 0.08 0"', "0 1 0",
         "0.9", "-0.004 -0.02 -0.03", "6e-3 6e-3 1e-3"),
        ("knee", "thigh", "shank", 'xyz="0 0 -0.213"', "0 1 0",
         "0.2", "0.006 0.002 -0.12", "3e-3 3e-3 4e-5"),
        ("knee_motor", "thigh", "crank", 'xyz="0 0.03 0"', "0 1 0",
         "0.1", "0.012 0 0.002", "2e-5 4e-5 4e-5"),
        ("rod", "crank", "rod", 'xyz="0.03 0 0"', "0 1 0",
         "0.08", "0 0.002 -0.1", "3e-4 3e-4 1e-5"),
    ])  # fmt: skip


LEG = LoopSpec(
    name="rod",
    kind="planar",
    links=("rod", "shank"),
    at=((0.0, 0.0, -0.21), (0.036, 0.03, 0.0)),
    axis=((0.0, 1.0, 0.0), (0.0, 1.0, 0.0)),
    passive=("knee", "rod"),
)
"""Its crank is shorter than its rocker, so that the ratio of the knee changes."""

LINKAGES = {
    "five_bar.xml": (write_five_bar, (FIVE_BAR,)),
    "palletiser.xml": (write_palletiser, ()),
    "spatial.urdf": (write_spatial, (SPATIAL,)),
    "delta.urdf": (write_delta, DELTA),
    "leg.urdf": (write_leg, (LEG,)),
}
"""By the file's name: its text, and what is said of its loops beside."""
EACH = [pytest.param(k, marks=pytest.mark.long if k == "delta.urdf" else ()) for k in LINKAGES]
"""Their names as parameters of a fixture."""


def load_linkage(name: str, folder: Path) -> Robot:
    """One of the robots, whose file is written to a folder."""
    write, loops = LINKAGES[name]
    path = folder / name
    path.write_text(write())
    return load_robot(path, loops=loops)
