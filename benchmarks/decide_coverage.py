"""How often 95 % intervals of the bodies hold the truth where friction was decided by the log.

Run from the top of the project: python benchmarks/decide_coverage.py [RUNS]
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

import numpy as np
from common import FIGURES, ROOT, coloured, markdown

sys.path.insert(0, str(ROOT / "tests"))

import toy

from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.knowledge import Knowledge
from dynident.decide.decision import FRICTION
from dynident.decide.friction import choose_drives
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import build_idim
from dynident.estimators.constrained import build_constrained_setting
from dynident.estimators.covariance import ErrorBars
from dynident.methods.options import estimate as estimate_by_name
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem

TRUTHS = ("coulomb-viscous", "cube-root", "tanh-sech(w3=1.7, w4=6)")
"""The last one's shapes are on no grid."""
VALUES = {"Ia": 0.3, "fv": 2.0, "fc": 3.0, "off": 0.5, "fr": 6.0, "f1": 5.0, "f2": 3.0}
NOISE, RHO, SECONDS = np.array([1.0, 0.5]), 0.9, 20.0


def decided(samples: Samples) -> str:
    """The friction that the log decides."""
    problem = Problem(toy.arm(2), samples)
    given = build_constrained_setting(problem, Knowledge(), Bootstrap(0), ErrorBars())
    (found,) = choose_drives(problem, given.admitted, given.sigma, [FRICTION])
    return found.value


def find_bodies(base: BaseParameters) -> np.ndarray:
    """Base parameters that keep an inertial parameter of a link."""
    return np.flatnonzero(base.kept < base.idim.inertial)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    robot, rows = toy.arm(2), []
    for truth in TRUTHS:
        idim = build_idim(robot, truth)
        drive = np.array([VALUES[p.symbol] for p in idim.drives])
        theta = idim.join(robot.nominal, drive)
        motion = toy.motion(2, SECONDS)
        torque = idim.torque(theta, *motion)
        inside: dict[str, list[np.ndarray]] = {"true": [], "usual": [], "decided": []}
        taken: Counter[str] = Counter()
        for run in range(runs):
            rng = np.random.default_rng(run)
            tau = torque + coloured(rng, torque.shape, RHO) * NOISE
            log = Recording("toy", toy.RATE, motion[0], tau, dq=motion[1], ddq=motion[2])
            samples = toy.on_its_motion(replace(log, tau=tau), 10.0)
            own = decided(samples)
            taken["usual" if own == "coulomb-viscous" else "another"] += 1
            for kind, friction in (("true", truth), ("usual", "coulomb-viscous"), ("decided", own)):
                problem = Problem(robot, samples, friction=friction)
                found = estimate_by_name(problem, "wls")
                at = find_bodies(problem.base)
                values = np.zeros(len(problem.idim.names))
                values[: idim.inertial] = theta[: idim.inertial]
                names = dict(zip(idim.names, theta, strict=True))
                for k, name in enumerate(problem.idim.names):
                    values[k] = names.get(name, 0.0)
                error = np.abs(found.beta - problem.base.matrix @ values)[at]
                inside[kind].append(error < 1.96 * found.covariance.std[at])
        shares = [f"{100.0 * float(np.mean(inside[kind])):.1f}" for kind in inside]
        rows.append([f"`{truth}`", f"{taken['another']} of {runs}", *shares])
        print(*rows[-1], flush=True)
    header = [
        "true friction",
        "another law taken",
        "true law %",
        "`coulomb-viscous` %",
        "decided %",
    ]
    lines = [
        f"Two joints, 20 s of motion, coloured torque noise (lag-1 {RHO}), {runs} logs; how often "
        "the 95 % intervals of the bodies' base parameters by `wls` hold the truth, with the true "
        "law, with the usual one, and with the one that the log decided.",
        "",
        *markdown(header, rows),
    ]
    (FIGURES / "decide_coverage.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
