"""Logs of a simulated six-axis arm collected as factors: time a log, size a source, time to a fit.

Run from the top of the project: python benchmarks/collect.py [LOGS] [SECONDS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import FIGURES, TX40, markdown

import dynident as di
from dynident.methods import FACTORED

LOGS, SECONDS, RATE = 20, 60.0, 500.0
ROBOT = TX40 / "tx40_mdh_modified.urdf"
STUDY = '[robot]\nfile = "{}"\n[prepare]\nbandwidth = 5.0\n'
NOISE = 0.02
"""Of the torques, as a share of their root mean square."""


def write_logs(folder: Path, count: int, seconds: float) -> int:
    """One motion by so many recordings, each with noise of its own; bytes of a file."""
    robot = di.load_robot(ROBOT)
    model = di.build_idim(robot, "coulomb-viscous")
    theta = np.array([0.3, 2.0, 3.0, 0.1] * robot.n)
    theta = np.concatenate([1.1 * robot.nominal.ravel(), theta])
    t = np.arange(int(seconds * RATE)) / RATE
    rng = np.random.default_rng(1)
    q, dq, ddq = np.zeros((3, len(t), robot.n))
    for f in rng.uniform(0.05, 1.0, 8):
        w, size, phase = 2.0 * np.pi * f, *rng.uniform([[0.05], [0.0]], [[0.25], [6.0]], (2, 6))
        q += size * np.sin(w * t[:, None] + phase)
        dq += size * w * np.cos(w * t[:, None] + phase)
        ddq -= size * w**2 * np.sin(w * t[:, None] + phase)
    tau = model.torque(theta, q, dq, ddq)
    level = NOISE * np.sqrt(np.mean(tau**2, axis=0))
    names = [f"{label}_{joint}" for label in ("q", "tau") for joint in robot.joint_names]
    for k in range(count):
        noisy = tau + level * np.random.default_rng(k).normal(size=tau.shape)
        signals = dict(zip(names, np.hstack([q, noisy]).T, strict=True))
        np.savez(folder / f"run{k:04d}.npz", time=t, **signals)
    return (folder / "run0000.npz").stat().st_size


def main() -> None:
    """Write the page, or with fewer logs than usual print it alone."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else LOGS
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        size = write_logs(folder / "logs", count, seconds)
        study = folder / "study.toml"
        study.write_text(STUDY.format(ROBOT))
        rows = []
        di.collect(study, [folder / "logs" / "run0000.npz"], folder / "first")  # compiles
        for workers in (1, 2):
            made = folder / f"by{workers}"
            started = time.perf_counter()
            found = di.collect(study, [folder / "logs"], made, workers=workers)
            taken = (time.perf_counter() - started) / count
            rows.append([f"{workers}", f"{taken:.3f}"])
            assert not found.left_out
        same = all(
            (folder / "by2" / path.name).read_bytes() == path.read_bytes()
            for path in (folder / "by1").iterdir()
        )
        kept = [path.stat().st_size for path in (folder / "by1").glob("*.npz")]
        fits = []
        for method in FACTORED:
            di.identify_factors(folder / "by1", method)
            begun, started = time.process_time(), time.perf_counter()
            fit = di.identify_factors(folder / "by1", method)
            passed = time.perf_counter() - started
            fits.append([
                f"`{method}`",
                f"{passed:.3f}",
                f"{time.process_time() - begun:.3f}",
                f"{fit.identification[0].overall_percent:.2f}",
            ])  # fmt: skip
    lines = [
        f"{count} logs of {seconds:g} s at {RATE:g} Hz of a simulated six-axis arm, "
        f"{size / 1e6:.2f} MB each; a source takes {np.mean(kept) / 1e3:.0f} kB.",
        "",
        *markdown(["workers", "s a log"], rows),
        "",
        f"One worker and two make {'the same' if same else 'OTHER'} files. From these:",
        "",
        *markdown(["method", "s", "s of processor", "error %"], fits),
    ]
    text = "\n".join(lines) + "\n"
    if count == LOGS and seconds == SECONDS:
        (FIGURES / "collect.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
