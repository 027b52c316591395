"""Robots with closed chains, for tests: a five-bar, a parallelogram arm and a chain in space."""

from __future__ import annotations

from pathlib import Path

from dynident.robot.load import load_robot
from dynident.robot.model import Robot

HEAD = """<mujoco model="{name}">
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0 0 -9.81" timestep="0.0005" integrator="RK4"/>
  <worldbody>
"""
LINK = """<body name="{name}" pos="{pos}">
<joint name="{joint}" axis="{axis}" ref="{ref}"/>
<inertial pos="{com}" mass="{mass}" fullinertia="{inertia}"/>{inner}</body>
"""


def make_link(name, joint, pos, com, mass, inertia, inner="", axis="0 1 0", ref=0.0):
    """A body with one hinge; its inertia is about the centre of mass."""
    return LINK.format(
        name=name, joint=joint, pos=pos, axis=axis, ref=ref, com=com, mass=mass,
        inertia=inertia, inner=inner,
    )  # fmt: skip


def close(name, bodies, equality, motors):
    """The whole file."""
    drives = "\n".join(f'<motor name="{m}" joint="{m}"/>' for m in motors)
    return (
        HEAD.format(name=name)
        + bodies
        + f"</worldbody>\n<equality>{equality}</equality>\n<actuator>{drives}</actuator>\n</mujoco>"
    )


def write_five_bar() -> str:
    """Two cranks 0.24 m apart, of 0.25 m, and two rods of 0.35 m, in the plane x-z.

    The bodies stand upright in the file; the tip of the right rod is joined to the left one's.
    """
    # both cranks are drawn upright, the rods lean to each other
    rods = [
        make_link(f"rod_{s}", f"rod_{s}", "0 0 0.25", f"{0.006 * d} 0 0.16", 0.5, "5e-3 5e-3 4e-4 0 0 0")
        for s, d in (("l", 1), ("r", -1))
    ]
    cranks = [
        make_link(f"crank_{s}", f"crank_{s}", f"{x} 0 0", f"0.01 0 {c}", 0.9, "6e-3 6e-3 6e-4 0 0 0", rod)
        for s, x, c, rod in (("l", -0.12, 0.11, rods[0]), ("r", 0.12, 0.13, rods[1]))
    ]
    sites = '<site name="tip_{0}" pos="0 0 0.35"/>'
    bodies = "".join(cranks)
    for s in ("l", "r"):
        mark = f'<body name="rod_{s}"'
        head, tail = bodies.split(mark)
        place = tail.index("<inertial")
        bodies = head + mark + tail[:place] + sites.format(s) + tail[place:]
    return close(
        "five_bar",
        f'<body name="ground">{bodies}</body>',
        '<connect name="tip" site1="tip_l" site2="tip_r"/>',
        ("crank_l", "crank_r"),
    )


def write_palletiser() -> str:
    """A turning column with a parallelogram that moves the fore arm, as palletisers have it.

    The upper arm and a crank beside it turn on the column; a rod joins the crank to the fore arm.
    """
    rod = make_link("rod", "rod", "-0.15 0 0", "0.02 0.004 0.21", 0.7, "9e-3 9e-3 5e-4 0 0 0")
    crank = make_link("crank", "crank", "0 0.08 0", "-0.06 0.01 0.01", 1.1, "3e-3 6e-3 6e-3 0 0 0", rod)
    fore = make_link("fore", "elbow", "0 0 0.42", "0.17 -0.01 0.02", 1.6, "5e-3 0.03 0.03 0 0 0")
    upper = make_link("upper", "shoulder", "0 0 0", "0.02 0.01 0.2", 2.8, "0.05 0.05 8e-3 0 0 0", fore)
    column = make_link("column", "turn", "0 0 0.3", "0.03 0 -0.1", 6.0, "0.1 0.1 0.06 0 0 0", upper + crank, "0 0 1")
    return close(
        "palletiser",
        column,
        '<connect name="bar" body1="rod" body2="fore" anchor="0 -0.08 0.42"/>',
        ("turn", "shoulder", "crank"),
    )


SPATIAL = """<robot name="spatial">
  <link name="ground"/>
  {links}
  <joint name="drive" type="revolute"><parent link="ground"/><child link="crank"/>
    <origin xyz="0 0 0"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="50" velocity="9"/></joint>
  <joint name="c1" type="revolute"><parent link="crank"/><child link="u1"/>
    <origin xyz="0.12 0 0.02"/><axis xyz="1 0 0"/><limit lower="-3" upper="3" effort="50" velocity="9"/></joint>
  <joint name="c2" type="revolute"><parent link="u1"/><child link="coupler"/>
    <origin xyz="0 0 0"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="9"/></joint>
  <joint name="lever" type="revolute"><parent link="ground"/><child link="rocker"/>
    <origin xyz="0.5 0.1 0" rpy="1.5708 0 0.2"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="50" velocity="9"/></joint>
</robot>
"""
"""A crank and a lever about other axes with a rod between two ball joints (RSSR): one is a loop."""


def write_spatial() -> str:
    """A URDF; its loop is a point."""
    link = (
        '<link name="{0}"><inertial><origin xyz="{1}"/><mass value="{2}"/><inertia ixx="{3}" '
        'iyy="{4}" izz="{5}" ixy="{6}" ixz="1e-4" iyz="-2e-4"/></inertial></link>'
    )
    links = [
        link.format("crank", "0.05 0.01 0.01", 1.2, 4e-3, 5e-3, 6e-3, 3e-4),
        link.format("u1", "0.01 0 0", 0.05, 1e-3, 1e-3, 1e-3, 0.0),
        link.format("coupler", "0.2 0.02 0.05", 0.8, 6e-3, 0.02, 0.02, -4e-4),
        link.format("rocker", "0.02 0.12 0.01", 0.9, 0.01, 4e-3, 0.012, 5e-4),
    ]
    return SPATIAL.format(links="\n  ".join(links))


SPATIAL_LOOP = {
    "kind": "point",
    "links": ("coupler", "rocker"),
    "at": ((0.42, 0.0, 0.06), (0.0, 0.25, 0.02)),
    "passive": ("c1", "c2", "lever"),
}


def load_text(text: str, folder: Path, name: str, **given) -> Robot:
    """A robot of the text of its file."""
    path = folder / name
    path.write_text(text)
    return load_robot(path, **given)
