"""An hour at 1 kHz on one machine: processor time and memory of an identification, by stage.

Run from the top of the project: python benchmarks/hours.py [MINUTES ...] [--format npz|parquet|csv]

A log of a seven-axis arm is made (a motion known in closed form, inverse dynamics, noise), stored,
and identified as ``dynident identify STUDY --as-given -o DIR`` does it, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import FIGURES, markdown

MINUTES = (1.0, 10.0, 60.0)
RATE, BLOCK = 1000.0, 60_000
NAMES = [f"a{k}" for k in range(1, 8)]
ALPHA = [0, 90, -90, -90, 90, 90, -90]
LENGTH = [0.31, 0.0, 0.4, 0.0, 0.39, 0.0, 0.078]
MASS = [2.7, 2.7, 2.7, 2.7, 1.7, 1.6, 0.3]
NOISE = [0.4, 0.4, 0.2, 0.2, 0.1, 0.1, 0.05]
"""Of the torques [Nm]; that of the positions is of 1e-5 rad."""
STUDY = """\
[robot]
file = "robot.toml"
friction = "coulomb-viscous"
[[log]]
files = "{}"
[prepare]
bandwidth = 5.0
[identify]
decide = "nothing"
"""
ONE_CORE = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def write_robot() -> str:
    """The arm: lengths and axes of a LWR4+, bodies of about its weight."""
    joints = [
        f'[[joint]]\nname = "{name}"\nalpha = {alpha}\nd = {length}\ninertial = {{ mass = {mass}, '
        f"com = [0.001, 0.03, 0.06], inertia = [{0.006 * mass}, 0.0, {0.006 * mass}, 0.0, 0.0, "
        f"{0.003 * mass}] }}\n"
        for name, alpha, length, mass in zip(NAMES, ALPHA, LENGTH, MASS, strict=True)
    ]
    return 'name = "arm"\nconvention = "modified"\n' + "".join(joints)


class Motion:
    """Sums of sinusoids below 1 Hz that do not repeat, and torques along them."""

    def __init__(self, path: Path) -> None:
        import dynident as di

        robot = di.load_robot(path)
        self.model = di.build_idim(robot, "coulomb-viscous")
        drive = [value for size in (3, 3, 2, 2, 1, 1, 0.5) for value in (0.1, size, size, 0.1)]
        self.theta = np.concatenate([1.1 * robot.nominal.ravel(), drive])
        rng = np.random.default_rng(31)
        self.speed = 2.0 * np.pi * rng.uniform(0.03, 0.8, (8, 7))
        self.size = rng.uniform(0.05, 0.25, (8, 7))
        self.phase = rng.uniform(0.0, 6.0, (8, 7))

    def sample(self, first: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times, positions and torques of some samples, noise included."""
        t = (first + np.arange(count)) / RATE
        q, dq, ddq = np.zeros((3, count, 7))
        for w, a, p in zip(self.speed, self.size, self.phase, strict=True):
            s, c = np.sin(np.outer(t, w) + p), np.cos(np.outer(t, w) + p)
            q += a * s
            dq += a * w * c
            ddq -= a * w * w * s
        rng = np.random.default_rng(first)
        tau = self.model.torque(self.theta, q, dq, ddq) + rng.normal(size=q.shape) * NOISE
        return t, q + 1e-5 * rng.normal(size=q.shape), tau


def write_log(path: Path, motion: Motion, samples: int) -> None:
    """Make a log block by block and store it in the format of its ending."""
    blocks = (
        motion.sample(first, min(BLOCK, samples - first)) for first in range(0, samples, BLOCK)
    )
    names = ["time", *(f"q_{name}" for name in NAMES), *(f"tau_{name}" for name in NAMES)]
    tables = (np.column_stack(block) for block in blocks)
    WRITERS[path.suffix](path, names, tables, samples)


def write_npz(path: Path, names: list[str], tables, samples: int) -> None:  # type: ignore[no-untyped-def]
    """One array a column."""
    columns = np.empty((len(names), samples))
    end = 0
    for table in tables:
        columns[:, end : end + len(table)] = table.T
        end += len(table)
    np.savez(path, allow_pickle=False, **dict(zip(names, columns, strict=True)))


def write_parquet(path: Path, names: list[str], tables, samples: int) -> None:  # type: ignore[no-untyped-def]
    """A row group a block."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
    with pyarrow.parquet.ParquetWriter(path, schema) as file:
        for table in tables:
            file.write_table(pyarrow.table(dict(zip(names, table.T, strict=True)), schema))


def write_csv(path: Path, names: list[str], tables, samples: int) -> None:  # type: ignore[no-untyped-def]
    """Nine digits."""
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for table in tables:
            np.savetxt(file, table, fmt="%.9g", delimiter=",")


WRITERS: dict[str, Callable[..., None]] = {
    ".npz": write_npz,
    ".parquet": write_parquet,
    ".csv": write_csv,
}


def read_status(key: str) -> float:
    """Memory of this process by Linux: `VmRSS` now, `VmHWM` at most since the last reset [MB]."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:")) / 1000.0


def fit(study: Path, folder: Path) -> dict[str, Any]:
    """Identify and write all files; of each stage its processor time and its peak of memory."""
    import dynident as di
    from dynident.core.files import write_files

    small = di.read_study(study.with_name("warm.toml"))
    di.run_study(small).render_files(folder, True)  # compiles, loads
    stages: dict[str, list[float]] = {}
    begun = last = time.process_time()
    before, peak, now = read_status("VmRSS"), 0.0, ""

    def tell(stage: str, share: float) -> None:
        nonlocal peak, now, last
        if stage != now:
            clock, high = time.process_time(), read_status("VmHWM")
            spent = stages.setdefault(now, [0.0, 0.0])
            spent[0] += clock - last
            spent[1] = max(spent[1], high - before)
            now, last, peak = stage, clock, max(peak, high)
            Path("/proc/self/clear_refs").write_text("5")

    Path("/proc/self/clear_refs").write_text("5")
    tell("start", 0.0)
    result = di.run_study(di.read_study(study), tell)
    tell("report", 0.0)
    contents, _ = result.render_files(folder, True)
    write_files(contents)
    tell("", 0.0)
    return {
        "stages": {name: spent for name, spent in stages.items() if name not in ("", "start")},
        "seconds": time.process_time() - begun,
        "before": before,
        "peak": peak - before,
        "error": result.identification[0].overall_percent,
        "parameters": result.estimate.beta.tolist(),
        "std": result.estimate.covariance.std.tolist(),
        "level": result.verdict.state,
    }


def main() -> None:
    """Make the logs, fit each in a process of its own, print what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("minutes", nargs="*", type=float)
    parser.add_argument("--format", default="npz", choices=[suffix[1:] for suffix in WRITERS])
    parser.add_argument("--keep", type=Path, help="a folder of logs that are made once")
    parser.add_argument("--fit", nargs=2, type=Path)
    given = parser.parse_args()
    if given.fit:
        sys.stdout.write(json.dumps(fit(*given.fit)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        folder.mkdir(exist_ok=True)
        (folder / "robot.toml").write_text(write_robot())
        motion = Motion(folder / "robot.toml")
        found = {}
        for minutes in (0.2, *(given.minutes or MINUTES)):
            log = folder / f"{minutes:g}min.{given.format}"
            if not log.exists():
                write_log(log, motion, int(60.0 * minutes * RATE))
            study = folder / ("warm.toml" if minutes == 0.2 else f"{minutes:g}min.toml")
            study.write_text(STUDY.format(log.name))
            if minutes != 0.2:
                done = subprocess.run(
                    [sys.executable, __file__, "--fit", str(study), str(folder / "out")],
                    stdout=subprocess.PIPE, text=True, check=True, env=ONE_CORE,
                )  # fmt: skip
                found[minutes] = json.loads(done.stdout)
    lines = describe(found, given.format)
    text = "\n".join(lines) + "\n"
    if not given.minutes and given.format == "npz":
        (FIGURES / "hours.md").write_text(text)
    sys.stdout.write(text)


def describe(found: dict[float, dict[str, Any]], kind: str) -> list[str]:
    """The page."""
    size = {minutes: 60.0 * minutes * RATE * 15 * 8 / 1e6 for minutes in found}
    stages = list(dict.fromkeys(name for each in found.values() for name in each["stages"]))
    header = ["stage", *(f"{minutes:g} min" for minutes in found)]
    blank = [0.0, 0.0]
    return [
        f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}; one "
        f"BLAS thread. Seven joints at 1 kHz, {kind.upper()} files with time, positions and "
        "torques, and nothing else: "
        + ", ".join(f"{mb:.0f} MB for {minutes:g} min" for minutes, mb in size.items())
        + " as arrays of float64.",
        "",
        "Seconds of the processor by stage, after compilation:",
        "",
        *markdown(
            header,
            [
                [name, *(f"{each['stages'].get(name, blank)[0]:.2f}" for each in found.values())]
                for name in stages
            ]
            + [["all", *(f"**{each['seconds']:.2f}**" for each in found.values())]],
        ),
        "",
        "Peak of the memory by stage beyond that of the process before, as a multiple of the log:",
        "",
        *markdown(
            header,
            [
                [
                    name,
                    *(
                        f"{each['stages'].get(name, blank)[1] / size[minutes]:.2f}"
                        for minutes, each in found.items()
                    ),
                ]
                for name in stages
            ]
            + [
                [
                    "all",
                    *(f"**{each['peak'] / size[m]:.2f}**" for m, each in found.items()),
                ]
            ],
        ),
    ]


if __name__ == "__main__":
    main()
