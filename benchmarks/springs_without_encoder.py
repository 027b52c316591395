"""Springs of which no encoder sees the link: intervals on twins.

By a torque sensor and by the motor alone; and what is said of twins that are stiff. Writes
docs/figures/springs-without-encoder.md.

Run from the top of the project: python benchmarks/springs_without_encoder.py [RUNS]
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import FIGURES, ROOT, markdown

sys.path.insert(0, str(ROOT / "tests"))

from springs import elastic_arm, shaken, twin

import dynident as di
from dynident.core.words import format_number
from dynident.dynamics.idim import build_idim

STIFFNESSES = (4e3, 1e4, 4e5)


def felt(runs: int) -> list[str]:
    """Table of springs behind torque sensors."""
    idim, rows = build_idim(elastic_arm((1, 2), ("torque",), ("stiffness",))), []
    for stiffness in STIFFNESSES:
        inside, springs, compliances, biases, told = [], [], [], [], []
        for seed in range(runs):
            log, theta = twin(idim, seed, move=shaken, K=stiffness)
            problem = di.Problem(idim.robot, di.prepare(log, 5.0))
            fit = di.identify(problem, "wls", doctor=False)
            known = [k for k, name in enumerate(fit.base.names) if name[0] not in "KD"]
            off = (fit.estimate.beta - fit.base.matrix @ theta) / fit.estimate.covariance.std
            inside.append(np.abs(off[known]) < 1.96)
            biases.append(off[known])
            springs.append([a.interval[0] < 1.0 / stiffness < a.interval[1] for a in fit.springs])
            compliances.append([own.std * stiffness for own in fit.springs])
            told.append([own.supported for own in fit.springs])
        bias = np.abs(np.mean(biases, axis=0)) * np.sqrt(runs)
        rows.append(
            [
                f"{stiffness:g}",
                f"{100 * np.mean(inside):.1f}",
                f"{100 * np.mean(springs):.1f}",
                f"{np.max(bias):.1f}",
                ", ".join(format_number(100 * x, 2) for x in np.median(compliances, axis=0)),
                ", ".join(f"{100 * x:.0f}" for x in np.mean(told, axis=0)),
                str(runs),
            ]
        )
    header = ["K [Nm/rad]", "others inside of 95 % [%]", "1/K inside [%]"]
    header += ["largest bias of others [standard errors]", "error of 1/K, joints 1, 2 [%]"]
    return markdown([*header, "told [%]", "runs"], rows)


def main() -> None:
    """Write the page."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    lines = [
        "# Springs without an encoder of the link",
        "",
        "Made by `benchmarks/springs_without_encoder.py`.",
        "",
        "## Motor encoders and torque sensors",
        "",
        *felt(runs),
        "",
        "An arm of three joints, two of them with a spring and a torque sensor (2 Nm s/rad), 16 s "
        "at 500 Hz, lines up to 5 Hz, noise of 0.1 Nm on all torques, bandwidth 5 Hz, `wls`. Told: "
        "the interval of the compliance is above zero.",
    ]
    text = "\n".join(lines) + "\n"
    (FIGURES / "springs-without-encoder.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
