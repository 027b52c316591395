"""The closed loop on measured logs: EMPS with its controller, TX40 with a reconstructed one.

    python benchmarks/closed_loop.py

Writes docs/figures/closed_loop.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import EMPS, FIGURES, TX40
from scipy.io import loadmat

import dynident as di
from dynident.control.controller import Controller
from dynident.control.reconstruct import reconstruct
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.estimators.closed_loop import (
    Simulation,
    build_auxiliary_model,
    compare_with_simulation,
)
from dynident.methods import ESTIMATORS, Estimate
from dynident.simulation.gains import identify_gains
from dynident.study.loop import build_controller
from dynident.study.study import load_study_robot, read_study_samples
from dynident_papers import published
from dynident_papers.experiment import build_twin_controller
from dynident_papers.twin import load_twin

OUT = FIGURES / "closed_loop.md"
PUBLISHED = np.array(list(published.EMPS.values()))
START = {"Ia1R": 50.0}
METHODS = ("wls", "idim-iv", "2sls", "didim", "clie", "cloe")
WIDTHS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3)
PULSE = 1.0138
"""Volts of the drive per unit of the column ``pulses_N``: what the log itself shows."""


@dataclass(frozen=True)
class Slide:
    """The EMPS study: its problem, its loop, and the numbers that it gives of both."""

    problem: di.Problem
    controller: Controller
    drop_below: float
    width: float
    kp: float
    kv: float
    gain: float
    limit: float


def emps() -> Slide:
    """What the EMPS study says."""
    study = di.read_study(EMPS / "study.toml")
    robot = load_study_robot(study)
    samples = read_study_samples(study.log[0], robot, study.prepare)
    section = study.controller
    assert section is not None
    controller, _ = build_controller(section, robot, (samples,))
    law = section.model_dump()
    return Slide(
        di.Problem(robot, samples), controller, samples.drop_below[0],
        study.simulation.options()["width"], *(law[key] for key in ("kp", "kv", "gain", "limit")),
    )  # fmt: skip


def fitted(method: str, problem: di.Problem, simulation: Simulation) -> Estimate:
    """An estimate; least squares needs no loop."""
    return ESTIMATORS[method](problem, *(() if method == "wls" else (simulation,)))


def estimated(method: str, problem: di.Problem, simulation: Simulation) -> Estimate | str:
    """An estimate, or why there is none."""
    try:
        return fitted(method, problem, simulation)
    except ComputationError as error:
        return str(error)


def emps_tables(lines: list[str]) -> None:
    """Methods, smoothing widths, gains and the pulses log."""
    slide = emps()
    problem, controller, width = slide.problem, slide.controller, slide.width
    M, fv, fc, offset = PUBLISHED
    lines += [
        "## EMPS",
        "",
        "`M ddq + fv dq + fc sign(dq) + offset`: one slide with its reference, its cascade sampled",
        "at 1 kHz and its limit of 10 V (`examples/emps/study.toml`), from `M = 50`, all else 0;",
        f"rows slower than {slide.drop_below:g} m/s are dropped, the simulated sign is",
        f"`tanh(v / {width:g} m/s)`. Published: M {M:.4g} kg, fv {fv:.4g}, fc {fc:.4g}, "
        f"offset {offset:.4g}",
        "(their difference in per cent in brackets).",
        "",
        "| method | M [kg] | fv [N s/m] | fc [N] | offset [N] | position rms [mm] | |",
        "|---|---|---|---|---|---|---|",
    ]
    beta = {}
    for method in METHODS:
        simulation = Simulation(controller, width=width, start=START)
        found = fitted(method, problem, simulation)
        figure = compare_with_simulation(
            build_auxiliary_model(problem, simulation), problem.base.standard(found.beta)
        )[0]
        cells = [
            f"{v:.4g} ({100 * (v / p - 1):+.2f} %)"
            for v, p in zip(found.beta, PUBLISHED, strict=True)
        ]
        note = found.message.split(";")[0]
        lines.append(
            f"| {method} | {' | '.join(cells)} | {1e3 * figure.position_rms[0]:.4f} | {note} |"
        )
        beta[method] = found.beta
    lines += [
        "",
        "MuJoCo's system identification, hand-tuned, gives 94.49 203.84 20.34 -3.184 on this log,",
        "differences with scipy's least squares 93.78 205.72 20.27 -3.159.",
        "",
        "### The smoothing of the sign",
        "",
        "Difference from the published values [%] of M, fv and fc, with rows slower than 2 mm/s",
        "dropped and with all rows.",
        "",
        "| width [m/s] | idim-iv | didim | clie | cloe | didim, all rows | clie, all rows |",
        "|---|---|---|---|---|---|---|",
    ]
    every = problem.on(
        [
            replace(log, drop_below=(0.0,), moving=np.ones_like(log.moving))
            for log in problem.samples
        ]
    )
    for width in WIDTHS:
        simulation = Simulation(
            controller, width=width, start=START, substeps=2 if width < 2e-4 else 1
        )
        cells = []
        for method, rows in (
            ("idim-iv", problem),
            ("didim", problem),
            ("clie", problem),
            ("cloe", problem),
            ("didim", every),
            ("clie", every),
        ):
            answer = estimated(method, rows, simulation)
            if isinstance(answer, str):
                cells.append("none")
                continue
            off = 100.0 * (answer.beta[:3] / PUBLISHED[:3] - 1.0)
            cells.append(" ".join(f"{x:+.2f}" for x in off))
        lines.append(f"| {width:g} | {' | '.join(cells)} |")
    gains_table(lines, slide)
    pulses_table(lines, slide, beta["idim-iv"])


def gains_table(lines: list[str], known: Slide) -> None:
    """Gains identified from the log as if they were unknown."""
    log = known.problem.samples[0]
    assert log.qref is not None
    volts = log.tau / known.gain
    found = identify_gains(log.qref, log.measured, volts, log.rate, "p-p", limit=[known.limit])
    lines += [
        "",
        "### Unknown gains",
        "",
        f"From reference, position and voltage: kp {found.kp[0]:.3f} 1/s (documented {known.kp:g},",
        f"{100 * (found.kp[0] / known.kp - 1):+.3f} %), kv {found.kv[0]:.3f} V s/m ({known.kv:g},",
        f"{100 * (found.kv[0] / known.kv - 1):+.3f} %), velocity over {found.lag[0]} samples; they",
        f"give the logged voltage back to {found.relative_error[0]:.2f} %.",
        "",
    ]


def pulses_table(lines: list[str], slide: Slide, beta: Array) -> None:
    """The pulses log, simulated with and without the pulses."""
    columns = {"time": "t", "q": ["qm"], "qref": ["qg"], "current": ["vir"]}
    recording = di.read_log(EMPS / "DATA_EMPS_PULSES.mat", slide.problem.robot, columns=columns)
    samples = di.prepare(recording, bandwidth=20.0)
    pulses = loadmat(EMPS / "DATA_EMPS_PULSES.mat")["pulses_N"].astype(float).reshape(-1, 1)
    gain, peak = slide.gain, float(pulses.max())
    lines += [
        "### The pulses log, held out",
        "",
        "The model of `idim-iv` simulated in its loop over `DATA_EMPS_PULSES.mat`. The column",
        f"`pulses_N` is 0 or {peak:g}; the logged voltage is the controller's output plus "
        f"{PULSE:g} times it,",
        f"so that the pulses are volts of the drive ({gain * PULSE * peak:.0f} N), although the "
        "name says newtons.",
        "",
        "| external force | position rms [mm] | torque error of the loop [%] |",
        "|---|---|---|",
    ]
    forces = {
        "none": None,
        "`pulses_N` in newtons": pulses,
        f"{gain:g} x {PULSE} x `pulses_N`": gain * PULSE * pulses,
    }
    on = slide.problem.on(samples)
    for name, force in forces.items():
        simulation = Simulation(
            slide.controller,
            width=slide.width,
            external=None if force is None else (np.ascontiguousarray(force),),
        )
        auxiliary = build_auxiliary_model(on, simulation)
        motion = auxiliary.motions(on.base.standard(beta))[0]
        error = samples.measured - motion.q
        # the log's voltage holds the pulses, the simulated torque is the controller's
        drive = motion.tau if force is None else motion.tau + force
        share = 100 * np.linalg.norm(samples.tau - drive) / np.linalg.norm(samples.tau)
        lines.append(f"| {name} | {1e3 * np.sqrt(np.mean(error**2)):.4f} | {share:.2f} |")
    lines.append("")


def tx40_table(lines: list[str]) -> None:
    """IDIM-IV on the TX40 log beside WLS, parameter by parameter."""
    study = di.read_study(TX40 / "study.toml")
    robot = load_study_robot(study)
    samples = read_study_samples(study.log[0], robot, study.prepare)
    problem = di.Problem(robot, samples)
    found = reconstruct(samples.measured, samples.rate, samples.runs)
    twin = load_twin()
    simulation = Simulation(
        build_twin_controller(twin), substeps=2, width=0.05, references=(found.reference,)
    )
    wls = ESTIMATORS["wls"](problem)
    iv = ESTIMATORS["idim-iv"](problem, simulation)
    didim = estimated("didim", problem, simulation)
    deviation = (iv.beta - wls.beta) / wls.covariance.std
    lines += [
        "## TX40 without a reference",
        "",
        f"The reference is reconstructed from the motion: {len(found.moves)} smoothed trapezoidal",
        "moves between the stops, all joints in step, within "
        f"{1e3 * float(found.residual_rms.max()):.2f} mrad rms of it.",
        "The gains are those of the data's notes, under which the loop is a PD: that the actual",
        "controller was another is likely, and IV is robust to it where DIDIM is not. That the",
        "reference is free of the noise is assumed, not shown.",
        "",
        f"`idim-iv`: {iv.message}. The largest difference from WLS is "
        f"{np.abs(deviation).max():.2f} of its standard",
        f"deviations, rms {np.sqrt(np.mean(deviation**2)):.2f}.",
    ]
    for test in iv.tests:
        verdict = "rejected" if test.rejected else "not rejected"
        lines.append(f"* {test.null}: {verdict} ({test.distribution} = {test.statistic:.3g})")
    shown = (
        didim
        if isinstance(didim, str)
        else f"up to {np.abs((didim.beta - wls.beta) / wls.covariance.std).max():.1f} "
        "standard deviations from WLS"
    )
    lines += [
        "",
        f"`didim` under the same loop: {shown}.",
        "",
        "| parameter | WLS | std | IDIM-IV | std | difference [std of WLS] |",
        "|---|---|---|---|---|---|",
    ]
    for k, name in enumerate(problem.base.names):
        lines.append(
            f"| {name} | {wls.beta[k]:.4g} | {wls.covariance.std[k]:.2g} | {iv.beta[k]:.4g} "
            f"| {iv.covariance.std[k]:.2g} | {deviation[k]:+.2f} |"
        )
    lines.append("")


def main() -> None:
    """Write the page."""
    lines = [
        "# The closed loop on measured logs",
        "",
        "Written by `benchmarks/closed_loop.py`.",
        "",
    ]
    emps_tables(lines)
    tx40_table(lines)
    OUT.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
