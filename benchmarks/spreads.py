"""Intervals of fleets by Monte-Carlo without logs, in fleets enough to tell chance from defect.

Writes docs/figures/spreads.md. Run from the top of the project:
python benchmarks/spreads.py [--fleets 200] [--print]

What logs tell of parameters is taken from those of a few robots of examples/fleet/make.py, reduced
once: of each session a triangle. Drawn are deviations of robots and of sessions, and errors. From
there on all is as `dynident fleet` does it: sessions eliminated, spreads between robots, intervals.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np
from common import FIGURES, markdown
from fleet import BASE, KIND, SESSIONS, draw_fleet, make

from dynident.collection.member import MemberDrives, eliminate_sessions, weigh_sessions
from dynident.collection.population import fit_population
from dynident.core.arrays import Array
from dynident.core.threads import limit_to_one_thread

LIBRARY = 8
"""Robots whose logs are reduced."""
SIZES = {6: 1.0, 12: 1.0, 30: 1.0, 100: 0.1}
"""Robots of a fleet, and of how many fleets as a share; spreads between sessions are known."""
ESTIMATED = {30: 0.2}
"""Likewise, spreads between sessions and the inflation are estimated, which takes longest."""
STUDIED = {6: 9, 12: 6, 30: 2}
"""Fleets with logs of which docs/figures/fleet.md once told (`fleet.py --fleets 6`)."""
TOLD = ("type", "deviations of drives", "each robot")


@dataclass(frozen=True, eq=False)
class Kind:
    """What is the same in every fleet."""

    families: list[Array]
    """Triangles of unit variance, shape (sessions, p + 1, p + 1)."""
    drives: MemberDrives
    beta: Array
    """Base parameters of the type, shape (p,)."""
    usual: Array
    spread: Array
    """`usual`, `spread`: parameters of drives, and their standard deviations between robots, shape
    (q,)."""
    joints: Array
    """Shape (q,). Whose friction a parameter is; -1 for what is no friction."""


@limit_to_one_thread
def reduce_library() -> Kind:
    """Reduce the logs of a few made robots."""
    _, team = draw_fleet(77, LIBRARY, {}, 0.0)
    families = [np.array([each.whiten(part) for part in each.parts]) for each in team.members]
    values = {"fv": make.VISCOUS, "fc": make.COULOMB, "Ia": make.ROTOR, "off": np.zeros(6)}
    values |= {symbol: np.full(6, value) for symbol, value in make.COUPLED.items()}
    chosen = [KIND.model.parameters[k] for k in team.drives.places]
    usual = np.array([values[p.symbol][p.number - 1] for p in chosen])
    shares = np.array([make.SPREAD.get(p.symbol, 0.0) for p in chosen])
    offsets = [make.OFFSET * make.COULOMB[p.number - 1] * (p.symbol == "off") for p in chosen]
    return Kind(
        families,
        team.drives,
        BASE.matrix @ np.concatenate([KIND.bodies.ravel(), usual]),
        usual,
        shares * usual + offsets,
        np.array([p.number - 1 if p.symbol.startswith("f") else -1 for p in chosen]),
    )


def draw_robot(kind: Kind, rng: np.random.Generator, number: int) -> tuple[Array, Array]:
    """Triangles of a robot's sessions, and its true deviation."""
    sessions, M = kind.families[number % LIBRARY].copy(), kind.drives.M
    deviation = kind.spread * rng.normal(size=len(kind.spread))
    for triangle in sessions:
        # the friction of a joint is multiplied alike
        factor = np.append(make.SESSION * rng.normal(size=KIND.robot.n), 0.0)[kind.joints]
        beta = kind.beta + M @ (deviation + factor * (kind.usual + deviation))
        R = triangle[:-1, :-1]
        triangle[:-1, -1] = R @ beta + rng.normal(size=len(R))
    return sessions, deviation


@limit_to_one_thread
def count_covered(kind: Kind, robots: int, seed: int, estimated: bool) -> list[float]:
    """Shares of intervals of one fleet that cover: of the type, of deviations, of robots [%]."""
    rng = np.random.default_rng((robots, seed))
    drawn = [draw_robot(kind, rng, k) for k in range(robots)]
    families = [sessions for sessions, _ in drawn]
    spread, inflation = make.SESSION * np.abs(kind.usual), 1.0
    if estimated:
        spread, inflation = weigh_sessions(families, kind.drives)
    varying = np.flatnonzero(spread)
    told = [
        eliminate_sessions(each / np.sqrt(inflation), kind.drives.M[:, varying], spread[varying])
        for each in families
    ]
    found = fit_population(told, kind.drives.M, kind.drives.start)
    every = np.eye(len(kind.beta))
    own, away = [], []
    for k, (_, deviation) in enumerate(drawn):
        value, error = found.know_deviation(k)
        away.append(np.abs(value - deviation) < 1.96 * error)
        own.append(is_covered(found.know_robot(k, every), kind.beta + kind.drives.M @ deviation))
    hits = (is_covered(found.know_type(every), kind.beta), away, own)
    return [100.0 * float(np.mean(each)) for each in hits]


def is_covered(known: tuple[Array, Array], true: Array) -> Array:
    """Whether intervals of 95 % hold the truth."""
    return np.asarray(np.abs(known[0] - true) < 1.96 * np.linalg.norm(known[1], axis=1))


def describe_sizes(found: dict[tuple[int, bool], Array]) -> list[str]:
    """Tables of all sizes; shares of each fleet have the shape (fleets, 3)."""
    rows, chance = [], []
    for (robots, estimated), shares in found.items():
        errors = np.std(shares, axis=0, ddof=1) / np.sqrt(len(shares))
        cells = [f"{m:.1f} ± {1.96 * e:.1f}" for m, e in zip(shares.mean(0), errors, strict=True)]
        words = "estimated" if estimated else "known"
        rows.append([f"{robots}", words, f"{len(shares)}", *cells])
        if robots in STUDIED and not estimated:
            few = STUDIED[robots]
            drawn = np.random.default_rng(0).integers(len(shares), size=(20_000, few))
            low, high = np.percentile(shares[drawn].mean(axis=1), [2.5, 97.5], axis=0)
            spans = [f"{a:.1f} to {b:.1f}" for a, b in zip(low, high, strict=True)]
            alone = [f"{each:.1f}" for each in np.std(shares, axis=0, ddof=1)]
            chance.append([f"{robots}", *alone, f"{few}", *spans])
    return [
        "Intervals of 95 %, and how many of them cover [%], with 95 % intervals of that:",
        "",
        *markdown(["robots", "spreads between sessions", "fleets", *TOLD], rows),
        "",
        "All intervals of a fleet rest on the same means of the type, so that they miss together. "
        "Standard deviation of the share from fleet to fleet, and where the share of a few fleets "
        "is in 95 cases of 100:",
        "",
        *markdown(["robots", *TOLD, "fleets", *TOLD], chance),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fleets", type=int, default=200)
    parser.add_argument("--print", action="store_true", help="write no page")
    chosen = parser.parse_args()
    begin = time.process_time()
    kind = reduce_library()
    found = {}
    for estimated, sizes in ((False, SIZES), (True, ESTIMATED)):
        for robots, share in sizes.items():
            seeds = range(max(4, round(share * chosen.fleets)))
            shares = [count_covered(kind, robots, seed, estimated) for seed in seeds]
            found[robots, estimated] = np.array(shares)
            sys.stderr.write(f"{robots} robots: {time.process_time() - begin:.0f} s\n")
    lines = [
        "# Intervals of fleets, by Monte-Carlo",
        "",
        f"`benchmarks/spreads.py --fleets {chosen.fleets}`; {SESSIONS} sessions a robot, "
        "regressors and spreads as of `examples/fleet/make.py`, no logs.",
        "",
        *describe_sizes(found),
    ]
    text = "\n".join(lines) + "\n"
    if not chosen.print:
        (FIGURES / "spreads.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
