"""Springs by the motor alone, at the resonance of the link behind them: intervals on twins.

Writes docs/figures/resonance.md.

Run from the top of the project: python benchmarks/resonance.py [RUNS]
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

from dataclasses import replace
from functools import partial

import numpy as np
from common import FIGURES, ROOT, markdown

sys.path.insert(0, str(ROOT / "tests"))

from springs import ENCODER, elastic_arm, multisine, twin

import dynident as di
from dynident.core.errors import ComputationError
from dynident.core.words import format_number
from dynident.dynamics.idim import build_idim

BAND = (2.0, 55.0)
CASES = ((3000.0, 2.0), (10000.0, 2.0), (30000.0, 2.0), (3e6, 0.0))
"""Stiffnesses and dampings."""
MISFITS = ("misfit", "stiff_misfit")


def find_all(joint: int, stiffness: float, damping: float, runs: int) -> list[str]:
    """A row of the table."""
    idim = build_idim(elastic_arm((1, 2)))
    move, found, refused = partial(multisine, joint=joint, top=60.0), [], 0
    for seed in range(runs):
        log, _ = twin(idim, seed, move=move, K=stiffness, D=damping)
        noise = ENCODER * np.random.default_rng([seed, 1]).normal(size=log.q.shape)
        try:
            found.append(di.find_resonance(replace(log, q=log.q + noise), joint, BAND, 2.0))
        except ComputationError:
            refused += 1
    told = [own for own in found if own.supported]
    shares = [f"{100 * count / runs:.0f}" for count in (len(told), refused)] + [str(runs)]
    misfits = ["-"] * len(MISFITS)
    if found:
        misfits = [f"{np.mean([getattr(own, k) for own in found]):.2f}" for k in MISFITS]
    if not told:
        return [str(joint + 1), f"{stiffness:g}", *["-"] * 5, *misfits, *shares]
    inside = [
        (own.interval[0] < 1.0 / stiffness < own.interval[1])
        + 1j * (abs(own.damping[0] - damping) < 1.96 * own.damping[1])
        for own in told
    ]
    return [
        str(joint + 1),
        f"{stiffness:g}",
        f"{np.median([own.antiresonance for own in told]):.1f}",
        format_number(float(np.median([own.stiffness[1] / own.stiffness[0] for own in told])), 2),
        format_number(float(np.median([own.damping[1] for own in told])), 2),
        f"{100 * np.mean(np.real(inside)):.1f}",
        f"{100 * np.mean(np.imag(inside)):.1f}",
        *misfits,
        *shares,
    ]


def main() -> None:
    """Write the page."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rows = [find_all(joint, *case, runs) for joint in (0, 1) for case in CASES]
    header = ["joint", "K [Nm/rad]", "antiresonance [Hz]", "error of K, share"]
    header += ["error of D [Nm s/rad]", "1/K inside of 95 % [%]", "D inside [%]"]
    header += ["misfit", "misfit of one mass", "told [%]", "refused [%]", "runs"]
    lines = [
        "# Springs by their resonance",
        "",
        "Made by `benchmarks/resonance.py`.",
        "",
        *markdown(header, rows),
        "",
        "An arm of three joints, two of them with a spring; one joint at a time is shaken by a "
        "multisine of 0.4 rad/s^2 a line up to 60 Hz on slow swings, 8 periods of 2 s at 500 Hz, "
        "noise of 0.1 Nm on torques and 20 µrad on positions; lines from 2 to 55 Hz. Medians and "
        "shares of the springs that are told, misfits of all that is not refused. Refused is an "
        "antiresonance that is not well within the lines. "
        "Misfit: squared error over that of noise. The last spring of each joint is as good as "
        "stiff: of it, nothing is to be told.",
    ]
    text = "\n".join(lines) + "\n"
    (FIGURES / "resonance.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
