"""The TX40 twin: consistent standard parameters whose base parameters are the published ones.

Run from the top of the project: python benchmarks/make_tx40_twin.py

Fitted by constrained weighted least squares, as pc-idim-ls does, but to a published table
instead of a log: to Table 1 of brunot2019 (column LS), and to TX40_bp_5.csv (WLS) for the base
parameters that Table 1 leaves out. Masses, nominal inertials and rotors are a weak prior.
Writes the two TOML files of dynident_papers, whose controller gains it leaves as they are, and
docs/figures/tx40_twin.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from common import FIGURES, ROOT, TX40

from dynident.conic.cones import Cone, NonnegativeCone, SemidefiniteCone
from dynident.conic.solve import solve_cone_problem
from dynident.consistency.constraints import CONSISTENCY
from dynident.consistency.prior import Prior, build_belief
from dynident.consistency.space import LENGTH, ParameterSpace, build_standard_space
from dynident.core.arrays import Array
from dynident.core.files import write_files
from dynident.core.inertia import find_smallest_eigenvalue, to_com, transform_body
from dynident.core.schema import read_toml
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import Idim, build_idim
from dynident.robot import load_robot
from dynident.robot.model import Robot
from dynident_papers.published import (
    BRUNOT,
    TX40_MASSES,
    TX40_ROTORS,
    Published,
    build_published_sums,
    read_tx40_table,
)
from dynident_papers.twin import DRIVES_FILE, FRICTION, ROBOT_FILE, Twin, assemble_twin

DATA = ROOT / "src" / "dynident_papers"
PAGE = FIGURES / "tx40_twin.md"

ROUNDING = 0.01 / np.sqrt(12.0)
"""Standard deviation of what two decimals leave out."""

MASS_SHARE = 0.05
"""Standard deviation of the masses' prior, as a share."""
ROTOR_SHARE = 0.1

GYRATION = (0.02, 0.02, 0.02, 0.02, 0.01, 0.01)
"""Least radius of gyration of a link about any plane through its centre of mass [m]."""
TRUST = 0.3
"""Weight of the nominal inertials, whose standard deviation of one body's own size becomes
1 / TRUST sizes. With a weight of one they hold mx2 of Table 1 off by 2.6 of its sigmas."""
LEAST = {"Ia": 2e-3, "fv": 0.02, "fc": 0.05}
"""Least rotor inertia [kg m^2] and friction [Nm s/rad, Nm]: clear of zero."""


def published() -> dict[str, tuple[Published, str]]:
    """Each published base parameter without offsets, and its source."""
    table = read_tx40_table(TX40 / "TX40_bp_5.csv")
    found = {name: (row.wls, "log") for name, row in table.items() if not name.startswith("off")}
    first = BRUNOT["decimated", "ols"]
    return found | {name: (value, "Table 1") for name, value in first.items()}


def turned(urdf: Robot, table: Robot) -> list[Array]:
    """Rotation of each body frame of the URDF in that of the DH table, the same at any q."""
    found = []
    for seed in (0, 1):
        q = np.random.default_rng(seed).uniform(-2.0, 2.0, table.n)
        sides = []
        for robot, at in ((urdf, q + urdf.drives.zero), (table, q)):
            here, frames = np.eye(3), []
            for joint, angle in zip(robot.joints, at, strict=True):
                here = here @ joint.rotation @ pin.exp3(joint.axis * angle)
                frames.append(here)
            sides.append(frames)
        found.append([b.T @ a for a, b in zip(*sides, strict=True)])
    if not np.allclose(found[0], found[1], atol=1e-9):
        raise SystemExit("the frames of the URDF and of the DH table turn against each other")
    quarters = np.round(found[0])  # exact, as the URDF rounds its angles
    if not np.allclose(found[0], quarters, atol=1e-9):
        raise SystemExit("the frames of the URDF are not quarter turns from the DH table's")
    return list(quarters)


def published_rows(base: BaseParameters, rotations: list[Array], names: list[str]) -> Array:
    """Published base parameters over the standard parameters in the DH table's frames.

    The published tables are in the URDF's frames, `base` is the URDF's.
    """
    change = np.eye(len(base.idim.parameters))
    for k, rotation in enumerate(rotations):
        block = [transform_body(phi, rotation.T, np.zeros(3)) for phi in np.eye(10)]
        change[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = np.transpose(block)
    plain = [name.removesuffix("R") for name in base.names]
    if sorted(plain) != sorted(names):
        raise SystemExit(f"not the published names: {sorted(set(plain) ^ set(names))}")
    rows = dict(zip(plain, build_published_sums(plain) @ base.matrix @ change, strict=True))
    return np.array([rows[name] for name in names])


def with_prior_inertials(urdf: Robot, table: Robot, rotations: list[Array]) -> Robot:
    """The DH robot with the URDF's inertials in its frames, scaled to the prior's masses."""
    bodies = [
        transform_body(phi, rotation, np.zeros(3)) * (mass / phi[0])
        for phi, rotation, mass in zip(urdf.nominal, rotations, TX40_MASSES, strict=True)
    ]
    return replace(table, nominal=np.array(bodies))


def cones(space: ParameterSpace) -> list[Cone]:
    """The cones of physical consistency, each with a margin.

    ``J - m r^2 diag(1, 1, 1, 0)`` positive semidefinite says that the body's mass is spread
    by r at least about every plane through its centre (Schur complement of the mass).
    """
    found: list[Cone] = []
    idim, unit = space.idim, space.unit
    for cone in (c for known in CONSISTENCY["pseudo-inertia"] for c in known.cones(space)):
        if isinstance(cone, SemidefiniteCone):
            body = next(k for k, link in enumerate(idim.robot.links) if link in cone.name)
            basis = cone.basis.copy()
            basis[10 * body] -= (GYRATION[body] / LENGTH) ** 2 * np.diag([1.0, 1.0, 1.0, 0.0])
            found.append(replace(cone, basis=basis))
        elif isinstance(cone, NonnegativeCone):
            chosen = [k for k, p in enumerate(idim.parameters) if p.positive]
            least = [LEAST[idim.parameters[k].symbol[:2]] / unit[k] for k in chosen]
            found.append(NonnegativeCone(cone.name, cone.G, np.array(least)))
    return found


def prior(idim: Idim) -> tuple[Array, Array]:
    """Whitened rows and target: nominal inertials, masses, rotors."""
    belief = Prior(build_belief(idim.robot.nominal, idim.robot.links))
    sure, aim = belief.rows(len(idim.parameters))
    centre = {f"m{k}": (m, MASS_SHARE) for k, m in enumerate(TX40_MASSES, start=1)}
    centre |= {name: (value, ROTOR_SHARE) for name, value in TX40_ROTORS.items()}
    rows = np.zeros((len(centre), len(idim.parameters)))
    for row, (name, (value, share)) in zip(rows, centre.items(), strict=True):
        row[idim.names.index(name)] = 1.0 / (share * value)
    target = np.array([1.0 / share for _, share in centre.values()])
    return np.vstack([TRUST * sure, rows]), np.concatenate([TRUST * aim, target])


def fit(idim: Idim, rows: Array, value: Array, std: Array) -> Array:
    """Standard parameters in the cones, nearest to the published values and to the prior."""
    data, b = rows / std[:, None], value / std
    pull, target = prior(idim)
    base = base_parameters(idim)  # the rows are combinations of base parameters
    space = build_standard_space(base, data[:, base.kept], b)
    solution = solve_cone_problem(
        np.vstack([data, pull]) * space.unit, np.concatenate([b, target]), cones(space)
    )
    return space.value(solution.x)


def robot_file(theta: Array) -> str:
    """The DH table of the examples with the bodies' inertials."""
    text = (TX40 / "tx40_dh.toml").read_text()
    body = text[text.index("convention") :]
    for k in range(6):
        mass, com, inertia = to_com(theta[10 * k : 10 * k + 10])
        six = [inertia[i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
        here = f'name = "joint_{k + 1}"\n'
        stated = (
            f"{here}inertial.mass = {mass:.6f}\n"
            f"inertial.com = {numbers(com, 7)}\n"
            f"inertial.inertia = {numbers(six, 9)}\n"
        )
        body = body.replace(here, stated, 1)
    return (
        "# Twin of the Stäubli TX40: the geometry of examples/tx40/tx40_dh.toml, with physically\n"
        "# consistent inertials that give the published base parameters [kg, m, kg m^2].\n"
        "# Made by benchmarks/make_tx40_twin.py; the rest is in tx40_twin_drives.toml.\n"
        f'name = "tx40-twin"\n{body}'
    )


def numbers(values: Array | list[float] | tuple[float, ...], digits: int) -> str:
    """A TOML list, rounded."""
    return "[" + ", ".join(f"{round(float(v), digits) + 0.0:.{digits}f}" for v in values) + "]"


def drives_file(idim: Idim, theta: Array) -> str:
    """Rotors and friction, and the gains as the file has them."""
    drives = zip(idim.names[idim.inertial :], theta[idim.inertial :], strict=True)
    stated = read_toml(DATA / DRIVES_FILE)["controller"]
    gains = (f"{key} = [{', '.join(map(str, values))}]" for key, values in stated.items())
    lines = [
        "# Drives of the TX40 twin, on the joint side. Made by benchmarks/make_tx40_twin.py.",
        "",
        "# Rotor inertias Ia [kg m^2], viscous friction fv [Nm s/rad], Coulomb friction fc [Nm].",
        "# Those of drive 6, which turns with joints 5 and 6, are Iam6, fvm6 and fcm6.",
        "[parameters]",
        *(f"{name} = {value:.6f}" for name, value in drives),
        "",
        "# tau = gain (kp (qref - q) + kd (dqref - dq)): kp [V/rad], kd [V s/rad], gain [Nm/V].",
        "[controller]",
        *gains,
    ]
    return "\n".join(lines) + "\n"


def page(twin: Twin, rows: Array, names: list[str], table: dict[str, tuple[Published, str]]) -> str:
    """The comparison as Markdown."""
    lines = [
        "### The TX40 twin beside the published base parameters",
        "",
        "Published values without their offsets, which are zero in the twin. *Table 1* is the "
        "column LS of Brunot 2019, *log* the WLS column of TX40_bp_5.csv (with a regressor whose "
        "joint 6 never accelerates). Sums over the coupled wrist as published: Ia5, fv5 and fv6 "
        "contain drive 6. Link 6 in the frame of the published tables, the URDF's.",
        "",
        "| parameter | source | published | sigma | twin | deviation [sigma] |",
        "|---|---|---|---|---|---|",
    ]
    found = rows @ twin.theta
    deviations: dict[str, list[float]] = {"Table 1": [], "log": []}
    for name, value in zip(names, found, strict=True):
        stated, source = table[name]
        deviation = (value - stated.value) / stated.std
        deviations[source].append(deviation)
        lines.append(
            f"| {name} | {source} | {stated.value:.4g} | {stated.std:.2g} | {value:.4g} "
            f"| {deviation:+.2f} |"
        )
    lines.append("")
    for source, values in deviations.items():
        worst, rms = np.abs(values).max(), np.sqrt(np.mean(np.square(values)))
        lines.append(f"{source}: {len(values)} rows, largest {worst:.2f}, rms {rms:.2f} sigma.")
    lines += [
        "",
        "### Its links",
        "",
        "In the frames of the DH table. *Spread* is the least radius of gyration about a plane "
        "through the centre of mass, *eigenvalue* the smallest of the pseudo-inertia in SI units.",
        "",
        "| link | mass [kg] | prior [kg] | centre of mass [mm] | spread [mm] | eigenvalue |",
        "|---|---|---|---|---|---|",
    ]
    for k, (phi, prior_mass) in enumerate(zip(twin.robot.nominal, TX40_MASSES, strict=True)):
        mass, com, inertia = to_com(phi)
        moments = 0.5 * np.trace(inertia) * np.eye(3) - inertia
        spread = np.sqrt(np.linalg.eigvalsh(moments)[0] / mass)
        centre_mm = ", ".join(f"{1e3 * c + 0.0:.0f}" for c in com)
        lines.append(
            f"| {k + 1} | {mass:.2f} | {prior_mass:g} | {centre_mm} | {1e3 * spread:.0f} "
            f"| {find_smallest_eigenvalue(phi):.1e} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the TX40 twin's files and their page.")
    parser.add_argument("--data", type=Path, default=DATA, help="where the TOML files go")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the table goes")
    arguments = parser.parse_args()
    urdf, bare = load_robot(TX40 / "tx40.toml"), load_robot(TX40 / "tx40_dh.toml")
    rotations = turned(urdf, bare)
    table = published()
    names = list(table)
    rows = published_rows(base_parameters(build_idim(urdf, FRICTION)), rotations, names)
    idim = build_idim(with_prior_inertials(urdf, bare, rotations), FRICTION)
    value, std = np.array([(stated.value, stated.std) for stated, _ in table.values()]).T
    rounded = np.array([ROUNDING if source == "Table 1" else 0.0 for _, source in table.values()])
    theta = fit(idim, rows, value, np.hypot(std, rounded))
    contents = {ROBOT_FILE: robot_file(theta), DRIVES_FILE: drives_file(idim, theta)}
    with tempfile.TemporaryDirectory() as place:  # what is compared is what the files say
        for name, text in contents.items():
            (Path(place) / name).write_text(text)
        twin = assemble_twin(load_robot(Path(place) / ROBOT_FILE), Path(place) / DRIVES_FILE)
    text = page(twin, rows, names, table)
    written = {arguments.data / name: text.encode() for name, text in contents.items()}
    write_files({**written, arguments.page: text.encode()})
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
