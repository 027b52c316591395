"""What least radii of gyration cost on measured logs: held-out errors and chi-squared without them.

Each study of `decide.py` as given and decided, with links that are merely consistent
(`gyration = 0`) and with what the robot's file shows of them. Writes `docs/figures/gyration.md`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import FIGURES, markdown
from decide import held_out, list_studies, with_given

from dynident.core.inertia import measure_least_gyration
from dynident.decide.decision import NOTHING
from dynident.fit.result import Result
from dynident.report.fit import Fit
from dynident.study.run import run_study


def find_thinnest(fit: Result) -> tuple[str, float]:
    """The link with the smallest radius of gyration, and that [mm]."""
    assert fit.phi is not None
    radii = [measure_least_gyration(phi) or 0.0 for phi in fit.phi]
    k = int(np.argmin(radii))
    return fit.robot.links[k], 1e3 * radii[k]


def describe(fit: Fit) -> list[str]:
    """Held-out error, price of all active constraints, and the thinnest link."""
    price = fit.estimate.restriction
    link, radius = find_thinnest(fit)
    return [
        f"{held_out(fit):.2f}",
        "0" if price is None else f"{price.cost:.1f}",
        f"{radius:.2g} ({link})",
    ]


def main() -> None:
    rows = []
    for name, (own, lowpass) in list_studies().items():
        ways: list[tuple[str, dict[str, Any]]] = [
            ("as given", {"decide": NOTHING}),
            ("decided", {}),
        ]
        for words, keys in ways:
            bare = run_study(with_given(own, lowpass, gyration=0.0, **keys))
            fit = run_study(with_given(own, lowpass, **keys))
            lowered = [g.link for g in fit.estimate.gyrations if g.lowered is not None]
            told = zip(describe(bare), describe(fit), strict=True)
            rows.append(
                [name, words, *(each for pair in told for each in pair), ", ".join(lowered) or "-"]
            )
            print(rows[-1], flush=True)
    columns = ["log", "friction", "held out %", "with radii", "chi-squared", "with radii"]
    columns += ["thinnest link, mm", "with radii", "lowered by the log"]
    (FIGURES / "gyration.md").write_text("\n".join(markdown(columns, rows)) + "\n")


if __name__ == "__main__":
    main()
