"""Elastic joints: the springs of a KUKA KR300 from its two encoders, and intervals on twins.

Stiffness, damping, hysteresis and held-out link positions of axes 1 to 3, fitted on log A and told
on log B, beside a stiff joint; how often 95 % intervals of a twin hold the truth. Writes
docs/figures/elastic.md. The log with the secondary encoders is beside the project, in
../shared/data.

Run from the top of the project: python benchmarks/elastic.py [RUNS]
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import FIGURES, ROOT, markdown

sys.path.insert(0, str(ROOT / "tests"))

from springs import SLIPS, VALUES, elastic_arm, twin

import dynident as di
from dynident.core.words import format_number
from dynident.dynamics.idim import build_idim
from dynident.study.study import Study

KR300 = ROOT / ".." / "shared" / "data" / "kr300"
BANDWIDTHS = (3.0, 5.0)
FRICTION = "coulomb-viscous-asymmetric"
KR300_SLIPS = (1e-5, 3e-5, 1e-4)
"""Of bristles of its springs, which bend by a few tenths of a milliradian [rad]."""
TWINS = (
    (("position",), ()),
    (("position", "torque"), ()),
    (("position",), ("hysteresis",)),
    (("position", "torque"), ("hysteresis",)),
    (("position",), ("cubic", "hysteresis")),
)
CUBIC = 4e7
"""Of twins [Nm/rad^3]."""


def study(bandwidth: float, spring: tuple[str, ...]) -> Study:
    """A study of the KR300 with the secondary encoders of axes 1 to 3."""
    columns = {f"link_joint{j}": f"qse_joint{j}" for j in (1, 2, 3)}
    logs = [
        {"files": str(KR300 / f"kr300_{name}.csv"), "rows": (450, 2051)}
        | {"columns": columns, "use": use, "name": name}
        for name, use in (("A", "identify"), ("B", "validate"))
    ]
    own: dict[str, object] = {"link": ("position",), "spring": spring}
    own |= {"slip": KR300_SLIPS} if "hysteresis" in spring else {}
    drives = [{"joint": f"joint{j}", **own} for j in (1, 2, 3)]
    gas = {"joint": "joint2", "kind": "gas-spring", "base": 0.8, "crank": 0.2}
    return Study.model_validate(
        {
            "robot": {
                "file": str(KR300 / "kr300.toml"),
                "friction": FRICTION,
                "drive": drives,
            },
            "log": logs,
            "element": [gas | {"angle": 0.0872665, "stroke": 0.575}],
            "prepare": {"bandwidth": bandwidth},
            "identify": {"doctor": False},
        }
    )


def measured() -> list[str]:
    """Tables of the KR300."""
    rows, errors = [], []
    for spring in (("lag",), ("lag", "scale")):
        for bandwidth in BANDWIDTHS:
            fit = di.run_study(study(bandwidth, spring))
            std = dict(zip(fit.base.names, fit.estimate.covariance.std, strict=True))
            values = dict(zip(fit.idim.names, fit.theta, strict=True))
            for j, own in enumerate(fit.springs, 1):
                (held,) = own.held_out
                lag = values[f"KT{j}"] / values[f"K{j}"]
                rows.append(
                    [
                        f"{bandwidth:g}",
                        ", ".join(spring),
                        str(j),
                        f"{format_number(own.stiffness, 3)} ± {format_number(std[f'K{j}'], 2)}",
                        format_number(1.0 / own.compliance, 3),
                        " to ".join(format_number(1e6 * end, 3) for end in own.interval),
                        f"{values[f'D{j}']:.0f} ± {format_number(std[f'D{j}'], 2)}",
                        f"{1e3 * lag:.2f}",
                        *(f"{1e3 * e:.3f}" for e in (held.spring, held.stiff, held.plain)),
                        "yes" if own.supported else "no",
                    ]
                )
            errors.append(
                [f"{bandwidth:g}", ", ".join(spring), fit.verdict.state]
                + [f"{joint.relative_percent:.1f}" for joint in fit.identification[1].joints[:3]]
                + [f"{j.relative_percent:.1f}" for j in fit.validation[0].entries[1].joints[:3]]
            )
    header = ["bandwidth [Hz]", "encoder", "axis", "K [Nm/rad]", "1/c [Nm/rad]"]
    header += ["c 95 % [µrad/Nm]", "D [Nm s/rad]", "lag [ms]"]
    header += ["B spring", "stiff", "plain [mrad]", "told"]
    torques = ["bandwidth [Hz]", "encoder", "verdict"]
    torques += [f"{log} axis {j} [%]" for log in "AB" for j in (1, 2, 3)]
    return [*markdown(header, rows), "", *markdown(torques, errors)]


def remembered() -> list[str]:
    """Table of the hysteresis of the KR300."""
    rows = []
    for bandwidth in BANDWIDTHS:
        fit = di.run_study(study(bandwidth, ("lag", "hysteresis")))
        values = dict(zip(fit.idim.names, fit.theta, strict=True))
        for j, own in enumerate(fit.springs, 1):
            (held,) = own.held_out
            assert own.width_interval is not None
            assert held.linear is not None
            ends = " to ".join(format_number(1e6 * end, 2) for end in own.width_interval)
            width = format_number(1e6 * own.width, 2), ends
            torques = [values[f"Kh{end}{j}"] for end in "abc"]
            rows.append(
                [
                    f"{bandwidth:g}",
                    str(j),
                    *(format_number(torque, 2) for torque in torques),
                    *(width if own.supported else ("", "")),
                    *(f"{1e3 * error:.4f}" for error in (held.spring, held.linear, held.stiff)),
                    "yes" if own.hysteresis else "no",
                ]
            )
    header = ["bandwidth [Hz]", "axis"]
    header += [f"Kh of {1e6 * slip:.0f} µrad [Nm]" for slip in KR300_SLIPS]
    header += [
        "width [µrad]",
        "95 % [µrad]",
        "B with hysteresis",
        "without",
        "stiff [mrad]",
        "told",
    ]
    return markdown(header, rows)


def covered(runs: int) -> list[str]:
    """Table of coverage on twins."""
    rows = []
    for link, spring in TWINS:
        idim = build_idim(elastic_arm((1, 2), link, spring))
        inside, springs, biases, widths = [], [], [], []
        for seed in range(runs):
            log, theta = twin(idim, seed, Kc=CUBIC)
            problem = di.Problem(idim.robot, di.prepare(log, 6.0))
            fit = di.identify(problem, "wls", doctor=False)
            off = (fit.estimate.beta - fit.base.matrix @ theta) / fit.estimate.covariance.std
            own = [k for k, name in enumerate(fit.base.names) if name[0] in "KD" or "offs" in name]
            inside.append(np.abs(off) < 1.96)
            springs.append(np.abs(off[own]) < 1.96)
            biases.append(off)
            if "hysteresis" in spring:
                truth = 2.0 * (VALUES["Kha"] + VALUES["Khb"]) / VALUES["K"]
                ends = [each.width_interval or (np.nan, np.nan) for each in fit.springs]
                widths.append([low < truth < high for low, high in ends])
        bias = np.abs(np.mean(biases, axis=0)) * np.sqrt(runs)
        rows.append(
            [
                " and ".join(link),
                ", ".join(spring) or "linear",
                str(fit.base.count),
                f"{100 * np.mean(inside):.1f}",
                f"{100 * np.mean(springs):.1f}",
                f"{100 * np.mean(widths):.1f}" if widths else "",
                f"{np.max(bias):.1f}",
                str(runs),
            ]
        )
    header = ["measured of the links", "spring", "base parameters", "inside of 95 % [%]"]
    header += ["spring's [%]", "width [%]", "largest bias [standard errors]", "runs"]
    return markdown(header, rows)


def main() -> None:
    """Write the page."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    lines = [
        "# Elastic joints",
        "",
        "Made by `benchmarks/elastic.py`.",
        "",
        "## KUKA KR300: axes 1 to 3, fitted on A, told on B",
        "",
        *measured(),
        "",
        "`pc-idim-ls` with the prior of the robot file, rows 450 to 2051 of each log, friction "
        f"{FRICTION}, gas spring of axis 2. K, D: of the fit. c: regression of the deflection on "
        "the load, with its interval over blocks of time. B: root mean square errors of link "
        "positions told from the motors of log B, below the torque filter's cutoff: by the spring; "
        "of a stiff joint with the same offset, lag and scale of the encoder, from A; of q = θ.",
        "",
        "## KUKA KR300: hysteresis",
        "",
        *remembered(),
        "",
        "As above, of springs with hysteresis and encoders with a lag. Kh: torques of bristles "
        "that slip after so much, which are not negative. Width: of the loop, by the fit, where "
        "the spring is told from a stiff joint. B: link positions of log B by the spring, by the "
        "same without what bristles take, of a stiff "
        "joint.",
        "",
        "## Twins",
        "",
        *covered(runs),
        "",
        "An arm of three joints, two of them elastic (3000 Nm/rad, 2 Nm s/rad), 16 s at 500 Hz, "
        "noise of 0.1 Nm on torques and 20 µrad on links' encoders, bandwidth 6 Hz, `wls`; "
        f"hysteresis of {VALUES['Kha']:g} and {VALUES['Khb']:g} Nm, of bristles that slip after "
        f"{1e6 * SLIPS[0]:g} and {1e6 * SLIPS[1]:g} µrad; cubic {CUBIC:g} Nm/rad^3.",
    ]
    text = "\n".join(lines) + "\n"
    (FIGURES / "elastic.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
