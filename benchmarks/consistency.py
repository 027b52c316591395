"""Priors and forms of consistency on measured logs: held-out errors, consistency, a fall.

Run from the top of the project: python benchmarks/consistency.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from common import FIGURES, ROOT
from logs import LWR4, lwr4_logs, tx40_halves

sys.path.insert(0, str(ROOT / "tests"))

from robots import fall

import dynident as di
from dynident.core.inertia import find_smallest_eigenvalue
from dynident.recording.prepare import Samples
from dynident.report.fit import Fit
from dynident.robot.model import Robot

STEP = 2.5e-4

CASES: tuple[tuple[str, str, dict], ...] = (
    ("weighted least squares", "wls", {}),
    ("m > 0, I > 0 (the older form)", "pc-idim-ls", {"prior": "none", "consistency": "inertia"}),
    ("eq. 27 on base parameters", "pc-idim-ls", {"consistency": "base"}),
    ("pseudo-inertias, no prior", "pc-idim-ls", {"prior": "none"}),
    *(
        (f"{metric}, weight {weight}", "pc-idim-ls", {"metric": metric, "prior_weight": weight})
        for metric in ("pullback", "entropic", "weighted", "euclidean")
        for weight in (1.0, "held-out")
    ),
)


def tx40() -> list[tuple[str, di.Problem, Samples, float]]:
    """The first half of the TX40 log, and its second half held out."""
    _, robot, first, second = tx40_halves()
    return [("TX40, halves", di.Problem(robot, first), second, 20.0)]


def lwr4() -> list[tuple[str, di.Problem, Samples, float]]:
    """The LWR4+ logs; its torque is measured behind the rotors, so that there is no Ia."""
    if not LWR4.is_dir():
        return []
    robot, logs = lwr4_logs()
    return [
        (f"LWR4+, {' + '.join(map(str, train))} to {test}",
         di.Problem(robot, [logs[k] for k in train], rotor=False), logs[test], 6.0)
        for train, test in (((1,), 3), ((2, 3), 1))
    ]  # fmt: skip


def held_out(fit: Fit, of_nominal: bool = False) -> float:
    (found,) = fit.validation
    figures = found.nominal if of_nominal else found.entries
    return next(f.overall_percent for f in figures if f.rows == "all samples")


def fallen(robot: Robot, fit: Fit) -> str:
    """Energy that the exported URDF gains in 10 s under gravity with friction."""
    if fit.phi is None or not fit.consistent:
        return "no URDF"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.urdf"
        fit.to_urdf(path, anyway=True)  # how the refuted ones fall, too
        gained, fastest, last = fall(path, step=STEP)
    if not np.isfinite([gained, fastest, last]).all():
        return "diverges"
    return f"{gained:.1g} J, {last:.2g}"


def inconsistent(fit: Fit) -> str:
    if fit.phi is None:
        return "none given"
    return f"{int(np.sum(find_smallest_eigenvalue(fit.phi) <= 0.0))} of {len(fit.phi)}"


def table(label: str, problem: di.Problem, test: Samples, lowpass: float) -> str:
    lines = [
        f"\n### {label}\n",
        "| | fitted rows [%] | held out [%] | inconsistent links | smallest eigenvalue | active "
        "| p of the constraints | fall |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, method, options in CASES:
        fit = di.identify(problem, method, lowpass_hz=lowpass, validation=[test], **options)
        if len(lines) == 3:
            lines.append(f"| the robot file | | {held_out(fit, True):.2f} | | | | | |")
        estimate, shown = fit.estimate, name
        if options.get("prior_weight") == "held-out":
            words = estimate.prior or ""
            weight = words.partition("weight ")[2].partition(")")[0] or "1"
            shown = name.replace("held-out", f"{weight} (held-out)")
        eigenvalue = fit.smallest_eigenvalue
        p = estimate.restriction
        fitted = next(f.overall_percent for f in fit.identification if f.rows == "fitted")
        cells = [
            shown, f"{fitted:.2f}", f"{held_out(fit):.2f}", inconsistent(fit),
            "" if eigenvalue is None else f"{eigenvalue:.1e}",
            "" if estimate.certificate is None else str(len(estimate.active)),
            "" if p is None else f"{p.p_value:.2g}", fallen(problem.robot, fit),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    text = (
        "Relative torque errors; held out: all samples of the other log or half, measured and "
        "predicted torque low-passed (TX40 20 Hz, LWR4+ 6 Hz). *Active*: constraints that hold "
        "the estimate; *p*: of their price in chi-squared, an upper bound. *Fall*: energy that "
        "the exported URDF gains above its first one, let go for 10 s under gravity with its own "
        "friction in Pinocchio, and its largest joint speed at the end [rad/s]; a URDF has no "
        "rotors.\n"
    )
    for label, problem, test, lowpass in (*tx40(), *lwr4()):
        text += table(label, problem, test, lowpass)
    (FIGURES / "consistency.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
