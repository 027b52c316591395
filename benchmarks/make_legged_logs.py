"""Write logs of legged robots, and of an arm on a plate, that MuJoCo made: as a stranger would.

    python benchmarks/make_legged_logs.py DIR [--seconds 60] [--robots solo12 talos] [--exact]

Each log is a CSV of what sensors give (encoder counts, noise of the IMU, of torques and of
forces), with its truth beside it as `<log>_truth.toml`. `--exact` writes all columns without
noise instead. The logs of one robot have the same truth; seeds are those in the names.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tomlkit
from common import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from legged import MACHINES, LeggedLog, make, noisy, write_csv

RUNS = {
    "solo12": ("sway", "squat", "walk", "trot"),
    "anymal": ("sway", "squat", "walk", "trot"),
    "talos": ("sway", "squat"),
    "ur5": ("swing", "carried"),
}
SEEDS = {"identify": 1, "validate": 2}
"""Of the motion; the noise has that seed, too."""


def write_truth(log: LeggedLog, path: Path) -> None:
    """True parameters, and where the sensors are, as TOML."""
    lever, turn = log.mount
    document = {
        "urdf": log.urdf.name,
        "rate": log.rate,
        "imu": {"position": lever.tolist(), "rotation": turn.tolist()},
        "contacts": {
            contact.name: {"frame": contact.frame, "components": len(contact.columns)}
            for contact in log.contacts
        },
        "sensors": {
            cut.name: {"frame": cut.frame, "body": cut.phi.tolist()} for cut in log.cuts
        },
        "bodies": {
            name: phi.tolist() for name, phi in zip(log.bodies, log.phi, strict=True)
        },
        "joints": {
            name: {"Ia": float(Ia), "fv": float(fv)}
            for name, Ia, fv in zip(log.joints, log.Ia, log.fv, strict=True)
        },
    }  # fmt: skip
    path.write_text(tomlkit.dumps(document))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--robots", nargs="+", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--exact", action="store_true")
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    for robot in asked.robots:
        for motion in RUNS[robot]:
            for use, seed in SEEDS.items():
                log = make(robot, motion, asked.seconds, seed)
                stem = asked.directory / f"{robot}_{motion}_{seed}"
                written = log if asked.exact else noisy(log, seed)
                write_csv(written, stem.with_suffix(".csv"))
                write_truth(log, stem.with_name(f"{stem.name}_truth.toml"))
                print(f"{stem}.csv: {use}, {log.samples} rows, {len(written.columns)} columns")


if __name__ == "__main__":
    main()
