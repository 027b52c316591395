"""A kilogram at the hand of a Panda and a UR10: Monte-Carlo of what `dynident payload` finds.

Each run identifies the empty arm and then the load, from 20 s of motion each, with torque noise
of 2 % of every joint's root mean square. Writes docs/figures/payload.md.

Run from the top of the project: python benchmarks/payload.py [RUNS]
"""

from __future__ import annotations

import os
import sys
from itertools import product

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import FIGURES, ROOT, markdown

sys.path.insert(0, str(ROOT / "tests"))

import loads

import dynident as di

GAIN = 1.05
"""Of the drives, in the runs with a known mass."""


PACES = {"": 1.0, ", slow": 0.05}
"""At a twentieth of the speed moments of inertia do next to nothing."""


def measured(name: str, pace: str, method: str, runs: int) -> list[str]:
    """One row of the table: errors of mass and centre, and coverage."""
    own = loads.arm(name, pace=PACES[pace])
    errors, inside, own_inside, moved, drifted, gains = [], [], [], 0, 0, []
    for seed in range(runs):
        first, second = own.logs(seed)
        fit = loads.empty(own, first, method)
        found = di.payload(fit, second)
        missed = np.abs(fit.estimate.beta - fit.base.matrix @ own.theta)
        own_inside.append(missed < 1.96 * fit.estimate.covariance.std)
        low, high = (np.array(list(ends.values())) for ends in (found.low, found.high))
        inside.append((low <= loads.TRUE) & (high >= loads.TRUE))
        errors.append([found.mass - loads.MASS, *(found.com - loads.CENTRE)])
        moved += found.load.moved is not None
        drifted += bool(found.load.drifted)
        if seed < runs // 4:
            first, second = own.logs(seed, gain=GAIN)
            known = di.payload(loads.empty(own, first, method), second, mass=loads.MASS)
            assert known.load.gains is not None
            gains.append(known.load.gains.values[0] - GAIN)
    off = np.array(errors)
    distance = 1e3 * np.linalg.norm(off[:, 1:], axis=1)
    share = 100.0 * np.mean(inside, axis=0)
    return [
        f"{name}{pace}", f"`{method}`", str(runs),
        f"{100.0 * np.sqrt(np.mean(off[:, 0] ** 2)):.3f} ({100.0 * np.abs(off[:, 0]).max():.3f})",
        f"{np.sqrt(np.mean(distance**2)):.2f} ({distance.max():.2f})",
        f"{share[0]:.0f}", f"{share[1:4].mean():.0f}", f"{share[4:].mean():.0f}",
        f"{share[[4, 6, 9]].min():.0f}",
        f"{100.0 * np.mean(own_inside):.0f}",
        f"{100.0 * np.sqrt(np.mean(np.square(gains))):.3f}", str(drifted), str(moved),
    ]  # fmt: skip


def main() -> None:
    """Measure and write the page."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    header = [
        "arm", "empty by", "runs", "mass, rms (worst) [%]", "centre, rms (worst) [mm]",
        "mass inside [%]", "centre inside [%]", "inertia inside [%]",
        "least of its moments inside [%]", "empty arm inside [%]",
        "gain from known mass, rms [%]", "false alarms: drives", "moving",
    ]  # fmt: skip
    cases = product(("panda", "ur10"), PACES, ("pc-idim-ls", "wls"))
    rows = [measured(*case, runs) for case in cases]
    lines = ["# A kilogram at the hand", "", "Made by `benchmarks/payload.py`.", ""]
    lines += markdown(header, rows)
    lines += [
        "",
        "Simulated arms of example-robot-data with drives of round numbers; 20 s at 500 Hz without "
        "the load and as much with it, other motions, 2 % torque noise, positions exact. Asked "
        "for: mass within 2 %, centre within 5 mm, 95 % intervals that hold the truth. Empty arm: "
        "its base parameters inside their own 95 % intervals. Slow: the loaded motion at a "
        "twentieth of the speed, which leaves the load's moments of inertia open.",
    ]
    (FIGURES / "payload.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
